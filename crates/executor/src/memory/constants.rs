//! Constants: in memory, in a mapped file, or not computed yet.

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

/// Who holds the bytes.
#[derive(Clone, Debug)]
enum ConstantMemory {
    /// The process; there may be room for more.
    Own(Arc<Pages>),
    /// A part of a file, from this byte of it on: a multiple of [`ALIGNMENT`], as pages are.
    Stored(Arc<StoredBytes>, usize),
    /// The process, once somebody has read them.
    Later(Arc<Later>),
}

/// A part of a file.
#[derive(Debug)]
pub(crate) enum StoredBytes {
    /// A copy.
    Read(Pages),
    /// From this byte of the file on.
    Mapped(MappedFile, usize),
}

impl StoredBytes {
    /// All of them, and maybe more.
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
    /// Until then: zeros, and the function that writes them.
    waiting: Mutex<Option<(Pages, Fill)>>,
}

type Fill = Box<dyn FnOnce(&mut [u8]) + Send>;

impl std::fmt::Debug for Later {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Later").field(&self.pages.get()).finish()
    }
}

impl Later {
    /// All of them, `len` bytes and maybe more.
    fn bytes(&self, len: usize) -> &[u8] {
        let pages = self.pages.get_or_init(|| {
            let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
            // Taken once, by this very call.
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
    /// The `len` bytes of `stored` from `start` on; `None` when `start` is no multiple of [`ALIGNMENT`] or there are fewer.
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

    /// `len` bytes that `fill` writes over zeros when somebody first reads them. The address space is reserved at once, the memory is not
    /// touched before.
    ///
    /// # Errors
    /// When the system refuses.
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

    /// The first `len` bytes of `pages`, which have as many.
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
                // What is pushed is a copy of what is in memory, and comes from the compiler, not from the program.
                let mut pages = Pages::infallible(align_up(end.max(2 * self.len)));
                pages.bytes_mut()[..self.len].copy_from_slice(self.bytes());
                pages.bytes_mut()[offset..end].copy_from_slice(bytes);
                self.memory = ConstantMemory::Own(Arc::new(pages));
            }
        }
        self.len = end;
        offset as u64
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes; the first lies at a 64-byte boundary.
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
