//! Indices of slices of lists and strings.

use frazil_runtime::op::OpError;

/// Returns the indices that `start:end:step` selects from a sequence of `len` elements, by Python's rules.
pub(super) fn slice_indices(
    start: Option<i64>,
    end: Option<i64>,
    step: i64,
    len: usize,
) -> Result<impl Iterator<Item = usize>, OpError> {
    if step == 0 {
        return Err(OpError::raised("List slice should have non-zero step"));
    }
    if step == i64::MIN {
        return Err(OpError::raised("List slice step is out of bounds"));
    }
    let len = len as i64;
    let (low, high) = if step > 0 { (0, len) } else { (-1, len - 1) };
    let place = |i: i64| (if i < 0 { i.saturating_add(len) } else { i }).clamp(low, high);
    let first = start.map_or(if step > 0 { low } else { high }, place);
    let end = match end {
        // The largest integer means that the end was omitted.
        None | Some(i64::MAX) => {
            if step > 0 {
                high
            } else {
                low
            }
        }
        Some(i) => place(i),
    };
    let inside = move |i: &i64| if step > 0 { *i < end } else { *i > end };
    let next = move |i: &i64| i.checked_add(step);
    Ok(std::iter::successors(Some(first), next)
        .take_while(inside)
        .filter_map(|i| usize::try_from(i).ok()))
}
