//! Passes over TorchScript: their traits, context and error, which are those of [`frazil_pass_manager`].

mod context;
mod torchscript;

pub use context::PassContextExt;
pub(crate) use context::joins_memory;
pub use frazil_pass_manager::{Analysis, Fuel, GraphPass, LastRewrite, ModulePass};
pub use torchscript::{TorchScript, TorchScriptError};

/// A pass of either kind.
pub type AnyPass = frazil_pass_manager::AnyPass<TorchScript>;
/// The context of a pass beside the graph: operators, analyses, statistics. [`PassContextExt`] has the methods that are specific to TorchScript.
pub type PassContext<'a> = frazil_pass_manager::PassContext<'a, TorchScript>;
/// The reason why a pipeline stopped.
pub type PassError = frazil_pass_manager::PassError<TorchScript>;
