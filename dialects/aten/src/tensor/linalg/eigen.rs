//! Eigenvalues and eigenvectors of general matrices, in no particular order.

use super::decompositions::{Batch, Matrix, PATIENCE, by_columns, elements, is_finite, not_converged, words};
use frazil_runtime::entry::{Entry, Row};
use frazil_runtime::op::{Call, OpError, Results, one};
use frazil_runtime::promote::complex_of;
use nalgebra::Schur;
use num_complex::Complex64;

pub(super) const ENTRIES: &[Row] = &[
    ("aten::linalg_eigvals", Entry::kernel(eigenvalues).fixed_sizes()),
    ("aten::linalg_eig", Entry::kernel(eigen).fixed_sizes()),
];

/// Returns the unitary and the triangular factor of a matrix, and the order in which the diagonal of the latter is
/// returned.
fn factors(call: &Call<'_>, m: &Matrix, real: bool) -> Result<(Matrix, Matrix, Vec<usize>), OpError> {
    if !is_finite(m) {
        return Err(words(call, "input tensor should not contain infs or NaNs."));
    }
    let schur = Schur::try_new(m.clone(), f64::EPSILON, PATIENCE).ok_or_else(|| not_converged(call))?;
    let (q, t) = schur.unpack();
    let mut order: Vec<usize> = (0..m.nrows()).collect();
    // As in LAPACK, the eigenvalue with the positive imaginary part is the first of a conjugate pair.
    if real {
        for pair in 1..order.len() {
            let (a, b) = (t[(order[pair - 1], order[pair - 1])], t[(order[pair], order[pair])]);
            if a.im < 0.0 && (a - b.conj()).norm() <= 1e-9 * a.norm() {
                order.swap(pair - 1, pair);
            }
        }
    }
    Ok((q, t, order))
}

fn eigenvalues(call: &Call<'_>) -> Result<Results, OpError> {
    let batch = Batch::of(call)?;
    let of = |m: &Matrix| {
        if m.is_empty() {
            return Ok(Vec::new());
        }
        let (_, t, order) = factors(call, m, !batch.dtype.is_complex())?;
        Ok(order.into_iter().map(|i| t[(i, i)]).collect())
    };
    one(batch.square(call)?.mapped(complex_of(batch.dtype), &[batch.rows], of)?)
}

/// Implements `linalg_eig`: eigenvalues, and eigenvectors of length one whose largest component is real.
fn eigen(call: &Call<'_>) -> Result<Results, OpError> {
    let batch = Batch::of(call)?;
    batch.square(call)?;
    let (mut values, mut vectors) = (Vec::new(), Vec::new());
    for m in batch.matrices.iter().filter(|m| !m.is_empty()) {
        let (q, t, order) = factors(call, m, !batch.dtype.is_complex())?;
        let mut columns = Matrix::zeros(m.nrows(), m.ncols());
        for (c, &i) in order.iter().enumerate() {
            values.push(t[(i, i)]);
            columns.set_column(c, &vector(&q, &t, i));
        }
        vectors.extend(elements(&columns));
    }
    let dtype = complex_of(batch.dtype);
    let values = batch.tensor(dtype, &[batch.rows], &values)?;
    let vectors = batch.tensor(dtype, &[batch.rows, batch.columns], &vectors)?;
    Ok(smallvec::smallvec![values.into(), by_columns(&vectors)?.into()])
}

/// Returns the eigenvector for eigenvalue `i` of q t qᴴ, by substitution in the triangular factor.
fn vector(q: &Matrix, t: &Matrix, i: usize) -> nalgebra::DVector<Complex64> {
    let value = t[(i, i)];
    let smallest = f64::EPSILON * t.iter().map(|x| x.norm()).fold(f64::MIN_POSITIVE, f64::max);
    let mut y = nalgebra::DVector::zeros(t.nrows());
    y[i] = Complex64::ONE;
    for j in (0..i).rev() {
        let known: Complex64 = (j + 1..=i).map(|k| t[(j, k)] * y[k]).sum();
        let mut gap = t[(j, j)] - value;
        if gap.norm() < smallest {
            gap = Complex64::new(smallest, 0.0);
        }
        y[j] = -known / gap;
    }
    let v = q * y;
    let largest = v
        .iter()
        .copied()
        .fold(Complex64::ZERO, |a, b| if b.norm() > a.norm() { b } else { a });
    let turn = if largest == Complex64::ZERO {
        Complex64::ONE
    } else {
        largest.conj() / largest.norm()
    };
    let length = v.norm();
    v * (turn / length)
}
