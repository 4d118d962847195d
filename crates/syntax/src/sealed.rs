//! Bytes with a header (kind, length and message authentication code), which only a holder of the secret can write.
//!
//! The header consists of
//! - eight bytes for kind and version;
//! - the number of bytes that follow the header, a little-endian `u64`;
//! - the keyed BLAKE3 hash of both and of those bytes, 32 bytes.
//!
//! The hash detects damage, and bytes that were sealed with another secret.

use std::io::{self, Read};

/// Size in bytes of the header that [`Secret::seal`] writes.
pub const SEAL_BYTES: usize = 48;

/// Size in bytes of a [`Secret`].
pub(crate) const SECRET_BYTES: usize = 32;

const KIND: std::ops::Range<usize> = 0..8;
const LENGTH: std::ops::Range<usize> = 8..16;
const CODE: std::ops::Range<usize> = 16..SEAL_BYTES;

/// A key of message authentication codes. Bytes that [`Secret::unseal`] accepts were sealed with the same key.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; SECRET_BYTES]);

impl Secret {
    /// Returns a new random secret.
    ///
    /// # Errors
    /// If the system has no source of random bytes.
    pub fn random() -> io::Result<Secret> {
        let mut key = [0; SECRET_BYTES];
        getrandom::fill(&mut key).map_err(io::Error::other)?;
        Ok(Secret(key))
    }

    /// Returns the secret with these bytes; `None` if their number is wrong.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Secret> {
        Some(Secret(bytes.try_into().ok()?))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Concatenates `parts` after a header with their kind, length and authentication code.
    pub fn seal(&self, kind: &[u8; 8], parts: &[&[u8]]) -> Vec<u8> {
        let length: usize = parts.iter().map(|p| p.len()).sum();
        let mut bytes = Vec::with_capacity(SEAL_BYTES + length);
        bytes.extend_from_slice(kind);
        bytes.extend_from_slice(&(length as u64).to_le_bytes());
        bytes.extend_from_slice(&[0; SEAL_BYTES - CODE.start]);
        for part in parts {
            bytes.extend_from_slice(part);
        }
        let code = self.code(&bytes);
        bytes[CODE].copy_from_slice(code.as_bytes());
        bytes
    }

    /// Verifies the header of bytes from [`Secret::seal`] and returns the bytes after it; `None` if they are damaged, or were sealed with another secret.
    pub fn unseal<'a>(&self, kind: &[u8; 8], bytes: &'a [u8]) -> Option<&'a [u8]> {
        let found: [u8; CODE.end - CODE.start] = bytes.get(CODE)?.try_into().ok()?;
        // The comparison of two hashes takes the same time wherever they differ.
        let is_whole =
            sealed_length(kind, bytes)? == bytes.len() as u64 && self.code(bytes) == blake3::Hash::from_bytes(found);
        is_whole.then_some(bytes.get(SEAL_BYTES..)?)
    }

    /// Returns the authentication code of `bytes`, a header and its contents, without the code itself.
    fn code(&self, bytes: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(bytes.get(..CODE.start).unwrap_or_default());
        hasher.update(bytes.get(SEAL_BYTES..).unwrap_or_default());
        hasher.finalize()
    }
}

/// Hides the secret, which would otherwise be in logs.
impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Returns the length that the header of sealed bytes claims, including the header. `bytes` starts with the header.
pub fn sealed_length(kind: &[u8; 8], bytes: &[u8]) -> Option<u64> {
    let length = u64::from_le_bytes(bytes.get(LENGTH)?.try_into().ok()?);
    let is_kind = bytes.get(KIND)? == kind;
    is_kind.then_some(length)?.checked_add(SEAL_BYTES as u64)
}

/// Reads the bytes at the front of a file of `length` bytes that claim to be of this kind, including the header, for [`Secret::unseal`]. `None` if they are
/// more than `most`, or more than the file has.
///
/// The claimed length is checked first, so no more memory is allocated than the file has bytes, and failed allocations do not abort.
pub fn read_sealed(kind: &[u8; 8], file: &mut impl Read, length: u64, most: u64) -> Option<Vec<u8>> {
    let mut header = [0; SEAL_BYTES];
    file.read_exact(&mut header).ok()?;
    let size = sealed_length(kind, &header).filter(|&size| size <= length.min(most))?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(usize::try_from(size).ok()?).ok()?;
    bytes.extend_from_slice(&header);
    file.take(size - SEAL_BYTES as u64).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 == size).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND_1: &[u8; 8] = b"KIND0001";
    const KIND_2: &[u8; 8] = b"KIND0002";

    fn secret(byte: u8) -> Secret {
        Secret([byte; SECRET_BYTES])
    }

    #[test]
    fn claims_are_checked_before_memory_is_allocated() {
        let whole = secret(1).seal(KIND_1, &[b"some bytes"]);
        let longer = [&whole[..], b"and others"].concat();
        let read = |bytes: &[u8], length, most| read_sealed(KIND_1, &mut &*bytes, length, most);
        assert_eq!(read(&longer, longer.len() as u64, 1000).as_ref(), Some(&whole));
        assert_eq!(read(&longer, longer.len() as u64, 50), None);
        assert_eq!(read(&longer, 50, 1000), None);
        assert_eq!(read(&whole[..50], 1000, 1000), None);
        assert_eq!(read_sealed(KIND_2, &mut &whole[..], 1000, 1000), None);
        // A file may be sparse, and as long as claimed; a failed allocation must not abort.
        for claim in [1 << 40, 1 << 60, u64::MAX / 2, u64::MAX] {
            let mut lie = whole.clone();
            lie[LENGTH].copy_from_slice(&claim.to_le_bytes());
            assert_eq!(read(&lie, whole.len() as u64, u64::MAX), None);
            assert_eq!(read(&lie, u64::MAX, u64::MAX), None);
        }
    }

    #[test]
    fn every_change_is_found() {
        let secret = secret(1);
        let whole = secret.seal(KIND_1, &[b"some", b"", b" bytes"]);
        assert_eq!(secret.unseal(KIND_1, &whole), Some(&b"some bytes"[..]));
        assert_eq!(sealed_length(KIND_1, &whole[..SEAL_BYTES]), Some(whole.len() as u64));
        assert_eq!(secret.unseal(KIND_2, &whole), None);
        assert_eq!(secret.unseal(KIND_1, &secret.seal(KIND_1, &[])), Some(&[][..]));
        for end in 0..whole.len() {
            assert_eq!(secret.unseal(KIND_1, &whole[..end]), None);
        }
        for bit in 0..8 * whole.len() {
            let mut changed = whole.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(secret.unseal(KIND_1, &changed), None);
        }
        assert_eq!(secret.unseal(KIND_1, &[&whole[..], &[0]].concat()), None);
    }

    #[test]
    fn bytes_that_another_secret_sealed_are_refused() {
        let whole = secret(1).seal(KIND_1, &[b"code"]);
        assert_eq!(secret(2).unseal(KIND_1, &whole), None);
        assert_eq!(secret(1).unseal(KIND_1, &whole), Some(&b"code"[..]));
        assert_ne!(Secret::random().unwrap(), Secret::random().unwrap());
        assert_eq!(format!("{:?}", secret(7)), "Secret(..)");
    }
}
