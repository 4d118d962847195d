//! Requests to trace functions and methods (`torch.jit.trace`).

use std::sync::Arc;

use frazil_ir::{Constant, FunctionId, SymbolId, TypeId};

use crate::error::SourceError;
use crate::options::{TraceContext, TraceRequest};
use crate::source::SourceFile;

/// The traces that the program requests, and the functions compiled for them.
#[derive(Default)]
pub(crate) struct Traces {
    /// Whether the function that is being compiled has Python's rules, because it is traced.
    pub(crate) is_tracing: bool,
    pub(crate) context: TraceContext,
    pub(crate) requests: Vec<TraceRequest>,
    /// Traced functions in global variables and attributes, with the functions compiled from them.
    pub(crate) functions: Vec<TracedFunction>,
    pub(super) variants: Vec<Variant>,
}

/// A function returned by `torch.jit.trace`, which code may call.
pub(crate) struct TracedFunction {
    pub(crate) file: Arc<SourceFile>,
    pub(crate) statement: usize,
    pub(crate) inputs: Vec<Constant>,
    pub(crate) strict: bool,
    pub(crate) error: Box<SourceError>,
    pub(crate) id: Option<FunctionId>,
    pub(crate) names: Vec<String>,
}

/// A function that was compiled for given types of its arguments.
pub(crate) struct Variant {
    pub(super) text: Arc<str>,
    pub(super) statement: usize,
    pub(super) method: Option<usize>,
    pub(super) this: Option<TypeId>,
    pub(super) types: Vec<(SymbolId, TypeId)>,
    pub(super) id: FunctionId,
}
