//! Arrays of Python (NumPy arrays, torch tensors, objects with DLPack) as tensors, and tensors as arrays.
//!
//! Arguments share their memory with the caller's arrays where the layout allows it. A model that writes to an argument gets a copy
//! ([`Storage`] copies on write), which is written back to the caller's array when the call returns.

use crate::dlpack::{self, Layout, extent};
use crate::errors::{exception, type_error, value_error};
use crate::shared::{Foreign, Owner, Shared, SharedArrays};
use frazil::Tensor;
use frazil::ir::DType;
use frazil::runtime::marks::Marks;
use frazil::runtime::storage::AlignedBytes;
use frazil::runtime::value::TensorCell;
use frazil::runtime::{Storage, TensorError};
use numpy::npyffi::{self, NPY_ARRAY_ALIGNED, NPY_ARRAY_WRITEABLE, NPY_TYPES, NpyTypes, PY_ARRAY_API};
use numpy::{PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};
use std::sync::Arc;

/// The library of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Numpy,
    Torch,
}

/// The objects of torch that this module uses, once torch has been imported.
struct Torch {
    tensor: Py<PyType>,
    from_dlpack: Py<PyAny>,
}

fn torch(py: Python<'_>) -> PyResult<&'static Torch> {
    static TORCH: PyOnceLock<Torch> = PyOnceLock::new();
    TORCH.get_or_try_init(py, || {
        let torch = py.import("torch")?;
        Ok(Torch {
            tensor: torch.getattr("Tensor")?.cast_into::<PyType>()?.unbind(),
            from_dlpack: py.import("torch.utils.dlpack")?.getattr("from_dlpack")?.unbind(),
        })
    })
}

/// Returns true if an object is a torch tensor. This does not import torch.
pub(crate) fn is_torch_tensor(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    static MODULES: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    static IMPORTED: PyOnceLock<()> = PyOnceLock::new();
    let py = object.py();
    if IMPORTED.get(py).is_none() {
        // `sys.modules` is one dict for the life of the process, and looking it up would dominate the time of this
        // function.
        let modules = MODULES.get_or_try_init(py, || PyResult::Ok(py.import("sys")?.getattr("modules")?.unbind()))?;
        if !modules.bind(py).contains(intern!(py, "torch"))? {
            return Ok(false);
        }
        let _ = IMPORTED.set(py, ());
    }
    object.is_instance(torch(py)?.tensor.bind(py))
}

/// The arrays of one call.
pub(crate) struct Arrays<'py> {
    py: Python<'py>,
    /// The kind of results of calls without arrays among their arguments.
    default: Kind,
    found: Option<Kind>,
    shared: SharedArrays<'py>,
}

/// Checks that an array with DLPack is on the CPU.
fn check_device(object: &Bound<'_, PyAny>) -> PyResult<()> {
    let protocol = intern!(object.py(), "__dlpack_device__");
    if !object.hasattr(protocol)? {
        return Ok(());
    }
    let (kind, _): (i32, i32) = object.call_method0(protocol)?.extract()?;
    match kind {
        dlpack::CPU => Ok(()),
        _ => Err(dlpack::other_device(kind)),
    }
}

fn dtype_of_number(number: i32) -> Option<DType> {
    const PAIRS: [(NPY_TYPES, DType); 13] = [
        (NPY_TYPES::NPY_BOOL, DType::Bool),
        (NPY_TYPES::NPY_BYTE, DType::Char),
        (NPY_TYPES::NPY_UBYTE, DType::Byte),
        (NPY_TYPES::NPY_SHORT, DType::Short),
        (NPY_TYPES::NPY_INT, DType::Int),
        (NPY_TYPES::NPY_LONG, DType::Long),
        (NPY_TYPES::NPY_LONGLONG, DType::Long),
        (NPY_TYPES::NPY_HALF, DType::Half),
        (NPY_TYPES::NPY_FLOAT, DType::Float),
        (NPY_TYPES::NPY_DOUBLE, DType::Double),
        (NPY_TYPES::NPY_CFLOAT, DType::ComplexFloat),
        (NPY_TYPES::NPY_CDOUBLE, DType::ComplexDouble),
        (NPY_TYPES::NPY_NOTYPE, DType::BFloat16),
    ];
    let pair = PAIRS.iter().find(|(known, _)| *known as i32 == number);
    pair.map(|(_, dtype)| *dtype).filter(|dtype| *dtype != DType::BFloat16)
}

fn dtype_of_descr(descr: &Bound<'_, PyArrayDescr>) -> PyResult<DType> {
    if let Some(dtype) = dtype_of_number(descr.num()) {
        return Ok(dtype);
    }
    let name: String = descr.getattr(intern!(descr.py(), "name"))?.extract()?;
    // The type of ml_dtypes, whose number is assigned at run time.
    match name.as_str() {
        "bfloat16" => Ok(DType::BFloat16),
        _ => Err(type_error(format!(
            "NumPy arrays of {name} are not supported: expected bool, uint8, int8, int16, int32, int64, float16, float32, float64, complex64 or complex128"
        ))),
    }
}

/// Returns the dtype of a NumPy dtype, a torch dtype or a name.
pub(crate) fn dtype_of(object: &Bound<'_, PyAny>) -> PyResult<DType> {
    let text = object.str()?.to_string();
    let name = text.strip_prefix("torch.").unwrap_or(&text);
    let name = match name {
        "float" => "float32",
        "double" => "float64",
        "half" => "float16",
        "long" => "int64",
        "int" => "int32",
        "short" => "int16",
        name => name,
    };
    if let Some(dtype) = DType::ALL
        .into_iter()
        .find(|d| d.to_string().trim_start_matches("torch.") == name)
    {
        return Ok(dtype);
    }
    let known = PyArrayDescr::new(object.py(), object);
    let descr = known.map_err(|_| type_error(format!("expected a dtype, not {}", shown(object))))?;
    dtype_of_descr(&descr)
}

/// Returns the text and the type of an object, for messages.
pub(crate) fn shown(object: &Bound<'_, PyAny>) -> String {
    let class = object.get_type();
    let class = class.name().map_or_else(|_| "object".to_owned(), |n| n.to_string());
    match object.repr() {
        Ok(text) if text.to_string().len() <= 60 => format!("{text} of type {class}"),
        _ => format!("an object of type {class}"),
    }
}

impl<'py> Arrays<'py> {
    pub(crate) fn new(py: Python<'py>, default: Kind) -> Arrays<'py> {
        Arrays {
            py,
            default,
            found: None,
            shared: SharedArrays::default(),
        }
    }

    fn found(&mut self, kind: Kind) {
        // If an argument is a torch tensor, results are torch tensors.
        if self.found != Some(Kind::Torch) {
            self.found = Some(kind);
        }
    }

    /// Returns the kind of arrays among the call's results, which follows from its arguments.
    pub(crate) fn kind(&self) -> Kind {
        self.found.unwrap_or(self.default)
    }

    /// Returns the tensor of an array, if the object is one.
    pub(crate) fn read(&mut self, object: &Bound<'py, PyAny>) -> PyResult<Option<TensorCell>> {
        if let Some(known) = self.shared.find(object) {
            return Ok(Some(known.cell.clone()));
        }
        if let Ok(array) = object.cast::<PyUntypedArray>() {
            self.found(Kind::Numpy);
            return self.read_numpy(object, array, false).map(Some);
        }
        if is_torch_tensor(object)? {
            self.found(Kind::Torch);
            return self.read_torch(object).map(Some);
        }
        let protocol = intern!(self.py, "__dlpack__");
        if object.hasattr(protocol)? {
            self.found(Kind::Numpy);
            check_device(object)?;
            let capsule = object.call_method0(protocol)?;
            return self.read_capsule(object, &capsule, Kind::Numpy, None).map(Some);
        }
        Ok(None)
    }

    fn read_torch(&mut self, object: &Bound<'py, PyAny>) -> PyResult<TensorCell> {
        let protocol = intern!(self.py, "__dlpack__");
        // Exporting tensors with the negative bit returns the elements in memory, without an exception.
        if !object.call_method0(intern!(self.py, "is_neg"))?.is_truthy()?
            && let Ok(capsule) = object.call_method0(protocol)
        {
            return self.read_capsule(object, &capsule, Kind::Torch, None);
        }
        // Tensors that require gradients, and views whose elements differ from those in memory (conjugates).
        let detached = object.call_method0("detach")?;
        let plain = detached.call_method0("resolve_conj")?.call_method0("resolve_neg")?;
        check_device(&plain)?;
        let capsule = plain.call_method0(protocol)?;
        let address = |tensor: &Bound<'py, PyAny>| tensor.call_method0("data_ptr")?.extract::<usize>();
        let is_copy = address(&plain)? != address(&detached)?;
        self.read_capsule(object, &capsule, Kind::Torch, is_copy.then_some(plain))
    }

    fn read_capsule(
        &mut self,
        object: &Bound<'py, PyAny>,
        capsule: &Bound<'py, PyAny>,
        kind: Kind,
        copy: Option<Bound<'py, PyAny>>,
    ) -> PyResult<TensorCell> {
        let (imported, layout) = dlpack::import(capsule)?;
        let (data, len) = (imported.data, imported.len);
        let memory = Foreign::new(Owner::DLPack(imported), data, len);
        // DLPack version 0 cannot mark memory as read-only.
        Ok(self.shared.add(Shared::new(object, kind, memory, &layout, true, copy)?))
    }

    fn read_numpy(
        &mut self,
        object: &Bound<'py, PyAny>,
        array: &Bound<'py, PyUntypedArray>,
        copied: bool,
    ) -> PyResult<TensorCell> {
        let descr = array.dtype();
        let dtype = dtype_of_descr(&descr)?;
        let size = dtype.size();
        // SAFETY: the array is alive, and the fields are read while the interpreter is attached.
        let (data, flags) = unsafe {
            (
                (*array.as_array_ptr()).fields.data,
                (*array.as_array_ptr()).fields.flags,
            )
        };
        let sizes: Vec<i64> = array.shape().iter().map(|&n| n as i64).collect();
        let is_row_major = array.is_c_contiguous();
        let element_stride = |&stride: &isize| {
            let is_whole = stride >= 0 && stride % size as isize == 0;
            is_whole.then_some(stride as i64 / size as i64)
        };
        let strides: Option<Vec<i64>> = match is_row_major {
            true => Some(frazil::ir::contiguous_strides(&sizes).to_vec()),
            false => array.strides().iter().map(element_stride).collect(),
        };
        let fits = flags & NPY_ARRAY_ALIGNED != 0 && descr.is_native_byteorder() != Some(false);
        let Some((strides, len)) = strides
            .filter(|_| fits)
            .and_then(|strides| extent(dtype, &sizes, &strides).map(|len| (strides, len)))
        else {
            // Reversed, unaligned or byte-swapped.
            let native = descr.call_method1("newbyteorder", ("=",))?;
            let copy = self.py.import("numpy")?.call_method1("array", (array, native))?;
            let copy = copy.call_method1("copy", ("C",))?;
            return match copied {
                true => Err(value_error("the layout of the array is not supported")),
                false => self.read_numpy(object, copy.cast::<PyUntypedArray>()?, true),
            };
        };
        let memory = Foreign::new(Owner::Array(array.clone().into_any().unbind()), data.cast(), len);
        let layout = Layout { dtype, sizes, strides };
        let is_writable = flags & NPY_ARRAY_WRITEABLE != 0;
        let copy = copied.then(|| array.clone().into_any());
        let shared = Shared::new(object, Kind::Numpy, memory, &layout, is_writable, copy)?;
        Ok(self.shared.add(shared))
    }

    /// Writes the call's changes of its arguments back to the caller's arrays.
    ///
    /// # Errors
    /// `ValueError` if an array to be changed is read-only.
    pub(crate) fn write_back(&self) -> PyResult<()> {
        self.shared.write_back()
    }

    /// Returns the argument whose memory `tensor` is a view of, as an array of the tensor's layout.
    fn view_of_argument(&self, tensor: &Tensor, kind: Kind) -> PyResult<Option<Bound<'py, PyAny>>> {
        let len = extent(tensor.dtype(), tensor.sizes(), tensor.strides());
        let Some(len) = len.filter(|_| tensor.marks() == Marks::default()) else {
            return Ok(None);
        };
        let around = self.shared.around(tensor, len, kind);
        for (shared, _) in &around {
            let own = &shared.tensor;
            let is_whole = (own.dtype(), own.offset(), own.sizes(), own.strides())
                == (tensor.dtype(), tensor.offset(), tensor.sizes(), tensor.strides());
            // The caller expects results of its own library.
            if is_whole && (kind == Kind::Torch || shared.object.is_instance_of::<PyUntypedArray>()) {
                return Ok(Some(shared.object.clone()));
            }
        }
        let Some((shared, start)) = around.first() else {
            return Ok(None);
        };
        let object = &shared.object;
        match kind {
            Kind::Torch if shared.tensor.dtype() != tensor.dtype() => Ok(None),
            Kind::Torch => {
                let sizes = PyTuple::new(self.py, tensor.sizes())?;
                let strides = PyTuple::new(self.py, tensor.strides())?;
                let first: i64 = object.call_method0("storage_offset")?.extract()?;
                let offset = first + tensor.offset() - shared.tensor.offset();
                object.call_method1("as_strided", (sizes, strides, offset)).map(Some)
            }
            Kind::Numpy => numpy_array(self.py, tensor, *start as *mut u8, shared.is_writable, object).map(Some),
        }
    }

    /// Returns an array of the call's kind with the elements of `tensor`. Memory is shared if it belongs to the tensor alone, or to an argument.
    pub(crate) fn write(&self, tensor: Tensor) -> PyResult<Bound<'py, PyAny>> {
        let kind = self.kind();
        if let Some(view) = self.view_of_argument(&tensor, kind)? {
            return Ok(view);
        }
        let failed = |e: TensorError| exception(self.py, "Error", &e.to_string(), &[]);
        let tensor = tensor.resolved().map_err(failed)?;
        let (bytes, layout) = match owned(tensor).map_err(failed)? {
            Ok(owned) => owned,
            Err(shared) => copied(&shared).map_err(failed)?,
        };
        match kind {
            Kind::Torch => {
                let capsule = dlpack::export(self.py, bytes, &layout)?;
                torch(self.py)?.from_dlpack.bind(self.py).call1((capsule,))
            }
            Kind::Numpy => owned_numpy_array(self.py, bytes, &layout),
        }
    }
}

/// Returns the bytes and the layout of a tensor if there are no other references to it, else the tensor.
fn owned(tensor: Tensor) -> Result<Result<(AlignedBytes, Tensor), Tensor>, TensorError> {
    let (dtype, sizes, strides) = (tensor.dtype(), tensor.sizes().to_vec(), tensor.strides().to_vec());
    let offset = tensor.offset();
    let over = |storage| Tensor::from_storage(storage, dtype, &sizes, &strides, offset);
    let storage = Arc::clone(tensor.storage());
    drop(tensor);
    let layout = over(Storage::unknown(storage.len()))?;
    Ok(match Storage::into_owned(storage) {
        Ok(bytes) => Ok((bytes, layout)),
        Err(storage) => Err(over(storage)?),
    })
}

/// Returns a copy of the elements of a tensor, and its layout: that of the tensor if the elements are dense.
fn copied(tensor: &Tensor) -> Result<(AlignedBytes, Tensor), TensorError> {
    let (dtype, sizes) = (tensor.dtype(), tensor.sizes());
    let count = tensor.numel() as usize * dtype.size();
    let start = tensor.offset() as usize * dtype.size();
    let over = |bytes: &[u8], strides: &[i64]| {
        let layout = Tensor::from_storage(Storage::unknown(bytes.len()), dtype, sizes, strides, 0)?;
        Ok((AlignedBytes::copied(bytes)?, layout))
    };
    let bytes = tensor.storage().bytes();
    match bytes.get(start..start + count) {
        Some(dense) if extent(dtype, sizes, tensor.strides()) == Some(count) => over(dense, tensor.strides()),
        _ => over(&tensor.to_bytes()?, &frazil::ir::contiguous_strides(sizes)),
    }
}

/// The owner of the bytes of a NumPy array.
#[pyclass(frozen, name = "_Bytes", module = "frazil._frazil")]
struct Bytes {
    bytes: std::sync::Mutex<AlignedBytes>,
}

fn owned_numpy_array<'py>(py: Python<'py>, bytes: AlignedBytes, layout: &Tensor) -> PyResult<Bound<'py, PyAny>> {
    let owner = Bound::new(py, Bytes { bytes: bytes.into() })?;
    // Short buffers are stored in the owner itself, which does not move.
    let data = match owner.get().bytes.lock() {
        Ok(mut bytes) => bytes.as_mut_slice().as_mut_ptr(),
        Err(_) => return Err(value_error("the bytes of the array are lost")),
    };
    let data = data.wrapping_add(layout.offset() as usize * layout.dtype().size());
    numpy_array(py, layout, data, true, owner.as_any())
}

/// Returns a NumPy array with the layout of `tensor` over the memory at `data`, which `owner` keeps alive.
fn numpy_array<'py>(
    py: Python<'py>,
    tensor: &Tensor,
    data: *mut u8,
    is_writable: bool,
    owner: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let dtype = tensor.dtype();
    let number = match dtype {
        DType::Bool => NPY_TYPES::NPY_BOOL,
        DType::Char => NPY_TYPES::NPY_BYTE,
        DType::Byte => NPY_TYPES::NPY_UBYTE,
        DType::Short => NPY_TYPES::NPY_SHORT,
        DType::Int => NPY_TYPES::NPY_INT,
        DType::Long => NPY_TYPES::NPY_LONG,
        DType::Half => NPY_TYPES::NPY_HALF,
        DType::Float => NPY_TYPES::NPY_FLOAT,
        DType::Double => NPY_TYPES::NPY_DOUBLE,
        DType::ComplexFloat => NPY_TYPES::NPY_CFLOAT,
        DType::ComplexDouble => NPY_TYPES::NPY_CDOUBLE,
        _ => NPY_TYPES::NPY_NOTYPE,
    };
    let descr = match (number, dtype) {
        (NPY_TYPES::NPY_NOTYPE, DType::BFloat16) => bfloat16(py)?,
        (NPY_TYPES::NPY_NOTYPE, _) => {
            return Err(type_error(format!(
                "NumPy has no arrays of {dtype}: pass torch tensors to get torch tensors"
            )));
        }
        // SAFETY: the number is one of NumPy's; the result is a new reference.
        (number, _) => unsafe {
            let descr = PY_ARRAY_API.PyArray_DescrFromType(py, number as i32);
            Bound::from_owned_ptr_or_err(py, descr.cast())?.cast_into_unchecked::<PyArrayDescr>()
        },
    };
    let size = dtype.size() as i64;
    let mut sizes: Vec<npyffi::npy_intp> = tensor.sizes().iter().map(|&n| n as isize).collect();
    let mut strides: Vec<npyffi::npy_intp> = tensor.strides().iter().map(|&n| (n * size) as isize).collect();
    let flags = match is_writable {
        true => NPY_ARRAY_ALIGNED | NPY_ARRAY_WRITEABLE,
        false => NPY_ARRAY_ALIGNED,
    };
    // SAFETY: `data` has the elements that sizes and strides reach, and `owner`, whose reference the array takes over, keeps them alive. The array
    // takes over the reference to the dtype.
    unsafe {
        let class = npyffi::get_type_object(py, NpyTypes::PyArray_Type);
        let array = PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            class,
            descr.into_dtype_ptr(),
            sizes.len() as i32,
            sizes.as_mut_ptr(),
            strides.as_mut_ptr(),
            data.cast(),
            flags,
            std::ptr::null_mut(),
        );
        let array = Bound::from_owned_ptr_or_err(py, array)?;
        let base = owner.clone().into_ptr();
        if PY_ARRAY_API.PyArray_SetBaseObject(py, array.as_ptr().cast(), base) != 0 {
            return Err(PyErr::fetch(py));
        }
        Ok(array)
    }
}

fn bfloat16(py: Python<'_>) -> PyResult<Bound<'_, PyArrayDescr>> {
    let found = py.import("ml_dtypes").and_then(|m| m.getattr("bfloat16"));
    let class = found.map_err(|_| {
        type_error("NumPy has no bfloat16: install ml_dtypes, or pass torch tensors to get torch tensors")
    })?;
    PyArrayDescr::new(py, class)
}
