//! Operators whose meaning has changed, and the format version that came with the change: an archive that says an older version, or none so
//! new, means the old operator.

/// Operators, the version since which they mean what they mean today, and the overloads that changed.
const CHANGES: &[(&str, u64, &[&str])] = &[
    ("aten::div", 4, DIVISIONS),
    ("aten::div_", 4, DIVISIONS),
    ("aten::full", 5, &["", "names", "out"]),
    ("aten::linspace", 8, &["", "out"]),
    ("aten::logspace", 9, &["", "out"]),
    ("aten::gelu", 10, &["", "out"]),
];

/// Divisions of tensors; those of numbers were always true divisions.
const DIVISIONS: &[&str] = &["Tensor", "Tensor_mode", "Scalar", "Scalar_mode", "out", "out_mode"];

/// The format version in which `operator` changed its meaning.
pub(crate) fn changed_in(operator: &str) -> Option<u64> {
    let change = CHANGES.iter().find(|(name, ..)| *name == operator)?;
    Some(change.1)
}

/// The oldest format version that means by this overload what it means today.
pub(crate) fn min_version(operator: &str, overload: &str) -> Option<u64> {
    let change = CHANGES.iter().find(|(name, ..)| *name == operator)?;
    change.2.contains(&overload).then_some(change.1)
}
