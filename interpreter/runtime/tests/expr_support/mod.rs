//! Graphs by hand for the tests of expressions.
#![allow(dead_code)] // each test file uses its part

use std::collections::HashMap;

use rlhf_lang::graph::{
    Axis, AxisId, AxisSize, Binary, Dag, Elem, Expr, ExprRef, Graph, Op, Reduce, RowOrder,
    Schedule, TextOp, Type, Unary, Value, ValueId,
};
use rlhf_lang::source::Span;

/// Rows, responses to one row, tokens of one response.
pub const B: AxisId = AxisId(0);
pub const G: AxisId = AxisId(1);
pub const T: AxisId = AxisId(2);
/// Another ragged axis, over rows only.
pub const W: AxisId = AxisId(3);

/// A graph under construction.
pub struct Build {
    pub graph: Graph,
    names: HashMap<String, ValueId>,
}

impl Build {
    pub fn new() -> Build {
        let axis = |name: &str, size, parents| Axis {
            name: name.into(),
            size,
            parents,
            of: None,
            span: Span::default(),
        };
        let axes = vec![
            axis("B", AxisSize::Fixed(0), vec![]),
            axis("G", AxisSize::Fixed(0), vec![]),
            axis("T", AxisSize::Ragged(64), vec![B, G]),
            axis("W", AxisSize::Ragged(64), vec![B]),
        ];
        Build {
            graph: Graph {
                name: "test".into(),
                doc: String::new(),
                params: vec![],
                axes,
                data: vec![],
                models: vec![],
                rewards: vec![],
                states: vec![],
                place: None,
                rollouts: vec![],
                values: vec![],
                exprs: vec![],
                schedule: Schedule::Iterations(1),
                order: RowOrder::Shuffled,
                dag: Dag::default(),
                metrics: vec![],
                evals: vec![],
                imports: vec![],
            },
            names: HashMap::new(),
        }
    }

    /// An input; the same name gives the same value.
    pub fn input(&mut self, name: &str, elem: Elem, axes: &[AxisId]) -> ExprRef {
        let ty = Type {
            elem,
            axes: axes.to_vec(),
        };
        let id = match self.names.get(name) {
            Some(id) => *id,
            None => {
                let id = ValueId(self.graph.values.len() as u32);
                self.graph.values.push(Value {
                    name: name.into(),
                    ty: ty.clone(),
                    span: Span::default(),
                });
                self.names.insert(name.into(), id);
                id
            }
        };
        self.push(Op::Value(id), &[], elem, axes)
    }

    pub fn id(&self, name: &str) -> ValueId {
        self.names[name]
    }

    pub fn push(&mut self, op: Op, args: &[ExprRef], elem: Elem, axes: &[AxisId]) -> ExprRef {
        self.graph.exprs.push(Expr {
            op,
            args: args.to_vec(),
            ty: Type {
                elem,
                axes: axes.to_vec(),
            },
            span: Span::default(),
        });
        ExprRef(self.graph.exprs.len() as u32 - 1)
    }

    pub fn axes(&self, e: ExprRef) -> Vec<AxisId> {
        self.graph.expr(e).ty.axes.clone()
    }

    fn union(&self, args: &[ExprRef]) -> Vec<AxisId> {
        let mut all: Vec<AxisId> = vec![];
        for e in args {
            for axis in self.axes(*e) {
                if !all.contains(&axis) {
                    all.push(axis);
                }
            }
        }
        // The axes of these tests are numbered from the outermost in.
        all.sort();
        all
    }

    pub fn num(&mut self, x: f64) -> ExprRef {
        self.push(Op::Number(x), &[], Elem::Float, &[])
    }

    pub fn text(&mut self, t: &str) -> ExprRef {
        self.push(Op::Text(t.into()), &[], Elem::Text, &[])
    }

    pub fn un(&mut self, op: Unary, x: ExprRef) -> ExprRef {
        let axes = self.axes(x);
        self.push(Op::Unary(op), &[x], Elem::Float, &axes)
    }

    pub fn bin(&mut self, op: Binary, a: ExprRef, b: ExprRef) -> ExprRef {
        use Binary::*;
        let elem = match op {
            Eq | Ne | Lt | Le | Gt | Ge | And | Or => Elem::Bool,
            _ => Elem::Float,
        };
        let axes = self.union(&[a, b]);
        self.push(Op::Binary(op), &[a, b], elem, &axes)
    }

    pub fn select(&mut self, c: ExprRef, a: ExprRef, b: ExprRef) -> ExprRef {
        let axes = self.union(&[c, a, b]);
        let elem = self.graph.expr(a).ty.elem;
        self.push(Op::Select, &[c, a, b], elem, &axes)
    }

    pub fn clamp(&mut self, x: ExprRef, lo: ExprRef, hi: ExprRef) -> ExprRef {
        let axes = self.union(&[x, lo, hi]);
        self.push(Op::Clamp, &[x, lo, hi], Elem::Float, &axes)
    }

    pub fn reduce(&mut self, op: Reduce, x: ExprRef, removed: &[AxisId]) -> ExprRef {
        self.reduce_as(op, x, removed, false)
    }

    pub fn reduce_as(
        &mut self,
        op: Reduce,
        x: ExprRef,
        removed: &[AxisId],
        biased: bool,
    ) -> ExprRef {
        let mut axes = self.axes(x);
        axes.retain(|a| !removed.contains(a));
        let elem = match op {
            Reduce::Any | Reduce::All => Elem::Bool,
            _ => Elem::Float,
        };
        let op = Op::Reduce {
            op,
            axes: removed.to_vec(),
            biased,
        };
        self.push(op, &[x], elem, &axes)
    }

    /// An operation along a sequence that keeps the axes of its operands together.
    pub fn along(&mut self, op: Op, args: &[ExprRef]) -> ExprRef {
        let axes = self.union(args);
        self.push(op, args, Elem::Float, &axes)
    }

    pub fn without(&mut self, op: Op, x: ExprRef, axis: AxisId) -> ExprRef {
        let mut axes = self.axes(x);
        axes.retain(|a| *a != axis);
        self.push(op, &[x], Elem::Float, &axes)
    }

    pub fn on_text(&mut self, op: TextOp, args: &[ExprRef], elem: Elem) -> ExprRef {
        let axes = self.union(args);
        self.push(Op::OnText(op), args, elem, &axes)
    }
}
