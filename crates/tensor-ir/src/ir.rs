//! The tensor IR as an IR of the pass manager.

use crate::graph::TensorGraph;
use crate::verify::{Failure, verify};
use frazil_pass_manager::{Ir, NoModules};
use std::convert::Infallible;
use std::fmt;

/// The tensor IR. Its graphs belong to no module, and its passes need no environment.
#[derive(Clone, Copy, Debug)]
pub struct TensorIr;

/// All violated rules of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidGraph(pub Vec<Failure>);

impl fmt::Display for InvalidGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the graph is not valid:")?;
        self.0.iter().try_for_each(|failure| write!(f, "\n  {failure}"))
    }
}

impl std::error::Error for InvalidGraph {}

impl Ir for TensorIr {
    type Graph = TensorGraph;
    type Module = NoModules;
    type Environment = ();
    type Lookups = ();
    type VerifyError = InvalidGraph;
    type Error = Infallible;

    fn verify(graph: &TensorGraph, (): &()) -> Result<(), InvalidGraph> {
        let failures = verify(graph);
        if failures.is_empty() {
            Ok(())
        } else {
            Err(InvalidGraph(failures))
        }
    }

    fn node_count(graph: &TensorGraph) -> usize {
        graph.len()
    }

    fn revision(graph: &TensorGraph) -> u64 {
        graph.revision()
    }
}
