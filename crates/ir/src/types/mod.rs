//! TorchScript's types.
//!
//! A type is a [`TypeKind`], interned in a [`Context`] and referred to by a [`TypeId`]. Classes, interfaces and enums
//! are nominal: the type is a qualified name, the definition is in a [`CompilationUnit`](crate::CompilationUnit).

mod display;
mod relations;

use crate::context::{DimsId, SymbolId, SymbolListId, TypeId, TypeListId};
use crate::{Context, DType, Device};

pub use display::{TypeStyle, display_type};
pub use relations::{Bindings, element_type, is_subtype, match_formal, substitute, unify, written_size};

/// The structure of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TypeKind {
    /// Any value.
    Any,
    /// A tensor, with its known properties.
    Tensor(TensorType),
    /// A 64-bit integer.
    Int,
    /// A double.
    Float,
    /// A bool.
    Bool,
    /// A complex number: a pair of doubles.
    Complex,
    /// `int`, `float`, `complex` or `bool`: `Scalar` in schemas.
    Number,
    /// A string.
    Str,
    /// The type of `None`.
    None,
    /// A device.
    Device,
    /// A random number generator.
    Generator,
    /// A CUDA stream.
    Stream,
    /// An untyped storage.
    Storage,
    /// A tensor's quantisation scheme.
    QScheme,
    /// A value of the given type, or None.
    Optional(TypeId),
    /// A mutable list of elements of the given type.
    List(TypeId),
    /// A mutable ordered dictionary: type of the keys, type of the values.
    Dict(TypeId, TypeId),
    /// A tuple with these element types.
    Tuple(TypeListId),
    /// A tuple with named fields: qualified name, field names, field types.
    NamedTuple(SymbolId, SymbolListId, TypeListId),
    /// One of several types.
    Union(TypeListId),
    /// The result of `fork`, a value of the given type.
    Future(TypeId),
    /// The result of an asynchronous call.
    Await(TypeId),
    /// A remote reference.
    RRef(TypeId),
    /// A class or module class, by qualified name.
    Class(SymbolId),
    /// An interface, by qualified name.
    Interface(SymbolId),
    /// An enumeration, by qualified name.
    Enum(SymbolId),
    /// A function value: the qualified name of the function, empty if unknown.
    Function(SymbolId),
    /// An opaque object.
    Capsule,
    /// Any list (in schemas).
    AnyList,
    /// Any tuple (in schemas).
    AnyTuple,
    /// Any class (in schemas).
    AnyClass,
    /// Any enum (in schemas).
    AnyEnum,
    /// A type variable of a schema: `t`, `tVal`.
    Var(SymbolId),
}

/// Known properties of a tensor. If all are `None`, it is just `Tensor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct TensorType {
    /// Element type.
    pub dtype: Option<DType>,
    /// Device.
    pub device: Option<Device>,
    /// Sizes in elements; the list's length is the rank.
    pub sizes: Option<DimsId>,
    /// Strides in elements; the list is as long as `sizes`.
    pub strides: Option<DimsId>,
    /// Whether the tensor requires gradients (`requires_grad=1`).
    pub requires_grad: Option<bool>,
    /// Whether the tensor is the undefined tensor.
    pub undefined: Option<bool>,
}

/// A size or stride of a tensor type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dim {
    /// Unknown: `*`.
    Unknown,
    /// A known size or stride, in elements.
    Known(i64),
    /// An unknown size or stride that is the same wherever the symbol appears: `SS(-3)`.
    Symbolic(i64),
}

macro_rules! well_known_types {
    ($($id:ident = $kind:expr;)*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "variants are named as the constants they number")]
        enum Number { $($id,)* }
        $(
            #[doc = concat!("`", stringify!($kind), "`")]
            pub const $id: TypeId = TypeId::new_const(Number::$id as u32);
        )*
        /// The simple types in the order of their ids.
        pub(crate) const WELL_KNOWN: &[TypeKind] = &[$($kind),*];
    };
}

impl TensorType {
    /// A tensor without known properties.
    pub const ANY: TensorType = TensorType {
        dtype: None,
        device: None,
        sizes: None,
        strides: None,
        requires_grad: None,
        undefined: None,
    };
}

well_known_types! {
    ANY = TypeKind::Any;
    TENSOR = TypeKind::Tensor(TensorType::ANY);
    INT = TypeKind::Int;
    FLOAT = TypeKind::Float;
    BOOL = TypeKind::Bool;
    COMPLEX = TypeKind::Complex;
    NUMBER = TypeKind::Number;
    STR = TypeKind::Str;
    NONE = TypeKind::None;
    DEVICE = TypeKind::Device;
    GENERATOR = TypeKind::Generator;
    FUNCTION = TypeKind::Function(crate::symbols::EMPTY);
    ANY_LIST = TypeKind::AnyList;
    ANY_TUPLE = TypeKind::AnyTuple;
    ANY_CLASS = TypeKind::AnyClass;
    ANY_ENUM = TypeKind::AnyEnum;
}

impl Context {
    /// Returns the type of lists of `element`: `T[]`.
    pub fn list_of(&self, element: TypeId) -> TypeId {
        self.type_of_kind(TypeKind::List(element))
    }

    /// Returns the type `T?`; optionals do not nest, and `None?` is `None`.
    pub fn optional_of(&self, element: TypeId) -> TypeId {
        match self.type_kind(element) {
            TypeKind::Optional(_) | TypeKind::None | TypeKind::Any => element,
            _ => self.type_of_kind(TypeKind::Optional(element)),
        }
    }

    /// Returns the type of dictionaries: `Dict(K, V)`.
    pub fn dict_of(&self, key: TypeId, value: TypeId) -> TypeId {
        self.type_of_kind(TypeKind::Dict(key, value))
    }

    /// Returns the type of tuples: `(A, B, ...)`.
    pub fn tuple_of(&self, elements: &[TypeId]) -> TypeId {
        self.type_of_kind(TypeKind::Tuple(self.type_list(elements)))
    }

    /// Returns the class type with the qualified name `name`.
    pub fn class(&self, name: &str) -> TypeId {
        self.type_of_kind(TypeKind::Class(self.symbol(name)))
    }

    /// Returns the tensor type of a dense CPU tensor with these properties, as PyTorch infers it from a value.
    pub fn tensor_of(&self, dtype: DType, sizes: &[i64], strides: &[i64], requires_grad: bool) -> TypeId {
        let dims = |ns: &[i64]| self.dim_list(&ns.iter().map(|n| Dim::Known(*n)).collect::<Vec<_>>());
        self.type_of_kind(TypeKind::Tensor(TensorType {
            dtype: Some(dtype),
            device: Some(Device::CPU),
            sizes: Some(dims(sizes)),
            strides: Some(dims(strides)),
            requires_grad: Some(requires_grad),
            undefined: Some(false),
        }))
    }

    /// Returns true for every tensor type.
    pub fn is_tensor(&self, ty: TypeId) -> bool {
        matches!(self.type_kind(ty), TypeKind::Tensor(_))
    }
}
