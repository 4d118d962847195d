//! Tensors that constructors make: zeros, ranges, random weights. Elements are doubles, rounded to the dtype after each step.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use frazil_ir::{DType, Device, Shape, Storage, TensorData};

use super::value::Py;

/// Most elements of a tensor that a constructor may make.
const MAX_ELEMENTS: i64 = 1 << 26;

/// A contiguous tensor. Its identity is that of its elements.
#[derive(Clone)]
pub(super) struct HostTensor {
    pub(super) dtype: DType,
    pub(super) sizes: Vec<i64>,
    pub(super) data: Rc<RefCell<Vec<f64>>>,
    /// Made of elements of another one: to Python a view of that, but here a copy, which is not to be written to.
    pub(super) is_part: bool,
    /// Whether a parameter of this tensor is to be trained.
    pub(super) requires_grad: Rc<Cell<bool>>,
}

/// The nearest value that an element of `dtype` can have.
fn rounded(dtype: DType, x: f64) -> f64 {
    match dtype {
        DType::Float => f64::from(x as f32),
        DType::Double => x,
        DType::Bool => f64::from(u8::from(x != 0.0)),
        _ => x.trunc(),
    }
}

/// How many elements a tensor of these sizes has, if it is not too large.
fn element_count(sizes: &[i64]) -> Option<i64> {
    let count = sizes
        .iter()
        .try_fold(1i64, |n, &size| if size < 0 { None } else { n.checked_mul(size) });
    count.filter(|&count| count <= MAX_ELEMENTS)
}

impl HostTensor {
    /// Whether constructors may make a tensor of these sizes.
    pub(super) fn is_allowed(sizes: &[i64]) -> bool {
        element_count(sizes).is_some()
    }

    /// A tensor of these elements; `None` when it would be too large, or of a dtype that constructors do not make.
    pub(super) fn new(dtype: DType, sizes: Vec<i64>, element: impl FnMut(usize) -> f64) -> Option<HostTensor> {
        let known = matches!(
            dtype,
            DType::Float | DType::Double | DType::Long | DType::Int | DType::Bool
        );
        let count = element_count(&sizes)?;
        if !known {
            return None;
        }
        let mut element = element;
        let data = (0..count as usize).map(|i| rounded(dtype, element(i))).collect();
        Some(HostTensor {
            dtype,
            sizes,
            data: Rc::new(RefCell::new(data)),
            is_part: false,
            requires_grad: Rc::new(Cell::new(true)),
        })
    }

    /// A new tensor of the same sizes with `f` of each element.
    pub(super) fn map(&self, dtype: DType, f: impl Fn(f64) -> f64) -> Option<HostTensor> {
        let data = self.data.borrow();
        HostTensor::new(dtype, self.sizes.clone(), |i| data.get(i).copied().map_or(0.0, &f))
    }

    /// The same elements in other sizes, of which one may be -1.
    pub(super) fn view(&self, sizes: &[i64]) -> Option<HostTensor> {
        let count = self.data.borrow().len() as i64;
        let known: i64 = sizes
            .iter()
            .filter(|&&n| n >= 0)
            .try_fold(1i64, |n, &size| n.checked_mul(size))?;
        let sizes: Vec<i64> = sizes
            .iter()
            .map(|&n| {
                if n < 0 {
                    count.checked_div(known).unwrap_or(0)
                } else {
                    n
                }
            })
            .collect();
        (sizes.iter().try_fold(1i64, |n, &size| n.checked_mul(size))? == count)
            .then(|| HostTensor { sizes, ..self.clone() })
    }

    /// Gives every element a new value.
    pub(super) fn fill(&self, mut element: impl FnMut(usize) -> f64) {
        for (i, x) in self.data.borrow_mut().iter_mut().enumerate() {
            *x = rounded(self.dtype, element(i));
        }
    }

    /// Takes the elements of `from`, if that has the same sizes.
    pub(super) fn copy_from(&self, from: &HostTensor) -> Option<()> {
        if self.sizes != from.sizes {
            return None;
        }
        let new = from.data.borrow().clone();
        self.fill(|i| new.get(i).copied().unwrap_or(0.0));
        Some(())
    }

    /// How many bytes the elements take, if nothing else holds them.
    pub(super) fn fresh_bytes(&self) -> u64 {
        match Rc::strong_count(&self.data) {
            1 => (self.data.borrow().len() * size_of::<f64>()) as u64,
            _ => 0,
        }
    }

    /// The constant with these elements.
    pub(super) fn constant(&self, requires_grad: bool) -> Option<TensorData> {
        let data = self.data.borrow();
        let mut bytes = Vec::with_capacity(data.len() * self.dtype.size());
        for &x in data.iter() {
            match self.dtype {
                DType::Float => bytes.extend_from_slice(&(x as f32).to_le_bytes()),
                DType::Double => bytes.extend_from_slice(&x.to_le_bytes()),
                DType::Long => bytes.extend_from_slice(&(x as i64).to_le_bytes()),
                DType::Int => bytes.extend_from_slice(&(x as i32).to_le_bytes()),
                _ => bytes.push(u8::from(x != 0.0)),
            }
        }
        let mut strides = Shape::from_elem(1, self.sizes.len());
        for i in (1..self.sizes.len()).rev() {
            strides[i - 1] = strides[i] * self.sizes[i].max(1);
        }
        let storage = Arc::new(Storage::new(Arc::new(bytes), Device::CPU));
        let sizes = Shape::from_slice(&self.sizes);
        let tensor = TensorData::new(self.dtype, sizes, strides, 0, storage).ok()?;
        Some(TensorData {
            requires_grad: requires_grad && self.requires_grad.get(),
            ..tensor
        })
    }
}

/// Random numbers for weights that PyTorch draws at random: the same ones every time.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new() -> Random {
        Random(0x5eed)
    }

    /// Uniform in [0, 1).
    pub(super) fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Normal with mean 0 and deviation 1.
    pub(super) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// The sizes and elements of nested lists of numbers, and whether any is a float or all are truth values.
pub(super) fn literal(value: &Py, dtype: Option<DType>) -> Option<HostTensor> {
    fn walk(value: &Py, depth: usize, sizes: &mut Vec<i64>, data: &mut Vec<f64>, kinds: &mut [bool; 3]) -> Option<()> {
        match value {
            Py::List(_) | Py::Tuple(_) => {
                let items = value.items()?;
                match sizes.get(depth) {
                    None if depth < 64 => sizes.push(items.len() as i64),
                    Some(&size) if size == items.len() as i64 => {}
                    _ => return None,
                }
                items
                    .iter()
                    .try_for_each(|item| walk(item, depth + 1, sizes, data, kinds))
            }
            number => {
                let kind = match number {
                    Py::Float(_) => 0,
                    Py::Bool(_) => 1,
                    _ => 2,
                };
                kinds[kind] = true;
                if data.len() as i64 >= MAX_ELEMENTS {
                    return None;
                }
                data.push(number.as_f64()?);
                (depth == sizes.len()).then_some(())
            }
        }
    }
    let (mut sizes, mut data, mut kinds) = (Vec::new(), Vec::new(), [false; 3]);
    walk(value, 0, &mut sizes, &mut data, &mut kinds)?;
    let found = match kinds {
        [false, true, false] => DType::Bool,
        [false, _, true] => DType::Long,
        _ => DType::Float,
    };
    let exact = data.iter().all(|x| x.abs() <= (1i64 << 53) as f64 || !x.is_finite());
    (exact || found != DType::Long).then_some(())?;
    HostTensor::new(dtype.unwrap_or(found), sizes, |i| data.get(i).copied().unwrap_or(0.0))
}
