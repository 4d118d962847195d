//! Gathers: reads of elements at indices that integer tensors contain.

use super::indexing;
use frazil_ir::DType;
use frazil_ir::schema::AliasUse;
use frazil_runtime::Scalar;
use frazil_runtime::args::{Arg, Args, TensorArg, wrap_dim};
use frazil_runtime::build::{ProgramBuilder, broadcast_error};
use frazil_runtime::entry::{Entry, Role, Row};
use frazil_runtime::gather::{Coordinate, Gather};
use frazil_runtime::layout::{broadcast, checked_numel};
use frazil_runtime::op::Form::LoopNests;
use frazil_runtime::op::OpError;
use frazil_runtime::structured::{Affine, Dims, Program, TensorId, TensorShape};

pub(super) const ENTRIES: &[Row] = &[
    ("aten::embedding", Entry::program(LoopNests, embedding)),
    ("aten::gather", Entry::program(LoopNests, gather)),
    (
        "aten::index",
        Entry::new().aliases(&[("aten::_unsafe_index", AliasUse::Semantics)]),
    ),
    (
        "aten::index.Tensor",
        Entry::program(LoopNests, index)
            .eager(indexing::index)
            .role(Role::Index),
    ),
    (
        "aten::index.Tensor_hacked_twin",
        Entry::program(LoopNests, index).eager(indexing::index),
    ),
    ("aten::index_select", Entry::program(LoopNests, index_select)),
    ("aten::take", Entry::program(LoopNests, take)),
    ("aten::take_along_dim", Entry::program(LoopNests, take_along_dim)),
];

const IN_SELF: &str = "index out of range in self";
const OF_DIMENSION: &str = "index {index} is out of bounds for dimension with size {size}";

/// Appends a gather that reads elements of `tensor`, whose dtype the result has.
fn read(
    p: &mut ProgramBuilder,
    tensor: TensorId,
    coordinates: Vec<Coordinate>,
    sizes: &[i64],
    (from_end, message): (bool, &'static str),
) -> TensorId {
    let output = TensorShape {
        dtype: p.dtype(tensor),
        sizes: sizes.into(),
    };
    p.gather(Gather {
        tensor,
        coordinates: coordinates.into(),
        from_end,
        message: message.into(),
        output,
    })
}

fn affine(rank: usize, d: usize) -> Coordinate {
    Coordinate::Affine(Affine::index(rank, d))
}

fn is_index(dtype: DType) -> bool {
    matches!(dtype, DType::Long | DType::Int)
}

fn embedding(args: &Args<'_>) -> Result<Program, OpError> {
    let mut p = ProgramBuilder::new(args);
    let (weight, indices) = (args.tensor("weight")?, args.tensor("indices")?);
    let &[_, width] = weight.sizes() else {
        return Err(OpError::raised("'weight' must be 2-D"));
    };
    if !is_index(indices.dtype()) {
        return Err(OpError::raised(format!(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got torch.{}Tensor instead (while checking arguments for embedding)",
            indices.dtype().type_name()
        )));
    }
    let mut sizes: Dims = indices.sizes().into();
    sizes.push(width);
    let rank = sizes.len();
    let coordinates = vec![p.index_coordinate(indices.id, 0, rank), affine(rank, rank - 1)];
    let out = read(&mut p, weight.id, coordinates, &sizes, (false, IN_SELF));
    p.finish(&[out])
}

fn index_select(args: &Args<'_>) -> Result<Program, OpError> {
    let mut p = ProgramBuilder::new(args);
    let (t, index) = (args.tensor("self")?, args.tensor("index")?);
    let dim = args.dim("dim", t.rank())?;
    if index.rank() > 1 {
        return Err(OpError::raised("Index is supposed to be a vector"));
    }
    if !is_index(index.dtype()) {
        return Err(OpError::raised("Expected dtype int32 or int64 for index"));
    }
    let count = index.shape.numel();
    let vector = p.reshape(index.id, &[count])?;
    // A number is a vector of one element here.
    let source = if t.rank() == 0 { p.reshape(t.id, &[1])? } else { t.id };
    let mut sizes = p.sizes(source);
    sizes[dim] = count;
    let rank = sizes.len();
    let coordinates = (0..rank)
        .map(|d| {
            if d == dim {
                p.index_coordinate(vector, d, rank)
            } else {
                affine(rank, d)
            }
        })
        .collect();
    let out = read(&mut p, source, coordinates, &sizes, (false, IN_SELF));
    let out = if t.rank() == 0 { p.reshape(out, &[])? } else { out };
    p.finish(&[out])
}

/// Returns the elements of `t` at the coordinates of the elements of `index`. The coordinate along `dim` is the element of `index` itself, counted from the end
/// if it is negative and this is allowed.
fn along(
    p: &mut ProgramBuilder,
    t: TensorId,
    dim: usize,
    index: TensorId,
    from_end: bool,
) -> Result<TensorId, OpError> {
    if p.sizes(index).contains(&0) {
        // Without indices, the index tensor may have any dtype and rank.
        let (dtype, sizes) = (p.dtype(t), p.sizes(index));
        return p.fill(dtype, &sizes, false.into());
    }
    if !is_index(p.dtype(index)) {
        return Err(OpError::raised("gather(): Expected dtype int32/int64 for index"));
    }
    if p.rank(t).max(1) != p.rank(index).max(1) {
        return Err(OpError::raised(
            "Index tensor must have the same number of dimensions as input tensor",
        ));
    }
    let result = p.sizes(index);
    let raised = |p: &mut ProgramBuilder, t: TensorId| if p.rank(t) == 0 { p.reshape(t, &[1]) } else { Ok(t) };
    let (t, index) = (raised(p, t)?, raised(p, index)?);
    let (own, sizes) = (p.sizes(t), p.sizes(index));
    let fits = (0..own.len()).all(|d| d == dim || sizes[d] <= own[d]);
    if !fits && !sizes.contains(&0) {
        return Err(OpError::raised(format!(
            "Size does not match at dimension expected index {:?} to be no larger than self {:?} apart from dimension {dim}",
            sizes.as_slice(),
            own.as_slice()
        )));
    }
    let rank = sizes.len();
    let coordinates = (0..rank)
        .map(|d| {
            if d == dim {
                p.index_coordinate(index, 0, rank)
            } else {
                affine(rank, d)
            }
        })
        .collect();
    let out = read(p, t, coordinates, &sizes, (from_end, OF_DIMENSION));
    p.reshape(out, &result)
}

fn gather(args: &Args<'_>) -> Result<Program, OpError> {
    let mut p = ProgramBuilder::new(args);
    let (t, index) = (args.tensor("self")?, args.tensor("index")?);
    let dim = args.dim("dim", t.rank())?;
    // An empty index may have any dtype and any number of dimensions.
    let out = if index.shape.numel() == 0 {
        p.fill(t.dtype(), index.sizes(), Scalar::Int(0))?
    } else {
        along(&mut p, t.id, dim, index.id, false)?
    };
    p.finish(&[out])
}

/// Returns PyTorch's error for an index tensor whose dtype is not `Long`.
fn check_long(index: &TensorArg, message: &str) -> Result<(), OpError> {
    match index.dtype() {
        DType::Long => Ok(()),
        other => Err(OpError::raised(format!("{message} but got {}", other.type_name()))),
    }
}

fn take(args: &Args<'_>) -> Result<Program, OpError> {
    let mut p = ProgramBuilder::new(args);
    let (t, index) = (args.tensor("self")?, args.tensor("index")?);
    check_long(&index, "take(): Expected a long tensor for index,")?;
    let flat = p.reshape(t.id, &[t.shape.numel()])?;
    let coordinate = p.index_coordinate(index.id, 0, index.rank());
    let out = read(&mut p, flat, vec![coordinate], index.sizes(), (true, OF_DIMENSION));
    p.finish(&[out])
}

fn take_along_dim(args: &Args<'_>) -> Result<Program, OpError> {
    let mut p = ProgramBuilder::new(args);
    let (t, index) = (args.tensor("self")?, args.tensor("indices")?);
    check_long(&index, "torch.take_along_dim(): dtype of indices should be Long")?;
    let (mut source, mut places, mut dim) = (t.id, index.id, 0);
    match args.opt_int("dim")? {
        Some(d) => dim = wrap_dim(d, t.rank())?,
        None => {
            source = p.reshape(source, &[t.shape.numel()])?;
            places = p.reshape(places, &[index.shape.numel()])?;
        }
    }
    if p.rank(source) != p.rank(places) {
        return Err(OpError::raised(
            "torch.take_along_dim(): input and indices should have the same number of dimensions",
        ));
    }
    // Apart from the dimension both broadcast.
    let with = |sizes: &Dims, n: i64| {
        let mut s = sizes.clone();
        if let Some(at) = s.get_mut(dim) {
            *at = n;
        }
        s
    };
    let extent = |p: &ProgramBuilder, t| p.sizes(t).get(dim).copied().unwrap_or(1);
    let (n, m) = (extent(&p, source), extent(&p, places));
    let (a, b) = (with(&p.sizes(source), 1), with(&p.sizes(places), 1));
    let common = broadcast(&a, &b).ok_or_else(|| broadcast_error(&a, &b))?;
    let source = p.expand(source, &with(&common, n))?;
    let places = p.expand(places, &with(&common, m))?;
    let out = along(&mut p, source, dim, places, true)?;
    p.finish(&[out])
}

/// Implements `t[indices]`. Adjacent index tensors are replaced by their broadcast dimensions. If index tensors are not adjacent, these dimensions come
/// first. Masks have no program, because the size of the result depends on their elements.
fn index(args: &Args<'_>) -> Result<Program, OpError> {
    let mut p = ProgramBuilder::new(args);
    let t = args.tensor("self")?;
    let Arg::List(items) = args.get("indices") else {
        return Err(OpError::Unsupported("indices that are no list".into()));
    };
    let mut per_dim: Vec<Option<TensorArg>> = Vec::new();
    for item in items {
        match item {
            Arg::None => per_dim.push(None),
            Arg::Tensor(i) if matches!(i.dtype(), DType::Bool | DType::Byte) => {
                return Err(OpError::Unsupported(
                    "indexing with a mask, whose result has as many elements as the mask says".into(),
                ));
            }
            Arg::Tensor(i) if !is_index(i.dtype()) => {
                return Err(OpError::raised(
                    "tensors used as indices must be long, int, byte or bool tensors",
                ));
            }
            Arg::Tensor(i) => per_dim.push(Some(i)),
            _ => return Err(OpError::Unsupported("an index that is no tensor".into())),
        }
    }
    if per_dim.len() > t.rank() {
        return Err(OpError::raised(format!(
            "too many indices for tensor of dimension {} (got {})",
            t.rank(),
            per_dim.len()
        )));
    }
    per_dim.resize(t.rank(), None);
    let mut common = Dims::new();
    for i in per_dim.iter().flatten() {
        common = broadcast(&common, i.sizes())
            .ok_or_else(|| OpError::raised("shape mismatch: indexing tensors could not be broadcast together"))?;
    }
    let indexed: Vec<usize> = (0..t.rank()).filter(|&d| per_dim[d].is_some()).collect();
    let adjacent = indexed.windows(2).all(|w| w[1] == w[0] + 1);
    let at = if adjacent {
        indexed.first().copied().unwrap_or(0)
    } else {
        0
    };
    let kept: Vec<usize> = (0..t.rank()).filter(|d| per_dim[*d].is_none()).collect();
    let before = kept.iter().filter(|&&d| d < at).count();
    let size = |&d: &usize| t.sizes()[d];
    let mut sizes: Dims = kept[..before].iter().map(size).collect();
    sizes.extend_from_slice(&common);
    sizes.extend(kept[before..].iter().map(size));
    if checked_numel(&sizes).is_none() {
        return Err(OpError::raised("the result of indexing is too large"));
    }
    let rank = sizes.len();
    let coordinates = (0..t.rank())
        .map(|d| match &per_dim[d] {
            Some(i) => p.index_coordinate(i.id, before + common.len() - i.rank(), rank),
            None => {
                let n = kept.iter().position(|&k| k == d).unwrap_or(0);
                affine(rank, if n < before { n } else { n + common.len() })
            }
        })
        .collect();
    let out = read(&mut p, t.id, coordinates, &sizes, (true, OF_DIMENSION));
    p.finish(&[out])
}
