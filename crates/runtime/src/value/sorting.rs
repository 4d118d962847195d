//! Sorting of lists by a comparison that may raise.

use crate::value::Value;

/// Returns `items` in ascending order by `less`; items of which neither is less keep their order. `less` need not be a strict weak order: the result is then some
/// permutation, as in Python.
///
/// # Errors
/// The first error of `less`.
pub fn sorted_by<E>(
    items: Vec<Value>,
    mut less: impl FnMut(&Value, &Value) -> Result<bool, E>,
) -> Result<Vec<Value>, E> {
    // Insertion by bisection behind what is equal.
    let mut sorted: Vec<Value> = Vec::with_capacity(items.len());
    for item in items {
        let (mut low, mut high) = (0, sorted.len());
        while low < high {
            let middle = low.midpoint(high);
            match sorted.get(middle) {
                Some(other) if less(&item, other)? => high = middle,
                _ => low = middle + 1,
            }
        }
        sorted.insert(low, item);
    }
    Ok(sorted)
}
