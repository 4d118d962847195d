//! Memory of the caller's arrays, which tensors of a call share.

use crate::arrays::Kind;
use crate::dlpack::Imported;
use crate::errors::value_error;
use frazil::Tensor;
use frazil::runtime::Storage;
use frazil::runtime::storage::AlignedBytes;
use frazil::runtime::value::TensorCell;
use numpy::PyUntypedArray;
use numpy::npyffi::NPY_ARRAY_WRITEABLE;
use numpy::prelude::*;
use pyo3::prelude::*;
use std::sync::{Arc, OnceLock};

/// The owner of external memory.
pub(crate) enum Owner {
    Array(#[expect(dead_code, reason = "it is only kept")] Py<PyAny>),
    DLPack(#[expect(dead_code, reason = "it is only kept")] Imported),
    /// Arrays that overlap.
    Several(#[expect(dead_code, reason = "they are only kept")] Vec<Arc<Foreign>>),
}

/// Bytes of an array of the caller.
pub(crate) struct Foreign {
    _owner: Owner,
    data: *const u8,
    len: usize,
    /// A copy, made after the call if the model has kept a reference to the memory, because the caller may change the array.
    kept: OnceLock<AlignedBytes>,
}

// SAFETY: the owner keeps the bytes alive; it is released with the GIL held, or later. As everywhere in NumPy, a concurrent write to an array may
// be partly visible.
unsafe impl Send for Foreign {}
// SAFETY: as above.
unsafe impl Sync for Foreign {}

impl Foreign {
    /// Returns the `len` bytes from `data` on, which `owner` keeps alive.
    pub(crate) fn new(owner: Owner, data: *const u8, len: usize) -> Arc<Foreign> {
        Arc::new(Foreign {
            _owner: owner,
            data,
            len,
            kept: OnceLock::new(),
        })
    }

    /// Copies the bytes; later reads return the copy.
    fn keep(&self) {
        if self.kept.get().is_none()
            && let Ok(kept) = AlignedBytes::copied(self.borrowed())
        {
            let _ = self.kept.set(kept);
        }
    }

    fn borrowed(&self) -> &[u8] {
        match self.len {
            0 => &[],
            // SAFETY: the owner is an array with that many bytes from there on, and NumPy refuses to resize arrays that are referenced.
            _ => unsafe { std::slice::from_raw_parts(self.data, self.len) },
        }
    }
}

impl AsRef<[u8]> for Foreign {
    fn as_ref(&self) -> &[u8] {
        match self.kept.get() {
            Some(kept) => kept.as_slice(),
            None => self.borrowed(),
        }
    }
}

/// An array of the caller whose memory a tensor shares.
pub(crate) struct Shared<'py> {
    /// The argument itself.
    pub(crate) object: Bound<'py, PyAny>,
    pub(crate) kind: Kind,
    /// The argument of the call as a tensor. Arrays that share memory have tensors with one storage.
    pub(crate) cell: TensorCell,
    /// The tensor before the call.
    pub(crate) tensor: Tensor,
    memory: Arc<Foreign>,
    /// The memory of all arrays that overlap this one.
    union: Option<Arc<Foreign>>,
    pub(crate) is_writable: bool,
    /// The copy whose memory is used, if the array's layout cannot be that of a tensor.
    copy: Option<Bound<'py, PyAny>>,
}

impl<'py> Shared<'py> {
    /// # Errors
    /// If the tensor would exceed the memory.
    pub(crate) fn new(
        object: &Bound<'py, PyAny>,
        kind: Kind,
        memory: Arc<Foreign>,
        layout: &crate::dlpack::Layout,
        is_writable: bool,
        copy: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Shared<'py>> {
        let source: frazil::runtime::storage::SharedBytes = memory.clone();
        let storage = Storage::of_whole(source, memory.len);
        let tensor = Tensor::from_storage(storage, layout.dtype, &layout.sizes, &layout.strides, 0);
        let tensor = tensor.map_err(|e| value_error(e.to_string()))?;
        Ok(Shared {
            object: object.clone(),
            kind,
            cell: TensorCell::new(tensor.clone()),
            tensor,
            memory,
            union: None,
            is_writable,
            copy,
        })
    }

    fn start(&self) -> usize {
        self.memory.data as usize
    }

    fn end(&self) -> usize {
        self.start() + self.memory.len
    }

    /// Returns the address of the first byte of the tensor's storage.
    fn storage_start(&self) -> usize {
        self.start() - self.offset()
    }

    /// Returns the offset of the first element in the storage, in bytes.
    fn offset(&self) -> usize {
        self.tensor.offset() as usize * self.tensor.dtype().size()
    }

    fn overlaps(&self, other: &Shared<'_>) -> bool {
        let is_copy = self.copy.is_some() || other.copy.is_some();
        !is_copy && self.start() < other.end() && other.start() < self.end()
    }

    /// Returns true if the elements fill their range of memory without gaps.
    fn is_dense(&self) -> bool {
        self.tensor.numel() as usize * self.tensor.dtype().size() == self.memory.len
    }

    /// Returns the offsets of all elements, in bytes from the first element.
    fn element_offsets(&self) -> Vec<usize> {
        let size = self.tensor.dtype().size();
        let mut offsets = vec![0];
        for (&count, &stride) in self.tensor.sizes().iter().zip(self.tensor.strides()) {
            let steps = || (0..count as usize).map(|index| index * stride as usize * size);
            offsets = offsets
                .iter()
                .flat_map(|first| steps().map(move |step| first + step))
                .collect();
        }
        offsets
    }

    /// Writes the changes that a call made to the tensor back to the array. Returns false if the array is read-only.
    fn write_back(&self) -> PyResult<bool> {
        let len = self.memory.len;
        let bytes = self.tensor.storage().bytes();
        let Some(new) = bytes.get(self.offset()..self.offset() + len) else {
            return Ok(true);
        };
        if new.as_ptr() == self.memory.data || len == 0 {
            return Ok(true);
        }
        // Clones that the model made of the array before it wrote to it keep the old elements. The storage does not
        // refer to the memory any more.
        if Arc::strong_count(&self.memory) > 1 {
            self.memory.keep();
            self.union.iter().for_each(|union| union.keep());
        }
        // Only elements are written, since another thread may write between them.
        let (offsets, count) = match self.is_dense() {
            true => (vec![0], len),
            false => (self.element_offsets(), self.tensor.dtype().size()),
        };
        let may_write = self.is_writable || self.copy.is_some();
        for offset in offsets {
            let Some(new) = new.get(offset..offset + count) else {
                continue;
            };
            let old = self.memory.data.wrapping_add(offset).cast_mut();
            // SAFETY: the array has `len` bytes from `data` on, `offset + count` is not more, and there are no Rust references to them: the storage has
            // a copy.
            unsafe {
                if may_write {
                    std::ptr::copy_nonoverlapping(new.as_ptr(), old, count);
                } else if std::slice::from_raw_parts(old, count) != new {
                    return Ok(false);
                }
            }
        }
        match &self.copy {
            Some(copy) => self.copy_back(copy),
            None => Ok(true),
        }
    }

    /// Writes the copy back to the array. Returns false if the array is read-only.
    fn copy_back(&self, copy: &Bound<'py, PyAny>) -> PyResult<bool> {
        let Ok(numpy) = self.object.cast::<PyUntypedArray>() else {
            self.object.call_method0("detach")?.call_method1("copy_", (copy,))?;
            return Ok(true);
        };
        // SAFETY: the array is alive.
        let flags = unsafe { (*numpy.as_array_ptr()).fields.flags };
        if flags & NPY_ARRAY_WRITEABLE != 0 {
            let py = numpy.py();
            py.import("numpy")?.call_method1("copyto", (numpy, copy))?;
        }
        Ok(flags & NPY_ARRAY_WRITEABLE != 0)
    }
}

/// The arrays of a call.
#[derive(Default)]
pub(crate) struct SharedArrays<'py>(Vec<Shared<'py>>);

impl<'py> SharedArrays<'py> {
    /// Returns the entry of an array that was added before.
    pub(crate) fn find(&self, object: &Bound<'py, PyAny>) -> Option<&Shared<'py>> {
        self.0.iter().find(|shared| shared.object.is(object))
    }

    /// Adds an array. Arrays whose memory overlaps get tensors of one storage, so that writes to one are visible in the others.
    pub(crate) fn add(&mut self, mut new: Shared<'py>) -> TensorCell {
        let cell = new.cell.clone();
        let overlapping = self.0.iter().filter(|old| old.overlaps(&new));
        let joined: Vec<usize> = overlapping.map(Shared::storage_start).collect();
        if !joined.is_empty() {
            let is_joined = |old: &&mut Shared<'py>| old.copy.is_none() && joined.contains(&old.storage_start());
            let members = self.0.iter_mut().filter(is_joined);
            join(members.chain([&mut new]).collect());
        }
        self.0.push(new);
        cell
    }

    /// Writes the call's changes of its arguments back to the caller's arrays.
    ///
    /// # Errors
    /// `ValueError` if an array to be changed is read-only.
    pub(crate) fn write_back(&self) -> PyResult<()> {
        let mut is_done = true;
        // Read-only arrays come last: they may be views of writable ones.
        for is_writable in [true, false] {
            for shared in self.0.iter().filter(|shared| shared.is_writable == is_writable) {
                is_done &= shared.write_back()?;
            }
        }
        match is_done {
            true => Ok(()),
            false => Err(value_error("the model writes to an argument whose array is read-only")),
        }
    }

    /// Returns the arguments of the given kind whose memory contains that of `tensor` (`len` bytes), each with the address of the tensor's first element.
    pub(crate) fn around(&self, tensor: &Tensor, len: usize, kind: Kind) -> Vec<(&Shared<'py>, usize)> {
        let offset = tensor.offset() as usize * tensor.dtype().size();
        let all = self.0.iter().map(|shared| (shared, shared.storage_start() + offset));
        let is_its = |shared: &Shared<'_>| shared.kind == kind && shared.copy.is_none();
        all.filter(|(shared, start)| {
            let is_inside = shared.start() <= *start && start + len <= shared.end();
            is_inside && is_its(shared) && Arc::ptr_eq(shared.tensor.storage(), tensor.storage())
        })
        .collect()
    }
}

/// Makes tensors whose memory overlaps share one storage.
fn join(members: Vec<&mut Shared<'_>>) {
    let start = members.iter().map(|member| member.start()).min().unwrap_or_default();
    let end = members.iter().map(|member| member.end()).max().unwrap_or_default();
    let place = |member: &Shared<'_>| member.start() - start;
    // Offsets are in elements: if they are not whole numbers, the arrays are not joined.
    let is_whole = |member: &&mut Shared<'_>| place(member).is_multiple_of(member.tensor.dtype().size());
    if !members.iter().all(is_whole) {
        return;
    }
    let owners = members.iter().map(|member| Arc::clone(&member.memory)).collect();
    let union = Foreign::new(Owner::Several(owners), start as *const u8, end - start);
    let storage = Storage::of_whole(union.clone(), end - start);
    for member in members {
        let old = &member.tensor;
        let offset = (place(member) / old.dtype().size()) as i64;
        let joined = Tensor::from_storage(Arc::clone(&storage), old.dtype(), old.sizes(), old.strides(), offset);
        if let Ok(tensor) = joined {
            member.cell.set(tensor.clone());
            member.tensor = tensor;
            member.union = Some(Arc::clone(&union));
        }
    }
}

impl Drop for SharedArrays<'_> {
    fn drop(&mut self) {
        let (mut unions, mut memory) = (Vec::new(), Vec::new());
        for shared in self.0.drain(..) {
            unions.extend(shared.union);
            memory.push(shared.memory);
        }
        // Each once, so that we hold one reference.
        unions.sort_by_key(Arc::as_ptr);
        unions.dedup_by(|a, b| Arc::ptr_eq(a, b));
        for mut memory in unions.into_iter().chain(memory) {
            // Remaining references to the memory belong to the model, or to an object that it returned.
            if Arc::get_mut(&mut memory).is_none() {
                memory.keep();
            }
        }
    }
}
