//! The global variables of a source text after it has run.

use std::collections::HashMap;
use std::sync::Arc;

use frazil_ir::Constant;
use ruff_text_size::TextRange;

use crate::error::SourceError;

/// The global variables of a source text after it has run.
pub(crate) struct Top {
    /// The source text.
    pub(super) text: Arc<str>,
    pub(super) names: HashMap<String, TopName>,
    pub(super) bound: HashMap<TextRange, Bound>,
    /// Constant values of global variables: numbers, strings, tensors, and lists and tuples of these.
    pub(super) constants: HashMap<String, Constant>,
}

/// The meaning of a global name.
pub(crate) enum TopName {
    /// The function or class whose statement has this index.
    Definition(usize),
    /// An alias for a function that `torch.jit.script` has compiled, by the index of its statement.
    Scripted(usize),
    /// A traced function, as an index in [`Traces::functions`](super::traced::Traces::functions).
    Traced(usize),
    /// An imported object, or an alias of one.
    Elsewhere,
    /// An object of the given Python class, which TorchScript cannot represent.
    Python(&'static str),
    /// A value that could not be evaluated, with the reason.
    Refused(Box<SourceError>),
}

/// The value of a default or of an assignment in a class body, evaluated at the definition.
pub(crate) enum Bound {
    /// A constant.
    Constant(Constant),
    /// A list or dictionary: the name of its class, and its contents if they are constant.
    Mutable(&'static str, Option<Constant>),
    /// A value that could not be evaluated, with the reason.
    Refused(Box<SourceError>),
}
