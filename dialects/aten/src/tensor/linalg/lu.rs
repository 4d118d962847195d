//! LU factorisation with row exchanges: L and U in a single matrix as in LAPACK, and the unpacking of that matrix.

use super::decompositions::{Batch, Matrix, by_columns, elements, words};
use frazil_ir::DType;
use frazil_runtime::Tensor;
use frazil_runtime::entry::{Entry, Row};
use frazil_runtime::op::{Call, OpError, Results};
use num_complex::Complex64;

pub(super) const ENTRIES: &[Row] = &[
    ("aten::linalg_lu_factor_ex", Entry::kernel(factor).fixed_sizes()),
    ("aten::lu_unpack", Entry::kernel(unpack).fixed_sizes()),
];

/// Implements an operator with the arguments `(A, pivot, check_errors)`. Returns the factors, for each row the row that it was exchanged with (from 1), and the
/// number of the first pivot that is zero.
fn factor(call: &Call<'_>) -> Result<Results, OpError> {
    let batch = Batch::of(call)?;
    if !call.flag(1)? {
        return Err(words(call, "LU without pivoting is not implemented on the CPU"));
    }
    let count = batch.rows.min(batch.columns);
    let (mut values, mut pivots, mut infos) = (Vec::new(), Vec::new(), Vec::new());
    for m in &batch.matrices {
        let mut m = m.clone();
        let (exchanged, info) = eliminate(&mut m);
        if call.flag(2)? && info != 0 {
            let text = format!("U[{info},{info}] is zero and using it on lu_solve would result in a division by zero.");
            return Err(words(call, &text));
        }
        values.extend(elements(&m));
        pivots.extend(exchanged);
        infos.push(info);
    }
    let sizes = [&batch.lead[..], &[count]].concat();
    let pivots = Tensor::from_i64(&pivots, &sizes)?.to_dtype(DType::Int)?;
    let lu = batch.tensor(batch.dtype, &[batch.rows, batch.columns], &values)?;
    Ok(smallvec::smallvec![
        by_columns(&lu)?.into(),
        pivots.into(),
        batch.infos(&infos)?.into()
    ])
}

/// Replaces a matrix by its LU factors. Returns the pivots and LAPACK's status code.
fn eliminate(m: &mut Matrix) -> (Vec<i64>, i64) {
    let mut exchanged = Vec::new();
    let mut info = 0;
    for k in 0..m.nrows().min(m.ncols()) {
        let mut best = k;
        for r in k + 1..m.nrows() {
            if m[(r, k)].l1_norm() > m[(best, k)].l1_norm() {
                best = r;
            }
        }
        exchanged.push(best as i64 + 1);
        let pivot = m[(best, k)];
        if pivot == Complex64::ZERO {
            if info == 0 {
                info = k as i64 + 1;
            }
            continue;
        }
        m.swap_rows(k, best);
        for r in k + 1..m.nrows() {
            m[(r, k)] /= pivot;
            let factor = m[(r, k)];
            for c in k + 1..m.ncols() {
                let above = m[(k, c)];
                m[(r, c)] -= factor * above;
            }
        }
    }
    (exchanged, info)
}

/// Implements an operator with the arguments `(LU, pivots, unpack_data, unpack_pivots)`. Returns P, L and U; parts that
/// are not requested are empty.
fn unpack(call: &Call<'_>) -> Result<Results, OpError> {
    let batch = Batch::of(call)?;
    let (rows, columns) = (batch.rows, batch.columns);
    let count = rows.min(columns);
    let pivots = call.tensor(1)?;
    let wanted = [&batch.lead[..], &[count]].concat();
    if pivots.dtype() != DType::Int || pivots.sizes() != wanted.as_slice() {
        return Err(words(
            call,
            "LU_pivots is expected to be a contiguous tensor of torch.int32 dtype, one row of pivots a matrix",
        ));
    }
    let pivots: Vec<f64> = pivots.to_f64_vec();
    let nothing = || Tensor::zeros(batch.dtype, &[0]);
    let square = |n: i64, m: i64, f: &dyn Fn(&Matrix, usize, usize) -> Complex64| {
        batch.mapped(batch.dtype, &[n, m], |own| {
            Ok(elements(&Matrix::from_fn(n as usize, m as usize, |r, c| f(own, r, c))))
        })
    };
    let (mut l, mut u, mut p) = (nothing()?, nothing()?, nothing()?);
    if call.flag(2)? {
        l = square(rows, count, &|m, r, c| match r.cmp(&c) {
            std::cmp::Ordering::Less => Complex64::ZERO,
            std::cmp::Ordering::Equal => Complex64::ONE,
            std::cmp::Ordering::Greater => m[(r, c)],
        })?;
        u = square(count, columns, &|m, r, c| {
            if r <= c { m[(r, c)] } else { Complex64::ZERO }
        })?;
    }
    if call.flag(3)? {
        let mut values = Vec::new();
        for own in pivots.chunks(count.max(1) as usize).take(batch.matrices.len()) {
            let mut order: Vec<usize> = (0..rows as usize).collect();
            for (k, &pivot) in own.iter().enumerate() {
                let other = pivot as usize;
                if other == 0 || other > rows as usize {
                    return Err(words(call, "pivots have to be numbers of rows, from 1 on"));
                }
                order.swap(k, other - 1);
            }
            let n = rows as usize;
            let mut one = vec![Complex64::ZERO; n * n];
            for (column, row) in order.into_iter().enumerate() {
                one[row * n + column] = Complex64::ONE;
            }
            values.extend(one);
        }
        p = if count == 0 {
            square(rows, rows, &|_, r, c| Complex64::from(f64::from(u8::from(r == c))))?
        } else {
            batch.tensor(batch.dtype, &[rows, rows], &values)?
        };
    }
    Ok(smallvec::smallvec![p.into(), l.into(), u.into()])
}
