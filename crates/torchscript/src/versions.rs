//! Operators whose meaning has changed, with the format version of the change. An archive with an older version means the old operator.

/// Operators whose meaning has changed: the name, the first format version with the current meaning, and the overloads
/// that changed.
const CHANGES: &[(&str, u64, &[&str])] = &[
    ("aten::div", 4, DIVISIONS),
    ("aten::div_", 4, DIVISIONS),
    ("aten::full", 5, &["", "names", "out"]),
    ("aten::linspace", 8, &["", "out"]),
    ("aten::logspace", 9, &["", "out"]),
    ("aten::gelu", 10, &["", "out"]),
];

/// Overloads of tensor divisions. Divisions of numbers were always true divisions.
const DIVISIONS: &[&str] = &["Tensor", "Tensor_mode", "Scalar", "Scalar_mode", "out", "out_mode"];

/// Returns the format version in which the meaning of `operator` changed.
pub(crate) fn changed_in(operator: &str) -> Option<u64> {
    let change = CHANGES.iter().find(|(name, ..)| *name == operator)?;
    Some(change.1)
}

/// Returns the oldest format version in which the overload `overload` of `operator` has its current meaning.
pub(crate) fn min_version(operator: &str, overload: &str) -> Option<u64> {
    let change = CHANGES.iter().find(|(name, ..)| *name == operator)?;
    change.2.contains(&overload).then_some(change.1)
}
