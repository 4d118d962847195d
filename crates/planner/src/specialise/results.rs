//! Results of a specialised graph: which outputs they are, and which of them share memory.
//!
//! Callers that receive what the interpreter returns ([`Returns::Eager`]) may write to a result, or to an attribute in a later call. So tensors that share
//! memory must go on sharing it: the whole storage becomes one output, and each of them is a part of it ([`ResultSpec::Part`]).

use super::state::{Returns, Specialiser};
use super::store::address;
use crate::error::{LowerError, Unsupported};
use frazil_ir::{TypeId, TypeKind};
use frazil_runtime::structured::{Affine, TensorId, TensorShape, ViewKind, ViewMap};
use frazil_runtime::value::{Key, TensorCell, Value};
use frazil_runtime::{Tensor, layout};
use frazil_tensor_ir::spec::ResultSpec;
use indexmap::IndexMap;
use rustc_hash::{FxHashMap, FxHashSet};

/// The memory that results and new values of attributes share.
#[derive(Default)]
pub(super) struct SharedMemory {
    /// The storages that several tensors share, by address, each with the output that holds it once there is one.
    outputs: FxHashMap<usize, Option<u32>>,
    /// The variables of such tensors, by address, numbered in the order of the results.
    variables: FxHashMap<usize, u32>,
}

impl Specialiser<'_> {
    /// Records which of `values`, the results and the new values of attributes, share memory.
    ///
    /// # Errors
    /// [`LowerError::Unsupported`] if a list or dictionary occurs twice: each result would be a new one.
    pub(super) fn note_shared_memory<'v>(&mut self, values: impl Iterator<Item = &'v Value>) -> Result<(), LowerError> {
        if self.returns != Returns::Eager {
            return Ok(());
        }
        let mut seen = Seen::default();
        values.for_each(|value| seen.add(value));
        if seen.twice {
            return Err(unsupported("returns a list or dictionary twice"));
        }
        let mut cells: IndexMap<usize, Vec<TensorCell>> = IndexMap::new();
        for cell in seen.tensors {
            if self.number(&Value::Tensor(cell.clone())).is_none() {
                cells.entry(storage_of(&cell)).or_default().push(cell);
            }
        }
        for shared in cells.values().filter(|cells| cells.len() > 1) {
            let Some(first) = shared.first() else { continue };
            self.track_owned(first)?;
            self.shared_memory.outputs.insert(storage_of(first), None);
        }
        Ok(())
    }

    /// Returns the part of an output that `cell` is; `None` if it shares its memory with no other result or new value of an attribute.
    ///
    /// # Errors
    /// [`LowerError::Unsupported`] if strides cannot express which part it is.
    fn part(&mut self, cell: &TensorCell) -> Result<Option<ResultSpec>, LowerError> {
        let tensor = cell.get();
        let storage = storage_of(cell);
        let known = match self.shared_memory.outputs.get(&storage) {
            Some(known) if self.store.knows(cell) => *known,
            // Constants are returned as copies.
            _ => return Ok(None),
        };
        let output = match known {
            Some(output) => output,
            None => {
                let is_dense = |t: &Tensor| layout::is_non_overlapping_and_dense(t.sizes(), t.strides());
                let Some((id, layout)) = self.store.whole_with_layout(storage).filter(|(_, t)| is_dense(t)) else {
                    return Err(unsupported("returns tensors that share memory with gaps"));
                };
                let output = self.tensors.outputs().len() as u32;
                self.output(id, &layout);
                self.shared_memory.outputs.insert(storage, Some(output));
                output
            }
        };
        if !tensor.marks().is_none() {
            return Err(unsupported("returns a view of negatives"));
        }
        let next = self.shared_memory.variables.len() as u32;
        let variable = *self.shared_memory.variables.entry(cell.address()).or_insert(next);
        Ok(Some(ResultSpec::Part {
            output,
            variable,
            sizes: tensor.sizes().to_vec(),
            strides: tensor.strides().to_vec(),
            offset: tensor.offset(),
        }))
    }

    /// Returns the description of result `index`, which is `value`. Adds the outputs that it needs.
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
                if let Some(part) = self.part(cell)? {
                    return Ok(part);
                }
                let id = self.read(cell)?;
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
}

/// The tensors in values, and whether a list or dictionary occurs twice.
#[derive(Default)]
struct Seen {
    tensors: Vec<TensorCell>,
    containers: FxHashSet<usize>,
    twice: bool,
}

impl Seen {
    fn add(&mut self, value: &Value) {
        match value {
            Value::Tensor(cell) => self.tensors.push(cell.clone()),
            Value::List(list) => {
                self.twice |= !self.containers.insert(list.address());
                list.items().iter().for_each(|item| self.add(item));
            }
            Value::Dict(dict) => {
                self.twice |= !self.containers.insert(dict.address());
                let items: Vec<Value> = dict.with(|entries| entries.values().cloned().collect());
                items.iter().for_each(|item| self.add(item));
            }
            Value::Tuple(tuple) => tuple.items.iter().for_each(|item| self.add(item)),
            _ => {}
        }
    }
}

/// Returns the address of the storage of a tensor. The tensors that a rolled loop leaves behind are rows of one tensor here: they share its storage, but no
/// elements.
fn storage_of(cell: &TensorCell) -> usize {
    address(cell.get().storage())
}

fn unsupported(reason: &str) -> LowerError {
    LowerError::Unsupported(vec![Unsupported {
        operator: "the graph".into(),
        reason: reason.into(),
        source: None,
    }])
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
