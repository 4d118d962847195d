//! Conversions between tensors and slices or arrays, without copying.

use super::{Ops, Var};
use crate::error::{Error, Result};
use bytemuck::Pod;
use frazil_runtime::element::Element;
use frazil_runtime::storage::{Bytes, SharedBytes, Storage};
use frazil_runtime::{Tensor, layout};
use std::marker::PhantomData;
use std::sync::Arc;

/// A vector whose memory becomes the bytes of a storage.
struct Owned<T>(Vec<T>);

impl<T: Pod> AsRef<[u8]> for Owned<T> {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}

/// A snapshot of the elements of a tensor: later writes to the tensor are not visible in it, and nothing is copied.
///
/// ```
/// use frazil::{Session, Tensor, eager::Elements, runtime::element::FloatElement};
///
/// # let ops = Session::new().eager();
/// let x = ops.var(Tensor::from_f32(&[1.0, 2.0, 3.0, 4.0], &[2, 2])?);
/// let elements = Elements::of::<FloatElement>(&x.get())?;
/// x.fill_(0).call()?; // the snapshot does not change
/// assert_eq!(elements.as_slice(), Some(&[1.0f32, 2.0, 3.0, 4.0][..]));
/// # Ok::<(), frazil::Error>(())
/// ```
pub struct Elements<T> {
    bytes: Bytes,
    tensor: Tensor,
    element: PhantomData<T>,
}

impl<T: Pod> Elements<T> {
    /// Takes a snapshot of the elements of `tensor`, whose dtype must be `E`'s.
    ///
    /// ```
    /// use frazil::{Tensor, eager::Elements, runtime::element::{FloatElement, LongElement}};
    ///
    /// let x = Tensor::from_i64(&[1, 2], &[2])?;
    /// assert_eq!(Elements::of::<LongElement>(&x)?.as_slice(), Some(&[1, 2][..]));
    /// assert!(Elements::of::<FloatElement>(&x).is_err());
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the dtype differs.
    pub fn of<E: Element<Raw = T>>(tensor: &Tensor) -> Result<Elements<T>> {
        if tensor.dtype() != E::DTYPE {
            return Err(Error::Call(format!(
                "a tensor of {} has no elements of {}",
                tensor.dtype(),
                E::DTYPE
            )));
        }
        let tensor = tensor.resolved()?;
        Ok(Elements {
            bytes: tensor.storage().bytes(),
            tensor,
            element: PhantomData,
        })
    }

    /// Returns the elements in row-major order; `None` if they are not contiguous in this order.
    ///
    /// ```
    /// # use frazil::{Session, Tensor, eager::Elements, runtime::element::FloatElement};
    /// # let ops = Session::new().eager();
    /// let x = ops.var(Tensor::from_f32(&[1.0, 2.0, 3.0, 4.0], &[2, 2])?);
    /// assert!(Elements::of::<FloatElement>(&x.t().call()?.get())?.as_slice().is_none()); // columns do not lie in a row
    /// assert_eq!(Elements::of::<FloatElement>(&x.at(1)?.get())?.as_slice(), Some(&[3.0f32, 4.0][..]));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn as_slice(&self) -> Option<&[T]> {
        if !self.tensor.is_contiguous() {
            return None;
        }
        let first = self.tensor.offset() as usize;
        self.storage()?.get(first..first + self.tensor.numel() as usize)
    }

    /// Returns all elements of the storage of the tensor. `None` if they are in a mapped file at an unaligned address.
    fn storage(&self) -> Option<&[T]> {
        let bytes: &[u8] = &self.bytes;
        let whole = bytes.len() / size_of::<T>() * size_of::<T>();
        bytemuck::try_cast_slice(bytes.get(..whole)?).ok()
    }

    /// Returns the elements as an `ndarray` view with any strides; `None` if they are in a mapped file at an unaligned address.
    ///
    /// ```
    /// # use frazil::{Session, Tensor, eager::Elements, runtime::element::FloatElement};
    /// # let ops = Session::new().eager();
    /// let x = ops.var(Tensor::from_f32(&[1.0, 2.0, 3.0, 4.0], &[2, 2])?);
    /// let columns = Elements::of::<FloatElement>(&x.t().call()?.get())?;
    /// assert_eq!(columns.view().map(|view| view[[0, 1]]), Some(3.0));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    #[cfg(feature = "ndarray")]
    pub fn view(&self) -> Option<ndarray::ArrayViewD<'_, T>> {
        use ndarray::ShapeBuilder;
        let as_usize = |list: &[i64]| {
            list.iter()
                .map(|&i| usize::try_from(i).ok())
                .collect::<Option<Vec<_>>>()
        };
        let shape = ndarray::IxDyn(&as_usize(self.tensor.sizes())?);
        let strides = ndarray::IxDyn(&as_usize(self.tensor.strides())?);
        let elements = self.storage()?.get(self.tensor.offset() as usize..)?;
        ndarray::ArrayViewD::from_shape(shape.strides(strides), elements).ok()
    }
}

impl Ops {
    /// Returns a row-major tensor over the elements of a vector, which is copied only when the tensor is written.
    ///
    /// ```
    /// use frazil::{Session, runtime::element::FloatElement};
    ///
    /// let ops = Session::new().eager();
    /// let x = ops.from_vec::<FloatElement>(vec![1.0, 2.0, 3.0, 4.0], &[2, 2])?;
    /// assert_eq!(x.t().call()?.to_vec(), [1.0, 3.0, 2.0, 4.0]);
    /// assert!(ops.from_vec::<FloatElement>(vec![1.0], &[2, 2]).is_err());
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the number of elements is not that of `sizes`.
    pub fn from_vec<E: Element>(&self, elements: Vec<E::Raw>, sizes: &[i64]) -> Result<Var> {
        let len = size_of_val(elements.as_slice());
        let shared: SharedBytes = Arc::new(Owned(elements));
        let wrong = || {
            Error::Call(format!(
                "{} elements do not make a tensor of sizes {sizes:?}",
                len / size_of::<E::Raw>()
            ))
        };
        if layout::checked_numel(sizes).and_then(|n| n.checked_mul(size_of::<E::Raw>() as i64))
            != i64::try_from(len).ok()
        {
            return Err(wrong());
        }
        let storage = Storage::from_shared(shared, 0..len).ok_or_else(wrong)?;
        let strides = layout::contiguous_strides(sizes);
        Ok(self.var(Tensor::from_storage(storage, E::DTYPE, sizes, &strides, 0)?))
    }

    /// Returns a tensor over an `ndarray` array; row-major arrays are not copied.
    ///
    /// ```
    /// use frazil::{Session, runtime::element::FloatElement};
    ///
    /// let ops = Session::new().eager();
    /// let x = ops.from_array::<FloatElement, _>(ndarray::arr2(&[[1.0, 2.0], [3.0, 4.0]]))?;
    /// assert_eq!(x.sum().dim([0]).call()?.to_vec(), [4.0, 6.0]);
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the array is larger than a tensor may be.
    #[cfg(feature = "ndarray")]
    pub fn from_array<E: Element, D: ndarray::Dimension>(&self, array: ndarray::Array<E::Raw, D>) -> Result<Var> {
        let sizes: Vec<i64> = array.shape().iter().map(|&n| n as i64).collect();
        let array = match array.is_standard_layout() {
            true => array,
            false => array.as_standard_layout().into_owned(),
        };
        let (elements, offset) = array.into_raw_vec_and_offset();
        match offset {
            None | Some(0) if elements.len() as i64 == sizes.iter().product::<i64>() => {
                self.from_vec::<E>(elements, &sizes)
            }
            _ => {
                let first = offset.unwrap_or_default();
                let count = sizes.iter().product::<i64>() as usize;
                let window = elements.get(first..first + count).unwrap_or_default().to_vec();
                self.from_vec::<E>(window, &sizes)
            }
        }
    }
}
