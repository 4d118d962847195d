//! Promotion of dtypes: the common dtype of two, and the dtypes of complex numbers and their real and imaginary parts.

use crate::DType;

/// Returns the dtype to which two dtypes are promoted, by PyTorch's table (`torch.promote_types`).
pub fn promote_types(a: DType, b: DType) -> DType {
    use DType::{BFloat16, Bool, Byte, ComplexDouble, ComplexFloat, ComplexHalf, Float, Half};
    if a == b {
        return a;
    }
    let (a, b) = (unquantized(a), unquantized(b));
    match (a, b) {
        (Bool, x) | (x, Bool) => x,
        _ if a.is_complex() || b.is_complex() => {
            // The complex dtype whose components represent both.
            match promote_types(real_of(a), real_of(b)) {
                DType::Double => ComplexDouble,
                Half if a == ComplexHalf || b == ComplexHalf => ComplexHalf,
                _ => ComplexFloat,
            }
        }
        (x, y) if x.is_floating_point() && y.is_floating_point() => match (x, y) {
            (Half, BFloat16) | (BFloat16, Half) => Float,
            _ if x.size() >= y.size() => x,
            _ => y,
        },
        (x, _) if x.is_floating_point() => x,
        (_, y) if y.is_floating_point() => y,
        // An unsigned byte needs the next wider signed integer.
        (Byte, y) => {
            if y.size() > 1 {
                y
            } else {
                DType::Short
            }
        }
        (x, Byte) => {
            if x.size() > 1 {
                x
            } else {
                DType::Short
            }
        }
        (x, y) => {
            if x.size() >= y.size() {
                x
            } else {
                y
            }
        }
    }
}

fn unquantized(d: DType) -> DType {
    match d {
        DType::QInt8 => DType::Char,
        DType::QUInt8 => DType::Byte,
        DType::QInt32 => DType::Int,
        other => other,
    }
}

/// Returns the dtype of the real and imaginary parts of a complex dtype; a real dtype unchanged.
pub fn real_of(d: DType) -> DType {
    match d {
        DType::ComplexHalf => DType::Half,
        DType::ComplexFloat => DType::Float,
        DType::ComplexDouble => DType::Double,
        other => other,
    }
}

/// Returns the complex dtype whose parts have dtype `d` (the default float dtype for integers).
pub fn complex_of(d: DType) -> DType {
    match d {
        DType::Half => DType::ComplexHalf,
        DType::Double => DType::ComplexDouble,
        d if d.is_complex() => d,
        _ => DType::ComplexFloat,
    }
}
