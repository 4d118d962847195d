//! Discrete Fourier transforms along one or more dimensions, computed in double precision.

use super::indexing::Axis;
use frazil_ir::DType;
use frazil_runtime::Tensor;
use frazil_runtime::args::wrap_dim;
use frazil_runtime::element::ComplexDoubleElement;
use frazil_runtime::entry::{Entry, Row};
use frazil_runtime::layout::{checked_numel, contiguous_strides};
use frazil_runtime::memory;
use frazil_runtime::op::{Call, OpError, Results, one};
use frazil_runtime::promote::{complex_of, real_of};
use frazil_runtime::value::Value;
use num_complex::Complex64;

pub(super) const ENTRIES: &[Row] = &[
    (
        "aten::fft_fft",
        Entry::kernel(|c| single(c, Kind::Complex, true)).fixed_sizes(),
    ),
    (
        "aten::fft_ifft",
        Entry::kernel(|c| single(c, Kind::Complex, false)).fixed_sizes(),
    ),
    (
        "aten::fft_rfft",
        Entry::kernel(|c| single(c, Kind::FromReal, true)).fixed_sizes(),
    ),
    (
        "aten::fft_irfft",
        Entry::kernel(|c| single(c, Kind::ToReal, false)).fixed_sizes(),
    ),
    (
        "aten::fft_hfft",
        Entry::kernel(|c| single(c, Kind::ToReal, true)).fixed_sizes(),
    ),
    (
        "aten::fft_ihfft",
        Entry::kernel(|c| single(c, Kind::FromReal, false)).fixed_sizes(),
    ),
    (
        "aten::fft_fft2",
        Entry::kernel(|c| several(c, Kind::Complex, true)).fixed_sizes(),
    ),
    (
        "aten::fft_fftn",
        Entry::kernel(|c| several(c, Kind::Complex, true)).fixed_sizes(),
    ),
    (
        "aten::fft_ifft2",
        Entry::kernel(|c| several(c, Kind::Complex, false)).fixed_sizes(),
    ),
    (
        "aten::fft_ifftn",
        Entry::kernel(|c| several(c, Kind::Complex, false)).fixed_sizes(),
    ),
    (
        "aten::fft_rfft2",
        Entry::kernel(|c| several(c, Kind::FromReal, true)).fixed_sizes(),
    ),
    (
        "aten::fft_rfftn",
        Entry::kernel(|c| several(c, Kind::FromReal, true)).fixed_sizes(),
    ),
    (
        "aten::fft_irfft2",
        Entry::kernel(|c| several(c, Kind::ToReal, false)).fixed_sizes(),
    ),
    (
        "aten::fft_irfftn",
        Entry::kernel(|c| several(c, Kind::ToReal, false)).fixed_sizes(),
    ),
    (
        "aten::fft_hfft2",
        Entry::kernel(|c| several(c, Kind::ToReal, true)).fixed_sizes(),
    ),
    (
        "aten::fft_hfftn",
        Entry::kernel(|c| several(c, Kind::ToReal, true)).fixed_sizes(),
    ),
    (
        "aten::fft_ihfft2",
        Entry::kernel(|c| several(c, Kind::FromReal, false)).fixed_sizes(),
    ),
    (
        "aten::fft_ihfftn",
        Entry::kernel(|c| several(c, Kind::FromReal, false)).fixed_sizes(),
    ),
];

/// The element types of a transform's input and output, along its last dimension.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// From complex to complex numbers.
    Complex,
    /// From real numbers to the non-redundant half of their complex spectrum.
    FromReal,
    /// From the non-redundant half of a spectrum to real numbers.
    ToReal,
}

/// A transform along one dimension: the number of elements (excess elements are dropped, missing elements are zero), whether the exponent is negative
/// (forward), and the factor of the results.
#[derive(Clone, Copy)]
struct Along {
    dim: usize,
    length: i64,
    forward: bool,
    scale: f64,
}

/// Returns the scale factor for the name of a normalisation. By default, the inverse transform is divided by the
/// length.
fn scale(norm: Option<&str>, length: i64, forward: bool) -> Result<f64, OpError> {
    let n = length as f64;
    match (norm, forward) {
        (Some("ortho"), _) => Ok(1.0 / n.sqrt()),
        (Some("forward"), true) | (None | Some("backward"), false) => Ok(1.0 / n),
        (Some("forward"), false) | (None | Some("backward"), true) => Ok(1.0),
        (Some(other), _) => Err(OpError::raised(format!("Invalid normalization mode: \"{other}\""))),
    }
}

/// Complex numbers in row-major order, with the sizes of their tensor.
struct Spectrum {
    sizes: Vec<i64>,
    values: Vec<Complex64>,
}

impl Spectrum {
    fn of(t: &Tensor) -> Result<Spectrum, OpError> {
        Ok(Spectrum {
            sizes: t.sizes().to_vec(),
            values: t.to_dtype(DType::ComplexDouble)?.to_vec(),
        })
    }

    /// Replaces each row along `dim` by the `length` numbers that `each` computes from the row.
    fn rows(
        &mut self,
        dim: usize,
        length: i64,
        mut each: impl FnMut(Vec<Complex64>) -> Vec<Complex64>,
    ) -> Result<(), OpError> {
        let mut sizes = self.sizes.clone();
        sizes[dim] = length;
        if checked_numel(&sizes).is_none_or(|n| n > 1 << 32) {
            return Err(OpError::raised("the result of the transform is too large"));
        }
        let inner: i64 = sizes[dim + 1..].iter().product();
        let outer: i64 = sizes[..dim].iter().product();
        let (inner, old) = (inner as usize, self.sizes[dim] as usize);
        let mut out = memory::filled(outer as usize * length as usize * inner, Complex64::ZERO)?;
        for o in 0..outer as usize {
            for i in 0..inner {
                let row = (0..old).map(|k| self.values[(o * old + k) * inner + i]).collect();
                for (k, value) in each(row).into_iter().take(length as usize).enumerate() {
                    out[(o * length as usize + k) * inner + i] = value;
                }
            }
        }
        (self.sizes, self.values) = (sizes, out);
        Ok(())
    }

    /// Executes one transform. `real` says that the original data is real, so that one half of the spectrum mirrors the other: self-mirrored elements have no
    /// imaginary part.
    fn transform(&mut self, along: Along, kind: Kind, real: bool) -> Result<(), OpError> {
        let n = along.length as usize;
        // The plan and a row of it, before they are made.
        memory::check_available(n.saturating_mul(4 * size_of::<Complex64>()))?;
        let in_place = plan(n, along.forward || real)?;
        let half = n / 2 + 1;
        let length = if kind == Kind::FromReal {
            half as i64
        } else {
            along.length
        };
        self.rows(along.dim, length, |mut row| {
            match kind {
                Kind::Complex | Kind::FromReal => row.resize(n, Complex64::ZERO),
                Kind::ToReal => {
                    // The other half mirrors the first; what has to be real there counts as real.
                    row.resize(half, Complex64::ZERO);
                    row[0].im = 0.0;
                    if n.is_multiple_of(2) {
                        row[half - 1].im = 0.0;
                    }
                    for k in half..n {
                        row.push(row[n - k].conj());
                    }
                }
            }
            // Results below the rounding error of the summation are set to zero, which is the exact result in most such cases.
            let noise = f64::EPSILON * row.iter().map(|x| x.l1_norm()).sum::<f64>();
            in_place(&mut row);
            for x in &mut row {
                for part in [&mut x.re, &mut x.im] {
                    *part = if part.abs() <= noise && noise.is_finite() {
                        0.0
                    } else {
                        *part * along.scale
                    };
                }
            }
            if real {
                row[0].im = 0.0;
                if n.is_multiple_of(2) {
                    row[half - 1].im = 0.0;
                }
                if !along.forward {
                    row.iter_mut().for_each(|x| *x = x.conj());
                }
            }
            row
        })
    }

    fn tensor(&self, dtype: DType) -> Result<Tensor, OpError> {
        Ok(Tensor::from_elements::<ComplexDoubleElement>(&self.values, &self.sizes)?.to_dtype(dtype)?)
    }
}

/// Returns an in-place transform of rows of `n` numbers, without scaling of the results.
#[cfg(feature = "fft")]
fn plan(n: usize, forward: bool) -> Result<impl Fn(&mut [Complex64]), OpError> {
    let mut planner = rustfft::FftPlanner::new();
    let plan = match forward {
        true => planner.plan_fft_forward(n),
        false => planner.plan_fft_inverse(n),
    };
    Ok(move |row: &mut [Complex64]| plan.process(row))
}

/// Returns an error: this build does not include Fourier transforms.
#[cfg(not(feature = "fft"))]
fn plan(_: usize, _: bool) -> Result<fn(&mut [Complex64]), OpError> {
    Err(super::needs_feature("aten::fft", "fft"))
}

/// Returns the dtype of the spectrum of a tensor `t`.
fn spectrum_dtype(t: &Tensor) -> Result<DType, OpError> {
    match t.dtype() {
        DType::Half | DType::BFloat16 | DType::ComplexHalf => {
            let name = t.dtype().type_name();
            Err(OpError::raised(format!("Unsupported dtype {name}")))
        }
        dtype => Ok(complex_of(dtype)),
    }
}

/// Applies the transforms of `plan` to `t`. `lone` says that the operator supports one dimension only.
fn transformed(t: &Tensor, kind: Kind, plan: &[Along], lone: bool) -> Result<Results, OpError> {
    let dtype = spectrum_dtype(t)?;
    if kind == Kind::FromReal && t.dtype().is_complex() {
        let dtype = t.dtype().type_name();
        return Err(OpError::raised(format!(
            "rfft expects a real input tensor, but got {dtype}"
        )));
    }
    if let Some(wrong) = plan.iter().find(|a| a.length < 1) {
        return Err(OpError::raised(format!(
            "Invalid number of data points ({}) specified",
            wrong.length
        )));
    }
    let mut spectrum = Spectrum::of(t)?;
    let Some((last, others)) = plan.split_last() else {
        return one(spectrum.tensor(dtype)?);
    };
    // The half that is left of a real dimension is made first, and taken up last.
    let real = !t.dtype().is_complex() && kind != Kind::ToReal;
    if real {
        spectrum.transform(*last, kind, true)?;
    }
    for along in others {
        spectrum.transform(*along, Kind::Complex, false)?;
    }
    if !real {
        spectrum.transform(*last, kind, false)?;
    }
    // The transform back of real numbers is the other one's conjugate, which is a mark.
    let conjugate = real && !last.forward && plan.len() == 1 && (lone || kind == Kind::FromReal);
    if conjugate {
        spectrum.values.iter_mut().for_each(|z| *z = z.conj());
    }
    let out = spectrum.tensor(if kind == Kind::ToReal { real_of(dtype) } else { dtype })?;
    let out = out.with_strides(&strides(t, kind, real, plan, out.sizes()))?;
    one(match conjugate {
        true => out.with_marks(out.marks().conjugated()),
        false => out,
    })
}

/// Returns the strides of a result of sizes `sizes`. Each pass over dimensions makes these innermost, and keeps the order of all other dimensions.
fn strides(t: &Tensor, kind: Kind, real: bool, plan: &[Along], sizes: &[i64]) -> Vec<i64> {
    let mut dims: Vec<usize> = plan.iter().map(|a| a.dim).collect();
    let mut strides = t.strides().to_vec();
    if plan.iter().any(|a| a.length > t.sizes()[a.dim]) {
        // Padded with zeros in new memory.
        strides = contiguous_strides(sizes).to_vec();
    }
    let Some(last) = dims.pop() else {
        return contiguous_strides(sizes).to_vec();
    };
    let pass = |strides: &mut Vec<i64>, others: &[usize], last: Option<usize>| {
        let transformed = |d: &usize| others.contains(d) || last == Some(*d);
        let mut order: Vec<usize> = (0..sizes.len()).filter(|d| !transformed(d)).collect();
        let mut inner = others.to_vec();
        for dims in [&mut order, &mut inner] {
            dims.sort_by_key(|&d| std::cmp::Reverse(strides[d]));
        }
        order.extend(inner.into_iter().chain(last));
        let mut stride = 1;
        for &d in order.iter().rev() {
            strides[d] = stride;
            stride *= sizes[d].max(1);
        }
    };
    match kind {
        Kind::ToReal => {
            if !dims.is_empty() {
                pass(&mut strides, &dims, None);
            }
            pass(&mut strides, &[], Some(last));
        }
        Kind::FromReal if plan.iter().any(|a| !a.forward) => {
            pass(&mut strides, &[], Some(last));
            if !dims.is_empty() {
                pass(&mut strides, &dims, None);
            }
        }
        _ if real => pass(&mut strides, &dims, Some(last)),
        _ => {
            dims.push(last);
            pass(&mut strides, &dims, None);
        }
    }
    strides
}

/// Implements transforms along one dimension, with the arguments `(self, n, dim, norm)`.
fn single(call: &Call<'_>, kind: Kind, forward: bool) -> Result<Results, OpError> {
    let t = call.tensor(0)?;
    if t.dim() == 0 {
        return Err(OpError::raised(
            "Dimension specified as -1 but tensor has no dimensions",
        ));
    }
    let dim = wrap_dim(call.int(2)?, t.dim())?;
    let size = Axis::of(&t, dim).size;
    let length = match call.opt_int(1)? {
        Some(n) => n,
        None if kind == Kind::ToReal => 2 * (size - 1),
        None => size,
    };
    let scale = scale(call.arg(3).as_str(), length, forward)?;
    let along = Along {
        dim,
        length,
        forward,
        scale,
    };
    transformed(&t, kind, &[along], true)
}

/// Implements transforms along several dimensions, with the arguments `(self, s, dim, norm)`.
fn several(call: &Call<'_>, kind: Kind, forward: bool) -> Result<Results, OpError> {
    let t = call.tensor(0)?;
    let rank = t.dim();
    let given = |i: usize| match call.arg(i) {
        Value::None => Ok(None),
        _ => call.ints(i).map(Some),
    };
    let (lengths, dims) = (given(1)?, given(2)?);
    if let (0, Some([first, ..])) = (rank, dims.as_deref()) {
        return Err(OpError::raised(format!(
            "Dimension specified as {first} but tensor has no dimensions"
        )));
    }
    let dims: Vec<usize> = match (&dims, &lengths) {
        (Some(dims), _) => dims.iter().map(|&d| wrap_dim(d, rank)).collect::<Result<_, _>>()?,
        (None, Some(lengths)) if lengths.len() <= rank => (rank - lengths.len()..rank).collect(),
        (None, Some(_)) => {
            return Err(OpError::raised(
                "Got shape with more values than the input tensor has dimensions.",
            ));
        }
        (None, None) => (0..rank).collect(),
    };
    if (1..dims.len()).any(|i| dims[..i].contains(&dims[i])) {
        return Err(OpError::raised("FFT dims must be unique"));
    }
    if lengths.as_ref().is_some_and(|l| l.len() != dims.len()) {
        return Err(OpError::raised(
            "When given, dim and shape arguments must have the same length",
        ));
    }
    if dims.is_empty() && kind != Kind::Complex {
        return Err(OpError::raised("at least one axis must be transformed"));
    }
    let mut plan = Vec::new();
    for (i, &dim) in dims.iter().enumerate() {
        let size = Axis::of(&t, dim).size;
        let length = match lengths.as_ref().map(|l| l[i]) {
            Some(n) if n != -1 => n,
            _ if kind == Kind::ToReal && i + 1 == dims.len() => 2 * (size - 1),
            _ => size,
        };
        plan.push(Along {
            dim,
            length,
            forward,
            scale: scale(call.arg(3).as_str(), length, forward)?,
        });
    }
    transformed(&t, kind, &plan, false)
}
