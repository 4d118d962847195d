//! Workspaces, which instances of several functions may share.

use super::pages::Pages;
use frazil_runtime::memory::OutOfMemory;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The memory of a run for intermediate results. Clones share it: it is as large as the largest of their functions needs, and one of them runs at a time.
#[derive(Clone, Debug, Default)]
pub struct Workspace(Arc<Mutex<Option<Pages>>>);

impl Workspace {
    /// Makes sure that there are at least `bytes` bytes.
    ///
    /// # Errors
    /// If the system refuses memory; the workspace then keeps what it had.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<(), OutOfMemory> {
        let mut pages = self.lock();
        if pages.as_ref().map_or(0, |pages| pages.bytes().len()) < bytes {
            *pages = Some(Pages::new(bytes)?);
        }
        Ok(())
    }

    /// Returns the memory, which nothing else uses until this is dropped.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Option<Pages>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_the_largest_memory() {
        let bytes = |workspace: &Workspace| workspace.lock().as_ref().map_or(0, |pages| pages.bytes().len());
        let workspace = Workspace::default();
        let clone = workspace.clone();
        clone.reserve(1000).unwrap();
        assert!(bytes(&workspace) >= 1000);
        workspace.reserve(5000).unwrap();
        let largest = bytes(&clone);
        clone.reserve(10).unwrap();
        assert!(largest >= 5000 && bytes(&workspace) == largest);
    }
}
