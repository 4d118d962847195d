//! A Python number: what TorchScript calls `Scalar`.

use frazil_ir::DType;
use half::{bf16, f16};
use num_complex::Complex;

/// A number with the type that Python gave it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// `bool`
    Bool(bool),
    /// `int`
    Int(i64),
    /// `float`
    Float(f64),
    /// `complex`
    Complex(Complex<f64>),
}

impl Scalar {
    /// As `float`; a complex number gives its real part, as PyTorch's unchecked conversion does.
    pub fn as_f64(self) -> f64 {
        match self {
            Scalar::Bool(b) => f64::from(u8::from(b)),
            Scalar::Int(i) => i as f64,
            Scalar::Float(f) => f,
            Scalar::Complex(c) => c.re,
        }
    }

    /// As `int`, truncating towards zero.
    pub fn as_i64(self) -> i64 {
        match self {
            Scalar::Bool(b) => i64::from(b),
            Scalar::Int(i) => i,
            Scalar::Float(f) => f as i64,
            Scalar::Complex(c) => c.re as i64,
        }
    }

    /// As `complex`.
    pub fn as_complex(self) -> Complex<f64> {
        match self {
            Scalar::Complex(c) => c,
            other => Complex::new(other.as_f64(), 0.0),
        }
    }

    /// As `bool`: different from zero.
    pub fn as_bool(self) -> bool {
        match self {
            Scalar::Bool(b) => b,
            Scalar::Int(i) => i != 0,
            Scalar::Float(f) => f != 0.0,
            Scalar::Complex(c) => c != Complex::ZERO,
        }
    }

    /// The value that this scalar has as an element of a tensor of dtype f16 or bf16; for other dtypes the scalar as it is.
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

    /// The dtype of a tensor made from this number when nothing else is asked for (default float type: `Float`).
    pub fn default_dtype(self) -> DType {
        match self {
            Scalar::Bool(_) => DType::Bool,
            Scalar::Int(_) => DType::Long,
            Scalar::Float(_) => DType::Float,
            Scalar::Complex(_) => DType::ComplexFloat,
        }
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
