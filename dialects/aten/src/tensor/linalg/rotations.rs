//! Singular values by Jacobi rotations: slower than bidiagonalisation, but correct for matrices of any rank.

use super::decompositions::Matrix;
use num_complex::Complex64;

/// A singular value decomposition: left vectors, singular values in descending order, right vectors.
pub(super) type Decomposed = (Vec<Vec<Complex64>>, Vec<f64>, Vec<Vec<Complex64>>);

/// Computes left vectors, singular values and right vectors by Jacobi rotations of columns until all are orthogonal. Vectors for singular value zero are left
/// out.
pub(super) fn by_rotations(m: &Matrix) -> Option<Decomposed> {
    if m.nrows() < m.ncols() {
        return by_rotations(&m.adjoint()).map(|(u, values, v)| (v, values, u));
    }
    let n = m.ncols();
    let (mut a, mut v) = (m.clone(), Matrix::identity(n, n));
    let mut rotated = true;
    for _ in 0..100 {
        if !rotated {
            break;
        }
        rotated = false;
        for q in 1..n {
            for p in 0..q {
                let (alpha, beta) = (a.column(p).norm_squared(), a.column(q).norm_squared());
                let overlap: Complex64 = a
                    .column(p)
                    .iter()
                    .zip(a.column(q).iter())
                    .map(|(x, y)| x.conj() * y)
                    .sum();
                let size = overlap.norm();
                if size <= 1e-15 * (alpha * beta).sqrt() || size < f64::MIN_POSITIVE {
                    continue;
                }
                rotated = true;
                let zeta = (beta - alpha) / (2.0 * size);
                let tangent = zeta.signum() / (zeta.abs() + (1.0 + zeta * zeta).sqrt());
                let cosine = 1.0 / (1.0 + tangent * tangent).sqrt();
                let (sine, phase) = (cosine * tangent, overlap.conj() / size);
                for t in [&mut a, &mut v] {
                    for r in 0..t.nrows() {
                        let (x, y) = (t[(r, p)], t[(r, q)] * phase);
                        t[(r, p)] = x * cosine - y * sine;
                        t[(r, q)] = x * sine + y * cosine;
                    }
                }
            }
        }
    }
    if rotated {
        return None;
    }
    let values: Vec<f64> = a.column_iter().map(|c| c.norm()).collect();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| values[j].total_cmp(&values[i]));
    let least = values.iter().copied().fold(0.0, f64::max) * 1e-15;
    let kept = order.iter().filter(|&&i| values[i] > least);
    let left = kept
        .map(|&i| a.column(i).iter().map(|x| x / values[i]).collect())
        .collect();
    let right = order.iter().map(|&i| v.column(i).iter().copied().collect()).collect();
    Some((left, order.iter().map(|&i| values[i]).collect(), right))
}
