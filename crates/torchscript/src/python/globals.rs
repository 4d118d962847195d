//! What the names at the top level of a source text stand for, and what cannot be known.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use indexmap::IndexMap;
use ruff_text_size::TextRange;

use super::maker::Maker;
use super::value::{ObjectRef, Py};
use crate::error::SourceError;
use crate::names::ClassRef;

/// A value, or why it cannot be known.
pub(super) type Known = Result<Py, Box<SourceError>>;

/// The global variables of a source text.
#[derive(Default)]
pub(super) struct Globals {
    pub(super) names: HashMap<String, Binding>,
    /// Where the statement that runs starts in the text.
    pub(super) at: TextRange,
    /// Values that a statement which cannot be run may have changed, by address. The value keeps its address from being used again.
    tainted: HashMap<(usize, usize), (Py, Box<SourceError>)>,
    /// Functions and classes that were given to code which is not known: later calls of such code may call them.
    pub(super) escaped: Vec<Py>,
    /// Classes of which it is not known whether they are classes of modules, by number, and why.
    pub(super) unclear: HashMap<usize, Box<SourceError>>,
    /// The error of the first statement that could not be run.
    pub(super) refused: Option<Box<SourceError>>,
    /// The error of a statement that may have changed any variable, and all that was made after it.
    pub(super) wild: Option<Box<SourceError>>,
    /// What compiled functions and modules used when they were compiled.
    pub(super) snapshots: Vec<Snapshot>,
    /// The values that class bodies give names, by the number of the class.
    pub(super) class_values: HashMap<usize, IndexMap<String, Known>>,
    /// The values of defaults, and of what class bodies assign, by the place of the expression.
    pub(super) bound: HashMap<TextRange, Known>,
}

/// What the code of a compiled function or module used of the text when it was compiled.
pub(super) struct Snapshot {
    pub(super) used: Vec<(String, Py)>,
    /// The error when that is something else in the end, without the name.
    pub(super) error: Box<SourceError>,
}

/// A global variable.
pub(super) struct Binding {
    pub(super) value: Known,
    /// Where the statement that gave the value stands.
    pub(super) at: TextRange,
    /// Set for a value that cannot be known.
    pub(super) unknown: Option<Unknown>,
}

/// What a value may be that cannot be known.
#[derive(Clone)]
pub(super) struct Unknown {
    pub(super) role: Role,
    /// Whether calling it, or taking something of it, may give a module.
    pub(super) leads_to_module: bool,
    /// Values that it may hold.
    pub(super) holds: Rc<[Py]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// No module and no class of modules.
    Other,
    /// It may be a module.
    Module,
    /// It may be a class of modules.
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

    /// Notes that a statement that failed with `error` may have changed `value`.
    pub(super) fn taint(&mut self, value: &Py, error: &SourceError) {
        for address in addresses(value).into_iter().flatten() {
            let kept = match value {
                // The object may get other elements, and the address of these would be free.
                Py::Tensor(tensor) | Py::Parameter(tensor) if address.0 != tensor.address() => {
                    Py::Tensor(tensor.alias())
                }
                value => value.clone(),
            };
            let tainted = self.tainted.entry(address);
            tainted.or_insert_with(|| (kept, Box::new(error.clone())));
        }
    }

    /// Why `value` itself cannot be known, if it cannot.
    pub(super) fn doubt(&self, value: &Py) -> Option<&SourceError> {
        if self.tainted.is_empty() {
            return None;
        }
        let mut known = addresses(value).into_iter().flatten();
        known.find_map(|address| self.tainted.get(&address).map(|(_, error)| &**error))
    }

    /// Why `value` or something that it holds cannot be known, if that is so.
    pub(super) fn doubt_within(&self, value: &Py) -> Option<&SourceError> {
        let mut doubt = None;
        if !self.tainted.is_empty() {
            walk(value, &mut |part| doubt = doubt.or_else(|| self.doubt(part)));
        }
        doubt
    }
}

/// What tells a value apart of which changes are seen. A tensor has two addresses: that of its elements, which others share, and its own.
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

/// Visits `value` and everything that it holds once, without recursion. Classes of objects are visited, too.
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

/// The module and all modules below it, each once, the outer ones first.
pub(super) fn modules(root: &ObjectRef) -> Vec<ObjectRef> {
    let mut found = Vec::new();
    walk_modules(root, &mut |_, object| found.push(Rc::clone(object)));
    found
}

/// Visits the module and all below it once, the outer ones first, with their names as `named_modules()` gives them.
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

/// The dotted name of what `prefix` holds under `name`.
pub(super) fn joined(prefix: &str, name: &str) -> String {
    match prefix {
        "" => name.to_owned(),
        prefix => format!("{prefix}.{name}"),
    }
}

impl Maker<'_> {
    /// The value that the body of a class of the source text, or of the library, gives `name`.
    pub(super) fn class_value(&self, class: &ClassRef, name: &str) -> Option<Known> {
        if !class.file.rules.is_source() {
            return None;
        }
        self.globals.class_values.get(&class.statement)?.get(name).cloned()
    }
}
