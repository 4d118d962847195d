//! Code libraries: kernels that were compiled in advance, for all processors of a [level](Target::level).
//!
//! A key consists of the level and the identity of the kernel's code. It does not contain the processor, so a library serves every processor of its levels.
//! Only the version of the compiler that made a library can open it, because another version may compile the same kernel to different code.

use crate::target_keys::FORMAT;
use frazil_executor::link::{Library, LibraryError, LibraryKey, write_library};
use frazil_planner::kernel::CodeIdentity;
use frazil_planner::target::Target;
use std::borrow::Cow;

/// A code library in memory. Clones share it.
#[derive(Clone, Debug)]
pub struct CodeLibrary(Library);

impl CodeLibrary {
    /// Opens a library that this version of the compiler made. Its code runs with the rights of the program, so it must be trustworthy.
    ///
    /// # Errors
    /// If the bytes are not a library, or if the library was made by another version of the compiler or is damaged.
    pub fn open(bytes: impl Into<Cow<'static, [u8]>>) -> Result<CodeLibrary, LibraryError> {
        Library::open(bytes, FORMAT).map(CodeLibrary)
    }

    /// Returns the number of object files, one for each kernel and level.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if the library has no objects.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the key of `code`, if the library contains it for the [level](Target::level) `level`.
    pub(crate) fn key(&self, code: &CodeIdentity, level: &Target) -> Option<LibraryKey> {
        let key = key_of(code, level);
        self.0.contains(&key).then_some(key)
    }

    /// Returns the object with the key `key`; `None` if there is none.
    ///
    /// # Errors
    /// If the object is damaged.
    pub(crate) fn get(&self, key: &LibraryKey) -> Result<Option<Vec<u8>>, LibraryError> {
        self.0.get(key)
    }
}

/// Returns the key of `code` for the processors of `level`.
pub(crate) fn key_of(code: &CodeIdentity, level: &Target) -> LibraryKey {
    LibraryKey::of(&level.cpu, code.text())
}

/// Returns the bytes of a library that contains `objects`.
///
/// # Errors
/// If the objects are too large.
pub(crate) fn written(objects: Vec<(LibraryKey, Vec<u8>)>) -> Result<Vec<u8>, LibraryError> {
    write_library(FORMAT, objects)
}
