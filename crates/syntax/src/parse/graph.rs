//! Reading of graphs.
//!
//! Line ends only matter as ends of comments. Keywords replace PyTorch's indentation: `block0(` begins a block of the preceding node, `->` ends one, `return`
//! ends the graph. After an error, reading continues with the next line.

use super::cursor::Cursor;
use super::inner::GraphAttribute;
use super::node::Output;
use super::scope::{NameMap, Scopes};
use super::value::Env;
use crate::diagnostics::{ParseError, Parsed, Reported};
use frazil_ir::nesting::{MAX_GRAPHS, MAX_NESTING, with_stack};
use frazil_ir::schema::Catalogue;
use frazil_ir::{
    AttributeValue, BlockId, Context, Diagnostic, Graph, NodeId, SourceRange, Span, SymbolId, TypeId, ValueId, symbols,
    types,
};
use std::sync::Arc;

/// Estimated bytes of text per node, for the initial capacity. Few texts have shorter nodes on average, and unused
/// capacity takes no memory.
const BYTES_OF_NODE: usize = 48;

/// Options for parsing a text.
#[derive(Clone, Copy, Debug, Default)]
pub struct ParseOptions<'c> {
    /// Schemas for checking operators, and for the types of outputs that the text does not state.
    pub catalogue: Option<&'c Catalogue>,
    /// Whether to run the verifier on the result and report its failures with their locations in the text.
    pub verify: bool,
    /// Whether nodes without a source range get their location in the text as source range, so that later errors can refer to it.
    pub places: bool,
    /// The name of the text in source locations; `<text>` by default.
    pub name: Option<&'c str>,
}

/// A parsed graph with information about its text.
#[derive(Clone, Debug)]
pub struct ParsedGraph {
    /// The graph.
    pub graph: Graph,
    /// Locations in the text of the graph's nodes and values.
    pub spans: SpanTable,
    /// Warnings about the text.
    pub warnings: Vec<Diagnostic>,
}

/// Locations of the nodes and values of a graph in the text from which it was read.
#[derive(Clone, Debug, Default)]
pub struct SpanTable {
    pub(super) nodes: Vec<Span>,
    pub(super) values: Vec<Span>,
}

impl SpanTable {
    /// Returns the location of the node's kind (or of the results, for a return node).
    pub fn node(&self, node: NodeId) -> Option<Span> {
        self.nodes.get(node.as_u32() as usize).copied().filter(|s| s.end > 0)
    }

    /// Returns the location of the value's definition.
    pub fn value(&self, value: ValueId) -> Option<Span> {
        self.values.get(value.as_u32() as usize).copied().filter(|s| s.end > 0)
    }

    pub(super) fn set(table: &mut Vec<Span>, index: u32, span: Span) {
        let index = index as usize;
        if table.len() <= index {
            table.resize(index + 1, Span::default());
        }
        if let Some(slot) = table.get_mut(index) {
            *slot = span;
        }
    }

    /// Returns a failure of the verifier, or of a pass, as a diagnostic with its location.
    pub fn locate(&self, failure: &frazil_ir::verify::Failure) -> Diagnostic {
        let span = self.node(failure.node).unwrap_or_default();
        // The lines after the first list the valid alternatives.
        match failure.message.split_once('\n') {
            None => Diagnostic::error("invalid-graph", failure.message.clone(), span, "this node"),
            Some((message, list)) => {
                let list: Vec<_> = list.lines().map(str::trim).collect();
                let message = message.trim_end_matches([':', ' ']);
                Diagnostic::error("invalid-graph", message, span, "this node").with_help(list.join("\n"))
            }
        }
    }
}

/// Reads a graph in PyTorch's textual form.
///
/// # Errors
/// All errors in the text, with their locations.
pub fn parse_graph(ctx: &Arc<Context>, text: &str) -> Result<ParsedGraph, ParseError> {
    parse_graph_with(ctx, text, ParseOptions::default())
}

/// Reads a graph with options.
///
/// # Errors
/// All errors in the text, with their locations.
pub fn parse_graph_with(ctx: &Arc<Context>, text: &str, options: ParseOptions<'_>) -> Result<ParsedGraph, ParseError> {
    let mut cur = Cursor::new(text);
    let env = Env::default();
    let mut parser = GraphParser::new(&mut cur, ctx, &env, options);
    parser.reserve(text.len() / BYTES_OF_NODE);
    let parsed = parser.graph(0);
    if parsed.is_ok() {
        cur.skip_space();
        if !cur.at_end() && !cur.sink.has_errors() {
            end_of_text(&mut cur);
        }
    }
    let warnings = cur.sink.finish()?;
    match parsed {
        Ok((graph, spans)) => Ok(ParsedGraph { graph, spans, warnings }),
        // Unreachable: a graph that could not be read has left an error.
        Err(Reported) => Err(ParseError { diagnostics: warnings }),
    }
}

/// Reports an error for text after a graph.
fn end_of_text(cur: &mut Cursor<'_>) {
    let start = cur.pos;
    if cur.eat_word("with") {
        let span = cur.span_from(start);
        cur.sink.report(
            Diagnostic::error(
                "unknown-subgraph",
                "no node of the graph asks for this part",
                span,
                "a part of its own",
            )
            .with_help("`with prim::fork_0 = graph(...)` is the graph of the node `prim::fork_0(...)`"),
        );
    } else {
        cur.unexpected("the end of the text");
    }
}

/// Parser of one graph and the graphs in attributes of its nodes.
pub(crate) struct GraphParser<'p, 'a> {
    pub(super) cur: &'p mut Cursor<'a>,
    pub(super) ctx: &'p Arc<Context>,
    pub(super) env: &'p Env,
    pub(super) options: ParseOptions<'p>,
    pub(super) graph: Graph,
    pub(super) scopes: Scopes,
    pub(super) spans: SpanTable,
    /// Cache of interned names: kinds, attribute names and words of values' names.
    pub(super) symbols: NameMap<'a, SymbolId>,
    /// The file of the last parsed source range.
    pub(super) file: (&'a str, SymbolId),
    /// The last parsed source range, which adjacent nodes often share.
    pub(super) last_range: (&'a str, Option<SourceRange>),
    /// Nodes whose kind ends in `_N`, which may refer to a graph that follows the graph being parsed.
    pub(super) candidates: Vec<(&'a str, NodeId)>,
    /// Undefined names that have already been reported.
    pub(super) names: Vec<&'a str>,
    /// Cache of parsed types of values, keyed by their text.
    pub(super) types: NameMap<'a, TypeId>,
    /// The operands of the current node.
    pub(super) operands: Vec<ValueId>,
    /// Attributes that refer to graphs after this one.
    pub(super) graph_attributes: Vec<GraphAttribute>,
}

/// An open block.
struct Frame {
    block: BlockId,
    /// The last node of the block, which owns a following `block0(...)`.
    last: Option<NodeId>,
    /// Whether the block is in braces, as in graphs of old versions of PyTorch.
    in_braces: bool,
}

impl<'p, 'a> GraphParser<'p, 'a> {
    pub(crate) fn new(
        cur: &'p mut Cursor<'a>,
        ctx: &'p Arc<Context>,
        env: &'p Env,
        options: ParseOptions<'p>,
    ) -> GraphParser<'p, 'a> {
        GraphParser {
            cur,
            ctx,
            env,
            options,
            graph: Graph::new(ctx.clone()),
            scopes: Scopes::default(),
            spans: SpanTable::default(),
            symbols: NameMap::default(),
            file: ("", symbols::EMPTY),
            last_range: ("", None),
            candidates: Vec::new(),
            names: Vec::new(),
            types: NameMap::default(),
            operands: Vec::new(),
            graph_attributes: Vec::new(),
        }
    }

    /// Reserves capacity for a graph of `nodes` nodes.
    fn reserve(&mut self, nodes: usize) {
        self.graph = Graph::with_capacity(self.ctx.clone(), nodes);
        self.spans.nodes.reserve(nodes);
        self.spans.values.reserve(nodes);
    }

    /// Reads `graph(...): ... return (...)` and the `with` parts after it.
    pub(crate) fn graph(mut self, depth: usize) -> Parsed<(Graph, SpanTable)> {
        self.cur.skip_space();
        if self.cur.at_end() {
            return Err(self.cur.unexpected("`graph(`"));
        }
        // PyTorch accepts any name here.
        let start = self.cur.pos;
        if self.cur.word().is_empty() {
            self.cur.pos = start;
            return Err(self.cur.unexpected("`graph(`"));
        }
        let root = self.graph.root();
        let in_braces = self.parameters(root)?;
        self.body(root, in_braces)?;
        self.subgraphs(depth)?;
        self.place_nodes();
        if self.options.verify && !self.cur.sink.has_errors() {
            self.verify();
        }
        Ok((self.graph, self.spans))
    }

    /// Reads parameters: `(%a : T, %b : U):`, or `{` in place of the colon. Returns whether it is a brace.
    fn parameters(&mut self, block: BlockId) -> Parsed<bool> {
        self.cur.expect(b'(', "before the parameters")?;
        if !self.cur.eat(b')') {
            let first_span = self.cur.pos;
            loop {
                let output = Output {
                    name: self.value_name()?,
                    ty: self.annotation()?,
                };
                let value = self.graph.add_parameter(block, output.ty.unwrap_or(types::TENSOR));
                let defined = self.define(&output, value);
                if let Some(before) = defined.filter(|b| b.start as usize >= first_span) {
                    self.twice(&output, before);
                }
                if !self.cur.eat(b',') {
                    break;
                }
            }
            self.cur.expect(b')', "behind the parameters")?;
        }
        if self.cur.eat(b'{') {
            return Ok(true);
        }
        self.cur.expect(b':', "behind the parameters").map(|()| false)
    }

    /// Reads the end of a block or graph in braces.
    fn closing_brace(&mut self, in_braces: bool) -> Parsed<()> {
        match in_braces {
            true => self
                .cur
                .expect(b'}', "behind the results, where the block begins with `{`"),
            false => Ok(()),
        }
    }

    /// Reads the statements of the graph, including `return`.
    fn body(&mut self, root: BlockId, in_braces: bool) -> Parsed<()> {
        let mut frames = vec![Frame {
            block: root,
            last: None,
            in_braces,
        }];
        loop {
            self.cur.skip_space();
            if self.cur.sink.is_full() {
                return Err(Reported);
            }
            let Some(frame) = frames.last_mut() else {
                return Ok(());
            };
            let start = self.cur.pos;
            match self.cur.peek() {
                b'%' | b'=' => {
                    let block = frame.block;
                    frame.last = self.statement(block);
                    continue;
                }
                b'-' if self.cur.peek_at(1) == b'>' => {
                    self.cur.pos += 2;
                    let (block, in_braces) = (frame.block, frame.in_braces);
                    if frames.len() == 1 {
                        let span = self.cur.span_from(start);
                        let diagnostic =
                            Diagnostic::error("unexpected-token", "`->` ends a block, but none is open", span, "here");
                        self.cur
                            .sink
                            .report(diagnostic.with_help("a graph ends with `return (...)`"));
                        self.cur.skip_line();
                        continue;
                    }
                    let ended = self.results(block, start).and_then(|()| self.closing_brace(in_braces));
                    if ended.is_err() {
                        self.cur.skip_line();
                    }
                    frames.pop();
                    self.scopes.leave();
                    continue;
                }
                0 if self.cur.at_end() => return Err(self.missing_return(frames.len())),
                _ => {}
            }
            let word = self.cur.word();
            let next = self.cur.peek();
            self.cur.pos = start;
            if word == "return" {
                self.cur.pos += word.len();
                if frames.len() > 1 {
                    self.unended_block(start);
                }
                let root = frames.first().map_or(root, |f| f.block);
                self.results(root, start)?;
                if in_braces {
                    self.cur.eat(b';');
                }
                return self.closing_brace(in_braces);
            }
            if !word.is_empty() && next == b'(' {
                let owner = frame.last;
                let (block, in_braces) = self.block(owner, frames.len())?;
                frames.push(Frame {
                    block,
                    last: None,
                    in_braces,
                });
                continue;
            }
            if !word.is_empty() && next == b':' || self.cur.peek() == b'^' {
                let block = frame.block;
                frame.last = self.statement(block);
                continue;
            }
            self.cur.unexpected("a node, `->` or `return`");
            // Skips at least one line, so that reading always advances.
            self.cur.skip_line();
        }
    }

    #[cold]
    fn missing_return(&mut self, open: usize) -> Reported {
        let here = self.cur.here();
        let (message, help) = if open > 1 {
            (
                "the text ends inside a block",
                "a block ends with `-> (...)`, a graph with `return (...)`",
            )
        } else {
            (
                "the graph has no `return`",
                "a graph ends with `return (%a, %b)`, or `return ()`",
            )
        };
        self.cur
            .sink
            .report(Diagnostic::error("missing-return", message, here, "the text ends here").with_help(help))
    }

    #[cold]
    fn unended_block(&mut self, start: usize) {
        let span = self.cur.span_from(start);
        self.cur.sink.report(
            Diagnostic::error(
                "missing-return",
                "a block has no results",
                span,
                "the graph ends while a block is open",
            )
            .with_help("a block ends with `-> (%a)`, or `-> ()`"),
        );
        while self.scopes.depth() > 1 {
            self.scopes.leave();
        }
    }

    /// Reads the results after `->` or `return`: `(%a, %b)`.
    fn results(&mut self, block: BlockId, start: usize) -> Parsed<()> {
        let node = self.graph.return_node(block);
        SpanTable::set(&mut self.spans.nodes, node.as_u32(), Span::new(start, self.cur.pos));
        self.cur.expect(b'(', "before the results")?;
        self.operands(node)
    }

    /// Reads `block0(%i : int):`, the header of a block of `owner`. `depth` blocks are open, including that of the graph.
    fn block(&mut self, owner: Option<NodeId>, depth: usize) -> Parsed<(BlockId, bool)> {
        let start = self.cur.pos;
        self.cur.word();
        let span = self.cur.span_from(start);
        let owner = owner.unwrap_or_else(|| {
            self.cur.sink.report(
                Diagnostic::error("stray-block", "this block belongs to no node", span, "a block")
                    .with_help("blocks follow the node that they belong to"),
            );
            self.graph.create_node(symbols::EMPTY)
        });
        if depth >= MAX_NESTING {
            return Err(self.cur.sink.error(
                "nesting-too-deep",
                format!("blocks nest at most {MAX_NESTING} deep"),
                span,
                "one level too deep",
            ));
        }
        let block = self.graph.add_block(owner);
        self.scopes.enter();
        let in_braces = self.parameters(block).unwrap_or_else(|Reported| {
            self.cur.skip_line();
            false
        });
        Ok((block, in_braces))
    }

    /// Parses the graphs after this one, `with prim::fork_0 = graph(...)` or `with graph<1> = graph(...)`, up to the first that no node of this graph refers
    /// to.
    fn subgraphs(&mut self, depth: usize) -> Parsed<()> {
        loop {
            self.cur.skip_space();
            let start = self.cur.pos;
            if !self.cur.eat_word("with") {
                return self.finish_graph_attributes();
            }
            self.cur.skip_space();
            if let Some(number) = self.graph_number()? {
                let Some(slot) = self.graph_slot(number) else {
                    self.cur.pos = start;
                    return self.finish_graph_attributes();
                };
                let graph = self.subgraph(start, depth)?;
                self.fill_graph_slot(slot, graph);
                continue;
            }
            let name = self.kind()?;
            let Some(index) = self.candidates.iter().position(|(kind, _)| *kind == name) else {
                // It belongs to the enclosing graph.
                self.cur.pos = start;
                return self.finish_graph_attributes();
            };
            let (_, node) = self.candidates.remove(index);
            let subgraph = self.subgraph(start, depth)?;
            let kind = name.rsplit_once('_').map_or(name, |(kind, _)| kind);
            let kind = self.symbol(kind);
            self.graph.set_kind(node, kind);
            self.graph
                .set_attribute(node, symbols::ATTR_SUBGRAPH, AttributeValue::Graph(subgraph));
        }
    }

    /// Reads `= graph(...)` after a name that began at `start`.
    fn subgraph(&mut self, start: usize, depth: usize) -> Parsed<Arc<Graph>> {
        let span = self.cur.span_from(start);
        self.cur.expect(b'=', "behind the name")?;
        if depth + 1 >= MAX_GRAPHS {
            return Err(self.cur.sink.error(
                "nesting-too-deep",
                format!("graphs nest at most {MAX_GRAPHS} deep"),
                span,
                "one level too deep",
            ));
        }
        let options = ParseOptions {
            verify: false,
            ..self.options
        };
        let inner = GraphParser::new(self.cur, self.ctx, self.env, options);
        with_stack(|| Ok(Arc::new(inner.graph(depth + 1)?.0)))
    }

    /// Gives each node without a source range its location in the text as source range, if the options require it.
    fn place_nodes(&mut self) {
        if !self.options.places {
            return;
        }
        let file = self.options.name.map_or(symbols::OF_TEXT, |name| self.ctx.symbol(name));
        // Most nodes are in the order of the text, so lines are counted from one to the next.
        let (mut at, mut line, mut line_start) = (0, 1, 0);
        for node in self.graph.all_nodes() {
            let Some(span) = self
                .spans
                .node(node)
                .filter(|_| self.graph.source_range(node).is_none())
            else {
                continue;
            };
            let start = span.start as usize;
            if start < at {
                (at, line, line_start) = (0, 1, 0);
            }
            let between = self.cur.slice(Span::new(at, start));
            line += between.bytes().filter(|b| *b == b'\n').count() as u32;
            line_start = between.rfind('\n').map_or(line_start, |i| at + i + 1);
            at = start;
            let column = self.cur.slice(Span::new(line_start, start)).chars().count() as u32;
            let range = SourceRange {
                file,
                line,
                column,
                length: SourceRange::IS_OF_TEXT,
            };
            self.graph.set_source_range(node, Some(range));
        }
    }

    /// Runs the verifier and reports its failures.
    fn verify(&mut self) {
        let Err(error) = self.graph.verify(self.options.catalogue) else {
            return;
        };
        for failure in &error.failures {
            let diagnostic = self.spans.locate(failure);
            self.cur.sink.report(diagnostic);
        }
    }
}
