//! Selection of the nodes that are printed inside the expression that uses them, and not as statements.
//!
//! Python evaluates the operands of an expression from left to right, then the expression. So the nodes before a statement can be printed inside it if a walk
//! over its operands from right to left reaches them in reverse order. Constants can move freely.

use frazil_ir::{BlockId, Graph, NodeId, ValueId, symbols};

use super::names::has_name;

/// Returns for each node whether it is printed inside the expression that uses it.
pub(super) fn inlined_nodes(graph: &Graph) -> Vec<bool> {
    let mut scan = Scan {
        graph,
        inlined: vec![false; graph.node_capacity()],
    };
    let mut blocks = vec![graph.root()];
    while let Some(block) = blocks.pop() {
        scan.statement(graph.return_node(block), before_return(graph, block));
        let mut next = graph.last(block);
        while let Some(node) = next {
            blocks.extend_from_slice(graph.node_blocks(node));
            next = graph.previous(node);
            if !scan.inlined[index(node)] {
                scan.statement(node, before(graph, node));
            }
        }
    }
    scan.inlined
}

/// Maximum nesting of nodes in the expression of a statement. It is less than the readers' limit, to which parentheses and types contribute, too.
const MAX_INLINED: usize = 800;

pub(super) fn index(node: NodeId) -> usize {
    node.as_u32() as usize
}

struct Scan<'g> {
    graph: &'g Graph,
    inlined: Vec<bool>,
}

impl Scan<'_> {
    /// Marks the nodes that are printed inside the expressions of `statement`. `point` is the node before `statement`.
    fn statement(&mut self, statement: NodeId, mut point: Option<NodeId>) {
        let graph = self.graph;
        // The nodes from the statement down to the one at hand, each with the number of operands that are still to be looked at.
        let mut open = vec![(statement, graph.operand_count(statement))];
        while let Some(&mut (node, ref mut left)) = open.last_mut() {
            let Some(next) = left.checked_sub(1) else {
                open.pop();
                continue;
            };
            *left = next;
            let Some(operand) = graph.operand(node, next) else {
                continue;
            };
            let Some(definition) = graph.defining_node(operand) else {
                continue;
            };
            let depth = open.len();
            if point == Some(definition) && depth < MAX_INLINED && can_inline(graph, definition, operand) {
                self.inlined[index(definition)] = true;
                point = before(graph, definition);
                open.push((definition, graph.operand_count(definition)));
            } else if graph.kind(definition) == symbols::PRIM_CONSTANT {
                self.inlined[index(definition)] = true;
            }
        }
    }
}

/// Returns whether `value`, the output of `node`, may be printed where it is used, without regard to the order of
/// evaluation.
fn can_inline(graph: &Graph, node: NodeId, value: ValueId) -> bool {
    let Some(only) = graph.single_use(value).filter(|_| graph.output(node).is_some()) else {
        return false;
    };
    let user = graph.kind(only.user);
    // A name that the source has is kept, unless the value goes straight to the end of its block.
    let is_named = has_name(graph, value) && user != symbols::PRIM_RETURN;
    // What a loop starts with is assigned before its condition is evaluated; a nested function may read a value more than once.
    let is_carried = user == symbols::PRIM_LOOP && only.index >= 2;
    let is_captured = matches!(
        graph.ctx().name(user),
        "prim::fork" | "prim::rpc_async" | "prim::rpc_sync" | "prim::rpc_remote"
    );
    // Within the condition of an `if` this would narrow types a second time.
    let narrows = graph.kind(node) == symbols::PRIM_ISINSTANCE;
    graph.node_blocks(node).is_empty() && !is_named && !is_carried && !is_captured && !narrows
}

fn before(graph: &Graph, node: NodeId) -> Option<NodeId> {
    skip_constants(graph, graph.previous(node))
}

fn before_return(graph: &Graph, block: BlockId) -> Option<NodeId> {
    skip_constants(graph, graph.last(block))
}

fn skip_constants(graph: &Graph, mut node: Option<NodeId>) -> Option<NodeId> {
    while let Some(constant) = node.filter(|&node| graph.kind(node) == symbols::PRIM_CONSTANT) {
        node = graph.previous(constant);
    }
    node
}
