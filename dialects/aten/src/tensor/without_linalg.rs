//! What stands in for linear algebra in a build without the feature `linalg`: operators of the same names, which say so when they are run.

use frazil_runtime::op::{Call, KernelFn, OpError, Results};

/// The tables of the family.
#[cfg(not(feature = "linalg"))]
pub(super) const TABLES: &[&[(&str, KernelFn)]] = &[KERNELS];

pub(super) const KERNELS: &[(&str, KernelFn)] = &[
    ("aten::_linalg_svd", unavailable),
    ("aten::geqrf", unavailable),
    ("aten::linalg_cholesky", unavailable),
    ("aten::linalg_cholesky_ex", unavailable),
    ("aten::linalg_det", unavailable),
    ("aten::linalg_eig", unavailable),
    ("aten::linalg_eigh", unavailable),
    ("aten::linalg_eigvals", unavailable),
    ("aten::linalg_eigvalsh", unavailable),
    ("aten::linalg_inv", unavailable),
    ("aten::linalg_inv_ex", unavailable),
    ("aten::linalg_ldl_factor", unavailable),
    ("aten::linalg_ldl_factor_ex", unavailable),
    ("aten::linalg_ldl_solve", unavailable),
    ("aten::linalg_lu_factor_ex", unavailable),
    ("aten::linalg_matrix_exp", unavailable),
    ("aten::linalg_qr", unavailable),
    ("aten::linalg_slogdet", unavailable),
    ("aten::linalg_solve", unavailable),
    ("aten::linalg_solve_ex", unavailable),
    ("aten::linalg_solve_triangular", unavailable),
    ("aten::linalg_svd", unavailable),
    ("aten::linalg_svdvals", unavailable),
    ("aten::lu_unpack", unavailable),
];

fn unavailable(call: &Call<'_>) -> Result<Results, OpError> {
    Err(super::needs_feature(call.ctx.name(call.schema.name), "linalg"))
}

#[cfg(all(test, feature = "linalg"))]
mod tests {
    #[test]
    fn stands_in_for_every_kernel() {
        let mut names: Vec<&str> = super::super::linalg::TABLES
            .concat()
            .iter()
            .map(|(name, _)| *name)
            .collect();
        names.sort_unstable();
        assert!(names.iter().eq(super::KERNELS.iter().map(|(name, _)| name)));
    }
}
