//! Interpolation with weights computed per output element, in two cases. With antialiasing, the window grows with the scale. For bytes, PyTorch rounds weights
//! to sixteen bits, and rounds after each dimension.

use super::interpolate::{self, Axis, Kind};
use frazil_ir::DType;
use frazil_runtime::Tensor;
use frazil_runtime::call::args_of;
use frazil_runtime::element::DoubleElement;
use frazil_runtime::entry::{Entry, ResultLayout, Row};
use frazil_runtime::memory;
use frazil_runtime::op::{Call, OpError, Results, one};

/// The weight of an input element as a function of its distance x from the sampled position.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Filter {
    /// 1 - |x|.
    Triangle,
    /// Keys' cubic kernel, with a = -½ with antialiasing and -¾ without.
    Cubic,
    /// sinc(x) · sinc(x / 3), with sinc(x) = sin(πx) / πx.
    Lanczos,
}

pub(super) const ENTRIES: &[Row] = &[
    (
        "aten::_upsample_bilinear2d_aa",
        Entry::kernel(|c| resampled(c, 2, Filter::Triangle, true)).layout(ResultLayout::ChannelsLast(3)),
    ),
    (
        "aten::_upsample_bicubic2d_aa",
        Entry::kernel(|c| resampled(c, 2, Filter::Cubic, true)).layout(ResultLayout::ChannelsLast(3)),
    ),
    (
        "aten::_upsample_lanczos2d_aa",
        Entry::kernel(|c| resampled(c, 2, Filter::Lanczos, true)).layout(ResultLayout::ChannelsLast(3)),
    ),
];

/// Implements linear interpolation; see [`either`].
pub(super) fn linear(call: &Call<'_>) -> Result<Results, OpError> {
    either(call, Kind::Linear)
}

/// Implements interpolation by cubic polynomials; see [`either`].
pub(super) fn cubic(call: &Call<'_>) -> Result<Results, OpError> {
    either(call, Kind::Cubic)
}

/// Interpolates bytes with the kernels of this module, and elements of other dtypes with the operator's program.
fn either(call: &Call<'_>, kind: Kind) -> Result<Results, OpError> {
    if call.tensor(0)?.dtype() != DType::Byte {
        return frazil_runtime::call::run_as_program(call, |args| interpolate::resized(args, 2, kind));
    }
    let filter = if kind == Kind::Cubic {
        Filter::Cubic
    } else {
        Filter::Triangle
    };
    resampled(call, 2, filter, false)
}

impl Filter {
    fn radius(self) -> f64 {
        match self {
            Filter::Triangle => 1.0,
            Filter::Cubic => 2.0,
            Filter::Lanczos => 3.0,
        }
    }

    fn at(self, x: f64, antialias: bool) -> f64 {
        let x = x.abs();
        let a = if antialias { -0.5 } else { -0.75 };
        match self {
            Filter::Triangle => (1.0 - x).max(0.0),
            Filter::Cubic if x < 1.0 => ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0,
            Filter::Cubic if x < 2.0 => ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a,
            Filter::Cubic => 0.0,
            Filter::Lanczos if x < 3.0 => sinc(x) * sinc(x / 3.0),
            Filter::Lanczos => 0.0,
        }
    }
}

/// Returns sin(πx) / πx.
fn sinc(x: f64) -> f64 {
    let x = std::f64::consts::PI * x;
    if x == 0.0 { 1.0 } else { x.sin() / x }
}

/// The input elements that an output element reads: the index of the first element, and the weights of consecutive elements.
struct Window {
    first: usize,
    weights: Vec<f64>,
}

fn windows(axis: &Axis, filter: Filter, antialias: bool) -> Result<Vec<Window>, OpError> {
    let window = |o: i64| {
        if antialias {
            wide_window(axis, filter, o)
        } else {
            narrow_window(axis, filter, o)
        }
    };
    // Bytes of a window and of its weights, of which few are more than there are inputs for an output.
    let taps = axis.input / axis.output.max(1) + 8;
    memory::check_items(axis.output, size_of::<Window>() + 8 * taps as usize)?;
    Ok((0..axis.output).map(window).collect())
}

/// Returns the input elements within the filter's radius of an output element. The radius is larger if the image shrinks.
fn wide_window(axis: &Axis, filter: Filter, output: i64) -> Window {
    let widening = axis.scale.max(1.0);
    let radius = filter.radius() * widening;
    let longest = radius.ceil() as i64 * 2 + 1;
    let centre = axis.scale * (output as f64 + 0.5);
    let first = ((centre - radius + 0.5) as i64).max(0);
    let count = (((centre + radius + 0.5) as i64).min(axis.input) - first).clamp(0, longest);
    let mut weights: Vec<f64> = (0..count)
        .map(|j| filter.at(((j + first) as f64 - centre + 0.5) / widening, true))
        .collect();
    let total: f64 = weights.iter().sum();
    if total != 0.0 {
        weights.iter_mut().for_each(|w| *w /= total);
    }
    Window {
        first: first as usize,
        weights,
    }
}

/// Returns the two or four nearest input elements. Positions outside of the input are replaced by the nearest element inside.
fn narrow_window(axis: &Axis, filter: Filter, output: i64) -> Window {
    let place = axis.scale * output as f64;
    let centred = axis.scale * (output as f64 + 0.5) - 0.5;
    let place = match filter {
        _ if axis.align_corners => place,
        Filter::Triangle => centred.max(0.0),
        Filter::Cubic | Filter::Lanczos => centred,
    };
    let at = (place.floor() as i64).min(axis.input - 1);
    let fraction = (place - at as f64).clamp(0.0, 1.0);
    let radius = filter.radius() as i64;
    let inside = |i: i64| i.clamp(0, axis.input - 1);
    let (low, high) = (at - radius + 1, at + radius);
    let first = inside(low);
    let mut weights = vec![0.0; (inside(high) - first + 1) as usize];
    for i in low..=high {
        weights[(inside(i) - first) as usize] += filter.at((i - at) as f64 - fraction, false);
    }
    Window {
        first: first as usize,
        weights,
    }
}

/// Returns the weights as 16-bit fixed-point integers with as many fractional bits as fit, and the number of fractional bits.
fn fixed_point(windows: &[Window]) -> (Vec<Vec<i64>>, u32) {
    let largest = windows.iter().flat_map(|w| &w.weights).fold(0.0f64, |m, &w| m.max(w));
    let overflows = |bits: &u32| 0.5 + largest * f64::from(1u32 << (bits + 1)) >= f64::from(1 << 15);
    let bits = (0..22).find(overflows).unwrap_or(22);
    let rounded = |w: &f64| {
        let scaled = w * f64::from(1u32 << bits);
        (if scaled < 0.0 { scaled - 0.5 } else { scaled + 0.5 }) as i64
    };
    (
        windows
            .iter()
            .map(|w| w.weights.iter().map(rounded).collect())
            .collect(),
        bits,
    )
}

/// Returns `values`, of shape `[outer, axis.input, inner]`, interpolated along the middle dimension.
fn along(values: &[f64], inner: usize, axis: &Axis, windows: &[Window], bytes: bool) -> Result<Vec<f64>, OpError> {
    let (integers, bits) = if bytes { fixed_point(windows) } else { (Vec::new(), 0) };
    let plane = axis.input as usize * inner;
    let images = values.len() / plane.max(1);
    let mut out = memory::with_capacity(images.saturating_mul(windows.len()).saturating_mul(inner))?;
    for image in values.chunks_exact(plane.max(1)) {
        for (o, window) in windows.iter().enumerate() {
            for i in 0..inner {
                let taps = image.iter().skip(window.first * inner + i).step_by(inner);
                out.push(if bytes {
                    let half = (1i64 << bits) / 2;
                    let sum: i64 = taps.zip(&integers[o]).map(|(&x, w)| x as i64 * w).sum();
                    ((sum + half) >> bits).clamp(0, 255) as f64
                } else {
                    taps.zip(&window.weights).map(|(x, w)| x * w).sum()
                });
            }
        }
    }
    Ok(out)
}

fn resampled(call: &Call<'_>, n: usize, filter: Filter, antialias: bool) -> Result<Results, OpError> {
    let t = call.tensor(0)?;
    let (args, _) = args_of(call.ctx, call.schema, call.args);
    let axes = interpolate::axes_of(&args, n)?;
    let bytes = t.dtype() == DType::Byte;
    if !(bytes || t.dtype().is_floating_point()) {
        let (name, dtype) = (call.ctx.name(call.schema.name), t.dtype().type_name());
        return Err(OpError::raised(format!("\"{name}\" not implemented for '{dtype}'")));
    }
    let mut sizes = t.sizes().to_vec();
    for (size, axis) in sizes[2..].iter_mut().zip(&axes) {
        *size = axis.output;
    }
    // Checks the sizes before anything is computed.
    let empty = Tensor::zeros(t.dtype(), &sizes)?;
    if empty.numel() == 0 {
        return one(empty);
    }
    let mut values = t.to_f64_vec();
    let mut sizes = t.sizes().to_vec();
    // The last dimension first.
    for (i, axis) in axes.iter().enumerate().rev() {
        if axis.input != axis.output {
            let inner: i64 = sizes[3 + i..].iter().product();
            let windows = windows(axis, filter, antialias)?;
            values = along(&values, inner as usize, axis, &windows, bytes)?;
            sizes[2 + i] = axis.output;
        }
    }
    one(Tensor::from_elements::<DoubleElement>(&values, &sizes)?.to_dtype(t.dtype())?)
}
