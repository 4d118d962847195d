//! Objects of kernels, on disk or in memory, by what they are compiled from.
//!
//! On disk a file's name is a hash of the key: the kernel's spec, its name, the target, and a hash of this crate's sources. The key itself stands in
//! front of the object, so that two keys of one hash are told apart. Key and object are [sealed](seal), in a [`PrivateFolder`]: what was damaged, or may
//! be somebody else's, is not there. Several processes of a user may share a folder. A file that cannot be read or written is no error: the kernel is
//! compiled then.

use crate::kernel::KernelSpec;
use crate::target::Target;
use frazil_syntax::{PrivateFolder, read_sealed, seal, unseal};
use std::collections::HashMap;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

/// Changes whenever the same spec may give other code, or files have another form. `build.rs` makes the hash.
const FORMAT: &str = concat!(
    "frazil ",
    env!("CARGO_PKG_VERSION"),
    " objects of ",
    env!("FRAZIL_CODEGEN_SOURCES")
);

/// Kind and version of the files.
const OBJECT: &[u8; 8] = b"FRAZILO1";
/// Most bytes of a file: a thousand times what the largest kernels have.
const MOST_BYTES: u64 = 64 << 20;

/// A store of objects. Clones share it.
#[derive(Clone, Debug)]
pub struct ObjectCache {
    place: Place,
}

#[derive(Clone, Debug)]
enum Place {
    Directory(PrivateFolder),
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
    /// The cache in `folder`, which is made when the first object is written.
    pub fn new(folder: PrivateFolder) -> ObjectCache {
        ObjectCache {
            place: Place::Directory(folder),
        }
    }

    /// The object of the kernel `name`, if it is there.
    pub(crate) fn get(&self, name: &str, spec: &KernelSpec, target: &Target) -> Option<Vec<u8>> {
        let key = key(name, spec, target);
        match &self.place {
            Place::Directory(folder) => {
                let mut file = folder.open(&file_name(&key)).ok()?;
                let length = file.metadata().ok()?.len();
                let mut bytes = read_sealed(OBJECT, &mut file, length, MOST_BYTES)?;
                // Nothing is behind it.
                (bytes.len() as u64 == length).then_some(())?;
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
            Place::Directory(folder) => {
                let bytes = seal(OBJECT, &[key.as_bytes(), &[0], object]);
                // Others would not be read again.
                if bytes.len() as u64 <= MOST_BYTES {
                    folder.keep(&file_name(&key), |file| file.write_all(&bytes).map(|()| true));
                }
            }
            Place::Memory(objects) => {
                let mut objects = objects.lock().unwrap_or_else(PoisonError::into_inner);
                objects.insert(key, object.to_vec());
            }
        }
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
#[cfg(feature = "llvm")]
mod tests {
    use super::*;
    use crate::kernel::{Epilogue, Gemm};
    use crate::native::host_target;

    #[test]
    fn objects_are_found_by_all_that_they_depend_on() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path().join("new");
        let target = host_target();
        let spec = |m| KernelSpec::Gemm(Gemm::linear(m, 8, 8, Epilogue::none(), target.machine));
        let on_disk = ObjectCache::new(PrivateFolder::new(&directory));
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
        // One that is longer is not read: only its header is.
        std::fs::write(&file, &whole).unwrap();
        std::fs::File::options()
            .write(true)
            .open(&file)
            .unwrap()
            .set_len(1 << 40)
            .unwrap();
        assert_eq!(on_disk.get("k", &spec(1), &target), None);
        std::fs::write(&file, &whole).unwrap();
        assert_eq!(on_disk.get("k", &spec(1), &target).as_deref(), Some(&b"code"[..]));
    }
}
