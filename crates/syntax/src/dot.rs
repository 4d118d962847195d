//! Graphs in Graphviz's DOT language.
//!
//! A node is a box with its kind and attributes, a value an edge from its definition to its use, a block a cluster inside the box of its
//! node. Names, strings and kinds come from the input, so everything is quoted.

use crate::print::graph::MAX_INDENT;
use crate::print::value::{self, Plain};
use frazil_ir::names::Names;
use frazil_ir::types::{TypeStyle, display_type};
use frazil_ir::{AttributeValue, BlockId, Definition, Graph, NodeId, TypeId, ValueId};
use std::collections::HashMap;
use std::fmt::Write;

/// Maximum length of an attribute's value in a box, in characters.
const MAX_VALUE: usize = 40;

/// Prints graphs as one DOT file. Each named graph is a cluster, and so is each graph in an attribute of a node.
///
/// ```
/// # use std::sync::Arc;
/// let text = "graph(%x : Tensor):\n  %y : Tensor = aten::relu(%x)\n  return (%y)\n";
/// let parsed = frazil_syntax::parse_graph(&Arc::new(frazil_ir::Context::new()), text)?;
/// let dot = frazil_syntax::print_dot([("forward", &parsed.graph)]);
/// assert!(dot.contains(r#"label="aten::relu""#));
/// # Ok::<(), frazil_syntax::ParseError>(())
/// ```
pub fn print_dot<'g>(graphs: impl IntoIterator<Item = (&'g str, &'g Graph)>) -> String {
    let mut out =
        String::from("digraph {\n  node [shape=box, fontname=\"monospace\"];\n  edge [fontname=\"monospace\"];\n");
    let mut number = 0;
    for (name, graph) in graphs {
        let mut waiting = vec![(name.to_owned(), graph)];
        while let Some((name, graph)) = waiting.pop() {
            let mut picture = Picture::new(graph, number, &mut out);
            picture.graph(&name);
            let inner = picture.inner;
            waiting.extend(
                inner
                    .into_iter()
                    .rev()
                    .map(|(kind, graph)| (format!("{name} {kind}"), graph)),
            );
            number += 1;
        }
    }
    out.push_str("}\n");
    out
}

struct Picture<'g, 'o> {
    graph: &'g Graph,
    names: Names<'g>,
    /// Number of the graph, which makes the ids of its boxes unique.
    number: usize,
    types: HashMap<TypeId, String>,
    /// Graphs in attributes of nodes, with their names.
    inner: Vec<(String, &'g Graph)>,
    level: usize,
    out: &'o mut String,
}

impl<'g, 'o> Picture<'g, 'o> {
    fn new(graph: &'g Graph, number: usize, out: &'o mut String) -> Picture<'g, 'o> {
        Picture {
            graph,
            names: Names::new(graph),
            number,
            types: HashMap::new(),
            inner: Vec::new(),
            level: 1,
            out,
        }
    }

    fn graph(&mut self, name: &str) {
        enum Step {
            Nodes(Option<NodeId>),
            Block(BlockId, usize),
            Close(BlockId),
            CloseNode,
        }
        let g = self.graph;
        self.open(&format!("cluster_g{}", self.number), name);
        self.block_start(g.root());
        // Not recursive: nesting may be deep.
        let mut stack = vec![Step::Close(g.root()), Step::Nodes(g.first(g.root()))];
        while let Some(step) = stack.pop() {
            match step {
                Step::Nodes(None) => {}
                Step::Nodes(Some(node)) => {
                    stack.push(Step::Nodes(g.next(node)));
                    let blocks = g.node_blocks(node);
                    if !blocks.is_empty() {
                        self.open(
                            &format!("cluster_g{}n{}", self.number, node.as_u32()),
                            g.kind_name(node),
                        );
                        stack.push(Step::CloseNode);
                    }
                    self.node(node);
                    stack.extend(blocks.iter().enumerate().rev().map(|(i, b)| Step::Block(*b, i)));
                }
                Step::Block(block, index) => {
                    self.open(
                        &format!("cluster_g{}b{}", self.number, block.as_u32()),
                        &format!("block{index}"),
                    );
                    self.block_start(block);
                    stack.push(Step::Close(block));
                    stack.push(Step::Nodes(g.first(block)));
                }
                Step::Close(block) => {
                    self.block_end(block);
                    self.close();
                }
                Step::CloseNode => self.close(),
            }
        }
    }

    fn line(&mut self, text: &str) {
        let indent = 2 * self.level.min(MAX_INDENT);
        let _ = writeln!(self.out, "{:indent$}{text}", "");
    }

    fn open(&mut self, id: &str, label: &str) {
        self.line(&format!("subgraph {id} {{"));
        self.level += 1;
        self.line(&format!("label={};", quoted(label)));
    }

    fn close(&mut self) {
        self.level -= 1;
        self.line("}");
    }

    /// Prints the block's parameters as a separate box.
    fn block_start(&mut self, block: BlockId) {
        let parameters = self.graph.parameters(block);
        if parameters.is_empty() {
            return;
        }
        let shown: Vec<_> = parameters.iter().map(|v| self.typed(*v)).collect();
        let id = self.parameters_id(block);
        self.line(&format!("{id} [label={}, shape=ellipse];", quoted(&shown.join("\n"))));
    }

    fn block_end(&mut self, block: BlockId) {
        let node = self.graph.return_node(block);
        let id = self.node_id(node);
        self.line(&format!("{id} [label=\"return\", shape=ellipse];"));
        self.operands(node);
    }

    fn node(&mut self, node: NodeId) {
        let g = self.graph;
        let mut label = g.kind_name(node).to_owned();
        for attribute in g.attributes(node) {
            let mut text = String::new();
            value::attribute(g.ctx(), &attribute.value, &Plain::default(), None, &mut text);
            if text.chars().count() > MAX_VALUE {
                text = text.chars().take(MAX_VALUE).chain("...".chars()).collect();
            }
            let _ = write!(label, "\n{}={text}", g.ctx().name(attribute.name));
            let graphs = match &attribute.value {
                AttributeValue::Graph(graph) => std::slice::from_ref(graph),
                AttributeValue::Graphs(graphs) => graphs,
                _ => &[],
            };
            let kind = g.kind_name(node);
            self.inner
                .extend(graphs.iter().map(|graph| (kind.to_owned(), &**graph)));
        }
        let id = self.node_id(node);
        self.line(&format!("{id} [label={}];", quoted(&label)));
        self.operands(node);
    }

    fn operands(&mut self, node: NodeId) {
        let to = self.node_id(node);
        for v in self.graph.operands(node) {
            let from = match self.graph.definition(v) {
                Definition::Output(node, _) => self.node_id(node),
                Definition::Parameter(block, _) => self.parameters_id(block),
            };
            let label = quoted(&self.typed(v));
            self.line(&format!("{from} -> {to} [label={label}];"));
        }
    }

    fn node_id(&self, node: NodeId) -> String {
        format!("g{}n{}", self.number, node.as_u32())
    }

    fn parameters_id(&self, block: BlockId) -> String {
        format!("g{}p{}", self.number, block.as_u32())
    }

    /// Returns the text of a value with its type: `%x : Tensor`.
    fn typed(&mut self, v: ValueId) -> String {
        let mut text = String::new();
        self.names.push(v, &mut text);
        let (ctx, ty) = (self.graph.ctx(), self.graph.ty(v));
        let shown = self
            .types
            .entry(ty)
            .or_insert_with(|| display_type(ctx, ty, TypeStyle::Ir).to_string());
        text + " : " + shown
    }
}

/// Returns a quoted DOT string. Line ends become centred lines. All other control characters are removed, because Graphviz does not draw them.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
