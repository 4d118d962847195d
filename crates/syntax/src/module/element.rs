//! Elements of tensors in module files: decimal numbers that are read back as the same bits, or hexadecimal bytes.

use frazil_ir::{Constant, Context, DType, Encoding, TensorData, literal};
use half::{bf16, f16};
use std::fmt::Write;
use std::sync::Arc;

/// Returns the elements of `t`, in row-major order, as `[1., 2.5]`; `None` if a number would not be read back as the same bits (a
/// NaN with a payload) or the dtype has no decimal form.
pub(super) fn show(t: &TensorData) -> Option<String> {
    let bytes = t.to_bytes();
    let mut out = String::from("[");
    for (i, element) in bytes.chunks_exact(t.dtype.size()).enumerate() {
        out.push_str(if i > 0 { ", " } else { "" });
        let start = out.len();
        push(t.dtype, element, &mut out)?;
        let mut back = Vec::with_capacity(16);
        read(t.dtype, &out[start..], &mut back)?;
        if back != element {
            return None;
        }
    }
    out.push(']');
    Some(out)
}

fn push(dtype: DType, bytes: &[u8], out: &mut String) -> Option<()> {
    let narrow = |value: f32, out: &mut String| match value.is_finite() {
        // By the decimal form of the shorter type, which has fewer digits.
        true => literal::exact_double(value.to_string().parse().unwrap_or(f64::from(value)), out),
        false => literal::exact_double(f64::from(value), out),
    };
    match dtype {
        DType::Half => narrow(f16::from_le_bytes(bytes.try_into().ok()?).to_f32(), out),
        DType::BFloat16 => narrow(bf16::from_le_bytes(bytes.try_into().ok()?).to_f32(), out),
        DType::Float => narrow(f32::from_le_bytes(bytes.try_into().ok()?), out),
        DType::Double => literal::exact_double(f64::from_le_bytes(bytes.try_into().ok()?), out),
        _ => {
            let value = match dtype {
                DType::Byte | DType::Bool => i64::from(*bytes.first()?),
                DType::Char => i64::from(i8::from_le_bytes(bytes.try_into().ok()?)),
                DType::Short => i64::from(i16::from_le_bytes(bytes.try_into().ok()?)),
                DType::Int => i64::from(i32::from_le_bytes(bytes.try_into().ok()?)),
                DType::Long => i64::from_le_bytes(bytes.try_into().ok()?),
                _ => return None,
            };
            let _ = write!(out, "{value}");
        }
    }
    Some(())
}

/// Returns the parameters of `encoding` as a tuple: scale and zero point; scales, zero points and dimension; or, if sparse, its tensors.
pub(super) fn encoding_parameters(ctx: &Context, encoding: &Encoding) -> Constant {
    let tensors = encoding.tensors().into_iter();
    let mut items: Vec<Constant> = tensors.map(|t| Constant::Tensor(Arc::clone(t))).collect();
    match encoding {
        Encoding::PerTensor { scale, zero_point } => {
            items.extend([Constant::Float(*scale), Constant::Int(*zero_point)]);
        }
        Encoding::PerChannel { axis, .. } => items.push(Constant::Int(*axis)),
        Encoding::SparseCoo { .. } | Encoding::SparseCsr { .. } => {}
    }
    Constant::tuple(ctx, items)
}

/// Returns the encoding called `name` with these parameters; `None` if they are invalid.
pub(super) fn encoding(name: &str, parameters: &Constant) -> Option<Encoding> {
    let tensor = |c: &Constant| c.as_tensor().map(Arc::clone);
    match (name, parameters.items()?) {
        ("per_tensor_affine", [scale, zero_point]) => Some(Encoding::PerTensor {
            scale: scale.as_float()?,
            zero_point: zero_point.as_int()?,
        }),
        ("per_channel_affine" | "per_channel_affine_float_qparams", [scales, zero_points, axis]) => {
            Some(Encoding::PerChannel {
                scales: tensor(scales)?,
                zero_points: tensor(zero_points)?,
                axis: axis.as_int()?,
                float_zero_points: name != "per_channel_affine",
            })
        }
        ("sparse_coo", [indices, values]) => Some(Encoding::SparseCoo {
            indices: tensor(indices)?,
            values: tensor(values)?,
        }),
        ("sparse_csr", [rows, columns, values]) => Some(Encoding::SparseCsr {
            rows: tensor(rows)?,
            columns: tensor(columns)?,
            values: tensor(values)?,
        }),
        _ => None,
    }
}

/// Appends the bytes of the number `text` as an element of type `dtype`.
pub(super) fn read(dtype: DType, text: &str, out: &mut Vec<u8>) -> Option<()> {
    match dtype {
        DType::Byte => out.push(text.parse().ok()?),
        DType::Bool => out.push(text.parse::<u8>().ok().filter(|b| *b < 2)?),
        DType::Char => out.extend(text.parse::<i8>().ok()?.to_le_bytes()),
        DType::Short => out.extend(text.parse::<i16>().ok()?.to_le_bytes()),
        DType::Int => out.extend(text.parse::<i32>().ok()?.to_le_bytes()),
        DType::Long => out.extend(text.parse::<i64>().ok()?.to_le_bytes()),
        DType::Half => out.extend(f16::from_f32(text.parse().ok()?).to_le_bytes()),
        DType::BFloat16 => out.extend(bf16::from_f32(text.parse().ok()?).to_le_bytes()),
        DType::Float => out.extend(text.parse::<f32>().ok()?.to_le_bytes()),
        DType::Double => out.extend(text.parse::<f64>().ok()?.to_le_bytes()),
        _ => return None,
    }
    Some(())
}

/// Appends bytes as hexadecimal digits.
pub(super) fn push_hex(bytes: &[u8], out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.reserve(2 * bytes.len());
    for b in bytes {
        out.push(DIGITS[usize::from(b >> 4)] as char);
        out.push(DIGITS[usize::from(b & 15)] as char);
    }
}

/// Returns the bytes that `text`, a sequence of hexadecimal digits, represents.
pub(super) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |b: u8| (b as char).to_digit(16);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs
        .iter()
        .map(|[high, low]| Some((digit(*high)? * 16 + digit(*low)?) as u8))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_read_back_as_the_same_bits() {
        let floats = [
            0.1f32,
            -0.0,
            f32::MIN_POSITIVE,
            f32::MAX,
            1e-45,
            16777217.0,
            f32::INFINITY,
        ];
        let bytes: Vec<u8> = floats.iter().flat_map(|f| f.to_le_bytes()).collect();
        let t = TensorData::contiguous(DType::Float, &[7], bytes).unwrap();
        assert_eq!(
            show(&t).as_deref(),
            Some("[0.1, -0., 1.1754944e-38, 3.4028235e38, 1e-45, 16777216., inf]")
        );
        let payload = TensorData::contiguous(DType::Float, &[1], vec![1, 0, 0xc0, 0x7f]).unwrap();
        assert_eq!(show(&payload), None);
        let long = TensorData::contiguous(DType::Long, &[1], i64::MIN.to_le_bytes().to_vec()).unwrap();
        assert_eq!(show(&long).as_deref(), Some("[-9223372036854775808]"));
    }

    #[test]
    fn hexadecimal_reads_back() {
        let mut text = String::new();
        push_hex(&[0, 255, 16], &mut text);
        assert_eq!(text, "00ff10");
        assert_eq!(from_hex(&text), Some(vec![0, 255, 16]));
        assert_eq!(from_hex("0"), None);
        assert_eq!(from_hex("é"), None);
    }
}
