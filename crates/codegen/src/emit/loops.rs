//! Loop nests.
use super::Kernel;
use crate::kernel::Loops;
/// Emits all tasks.
pub fn emit(_kernel: &mut Kernel<'_>, _spec: &Loops) {}
/// Refuses.
pub fn check(_spec: &Loops) -> Result<(), String> {
    Ok(())
}
