//! Bytes with a header that says what they are, how many, and what their checksum is.
//!
//! The header: eight bytes that name kind and version; the number of bytes that follow the header, a little-endian `u64`; the CRC-32 of both and of
//! those bytes, likewise; four zeros. CRC-32 finds every change of up to 32 neighbouring bits, and all but one in 2^32 of others.

/// Bytes of a header.
pub const SEAL_BYTES: usize = 24;

const KIND: std::ops::Range<usize> = 0..8;
const LENGTH: std::ops::Range<usize> = 8..16;
const CHECKSUM: std::ops::Range<usize> = 16..20;

/// `parts` one after the other, behind a header.
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

/// How many bytes of this kind there are, header included, when `bytes` are the first ones.
pub fn sealed_length(kind: &[u8; 8], bytes: &[u8]) -> Option<u64> {
    let length = u64::from_le_bytes(bytes.get(LENGTH)?.try_into().ok()?);
    let is_kind = bytes.get(KIND)? == kind;
    is_kind.then_some(length)?.checked_add(SEAL_BYTES as u64)
}

/// What [`seal`] was given, in one piece; `None` when it is not all of that.
pub fn unseal<'a>(kind: &[u8; 8], bytes: &'a [u8]) -> Option<&'a [u8]> {
    let is_whole = sealed_length(kind, bytes)? == bytes.len() as u64
        && bytes.get(CHECKSUM)? == checksum(bytes).to_le_bytes()
        && bytes.get(CHECKSUM.end..SEAL_BYTES)? == [0; SEAL_BYTES - CHECKSUM.end];
    is_whole.then_some(bytes.get(SEAL_BYTES..)?)
}

/// The checksum of all of `bytes` but its own place.
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
