//! `hash()` as in PyTorch on Linux: numbers and strings by the functions of libstdc++, tuples by combining the hashes of their elements.

use std::hash::{DefaultHasher, Hash, Hasher};

use frazil_runtime::op::OpError;
use frazil_runtime::value::{Key, Value};

/// Returns the hash of a value, as PyTorch on Linux computes it.
pub(super) fn hash(value: &Value) -> Result<u64, OpError> {
    Ok(match value {
        Value::None => 0,
        Value::Bool(b) => u64::from(*b),
        Value::Int(i) => *i as u64,
        // Both zeros are one number.
        Value::Float(0.0) => 0,
        Value::Float(x) => bytes(&x.to_le_bytes()),
        Value::Str(text) => bytes(text.as_bytes()),
        Value::Tuple(tuple) => {
            let mut seed = 0u64;
            for item in tuple.items.iter() {
                let shifted = (seed << 6).wrapping_add(seed >> 2);
                seed ^= hash(item)?.wrapping_add(0x9e37_79b9).wrapping_add(shifted);
            }
            seed
        }
        Value::Complex(_) => return Err(unhashable("complex")),
        Value::List(_) => return Err(unhashable("list")),
        Value::Dict(_) => return Err(unhashable("dict")),
        // By identity, or by data that only this process knows.
        other => {
            let mut hasher = DefaultHasher::new();
            Key(other.clone()).hash(&mut hasher);
            hasher.finish()
        }
    })
}

fn unhashable(class: &str) -> OpError {
    OpError::raised(format!("unhashable type: '{class}'"))
}

/// Computes `std::_Hash_bytes` of libstdc++ on 64-bit machines: MurmurHash2 with a fixed seed.
fn bytes(bytes: &[u8]) -> u64 {
    const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;
    const SEED: u64 = 0xc70f_6907;
    let mix = |v: u64| v ^ (v >> 47);
    let mut hash = SEED ^ (bytes.len() as u64).wrapping_mul(MULTIPLIER);
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        let data = mix(u64::from_le_bytes(*word).wrapping_mul(MULTIPLIER)).wrapping_mul(MULTIPLIER);
        hash = (hash ^ data).wrapping_mul(MULTIPLIER);
    }
    if !rest.is_empty() {
        let data = rest.iter().rev().fold(0, |data, &byte| (data << 8) | u64::from(byte));
        hash = (hash ^ data).wrapping_mul(MULTIPLIER);
    }
    mix(mix(hash).wrapping_mul(MULTIPLIER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_pytorch() {
        let of = |value: Value| hash(&value).unwrap() as i64;
        assert_eq!(of(Value::Int(3)), 3);
        assert_eq!(of(Value::Int(-1)), -1);
        assert_eq!(of(Value::Float(0.5)), -2_829_232_615_774_148_844);
        assert_eq!(of(Value::Float(1.5)), 4_982_507_072_649_106_663);
        assert_eq!(of(Value::str("abc")), 3_663_726_644_998_027_833);
        assert_eq!(of(Value::str("")), 6_142_509_188_972_423_790);
        assert!(hash(&Value::Complex(num_complex::Complex64::new(1.0, 0.0))).is_err());
    }
}
