//! Evaluation of `torch.jit.script`, which copies a module and compiles its current state.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use indexmap::IndexMap;
use ruff_text_size::Ranged;

use super::globals::Snapshot;
use super::maker::{MAX_CALLS, Maker};
use super::mentions::Mentions;
use super::value::{Attribute, FunctionRef, ObjectRef, Py, PyObject, same_function};
use crate::error::Result;
use crate::source::SourceFile;
use crate::source::shared;

impl Maker<'_> {
    /// Evaluates `torch.jit.script(value)`; returns `None` if the result is unknown.
    pub(super) fn script(&mut self, file: &Arc<SourceFile>, value: &Py, node: &impl Ranged) -> Result<Option<Py>> {
        let scripted = match value {
            Py::Object(object) if object.borrow().scripted.is_some() => return Ok(Some(value.clone())),
            Py::Object(object) => match self.copied(file, value, node, 0)? {
                Py::Object(copy) => {
                    copy.borrow_mut().scripted = Some(Rc::clone(object));
                    Py::Object(copy)
                }
                other => other,
            },
            Py::Function(function) if function.method.is_none() => {
                if function.file.rules.is_source() {
                    self.names.definitions_mut().scripted.insert(function.statement);
                }
                Py::Function(FunctionRef {
                    scripted: true,
                    ..function.clone()
                })
            }
            Py::Traced(_) => return Ok(Some(value.clone())),
            Py::Function(_) | Py::Class(_) => value.clone(),
            _ => return Ok(None),
        };
        self.snapshot(file, value, node);
        Ok(Some(scripted))
    }

    /// Records the functions and classes that the code of `value` uses at the time of its compilation.
    pub(super) fn snapshot(&mut self, file: &Arc<SourceFile>, value: &Py, node: &impl Ranged) {
        let reach = self.reach(&Mentions::default(), std::slice::from_ref(value));
        let used = reach.names.iter().filter_map(|name| {
            let value = self.globals.names.get(name)?.value.clone().ok()?;
            let is_code = matches!(value, Py::Function(_) | Py::Class(_) | Py::Path(_));
            is_code.then(|| (name.clone(), value))
        });
        let used = used.collect();
        let message = "is defined again behind `torch.jit.script`, which compiled code that uses it: give one of both another name";
        let error = file.error("construct", message, node);
        self.globals.snapshots.push(Snapshot { used, error });
    }

    /// Returns an error if a definition that compiled code uses was redefined after the compilation.
    pub(super) fn check_snapshots(&self) -> Result<()> {
        for snapshot in &self.globals.snapshots {
            for (name, before) in &snapshot.used {
                let is_same = match (before, self.globals.names.get(name).map(|binding| &binding.value)) {
                    (Py::Function(a), Some(Ok(Py::Function(b)))) => same_function(a, b),
                    (Py::Class(a), Some(Ok(Py::Class(b)))) => a.is(b),
                    (Py::Path(a), Some(Ok(Py::Path(b)))) => a == b,
                    _ => false,
                };
                if !is_same {
                    let mut error = snapshot.error.clone();
                    error.diagnostic.message = format!("`{name}` {}", error.diagnostic.message);
                    return Err(error.into());
                }
            }
        }
        Ok(())
    }

    /// Returns a copy of an attribute of a scripted module. Tensors are shared, everything else is copied.
    pub(super) fn copied(
        &mut self,
        file: &Arc<SourceFile>,
        value: &Py,
        node: &impl Ranged,
        depth: usize,
    ) -> Result<Py> {
        self.step(file, node)?;
        if depth > MAX_CALLS {
            return self.fail(file, "modules, lists or dictionaries nest too deeply", node);
        }
        Ok(match value {
            Py::Object(object) => Py::Object(self.copied_object(file, object, node, depth)?),
            Py::List(items) => {
                let items = items.borrow().clone();
                self.charge_bytes(file, (items.len() * size_of::<Py>()) as u64, node)?;
                let items = items.iter().map(|item| self.copied(file, item, node, depth + 1));
                Py::list(items.collect::<Result<_>>()?)
            }
            Py::Tuple(items) => {
                let items = items.iter().map(|item| self.copied(file, item, node, depth + 1));
                Py::tuple(items.collect::<Result<_>>()?)
            }
            Py::Dict(items) => {
                let items = items.borrow().clone();
                self.charge_bytes(file, (2 * items.len() * size_of::<Py>()) as u64, node)?;
                let items = items
                    .iter()
                    .map(|(key, item)| Ok((key.clone(), self.copied(file, item, node, depth + 1)?)));
                Py::dict(items.collect::<Result<_>>()?)
            }
            other => other.clone(),
        })
    }

    fn copied_object(
        &mut self,
        file: &Arc<SourceFile>,
        object: &ObjectRef,
        node: &impl Ranged,
        depth: usize,
    ) -> Result<ObjectRef> {
        // A submodule that is already scripted is shared and not copied.
        if object.borrow().scripted.is_some() {
            return Ok(Rc::clone(object));
        }
        let before = object.borrow();
        let mut attributes = IndexMap::new();
        for (name, attribute) in &before.attributes {
            let value = self.copied(file, &attribute.value, node, depth + 1)?;
            let kind = attribute.kind;
            attributes.insert(name.clone(), Attribute { value, kind });
        }
        Ok(shared(RefCell::new(PyObject {
            class: before.class.clone(),
            attributes,
            transient: before.transient.clone(),
            hooks: before.hooks.clone(),
            scripted: (depth > 0).then(|| Rc::clone(object)),
            mode: before.mode,
            traced: before.traced.clone(),
            trained_when_traced: before.trained_when_traced,
            is_ready: before.is_ready,
        })))
    }
}
