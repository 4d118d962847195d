//! Packages in files, which a later process maps, so that large constants are shared between processes and read only where they are used.
//!
//! The code in a file is executed. So a file is read from a [`CacheFolder`] only, and every byte that is used is verified first:
//!
//! - The front is [sealed](Secret::seal) with the secret of the folder. It consists of the length of the header as a little-endian `u64`; the header, in JSON;
//!   the objects one after the other. It is read into memory and verified there, and not read again.
//! - The tail consists of a gap up to the next multiple of the page size; the constants; another gap; the prepacked weights, so that the next process
//!   computes nothing before its first run. The header contains the BLAKE3 hash of the constants, the second gap and the weights.
//!
//! Verifying the tail takes the time of reading and hashing it. A large one is verified once per file: the first process writes a [`FileIdentity`] into a
//! sealed note beside the file, and later processes compare that. Any change of the file changes its identity. So the time of the last use of such a file is that of its note.

use super::{Contents, Package, Weights};
use crate::memory::{Constants, MappedFile, PAGE, Pages, StoredBytes};
use frazil_syntax::{CacheFolder, FileIdentity, NOTE_ENDING, SEAL_BYTES, Secret, read_sealed, record_use};
use serde::{Deserialize, Serialize};
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::sync::Arc;

/// Kind and version of the front.
const PACKAGE: &[u8; 8] = b"FRAZILP8";
/// Kind and version of the note about a verified tail.
const VERIFIED: &[u8; 8] = b"FRAZILV2";
/// Maximum number of bytes of a front, of which code is the largest part.
const MOST_FRONT: u64 = 256 << 20;
/// Bytes of a file that are read and hashed at once. Between 64 KiB and 1 MiB the size makes no difference.
const BLOCK: usize = 256 << 10;
/// Minimum size in bytes of a tail that is verified once per file and not once per process. Verifying this many bytes takes 0.3 to 0.8 ms, comparing
/// identities less than 0.1 ms.
const LARGE: usize = 1 << 20;

/// The part of a front before the objects.
#[derive(Serialize, Deserialize)]
struct Header {
    /// A key that identifies everything that the package was made from.
    key: String,
    /// Data that the writer passes to the reader.
    note: serde_json::Value,
    contents: Contents,
    /// The size of each object in bytes.
    objects: Vec<usize>,
    /// Size of the constants in bytes.
    constants: usize,
    /// The hash of the tail from the first constant on.
    tail: [u8; blake3::OUT_LEN],
}

impl Package {
    /// Writes a [prepared](Package::prepared) package for [`Package::read`], which needs the same `key` and returns `note`. The package is sealed with
    /// `secret`. Returns false, and writes nothing, if the package is not prepared, contains runtime calls, shares code or constants, or has a front of more than
    /// `MOST_FRONT` bytes.
    ///
    /// # Errors
    /// The errors of `out`.
    pub fn write(&self, secret: &Secret, key: &str, note: serde_json::Value, mut out: impl Write) -> io::Result<bool> {
        let Weights::Prepared(prepared) = &self.weights else {
            return Ok(false);
        };
        let is_complete = self.shared.is_empty() && self.linked.is_empty();
        if !self.runtime_calls.is_empty() || !is_complete {
            return Ok(false);
        }
        let tail = |out: &mut dyn Write| -> io::Result<()> {
            out.write_all(self.constants.bytes())?;
            out.write_all(&[0; PAGE][..gap(self.constants.len())])?;
            out.write_all(prepared.bytes())
        };
        let mut hasher = blake3::Hasher::new();
        tail(&mut hasher)?;
        let header = serde_json::to_vec(&Header {
            key: key.to_owned(),
            note,
            contents: self.contents.clone(),
            objects: self.objects.iter().map(Vec::len).collect(),
            constants: self.constants.len(),
            tail: *hasher.finalize().as_bytes(),
        })?;
        let length = (header.len() as u64).to_le_bytes();
        let front: Vec<&[u8]> = [&length[..], &header]
            .into_iter()
            .chain(self.objects.iter().map(Vec::as_slice))
            .collect();
        let front = secret.seal(PACKAGE, &front);
        if front.len() as u64 > MOST_FRONT {
            return Ok(false);
        }
        out.write_all(&front)?;
        out.write_all(&[0; PAGE][..gap(front.len())])?;
        tail(&mut out)?;
        out.flush()?;
        Ok(true)
    }

    /// Returns the package in the file `name` of `folder` and its note. `None` if there is no such file, if others may have written it, if it has
    /// another key or was sealed with another secret, if it is damaged, or if it contradicts itself.
    ///
    /// The file may be deleted or replaced while the package, or code that was loaded from it, is in use. If it is written to, runs fail.
    pub fn read(folder: &CacheFolder, name: &str, key: &str) -> Option<(Package, serde_json::Value)> {
        let (mut file, secret) = folder.open(name).ok()?;
        let found = file.metadata().ok()?;
        let length = found.len();
        let front = read_sealed(PACKAGE, &mut file, length, MOST_FRONT)?;
        let mut rest = Reader {
            bytes: secret.unseal(PACKAGE, &front)?,
            at: 0,
        };
        let header_length = u64::from_le_bytes(rest.take(8)?.try_into().ok()?);
        let header: Header = serde_json::from_slice(rest.take(usize::try_from(header_length).ok()?)?).ok()?;
        if header.key != key {
            return None;
        }
        let objects = header.objects.iter().map(|&size| copy(rest.take(size)?));
        let objects = objects.collect::<Option<Vec<_>>>()?;
        let start = front.len().checked_next_multiple_of(PAGE)?;
        let constants_end = start.checked_add(header.constants)?;
        let prepared_start = constants_end.checked_next_multiple_of(PAGE)?;
        let end = prepared_start.checked_add(header.contents.preparation.1)?;
        if end as u64 != length || !rest.is_empty() {
            return None;
        }
        drop(front);
        let tail = Tail {
            folder,
            name,
            secret: &secret,
            hash: blake3::Hash::from_bytes(header.tail),
        };
        let tail = Arc::new(tail.read(file, &found, start..end)?);
        let part = |at: usize, len| Constants::stored(Arc::clone(&tail), at - start, len);
        let package = Package {
            constants: part(start, header.constants)?,
            weights: Weights::Prepared(part(prepared_start, header.contents.preparation.1)?),
            contents: header.contents,
            objects,
            linked: Vec::new(),
            shared: Vec::new(),
            runtime_calls: Vec::new(),
        };
        package.validate().ok()?;
        Some((package, header.note))
    }
}

/// Returns a copy, if there is memory for it.
fn copy(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(bytes.len()).ok()?;
    copy.extend_from_slice(bytes);
    Some(copy)
}

/// Returns the number of bytes from `end` to the next page.
fn gap(end: usize) -> usize {
    end.next_multiple_of(PAGE) - end
}

/// The data that is needed to verify the tail of a file.
struct Tail<'a> {
    folder: &'a CacheFolder,
    /// The name of the file.
    name: &'a str,
    /// The secret of the folder.
    secret: &'a Secret,
    hash: blake3::Hash,
}

impl Tail<'_> {
    /// Returns the bytes of `file` in `range`: a copy of a small tail, and a mapping of a large one. Returns `None` if their hash differs.
    fn read(&self, mut file: File, found: &Metadata, range: Range<usize>) -> Option<StoredBytes> {
        let start = range.start;
        let is_large = range.len() >= LARGE;
        if is_large && self.verify_once(&mut file, range.clone()) {
            file = match MappedFile::new(file, found) {
                // It may have become shorter since it was verified.
                Ok(map) if map.bytes().len() < range.end => return None,
                Ok(map) => return Some(StoredBytes::Mapped(map, start)),
                Err(file) => file,
            };
        }
        let mut pages = Pages::new(range.len()).ok()?;
        let bytes = pages.bytes_mut().get_mut(..range.len())?;
        file.seek(SeekFrom::Start(start as u64)).ok()?;
        file.read_exact(bytes).ok()?;
        if blake3::hash(bytes) != self.hash {
            return None;
        }
        if !is_large {
            record_use(&file);
        }
        Some(StoredBytes::Read(pages))
    }

    /// Returns whether the bytes of `file` in `range` have the hash, or had it according to the note beside the file and are unchanged.
    fn verify_once(&self, file: &mut File, range: Range<usize>) -> bool {
        let beside = format!("{}{NOTE_ENDING}", self.name);
        // Determined before the bytes are read: a change meanwhile gives the file another identity.
        let identity =
            FileIdentity::of(file).map(|identity| self.secret.seal(VERIFIED, &[format!("{identity:?}").as_bytes()]));
        if identity
            .as_ref()
            .is_some_and(|identity| self.is_noted(&beside, identity))
        {
            return true;
        }
        if self.verify(file, range).is_none() {
            return false;
        }
        if let Some(identity) = identity {
            // The next process verifies the file again if the note cannot be written.
            let _ = self
                .folder
                .write(&beside, |out, _| out.write_all(&identity).map(|()| true));
        }
        true
    }

    /// Returns whether the note has the content `identity`, and records its use.
    fn is_noted(&self, note: &str, identity: &[u8]) -> bool {
        let noted = || {
            let (mut file, _) = self.folder.open(note).ok()?;
            let length = file.metadata().ok()?.len();
            let found = read_sealed(VERIFIED, &mut file, length, identity.len() as u64)?;
            let is_same = self.secret.unseal(VERIFIED, &found)? == identity.get(SEAL_BYTES..)?;
            is_same.then_some(file)
        };
        noted().inspect(record_use).is_some()
    }

    fn verify(&self, file: &mut File, range: Range<usize>) -> Option<()> {
        file.seek(SeekFrom::Start(range.start as u64)).ok()?;
        let mut buffer = vec![0; BLOCK.min(range.len())];
        let mut hasher = blake3::Hasher::new();
        let mut left = range.len();
        // Read, not mapped: the pages need not become this process's, and a file that is cut off meanwhile is an error and not a signal.
        while left > 0 {
            let block = buffer.get_mut(..left.min(BLOCK))?;
            file.read_exact(block).ok()?;
            hasher.update(block);
            left -= block.len();
        }
        (hasher.finalize() == self.hash).then_some(())
    }
}

/// Bytes, and the position up to which they have been read.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(n)?;
        let bytes = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }

    fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::package::PackedKernel;
    use crate::program::{Buffer, Call, Order, Port};
    use frazil_ir::DType;
    use smallvec::smallvec;
    use std::path::Path;

    const NAME: &str = "0123456789abcdef.method";

    /// A package that has these constants and nothing else.
    fn package(constants: &[u8]) -> Package {
        let mut stored = Constants::default();
        stored.push(constants);
        Package {
            contents: Contents::default(),
            objects: Vec::new(),
            linked: Vec::new(),
            constants: stored,
            weights: Weights::Prepared(Constants::default()),
            shared: Vec::new(),
            runtime_calls: Vec::new(),
        }
    }

    fn put(folder: &CacheFolder, package: &Package) {
        let written = folder.write(NAME, |out, secret| {
            package.write(secret, "key", serde_json::Value::Null, out)
        });
        assert!(written.unwrap());
    }

    fn constants(folder: &CacheFolder) -> Option<Vec<u8>> {
        let (package, _) = Package::read(folder, NAME, "key")?;
        Some(package.constants.bytes().to_vec())
    }

    /// Overwrites the bytes of a file at `at`, without replacing the file.
    fn patch(path: &Path, at: usize, bytes: &[u8]) {
        let mut file = File::options().write(true).open(path).unwrap();
        file.seek(SeekFrom::Start(at as u64)).unwrap();
        file.write_all(bytes).unwrap();
    }

    #[test]
    fn sizes_around_blocks_come_back() {
        let directory = tempfile::tempdir().unwrap();
        let folder = CacheFolder::new(directory.path(), u64::MAX);
        for size in [0, 1, PAGE, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK] {
            let data: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
            put(&folder, &package(&data));
            assert_eq!(constants(&folder), Some(data), "{size}");
        }
        assert!(Package::read(&folder, NAME, "another key").is_none());
    }

    /// The seal does not guarantee that sizes are consistent.
    #[test]
    fn files_that_contradict_themselves_are_not_there() {
        let directory = tempfile::tempdir().unwrap();
        let folder = CacheFolder::new(directory.path(), u64::MAX);
        let port = |shape: &[i64]| Port {
            name: "x".to_owned(),
            dtype: DType::Double,
            shape: shape.into(),
        };
        let call = |kernel, buffer| Call {
            kernel,
            buffers: smallvec![buffer],
            order: Order::default(),
        };
        let input = |index, offset| Buffer::Input { index, offset };
        type Change<'a> = &'a dyn Fn(&mut Contents);
        let changes: [(bool, Change<'_>); 15] = [
            (true, &|_| ()),
            (true, &|c| c.outputs.push(port(&[0, i64::MAX, i64::MAX]))),
            (true, &|c| c.outputs.push(port(&[i64::MAX, i64::MAX, 0]))),
            (false, &|c| c.inputs = vec![port(&[i64::MAX, i64::MAX])]),
            (false, &|c| c.outputs.push(port(&[1 << 60]))),
            (false, &|c| c.outputs.push(port(&[-1, -1]))),
            (false, &|c| c.workspace_bytes = usize::MAX),
            (false, &|c| c.preparation.1 = usize::MAX),
            (false, &|c| c.checks.push("no output has it".to_owned())),
            (false, &|c| c.infos.clear()),
            (false, &|c| c.kernels[0].phases = smallvec![1, -1]),
            (false, &|c| c.kernels[0].phases = smallvec![1; 1 << 23]),
            (false, &|c| c.kernels[0].runtime_call = Some(0)),
            (false, &|c| c.calls = vec![call(1, input(0, 0))]),
            (false, &|c| c.calls = vec![call(0, input(0, 17))]),
        ];
        for (number, (is_valid, change)) in changes.into_iter().enumerate() {
            let mut package = package(&[]);
            let contents = &mut package.contents;
            contents.inputs = vec![port(&[2])];
            contents.kernels = vec![PackedKernel {
                symbol: "k".to_owned(),
                buffers: 1,
                numbers: smallvec![],
                phases: smallvec![1],
                runtime_call: None,
            }];
            contents.calls = vec![call(0, input(0, 16))];
            contents.infos = vec![Default::default()];
            change(contents);
            put(&folder, &package);
            let read = Package::read(&folder, NAME, "key");
            assert_eq!(read.is_some(), is_valid, "change {number}");
        }
    }

    /// A large file is verified once, and again after every change.
    #[test]
    #[cfg(unix)]
    fn changes_of_verified_files_are_found() {
        let directory = tempfile::tempdir().unwrap();
        let folder = CacheFolder::new(directory.path(), u64::MAX);
        let [path, beside] = [NAME, &format!("{NAME}{NOTE_ENDING}")].map(|name| directory.path().join(name));
        let wait = || std::thread::sleep(std::time::Duration::from_millis(100));
        let data: Vec<u8> = (0..LARGE + BLOCK).map(|i| (i % 251) as u8).collect();
        put(&folder, &package(&data));
        // A second change of a file that has just been written would not change its identity.
        assert!(constants(&folder).as_ref() == Some(&data) && !beside.exists());
        wait();
        assert!(constants(&folder).as_ref() == Some(&data) && beside.exists());
        assert!(constants(&folder).as_ref() == Some(&data));
        let whole = std::fs::read(&path).unwrap();
        for at in [PAGE, whole.len() / 2, whole.len() - 1] {
            patch(&path, at, &[!whole[at]]);
            assert!(constants(&folder).is_none());
            wait();
            assert!(constants(&folder).is_none());
            patch(&path, at, &whole[at..=at]);
            assert!(constants(&folder).as_ref() == Some(&data));
        }
        // A note does not count for another file, nor if it is damaged or sealed with another secret.
        wait();
        assert!(constants(&folder).is_some());
        let note = std::fs::read(&beside).unwrap();
        std::fs::remove_file(&path).unwrap();
        put(&folder, &package(&data));
        patch(&path, PAGE, &[!whole[PAGE]]);
        wait();
        let identity = FileIdentity::of(&File::open(&path).unwrap()).unwrap();
        let forged = Secret::random()
            .unwrap()
            .seal(VERIFIED, &[format!("{identity:?}").as_bytes()]);
        for text in [&note[..], &note[..note.len() - 1], b"", &forged] {
            std::fs::write(&beside, text).unwrap();
            assert!(constants(&folder).is_none());
        }
    }

    /// A front with another secret is refused, even if all hashes are right.
    #[test]
    fn forged_files_are_absent() {
        let directory = tempfile::tempdir().unwrap();
        let folder = CacheFolder::new(directory.path(), u64::MAX);
        put(&folder, &package(b"weights"));
        assert!(constants(&folder).is_some());
        let other = Secret::random().unwrap();
        let written = folder.write(NAME, |out, _| {
            package(b"weights").write(&other, "key", serde_json::Value::Null, out)
        });
        assert!(written.unwrap());
        assert!(constants(&folder).is_none());
    }

    /// The time of the last use is that of the note, since a change of the file itself would mean that its weights are verified again.
    #[test]
    #[cfg(unix)]
    fn the_use_of_a_large_file_is_recorded_in_its_note() {
        use std::time::{Duration, SystemTime};
        let directory = tempfile::tempdir().unwrap();
        let folder = CacheFolder::new(directory.path(), u64::MAX);
        let [path, beside] = [NAME, &format!("{NAME}{NOTE_ENDING}")].map(|name| directory.path().join(name));
        let hours_ago = |path: &Path| {
            let modified = std::fs::metadata(path).unwrap().modified().unwrap();
            modified.elapsed().unwrap().as_secs() / 3600
        };
        for (data, expected) in [(vec![1; LARGE], [5, 0]), (vec![1; BLOCK], [0, 5])] {
            put(&folder, &package(&data));
            for _ in 0..2 {
                std::thread::sleep(Duration::from_millis(100));
                assert!(constants(&folder).as_ref() == Some(&data));
            }
            for path in [&path, &beside] {
                let file = File::open(path).unwrap();
                file.set_modified(SystemTime::now() - Duration::from_hours(5)).unwrap();
            }
            std::thread::sleep(Duration::from_millis(100));
            // The first read of the large file finds another identity, and replaces the note.
            let _ = constants(&folder);
            let file = File::open(&beside).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_hours(5)).unwrap();
            assert!(constants(&folder).as_ref() == Some(&data));
            assert_eq!([&path, &beside].map(|path| hours_ago(path)), expected);
        }
    }
}
