//! Options of planning.

use crate::family::KernelFamily;
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
    /// Whether plans for other sizes share code with this one. The blocking then does not depend on the sizes of activations, which may be slower.
    pub any_size: bool,
    /// Number of threads of a run. Code for another number gives the same results, but balances the work less evenly.
    pub threads: usize,
}
