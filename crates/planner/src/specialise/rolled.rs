//! Rolled loops: loops that are not unrolled. Their body is compiled once, and the caller runs the code once for each iteration.
//!
//! One iteration is specialised, with inputs in place of what differs between iterations: the loop-carried tensors, and views and integers that depend on the
//! iteration's number. The views are slices of tensors that exist before the loop; for these and for the integers, the operator is evaluated for each
//! iteration, which involves no elements, or for three iterations if its results are affine functions of integers (`Entry::affine_in_integers`). Tensors that the body appends to lists are outputs, as are the next values of the loop-carried tensors.
//!
//! All iterations must do the same. So a loop is unrolled instead, as all others are, if one of these conditions is not met:
//! - Loop-carried values are tensors of constant shapes, tuples of such, or values that do not change.
//! - The body writes only to tensors that it creates, and only appends to lists, which it does not read.
//! - The body makes no view of a tensor from outside whose elements are known, unless the view's elements are known too.
//! - No size, condition or other number depends on the iteration, except as above.
//! - Nothing raises an exception or emits a warning.
//!
//! The first iteration may differ: it is unrolled if the others can stay rolled only without it.

use super::control::Frame;
use super::first_iteration::is_computed_alike;
use super::loops::{
    Carried, CarriedEnd, Differing, LoopEnd, LoopInput, LoopOutput, Passed, RolledLoop, Rolling, Source, Tracked,
    not_rolled,
};
use super::segment::unchanged;
use super::state::{Slot, Specialiser};
use super::store::address;
use crate::error::LowerError;
use frazil_ir::{Graph, ValueId, symbols, types};
use frazil_runtime::interp::walk::{At, LoopEntry};
use frazil_runtime::layout::contiguous_strides;
use frazil_runtime::registry::Lookup;
use frazil_runtime::structured::{TensorId, TensorShape};
use frazil_runtime::value::{ListValue, TensorCell, TupleValue, Value};
use frazil_runtime::{Registry, Semantics};
use frazil_tensor_ir::graph::TensorOp;
use frazil_tensor_ir::spec::ArgumentSpec;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// Minimum trip count. Loops of two or three iterations are mostly those over layers or directions, whose iterations differ: trying to roll them would cost a
/// walk for each new shape. A loop of two or three steps compiles the kernels of its unrolled plan once in a process, for all sizes. Measured on Zen 3 with an
/// LSTM of 256 units: 59 to 77 ms for two steps and 6 to 10 ms more for three; rolled loops of four to eight steps cost 1 ms for a new count.
const MIN_TRIPS: i64 = 4;
/// Maximum trip count, which bounds the numbers that are kept for each iteration.
const MAX_TRIPS: i64 = 1 << 20;
/// Maximum number of rolled loops in a run. Each ends a segment.
const MAX_ROLLED: usize = 32;

/// Returns whether running a graph may run a loop, in the graph or in composites.
pub fn has_loops(graph: &Graph, registry: &Registry) -> bool {
    let mut seen = FxHashSet::default();
    let mut pending: Vec<Arc<Graph>> = Vec::new();
    let mut search = |graph: &Graph, pending: &mut Vec<Arc<Graph>>| {
        let nodes = graph.nodes_recursive(graph.root());
        if nodes.iter().any(|&node| graph.kind(node) == symbols::PRIM_LOOP) {
            return true;
        }
        for node in nodes {
            if let Lookup::Found(op) = registry.lookup(graph, node)
                && let Semantics::Composite(body) = op.semantics()
                && seen.insert(Arc::as_ptr(body) as usize)
            {
                pending.push(Arc::clone(body));
            }
        }
        false
    };
    if search(graph, &mut pending) {
        return true;
    }
    while let Some(body) = pending.pop() {
        if search(&body, &mut pending) {
            return true;
        }
    }
    false
}

/// The tensors that an iteration computes for later iterations, or for after the loop.
#[derive(Default)]
struct Computed {
    cells: Vec<TensorCell>,
    ids: Vec<TensorId>,
}

impl Specialiser<'_> {
    /// Decides whether the remaining iterations of a loop stay rolled: all, or all but the first one.
    pub(super) fn enter_rolled(
        &mut self,
        at: At<'_>,
        frame: &Frame<'_>,
        remaining: &Range<i64>,
        carried: &[Slot],
    ) -> Result<LoopEntry<Slot>, LowerError> {
        let trips = remaining.end.saturating_sub(remaining.start);
        let key = (std::ptr::from_ref(at.graph) as usize, at.node, remaining.start);
        let is_candidate = self.start.rolls
            && remaining.start <= 1
            && self.rolling.is_none()
            && (MIN_TRIPS..=MAX_TRIPS).contains(&trips)
            && self.answered < MAX_ROLLED
            && self.unsupported.is_empty()
            && computes_tensors(at);
        if !is_candidate {
            return Ok(LoopEntry::Iterate);
        }
        let Some(values) = carried.iter().cloned().collect::<Option<Vec<Value>>>() else {
            return Ok(LoopEntry::Iterate);
        };
        // Reads may append views. They are appended for unrolled loops and for answered ones too: all segments must number their tensors alike.
        for value in &values {
            if !self.can_be_carried(value)? {
                return Ok(LoopEntry::Iterate);
            }
        }
        if self.unrolled.contains(&key) {
            return Ok(LoopEntry::Iterate);
        }
        let lists = self.reachable_lists(frame, &values);
        if self.has_answer() {
            // Loops before the next graph break were unrolled in the segments before.
            let Some(end) = self.loop_answer(key) else {
                return Ok(LoopEntry::Iterate);
            };
            let outputs = self.after_loop(&end, &values, &lists)?;
            return Ok(LoopEntry::Done(outputs.into_iter().map(Some).collect()));
        }
        let mut rolling = Rolling {
            key,
            trips,
            begin: self.tensors.len(),
            storages: FxHashSet::default(),
            lists: Vec::new(),
            before: Vec::new(),
            carried: Vec::new(),
            inputs: FxHashMap::default(),
            numbers: FxHashMap::default(),
            checks: self.checks.len(),
            warnings: self.warnings.len(),
        };
        let mut arguments = Vec::new();
        for value in &values {
            let (value, carried) = self.loop_carried(value, &mut rolling.inputs)?;
            rolling.carried.push(carried);
            arguments.push(Some(value));
        }
        rolling.before = values;
        rolling.lists = lists
            .into_iter()
            .map(|list| Tracked {
                before: list.items(),
                list,
                is_read: false,
            })
            .collect();
        rolling.storages = self.store.storages();
        self.rolling = Some(rolling);
        let number = self.differing_number(remaining.clone().collect())?;
        arguments.insert(0, Some(number));
        Ok(LoopEntry::Once(arguments))
    }

    /// Ends the segment at a loop of which one iteration has been specialised, and begins the next one. Returns the values of the loop-carried variables after
    /// the loop. The state is the same as if the loop were answered (`Answer::Loop`): the tensors of the iteration are removed.
    pub(super) fn leave_rolled(&mut self, results: Vec<Slot>) -> Result<Vec<Slot>, LowerError> {
        let results = results.into_iter().collect::<Option<Vec<Value>>>();
        let found = match results.as_deref() {
            Some([Value::Bool(true), results @ ..]) => self.rolled_loop(results)?,
            _ => None,
        };
        // A loop that cannot stay rolled is recorded in `rolling` until the specialisation begins again.
        let Some((rolled, rolling)) = found.and_then(|rolled| Some((rolled, self.rolling.take()?))) else {
            return Err(not_rolled());
        };
        let begin = TensorId::new(rolling.begin);
        self.tensors.truncate(begin);
        self.store.forget_reads_from(begin);
        let mut lists = Vec::new();
        for tracked in rolling.lists {
            tracked.list.change(|items| items.truncate(tracked.before.len()));
            lists.push(tracked.list);
        }
        let end = Arc::clone(&rolled.end);
        self.passed.push(Passed {
            rolled,
            settled: rolling.begin,
            first_check: self.earlier_checks,
        });
        self.answered += 1;
        self.earlier_checks = self.checks.len();
        let outputs = self.after_loop(&end, &rolling.before, &lists)?;
        Ok(outputs.into_iter().map(Some).collect())
    }

    /// Returns the values of a loop's variables after the loop, and appends to the lists to which its body appends.
    fn after_loop(&mut self, end: &LoopEnd, before: &[Value], lists: &[ListValue]) -> Result<Vec<Value>, LowerError> {
        // The tensor of each iteration, or only that of the last.
        let mut items: Vec<Vec<Value>> = Vec::new();
        for output in &end.outputs {
            let mut shape = output.shape.clone();
            if output.is_kept {
                shape.sizes.insert(0, end.trips);
            }
            let whole = self.input(&ArgumentSpec::Tensor(shape), false)?;
            items.push(match (&whole, output.is_kept) {
                (Value::Tensor(cell), true) => self.rows(cell, &output.shape, end.trips)?,
                _ => vec![whole],
            });
        }
        for (list, outputs) in &end.appended {
            let list = lists
                .get(*list)
                .ok_or_else(|| LowerError::Malformed("a loop appends to an unknown list".into()))?;
            let columns: Vec<&Vec<Value>> = outputs.iter().filter_map(|&output| items.get(output)).collect();
            list.change(|own| {
                for trip in 0..end.trips as usize {
                    own.extend(columns.iter().filter_map(|column| column.get(trip).cloned()));
                }
            });
        }
        let ends = end.carried.iter().zip(before);
        Ok(ends.map(|(end, before)| end.value(before, &items)).collect())
    }

    /// Returns the rows of a tensor of sizes `[trips, ...]` as views of it. `shape` is that of a row.
    fn rows(&mut self, whole: &TensorCell, shape: &TensorShape, trips: i64) -> Result<Vec<Value>, LowerError> {
        let base = whole.get();
        let strides = contiguous_strides(&shape.sizes);
        let numel = shape.numel();
        let row = |index: i64| {
            let layout = base.as_strided(&shape.sizes, &strides, index * numel);
            let layout = layout.map_err(|_| LowerError::Malformed("a row that is no view".into()))?;
            Ok(Value::Tensor(self.store.add_row(whole, index, layout)))
        };
        (0..trips).map(row).collect()
    }

    /// Returns all lists that the body of a loop may read, in a fixed order.
    fn reachable_lists(&self, frame: &Frame<'_>, carried: &[Value]) -> Vec<ListValue> {
        let held = frame.held().filter_map(|(_, value)| value.clone());
        let objects = self.objects.iter().cloned().map(Value::Object);
        let mut pending: Vec<Value> = held.chain(carried.iter().cloned()).chain(objects).collect();
        pending.reverse();
        let mut seen = FxHashSet::default();
        let mut lists = Vec::new();
        while let Some(value) = pending.pop() {
            match &value {
                Value::List(list) if seen.insert(list.address()) => {
                    lists.push(list.clone());
                    pending.extend(list.items());
                }
                Value::Tuple(tuple) => pending.extend(tuple.items.iter().cloned()),
                Value::Dict(dict) => pending.extend(dict.with(|entries| entries.values().cloned().collect::<Vec<_>>())),
                Value::Object(object) if seen.insert(object.address()) => pending.extend(object.slots()),
                _ => {}
            }
        }
        lists
    }

    /// Returns false for the initial value of a loop-carried variable with which a loop cannot stay rolled. Reads the value otherwise.
    fn can_be_carried(&mut self, value: &Value) -> Result<bool, LowerError> {
        match value {
            Value::Tensor(cell) => {
                let is_plain = cell.get().is_contiguous() && cell.get().marks().is_none();
                if self.number(value).is_some() || !is_plain {
                    return Ok(false);
                }
                if self.store.knows(cell) {
                    self.read(cell)?;
                }
            }
            Value::Tuple(tuple) => {
                for item in tuple.items.iter() {
                    if !self.can_be_carried(item)? {
                        return Ok(false);
                    }
                }
            }
            _ => {}
        }
        Ok(true)
    }

    /// Returns the value of a loop-carried variable in the iteration.
    fn loop_carried(
        &mut self,
        value: &Value,
        inputs: &mut FxHashMap<TensorId, Differing>,
    ) -> Result<(Value, Carried), LowerError> {
        Ok(match value {
            Value::Tensor(cell) => {
                let tensor = cell.get();
                let initial = match self.store.knows(cell) {
                    true => Source::Computed(self.read(cell)?),
                    false if self.constants.contains(&address(tensor.storage())) => Source::Known(tensor.clone()),
                    // Code after the loop may write to the tensor.
                    false => {
                        let sizes = tensor.sizes().to_vec();
                        Source::Known(tensor.deep_copy().map_err(|_| LowerError::TooLarge { sizes })?)
                    }
                };
                let shape = TensorShape {
                    dtype: tensor.dtype(),
                    sizes: tensor.sizes().into(),
                };
                let id = self.tensors.input(shape.clone());
                let inside = self.store.fresh(id, &shape, false)?;
                inputs.insert(id, Differing::Carried);
                (Value::Tensor(inside.clone()), Carried::Tensor(inside, id, initial))
            }
            Value::Tuple(tuple) => {
                let mut items = Vec::new();
                let mut parts = Vec::new();
                for item in tuple.items.iter() {
                    let (item, part) = self.loop_carried(item, inputs)?;
                    items.push(item);
                    parts.push(part);
                }
                let tuple = TupleValue {
                    ty: tuple.ty,
                    items: items.into(),
                };
                (Value::Tuple(tuple), Carried::Tuple(parts))
            }
            other => (other.clone(), Carried::Same(other.clone())),
        })
    }

    /// Returns the loop whose iteration has the results `results`; `None` if the loop cannot stay rolled.
    fn rolled_loop(&mut self, results: &[Value]) -> Result<Option<RolledLoop>, LowerError> {
        let Some(rolling) = self.rolling.take() else {
            return Ok(None);
        };
        let found = self.end_of(&rolling, results);
        self.rolling = Some(rolling);
        found
    }

    fn end_of(&mut self, rolling: &Rolling, results: &[Value]) -> Result<Option<RolledLoop>, LowerError> {
        let is_plain = self.unsupported.is_empty()
            && self.checks.len() == rolling.checks
            && self.warnings.len() == rolling.warnings
            && results.len() == rolling.carried.len();
        if !is_plain {
            return Ok(None);
        }
        let mut computed = Computed::default();
        let mut next = FxHashMap::default();
        let mut carried = Vec::new();
        for (before, after) in rolling.carried.iter().zip(results) {
            let Some(end) = self.carried_end(rolling, before, after, &mut computed, &mut next)? else {
                return Ok(None);
            };
            carried.push(end);
        }
        let mut appended = Vec::new();
        let mut kept = BTreeSet::new();
        for (number, tracked) in rolling.lists.iter().enumerate() {
            let Some(items) = tracked.appended() else {
                return Ok(None);
            };
            let mut outputs = Vec::new();
            for item in &items {
                let Some(output) = self.computed(rolling, item, &mut computed)? else {
                    return Ok(None);
                };
                outputs.push(output);
            }
            kept.extend(outputs.iter().copied());
            if !outputs.is_empty() {
                appended.push((number, outputs));
            }
        }
        let mut known = FxHashMap::default();
        rolling.carried.iter().for_each(|carried| carried.known(&mut known));
        if !is_computed_alike(&self.tensors, rolling.begin, &known) {
            return Ok(None);
        }
        // Views are part of the body, whose reads then go through them, as those of unrolled iterations do: the kernels and the bits are the same.
        let is_computed = |&id: &TensorId| !matches!(self.tensors.op(id), TensorOp::Constant(_) | TensorOp::View(_));
        let exist = (0..rolling.begin).map(TensorId::new).filter(is_computed);
        let given: BTreeSet<TensorId> = exist.chain(rolling.inputs.keys().copied()).collect();
        let (body, takes) = self.tensors.subgraph(&given, &computed.ids);
        let initial = |id: TensorId| rolling.carried.iter().find_map(|carried| carried.initial(id));
        let input = |&id: &TensorId| {
            Some(match rolling.inputs.get(&id) {
                None => LoopInput::Same(Source::Computed(id)),
                Some(Differing::Number(values)) => LoopInput::Number(Arc::clone(values)),
                Some(Differing::Slice(whole, offsets)) => LoopInput::Slice {
                    whole: *whole,
                    offsets: offsets.clone(),
                },
                Some(Differing::Carried) => match next.get(&id) {
                    Some(&next) => LoopInput::Carried {
                        initial: initial(id)?,
                        next,
                    },
                    None => LoopInput::Same(initial(id)?),
                },
            })
        };
        let Some(inputs) = takes.iter().map(input).collect() else {
            return Ok(None);
        };
        let output = |(number, &id): (usize, &TensorId)| LoopOutput {
            shape: self.tensors.shape(id).clone(),
            is_kept: kept.contains(&number),
        };
        let end = LoopEnd {
            key: rolling.key,
            trips: rolling.trips,
            outputs: computed.ids.iter().enumerate().map(output).collect(),
            carried,
            appended,
        };
        Ok(Some(RolledLoop {
            body,
            inputs,
            end: Arc::new(end),
        }))
    }

    /// Returns what a loop-carried variable is after the loop; `None` if the loop cannot stay rolled. Adds the outputs that are the next values of loop-carried
    /// tensors to `next`.
    fn carried_end(
        &mut self,
        rolling: &Rolling,
        before: &Carried,
        after: &Value,
        computed: &mut Computed,
        next: &mut FxHashMap<TensorId, usize>,
    ) -> Result<Option<CarriedEnd>, LowerError> {
        Ok(match (before, after) {
            (Carried::Same(before), after) => unchanged(before, after).then_some(CarriedEnd::Same),
            (Carried::Tensor(inside, ..), Value::Tensor(cell)) if inside.is(cell) => Some(CarriedEnd::Same),
            (Carried::Tensor(inside, id, _), Value::Tensor(cell)) => {
                let (old, new) = (inside.get(), cell.get());
                let is_same = old.dtype() == new.dtype() && old.sizes() == new.sizes();
                drop((old, new));
                let output = match is_same {
                    true => self.computed(rolling, after, computed)?,
                    false => None,
                };
                if let Some(output) = output {
                    next.insert(*id, output);
                }
                output.map(CarriedEnd::Output)
            }
            (Carried::Tuple(parts), Value::Tuple(tuple)) if parts.len() == tuple.items.len() => {
                let mut ends = Vec::new();
                for (part, item) in parts.iter().zip(tuple.items.iter()) {
                    let Some(end) = self.carried_end(rolling, part, item, computed, next)? else {
                        return Ok(None);
                    };
                    ends.push(end);
                }
                Some(CarriedEnd::Tuple(ends))
            }
            _ => None,
        })
    }

    /// Returns the index of a tensor among the outputs; `None` if it is not a tensor that the iteration creates, or shares memory with another output.
    fn computed(
        &mut self,
        rolling: &Rolling,
        value: &Value,
        computed: &mut Computed,
    ) -> Result<Option<usize>, LowerError> {
        let Value::Tensor(cell) = value else { return Ok(None) };
        if let Some(known) = computed.cells.iter().position(|c| c.is(cell)) {
            return Ok(Some(known));
        }
        let tensor = cell.get();
        let shares = |other: &TensorCell| other.get().shares_storage(&tensor);
        let is_new = self.store.knows(cell)
            && self.number(value).is_none()
            && tensor.is_contiguous()
            && tensor.marks().is_none()
            && !rolling.storages.contains(&address(tensor.storage()))
            && !computed.cells.iter().any(shares);
        if !is_new {
            return Ok(None);
        }
        let id = self.read(cell)?;
        computed.cells.push(cell.clone());
        computed.ids.push(id);
        Ok(Some(computed.ids.len() - 1))
    }
}

impl Tracked {
    /// Returns the items that the iteration has appended; `None` if it has changed the list otherwise, or has also read it.
    fn appended(&self) -> Option<Vec<Value>> {
        let items = appended(&self.before, &self.list.items())?;
        (items.is_empty() || !self.is_read).then_some(items)
    }
}

impl Carried {
    /// Adds the inputs whose initial elements are known to `known`, each with whether they are zeros.
    fn known(&self, known: &mut FxHashMap<TensorId, bool>) {
        match self {
            Carried::Tensor(_, id, Source::Known(tensor)) => {
                known.insert(*id, tensor.storage().bytes().iter().all(|&byte| byte == 0));
            }
            Carried::Tensor(..) | Carried::Same(_) => {}
            Carried::Tuple(parts) => parts.iter().for_each(|part| part.known(known)),
        }
    }

    /// Returns the initial value of the loop-carried tensor with the given input.
    fn initial(&self, id: TensorId) -> Option<Source> {
        match self {
            Carried::Tensor(_, own, initial) => (*own == id).then(|| initial.clone()),
            Carried::Tuple(parts) => parts.iter().find_map(|part| part.initial(id)),
            Carried::Same(_) => None,
        }
    }
}

impl CarriedEnd {
    /// Returns the value after the loop. `items` are the tensors of each output: of all iterations, or of the last one.
    fn value(&self, before: &Value, items: &[Vec<Value>]) -> Value {
        match (self, before) {
            (CarriedEnd::Output(output), _) => items
                .get(*output)
                .and_then(|all| all.last())
                .cloned()
                .unwrap_or_default(),
            (CarriedEnd::Tuple(ends), Value::Tuple(tuple)) => {
                let parts = ends.iter().zip(tuple.items.iter());
                Value::Tuple(TupleValue {
                    ty: tuple.ty,
                    items: parts.map(|(end, before)| end.value(before, items)).collect(),
                })
            }
            _ => before.clone(),
        }
    }
}

/// Returns the items that were appended to a list; `None` if it was changed otherwise.
pub(super) fn appended(before: &[Value], after: &[Value]) -> Option<Vec<Value>> {
    let (kept, new) = after.split_at_checked(before.len())?;
    let is_kept = kept.iter().zip(before).all(|(a, b)| unchanged(a, b));
    is_kept.then(|| new.to_vec())
}

/// Returns whether the body of a loop may compute tensors. Unrolling other loops needs no code.
fn computes_tensors(at: At<'_>) -> bool {
    let body = at.graph.node_blocks(at.node).first().copied();
    let is_tensor = |&value: &ValueId| at.graph.ty(value) == types::TENSOR;
    body.is_some_and(|body| {
        let mut nodes = at.graph.walk(body);
        nodes.any(|node| at.graph.node_outputs(node).iter().any(is_tensor))
    })
}
