//! A graph that Python's handles share.

use crate::errors::value_error;
use frazil::Model;
use frazil::ir::{BlockId, Definition, Graph, NodeId, ValueId};
use pyo3::PyResult;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A graph, and the model whose names, classes and operators it uses.
pub(crate) struct GraphCell {
    model: Model,
    method: Option<String>,
    graph: Mutex<Versioned>,
}

struct Versioned {
    graph: Graph,
    /// Number of replacements of the whole graph, which change the numbers of nodes and values.
    version: u64,
}

/// A handle of a node, block or value of a graph.
#[derive(Clone)]
pub(crate) struct Handle<I> {
    pub(crate) cell: Arc<GraphCell>,
    id: I,
    version: u64,
}

impl GraphCell {
    pub(crate) fn new(model: Model, method: Option<String>, graph: Graph) -> Arc<GraphCell> {
        Arc::new(GraphCell {
            model,
            method,
            graph: Mutex::new(Versioned { graph, version: 0 }),
        })
    }

    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    pub(crate) fn method(&self) -> Option<&str> {
        self.method.as_deref()
    }

    fn lock(&self) -> MutexGuard<'_, Versioned> {
        self.graph.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn read<R>(&self, read: impl FnOnce(&Graph) -> R) -> R {
        read(&self.lock().graph)
    }

    pub(crate) fn write<R>(&self, write: impl FnOnce(&mut Graph) -> R) -> R {
        write(&mut self.lock().graph)
    }

    /// Replaces the graph.
    pub(crate) fn replace(&self, graph: Graph) {
        let mut state = self.lock();
        state.graph = graph;
        state.version += 1;
    }
}

/// A part of a graph (node, block or value) that a handle identifies.
pub(crate) trait Part: Copy + Eq + std::hash::Hash {
    /// The name of the kind in messages.
    const NAME: &'static str;

    /// Returns true if the part has not been erased.
    fn is_alive(self, graph: &Graph) -> bool;
}

impl Part for NodeId {
    const NAME: &'static str = "node";

    fn is_alive(self, graph: &Graph) -> bool {
        graph.is_alive(self)
    }
}

impl Part for BlockId {
    const NAME: &'static str = "block";

    fn is_alive(self, graph: &Graph) -> bool {
        self == graph.root() || graph.owner(self).is_some_and(|owner| graph.is_alive(owner))
    }
}

impl Part for ValueId {
    const NAME: &'static str = "value";

    fn is_alive(self, graph: &Graph) -> bool {
        match graph.definition(self) {
            Definition::Output(node, _) => node.is_alive(graph),
            Definition::Parameter(block, _) => block.is_alive(graph),
        }
    }
}

impl<I: Part> Handle<I> {
    pub(crate) fn new(cell: &Arc<GraphCell>, id: I) -> Handle<I> {
        let version = cell.lock().version;
        Handle {
            cell: Arc::clone(cell),
            id,
            version,
        }
    }

    fn check(&self, state: &Versioned) -> PyResult<()> {
        match self.version == state.version && self.id.is_alive(&state.graph) {
            true => Ok(()),
            false => Err(value_error(format!("the {} has been erased from its graph", I::NAME))),
        }
    }

    /// Reads the graph, if the part that the handle identifies still exists.
    pub(crate) fn read<R>(&self, read: impl FnOnce(&Graph, I) -> R) -> PyResult<R> {
        let state = self.cell.lock();
        self.check(&state)?;
        Ok(read(&state.graph, self.id))
    }

    /// Changes the graph, if the part that the handle identifies still exists.
    pub(crate) fn write<R>(&self, write: impl FnOnce(&mut Graph, I) -> R) -> PyResult<R> {
        let mut state = self.cell.lock();
        self.check(&state)?;
        Ok(write(&mut state.graph, self.id))
    }

    /// Returns the identified part, for an edit of the graph in `cell`.
    pub(crate) fn id_in(&self, cell: &Arc<GraphCell>) -> PyResult<I> {
        match Arc::ptr_eq(&self.cell, cell) {
            true => self.read(|_, id| id),
            false => Err(value_error(format!("the {} belongs to another graph", I::NAME))),
        }
    }

    pub(crate) fn is(&self, other: &Handle<I>) -> bool {
        Arc::ptr_eq(&self.cell, &other.cell) && self.id == other.id && self.version == other.version
    }

    pub(crate) fn hash(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        (Arc::as_ptr(&self.cell) as usize, self.id, self.version).hash(&mut hasher);
        hasher.finish()
    }
}
