//! DLPack: tensors of other libraries without copying, in both directions.
//!
//! The layouts are those of version 0 of the format (`DLManagedTensor`), which every library exchanges unless a newer one is requested.

use crate::errors::{type_error, value_error};
use frazil::Tensor;
use frazil::ir::DType;
use frazil::runtime::storage::AlignedBytes;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};
use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

/// The name of a capsule whose tensor has not been imported.
const FRESH: &CStr = c"dltensor";
/// The name of a capsule whose tensor has been imported.
const USED: &CStr = c"used_dltensor";
/// The number of the host among DLPack's devices.
pub(crate) const CPU: i32 = 1;

#[repr(C)]
#[derive(Clone, Copy)]
struct Device {
    kind: i32,
    index: i32,
}

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
struct Element {
    code: u8,
    bits: u8,
    lanes: u16,
}

#[repr(C)]
struct View {
    data: *mut c_void,
    device: Device,
    rank: i32,
    element: Element,
    sizes: *mut i64,
    /// Strides in elements; null for row-major tensors.
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct Managed {
    view: View,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

/// DLPack's type codes, with their dtypes.
const ELEMENTS: [(DType, u8); 13] = [
    (DType::Char, 0),
    (DType::Short, 0),
    (DType::Int, 0),
    (DType::Long, 0),
    (DType::Byte, 1),
    (DType::Half, 2),
    (DType::Float, 2),
    (DType::Double, 2),
    (DType::BFloat16, 4),
    (DType::ComplexHalf, 5),
    (DType::ComplexFloat, 5),
    (DType::ComplexDouble, 5),
    (DType::Bool, 6),
];

impl Element {
    fn of(dtype: DType) -> Option<Element> {
        let (_, code) = ELEMENTS.iter().find(|(known, _)| *known == dtype)?;
        let bits = u8::try_from(dtype.size() * 8).ok()?;
        Some(Element {
            code: *code,
            bits,
            lanes: 1,
        })
    }

    fn dtype(self) -> Option<DType> {
        let known = ELEMENTS.iter().map(|(dtype, _)| *dtype);
        known.into_iter().find(|dtype| Element::of(*dtype) == Some(self))
    }
}

/// A tensor of another library, released when dropped.
pub(crate) struct Imported {
    managed: NonNull<Managed>,
    /// The first byte of the tensor.
    pub(crate) data: *mut u8,
    pub(crate) len: usize,
}

// SAFETY: DLPack requires that a deleter may be called on any thread. The bytes belong to the other library, as those of every array that is shared
// with it.
unsafe impl Send for Imported {}
// SAFETY: as above; nothing changes through a shared reference.
unsafe impl Sync for Imported {}

impl Drop for Imported {
    fn drop(&mut self) {
        // SAFETY: `managed` came out of a capsule that was renamed, so that nothing else releases it.
        unsafe {
            if let Some(deleter) = self.managed.as_ref().deleter {
                deleter(self.managed.as_ptr());
            }
        }
    }
}

/// The dtype, sizes and strides of an imported tensor.
pub(crate) struct Layout {
    pub(crate) dtype: DType,
    pub(crate) sizes: Vec<i64>,
    pub(crate) strides: Vec<i64>,
}

/// Returns the number of bytes from the first to the last element of a tensor, whose strides, in elements, are not negative. `None` on overflow.
pub(crate) fn extent(dtype: DType, sizes: &[i64], strides: &[i64]) -> Option<usize> {
    if sizes.contains(&0) {
        return Some(0);
    }
    let last = sizes.iter().zip(strides).try_fold(0i64, |last, (&size, &stride)| {
        let reached = size.checked_sub(1)?.checked_mul(stride)?;
        last.checked_add(reached)
    })?;
    usize::try_from(last).ok()?.checked_add(1)?.checked_mul(dtype.size())
}

pub(crate) fn other_device(number: i32) -> PyErr {
    type_error(format!(
        "expected a tensor on the CPU, but its device has DLPack's number {number}"
    ))
}

/// Imports the tensor from a capsule that `__dlpack__` returned.
///
/// # Errors
/// `TypeError` if it is on another device or has elements of an unknown type; `ValueError` if the capsule has been used.
pub(crate) fn import(capsule: &Bound<'_, PyAny>) -> PyResult<(Imported, Layout)> {
    let capsule = capsule.cast::<PyCapsule>()?;
    let managed = capsule
        .pointer_checked(Some(FRESH))
        .map_err(|_| value_error("the DLPack capsule has been used before"))?
        .cast::<Managed>();
    // SAFETY: a capsule of this name points to a `DLManagedTensor`, which lives until its deleter is called.
    let view = unsafe { &managed.as_ref().view };
    let device = view.device.kind;
    if device != CPU {
        return Err(other_device(device));
    }
    let dtype = view.element.dtype().ok_or_else(|| {
        let Element { code, bits, lanes } = view.element;
        type_error(format!(
            "elements of DLPack's type (code {code}, {bits} bits, {lanes} lanes) are not supported"
        ))
    })?;
    let rank = usize::try_from(view.rank).unwrap_or(0);
    let numbers = |first: *mut i64| match rank {
        0 => Vec::new(),
        // SAFETY: sizes and strides have one number per dimension.
        _ => unsafe { std::slice::from_raw_parts(first, rank) }.to_vec(),
    };
    let sizes = numbers(view.sizes);
    let strides = match view.strides.is_null() {
        false if !sizes.contains(&0) => numbers(view.strides),
        _ => frazil::ir::contiguous_strides(&sizes).to_vec(),
    };
    let len = extent(dtype, &sizes, &strides)
        .filter(|_| strides.iter().all(|&s| s >= 0))
        .ok_or_else(|| value_error("the strides of the tensor are negative or too large"))?;
    let data = view.data.cast::<u8>().wrapping_add(view.byte_offset as usize);
    if len > 0 && data.align_offset(dtype.size().min(8)) != 0 {
        return Err(value_error("the elements of the tensor are not aligned"));
    }
    // SAFETY: the name is static, and the capsule's own destructor leaves a renamed one alone.
    let renamed = unsafe { pyo3::ffi::PyCapsule_SetName(capsule.as_ptr(), USED.as_ptr()) };
    if renamed != 0 {
        return Err(PyErr::fetch(capsule.py()));
    }
    let imported = Imported { managed, data, len };
    Ok((imported, Layout { dtype, sizes, strides }))
}

/// The memory of an exported tensor.
struct Exported {
    managed: Managed,
    sizes: Vec<i64>,
    strides: Vec<i64>,
    _bytes: AlignedBytes,
}

unsafe extern "C" fn release(managed: *mut Managed) {
    // SAFETY: `context` is the box that `export` leaked; DLPack calls a deleter once.
    drop(unsafe { Box::from_raw((*managed).context.cast::<Exported>()) });
}

unsafe extern "C" fn release_unused(capsule: *mut pyo3::ffi::PyObject) {
    // SAFETY: the capsule still has its first name, so the tensor has not been taken out.
    unsafe {
        if pyo3::ffi::PyCapsule_IsValid(capsule, FRESH.as_ptr()) != 0 {
            let managed = pyo3::ffi::PyCapsule_GetPointer(capsule, FRESH.as_ptr());
            if !managed.is_null() {
                release(managed.cast());
            }
        }
    }
}

/// Returns a capsule with a tensor whose elements are `bytes`; only the layout of `tensor` is used.
///
/// # Errors
/// `TypeError` for quantised tensors.
pub(crate) fn export<'py>(py: Python<'py>, mut bytes: AlignedBytes, tensor: &Tensor) -> PyResult<Bound<'py, PyAny>> {
    let dtype = tensor.dtype();
    let element =
        Element::of(dtype).ok_or_else(|| type_error(format!("a tensor of {dtype} cannot be exchanged by DLPack")))?;
    let mut exported = Box::new(Exported {
        managed: Managed {
            view: View {
                data: bytes.as_mut_slice().as_mut_ptr().cast(),
                device: Device { kind: CPU, index: 0 },
                rank: tensor.dim() as i32,
                element,
                sizes: std::ptr::null_mut(),
                strides: std::ptr::null_mut(),
                byte_offset: tensor.offset() as u64 * dtype.size() as u64,
            },
            context: std::ptr::null_mut(),
            deleter: Some(release),
        },
        sizes: tensor.sizes().to_vec(),
        strides: tensor.strides().to_vec(),
        _bytes: bytes,
    });
    exported.managed.view.sizes = exported.sizes.as_mut_ptr();
    exported.managed.view.strides = exported.strides.as_mut_ptr();
    // Short buffers are stored in the box itself.
    exported.managed.view.data = exported._bytes.as_mut_slice().as_mut_ptr().cast();
    let exported = Box::into_raw(exported);
    // SAFETY: the box was just made; the capsule gets a pointer into it, which `release` frees with the box.
    unsafe {
        (*exported).managed.context = exported.cast();
        let managed: *mut Managed = &raw mut (*exported).managed;
        let capsule = pyo3::ffi::PyCapsule_New(managed.cast(), FRESH.as_ptr(), Some(release_unused));
        if capsule.is_null() {
            release(managed);
        }
        Bound::from_owned_ptr_or_err(py, capsule)
    }
}
