//! Evaluation of calls to methods of tensors.

use frazil_ir::{DType, DeviceKind};
use ruff_python_ast::Operator;

use super::arguments::Arguments;
use super::elements::{in_place, unary};
use super::maker::Maker;
use super::operators::float_of;
use super::tensor::HostTensor;
use super::value::{Py, dtype_of};

/// The methods of tensors that constructors may call.
pub(super) const NAMES: &[&str] = &[
    "abs",
    "add_",
    "bfloat16",
    "bool",
    "byte",
    "cdouble",
    "cfloat",
    "char",
    "clone",
    "conj",
    "contiguous",
    "copy_",
    "cos",
    "cpu",
    "detach",
    "dim",
    "div_",
    "double",
    "element_size",
    "exp",
    "fill_",
    "float",
    "half",
    "int",
    "is_complex",
    "is_contiguous",
    "is_floating_point",
    "item",
    "log",
    "log10",
    "log2",
    "long",
    "mul_",
    "ndimension",
    "neg",
    "nelement",
    "normal_",
    "numel",
    "reciprocal",
    "requires_grad_",
    "reshape",
    "resize_",
    "rsqrt",
    "short",
    "sigmoid",
    "sin",
    "size",
    "sqrt",
    "stride",
    "sub_",
    "sum",
    "t",
    "tan",
    "tanh",
    "to",
    "tolist",
    "transpose",
    "tril",
    "triu",
    "type",
    "type_as",
    "uniform_",
    "unsqueeze",
    "view",
    "zero_",
];

impl Maker<'_> {
    pub(super) fn tensor_method(
        &mut self,
        object: &Py,
        tensor: &HostTensor,
        name: &str,
        arguments: &Arguments,
    ) -> Option<Py> {
        let cast = |dtype| match tensor.dtype() == dtype {
            true => Some(object.clone()),
            false => tensor.cast(dtype).map(Py::Tensor),
        };
        if let Some(f) = unary(name) {
            return tensor.map(float_of(tensor), f).map(Py::Tensor);
        }
        if let Some(dtype) = cast_by_name(name) {
            return cast(dtype);
        }
        let complex = tensor.dtype().is_complex();
        match name {
            "type" => cast(dtype_of(arguments.get(0, "dtype")?)?),
            "is_complex" => Some(Py::Bool(complex)),
            "element_size" => Some(Py::Int(tensor.dtype().size() as i64)),
            // The sum of floats depends on the order.
            "sum" if arguments.is_empty() && (tensor.dtype().is_integral() || tensor.dtype() == DType::Bool) => {
                let sum: f64 = tensor.values().iter().sum();
                HostTensor::new(DType::Long, Vec::new(), |_| sum).map(Py::Tensor)
            }
            "conj" if complex => tensor.map_complex(|x| x.conj()).map(Py::Tensor),
            "abs" if complex => tensor.norms().map(Py::Tensor),
            "neg" if complex => tensor.map_complex(|x| -x).map(Py::Tensor),
            "item" if complex => match tensor.complex_values().as_slice() {
                &[x] => Some(Py::Complex(x)),
                _ => None,
            },
            "tolist" if complex => {
                let mut values = tensor.complex_values().into_iter().map(Py::Complex);
                Some(nested(&tensor.sizes(), &mut values))
            }
            "fill_" if complex => {
                let value = arguments.get(0, "value")?.as_complex()?;
                tensor.fill_complex(|_| value)?;
                Some(object.clone())
            }
            "uniform_" | "normal_" if complex => None,
            "to" => cast(cast_of(arguments)?.unwrap_or(tensor.dtype())),
            "type_as" => match arguments.first()? {
                Py::Tensor(other) | Py::Parameter(other) => cast(other.dtype()),
                _ => None,
            },
            "clone" => tensor.copy().map(Py::Tensor),
            "contiguous" if !tensor.is_contiguous() => tensor.copy().map(Py::Tensor),
            "contiguous" | "cpu" => Some(object.clone()),
            "detach" => Some(Py::Tensor(tensor.alias())),
            "requires_grad_" => {
                let flag = arguments.flag(0, "requires_grad", true)?;
                (!flag || complex || tensor.dtype().is_floating_point()).then_some(())?;
                tensor.set_requires_grad(flag);
                Some(object.clone())
            }
            "copy_" => match arguments.get(0, "src")? {
                Py::Tensor(from) | Py::Parameter(from) => {
                    tensor.copy_from(from)?;
                    Some(object.clone())
                }
                _ => None,
            },
            "numel" | "nelement" => Some(Py::Int(tensor.len() as i64)),
            "dim" | "ndimension" => Some(Py::Int(tensor.rank() as i64)),
            "is_contiguous" => Some(Py::Bool(tensor.is_contiguous())),
            "is_floating_point" => Some(Py::Bool(tensor.dtype().is_floating_point())),
            "size" | "stride" => {
                let all: Vec<i64> = match name {
                    "size" => tensor.sizes(),
                    _ => tensor.view_of().strides.iter().map(|&stride| stride as i64).collect(),
                };
                match arguments.get(0, "dim") {
                    Some(at) => {
                        let at = at.as_int()?;
                        let at = if at < 0 { at + all.len() as i64 } else { at };
                        all.get(usize::try_from(at).ok()?).map(|&n| Py::Int(n))
                    }
                    None if name == "size" => Some(Py::size(all)),
                    None => Some(Py::tuple(all.into_iter().map(Py::Int).collect())),
                }
            }
            "view" | "reshape" => {
                let sizes = match arguments.positional() {
                    [list @ (Py::List(_) | Py::Tuple(_))] => list.ints()?,
                    [] => return None,
                    many => many.iter().map(Py::as_int).collect::<Option<_>>()?,
                };
                tensor.view(&sizes).map(Py::Tensor)
            }
            "resize_" => {
                let sizes = match arguments.positional() {
                    [list @ (Py::List(_) | Py::Tuple(_))] => list.ints()?,
                    many => many.iter().map(Py::as_int).collect::<Option<_>>()?,
                };
                tensor.resize(&sizes)?;
                Some(object.clone())
            }
            "unsqueeze" => tensor.unsqueezed(arguments.get(0, "dim")?.as_int()?).map(Py::Tensor),
            "fill_" => {
                let value = arguments.get(0, "value")?.as_f64()?;
                tensor.fill(|_| value)?;
                Some(object.clone())
            }
            "zero_" => {
                tensor.fill(|_| 0.0)?;
                Some(object.clone())
            }
            "uniform_" => {
                let (low, high) = (arguments.number(0, "from", 0.0)?, arguments.number(1, "to", 1.0)?);
                tensor.fill(|_| low + (high - low) * self.random.uniform())?;
                Some(object.clone())
            }
            "normal_" => {
                let (mean, deviation) = (arguments.number(0, "mean", 0.0)?, arguments.number(1, "std", 1.0)?);
                tensor.fill(|_| mean + deviation * self.random.normal())?;
                Some(object.clone())
            }
            "mul_" | "div_" | "add_" | "sub_" => {
                let operator = match name {
                    "mul_" => Operator::Mult,
                    "div_" => Operator::Div,
                    "add_" => Operator::Add,
                    _ => Operator::Sub,
                };
                in_place(operator, tensor, arguments.get(0, "other")?)?;
                Some(object.clone())
            }
            "abs" if tensor.dtype() != DType::Bool => tensor.map(tensor.dtype(), f64::abs).map(Py::Tensor),
            "neg" if tensor.dtype() != DType::Bool => tensor.map(tensor.dtype(), |x| -x).map(Py::Tensor),
            "t" if tensor.rank() == 2 => tensor.transposed(0, 1).map(Py::Tensor),
            "t" if tensor.rank() < 2 => Some(Py::Tensor(tensor.alias())),
            "transpose" => {
                let (a, b) = (arguments.get(0, "dim0")?.as_int()?, arguments.get(1, "dim1")?.as_int()?);
                tensor.transposed(a, b).map(Py::Tensor)
            }
            "triu" | "tril" => {
                let diagonal = arguments.int(0, "diagonal", 0)?;
                tensor.triangle(name == "triu", diagonal).map(Py::Tensor)
            }
            "item" => match tensor.values().as_slice() {
                &[x] => Some(element(tensor.dtype(), x)),
                _ => None,
            },
            "tolist" => {
                let mut values = tensor.values().into_iter().map(|x| element(tensor.dtype(), x));
                Some(nested(&tensor.sizes(), &mut values))
            }
            _ => None,
        }
    }
}

/// Returns the target dtype of the cast method `name`, such as `half` in `x.half()`.
pub(super) fn cast_by_name(name: &str) -> Option<DType> {
    Some(match name {
        "float" => DType::Float,
        "double" => DType::Double,
        "half" => DType::Half,
        "bfloat16" => DType::BFloat16,
        "long" => DType::Long,
        "int" => DType::Int,
        "short" => DType::Short,
        "char" => DType::Char,
        "byte" => DType::Byte,
        "bool" => DType::Bool,
        "cfloat" => DType::ComplexFloat,
        "cdouble" => DType::ComplexDouble,
        _ => return None,
    })
}

/// Returns the element `x` of a tensor of dtype `dtype` as a Python number.
fn element(dtype: DType, x: f64) -> Py {
    match dtype {
        DType::Bool => Py::Bool(x != 0.0),
        dtype if dtype.is_floating_point() => Py::Float(x),
        _ => Py::Int(x as i64),
    }
}

fn nested(sizes: &[i64], values: &mut dyn Iterator<Item = Py>) -> Py {
    match sizes.split_first() {
        None => values.next().unwrap_or(Py::None),
        Some((&size, rest)) => Py::list((0..size).map(|_| nested(rest, values)).collect()),
    }
}

/// Returns the dtype among the arguments of `to`, if any. Devices are ignored, because all tensors are on the CPU. `None` for unsupported arguments.
pub(super) fn cast_of(arguments: &Arguments) -> Option<Option<DType>> {
    let mut dtype = None;
    let keywords = arguments.keywords().iter().map(|(name, value)| (name.as_str(), value));
    for (name, value) in arguments.positional().iter().map(|value| ("", value)).chain(keywords) {
        match (name, value) {
            (_, Py::None) => {}
            ("" | "device", Py::Device(device)) if device.kind == DeviceKind::Cpu => {}
            ("" | "device", Py::Str(device)) if &**device == "cpu" => {}
            ("" | "non_blocking", Py::Bool(_)) => {}
            ("" | "dtype", path @ Py::Path(_)) => dtype = Some(dtype_of(path)?),
            ("" | "other" | "tensor", Py::Tensor(other) | Py::Parameter(other)) => dtype = Some(other.dtype()),
            _ => return None,
        }
    }
    Some(dtype)
}
