//! The walk that finds definitions and mentions.

use std::collections::HashMap;

use crate::reference::{self, Chapter};
use crate::source::Span;
use crate::syntax::ast::{
    Arg, AxisBinder, AxisPattern, AxisSize, Expr, ExprKind, File, Fn, FnParam, Item, ItemKind,
    Name, PlaceCall, Stmt, StmtKind, Type, TypeKind,
};

use super::names::{Block, Def, DefId, DefKind, Mention, Names, Place, Target, item_name};

/// The walk's state.
pub(super) struct Walk<'f> {
    file: &'f File,
    text: &'f str,
    pub(super) names: Names,
    items: HashMap<String, DefId>,
    /// Locals that can be read, innermost last.
    scope: Vec<DefId>,
    /// The data set of the body being read.
    data: Option<DefId>,
    /// What the step binds, for the plan.
    step: Vec<DefId>,
    place: Place,
    index: usize,
    /// The end of the block being read.
    end: u32,
}

impl<'f> Walk<'f> {
    pub fn new(file: &'f File, text: &'f str) -> Self {
        Walk {
            file,
            text,
            names: Names::default(),
            items: HashMap::new(),
            scope: vec![],
            data: None,
            step: vec![],
            place: Place::Items,
            index: 0,
            end: 0,
        }
    }

    /// Gives items, columns and arguments their names: they are read before and after.
    pub fn declare(&mut self) {
        for (index, item) in self.file.items.iter().enumerate() {
            self.index = index;
            if let Some((name, kind)) = item_name(&item.kind) {
                self.define_item(name, kind);
            }
            match &item.kind {
                ItemKind::Use(u) => {
                    for name in &u.names {
                        self.define_item(name, DefKind::Import);
                    }
                }
                ItemKind::Data(d) => {
                    for c in &d.columns {
                        let ty = Some(c.ty.span);
                        self.define(&c.name, DefKind::Column, None, ty);
                    }
                }
                ItemKind::Fn(f) => self.arguments(&f.params, item.span),
                ItemKind::Reward(r) => self.arguments(&r.params, item.span),
                _ => {}
            }
        }
    }

    fn define_item(&mut self, name: &Name, kind: DefKind) {
        let id = self.define(name, kind, None, None);
        self.items.entry(name.text.clone()).or_insert(id);
    }

    fn arguments(&mut self, params: &[FnParam], item: Span) {
        for p in params {
            let ty = Some(p.ty.span);
            self.define(&p.name, DefKind::Argument, Some(item), ty);
        }
    }

    fn define(
        &mut self,
        name: &Name,
        kind: DefKind,
        visible: Option<Span>,
        ty: Option<Span>,
    ) -> DefId {
        let id = DefId(self.names.defs.len());
        self.names.defs.push(Def {
            name: name.text.clone(),
            span: name.span,
            kind,
            item: self.index,
            visible,
            ty,
        });
        self.mention(name.span, Target::Def(id));
        id
    }

    /// A local name, readable from `from` to the end of the block.
    fn local(&mut self, name: &Name, kind: DefKind, from: u32) {
        let visible = Span {
            lo: from,
            hi: self.end,
            ..name.span
        };
        let id = self.define(name, kind, Some(visible), None);
        self.scope.push(id);
    }

    fn mention(&mut self, span: Span, target: Target) {
        self.names.mentions.push(Mention {
            span,
            target,
            place: self.place,
        });
    }

    /// The word that `span` begins with.
    fn word(&mut self, span: Span, chapter: Chapter) {
        let text = self.text.get(span.range()).unwrap_or_default();
        let end = text
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(text.len());
        if reference::within(&text[..end], chapter).is_some() {
            let hi = span.lo + end as u32;
            self.mention(Span { hi, ..span }, Target::Word(chapter));
        }
    }

    pub fn item(&mut self, index: usize, item: &Item) {
        self.index = index;
        self.end = item.span.hi;
        self.scope.clear();
        self.data = None;
        self.place = Place::Items;
        if !matches!(item.kind, ItemKind::Bad) {
            self.word(item.span, Chapter::Item);
        }
        match &item.kind {
            ItemKind::Use(_) => {}
            ItemKind::Bad => self.names.bad.push(item.span),
            ItemKind::Param(p) => {
                self.ty(&p.ty);
                for e in p.range.iter().chain(&p.default) {
                    self.expr(e);
                }
            }
            ItemKind::Data(d) => {
                self.source(&d.source, Chapter::Source);
                for c in &d.columns {
                    self.ty(&c.ty);
                }
            }
            ItemKind::Model(m) => self.source(&m.value, Chapter::Model),
            ItemKind::Reward(r) => {
                for p in &r.params {
                    self.ty(&p.ty);
                }
                self.ty(&r.result);
                self.source(&r.source, Chapter::Source);
            }
            ItemKind::State(s) => {
                self.ty(&s.ty);
                self.expr(&s.init);
            }
            ItemKind::Fn(f) => self.function(f, item.span),
            ItemKind::Step(s) => {
                self.open(item.span, Place::Step, &s.over);
                self.binders(&s.axes, item.span.lo);
                self.options(item.span, &s.options);
                self.statements(&s.body);
                self.step = self.scope.clone();
            }
            ItemKind::Eval(e) => {
                self.expr(&e.every);
                self.open(item.span, Place::Eval, &e.over);
                self.binders(&e.axes, item.span.lo);
                self.statements(&e.body);
            }
            ItemKind::Place(p) => {
                self.mention(p.program.span, Target::Open);
                self.expr(&p.cluster);
                for call in &p.calls {
                    self.place_call(call);
                }
            }
        }
    }

    fn open(&mut self, span: Span, place: Place, over: &Name) {
        let data = self.items.get(&over.text).copied();
        let data = data.filter(|d| self.names.def(*d).kind == DefKind::Data);
        self.reference(&over.text, over.span);
        self.place = place;
        self.data = data;
        self.block(span);
    }

    fn block(&mut self, span: Span) {
        self.names.blocks.push(Block {
            span,
            place: self.place,
            data: self.data,
        });
    }

    fn function(&mut self, f: &Fn, span: Span) {
        self.place = Place::Function;
        self.block(span);
        let own = |d: &Def| d.kind == DefKind::Argument;
        for p in &f.params {
            // Declared already; a function has few arguments.
            let at = self
                .names
                .defs
                .iter()
                .position(|d| own(d) && d.span == p.name.span);
            self.scope.extend(at.map(DefId));
        }
        for p in &f.params {
            self.ty(&p.ty);
            if let Some(d) = &p.default {
                self.expr(d);
            }
        }
        if let Some(result) = &f.result {
            self.ty(result);
        }
        self.statements(&f.bindings);
        self.expr(&f.value);
    }

    fn place_call(&mut self, call: &PlaceCall) {
        let of_step = self.step.iter().rev().copied();
        let mut of_step = of_step.filter(|d| self.names.def(*d).name == call.name.text);
        let target = match call.train {
            true => self.items.get(&call.name.text).copied(),
            false => of_step.next(),
        };
        self.mention(call.name.span, target.map_or(Target::Open, Target::Def));
        self.expr(&call.devices);
        for o in &call.options {
            self.expr(&o.value);
        }
    }

    /// A type's word and the axes it names; in a signature a new name is a new axis.
    fn ty(&mut self, ty: &Type) {
        if let TypeKind::Name(_) | TypeKind::List(_) = ty.kind {
            self.word(ty.span, Chapter::Type);
        }
        for pattern in ty.axes.iter().flatten() {
            let AxisPattern::Name(name) = pattern else {
                continue;
            };
            let known = self.scope.iter().rev();
            let known = known
                .copied()
                .find(|d| self.names.def(*d).name == name.text);
            match known {
                Some(d) => self.mention(name.span, Target::Def(d)),
                None => {
                    let from = self.file.items.get(self.index).map_or(0, |i| i.span.lo);
                    self.local(name, DefKind::Axis, from);
                }
            }
        }
    }

    fn binders(&mut self, binders: &[AxisBinder], from: u32) {
        for b in binders {
            match &b.size {
                Some(AxisSize::Fixed(e) | AxisSize::Ragged(e)) => self.expr(e),
                None => {}
            }
            let known = self.find(&b.name.text);
            match (&b.size, known) {
                (None, Some(d)) => self.mention(b.name.span, Target::Def(d)),
                _ => self.local(&b.name, DefKind::Axis, from),
            }
        }
    }

    fn statements(&mut self, body: &[Stmt]) {
        for s in body {
            match &s.kind {
                StmtKind::Bind { name, value } => {
                    self.expr(value);
                    self.local(name, DefKind::Binding, s.span.hi);
                }
                StmtKind::Rows {
                    name,
                    of,
                    cond,
                    options,
                } => {
                    self.word(s.span, Chapter::Statement);
                    self.reference(&of.text, of.span);
                    self.expr(cond);
                    self.options(s.span, options);
                    self.local(name, DefKind::Axis, s.span.hi);
                }
                StmtKind::Train {
                    model,
                    options,
                    body,
                } => self.train(s.span, model, options, body),
                StmtKind::Minimize(e) => {
                    self.word(s.span, Chapter::Statement);
                    self.expr(e);
                }
                StmtKind::Log(entries) => {
                    self.word(s.span, Chapter::Statement);
                    for (_, e) in entries {
                        self.expr(e);
                    }
                }
                StmtKind::Next { name, value } => {
                    self.word(s.span, Chapter::Statement);
                    self.reference(&name.text, name.span);
                    self.expr(value);
                }
                StmtKind::Bad => self.names.bad.push(s.span),
            }
        }
    }

    fn train(&mut self, span: Span, model: &Name, options: &[Arg], body: &[Stmt]) {
        self.word(span, Chapter::Statement);
        let (outer, end, depth) = (self.place, self.end, self.scope.len());
        let trained = self.items.get(&model.text).copied();
        self.place = Place::Train(trained);
        self.reference(&model.text, model.span);
        self.options(span, options);
        self.block(span);
        self.end = span.hi;
        self.statements(body);
        self.scope.truncate(depth);
        (self.place, self.end) = (outer, end);
    }

    /// Options behind a keyword, which `span` begins with.
    fn options(&mut self, span: Span, options: &[Arg]) {
        for o in options {
            if let Some(l) = &o.label {
                self.mention(l.span, Target::Label(span));
            }
            self.expr(&o.value);
        }
    }

    /// A call of a kind of model or of a source; its arguments may hold more of them.
    fn source(&mut self, e: &Expr, chapter: Chapter) {
        let ExprKind::Call { callee, args, .. } = &e.kind else {
            return self.expr(e);
        };
        match reference::within(&callee.text, chapter) {
            Some(_) => self.mention(callee.span, Target::Word(chapter)),
            None => self.callee(callee),
        }
        for a in args {
            self.label(a, callee);
            self.source(&a.value, chapter);
        }
    }

    /// An expression. Not recursive: a chain of a thousand operators is as deep as it is long.
    fn expr(&mut self, e: &Expr) {
        let mut open = vec![e];
        while let Some(e) = open.pop() {
            match &e.kind {
                ExprKind::Name(name) => self.reference(name, e.span),
                ExprKind::Call { callee, args, axes } => {
                    self.callee(callee);
                    for a in args {
                        self.label(a, callee);
                        open.push(&a.value);
                    }
                    self.binders(axes, e.span.hi);
                }
                ExprKind::Member { base, member } => {
                    self.mention(member.span, Target::Word(Chapter::Verb));
                    open.push(base);
                }
                ExprKind::Unary { operand: x, .. } | ExprKind::Paren(x) => open.push(x),
                ExprKind::Binary { left, right, .. } => open.extend([&**left, &**right]),
                ExprKind::If {
                    cond,
                    then,
                    otherwise,
                } => {
                    self.word(e.span, Chapter::Statement);
                    open.extend([&**cond, &**then, &**otherwise]);
                }
                ExprKind::List(entries) => open.extend(entries),
                ExprKind::Record(args) => open.extend(args.iter().map(|a| &a.value)),
                ExprKind::Range { lo, hi } => {
                    open.extend(lo.iter().chain(hi).map(|e| &**e));
                }
                ExprKind::Bad => self.names.bad.push(e.span),
                ExprKind::Number { .. } | ExprKind::Text(_) | ExprKind::Bool(_) => {}
            }
        }
    }

    /// What is called: a function of the file or an import, else what is built in.
    fn callee(&mut self, callee: &Name) {
        let target = match self.items.get(&callee.text) {
            Some(d) => Target::Def(*d),
            None => match reference::builtin(&callee.text).map(|e| e.chapter) {
                Some(c @ (Chapter::Operator | Chapter::Verb)) => Target::Word(c),
                _ => Target::Open,
            },
        };
        self.mention(callee.span, target);
    }

    /// The label of an argument is the argument's name where the function is in this file.
    fn label(&mut self, a: &Arg, callee: &Name) {
        let Some(label) = &a.label else {
            return;
        };
        let function = self.items.get(&callee.text).copied();
        let item = function.map(|f| self.names.def(f).item);
        let own =
            |d: &Def| d.kind == DefKind::Argument && Some(d.item) == item && d.name == label.text;
        let target = match self.names.defs.iter().position(own) {
            Some(d) => Target::Def(DefId(d)),
            None => Target::Label(callee.span),
        };
        self.mention(label.span, target);
    }

    fn find(&self, name: &str) -> Option<DefId> {
        let named = |d: &&DefId| self.names.def(**d).name == name;
        if let Some(local) = self.scope.iter().rev().find(named) {
            return Some(*local);
        }
        if let Some(data) = self.data {
            let item = self.names.def(data).item;
            let column = |d: &Def| d.kind == DefKind::Column && d.item == item && d.name == name;
            if let Some(at) = self.names.defs.iter().position(column) {
                return Some(DefId(at));
            }
        }
        self.items.get(name).copied()
    }

    fn reference(&mut self, name: &str, span: Span) {
        let target = match self.find(name) {
            Some(d) => Target::Def(d),
            None if matches!(name, "iteration" | "iterations") => Target::Word(Chapter::Statement),
            None => Target::Open,
        };
        self.mention(span, target);
    }
}
