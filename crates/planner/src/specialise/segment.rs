//! Segments of methods whose control flow depends on elements.
//!
//! A segment ends at an operator without a program whose result depends on elements (`bool(t)`, `t.item()`, `nonzero`). [`Segment`] contains everything
//! before this operator, and [`Next::Call`] the operator itself. The caller runs the operator on the tensors that the segment computes, and describes its
//! result as arguments are described: tensors by their shapes, other values as they are. With this description as one more answer, specialisation starts
//! again and reaches the next such operator. It appends the same tensors with the same numbers as before. So the next segment compiles only what no earlier
//! segment has computed. [`Segment::live`] lists the tensors that are worth keeping; others are computed again.
//!
//! A segment also ends at a loop that stays rolled ([`RolledLoop`]), if the caller allows it ([`Start::rolls`]). The caller runs its body. What a loop leaves
//! behind depends on shapes only, so specialisation goes on, and returns the segments up to the next call or the end together.
//!
//! Attributes that a method changes are state: their values are inputs ([`Start::objects`]) and results ([`Next::Return`]).

use super::control::Frame;
use super::loops::{Answer, RolledLoop};
use super::refusal::Refusal;
use super::start::Start;
use super::state::{Returns, Slot, Specialiser};
use super::store::address;
use crate::error::{LowerError, Unsupported};
use frazil_ir::schema::Argument;
use frazil_ir::{Definition, Graph, NodeId, SymbolId, ValueId, symbols};
use frazil_runtime::op::Operator;
use frazil_runtime::structured::TensorId;
use frazil_runtime::value::{ObjectValue, TensorCell, Value};
use frazil_runtime::{Registry, Variant};
use frazil_tensor_ir::call::RuntimeCall;
use frazil_tensor_ir::graph::TensorGraph;
use frazil_tensor_ir::spec::{ArgumentSpec, ResultSpec};
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A method up to its end or its next graph break.
#[derive(Debug)]
pub struct Segment {
    /// All tensors from the beginning of the method on. Those of earlier segments have the same ids in all later segments. The inputs of the graph are the
    /// tensors in the arguments, in the objects and in the observed values, in this order; its outputs are those of [`Next::Return`]. Segments that are
    /// specialised together share the graph.
    pub graph: Arc<TensorGraph>,
    /// The continuation after the segment.
    pub next: Next,
    /// Tensors that later segments may read. All of them have ids below `settled`.
    pub live: BTreeSet<TensorId>,
    /// The end of the stable prefix: tensors with smaller ids are the same in the next segment. Those from here on exist only for the call at the graph
    /// break.
    pub settled: TensorId,
    /// Bools that this segment computes, with the exception that each raises if it is true.
    pub checks: Vec<(TensorId, String)>,
}

/// Continuation of a method after a segment.
#[derive(Debug)]
pub enum Next {
    /// The method returns.
    Return {
        /// The results of the graph, in order.
        results: Vec<ResultSpec>,
        /// Pairs of an input tensor and the output that is copied to it.
        writes: Vec<(u32, u32)>,
        /// New values of attributes: the object, the attribute, and its value.
        sets: Vec<(u32, u32, ResultSpec)>,
        /// Texts of all warnings that the method emits, from its beginning on, in order.
        warnings: Vec<String>,
    },
    /// The method needs the results of a call.
    Call(Box<RuntimeCall>),
    /// The method needs the tensors that a loop computes.
    Loop(Box<RolledLoop>),
}

/// Specialises `graph` for `inputs` up to the next call at a graph break. `answers` are the observed results of the calls at the earlier graph breaks. Returns
/// at least one segment. All but the last end at a loop, and the next one follows it. The last one ends at a loop if what follows cannot be specialised, for a
/// reason that specialising it with one more answer tells.
///
/// # Errors
/// As [`super::specialise`].
pub fn segments(
    graph: &Graph,
    inputs: &[ArgumentSpec],
    answers: &[Answer],
    start: &Start<'_>,
    registry: &Registry,
) -> Result<Vec<Segment>, LowerError> {
    let ctx = graph.ctx().clone();
    let mut unrolled = FxHashSet::default();
    loop {
        let mut s = Specialiser::new(&ctx, registry, start, Some(answers));
        s.unrolled = std::mem::take(&mut unrolled);
        let found = s.last_segment(graph, inputs);
        match (found, s.rolling.as_ref().map(|rolling| rolling.key)) {
            (Err(error @ (LowerError::Exceeded(_) | LowerError::OutOfMemory(_))), _) => return Err(error),
            // Only an attempt to keep a loop rolled has failed.
            (Err(_), Some(key)) if s.unrolled.insert(key) => unrolled = s.unrolled,
            (Err(error), _) if s.passed.is_empty() => return Err(error),
            (Err(_), _) => return Ok(s.with_passed(None)),
            (Ok(last), _) => return Ok(s.with_passed(Some(last))),
        }
    }
}

/// The last of the segments that are specialised together.
struct Last {
    next: Next,
    live: BTreeSet<TensorId>,
    settled: TensorId,
}

impl Specialiser<'_> {
    /// Specialises `graph` up to the next call at a graph break, as [`segments`] does. Returns the last segment.
    fn last_segment(&mut self, graph: &Graph, inputs: &[ArgumentSpec]) -> Result<Last, LowerError> {
        let s = self;
        let start = s.start;
        let objects = start.objects.iter();
        s.objects = objects.map(|o| ObjectValue::new(o.class, Vec::new())).collect();
        let arguments = s.arguments(graph, inputs)?;
        let mut before = Vec::new();
        for (number, spec) in start.objects.iter().enumerate() {
            let slots = spec.slots.iter().map(|slot| s.input(slot, true));
            let slots = slots.collect::<Result<Vec<Value>, _>>()?;
            s.objects[number].set_slots(slots.clone());
            before.push(slots);
        }
        let next = match s.run(graph, arguments) {
            Ok(outputs) => s.returns(outputs, &before)?,
            Err(LowerError::Waits { operator }) => match s.waiting.take() {
                Some(call) => Next::Call(Box::new(call)),
                None => return Err(LowerError::Waits { operator }),
            },
            Err(e) => return Err(e),
        };
        let settled = TensorId::new(match next {
            Next::Return { .. } => s.tensors.len(),
            Next::Call(_) | Next::Loop(_) => s.settled,
        });
        let live = std::mem::take(&mut s.live);
        Ok(Last {
            next,
            live: live.into_iter().filter(|&id| id < settled).collect(),
            settled,
        })
    }

    /// Returns the segments that end at the loops that were passed, and then the segment `last`.
    fn with_passed(mut self, last: Option<Last>) -> Vec<Segment> {
        let mut ends = Vec::new();
        if let Some(last) = last {
            ends.push((last, self.earlier_checks));
        }
        for passed in std::mem::take(&mut self.passed).into_iter().rev() {
            let settled = TensorId::new(passed.settled);
            let live = match ends.last() {
                // Also what comes after the next segment is computed from what this one leaves.
                Some((next, first_check)) => {
                    let checks = self.checks.iter().skip(*first_check).map(|(id, _)| *id);
                    read_from(&self.tensors, &[self.wanted(next), checks.collect()].concat(), settled)
                }
                None => BTreeSet::new(),
            };
            let next = Next::Loop(Box::new(passed.rolled));
            ends.push((Last { next, live, settled }, passed.first_check));
        }
        let with_checks = |(end, first): (Last, usize)| {
            let wanted = self.wanted(&end);
            (self.checks_for(first, &wanted), end)
        };
        let ends: Vec<_> = ends.into_iter().map(with_checks).collect();
        let graph = Arc::new(std::mem::take(&mut self.tensors));
        let segment = |(checks, end): (Vec<(TensorId, String)>, Last)| Segment {
            graph: Arc::clone(&graph),
            next: end.next,
            live: end.live,
            settled: end.settled,
            checks,
        };
        ends.into_iter().rev().map(segment).collect()
    }

    /// Returns the tensors that a segment computes.
    fn wanted(&self, segment: &Last) -> Vec<TensorId> {
        let live = segment.live.iter().copied();
        match &segment.next {
            Next::Return { .. } => self.tensors.outputs().to_vec(),
            Next::Call(call) => live.chain(call.inputs.iter().copied()).collect(),
            Next::Loop(rolled) => live.chain(rolled.needs()).collect(),
        }
    }
}

/// Returns the tensors before `settled` that are worth keeping because `wanted` depends on them: those that views are views of, and no constants.
fn read_from(graph: &TensorGraph, wanted: &[TensorId], settled: TensorId) -> BTreeSet<TensorId> {
    let mut is_needed = vec![false; graph.len()];
    wanted.iter().for_each(|id| is_needed[id.index()] = true);
    for id in graph.ids().rev().take_while(|&id| id >= settled) {
        if is_needed[id.index()] {
            graph.operands(id).iter().for_each(|id| is_needed[id.index()] = true);
        }
    }
    let needed = graph.ids().filter(|&id| id < settled && is_needed[id.index()]);
    needed
        .map(|id| graph.viewed(id))
        .filter(|&id| graph.as_constant(id).is_none())
        .collect()
}

impl Specialiser<'_> {
    /// Returns the continuation of a graph that returns `outputs`. `before` contains the attributes of the objects at its beginning.
    fn returns(&mut self, outputs: Vec<Slot>, before: &[Vec<Value>]) -> Result<Next, LowerError> {
        let objects = self.objects.clone().into_iter().zip(before);
        let attributes = (0..).zip(objects).flat_map(|(number, (object, before))| {
            let slots = (0..).zip(object.slots().into_iter().zip(before));
            let changed = slots.filter(|(_, (now, old))| !unchanged(old, now));
            changed
                .map(move |(slot, (now, _))| (number, slot, now))
                .collect::<Vec<_>>()
        });
        let attributes: Vec<(u32, u32, Value)> = attributes.collect();
        let changed = attributes.iter().map(|(_, _, value)| value);
        self.note_shared_memory(outputs.iter().flatten().chain(changed))?;
        let mut results = Vec::new();
        for (index, output) in outputs.iter().enumerate() {
            match output {
                Some(value) => results.push(self.result(value, index)?),
                None if !self.unsupported.is_empty() => continue,
                None => return Err(LowerError::Result { index }),
            }
        }
        let mut writes = Vec::new();
        for (number, cell) in (0..).zip(self.inputs.clone()) {
            if self.store.is_written_input(&cell) {
                let whole = self.read(&cell)?;
                writes.push((number, self.tensors.outputs().len() as u32));
                self.tensors.add_output(whole);
            }
        }
        let mut sets = Vec::new();
        for (number, slot, now) in &attributes {
            sets.push((*number, *slot, self.result(now, outputs.len())?));
        }
        self.refuse_changed_containers();
        if !self.unsupported.is_empty() {
            return Err(self.all_unsupported());
        }
        Ok(Next::Return {
            results,
            writes,
            sets,
            warnings: std::mem::take(&mut self.warnings),
        })
    }

    /// Refuses a program that changes lists or dictionaries of the caller.
    pub(super) fn refuse_changed_containers(&mut self) {
        let changed = |(value, before): &(Value, Vec<Value>)| {
            let items = match value {
                Value::Dict(d) => d.with(|entries| entries.values().cloned().collect()),
                other => other.items().unwrap_or_default(),
            };
            items.len() != before.len() || items.iter().zip(before).any(|(a, b)| !unchanged(a, b))
        };
        if self.shared.iter().any(changed) {
            self.unsupported.push(Unsupported {
                operator: "the graph".into(),
                reason: "changes a list or dictionary that the caller sees".into(),
                source: None,
            });
        }
    }

    pub(super) fn all_unsupported(&mut self) -> LowerError {
        let mut all = std::mem::take(&mut self.unsupported);
        all.dedup();
        LowerError::Unsupported(all)
    }

    /// Returns whether a segment may end at `op`, which is then called between two segments: it has no side effects, and its results are no views.
    pub(super) fn can_wait(&self, op: &Operator) -> bool {
        let schema = op.schema();
        let is_new = |r: &Argument| r.alias.is_none() && r.element_alias.is_none();
        let is_functional = op.variant() == Variant::Functional && !schema.is_mutable();
        self.answers.is_some() && is_functional && schema.returns.iter().all(is_new)
    }

    /// Returns the results of an operator that reads elements, if they are among the observed values. Otherwise, the segment ends here.
    pub(super) fn wait(
        &mut self,
        graph: &Graph,
        node: NodeId,
        op: &Operator,
        values: &[Value],
    ) -> Result<Vec<Value>, Refusal> {
        if let Some(given) = self.answer()? {
            return Ok(given);
        }
        let call = self.call_of(graph, node, op, values, Vec::new())?;
        Err(self.wait_for(call).into())
    }

    /// Records the tensors of a suspended frame that later nodes may read.
    pub(super) fn note_live(&mut self, frame: &Frame<'_>) -> Result<(), LowerError> {
        let graph = frame.graph();
        let mut reached = Vec::new();
        for (value, held) in frame.held() {
            let Some(held) = held else { continue };
            if graph
                .uses(value)
                .any(|u| is_pending(graph, frame.path(), value, u.user))
            {
                reached.push(held.clone());
            }
        }
        let mut objects = FxHashSet::default();
        while let Some(value) = reached.pop() {
            match &value {
                Value::Tensor(cell) if self.store.knows(cell) => {
                    let id = self.read(cell)?;
                    self.live.insert(self.tensors.viewed(id));
                }
                Value::Object(object) if objects.insert(object.address()) => reached.extend(object.slots()),
                Value::Dict(d) => reached.extend(d.with(|entries| entries.values().cloned().collect::<Vec<_>>())),
                Value::List(_) | Value::Tuple(_) => reached.extend(value.items().unwrap_or_default()),
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns a result that needs no computation: an input or the result of a call, unless it was written since, or a view of one. `None` if the caller
    /// cannot return such tensors.
    pub(super) fn input_view(&mut self, cell: &TensorCell) -> Option<ResultSpec> {
        if self.returns != Returns::Eager || self.store.is_written(cell) {
            return None;
        }
        let own = self.inputs.iter().position(|input| input.is(cell));
        if let Some(number) = own {
            return Some(ResultSpec::Input(number as u32));
        }
        let tensor = cell.get();
        let shares = |input: &TensorCell| input.get().shares_storage(&tensor);
        let number = self.inputs.iter().position(shares)?;
        let input = self.inputs.get(number)?.get();
        if input.dtype() != tensor.dtype() {
            return None;
        }
        let marks = tensor.marks().with(input.marks());
        if self.strided.contains(&address(input.storage())) {
            return Some(ResultSpec::Window(
                number as u32,
                self.store.path(cell)?.to_vec(),
                marks,
            ));
        }
        let (sizes, strides) = (tensor.sizes().to_vec(), tensor.strides().to_vec());
        Some(ResultSpec::View(number as u32, sizes, strides, tensor.offset(), marks))
    }

    /// Returns the object in a slot, and the index of its attribute with this name; `None` if they are unknown.
    pub(super) fn object_slot(&self, object: &Slot, name: SymbolId) -> Option<(ObjectValue, usize)> {
        let Some(Value::Object(object)) = object else {
            return None;
        };
        let class = self.start.module?.unit.class(object.class())?;
        Some((object.clone(), class.attributes.get_index_of(&name)?))
    }

    /// Returns a new object of a class; `None` if the class is unknown.
    pub(super) fn new_object(&self, class: SymbolId) -> Slot {
        let slots = self.start.module?.unit.class(class)?.attributes.len();
        Some(Value::Object(ObjectValue::new(class, vec![Value::None; slots])))
    }
}

/// Returns whether `user` may read `value` after a frame was suspended at the end of `path`, the nodes that are being run, from the outermost on.
fn is_pending(graph: &Graph, path: &[NodeId], value: ValueId, user: NodeId) -> bool {
    let Some(&at) = path.last() else { return true };
    if graph.is_before(at, user) {
        return true;
    }
    // The next iteration of a loop reads values from outside of the loop again.
    let block = match graph.definition(value) {
        Definition::Output(node, _) => graph.parent(node),
        Definition::Parameter(block, _) => Some(block),
    };
    path.iter().any(|&node| {
        let Some(&body) = graph.node_blocks(node).first() else {
            return false;
        };
        let inside = |block| std::iter::successors(Some(block), |b| graph.owner(*b).and_then(|n| graph.parent(n)));
        graph.kind(node) == symbols::PRIM_LOOP
            && graph.ancestor_in(user, body).is_some()
            && !block.is_some_and(|b| inside(b).any(|b| b == body))
    })
}

/// Returns whether two values are identical for the caller.
pub(super) fn unchanged(old: &Value, now: &Value) -> bool {
    match (old, now) {
        (Value::Tensor(a), Value::Tensor(b)) => a.is(b),
        (Value::List(a), Value::List(b)) => a.is(b),
        (Value::Dict(a), Value::Dict(b)) => a.is(b),
        (Value::Object(a), Value::Object(b)) => a.is(b),
        (Value::Tuple(a), Value::Tuple(b)) => {
            a.items.len() == b.items.len() && a.items.iter().zip(b.items.iter()).all(|(a, b)| unchanged(a, b))
        }
        (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
        (Value::None, Value::None) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Str(a), Value::Str(b)) => a == b,
        _ => false,
    }
}
