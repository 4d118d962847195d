//! The values of running programs: TorchScript's IValues.

pub mod export;
pub mod format;
pub mod import;
pub(crate) mod instance_of;
pub mod number;
pub mod python_repr;
pub mod sorting;

use crate::error::{ErrorKind, ExecError};
use crate::scalar::Scalar;
use crate::tensor::Tensor;
use frazil_ir::nesting::with_stack;
use frazil_ir::{Context, Device, Graph, SymbolId, TypeId, TypeKind, types};
use indexmap::IndexMap;
use num_complex::Complex64;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};

/// A tensor variable. `is` compares the identity of variables. Operators that change sizes or strides in place (`t_`, `squeeze_`, `resize_`) change it for
/// all owners.
#[derive(Clone)]
pub struct TensorCell(Arc<RwLock<Tensor>>);

impl TensorCell {
    /// Returns a new tensor variable.
    pub fn new(tensor: Tensor) -> TensorCell {
        TensorCell(Arc::new(RwLock::new(tensor)))
    }

    /// Returns the current tensor.
    pub fn get(&self) -> Tensor {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Calls `look` with the current tensor, without cloning it. `look` must not access the variable.
    pub(crate) fn with<R>(&self, look: impl FnOnce(&Tensor) -> R) -> R {
        look(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the tensor of the variable, for example by one with other sizes, strides or storage.
    pub fn set(&self, tensor: Tensor) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = tensor;
    }

    /// Returns true if both handles refer to the same variable.
    pub fn is(&self, other: &TensorCell) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns true if there are other references to the variable.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// Returns the address of the variable, which identifies it during its lifetime.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.0).cast::<()>() as usize
    }
}

/// The contents of a container. Their drop is iterative, because programs can nest containers arbitrarily deeply.
struct Contents<T: Default>(T);

impl<T: Default> Drop for Contents<T> {
    fn drop(&mut self) {
        with_stack(|| drop(std::mem::take(&mut self.0)));
    }
}

/// A shared, mutable list.
#[derive(Clone)]
pub struct ListValue {
    /// Type of the elements.
    pub element: TypeId,
    items: Arc<RwLock<Contents<Vec<Value>>>>,
}

impl ListValue {
    /// Returns a new list.
    pub fn new(element: TypeId, items: Vec<Value>) -> ListValue {
        ListValue {
            element,
            items: Arc::new(RwLock::new(Contents(items))),
        }
    }

    /// Returns the same list (with shared elements) under another element type.
    pub(crate) fn with_element(&self, element: TypeId) -> ListValue {
        let items = Arc::clone(&self.items);
        ListValue { element, items }
    }

    /// Returns the current elements.
    pub fn items(&self) -> Vec<Value> {
        self.with(<[Value]>::to_vec)
    }

    /// Calls `look` with the elements.
    pub fn with<R>(&self, look: impl FnOnce(&[Value]) -> R) -> R {
        look(&self.items.read().unwrap_or_else(PoisonError::into_inner).0)
    }

    /// Calls `change` with the elements, mutably.
    pub fn change<R>(&self, change: impl FnOnce(&mut Vec<Value>) -> R) -> R {
        change(&mut self.items.write().unwrap_or_else(PoisonError::into_inner).0)
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.with(<[Value]>::len)
    }

    /// Returns true if there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if both handles refer to the same list.
    pub fn is(&self, other: &ListValue) -> bool {
        Arc::ptr_eq(&self.items, &other.items)
    }

    /// Returns the address of the list, which identifies it during its lifetime.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.items).cast::<()>() as usize
    }
}

/// A dictionary's key. Tensors are keys by identity.
#[derive(Debug, Clone)]
pub struct Key(pub Value);

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        match (&self.0, &other.0) {
            (Value::Tensor(a), Value::Tensor(b)) => a.is(b),
            (a, b) => a.equals(b).unwrap_or(false),
        }
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match &self.0 {
            Value::Int(i) => i.hash(state),
            Value::Bool(b) => b.hash(state),
            // -0.0 equals 0.0 and must hash alike.
            Value::Float(f) => (f + 0.0).to_bits().hash(state),
            Value::Complex(c) => ((c.re + 0.0).to_bits(), (c.im + 0.0).to_bits()).hash(state),
            Value::Str(s) => s.hash(state),
            Value::Tensor(t) => t.address().hash(state),
            _ => 0.hash(state),
        }
    }
}

/// A shared, mutable dictionary in order of insertion.
#[derive(Clone)]
pub struct DictValue {
    /// Type of the keys.
    pub key: TypeId,
    /// Type of the values.
    pub value: TypeId,
    entries: Arc<RwLock<Contents<IndexMap<Key, Value>>>>,
}

impl DictValue {
    /// Returns a new dictionary.
    pub fn new(key: TypeId, value: TypeId, entries: IndexMap<Key, Value>) -> DictValue {
        DictValue {
            key,
            value,
            entries: Arc::new(RwLock::new(Contents(entries))),
        }
    }

    /// Returns the same dictionary (with shared entries) under other types of keys and values.
    pub(crate) fn with_types(&self, key: TypeId, value: TypeId) -> DictValue {
        let entries = Arc::clone(&self.entries);
        DictValue { key, value, entries }
    }

    /// Calls `look` with the entries.
    pub fn with<R>(&self, look: impl FnOnce(&IndexMap<Key, Value>) -> R) -> R {
        look(&self.entries.read().unwrap_or_else(PoisonError::into_inner).0)
    }

    /// Calls `change` with the entries, mutably.
    pub fn change<R>(&self, change: impl FnOnce(&mut IndexMap<Key, Value>) -> R) -> R {
        change(&mut self.entries.write().unwrap_or_else(PoisonError::into_inner).0)
    }

    /// Returns true if both handles refer to the same dictionary.
    pub fn is(&self, other: &DictValue) -> bool {
        Arc::ptr_eq(&self.entries, &other.entries)
    }

    /// Returns the address of the dictionary, which identifies it during its lifetime.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.entries).cast::<()>() as usize
    }
}

/// A shared object with mutable slots: a module or a class instance.
#[derive(Clone)]
pub struct ObjectValue(Arc<ObjectData>);

struct ObjectData {
    class: SymbolId,
    slots: RwLock<Contents<Vec<Value>>>,
}

impl ObjectValue {
    /// Returns a new object of the class with qualified name `class`. There is one slot per attribute.
    pub fn new(class: SymbolId, slots: Vec<Value>) -> ObjectValue {
        ObjectValue(Arc::new(ObjectData {
            class,
            slots: RwLock::new(Contents(slots)),
        }))
    }

    /// Returns the qualified name of the class.
    pub fn class(&self) -> SymbolId {
        self.0.class
    }

    /// Returns the value in slot `index`.
    pub fn slot(&self, index: usize) -> Option<Value> {
        self.0
            .slots
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .0
            .get(index)
            .cloned()
    }

    /// Sets slot `index`; returns false if there is no such slot.
    pub fn set_slot(&self, index: usize, value: Value) -> bool {
        match self
            .0
            .slots
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .0
            .get_mut(index)
        {
            Some(slot) => {
                *slot = value;
                true
            }
            None => false,
        }
    }

    /// Replaces all slots, which allows objects to refer to one another cyclically.
    pub fn set_slots(&self, slots: Vec<Value>) {
        *self.0.slots.write().unwrap_or_else(PoisonError::into_inner) = Contents(slots);
    }

    /// Returns true if both handles refer to the same object.
    pub fn is(&self, other: &ObjectValue) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the address of the object, which identifies it during its lifetime.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.0).cast::<()>() as usize
    }

    /// Returns the current values of all slots.
    pub fn slots(&self) -> Vec<Value> {
        self.0.slots.read().unwrap_or_else(PoisonError::into_inner).0.clone()
    }
}

/// A tuple, or a NamedTuple if its type is one.
#[derive(Clone)]
pub struct TupleValue {
    /// The tuple's type; `None` for a plain tuple, whose type follows from its elements.
    pub ty: Option<TypeId>,
    /// Elements.
    pub items: Arc<[Value]>,
}

/// A member of an enumeration.
#[derive(Clone)]
pub struct EnumMember {
    /// Qualified name of the enumeration.
    pub class: SymbolId,
    /// Name of the member.
    pub name: Arc<str>,
    /// The value of the member.
    pub value: Value,
}

/// The result of `fork`: a value that is available once the forked graph has run.
#[derive(Clone)]
pub struct FutureValue(Arc<FutureState>);

struct FutureState {
    progress: Mutex<Progress>,
    done: Condvar,
}

enum Progress {
    /// The graph to run and its inputs; `None` once a thread has started to run it.
    Pending(Option<(Arc<Graph>, Vec<Value>)>),
    Done(Result<Value, ExecError>),
}

impl FutureValue {
    fn with(progress: Progress) -> FutureValue {
        FutureValue(Arc::new(FutureState {
            progress: Mutex::new(progress),
            done: Condvar::new(),
        }))
    }

    /// Returns a future without a result, to be [completed](Self::complete) by the caller.
    pub fn pending() -> FutureValue {
        FutureValue::with(Progress::Pending(None))
    }

    /// Returns a future that is completed by a thread that runs `graph` on `inputs`.
    pub(crate) fn of_work(graph: Arc<Graph>, inputs: Vec<Value>) -> FutureValue {
        FutureValue::with(Progress::Pending(Some((graph, inputs))))
    }

    /// Returns a completed future.
    pub fn done(result: Result<Value, ExecError>) -> FutureValue {
        FutureValue::with(Progress::Done(result))
    }

    /// Returns graph and inputs to the first caller, which has to [complete](Self::complete) the future; `None` to all others.
    pub(crate) fn claim(&self) -> Option<(Arc<Graph>, Vec<Value>)> {
        match &mut *self.0.progress.lock().unwrap_or_else(PoisonError::into_inner) {
            Progress::Pending(work) => work.take(),
            Progress::Done(_) => None,
        }
    }

    /// Returns true if there is a result.
    pub(crate) fn is_done(&self) -> bool {
        matches!(
            *self.0.progress.lock().unwrap_or_else(PoisonError::into_inner),
            Progress::Done(_)
        )
    }

    /// Sets the result if there is none, and wakes waiting threads.
    pub fn complete(&self, result: Result<Value, ExecError>) {
        let mut progress = self.0.progress.lock().unwrap_or_else(PoisonError::into_inner);
        if let Progress::Pending(_) = *progress {
            *progress = Progress::Done(result);
            self.0.done.notify_all();
        }
    }

    /// Waits for the result.
    ///
    /// # Errors
    /// The exception of the work, with its source locations.
    pub fn wait(&self) -> Result<Value, ExecError> {
        let mut progress = self.0.progress.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Progress::Done(result) = &*progress {
                return result.clone();
            }
            let waited = self.0.done.wait_timeout(progress, frazil_limits::PAUSE);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
            frazil_limits::check().map_err(|exceeded| ExecError::new(ErrorKind::Exceeded(exceeded)))?;
            progress = self.0.progress.lock().unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A value of a running program. Cloning is cheap; containers, tensors and objects are shared.
#[derive(Clone, Default)]
pub enum Value {
    /// `None`; also the result of `prim::Uninitialized`.
    #[default]
    None,
    /// A bool.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A complex number.
    Complex(Complex64),
    /// A string.
    Str(Arc<str>),
    /// A device.
    Device(Device),
    /// A tensor.
    Tensor(TensorCell),
    /// A list.
    List(ListValue),
    /// A tuple.
    Tuple(TupleValue),
    /// A dictionary.
    Dict(DictValue),
    /// A module or class instance.
    Object(ObjectValue),
    /// A member of an enumeration.
    Enum(Arc<EnumMember>),
    /// The result of `fork`.
    Future(FutureValue),
    /// A function, by qualified name.
    Function(SymbolId),
}

impl Value {
    /// Returns a string.
    pub fn str(text: impl AsRef<str>) -> Value {
        Value::Str(Arc::from(text.as_ref()))
    }

    /// Returns a list of integers.
    pub fn ints(items: impl IntoIterator<Item = i64>) -> Value {
        Value::List(ListValue::new(types::INT, items.into_iter().map(Value::Int).collect()))
    }

    /// Returns a list of tensors.
    pub fn tensors(items: impl IntoIterator<Item = Tensor>) -> Value {
        Value::List(ListValue::new(
            types::TENSOR,
            items.into_iter().map(Value::from).collect(),
        ))
    }

    /// Returns a plain tuple.
    pub fn tuple(items: Vec<Value>) -> Value {
        Value::Tuple(TupleValue {
            ty: None,
            items: items.into(),
        })
    }

    /// Returns the tensor, if the value is one.
    pub fn as_tensor(&self) -> Option<Tensor> {
        match self {
            Value::Tensor(t) => Some(t.get()),
            _ => None,
        }
    }

    /// Returns the integer, if the value is one. Bools are not integers.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Value::Int(i) => Some(*i),
            _ => None,
        }
    }

    /// Returns the bool, if the value is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(b) => Some(*b),
            _ => None,
        }
    }

    /// Returns the number, if the value is one.
    pub fn as_scalar(&self) -> Option<Scalar> {
        match self {
            Value::Bool(b) => Some(Scalar::Bool(*b)),
            Value::Int(i) => Some(Scalar::Int(*i)),
            Value::Float(f) => Some(Scalar::Float(*f)),
            Value::Complex(c) => Some(Scalar::Complex(*c)),
            _ => None,
        }
    }

    /// Returns the string, if the value is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Str(s) => Some(s),
            _ => None,
        }
    }

    /// Returns the elements, if the value is a list or tuple.
    pub fn items(&self) -> Option<Vec<Value>> {
        match self {
            Value::List(l) => Some(l.items()),
            Value::Tuple(t) => Some(t.items.to_vec()),
            _ => None,
        }
    }

    /// Returns the result of Python's `is`: identity for mutable values, equality for `None`.
    pub fn is(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Tensor(a), Value::Tensor(b)) => a.is(b),
            (Value::List(a), Value::List(b)) => a.is(b),
            (Value::Dict(a), Value::Dict(b)) => a.is(b),
            (Value::Object(a), Value::Object(b)) => a.is(b),
            (Value::Tuple(a), Value::Tuple(b)) => Arc::ptr_eq(&a.items, &b.items),
            // Every place of the program that names a member has a box of its own for it, as in PyTorch.
            (Value::Enum(a), Value::Enum(b)) => Arc::ptr_eq(a, b),
            (Value::Tensor(_) | Value::List(_) | Value::Dict(_) | Value::Object(_), _) => false,
            _ => self.equals(other).unwrap_or(false),
        }
    }

    /// Returns the result of Python's `==`. Tensors are equal if all their elements are; `None` if the comparison of two tensors is not a single bool.
    pub fn equals(&self, other: &Value) -> Option<bool> {
        let same = |x: &Value, y: &Value| with_stack(|| x.equals(y).unwrap_or(false));
        let all = |a: &[Value], b: &[Value]| a.len() == b.len() && a.iter().zip(b).all(|(x, y)| same(x, y));
        Some(match (self, other) {
            (Value::None, Value::None) => true,
            (Value::Str(a), Value::Str(b)) => a == b,
            (Value::Device(a), Value::Device(b)) => a == b,
            (Value::Tensor(a), Value::Tensor(b)) => {
                let (a, b) = (a.get(), b.get());
                a.sizes() == b.sizes() && a.to_f64_vec() == b.to_f64_vec()
            }
            (Value::List(a), Value::List(b)) => a.is(b) || all(&a.items(), &b.items()),
            (Value::Tuple(a), Value::Tuple(b)) => all(&a.items, &b.items),
            (Value::Dict(a), Value::Dict(b)) => {
                let (x, y) = (a.with(IndexMap::clone), b.with(IndexMap::clone));
                x.len() == y.len() && x.iter().all(|(k, v)| y.get(k).is_some_and(|w| same(v, w)))
            }
            (Value::Object(a), Value::Object(b)) => a.is(b),
            (Value::Enum(a), Value::Enum(b)) => a.class == b.class && a.name == b.name,
            (Value::Function(a), Value::Function(b)) => a == b,
            _ => match (self.as_scalar(), other.as_scalar()) {
                (Some(Scalar::Complex(a)), Some(b)) | (Some(b), Some(Scalar::Complex(a))) => a == b.as_complex(),
                (Some(a @ Scalar::Float(_)), Some(b)) | (Some(b), Some(a @ Scalar::Float(_))) => {
                    a.as_f64() == b.as_f64()
                }
                (Some(a), Some(b)) => a.as_i64() == b.as_i64(),
                _ => false,
            },
        })
    }

    /// Returns the TorchScript type of the value.
    pub fn ty(&self, ctx: &Context) -> TypeId {
        match self {
            Value::None => types::NONE,
            Value::Bool(_) => types::BOOL,
            Value::Int(_) => types::INT,
            Value::Float(_) => types::FLOAT,
            Value::Complex(_) => types::COMPLEX,
            Value::Str(_) => types::STR,
            Value::Device(_) => types::DEVICE,
            Value::Tensor(_) => types::TENSOR,
            Value::List(l) => ctx.list_of(l.element),
            Value::Tuple(t) => t.ty.unwrap_or_else(|| {
                let elements: Vec<TypeId> = t.items.iter().map(|v| v.ty(ctx)).collect();
                ctx.tuple_of(&elements)
            }),
            Value::Dict(d) => ctx.dict_of(d.key, d.value),
            Value::Object(o) => ctx.type_of_kind(TypeKind::Class(o.class())),
            Value::Enum(e) => ctx.type_of_kind(TypeKind::Enum(e.class)),
            Value::Future(_) => ctx.type_of_kind(TypeKind::Future(types::ANY)),
            Value::Function(name) => ctx.type_of_kind(TypeKind::Function(*name)),
        }
    }
}

impl From<Tensor> for Value {
    fn from(t: Tensor) -> Value {
        Value::Tensor(TensorCell::new(t))
    }
}

impl From<bool> for Value {
    fn from(b: bool) -> Value {
        Value::Bool(b)
    }
}

impl From<i64> for Value {
    fn from(i: i64) -> Value {
        Value::Int(i)
    }
}

impl From<f64> for Value {
    fn from(f: f64) -> Value {
        Value::Float(f)
    }
}

impl From<Scalar> for Value {
    fn from(s: Scalar) -> Value {
        match s {
            Scalar::Bool(b) => Value::Bool(b),
            Scalar::Int(i) => Value::Int(i),
            Scalar::Float(f) => Value::Float(f),
            Scalar::Complex(c) => Value::Complex(c),
        }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::None => f.write_str("None"),
            Value::Bool(b) => write!(f, "{b:?}"),
            Value::Int(i) => write!(f, "{i}"),
            Value::Float(x) => write!(f, "{x:?}"),
            Value::Complex(c) => write!(f, "{c}"),
            Value::Str(s) => write!(f, "{s:?}"),
            Value::Device(d) => write!(f, "{d}"),
            Value::Tensor(t) => write!(f, "{:?}", t.get()),
            Value::List(l) => f.debug_list().entries(l.items()).finish(),
            Value::Tuple(t) => write!(f, "Tuple{:?}", t.items),
            Value::Dict(d) => d.with(|e| f.debug_map().entries(e.iter().map(|(k, v)| (&k.0, v))).finish()),
            // Slots may lead back here.
            Value::Object(_) => f.write_str("Object"),
            Value::Enum(e) => write!(f, "Enum({})", e.name),
            Value::Future(_) => f.write_str("Future"),
            Value::Function(_) => f.write_str("Function"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program can build a linked list of any length.
    #[test]
    fn long_chains_are_dropped_and_compared_on_a_small_stack() {
        let work = || {
            let class = frazil_ir::symbols::EMPTY;
            let chain = |levels: usize| {
                (0..levels).fold(Value::None, |next, level| match level % 4 {
                    0 => Value::Object(ObjectValue::new(class, vec![next])),
                    1 => Value::tuple(vec![next]),
                    2 => Value::List(ListValue::new(types::ANY, vec![next])),
                    _ => {
                        let entries = IndexMap::from([(Key(Value::Int(1)), next)]);
                        Value::Dict(DictValue::new(types::INT, types::ANY, entries))
                    }
                })
            };
            drop(chain(400_000));
            let lists = |levels: usize| {
                (0..levels).fold(Value::None, |inner, _| {
                    Value::List(ListValue::new(types::ANY, vec![inner]))
                })
            };
            assert_eq!(lists(20_000).equals(&lists(20_000)), Some(true));
            assert_eq!(lists(20_000).equals(&lists(20_001)), Some(false));
        };
        let thread = std::thread::Builder::new().stack_size(256 << 10);
        thread.spawn(work).unwrap().join().unwrap();
    }
}
