//! Functions of the tensor IR as inputs.

use super::{Input, Search};
use crate::Failure;
use frazil::Session;
use frazil::passes::pass::LastRewrite;
use frazil_pass_manager::{PassManager, PassRegistry};
use frazil_tensor_ir::text::{FileError, read_file, write_file};
use frazil_tensor_ir::{TensorGraph, TensorIr};
use std::path::Path;

/// A function of the tensor IR.
#[derive(Clone)]
pub(super) struct TensorInput {
    name: String,
    graph: TensorGraph,
}

impl TensorInput {
    /// Reads a text, and its large constants from the file beside it.
    pub(super) fn read(path: &Path, session: &Session) -> Result<TensorInput, Failure> {
        let function = read_file(path, Some(session.registry())).map_err(failure)?;
        Ok(TensorInput {
            name: function.name,
            graph: function.graph,
        })
    }
}

impl Input for TensorInput {
    const EXTENSION: &'static str = "tensors";

    fn nodes(&self) -> usize {
        self.graph.live_ids().len()
    }

    fn write(&self, path: &Path) -> Result<(), Failure> {
        write_file(path, &self.name, &self.graph).map_err(failure)
    }

    fn run_passes(&mut self, pipeline: &str, limit: u64) -> Result<Option<LastRewrite>, Failure> {
        let passes: PassRegistry<TensorIr> = PassRegistry::standard();
        let other = |error: &dyn std::error::Error| Failure::Other(error.to_string());
        let mut manager = PassManager::from_pipeline(&passes, pipeline).map_err(|error| other(&error))?;
        manager.limit(Some(limit));
        let report = manager
            .run_on_graph(&mut self.graph, &())
            .map_err(|error| other(&error))?;
        Ok(report.last_rewrite)
    }

    fn reduce(self, search: &mut Search<'_, TensorInput>) -> Result<TensorInput, Failure> {
        let TensorInput { name, graph } = self;
        let with = |graph| {
            let name = name.clone();
            Some(TensorInput { name, graph })
        };
        let graph = search.part(&graph, |_| true, with)?;
        Ok(TensorInput { name, graph })
    }
}

/// Returns an error of a file as a failure, errors in texts with their lines.
fn failure(error: FileError) -> Failure {
    match error {
        FileError::Text { path, text, source } => {
            let name = path.display().to_string();
            let report = frazil_syntax::render(&name, &text, &source.diagnostics, false);
            Failure::Frazil(frazil::Error::Text(report))
        }
        other => Failure::Other(other.to_string()),
    }
}
