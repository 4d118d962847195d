//! Measurements of kernels on this processor.

mod compare;
mod measure;
mod peak;

pub use compare::{Comparison, Comparisons, Variant};
pub use measure::measure;
pub use peak::peak;
