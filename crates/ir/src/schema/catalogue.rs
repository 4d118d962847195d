//! The catalogue of all known schemas, by operator, and overload resolution for nodes.

use super::{Alias, FunctionSchema, Properties, SchemaError, parse_schema};
use crate::types::{Bindings, is_subtype, match_formal, substitute};
use crate::{Context, Graph, NodeId, SymbolId, TypeId, TypeKind, types};
use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Schemas by operator name. Dialects and embedders add theirs.
///
/// A text of thousands of schemas is only indexed by name when it is added. A schema is parsed when its operator is first looked up, so creating a registry is
/// fast.
#[derive(Debug)]
pub struct Catalogue {
    ctx: Arc<Context>,
    operators: IndexMap<SymbolId, Entries, FxBuildHasher>,
    properties: FxHashMap<SymbolId, Properties>,
    aliases: IndexMap<SymbolId, Alias, FxBuildHasher>,
}

/// The overloads of an operator, of which most have one.
type Entries = SmallVec<[Entry; 1]>;

#[derive(Debug)]
struct Entry {
    /// The text with the schema, which entries share.
    source: Arc<str>,
    range: Range<usize>,
    parsed: OnceLock<Option<Arc<FunctionSchema>>>,
}

impl Entry {
    fn parsed(text: &str, schema: &Arc<FunctionSchema>) -> Entry {
        Entry {
            source: text.into(),
            range: 0..text.len(),
            parsed: OnceLock::from(Some(Arc::clone(schema))),
        }
    }

    fn text(&self) -> &str {
        self.source.get(self.range.clone()).unwrap_or_default()
    }
}

/// Returns the lines of `text` that are neither empty nor comments, with their numbers from 0.
fn schema_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().map(str::trim).enumerate();
    lines.filter(|(_, line)| !is_blank(line))
}

/// Returns true for a line without a schema: empty, or a comment.
fn is_blank(line: &str) -> bool {
    line.is_empty() || line.starts_with('#')
}

/// Returns the name of the operator of the schema `line`, without the overload: `aten::add` of `aten::add.Tensor(Tensor self, ...`.
fn operator_of(line: &str) -> &str {
    let bytes = line.as_bytes();
    let head = bytes.iter().position(|&b| b == b'(').unwrap_or(bytes.len());
    let head = bytes.get(..head).unwrap_or_default();
    let start = head.windows(2).position(|pair| pair == b"::").map_or(0, |i| i + 2);
    let rest = head.get(start..).unwrap_or_default();
    let end = rest.iter().position(|&b| b == b'.').map_or(head.len(), |i| start + i);
    line.get(..end).unwrap_or_default()
}

/// The error for a text in which a line is not a valid schema.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {source}")]
pub struct CatalogueError {
    /// Line, from 1.
    pub line: usize,
    /// The error in the line.
    #[source]
    pub source: SchemaError,
}

/// The types of a node's outputs, `None` where unknown; see [`Catalogue::return_types`].
pub type ReturnTypes = SmallVec<[Option<TypeId>; 4]>;

/// The result of [`Catalogue::resolve`].
#[derive(Clone, Debug)]
pub enum Resolution {
    /// The matching overload.
    Found(Arc<FunctionSchema>),
    /// The operator is known, but no overload accepts the operands.
    NoOverload,
    /// The operator is unknown.
    Unknown,
}

impl Resolution {
    /// Returns the matching overload, if one was found.
    pub fn found(self) -> Option<Arc<FunctionSchema>> {
        match self {
            Resolution::Found(schema) => Some(schema),
            Resolution::NoOverload | Resolution::Unknown => None,
        }
    }
}

impl Catalogue {
    /// Returns a catalogue without operators.
    pub fn new(ctx: Arc<Context>) -> Catalogue {
        Catalogue {
            ctx,
            operators: IndexMap::default(),
            properties: FxHashMap::default(),
            aliases: IndexMap::default(),
        }
    }

    /// Returns the context of the schemas' names and types.
    pub fn ctx(&self) -> &Arc<Context> {
        &self.ctx
    }

    /// Adds one schema per line; empty lines and lines that start with `#` are skipped. Nothing is added unless every line parses.
    ///
    /// # Errors
    /// The first line of `text` that does not parse.
    pub fn add_schemas(&mut self, text: &str) -> Result<(), CatalogueError> {
        let mut added = Vec::new();
        for (i, line) in schema_lines(text) {
            let schema = parse_schema(&self.ctx, line).map_err(|source| CatalogueError { line: i + 1, source })?;
            added.push((line, Arc::new(schema)));
        }
        for (line, schema) in added {
            let entry = Entry::parsed(line, &schema);
            self.operators.entry(schema.name).or_default().push(entry);
        }
        Ok(())
    }

    /// Adds schemas as [`Catalogue::add_schemas`] does, for texts that a test checks with [`Catalogue::check`]. Thousands of lines are only indexed by name; a
    /// line is parsed when its operator is first looked up. A line that does not parse is ignored.
    pub fn add_lines(&mut self, text: &str) {
        let source: Arc<str> = text.into();
        // The overloads of an operator mostly follow one another: the last operator's name, and its index.
        let mut last = ("", 0);
        let mut next = 0;
        for line in source.split_inclusive('\n') {
            let start = next + (line.len() - line.trim_start().len());
            next += line.len();
            let line = line.trim();
            if is_blank(line) {
                continue;
            }
            let name = operator_of(line);
            if name != last.0 {
                let entry = self.operators.entry(self.ctx.symbol(name));
                last = (name, entry.index());
                entry.or_default();
            }
            let entry = Entry {
                source: Arc::clone(&source),
                range: start..start + line.len(),
                parsed: OnceLock::new(),
            };
            if let Some((_, entries)) = self.operators.get_index_mut(last.1) {
                entries.push(entry);
            }
        }
    }

    /// Adds one schema.
    ///
    /// # Errors
    /// If it does not parse.
    pub fn add(&mut self, text: &str) -> Result<Arc<FunctionSchema>, SchemaError> {
        let schema = Arc::new(parse_schema(&self.ctx, text)?);
        let entry = Entry::parsed(text, &schema);
        self.operators.entry(schema.name).or_default().push(entry);
        Ok(schema)
    }

    /// Parses every line now.
    ///
    /// # Errors
    /// The first line (counted in the order of addition) that does not parse.
    pub fn check(&self) -> Result<(), CatalogueError> {
        for (i, entry) in self.operators.values().flatten().enumerate() {
            parse_schema(&self.ctx, entry.text()).map_err(|source| CatalogueError { line: i + 1, source })?;
        }
        Ok(())
    }

    /// Adds `properties` to the known properties of operator `name`.
    pub fn add_properties(&mut self, name: SymbolId, properties: Properties) {
        let known = self.properties.entry(name).or_default();
        *known = properties.or(*known);
    }

    /// Returns the properties of operator `name`. An in-place form or an alias has the properties of the underlying operator.
    ///
    /// ```
    /// use frazil_ir::schema::{Catalogue, Determinism, Properties};
    ///
    /// let mut catalogue = Catalogue::new(std::sync::Arc::default());
    /// let name = |text| catalogue.ctx().symbol(text);
    /// let (noise, in_place) = (name("mine::noise"), name("mine::noise_"));
    /// let determinism = Determinism::Random;
    /// catalogue.add_properties(noise, Properties { determinism, ..Properties::NONE });
    /// assert_eq!(catalogue.properties(in_place).determinism, Determinism::Random);
    /// ```
    pub fn properties(&self, name: SymbolId) -> Properties {
        if let Some(own) = self.properties.get(&name) {
            return *own;
        }
        let operator = self.alias(name).map_or(name, |alias| alias.operator);
        let stated = |name| self.properties.get(&name).copied();
        let functional = || self.functional(operator).and_then(stated);
        stated(operator).or_else(functional).unwrap_or_default()
    }

    /// Returns the names of all operators with properties.
    pub fn operators_with_properties(&self) -> impl Iterator<Item = SymbolId> + '_ {
        self.properties.keys().copied()
    }

    /// Adds `name` as another name of an operator.
    pub fn add_alias(&mut self, name: SymbolId, alias: Alias) {
        self.aliases.insert(name, alias);
    }

    /// Returns the operator of which `name` is an alias. The in-place form of an alias is an alias of the operator's in-place form.
    pub fn alias(&self, name: SymbolId) -> Option<Alias> {
        if let Some(alias) = self.aliases.get(&name) {
            return Some(*alias);
        }
        let alias = *self.aliases.get(&self.functional(name)?)?;
        let operator = self.ctx.symbol(&format!("{}_", self.ctx.name(alias.operator)));
        Some(Alias { operator, ..alias })
    }

    /// Returns all aliases with their operators, without in-place forms.
    pub fn aliases(&self) -> impl Iterator<Item = (SymbolId, Alias)> + '_ {
        self.aliases.iter().map(|(name, alias)| (*name, *alias))
    }

    /// Returns the operator of which `name` may be the in-place form.
    fn functional(&self, name: SymbolId) -> Option<SymbolId> {
        let functional = self.ctx.name(name).strip_suffix('_')?;
        (!functional.ends_with(':')).then(|| self.ctx.find_symbol(functional))?
    }

    /// Returns the names of all operators.
    pub fn operators(&self) -> impl Iterator<Item = SymbolId> + '_ {
        self.operators.keys().copied()
    }

    /// Returns true if operator `name` has a schema.
    pub fn contains(&self, name: SymbolId) -> bool {
        self.operators.contains_key(&name)
    }

    /// Returns the overloads of operator `name`, in the order of addition.
    pub fn overloads(&self, name: SymbolId) -> impl Iterator<Item = Arc<FunctionSchema>> + '_ {
        let entries = self.operators.get(&name).map_or(&[][..], SmallVec::as_slice);
        entries.iter().filter_map(|e| {
            e.parsed
                .get_or_init(|| parse_schema(&self.ctx, e.text()).ok().map(Arc::new))
                .clone()
        })
    }

    /// Returns the overload called `overload` of operator `name`.
    pub fn get(&self, name: SymbolId, overload: &str) -> Option<Arc<FunctionSchema>> {
        self.overloads(name).find(|s| self.ctx.name(s.overload) == overload)
    }

    /// Returns the overload for operands of these types, which are all arguments of the schema in order, as in a graph.
    ///
    /// An overload that exactly matches the types of the operands is preferred to one that requires the implicit conversions
    /// of graphs (refined tensors and optionals always match; a number matches `Scalar`).
    pub fn resolve_types(&self, name: SymbolId, operands: &[TypeId]) -> Resolution {
        if !self.contains(name) {
            return Resolution::Unknown;
        }
        let mut fitting = None;
        for schema in self.overloads(name) {
            match self.fit(&schema, operands) {
                Some(true) => return Resolution::Found(schema),
                Some(false) if fitting.is_none() => fitting = Some(schema),
                _ => {}
            }
        }
        fitting.map_or(Resolution::NoOverload, Resolution::Found)
    }

    /// Returns the output types of `node` according to the schema for its operand types: one per output, `None` where a type variable is unbound. Returns
    /// `None` if no schema matches, or if the schema does not determine the number of outputs.
    pub fn return_types(&self, graph: &Graph, node: NodeId) -> Option<(Arc<FunctionSchema>, ReturnTypes)> {
        let schema = self.resolve(graph, node).found().filter(|s| !s.is_varret)?;
        let mut bindings = Bindings::default();
        for (formal, actual) in schema.arguments.iter().zip(graph.operands(node)) {
            match_formal(&self.ctx, formal.ty, graph.ty(actual), &mut bindings);
        }
        let returns = schema.returns.iter().map(|r| substitute(&self.ctx, r.ty, &bindings));
        let returns = returns.collect();
        Some((schema, returns))
    }

    /// Returns whether an output with the schema type `formal` may be declared as `declared`: a subtype of it. A `Scalar` may be
    /// declared as any number or bool, and an output of any type as anything.
    pub fn may_declare(&self, declared: TypeId, formal: TypeId) -> bool {
        match self.ctx.type_kind(formal) {
            TypeKind::Any => true,
            // A number or a bool, depending on the values.
            TypeKind::Number => declared == types::BOOL || is_subtype(&self.ctx, declared, formal),
            _ => is_subtype(&self.ctx, declared, formal),
        }
    }

    /// Returns the overload of `node`; see [`resolve_types`](Self::resolve_types).
    pub fn resolve(&self, graph: &Graph, node: NodeId) -> Resolution {
        let operand_types: SmallVec<[TypeId; 12]> = graph.operands(node).map(|v| graph.ty(v)).collect();
        self.resolve_types(graph.kind(node), &operand_types)
    }

    /// Returns whether the operands match the schema: `None` if not, `Some(true)` if exactly.
    fn fit(&self, schema: &FunctionSchema, operands: &[TypeId]) -> Option<bool> {
        let formals = &schema.arguments;
        if operands.len() < formals.len() || (operands.len() > formals.len() && !schema.is_vararg) {
            return None;
        }
        let mut bindings = Bindings::default();
        let mut exact = true;
        for (formal, &actual) in formals.iter().zip(operands) {
            if !match_formal(&self.ctx, formal.ty, actual, &mut bindings) {
                return None;
            }
            exact &= !self.is_loose(formal.ty, actual);
        }
        Some(exact)
    }

    /// Returns true if `actual` matches `formal`, but another overload could be a more exact match.
    fn is_loose(&self, formal: TypeId, actual: TypeId) -> bool {
        let number = |t| {
            matches!(
                self.ctx.type_kind(t),
                TypeKind::Int | TypeKind::Float | TypeKind::Complex | TypeKind::Bool
            )
        };
        match self.ctx.type_kind(formal) {
            TypeKind::Number => number(actual),
            TypeKind::Any => actual != types::ANY,
            TypeKind::Var(_) => true,
            TypeKind::Optional(e) => self.is_loose(e, actual) && !is_subtype(&self.ctx, actual, types::NONE),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalogue() -> (Arc<Context>, Catalogue) {
        let ctx = Arc::new(Context::new());
        let mut c = Catalogue::new(ctx.clone());
        c.add_lines(
            "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor\n\
             aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor\n\
             aten::add.t(t[] a, t[] b) -> t[]\n\
             aten::add(Scalar a, Scalar b) -> Scalar\n\
             aten::add.int(int a, int b) -> int\n",
        );
        (ctx, c)
    }

    #[test]
    fn a_line_that_does_not_parse_is_an_error() {
        let (ctx, mut c) = catalogue();
        let error = c
            .add_schemas("# ours\nmine::a(Tensor self) -> Tensor\nmine::b(Tensr self -> Tensor")
            .unwrap_err();
        assert_eq!(error.line, 3, "{error}");
        assert!(!c.contains(ctx.symbol("mine::a")));
        c.add_schemas("mine::a(Tensor self) -> Tensor").unwrap();
        assert_eq!(c.overloads(ctx.symbol("mine::a")).count(), 1);
    }

    #[test]
    fn overloads_are_told_by_operand_types() {
        let (ctx, c) = catalogue();
        let add = ctx.symbol("aten::add");
        let overload = |operands: &[TypeId]| {
            let schema = c.resolve_types(add, operands).found()?;
            Some(ctx.name(schema.overload).to_owned())
        };
        let float = ctx.tensor_of(crate::DType::Float, &[2], &[1], false);
        assert_eq!(overload(&[types::TENSOR, float, types::INT]).as_deref(), Some("Tensor"));
        assert_eq!(
            overload(&[types::TENSOR, types::FLOAT, types::INT]).as_deref(),
            Some("Scalar")
        );
        assert_eq!(overload(&[types::INT, types::INT]).as_deref(), Some("int"));
        assert_eq!(overload(&[types::INT, types::FLOAT]).as_deref(), Some(""));
        let ints = ctx.list_of(types::INT);
        assert_eq!(overload(&[ints, ints]).as_deref(), Some("t"));
        assert_eq!(overload(&[ints, types::STR]), None);
        assert!(matches!(
            c.resolve_types(ctx.symbol("aten::nope"), &[]),
            Resolution::Unknown
        ));
    }
}
