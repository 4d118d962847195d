//! Attributes of nodes: what stands in brackets, as in `prim::Constant[value=1]()`.

use crate::{Constant, Graph, SymbolId, TypeId};
use std::sync::Arc;

/// A named attribute.
#[derive(Clone, Debug)]
pub struct Attribute {
    /// Its name.
    pub name: SymbolId,
    /// Its value.
    pub value: AttributeValue,
}

/// What an attribute holds. PyTorch has a kind for each of int, ints, float, ...; here they are all constants.
#[derive(Clone, Debug)]
pub enum AttributeValue {
    /// A constant.
    Constant(Constant),
    /// A type.
    Type(TypeId),
    /// Types.
    Types(Vec<TypeId>),
    /// A graph, such as the body of a `prim::fork`.
    Graph(Arc<Graph>),
    /// Graphs.
    Graphs(Vec<Arc<Graph>>),
    /// A value that a text only mentions (`<Tensor>`, an elided large constant), kept as it was written. It prints back the same; whoever
    /// needs the value itself must refuse.
    Elided(Arc<str>),
}

impl AttributeValue {
    /// The constant, if it is one.
    pub fn as_constant(&self) -> Option<&Constant> {
        match self {
            AttributeValue::Constant(c) => Some(c),
            _ => None,
        }
    }

    /// The graph, if it is one.
    pub fn as_graph(&self) -> Option<&Arc<Graph>> {
        match self {
            AttributeValue::Graph(g) => Some(g),
            _ => None,
        }
    }

    /// True when both are the same: constants as [`Constant::same`] has it, types by id, graphs and elided values by identity.
    pub fn same(&self, other: &AttributeValue) -> bool {
        match (self, other) {
            (AttributeValue::Constant(a), AttributeValue::Constant(b)) => a.same(b),
            (AttributeValue::Type(a), AttributeValue::Type(b)) => a == b,
            (AttributeValue::Types(a), AttributeValue::Types(b)) => a == b,
            (AttributeValue::Graph(a), AttributeValue::Graph(b)) => Arc::ptr_eq(a, b),
            (AttributeValue::Graphs(a), AttributeValue::Graphs(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(x, y)| Arc::ptr_eq(x, y))
            }
            // What is not known is the same as nothing but itself.
            (AttributeValue::Elided(a), AttributeValue::Elided(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl<T: Into<Constant>> From<T> for AttributeValue {
    fn from(c: T) -> AttributeValue {
        AttributeValue::Constant(c.into())
    }
}
