//! Printing of tensors as PyTorch does inside graphs: up to ten elements in full, larger tensors as `<Tensor>`.

use frazil_ir::literal;
use frazil_ir::{DType, DeviceKind, TensorData};
use half::{bf16, f16};
use std::fmt::Write;

/// Maximum number of elements of a tensor that is printed completely.
const MAX_SHOWN: i64 = 10;
/// Line width in characters above which the columns of matrices are split into groups.
const LINE: usize = 80;

/// Returns the printed form of a tensor; `None` for quantised dtypes, whose elements PyTorch does not print in graphs.
pub(crate) fn show(t: &TensorData) -> Option<String> {
    let numel = t.numel();
    if numel > MAX_SHOWN {
        return Some("<Tensor>".to_owned());
    }
    let mut out = String::new();
    if numel == 1 {
        out.push('{');
        match complex_elements(t).as_deref() {
            Some([(re, im)]) => {
                out.push('(');
                literal::general(*re, 6, &mut out);
                out.push(',');
                literal::general(*im, 6, &mut out);
                out.push(')');
            }
            _ if t.dtype == DType::Long => {
                let bytes: [u8; 8] = t.to_bytes().as_ref().try_into().ok()?;
                let _ = write!(out, "{}", i64::from_le_bytes(bytes));
            }
            _ if t.dtype.is_floating_point() => literal::general(*elements(t)?.first()?, 6, &mut out),
            _ => {
                let _ = write!(out, "{}", *elements(t)?.first()? as i64);
            }
        }
        out.push('}');
        return Some(out);
    }
    let values = match complex_elements(t) {
        // PyTorch's conversion to double drops the imaginary part.
        Some(complex) => complex.into_iter().map(|(re, _)| re).collect(),
        None => elements(t)?,
    };
    if numel > 0 {
        let sizes: Vec<usize> = t.sizes.iter().map(|n| *n as usize).collect();
        match sizes.as_slice() {
            [] => {}
            [_] => vector(&values, &mut out),
            [rows, columns] => matrix(&values, *rows, *columns, 0, &mut out),
            [outer @ .., rows, columns] => slices(&values, outer, *rows, *columns, &mut out),
        }
    }
    let device = match t.storage.device().kind {
        DeviceKind::Cpu => "CPU",
        DeviceKind::Cuda => "CUDA",
        DeviceKind::Meta => "Meta",
    };
    let sizes: Vec<String> = t.sizes.iter().map(i64::to_string).collect();
    let _ = write!(out, "[ {device}{}Type{{{}}} ]", t.dtype.type_name(), sizes.join(","));
    // Lines end in spaces here.
    Some(out.replace('\n', " "))
}

/// The number format that the elements of one printed group share.
struct Format {
    kind: Kind,
    scale: f64,
    width: usize,
}

enum Kind {
    General,
    Scientific,
    Fixed,
}

impl Format {
    /// Chooses the format by the range of the values, as PyTorch does.
    fn of(values: &[f64]) -> Format {
        let finite = || values.iter().copied().filter(|v| v.is_finite());
        let whole = finite().all(|v| v == v.ceil());
        let exponent = |v: f64| if v == 0.0 { 1.0 } else { v.log10().floor() + 1.0 };
        let magnitudes = || finite().map(f64::abs);
        let (low, high) = match magnitudes().next() {
            None => (1.0, 1.0),
            Some(first) => (
                exponent(magnitudes().fold(first, f64::min)),
                exponent(magnitudes().fold(first, f64::max)),
            ),
        };
        let plain = |kind, width| Format {
            kind,
            scale: 1.0,
            width,
        };
        if whole {
            return if high > 9.0 {
                plain(Kind::Scientific, 11)
            } else {
                plain(Kind::General, high as usize + 1)
            };
        }
        if high - low > 4.0 {
            let wide = high.abs() > 99.0 || low.abs() > 99.0;
            return plain(Kind::Scientific, 11 + usize::from(wide));
        }
        if !(0.0..=5.0).contains(&high) {
            return Format {
                kind: Kind::Fixed,
                scale: 10f64.powi(high as i32 - 1),
                width: 7,
            };
        }
        plain(Kind::Fixed, if high == 0.0 { 7 } else { high as usize + 6 })
    }

    fn element(&self, value: f64, out: &mut String) {
        let mut text = String::new();
        let value = value / self.scale;
        match self.kind {
            Kind::General => literal::general(value, 6, &mut text),
            Kind::Scientific => literal::scientific4(value, &mut text),
            Kind::Fixed => literal::fixed4(value, &mut text),
        }
        let _ = write!(out, "{text:>width$}", width = self.width);
    }

    /// Prints the line `0.01 *`, if the elements are scaled.
    fn scale_line(&self, out: &mut String) -> bool {
        if self.scale == 1.0 {
            return false;
        }
        literal::scale(self.scale, out);
        out.push_str(" *\n");
        true
    }
}

fn vector(values: &[f64], out: &mut String) {
    let format = Format::of(values);
    format.scale_line(out);
    for &v in values {
        format.element(v, out);
        out.push('\n');
    }
}

fn matrix(values: &[f64], rows: usize, columns: usize, indent: usize, out: &mut String) {
    let format = Format::of(values);
    let pad = |out: &mut String| out.extend(std::iter::repeat_n(' ', indent));
    let per_line = ((LINE - indent) / (format.width + 1)).max(1);
    pad(out);
    let mut first = 0;
    while first < columns {
        let end = (first + per_line).min(columns);
        if per_line < columns {
            if first != 0 {
                out.push('\n');
            }
            let _ = write!(out, "Columns {} to {end}", first + 1);
            pad(out);
        }
        let scaled = format.scale_line(out);
        if scaled {
            pad(out);
        }
        for row in 0..rows {
            for column in first..end {
                if let Some(v) = values.get(row * columns + column) {
                    format.element(*v, out);
                }
                out.push(if column + 1 == end { '\n' } else { ' ' });
            }
            if row + 1 < rows {
                pad(out);
                if scaled {
                    out.push(' ');
                }
            }
        }
        first = end;
    }
}

/// Prints the matrices of a tensor one after the other, with the first outer dimension varying fastest.
fn slices(values: &[f64], outer: &[usize], rows: usize, columns: usize, out: &mut String) {
    let mut index = vec![0; outer.len()];
    for n in 0..outer.iter().product::<usize>() {
        if n > 0 {
            out.push('\n');
        }
        out.push('(');
        for i in &index {
            let _ = write!(out, "{},", i + 1);
        }
        out.push_str(".,.) =\n");
        let at = index.iter().zip(outer).fold(0, |at, (i, n)| at * n + i) * rows * columns;
        matrix(
            values.get(at..at + rows * columns).unwrap_or_default(),
            rows,
            columns,
            1,
            out,
        );
        for (i, &n) in index.iter_mut().zip(outer) {
            *i += 1;
            if *i < n {
                break;
            }
            *i = 0;
        }
    }
}

/// Returns the elements of a complex tensor.
fn complex_elements(t: &TensorData) -> Option<Vec<(f64, f64)>> {
    let part = match t.dtype {
        DType::ComplexHalf => DType::Half,
        DType::ComplexFloat => DType::Float,
        DType::ComplexDouble => DType::Double,
        _ => return None,
    };
    let flat = decode(part, &t.to_bytes())?;
    Some(flat.chunks_exact(2).map(|c| (c[0], c[1])).collect())
}

/// Returns the elements as doubles; `None` for complex and quantised tensors.
fn elements(t: &TensorData) -> Option<Vec<f64>> {
    decode(t.dtype, &t.to_bytes())
}

fn decode(dtype: DType, bytes: &[u8]) -> Option<Vec<f64>> {
    fn all<const N: usize>(bytes: &[u8], read: impl Fn([u8; N]) -> f64) -> Vec<f64> {
        bytes.as_chunks::<N>().0.iter().map(|c| read(*c)).collect()
    }
    Some(match dtype {
        DType::Byte | DType::Bool => bytes.iter().map(|b| f64::from(*b)).collect(),
        DType::Char => all(bytes, |b| f64::from(i8::from_le_bytes(b))),
        DType::Short => all(bytes, |b| f64::from(i16::from_le_bytes(b))),
        DType::Int => all(bytes, |b| f64::from(i32::from_le_bytes(b))),
        DType::Long => all(bytes, |b| i64::from_le_bytes(b) as f64),
        DType::Half => all(bytes, |b| f16::from_le_bytes(b).to_f64()),
        DType::BFloat16 => all(bytes, |b| bf16::from_le_bytes(b).to_f64()),
        DType::Float => all(bytes, |b| f64::from(f32::from_le_bytes(b))),
        DType::Double => all(bytes, f64::from_le_bytes),
        _ => return None,
    })
}
