//! The emitters of Frazil's own kernel families.

mod conv;
mod depthwise;
mod gemm;
mod loops;
mod pool;
mod reorder;
mod winograd;

use super::family::Emitters;
use frazil_planner::kernel::{Conv, CopyChannels, Depthwise, Gemm, Loops, Pool, Reorder, WinogradWeights};

/// Returns the emitters of all families of this crate.
pub fn all() -> Emitters {
    Emitters::default()
        .with::<Conv>()
        .with::<CopyChannels>()
        .with::<Depthwise>()
        .with::<Gemm>()
        .with::<Loops>()
        .with::<Pool>()
        .with::<Reorder>()
        .with::<WinogradWeights>()
}
