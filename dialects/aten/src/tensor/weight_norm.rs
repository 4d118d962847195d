//! Weight normalisation: weights computed from a direction and a length.

use frazil_ir::DType;
use frazil_runtime::args::Args;
use frazil_runtime::build::{Accumulation, ProgramBuilder};
use frazil_runtime::entry::{Entry, Row};
use frazil_runtime::op::{Form::LoopNests, OpError};
use frazil_runtime::promote::compute_dtype;
use frazil_runtime::structured::{Combine, TensorId};

pub(super) const ENTRIES: &[Row] = &[
    (
        "aten::_weight_norm",
        Entry::program(LoopNests, |a| {
            let mut p = ProgramBuilder::new(a);
            let (out, _) = normed(&mut p, a)?;
            p.finish(&[out])
        }),
    ),
    (
        "aten::_weight_norm_interface",
        Entry::program(LoopNests, |a| {
            let (dim, rank) = (a.int("dim")?, a.tensor("v")?.rank() as i64);
            if dim != 0 && dim != rank - 1 {
                return Err(OpError::raised(
                    "fused kernels can only be applied for first or last dim",
                ));
            }
            let mut p = ProgramBuilder::new(a);
            let (out, norms) = normed(&mut p, a)?;
            p.finish(&[out, norms])
        }),
    ),
];

/// Computes `v * (g / norm)` and the norms. Each slice of `v` along `dim` has its own norm; for -1, there is one norm for all. Values in float16 are rounded
/// after each operation. Values in bfloat16 are computed in float32, which is also the dtype of the norms.
fn normed(p: &mut ProgramBuilder, args: &Args<'_>) -> Result<(TensorId, TensorId), OpError> {
    let (v, g, dim) = (args.tensor("v")?, args.tensor("g")?, args.int("dim")?);
    let (dtype, rank) = (v.dtype(), v.rank());
    if !dtype.is_floating_point() || g.dtype() != dtype {
        return Err(OpError::Unsupported(format!(
            "_weight_norm of dtypes {} and {}",
            dtype.type_name(),
            g.dtype().type_name()
        )));
    }
    let kept = match dim {
        -1 => None,
        _ => match usize::try_from(dim) {
            Ok(dim) if dim < rank => Some(dim),
            _ => {
                return Err(OpError::raised(format!(
                    "Dimension out of range (expected to be in range of [-1, {}], but got {dim})",
                    rank as i64 - 1
                )));
            }
        },
    };
    let folded: Vec<usize> = (0..rank).filter(|d| Some(*d) != kept).collect();
    let compute = compute_dtype(dtype);
    let stored = if dtype == DType::Half { dtype } else { compute };
    let accumulation = Accumulation {
        combine: Combine::Add,
        accumulate: compute,
        output: stored,
    };
    let norms = p.reduce(
        &[v.id],
        &folded,
        true,
        accumulation,
        |_, x| x[0] * x[0],
        Some(|sum| sum.sqrt()),
    )?;
    let out = p.map(&[v.id, g.id, norms], dtype, |_, x| {
        let factor = x[1] / x[2];
        x[0] * factor.cast(stored).cast(compute)
    })?;
    Ok((out, norms))
}
