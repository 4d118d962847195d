//! The catalogue of all known schemas, by operator; and which overload a node is.

use super::{FunctionSchema, SchemaError, parse_schema};
use crate::types::{Bindings, is_subtype, match_formal, substitute};
use crate::{Context, Graph, NodeId, SymbolId, TypeId, TypeKind, types};
use indexmap::IndexMap;
use std::sync::{Arc, OnceLock};

/// Schemas by operator name. Dialects add theirs; embedders add their own.
///
/// A text of thousands of schemas is indexed by name when it is added and parsed when an operator is asked for, so that a
/// registry costs little to make.
#[derive(Debug)]
pub struct Catalogue {
    ctx: Arc<Context>,
    operators: IndexMap<SymbolId, Vec<Entry>>,
}

#[derive(Debug)]
struct Entry {
    text: Arc<str>,
    parsed: OnceLock<Option<Arc<FunctionSchema>>>,
}

/// The lines of `text` that are neither empty nor comments, with their numbers from 0.
fn schema_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().map(str::trim).enumerate();
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// A text that cannot be added.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {source}")]
pub struct CatalogueError {
    /// Line, from 1.
    pub line: usize,
    /// What is wrong with it.
    #[source]
    pub source: SchemaError,
}

/// The types of a node's outputs; see [`Catalogue::return_types`].
pub type ReturnTypes = smallvec::SmallVec<[Option<TypeId>; 4]>;

/// What [`Catalogue::resolve`] found.
#[derive(Clone, Debug)]
pub enum Resolution {
    /// This overload fits.
    Found(Arc<FunctionSchema>),
    /// The operator is known, but no overload takes these operands.
    NoOverload,
    /// The operator is not known.
    Unknown,
}

impl Resolution {
    /// The schema, if one was found.
    pub fn found(self) -> Option<Arc<FunctionSchema>> {
        match self {
            Resolution::Found(schema) => Some(schema),
            Resolution::NoOverload | Resolution::Unknown => None,
        }
    }
}

impl Catalogue {
    /// A catalogue without operators.
    pub fn new(ctx: Arc<Context>) -> Catalogue {
        Catalogue {
            ctx,
            operators: IndexMap::new(),
        }
    }

    /// The context that the schemas' names and types live in.
    pub fn ctx(&self) -> &Arc<Context> {
        &self.ctx
    }

    /// Adds one schema a line; empty lines and lines that start with `#` are skipped. Nothing is added unless every line parses.
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
            let entry = Entry {
                text: line.into(),
                parsed: OnceLock::from(Some(schema.clone())),
            };
            self.operators.entry(schema.name).or_default().push(entry);
        }
        Ok(())
    }

    /// [`Catalogue::add_schemas`] for texts that a test checks with [`Catalogue::check`]: thousands of lines are indexed by name only, and a
    /// line is parsed when its operator is first looked up. A line that does not parse is absent.
    pub fn add_lines(&mut self, text: &str) {
        for (_, line) in schema_lines(text) {
            let head = line.split('(').next().unwrap_or_default();
            let start = head.find("::").map_or(0, |i| i + 2);
            let end = head[start..].find('.').map_or(head.len(), |i| start + i);
            let name = self.ctx.symbol(&head[..end]);
            let entry = Entry {
                text: line.into(),
                parsed: OnceLock::new(),
            };
            self.operators.entry(name).or_default().push(entry);
        }
    }

    /// Adds one schema.
    ///
    /// # Errors
    /// When it does not parse.
    pub fn add(&mut self, text: &str) -> Result<Arc<FunctionSchema>, SchemaError> {
        let schema = Arc::new(parse_schema(&self.ctx, text)?);
        let entry = Entry {
            text: text.into(),
            parsed: OnceLock::from(Some(schema.clone())),
        };
        self.operators.entry(schema.name).or_default().push(entry);
        Ok(schema)
    }

    /// Parses every line now.
    ///
    /// # Errors
    /// The first line (counted in the order of addition) that does not parse.
    pub fn check(&self) -> Result<(), CatalogueError> {
        for (i, entry) in self.operators.values().flatten().enumerate() {
            parse_schema(&self.ctx, &entry.text).map_err(|source| CatalogueError { line: i + 1, source })?;
        }
        Ok(())
    }

    /// Names of all operators.
    pub fn operators(&self) -> impl Iterator<Item = SymbolId> + '_ {
        self.operators.keys().copied()
    }

    /// True when operator `name` has a schema.
    pub fn contains(&self, name: SymbolId) -> bool {
        self.operators.contains_key(&name)
    }

    /// The overloads of operator `name`, in the order of the catalogue.
    pub fn overloads(&self, name: SymbolId) -> impl Iterator<Item = Arc<FunctionSchema>> + '_ {
        let entries = self.operators.get(&name).map_or(&[][..], Vec::as_slice);
        entries.iter().filter_map(|e| {
            e.parsed
                .get_or_init(|| parse_schema(&self.ctx, &e.text).ok().map(Arc::new))
                .clone()
        })
    }

    /// The overload called `overload` of operator `name`.
    pub fn get(&self, name: SymbolId, overload: &str) -> Option<Arc<FunctionSchema>> {
        self.overloads(name).find(|s| self.ctx.name(s.overload) == overload)
    }

    /// The overload that a complete operand list of these types selects: every argument is given, in order, as in a graph.
    ///
    /// An overload whose types the operands have exactly is preferred to one that they fit with the conversions that graphs do
    /// implicitly (refined tensors and optionals always fit; a number where `Scalar` is asked).
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

    /// The types of the outputs of `node` as its schema gives them for the types of its operands, one an output, `None` where a type variable
    /// stays open. `None` if no schema fits, or if the schema leaves the number of outputs open.
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

    /// Whether an output that its schema gives as `formal` may be declared `declared`: as a subtype of it. What a schema knows only as
    /// `Scalar` may be declared as any number or bool, and what it knows only as any type as anything.
    pub fn may_declare(&self, declared: TypeId, formal: TypeId) -> bool {
        match self.ctx.type_kind(formal) {
            TypeKind::Any => true,
            // A number, or a bool, of whatever kind the values turn out to be.
            TypeKind::Number => declared == types::BOOL || is_subtype(&self.ctx, declared, formal),
            _ => is_subtype(&self.ctx, declared, formal),
        }
    }

    /// The overload that `node` is; see [`resolve_types`](Self::resolve_types).
    pub fn resolve(&self, graph: &Graph, node: NodeId) -> Resolution {
        let operand_types: smallvec::SmallVec<[TypeId; 12]> = graph.operands(node).map(|v| graph.ty(v)).collect();
        self.resolve_types(graph.kind(node), &operand_types)
    }

    /// Whether the operands fit, and if so whether exactly.
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

    /// True when `actual` fits `formal` although another overload could name it more exactly.
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
