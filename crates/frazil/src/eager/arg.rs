//! Arguments of operator calls: tensors, numbers, lists of these, and other values.

use super::Var;
use frazil_ir::{DType, Device};
use frazil_runtime::value::TensorCell;
use frazil_runtime::{Scalar, Value};

/// An argument as the caller passes it. It is converted as the operator's schema requires.
///
/// ```
/// use frazil::{Session, Tensor, eager::Arg};
///
/// # let ops = Session::new().eager();
/// let x = ops.var(Tensor::from_f32(&[1.0, 5.0], &[2])?);
/// let low = x.clamp().max(3).call()?; // whatever has a conversion: numbers, tensors, lists, dtypes, devices, strings
/// assert_eq!(x.clamp().min(&low).max(Arg::NONE).call()?.to_vec(), [1.0, 5.0]);
/// # Ok::<(), frazil::Error>(())
/// ```
#[derive(Clone, Debug)]
pub enum Arg<'a> {
    /// A tensor variable, borrowed from the caller.
    Borrowed(&'a Var),
    /// An owned tensor variable.
    Var(Var),
    /// A number, string, device, `None`, or any other value that is not a tensor or list.
    Value(Value),
    /// A list of arguments.
    List(Vec<Arg<'a>>),
}

impl Arg<'_> {
    /// The value `None` for an optional argument that is not passed.
    ///
    /// See [`Arg`] for an example.
    pub const NONE: Arg<'static> = Arg::Value(Value::None);

    /// Returns the tensor variable, if the argument is one.
    pub(crate) fn as_cell(&self) -> Option<&TensorCell> {
        match self {
            Arg::Borrowed(var) => Some(var.cell()),
            Arg::Var(var) => Some(var.cell()),
            Arg::Value(Value::Tensor(cell)) => Some(cell),
            Arg::Value(_) | Arg::List(_) => None,
        }
    }
}

impl From<Var> for Arg<'_> {
    fn from(var: Var) -> Self {
        Arg::Var(var)
    }
}

impl<'a> From<&'a Var> for Arg<'a> {
    fn from(var: &'a Var) -> Self {
        Arg::Borrowed(var)
    }
}

impl<'a> From<&Arg<'a>> for Arg<'a> {
    fn from(arg: &Arg<'a>) -> Self {
        arg.clone()
    }
}

impl From<DType> for Arg<'_> {
    /// Converts a dtype to PyTorch's integer code, which schemas use for dtypes.
    fn from(dtype: DType) -> Self {
        Arg::Value(Value::Int(dtype.code()))
    }
}

impl From<Device> for Arg<'_> {
    fn from(device: Device) -> Self {
        Arg::Value(Value::Device(device))
    }
}

impl From<&str> for Arg<'_> {
    fn from(text: &str) -> Self {
        Arg::Value(Value::str(text))
    }
}

impl From<i32> for Arg<'_> {
    fn from(i: i32) -> Self {
        Arg::Value(Value::Int(i64::from(i)))
    }
}

impl From<f32> for Arg<'_> {
    fn from(f: f32) -> Self {
        Arg::Value(Value::Float(f64::from(f)))
    }
}

macro_rules! values {
    ($($ty:ty)*) => {$(
        impl From<$ty> for Arg<'_> {
            fn from(value: $ty) -> Self {
                Arg::Value(value.into())
            }
        }
    )*};
}

values! { bool i64 f64 Scalar Value }

impl<'a, T: Into<Arg<'a>>> From<Option<T>> for Arg<'a> {
    fn from(arg: Option<T>) -> Self {
        arg.map_or(Arg::NONE, Into::into)
    }
}

impl<'a, T: Into<Arg<'a>>> From<Vec<T>> for Arg<'a> {
    fn from(items: Vec<T>) -> Self {
        Arg::List(items.into_iter().map(Into::into).collect())
    }
}

impl<'a, T: Into<Arg<'a>>, const N: usize> From<[T; N]> for Arg<'a> {
    fn from(items: [T; N]) -> Self {
        Arg::List(items.into_iter().map(Into::into).collect())
    }
}

impl<'a, T: Clone + Into<Arg<'a>>> From<&[T]> for Arg<'a> {
    fn from(items: &[T]) -> Self {
        items.to_vec().into()
    }
}
