//! Attributes of nodes: the part in brackets, as in `prim::Constant[value=1]()`.

use crate::{Constant, Graph, SymbolId, TypeId};
use std::sync::Arc;

/// A named attribute.
#[derive(Clone, Debug)]
pub struct Attribute {
    /// The name of the attribute.
    pub name: SymbolId,
    /// The value of the attribute.
    pub value: AttributeValue,
}

/// The value of an attribute. PyTorch distinguishes attributes of type int, ints, float and so on; here, all of these are constants.
#[derive(Clone, Debug)]
pub enum AttributeValue {
    /// A constant.
    Constant(Constant),
    /// A type.
    Type(TypeId),
    /// A list of types.
    Types(Vec<TypeId>),
    /// A graph, such as the body of a `prim::fork`.
    Graph(Arc<Graph>),
    /// A list of graphs.
    Graphs(Vec<Arc<Graph>>),
    /// A value that is missing in a text (`<Tensor>`, an elided large constant), stored as the text that replaces it. It is printed unchanged; code that needs
    /// the value itself must refuse it.
    Elided(Arc<str>),
}

impl AttributeValue {
    /// Returns the constant, if the attribute is one.
    pub fn as_constant(&self) -> Option<&Constant> {
        match self {
            AttributeValue::Constant(c) => Some(c),
            _ => None,
        }
    }

    /// Returns the graph, if the attribute is one.
    pub fn as_graph(&self) -> Option<&Arc<Graph>> {
        match self {
            AttributeValue::Graph(g) => Some(g),
            _ => None,
        }
    }

    /// Returns true if both values are the same. Constants are compared by [`Constant::same`], types by id, and graphs and elided values by identity.
    pub fn same(&self, other: &AttributeValue) -> bool {
        match (self, other) {
            (AttributeValue::Constant(a), AttributeValue::Constant(b)) => a.same(b),
            (AttributeValue::Type(a), AttributeValue::Type(b)) => a == b,
            (AttributeValue::Types(a), AttributeValue::Types(b)) => a == b,
            (AttributeValue::Graph(a), AttributeValue::Graph(b)) => Arc::ptr_eq(a, b),
            (AttributeValue::Graphs(a), AttributeValue::Graphs(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(x, y)| Arc::ptr_eq(x, y))
            }
            // An unknown value is only the same as itself.
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
