//! Names of the operators that have methods, from the build script.

/// Returns the index of an operator that has a method. It is used in constants, so a name without a method does not
/// compile.
pub(super) const fn known(name: &str) -> usize {
    let mut number = 0;
    while !is(NAMES[number].as_bytes(), name.as_bytes()) {
        number += 1;
    }
    number
}

/// Compares two byte strings, also in constants.
const fn is(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut at = 0;
    while at < a.len() {
        if a[at] != b[at] {
            return false;
        }
        at += 1;
    }
    true
}

include!(concat!(env!("OUT_DIR"), "/names.rs"));
