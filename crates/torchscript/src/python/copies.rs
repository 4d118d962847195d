//! Evaluation of `copy.deepcopy`.

use std::cell::RefCell;
use std::rc::Rc;

use super::maker::MAX_DEPTH;
use super::tensor::{HostTensor, View};
use super::value::{Attribute, Py, PyObject};
use crate::source::shared;

/// Maps from originals to their copies so far, by which copies preserve identity.
#[derive(Default)]
struct Copies {
    values: Vec<(Py, Py)>,
    storages: Vec<(HostTensor, Rc<RefCell<Vec<f64>>>)>,
}

/// Returns a copy of `value` and of all values that it contains.
pub(super) fn deep_copy(value: &Py) -> Option<Py> {
    Copies::default().copy(value, 0)
}

impl Copies {
    fn copy(&mut self, value: &Py, depth: usize) -> Option<Py> {
        if depth > MAX_DEPTH {
            return None;
        }
        let has_identity = matches!(
            value,
            Py::List(_) | Py::Dict(_) | Py::Set(..) | Py::Object(_) | Py::Tensor(_) | Py::Parameter(_)
        );
        let same = |original: &Py| has_identity && original.identical(value) == Some(true);
        if let Some((_, copy)) = self.values.iter().find(|(original, _)| same(original)) {
            return Some(copy.clone());
        }
        let copy = match value {
            Py::Tensor(tensor) => Py::Tensor(self.tensor(tensor)),
            // A parameter gets a storage of its own.
            Py::Parameter(tensor) => {
                let copy = tensor.copy()?;
                copy.set_requires_grad(tensor.requires_grad());
                Py::Parameter(copy)
            }
            Py::List(items) => {
                let copy = Py::list(Vec::new());
                self.values.push((value.clone(), copy.clone()));
                let items = items.borrow().clone();
                let items: Vec<Py> = items.iter().map(|i| self.copy(i, depth + 1)).collect::<Option<_>>()?;
                if let Py::List(slot) = &copy {
                    *slot.borrow_mut() = items;
                }
                return Some(copy);
            }
            Py::Tuple(items) => {
                let items: Option<Vec<Py>> = items.iter().map(|i| self.copy(i, depth + 1)).collect();
                Py::tuple(items?)
            }
            Py::Dict(items) => {
                let items = items.borrow().clone();
                let items: Option<Vec<(Py, Py)>> = items
                    .iter()
                    .map(|(key, item)| Some((key.clone(), self.copy(item, depth + 1)?)))
                    .collect();
                Py::dict(items?)
            }
            Py::Object(object) => {
                let mut copy = PyObject::new(object.borrow().class.clone());
                copy.transient.clone_from(&object.borrow().transient);
                copy.hooks.clone_from(&object.borrow().hooks);
                copy.scripted.clone_from(&object.borrow().scripted);
                copy.is_ready = object.borrow().is_ready;
                let copy = shared(RefCell::new(copy));
                self.values.push((value.clone(), Py::Object(Rc::clone(&copy))));
                let attributes = object.borrow().attributes.clone();
                for (name, attribute) in attributes {
                    let attribute = Attribute {
                        value: self.copy(&attribute.value, depth + 1)?,
                        kind: attribute.kind,
                    };
                    copy.borrow_mut().attributes.insert(name, attribute);
                }
                return Some(Py::Object(copy));
            }
            Py::Set(items, is_frozen) => Py::Set(Rc::new(RefCell::new(items.borrow().clone())), *is_frozen),
            Py::Iterator(_) | Py::Handle(..) | Py::Unknown(_) => return None,
            Py::Named(named) => {
                let items: Option<Vec<Py>> = named.items.iter().map(|i| self.copy(i, depth + 1)).collect();
                named.with(items?)
            }
            other => return Some(other.clone()),
        };
        self.values.push((value.clone(), copy.clone()));
        Some(copy)
    }

    /// Returns a copy of a tensor. Copies of views on one storage share a storage, too.
    fn tensor(&mut self, tensor: &HostTensor) -> HostTensor {
        let known = self.storages.iter().find(|(other, _)| other.shares_storage(tensor));
        let storage = match known {
            Some((_, storage)) => Rc::clone(storage),
            None => {
                let data = tensor.view_of().storage.borrow().clone();
                let storage = Rc::new(RefCell::new(data));
                self.storages.push((tensor.clone(), Rc::clone(&storage)));
                storage
            }
        };
        let view = tensor.view_of().clone();
        let copy = HostTensor::of(View { storage, ..view });
        copy.set_requires_grad(tensor.requires_grad());
        copy
    }
}

/// Returns a copy of an attribute of a scripted module, as reading and setting it do: lists, tuples and dictionaries
/// are copied, everything else is shared.
pub(super) fn detached(value: &Py) -> Py {
    fn copy(value: &Py) -> Py {
        match value {
            Py::List(items) => Py::list(items.borrow().iter().map(copy).collect()),
            Py::Tuple(items) => Py::tuple(items.iter().map(copy).collect()),
            Py::Dict(items) => {
                let items = items.borrow();
                let items = items.iter().map(|(key, item)| (key.clone(), copy(item)));
                Py::dict(items.collect())
            }
            other => other.clone(),
        }
    }
    match value {
        Py::List(_) | Py::Tuple(_) | Py::Dict(_) if value.is_small() => copy(value),
        other => other.clone(),
    }
}
