//! Decompositions of matrices, and operators that use decompositions, computed in double precision. Vectors are unique up to sign.

use super::rotations::by_rotations;
use frazil_ir::DType;
use frazil_ir::schema::AliasUse;
use frazil_runtime::Tensor;
use frazil_runtime::build::broadcast_error;
use frazil_runtime::element::ComplexDoubleElement;
use frazil_runtime::entry::{Entry, ResultLayout, Row};
use frazil_runtime::layout;
use frazil_runtime::op::{Call, OpError, Results, one};
use frazil_runtime::promote::real_of;
use nalgebra::{DMatrix, SVD, SymmetricEigen};
use num_complex::Complex64;

pub(super) type Matrix = DMatrix<Complex64>;

pub(super) const ENTRIES: &[Row] = &[
    (
        "aten::linalg_svdvals",
        Entry::kernel(|c| Ok(svd(c, false)?.into_iter().skip(1).take(1).collect())).fixed_sizes(),
    ),
    ("aten::linalg_svd", Entry::kernel(|c| svd(c, c.flag(1)?)).fixed_sizes()),
    ("aten::_linalg_svd", Entry::kernel(|c| svd(c, c.flag(1)?)).fixed_sizes()),
    ("aten::linalg_eigh", Entry::kernel(hermitian).fixed_sizes()),
    (
        "aten::linalg_eigvalsh",
        Entry::kernel(|c| Ok(hermitian(c)?.into_iter().take(1).collect())).fixed_sizes(),
    ),
    (
        "aten::linalg_inv",
        Entry::kernel(|c| Ok(inverse(c, true)?.into_iter().take(1).collect()))
            .fixed_sizes()
            .layout(ResultLayout::ColumnMajor)
            .aliases(&[("aten::inverse", AliasUse::Everywhere)]),
    ),
    (
        "aten::linalg_inv_ex",
        Entry::kernel(|c| inverse(c, c.flag(1)?)).fixed_sizes(),
    ),
    (
        "aten::linalg_det",
        Entry::kernel(|c| {
            let (batch, out) = (Batch::of(c)?, |m: &Matrix| {
                Ok(vec![if m.is_empty() { Complex64::ONE } else { m.determinant() }])
            });
            one(batch.square(c)?.mapped(batch.dtype, &[], out)?)
        })
        .fixed_sizes()
        .aliases(&[("aten::det", AliasUse::Everywhere)]),
    ),
    (
        "aten::linalg_slogdet",
        Entry::kernel(signed_logarithm)
            .fixed_sizes()
            .aliases(&[("aten::slogdet", AliasUse::Semantics)]),
    ),
    (
        "aten::linalg_solve",
        Entry::kernel(|c| Ok(solve(c, c.flag(2)?, true)?.into_iter().take(1).collect())).fixed_sizes(),
    ),
    (
        "aten::linalg_solve_ex",
        Entry::kernel(|c| solve(c, c.flag(2)?, c.flag(3)?)).fixed_sizes(),
    ),
    ("aten::linalg_solve_triangular", Entry::kernel(triangular).fixed_sizes()),
    (
        "aten::linalg_cholesky",
        Entry::kernel(|c| Ok(cholesky(c, true)?.into_iter().take(1).collect())).fixed_sizes(),
    ),
    (
        "aten::linalg_cholesky_ex",
        Entry::kernel(|c| cholesky(c, c.flag(2)?)).fixed_sizes(),
    ),
    (
        "aten::linalg_matrix_exp",
        Entry::kernel(|c| {
            let batch = Batch::of(c)?;
            let sizes = [batch.rows, batch.columns];
            one(batch
                .square(c)?
                .mapped(batch.dtype, &sizes, |m| Ok(elements(&exponential(m))))?)
        })
        .fixed_sizes()
        .aliases(&[("aten::matrix_exp", AliasUse::Everywhere)]),
    ),
];

/// Maximum number of iterations of an iterative decomposition.
pub(super) const PATIENCE: usize = 10_000;

/// A batch of matrices: the last two dimensions of a tensor.
pub(super) struct Batch {
    pub(super) dtype: DType,
    pub(super) lead: Vec<i64>,
    pub(super) rows: i64,
    pub(super) columns: i64,
    pub(super) matrices: Vec<Matrix>,
}

pub(super) fn words(call: &Call<'_>, text: &str) -> OpError {
    let name = call.ctx.name(call.schema.name);
    let name = name
        .rsplit("::")
        .next()
        .unwrap_or(name)
        .replacen("linalg_", "linalg.", 1);
    OpError::raised(format!("{name}: {text}"))
}

impl Batch {
    /// Returns argument 0 as a batch of matrices.
    pub(super) fn of(call: &Call<'_>) -> Result<Batch, OpError> {
        Batch::read(call, &call.tensor(0)?)
    }

    fn read(call: &Call<'_>, t: &Tensor) -> Result<Batch, OpError> {
        let [lead @ .., rows, columns] = t.sizes() else {
            return Err(words(call, "The input tensor A must have at least 2 dimensions."));
        };
        let dtype = t.dtype();
        let wide = matches!(
            dtype,
            DType::Float | DType::Double | DType::ComplexFloat | DType::ComplexDouble
        );
        // PyTorch notices that it cannot compute with halves when there is something to compute.
        let nothing = t.numel() == 0 && (dtype.is_floating_point() || dtype.is_complex());
        if !wide && !nothing {
            let text = format!(
                "Expected a floating point or complex tensor as input. Got {}",
                dtype.type_name()
            );
            return Err(words(call, &text));
        }
        let values: Vec<Complex64> = t.to_dtype(DType::ComplexDouble)?.to_vec();
        let count: i64 = lead.iter().product();
        let size = (rows * columns) as usize;
        let matrix = |i: i64| {
            let first = i as usize * size;
            let own = values.get(first..first + size).unwrap_or(&[]);
            Matrix::from_row_slice(*rows as usize, *columns as usize, own)
        };
        Ok(Batch {
            dtype,
            lead: lead.to_vec(),
            rows: *rows,
            columns: *columns,
            matrices: (0..count).map(matrix).collect(),
        })
    }

    /// Returns both tensors as batches of matrices, with their leading dimensions broadcast.
    pub(super) fn broadcast(call: &Call<'_>, a: &Tensor, b: &Tensor) -> Result<(Batch, Batch), OpError> {
        let split = |t: &Tensor| t.sizes().split_at(t.dim().saturating_sub(2)).0.to_vec();
        let (lead_a, lead_b) = (split(a), split(b));
        let lead = layout::broadcast(&lead_a, &lead_b).ok_or_else(|| broadcast_error(&lead_a, &lead_b))?;
        let wide = |t: &Tensor| -> Result<Batch, OpError> {
            let own = t.sizes().get(t.dim().saturating_sub(2)..).unwrap_or(&[]);
            let sizes: Vec<i64> = lead.iter().chain(own).copied().collect();
            Batch::read(call, &t.expand(&sizes)?)
        };
        Ok((wide(a)?, wide(b)?))
    }

    pub(super) fn square(&self, call: &Call<'_>) -> Result<&Batch, OpError> {
        if self.rows == self.columns {
            return Ok(self);
        }
        let (n, m) = (self.rows, self.columns);
        Err(words(
            call,
            &format!("A must be batches of square matrices, but they are {n} by {m} matrices"),
        ))
    }

    /// Returns a tensor of the results of `each` for every matrix, with `sizes` after the leading dimensions.
    pub(super) fn mapped(
        &self,
        dtype: DType,
        sizes: &[i64],
        each: impl Fn(&Matrix) -> Result<Vec<Complex64>, OpError>,
    ) -> Result<Tensor, OpError> {
        let mut values = Vec::new();
        for m in &self.matrices {
            values.extend(each(m)?);
        }
        self.tensor(dtype, sizes, &values)
    }

    pub(super) fn tensor(&self, dtype: DType, sizes: &[i64], values: &[Complex64]) -> Result<Tensor, OpError> {
        let sizes: Vec<i64> = self.lead.iter().chain(sizes).copied().collect();
        Ok(Tensor::from_elements::<ComplexDoubleElement>(values, &sizes)?.to_dtype(dtype)?)
    }

    /// Returns the tensor of LAPACK's status codes, one for each matrix: 0 for success.
    pub(super) fn infos(&self, infos: &[i64]) -> Result<Tensor, OpError> {
        Ok(Tensor::from_i64(infos, &self.lead)?.to_dtype(DType::Int)?)
    }
}

/// Returns the batch of matrices with column-major strides, as LAPACK returns it.
pub(super) fn by_columns(t: &Tensor) -> Result<Tensor, OpError> {
    Ok(t.with_strides(&layout::column_major_strides(t.sizes()))?)
}

/// Returns the elements of a matrix in row-major order.
pub(super) fn elements(m: &Matrix) -> Vec<Complex64> {
    m.transpose().iter().copied().collect()
}

fn reals(values: impl IntoIterator<Item = f64>) -> Vec<Complex64> {
    values.into_iter().map(|x| Complex64::new(x, 0.0)).collect()
}

/// Returns whether all elements are finite. Otherwise, iterations for eigenvalues may not converge.
pub(super) fn is_finite(m: &Matrix) -> bool {
    m.iter().all(|x| x.re.is_finite() && x.im.is_finite())
}

pub(super) fn not_converged(call: &Call<'_>) -> OpError {
    words(
        call,
        "The algorithm failed to converge because the input matrix contained non-finite values.",
    )
}

/// Computes U, the singular values in descending order, and Vᴴ. With `full`, U and Vᴴ are square.
fn svd(call: &Call<'_>, full: bool) -> Result<Results, OpError> {
    let batch = Batch::of(call)?;
    let (m, n) = (batch.rows, batch.columns);
    let k = m.min(n);
    let (wide_u, wide_v) = if full { (m, n) } else { (k, k) };
    let (mut us, mut values, mut vs) = (Vec::new(), Vec::new(), Vec::new());
    for matrix in &batch.matrices {
        let (mut u, mut v) = (Vec::new(), Vec::new());
        if matrix.iter().any(|x| x.is_nan()) {
            return Err(not_converged(call));
        }
        if !is_finite(matrix) {
            values.extend(reals(std::iter::repeat_n(f64::NAN, k as usize)));
        } else if k > 0 {
            let found = SVD::try_new(matrix.clone(), true, true, f64::EPSILON, PATIENCE);
            // For some rank-deficient matrices, nalgebra's factors do not multiply to the matrix.
            let right = found.filter(|f| {
                let product = f.clone().recompose();
                product.is_ok_and(|p| (p - matrix).norm() <= 1e-10 * matrix.norm())
            });
            if let Some(found) = right {
                values.extend(reals(found.singular_values.iter().copied()));
                u = found.u.map(|u| columns(&u)).unwrap_or_default();
                v = found.v_t.map(|v| columns(&v.adjoint())).unwrap_or_default();
            } else {
                let sizes;
                (u, sizes, v) = by_rotations(matrix).ok_or_else(|| not_converged(call))?;
                values.extend(reals(sizes));
            }
        }
        us.extend(elements(&completed(u, m as usize, wide_u as usize)));
        vs.extend(elements(&completed(v, n as usize, wide_v as usize).adjoint()));
    }
    Ok(smallvec::smallvec![
        by_columns(&batch.tensor(batch.dtype, &[m, wide_u], &us)?)?.into(),
        batch.tensor(real_of(batch.dtype), &[k], &values)?.into(),
        by_columns(&batch.tensor(batch.dtype, &[wide_v, n], &vs)?)?.into(),
    ])
}

fn columns(m: &Matrix) -> Vec<Vec<Complex64>> {
    m.column_iter().map(|c| c.iter().copied().collect()).collect()
}

/// Returns a matrix whose `count` columns are the orthonormal vectors `basis`, of `size` elements each, and an
/// orthonormal completion.
fn completed(mut basis: Vec<Vec<Complex64>>, size: usize, count: usize) -> Matrix {
    let mut unit = 0;
    while basis.len() < count && unit < size {
        let mut v = vec![Complex64::ZERO; size];
        v[unit] = Complex64::ONE;
        // Twice is enough for orthogonality to the last digit.
        for _ in 0..2 {
            for b in &basis {
                let overlap: Complex64 = b.iter().zip(&v).map(|(b, v)| b.conj() * v).sum();
                v.iter_mut().zip(b).for_each(|(v, b)| *v -= overlap * b);
            }
        }
        let norm = v.iter().map(|x| x.norm_sqr()).sum::<f64>().sqrt();
        if norm > 1e-8 {
            basis.push(v.iter().map(|x| x / norm).collect());
        }
        unit += 1;
    }
    Matrix::from_fn(size, basis.len(), |r, c| basis[c][r])
}

/// Computes eigenvalues in ascending order, and eigenvectors, of Hermitian matrices. Only one triangle of each matrix is read.
fn hermitian(call: &Call<'_>) -> Result<Results, OpError> {
    let batch = Batch::of(call)?;
    batch.square(call)?;
    let lower = !call.text(1)?.eq_ignore_ascii_case("U");
    let n = batch.rows;
    let (mut values, mut vectors) = (Vec::new(), Vec::new());
    for m in batch.matrices.iter().filter(|_| n > 0) {
        let whole = Matrix::from_fn(n as usize, n as usize, |r, c| match (r == c, (r > c) == lower) {
            (true, _) => Complex64::new(m[(r, c)].re, 0.0),
            (_, true) => m[(r, c)],
            _ => m[(c, r)].conj(),
        });
        let found = Some(whole)
            .filter(is_finite)
            .and_then(|m| SymmetricEigen::try_new(m, f64::EPSILON, PATIENCE))
            .ok_or_else(|| not_converged(call))?;
        let mut order: Vec<usize> = (0..n as usize).collect();
        order.sort_by(|&a, &b| found.eigenvalues[a].total_cmp(&found.eigenvalues[b]));
        values.extend(reals(order.iter().map(|&i| found.eigenvalues[i])));
        let sorted = Matrix::from_fn(n as usize, n as usize, |r, c| found.eigenvectors[(r, order[c])]);
        vectors.extend(elements(&sorted));
    }
    Ok(smallvec::smallvec![
        batch.tensor(real_of(batch.dtype), &[n], &values)?.into(),
        by_columns(&batch.tensor(batch.dtype, &[n, n], &vectors)?)?.into(),
    ])
}

/// Returns the inverses, and for each matrix 0, or the number (from 1) of the first pivot that is zero.
fn inverse(call: &Call<'_>, check: bool) -> Result<Results, OpError> {
    let batch = Batch::of(call)?;
    let n = batch.square(call)?.rows;
    let (mut values, mut infos) = (Vec::new(), Vec::new());
    for m in &batch.matrices {
        let inverse = if n == 0 {
            Some(m.clone())
        } else {
            m.clone().try_inverse()
        };
        let info = if inverse.is_some() { 0 } else { first_zero_pivot(m) };
        if check && info != 0 {
            return Err(words(
                call,
                &format!(
                    "The diagonal element {info} is zero, the inversion could not be completed because the input matrix is singular."
                ),
            ));
        }
        infos.push(info);
        let none = || Matrix::from_element(n as usize, n as usize, Complex64::new(f64::INFINITY, 0.0));
        values.extend(elements(&inverse.unwrap_or_else(none)));
    }
    Ok(smallvec::smallvec![
        by_columns(&batch.tensor(batch.dtype, &[n, n], &values)?)?.into(),
        batch.infos(&infos)?.into()
    ])
}

/// Returns the index, from 1, of the first zero on the diagonal of U; the number of rows if there is none.
fn first_zero_pivot(m: &Matrix) -> i64 {
    let u = m.clone().lu().u();
    let zero = u.diagonal().iter().position(|x| *x == Complex64::ZERO);
    zero.map_or(u.nrows() as i64, |i| i as i64 + 1)
}

fn signed_logarithm(call: &Call<'_>) -> Result<Results, OpError> {
    let batch = Batch::of(call)?;
    batch.square(call)?;
    let (mut signs, mut sizes) = (Vec::new(), Vec::new());
    for m in &batch.matrices {
        if m.is_empty() {
            signs.push(Complex64::ONE);
            sizes.push(Complex64::ZERO);
            continue;
        }
        let lu = m.clone().lu();
        let swaps: Complex64 = lu.p().determinant();
        let (mut sign, mut size) = (swaps, 0.0);
        for pivot in lu.u().diagonal().iter() {
            sign *= match pivot.norm() {
                0.0 => Complex64::ZERO,
                // A real number has a sign also where it is infinite, and none (0) where it is NaN.
                _ if !batch.dtype.is_complex() => {
                    Complex64::from(f64::from(i8::from(pivot.re > 0.0) - i8::from(pivot.re < 0.0)))
                }
                norm => pivot / norm,
            };
            size += pivot.norm().ln();
        }
        signs.push(sign);
        sizes.push(Complex64::new(size, 0.0));
    }
    Ok(smallvec::smallvec![
        batch.tensor(batch.dtype, &[], &signs)?.into(),
        batch.tensor(real_of(batch.dtype), &[], &sizes)?.into(),
    ])
}

/// Implements `linalg_solve`: solves A X = B for X if `left`, otherwise X A = B.
fn solve(call: &Call<'_>, left: bool, check: bool) -> Result<Results, OpError> {
    let (a, b) = (call.tensor(0)?, call.tensor(1)?);
    if a.dtype() != b.dtype() {
        return Err(words(call, "Expected A and B to have the same dtype"));
    }
    // A batch of vectors is one of matrices of one column.
    let vectors = b.dim() == 1 || (b.dim() + 1 == a.dim() && b.sizes() == &a.sizes()[..a.dim() - 1]);
    let b = if vectors {
        b.reshape(&[b.sizes(), &[1]].concat())?
    } else {
        b
    };
    let (a, b) = Batch::broadcast(call, &a, &b)?;
    a.square(call)?;
    let fits = if left { a.rows == b.rows } else { a.rows == b.columns };
    if !fits {
        return Err(words(call, "Incompatible shapes of A and B for the equation"));
    }
    let (mut values, mut infos) = (Vec::new(), Vec::new());
    for (m, right) in a.matrices.iter().zip(&b.matrices) {
        let solution = if m.is_empty() || right.is_empty() {
            Some(right.clone())
        } else if left {
            m.clone().lu().solve(right)
        } else {
            m.transpose().lu().solve(&right.transpose()).map(|x| x.transpose())
        };
        let info = if solution.is_some() { 0 } else { first_zero_pivot(m) };
        if check && info != 0 {
            return Err(words(
                call,
                &format!(
                    "The diagonal element {info} is zero, the solve could not be completed because the input matrix is singular."
                ),
            ));
        }
        infos.push(info);
        let none = || Matrix::from_element(right.nrows(), right.ncols(), Complex64::new(f64::NAN, 0.0));
        values.extend(elements(&solution.unwrap_or_else(none)));
    }
    let out = b.tensor(b.dtype, &[b.rows, b.columns], &values)?;
    let out = if left { by_columns(&out)? } else { out };
    let out = if vectors {
        out.reshape(&out.sizes()[..out.dim() - 1])?
    } else {
        out
    };
    // There is one for each matrix that was given.
    let given = Batch::read(call, &call.tensor(0)?)?;
    let infos = if given.lead == a.lead {
        infos
    } else {
        let pivots = |m: &Matrix| match m.is_empty() || m.clone().lu().is_invertible() {
            true => 0,
            false => first_zero_pivot(m),
        };
        given.matrices.iter().map(pivots).collect()
    };
    Ok(smallvec::smallvec![out.into(), given.infos(&infos)?.into()])
}

/// Implements `linalg_solve_triangular(A, B, upper, left, unitriangular)` by substitution.
fn triangular(call: &Call<'_>) -> Result<Results, OpError> {
    let (upper, left, unit) = (call.flag(2)?, call.flag(3)?, call.flag(4)?);
    // The solution has the dtype of A, to which B is converted.
    let a = call.tensor(0)?;
    let b = call.tensor(1)?;
    let b = if a.dtype().is_floating_point() || a.dtype().is_complex() {
        b.to_dtype(a.dtype())?
    } else {
        b
    };
    let (a, b) = Batch::broadcast(call, &a, &b)?;
    a.square(call)?;
    if (if left { b.rows } else { b.columns }) != a.rows {
        return Err(words(call, "Incompatible shapes of A and B for the equation"));
    }
    let mut values = Vec::new();
    for (m, right) in a.matrices.iter().zip(&b.matrices) {
        // X A = B is Aᵀ Xᵀ = Bᵀ.
        let (m, mut x) = if left {
            (m.clone(), right.clone())
        } else {
            (m.transpose(), right.transpose())
        };
        let n = m.nrows();
        let from_below = upper == left;
        for i in 0..n {
            let r = if from_below { n - 1 - i } else { i };
            let known = if from_below { r + 1..n } else { 0..r };
            for c in 0..x.ncols() {
                let sum: Complex64 = known.clone().map(|k| m[(r, k)] * x[(k, c)]).sum();
                let rest = x[(r, c)] - sum;
                x[(r, c)] = if unit { rest } else { rest / m[(r, r)] };
            }
        }
        values.extend(elements(&if left { x } else { x.transpose() }));
    }
    one(by_columns(&b.tensor(b.dtype, &[b.rows, b.columns], &values)?)?)
}

/// Computes L in A = L Lᴴ, or its adjoint, from one triangle of A. Also returns for each matrix the order of the first leading minor that is not positive, or
/// 0.
fn cholesky(call: &Call<'_>, check: bool) -> Result<Results, OpError> {
    let batch = Batch::of(call)?;
    let n = batch.square(call)?.rows as usize;
    let upper = call.flag(1)?;
    let (mut values, mut infos) = (Vec::new(), Vec::new());
    for m in &batch.matrices {
        let at = |r: usize, c: usize| if upper { m[(c, r)].conj() } else { m[(r, c)] };
        let mut l = Matrix::zeros(n, n);
        let mut info = 0;
        for c in 0..n {
            let rest = at(c, c).re - (0..c).map(|k| l[(c, k)].norm_sqr()).sum::<f64>();
            if rest.is_nan() || rest <= 0.0 {
                info = c as i64 + 1;
                break;
            }
            l[(c, c)] = Complex64::new(rest.sqrt(), 0.0);
            for r in c + 1..n {
                let sum: Complex64 = (0..c).map(|k| l[(r, k)] * l[(c, k)].conj()).sum();
                l[(r, c)] = (at(r, c) - sum) / l[(c, c)];
            }
        }
        if check && info != 0 {
            return Err(words(
                call,
                &format!(
                    "The factorization could not be completed because the input is not positive-definite (the leading minor of order {info} is not positive-definite)."
                ),
            ));
        }
        infos.push(info);
        values.extend(elements(&if upper { l.adjoint() } else { l }));
    }
    let sizes = [batch.rows, batch.rows];
    Ok(smallvec::smallvec![
        by_columns(&batch.tensor(batch.dtype, &sizes, &values)?)?.into(),
        batch.infos(&infos)?.into()
    ])
}

/// Computes e^m by scaling and squaring of a Taylor series.
fn exponential(m: &Matrix) -> Matrix {
    if m.len() == 1 {
        return m.map(Complex64::exp);
    }
    let norm: f64 = m.iter().map(|x| x.norm_sqr()).sum::<f64>().sqrt();
    let halvings = if norm.is_finite() && norm > 0.5 {
        (norm.log2() + 1.0).ceil() as i32
    } else {
        0
    };
    let part = m * Complex64::new(0.5f64.powi(halvings), 0.0);
    let mut term = Matrix::identity(m.nrows(), m.ncols());
    let mut sum = term.clone();
    for k in 1..20 {
        term = &term * &part * Complex64::new(1.0 / f64::from(k), 0.0);
        sum += &term;
    }
    for _ in 0..halvings {
        sum = &sum * &sum;
    }
    sum
}
