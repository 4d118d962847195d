//! Comparison of tensors, with the messages of `torch.testing.assert_close`.

use frazil_ir::DType;
use frazil_runtime::Tensor;

/// Returns the absolute tolerance for results of two dtypes, as in PyTorch.
pub(super) fn default_atol(a: DType, b: DType) -> f64 {
    let of = |dtype| match dtype {
        DType::Half | DType::BFloat16 | DType::Float | DType::ComplexHalf | DType::ComplexFloat => 1e-5,
        DType::Double | DType::ComplexDouble => 1e-7,
        _ => 0.0,
    };
    f64::max(of(a), of(b))
}

/// Returns `None` if `actual` is within `atol + rtol * |expected|` of `expected` everywhere (NaN equals NaN), else a description of the difference.
pub(super) fn difference(actual: &Tensor, expected: &Tensor, rtol: f64, atol: f64) -> Option<String> {
    if actual.sizes() != expected.sizes() {
        let shape = |t: &Tensor| t.sizes().iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        return Some(format!(
            "The values for attribute 'shape' do not match: [{}] != [{}].",
            shape(actual),
            shape(expected)
        ));
    }
    if actual.dtype() != expected.dtype() {
        let (a, b) = (actual.dtype().python_name(), expected.dtype().python_name());
        return Some(format!("The values for attribute 'dtype' do not match: {a} != {b}."));
    }
    let (a, b) = (actual.to_f64_vec(), expected.to_f64_vec());
    let mut mismatched = 0;
    let (mut absolute, mut relative) = ((0.0, 0), (0.0, 0));
    for (i, (&x, &y)) in a.iter().zip(&b).enumerate() {
        if x == y || (x.is_nan() && y.is_nan()) {
            continue;
        }
        let apart = (x - y).abs();
        let close = apart <= atol + rtol * y.abs();
        if close {
            continue;
        }
        mismatched += 1;
        let by_size = if y == 0.0 { f64::INFINITY } else { apart / y.abs() };
        if apart > absolute.0 || apart.is_nan() {
            absolute = (apart, i);
        }
        if by_size > relative.0 || by_size.is_nan() {
            relative = (by_size, i);
        }
    }
    if mismatched == 0 {
        return None;
    }
    let share = 100.0 * f64::from(mismatched) / a.len() as f64;
    let at = |i: usize| index_of(i, actual.sizes());
    Some(format!(
        "Tensor-likes are not close!\n\nMismatched elements: {mismatched} / {} ({share:.1}%)\n\
         Greatest absolute difference: {} at index {} (up to {} allowed)\nGreatest relative difference: {} at index {} (up to {} allowed)",
        a.len(),
        absolute.0,
        at(absolute.1),
        scientific(atol),
        relative.0,
        at(relative.1),
        scientific(rtol),
    ))
}

/// Returns the text of a tolerance as Python prints it: `1e-05`.
fn scientific(bound: f64) -> String {
    let text = format!("{bound:e}");
    match text.split_once("e-") {
        Some((digits, exponent)) if bound < 1e-4 => format!("{digits}e-{exponent:0>2}"),
        _ => bound.to_string(),
    }
}

/// Returns the multi-dimensional index, as text such as `(1, 4)`, of the element at row-major index `i`.
fn index_of(mut i: usize, sizes: &[i64]) -> String {
    let mut index = Vec::new();
    for &size in sizes.iter().rev() {
        let size = usize::try_from(size).unwrap_or(1).max(1);
        index.push((i % size).to_string());
        i /= size;
    }
    index.reverse();
    match index.as_slice() {
        [one] => format!("({one},)"),
        _ => format!("({})", index.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::difference;
    use frazil_runtime::Tensor;

    #[test]
    fn differences_are_told_as_pytorch_does() {
        let a = Tensor::from_f32(&[1.0, 2.0, f32::NAN, 4.0], &[2, 2]).expect("fits");
        assert_eq!(difference(&a, &a, 1e-5, 1e-5), None);
        let b = Tensor::from_f32(&[1.0, 2.5, f32::NAN, 5.0], &[2, 2]).expect("fits");
        let expected = "Tensor-likes are not close!\n\nMismatched elements: 2 / 4 (50.0%)\n\
                        Greatest absolute difference: 1 at index (1, 1) (up to 1e-05 allowed)\n\
                        Greatest relative difference: 0.2 at index (0, 1) (up to 1e-05 allowed)";
        assert_eq!(difference(&a, &b, 1e-5, 1e-5).as_deref(), Some(expected));
    }
}
