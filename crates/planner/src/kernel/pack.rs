//! Packing of weights on several threads.

use frazil_rt::SignalsBlocked;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Minimum number of elements per thread: for fewer, starting the thread is not worthwhile.
const WORTH: usize = 64 << 10;

/// Calls `pack` with the index and the elements of each chunk of `packed`. Chunks have `size` elements; the last one may have fewer.
///
/// The function starts threads of its own. Constants are packed when they are first read, and other threads may wait for them. In a shared pool, a thread that
/// waits for its part could run the task of such a thread, and wait for itself. If the system cannot start a thread, the others pack its part.
pub(super) fn in_chunks(packed: &mut [f32], size: usize, pack: impl Fn(usize, &mut [f32]) + Sync) {
    let size = size.max(1);
    let count = packed.len().div_ceil(size);
    let threads = match (packed.len() / WORTH).min(count) {
        0 | 1 => 1,
        // The system reads files to answer.
        most => thread::available_parallelism().map_or(1, usize::from).min(most),
    };
    let share = count.div_ceil(threads).max(1);
    let parts = Mutex::new(packed.chunks_mut(share * size).enumerate());
    let next = || parts.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        while let Some((number, part)) = next() {
            for (i, chunk) in part.chunks_mut(size).enumerate() {
                pack(number * share + i, chunk);
            }
        }
    };
    thread::scope(|scope| {
        let blocked = SignalsBlocked::new();
        for number in 1..threads {
            let thread = thread::Builder::new().name(format!("frazil-pack-{number}"));
            if thread.spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        drop(blocked);
        work();
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_chunk_is_packed_once() {
        for (len, size) in [
            (0, 4),
            (10, 4),
            (3 * WORTH + 5, 1000),
            (4 * WORTH, 0),
            (2 * WORTH, 5 * WORTH),
        ] {
            let mut packed = vec![0.0; len];
            in_chunks(&mut packed, size, |i, chunk| {
                chunk.iter_mut().for_each(|x| *x += 1.0 + i as f32)
            });
            let expected = (0..len).map(|at| 1.0 + (at / size.max(1)) as f32);
            assert!(packed.iter().copied().eq(expected), "{len} elements by {size}");
        }
    }
}
