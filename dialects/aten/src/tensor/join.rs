//! Concatenation of tensors: `cat`, `stack` and similar operators.

use frazil_ir::DType;
use frazil_ir::schema::{AliasUse, Observes};
use frazil_runtime::args::{Arg, Args, TensorArg, wrap_dim};
use frazil_runtime::build::ProgramBuilder;
use frazil_runtime::entry::{Entry, ResultLayout, Role, Row};
use frazil_runtime::expr::Number;
use frazil_runtime::op::Form::Pointwise;
use frazil_runtime::op::OpError;
use frazil_runtime::promote::ResultType;
use frazil_runtime::structured::{
    Access, Affine, Dims, Iteration, OutOfBounds, Program, Structured, TensorId, TensorShape,
};
use frazil_runtime::sym::Formula;

pub(super) const ENTRIES: &[Row] = &[
    (
        "aten::cat",
        Entry::program(Pointwise, cat)
            .layout(ResultLayout::Joined)
            .role(Role::Concat)
            .aliases(&[
                ("aten::concat", AliasUse::Everywhere),
                ("aten::concatenate", AliasUse::Everywhere),
            ])
            .observes(Observes::Elements),
    ),
    (
        "aten::stack",
        Entry::program(Pointwise, stack)
            .role(Role::Stack)
            .aliases(&[("aten::_stack", AliasUse::Semantics)]),
    ),
    (
        "prim::VarConcat",
        Entry::program(Pointwise, variadic_cat).layout(ResultLayout::Joined),
    ),
    ("prim::VarStack", Entry::program(Pointwise, variadic_stack)),
];

/// Returns the tensors, each converted to the common dtype of all.
fn common(p: &mut ProgramBuilder, tensors: &[TensorId]) -> Result<Vec<TensorId>, OpError> {
    let joined = tensors
        .iter()
        .fold(ResultType::new(), |r, &t| r.tensor(p.dtype(t), p.rank(t)));
    let dtype = joined
        .dtype()
        .ok_or_else(|| OpError::raised("expected a non-empty list of Tensors"))?;
    tensors.iter().map(|&t| p.cast(t, dtype)).collect()
}

fn cat(args: &Args<'_>) -> Result<Program, OpError> {
    cat_of(args, &args.tensors("tensors")?, args.int("dim")?)
}

fn stack(args: &Args<'_>) -> Result<Program, OpError> {
    stack_of(args, &args.tensors("tensors")?, args.int("dim")?)
}

fn variadic_cat(args: &Args<'_>) -> Result<Program, OpError> {
    let (tensors, dim) = variadic(args)?;
    cat_of(args, &tensors, dim)
}

fn variadic_stack(args: &Args<'_>) -> Result<Program, OpError> {
    let (tensors, dim) = variadic(args)?;
    stack_of(args, &tensors, dim)
}

/// Returns the arguments of an operator whose list elements are separate operands: tensors, and the dimension last.
fn variadic(args: &Args<'_>) -> Result<(Vec<TensorArg>, i64), OpError> {
    let wrong = || OpError::raised("expected tensors and a dimension");
    let Some((Arg::Int(dim), tensors)) = args.values().split_last() else {
        return Err(wrong());
    };
    let tensor = |a: &Arg| match a {
        Arg::Tensor(t) => Ok(t.clone()),
        _ => Err(wrong()),
    };
    Ok((tensors.iter().map(tensor).collect::<Result<_, _>>()?, *dim))
}

fn cat_of(args: &Args<'_>, tensors: &[TensorArg], dim: i64) -> Result<Program, OpError> {
    let mut p = ProgramBuilder::new(args);
    let out = concatenated(&mut p, &ids(tensors), dim)?;
    p.finish(&[out])
}

fn ids(tensors: &[TensorArg]) -> Vec<TensorId> {
    tensors.iter().map(|t| t.id).collect()
}

fn stack_of(args: &Args<'_>, tensors: &[TensorArg], dim: i64) -> Result<Program, OpError> {
    let mut p = ProgramBuilder::new(args);
    let tensors = ids(tensors);
    let Some(&first) = tensors.first() else {
        return Err(OpError::raised("stack expects a non-empty TensorList"));
    };
    let sizes = p.sizes(first);
    for (i, &t) in tensors.iter().enumerate() {
        let other = p.sizes(t);
        if other != sizes {
            let (a, b) = (sizes.as_slice(), other.as_slice());
            return Err(OpError::raised(format!(
                "stack expects each tensor to be equal size, but got {a:?} at entry 0 and {b:?} at entry {i}"
            )));
        }
    }
    let dim = wrap_dim(dim, sizes.len() + 1)?;
    let raised: Vec<TensorId> = tensors.iter().map(|&t| p.unsqueeze(t, dim)).collect();
    let out = concatenated(&mut p, &raised, dim as i64)?;
    p.finish(&[out])
}

/// Concatenates tensors along `dim` in their common dtype, by a selection between shifted reads. Empty tensors of one dimension are left out, as in PyTorch.
pub(super) fn concatenated(p: &mut ProgramBuilder, tensors: &[TensorId], dim: i64) -> Result<TensorId, OpError> {
    let tensors = &common(p, tensors)?[..];
    let legacy_empty = |p: &ProgramBuilder, t: TensorId| p.sizes(t).as_slice() == [0];
    let first = tensors.iter().copied().find(|&t| !legacy_empty(p, t));
    let Some(first) = first else {
        let Some(&only) = tensors.first() else {
            return Err(OpError::raised("expected a non-empty list of Tensors"));
        };
        return p.map(&[only], p.dtype(only), |_, x| x[0]);
    };
    let parts: Vec<TensorId> = tensors.iter().copied().filter(|&t| !legacy_empty(p, t)).collect();
    let mut sizes = p.sizes(first);
    let rank = sizes.len();
    if rank == 0 {
        return Err(OpError::raised(
            "zero-dimensional tensor (at position 0) cannot be concatenated",
        ));
    }
    let dim = wrap_dim(dim, rank)?;
    let mut bounds = Vec::new();
    let mut total = 0;
    for (i, &t) in parts.iter().enumerate() {
        let other = p.sizes(t);
        let fits = other.len() == rank && (0..rank).all(|d| d == dim || other[d] == sizes[d]);
        if !fits {
            let at = other.get(dim.min(other.len().saturating_sub(1))).copied().unwrap_or(0);
            return Err(OpError::raised(format!(
                "Sizes of tensors must match except in dimension {dim}. Expected {:?} but got {:?} (size {at}) for tensor number {i} in the list.",
                sizes.as_slice(),
                other.as_slice()
            )));
        }
        total = other[dim]
            .checked_add(total)
            .ok_or(frazil_runtime::TensorError::TooManyElements)?;
        bounds.push(total);
    }
    if parts.len() == 1 {
        return p.map(&[first], p.dtype(first), |_, x| x[0]);
    }
    sizes[dim] = total;
    let dtype = p.dtype(first);
    let access = |(i, &t): (usize, &TensorId)| {
        let mut map: smallvec::SmallVec<[Affine; 6]> = (0..rank).map(|d| Affine::index(rank, d)).collect();
        map[dim].offset = if i == 0 { 0 } else { -bounds[i - 1] };
        Access {
            tensor: t,
            map,
            out_of_bounds: OutOfBounds::Value(Number::Int(0)),
        }
    };
    let body = Formula::build(dtype, |f| {
        let at = f.index(dim);
        let last = parts.len() - 1;
        let mut chosen = f.input(last, dtype);
        for i in (0..last).rev() {
            chosen = at.lt(f.int(bounds[i], DType::Long)).select(f.input(i, dtype), chosen);
        }
        chosen
    });
    let domain: Dims = sizes.clone();
    Ok(p.compute(Structured {
        domain,
        iterations: smallvec::smallvec![Iteration::Parallel; rank],
        inputs: parts.iter().enumerate().map(access).collect(),
        body,
        combine: None,
        accumulate: dtype,
        finish: None,
        finish_inputs: Default::default(),
        output: TensorShape { dtype, sizes },
    }))
}
