//! Arithmetic on affine maps and accesses: composition, ranges, strides.

use frazil_ir::contiguous_strides;
use frazil_runtime::structured::{Access, Affine, Dims, OutOfBounds};

/// The greatest offset of an access. Sums of a few of them do not overflow.
const MAX_REACH: i64 = 1 << 60;

/// Returns `outer` with its index `i` replaced by `inner[i]`, a map from a domain of `rank` loops; `None` if that overflows.
pub fn compose(outer: &Affine, inner: &[Affine], rank: usize) -> Option<Affine> {
    let mut out = Affine::constant(rank, outer.offset);
    for (&c, map) in outer.coefficients.iter().zip(inner) {
        if c == 0 {
            continue;
        }
        out.offset = out.offset.checked_add(c.checked_mul(map.offset)?)?;
        for (o, &m) in out.coefficients.iter_mut().zip(&map.coefficients) {
            *o = o.checked_add(c.checked_mul(m)?)?;
        }
    }
    Some(out)
}

/// Returns a bound on the coordinates and the offset, in elements, of an access by `map` to a dense tensor of `sizes` over a domain of `extents`; `None` if
/// the bound is too large: arithmetic on the access could overflow.
///
/// All accesses of a valid graph have such a bound. Arithmetic on their maps, on parts of them, and on [`linear`] of them does not overflow.
pub fn reach(map: &[Affine], sizes: &[i64], extents: &[i64]) -> Option<i64> {
    let (mut total, mut stride) = (0i64, 1i64);
    for (m, &size) in map.iter().zip(sizes).rev() {
        let mut coordinate = m.offset.checked_abs()?;
        for (&c, &n) in m.coefficients.iter().zip(extents) {
            coordinate = coordinate.checked_add(c.checked_abs()?.checked_mul(n.max(1))?)?;
        }
        total = total.checked_add(coordinate.checked_mul(stride)?)?;
        stride = stride.checked_mul(size.max(1))?;
    }
    (total <= MAX_REACH).then_some(total)
}

/// Returns the least and the greatest value of `map` over a domain of `extents`, which are all positive.
pub fn range(map: &Affine, extents: &[i64]) -> (i64, i64) {
    let (mut low, mut high) = (map.offset, map.offset);
    for (&c, &n) in map.coefficients.iter().zip(extents) {
        let reach = c * (n - 1).max(0);
        if reach < 0 {
            low += reach;
        } else {
            high += reach;
        }
    }
    (low, high)
}

/// Returns whether `map` stays in `0..extent` over the domain.
pub fn stays_within(map: &Affine, extents: &[i64], extent: i64) -> bool {
    let (low, high) = range(map, extents);
    low >= 0 && high < extent
}

/// Returns the loop `l` if `map` is `index[l]`.
pub fn as_loop(map: &Affine) -> Option<usize> {
    let mut found = None;
    for (l, &c) in map.coefficients.iter().enumerate() {
        match (c, found) {
            (0, _) => {}
            (1, None) => found = Some(l),
            _ => return None,
        }
    }
    found.filter(|_| map.offset == 0)
}

/// Returns whether the access reads the tensor at the loop indices: coordinate `i` of `access` is the index of loop `i` for each of `sizes`, the extents of
/// the first loops. For dimensions of extent 1, the coordinate may also be constant 0.
pub fn is_identity(access: &Access, sizes: &[i64], domain: &[i64]) -> bool {
    access.map.len() == sizes.len()
        && domain.len() >= sizes.len()
        && access.map.iter().zip(sizes).enumerate().all(|(i, (map, &size))| {
            domain[i] == size
                && (as_loop(map) == Some(i)
                    || (size == 1 && map.offset == 0 && only_over_unit_loops(&map.coefficients, domain)))
        })
}

/// Returns whether every loop with a coefficient has extent 1.
fn only_over_unit_loops(coefficients: &[i64], domain: &[i64]) -> bool {
    coefficients.iter().zip(domain).all(|(&c, &n)| c == 0 || n == 1)
}

/// The addresses of an access to a dense row-major tensor, in elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strided {
    /// Elements that each loop advances by; 0 for loops of extent 1.
    pub strides: Dims,
    /// The element that is read in the first iteration.
    pub offset: i64,
}

impl Strided {
    /// Composes the access with the row-major strides of `sizes`, the sizes of the tensor that it reads.
    pub fn of(access: &Access, sizes: &[i64], domain: &[i64]) -> Strided {
        let map = linear(&access.map, sizes, domain.len());
        let strides = map
            .coefficients
            .iter()
            .zip(domain)
            .map(|(&c, &n)| if n == 1 { 0 } else { c });
        Strided {
            strides: strides.collect(),
            offset: map.offset,
        }
    }

    /// Returns whether the access does not depend on the loops.
    pub fn is_uniform(&self) -> bool {
        self.strides.iter().all(|&s| s == 0)
    }
}

/// Returns the element number of coordinates `map` in a dense row-major tensor of `sizes`, as a function of `rank` loops. The access has a
/// [`reach`].
pub fn linear(map: &[Affine], sizes: &[i64], rank: usize) -> Affine {
    let strides = contiguous_strides(sizes);
    let mut out = Affine::constant(rank, 0);
    for (&c, map) in strides.iter().zip(map) {
        out.offset += c * map.offset;
        for (o, &m) in out.coefficients.iter_mut().zip(&map.coefficients) {
            *o += c * m;
        }
    }
    out
}

/// Returns whether the access can be out of bounds in a tensor of `sizes`.
pub fn can_leave(access: &Access, sizes: &[i64], domain: &[i64]) -> bool {
    access.out_of_bounds != OutOfBounds::Never
        && access
            .map
            .iter()
            .zip(sizes)
            .any(|(map, &size)| !stays_within(map, domain, size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use frazil_runtime::structured::TensorId;
    use smallvec::smallvec;

    fn affine(coefficients: &[i64], offset: i64) -> Affine {
        Affine {
            coefficients: coefficients.into(),
            offset,
        }
    }

    #[test]
    fn composition_substitutes() {
        // y = 2 i + 1 with i = 3 a - b + 4
        let c = compose(&affine(&[2], 1), &[affine(&[3, -1], 4)], 2).unwrap();
        assert_eq!(c, affine(&[6, -2], 9));
        assert_eq!(range(&c, &[2, 3]), (5, 15));
        assert!(stays_within(&c, &[2, 3], 16) && !stays_within(&c, &[2, 3], 15));
    }

    #[test]
    fn overflow_is_no_map() {
        let far = affine(&[1 << 62], 0);
        assert_eq!(compose(&affine(&[4], 0), std::slice::from_ref(&far), 1), None);
        assert_eq!(reach(&[far], &[7], &[1]), None);
        assert_eq!(reach(&[affine(&[0], i64::MIN)], &[7], &[1]), None);
        assert_eq!(
            reach(&[affine(&[1, 0], 0), affine(&[0, 2], -1)], &[4, 10], &[4, 5]),
            Some(51)
        );
    }

    #[test]
    fn strides_of_an_access() {
        let access = Access {
            tensor: TensorId::new(0),
            map: smallvec![affine(&[1, 0, 0], 0), affine(&[0, 0, 2], -1)],
            out_of_bounds: OutOfBounds::Never,
        };
        let s = Strided::of(&access, &[4, 10], &[4, 7, 5]);
        assert_eq!(s.strides.as_slice(), [10, 0, 2]);
        assert_eq!(s.offset, -1);
        assert!(!is_identity(&access, &[4, 10], &[4, 10, 5]));
    }
}
