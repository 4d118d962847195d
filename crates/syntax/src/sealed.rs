//! Bytes with a header (kind, length and checksum), by which damage is detected.
//!
//! The header consists of
//! - eight bytes for kind and version;
//! - the number of bytes that follow the header, a little-endian `u64`;
//! - the CRC-32 of both and of those bytes, a little-endian `u32`;
//! - four zeros.
//!
//! CRC-32 detects every change of up to 32 adjacent bits, and all but one in 2^32 of others.

use std::io::Read;

/// Size in bytes of the header that [`seal`] writes.
pub const SEAL_BYTES: usize = 24;

const KIND: std::ops::Range<usize> = 0..8;
const LENGTH: std::ops::Range<usize> = 8..16;
const CHECKSUM: std::ops::Range<usize> = 16..20;

/// Concatenates `parts` after a header with their kind, length and checksum.
pub fn seal(kind: &[u8; 8], parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|p| p.len()).sum();
    let mut bytes = Vec::with_capacity(SEAL_BYTES + length);
    bytes.extend_from_slice(kind);
    bytes.extend_from_slice(&(length as u64).to_le_bytes());
    bytes.extend_from_slice(&[0; SEAL_BYTES - CHECKSUM.start]);
    for part in parts {
        bytes.extend_from_slice(part);
    }
    let checksum = checksum(&bytes);
    bytes[CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Returns the length that the header of sealed bytes claims, including the header. `bytes` starts with the header.
pub fn sealed_length(kind: &[u8; 8], bytes: &[u8]) -> Option<u64> {
    let length = u64::from_le_bytes(bytes.get(LENGTH)?.try_into().ok()?);
    let is_kind = bytes.get(KIND)? == kind;
    is_kind.then_some(length)?.checked_add(SEAL_BYTES as u64)
}

/// Reads the bytes at the front of a file of `length` bytes that claim to be of this kind, including the header, for [`unseal`]. `None` if they are more than
/// `most`, or more than the file has.
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

/// Verifies the header of bytes from [`seal`] and returns the bytes after it; `None` if they are damaged.
pub fn unseal<'a>(kind: &[u8; 8], bytes: &'a [u8]) -> Option<&'a [u8]> {
    let is_whole = sealed_length(kind, bytes)? == bytes.len() as u64
        && bytes.get(CHECKSUM)? == checksum(bytes).to_le_bytes()
        && bytes.get(CHECKSUM.end..SEAL_BYTES)? == [0; SEAL_BYTES - CHECKSUM.end];
    is_whole.then_some(bytes.get(SEAL_BYTES..)?)
}

/// Returns the checksum of `bytes`, a header and its contents, without the checksum itself.
fn checksum(bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(bytes.get(..CHECKSUM.start).unwrap_or_default());
    hasher.update(bytes.get(SEAL_BYTES..).unwrap_or_default());
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_checked_before_memory_is_taken() {
        let kind = b"KIND0001";
        let whole = seal(kind, &[b"some bytes"]);
        let longer = [&whole[..], b"and others"].concat();
        let read = |bytes: &[u8], length, most| read_sealed(kind, &mut &*bytes, length, most);
        assert_eq!(read(&longer, longer.len() as u64, 1000).as_ref(), Some(&whole));
        assert_eq!(read(&longer, longer.len() as u64, 20), None);
        assert_eq!(read(&longer, 20, 1000), None);
        assert_eq!(read(&whole[..30], 1000, 1000), None);
        assert_eq!(read_sealed(b"KIND0002", &mut &whole[..], 1000, 1000), None);
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
        let kind = b"KIND0001";
        let whole = seal(kind, &[b"some", b"", b" bytes"]);
        assert_eq!(unseal(kind, &whole), Some(&b"some bytes"[..]));
        assert_eq!(sealed_length(kind, &whole[..SEAL_BYTES]), Some(whole.len() as u64));
        assert_eq!(unseal(b"KIND0002", &whole), None);
        assert_eq!(unseal(kind, &seal(kind, &[])), Some(&[][..]));
        for end in 0..whole.len() {
            assert_eq!(unseal(kind, &whole[..end]), None);
        }
        for bit in 0..8 * whole.len() {
            let mut changed = whole.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(unseal(kind, &changed), None);
        }
        assert_eq!(unseal(kind, &[&whole[..], &[0]].concat()), None);
    }
}
