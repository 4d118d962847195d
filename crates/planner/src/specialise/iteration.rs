//! Operators of the iteration of a rolled loop: what differs between iterations, and what they read and write.

use super::loops::{Differing, Rolling, not_rolled};
use super::rolled::appended;
use super::segment::unchanged;
use super::state::Specialiser;
use super::store::{address, tensors_in};
use crate::error::LowerError;
use frazil_ir::schema::AliasInfo;
use frazil_ir::{DType, Graph, NodeId, TypeId};
use frazil_runtime::call::invoke;
use frazil_runtime::number::NumberKind;
use frazil_runtime::op::{Form, Operator};
use frazil_runtime::structured::TensorShape;
use frazil_runtime::value::{ListValue, TensorCell, TupleValue, Value};
use frazil_runtime::{Tensor, Variant};
use std::sync::Arc;

/// The number of iterations whose results determine those of all others, if the results lie on a line.
const SAMPLES: usize = 3;
/// Bound of the integers with which operators are sampled: their products do not overflow.
const MAX_SAMPLED: i64 = 1 << 31;

/// The results of an operator in all iterations.
struct Results {
    /// The results of some iterations, the first among them. What holds for these, apart from the places, holds for all.
    samples: Vec<Value>,
    /// In each iteration, the integer, or the offset of the view; `None` for other results.
    places: Option<Vec<i64>>,
}

impl Results {
    /// Returns the results that were computed in each iteration.
    fn each(results: Vec<Value>) -> Results {
        let are_tensors = matches!(results.first(), Some(Value::Tensor(_)));
        let is_alike = |result: &Value| matches!(result, Value::Tensor(_)) == are_tensors;
        Results {
            places: results.iter().map(|r| place(r).filter(|_| is_alike(r))).collect(),
            samples: results,
        }
    }

    /// Returns the results of `trips` iterations if those of the first, the second and the last one lie on a line.
    fn on_line(samples: &[Value], trips: usize) -> Option<Results> {
        let [first, second, last] = samples else { return None };
        let (start, end) = (place(first)?, place(last)?);
        let step = place(second)?.checked_sub(start)?;
        let at = |trip: usize| start.checked_add(step.checked_mul(trip as i64)?);
        if at(trips.checked_sub(1)?)? != end {
            return None;
        }
        Some(Results {
            samples: samples.to_vec(),
            places: Some((0..trips).map(at).collect::<Option<_>>()?),
        })
    }
}

/// Returns an integer, or the offset of a tensor; `None` for other values.
fn place(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        Value::Tensor(cell) => Some(cell.get().offset()),
        _ => None,
    }
}

impl Specialiser<'_> {
    /// Returns an integer that has the value `values[i]` in iteration `i`.
    pub(super) fn differing_number(&mut self, values: Arc<[i64]>) -> Result<Value, LowerError> {
        let shape = TensorShape {
            dtype: DType::Long,
            sizes: Default::default(),
        };
        let cell = self.differing(shape, Differing::Number(Arc::clone(&values)))?;
        self.note_number(&cell, NumberKind::Int);
        if let Some(rolling) = &mut self.rolling {
            rolling.numbers.insert(cell.address(), (cell.clone(), values));
        }
        Ok(Value::Tensor(cell))
    }

    /// Returns a tensor whose elements differ between iterations.
    fn differing(&mut self, shape: TensorShape, differing: Differing) -> Result<TensorCell, LowerError> {
        let id = self.tensors.input(shape.clone());
        let cell = self.store.fresh(id, &shape, false)?;
        if let Some(rolling) = &mut self.rolling {
            rolling.inputs.insert(id, differing);
            rolling.storages.insert(address(cell.get().storage()));
        }
        Ok(cell)
    }

    /// Runs an operator of an iteration. Returns its result if it does not depend on elements and differs between iterations; else `None`, and the operator is
    /// run as usual.
    ///
    /// # Errors
    /// If the loop cannot stay rolled.
    pub(super) fn in_each_iteration(
        &mut self,
        graph: &Graph,
        node: NodeId,
        op: &Operator,
        values: &[Value],
    ) -> Result<Option<Value>, LowerError> {
        let Some(rolling) = &self.rolling else { return Ok(None) };
        let is_functional = op.variant() == Variant::Functional && !op.schema().is_mutable();
        let differs = values.iter().any(|v| rolling.differs(v));
        if !differs || !is_functional || op.is_random() {
            return Ok(None);
        }
        let mut cells = Vec::new();
        values.iter().for_each(|v| tensors_in(v, &mut cells));
        cells.retain(|cell| !rolling.numbers.contains_key(&cell.address()));
        let reads_no_elements = op.semantics().form() == Form::View || op.traits().holds_elements;
        if !cells.is_empty() && !reads_no_elements {
            return Ok(None);
        }
        let output_types: Vec<TypeId> = graph.node_outputs(node).iter().map(|&v| graph.ty(v)).collect();
        for cell in &cells {
            cell.get().storage().take_touched();
        }
        let result_in = |trip: usize| -> Result<Value, LowerError> {
            let values: Vec<Value> = values.iter().map(|v| rolling.in_iteration(v, trip)).collect();
            let given = invoke(self.ctx, op, &values, &output_types, graph.attributes(node));
            match given.as_deref() {
                Ok([result]) => Ok(result.clone()),
                _ => Err(not_rolled()),
            }
        };
        let trips = rolling.trips as usize;
        let is_affine =
            trips > SAMPLES && op.traits().affine_in_integers && values.iter().all(|v| rolling.is_affine(v));
        let mut samples = Vec::new();
        if is_affine {
            for trip in [0, 1, trips - 1] {
                samples.push(result_in(trip)?);
            }
        }
        let results = match Results::on_line(&samples, trips) {
            Some(results) => results,
            None => Results::each((0..trips).map(result_in).collect::<Result<_, _>>()?),
        };
        // A view that the strides do not allow is a copy.
        if cells.iter().any(|cell| cell.get().storage().take_touched()) {
            return Err(not_rolled());
        }
        self.of_all_iterations(results)
    }

    /// Returns the value that an operator has in all iterations; `None` if code can compute it from integers.
    fn of_all_iterations(&mut self, results: Results) -> Result<Option<Value>, LowerError> {
        let Results { samples, places } = results;
        let Some(first) = samples.first() else {
            return Err(not_rolled());
        };
        if samples.iter().all(|result| unchanged(first, result)) {
            return Ok(Some(first.clone()));
        }
        let Some(places) = places else { return Ok(None) };
        if let Value::Int(_) = first {
            return self.differing_number(places.into()).map(Some);
        }
        let tensors: Option<Vec<Tensor>> = samples.iter().map(Value::as_tensor).collect();
        let (Some(tensors), Some(rolling)) = (tensors, &self.rolling) else {
            return Ok(None);
        };
        let Some(like) = tensors.first() else {
            return Ok(None);
        };
        let is_slice = |t: &Tensor| {
            t.shares_storage(like)
                && (t.dtype(), t.sizes()) == (like.dtype(), like.sizes())
                && t.is_contiguous()
                && t.marks().is_none()
        };
        let storage = address(like.storage());
        let whole = self.store.whole(storage).filter(|whole| whole.index() < rolling.begin);
        let is_strided = self.strided.contains(&storage);
        match whole {
            Some(whole) if !is_strided && tensors.iter().all(is_slice) && like.numel() > 0 => {
                let shape = TensorShape {
                    dtype: like.dtype(),
                    sizes: like.sizes().into(),
                };
                let cell = self.differing(shape, Differing::Slice(whole, places))?;
                Ok(Some(Value::Tensor(cell)))
            }
            _ => Err(not_rolled()),
        }
    }

    /// Records what an operator of an iteration reads and writes. If it writes to a list that exists before the iteration, returns the list, and its items
    /// before the operator.
    ///
    /// # Errors
    /// If the loop cannot stay rolled.
    pub(super) fn note_uses(
        &mut self,
        op: &Operator,
        values: &[Value],
    ) -> Result<Option<(ListValue, Vec<Value>)>, LowerError> {
        let Some(rolling) = &mut self.rolling else {
            return Ok(None);
        };
        let mut written = None;
        for (argument, value) in op.schema().arguments.iter().zip(values) {
            let is_write = |alias: &Option<AliasInfo>| alias.as_ref().is_some_and(|a| a.is_write);
            if !is_write(&argument.alias) && !is_write(&argument.element_alias) {
                rolling.note_read(value);
                continue;
            }
            match value {
                Value::List(list) if rolling.lists.iter().any(|tracked| tracked.list.is(list)) => {
                    written = Some((list.clone(), list.items()));
                }
                Value::List(_) => {}
                Value::Tensor(cell) => {
                    let storage = address(cell.get().storage());
                    if rolling.storages.contains(&storage) || self.store.whole(storage).is_none() {
                        return Err(not_rolled());
                    }
                }
                _ => return Err(not_rolled()),
            }
        }
        Ok(written)
    }

    /// Returns an error if an operator has done something else to a list than appending. `before` are the items before the operator.
    pub(super) fn check_appended(&self, list: &ListValue, before: &[Value]) -> Result<(), LowerError> {
        match appended(before, &list.items()) {
            Some(_) => Ok(()),
            None => Err(not_rolled()),
        }
    }
}

impl Rolling {
    /// Returns whether the value contains an integer that differs between iterations.
    fn differs(&self, value: &Value) -> bool {
        match value {
            Value::Tensor(cell) => self.numbers.contains_key(&cell.address()),
            Value::List(list) => list.with(|items| items.iter().any(|v| self.differs(v))),
            Value::Tuple(tuple) => tuple.items.iter().any(|v| self.differs(v)),
            _ => false,
        }
    }

    /// Returns whether the integers that differ in the value are small affine functions of the iteration's number that keep their signs.
    fn is_affine(&self, value: &Value) -> bool {
        match value {
            Value::Tensor(cell) => self.numbers.get(&cell.address()).is_none_or(|(_, values)| {
                let (Some(&first), Some(&last)) = (values.first(), values.last()) else {
                    return false;
                };
                let is_small = |n: i64| (-MAX_SAMPLED..MAX_SAMPLED).contains(&n);
                let is_spaced = || values.windows(3).all(|w| w[1] - w[0] == w[2] - w[1]);
                is_small(first)
                    && is_small(last)
                    && (first < 0) == (last < 0)
                    && values.iter().all(|&n| is_small(n))
                    && is_spaced()
            }),
            Value::Int(number) => (-MAX_SAMPLED..MAX_SAMPLED).contains(number),
            _ => !self.differs(value),
        }
    }

    /// Returns the value in iteration `trip`.
    fn in_iteration(&self, value: &Value, trip: usize) -> Value {
        match value {
            Value::Tensor(cell) => match self.numbers.get(&cell.address()) {
                Some((_, values)) => values.get(trip).map_or(Value::None, |&n| Value::Int(n)),
                None => value.clone(),
            },
            Value::List(list) if self.differs(value) => {
                let items = list.items().iter().map(|v| self.in_iteration(v, trip)).collect();
                Value::List(ListValue::new(list.element, items))
            }
            Value::Tuple(tuple) if self.differs(value) => Value::Tuple(TupleValue {
                ty: tuple.ty,
                items: tuple.items.iter().map(|v| self.in_iteration(v, trip)).collect(),
            }),
            other => other.clone(),
        }
    }

    /// Records that the iteration reads the lists in `value`.
    fn note_read(&mut self, value: &Value) {
        match value {
            Value::List(list) => {
                for tracked in &mut self.lists {
                    tracked.is_read |= tracked.list.is(list);
                }
                list.items().iter().for_each(|v| self.note_read(v));
            }
            Value::Tuple(tuple) => tuple.items.iter().for_each(|v| self.note_read(v)),
            Value::Dict(dict) => {
                let values: Vec<Value> = dict.with(|entries| entries.values().cloned().collect());
                values.iter().for_each(|v| self.note_read(v));
            }
            _ => {}
        }
    }
}
