//! Arguments of calls with random elements.

use frazil_ir::DType;
use frazil_recorded::random::Random;
use frazil_runtime::storage::AlignedBytes;
use frazil_runtime::value::{ListValue, Value};
use frazil_runtime::{Scalar, Storage, Tensor};

/// The arguments with random elements in all tensors of floating point; sizes, dtypes and other values stay, strides become dense.
pub fn like(random: &mut Random, args: &[Value], specials: bool) -> Vec<Value> {
    args.iter().map(|arg| value_like(random, arg, specials)).collect()
}

fn value_like(random: &mut Random, value: &Value, specials: bool) -> Value {
    match value {
        Value::Tensor(cell) => {
            let t = cell.get();
            match t.dtype().is_floating_point() {
                true => random.tensor(t.dtype(), t.sizes(), specials).into(),
                false => copied(value),
            }
        }
        Value::List(list) => {
            let items = list.items();
            let items = items.iter().map(|v| value_like(random, v, specials)).collect();
            Value::List(ListValue::new(list.element, items))
        }
        other => copied(other),
    }
}

/// The value with tensors and lists of its own. Tensors lie in copies of their whole memory, so that strides and offsets stay as they are.
pub fn copied(value: &Value) -> Value {
    match value {
        Value::Tensor(cell) => {
            let t = cell.get();
            let bytes = AlignedBytes::copied(&t.storage().bytes()).expect("there is memory");
            let copy = Tensor::from_storage(
                Storage::from_owned(bytes),
                t.dtype(),
                t.sizes(),
                t.strides(),
                t.offset(),
            );
            copy.expect("it fits as the original does").with_marks(t.marks()).into()
        }
        Value::List(list) => Value::List(ListValue::new(list.element, list.items().iter().map(copied).collect())),
        other => other.clone(),
    }
}

/// The same elements in column-major order, where there are two dimensions or more; with channels innermost for images.
pub fn laid_out_otherwise(t: &Tensor) -> Option<Tensor> {
    let rank = t.dim();
    if rank < 2 {
        return None;
    }
    let mut strides = vec![0; rank];
    let order: Vec<usize> = match rank {
        4 => vec![1, 3, 2, 0],
        _ => (0..rank).collect(),
    };
    let mut stride = 1;
    for d in order {
        strides[d] = stride;
        stride *= t.sizes()[d].max(1);
    }
    t.with_strides(&strides).ok()
}

/// A zero-dimensional tensor.
pub fn number(dtype: DType, value: f64) -> Tensor {
    Tensor::scalar(dtype, Scalar::Float(value))
}
