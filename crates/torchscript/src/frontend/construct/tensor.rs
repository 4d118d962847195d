//! Tensors that constructors make: zeros, ranges, random weights. Elements are doubles, rounded to the dtype after each step; complex ones are real.
//!
//! A tensor is an object with an identity, as in PyTorch: views share storage, `p.data = x` gives the object `p` another storage, and a
//! [`HostTensor`] that is cloned is the same object.

use std::cell::{Cell, Ref, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use frazil_ir::{DType, Device, Shape, Storage, TensorData};
use half::{bf16, f16};

use super::value::Py;

/// Most elements of a tensor that a constructor may make.
const MAX_ELEMENTS: i64 = 1 << 26;

/// Integers beyond this are no longer exact in a double: it has the next one, but rounds to that, too.
const MAX_EXACT: f64 = ((1i64 << 53) - 1) as f64;

/// A tensor object.
#[derive(Clone)]
pub(super) struct HostTensor(Rc<TensorObject>);

struct TensorObject {
    view: RefCell<View>,
    requires_grad: Cell<bool>,
}

/// Elements of a storage: which ones, in which order.
#[derive(Clone)]
pub(super) struct View {
    pub(super) dtype: DType,
    pub(super) sizes: Vec<i64>,
    pub(super) strides: Vec<usize>,
    pub(super) offset: usize,
    pub(super) storage: Rc<RefCell<Vec<f64>>>,
}

/// The nearest value that an element of `dtype` can have; `None` for integers that are out of range or not exact in a double.
fn rounded(dtype: DType, x: f64) -> Option<f64> {
    let (least, most) = match dtype {
        DType::Float | DType::ComplexFloat => return Some(f64::from(x as f32)),
        DType::Double | DType::ComplexDouble => return Some(x),
        DType::Half => return Some(f16::from_f32(x as f32).to_f64()),
        DType::BFloat16 => return Some(bf16::from_f32(x as f32).to_f64()),
        DType::Bool => return Some(f64::from(u8::from(x != 0.0))),
        DType::Byte => (0.0, f64::from(u8::MAX)),
        DType::Char => (f64::from(i8::MIN), f64::from(i8::MAX)),
        DType::Short => (f64::from(i16::MIN), f64::from(i16::MAX)),
        DType::Int => (f64::from(i32::MIN), f64::from(i32::MAX)),
        _ => (-MAX_EXACT, MAX_EXACT),
    };
    let whole = x.trunc();
    (least <= whole && whole <= most).then_some(whole + 0.0)
}

/// Whether constructors compute with tensors of the dtype. Those of other dtypes are made, copied, viewed and converted.
pub(super) fn is_computed(dtype: DType) -> bool {
    matches!(
        dtype,
        DType::Float | DType::Double | DType::Long | DType::Int | DType::Bool
    )
}

/// Whether tensors of the dtype can require gradients.
pub(super) fn is_differentiable(dtype: DType) -> bool {
    dtype.is_floating_point() || dtype.is_complex()
}

/// How many elements a tensor of these sizes has, if it is not too large.
fn element_count(sizes: &[i64]) -> Option<i64> {
    let count = sizes
        .iter()
        .try_fold(1i64, |n, &size| if size < 0 { None } else { n.checked_mul(size) });
    count.filter(|&count| count <= MAX_ELEMENTS)
}

/// The strides of a contiguous tensor of these sizes.
fn contiguous_strides(sizes: &[i64]) -> Vec<usize> {
    let mut strides = vec![1usize; sizes.len()];
    for dim in (1..sizes.len()).rev() {
        strides[dim - 1] = strides[dim].saturating_mul(usize::try_from(sizes[dim]).unwrap_or(0).max(1));
    }
    strides
}

impl View {
    /// Where each element is stored, in the order of the tensor.
    pub(super) fn positions(&self) -> Vec<usize> {
        let mut positions = vec![self.offset];
        for (&size, &stride) in self.sizes.iter().zip(&self.strides) {
            let size = usize::try_from(size).unwrap_or(0);
            positions = positions
                .iter()
                .flat_map(|&p| (0..size).map(move |i| p + i * stride))
                .collect();
        }
        positions
    }

    fn is_contiguous(&self) -> bool {
        let wanted = contiguous_strides(&self.sizes);
        let mut dims = self.sizes.iter().zip(self.strides.iter().zip(&wanted));
        self.sizes.contains(&0) || dims.all(|(&size, (a, b))| size == 1 || a == b)
    }
}

impl HostTensor {
    /// Whether constructors may make a tensor of these sizes.
    pub(super) fn is_allowed(sizes: &[i64]) -> bool {
        element_count(sizes).is_some()
    }

    /// A tensor of these elements; `None` when it would be too large, of a dtype that constructors do not make, or has elements that the
    /// dtype does not have.
    pub(super) fn new(dtype: DType, sizes: Vec<i64>, element: impl FnMut(usize) -> f64) -> Option<HostTensor> {
        let known = !dtype.is_quantized() && dtype != DType::ComplexHalf;
        let count = element_count(&sizes)?;
        if !known {
            return None;
        }
        let mut element = element;
        let data: Vec<f64> = (0..count as usize)
            .map(|i| rounded(dtype, element(i)))
            .collect::<Option<_>>()?;
        Some(HostTensor::of(View {
            dtype,
            strides: contiguous_strides(&sizes),
            sizes,
            offset: 0,
            storage: Rc::new(RefCell::new(data)),
        }))
    }

    /// A new tensor object with these elements.
    pub(super) fn of(view: View) -> HostTensor {
        HostTensor(Rc::new(TensorObject {
            view: RefCell::new(view),
            requires_grad: Cell::new(false),
        }))
    }

    pub(super) fn view_of(&self) -> Ref<'_, View> {
        self.0.view.borrow()
    }

    pub(super) fn dtype(&self) -> DType {
        self.0.view.borrow().dtype
    }

    pub(super) fn sizes(&self) -> Vec<i64> {
        self.0.view.borrow().sizes.clone()
    }

    pub(super) fn rank(&self) -> usize {
        self.0.view.borrow().sizes.len()
    }

    /// How many elements it has.
    pub(super) fn len(&self) -> usize {
        element_count(&self.0.view.borrow().sizes).unwrap_or(0) as usize
    }

    /// The elements in the order of the tensor.
    pub(super) fn values(&self) -> Vec<f64> {
        let view = self.0.view.borrow();
        let data = view.storage.borrow();
        if view.is_contiguous() {
            let end = view.offset + self.len();
            return data.get(view.offset..end).unwrap_or_default().to_vec();
        }
        let element = |p: usize| data.get(p).copied().unwrap_or(0.0);
        view.positions().into_iter().map(element).collect()
    }

    pub(super) fn requires_grad(&self) -> bool {
        self.0.requires_grad.get()
    }

    pub(super) fn set_requires_grad(&self, flag: bool) {
        self.0.requires_grad.set(flag);
    }

    /// Whether both are one object.
    pub(super) fn is(&self, other: &HostTensor) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    /// The address of the object.
    pub(super) fn address(&self) -> usize {
        Rc::as_ptr(&self.0).cast::<()>() as usize
    }

    /// Whether a write to one may change the other.
    pub(super) fn shares_storage(&self, other: &HostTensor) -> bool {
        Rc::ptr_eq(&self.0.view.borrow().storage, &other.0.view.borrow().storage)
    }

    /// A new object with the same storage: `x.data`, `x.detach()`.
    pub(super) fn alias(&self) -> HostTensor {
        HostTensor::of(self.0.view.borrow().clone())
    }

    /// Gives the object the elements of another one, in one storage: `x.data = y`.
    pub(super) fn set_data(&self, from: &HostTensor) {
        let view = from.0.view.borrow().clone();
        *self.0.view.borrow_mut() = view;
    }

    /// A new tensor of the same sizes with `f` of each element.
    pub(super) fn map(&self, dtype: DType, f: impl Fn(f64) -> f64) -> Option<HostTensor> {
        let values = self.values();
        HostTensor::new(dtype, self.sizes(), |i| values.get(i).copied().map_or(0.0, &f))
    }

    /// A copy.
    pub(super) fn copy(&self) -> Option<HostTensor> {
        self.map(self.dtype(), |x| x)
    }

    /// The tensor itself where it has this dtype already, and else a copy: `x.float()`.
    pub(super) fn cast(&self, dtype: DType) -> Option<HostTensor> {
        if self.dtype() == dtype {
            return Some(self.clone());
        }
        self.map(dtype, |x| x)
    }

    pub(super) fn is_contiguous(&self) -> bool {
        self.0.view.borrow().is_contiguous()
    }

    /// The same elements in other sizes, of which one may be -1; `None` for tensors that are not contiguous.
    /// Gives the tensor other sizes in place, contiguous from its first element on. What it did not have before is zero.
    pub(super) fn resize(&self, sizes: &[i64]) -> Option<()> {
        let count = usize::try_from(element_count(sizes)?).ok()?;
        let mut view = self.0.view.borrow_mut();
        if view.sizes != sizes {
            let end = view.offset.checked_add(count)?;
            let mut storage = view.storage.borrow_mut();
            if storage.len() < end {
                storage.resize(end, 0.0);
            }
            drop(storage);
            view.strides = contiguous_strides(sizes);
            view.sizes = sizes.to_vec();
        }
        Some(())
    }

    pub(super) fn view(&self, sizes: &[i64]) -> Option<HostTensor> {
        let view = self.0.view.borrow();
        let count = self.len() as i64;
        let known: i64 = sizes
            .iter()
            .filter(|&&n| n >= 0)
            .try_fold(1i64, |n, &size| n.checked_mul(size))?;
        if sizes.iter().any(|&n| n < -1) || sizes.iter().filter(|&&n| n < 0).count() > 1 || !view.is_contiguous() {
            return None;
        }
        let sizes: Vec<i64> = sizes
            .iter()
            .map(|&n| if n < 0 { count.checked_div(known) } else { Some(n) })
            .collect::<Option<_>>()?;
        (sizes.iter().try_fold(1i64, |n, &size| n.checked_mul(size))? == count).then_some(())?;
        Some(HostTensor::of(View {
            strides: contiguous_strides(&sizes),
            sizes,
            ..view.clone()
        }))
    }

    /// Gives every element a new value; `None`, and no element is changed, where the dtype does not have one of them.
    pub(super) fn fill(&self, mut element: impl FnMut(usize) -> f64) -> Option<()> {
        let view = self.0.view.borrow();
        if view.is_contiguous() && view.dtype.is_floating_point() {
            // Nothing is out of range, and there is no need for lists of places and elements.
            let mut data = view.storage.borrow_mut();
            for (i, slot) in data.iter_mut().skip(view.offset).take(self.len()).enumerate() {
                *slot = rounded(view.dtype, element(i))?;
            }
            return Some(());
        }
        let positions = view.positions();
        let new: Vec<f64> = (0..positions.len())
            .map(|i| rounded(view.dtype, element(i)))
            .collect::<Option<_>>()?;
        let mut data = view.storage.borrow_mut();
        for (position, x) in positions.into_iter().zip(new) {
            if let Some(slot) = data.get_mut(position) {
                *slot = x;
            }
        }
        Some(())
    }

    /// Takes the elements of `from`, broadcast.
    pub(super) fn copy_from(&self, from: &HostTensor) -> Option<()> {
        let new = from.values();
        if from.sizes() == self.sizes() {
            return self.fill(|i| new.get(i).copied().unwrap_or(0.0));
        }
        let places = super::elements::broadcast_positions(&from.sizes(), &self.sizes())?;
        self.fill(|i| places.get(i).and_then(|&p| new.get(p)).copied().unwrap_or(0.0))
    }

    /// How many bytes the elements take, if nothing else holds them.
    pub(super) fn fresh_bytes(&self) -> u64 {
        let view = self.0.view.borrow();
        match Rc::strong_count(&view.storage) {
            1 => (view.storage.borrow().len() * size_of::<f64>()) as u64,
            _ => 0,
        }
    }

    /// The constant with these elements. `storage` gives the storage that stands for the tensor's one.
    pub(super) fn constant(&self, storage: impl FnOnce(&View) -> Arc<Storage>) -> Option<TensorData> {
        let view = self.0.view.borrow();
        let strides: Shape = view.strides.iter().map(|&stride| stride as i64).collect();
        let sizes = Shape::from_slice(&view.sizes);
        let tensor = TensorData::new(view.dtype, sizes, strides, view.offset as i64, storage(&view)).ok()?;
        Some(TensorData {
            requires_grad: self.requires_grad(),
            ..tensor
        })
    }
}

/// A storage with the elements of the one that `view` is of.
pub(super) fn lowered_storage(view: &View) -> Arc<Storage> {
    let data = view.storage.borrow();
    let mut bytes = Vec::with_capacity(data.len() * view.dtype.size());
    for &x in data.iter() {
        match view.dtype {
            DType::Float => bytes.extend_from_slice(&(x as f32).to_le_bytes()),
            DType::Double => bytes.extend_from_slice(&x.to_le_bytes()),
            DType::Long => bytes.extend_from_slice(&(x as i64).to_le_bytes()),
            DType::Int => bytes.extend_from_slice(&(x as i32).to_le_bytes()),
            DType::Short => bytes.extend_from_slice(&(x as i16).to_le_bytes()),
            DType::Char => bytes.extend_from_slice(&(x as i8).to_le_bytes()),
            DType::Byte => bytes.push(x as u8),
            DType::Half => bytes.extend_from_slice(&f16::from_f64(x).to_le_bytes()),
            DType::BFloat16 => bytes.extend_from_slice(&bf16::from_f64(x).to_le_bytes()),
            // Constructors make no imaginary parts.
            DType::ComplexFloat => {
                bytes.extend_from_slice(&(x as f32).to_le_bytes());
                bytes.extend_from_slice(&0f32.to_le_bytes());
            }
            DType::ComplexDouble => {
                bytes.extend_from_slice(&x.to_le_bytes());
                bytes.extend_from_slice(&0f64.to_le_bytes());
            }
            _ => bytes.push(u8::from(x != 0.0)),
        }
    }
    Arc::new(Storage::new(Arc::new(bytes), Device::CPU))
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
                    // Elements before this one have fewer dimensions.
                    None if !data.is_empty() => return None,
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
    let exact = data.iter().all(|x| x.abs() <= MAX_EXACT || !x.is_finite());
    (exact || found != DType::Long).then_some(())?;
    HostTensor::new(dtype.unwrap_or(found), sizes, |i| data.get(i).copied().unwrap_or(0.0))
}
