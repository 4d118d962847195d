//! Elementwise special functions, computed in double precision.

use super::special_functions::{self as f, Polynomial};
use frazil_ir::DType;
use frazil_ir::schema::AliasUse;
use frazil_runtime::Tensor;
use frazil_runtime::build::broadcast_error;
use frazil_runtime::call::laid_out_as;
use frazil_runtime::element::DoubleElement;
use frazil_runtime::entry::{Entry, Row};
use frazil_runtime::layout::broadcast;
use frazil_runtime::op::{Call, OpError, Results, one};
use frazil_runtime::promote::ResultType;
use frazil_runtime::value::Value;

/// Defines a kernel for a unary function.
macro_rules! unary {
    ($function:path) => {
        Entry::kernel(|c| unary(c, $function))
    };
}

/// Defines a kernel for a binary function.
macro_rules! binary {
    ($function:path) => {
        Entry::kernel(|c| binary(c, $function))
    };
}

/// Defines a kernel for a family of polynomials.
macro_rules! polynomials {
    ($family:ident) => {
        Entry::kernel(|c| binary_as(c, |x, n, single| f::polynomial(Polynomial::$family, x, n, single)))
    };
}

/// Defines a kernel for a family of polynomials whose domain is shifted from [-1, 1] to [0, 1].
macro_rules! shifted {
    ($family:ident) => {
        Entry::kernel(|c| {
            binary_as(c, |x, n, single| {
                f::polynomial(Polynomial::$family, 2.0 * x - 1.0, n, single)
            })
        })
    };
}

pub(super) const ENTRIES: &[Row] = &[
    ("aten::special_airy_ai", unary!(f::airy_ai).fixed_sizes()),
    ("aten::special_bessel_j0", unary!(f::j0).fixed_sizes()),
    ("aten::special_bessel_j1", unary!(f::j1).fixed_sizes()),
    ("aten::special_bessel_y0", unary!(f::y0).fixed_sizes()),
    ("aten::special_bessel_y1", unary!(f::y1).fixed_sizes()),
    ("aten::special_erfcx", unary!(f::erfcx).fixed_sizes()),
    ("aten::special_i0e", unary!(f::i0e).fixed_sizes()),
    ("aten::special_i1e", unary!(f::i1e).fixed_sizes()),
    ("aten::special_log_ndtr", unary!(f::log_ndtr).fixed_sizes()),
    // A quotient of an exponential, which is infinite before the function is.
    (
        "aten::special_modified_bessel_i1",
        Entry::kernel(|c| {
            let t = c.tensor(0)?;
            let single = t.dtype() != DType::Double;
            mapped(c, &t, |x| {
                match single && (x.abs() as f32).exp().is_infinite() && x.is_finite() {
                    true => f64::INFINITY.copysign(x),
                    false => f::i1(x),
                }
            })
        })
        .fixed_sizes()
        .aliases(&[("aten::special_i1", AliasUse::Semantics)]),
    ),
    ("aten::special_modified_bessel_k0", unary!(f::k0).fixed_sizes()),
    ("aten::special_modified_bessel_k1", unary!(f::k1).fixed_sizes()),
    // By way of the error function, which in single precision is -1 early.
    (
        "aten::special_ndtr",
        Entry::kernel(|c| {
            let t = c.tensor(0)?;
            let single = t.dtype() != DType::Double;
            // f16 and bf16 are rounded after each operation.
            let rounded = |x: f64| match t.dtype() {
                DType::Half => half::f16::from_f64(x).to_f64(),
                DType::BFloat16 => half::bf16::from_f64(x).to_f64(),
                _ => x,
            };
            mapped(c, &t, |x| match t.dtype() {
                DType::Half | DType::BFloat16 => {
                    let erf = rounded(libm::erf(rounded(x * std::f64::consts::FRAC_1_SQRT_2)));
                    0.5 * rounded(1.0 + erf)
                }
                _ => f::ndtr(x, single),
            })
        })
        .fixed_sizes(),
    ),
    ("aten::special_ndtri", unary!(f::ndtri).fixed_sizes()),
    ("aten::special_scaled_modified_bessel_k0", unary!(f::k0e).fixed_sizes()),
    ("aten::special_scaled_modified_bessel_k1", unary!(f::k1e).fixed_sizes()),
    (
        "aten::special_spherical_bessel_j0",
        unary!(f::spherical_j0).fixed_sizes(),
    ),
    (
        "aten::igamma",
        binary!(f::igamma)
            .fixed_sizes()
            .aliases(&[("aten::special_gammainc", AliasUse::Normalised)]),
    ),
    (
        "aten::igammac",
        binary!(f::igammac)
            .fixed_sizes()
            .aliases(&[("aten::special_gammaincc", AliasUse::Normalised)]),
    ),
    ("aten::special_zeta", binary!(f::zeta).fixed_sizes()),
    (
        "aten::special_chebyshev_polynomial_t",
        polynomials!(ChebyshevT).fixed_sizes(),
    ),
    (
        "aten::special_chebyshev_polynomial_u",
        polynomials!(ChebyshevU).fixed_sizes(),
    ),
    (
        "aten::special_chebyshev_polynomial_v",
        polynomials!(ChebyshevV).fixed_sizes(),
    ),
    (
        "aten::special_chebyshev_polynomial_w",
        polynomials!(ChebyshevW).fixed_sizes(),
    ),
    (
        "aten::special_hermite_polynomial_h",
        polynomials!(HermiteH).fixed_sizes(),
    ),
    (
        "aten::special_hermite_polynomial_he",
        polynomials!(HermiteHe).fixed_sizes(),
    ),
    (
        "aten::special_laguerre_polynomial_l",
        polynomials!(Laguerre).fixed_sizes(),
    ),
    (
        "aten::special_legendre_polynomial_p",
        polynomials!(Legendre).fixed_sizes(),
    ),
    (
        "aten::special_shifted_chebyshev_polynomial_t",
        shifted!(ChebyshevT).fixed_sizes(),
    ),
    (
        "aten::special_shifted_chebyshev_polynomial_u",
        shifted!(ChebyshevU).fixed_sizes(),
    ),
    (
        "aten::special_shifted_chebyshev_polynomial_v",
        shifted!(ChebyshevV).fixed_sizes(),
    ),
    (
        "aten::special_shifted_chebyshev_polynomial_w",
        shifted!(ChebyshevW).fixed_sizes(),
    ),
    (
        "aten::polygamma",
        Entry::kernel(polygamma)
            .fixed_sizes()
            .aliases(&[("aten::special_polygamma", AliasUse::Normalised)]),
    ),
];

/// Returns the dtype of the result: a float dtype itself, the default float dtype for integers.
fn float(dtype: DType, call: &Call<'_>) -> Result<DType, OpError> {
    if dtype.is_complex() {
        let name = call.ctx.name(call.schema.name);
        let dtype = dtype.type_name();
        return Err(OpError::raised(format!("\"{name}\" not implemented for '{dtype}'")));
    }
    Ok(if dtype.is_floating_point() { dtype } else { DType::Float })
}

fn mapped(call: &Call<'_>, t: &Tensor, function: impl Fn(f64) -> f64) -> Result<Results, OpError> {
    let dtype = float(t.dtype(), call)?;
    let values: Vec<f64> = t.to_dtype(dtype)?.to_f64_vec().into_iter().map(function).collect();
    let out = Tensor::from_elements::<DoubleElement>(&values, t.sizes())?.to_dtype(dtype)?;
    one(laid_out_as(&out, std::slice::from_ref(t))?)
}

fn unary(call: &Call<'_>, function: fn(f64) -> f64) -> Result<Results, OpError> {
    mapped(call, &call.tensor(0)?, function)
}

/// Computes a binary function of two tensors, which broadcast. One of the operands may be a number.
fn binary(call: &Call<'_>, function: fn(f64, f64) -> f64) -> Result<Results, OpError> {
    binary_as(call, |x, y, _| function(x, y))
}

/// Computes the same for a function with a flag: whether it is computed in single precision or less.
fn binary_as(call: &Call<'_>, function: impl Fn(f64, f64, bool) -> f64) -> Result<Results, OpError> {
    let mut promoted = ResultType::new();
    let mut operands = Vec::new();
    for i in 0..2 {
        match call.arg(i) {
            Value::Tensor(cell) => {
                let t = cell.get();
                promoted = promoted.tensor(t.dtype(), t.dim());
                operands.push(t);
            }
            _ => {
                let number = call.scalar(i)?;
                promoted = promoted.scalar(number);
                operands.push(Tensor::full(DType::Double, &[], number)?);
            }
        }
    }
    let dtype = promoted
        .dtype()
        .ok_or_else(|| OpError::raised("no operand has a dtype"))?;
    let dtype = float(dtype, call)?;
    let [x, y] = operands.as_slice() else {
        return Err(OpError::raised("expected two operands"));
    };
    let sizes = broadcast(x.sizes(), y.sizes()).ok_or_else(|| broadcast_error(x.sizes(), y.sizes()))?;
    let values = |t: &Tensor| -> Result<Vec<f64>, OpError> { Ok(t.to_dtype(dtype)?.expand(&sizes)?.to_f64_vec()) };
    let pairs = values(x)?.into_iter().zip(values(y)?);
    let single = dtype != DType::Double;
    let results: Vec<f64> = pairs.map(|(x, y)| function(x, y, single)).collect();
    let out = Tensor::from_elements::<DoubleElement>(&results, &sizes)?.to_dtype(dtype)?;
    one(laid_out_as(&out, &operands)?)
}

/// Implements `polygamma(n, self)`. The in-place form has the two arguments in reverse order.
fn polygamma(call: &Call<'_>) -> Result<Results, OpError> {
    let (t, n) = match call.arg(0) {
        Value::Tensor(cell) => (cell.get(), call.int(1)?),
        _ => (call.tensor(1)?, call.int(0)?),
    };
    if n < 0 {
        return Err(OpError::raised("polygamma(n, x) does not support negative n."));
    }
    let single = t.dtype() != DType::Double;
    mapped(call, &t, |x| f::polygamma(n, x, single))
}
