//! Queries about tensors and the environment: sizes, dtypes, identity, modes.

use frazil_ir::DType;
use frazil_ir::schema::Observes;
use frazil_runtime::Scalar;
use frazil_runtime::args::wrap_dim;
use frazil_runtime::entry::{Entry, NumberRead, Role, Row};
use frazil_runtime::layout;
use frazil_runtime::number::NumberKind;
use frazil_runtime::op::{Call, OpError, Results, one};
use frazil_runtime::promote::{ResultType, can_cast, promote_types};
use frazil_runtime::value::Value;

/// Implements the implicit conversion of a tensor that a program uses as a number.
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

/// Returns the behaviour of reading a number of kind `kind` (or of the tensor's kind) from a tensor.
const fn read(kind: Option<NumberKind>, is_implicit: bool) -> NumberRead {
    NumberRead {
        kind,
        is_implicit,
        scalar_limit: None,
    }
}

pub(super) const ENTRIES: &[Row] = &[
    ("aten::__is__", Entry::on_values(|c| one(c.arg(0).is(c.arg(1)))).total()),
    (
        "aten::__isnot__",
        Entry::on_values(|c| one(!c.arg(0).is(c.arg(1)))).total(),
    ),
    (
        "aten::_unwrap_optional",
        Entry::on_values(|c| match c.arg(0) {
            Value::None => Err(OpError::raised("Unwrapping null optional")),
            v => one(v.clone()),
        }),
    ),
    ("aten::warn", Entry::on_values(|_| Ok(Results::new()))),
    ("aten::is_grad_enabled", Entry::on_values(|_| one(false)).external()),
    ("aten::set_grad_enabled", Entry::on_values(|_| Ok(Results::new()))),
    ("aten::is_scripting", Entry::on_values(|_| one(true))),
    ("aten::_is_tracing", Entry::on_values(|_| one(false))),
    ("aten::_get_tracing_state", Entry::on_values(|_| one(false))),
    ("aten::has_torch_function", Entry::on_values(|_| one(false))),
    ("aten::is_autocast_enabled", Entry::on_values(|_| one(false)).external()),
    (
        "aten::is_autocast_cpu_enabled",
        Entry::on_values(|_| one(false)).external(),
    ),
    ("aten::manual_seed", Entry::on_values(|_| Ok(Results::new()))),
    (
        "aten::promote_types",
        Entry::on_values(|c| {
            let dtype = |i| c.opt_dtype(i)?.ok_or_else(|| OpError::raised("expected a dtype"));
            one(promote_types(dtype(0)?, dtype(1)?).code())
        }),
    ),
    (
        "aten::can_cast",
        Entry::on_values(|c| {
            let dtype = |i| c.opt_dtype(i)?.ok_or_else(|| OpError::raised("expected a dtype"));
            one(can_cast(dtype(0)?, dtype(1)?))
        }),
    ),
    ("aten::result_type", Entry::on_values(result_type)),
    ("aten::device", Entry::on_values(device)),
    ("aten::_infer_size", Entry::on_values(infer_size)),
    ("aten::broadcast_shapes", Entry::on_values(infer_size)),
    (
        "aten::hash",
        Entry::on_values(|c| one(super::hash::hash(c.arg(0))? as i64)),
    ),
    (
        "aten::len.Tensor",
        Entry::kernel(|c| match c.tensor(0)?.sizes() {
            [] => Err(OpError::raised("len() of a 0-d tensor")),
            [n, ..] => one(*n),
        })
        .fixed_sizes(),
    ),
    (
        "aten::dim",
        Entry::kernel(|c| one(crate::queries::described(c)?.dim() as i64))
            .fixed_sizes()
            .total(),
    ),
    (
        "aten::element_size",
        Entry::kernel(|c| one(c.tensor(0)?.dtype().size() as i64)).fixed_sizes(),
    ),
    (
        "aten::numel",
        Entry::kernel(|c| one(c.tensor(0)?.numel())).fixed_sizes(),
    ),
    (
        "aten::size",
        Entry::kernel(|c| one(Value::ints(c.tensor(0)?.sizes().iter().copied()))).fixed_sizes(),
    ),
    (
        "aten::size.int",
        Entry::kernel(|c| {
            let t = c.tensor(0)?;
            let d = wrap_dim(c.int(1)?, t.dim())?;
            one(t
                .sizes()
                .get(d)
                .copied()
                .ok_or_else(|| OpError::raised("dimension specified as 0 but tensor has no dimensions"))?)
        }),
    ),
    (
        "aten::sym_size.int",
        Entry::kernel(|c| {
            let t = c.tensor(0)?;
            one(t.sizes().get(wrap_dim(c.int(1)?, t.dim())?).copied().unwrap_or(1))
        })
        .fixed_sizes(),
    ),
    (
        "aten::stride",
        Entry::kernel(|c| one(Value::ints(c.tensor(0)?.strides().iter().copied()))).observes(Observes::Strides),
    ),
    (
        "aten::stride.int",
        Entry::kernel(|c| {
            let t = c.tensor(0)?;
            one(t.strides().get(wrap_dim(c.int(1)?, t.dim())?).copied().unwrap_or(1))
        }),
    ),
    (
        "aten::storage_offset",
        Entry::kernel(|c| one(c.tensor(0)?.offset())).observes(Observes::Storage),
    ),
    (
        "aten::is_contiguous",
        Entry::kernel(|c| one(c.tensor(0)?.is_contiguous())).observes(Observes::Order),
    ),
    (
        "aten::is_contiguous.memory_format",
        Entry::kernel(|c| {
            let t = c.tensor(0)?;
            // 2 and 3 are channels_last and channels_last_3d.
            one(match c.int(1)? {
                0 => t.is_contiguous(),
                _ => layout::is_channels_last(t.sizes(), t.strides()),
            })
        }),
    ),
    (
        "aten::is_floating_point",
        Entry::kernel(|c| one(c.tensor(0)?.dtype().is_floating_point())).fixed_sizes(),
    ),
    (
        "aten::is_complex",
        Entry::kernel(|c| one(c.tensor(0)?.dtype().is_complex())).fixed_sizes(),
    ),
    (
        "aten::is_nonzero",
        Entry::kernel(|c| one(c.tensor(0)?.item()?.as_bool())),
    ),
    (
        "aten::is_same_size",
        Entry::kernel(|c| one(c.tensor(0)?.sizes() == c.tensor(1)?.sizes())),
    ),
    (
        "aten::is_signed",
        Entry::kernel(|c| one(!matches!(c.tensor(0)?.dtype(), DType::Byte | DType::Bool))),
    ),
    ("aten::is_inference", Entry::kernel(|_| one(false))),
    (
        "aten::item",
        Entry::kernel(|c| one(c.tensor(0)?.item()?))
            .reads_number(&read(None, false))
            .role(Role::Item),
    ),
    (
        "aten::Int.Tensor",
        Entry::kernel(|c| one(c.tensor(0)?.item()?.checked_to(DType::Long)?.as_i64())),
    ),
    (
        "aten::Float.Tensor",
        Entry::kernel(|c| one(c.tensor(0)?.item()?.as_f64())),
    ),
    (
        "aten::Bool.Tensor",
        Entry::kernel(|c| one(c.tensor(0)?.item()?.as_bool())),
    ),
    (
        "aten::IntImplicit",
        Entry::kernel(|c| one(implicit(c, true)?.as_i64())).reads_number(&read(Some(NumberKind::Int), true)),
    ),
    (
        "aten::FloatImplicit",
        Entry::kernel(|c| one(implicit(c, false)?.checked_to(DType::Double)?.as_f64()))
            .reads_number(&read(Some(NumberKind::Float), true)),
    ),
    (
        "aten::ComplexImplicit",
        Entry::kernel(|c| one(Value::Complex(implicit(c, false)?.as_complex()))),
    ),
    (
        "aten::ScalarImplicit",
        Entry::kernel(|c| one(implicit(c, false)?)).reads_number(&read(None, true)),
    ),
    ("aten::get_device", Entry::kernel(|_| one(-1i64))),
    ("aten::result_type.Tensor", Entry::kernel(result_type)),
    ("aten::result_type.Scalar", Entry::kernel(result_type)),
    ("aten::result_type.Scalar_Tensor", Entry::kernel(result_type)),
    (
        "aten::_shape_as_tensor",
        Entry::kernel(|c| {
            let t = c.tensor(0)?;
            one(frazil_runtime::Tensor::from_i64(t.sizes(), &[t.dim() as i64])?)
        }),
    ),
    (
        "aten::equal",
        Entry::kernel(|c| {
            let (a, b) = (c.tensor(0)?, c.tensor(1)?);
            one(a.sizes() == b.sizes() && a.to_f64_vec() == b.to_f64_vec())
        }),
    ),
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
    // PyTorch's message names the second one first.
    let sizes = layout::broadcast(&a, &b).ok_or_else(|| frazil_runtime::build::broadcast_error(&b, &a))?;
    one(Value::ints(sizes))
}
