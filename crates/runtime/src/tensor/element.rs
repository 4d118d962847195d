//! Representations of elements in memory and in lanes, per dtype.
//!
//! Kernels compute in only four kinds of lanes: `f32` (for `Half`, `BFloat16` and `Float`), `f64`, `i64` (all integers and `Bool`) and `Complex<f64>` (all
//! complex dtypes). [`Element`] converts between memory and lanes; [`with_element!`] turns a dtype known at run time into a type parameter.

use crate::tensor::lanes::Lane;
use bytemuck::Pod;
use frazil_ir::DType;
use half::{bf16, f16};
use num_complex::Complex;

/// A dtype as a Rust type: the representations of its elements in memory and in lanes.
pub trait Element: 'static {
    /// The representation in memory.
    type Raw: Pod + Send + Sync;
    /// The representation in registers of the expression evaluator.
    type Lane: Lane;
    /// The dtype.
    const DTYPE: DType;

    /// Converts an element from memory to lane, exactly.
    fn load(raw: Self::Raw) -> Self::Lane;
    /// Converts an element from lane to memory: rounds floats, wraps integers.
    fn store(lane: Self::Lane) -> Self::Raw;
}

macro_rules! elements {
    ($($name:ident: $raw:ty, $lane:ty, $dtype:ident, |$l:ident| $load:expr, |$s:ident| $store:expr;)*) => {$(
        #[doc = concat!("Elements of dtype `", stringify!($dtype), "`.")]
        pub struct $name;
        impl Element for $name {
            type Raw = $raw;
            type Lane = $lane;
            const DTYPE: DType = DType::$dtype;
            #[inline(always)]
            fn load($l: $raw) -> $lane { $load }
            #[inline(always)]
            fn store($s: $lane) -> $raw { $store }
        }
    )*};
}

elements! {
    ByteElement: u8, i64, Byte, |x| i64::from(x), |x| x as u8;
    CharElement: i8, i64, Char, |x| i64::from(x), |x| x as i8;
    ShortElement: i16, i64, Short, |x| i64::from(x), |x| x as i16;
    IntElement: i32, i64, Int, |x| i64::from(x), |x| x as i32;
    LongElement: i64, i64, Long, |x| x, |x| x;
    // Archives are untrusted: a Bool byte may be anything, and anything but zero is true.
    BoolElement: u8, i64, Bool, |x| i64::from(x != 0), |x| u8::from(x != 0);
    HalfElement: f16, f32, Half, |x| x.to_f32(), |x| f16::from_f32(x);
    BFloat16Element: bf16, f32, BFloat16, |x| x.to_f32(), |x| bf16::from_f32(x);
    FloatElement: f32, f32, Float, |x| x, |x| x;
    DoubleElement: f64, f64, Double, |x| x, |x| x;
    ComplexHalfElement: Complex<f16>, Complex<f64>, ComplexHalf, |x| Complex::new(x.re.to_f64(), x.im.to_f64()),
        |x| Complex::new(f16::from_f64(x.re), f16::from_f64(x.im));
    ComplexFloatElement: Complex<f32>, Complex<f64>, ComplexFloat, |x| Complex::new(f64::from(x.re), f64::from(x.im)),
        |x| Complex::new(x.re as f32, x.im as f32);
    ComplexDoubleElement: Complex<f64>, Complex<f64>, ComplexDouble, |x| x, |x| x;
}

/// Evaluates an expression with `$t` as the [`Element`] of a dtype known at run time. Quantised dtypes are treated as their underlying integers.
macro_rules! with_element {
    ($dtype:expr, $t:ident => $body:expr) => {{
        use ::frazil_ir::DType;
        match $dtype {
            DType::Byte | DType::QUInt8 => {
                type $t = $crate::tensor::element::ByteElement;
                $body
            }
            DType::Char | DType::QInt8 => {
                type $t = $crate::tensor::element::CharElement;
                $body
            }
            DType::Short => {
                type $t = $crate::tensor::element::ShortElement;
                $body
            }
            DType::Int | DType::QInt32 => {
                type $t = $crate::tensor::element::IntElement;
                $body
            }
            DType::Long => {
                type $t = $crate::tensor::element::LongElement;
                $body
            }
            DType::Bool => {
                type $t = $crate::tensor::element::BoolElement;
                $body
            }
            DType::Half => {
                type $t = $crate::tensor::element::HalfElement;
                $body
            }
            DType::BFloat16 => {
                type $t = $crate::tensor::element::BFloat16Element;
                $body
            }
            DType::Float => {
                type $t = $crate::tensor::element::FloatElement;
                $body
            }
            DType::Double => {
                type $t = $crate::tensor::element::DoubleElement;
                $body
            }
            DType::ComplexHalf => {
                type $t = $crate::tensor::element::ComplexHalfElement;
                $body
            }
            DType::ComplexFloat => {
                type $t = $crate::tensor::element::ComplexFloatElement;
                $body
            }
            DType::ComplexDouble => {
                type $t = $crate::tensor::element::ComplexDoubleElement;
                $body
            }
        }
    }};
}
pub(crate) use with_element;

/// Returns the elements in `bytes`, copied only if the bytes are not aligned for `T`.
pub fn elements<T: Pod>(bytes: &[u8]) -> std::borrow::Cow<'_, [T]> {
    // A snapshot of a mapped archive may start anywhere.
    let whole = bytes.len() / size_of::<T>() * size_of::<T>();
    let bytes = &bytes[..whole];
    match bytemuck::try_cast_slice(bytes) {
        Ok(slice) => slice.into(),
        Err(_) => bytemuck::pod_collect_to_vec(bytes).into(),
    }
}
