//! Nested JSON lists to values over named axes, and back.

use std::collections::HashMap;
use std::sync::Arc;

use rlhf_lang::graph::{AxisId, AxisSize, Elem, Graph, ValueId};
use rlhf_text::Message;
use serde_json::{Number, Value as Json};

use crate::expr::Env;
use crate::fault::{Fault, Result};
use crate::value::{Data, Shapes, Value, dims, numel, ragged_of, storage, to_bools, to_f64s};

/// Values and the lengths of their axes. Lists of one axis must have one length in all inputs; along a
/// ragged axis each row has its own, the same in all inputs.
pub fn read(graph: &Graph, inputs: &[(ValueId, Json)]) -> Result<Env> {
    let mut lengths = Lengths {
        graph,
        dense: HashMap::new(),
        ragged: HashMap::new(),
    };
    for (id, json) in inputs {
        let input = graph.value(*id);
        lengths.measure(&input.name, json, &input.ty.axes, &mut Vec::new())?;
    }
    let mut env = Env {
        shapes: lengths.shapes(),
        iteration: 1.0,
        iterations: 1.0,
        ..Env::default()
    };
    for (id, json) in inputs {
        let input = graph.value(*id);
        let value = value(
            &input.name,
            json,
            input.ty.elem,
            &input.ty.axes,
            &env.shapes,
        )?;
        env.values.insert(*id, value);
    }
    Ok(env)
}

/// Nested lists over the value's axes.
pub fn write(value: &Value, elem: Elem, shapes: &Shapes) -> Result<Json> {
    let items: Vec<Json> = match &value.data {
        Data::Num(t) => to_f64s(t)?.into_iter().map(|x| number(x, elem)).collect(),
        Data::Bool(t) => to_bools(t)?.into_iter().map(Json::Bool).collect(),
        Data::Text(v) => v.iter().map(|t| serde_json::json!(t.as_deref())).collect(),
        Data::Chat(v) => v.iter().map(|c| serde_json::json!(c.as_ref())).collect(),
        Data::TextList(v) => {
            let list = |l: &Arc<[Arc<str>]>| l.iter().map(|t| Json::from(t.as_ref())).collect();
            v.iter().map(list).collect()
        }
    };
    let places = Places::new(&value.axes, shapes)?;
    places.nest(&items, &mut Vec::new())
}

fn number(x: f64, elem: Elem) -> Json {
    if x.is_nan() {
        Json::Null
    } else if x.is_infinite() {
        Json::from(if x > 0.0 { "inf" } else { "-inf" })
    } else if elem == Elem::Int && x.fract() == 0.0 && x.abs() < 9e15 {
        Json::from(x as i64)
    } else {
        Number::from_f64(x).map_or(Json::Null, Json::Number)
    }
}

/// Lengths as they are found, each with the name of the input that had it first.
struct Lengths<'g> {
    graph: &'g Graph,
    dense: HashMap<AxisId, (usize, String)>,
    ragged: HashMap<AxisId, (Vec<Option<usize>>, String)>,
}

impl Lengths<'_> {
    fn measure(
        &mut self,
        name: &str,
        json: &Json,
        axes: &[AxisId],
        at: &mut Vec<(AxisId, usize)>,
    ) -> Result<()> {
        let Some(axis) = axes.get(at.len()).copied() else {
            return Ok(());
        };
        let place = path(name, at.iter().map(|(_, i)| *i));
        let Json::Array(items) = json else {
            return Err(Fault::new(format!(
                "`{place}` is {}; expected a list along `{}`",
                describe(json),
                self.graph.axis(axis).name
            )));
        };
        self.note(name, &place, axis, items.len(), at)?;
        for (i, item) in items.iter().enumerate() {
            at.push((axis, i));
            self.measure(name, item, axes, at)?;
            at.pop();
        }
        Ok(())
    }

    fn note(
        &mut self,
        name: &str,
        place: &str,
        axis: AxisId,
        found: usize,
        at: &[(AxisId, usize)],
    ) -> Result<()> {
        let info = self.graph.axis(axis);
        let (expected, first) = if let AxisSize::Ragged(_) = info.size {
            let mut row = 0;
            let mut rows = 1;
            for parent in &info.parents {
                let length = self.dense.get(parent).map_or(0, |(n, _)| *n);
                let i = at.iter().find(|(a, _)| a == parent).map_or(0, |(_, i)| *i);
                row = row * length + i;
                rows *= length;
            }
            let (lengths, first) = self
                .ragged
                .entry(axis)
                .or_insert_with(|| (vec![None; rows], name.to_string()));
            match lengths.get_mut(row) {
                Some(slot) => (*slot.get_or_insert(found), first),
                None => (found, first),
            }
        } else {
            let (length, first) = self
                .dense
                .entry(axis)
                .or_insert_with(|| (found, name.to_string()));
            (*length, first)
        };
        if expected == found {
            return Ok(());
        }
        let there = if first == name {
            "the list before"
        } else {
            first.as_str()
        };
        Err(Fault::new(format!(
            "`{place}` has {found} elements along `{}`; `{there}` has {expected}",
            info.name
        ))
        .help("only the rows of a ragged axis may differ in length"))
    }

    fn shapes(&self) -> Shapes {
        let mut shapes = Shapes::new();
        for (i, axis) in self.graph.axes.iter().enumerate() {
            let id = AxisId(i as u32);
            if let (AxisSize::Fixed(n), None) = (axis.size, self.dense.get(&id)) {
                shapes.set(id, n);
            }
        }
        for (axis, (n, _)) in &self.dense {
            shapes.set(*axis, *n);
        }
        for (axis, (lengths, _)) in &self.ragged {
            let mut offsets = vec![0];
            for n in lengths {
                offsets.push(offsets[offsets.len() - 1] + n.unwrap_or(0));
            }
            shapes.set_ragged(*axis, self.graph.axis(*axis).parents.clone(), offsets);
        }
        // Where there are no rows at all, no list along the ragged axis was met.
        for (i, axis) in self.graph.axes.iter().enumerate() {
            let id = AxisId(i as u32);
            let empty = axis
                .parents
                .iter()
                .any(|p| self.dense.get(p).is_some_and(|(n, _)| *n == 0));
            if matches!(axis.size, AxisSize::Ragged(_)) && empty && !shapes.contains(id) {
                shapes.set_ragged(id, axis.parents.clone(), vec![0]);
            }
        }
        shapes
    }
}

/// Where the elements of a value lie: coordinates over its axes to a position in storage.
struct Places<'s> {
    axes: &'s [AxisId],
    shapes: &'s Shapes,
    own: Vec<AxisId>,
    sizes: Vec<i64>,
}

impl<'s> Places<'s> {
    fn new(axes: &'s [AxisId], shapes: &'s Shapes) -> Result<Self> {
        Ok(Places {
            axes,
            shapes,
            own: dims(axes, shapes),
            sizes: storage(axes, shapes)?,
        })
    }

    fn coordinate(&self, axis: &AxisId, at: &[usize]) -> usize {
        let k = self.axes.iter().position(|a| a == axis);
        k.and_then(|k| at.get(k)).copied().unwrap_or(0)
    }

    /// The row of the ragged axis that the outer coordinates name.
    fn row(&self, parents: &[AxisId], at: &[usize]) -> Result<usize> {
        let mut row = 0;
        for parent in parents {
            row = row * self.shapes.length(*parent)? + self.coordinate(parent, at);
        }
        Ok(row)
    }

    /// The length of the list at the outer coordinates.
    fn length(&self, at: &[usize]) -> Result<usize> {
        let axis = self.axes[at.len()];
        match self.shapes.ragged(axis) {
            None => self.shapes.length(axis),
            Some(ragged) => {
                let row = self.row(&ragged.parents, at)?;
                Ok(ragged.offsets[row + 1] - ragged.offsets[row])
            }
        }
    }

    fn position(&self, at: &[usize]) -> Result<usize> {
        let mut position = 0;
        for (axis, size) in self.own.iter().zip(&self.sizes) {
            position = position * *size as usize + self.coordinate(axis, at);
        }
        if let Some((axis, ragged)) = ragged_of(self.axes, self.shapes) {
            let row = self.row(&ragged.parents, at)?;
            let token = ragged.offsets[row] + self.coordinate(&axis, at);
            position = position * ragged.tokens() + token;
        }
        Ok(position)
    }

    fn nest(&self, items: &[Json], at: &mut Vec<usize>) -> Result<Json> {
        if at.len() == self.axes.len() {
            return Ok(items[self.position(at)?].clone());
        }
        let mut list = Vec::new();
        for i in 0..self.length(at)? {
            at.push(i);
            list.push(self.nest(items, at)?);
            at.pop();
        }
        Ok(Json::Array(list))
    }

    /// Leaves in storage order.
    fn leaves<'j>(
        &self,
        json: &'j Json,
        at: &mut Vec<usize>,
        out: &mut [Option<(&'j Json, Vec<usize>)>],
    ) -> Result<()> {
        if at.len() == self.axes.len() {
            out[self.position(at)?] = Some((json, at.clone()));
            return Ok(());
        }
        for (i, item) in json.as_array().into_iter().flatten().enumerate() {
            at.push(i);
            self.leaves(item, at, out)?;
            at.pop();
        }
        Ok(())
    }
}

fn value(name: &str, json: &Json, elem: Elem, axes: &[AxisId], shapes: &Shapes) -> Result<Value> {
    let places = Places::new(axes, shapes)?;
    let mut leaves = vec![None; numel(axes, shapes)?];
    places.leaves(json, &mut Vec::new(), &mut leaves)?;
    let of = |what: &'static str| {
        move |slot: &Option<(&Json, Vec<usize>)>| match slot {
            Some((json, at)) => Fault::new(format!(
                "`{}` is {}; expected {what}",
                path(name, at.iter().copied()),
                describe(json)
            )),
            None => Fault::new(format!("`{name}` lacks elements")),
        }
    };
    let json_of =
        |slot: &Option<(&Json, Vec<usize>)>| slot.as_ref().map(|(json, _)| (*json).clone());
    Ok(match elem {
        Elem::Float | Elem::Int => {
            let wrong = of("a number");
            let numbers = leaves
                .iter()
                .map(|slot| match json_of(slot) {
                    Some(Json::Null) => Ok(f64::NAN),
                    Some(Json::Number(n)) => n.as_f64().ok_or_else(|| wrong(slot)),
                    _ => Err(wrong(slot)),
                })
                .collect::<Result<Vec<_>>>()?;
            Value::from_f64(axes.to_vec(), &numbers, shapes)?
        }
        Elem::Bool => {
            let wrong = of("true or false");
            let flags = leaves
                .iter()
                .map(|slot| {
                    json_of(slot)
                        .and_then(|j| j.as_bool())
                        .ok_or_else(|| wrong(slot))
                })
                .collect::<Result<Vec<_>>>()?;
            Value::from_bool(axes.to_vec(), &flags, shapes)?
        }
        Elem::Text => {
            let wrong = of("text");
            let texts = leaves
                .iter()
                .map(|slot| match json_of(slot) {
                    Some(Json::Null) => Ok(None),
                    Some(Json::String(s)) => Ok(Some(s.into())),
                    _ => Err(wrong(slot)),
                })
                .collect::<Result<Vec<_>>>()?;
            Value::from_text(axes.to_vec(), texts)
        }
        Elem::Chat => {
            let wrong = of("a list of {role, content}");
            let chats = leaves
                .iter()
                .map(|slot| {
                    let messages = json_of(slot).map(serde_json::from_value::<Vec<Message>>);
                    messages
                        .and_then(|m| m.ok())
                        .map(Arc::from)
                        .ok_or_else(|| wrong(slot))
                })
                .collect::<Result<Vec<_>>>()?;
            Value {
                axes: axes.to_vec(),
                data: Data::Chat(chats),
            }
        }
        Elem::TextList => {
            let wrong = of("a list of texts");
            let lists = leaves
                .iter()
                .map(|slot| {
                    let texts = json_of(slot).map(serde_json::from_value::<Vec<Arc<str>>>);
                    texts
                        .and_then(|t| t.ok())
                        .map(Arc::from)
                        .ok_or_else(|| wrong(slot))
                })
                .collect::<Result<Vec<_>>>()?;
            Value {
                axes: axes.to_vec(),
                data: Data::TextList(lists),
            }
        }
    })
}

fn path(name: &str, at: impl Iterator<Item = usize>) -> String {
    at.fold(name.to_string(), |p, i| format!("{p}[{i}]"))
}

fn describe(json: &Json) -> String {
    match json {
        Json::Null => "null".into(),
        Json::Bool(b) => b.to_string(),
        Json::Number(n) => format!("the number {n}"),
        Json::String(_) => "text".into(),
        Json::Array(items) => format!("a list of {}", items.len()),
        Json::Object(_) => "an object".into(),
    }
}
