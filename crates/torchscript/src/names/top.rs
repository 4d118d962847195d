//! The globals of a source text once it has been run.

use std::collections::HashMap;
use std::sync::Arc;

use frazil_ir::Constant;
use ruff_text_size::TextRange;

use crate::error::SourceError;

/// The globals of a source text when it has been run.
pub(crate) struct Top {
    /// The text.
    pub(super) text: Arc<str>,
    pub(super) names: HashMap<String, TopName>,
    pub(super) bound: HashMap<TextRange, Bound>,
    /// The values of names that are numbers, strings, tensors or lists and tuples of such.
    pub(super) constants: HashMap<String, Constant>,
}

/// What a name at the top level stands for.
pub(crate) enum TopName {
    /// The function or class of this number.
    Definition(usize),
    /// Another name for the function of this number, which `torch.jit.script` has compiled.
    Scripted(usize),
    /// The traced function of this number.
    Traced(usize),
    /// Something that the text does not define, by an import or another name for it.
    Elsewhere,
    /// A value of this type, which only Python has.
    Python(&'static str),
    /// It cannot be known.
    Refused(Box<SourceError>),
}

/// The value of a default, or of what a class body assigns, when the definition was run.
pub(crate) enum Bound {
    /// A constant.
    Constant(Constant),
    /// A list or dictionary, by the name of its class.
    Mutable(&'static str, Option<Constant>),
    /// It cannot be known.
    Refused(Box<SourceError>),
}
