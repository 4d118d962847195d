//! Folding of subsequent operations into the weights of a convolution or linear: detection of the layer, common conditions, and arithmetic.
//!
//! The common conditions are:
//! - weight and bias are constants that are not written;
//! - the layer's result is used by the folded node alone, except for queries of its shape or type;
//! - both are in one block, in which the result is not written in between;
//! - results keep their dtype.
//!
//! New weights are computed in f64 and rounded once.

use super::constants::{from_f64, insert_constant, is_none, tensor, to_f64};
use super::rank::rank;
use super::scaled::{Channels, scaled};
use crate::{AliasDb, PassContext, PassContextExt};
use frazil_ir::schema::Catalogue;
use frazil_ir::{Builder, Constant, DType, Graph, NodeId, SymbolId, TensorData, TypeKind, ValueId, symbols, types};
use std::sync::Arc;

/// A convolution or linear layer whose weights are constants.
pub struct Layer {
    /// The node that computes the layer.
    pub node: NodeId,
    /// The weight of the layer.
    pub weight: Arc<TensorData>,
    /// The bias of the layer, if it has one.
    pub bias: Option<Arc<TensorData>>,
    /// The dimension of the weight that contains the output channels.
    channel_dim: usize,
    /// Number of groups of a transposed convolution, whose output channels are numbered group by group.
    groups: usize,
}

const LINEAR: &str = "aten::linear";

/// Operators whose result does not depend on the elements of the tensor operand.
pub(crate) const SHAPE_QUESTIONS: &[&str] = &[
    "aten::dim",
    "aten::size",
    "prim::device",
    "prim::dtype",
    "aten::is_floating_point",
];

impl Layer {
    /// Returns the convolution layer that `node` computes, if its weights are constants.
    pub fn convolution(graph: &Graph, node: NodeId, db: &AliasDb) -> Option<Layer> {
        let constant = |i: usize| graph.operand(node, i).and_then(|v| graph.constant(v));
        let (transposed, groups) = match graph.kind(node) {
            symbols::ATEN_CONV1D | symbols::ATEN_CONV2D | symbols::ATEN_CONV3D => (false, 1),
            symbols::ATEN_CONVOLUTION => match constant(6)?.as_bool()? {
                false => (false, 1),
                true => (true, constant(8)?.as_int()?),
            },
            _ => match graph.kind_name(node) {
                "aten::conv_transpose1d" | "aten::conv_transpose2d" | "aten::conv_transpose3d" => {
                    (true, constant(6)?.as_int()?)
                }
                _ => return None,
            },
        };
        let layer = Layer::with_weights(graph, node, db, usize::from(transposed), usize::try_from(groups).ok()?)?;
        (layer.weight.rank() >= 3 && layer.groups > 0 && layer.weight.sizes[0] % groups == 0).then_some(layer)
    }

    /// Returns the linear layer that `node` computes, if its weights are constants.
    pub fn linear(graph: &Graph, node: NodeId, db: &AliasDb) -> Option<Layer> {
        if graph.kind_name(node) != LINEAR {
            return None;
        }
        Layer::with_weights(graph, node, db, 0, 1).filter(|l| l.weight.rank() == 2)
    }

    fn with_weights(graph: &Graph, node: NodeId, db: &AliasDb, channel_dim: usize, groups: usize) -> Option<Layer> {
        let (weight, bias) = (graph.operand(node, 1)?, graph.operand(node, 2)?);
        if db.has_writers(weight) || db.has_writers(bias) || !graph.node_blocks(node).is_empty() {
            return None;
        }
        let layer = Layer {
            node,
            weight: tensor(graph, weight)?,
            bias: if is_none(graph, bias) {
                None
            } else {
                Some(tensor(graph, bias)?)
            },
            channel_dim,
            groups,
        };
        let dtype = layer.weight.dtype;
        let bias_fits = layer
            .bias
            .as_ref()
            .is_none_or(|b| b.dtype == dtype && b.rank() == 1 && b.numel() == layer.channels());
        (is_real(dtype) && layer.weight.rank() > channel_dim && bias_fits).then_some(layer)
    }

    /// Returns the number of output channels of the layer.
    pub fn channels(&self) -> i64 {
        self.weights().count()
    }

    /// Returns the weight with the layout of its output channels.
    fn weights(&self) -> Channels {
        Channels {
            weight: self.weight.clone(),
            dim: self.channel_dim,
            groups: self.groups,
        }
    }

    /// Replaces the layer's weights. Weight and bias of channel `c` are multiplied by `scale[c]`, then `shift[c]` is added to the bias. The new constants are
    /// named after the old ones with `suffix`. No bias is added if there was none and `shift` is all zero.
    ///
    /// Returns `None`, without changes, if the numbers cannot be represented.
    pub fn rescale(&self, graph: &mut Graph, scale: &[f64], shift: &[f64], suffix: &str) -> Option<()> {
        let dtype = self.weight.dtype;
        let mut bias = match &self.bias {
            Some(b) => to_f64(b)?,
            None => vec![0.0; scale.len()],
        };
        for ((b, s), t) in bias.iter_mut().zip(scale).zip(shift) {
            *b = *b * s + t;
        }
        let new_bias = (self.bias.is_some() || shift.iter().any(|t| *t != 0.0))
            .then(|| from_f64(dtype, &[bias.len() as i64], &bias));
        let is_scaled = scale.iter().any(|s| *s != 1.0);
        let new_weight = match is_scaled {
            true => Some(scaled(self.weights(), scale)?),
            false => None,
        };
        let old_weight = graph.operand(self.node, 1)?;
        let old_bias = graph.operand(self.node, 2)?;
        let (weight_name, bias_name) = (name_of(graph, old_weight), self.bias_name(graph, old_weight, old_bias));
        let mut replace = |index: usize, data: Arc<TensorData>, old: ValueId, name: Option<String>| {
            let ty = graph.ty(old);
            let new = insert_constant(graph, self.node, Constant::Tensor(data), ty);
            if let Some(name) = name {
                graph.name_value(new, &format!("{name}{suffix}"));
            }
            graph.set_operand(self.node, index, new);
        };
        if let Some(data) = new_weight {
            replace(1, data, old_weight, weight_name);
        }
        if let Some(data) = new_bias {
            replace(2, data?, old_bias, bias_name);
        }
        Some(())
    }

    /// Returns the base name of the new bias: the name of the old bias, or a name derived from that of the weight.
    fn bias_name(&self, graph: &Graph, weight: ValueId, bias: ValueId) -> Option<String> {
        match &self.bias {
            Some(_) => name_of(graph, bias),
            None => {
                let weight = name_of(graph, weight)?;
                let base = weight.rfind(".weight").map_or(weight.as_str(), |i| &weight[..i]);
                Some(format!("{base}.bias"))
            }
        }
    }
}

/// Returns the name of `value`, if it has one.
pub(crate) fn name_of(graph: &Graph, value: ValueId) -> Option<String> {
    graph.value_name(value).map(|n| n.display(graph.ctx()).to_string())
}

/// Returns true for the real floating-point dtypes.
pub fn is_real(dtype: DType) -> bool {
    matches!(dtype, DType::Float | DType::Double | DType::Half | DType::BFloat16)
}

/// Returns the node that computes operand 0 of `user`, if the common conditions hold: one block, no other use of the result's elements, and no write in
/// between. A test of the rank from [`bypass_keeping_rank`] between them is skipped, because an operation on each channel commutes with it.
pub fn sole_producer(graph: &Graph, user: NodeId, db: &AliasDb) -> Option<NodeId> {
    let value = graph.operand(user, 0)?;
    let producer = graph.defining_node(value)?;
    let only_user = |value: ValueId, allowed: &dyn Fn(NodeId) -> bool| {
        graph
            .uses(value)
            .all(|u| allowed(u.user) || SHAPE_QUESTIONS.contains(&graph.kind_name(u.user)))
    };
    let same_block = |node: NodeId| graph.parent(node).is_some() && graph.parent(node) == graph.parent(user);
    let is_operand_alone = graph.operands(user).filter(|&v| v == value).count() == 1;
    if !is_operand_alone || !only_user(value, &|n| n == user) || !same_block(producer) {
        return None;
    }
    let (layer, values) = match ranked(graph, producer) {
        Some(test) => {
            let own = |n: NodeId| {
                n == producer
                    || graph
                        .parent(n)
                        .is_some_and(|b| graph.node_blocks(producer).contains(&b))
            };
            let layer = graph.defining_node(test.tested)?;
            if !only_user(test.tested, &own) || !same_block(layer) {
                return None;
            }
            (layer, vec![test.tested, value])
        }
        None => (producer, vec![value]),
    };
    (graph.output(layer).is_some() && db.unwritten_between(graph, layer, user, &values)).then_some(layer)
}

/// Replaces `node` by its operand 0, whose producer now includes its operation. The operand gets the name of the result.
pub fn bypass(graph: &mut Graph, node: NodeId) {
    let (Some(input), Some(output)) = (graph.operand(node, 0), graph.output(node)) else {
        return;
    };
    graph.replace_all_uses_with(output, input);
    graph.erase(node);
}

/// Replaces `node` by its layer operand as [`bypass`] does. `other` is the second operand. If the operation would add a batch dimension to the layer's
/// result, a run-time test of the rank that adds the dimension is inserted.
pub fn bypass_keeping_rank(graph: &mut Graph, node: NodeId, layer: &Layer, other: &PerChannel) {
    let (Some(input), Some(output)) = (graph.operand(node, 0), graph.output(node)) else {
        return;
    };
    if !other.adds_batch {
        return bypass(graph, node);
    }
    let ctx = graph.ctx().clone();
    let ty = graph.ty(output);
    let mut builder = Builder::before(graph, node);
    let rank = builder.op(ctx.symbol("aten::dim"), &[input], types::INT);
    let full = builder.constant(layer.weight.rank() as i64);
    let lacks = builder.op(ctx.symbol("aten::lt"), &[rank, full], types::BOOL);
    let branch = builder.node(symbols::PRIM_IF, &[lacks], &[ty]);
    let [then, otherwise] = [0, 1].map(|_| builder.add_block(branch));
    let mut inner = Builder::at_end(&mut builder, then);
    let first = inner.constant(0);
    let with_batch = inner.op(ctx.symbol("aten::unsqueeze"), &[input, first], types::TENSOR);
    builder.add_result(then, with_batch);
    builder.add_result(otherwise, input);
    let result = builder.output(branch);
    if let Some(result) = result {
        graph.replace_all_uses_with(output, result);
        graph.erase(node);
    }
}

/// A run-time test of the rank, inserted by [`bypass_keeping_rank`].
pub struct Ranked {
    /// The tensor whose rank is tested; it may have no batch dimension.
    pub tested: ValueId,
    /// The rank of the result with a batch dimension.
    pub rank: usize,
}

/// Returns the run-time test of the rank that `node` is, if it is one.
pub fn ranked(graph: &Graph, node: NodeId) -> Option<Ranked> {
    let [then, otherwise] = *graph.node_blocks(node) else {
        return None;
    };
    if graph.kind(node) != symbols::PRIM_IF || graph.node_outputs(node).len() != 1 {
        return None;
    }
    let tested = graph.results(otherwise).next()?;
    let of_kind = |value: ValueId, kind: &str| graph.defining_node(value).filter(|&n| graph.kind_name(n) == kind);
    let number = |node: NodeId, i: usize| graph.constant(graph.operand(node, i)?)?.as_int();
    let lacks = of_kind(graph.operand(node, 0)?, "aten::lt")?;
    let dim = of_kind(graph.operand(lacks, 0)?, "aten::dim")?;
    let unsqueezed = of_kind(graph.results(then).next()?, "aten::unsqueeze")?;
    let is_test = graph.operand(dim, 0) == Some(tested)
        && graph.operand(unsqueezed, 0) == Some(tested)
        && number(unsqueezed, 1) == Some(0)
        && graph.nodes(otherwise).next().is_none();
    let rank = usize::try_from(number(lacks, 1)?).ok()?;
    is_test.then_some(Ranked { tested, rank })
}

/// A constant operand that has one value per output channel.
pub struct PerChannel {
    /// One number per output channel.
    pub values: Vec<f64>,
    /// Whether the constant has a batch dimension, so that a result without a batch dimension would get one.
    adds_batch: bool,
}

/// Returns the constant operand 1 of `node`, which is added to or multiplied by the result of a convolution, as one number per channel. `None` if it is not
/// constant, varies along other dimensions, or would change the result's rank or dtype.
pub fn per_channel(
    graph: &Graph,
    node: NodeId,
    layer: &Layer,
    db: &AliasDb,
    catalogue: &Catalogue,
) -> Option<PerChannel> {
    let channels = usize::try_from(layer.channels()).ok()?;
    let (value, other) = (graph.operand(node, 0)?, graph.operand(node, 1)?);
    match graph.constant(other)? {
        c @ (Constant::Int(_) | Constant::Float(_) | Constant::Bool(_)) => Some(PerChannel {
            values: vec![c.as_float()?; channels],
            adds_batch: false,
        }),
        Constant::Tensor(t) if !db.has_writers(other) => {
            // A 0-d tensor never determines the dtype; others must not have a wider one.
            let keeps_dtype = t.rank() == 0 || !is_real(t.dtype) || t.dtype == layer.weight.dtype;
            let batched = rank(graph, value, db, catalogue) == Some(layer.weight.rank());
            let adds_batch = t.rank() == layer.weight.rank() && !batched;
            if !keeps_dtype || t.rank() > layer.weight.rank() || t.dtype.is_complex() || t.dtype.is_quantized() {
                return None;
            }
            let from_end = layer.weight.rank() - 1;
            let varies = |(i, size): (usize, &i64)| {
                let is_channel = t.rank() - i == from_end;
                *size != 1 && !(is_channel && *size == layer.channels())
            };
            if t.sizes.iter().enumerate().any(varies) {
                return None;
            }
            let numbers = super::constants::numbers(&t)?;
            let values = match numbers.as_slice() {
                [one] => vec![*one; channels],
                _ => numbers,
            };
            (values.len() == channels).then_some(PerChannel { values, adds_batch })
        }
        _ => None,
    }
}

/// Returns the rank of a tensor, if its type states it.
pub fn known_rank(graph: &Graph, value: ValueId) -> Option<usize> {
    match graph.ctx().type_kind(graph.ty(value)) {
        TypeKind::Tensor(t) => t.sizes.map(|s| graph.ctx().dims(s).len()),
        _ => None,
    }
}

/// The affine map of a batch norm in evaluation mode for each channel: `y = x * scale + shift`.
pub struct BatchNorm {
    /// Factors by which channels are multiplied, one per channel.
    pub scale: Vec<f64>,
    /// Summands that are added to channels, one per channel.
    pub shift: Vec<f64>,
}

impl BatchNorm {
    /// Returns the batch norm at `node`, if it is not in training mode, has constant statistics for `layer`'s channels, and does not change the dtype.
    pub fn constant(graph: &Graph, node: NodeId, layer: &Layer, db: &AliasDb) -> Option<BatchNorm> {
        let operand = |i: usize| graph.operand(node, i);
        if graph.constant(operand(5)?)?.as_bool()? {
            return None;
        }
        let eps = graph.constant(operand(7)?)?.as_float()?;
        let channels = usize::try_from(layer.channels()).ok()?;
        let read = |i: usize| -> Option<Option<Vec<f64>>> {
            let value = operand(i)?;
            if is_none(graph, value) {
                return Some(None);
            }
            let t = tensor(graph, value)?;
            let narrow = matches!(layer.weight.dtype, DType::Half | DType::BFloat16) && t.dtype == DType::Float;
            if db.has_writers(value) || !(t.dtype == layer.weight.dtype || narrow) {
                return None;
            }
            let numbers = to_f64(&t)?;
            (numbers.len() == channels && t.rank() == 1).then_some(Some(numbers))
        };
        let gamma = read(1)?.unwrap_or_else(|| vec![1.0; channels]);
        let beta = read(2)?.unwrap_or_else(|| vec![0.0; channels]);
        let (mean, variance) = (read(3)??, read(4)??);
        let scale: Vec<f64> = gamma.iter().zip(&variance).map(|(g, v)| g / (v + eps).sqrt()).collect();
        let shift = beta
            .iter()
            .zip(&mean)
            .zip(&scale)
            .map(|((b, m), s)| b - m * s)
            .collect();
        Some(BatchNorm { scale, shift })
    }

    /// Returns whether the batch norm has the same factor and summand for every channel.
    pub fn is_uniform(&self) -> bool {
        let same = |numbers: &[f64]| numbers.windows(2).all(|pair| pair[0] == pair[1]);
        same(&self.scale) && same(&self.shift)
    }
}

/// Applies `fold` to every node with a kind in `kinds`, in the order of the graph, while there is fuel. Each folded node counts as `statistic`.
pub fn each(
    graph: &mut Graph,
    cx: &mut PassContext<'_>,
    statistic: &'static str,
    kinds: &[&str],
    mut fold: impl FnMut(&mut Graph, NodeId, &AliasDb) -> Option<()>,
) {
    let kinds: Vec<SymbolId> = kinds.iter().map(|k| graph.ctx().symbol(k)).collect();
    let db = cx.alias_db(graph);
    let nodes = graph.all_nodes();
    let candidates = nodes
        .into_iter()
        .filter(|n| kinds.contains(&graph.kind(*n)))
        .collect::<Vec<_>>();
    for node in candidates {
        if !cx.may_rewrite() {
            return;
        }
        // Fuel was available.
        let _ = fold(graph, node, &db).is_some() && cx.rewrite(statistic);
    }
}
