//! The global variables of a source text, including variables whose values are unknown.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use indexmap::IndexMap;
use ruff_text_size::TextRange;

use super::maker::Maker;
use super::value::{ObjectRef, Py};
use crate::error::SourceError;
use crate::names::ClassRef;

/// The value of a variable, or the reason why it is unknown.
pub(super) type Known = Result<Py, Box<SourceError>>;

/// The global variables of a source text while it runs.
#[derive(Default)]
pub(super) struct Globals {
    pub(super) names: HashMap<String, Binding>,
    /// Location of the statement that is being run.
    pub(super) at: TextRange,
    /// Values that a statement which cannot be run may have changed, by address. Keeping the value prevents reuse of its address.
    tainted: HashMap<(usize, usize), (Py, Box<SourceError>)>,
    /// Functions and classes that were passed to unknown code, which may call them at any later time.
    pub(super) escaped: Vec<Py>,
    /// Classes for which it is unknown whether they are classes of modules, keyed by statement index, with the reason.
    pub(super) unclear: HashMap<usize, Box<SourceError>>,
    /// The error of the first statement that could not be run.
    pub(super) refused: Option<Box<SourceError>>,
    /// The error of a statement that may have changed any variable, and every value created after it.
    pub(super) wild: Option<Box<SourceError>>,
    /// For each compiled function and module, the definitions that it used when it was compiled.
    pub(super) snapshots: Vec<Snapshot>,
    /// The values of names in class bodies, keyed by the index of the class statement.
    pub(super) class_values: HashMap<usize, IndexMap<String, Known>>,
    /// The values of defaults and of assignments in class bodies, by the location of the expression.
    pub(super) bound: HashMap<TextRange, Known>,
}

/// The definitions of the text that a compiled function or module used at the time of its compilation.
pub(super) struct Snapshot {
    pub(super) used: Vec<(String, Py)>,
    /// The error to report if a used definition is different at the end of the run. The name of the definition is not
    /// part of it.
    pub(super) error: Box<SourceError>,
}

/// A global variable with its value.
pub(super) struct Binding {
    pub(super) value: Known,
    /// Location of the statement that assigned the value.
    pub(super) at: TextRange,
    /// Properties of the value, if it is unknown.
    pub(super) unknown: Option<Unknown>,
}

/// Properties of an unknown value.
#[derive(Clone)]
pub(super) struct Unknown {
    pub(super) role: Role,
    /// Whether calling the value, or accessing its attributes or elements, may return a module.
    pub(super) leads_to_module: bool,
    /// Values that the unknown value may contain.
    pub(super) holds: Rc<[Py]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The value is neither a module nor a class of modules.
    Other,
    /// The value may be a module.
    Module,
    /// The value may be a class of modules.
    Class,
}

impl Globals {
    pub(super) fn bind(&mut self, name: &str, value: Py) {
        let binding = Binding {
            value: Ok(value),
            at: self.at,
            unknown: None,
        };
        self.names.insert(name.to_owned(), binding);
    }

    pub(super) fn bind_unknown(&mut self, name: &str, error: &SourceError, unknown: Unknown) {
        let binding = Binding {
            value: Err(Box::new(error.clone())),
            at: self.at,
            unknown: Some(unknown),
        };
        self.names.insert(name.to_owned(), binding);
    }

    /// Records that `value` may have been changed by a statement that failed with `error`.
    pub(super) fn taint(&mut self, value: &Py, error: &SourceError) {
        for address in addresses(value).into_iter().flatten() {
            let kept = match value {
                // The address is that of the storage. The tensor itself may get another storage, and another value could then have this address; so an alias keeps
                // the storage.
                Py::Tensor(tensor) | Py::Parameter(tensor) if address.0 != tensor.address() => {
                    Py::Tensor(tensor.alias())
                }
                value => value.clone(),
            };
            let tainted = self.tainted.entry(address);
            tainted.or_insert_with(|| (kept, Box::new(error.clone())));
        }
    }

    /// Returns the reason why `value` itself is unknown, if it is unknown.
    pub(super) fn doubt(&self, value: &Py) -> Option<&SourceError> {
        if self.tainted.is_empty() {
            return None;
        }
        let mut known = addresses(value).into_iter().flatten();
        known.find_map(|address| self.tainted.get(&address).map(|(_, error)| &**error))
    }

    /// Returns the reason why `value`, or a value that it contains, is unknown, if one is.
    pub(super) fn doubt_within(&self, value: &Py) -> Option<&SourceError> {
        let mut doubt = None;
        if !self.tainted.is_empty() {
            walk(value, &mut |part| doubt = doubt.or_else(|| self.doubt(part)));
        }
        doubt
    }
}

/// Returns the addresses by which changes of a value are tracked. A tensor has two: that of its shared storage, and its own.
fn addresses(value: &Py) -> [Option<(usize, usize)>; 2] {
    let address = match value {
        Py::Object(object) => (Rc::as_ptr(object).cast::<()>() as usize, 0),
        Py::List(items) | Py::Set(items, _) => (Rc::as_ptr(items).cast::<()>() as usize, 0),
        Py::Dict(items) => (Rc::as_ptr(items).cast::<()>() as usize, 0),
        Py::Iterator(items) => (Rc::as_ptr(items).cast::<()>() as usize, 0),
        Py::Tensor(tensor) | Py::Parameter(tensor) => {
            let storage = Rc::as_ptr(&tensor.view_of().storage).cast::<()>() as usize;
            return [Some((storage, 0)), Some((tensor.address(), 0))];
        }
        Py::Class(class) => (Arc::as_ptr(&class.file).cast::<()>() as usize, class.statement + 1),
        _ => return [None, None],
    };
    [Some(address), None]
}

/// Visits `value` and everything that it contains, each once and without recursion. Classes of objects are visited, too.
pub(super) fn walk(value: &Py, visit: &mut dyn FnMut(&Py)) {
    let mut waiting = vec![value.clone()];
    let mut known = std::collections::HashSet::new();
    while let Some(value) = waiting.pop() {
        let address = match &value {
            Py::Object(object) | Py::Instance(object) => Some(Rc::as_ptr(object).cast::<()>()),
            Py::List(items) => Some(Rc::as_ptr(items).cast::<()>()),
            Py::Dict(items) => Some(Rc::as_ptr(items).cast::<()>()),
            _ => None,
        };
        if let Some(address) = address
            && !known.insert(address)
        {
            continue;
        }
        visit(&value);
        match &value {
            Py::Object(object) | Py::Instance(object) => {
                let object = object.borrow();
                visit(&Py::Class(object.class.clone()));
                waiting.extend(
                    object
                        .attributes
                        .values()
                        .rev()
                        .map(|attribute| attribute.value.clone()),
                );
            }
            Py::List(items) => waiting.extend(items.borrow().iter().rev().cloned()),
            Py::Tuple(items) => waiting.extend(items.iter().rev().cloned()),
            Py::Method(base, _) | Py::Typed(base, _) => waiting.push((**base).clone()),
            Py::Super(object, _) | Py::Handle(object, _) => waiting.push(Py::Object(Rc::clone(object))),
            Py::Iterator(items) => waiting.extend(items.borrow().iter().flatten().rev().cloned()),
            Py::Dict(items) => {
                let items = items.borrow();
                waiting.extend(items.iter().rev().flat_map(|(key, value)| [value.clone(), key.clone()]));
            }
            Py::Keys(keys) => waiting.extend(keys.iter().cloned()),
            Py::Named(named) => waiting.extend(named.items.iter().rev().cloned()),
            _ => {}
        }
    }
}

/// Returns `root` and its submodules, each once, containing modules first.
pub(super) fn modules(root: &ObjectRef) -> Vec<ObjectRef> {
    let mut found = Vec::new();
    walk_modules(root, &mut |_, object| found.push(Rc::clone(object)));
    found
}

/// Visits the module and its submodules, each once, containing modules first, with their names as in `named_modules()`.
pub(super) fn walk_modules(root: &ObjectRef, visit: &mut dyn FnMut(&str, &ObjectRef)) {
    let mut known = std::collections::HashSet::new();
    let mut waiting = vec![(String::new(), Rc::clone(root))];
    while let Some((name, object)) = waiting.pop() {
        if !known.insert(Rc::as_ptr(&object)) {
            continue;
        }
        visit(&name, &object);
        let object = object.borrow();
        let children = object
            .attributes
            .iter()
            .rev()
            .filter_map(|(child, attribute)| match &attribute.value {
                Py::Object(object) => Some((joined(&name, child), Rc::clone(object))),
                _ => None,
            });
        waiting.extend(children);
    }
}

/// Returns the dotted name `prefix.name`.
pub(super) fn joined(prefix: &str, name: &str) -> String {
    match prefix {
        "" => name.to_owned(),
        prefix => format!("{prefix}.{name}"),
    }
}

impl Maker<'_> {
    /// Returns the value that the body of a class assigns to `name`, for classes of the source text or of the library.
    pub(super) fn class_value(&self, class: &ClassRef, name: &str) -> Option<Known> {
        if !class.file.rules.is_source() {
            return None;
        }
        self.globals.class_values.get(&class.statement)?.get(name).cloned()
    }
}
