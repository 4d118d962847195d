//! Arithmetic of sizes.

/// Returns the tile extent from `most / 2` to `most` that covers `m` with the fewest tiles. Of several such extents, returns one that divides `m`, or the
/// smallest.
pub(crate) fn balanced(m: i64, most: i64) -> i64 {
    let low = (most / 2).max(1);
    (low..=most)
        .min_by_key(|&r| (div_ceil(m, r), m % r != 0, r))
        .unwrap_or(most)
}

/// Returns ⌈a / b⌉ for a ≥ 0 and b > 0.
pub(crate) fn div_ceil(a: i64, b: i64) -> i64 {
    (a + b - 1) / b
}
