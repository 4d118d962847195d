//! Matmuls and operators that consist of matmuls, such as `linear`, `bilinear` and attention.

use super::arithmetic::check_alpha;
use super::softmax::softmax_of;
use frazil_ir::DType;
use frazil_ir::schema::{AliasUse, Observes, ResultRank};
use frazil_runtime::Scalar;
use frazil_runtime::args::{Arg, Args, TensorArg};
use frazil_runtime::build::{ProgramBuilder, broadcast_error};
use frazil_runtime::call::run_as_program;
use frazil_runtime::entry::{Entry, ResultLayout, Row};
use frazil_runtime::layout::broadcast;
use frazil_runtime::op::Form::{Contraction, LoopNests};
use frazil_runtime::op::{Call, OpError, Results};
use frazil_runtime::promote::{ResultType, compute_dtype};
use frazil_runtime::structured::{Access, Affine, Dims, OutOfBounds, Program, TensorId};
use frazil_runtime::sym::{Formula, Sym};

pub(super) const ENTRIES: &[Row] = &[
    (
        "aten::linear",
        Entry::program(Contraction, linear).observes(Observes::Elements),
    ),
    (
        "aten::matmul",
        Entry::program(Contraction, |a| product(a, "self", "other", None))
            .aliases(&[("aten::linalg_matmul", AliasUse::Normalised)])
            .observes(Observes::Elements),
    ),
    (
        "aten::mm",
        Entry::program(Contraction, |a| product(a, "self", "mat2", Some((2, 2)))).rank(ResultRank::Fixed(2)),
    ),
    (
        "aten::bmm",
        Entry::program(Contraction, |a| product(a, "self", "mat2", Some((3, 3)))).observes(Observes::Elements),
    ),
    (
        "aten::mv",
        Entry::program(Contraction, |a| product(a, "self", "vec", Some((2, 1)))),
    ),
    (
        "aten::dot",
        Entry::program(Contraction, |a| product(a, "self", "tensor", Some((1, 1)))),
    ),
    ("aten::inner", Entry::program(Contraction, inner)),
    (
        "aten::outer",
        Entry::program(Contraction, |a| outer(a, "self", "vec2")).aliases(&[("aten::ger", AliasUse::Everywhere)]),
    ),
    (
        "aten::addmm",
        Entry::program(Contraction, |a| product_and(a, "mat1", "mat2")).rank(ResultRank::Fixed(2)),
    ),
    (
        "aten::addmv",
        Entry::program(Contraction, |a| product_and(a, "mat", "vec")),
    ),
    (
        "aten::baddbmm",
        Entry::program(Contraction, |a| product_and(a, "batch1", "batch2")),
    ),
    (
        "aten::addr",
        Entry::program(Contraction, addr).layout(ResultLayout::Elementwise),
    ),
    ("prim::MMTreeReduce", Entry::program(Contraction, sum_of_products)),
    (
        "aten::scaled_dot_product_attention",
        Entry::program(LoopNests, attention).random_if("dropout_p"),
    ),
    ("prim::MMBatchSide", Entry::kernel(batch_of_products)),
];

fn same_dtype(a: &TensorArg, b: &TensorArg) -> Result<(), OpError> {
    if a.dtype() == b.dtype() {
        return Ok(());
    }
    let (x, y) = (a.dtype().type_name(), b.dtype().type_name());
    Err(OpError::raised(format!(
        "expected m1 and m2 to have the same dtype, but got: {x} != {y}"
    )))
}

/// Computes x · weightᵀ + bias over the last dimension.
fn linear(args: &Args<'_>) -> Result<Program, OpError> {
    let (x, w) = (args.tensor("input")?, args.tensor("weight")?);
    same_dtype(&x, &w)?;
    let (rank, k) = (x.rank(), x.sizes().last().copied());
    let out_features = match w.sizes() {
        [n, wk] if Some(*wk) == k => Some(*n),
        [wk] if Some(*wk) == k => None,
        _ => {
            let rows: i64 = x.sizes().iter().rev().skip(1).product();
            let (n, wk) = (
                w.sizes().first().copied().unwrap_or(1),
                w.sizes().get(1).copied().unwrap_or(1),
            );
            return Err(OpError::raised(format!(
                "mat1 and mat2 shapes cannot be multiplied ({rows}x{} and {wk}x{n})",
                k.unwrap_or(1)
            )));
        }
    };
    let mut domain: Dims = x.sizes()[..rank - 1].into();
    domain.extend(out_features);
    let parallel = domain.len();
    domain.extend(k);
    let loops = domain.len();
    let inner = loops - 1;
    let x_map = (0..rank)
        .map(|d| Affine::index(loops, if d + 1 == rank { inner } else { d }))
        .collect();
    let w_map = match out_features {
        Some(_) => smallvec::smallvec![Affine::index(loops, parallel - 1), Affine::index(loops, inner)],
        None => smallvec::smallvec![Affine::index(loops, inner)],
    };
    let accumulate = compute_dtype(x.dtype());
    let mut p = ProgramBuilder::new(args);
    let finish = match args.opt_tensor("bias")? {
        Some(b) => {
            if b.dtype() != w.dtype() {
                let (bias, weight) = (b.dtype().type_name(), w.dtype().type_name());
                return Err(OpError::raised(format!(
                    "self and mat2 must have the same dtype, but got {bias} and {weight}"
                )));
            }
            let fits = broadcast(b.sizes(), &domain[..parallel]).is_some_and(|s| s[..] == domain[..parallel]);
            if !fits {
                return Err(broadcast_error(b.sizes(), &domain[..parallel]));
            }
            let add = Formula::build(x.dtype(), |f| {
                f.input(0, accumulate) + f.input(1, b.dtype()).cast(accumulate)
            });
            Some((add, vec![p.broadcast_access(b.id, parallel, loops)]))
        }
        None => None,
    };
    let operands = [
        Access {
            tensor: x.id,
            map: x_map,
            out_of_bounds: OutOfBounds::Never,
        },
        Access {
            tensor: w.id,
            map: w_map,
            out_of_bounds: OutOfBounds::Never,
        },
    ];
    let out = p.contract(&domain, parallel, operands, (accumulate, x.dtype()), finish);
    p.finish(&[out])
}

/// Returns the matrices that are the arguments of an operator with any number of matrices.
fn matrices(args: &Args<'_>) -> Result<Vec<TensorArg>, OpError> {
    let matrix = |a: &Arg| match a {
        Arg::Tensor(t) if t.rank() == 2 => Ok(t.clone()),
        _ => Err(OpError::raised("expected matrices")),
    };
    args.values().iter().map(matrix).collect()
}

fn matmul_of(p: &mut ProgramBuilder, a: &TensorArg, b: &TensorArg) -> Result<TensorId, OpError> {
    same_dtype(a, b)?;
    multiply(p, a.id, b.id)
}

/// Computes a₀·b₀ + a₁·b₁ + ... for matrices a₀, a₁, ..., b₀, b₁, ...
fn sum_of_products(args: &Args<'_>) -> Result<Program, OpError> {
    let all = matrices(args)?;
    let (left, right) = all.split_at(all.len() / 2);
    let mut p = ProgramBuilder::new(args);
    let mut sum = None;
    for (a, b) in left.iter().zip(right) {
        let product = matmul_of(&mut p, a, b)?;
        sum = Some(match sum {
            None => product,
            Some(sum) => p.map(&[sum, product], a.shape.dtype, |_, x| x[0] + x[1])?,
        });
    }
    match sum.filter(|_| left.len() == right.len()) {
        Some(sum) => p.finish(&[sum]),
        None => Err(OpError::raised("expected pairs of matrices")),
    }
}

/// Multiplies the first matrix by each of the others. An attribute of the node says on which side the first matrix is.
fn batch_of_products(call: &Call<'_>) -> Result<Results, OpError> {
    let side = call.attributes.iter().find(|a| call.ctx.name(a.name) == "side");
    match side.and_then(|a| a.value.as_constant()).and_then(|c| c.as_int()) {
        Some(0) => run_as_program(call, |args| products(args, |common, other| (common, other))),
        Some(1) => run_as_program(call, |args| products(args, |common, other| (other, common))),
        _ => Err(OpError::raised("expected a side, 0 or 1")),
    }
}

type Pair<'a> = (&'a TensorArg, &'a TensorArg);

fn products(args: &Args<'_>, order: for<'a> fn(&'a TensorArg, &'a TensorArg) -> Pair<'a>) -> Result<Program, OpError> {
    let all = matrices(args)?;
    let Some((common, others)) = all.split_first() else {
        return Err(OpError::raised("expected matrices"));
    };
    let mut p = ProgramBuilder::new(args);
    let mut outputs = Vec::new();
    for other in others {
        let (a, b) = order(common, other);
        outputs.push(matmul_of(&mut p, a, b)?);
    }
    p.finish(&outputs)
}

/// Returns a product of two tensors by the rules of `torch.matmul`; `ranks` are the required ranks, if any.
fn product(args: &Args<'_>, a: &str, b: &str, ranks: Option<(usize, usize)>) -> Result<Program, OpError> {
    let (x, y) = (args.tensor(a)?, args.tensor(b)?);
    check_ranks(&x, &y, ranks)?;
    if ranks == Some((3, 3)) && x.sizes()[0] != y.sizes()[0] {
        return Err(OpError::raised("batch1 and batch2 must have same number of batches"));
    }
    let mut p = ProgramBuilder::new(args);
    // `matmul` makes a product of two matrices of all others.
    let batches = ranks == Some((3, 3)) || ranks.is_none() && x.rank() >= 2 && y.rank() >= 3;
    let out = match batches {
        true => multiply_batches(&mut p, &x, &y, y.dtype())?,
        false => {
            same_dtype(&x, &y)?;
            multiply(&mut p, x.id, y.id)?
        }
    };
    p.finish(&[out])
}

/// Multiplies batches as [`multiply_as`] does. If there are no elements to multiply, dtypes are not compared, and `output` is the dtype of the second
/// operand.
fn multiply_batches(p: &mut ProgramBuilder, x: &TensorArg, y: &TensorArg, output: DType) -> Result<TensorId, OpError> {
    if x.shape.numel() == 0 || y.shape.numel() == 0 {
        let x = p.cast(x.id, y.dtype())?;
        return multiply_as(p, x, y.id, output);
    }
    same_dtype(x, y)?;
    multiply_as(p, x.id, y.id, output)
}

fn check_ranks(x: &TensorArg, y: &TensorArg, ranks: Option<(usize, usize)>) -> Result<(), OpError> {
    match ranks {
        Some(r) if r != (x.rank(), y.rank()) => Err(OpError::raised(format!(
            "expected tensors of {} and {} dimensions, got {:?} and {:?}",
            r.0,
            r.1,
            x.sizes(),
            y.sizes()
        ))),
        _ => Ok(()),
    }
}

/// Multiplies by the rules of `torch.matmul`: vectors are rows or columns, leading dimensions are batches that
/// broadcast.
pub(super) fn multiply(p: &mut ProgramBuilder, x: TensorId, y: TensorId) -> Result<TensorId, OpError> {
    let dtype = p.dtype(x);
    multiply_as(p, x, y, dtype)
}

/// Multiplies like [`multiply`], but the result has dtype `output`.
fn multiply_as(p: &mut ProgramBuilder, x: TensorId, y: TensorId, output: DType) -> Result<TensorId, OpError> {
    let (a, b) = (p.sizes(x), p.sizes(y));
    if a.is_empty() || b.is_empty() {
        return Err(OpError::raised(format!(
            "both arguments to matmul need to be at least 1D, but they are {}D and {}D",
            a.len(),
            b.len()
        )));
    }
    let (rows, depth) = (a.len().checked_sub(2).map(|d| a[d]), a[a.len() - 1]);
    let (columns, depth_b) = match b.len() {
        1 => (None, b[0]),
        n => (Some(b[n - 1]), b[n - 2]),
    };
    if depth != depth_b {
        return Err(OpError::raised(format!(
            "mat1 and mat2 shapes cannot be multiplied ({}x{depth} and {depth_b}x{})",
            rows.unwrap_or(1),
            columns.unwrap_or(1)
        )));
    }
    let batch_of = |s: &Dims| -> Dims { s[..s.len().saturating_sub(2)].into() };
    let (batch_a, batch_b) = (batch_of(&a), batch_of(&b));
    let batch = broadcast(&batch_a, &batch_b).ok_or_else(|| broadcast_error(&batch_a, &batch_b))?;
    let mut domain = batch.clone();
    domain.extend(rows);
    domain.extend(columns);
    let parallel = domain.len();
    domain.push(depth);
    let loops = parallel + 1;
    let batch_map = |own: &Dims| {
        let lead = batch.len() - own.len();
        let each = |(d, &size): (usize, &i64)| match size {
            1 => Affine::constant(loops, 0),
            _ => Affine::index(loops, lead + d),
        };
        own.iter()
            .enumerate()
            .map(each)
            .collect::<smallvec::SmallVec<[Affine; 6]>>()
    };
    let mut x_map = batch_map(&batch_a);
    x_map.extend(rows.map(|_| Affine::index(loops, batch.len())));
    x_map.push(Affine::index(loops, parallel));
    let mut y_map = batch_map(&batch_b);
    y_map.push(Affine::index(loops, parallel));
    y_map.extend(columns.map(|_| Affine::index(loops, parallel - 1)));
    let dtype = p.dtype(x);
    let operands = [
        Access {
            tensor: x,
            map: x_map,
            out_of_bounds: OutOfBounds::Never,
        },
        Access {
            tensor: y,
            map: y_map,
            out_of_bounds: OutOfBounds::Never,
        },
    ];
    Ok(p.contract(&domain, parallel, operands, (compute_dtype(dtype), output), None))
}

/// Implements `inner`: sums products over the last dimensions of both operands.
fn inner(args: &Args<'_>) -> Result<Program, OpError> {
    let (x, y) = (args.tensor("self")?, args.tensor("other")?);
    let mut p = ProgramBuilder::new(args);
    if x.rank() == 0 || y.rank() == 0 {
        let dtype = ResultType::new()
            .tensor(x.dtype(), x.rank())
            .tensor(y.dtype(), y.rank())
            .dtype()
            .unwrap_or(x.dtype());
        let compute = compute_dtype(dtype);
        let out = p.map(&[x.id, y.id], dtype, |_, x| {
            x[0].cast(dtype).cast(compute) * x[1].cast(dtype).cast(compute)
        })?;
        return p.finish(&[out]);
    }
    let (k, l) = (x.sizes()[x.rank() - 1], y.sizes()[y.rank() - 1]);
    if k != l {
        return Err(OpError::raised(format!(
            "inner() the last dimension must match on both input tensors but got shapes {:?} and {:?}",
            x.sizes(),
            y.sizes()
        )));
    }
    let rows: i64 = x.sizes()[..x.rank() - 1].iter().product();
    let columns: i64 = y.sizes()[..y.rank() - 1].iter().product();
    let (a, b) = (p.reshape(x.id, &[rows, k])?, p.reshape(y.id, &[columns, k])?);
    let b = p.permute(b, &[1, 0]);
    let out = multiply(&mut p, a, b)?;
    let mut sizes: Dims = x.sizes()[..x.rank() - 1].into();
    sizes.extend_from_slice(&y.sizes()[..y.rank() - 1]);
    let out = p.reshape(out, &sizes)?;
    p.finish(&[out])
}

fn outer(args: &Args<'_>, a: &str, b: &str) -> Result<Program, OpError> {
    let (x, y) = (args.tensor(a)?, args.tensor(b)?);
    check_ranks(&x, &y, Some((1, 1)))?;
    let dtype = frazil_runtime::promote::promote_types(x.dtype(), y.dtype());
    let mut p = ProgramBuilder::new(args);
    let (column, row) = (p.unsqueeze(x.id, 1), p.unsqueeze(y.id, 0));
    let out = p.map(&[column, row], dtype, |_, x| {
        let compute = compute_dtype(dtype);
        x[0].cast(compute) * x[1].cast(compute)
    })?;
    p.finish(&[out])
}

/// Computes beta * self + alpha * (a · b), for the arguments with the names `a` and `b`.
fn product_and(args: &Args<'_>, a: &str, b: &str) -> Result<Program, OpError> {
    let (x, y) = (args.tensor(a)?, args.tensor(b)?);
    let wanted = match a {
        "mat1" => (2, 2),
        "mat" => (2, 1),
        _ => (3, 3),
    };
    check_ranks(&x, &y, Some(wanted))?;
    let mut p = ProgramBuilder::new(args);
    // Rounded once, with the sum.
    let output = compute_dtype(y.dtype());
    let out = match wanted {
        (3, 3) => {
            let own = args.tensor("self")?.dtype();
            if own != x.dtype() {
                return Err(OpError::raised(format!(
                    "Input dtypes must be the same, got: input {}, batch1: {}, batch2: {}",
                    own.type_name(),
                    x.dtype().type_name(),
                    y.dtype().type_name()
                )));
            }
            multiply_batches(&mut p, &x, &y, output)?
        }
        _ => {
            same_dtype(&x, &y)?;
            let own = args.tensor("self")?.dtype();
            if own != y.dtype() {
                return of_another_dtype(p, args, &x, &y, own);
            }
            multiply_as(&mut p, x.id, y.id, output)?
        }
    };
    // Products of matrices take their factors unrounded.
    let factors = if wanted == (2, 1) { y.dtype() } else { output };
    for name in ["alpha", "beta"] {
        args.scalar(name)?.checked_to(factors)?;
    }
    let out = scaled_sum(&mut p, args, out, y.dtype())?;
    p.finish(&[out])
}

/// Handles an added tensor of another dtype than the product. TorchScript compiles `addmm` without factors to a product and a sum, which promotes; everything
/// else is refused.
fn of_another_dtype(
    mut p: ProgramBuilder,
    args: &Args<'_>,
    x: &TensorArg,
    y: &TensorArg,
    own: DType,
) -> Result<Program, OpError> {
    let (bias, matrix, other) = (own.type_name(), x.dtype().type_name(), y.dtype().type_name());
    let one = |name| args.scalar(name).map(|s| s.as_complex() == Scalar::Int(1).as_complex());
    if y.rank() == 1 {
        return Err(OpError::raised(format!(
            "addmv input tensors must have the same dtype, but got {bias}, {matrix}, and {other}"
        )));
    }
    if !(one("alpha")? && one("beta")?) {
        return Err(OpError::raised(format!(
            "self and mat2 must have the same dtype, but got {bias} and {other}"
        )));
    }
    let product = multiply(&mut p, x.id, y.id)?;
    let bias = args.tensor("self")?;
    let sizes = p.sizes(product);
    if broadcast(bias.sizes(), &sizes).is_none_or(|s| s != sizes) {
        return Err(broadcast_error(bias.sizes(), &sizes));
    }
    let dtype = ResultType::new()
        .tensor(y.dtype(), 2)
        .tensor(own, bias.rank())
        .dtype()
        .unwrap_or(own);
    let compute = compute_dtype(dtype);
    let out = p.map(&[product, bias.id], dtype, |_, x| {
        x[0].cast(dtype).cast(compute) + x[1].cast(dtype).cast(compute)
    })?;
    p.finish(&[out])
}

/// Computes beta * self + alpha * column · row, rounded to the result's dtype after each operation, as PyTorch does.
fn addr(args: &Args<'_>) -> Result<Program, OpError> {
    let (x, y, bias) = (args.tensor("vec1")?, args.tensor("vec2")?, args.tensor("self")?);
    check_ranks(&x, &y, Some((1, 1)))?;
    let (alpha, beta) = (args.scalar("alpha")?, args.scalar("beta")?);
    // `self` counts as the matrix that it is expanded to, also where it has no dimensions.
    let dtype = [(&x, 1), (&y, 1), (&bias, 2)]
        .iter()
        .fold(ResultType::new(), |r, (t, rank)| r.tensor(t.dtype(), *rank))
        .dtype()
        .unwrap_or(x.dtype());
    for factor in [alpha, beta] {
        if !matches!(factor, Scalar::Bool(_)) {
            check_alpha(factor, dtype)?;
        }
        factor.checked_to(dtype)?;
    }
    let compute = compute_dtype(dtype);
    let mut p = ProgramBuilder::new(args);
    let (column, row) = (p.unsqueeze(x.id, 1), p.unsqueeze(y.id, 0));
    let sizes = [x.shape.numel(), y.shape.numel()];
    if broadcast(bias.sizes(), &sizes).is_none_or(|s| s[..] != sizes) {
        return Err(broadcast_error(bias.sizes(), &sizes));
    }
    fn rounded(x: Sym<'_>, dtype: DType) -> Sym<'_> {
        x.cast(dtype).cast(compute_dtype(dtype))
    }
    let product = p.map(&[column, row], dtype, |_, x| {
        let (x, y) = (x[0].cast(dtype).cast(compute), x[1].cast(dtype).cast(compute));
        if alpha.as_complex() == Scalar::Int(1).as_complex() {
            x * y
        } else {
            let alpha = rounded(x.number(alpha), dtype);
            rounded(alpha * x, dtype) * y
        }
    })?;
    let out = if beta.as_complex() == Scalar::Int(0).as_complex() {
        product
    } else {
        p.map(&[bias.id, product], dtype, |_, x| {
            let b = x[0].cast(dtype).cast(compute);
            let beta = rounded(b.number(beta), dtype);
            rounded(beta * b, dtype) + x[1]
        })?
    };
    p.finish(&[out])
}

/// Computes beta * self + alpha * product. If beta is 0, self is ignored, including NaN.
fn scaled_sum(p: &mut ProgramBuilder, args: &Args<'_>, product: TensorId, dtype: DType) -> Result<TensorId, OpError> {
    let (alpha, beta) = (args.scalar("alpha")?, args.scalar("beta")?);
    let is = |s: Scalar, n: i64| s.as_complex() == Scalar::Int(n).as_complex();
    let bias = args.tensor("self")?;
    let sizes = p.sizes(product);
    if is(beta, 0) {
        return if is(alpha, 1) {
            p.cast(product, dtype)
        } else {
            p.map(&[product], dtype, |_, x| x[0] * x[0].number(alpha))
        };
    }
    let fits = broadcast(bias.sizes(), &sizes).is_some_and(|s| s == sizes);
    if !fits {
        return Err(OpError::raised(format!(
            "The expanded size of the tensor ({:?}) must match the existing size ({:?})",
            sizes.as_slice(),
            bias.sizes()
        )));
    }
    // A vector is scaled in place before the product is added to it.
    let rounds_bias = args.ctx().name(args.schema().name).starts_with("aten::addmv");
    p.map(&[product, bias.id], dtype, |_, x| {
        let scaled = if is(alpha, 1) { x[0] } else { x[0] * x[0].number(alpha) };
        let wide = x[0].dtype();
        let bias = x[1].cast(wide);
        scaled
            + match (is(beta, 1), rounds_bias) {
                (true, _) => bias,
                (false, true) => (bias * bias.number(beta)).cast(dtype).cast(wide),
                (false, false) => bias * bias.number(beta),
            }
    })
}

/// Computes softmax(query · keyᵀ · scale + mask) · value.
fn attention(args: &Args<'_>) -> Result<Program, OpError> {
    let (q, k, v) = (args.tensor("query")?, args.tensor("key")?, args.tensor("value")?);
    if args.float("dropout_p")? > 0.0 {
        return Err(OpError::Unsupported("scaled_dot_product_attention with dropout".into()));
    }
    if args.flag("is_causal")? && args.opt_tensor("attn_mask")?.is_some() {
        return Err(OpError::raised(
            "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True",
        ));
    }
    let (rank, dtype) = (q.rank(), q.dtype());
    if k.dtype() != dtype || v.dtype() != dtype {
        return Err(OpError::raised(format!(
            "Expected query, key, and value to have the same dtype, but got query.dtype: {} key.dtype: {} and value.dtype: {} instead.",
            dtype.type_name(),
            k.dtype().type_name(),
            v.dtype().type_name()
        )));
    }
    if let ([lead @ .., _], [.., width]) = (q.sizes(), v.sizes())
        && rank.min(k.rank()).min(v.rank()) >= 2
        && (lead.contains(&0) || v.shape.numel() == 0)
    {
        // Nothing is attended to, and nothing is checked; it is a sum.
        let dtype = if dtype == DType::Bool { DType::Long } else { dtype };
        let mut sizes = lead.to_vec();
        sizes.push(*width);
        let mut p = ProgramBuilder::new(args);
        let out = p.fill(dtype, &sizes, Scalar::Int(0))?;
        return p.finish(&[out]);
    }
    if rank < 2 || k.rank() < 2 || v.rank() < 2 || !dtype.is_floating_point() {
        return Err(OpError::raised(
            "scaled_dot_product_attention: query, key and value need two dimensions and a float dtype",
        ));
    }
    let width = q.sizes()[rank - 1];
    // Query and key are scaled before they are multiplied. If they have no features, the scale has no effect, and 1 avoids a division by zero.
    let scale = match width {
        0 => 1.0,
        _ => args.opt_float("scale")?.unwrap_or(1.0 / (width as f64).sqrt()),
    };
    let mut p = ProgramBuilder::new(args);
    let (mut key, mut value) = (k.id, v.id);
    if args.flag("enable_gqa")? && rank >= 3 {
        let heads = q.sizes()[rank - 3];
        key = repeat_heads(&mut p, key, heads)?;
        value = repeat_heads(&mut p, value, heads)?;
    }
    let key_rank = p.rank(key);
    let mut order: Vec<usize> = (0..key_rank).collect();
    order.swap(key_rank - 1, key_rank - 2);
    let transposed = p.permute(key, &order);
    let compute = compute_dtype(dtype);
    // Halves are rounded once, with the result.
    let scores = multiply_as(&mut p, q.id, transposed, compute)?;
    let scores = match args.opt_tensor("attn_mask")? {
        Some(mask) if mask.dtype() == DType::Bool => p.map(&[scores, mask.id], compute, |_, x| {
            x[1].select(x[0] * scale, f64::NEG_INFINITY)
        })?,
        Some(mask) => p.map(&[scores, mask.id], compute, |_, x| {
            x[0] * scale + x[1].cast(x[0].dtype())
        })?,
        None if args.flag("is_causal")? => {
            let rows = p.rank(scores) - 2;
            p.map(&[scores], compute, |f, x| {
                f.index(rows + 1)
                    .le(f.index(rows))
                    .select(x[0] * scale, f64::NEG_INFINITY)
            })?
        }
        None => p.map(&[scores], compute, |_, x| x[0] * scale)?,
    };
    let last = p.rank(scores) - 1;
    let weights = softmax_of(&mut p, scores, last, compute)?;
    // A row that is masked altogether attends to nothing.
    let weights = match args.opt_tensor("attn_mask")? {
        Some(_) => p.map(&[weights], compute, |_, x| {
            x[0].is_nan().select(x[0].constant(0.0), x[0])
        })?,
        None => weights,
    };
    let value = p.cast(value, compute)?;
    let out = multiply_as(&mut p, weights, value, dtype)?;
    p.finish(&[out])
}

/// Repeats the heads of keys or values for grouped queries, in which several heads of queries use one head of keys and values.
fn repeat_heads(p: &mut ProgramBuilder, t: TensorId, heads: i64) -> Result<TensorId, OpError> {
    let sizes = p.sizes(t);
    let rank = sizes.len();
    let own = sizes[rank.saturating_sub(3)];
    if rank < 3 || own == 0 || heads % own != 0 {
        return Err(OpError::raised(
            "Number of heads in key and value must divide the number of heads in query",
        ));
    }
    let wide = p.unsqueeze(t, rank - 2);
    let mut expanded = sizes.clone();
    expanded.insert(rank - 2, heads / own);
    let wide = p.expand(wide, &expanded)?;
    let mut merged = sizes;
    merged[rank - 3] = heads;
    p.reshape(wide, &merged)
}
