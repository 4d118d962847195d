//! Operators: entries, and the functions derived from them.
//!
//! An entry ([`Operator`]) defines an operator's semantics once, in the narrowest [`Form`] that fits. All forms but kernels and composites are reduced to one
//! function from a call site ([`Args`]: dtypes and sizes of tensors, values of the rest) to a [`Program`]. The following are derived from that function:
//!
//! - *shape and dtype inference*: [`Operator::program`], then the shapes of the outputs ([`Program::output_shapes`]);
//! - *interpretation and constant folding*: [`eval_program`](crate::eval::eval_program) on the argument tensors;
//! - *native code*: the steps of the program, fused with those of other operators and emitted;
//! - *aliasing*: outputs that are view steps of an argument;
//! - the *in-place* form (`add_`) and the *`out` overloads*: the functional program, then a write of its result.
//!
//! # Using entries in code generation
//!
//! ```text
//! let op = registry.operator(graph, node)?;         // Operator: schema + entry + variant, chosen by operand types
//! let mut args = Args::new(ctx, op.schema());       // one push per operand, in order
//! args.push_tensor(dtype, sizes); args.push(Arg::Int(1)); ...
//! if let Some(program) = op.program(&args)? {       // the functional result, whatever the variant
//!     // program.arguments: the tensors pushed, in order (lists element by element)
//!     // program.steps: loop nests and views; program.outputs: the results
//! }                                                 // None: a kernel or composite (see Operator::semantics)
//! match op.variant() {                              // InPlace: write output 0 into argument `self`, converted to its dtype
//!     Variant::Functional | Variant::InPlace | Variant::Out => ...
//! }
//! ```
//!
//! Programs are small and built for one set of shapes. Nothing in them depends on strides, which the interpreter and the code generator handle.

use crate::operator::args::Args;
use crate::operator::entry::{ResultLayout, Traits};
use crate::operator::prepared::Prepared;
use crate::program::structured::Program;
use frazil_ir::schema::FunctionSchema;
use std::sync::Arc;

pub use crate::error::OpError;
pub use crate::operator::callback::{Call, Callback, Kernel, KernelFn, ProgramBuild, ProgramFn, Results, one};
pub use crate::operator::semantics::{Form, Semantics, Variant};

/// An overload with its semantics: the result of resolving a node of a graph.
#[derive(Clone)]
pub struct Operator {
    pub(crate) schema: Arc<FunctionSchema>,
    pub(crate) semantics: Semantics,
    pub(crate) variant: Variant,
    /// The kernel that the interpreter runs instead of the program if results depend on strides.
    pub(crate) eager: Option<KernelFn>,
    pub(crate) traits: Traits,
    /// See [`Operator::is_random`].
    pub(crate) is_random: bool,
    /// Whether results that are views of an argument are copied: `view_copy` is defined by `view`.
    pub(crate) copies: bool,
    /// Cache of compiled code for recent calls; clones share it.
    pub(crate) prepared: Arc<Prepared>,
}

impl Operator {
    /// Returns the overload's signature.
    pub fn schema(&self) -> &Arc<FunctionSchema> {
        &self.schema
    }

    /// Returns the semantics of the functional form of this overload.
    pub fn semantics(&self) -> &Semantics {
        &self.semantics
    }

    /// Returns where the results are stored: in new tensors, in place, or in `out` arguments.
    pub fn variant(&self) -> Variant {
        self.variant
    }

    /// Returns true for a kernel that changes none of its arguments, and whose results have types, dtypes and sizes that follow from the dtypes and sizes of
    /// tensor arguments and the values of other arguments.
    pub fn has_fixed_sizes(&self) -> bool {
        self.traits.fixed_sizes
    }

    /// Returns the properties of the semantics, which the entries of the overload and of the operator state.
    pub fn traits(&self) -> Traits {
        self.traits
    }

    /// Returns the strides of new results.
    pub fn layout(&self) -> ResultLayout {
        match (self.traits.layout, &self.semantics) {
            (Some(layout), _) => layout,
            (None, Semantics::Pointwise(_)) => ResultLayout::Elementwise,
            (None, _) => ResultLayout::AsComputed,
        }
    }

    /// Returns whether the operator is the in-place form of a view, which turns its first argument into the view and writes no elements.
    pub fn changes_view(&self) -> bool {
        self.variant == Variant::InPlace && self.semantics.form() == Form::View
    }

    /// Returns whether a result that is an argument is the same variable. This is true except for views that always
    /// return a new variable.
    pub(crate) fn returns_self(&self) -> bool {
        self.traits.returns_self || self.semantics.form() != Form::View
    }

    /// Returns true for an operator that draws random numbers in every call, so that results of equal calls differ.
    pub fn is_random(&self) -> bool {
        self.is_random
    }

    /// Returns true if the interpreter's result depends on strides, for example for its being a copy or the argument itself. It then runs a kernel instead of
    /// the program.
    pub fn sees_strides(&self) -> bool {
        self.eager.is_some()
    }

    /// Returns the functional operator with the same semantics, which returns new results.
    pub fn functional(&self) -> Operator {
        Operator {
            variant: Variant::Functional,
            ..self.clone()
        }
    }

    /// Returns the same semantics for `schema`, an overload that writes the functional result into its first argument.
    pub fn in_place(self, schema: Arc<FunctionSchema>) -> Operator {
        Operator {
            schema,
            variant: Variant::InPlace,
            eager: None,
            prepared: Arc::default(),
            ..self
        }
    }

    /// Returns the program that computes the functional results for these arguments; `None` for kernels and composites.
    ///
    /// # Errors
    /// When PyTorch raises for such arguments, or the entry does not support them.
    pub fn program(&self, args: &Args<'_>) -> Result<Option<Program>, OpError> {
        let program = match &self.semantics {
            Semantics::Pointwise(p) => p.program(args)?,
            Semantics::Program(_, build) => build.build(args)?,
            Semantics::Kernel(_) | Semantics::Composite(_) => return Ok(None),
        };
        if self.copies { program.copied() } else { Ok(program) }.map(Some)
    }
}
