//! Which rows of the step an expression reads each value at.
//!
//! A loss over `rows D = B where …` reads what is over `B` at the rows of `D` alone, however late in the
//! loss the restriction stands. What is never read needs no pass through a model.

use std::collections::HashMap;

use rlhf_lang::graph::{AxisId, ExprRef, Graph, Op, Type, ValueId};

use crate::fault::Result;
use crate::value::Shapes;

/// For each value that has the rows' axis or a part of it: whether each row is read.
pub type Demand = HashMap<ValueId, Vec<bool>>;

/// What `roots` read, by rows of `rows`. The parts of the rows are known.
pub fn demand(graph: &Graph, roots: &[ExprRef], rows: AxisId, shapes: &Shapes) -> Result<Demand> {
    let reader = Reader {
        graph,
        rows,
        shapes,
        all: vec![true; shapes.length(rows)?],
    };
    let len = roots.iter().map(|r| r.0 as usize + 1).max().unwrap_or(0);
    let mut needed: Vec<Option<Vec<bool>>> = vec![None; len];
    for root in roots {
        needed[root.0 as usize] = Some(reader.members(&graph.expr(*root).ty));
    }
    let mut found = Demand::new();
    // Operands precede their users.
    for i in (0..len).rev() {
        let Some(own) = needed[i].take() else {
            continue;
        };
        let e = ExprRef(i as u32);
        if let Op::Value(value) = graph.expr(e).op
            && reader.row_axis(&graph.expr(e).ty).is_some()
        {
            add(found.entry(value).or_default(), &own);
        }
        for (arg, rows) in reader.operands(e, &own) {
            add(needed[arg.0 as usize].get_or_insert_default(), &rows);
        }
    }
    Ok(found)
}

fn add(all: &mut Vec<bool>, more: &[bool]) {
    all.resize(more.len(), false);
    all.iter_mut().zip(more).for_each(|(a, b)| *a |= *b);
}

struct Reader<'a> {
    graph: &'a Graph,
    rows: AxisId,
    shapes: &'a Shapes,
    all: Vec<bool>,
}

impl Reader<'_> {
    /// The operands of an expression and the rows each is read at, where `own` of its rows are read.
    fn operands(&self, e: ExprRef, own: &[bool]) -> Vec<(ExprRef, Vec<bool>)> {
        let expr = self.graph.expr(e);
        let apart = match expr.op {
            Op::Top { into, .. } if self.shapes.part(into).is_some() => true,
            Op::Pick(axis) | Op::Top { axis, .. } => self.graph.origin(axis) != self.rows,
            _ => true,
        };
        let count = match expr.op {
            // The condition has been read already.
            Op::Restrict(_) => 1,
            _ => expr.args.len(),
        };
        let row_by_row = apart && self.row_axis(&expr.ty).is_some();
        let rows_of = |arg: &ExprRef| {
            let mut rows = self.members(&self.graph.expr(*arg).ty);
            if row_by_row && self.row_axis(&self.graph.expr(*arg).ty).is_some() {
                rows.iter_mut().zip(own).for_each(|(r, own)| *r &= *own);
            }
            (*arg, rows)
        };
        expr.args.iter().take(count).map(rows_of).collect()
    }

    fn row_axis(&self, ty: &Type) -> Option<AxisId> {
        let of_rows = |a: &AxisId| self.graph.origin(*a) == self.rows;
        ty.axes.iter().copied().find(of_rows)
    }

    /// The rows that a value of this type has: all of them, or those of a part.
    fn members(&self, ty: &Type) -> Vec<bool> {
        let positions = self
            .row_axis(ty)
            .filter(|axis| *axis != self.rows)
            .and_then(|axis| self.shapes.positions(axis, self.rows).ok());
        let Some(positions) = positions else {
            return self.all.clone();
        };
        let mut rows = vec![false; self.all.len()];
        for position in positions {
            rows[position] = true;
        }
        rows
    }
}
