//! The traits by which the manager accesses an intermediate representation (IR).

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

/// An intermediate representation (IR): its types, and the operations that the manager needs. A type without values or data implements it, as the name of the IR.
pub trait Ir: Copy + fmt::Debug + Send + Sync + 'static {
    /// The unit of a [`GraphPass`](crate::GraphPass), for example the body of a function.
    type Graph: Clone + Send;
    /// The unit of a [`ModulePass`](crate::ModulePass): functions, and the data that they share. [`NoModules`] if the IR has no modules.
    type Module: IrModule<Self>;
    /// Data that passes read and do not modify, for example the table of operators; `()` if there is none.
    type Environment: ?Sized + Sync;
    /// Results of lookups in the environment, which a [`PassContext`](crate::PassContext) caches while one pass runs; `()` if there are none.
    type Lookups: Default;
    /// The error of [`verify`](Self::verify).
    type VerifyError: Error + Send + Sync + 'static;
    /// Errors of passes that are specific to this IR; [`Infallible`](std::convert::Infallible) if there are none.
    type Error: Error + Send + Sync + 'static;

    /// Verifies a graph, including the graphs within it.
    ///
    /// # Errors
    /// If the graph is invalid.
    fn verify(graph: &Self::Graph, environment: &Self::Environment) -> Result<(), Self::VerifyError>;

    /// Returns the number of nodes of a graph, including the graphs within it.
    fn node_count(graph: &Self::Graph) -> usize;

    /// Returns a number that differs after every change of the graph, such as a counter of changes or a hash. It identifies the contents for the cache of analyses.
    /// Numbers of different graphs are not compared.
    fn revision(graph: &Self::Graph) -> u64;
}

/// A function of a module. `G` is a reference to its graph.
#[derive(Clone, Debug)]
pub struct Function<'m, G> {
    /// The number of the function, which is unique in the module. Only passes over modules may change it.
    pub id: u32,
    /// The qualified name.
    pub name: Cow<'m, str>,
    /// The reference to the graph.
    pub graph: G,
}

/// A module of the IR `I`.
pub trait IrModule<I: Ir>: Clone {
    /// Returns the functions, in a fixed order.
    fn functions(&self) -> impl Iterator<Item = Function<'_, &I::Graph>>;

    /// Returns the functions in the order of [`functions`](Self::functions), for modification.
    fn functions_mut(&mut self) -> impl Iterator<Item = Function<'_, &mut I::Graph>>;

    /// Verifies the references from `graph`, the graph of one of the module's functions, to other parts of the module, for example calls of other functions.
    ///
    /// # Errors
    /// If a reference is invalid.
    fn verify_uses(&self, _graph: &I::Graph) -> Result<(), I::VerifyError> {
        Ok(())
    }

    /// Returns a number that differs after every change of the module other than changes of the graphs of its functions.
    fn revision(&self) -> u64;
}

/// The module type of an IR without modules. It has no values.
#[derive(Clone, Copy, Debug)]
pub enum NoModules {}

impl<I: Ir> IrModule<I> for NoModules {
    fn functions(&self) -> impl Iterator<Item = Function<'_, &I::Graph>> {
        std::iter::empty()
    }

    fn functions_mut(&mut self) -> impl Iterator<Item = Function<'_, &mut I::Graph>> {
        std::iter::empty()
    }

    fn revision(&self) -> u64 {
        match *self {}
    }
}

/// A reference to the IR that is printed: a module, or a single graph.
#[derive(Debug)]
pub enum IrRef<'a, I: Ir> {
    /// A module.
    Module(&'a I::Module),
    /// The qualified name of a function, and its graph. The name is empty for a graph that belongs to no module.
    Graph(&'a str, &'a I::Graph),
}

impl<I: Ir> Clone for IrRef<'_, I> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<I: Ir> Copy for IrRef<'_, I> {}
