//! Building nodes at an insertion point.

use super::{AttributeValue, BlockId, Graph, NodeId, ValueId};
use crate::{Constant, SourceRange, SymbolId, TypeId, TypeKind, symbols};
use std::ops::{Deref, DerefMut};

/// The location at which a [`Builder`] inserts nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertPoint {
    /// Inserts at the end of a block.
    End(BlockId),
    /// Inserts before a node.
    Before(NodeId),
}

/// Creates nodes at an insertion point, each with the current source range.
///
/// It dereferences to the graph, for queries and edits.
pub struct Builder<'g> {
    graph: &'g mut Graph,
    point: InsertPoint,
    range: Option<SourceRange>,
}

impl<'g> Builder<'g> {
    /// Returns a builder at `point`.
    pub fn new(graph: &'g mut Graph, point: InsertPoint) -> Builder<'g> {
        Builder {
            graph,
            point,
            range: None,
        }
    }

    /// Returns a builder before `node`, with that node's source range.
    pub fn before(graph: &'g mut Graph, node: NodeId) -> Builder<'g> {
        let range = graph.source_range(node);
        Builder {
            graph,
            point: InsertPoint::Before(node),
            range,
        }
    }

    /// Returns a builder at the end of `block`.
    pub fn at_end(graph: &'g mut Graph, block: BlockId) -> Builder<'g> {
        Builder::new(graph, InsertPoint::End(block))
    }

    /// Returns the insertion point.
    pub fn point(&self) -> InsertPoint {
        self.point
    }

    /// Moves to the insertion point `point` and returns the previous one.
    pub fn move_to(&mut self, point: InsertPoint) -> InsertPoint {
        std::mem::replace(&mut self.point, point)
    }

    /// Sets the source range of the nodes that the builder creates from now on.
    pub fn set_range(&mut self, range: Option<SourceRange>) {
        self.range = range;
    }

    /// Inserts an existing node at the insertion point.
    pub fn place(&mut self, node: NodeId) {
        match self.point {
            InsertPoint::End(block) => self.graph.append(block, node),
            InsertPoint::Before(other) => self.graph.insert_before(node, other),
        }
    }

    /// Inserts a node with these operands and outputs of these types.
    pub fn node(&mut self, kind: SymbolId, operands: &[ValueId], outputs: &[TypeId]) -> NodeId {
        let node = self.graph.create_node(kind);
        self.graph.add_operands(node, operands);
        for &ty in outputs {
            self.graph.add_output(node, ty);
        }
        self.graph.set_source_range(node, self.range);
        self.place(node);
        node
    }

    /// Inserts a node with one output and returns the output.
    pub fn op(&mut self, kind: SymbolId, operands: &[ValueId], ty: TypeId) -> ValueId {
        let node = self.node(kind, operands, &[]);
        self.graph.add_output(node, ty)
    }

    /// Inserts a `prim::Constant`.
    pub fn constant(&mut self, value: impl Into<Constant>) -> ValueId {
        let value = value.into();
        let ty = value.ty(self.graph.ctx());
        self.constant_typed(value, ty)
    }

    /// Inserts a `prim::Constant` of a given type, for values that do not determine it (an object's class, a None of an optional type).
    pub fn constant_typed(&mut self, value: Constant, ty: TypeId) -> ValueId {
        let output = self.op(symbols::PRIM_CONSTANT, &[], ty);
        let node = match self.graph.defining_node(output) {
            Some(node) => node,
            None => return output,
        };
        match &value {
            Constant::None => {}
            Constant::Function(name) => {
                let short = self
                    .graph
                    .ctx()
                    .name(*name)
                    .rsplit('.')
                    .next()
                    .unwrap_or_default()
                    .to_owned();
                self.graph.set_attribute(node, symbols::ATTR_NAME, Constant::str(short));
            }
            _ => self
                .graph
                .set_attribute(node, symbols::ATTR_VALUE, AttributeValue::Constant(value)),
        }
        output
    }

    /// Inserts a `prim::ListConstruct` with elements of type `element`.
    pub fn list(&mut self, element: TypeId, items: &[ValueId]) -> ValueId {
        let ty = self.graph.ctx().list_of(element);
        self.op(symbols::PRIM_LIST_CONSTRUCT, items, ty)
    }

    /// Inserts a `prim::TupleConstruct`.
    pub fn tuple(&mut self, items: &[ValueId]) -> ValueId {
        let element_types: Vec<_> = items.iter().map(|v| self.graph.ty(*v)).collect();
        let ty = self.graph.ctx().tuple_of(&element_types);
        self.op(symbols::PRIM_TUPLE_CONSTRUCT, items, ty)
    }

    /// Inserts a `prim::TupleUnpack` and returns the elements of a tuple value; empty if it is not a tuple.
    pub fn unpack_tuple(&mut self, tuple: ValueId) -> Vec<ValueId> {
        let ctx = self.graph.ctx().clone();
        let element_types = match ctx.type_kind(self.graph.ty(tuple)) {
            TypeKind::Tuple(es) | TypeKind::NamedTuple(_, _, es) => ctx.types(es),
            _ => return Vec::new(),
        };
        let node = self.node(symbols::PRIM_TUPLE_UNPACK, &[tuple], element_types);
        self.graph.node_outputs(node).to_vec()
    }

    /// Inserts a `prim::GetAttr` of attribute `name`. Its value has the name of the attribute, with an underscore before a number.
    pub fn get_attr(&mut self, object: ValueId, name: SymbolId, ty: TypeId) -> ValueId {
        let node = self.node(symbols::PRIM_GET_ATTR, &[object], &[]);
        self.graph.set_attribute_symbol(node, symbols::ATTR_NAME, name);
        let value = self.graph.add_output(node, ty);
        let text = self.graph.ctx().name(name);
        // A number alone would not be a name.
        let is_number = text.bytes().all(|b| b.is_ascii_digit());
        let called = if is_number { format!("_{text}") } else { text.to_owned() };
        self.graph.name_value(value, &called);
        value
    }
}

impl Deref for Builder<'_> {
    type Target = Graph;

    fn deref(&self) -> &Graph {
        self.graph
    }
}

impl DerefMut for Builder<'_> {
    fn deref_mut(&mut self) -> &mut Graph {
        self.graph
    }
}
