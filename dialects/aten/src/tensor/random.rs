//! Random numbers.
//!
//! Every call returns new numbers, which differ from those of PyTorch's generator: seeds are not part of TorchScript. The distributions, dtypes and refused
//! arguments are PyTorch's.

mod generator;

use super::create;
use frazil_ir::DType;
use frazil_runtime::element::{ComplexDoubleElement, DoubleElement};
use frazil_runtime::entry::{Entry, Row};
use frazil_runtime::op::{Call, KernelFn, OpError, Results, one};
use frazil_runtime::promote::real_of;
use frazil_runtime::{Tensor, layout, memory};
use generator::{Random, digits};
use num_complex::Complex;

/// Returns an entry of a kernel that draws random numbers.
const fn random(kernel: KernelFn) -> Entry {
    Entry::kernel(kernel).random()
}

pub(super) const ENTRIES: &[Row] = &[
    ("aten::rand", random(|c| made(c, &c.ints(0)?, uniform))),
    ("aten::randn", random(|c| made(c, &c.ints(0)?, normal))),
    ("aten::rand_like", random(|c| like(c, uniform)).without_gradients()),
    ("aten::randn_like", random(|c| like(c, normal)).without_gradients()),
    (
        "aten::randint",
        random(|c| one(integers(&c.ints(1)?, dtype_of(c, DType::Long)?, 0, c.int(0)?)?)),
    ),
    ("aten::randint.low", random(integers_from)),
    ("aten::randint.low_generator", random(integers_from)),
    (
        "aten::randint_like",
        random(|c| integers_like(c, 0, c.int(1)?)).without_gradients(),
    ),
    ("aten::randint_like.Tensor", random(high_in_tensor)),
    ("aten::randint_like.Tensor_generator", random(high_in_tensor)),
    (
        "aten::randint_like.low_dtype",
        random(|c| integers_like(c, c.int(1)?, c.int(2)?)),
    ),
    (
        "aten::randint_like.low_generator_dtype",
        random(|c| integers_like(c, c.int(1)?, c.int(2)?)),
    ),
    (
        "aten::randperm",
        random(|c| {
            let (n, dtype) = (c.int(0)?, dtype_of(c, DType::Long)?);
            if n < 0 {
                return Err(OpError::raised(format!("n must be non-negative, got {n}")));
            }
            Tensor::byte_size(DType::Long, &[n])?;
            memory::check_items(n, size_of::<i64>())?;
            let order = shuffled(n, n);
            one(Tensor::from_i64(&order, &[n])?.to_dtype(dtype)?)
        }),
    ),
    ("aten::bernoulli", random(|c| bernoulli(c, &c.tensor(0)?))),
    (
        "aten::bernoulli.p",
        random(|c| {
            let p = Tensor::scalar(DType::Double, c.scalar(1)?);
            bernoulli(c, &p.expand(c.tensor(0)?.sizes())?)
        }),
    ),
    (
        "aten::bernoulli.Tensor",
        random(|c| {
            let p = c.tensor(1)?.expand(c.tensor(0)?.sizes())?;
            bernoulli(c, &p)
        }),
    ),
    (
        "aten::bernoulli_.float",
        random(|c| {
            let p = probability(c.float(1)?)?;
            let t = c.tensor(0)?;
            t.copy_(&sampled(t.sizes(), t.dtype(), |r, _| {
                f64::from(u8::from(r.uniform() < p))
            })?)?;
            one(c.arg(0).clone())
        }),
    ),
    (
        "aten::bernoulli_.Tensor",
        random(|c| {
            let t = c.tensor(0)?;
            let drawn = drawn(&c.tensor(1)?.expand(t.sizes())?)?;
            t.copy_(&drawn)?;
            one(c.arg(0).clone())
        }),
    ),
    ("aten::uniform", random(|c| filled(c, false, uniform_between))),
    ("aten::uniform_", random(|c| filled(c, true, uniform_between))),
    ("aten::_no_grad_uniform_", random(|c| filled(c, true, uniform_between))),
    ("aten::normal_functional", random(|c| filled(c, false, normal_of))),
    ("aten::normal_", random(|c| filled(c, true, normal_of))),
    ("aten::_no_grad_normal_", random(|c| filled(c, true, normal_of))),
    ("aten::exponential", random(|c| filled(c, false, exponential))),
    ("aten::exponential_", random(|c| filled(c, true, exponential))),
    ("aten::cauchy", random(|c| filled(c, false, cauchy))),
    ("aten::cauchy_", random(|c| filled(c, true, cauchy))),
    ("aten::geometric", random(|c| filled(c, false, geometric))),
    ("aten::geometric_", random(|c| filled(c, true, geometric))),
    ("aten::log_normal", random(|c| filled(c, false, log_normal))),
    ("aten::log_normal_", random(|c| filled(c, true, log_normal))),
    ("aten::random", random(|c| filled(c, false, any_integers))),
    ("aten::random.to", random(|c| filled(c, false, integers_to))),
    ("aten::random.from", random(|c| filled(c, false, integers_between))),
    ("aten::random_", random(|c| filled(c, true, any_integers))),
    ("aten::random_.to", random(|c| filled(c, true, integers_to))),
    ("aten::random_.from", random(|c| filled(c, true, integers_between))),
    (
        "aten::normal.Tensor_Tensor",
        random(|c| normal_around(c, Some(&c.tensor(0)?), 0.0, Some(&c.tensor(1)?), 0.0)),
    ),
    (
        "aten::normal.Tensor_float",
        random(|c| normal_around(c, Some(&c.tensor(0)?), 0.0, None, c.float(1)?)),
    ),
    (
        "aten::normal.float_Tensor",
        random(|c| normal_around(c, None, c.float(0)?, Some(&c.tensor(1)?), 0.0)),
    ),
    (
        "aten::normal.float_float",
        random(|c| {
            let (mean, std) = (c.float(0)?, deviation(c.float(1)?)?);
            made(c, &c.ints(2)?, |sizes, dtype| normal_scaled(sizes, dtype, mean, std))
        }),
    ),
    (
        "aten::poisson",
        random(|c| {
            let rates = c.tensor(0)?;
            floats_only("poisson_cpu", rates.dtype())?;
            each(&rates, |r, rate| match rate >= 0.0 {
                true => Ok(r.poisson(rate)),
                false => Err(OpError::raised(
                    "invalid Poisson rate, expected rate to be non-negative",
                )),
            })
        }),
    ),
    (
        "aten::_standard_gamma",
        random(|c| {
            let shapes = c.tensor(0)?;
            wide_floats_only("gamma_cpu", shapes.dtype())?;
            each(&shapes, |r, shape| Ok(r.gamma(shape)))
        }),
    ),
    ("aten::_sample_dirichlet", random(dirichlet)),
    ("aten::binomial", random(binomial)),
    ("aten::multinomial", random(multinomial)),
];

/// Returns the dtype that the call asks its result to have, or `default` if it asks for none.
fn dtype_of(call: &Call<'_>, default: DType) -> Result<DType, OpError> {
    Ok(call.result_dtype()?.unwrap_or(default))
}

fn not_implemented(kernel: &str, dtype: DType) -> OpError {
    OpError::raised(format!("\"{kernel}\" not implemented for '{}'", dtype.type_name()))
}

fn floats_only(kernel: &str, dtype: DType) -> Result<(), OpError> {
    match dtype.is_floating_point() {
        true => Ok(()),
        false => Err(not_implemented(kernel, dtype)),
    }
}

fn wide_floats_only(kernel: &str, dtype: DType) -> Result<(), OpError> {
    match dtype {
        DType::Float | DType::Double => Ok(()),
        _ => Err(not_implemented(kernel, dtype)),
    }
}

/// Returns a tensor of numbers that are drawn separately, in the real dtype of `dtype`. For a complex number, both parts are drawn.
fn sampled(sizes: &[i64], dtype: DType, mut draw: impl FnMut(&mut Random, DType) -> f64) -> Result<Tensor, OpError> {
    // Checks the sizes before anything is drawn.
    let count = Tensor::zeros(DType::Bool, sizes)?.numel() as usize;
    let (mut random, part) = (Random::new(), real_of(dtype));
    if dtype.is_complex() {
        let mut values = memory::with_capacity(count)?;
        values.extend((0..count).map(|_| Complex::new(draw(&mut random, part), draw(&mut random, part))));
        return Ok(Tensor::from_elements::<ComplexDoubleElement>(&values, sizes)?.to_dtype(dtype)?);
    }
    let mut values: Vec<f64> = memory::with_capacity(count)?;
    values.extend((0..count).map(|_| draw(&mut random, part)));
    Ok(Tensor::from_elements::<DoubleElement>(&values, sizes)?.to_dtype(dtype)?)
}

fn uniform(sizes: &[i64], dtype: DType) -> Result<Tensor, OpError> {
    if !(dtype.is_floating_point() || dtype.is_complex()) {
        return Err(not_implemented("check_uniform_bounds", dtype));
    }
    sampled(sizes, dtype, Random::uniform_in)
}

fn normal(sizes: &[i64], dtype: DType) -> Result<Tensor, OpError> {
    normal_scaled(sizes, dtype, 0.0, 1.0)
}

/// Returns normally distributed numbers. The parts of complex numbers have half of the variance each, and a real mean.
fn normal_scaled(sizes: &[i64], dtype: DType, mean: f64, std: f64) -> Result<Tensor, OpError> {
    if !(dtype.is_floating_point() || dtype.is_complex()) {
        return Err(not_implemented("normal_kernel_cpu", dtype));
    }
    let complex = dtype.is_complex();
    let std = if complex { std * 0.5f64.sqrt() } else { std };
    let mut is_real = false;
    sampled(sizes, dtype, |r, _| {
        is_real = !is_real;
        let centre = if is_real || !complex { mean } else { 0.0 };
        centre + std * r.normal()
    })
}

fn made(
    call: &Call<'_>,
    sizes: &[i64],
    draw: impl Fn(&[i64], DType) -> Result<Tensor, OpError>,
) -> Result<Results, OpError> {
    one(draw(sizes, dtype_of(call, DType::Float)?)?)
}

/// Returns a tensor that `draw` creates with the sizes and dtype of argument 0, in the memory format of the argument `memory_format`.
fn like(call: &Call<'_>, draw: impl Fn(&[i64], DType) -> Result<Tensor, OpError>) -> Result<Results, OpError> {
    let t = call.tensor(0)?;
    let out = draw(t.sizes(), dtype_of(call, t.dtype())?)?;
    let format = call.position("memory_format").map(|i| call.opt_int(i)).transpose()?;
    one(create::in_format_of(&out, &t, format.flatten())?)
}

/// Fills argument 0, or a tensor with its sizes, with the results of `draw` for the tensor's dtype.
fn filled(
    call: &Call<'_>,
    in_place: bool,
    draw: fn(&Call<'_>, &[i64], DType) -> Result<Tensor, OpError>,
) -> Result<Results, OpError> {
    let t = call.tensor(0)?;
    let drawn = draw(call, t.sizes(), t.dtype())?;
    if !in_place {
        return one(create::in_format_of(&drawn, &t, None)?);
    }
    t.copy_(&drawn)?;
    one(call.arg(0).clone())
}

fn uniform_between(call: &Call<'_>, sizes: &[i64], dtype: DType) -> Result<Tensor, OpError> {
    let (low, high) = (call.float(1)?, call.float(2)?);
    let part = real_of(dtype);
    if !part.is_floating_point() {
        return Err(not_implemented("check_uniform_bounds", dtype));
    }
    let largest = largest(part);
    for (name, bound) in [("from", low), ("to", high)] {
        if !(-largest..=largest).contains(&bound) {
            return Err(out_of_bounds(name, part));
        }
    }
    if low > high {
        return Err(OpError::raised(format!(
            "uniform_ expects to return a [from, to) range, but found from={low} > to={high}"
        )));
    }
    if high - low > largest {
        return Err(OpError::raised(format!(
            "uniform_ expects to-from <= std::numeric_limits<{}>::max(), but found to={high} and from={low} which result in to-from to exceed the limit",
            dtype.type_name()
        )));
    }
    sampled(sizes, dtype, |r, part| low + (high - low) * r.uniform_in(part))
}

fn deviation(std: f64) -> Result<f64, OpError> {
    match std >= 0.0 {
        true => Ok(std),
        false => Err(OpError::raised(format!(
            "normal expects std >= 0.0, but found std {std}"
        ))),
    }
}

fn normal_of(call: &Call<'_>, sizes: &[i64], dtype: DType) -> Result<Tensor, OpError> {
    normal_scaled(sizes, dtype, call.float(1)?, deviation(call.float(2)?)?)
}

/// Returns an error unless `dtype` is a floating-point dtype, as distributions over real numbers require.
fn continuous(name: &str, dtype: DType, shown: &str) -> Result<(), OpError> {
    match dtype.is_floating_point() {
        true => Ok(()),
        false => Err(OpError::raised(format!(
            "{name} distribution is a continuous probability distribution. dtype must be a floating point but you specified {shown}"
        ))),
    }
}

/// Returns `value`, an argument that must be positive, or PyTorch's error.
fn positive(operator: &str, name: &str, value: f64) -> Result<f64, OpError> {
    match value > 0.0 {
        true => Ok(value),
        false => Err(OpError::raised(format!(
            "{operator} expects {name} > 0.0, but found {}={value}",
            name
        ))),
    }
}

fn exponential(call: &Call<'_>, sizes: &[i64], dtype: DType) -> Result<Tensor, OpError> {
    continuous("Exponential", dtype, dtype.type_name())?;
    let rate = positive("exponential_", "lambda", call.float(1)?)?;
    sampled(sizes, dtype, |r, _| r.exponential() / rate)
}

fn cauchy(call: &Call<'_>, sizes: &[i64], dtype: DType) -> Result<Tensor, OpError> {
    let (median, sigma) = (call.float(1)?, positive("cauchy_", "sigma", call.float(2)?)?);
    continuous("Cauchy", dtype, type_in_c(dtype))?;
    sampled(sizes, dtype, |r, _| {
        median + sigma * (std::f64::consts::PI * (r.uniform() - 0.5)).tan()
    })
}

fn geometric(call: &Call<'_>, sizes: &[i64], dtype: DType) -> Result<Tensor, OpError> {
    let p = call.float(1)?;
    if !(p > 0.0 && p < 1.0) {
        return Err(OpError::raised(format!(
            "geometric_ expects p to be in (0, 1), but got p={p}"
        )));
    }
    if dtype == DType::Bool || dtype.is_complex() {
        return Err(not_implemented("geometric_cpu", dtype));
    }
    sampled(sizes, dtype, |r, _| r.geometric(p))
}

fn log_normal(call: &Call<'_>, sizes: &[i64], dtype: DType) -> Result<Tensor, OpError> {
    let (mean, std) = (call.float(1)?, positive("log_normal_", "std", call.float(2)?)?);
    floats_only("log_normal_cpu", dtype)?;
    sampled(sizes, dtype, |r, _| (mean + std * r.normal()).exp())
}

/// Returns the smallest positive integer that `dtype` cannot represent exactly.
fn integers_of(dtype: DType) -> Result<i128, OpError> {
    Ok(match dtype {
        DType::Bool => 2,
        DType::Byte => 1 << 8,
        DType::Char => 1 << 7,
        DType::Short => 1 << 15,
        DType::Int => 1 << 31,
        DType::Long => 1 << 63,
        d if d.is_floating_point() => (1 << digits(d)) + 1,
        _ => return Err(not_implemented("random_kernel_cpu", dtype)),
    })
}

fn any_integers(_: &Call<'_>, sizes: &[i64], dtype: DType) -> Result<Tensor, OpError> {
    drawn_between(sizes, dtype, 0, integers_of(dtype)?)
}

fn integers_to(call: &Call<'_>, sizes: &[i64], dtype: DType) -> Result<Tensor, OpError> {
    integers(sizes, dtype, 0, call.int(1)?)
}

fn integers_between(call: &Call<'_>, sizes: &[i64], dtype: DType) -> Result<Tensor, OpError> {
    let from = call.int(1)?;
    match call.opt_int(2)? {
        Some(to) => integers(sizes, dtype, from, to),
        // Without a bound every number that the dtype holds may come.
        None => {
            let end = integers_of(dtype)?;
            if i128::from(from) >= end {
                return Err(OpError::raised(format!(
                    "random_ expects 'from' to be less than or equal to 'to_inc', but got from={from} > to_inc={}",
                    end - 1
                )));
            }
            check_bound("from", i128::from(from), dtype)?;
            drawn_between(sizes, dtype, i128::from(from), end)
        }
    }
}

fn integers_from(call: &Call<'_>) -> Result<Results, OpError> {
    one(integers(
        &call.ints(2)?,
        dtype_of(call, DType::Long)?,
        call.int(0)?,
        call.int(1)?,
    )?)
}

fn integers_like(call: &Call<'_>, low: i64, high: i64) -> Result<Results, OpError> {
    like(call, |sizes, dtype| integers(sizes, dtype, low, high))
}

fn high_in_tensor(call: &Call<'_>) -> Result<Results, OpError> {
    integers_like(call, 0, call.tensor(1)?.item()?.as_i64())
}

/// Returns a tensor of random integers from `low` up to, but not including, `high`.
fn integers(sizes: &[i64], dtype: DType, low: i64, high: i64) -> Result<Tensor, OpError> {
    if low >= high {
        return Err(OpError::raised(format!(
            "random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )));
    }
    if dtype.is_complex() {
        return Err(OpError::raised(
            "check_random_bounds handles only integral, floating-point and boolean types",
        ));
    }
    let (low, high) = (i128::from(low), i128::from(high));
    check_bound("from", low, dtype)?;
    check_bound("to - 1", high - 1, dtype)?;
    drawn_between(sizes, dtype, low, high)
}

fn drawn_between(sizes: &[i64], dtype: DType, low: i128, high: i128) -> Result<Tensor, OpError> {
    let span = (high - low).unsigned_abs();
    let mut random = Random::new();
    let count = Tensor::zeros(DType::Bool, sizes)?.numel();
    let mut values: Vec<i64> = memory::with_capacity(count as usize)?;
    values.extend((0..count).map(|_| (low + i128::from(random.below(span))) as i64));
    Ok(Tensor::from_i64(&values, sizes)?.to_dtype(dtype)?)
}

/// Returns an error if `dtype` cannot represent the bound `bound`.
fn check_bound(name: &str, bound: i128, dtype: DType) -> Result<(), OpError> {
    let fits = match dtype {
        d if d.is_floating_point() => (bound as f64).abs() <= largest(d),
        DType::Bool | DType::Byte => (0..integers_of(dtype)?).contains(&bound),
        _ => (-integers_of(dtype)?..integers_of(dtype)?).contains(&bound),
    };
    if fits { Ok(()) } else { Err(out_of_bounds(name, dtype)) }
}

fn out_of_bounds(name: &str, dtype: DType) -> OpError {
    OpError::raised(format!("{name} is out of bounds for {}", type_in_c(dtype)))
}

/// Returns the largest finite number of the float dtype `dtype`.
fn largest(dtype: DType) -> f64 {
    match dtype {
        DType::Half => 65504.0,
        DType::BFloat16 => half::bf16::MAX.to_f64(),
        DType::Float => f64::from(f32::MAX),
        _ => f64::MAX,
    }
}

/// Returns the C++ name of a dtype's elements, as in some of PyTorch's messages.
fn type_in_c(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "bool",
        DType::Byte => "unsigned char",
        DType::Char => "signed char",
        DType::Short => "short int",
        DType::Int => "int",
        DType::Long => "long int",
        DType::Half => "c10::Half",
        DType::BFloat16 => "c10::BFloat16",
        DType::Float => "float",
        DType::Double => "double",
        DType::ComplexFloat => "c10::complex<float>",
        DType::ComplexDouble => "c10::complex<double>",
        other => other.type_name(),
    }
}

/// Returns normally distributed numbers. Mean and standard deviation may be tensors with a value per element. The result has the mean's dtype.
fn normal_around(
    call: &Call<'_>,
    mean: Option<&Tensor>,
    constant_mean: f64,
    std: Option<&Tensor>,
    constant_std: f64,
) -> Result<Results, OpError> {
    let sizes = match (mean, std) {
        (Some(a), Some(b)) => layout::broadcast(a.sizes(), b.sizes()).ok_or_else(|| {
            OpError::raised(format!(
                "The size of tensor a {:?} must match the size of tensor b {:?}",
                a.sizes(),
                b.sizes()
            ))
        })?,
        (Some(t), None) | (None, Some(t)) => t.sizes().into(),
        (None, None) => return made(call, &[], normal),
    };
    let mut scale = None;
    if let Some(std) = std {
        if std.dtype().is_complex() {
            return Err(OpError::raised("normal expects standard deviation to be non-complex"));
        }
        let values = std.expand(&sizes)?.to_dtype(DType::Double)?.to_f64_vec();
        if values.iter().any(|s| *s < 0.0) {
            return Err(OpError::raised("normal expects all elements of std >= 0.0"));
        }
        scale = Some(values);
    } else {
        deviation(constant_std)?;
    }
    let dtype = mean.or(std).map_or(DType::Float, Tensor::dtype);
    let complex = dtype.is_complex();
    if complex {
        return normal_complex(mean, &sizes, dtype, scale.as_deref(), constant_std);
    }
    floats_only("normal_kernel_cpu", dtype)?;
    let means = match mean {
        Some(t) => Some(t.expand(&sizes)?.to_f64_vec()),
        None => None,
    };
    let mut i = 0;
    let at = |values: &Option<Vec<f64>>, i: usize| values.as_ref().and_then(|v| v.get(i)).copied();
    one(sampled(&sizes, dtype, |r, _| {
        i += 1;
        let mean = at(&means, i - 1).unwrap_or(constant_mean);
        mean + at(&scale, i - 1).unwrap_or(constant_std) * r.normal()
    })?)
}

/// Returns normally distributed numbers like [`normal_around`], around a complex mean.
fn normal_complex(
    mean: Option<&Tensor>,
    sizes: &[i64],
    dtype: DType,
    scale: Option<&[f64]>,
    constant_std: f64,
) -> Result<Results, OpError> {
    let means: Vec<Complex<f64>> = match mean {
        Some(t) => t.expand(sizes)?.to_dtype(DType::ComplexDouble)?.to_vec(),
        None => Vec::new(),
    };
    let mut random = Random::new();
    let mut values = memory::with_capacity(means.len())?;
    values.extend(means.iter().enumerate().map(|(i, m)| {
        let std = scale.and_then(|s| s.get(i)).copied().unwrap_or(constant_std) * 0.5f64.sqrt();
        Complex::new(m.re + std * random.normal(), m.im + std * random.normal())
    }));
    one(Tensor::from_elements::<ComplexDoubleElement>(&values, sizes)?.to_dtype(dtype)?)
}

/// Returns a row-major tensor of the same dtype as `parameters`, with an element drawn for each parameter.
fn each(parameters: &Tensor, draw: impl Fn(&mut Random, f64) -> Result<f64, OpError>) -> Result<Results, OpError> {
    let mut random = Random::new();
    let values = parameters.to_f64_vec().into_iter().map(|p| draw(&mut random, p));
    let values = values.collect::<Result<Vec<f64>, OpError>>()?;
    let out = Tensor::from_elements::<DoubleElement>(&values, parameters.sizes())?;
    one(out.to_dtype(parameters.dtype())?)
}

fn binomial(call: &Call<'_>) -> Result<Results, OpError> {
    let (count, p) = (call.tensor(0)?, call.tensor(1)?);
    for (name, t) in [("count", &count), ("prob", &p)] {
        if !t.dtype().is_floating_point() {
            return Err(OpError::raised(format!(
                "binomial only supports floating-point dtypes for {name}, got: {}",
                t.dtype().type_name()
            )));
        }
    }
    if count.dtype() != p.dtype() {
        return Err(OpError::raised(format!(
            "Found dtype {} but expected {}",
            p.dtype().type_name(),
            count.dtype().type_name()
        )));
    }
    wide_floats_only("binomial_cpu", count.dtype())?;
    let sizes = layout::broadcast(count.sizes(), p.sizes())
        .ok_or_else(|| OpError::raised("binomial: count and prob cannot be broadcast to one size"))?;
    let p = p.expand(&sizes)?.to_f64_vec();
    let mut i = 0;
    let counts = count.expand(&sizes)?.to_f64_vec();
    one(sampled(&sizes, count.dtype(), |r, _| {
        i += 1;
        match (counts.get(i - 1), p.get(i - 1)) {
            (Some(&n), Some(&p)) => r.binomial(n, p),
            _ => 0.0,
        }
    })?)
}

/// Implements `_sample_dirichlet`: gamma-distributed numbers, divided by their sum along the last dimension.
fn dirichlet(call: &Call<'_>) -> Result<Results, OpError> {
    let alpha = call.tensor(0)?;
    wide_floats_only("dirichlet", alpha.dtype())?;
    let row = alpha.sizes().last().copied().unwrap_or(1).max(1) as usize;
    let mut random = Random::new();
    let mut values: Vec<f64> = alpha.to_f64_vec();
    for row in values.chunks_mut(row) {
        row.iter_mut().for_each(|a| *a = random.gamma(*a));
        let sum: f64 = row.iter().sum();
        row.iter_mut().for_each(|a| *a /= sum);
    }
    one(Tensor::from_elements::<DoubleElement>(&values, alpha.sizes())?.to_dtype(alpha.dtype())?)
}

fn probability(p: f64) -> Result<f64, OpError> {
    if (0.0..=1.0).contains(&p) {
        Ok(p)
    } else {
        Err(OpError::raised(format!(
            "bernoulli_ expects p to be in [0, 1], but got p={p}"
        )))
    }
}

fn drawn(probabilities: &Tensor) -> Result<Tensor, OpError> {
    let mut random = Random::new();
    let values = probabilities.to_f64_vec().into_iter().map(|p| {
        let p = probability(p)?;
        Ok(f64::from(u8::from(random.uniform() < p)))
    });
    let values = values.collect::<Result<Vec<f64>, OpError>>()?;
    Ok(Tensor::from_elements::<DoubleElement>(&values, probabilities.sizes())?)
}

fn bernoulli(call: &Call<'_>, probabilities: &Tensor) -> Result<Results, OpError> {
    one(drawn(probabilities)?.to_dtype(call.tensor(0)?.dtype())?)
}

/// Returns the first `count` numbers of a random permutation of `0..n`.
fn shuffled(n: i64, count: i64) -> Vec<i64> {
    let mut random = Random::new();
    let mut order: Vec<i64> = (0..n).collect();
    for i in 0..count.min(n) as usize {
        let other = i + random.below((n as usize - i) as u128) as usize;
        order.swap(i, other);
    }
    order.truncate(count as usize);
    order
}

/// Implements `multinomial`: class indices drawn with the weights in each row.
fn multinomial(call: &Call<'_>) -> Result<Results, OpError> {
    let (t, samples, replacement) = (call.tensor(0)?, call.int(1)?, call.flag(2)?);
    let classes = t.sizes().last().copied().unwrap_or(0);
    if !matches!(t.dim(), 1 | 2) || classes == 0 || samples <= 0 {
        return Err(OpError::raised(
            "multinomial expects one or two dimensions of weights and a positive number of samples",
        ));
    }
    if !replacement && samples > classes {
        return Err(OpError::raised(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement",
        ));
    }
    let mut random = Random::new();
    let mut sizes = t.sizes().to_vec();
    if let Some(last) = sizes.last_mut() {
        *last = samples;
    }
    let bytes = Tensor::byte_size(DType::Long, &sizes)?;
    let mut out = memory::with_capacity(bytes / size_of::<i64>())?;
    for row in t.to_f64_vec().chunks_exact(classes as usize) {
        if row.iter().any(|w| !w.is_finite() || *w < 0.0) || row.iter().sum::<f64>() <= 0.0 {
            return Err(OpError::raised(
                "probability tensor contains either `inf`, `nan` or element < 0, or sums to zero",
            ));
        }
        let mut weights = row.to_vec();
        for _ in 0..samples {
            let mut rest = random.uniform() * weights.iter().sum::<f64>();
            let last = weights.iter().rposition(|&w| w > 0.0).unwrap_or(0);
            let mut chosen = last;
            for (i, &w) in weights.iter().enumerate() {
                if rest < w {
                    chosen = i;
                    break;
                }
                rest -= w;
            }
            out.push(chosen as i64);
            if !replacement && let Some(w) = weights.get_mut(chosen) {
                *w = 0.0;
            }
        }
    }
    one(Tensor::from_i64(&out, &sizes)?)
}
