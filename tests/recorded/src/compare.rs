//! Comparison of results.
//!
//! Kinds, dtypes and shapes must be the same. Integers, bools and strings must be equal. Floating-point numbers may differ by
//! `atol + rtol * |want|`; NaN equals NaN, and infinities only equal themselves. A call that should raise must raise. If the program itself raised, the
//! text must contain the recorded one. Strides and the declared element types of containers are not compared.

use frazil_ir::DType;
use frazil_runtime::Tensor;
use frazil_runtime::value::{DictValue, Value};
use half::{bf16, f16};

use crate::value::{Outcome, kind};

/// The tolerance for floating-point numbers in a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Tolerance relative to the expected number.
    pub rtol: f64,
    /// Absolute tolerance, which is added to the relative one.
    pub atol: f64,
    /// The tolerance, relative and absolute, for 16-bit elements, if it differs.
    pub half: Option<f64>,
}

impl Tolerance {
    /// No tolerance: numbers must be equal.
    pub const EXACT: Tolerance = Tolerance::new(0.0, 0.0);

    /// Returns the tolerance with these values for all dtypes.
    pub const fn new(rtol: f64, atol: f64) -> Tolerance {
        Tolerance { rtol, atol, half: None }
    }

    /// Returns the same tolerance, except `half` for 16-bit elements.
    pub const fn with_half(self, half: f64) -> Tolerance {
        Tolerance {
            half: Some(half),
            ..self
        }
    }

    fn of(self, dtype: DType) -> Tolerance {
        match (self.half, dtype) {
            (Some(half), DType::Half | DType::BFloat16) => Tolerance::new(half, half),
            _ => self,
        }
    }

    fn allows(self, want: f64, got: f64) -> bool {
        // Equality first: the difference of equal infinities is NaN.
        want == got
            || (want.is_nan() && got.is_nan())
            || (want.is_finite() && (want - got).abs() <= self.atol + self.rtol * want.abs())
    }

    fn allows_complex(self, want: [f64; 2], got: [f64; 2]) -> bool {
        if want[1] == 0.0 && got[1] == 0.0 {
            return self.allows(want[0], got[0]);
        }
        let magnitude = want[0].hypot(want[1]);
        let distance = (want[0] - got[0]).hypot(want[1] - got[1]);
        distance <= self.atol + self.rtol * magnitude || (self.allows(want[0], got[0]) && self.allows(want[1], got[1]))
    }
}

/// A difference between two results.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{place}: {what}")]
pub struct Mismatch {
    /// The path to the differing part, such as `result[1]["mean"]`.
    pub place: String,
    /// A description of the expected and the actual value.
    pub what: String,
}

fn mismatch(place: &str, what: String) -> Mismatch {
    Mismatch {
        place: place.to_owned(),
        what,
    }
}

/// Compares the actual outcome of a call with the expected outcome.
///
/// # Errors
/// The first difference.
pub fn outcomes(want: &Outcome, got: &Outcome, tolerance: Tolerance) -> Result<(), Mismatch> {
    match (want, got) {
        (Outcome::Value(want), Outcome::Value(got)) => values(want, got, tolerance),
        (Outcome::Raises { text, user }, Outcome::Raises { text: got, .. }) => {
            if *user && !got.contains(text) {
                return Err(mismatch("exception", format!("{got:?} instead of {text:?}")));
            }
            Ok(())
        }
        (Outcome::Raises { text, .. }, Outcome::Value(got)) => Err(mismatch(
            "result",
            format!("{} instead of the exception {text:?}", kind(got)),
        )),
        (Outcome::Value(want), Outcome::Raises { text, .. }) => Err(mismatch(
            "result",
            format!("the exception {text:?} instead of {}", kind(want)),
        )),
    }
}

/// Compares a value with the expected one.
///
/// # Errors
/// The first difference.
pub fn values(want: &Value, got: &Value, tolerance: Tolerance) -> Result<(), Mismatch> {
    values_at("result", want, got, tolerance)
}

/// Returns the largest absolute difference between two values of equal structure, over all finite floating-point numbers in them.
pub fn largest_difference(want: &Value, got: &Value) -> f64 {
    let finite = |want: f64, got: f64| {
        if want.is_finite() && got.is_finite() {
            (want - got).abs()
        } else {
            0.0
        }
    };
    match (want, got) {
        (Value::Float(want), Value::Float(got)) => finite(*want, *got),
        (Value::List(_), Value::List(_)) | (Value::Tuple(_), Value::Tuple(_)) => {
            let pairs = items(want).into_iter().zip(items(got));
            pairs
                .map(|(want, got)| largest_difference(&want, &got))
                .fold(0.0, f64::max)
        }
        (Value::Dict(want), Value::Dict(got)) => {
            let pairs = entries(want).into_iter().zip(entries(got));
            pairs
                .map(|((_, want), (_, got))| largest_difference(&want, &got))
                .fold(0.0, f64::max)
        }
        (Value::Tensor(want), Value::Tensor(got)) => {
            let (want, got) = (want.get(), got.get());
            let (Ok(a), Ok(b)) = (want.to_bytes(), got.to_bytes()) else {
                return 0.0;
            };
            if want.dtype() != got.dtype() {
                return 0.0;
            }
            let width = want.dtype().size();
            let pairs = a.chunks_exact(width).zip(b.chunks_exact(width));
            let differences = pairs.map(|(a, b)| match (numbers(want.dtype(), a), numbers(want.dtype(), b)) {
                (Some(a), Some(b)) => finite(a[0], b[0]).max(finite(a[1], b[1])),
                _ => 0.0,
            });
            differences.fold(0.0, f64::max)
        }
        _ => 0.0,
    }
}

fn items(value: &Value) -> Vec<Value> {
    value.items().unwrap_or_default()
}

fn entries(dict: &DictValue) -> Vec<(Value, Value)> {
    dict.with(|entries| entries.iter().map(|(k, v)| (k.0.clone(), v.clone())).collect())
}

fn values_at(place: &str, want: &Value, got: &Value, tolerance: Tolerance) -> Result<(), Mismatch> {
    match (want, got) {
        (Value::Tensor(want), Value::Tensor(got)) => tensors(place, &want.get(), &got.get(), tolerance),
        (Value::Float(want), Value::Float(got)) if tolerance.allows(*want, *got) => Ok(()),
        (Value::Complex(want), Value::Complex(got))
            if tolerance.allows_complex([want.re, want.im], [got.re, got.im]) =>
        {
            Ok(())
        }
        (Value::List(_), Value::List(_)) | (Value::Tuple(_), Value::Tuple(_)) => {
            let (want, got) = (items(want), items(got));
            lengths(place, want.len(), got.len())?;
            let mut pairs = want.iter().zip(&got).enumerate();
            pairs.try_for_each(|(index, (want, got))| values_at(&format!("{place}[{index}]"), want, got, tolerance))
        }
        (Value::Dict(want), Value::Dict(got)) => {
            let (want, got) = (entries(want), entries(got));
            lengths(place, want.len(), got.len())?;
            for (index, ((want_key, want), (got_key, got))) in want.iter().zip(&got).enumerate() {
                values_at(&format!("{place}'s key {index}"), want_key, got_key, tolerance)?;
                values_at(&format!("{place}[{want_key:?}]"), want, got, tolerance)?;
            }
            Ok(())
        }
        (Value::None, Value::None) => Ok(()),
        (Value::Bool(want), Value::Bool(got)) if want == got => Ok(()),
        (Value::Int(want), Value::Int(got)) if want == got => Ok(()),
        (Value::Str(want), Value::Str(got)) if want == got => Ok(()),
        (Value::Device(want), Value::Device(got)) if want == got => Ok(()),
        (want, got) if kind(want) != kind(got) => {
            Err(mismatch(place, format!("{} instead of {}", kind(got), kind(want))))
        }
        (want, got) => Err(mismatch(place, format!("{got:?} instead of {want:?}"))),
    }
}

fn lengths(place: &str, want: usize, got: usize) -> Result<(), Mismatch> {
    if want == got {
        Ok(())
    } else {
        Err(mismatch(place, format!("{got} items instead of {want}")))
    }
}

fn tensors(place: &str, want: &Tensor, got: &Tensor, tolerance: Tolerance) -> Result<(), Mismatch> {
    let dtype = want.dtype();
    if dtype != got.dtype() {
        let names = (got.dtype().python_name(), dtype.python_name());
        return Err(mismatch(place, format!("dtype {} instead of {}", names.0, names.1)));
    }
    if want.sizes() != got.sizes() {
        let what = format!("shape {:?} instead of {:?}", got.sizes(), want.sizes());
        return Err(mismatch(place, what));
    }
    let bytes = |tensor: &Tensor| tensor.to_bytes().map_err(|error| mismatch(place, error.to_string()));
    let (want_bytes, got_bytes) = (bytes(want)?, bytes(got)?);
    if want_bytes == got_bytes {
        return Ok(());
    }
    let width = dtype.size();
    let tolerance = tolerance.of(dtype);
    let pairs = || want_bytes.chunks_exact(width).zip(got_bytes.chunks_exact(width));
    let differs = |(want, got): (&[u8], &[u8])| match (numbers(dtype, want), numbers(dtype, got)) {
        (Some(want), Some(got)) => !tolerance.allows_complex(want, got),
        _ => want != got,
    };
    let Some(first) = pairs().position(differs) else {
        return Ok(());
    };
    let count = pairs().filter(|&pair| differs(pair)).count();
    let show = |bytes: &[u8]| {
        let element = bytes.chunks_exact(width).nth(first).unwrap_or_default();
        match numbers(dtype, element) {
            Some([real, 0.0]) => real.to_string(),
            Some([real, imaginary]) => format!("{real}+{imaginary}j"),
            None => integer(dtype, element).to_string(),
        }
    };
    let at = coordinates(first, want.sizes());
    let total = want_bytes.len() / width;
    Err(mismatch(
        place,
        format!(
            "{} instead of {} at {at:?}; {count} of {total} differ",
            show(&got_bytes),
            show(&want_bytes)
        ),
    ))
}

/// Returns the real and imaginary part of a floating-point or complex element. `None` for integers, which must be equal.
fn numbers(dtype: DType, bytes: &[u8]) -> Option<[f64; 2]> {
    let single = |bytes: &[u8]| Some(f64::from(f32::from_le_bytes(bytes.try_into().ok()?)));
    let double = |bytes: &[u8]| Some(f64::from_le_bytes(bytes.try_into().ok()?));
    let real = match dtype {
        DType::Half => f64::from(f16::from_le_bytes(bytes.try_into().ok()?)),
        DType::BFloat16 => f64::from(bf16::from_le_bytes(bytes.try_into().ok()?)),
        DType::Float => single(bytes)?,
        DType::Double => double(bytes)?,
        DType::ComplexFloat => return Some([single(bytes.get(..4)?)?, single(bytes.get(4..)?)?]),
        DType::ComplexDouble => return Some([double(bytes.get(..8)?)?, double(bytes.get(8..)?)?]),
        _ => return None,
    };
    Some([real, 0.0])
}

/// Returns the value of an element with an integer dtype, for messages.
fn integer(dtype: DType, bytes: &[u8]) -> i128 {
    let signed = matches!(dtype, DType::Char | DType::Short | DType::Int | DType::Long);
    let negative = signed && bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    let mut wide = [if negative { 0xff } else { 0 }; 16];
    if let Some(low) = wide.get_mut(..bytes.len()) {
        low.copy_from_slice(bytes);
    }
    i128::from_le_bytes(wide)
}

/// Returns the coordinates of the element at `index` in row-major order.
fn coordinates(mut index: usize, shape: &[i64]) -> Vec<usize> {
    let mut coordinates = vec![0; shape.len()];
    for (coordinate, &size) in coordinates.iter_mut().zip(shape).rev() {
        let size = (size as usize).max(1);
        *coordinate = index % size;
        index /= size;
    }
    coordinates
}

#[cfg(test)]
mod tests {
    use super::*;

    use frazil_ir::types;
    use frazil_runtime::value::{Key, ListValue};

    const TOLERANCE: Tolerance = Tolerance::new(1e-5, 1e-6);

    fn floats(shape: &[i64], elements: &[f32]) -> Value {
        Tensor::from_f32(elements, shape).unwrap().into()
    }

    fn longs(elements: &[i64]) -> Value {
        Tensor::from_i64(elements, &[elements.len() as i64]).unwrap().into()
    }

    fn list(items: Vec<Value>) -> Value {
        Value::List(ListValue::new(types::ANY, items))
    }

    fn compare(want: Value, got: Value) -> Result<(), String> {
        outcomes(&Outcome::Value(want), &Outcome::Value(got), TOLERANCE).map_err(|mismatch| mismatch.to_string())
    }

    fn raises(text: &str, user: bool) -> Outcome {
        Outcome::Raises {
            text: text.into(),
            user,
        }
    }

    #[test]
    fn equal_and_nearly_equal_tensors_agree() {
        assert_eq!(
            compare(floats(&[2], &[1.0, 100.0]), floats(&[2], &[1.000005, 99.9995])),
            Ok(())
        );
        assert_eq!(compare(floats(&[2], &[0.0, -0.0]), floats(&[2], &[-0.0, 0.0])), Ok(()));
        assert_eq!(compare(longs(&[1, -2]), longs(&[1, -2])), Ok(()));
    }

    #[test]
    fn a_wrong_element_differs_and_is_named() {
        let error = compare(
            floats(&[2, 2], &[1.0, 2.0, 3.0, 4.0]),
            floats(&[2, 2], &[1.0, 2.0, 3.5, 4.0]),
        );
        assert_eq!(error, Err("result: 3.5 instead of 3 at [1, 0]; 1 of 4 differ".into()));
        let error = compare(longs(&[7, -1]), longs(&[7, -2]));
        assert_eq!(error, Err("result: -2 instead of -1 at [1]; 1 of 2 differ".into()));
    }

    #[test]
    fn the_largest_difference_is_found() {
        let pair = |tensor, number| list(vec![tensor, Value::Float(number)]);
        let want = pair(floats(&[3], &[1.0, f32::NAN, 3.0]), 1.0);
        let got = pair(floats(&[3], &[1.5, f32::NAN, 3.25]), 1.125);
        assert_eq!(largest_difference(&want, &got), 0.5);
    }

    #[test]
    fn integers_have_no_tolerance() {
        assert!(compare(longs(&[10_000_000]), longs(&[10_000_001])).is_err());
        assert!(compare(Value::Int(10_000_000), Value::Int(10_000_001)).is_err());
    }

    #[test]
    fn a_wrong_shape_or_dtype_differs() {
        let error = compare(floats(&[1, 2], &[1.0, 2.0]), floats(&[2], &[1.0, 2.0]));
        assert_eq!(error, Err("result: shape [2] instead of [1, 2]".into()));
        let error = compare(longs(&[0]), floats(&[2], &[0.0, 0.0]));
        assert_eq!(error, Err("result: dtype float32 instead of int64".into()));
    }

    #[test]
    fn nan_and_infinities_equal_only_themselves() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        assert_eq!(
            compare(floats(&[3], &[nan, inf, -inf]), floats(&[3], &[-nan, inf, -inf])),
            Ok(())
        );
        for (want, got) in [(nan, 0.0), (0.0, nan), (inf, 3.0), (3.0, inf), (inf, -inf), (inf, nan)] {
            assert!(
                compare(floats(&[1], &[want]), floats(&[1], &[got])).is_err(),
                "{want} {got}"
            );
            assert!(
                compare(Value::Float(want.into()), Value::Float(got.into())).is_err(),
                "{want} {got}"
            );
        }
    }

    #[test]
    fn half_precision_is_compared_as_numbers() {
        let tensor =
            |bits: u16, dtype| -> Value { Tensor::from_bytes(dtype, &[], &bits.to_le_bytes()).unwrap().into() };
        // The two zeros differ in bits only.
        assert_eq!(
            compare(tensor(0x8000, DType::BFloat16), tensor(0, DType::BFloat16)),
            Ok(())
        );
        assert!(compare(tensor(0x3f80, DType::BFloat16), tensor(0x3f81, DType::BFloat16)).is_err());
        assert!(compare(tensor(0x3c00, DType::Half), tensor(0x3c01, DType::Half)).is_err());
        let (one, next) = (tensor(0x3f80, DType::BFloat16), tensor(0x3f81, DType::BFloat16));
        assert_eq!(values(&one, &next, TOLERANCE.with_half(0.05)), Ok(()));
    }

    #[test]
    fn kinds_and_lengths_of_containers_matter() {
        let pair = || vec![Value::Int(1), Value::Int(2)];
        assert_eq!(compare(list(pair()), list(pair())), Ok(()));
        assert!(compare(list(pair()), Value::tuple(pair())).is_err());
        assert!(compare(list(pair()), list(vec![Value::Int(1)])).is_err());
        assert!(compare(Value::Int(1), Value::Float(1.0)).is_err());
        assert!(compare(Value::Int(1), Value::Bool(true)).is_err());
        let nested = |inner| Value::tuple(vec![Value::None, list(vec![inner])]);
        let error = compare(nested(Value::Int(1)), nested(Value::Int(2)));
        assert_eq!(error, Err("result[1][0]: 2 instead of 1".into()));
    }

    #[test]
    fn dicts_are_in_order() {
        let dict = |keys: [&str; 2]| {
            let entries = keys
                .map(|key| (Key(Value::str(key)), Value::None))
                .into_iter()
                .collect();
            Value::Dict(DictValue::new(types::STR, types::ANY, entries))
        };
        assert_eq!(compare(dict(["a", "b"]), dict(["a", "b"])), Ok(()));
        assert!(compare(dict(["a", "b"]), dict(["b", "a"])).is_err());
    }

    #[test]
    fn exceptions_have_to_be_raised_and_only_those() {
        let value = Outcome::Value(Value::None);
        assert!(outcomes(&raises("no", false), &value, TOLERANCE).is_err());
        assert!(outcomes(&value, &raises("no", false), TOLERANCE).is_err());
        assert_eq!(
            outcomes(&raises("index 3", false), &raises("other words", false), TOLERANCE),
            Ok(())
        );
    }

    #[test]
    fn the_programs_own_text_is_contained() {
        let got = raises("ValueError: too short (line 3)", false);
        assert_eq!(outcomes(&raises("too short", true), &got, TOLERANCE), Ok(()));
        assert!(outcomes(&raises("too long", true), &got, TOLERANCE).is_err());
    }
}
