//! Objects of kernels, on disk or in memory, by what they are compiled from.
//!
//! On disk a file's name is a hash of the key: the kernel's spec, its name, the target, and a hash of this crate's sources. The key itself stands in
//! front of the object, so that two keys of one hash are told apart. Files are written under another name and renamed: several
//! processes may share a directory, and a file is there whole or not at all. One that cannot be read or written is no
//! error: the kernel is compiled then.

use crate::kernel::KernelSpec;
use crate::target::Target;
use frazil_syntax::write_atomically;
use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tracing::warn;

/// Changes whenever the same spec may give other code, or files have another form. `build.rs` makes the hash.
const FORMAT: &str = concat!(
    "frazil ",
    env!("CARGO_PKG_VERSION"),
    " objects of ",
    env!("FRAZIL_CODEGEN_SOURCES")
);

/// A store of objects. Clones share it.
#[derive(Clone, Debug)]
pub struct ObjectCache {
    place: Place,
}

#[derive(Clone, Debug)]
enum Place {
    Directory(PathBuf),
    /// Objects by their keys.
    Memory(Arc<Mutex<HashMap<String, Vec<u8>>>>),
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
            place: Place::Directory(directory.into()),
        }
    }

    /// The object of the kernel `name`, if it is there.
    pub(crate) fn get(&self, name: &str, spec: &KernelSpec, target: &Target) -> Option<Vec<u8>> {
        let key = key(name, spec, target);
        match &self.place {
            Place::Directory(directory) => {
                let mut bytes = std::fs::read(path(directory, &key)).ok()?;
                let object = bytes.strip_prefix(key.as_bytes())?.strip_prefix(&[0])?.len();
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

fn write(directory: &Path, key: &str, object: &[u8]) {
    let bytes = [key.as_bytes(), &[0], object].concat();
    let written = std::fs::create_dir_all(directory)
        .map_err(|e| e.to_string())
        .and_then(|()| {
            write_atomically(&path(directory, key), |file| file.write_all(&bytes)).map_err(|e| e.to_string())
        });
    if let Err(e) = written {
        warn!("the object of a kernel was not kept: {e}");
    }
}

fn path(directory: &Path, key: &str) -> PathBuf {
    directory.join(format!("{:016x}.o", fnv(key.as_bytes())))
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
        // A file that was cut off is no object.
        let file = std::fs::read_dir(directory).unwrap().next().unwrap().unwrap();
        std::fs::write(file.path(), b"frazil").unwrap();
        assert_eq!(on_disk.get("k", &spec(1), &target), None);
    }
}
