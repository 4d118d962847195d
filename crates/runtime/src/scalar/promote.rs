//! Type promotion: the common dtype of an operator's operands.

use crate::scalar::Scalar;
use frazil_ir::DType;
pub use frazil_ir::promotion::{complex_of, promote_types, real_of};

/// The operands so far, by priority: tensors with dimensions, zero-dimensional tensors, Python numbers. A category of lower priority only counts if it is of a
/// higher kind (integer < float < complex).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ResultType {
    dims: Option<DType>,
    zero_dim: Option<DType>,
    wrapped: Option<DType>,
}

impl ResultType {
    /// Returns the promotion state without any operands.
    pub fn new() -> ResultType {
        ResultType::default()
    }

    /// Adds a tensor operand.
    pub fn tensor(mut self, dtype: DType, rank: usize) -> ResultType {
        let slot = if rank > 0 { &mut self.dims } else { &mut self.zero_dim };
        *slot = Some(slot.map_or(dtype, |d| promote_types(d, dtype)));
        self
    }

    /// Adds a number operand.
    pub fn scalar(mut self, value: Scalar) -> ResultType {
        let dtype = value.default_dtype();
        self.wrapped = Some(self.wrapped.map_or(dtype, |d| promote_types(d, dtype)));
        self
    }

    /// Returns the common dtype of the operands; `None` if there are none.
    pub fn dtype(self) -> Option<DType> {
        combine(self.dims, combine(self.zero_dim, self.wrapped))
    }
}

fn combine(higher: Option<DType>, lower: Option<DType>) -> Option<DType> {
    let (Some(h), Some(l)) = (higher, lower) else {
        return higher.or(lower);
    };
    Some(if h.is_complex() {
        h
    } else if h.is_floating_point() {
        if l.is_complex() { complex_of(h) } else { h }
    } else if h == DType::Bool || l.is_floating_point() || l.is_complex() {
        promote_types(h, l)
    } else {
        h
    })
}

/// Returns true if an in-place operator may write a result of dtype `from` into a tensor of dtype `to`. The kind
/// (integer, float, complex) must not become lower.
pub fn can_cast(from: DType, to: DType) -> bool {
    if from.is_complex() && !to.is_complex() {
        return false;
    }
    if from.is_floating_point() && to != DType::Bool && !(to.is_floating_point() || to.is_complex()) {
        return false;
    }
    from == DType::Bool || to != DType::Bool
}

/// Returns the dtype in which a pointwise function of operands of `dtype` is computed: `Float` for f16 and bf16.
pub fn compute_dtype(dtype: DType) -> DType {
    match dtype {
        DType::Half | DType::BFloat16 => DType::Float,
        DType::ComplexHalf => DType::ComplexFloat,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_torch_promote_types() {
        use DType::*;
        for (a, b, want) in [
            (Byte, Char, Short),
            (Byte, Short, Short),
            (Byte, Long, Long),
            (Char, Int, Int),
            (Bool, Byte, Byte),
            (Long, Half, Half),
            (Half, BFloat16, Float),
            (Double, Half, Double),
            (Long, ComplexFloat, ComplexFloat),
            (Double, ComplexFloat, ComplexDouble),
            (Half, ComplexFloat, ComplexFloat),
            (Half, ComplexHalf, ComplexHalf),
            (BFloat16, ComplexHalf, ComplexFloat),
        ] {
            assert_eq!(promote_types(a, b), want, "{a:?} {b:?}");
            assert_eq!(promote_types(b, a), want, "{b:?} {a:?}");
        }
    }

    #[test]
    fn categories_of_torch_result_type() {
        use DType::*;
        let r = ResultType::new;
        assert_eq!(r().tensor(Int, 1).scalar(Scalar::Int(1)).dtype(), Some(Int));
        assert_eq!(r().tensor(Int, 1).scalar(Scalar::Float(1.0)).dtype(), Some(Float));
        assert_eq!(r().tensor(Half, 1).tensor(Double, 0).dtype(), Some(Half));
        assert_eq!(r().tensor(Bool, 1).tensor(Int, 0).dtype(), Some(Int));
        assert_eq!(r().tensor(Int, 2).tensor(Long, 0).dtype(), Some(Int));
        assert_eq!(r().tensor(Int, 0).scalar(Scalar::Float(1.0)).dtype(), Some(Float));
        assert_eq!(
            r().tensor(Double, 1).scalar(Scalar::Complex(1.0.into())).dtype(),
            Some(ComplexDouble)
        );
        assert!(
            !can_cast(Float, Long) && can_cast(Long, Float) && !can_cast(Long, Bool) && !can_cast(ComplexFloat, Float)
        );
    }
}
