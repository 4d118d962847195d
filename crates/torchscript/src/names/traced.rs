//! The functions that `torch.jit.trace` is given, as data.

use std::sync::Arc;

use frazil_ir::{Constant, FunctionId, SymbolId, TypeId};

use crate::error::SourceError;
use crate::options::{TraceContext, TraceRequest};
use crate::source::SourceFile;

/// The traces of a program that is being compiled.
#[derive(Default)]
pub(crate) struct Traces {
    /// Whether the body that is compiled is one that Python would run.
    pub(crate) is_tracing: bool,
    pub(crate) context: TraceContext,
    pub(crate) requests: Vec<TraceRequest>,
    /// Functions at the top level and in attributes: how they are traced, and what was made of them.
    pub(crate) functions: Vec<TracedFunction>,
    pub(super) variants: Vec<Variant>,
}

/// A traced function that code may call.
pub(crate) struct TracedFunction {
    pub(crate) file: Arc<SourceFile>,
    pub(crate) statement: usize,
    pub(crate) inputs: Vec<Constant>,
    pub(crate) strict: bool,
    pub(crate) error: Box<SourceError>,
    pub(crate) id: Option<FunctionId>,
    pub(crate) names: Vec<String>,
}

/// A function that is compiled for arguments of these types.
pub(crate) struct Variant {
    pub(super) text: Arc<str>,
    pub(super) statement: usize,
    pub(super) method: Option<usize>,
    pub(super) this: Option<TypeId>,
    pub(super) types: Vec<(SymbolId, TypeId)>,
    pub(super) id: FunctionId,
}
