//! The semantics of an operator, and where its overloads store results.

use crate::operator::callback::{Kernel, ProgramBuild};
use crate::operator::pointwise::Pointwise;
use frazil_ir::Graph;
use std::fmt;
use std::sync::Arc;

/// The forms of an operator's semantics. Earlier forms contain more information for a compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// One scalar expression over broadcast operands.
    Pointwise,
    /// Reductions over dimensions.
    Reduction,
    /// A view: the same elements with other sizes and strides.
    View,
    /// Sums of products (contractions).
    Contraction,
    /// Several loop nests and views.
    LoopNests,
    /// TorchScript source over other operators.
    Composite,
    /// A Rust function.
    Kernel,
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Form::Pointwise => "pointwise",
            Form::Reduction => "reduction",
            Form::View => "view",
            Form::Contraction => "contraction",
            Form::LoopNests => "loop nests",
            Form::Composite => "composite",
            Form::Kernel => "kernel",
        })
    }
}

/// The semantics of an operator.
#[derive(Clone)]
pub enum Semantics {
    /// A scalar expression with a promotion rule.
    Pointwise(Pointwise),
    /// A program built for the call site.
    Program(Form, ProgramBuild),
    /// A function on values.
    Kernel(Kernel),
    /// A graph of other operators, compiled from the dialect's TorchScript source.
    Composite(Arc<Graph>),
}

impl Semantics {
    /// Returns the form of the semantics.
    pub fn form(&self) -> Form {
        match self {
            Semantics::Pointwise(_) => Form::Pointwise,
            Semantics::Program(form, _) => *form,
            Semantics::Kernel(_) => Form::Kernel,
            Semantics::Composite(_) => Form::Composite,
        }
    }
}

/// The destination of an overload's results, by which functional, in-place and `out` overloads differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Variant {
    /// The results are new tensors, or views.
    Functional,
    /// `add_`: the result is written into `self`, which is returned. `transpose_`: `self` becomes the view.
    InPlace,
    /// The results are written into the `out` arguments, which are returned.
    Out,
}
