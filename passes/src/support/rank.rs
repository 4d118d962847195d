//! The rank of a tensor, if the graph determines it: by its type, or by the operators that compute it.

use super::fold::{known_rank, ranked};
use crate::AliasDb;
use frazil_ir::schema::{Catalogue, ResultRank};
use frazil_ir::{Constant, Graph, TypeKind, ValueId, symbols};

/// Maximum number of nodes that are examined in order to find a rank.
const MAX_STEPS: usize = 64;

/// Returns the rank of `value`, if it is the same in every run. `None` also if a tensor in its computation is written, because a write may change its shape.
pub fn rank(graph: &Graph, value: ValueId, db: &AliasDb, catalogue: &Catalogue) -> Option<usize> {
    rank_within(graph, value, (db, catalogue), &mut MAX_STEPS.clone())
}

/// Computes the rank as [`rank`] does, examining at most `steps` nodes.
fn rank_within(
    graph: &Graph,
    value: ValueId,
    (db, catalogue): (&AliasDb, &Catalogue),
    steps: &mut usize,
) -> Option<usize> {
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
            // All dimensions from one on become that dimension.
            "aten::flatten" => {
                let start = usize::try_from(constant(1)?.as_int()?).ok()?;
                return (constant(2)?.as_int()? == -1).then_some(start + 1);
            }
            "aten::linear" => {
                let weight = graph.constant(graph.operand(node, 1)?);
                if !matches!(weight, Some(Constant::Tensor(t)) if t.rank() == 2) {
                    return None;
                }
                value = graph.operand(node, 0)?;
            }
            _ if graph.kind(node) == symbols::PRIM_IF => return ranked(graph, node).map(|r| r.rank),
            _ => match catalogue.properties(graph.kind(node)).rank {
                ResultRank::FirstOperand => value = graph.operand(node, 0)?,
                ResultRank::Fixed(rank) => return Some(rank),
                ResultRank::LengthOf(index) => return list_length(graph, graph.operand(node, index)?),
                ResultRank::Broadcast => {
                    let mut rank = 0;
                    for operand in graph.operands(node) {
                        rank = rank.max(rank_of_operand(graph, operand, (db, catalogue), steps)?);
                    }
                    return Some(rank);
                }
                ResultRank::Unstated => return None,
            },
        }
    }
    None
}

/// Returns the rank of an operand that is broadcast: 0 for a number.
fn rank_of_operand(
    graph: &Graph,
    operand: ValueId,
    (db, catalogue): (&AliasDb, &Catalogue),
    steps: &mut usize,
) -> Option<usize> {
    match (graph.constant(operand), graph.ctx().type_kind(graph.ty(operand))) {
        (Some(Constant::Tensor(tensor)), _) => Some(tensor.rank()),
        (Some(_), _) | (None, TypeKind::Int | TypeKind::Float | TypeKind::Bool | TypeKind::Number) => Some(0),
        (None, _) => rank_within(graph, operand, (db, catalogue), steps),
    }
}

/// Returns the length of a list that is a constant, or that a node of the graph constructs.
fn list_length(graph: &Graph, list: ValueId) -> Option<usize> {
    if let Some(constant) = graph.constant(list) {
        return constant.items().map(<[_]>::len);
    }
    let built = graph.defining_node(list)?;
    let is_construct = graph.kind(built) == symbols::PRIM_LIST_CONSTRUCT;
    is_construct.then(|| graph.operand_count(built))
}
