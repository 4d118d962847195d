//! Constants: in memory, in a mapped file, or computed at the first access.

use super::align::{ALIGNMENT, align_up};
use super::mapped::MappedFile;
use super::pages::Pages;
use frazil_runtime::memory::OutOfMemory;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Read-only data: packed weights and other constant tensors, each at a multiple of [`ALIGNMENT`] bytes. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Constants {
    memory: ConstantMemory,
    len: usize,
}

/// The storage of the bytes.
#[derive(Clone, Debug)]
enum ConstantMemory {
    /// Memory of the process, which may have capacity for more.
    Own(Arc<Pages>),
    /// A part of a file, from this byte offset on, which is a multiple of [`ALIGNMENT`].
    Stored(Arc<StoredBytes>, usize),
    /// Memory of the process that is initialised by the first read.
    Later(Arc<Later>),
}

/// A part of a file.
#[derive(Debug)]
pub(crate) enum StoredBytes {
    /// A copy.
    Read(Pages),
    /// A map of the file, and the byte offset of the part.
    Mapped(MappedFile, usize),
}

impl StoredBytes {
    /// Returns all of them, and possibly more.
    fn bytes(&self) -> &[u8] {
        match self {
            StoredBytes::Read(pages) => pages.bytes(),
            StoredBytes::Mapped(file, start) => file.bytes().get(*start..).unwrap_or_default(),
        }
    }
}

/// Bytes that are written when they are first read.
struct Later {
    pages: OnceLock<Pages>,
    /// Before the first read: zeros, and the function that initialises them.
    waiting: Mutex<Option<(Pages, Fill)>>,
}

type Fill = Box<dyn FnOnce(&mut [u8]) + Send>;

impl std::fmt::Debug for Later {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Later").field(&self.pages.get()).finish()
    }
}

impl Later {
    /// Returns at least `len` bytes.
    fn bytes(&self, len: usize) -> &[u8] {
        let pages = self.pages.get_or_init(|| {
            let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
            // Only one call of this closure ever runs.
            waiting.map_or(Pages::Allocated(Vec::new()), |(mut pages, fill)| {
                fill(&mut pages.bytes_mut()[..len]);
                pages
            })
        });
        pages.bytes()
    }
}

impl Default for ConstantMemory {
    fn default() -> Self {
        ConstantMemory::Own(Arc::new(Pages::Allocated(Vec::new())))
    }
}

impl Constants {
    /// Returns the `len` bytes of `stored` from `start` on; `None` if `start` is no multiple of [`ALIGNMENT`] or there are fewer.
    pub(crate) fn stored(stored: Arc<StoredBytes>, start: usize, len: usize) -> Option<Constants> {
        let inside = start.checked_add(len).is_some_and(|end| end <= stored.bytes().len());
        (inside && start.is_multiple_of(ALIGNMENT)).then_some(Constants {
            memory: ConstantMemory::Stored(stored, start),
            len,
        })
    }

    /// Returns whether all bytes that were read so far were as they are stored. A file that is mapped may have been changed by another process.
    pub(crate) fn is_unchanged(&self) -> bool {
        match &self.memory {
            ConstantMemory::Stored(stored, _) => match &**stored {
                StoredBytes::Mapped(file, _) => file.is_unchanged(),
                StoredBytes::Read(_) => true,
            },
            ConstantMemory::Own(_) | ConstantMemory::Later(_) => true,
        }
    }

    /// Returns `len` bytes that `fill` initialises at the first read; they are zeros before. The address space is reserved at once, and the memory is not
    /// accessed before.
    ///
    /// # Errors
    /// If the system refuses the memory.
    pub fn later(len: usize, fill: impl FnOnce(&mut [u8]) + Send + 'static) -> Result<Constants, OutOfMemory> {
        let later = Later {
            pages: OnceLock::new(),
            waiting: Mutex::new(Some((Pages::new(len)?, Box::new(fill)))),
        };
        Ok(Constants {
            memory: ConstantMemory::Later(Arc::new(later)),
            len,
        })
    }

    /// Returns the first `len` bytes of `pages`, which have at least as many.
    pub(crate) fn of(pages: Pages, len: usize) -> Constants {
        Constants {
            memory: ConstantMemory::Own(Arc::new(pages)),
            len,
        }
    }

    /// Appends `data` at the next aligned offset, and returns this offset in bytes.
    pub fn push<T: bytemuck::NoUninit>(&mut self, data: &[T]) -> u64 {
        let bytes: &[u8] = bytemuck::cast_slice(data);
        let offset = align_up(self.len);
        let end = offset + bytes.len();
        let room = match &mut self.memory {
            ConstantMemory::Own(pages) => Arc::get_mut(pages).filter(|p| p.bytes().len() >= end),
            ConstantMemory::Stored(..) | ConstantMemory::Later(_) => None,
        };
        match room {
            Some(pages) => pages.bytes_mut()[offset..end].copy_from_slice(bytes),
            None => {
                // The data is a copy of data in memory, and comes from the compiler, not from the program.
                let mut pages = Pages::infallible(align_up(end.max(2 * self.len)));
                pages.bytes_mut()[..self.len].copy_from_slice(self.bytes());
                pages.bytes_mut()[offset..end].copy_from_slice(bytes);
                self.memory = ConstantMemory::Own(Arc::new(pages));
            }
        }
        self.len = end;
        offset as u64
    }

    /// Returns whether both are the same memory.
    pub fn is_same(&self, other: &Constants) -> bool {
        let is_same_memory = match (&self.memory, &other.memory) {
            (ConstantMemory::Own(one), ConstantMemory::Own(two)) => Arc::ptr_eq(one, two),
            (ConstantMemory::Stored(one, start), ConstantMemory::Stored(two, other)) => {
                Arc::ptr_eq(one, two) && start == other
            }
            (ConstantMemory::Later(one), ConstantMemory::Later(two)) => Arc::ptr_eq(one, two),
            _ => false,
        };
        is_same_memory && self.len == other.len
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the bytes; the first has an address that is a multiple of 64.
    pub fn bytes(&self) -> &[u8] {
        match &self.memory {
            ConstantMemory::Own(pages) => &pages.bytes()[..self.len],
            ConstantMemory::Stored(stored, start) => &stored.bytes()[*start..*start + self.len],
            ConstantMemory::Later(later) => &later.bytes(self.len)[..self.len],
        }
    }
}

impl PartialEq for Constants {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}
