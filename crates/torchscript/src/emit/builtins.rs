//! Names that TorchScript itself defines: functions, constants, attributes of tensors.

use frazil_ir::{DType, types};

use super::sugared::Special;

/// Returns the special form called `name`.
pub(crate) fn special(name: &str) -> Option<Special> {
    Some(match name {
        "annotate" | "torch.jit.annotate" => Special::Annotate,
        "unchecked_cast" => Special::UncheckedCast,
        "uninitialized" => Special::Uninitialized,
        "isinstance" | "torch.jit.isinstance" => Special::Isinstance,
        "getattr" => Special::Getattr,
        "hasattr" => Special::Hasattr,
        "fork" | "torch.jit.fork" | "torch.jit._fork" => Special::Fork,
        "awaitable" | "torch.jit._awaitable" => Special::Awaitable,
        "torch.jit.wait" | "torch.jit._wait" => Special::Wait,
        "warnings.warn" => Special::Warn,
        "torch._assert" => Special::Assert,
        "torch.jit._unscriptable" => Special::Unscriptable,
        "print" => Special::Print,
        "range" => Special::Range,
        "enumerate" => Special::Enumerate,
        "zip" => Special::Zip,
        "list" => Special::List,
        "tuple" => Special::Tuple,
        "dict" => Special::Dict,
        "torch.jit.is_scripting" => Special::Known(true),
        "torch.compiler.is_compiling" | "torch.onnx.is_in_onnx_export" => Special::Known(false),
        "torch.jit._unwrap_optional" => Special::UnwrapOptional,
        "int" => Special::Cast("aten::Int", types::INT),
        "float" => Special::Cast("aten::Float", types::FLOAT),
        "bool" => Special::Cast("aten::Bool", types::BOOL),
        "complex" => Special::Cast("aten::Complex", types::COMPLEX),
        "str" => Special::Cast("aten::str", types::STR),
        _ => return None,
    })
}

/// Returns whether `name` means the builtin function even if the program defines a function of that name.
pub(crate) fn comes_first(name: &str) -> bool {
    let names = [
        "abs",
        "all",
        "any",
        "bin",
        "chr",
        "divmod",
        "hash",
        "hex",
        "id",
        "len",
        "max",
        "min",
        "oct",
        "ord",
        "pow",
        "rangelist",
        "round",
        "sorted",
        "sum",
    ];
    names.contains(&name)
}

/// Returns the operator of a function of Python or of a library module, such as `len`, `math.sqrt`,
/// `torch.nn.functional.relu`.
pub(crate) fn operator(name: &str) -> Option<String> {
    let plain = match name {
        "len" | "ord" | "chr" | "hex" | "oct" | "bin" | "hash" | "divmod" | "round" | "pow" | "sorted" | "sum"
        | "all" | "any" | "list" => format!("aten::{name}"),
        "torch.nn.functional.has_torch_function_unary" | "torch.nn.functional.has_torch_function_variadic" => {
            "aten::has_torch_function".to_owned()
        }
        "torch.nn.functional.logsigmoid" => "aten::log_sigmoid".to_owned(),
        "abs" | "min" | "max" | "id" | "rangelist" => format!("prim::{name}"),
        _ => {
            if let Some(rest) = name.strip_prefix("ops.").or_else(|| name.strip_prefix("torch.ops.")) {
                let (namespace, operator) = rest.split_once('.')?;
                return (!operator.contains('.')).then(|| format!("{namespace}::{operator}"));
            }
            if let Some(rest) = name.strip_prefix("torch.") {
                let namespaces = [
                    "_C._nn.",
                    "_C._linalg.",
                    "_C._fft.",
                    "_C._special.",
                    "_VF.",
                    "nn.functional.",
                ];
                if let Some(operator) = namespaces.iter().find_map(|space| rest.strip_prefix(space)) {
                    return (!operator.contains('.')).then(|| format!("aten::{operator}"));
                }
                return match rest.split_once('.') {
                    None => Some(format!("aten::{rest}")),
                    Some((space @ ("linalg" | "fft" | "special"), operator)) => {
                        Some(format!("aten::{space}_{operator}"))
                    }
                    Some(("autograd", operator @ ("grad" | "backward"))) => Some(format!("aten::{operator}")),
                    Some((space @ ("aten" | "prim" | "quantized" | "torchvision"), operator)) => {
                        Some(format!("{space}::{operator}"))
                    }
                    Some(_) => None,
                };
            }
            match name.strip_prefix("math.")? {
                "remainder" => "aten::mathremainder".to_owned(),
                operator => MATH.contains(&operator).then(|| format!("aten::{operator}"))?,
            }
        }
    };
    Some(plain)
}

/// Functions of Python's module `math` that TorchScript supports.
const MATH: &[&str] = &[
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "ceil",
    "copysign",
    "cos",
    "cosh",
    "degrees",
    "erf",
    "erfc",
    "exp",
    "expm1",
    "fabs",
    "factorial",
    "floor",
    "fmod",
    "frexp",
    "gamma",
    "gcd",
    "isfinite",
    "isinf",
    "isnan",
    "ldexp",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "modf",
    "pow",
    "radians",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
];

/// Builtin functions of Python that TorchScript does not support.
const PYTHON_ONLY: &[&str] = &[
    "ascii",
    "breakpoint",
    "bytearray",
    "bytes",
    "callable",
    "compile",
    "delattr",
    "dir",
    "eval",
    "exec",
    "filter",
    "format",
    "frozenset",
    "globals",
    "help",
    "input",
    "issubclass",
    "iter",
    "locals",
    "map",
    "memoryview",
    "next",
    "object",
    "open",
    "property",
    "repr",
    "reversed",
    "set",
    "setattr",
    "slice",
    "super",
    "type",
    "vars",
];

/// Returns `name` if it is a builtin function of Python that TorchScript does not support.
pub(crate) fn python_only(name: &str) -> Option<&str> {
    match name.strip_prefix("math.") {
        Some(function) => (!MATH.contains(&function)).then_some(function),
        None => PYTHON_ONLY.contains(&name).then_some(name),
    }
}

/// Returns the target dtype of the tensor method `name`, if that is a cast such as `float`.
pub(crate) fn cast_method(name: &str) -> Option<DType> {
    Some(match name {
        "byte" => DType::Byte,
        "char" => DType::Char,
        "short" => DType::Short,
        "int" => DType::Int,
        "long" => DType::Long,
        "half" => DType::Half,
        "float" => DType::Float,
        "double" => DType::Double,
        "cfloat" => DType::ComplexFloat,
        "cdouble" => DType::ComplexDouble,
        _ => return None,
    })
}

/// Returns the operator for an attribute of a tensor that is not a method, such as `x.shape` or `x.dtype`.
pub(crate) fn tensor_attribute(name: &str) -> Option<&'static str> {
    Some(match name {
        "dtype" => "prim::dtype",
        "device" => "prim::device",
        "grad" => "prim::grad",
        "data" => "prim::data",
        "shape" => "aten::size",
        "ndim" => "aten::dim",
        "is_cuda" => "prim::is_cuda",
        "is_cpu" => "prim::is_cpu",
        "is_xla" => "prim::is_xla",
        "is_sparse" => "prim::is_sparse",
        "is_sparse_csr" => "prim::is_sparse_csr",
        "is_mkldnn" => "prim::is_mkldnn",
        "is_quantized" => "prim::is_quantized",
        "is_vulkan" => "prim::is_vulkan",
        "is_mps" => "prim::is_mps",
        "is_meta" => "prim::is_meta",
        "is_nested" => "prim::is_nested",
        "is_leaf" => "aten::is_leaf",
        "requires_grad" => "prim::requires_grad",
        "layout" => "prim::layout",
        "itemsize" => "prim::itemsize",
        "nbytes" => "prim::nbytes",
        "name" => "prim::name",
        "T" => "aten::numpy_T",
        "H" => "aten::matrix_H",
        "mT" => "aten::mT",
        "mH" => "aten::mH",
        "real" => "aten::real",
        "imag" => "aten::imag",
        _ => return None,
    })
}
