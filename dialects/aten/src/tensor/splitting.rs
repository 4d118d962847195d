//! Splitting of tensors into views along a dimension.

use frazil_runtime::args::{Args, TensorArg};
use frazil_runtime::build::ProgramBuilder;
use frazil_runtime::entry::{Entry, Row};
use frazil_runtime::memory;
use frazil_runtime::op::Form::View;
use frazil_runtime::op::OpError;
use frazil_runtime::structured::{Program, TensorId};

pub(super) const ENTRIES: &[Row] = &[
    ("aten::chunk", Entry::program(View, chunk)),
    ("aten::split", Entry::program(View, split)),
    ("aten::split_with_sizes", Entry::program(View, split)),
    (
        "aten::tensor_split.sections",
        Entry::program(View, |a| {
            let x = a.tensor("self")?;
            let dim = a.dim("dim", x.rank())?;
            sections(a, &x, dim, false)
        }),
    ),
    (
        "aten::tensor_split.indices",
        Entry::program(View, |a| {
            let x = a.tensor("self")?;
            let dim = a.dim("dim", x.rank())?;
            at_indices(a, &x, dim)
        }),
    ),
    // Columns, rows and depth: vectors have columns only.
    (
        "aten::hsplit",
        Entry::program(View, |a| stacked(a, "hsplit", 1, |rank| usize::from(rank > 1))),
    ),
    ("aten::vsplit", Entry::program(View, |a| stacked(a, "vsplit", 2, |_| 0))),
    ("aten::dsplit", Entry::program(View, |a| stacked(a, "dsplit", 3, |_| 2))),
    ("aten::unbind", Entry::program(View, unbind)),
];

/// Returns the views of the given lengths into which a tensor is split along a dimension.
fn pieces(args: &Args<'_>, x: &TensorArg, dim: usize, lengths: &[i64]) -> Result<Program, OpError> {
    let mut p = ProgramBuilder::new(args);
    let mut outputs = Vec::new();
    let mut start = 0;
    for &length in lengths {
        outputs.push(p.slice(x.id, dim, start, length, 1));
        start += length;
    }
    p.finish(&outputs)
}

/// Memory per piece in bytes: as a step of a program, as a tensor, and as a value.
const PIECE: usize = 1 << 10;

/// Checks that memory suffices for a list of `count` views.
fn check_pieces(count: i64) -> Result<(), OpError> {
    Ok(memory::check_items(count, PIECE)?)
}

/// Returns the extent of dimension `dim`, which must exist.
fn extent(x: &TensorArg, dim: usize, operator: &str) -> Result<i64, OpError> {
    x.sizes()
        .get(dim)
        .copied()
        .ok_or_else(|| OpError::raised(format!("{operator} expects at least a 1-dimensional tensor")))
}

/// Returns the lengths of pieces of length `length`; the last piece may be shorter. An empty dimension is one empty piece.
fn even_lengths(size: i64, length: i64) -> Result<Vec<i64>, OpError> {
    if size == 0 || length == 0 {
        return Ok(vec![size]);
    }
    let count = (size - 1) / length + 1;
    check_pieces(count)?;
    Ok((0..count).map(|i| length.min(size - i * length)).collect())
}

fn chunk(args: &Args<'_>) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    let dim = args.dim("dim", x.rank())?;
    let (size, chunks) = (extent(&x, dim, "chunk")?, args.int("chunks")?);
    if chunks <= 0 {
        return Err(OpError::raised(format!(
            "chunk expects `chunks` to be greater than 0, got: {chunks}"
        )));
    }
    if size == 0 {
        check_pieces(chunks)?;
        return pieces(args, &x, dim, &vec![0; chunks as usize]);
    }
    pieces(args, &x, dim, &even_lengths(size, (size - 1) / chunks + 1)?)
}

fn split(args: &Args<'_>) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    let dim = args.dim("dim", x.rank())?;
    let size = extent(&x, dim, "split")?;
    let name = if args.has("split_sizes") {
        "split_sizes"
    } else {
        "split_size"
    };
    let lengths = match args.get(name) {
        frazil_runtime::args::Arg::Int(length) => {
            if length < 0 || (length == 0 && size != 0) {
                return Err(OpError::raised(format!(
                    "split expects split_size be non-negative, but got split_size={length}"
                )));
            }
            even_lengths(size, length)?
        }
        _ => args.ints(name)?.to_vec(),
    };
    let total: i128 = lengths.iter().copied().map(i128::from).sum();
    if lengths.iter().any(|&l| l < 0) || total != i128::from(size) {
        return Err(OpError::raised(format!(
            "split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size at dimension {dim}), but got split_sizes={lengths:?}"
        )));
    }
    pieces(args, &x, dim, &lengths)
}

/// Splits into `sections` pieces. If the division has a remainder, the first pieces are one element longer, or it is an error (`even`).
fn sections(args: &Args<'_>, x: &TensorArg, dim: usize, even: bool) -> Result<Program, OpError> {
    let (size, sections) = (extent(x, dim, "tensor_split")?, args.int("sections")?);
    if sections < 1 {
        return Err(OpError::raised(format!(
            "number of sections must be larger than 0, got {sections}"
        )));
    }
    if even && size % sections != 0 {
        return Err(OpError::raised(format!(
            "attempted to split along dimension {dim}, but the size of the dimension {size} is not divisible by the split_size {sections}!"
        )));
    }
    check_pieces(sections)?;
    let lengths: Vec<i64> = (0..sections)
        .map(|i| size / sections + i64::from(i < size % sections))
        .collect();
    pieces(args, x, dim, &lengths)
}

/// Splits a tensor before each of `indices`, which are clamped as in Python's slices.
fn at_indices(args: &Args<'_>, x: &TensorArg, dim: usize) -> Result<Program, OpError> {
    let size = extent(x, dim, "tensor_split")?;
    let place = |i: i64| if i < 0 { i.saturating_add(size) } else { i }.clamp(0, size);
    let mut cuts: Vec<i64> = args.ints("indices")?.iter().map(|&i| place(i)).collect();
    cuts.push(size);
    let mut p = ProgramBuilder::new(args);
    let mut outputs = Vec::new();
    let mut start = 0;
    for end in cuts {
        outputs.push(p.slice(x.id, dim, start, (end - start).max(0), 1));
        start = end;
    }
    p.finish(&outputs)
}

/// Implements the splits that are the inverse of `*stack`: for at least `rank` dimensions, along the dimension that
/// `dim` returns for the tensor's rank.
fn stacked(args: &Args<'_>, name: &str, rank: usize, dim: fn(usize) -> usize) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    if x.rank() < rank {
        return Err(OpError::raised(format!(
            "torch.{name} requires a tensor with at least {rank} dimension, but got a tensor with {} dimensions!",
            x.rank()
        )));
    }
    let dim = dim(x.rank());
    if args.has("sections") {
        sections(args, &x, dim, true)
    } else {
        at_indices(args, &x, dim)
    }
}

fn unbind(args: &Args<'_>) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    let dim = args.dim("dim", x.rank())?;
    let size = extent(&x, dim, "unbind")?;
    check_pieces(size)?;
    let mut p = ProgramBuilder::new(args);
    let outputs: Vec<TensorId> = (0..size).map(|i| p.select(x.id, dim, i)).collect();
    p.finish(&outputs)
}
