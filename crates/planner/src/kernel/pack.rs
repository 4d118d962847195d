//! Packing of weights: on several threads, and in blocks that stay in registers.

use frazil_rt::SignalsBlocked;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Minimum number of elements per thread: for fewer, starting the thread is not worthwhile.
const WORTH: usize = 64 << 10;

/// Number of bytes that a thread reads at a time where it may choose.
pub(crate) const READ_BYTES: usize = 1 << 20;

/// Returns a function that copies `weights` from an element on, with zeros after the last one.
pub(crate) fn reader(weights: &[f32]) -> impl Fn(usize, &mut [f32]) + Sync {
    |first, to| {
        let weights = weights.get(first..).unwrap_or_default();
        let (copied, missing) = to.split_at_mut(weights.len().min(to.len()));
        copied.copy_from_slice(&weights[..copied.len()]);
        missing.fill(0.0);
    }
}

/// Calls `pack` with the index and the elements of each chunk of `packed`, and with memory that its thread used for other chunks. Chunks have `size` elements;
/// the last one may have fewer.
///
/// The function starts threads of its own. Constants are packed when they are first read, and other threads may wait for them. In a shared pool, a thread that
/// waits for its part could run the task of such a thread, and wait for itself. If the system cannot start a thread, the others pack its part.
pub(crate) fn in_chunks<T: Send>(packed: &mut [T], size: usize, pack: impl Fn(usize, &mut [T], &mut Vec<f32>) + Sync) {
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
        let mut memory = Vec::new();
        while let Some((number, part)) = next() {
            for (i, chunk) in part.chunks_mut(size).enumerate() {
                pack(number * share + i, chunk, &mut memory);
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

/// Number of rows and columns of the blocks that are transposed at once.
const SIDE: usize = 8;
/// Number of elements of a column that are copied before those of the next columns: a cache line.
const LINE: usize = 16;

/// Copies `columns` columns to rows. Element `r` of column `c`, at `from[c * stride + r]`, goes to `to[places[r] + c]`. Elements outside of `from` are not
/// copied.
pub(super) fn transpose(from: &[f32], stride: usize, columns: usize, places: &[usize], to: &mut [f32]) {
    for (line, places) in places.chunks(LINE).enumerate() {
        for column in (0..columns).step_by(SIDE) {
            for (part, places) in places.chunks(SIDE).enumerate() {
                let at = column * stride + line * LINE + part * SIDE;
                let from = from.get(at..).unwrap_or_default();
                let columns = SIDE.min(columns - column);
                if block(from, stride, columns, places, column, to).is_none() {
                    for (row, place) in places.iter().enumerate() {
                        let to = to.get_mut(place + column..).unwrap_or_default();
                        let from = from.get(row..).unwrap_or_default().iter().step_by(stride.max(1));
                        to.iter_mut().zip(from).take(columns).for_each(|(to, from)| *to = *from);
                    }
                }
            }
        }
    }
}

/// Copies a whole block as [`transpose`] does, from `column` on; returns `None` if there is no whole block.
fn block(from: &[f32], stride: usize, columns: usize, places: &[usize], column: usize, to: &mut [f32]) -> Option<()> {
    let places: &[usize; SIDE] = places.try_into().ok().filter(|_| columns == SIDE)?;
    let mut block = [[0.0; SIDE]; SIDE];
    for (c, own) in block.iter_mut().enumerate() {
        *own = *from.get(c * stride..)?.first_chunk()?;
    }
    for (row, place) in places.iter().enumerate() {
        let to: &mut [f32; SIDE] = to.get_mut(place + column..)?.first_chunk_mut()?;
        *to = std::array::from_fn(|c| block[c][row]);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_become_rows() {
        for (columns, rows, stride, width) in [
            (8, 16, 16, 8),
            (11, 21, 30, 16),
            (1, 3, 3, 1),
            (24, 40, 41, 24),
            (9, 8, 8, 12),
        ] {
            let from: Vec<f32> = (0..columns * stride).map(|i| i as f32).collect();
            let places: Vec<usize> = (0..rows).map(|row| (rows - 1 - row) * width).collect();
            let mut to = vec![-1.0; rows * width];
            transpose(&from, stride, columns, &places, &mut to);
            for row in 0..rows {
                for column in 0..width {
                    let expected = if column < columns {
                        from[column * stride + row]
                    } else {
                        -1.0
                    };
                    assert_eq!(to[places[row] + column], expected, "{columns} {rows} {stride} {width}");
                }
            }
        }
    }

    #[test]
    fn what_is_missing_is_not_copied() {
        let from = [1.0; 10];
        let mut to = [0.0; 16];
        transpose(&from, 8, 2, &[0, 2, 4, 6, 8, 10, 12, 14], &mut to);
        assert_eq!(to.iter().sum::<f32>(), 10.0);
    }

    #[test]
    fn missing_weights_are_zeros() {
        let (weights, mut to) = ([1.0, 2.0, 3.0], [9.0; 2]);
        for (first, expected) in [(0, [1.0, 2.0]), (2, [3.0, 0.0]), (7, [0.0, 0.0])] {
            reader(&weights)(first, &mut to);
            assert_eq!(to, expected, "from {first} on");
        }
    }

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
            in_chunks(&mut packed, size, |i, chunk: &mut [f32], _| {
                chunk.iter_mut().for_each(|x| *x += 1.0 + i as f32)
            });
            let expected = (0..len).map(|at| 1.0 + (at / size.max(1)) as f32);
            assert!(packed.iter().copied().eq(expected), "{len} elements by {size}");
        }
    }
}
