//! Options of loading, and the callback by which the loader traces functions.

use std::collections::HashSet;
use std::sync::Arc;

use frazil_ir::schema::Catalogue;
use frazil_ir::{Constant, Context, FunctionId, Graph, Module, ObjectId, SymbolId};
use frazil_passes::Operators;

use crate::error::SourceError;

/// Options of loading.
#[derive(Clone, Copy)]
pub struct LoadOptions<'a> {
    /// The context in which names and types are interned.
    pub ctx: &'a Arc<Context>,
    /// The operators that code may call; its context must be `ctx`.
    pub catalogue: &'a Catalogue,
    /// The semantics of the operators. If present, constants in the graphs of source are folded as by PyTorch's compiler. Code of archives is already folded.
    pub operators: Option<&'a dyn Operators>,
    /// Whether `torch.x` denotes the operator even if Python has a function of that name. Set for sources that define operators.
    pub operators_first: bool,
    /// Callback that records the traces which a source text requests by `torch.jit.trace`.
    pub trace: Option<Tracer<'a>>,
}

impl<'a> LoadOptions<'a> {
    /// Returns options with the operators of `catalogue`, without constant folding.
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

/// A request to trace a function.
#[derive(Debug)]
pub struct TraceRequest {
    /// The compiled function. Its parameters are `inputs`, after the module for a method.
    pub function: FunctionId,
    /// The example inputs with which the function is traced.
    pub inputs: Vec<Constant>,
    /// The module whose method is traced; `None` for a function.
    pub object: Option<ObjectId>,
    /// The argument `strict` of `torch.jit.trace`: whether a dictionary as result is an error.
    pub strict: bool,
    /// Other global names of the traced function.
    pub(crate) names: Vec<SymbolId>,
    /// The error to report if tracing fails. The reason is added to it.
    pub(crate) error: Box<SourceError>,
}

/// Facts about a program that tracing uses in addition to the program's code.
#[derive(Debug, Default)]
pub struct TraceContext {
    /// Plain Python functions, whose operations are recorded in the trace in place of their calls.
    pub inlined: HashSet<FunctionId>,
    /// Classes of modules whose methods are plain Python: the trace contains their operations instead of calls.
    pub classes: HashSet<SymbolId>,
    /// For each object, whether it was in training mode when it was traced.
    pub training: Vec<(ObjectId, bool)>,
}

/// A function that runs the code of a request and returns the recorded graph.
///
/// # Errors
/// The reason why the function cannot be traced.
pub type Tracer<'a> = &'a (dyn Fn(&Module, &TraceContext, &TraceRequest) -> Result<Graph, String> + Sync);
