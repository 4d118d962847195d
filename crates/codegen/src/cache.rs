//! Objects of kernels, on disk or in memory, by what they are compiled from.
//!
//! On disk a file's name is a hash of the key: the kernel's spec, its name, the target, and a hash of this crate's sources. The key itself stands in
//! front of the object, so that two keys of one hash are told apart. Key and object are [sealed](seal), in a [`PrivateFolder`]: what was damaged, or may
//! be somebody else's, is not there. Several processes of a user may share a folder. A file that cannot be read or written is no error: the kernel is
//! compiled then.

use crate::kernel::KernelSpec;
use crate::target::Target;
use frazil_syntax::{PrivateFolder, seal, unseal};
use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tracing::warn;

/// Changes whenever the same spec may give other code, or files have another form. `build.rs` makes the hash.
const FORMAT: &str = concat!(
    "frazil ",
    env!("CARGO_PKG_VERSION"),
    " objects of ",
    env!("FRAZIL_CODEGEN_SOURCES")
);

/// Kind and version of the files.
const OBJECT: &[u8; 8] = b"FRAZILO1";
/// Most bytes of a file: more than kernels ever have.
const MOST_BYTES: u64 = 1 << 30;

/// A store of objects. Clones share it.
#[derive(Clone, Debug)]
pub struct ObjectCache {
    place: Place,
}

#[derive(Clone, Debug)]
enum Place {
    Directory(Arc<Directory>),
    /// Objects by their keys.
    Memory(Arc<Mutex<HashMap<String, Vec<u8>>>>),
}

#[derive(Debug)]
struct Directory {
    folder: PrivateFolder,
    /// Whether it has been told that objects cannot be kept there.
    has_failed: AtomicBool,
}

impl Default for ObjectCache {
    /// An empty store in memory.
    fn default() -> ObjectCache {
        ObjectCache {
            place: Place::Memory(Arc::default()),
        }
    }
}

impl ObjectCache {
    /// The cache in `directory`, which is made when the first object is written.
    pub fn new(directory: impl Into<PathBuf>) -> ObjectCache {
        ObjectCache {
            place: Place::Directory(Arc::new(Directory {
                folder: PrivateFolder::new(directory),
                has_failed: AtomicBool::new(false),
            })),
        }
    }

    /// The object of the kernel `name`, if it is there.
    pub(crate) fn get(&self, name: &str, spec: &KernelSpec, target: &Target) -> Option<Vec<u8>> {
        let key = key(name, spec, target);
        match &self.place {
            Place::Directory(directory) => {
                let mut bytes = directory.folder.read(&file_name(&key), MOST_BYTES).ok()?;
                let contents = unseal(OBJECT, &bytes)?;
                let object = contents.strip_prefix(key.as_bytes())?.strip_prefix(&[0])?.len();
                Some(bytes.split_off(bytes.len() - object))
            }
            Place::Memory(objects) => objects
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get(&key)
                .cloned(),
        }
    }

    /// Keeps the object of the kernel `name`.
    pub(crate) fn put(&self, name: &str, spec: &KernelSpec, target: &Target, object: &[u8]) {
        let key = key(name, spec, target);
        match &self.place {
            Place::Directory(directory) => write(directory, &key, object),
            Place::Memory(objects) => {
                let mut objects = objects.lock().unwrap_or_else(PoisonError::into_inner);
                objects.insert(key, object.to_vec());
            }
        }
    }
}

fn write(directory: &Directory, key: &str, object: &[u8]) {
    let bytes = seal(OBJECT, &[key.as_bytes(), &[0], object]);
    let written = directory
        .folder
        .write(&file_name(key), |file| file.write_all(&bytes).map(|()| true));
    if let Err(e) = written
        && !directory.has_failed.swap(true, Ordering::Relaxed)
    {
        let folder = directory.folder.path().display();
        warn!(target: "frazil::cache", "the objects of kernels are not kept in {folder}: {e}");
    }
}

fn file_name(key: &str) -> String {
    format!("{:016x}.o", fnv(key.as_bytes()))
}

/// Everything that the object depends on. The debug form of a spec shows all of it, numbers exactly.
fn key(name: &str, spec: &KernelSpec, target: &Target) -> String {
    format!("{FORMAT}\n{name}\n{target:?}\n{spec:?}")
}

/// FNV-1a: the same in every version of everything, and good enough for file names.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, b| {
        (hash ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Epilogue, Gemm};
    use crate::native::host_target;

    #[test]
    fn objects_are_found_by_all_that_they_depend_on() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path().join("new");
        let target = host_target();
        let spec = |m| KernelSpec::Gemm(Gemm::linear(m, 8, 8, Epilogue::none(), target.vector));
        let on_disk = ObjectCache::new(&directory);
        for cache in [&on_disk, &ObjectCache::default()] {
            assert_eq!(cache.get("k", &spec(1), &target), None);
            cache.clone().put("k", &spec(1), &target, b"code");
            assert_eq!(cache.get("k", &spec(1), &target).as_deref(), Some(&b"code"[..]));
            assert_eq!(cache.get("other", &spec(1), &target), None);
            assert_eq!(cache.get("k", &spec(2), &target), None);
        }
        // A file that was cut off or changed is no object.
        let file = std::fs::read_dir(directory).unwrap().next().unwrap().unwrap().path();
        let whole = std::fs::read(&file).unwrap();
        for end in 0..whole.len() {
            std::fs::write(&file, &whole[..end]).unwrap();
            assert_eq!(on_disk.get("k", &spec(1), &target), None);
            let mut changed = whole.clone();
            changed[end] ^= 1;
            std::fs::write(&file, &changed).unwrap();
            assert_eq!(on_disk.get("k", &spec(1), &target), None);
        }
        std::fs::write(&file, &whole).unwrap();
        assert_eq!(on_disk.get("k", &spec(1), &target).as_deref(), Some(&b"code"[..]));
    }
}
