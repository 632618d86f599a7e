//! Trees as compact S-expressions, and the sample program.
#![allow(dead_code)]

use rlhf_lang::diag::Diagnostic;
use rlhf_lang::source::{FileId, Source};
use rlhf_lang::syntax::ast::*;
use rlhf_lang::syntax::{parse, parse_expression};

/// A whole program that trains with GRPO.
pub const GRPO: &str = include_str!("grpo.rlhf");

/// The tree of a text that parses without a diagnostic.
pub fn good(text: &str) -> File {
    let (file, diagnostics) = parse(FileId(0), text);
    assert_eq!(diagnostics, vec![], "{text}");
    file
}

/// One line an item.
pub fn items(text: &str) -> String {
    file(&good(text))
}

/// An expression that parses without a diagnostic.
pub fn value(text: &str) -> String {
    let (tree, diagnostics) = parse_expression(FileId(0), text);
    assert_eq!(diagnostics, vec![], "{text}");
    expr(&tree)
}

/// A statement of a `step`.
pub fn statement(text: &str) -> String {
    let file = good(&format!("step over d {{\n{text}\n}}"));
    let ItemKind::Step(step) = &file.items[0].kind else {
        panic!("not a step: {text}");
    };
    step.body.iter().map(stmt).collect::<Vec<_>>().join("\n")
}

/// `line:column-column code message [help] {label at line:column}`, one a line.
pub fn messages(text: &str, diagnostics: &[Diagnostic]) -> String {
    let source = Source::new("t", text);
    let place = |offset| {
        let (line, column) = source.line_column(offset);
        format!("{line}:{column}")
    };
    let line = |d: &Diagnostic| {
        let span = d.span().expect("every syntax error has a place");
        let mut out = format!("{} `{}` {}", place(span.lo), source.slice(span), d.message);
        if let Some(help) = &d.help {
            out += &format!(" [{help}]");
        }
        for label in &d.labels[1..] {
            out += &format!(" {{{} at {}}}", label.text, place(label.span.lo));
        }
        if let Some(fix) = &d.fix {
            out += &format!(" <{}>", fix.title);
        }
        out
    };
    diagnostics.iter().map(line).collect::<Vec<_>>().join("\n")
}

pub fn file(file: &File) -> String {
    file.items.iter().map(item).collect::<Vec<_>>().join("\n")
}

fn join<T>(parts: &[T], show: impl std::ops::Fn(&T) -> String) -> String {
    parts.iter().map(|p| format!(" {}", show(p))).collect()
}

pub fn item(item: &Item) -> String {
    let doc = item
        .doc
        .as_ref()
        .map_or(String::new(), |d| format!("#{d:?} "));
    let text = match &item.kind {
        ItemKind::Use(u) => {
            let path = match &u.path {
                UsePath::Dotted(names) => {
                    let names: Vec<&str> = names.iter().map(|n| n.text.as_str()).collect();
                    names.join(".")
                }
                UsePath::File(path, _) => format!("{path:?}"),
            };
            format!("(use {path}{})", join(&u.names, |n| n.text.clone()))
        }
        ItemKind::Param(p) => {
            let range = p
                .range
                .as_ref()
                .map_or(String::new(), |r| format!(" in {}", expr(r)));
            let default = p
                .default
                .as_ref()
                .map_or(String::new(), |d| format!(" = {}", expr(d)));
            format!("(param {} {}{range}{default})", p.name.text, ty(&p.ty))
        }
        ItemKind::Data(d) => {
            let columns = join(&d.columns, |c| {
                let from = c
                    .from
                    .as_ref()
                    .map_or(String::new(), |f| format!(" from {:?}", f.0));
                format!("({} {}{from})", c.name.text, ty(&c.ty))
            });
            format!("(data {} {}{columns})", d.name.text, expr(&d.source))
        }
        ItemKind::Model(m) => format!("(model {} {})", m.name.text, expr(&m.value)),
        ItemKind::Reward(r) => format!(
            "(reward {}{} -> {} {})",
            r.name.text,
            join(&r.params, param),
            ty(&r.result),
            expr(&r.source)
        ),
        ItemKind::State(s) => format!("(state {} {} {})", s.name.text, ty(&s.ty), expr(&s.init)),
        ItemKind::Fn(f) => {
            let result = f
                .result
                .as_ref()
                .map_or(String::new(), |r| format!(" -> {}", ty(r)));
            format!(
                "(fn {}{}{result}{} {})",
                f.name.text,
                join(&f.params, param),
                join(&f.bindings, stmt),
                expr(&f.value)
            )
        }
        ItemKind::Step(s) => format!(
            "(step {}{}{}{})",
            s.over.text,
            axes(&s.axes),
            join(&s.options, arg),
            join(&s.body, stmt)
        ),
        ItemKind::Eval(e) => format!(
            "(eval {} {}{}{})",
            expr(&e.every),
            e.over.text,
            axes(&e.axes),
            join(&e.body, stmt)
        ),
        ItemKind::Place(p) => {
            let calls = join(&p.calls, |c| {
                let train = if c.train { "train " } else { "" };
                format!(
                    "({train}{} {}{})",
                    c.name.text,
                    expr(&c.devices),
                    join(&c.options, arg)
                )
            });
            format!("(place {} {}{calls})", p.program.text, expr(&p.cluster))
        }
        ItemKind::Bad(_) => "BAD".into(),
    };
    doc + &text
}

fn param(p: &FnParam) -> String {
    let default = p
        .default
        .as_ref()
        .map_or(String::new(), |d| format!(" = {}", expr(d)));
    format!("({} {}{default})", p.name.text, ty(&p.ty))
}

fn ty(ty: &Type) -> String {
    let kind = match &ty.kind {
        TypeKind::Name(name) => name.clone(),
        TypeKind::List(name) => format!("{name}[]"),
        TypeKind::Enum(values) => {
            let values: Vec<String> = values.iter().map(|v| format!("{:?}", v.0)).collect();
            values.join("|")
        }
    };
    let Some(axes) = &ty.axes else {
        return kind;
    };
    let axes: Vec<&str> = axes
        .iter()
        .map(|a| match a {
            AxisPattern::Rest(_) => "..",
            AxisPattern::Name(name) => &name.text,
        })
        .collect();
    format!("{kind}[{}]", axes.join(","))
}

fn axes(axes: &[AxisBinder]) -> String {
    if axes.is_empty() {
        return String::new();
    }
    let parts: Vec<String> = axes
        .iter()
        .map(|a| match &a.size {
            None => a.name.text.clone(),
            Some(AxisSize::Fixed(e)) => format!("{}:{}", a.name.text, expr(e)),
            Some(AxisSize::Ragged(e)) => format!("{}:..{}", a.name.text, expr(e)),
        })
        .collect();
    format!(" [{}]", parts.join(" "))
}

pub fn stmt(stmt: &Stmt) -> String {
    match &stmt.kind {
        StmtKind::Bind { name, value } => format!("({} = {})", name.text, expr(value)),
        StmtKind::Rows {
            name,
            of,
            cond,
            options,
        } => format!(
            "(rows {} {} {}{})",
            name.text,
            of.text,
            expr(cond),
            join(options, arg)
        ),
        StmtKind::Train {
            model,
            options,
            body,
        } => format!(
            "(train {}{}{})",
            model.text,
            join(options, arg),
            join(body, self::stmt)
        ),
        StmtKind::Minimize(e) => format!("(minimize {})", expr(e)),
        StmtKind::Log(metrics) => {
            format!(
                "(log{})",
                join(metrics, |(n, e)| format!("{}:{}", n.text, expr(e)))
            )
        }
        StmtKind::Next { name, value } => format!("(next {} = {})", name.text, expr(value)),
        StmtKind::Bad => "BAD".into(),
    }
}

fn arg(arg: &Arg) -> String {
    match &arg.label {
        Some(label) => format!("{}:{}", label.text, expr(&arg.value)),
        None => expr(&arg.value),
    }
}

pub fn expr(e: &Expr) -> String {
    match &e.kind {
        ExprKind::Number { value, int } => format!("{value}{}", if *int { "" } else { "f" }),
        ExprKind::Text(text) => format!("{text:?}"),
        ExprKind::Bool(b) => format!("#{b}"),
        ExprKind::Name(name) => name.clone(),
        ExprKind::Call {
            callee,
            args,
            axes: a,
        } => format!("({}{}{})", callee.text, join(args, arg), axes(a)),
        ExprKind::Member { base, member } => format!("{}.{}", expr(base), member.text),
        ExprKind::Unary { op, operand } => {
            let op = if *op == UnaryOp::Neg { "neg" } else { "not" };
            format!("({op} {})", expr(operand))
        }
        ExprKind::Binary {
            op, left, right, ..
        } => format!("({op:?} {} {})", expr(left), expr(right)).replacen(
            &format!("{op:?}"),
            &format!("{op:?}").to_lowercase(),
            1,
        ),
        ExprKind::If {
            cond,
            then,
            otherwise,
        } => format!("(if {} {} {})", expr(cond), expr(then), expr(otherwise)),
        ExprKind::List(parts) => format!("[{}]", join(parts, expr).trim_start()),
        ExprKind::Record(args) => format!("{{{}}}", join(args, arg).trim_start()),
        ExprKind::Range { lo, hi } => {
            let end = |e: &Option<Box<Expr>>| e.as_ref().map_or(String::new(), |e| expr(e));
            format!("{}..{}", end(lo), end(hi))
        }
        ExprKind::Paren(inner) => format!("<{}>", expr(inner)),
        ExprKind::Bad => "BAD".into(),
    }
}
