//! What calls are given: tensors, numbers, lists of them, and the rest.

use super::Var;
use frazil_ir::{DType, Device};
use frazil_runtime::value::TensorCell;
use frazil_runtime::{Scalar, Value};

/// An argument as the caller has it; the operator's schema decides what becomes of it.
#[derive(Clone, Debug)]
pub enum Arg {
    /// A tensor variable of a function that is being traced. Others are values.
    Var(Var),
    /// A number, string, device, `None`, or a value of another kind as it is.
    Value(Value),
    /// A list.
    List(Vec<Arg>),
}

impl Arg {
    /// `None`: what an optional argument has when it has nothing.
    pub const NONE: Arg = Arg::Value(Value::None);

    /// The variable that it is, if it is a tensor.
    pub(crate) fn as_cell(&self) -> Option<&TensorCell> {
        match self {
            Arg::Var(var) => Some(var.cell()),
            Arg::Value(Value::Tensor(cell)) => Some(cell),
            Arg::Value(_) | Arg::List(_) => None,
        }
    }
}

impl From<Var> for Arg {
    fn from(var: Var) -> Arg {
        match var.ops().is_tracing() {
            true => Arg::Var(var),
            false => Arg::Value(Value::Tensor(var.into_cell())),
        }
    }
}

impl From<&Var> for Arg {
    fn from(var: &Var) -> Arg {
        match var.ops().is_tracing() {
            true => Arg::Var(var.clone()),
            false => Arg::Value(Value::Tensor(var.cell().clone())),
        }
    }
}

impl From<&Arg> for Arg {
    fn from(arg: &Arg) -> Arg {
        arg.clone()
    }
}

impl From<DType> for Arg {
    /// Schemas take dtypes by number.
    fn from(dtype: DType) -> Arg {
        Arg::Value(Value::Int(dtype.code()))
    }
}

impl From<Device> for Arg {
    fn from(device: Device) -> Arg {
        Arg::Value(Value::Device(device))
    }
}

impl From<&str> for Arg {
    fn from(text: &str) -> Arg {
        Arg::Value(Value::str(text))
    }
}

impl From<i32> for Arg {
    fn from(i: i32) -> Arg {
        Arg::Value(Value::Int(i64::from(i)))
    }
}

impl From<f32> for Arg {
    fn from(f: f32) -> Arg {
        Arg::Value(Value::Float(f64::from(f)))
    }
}

macro_rules! values {
    ($($ty:ty)*) => {$(
        impl From<$ty> for Arg {
            fn from(value: $ty) -> Arg {
                Arg::Value(value.into())
            }
        }
    )*};
}

values! { bool i64 f64 Scalar Value }

impl<T: Into<Arg>> From<Option<T>> for Arg {
    fn from(arg: Option<T>) -> Arg {
        arg.map_or(Arg::NONE, Into::into)
    }
}

impl<T: Into<Arg>> From<Vec<T>> for Arg {
    fn from(items: Vec<T>) -> Arg {
        Arg::List(items.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Arg>, const N: usize> From<[T; N]> for Arg {
    fn from(items: [T; N]) -> Arg {
        Arg::List(items.into_iter().map(Into::into).collect())
    }
}

impl<T: Clone + Into<Arg>> From<&[T]> for Arg {
    fn from(items: &[T]) -> Arg {
        items.to_vec().into()
    }
}
