//! The part of keys of code that depends on the target.

use frazil_planner::target::Target;
use std::sync::{Arc, OnceLock};

/// The first part of each key. It changes if code for the same spec may change, or the format of files. `build.rs` computes the hash.
pub(crate) const FORMAT: &str = concat!(
    "frazil ",
    env!("CARGO_PKG_VERSION"),
    " objects of ",
    env!("FRAZIL_CODEGEN_SOURCES")
);

/// The part of keys of code that depends on the target. It is computed once, for the first target that needs it. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct TargetKeys(Arc<OnceLock<(Target, Arc<TargetKey>)>>);

/// The part of keys of code that depends on one target.
#[derive(Debug)]
pub(crate) struct TargetKey {
    /// The beginning of the keys of objects in caches: the version of the compiler, and the target with all parameters of its machine.
    pub(crate) text: Box<str>,
    /// Hash of `text`.
    pub(crate) hash: u128,
    /// The target whose code in libraries runs on this one, see [`Target::level`].
    pub(crate) level: Option<Target>,
}

impl TargetKeys {
    /// Returns the key of `target`.
    pub(crate) fn of(&self, target: &Target) -> Arc<TargetKey> {
        let (first, key) = self.0.get_or_init(|| (target.clone(), TargetKey::of(target)));
        match first == target {
            true => Arc::clone(key),
            false => TargetKey::of(target),
        }
    }
}

impl TargetKey {
    fn of(target: &Target) -> Arc<TargetKey> {
        let text = format!("{FORMAT}\n{target:?}\n");
        Arc::new(TargetKey {
            hash: hashed(EMPTY, text.as_bytes()),
            text: text.into(),
            level: target.level(),
        })
    }
}

/// The hash of no bytes.
const EMPTY: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;

/// Returns the 128-bit FNV-1a hash of bytes whose hash is `hash`, followed by `bytes`. It does not depend on versions of other crates. It only distinguishes
/// the keys of one process: the keys themselves are compared too, and two codes with the same symbol in a package are an error.
pub(crate) fn hashed(hash: u128, bytes: &[u8]) -> u128 {
    bytes.iter().fold(hash, |hash, b| {
        (hash ^ u128::from(*b)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_target_has_its_own_key() {
        let keys = TargetKeys::default();
        let [one, other] = ["x86-64-v3", "x86-64-v4"].map(|cpu| Target::new(cpu, ""));
        let (first, second) = (keys.of(&one), keys.of(&other));
        assert_ne!((&first.text, first.hash), (&second.text, second.hash));
        assert!(Arc::ptr_eq(&keys.of(&one), &first));
        assert_eq!(keys.of(&other).text, second.text);
    }
}
