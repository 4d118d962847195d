//! Options of planning.

use crate::family::KernelFamily;
use crate::packed::PackedConstants;
use crate::target::Target;
use crate::tune::Tuning;
use std::sync::Arc;

/// What a graph is lowered for.
#[derive(Clone, Debug)]
pub struct LowerOptions {
    /// Name of the function; a C identifier.
    pub name: String,
    /// The processor.
    pub target: Target,
    /// Whether loop nests become one where that saves passes over memory. Neighbours over the same elements share a kernel also without it.
    pub fuse: bool,
    /// What was measured to be faster than what the analysis would choose, for [`LowerOptions::threads`] threads.
    pub tuning: Tuning,
    /// Kernel families that are tried before Frazil's own, in order.
    pub families: Vec<Arc<dyn KernelFamily>>,
    /// Constants that earlier plans have packed, for plans of this process only. Libraries and stored code contain all their constants.
    pub packed: Option<PackedConstants>,
    /// Whether plans for other sizes are to share code with this one. Blockings then do not depend on the sizes of activations, which may be slower.
    pub any_size: bool,
    /// Threads that a run will use. Code for another number gives the same results, but divides them less evenly.
    pub threads: usize,
}
