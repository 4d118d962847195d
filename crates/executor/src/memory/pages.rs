//! Memory for weights and workspaces, in huge pages if the system supports them.

use super::align::ALIGNMENT;
use frazil_runtime::memory::{self, OutOfMemory};
use memmap2::{Advice, MmapMut};

/// Size of a huge page, in bytes.
const LARGE: usize = 2 << 20;
/// Minimum number of bytes for which a huge page is used.
const WORTH: usize = LARGE / 2;

/// Zero-initialised memory, aligned to [`ALIGNMENT`].
///
/// Large allocations use huge pages if the system supports them. With small pages, weights of more than a few megabytes exceed the reach of the TLB, and the
/// hardware prefetchers stop at the end of each page.
#[derive(Debug)]
pub(crate) enum Pages {
    /// An anonymous memory mapping.
    Mapped(MmapMut),
    /// Memory of the global allocator.
    Allocated(Vec<Line>),
}

/// A cache line: 64 bytes, aligned to 64 bytes, so that a `Vec<Line>` is aligned to [`ALIGNMENT`].
#[derive(Clone, Copy, Debug, PartialEq, bytemuck::Zeroable, bytemuck::Pod)]
#[repr(C, align(64))]
pub(crate) struct Line([u64; 8]);

impl Pages {
    /// Allocates at least `bytes` bytes.
    ///
    /// # Errors
    /// If the allocation fails.
    pub fn new(bytes: usize) -> Result<Pages, OutOfMemory> {
        if bytes >= WORTH
            && let Some(whole) = bytes.checked_next_multiple_of(LARGE)
            && let Ok(map) = MmapMut::map_anon(whole)
        {
            // Small pages do as well, only slower; at the end of the memory too, where a large one would be used by less than half.
            #[cfg(target_os = "linux")]
            let _ = map.advise_range(Advice::HugePage, 0, (bytes + LARGE - WORTH) / LARGE * LARGE);
            return Ok(Pages::Mapped(map));
        }
        memory::filled(bytes.div_ceil(ALIGNMENT), Line([0; 8])).map(Pages::Allocated)
    }

    /// Allocates as [`Pages::new`] does, but aborts the process if the allocation fails, as `Vec` does.
    pub fn infallible(bytes: usize) -> Pages {
        Pages::new(bytes).unwrap_or_else(|_| Pages::Allocated(vec![Line([0; 8]); bytes.div_ceil(ALIGNMENT)]))
    }

    /// Returns the memory.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Pages::Mapped(map) => map,
            Pages::Allocated(lines) => bytemuck::cast_slice(lines),
        }
    }

    /// Returns the memory for writing.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Pages::Mapped(map) => map,
            Pages::Allocated(lines) => bytemuck::cast_slice_mut(lines),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_and_much_memory_is_aligned_and_zero() {
        for bytes in [0, 1, 64, 65, WORTH - 1, WORTH, LARGE + 1] {
            let mut pages = Pages::new(bytes).expect("fits");
            assert!(pages.bytes().len() >= bytes);
            assert!(pages.bytes().iter().all(|&b| b == 0));
            assert_eq!(pages.bytes_mut().as_ptr() as usize % ALIGNMENT, 0);
        }
    }
}
