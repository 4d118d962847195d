//! TorchScript as an IR of the pass manager.

use crate::freeze::error::FreezeError;
use crate::inline::error::InlineError;
use crate::support;
use crate::support::operators::Operators;
use crate::support::overloads::Overloads;
use frazil_ir::verify::VerifyError;
use frazil_ir::{Graph, Module};
use frazil_pass_manager::ir::Function;
use frazil_pass_manager::{Ir, IrModule, PassError};
use std::borrow::Cow;
use std::sync::Arc;

/// The IR of TorchScript: the type parameter of traits and types of the pass manager.
#[derive(Clone, Copy, Debug)]
pub struct TorchScript;

/// Errors of passes that only TorchScript has.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TorchScriptError {
    /// Inlining failed: see [`InlineError`].
    #[error(transparent)]
    Inline(#[from] InlineError),
    /// Freezing failed: see [`FreezeError`](crate::FreezeError).
    #[error(transparent)]
    Freeze(#[from] FreezeError),
}

impl From<InlineError> for PassError<TorchScript> {
    fn from(error: InlineError) -> Self {
        PassError::Ir(error.into())
    }
}

impl From<FreezeError> for PassError<TorchScript> {
    fn from(error: FreezeError) -> Self {
        PassError::Ir(error.into())
    }
}

impl Ir for TorchScript {
    type Graph = Graph;
    type Module = Module;
    type Environment = dyn Operators;
    type Lookups = Overloads;
    type VerifyError = VerifyError;
    type Error = TorchScriptError;

    fn verify(graph: &Graph, operators: &dyn Operators) -> Result<(), VerifyError> {
        support::subgraphs_and_self(graph).try_for_each(|g| g.verify(Some(operators.catalogue())))
    }

    fn node_count(graph: &Graph) -> usize {
        support::subgraphs_and_self(graph).map(|g| g.all_nodes().len()).sum()
    }

    fn revision(graph: &Graph) -> u64 {
        graph.revision()
    }
}

impl IrModule<TorchScript> for Module {
    fn functions(&self) -> impl Iterator<Item = Function<'_, &Graph>> {
        let ctx = self.ctx();
        self.unit.functions().map(|(id, function)| Function {
            id: id.as_u32(),
            name: Cow::Borrowed(ctx.name(function.name)),
            graph: &function.graph,
        })
    }

    fn functions_mut(&mut self) -> impl Iterator<Item = Function<'_, &mut Graph>> {
        let ctx = Arc::clone(self.ctx());
        self.unit.functions_mut().map(move |(id, function)| Function {
            id: id.as_u32(),
            name: Cow::Owned(ctx.name(function.name).to_owned()),
            graph: &mut function.graph,
        })
    }

    fn verify_uses(&self, graph: &Graph) -> Result<(), VerifyError> {
        support::subgraphs_and_self(graph).try_for_each(|g| g.verify_members(&self.unit))
    }

    /// Combines the number of classes and the number of objects.
    fn revision(&self) -> u64 {
        (self.unit.classes.len() as u64) << 32 | self.object_count() as u64
    }
}
