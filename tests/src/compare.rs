//! When two results agree.
//!
//! Kinds, dtypes and shapes are the same; integers, truth values and strings are equal; floating-point numbers differ by at most
//! `atol + rtol * |want|`, where NaN equals NaN and infinities equal themselves only. A call that has to raise raises, with
//! a text that contains the recorded one where the program itself raised. Strides are not compared.

use half::{bf16, f16};
use safetensors::Dtype;

use crate::value::{Outcome, Tensor, Value};

/// How far floating-point numbers may differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Relative to the wanted number.
    pub rtol: f64,
    /// Absolute.
    pub atol: f64,
}

impl Tolerance {
    fn allows(self, want: f64, got: f64) -> bool {
        // Equality first: the difference of equal infinities is NaN.
        want == got
            || (want.is_nan() && got.is_nan())
            || (want.is_finite() && (want - got).abs() <= self.atol + self.rtol * want.abs())
    }
}

/// Where two results differ, and how.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{place}: {what}")]
pub struct Mismatch {
    /// The way to the differing part, such as `result[1]["mean"]`.
    pub place: String,
    /// What was wanted and what is there.
    pub what: String,
}

fn mismatch(place: &str, what: String) -> Mismatch {
    Mismatch {
        place: place.to_owned(),
        what,
    }
}

/// Compares what a call ended in with what it has to end in.
pub fn outcomes(want: &Outcome, got: &Outcome, tolerance: Tolerance) -> Result<(), Mismatch> {
    match (want, got) {
        (Outcome::Value(want), Outcome::Value(got)) => values("result", want, got, tolerance),
        (Outcome::Raises { text, user }, Outcome::Raises { text: got, .. }) => {
            if *user && !got.contains(text) {
                return Err(mismatch("exception", format!("{got:?} instead of {text:?}")));
            }
            Ok(())
        }
        (Outcome::Raises { text, .. }, Outcome::Value(got)) => Err(mismatch(
            "result",
            format!("{} instead of the exception {text:?}", got.kind()),
        )),
        (Outcome::Value(want), Outcome::Raises { text, .. }) => Err(mismatch(
            "result",
            format!("the exception {text:?} instead of {}", want.kind()),
        )),
    }
}

/// The largest absolute difference between two values of one structure, over all finite floating-point numbers in them.
pub fn largest_difference(want: &Value, got: &Value) -> f64 {
    let largest = |differences: &mut dyn Iterator<Item = f64>| differences.fold(0.0, f64::max);
    let finite = |want: f64, got: f64| {
        if want.is_finite() && got.is_finite() {
            (want - got).abs()
        } else {
            0.0
        }
    };
    match (want, got) {
        (Value::Float(want), Value::Float(got)) => finite(*want, *got),
        (Value::List(want), Value::List(got)) | (Value::Tuple(want), Value::Tuple(got)) => {
            largest(&mut want.iter().zip(got).map(|(want, got)| largest_difference(want, got)))
        }
        (Value::Dict(want), Value::Dict(got)) => largest(
            &mut want
                .iter()
                .zip(got)
                .map(|((_, want), (_, got))| largest_difference(want, got)),
        ),
        (Value::Tensor(want), Value::Tensor(got)) if want.dtype == got.dtype => {
            let width = element_width(want.dtype).unwrap_or(1);
            let pairs = want.data.chunks_exact(width).zip(got.data.chunks_exact(width));
            largest(
                &mut pairs.map(|(a, b)| match (numbers(want.dtype, a), numbers(got.dtype, b)) {
                    (Some(a), Some(b)) => finite(a[0], b[0]).max(finite(a[1], b[1])),
                    _ => 0.0,
                }),
            )
        }
        _ => 0.0,
    }
}

fn values(place: &str, want: &Value, got: &Value, tolerance: Tolerance) -> Result<(), Mismatch> {
    match (want, got) {
        (Value::Tensor(want), Value::Tensor(got)) => tensors(place, want, got, tolerance),
        (Value::Float(want), Value::Float(got)) if tolerance.allows(*want, *got) => Ok(()),
        (Value::List(want), Value::List(got)) | (Value::Tuple(want), Value::Tuple(got)) => {
            lengths(place, want.len(), got.len())?;
            want.iter()
                .zip(got)
                .enumerate()
                .try_for_each(|(index, (want, got))| values(&format!("{place}[{index}]"), want, got, tolerance))
        }
        (Value::Dict(want), Value::Dict(got)) => {
            lengths(place, want.len(), got.len())?;
            for (index, ((want_key, want), (got_key, got))) in want.iter().zip(got).enumerate() {
                values(&format!("{place}'s key {index}"), want_key, got_key, tolerance)?;
                values(&format!("{place}[{want_key:?}]"), want, got, tolerance)?;
            }
            Ok(())
        }
        (want, got) if want.kind() != got.kind() => {
            Err(mismatch(place, format!("{} instead of {}", got.kind(), want.kind())))
        }
        (want, got) if want == got => Ok(()),
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
    if want.dtype != got.dtype {
        return Err(mismatch(
            place,
            format!("dtype {} instead of {}", got.dtype, want.dtype),
        ));
    }
    if want.shape != got.shape {
        return Err(mismatch(
            place,
            format!("shape {:?} instead of {:?}", got.shape, want.shape),
        ));
    }
    if want.data == got.data {
        return Ok(());
    }
    let Some(width) = element_width(want.dtype) else {
        return Err(mismatch(place, format!("cannot compare dtype {}", want.dtype)));
    };
    let pairs = || want.data.chunks_exact(width).zip(got.data.chunks_exact(width));
    let differs = |(want_bytes, got_bytes): (&[u8], &[u8])| {
        let parts = |bytes| numbers(want.dtype, bytes);
        match (parts(want_bytes), parts(got_bytes)) {
            (Some(want), Some(got)) => !complex_allows(tolerance, want, got),
            _ => want_bytes != got_bytes,
        }
    };
    let Some(first) = pairs().position(differs) else {
        return Ok(());
    };
    let count = pairs().filter(|&pair| differs(pair)).count();
    let show = |tensor: &Tensor| {
        let bytes = &tensor.data[first * width..][..width];
        match numbers(tensor.dtype, bytes) {
            Some([real, 0.0]) => real.to_string(),
            Some([real, imaginary]) => format!("{real}+{imaginary}j"),
            None => integer(tensor.dtype, bytes).to_string(),
        }
    };
    let at = coordinates(first, &want.shape);
    let total = want.data.len() / width;
    Err(mismatch(
        place,
        format!(
            "{} instead of {} at {at:?}; {count} of {total} differ",
            show(got),
            show(want)
        ),
    ))
}

fn complex_allows(tolerance: Tolerance, want: [f64; 2], got: [f64; 2]) -> bool {
    if want[1] == 0.0 && got[1] == 0.0 {
        return tolerance.allows(want[0], got[0]);
    }
    let magnitude = want[0].hypot(want[1]);
    let distance = (want[0] - got[0]).hypot(want[1] - got[1]);
    distance <= tolerance.atol + tolerance.rtol * magnitude
        || (tolerance.allows(want[0], got[0]) && tolerance.allows(want[1], got[1]))
}

/// Bytes of an element, for the dtypes that TorchScript has.
fn element_width(dtype: Dtype) -> Option<usize> {
    match dtype {
        Dtype::BOOL | Dtype::U8 | Dtype::I8 => Some(1),
        Dtype::I16 | Dtype::U16 | Dtype::F16 | Dtype::BF16 => Some(2),
        Dtype::I32 | Dtype::U32 | Dtype::F32 => Some(4),
        Dtype::I64 | Dtype::U64 | Dtype::F64 | Dtype::C64 => Some(8),
        _ => None,
    }
}

/// The real and imaginary part of a floating-point or complex element. `None` for integers, which have to be equal.
fn numbers(dtype: Dtype, bytes: &[u8]) -> Option<[f64; 2]> {
    let single = |bytes: &[u8]| Some(f64::from(f32::from_le_bytes(bytes.try_into().ok()?)));
    let real = match dtype {
        Dtype::F16 => f64::from(f16::from_le_bytes(bytes.try_into().ok()?)),
        Dtype::BF16 => f64::from(bf16::from_le_bytes(bytes.try_into().ok()?)),
        Dtype::F32 => single(bytes)?,
        Dtype::F64 => f64::from_le_bytes(bytes.try_into().ok()?),
        Dtype::C64 => return Some([single(bytes.get(..4)?)?, single(bytes.get(4..)?)?]),
        _ => return None,
    };
    Some([real, 0.0])
}

/// An integer element's value, for messages.
fn integer(dtype: Dtype, bytes: &[u8]) -> i128 {
    let signed = matches!(dtype, Dtype::I8 | Dtype::I16 | Dtype::I32 | Dtype::I64);
    let negative = signed && bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    let mut wide = [if negative { 0xff } else { 0 }; 16];
    wide[..bytes.len()].copy_from_slice(bytes);
    i128::from_le_bytes(wide)
}

/// The coordinates of the element at `index` in row-major order.
fn coordinates(mut index: usize, shape: &[usize]) -> Vec<usize> {
    let mut coordinates = vec![0; shape.len()];
    for (coordinate, size) in coordinates.iter_mut().zip(shape).rev() {
        *coordinate = index % size;
        index /= size;
    }
    coordinates
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLERANCE: Tolerance = Tolerance { rtol: 1e-5, atol: 1e-6 };

    fn floats(shape: &[usize], elements: &[f32]) -> Value {
        let data = elements.iter().flat_map(|element| element.to_le_bytes()).collect();
        Value::Tensor(Tensor {
            dtype: Dtype::F32,
            shape: shape.to_vec(),
            data,
        })
    }

    fn longs(elements: &[i64]) -> Value {
        let data = elements.iter().flat_map(|element| element.to_le_bytes()).collect();
        Value::Tensor(Tensor {
            dtype: Dtype::I64,
            shape: vec![elements.len()],
            data,
        })
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
        let list = |tensor, number| Value::List(vec![tensor, Value::Float(number)]);
        let want = list(floats(&[3], &[1.0, f32::NAN, 3.0]), 1.0);
        let got = list(floats(&[3], &[1.5, f32::NAN, 3.25]), 1.125);
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
        assert_eq!(error, Err("result: dtype F32 instead of I64".into()));
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
        let tensor = |bits: u16, dtype| {
            Value::Tensor(Tensor {
                dtype,
                shape: vec![],
                data: bits.to_le_bytes().into(),
            })
        };
        // The two zeros differ in bits only.
        assert_eq!(compare(tensor(0x8000, Dtype::BF16), tensor(0, Dtype::BF16)), Ok(()));
        assert!(compare(tensor(0x3f80, Dtype::BF16), tensor(0x3f81, Dtype::BF16)).is_err());
        assert!(compare(tensor(0x3c00, Dtype::F16), tensor(0x3c01, Dtype::F16)).is_err());
    }

    #[test]
    fn kinds_and_lengths_of_containers_matter() {
        let pair = || vec![Value::Int(1), Value::Int(2)];
        assert_eq!(compare(Value::List(pair()), Value::List(pair())), Ok(()));
        assert!(compare(Value::List(pair()), Value::Tuple(pair())).is_err());
        assert!(compare(Value::List(pair()), Value::List(vec![Value::Int(1)])).is_err());
        assert!(compare(Value::Int(1), Value::Float(1.0)).is_err());
        assert!(compare(Value::Int(1), Value::Bool(true)).is_err());
        let nested = |inner| Value::Tuple(vec![Value::None, Value::List(vec![inner])]);
        let error = compare(nested(Value::Int(1)), nested(Value::Int(2)));
        assert_eq!(error, Err("result[1][0]: Int(2) instead of Int(1)".into()));
    }

    #[test]
    fn dicts_are_in_order() {
        let dict = |keys: [&str; 2]| Value::Dict(keys.map(|key| (Value::Str(key.into()), Value::None)).to_vec());
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
