//! Names of Python and `torch` whose meaning is known without running Python.

use frazil_ir::DType;
use half::{bf16, f16};

use super::dtypes::bounds;
use super::purity::is_unknown_name;
use super::value::Py;
use crate::names::library_constant;

/// Builtin functions of Python that constructors may call.
const PYTHON: &[&str] = &[
    "range",
    "len",
    "enumerate",
    "zip",
    "reversed",
    "sorted",
    "min",
    "max",
    "sum",
    "abs",
    "round",
    "any",
    "all",
    "int",
    "float",
    "bool",
    "str",
    "list",
    "tuple",
    "dict",
    "OrderedDict",
    "print",
    "isinstance",
    "hasattr",
    "getattr",
    "setattr",
    "divmod",
    "iter",
    "next",
    "repr",
    "type",
    "torch",
    "math",
    "collections",
];

/// Returns whether `name` is a builtin name of Python.
pub(super) fn is_known(name: &str) -> bool {
    PYTHON.contains(&name) || !is_unknown_name(name)
}

/// Returns the value of the constant `path` of a library module, such as `math.pi`.
pub(super) fn constant(path: &str) -> Option<Py> {
    if let Some(dtype) = path.strip_prefix("torch.").and_then(DType::from_python_name) {
        // A dtype is represented by its canonical path and not by a number: `torch.float` is `torch.float32`.
        return Some(Py::Path(dtype.to_string().into()));
    }
    match path {
        "typing.TYPE_CHECKING" | "TYPE_CHECKING" => return Some(Py::Bool(false)),
        "torch.newaxis" => return Some(Py::None),
        _ => {}
    }
    match library_constant(path)? {
        frazil_ir::Constant::Float(value) => Some(Py::Float(value)),
        _ => None,
    }
}

/// Returns whether a dotted name denotes a function, class, dtype or module. Such a value is true and not `None`.
pub(super) fn is_function_path(path: &str) -> bool {
    if is_known(path) || matches!(path, "torch.nn" | "torch.nn.functional" | "torch.nn.init" | "copy") {
        return true;
    }
    let Some((module, name)) = path.rsplit_once('.') else {
        return false;
    };
    let is_public = !name.starts_with(['_']) && !name.starts_with("has_");
    let is_constant = name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    let modules = ["torch", "torch.nn", "torch.nn.functional", "torch.nn.init", "math"];
    modules.contains(&module) && is_public && !is_constant && !name.ends_with("_notes")
}

/// Returns the name of the class of a tensor with dtype `dtype`, as in PyTorch's messages.
pub(super) fn tensor_type_name(dtype: DType) -> &'static str {
    match dtype {
        DType::Float => "torch.FloatTensor",
        DType::Double => "torch.DoubleTensor",
        DType::Long => "torch.LongTensor",
        DType::Int => "torch.IntTensor",
        DType::Bool => "torch.BoolTensor",
        DType::Byte => "torch.ByteTensor",
        DType::Char => "torch.CharTensor",
        DType::Short => "torch.ShortTensor",
        DType::Half => "torch.HalfTensor",
        DType::BFloat16 => "torch.BFloat16Tensor",
        DType::ComplexFloat => "torch.ComplexFloatTensor",
        DType::ComplexDouble => "torch.ComplexDoubleTensor",
        _ => "torch.Tensor",
    }
}

/// Returns the attribute `name` of `torch.finfo` or `torch.iinfo` for `dtype`.
pub(super) fn limit(dtype: DType, name: &str) -> Option<Py> {
    let whole = |(least, greatest): (i64, i64)| match name {
        "min" => Some(Py::Int(least)),
        "max" => Some(Py::Int(greatest)),
        _ => None,
    };
    let (greatest, eps, smallest) = match dtype {
        _ if name == "bits" => return Some(Py::Int(8 * dtype.size() as i64)),
        _ if name == "dtype" => return Some(Py::str(dtype.to_string().trim_start_matches("torch."))),
        DType::Float => (
            f64::from(f32::MAX),
            f64::from(f32::EPSILON),
            f64::from(f32::MIN_POSITIVE),
        ),
        DType::Double => (f64::MAX, f64::EPSILON, f64::MIN_POSITIVE),
        DType::Half => (f16::MAX.to_f64(), f16::EPSILON.to_f64(), f16::MIN_POSITIVE.to_f64()),
        DType::BFloat16 => (bf16::MAX.to_f64(), bf16::EPSILON.to_f64(), bf16::MIN_POSITIVE.to_f64()),
        DType::Long => return whole((i64::MIN, i64::MAX)),
        _ => {
            let (least, greatest) = bounds(dtype)?;
            return whole((least as i64, greatest as i64));
        }
    };
    Some(Py::Float(match name {
        "max" => greatest,
        "min" => -greatest,
        "eps" => eps,
        "tiny" | "smallest_normal" => smallest,
        _ => return None,
    }))
}
