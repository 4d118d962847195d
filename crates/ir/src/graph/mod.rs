//! The graph: nodes in nested blocks over SSA values.
//!
//! A [`Graph`] owns its nodes, values and blocks in entity tables and identifies them by `u32` handles. Operand lists are pooled and every operand is a link of
//! its value's use list, so that replacing all uses takes time in the number of uses. Nodes of a block form a doubly linked list with order keys, so that two
//! positions are compared in constant time.
//!
//! Every edit goes through the methods of this type (in [`edit`], [`layout`], [`copy`] and [`builder`]), which maintain use lists, order and the change log.
//! Creation and placement are separate: a node exists before it is inserted, and can be removed and inserted elsewhere. An erased node leaves a tombstone;
//! handles stay valid until [`Graph::compact`] renumbers. Cloning a graph copies its tables, so handles are valid in the copy too.
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

/// Id of a node in a graph.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(u32);
entity_impl!(NodeId, "n");

/// Id of a value in a graph: an output of a node or a parameter of a block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(u32);
entity_impl!(ValueId, "%");

/// Id of a block in a graph.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockId(u32);
entity_impl!(BlockId, "^b");

/// Id of a node's attribute list.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct AttributesId(u32);
entity_impl!(AttributesId, "attrs");

/// The frequently accessed part of a node. Source ranges, order keys and scopes are in tables of their own.
#[derive(Clone, Debug)]
struct NodeData {
    /// The kind; `None` after the node has been erased.
    kind: PackedOption<SymbolId>,
    operands: operands::OperandList,
    outputs: EntityList<ValueId>,
    blocks: EntityList<BlockId>,
    attributes: PackedOption<AttributesId>,
    /// The block that contains the node; for a return node, the block whose results are its operands.
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
    /// Index among the owner's outputs or parameters; the top bit is set if the owner is a block.
    position: u32,
}

const IS_PARAMETER: u32 = 1 << 31;

/// The attributes of a node. Most nodes with attributes have one.
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

/// The definition of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Definition {
    /// Output `.1` of node `.0`.
    Output(NodeId, usize),
    /// Parameter `.1` of block `.0`.
    Parameter(BlockId, usize),
}

/// One edit, as the change log records it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The node was inserted into a block.
    Inserted(NodeId),
    /// The node was removed from its block. It may be inserted again.
    Removed(NodeId),
    /// The node was erased.
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
    /// Tracing scopes of nodes; most graphs have none.
    scopes: HashMap<NodeId, SymbolId>,
    root: BlockId,
    revision: u64,
    log: Option<Vec<Change>>,
}

impl Graph {
    /// Returns an empty graph: one block without parameters, results and nodes.
    pub fn new(ctx: Arc<Context>) -> Graph {
        Graph::with_capacity(ctx, 0)
    }

    /// Returns an empty graph with capacity for `nodes` nodes, each with a few operands and one output.
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

    /// Returns the context of the graph's names and types.
    pub fn ctx(&self) -> &Arc<Context> {
        &self.ctx
    }

    /// Returns the outermost block: its parameters are the graph's inputs, its results the graph's outputs.
    pub fn root(&self) -> BlockId {
        self.root
    }

    /// Returns the graph's inputs.
    pub fn inputs(&self) -> &[ValueId] {
        self.parameters(self.root)
    }

    /// Returns the graph's outputs.
    pub fn outputs(&self) -> impl ExactSizeIterator<Item = ValueId> + Clone + '_ {
        self.results(self.root)
    }

    /// Returns the number of edits: an analysis of revision `n` is valid while the graph is at `n`.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Starts to record changes.
    pub fn start_log(&mut self) {
        self.log.get_or_insert_default();
    }

    /// Returns the changes since [`start_log`](Self::start_log) or the last call of this function; recording continues.
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

    /// Returns the number of node ids ever created, including those of erased nodes; all ids are below it.
    pub fn node_capacity(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the number of value ids ever created; all ids are below it.
    pub fn value_capacity(&self) -> usize {
        self.values.len()
    }

    /// Returns true until the node is erased.
    pub fn is_alive(&self, node: NodeId) -> bool {
        self.nodes.get(node).is_some_and(|n| n.kind.is_some())
    }

    /// Returns the node's kind, such as `aten::add`; the empty name for an erased node.
    pub fn kind(&self, node: NodeId) -> SymbolId {
        self.nodes[node].kind.expand().unwrap_or(symbols::EMPTY)
    }

    /// Returns the name of the node's kind.
    pub fn kind_name(&self, node: NodeId) -> &str {
        self.ctx.name(self.kind(node))
    }

    /// Returns the node's operands in order.
    pub fn operands(&self, node: NodeId) -> impl ExactSizeIterator<Item = ValueId> + DoubleEndedIterator + Clone + '_ {
        self.operands.values(self.nodes[node].operands)
    }

    /// Returns operand number `index`, if there is one.
    pub fn operand(&self, node: NodeId, index: usize) -> Option<ValueId> {
        self.operands.value(self.nodes[node].operands, index)
    }

    /// Returns the number of operands.
    pub fn operand_count(&self, node: NodeId) -> usize {
        self.operands.len(self.nodes[node].operands)
    }

    /// Returns the node's outputs in order.
    pub fn node_outputs(&self, node: NodeId) -> &[ValueId] {
        self.nodes[node].outputs.as_slice(&self.value_lists)
    }

    /// Returns the node's output, if it has exactly one.
    pub fn output(&self, node: NodeId) -> Option<ValueId> {
        match self.node_outputs(node) {
            [v] => Some(*v),
            _ => None,
        }
    }

    /// Returns the node's blocks in order.
    pub fn node_blocks(&self, node: NodeId) -> &[BlockId] {
        self.nodes[node].blocks.as_slice(&self.block_lists)
    }

    /// Returns the block that contains the node (or that it returns from); `None` while it is not placed.
    pub fn parent(&self, node: NodeId) -> Option<BlockId> {
        self.nodes[node].parent.expand()
    }

    /// Returns the node after this one in its block.
    pub fn next(&self, node: NodeId) -> Option<NodeId> {
        self.nodes[node].next.expand()
    }

    /// Returns the node before this one in its block.
    pub fn previous(&self, node: NodeId) -> Option<NodeId> {
        self.nodes[node].previous.expand()
    }

    /// Returns the source location of the node.
    pub fn source_range(&self, node: NodeId) -> Option<SourceRange> {
        self.ranges[node].expand()
    }

    /// Returns the tracing scope in which the node was recorded.
    pub fn scope(&self, node: NodeId) -> Option<SymbolId> {
        self.scopes.get(&node).copied()
    }

    /// Returns the node's attributes in order.
    pub fn attributes(&self, node: NodeId) -> &[Attribute] {
        self.nodes[node]
            .attributes
            .expand()
            .map_or(&[], |a| &self.attributes[a])
    }

    /// Returns the attribute `name`.
    pub fn attribute(&self, node: NodeId, name: SymbolId) -> Option<&AttributeValue> {
        self.attributes(node).iter().find(|a| a.name == name).map(|a| &a.value)
    }

    /// Returns the text of the string attribute `name`, as an interned name (`prim::GetAttr[name="weight"]`).
    pub fn attribute_symbol(&self, node: NodeId, name: SymbolId) -> Option<SymbolId> {
        match self.attribute(node, name)? {
            AttributeValue::Constant(Constant::Str(text)) => Some(self.ctx.symbol(text)),
            _ => None,
        }
    }

    // --- values

    /// Returns the value's type.
    pub fn ty(&self, value: ValueId) -> TypeId {
        self.values[value].ty
    }

    /// Returns the definition of the value.
    pub fn definition(&self, value: ValueId) -> Definition {
        let data = &self.values[value];
        let index = (data.position & !IS_PARAMETER) as usize;
        if data.position & IS_PARAMETER == 0 {
            Definition::Output(NodeId(data.owner), index)
        } else {
            Definition::Parameter(BlockId(data.owner), index)
        }
    }

    /// Returns the node that defines the value; `None` for a parameter of a block.
    pub fn defining_node(&self, value: ValueId) -> Option<NodeId> {
        match self.definition(value) {
            Definition::Output(node, _) => Some(node),
            Definition::Parameter(..) => None,
        }
    }

    /// Returns the block in which the value is defined; `None` if its node is not placed.
    pub fn defining_block(&self, value: ValueId) -> Option<BlockId> {
        match self.definition(value) {
            Definition::Output(node, _) => self.parent(node),
            Definition::Parameter(block, _) => Some(block),
        }
    }

    /// Returns the value's uses, the newest first. Block results are uses by the block's return node.
    pub fn uses(&self, value: ValueId) -> impl Iterator<Item = Use> + Clone + '_ {
        self.operands.uses(self.values[value].first_use)
    }

    /// Returns true if the value has uses.
    pub fn has_uses(&self, value: ValueId) -> bool {
        self.values[value].first_use.is_some()
    }

    /// Returns the value's only use, if it has exactly one.
    pub fn single_use(&self, value: ValueId) -> Option<Use> {
        let mut uses = self.uses(value);
        uses.next().filter(|_| uses.next().is_none())
    }

    /// Returns the value's name, if it has one.
    pub fn value_name(&self, value: ValueId) -> Option<ValueName> {
        self.names[value].expand()
    }

    /// Returns the value as shown in messages: its name with `%`, or its id if it has no name.
    pub fn show_value(&self, value: ValueId) -> impl fmt::Display + '_ {
        fmt::from_fn(move |f| match self.value_name(value) {
            Some(name) => write!(f, "%{}", name.display(&self.ctx)),
            None => write!(f, "{value}"),
        })
    }

    /// Returns the constant that defines the value, if it is the output of a `prim::Constant`.
    pub fn constant(&self, value: ValueId) -> Option<Constant> {
        let node = self.defining_node(value)?;
        if self.kind(node) != symbols::PRIM_CONSTANT {
            return None;
        }
        self.constant_of(node)
    }

    /// Returns the value of a `prim::Constant` node: its `value`, a function's name, or None if it has no attributes.
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

    /// Returns the block's parameters.
    pub fn parameters(&self, block: BlockId) -> &[ValueId] {
        self.blocks[block].parameters.as_slice(&self.value_lists)
    }

    /// Returns the block's return node, whose operands are the block's results.
    pub fn return_node(&self, block: BlockId) -> NodeId {
        self.blocks[block].return_node
    }

    /// Returns the block's results.
    pub fn results(&self, block: BlockId) -> impl ExactSizeIterator<Item = ValueId> + Clone + '_ {
        self.operands(self.return_node(block))
    }

    /// Returns the node that owns the block; `None` for the root.
    pub fn owner(&self, block: BlockId) -> Option<NodeId> {
        self.blocks[block].owner.expand()
    }

    /// Returns the block's first node.
    pub fn first(&self, block: BlockId) -> Option<NodeId> {
        self.blocks[block].first.expand()
    }

    /// Returns the block's last node.
    pub fn last(&self, block: BlockId) -> Option<NodeId> {
        self.blocks[block].last.expand()
    }

    /// Returns the nodes of the block in order, without nodes of nested blocks and without the return node.
    pub fn nodes(&self, block: BlockId) -> impl Iterator<Item = NodeId> + Clone + '_ {
        std::iter::successors(self.first(block), |n| self.next(*n))
    }

    /// Returns all nodes below `block` in order, each before the nodes of its blocks. Return nodes are left out.
    pub fn nodes_recursive(&self, block: BlockId) -> Vec<NodeId> {
        self.walk(block).collect()
    }

    /// Iterates like [`nodes_recursive`](Self::nodes_recursive) without collecting, for callers that may stop early.
    pub fn walk(&self, block: BlockId) -> impl Iterator<Item = NodeId> + '_ {
        // The next node of each open block, and the first nodes of blocks that have not been entered.
        let mut stack: Vec<NodeId> = self.first(block).into_iter().collect();
        std::iter::from_fn(move || {
            let node = stack.pop()?;
            stack.extend(self.next(node));
            stack.extend(self.node_blocks(node).iter().rev().filter_map(|b| self.first(*b)));
            Some(node)
        })
    }

    /// Returns all nodes of the graph in order.
    pub fn all_nodes(&self) -> Vec<NodeId> {
        self.nodes_recursive(self.root)
    }

    /// Returns the graph and the graphs in attributes of its nodes (bodies of forks), at any depth.
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
