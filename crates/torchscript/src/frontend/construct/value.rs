//! The values of Python that constructors compute with.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use frazil_ir::{AttributeKind, Constant, Device, TypeId};
use indexmap::IndexMap;
use ruff_python_ast::{Stmt, StmtClassDef, StmtFunctionDef};

use super::MAX_DEPTH;
use super::tensor::HostTensor;
use crate::frontend::source::SourceFile;

/// Most values that are visited one in another; a list that holds another one twice, and so on, has endlessly many.
const MAX_VISITED: usize = 1 << 20;

/// A value.
#[derive(Clone)]
pub(super) enum Py {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(Rc<str>),
    List(Rc<RefCell<Vec<Py>>>),
    Tuple(Rc<[Py]>),
    Dict(Rc<RefCell<Vec<(Py, Py)>>>),
    Device(Device),
    Tensor(HostTensor),
    /// A tensor that a module registers as a parameter.
    Parameter(HostTensor),
    Object(ObjectRef),
    Class(ClassRef),
    Function(FunctionRef),
    /// A member of an enumeration.
    Member(TypeId, Box<Constant>),
    /// A method of a value, by name.
    Method(Box<Py>, Rc<str>),
    /// `super()` of an object in a method of a class.
    Super(ObjectRef, ClassRef),
    /// Something of `torch`, `math` or Python, by its dotted name.
    Path(Rc<str>),
}

pub(super) type ObjectRef = Rc<RefCell<PyObject>>;

/// A module that has been made, or an object of another class.
pub(super) struct PyObject {
    pub(super) class: ClassRef,
    pub(super) attributes: IndexMap<String, Attribute>,
    /// Buffers that are no part of the state.
    pub(super) transient: Vec<String>,
    /// Functions that calls of the module are to go through.
    pub(super) hooks: Vec<Hook>,
    /// The module that `torch.jit.script` made this one of.
    pub(super) scripted: Option<ObjectRef>,
}

/// A function that is called before or after `forward`.
#[derive(Clone)]
pub(super) struct Hook {
    pub(super) is_before: bool,
    pub(super) function: FunctionRef,
}

#[derive(Clone)]
pub(super) struct Attribute {
    pub(super) value: Py,
    pub(super) kind: AttributeKind,
}

/// A class: where it stands, and its name.
#[derive(Clone)]
pub(crate) struct ClassRef {
    pub(crate) file: Arc<SourceFile>,
    pub(crate) statement: usize,
    pub(crate) qualified: Rc<str>,
}

impl ClassRef {
    /// Its definition.
    pub(crate) fn def(&self) -> Option<&StmtClassDef> {
        self.file.statement(self.statement)?.as_class_def_stmt()
    }

    pub(super) fn is(&self, other: &ClassRef) -> bool {
        self.statement == other.statement && self.qualified == other.qualified
    }

    /// The method `name` that the class itself has.
    pub(super) fn method(&self, name: &str) -> Option<FunctionRef> {
        let index = self
            .def()?
            .body
            .iter()
            .position(|member| matches!(member, Stmt::FunctionDef(def) if def.name.as_str() == name))?;
        Some(FunctionRef {
            file: Arc::clone(&self.file),
            statement: self.statement,
            method: Some(index),
            class: Some(Rc::new(self.clone())),
        })
    }
}

/// A function or method: where it stands.
#[derive(Clone)]
pub(super) struct FunctionRef {
    pub(super) file: Arc<SourceFile>,
    pub(super) statement: usize,
    pub(super) method: Option<usize>,
    /// The class that the method is of.
    pub(super) class: Option<Rc<ClassRef>>,
}

impl FunctionRef {
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
        Py::List(Rc::new(RefCell::new(items)))
    }

    pub(super) fn tuple(items: Vec<Py>) -> Py {
        Py::Tuple(items.into())
    }

    /// What Python calls its type.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Py::None => "NoneType",
            Py::Bool(_) => "bool",
            Py::Int(_) => "int",
            Py::Float(_) => "float",
            Py::Str(_) => "str",
            Py::List(_) => "list",
            Py::Tuple(_) => "tuple",
            Py::Dict(_) => "dict",
            Py::Device(_) => "device",
            Py::Tensor(_) | Py::Parameter(_) => "Tensor",
            Py::Object(_) | Py::Member(..) => "object",
            Py::Class(_) => "type",
            Py::Function(_) | Py::Method(..) | Py::Path(_) => "function",
            Py::Super(..) => "super",
        }
    }

    pub(super) fn truth(&self) -> bool {
        match self {
            Py::None => false,
            Py::Bool(b) => *b,
            Py::Int(i) => *i != 0,
            Py::Float(f) => *f != 0.0,
            Py::Str(s) => !s.is_empty(),
            Py::List(items) => !items.borrow().is_empty(),
            Py::Tuple(items) => !items.is_empty(),
            Py::Dict(items) => !items.borrow().is_empty(),
            _ => true,
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

    /// The elements of a list or tuple, or the keys of a dictionary.
    pub(super) fn items(&self) -> Option<Vec<Py>> {
        Some(match self {
            Py::List(items) => items.borrow().clone(),
            Py::Tuple(items) => items.to_vec(),
            Py::Dict(items) => items.borrow().iter().map(|(key, _)| key.clone()).collect(),
            Py::Str(text) => text.chars().map(|c| Py::str(c.to_string())).collect(),
            Py::Object(object) => {
                let object = object.borrow();
                object
                    .attributes
                    .iter()
                    .filter(|(name, _)| *name != "training")
                    .map(|(_, attribute)| attribute.value.clone())
                    .collect()
            }
            _ => return None,
        })
    }

    /// Integers of a list or tuple, or of one number.
    pub(super) fn ints(&self) -> Option<Vec<i64>> {
        match self.as_int() {
            Some(one) => Some(vec![one]),
            None => self.items()?.iter().map(Py::as_int).collect(),
        }
    }

    /// Whether both are equal. Values that are too large to be compared are not: [`Py::is_small`] tells.
    pub(super) fn equals(&self, other: &Py) -> bool {
        self.equals_at(other, 0, &mut MAX_VISITED.clone())
    }

    /// Whether the value holds few enough others for all of them to be visited, shared ones at each place.
    pub(super) fn is_small(&self) -> bool {
        fn visit(value: &Py, depth: usize, left: &mut usize) -> bool {
            if depth > MAX_DEPTH || *left == 0 {
                return false;
            }
            *left -= 1;
            match value {
                Py::List(items) => items.borrow().iter().all(|item| visit(item, depth + 1, left)),
                Py::Tuple(items) => items.iter().all(|item| visit(item, depth + 1, left)),
                Py::Dict(items) => {
                    let items = items.borrow();
                    items
                        .iter()
                        .all(|(k, v)| visit(k, depth + 1, left) && visit(v, depth + 1, left))
                }
                _ => true,
            }
        }
        visit(self, 0, &mut MAX_VISITED.clone())
    }

    /// How many elements an operation on the value may have to go through.
    pub(super) fn weight(&self) -> u64 {
        let length = match self {
            Py::Str(text) => text.len(),
            Py::List(items) => items.borrow().len(),
            Py::Tuple(items) => items.len(),
            Py::Dict(items) => items.borrow().len(),
            Py::Tensor(tensor) | Py::Parameter(tensor) => tensor.data.borrow().len(),
            _ => 0,
        };
        length as u64
    }

    /// How many bytes a list, string or dictionary takes that nothing else holds, without what it refers to.
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

    /// Lists may contain themselves: what lies deeper than `MAX_DEPTH` counts as different.
    fn equals_at(&self, other: &Py, depth: usize, left: &mut usize) -> bool {
        *left = left.saturating_sub(1);
        match (self, other) {
            _ if depth > MAX_DEPTH || *left == 0 => false,
            (Py::None, Py::None) => true,
            (Py::Str(a), Py::Str(b)) => a == b,
            (Py::Device(a), Py::Device(b)) => a == b,
            (Py::List(_), Py::List(_)) | (Py::Tuple(_), Py::Tuple(_)) => {
                let (a, b) = (self.items().unwrap_or_default(), other.items().unwrap_or_default());
                a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| a.equals_at(b, depth + 1, left))
            }
            (Py::Class(a), Py::Class(b)) => a.is(b),
            (Py::Member(_, a), Py::Member(_, b)) => a.same(b),
            (Py::Path(a), Py::Path(b)) => a == b,
            (Py::Object(a), Py::Object(b)) => Rc::ptr_eq(a, b),
            _ => match (self.as_f64(), other.as_f64()) {
                (Some(a), Some(b)) => a == b,
                _ => false,
            },
        }
    }

    /// As `str()` has it, for the values that text is made of.
    pub(super) fn text(&self) -> String {
        match self {
            Py::None => "None".into(),
            Py::Bool(b) => if *b { "True" } else { "False" }.into(),
            Py::Int(i) => i.to_string(),
            Py::Float(f) if f.fract() == 0.0 && f.abs() < 1e16 => format!("{f:.1}"),
            Py::Float(f) => f.to_string(),
            Py::Str(s) => s.to_string(),
            Py::Device(device) => device.to_string(),
            other => format!("<{}>", other.type_name()),
        }
    }
}
