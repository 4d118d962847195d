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

/// Type of elements: unsigned integers of 8 bits. The numbers are PyTorch's.
pub const FRAZIL_DTYPE_UINT8: i32 = 0;
/// Type of elements: integers of 8 bits.
pub const FRAZIL_DTYPE_INT8: i32 = 1;
/// Type of elements: integers of 16 bits.
pub const FRAZIL_DTYPE_INT16: i32 = 2;
/// Type of elements: integers of 32 bits.
pub const FRAZIL_DTYPE_INT32: i32 = 3;
/// Type of elements: integers of 64 bits.
pub const FRAZIL_DTYPE_INT64: i32 = 4;
/// Type of elements: floats of 16 bits.
pub const FRAZIL_DTYPE_FLOAT16: i32 = 5;
/// Type of elements: floats of 32 bits.
pub const FRAZIL_DTYPE_FLOAT32: i32 = 6;
/// Type of elements: floats of 64 bits.
pub const FRAZIL_DTYPE_FLOAT64: i32 = 7;
/// Type of elements: complex numbers of two floats of 16 bits.
pub const FRAZIL_DTYPE_COMPLEX32: i32 = 8;
/// Type of elements: complex numbers of two floats of 32 bits.
pub const FRAZIL_DTYPE_COMPLEX64: i32 = 9;
/// Type of elements: complex numbers of two floats of 64 bits.
pub const FRAZIL_DTYPE_COMPLEX128: i32 = 10;
/// Type of elements: truth values, a byte each.
pub const FRAZIL_DTYPE_BOOL: i32 = 11;
/// Type of elements: the upper halves of floats of 32 bits.
pub const FRAZIL_DTYPE_BFLOAT16: i32 = 15;

/// A tensor.
pub struct FrazilTensor(pub(crate) Tensor);

/// The type of elements and the sizes of an input.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FrazilInputSpec {
    /// Type of elements: one of `FRAZIL_DTYPE_`.
    pub dtype: i32,
    /// Number of dimensions.
    pub rank: usize,
    /// Their sizes.
    pub sizes: *const i64,
}

pub(crate) fn dtype_of(code: i32) -> Result<DType, FrazilError> {
    DType::from_code(code.into()).ok_or_else(|| FrazilError::argument(&format!("{code} is no type of elements")))
}

/// Bytes of a dense tensor of these sizes.
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

/// A dense tensor with a copy of `len` bytes of elements.
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
        // SAFETY: the caller keeps the rules.
        let (sizes, bytes) = unsafe { (array(sizes, rank, "sizes")?, array(data.cast::<u8>(), len, "the data")?) };
        check_bytes(dtype, sizes, len)?;
        give(out, || {
            Tensor::from_bytes(dtype, sizes, bytes)
                .map(FrazilTensor)
                .map_err(failed)
        })
    })
}

/// The elements that a tensor of these sizes and strides reaches, from the first element of the memory on, which is that at all indices 0.
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

/// A tensor with a copy of `len` bytes, of which its elements are those that the strides say, counted in elements: of a dimension of size `n` and stride
/// `s` the elements `0`, `s`, ... `(n - 1) * s`.
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
        // SAFETY: the caller keeps the rules.
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

/// The caller's memory, and the function that tells the caller when it is no longer needed.
struct Foreign {
    data: *const u8,
    len: usize,
    release: Option<extern "C" fn(*mut c_void)>,
    context: *mut c_void,
    /// Whether the tensor was made: before that, the memory stays the caller's.
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

    /// A tensor over all of the memory, which is the tensor's from then on.
    ///
    /// # Safety
    /// The caller keeps the rules.
    unsafe fn tensor(
        self: Arc<Self>,
        dtype: DType,
        sizes: &[i64],
        strides: &[i64],
    ) -> Result<FrazilTensor, FrazilError> {
        // SAFETY: the caller keeps the rules; asked for its errors.
        unsafe { array(self.data, self.len, "the data") }?;
        // Of complex numbers, the parts count.
        if !self.data.addr().is_multiple_of(dtype.size().min(8)) {
            return Err(FrazilError::argument("the data is not aligned as its elements are"));
        }
        let storage = Storage::from_shared(self.clone(), 0..self.len).ok_or_else(|| failed("no such bytes"))?;
        let tensor = Tensor::from_storage(storage, dtype, sizes, strides, 0).map_err(failed)?;
        self.is_taken.store(true, Ordering::Relaxed);
        Ok(FrazilTensor(tensor))
    }
}

// SAFETY: the memory is only read, and stays as it is until `release`, which the caller lets any thread call.
unsafe impl Send for Foreign {}
// SAFETY: as above.
unsafe impl Sync for Foreign {}

impl AsRef<[u8]> for Foreign {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: it was an array when it was shared, and the caller leaves it alone until `release`.
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

/// A dense tensor over the caller's memory, which is neither copied nor written: what changes the tensor copies first. The memory stays as it is
/// until `release`, if that is not NULL, is called with `context`; that happens once, on any thread, when nobody uses it any more. With an error,
/// `release` is not called.
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
        // SAFETY: the caller keeps the rules.
        let sizes = unsafe { array(sizes, rank, "sizes") }?;
        check_bytes(dtype, sizes, len)?;
        let foreign = Foreign::new(data, len, release, context);
        let strides = contiguous_strides(sizes);
        // SAFETY: as above.
        give(out, || unsafe { foreign.tensor(dtype, sizes, &strides) })
    })
}

/// A tensor over the caller's memory as `frazil_tensor_share` makes it, with strides as `frazil_tensor_new_strided` has them.
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
        // SAFETY: the caller keeps the rules.
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

/// The type of a tensor's elements: one of `FRAZIL_DTYPE_`, or another number of PyTorch's; -1 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_tensor_dtype(tensor: Option<&FrazilTensor>) -> i32 {
    tensor.map_or(-1, |t| t.0.dtype() as i32)
}

/// The number of a tensor's dimensions; 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_tensor_rank(tensor: Option<&FrazilTensor>) -> usize {
    tensor.map_or(0, |t| t.0.dim())
}

/// The size of dimension `index` of a tensor; -1 when there is none.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_tensor_size(tensor: Option<&FrazilTensor>, index: usize) -> i64 {
    tensor.and_then(|t| t.0.sizes().get(index).copied()).unwrap_or(-1)
}

/// The stride of dimension `index` of a tensor, in elements; -1 when there is none.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_tensor_stride(tensor: Option<&FrazilTensor>, index: usize) -> i64 {
    tensor.and_then(|t| t.0.strides().get(index).copied()).unwrap_or(-1)
}

/// Whether a tensor's elements lie one behind the other, the last dimension fastest; false for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_tensor_is_contiguous(tensor: Option<&FrazilTensor>) -> bool {
    tensor.is_some_and(|t| t.0.is_contiguous())
}

/// A tensor with the same elements, converted to a type of elements.
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

/// The bytes of a tensor's elements.
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

/// Copies a tensor's elements, the last dimension fastest, to `len` bytes at `data`: exactly as many as there are.
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
        // SAFETY: `bytes` has `len` bytes, and by the rules so has `data`, which is nothing of ours.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), data.cast::<u8>(), len) };
        Ok(())
    })
}
