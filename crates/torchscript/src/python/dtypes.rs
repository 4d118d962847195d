//! Dtypes of tensors that constructors compute: rounding, promotion, representation as bytes.

use frazil_ir::DType;
use frazil_ir::promotion::real_of;
use half::{bf16, f16};

/// Maximum magnitude of an integer that is exact in a double. 2^53 is excluded because 2^53 + 1 rounds to it.
pub(super) const MAX_EXACT: f64 = ((1i64 << 53) - 1) as f64;

/// Returns whether constructors can create tensors of the dtype `dtype`.
pub(super) fn is_known(dtype: DType) -> bool {
    !dtype.is_quantized()
}

/// Returns the smallest and the largest value of an integer dtype of less than 64 bits.
pub(super) fn bounds(dtype: DType) -> Option<(f64, f64)> {
    Some(match dtype {
        DType::Byte => (0.0, 255.0),
        DType::Char => (-128.0, 127.0),
        DType::Short => (-32_768.0, 32_767.0),
        DType::Int => (f64::from(i32::MIN), f64::from(i32::MAX)),
        _ => return None,
    })
}

/// Returns the nearest value of `dtype`, or of one part of a complex `dtype`. `None` for integers that are out of range or not exact in a double.
pub(super) fn rounded(dtype: DType, x: f64) -> Option<f64> {
    if let Some((least, greatest)) = bounds(dtype) {
        return (least..=greatest).contains(&x.trunc()).then_some(x.trunc() + 0.0);
    }
    Some(match dtype {
        DType::Float | DType::ComplexFloat => f64::from(x as f32),
        DType::Double | DType::ComplexDouble => x,
        // PyTorch computes in single precision.
        DType::Half | DType::ComplexHalf => f16::from_f32(x as f32).to_f64(),
        DType::BFloat16 => bf16::from_f32(x as f32).to_f64(),
        DType::Bool => f64::from(u8::from(x != 0.0)),
        _ if x.abs() <= MAX_EXACT => x.trunc() + 0.0,
        _ => return None,
    })
}

/// Returns the low bits of `x`: the element of an integer `dtype` after an out-of-range conversion.
pub(super) fn wrapped(dtype: DType, x: f64) -> f64 {
    if !x.is_finite() || x.abs() > MAX_EXACT {
        return x;
    }
    let whole = x as i64;
    match dtype {
        DType::Byte => f64::from(whole as u8),
        DType::Char => f64::from(whole as i8),
        DType::Short => f64::from(whole as i16),
        DType::Int => f64::from(whole as i32),
        _ => x,
    }
}

/// Appends the bytes of an element of `dtype`, or of one part of a complex element.
pub(super) fn append(bytes: &mut Vec<u8>, dtype: DType, x: f64) {
    match real_of(dtype) {
        DType::Float => bytes.extend_from_slice(&(x as f32).to_le_bytes()),
        DType::Double => bytes.extend_from_slice(&x.to_le_bytes()),
        DType::Half => bytes.extend_from_slice(&f16::from_f64(x).to_le_bytes()),
        DType::BFloat16 => bytes.extend_from_slice(&bf16::from_f64(x).to_le_bytes()),
        DType::Long => bytes.extend_from_slice(&(x as i64).to_le_bytes()),
        DType::Int => bytes.extend_from_slice(&(x as i32).to_le_bytes()),
        DType::Short => bytes.extend_from_slice(&(x as i16).to_le_bytes()),
        DType::Char => bytes.extend_from_slice(&(x as i8).to_le_bytes()),
        DType::Byte => bytes.push(x as u8),
        _ => bytes.push(u8::from(x != 0.0)),
    }
}
