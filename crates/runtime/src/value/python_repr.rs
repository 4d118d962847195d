//! The text of values in Python's `repr`, and of tensors as PyTorch prints them, for messages about the arguments of a call.

use crate::tensor::Tensor;
use crate::value::Value;
use crate::value::format::{exponential, general};
use frazil_ir::nesting::with_stack;
use frazil_ir::{Context, DType};
use num_complex::Complex64;
use std::fmt::Write;

/// Maximum number of elements of a tensor that is printed completely.
const THRESHOLD: i64 = 1000;

/// Number of elements printed at each end of a dimension of a larger tensor.
const EDGE: i64 = 3;

/// Maximum length of a printed line, in characters.
const LINE: usize = 80;

/// Returns Python's `repr(value)`.
pub fn repr(ctx: &Context, value: &Value) -> String {
    let mut out = String::new();
    write_value(ctx, value, &mut out);
    out
}

/// Returns Python's `str(value)`, which differs from [`repr`] for strings and devices.
pub fn str(ctx: &Context, value: &Value) -> String {
    match value {
        Value::Str(text) => text.to_string(),
        Value::Device(device) => device.to_string(),
        other => repr(ctx, other),
    }
}

fn write_value(ctx: &Context, value: &Value, out: &mut String) {
    match value {
        Value::None => out.push_str("None"),
        Value::Bool(b) => out.push_str(if *b { "True" } else { "False" }),
        Value::Int(i) => out.push_str(&i.to_string()),
        Value::Float(f) => out.push_str(&float(*f, true)),
        Value::Complex(c) => out.push_str(&complex(*c)),
        Value::Str(s) => string(s, out),
        Value::Device(device) => {
            let text = device.to_string();
            let _ = match text.split_once(':') {
                Some((kind, index)) => write!(out, "device(type='{kind}', index={index})"),
                None => write!(out, "device(type='{text}')"),
            };
        }
        Value::Tensor(t) => out.push_str(&tensor(&t.get())),
        Value::List(l) => sequence(ctx, &l.items(), ["[", "]"], out),
        Value::Tuple(t) if t.items.len() == 1 => sequence(ctx, &t.items, ["(", ",)"], out),
        Value::Tuple(t) => sequence(ctx, &t.items, ["(", ")"], out),
        Value::Dict(d) => {
            let entries = d.with(|e| e.iter().map(|(k, v)| (k.0.clone(), v.clone())).collect::<Vec<_>>());
            out.push('{');
            for (i, (key, value)) in entries.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                with_stack(|| write_value(ctx, key, out));
                out.push_str(": ");
                with_stack(|| write_value(ctx, value, out));
            }
            out.push('}');
        }
        Value::Object(o) => {
            let _ = write!(out, "<{} object>", ctx.name(o.class()));
        }
        Value::Enum(member) => {
            let class = ctx.name(member.class).rsplit('.').next().unwrap_or_default();
            let _ = write!(out, "<{class}.{}: {}>", member.name, repr(ctx, &member.value));
        }
        Value::Future(_) => out.push_str("<torch.jit.Future object>"),
        Value::Function(name) => out.push_str(ctx.name(*name)),
    }
}

fn sequence(ctx: &Context, items: &[Value], [open, close]: [&str; 2], out: &mut String) {
    out.push_str(open);
    for (i, item) in items.iter().enumerate() {
        out.push_str(if i > 0 { ", " } else { "" });
        with_stack(|| write_value(ctx, item, out));
    }
    out.push_str(close);
}

/// Returns the shortest text that is read back as `f`. With `point`, whole numbers end in `.0`.
fn float(f: f64, point: bool) -> String {
    if !f.is_finite() {
        return general(f, 17);
    }
    let scientific = format!("{f:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    let plain = f.to_string();
    match point && !plain.contains('.') {
        true => plain + ".0",
        false => plain,
    }
}

fn complex(c: Complex64) -> String {
    let imaginary = float(c.im, false);
    if c.re == 0.0 && c.re.is_sign_positive() {
        return format!("{imaginary}j");
    }
    let sign = if imaginary.starts_with('-') { "" } else { "+" };
    format!("({}{sign}{imaginary}j)", float(c.re, false))
}

fn string(text: &str, out: &mut String) {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    out.push(quote);
    for c in text.chars() {
        let _ = match c {
            '\\' => write!(out, "\\\\"),
            '\n' => write!(out, "\\n"),
            '\r' => write!(out, "\\r"),
            '\t' => write!(out, "\\t"),
            c if c == quote => write!(out, "\\{c}"),
            c if is_printable(c) => write!(out, "{c}"),
            c if (c as u32) < 0x100 => write!(out, "\\x{:02x}", c as u32),
            c if (c as u32) < 0x1_0000 => write!(out, "\\u{:04x}", c as u32),
            c => write!(out, "\\U{:08x}", c as u32),
        };
    }
    out.push(quote);
}

/// Returns the result of Python's `str.isprintable` for a character: false for the characters that Rust escapes, too.
fn is_printable(c: char) -> bool {
    c == '"' || c == '\'' || format!("a{c}").escape_debug().count() == 2
}

/// Returns the text of a tensor as PyTorch prints it with default options.
fn tensor(tensor: &Tensor) -> String {
    let dtype = tensor.dtype();
    let mut text = "tensor(".to_owned();
    let indent = text.len();
    let mut notes = Vec::new();
    let is_usual = matches!(dtype, DType::Float | DType::Long | DType::Bool | DType::ComplexFloat);
    if tensor.numel() == 0 {
        text += "[]";
        if tensor.dim() != 1 {
            let sizes: Vec<String> = tensor.sizes().iter().map(i64::to_string).collect();
            notes.push(format!("size=({})", sizes.join(", ")));
        }
        if dtype != DType::Float {
            notes.push(format!("dtype={dtype}"));
        }
    } else {
        let printed = Printed::new(tensor);
        text += &printed.block(tensor.sizes(), &mut Vec::new(), indent);
        if !is_usual {
            notes.push(format!("dtype={dtype}"));
        }
    }
    let mut column = text.len() - text.rfind('\n').map_or(0, |at| at + 1) + 2;
    for note in notes {
        if column + note.len() + 2 > LINE {
            let _ = write!(text, ",\n{:indent$}{note}", "");
            column = indent + note.len();
        } else {
            let _ = write!(text, ", {note}");
            column += note.len() + 2;
        }
    }
    text + ")"
}

/// The printed elements of a tensor, padded to a common width.
struct Printed {
    strides: Vec<i64>,
    /// The printed elements, in row-major order.
    elements: Vec<String>,
    /// The width of an element in a line, in characters. Some elements may be wider.
    width: usize,
    /// For a tensor that is printed in part, the positions of the printed elements in order.
    positions: Option<Vec<i64>>,
}

/// Returns the real and the imaginary parts of a complex tensor's elements.
fn parts(tensor: &Tensor) -> (Vec<f64>, Vec<f64>) {
    let doubles = tensor
        .to_dtype(DType::ComplexDouble)
        .and_then(|t| t.to_bytes())
        .unwrap_or_default();
    let (numbers, _) = doubles.as_chunks::<8>();
    let (pairs, _) = numbers.as_chunks::<2>();
    pairs
        .iter()
        .map(|[re, im]| (f64::from_le_bytes(*re), f64::from_le_bytes(*im)))
        .unzip()
}

/// Returns the texts of numbers in one notation and width, which depend on the finite nonzero numbers.
fn numbers(shown: &[f64]) -> (Vec<String>, usize) {
    let style = FloatStyle::of(shown);
    let counted = shown.iter().filter(|x| x.is_finite() && **x != 0.0);
    let width = counted.map(|&x| style.text(x).len()).max().unwrap_or(1);
    let texts = shown.iter().map(|&x| format!("{:>width$}", style.text(x)));
    (texts.collect(), width)
}

impl Printed {
    fn new(tensor: &Tensor) -> Printed {
        let strides = frazil_ir::contiguous_strides(tensor.sizes()).to_vec();
        let dtype = tensor.dtype();
        let in_part = tensor.numel() > THRESHOLD;
        let positions: Option<Vec<i64>> = in_part.then(|| shown_positions(tensor.sizes(), &strides).collect());
        let (elements, width) = match dtype {
            d if d.is_complex() => {
                let (re, im) = parts(tensor);
                let (re, width) = numbers(&picked(re, positions.as_deref()));
                let (im, imaginary) = numbers(&picked(im, positions.as_deref()));
                let joined = re.iter().zip(&im).map(|(re, im)| {
                    let im = im.trim_start();
                    format!("{re}{}{im}j", if im.starts_with('-') { "" } else { "+" })
                });
                (joined.collect(), width + imaginary + 1)
            }
            d if d.is_floating_point() => numbers(&picked(tensor.to_f64_vec(), positions.as_deref())),
            _ => {
                let text = |&x: &i64| match (dtype, x) {
                    (DType::Bool, 0) => "False".to_owned(),
                    (DType::Bool, _) => "True".to_owned(),
                    _ => x.to_string(),
                };
                let plain: Vec<String> = picked(tensor.to_i64_vec(), positions.as_deref())
                    .iter()
                    .map(text)
                    .collect();
                let width = plain.iter().map(String::len).max().unwrap_or(1);
                (plain.iter().map(|text| format!("{text:>width$}")).collect(), width)
            }
        };
        Printed {
            strides,
            elements,
            width,
            positions,
        }
    }

    fn element(&self, index: &[i64]) -> String {
        let at: i64 = index.iter().zip(&self.strides).map(|(i, s)| i * s).sum();
        let number = match &self.positions {
            Some(positions) => positions.binary_search(&at).ok(),
            None => usize::try_from(at).ok(),
        };
        number.and_then(|n| self.elements.get(n).cloned()).unwrap_or_default()
    }

    /// Returns the text of the subtensor at `index`, whose sizes are `sizes`.
    fn block(&self, sizes: &[i64], index: &mut Vec<i64>, indent: usize) -> String {
        let Some((&size, inner)) = sizes.split_first() else {
            return self.element(index);
        };
        let is_cut = self.positions.is_some() && size > 2 * EDGE;
        let mut parts = Vec::new();
        for i in 0..size {
            if is_cut && i == EDGE {
                parts.push(if inner.is_empty() { " ..." } else { "..." }.to_owned());
            }
            if is_cut && i >= EDGE && i < size - EDGE {
                continue;
            }
            index.push(i);
            parts.push(self.block(inner, index, indent + 1));
            index.pop();
        }
        let separator = |lines: usize| format!(",{}{:indent$} ", "\n".repeat(lines), "");
        if !inner.is_empty() {
            return format!("[{}]", parts.join(&separator(inner.len())));
        }
        let per_line = (LINE.saturating_sub(indent) / (self.width + 2)).max(1);
        let lines: Vec<String> = parts.chunks(per_line).map(|line| line.join(", ")).collect();
        format!("[{}]", lines.join(&separator(1)))
    }
}

/// Returns the elements of `all` at `positions`; all elements for `None`.
fn picked<T: Copy>(all: Vec<T>, positions: Option<&[i64]>) -> Vec<T> {
    match positions {
        Some(positions) => positions
            .iter()
            .filter_map(|&at| all.get(at as usize).copied())
            .collect(),
        None => all,
    }
}

/// Returns the positions of the elements that are printed of a tensor that is printed in part.
fn shown_positions(sizes: &[i64], strides: &[i64]) -> impl Iterator<Item = i64> {
    let mut positions = vec![0];
    for (&size, &stride) in sizes.iter().zip(strides) {
        let shown = (0..size).filter(move |&i| size <= 2 * EDGE || i < EDGE || i >= size - EDGE);
        let shown: Vec<i64> = shown.collect();
        positions = positions
            .iter()
            .flat_map(|p| shown.iter().map(move |i| p + i * stride))
            .collect();
    }
    positions.into_iter()
}

/// The notation that PyTorch's printer chooses for the numbers of a tensor.
enum FloatStyle {
    /// `3.`.
    Whole,
    /// `3.1416`.
    Fixed,
    /// `3.1416e+10`.
    Scientific,
}

impl FloatStyle {
    fn of(elements: &[f64]) -> FloatStyle {
        let finite = || elements.iter().filter(|x| x.is_finite() && **x != 0.0);
        let is_whole = finite().all(|x| *x == x.ceil());
        let least = finite().map(|x| x.abs()).fold(f64::INFINITY, f64::min);
        let most = finite().map(|x| x.abs()).fold(0.0, f64::max);
        match finite().next() {
            None => FloatStyle::Whole,
            Some(_) if most / least > 1000.0 || most > 1.0e8 => FloatStyle::Scientific,
            Some(_) if is_whole => FloatStyle::Whole,
            Some(_) if least < 1.0e-4 => FloatStyle::Scientific,
            Some(_) => FloatStyle::Fixed,
        }
    }

    fn text(&self, x: f64) -> String {
        match self {
            _ if !x.is_finite() => general(x, 4),
            FloatStyle::Whole => format!("{x:.0}."),
            FloatStyle::Fixed => format!("{x:.4}"),
            FloatStyle::Scientific => exponential(x, 4),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected texts are those of Python 3.11 and PyTorch 2.15.
    #[test]
    fn values_print_as_in_python() {
        let ctx = Context::new();
        let show = |value: Value| repr(&ctx, &value);
        for (value, text) in [
            (1.5, "1.5"),
            (2.0, "2.0"),
            (-0.0, "-0.0"),
            (1e20, "1e+20"),
            (1e15, "1000000000000000.0"),
            (1.5e-7, "1.5e-07"),
            (0.0001, "0.0001"),
            (f64::NAN, "nan"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(show(Value::Float(value)), text);
        }
        assert_eq!(show(Value::Complex(Complex64::new(1.0, 2.0))), "(1+2j)");
        assert_eq!(show(Value::Complex(Complex64::new(0.0, -2.5))), "-2.5j");
        assert_eq!(show(Value::str("a'b")), "\"a'b\"");
        assert_eq!(show(Value::str("a\nb'c\"")), "'a\\nb\\'c\"'");
        assert_eq!(
            show(Value::str(
                "\u{7f}\u{a0}\u{2028}\u{200b}\u{e000}\u{301}\u{e0001}é\u{85}"
            )),
            "'\\x7f\\xa0\\u2028\\u200b\\ue000\u{301}\\U000e0001é\\x85'"
        );
        assert_eq!(show(Value::tuple(vec![Value::Int(1)])), "(1,)");
    }

    /// The expected texts are those of PyTorch 2.15.
    #[test]
    fn tensors_print_as_in_pytorch() {
        let floats = |data: &[f32], sizes: &[i64]| tensor(&Tensor::from_f32(data, sizes).expect("fits"));
        assert_eq!(floats(&[1.0, 2.0], &[2]), "tensor([1., 2.])");
        assert_eq!(floats(&[2.5], &[]), "tensor(2.5000)");
        assert_eq!(floats(&[1.0, f32::NAN, 10.0], &[3]), "tensor([ 1., nan, 10.])");
        assert_eq!(floats(&[0.001, 20.0], &[2]), "tensor([1.0000e-03, 2.0000e+01])");
        assert_eq!(floats(&[1.0, f32::INFINITY], &[2]), "tensor([1., inf])");
        assert_eq!(
            floats(&[0.0, 0.5, f32::NEG_INFINITY], &[3]),
            "tensor([0.0000, 0.5000,   -inf])"
        );
        assert_eq!(floats(&[], &[0]), "tensor([])");
        assert_eq!(floats(&[], &[0, 3]), "tensor([], size=(0, 3))");
        let twelve: Vec<f32> = (0..12).map(|i| i as f32).collect();
        assert_eq!(
            floats(&twelve, &[3, 4]),
            "tensor([[ 0.,  1.,  2.,  3.],\n        [ 4.,  5.,  6.,  7.],\n        [ 8.,  9., 10., 11.]])"
        );
        assert_eq!(
            tensor(&Tensor::zeros(DType::Float, &[2000]).expect("fits")),
            "tensor([0., 0., 0.,  ..., 0., 0., 0.])"
        );
        let complex = |data: &[f64], dtype| {
            let bytes: Vec<u8> = data.iter().flat_map(|x| x.to_le_bytes()).collect();
            let sizes = [data.len() as i64 / 2];
            let doubles = Tensor::from_bytes(DType::ComplexDouble, &sizes, &bytes).expect("fits");
            tensor(&doubles.to_dtype(dtype).expect("complex"))
        };
        let single = DType::ComplexFloat;
        assert_eq!(
            complex(&[1.0, 2.0, 3.5, -1.0], single),
            "tensor([1.0000+2.j, 3.5000-1.j])"
        );
        assert_eq!(
            complex(&[1.5, 2.25, 1e5, 0.0], single),
            "tensor([1.5000e+00+2.2500j, 1.0000e+05+0.0000j])"
        );
        assert_eq!(
            complex(&[f64::NAN, f64::INFINITY, 1.0, 1.0], single),
            "tensor([nan+infj, 1.+1.j])"
        );
        assert_eq!(
            complex(&[0.0, 1.0, 2.0, 0.0], DType::ComplexDouble),
            "tensor([0.+1.j, 2.+0.j], dtype=torch.complex128)"
        );
        let twenty = complex(&[1.0, 2.0].repeat(20), single);
        assert_eq!(
            twenty
                .lines()
                .map(|line| line.matches("1.+2.j").count())
                .collect::<Vec<_>>(),
            [10, 10]
        );
        // The dtype gets a line of its own where it would end behind the 80th column.
        let bytes = |n: i64| tensor(&Tensor::zeros(DType::Char, &[n]).expect("fits"));
        assert!(bytes(17).ends_with("0], dtype=torch.int8)"));
        assert!(bytes(18).ends_with("0],\n       dtype=torch.int8)"));
        let ints = tensor(&Tensor::zeros(DType::Int, &[2]).expect("fits"));
        assert_eq!(ints, "tensor([0, 0], dtype=torch.int32)");
    }
}
