//! Conversions of arguments to the types of parameters, as PyTorch converts values from Python.

use crate::scalar::Scalar;
use crate::value::python_repr::str;
use crate::value::{DictValue, Key, ListValue, TensorCell, TupleValue, Value};
use frazil_ir::types::{TypeStyle, display_type, is_subtype};
use frazil_ir::{CompilationUnit, Context, Device, TypeId, TypeKind, types};
use indexmap::IndexMap;
use num_complex::Complex64;

/// The reason why a value cannot be converted to the type of a parameter.
pub(super) enum Mismatch {
    /// The value has another type; there are no further details.
    Type,
    /// Further details from PyTorch's message, on a line of their own.
    Details(String),
    /// The complete message, for errors in which PyTorch does not name the argument.
    Whole(String),
}

pub(super) struct Converter<'a> {
    pub(super) ctx: &'a Context,
    pub(super) unit: &'a CompilationUnit,
}

/// The converted argument; `None` if the value has the type already.
type Converted = Result<Option<Value>, Mismatch>;

impl Converter<'_> {
    pub(super) fn convert(&self, value: &Value, ty: TypeId) -> Converted {
        let kind = self.ctx.type_kind(ty);
        match (kind, value) {
            (TypeKind::Any, value) => self.inferred(value),
            // Without a tensor, the program has an undefined one.
            (TypeKind::Tensor(_), Value::Tensor(_) | Value::None) => Ok(None),
            (TypeKind::Tensor(_), other) => Err(Mismatch::Details(format!(
                "Unable to cast {} to Tensor",
                str(self.ctx, other)
            ))),
            (TypeKind::Int, _) => number(value, to_int),
            (TypeKind::Float, _) => number(value, to_float),
            (TypeKind::Bool, _) => number(value, to_bool),
            (TypeKind::Complex, _) => number(value, to_complex),
            (TypeKind::Number, Value::Int(_) | Value::Float(_) | Value::Complex(_) | Value::Bool(_)) => Ok(None),
            (TypeKind::Number, Value::Tensor(tensor)) => Ok(Some(item(tensor)?.into())),
            (TypeKind::Device, Value::Str(text)) => match Device::parse(text) {
                Some(device) => Ok(Some(Value::Device(device))),
                None => Err(Mismatch::Whole(no_device(text))),
            },
            (TypeKind::Optional(_), Value::None) => Ok(None),
            (TypeKind::Optional(inner), value) => self.convert(value, inner),
            (TypeKind::List(element), value) => self.list(value, element),
            (TypeKind::Dict(key, item), value) => self.dict(value, key, item),
            (TypeKind::Tuple(elements), value) => self.tuple(value, ty, self.ctx.types(elements), None),
            (TypeKind::NamedTuple(_, _, elements), value) => self.tuple(value, ty, self.ctx.types(elements), Some(ty)),
            (TypeKind::Union(_), value) => {
                let converted = self.inferred(value)?;
                let found = converted.as_ref().unwrap_or(value).ty(self.ctx);
                match is_subtype(self.ctx, found, ty) {
                    true => Ok(converted),
                    false => Err(Mismatch::Details(format!(
                        "Expected a member of {} but instead found type {}",
                        display_type(self.ctx, ty, TypeStyle::Annotation),
                        display_type(self.ctx, found, TypeStyle::Annotation)
                    ))),
                }
            }
            (TypeKind::Class(_) | TypeKind::Enum(_), value) if value.ty(self.ctx) == ty => Ok(None),
            (TypeKind::Interface(name), Value::Object(object))
                if self.unit.implements(self.ctx, object.class(), name) =>
            {
                Ok(None)
            }
            // PyTorch makes an object of any value that has the attributes of the class.
            (TypeKind::Class(class), other) if !matches!(other, Value::Object(_)) => {
                let attributes = self.unit.class(class).map(|class| &class.attributes);
                match attributes.and_then(|attributes| attributes.keys().next()) {
                    Some(&attribute) => Err(Mismatch::Details(format!(
                        "Tried to cast object to type {} but object was missing attribute {}",
                        self.ctx.name(class),
                        self.ctx.name(attribute)
                    ))),
                    None => Err(Mismatch::Type),
                }
            }
            (TypeKind::Class(_) | TypeKind::Enum(_) | TypeKind::Interface(_), _) => Err(Mismatch::Type),
            // Their values do not tell of what.
            (TypeKind::Future(_) | TypeKind::Await(_), Value::Future(_)) => Ok(None),
            (TypeKind::Function(_), Value::Function(_)) => Ok(None),
            (_, value) => {
                let holds = crate::value::instance_of::is_instance(self.ctx, Some(self.unit), value, ty, &|_| None);
                holds.filter(|h| *h).map(|_| None).ok_or(Mismatch::Type)
            }
        }
    }

    /// Returns `items` converted to type `ty`; `None` if no item needs a conversion.
    fn each(&self, items: &[Value], ty: TypeId) -> Result<Option<Vec<Value>>, Mismatch> {
        let mut out: Option<Vec<Value>> = None;
        let is_tensors = matches!(self.ctx.type_kind(ty), TypeKind::Tensor(_));
        for (i, item) in items.iter().enumerate() {
            // Here nothing stands for an undefined tensor.
            if is_tensors && !matches!(item, Value::Tensor(_)) {
                return Err(Mismatch::Type);
            }
            if let Some(converted) = self.convert(item, ty)?
                && let Some(place) = out.get_or_insert_with(|| items.to_vec()).get_mut(i)
            {
                *place = converted;
            }
        }
        Ok(out)
    }

    fn list(&self, value: &Value, element: TypeId) -> Converted {
        let new = |items| Ok(Some(Value::List(ListValue::new(element, items))));
        // PyTorch iterates over anything where elements are of other types than these.
        let takes_sequences_only = matches!(
            self.ctx.type_kind(element),
            TypeKind::Int | TypeKind::Float | TypeKind::Bool | TypeKind::Tensor(_)
        );
        match value {
            Value::List(list) => match list.with(|items| self.each(items, element))? {
                Some(items) => new(items),
                None if list.element == element => Ok(None),
                None => Ok(Some(Value::List(list.with_element(element)))),
            },
            Value::Tuple(tuple) => new(self
                .each(&tuple.items, element)?
                .unwrap_or_else(|| tuple.items.to_vec())),
            other if !takes_sequences_only => {
                let items = iterated(other).ok_or(Mismatch::Type)?;
                new(self.each(&items, element)?.unwrap_or(items))
            }
            _ => Err(Mismatch::Type),
        }
    }

    fn dict(&self, value: &Value, key: TypeId, item: TypeId) -> Converted {
        let new = |entries| Ok(Some(Value::Dict(DictValue::new(key, item, entries))));
        match value {
            Value::Dict(dict) => {
                let entries = dict.with(|e| e.iter().map(|(k, v)| (k.0.clone(), v.clone())).collect::<Vec<_>>());
                let mut is_changed = false;
                let mut out = IndexMap::with_capacity(entries.len());
                for (k, v) in entries {
                    let (new_item, new_key) = (self.convert(&v, item)?, self.convert(&k, key)?);
                    is_changed |= new_key.is_some() || new_item.is_some();
                    out.insert(Key(new_key.unwrap_or(k)), new_item.unwrap_or(v));
                }
                match is_changed {
                    true => new(out),
                    false if (dict.key, dict.value) == (key, item) => Ok(None),
                    false => Ok(Some(Value::Dict(dict.with_types(key, item)))),
                }
            }
            // As Python makes a dictionary of pairs.
            other => {
                let mut entries = IndexMap::new();
                for pair in iterated(other).ok_or(Mismatch::Type)? {
                    let pair = iterated(&pair).ok_or(Mismatch::Type)?;
                    let [k, v] = pair.as_slice() else {
                        return Err(Mismatch::Type);
                    };
                    let (new_item, new_key) = (self.convert(v, item)?, self.convert(k, key)?);
                    let new_key = new_key.unwrap_or_else(|| k.clone());
                    entries.insert(Key(new_key), new_item.unwrap_or_else(|| v.clone()));
                }
                new(entries)
            }
        }
    }

    /// Returns `value` converted to a tuple of types `elements`: a NamedTuple if `named` has its type.
    fn tuple(&self, value: &Value, ty: TypeId, elements: &[TypeId], named: Option<TypeId>) -> Converted {
        let items = iterated(value).ok_or(Mismatch::Type)?;
        if items.len() != elements.len() {
            return Err(Mismatch::Details(format!(
                "Object {} had a different number of elements than type {}",
                str(self.ctx, value),
                display_type(self.ctx, ty, TypeStyle::Annotation)
            )));
        }
        let mut is_changed = !matches!(value, Value::Tuple(tuple) if tuple.ty == named);
        let mut out = Vec::with_capacity(items.len());
        for (item, &ty) in items.into_iter().zip(elements) {
            let converted = self.convert(&item, ty)?;
            is_changed |= converted.is_some();
            out.push(converted.unwrap_or(item));
        }
        let items = out.into();
        Ok(is_changed.then_some(Value::Tuple(TupleValue { ty: named, items })))
    }

    /// Returns the value with inferred types of containers, from their elements, if they have no type themselves.
    fn inferred(&self, value: &Value) -> Converted {
        match self.with_own_types(value) {
            Ok(converted) => Ok(converted),
            Err(why) => Err(Mismatch::Whole(format!(
                "Tracer cannot infer type of {}\n:{why}",
                str(self.ctx, value)
            ))),
        }
    }

    fn with_own_types(&self, value: &Value) -> Result<Option<Value>, String> {
        let each = |items: &[Value]| -> Result<Vec<Value>, String> {
            let own = |v: &Value| Ok(self.with_own_types(v)?.unwrap_or_else(|| v.clone()));
            items.iter().map(own).collect()
        };
        match value {
            Value::List(list) if !list.with(|items| self.all_are(items.iter(), list.element)) => {
                if list.is_empty() {
                    return Err("List trace inputs must have elements".to_owned());
                }
                let items =
                    each(&list.items()).map_err(|why| format!("Could not infer type of list element: {why}"))?;
                let element = self.common(&items).map_err(|(a, b)| {
                    format!("List inputs to traced functions must have consistent element type. Found {a} and {b}")
                })?;
                Ok(Some(Value::List(ListValue::new(element, items))))
            }
            Value::Dict(dict)
                if !dict.with(|e| {
                    self.all_are(e.keys().map(|k| &k.0), dict.key) && self.all_are(e.values(), dict.value)
                }) =>
            {
                let (keys, values): (Vec<Value>, Vec<Value>) =
                    dict.with(|e| e.iter().map(|(k, v)| (k.0.clone(), v.clone())).unzip());
                if keys.is_empty() {
                    return Err("Dictionary inputs must have entries".to_owned());
                }
                let differ = |(a, b)| {
                    format!("Dictionary inputs to traced functions must have consistent type. Found {a} and {b}")
                };
                let (keys, values) = (each(&keys)?, each(&values)?);
                let (key, item) = (
                    self.common(&keys).map_err(differ)?,
                    self.common(&values).map_err(differ)?,
                );
                let entries = keys.into_iter().map(Key).zip(values).collect();
                Ok(Some(Value::Dict(DictValue::new(key, item, entries))))
            }
            Value::Tuple(tuple) if tuple.ty.is_none() => {
                let items = each(&tuple.items)?;
                let is_new = items.iter().zip(tuple.items.iter()).any(|(new, old)| !new.is(old));
                Ok(is_new.then(|| Value::tuple(items)))
            }
            _ => Ok(None),
        }
    }

    /// Returns whether all `items` have the type `ty`, which must be a known element type.
    fn all_are<'v>(&self, mut items: impl Iterator<Item = &'v Value>, ty: TypeId) -> bool {
        ty != types::ANY && items.all(|v| is_subtype(self.ctx, v.ty(self.ctx), ty))
    }

    /// Returns the common type of all `items`, or the texts of two types that have none.
    fn common(&self, items: &[Value]) -> Result<TypeId, (String, String)> {
        let mut types = items.iter().map(|v| v.ty(self.ctx));
        let first = types.next().unwrap_or(types::ANY);
        let show = |ty| display_type(self.ctx, ty, TypeStyle::Annotation).to_string();
        types.try_fold(first, |all, ty| {
            let unified = types::unify(self.ctx, all, ty);
            unified.ok_or_else(|| (show(all), show(ty)))
        })
    }
}

/// Device types that PyTorch supports, as its error message lists them.
const DEVICES: &str = "cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, mps, meta, hpu, mtia, privateuseone";

/// Returns PyTorch's message for a string that is not a device.
fn no_device(text: &str) -> String {
    let kind = text.split(':').next().unwrap_or_default();
    if text.is_empty() {
        return "Device string must not be empty".to_owned();
    }
    match DEVICES.split(", ").any(|known| known == kind) {
        true => format!("Invalid device string: '{text}'"),
        false => format!("Expected one of {DEVICES} device type at start of device string: {kind}"),
    }
}

/// Returns the name of the value's class in Python.
pub(super) fn python_type<'a>(ctx: &'a Context, value: &Value) -> &'a str {
    let simple = |name| ctx.name(name).rsplit('.').next().unwrap_or_default();
    match value {
        Value::None => "NoneType",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int",
        Value::Float(_) => "float",
        Value::Complex(_) => "complex",
        Value::Str(_) => "str",
        Value::Device(_) => "device",
        Value::Tensor(_) => "Tensor",
        Value::List(_) => "list",
        Value::Tuple(tuple) => match tuple.ty.map(|ty| ctx.type_kind(ty)) {
            Some(TypeKind::NamedTuple(name, ..)) => simple(name),
            _ => "tuple",
        },
        Value::Dict(_) => "dict",
        Value::Object(object) => simple(object.class()),
        Value::Enum(member) => simple(member.class),
        Value::Future(_) => "Future",
        Value::Function(_) => "function",
    }
}

/// Returns the items of Python's `iter(value)`.
fn iterated(value: &Value) -> Option<Vec<Value>> {
    match value {
        Value::Str(text) => Some(text.chars().map(|c| Value::str(c.encode_utf8(&mut [0; 4]))).collect()),
        Value::Dict(dict) => Some(dict.with(|entries| entries.keys().map(|k| k.0.clone()).collect())),
        Value::Tensor(tensor) => {
            let tensor = tensor.get();
            let (&count, sizes) = tensor.sizes().split_first()?;
            let (&step, strides) = tensor.strides().split_first()?;
            let row = |i: i64| tensor.as_strided(sizes, strides, tensor.offset() + i * step);
            (0..count).map(|i| row(i).ok().map(Value::from)).collect()
        }
        other => other.items(),
    }
}

/// Returns the element of a one-element tensor.
fn item(tensor: &TensorCell) -> Result<Scalar, Mismatch> {
    tensor.get().item().map_err(|_| Mismatch::Type)
}

/// Returns the result of `convert` for `value`, or for the element of a one-element tensor.
fn number(value: &Value, convert: fn(&Value) -> Option<Value>) -> Converted {
    let element = match value {
        Value::Tensor(tensor) => Some(Value::from(item(tensor)?)),
        _ => None,
    };
    let converted = match &element {
        // Python's conversions of a tensor are those of PyTorch, which cut off decimals.
        Some(Value::Float(x)) if convert(&Value::Int(0)).is_some_and(|v| matches!(v, Value::Int(_))) => whole(*x),
        Some(element) => convert(element),
        None => convert(value),
    };
    match (converted, value) {
        (None, _) => Err(Mismatch::Type),
        (Some(Value::Int(_)), Value::Int(_))
        | (Some(Value::Float(_)), Value::Float(_))
        | (Some(Value::Bool(_)), Value::Bool(_))
        | (Some(Value::Complex(_)), Value::Complex(_)) => Ok(None),
        (Some(converted), _) => Ok(Some(converted)),
    }
}

/// Returns `int(x)`, if it fits 64 bits.
fn whole(x: f64) -> Option<Value> {
    // Both bounds are exact in `f64`.
    let fits = x.is_finite() && (-(2f64.powi(63))..2f64.powi(63)).contains(&x.trunc());
    fits.then(|| Value::Int(x as i64))
}

fn to_int(value: &Value) -> Option<Value> {
    match value {
        Value::Int(i) => Some(Value::Int(*i)),
        Value::Bool(b) => Some(Value::Int(i64::from(*b))),
        _ => None,
    }
}

fn to_float(value: &Value) -> Option<Value> {
    match value {
        Value::Int(i) => Some(Value::Float(*i as f64)),
        Value::Float(x) => Some(Value::Float(*x)),
        Value::Bool(b) => Some(Value::Float(f64::from(u8::from(*b)))),
        _ => None,
    }
}

fn to_bool(value: &Value) -> Option<Value> {
    match value {
        Value::None => Some(Value::Bool(false)),
        other => Some(Value::Bool(other.as_scalar()?.as_bool())),
    }
}

fn to_complex(value: &Value) -> Option<Value> {
    let c: Complex64 = value.as_scalar()?.as_complex();
    Some(Value::Complex(c))
}
