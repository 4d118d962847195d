//! Objects of kernels, on disk or in memory, by what they are compiled from.
//!
//! On disk a file's name is a hash of the key: the identity of the kernel's code, the target, and a hash of the sources of planner and code generator. The key itself stands in
//! front of the object, so that two keys of one hash are told apart. Key and object are [sealed](seal), in a [`PrivateFolder`]: what was damaged, or may
//! be somebody else's, is not there. Several processes of a user may share a folder. A file that cannot be read or written is no error: the kernel is
//! compiled then.

use frazil_planner::kernel::KernelCode;
use frazil_planner::target::Target;
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

    /// Returns the object of the code `key`, if it is there.
    pub(crate) fn get(&self, key: &CodeKey) -> Option<Vec<u8>> {
        match &self.place {
            Place::Directory(folder) => {
                let mut file = folder.open(&key.file_name()).ok()?;
                let length = file.metadata().ok()?.len();
                let mut bytes = read_sealed(OBJECT, &mut file, length, MOST_BYTES)?;
                // Nothing is behind it.
                (bytes.len() as u64 == length).then_some(())?;
                let contents = unseal(OBJECT, &bytes)?;
                let object = contents.strip_prefix(key.text.as_bytes())?.strip_prefix(&[0])?.len();
                Some(bytes.split_off(bytes.len() - object))
            }
            Place::Memory(objects) => objects
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get(&key.text)
                .cloned(),
        }
    }

    /// Stores the object of the code `key`.
    pub(crate) fn put(&self, key: &CodeKey, object: &[u8]) {
        match &self.place {
            Place::Directory(folder) => {
                let bytes = seal(OBJECT, &[key.text.as_bytes(), &[0], object]);
                // Others would not be read again.
                if bytes.len() as u64 <= MOST_BYTES {
                    folder.keep(&key.file_name(), |file| file.write_all(&bytes).map(|()| true));
                }
            }
            Place::Memory(objects) => {
                let mut objects = objects.lock().unwrap_or_else(PoisonError::into_inner);
                objects.insert(key.text.clone(), object.to_vec());
            }
        }
    }
}

/// Everything that an object depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CodeKey {
    text: String,
    hash: u128,
}

impl CodeKey {
    /// The key of `code` for `target`.
    pub(crate) fn of(code: &KernelCode, target: &Target) -> CodeKey {
        let text = format!("{FORMAT}\n{target:?}\n{}", code.identity().text());
        CodeKey {
            hash: fnv(text.as_bytes()),
            text,
        }
    }

    /// The symbol of the code's first phase.
    pub(crate) fn symbol(&self) -> String {
        format!("k{:032x}", self.hash)
    }

    fn file_name(&self) -> String {
        format!("{:032x}.o", self.hash)
    }
}

/// FNV-1a of 128 bits: the same in every version of everything. It only has to tell apart what a process meets: the key itself is compared too, and two codes
/// of one symbol in a package are an error.
fn fnv(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash, b| {
        (hash ^ u128::from(*b)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::host_target;
    use frazil_planner::kernel::{Epilogue, Gemm};

    #[test]
    fn objects_are_found_by_all_that_they_depend_on() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path().join("new");
        let target = host_target();
        let code = |m| KernelCode::constant(Gemm::linear(m, 8, 8, Epilogue::none(), target.machine).into());
        let key = |m| CodeKey::of(&code(m), &target);
        let on_disk = ObjectCache::new(PrivateFolder::new(&directory));
        for cache in [&on_disk, &ObjectCache::default()] {
            assert_eq!(cache.get(&key(1)), None);
            cache.clone().put(&key(1), b"code");
            assert_eq!(cache.get(&key(1)).as_deref(), Some(&b"code"[..]));
            let other = Target::new("x86-64-v2", "");
            assert_eq!(cache.get(&CodeKey::of(&code(1), &other)), None);
            assert_eq!(cache.get(&key(2)), None);
        }
        // A file that was cut off or changed is no object.
        let file = std::fs::read_dir(directory).unwrap().next().unwrap().unwrap().path();
        let whole = std::fs::read(&file).unwrap();
        for end in 0..whole.len() {
            std::fs::write(&file, &whole[..end]).unwrap();
            assert_eq!(on_disk.get(&key(1)), None);
            let mut changed = whole.clone();
            changed[end] ^= 1;
            std::fs::write(&file, &changed).unwrap();
            assert_eq!(on_disk.get(&key(1)), None);
        }
        // One that is longer is not read: only its header is.
        std::fs::write(&file, &whole).unwrap();
        std::fs::File::options()
            .write(true)
            .open(&file)
            .unwrap()
            .set_len(1 << 40)
            .unwrap();
        assert_eq!(on_disk.get(&key(1)), None);
        std::fs::write(&file, &whole).unwrap();
        assert_eq!(on_disk.get(&key(1)).as_deref(), Some(&b"code"[..]));
    }
}
