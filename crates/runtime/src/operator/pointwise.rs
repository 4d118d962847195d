//! Pointwise entries: one scalar formula over broadcast operands.

use crate::error::OpError;
use crate::operator::args::{Arg, Args, TensorArg};
use crate::operator::build::ProgramBuilder;
use crate::operator::callback::Callback;
use crate::program::expr::Expr;
use crate::program::structured::{Program, TensorId};
use crate::program::sym::{Formula, Sym};
use crate::scalar::Scalar;
use crate::scalar::promote::{ResultType, compute_dtype, real_of};
use frazil_ir::DType;
use std::cell::RefCell;
use std::sync::Arc;

/// Rule for the dtypes of the computation and of the result, from the operands' dtypes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Promotion {
    /// Computation and result have the operands' common dtype.
    Default,
    /// As `Default`, but integers and Bool become the default float dtype: `sin`, `div`.
    IntToFloat,
    /// As `Default`; integer and Bool operands are refused: `gelu`, `softplus`.
    Float,
    /// Computed in the common dtype, the result is Bool: comparisons.
    ToBool,
    /// As `Default`, but the result of complex operands is real: `abs`.
    Real,
    /// As `IntToFloat`, but always in double: `float_power`.
    Wide,
    /// Every operand is converted to Bool first: `logical_and`.
    Logical,
}

/// A scalar formula: a function, or a closure with state.
pub type PointwiseFormula =
    Callback<for<'f> fn(&Body<'f, '_>) -> Sym<'f>, dyn for<'f, 'a, 'b> Fn(&'b Body<'f, 'a>) -> Sym<'f> + Send + Sync>;

/// A pointwise entry.
#[derive(Clone)]
pub struct Pointwise {
    /// Names of the operands in the schema: tensors, or numbers in some overloads.
    pub operands: &'static [&'static str],
    /// Names of further tensor arguments, which do not affect type promotion: conditions, fill values.
    pub others: &'static [&'static str],
    /// The rule for the dtypes of computation and result.
    pub promotion: Promotion,
    /// The function that builds the scalar formula.
    pub formula: PointwiseFormula,
}

impl Pointwise {
    /// Returns an entry over `operands` with the dtype rule `promotion`.
    pub const fn new(
        operands: &'static [&'static str],
        promotion: Promotion,
        formula: for<'f> fn(&Body<'f, '_>) -> Sym<'f>,
    ) -> Pointwise {
        Pointwise {
            operands,
            others: &[],
            promotion,
            formula: Callback::Plain(formula),
        }
    }

    /// Returns an entry whose formula is a closure, which may have state.
    ///
    /// ```
    /// use frazil_runtime::pointwise::{Pointwise, Promotion};
    ///
    /// let slope = 0.1; // known only at run time
    /// let leaky = Pointwise::with_closure(&["self"], Promotion::IntToFloat, move |b| b.x(0).maximum(b.x(0) * slope));
    /// # let _ = leaky;
    /// ```
    pub fn with_closure(
        operands: &'static [&'static str],
        promotion: Promotion,
        formula: impl for<'f, 'a, 'b> Fn(&'b Body<'f, 'a>) -> Sym<'f> + Send + Sync + 'static,
    ) -> Pointwise {
        Pointwise {
            operands,
            others: &[],
            promotion,
            formula: Callback::Closure(Arc::new(formula)),
        }
    }

    /// Adds further tensor arguments, which do not affect type promotion.
    pub const fn with_others(mut self, others: &'static [&'static str]) -> Pointwise {
        self.others = others;
        self
    }

    /// Returns the program for a call.
    pub fn program(&self, args: &Args<'_>) -> Result<Program, OpError> {
        let mut p = ProgramBuilder::new(args);
        let out = self.append(&mut p, args)?;
        p.finish(&[out])
    }

    fn append(&self, p: &mut ProgramBuilder, args: &Args<'_>) -> Result<TensorId, OpError> {
        let (ids, body) = self.parts(args)?;
        p.pointwise(&ids, body)
    }

    /// Returns the expression, and the tensors of the call that are its inputs. Both depend on the dtypes and ranks of tensors and the values of all else, and
    /// not on sizes.
    pub(crate) fn parts(&self, args: &Args<'_>) -> Result<(Vec<TensorId>, Expr), OpError> {
        let mut common = ResultType::new();
        let mut tensors: Vec<TensorArg> = Vec::new();
        for name in self.operands {
            match args.get(name) {
                Arg::Tensor(t) => {
                    common = common.tensor(t.dtype(), t.rank());
                    tensors.push(t);
                }
                // An operand that may be left out (`clamp`'s bounds).
                Arg::None => {}
                other => match other.as_scalar() {
                    Some(s) => common = common.scalar(s),
                    None => return Err(OpError::raised(format!("expected a tensor or a number for '{name}'"))),
                },
            }
        }
        let promoted = common
            .dtype()
            .ok_or_else(|| OpError::raised("no operand has a dtype"))?;
        for name in self.others {
            if let Arg::Tensor(t) = args.get(name) {
                tensors.push(t);
            }
        }
        let float = promoted.is_floating_point() || promoted.is_complex();
        let (compute, result) = match self.promotion {
            Promotion::Default => (promoted, promoted),
            Promotion::IntToFloat if float => (promoted, promoted),
            Promotion::IntToFloat => (DType::Float, DType::Float),
            Promotion::Float if float => (promoted, promoted),
            Promotion::Float => {
                let name = args.ctx().name(args.schema().name);
                let dtype = promoted.type_name();
                return Err(OpError::raised(format!("\"{name}\" not implemented for '{dtype}'")));
            }
            Promotion::Real => (promoted, real_of(promoted)),
            Promotion::Wide if promoted.is_complex() => (DType::ComplexDouble, DType::ComplexDouble),
            Promotion::Wide => (DType::Double, DType::Double),
            Promotion::ToBool => (promoted, DType::Bool),
            Promotion::Logical => (DType::Bool, DType::Bool),
        };
        let body = self.body(args, &tensors, compute, result)?;
        Ok((tensors.iter().map(|t| t.id).collect(), body))
    }

    fn body(&self, args: &Args<'_>, tensors: &[TensorArg], compute: DType, result: DType) -> Result<Expr, OpError> {
        let formula = Formula::new();
        let body = Body {
            formula: &formula,
            args,
            entry: self,
            tensors,
            dtype: compute,
            error: RefCell::new(None),
        };
        let result_of = match &self.formula {
            Callback::Plain(formula) => formula(&body),
            Callback::Closure(formula) => formula(&body),
        };
        let id = result_of.cast(result).id();
        if let Some(error) = body.error.into_inner() {
            return Err(error);
        }
        Ok(formula.finish(id))
    }
}

/// The arguments and dtypes of a call, from which a formula is built.
pub struct Body<'f, 'a> {
    formula: &'f Formula,
    args: &'a Args<'a>,
    entry: &'a Pointwise,
    tensors: &'a [TensorArg],
    dtype: DType,
    error: RefCell<Option<OpError>>,
}

impl<'f> Body<'f, '_> {
    /// Returns the common dtype of the operands, before f16 and bf16 are widened.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the dtype in which the formula is computed.
    pub fn compute(&self) -> DType {
        compute_dtype(self.dtype)
    }

    /// Returns operand number `n` in the dtype of the computation.
    pub fn x(&self, n: usize) -> Sym<'f> {
        match self.entry.operands.get(n) {
            Some(name) => self.operand(name),
            None => self.fail(OpError::Unsupported(
                "a formula over an operand that it does not have".into(),
            )),
        }
    }

    /// Returns number `n` of the tensors that take no part in promotion, as a Bool condition.
    pub fn mask(&self, n: usize) -> Sym<'f> {
        match self.entry.others.get(n).map(|name| self.args.get(name)) {
            Some(Arg::Tensor(t)) => self.tensor(&t).cast(DType::Bool),
            _ => self.fail(OpError::raised("expected a condition tensor")),
        }
    }

    /// Returns the operand `name` in the dtype of the computation, or `None` if it is missing.
    pub fn optional(&self, name: &str) -> Option<Sym<'f>> {
        match self.args.get(name) {
            Arg::None => None,
            _ => Some(self.operand(name)),
        }
    }

    fn operand(&self, name: &str) -> Sym<'f> {
        match self.args.get(name) {
            // Conversion to the common dtype first: it may round, as PyTorch's does.
            Arg::Tensor(t) => self.tensor(&t).cast(self.dtype).cast(self.compute()),
            other => match other.as_scalar() {
                Some(s) => self.rounded(s),
                None => self.fail(OpError::raised(format!("operand '{name}' is missing"))),
            },
        }
    }

    /// Returns operand `n` in the dtype of the computation, without rounding a scalar or zero-dimensional tensor to f16 or bf16 first. PyTorch's multiplication
    /// and division read their second operand like this.
    pub fn unrounded(&self, n: usize) -> Sym<'f> {
        match self.entry.operands.get(n).map(|name| self.args.get(name)) {
            Some(Arg::Tensor(t)) if t.rank() == 0 && t.dtype().is_floating_point() => {
                self.tensor(&t).cast(self.compute())
            }
            Some(Arg::Tensor(_)) | None => self.x(n),
            Some(other) => other.as_scalar().map_or_else(|| self.x(n), |s| self.number(s)),
        }
    }

    /// Returns a number, first converted to the operands' common dtype, as PyTorch does. So f16 and bf16 round it.
    pub fn rounded(&self, s: Scalar) -> Sym<'f> {
        self.number(s.rounded_to(self.dtype))
    }

    /// Returns an intermediate value, rounded to f16 or bf16 if the operands have that dtype, where PyTorch's formula
    /// does so.
    pub fn stored(&self, x: Sym<'f>) -> Sym<'f> {
        x.cast(self.dtype).cast(self.compute())
    }

    fn tensor(&self, t: &TensorArg) -> Sym<'f> {
        let n = self.tensors.iter().position(|u| u.id == t.id).unwrap_or(0);
        self.formula.input(n, t.dtype())
    }

    /// Returns the number `s` as a constant in the dtype of the computation.
    pub fn number(&self, s: Scalar) -> Sym<'f> {
        self.formula.number(s, self.compute())
    }

    /// Returns `value` as a constant in the dtype of the computation.
    pub fn constant(&self, value: f64) -> Sym<'f> {
        self.formula.float(value, self.compute())
    }

    /// Returns the number argument `name`, which takes no part in promotion, in the dtype of the computation. It must be in the range of that dtype.
    pub fn scalar(&self, name: &str) -> Sym<'f> {
        match self.in_range(name, self.compute()) {
            Ok(s) => self.number(s),
            Err(e) => self.fail(e),
        }
    }

    /// Returns [`Body::scalar`], rounded to f16 or bf16 if that is the operands' dtype. The number must be in the range of the dtype.
    pub fn rounded_scalar(&self, name: &str) -> Sym<'f> {
        match self.in_range(name, self.dtype) {
            Ok(s) => self.rounded(s),
            Err(e) => self.fail(e),
        }
    }

    /// Returns [`Body::value`] of argument `name`, which must be in the range of the computation's dtype.
    pub fn value_in_range(&self, name: &str) -> f64 {
        match self.in_range(name, self.compute()) {
            Ok(s) => s.as_f64(),
            Err(e) => {
                self.fail(e);
                0.0
            }
        }
    }

    fn in_range(&self, name: &str, dtype: DType) -> Result<Scalar, OpError> {
        Ok(self.args.scalar(name)?.checked_to(dtype)?)
    }

    /// Refuses operand `n` if it is a number out of the range of `dtype`. Most operators convert numbers like tensors, with wrap-around; some operators need
    /// this check.
    pub fn check_operand(&self, n: usize, dtype: DType) {
        let number = self
            .entry
            .operands
            .get(n)
            .and_then(|name| self.args.get(name).as_scalar());
        if let Some(Err(error)) = number.map(|s| s.checked_to(dtype)) {
            self.fail(error.into());
        }
    }

    /// Returns the dtype of operand `n`. A number has the dtype of a tensor created from it.
    pub fn operand_dtype(&self, n: usize) -> Option<DType> {
        match self.args.get(self.entry.operands.get(n)?) {
            Arg::Tensor(t) => Some(t.dtype()),
            other => other.as_scalar().map(Scalar::default_dtype),
        }
    }

    /// Records an error if the computation's dtype is not in the set `among` of PyTorch's kernel `name`.
    pub fn demand(&self, name: &str, among: fn(DType) -> bool) {
        if !among(self.dtype) {
            let dtype = self.dtype.type_name();
            self.fail(OpError::raised(format!("\"{name}\" not implemented for '{dtype}'")));
        }
    }

    /// Returns the number argument `name`.
    pub fn number_argument(&self, name: &str) -> Option<Scalar> {
        self.args.get(name).as_scalar()
    }

    /// Returns the value of the number argument `name`.
    pub fn value(&self, name: &str) -> f64 {
        self.args.float(name).unwrap_or_else(|e| {
            self.fail(e);
            0.0
        })
    }

    /// Returns the string argument `name`; empty if it is `None`.
    pub fn text(&self, name: &str) -> String {
        self.args
            .opt_str(name)
            .ok()
            .flatten()
            .map(|s| s.to_string())
            .unwrap_or_default()
    }

    /// Returns the number of dimensions of the argument `name`; 0 for a number.
    pub fn rank(&self, name: &str) -> usize {
        match self.args.get(name) {
            Arg::Tensor(t) => t.rank(),
            _ => 0,
        }
    }

    /// Returns true if the argument `name` is `None`.
    pub fn is_none(&self, name: &str) -> bool {
        self.args.get(name) == Arg::None
    }

    /// Returns the value of operand `n` if it is a number and not a tensor.
    pub fn constant_operand(&self, n: usize) -> Option<f64> {
        self.args
            .get(self.entry.operands.get(n)?)
            .as_scalar()
            .map(Scalar::as_f64)
    }

    /// Returns the number or zero-dimensional tensor `name` in the dtype of the computation. It takes no part in
    /// promotion.
    pub fn foreign(&self, name: &str) -> Sym<'f> {
        self.operand(name)
    }

    /// Records an error, so that no program is created. Returns a placeholder.
    pub fn fail(&self, error: OpError) -> Sym<'f> {
        self.error.borrow_mut().get_or_insert(error);
        self.formula.float(0.0, self.compute())
    }
}
