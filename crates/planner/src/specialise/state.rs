//! The state of a specialisation, and the values of arguments.

use super::loops::{Answer, LoopKey, Passed, Rolling};
use super::plans::Planned;
use super::results::SharedMemory;
use super::start::Start;
use super::store::{Store, address};
use crate::error::{LowerError, Unsupported};
use frazil_ir::{Context, Graph, NodeId, TypeKind, ValueId};
use frazil_runtime::Registry;
use frazil_runtime::import::Importer;
use frazil_runtime::interp::walk::Nesting;
use frazil_runtime::number::NumberKind;
use frazil_runtime::structured::{TensorId, TensorShape};
use frazil_runtime::value::{DictValue, Key, ListValue, ObjectValue, TensorCell, Value};
use frazil_tensor_ir::call::RuntimeCall;
use frazil_tensor_ir::graph::{Origin, TensorGraph};
use frazil_tensor_ir::spec::ArgumentSpec;
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
    /// The memory that results and new values of attributes share.
    pub(super) shared_memory: SharedMemory,
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
            shared_memory: SharedMemory::default(),
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

/// Type and, if it is known, value of a scalar.
#[derive(Clone)]
pub(super) struct Number {
    pub(super) kind: NumberKind,
    /// The value, once it has been observed.
    pub(super) value: Option<Value>,
}
