//! Constants: the immutable values in graphs, schemas and module attributes.

use crate::stack::with_stack;
use crate::{Context, Device, SymbolId, TensorData, TypeId, types};
use cranelift_entity::entity_impl;
use num_complex::Complex64;
use std::collections::HashSet;
use std::sync::Arc;

/// Id of an object in a [`Module`](crate::Module): a submodule or a class instance.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(u32);
entity_impl!(ObjectId, "obj");

/// An immutable value. Compound values are in an `Arc`, whose identity is that of the value: two attributes with the same `Arc` refer to one mutable list,
/// tensor or dictionary of the program.
#[derive(Clone, Debug)]
pub enum Constant {
    /// `None`
    None,
    /// `True`, `False`
    Bool(bool),
    /// A 64-bit integer; also dtypes, layouts and memory formats.
    Int(i64),
    /// A double.
    Float(f64),
    /// A complex number.
    Complex(Complex64),
    /// A string.
    Str(Arc<str>),
    /// A device.
    Device(Device),
    /// A tensor.
    Tensor(Arc<TensorData>),
    /// A list.
    List(Arc<ListConstant>),
    /// A tuple, or a NamedTuple when its type is one.
    Tuple(Arc<TupleConstant>),
    /// A dictionary, in order of insertion.
    Dict(Arc<DictConstant>),
    /// A member of an enumeration.
    Enum(Arc<EnumConstant>),
    /// A function, by qualified name.
    Function(SymbolId),
    /// An object of the module that contains this constant.
    Object(ObjectId),
}

/// A list and the type of its elements.
#[derive(Clone, Debug)]
pub struct ListConstant {
    /// Element type.
    pub element: TypeId,
    /// Elements.
    pub items: Vec<Constant>,
}

/// A tuple and its type.
#[derive(Clone, Debug)]
pub struct TupleConstant {
    /// The tuple's type: `Tuple` or `NamedTuple`.
    pub ty: TypeId,
    /// Elements.
    pub items: Vec<Constant>,
}

/// A dictionary and its types.
#[derive(Clone, Debug)]
pub struct DictConstant {
    /// Type of the keys.
    pub key: TypeId,
    /// Type of the values.
    pub value: TypeId,
    /// Entries in order of insertion.
    pub entries: Vec<(Constant, Constant)>,
}

/// A member of an enumeration.
#[derive(Clone, Debug)]
pub struct EnumConstant {
    /// Qualified name of the enumeration.
    pub class: SymbolId,
    /// Name of the member.
    pub name: Arc<str>,
    /// The value of the member.
    pub value: Constant,
}

impl Constant {
    /// Returns a string.
    pub fn str(text: impl AsRef<str>) -> Constant {
        Constant::Str(Arc::from(text.as_ref()))
    }

    /// Returns a list of integers.
    pub fn ints(values: impl IntoIterator<Item = i64>) -> Constant {
        Constant::list(types::INT, values.into_iter().map(Constant::Int).collect())
    }

    /// Returns a list.
    pub fn list(element: TypeId, items: Vec<Constant>) -> Constant {
        Constant::List(Arc::new(ListConstant { element, items }))
    }

    /// Returns a plain tuple, whose type follows from its elements.
    pub fn tuple(ctx: &Context, items: Vec<Constant>) -> Constant {
        let element_types: Vec<_> = items.iter().map(|c| c.ty(ctx)).collect();
        Constant::Tuple(Arc::new(TupleConstant {
            ty: ctx.tuple_of(&element_types),
            items,
        }))
    }

    /// Returns the type of a `prim::Constant` with this value. It is `Any` for an object, because only the module knows its class.
    pub fn ty(&self, ctx: &Context) -> TypeId {
        match self {
            Constant::None => types::NONE,
            Constant::Bool(_) => types::BOOL,
            Constant::Int(_) => types::INT,
            Constant::Float(_) => types::FLOAT,
            Constant::Complex(_) => types::COMPLEX,
            Constant::Str(_) => types::STR,
            Constant::Device(_) => types::DEVICE,
            Constant::Tensor(t) => ctx.tensor_of(t.dtype, &t.sizes, &t.strides, t.requires_grad),
            Constant::List(l) => ctx.list_of(l.element),
            Constant::Tuple(t) => t.ty,
            Constant::Dict(d) => ctx.dict_of(d.key, d.value),
            Constant::Enum(e) => ctx.type_of_kind(crate::TypeKind::Enum(e.class)),
            Constant::Function(name) => ctx.type_of_kind(crate::TypeKind::Function(*name)),
            Constant::Object(_) => types::ANY,
        }
    }

    /// Returns the integer, if the constant is one.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Constant::Int(i) => Some(*i),
            _ => None,
        }
    }

    /// Returns the bool, if the constant is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Constant::Bool(b) => Some(*b),
            _ => None,
        }
    }

    /// Returns the real number (integer or float) as a double, if the constant is one.
    pub fn as_float(&self) -> Option<f64> {
        match self {
            Constant::Int(i) => Some(*i as f64),
            Constant::Float(f) => Some(*f),
            Constant::Bool(b) => Some(f64::from(u8::from(*b))),
            _ => None,
        }
    }

    /// Returns the string, if the constant is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Constant::Str(s) => Some(s),
            _ => None,
        }
    }

    /// Returns the tensor, if the constant is one.
    pub fn as_tensor(&self) -> Option<&Arc<TensorData>> {
        match self {
            Constant::Tensor(t) => Some(t),
            _ => None,
        }
    }

    /// Returns the elements, if the constant is a list or tuple.
    pub fn items(&self) -> Option<&[Constant]> {
        match self {
            Constant::List(l) => Some(&l.items),
            Constant::Tuple(t) => Some(&t.items),
            _ => None,
        }
    }

    /// Returns the integers, if the constant is a list or tuple of integers.
    pub fn as_ints(&self) -> Option<Vec<i64>> {
        self.items()?.iter().map(Constant::as_int).collect()
    }

    /// Calls `each` with every object that this constant is or contains, in order. Objects inside objects are not visited. Shared objects are visited once.
    pub fn visit_objects(&self, each: &mut dyn FnMut(ObjectId)) {
        self.visit_unseen(&mut HashSet::new(), each);
    }

    fn visit_unseen(&self, seen: &mut HashSet<usize>, each: &mut dyn FnMut(ObjectId)) {
        let mut is_new = |address: *const (), count: usize| count == 1 || seen.insert(address.addr());
        match self {
            Constant::Object(id) => each(*id),
            Constant::List(list) if is_new(Arc::as_ptr(list).cast(), Arc::strong_count(list)) => with_stack(|| {
                list.items.iter().for_each(|item| item.visit_unseen(seen, each));
            }),
            Constant::Tuple(tuple) if is_new(Arc::as_ptr(tuple).cast(), Arc::strong_count(tuple)) => with_stack(|| {
                tuple.items.iter().for_each(|item| item.visit_unseen(seen, each));
            }),
            Constant::Dict(dict) if is_new(Arc::as_ptr(dict).cast(), Arc::strong_count(dict)) => with_stack(|| {
                for (key, value) in &dict.entries {
                    key.visit_unseen(seen, each);
                    value.visit_unseen(seen, each);
                }
            }),
            _ => {}
        }
    }

    /// Returns true if both constants are the same value. Scalars and strings are compared by value (NaN equals itself, 0.0 differs from -0.0). Tensors, lists
    /// and dictionaries are compared by identity, or by value if nothing in them has an identity (no tensor, no object).
    pub fn same(&self, other: &Constant) -> bool {
        match (self, other) {
            (Constant::None, Constant::None) => true,
            (Constant::Bool(a), Constant::Bool(b)) => a == b,
            (Constant::Int(a), Constant::Int(b)) => a == b,
            (Constant::Float(a), Constant::Float(b)) => a.to_bits() == b.to_bits(),
            (Constant::Complex(a), Constant::Complex(b)) => {
                a.re.to_bits() == b.re.to_bits() && a.im.to_bits() == b.im.to_bits()
            }
            (Constant::Str(a), Constant::Str(b)) => a == b,
            (Constant::Device(a), Constant::Device(b)) => a == b,
            (Constant::Tensor(a), Constant::Tensor(b)) => Arc::ptr_eq(a, b),
            (Constant::List(a), Constant::List(b)) if Arc::ptr_eq(a, b) => true,
            (Constant::Tuple(a), Constant::Tuple(b)) if Arc::ptr_eq(a, b) => true,
            (Constant::Dict(a), Constant::Dict(b)) if Arc::ptr_eq(a, b) => true,
            (Constant::List(a), Constant::List(b)) => a.element == b.element && same_items(&a.items, &b.items),
            (Constant::Tuple(a), Constant::Tuple(b)) => a.ty == b.ty && same_items(&a.items, &b.items),
            (Constant::Dict(a), Constant::Dict(b)) => {
                a.key == b.key
                    && a.value == b.value
                    && a.entries.len() == b.entries.len()
                    && a.entries
                        .iter()
                        .zip(&b.entries)
                        .all(|((k, v), (l, w))| with_stack(|| k.same(l) && v.same(w)))
            }
            (Constant::Enum(a), Constant::Enum(b)) => a.class == b.class && a.name == b.name,
            (Constant::Function(a), Constant::Function(b)) => a == b,
            (Constant::Object(a), Constant::Object(b)) => a == b,
            _ => false,
        }
    }
}

fn same_items(a: &[Constant], b: &[Constant]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(x, y)| with_stack(|| x.same(y)))
}

/// Drops the items of a container. Nested containers are dropped recursively, on a sufficient stack.
fn drop_items<T>(items: &mut Vec<T>) {
    if !items.is_empty() {
        with_stack(|| items.clear());
    }
}

impl Drop for ListConstant {
    fn drop(&mut self) {
        drop_items(&mut self.items);
    }
}

impl Drop for TupleConstant {
    fn drop(&mut self) {
        drop_items(&mut self.items);
    }
}

impl Drop for DictConstant {
    fn drop(&mut self) {
        drop_items(&mut self.entries);
    }
}

impl From<bool> for Constant {
    fn from(b: bool) -> Constant {
        Constant::Bool(b)
    }
}

impl From<i64> for Constant {
    fn from(i: i64) -> Constant {
        Constant::Int(i)
    }
}

impl From<f64> for Constant {
    fn from(f: f64) -> Constant {
        Constant::Float(f)
    }
}

impl From<&str> for Constant {
    fn from(s: &str) -> Constant {
        Constant::str(s)
    }
}

impl From<Arc<TensorData>> for Constant {
    fn from(t: Arc<TensorData>) -> Constant {
        Constant::Tensor(t)
    }
}
