//! Values of attributes: the memory that they refer to, and their conversion to constants of a graph.

use crate::support::constants::detached;
use frazil_ir::{Constant, DictConstant, ListConstant, TensorData, TupleConstant};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Adds to `out` the addresses of the storages and containers that `value` is or contains.
pub(super) fn identities(value: &Constant, out: &mut HashSet<usize>) {
    match value {
        Constant::Tensor(t) => {
            out.insert(Arc::as_ptr(&t.storage) as usize);
        }
        Constant::List(l) => {
            out.insert(Arc::as_ptr(l) as usize);
            l.items.iter().for_each(|c| identities(c, out));
        }
        Constant::Tuple(t) => t.items.iter().for_each(|c| identities(c, out)),
        Constant::Dict(d) => {
            out.insert(Arc::as_ptr(d) as usize);
            d.entries.iter().for_each(|(k, v)| {
                identities(k, out);
                identities(v, out);
            });
        }
        _ => {}
    }
}

/// Returns whether a graph can contain the tensor as a constant. Graphs in PyTorch cannot contain sparse tensors, so PyTorch could not read an archive with
/// such a constant.
fn can_be_constant(tensor: &TensorData) -> bool {
    !tensor.encoding.as_ref().is_some_and(|encoding| encoding.is_sparse())
}

/// Returns whether `value` is or contains a tensor that cannot be a constant of a graph.
pub(super) fn holds_no_constant(value: &Constant) -> bool {
    match value {
        Constant::Tensor(t) => !can_be_constant(t),
        Constant::List(l) => l.items.iter().any(holds_no_constant),
        Constant::Tuple(t) => t.items.iter().any(holds_no_constant),
        Constant::Dict(d) => d.entries.iter().any(|(_, v)| holds_no_constant(v)),
        _ => false,
    }
}

/// Converts values of attributes to constants without `requires_grad`. The identity of tensors and lists is preserved.
#[derive(Default)]
pub(super) struct Folder {
    tensors: HashMap<usize, Arc<TensorData>>,
    lists: HashMap<usize, Arc<ListConstant>>,
    dicts: HashMap<usize, Arc<DictConstant>>,
}

impl Folder {
    /// Returns the value as a constant; `None` if it contains objects, or tensors that cannot be constants.
    pub(super) fn constant(&mut self, value: &Constant) -> Option<Constant> {
        Some(match value {
            Constant::Tensor(t) if !can_be_constant(t) => return None,
            Constant::Tensor(t) => {
                let new = self
                    .tensors
                    .entry(Arc::as_ptr(t) as usize)
                    .or_insert_with(|| detached(t));
                Constant::Tensor(new.clone())
            }
            Constant::List(l) => {
                if let Some(new) = self.lists.get(&(Arc::as_ptr(l) as usize)) {
                    return Some(Constant::List(new.clone()));
                }
                let items = l.items.iter().map(|c| self.constant(c)).collect::<Option<Vec<_>>>()?;
                let new = Arc::new(ListConstant {
                    element: l.element,
                    items,
                });
                self.lists.insert(Arc::as_ptr(l) as usize, new.clone());
                Constant::List(new)
            }
            Constant::Tuple(t) => {
                let items = t.items.iter().map(|c| self.constant(c)).collect::<Option<Vec<_>>>()?;
                Constant::Tuple(Arc::new(TupleConstant { ty: t.ty, items }))
            }
            Constant::Dict(d) => {
                if let Some(new) = self.dicts.get(&(Arc::as_ptr(d) as usize)) {
                    return Some(Constant::Dict(new.clone()));
                }
                let entry = |(k, v): &(Constant, Constant)| Some((self.constant(k)?, self.constant(v)?));
                let entries = d.entries.iter().map(entry).collect::<Option<Vec<_>>>()?;
                let new = Arc::new(DictConstant {
                    key: d.key,
                    value: d.value,
                    entries,
                });
                self.dicts.insert(Arc::as_ptr(d) as usize, new.clone());
                Constant::Dict(new)
            }
            Constant::Object(_) => return None,
            other => other.clone(),
        })
    }
}
