//! Replacement for the module `threads` in a build without the feature `threads`: everything runs on the calling thread.

/// Calls `work`. In a build with thread pools, this function calls it outside of the pools' threads.
pub fn outside_of_pools<R>(work: impl FnOnce() -> R) -> R {
    work()
}

/// Calls `work` on each chunk of `size` elements of `out`, with the chunk's index and the result of `state`.
pub(crate) fn each_chunk<T, S, E>(
    out: &mut [T],
    size: usize,
    state: impl Fn() -> S,
    work: impl Fn(&mut S, (usize, &mut [T])) -> Result<(), E>,
) -> Result<(), E> {
    let mut state = state();
    out.chunks_mut(size)
        .enumerate()
        .try_for_each(|chunk| work(&mut state, chunk))
}
