//! Merging of linears with the same input: `concat-frozen-linear`.
//!
//! Linears that read the same tensor become one whose weight has the rows of all of them; each result is a slice of its features. One large matmul
//! is faster than several small ones.
//!
//! **Sound when**
//! - weights and biases are constants that are not written, of different tensors (merging two calls of one linear saves nothing);
//! - they have one dtype and one number of columns, and all linears have a bias or none;
//! - the linears are in one block, and each can move up to the first of them: the input is not written in between.
//!
//! Unlike a linear's result, a slice is not contiguous. If that may be observable (it is returned, stored, viewed, or passed to an operator whose entry does not
//! state [`Observes::Elements`]), a contiguous copy is made. New results have the same strides for a slice as for the copy, since a slice keeps the order of dimensions.
//!
//! PyTorch does this on CUDA only, requires a bias, and does not copy the slices, so that a `view` of one may fail.

use crate::alias_db::{AliasDb, Side};
use crate::pass::{AnyPass, GraphPass, PassContext, PassContextExt, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::support::constants::insert_constant;
use crate::support::{self, fold};
use frazil_ir::schema::{Catalogue, FunctionSchema, Observes};
use frazil_ir::{BlockId, Builder, Constant, Graph, NodeId, TensorData, ValueId, types};
use indexmap::IndexMap;
use std::sync::Arc;

/// Declaration of the pass `concat-frozen-linear` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "concat-frozen-linear",
    summary: "Merges linears with constant weights that have the same input.",
    before: "%a = aten::linear(%x, %wa, %ba)\n%b = aten::linear(%x, %wb, %bb)",
    after: "%ab = aten::linear(%x, %wab, %bab)\n%a = aten::slice(%ab, %minus_one, %zero, %n, %one)\n%b = aten::slice(%ab, %minus_one, %n, %m, %one)",
    options: &[],
    build: |_| AnyPass::graph(ConcatFrozenLinear),
};

/// The pass `concat-frozen-linear`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct ConcatFrozenLinear;

impl GraphPass<TorchScript> for ConcatFrozenLinear {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        // Kept valid as linears become slices, which later linears may read.
        let mut db = (*cx.alias_db(graph)).clone();
        for group in groups(graph, &db) {
            merge_compatible(graph, &group, &mut db, cx);
        }
        Ok(())
    }
}

/// Returns the linears with constant weights by block and input, in the order of the graph.
fn groups(graph: &Graph, db: &AliasDb) -> Vec<Vec<NodeId>> {
    let mut groups: IndexMap<(BlockId, ValueId), Vec<NodeId>> = IndexMap::new();
    for node in graph.all_nodes() {
        if let (Some(_), Some(block), Some(input)) = (
            fold::Layer::linear(graph, node, db),
            graph.parent(node),
            graph.operand(node, 0),
        ) {
            groups.entry((block, input)).or_default().push(node);
        }
    }
    groups.into_values().filter(|g| g.len() > 1).collect()
}

/// Merges the linear layers of `group` that are compatible.
fn merge_compatible(graph: &mut Graph, group: &[NodeId], db: &mut AliasDb, cx: &mut PassContext<'_>) {
    let catalogue = cx.operators().catalogue();
    let mut left: Vec<NodeId> = group.to_vec();
    while let Some(&first) = left.first() {
        let Some(base) = fold::Layer::linear(graph, first, db) else {
            break;
        };
        // Two calls of one linear are not computed in one matmul: each call stays separate.
        let mut weights = vec![graph.operand(first, 1)];
        let mut is_new = |node: &NodeId| {
            let weight = graph.operand(*node, 1);
            let known = weights.iter().any(|&w| w == weight || same_tensor(graph, w, weight));
            if !known {
                weights.push(weight);
            }
            !known
        };
        let mut fits = |node: &NodeId| {
            *node == first
                || fold::Layer::linear(graph, *node, db).is_some_and(|l| {
                    l.weight.dtype == base.weight.dtype
                        && l.weight.sizes[1] == base.weight.sizes[1]
                        && l.bias.is_some() == base.bias.is_some()
                        && db.could_move(graph, *node, first, Side::Before, catalogue)
                }) && is_new(node)
        };
        let (chosen, others): (Vec<NodeId>, Vec<NodeId>) = left.iter().partition(|n| fits(n));
        left = others;
        if chosen.len() > 1 && cx.may_rewrite() && merge(graph, &chosen, db, catalogue).is_some() {
            // Fuel was available.
            let _ = cx.rewrite("groups of linears merged");
        }
    }
}

/// Inserts a merged linear at the first of `nodes`, and replaces all nodes by slices of its result. Returns `None` and changes nothing if the weights cannot
/// be concatenated.
fn merge(graph: &mut Graph, nodes: &[NodeId], db: &mut AliasDb, catalogue: &Catalogue) -> Option<()> {
    let first = *nodes.first()?;
    let layers: Vec<fold::Layer> = nodes
        .iter()
        .map(|n| fold::Layer::linear(graph, *n, db))
        .collect::<Option<_>>()?;
    let weight = join_rows(layers.iter().map(|l| &l.weight))?;
    let bias = match layers.first()?.bias {
        Some(_) => Some(join_rows(layers.iter().filter_map(|l| l.bias.as_ref()))?),
        None => None,
    };
    let (input, old_bias) = (graph.operand(first, 0)?, graph.operand(first, 2)?);
    let weight = insert_constant(graph, first, Constant::Tensor(weight), types::TENSOR);
    let bias = match bias {
        Some(data) => insert_constant(graph, first, Constant::Tensor(data), types::TENSOR),
        None => old_bias,
    };
    let [linear, slice, contiguous] =
        ["aten::linear", "aten::slice", "aten::contiguous"].map(|name| graph.ctx().symbol(name));
    let range = graph.source_range(first);
    let mut builder = Builder::before(graph, first);
    builder.set_range(range);
    let joined = builder.op(linear, &[input, weight, bias], types::TENSOR);
    let (last_dim, one, contiguous_format) = (builder.constant(-1), builder.constant(1), builder.constant(0));
    let mut start = builder.constant(0);
    let mut end = 0;
    for (&node, layer) in nodes.iter().zip(&layers) {
        end += layer.channels();
        let output = graph.output(node)?;
        let ty = graph.ty(output);
        let strided = only_elements(graph, output, catalogue);
        // At the place of the first linear, so that nodes that were not moved stay behind their operands.
        let mut builder = Builder::before(graph, first);
        builder.set_range(range);
        let stop = builder.constant(end);
        let mut result = builder.op(slice, &[joined, last_dim, start, stop, one], types::TENSOR);
        if !strided {
            result = builder.op(contiguous, &[result, contiguous_format], types::TENSOR);
        }
        // Known shapes stay true, strides only of contiguous values.
        if !strided {
            graph.set_type(result, ty);
        }
        db.copy_value(output, result);
        graph.replace_all_uses_with(output, result);
        start = stop;
    }
    for &node in nodes {
        graph.erase(node);
    }
    Some(())
}

/// Returns true if both values are constants with the same tensor.
fn same_tensor(graph: &Graph, a: Option<ValueId>, b: Option<ValueId>) -> bool {
    let tensor = |value: Option<ValueId>| match value.and_then(|v| graph.constant(v)) {
        Some(Constant::Tensor(t)) => Some(t),
        _ => None,
    };
    match (tensor(a), tensor(b)) {
        (Some(a), Some(b)) => {
            Arc::ptr_eq(&a, &b)
                || (Arc::ptr_eq(&a.storage, &b.storage)
                    && (a.offset, &a.sizes, &a.strides) == (b.offset, &b.sizes, &b.strides))
        }
        _ => false,
    }
}

/// Returns whether all users of `value` depend only on the tensor's elements, sizes or dtype, and return new results.
fn only_elements(graph: &Graph, value: ValueId, catalogue: &Catalogue) -> bool {
    let has_alias = |schema: &FunctionSchema| {
        schema
            .arguments
            .iter()
            .chain(&schema.returns)
            .any(|a| a.alias.is_some())
    };
    graph.uses(value).all(|u| {
        let reads_elements = catalogue.properties(graph.kind(u.user)).observes == Observes::Elements;
        let schema = || catalogue.resolve(graph, u.user).found();
        (reads_elements && schema().is_some_and(|schema| !has_alias(&schema)))
            || fold::SHAPE_QUESTIONS.contains(&graph.kind_name(u.user))
    })
}

/// Returns the concatenation of matrices by rows, or of vectors.
fn join_rows<'a>(parts: impl Iterator<Item = &'a Arc<TensorData>>) -> Option<Arc<TensorData>> {
    let parts: Vec<_> = parts.collect();
    let first = *parts.first()?;
    let mut sizes = first.sizes.to_vec();
    *sizes.first_mut()? = parts.iter().map(|p| p.sizes.first().copied().unwrap_or(0)).sum();
    let bytes: Vec<u8> = parts.iter().flat_map(|p| p.to_bytes().to_vec()).collect();
    TensorData::contiguous(first.dtype, &sizes, bytes).ok().map(Arc::new)
}
