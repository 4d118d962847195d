//! Indexing with Python's semantics: `x[1, ..., 2:, None, mask]` is `x.at((1, Index::Ellipsis, 2.., Index::NewAxis, &mask))`.

use super::{Arg, Var};
use crate::error::{Error, Result};
use frazil_ir::DType;
use frazil_runtime::Value;
use std::ops::{Range, RangeFrom, RangeFull, RangeTo};

/// One index of a subscript.
///
/// ```
/// use frazil::{Session, Tensor, eager::Index};
///
/// # let ops = Session::new().eager();
/// let x = ops.var(Tensor::from_f32(&[1.0, 2.0, 3.0, 4.0], &[2, 2])?);
/// assert_eq!(x.at((Index::Ellipsis, 0))?.to_vec(), [1.0, 3.0]); // `x[..., 0]`
/// assert_eq!(x.at((1.., Index::NewAxis))?.sizes(), [1, 1, 2]); // `x[1:, None]`
/// assert_eq!(x.at(Index::Slice(None, None, 2))?.to_vec(), [1.0, 2.0]); // `x[::2]`
/// # Ok::<(), frazil::Error>(())
/// ```
#[derive(Clone, Debug)]
pub enum Index {
    /// The element at one position. The dimension is removed.
    At(Arg<'static>),
    /// The slice `start:end:step`. Negative bounds count from the end.
    Slice(Option<Arg<'static>>, Option<Arg<'static>>, i64),
    /// `...`: all dimensions without an index of their own.
    Ellipsis,
    /// `None`: a new dimension of extent 1.
    NewAxis,
    /// A tensor of positions, or a mask of bools.
    Tensor(Var),
}

macro_rules! ranges {
    ($($ty:ty, |$r:ident| $start:expr, $end:expr;)*) => {$(
        impl From<$ty> for Index {
            fn from($r: $ty) -> Index {
                Index::Slice($start, $end, 1)
            }
        }
    )*};
}

ranges! {
    Range<i64>, |r| Some(r.start.into()), Some(r.end.into());
    RangeFrom<i64>, |r| Some(r.start.into()), None;
    RangeTo<i64>, |r| None, Some(r.end.into());
    RangeFull, |_r| None, None;
}

impl From<i64> for Index {
    fn from(i: i64) -> Index {
        Index::At(i.into())
    }
}

impl From<&Var> for Index {
    /// Converts a variable to an index. A zero-dimensional integer tensor is a position, as in Python.
    fn from(var: &Var) -> Index {
        let tensor = var.get();
        match tensor.dim() == 0 && tensor.dtype().is_integral() && tensor.dtype() != DType::Bool {
            true => Index::At(Arg::Var(var.clone())),
            false => Index::Tensor(var.clone()),
        }
    }
}

/// The indices of a subscript: one [`Index`], a tuple of up to six, or a vector.
pub trait Indices {
    /// Returns the indices in the order of the dimensions.
    fn indices(self) -> Vec<Index>;
}

macro_rules! single {
    ($($ty:ty)*) => {$(
        impl Indices for $ty {
            fn indices(self) -> Vec<Index> {
                vec![self.into()]
            }
        }
    )*};
}

single! { i64 &Var Index Range<i64> RangeFrom<i64> RangeTo<i64> RangeFull }

impl Indices for Vec<Index> {
    fn indices(self) -> Vec<Index> {
        self
    }
}

macro_rules! tuples {
    ($($($name:ident)*;)*) => {$(
        impl<$($name: Into<Index>),*> Indices for ($($name,)*) {
            #[allow(non_snake_case, reason = "a type and its value share the name")]
            fn indices(self) -> Vec<Index> {
                let ($($name,)*) = self;
                vec![$($name.into()),*]
            }
        }
    )*};
}

tuples! { A B; A B C; A B C D; A B C D E; A B C D E F; }

impl Var {
    /// Returns `self[indices]`: a view, unless a tensor is among the indices. A subscript is one [`Index`], a tuple of up to six, or a vector;
    /// numbers, ranges and variables convert to indices.
    ///
    /// ```
    /// # use frazil::{Session, Tensor};
    /// # let ops = Session::new().eager();
    /// let x = ops.var(Tensor::from_f32(&[1.0, 2.0, 3.0, 4.0], &[2, 2])?);
    /// assert_eq!(x.at((0, -1))?.to_vec(), [2.0]); // `x[0, -1]`
    /// assert_eq!(x.at(&x.gt(2).call()?)?.to_vec(), [3.0, 4.0]); // `x[x > 2]`
    /// assert!(x.at(2).is_err());
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If an index is out of range, or there are too many.
    #[track_caller]
    pub fn at(&self, indices: impl Indices) -> Result<Var> {
        let (view, tensors) = self.view_at(indices.indices())?;
        match tensors.is_empty() {
            true => Ok(view),
            false => view.start("aten::index").positional(tensors).call(),
        }
    }

    /// Executes `self[indices] = value`. The value is broadcast and converted. The indices are those of [`at`](Self::at).
    ///
    /// ```
    /// # use frazil::{Session, Tensor};
    /// # let ops = Session::new().eager();
    /// let x = ops.var(Tensor::from_f32(&[1.0, 2.0, 3.0, 4.0], &[2, 2])?);
    /// x.set_at((.., 0), 9)?; // `x[:, 0] = 9`
    /// assert_eq!(x.to_vec(), [9.0, 2.0, 9.0, 4.0]);
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If an index is out of range, or the value does not fit.
    #[track_caller]
    pub fn set_at<'a>(&self, indices: impl Indices, value: impl Into<Arg<'a>>) -> Result<()> {
        let (view, tensors) = self.view_at(indices.indices())?;
        let value: Arg<'a> = value.into();
        let call = match (tensors.is_empty(), value) {
            (true, value) if value.as_cell().is_some() => view.start("aten::copy_").positional(value),
            (true, value) => view.start("aten::fill_").positional(value),
            (false, Arg::Value(value)) if !matches!(value, Value::Tensor(_)) => {
                let number = value
                    .as_scalar()
                    .ok_or_else(|| Error::Call("only numbers and tensors can be stored".into()))?;
                let value = self.ops().scalar(self.get().dtype(), number);
                view.start("aten::index_put_").positional(tensors).positional(value)
            }
            (false, value) => view.start("aten::index_put_").positional(tensors).positional(value),
        };
        call.call().map(drop)
    }

    /// Returns the view that all indices except tensors select, and the index tensors for the dimensions of the view.
    #[track_caller]
    fn view_at(&self, indices: Vec<Index>) -> Result<(Var, Vec<Arg<'static>>)> {
        let used = indices
            .iter()
            .filter(|i| !matches!(i, Index::Ellipsis | Index::NewAxis))
            .map(|i| match i {
                // A mask indexes as many dimensions as it has.
                Index::Tensor(var) if var.get().dtype() == DType::Bool => var.get().dim(),
                _ => 1,
            });
        let left = self.get().dim().checked_sub(used.sum());
        let left =
            left.ok_or_else(|| Error::Call(format!("too many indices for tensor of dimension {}", self.get().dim())))?;
        let mut view = self.clone();
        let mut tensors: Vec<Arg<'static>> = Vec::new();
        let mut dim: i64 = 0;
        for index in indices {
            match index {
                Index::At(at) => {
                    view = view.start("aten::select").positional(dim).positional(at).call()?;
                    continue;
                }
                Index::Slice(start, end, step) => {
                    // PyTorch's tracer writes both bounds.
                    let (start, end) = (
                        start.unwrap_or_else(|| 0i64.into()),
                        end.unwrap_or_else(|| i64::MAX.into()),
                    );
                    let call = view.start("aten::slice").positional(dim).positional(start);
                    view = call.positional(end).positional(step).call()?;
                }
                Index::NewAxis => view = view.start("aten::unsqueeze").positional(dim).call()?,
                Index::Ellipsis => {
                    dim += left as i64;
                    continue;
                }
                Index::Tensor(var) => {
                    tensors.resize(dim as usize, Arg::NONE);
                    let taken = if var.get().dtype() == DType::Bool {
                        var.get().dim()
                    } else {
                        1
                    };
                    dim += taken as i64;
                    tensors.push(var.into());
                    continue;
                }
            }
            dim += 1;
        }
        Ok((view, tensors))
    }
}
