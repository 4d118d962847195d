//! Grouped matmuls, whose group boundaries are in a tensor: the experts of a mixture-of-experts layer.

use super::contraction::multiply;
use frazil_ir::DType;
use frazil_runtime::args::Args;
use frazil_runtime::build::ProgramBuilder;
use frazil_runtime::entry::{Entry, Row};
use frazil_runtime::eval::eval_program;
use frazil_runtime::op::{Call, OpError, Results, one};
use frazil_runtime::{Tensor, layout};

pub(super) const ENTRIES: &[Row] = &[("aten::_grouped_mm", Entry::kernel(grouped).fixed_sizes())];

/// Implements an operator with the arguments `(self, mat2, offs, bias, out_dtype)`.
///
/// A group is one index of the first dimension of a three-dimensional operand. A two-dimensional operand is split into groups that end at `offs`:
/// - along the rows of `self` if `mat2` has three dimensions;
/// - along the columns of `mat2` if `self` has three;
/// - along the summed dimension if both have two.
fn grouped(call: &Call<'_>) -> Result<Results, OpError> {
    let (a, b, ends) = (call.tensor(0)?, call.tensor(1)?, call.opt_tensor(2)?);
    check(call, &a, &b, ends.as_ref())?;
    let (m, k) = (a.sizes()[a.dim() - 2], a.sizes()[a.dim() - 1]);
    let n = b.sizes()[b.dim() - 1];
    let Some(ends) = ends else {
        return one(product(call, &a, &b)?);
    };
    let ends = ends.to_i64_vec();
    let groups = ends.len() as i64;
    let sizes: &[i64] = match (a.dim(), b.dim()) {
        (2, 2) => &[groups, m, n],
        _ => &[m, n],
    };
    // PyTorch does not write what is in no group.
    let out = Tensor::zeros(a.dtype(), sizes)?;
    let mut start = 0;
    for (group, &end) in ends.iter().enumerate() {
        let group = group as i64;
        let whole = match (a.dim(), b.dim()) {
            (2, 3) => m,
            (3, 2) => n,
            _ => k,
        };
        if end < start || end > whole {
            return Err(OpError::raised(format!(
                "_grouped_mm: offsets must be ascending and at most {whole}, but the group from {start} ends at {end}"
            )));
        }
        let length = end - start;
        let (left, right, target) = match (a.dim(), b.dim()) {
            (2, 3) => (
                narrowed(&a, 0, start, length)?,
                selected(&b, group)?,
                narrowed(&out, 0, start, length)?,
            ),
            (3, 2) => (
                selected(&a, group)?,
                narrowed(&b, 1, start, length)?,
                narrowed(&out, 1, start, length)?,
            ),
            _ => (
                narrowed(&a, 1, start, length)?,
                narrowed(&b, 0, start, length)?,
                selected(&out, group)?,
            ),
        };
        target.copy_(&product(call, &left, &right)?)?;
        start = end;
    }
    one(out)
}

/// Checks the arguments of a grouped matmul, in PyTorch's order.
fn check(call: &Call<'_>, a: &Tensor, b: &Tensor, ends: Option<&Tensor>) -> Result<(), OpError> {
    let raised = |text: String| Err(OpError::Raised(text));
    if a.dtype() != b.dtype() {
        return raised(format!(
            "Expected mat_a and mat_b to have the same dtype, got {} and {}",
            a.dtype().type_name(),
            b.dtype().type_name()
        ));
    }
    if !matches!(a.dtype(), DType::Float | DType::Half | DType::BFloat16) {
        return raised(format!(
            "Expected mat_a to be Float32, BFloat16 or Float16 matrix, got {}",
            a.dtype().type_name()
        ));
    }
    for (name, t) in [("mat_a", a), ("mat_b", b)] {
        if !matches!(t.dim(), 2 | 3) {
            return raised(format!("{name} has to be 2 or 3d, but has {} dimensions", t.dim()));
        }
    }
    if a.sizes()[a.dim() - 1] != b.sizes()[b.dim() - 2] {
        return raised("contraction dimension of mat_a and mat_b must match".into());
    }
    for (name, t) in [("mat_a", a), ("mat_b", b)] {
        check_strides(name, t)?;
    }
    if ends.is_some() != (a.dim() == 2 || b.dim() == 2) {
        return raised("Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d".into());
    }
    if let Some(ends) = ends {
        if ends.dim() != 1 {
            return raised("offs has to be 1D".into());
        }
        if ends.dtype() != DType::Int {
            return raised("Offsets have to be int32".into());
        }
    }
    let groups = [a, b].map(|t| (t.dim() == 3).then(|| t.sizes()[0]));
    let ends = ends.map(|e| e.numel());
    let mut counts = groups.into_iter().flatten().chain(ends);
    let first = counts.next();
    if counts.any(|c| Some(c) != first) {
        return raised("matrix batch sizes have to match".into());
    }
    if !matches!(call.arg(3), frazil_runtime::value::Value::None) {
        return raised("Bias not supported yet".into());
    }
    match call.opt_dtype(4)? {
        Some(dtype) if dtype != a.dtype() => raised("Grouped gemm output dtype must match `mat_a` dtype".into()),
        _ => Ok(()),
    }
}

/// Checks that one of the last two dimensions is dense, and that the stride of the other dimension is a multiple of 16 bytes.
fn check_strides(name: &str, t: &Tensor) -> Result<(), OpError> {
    let d = t.dim();
    let (rows, columns, strides) = (t.sizes()[d - 2], t.sizes()[d - 1], t.strides());
    let (of_rows, of_columns) = (strides[d - 2], strides[d - 1]);
    let apart = if of_columns == 1 && of_rows >= columns.max(1) {
        of_rows
    } else if of_rows == 1 && of_columns >= rows.max(1) {
        of_columns
    } else {
        return Err(OpError::raised(format!(
            "Invalid strides/sizes, got {strides:?} for strides and {:?} for sizes of {name}",
            t.sizes()
        )));
    };
    match apart * t.dtype().size() as i64 % 16 {
        0 => Ok(()),
        _ => Err(OpError::raised("strides should be multiple of 16 bytes")),
    }
}

fn narrowed(t: &Tensor, dim: usize, start: i64, length: i64) -> Result<Tensor, OpError> {
    let mut sizes = t.sizes().to_vec();
    sizes[dim] = length;
    Ok(t.as_strided(&sizes, t.strides(), t.offset() + start * t.strides()[dim])?)
}

fn selected(t: &Tensor, index: i64) -> Result<Tensor, OpError> {
    Ok(t.as_strided(&t.sizes()[1..], &t.strides()[1..], t.offset() + index * t.strides()[0])?)
}

/// Returns the product of matrices, or of batches of them, as `matmul` computes it.
fn product(call: &Call<'_>, a: &Tensor, b: &Tensor) -> Result<Tensor, OpError> {
    let mut sizes = a.sizes().to_vec();
    if let (Some(last), Some(columns)) = (sizes.last_mut(), b.sizes().last()) {
        *last = *columns;
    }
    if layout::checked_numel(&sizes) == Some(0) {
        return Ok(Tensor::zeros(a.dtype(), &sizes)?);
    }
    let mut args = Args::new(call.ctx, call.schema);
    args.push_tensor(a.dtype(), a.sizes());
    args.push_tensor(b.dtype(), b.sizes());
    let mut p = ProgramBuilder::new(&args);
    let out = multiply(&mut p, args.tensor("self")?.id, args.tensor("mat2")?.id)?;
    let program = p.finish(&[out])?;
    let results = eval_program(&program, &[a.clone(), b.clone()])?;
    let result = results.into_iter().next();
    result.ok_or_else(|| OpError::Unsupported("a product without a result".into()))
}
