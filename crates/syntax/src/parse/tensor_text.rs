//! Reading tensors as PyTorch prints small ones: ` 0.1000  0.2000 [ CPUFloatType{2} ]`, `{5}`.
//!
//! Such a text has four or six digits. The tensor gets exactly the written numbers. If it is not printed back identically, or the layout is not supported
//! (several groups of columns), the text is stored and the value counts as elided.

use crate::print::tensor;
use frazil_ir::{
    Constant, Context, DType, Device, DeviceKind, Dim, Shape, Storage, TensorData, TensorType, TypeId, TypeKind,
    contiguous_strides,
};
use half::{bf16, f16};
use std::sync::Arc;

/// The dtype, device and sizes at the end of a printed tensor.
pub(crate) struct Suffix {
    dtype: DType,
    device: DeviceKind,
    sizes: Vec<i64>,
    /// Length of the text before the suffix.
    body: usize,
}

/// Maximum length of a tensor's suffix in bytes. A longer search would take time at every bracket of the text.
const MAX_SUFFIX: usize = 256;

/// Returns the text and suffix of the printed tensor at the start of `text`, if there is one.
pub(crate) fn find(text: &str) -> Option<(&str, Suffix)> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'[' if bytes.get(at + 1) == Some(&b' ') => {
                let (suffix, len) = suffix(&text[at..], at)?;
                return Some((text.get(..at + len)?, suffix));
            }
            b'(' => at += slice_header(&bytes[at..])? - 1,
            b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b' ' | b'*' | b'=' => {}
            // Letters in numbers and headings: inf, nan, "Columns 1 to 5".
            b'i' | b'n' | b'f' | b'a' | b'C' | b'o' | b'l' | b'u' | b'm' | b's' | b't' => {}
            _ => return None,
        }
        at += 1;
    }
    None
}

/// Returns the length of `(1,2,.,.)`, the header of a slice of a tensor with many dimensions. `None` for other parentheses, which contain a tuple.
fn slice_header(bytes: &[u8]) -> Option<usize> {
    let end = bytes.iter().position(|b| *b == b')')?;
    let inner = bytes[..end].strip_prefix(b"(")?.strip_suffix(b",.,.")?;
    let is_index = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    inner.split(|b| *b == b',').all(is_index).then_some(end + 1)
}

/// Reads a suffix `[ CPUFloatType{2,3} ]`.
fn suffix(text: &str, body: usize) -> Option<(Suffix, usize)> {
    let near = &text.as_bytes()[..text.len().min(MAX_SUFFIX)];
    let end = near.windows(2).position(|pair| pair == b" ]")? + 2;
    let inner = text.get(2..end.max(4) - 2)?;
    let (name, dims) = inner.strip_suffix('}')?.split_once("Type{")?;
    let (device, name) = [
        ("CPU", DeviceKind::Cpu),
        ("CUDA", DeviceKind::Cuda),
        ("Meta", DeviceKind::Meta),
    ]
    .into_iter()
    .find_map(|(prefix, kind)| Some((kind, name.strip_prefix(prefix)?)))?;
    let sizes: Option<Vec<i64>> = dims
        .split(',')
        .filter(|d| !d.is_empty())
        .map(|d| d.parse().ok().filter(|n| *n >= 0))
        .collect();
    let suffix = Suffix {
        dtype: DType::from_type_name(name)?,
        device,
        sizes: sizes?,
        body,
    };
    Some((suffix, end))
}

/// Returns the tensor printed as `text`, unless its layout is unsupported.
pub(crate) fn read(text: &str, suffix: Suffix) -> Option<TensorData> {
    let body = text.get(..suffix.body)?;
    if body.contains("Columns") {
        return None;
    }
    let mut values = Vec::new();
    let mut scale = 1.0;
    let mut words = body.split_whitespace().peekable();
    while let Some(word) = words.next() {
        if word.starts_with('(') {
            // "(1,.,.) =" begins a slice, with a scale of its own.
            words.next_if_eq(&"=")?;
            scale = 1.0;
            continue;
        }
        let number: f64 = word.parse().ok()?;
        if words.next_if_eq(&"*").is_some() {
            scale = number;
        } else {
            values.push(number * scale);
        }
    }
    let numel = suffix.sizes.iter().try_fold(1i64, |n, s| n.checked_mul(*s))?;
    if usize::try_from(numel).ok()? != values.len() {
        return None;
    }
    let device = Device {
        kind: suffix.device,
        index: None,
    };
    build(suffix.dtype, &suffix.sizes, &values, device)
}

fn build(dtype: DType, sizes: &[i64], values: &[f64], device: Device) -> Option<TensorData> {
    let mut bytes = Vec::with_capacity(values.len() * dtype.size());
    for &v in values {
        encode(dtype, v, &mut bytes)?;
    }
    let storage = Arc::new(Storage::new(Arc::new(bytes), device));
    TensorData::new(dtype, sizes, contiguous_strides(sizes), 0, storage).ok()
}

/// Appends `value` as an element of type `dtype`; `None` for complex and quantised types.
fn encode(dtype: DType, value: f64, out: &mut Vec<u8>) -> Option<()> {
    let whole = value as i64;
    if !dtype.is_floating_point() && whole as f64 != value {
        return None;
    }
    match dtype {
        DType::Byte => out.push(u8::try_from(whole).ok()?),
        DType::Bool => out.push(u8::from(value != 0.0)),
        DType::Char => out.extend(i8::try_from(whole).ok()?.to_le_bytes()),
        DType::Short => out.extend(i16::try_from(whole).ok()?.to_le_bytes()),
        DType::Int => out.extend(i32::try_from(whole).ok()?.to_le_bytes()),
        DType::Long => out.extend(whole.to_le_bytes()),
        DType::Half => out.extend(f16::from_f64(value).to_le_bytes()),
        DType::BFloat16 => out.extend(bf16::from_f64(value).to_le_bytes()),
        DType::Float => out.extend((value as f32).to_le_bytes()),
        DType::Double => out.extend(value.to_le_bytes()),
        _ => return None,
    }
    Some(())
}

/// Returns a tensor of one element with value `number` and the type `wanted`. For a type without dtype and sizes, it is a 0-d `Long` or
/// `Float` tensor.
pub(crate) fn boxed(ctx: &Context, number: &Constant, wanted: Option<TypeId>) -> Option<TensorData> {
    let known = match wanted.map(|ty| ctx.type_kind(ty)) {
        Some(TypeKind::Tensor(t)) => t,
        _ => TensorType::ANY,
    };
    let dtype = known.dtype.unwrap_or(match number {
        Constant::Int(_) => DType::Long,
        Constant::Bool(_) => DType::Bool,
        _ => DType::Float,
    });
    let sizes = match known.sizes {
        Some(sizes) => known_dims(ctx.dims(sizes))?,
        None => Shape::new(),
    };
    if sizes.iter().any(|n| *n != 1) {
        return None;
    }
    let value = number.as_float()?;
    let data = build(dtype, &sizes, &[value], known.device.unwrap_or(Device::CPU))?;
    // An i64 may not be representable as a double.
    let data = match (number, dtype) {
        (Constant::Int(i), DType::Long) => {
            TensorData::contiguous(DType::Long, &sizes, i.to_le_bytes().to_vec()).ok()?
        }
        _ => data,
    };
    let data = fit(ctx, Arc::new(data), &known);
    Some(Arc::unwrap_or_clone(data))
}

fn known_dims(dims: &[Dim]) -> Option<Shape> {
    dims.iter()
        .map(|d| match d {
            Dim::Known(n) => Some(*n),
            Dim::Unknown | Dim::Symbolic(_) => None,
        })
        .collect()
}

/// Returns `data` with the strides and the `requires_grad` flag of its type, which are not in the text of a tensor.
pub(crate) fn fit(ctx: &Context, data: Arc<TensorData>, ty: &TensorType) -> Arc<TensorData> {
    let strides = ty.strides.and_then(|s| known_dims(ctx.dims(s)));
    let grad = ty.requires_grad.unwrap_or(data.requires_grad);
    let strides = strides.filter(|s| s.len() == data.rank() && *s != data.strides);
    if strides.is_none() && grad == data.requires_grad {
        return data;
    }
    let mut out = match strides.and_then(|s| restride(&data, s)) {
        Some(restrided) => restrided,
        None => TensorData::clone(&data),
    };
    out.requires_grad = grad;
    Arc::new(out)
}

/// Returns a tensor with the same elements and other strides; `None` if elements would overlap or have large gaps.
fn restride(data: &TensorData, strides: Shape) -> Option<TensorData> {
    let size = data.dtype.size();
    let mut last = 0i64;
    for (n, s) in data.sizes.iter().zip(&strides) {
        last = last.checked_add((n - 1).max(0).checked_mul(*s)?)?;
    }
    if data.numel() == 0 || last < 0 || last > 64 * data.numel() {
        return None;
    }
    let mut bytes = vec![0; (last as usize + 1) * size];
    let source = data.to_bytes();
    let mut index: Shape = data.sizes.iter().map(|_| 0).collect();
    for element in source.chunks_exact(size) {
        let at: i64 = index.iter().zip(&strides).map(|(i, s)| i * s).sum();
        bytes
            .get_mut(at as usize * size..(at as usize + 1) * size)?
            .copy_from_slice(element);
        for (i, &n) in index.iter_mut().zip(&data.sizes).rev() {
            *i += 1;
            if *i < n {
                break;
            }
            *i = 0;
        }
    }
    let storage = Arc::new(Storage::new(Arc::new(bytes), data.storage.device()));
    let out = TensorData::new(data.dtype, data.sizes.clone(), strides, 0, storage).ok()?;
    (out.to_bytes() == source).then_some(out)
}

/// Returns true if printing `data` results exactly in `text`.
pub(crate) fn is_exact(data: &TensorData, text: &str) -> bool {
    tensor::show(data).is_some_and(|shown| shown == text)
}
