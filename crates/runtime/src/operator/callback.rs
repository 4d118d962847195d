//! Types of the functions that operator entries contain: callbacks, their arguments and results.

use crate::error::OpError;
use crate::operator::args::Args;
use crate::program::structured::Program;
use crate::value::Value;
use frazil_ir::schema::FunctionSchema;
use frazil_ir::{Attribute, Context, TypeId};
use smallvec::SmallVec;
use std::sync::Arc;

/// A function that returns the program of an operator for the arguments of a call site.
pub type ProgramFn = fn(&Args<'_>) -> Result<Program, OpError>;

/// A Rust function over values, which returns one value for each result of the schema.
pub type KernelFn = fn(&Call<'_>) -> Result<Results, OpError>;

/// A function in an operator's entry: a plain function without state, as in tables, or a closure.
pub enum Callback<P: Copy, C: ?Sized> {
    /// A plain function.
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

/// The function that creates the programs of an operator.
pub type ProgramBuild = Callback<ProgramFn, dyn Fn(&Args<'_>) -> Result<Program, OpError> + Send + Sync>;

/// The function that computes the results of an operator.
pub type Kernel = Callback<KernelFn, dyn Fn(&Call<'_>) -> Result<Results, OpError> + Send + Sync>;

impl ProgramBuild {
    /// Returns the program for a call site.
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
    /// When the arguments are not accepted, and exceptions of the operator.
    pub fn run(&self, call: &Call<'_>) -> Result<Results, OpError> {
        match self {
            Callback::Plain(kernel) => kernel(call),
            Callback::Closure(kernel) => kernel(call),
        }
    }
}

/// Results of an operator.
pub type Results = SmallVec<[Value; 1]>;

/// A call of a kernel: its operator and arguments.
pub struct Call<'a> {
    /// The context of names and types.
    pub ctx: &'a Context,
    /// The overload that is called.
    pub schema: &'a FunctionSchema,
    /// All arguments in order; none is missing.
    pub args: &'a [Value],
    /// Types of the node's outputs, which a list constructor or a conversion has to return.
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

    /// Returns the position of the argument `name` in the schema.
    pub fn position(&self, name: &str) -> Option<usize> {
        let mut arguments = self.schema.arguments.iter();
        arguments.position(|a| self.ctx.name(a.name) == name)
    }

    /// Returns the dtype that the call asks its result to have, as [`Args::result_dtype`](super::args::Args::result_dtype) does.
    pub fn result_dtype(&self) -> Result<Option<frazil_ir::DType>, OpError> {
        if let Some(i) = self.position("dtype")
            && let Some(dtype) = self.opt_dtype(i)?
        {
            return Ok(Some(dtype));
        }
        let out = self.position("out").map(|i| self.opt_tensor(i)).transpose()?;
        Ok(out.flatten().map(|out| out.dtype()))
    }

    /// Returns argument `index`; the value `None` if there are fewer.
    pub fn arg(&self, index: usize) -> &Value {
        self.args.get(index).unwrap_or(&Value::None)
    }

    /// Returns the tensor argument `index`.
    pub fn tensor(&self, index: usize) -> Result<crate::tensor::Tensor, OpError> {
        self.arg(index).as_tensor().ok_or_else(|| self.wrong(index, "a tensor"))
    }

    /// Returns the tensor argument `index`, or `None`.
    pub fn opt_tensor(&self, index: usize) -> Result<Option<crate::tensor::Tensor>, OpError> {
        match self.arg(index) {
            Value::None => Ok(None),
            _ => self.tensor(index).map(Some),
        }
    }

    /// Returns the tensors of the list argument `index`.
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

    /// Returns the integer argument `index`.
    pub fn int(&self, index: usize) -> Result<i64, OpError> {
        match self.arg(index) {
            Value::Bool(b) => Ok(i64::from(*b)),
            other => other.as_int().ok_or_else(|| self.wrong(index, "an integer")),
        }
    }

    /// Returns the integer argument `index`, or `None`.
    pub fn opt_int(&self, index: usize) -> Result<Option<i64>, OpError> {
        if matches!(self.arg(index), Value::None) {
            Ok(None)
        } else {
            self.int(index).map(Some)
        }
    }

    /// Returns the number argument `index` as a float.
    pub fn float(&self, index: usize) -> Result<f64, OpError> {
        self.scalar(index).map(crate::scalar::Scalar::as_f64)
    }

    /// Returns the number argument `index`.
    pub fn scalar(&self, index: usize) -> Result<crate::scalar::Scalar, OpError> {
        self.arg(index).as_scalar().ok_or_else(|| self.wrong(index, "a number"))
    }

    /// Returns the bool argument `index`.
    pub fn flag(&self, index: usize) -> Result<bool, OpError> {
        self.arg(index).as_bool().ok_or_else(|| self.wrong(index, "a bool"))
    }

    /// Returns the string argument `index`.
    pub fn text(&self, index: usize) -> Result<&str, OpError> {
        self.arg(index).as_str().ok_or_else(|| self.wrong(index, "a string"))
    }

    /// Returns the integers of the list argument `index`.
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

    /// Returns the list argument `index`.
    pub fn list(&self, index: usize) -> Result<&crate::value::ListValue, OpError> {
        match self.arg(index) {
            Value::List(l) => Ok(l),
            _ => Err(self.wrong(index, "a list")),
        }
    }

    /// Returns the dictionary argument `index`.
    pub fn dict(&self, index: usize) -> Result<&crate::value::DictValue, OpError> {
        match self.arg(index) {
            Value::Dict(d) => Ok(d),
            _ => Err(self.wrong(index, "a dictionary")),
        }
    }

    /// Returns the dtype argument `index`, or `None`.
    pub fn opt_dtype(&self, index: usize) -> Result<Option<frazil_ir::DType>, OpError> {
        let code = |i| frazil_ir::DType::from_code(i).ok_or_else(|| self.wrong(index, "a dtype"));
        self.opt_int(index)?.map(code).transpose()
    }
}

impl Call<'_> {
    /// Returns the type of the node's output `index`; `Any` if it is unknown.
    pub fn output_type(&self, index: usize) -> TypeId {
        self.output_types.get(index).copied().unwrap_or(frazil_ir::types::ANY)
    }

    /// Returns the integer attribute `name` of the node.
    pub fn attribute_int(&self, name: &str) -> Result<i64, OpError> {
        let found = self.attributes.iter().find(|a| self.ctx.name(a.name) == name);
        found
            .and_then(|a| a.value.as_constant()?.as_int())
            .ok_or_else(|| OpError::raised(format!("the node has no integer attribute '{name}'")))
    }
}

/// Returns the results of a kernel with exactly one result.
pub fn one(value: impl Into<Value>) -> Result<Results, OpError> {
    Ok(smallvec::smallvec![value.into()])
}
