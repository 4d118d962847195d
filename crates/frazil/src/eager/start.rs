//! The methods of [`Ops`] and [`Var`] that start calls by an operator's name or number, and [`Var::size`].

use super::call::{Name, OpCall};
use super::{Ops, Var};
use crate::error::Result;
use frazil_ir::DType;
use frazil_runtime::Scalar;

impl Ops {
    /// Starts a call of any operator by its name with namespace: `aten::add`, `mine::swish`. The result takes the arguments.
    ///
    /// ```
    /// # use frazil::{Session, Tensor};
    /// # let ops = Session::new().eager();
    /// let x = ops.var(Tensor::from_f32(&[1.0, 2.0], &[2])?);
    /// assert_eq!(ops.start("aten::mul").positional(&x).positional(3).call()?.to_vec(), [3.0, 6.0]);
    /// assert!(ops.start("mine::swish").positional(&x).call().is_err()); // no dialect has it
    /// # Ok::<(), frazil::Error>(())
    /// ```
    #[track_caller]
    pub fn start(&self, operator: &str) -> OpCall<'_> {
        OpCall::new(self, Name::Other(operator.into()))
    }

    /// Starts a call of an operator that has a method, as [`Ops::start`] does.
    #[track_caller]
    #[inline]
    pub(super) fn start_known(&self, number: usize) -> OpCall<'_> {
        OpCall::new(self, Name::Known(number))
    }
}

impl Var {
    /// Starts a call of any operator with this tensor as its first argument.
    ///
    /// See [`OpCall::positional`] for an example.
    #[track_caller]
    pub fn start(&self, operator: &str) -> OpCall<'_> {
        self.ops().start(operator).positional(self)
    }

    /// Starts a call of an operator that has a method, as [`Var::start`] does.
    #[track_caller]
    #[inline]
    pub(super) fn start_known(&self, number: usize) -> OpCall<'_> {
        self.ops().start_known(number).positional(self)
    }

    /// Returns the size of dimension `dim` as a 0-d tensor, which converts to a number where an operator requires one. A negative `dim` counts from the end. In
    /// a graph that is being recorded, the size is computed from the tensor and is not a constant.
    ///
    /// ```
    /// # use frazil::{Session, Tensor};
    /// # let ops = Session::new().eager();
    /// let x = ops.var(Tensor::from_f32(&[1.0, 2.0, 3.0], &[1, 3])?);
    /// assert_eq!((x.sizes(), x.size(-1)?.to_vec()), (vec![1, 3], vec![3.0]));
    /// let flat = x.reshape([x.size(1)?]).call()?; // in a trace: the size of the actual input
    /// assert_eq!(flat.sizes(), [3]);
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such dimension.
    #[track_caller]
    pub fn size(&self, dim: i64) -> Result<Var> {
        let place = std::panic::Location::caller();
        let value = self.start("aten::size").positional(dim).call_value()?;
        let size = value.as_int().unwrap_or_default();
        let var = self.ops().scalar(DType::Long, Scalar::Int(size));
        self.ops().record(|r| r.size(self.cell(), dim, var.cell(), place));
        Ok(var)
    }
}
