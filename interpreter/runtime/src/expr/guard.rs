//! `if` whose untaken branch cannot spoil a gradient.
//!
//! `where(c, a, b)` gives the untaken branch a gradient of 0, and 0 times the infinite derivative of
//! an overflow is NaN. So the element-wise operations of a branch are computed again on operands whose
//! gradient is cut at the elements the branch is not taken for: their values are the same, and what
//! comes back there is dropped before it reaches a leaf.

use std::collections::{BTreeSet, HashMap};

use rlhf_lang::graph::{AxisId, ExprRef, Op};
use tch::Tensor;

use super::{Evaluation, elementwise};
use crate::fault::{Fault, Result};
use crate::value::{Data, Value, align};

/// How deep selections may lie in each other's branches and still be guarded one by one; below, the
/// inner selection is an operand like any other. It bounds the work on shared branches.
const MAX_DEPTH: usize = 4;

/// The elements a branch is taken for.
struct Mask<'a> {
    taken: &'a Tensor,
    axes: &'a [AxisId],
    depth: usize,
}

impl Evaluation<'_> {
    pub(super) fn select(&self, e: ExprRef) -> Result<Value> {
        let expr = self.graph.expr(e);
        let shapes = &self.shapes;
        let [condition, yes, no] = expr.args.as_slice() else {
            return Err(Fault::new("`if` takes three operands"));
        };
        let axes = &expr.ty.axes;
        if !self.live[e.0 as usize] {
            let args = [self.value(*condition), self.value(*yes), self.value(*no)];
            return elementwise::apply(&Op::Select, &args, axes, shapes);
        }
        let condition = align(self.value(*condition), axes, shapes)?;
        let taken = condition.flags()?;
        let untaken = taken.f_logical_not()?;
        let branch = |e: ExprRef, taken: &Tensor| {
            let mask = Mask {
                taken,
                axes,
                depth: 0,
            };
            self.guarded(e, &mask)
        };
        let (yes, no) = (branch(*yes, taken)?, branch(*no, &untaken)?);
        elementwise::apply(&Op::Select, &[&condition, &yes, &no], axes, shapes)
    }

    /// The value of `root`; its gradient is 0 where the mask is false, whatever the derivatives.
    fn guarded(&self, root: ExprRef, mask: &Mask) -> Result<Value> {
        if !self.live[root.0 as usize] {
            return Ok(self.value(root).clone());
        }
        let mut cone = BTreeSet::new();
        let mut stack = vec![root];
        while let Some(e) = stack.pop() {
            if self.inside(e, mask) && cone.insert(e) {
                let args = &self.graph.expr(e).args;
                // The branches of an inner selection are computed under its own masks.
                if self.graph.expr(e).op != Op::Select {
                    stack.extend(args);
                }
            }
        }
        let mut done: HashMap<ExprRef, Value> = HashMap::new();
        for e in cone {
            let value = self
                .in_cone(e, mask, &done)
                .map_err(|fault| fault.at(self.graph.expr(e).span))?;
            done.insert(e, value);
        }
        match done.remove(&root) {
            Some(value) => Ok(value),
            None => self.cut(root, mask),
        }
    }

    /// Whether the expression is computed again under the mask.
    fn inside(&self, e: ExprRef, mask: &Mask) -> bool {
        self.live[e.0 as usize]
            && match self.graph.expr(e).op {
                Op::Unary(_) | Op::Binary(_) | Op::Clamp => true,
                Op::Select => mask.depth < MAX_DEPTH,
                _ => false,
            }
    }

    fn in_cone(&self, e: ExprRef, mask: &Mask, done: &HashMap<ExprRef, Value>) -> Result<Value> {
        let expr = self.graph.expr(e);
        let shapes = &self.shapes;
        if let (Op::Select, [condition, yes, no]) = (&expr.op, expr.args.as_slice()) {
            let condition = align(self.value(*condition), mask.axes, shapes)?;
            let here = condition.flags()?;
            let branch = |e: ExprRef, here: &Tensor| {
                let inner = Mask {
                    taken: &mask.taken.f_logical_and(here)?,
                    axes: mask.axes,
                    depth: mask.depth + 1,
                };
                self.guarded(e, &inner)
            };
            let yes = branch(*yes, here)?;
            let no = branch(*no, &here.f_logical_not()?)?;
            return elementwise::apply(&expr.op, &[&condition, &yes, &no], mask.axes, shapes);
        }
        let args = expr
            .args
            .iter()
            .map(|a| match done.get(a) {
                Some(value) => Ok(value.clone()),
                None => self.cut(*a, mask),
            })
            .collect::<Result<Vec<_>>>()?;
        let args: Vec<&Value> = args.iter().collect();
        elementwise::apply(&expr.op, &args, mask.axes, shapes)
    }

    /// An operand as it is, with its gradient cut where the mask is false.
    fn cut(&self, e: ExprRef, mask: &Mask) -> Result<Value> {
        let value = self.value(e);
        if !self.live[e.0 as usize] {
            return Ok(value.clone());
        }
        // Spread over all axes first: an element is cut for each of its uses on its own.
        let mut value = align(value, mask.axes, &self.shapes)?;
        if let Data::Num(t) = &value.data {
            value.data = Data::Num(t.f_where_self(mask.taken, &t.f_detach()?)?);
        }
        Ok(value)
    }
}
