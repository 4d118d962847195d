//! Memory for what is read from end to end in every run: weights and the workspace.

use super::align::ALIGNMENT;
use frazil_runtime::memory::{self, OutOfMemory};
use memmap2::{Advice, MmapMut};

/// Bytes of a large page.
const LARGE: usize = 2 << 20;
/// Bytes from which on a large page is worth its memory.
const WORTH: usize = LARGE / 2;

/// Zeroed memory at a multiple of [`ALIGNMENT`].
///
/// Where there is much of it, it lies in large pages if the system has them: weights of more than a few megabytes do not fit the
/// processor's table of small pages, and its prefetchers stop at the end of each.
#[derive(Debug)]
pub(crate) enum Pages {
    /// Straight from the system.
    Mapped(MmapMut),
    /// From the allocator.
    Allocated(Vec<Line>),
}

/// 64 bytes at a 64-byte boundary, so that a vector of these is aligned.
#[derive(Clone, Copy, Debug, PartialEq, bytemuck::Zeroable, bytemuck::Pod)]
#[repr(C, align(64))]
pub(crate) struct Line([u64; 8]);

impl Pages {
    /// At least `bytes` bytes.
    ///
    /// # Errors
    /// When the system refuses.
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

    /// [`Pages::new`] that ends the process where the system refuses, as vectors do.
    pub fn infallible(bytes: usize) -> Pages {
        Pages::new(bytes).unwrap_or_else(|_| Pages::Allocated(vec![Line([0; 8]); bytes.div_ceil(ALIGNMENT)]))
    }

    /// All of it.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Pages::Mapped(map) => map,
            Pages::Allocated(lines) => bytemuck::cast_slice(lines),
        }
    }

    /// All of it, to be written.
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
