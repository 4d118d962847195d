//! The graph: nodes in nested blocks over SSA values.
//!
//! A [`Graph`] owns its nodes, values and blocks in entity tables and hands out `u32` handles. Operand lists are pooled and every
//! operand is a link of its value's use list, so that replacing all uses costs as much as there are uses. Nodes of a block form a
//! doubly linked list with order keys, so that "does a come before b" is a comparison.
//!
//! Every edit goes through the methods of this type (in [`edit`], [`layout`], [`copy`] and [`builder`]), which keep use lists, order and
//! the change log right; nothing else writes the tables. Creation and placement are separate: a node exists before it is
//! inserted, and can be taken out and put elsewhere. An erased node leaves a tombstone; handles stay valid until
//! [`Graph::compact`] renumbers. Cloning a graph copies its tables, so handles mean the same in the copy.
//!
//! A block ends in a *return node* (`prim::Return`) whose operands are the block's results; it is not among the block's
//! [`nodes`](Graph::nodes).

mod builder;
mod copy;
mod edit;
mod layout;
mod name;
mod operands;

use crate::attribute::{Attribute, AttributeValue};
use crate::{Constant, Context, SourceRange, SymbolId, TypeId, symbols};
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntityList, ListPool, PrimaryMap, SecondaryMap, entity_impl};
use operands::OperandPool;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

pub use builder::{Builder, InsertPoint};
pub use copy::{Compaction, CopyMap};
pub use name::ValueName;
pub use operands::Use;

/// A node of a graph.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(u32);
entity_impl!(NodeId, "n");

/// A value of a graph: a node's output or a block's parameter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(u32);
entity_impl!(ValueId, "%");

/// A block of a graph.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockId(u32);
entity_impl!(BlockId, "^b");

/// Handle of a node's attributes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct AttributesId(u32);
entity_impl!(AttributesId, "attrs");

/// The hot part of a node. Source ranges, order keys and scopes are kept beside.
#[derive(Clone, Debug)]
struct NodeData {
    /// `None` once erased.
    kind: PackedOption<SymbolId>,
    operands: operands::OperandList,
    outputs: EntityList<ValueId>,
    blocks: EntityList<BlockId>,
    attributes: PackedOption<AttributesId>,
    /// The block that the node stands in, or returns from.
    parent: PackedOption<BlockId>,
    previous: PackedOption<NodeId>,
    next: PackedOption<NodeId>,
}

#[derive(Clone, Debug)]
struct ValueData {
    ty: TypeId,
    first_use: PackedOption<operands::OperandId>,
    /// The node or block that defines the value.
    owner: u32,
    /// Index among the owner's outputs or parameters; the top bit says that the owner is a block.
    position: u32,
}

const IS_PARAMETER: u32 = 1 << 31;

/// Most nodes that have attributes have one.
type AttributeList = SmallVec<[Attribute; 1]>;

#[derive(Clone, Debug)]
struct BlockData {
    parameters: EntityList<ValueId>,
    first: PackedOption<NodeId>,
    last: PackedOption<NodeId>,
    return_node: NodeId,
    /// The node that the block belongs to; none for the graph's own block.
    owner: PackedOption<NodeId>,
}

/// Who defines a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Definition {
    /// Output number `.1` of a node.
    Output(NodeId, usize),
    /// Parameter number `.1` of a block.
    Parameter(BlockId, usize),
}

/// One edit, as the change log records it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The node was put into a block.
    Inserted(NodeId),
    /// The node was taken out of its block, to be put elsewhere.
    Removed(NodeId),
    /// The node is gone.
    Erased(NodeId),
    /// An operand, attribute or the kind of the node changed.
    Updated(NodeId),
    /// The type of the value changed.
    Retyped(ValueId),
}

/// A TorchScript graph. See the [module documentation](self).
#[derive(Clone, Debug)]
pub struct Graph {
    ctx: Arc<Context>,
    nodes: PrimaryMap<NodeId, NodeData>,
    values: PrimaryMap<ValueId, ValueData>,
    blocks: PrimaryMap<BlockId, BlockData>,
    operands: OperandPool,
    value_lists: ListPool<ValueId>,
    block_lists: ListPool<BlockId>,
    attributes: PrimaryMap<AttributesId, AttributeList>,
    order: SecondaryMap<NodeId, u32>,
    ranges: SecondaryMap<NodeId, PackedOption<SourceRange>>,
    names: SecondaryMap<ValueId, PackedOption<ValueName>>,
    /// Tracing scopes; most graphs have none.
    scopes: HashMap<NodeId, SymbolId>,
    root: BlockId,
    revision: u64,
    log: Option<Vec<Change>>,
}

impl Graph {
    /// An empty graph: one block without parameters, results and nodes.
    pub fn new(ctx: Arc<Context>) -> Graph {
        Graph::with_capacity(ctx, 0)
    }

    /// An empty graph with room for `nodes` nodes of a few operands and one output.
    pub fn with_capacity(ctx: Arc<Context>, nodes: usize) -> Graph {
        let mut graph = Graph {
            ctx,
            nodes: PrimaryMap::with_capacity(nodes),
            values: PrimaryMap::with_capacity(nodes),
            blocks: PrimaryMap::new(),
            operands: OperandPool::with_capacity(nodes),
            value_lists: ListPool::with_capacity(4 * nodes),
            block_lists: ListPool::new(),
            attributes: PrimaryMap::new(),
            order: SecondaryMap::with_capacity(nodes),
            ranges: SecondaryMap::new(),
            names: SecondaryMap::with_capacity(nodes),
            scopes: HashMap::new(),
            root: BlockId(0),
            revision: 0,
            log: None,
        };
        graph.root = graph.new_block(None);
        graph
    }

    /// The context that the graph's names and types live in.
    pub fn ctx(&self) -> &Arc<Context> {
        &self.ctx
    }

    /// The outermost block: its parameters are the graph's inputs, its results the graph's outputs.
    pub fn root(&self) -> BlockId {
        self.root
    }

    /// The graph's inputs.
    pub fn inputs(&self) -> &[ValueId] {
        self.parameters(self.root)
    }

    /// The graph's outputs.
    pub fn outputs(&self) -> impl ExactSizeIterator<Item = ValueId> + Clone + '_ {
        self.results(self.root)
    }

    /// Counts edits: an analysis of revision `n` holds while the graph is at `n`.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Starts to record changes.
    pub fn start_log(&mut self) {
        self.log.get_or_insert_default();
    }

    /// The changes since [`start_log`](Self::start_log) or the last call; recording goes on.
    pub fn take_log(&mut self) -> Vec<Change> {
        self.log.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn record(&mut self, change: Change) {
        self.revision += 1;
        if let Some(log) = &mut self.log {
            log.push(change);
        }
    }

    // --- nodes

    /// Number of node handles handed out, erased ones included: handles are below it.
    pub fn node_capacity(&self) -> usize {
        self.nodes.len()
    }

    /// Number of value handles handed out.
    pub fn value_capacity(&self) -> usize {
        self.values.len()
    }

    /// True until the node is erased.
    pub fn is_alive(&self, node: NodeId) -> bool {
        self.nodes.get(node).is_some_and(|n| n.kind.is_some())
    }

    /// The node's kind, such as `aten::add`; the empty name once erased.
    pub fn kind(&self, node: NodeId) -> SymbolId {
        self.nodes[node].kind.expand().unwrap_or(symbols::EMPTY)
    }

    /// The name of the node's kind.
    pub fn kind_name(&self, node: NodeId) -> &str {
        self.ctx.name(self.kind(node))
    }

    /// The node's operands in order.
    pub fn operands(&self, node: NodeId) -> impl ExactSizeIterator<Item = ValueId> + DoubleEndedIterator + Clone + '_ {
        self.operands.values(self.nodes[node].operands)
    }

    /// Operand number `index`, if there is one.
    pub fn operand(&self, node: NodeId, index: usize) -> Option<ValueId> {
        self.operands.value(self.nodes[node].operands, index)
    }

    /// Number of operands.
    pub fn operand_count(&self, node: NodeId) -> usize {
        self.operands.len(self.nodes[node].operands)
    }

    /// The node's outputs in order.
    pub fn node_outputs(&self, node: NodeId) -> &[ValueId] {
        self.nodes[node].outputs.as_slice(&self.value_lists)
    }

    /// The node's output, if it has exactly one.
    pub fn output(&self, node: NodeId) -> Option<ValueId> {
        match self.node_outputs(node) {
            [v] => Some(*v),
            _ => None,
        }
    }

    /// The node's blocks in order.
    pub fn node_blocks(&self, node: NodeId) -> &[BlockId] {
        self.nodes[node].blocks.as_slice(&self.block_lists)
    }

    /// The block that the node stands in (or returns from); none while it is not placed.
    pub fn parent(&self, node: NodeId) -> Option<BlockId> {
        self.nodes[node].parent.expand()
    }

    /// The node after this one in its block.
    pub fn next(&self, node: NodeId) -> Option<NodeId> {
        self.nodes[node].next.expand()
    }

    /// The node before this one in its block.
    pub fn previous(&self, node: NodeId) -> Option<NodeId> {
        self.nodes[node].previous.expand()
    }

    /// Where the node comes from in the source.
    pub fn source_range(&self, node: NodeId) -> Option<SourceRange> {
        self.ranges[node].expand()
    }

    /// The tracing scope that the node was recorded in.
    pub fn scope(&self, node: NodeId) -> Option<SymbolId> {
        self.scopes.get(&node).copied()
    }

    /// The node's attributes in order.
    pub fn attributes(&self, node: NodeId) -> &[Attribute] {
        self.nodes[node]
            .attributes
            .expand()
            .map_or(&[], |a| &self.attributes[a])
    }

    /// The attribute `name`.
    pub fn attribute(&self, node: NodeId, name: SymbolId) -> Option<&AttributeValue> {
        self.attributes(node).iter().find(|a| a.name == name).map(|a| &a.value)
    }

    /// The text of the string attribute `name`, as an interned name (`prim::GetAttr[name="weight"]`).
    pub fn attribute_symbol(&self, node: NodeId, name: SymbolId) -> Option<SymbolId> {
        match self.attribute(node, name)? {
            AttributeValue::Constant(Constant::Str(text)) => Some(self.ctx.symbol(text)),
            _ => None,
        }
    }

    // --- values

    /// The value's type.
    pub fn ty(&self, value: ValueId) -> TypeId {
        self.values[value].ty
    }

    /// Who defines the value.
    pub fn definition(&self, value: ValueId) -> Definition {
        let data = &self.values[value];
        let index = (data.position & !IS_PARAMETER) as usize;
        if data.position & IS_PARAMETER == 0 {
            Definition::Output(NodeId(data.owner), index)
        } else {
            Definition::Parameter(BlockId(data.owner), index)
        }
    }

    /// The node that defines the value, unless it is a parameter.
    pub fn defining_node(&self, value: ValueId) -> Option<NodeId> {
        match self.definition(value) {
            Definition::Output(node, _) => Some(node),
            Definition::Parameter(..) => None,
        }
    }

    /// The block that the value is defined in; none when its node is not placed.
    pub fn defining_block(&self, value: ValueId) -> Option<BlockId> {
        match self.definition(value) {
            Definition::Output(node, _) => self.parent(node),
            Definition::Parameter(block, _) => Some(block),
        }
    }

    /// The value's uses, the newest first. Block results are uses by the block's return node.
    pub fn uses(&self, value: ValueId) -> impl Iterator<Item = Use> + Clone + '_ {
        self.operands.uses(self.values[value].first_use)
    }

    /// True when something uses the value.
    pub fn has_uses(&self, value: ValueId) -> bool {
        self.values[value].first_use.is_some()
    }

    /// The value's only use, if it has exactly one.
    pub fn single_use(&self, value: ValueId) -> Option<Use> {
        let mut uses = self.uses(value);
        uses.next().filter(|_| uses.next().is_none())
    }

    /// The value's name, if it was given one.
    pub fn value_name(&self, value: ValueId) -> Option<ValueName> {
        self.names[value].expand()
    }

    /// The value as messages show it: its name with `%`, its handle when it has none.
    pub fn show_value(&self, value: ValueId) -> impl fmt::Display + '_ {
        fmt::from_fn(move |f| match self.value_name(value) {
            Some(name) => write!(f, "%{}", name.display(&self.ctx)),
            None => write!(f, "{value}"),
        })
    }

    /// The constant that the value is: the output of a `prim::Constant`.
    pub fn constant(&self, value: ValueId) -> Option<Constant> {
        let node = self.defining_node(value)?;
        if self.kind(node) != symbols::PRIM_CONSTANT {
            return None;
        }
        self.constant_of(node)
    }

    /// What a `prim::Constant` node holds: its `value`, a function's name, or None when it has no attributes.
    pub fn constant_of(&self, node: NodeId) -> Option<Constant> {
        match self.attribute(node, symbols::ATTR_VALUE) {
            Some(AttributeValue::Constant(c)) => Some(c.clone()),
            Some(_) => None,
            None => match self.ctx.type_kind(self.ty(self.output(node)?)) {
                crate::TypeKind::Function(name) => Some(Constant::Function(name)),
                _ if self.attributes(node).is_empty() => Some(Constant::None),
                _ => None,
            },
        }
    }

    // --- blocks

    /// The block's parameters.
    pub fn parameters(&self, block: BlockId) -> &[ValueId] {
        self.blocks[block].parameters.as_slice(&self.value_lists)
    }

    /// The block's return node, whose operands are the block's results.
    pub fn return_node(&self, block: BlockId) -> NodeId {
        self.blocks[block].return_node
    }

    /// The block's results.
    pub fn results(&self, block: BlockId) -> impl ExactSizeIterator<Item = ValueId> + Clone + '_ {
        self.operands(self.return_node(block))
    }

    /// The node that the block belongs to; none for the root.
    pub fn owner(&self, block: BlockId) -> Option<NodeId> {
        self.blocks[block].owner.expand()
    }

    /// The block's first node.
    pub fn first(&self, block: BlockId) -> Option<NodeId> {
        self.blocks[block].first.expand()
    }

    /// The block's last node.
    pub fn last(&self, block: BlockId) -> Option<NodeId> {
        self.blocks[block].last.expand()
    }

    /// The block's own nodes in order, without those of nested blocks and without the return node.
    pub fn nodes(&self, block: BlockId) -> impl Iterator<Item = NodeId> + Clone + '_ {
        std::iter::successors(self.first(block), |n| self.next(*n))
    }

    /// All nodes below `block` in order, each before the nodes of its blocks. Return nodes are left out.
    pub fn nodes_recursive(&self, block: BlockId) -> Vec<NodeId> {
        self.walk(block).collect()
    }

    /// As [`nodes_recursive`](Self::nodes_recursive), one after the other: for those who may not want all of them.
    pub fn walk(&self, block: BlockId) -> impl Iterator<Item = NodeId> + '_ {
        // What comes next in each open block, and the first nodes of blocks that wait for their turn.
        let mut stack: Vec<NodeId> = self.first(block).into_iter().collect();
        std::iter::from_fn(move || {
            let node = stack.pop()?;
            stack.extend(self.next(node));
            stack.extend(self.node_blocks(node).iter().rev().filter_map(|b| self.first(*b)));
            Some(node)
        })
    }

    /// All nodes of the graph in order.
    pub fn all_nodes(&self) -> Vec<NodeId> {
        self.nodes_recursive(self.root)
    }

    /// The graph and the graphs that its nodes hold as attributes (bodies of forks), at any depth.
    pub fn self_and_subgraphs(&self) -> Vec<&Graph> {
        let mut all = vec![self];
        let mut next = 0;
        while let Some(&graph) = all.get(next) {
            next += 1;
            for node in graph.all_nodes() {
                for attribute in graph.attributes(node) {
                    match &attribute.value {
                        AttributeValue::Graph(inner) => all.push(inner),
                        AttributeValue::Graphs(inner) => all.extend(inner.iter().map(Arc::as_ref)),
                        _ => {}
                    }
                }
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hot_data_stays_small() {
        assert_eq!(size_of::<NodeData>(), 32);
        assert_eq!(size_of::<ValueData>(), 16);
        assert_eq!(operands::SLOT_SIZE, 16);
        assert_eq!(size_of::<PackedOption<NodeId>>(), 4);
    }

    #[test]
    fn graphs_cross_threads() {
        fn check<T: Send + Sync>() {}
        check::<Graph>();
        check::<Context>();
    }
}
