//! Packages in files, which a later process maps, so that large constants are shared between processes and read only where they are used.
//!
//! The code in a file will run. So a file is read from a [`PrivateFolder`] only, which nobody but the user or root can have written to, and every
//! byte that is used is verified first:
//!
//! - The front, as [`seal`] makes it: the length of the header as a little-endian `u64`; the header, in JSON; the objects one after the other. It is read
//!   into memory, verified there, and never looked at in the file again.
//! - The tail: a gap up to the next multiple of the size of a page; the constants; a gap likewise; the weights that kernels read in another form than
//!   plans store, in that form: the next process has nothing to compute before its first run. The header holds a checksum for each [`BLOCK`] of it.
//!
//! Verifying the tail takes the time of reading it. A large one is verified once a file: whoever has done so writes a [`FileIdentity`] beside it, which is
//! another one after any change, and the next process compares that instead.

use super::{Contents, Package, Weights};
use crate::memory::{Constants, MappedFile, PAGE, Pages, StoredBytes};
use frazil_syntax::{FileIdentity, PrivateFolder, read_sealed, seal, unseal};
use serde::{Deserialize, Serialize};
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::sync::Arc;

/// Kind and version of the front.
const PACKAGE: &[u8; 8] = b"FRAZILP6";
/// Kind and version of the file that says that a tail has been verified.
const VERIFIED: &[u8; 8] = b"FRAZILV1";
/// Most bytes of a front, of which code is the largest part.
const MOST_FRONT: u64 = 256 << 20;
/// Bytes that have a checksum of their own.
const BLOCK: usize = 256 << 10;
/// Bytes of a tail from which on it is verified once a file and not once a process: reading and verifying this many takes 0.1 to 0.5 ms (measured with 64 KiB
/// to 1 MiB a block, which made no difference), comparing identities less than 0.1 ms.
const LARGE: usize = 1 << 20;

/// What a file says before its objects.
#[derive(Serialize, Deserialize)]
struct Header {
    /// What the package was made of.
    key: String,
    /// What the maker wants back with it.
    note: serde_json::Value,
    contents: Contents,
    /// The size of each object.
    objects: Vec<usize>,
    /// Bytes of constants.
    constants: usize,
    /// The checksum of each block from the first constant on.
    blocks: Vec<u32>,
}

impl Package {
    /// Writes the package, which has been [`Package::prepared`], with the `key` that [`Package::read`] has to be given, and a `note` that it
    /// gives back. False, and nothing is written, when it is not prepared, or calls the host program, which no file can hold, or has too much code to be read again.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, key: &str, note: serde_json::Value, mut out: impl Write) -> io::Result<bool> {
        let Weights::Prepared(prepared) = &self.weights else {
            return Ok(false);
        };
        if !self.hosts.is_empty() {
            return Ok(false);
        }
        let tail = |out: &mut dyn Write| -> io::Result<()> {
            out.write_all(self.constants.bytes())?;
            out.write_all(&[0; PAGE][..gap(self.constants.len())])?;
            out.write_all(prepared.bytes())
        };
        let mut blocks = Blocks::default();
        tail(&mut blocks)?;
        let header = serde_json::to_vec(&Header {
            key: key.to_owned(),
            note,
            contents: self.contents.clone(),
            objects: self.objects.iter().map(Vec::len).collect(),
            constants: self.constants.len(),
            blocks: blocks.finish(),
        })?;
        let length = (header.len() as u64).to_le_bytes();
        let front: Vec<&[u8]> = [&length[..], &header]
            .into_iter()
            .chain(self.objects.iter().map(Vec::as_slice))
            .collect();
        let front = seal(PACKAGE, &front);
        if front.len() as u64 > MOST_FRONT {
            return Ok(false);
        }
        out.write_all(&front)?;
        out.write_all(&[0; PAGE][..gap(front.len())])?;
        tail(&mut out)?;
        out.flush()?;
        Ok(true)
    }

    /// The package in the file `name` of `folder` and its note; `None` when there is no such file, it may be somebody else's, it is not one with this key,
    /// not as it was written, or contradicts itself.
    ///
    /// The file may be deleted or replaced by another while the package, or what was loaded from it, is in use. If it is written to, runs fail.
    pub fn read(folder: &PrivateFolder, name: &str, key: &str) -> Option<(Package, serde_json::Value)> {
        let mut file = folder.open(name).ok()?;
        let found = file.metadata().ok()?;
        let length = found.len();
        let front = read_sealed(PACKAGE, &mut file, length, MOST_FRONT)?;
        let mut rest = Reader {
            bytes: unseal(PACKAGE, &front)?,
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
        let tail = Arc::new(tail(folder, name, (file, found), start..end, &header.blocks)?);
        let part = |at: usize, len| Constants::stored(Arc::clone(&tail), at - start, len);
        let package = Package {
            constants: part(start, header.constants)?,
            weights: Weights::Prepared(part(prepared_start, header.contents.preparation.1)?),
            contents: header.contents,
            objects,
            hosts: Vec::new(),
        };
        package.validate().ok()?;
        Some((package, header.note))
    }
}

/// A copy, if there is memory for it.
fn copy(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(bytes.len()).ok()?;
    copy.extend_from_slice(bytes);
    Some(copy)
}

/// Bytes from `end` to the next page.
fn gap(end: usize) -> usize {
    end.next_multiple_of(PAGE) - end
}

/// The bytes of `file` in `range`, which have these checksums: a copy of a small tail, and a map of a large one. `None` where they have others.
fn tail(
    folder: &PrivateFolder,
    name: &str,
    (mut file, found): (File, Metadata),
    range: Range<usize>,
    blocks: &[u32],
) -> Option<StoredBytes> {
    let start = range.start;
    if range.len() >= LARGE && verify_once(folder, name, &mut file, range.clone(), blocks) {
        file = match MappedFile::new(file, &found) {
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
    let chunks = || bytes.chunks(BLOCK);
    let is_whole = chunks().len() == blocks.len() && chunks().zip(blocks).all(|(b, &sum)| crc32fast::hash(b) == sum);
    is_whole.then_some(StoredBytes::Read(pages))
}

/// Whether the bytes of `file` in `range` have these checksums, or had them when somebody looked and are the same.
fn verify_once(folder: &PrivateFolder, name: &str, file: &mut File, range: Range<usize>, blocks: &[u32]) -> bool {
    let beside = format!("{name}.verified");
    // From before the bytes are read: a change while they are makes the file another one.
    let identity = FileIdentity::of(file).map(|identity| seal(VERIFIED, &[format!("{identity:?}").as_bytes()]));
    let known = identity.as_ref().and_then(|found| {
        let known = folder.read(&beside, found.len() as u64).ok()?;
        Some(known == *found)
    });
    if known == Some(true) {
        return true;
    }
    if verify(file, range, blocks).is_none() {
        return false;
    }
    if let Some(identity) = identity {
        // The next one verifies it again where this cannot be written.
        let _ = folder.write(&beside, |out| out.write_all(&identity).map(|()| true));
    }
    true
}

fn verify(file: &mut File, range: Range<usize>, blocks: &[u32]) -> Option<()> {
    if range.len().div_ceil(BLOCK) != blocks.len() {
        return None;
    }
    file.seek(SeekFrom::Start(range.start as u64)).ok()?;
    let mut buffer = vec![0; BLOCK.min(range.len())];
    let mut left = range.len();
    // Read, not mapped: the pages need not become this process's, and a file that is cut off meanwhile is an error and not a signal.
    for &expected in blocks {
        let block = buffer.get_mut(..left.min(BLOCK))?;
        file.read_exact(block).ok()?;
        (crc32fast::hash(block) == expected).then_some(())?;
        left -= block.len();
    }
    Some(())
}

/// The checksums of what is written to it.
#[derive(Default)]
struct Blocks {
    done: Vec<u32>,
    present: crc32fast::Hasher,
    filled: usize,
}

impl Blocks {
    fn finish(mut self) -> Vec<u32> {
        if self.filled > 0 {
            self.done.push(self.present.finalize());
        }
        self.done
    }
}

impl Write for Blocks {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (now, _) = bytes.split_at(bytes.len().min(BLOCK - self.filled));
        self.present.update(now);
        self.filled += now.len();
        if self.filled == BLOCK {
            self.done.push(std::mem::take(&mut self.present).finalize());
            self.filled = 0;
        }
        Ok(now.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Bytes, and how far they have been read.
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

    /// A package that has these constants and nothing else.
    fn package(constants: &[u8]) -> Package {
        let mut stored = Constants::default();
        stored.push(constants);
        Package {
            contents: Contents::default(),
            objects: Vec::new(),
            constants: stored,
            weights: Weights::Prepared(Constants::default()),
            hosts: Vec::new(),
        }
    }

    fn put(folder: &PrivateFolder, package: &Package) {
        let written = folder.write("p", |out| package.write("key", serde_json::Value::Null, out));
        assert!(written.unwrap());
    }

    fn constants(folder: &PrivateFolder) -> Option<Vec<u8>> {
        let (package, _) = Package::read(folder, "p", "key")?;
        Some(package.constants.bytes().to_vec())
    }

    /// Writes `bytes` at `at`, to the very file.
    fn patch(path: &Path, at: usize, bytes: &[u8]) {
        let mut file = File::options().write(true).open(path).unwrap();
        file.seek(SeekFrom::Start(at as u64)).unwrap();
        file.write_all(bytes).unwrap();
    }

    #[test]
    fn sizes_around_blocks_come_back() {
        let directory = tempfile::tempdir().unwrap();
        let folder = PrivateFolder::new(directory.path());
        for size in [0, 1, PAGE, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK] {
            let data: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
            put(&folder, &package(&data));
            assert_eq!(constants(&folder), Some(data), "{size}");
        }
        assert!(Package::read(&folder, "p", "another key").is_none());
    }

    /// Checksums do not tell that sizes make sense.
    #[test]
    fn files_that_contradict_themselves_are_not_there() {
        let directory = tempfile::tempdir().unwrap();
        let folder = PrivateFolder::new(directory.path());
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
            (false, &|c| c.kernels[0].host = Some(0)),
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
                host: None,
            }];
            contents.calls = vec![call(0, input(0, 16))];
            contents.infos = vec![Default::default()];
            change(contents);
            put(&folder, &package);
            let read = Package::read(&folder, "p", "key");
            assert_eq!(read.is_some(), is_valid, "change {number}");
        }
    }

    /// A large file is verified once, and again after every change.
    #[test]
    #[cfg(unix)]
    fn changes_of_verified_files_are_found() {
        let directory = tempfile::tempdir().unwrap();
        let folder = PrivateFolder::new(directory.path());
        let [path, beside] = ["p", "p.verified"].map(|name| directory.path().join(name));
        let wait = || std::thread::sleep(std::time::Duration::from_millis(100));
        let data: Vec<u8> = (0..LARGE + BLOCK).map(|i| (i % 251) as u8).collect();
        put(&folder, &package(&data));
        // A file that has just been written could change once more without looking another one.
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
        // What is said about one file is not believed of another, nor anything that is not as it was written.
        wait();
        assert!(constants(&folder).is_some());
        let said = std::fs::read(&beside).unwrap();
        std::fs::remove_file(&path).unwrap();
        put(&folder, &package(&data));
        patch(&path, PAGE, &[!whole[PAGE]]);
        wait();
        for text in [&said[..], &said[..said.len() - 1], b""] {
            std::fs::write(&beside, text).unwrap();
            assert!(constants(&folder).is_none());
        }
    }
}
