//! The registry of operators: schemas and entries of the dialects that an embedder selects. There is no global registry.

use crate::error::OpError;
use crate::operator::args::Args;
use crate::operator::callback::{Call, Callback, KernelFn, ProgramFn, Results};
use crate::operator::entry::{Entry, Role, Row, Traits};
use crate::operator::op::Operator;
pub use crate::operator::out::{out_arguments, writes_out};
use crate::operator::pointwise::Pointwise;
use crate::operator::semantics::{Form, Semantics, Variant};
use crate::program::structured::Program;
use crate::value::number::NumberKind;
use frazil_ir::schema::{
    Alias, Argument, Catalogue, CatalogueError, Determinism, FunctionSchema, Properties, Resolution,
};
use frazil_ir::{Context, Graph, NodeId, SymbolId, TypeKind};
use indexmap::IndexMap;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Schemas and semantics by operator.
///
/// An entry is registered for an operator (`aten::add`: all its tensor overloads, and `aten::add_` and the `out` overloads with it) or for one overload
/// (`aten::add.t`), which then takes precedence.
///
/// ```
/// use frazil_runtime::pointwise::{Pointwise, Promotion};
/// use frazil_runtime::registry::Registry;
/// use std::sync::Arc;
///
/// let mut registry = Registry::new(Arc::new(frazil_ir::Context::new()));
/// registry.add_schemas("mine::swish(Tensor self) -> Tensor")?;
/// registry.pointwise("mine::swish", Pointwise::new(&["self"], Promotion::IntToFloat, |b| b.x(0) * b.x(0).sigmoid()));
/// assert!(registry.find("mine::swish", "").is_some());
/// # Ok::<(), frazil_ir::schema::CatalogueError>(())
/// ```
pub struct Registry {
    catalogue: Catalogue,
    /// Entries keyed by operator or overload name.
    entries: IndexMap<String, Definition>,
    /// The name of the operator with each role, as registered.
    roles: HashMap<Role, String>,
}

/// The registrations under one operator or overload name.
#[derive(Default)]
struct Definition {
    entry: Entry,
    /// The function that defines the operator, if it is defined in source.
    source: Option<SourceFunction>,
}

/// A function that compiles the function of a source with the given name, or returns the first error in what it needs. The source may call the operators of
/// the catalogue.
pub type CompileFn = fn(&Catalogue, &str) -> Result<Arc<Graph>, String>;

/// Operators defined in TorchScript source. The function of an operator is compiled when the operator is first looked up.
pub struct Composites {
    /// Pairs of operator or overload (`aten::mse_loss`) and the function of the source that defines it.
    pub functions: Vec<(String, String)>,
    /// Compiles a function of the source.
    pub compile: CompileFn,
}

/// A function of a source, which defines an operator.
struct SourceFunction {
    name: String,
    compile: CompileFn,
    graph: OnceLock<Arc<Graph>>,
    /// Held while the function is compiled, so that one thread compiles it.
    compiling: Mutex<()>,
}

impl SourceFunction {
    /// Returns the graph of the function. Failures are not cached, because a later call may have more stack or memory.
    fn graph(&self, catalogue: &Catalogue) -> Result<&Arc<Graph>, String> {
        if let Some(graph) = self.graph.get() {
            return Ok(graph);
        }
        let _one = self.compiling.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(graph) = self.graph.get() {
            return Ok(graph);
        }
        let graph = (self.compile)(catalogue, &self.name)?;
        Ok(self.graph.get_or_init(|| graph))
    }
}

/// The result of resolving a node of a graph to an operator.
pub enum Lookup {
    /// The overload, which has semantics.
    Found(Operator),
    /// The overload is known, but has no semantics.
    NoSemantics(Arc<FunctionSchema>),
    /// The operator is known, but no overload accepts the operands.
    NoOverload,
    /// The operator is unknown.
    Unknown,
}

impl Registry {
    /// Returns a registry without operators.
    pub fn new(ctx: Arc<Context>) -> Registry {
        Registry {
            catalogue: Catalogue::new(ctx),
            entries: IndexMap::new(),
            roles: HashMap::new(),
        }
    }

    /// Returns the context of the operators' names and types.
    pub fn ctx(&self) -> &Arc<Context> {
        self.catalogue.ctx()
    }

    /// Returns the catalogue of the operators' schemas.
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// Parses `text`, one schema per line, and adds all schemas to the catalogue, or none if a line does not parse; see [`Catalogue::add_schemas`].
    ///
    /// # Errors
    /// The first line that does not parse.
    pub fn add_schemas(&mut self, text: &str) -> Result<(), CatalogueError> {
        self.catalogue.add_schemas(text)
    }

    /// Adds schemas without parsing them, for a text that a test checks with [`Catalogue::check`]. Each schema is parsed when its operator is first looked up;
    /// see [`Catalogue::add_lines`].
    pub fn add_tested_schemas(&mut self, text: &str) {
        self.catalogue.add_lines(text);
    }

    /// Registers an entry for `name`: an operator (`aten::add`) or an overload (`aten::add.Tensor`). The entry is merged with earlier entries for `name`,
    /// whose properties it overrides.
    pub fn register(&mut self, name: &str, entry: impl Into<Entry>) {
        let entry = entry.into();
        if entry.properties != Properties::NONE {
            let operator = self.ctx().symbol(operator_of_key(name));
            self.catalogue.add_properties(operator, entry.properties);
        }
        for (alias, used) in entry.aliases {
            let (alias, operator) = (self.ctx().symbol(alias), self.ctx().symbol(name));
            self.catalogue.add_alias(alias, Alias { operator, used: *used });
        }
        if let Some(role) = entry.traits.role {
            self.roles.insert(role, name.to_string());
        }
        self.definition(name).entry.add(entry);
    }

    /// Registers all rows of a dialect's table.
    pub fn register_all(&mut self, rows: &[Row]) {
        self.entries.reserve(rows.len());
        for (name, entry) in rows {
            self.register(name, entry.clone());
        }
    }

    fn definition(&mut self, name: &str) -> &mut Definition {
        self.entries.entry(name.to_string()).or_default()
    }

    /// Registers a pointwise entry.
    pub fn pointwise(&mut self, name: &str, entry: Pointwise) {
        self.register(name, Semantics::Pointwise(entry));
    }

    /// Registers an entry that creates a program.
    pub fn program(&mut self, form: Form, name: &str, build: ProgramFn) {
        self.register(name, Semantics::Program(form, Callback::Plain(build)));
    }

    /// Registers an entry that creates a program by a closure, which may have state.
    pub fn program_closure(
        &mut self,
        form: Form,
        name: &str,
        build: impl Fn(&Args<'_>) -> Result<Program, OpError> + Send + Sync + 'static,
    ) {
        self.register(name, Semantics::Program(form, Callback::Closure(Arc::new(build))));
    }

    /// Registers a kernel.
    pub fn kernel(&mut self, name: &str, kernel: KernelFn) {
        self.register(name, Semantics::Kernel(Callback::Plain(kernel)));
    }

    /// Registers a kernel that is a closure, which may have state.
    ///
    /// ```
    /// use frazil_runtime::{Registry, value::Value};
    ///
    /// let mut registry = Registry::new(std::sync::Arc::default());
    /// registry.add_schemas("mine::limit() -> int")?;
    /// let limit = std::env::args().count() as i64; // known only at run time
    /// registry.kernel_closure("mine::limit", move |_| Ok([Value::Int(limit)].into_iter().collect()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn kernel_closure(
        &mut self,
        name: &str,
        kernel: impl Fn(&Call<'_>) -> Result<Results, OpError> + Send + Sync + 'static,
    ) {
        self.register(name, Semantics::Kernel(Callback::Closure(Arc::new(kernel))));
    }

    /// Registers operators that are defined in TorchScript source.
    pub fn composites(&mut self, composites: Composites) {
        for (name, function) in composites.functions {
            self.definition(&name).source = Some(SourceFunction {
                name: function,
                compile: composites.compile,
                graph: OnceLock::new(),
                compiling: Mutex::new(()),
            });
        }
    }

    /// Returns the names of the operators defined in source.
    pub fn composite_operators(&self) -> impl Iterator<Item = &str> + '_ {
        let from_source = self.entries.iter().filter(|(_, d)| d.source.is_some());
        from_source.map(|(name, _)| name.as_str())
    }

    /// Compiles all operators that are defined in source now.
    ///
    /// # Errors
    /// The first error of a source.
    pub fn check_composites(&self) -> Result<(), String> {
        let mut sources = self.entries.values().filter_map(|d| d.source.as_ref());
        sources.try_for_each(|source| source.graph(&self.catalogue).map(|_| ()))
    }

    /// Returns the semantics registered under `name`: pointwise, program, kernel or composite.
    fn semantics(&self, name: &str) -> Option<Semantics> {
        let definition = self.entries.get(name)?;
        if let Some(semantics) = &definition.entry.semantics {
            return Some(semantics.clone());
        }
        let graph = definition.source.as_ref()?.graph(&self.catalogue).ok()?;
        Some(Semantics::Composite(Arc::clone(graph)))
    }

    /// Returns the entry registered under exactly the operator or overload name `name`.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.get(name).map(|d| &d.entry)
    }

    /// Returns all entries with their operator or overload names, in the order of registration.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &Entry)> + '_ {
        self.entries.iter().map(|(name, d)| (name.as_str(), &d.entry))
    }

    /// Returns the operator with the role `role`, if a dialect has registered one.
    pub fn with_role(&self, role: Role) -> Option<Operator> {
        let name = self.roles.get(&role)?;
        let operator = operator_of_key(name);
        let overload = name[operator.len()..].trim_start_matches('.');
        self.find(operator, overload)
    }

    /// Returns the name of the first registered operator that reads a number of kind `kind` from a tensor; see [`NumberRead`](crate::entry::NumberRead).
    pub fn number_read(&self, kind: Option<NumberKind>, is_implicit: bool) -> Option<&str> {
        let reads = |entry: &Entry| {
            let read = entry.traits.number_read;
            read.is_some_and(|read| (read.kind, read.is_implicit) == (kind, is_implicit))
        };
        self.entries().find(|(_, entry)| reads(entry)).map(|(name, _)| name)
    }

    /// Returns the operator with overload `overload` of `name`, if both its schema and its semantics are known.
    pub fn find(&self, name: &str, overload: &str) -> Option<Operator> {
        let schema = self.catalogue.get(self.ctx().find_symbol(name)?, overload)?;
        self.operator_of(schema)
    }

    /// Resolves `node` by its kind and its operands' types.
    pub fn lookup(&self, graph: &Graph, node: NodeId) -> Lookup {
        self.with_semantics(self.catalogue.resolve(graph, node))
    }

    /// Resolves a call of the operator `name` with operands of these types.
    pub fn lookup_types(&self, name: SymbolId, operands: &[frazil_ir::TypeId]) -> Lookup {
        self.with_semantics(self.catalogue.resolve_types(name, operands))
    }

    /// Returns the operator of `node`, if it has semantics.
    pub fn operator(&self, graph: &Graph, node: NodeId) -> Option<Operator> {
        match self.lookup(graph, node) {
            Lookup::Found(op) => Some(op),
            _ => None,
        }
    }

    fn with_semantics(&self, resolution: Resolution) -> Lookup {
        match resolution {
            Resolution::Found(schema) => match self.operator_of(schema.clone()) {
                Some(op) => Lookup::Found(op),
                None => Lookup::NoSemantics(schema),
            },
            Resolution::NoOverload => Lookup::NoOverload,
            Resolution::Unknown => Lookup::Unknown,
        }
    }

    /// Returns the operator for a schema's overload. The semantics come from the entry of the overload, else of the operator, else of the functional form
    /// that it derives from. `x_copy` without an entry returns copies of the results of `x`.
    pub fn operator_of(&self, schema: Arc<FunctionSchema>) -> Option<Operator> {
        let name = self.ctx().name(schema.name);
        if let Some(found) = self.operator_named(&schema, name) {
            return Some(found);
        }
        if let Some(alias) = self.catalogue.alias(schema.name) {
            return self.operator_named(&schema, self.ctx().name(alias.operator));
        }
        let viewed = self.operator_named(&schema, name.strip_suffix("_copy")?)?;
        Some(Operator { copies: true, ..viewed })
    }

    /// Returns the same as [`Registry::operator_of`], with the entries registered under `name`.
    fn operator_named(&self, schema: &Arc<FunctionSchema>, name: &str) -> Option<Operator> {
        let ctx = self.ctx();
        let overload = ctx.name(schema.overload).to_string();
        // Entries of overloads state what differs from the operator's.
        let own_name = match overload.as_str() {
            "" => name.to_string(),
            overload => format!("{name}.{overload}"),
        };
        let traits_of = |name: &str| self.entry(name).map(|e| e.traits);
        let found = |semantics: Semantics, variant, key: &str| {
            // An eager kernel is stated for one overload: that of `view` is not for `view.dtype`.
            let eager = self.entry(key).and_then(|e| e.eager);
            let traits = [key, own_name.as_str(), operator_of_key(key), name]
                .into_iter()
                .filter_map(traits_of);
            Some(Operator {
                schema: schema.clone(),
                semantics,
                variant,
                eager,
                traits: traits.reduce(Traits::or).unwrap_or_default(),
                is_random: self.catalogue.properties(schema.name).determinism == Determinism::Random,
                copies: false,
                prepared: Arc::default(),
            })
        };
        let exact = if overload.is_empty() {
            None
        } else {
            self.semantics(&own_name)
        };
        if let Some(semantics) = exact {
            return found(semantics, Variant::Functional, &own_name);
        }
        let out = writes_out(schema);
        if out
            && let Some(base) = self.functional_overload(schema, name)
            && let Some(semantics) = self.semantics(&base)
        {
            return found(semantics, Variant::Out, &base);
        }
        // A general entry speaks of tensors; the overloads on numbers and lists have entries of their own.
        let tensors = |a: &Argument| match ctx.type_kind(a.ty) {
            TypeKind::Tensor(_) => true,
            TypeKind::Optional(e) | TypeKind::List(e) => is_tensor_like(ctx, e),
            _ => false,
        };
        let own = self.semantics(name);
        let general = schema.arguments.iter().any(tensors) || schema.returns.iter().any(tensors);
        if !general {
            if let Some(kernel) = self.entry(name).and_then(|e| e.on_values) {
                return found(
                    Semantics::Kernel(Callback::Plain(kernel)),
                    Variant::Functional,
                    &own_name,
                );
            }
            // An operator that is a kernel for everything (`prim::ListConstruct`).
            return own
                .filter(|s| s.form() == Form::Kernel)
                .and_then(|s| found(s, Variant::Functional, &own_name));
        }
        if let Some(semantics) = own {
            return match out {
                true => found(semantics, Variant::Out, name).map(|op| Operator { eager: None, ..op }),
                false => found(semantics, Variant::Functional, &own_name),
            };
        }
        let functional = name.strip_suffix('_').filter(|_| schema.is_mutable())?;
        let base = match overload.as_str() {
            "" => functional.to_string(),
            overload => format!("{functional}.{overload}"),
        };
        let semantics = self.semantics(&base).or_else(|| self.semantics(functional))?;
        found(semantics, Variant::InPlace, &base)
    }
}

impl Registry {
    /// Returns the key of the functional overload for an `out` overload of the operator `name`: the overload with the same arguments except the written
    /// arguments.
    fn functional_overload(&self, out: &FunctionSchema, name: &str) -> Option<String> {
        let ctx = self.ctx();
        let written: Vec<usize> = out_arguments(out).collect();
        let rest: Vec<&Argument> = out
            .arguments
            .iter()
            .enumerate()
            .filter(|(i, _)| !written.contains(i))
            .map(|(_, a)| a)
            .collect();
        // The functional form may go on with what says how its result is made: dtype, layout, device, pin_memory.
        let same = |s: &FunctionSchema| {
            let pairs = || s.arguments.iter().zip(&rest);
            let more = s.arguments.get(rest.len()..);
            pairs().all(|(a, b)| a.name == b.name && a.ty == b.ty)
                && more.is_some_and(|more| more.iter().all(|a| a.keyword_only && a.default.is_some()))
        };
        let base = self.catalogue.overloads(out.name).find(|s| same(s))?;
        (base.overload != frazil_ir::symbols::EMPTY).then(|| format!("{name}.{}", ctx.name(base.overload)))
    }
}

/// Returns the operator of an entry's key: `aten::add` for `aten::add.Tensor`.
fn operator_of_key(name: &str) -> &str {
    name.split_once('.').map_or(name, |(operator, _)| operator)
}

fn is_tensor_like(ctx: &Context, ty: frazil_ir::TypeId) -> bool {
    match ctx.type_kind(ty) {
        TypeKind::Tensor(_) => true,
        TypeKind::Optional(e) => ctx.is_tensor(e),
        _ => false,
    }
}
