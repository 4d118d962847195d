//! Printing of graphs.

use super::value::{self, Plain, Style};
use frazil_ir::literal;
use frazil_ir::names::Names;
use frazil_ir::nesting::with_stack;
use frazil_ir::types::display_type;
use frazil_ir::{AttributeValue, BlockId, Constant, Graph, NodeId, TypeId, TypeKind, ValueId, symbols};
use rustc_hash::FxHashMap;
use std::fmt::Write;
use std::sync::Arc;

/// Options for printing a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrintOptions {
    /// Prints source ranges after nodes: `# model.py:10:5`.
    pub source_ranges: bool,
    /// Maximum number of elements of a printed tensor. Larger tensors are printed as `<Tensor>`, as in PyTorch.
    pub elide_constants_larger_than: Option<usize>,
}

impl Default for PrintOptions {
    fn default() -> PrintOptions {
        PrintOptions {
            source_ranges: true,
            elide_constants_larger_than: None,
        }
    }
}

/// Prints `graph` as PyTorch does, including the final line end.
///
/// ```
/// # use std::sync::Arc;
/// let ctx = Arc::new(frazil_ir::Context::new());
/// let text = "graph(%x : Tensor):\n  %1 : int = prim::Constant[value=1]()\n  %y : Tensor = aten::add(%x, %x, %1)\n  return (%y)\n";
/// let parsed = frazil_syntax::parse_graph(&ctx, text)?;
/// assert_eq!(frazil_syntax::print_graph(&parsed.graph), text);
/// # Ok::<(), frazil_syntax::ParseError>(())
/// ```
pub fn print_graph(graph: &Graph) -> String {
    print_graph_with(graph, PrintOptions::default())
}

/// Returns the text of `graph`, printed with `options`.
pub fn print_graph_with(graph: &Graph, options: PrintOptions) -> String {
    let mut out = String::with_capacity(graph.node_capacity() * 64);
    let style = Plain {
        elide: options.elide_constants_larger_than,
    };
    write_graph(graph, options, &style, &mut out);
    out
}

/// Maximum indentation in characters. Without it, the text of nested blocks would grow with the square of their depth.
pub(crate) const MAX_INDENT: usize = 256;

/// Appends the text of `graph`, then of the graphs in attributes of its nodes, recursively.
pub(crate) fn write_graph(graph: &Graph, options: PrintOptions, style: &dyn Style, out: &mut String) {
    let names = Names::new(graph);
    let mut printer = Printer {
        graph,
        names: &names,
        types: FxHashMap::default(),
        options,
        style,
        groups: Vec::new(),
        out,
    };
    printer.graph();
    let groups = printer.groups;
    for (i, (node, subgraph)) in groups.into_iter().enumerate() {
        let _ = match node {
            Some(node) => write!(out, "with {}_{i} = ", graph.kind_name(node)),
            None => write!(out, "with graph<{i}> = "),
        };
        with_stack(|| write_graph(&subgraph, options, style, out));
    }
}

/// Prints the values and nodes of one graph individually, as [`print_graph`] does.
pub struct GraphText<'g> {
    graph: &'g Graph,
    names: Names<'g>,
}

impl<'g> GraphText<'g> {
    /// Assigns names to the values of `graph`, for printing them.
    pub fn new(graph: &'g Graph) -> GraphText<'g> {
        GraphText {
            graph,
            names: Names::new(graph),
        }
    }

    /// Returns the name of a value: `%x.1`.
    pub fn value(&self, value: ValueId) -> String {
        self.names.show(value)
    }

    /// Returns the line of a node, without its blocks, indentation and line end.
    pub fn node(&self, node: NodeId) -> String {
        let mut out = String::new();
        let mut printer = Printer {
            graph: self.graph,
            names: &self.names,
            types: FxHashMap::default(),
            options: PrintOptions::default(),
            style: &Plain::default(),
            groups: Vec::new(),
            out: &mut out,
        };
        printer.node(node, 0);
        out.truncate(out.trim_end().len());
        out
    }
}

struct Printer<'a> {
    graph: &'a Graph,
    names: &'a Names<'a>,
    /// Cache of printed types. Graphs have few types, which occur often.
    types: FxHashMap<TypeId, String>,
    options: PrintOptions,
    style: &'a dyn Style,
    /// Graphs to be printed after the current graph: bodies of nodes, with the node, and graphs in other attributes.
    groups: Vec<(Option<NodeId>, Arc<Graph>)>,
    out: &'a mut String,
}

impl Printer<'_> {
    fn graph(&mut self) {
        self.out.push_str("graph(");
        self.typed(self.graph.inputs(), ",\n      ");
        self.out.push_str("):\n");
        self.nodes();
        self.out.push_str("  return (");
        self.references(self.graph.outputs());
        self.out.push_str(")\n");
    }

    /// Prints all nodes, without recursion, because nesting may be deep.
    fn nodes(&mut self) {
        enum Step {
            Nodes(Option<NodeId>),
            Block(BlockId, usize),
            Results(BlockId),
        }
        let g = self.graph;
        let mut level = 1;
        let mut stack = vec![Step::Nodes(g.first(g.root()))];
        while let Some(step) = stack.pop() {
            match step {
                Step::Nodes(None) => {}
                Step::Nodes(Some(node)) => {
                    stack.push(Step::Nodes(g.next(node)));
                    self.node(node, level);
                    for (i, &block) in g.node_blocks(node).iter().enumerate().rev() {
                        stack.push(Step::Block(block, i));
                    }
                }
                Step::Block(block, index) => {
                    self.indent(level + 1);
                    let _ = write!(self.out, "block{index}(");
                    self.typed(g.parameters(block), ", ");
                    self.out.push_str("):\n");
                    level += 2;
                    stack.push(Step::Results(block));
                    stack.push(Step::Nodes(g.first(block)));
                }
                Step::Results(block) => {
                    self.indent(level);
                    self.out.push_str("-> (");
                    self.references(g.results(block));
                    self.out.push_str(")\n");
                    level -= 2;
                }
            }
        }
    }

    fn indent(&mut self, level: usize) {
        for _ in 0..level.min(MAX_INDENT) {
            self.out.push_str("  ");
        }
    }

    fn typed(&mut self, values: &[ValueId], separator: &str) {
        for (i, &v) in values.iter().enumerate() {
            self.out.push_str(if i > 0 { separator } else { "" });
            self.names.push(v, self.out);
            self.out.push_str(" : ");
            let (ctx, style) = (self.graph.ctx(), self.style.types());
            let ty = self.graph.ty(v);
            let text = self
                .types
                .entry(ty)
                .or_insert_with(|| display_type(ctx, ty, style).to_string());
            self.out.push_str(text);
        }
    }

    fn references(&mut self, values: impl Iterator<Item = ValueId>) {
        for (i, v) in values.enumerate() {
            self.out.push_str(if i > 0 { ", " } else { "" });
            self.names.push(v, self.out);
        }
    }

    fn node(&mut self, node: NodeId, level: usize) {
        let g = self.graph;
        self.indent(level);
        self.typed(g.node_outputs(node), ", ");
        self.out.push_str(" = ");
        self.out.push_str(g.kind_name(node));
        let subgraph = g
            .attribute(node, symbols::ATTR_SUBGRAPH)
            .and_then(AttributeValue::as_graph);
        if let Some(subgraph) = subgraph {
            let _ = write!(self.out, "_{}", self.groups.len());
            self.groups.push((Some(node), subgraph.clone()));
        }
        self.attributes(node, subgraph.is_some());
        self.out.push('(');
        self.references(g.operands(node));
        self.out.push(')');
        if let Some(scope) = g.scope(node) {
            self.out.push_str(", scope: ");
            self.out.push_str(g.ctx().name(scope));
        }
        if self.options.source_ranges {
            self.range(node);
        }
        self.out.push('\n');
    }

    fn attributes(&mut self, node: NodeId, without_subgraph: bool) {
        let g = self.graph;
        let mut open = '[';
        for attribute in g.attributes(node) {
            if without_subgraph && attribute.name == symbols::ATTR_SUBGRAPH {
                continue;
            }
            self.out.push(open);
            if open == ',' {
                self.out.push(' ');
            }
            open = ',';
            self.out.push_str(g.ctx().name(attribute.name));
            self.out.push('=');
            let is_value = g.kind(node) == symbols::PRIM_CONSTANT && attribute.name == symbols::ATTR_VALUE;
            let wanted = g.output(node).filter(|_| is_value).map(|v| g.ty(v));
            // For example, a NamedTuple that is only annotated by its type is read back by the output's type.
            let wanted = wanted.filter(|ty| match &attribute.value {
                AttributeValue::Constant(Constant::Tensor(_)) => false,
                _ => !matches!(g.ctx().type_kind(*ty), TypeKind::Any),
            });
            match &attribute.value {
                AttributeValue::Graph(graph) if self.style.is_exact() => self.inner_graph(graph),
                AttributeValue::Graphs(graphs) if self.style.is_exact() => self.inner_graphs(graphs),
                value => value::attribute(g.ctx(), value, self.style, wanted, self.out),
            }
        }
        if open == ',' {
            self.out.push(']');
        }
    }

    /// Prints a reference to a graph in an attribute, which is printed after the current graph. PyTorch prints `<Graph>`.
    fn inner_graph(&mut self, graph: &Arc<Graph>) {
        let _ = write!(self.out, "graph<{}>", self.groups.len());
        self.groups.push((None, graph.clone()));
    }

    fn inner_graphs(&mut self, graphs: &[Arc<Graph>]) {
        self.out.push_str(if graphs.is_empty() { "graphs[" } else { "[" });
        for (i, graph) in graphs.iter().enumerate() {
            self.out.push_str(if i > 0 { ", " } else { "" });
            self.inner_graph(graph);
        }
        self.out.push(']');
    }

    fn range(&mut self, node: NodeId) {
        let g = self.graph;
        let Some(range) = g.source_range(node).filter(|r| !r.is_of_text()) else {
            return;
        };
        self.out.push_str(" # ");
        self.out.push_str(g.ctx().name(range.file));
        self.out.push(':');
        literal::integer(range.line.into(), self.out);
        self.out.push(':');
        literal::integer(range.column.into(), self.out);
    }
}
