//! Parsing of nodes: outputs, kind, attributes, operands, and the rest of the line.

use super::graph::{GraphParser, SpanTable};
use super::suggest::nearest;
use super::types::parse_type;
use super::value::parse_attribute;
use crate::diagnostics::{Parsed, Reported};
use frazil_ir::schema::Catalogue;
use frazil_ir::{
    AttributeValue, BlockId, Diagnostic, NodeId, Severity, SourceRange, Span, SymbolId, TypeId, ValueId, ValueName,
    symbols, types,
};
use smallvec::SmallVec;

/// An output of a statement, parsed before the node is created.
pub(super) struct Output {
    pub(super) name: Name,
    pub(super) ty: Option<TypeId>,
}

/// A parsed name of a value.
#[derive(Clone, Copy)]
pub(super) struct Name {
    pub(super) id: ValueName,
    /// The location of the name in the text, with its `%`.
    pub(super) span: Span,
}

pub(super) type Outputs = SmallVec<[Output; 2]>;

/// Maximum length in bytes of a type's text in the cache; longer ones are parsed each time.
const MAX_KNOWN_TYPE: usize = 256;

impl<'a> GraphParser<'_, 'a> {
    /// Reads a node. `None` if the text is no node; the rest of the line is then skipped.
    pub(super) fn statement(&mut self, block: BlockId) -> Option<NodeId> {
        let mut outputs = Outputs::new();
        let mut read = self.outputs(&mut outputs);
        let mut node = None;
        if read.is_ok() {
            read = self.node(block, &outputs, &mut node);
        }
        if read.is_err() {
            self.cur.skip_line();
        }
        let had_node = node.is_some();
        // After any error, the names are defined from here on, and following blocks have an owner.
        let node = node.unwrap_or_else(|| {
            let node = self.graph.create_node(symbols::EMPTY);
            self.graph.append(block, node);
            node
        });
        if !had_node || read.is_err() {
            for output in outputs.iter().skip(self.graph.node_outputs(node).len()) {
                let value = self.graph.add_output(node, output.ty.unwrap_or(types::TENSOR));
                self.define(output, value);
            }
        }
        Some(node)
    }

    /// Reads outputs: `%a : T, %b =`; nothing, or a lone `=`, for a node without outputs.
    fn outputs(&mut self, outputs: &mut Outputs) -> Parsed<()> {
        if self.cur.peek() == b'=' {
            self.cur.pos += 1;
            return Ok(());
        }
        if self.cur.peek() != b'%' {
            return Ok(());
        }
        loop {
            let name = self.value_name()?;
            // Recorded before its type is read: with an invalid type it is still a value.
            outputs.push(Output { name, ty: None });
            let ty = self.annotation()?;
            if let Some(output) = outputs.last_mut() {
                output.ty = ty;
            }
            if !self.cur.eat(b',') {
                break;
            }
        }
        self.cur.expect(b'=', "behind the outputs")
    }

    /// Reads `: Type`, if the next token is a colon.
    pub(super) fn annotation(&mut self) -> Parsed<Option<TypeId>> {
        self.cur.skip_space();
        if self.cur.peek() != b':' {
            return Ok(None);
        }
        self.cur.pos += 1;
        self.cur.skip_blanks();
        let known = self.cur.type_text(MAX_KNOWN_TYPE);
        if let Some(&ty) = self.types.get(known) {
            self.cur.pos += known.len();
            return Ok(Some(ty));
        }
        let end = self.cur.pos + known.len();
        let ty = parse_type(self.cur, self.ctx, &self.env.nominal)?;
        if self.cur.pos == end {
            self.types.insert(known, ty);
        }
        Ok(Some(ty))
    }

    /// Reads `%name`. The function is inlined because it is called for every operand, so that its results stay in registers.
    #[inline(always)]
    pub(super) fn value_name(&mut self) -> Parsed<Name> {
        self.cur.skip_space();
        let start = self.cur.pos;
        if self.cur.peek() != b'%' {
            return Err(self.cur.unexpected("a value (`%name`)"));
        }
        self.cur.pos += 1;
        let id = match self.cur.small_number() {
            Some(number) => ValueName::of_parts(symbols::EMPTY, Some(number)),
            None => self.word_name()?,
        };
        Ok(Name {
            id,
            span: self.cur.span_from(start),
        })
    }

    /// Reads a value's name that is not only a number.
    #[inline(never)]
    fn word_name(&mut self) -> Parsed<ValueName> {
        let text = self.cur.name();
        if text.is_empty() {
            return Err(self.cur.unexpected("a value's name behind `%`"));
        }
        let (word, number) = ValueName::split(text);
        Ok(ValueName::of_parts(self.symbol(word), number))
    }

    /// Names `value`. Returns the location of a previous definition of the same name, which is then hidden.
    pub(super) fn define(&mut self, output: &Output, value: ValueId) -> Option<Span> {
        SpanTable::set(&mut self.spans.values, value.as_u32(), output.name.span);
        self.graph.set_value_name(value, output.name.id);
        let before = self.scopes.define(output.name.id, value)?;
        self.spans.value(before)
    }

    #[cold]
    pub(super) fn twice(&mut self, output: &Output, before: Span) {
        self.cur.sink.report(
            Diagnostic::error(
                "redefined-value",
                format!("`{}` stands for two values", self.cur.slice(output.name.span)),
                output.name.span,
                "the second one",
            )
            .with_label(before, "the first one"),
        );
    }

    /// Warns about a name that is already defined. The new definition replaces the old one, as in PyTorch's parser.
    #[cold]
    fn redefined(&mut self, output: &Output, before: Span) {
        let mut diagnostic = Diagnostic::error(
            "redefined-value",
            format!("`{}` is defined again", self.cur.slice(output.name.span)),
            output.name.span,
            "from here on it means this value",
        )
        .with_label(before, "defined before");
        diagnostic.severity = Severity::Warning;
        self.cur.sink.report(diagnostic);
    }

    pub(super) fn symbol(&mut self, name: &'a str) -> SymbolId {
        if let Some(&symbol) = self.symbols.get(name) {
            return symbol;
        }
        let symbol = self.ctx.symbol(name);
        self.symbols.insert(name, symbol);
        symbol
    }

    /// Reads `kind[attributes](operands), scope: s # file:1:2`.
    fn node(&mut self, block: BlockId, outputs: &Outputs, slot: &mut Option<NodeId>) -> Parsed<()> {
        self.cur.skip_space();
        let start = self.cur.pos;
        if self.cur.peek() == b'^' {
            self.cur.pos += 1;
            self.cur.name();
            let span = self.cur.span_from(start);
            return Err(self.cur.sink.report(
                Diagnostic::error(
                    "python-operator",
                    "a call into the Python interpreter cannot be represented",
                    span,
                    "a Python function",
                )
                .with_help("script the function, or register it as an operator"),
            ));
        }
        let kind = self.kind()?;
        let span = self.cur.span_from(start);
        let symbol = self.symbol(kind);
        let node = self.graph.create_node(symbol);
        self.graph.append(block, node);
        *slot = Some(node);
        SpanTable::set(&mut self.spans.nodes, node.as_u32(), span);
        if kind.as_bytes().last().is_some_and(u8::is_ascii_digit) && kind.contains('_') {
            self.candidates.push((kind, node));
        }
        if self.cur.peek() == b'[' {
            let wanted = match outputs.as_slice() {
                [one] if symbol == symbols::PRIM_CONSTANT => one.ty,
                _ => None,
            };
            self.attributes(node, wanted)?;
        }
        self.cur.expect(b'(', "before the operands")?;
        self.operands(node)?;
        self.trailer(node);
        self.add_outputs(node, outputs, span);
        Ok(())
    }

    /// Reads `namespace::name`.
    pub(super) fn kind(&mut self) -> Parsed<&'a str> {
        let start = self.cur.pos;
        if self.cur.name().is_empty() {
            return Err(self.cur.unexpected("an operator (`aten::relu`)"));
        }
        if !self.cur.next_is(b"::") {
            let span = self.cur.span_from(start);
            let name = self.cur.since(start);
            return Err(self.cur.sink.report(
                Diagnostic::error(
                    "unexpected-token",
                    format!("expected an operator, found `{name}`"),
                    span,
                    "has no namespace",
                )
                .with_help(format!("operators have a namespace: `aten::{name}`")),
            ));
        }
        while self.cur.next_is(b"::") {
            self.cur.pos += 2;
            if self.cur.name().is_empty() {
                return Err(self.cur.unexpected("the operator's name behind `::`"));
            }
        }
        Ok(self.cur.since(start))
    }

    /// Reads `[name=value, ...]`.
    fn attributes(&mut self, node: NodeId, wanted: Option<TypeId>) -> Parsed<()> {
        self.cur.pos += 1;
        if self.cur.eat(b']') {
            return Ok(());
        }
        loop {
            self.cur.skip_space();
            let start = self.cur.pos;
            let name = self.cur.expect_name("an attribute's name")?;
            let span = self.cur.span_from(start);
            self.cur.expect(b'=', "behind the attribute's name")?;
            let symbol = self.symbol(name);
            let wanted = wanted.filter(|_| symbol == symbols::ATTR_VALUE);
            let value = match self.graph_attribute(node, symbol)? {
                // The value follows behind the graph; the name is taken.
                true => AttributeValue::Graphs(Vec::new()),
                false => parse_attribute(self.cur, self.ctx, self.env, wanted)?,
            };
            if self.graph.attribute(node, symbol).is_some() {
                self.cur.sink.error(
                    "duplicate-attribute",
                    format!("the attribute `{name}` is given twice"),
                    span,
                    "the second time",
                );
            }
            self.graph.set_attribute(node, symbol, value);
            if !self.cur.eat(b',') {
                break;
            }
        }
        self.cur.expect(b']', "behind the attributes")
    }

    /// Reads operands of `node` up to `)`. Undefined names are reported and left out.
    pub(super) fn operands(&mut self, node: NodeId) -> Parsed<()> {
        if self.cur.eat(b')') {
            return Ok(());
        }
        self.operands.clear();
        loop {
            let name = self.value_name()?;
            match self.scopes.look_up(name.id) {
                Some(value) => self.operands.push(value),
                None => self.undefined(name)?,
            }
            if !self.cur.eat(b',') {
                break;
            }
        }
        self.cur.expect(b')', "behind the operands")?;
        self.graph.add_operands(node, &self.operands);
        Ok(())
    }

    #[cold]
    fn undefined(&mut self, name: Name) -> Parsed<()> {
        if self.cur.sink.is_full() {
            return Err(Reported);
        }
        let Name { id, span } = name;
        if let Some(before) = self.definition_of(id) {
            self.out_of_scope(span, before);
            return Ok(());
        }
        let text = self.cur.slice(span).trim_start_matches('%');
        if self.names.contains(&text) {
            return Ok(());
        }
        self.names.push(text);
        let mut diagnostic = Diagnostic::error(
            "undefined-value",
            format!("there is no value `%{text}`"),
            span,
            "nothing defines it before here",
        );
        let near = nearest(text, self.scopes.visible(self.ctx));
        if let Some(near) = near {
            diagnostic = diagnostic.with_help(format!("did you mean `%{near}`?"));
        }
        self.cur.sink.report(diagnostic);
        Ok(())
    }

    /// Returns the location of the last definition of a value of this name, in any block.
    fn definition_of(&self, name: ValueName) -> Option<Span> {
        let values = (0..self.graph.value_capacity() as u32).rev().map(ValueId::from_u32);
        let mut named = values.filter(|v| self.graph.value_name(*v) == Some(name));
        named.next().and_then(|v| self.spans.value(v))
    }

    #[cold]
    fn out_of_scope(&mut self, span: Span, before: Span) {
        self.cur.sink.report(
            Diagnostic::error(
                "out-of-scope-value",
                format!("`{}` belongs to a block that has ended", self.cur.slice(span)),
                span,
                "used outside of its block",
            )
            .with_label(before, "defined in the block")
            .with_help("make it a result of the block (`-> (...)`) and use the node's output"),
        );
    }

    /// Reads the rest of the node's line: tracing scope and source range.
    fn trailer(&mut self, node: NodeId) {
        self.cur.skip_blanks();
        if self.cur.next_is(b", scope: ") {
            self.cur.pos += ", scope: ".len();
            let start = self.cur.pos;
            self.cur.skip_line();
            let line = self.cur.since(start);
            let scope = line.find(" # ").map_or(line, |i| line.get(..i).unwrap_or(line));
            self.cur.pos = start + scope.len();
            let scope = self.ctx.symbol(scope.trim_end());
            self.graph.set_scope(node, scope);
            self.cur.skip_blanks();
        }
        if self.cur.peek() != b'#' {
            return;
        }
        self.cur.pos += 1;
        let start = self.cur.pos;
        self.cur.skip_line();
        let comment = self.cur.since(start);
        if comment != self.last_range.0 {
            let range = self.range(comment);
            self.last_range = (comment, range);
        }
        self.graph.set_source_range(node, self.last_range.1);
    }

    /// Reads a source range from a comment such as ` file.py:10:5`; `None` for any other comment.
    fn range(&mut self, comment: &'a str) -> Option<SourceRange> {
        let comment = comment.trim_ascii_end();
        let comment = comment.strip_prefix(' ').unwrap_or(comment);
        let (rest, column) = number_behind_colon(comment)?;
        let (file, line) = number_behind_colon(rest)?;
        if self.file.0 != file {
            self.file = (file, self.ctx.symbol(file));
        }
        // That would be another text.
        if self.file.1 == symbols::OF_TEXT {
            return None;
        }
        Some(SourceRange {
            file: self.file.1,
            line,
            column,
            length: 0,
        })
    }

    /// Adds outputs to `node`, with the types in the text, or else in the operator's schema, or else `Tensor`.
    fn add_outputs(&mut self, node: NodeId, outputs: &Outputs, span: Span) {
        let returns = match self.options.catalogue {
            Some(catalogue) => self.returns(catalogue, node, outputs, span),
            None => SmallVec::new(),
        };
        for (i, output) in outputs.iter().enumerate() {
            let inferred = returns.get(i).copied().flatten();
            if let (Some(said), Some(inferred)) = (output.ty, inferred)
                && self.options.catalogue.is_some_and(|c| !c.may_declare(said, inferred))
            {
                self.wrong_type(node, output, said, inferred);
            }
            let ty = output.ty.or(inferred).unwrap_or(types::TENSOR);
            let value = self.graph.add_output(node, ty);
            if let Some(before) = self.define(output, value) {
                let same_statement = outputs[..i].iter().any(|o| o.name.id == output.name.id);
                if same_statement {
                    self.twice(output, before);
                } else {
                    self.redefined(output, before);
                }
            }
        }
    }

    /// Returns the types of the outputs according to the operator's schema.
    fn returns(
        &mut self,
        catalogue: &Catalogue,
        node: NodeId,
        outputs: &Outputs,
        span: Span,
    ) -> SmallVec<[Option<TypeId>; 4]> {
        // The text determines the type of a cast.
        if self.graph.kind(node) == symbols::PRIM_UNCHECKED_CAST {
            return SmallVec::new();
        }
        let Some((schema, returns)) = catalogue.return_types(&self.graph, node) else {
            return SmallVec::new();
        };
        if schema.returns.len() != outputs.len() && !outputs.is_empty() {
            let message = format!(
                "`{}` has {} outputs, not {}",
                schema.full_name(self.ctx),
                schema.returns.len(),
                outputs.len()
            );
            self.cur.sink.report(
                Diagnostic::error("output-type", message, span, "this operator")
                    .with_help(format!("its schema is {}", schema.display(self.ctx))),
            );
        }
        returns
    }

    #[cold]
    fn wrong_type(&mut self, node: NodeId, output: &Output, said: TypeId, inferred: TypeId) {
        let message = format!(
            "`{}` is said to be {}, but {} gives {}",
            self.cur.slice(output.name.span),
            self.ctx.show_type(said),
            self.graph.kind_name(node),
            self.ctx.show_type(inferred)
        );
        let span = self.spans.node(node).unwrap_or(output.name.span);
        self.cur.sink.report(
            Diagnostic::error("output-type", message, output.name.span, "this type does not fit")
                .with_label(span, "the operator"),
        );
    }
}

/// Splits `file.py:10` into file name and line number.
fn number_behind_colon(text: &str) -> Option<(&str, u32)> {
    let digits = text.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (rest, digits) = text.split_at_checked(text.len() - digits)?;
    Some((rest.strip_suffix(':')?, digits.parse().ok()?))
}
