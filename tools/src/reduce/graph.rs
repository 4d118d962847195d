//! Reduction of a TorchScript graph.

use super::{Candidate, Reducer};
use frazil::ir::{Builder, Constant, Graph, InsertPoint, NodeId, TypeKind, ValueId, symbols, types};

impl Candidate for Graph {
    fn round(reducer: &mut Reducer<'_, Graph>, best: &mut Graph) {
        let outputs = |g: &Graph| (0..g.outputs().len()).rev().collect();
        reducer.each(best, &outputs, &|g, i: &usize| {
            let root = g.root();
            g.remove_result(root, *i);
            true
        });
        reducer.each(best, &nodes_backwards, &delete);
        reducer.each(best, &nodes_backwards, &flatten);
        let inputs = |g: &Graph| (0..g.inputs().len()).rev().collect();
        reducer.each(best, &inputs, &|g, i: &usize| g.remove_parameter(g.root(), *i));
        reducer.each(best, &nodes_backwards, &drop_outputs);
        reducer.each(best, &nodes_backwards, &simplify_constant);
        reducer.each(best, &values, &forget_type);
    }

    fn prune(&mut self) {
        self.compact();
    }

    fn is_valid(&self) -> bool {
        self.verify(None).is_ok()
    }
}

fn nodes_backwards(graph: &Graph) -> Vec<NodeId> {
    let mut nodes = graph.all_nodes();
    nodes.reverse();
    nodes
}

fn values(graph: &Graph) -> Vec<ValueId> {
    let mut values = graph.inputs().to_vec();
    for node in graph.all_nodes() {
        values.extend_from_slice(graph.node_outputs(node));
    }
    values
}

/// Deletes `node`. Uses of its outputs are replaced by a value of the same type: an operand of the node, an input of the graph, or a new one.
fn delete(graph: &mut Graph, node: &NodeId) -> bool {
    let node = *node;
    if !graph.is_alive(node) {
        return false;
    }
    for output in graph.node_outputs(node).to_vec() {
        if !graph.has_uses(output) {
            continue;
        }
        let ty = graph.ty(output);
        let operand = graph.operands(node).find(|v| graph.ty(*v) == ty);
        let input = graph.inputs().iter().copied().find(|v| graph.ty(*v) == ty);
        let instead = operand.or(input).unwrap_or_else(|| graph.add_input(ty));
        graph.replace_all_uses_with(output, instead);
    }
    graph.erase(node)
}

/// Replaces a branch by the contents of one of its sides, or a loop by its body.
fn flatten(graph: &mut Graph, node: &NodeId) -> bool {
    let node = *node;
    if !graph.is_alive(node) {
        return false;
    }
    let Some(&block) = graph.node_blocks(node).first() else {
        return false;
    };
    let skip = match graph.kind(node) {
        symbols::PRIM_IF => 0,
        symbols::PRIM_LOOP => 1,
        _ => return false,
    };
    if skip == 1 {
        let zero = Builder::new(graph, InsertPoint::Before(node)).constant(0);
        let parameters = graph.parameters(block).to_vec();
        let initial: Vec<ValueId> = std::iter::once(zero).chain(graph.operands(node).skip(2)).collect();
        for (parameter, value) in parameters.into_iter().zip(initial) {
            graph.replace_all_uses_with(parameter, value);
        }
    }
    let results: Vec<ValueId> = graph.results(block).skip(skip).collect();
    for (output, result) in graph.node_outputs(node).to_vec().into_iter().zip(results) {
        graph.replace_all_uses_with(output, result);
    }
    graph.splice_before(block, node);
    graph.erase(node)
}

/// Removes the unused outputs of a branch or loop, and the block results for them.
fn drop_outputs(graph: &mut Graph, node: &NodeId) -> bool {
    let node = *node;
    let shift = match graph.kind(node) {
        symbols::PRIM_IF => 0,
        symbols::PRIM_LOOP => 1,
        _ => return false,
    };
    let mut any = false;
    for index in (0..graph.node_outputs(node).len()).rev() {
        if graph.has_uses(graph.node_outputs(node)[index]) {
            continue;
        }
        let blocks = graph.node_blocks(node).to_vec();
        for &block in &blocks {
            graph.remove_result(block, index + shift);
        }
        if shift == 1 {
            let initial = graph.operand(node, index + 2);
            let parameter = blocks
                .first()
                .and_then(|b| graph.parameters(*b).get(index + 1).copied());
            if let (Some(initial), Some(parameter), Some(&block)) = (initial, parameter, blocks.first()) {
                graph.replace_all_uses_with(parameter, initial);
                graph.remove_parameter(block, index + 1);
            }
            graph.remove_operand(node, index + 2);
        }
        any |= graph.remove_output(node, index);
    }
    any
}

/// Returns the simplest value of the type of `constant`; `None` if `constant` is that value.
pub(super) fn simpler(constant: &Constant) -> Option<Constant> {
    Some(match constant {
        Constant::Int(n) if *n != 0 => Constant::Int(0),
        Constant::Float(f) if *f != 0.0 => Constant::Float(0.0),
        Constant::Str(s) if !s.is_empty() => Constant::str(""),
        Constant::List(l) if !l.items.is_empty() => Constant::list(l.element, Vec::new()),
        _ => return None,
    })
}

/// Replaces a constant by the simplest constant of its type.
fn simplify_constant(graph: &mut Graph, node: &NodeId) -> bool {
    let node = *node;
    if !graph.is_alive(node) || graph.kind(node) != symbols::PRIM_CONSTANT {
        return false;
    }
    let Some(simple) = graph.constant_of(node).and_then(|c| simpler(&c)) else {
        return false;
    };
    graph.set_attribute(node, symbols::ATTR_VALUE, simple);
    true
}

/// Replaces a tensor type by `Tensor`, without properties.
fn forget_type(graph: &mut Graph, value: &ValueId) -> bool {
    let value = *value;
    let known =
        matches!(graph.ctx().type_kind(graph.ty(value)), TypeKind::Tensor(_)) && graph.ty(value) != types::TENSOR;
    let constant = graph
        .defining_node(value)
        .is_some_and(|n| graph.kind(n) == symbols::PRIM_CONSTANT);
    if known && !constant {
        graph.set_type(value, types::TENSOR);
    }
    known && !constant
}

#[cfg(test)]
mod tests {
    use super::*;
    use frazil::ir::Context;
    use std::sync::Arc;

    fn parse(text: &str) -> Graph {
        frazil_syntax::parse_graph(&Arc::new(Context::new()), text)
            .unwrap()
            .graph
    }

    fn count(graph: &Graph, kind: &str) -> usize {
        graph
            .all_nodes()
            .into_iter()
            .filter(|n| graph.kind_name(*n) == kind)
            .count()
    }

    #[test]
    fn what_does_not_matter_goes() {
        let mut text = "graph(%x : Float(2), %c : bool, %n : int):\n  %y0 : Tensor = foo::bad(%x)\n".to_owned();
        for i in 0..50 {
            text += &format!("  %y{} : Tensor = foo::fine(%y{i})\n", i + 1);
        }
        text += "  %r : Tensor = prim::If(%c)\n    block0():\n      %a : Tensor = foo::bad(%y50)\n      -> (%a)\n    block1():\n      -> (%x)\n";
        text += "  return (%r, %y7, %y8)\n";
        let mut asked = 0;
        let mut test = |g: &Graph| {
            asked += 1;
            count(g, "foo::bad") >= 2
        };
        let small = Reducer::new(&mut test, 10_000).reduce(&parse(&text));
        assert_eq!(
            small.smallest.all_nodes().len(),
            2,
            "{}",
            frazil_syntax::print_graph(&small.smallest)
        );
        assert_eq!(small.smallest.outputs().len(), 0);
        assert!(asked < 200, "{asked}");
    }

    #[test]
    fn loops_and_constants_shrink_too() {
        let text = "graph(%x : Tensor):\n  %n : int = prim::Constant[value=7]()\n  %t : bool = prim::Constant[value=1]()\n  \
                    %l : int[] = prim::Constant[value=[1, 2]]()\n  %y : Tensor = prim::Loop(%n, %t, %x)\n    block0(%i : int, %z : Tensor):\n      \
                    %w : Tensor = foo::bad(%z, %l, %i)\n      -> (%t, %w)\n  return (%y)\n";
        let mut test = |g: &Graph| {
            g.all_nodes()
                .into_iter()
                .any(|n| g.kind_name(n) == "foo::bad" && g.operand_count(n) == 3)
        };
        let small = Reducer::new(&mut test, 10_000).reduce(&parse(text)).smallest;
        assert_eq!(count(&small, "prim::Loop"), 0);
        assert!(small.all_nodes().len() <= 3, "{}", frazil_syntax::print_graph(&small));
    }

    #[test]
    fn the_number_of_runs_is_bounded() {
        let mut runs = 0;
        let mut test = |_: &Graph| {
            runs += 1;
            false
        };
        Reducer::new(&mut test, 3).reduce(&parse(
            "graph(%x : Tensor):\n  %y : Tensor = foo::a(%x)\n  %z : Tensor = foo::a(%y)\n  return (%z, %y, %x)\n",
        ));
        assert!(runs <= 3);
    }
}
