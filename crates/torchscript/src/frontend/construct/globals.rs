//! What the names at the top level of a text by hand stand for, and what cannot be known.

use std::collections::HashMap;
use std::rc::Rc;

use indexmap::IndexMap;
use ruff_text_size::{Ranged, TextRange};

use super::Maker;
use super::value::{ClassRef, ObjectRef, Py};
use crate::frontend::source::SourceError;

/// A value, or why it cannot be known.
pub(super) type Known = Result<Py, Box<SourceError>>;

/// The global variables of a text by hand.
#[derive(Default)]
pub(super) struct Globals {
    pub(super) names: HashMap<String, Binding>,
    /// How many assignments have been made.
    count: usize,
    /// Values that a statement which cannot be run may have changed. A clone of the value keeps its address from being used again.
    tainted: Vec<(Py, Box<SourceError>)>,
    /// The values that class bodies give names, by the number of the class.
    pub(super) class_values: HashMap<usize, IndexMap<String, Known>>,
    /// The values of defaults, and of what class bodies assign, by the place of the expression.
    pub(super) bound: HashMap<TextRange, Known>,
}

/// A global variable.
pub(super) struct Binding {
    pub(super) value: Known,
    /// Set where an assignment makes a module, or may make one: when, and where it is in the text.
    pub(super) made: Option<(usize, u32)>,
}

impl Globals {
    pub(super) fn bind(&mut self, name: &str, value: Known) {
        self.names.insert(name.to_owned(), Binding { value, made: None });
    }

    /// Notes that the value of `name` comes of the assignment `node`, which makes a module or may do so.
    pub(super) fn note_made(&mut self, name: &str, node: &impl Ranged) {
        self.count += 1;
        if let Some(binding) = self.names.get_mut(name) {
            binding.made = Some((self.count, node.start().to_u32()));
        }
    }

    /// Notes that a statement that failed with `error` may have changed `value`.
    pub(super) fn taint(&mut self, value: Py, error: &SourceError) {
        self.tainted.push((value, Box::new(error.clone())));
    }

    /// Why `value` itself cannot be known, if it cannot.
    pub(super) fn doubt(&self, value: &Py) -> Option<&SourceError> {
        let found = self.tainted.iter().find(|(tainted, _)| same(tainted, value));
        found.map(|(_, error)| &**error)
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

/// Whether both are one thing, of which changes are seen.
pub(super) fn same(a: &Py, b: &Py) -> bool {
    match (a, b) {
        (Py::Object(a), Py::Object(b)) => Rc::ptr_eq(a, b),
        (Py::List(a), Py::List(b)) => Rc::ptr_eq(a, b),
        (Py::Dict(a), Py::Dict(b)) => Rc::ptr_eq(a, b),
        (Py::Tensor(a) | Py::Parameter(a), Py::Tensor(b) | Py::Parameter(b)) => a.shares_storage(b),
        (Py::Class(a), Py::Class(b)) => a.is(b),
        _ => false,
    }
}

/// Visits `value` and everything that it holds once, without recursion. Classes of objects are visited, too.
pub(super) fn walk(value: &Py, visit: &mut dyn FnMut(&Py)) {
    let mut waiting = vec![value.clone()];
    let mut known = std::collections::HashSet::new();
    while let Some(value) = waiting.pop() {
        let address = match &value {
            Py::Object(object) => Some(Rc::as_ptr(object).cast::<()>()),
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
            Py::Object(object) => {
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
            Py::Method(base, _) => waiting.push((**base).clone()),
            Py::Super(object, _) | Py::Handle(object, _) => waiting.push(Py::Object(Rc::clone(object))),
            Py::Iterator(items) => waiting.extend(items.borrow().iter().flatten().rev().cloned()),
            Py::Dict(items) => {
                let items = items.borrow();
                waiting.extend(items.iter().rev().flat_map(|(key, value)| [value.clone(), key.clone()]));
            }
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

impl Maker<'_, '_> {
    /// The value that the body of a class of the text by hand, or of the library, gives `name`.
    pub(super) fn class_value(&self, class: &ClassRef, name: &str) -> Option<Known> {
        if !class.file.is_by_hand() {
            return None;
        }
        self.globals.class_values.get(&class.statement)?.get(name).cloned()
    }
}
