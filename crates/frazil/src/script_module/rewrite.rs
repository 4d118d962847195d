//! Replacing tensors wherever a module refers to them, with everybody's identity kept.

use frazil_ir::{Constant, DictConstant, ListConstant, Module, ObjectId, TensorData, TupleConstant};
use std::collections::HashMap;
use std::sync::Arc;

/// Asks `replace` about every tensor that an object of `module` refers to, in attributes and in containers. What was one tensor,
/// list or dictionary stays one. Graphs are left alone: their constants are not the module's to change.
pub(crate) fn replace_tensors(module: &mut Module, replace: impl FnMut(&Arc<TensorData>) -> Option<Arc<TensorData>>) {
    let mut rewriter = Rewriter {
        replace,
        done: HashMap::new(),
    };
    let objects: Vec<ObjectId> = module.objects().map(|(id, _)| id).collect();
    for id in objects {
        // Two steps, so that slots that do not change are not touched.
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
    /// What became of each tensor, list and dictionary, by address; the old one is kept so that no address is used twice.
    done: HashMap<usize, (Constant, Option<Constant>)>,
}

impl<F: FnMut(&Arc<TensorData>) -> Option<Arc<TensorData>>> Rewriter<F> {
    /// What takes the place of `value`; `None` when it stays.
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

    /// The items with replacements; `None` when there are none.
    fn all(&mut self, items: &[Constant]) -> Option<Vec<Constant>> {
        let new: Vec<Option<Constant>> = items.iter().map(|c| self.constant(c)).collect();
        new.iter().any(Option::is_some).then(|| {
            let pairs = new.into_iter().zip(items);
            pairs.map(|(new, old)| new.unwrap_or_else(|| old.clone())).collect()
        })
    }
}
