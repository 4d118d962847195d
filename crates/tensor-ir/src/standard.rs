//! The list of the passes of this crate.
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

use crate::ir::TensorIr;
use crate::transform::{fold_constants, fuse, materialize_views, merge_matmuls, simplify};
use frazil_pass_manager::{PassInfo, StandardPasses};

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
