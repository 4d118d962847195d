//! What is asked of a tensor or a device.

use frazil_ir::Device;
use frazil_runtime::Tensor;
use frazil_runtime::layout;
use frazil_runtime::op::{Call, KernelFn, OpError, Results, one};
use frazil_runtime::value::Value;

/// Questions that a tensor's dtype answers.
pub(crate) const FIXED_SIZES: &[&str] = &[
    "prim::dtype",
    "prim::device",
    "prim::itemsize",
    "prim::nbytes",
    "aten::is_leaf",
    "aten::_assert_async",
];

pub(crate) const KERNELS: &[(&str, KernelFn)] = &[
    ("prim::dtype", |c| one(described(c)?.dtype().code())),
    ("prim::device", |c| {
        described(c).and_then(|_| one(Value::Device(Device::CPU)))
    }),
    // torch.strided
    ("prim::layout", |c| c.tensor(0).and_then(|_| one(0i64))),
    ("prim::requires_grad", |c| described(c).and_then(|_| one(false))),
    ("prim::grad", |c| c.tensor(0).and_then(|_| one(Value::None))),
    ("prim::data", |c| one(c.arg(0).clone())),
    ("prim::is_cpu", |c| c.tensor(0).and_then(|_| one(true))),
    ("prim::is_cuda", no),
    ("prim::is_ipu", no),
    ("prim::is_maia", no),
    ("prim::is_meta", no),
    ("prim::is_mkldnn", no),
    ("prim::is_mps", no),
    ("prim::is_mtia", no),
    ("prim::is_nested", |c| {
        described(c).and_then(|_| one(matches!(c.arg(0), Value::Tuple(_))))
    }),
    ("prim::is_quantized", |c| one(c.tensor(0)?.dtype().is_quantized())),
    ("prim::is_sparse", no),
    ("prim::is_sparse_csr", no),
    ("prim::is_vulkan", no),
    ("prim::is_xla", no),
    ("prim::is_xpu", no),
    ("prim::itemsize", |c| one(c.tensor(0)?.dtype().size() as i64)),
    ("prim::nbytes", |c| {
        c.tensor(0).and_then(|t| one(t.numel() * t.dtype().size() as i64))
    }),
    ("aten::is_leaf", |c| c.tensor(0).and_then(|_| one(true))),
    ("aten::is_distributed", no),
    ("aten::is_pinned", no),
    ("aten::retains_grad", no),
    ("aten::_is_zerotensor", no),
    ("aten::output_nr", |c| c.tensor(0).and_then(|_| one(0i64))),
    ("aten::data", |c| one(c.tensor(0)?)),
    ("aten::is_non_overlapping_and_dense", |c| {
        let t = c.tensor(0)?;
        one(layout::is_non_overlapping_and_dense(t.sizes(), t.strides()))
    }),
    ("aten::is_set_to", is_set_to),
    ("aten::_local_scalar_dense", |c| one(Value::from(c.tensor(0)?.item()?))),
    ("aten::_assert_async", |c| {
        asserted(c, "Expected Tensor with single nonzero value, but got zero")
    }),
    ("aten::_assert_async.msg", |c| asserted(c, c.text(1)?)),
    ("prim::type", device_type),
    ("prim::index", device_index),
];

/// The tensor that the argument is, or the padded one of a nested tensor: a pair of that and a mask.
pub(crate) fn described(call: &Call<'_>) -> Result<Tensor, OpError> {
    match call.arg(0) {
        Value::Tuple(pair) => match pair.items.first() {
            Some(Value::Tensor(cell)) => Ok(cell.get()),
            _ => Err(OpError::raised("expected a tensor")),
        },
        _ => call.tensor(0),
    }
}

/// Raises `message` unless the tensor holds one element that is not zero. Nothing is known of a tensor without elements.
fn asserted(call: &Call<'_>, message: &str) -> Result<Results, OpError> {
    let t = call.tensor(0)?;
    if t.numel() != 1 {
        let count = if t.numel() == 0 {
            "no values"
        } else {
            "more than one value"
        };
        return Err(OpError::raised(format!(
            "Boolean value of Tensor with {count} is ambiguous"
        )));
    }
    let is_unknown = t.storage().is_unknown();
    match t.item()?.as_bool() || is_unknown {
        true => Ok(Results::new()),
        false => Err(OpError::raised(message.to_owned())),
    }
}

/// A property that no dense CPU tensor has.
fn no(call: &Call<'_>) -> Result<Results, OpError> {
    call.tensor(0)?;
    one(false)
}

/// Whether both tensors are the same window on the same memory.
fn is_set_to(call: &Call<'_>) -> Result<Results, OpError> {
    let (a, b) = (call.tensor(0)?, call.tensor(1)?);
    one(a.shares_storage(&b) && (a.offset(), a.sizes(), a.strides()) == (b.offset(), b.sizes(), b.strides()))
}

fn device(call: &Call<'_>) -> Result<Device, OpError> {
    match call.arg(0) {
        Value::Device(d) => Ok(*d),
        _ => Err(OpError::raised("expected a device")),
    }
}

fn device_type(call: &Call<'_>) -> Result<Results, OpError> {
    let kind = Device {
        index: None,
        ..device(call)?
    };
    one(Value::str(kind.to_string()))
}

fn device_index(call: &Call<'_>) -> Result<Results, OpError> {
    one(device(call)?.index.map_or(Value::None, |i| Value::Int(i64::from(i))))
}
