//! Tensors that constructors make: zeros, ranges, random weights. Elements are doubles, rounded to the dtype after each step, or pairs of
//! doubles where the dtype is complex.
//!
//! A tensor is an object with an identity, as in PyTorch: views share storage, `p.data = x` gives the object `p` another storage, and a
//! [`HostTensor`] that is cloned is the same object.

use std::cell::{Cell, Ref, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use frazil_ir::promotion::real_of;
use frazil_ir::{DType, Device, Shape, Storage, TensorData};
use num_complex::Complex64;

use super::dtypes::{self, MAX_EXACT, rounded, wrapped};
use super::value::Py;

/// Most elements of a tensor that a constructor may make.
const MAX_ELEMENTS: i64 = 1 << 26;

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

    /// How many doubles of the storage an element is.
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
    /// Whether constructors may make a tensor of these sizes.
    pub(super) fn is_allowed(sizes: &[i64]) -> bool {
        element_count(sizes).is_some()
    }

    /// A tensor of these elements; `None` when it would be too large, of a dtype that constructors do not make, or has elements that the
    /// dtype does not have.
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

    /// A tensor of these elements of a complex dtype.
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

    /// The elements in the order of the tensor; of complex ones the real parts.
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

    /// The elements in the order of the tensor, as complex numbers.
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

    /// A new tensor of the same sizes with `f` of each element; `None` for complex tensors.
    pub(super) fn map(&self, dtype: DType, f: impl Fn(f64) -> f64) -> Option<HostTensor> {
        (!self.dtype().is_complex()).then_some(())?;
        let values = self.values();
        HostTensor::new(dtype, self.sizes(), |i| values.get(i).copied().map_or(0.0, &f))
    }

    /// A copy.
    pub(super) fn copy(&self) -> Option<HostTensor> {
        match self.dtype().is_complex() {
            true => self.map_complex(|x| x),
            false => self.map(self.dtype(), |x| x),
        }
    }

    /// The tensor itself where it has this dtype already, and else a copy: `x.float()`.
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
        // What floats beyond the range of integers become is the processor's.
        let is_float = from.is_floating_point();
        self.map(dtype, |x| if is_float { x } else { wrapped(dtype, x) })
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

    /// Gives every element of a complex tensor a new value.
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

    /// Takes the elements of `from`, broadcast.
    pub(super) fn copy_from(&self, from: &HostTensor) -> Option<()> {
        if self.dtype().is_complex() {
            let new = from.complex_values();
            let places = super::elements::broadcast_positions(&from.sizes(), &self.sizes())?;
            return self.fill_complex(|i| places.get(i).and_then(|&p| new.get(p)).copied().unwrap_or_default());
        }
        let new = match self.dtype().is_floating_point() {
            true => from.values(),
            false => from.cast(self.dtype())?.values(),
        };
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
    let mut bytes = Vec::with_capacity(data.len() * real_of(view.dtype).size());
    for &x in data.iter() {
        dtypes::append(&mut bytes, view.dtype, x);
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

/// Elements of nested lists of numbers.
struct Literal {
    sizes: Vec<i64>,
    data: Vec<Complex64>,
    /// Whether there are floats, bools, integers, complex numbers.
    kinds: [bool; 4],
}

impl Literal {
    fn walk(&mut self, value: &Py, depth: usize) -> Option<()> {
        let value = match value {
            Py::Tensor(tensor) | Py::Parameter(tensor) if tensor.rank() == 0 && tensor.dtype() == DType::Float => {
                &Py::Float(tensor.values().first().copied()?)
            }
            other => other,
        };
        if let Py::List(_) | Py::Tuple(_) | Py::Size(_) | Py::Named(_) = value {
            let items = value.items()?;
            match self.sizes.get(depth) {
                // Elements before this one have fewer dimensions.
                None if !self.data.is_empty() => return None,
                None if depth < 64 => self.sizes.push(items.len() as i64),
                Some(&size) if size == items.len() as i64 => {}
                _ => return None,
            }
            return items.iter().try_for_each(|item| self.walk(item, depth + 1));
        }
        let kind = match value {
            Py::Float(_) => 0,
            Py::Bool(_) => 1,
            Py::Complex(_) => 3,
            _ => 2,
        };
        self.kinds[kind] = true;
        if self.data.len() as i64 >= MAX_ELEMENTS {
            return None;
        }
        self.data.push(value.as_complex()?);
        (depth == self.sizes.len()).then_some(())
    }

    fn of(value: &Py) -> Option<Literal> {
        let mut literal = Literal {
            sizes: Vec::new(),
            data: Vec::new(),
            kinds: [false; 4],
        };
        literal.walk(value, 0)?;
        Some(literal)
    }

    fn dtype(&self) -> DType {
        match self.kinds {
            [.., true] => DType::ComplexFloat,
            [false, true, false, _] => DType::Bool,
            [false, _, true, _] => DType::Long,
            _ => DType::Float,
        }
    }
}

/// The tensor with the elements of nested lists of numbers.
pub(super) fn literal(value: &Py, dtype: Option<DType>) -> Option<HostTensor> {
    let literal = Literal::of(value)?;
    let found = literal.dtype();
    let exact = literal
        .data
        .iter()
        .all(|x| x.re.abs() <= MAX_EXACT || !x.re.is_finite());
    (exact || found != DType::Long).then_some(())?;
    let dtype = dtype.unwrap_or(found);
    let number = |i: usize| literal.data.get(i).copied().unwrap_or_default();
    if dtype.is_complex() {
        return HostTensor::of_complex(dtype, literal.sizes.clone(), number);
    }
    (!literal.kinds[3]).then_some(())?;
    // An unsigned element takes negative integers down to the least signed one.
    let is_whole = !literal.kinds[0];
    HostTensor::new(dtype, literal.sizes.clone(), |i| match number(i).re {
        x if is_whole && dtype == DType::Byte && (-255.0..0.0).contains(&x) => wrapped(dtype, x),
        x => x,
    })
}

/// What PyTorch says of a number that `torch.tensor(value, dtype)` cannot hold.
pub(super) fn literal_error(value: &Py, dtype: DType) -> Option<String> {
    let literal = Literal::of(value)?;
    if literal.kinds[3] && !dtype.is_complex() {
        return Some("must be real number, not complex".into());
    }
    let (least, greatest) = dtypes::bounds(dtype)?;
    let least = if dtype == DType::Byte { -greatest } else { least };
    let is_out = literal.data.iter().any(|x| !(least..=greatest).contains(&x.re.trunc()));
    is_out.then(|| format!("value cannot be converted to type {} without overflow", c_name(dtype)))
}

fn c_name(dtype: DType) -> &'static str {
    match dtype {
        DType::Byte => "uint8",
        DType::Char => "int8",
        DType::Short => "int16",
        _ => "int32",
    }
}
