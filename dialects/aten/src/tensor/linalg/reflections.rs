//! QR decomposition by Householder reflections, explicitly or in LAPACK's packed form.

use super::decompositions::{Batch, Matrix, by_columns, elements, words};
use frazil_runtime::Tensor;
use frazil_runtime::entry::{Entry, Row};
use frazil_runtime::op::{Call, OpError, Results};
use num_complex::Complex64;

pub(super) const ENTRIES: &[Row] = &[
    ("aten::linalg_qr", Entry::kernel(qr).fixed_sizes()),
    ("aten::geqrf", Entry::kernel(packed).fixed_sizes()),
];

/// Makes a matrix upper triangular. Returns the reflections 1 - tau v vᴴ, with LAPACK's signs; a reflection with tau = 0 is the identity.
fn reflected(r: &mut Matrix) -> Vec<(Vec<Complex64>, Complex64)> {
    let m = r.nrows();
    let mut reflections = Vec::new();
    for c in 0..m.min(r.ncols()) {
        let alpha = r[(c, c)];
        let below: f64 = (c + 1..m).map(|i| r[(i, c)].norm_sqr()).sum();
        let mut v = vec![Complex64::ZERO; m];
        v[c] = Complex64::ONE;
        if below == 0.0 && alpha.im == 0.0 {
            reflections.push((v, Complex64::ZERO));
            continue;
        }
        let beta = -(alpha.norm_sqr() + below).sqrt().copysign(alpha.re);
        let tau = (Complex64::new(beta, 0.0) - alpha) / beta;
        for i in c + 1..m {
            v[i] = r[(i, c)] / (alpha - beta);
        }
        reflect(r, &v, tau.conj());
        reflections.push((v, tau));
    }
    reflections
}

/// Returns the triangular matrix with the vectors of the reflections below it, and their factors tau.
fn packed(call: &Call<'_>) -> Result<Results, OpError> {
    let batch = Batch::of(call)?;
    let (mut values, mut taus) = (Vec::new(), Vec::new());
    for matrix in &batch.matrices {
        let mut m = matrix.clone();
        for (c, (v, tau)) in reflected(&mut m).into_iter().enumerate() {
            for (i, x) in v.into_iter().enumerate().skip(c + 1) {
                m[(i, c)] = x;
            }
            taus.push(tau);
        }
        values.extend(elements(&m));
    }
    let a = batch.tensor(batch.dtype, &[batch.rows, batch.columns], &values)?;
    let tau = batch.tensor(batch.dtype, &[batch.rows.min(batch.columns)], &taus)?;
    Ok(smallvec::smallvec![by_columns(&a)?.into(), tau.into()])
}

/// Computes Q and R by Householder reflections, with LAPACK's signs.
fn qr(call: &Call<'_>) -> Result<Results, OpError> {
    let batch = Batch::of(call)?;
    let (m, n) = (batch.rows as usize, batch.columns as usize);
    let mode = call.text(1)?;
    let complete = mode == "complete";
    if !complete && mode != "reduced" && mode != "r" {
        return Err(words(
            call,
            &format!("received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"),
        ));
    }
    let k = m.min(n);
    let kept = if complete { m } else { k };
    let (mut qs, mut rs) = (Vec::new(), Vec::new());
    for matrix in &batch.matrices {
        let mut r = matrix.clone();
        let reflections = reflected(&mut r);
        let mut q = Matrix::from_fn(m, kept, |i, j| if i == j { Complex64::ONE } else { Complex64::ZERO });
        for (v, tau) in reflections.iter().rev() {
            reflect(&mut q, v, *tau);
        }
        let upper = Matrix::from_fn(kept, n, |i, j| if i <= j { r[(i, j)] } else { Complex64::ZERO });
        qs.extend(elements(&q));
        rs.extend(elements(&upper));
    }
    let (rows, kept) = (batch.rows, kept as i64);
    let q = if mode == "r" {
        Tensor::zeros(batch.dtype, &[0])?
    } else {
        by_columns(&batch.tensor(batch.dtype, &[rows, kept], &qs)?)?
    };
    let r = by_columns(&batch.tensor(batch.dtype, &[kept, batch.columns], &rs)?)?;
    Ok(smallvec::smallvec![q.into(), r.into()])
}

/// Applies a Householder reflection to `m`: m ← (1 - tau v vᴴ) m.
fn reflect(m: &mut Matrix, v: &[Complex64], tau: Complex64) {
    for c in 0..m.ncols() {
        let overlap: Complex64 = v.iter().enumerate().map(|(r, v)| v.conj() * m[(r, c)]).sum();
        for (r, v) in v.iter().enumerate() {
            m[(r, c)] -= tau * v * overlap;
        }
    }
}
