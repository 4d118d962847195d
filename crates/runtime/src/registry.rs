//! The registry: schemas and entries of the dialects that an embedder wants. There is no global one.

use crate::op::{Form, KernelFn, Operator, ProgramFn, Semantics, Variant};
use crate::pointwise::Pointwise;
use frazil_ir::schema::{Argument, Catalogue, FunctionSchema, Resolution};
use frazil_ir::{Context, Graph, NodeId, SymbolId, TypeKind};
use indexmap::IndexMap;
use std::sync::Arc;

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
/// registry.add_schemas("mine::swish(Tensor self) -> Tensor");
/// registry.pointwise("mine::swish", Pointwise::new(&["self"], Promotion::IntToFloat, |b| b.x(0) * b.x(0).sigmoid()));
/// assert!(registry.find("mine::swish", "").is_some());
/// ```
pub struct Registry {
    catalogue: Catalogue,
    entries: IndexMap<String, Semantics>,
    host: IndexMap<String, KernelFn>,
    eager: IndexMap<String, KernelFn>,
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

    /// Adds schemas, one a line; see [`Catalogue::add_lines`].
    pub fn add_schemas(&mut self, text: &str) {
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
        self.register(name, Semantics::Program(form, build));
    }

    /// Registers a kernel.
    pub fn kernel(&mut self, name: &str, kernel: KernelFn) {
        self.register(name, Semantics::Kernel(kernel));
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

    /// Registers what the interpreter runs for `name` instead of its program, where strides matter that programs do not know
    /// (`clone` keeps them, `view` may not copy). It has to give the same elements as the program.
    pub fn eager(&mut self, table: &[(&str, KernelFn)]) {
        for (name, kernel) in table {
            self.eager.insert((*name).to_string(), *kernel);
        }
    }

    /// Names of the host operators.
    pub fn host_operators(&self) -> impl Iterator<Item = &str> + '_ {
        self.host.keys().map(String::as_str)
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

    /// The semantics of a schema's overload: its own entry, its operator's, or that of the functional form it derives from.
    pub fn operator_of(&self, schema: Arc<FunctionSchema>) -> Option<Operator> {
        let ctx = self.ctx();
        let (name, overload) = (ctx.name(schema.name).to_string(), ctx.name(schema.overload).to_string());
        // The replacement speaks of the operator's own overload: `view`, not `view.dtype`.
        let overload_is_plain = overload.is_empty();
        let found = |semantics: &Semantics, variant| {
            let eager = if variant == Variant::Functional {
                self.eager.get(&name).copied()
            } else {
                None
            };
            Some(Operator {
                schema: schema.clone(),
                semantics: semantics.clone(),
                variant,
                eager: eager.filter(|_| overload_is_plain),
            })
        };
        let exact = if overload.is_empty() {
            None
        } else {
            self.entries.get(&format!("{name}.{overload}"))
        };
        if let Some(semantics) = exact {
            return found(semantics, Variant::Functional);
        }
        // A general entry speaks of tensors; the overloads on numbers and lists have entries of their own.
        let tensors = |a: &Argument| match ctx.type_kind(a.ty) {
            TypeKind::Tensor(_) => true,
            TypeKind::Optional(e) | TypeKind::List(e) => is_tensor_like(ctx, e),
            _ => false,
        };
        let own = self.entries.get(&name);
        let general = schema.arguments.iter().any(tensors) || schema.returns.iter().any(tensors);
        if !general {
            if let Some(kernel) = self.host.get(&name) {
                return found(&Semantics::Kernel(*kernel), Variant::Functional);
            }
            // An operator that is a kernel for everything (`prim::ListConstruct`).
            return own
                .filter(|s| s.form() == Form::Kernel)
                .and_then(|s| found(s, Variant::Functional));
        }
        if let Some(semantics) = own {
            let variant = if writes_out(&schema) {
                Variant::Out
            } else {
                Variant::Functional
            };
            return found(semantics, variant);
        }
        if writes_out(&schema) {
            let base = overload.strip_suffix("_out").unwrap_or_default();
            let semantics = self.entries.get(&format!("{name}.{base}"))?;
            return found(semantics, Variant::Out);
        }
        let functional = name.strip_suffix('_').filter(|_| schema.is_mutable())?;
        let semantics = self
            .entries
            .get(&format!("{functional}.{overload}"))
            .or_else(|| self.entries.get(functional))?;
        found(semantics, Variant::InPlace)
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
