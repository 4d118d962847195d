//! Replacement for linear algebra in a build without the feature `linalg`: operators of the same names, which return an error when they are run.

use frazil_runtime::entry::{Entry, Row};
use frazil_runtime::op::{Call, OpError, Results};

/// The tables of the linear algebra operators, in a build without the feature `linalg`.
#[cfg(not(feature = "linalg"))]
pub(super) const TABLES: &[&[Row]] = &[ENTRIES];

pub(super) const ENTRIES: &[Row] = &[
    ("aten::_linalg_svd", Entry::kernel(unavailable).fixed_sizes()),
    ("aten::geqrf", Entry::kernel(unavailable).fixed_sizes()),
    ("aten::linalg_cholesky", Entry::kernel(unavailable).fixed_sizes()),
    ("aten::linalg_cholesky_ex", Entry::kernel(unavailable).fixed_sizes()),
    ("aten::linalg_det", Entry::kernel(unavailable).fixed_sizes()),
    ("aten::linalg_eig", Entry::kernel(unavailable).fixed_sizes()),
    ("aten::linalg_eigh", Entry::kernel(unavailable).fixed_sizes()),
    ("aten::linalg_eigvals", Entry::kernel(unavailable).fixed_sizes()),
    ("aten::linalg_eigvalsh", Entry::kernel(unavailable).fixed_sizes()),
    ("aten::linalg_inv", Entry::kernel(unavailable).fixed_sizes()),
    ("aten::linalg_inv_ex", Entry::kernel(unavailable).fixed_sizes()),
    ("aten::linalg_ldl_factor", Entry::kernel(unavailable).fixed_sizes()),
    ("aten::linalg_ldl_factor_ex", Entry::kernel(unavailable).fixed_sizes()),
    ("aten::linalg_ldl_solve", Entry::kernel(unavailable).fixed_sizes()),
    ("aten::linalg_lu_factor_ex", Entry::kernel(unavailable).fixed_sizes()),
    ("aten::linalg_matrix_exp", Entry::kernel(unavailable).fixed_sizes()),
    ("aten::linalg_qr", Entry::kernel(unavailable).fixed_sizes()),
    ("aten::linalg_slogdet", Entry::kernel(unavailable).fixed_sizes()),
    ("aten::linalg_solve", Entry::kernel(unavailable).fixed_sizes()),
    ("aten::linalg_solve_ex", Entry::kernel(unavailable).fixed_sizes()),
    (
        "aten::linalg_solve_triangular",
        Entry::kernel(unavailable).fixed_sizes(),
    ),
    ("aten::linalg_svd", Entry::kernel(unavailable).fixed_sizes()),
    ("aten::linalg_svdvals", Entry::kernel(unavailable).fixed_sizes()),
    ("aten::lu_unpack", Entry::kernel(unavailable).fixed_sizes()),
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
        assert!(names.iter().eq(super::ENTRIES.iter().map(|(name, _)| name)));
    }
}
