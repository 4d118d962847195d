//! Loops over lanes, compiled for the vector registers that the processor turns out to have.

/// Runs `body` as compiled for the widest vector registers of the machine. Worth it around loops over whole chunks, whose body
/// is inlined; the results are the same everywhere, as nothing is contracted or reordered.
#[inline(always)]
pub(crate) fn vectorised<R>(body: impl FnOnce() -> R) -> R {
    #[cfg(feature = "fast")]
    return pulp::Arch::new().dispatch(body);
    #[cfg(not(feature = "fast"))]
    body()
}
