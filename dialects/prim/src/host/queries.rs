//! What programs ask of tensors and of the world: sizes, dtypes, identity, modes.

use frazil_ir::DType;
use frazil_runtime::Scalar;
use frazil_runtime::args::wrap_dim;
use frazil_runtime::layout;
use frazil_runtime::op::{Call, KernelFn, OpError, Results, one};
use frazil_runtime::promote::{ResultType, can_cast, promote_types};
use frazil_runtime::value::Value;

/// The number that a tensor is where the program gives it for one.
fn implicit(call: &Call<'_>, to_int: bool) -> Result<Scalar, OpError> {
    let t = call.tensor(0)?;
    if t.dim() != 0 {
        return Err(OpError::raised(
            "Cannot input a tensor of dimension other than 0 as a scalar argument",
        ));
    }
    let integral = !(t.dtype().is_floating_point() || t.dtype().is_complex() || t.dtype() == DType::Bool);
    if to_int && !integral {
        let dtype = t.dtype().type_name();
        return Err(OpError::raised(format!(
            "Cannot input a tensor of type {dtype} as an integral argument"
        )));
    }
    Ok(t.item()?)
}

pub(super) const HOST: &[(&str, KernelFn)] = &[
    ("aten::__is__", |c| one(c.arg(0).is(c.arg(1)))),
    ("aten::__isnot__", |c| one(!c.arg(0).is(c.arg(1)))),
    ("aten::_unwrap_optional", |c| match c.arg(0) {
        Value::None => Err(OpError::raised("Unwrapping null optional")),
        v => one(v.clone()),
    }),
    ("aten::warn", |_| Ok(Results::new())),
    ("aten::is_grad_enabled", |_| one(false)),
    ("aten::set_grad_enabled", |_| Ok(Results::new())),
    ("aten::is_scripting", |_| one(true)),
    ("aten::_is_tracing", |_| one(false)),
    ("aten::_get_tracing_state", |_| one(false)),
    ("aten::has_torch_function", |_| one(false)),
    ("aten::is_autocast_enabled", |_| one(false)),
    ("aten::is_autocast_cpu_enabled", |_| one(false)),
    ("aten::manual_seed", |_| Ok(Results::new())),
    ("aten::promote_types", |c| {
        let dtype = |i| c.opt_dtype(i)?.ok_or_else(|| OpError::raised("expected a dtype"));
        one(promote_types(dtype(0)?, dtype(1)?).code())
    }),
    ("aten::can_cast", |c| {
        let dtype = |i| c.opt_dtype(i)?.ok_or_else(|| OpError::raised("expected a dtype"));
        one(can_cast(dtype(0)?, dtype(1)?))
    }),
    ("aten::result_type", result_type),
    ("aten::device", device),
    ("aten::_infer_size", infer_size),
    ("aten::broadcast_shapes", infer_size),
    ("aten::hash", |c| one(super::hash::hash(c.arg(0))? as i64)),
];

/// Questions that a tensor's dtype and sizes answer.
pub(super) const FIXED_SIZES: &[&str] = &[
    "aten::len.Tensor",
    "aten::dim",
    "aten::element_size",
    "aten::numel",
    "aten::size",
    "aten::sym_size.int",
    "aten::is_floating_point",
    "aten::is_complex",
];

pub(super) const KERNELS: &[(&str, KernelFn)] = &[
    ("aten::len.Tensor", |c| match c.tensor(0)?.sizes() {
        [] => Err(OpError::raised("len() of a 0-d tensor")),
        [n, ..] => one(*n),
    }),
    ("aten::dim", |c| one(crate::queries::described(c)?.dim() as i64)),
    ("aten::element_size", |c| one(c.tensor(0)?.dtype().size() as i64)),
    ("aten::numel", |c| one(c.tensor(0)?.numel())),
    ("aten::size", |c| one(Value::ints(c.tensor(0)?.sizes().iter().copied()))),
    ("aten::size.int", |c| {
        let t = c.tensor(0)?;
        let d = wrap_dim(c.int(1)?, t.dim())?;
        one(t
            .sizes()
            .get(d)
            .copied()
            .ok_or_else(|| OpError::raised("dimension specified as 0 but tensor has no dimensions"))?)
    }),
    ("aten::sym_size.int", |c| {
        let t = c.tensor(0)?;
        one(t.sizes().get(wrap_dim(c.int(1)?, t.dim())?).copied().unwrap_or(1))
    }),
    ("aten::stride", |c| {
        one(Value::ints(c.tensor(0)?.strides().iter().copied()))
    }),
    ("aten::stride.int", |c| {
        let t = c.tensor(0)?;
        one(t.strides().get(wrap_dim(c.int(1)?, t.dim())?).copied().unwrap_or(1))
    }),
    ("aten::storage_offset", |c| one(c.tensor(0)?.offset())),
    ("aten::is_contiguous", |c| one(c.tensor(0)?.is_contiguous())),
    ("aten::is_contiguous.memory_format", |c| {
        let t = c.tensor(0)?;
        // 2 and 3 are channels_last and channels_last_3d.
        one(match c.int(1)? {
            0 => t.is_contiguous(),
            _ => layout::is_channels_last(t.sizes(), t.strides()),
        })
    }),
    ("aten::is_floating_point", |c| {
        one(c.tensor(0)?.dtype().is_floating_point())
    }),
    ("aten::is_complex", |c| one(c.tensor(0)?.dtype().is_complex())),
    ("aten::is_nonzero", |c| one(c.tensor(0)?.item()?.as_bool())),
    ("aten::is_same_size", |c| {
        one(c.tensor(0)?.sizes() == c.tensor(1)?.sizes())
    }),
    ("aten::is_signed", |c| {
        one(!matches!(c.tensor(0)?.dtype(), DType::Byte | DType::Bool))
    }),
    ("aten::is_inference", |_| one(false)),
    ("aten::item", |c| one(c.tensor(0)?.item()?)),
    ("aten::Int.Tensor", |c| {
        one(c.tensor(0)?.item()?.checked_to(DType::Long)?.as_i64())
    }),
    ("aten::Float.Tensor", |c| one(c.tensor(0)?.item()?.as_f64())),
    ("aten::Bool.Tensor", |c| one(c.tensor(0)?.item()?.as_bool())),
    ("aten::IntImplicit", |c| one(implicit(c, true)?.as_i64())),
    ("aten::FloatImplicit", |c| {
        one(implicit(c, false)?.checked_to(DType::Double)?.as_f64())
    }),
    ("aten::ComplexImplicit", |c| {
        one(Value::Complex(implicit(c, false)?.as_complex()))
    }),
    ("aten::ScalarImplicit", |c| one(implicit(c, false)?)),
    ("aten::get_device", |_| one(-1i64)),
    ("aten::result_type.Tensor", result_type),
    ("aten::result_type.Scalar", result_type),
    ("aten::result_type.Scalar_Tensor", result_type),
    ("aten::_shape_as_tensor", |c| {
        let t = c.tensor(0)?;
        one(frazil_runtime::Tensor::from_i64(t.sizes(), &[t.dim() as i64])?)
    }),
    ("aten::equal", |c| {
        let (a, b) = (c.tensor(0)?, c.tensor(1)?);
        one(a.sizes() == b.sizes() && a.to_f64_vec() == b.to_f64_vec())
    }),
];

fn result_type(call: &Call<'_>) -> Result<Results, OpError> {
    let mut common = ResultType::new();
    for value in call.args {
        common = match value {
            Value::Tensor(t) => common.tensor(t.get().dtype(), t.get().dim()),
            other => match other.as_scalar() {
                Some(s) => common.scalar(s),
                None => return Err(OpError::raised("expected tensors or numbers")),
            },
        };
    }
    one(common.dtype().map_or(DType::Float, |d| d).code())
}

fn device(call: &Call<'_>) -> Result<Results, OpError> {
    let text = match call.opt_int(1) {
        Ok(Some(index)) => format!("{}:{index}", call.text(0)?),
        _ => call.text(0)?.to_string(),
    };
    let device = frazil_ir::Device::parse(&text);
    one(Value::Device(device.ok_or_else(|| {
        OpError::raised(format!("Invalid device string: '{text}'"))
    })?))
}

fn infer_size(call: &Call<'_>) -> Result<Results, OpError> {
    let (a, b) = (call.ints(0)?, call.ints(1)?);
    // PyTorch names the second one first.
    let sizes = layout::broadcast(&a, &b).ok_or_else(|| frazil_runtime::build::broadcast_error(&b, &a))?;
    one(Value::ints(sizes))
}
