//! The registry: schemas and entries of the dialects that an embedder wants. There is no global one.

use crate::error::OpError;
use crate::operator::args::Args;
use crate::operator::op::{
    Call, Callback, Form, KernelFn, Operator, ProgramFn, ResultLayout, Results, Semantics, Variant,
};
use crate::operator::pointwise::Pointwise;
use crate::program::structured::Program;
use frazil_ir::schema::{Argument, Catalogue, CatalogueError, FunctionSchema, Resolution};
use frazil_ir::{Context, Graph, NodeId, SymbolId, TypeKind};
use indexmap::IndexMap;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Schemas and semantics by operator.
///
/// An entry is registered for an operator (`aten::add`: all its tensor overloads, and `aten::add_` and the `out` overloads
/// with it) or for one overload (`aten::add.t`), which then comes first.
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
    entries: IndexMap<String, Semantics>,
    host: IndexMap<String, KernelFn>,
    eager: IndexMap<String, KernelFn>,
    fixed_sizes: HashSet<String>,
    random: HashSet<String>,
    give_themselves: HashSet<String>,
    fills: HashSet<String>,
    layouts: IndexMap<String, ResultLayout>,
    /// Other names of operators.
    aliases: IndexMap<String, String>,
    libraries: Vec<Library>,
    /// Library and function by operator or overload.
    composites: IndexMap<String, (usize, String)>,
}

/// Graphs by function, or the source's first mistake.
pub type CompiledGraphs = Result<IndexMap<String, Arc<Graph>>, String>;

/// Compiles a source that may call the operators of the catalogue.
pub type CompileFn = fn(&Catalogue) -> CompiledGraphs;

/// Operators defined in TorchScript source. The source is compiled when one of them is first looked up.
pub struct Composites {
    /// Operator or overload (`aten::mse_loss`), and the function of the source that defines it.
    pub functions: Vec<(String, String)>,
    /// Compiles the source.
    pub compile: CompileFn,
}

struct Library {
    compile: CompileFn,
    graphs: OnceLock<IndexMap<String, Arc<Graph>>>,
    /// Held while the source is compiled.
    compiling: Mutex<()>,
}

impl Library {
    /// The graphs of the source. Failures are not kept: a later call may find the stack or memory that an earlier one lacked.
    fn graphs(&self, catalogue: &Catalogue) -> Result<&IndexMap<String, Arc<Graph>>, String> {
        if let Some(graphs) = self.graphs.get() {
            return Ok(graphs);
        }
        let _one = self.compiling.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(graphs) = self.graphs.get() {
            return Ok(graphs);
        }
        let graphs = (self.compile)(catalogue)?;
        Ok(self.graphs.get_or_init(|| graphs))
    }
}

/// What a node of a graph turns out to be.
pub enum Lookup {
    /// An operator with semantics.
    Found(Operator),
    /// The overload is known, but nothing says what it does.
    NoSemantics(Arc<FunctionSchema>),
    /// The operator is known, but takes no such operands.
    NoOverload,
    /// The operator is not known.
    Unknown,
}

impl Registry {
    /// A registry without operators.
    pub fn new(ctx: Arc<Context>) -> Registry {
        Registry {
            catalogue: Catalogue::new(ctx),
            entries: IndexMap::new(),
            host: IndexMap::new(),
            eager: IndexMap::new(),
            fixed_sizes: HashSet::new(),
            random: HashSet::new(),
            give_themselves: HashSet::new(),
            fills: HashSet::new(),
            layouts: IndexMap::new(),
            aliases: IndexMap::new(),
            libraries: Vec::new(),
            composites: IndexMap::new(),
        }
    }

    /// The context of the names and types.
    pub fn ctx(&self) -> &Arc<Context> {
        self.catalogue.ctx()
    }

    /// All schemas.
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// Adds schemas, one a line. None is added unless all of them parse.
    ///
    /// # Errors
    /// The first line that does not parse.
    pub fn add_schemas(&mut self, text: &str) -> Result<(), CatalogueError> {
        self.catalogue.add_schemas(text)
    }

    /// Adds schemas that a test has parsed: see [`Catalogue::add_lines`], which costs little for thousands of them.
    pub fn add_tested_schemas(&mut self, text: &str) {
        self.catalogue.add_lines(text);
    }

    /// Registers semantics for `name`: an operator (`aten::add`) or one overload (`aten::add.Tensor`). A second registration
    /// replaces the first.
    pub fn register(&mut self, name: &str, semantics: Semantics) {
        self.entries.insert(name.to_string(), semantics);
    }

    /// Registers a pointwise entry.
    pub fn pointwise(&mut self, name: &str, entry: Pointwise) {
        self.register(name, Semantics::Pointwise(entry));
    }

    /// Registers an entry that makes a program.
    pub fn program(&mut self, form: Form, name: &str, build: ProgramFn) {
        self.register(name, Semantics::Program(form, Callback::Plain(build)));
    }

    /// Registers an entry that makes a program by a closure, which may have state.
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

    /// Registers a table of kernels.
    pub fn kernels(&mut self, table: &[(&str, KernelFn)]) {
        for (name, kernel) in table {
            self.kernel(name, *kernel);
        }
    }

    /// Registers a table of host operators: what `name` does on numbers, strings and containers, for all its overloads without
    /// a tensor. Its tensor overloads have another entry.
    pub fn host(&mut self, table: &[(&str, KernelFn)]) {
        for (name, kernel) in table {
            self.host.insert((*name).to_string(), *kernel);
        }
    }

    /// Registers what the interpreter runs for the overload `name` instead of its program, where strides matter that programs do not know
    /// (`clone` keeps them, `view` may not copy). It has to give the same elements as the program.
    pub fn eager(&mut self, table: &[(&str, KernelFn)]) {
        for (name, kernel) in table {
            self.eager.insert((*name).to_string(), *kernel);
        }
    }

    /// Adds kernels that draw random numbers, of which [`Operator::is_random`] holds.
    pub fn random_kernels(&mut self, entries: &[(&str, KernelFn)]) {
        self.kernels(entries);
        self.random.extend(entries.iter().map(|(name, _)| (*name).to_owned()));
    }

    /// Notes kernels, by operator or overload, of which [`Operator::has_fixed_sizes`] holds: code generation calls them between compiled
    /// kernels.
    pub fn fixed_sizes(&mut self, names: &[&str]) {
        self.fixed_sizes.extend(names.iter().map(ToString::to_string));
    }

    /// Notes views that give back the variable of their argument where nothing has to be done. Other views always give another variable,
    /// whose sizes and strides can be changed without changing the argument's.
    pub fn give_themselves(&mut self, names: &[&str]) {
        self.give_themselves.extend(names.iter().map(ToString::to_string));
    }

    /// Notes operators that give all elements one value: in place they may write where elements share memory, which others refuse.
    pub fn fills(&mut self, names: &[&str]) {
        self.fills.extend(names.iter().map(ToString::to_string));
    }

    /// Says how the results of operators lie in memory. Pointwise entries need no word: theirs lie as their operands do.
    pub fn layouts(&mut self, layout: ResultLayout, operators: &[&str]) {
        for name in operators {
            self.layouts.insert((*name).to_string(), layout);
        }
    }

    /// Registers further names of operators: pairs of a name and what it stands for, overload by overload.
    pub fn aliases(&mut self, pairs: &[(&str, &str)]) {
        for (alias, name) in pairs {
            self.aliases.insert((*alias).to_string(), (*name).to_string());
        }
    }

    /// Names under which other operators go too.
    pub fn alias_names(&self) -> impl Iterator<Item = &str> + '_ {
        self.aliases.keys().map(String::as_str)
    }

    /// What `name` stands for, in-place forms included.
    fn unaliased(&self, name: &str) -> Option<String> {
        if let Some(target) = self.aliases.get(name) {
            return Some(target.clone());
        }
        let target = self.aliases.get(name.strip_suffix('_')?)?;
        Some(format!("{target}_"))
    }

    /// Registers operators that are defined in TorchScript source.
    pub fn composites(&mut self, composites: Composites) {
        let library = self.libraries.len();
        self.libraries.push(Library {
            compile: composites.compile,
            graphs: OnceLock::new(),
            compiling: Mutex::new(()),
        });
        for (name, function) in composites.functions {
            self.composites.insert(name, (library, function));
        }
    }

    /// Names of the operators defined in source.
    pub fn composite_operators(&self) -> impl Iterator<Item = &str> + '_ {
        self.composites.keys().map(String::as_str)
    }

    /// Compiles all sources now.
    ///
    /// # Errors
    /// The first mistake of a source.
    pub fn check_composites(&self) -> Result<(), String> {
        self.libraries
            .iter()
            .try_for_each(|l| l.graphs(&self.catalogue).map(|_| ()))
    }

    fn composite(&self, name: &str) -> Option<Semantics> {
        let (library, function) = self.composites.get(name)?;
        let graphs = self.libraries.get(*library)?.graphs(&self.catalogue).ok()?;
        graphs.get(function).cloned().map(Semantics::Composite)
    }

    /// The entry under `name`, whatever its form.
    fn entry(&self, name: &str) -> Option<Semantics> {
        self.entries.get(name).cloned().or_else(|| self.composite(name))
    }

    /// Names of the host operators.
    pub fn host_operators(&self) -> impl Iterator<Item = &str> + '_ {
        self.host.keys().map(String::as_str)
    }

    /// Names of the overloads for which the interpreter runs a kernel in the program's place.
    pub fn eager_operators(&self) -> impl Iterator<Item = &str> + '_ {
        self.eager.keys().map(String::as_str)
    }

    /// Names under which there are entries, with their semantics.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &Semantics)> + '_ {
        self.entries.iter().map(|(n, s)| (n.as_str(), s))
    }

    /// The operator with overload `overload` of `name`, if both its schema and its semantics are known.
    pub fn find(&self, name: &str, overload: &str) -> Option<Operator> {
        let schema = self.catalogue.get(self.ctx().find_symbol(name)?, overload)?;
        self.operator_of(schema)
    }

    /// What `node` is, by its kind and its operands' types.
    pub fn lookup(&self, graph: &Graph, node: NodeId) -> Lookup {
        self.with_semantics(self.catalogue.resolve(graph, node))
    }

    /// What a call of `name` with operands of these types is.
    pub fn lookup_types(&self, name: SymbolId, operands: &[frazil_ir::TypeId]) -> Lookup {
        self.with_semantics(self.catalogue.resolve_types(name, operands))
    }

    /// The operator that `node` is, if it has semantics.
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

    /// The semantics of a schema's overload: its own entry, its operator's, or that of the functional form it derives from. `x_copy`
    /// without an entry gives copies of what `x` gives.
    pub fn operator_of(&self, schema: Arc<FunctionSchema>) -> Option<Operator> {
        let name = self.ctx().name(schema.name);
        if let Some(found) = self.operator_named(&schema, name) {
            return Some(found);
        }
        if let Some(target) = self.unaliased(name) {
            return self.operator_named(&schema, &target);
        }
        let viewed = self.operator_named(&schema, name.strip_suffix("_copy")?)?;
        Some(Operator { copies: true, ..viewed })
    }

    /// [`Registry::operator_of`] by the entries of the operator `name`.
    fn operator_named(&self, schema: &Arc<FunctionSchema>, name: &str) -> Option<Operator> {
        let ctx = self.ctx();
        let overload = ctx.name(schema.overload).to_string();
        // The replacement speaks of one overload: `view`, not `view.dtype`.
        let own_name = match overload.as_str() {
            "" => name.to_string(),
            overload => format!("{name}.{overload}"),
        };
        let found = |semantics: &Semantics, variant| {
            let eager = match variant {
                Variant::Functional => self.eager.get(&own_name).copied(),
                Variant::InPlace | Variant::Out => None,
            };
            let layout = match (self.layouts.get(name), semantics) {
                (Some(layout), _) => *layout,
                (None, Semantics::Pointwise(_)) => ResultLayout::Elementwise,
                (None, _) => ResultLayout::AsComputed,
            };
            Some(Operator {
                layout,
                schema: schema.clone(),
                semantics: semantics.clone(),
                variant,
                eager,
                fixed_sizes: self.fixed_sizes.contains(name) || self.fixed_sizes.contains(&own_name),
                random: self.random.contains(name) || self.random.contains(&own_name),
                copies: false,
                gives_itself: semantics.form() != Form::View || self.give_themselves.contains(name),
                fills: self.fills.contains(name),
                prepared: Arc::default(),
            })
        };
        let exact = if overload.is_empty() {
            None
        } else {
            self.entry(&own_name)
        };
        if let Some(semantics) = exact {
            return found(&semantics, Variant::Functional);
        }
        let out = writes_out(schema);
        if out
            && let Some(base) = self.functional_overload(schema, name)
            && let Some(semantics) = self.entry(&base)
        {
            return found(&semantics, Variant::Out).map(|op| Operator {
                eager: self.eager.get(&base).copied(),
                ..op
            });
        }
        // A general entry speaks of tensors; the overloads on numbers and lists have entries of their own.
        let tensors = |a: &Argument| match ctx.type_kind(a.ty) {
            TypeKind::Tensor(_) => true,
            TypeKind::Optional(e) | TypeKind::List(e) => is_tensor_like(ctx, e),
            _ => false,
        };
        let own = self.entry(name);
        let general = schema.arguments.iter().any(tensors) || schema.returns.iter().any(tensors);
        if !general {
            if let Some(kernel) = self.host.get(name) {
                return found(&Semantics::Kernel(Callback::Plain(*kernel)), Variant::Functional);
            }
            // An operator that is a kernel for everything (`prim::ListConstruct`).
            return own
                .filter(|s| s.form() == Form::Kernel)
                .and_then(|s| found(&s, Variant::Functional));
        }
        if let Some(semantics) = own {
            return found(&semantics, if out { Variant::Out } else { Variant::Functional });
        }
        let functional = name.strip_suffix('_').filter(|_| schema.is_mutable())?;
        let semantics = self
            .entry(&format!("{functional}.{overload}"))
            .or_else(|| self.entry(functional))?;
        let base = match overload.as_str() {
            "" => functional.to_string(),
            overload => format!("{functional}.{overload}"),
        };
        found(&semantics, Variant::InPlace).map(|op| Operator {
            eager: self.eager.get(&base).copied(),
            ..op
        })
    }
}

impl Registry {
    /// The overload that an `out` overload of the operator `name` writes the results of, as it would stand in the table: the one with
    /// the same arguments but for those that are written.
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

fn is_tensor_like(ctx: &Context, ty: frazil_ir::TypeId) -> bool {
    match ctx.type_kind(ty) {
        TypeKind::Tensor(_) => true,
        TypeKind::Optional(e) => ctx.is_tensor(e),
        _ => false,
    }
}

/// True when the results are arguments behind the `*` that the operator writes.
pub fn writes_out(schema: &FunctionSchema) -> bool {
    let outs = out_arguments(schema).count();
    outs > 0 && outs == schema.returns.len()
}

/// The indices of the arguments that an `out` overload writes.
pub fn out_arguments(schema: &FunctionSchema) -> impl Iterator<Item = usize> + '_ {
    let written = |a: &Argument| a.keyword_only && a.alias.as_ref().is_some_and(|x| x.is_write);
    schema
        .arguments
        .iter()
        .enumerate()
        .filter(move |(_, a)| written(a))
        .map(|(i, _)| i)
}
