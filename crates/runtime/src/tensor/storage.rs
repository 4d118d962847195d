//! The bytes under tensors.
//!
//! A [`Storage`] is shared by every tensor that aliases it; whether two tensors alias is asked with `Arc::ptr_eq`. Reading
//! takes a snapshot ([`Storage::bytes`]), writing works on the one owner or, when a snapshot is still held, on a copy that
//! takes its place. No lock is held while a kernel runs, so nothing can deadlock, and a kernel that reads what it writes
//! (`x.copy_(x.t())`) sees the old contents throughout.

use crate::memory::{self, OutOfMemory};
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Owned buffers of more than a few bytes start at a multiple of this many: one cache line, one AVX-512 register.
pub const ALIGNMENT: usize = 64;

/// Buffers up to this length need no memory of their own: copying them costs less than counting who shares them. They start at a multiple of
/// 8 bytes, which is enough for elements of every dtype.
const INLINE: usize = 64;

/// Owned bytes. Those of more than [`INLINE`] start at a multiple of [`ALIGNMENT`], but where a vector was taken over that does not.
pub struct AlignedBytes {
    memory: Memory,
    len: usize,
}

/// How many bytes lie before the first multiple of [`ALIGNMENT`] from `data` on: at most as many.
pub fn aligned_start(data: *const u8) -> usize {
    // `align_offset` may give up (usize::MAX) by its contract; an unaligned buffer is slower, not wrong.
    match data.align_offset(ALIGNMENT) {
        offset if offset <= ALIGNMENT => offset,
        _ => 0,
    }
}

enum Memory {
    Inline([u64; INLINE / 8]),
    /// Over-allocated; it never grows, so `start` stays right wherever the vector moves.
    Allocated {
        data: Vec<u8>,
        start: usize,
    },
}

impl AlignedBytes {
    /// `len` zero bytes. The pages of large buffers are not touched.
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

    /// No bytes.
    pub(crate) fn empty() -> AlignedBytes {
        AlignedBytes {
            memory: Memory::Inline([0; INLINE / 8]),
            len: 0,
        }
    }

    /// The bytes of `data` from `start` on, without a copy where there are more than a few.
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

    /// A copy of `bytes`.
    ///
    /// # Errors
    /// When the allocator refuses.
    pub fn copied(bytes: &[u8]) -> Result<AlignedBytes, OutOfMemory> {
        let mut out = AlignedBytes::zeroed(bytes.len())?;
        out.as_mut_slice().copy_from_slice(bytes);
        Ok(out)
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        match &self.memory {
            Memory::Inline(words) => &bytemuck::cast_slice(words)[..self.len],
            Memory::Allocated { data, start } => &data[*start..start + self.len],
        }
    }

    /// The bytes, to be written.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        match &mut self.memory {
            Memory::Inline(words) => &mut bytemuck::cast_slice_mut(words)[..self.len],
            Memory::Allocated { data, start } => &mut data[*start..*start + self.len],
        }
    }
}

/// A read-only source of bytes that a storage can share: a memory-mapped archive, a caller's buffer.
pub type SharedBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// The contents of a storage at one moment.
#[derive(Clone)]
enum Buffer {
    /// Bytes that no one else has: clones are copies. The second is their number.
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

/// A snapshot of a storage's bytes; later writes to the storage do not show in it.
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
    /// Only of storages without contents: whether the contents were requested.
    touched: Option<AtomicBool>,
}

impl Storage {
    /// `len` zero bytes.
    ///
    /// # Errors
    /// When the allocator refuses.
    pub fn zeroed(len: usize) -> Result<Arc<Storage>, OutOfMemory> {
        AlignedBytes::zeroed(len).map(Storage::from_owned)
    }

    /// Takes over a buffer.
    pub fn from_owned(bytes: AlignedBytes) -> Arc<Storage> {
        let len = bytes.len;
        Arc::new(Storage {
            buffer: RwLock::new(Buffer::of(bytes)),
            len,
            touched: None,
        })
    }

    /// A storage of `len` bytes that has no contents yet: what a compiler gives to tensors that only exist when the compiled
    /// program runs. Everything that asks for sizes, strides and aliasing works on it; reading gives zeros and writing does nothing,
    /// and both are noted ([`Storage::take_touched`]).
    pub fn unknown(len: usize) -> Arc<Storage> {
        Arc::new(Storage {
            buffer: RwLock::new(Buffer::of(AlignedBytes::empty())),
            len,
            touched: Some(AtomicBool::new(false)),
        })
    }

    /// True for a storage made by [`Storage::unknown`].
    pub fn is_unknown(&self) -> bool {
        self.touched.is_some()
    }

    /// True when the contents of an unknown storage were read or written since the last call.
    pub fn take_touched(&self) -> bool {
        self.touched.as_ref().is_some_and(|t| t.swap(false, Ordering::Relaxed))
    }

    /// Notes an access to contents that are not there. True when this is such a storage.
    fn touch(&self) -> bool {
        self.touched
            .as_ref()
            .inspect(|t| t.store(true, Ordering::Relaxed))
            .is_some()
    }

    /// Shares `range` of a read-only source; the first write copies. `None` when the source is shorter than that.
    pub fn from_shared(source: SharedBytes, range: Range<usize>) -> Option<Arc<Storage>> {
        let len = (*source).as_ref().get(range.clone())?.len();
        Some(Arc::new(Storage {
            buffer: RwLock::new(Buffer::Shared { source, range }),
            len,
            touched: None,
        }))
    }

    /// Shares all of a read-only source, which has `len` bytes and is not read before they are needed; the first write copies.
    pub fn of_whole(source: SharedBytes, len: usize) -> Arc<Storage> {
        let range = 0..len;
        Arc::new(Storage {
            buffer: RwLock::new(Buffer::Shared { source, range }),
            len,
            touched: None,
        })
    }

    /// The bytes themselves, where nothing else holds the storage or a snapshot of it; else the storage.
    ///
    /// # Errors
    /// The storage as it was: it is shared, or its bytes belong to a read-only source.
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

    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The contents as they are now.
    pub fn bytes(&self) -> Bytes {
        if self.touch() {
            return Bytes(Buffer::of(self.nothing()));
        }
        // A poisoned lock means that a writer panicked between element writes; the bytes are still bytes.
        Bytes(self.buffer.read().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Lets `read` look at the contents as they are now, without a snapshot. Meant for moments: writers wait.
    pub(crate) fn read<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        if self.touch() {
            return read(self.nothing().as_slice());
        }
        read(self.buffer.read().unwrap_or_else(PoisonError::into_inner).as_slice())
    }

    /// Lets `write` change the contents. Copies first where a snapshot is held or the bytes belong to a read-only source.
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

    /// Zeros in the place of contents that are not there; fewer where there is no memory for as many, which readers report as too short.
    fn nothing(&self) -> AlignedBytes {
        AlignedBytes::zeroed(self.len).unwrap_or_else(|_| AlignedBytes::empty())
    }

    /// Takes over the contents of `other` without copying: both share the bytes until one of them is written. False, with
    /// nothing done, when the lengths differ.
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
