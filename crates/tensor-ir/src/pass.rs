//! Transformations as passes: the tensor IR for the pass manager, and the list of its passes.
//!
//! ```
//! use frazil_pass_manager::{PassManager, PassRegistry};
//! use frazil_tensor_ir::text::{parse, print};
//!
//! let text = "\
//! func @f(%0: float32[4]) {
//!   %1 = reshape float32[2, 2] %0
//!   %2 = reshape float32[4] %1
//!   return %2
//! }
//! ";
//! let mut function = parse(text)?;
//! let passes: PassRegistry<frazil_tensor_ir::TensorIr> = PassRegistry::standard();
//! let manager = PassManager::from_pipeline(&passes, "simplify")?;
//! manager.run_on_graph(&mut function.graph, &())?;
//! assert_eq!(print("f", &function.graph), "func @f(%0: float32[4]) {\n  return %0\n}\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::graph::TensorGraph;
use crate::transform::rewriter::{Listener, Rewriter};
use crate::transform::{fold_constants, fuse, materialize_views, merge_matmuls, simplify};
use crate::verify::{Failure, verify};
use frazil_pass_manager::{GraphPass, Ir, NoModules, PassContext, PassError, PassInfo, StandardPasses};
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

impl StandardPasses for TensorIr {
    fn passes() -> &'static [&'static PassInfo<TensorIr>] {
        &PASSES
    }
}

/// The declarations of the passes.
static PASSES: [&PassInfo<TensorIr>; 5] = [
    &simplify::INFO,
    &fold_constants::INFO,
    &materialize_views::INFO,
    &fuse::INFO,
    &merge_matmuls::INFO,
];

/// The pipeline that compiling runs; without its last two passes if fusion is disabled.
pub const PIPELINE: &str = "simplify,materialize-views,fuse,merge-matmuls";

impl Listener for PassContext<'_, TensorIr> {
    fn rewrite(&mut self, statistic: &'static str) -> bool {
        PassContext::rewrite(self, statistic)
    }
}

/// A transformation as a pass.
pub(crate) struct Transformation(pub fn(&mut Rewriter<'_>));

impl GraphPass<TensorIr> for Transformation {
    fn run(&self, graph: &mut TensorGraph, cx: &mut PassContext<'_, TensorIr>) -> Result<(), PassError<TensorIr>> {
        (self.0)(&mut Rewriter::new(graph, cx));
        Ok(())
    }
}
