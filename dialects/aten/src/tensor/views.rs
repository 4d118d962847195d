//! Views: the same elements with other sizes and strides.

use frazil_ir::DType;
use frazil_ir::schema::{AliasUse, Observes, ResultRank};
use frazil_runtime::Tensor;
use frazil_runtime::args::{Args, wrap_dim};
use frazil_runtime::build::ProgramBuilder;
use frazil_runtime::entry::{Entry, Role, Row};
use frazil_runtime::layout;
use frazil_runtime::op::Form::{Pointwise, View};
use frazil_runtime::op::{Call, OpError, Results, one};
use frazil_runtime::structured::{Affine, Dims, Program, TensorId};
use frazil_runtime::value::{TensorCell, Value};

/// Entries of the views. Some have an additional kernel for operands that are not row-major: `view` never copies them, `ravel` does.
pub(super) const ENTRIES: &[Row] = &[
    ("aten::is_strides_like_format", Entry::new().observes(Observes::Order)),
    ("aten::sym_is_contiguous", Entry::new().observes(Observes::Order)),
    ("aten::sym_stride", Entry::new().observes(Observes::Strides)),
    ("aten::sym_storage_offset", Entry::new().observes(Observes::Storage)),
    ("aten::as_strided_copy", Entry::new().observes(Observes::Storage)),
    (
        "aten::view",
        Entry::program(View, |a| reshaped(a, "size"))
            .eager(view)
            .rank(ResultRank::LengthOf(1)),
    ),
    // Unlike the view, which never copies, this takes any strides.
    (
        "aten::view_copy",
        Entry::program(Pointwise, |a| {
            let x = a.tensor("self")?;
            let sizes = inferred(&a.ints("size")?, x.shape.numel())?;
            with(a, |p| {
                let view = p.reshape(x.id, &sizes)?;
                p.map(&[view], x.dtype(), |_, x| x[0])
            })
        }),
    ),
    (
        "aten::positive",
        Entry::program(View, |a| {
            let x = a.tensor("self")?;
            if x.dtype() == DType::Bool {
                return Err(OpError::raised("The `+` operator, on a bool tensor is not supported."));
            }
            with(a, |_| Ok(x.id))
        })
        .returns_self(),
    ),
    ("aten::_unsafe_view", Entry::program(View, |a| reshaped(a, "size"))),
    (
        "aten::reshape",
        Entry::program(View, |a| reshaped(a, "shape")).rank(ResultRank::LengthOf(1)),
    ),
    (
        "aten::view_as",
        Entry::program(View, |a| {
            let (x, sizes) = (a.tensor("self")?, a.tensor("other")?.shape.sizes);
            with(a, |p| p.reshape(x.id, &sizes))
        }),
    ),
    (
        "aten::reshape_as",
        Entry::program(View, |a| {
            let (x, sizes) = (a.tensor("self")?, a.tensor("other")?.shape.sizes);
            with(a, |p| p.reshape(x.id, &sizes))
        }),
    ),
    ("aten::flatten", Entry::program(View, flatten).returns_self()),
    ("aten::unflatten", Entry::program(View, unflatten)),
    (
        "aten::ravel",
        Entry::program(View, |a| {
            let x = a.tensor("self")?;
            with(a, |p| p.reshape(x.id, &[x.shape.numel()]))
        })
        .eager(|c| {
            let t = c.tensor(0)?;
            let row_major = if t.is_contiguous() { t } else { t.deep_copy()? };
            one(row_major.reshape(&[row_major.numel()])?)
        }),
    ),
    ("aten::permute", Entry::program(View, permute)),
    (
        "aten::transpose",
        Entry::program(View, transpose).aliases(&[
            ("aten::swapaxes", AliasUse::Everywhere),
            ("aten::swapdims", AliasUse::Everywhere),
        ]),
    ),
    ("aten::swapaxes", Entry::program(View, |a| swapped(a, "axis0", "axis1"))),
    (
        "aten::t",
        Entry::program(View, |a| {
            let x = a.tensor("self")?;
            if x.rank() > 2 {
                let rank = x.rank();
                return Err(OpError::raised(format!(
                    "t() expects a tensor with <= 2 dimensions, but self is {rank}D"
                )));
            }
            reversed_dims(a)
        }),
    ),
    ("aten::numpy_T", Entry::program(View, reversed_dims)),
    ("aten::mT", Entry::program(View, last_two).returns_self()),
    (
        "aten::movedim",
        Entry::program(View, move_dims).aliases(&[("aten::moveaxis", AliasUse::Everywhere)]),
    ),
    (
        "aten::unsqueeze",
        Entry::program(View, |a| {
            let x = a.tensor("self")?;
            let dim = wrap_dim(a.int("dim")?, x.rank() + 1)?;
            with(a, |p| Ok(p.unsqueeze(x.id, dim)))
        }),
    ),
    ("aten::squeeze", Entry::program(View, squeeze)),
    ("aten::expand", Entry::program(View, expand)),
    (
        "aten::expand_as",
        Entry::program(View, |a| {
            let (x, sizes) = (a.tensor("self")?, a.tensor("other")?.shape.sizes);
            with(a, |p| p.expand(x.id, &sizes))
        }),
    ),
    ("aten::broadcast_to", Entry::program(View, expand)),
    (
        "aten::select.int",
        Entry::program(View, select).role(Role::Select).affine_in_integers(),
    ),
    ("aten::slice.Tensor", Entry::program(View, slice)),
    ("aten::narrow", Entry::program(View, narrow).affine_in_integers()),
    ("aten::diagonal", Entry::program(View, |a| diagonal(a, "self"))),
    ("aten::linalg_diagonal", Entry::program(View, |a| diagonal(a, "A"))),
    ("aten::unfold", Entry::program(View, unfold)),
    (
        "aten::atleast_1d",
        Entry::program(View, |a| at_least(a, 1))
            .returns_self()
            .may_return_operand(),
    ),
    (
        "aten::atleast_2d",
        Entry::program(View, |a| at_least(a, 2))
            .returns_self()
            .may_return_operand(),
    ),
    (
        "aten::atleast_3d",
        Entry::program(View, |a| at_least(a, 3))
            .returns_self()
            .may_return_operand(),
    ),
    (
        "aten::as_strided",
        Entry::kernel(|c| one(restrided_window(c)?)).observes(Observes::Storage),
    ),
    (
        "aten::view.dtype",
        Entry::kernel(|c| {
            let dtype = c.opt_dtype(1)?.ok_or_else(|| OpError::raised("view() needs a dtype"))?;
            one(reinterpreted(&c.tensor(0)?, dtype)?)
        }),
    ),
    (
        "aten::view_copy.dtype",
        Entry::kernel(|c| {
            let dtype = c
                .opt_dtype(1)?
                .ok_or_else(|| OpError::raised("view_copy() needs a dtype"))?;
            // The conjugate and negative bits are applied before the elements are copied.
            one(reinterpreted(&c.tensor(0)?.resolved()?, dtype)?.deep_copy()?)
        }),
    ),
    // The in-place forms change the variable itself, for all its holders.
    (
        "aten::as_strided_",
        Entry::kernel(|c| {
            cell(c)?.set(restrided_window(c)?);
            one(c.arg(0).clone())
        })
        .observes(Observes::Storage),
    ),
    (
        "aten::resize_",
        Entry::kernel(|c| {
            frazil_runtime::call::resize(cell(c)?, &c.ints(1)?)?;
            one(c.arg(0).clone())
        }),
    ),
    (
        "aten::resize_as_",
        Entry::kernel(|c| {
            frazil_runtime::call::resize(cell(c)?, c.tensor(1)?.sizes())?;
            one(c.arg(0).clone())
        }),
    ),
];

/// Returns argument 0 as a tensor variable.
fn cell<'a>(call: &'a Call<'_>) -> Result<&'a TensorCell, OpError> {
    match call.arg(0) {
        Value::Tensor(cell) => Ok(cell),
        _ => Err(OpError::raised("expected a tensor")),
    }
}

/// Returns a tensor of another dtype over the same memory. The extent of the last dimension changes with the size of an element.
fn reinterpreted(t: &Tensor, dtype: DType) -> Result<Tensor, OpError> {
    if !t.marks().is_none() {
        return Err(OpError::raised(
            "conjugates and negatives that are views cannot be viewed as another dtype",
        ));
    }
    let (old, new) = (t.dtype().size() as i64, dtype.size() as i64);
    let (mut sizes, mut strides, mut offset) = (t.sizes().to_vec(), t.strides().to_vec(), t.offset());
    if old == new {
        return Ok(t.reinterpret(dtype, &sizes, &strides, offset)?);
    }
    let words = format!(
        "self.dim() cannot be 0 to view {} as {} (different element sizes)",
        t.dtype().type_name(),
        dtype.type_name()
    );
    let (Some(size), Some(1)) = (sizes.last_mut(), strides.last().copied()) else {
        let strided = "self.stride(-1) must be 1 to view a tensor as a dtype of another element size";
        return Err(OpError::raised(if t.dim() == 0 { words } else { strided.to_owned() }));
    };
    if old > new {
        let times = old / new;
        *size *= times;
        offset *= times;
        let last = strides.len() - 1;
        strides[..last].iter_mut().for_each(|s| *s *= times);
    } else {
        let times = new / old;
        let last = strides.len() - 1;
        if *size % times != 0 || offset % times != 0 || strides[..last].iter().any(|s| s % times != 0) {
            return Err(OpError::raised(format!(
                "self.size(-1), the strides and the offset must be divisible by {times} to view {} as {} (different element sizes)",
                t.dtype().type_name(),
                dtype.type_name()
            )));
        }
        *size /= times;
        offset /= times;
        strides[..last].iter_mut().for_each(|s| *s /= times);
    }
    Ok(t.reinterpret(dtype, &sizes, &strides, offset)?)
}

/// Implements `view(size)`, which never copies.
fn view(call: &Call<'_>) -> Result<Results, OpError> {
    let t = call.tensor(0)?;
    let sizes = inferred(&call.ints(1)?, t.numel())?;
    one(t.view(&sizes).ok_or_else(|| {
        OpError::raised(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two \
             contiguous subspaces). Use .reshape(...) instead.",
        )
    })?)
}

fn with(
    args: &Args<'_>,
    build: impl FnOnce(&mut ProgramBuilder) -> Result<TensorId, OpError>,
) -> Result<Program, OpError> {
    let mut p = ProgramBuilder::new(args);
    let out = build(&mut p)?;
    p.finish(&[out])
}

/// Returns the sizes with a -1 replaced by the size that `numel` implies.
pub(super) fn inferred(sizes: &[i64], numel: i64) -> Result<Dims, OpError> {
    let invalid = || OpError::raised(format!("shape '{sizes:?}' is invalid for input of size {numel}"));
    let unknown: Vec<usize> = (0..sizes.len()).filter(|&d| sizes[d] == -1).collect();
    if sizes.iter().any(|&s| s < -1) {
        return Err(OpError::raised(format!("invalid shape dimension in {sizes:?}")));
    }
    let known = sizes
        .iter()
        .filter(|&&s| s != -1)
        .try_fold(1i64, |n, &s| n.checked_mul(s))
        .ok_or_else(invalid)?;
    let mut out: Dims = sizes.into();
    match unknown.as_slice() {
        [] if known == numel => {}
        [d] if known != 0 && numel % known == 0 => out[*d] = numel / known,
        [_] if known == 0 && numel == 0 => {
            return Err(OpError::raised(format!(
                "cannot reshape tensor of 0 elements into shape {sizes:?} because the unspecified dimension size -1 can be any value and is ambiguous"
            )));
        }
        [_, _, ..] => return Err(OpError::raised("only one dimension can be inferred")),
        _ => return Err(invalid()),
    }
    Ok(out)
}

fn reshaped(args: &Args<'_>, name: &str) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    let sizes = inferred(&args.ints(name)?, x.shape.numel())?;
    with(args, |p| p.reshape(x.id, &sizes))
}

fn flatten(args: &Args<'_>) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    let (start, end) = (args.dim("start_dim", x.rank())?, args.dim("end_dim", x.rank())?);
    if start > end {
        return Err(OpError::raised(
            "flatten() has invalid args: start_dim cannot come after end_dim",
        ));
    }
    let sizes = x.sizes();
    if sizes.is_empty() {
        return with(args, |p| p.reshape(x.id, &[1]));
    }
    let mut new: Dims = sizes[..start].into();
    new.push(sizes[start..=end].iter().product());
    new.extend_from_slice(&sizes[end + 1..]);
    with(args, |p| p.reshape(x.id, &new))
}

fn unflatten(args: &Args<'_>) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    let dim = args.dim("dim", x.rank())?;
    let old = x.sizes().get(dim).copied().unwrap_or(1);
    let parts = inferred(&args.ints("sizes")?, old)?;
    let mut new: Dims = x.sizes()[..dim].into();
    new.extend(parts);
    new.extend_from_slice(x.sizes().get(dim + 1..).unwrap_or(&[]));
    with(args, |p| p.reshape(x.id, &new))
}

fn permute(args: &Args<'_>) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    let given = args.ints("dims")?;
    if given.len() != x.rank() {
        return Err(OpError::raised(format!(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of dimensions i.e. input.dim() = {} is not equal to len(dims) = {}",
            x.rank(),
            given.len()
        )));
    }
    let order = if given.is_empty() {
        Vec::new()
    } else {
        args.dims("dims", x.rank())?
    };
    with(args, |p| Ok(p.permute(x.id, &order)))
}

fn swapped(args: &Args<'_>, first: &str, second: &str) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    let (a, b) = (args.dim(first, x.rank())?, args.dim(second, x.rank())?);
    let mut order: Vec<usize> = (0..x.rank()).collect();
    if !order.is_empty() {
        order.swap(a, b);
    }
    with(args, |p| Ok(p.permute(x.id, &order)))
}

fn transpose(args: &Args<'_>) -> Result<Program, OpError> {
    swapped(args, "dim0", "dim1")
}

fn reversed_dims(args: &Args<'_>) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    let order: Vec<usize> = (0..x.rank()).rev().collect();
    with(args, |p| Ok(p.permute(x.id, &order)))
}

pub(super) fn last_two(args: &Args<'_>) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    let rank = x.rank();
    if rank == 0 {
        return with(args, |_| Ok(x.id));
    }
    if rank < 2 {
        return Err(OpError::raised(
            "tensor.mT is only supported on matrices or batches of matrices",
        ));
    }
    let mut order: Vec<usize> = (0..rank).collect();
    order.swap(rank - 1, rank - 2);
    with(args, |p| Ok(p.permute(x.id, &order)))
}

fn move_dims(args: &Args<'_>) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    let rank = x.rank();
    let wrap = |dims: Dims| dims.iter().map(|&d| wrap_dim(d, rank)).collect::<Result<Vec<_>, _>>();
    let (from, to) = (wrap(args.ints("source")?)?, wrap(args.ints("destination")?)?);
    if from.len() != to.len() {
        return Err(OpError::raised("movedim: Invalid source or destination dims"));
    }
    for (name, dims) in [("source", &from), ("destination", &to)] {
        if (1..dims.len()).any(|i| dims[..i].contains(&dims[i])) {
            return Err(OpError::raised(format!("movedim: repeated dim in `{name}` ({dims:?})")));
        }
    }
    if rank == 0 {
        return with(args, |_| Ok(x.id));
    }
    let mut order: Vec<Option<usize>> = vec![None; rank];
    for (&f, &t) in from.iter().zip(&to) {
        order[t] = Some(f);
    }
    let mut rest = (0..rank).filter(|d| !from.contains(d));
    let order: Vec<usize> = order.into_iter().filter_map(|o| o.or_else(|| rest.next())).collect();
    with(args, |p| Ok(p.permute(x.id, &order)))
}

/// Implements `squeeze`. Without a dimension, all dimensions of extent 1 are removed. A specified dimension is kept if its extent is not 1.
fn squeeze(args: &Args<'_>) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    let asked = if args.has("dim") {
        args.dims("dim", x.rank())?
    } else {
        (0..x.rank()).collect()
    };
    let none = args.has("dim") && args.opt_ints("dim")?.is_some_and(|d| d.is_empty());
    let gone: Vec<usize> = asked
        .into_iter()
        .filter(|&d| !none && x.sizes().get(d) == Some(&1))
        .collect();
    with(args, |p| Ok(p.squeeze(x.id, &gone)))
}

/// Implements `expand`. A size of -1 keeps the extent of a dimension.
fn expand(args: &Args<'_>) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    let asked = args.ints("size")?;
    let lead = asked.len().checked_sub(x.rank()).ok_or_else(|| {
        OpError::raised(
            "the number of sizes provided must be greater or equal to the number of dimensions in the tensor",
        )
    })?;
    let size = |(d, &s): (usize, &i64)| match (s, d.checked_sub(lead)) {
        (-1, Some(own)) => Ok(x.sizes()[own]),
        (s, _) if s < 0 => Err(OpError::raised(
            "The expanded size of the tensor isn't allowed in a leading, non-existing dimension",
        )),
        (s, _) => Ok(s),
    };
    let sizes = asked.iter().enumerate().map(size).collect::<Result<Dims, _>>()?;
    with(args, |p| p.expand(x.id, &sizes))
}

fn select(args: &Args<'_>) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    if x.rank() == 0 {
        return Err(OpError::raised("select() cannot be applied to a 0-dim tensor."));
    }
    let dim = args.dim("dim", x.rank())?;
    let (index, size) = (args.int("index")?, x.sizes()[dim]);
    let wrapped = if index < 0 { index + size } else { index };
    if !(0..size).contains(&wrapped) {
        return Err(OpError::raised(format!(
            "select(): index {index} out of range for tensor of size {:?} at dimension {dim}",
            x.sizes()
        )));
    }
    with(args, |p| Ok(p.select(x.id, dim, wrapped)))
}

/// Implements `as_strided(self, size, stride, storage_offset)`.
fn restrided_window(c: &Call<'_>) -> Result<Tensor, OpError> {
    let t = c.tensor(0)?;
    let (sizes, strides) = (c.ints(1)?, c.ints(2)?);
    let offset = c.opt_int(3)?.unwrap_or(t.offset());
    if sizes.len() != strides.len() {
        return Err(OpError::raised("mismatch in length of strides and shape"));
    }
    if strides.iter().any(|&s| s < 0) {
        return Err(OpError::raised(format!(
            "as_strided: Negative strides are not supported at the moment, got strides: {:?}",
            &strides[..]
        )));
    }
    if offset < 0 {
        return Err(OpError::raised(format!("Tensor: invalid storage offset {offset}")));
    }
    let last = layout::checked_numel(&sizes).and_then(|numel| match numel {
        0 => Some(0),
        _ => layout::extent(&sizes, &strides)?.1.checked_add(1),
    });
    let item = t.dtype().size() as i64;
    let Some(bytes) = last.and_then(|n| n.checked_add(if n == 0 { 0 } else { offset })?.checked_mul(item)) else {
        return Err(OpError::raised(format!(
            "Storage size calculation overflowed with sizes={:?} and strides={:?}",
            &sizes[..],
            &strides[..]
        )));
    };
    if bytes > t.storage().len() as i64 {
        return Err(OpError::raised(format!(
            "setStorage: sizes {:?}, strides {:?}, storage offset {offset}, and itemsize {item} requiring a storage size of {bytes} are out of bounds for storage of size {}",
            &sizes[..],
            &strides[..],
            t.storage().len()
        )));
    }
    Ok(t.as_strided(&sizes, &strides, offset)?)
}

fn slice(args: &Args<'_>) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    if x.rank() == 0 {
        return Err(OpError::raised("slice() cannot be applied to a 0-dim tensor."));
    }
    let dim = args.dim("dim", x.rank())?;
    let size = x.sizes()[dim];
    let step = args.int("step")?;
    if step <= 0 {
        return Err(OpError::raised("slice step must be positive"));
    }
    let place = |i: i64| (if i < 0 { i.saturating_add(size) } else { i }).clamp(0, size);
    let start = place(args.opt_int("start")?.unwrap_or(0));
    let end = place(args.opt_int("end")?.unwrap_or(size)).max(start);
    // As PyTorch computes it: steps close to the largest integer wrap around.
    let length = (end - start).wrapping_add(step).wrapping_sub(1) / step;
    if length < 0 {
        let mut sizes = x.sizes().to_vec();
        sizes[dim] = length;
        return Err(OpError::raised(format!(
            "Storage size calculation overflowed with sizes={sizes:?}"
        )));
    }
    with(args, |p| Ok(p.slice(x.id, dim, start, length, step)))
}

fn narrow(args: &Args<'_>) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    let dim = args.dim("dim", x.rank())?;
    let size = x
        .sizes()
        .get(dim)
        .copied()
        .ok_or_else(|| OpError::raised("narrow() cannot be applied to a 0-dim tensor."))?;
    let (start, length) = (args.int("start")?, args.int("length")?);
    let start = if start < 0 { start + size } else { start };
    if length < 0 || start < 0 || start.checked_add(length).is_none_or(|end| end > size) {
        return Err(OpError::raised(format!(
            "start ({start}) + length ({length}) exceeds dimension size ({size})."
        )));
    }
    with(args, |p| Ok(p.slice(x.id, dim, start, length, 1)))
}

fn diagonal(args: &Args<'_>, name: &str) -> Result<Program, OpError> {
    let x = args.tensor(name)?;
    let (d1, d2) = (args.dim("dim1", x.rank())?, args.dim("dim2", x.rank())?);
    if d1 == d2 {
        return Err(OpError::raised(format!(
            "diagonal dimensions cannot be identical {d1}, {d2}"
        )));
    }
    let offset = args.int("offset")?;
    let (n, m) = (x.sizes()[d1], x.sizes()[d2]);
    let length = if offset >= 0 {
        n.min(m - offset)
    } else {
        (n + offset).min(m)
    }
    .max(0);
    let kept: Vec<usize> = (0..x.rank()).filter(|&d| d != d1 && d != d2).collect();
    let rank = kept.len() + 1;
    let mut sizes: Dims = kept.iter().map(|&d| x.sizes()[d]).collect();
    sizes.push(length);
    let map = (0..x.rank())
        .map(|d| {
            let mut a = match kept.iter().position(|&k| k == d) {
                Some(i) => return Affine::index(rank, i),
                None => Affine::index(rank, rank - 1),
            };
            if length > 0 {
                a.offset = if d == d1 { (-offset).max(0) } else { offset.max(0) };
            }
            a
        })
        .collect();
    with(args, |p| Ok(p.view(x.id, &sizes, map)))
}

/// Implements `unfold`: windows of `size` elements along a dimension, at every `step`-th position. The elements of a window are a new last dimension.
fn unfold(args: &Args<'_>) -> Result<Program, OpError> {
    let x = args.tensor("self")?;
    let (size, step) = (args.int("size")?, args.int("step")?);
    let dim = args.dim("dimension", x.rank())?;
    if x.rank() == 0 {
        // One window of one element, or an empty one.
        if !(0..=1).contains(&size) || step <= 0 {
            return Err(OpError::raised(format!(
                "maximum size for tensor at dimension 0 is 1 but size is {size}"
            )));
        }
        return with(args, |p| {
            let row = p.unsqueeze(x.id, 0);
            Ok(p.slice(row, 0, 0, size, 1))
        });
    }
    let extent = x.sizes()[dim];
    if size < 0 || size > extent || step <= 0 {
        return Err(OpError::raised(format!(
            "maximum size for tensor at dimension {dim} is {extent} but size is {size}"
        )));
    }
    let rank = x.rank() + 1;
    let mut sizes = x.shape.sizes.clone();
    sizes[dim] = (extent - size) / step + 1;
    // One window has no next one, as in `ProgramBuilder::slice`.
    let step = if sizes[dim] == 1 { step.min(1 << 24) } else { step };
    sizes.push(size);
    let mut map: Vec<Affine> = (0..x.rank()).map(|d| Affine::index(rank, d)).collect();
    map[dim].coefficients[dim] = step;
    map[dim].coefficients[rank - 1] = 1;
    with(args, |p| Ok(p.view(x.id, &sizes, map)))
}

fn at_least(args: &Args<'_>, rank: usize) -> Result<Program, OpError> {
    let tensors = if args.has("tensors") {
        args.tensors("tensors")?
    } else {
        vec![args.tensor("self")?]
    };
    let mut p = ProgramBuilder::new(args);
    let outputs = tensors
        .iter()
        .map(|t| p.reshape(t.id, &raised_sizes(t.sizes(), rank)))
        .collect::<Result<Vec<_>, _>>()?;
    p.finish(&outputs)
}

/// Returns the sizes of a tensor extended to at least `rank` (at most three) dimensions, as in NumPy.
pub(super) fn raised_sizes(s: &[i64], rank: usize) -> Dims {
    match (rank, s.len()) {
        (r, n) if n >= r => s.into(),
        (1, _) => smallvec::smallvec![1],
        (2, 0) => smallvec::smallvec![1, 1],
        (2, _) => smallvec::smallvec![1, s[0]],
        (_, 0) => smallvec::smallvec![1, 1, 1],
        (_, 1) => smallvec::smallvec![1, s[0], 1],
        _ => smallvec::smallvec![s[0], s[1], 1],
    }
}
