//! The rank of a tensor, where the graph says it: by its type, or by the operators that it comes from.

use super::fold::{known_rank, ranked};
use crate::AliasDb;
use frazil_ir::{Constant, Graph, ValueId, symbols};

/// How far back a rank is looked for.
const MAX_STEPS: usize = 64;

/// Operators whose result has the rank of their first operand.
const SAME_RANK: &[&str] = &[
    "aten::_convolution",
    "aten::adaptive_avg_pool1d",
    "aten::adaptive_avg_pool2d",
    "aten::adaptive_avg_pool3d",
    "aten::avg_pool1d",
    "aten::avg_pool2d",
    "aten::avg_pool3d",
    "aten::batch_norm",
    "aten::clone",
    "aten::contiguous",
    "aten::conv1d",
    "aten::conv2d",
    "aten::conv3d",
    "aten::conv_transpose1d",
    "aten::conv_transpose2d",
    "aten::conv_transpose3d",
    "aten::convolution",
    "aten::detach",
    "aten::dropout",
    "aten::elu",
    "aten::gelu",
    "aten::hardswish",
    "aten::hardtanh",
    "aten::layer_norm",
    "aten::leaky_relu",
    "aten::log_softmax",
    "aten::max_pool1d",
    "aten::max_pool2d",
    "aten::max_pool3d",
    "aten::mish",
    "aten::relu",
    "aten::relu6",
    "aten::sigmoid",
    "aten::silu",
    "aten::softmax",
    "aten::tanh",
];

/// The rank of `value`, if every run that gets there agrees about it; `None` also when somebody writes to one of the tensors on the way, since that may change its
/// shape.
pub fn rank(graph: &Graph, value: ValueId, db: &AliasDb) -> Option<usize> {
    rank_within(graph, value, db, &mut MAX_STEPS.clone())
}

/// [`rank`], which looks at no more than `steps` nodes.
fn rank_within(graph: &Graph, value: ValueId, db: &AliasDb, steps: &mut usize) -> Option<usize> {
    let mut value = value;
    while *steps > 0 {
        *steps -= 1;
        if db.has_writers(value) {
            return None;
        }
        if let Some(rank) = known_rank(graph, value) {
            return Some(rank);
        }
        let node = graph.defining_node(value)?;
        let constant = |i: usize| graph.operand(node, i).and_then(|v| graph.constant(v));
        match graph.kind_name(node) {
            // Everything from one dimension on becomes that dimension.
            "aten::flatten" => {
                let start = usize::try_from(constant(1)?.as_int()?).ok()?;
                return (constant(2)?.as_int()? == -1).then_some(start + 1);
            }
            "aten::view" | "aten::reshape" => return list_length(graph, graph.operand(node, 1)?),
            "aten::mm" | "aten::addmm" => return Some(2),
            "aten::linear" => {
                let weight = graph.constant(graph.operand(node, 1)?);
                if !matches!(weight, Some(Constant::Tensor(t)) if t.rank() == 2) {
                    return None;
                }
                value = graph.operand(node, 0)?;
            }
            // Broadcast: the larger rank of both. Constants and numbers have theirs at hand.
            "aten::add" | "aten::sub" | "aten::mul" | "aten::div" => {
                let other = graph.operand(node, 1)?;
                let other = match graph.constant(other) {
                    Some(Constant::Tensor(t)) => t.rank(),
                    Some(_) => 0,
                    None => rank_within(graph, other, db, steps)?,
                };
                return Some(rank_within(graph, graph.operand(node, 0)?, db, steps)?.max(other));
            }
            "prim::If" => return ranked(graph, node).map(|r| r.rank),
            kind if SAME_RANK.contains(&kind) => value = graph.operand(node, 0)?,
            _ => return None,
        }
    }
    None
}

/// The length of a list that is a constant or has just been built.
fn list_length(graph: &Graph, list: ValueId) -> Option<usize> {
    if let Some(constant) = graph.constant(list) {
        return constant.items().map(<[_]>::len);
    }
    let built = graph.defining_node(list)?;
    let is_construct = graph.kind(built) == symbols::PRIM_LIST_CONSTRUCT;
    is_construct.then(|| graph.operand_count(built))
}
