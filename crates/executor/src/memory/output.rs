//! New memory for what a run gives.

use frazil_runtime::memory::{self, OutOfMemory};
use frazil_runtime::storage::{ALIGNMENT, AlignedBytes, aligned_start};
use std::ffi::c_void;

/// What the bytes are before a run where that is to show: as a float about −10⁻¹⁶, as an index far outside of everything.
const POISON: u8 = 0xA5;

/// The contents of new memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contents {
    /// Zeros.
    Zero,
    /// None: clearing what is written anyway takes a third of the time of what only moves memory.
    Undefined,
}

/// Memory of one output, which compiled code writes through its address.
pub(crate) struct NewBytes {
    /// Has the room; its length is that of the part which has contents.
    data: Vec<u8>,
    start: usize,
    len: usize,
}

impl NewBytes {
    /// `len` bytes that start at a multiple of [`ALIGNMENT`].
    ///
    /// # Errors
    /// When the allocator refuses.
    pub fn new(len: usize, contents: Contents) -> Result<NewBytes, OutOfMemory> {
        let room = len.saturating_add(ALIGNMENT);
        let data = match contents {
            Contents::Zero => memory::zeroed(room),
            Contents::Undefined => memory::with_capacity(room),
        };
        let mut data = data.map_err(|_| OutOfMemory { bytes: len })?;
        let start = aligned_start(data.as_ptr());
        if contents == Contents::Undefined {
            data.resize(start, 0);
            // An element that a kernel does not write must not look like a result in any test.
            if cfg!(debug_assertions) {
                data.resize(start + len, POISON);
            }
        }
        Ok(NewBytes { data, start, len })
    }

    /// Address of the first byte.
    pub fn address(&mut self) -> *mut c_void {
        self.data.as_mut_ptr().wrapping_add(self.start).cast()
    }

    /// The bytes.
    ///
    /// # Safety
    /// Where the contents were undefined, all bytes have been written.
    pub unsafe fn written(mut self) -> AlignedBytes {
        // SAFETY: the capacity is at least that by `new`, and the bytes have contents by the caller.
        unsafe { self.data.set_len(self.start + self.len) };
        AlignedBytes::from_vec(self.data, self.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_bytes_are_the_result() {
        for len in [0usize, 1, 64, 65, 5000] {
            for contents in [Contents::Zero, Contents::Undefined] {
                let mut new = NewBytes::new(len, contents).expect("fits");
                let address = new.address().cast::<u8>();
                assert_eq!(address as usize % ALIGNMENT, 0);
                let want: Vec<u8> = (0..len).map(|i| i as u8).collect();
                // SAFETY: there are `len` bytes, and all are written.
                let bytes = unsafe {
                    address.copy_from_nonoverlapping(want.as_ptr(), len);
                    new.written()
                };
                assert_eq!(bytes.as_slice(), want);
            }
        }
    }
}
