//! Indexed reads and writes, with indices in other tensors. Operators that depend on the values of indices are kernels.

use super::indexed_reduction::reduced;
use frazil_ir::DType;
use frazil_ir::schema::AliasUse;
use frazil_runtime::args::wrap_dim;
use frazil_runtime::elements::Join;
use frazil_runtime::entry::{Entry, ResultLayout, Row};
use frazil_runtime::layout::{broadcast, checked_numel, contiguous_strides};
use frazil_runtime::op::{Call, OpError, Results, one};
use frazil_runtime::value::Value;
use frazil_runtime::{Scalar, Tensor, TensorError, memory};

/// Entries of indexed writes (`index_put`, `scatter`, `index_add`), and of reads whose result size depends on the elements (`masked_select`, `nonzero`).
pub(super) const ENTRIES: &[Row] = &[
    (
        "aten::index_put",
        Entry::kernel(|c| written(c, index_put))
            .layout(ResultLayout::LikeFirst)
            .fixed_sizes()
            .aliases(&[
                ("aten::_index_put_impl", AliasUse::Semantics),
                ("aten::_unsafe_index_put", AliasUse::Semantics),
            ]),
    ),
    ("aten::index_put_", Entry::kernel(|c| in_place(c, index_put))),
    ("aten::_index_put_impl_", Entry::kernel(|c| in_place(c, index_put))),
    (
        "aten::index_add",
        Entry::kernel(|c| written(c, |c, t| along(c, t, 3, Join::Add, c.scalar(4)?))).fixed_sizes(),
    ),
    (
        "aten::index_add_",
        Entry::kernel(|c| in_place(c, |c, t| along(c, t, 3, Join::Add, c.scalar(4)?))),
    ),
    (
        "aten::index_copy",
        Entry::kernel(|c| written(c, |c, t| along(c, t, 3, Join::Replace, Scalar::Int(1)))).fixed_sizes(),
    ),
    (
        "aten::index_copy_",
        Entry::kernel(|c| in_place(c, |c, t| along(c, t, 3, Join::Replace, Scalar::Int(1)))),
    ),
    (
        "aten::index_fill",
        Entry::kernel(|c| written(c, index_fill))
            .layout(ResultLayout::LikeFirst)
            .fixed_sizes(),
    ),
    ("aten::index_fill_", Entry::kernel(|c| in_place(c, index_fill))),
    ("aten::scatter", Entry::kernel(|c| written(c, scatter)).fixed_sizes()),
    ("aten::scatter_", Entry::kernel(|c| in_place(c, scatter))),
    (
        "aten::scatter_add",
        Entry::kernel(|c| written(c, |c, t| scatter_with(c, t, Join::Add))).fixed_sizes(),
    ),
    (
        "aten::scatter_add_",
        Entry::kernel(|c| in_place(c, |c, t| scatter_with(c, t, Join::Add))),
    ),
    (
        "aten::scatter_reduce.two",
        Entry::kernel(|c| written(c, scatter_reduce)).fixed_sizes(),
    ),
    (
        "aten::scatter_reduce_.two",
        Entry::kernel(|c| in_place(c, scatter_reduce)),
    ),
    (
        "aten::put",
        Entry::kernel(|c| written(c, put))
            .layout(ResultLayout::LikeFirst)
            .fixed_sizes(),
    ),
    ("aten::put_", Entry::kernel(|c| in_place(c, put))),
    ("aten::masked_select", Entry::kernel(masked_select)),
    (
        "aten::masked_scatter",
        Entry::kernel(|c| {
            let (t, mask) = (c.tensor(0)?, c.tensor(1)?);
            let sizes = broadcast(t.sizes(), mask.sizes())
                .ok_or_else(|| frazil_runtime::build::broadcast_error(t.sizes(), mask.sizes()))?;
            let out = t.expand(&sizes)?.deep_copy()?;
            masked_scatter(c, &out)?;
            one(out)
        })
        .fixed_sizes(),
    ),
    ("aten::index_reduce", Entry::kernel(|c| written(c, index_reduce))),
    ("aten::index_reduce_", Entry::kernel(|c| in_place(c, index_reduce))),
    ("aten::masked_scatter_", Entry::kernel(|c| in_place(c, masked_scatter))),
    (
        "aten::nonzero",
        Entry::kernel(nonzero).layout(ResultLayout::ColumnMajor),
    ),
    (
        "aten::argwhere",
        Entry::kernel(nonzero).layout(ResultLayout::ColumnMajor),
    ),
    ("aten::nonzero_numpy", Entry::kernel(nonzero_columns)),
    ("aten::where", Entry::kernel(nonzero_columns)),
];

/// Returns a copy of argument 0 that `write` has changed.
fn written(call: &Call<'_>, write: fn(&Call<'_>, &Tensor) -> Result<(), OpError>) -> Result<Results, OpError> {
    let out = call.tensor(0)?.deep_copy()?;
    write(call, &out)?;
    one(out)
}

/// Calls `write`, which changes argument 0, and returns the argument.
fn in_place(call: &Call<'_>, write: fn(&Call<'_>, &Tensor) -> Result<(), OpError>) -> Result<Results, OpError> {
    write(call, &call.tensor(0)?)?;
    one(call.arg(0).clone())
}

/// Returns `index` as a non-negative index: a negative one counts from the end.
fn wrapped(index: i64, size: i64) -> Result<i64, OpError> {
    let i = if index < 0 { index.saturating_add(size) } else { index };
    if (0..size).contains(&i) {
        Ok(i)
    } else {
        Err(out_of_bounds(index, size))
    }
}

fn out_of_bounds(index: i64, size: i64) -> OpError {
    OpError::raised(format!("index {index} is out of bounds for dimension with size {size}"))
}

/// Returns the multi-indices of the non-zero elements as rows, and the number of rows.
fn places(t: &Tensor) -> (Vec<i64>, usize) {
    let rank = t.dim();
    let mut rows = Vec::new();
    let strides = contiguous_strides(t.sizes());
    let truth: Vec<u8> = t.to_dtype(DType::Bool).map(|b| b.to_vec()).unwrap_or_default();
    for (at, _) in truth.iter().enumerate().filter(|(_, b)| **b != 0) {
        rows.extend((0..rank).map(|d| at as i64 / strides[d] % t.sizes()[d]));
    }
    (rows, rank)
}

fn nonzero(call: &Call<'_>) -> Result<Results, OpError> {
    let t = call.tensor(0)?;
    let (rows, rank) = places(&t);
    let count = match rows.len().checked_div(rank) {
        Some(count) => count as i64,
        None => i64::from(t.item()?.as_bool()),
    };
    one(Tensor::from_i64(&rows, &[count, rank as i64])?)
}

/// Returns the indices of the non-zero elements, one tensor per dimension. A zero-dimensional tensor is treated as a
/// vector of one element.
fn nonzero_columns(call: &Call<'_>) -> Result<Results, OpError> {
    let t = call.tensor(0)?;
    let t = if t.dim() == 0 { t.reshape(&[1])? } else { t };
    one(Value::tensors(columns(&places(&t))?))
}

fn columns((rows, rank): &(Vec<i64>, usize)) -> Result<Vec<Tensor>, OpError> {
    let column = |d: usize| -> Result<Tensor, OpError> {
        let values: Vec<i64> = rows.iter().skip(d).step_by((*rank).max(1)).copied().collect();
        Ok(Tensor::from_i64(&values, &[values.len() as i64])?)
    };
    (0..*rank).map(column).collect()
}

/// Returns the row-major positions that `t[indices]` reads, and the sizes of the result.
///
/// Boolean masks represent the indices where they are true. The broadcast dimensions of adjacent index tensors are in their place, those of separated ones come
/// first.
fn advanced(t: &Tensor, indices: &[Value]) -> Result<(Vec<i64>, Vec<i64>), OpError> {
    if indices.len() > t.dim() {
        return Err(too_many_indices(t, indices.len()));
    }
    // One index tensor, or none, for each dimension of t.
    let mut per_dim: Vec<Option<Tensor>> = Vec::new();
    for v in indices {
        let Some(index) = v.as_tensor() else {
            per_dim.push(None);
            continue;
        };
        match index.dtype() {
            DType::Bool | DType::Byte => {
                let first = per_dim.len();
                for d in 0..index.dim() {
                    if index.sizes().get(d) != t.sizes().get(first + d) {
                        return Err(OpError::raised(format!(
                            "The shape of the mask {:?} at index {d} does not match the shape of the indexed tensor {:?} at index {}",
                            index.sizes(),
                            t.sizes(),
                            first + d
                        )));
                    }
                }
                per_dim.extend(columns(&places(&index))?.into_iter().map(Some));
            }
            DType::Long | DType::Int | DType::Short | DType::Char => per_dim.push(Some(index)),
            _ => {
                return Err(OpError::raised(
                    "tensors used as indices must be long, int, byte or bool tensors",
                ));
            }
        }
    }
    if per_dim.len() > t.dim() {
        return Err(too_many_indices(t, per_dim.len()));
    }
    per_dim.resize(t.dim(), None);
    let indexed: Vec<usize> = (0..t.dim()).filter(|&d| per_dim[d].is_some()).collect();
    let mut common = frazil_runtime::structured::Dims::new();
    for index in per_dim.iter().flatten() {
        common = broadcast(&common, index.sizes())
            .ok_or_else(|| OpError::raised("shape mismatch: indexing tensors could not be broadcast together"))?;
    }
    let adjacent = indexed.windows(2).all(|w| w[1] == w[0] + 1);
    let at = if adjacent {
        indexed.first().copied().unwrap_or(0)
    } else {
        0
    };
    let kept: Vec<usize> = (0..t.dim()).filter(|d| per_dim[*d].is_none()).collect();
    let before = kept.iter().filter(|&&d| d < at).count();
    let mut sizes: Vec<i64> = kept[..before].iter().map(|&d| t.sizes()[d]).collect();
    sizes.extend_from_slice(&common);
    sizes.extend(kept[before..].iter().map(|&d| t.sizes()[d]));
    let strides = contiguous_strides(t.sizes());
    // Offsets of the index tensors' combinations, then of the kept dimensions around them.
    let (Some(count), Some(numel)) = (checked_numel(&common), checked_numel(&sizes)) else {
        return Err(TensorError::TooManyElements.into());
    };
    if sizes.contains(&0) && count > 0 && indexed.iter().all(|&d| t.sizes()[d] > 0) {
        // Nothing is read, and so no index looked at.
        return Ok((Vec::new(), sizes));
    }
    if numel > 0 {
        memory::check_items(numel, size_of::<i64>())?;
    }
    let mut offsets = memory::filled(count as usize, 0i64)?;
    for &d in &indexed {
        let Some(index) = &per_dim[d] else { continue };
        for (offset, i) in offsets.iter_mut().zip(index.expand(&common)?.to_i64_vec()) {
            *offset += wrapped(i, t.sizes()[d])? * strides[d];
        }
    }
    let offsets_of = |dims: &[usize]| {
        let mut all = vec![0i64];
        for &d in dims {
            all = all
                .iter()
                .flat_map(|&o| (0..t.sizes()[d]).map(move |i| (o, i)))
                .map(|(o, i)| o + i * strides[d])
                .collect();
        }
        all
    };
    let (outer, inner) = (offsets_of(&kept[..before]), offsets_of(&kept[before..]));
    let mut positions = memory::with_capacity(numel as usize)?;
    for o in &outer {
        for m in &offsets {
            positions.extend(inner.iter().map(|i| o + m + i));
        }
    }
    Ok((positions, sizes))
}

fn too_many_indices(t: &Tensor, given: usize) -> OpError {
    OpError::raised(format!(
        "too many indices for tensor of dimension {} (got {given})",
        t.dim()
    ))
}

pub(super) fn index(call: &Call<'_>) -> Result<Results, OpError> {
    let t = call.tensor(0)?;
    let indices = call.arg(1).items().unwrap_or_default();
    // PyTorch's operator raises an internal error for masks without dimensions alone, which only its Python front end supports.
    let mut tensors = indices.iter().filter_map(Value::as_tensor).peekable();
    if tensors.peek().is_some() && tensors.all(|i| i.dim() == 0 && matches!(i.dtype(), DType::Bool | DType::Byte)) {
        advanced(&t, &indices)?;
        return Err(OpError::raised(format!(
            "a mask without dimensions is no index of a tensor of dimension {}",
            t.dim()
        )));
    }
    let (positions, sizes) = advanced(&t, &indices)?;
    one(t.take(&positions, &sizes)?)
}

/// Returns `t` without the repetitions along expanded dimensions, and the positions in it that correspond to the
/// row-major `positions` of `t`.
fn collapsed(t: &Tensor, mut positions: Vec<i64>) -> Result<(Tensor, Vec<i64>), OpError> {
    let sizes: Vec<i64> = t
        .sizes()
        .iter()
        .zip(t.strides())
        .map(|(&size, &stride)| if stride == 0 { size.min(1) } else { size })
        .collect();
    let base = t.as_strided(&sizes, t.strides(), t.offset())?;
    let (from, to) = (contiguous_strides(t.sizes()), contiguous_strides(&sizes));
    for position in &mut positions {
        let mut rest = *position;
        *position = 0;
        for d in 0..t.dim() {
            let at = rest / from[d];
            rest %= from[d];
            *position += if sizes[d] == t.sizes()[d] { at * to[d] } else { 0 };
        }
    }
    Ok((base, positions))
}

fn index_put(call: &Call<'_>, t: &Tensor) -> Result<(), OpError> {
    let indices = call.arg(1).items().unwrap_or_default();
    let (positions, sizes) = advanced(t, &indices)?;
    let mut values = call.tensor(2)?;
    let is_mask = |v: &Value| {
        v.as_tensor()
            .is_none_or(|i| matches!(i.dtype(), DType::Bool | DType::Byte))
    };
    if values.numel() == 1 && !call.flag(3)? && indices.iter().all(is_mask) {
        // Masks are filled with one value, whatever its dimensions and dtype; one without dimensions says of all places whether they are.
        let value = values.reshape(&[])?;
        value.item()?.checked_to(t.dtype())?;
        values = value.to_dtype(t.dtype())?;
        let mut masks = indices.iter().filter_map(Value::as_tensor);
        if let (Some(only), None) = (masks.next(), masks.next())
            && only.dim() == 0
            && !only.item()?.as_bool()
        {
            return Ok(());
        }
    }
    if values.dtype() != t.dtype() {
        return Err(OpError::raised(format!(
            "Index put requires the source and destination dtypes match, got {} for the destination and {} for the source.",
            t.dtype().type_name(),
            values.dtype().type_name()
        )));
    }
    let values = values.expand(&sizes).map_err(|_| {
        OpError::raised(format!(
            "shape mismatch: value tensor of shape {:?} cannot be broadcast to indexing result of shape {sizes:?}",
            values.sizes()
        ))
    })?;
    let join = if call.flag(3)? { Join::Add } else { Join::Replace };
    if t.strides()
        .iter()
        .zip(t.sizes())
        .any(|(&stride, &size)| stride == 0 && size > 1)
    {
        // Elements along an expanded dimension are one: written as often as it is named.
        let (base, positions) = collapsed(t, positions)?;
        return Ok(base.put_(&positions, &values, join)?);
    }
    Ok(t.put_(&positions, &values, join)?)
}

/// A tensor split at a dimension: the number of outer iterations, the extent, and the number of elements per index.
pub(super) struct Axis {
    pub outer: i64,
    pub size: i64,
    pub inner: i64,
}

impl Axis {
    pub(super) fn of(t: &Tensor, dim: usize) -> Axis {
        let s = t.sizes();
        Axis {
            outer: s.get(..dim).map_or(1, |s| s.iter().product()),
            size: s.get(dim).copied().unwrap_or(1),
            inner: s.get(dim + 1..).map_or(1, |s| s.iter().product()),
        }
    }
}

/// Returns the row-major positions in `t` of the slices with the indices `indices` along `dim`.
fn slices(t: &Tensor, dim: usize, indices: &[i64]) -> Vec<i64> {
    let axis = Axis::of(t, dim);
    let mut positions = Vec::new();
    for o in 0..axis.outer {
        for &i in indices {
            let first = (o * axis.size + i) * axis.inner;
            positions.extend(first..first + axis.inner);
        }
    }
    positions
}

/// Returns argument 1, a dimension, and argument 2, the indices along this dimension, both checked.
fn dim_and_indices(call: &Call<'_>, t: &Tensor) -> Result<(usize, Vec<i64>), OpError> {
    let dim = wrap_dim(call.int(1)?, t.dim())?;
    let index = call.tensor(2)?;
    if index.dim() > 1 {
        return Err(OpError::raised("Index is supposed to be a vector"));
    }
    if !matches!(index.dtype(), DType::Long | DType::Int) {
        return Err(OpError::raised("Expected dtype int32 or int64 for index"));
    }
    let size = t.sizes().get(dim).copied().unwrap_or(1);
    let indices = index.to_i64_vec();
    let each = |i: i64| {
        if (0..size).contains(&i) {
            Ok(i)
        } else {
            Err(OpError::raised("index out of range in self"))
        }
    };
    Ok((dim, indices.into_iter().map(each).collect::<Result<_, _>>()?))
}

/// Combines the slices of argument `source` with the slices of `t` that the index selects.
fn along(call: &Call<'_>, t: &Tensor, source: usize, join: Join, scale: Scalar) -> Result<(), OpError> {
    let (dim, indices) = dim_and_indices(call, t)?;
    let mut source = call.tensor(source)?;
    if source.dtype() != t.dtype() {
        return Err(OpError::raised("self and source expected to have the same dtype"));
    }
    let positions = slices(t, dim, &indices);
    if source.numel() != positions.len() as i64 {
        return Err(OpError::raised("Number of indices should be equal to source.size(dim)"));
    }
    if scale != Scalar::Int(1) {
        source = scaled(&source, scale)?;
    }
    Ok(t.put_(&positions, &source, join)?)
}

/// Returns `t * factor` in the dtype of `t`.
fn scaled(t: &Tensor, factor: Scalar) -> Result<Tensor, OpError> {
    let out = Tensor::zeros(t.dtype(), t.sizes())?;
    let factors = Tensor::full(t.dtype(), t.sizes(), factor.checked_to(t.dtype())?)?;
    let all: Vec<i64> = (0..t.numel()).collect();
    out.copy_(t)?;
    out.put_(&all, &factors, Join::Mul)?;
    Ok(out)
}

fn index_fill(call: &Call<'_>, t: &Tensor) -> Result<(), OpError> {
    if let Value::Tensor(value) = call.arg(3)
        && value.get().dim() != 0
    {
        return Err(OpError::raised(format!(
            "index_fill_ only supports a 0-dimensional value tensor, but got tensor with {} dimension(s).",
            value.get().dim()
        )));
    }
    let dim = wrap_dim(call.int(1)?, t.dim())?;
    if t.numel() == 0 {
        // Nothing is written, and so no index looked at.
        return Ok(());
    }
    let size = t.sizes().get(dim).copied().unwrap_or(1);
    let indices = call
        .tensor(2)?
        .to_i64_vec()
        .into_iter()
        .map(|i| wrapped(i, size))
        .collect::<Result<Vec<_>, _>>()?;
    let value = match call.arg(3) {
        Value::Tensor(v) => v.get().item()?,
        _ => call.scalar(3)?,
    }
    .checked_to(t.dtype())?;
    let positions = slices(t, dim, &indices);
    let values = Tensor::full(t.dtype(), &[positions.len() as i64], value)?;
    // Elements along an expanded dimension are one.
    let (base, positions) = collapsed(t, positions)?;
    Ok(base.put_(&positions, &values, Join::Replace)?)
}

/// Returns for each element of `index` the position in `t` that it selects along `dim`.
fn gathered(t: &Tensor, dim: usize, index: &Tensor) -> Result<Vec<i64>, OpError> {
    if index.numel() == 0 {
        return Ok(Vec::new());
    }
    if index.dtype() != DType::Long && index.dtype() != DType::Int {
        return Err(OpError::raised("gather(): Expected dtype int64 for index"));
    }
    if t.dim().max(1) != index.dim().max(1) {
        return Err(OpError::raised(
            "Index tensor must have the same number of dimensions as input tensor",
        ));
    }
    let fits = (0..t.dim()).all(|d| d == dim || index.sizes().get(d).is_none_or(|&n| n <= t.sizes()[d]));
    if !fits && index.numel() > 0 {
        return Err(OpError::raised(format!(
            "Size does not match at dimension expected index {:?} to be no larger than self {:?} apart from dimension {dim}",
            index.sizes(),
            t.sizes()
        )));
    }
    let size = t.sizes().get(dim).copied().unwrap_or(1);
    let (strides, own) = (contiguous_strides(t.sizes()), contiguous_strides(index.sizes()));
    let place = |(at, i): (usize, i64)| {
        if !(0..size).contains(&i) {
            return Err(out_of_bounds(i, size));
        }
        let rest = (0..index.dim().min(t.dim())).filter(|&d| d != dim);
        let base: i64 = rest.map(|d| at as i64 / own[d] % index.sizes()[d] * strides[d]).sum();
        Ok(base + i * strides.get(dim).copied().unwrap_or(1))
    };
    index.to_i64_vec().into_iter().enumerate().map(place).collect()
}

fn scatter(call: &Call<'_>, t: &Tensor) -> Result<(), OpError> {
    let join = match call.args.get(4).and_then(Value::as_str) {
        None => Join::Replace,
        Some("add") => Join::Add,
        Some("multiply") => Join::Mul,
        Some(_) => return Err(OpError::raised("reduce argument must be either add or multiply.")),
    };
    scatter_with(call, t, join)
}

/// Returns the elements of `src` at the coordinates of the elements of `index`, in the order of `index`.
fn source_of(src: &Tensor, index: &Tensor) -> Result<Tensor, OpError> {
    if src.dim() == 0 || index.numel() == 0 {
        return Ok(src.reshape(&[src.numel()])?);
    }
    if index.dim() == 0 && src.dim() == 1 {
        // A number is a vector of one element here.
        return Ok(src.as_strided(&[1], src.strides(), src.offset())?);
    }
    if src.dim() != index.dim() || index.sizes().iter().zip(src.sizes()).any(|(i, s)| i > s) {
        return Err(OpError::raised(format!(
            "Expected index {:?} to be no larger than src {:?}",
            index.sizes(),
            src.sizes()
        )));
    }
    Ok(src.as_strided(index.sizes(), src.strides(), src.offset())?)
}

fn scatter_with(call: &Call<'_>, t: &Tensor, join: Join) -> Result<(), OpError> {
    let index = call.tensor(2)?;
    let dim = wrap_dim(call.int(1)?, t.dim())?;
    let positions = gathered(t, dim, &index)?;
    let values = match call.arg(3) {
        Value::Tensor(src) => {
            if src.get().dtype() != t.dtype() {
                return Err(OpError::raised(
                    "scatter(): Expected self.dtype to be equal to src.dtype",
                ));
            }
            source_of(&src.get(), &index)?
        }
        _ if positions.is_empty() => Tensor::zeros(t.dtype(), &[0])?,
        _ => {
            let value = call.scalar(3)?.checked_to(t.dtype())?;
            Tensor::full(t.dtype(), &[positions.len() as i64], value)?
        }
    };
    Ok(t.put_(&positions, &values, join)?)
}

/// Computes the sum, product, mean, maximum or minimum of the values scattered to each position, with or without the
/// previous element.
fn scatter_reduce(call: &Call<'_>, t: &Tensor) -> Result<(), OpError> {
    let (index, include_self) = (call.tensor(2)?, call.flag(5)?);
    let dim = wrap_dim(call.int(1)?, t.dim())?;
    if call.tensor(3)?.dtype() != t.dtype() {
        return Err(OpError::raised(
            "scatter(): Expected self.dtype to be equal to src.dtype",
        ));
    }
    let positions = gathered(t, dim, &index)?;
    let src = source_of(&call.tensor(3)?, &index)?;
    reduced(t, &positions, &src, call.text(4)?, include_self)
}

/// Implements `index_reduce_`: reduces the slices of `source` into the slices of `t` that `index` selects along a dimension, by product, mean, maximum or
/// minimum.
fn index_reduce(call: &Call<'_>, t: &Tensor) -> Result<(), OpError> {
    let (dim, indices) = dim_and_indices(call, t)?;
    let (source, include_self) = (call.tensor(3)?, call.flag(5)?);
    let how = call.text(4)?;
    if !["prod", "mean", "amax", "amin"].contains(&how) {
        return Err(OpError::raised(format!(
            "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {how}."
        )));
    }
    if source.dtype() != t.dtype() {
        return Err(OpError::raised(
            "index_reduce(): Expected self and source to have the same dtype",
        ));
    }
    let positions = slices(t, dim, &indices);
    if source.numel() != positions.len() as i64 {
        return Err(OpError::raised(
            "index_reduce(): Number of indices should be equal to source.size(dim)",
        ));
    }
    reduced(t, &positions, &source, how, include_self)
}

fn put(call: &Call<'_>, t: &Tensor) -> Result<(), OpError> {
    let (index, source) = (call.tensor(1)?, call.tensor(2)?);
    let positions = index
        .to_i64_vec()
        .into_iter()
        .map(|i| wrapped(i, t.numel()))
        .collect::<Result<Vec<_>, _>>()?;
    if source.numel() != positions.len() as i64 {
        return Err(OpError::raised(
            "put_(): Expected source and index to have the same number of elements",
        ));
    }
    Ok(t.put_(
        &positions,
        &source,
        if call.flag(3)? { Join::Add } else { Join::Replace },
    )?)
}

/// Returns the row-major positions at which a mask, broadcast to `sizes`, is true.
fn masked(mask: &Tensor, sizes: &[i64]) -> Result<Vec<i64>, OpError> {
    if mask.dtype() != DType::Bool {
        return Err(OpError::raised("masked operations expect a BoolTensor as mask"));
    }
    let truth: Vec<u8> = mask.expand(sizes)?.to_vec();
    Ok((0..).zip(truth).filter(|(_, b)| *b != 0).map(|(i, _)| i).collect())
}

fn masked_select(call: &Call<'_>) -> Result<Results, OpError> {
    let (t, mask) = (call.tensor(0)?, call.tensor(1)?);
    let sizes = broadcast(t.sizes(), mask.sizes())
        .ok_or_else(|| frazil_runtime::build::broadcast_error(t.sizes(), mask.sizes()))?;
    let positions = masked(&mask, &sizes)?;
    one(t.expand(&sizes)?.take(&positions, &[positions.len() as i64])?)
}

fn masked_scatter(call: &Call<'_>, t: &Tensor) -> Result<(), OpError> {
    let (mask, source) = (call.tensor(1)?, call.tensor(2)?);
    if source.dtype() != t.dtype() {
        return Err(OpError::raised(format!(
            "masked_scatter: expected self and source to have same dtypes but got{} and {}",
            t.dtype().type_name(),
            source.dtype().type_name()
        )));
    }
    let positions = masked(&mask, t.sizes())?;
    if (source.numel() as usize) < positions.len() {
        return Err(OpError::raised("Number of elements of source < number of ones in mask"));
    }
    Ok(t.put_(&positions, &source, Join::Replace)?)
}
