//! Arguments of a call site for operator entries: tensors by dtype and sizes, all others by value.

use crate::error::OpError;
use crate::program::structured::TensorId;
use crate::scalar::Scalar;
use crate::shape::{Dims, TensorShape};
use frazil_ir::schema::FunctionSchema;
use frazil_ir::{Constant, Context, DType, Device};
use std::sync::Arc;

/// A tensor argument: its number in the program, its dtype and sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorArg {
    /// The number of the tensor among the program's tensor arguments.
    pub id: TensorId,
    /// The dtype and sizes.
    pub shape: TensorShape,
}

impl TensorArg {
    /// Returns the element type.
    pub fn dtype(&self) -> DType {
        self.shape.dtype
    }

    /// Returns the sizes.
    pub fn sizes(&self) -> &[i64] {
        &self.shape.sizes
    }

    /// Returns the number of dimensions.
    pub fn rank(&self) -> usize {
        self.shape.sizes.len()
    }
}

/// One argument of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Arg {
    /// `None`.
    None,
    /// A bool.
    Bool(bool),
    /// An integer; also dtypes, layouts and memory formats.
    Int(i64),
    /// A float.
    Float(f64),
    /// A complex number.
    Complex(num_complex::Complex64),
    /// A string.
    Str(Arc<str>),
    /// A device.
    Device(Device),
    /// A tensor, of which only the shape is known.
    Tensor(TensorArg),
    /// A list or tuple.
    List(Vec<Arg>),
    /// A value that programs of operators never use: a generator or an object.
    Opaque,
}

impl Arg {
    /// Returns the argument as a number, if it is one.
    pub fn as_scalar(&self) -> Option<Scalar> {
        match self {
            Arg::Bool(b) => Some(Scalar::Bool(*b)),
            Arg::Int(i) => Some(Scalar::Int(*i)),
            Arg::Float(f) => Some(Scalar::Float(*f)),
            Arg::Complex(c) => Some(Scalar::Complex(*c)),
            _ => None,
        }
    }

    /// Returns an immutable value as an argument; `None` for a tensor, which needs a number from [`Args::push_tensor`].
    pub fn from_constant(c: &Constant) -> Option<Arg> {
        Some(match c {
            Constant::None => Arg::None,
            Constant::Bool(b) => Arg::Bool(*b),
            Constant::Int(i) => Arg::Int(*i),
            Constant::Float(f) => Arg::Float(*f),
            Constant::Complex(c) => Arg::Complex(*c),
            Constant::Str(s) => Arg::Str(s.clone()),
            Constant::Device(d) => Arg::Device(*d),
            Constant::Tensor(_) => return None,
            Constant::List(l) => Arg::List(l.items.iter().map(Arg::from_constant).collect::<Option<_>>()?),
            Constant::Tuple(t) => Arg::List(t.items.iter().map(Arg::from_constant).collect::<Option<_>>()?),
            Constant::Dict(_) | Constant::Enum(_) | Constant::Function(_) | Constant::Object(_) => Arg::Opaque,
        })
    }
}

/// The arguments of one call, looked up by the names of the schema. Missing arguments have the schema's defaults.
///
/// The program's tensor arguments are numbered in the order in which they are pushed, lists element by element.
#[derive(Clone, Debug)]
pub struct Args<'a> {
    ctx: &'a Context,
    schema: &'a FunctionSchema,
    values: Vec<Arg>,
    shapes: Vec<TensorShape>,
}

impl<'a> Args<'a> {
    /// Returns a call of `schema` without arguments.
    pub fn new(ctx: &'a Context, schema: &'a FunctionSchema) -> Args<'a> {
        Args {
            ctx,
            schema,
            values: Vec::new(),
            shapes: Vec::new(),
        }
    }

    /// Appends the next argument.
    pub fn push(&mut self, arg: Arg) {
        self.values.push(arg);
    }

    /// Assigns a number to a tensor of `shape`, and returns the argument to be pushed, alone or in a list.
    pub fn number_tensor(&mut self, shape: TensorShape) -> Arg {
        let id = TensorId::new(self.shapes.len());
        self.shapes.push(shape.clone());
        Arg::Tensor(TensorArg { id, shape })
    }

    /// Appends a tensor argument.
    pub fn push_tensor(&mut self, dtype: DType, sizes: &[i64]) {
        let arg = self.number_tensor(TensorShape {
            dtype,
            sizes: sizes.into(),
        });
        self.values.push(arg);
    }

    /// Returns the same arguments for another schema with equal argument names.
    pub fn with_schema<'b>(&self, schema: &'b FunctionSchema) -> Args<'b>
    where
        'a: 'b,
    {
        Args {
            ctx: self.ctx,
            schema,
            values: self.values.clone(),
            shapes: self.shapes.clone(),
        }
    }

    /// Returns the schema that is called.
    pub fn schema(&self) -> &'a FunctionSchema {
        self.schema
    }

    /// Returns the context of the schema's names.
    pub fn ctx(&self) -> &'a Context {
        self.ctx
    }

    /// Returns the shapes of the program's tensor arguments.
    pub fn shapes(&self) -> &[TensorShape] {
        &self.shapes
    }

    /// Returns the passed arguments in order.
    pub fn values(&self) -> &[Arg] {
        &self.values
    }

    /// Returns true if the schema has an argument with that name.
    pub fn has(&self, name: &str) -> bool {
        self.position(name).is_some()
    }

    fn position(&self, name: &str) -> Option<usize> {
        let find = |name| self.schema.arguments.iter().position(|a| self.ctx.name(a.name) == name);
        // What functional schemas call `input`, their in-place forms call `self`.
        find(name).or_else(|| if name == "input" { find("self") } else { None })
    }

    /// Returns the argument `name`; the value `None` if the schema has no such argument.
    pub fn get(&self, name: &str) -> Arg {
        let Some(i) = self.position(name) else { return Arg::None };
        match self.values.get(i) {
            Some(value) => value.clone(),
            None => self.schema.arguments[i]
                .default
                .as_ref()
                .and_then(Arg::from_constant)
                .unwrap_or(Arg::None),
        }
    }

    fn wrong(&self, name: &str, expected: &'static str) -> OpError {
        OpError::Argument {
            operator: self.schema.full_name(self.ctx),
            name: name.to_string(),
            expected,
        }
    }

    /// Returns the tensor argument `name`.
    pub fn tensor(&self, name: &str) -> Result<TensorArg, OpError> {
        self.opt_tensor(name)?.ok_or_else(|| self.wrong(name, "a tensor"))
    }

    /// Returns the tensor argument `name`, or `None`.
    pub fn opt_tensor(&self, name: &str) -> Result<Option<TensorArg>, OpError> {
        match self.get(name) {
            Arg::Tensor(t) => Ok(Some(t)),
            Arg::None => Ok(None),
            _ => Err(self.wrong(name, "a tensor")),
        }
    }

    /// Returns the tensors of the list argument `name`.
    pub fn tensors(&self, name: &str) -> Result<Vec<TensorArg>, OpError> {
        let Arg::List(items) = self.get(name) else {
            return Err(self.wrong(name, "a list of tensors"));
        };
        let each = |a| {
            if let Arg::Tensor(t) = a {
                Ok(t)
            } else {
                Err(self.wrong(name, "a list of tensors"))
            }
        };
        items.into_iter().map(each).collect()
    }

    /// Returns the number argument `name`.
    pub fn scalar(&self, name: &str) -> Result<Scalar, OpError> {
        self.get(name).as_scalar().ok_or_else(|| self.wrong(name, "a number"))
    }

    /// Returns the number argument `name`, or `None`.
    pub fn opt_scalar(&self, name: &str) -> Result<Option<Scalar>, OpError> {
        match self.get(name) {
            Arg::None => Ok(None),
            other => other.as_scalar().map(Some).ok_or_else(|| self.wrong(name, "a number")),
        }
    }

    /// Returns the number argument `name` as a float.
    pub fn float(&self, name: &str) -> Result<f64, OpError> {
        self.scalar(name).map(Scalar::as_f64)
    }

    /// Returns the number argument `name` as a float, or `None`.
    pub fn opt_float(&self, name: &str) -> Result<Option<f64>, OpError> {
        Ok(self.opt_scalar(name)?.map(Scalar::as_f64))
    }

    /// Returns the integer argument `name`.
    pub fn int(&self, name: &str) -> Result<i64, OpError> {
        self.opt_int(name)?.ok_or_else(|| self.wrong(name, "an integer"))
    }

    /// Returns the integer argument `name`, or `None`.
    pub fn opt_int(&self, name: &str) -> Result<Option<i64>, OpError> {
        match self.get(name) {
            Arg::Int(i) => Ok(Some(i)),
            Arg::Bool(b) => Ok(Some(i64::from(b))),
            Arg::None => Ok(None),
            _ => Err(self.wrong(name, "an integer")),
        }
    }

    /// Returns the bool argument `name`; false if the schema has no such argument.
    pub fn flag(&self, name: &str) -> Result<bool, OpError> {
        match self.get(name) {
            Arg::Bool(b) => Ok(b),
            Arg::Int(i) => Ok(i != 0),
            Arg::None => Ok(false),
            _ => Err(self.wrong(name, "a bool")),
        }
    }

    /// Returns the string argument `name`, or `None`.
    pub fn opt_str(&self, name: &str) -> Result<Option<Arc<str>>, OpError> {
        match self.get(name) {
            Arg::Str(s) => Ok(Some(s)),
            Arg::None => Ok(None),
            _ => Err(self.wrong(name, "a string")),
        }
    }

    /// Returns the integers of the list argument `name` (one integer counts as a list of one).
    pub fn ints(&self, name: &str) -> Result<Dims, OpError> {
        self.opt_ints(name)?
            .ok_or_else(|| self.wrong(name, "a list of integers"))
    }

    /// Returns the integers of the list argument `name`, or `None`.
    pub fn opt_ints(&self, name: &str) -> Result<Option<Dims>, OpError> {
        let int = |a: &Arg| match a {
            Arg::Int(i) => Ok(*i),
            _ => Err(self.wrong(name, "a list of integers")),
        };
        match self.get(name) {
            Arg::None => Ok(None),
            Arg::Int(i) => Ok(Some(smallvec::smallvec![i])),
            Arg::List(items) => Ok(Some(items.iter().map(int).collect::<Result<_, _>>()?)),
            _ => Err(self.wrong(name, "a list of integers")),
        }
    }

    /// Returns `n` integers: the list `name`, where one number represents `n` equal ones (`int[2] stride=1`).
    pub fn int_array(&self, name: &str, n: usize) -> Result<Dims, OpError> {
        let list = self.ints(name)?;
        match list.len() {
            1 => Ok(smallvec::smallvec![list[0]; n]),
            len if len == n => Ok(list),
            len => Err(OpError::Raised(format!(
                "{name} has to be one integer or {n} of them, one for each dimension, but there are {len}"
            ))),
        }
    }

    /// Returns the dtype argument `name` (PyTorch's integer code in graphs), or `None`.
    pub fn opt_dtype(&self, name: &str) -> Result<Option<DType>, OpError> {
        let code = |i| DType::from_code(i).ok_or_else(|| self.wrong(name, "a dtype"));
        self.opt_int(name)?.map(code).transpose()
    }

    /// Returns the dtype that a call asks its result to have: argument `dtype`, or else that of the tensor `out`, in which PyTorch's sums, products and new
    /// tensors are computed.
    pub fn result_dtype(&self) -> Result<Option<DType>, OpError> {
        match self.opt_dtype("dtype")? {
            Some(dtype) => Ok(Some(dtype)),
            None => Ok(self.opt_tensor("out")?.map(|out| out.dtype())),
        }
    }

    /// Returns the dimension in argument `name`, for a tensor of `rank` dimensions, as an index from the front.
    pub fn dim(&self, name: &str, rank: usize) -> Result<usize, OpError> {
        wrap_dim(self.int(name)?, rank)
    }

    /// Returns the dimensions in argument `name`, without repetition; all dimensions if the argument is `None` or an
    /// empty list.
    pub fn dims(&self, name: &str, rank: usize) -> Result<Vec<usize>, OpError> {
        if rank > MOST_DIMENSIONS {
            return Err(OpError::raised("only tensors with up to 64 dims are supported"));
        }
        let list = self.opt_ints(name)?.unwrap_or_default();
        if list.is_empty() {
            return Ok((0..rank).collect());
        }
        let mut dims = Vec::new();
        for &d in &list {
            let d = wrap_dim(d, rank)?;
            if dims.contains(&d) {
                return Err(OpError::Raised(format!(
                    "dim {d} appears multiple times in the list of dims"
                )));
            }
            dims.push(d);
        }
        Ok(dims)
    }
}

/// Maximum rank of a tensor whose dimensions can be given as a list.
const MOST_DIMENSIONS: usize = 64;

/// Returns `dim` as a non-negative index of a dimension (negative ones count from the end), or PyTorch's error.
pub fn wrap_dim(dim: i64, rank: usize) -> Result<usize, OpError> {
    crate::shape::layout::wrap_dim(dim, rank).ok_or_else(|| {
        let n = rank.max(1);
        OpError::Raised(format!(
            "Dimension out of range (expected to be in range of [-{n}, {}], but got {dim})",
            n - 1
        ))
    })
}
