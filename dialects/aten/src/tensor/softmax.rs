//! Softmax and log-softmax, computed by three loop nests over rows.

use frazil_ir::DType;
use frazil_ir::schema::{AliasUse, Observes};
use frazil_runtime::args::Args;
use frazil_runtime::build::{Accumulation, ProgramBuilder};
use frazil_runtime::entry::{Entry, Row};
use frazil_runtime::op::Form::LoopNests;
use frazil_runtime::op::OpError;
use frazil_runtime::promote::compute_dtype;
use frazil_runtime::structured::{Combine, Program, TensorId};
use frazil_runtime::sym::Formula;

pub(super) const ENTRIES: &[Row] = &[
    (
        "aten::softmax",
        Entry::program(LoopNests, |a| program(a, softmax_of))
            .preserves_rank()
            .aliases(&[("aten::special_softmax", AliasUse::Normalised)])
            .observes(Observes::Elements),
    ),
    ("aten::_softmax", Entry::program(LoopNests, |a| program(a, softmax_of))),
    (
        "aten::log_softmax",
        Entry::program(LoopNests, |a| program(a, log_softmax_of))
            .preserves_rank()
            .aliases(&[("aten::special_log_softmax", AliasUse::Normalised)]),
    ),
    (
        "aten::_log_softmax",
        Entry::program(LoopNests, |a| program(a, log_softmax_of)),
    ),
];

type Rows = fn(&mut ProgramBuilder, TensorId, usize, DType) -> Result<TensorId, OpError>;

fn program(args: &Args<'_>, rows: Rows) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    let dim = args.dim("dim", x.rank())?;
    let output = args.opt_dtype("dtype")?.unwrap_or(x.dtype());
    // Nothing is computed of an empty tensor, in any dtype.
    if x.shape.numel() == 0 {
        let mut p = ProgramBuilder::new(args);
        let out = p.fill(output, x.sizes(), false.into())?;
        return p.finish(&[out]);
    }
    if !output.is_floating_point() {
        return Err(OpError::raised(format!(
            "\"softmax_lastdim_kernel_impl\" not implemented for '{}'",
            output.type_name()
        )));
    }
    let mut p = ProgramBuilder::new(args);
    let x = p.cast(x.id, output)?;
    let out = rows(&mut p, x, dim, output)?;
    p.finish(&[out])
}

/// Returns the dimensions along which the softmax is computed: none for a zero-dimensional tensor, whose softmax is 1.
fn row(p: &ProgramBuilder, x: TensorId, dim: usize) -> Vec<usize> {
    if p.rank(x) == 0 { Vec::new() } else { vec![dim] }
}

/// Returns the softmax e^(x - max) / Σ e^(x - max) along `dim`.
pub(super) fn softmax_of(p: &mut ProgramBuilder, x: TensorId, dim: usize, output: DType) -> Result<TensorId, OpError> {
    let compute = compute_dtype(output);
    let dims = row(p, x, dim);
    let max = p.reduce(
        &[x],
        &dims,
        true,
        Accumulation {
            combine: Combine::Max,
            accumulate: compute,
            output: compute,
        },
        |_, x| x[0],
        None,
    )?;
    let exp = p.map(&[x, max], compute, |_, x| (x[0] - x[1]).exp())?;
    // One division for each row, and one multiplication for each element. The sum is between 1 and the length of the row, so its inverse is finite and not zero.
    let scale = p.reduce(
        &[exp],
        &dims,
        true,
        Accumulation {
            combine: Combine::Add,
            accumulate: compute,
            output: compute,
        },
        |_, x| x[0],
        Some(|sum| sum.constant(1.0) / sum),
    )?;
    p.map(&[exp, scale], output, |_, x| x[0] * x[1])
}

/// Returns the log-softmax x - max - log Σ e^(x - max) along `dim`.
fn log_softmax_of(p: &mut ProgramBuilder, x: TensorId, dim: usize, output: DType) -> Result<TensorId, OpError> {
    let compute = compute_dtype(output);
    let dims = row(p, x, dim);
    let max = p.reduce(
        &[x],
        &dims,
        true,
        Accumulation {
            combine: Combine::Max,
            accumulate: compute,
            output: compute,
        },
        |_, x| x[0],
        None,
    )?;
    let accumulation = Accumulation {
        combine: Combine::Add,
        accumulate: compute,
        output: compute,
    };
    let is_last = dim + 1 >= p.rank(x);
    let finish = Formula::build(compute, |f| {
        let sum = f.input(0, compute);
        // Along the last dimension PyTorch keeps the sum and its logarithm in the result's dtype.
        match is_last {
            true => sum.cast(output).cast(compute).log().cast(output).cast(compute),
            false => sum.log(),
        }
    });
    let log = p.reduce_with(
        &[x, max],
        &dims,
        true,
        accumulation,
        |_, x| (x[0] - x[1]).exp(),
        Some(finish),
    )?;
    p.map(&[x, max, log], output, |_, x| x[0] - x[1] - x[2])
}
