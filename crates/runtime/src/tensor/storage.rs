//! Storages: the memory of tensors.
//!
//! A [`Storage`] is shared by every tensor that aliases it; `Arc::ptr_eq` compares storages. A read takes a snapshot ([`Storage::bytes`]). A write modifies the
//! bytes in place or, if a snapshot still exists, a copy that replaces them.
//!
//! No lock is held while a kernel runs, so there are no deadlocks. A kernel that reads and writes one storage (`x.copy_(x.t())`) reads only the old contents.

use crate::memory::{self, OutOfMemory};
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Alignment in bytes of owned buffers of more than a few bytes: one cache line, one AVX-512 register.
pub const ALIGNMENT: usize = 64;

/// Maximum size in bytes of an inline buffer: copying it is cheaper than reference counting. It is aligned to 8 bytes, which suffices for every dtype.
const INLINE: usize = 64;

/// Owned bytes. A buffer of more than [`INLINE`] bytes is aligned to [`ALIGNMENT`], except for vectors that were taken over unaligned.
pub struct AlignedBytes {
    memory: Memory,
    len: usize,
}

/// Returns the number of bytes from `data` to the first multiple of [`ALIGNMENT`].
pub fn aligned_start(data: *const u8) -> usize {
    // `align_offset` may give up (usize::MAX) by its contract; an unaligned buffer is slower, not wrong.
    match data.align_offset(ALIGNMENT) {
        offset if offset <= ALIGNMENT => offset,
        _ => 0,
    }
}

enum Memory {
    Inline([u64; INLINE / 8]),
    /// An over-allocated vector, with the data at `start`. It never grows, so `start` remains valid when the vector is moved.
    Allocated {
        data: Vec<u8>,
        start: usize,
    },
}

impl AlignedBytes {
    /// Returns `len` zero bytes. Pages of large buffers remain untouched.
    ///
    /// # Errors
    /// When the allocator refuses.
    pub fn zeroed(len: usize) -> Result<AlignedBytes, OutOfMemory> {
        let memory = match len {
            0..=INLINE => Memory::Inline([0; INLINE / 8]),
            _ => {
                let data = memory::zeroed(len.saturating_add(ALIGNMENT)).map_err(|_| OutOfMemory { bytes: len })?;
                let start = aligned_start(data.as_ptr());
                Memory::Allocated { data, start }
            }
        };
        Ok(AlignedBytes { memory, len })
    }

    /// Returns an empty buffer.
    pub(crate) fn empty() -> AlignedBytes {
        AlignedBytes {
            memory: Memory::Inline([0; INLINE / 8]),
            len: 0,
        }
    }

    /// Returns the bytes of `data` from `start` on, copied only if there are few.
    pub fn from_vec(data: Vec<u8>, start: usize) -> AlignedBytes {
        let start = start.min(data.len());
        match data.len() - start {
            len @ 0..=INLINE => {
                let mut words = [0; INLINE / 8];
                bytemuck::cast_slice_mut::<u64, u8>(&mut words)[..len].copy_from_slice(&data[start..]);
                AlignedBytes {
                    memory: Memory::Inline(words),
                    len,
                }
            }
            len => AlignedBytes {
                memory: Memory::Allocated { data, start },
                len,
            },
        }
    }

    /// Returns a copy of `bytes`.
    ///
    /// # Errors
    /// When the allocator refuses.
    pub fn copied(bytes: &[u8]) -> Result<AlignedBytes, OutOfMemory> {
        let mut out = AlignedBytes::zeroed(bytes.len())?;
        out.as_mut_slice().copy_from_slice(bytes);
        Ok(out)
    }

    /// Returns the bytes.
    pub fn as_slice(&self) -> &[u8] {
        match &self.memory {
            Memory::Inline(words) => &bytemuck::cast_slice(words)[..self.len],
            Memory::Allocated { data, start } => &data[*start..start + self.len],
        }
    }

    /// Returns the bytes, mutably.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        match &mut self.memory {
            Memory::Inline(words) => &mut bytemuck::cast_slice_mut(words)[..self.len],
            Memory::Allocated { data, start } => &mut data[*start..*start + self.len],
        }
    }
}

/// A read-only source of bytes that a storage can share: a memory-mapped archive, a caller's buffer.
pub type SharedBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// One immutable version of the contents of a storage.
#[derive(Clone)]
enum Buffer {
    /// Bytes that are not shared: a clone is a copy. The second field is their number.
    Inline([u64; INLINE / 8], usize),
    Owned(Arc<AlignedBytes>),
    Shared {
        source: SharedBytes,
        range: Range<usize>,
    },
}

impl Buffer {
    fn of(bytes: AlignedBytes) -> Buffer {
        match bytes.memory {
            Memory::Inline(words) => Buffer::Inline(words, bytes.len),
            Memory::Allocated { .. } => Buffer::Owned(Arc::new(bytes)),
        }
    }

    fn as_slice(&self) -> &[u8] {
        match self {
            Buffer::Inline(words, len) => &bytemuck::cast_slice(words)[..*len],
            Buffer::Owned(bytes) => bytes.as_slice(),
            // A source whose length changes behind our back gives an empty slice, which readers report as too short.
            Buffer::Shared { source, range } => (**source).as_ref().get(range.clone()).unwrap_or_default(),
        }
    }
}

/// A snapshot of a storage's bytes. Later writes to the storage do not change it.
#[derive(Clone)]
pub struct Bytes(Buffer);

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl std::ops::Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_slice()
    }
}

/// The memory that tensors share. See the [module documentation](self).
pub struct Storage {
    buffer: RwLock<Buffer>,
    len: usize,
    /// Whether the contents were accessed, for a storage from [`Storage::unknown`].
    touched: Option<AtomicBool>,
}

impl Storage {
    /// Returns a storage of `len` zero bytes.
    ///
    /// # Errors
    /// When the allocator refuses.
    pub fn zeroed(len: usize) -> Result<Arc<Storage>, OutOfMemory> {
        AlignedBytes::zeroed(len).map(Storage::from_owned)
    }

    /// Returns a storage that owns the buffer.
    pub fn from_owned(bytes: AlignedBytes) -> Arc<Storage> {
        let len = bytes.len;
        Arc::new(Storage {
            buffer: RwLock::new(Buffer::of(bytes)),
            len,
            touched: None,
        })
    }

    /// Returns a storage of `len` bytes with unknown contents. A compiler uses it for tensors that only exist at run time. Sizes, strides and aliasing work as
    /// usual. Reads return zeros and writes have no effect; both are recorded ([`Storage::take_touched`]).
    pub fn unknown(len: usize) -> Arc<Storage> {
        Arc::new(Storage {
            buffer: RwLock::new(Buffer::of(AlignedBytes::empty())),
            len,
            touched: Some(AtomicBool::new(false)),
        })
    }

    /// Returns true for a storage without contents, from [`Storage::unknown`].
    pub fn is_unknown(&self) -> bool {
        self.touched.is_some()
    }

    /// Returns true if the contents of an unknown storage were read or written since the last call.
    pub fn take_touched(&self) -> bool {
        self.touched.as_ref().is_some_and(|t| t.swap(false, Ordering::Relaxed))
    }

    /// Records an access to unknown contents. Returns true if the contents of the storage are unknown.
    fn touch(&self) -> bool {
        self.touched
            .as_ref()
            .inspect(|t| t.store(true, Ordering::Relaxed))
            .is_some()
    }

    /// Returns a storage that shares `range`, in bytes, of a read-only source. The first write copies. `None` if the
    /// range is not within the source.
    pub fn from_shared(source: SharedBytes, range: Range<usize>) -> Option<Arc<Storage>> {
        let len = (*source).as_ref().get(range.clone())?.len();
        Some(Arc::new(Storage {
            buffer: RwLock::new(Buffer::Shared { source, range }),
            len,
            touched: None,
        }))
    }

    /// Returns a storage that shares all of a read-only source of `len` bytes, which is read on first use. The first write copies.
    pub fn of_whole(source: SharedBytes, len: usize) -> Arc<Storage> {
        let range = 0..len;
        Arc::new(Storage {
            buffer: RwLock::new(Buffer::Shared { source, range }),
            len,
            touched: None,
        })
    }

    /// Returns the bytes, if the storage is neither shared nor has a snapshot.
    ///
    /// # Errors
    /// Otherwise the storage itself. The same holds for bytes of a read-only source.
    pub fn into_owned(storage: Arc<Storage>) -> Result<AlignedBytes, Arc<Storage>> {
        let storage = Arc::try_unwrap(storage)?;
        if storage.is_unknown() {
            return Err(Arc::new(storage));
        }
        let Storage { buffer, len, touched } = storage;
        let shared = match buffer.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Buffer::Inline(words, len) => {
                let memory = Memory::Inline(words);
                return Ok(AlignedBytes { memory, len });
            }
            Buffer::Owned(bytes) => match Arc::try_unwrap(bytes) {
                Ok(bytes) => return Ok(bytes),
                Err(bytes) => Buffer::Owned(bytes),
            },
            shared => shared,
        };
        Err(Arc::new(Storage {
            buffer: RwLock::new(shared),
            len,
            touched,
        }))
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns a snapshot of the current contents.
    pub fn bytes(&self) -> Bytes {
        if self.touch() {
            return Bytes(Buffer::of(self.nothing()));
        }
        // A poisoned lock means that a writer panicked between element writes; the bytes are still bytes.
        Bytes(self.buffer.read().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Calls `read` with the current contents, without a snapshot. It should be short, because writers wait.
    pub(crate) fn read<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        if self.touch() {
            return read(self.nothing().as_slice());
        }
        read(self.buffer.read().unwrap_or_else(PoisonError::into_inner).as_slice())
    }

    /// Calls `write` to change the contents. They are copied first if a snapshot exists or the bytes belong to a read-only source.
    ///
    /// # Errors
    /// When there is no memory for the copy.
    pub fn write<R>(&self, write: impl FnOnce(&mut [u8]) -> R) -> Result<R, OutOfMemory> {
        if self.touch() {
            return Ok(write(self.nothing().as_mut_slice()));
        }
        let mut guard = self.buffer.write().unwrap_or_else(PoisonError::into_inner);
        let shared = match &mut *guard {
            Buffer::Inline(..) => false,
            Buffer::Owned(bytes) => Arc::get_mut(bytes).is_none(),
            Buffer::Shared { .. } => true,
        };
        if shared {
            *guard = Buffer::of(AlignedBytes::copied(guard.as_slice())?);
        }
        Ok(match &mut *guard {
            Buffer::Inline(words, len) => write(&mut bytemuck::cast_slice_mut(words)[..*len]),
            Buffer::Owned(bytes) => match Arc::get_mut(bytes) {
                Some(bytes) => write(bytes.as_mut_slice()),
                // Not shared any more since the copy above, under the same lock.
                None => write(&mut []),
            },
            // Replaced above.
            Buffer::Shared { .. } => write(&mut []),
        })
    }

    /// Returns zeros for the contents of an unknown storage. There are fewer bytes if memory is short, which readers report.
    fn nothing(&self) -> AlignedBytes {
        AlignedBytes::zeroed(self.len).unwrap_or_else(|_| AlignedBytes::empty())
    }

    /// Makes this storage share the contents of `other`. Contents are copied when one of the two is written. Returns false and does nothing if the lengths
    /// differ.
    pub fn adopt(&self, other: &Storage) -> bool {
        if self.len != other.len {
            return false;
        }
        let Bytes(buffer) = other.bytes();
        if self.touch() {
            return true;
        }
        *self.buffer.write().unwrap_or_else(PoisonError::into_inner) = buffer;
        true
    }
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Storage({} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owned_bytes_are_aligned_and_stay_so() {
        for len in [0, 1, 63, 64, 65, 1000] {
            let bytes = AlignedBytes::zeroed(len).expect("fits");
            let moved = Box::new(bytes);
            assert_eq!(moved.as_slice().len(), len);
            let alignment = if len > INLINE { ALIGNMENT } else { 8 };
            assert_eq!(moved.as_slice().as_ptr().align_offset(alignment), 0);
        }
    }

    #[test]
    fn vectors_are_taken_over_from_a_byte_on() {
        for (len, start) in [(0, 0), (3, 1), (2, 5), (64, 0), (200, 64)] {
            let data: Vec<u8> = (0..len).collect();
            let want = data.get(start..).unwrap_or_default().to_vec();
            assert_eq!(AlignedBytes::from_vec(data, start).as_slice(), want);
        }
    }

    #[test]
    fn snapshots_do_not_see_later_writes() {
        let storage = Storage::zeroed(4).expect("fits");
        let before = storage.bytes();
        storage.write(|b| b[1] = 7).expect("fits");
        assert_eq!(&*before, &[0, 0, 0, 0]);
        assert_eq!(&*storage.bytes(), &[0, 7, 0, 0]);
    }

    #[test]
    fn adopted_contents_are_copied_by_the_first_write() {
        let (a, b) = (Storage::zeroed(3).expect("fits"), Storage::zeroed(3).expect("fits"));
        b.write(|bytes| bytes.fill(5)).expect("fits");
        assert!(a.adopt(&b) && !a.adopt(&Storage::zeroed(2).expect("fits")));
        a.write(|bytes| bytes[0] = 1).expect("fits");
        assert_eq!((&*a.bytes(), &*b.bytes()), (&[1, 5, 5][..], &[5, 5, 5][..]));
    }

    #[test]
    fn unknown_contents_are_noted_when_wanted() {
        let storage = Storage::unknown(8);
        assert!(storage.is_unknown() && storage.len() == 8 && !storage.take_touched());
        assert_eq!(storage.bytes().len(), 8);
        assert!(storage.take_touched() && !storage.take_touched());
        storage.write(|b| b.fill(1)).expect("fits");
        assert!(storage.take_touched());
        assert_eq!(&*storage.bytes(), &[0; 8]);
    }

    #[test]
    fn a_shared_source_is_copied_by_the_first_write() {
        let source: SharedBytes = Arc::new(vec![1u8, 2, 3, 4]);
        assert!(Storage::from_shared(source.clone(), 2..5).is_none());
        let storage = Storage::from_shared(source.clone(), 1..3).expect("in range");
        storage.write(|b| b[0] = 9).expect("fits");
        assert_eq!(&*storage.bytes(), &[9, 3]);
        assert_eq!((*source).as_ref(), &[1, 2, 3, 4]);
    }
}
