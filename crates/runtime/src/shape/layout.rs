//! Arithmetic of sizes and strides. All quantities are in elements, not bytes.

use crate::memory::{self, OutOfMemory};
use crate::shape::Dims;
use smallvec::smallvec;
use std::cmp::Ordering;

/// PyTorch's code of the memory format `torch.contiguous_format` in graphs.
pub const CONTIGUOUS_FORMAT: i64 = 0;
/// PyTorch's code of the memory format `torch.preserve_format` in graphs.
pub const PRESERVE_FORMAT: i64 = 1;
/// PyTorch's code of the memory format `torch.channels_last`, for four dimensions, in graphs.
pub const CHANNELS_LAST: i64 = 2;
/// PyTorch's code of the memory format `torch.channels_last_3d`, for five dimensions, in graphs.
pub const CHANNELS_LAST_3D: i64 = 3;

/// Returns the number of elements for `sizes`, or `None` if it overflows or a size is negative.
pub fn checked_numel(sizes: &[i64]) -> Option<i64> {
    if sizes.iter().any(|&s| s < 0) {
        return None;
    }
    if sizes.contains(&0) {
        return Some(0);
    }
    sizes.iter().try_fold(1i64, |n, &s| n.checked_mul(s))
}

/// Returns the strides of a row-major tensor. As in PyTorch, a dimension of extent 0 counts as 1.
pub fn contiguous_strides(sizes: &[i64]) -> Dims {
    let mut strides: Dims = smallvec![1; sizes.len()];
    let mut step = 1i64;
    for (stride, &size) in strides.iter_mut().zip(sizes).rev() {
        *stride = step;
        step = step.saturating_mul(size.max(1));
    }
    strides
}

/// Returns the strides of row-major batches of column-major matrices, `[..., rows, columns]`. A dimension of extent 0 counts as 1.
pub fn column_major_strides(sizes: &[i64]) -> Dims {
    let mut strides = contiguous_strides(sizes);
    if let ([.., rows, _], [.., row, column]) = (sizes, strides.as_mut_slice()) {
        (*row, *column) = (1, (*rows).max(1));
    }
    strides
}

/// Returns true if the elements are stored in row-major order without gaps. Dimensions of extent 1 may have any stride.
pub fn is_contiguous(sizes: &[i64], strides: &[i64]) -> bool {
    let mut step = 1i64;
    for (&size, &stride) in sizes.iter().zip(strides).rev() {
        if size == 0 {
            return true;
        }
        if size != 1 {
            if stride != step {
                return false;
            }
            step = step.saturating_mul(size);
        }
    }
    true
}

/// Returns true if the elements fill a range of memory without gaps or overlap, in any order of dimensions.
pub fn is_non_overlapping_and_dense(sizes: &[i64], strides: &[i64]) -> bool {
    if sizes.contains(&0) {
        return true;
    }
    let mut dims: Vec<(i64, i64)> = sizes
        .iter()
        .copied()
        .zip(strides.iter().copied())
        .filter(|d| d.0 != 1)
        .collect();
    dims.sort_by_key(|d| d.1);
    let mut step = 1;
    for (size, stride) in dims {
        if stride != step {
            return false;
        }
        step *= size;
    }
    true
}

/// Returns the strides of a tensor of rank 4 or 5 with innermost channels (dimension 1): `channels_last` and `channels_last_3d`.
pub fn channels_last_strides(sizes: &[i64]) -> Dims {
    let mut strides: Dims = smallvec![1; sizes.len()];
    let mut step = 1i64;
    let order = std::iter::once(1)
        .chain((2..sizes.len()).rev())
        .chain(std::iter::once(0));
    for d in order.filter(|&d| d < sizes.len()) {
        strides[d] = step;
        step = step.saturating_mul(sizes[d].max(1));
    }
    strides
}

/// Returns whether operators that choose the memory format of their result take the strides for `channels_last` or `channels_last_3d`. The dimensions are in
/// that order, possibly with gaps; strides that a row-major tensor could have, too, are not. Source: `is_channels_last_strides_2d` of PyTorch's
/// MemoryFormat.h.
pub fn is_like_channels_last(sizes: &[i64], strides: &[i64]) -> bool {
    let rank = sizes.len();
    if !matches!(rank, 4 | 5) || strides[1] == 0 || sizes.contains(&0) {
        return false;
    }
    let mut least = 0;
    for d in std::iter::once(1).chain((2..rank).rev()).chain(std::iter::once(0)) {
        if strides[d] < least || (d == 0 && least == strides[1]) {
            return false;
        }
        least = strides[d].saturating_mul(sizes[d]);
    }
    true
}

/// Returns PyTorch's code of the memory format that operators take the strides for: `torch.contiguous_format`, `channels_last` or `channels_last_3d`.
pub fn suggested_format(sizes: &[i64], strides: &[i64]) -> i64 {
    match (is_like_channels_last(sizes, strides), sizes.len()) {
        (false, _) => CONTIGUOUS_FORMAT,
        (true, 5) => CHANNELS_LAST_3D,
        (true, _) => CHANNELS_LAST,
    }
}

/// Returns the same as [`is_like_channels_last`], but also accepts rank 3, with one spatial dimension.
pub fn has_channels_innermost(sizes: &[i64], strides: &[i64]) -> bool {
    match (sizes, strides) {
        ([n, c, l], [s, 1, w]) => *w == *c && (*n == 1 || *s == c * l) && *c > 1,
        _ => is_like_channels_last(sizes, strides),
    }
}

/// Returns true if `strides` are the strides that [`channels_last_strides`] returns. Dimensions of extent 1 may have any stride.
pub fn is_channels_last(sizes: &[i64], strides: &[i64]) -> bool {
    let wanted = channels_last_strides(sizes);
    matches!(sizes.len(), 4 | 5)
        && (sizes.contains(&0)
            || sizes
                .iter()
                .zip(strides.iter().zip(&wanted))
                .all(|(&n, (s, w))| n == 1 || s == w))
}

/// Returns canonical strides that PyTorch's operators treat like the given ones. The same dimensions are in the same order, can be merged with their
/// neighbours, are repeated, and have gaps. Gaps are as small as possible, and dimensions of extent 1 have row-major strides.
///
/// For example, the strides of a column `x[:, -1:]` are the same for any number of columns. Strides of overlapping windows are returned unchanged.
pub fn representative_strides(sizes: &[i64], strides: &[i64]) -> Dims {
    let mut dims: Vec<usize> = (0..sizes.len()).filter(|&d| sizes[d] != 1 && strides[d] != 0).collect();
    dims.sort_by_key(|&d| strides[d]);
    let mut out: Dims = smallvec![0; sizes.len()];
    // The elements that the dimensions so far reach over, in the given strides and in those that stand for them.
    let (mut reach, mut packed) = (1i64, 1i64);
    for d in dims {
        if strides[d] < reach {
            return strides.into();
        }
        out[d] = if strides[d] == reach {
            packed
        } else {
            packed.saturating_add(1)
        };
        reach = strides[d].saturating_mul(sizes[d]);
        packed = out[d].saturating_mul(sizes[d]);
    }
    let mut next = 1i64;
    for d in (0..sizes.len()).rev() {
        if sizes[d] == 1 {
            out[d] = next;
        }
        next = out[d].saturating_mul(sizes[d]).max(1);
    }
    out
}

/// Returns the strides that PyTorch uses for the result of an elementwise operator. Its dimensions have the same order as in the operands, where earlier
/// operands have priority; otherwise, they are row-major. Operands are pairs of sizes and strides.
pub fn elementwise_strides(operands: &[(&[i64], &[i64])], sizes: &[i64]) -> Dims {
    let same_shape = operands.iter().all(|(s, _)| *s == sizes);
    if same_shape {
        if operands.iter().all(|(s, st)| is_contiguous(s, st)) {
            return contiguous_strides(sizes);
        }
        if operands.iter().all(|(s, st)| is_channels_last(s, st)) {
            return channels_last_strides(sizes);
        }
        if let Some((_, first)) = operands.first()
            && operands
                .iter()
                .all(|(s, st)| st == first && is_non_overlapping_and_dense(s, st))
        {
            return (*first).into();
        }
    }
    let rank = sizes.len();
    // How an operand steps along a dimension of the result; 0 where it is broadcast.
    let step = |(s, st): &(&[i64], &[i64]), d: usize| match (d + s.len()).checked_sub(rank) {
        Some(own) if s[own] != 1 || sizes[d] == 1 => st[own],
        _ => 0,
    };
    let order_of = |a: usize, b: usize| {
        for operand in operands {
            let (x, y) = (step(operand, a), step(operand, b));
            if x == 0 || y == 0 {
                continue;
            }
            match x.cmp(&y) {
                Ordering::Equal if sizes[a] > sizes[b] => return Ordering::Greater,
                Ordering::Equal => {}
                other => return other,
            }
        }
        Ordering::Equal
    };
    // Innermost first. An insertion sort, because the order is not transitive: what cannot be compared is passed over.
    let mut order: Vec<usize> = (0..rank).rev().collect();
    for i in 1..rank {
        let mut at = i;
        for other in (0..i).rev() {
            match order_of(order[other], order[at]) {
                Ordering::Greater => {
                    order.swap(other, at);
                    at = other;
                }
                Ordering::Less => break,
                Ordering::Equal => {}
            }
        }
    }
    if order.iter().rev().copied().eq(0..rank) {
        return contiguous_strides(sizes);
    }
    let mut strides: Dims = smallvec![1; rank];
    let mut next = 1i64;
    for d in order {
        strides[d] = next;
        next = next.saturating_mul(sizes[d]);
    }
    strides
}

/// Returns true if all indices along a dimension refer to one element, which in-place operators refuse to write. Otherwise overlapping windows (`unfold`) are
/// written in row-major order, as in PyTorch.
pub fn repeats_elements(sizes: &[i64], strides: &[i64]) -> bool {
    !sizes.contains(&0)
        && sizes
            .iter()
            .zip(strides)
            .any(|(&size, &stride)| size > 1 && stride == 0)
}

/// Returns true if two elements have the same position: if [`repeats_elements`] returns true, or for overlapping windows such as those of `unfold`.
///
/// # Errors
/// When there is no memory for the list of positions, which is needed if neither sizes nor strides decide.
pub fn shares_elements(sizes: &[i64], strides: &[i64]) -> Result<bool, OutOfMemory> {
    if sizes.contains(&0) || is_contiguous(sizes, strides) {
        return Ok(false);
    }
    let mut dims: Vec<(i64, i64)> = strides
        .iter()
        .map(|s| s.saturating_abs())
        .zip(sizes.iter().copied())
        .filter(|&(_, size)| size > 1)
        .collect();
    dims.sort_unstable();
    // The largest position in the dimensions so far. A longer stride skips all of them.
    let mut reach = 0i64;
    let mut nested = true;
    for &(stride, size) in &dims {
        nested &= stride > reach;
        reach = reach.saturating_add(stride.saturating_mul(size - 1));
    }
    if nested {
        return Ok(false);
    }
    let numel = checked_numel(sizes).unwrap_or(i64::MAX);
    if numel > reach.saturating_add(1) {
        return Ok(true);
    }
    let mut positions = memory::with_capacity(numel as usize)?;
    positions.push(0i64);
    for &(stride, size) in &dims {
        for i in 1..size {
            let before = positions.len() / i as usize;
            positions.extend_from_within(..before);
            positions[i as usize * before..]
                .iter_mut()
                .for_each(|p| *p += i * stride);
        }
    }
    positions.sort_unstable();
    Ok(positions.windows(2).any(|pair| pair[0] == pair[1]))
}

/// Returns the smallest and the largest offset, in elements relative to the first element, that `sizes` and `strides` reach. `None` for an empty tensor, or
/// if the arithmetic overflows.
pub fn extent(sizes: &[i64], strides: &[i64]) -> Option<(i64, i64)> {
    if sizes.contains(&0) {
        return None;
    }
    let (mut low, mut high) = (0i64, 0i64);
    for (&size, &stride) in sizes.iter().zip(strides) {
        let reach = (size - 1).checked_mul(stride)?;
        if reach < 0 {
            low = low.checked_add(reach)?;
        } else {
            high = high.checked_add(reach)?;
        }
    }
    Some((low, high))
}

/// Returns the sizes to which two tensors broadcast; `None` if they do not.
pub fn broadcast(a: &[i64], b: &[i64]) -> Option<Dims> {
    let rank = a.len().max(b.len());
    let mut out: Dims = smallvec![1; rank];
    for (i, size) in out.iter_mut().enumerate() {
        // Dimension `i` of the result, counted from the right so that missing leading dimensions count as 1.
        let at = |s: &[i64]| {
            (i + s.len())
                .checked_sub(rank)
                .and_then(|j| s.get(j).copied())
                .unwrap_or(1)
        };
        *size = match (at(a), at(b)) {
            (x, y) if x == y => x,
            (1, y) => y,
            (x, 1) => x,
            _ => return None,
        };
    }
    Some(out)
}

/// Returns the strides by which a tensor of `sizes` and `strides` is read as a tensor of sizes `target`, with repetition along broadcast dimensions; `None`
/// if it cannot be expanded.
pub fn expand_strides(sizes: &[i64], strides: &[i64], target: &[i64]) -> Option<Dims> {
    let lead = target.len().checked_sub(sizes.len())?;
    let mut out: Dims = smallvec![0; target.len()];
    for (i, (&size, &stride)) in sizes.iter().zip(strides).enumerate() {
        match (size, target[lead + i]) {
            (s, t) if s == t => out[lead + i] = stride,
            (1, _) => out[lead + i] = 0,
            _ => return None,
        }
    }
    Some(out)
}

/// Returns the strides with which the same memory is a tensor of sizes `new_sizes`, with its elements in the same row-major order; `None` if this needs a
/// copy. Both shapes must have the same number of elements.
pub fn view_strides(sizes: &[i64], strides: &[i64], new_sizes: &[i64]) -> Option<Dims> {
    if sizes.contains(&0) {
        return Some(if sizes == new_sizes {
            strides.into()
        } else {
            contiguous_strides(new_sizes)
        });
    }
    let mut out: Dims = smallvec![1; new_sizes.len()];
    // Groups of old dimensions that are contiguous among themselves are matched with groups of new ones, from the right.
    let mut new_dim = new_sizes.len();
    let mut base = strides.last().copied().unwrap_or(1);
    let mut group = 1i64;
    for old in (0..sizes.len()).rev() {
        group *= sizes[old];
        let ends = old == 0 || (sizes[old - 1] != 1 && strides[old - 1] != group * base);
        if !ends {
            continue;
        }
        let mut filled = 1i64;
        while new_dim > 0 && (filled < group || new_sizes[new_dim - 1] == 1) {
            out[new_dim - 1] = filled * base;
            filled *= new_sizes[new_dim - 1];
            new_dim -= 1;
        }
        if filled != group {
            return None;
        }
        if old > 0 {
            group = 1;
            base = strides[old - 1];
        }
    }
    // A zero-dimensional tensor has no groups: its views are all of extent 1 and stride 1.
    (new_dim == 0 || sizes.is_empty()).then_some(out)
}

/// Returns `dim` as a non-negative index of a dimension: negative ones count from the end. `None` if `dim` is out of range. A rank of 0 counts as 1, as in
/// PyTorch.
pub fn wrap_dim(dim: i64, rank: usize) -> Option<usize> {
    let rank = i64::try_from(rank.max(1)).ok()?;
    let wrapped = if dim < 0 { dim + rank } else { dim };
    (0..rank)
        .contains(&wrapped)
        .then(|| usize::try_from(wrapped).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contiguity() {
        assert_eq!(contiguous_strides(&[2, 3, 4]).as_slice(), &[12, 4, 1]);
        assert_eq!(contiguous_strides(&[2, 0, 4]).as_slice(), &[4, 4, 1]);
        assert!(is_contiguous(&[2, 1, 4], &[4, 99, 1]));
        assert!(!is_contiguous(&[2, 3], &[1, 2]));
        assert!(is_non_overlapping_and_dense(&[2, 3], &[1, 2]));
        assert!(!is_non_overlapping_and_dense(&[2, 3], &[0, 1]));
        assert!(repeats_elements(&[2, 3], &[0, 1]));
        assert!(!repeats_elements(&[2, 3], &[1, 2]));
        assert!(!repeats_elements(&[4, 3], &[1, 1]));
        assert!(!repeats_elements(&[0, 3], &[0, 1]));
        assert_eq!(shares_elements(&[2, 3], &[0, 1]), Ok(true));
        assert_eq!(shares_elements(&[3, 2], &[1, 1]), Ok(true));
        assert_eq!(shares_elements(&[1 << 40, 2], &[1, 1]), Ok(true));
        assert_eq!(shares_elements(&[2, 3], &[3, 2]), Ok(false));
        assert_eq!(shares_elements(&[3, 3], &[3, 2]), Ok(false));
        assert_eq!(shares_elements(&[3, 4], &[3, 2]), Ok(true));
        assert_eq!(shares_elements(&[3, 2], &[1, 3]), Ok(false));
        assert_eq!(shares_elements(&[2, 3], &[-3, 1]), Ok(false));
        assert_eq!(shares_elements(&[0, 3], &[0, 1]), Ok(false));
    }

    #[test]
    fn strides_stand_for_others() {
        let stands = |sizes: &[i64], strides: &[i64]| representative_strides(sizes, strides).to_vec();
        // Without gaps, in any order.
        assert_eq!(stands(&[2, 3], &[3, 1]), [3, 1]);
        assert_eq!(stands(&[2, 3, 4], &[1, 8, 2]), [1, 8, 2]);
        // A column, rows with a gap, every other column; of any number of columns.
        assert_eq!(stands(&[4, 1], &[7, 1]), stands(&[4, 1], &[99, 1]));
        assert_eq!(stands(&[4, 1], &[7, 1]), [2, 1]);
        assert_eq!(stands(&[4, 3], &[5, 1]), [4, 1]);
        assert_eq!(stands(&[4, 3], &[9, 2]), [7, 2]);
        assert_eq!(stands(&[4, 3], &[6, 2]), [6, 2]);
        // Repeated, or of extent 1.
        assert_eq!(stands(&[4, 3], &[0, 1]), [0, 1]);
        assert_eq!(stands(&[4, 3], &[50, 0]), [2, 0]);
        assert_eq!(stands(&[1, 3, 1], &[50, 1, 70]), [3, 1, 1]);
        // Windows that overlap themselves.
        assert_eq!(stands(&[4, 3], &[1, 1]), [1, 1]);
        assert_eq!(stands(&[4, 3], &[2, 1]), [2, 1]);
        let cases: [(&[i64], &[i64]); 6] = [
            (&[4, 3], &[7, 2]),
            (&[2, 3, 4], &[40, 13, 3]),
            (&[2, 3, 4], &[1, 40, 9]),
            (&[2, 3, 4], &[24, 4, 1]),
            (&[2, 1, 4], &[9, 7, 2]),
            (&[2, 3, 4], &[0, 5, 1]),
        ];
        for (sizes, strides) in cases {
            let other = stands(sizes, strides);
            assert_eq!(stands(sizes, &other), other);
            let rank = sizes.len() as i64;
            for new in [
                vec![sizes.iter().product()],
                [&[1][..], sizes].concat(),
                vec![2, -1],
                vec![-1, rank],
            ] {
                let numel: i64 = sizes.iter().product();
                let known: i64 = new.iter().filter(|n| **n > 0).product();
                let new: Vec<i64> = new.iter().map(|&n| if n < 0 { numel / known } else { n }).collect();
                if checked_numel(&new) == Some(numel) {
                    let views = |strides: &[i64]| view_strides(sizes, strides, &new).is_some();
                    assert_eq!(views(strides), views(&other), "{sizes:?} {strides:?} as {new:?}");
                }
            }
            let pair = |strides: &[i64]| elementwise_strides(&[(sizes, strides)], sizes);
            if is_non_overlapping_and_dense(sizes, strides) || !sizes.contains(&1) {
                assert_eq!(pair(strides), pair(&other), "{sizes:?} {strides:?}");
            }
        }
    }

    #[test]
    fn results_lie_as_their_operands_do() {
        // Strides of torch.add's result on operands of these layouts.
        let strides = |operands: &[(&[i64], &[i64])], sizes: &[i64]| elementwise_strides(operands, sizes).to_vec();
        assert_eq!(strides(&[(&[2, 3], &[1, 2])], &[2, 3]), [1, 2]);
        assert_eq!(strides(&[(&[2, 3], &[1, 2]), (&[2, 3], &[3, 1])], &[2, 3]), [1, 2]);
        assert_eq!(strides(&[(&[2, 3], &[3, 1]), (&[2, 3], &[1, 2])], &[2, 3]), [3, 1]);
        assert_eq!(strides(&[(&[3], &[1]), (&[2, 3], &[1, 2])], &[2, 3]), [1, 2]);
        assert_eq!(strides(&[(&[2, 3], &[0, 1])], &[2, 3]), [3, 1]);
        assert_eq!(strides(&[(&[2, 3], &[1, 4])], &[2, 3]), [1, 2]);
        assert_eq!(strides(&[(&[4, 1], &[1, 4]), (&[], &[])], &[4, 1]), [1, 4]);
    }

    #[test]
    fn broadcasting() {
        assert_eq!(broadcast(&[3, 1], &[2, 1, 4]).as_deref(), Some(&[2, 3, 4][..]));
        assert_eq!(broadcast(&[], &[0]).as_deref(), Some(&[0][..]));
        assert_eq!(broadcast(&[3], &[2]), None);
        assert_eq!(
            expand_strides(&[3, 1], &[1, 1], &[2, 3, 4]).as_deref(),
            Some(&[0, 1, 0][..])
        );
    }

    #[test]
    fn views_need_compatible_strides() {
        // The expected strides are those of torch's `view` on the same layouts.
        assert_eq!(
            view_strides(&[2, 3, 4], &[12, 4, 1], &[6, 4]).as_deref(),
            Some(&[4, 1][..])
        );
        assert_eq!(
            view_strides(&[2, 3, 4], &[12, 4, 1], &[2, 2, 6]).as_deref(),
            Some(&[12, 6, 1][..])
        );
        assert_eq!(view_strides(&[3, 2], &[1, 3], &[6]), None);
        assert_eq!(
            view_strides(&[3, 2], &[1, 3], &[3, 1, 2]).as_deref(),
            Some(&[1, 6, 3][..])
        );
        assert_eq!(view_strides(&[], &[], &[1, 1]).as_deref(), Some(&[1, 1][..]));
        assert_eq!(view_strides(&[1, 4], &[77, 2], &[4]).as_deref(), Some(&[2][..]));
        assert_eq!(view_strides(&[2, 4], &[8, 2], &[8]).as_deref(), Some(&[2][..]));
        assert_eq!(view_strides(&[2, 4], &[9, 2], &[8]), None);
    }
}
