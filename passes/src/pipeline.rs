//! Textual pipelines of passes over TorchScript; see [`frazil_pass_manager::pipeline`].

use crate::pass::TorchScript;
use crate::registry::PassInfo;
pub use frazil_pass_manager::pipeline::{PipelineError, PipelineErrorKind, parse_pipeline};

/// A pass in a pipeline, with its options.
pub type PipelineEntry = frazil_pass_manager::pipeline::PipelineEntry<TorchScript>;

/// Steps that run a nested pipeline.
pub static STEPS: &[PassInfo] = PassInfo::STEPS;
