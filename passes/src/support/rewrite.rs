//! Replacement of a single node by a value, constant or operator.

use super::constants::insert_constant;
use crate::dce::DeadCodeElimination;
use crate::{PassContext, PassError};
use frazil_ir::{Builder, Constant, Graph, NodeId, TypeId, TypeKind, ValueId, symbols};

/// The value or operator that replaces a node.
pub enum Replacement {
    /// A value that replaces the node's only output.
    Value(ValueId),
    /// Values that replace the node's outputs, one for each.
    Values(Vec<ValueId>),
    /// A constant that replaces the node's only output.
    Constant(Constant),
    /// A call of the named operator on the given operands, with the output type of the replaced node.
    Operator(&'static str, Vec<ValueId>),
    /// A `prim::ListConstruct` of the given elements.
    List(Vec<ValueId>),
}

/// Replaces `node` by `replacement` and removes it. New nodes get the source range of `node`.
pub fn replace(graph: &mut Graph, node: NodeId, replacement: Replacement) {
    let outputs = graph.node_outputs(node).to_vec();
    let Some(&output) = outputs.first() else { return };
    let news = match replacement {
        Replacement::Value(v) => vec![v],
        Replacement::Values(vs) => vs,
        Replacement::Constant(c) => vec![insert_constant(graph, node, c, graph.ty(output))],
        Replacement::Operator(kind, operands) => {
            let (kind, ty) = (graph.ctx().symbol(kind), graph.ty(output));
            vec![Builder::before(graph, node).op(kind, &operands, ty)]
        }
        Replacement::List(items) => {
            let ty = graph.ty(output);
            vec![Builder::before(graph, node).op(symbols::PRIM_LIST_CONSTRUCT, &items, ty)]
        }
    };
    for (old, new) in outputs.into_iter().zip(news) {
        graph.replace_all_uses_with(old, new);
    }
    graph.erase(node);
}

/// Calls `rewrite` for every node, in the order of the graph, and applies the results while there is fuel. Each rewrite is counted as `statistic`.
pub fn rewrite_nodes(
    graph: &mut Graph,
    cx: &mut PassContext<'_>,
    statistic: &'static str,
    mut rewrite: impl FnMut(&Graph, NodeId) -> Option<Replacement>,
) {
    for node in graph.all_nodes() {
        if !graph.is_alive(node) {
            continue;
        }
        if let Some(replacement) = rewrite(graph, node) {
            if !cx.rewrite(statistic) {
                return;
            }
            replace(graph, node, replacement);
        }
    }
}

/// Removes nodes that a pass made unused, if it rewrote anything. `before` is the value of `statistic` from [`PassContext::counted`] at the start of the pass.
///
/// # Errors
/// None; the return type is that of passes.
pub fn clean_up(graph: &mut Graph, cx: &mut PassContext<'_>, statistic: &str, before: u64) -> Result<(), PassError> {
    if cx.counted(statistic) == before {
        return Ok(());
    }
    cx.run_part(&DeadCodeElimination::default(), graph)
}

/// Returns the node that defines `value`, if that node is of kind `kind`.
pub fn built_by(graph: &Graph, value: ValueId, kind: frazil_ir::SymbolId) -> Option<NodeId> {
    graph.defining_node(value).filter(|n| graph.kind(*n) == kind)
}

/// Returns the `prim::ListConstruct` node that defines `value`, if it is one.
pub fn built_list(graph: &Graph, value: ValueId) -> Option<NodeId> {
    built_by(graph, value, symbols::PRIM_LIST_CONSTRUCT)
}

/// Returns the integer, if `value` is a constant integer.
pub fn int(graph: &Graph, value: ValueId) -> Option<i64> {
    graph.constant(value)?.as_int()
}

/// Converts `index` for `len` elements, counted from the end if it is negative; `None` if out of range.
pub fn element_index(index: i64, len: usize) -> Option<usize> {
    let index = if index < 0 {
        index.checked_add(i64::try_from(len).ok()?)?
    } else {
        index
    };
    usize::try_from(index).ok().filter(|i| *i < len)
}

/// Returns the indices of a Python slice of `len` elements; `None` for a step that is not positive.
pub fn slice_indices(len: usize, start: Option<i64>, end: Option<i64>, step: i64) -> Option<Vec<usize>> {
    let n = i64::try_from(len).ok()?;
    let clamp = |i: i64| if i < 0 { i.saturating_add(n).max(0) } else { i.min(n) };
    let (start, end) = (clamp(start.unwrap_or(0)), clamp(end.unwrap_or(n)));
    let step = usize::try_from(step).ok().filter(|s| *s > 0)?;
    Some((start..end).step_by(step).map(|i| i as usize).collect())
}

/// Returns true if `ty` is a list type.
pub fn is_list(graph: &Graph, ty: TypeId) -> bool {
    matches!(graph.ctx().type_kind(ty), TypeKind::List(_))
}

/// Returns true if both nodes are in the same block and no node between them, at any depth, uses `value`, an output of `from`.
///
/// If `from` creates the value, this means that it has no uses before `to` runs.
pub fn unused_between(graph: &Graph, value: ValueId, from: NodeId, to: NodeId) -> bool {
    let Some(block) = graph.parent(from).filter(|b| graph.parent(to) == Some(*b)) else {
        return false;
    };
    graph.is_before(from, to)
        && graph.uses(value).all(|u| {
            // A use in a nested block happens when the enclosing node runs.
            u.user == to
                || graph
                    .ancestor_in(u.user, block)
                    .is_some_and(|n| n != to && graph.is_before(to, n))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_pythons() {
        assert_eq!(slice_indices(7, Some(-5), Some(6), 2), Some(vec![2, 4]));
        assert_eq!(slice_indices(3, None, None, 1), Some(vec![0, 1, 2]));
        assert_eq!(slice_indices(3, Some(-9), Some(9), 2), Some(vec![0, 2]));
        assert_eq!(slice_indices(3, Some(2), Some(1), 1), Some(vec![]));
        assert_eq!(slice_indices(3, None, None, 0), None);
        assert_eq!(slice_indices(3, None, Some(i64::MIN), 1), Some(vec![]));
    }

    #[test]
    fn indices_count_from_both_ends() {
        assert_eq!(element_index(-1, 3), Some(2));
        assert_eq!(element_index(3, 3), None);
        assert_eq!(element_index(i64::MIN, 3), None);
    }
}
