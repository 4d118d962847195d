//! Code libraries: objects that were compiled in advance, found by the key of their code.
//!
//! A library consists of
//! - a header of 76 bytes: kind and version (8 bytes), the BLAKE3 hash of the compiler's version (32), the BLAKE3 hash of what follows up to the end of the
//!   index (32), and the number of objects (4);
//! - an index with one entry of 60 bytes for each object, in ascending order of keys: the key (32), the first 16 bytes of the object's BLAKE3 hash, the offset
//!   of the compressed object behind the index (4), its size (4), and its size when uncompressed (4);
//! - the objects, each compressed by itself (deflate), so that a lookup decompresses one object.
//!
//! Integers are little-endian. The hashes detect damage. They do not authenticate a library, so a program must trust a library like its own code.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Kind and version of the format.
const KIND: &[u8; 8] = b"FRAZILC1";
const COMPILER: Range<usize> = 8..40;
const INDEX_HASH: Range<usize> = 40..72;
const COUNT: Range<usize> = 72..76;
const HEADER_BYTES: usize = 76;

/// Bytes of a key.
const KEY_BYTES: usize = 32;
const OBJECT_HASH: Range<usize> = KEY_BYTES..48;
const OFFSET: Range<usize> = 48..52;
const STORED: Range<usize> = 52..56;
const LENGTH: Range<usize> = 56..60;
const ENTRY_BYTES: usize = 60;

/// Maximum size of an uncompressed object in bytes: a thousand times that of the largest kernels.
const MOST_BYTES: usize = 64 << 20;

/// Error while opening a code library, reading an object, or writing a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LibraryError {
    /// The bytes are not a code library.
    #[error("the file is not a code library")]
    OtherKind,
    /// Another version of the compiler made the library.
    #[error("the code library was made by another version of the compiler: make it again")]
    OtherCompiler,
    /// The library was changed or cut off.
    #[error("the code library is damaged")]
    Damaged,
    /// The objects are larger than the format allows.
    #[error("the code library would be larger than 4 GiB, or an object than 64 MiB")]
    TooLarge,
}

/// The key of code in a library: a hash of everything that the code depends on, apart from the compiler.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LibraryKey([u8; KEY_BYTES]);

impl LibraryKey {
    /// Returns the key of the code with the identity `identity` for the class of processors `unit`.
    pub fn of(unit: &str, identity: &str) -> LibraryKey {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&(unit.len() as u64).to_le_bytes());
        hasher.update(unit.as_bytes());
        hasher.update(identity.as_bytes());
        LibraryKey(*hasher.finalize().as_bytes())
    }

    /// Returns the name that the function of the code's first phase has in the object file.
    pub fn symbol(&self) -> String {
        let half = self.0.first_chunk().map_or(0, |half| u128::from_be_bytes(*half));
        format!("k{half:032x}")
    }
}

impl fmt::Debug for LibraryKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.symbol())
    }
}

/// A code library in memory. Clones share it.
#[derive(Clone)]
pub struct Library {
    bytes: Arc<Cow<'static, [u8]>>,
    count: usize,
}

/// An entry of the index.
struct Entry<'a> {
    /// The first bytes of the hash of the uncompressed object.
    hash: &'a [u8],
    /// The compressed object.
    stored: &'a [u8],
    /// Size of the uncompressed object in bytes.
    length: usize,
}

impl Library {
    /// Opens a library that version `compiler` of the compiler has made. The objects are verified when they are read.
    ///
    /// # Errors
    /// If the bytes are not a library, if another version of the compiler has made the library, or if the header or the index is damaged.
    pub fn open(bytes: impl Into<Cow<'static, [u8]>>, compiler: &str) -> Result<Library, LibraryError> {
        let bytes = bytes.into();
        if bytes.get(..KIND.len()) != Some(KIND) {
            return Err(LibraryError::OtherKind);
        }
        if bytes.get(COMPILER).ok_or(LibraryError::Damaged)? != blake3::hash(compiler.as_bytes()).as_bytes() {
            return Err(LibraryError::OtherCompiler);
        }
        let count = number(&bytes, COUNT).ok_or(LibraryError::Damaged)?;
        let index = index_range(count).ok_or(LibraryError::Damaged)?;
        let hashed = bytes.get(COUNT.start..index.end).ok_or(LibraryError::Damaged)?;
        if bytes.get(INDEX_HASH) != Some(blake3::hash(hashed).as_bytes()) {
            return Err(LibraryError::Damaged);
        }
        let library = Library {
            bytes: Arc::new(bytes),
            count,
        };
        let keys = (0..count).map(|i| library.key(i));
        // The search needs the order, which the writer guarantees.
        match keys.is_sorted_by(|a, b| a < b) {
            true => Ok(library),
            false => Err(LibraryError::Damaged),
        }
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns true if the library has no objects.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns true if the library contains an object with the key `key`.
    pub fn contains(&self, key: &LibraryKey) -> bool {
        self.position(key).is_some()
    }

    /// Returns the object with the key `key`; `None` if there is none.
    ///
    /// # Errors
    /// If the object is damaged.
    pub fn get(&self, key: &LibraryKey) -> Result<Option<Vec<u8>>, LibraryError> {
        let Some(position) = self.position(key) else {
            return Ok(None);
        };
        let entry = self.entry(position).ok_or(LibraryError::Damaged)?;
        let object = inflate(entry.stored, entry.length).ok_or(LibraryError::Damaged)?;
        match blake3::hash(&object).as_bytes().get(..entry.hash.len()) == Some(entry.hash) {
            true => Ok(Some(object)),
            false => Err(LibraryError::Damaged),
        }
    }

    fn position(&self, key: &LibraryKey) -> Option<usize> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.key(middle)?.cmp(&key.0[..]) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    fn index_entry(&self, position: usize) -> Option<&[u8]> {
        let index = self.bytes.get(index_range(self.count)?)?;
        index.get(position.checked_mul(ENTRY_BYTES)?..)?.get(..ENTRY_BYTES)
    }

    fn key(&self, position: usize) -> Option<&[u8]> {
        self.index_entry(position)?.get(..KEY_BYTES)
    }

    fn entry(&self, position: usize) -> Option<Entry<'_>> {
        let entry = self.index_entry(position)?;
        let objects = self.bytes.get(index_range(self.count)?.end..)?;
        let stored = objects.get(number(entry, OFFSET)?..)?.get(..number(entry, STORED)?)?;
        Some(Entry {
            hash: entry.get(OBJECT_HASH)?,
            stored,
            length: number(entry, LENGTH).filter(|&length| length <= MOST_BYTES)?,
        })
    }
}

/// Prints the size of the library in place of its bytes.
impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Library({} objects, {} bytes)", self.count, self.bytes.len())
    }
}

/// Returns the bytes of a library with `objects`, made by version `compiler` of the compiler. Equal objects give equal bytes. If several objects have the same
/// key, the last one is stored.
///
/// # Errors
/// If the objects are too large.
pub fn write_library(
    compiler: &str,
    objects: impl IntoIterator<Item = (LibraryKey, Vec<u8>)>,
) -> Result<Vec<u8>, LibraryError> {
    let objects: std::collections::BTreeMap<LibraryKey, Vec<u8>> = objects.into_iter().collect();
    let size = |n: usize| u32::try_from(n).map_err(|_| LibraryError::TooLarge);
    let mut hashed = size(objects.len())?.to_le_bytes().to_vec();
    let mut stored = Vec::new();
    for (key, object) in &objects {
        if object.len() > MOST_BYTES {
            return Err(LibraryError::TooLarge);
        }
        let offset = stored.len();
        deflate(object, &mut stored).ok_or(LibraryError::TooLarge)?;
        hashed.extend_from_slice(&key.0);
        hashed.extend_from_slice(&blake3::hash(object).as_bytes()[..OBJECT_HASH.len()]);
        for number in [offset, stored.len() - offset, object.len()] {
            hashed.extend_from_slice(&size(number)?.to_le_bytes());
        }
    }
    let (compiler, index) = (blake3::hash(compiler.as_bytes()), blake3::hash(&hashed));
    Ok([KIND, &compiler.as_bytes()[..], index.as_bytes(), &hashed, &stored].concat())
}

/// Returns the range of bytes that an index of `count` entries has in the library.
fn index_range(count: usize) -> Option<Range<usize>> {
    Some(HEADER_BYTES..count.checked_mul(ENTRY_BYTES)?.checked_add(HEADER_BYTES)?)
}

/// Returns the 32-bit integer at `range`.
fn number(bytes: &[u8], range: Range<usize>) -> Option<usize> {
    let bytes: [u8; 4] = bytes.get(range)?.try_into().ok()?;
    usize::try_from(u32::from_le_bytes(bytes)).ok()
}

/// Appends `bytes` to `out` in compressed form. Returns `None` if the memory is not sufficient.
fn deflate(bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let mut compress = Compress::new(Compression::best(), false);
    loop {
        let done = usize::try_from(compress.total_in()).ok()?;
        out.try_reserve(bytes.len() / 2 + 64).ok()?;
        match compress
            .compress_vec(bytes.get(done..)?, out, FlushCompress::Finish)
            .ok()?
        {
            Status::StreamEnd => return Some(()),
            Status::Ok | Status::BufError => {}
        }
    }
}

/// Decompresses `stored`. Returns `None` if `stored` is damaged, or if the result does not have `length` bytes.
fn inflate(stored: &[u8], length: usize) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    // One more byte, so that longer contents are detected.
    out.try_reserve_exact(length.checked_add(1)?).ok()?;
    let mut decompress = Decompress::new(false);
    let status = decompress
        .decompress_vec(stored, &mut out, FlushDecompress::Finish)
        .ok()?;
    let is_whole = status == Status::StreamEnd && out.len() == length && decompress.total_in() == stored.len() as u64;
    is_whole.then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPILED_BY: &str = "compiler 1";

    fn key(n: usize) -> LibraryKey {
        LibraryKey::of("unit", &format!("kernel {n}"))
    }

    fn object(n: usize) -> Vec<u8> {
        (0..n * 100).map(|i| (i % (n + 7)) as u8).collect()
    }

    fn written(count: usize) -> Vec<u8> {
        write_library(COMPILED_BY, (0..count).map(|n| (key(n), object(n)))).unwrap()
    }

    #[test]
    fn objects_are_found_by_their_keys() {
        for count in [0, 1, 2, 9] {
            let library = Library::open(written(count), COMPILED_BY).unwrap();
            assert_eq!((library.len(), library.is_empty()), (count, count == 0));
            for n in 0..count + 2 {
                let expected = (n < count).then(|| object(n));
                assert_eq!(library.contains(&key(n)), expected.is_some());
                assert_eq!(library.get(&key(n)), Ok(expected));
            }
        }
        // The lengths of the two parts are parts of the key.
        assert_ne!(LibraryKey::of("a", "b c"), LibraryKey::of("a b", " c"));
        assert_ne!(LibraryKey::of("ab", "c"), LibraryKey::of("a", "bc"));
    }

    #[test]
    fn libraries_of_others_are_refused() {
        let bytes = written(3);
        assert_eq!(
            Library::open(bytes.clone(), "compiler 2").unwrap_err(),
            LibraryError::OtherCompiler
        );
        for other in [&b""[..], b"FRAZIL", b"\x7fELF and more"] {
            assert_eq!(
                Library::open(other.to_vec(), COMPILED_BY).unwrap_err(),
                LibraryError::OtherKind
            );
        }
    }

    /// Whatever was changed, a library gives the objects that were written, or an error.
    #[test]
    fn damage_is_detected() {
        let whole = written(4);
        let sound = |bytes: Vec<u8>| {
            let Ok(library) = Library::open(bytes, COMPILED_BY) else {
                return false;
            };
            (0..4).all(|n| match library.get(&key(n)) {
                Ok(found) => {
                    assert_eq!(found, Some(object(n)));
                    true
                }
                Err(error) => {
                    assert_eq!(error, LibraryError::Damaged);
                    false
                }
            })
        };
        assert!(sound(whole.clone()));
        let objects = index_range(4).unwrap().end;
        let mut undetected = 0;
        for bit in 0..8 * whole.len() {
            let mut changed = whole.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let is_sound = sound(changed);
            assert!(!is_sound || bit / 8 >= objects, "bit {bit}");
            undetected += usize::from(is_sound);
        }
        // The last bits of a compressed object have no meaning.
        assert!(undetected < 4 * 8, "{undetected} changes");
        for end in 0..whole.len() {
            assert!(!sound(whole[..end].to_vec()), "the first {end} bytes");
        }
    }

    /// Sizes and counts are checked also where the hash of the index is right.
    #[test]
    fn contradictions_are_detected() {
        let whole = written(2);
        let entry = HEADER_BYTES..HEADER_BYTES + ENTRY_BYTES;
        let changed = |at: usize, value: u32| {
            let mut bytes = whole.clone();
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
            let count = number(&bytes, COUNT).unwrap();
            let end = index_range(count).unwrap().end.min(bytes.len());
            let hash = *blake3::hash(&bytes[COUNT.start..end]).as_bytes();
            bytes[INDEX_HASH].copy_from_slice(&hash);
            Library::open(bytes, COMPILED_BY)
        };
        for count in [3, 1000, u32::MAX] {
            assert_eq!(changed(COUNT.start, count).unwrap_err(), LibraryError::Damaged);
        }
        for field in [OFFSET, STORED, LENGTH] {
            for value in [1, 7, 1 << 20, u32::MAX] {
                let library = changed(entry.start + field.start, value).unwrap();
                let damaged = (0..2).filter(|&n| library.get(&key(n)) == Err(LibraryError::Damaged));
                assert!(damaged.count() <= 1, "{field:?} {value}");
            }
        }
        // Keys in another order cannot be found.
        let mut bytes = whole.clone();
        let second = entry.end..entry.end + ENTRY_BYTES;
        let (first, second) = (bytes[entry.clone()].to_vec(), bytes[second].to_vec());
        bytes[entry.start..entry.end + ENTRY_BYTES].copy_from_slice(&[second, first].concat());
        let hash = *blake3::hash(&bytes[COUNT.start..entry.end + ENTRY_BYTES]).as_bytes();
        bytes[INDEX_HASH].copy_from_slice(&hash);
        assert_eq!(Library::open(bytes, COMPILED_BY).unwrap_err(), LibraryError::Damaged);
    }
}
