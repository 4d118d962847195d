//! Options of loading, and the requests that the loader makes of its caller: functions to trace.

use std::collections::HashSet;
use std::sync::Arc;

use frazil_ir::schema::Catalogue;
use frazil_ir::{Constant, Context, FunctionId, Graph, Module, ObjectId, SymbolId};
use frazil_passes::Operators;

use crate::error::SourceError;

/// Options of loading.
#[derive(Clone, Copy)]
pub struct LoadOptions<'a> {
    /// Where names and types are interned.
    pub ctx: &'a Arc<Context>,
    /// The operators that code may call; its context must be `ctx`.
    pub catalogue: &'a Catalogue,
    /// The semantics of the operators. With them, constants are folded in the graphs of source, as PyTorch's compiler does; code of archives is
    /// folded already.
    pub operators: Option<&'a dyn Operators>,
    /// Whether `torch.x` is the operator where Python has a function around it. Set for sources that define what operators do.
    pub operators_first: bool,
    /// What records functions and modules that source traces.
    pub trace: Option<Tracer<'a>>,
}

impl<'a> LoadOptions<'a> {
    /// With these operators, and without folding.
    pub fn new(ctx: &'a Arc<Context>, catalogue: &'a Catalogue) -> LoadOptions<'a> {
        LoadOptions {
            ctx,
            catalogue,
            operators: None,
            operators_first: false,
            trace: None,
        }
    }
}

impl std::fmt::Debug for LoadOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoadOptions").finish_non_exhaustive()
    }
}

/// A function that is to be recorded.
#[derive(Debug)]
pub struct TraceRequest {
    /// Its code. The parameters are `inputs`, behind the module of a method.
    pub function: FunctionId,
    /// The example inputs.
    pub inputs: Vec<Constant>,
    /// The module whose method it is.
    pub object: Option<ObjectId>,
    /// Whether a dictionary as result is refused.
    pub strict: bool,
    /// Further names of the function at the top level of the text.
    pub(crate) names: Vec<SymbolId>,
    /// The error where it cannot be traced, without the reason.
    pub(crate) error: Box<SourceError>,
}

/// What tracing knows of a program beside its code.
#[derive(Debug, Default)]
pub struct TraceContext {
    /// Functions that Python runs: their calls are no part of the trace, but what they do is.
    pub inlined: HashSet<FunctionId>,
    /// Classes of modules of which that holds.
    pub classes: HashSet<SymbolId>,
    /// Whether each of these objects was in training mode when it was traced.
    pub training: Vec<(ObjectId, bool)>,
}

/// Runs the code of a request, and gives the graph of what it did.
///
/// # Errors
/// Why that cannot be traced.
pub type Tracer<'a> = &'a (dyn Fn(&Module, &TraceContext, &TraceRequest) -> Result<Graph, String> + Sync);
