//! Random values with fixed seeds.

use frazil_ir::DType;
use frazil_runtime::element::DoubleElement;
use frazil_runtime::storage::AlignedBytes;
use frazil_runtime::value::{ListValue, Value};
use frazil_runtime::{Scalar, Storage, Tensor};

/// A generator of numbers that is the same on all machines (xorshift*).
pub struct Random(u64);

impl Random {
    /// The same numbers for the same seed.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 33) % n
    }

    /// A number between -4 and 4 whose mantissa is full, so that sums in another order have another last place.
    pub fn double(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 50) as f64 - 4.0
    }

    /// A dense tensor of such numbers, converted to `dtype`. With `specials`, one element in seven is NaN, an infinity or the negative zero.
    pub fn tensor(&mut self, dtype: DType, sizes: &[i64], specials: bool) -> Tensor {
        let numel = sizes.iter().product::<i64>();
        let special = [f64::NAN, f64::INFINITY, -0.0, f64::NEG_INFINITY];
        let element = |at: i64| match specials && at % 7 == 3 {
            true => special[(at / 7 % 4) as usize],
            false => self.double(),
        };
        let elements: Vec<f64> = (0..numel).map(element).collect();
        let tensor = Tensor::from_elements::<DoubleElement>(&elements, sizes).expect("as many elements as sizes say");
        tensor.to_dtype(dtype).expect("numbers convert")
    }

    /// Integers from 0 to `below - 1`.
    pub fn indices(&mut self, sizes: &[i64], below: u64) -> Tensor {
        let numel = sizes.iter().product::<i64>();
        let elements: Vec<i64> = (0..numel).map(|_| self.below(below) as i64).collect();
        Tensor::from_i64(&elements, sizes).expect("as many elements as sizes say")
    }

    /// The arguments with random elements in all tensors of floating point; sizes, dtypes and other values stay, strides become dense.
    pub fn like(&mut self, args: &[Value], specials: bool) -> Vec<Value> {
        args.iter().map(|arg| self.value_like(arg, specials)).collect()
    }

    fn value_like(&mut self, value: &Value, specials: bool) -> Value {
        match value {
            Value::Tensor(cell) => {
                let t = cell.get();
                match t.dtype().is_floating_point() {
                    true => self.tensor(t.dtype(), t.sizes(), specials).into(),
                    false => copied(value),
                }
            }
            Value::List(list) => {
                let items = list.items().iter().map(|v| self.value_like(v, specials)).collect();
                Value::List(ListValue::new(list.element, items))
            }
            other => copied(other),
        }
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
