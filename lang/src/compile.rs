//! Text to graph: the one entry that the command line, an editor and every rank use.

use std::rc::Rc;

use crate::diag::{Diagnostic, Level};
use crate::facts::Facts;
use crate::graph::{AxisId, AxisSize, Elem, ExprRef, Graph, Op, Param, Type};
use crate::sema::{Env, Kind, Sema, Val};
use crate::source::{FileId, Source, Sources, Span};
use crate::syntax::ast;

/// What to compile.
pub struct Request<'a> {
    /// The file's name as diagnostics show it.
    pub name: &'a str,
    /// The program.
    pub text: &'a str,
    /// `name=value` as given for this run.
    pub overrides: &'a [(String, String)],
    /// The text of an imported `"mine.rlhf"`, if it exists.
    pub load: &'a dyn Fn(&str) -> Option<String>,
}

/// What came of it.
pub struct Compiled {
    /// Every text that spans refer to.
    pub sources: Sources,
    /// The program's tree.
    pub file: ast::File,
    /// The trees of the other texts, in the order of their ids; of the standard library only what is no
    /// function.
    pub libraries: Vec<ast::File>,
    /// The params, also when there are errors elsewhere.
    pub params: Vec<Param>,
    /// The graph; `None` when there is an error, and for a library, which has no `step`.
    pub graph: Option<Graph>,
    /// Errors, warnings and hints, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
    /// What every name stands for.
    pub facts: Facts,
    /// Paths of the imported files, those that do not exist included.
    pub imports: Vec<String>,
}

/// Checks a program and lowers it. Deterministic; every text gives an answer.
pub fn compile(request: &Request) -> Compiled {
    let mut sema = Sema::new(stem(request.name), request.load);
    sema.add_module(request.name, request.text);
    sema.add_prelude();
    sema.graph.doc = sema.modules[0].file.doc.clone();
    sema.program(request.overrides);
    let file = (*sema.modules[0].file).clone();
    let params = sema.graph.params.clone();
    let runs = file
        .items
        .iter()
        .any(|i| matches!(i.kind, ast::ItemKind::Step(_)));
    let failed = sema.failed();
    let facts = sema.take_facts();
    let imports = std::mem::take(&mut sema.imported);
    let mut diagnostics = std::mem::take(&mut sema.diagnostics);
    let modules = std::mem::take(&mut sema.modules).into_iter().skip(1);
    let libraries = modules.map(|m| Rc::unwrap_or_clone(m.file)).collect();
    if failed {
        // What an error kept from being read is not unused.
        diagnostics.retain(|d| d.code != "L001");
    }
    let (graph, sources) = if failed || !runs {
        (None, sema.sources)
    } else {
        let (graph, sources) = sema.finish();
        diagnostics.extend(crate::lint::check(&graph, &sources));
        diagnostics.extend(crate::lint::bare_constants(&file, &sources));
        (Some(graph), sources)
    };
    diagnostics = crate::lint::allow(&file, &sources, diagnostics);
    let failed = diagnostics.iter().any(|d| d.level == Level::Error);
    let graph = graph.filter(|_| !failed);
    diagnostics.sort_by_key(|d| d.span().map(|s| (s.file, s.lo)));
    Compiled {
        sources,
        file,
        libraries,
        params,
        graph,
        diagnostics,
        facts,
        imports,
    }
}

/// A value given to an expression on the command line.
#[derive(Clone, Debug)]
pub struct Input {
    /// Its name.
    pub name: String,
    /// Axes, outermost first: `Some(n)` when every entry has length n, `None` when lengths differ.
    pub axes: Vec<(String, Option<usize>)>,
    /// What one element is.
    pub elem: Elem,
}

/// A compiled expression: its graph holds the inputs as values 0, 1, … in the order given.
pub struct Expression {
    /// Axes, values and expressions; no nodes.
    pub graph: Graph,
    /// The result.
    pub value: ExprRef,
    /// Every text that spans refer to.
    pub sources: Sources,
}

/// Compiles one pure expression over inputs.
///
/// `uses` are modules (`std.ppo`) or files, all of whose functions are in scope. A sequence operator
/// over an axis of uniform length makes that axis a response axis.
pub fn compile_expression(
    text: &str,
    uses: &[String],
    inputs: &[Input],
    load: &dyn Fn(&str) -> Option<String>,
) -> Result<Expression, (Sources, Vec<Diagnostic>)> {
    let mut ragged: Vec<String> = vec![];
    // Every round turns at least one more axis into a sequence.
    for _ in 0..=inputs.iter().map(|i| i.axes.len()).sum::<usize>() {
        let mut sema = Sema::new("expression", load);
        sema.bare = true;
        let value = expression(&mut sema, text, uses, inputs, &ragged);
        let more: Vec<String> = sema
            .sequences
            .iter()
            .map(|a| sema.graph.axis(*a).name.clone())
            .collect();
        if !more.is_empty() {
            ragged.extend(more);
            continue;
        }
        if sema.failed() {
            return Err((sema.sources, sema.diagnostics));
        }
        return match value {
            Some(value) => Ok(Expression {
                graph: sema.graph,
                value,
                sources: sema.sources,
            }),
            None => Err((sema.sources, sema.diagnostics)),
        };
    }
    Err((Sources::default(), vec![]))
}

fn expression(
    sema: &mut Sema,
    text: &str,
    uses: &[String],
    inputs: &[Input],
    ragged: &[String],
) -> Option<ExprRef> {
    let id = sema.sources.add(Source::new("expression", text));
    let (parsed, diagnostics) = crate::syntax::parse_expression(id, text);
    sema.diagnostics.extend(diagnostics);
    sema.adopt("expression", nothing(id));
    sema.add_prelude();
    let whole = Span::new(id, 0, text.len());
    for path in uses {
        sema.use_all(path, whole);
    }
    let mut env = Env::of(0);
    declare(sema, &mut env, inputs, ragged, whole)?;
    sema.expr(&parsed, &mut env)
}

/// Inputs become values, their axes become names.
fn declare(
    sema: &mut Sema,
    env: &mut Env,
    inputs: &[Input],
    ragged: &[String],
    whole: Span,
) -> Option<()> {
    for input in inputs {
        let name = ast::Name {
            text: input.name.clone(),
            span: whole,
        };
        let mut axes: Vec<AxisId> = vec![];
        for (at, (axis, length)) in input.axes.iter().enumerate() {
            let last = at + 1 == input.axes.len();
            let sequence = length.is_none() || ragged.contains(axis);
            let size = match length {
                Some(n) if !sequence => AxisSize::Fixed(*n),
                Some(n) => AxisSize::Ragged(*n),
                None => AxisSize::Ragged(usize::MAX >> 1),
            };
            if sequence && !last {
                return sema.fail(Diagnostic::bare(
                    "E036",
                    format!(
                        "`{axis}` of `{}` is a sequence, so it must be the innermost axis",
                        input.name
                    ),
                ));
            }
            axes.push(input_axis(
                sema,
                env,
                &input.name,
                axis,
                size,
                &axes,
                whole,
            )?);
        }
        if env.find(&name.text).is_some() {
            return sema.fail(Diagnostic::bare(
                "E011",
                format!("`{}` is given twice", input.name),
            ));
        }
        let ty = Type {
            elem: input.elem,
            axes,
        };
        let value = sema.value(&input.name, ty.clone(), whole);
        let x = sema.emit(Op::Value(value), vec![], ty, whole);
        env.push(&name, Val::Expr(x), Kind::Argument);
    }
    Some(())
}

/// The axis of that name, which all inputs share.
fn input_axis(
    sema: &mut Sema,
    env: &mut Env,
    input: &str,
    axis: &str,
    size: AxisSize,
    outer: &[AxisId],
    whole: Span,
) -> Option<AxisId> {
    let known = env.find(axis).map(|l| l.val.clone());
    let a = match known {
        None => {
            let parents = match size {
                AxisSize::Ragged(_) => outer.to_vec(),
                _ => vec![],
            };
            let a = sema.new_axis(axis, size, parents, whole);
            let name = ast::Name {
                text: axis.into(),
                span: whole,
            };
            env.push(&name, Val::Axis(a), Kind::Axis);
            return Some(a);
        }
        Some(Val::Axis(a)) => a,
        Some(_) => {
            return sema.fail(Diagnostic::bare(
                "E011",
                format!("`{axis}` is an input and an axis of `{input}`"),
            ));
        }
    };
    let have = sema.graph.axis(a).clone();
    if outer.contains(&a) {
        return sema.fail(Diagnostic::bare(
            "E011",
            format!("`{input}` has the axis `{axis}` twice"),
        ));
    }
    match (have.size, size) {
        (AxisSize::Fixed(m), AxisSize::Fixed(n)) if m != n => sema.fail(Diagnostic::bare(
            "E030",
            format!("`{axis}` has length {n} in `{input}` and length {m} in an input before it"),
        )),
        (AxisSize::Ragged(_), _) if have.parents != outer => sema.fail(Diagnostic::bare(
            "E030",
            format!(
                "`{axis}` is a sequence over `{}`, and `{input}` has it over `{}`",
                sema.show_axes(&have.parents),
                sema.show_axes(outer),
            ),
        )),
        (AxisSize::Ragged(m), AxisSize::Fixed(n) | AxisSize::Ragged(n)) => {
            // Lengths are held against each other where the values are.
            sema.graph.axes[a.0 as usize].size = AxisSize::Ragged(m.max(n));
            Some(a)
        }
        (AxisSize::Fixed(_), AxisSize::Ragged(_)) => {
            // The first input happened to be uniform.
            sema.sequences.insert(a);
            Some(a)
        }
        _ => Some(a),
    }
}

fn nothing(id: FileId) -> ast::File {
    ast::File {
        id,
        doc: String::new(),
        items: vec![],
        comments: vec![],
        exprs: 0,
    }
}

/// `grpo` of `algorithms/grpo.rlhf`.
fn stem(name: &str) -> &str {
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
    file.strip_suffix(".rlhf").unwrap_or(file)
}
