//! Reading nodes: outputs, kind, attributes, operands, and what may follow on their line.

use super::graph::{GraphParser, SpanTable};
use super::scope::Lookup;
use super::suggest::nearest;
use super::types::parse_type;
use super::value::parse_attribute;
use crate::diagnostics::Parsed;
use frazil_ir::schema::{Catalogue, Resolution};
use frazil_ir::types::{Bindings, is_subtype, match_formal, substitute};
use frazil_ir::{
    BlockId, Diagnostic, NodeId, Severity, SourceRange, Span, SymbolId, TypeId, TypeKind, ValueId, symbols, types,
};
use smallvec::SmallVec;

/// The outputs of a statement, before the node exists.
pub(super) struct Output<'a> {
    pub(super) name: &'a str,
    pub(super) span: Span,
    pub(super) ty: Option<TypeId>,
}

pub(super) type Outputs<'a> = SmallVec<[Output<'a>; 4]>;

impl<'a> GraphParser<'_, 'a> {
    /// A node. `None` when it could not even be told which; then the rest of its line is skipped.
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
        // Whatever went wrong, the names are known from here on, and blocks that follow belong to something.
        let node = node.unwrap_or_else(|| {
            let node = self.graph.create_node(symbols::EMPTY);
            self.graph.append(block, node);
            node
        });
        if !had_node || read.is_err() {
            for output in outputs.iter().skip(self.graph.node_outputs(node).len()) {
                let value = self.graph.add_output(node, output.ty.unwrap_or(types::TENSOR));
                self.scopes.define(output.name, value, output.span);
            }
        }
        Some(node)
    }

    /// `%a : T, %b =`; nothing, or a lone `=`, for a node without outputs.
    fn outputs(&mut self, outputs: &mut Outputs<'a>) -> Parsed<()> {
        if self.cur.peek() == b'=' {
            self.cur.pos += 1;
            return Ok(());
        }
        if self.cur.peek() != b'%' {
            return Ok(());
        }
        loop {
            let (name, span) = self.value_name()?;
            // On record before its type is read: with a bad type it is still a value.
            outputs.push(Output { name, span, ty: None });
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

    /// `: Type`, if it follows.
    pub(super) fn annotation(&mut self) -> Parsed<Option<TypeId>> {
        self.cur.skip_space();
        if self.cur.peek() != b':' {
            return Ok(None);
        }
        self.cur.pos += 1;
        parse_type(self.cur, self.ctx, &self.env.nominal).map(Some)
    }

    /// `%name`, given without the sign.
    #[inline]
    pub(super) fn value_name(&mut self) -> Parsed<(&'a str, Span)> {
        self.cur.skip_space();
        let start = self.cur.pos;
        if self.cur.peek() != b'%' {
            return Err(self.cur.unexpected("a value (`%name`)"));
        }
        self.cur.pos += 1;
        let name = self.cur.name();
        if name.is_empty() {
            return Err(self.cur.unexpected("a value's name behind `%`"));
        }
        Ok((name, self.cur.span_from(start)))
    }

    /// Names `value`; gives the place of another definition that this hides.
    pub(super) fn define(&mut self, output: &Output<'a>, value: ValueId) -> Option<Span> {
        SpanTable::set(&mut self.spans.values, value.as_u32(), output.span);
        self.graph.name_value(value, output.name);
        self.scopes.define(output.name, value, output.span)
    }

    #[cold]
    pub(super) fn twice(&mut self, output: &Output<'a>, before: Span) {
        self.cur.sink.report(
            Diagnostic::error(
                "redefined-value",
                format!("`%{}` stands for two values", output.name),
                output.span,
                "the second one",
            )
            .with_label(before, "the first one"),
        );
    }

    /// A name that was used before is taken over, as PyTorch's parser does; people should know.
    #[cold]
    fn redefined(&mut self, output: &Output<'a>, before: Span) {
        let mut diagnostic = Diagnostic::error(
            "redefined-value",
            format!("`%{}` is defined again", output.name),
            output.span,
            "from here on it means this value",
        )
        .with_label(before, "defined before");
        diagnostic.severity = Severity::Warning;
        self.cur.sink.report(diagnostic);
    }

    pub(super) fn symbol(&mut self, name: &'a str) -> SymbolId {
        let ctx = self.ctx;
        *self.symbols.entry(name).or_insert_with(|| ctx.symbol(name))
    }

    /// `kind[attributes](operands), scope: s # file:1:2`
    fn node(&mut self, block: BlockId, outputs: &Outputs<'a>, slot: &mut Option<NodeId>) -> Parsed<()> {
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
        if kind.ends_with(|c: char| c.is_ascii_digit()) && kind.contains('_') {
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
        let operands = self.operands()?;
        self.graph.add_operands(node, &operands);
        self.trailer(node);
        self.add_outputs(node, outputs, span);
        Ok(())
    }

    /// `namespace::name`
    pub(super) fn kind(&mut self) -> Parsed<&'a str> {
        let start = self.cur.pos;
        if self.cur.name().is_empty() {
            return Err(self.cur.unexpected("an operator (`aten::relu`)"));
        }
        if !self.cur.rest().starts_with("::") {
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
        while self.cur.rest().starts_with("::") {
            self.cur.pos += 2;
            if self.cur.name().is_empty() {
                return Err(self.cur.unexpected("the operator's name behind `::`"));
            }
        }
        Ok(self.cur.since(start))
    }

    /// `[name=value, ...]`
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
            let value = parse_attribute(self.cur, self.ctx, self.env, wanted)?;
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

    /// The values up to `)`. Unknown ones are reported and left out.
    pub(super) fn operands(&mut self) -> Parsed<SmallVec<[ValueId; 12]>> {
        let mut values = SmallVec::new();
        if self.cur.eat(b')') {
            return Ok(values);
        }
        loop {
            let (name, span) = self.value_name()?;
            match self.scopes.look_up(name) {
                Lookup::Found(v) => values.push(v),
                Lookup::Ended(before) => self.out_of_scope(name, span, before),
                Lookup::Unknown => self.undefined(name, span),
            }
            if !self.cur.eat(b',') {
                break;
            }
        }
        self.cur.expect(b')', "behind the operands")?;
        Ok(values)
    }

    #[cold]
    fn undefined(&mut self, name: &'a str, span: Span) {
        if self.names.contains(&name) {
            return;
        }
        self.names.push(name);
        let mut diagnostic = Diagnostic::error(
            "undefined-value",
            format!("there is no value `%{name}`"),
            span,
            "nothing defines it before here",
        );
        let near = nearest(name, self.scopes.visible());
        if let Some(near) = near {
            diagnostic = diagnostic.with_help(format!("did you mean `%{near}`?"));
        }
        self.cur.sink.report(diagnostic);
    }

    #[cold]
    fn out_of_scope(&mut self, name: &str, span: Span, before: Span) {
        self.cur.sink.report(
            Diagnostic::error(
                "out-of-scope-value",
                format!("`%{name}` belongs to a block that has ended"),
                span,
                "used outside of its block",
            )
            .with_label(before, "defined in the block")
            .with_help("make it a result of the block (`-> (...)`) and use the node's output"),
        );
    }

    /// What may follow on the node's line: its tracing scope and its source range.
    fn trailer(&mut self, node: NodeId) {
        self.cur.skip_blanks();
        if self.cur.rest().starts_with(", scope: ") {
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

    /// ` file.py:10:5`; anything else is a comment.
    fn range(&mut self, comment: &'a str) -> Option<SourceRange> {
        let comment = comment.trim_end();
        let comment = comment.strip_prefix(' ').unwrap_or(comment);
        let (rest, column) = comment.rsplit_once(':')?;
        let (file, line) = rest.rsplit_once(':')?;
        let column = column.parse().ok()?;
        let line = line.parse().ok()?;
        if self.file.0 != file {
            self.file = (file, self.ctx.symbol(file));
        }
        Some(SourceRange {
            file: self.file.1,
            line,
            column,
        })
    }

    /// Gives the node its outputs, with the types that the text says, or else the operator's schema, or else `Tensor`.
    fn add_outputs(&mut self, node: NodeId, outputs: &Outputs<'a>, span: Span) {
        let returns = match self.options.catalogue {
            Some(catalogue) => self.returns(catalogue, node, outputs, span),
            None => SmallVec::new(),
        };
        for (i, output) in outputs.iter().enumerate() {
            let inferred = returns.get(i).copied().flatten();
            if let (Some(said), Some(inferred)) = (output.ty, inferred)
                && !is_subtype(self.ctx, said, inferred)
                // A schema knows less than a graph of numbers does.
                && !matches!(self.ctx.type_kind(inferred), TypeKind::Any | TypeKind::Number)
            {
                self.wrong_type(node, output, said, inferred);
            }
            let ty = output.ty.or(inferred).unwrap_or(types::TENSOR);
            let value = self.graph.add_output(node, ty);
            if let Some(before) = self.define(output, value) {
                let same_statement = outputs[..i].iter().any(|o| o.name == output.name);
                if same_statement {
                    self.twice(output, before);
                } else {
                    self.redefined(output, before);
                }
            }
        }
    }

    /// What the operator's schema says of the outputs.
    fn returns(
        &mut self,
        catalogue: &Catalogue,
        node: NodeId,
        outputs: &Outputs<'a>,
        span: Span,
    ) -> SmallVec<[Option<TypeId>; 4]> {
        let Resolution::Found(schema) = catalogue.resolve(&self.graph, node) else {
            return SmallVec::new();
        };
        if schema.is_varret {
            return SmallVec::new();
        }
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
        let mut bindings = Bindings::default();
        for (formal, actual) in schema.arguments.iter().zip(self.graph.operands(node)) {
            match_formal(self.ctx, formal.ty, self.graph.ty(actual), &mut bindings);
        }
        schema
            .returns
            .iter()
            .map(|r| substitute(self.ctx, r.ty, &bindings))
            .collect()
    }

    #[cold]
    fn wrong_type(&mut self, node: NodeId, output: &Output<'a>, said: TypeId, inferred: TypeId) {
        let message = format!(
            "`%{}` is said to be {}, but {} gives {}",
            output.name,
            self.ctx.show_type(said),
            self.graph.kind_name(node),
            self.ctx.show_type(inferred)
        );
        let span = self.spans.node(node).unwrap_or(output.span);
        self.cur.sink.report(
            Diagnostic::error("output-type", message, output.span, "this type does not fit")
                .with_label(span, "the operator"),
        );
    }
}
