//! A cache of kernels' object files in a folder. The key of an object file consists of everything that its contents depend on.
//!
//! A file's name is a hash of the key: the identity of the kernel's code, the target, and a hash of the sources of planner and code generator. The file
//! contains the key before the object, so that keys with equal hashes are distinguished. Key and object are [sealed](frazil_syntax::Secret::seal), in a
//! [`CacheFolder`]: a file that is damaged, or that another user may have written, is treated as absent. Several processes of a user may share a folder. If a
//! file cannot be read or written, the kernel is compiled.

use crate::target_keys::{TargetKey, hashed};
use frazil_planner::kernel::CodeIdentity;
use frazil_syntax::{CacheFolder, read_sealed, record_use};
use std::hash::{Hash, Hasher};
use std::io::Write;
use std::sync::Arc;

/// Kind and version of the files.
const OBJECT: &[u8; 8] = b"FRAZILO2";
/// Maximum number of bytes of a file: a thousand times the size of the largest kernels.
const MOST_BYTES: u64 = 64 << 20;

/// A cache of object files in a folder.
#[derive(Clone, Debug)]
pub struct ObjectCache {
    folder: CacheFolder,
}

impl ObjectCache {
    /// Returns the cache in `folder`, which is created when the first object is written.
    pub fn new(folder: CacheFolder) -> ObjectCache {
        ObjectCache { folder }
    }

    /// Returns the object with this key, if there is one.
    pub(crate) fn get(&self, key: &CodeKey) -> Option<Vec<u8>> {
        let (mut file, secret) = self.folder.open(&key.file_name()).ok()?;
        let length = file.metadata().ok()?.len();
        let mut bytes = read_sealed(OBJECT, &mut file, length, MOST_BYTES)?;
        // The file contains nothing else.
        (bytes.len() as u64 == length).then_some(())?;
        let contents = secret.unseal(OBJECT, &bytes)?;
        let object = key
            .parts()
            .iter()
            .try_fold(contents, |rest, part| rest.strip_prefix(*part))?
            .len();
        record_use(&file);
        Some(bytes.split_off(bytes.len() - object))
    }

    /// Stores the object with this key.
    pub(crate) fn put(&self, key: &CodeKey, object: &[u8]) {
        self.folder.keep(&key.file_name(), |file, secret| {
            let [target, code, end] = key.parts();
            let bytes = secret.seal(OBJECT, &[target, code, end, object]);
            // A larger file would not be read again.
            let is_readable = bytes.len() as u64 <= MOST_BYTES;
            if is_readable {
                file.write_all(&bytes)?;
            }
            Ok(is_readable)
        });
    }
}

/// The cache key of a kernel's object file: the target and the identity of the kernel's code.
#[derive(Clone, Debug)]
pub(crate) struct CodeKey {
    target: Arc<TargetKey>,
    code: CodeIdentity,
    hash: u128,
}

impl PartialEq for CodeKey {
    fn eq(&self, other: &CodeKey) -> bool {
        self.hash == other.hash && self.code == other.code && self.target.text == other.target.text
    }
}

impl Eq for CodeKey {}

impl Hash for CodeKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

impl CodeKey {
    /// Returns the key of `code` for the target with the key `target`.
    pub(crate) fn of(code: CodeIdentity, target: &Arc<TargetKey>) -> CodeKey {
        CodeKey {
            hash: hashed(target.hash, code.text().as_bytes()),
            target: Arc::clone(target),
            code,
        }
    }

    /// Returns the parts of the key as a file contains them before the object.
    fn parts(&self) -> [&[u8]; 3] {
        [self.target.text.as_bytes(), self.code.text().as_bytes(), &[0]]
    }

    /// Returns the symbol of the code's first phase.
    pub(crate) fn symbol(&self) -> String {
        format!("k{:032x}", self.hash)
    }

    fn file_name(&self) -> String {
        format!("{:032x}.o", self.hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::host_target;
    use crate::target_keys::TargetKeys;
    use frazil_planner::kernel::{Epilogue, Gemm, KernelCode};
    use frazil_planner::target::Target;

    #[test]
    fn objects_are_found_by_all_that_they_depend_on() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path().join("new");
        let target = host_target();
        let code = |m| KernelCode::constant(Gemm::linear(m, 8, 8, Epilogue::none(), target.machine).into());
        let keys = TargetKeys::default();
        let key = |m: i64| CodeKey::of(code(m).identity(), &keys.of(&target));
        let on_disk = ObjectCache::new(CacheFolder::new(&directory, u64::MAX));
        assert_eq!(on_disk.get(&key(1)), None);
        on_disk.clone().put(&key(1), b"code");
        assert_eq!(on_disk.get(&key(1)).as_deref(), Some(&b"code"[..]));
        let other = Target::new("x86-64-v2", "");
        assert_eq!(on_disk.get(&CodeKey::of(code(1).identity(), &keys.of(&other))), None);
        assert_eq!(on_disk.get(&key(2)), None);
        // A file that was cut off or changed is no object.
        let file = directory.join(key(1).file_name());
        let whole = std::fs::read(&file).unwrap();
        for end in 0..whole.len() {
            std::fs::write(&file, &whole[..end]).unwrap();
            assert_eq!(on_disk.get(&key(1)), None);
            let mut changed = whole.clone();
            changed[end] ^= 1;
            std::fs::write(&file, &changed).unwrap();
            assert_eq!(on_disk.get(&key(1)), None);
        }
        // Of a longer file, only the header is read.
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
        // A file that was sealed with another secret is no object either.
        let other = directory.with_file_name("other");
        ObjectCache::new(CacheFolder::new(&other, u64::MAX)).put(&key(1), b"code");
        std::fs::copy(other.join(key(1).file_name()), &file).unwrap();
        assert_eq!(on_disk.get(&key(1)), None);
    }
}
