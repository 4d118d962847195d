//! Declarations in class bodies: the types of attributes, and which attributes are constants.

use frazil_ir::{Constant, TypeId, TypeKind};
use ruff_python_ast::{Expr, Stmt, StmtAnnAssign};

use super::purity::is_unknown_name;
use super::refuse::is_plain_path;
use super::value::Py;
use crate::error::Result;
use crate::names::{Annotations, Bound, ClassRef, Definitions, Names, library_constant};
use crate::source::dotted;

/// The declarations for objects of a class. As in Python, declarations of a class hide those of its bases.
pub(super) struct Declared {
    annotations: Vec<Annotation>,
    /// Names of the attributes that are declared as constants.
    pub(super) constants: Vec<String>,
}

/// A reference to an annotation in a class body: name of the attribute, class, and index of the statement in the body.
struct Annotation {
    name: String,
    class: ClassRef,
    member: usize,
}

/// The declared type of an attribute.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub(super) ty: TypeId,
    /// Whether the source text contains the declaration, so that a value of another type is an error.
    pub(super) is_strict: bool,
}

impl Declared {
    /// Returns the declarations in the classes of `chain`, a method resolution order.
    pub(super) fn of(definitions: &Definitions, chain: &[ClassRef]) -> Declared {
        let mut declared = Declared {
            annotations: Vec::new(),
            constants: Vec::new(),
        };
        let mut constants_found = false;
        for class in chain {
            let Some(def) = class.def() else { continue };
            // The first class that has annotations or `__constants__` hides those of its bases.
            let hides = class.file.rules.is_source();
            let take_annotations = !hides || declared.annotations.iter().all(|a| !a.class.file.rules.is_source());
            for (member, statement) in def.body.iter().enumerate() {
                match statement {
                    Stmt::AnnAssign(assign) => {
                        let Expr::Name(target) = &*assign.target else { continue };
                        if !take_annotations {
                            continue;
                        }
                        if is_final(class, assign) {
                            declared.constants.push(target.id.to_string());
                        }
                        declared.annotations.push(Annotation {
                            name: target.id.to_string(),
                            class: class.clone(),
                            member,
                        });
                    }
                    Stmt::Assign(assign) if !constants_found => {
                        let is_constants =
                            matches!(assign.targets.as_slice(), [Expr::Name(t)] if t.id.as_str() == "__constants__");
                        if is_constants {
                            declared.constants.extend(names(definitions, class, &assign.value));
                            constants_found = hides;
                        }
                    }
                    _ => {}
                }
            }
        }
        declared
    }

    /// Returns the declared type of an attribute.
    ///
    /// # Errors
    /// When the annotation does not denote a type.
    pub(super) fn wanted(&self, names: &mut dyn Names, name: &str) -> Result<Option<Wanted>> {
        let Some(annotation) = self.annotations.iter().find(|annotation| annotation.name == name) else {
            return Ok(None);
        };
        let class = annotation.class.clone();
        let assign = class
            .def()
            .and_then(|def| def.body.get(annotation.member)?.as_ann_assign_stmt());
        let Some(assign) = assign else { return Ok(None) };
        if is_final(&class, assign) {
            let message = format!("Unknown type annotation: `{name}` is `Final`, but a parameter, buffer or module");
            return Err(class.file.error("unknown-type", message, assign).into());
        }
        let ty = names.annotation(&class.file, &assign.annotation)?;
        let is_strict = class.file.rules.is_source();
        Ok(Some(Wanted { ty, is_strict }))
    }
}

/// Returns whether an annotation is `Final` or `Final[...]`.
fn is_final(class: &ClassRef, assign: &StmtAnnAssign) -> bool {
    let head = match &*assign.annotation {
        Expr::Subscript(subscript) => dotted(&subscript.value),
        other => dotted(other),
    };
    let head = class.file.expand(&head.unwrap_or_default());
    head.rsplit('.').next() == Some("Final")
}

/// Returns the strings in the value of `__constants__`.
fn names(definitions: &Definitions, class: &ClassRef, value: &Expr) -> Vec<String> {
    if let Some(Bound::Constant(known) | Bound::Mutable(_, Some(known))) = definitions.bound_value(&class.file, value)
        && let Some(items) = known.items()
    {
        let names = items.iter().filter_map(|item| match item {
            Constant::Str(text) => Some(text.to_string()),
            _ => None,
        });
        return names.collect();
    }
    let items = match value {
        Expr::List(list) => &list.elts,
        Expr::Tuple(tuple) => &tuple.elts,
        Expr::Set(set) => &set.elts,
        _ => return Vec::new(),
    };
    let items = items.iter().filter_map(Expr::as_string_literal_expr);
    items.map(|text| text.value.to_str().to_owned()).collect()
}

/// Returns the value that a class body assigns to an attribute that no object has. If it cannot be a constant, returns its Python class.
pub(super) fn class_level(
    definitions: &Definitions,
    chain: &[ClassRef],
    name: &str,
) -> Option<std::result::Result<Constant, &'static str>> {
    for class in chain {
        let value = class.def()?.body.iter().rev().find_map(|member| match member {
            Stmt::AnnAssign(assign) => match &*assign.target {
                Expr::Name(target) if target.id.as_str() == name => assign.value.as_deref(),
                _ => None,
            },
            Stmt::Assign(assign) => match assign.targets.as_slice() {
                [Expr::Name(target)] if target.id.as_str() == name => Some(&*assign.value),
                _ => None,
            },
            _ => None,
        });
        let Some(value) = value else { continue };
        let known = match definitions.bound_value(&class.file, value)? {
            Bound::Constant(Constant::Tensor(_)) => Err("torch.Tensor"),
            Bound::Constant(known) | Bound::Mutable(_, Some(known)) => valid(definitions, known).ok_or("object"),
            Bound::Mutable(kind, None) => Err(*kind),
            Bound::Refused(_) => return None,
        };
        return Some(known);
    }
    None
}

/// Returns the constant in the form in which modules may have it, with tuples in place of lists; `None` if it cannot be a constant of a module.
fn valid(definitions: &Definitions, constant: &Constant) -> Option<Constant> {
    match constant {
        Constant::None
        | Constant::Bool(_)
        | Constant::Int(_)
        | Constant::Float(_)
        | Constant::Str(_)
        | Constant::Device(_) => Some(constant.clone()),
        Constant::List(_) | Constant::Tuple(_) => {
            let items: Option<Vec<_>> = constant.items()?.iter().map(|item| valid(definitions, item)).collect();
            Some(Constant::tuple(&definitions.ctx, items?))
        }
        _ => None,
    }
}

/// Returns the constant value of an object's attribute, or the Python class of a value that cannot be a constant.
pub(super) fn constant(definitions: &Definitions, value: &Py, depth: usize) -> std::result::Result<Constant, String> {
    Ok(match value {
        Py::None => Constant::None,
        Py::Bool(b) => Constant::Bool(*b),
        Py::Int(i) => Constant::Int(*i),
        Py::Float(f) => Constant::Float(*f),
        Py::Str(text) => Constant::str(&**text),
        Py::Device(device) => Constant::Device(*device),
        Py::Path(path) => match library_constant(path) {
            Some(known) => known,
            None => return Err(python_class(value)),
        },
        Py::Size(_) | Py::Named(_) => return constant(definitions, &value.plain(), depth),
        Py::Member(ty, _) => {
            let name = match definitions.ctx.type_kind(*ty) {
                TypeKind::Enum(name) => definitions.ctx.name(name),
                _ => "object",
            };
            return Err(format!("__main__.{}", name.rsplit('.').next().unwrap_or(name)));
        }
        Py::List(_) | Py::Tuple(_) if depth < super::maker::MAX_CALLS && value.is_small() => {
            let items = value.items().unwrap_or_default();
            let items: std::result::Result<Vec<_>, _> = items
                .iter()
                .map(|item| constant(definitions, item, depth + 1))
                .collect();
            Constant::tuple(&definitions.ctx, items?)
        }
        other => return Err(python_class(other)),
    })
}

/// Names of builtin types of Python.
const TYPES: &[&str] = &[
    "bool",
    "bytes",
    "complex",
    "dict",
    "enumerate",
    "filter",
    "float",
    "frozenset",
    "int",
    "list",
    "map",
    "object",
    "range",
    "reversed",
    "set",
    "slice",
    "str",
    "super",
    "tuple",
    "type",
    "zip",
];

/// Dotted names of Python modules to which programs may refer.
const MODULES: &[&str] = &[
    "copy",
    "logging",
    "math",
    "os",
    "random",
    "sys",
    "time",
    "torch",
    "torch.autograd",
    "torch.jit",
    "torch.linalg",
    "torch.nn",
    "torch.nn.functional",
    "torch.nn.init",
    "typing",
    "warnings",
];

/// Returns whether a dotted name denotes a type of Python or a module, which code cannot call.
pub(super) fn is_no_function(path: &str) -> bool {
    TYPES.contains(&path)
        || MODULES.contains(&path)
        || path == LOGGER
        || is_builtin(path)
        || !path.contains('.') && is_plain_path(path)
}

/// Returns the name of the class of `value`, as in PyTorch's messages.
pub(super) fn python_class(value: &Py) -> String {
    match value {
        Py::Tensor(_) => "torch.Tensor".into(),
        Py::Parameter(_) => "torch.nn.parameter.Parameter".into(),
        Py::Device(_) => "torch.device".into(),
        Py::Object(object) | Py::Instance(object) => {
            let class = object.borrow().class.clone();
            match class.file.rules.is_source() {
                true => format!("__main__.{}", class.simple()),
                false => class.qualified.trim_start_matches("__torch__.").to_owned(),
            }
        }
        Py::Path(path) if TYPES.contains(&&**path) => "type".into(),
        Py::Path(path) if MODULES.contains(&&**path) || !path.contains('.') && is_plain_path(path) => "module".into(),
        Py::Path(path) if library_constant(path).is_some() => {
            match path.ends_with("format") || path.contains("channels_last") {
                true => "torch.memory_format".into(),
                false => "torch.dtype".into(),
            }
        }
        Py::Path(path) if is_builtin(path) => "builtin_function_or_method".into(),
        Py::Path(path) if &**path == LOGGER => LOGGER.into(),
        Py::Method(base, _) => match &**base {
            Py::Object(_) | Py::Instance(_) | Py::Named(_) => "method".into(),
            _ => "builtin_function_or_method".into(),
        },
        // Others of these are rare.
        Py::Iterator(_) => "generator".into(),
        other => other.type_name().into(),
    }
}

/// The class of the objects that `logging.getLogger` returns.
const LOGGER: &str = "logging.Logger";

/// Returns whether `path` is the name of a builtin function of Python.
fn is_builtin(path: &str) -> bool {
    !path.contains('.') && !TYPES.contains(&path) && !is_unknown_name(path)
}
