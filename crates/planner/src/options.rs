//! Options of planning.

use crate::family::KernelFamily;
use crate::kernel::GemmTile;
use crate::packed::PackedConstants;
use crate::target::Target;
use crate::tune::Tuning;
use std::sync::Arc;

/// Options for lowering a graph to a plan.
#[derive(Clone, Debug)]
pub struct LowerOptions {
    /// Name of the function; a C identifier.
    pub name: String,
    /// The processor.
    pub target: Target,
    /// Whether loop nests are fused if that saves passes over memory. Without this, adjacent nests over the same elements still share a kernel.
    pub fuse: bool,
    /// Kernel variants that were measured to be faster than those that the cost model chooses, for [`LowerOptions::threads`] threads.
    pub tuning: Tuning,
    /// Kernel families that are tried before Frazil's own, in order.
    pub families: Vec<Arc<dyn KernelFamily>>,
    /// Constants that earlier plans have packed, for plans of this process only. Libraries and stored code contain all their constants.
    pub packed: Option<PackedConstants>,
    /// The sizes that the code of the plan is for.
    pub sizes: PlanSizes,
    /// Number of threads of a run. Code for another number gives the same results, but balances the work less evenly.
    pub threads: usize,
}

/// The sizes that the code of a plan is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlanSizes {
    /// Those of the plan.
    #[default]
    One,
    /// Any: plans for other sizes, which are not known yet, share the code. The blocking does not depend on the sizes of activations, which may be slower.
    Any,
    /// Those of a range, all of which are planned. Weights have the same layout for all sizes. The blocking of activations may depend on the sizes.
    Range,
}

impl LowerOptions {
    /// Returns the blocking of `products` matmuls of the sizes `[m, n, k]`. `is_packed` is true if B is packed.
    pub(crate) fn gemm_tile(&self, products: i64, sizes: [i64; 3], is_packed: bool) -> GemmTile {
        let machine = self.target.machine;
        match self.sizes {
            PlanSizes::Any => GemmTile::for_any_size(products, sizes, is_packed, machine),
            PlanSizes::Range => GemmTile::for_columns(products, sizes, machine),
            PlanSizes::One => GemmTile::choose(products, sizes, machine),
        }
    }
}
