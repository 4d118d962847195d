//! Bitwise comparison of tensors, for two computations of one result by this compiler. They may differ in the last place or the sign of a zero.

use frazil_ir::DType;
use frazil_runtime::Tensor;
use half::{bf16, f16};

/// The tolerance for floating-point elements: bit equality, or units in the last place.
#[derive(Clone, Copy)]
pub enum Within {
    /// No tolerance: elements have equal bits.
    Bits,
    /// The given number of units in the last place of the result's largest element. Zeros must have equal signs.
    Units(f64),
}

/// Returns the first difference between two lists of tensors: in number, dtypes, sizes, or elements. All NaNs are
/// equal.
pub fn difference(want: &[Tensor], got: &[Tensor], within: Within) -> Option<String> {
    if want.len() != got.len() {
        return Some(format!("{} results instead of {}", got.len(), want.len()));
    }
    want.iter()
        .zip(got)
        .enumerate()
        .find_map(|(i, (want, got))| of_tensors(want, got, within).map(|what| format!("result {i}: {what}")))
}

fn of_tensors(want: &Tensor, got: &Tensor, within: Within) -> Option<String> {
    let kind = |t: &Tensor| format!("{}{:?}", t.dtype(), t.sizes());
    if kind(want) != kind(got) {
        return Some(format!("{} instead of {}", kind(got), kind(want)));
    }
    let dtype = want.dtype();
    let bytes = |t: &Tensor| t.to_bytes().unwrap_or_default();
    let (a, b) = (bytes(want), bytes(got));
    let width = component(dtype);
    let parts = |bytes: &[u8]| -> Vec<Option<f64>> { bytes.chunks_exact(width).map(|x| number(dtype, x)).collect() };
    let finite = |x: &Option<f64>| x.filter(|x| x.is_finite()).map(f64::abs);
    let tolerance = match within {
        Within::Bits => None,
        Within::Units(units) => {
            let largest = parts(&a).iter().filter_map(finite).fold(0.0, f64::max);
            Some(units * largest * unit(dtype))
        }
    };
    let same = |(a, b): (&[u8], &[u8])| match (number(dtype, a), number(dtype, b)) {
        _ if a == b => true,
        (Some(x), Some(y)) if x.is_nan() => y.is_nan(),
        (Some(0.0), Some(0.0)) => false,
        (Some(x), Some(y)) => x.is_finite() && tolerance.is_some_and(|t| (x - y).abs() <= t),
        _ => false,
    };
    let at = a
        .chunks_exact(width)
        .zip(b.chunks_exact(width))
        .position(|pair| !same(pair))?;
    let shown = |bytes: &[u8]| {
        let bytes = &bytes[at * width..][..width];
        number(dtype, bytes).map_or_else(|| format!("{bytes:?}"), |x| format!("{x:e}"))
    };
    Some(format!("element {at} is {} instead of {}", shown(&b), shown(&a)))
}

/// Returns the distance from 1 to the next larger number of `dtype`.
fn unit(dtype: DType) -> f64 {
    match (dtype, component(dtype)) {
        (DType::BFloat16, _) => 2f64.powi(-7),
        (_, 2) => 2f64.powi(-10),
        (_, 4) => f64::from(f32::EPSILON),
        _ => f64::EPSILON,
    }
}

/// Returns the size in bytes of a component of an element; complex elements have two components.
fn component(dtype: DType) -> usize {
    match dtype.is_complex() {
        true => dtype.size() / 2,
        false => dtype.size(),
    }
}

fn number(dtype: DType, bytes: &[u8]) -> Option<f64> {
    match (dtype, bytes) {
        (DType::BFloat16, &[a, b]) => Some(bf16::from_le_bytes([a, b]).to_f64()),
        (_, &[a, b]) if dtype.is_floating_point() || dtype.is_complex() => Some(f16::from_le_bytes([a, b]).to_f64()),
        (_, &[a, b, c, d]) if dtype.is_floating_point() || dtype.is_complex() => {
            Some(f64::from(f32::from_le_bytes([a, b, c, d])))
        }
        (_, bytes) if dtype.is_floating_point() || dtype.is_complex() => {
            Some(f64::from_le_bytes(bytes.try_into().ok()?))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frazil_runtime::Scalar;

    #[test]
    fn signs_of_zeros_and_last_places_are_differences() {
        let of = |x: f64| vec![Tensor::scalar(DType::Double, Scalar::Float(x))];
        let differ = |a: f64, b: f64, within| difference(&of(a), &of(b), within).is_some();
        assert!(!differ(f64::NAN, -f64::NAN, Within::Bits));
        assert!(differ(0.0, -0.0, Within::Bits));
        assert!(differ(1.0, 1.0 + f64::EPSILON, Within::Bits));
        assert!(!differ(1.0, 1.0 + f64::EPSILON, Within::Units(2.0)));
        assert!(differ(1.0, 1.0 + 8.0 * f64::EPSILON, Within::Units(2.0)));
        assert!(differ(f64::INFINITY, 1.0, Within::Units(2.0)));
        assert!(differ(1.0, f64::NAN, Within::Units(2.0)));
    }
}
