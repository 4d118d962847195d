//! Symbols of a graph, and extents of its tensors as functions of them.

use super::TensorGraph;
use crate::extent::{Extent, Symbol};
use frazil_runtime::structured::TensorId;
use std::collections::HashMap;

/// The symbols of a graph, and the tensors whose extents are known for all values of the symbols.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Symbols {
    list: Vec<Symbol>,
    extents: HashMap<TensorId, Box<[Extent]>>,
}

/// Symbols and extents. The sizes in [`TensorShape`](frazil_runtime::structured::TensorShape) are those for the representatives of the symbols.
impl Symbols {
    /// Removes the extents of the tensors from `end` on.
    pub(super) fn forget_from(&mut self, end: TensorId) {
        self.extents.retain(|&id, _| id < end);
    }
}

impl TensorGraph {
    /// Returns the symbols; none if all sizes are fixed.
    pub fn symbols(&self) -> &[Symbol] {
        self.symbols.as_ref().map_or(&[], |symbols| &symbols.list)
    }

    /// Replaces the symbols. The extents of all tensors become unknown.
    pub fn set_symbols(&mut self, symbols: Vec<Symbol>) {
        self.revision += 1;
        self.symbols = (!symbols.is_empty()).then(|| {
            Box::new(Symbols {
                list: symbols,
                extents: HashMap::new(),
            })
        });
    }

    /// Returns the extents of a tensor for all values of the symbols, one for each dimension. `None` if they are not known, or do not depend on symbols.
    pub fn extents(&self, id: TensorId) -> Option<&[Extent]> {
        self.symbols.as_ref()?.extents.get(&id).map(AsRef::as_ref)
    }

    /// Sets the extents of a tensor, which hold for all values of the symbols. With `None`, or if no extent depends on a symbol, only the sizes for the
    /// representatives are known. Graphs without symbols ignore this.
    pub fn set_extents(&mut self, id: TensorId, extents: Option<Vec<Extent>>) {
        let Some(symbols) = &mut self.symbols else { return };
        self.revision += 1;
        let depends = |extents: &Vec<Extent>| extents.iter().any(|extent| extent.as_constant().is_none());
        match extents.filter(depends) {
            Some(extents) => drop(symbols.extents.insert(id, extents.into())),
            None => drop(symbols.extents.remove(&id)),
        }
    }

    /// Returns whether two tensors of equal sizes have equal sizes for all values of the symbols, as far as their extents are known.
    pub fn has_same_extents(&self, a: TensorId, b: TensorId) -> bool {
        self.extents(a) == self.extents(b)
    }

    /// Copies the symbols of `other`, and the extents of its tensors. `renamed` returns the tensor of this graph for a tensor of `other`, if there is one.
    pub(super) fn copy_symbols(&mut self, other: &TensorGraph, renamed: impl Fn(TensorId) -> Option<TensorId>) {
        self.symbols = other.symbols.as_ref().map(|symbols| {
            let extents = symbols.extents.iter();
            let extents = extents.filter_map(|(id, extents)| Some((renamed(*id)?, extents.clone())));
            Box::new(Symbols {
                list: symbols.list.clone(),
                extents: extents.collect(),
            })
        });
    }
}
