//! The state of a specialisation, and the values of arguments and results.

use super::loops::{Answer, LoopKey, Passed, Rolling};
use super::plans::Planned;
use super::start::Start;
use super::store::{Store, address};
use crate::error::{LowerError, Unsupported};
use frazil_ir::{Context, Graph, NodeId, TypeId, TypeKind, ValueId};
use frazil_runtime::import::Importer;
use frazil_runtime::interp::walk::Nesting;
use frazil_runtime::number::NumberKind;
use frazil_runtime::structured::{Affine, TensorId, TensorShape, ViewKind, ViewMap};
use frazil_runtime::value::{DictValue, Key, ListValue, ObjectValue, TensorCell, Value};
use frazil_runtime::{Registry, Tensor, layout};
use frazil_tensor_ir::call::RuntimeCall;
use frazil_tensor_ir::graph::{Origin, TensorGraph};
use frazil_tensor_ir::spec::{ArgumentSpec, ResultSpec};
use indexmap::IndexMap;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::sync::Arc;
/// A value of the run: `None` when it depends on something unsupported.
pub(super) type Slot = Option<Value>;

/// The kind of the tensors in results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Returns {
    /// New row-major tensors.
    New,
    /// New tensors with the strides that the interpreter gives them.
    Strided,
    /// As in the interpreter: inputs and views of inputs too.
    Eager,
}

/// The state of a specialisation.
pub(super) struct Specialiser<'a> {
    pub(super) start: &'a Start<'a>,
    /// The observed results of the calls at graph breaks; `None` if there must be no graph break.
    pub(super) answers: Option<&'a [Answer]>,
    pub(super) returns: Returns,
    /// The number of observed results that have been used, and the number of checks at that time.
    pub(super) answered: usize,
    pub(super) earlier_checks: usize,
    /// Number of tensors in the stable prefix: those before the tensors that were appended for the call at the graph break.
    pub(super) settled: usize,
    /// The call at the graph break, and the tensors that may be read after it.
    pub(super) waiting: Option<RuntimeCall>,
    pub(super) live: BTreeSet<TensorId>,
    /// The iteration of a loop that is being specialised.
    pub(super) rolling: Option<Rolling>,
    /// The rolled loops of this specialisation, in order. At each of them, a segment ends.
    pub(super) passed: Vec<Passed>,
    /// Loops that cannot stay rolled.
    pub(super) unrolled: FxHashSet<LoopKey>,
    /// The variables of the input tensors.
    pub(super) inputs: Vec<TensorCell>,
    /// Addresses of the storages of inputs that are not row-major.
    pub(super) strided: FxHashSet<usize>,
    /// The objects at the start of the method.
    pub(super) objects: Vec<ObjectValue>,
    /// Lists and dictionaries that the caller can access, and their original items.
    pub(super) shared: Vec<(Value, Vec<Value>)>,
    /// Variables that represent run-time scalars, by address.
    pub(super) numbers: FxHashMap<usize, Number>,
    pub(super) registry: &'a Registry,
    pub(super) ctx: &'a Arc<Context>,
    pub(super) tensors: TensorGraph,
    pub(super) store: Store,
    pub(super) importer: Importer,
    /// Addresses of the storages of the graph's constants, which must not be written.
    pub(super) constants: FxHashSet<usize>,
    pub(super) unsupported: Vec<Unsupported>,
    /// Bools that the code computes, with the exception that each raises if it is true.
    pub(super) checks: Vec<(TensorId, String)>,
    /// Texts of the warnings emitted so far.
    pub(super) warnings: Vec<String>,
    /// Number of nodes and iterations run so far.
    pub(super) steps: usize,
    pub(super) nesting: Nesting,
    /// Plans of composites and forks by the address of their graph.
    pub(super) plans: FxHashMap<usize, Arc<Planned>>,
    /// Number of graphs on the stack of executing graphs that write tensors or expose their addresses, themselves or in a graph that they fork.
    pub(super) telling: usize,
}

impl<'a> Specialiser<'a> {
    pub(super) fn new(
        ctx: &'a Arc<Context>,
        registry: &'a Registry,
        start: &'a Start<'a>,
        answers: Option<&'a [Answer]>,
    ) -> Specialiser<'a> {
        Specialiser {
            start,
            answers,
            returns: answers.map_or(Returns::New, |_| Returns::Eager),
            answered: 0,
            earlier_checks: 0,
            settled: 0,
            waiting: None,
            live: BTreeSet::new(),
            rolling: None,
            passed: Vec::new(),
            unrolled: FxHashSet::default(),
            inputs: Vec::new(),
            strided: FxHashSet::default(),
            objects: Vec::new(),
            shared: Vec::new(),
            numbers: FxHashMap::default(),
            registry,
            ctx,
            tensors: TensorGraph::new(),
            store: Store::default(),
            importer: Importer::new(),
            constants: FxHashSet::default(),
            unsupported: Vec::new(),
            checks: Vec::new(),
            warnings: Vec::new(),
            steps: 0,
            nesting: Nesting::default(),
            plans: FxHashMap::default(),
            telling: 0,
        }
    }
}

impl Specialiser<'_> {
    pub(super) fn arguments(&mut self, graph: &Graph, inputs: &[ArgumentSpec]) -> Result<Vec<Slot>, LowerError> {
        let object_class = |v: &ValueId| match self.ctx.type_kind(graph.ty(*v)) {
            TypeKind::Class(name) => Some(name),
            _ => None,
        };
        let classes: Vec<_> = graph.inputs().iter().map(object_class).collect();
        let expected = classes.iter().filter(|c| c.is_none()).count();
        if expected != inputs.len() {
            return Err(LowerError::InputCount {
                expected,
                given: inputs.len(),
            });
        }
        let mut rest = inputs.iter();
        let mut arguments = Vec::new();
        for class in classes {
            arguments.push(match (class, rest.as_slice().first()) {
                (Some(_), _) if !self.objects.is_empty() => self.objects.first().cloned().map(Value::Object),
                (Some(name), _) => Some(Value::Object(ObjectValue::new(name, Vec::new()))),
                (None, Some(spec)) => {
                    rest.next();
                    Some(self.input(spec, true)?)
                }
                (None, None) => None,
            });
        }
        Ok(arguments)
    }

    /// Returns the value that `spec` describes. `outer` is set for values of the caller, to which writes are visible.
    pub(super) fn input(&mut self, spec: &ArgumentSpec, outer: bool) -> Result<Value, LowerError> {
        let all = |s: &mut Self, items: &[ArgumentSpec]| {
            items.iter().map(|i| s.input(i, outer)).collect::<Result<Vec<_>, _>>()
        };
        Ok(match spec {
            ArgumentSpec::Tensor(shape) => {
                let id = self.tensors.input(shape.clone());
                let cell = self.store.fresh(id, shape, outer)?;
                self.inputs.push(cell.clone());
                Value::Tensor(cell)
            }
            ArgumentSpec::Strided(shape, strides) => {
                let id = self.tensors.input(shape.clone());
                let cell = self.store.strided_input(id, shape, strides, outer)?;
                self.strided.insert(address(cell.get().storage()));
                self.inputs.push(cell.clone());
                Value::Tensor(cell)
            }
            ArgumentSpec::Number(kind) => {
                let shape = TensorShape {
                    dtype: kind.dtype(),
                    sizes: Default::default(),
                };
                let id = self.tensors.input(shape.clone());
                let cell = self.store.fresh(id, &shape, false)?;
                self.inputs.push(cell.clone());
                self.note_number(&cell, *kind);
                Value::Tensor(cell)
            }
            ArgumentSpec::Same(number) => {
                let cell = self.inputs.get(*number as usize);
                Value::Tensor(
                    cell.cloned()
                        .ok_or_else(|| LowerError::Malformed("an unknown input".into()))?,
                )
            }
            ArgumentSpec::Object(number) => {
                let object = self.objects.get(*number as usize);
                Value::Object(
                    object
                        .cloned()
                        .ok_or_else(|| LowerError::Malformed("an unknown object".into()))?,
                )
            }
            ArgumentSpec::Value(v) => {
                self.note_constants(v);
                v.clone()
            }
            ArgumentSpec::List(element, items) => {
                let items = all(self, items)?;
                let list = Value::List(ListValue::new(*element, items.clone()));
                if outer {
                    self.shared.push((list.clone(), items));
                }
                list
            }
            ArgumentSpec::Tuple(items) => Value::tuple(all(self, items)?),
            ArgumentSpec::Dict(key, value, entries) => {
                let entry = |(k, v): &(Key, ArgumentSpec)| Ok((k.clone(), self.input(v, outer)?));
                let entries: Result<IndexMap<Key, Value>, LowerError> = entries.iter().map(entry).collect();
                let entries = entries?;
                let items = entries.values().cloned().collect();
                let dict = Value::Dict(DictValue::new(*key, *value, entries));
                if outer {
                    self.shared.push((dict.clone(), items));
                }
                dict
            }
        })
    }

    pub(super) fn result(&mut self, value: &Value, index: usize) -> Result<ResultSpec, LowerError> {
        let all = |s: &mut Self, items: &[Value]| items.iter().map(|v| s.result(v, index)).collect::<Result<_, _>>();
        Ok(match value {
            Value::Tensor(cell) => {
                if let Some(number) = self.number_result(value)? {
                    return Ok(number);
                }
                if let Some(view) = self.input_view(cell) {
                    return Ok(view);
                }
                let id: TensorId = self.read(cell)?;
                self.output(id, &cell.get())
            }
            Value::List(l) if l.with(|items| items.iter().any(has_parts)) => {
                ResultSpec::List(l.element, all(self, &l.items())?)
            }
            Value::Tuple(t) if t.items.iter().any(has_parts) => {
                let is_named = |ty: &TypeId| matches!(self.ctx.type_kind(*ty), TypeKind::NamedTuple(..));
                ResultSpec::Tuple(t.ty.filter(is_named), all(self, &t.items)?)
            }
            Value::Dict(d) => {
                let entries: Vec<(Key, Value)> = d.with(|e| e.iter().map(|(k, v)| (k.clone(), v.clone())).collect());
                let entry = |(k, v): (Key, Value)| Ok((k, self.result(&v, index)?));
                let entries: Result<_, LowerError> = entries.into_iter().map(entry).collect();
                ResultSpec::Dict(d.key, d.value, entries?)
            }
            Value::Object(_) | Value::Future(_) => return Err(LowerError::Result { index }),
            other => ResultSpec::Value(other.clone()),
        })
    }

    /// Makes `id`, which has the elements of `tensor`, an output. If callers need the order in which `tensor` stores the elements, and it has no gaps, the
    /// output has this order.
    pub(super) fn output(&mut self, id: TensorId, tensor: &Tensor) -> ResultSpec {
        let number = self.tensors.outputs().len() as u32;
        let (sizes, strides) = (tensor.sizes(), tensor.strides());
        let is_permuted = !tensor.is_contiguous() && layout::is_non_overlapping_and_dense(sizes, strides);
        if self.returns == Returns::New || !is_permuted {
            self.tensors.add_output(id);
            return ResultSpec::Tensor(number);
        }
        let rank = sizes.len();
        let mut order: Vec<usize> = (0..rank).collect();
        order.sort_by_key(|&d| std::cmp::Reverse(strides[d]));
        let mut map = vec![Affine::constant(rank, 0); rank];
        for (place, &d) in order.iter().enumerate() {
            map[d] = Affine::index(rank, place);
        }
        let stored = TensorShape {
            dtype: tensor.dtype(),
            sizes: order.iter().map(|&d| sizes[d]).collect(),
        };
        let view = ViewMap {
            tensor: id,
            kind: ViewKind::Affine(map),
            output: stored,
        };
        let id = self.tensors.view(view, Vec::new());
        self.tensors.add_output(id);
        ResultSpec::Strided(number, sizes.to_vec(), strides.to_vec())
    }

    pub(super) fn refuse(&mut self, graph: &Graph, node: NodeId, operator: &str, reason: impl Into<String>) {
        let unsupported = Unsupported {
            operator: operator.to_owned(),
            reason: reason.into(),
            source: self.place(graph, node),
        };
        if !self.unsupported.contains(&unsupported) {
            self.unsupported.push(unsupported);
        }
    }

    pub(super) fn place(&self, graph: &Graph, node: NodeId) -> Option<String> {
        graph.source_range(node).map(|r| r.display(self.ctx).to_string())
    }

    pub(super) fn origin(&self, graph: &Graph, node: NodeId) -> Vec<Origin> {
        vec![Origin {
            operator: graph.kind_name(node).into(),
            source: self.place(graph, node).map(Arc::from),
        }]
    }
}

/// Returns true for values that contain other values.
fn has_parts(value: &Value) -> bool {
    match value {
        Value::Tensor(_) | Value::Object(_) | Value::Future(_) => true,
        Value::List(l) => l.with(|items| items.iter().any(has_parts)),
        Value::Tuple(t) => t.items.iter().any(has_parts),
        Value::Dict(d) => d.with(|entries| entries.values().any(has_parts)),
        _ => false,
    }
}

/// Type and, if it is known, value of a scalar.
#[derive(Clone)]
pub(super) struct Number {
    pub(super) kind: NumberKind,
    /// The value, once it has been observed.
    pub(super) value: Option<Value>,
}
