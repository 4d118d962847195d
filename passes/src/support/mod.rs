//! Functions shared by several passes: operators, effects, constants in graphs, traversal.

pub(crate) mod calls;
pub mod constants;
pub mod effects;
pub mod fold;
pub mod operators;
pub mod outline;
pub mod outputs;
pub mod overloads;
pub mod rank;
pub mod refine;
pub mod retype;
pub mod rewrite;
pub mod scaled;
pub mod template;

use frazil_ir::{Attribute, AttributeValue, Graph, NodeId};
use std::sync::Arc;

/// Returns the graph and, at any depth, the graphs in attributes of its nodes (bodies of forks).
pub fn subgraphs_and_self(graph: &Graph) -> impl Iterator<Item = &Graph> {
    graph.self_and_subgraphs().into_iter()
}

/// Calls `edit` on a copy of every graph in an attribute of a node of `graph`. A changed copy replaces the graph in the attribute; other references keep the
/// old graph.
///
/// # Errors
/// The first error of `edit`.
pub fn for_each_subgraph<E>(graph: &mut Graph, mut edit: impl FnMut(&mut Graph) -> Result<(), E>) -> Result<(), E> {
    let is_holder = |a: &&Attribute| matches!(a.value, AttributeValue::Graph(_) | AttributeValue::Graphs(_));
    let holds_graphs = |n: &NodeId| graph.attributes(*n).iter().any(|a| is_holder(&a));
    let nodes: Vec<NodeId> = graph.walk(graph.root()).filter(holds_graphs).collect();
    for node in nodes {
        let holders: Vec<_> = graph.attributes(node).iter().filter(is_holder).cloned().collect();
        for attribute in holders {
            let mut changed = false;
            let mut edit_one = |inner: &mut Arc<Graph>| {
                let mut copy = (**inner).clone();
                edit(&mut copy)?;
                if copy.revision() != inner.revision() {
                    *inner = Arc::new(copy);
                    changed = true;
                }
                Ok(())
            };
            let value = match attribute.value {
                AttributeValue::Graph(mut inner) => {
                    edit_one(&mut inner)?;
                    AttributeValue::Graph(inner)
                }
                AttributeValue::Graphs(mut inner) => {
                    inner.iter_mut().try_for_each(&mut edit_one)?;
                    AttributeValue::Graphs(inner)
                }
                other => other,
            };
            if changed {
                graph.set_attribute(node, attribute.name, value);
            }
        }
    }
    Ok(())
}
