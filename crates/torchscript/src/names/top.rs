//! The globals of a source text at the end of its run.

use std::collections::HashMap;
use std::sync::Arc;

use frazil_ir::Constant;
use ruff_text_size::TextRange;

use crate::error::SourceError;

/// The globals of a source text at the end of its run.
pub(crate) struct Top {
    /// The text.
    pub(super) text: Arc<str>,
    pub(super) names: HashMap<String, TopName>,
    pub(super) bound: HashMap<TextRange, Bound>,
    /// Constant values of names: numbers, strings, tensors, and lists and tuples of these.
    pub(super) constants: HashMap<String, Constant>,
}

/// The meaning of a name at the top level.
pub(crate) enum TopName {
    /// The function or class with this number.
    Definition(usize),
    /// Another name for the function with this number, which `torch.jit.script` has compiled.
    Scripted(usize),
    /// The traced function with this number.
    Traced(usize),
    /// An object from outside the text: an import, or another name for one.
    Elsewhere,
    /// A Python object of this class, which TorchScript cannot represent.
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
