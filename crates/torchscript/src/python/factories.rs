//! Evaluation of functions of `torch` that create tensors, and of `torch.nn.init`.

use frazil_ir::{DType, DeviceKind};
use num_complex::Complex64;

use super::arguments::Arguments;
use super::complex::joined;
use super::elements::unary;
use super::maker::Maker;
use super::operators::float_of;
use super::tensor::HostTensor;
use super::tensor_literals::literal;
use super::value::{Py, dtype_of};

impl Maker<'_> {
    /// Evaluates `torch.zeros` and other functions that create tensors from numbers alone.
    pub(super) fn factory(&mut self, name: &str, arguments: &Arguments) -> Option<Py> {
        if let Some(dtype) = legacy_dtype(name) {
            return self.legacy(dtype, arguments).map(Py::Tensor);
        }
        if let Some(f) = unary(name) {
            let x = tensor_of(arguments.get(0, "input")?)?;
            return x.map(float_of(&x), f).map(Py::Tensor);
        }
        if let ("is_complex" | "is_floating_point", Some(x)) = (name, arguments.get(0, "input")) {
            let dtype = tensor_of(x)?.dtype();
            let is = if name == "is_complex" {
                dtype.is_complex()
            } else {
                dtype.is_floating_point()
            };
            return Some(Py::Bool(is));
        }
        if matches!(name, "triu" | "tril") {
            let diagonal = arguments.int(1, "diagonal", 0)?;
            let x = tensor_of(arguments.get(0, "input")?)?;
            return x.triangle(name == "triu", diagonal).map(Py::Tensor);
        }
        let dtype = match arguments.named("dtype") {
            None | Some(Py::None) => None,
            Some(dtype) => Some(dtype_of(dtype)?),
        };
        let float = dtype.unwrap_or(DType::Float);
        let requires_grad = options(arguments)?;
        let tensor = match name {
            // `torch.empty` returns zeros here; its memory is uninitialised in PyTorch.
            "zeros" | "empty" => HostTensor::new(float, sizes(arguments)?, |_| 0.0)?,
            "ones" => HostTensor::new(float, sizes(arguments)?, |_| 1.0)?,
            "rand" | "randn" if float.is_complex() => {
                let sizes = sizes(arguments)?;
                HostTensor::of_complex(float, sizes, |_| match name {
                    "rand" => Complex64::new(self.random.uniform(), self.random.uniform()),
                    // The variance is that of both parts.
                    _ => Complex64::new(self.random.normal(), self.random.normal()) * std::f64::consts::FRAC_1_SQRT_2,
                })?
            }
            "rand" | "randn" if !float.is_floating_point() => return None,
            "rand" => HostTensor::new(float, sizes(arguments)?, |_| self.random.uniform())?,
            "randn" => HostTensor::new(float, sizes(arguments)?, |_| self.random.normal())?,
            "full" => {
                let value = arguments.get(1, "fill_value")?;
                let default = match value {
                    Py::Int(_) => DType::Long,
                    Py::Bool(_) => DType::Bool,
                    Py::Complex(_) => DType::ComplexFloat,
                    _ => DType::Float,
                };
                let value = value.as_complex()?;
                let sizes = match arguments.get(0, "size")? {
                    sizes @ (Py::List(_) | Py::Tuple(_)) => sizes.ints()?,
                    _ => return None,
                };
                filled(dtype.unwrap_or(default), sizes, value)?
            }
            "complex" => joined(
                &tensor_of(arguments.get(0, "real")?)?,
                &tensor_of(arguments.get(1, "imag")?)?,
            )?,
            "view_as_real" => return tensor_of(arguments.get(0, "input")?)?.as_real().map(Py::Tensor),
            "zeros_like" | "ones_like" | "empty_like" | "full_like" => {
                let like = tensor_of(arguments.get(0, "input")?)?;
                let value = match name {
                    "full_like" => arguments.get(1, "fill_value")?.as_complex()?,
                    "ones_like" => Complex64::ONE,
                    _ => Complex64::ZERO,
                };
                filled(dtype.unwrap_or(like.dtype()), like.sizes(), value)?
            }
            "rand_like" | "randn_like" => {
                let like = tensor_of(arguments.get(0, "input")?)?;
                let uniform = name == "rand_like";
                let dtype = dtype.unwrap_or(like.dtype());
                dtype.is_floating_point().then_some(())?;
                HostTensor::new(dtype, like.sizes(), |_| match uniform {
                    true => self.random.uniform(),
                    false => self.random.normal(),
                })?
            }
            "tensor" => literal(arguments.get(0, "data")?, dtype)?,
            "as_tensor" => match arguments.get(0, "data")? {
                tensor @ (Py::Tensor(known) | Py::Parameter(known)) => {
                    let same = dtype.is_none_or(|dtype| dtype == known.dtype());
                    (same && !requires_grad).then_some(())?;
                    return Some(tensor.clone());
                }
                data => literal(data, dtype)?,
            },
            "eye" => {
                let rows = arguments.get(0, "n")?.as_int()?;
                let columns = arguments.int(1, "m", rows)?;
                HostTensor::new(float, vec![rows, columns], |i| {
                    f64::from(u8::from(i as i64 / columns.max(1) == i as i64 % columns.max(1)))
                })?
            }
            "randint" => {
                let (low, high, size) = match arguments.count() {
                    3 => (arguments.at(0)?.as_int()?, arguments.at(1)?.as_int()?, arguments.at(2)?),
                    2 if arguments.named("size").is_some() => (
                        arguments.at(0)?.as_int()?,
                        arguments.at(1)?.as_int()?,
                        arguments.named("size")?,
                    ),
                    _ => (0, arguments.get(0, "high")?.as_int()?, arguments.get(1, "size")?),
                };
                let range = high.checked_sub(low).filter(|&range| range > 0)? as f64;
                HostTensor::new(dtype.unwrap_or(DType::Long), size.ints()?, |_| {
                    low as f64 + (range * self.random.uniform()).floor()
                })?
            }
            "randperm" => {
                let count = usize::try_from(arguments.get(0, "n")?.as_int()?).ok()?;
                let sizes = vec![i64::try_from(count).ok()?];
                HostTensor::is_allowed(&sizes).then_some(())?;
                let mut order: Vec<usize> = (0..count).collect();
                for at in (1..count).rev() {
                    order.swap(at, (self.random.uniform() * (at + 1) as f64) as usize);
                }
                HostTensor::new(dtype.unwrap_or(DType::Long), sizes, |i| {
                    order.get(i).copied().unwrap_or(0) as f64
                })?
            }
            "arange" => arange(arguments, dtype)?,
            "linspace" => {
                let (start, end) = (arguments.get(0, "start")?.as_f64()?, arguments.get(1, "end")?.as_f64()?);
                let steps = arguments.get(2, "steps")?.as_int()?;
                float.is_floating_point().then_some(())?;
                let step = (end - start) / (steps - 1).max(1) as f64;
                // From both ends, as PyTorch has it: the last element is exactly `end`.
                HostTensor::new(float, vec![steps], |i| match (i as i64) < steps / 2 || steps == 1 {
                    true => start + step * i as f64,
                    false => end - step * (steps - i as i64 - 1) as f64,
                })?
            }
            _ => return None,
        };
        if requires_grad {
            (tensor.dtype().is_floating_point() || tensor.dtype().is_complex()).then_some(())?;
            tensor.set_requires_grad(true);
        }
        Some(Py::Tensor(tensor))
    }

    /// Evaluates a call of `torch.Tensor` or a related class with sizes or a list. Elements that PyTorch leaves uninitialised are zero.
    fn legacy(&mut self, dtype: DType, arguments: &Arguments) -> Option<HostTensor> {
        match arguments.positional() {
            [] => HostTensor::new(dtype, vec![0], |_| 0.0),
            [list @ Py::List(_)] => literal(list, Some(dtype)),
            // A tuple has elements, but `x.shape`, which is one here, has sizes.
            ints => {
                let int = |size: &Py| match size {
                    Py::Int(size) => Some(*size),
                    _ => None,
                };
                HostTensor::new(dtype, ints.iter().map(int).collect::<Option<_>>()?, |_| 0.0)
            }
        }
    }

    /// Executes a function of `torch.nn.init`, which fills a tensor in place.
    pub(super) fn initialise(&mut self, name: &str, arguments: &Arguments) -> Option<Py> {
        let object = arguments.get(0, "tensor")?;
        let tensor = tensor_of(object)?;
        if !matches!(arguments.named("generator"), None | Some(Py::None)) {
            return None;
        }
        let normal = |maker: &mut Self, deviation: f64| tensor.fill(|_| deviation * maker.random.normal());
        let uniform = |maker: &mut Self, bound: f64| tensor.fill(|_| bound * (2.0 * maker.random.uniform() - 1.0));
        match name {
            "zeros_" => tensor.fill(|_| 0.0)?,
            "ones_" => tensor.fill(|_| 1.0)?,
            "constant_" => {
                let value = arguments.get(1, "val")?.as_f64()?;
                tensor.fill(|_| value)?;
            }
            "uniform_" => {
                let (low, high) = (arguments.number(1, "a", 0.0)?, arguments.number(2, "b", 1.0)?);
                tensor.fill(|_| low + (high - low) * self.random.uniform())?;
            }
            "normal_" => {
                let (mean, deviation) = (arguments.number(1, "mean", 0.0)?, arguments.number(2, "std", 1.0)?);
                tensor.fill(|_| mean + deviation * self.random.normal())?;
            }
            "trunc_normal_" => {
                let (mean, deviation) = (arguments.number(1, "mean", 0.0)?, arguments.number(2, "std", 1.0)?);
                let (low, high) = (arguments.number(3, "a", -2.0)?, arguments.number(4, "b", 2.0)?);
                (low <= high).then_some(())?;
                tensor.fill(|_| {
                    let mut draw = || mean + deviation * self.random.normal();
                    let found = (0..100).map(|_| draw()).find(|x| (low..=high).contains(x));
                    found.unwrap_or(mean).clamp(low, high)
                })?;
            }
            "kaiming_uniform_" | "kaiming_normal_" => {
                let (inputs, outputs) = fans(&tensor)?;
                let slope = arguments.number(1, "a", 0.0)?;
                let fan = match arguments.get(2, "mode") {
                    None => inputs,
                    Some(Py::Str(mode)) if &**mode == "fan_in" => inputs,
                    Some(Py::Str(mode)) if &**mode == "fan_out" => outputs,
                    Some(_) => return None,
                };
                let gain = match arguments.get(3, "nonlinearity") {
                    None => gain("leaky_relu", slope)?,
                    Some(Py::Str(name)) => gain(name, slope)?,
                    Some(_) => return None,
                };
                let deviation = gain / fan.sqrt();
                match name {
                    "kaiming_uniform_" => uniform(self, 3f64.sqrt() * deviation)?,
                    _ => normal(self, deviation)?,
                }
            }
            "xavier_uniform_" | "xavier_normal_" => {
                let (inputs, outputs) = fans(&tensor)?;
                let deviation = arguments.number(1, "gain", 1.0)? * (2.0 / (inputs + outputs)).sqrt();
                match name {
                    "xavier_uniform_" => uniform(self, 3f64.sqrt() * deviation)?,
                    _ => normal(self, deviation)?,
                }
            }
            "eye_" => {
                let &[_, columns] = tensor.sizes().as_slice() else {
                    return None;
                };
                let columns = columns.max(1);
                tensor.fill(|i| f64::from(u8::from(i as i64 / columns == i as i64 % columns)))?;
            }
            "dirac_" => {
                let sizes = tensor.sizes();
                let [_, inputs, kernel @ ..] = sizes.as_slice() else {
                    return None;
                };
                ((1..=3).contains(&kernel.len()) && !sizes.contains(&0)).then_some(())?;
                let count: i64 = kernel.iter().product();
                let middle = kernel.iter().fold(0, |at, size| at * size + size / 2);
                tensor.fill(|i| {
                    let (channel, at) = (i as i64 / count, i as i64 % count);
                    f64::from(u8::from(at == middle && channel / inputs == channel % inputs))
                })?;
            }
            _ => return None,
        }
        Some(object.clone())
    }
}

fn tensor_of(value: &Py) -> Option<HostTensor> {
    match value {
        Py::Tensor(tensor) | Py::Parameter(tensor) => Some(tensor.clone()),
        _ => None,
    }
}

/// Returns a tensor in which every element is `value`.
fn filled(dtype: DType, sizes: Vec<i64>, value: Complex64) -> Option<HostTensor> {
    match dtype.is_complex() {
        true => HostTensor::of_complex(dtype, sizes, |_| value),
        false => {
            (value.im == 0.0).then_some(())?;
            HostTensor::new(dtype, sizes, |_| value.re)
        }
    }
}

/// Returns the dtype of the tensors that a class such as `torch.FloatTensor` creates.
fn legacy_dtype(name: &str) -> Option<DType> {
    Some(match name {
        "Tensor" | "FloatTensor" => DType::Float,
        "DoubleTensor" => DType::Double,
        "LongTensor" => DType::Long,
        "IntTensor" => DType::Int,
        "BoolTensor" => DType::Bool,
        "ByteTensor" => DType::Byte,
        "CharTensor" => DType::Char,
        "ShortTensor" => DType::Short,
        "HalfTensor" => DType::Half,
        "BFloat16Tensor" => DType::BFloat16,
        _ => return None,
    })
}

/// Reads the options that all factory functions have, and returns `requires_grad`. `None` if an option has an effect that is not supported.
fn options(arguments: &Arguments) -> Option<bool> {
    for name in ["layout", "pin_memory", "generator", "out"] {
        if !matches!(arguments.named(name), None | Some(Py::None | Py::Bool(false))) {
            return None;
        }
    }
    match arguments.named("device") {
        None | Some(Py::None) => {}
        Some(Py::Device(device)) if device.kind == DeviceKind::Cpu => {}
        Some(Py::Str(device)) if &**device == "cpu" => {}
        Some(_) => return None,
    }
    arguments.named("requires_grad").map_or(Some(false), Py::truth)
}

/// Returns the sizes passed to a factory function: a list, or separate integers.
fn sizes(arguments: &Arguments) -> Option<Vec<i64>> {
    match arguments.positional() {
        [] => arguments.named("size")?.ints(),
        [list @ (Py::List(_) | Py::Tuple(_))] => list.ints(),
        ints => ints.iter().map(Py::as_int).collect(),
    }
}

fn arange(arguments: &Arguments, dtype: Option<DType>) -> Option<HostTensor> {
    let one = Py::Int(1);
    let zero = Py::Int(0);
    let (start, end) = match arguments.count() {
        0 => (arguments.named("start").unwrap_or(&zero), arguments.named("end")?),
        1 => match arguments.named("end") {
            Some(end) => (arguments.at(0)?, end),
            None => (&zero, arguments.at(0)?),
        },
        _ => (arguments.at(0)?, arguments.at(1)?),
    };
    let step = arguments.get(2, "step").unwrap_or(&one);
    let whole = [start, end, step].iter().all(|bound| matches!(bound, Py::Int(_)));
    let (start, end, step) = (start.as_f64()?, end.as_f64()?, step.as_f64()?);
    // PyTorch raises where the step leads away from the end.
    (step != 0.0 && (end - start) * step >= 0.0).then_some(())?;
    let length = ((end - start) / step).ceil();
    (length <= 1e15).then_some(())?;
    let default = if whole { DType::Long } else { DType::Float };
    HostTensor::new(dtype.unwrap_or(default), vec![length as i64], |i| {
        start + step * i as f64
    })
}

/// Returns fan-in and fan-out: the number of inputs of an output, and of outputs of an input.
fn fans(tensor: &HostTensor) -> Option<(f64, f64)> {
    let sizes = tensor.sizes();
    let [outputs, inputs, kernel @ ..] = sizes.as_slice() else {
        return None;
    };
    let count: f64 = kernel.iter().map(|&size| size as f64).product();
    Some(((*inputs as f64 * count).max(1.0), (*outputs as f64 * count).max(1.0)))
}

/// Evaluates `torch.nn.init.calculate_gain`.
fn gain(name: &str, slope: f64) -> Option<f64> {
    Some(match name {
        "linear" | "sigmoid" | "conv1d" | "conv2d" | "conv3d" => 1.0,
        "tanh" => 5.0 / 3.0,
        "relu" => 2f64.sqrt(),
        "leaky_relu" => (2.0 / (1.0 + slope * slope)).sqrt(),
        "selu" => 0.75,
        _ => return None,
    })
}
