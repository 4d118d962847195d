//! Selection of the module that a source text defines, among its global variables.

use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

use ruff_text_size::{Ranged, TextRange};

use super::globals::{Role, modules, walk};
use super::maker::Maker;
use super::refuse::is_plain_path;
use super::value::{ObjectRef, Py, PyObject};
use crate::error::{Result, SourceError};
use crate::names::{ClassRef, ancestry};
use crate::source::SourceFile;

/// A global variable whose value is a module.
struct Candidate {
    name: String,
    at: TextRange,
    object: ObjectRef,
}

/// The last class statement of a source text that may define a class of modules.
enum LastClass {
    Known(ClassRef),
    /// It is unknown whether the class is a class of modules, for this reason.
    Unclear(Box<SourceError>),
}

impl Maker<'_> {
    /// Returns the module of the text.
    ///
    /// It is the first of these that exists:
    /// - the global variable `model`;
    /// - the only global variable that is a module, unless an object of the last class, defined after it, contains it;
    /// - an object of the last class of modules.
    ///
    /// # Errors
    /// When there is more than one candidate, or a statement that could not be run may have made one.
    pub(super) fn root(&mut self, file: &Arc<SourceFile>) -> Result<Option<ObjectRef>> {
        if let Some(error) = &self.globals.wild {
            return Err(error.clone().into());
        }
        if let Some(model) = self.called_model(file)? {
            return Ok(Some(model));
        }
        let candidates = self.candidates(file)?;
        let last = self.last_class(file)?;
        let Some(first) = candidates.first() else {
            return match last {
                None => self.nothing(),
                Some(LastClass::Unclear(error)) => Err(error.into()),
                Some(LastClass::Known(class)) => {
                    let object = self.make(file, &class)?;
                    self.forbid_others(file, &class, &object)?;
                    Ok(Some(object))
                }
            };
        };
        let latest = candidates.iter().map(|candidate| candidate.at.start()).max();
        if let Some(LastClass::Known(class)) = &last
            && class.def().map(Ranged::start) > latest
        {
            // An object of a later class may contain all candidates. Then it is the module of the file.
            let outer = self.make(file, class).ok();
            let outer = outer.filter(|outer| candidates.iter().all(|inner| holds(outer, &inner.object)));
            if let Some(outer) = outer {
                return Ok(Some(outer));
            }
        }
        let mut names: Vec<String> = candidates
            .iter()
            .map(|candidate| format!("`{}`", candidate.name))
            .collect();
        if names.len() == 1
            && let Some(LastClass::Known(class)) = &last
            && !self.has_own_class(&first.object)
        {
            // The only candidate is a layer of PyTorch, and the text defines a class of which it creates no object: the choice is ambiguous.
            names.push(format!(
                "an object of `{}`",
                class.def().map_or("", |def| def.name.as_str())
            ));
        }
        match names.as_slice() {
            [_] => Ok(Some(Rc::clone(&first.object))),
            _ => {
                let message = format!(
                    "the text makes several modules, {}: call the one that is meant `model`",
                    names.join(" and ")
                );
                self.fail(file, message, &candidates.last().unwrap_or(first).at)
            }
        }
    }

    /// Returns the value of the global variable `model`, if it is a module.
    fn called_model(&mut self, file: &Arc<SourceFile>) -> Result<Option<ObjectRef>> {
        let Some(binding) = self.globals.names.get("model") else {
            return Ok(None);
        };
        let at = binding.at;
        match (&binding.value, &binding.unknown) {
            (Err(error), Some(unknown)) if unknown.role == Role::Module => Err(error.clone().into()),
            (Ok(Py::Object(object)), _) => {
                let object = Rc::clone(object);
                let class = object.borrow().class.clone();
                Ok(ancestry(self.names, &class)?.map(|_| object))
            }
            (Ok(Py::Path(path)), _) if !path.starts_with("torch.") && !is_plain_path(path) => {
                let path = path.to_string();
                self.beyond(file, format!("`{path}`, which is called `model` here,"), &at)
            }
            _ => Ok(None),
        }
    }

    /// Returns a global variable for each module that is not a submodule of another module, in the order of assignment.
    fn candidates(&mut self, file: &Arc<SourceFile>) -> Result<Vec<Candidate>> {
        let mut found: Vec<Candidate> = Vec::new();
        let mut unknown = Vec::new();
        for (name, binding) in &self.globals.names {
            match &binding.value {
                Ok(Py::Object(object)) => found.push(Candidate {
                    name: name.clone(),
                    at: binding.at,
                    object: Rc::clone(object),
                }),
                Err(error)
                    if binding
                        .unknown
                        .as_ref()
                        .is_some_and(|unknown| unknown.role == Role::Module) =>
                {
                    unknown.push((binding.at.start(), name.clone(), error.clone()));
                }
                _ => {}
            }
        }
        unknown.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        if let Some((.., error)) = unknown.pop() {
            return Err(error.into());
        }
        found.sort_by(|a, b| (a.at.start(), &a.name).cmp(&(b.at.start(), &b.name)));
        let mut known = HashSet::new();
        let mut kept: Vec<Candidate> = Vec::new();
        for candidate in found {
            let class = candidate.object.borrow().class.clone();
            if known.insert(Rc::as_ptr(&candidate.object)) && ancestry(self.names, &class)?.is_some() {
                kept.push(candidate);
            }
        }
        let objects: Vec<ObjectRef> = kept.iter().map(|candidate| Rc::clone(&candidate.object)).collect();
        let held: HashSet<*const RefCell<PyObject>> = objects.iter().flat_map(held).collect();
        kept.retain(|candidate| !held.contains(&Rc::as_ptr(&candidate.object)));
        if let (true, Some(object)) = (kept.is_empty(), objects.first()) {
            // All candidates contain one another.
            let class = object.borrow().class.clone();
            let place = class.def().map_or_else(Default::default, Ranged::range);
            return self.fail(file, "a module contains itself", &place);
        }
        Ok(kept)
    }

    /// Returns the last class of the text that is, or may be, a class of modules.
    fn last_class(&mut self, file: &Arc<SourceFile>) -> Result<Option<LastClass>> {
        let mut found: Vec<(TextRange, LastClass)> = Vec::new();
        for binding in self.globals.names.values() {
            match (&binding.value, &binding.unknown) {
                (Ok(Py::Class(class)), _) if class.file.rules.is_source() && Arc::ptr_eq(&class.file, file) => {
                    let place = class.def().map_or_else(Default::default, Ranged::range);
                    let last = match self.globals.unclear.get(&class.statement) {
                        Some(error) => LastClass::Unclear(error.clone()),
                        None => LastClass::Known(class.clone()),
                    };
                    found.push((place, last));
                }
                (Err(error), Some(unknown)) if unknown.role == Role::Class => {
                    found.push((binding.at, LastClass::Unclear(error.clone())));
                }
                _ => {}
            }
        }
        found.sort_by_key(|(place, _)| place.start());
        for (_, last) in found.into_iter().rev() {
            match &last {
                LastClass::Unclear(_) => return Ok(Some(last)),
                LastClass::Known(class) if ancestry(self.names, class)?.is_some() => return Ok(Some(last)),
                LastClass::Known(_) => {}
            }
        }
        Ok(None)
    }

    /// Returns an error if lists or dictionaries contain modules of the text that `object` does not contain.
    fn forbid_others(&mut self, file: &Arc<SourceFile>, class: &ClassRef, object: &ObjectRef) -> Result<()> {
        let mut others: Vec<(TextRange, String)> = Vec::new();
        for (name, binding) in &self.globals.names {
            let Ok(value @ (Py::List(_) | Py::Dict(_) | Py::Tuple(_))) = &binding.value else {
                continue;
            };
            let mut is_other = false;
            walk(value, &mut |part| {
                if let Py::Object(part) = part {
                    is_other |= self.has_own_class(part) && !Rc::ptr_eq(part, object) && !holds(object, part);
                }
            });
            if is_other {
                others.push((binding.at, name.clone()));
            }
        }
        others.sort_by_key(|(at, _)| at.start());
        match others.first() {
            None => Ok(()),
            Some((at, name)) => {
                let class = class.def().map_or("", |def| def.name.as_str());
                let message = format!(
                    "the text makes modules that only `{name}` holds, and no object of `{class}`: call the one that is meant `model`"
                );
                self.fail(file, message, at)
            }
        }
    }

    /// Returns whether the class of the module or of a submodule is defined by the source text.
    fn has_own_class(&self, object: &ObjectRef) -> bool {
        modules(object)
            .iter()
            .any(|module| module.borrow().class.file.rules.is_source())
    }

    /// Returns the error for a text none of whose statements could be run.
    fn nothing(&self) -> Result<Option<ObjectRef>> {
        let has_code = self.globals.names.values().any(|binding| match &binding.value {
            Ok(Py::Function(function)) => function.file.rules.is_source(),
            Ok(Py::Class(class)) => class.file.rules.is_source(),
            _ => false,
        });
        match &self.globals.refused {
            Some(error) if !has_code => Err(error.clone().into()),
            _ => Ok(None),
        }
    }

    fn make(&mut self, file: &Arc<SourceFile>, class: &ClassRef) -> Result<ObjectRef> {
        let place = class.def().map_or_else(Default::default, Ranged::range);
        match self.instantiate(class, Vec::new(), Vec::new(), file, &place)? {
            Py::Object(object) => Ok(object),
            _ => self.beyond(file, "this class", &place),
        }
    }
}

/// Returns the addresses of the submodules of `outer`, and of the module (with submodules) that `torch.jit.script` copied to `outer`.
fn held(outer: &ObjectRef) -> HashSet<*const RefCell<PyObject>> {
    let original = outer.borrow().scripted.clone();
    let originals = original.iter().flat_map(modules);
    let all = modules(outer).into_iter().chain(originals);
    all.filter(|module| !Rc::ptr_eq(module, outer))
        .map(|module| Rc::as_ptr(&module))
        .collect()
}

fn holds(outer: &ObjectRef, inner: &ObjectRef) -> bool {
    held(outer).contains(&Rc::as_ptr(inner))
}
