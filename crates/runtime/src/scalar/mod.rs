//! A Python number: what TorchScript calls `Scalar`.

pub mod promote;

use crate::error::TensorError;
use crate::scalar::promote::real_of;
use frazil_ir::DType;
use half::{bf16, f16};
use num_complex::Complex;

/// A number with its Python type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// A `bool`.
    Bool(bool),
    /// An `int`.
    Int(i64),
    /// A `float`.
    Float(f64),
    /// A `complex`.
    Complex(Complex<f64>),
}

impl Scalar {
    /// Returns the number as a `float`. For a complex number it is the real part, as in PyTorch's unchecked conversion.
    pub fn as_f64(self) -> f64 {
        match self {
            Scalar::Bool(b) => f64::from(u8::from(b)),
            Scalar::Int(i) => i as f64,
            Scalar::Float(f) => f,
            Scalar::Complex(c) => c.re,
        }
    }

    /// Returns the number as an `int`, truncated towards zero.
    pub fn as_i64(self) -> i64 {
        match self {
            Scalar::Bool(b) => i64::from(b),
            Scalar::Int(i) => i,
            Scalar::Float(f) => f as i64,
            Scalar::Complex(c) => c.re as i64,
        }
    }

    /// Returns the number as a `complex`.
    pub fn as_complex(self) -> Complex<f64> {
        match self {
            Scalar::Complex(c) => c,
            other => Complex::new(other.as_f64(), 0.0),
        }
    }

    /// Returns the number as a `bool`: whether it differs from zero.
    pub fn as_bool(self) -> bool {
        match self {
            Scalar::Bool(b) => b,
            Scalar::Int(i) => i != 0,
            Scalar::Float(f) => f != 0.0,
            Scalar::Complex(c) => c != Complex::ZERO,
        }
    }

    /// Returns the scalar rounded to `dtype` if that is f16 or bf16, otherwise unchanged.
    pub fn rounded_to(self, dtype: DType) -> Scalar {
        let round = |x: f64| match dtype {
            DType::Half | DType::ComplexHalf => f16::from_f32(x as f32).to_f64(),
            DType::BFloat16 => bf16::from_f32(x as f32).to_f64(),
            _ => x,
        };
        match (self, dtype) {
            (_, DType::Half | DType::BFloat16 | DType::ComplexHalf) => match self {
                Scalar::Complex(c) => Scalar::Complex(Complex::new(round(c.re), round(c.im))),
                other => Scalar::Float(round(other.as_f64())),
            },
            _ => self,
        }
    }

    /// Returns the number itself if it is in the range of `dtype`, as PyTorch checks for conversions of numbers to an element type. Infinities and NaN are in
    /// the range of floats, negative integers wrap around in unsigned types, and every number converts to bool.
    ///
    /// # Errors
    /// [`TensorError::Overflow`] for a number out of range.
    pub fn checked_to(self, dtype: DType) -> Result<Scalar, TensorError> {
        match self.fits(dtype) {
            true => Ok(self),
            false => Err(TensorError::Overflow(c_name(dtype))),
        }
    }

    /// Checks a number as [`Scalar::checked_to`] does, for filling a whole tensor of sizes `sizes`. As in PyTorch, a single f16 or bf16 element is not checked.
    ///
    /// # Errors
    /// See [`Scalar::checked_to`].
    pub fn checked_fill(self, dtype: DType, sizes: &[i64]) -> Result<Scalar, TensorError> {
        match dtype {
            DType::Half | DType::BFloat16 if sizes.iter().all(|&n| n == 1) => Ok(self),
            _ => self.checked_to(dtype),
        }
    }

    fn fits(self, dtype: DType) -> bool {
        match (self, dtype) {
            (Scalar::Bool(_), _) | (_, DType::Bool | DType::ComplexHalf) => true,
            (Scalar::Complex(c), DType::ComplexFloat | DType::ComplexDouble) => {
                let part = real_of(dtype);
                Scalar::Float(c.re).fits(part) && Scalar::Float(c.im).fits(part)
            }
            (Scalar::Complex(c), _) => c.im == 0.0 && Scalar::Float(c.re).fits(dtype),
            (Scalar::Int(i), _) => match integers(dtype) {
                Some((0, largest)) => (-largest..=largest).contains(&i),
                Some((least, largest)) => (least..=largest).contains(&i),
                None => (i as f64).abs() <= largest_float(dtype),
            },
            (Scalar::Float(f), _) => match integers(dtype) {
                // Cut off towards zero at the upper end only. The largest integer plus one is a float, which that integer may not be.
                Some((least, largest)) => f >= least as f64 && f < (i128::from(largest) + 1) as f64,
                None => !f.is_finite() || f.abs() <= largest_float(dtype),
            },
        }
    }

    /// Returns the dtype of a tensor created from this number without a given dtype (default float type: `Float`).
    pub fn default_dtype(self) -> DType {
        match self {
            Scalar::Bool(_) => DType::Bool,
            Scalar::Int(_) => DType::Long,
            Scalar::Float(_) => DType::Float,
            Scalar::Complex(_) => DType::ComplexFloat,
        }
    }
}

/// Returns the smallest and the largest number of an integer dtype.
fn integers(dtype: DType) -> Option<(i64, i64)> {
    Some(match dtype {
        DType::Byte => (0, 255),
        DType::Char => (i64::from(i8::MIN), i64::from(i8::MAX)),
        DType::Short => (i64::from(i16::MIN), i64::from(i16::MAX)),
        DType::Int => (i64::from(i32::MIN), i64::from(i32::MAX)),
        DType::Long => (i64::MIN, i64::MAX),
        _ => return None,
    })
}

/// Returns the largest finite number of a float dtype, or of the parts of a complex dtype.
fn largest_float(dtype: DType) -> f64 {
    match real_of(dtype) {
        DType::Half => f16::MAX.to_f64(),
        DType::BFloat16 => bf16::MAX.to_f64(),
        DType::Float => f64::from(f32::MAX),
        _ => f64::MAX,
    }
}

/// Returns the C++ name of the element type, as in PyTorch's messages.
fn c_name(dtype: DType) -> &'static str {
    match dtype {
        DType::Byte => "uint8_t",
        DType::Char => "int8_t",
        DType::Short => "int16_t",
        DType::Int => "int",
        DType::Long => "int64_t",
        DType::Half => "c10::Half",
        DType::BFloat16 => "c10::BFloat16",
        DType::Float => "float",
        DType::ComplexHalf => "c10::complex<c10::Half>",
        DType::ComplexFloat => "c10::complex<float>",
        DType::ComplexDouble => "c10::complex<double>",
        _ => "double",
    }
}

impl From<bool> for Scalar {
    fn from(b: bool) -> Scalar {
        Scalar::Bool(b)
    }
}

impl From<i64> for Scalar {
    fn from(i: i64) -> Scalar {
        Scalar::Int(i)
    }
}

impl From<f64> for Scalar {
    fn from(f: f64) -> Scalar {
        Scalar::Float(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected errors are those of torch.full([2], value, dtype=dtype).
    #[test]
    fn conversions_are_checked_as_pytorchs() {
        use DType::*;
        let takes = |value: Scalar, dtype| value.checked_to(dtype).is_ok();
        for (dtype, value) in [
            (Byte, 255.5),
            (Char, 127.5),
            (Int, 2_147_483_647.5),
            (Long, -(2f64.powi(63))),
        ] {
            assert!(takes(value.into(), dtype), "{value} {dtype:?}");
        }
        for (dtype, value) in [
            (Byte, 256.0),
            (Byte, -0.5),
            (Char, -128.5),
            (Long, 2f64.powi(63)),
            (Int, f64::NAN),
        ] {
            assert!(!takes(value.into(), dtype), "{value} {dtype:?}");
        }
        for (dtype, value) in [
            (Half, 65504.0),
            (BFloat16, 3.3895e38),
            (Float, f64::INFINITY),
            (Half, f64::NAN),
        ] {
            assert!(takes(value.into(), dtype), "{value} {dtype:?}");
        }
        for (dtype, value) in [
            (Half, 65504.5),
            (BFloat16, 3.39e38),
            (Float, 3.402_823_5e38),
            (ComplexFloat, 1e300),
        ] {
            assert!(!takes(value.into(), dtype), "{value} {dtype:?}");
        }
        assert!(takes(Scalar::Int(-255), Byte) && !takes(Scalar::Int(-256), Byte) && takes(Scalar::Int(300), Bool));
        assert!(!takes(Scalar::Int(65505), Half) && takes(Scalar::Int(i64::MAX), Float));
        assert!(!takes(Scalar::Complex(Complex::new(1.0, 1.0)), Double));
        assert!(
            Scalar::Float(1e30).checked_fill(Half, &[1]).is_ok()
                && Scalar::Float(1e30).checked_fill(Half, &[2]).is_err()
        );
        assert_eq!(Scalar::Int(300).checked_to(Byte), Err(TensorError::Overflow("uint8_t")));
    }
}
