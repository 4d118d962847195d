//! The kinds of Python's real numbers, and the zero-dimensional tensors that represent such numbers with Python's precision.

use crate::value::Value;
use frazil_ir::DType;

/// The types of real numbers, in the order of promotion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NumberKind {
    /// A `bool`.
    Bool,
    /// An `int`: 64 bits.
    Int,
    /// A `float`: 64 bits.
    Float,
}

impl NumberKind {
    /// Returns the dtype of the zero-dimensional tensor that represents a number of this kind.
    pub fn dtype(self) -> DType {
        match self {
            NumberKind::Bool => DType::Bool,
            NumberKind::Int => DType::Long,
            NumberKind::Float => DType::Double,
        }
    }

    /// Returns the kind of a real number; `None` for any other value.
    pub fn of_value(value: &Value) -> Option<NumberKind> {
        match value {
            Value::Bool(_) => Some(NumberKind::Bool),
            Value::Int(_) => Some(NumberKind::Int),
            Value::Float(_) => Some(NumberKind::Float),
            _ => None,
        }
    }

    /// Returns the kind of the number that `item()` returns for a tensor of this dtype; `None` for complex dtypes.
    pub fn of_dtype(dtype: DType) -> Option<NumberKind> {
        match dtype {
            DType::Bool => Some(NumberKind::Bool),
            d if d.is_integral() => Some(NumberKind::Int),
            d if d.is_floating_point() => Some(NumberKind::Float),
            _ => None,
        }
    }
}
