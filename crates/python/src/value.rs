//! Conversion between Python values and TorchScript values.

use crate::arrays::{Arrays, Kind, shown};
use crate::errors::{OrRaise, exception, type_error, value_error};
use crate::object::Object;
use frazil::Model;
use frazil::ir::types::unify;
use frazil::ir::{ClassKind, Context, Device, SymbolId, TypeId, TypeKind, types};
use frazil::runtime::Value;
use frazil::runtime::import::Importer;
use frazil::runtime::python_repr::repr;
use frazil::runtime::value::{DictValue, EnumMember, Key, ListValue, TupleValue};
use indexmap::IndexMap;
use pyo3::exceptions::PyOverflowError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyComplex, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};
use std::sync::Arc;

/// Maximum nesting of containers, as in archives.
const MAX_NESTING: usize = 1000;

/// Conversions for one call of a model, or for one of its attributes.
pub(crate) struct Values<'m, 'py> {
    model: &'m Model,
    pub(crate) arrays: Arrays<'py>,
    py: Python<'py>,
}

impl<'m, 'py> Values<'m, 'py> {
    /// Returns conversions for one call. `default` is the kind of arrays in results if no argument is an array.
    pub(crate) fn new(py: Python<'py>, model: &'m Model, default: Kind) -> Values<'m, 'py> {
        Values {
            model,
            arrays: Arrays::new(py, default),
            py,
        }
    }

    fn ctx(&self) -> &'m Context {
        self.model.module().ctx()
    }

    /// Converts a Python object to a value.
    ///
    /// # Errors
    /// `TypeError` if TorchScript has no such values.
    pub(crate) fn read(&mut self, object: &Bound<'py, PyAny>) -> PyResult<Value> {
        self.read_nested(object, MAX_NESTING)
    }

    fn read_nested(&mut self, object: &Bound<'py, PyAny>, depth: usize) -> PyResult<Value> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(value_error(format!(
                "expected values nested at most {MAX_NESTING} deep"
            )));
        };
        if let Some(value) = self.read_plain(object)? {
            return Ok(value);
        }
        if let Some(tensor) = self.arrays.read(object)? {
            return Ok(Value::Tensor(tensor));
        }
        if let Ok(list) = object.cast::<PyList>() {
            let items = self.read_items(list.iter(), depth)?;
            return Ok(Value::List(ListValue::new(self.common_type(&items), items)));
        }
        if let Ok(tuple) = object.cast::<PyTuple>() {
            return Ok(Value::tuple(self.read_items(tuple.iter(), depth)?));
        }
        if let Ok(dict) = object.cast::<PyDict>() {
            return self.read_dict(dict, depth);
        }
        if let Ok(object) = object.cast::<Object>() {
            return Ok(Value::Object(object.get().value().clone()));
        }
        self.read_other(object)
    }

    /// Converts values that are not containers.
    fn read_plain(&self, object: &Bound<'py, PyAny>) -> PyResult<Option<Value>> {
        Ok(Some(if object.is_none() {
            Value::None
        } else if let Ok(truth) = object.cast::<PyBool>() {
            Value::Bool(truth.is_true())
        } else if object.is_exact_instance_of::<PyInt>() {
            Value::Int(integer(object)?)
        } else if let Ok(number) = object.cast::<PyFloat>() {
            Value::Float(number.value())
        } else if let Ok(text) = object.cast::<PyString>() {
            // A member of an enumeration of strings is a string too.
            match object.is_exact_instance_of::<PyString>() {
                true => Value::str(text.to_str()?),
                false => return Ok(None),
            }
        } else if let Ok(number) = object.cast::<PyComplex>() {
            Value::Complex(number.extract()?)
        } else {
            return Ok(None);
        }))
    }

    fn read_items(&mut self, items: impl Iterator<Item = Bound<'py, PyAny>>, depth: usize) -> PyResult<Vec<Value>> {
        items.map(|item| self.read_nested(&item, depth)).collect()
    }

    fn read_dict(&mut self, dict: &Bound<'py, PyDict>, depth: usize) -> PyResult<Value> {
        let mut entries = IndexMap::new();
        for (key, value) in dict.iter() {
            let key = self.read_nested(&key, depth)?;
            entries.insert(Key(key), self.read_nested(&value, depth)?);
        }
        let keys: Vec<Value> = entries.keys().map(|key| key.0.clone()).collect();
        let values: Vec<Value> = entries.values().cloned().collect();
        let (key, value) = (self.common_type(&keys), self.common_type(&values));
        Ok(Value::Dict(DictValue::new(key, value, entries)))
    }

    /// Converts members of enumerations, devices and dtypes of torch, scalars of NumPy, and subclasses of `int` and `str`.
    fn read_other(&self, object: &Bound<'py, PyAny>) -> PyResult<Value> {
        if let Some(member) = self.read_member(object)? {
            return Ok(member);
        }
        let class = object.get_type();
        let (module, name) = (class.module()?.to_string(), class.name()?.to_string());
        match (module.as_str(), name.as_str()) {
            ("torch", "device") => {
                let device = Device::parse(&object.str()?.to_string());
                return device.map(Value::Device).ok_or_else(|| self.unknown(object));
            }
            ("torch", "dtype") | ("numpy.dtypes", _) => return Ok(Value::Int(crate::arrays::dtype_of(object)?.code())),
            ("torch", "Size") => {
                let sizes: Vec<i64> = object.extract()?;
                return Ok(Value::ints(sizes));
            }
            ("numpy", _) if object.hasattr("item")? => {
                let plain = object.call_method0("item")?;
                return self.read_plain(&plain)?.ok_or_else(|| self.unknown(object));
            }
            _ => {}
        }
        if object.cast::<PyType>().is_ok() && object.hasattr("dtype")? {
            // A class of NumPy scalars, which NumPy's functions accept as a dtype.
            return Ok(Value::Int(crate::arrays::dtype_of(object)?.code()));
        }
        if let Ok(text) = object.cast::<PyString>() {
            return Ok(Value::str(text.to_str()?));
        }
        match object.cast::<PyInt>() {
            Ok(_) => Ok(Value::Int(integer(object)?)),
            Err(_) => Err(self.unknown(object)),
        }
    }

    fn unknown(&self, object: &Bound<'_, PyAny>) -> PyErr {
        type_error(format!(
            "{} is no value of TorchScript: expected an array, a number, a string, None, a list, a tuple, a dict, a member of an enumeration, or an object of a model",
            shown(object)
        ))
    }

    /// Returns the member of an enumeration of the model that corresponds to a Python member of the same name.
    fn read_member(&self, object: &Bound<'py, PyAny>) -> PyResult<Option<Value>> {
        static ENUM: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        if !object.is_instance(ENUM.import(self.py, "enum", "Enum")?)? {
            return Ok(None);
        }
        let class = object.get_type();
        let (path, name) = (class.module()?.to_string(), class.qualname()?.to_string());
        let member: String = object.getattr(intern!(self.py, "name"))?.extract()?;
        let module = self.model.module();
        let ctx = self.ctx();
        let simple = name.rsplit('.').next().unwrap_or(&name);
        let full = format!("__torch__.{path}.{name}");
        let of_name = |id: &&SymbolId| ctx.name(**id).rsplit('.').next() == Some(simple);
        let enums = || {
            let classes = module.unit.classes.iter();
            classes.filter(|(_, c)| c.kind == ClassKind::Enum).map(|(name, _)| name)
        };
        let exact = enums().find(|id| ctx.name(**id) == full);
        let Some(&id) = exact.or_else(|| enums().find(of_name)) else {
            return Ok(None);
        };
        let class_def = module.unit.class(id);
        let constant = ctx.find_symbol(&member).and_then(|m| class_def?.constants.get(&m));
        let Some(constant) = constant else { return Ok(None) };
        let value = Importer::new().value(constant, Some(module));
        let value = value.map_err(|e| exception(self.py, "Error", &e.to_string(), &[]))?;
        classes(self.py)?.bind(self.py).set_item(ctx.name(id), class)?;
        Ok(Some(match value {
            Value::Enum(member) => Value::Enum(member),
            value => Value::Enum(Arc::new(EnumMember {
                class: id,
                name: member.into(),
                value,
            })),
        }))
    }

    /// Converts a value to a declared type as PyTorch does: numbers to wider types, and empty containers.
    pub(crate) fn fitted(&self, value: Value, ty: TypeId) -> Value {
        let each = |items: Vec<Value>, ty: TypeId| items.into_iter().map(|item| self.fitted(item, ty)).collect();
        match (self.ctx().type_kind(ty), value) {
            (TypeKind::Float, Value::Int(number)) => Value::Float(number as f64),
            (TypeKind::Complex, Value::Int(number)) => Value::Complex((number as f64).into()),
            (TypeKind::Complex, Value::Float(number)) => Value::Complex(number.into()),
            (_, Value::None) => Value::None,
            (TypeKind::Optional(inner), value) => self.fitted(value, inner),
            (TypeKind::List(item), Value::List(list)) => {
                let items: Vec<Value> = each(list.items(), item);
                let found = if items.is_empty() {
                    item
                } else {
                    self.common_type(&items)
                };
                Value::List(ListValue::new(found, items))
            }
            (TypeKind::Dict(key, item), Value::Dict(dict)) => {
                let entries = dict.with(IndexMap::clone).into_iter();
                let fit = |(Key(k), v): (Key, Value)| (Key(self.fitted(k, key)), self.fitted(v, item));
                let entries: IndexMap<Key, Value> = entries.map(fit).collect();
                if entries.is_empty() {
                    return Value::Dict(DictValue::new(key, item, entries));
                }
                let keys: Vec<Value> = entries.keys().map(|key| key.0.clone()).collect();
                let values: Vec<Value> = entries.values().cloned().collect();
                let (key, value) = (self.common_type(&keys), self.common_type(&values));
                Value::Dict(DictValue::new(key, value, entries))
            }
            (_, value) => value,
        }
    }

    /// Returns the common type of the items; `Any` without items, because arguments get the declared type.
    fn common_type(&self, items: &[Value]) -> TypeId {
        let ctx = self.ctx();
        let mut each = items.iter().map(|item| item.ty(ctx));
        let first = each.next().unwrap_or(types::ANY);
        each.try_fold(first, |all, ty| unify(ctx, all, ty))
            .unwrap_or(types::ANY)
    }

    /// Converts a value to a Python object.
    ///
    /// # Errors
    /// If there is none, for example for arrays of a dtype that the library of the arguments lacks.
    pub(crate) fn write(&self, value: Value) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        Ok(match value {
            Value::None => py.None().into_bound(py),
            Value::Bool(truth) => PyBool::new(py, truth).to_owned().into_any(),
            Value::Int(number) => number.into_pyobject(py)?.into_any(),
            Value::Float(number) => PyFloat::new(py, number).into_any(),
            Value::Complex(number) => number.into_pyobject(py)?.into_any(),
            Value::Str(text) => PyString::new(py, &text).into_any(),
            Value::Device(device) => self.write_device(device)?,
            Value::Tensor(cell) => {
                let tensor = cell.get();
                drop(cell);
                self.arrays.write(tensor)?
            }
            Value::List(list) => {
                let items = list.items();
                drop(list);
                PyList::new(py, self.write_items(items)?)?.into_any()
            }
            Value::Tuple(tuple) => {
                let TupleValue { ty, items } = tuple;
                let copy = items.to_vec();
                drop(items);
                let items = self.write_items(copy)?;
                match ty.map(|ty| self.ctx().type_kind(ty)) {
                    Some(TypeKind::NamedTuple(name, fields, _)) => {
                        let fields = self.ctx().symbols(fields).iter().map(|&f| self.ctx().name(f));
                        let class = self.named_tuple(name, fields)?;
                        class.call1(PyTuple::new(py, items)?)?
                    }
                    _ => PyTuple::new(py, items)?.into_any(),
                }
            }
            Value::Dict(dict) => {
                let entries = dict.with(IndexMap::clone);
                drop(dict);
                let out = PyDict::new(py);
                for (Key(key), value) in entries {
                    out.set_item(self.write(key)?, self.write(value)?)?;
                }
                out.into_any()
            }
            Value::Object(object) => {
                Bound::new(py, Object::new(self.model.clone(), object, self.arrays.kind()))?.into_any()
            }
            Value::Enum(member) => self.write_member(&member)?,
            Value::Future(future) => {
                let value = future.wait();
                let value = value.map_err(|e| crate::errors::call_failed(py, &e.into()))?;
                self.write(value)?
            }
            value @ Value::Function(_) => PyString::new(py, &repr(self.ctx(), &value)).into_any(),
        })
    }

    fn write_items(&self, items: Vec<Value>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        items.into_iter().map(|item| self.write(item)).collect()
    }

    /// Returns a device: a torch device if the arguments are torch tensors, else its name.
    fn write_device(&self, device: Device) -> PyResult<Bound<'py, PyAny>> {
        let name = device.to_string();
        match self.arrays.kind() {
            Kind::Torch => self.py.import("torch")?.call_method1("device", (name,)),
            Kind::Numpy => Ok(PyString::new(self.py, &name).into_any()),
        }
    }

    /// Returns the Python class of a NamedTuple, which is created on first use.
    fn named_tuple<'n>(&self, name: SymbolId, fields: impl Iterator<Item = &'n str>) -> PyResult<Bound<'py, PyAny>> {
        let fields: Vec<&str> = fields.collect();
        let name = self.ctx().name(name);
        let key = (name, PyTuple::new(self.py, &fields)?);
        let known = classes(self.py)?.bind(self.py);
        if let Some(class) = known.get_item(&key)? {
            return Ok(class);
        }
        let simple = name.rsplit('.').next().unwrap_or(name);
        let class = self
            .py
            .import("collections")?
            .call_method1("namedtuple", (simple, fields))?;
        known.set_item(&key, &class)?;
        Ok(class)
    }

    /// Returns the Python member of an enumeration: of the caller's own enumeration, if one of its members was an argument before, else of a new one.
    fn write_member(&self, member: &EnumMember) -> PyResult<Bound<'py, PyAny>> {
        let name = self.ctx().name(member.class);
        let known = classes(self.py)?.bind(self.py);
        let class = match known.get_item(name)? {
            Some(class) => class,
            None => {
                let members = PyDict::new(self.py);
                let module = self.model.module();
                let constants = module.unit.class(member.class).into_iter().flat_map(|c| &c.constants);
                for (name, constant) in constants {
                    let value = Importer::new().value(constant, Some(module));
                    let value = match value.map_err(|e| exception(self.py, "Error", &e.to_string(), &[]))? {
                        Value::Enum(member) => member.value.clone(),
                        value => value,
                    };
                    members.set_item(self.ctx().name(*name), self.write(value)?)?;
                }
                let simple = name.rsplit('.').next().unwrap_or(name);
                let class = self.py.import("enum")?.call_method1("Enum", (simple, members))?;
                known.set_item(name, &class)?;
                class
            }
        };
        class.get_item(&*member.name)
    }
}

/// Returns the table of Python classes for nominal types. For an enum, the key is the qualified name; for a NamedTuple, it also contains the names of the
/// fields.
fn classes(py: Python<'_>) -> PyResult<&'static Py<PyDict>> {
    static CLASSES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    Ok(CLASSES.get_or_init(py, || PyDict::new(py).unbind()))
}

fn integer(object: &Bound<'_, PyAny>) -> PyResult<i64> {
    object.extract().map_err(
        |error: PyErr| match error.is_instance_of::<PyOverflowError>(object.py()) {
            true => value_error(format!("expected an integer of 64 bits, not {object}")),
            false => error,
        },
    )
}

/// Returns a tensor that is stored in a model: a copy of an array.
pub(crate) fn read_tensor(object: &Bound<'_, PyAny>, what: &str) -> PyResult<frazil::Tensor> {
    let py = object.py();
    let mut arrays = Arrays::new(py, Kind::Numpy);
    let tensor = arrays.read(object)?;
    let tensor = tensor.ok_or_else(|| type_error(format!("{what}: expected an array, not {}", shown(object))))?;
    // The caller may change the array later.
    let kept = tensor.get().deep_copy_preserving_strides();
    kept.map_err(frazil::Error::from).or_raise(py)
}
