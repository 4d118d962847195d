//! Python values, as the evaluator represents them.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use frazil_ir::{AttributeKind, Constant, DType, Device, TypeId};
use indexmap::IndexMap;
use num_complex::Complex64;
use ruff_python_ast::{Stmt, StmtFunctionDef};

use super::tensor::HostTensor;
use crate::error::SourceError;
use crate::names::ClassRef;
use crate::source::{Container, SourceFile, shared};

/// A Python value.
#[derive(Clone)]
pub(super) enum Py {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Complex(Complex64),
    Str(Rc<str>),
    List(Rc<RefCell<Vec<Py>>>),
    Tuple(Rc<[Py]>),
    /// `torch.Size`: a tuple with another `repr`.
    Size(Rc<[Py]>),
    /// A tuple with named fields.
    Named(Rc<Named>),
    /// A NamedTuple class without a class statement: a result of `collections.namedtuple`.
    NamedClass(Rc<NamedClass>),
    Dict(Rc<RefCell<Vec<(Py, Py)>>>),
    /// The elements of a set, and whether it is a `frozenset`.
    Set(Rc<RefCell<Vec<Py>>>, bool),
    Device(Device),
    /// The result of `torch.finfo` or `torch.iinfo` for a dtype.
    Limits(DType),
    Tensor(HostTensor),
    /// A tensor that a module registers as a parameter.
    Parameter(HostTensor),
    Object(ObjectRef),
    /// An object of a class of the source text that is no class of modules.
    Instance(ObjectRef),
    /// `torch.jit.Attribute`: a value and its TorchScript type.
    Typed(Box<Py>, TypeId),
    /// A function that `torch.jit.trace` returned: index of the traced function.
    Traced(usize),
    Class(ClassRef),
    Function(FunctionRef),
    /// A member of an enumeration.
    Member(TypeId, Box<Constant>),
    /// An iterator; `None` after it has been consumed.
    Iterator(Rc<RefCell<Option<VecDeque<Py>>>>),
    /// The result of `load_state_dict`: missing and unexpected keys.
    Keys(Rc<[Py; 2]>),
    /// The handle that registering a hook returns: the module and the identity of the registration.
    Handle(ObjectRef, Rc<()>),
    /// A value of which only the Python class is known.
    Opaque(&'static str),
    /// A value that only Python can evaluate, with the reason.
    Unknown(Rc<SourceError>),
    /// A method bound to a value: the value and the method's name.
    Method(Box<Py>, Rc<str>),
    /// The result of `super()` in a method: the object and the class of the method.
    Super(ObjectRef, ClassRef),
    /// An object of `torch`, `math` or Python, represented by its dotted name.
    Path(Rc<str>),
}

pub(super) type ObjectRef = Rc<RefCell<PyObject>>;

/// A module, or an object of another class of the source text.
pub(super) struct PyObject {
    pub(super) class: ClassRef,
    pub(super) attributes: IndexMap<String, Attribute>,
    /// Names of the non-persistent buffers.
    pub(super) transient: Vec<String>,
    /// Hooks of `forward` registered for this module.
    pub(super) hooks: Vec<Hook>,
    /// The original module, if `torch.jit.script` returned this one.
    pub(super) scripted: Option<ObjectRef>,
    /// Whether the text has set training mode (by `train()`, `eval()` or an assignment to `training`); `None` if it has set no mode.
    pub(super) mode: Option<bool>,
    /// The traced methods, if `torch.jit.trace` returned this module.
    pub(super) traced: Vec<TracedMethod>,
    /// Whether the module was in training mode when it was traced; `None` for a module that was not traced.
    pub(super) trained_when_traced: Option<bool>,
    /// Whether `nn.Module.__init__` has been called.
    pub(super) is_ready: bool,
}

impl PyObject {
    /// Returns a module without attributes.
    pub(super) fn new(class: ClassRef) -> PyObject {
        let mut object = PyObject {
            class,
            attributes: IndexMap::new(),
            transient: Vec::new(),
            hooks: Vec::new(),
            scripted: None,
            mode: None,
            traced: Vec::new(),
            trained_when_traced: None,
            is_ready: true,
        };
        // Modules are in training mode while the text runs. Compiled modules are in evaluation mode, unless the text has set a mode.
        set_mode(&mut object, true);
        object
    }
}

impl Container for RefCell<PyObject> {
    fn empty(&self) {
        let mut object = self.borrow_mut();
        let attributes = std::mem::take(&mut object.attributes);
        let scripted = object.scripted.take();
        // Their contents may include the object.
        drop(object);
        drop((attributes, scripted));
    }
}

/// A function that is registered to run before or after `forward`.
#[derive(Clone)]
pub(super) struct Hook {
    pub(super) is_before: bool,
    pub(super) function: FunctionRef,
    /// Address by which the handle of the registration identifies the hook.
    pub(super) identity: Rc<()>,
}

#[derive(Clone)]
pub(super) struct Attribute {
    pub(super) value: Py,
    pub(super) kind: AttributeKind,
}

impl ClassRef {
    /// Returns the method `name` that the class statement defines; of several, the last one.
    pub(super) fn method(&self, name: &str) -> Option<FunctionRef> {
        let index = self
            .def()?
            .body
            .iter()
            .rposition(|member| matches!(member, Stmt::FunctionDef(def) if def.name.as_str() == name))?;
        Some(FunctionRef {
            file: Arc::clone(&self.file),
            statement: self.statement,
            method: Some(index),
            class: Some(Rc::new(self.clone())),
            scripted: false,
        })
    }
}

/// A reference to a function or method in the source.
#[derive(Clone)]
pub(super) struct FunctionRef {
    pub(super) file: Arc<SourceFile>,
    pub(super) statement: usize,
    pub(super) method: Option<usize>,
    /// The class that contains the method.
    pub(super) class: Option<Rc<ClassRef>>,
    /// Whether `torch.jit.script` has compiled the function.
    pub(super) scripted: bool,
}

impl FunctionRef {
    /// Returns whether the function is a method that receives its object as first argument.
    pub(super) fn is_method(&self) -> bool {
        let is_static = |def: &StmtFunctionDef| {
            let names = def.decorator_list.iter().filter_map(|d| d.expression.as_name_expr());
            names.into_iter().any(|name| name.id.as_str() == "staticmethod")
        };
        self.method.is_some() && !self.def().is_some_and(is_static)
    }

    pub(super) fn is(&self, other: &FunctionRef) -> bool {
        Arc::ptr_eq(&self.file, &other.file) && (self.statement, self.method) == (other.statement, other.method)
    }

    pub(super) fn def(&self) -> Option<&StmtFunctionDef> {
        let statement = self.file.statement(self.statement)?;
        match self.method {
            None => statement.as_function_def_stmt(),
            Some(index) => statement.as_class_def_stmt()?.body.get(index)?.as_function_def_stmt(),
        }
    }
}

impl Py {
    pub(super) fn str(text: impl AsRef<str>) -> Py {
        Py::Str(Rc::from(text.as_ref()))
    }

    pub(super) fn list(items: Vec<Py>) -> Py {
        Py::List(shared(RefCell::new(items)))
    }

    pub(super) fn dict(items: Vec<(Py, Py)>) -> Py {
        Py::Dict(shared(RefCell::new(items)))
    }

    pub(super) fn tuple(items: Vec<Py>) -> Py {
        Py::Tuple(items.into())
    }

    /// Returns the value itself, or a plain tuple for a `torch.Size`.
    pub(super) fn plain(&self) -> Py {
        match self {
            Py::Size(items) => Py::Tuple(Rc::clone(items)),
            Py::Named(named) => Py::Tuple(Rc::clone(&named.items)),
            other => other.clone(),
        }
    }

    /// Returns `torch.Size(sizes)`.
    pub(super) fn size(sizes: impl IntoIterator<Item = i64>) -> Py {
        Py::Size(sizes.into_iter().map(Py::Int).collect())
    }

    /// Returns the name of the value's type in Python.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Py::None => "NoneType",
            Py::Bool(_) => "bool",
            Py::Int(_) => "int",
            Py::Float(_) => "float",
            Py::Complex(_) => "complex",
            Py::Str(_) => "str",
            Py::List(_) => "list",
            Py::Tuple(_) | Py::Named(_) => "tuple",
            Py::Unknown(_) => "value of Python",
            Py::Size(_) => "torch.Size",
            Py::Dict(_) => "dict",
            Py::Set(_, false) => "set",
            Py::Set(_, true) => "frozenset",
            Py::Device(_) => "device",
            Py::Limits(dtype) if dtype.is_floating_point() => "torch.finfo",
            Py::Limits(_) => "torch.iinfo",
            Py::Tensor(_) | Py::Parameter(_) => "Tensor",
            Py::Object(_) | Py::Instance(_) | Py::Member(..) => "object",
            Py::Typed(..) => "Attribute",
            Py::Class(_) | Py::NamedClass(_) => "type",
            Py::Function(_) | Py::Traced(_) | Py::Method(..) | Py::Path(_) => "function",
            Py::Super(..) => "super",
            Py::Iterator(_) => "iterator",
            Py::Keys(_) => "_IncompatibleKeys",
            Py::Handle(..) => "RemovableHandle",
            Py::Opaque(what) => what,
        }
    }

    pub(super) fn as_int(&self) -> Option<i64> {
        match self {
            Py::Int(i) => Some(*i),
            Py::Bool(b) => Some(i64::from(*b)),
            _ => None,
        }
    }

    pub(super) fn as_f64(&self) -> Option<f64> {
        match self {
            Py::Float(f) => Some(*f),
            other => other.as_int().map(|i| i as f64),
        }
    }

    /// Returns the elements of a list or tuple, or the keys of a dictionary. An iterator is empty afterwards.
    pub(super) fn items(&self) -> Option<Vec<Py>> {
        Some(match self {
            Py::List(items) => items.borrow().clone(),
            Py::Tuple(items) | Py::Size(items) => items.to_vec(),
            Py::Named(named) => named.items.to_vec(),
            Py::Dict(items) => items.borrow().iter().map(|(key, _)| key.clone()).collect(),
            Py::Set(items, _) if items.borrow().len() < 2 => items.borrow().clone(),
            Py::Str(text) => text.chars().map(|c| Py::str(c.to_string())).collect(),
            // A second use of an iterator is not supported: in Python it continues where the first use stopped, which is not recorded.
            Py::Iterator(items) => items.borrow_mut().take()?.into(),
            Py::Keys(keys) => keys.to_vec(),
            _ => return None,
        })
    }

    /// Returns the integers, if the value is a list or tuple of integers, or a single integer.
    pub(super) fn ints(&self) -> Option<Vec<i64>> {
        match self.as_int() {
            Some(one) => Some(vec![one]),
            None => match self {
                Py::List(_) | Py::Tuple(_) | Py::Size(_) | Py::Named(_) => {
                    self.items()?.iter().map(Py::as_int).collect()
                }
                _ => None,
            },
        }
    }

    /// Returns the number of elements that an operation on the value may have to visit.
    pub(super) fn weight(&self) -> u64 {
        let length = match self {
            Py::Str(text) => text.len(),
            Py::List(items) => items.borrow().len(),
            Py::Tuple(items) => items.len(),
            Py::Dict(items) => items.borrow().len(),
            // A lookup in a set compares all its elements.
            Py::Set(items, _) => items.borrow().len() * items.borrow().len(),
            Py::Tensor(tensor) | Py::Parameter(tensor) => tensor.len(),
            _ => 0,
        };
        length as u64
    }

    /// Returns the size in bytes of an unshared list, string or dictionary, without the values that it refers to.
    pub(super) fn fresh_bytes(&self) -> u64 {
        let bytes = match self {
            Py::Str(text) if Rc::strong_count(text) == 1 => text.len(),
            Py::List(items) if Rc::strong_count(items) == 1 => items.borrow().len() * size_of::<Py>(),
            Py::Tuple(items) if Rc::strong_count(items) == 1 => items.len() * size_of::<Py>(),
            Py::Dict(items) if Rc::strong_count(items) == 1 => items.borrow().len() * 2 * size_of::<Py>(),
            _ => 0,
        };
        bytes as u64
    }
}

/// A NamedTuple class: names and defaults of its fields.
pub(super) struct NamedClass {
    pub(super) name: Rc<str>,
    pub(super) fields: Vec<Rc<str>>,
    /// The default values of the last fields, with their names.
    pub(super) defaults: Vec<(Rc<str>, Py)>,
    /// The class statement that defines methods, if there is one.
    pub(super) class: Option<ClassRef>,
}

/// A NamedTuple: its class and the values of its fields.
pub(super) struct Named {
    pub(super) class: Rc<NamedClass>,
    pub(super) items: Rc<[Py]>,
}

impl NamedClass {
    /// Returns the value of the attribute `_fields`: the names of the fields.
    pub(super) fn field_names(&self) -> Py {
        Py::tuple(self.fields.iter().map(|field| Py::Str(Rc::clone(field))).collect())
    }

    pub(super) fn is(&self, other: &NamedClass) -> bool {
        match (&self.class, &other.class) {
            (Some(a), Some(b)) => a.is(b),
            (None, None) => std::ptr::eq(self, other),
            _ => false,
        }
    }
}

impl Named {
    /// Returns the value of the field `name`.
    pub(super) fn field(&self, name: &str) -> Option<Py> {
        let at = self.class.fields.iter().position(|field| &**field == name)?;
        self.items.get(at).cloned()
    }

    /// Returns the result of `repr`, built from the texts of the items.
    pub(super) fn text(&self, items: &[String]) -> String {
        let field = |(name, item): (&Rc<str>, &String)| format!("{name}={item}");
        let fields: Vec<String> = self.class.fields.iter().zip(items).map(field).collect();
        format!("{}({})", self.class.name, fields.join(", "))
    }

    /// Returns a NamedTuple of the same class with the items `items`.
    pub(super) fn with(&self, items: Vec<Py>) -> Py {
        Py::Named(Rc::new(Named {
            class: Rc::clone(&self.class),
            items: items.into(),
        }))
    }
}

/// A traced method of a module, with the arguments of the trace.
#[derive(Clone)]
pub(super) struct TracedMethod {
    pub(super) name: Rc<str>,
    pub(super) inputs: Vec<Constant>,
    pub(super) strict: bool,
    pub(super) error: Box<SourceError>,
}

/// Sets the training mode of the module itself, without its submodules.
pub(super) fn set_mode(object: &mut PyObject, training: bool) {
    let training = Attribute {
        value: Py::Bool(training),
        kind: AttributeKind::Plain,
    };
    object.attributes.insert("training".to_owned(), training);
}

/// Returns a Python iterator over `items`.
pub(super) fn iterator(items: Vec<Py>) -> Py {
    Py::Iterator(Rc::new(RefCell::new(Some(items.into()))))
}

pub(super) fn dtype_of(value: &Py) -> Option<DType> {
    match value {
        Py::Path(path) => DType::from_python_name(path.strip_prefix("torch.")?),
        _ => None,
    }
}

/// Sets the value of a key in the items of a dictionary.
pub(super) fn insert(items: &mut Vec<(Py, Py)>, key: Py, value: Py) {
    match items.iter_mut().find(|(known, _)| known.is_key(&key)) {
        Some((_, slot)) => *slot = value,
        None => items.push((key, value)),
    }
}

/// Returns whether both references are to the same function definition.
pub(super) fn same_function(a: &FunctionRef, b: &FunctionRef) -> bool {
    Arc::ptr_eq(&a.file, &b.file) && a.statement == b.statement && a.method == b.method
}
