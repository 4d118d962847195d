//! A bounds-checked interface to the `gemm` crate.

use bytemuck::Pod;
use std::ops::{Add, Mul};

/// A matrix inside a slice: element (r, c) is at `offset + r * row_stride + c * column_stride`, in elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Matrix {
    pub offset: i64,
    pub row_stride: i64,
    pub column_stride: i64,
}

impl Matrix {
    /// Returns the transposed matrix.
    pub(super) fn transposed(self) -> Matrix {
        Matrix {
            row_stride: self.column_stride,
            column_stride: self.row_stride,
            ..self
        }
    }

    /// Returns true if all `rows` x `columns` elements are inside a slice of `len` elements.
    fn fits(&self, rows: usize, columns: usize, len: usize) -> bool {
        let reach = |n: usize, stride: i64| i64::try_from(n - 1).ok().and_then(|n| n.checked_mul(stride));
        let Some((r, c)) = reach(rows, self.row_stride).zip(reach(columns, self.column_stride)) else {
            return false;
        };
        let corners = [
            Some(self.offset),
            self.offset.checked_add(r),
            self.offset.checked_add(c),
        ]
        .into_iter()
        .chain([self.offset.checked_add(r).and_then(|x| x.checked_add(c))]);
        corners
            .into_iter()
            .all(|at| at.is_some_and(|at| at >= 0 && (at as u64) < len as u64))
    }
}

/// A float type that the `gemm` crate supports.
pub(super) trait GemmFloat: Pod + Send + Sync + PartialEq + Add<Output = Self> + Mul<Output = Self> {
    /// The value 0.
    const ZERO: Self;
    /// The value 1.
    const ONE: Self;
}

impl GemmFloat for f32 {
    const ZERO: f32 = 0.0;
    const ONE: f32 = 1.0;
}

impl GemmFloat for f64 {
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;
}

/// Computes `dst += lhs * rhs` with `dst` m x n, `lhs` m x k, `rhs` k x n. Returns false and does nothing if a matrix is not inside its slice, or elements of
/// `dst` overlap.
pub(super) fn gemm<T: GemmFloat>(
    (m, n, k): (usize, usize, usize),
    dst: (&mut [T], Matrix),
    lhs: (&[T], Matrix),
    rhs: (&[T], Matrix),
    threads: bool,
) -> bool {
    if m == 0 || n == 0 {
        return true;
    }
    let distinct = {
        let (r, c) = (dst.1.row_stride.unsigned_abs(), dst.1.column_stride.unsigned_abs());
        (m == 1 || r != 0) && (n == 1 || c != 0) && (m == 1 || n == 1 || r >= c * n as u64 || c >= r * m as u64)
    };
    let readable = k == 0 || (lhs.1.fits(m, k, lhs.0.len()) && rhs.1.fits(k, n, rhs.0.len()));
    if !distinct || !readable || !dst.1.fits(m, n, dst.0.len()) {
        return false;
    }
    let parallelism = if threads {
        gemm::Parallelism::Rayon(0)
    } else {
        gemm::Parallelism::None
    };
    let at = |m: Matrix| if k == 0 { 0 } else { m.offset as usize };
    // SAFETY: the three matrices were checked above to lie inside their slices for all rows and columns (for k = 0 the
    // operands are not read), `dst` is borrowed mutably and so overlaps neither operand, and its elements are distinct.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            dst.0.as_mut_ptr().add(dst.1.offset as usize),
            dst.1.column_stride as isize,
            dst.1.row_stride as isize,
            true,
            lhs.0.as_ptr().add(at(lhs.1)),
            lhs.1.column_stride as isize,
            lhs.1.row_stride as isize,
            rhs.0.as_ptr().add(at(rhs.1)),
            rhs.1.column_stride as isize,
            rhs.1.row_stride as isize,
            T::ONE,
            T::ONE,
            false,
            false,
            false,
            parallelism,
        );
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_and_bounds() {
        let row = |offset, columns| Matrix {
            offset,
            row_stride: columns,
            column_stride: 1,
        };
        let (a, b) = ([1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0f32, 0.0, 0.0, 1.0, 1.0, 1.0]);
        let mut c = [0.0f32; 4];
        assert!(gemm(
            (2, 2, 3),
            (&mut c, row(0, 2)),
            (&a, row(0, 3)),
            (&b, row(0, 2)),
            false
        ));
        assert_eq!(c, [4.0, 5.0, 10.0, 11.0]);
        c = [0.0; 4];
        assert!(!gemm(
            (2, 2, 3),
            (&mut c, row(1, 2)),
            (&a, row(0, 3)),
            (&b, row(0, 2)),
            false
        ));
        assert!(!gemm(
            (2, 2, 4),
            (&mut c, row(0, 2)),
            (&a, row(0, 3)),
            (&b, row(0, 2)),
            false
        ));
        assert!(!gemm(
            (2, 2, 3),
            (&mut c, row(0, 1)),
            (&a, row(0, 3)),
            (&b, row(0, 2)),
            false
        ));
        assert!(gemm(
            (2, 2, 2),
            (&mut c, row(0, 2)),
            (&[-0.0; 4], row(0, 2)),
            (&b, row(2, 2)),
            false
        ));
        assert_eq!(c.map(f32::to_bits), [0; 4]);
        assert!(gemm(
            (2, 2, 0),
            (&mut c, row(0, 2)),
            (&[], row(0, 3)),
            (&[], row(0, 2)),
            false
        ));
        assert_eq!(c, [0.0; 4]);
    }
}
