//! Queries about properties of a tensor or a device.

use frazil_ir::Device;
use frazil_ir::schema::Observes;
use frazil_runtime::Tensor;
use frazil_runtime::entry::{Entry, Row};
use frazil_runtime::layout;
use frazil_runtime::op::{Call, OpError, Results, one};
use frazil_runtime::value::Value;

pub(crate) const ENTRIES: &[Row] = &[
    // Without semantics.
    ("prim::BailOut", Entry::new().has_effects()),
    ("prim::PythonOp", Entry::new().has_effects()),
    ("prim::TimePoint", Entry::new().external().has_effects()),
    ("prim::awaitable_wait", Entry::new().has_effects()),
    ("prim::rpc_async", Entry::new().has_effects()),
    (
        "prim::dtype",
        Entry::kernel(|c| one(described(c)?.dtype().code()))
            .fixed_sizes()
            .total(),
    ),
    (
        "prim::device",
        Entry::kernel(|c| described(c).and_then(|_| one(Value::Device(Device::CPU))))
            .fixed_sizes()
            .total(),
    ),
    // torch.strided
    ("prim::layout", Entry::kernel(|c| c.tensor(0).and_then(|_| one(0i64)))),
    (
        "prim::requires_grad",
        Entry::kernel(|c| described(c).and_then(|_| one(false))),
    ),
    (
        "prim::grad",
        Entry::kernel(|c| c.tensor(0).and_then(|_| one(Value::None))),
    ),
    ("prim::data", Entry::kernel(|c| one(c.arg(0).clone()))),
    ("prim::is_cpu", Entry::kernel(|c| c.tensor(0).and_then(|_| one(true)))),
    ("prim::is_cuda", Entry::kernel(no)),
    ("prim::is_ipu", Entry::kernel(no)),
    ("prim::is_maia", Entry::kernel(no)),
    ("prim::is_meta", Entry::kernel(no)),
    ("prim::is_mkldnn", Entry::kernel(no)),
    ("prim::is_mps", Entry::kernel(no)),
    ("prim::is_mtia", Entry::kernel(no)),
    (
        "prim::is_nested",
        Entry::kernel(|c| described(c).and_then(|_| one(matches!(c.arg(0), Value::Tuple(_))))),
    ),
    (
        "prim::is_quantized",
        Entry::kernel(|c| one(c.tensor(0)?.dtype().is_quantized())),
    ),
    ("prim::is_sparse", Entry::kernel(no)),
    ("prim::is_sparse_csr", Entry::kernel(no)),
    ("prim::is_vulkan", Entry::kernel(no)),
    ("prim::is_xla", Entry::kernel(no)),
    ("prim::is_xpu", Entry::kernel(no)),
    (
        "prim::itemsize",
        Entry::kernel(|c| one(c.tensor(0)?.dtype().size() as i64)).fixed_sizes(),
    ),
    (
        "prim::nbytes",
        Entry::kernel(|c| c.tensor(0).and_then(|t| one(t.numel() * t.dtype().size() as i64))).fixed_sizes(),
    ),
    (
        "aten::is_leaf",
        Entry::kernel(|c| c.tensor(0).and_then(|_| one(true))).fixed_sizes(),
    ),
    ("aten::is_distributed", Entry::kernel(no)),
    ("aten::is_pinned", Entry::kernel(no)),
    ("aten::retains_grad", Entry::kernel(no)),
    ("aten::_is_zerotensor", Entry::kernel(no)),
    (
        "aten::output_nr",
        Entry::kernel(|c| c.tensor(0).and_then(|_| one(0i64))),
    ),
    ("aten::data", Entry::kernel(|c| one(c.tensor(0)?))),
    (
        "aten::is_non_overlapping_and_dense",
        Entry::kernel(|c| {
            let t = c.tensor(0)?;
            one(layout::is_non_overlapping_and_dense(t.sizes(), t.strides()))
        })
        .observes(Observes::Order),
    ),
    ("aten::is_set_to", Entry::kernel(is_set_to).observes(Observes::Storage)),
    (
        "aten::_local_scalar_dense",
        Entry::kernel(|c| one(Value::from(c.tensor(0)?.item()?))),
    ),
    (
        "aten::_assert_async",
        Entry::kernel(|c| asserted(c, "Expected Tensor with single nonzero value, but got zero")).fixed_sizes(),
    ),
    ("aten::_assert_async.msg", Entry::kernel(|c| asserted(c, c.text(1)?))),
    ("prim::type", Entry::kernel(device_type)),
    ("prim::index", Entry::kernel(device_index)),
];

/// Returns the tensor argument. For a nested tensor, which is a pair of a padded tensor and a mask, it is the padded
/// tensor.
pub(crate) fn described(call: &Call<'_>) -> Result<Tensor, OpError> {
    match call.arg(0) {
        Value::Tuple(pair) => match pair.items.first() {
            Some(Value::Tensor(cell)) => Ok(cell.get()),
            _ => Err(OpError::raised("expected a tensor")),
        },
        _ => call.tensor(0),
    }
}

/// Raises the exception `message` if the tensor's only element is zero. A tensor without exactly one element raises another exception. If the elements are
/// unknown, nothing is checked.
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

/// Returns false, for a property that no dense CPU tensor has.
fn no(call: &Call<'_>) -> Result<Results, OpError> {
    call.tensor(0)?;
    one(false)
}

/// Returns whether both tensors are views of the same memory with the same sizes and strides.
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
