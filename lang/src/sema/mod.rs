//! Tree to graph: names, params, axes, types, gradient scope and versions, in one walk.
//!
//! Functions are inlined with the axes of their arguments, so an expression has exactly one type and
//! nothing is ever inferred backwards. `None` from a method means that the cause is reported already:
//! one cause, one message. What needs the whole graph (linearity, provenance) is a rule in
//! [`crate::lint`].

mod args;
mod axes;
mod body;
mod builtin;
mod call;
mod case;
mod emit;
mod expr;
mod finish;
mod fold;
mod item;
mod model;
mod module;
mod names;
mod note;
mod operator;
mod optim;
mod param;
mod place;
mod reward;
mod rollout;
mod rows;
mod scope;
mod select;
mod source;
mod state;
mod text;
mod train;
mod tree;
mod verb;

use std::collections::{BTreeSet, HashMap};

use crate::diag::{Diagnostic, Level};
use crate::facts::Facts;
use crate::graph::{
    AxisId, Dag, DataId, Elem, ExprRef, Forward, Graph, ModelId, Node, RolloutId, RowOrder,
    Schedule, Scope, Type, ValueId,
};
use crate::source::{FileId, Sources, Span};

#[cfg(test)]
pub(crate) use builtin::NAMES as BUILTINS;
pub(crate) use module::{Def, Module};
pub(crate) use scope::{Env, Kind};

/// How many tree nodes one compilation may visit, inlined functions included. A program written by
/// hand stays thousands of times below; functions that call each other twice at every level do not.
const VISITS: usize = 200_000;

/// How deep expressions and function calls may nest.
const DEPTH: usize = 160;

/// What a name or an expression stands for.
#[derive(Clone, Debug)]
pub(crate) enum Val {
    /// A value of the graph.
    Expr(ExprRef),
    /// One axis.
    Axis(AxisId),
    /// `[B, G]`
    Axes(Vec<AxisId>),
    /// A model.
    Model(ModelId),
    /// What `generate` or `answer` made.
    Rollout(RolloutId),
    /// `chat(…)`: a prompt that goes through the template.
    Prompt(ExprRef),
    /// A binding whose value has an error.
    Poison,
}

/// The step or evaluation that is being read.
pub(crate) struct Body {
    /// Step or which evaluation.
    pub scope: Scope,
    /// Its data set.
    pub data: DataId,
    /// Its row axis.
    pub rows: AxisId,
    /// The index of its `Load` node.
    pub load: usize,
}

/// The `train` block that is being read.
pub(crate) struct Live {
    /// The trained model.
    pub model: ModelId,
    /// The whole statement.
    pub block: Span,
    /// Live passes so far.
    pub forwards: Vec<Forward>,
}

/// A call whose function's body is being read.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// The call.
    pub span: Span,
    /// The function's arguments by name, and what was given for them.
    pub args: Vec<(String, Span)>,
}

/// How a rollout came to be.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    /// Index of the node that makes it.
    pub node: usize,
    /// Its sampling temperature; `None` for text of the data.
    pub temperature: Option<f64>,
}

/// The walk's state.
pub(crate) struct Sema<'a> {
    /// All texts.
    pub sources: Sources,
    /// Messages so far.
    pub diagnostics: Vec<Diagnostic>,
    /// Gives the text of an imported file.
    pub load: &'a dyn Fn(&str) -> Option<String>,
    /// The program, the prelude, then imports.
    pub modules: Vec<Module>,
    /// The graph so far; its dag is filled at the end.
    pub graph: Graph,
    /// Nodes so far, every one after those it reads.
    pub nodes: Vec<Node>,
    /// Expressions by structure, so that equal ones are one.
    pub known: HashMap<u64, Vec<ExprRef>>,
    /// The step or evaluation being read.
    pub body: Option<Body>,
    /// The `train` block being read.
    pub live: Option<Live>,
    /// Names logged so far, by evaluations or else by the step, and where.
    pub logged: Vec<(bool, String, Span)>,
    /// Models trained so far in the step, and where.
    pub trained: Vec<(ModelId, Span)>,
    /// States and models that have their next value so far, and where.
    pub nexts: Vec<(String, Span)>,
    /// Which rows each part keeps.
    pub conditions: HashMap<AxisId, ExprRef>,
    /// Axes of selections, by the axis selected from and the selection.
    pub derived: HashMap<(AxisId, String), AxisId>,
    /// How each rollout came to be.
    pub origins: Vec<Origin>,
    /// Values of columns by node and column.
    pub columns: HashMap<(usize, usize), ExprRef>,
    /// Functions being inlined.
    pub stack: Vec<(usize, usize)>,
    /// The calls of functions whose bodies are being read, outermost first.
    pub sites: Vec<Site>,
    /// Models that a verb was told not to fit.
    pub unfit: BTreeSet<ModelId>,
    /// Functions that were put in somewhere.
    pub inlined: BTreeSet<(usize, usize)>,
    /// Tree nodes visited.
    pub visits: usize,
    /// Current nesting.
    pub depth: usize,
    /// Params, models and rewards in use: for the warnings about the others.
    pub used: BTreeSet<(char, usize)>,
    /// Params without a usable value.
    pub unset: BTreeSet<usize>,
    /// Fixed axes that a sequence operator met, in an expression given on the command line.
    pub sequences: BTreeSet<AxisId>,
    /// An expression of the command line rather than a program.
    pub bare: bool,
    /// What names stand for.
    pub facts: Facts,
    /// Names that were not found, by module: one missing name is one message.
    pub missing: BTreeSet<(usize, String)>,
    /// Paths of imported files, in the order met.
    pub imported: Vec<String>,
}

impl<'a> Sema<'a> {
    pub(crate) fn new(name: &str, load: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Sema {
            sources: Sources::default(),
            diagnostics: vec![],
            load,
            modules: vec![],
            graph: empty(name),
            nodes: vec![],
            known: HashMap::new(),
            body: None,
            live: None,
            logged: vec![],
            trained: vec![],
            nexts: vec![],
            conditions: HashMap::new(),
            derived: HashMap::new(),
            origins: vec![],
            columns: HashMap::new(),
            stack: vec![],
            sites: vec![],
            unfit: BTreeSet::new(),
            inlined: BTreeSet::new(),
            visits: 0,
            depth: 0,
            used: BTreeSet::new(),
            unset: BTreeSet::new(),
            sequences: BTreeSet::new(),
            bare: false,
            facts: Facts::default(),
            missing: BTreeSet::new(),
            imported: vec![],
        }
    }

    /// Reports and gives `None`, so that `return self.fail(…)` reads as one step.
    pub(crate) fn fail<T>(&mut self, diagnostic: Diagnostic) -> Option<T> {
        self.report(diagnostic);
        None
    }

    /// Keeps a message, unless the very same one is there: a function inlined twice repeats itself.
    pub(crate) fn report(&mut self, diagnostic: Diagnostic) {
        let diagnostic = self.seen_from_the_program(diagnostic);
        let Some(diagnostic) = diagnostic else {
            return;
        };
        if !self.diagnostics.contains(&diagnostic) {
            self.diagnostics.push(diagnostic);
        }
    }

    /// What is wrong inside an imported function is wrong with what was given to it: the message points
    /// at the argument, or at the call. A call has one such message.
    fn seen_from_the_program(&mut self, mut d: Diagnostic) -> Option<Diagnostic> {
        let own = FileId(0);
        // A library's own mistakes are its own.
        let of_text = ["E001", "E010", "E011", "E014", "E015", "E040", "E041"];
        let foreign = d.span().filter(|s| s.file != own);
        let Some(at) = foreign.filter(|_| !of_text.contains(&d.code.as_str())) else {
            return Some(d);
        };
        let Some(call) = self
            .sites
            .iter()
            .find(|s| s.span.file == own)
            .map(|s| s.span)
        else {
            return Some(d);
        };
        let mut target = at;
        for site in self.sites.iter().rev() {
            let word = self.sources.get(target.file).slice(target).to_string();
            match site.args.iter().find(|(name, _)| *name == word) {
                Some((_, given)) => target = *given,
                None => break,
            }
            if target.file == own {
                break;
            }
        }
        if target.file != own {
            target = call;
        }
        let within = |d: &Diagnostic| {
            let first = d.span();
            first.is_some_and(|s| s.file == own && call.lo <= s.lo && s.hi <= call.hi)
        };
        if self
            .diagnostics
            .iter()
            .any(|known| known.level == d.level && within(known))
        {
            return None;
        }
        let library = self.sources.get(at.file).name.clone();
        d.labels[0].span = target;
        d.labels.retain(|l| l.span.file == own);
        d.labels.push(crate::diag::Label {
            span: at,
            text: format!("used here in {library}"),
        });
        Some(d)
    }

    pub(crate) fn failed(&self) -> bool {
        self.diagnostics.iter().any(|d| d.level == Level::Error)
    }

    pub(crate) fn ty(&self, e: ExprRef) -> &Type {
        &self.graph.expr(e).ty
    }

    pub(crate) fn elem(&self, e: ExprRef) -> Elem {
        self.ty(e).elem
    }

    /// The text of a span when it is short enough to quote, in backticks; `this` otherwise.
    pub(crate) fn quote(&self, span: Span) -> String {
        let text = self.sources.get(span.file).slice(span);
        if text.is_empty() || text.len() > 48 || text.contains('\n') {
            return "this".into();
        }
        format!("`{text}`")
    }

    pub(crate) fn line(&self, span: Span) -> usize {
        self.sources.get(span.file).line_column(span.lo).0
    }

    /// `[B, G]`
    pub(crate) fn show_axes(&self, axes: &[AxisId]) -> String {
        let names: Vec<&str> = axes.iter().map(|a| self.axis_name(*a)).collect();
        format!("[{}]", names.join(", "))
    }

    pub(crate) fn axis_name(&self, a: AxisId) -> &str {
        match self.graph.axis(a).name.as_str() {
            "" => "rows",
            name => name,
        }
    }

    pub(crate) fn value(&mut self, name: &str, ty: Type, span: Span) -> ValueId {
        self.graph.values.push(crate::graph::Value {
            name: name.into(),
            ty,
            span,
        });
        ValueId(self.graph.values.len() as u32 - 1)
    }
}

fn empty(name: &str) -> Graph {
    Graph {
        name: name.into(),
        doc: String::new(),
        params: vec![],
        axes: vec![],
        data: vec![],
        models: vec![],
        rewards: vec![],
        states: vec![],
        place: None,
        rollouts: vec![],
        values: vec![],
        exprs: vec![],
        schedule: Schedule::Iterations(0),
        order: RowOrder::Shuffled,
        dag: Dag::default(),
        metrics: vec![],
        evals: vec![],
        imports: vec![],
    }
}

/// The nearest of `names` to `name`, when one is near enough to be a slip of the finger.
pub(crate) fn nearest<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    // Two letters are as near to any other two.
    let limit = match name.chars().count() {
        0..=2 => 0,
        n => (n / 3).max(1),
    };
    let alike = |n: &&str| n.eq_ignore_ascii_case(name);
    let names: Vec<&str> = names.filter(|n| *n != name).collect();
    if let Some(same) = names.iter().copied().find(alike) {
        return Some(same);
    }
    names
        .into_iter()
        .map(|n| (strsim::osa_distance(name, n), n))
        .filter(|(d, n)| *d <= limit && *d < n.chars().count())
        .min()
        .map(|(_, n)| n)
}

/// How the language names an element type, with an article.
pub(crate) fn describe(elem: Elem) -> &'static str {
    match elem {
        Elem::Float | Elem::Int => "a number",
        Elem::Bool => "a truth value",
        Elem::Text => "text",
        Elem::Chat => "a chat",
        Elem::TextList => "a list of texts",
    }
}
