//! Tensors in constructors: zeros, ranges, random weights. Elements are doubles, rounded to the dtype after each step, or pairs of doubles for complex dtypes.
//!
//! A tensor is an object with an identity, as in PyTorch. Views share a storage, `p.data = x` replaces the storage of the object `p`, and a clone of a
//! [`HostTensor`] is the same object.

use std::cell::{Cell, Ref, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use frazil_ir::promotion::real_of;
use frazil_ir::{DType, Device, Shape, Storage, TensorData};
use num_complex::Complex64;

use super::dtypes::{self, rounded, wrapped};

/// Maximum number of elements of a tensor that a constructor may create.
pub(super) const MAX_ELEMENTS: i64 = 1 << 26;

/// A tensor object, as constructors compute with it. Clones are the same object.
#[derive(Clone)]
pub(super) struct HostTensor(Rc<TensorObject>);

struct TensorObject {
    view: RefCell<View>,
    requires_grad: Cell<bool>,
}

/// A view of a storage: offset, sizes and strides in elements.
#[derive(Clone)]
pub(super) struct View {
    pub(super) dtype: DType,
    pub(super) sizes: Vec<i64>,
    pub(super) strides: Vec<usize>,
    pub(super) offset: usize,
    pub(super) storage: Rc<RefCell<Vec<f64>>>,
}

/// Returns the number of elements of a tensor with these sizes; `None` if it is too large.
fn element_count(sizes: &[i64]) -> Option<i64> {
    let count = sizes
        .iter()
        .try_fold(1i64, |n, &size| if size < 0 { None } else { n.checked_mul(size) });
    count.filter(|&count| count <= MAX_ELEMENTS)
}

/// Returns the strides of a contiguous tensor of these sizes.
fn contiguous_strides(sizes: &[i64]) -> Vec<usize> {
    let mut strides = vec![1usize; sizes.len()];
    for dim in (1..sizes.len()).rev() {
        strides[dim - 1] = strides[dim].saturating_mul(usize::try_from(sizes[dim]).unwrap_or(0).max(1));
    }
    strides
}

impl View {
    /// Returns the position of each element in the storage, in row-major order of the tensor.
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

    /// Returns the number of doubles that represent one element.
    fn width(&self) -> usize {
        if self.dtype.is_complex() { 2 } else { 1 }
    }

    fn is_contiguous(&self) -> bool {
        let wanted = contiguous_strides(&self.sizes);
        let mut dims = self.sizes.iter().zip(self.strides.iter().zip(&wanted));
        self.sizes.contains(&0) || dims.all(|(&size, (a, b))| size == 1 || a == b)
    }
}

impl HostTensor {
    /// Returns whether constructors may create a tensor with these sizes.
    pub(super) fn is_allowed(sizes: &[i64]) -> bool {
        element_count(sizes).is_some()
    }

    /// Returns a tensor of these elements; `None` if it is too large, its dtype is not supported, or an element is not representable in the dtype.
    pub(super) fn new(dtype: DType, sizes: Vec<i64>, element: impl FnMut(usize) -> f64) -> Option<HostTensor> {
        let mut element = element;
        if dtype.is_complex() {
            return HostTensor::of_complex(dtype, sizes, |i| Complex64::from(element(i)));
        }
        let count = element_count(&sizes)?;
        dtypes::is_known(dtype).then_some(())?;
        let data: Vec<f64> = (0..count as usize)
            .map(|i| rounded(dtype, element(i)))
            .collect::<Option<_>>()?;
        Some(HostTensor::with(dtype, sizes, data))
    }

    /// Returns a tensor of a complex dtype with these elements.
    pub(super) fn of_complex(
        dtype: DType,
        sizes: Vec<i64>,
        mut element: impl FnMut(usize) -> Complex64,
    ) -> Option<HostTensor> {
        let count = element_count(&sizes)?;
        dtype.is_complex().then_some(())?;
        let mut data = Vec::with_capacity(2 * count as usize);
        for i in 0..count as usize {
            let number = element(i);
            data.extend([rounded(dtype, number.re)?, rounded(dtype, number.im)?]);
        }
        Some(HostTensor::with(dtype, sizes, data))
    }

    fn with(dtype: DType, sizes: Vec<i64>, data: Vec<f64>) -> HostTensor {
        HostTensor::of(View {
            dtype,
            strides: contiguous_strides(&sizes),
            sizes,
            offset: 0,
            storage: Rc::new(RefCell::new(data)),
        })
    }

    /// Returns a new tensor object that is the view `view`.
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

    /// Returns the number of elements.
    pub(super) fn len(&self) -> usize {
        element_count(&self.0.view.borrow().sizes).unwrap_or(0) as usize
    }

    /// Returns the elements in row-major order; the real parts for complex dtypes.
    pub(super) fn values(&self) -> Vec<f64> {
        let view = self.0.view.borrow();
        let data = view.storage.borrow();
        if view.dtype.is_complex() {
            drop(data);
            drop(view);
            return self.complex_values().into_iter().map(|number| number.re).collect();
        }
        if view.is_contiguous() {
            let end = view.offset + self.len();
            return data.get(view.offset..end).unwrap_or_default().to_vec();
        }
        let element = |p: usize| data.get(p).copied().unwrap_or(0.0);
        view.positions().into_iter().map(element).collect()
    }

    /// Returns the elements in row-major order, as complex numbers.
    pub(super) fn complex_values(&self) -> Vec<Complex64> {
        let view = self.0.view.borrow();
        let (data, width) = (view.storage.borrow(), view.width());
        let part = |p: usize| data.get(p).copied().unwrap_or(0.0);
        let number = |p: usize| match width {
            2 => Complex64::new(part(2 * p), part(2 * p + 1)),
            _ => Complex64::from(part(p)),
        };
        view.positions().into_iter().map(number).collect()
    }

    pub(super) fn requires_grad(&self) -> bool {
        self.0.requires_grad.get()
    }

    pub(super) fn set_requires_grad(&self, flag: bool) {
        self.0.requires_grad.set(flag);
    }

    /// Returns whether both handles refer to the same tensor object.
    pub(super) fn is(&self, other: &HostTensor) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the address of the tensor object, which identifies it during its lifetime.
    pub(super) fn address(&self) -> usize {
        Rc::as_ptr(&self.0).cast::<()>() as usize
    }

    /// Returns whether both tensors share a storage, so that a write to one may change the other.
    pub(super) fn shares_storage(&self, other: &HostTensor) -> bool {
        Rc::ptr_eq(&self.0.view.borrow().storage, &other.0.view.borrow().storage)
    }

    /// Returns a new tensor object with the same storage, as `x.data` and `x.detach()` do.
    pub(super) fn alias(&self) -> HostTensor {
        HostTensor::of(self.0.view.borrow().clone())
    }

    /// Makes this tensor object a view of the storage of `from`, as `x.data = y` does.
    pub(super) fn set_data(&self, from: &HostTensor) {
        let view = from.0.view.borrow().clone();
        *self.0.view.borrow_mut() = view;
    }

    /// Returns a new tensor of the same sizes with `f` applied to each element; `None` for complex tensors.
    pub(super) fn map(&self, dtype: DType, f: impl Fn(f64) -> f64) -> Option<HostTensor> {
        (!self.dtype().is_complex()).then_some(())?;
        let values = self.values();
        HostTensor::new(dtype, self.sizes(), |i| values.get(i).copied().map_or(0.0, &f))
    }

    /// Returns a copy with its own storage.
    pub(super) fn copy(&self) -> Option<HostTensor> {
        match self.dtype().is_complex() {
            true => self.map_complex(|x| x),
            false => self.map(self.dtype(), |x| x),
        }
    }

    /// Returns the tensor itself if its dtype is `dtype`, otherwise a copy, as `x.float()` does.
    pub(super) fn cast(&self, dtype: DType) -> Option<HostTensor> {
        if self.dtype() == dtype {
            return Some(self.clone());
        }
        let from = self.dtype();
        if from.is_complex() {
            let values = self.complex_values();
            let number = |i: usize| values.get(i).copied().unwrap_or_default();
            return match dtype {
                _ if dtype.is_complex() => HostTensor::of_complex(dtype, self.sizes(), number),
                DType::Bool => HostTensor::new(dtype, self.sizes(), |i| {
                    f64::from(u8::from(number(i) != Complex64::ZERO))
                }),
                // Imaginary parts are left out.
                _ => HostTensor::new(dtype, self.sizes(), |i| number(i).re),
            };
        }
        // Floats out of the range of the integer dtype are not wrapped: their conversion is undefined in C++.
        let is_float = from.is_floating_point();
        self.map(dtype, |x| if is_float { x } else { wrapped(dtype, x) })
    }

    pub(super) fn is_contiguous(&self) -> bool {
        self.0.view.borrow().is_contiguous()
    }

    /// Changes the sizes in place. The elements are then contiguous, from the first element of the storage view on; new elements are zero.
    pub(super) fn resize(&self, sizes: &[i64]) -> Option<()> {
        let count = usize::try_from(element_count(sizes)?).ok()?;
        let mut view = self.0.view.borrow_mut();
        if view.sizes != sizes {
            let end = view.offset.checked_add(count)?.checked_mul(view.width())?;
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

    /// Sets every element to the result of `element`. Returns `None` and changes nothing if the dtype cannot represent a value.
    pub(super) fn fill(&self, mut element: impl FnMut(usize) -> f64) -> Option<()> {
        let view = self.0.view.borrow();
        if view.is_contiguous() && view.dtype.is_floating_point() {
            // Fast path: the elements are adjacent, and no number is out of the range of the dtype.
            let mut data = view.storage.borrow_mut();
            for (i, slot) in data.iter_mut().skip(view.offset).take(self.len()).enumerate() {
                *slot = rounded(view.dtype, element(i))?;
            }
            return Some(());
        }
        if view.dtype.is_complex() {
            drop(view);
            return self.fill_complex(|i| Complex64::from(element(i)));
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

    /// Sets every element of a complex tensor to the result of `element`.
    pub(super) fn fill_complex(&self, mut element: impl FnMut(usize) -> Complex64) -> Option<()> {
        let view = self.0.view.borrow();
        view.dtype.is_complex().then_some(())?;
        let mut data = view.storage.borrow_mut();
        for (i, position) in view.positions().into_iter().enumerate() {
            let number = element(i);
            for (part, x) in [number.re, number.im].into_iter().enumerate() {
                if let Some(slot) = data.get_mut(2 * position + part) {
                    *slot = rounded(view.dtype, x)?;
                }
            }
        }
        Some(())
    }

    /// Copies the elements of `from`, which is broadcast.
    pub(super) fn copy_from(&self, from: &HostTensor) -> Option<()> {
        if self.dtype().is_complex() {
            let new = from.complex_values();
            let places = broadcast_positions(&from.sizes(), &self.sizes())?;
            return self.fill_complex(|i| places.get(i).and_then(|&p| new.get(p)).copied().unwrap_or_default());
        }
        let new = match self.dtype().is_floating_point() {
            true => from.values(),
            false => from.cast(self.dtype())?.values(),
        };
        if from.sizes() == self.sizes() {
            return self.fill(|i| new.get(i).copied().unwrap_or(0.0));
        }
        let places = broadcast_positions(&from.sizes(), &self.sizes())?;
        self.fill(|i| places.get(i).and_then(|&p| new.get(p)).copied().unwrap_or(0.0))
    }

    /// Returns the size of the storage in bytes; 0 if another tensor shares the storage.
    pub(super) fn fresh_bytes(&self) -> u64 {
        let view = self.0.view.borrow();
        match Rc::strong_count(&view.storage) {
            1 => (view.storage.borrow().len() * size_of::<f64>()) as u64,
            _ => 0,
        }
    }

    /// Returns the tensor as a constant. `storage` returns the constant's storage for the tensor's view.
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

/// Returns the storage of a view as a constant storage.
pub(super) fn lowered_storage(view: &View) -> Arc<Storage> {
    let data = view.storage.borrow();
    let mut bytes = Vec::with_capacity(data.len() * real_of(view.dtype).size());
    for &x in data.iter() {
        dtypes::append(&mut bytes, view.dtype, x);
    }
    Arc::new(Storage::new(Arc::new(bytes), Device::CPU))
}

/// Returns, for each element of a tensor with sizes `sizes`, the position of the element that broadcasts to it from a tensor with sizes `from`.
pub(super) fn broadcast_positions(from: &[i64], sizes: &[i64]) -> Option<Vec<usize>> {
    let lead = sizes.len().checked_sub(from.len())?;
    let mut strides = vec![0usize; sizes.len()];
    let mut stride = 1usize;
    for (at, &size) in from.iter().enumerate().rev() {
        match *sizes.get(at + lead)? {
            wanted if wanted == size => strides[at + lead] = stride,
            _ if size == 1 => {}
            _ => return None,
        }
        stride = stride.checked_mul(usize::try_from(size).ok()?)?;
    }
    let mut positions = vec![0usize];
    for (&size, &stride) in sizes.iter().zip(&strides) {
        positions = positions
            .iter()
            .flat_map(|&p| (0..size.max(0) as usize).map(move |i| p + i * stride))
            .collect();
    }
    Some(positions)
}
