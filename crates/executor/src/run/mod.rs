//! Loading and running compiled functions.

mod executable;
mod load;
mod pools;
pub mod profile;

pub use executable::{Executable, RunError};
pub use load::{LoadedCode, RunOptions};
pub use pools::Pools;
