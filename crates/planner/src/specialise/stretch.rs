//! Methods whose course depends on elements, one stretch at a time.
//!
//! Where an operator without a program looks at elements to say what it gives (`bool(t)`, `t.item()`, `nonzero`), the run stops: the
//! [`Stretch`] is everything up to there, and [`Next::Call`] the operator, which whoever drives the method runs on the tensors that
//! the stretch computes. What it gives is described as arguments are: tensors by their shapes, other values as they are. With that as one
//! more answer the run starts again and gets to the next such place. It makes the same tensors of the same numbers on its way, so that of
//! the next stretch only what no earlier one has computed remains to be compiled. [`Stretch::live`] says what is worth being
//! kept; what is missing is computed again.
//!
//! Attributes that a method changes are state: their values come in with [`Start::objects`] and go out with [`Next::Return`].

use super::control::Frame;
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
use std::collections::{BTreeSet, HashSet};

/// A method up to where it ends, or has to wait.
#[derive(Debug)]
pub struct Stretch {
    /// All tensors since the method's beginning, those of earlier stretches under the numbers that they had there. Its inputs are the
    /// tensors among the arguments, in the objects and in the answers, in this order; its outputs are those of [`Next::Return`].
    pub graph: TensorGraph,
    /// How it goes on.
    pub next: Next,
    /// Tensors that what follows may read; all are settled.
    pub live: BTreeSet<TensorId>,
    /// The first number that means another tensor once the call is answered: tensors from there on are made for the call alone.
    pub settled: TensorId,
    /// Truth values of this stretch that must be false, and the exceptions where they are not.
    pub checks: Vec<(TensorId, String)>,
}

/// How a method goes on after a stretch.
#[derive(Debug)]
pub enum Next {
    /// It returns.
    Return {
        /// One entry a result of the graph.
        results: Vec<ResultSpec>,
        /// Input tensors, and the outputs whose elements they have afterwards.
        writes: Vec<(u32, u32)>,
        /// Objects, their attributes, and what these are afterwards.
        sets: Vec<(u32, u32, ResultSpec)>,
        /// Texts of the warnings that the program emits, from its beginning on, in order.
        warnings: Vec<String>,
    },
    /// It needs the results of a call.
    Call(Box<RuntimeCall>),
}

/// Runs `graph` for `inputs` up to the first operator that waits for elements, when `answers` are what those before it gave.
///
/// # Errors
/// As [`super::specialise`].
pub fn stretch(
    graph: &Graph,
    inputs: &[ArgumentSpec],
    answers: &[Vec<ArgumentSpec>],
    start: &Start<'_>,
    registry: &Registry,
) -> Result<Stretch, LowerError> {
    let ctx = graph.ctx().clone();
    let mut s = Specialiser::new(&ctx, registry, start, Some(answers));
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
        Next::Call(_) => s.settled,
    });
    let live: BTreeSet<TensorId> = std::mem::take(&mut s.live);
    let live: BTreeSet<TensorId> = live.into_iter().filter(|&id| id < settled).collect();
    let wanted: Vec<TensorId> = match &next {
        Next::Return { .. } => s.tensors.outputs().to_vec(),
        Next::Call(call) => live.iter().chain(&call.inputs).copied().collect(),
    };
    let checks = s.checks_for(s.earlier_checks, &wanted);
    Ok(Stretch {
        graph: s.tensors,
        next,
        live,
        settled,
        checks,
    })
}

impl Specialiser<'_> {
    /// What the graph gives, and what it leaves behind.
    fn returns(&mut self, outputs: Vec<Slot>, before: &[Vec<Value>]) -> Result<Next, LowerError> {
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
        for (number, (object, before)) in (0..).zip(self.objects.clone().iter().zip(before)) {
            for (slot, (now, old)) in (0..).zip(object.slots().iter().zip(before)) {
                if !unchanged(old, now) {
                    sets.push((number, slot, self.result(now, outputs.len())?));
                }
            }
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

    /// Refuses a program that changes lists or dictionaries among its inputs: the caller sees them.
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

    /// Whether a driver may call `op` between two stretches: it changes nothing, and what it gives is no view.
    pub(super) fn can_wait(&self, op: &Operator) -> bool {
        let schema = op.schema();
        let is_new = |r: &Argument| r.alias.is_none() && r.element_alias.is_none();
        let is_functional = op.variant() == Variant::Functional && !schema.is_mutable();
        self.answers.is_some() && is_functional && schema.returns.iter().all(is_new)
    }

    /// What an operator gives that looks at elements, when that is known; else the run ends here.
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
        let call = self.host(graph, node, op, values, Vec::new())?;
        Err(self.wait_for(call).into())
    }

    /// Notes the tensors of a frame that waits which nodes still to come may read.
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
        let mut objects = HashSet::new();
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

    /// A tensor that is there already: an input, what a call gave and nobody has written since, or a view of one. Only where a driver can
    /// give such.
    pub(super) fn input_view(&self, cell: &TensorCell) -> Option<ResultSpec> {
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

    /// The object that a slot holds, and which of its attributes has this name; `None` where that is not known.
    pub(super) fn object_slot(&self, object: &Slot, name: SymbolId) -> Option<(ObjectValue, usize)> {
        let Some(Value::Object(object)) = object else {
            return None;
        };
        let class = self.start.module?.unit.class(object.class())?;
        Some((object.clone(), class.attributes.get_index_of(&name)?))
    }

    /// A new object of a class; `None` where the class is not known.
    pub(super) fn new_object(&self, class: SymbolId) -> Slot {
        let slots = self.start.module?.unit.class(class)?.attributes.len();
        Some(Value::Object(ObjectValue::new(class, vec![Value::None; slots])))
    }
}

/// Whether `user` may read `value` after a frame has waited at the end of `path`, the nodes that are being run from the outermost on.
fn is_pending(graph: &Graph, path: &[NodeId], value: ValueId, user: NodeId) -> bool {
    let Some(&at) = path.last() else { return true };
    if graph.is_before(at, user) {
        return true;
    }
    // What a loop reads of what stands outside of it, its next round reads again.
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

/// True for values of which a caller cannot tell that they are not one.
fn unchanged(old: &Value, now: &Value) -> bool {
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
