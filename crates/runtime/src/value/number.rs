//! The kinds of Python's real numbers, and the tensors without dimensions that hold them in Python's precision.

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
    /// The dtype of the tensor that holds such a number.
    pub fn dtype(self) -> DType {
        match self {
            NumberKind::Bool => DType::Bool,
            NumberKind::Int => DType::Long,
            NumberKind::Float => DType::Double,
        }
    }

    /// The kind of a value; `None` for values that are no real numbers.
    pub fn of_value(value: &Value) -> Option<NumberKind> {
        match value {
            Value::Bool(_) => Some(NumberKind::Bool),
            Value::Int(_) => Some(NumberKind::Int),
            Value::Float(_) => Some(NumberKind::Float),
            _ => None,
        }
    }

    /// The kind of the number that `item()` reads from a tensor of this dtype; `None` for complex ones.
    pub fn of_dtype(dtype: DType) -> Option<NumberKind> {
        match dtype {
            DType::Bool => Some(NumberKind::Bool),
            d if d.is_integral() => Some(NumberKind::Int),
            d if d.is_floating_point() => Some(NumberKind::Float),
            _ => None,
        }
    }
}
