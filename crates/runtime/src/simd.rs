//! Loops over lanes, compiled for several vector extensions. The best version for the processor is selected at run time.

/// Runs `body` as compiled for the widest vector registers of the machine. It is meant for loops over whole chunks, whose body is inlined. Results are the same
/// on all machines, because no operations are contracted or reordered.
#[inline(always)]
pub(crate) fn vectorised<R>(body: impl FnOnce() -> R) -> R {
    #[cfg(feature = "fast")]
    return pulp::Arch::new().dispatch(body);
    #[cfg(not(feature = "fast"))]
    body()
}
