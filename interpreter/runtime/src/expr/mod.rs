//! Evaluates the graph's expressions over named axes, with libtorch recording gradients.
//!
//! Gradients flow from a root to every number in [`Env::values`] that requires them. An expression
//! used several times is computed once.

mod choose;
mod conversations;
mod demand;
mod elementwise;
mod finite;
mod guard;
mod reduce;
mod sequence;
mod strings;

use std::collections::HashMap;

use rlhf_lang::graph::{AxisId, ExprRef, Graph, Op, Reduce, StateId, TextOp, Unary, ValueId};
use tch::Tensor;

use crate::fault::{Fault, Result};
use crate::value::{Data, Shapes, Value, align, restrict};

pub use choose::responses;
pub use demand::{Demand, demand};
pub use finite::{NonFinite, first_non_finite, require_finite};
pub use strings::{last_number, parse_number};

/// What an expression is evaluated over.
#[derive(Clone, Debug, Default)]
pub struct Env {
    /// Lengths and offsets of the axes.
    pub shapes: Shapes,
    /// What the nodes before produced; numbers that require a gradient are leaves.
    pub values: HashMap<ValueId, Value>,
    /// What the iteration before handed on: one number or truth value a state.
    pub states: HashMap<StateId, Value>,
    /// The current iteration, from 1.
    pub iteration: f64,
    /// Iterations of the run.
    pub iterations: f64,
}

impl Env {
    /// The same over the `rows` of `axis`, in that order: a minibatch.
    pub fn restrict(&self, axis: AxisId, rows: &[usize]) -> Result<Env> {
        let (shapes, values) = restrict(&self.shapes, &self.values, axis, rows)?;
        Ok(Env {
            shapes,
            values,
            states: self.states.clone(),
            ..*self
        })
    }

    /// Fixes the rows of every part whose condition is known by now: of `rows … where …`, and of a `top`
    /// along the rows. From then on a minibatch takes those of its rows that are left, whatever the
    /// condition would say of the minibatch alone.
    pub fn settle(&mut self, graph: &Graph) -> Result<()> {
        for expr in &graph.exprs {
            let (part, of) = match expr.op {
                Op::Restrict(part) => (part, graph.axis(part).of.unwrap_or(part)),
                Op::Top { axis, into } => (into, axis),
                _ => continue,
            };
            let by = *expr.args.get(1).ok_or_else(|| missing_operand(1))?;
            let one_a_row = graph.expr(by).ty.axes == [of];
            if one_a_row && self.shapes.part(part).is_none() && self.knows(graph, by) {
                let by = eval(graph, by, self)?;
                let kept = match expr.op {
                    Op::Restrict(_) => choose::kept(graph, part, &by)?,
                    _ => choose::largest(graph, (of, part), &by, &self.shapes)?,
                };
                self.shapes.set_part(part, of, kept);
            }
        }
        Ok(())
    }

    fn knows(&self, graph: &Graph, root: ExprRef) -> bool {
        let mut open = vec![root];
        while let Some(e) = open.pop() {
            let expr = graph.expr(e);
            if let Op::Value(value) = expr.op
                && !self.values.contains_key(&value)
            {
                return false;
            }
            open.extend(&expr.args);
        }
        true
    }
}

/// The value of one expression, over the axes of its type.
pub fn eval(graph: &Graph, root: ExprRef, env: &Env) -> Result<Value> {
    let mut values = eval_all(graph, &[root], env)?;
    // One root in, one value out.
    Ok(values.remove(0))
}

/// The same, for a value that is kept: the axes that a selection makes are known to `env` afterwards.
pub fn eval_kept(graph: &Graph, root: ExprRef, env: &mut Env) -> Result<Value> {
    let (mut values, shapes) = evaluated(graph, &[root], env)?;
    env.shapes = shapes;
    // One root in, one value out.
    Ok(values.remove(0))
}

/// The values of several expressions; what they share is computed once.
pub fn eval_all(graph: &Graph, roots: &[ExprRef], env: &Env) -> Result<Vec<Value>> {
    Ok(evaluated(graph, roots, env)?.0)
}

fn evaluated(graph: &Graph, roots: &[ExprRef], env: &Env) -> Result<(Vec<Value>, Shapes)> {
    let mut evaluation = Evaluation::new(graph, env, roots);
    evaluation.run()?;
    let values = roots
        .iter()
        .map(|root| {
            let expr = graph.expr(*root);
            align(evaluation.value(*root), &expr.ty.axes, &evaluation.shapes)
                .map_err(|f| f.at(expr.span))
        })
        .collect::<Result<Vec<_>>>()?;
    Ok((values, evaluation.shapes))
}

struct Evaluation<'a> {
    graph: &'a Graph,
    env: &'a Env,
    /// The axes of `env` and those that selections make.
    shapes: Shapes,
    /// What the roots need.
    needed: Vec<bool>,
    /// A gradient can flow through the expression to a leaf.
    live: Vec<bool>,
    memo: Vec<Option<Value>>,
}

impl<'a> Evaluation<'a> {
    fn new(graph: &'a Graph, env: &'a Env, roots: &[ExprRef]) -> Self {
        let len = roots.iter().map(|r| r.0 as usize + 1).max().unwrap_or(0);
        let mut needed = vec![false; len];
        for root in roots {
            needed[root.0 as usize] = true;
        }
        for i in (0..len).rev().filter(|i| *i < graph.exprs.len()) {
            if needed[i] {
                for arg in &graph.exprs[i].args {
                    needed[arg.0 as usize] = true;
                }
            }
        }
        Evaluation {
            graph,
            env,
            shapes: env.shapes.clone(),
            needed,
            live: vec![false; len],
            memo: (0..len).map(|_| None).collect(),
        }
    }

    /// Operands precede their users, so one pass in order of index suffices.
    fn run(&mut self) -> Result<()> {
        for i in 0..self.memo.len() {
            if self.needed[i] {
                let e = ExprRef(i as u32);
                self.live[i] = self.is_live(e);
                let value = match self.graph.expr(e).op {
                    Op::Pick(_) | Op::Top { .. } | Op::Restrict(_) => self.chosen(e),
                    _ => self.one(e),
                };
                let value = value.map_err(|fault| fault.at(self.graph.expr(e).span))?;
                self.memo[i] = Some(value);
            }
        }
        Ok(())
    }

    /// Only for expressions that [`Evaluation::run`] has passed.
    fn value(&self, e: ExprRef) -> &Value {
        self.memo[e.0 as usize]
            .as_ref()
            .expect("operands precede their users")
    }

    fn is_live(&self, e: ExprRef) -> bool {
        let expr = self.graph.expr(e);
        match &expr.op {
            Op::Value(v) => match self.env.values.get(v).map(|v| &v.data) {
                Some(Data::Num(t)) => t.requires_grad(),
                _ => false,
            },
            Op::Stop | Op::Len(_) | Op::Index(_) | Op::OnText(_) => false,
            Op::Unary(Unary::Not) => false,
            Op::Binary(op) if elementwise::gives_bool(*op) => false,
            Op::Reduce {
                op: Reduce::Any | Reduce::All | Reduce::Count | Reduce::Argmax,
                ..
            } => false,
            _ => expr.args.iter().any(|a| self.live[a.0 as usize]),
        }
    }

    fn one(&self, e: ExprRef) -> Result<Value> {
        let expr = self.graph.expr(e);
        let shapes = &self.shapes;
        let axes = &expr.ty.axes;
        let arg = |i: usize| -> Result<&Value> {
            let e = expr.args.get(i).ok_or_else(|| missing_operand(i))?;
            Ok(self.value(*e))
        };
        match &expr.op {
            Op::Number(x) => Ok(Value::scalar(*x)),
            Op::Bool(b) => Ok(Value::bool(vec![], &Tensor::from(*b))),
            Op::Text(t) => Ok(Value::from_text(vec![], vec![Some(t.as_str().into())])),
            Op::Value(v) => self.env.values.get(v).cloned().ok_or_else(|| {
                let name = self.graph.values.get(v.0 as usize).map(|v| v.name.as_str());
                Fault::new(format!(
                    "`{}` has not been computed yet",
                    name.unwrap_or("a value")
                ))
            }),
            Op::Iteration => Ok(Value::scalar(self.env.iteration)),
            Op::Iterations => Ok(Value::scalar(self.env.iterations)),
            Op::Unary(_) | Op::Binary(_) | Op::Clamp => {
                let args = (0..expr.args.len()).map(arg).collect::<Result<Vec<_>>>()?;
                elementwise::apply(&expr.op, &args, axes, shapes)
            }
            Op::Select => self.select(e),
            Op::Stop => match arg(0)? {
                Value {
                    axes,
                    data: Data::Num(t),
                } => Ok(Value::num(axes.clone(), &t.f_detach()?)),
                other => Ok(other.clone()),
            },
            Op::Reduce {
                op,
                axes: removed,
                biased,
            } => reduce::reduce(arg(0)?, *op, removed, *biased, axes, shapes),
            Op::Shift { axis, by } => sequence::shift(arg(0)?, arg(1)?, *axis, *by, axes, shapes),
            Op::First(axis) => sequence::end(arg(0)?, *axis, sequence::End::First, axes, shapes),
            Op::Last(axis) => sequence::end(arg(0)?, *axis, sequence::End::Last, axes, shapes),
            Op::AtLast(axis) => sequence::at_last(arg(0)?, *axis, axes, shapes),
            Op::SuffixSum(axis) => {
                sequence::running_sum(arg(0)?, arg(1)?, *axis, sequence::End::Last, axes, shapes)
            }
            Op::PrefixSum(axis) => {
                sequence::running_sum(arg(0)?, arg(1)?, *axis, sequence::End::First, axes, shapes)
            }
            Op::Len(axis) => sequence::len(*axis, axes, shapes),
            Op::Index(axis) => sequence::index(*axis, axes, shapes),
            Op::State(state) => self.env.states.get(state).cloned().ok_or_else(|| {
                let name = self.graph.states.get(state.0 as usize);
                let name = name.map_or("a state", |s| s.name.as_str());
                Fault::new(format!("`{name}` has no value outside a run"))
            }),
            // They make axes: `Evaluation::run`.
            Op::Pick(_) | Op::Top { .. } | Op::Restrict(_) => {
                Err(Fault::new("a selection is evaluated by itself"))
            }
            Op::OnText(op) => {
                let args = (0..expr.args.len()).map(arg).collect::<Result<Vec<_>>>()?;
                let pattern = expr.args.get(1).map(|p| self.graph.expr(*p));
                match args.iter().any(|a| matches!(a.data, Data::Chat(_))) || *op == TextOp::System
                {
                    true => conversations::apply(*op, &args, axes, shapes),
                    false => strings::apply(*op, &args, pattern, axes, shapes),
                }
            }
        }
    }
}

pub(crate) fn missing_operand(i: usize) -> Fault {
    Fault::new(format!("an expression lacks its operand {i}"))
}
