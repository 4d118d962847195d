//! Operators: what an entry says and what follows from it.
//!
//! An entry ([`Operator`]) gives an operator's semantics once, in the narrowest [`Form`] that fits. All forms but kernels and composites
//! come down to one function from a call site ([`Args`]: dtypes and sizes of tensors, values of the rest) to a
//! [`Program`]. From that one function follow
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
//! Programs are small and made for one set of shapes; nothing in them depends on strides, which the interpreter and the code
//! generator know for themselves.

pub use crate::error::OpError;
use crate::operator::args::Args;
use crate::operator::pointwise::Pointwise;
use crate::operator::prepared::Prepared;
use crate::program::structured::Program;
use crate::value::Value;
use frazil_ir::schema::FunctionSchema;
use frazil_ir::{Attribute, Context, Graph, TypeId};
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;

/// The forms of semantics, from the most to the least that a compiler can do with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// One scalar expression over broadcast operands.
    Pointwise,
    /// Folds over dimensions.
    Reduction,
    /// The same elements under other sizes and strides.
    View,
    /// Sums of products.
    Contraction,
    /// Several loop nests and views.
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
            Form::Composite => "composite",
            Form::Kernel => "kernel",
        })
    }
}

/// From a call site to the program that computes it.
pub type ProgramFn = fn(&Args<'_>) -> Result<Program, OpError>;

/// A Rust function over values; gives one value a result of the schema.
pub type KernelFn = fn(&Call<'_>) -> Result<Results, OpError>;

/// A function of an operator's entry: one without state, as tables hold them, or a closure.
pub enum Callback<P: Copy, C: ?Sized> {
    /// A function.
    Plain(P),
    /// A closure; clones share it.
    Closure(Arc<C>),
}

impl<P: Copy, C: ?Sized> Clone for Callback<P, C> {
    fn clone(&self) -> Self {
        match self {
            Callback::Plain(function) => Callback::Plain(*function),
            Callback::Closure(closure) => Callback::Closure(Arc::clone(closure)),
        }
    }
}

/// What makes the programs of an operator.
pub type ProgramBuild = Callback<ProgramFn, dyn Fn(&Args<'_>) -> Result<Program, OpError> + Send + Sync>;

/// What computes an operator.
pub type Kernel = Callback<KernelFn, dyn Fn(&Call<'_>) -> Result<Results, OpError> + Send + Sync>;

impl ProgramBuild {
    /// The program for a call site.
    ///
    /// # Errors
    /// When the arguments are not accepted.
    pub fn build(&self, args: &Args<'_>) -> Result<Program, OpError> {
        match self {
            Callback::Plain(build) => build(args),
            Callback::Closure(build) => build(args),
        }
    }
}

impl Kernel {
    /// Computes the results of a call.
    ///
    /// # Errors
    /// When the arguments are not accepted, or what the operator raises.
    pub fn run(&self, call: &Call<'_>) -> Result<Results, OpError> {
        match self {
            Callback::Plain(kernel) => kernel(call),
            Callback::Closure(kernel) => kernel(call),
        }
    }
}

/// Results of an operator.
pub type Results = SmallVec<[Value; 1]>;

/// What an operator does.
#[derive(Clone)]
pub enum Semantics {
    /// A scalar expression with a promotion rule.
    Pointwise(Pointwise),
    /// A program made for the call site.
    Program(Form, ProgramBuild),
    /// A function on values.
    Kernel(Kernel),
    /// A graph over other operators, compiled from TorchScript source by the dialect.
    Composite(Arc<Graph>),
}

impl Semantics {
    /// The form.
    pub fn form(&self) -> Form {
        match self {
            Semantics::Pointwise(_) => Form::Pointwise,
            Semantics::Program(form, _) => *form,
            Semantics::Kernel(_) => Form::Kernel,
            Semantics::Composite(_) => Form::Composite,
        }
    }
}

/// How an overload uses its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Variant {
    /// The results are new (or views).
    Functional,
    /// `add_`: the result is written into `self`, which is given back.
    InPlace,
    /// The results are written into the `out` arguments, which are given back.
    Out,
}

/// How the functional results of an operator lie in memory; programs say nothing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum ResultLayout {
    /// As the program or kernel gives them: row-major, or a view.
    #[default]
    AsComputed,
    /// In the order of the operands' dimensions ([`crate::shape::layout::elementwise_strides`]).
    Elementwise,
    /// Channels innermost where one of the first two tensors has them innermost, from this rank on: 3 or 4.
    ChannelsLast(usize),
}

/// One overload with its semantics: what a node of a graph resolves to.
#[derive(Clone)]
pub struct Operator {
    pub(crate) schema: Arc<FunctionSchema>,
    pub(crate) semantics: Semantics,
    pub(crate) variant: Variant,
    /// What the interpreter runs in the program's place, where strides are seen.
    pub(crate) eager: Option<KernelFn>,
    /// See [`Operator::has_fixed_sizes`].
    pub(crate) fixed_sizes: bool,
    /// See [`Operator::is_random`].
    pub(crate) random: bool,
    /// What is a view of an argument is given as a copy: `view_copy` is `view` so.
    pub(crate) copies: bool,
    /// A view that is its argument as it stands is that variable, not another one on the same elements.
    pub(crate) gives_itself: bool,
    /// All elements of the result are equal.
    pub(crate) fills: bool,
    pub(crate) layout: ResultLayout,
    /// What calls need beside their arguments; clones share it.
    pub(crate) prepared: Arc<Prepared>,
}

impl Operator {
    /// The overload's signature.
    pub fn schema(&self) -> &Arc<FunctionSchema> {
        &self.schema
    }

    /// What the functional form of this overload does.
    pub fn semantics(&self) -> &Semantics {
        &self.semantics
    }

    /// How the results are given.
    pub fn variant(&self) -> Variant {
        self.variant
    }

    /// True for a kernel that changes none of its arguments and whose results (of tensors, their dtypes and sizes) follow from the dtypes
    /// and sizes of its tensor arguments and from the values of the others.
    pub fn has_fixed_sizes(&self) -> bool {
        self.fixed_sizes
    }

    /// True for a kernel that draws random numbers: what one call gives may not stand for another's.
    pub fn is_random(&self) -> bool {
        self.random
    }

    /// True where strides decide what the interpreter gives, be it a copy or the argument itself: it runs a kernel in the program's place.
    pub fn sees_strides(&self) -> bool {
        self.eager.is_some()
    }

    /// The same semantics, giving new results.
    pub fn functional(&self) -> Operator {
        Operator {
            variant: Variant::Functional,
            ..self.clone()
        }
    }

    /// The same semantics for `schema`, an overload that writes the functional result into its first argument.
    pub fn in_place(self, schema: Arc<FunctionSchema>) -> Operator {
        Operator {
            schema,
            semantics: self.semantics,
            variant: Variant::InPlace,
            eager: None,
            fixed_sizes: self.fixed_sizes,
            random: self.random,
            copies: self.copies,
            gives_itself: self.gives_itself,
            fills: self.fills,
            layout: self.layout,
            prepared: Arc::default(),
        }
    }

    /// The program that computes the functional results for these arguments; `None` for kernels and composites.
    ///
    /// # Errors
    /// Where PyTorch raises for such arguments, and where the entry does not cover them.
    pub fn program(&self, args: &Args<'_>) -> Result<Option<Program>, OpError> {
        let program = match &self.semantics {
            Semantics::Pointwise(p) => p.program(args)?,
            Semantics::Program(_, build) => build.build(args)?,
            Semantics::Kernel(_) | Semantics::Composite(_) => return Ok(None),
        };
        if self.copies { program.copied() } else { Ok(program) }.map(Some)
    }
}

/// A call of a kernel.
pub struct Call<'a> {
    /// The context of names and types.
    pub ctx: &'a Context,
    /// The overload that is called.
    pub schema: &'a FunctionSchema,
    /// All arguments in order; none is missing.
    pub args: &'a [Value],
    /// Types of the node's outputs: what a list constructor or a conversion is asked for.
    pub output_types: &'a [TypeId],
    /// The node's attributes.
    pub attributes: &'a [Attribute],
}

impl Call<'_> {
    fn wrong(&self, index: usize, expected: &'static str) -> OpError {
        let name = self
            .schema
            .arguments
            .get(index)
            .map_or("...", |a| self.ctx.name(a.name));
        OpError::Argument {
            operator: self.schema.full_name(self.ctx),
            name: name.to_string(),
            expected,
        }
    }

    /// Argument `index`; `None` (the value) when there are fewer.
    pub fn arg(&self, index: usize) -> &Value {
        self.args.get(index).unwrap_or(&Value::None)
    }

    /// The tensor argument `index`.
    pub fn tensor(&self, index: usize) -> Result<crate::tensor::Tensor, OpError> {
        self.arg(index).as_tensor().ok_or_else(|| self.wrong(index, "a tensor"))
    }

    /// The tensor argument `index`, or `None`.
    pub fn opt_tensor(&self, index: usize) -> Result<Option<crate::tensor::Tensor>, OpError> {
        match self.arg(index) {
            Value::None => Ok(None),
            _ => self.tensor(index).map(Some),
        }
    }

    /// The tensors of list `index`.
    pub fn tensors(&self, index: usize) -> Result<Vec<crate::tensor::Tensor>, OpError> {
        let items = self
            .arg(index)
            .items()
            .ok_or_else(|| self.wrong(index, "a list of tensors"))?;
        items
            .iter()
            .map(|v| v.as_tensor().ok_or_else(|| self.wrong(index, "a list of tensors")))
            .collect()
    }

    /// The integer argument `index`.
    pub fn int(&self, index: usize) -> Result<i64, OpError> {
        match self.arg(index) {
            Value::Bool(b) => Ok(i64::from(*b)),
            other => other.as_int().ok_or_else(|| self.wrong(index, "an integer")),
        }
    }

    /// The integer argument `index`, or `None`.
    pub fn opt_int(&self, index: usize) -> Result<Option<i64>, OpError> {
        if matches!(self.arg(index), Value::None) {
            Ok(None)
        } else {
            self.int(index).map(Some)
        }
    }

    /// The number argument `index` as a float.
    pub fn float(&self, index: usize) -> Result<f64, OpError> {
        self.scalar(index).map(crate::scalar::Scalar::as_f64)
    }

    /// The number argument `index`.
    pub fn scalar(&self, index: usize) -> Result<crate::scalar::Scalar, OpError> {
        self.arg(index).as_scalar().ok_or_else(|| self.wrong(index, "a number"))
    }

    /// The truth value `index`.
    pub fn flag(&self, index: usize) -> Result<bool, OpError> {
        self.arg(index)
            .as_bool()
            .ok_or_else(|| self.wrong(index, "a truth value"))
    }

    /// The string argument `index`.
    pub fn text(&self, index: usize) -> Result<&str, OpError> {
        self.arg(index).as_str().ok_or_else(|| self.wrong(index, "a string"))
    }

    /// The integers of list `index`.
    pub fn ints(&self, index: usize) -> Result<Vec<i64>, OpError> {
        let items = match self.arg(index) {
            Value::Int(i) => return Ok(vec![*i]),
            other => other.items().ok_or_else(|| self.wrong(index, "a list of integers"))?,
        };
        items
            .iter()
            .map(|v| v.as_int().ok_or_else(|| self.wrong(index, "a list of integers")))
            .collect()
    }

    /// The list argument `index`.
    pub fn list(&self, index: usize) -> Result<&crate::value::ListValue, OpError> {
        match self.arg(index) {
            Value::List(l) => Ok(l),
            _ => Err(self.wrong(index, "a list")),
        }
    }

    /// The dictionary argument `index`.
    pub fn dict(&self, index: usize) -> Result<&crate::value::DictValue, OpError> {
        match self.arg(index) {
            Value::Dict(d) => Ok(d),
            _ => Err(self.wrong(index, "a dictionary")),
        }
    }

    /// The dtype argument `index`, or `None`.
    pub fn opt_dtype(&self, index: usize) -> Result<Option<frazil_ir::DType>, OpError> {
        let code = |i| frazil_ir::DType::from_code(i).ok_or_else(|| self.wrong(index, "a dtype"));
        self.opt_int(index)?.map(code).transpose()
    }
}

impl Call<'_> {
    /// The type of output `index`, `Any` when it is not known.
    pub fn output_type(&self, index: usize) -> TypeId {
        self.output_types.get(index).copied().unwrap_or(frazil_ir::types::ANY)
    }

    /// The integer attribute `name`.
    pub fn attribute_int(&self, name: &str) -> Result<i64, OpError> {
        let found = self.attributes.iter().find(|a| self.ctx.name(a.name) == name);
        found
            .and_then(|a| a.value.as_constant()?.as_int())
            .ok_or_else(|| OpError::raised(format!("the node has no integer attribute '{name}'")))
    }
}

/// One result.
pub fn one(value: impl Into<Value>) -> Result<Results, OpError> {
    Ok(smallvec::smallvec![value.into()])
}
