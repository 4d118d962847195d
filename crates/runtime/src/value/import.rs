//! Conversion of a module's constants to values of running programs. Shared constants become shared values.

use crate::error::TensorError;
use crate::shape::layout::contiguous_strides;
use crate::tensor::Tensor;
use crate::tensor::storage::Storage;
use crate::value::{DictValue, EnumMember, Key, ListValue, ObjectValue, TensorCell, TupleValue, Value};
use frazil_ir::nesting::with_stack;
use frazil_ir::{Constant, DeviceKind, Module, ObjectId, TensorData, symbols};
use indexmap::IndexMap;
use std::collections::HashMap;
use std::sync::Arc;

/// Converts constants to values. Equal references to a tensor, storage, list, dictionary or object become the same value, in all calls of one importer.
#[derive(Default)]
pub struct Importer {
    storages: HashMap<usize, Arc<Storage>>,
    tensors: HashMap<usize, TensorCell>,
    lists: HashMap<usize, ListValue>,
    dicts: HashMap<usize, DictValue>,
    objects: HashMap<ObjectId, ObjectValue>,
    /// Constants whose addresses are keys in this importer. They are kept alive, so that no address is reused.
    alive: Vec<Constant>,
}

impl Importer {
    /// Returns an importer without any values.
    pub fn new() -> Importer {
        Importer::default()
    }

    /// Returns the value of `c`. Objects are looked up in `module`. Without a module, they have no attributes but still distinct identities.
    ///
    /// # Errors
    /// When a tensor does not fit its storage.
    pub fn value(&mut self, c: &Constant, module: Option<&Module>) -> Result<Value, TensorError> {
        with_stack(|| self.value_of(c, module))
    }

    fn value_of(&mut self, c: &Constant, module: Option<&Module>) -> Result<Value, TensorError> {
        Ok(match c {
            Constant::None => Value::None,
            Constant::Bool(b) => Value::Bool(*b),
            Constant::Int(i) => Value::Int(*i),
            Constant::Float(f) => Value::Float(*f),
            Constant::Complex(x) => Value::Complex(*x),
            Constant::Str(s) => Value::Str(s.clone()),
            Constant::Device(d) => Value::Device(*d),
            Constant::Tensor(t) => Value::Tensor(self.tensor(t)?),
            Constant::List(l) => {
                let address = Arc::as_ptr(l) as usize;
                if let Some(list) = self.lists.get(&address) {
                    return Ok(Value::List(list.clone()));
                }
                let items = l
                    .items
                    .iter()
                    .map(|c| self.value(c, module))
                    .collect::<Result<_, _>>()?;
                let list = ListValue::new(l.element, items);
                self.lists.insert(address, list.clone());
                self.alive.push(c.clone());
                Value::List(list)
            }
            Constant::Tuple(t) => {
                let items = t
                    .items
                    .iter()
                    .map(|c| self.value(c, module))
                    .collect::<Result<Vec<_>, _>>()?;
                Value::Tuple(TupleValue {
                    ty: Some(t.ty),
                    items: items.into(),
                })
            }
            Constant::Dict(d) => {
                let address = Arc::as_ptr(d) as usize;
                if let Some(dict) = self.dicts.get(&address) {
                    return Ok(Value::Dict(dict.clone()));
                }
                let mut entries = IndexMap::new();
                for (k, v) in &d.entries {
                    entries.insert(Key(self.value(k, module)?), self.value(v, module)?);
                }
                let dict = DictValue::new(d.key, d.value, entries);
                self.dicts.insert(address, dict.clone());
                self.alive.push(c.clone());
                Value::Dict(dict)
            }
            Constant::Enum(e) => {
                let value = self.value(&e.value, module)?;
                Value::Enum(Arc::new(EnumMember {
                    class: e.class,
                    name: e.name.clone(),
                    value,
                }))
            }
            Constant::Function(name) => Value::Function(*name),
            Constant::Object(id) => match module {
                Some(module) => Value::Object(self.object(*id, module)?),
                // Nothing is known of it but which it is.
                None => {
                    let opaque = || ObjectValue::new(symbols::EMPTY, Vec::new());
                    Value::Object(self.objects.entry(*id).or_insert_with(opaque).clone())
                }
            },
        })
    }

    /// Returns the value of a constant as [`Importer::value`] does, but with new lists and dictionaries, because the program may modify them. Their tensors
    /// are shared.
    ///
    /// # Errors
    /// See [`Importer::value`].
    pub fn fresh(&mut self, c: &Constant, module: Option<&Module>) -> Result<Value, TensorError> {
        let shared = (std::mem::take(&mut self.lists), std::mem::take(&mut self.dicts));
        let value = self.value(c, module);
        (self.lists, self.dicts) = shared;
        value
    }

    /// Returns the object `id` of `module` with everything reachable from it.
    ///
    /// # Errors
    /// When a tensor does not fit its storage.
    pub fn object(&mut self, id: ObjectId, module: &Module) -> Result<ObjectValue, TensorError> {
        if let Some(object) = self.objects.get(&id) {
            return Ok(object.clone());
        }
        let data = module.object(id);
        let object = ObjectValue::new(data.class, Vec::new());
        // Known before its slots are: objects may refer to one another in circles.
        self.objects.insert(id, object.clone());
        let slots = data
            .slots
            .iter()
            .map(|c| self.value(c, Some(module)))
            .collect::<Result<Vec<_>, _>>()?;
        object.set_slots(slots);
        Ok(object)
    }

    /// Returns the objects created so far, with their ids in the module.
    pub fn objects(&self) -> impl Iterator<Item = (ObjectId, &ObjectValue)> {
        self.objects.iter().map(|(id, object)| (*id, object))
    }

    /// Returns the tensor variables created so far, each with the constant that it was created from.
    pub fn tensors(&self) -> impl Iterator<Item = (&TensorCell, &Arc<TensorData>)> {
        self.alive.iter().filter_map(|constant| {
            let data = constant.as_tensor()?;
            Some((self.tensors.get(&(Arc::as_ptr(data) as usize))?, data))
        })
    }

    /// Returns the variable for a tensor constant. The variable shares the constant's bytes until it is written.
    ///
    /// # Errors
    /// When it does not fit its storage.
    pub fn tensor(&mut self, data: &Arc<TensorData>) -> Result<TensorCell, TensorError> {
        if let Some(encoding) = data.encoding.as_deref().filter(|encoding| encoding.is_sparse()) {
            return Err(TensorError::Sparse(encoding.name()));
        }
        if data.storage.device().kind == DeviceKind::Meta && data.numel() != 0 {
            return Err(TensorError::Meta);
        }
        let address = Arc::as_ptr(data) as usize;
        if let Some(cell) = self.tensors.get(&address) {
            return Ok(cell.clone());
        }
        let storage = Arc::as_ptr(&data.storage) as usize;
        let storage = match self.storages.get(&storage) {
            Some(s) => s.clone(),
            None => {
                let s = Storage::of_whole(data.storage.owner().clone(), data.storage.len());
                self.storages.insert(storage, s.clone());
                s
            }
        };
        let tensor = Tensor::from_storage(storage, data.dtype, &data.sizes, &data.strides, data.offset)?;
        let cell = TensorCell::new(tensor.with_requires_grad(data.requires_grad));
        self.tensors.insert(address, cell.clone());
        self.alive.push(Constant::Tensor(data.clone()));
        Ok(cell)
    }
}

/// Returns a tensor as an immutable constant with a row-major copy of its elements.
pub fn tensor_to_constant(t: &Tensor) -> Result<Arc<TensorData>, TensorError> {
    let dense = t.contiguous()?;
    let bytes = dense.to_bytes()?;
    let too_large = |_| TensorError::Mismatch(t.sizes().to_vec());
    TensorData::contiguous(dense.dtype(), dense.sizes(), bytes)
        .map(Arc::new)
        .map_err(too_large)
}

/// Returns a tensor as an immutable constant with the same strides and a copy of its memory.
pub(super) fn tensor_with_strides(t: &Tensor) -> Result<Arc<TensorData>, TensorError> {
    if *t.strides() == contiguous_strides(t.sizes())[..] {
        return tensor_to_constant(t);
    }
    let too_large = || TensorError::Mismatch(t.sizes().to_vec());
    let steps = t.sizes().iter().zip(t.strides());
    let reach = match t.numel() {
        0 => 0,
        _ => steps
            .map(|(&size, &stride)| (size - 1).checked_mul(stride))
            .try_fold(1i64, |sum, step| sum.checked_add(step?))
            .ok_or_else(too_large)?,
    };
    // What has no elements may start outside of its storage.
    let first = if reach == 0 { 0 } else { t.offset() };
    let memory = tensor_to_constant(&t.as_strided(&[reach], &[1], first)?)?;
    TensorData::new(t.dtype(), t.sizes(), t.strides(), 0, memory.storage.clone())
        .map(Arc::new)
        .map_err(|_| too_large())
}
