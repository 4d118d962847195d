//! The pass manager for TorchScript; see [`frazil_pass_manager::manager`].

use crate::pass::TorchScript;
pub use frazil_pass_manager::{IrPrinter, PrintOptions, Report, Reproducer, Timing};

/// A pipeline ready to run.
pub type PassManager = frazil_pass_manager::PassManager<TorchScript>;
/// A module or a function of one, to be printed.
pub type IrRef<'a> = frazil_pass_manager::IrRef<'a, TorchScript>;
