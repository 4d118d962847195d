//! Conversion of values of running programs to constants of modules: the inverse of [`import`](crate::value::import). Identities are preserved.

use crate::error::TensorError;
use crate::tensor::Tensor;
use crate::tensor::storage::{SharedBytes, Storage};
use crate::value::import::{Importer, tensor_with_strides};
use crate::value::{ObjectValue, TensorCell, Value};
use frazil_ir::nesting::{MAX_NESTING, with_stack};
use frazil_ir::{
    Constant, DictConstant, EnumConstant, ListConstant, Module, Object, ObjectId, TensorData, TupleConstant, types,
};
use std::collections::HashMap;
use std::sync::Arc;
use thiserror::Error;

/// The reason why a value cannot be a constant.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The value is a future, which exists only in the running program.
    #[error("a future cannot be kept beyond the program that made it")]
    Future,
    /// The value is an object, and the constant has no module to contain it.
    #[error("an object of class instances needs a module to live in")]
    Object,
    /// The value has containers that are nested too deeply, or cyclic.
    #[error("containers are nested more than {MAX_NESTING} deep")]
    Depth,
    /// The elements of a tensor are not within its storage.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

/// Converts values to constants. A tensor, storage, list or dictionary becomes one constant, across all calls of the same exporter. Bytes are shared and not
/// copied. Later writes of the program do not change the constants.
#[derive(Default)]
pub struct Exporter {
    storages: HashMap<usize, Arc<frazil_ir::Storage>>,
    /// Exported tensors, lists and dictionaries, keyed by the address of the value.
    done: HashMap<usize, Constant>,
    /// The constants from which tensor variables were imported, keyed by [`TensorCell::address`].
    origins: HashMap<usize, Arc<TensorData>>,
    /// Whether each tensor gets a storage of its own with its elements alone, in place of the storage that it may share.
    is_compact: bool,
    /// Whether the values are those of a program. A program's own tensors never require gradients.
    of_program: bool,
    objects: HashMap<ObjectId, ObjectValue>,
    /// Id of each exported object, keyed by [`ObjectValue::address`].
    numbers: HashMap<usize, ObjectId>,
    /// Objects whose current state has not been stored in the module yet, in the order of their numbers.
    pending: Vec<ObjectId>,
    /// Id that the next new object gets.
    next_object: u32,
    /// Values whose addresses are keys in this exporter. They are kept alive, so that no address is reused.
    alive: Vec<Value>,
}

impl Exporter {
    /// Returns an exporter without any values.
    pub fn new() -> Exporter {
        Exporter::default()
    }

    /// Returns the constant of a value without objects.
    ///
    /// # Errors
    /// When it contains a future or an object, or is nested too deeply.
    pub fn constant(&mut self, value: &Value) -> Result<Constant, ExportError> {
        self.export(value, false, 0)
    }

    /// Returns an exporter for values of a program on the objects that `importer` created for `module`. These objects keep their ids, and new objects get the
    /// next ids. An unmodified tensor is exported as its original constant.
    pub fn of_module(module: &Module, importer: &Importer) -> Exporter {
        let mut exporter = Exporter {
            next_object: module.object_count() as u32,
            of_program: true,
            ..Exporter::default()
        };
        for (cell, data) in importer.tensors() {
            exporter.origins.insert(cell.address(), data.clone());
            exporter.alive.push(Value::Tensor(cell.clone()));
        }
        for (id, object) in importer.objects() {
            exporter.add_object(id, object);
        }
        // A table without order gave them.
        exporter.pending.sort_unstable();
        exporter
    }

    /// Returns the constant of a value that may contain objects, which [`objects`](Self::objects) then stores in the
    /// module.
    ///
    /// # Errors
    /// When it contains a future, or is nested too deeply.
    pub fn value(&mut self, value: &Value) -> Result<Constant, ExportError> {
        self.export(value, true, 0)
    }

    /// Returns the object with id `id`.
    pub fn find_object(&self, id: ObjectId) -> Option<&ObjectValue> {
        self.objects.get(&id)
    }

    /// Returns the id of `object`. An object without one gets the next free id.
    pub fn object(&mut self, object: &ObjectValue) -> ObjectId {
        if let Some(&id) = self.numbers.get(&object.address()) {
            return id;
        }
        let id = ObjectId::from_u32(self.next_object);
        self.next_object += 1;
        self.add_object(id, object);
        id
    }

    fn add_object(&mut self, id: ObjectId, object: &ObjectValue) {
        self.numbers.insert(object.address(), id);
        self.objects.insert(id, object.clone());
        self.pending.push(id);
    }

    /// Stores the current state of all objects in `module`: objects from the importer, and objects reachable from them. Each object is stored once, by the
    /// first call after it was encountered.
    ///
    /// # Errors
    /// See [`value`](Self::value).
    pub fn objects(&mut self, module: &mut Module) -> Result<(), ExportError> {
        let mut done = 0;
        while let Some(&id) = self.pending.get(done) {
            done += 1;
            let Some(object) = self.objects.get(&id).cloned() else {
                continue;
            };
            let values = object.slots();
            let slots = values.iter().map(|v| self.value(v)).collect::<Result<_, _>>()?;
            let class = object.class();
            if (id.as_u32() as usize) < module.object_count() {
                module.object_mut(id).slots = slots;
            } else {
                module.add_object(Object { class, slots });
            }
        }
        self.pending.clear();
        Ok(())
    }

    fn export(&mut self, value: &Value, objects: bool, depth: usize) -> Result<Constant, ExportError> {
        if depth >= MAX_NESTING {
            return Err(ExportError::Depth);
        }
        let address = match value {
            Value::Tensor(t) => Some(t.address()),
            Value::List(l) => Some(l.address()),
            Value::Dict(d) => Some(d.address()),
            _ => None,
        };
        if let Some(done) = address.and_then(|a| self.done.get(&a)) {
            return Ok(done.clone());
        }
        let constant = match value {
            Value::None => Constant::None,
            Value::Bool(b) => Constant::Bool(*b),
            Value::Int(i) => Constant::Int(*i),
            Value::Float(f) => Constant::Float(*f),
            Value::Complex(c) => Constant::Complex(*c),
            Value::Str(s) => Constant::Str(s.clone()),
            Value::Device(d) => Constant::Device(*d),
            Value::Function(name) => Constant::Function(*name),
            Value::Future(_) => return Err(ExportError::Future),
            Value::Object(_) if !objects => return Err(ExportError::Object),
            Value::Object(o) => Constant::Object(self.object(o)),
            Value::Tensor(t) => Constant::Tensor(self.variable(t)?),
            Value::List(l) => Constant::List(Arc::new(ListConstant {
                element: l.element,
                items: self.all(&l.items(), objects, depth)?,
            })),
            Value::Tuple(t) => Constant::Tuple(Arc::new(TupleConstant {
                // A plain tuple is typed by the attribute that holds it.
                ty: t.ty.unwrap_or(types::ANY_TUPLE),
                items: self.all(&t.items, objects, depth)?,
            })),
            Value::Dict(d) => {
                let entries: Vec<(Value, Value)> =
                    d.with(|e| e.iter().map(|(k, v)| (k.0.clone(), v.clone())).collect());
                let mut exported = Vec::with_capacity(entries.len());
                for (k, v) in &entries {
                    let key = self.export(k, objects, depth + 1)?;
                    exported.push((key, with_stack(|| self.export(v, objects, depth + 1))?));
                }
                Constant::Dict(Arc::new(DictConstant {
                    key: d.key,
                    value: d.value,
                    entries: exported,
                }))
            }
            Value::Enum(e) => Constant::Enum(Arc::new(EnumConstant {
                class: e.class,
                name: e.name.clone(),
                value: self.export(&e.value, objects, depth + 1)?,
            })),
        };
        if let Some(address) = address {
            self.done.insert(address, constant.clone());
            self.alive.push(value.clone());
        }
        Ok(constant)
    }

    fn all(&mut self, items: &[Value], objects: bool, depth: usize) -> Result<Vec<Constant>, ExportError> {
        let mut export = |v| with_stack(|| self.export(v, objects, depth + 1));
        items.iter().map(&mut export).collect()
    }

    /// Returns the constant for a variable: its original constant, if that is still accurate. Properties that tensors of programs lack (requires_grad,
    /// quantisation) are preserved.
    fn variable(&mut self, variable: &TensorCell) -> Result<Arc<TensorData>, TensorError> {
        let tensor = variable.get();
        if self.is_compact {
            return tensor_with_strides(&tensor);
        }
        let Some(origin) = self.origins.get(&variable.address()).cloned() else {
            let mut data = self.tensor(&tensor)?;
            data.requires_grad &= !self.of_program;
            return Ok(Arc::new(data));
        };
        let is_written = tensor.storage().bytes().as_ptr() != origin.storage.bytes().as_ptr();
        if !is_written {
            let shared = Arc::as_ptr(tensor.storage()) as usize;
            self.storages.entry(shared).or_insert_with(|| origin.storage.clone());
        }
        let is_same = tensor.marks().is_none()
            && tensor.dtype() == origin.dtype
            && tensor.offset() == origin.offset
            && tensor.sizes() == origin.sizes.as_slice()
            && tensor.strides() == origin.strides.as_slice();
        if is_same && !is_written {
            return Ok(origin);
        }
        let mut data = self.tensor(&tensor)?;
        data.requires_grad = origin.requires_grad;
        data.encoding = origin.encoding.clone().filter(|_| data.dtype == origin.dtype);
        Ok(Arc::new(data))
    }

    /// Returns the constant for a tensor, with the current bytes of its storage.
    ///
    /// # Errors
    /// When it does not fit its storage.
    pub fn tensor(&mut self, t: &Tensor) -> Result<TensorData, TensorError> {
        let requires_grad = t.requires_grad();
        let t = &t.resolved()?;
        let storage = self
            .storages
            .entry(Arc::as_ptr(t.storage()) as usize)
            .or_insert_with(|| {
                self.alive.push(t.clone().into());
                Arc::new(frazil_ir::Storage::new(
                    share_bytes(t.storage()),
                    frazil_ir::Device::CPU,
                ))
            })
            .clone();
        let mut data = TensorData::new(t.dtype(), t.sizes(), t.strides(), t.offset(), storage)
            .map_err(|_| TensorError::Mismatch(t.sizes().to_vec()))?;
        data.requires_grad = requires_grad;
        Ok(data)
    }
}

/// Returns a value as a constant, as folding inserts it into graphs. Returns `None` for values with an identity beyond their contents (objects, futures), and for
/// containers that are nested too deeply. Tensors do not keep the memory that they were views of.
pub fn value_to_constant(value: &Value) -> Option<Constant> {
    let mut exporter = Exporter {
        is_compact: true,
        ..Exporter::default()
    };
    exporter.constant(value).ok()
}

/// Returns the current bytes of a storage without copying them. A later write to the storage copies them.
pub fn share_bytes(storage: &Storage) -> SharedBytes {
    Arc::new(storage.bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{ListValue, TensorCell};

    #[test]
    fn identities_survive_the_way_out_and_back() {
        let base = Tensor::from_f32(&[1.0, 2.0, 3.0, 4.0], &[4]).unwrap();
        let whole = Value::Tensor(TensorCell::new(base.clone()));
        let half = Value::Tensor(TensorCell::new(base.as_strided(&[2], &[2], 1).unwrap()));
        let list = Value::List(ListValue::new(types::TENSOR, vec![whole.clone(), half, whole]));
        let constant = Exporter::new().constant(&list).unwrap();
        let items = constant.items().unwrap();
        let tensors: Vec<_> = items.iter().filter_map(Constant::as_tensor).collect();
        assert!(Arc::ptr_eq(tensors[0], tensors[2]));
        assert!(tensors[0].shares_storage(tensors[1]));

        let back = Importer::new().value(&constant, None).unwrap();
        let back: Vec<Tensor> = back.items().unwrap().iter().filter_map(Value::as_tensor).collect();
        assert_eq!(back[1].to_vec::<f32>(), [2.0, 4.0]);
        back[0]
            .copy_(&Tensor::zeros(frazil_ir::DType::Float, &[4]).unwrap())
            .unwrap();
        assert_eq!(
            back[1].to_vec::<f32>(),
            [0.0, 0.0],
            "a view sees what is written to its base"
        );
        assert_eq!(base.to_vec::<f32>(), [1.0, 2.0, 3.0, 4.0], "the source does not");
    }

    #[test]
    fn a_list_in_itself_is_an_error() {
        let list = ListValue::new(types::ANY, Vec::new());
        list.change(|items| items.push(Value::List(list.clone())));
        assert!(matches!(
            Exporter::new().constant(&Value::List(list)),
            Err(ExportError::Depth)
        ));
    }
}
