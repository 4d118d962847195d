//! Graphs as values of attributes: `foo::bar[body=graph<0>, cases=[graph<1>, graph<2>]]()`, followed by `with graph<0> = graph(...)`.

use super::graph::GraphParser;
use crate::diagnostics::{Parsed, Reported};
use frazil_ir::{AttributeValue, Diagnostic, Graph, NodeId, Span, SymbolId};
use std::sync::Arc;

/// An attribute that refers to graphs by number.
pub(super) struct GraphAttribute {
    node: NodeId,
    name: SymbolId,
    /// Whether the attribute is a list of graphs, which may have one element.
    is_list: bool,
    graphs: Vec<(u32, Option<Arc<Graph>>)>,
    span: Span,
}

impl GraphParser<'_, '_> {
    /// Reads the value of attribute `name` of `node` if it consists of graphs; otherwise does not advance.
    pub(super) fn graph_attribute(&mut self, node: NodeId, name: SymbolId) -> Parsed<bool> {
        let start = self.cur.pos;
        // An empty list is neither a list of values nor a list of types.
        let is_empty = self.cur.next_is(b"graphs[]");
        if is_empty {
            self.cur.pos += b"graphs[]".len();
        }
        let is_list = is_empty || self.cur.next_is(b"[graph<");
        let mut graphs = Vec::new();
        if is_list && !is_empty {
            self.cur.pos += 1;
        }
        while !is_empty && let Some(number) = self.graph_number()? {
            graphs.push((number, None));
            if !is_list || !self.cur.eat(b',') {
                break;
            }
            self.cur.skip_space();
        }
        if graphs.is_empty() && !is_empty {
            return Ok(false);
        }
        if is_list && !is_empty {
            self.cur.expect(b']', "behind the graphs")?;
        }
        self.graph_attributes.push(GraphAttribute {
            node,
            name,
            is_list,
            graphs,
            span: self.cur.span_from(start),
        });
        Ok(true)
    }

    /// Reads a reference to a graph: `graph<3>`.
    pub(super) fn graph_number(&mut self) -> Parsed<Option<u32>> {
        if !self.cur.next_is(b"graph<") {
            return Ok(None);
        }
        self.cur.pos += b"graph<".len();
        let number = self.cur.integer("a number")?;
        self.cur.expect(b'>', "behind the number")?;
        Ok(Some(u32::try_from(number).unwrap_or(u32::MAX)))
    }

    /// Returns indices for graph `number`: of the attribute that refers to it, and in the attribute's list.
    pub(super) fn graph_slot(&self, number: u32) -> Option<(usize, usize)> {
        let open = |(n, graph): &(u32, Option<_>)| *n == number && graph.is_none();
        let mut found = self.graph_attributes.iter().enumerate();
        found.find_map(|(i, attribute)| Some((i, attribute.graphs.iter().position(open)?)))
    }

    pub(super) fn fill_graph_slot(&mut self, (attribute, place): (usize, usize), graph: Arc<Graph>) {
        let graphs = self.graph_attributes.get_mut(attribute).map(|a| &mut a.graphs);
        if let Some((_, slot)) = graphs.and_then(|g| g.get_mut(place)) {
            *slot = Some(graph);
        }
    }

    /// Sets the graph attributes of the nodes; all graphs must have been read.
    pub(super) fn finish_graph_attributes(&mut self) -> Parsed<()> {
        for attribute in std::mem::take(&mut self.graph_attributes) {
            let mut graphs = Vec::with_capacity(attribute.graphs.len());
            for (number, graph) in attribute.graphs {
                graphs.push(graph.ok_or_else(|| self.missing_graph(number, attribute.span))?);
            }
            let value = match graphs.pop() {
                Some(only) if !attribute.is_list => AttributeValue::Graph(only),
                last => {
                    graphs.extend(last);
                    AttributeValue::Graphs(graphs)
                }
            };
            self.graph.set_attribute(attribute.node, attribute.name, value);
        }
        Ok(())
    }

    #[cold]
    fn missing_graph(&mut self, number: u32, span: Span) -> Reported {
        self.cur.sink.report(
            Diagnostic::error(
                "unknown-reference",
                format!("there is no graph<{number}>"),
                span,
                "refers to nothing",
            )
            .with_help(format!("it follows the graph, as `with graph<{number}> = graph(...)`")),
        )
    }
}
