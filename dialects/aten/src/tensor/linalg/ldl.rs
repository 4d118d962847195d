//! LDL factorisation of symmetric and Hermitian matrices that need not be positive definite, and the solution of systems with it. L and D, which has blocks of
//! one or two rows, are stored in one matrix, with LAPACK's row exchanges.

use super::decompositions::{Batch, Matrix, by_columns, elements, words};
use frazil_ir::DType;
use frazil_runtime::Tensor;
use frazil_runtime::entry::{Entry, ResultLayout, Row};
use frazil_runtime::op::{Call, OpError, Results, one};
use num_complex::Complex64;

pub(super) const ENTRIES: &[Row] = &[
    (
        "aten::linalg_ldl_factor",
        Entry::kernel(|c| Ok(factor(c, c.flag(1)?, true)?.into_iter().take(2).collect())).fixed_sizes(),
    ),
    (
        "aten::linalg_ldl_factor_ex",
        Entry::kernel(|c| factor(c, c.flag(1)?, c.flag(2)?)).fixed_sizes(),
    ),
    (
        "aten::linalg_ldl_solve",
        Entry::kernel(solve).fixed_sizes().layout(ResultLayout::ColumnMajor),
    ),
];

/// Computes the LDL factorisation: L and D in one matrix, the row exchanges (from 1; both rows of a block have the same negative number), and the number of
/// the first zero block of D.
fn factor(call: &Call<'_>, hermitian: bool, check: bool) -> Result<Results, OpError> {
    let batch = Batch::of(call)?;
    batch.square(call)?;
    let hermitian = hermitian && batch.dtype.is_complex();
    let (mut values, mut pivots, mut infos) = (Vec::new(), Vec::new(), Vec::new());
    for matrix in &batch.matrices {
        let mut m = matrix.lower_triangle();
        let (exchanged, info) = factorise(&mut m, hermitian);
        if check && info != 0 {
            return Err(words(
                call,
                &format!("The diagonal element {info} of D is exactly zero: the factorization cannot be used to solve"),
            ));
        }
        values.extend(elements(&m));
        pivots.extend(exchanged);
        infos.push(info);
    }
    let sizes = [&batch.lead[..], &[batch.rows]].concat();
    let ld = batch.tensor(batch.dtype, &[batch.rows, batch.columns], &values)?;
    Ok(smallvec::smallvec![
        by_columns(&ld)?.into(),
        Tensor::from_i64(&pivots, &sizes)?.to_dtype(DType::Int)?.into(),
        batch.infos(&infos)?.into()
    ])
}

/// Returns the magnitude by which elements are compared in the search for a pivot.
fn size(x: Complex64) -> f64 {
    x.l1_norm()
}

/// Factorises a symmetric or Hermitian matrix by Bunch-Kaufman pivoting on the lower triangle, column by column.
fn factorise(a: &mut Matrix, hermitian: bool) -> (Vec<i64>, i64) {
    let n = a.nrows();
    let alpha = (1.0 + 17f64.sqrt()) / 8.0;
    let turned = |x: Complex64| if hermitian { x.conj() } else { x };
    let (mut pivots, mut info, mut k) = (vec![0i64; n], 0i64, 0);
    while k < n {
        let own = if hermitian { a[(k, k)].re.abs() } else { size(a[(k, k)]) };
        let below = (k + 1..n).fold((k, 0.0), |best, i| {
            if size(a[(i, k)]) > best.1 {
                (i, size(a[(i, k)]))
            } else {
                best
            }
        });
        let (row, largest) = below;
        let (mut with, mut step) = (k, 1);
        if own.max(largest) == 0.0 {
            info = if info == 0 { k as i64 + 1 } else { info };
            pivots[k] = k as i64 + 1;
            k += 1;
            continue;
        }
        if own < alpha * largest {
            let left = (k..row).map(|j| size(a[(row, j)]));
            let across = left.chain((row + 1..n).map(|i| size(a[(i, row)]))).fold(0.0, f64::max);
            let there = if hermitian {
                a[(row, row)].re.abs()
            } else {
                size(a[(row, row)])
            };
            if own < alpha * largest * (largest / across) {
                with = row;
                step = if there >= alpha * across { 1 } else { 2 };
            }
        }
        let last = k + step - 1;
        if with != last {
            exchange(a, last, with, turned);
            if step == 2 {
                let (x, y) = (a[(k + 1, k)], a[(with, k)]);
                (a[(k + 1, k)], a[(with, k)]) = (y, x);
            }
        }
        if step == 1 {
            let pivot = if hermitian {
                Complex64::new(a[(k, k)].re, 0.0)
            } else {
                a[(k, k)]
            };
            a[(k, k)] = pivot;
            for j in k + 1..n {
                let other = turned(a[(j, k)]);
                for i in j..n {
                    let product = a[(i, k)] * other / pivot;
                    a[(i, j)] -= product;
                }
            }
            for i in k + 1..n {
                a[(i, k)] /= pivot;
            }
            pivots[k] = with as i64 + 1;
        } else {
            eliminate_pair(a, k, turned);
            pivots[k] = -(with as i64 + 1);
            pivots[k + 1] = pivots[k];
        }
        if hermitian {
            for i in k..n {
                a[(i, i)].im = 0.0;
            }
        }
        k += step;
    }
    (pivots, info)
}

/// Exchanges rows and columns `p < q` of the remaining matrix, of which only the lower triangle is stored.
fn exchange(a: &mut Matrix, p: usize, q: usize, turned: impl Fn(Complex64) -> Complex64) {
    let n = a.nrows();
    for i in q + 1..n {
        let (x, y) = (a[(i, p)], a[(i, q)]);
        (a[(i, p)], a[(i, q)]) = (y, x);
    }
    for i in p + 1..q {
        let (x, y) = (a[(i, p)], a[(q, i)]);
        (a[(i, p)], a[(q, i)]) = (turned(y), turned(x));
    }
    a[(q, p)] = turned(a[(q, p)]);
    let (x, y) = (a[(p, p)], a[(q, q)]);
    (a[(p, p)], a[(q, q)]) = (y, x);
}

/// Subtracts multiples of the rows `k` and `k + 1`, a 2x2 pivot, from the rows below them.
fn eliminate_pair(a: &mut Matrix, k: usize, turned: impl Fn(Complex64) -> Complex64) {
    let n = a.nrows();
    let (first, second, off) = (a[(k, k)], a[(k + 1, k + 1)], a[(k + 1, k)]);
    let determinant = first * second - off * turned(off);
    // The rows below times the inverse of the block.
    let weights: Vec<(Complex64, Complex64)> = (k + 2..n)
        .map(|j| {
            let (x, y) = (a[(j, k)], a[(j, k + 1)]);
            (
                (second * x - off * y) / determinant,
                (first * y - turned(off) * x) / determinant,
            )
        })
        .collect();
    for (j, &(x, y)) in (k + 2..n).zip(&weights) {
        for i in j..n {
            let product = a[(i, k)] * turned(x) + a[(i, k + 1)] * turned(y);
            a[(i, j)] -= product;
        }
    }
    for (j, (x, y)) in (k + 2..n).zip(weights) {
        a[(j, k)] = x;
        a[(j, k + 1)] = y;
    }
}

/// Implements an operator with the arguments `(LD, pivots, B, hermitian)`: solves L D Lᵀ x = B, or the same with the
/// adjoint of L.
fn solve(call: &Call<'_>) -> Result<Results, OpError> {
    let (factors, right) = (call.tensor(0)?, call.tensor(2)?);
    let pivots = call.tensor(1)?;
    if factors.dim() < 2 || right.dim() < 2 {
        return Err(words(call, "LD and B should have at least 2 dimensions"));
    }
    if factors.dtype() != right.dtype() || !matches!(pivots.dtype(), DType::Int | DType::Long) {
        return Err(words(call, "Expected B to have the dtype of LD, and integer pivots"));
    }
    let (n, shape) = (
        factors.sizes()[factors.dim() - 1],
        &factors.sizes()[..factors.dim() - 1],
    );
    if pivots.sizes() != shape || right.sizes()[right.dim() - 2] != n {
        return Err(words(
            call,
            "Expected as many pivots and as many rows of B as LD has rows",
        ));
    }
    let (a, b) = Batch::broadcast(call, &factors, &right)?;
    a.square(call)?;
    let hermitian = call.flag(3)? && a.dtype.is_complex();
    let sizes = [&a.lead[..], &[n]].concat();
    let pivots = pivots.expand(&sizes)?.to_i64_vec();
    let mut values = Vec::new();
    for (i, (factors, right)) in a.matrices.iter().zip(&b.matrices).enumerate() {
        let mut x = right.clone();
        let own = pivots.get(i * n as usize..(i + 1) * n as usize).unwrap_or(&[]);
        if own.iter().any(|p| !(1..=n as u64).contains(&p.unsigned_abs())) {
            return Err(words(call, "a pivot is not a row"));
        }
        substitute(factors, own, &mut x, hermitian);
        values.extend(elements(&x));
    }
    one(b.tensor(b.dtype, &[b.rows, b.columns], &values)?)
}

fn substitute(a: &Matrix, pivots: &[i64], x: &mut Matrix, hermitian: bool) {
    let n = a.nrows();
    let turned = |v: Complex64| if hermitian { v.conj() } else { v };
    let mut k = 0;
    while k < n {
        let pair = pivots[k] < 0 && k + 1 < n;
        let last = if pair { k + 1 } else { k };
        x.swap_rows(last, pivots[k].unsigned_abs() as usize - 1);
        for c in 0..x.ncols() {
            for i in last + 1..n {
                let known: Complex64 = (k..=last).map(|j| a[(i, j)] * x[(j, c)]).sum();
                x[(i, c)] -= known;
            }
            if pair {
                let (first, second, off) = (a[(k, k)], a[(k + 1, k + 1)], a[(k + 1, k)]);
                let determinant = first * second - off * turned(off);
                let (p, q) = (x[(k, c)], x[(k + 1, c)]);
                x[(k, c)] = (second * p - turned(off) * q) / determinant;
                x[(k + 1, c)] = (first * q - off * p) / determinant;
            } else {
                x[(k, c)] /= a[(k, k)];
            }
        }
        k = last + 1;
    }
    let mut end = n;
    while end > 0 {
        let last = end - 1;
        let first = if pivots[last] < 0 && last > 0 { last - 1 } else { last };
        for c in 0..x.ncols() {
            for j in first..=last {
                let known: Complex64 = (last + 1..n).map(|i| turned(a[(i, j)]) * x[(i, c)]).sum();
                x[(j, c)] -= known;
            }
        }
        x.swap_rows(last, pivots[last].unsigned_abs() as usize - 1);
        end = first;
    }
}
