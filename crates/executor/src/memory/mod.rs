//! The memory of compiled functions: constants, workspaces and results.

mod align;
mod constants;
pub mod deferred;
mod mapped;
mod output;
mod pages;
pub mod release;
mod workspace;

pub use align::{ALIGNMENT, PAGE, align_up};
pub use constants::Constants;
pub(crate) use constants::StoredBytes;
pub(crate) use mapped::MappedFile;
pub(crate) use output::{Contents as OutputContents, NewBytes};
pub(crate) use pages::Pages;
pub use workspace::Workspace;
