//! The pass manager, generic over the intermediate representation (IR).
//!
//! A [`PassManager`] runs passes on a module or a graph of an [`Ir`], and observes them: it verifies, prints, measures time, counts rewrites,
//! and writes reproducers of failures. [`PassRegistry`] contains passes by name, and [`pipeline`] parses textual pipelines. Nothing is global.
//!
//! ```
//! use frazil_pass_manager::{AnyPass, GraphPass, Ir, NoModules, PassContext, PassError, PassInfo, PassManager, PassRegistry};
//! use std::convert::Infallible;
//!
//! /// An IR whose graphs are lists of numbers.
//! #[derive(Clone, Copy, Debug)]
//! struct Numbers;
//!
//! impl Ir for Numbers {
//!     type Graph = Vec<u64>;
//!     type Module = NoModules;
//!     type Environment = ();
//!     type Lookups = ();
//!     type VerifyError = Infallible;
//!     type Error = Infallible;
//!
//!     fn verify(_graph: &Vec<u64>, _environment: &()) -> Result<(), Infallible> {
//!         Ok(())
//!     }
//!
//!     fn node_count(graph: &Vec<u64>) -> usize {
//!         graph.len()
//!     }
//!
//!     /// Passes only make numbers smaller.
//!     fn revision(graph: &Vec<u64>) -> u64 {
//!         graph.iter().sum()
//!     }
//! }
//!
//! static HALVE: PassInfo<Numbers> = PassInfo {
//!     name: "halve",
//!     summary: "Halves even numbers.",
//!     before: "[4, 3]",
//!     after: "[2, 3]",
//!     options: &[],
//!     build: |_| AnyPass::graph(Halve),
//! };
//!
//! struct Halve;
//!
//! impl GraphPass<Numbers> for Halve {
//!     fn run(&self, graph: &mut Vec<u64>, cx: &mut PassContext<'_, Numbers>) -> Result<(), PassError<Numbers>> {
//!         for n in graph.iter_mut().filter(|n| **n > 0 && **n % 2 == 0) {
//!             if cx.rewrite("numbers halved") {
//!                 *n /= 2;
//!             }
//!         }
//!         Ok(())
//!     }
//! }
//!
//! let mut passes = PassRegistry::new();
//! passes.add(&HALVE);
//! let manager = PassManager::from_pipeline(&passes, "repeat(halve)")?;
//! let mut graph = vec![8, 3];
//! let report = manager.run_on_graph(&mut graph, &())?;
//! assert_eq!(graph, [1, 3]);
//! assert_eq!(report.statistics, [("halve".to_owned(), "numbers halved", 3)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod analysis;
mod context;
mod error;
mod fuel;
pub mod ir;
pub mod manager;
mod pass;
pub mod pipeline;
pub mod registry;

pub use analysis::Analysis;
pub use context::PassContext;
pub use error::PassError;
pub use fuel::{Fuel, LastRewrite};
pub use ir::{Ir, IrModule, IrRef, NoModules};
pub use manager::{IrPrinter, PassManager, PrintOptions, Report, Reproducer, Timing};
pub use pass::{AnyPass, GraphPass, ModulePass};
pub use pipeline::PipelineError;
pub use registry::{
    OptionInfo, OptionKind, OptionValue, PassInfo, PassOptions, PassRegistry, RegisteredPass, StandardPasses,
};
