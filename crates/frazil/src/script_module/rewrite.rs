//! Replacement of tensors wherever a module refers to them. The identity of objects is preserved.

use frazil_ir::{Constant, DictConstant, ListConstant, Module, ObjectId, TensorData, TupleConstant};
use std::collections::HashMap;
use std::sync::Arc;

/// Calls `replace` for every tensor that an object of `module` refers to, in attributes and in containers. References to one
/// tensor, list or dictionary remain references to one object. Constants of graphs are not replaced.
pub(crate) fn replace_tensors(module: &mut Module, replace: impl FnMut(&Arc<TensorData>) -> Option<Arc<TensorData>>) {
    let mut rewriter = Rewriter {
        replace,
        done: HashMap::new(),
    };
    let objects: Vec<ObjectId> = module.objects().map(|(id, _)| id).collect();
    for id in objects {
        // In two steps, so that unchanged slots are not written.
        let slots = &module.object(id).slots;
        let changed: Vec<(usize, Constant)> = slots
            .iter()
            .enumerate()
            .filter_map(|(i, slot)| Some((i, rewriter.constant(slot)?)))
            .collect();
        let object = module.object_mut(id);
        for (index, value) in changed {
            object.slots[index] = value;
        }
    }
}

struct Rewriter<F> {
    replace: F,
    /// The original and the replacement of each tensor, list and dictionary, by address. The original is kept so that its address is not reused.
    done: HashMap<usize, (Constant, Option<Constant>)>,
}

impl<F: FnMut(&Arc<TensorData>) -> Option<Arc<TensorData>>> Rewriter<F> {
    /// Returns `value` with tensors replaced; `None` if it contains none of them.
    fn constant(&mut self, value: &Constant) -> Option<Constant> {
        let address = match value {
            Constant::Tensor(t) => Arc::as_ptr(t) as usize,
            Constant::List(l) => Arc::as_ptr(l) as usize,
            Constant::Dict(d) => Arc::as_ptr(d) as usize,
            Constant::Tuple(t) => Arc::as_ptr(t) as usize,
            _ => return None,
        };
        if let Some((_, new)) = self.done.get(&address) {
            return new.clone();
        }
        let new = match value {
            Constant::Tensor(t) => (self.replace)(t).map(Constant::Tensor),
            Constant::List(l) => self.all(&l.items).map(|items| {
                Constant::List(Arc::new(ListConstant {
                    element: l.element,
                    items,
                }))
            }),
            Constant::Tuple(t) => self
                .all(&t.items)
                .map(|items| Constant::Tuple(Arc::new(TupleConstant { ty: t.ty, items }))),
            Constant::Dict(d) => {
                // Tensors may be keys, compared by identity.
                let (keys, values): (Vec<_>, Vec<_>) = d.entries.iter().cloned().unzip();
                let (new_keys, new_values) = (self.all(&keys), self.all(&values));
                (new_keys.is_some() || new_values.is_some()).then(|| {
                    let entries = new_keys.unwrap_or(keys).into_iter().zip(new_values.unwrap_or(values));
                    Constant::Dict(Arc::new(DictConstant {
                        key: d.key,
                        value: d.value,
                        entries: entries.collect(),
                    }))
                })
            }
            _ => None,
        };
        self.done.insert(address, (value.clone(), new.clone()));
        new
    }

    /// Returns `items` with tensors replaced; `None` if no item contains one of them.
    fn all(&mut self, items: &[Constant]) -> Option<Vec<Constant>> {
        let new: Vec<Option<Constant>> = items.iter().map(|c| self.constant(c)).collect();
        new.iter().any(Option::is_some).then(|| {
            let pairs = new.into_iter().zip(items);
            pairs.map(|(new, old)| new.unwrap_or_else(|| old.clone())).collect()
        })
    }
}
