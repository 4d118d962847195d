//! Tensors.

use crate::memory::{array, get, give, put};
use crate::{FrazilError, FrazilErrorKind, error::guarded};
use frazil::Tensor;
use frazil::ir::{DType, contiguous_strides};
use frazil::runtime::Storage;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Element type: unsigned 8-bit integers. The numbers of element types are PyTorch's.
pub const FRAZIL_DTYPE_UINT8: i32 = 0;
/// Element type: 8-bit integers.
pub const FRAZIL_DTYPE_INT8: i32 = 1;
/// Element type: 16-bit integers.
pub const FRAZIL_DTYPE_INT16: i32 = 2;
/// Element type: 32-bit integers.
pub const FRAZIL_DTYPE_INT32: i32 = 3;
/// Element type: 64-bit integers.
pub const FRAZIL_DTYPE_INT64: i32 = 4;
/// Element type: 16-bit floats.
pub const FRAZIL_DTYPE_FLOAT16: i32 = 5;
/// Element type: 32-bit floats.
pub const FRAZIL_DTYPE_FLOAT32: i32 = 6;
/// Element type: 64-bit floats.
pub const FRAZIL_DTYPE_FLOAT64: i32 = 7;
/// Element type: complex numbers of two 16-bit floats.
pub const FRAZIL_DTYPE_COMPLEX32: i32 = 8;
/// Element type: complex numbers of two 32-bit floats.
pub const FRAZIL_DTYPE_COMPLEX64: i32 = 9;
/// Element type: complex numbers of two 64-bit floats.
pub const FRAZIL_DTYPE_COMPLEX128: i32 = 10;
/// Element type: bools, one byte each.
pub const FRAZIL_DTYPE_BOOL: i32 = 11;
/// Element type: bfloat16, the upper 16 bits of 32-bit floats.
pub const FRAZIL_DTYPE_BFLOAT16: i32 = 15;

/// A tensor.
pub struct FrazilTensor(pub(crate) Tensor);

/// The element type and the sizes of an input.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FrazilInputSpec {
    /// Element type: one of `FRAZIL_DTYPE_`.
    pub dtype: i32,
    /// Number of dimensions.
    pub rank: usize,
    /// The sizes of the dimensions, in elements.
    pub sizes: *const i64,
}

pub(crate) fn dtype_of(code: i32) -> Result<DType, FrazilError> {
    DType::from_code(code.into()).ok_or_else(|| FrazilError::argument(&format!("{code} is no type of elements")))
}

/// Returns the number of bytes of a dense tensor of these sizes.
fn byte_count(dtype: DType, sizes: &[i64]) -> Result<usize, FrazilError> {
    let count = sizes.iter().try_fold(1usize, |n, &size| {
        usize::try_from(size).ok().and_then(|size| n.checked_mul(size))
    });
    count
        .and_then(|n| n.checked_mul(dtype.size()))
        .ok_or_else(|| FrazilError::argument("the sizes are negative or too large"))
}

fn check_bytes(dtype: DType, sizes: &[i64], len: usize) -> Result<(), FrazilError> {
    let needed = byte_count(dtype, sizes)?;
    match needed == len {
        true => Ok(()),
        false => Err(FrazilError::argument(&format!(
            "a tensor of {needed} bytes was given {len}"
        ))),
    }
}

fn failed(error: impl ToString) -> FrazilError {
    FrazilError::new(FrazilErrorKind::Failed, &error.to_string())
}

/// Returns a dense tensor with a copy of `len` bytes of elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_tensor_new(
    dtype: i32,
    sizes: *const i64,
    rank: usize,
    data: *const c_void,
    len: usize,
    out: Option<&mut MaybeUninit<Option<Box<FrazilTensor>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let dtype = dtype_of(dtype)?;
        // SAFETY: the caller follows the rules.
        let (sizes, bytes) = unsafe { (array(sizes, rank, "sizes")?, array(data.cast::<u8>(), len, "the data")?) };
        check_bytes(dtype, sizes, len)?;
        give(out, || {
            Tensor::from_bytes(dtype, sizes, bytes)
                .map(FrazilTensor)
                .map_err(failed)
        })
    })
}

/// Checks that all elements of a tensor of these sizes and strides are in `len` bytes of memory, which begin with the element at index 0 in each dimension.
fn check_strides(dtype: DType, sizes: &[i64], strides: &[i64], len: usize) -> Result<(), FrazilError> {
    byte_count(dtype, sizes)?;
    if sizes.contains(&0) {
        return Ok(());
    }
    let last = sizes.iter().zip(strides).try_fold(0i64, |last, (&size, &stride)| {
        let reached = (size - 1).checked_mul(stride).filter(|_| stride >= 0)?;
        last.checked_add(reached)
    });
    let needed = last
        .and_then(|last| usize::try_from(last).ok()?.checked_add(1)?.checked_mul(dtype.size()))
        .ok_or_else(|| FrazilError::argument("the strides are negative or too large"))?;
    match needed <= len {
        true => Ok(()),
        false => Err(FrazilError::argument(&format!(
            "a tensor that reaches {needed} bytes was given {len}"
        ))),
    }
}

/// Returns a tensor with a copy of `len` bytes, whose elements are selected by the strides, counted in elements: a dimension of size `n` and stride `s`
/// has the elements `0`, `s`, ... `(n - 1) * s`.
#[unsafe(no_mangle)]
#[allow(
    clippy::too_many_arguments,
    reason = "a tensor, its memory, and the place for the result"
)]
pub unsafe extern "C" fn frazil_tensor_new_strided(
    dtype: i32,
    sizes: *const i64,
    strides: *const i64,
    rank: usize,
    data: *const c_void,
    len: usize,
    out: Option<&mut MaybeUninit<Option<Box<FrazilTensor>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let dtype = dtype_of(dtype)?;
        // SAFETY: the caller follows the rules.
        let (sizes, strides, bytes) = unsafe {
            let bytes = array(data.cast::<u8>(), len, "the data")?;
            (array(sizes, rank, "sizes")?, array(strides, rank, "strides")?, bytes)
        };
        check_strides(dtype, sizes, strides, len)?;
        give(out, || {
            let whole = (len / dtype.size()) as i64;
            let bytes = bytes.get(..whole as usize * dtype.size()).unwrap_or_default();
            let dense = Tensor::from_bytes(dtype, &[whole], bytes).map_err(failed)?;
            dense.as_strided(sizes, strides, 0).map(FrazilTensor).map_err(failed)
        })
    })
}

/// The caller's memory, and the function that releases it.
struct Foreign {
    data: *const u8,
    len: usize,
    release: Option<extern "C" fn(*mut c_void)>,
    context: *mut c_void,
    /// Whether the tensor was made: before that, the memory is the caller's.
    is_taken: AtomicBool,
}

impl Foreign {
    fn new(
        data: *const c_void,
        len: usize,
        release: Option<extern "C" fn(*mut c_void)>,
        context: *mut c_void,
    ) -> Arc<Foreign> {
        Arc::new(Foreign {
            data: data.cast(),
            len,
            release,
            context,
            is_taken: AtomicBool::new(false),
        })
    }

    /// Returns a tensor over all of the memory, and transfers the memory to it.
    ///
    /// # Safety
    /// The caller follows the rules.
    unsafe fn tensor(
        self: Arc<Self>,
        dtype: DType,
        sizes: &[i64],
        strides: &[i64],
    ) -> Result<FrazilTensor, FrazilError> {
        // SAFETY: the caller follows the rules; called for its errors.
        unsafe { array(self.data, self.len, "the data") }?;
        // Alignment of complex numbers is that of their real and imaginary parts.
        if !self.data.addr().is_multiple_of(dtype.size().min(8)) {
            return Err(FrazilError::argument("the data is not aligned as its elements are"));
        }
        let storage = Storage::from_shared(self.clone(), 0..self.len).ok_or_else(|| failed("no such bytes"))?;
        let tensor = Tensor::from_storage(storage, dtype, sizes, strides, 0).map_err(failed)?;
        self.is_taken.store(true, Ordering::Relaxed);
        Ok(FrazilTensor(tensor))
    }
}

// SAFETY: the memory is only read, and not modified until `release`, which the caller allows on any thread.
unsafe impl Send for Foreign {}
// SAFETY: as above.
unsafe impl Sync for Foreign {}

impl AsRef<[u8]> for Foreign {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: it was an array when it was shared, and the caller does not modify it until `release`.
        unsafe { array(self.data, self.len, "the data") }.unwrap_or_default()
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        if let Some(release) = self.release
            && *self.is_taken.get_mut()
        {
            release(self.context);
        }
    }
}

/// Returns a dense tensor over the caller's memory, which is neither copied nor written: operations that change the tensor copy it first. The
/// caller does not modify the memory until `release`, unless that is NULL, is called with `context`; that happens once, on any thread, after the
/// last use. With an error, `release` is not called.
#[unsafe(no_mangle)]
#[allow(
    clippy::too_many_arguments,
    reason = "a tensor, whose memory it is, and the place for the result"
)]
pub unsafe extern "C" fn frazil_tensor_share(
    dtype: i32,
    sizes: *const i64,
    rank: usize,
    data: *const c_void,
    len: usize,
    release: Option<extern "C" fn(*mut c_void)>,
    context: *mut c_void,
    out: Option<&mut MaybeUninit<Option<Box<FrazilTensor>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let dtype = dtype_of(dtype)?;
        // SAFETY: the caller follows the rules.
        let sizes = unsafe { array(sizes, rank, "sizes") }?;
        check_bytes(dtype, sizes, len)?;
        let foreign = Foreign::new(data, len, release, context);
        let strides = contiguous_strides(sizes);
        // SAFETY: as above.
        give(out, || unsafe { foreign.tensor(dtype, sizes, &strides) })
    })
}

/// Returns a tensor over the caller's memory as by `frazil_tensor_share`, with strides as in `frazil_tensor_new_strided`.
#[unsafe(no_mangle)]
#[allow(
    clippy::too_many_arguments,
    reason = "a tensor, whose memory it is, and the place for the result"
)]
pub unsafe extern "C" fn frazil_tensor_share_strided(
    dtype: i32,
    sizes: *const i64,
    strides: *const i64,
    rank: usize,
    data: *const c_void,
    len: usize,
    release: Option<extern "C" fn(*mut c_void)>,
    context: *mut c_void,
    out: Option<&mut MaybeUninit<Option<Box<FrazilTensor>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let dtype = dtype_of(dtype)?;
        // SAFETY: the caller follows the rules.
        let (sizes, strides) = unsafe { (array(sizes, rank, "sizes")?, array(strides, rank, "strides")?) };
        check_strides(dtype, sizes, strides, len)?;
        let foreign = Foreign::new(data, len, release, context);
        // SAFETY: as above.
        give(out, || unsafe { foreign.tensor(dtype, sizes, strides) })
    })
}

/// Frees a tensor.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_tensor_free(tensor: Option<Box<FrazilTensor>>) {
    drop(tensor);
}

/// Returns the element type of a tensor: one of `FRAZIL_DTYPE_`, or PyTorch's code of another element type; -1 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_tensor_dtype(tensor: Option<&FrazilTensor>) -> i32 {
    tensor.map_or(-1, |t| t.0.dtype() as i32)
}

/// Returns the number of a tensor's dimensions; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_tensor_rank(tensor: Option<&FrazilTensor>) -> usize {
    tensor.map_or(0, |t| t.0.dim())
}

/// Returns the size of dimension `index` of a tensor; -1 when there is none.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_tensor_size(tensor: Option<&FrazilTensor>, index: usize) -> i64 {
    tensor.and_then(|t| t.0.sizes().get(index).copied()).unwrap_or(-1)
}

/// Returns the stride of dimension `index` of a tensor, in elements; -1 when there is none.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_tensor_stride(tensor: Option<&FrazilTensor>, index: usize) -> i64 {
    tensor.and_then(|t| t.0.strides().get(index).copied()).unwrap_or(-1)
}

/// Returns whether a tensor's elements are contiguous in memory, the last dimension fastest; false for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_tensor_is_contiguous(tensor: Option<&FrazilTensor>) -> bool {
    tensor.is_some_and(|t| t.0.is_contiguous())
}

/// Returns a tensor with the same elements, converted to another element type.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_tensor_to(
    tensor: Option<&FrazilTensor>,
    dtype: i32,
    out: Option<&mut MaybeUninit<Option<Box<FrazilTensor>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let tensor = &get(tensor, "the tensor")?.0;
        let dtype = dtype_of(dtype)?;
        give(out, || tensor.to_dtype(dtype).map(FrazilTensor).map_err(failed))
    })
}

/// Returns the number of bytes of a tensor's elements.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_tensor_bytes(
    tensor: Option<&FrazilTensor>,
    out: Option<&mut MaybeUninit<usize>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let tensor = &get(tensor, "the tensor")?.0;
        put(out, byte_count(tensor.dtype(), tensor.sizes())?)
    })
}

/// Copies a tensor's elements, the last dimension fastest, to `data`. `len` must be the exact number of bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_tensor_read(
    tensor: Option<&FrazilTensor>,
    data: *mut c_void,
    len: usize,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let tensor = &get(tensor, "the tensor")?.0;
        check_bytes(tensor.dtype(), tensor.sizes(), len)?;
        if len == 0 {
            return Ok(());
        }
        if data.is_null() {
            return Err(crate::memory::null("the place for the data"));
        }
        let bytes = tensor.to_bytes().map_err(failed)?;
        let bytes = bytes
            .get(..len)
            .ok_or_else(|| failed("a tensor without its elements"))?;
        // SAFETY: `bytes` has `len` bytes; so has `data` by the rules, and it does not overlap memory of the library.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), data.cast::<u8>(), len) };
        Ok(())
    })
}
