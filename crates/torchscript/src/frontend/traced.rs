//! Functions and methods of source that `torch.jit.trace` records.
//!
//! What is traced is compiled in a mode of its own first: parameters have the types of what the function is given, defaults and global values are constants, and
//! functions of the text that it calls are compiled so in turn. Whoever loads the source then runs that code once on the example inputs
//! ([`Tracer`]); what it records takes the code's place.

use std::collections::HashSet;
use std::sync::Arc;

use frazil_ir::schema::{Argument, FunctionSchema};
use frazil_ir::{Constant, Function, FunctionId, Graph, Module, ObjectId, SymbolId, TypeId, TypeKind, symbols, types};
use ruff_python_ast::Stmt;

use super::program::{DefPath, Program};
use super::source::{SourceError, SourceFile};
use super::{LoadOptions, Result};

/// A function that is to be recorded.
#[derive(Debug)]
pub struct TraceRequest {
    /// Its code. The parameters are `inputs`, behind the module of a method.
    pub function: FunctionId,
    /// The example inputs.
    pub inputs: Vec<Constant>,
    /// The module whose method it is.
    pub object: Option<ObjectId>,
    /// Whether a dictionary as result is refused.
    pub strict: bool,
    /// Further names of the function at the top level of the text.
    pub(crate) names: Vec<SymbolId>,
    /// The error where it cannot be traced, without the reason.
    pub(crate) error: Box<SourceError>,
}

/// What tracing knows of a program beside its code.
#[derive(Debug, Default)]
pub struct TraceContext {
    /// Functions that Python runs: their calls are no part of the trace, but what they do is.
    pub inlined: HashSet<FunctionId>,
    /// Classes of modules of which that holds.
    pub classes: HashSet<SymbolId>,
    /// Whether each of these objects was in training mode when it was traced.
    pub training: Vec<(ObjectId, bool)>,
}

/// Runs the code of a request, and gives the graph of what it did.
///
/// # Errors
/// Why that cannot be traced.
pub type Tracer<'a> = &'a (dyn Fn(&Module, &TraceContext, &TraceRequest) -> Result<Graph, String> + Sync);

/// The traces of a program that is being compiled.
#[derive(Default)]
pub(crate) struct Traces {
    /// Whether the body that is compiled is one that Python would run.
    pub(crate) is_tracing: bool,
    pub(crate) context: TraceContext,
    pub(crate) requests: Vec<TraceRequest>,
    /// Functions at the top level and in attributes: how they are traced, and what was made of them.
    pub(crate) functions: Vec<TracedFunction>,
    variants: Vec<Variant>,
}

/// A traced function that code may call.
pub(crate) struct TracedFunction {
    pub(crate) file: Arc<SourceFile>,
    pub(crate) statement: usize,
    pub(crate) inputs: Vec<Constant>,
    pub(crate) strict: bool,
    pub(crate) error: Box<SourceError>,
    pub(crate) id: Option<FunctionId>,
    pub(crate) names: Vec<String>,
}

/// A function that is compiled for arguments of these types.
struct Variant {
    text: Arc<str>,
    statement: usize,
    method: Option<usize>,
    this: Option<TypeId>,
    types: Vec<(SymbolId, TypeId)>,
    id: FunctionId,
}

impl Program<'_> {
    /// The types of example inputs as parameters have them.
    pub(crate) fn type_of_input(&self, input: &Constant) -> TypeId {
        fn plain(program: &Program<'_>, ty: TypeId) -> TypeId {
            let ctx = &program.ctx;
            match ctx.type_kind(ty) {
                TypeKind::Tensor(_) => types::TENSOR,
                TypeKind::List(element) => ctx.list_of(plain(program, element)),
                TypeKind::Dict(key, value) => ctx.dict_of(plain(program, key), plain(program, value)),
                TypeKind::Tuple(elements) => {
                    let elements = ctx.types(elements).to_vec();
                    let elements: Vec<TypeId> = elements.into_iter().map(|ty| plain(program, ty)).collect();
                    ctx.tuple_of(&elements)
                }
                _ => ty,
            }
        }
        plain(self, input.ty(&self.ctx))
    }

    /// The traced function of this number, whose code is compiled when it is first called.
    pub(crate) fn traced_function(&mut self, number: usize) -> Result<Option<FunctionId>> {
        let Some(traced) = self.traces.functions.get(number) else {
            return Ok(None);
        };
        if traced.id.is_some() {
            return Ok(traced.id);
        }
        let (file, statement) = (Arc::clone(&traced.file), traced.statement);
        let (inputs, strict, error) = (traced.inputs.clone(), traced.strict, traced.error.clone());
        let names = traced
            .names
            .iter()
            .map(|name| self.ctx.symbol(&format!("__torch__.{name}")));
        let names = names.collect();
        let Some(Stmt::FunctionDef(def)) = file.statement(statement) else {
            return Ok(None);
        };
        let parameters: Vec<SymbolId> = def
            .parameters
            .iter_non_variadic_params()
            .map(|parameter| self.ctx.symbol(&parameter.parameter.name))
            .collect();
        let given: Vec<(SymbolId, TypeId)> = parameters
            .iter()
            .zip(&inputs)
            .map(|(&name, input)| (name, self.type_of_input(input)))
            .collect();
        if given.len() < inputs.len() {
            let message = format!("{}() is given too many arguments", def.name);
            return Err(file.error("construct", message, def).into());
        }
        let qualified = format!("__torch__.___torch_mangle_{}.{}", self.mangle(), def.name);
        let name = self.ctx.symbol(&qualified);
        let path = DefPath {
            statement,
            method: None,
        };
        let id = self.define_variant(&file, path, name, None, given)?;
        if let Some(traced) = self.traces.functions.get_mut(number) {
            traced.id = Some(id);
        }
        self.traces.requests.push(TraceRequest {
            function: id,
            inputs,
            object: None,
            strict,
            names,
            error,
        });
        Ok(Some(id))
    }

    /// A function as Python runs it on arguments of these types; other parameters have their defaults.
    pub(crate) fn define_variant(
        &mut self,
        file: &Arc<SourceFile>,
        path: DefPath,
        name: SymbolId,
        this: Option<TypeId>,
        given: Vec<(SymbolId, TypeId)>,
    ) -> Result<FunctionId> {
        let known = self.traces.variants.iter().find(|variant| {
            Arc::ptr_eq(&variant.text, &file.text)
                && (variant.statement, variant.method) == (path.statement, path.method)
                && variant.this == this
                && variant.types == given
                && name == symbols::EMPTY
        });
        if let Some(known) = known {
            return Ok(known.id);
        }
        let name = match name {
            symbols::EMPTY => {
                let simple = path.def(file).map_or("f", |def| def.name.as_str());
                let qualified = format!("__torch__.___torch_mangle_{}.{simple}", self.mangle());
                self.ctx.symbol(&qualified)
            }
            name => name,
        };
        let mut arguments: Vec<Argument> = Vec::new();
        if let (Some(this), Some(def)) = (this, path.def(file)) {
            let first = def.parameters.iter_non_variadic_params().next();
            let simple = first.map_or("self", |parameter| parameter.parameter.name.as_str());
            arguments.push(Argument::plain(self.ctx.symbol(simple), this));
        }
        arguments.extend(given.iter().map(|&(name, ty)| Argument::plain(name, ty)));
        let schema = FunctionSchema {
            name,
            overload: symbols::EMPTY,
            arguments,
            returns: Vec::new(),
            is_vararg: false,
            is_varret: false,
        };
        let id = self.add_body(file, path, schema, this.is_some());
        self.traces.context.inlined.insert(id);
        self.traces.variants.push(Variant {
            text: Arc::clone(&file.text),
            statement: path.statement,
            method: path.method,
            this,
            types: given,
            id,
        });
        Ok(id)
    }

    /// Traces a method of a module that is made.
    pub(crate) fn trace_method(
        &mut self,
        object: ObjectId,
        class: SymbolId,
        method: &str,
        inputs: Vec<Constant>,
        strict: bool,
        error: Box<SourceError>,
    ) -> Result<()> {
        let Some((file, path)) = self.python_method(class, method) else {
            let mut error = error;
            error.diagnostic.message = format!("the module has no method `{method}` that can be traced");
            return Err(error.into());
        };
        let Some(def) = path.def(&file) else { return Ok(()) };
        let parameters = def.parameters.iter_non_variadic_params().skip(1);
        let parameters: Vec<SymbolId> = parameters.map(|p| self.ctx.symbol(&p.parameter.name)).collect();
        let given: Vec<(SymbolId, TypeId)> = parameters
            .iter()
            .zip(&inputs)
            .map(|(&name, input)| (name, self.type_of_input(input)))
            .collect();
        if given.len() < inputs.len() {
            let message = format!("{method}() is given too many arguments");
            return Err(file.error("construct", message, def).into());
        }
        let full = self.ctx.symbol(&format!("{}.{method}", self.ctx.name(class)));
        let this = self.ctx.type_of_kind(TypeKind::Class(class));
        let id = self.define_variant(&file, path, full, Some(this), given)?;
        let symbol = self.ctx.symbol(method);
        if let Some(class) = self.unit.classes.get_mut(&class) {
            class.methods.insert(symbol, id);
        }
        self.traces.requests.push(TraceRequest {
            function: id,
            inputs,
            object: Some(object),
            strict,
            names: Vec::new(),
            error,
        });
        Ok(())
    }
}

/// Records what is to be traced, in the order in which it was asked for.
pub(crate) fn run(module: &mut Module, traces: Traces, options: &LoadOptions<'_>) -> Result<()> {
    let Traces { context, requests, .. } = traces;
    if requests.is_empty() {
        return Ok(());
    }
    let ctx = Arc::clone(options.ctx);
    let plain = |ty: TypeId| match ctx.type_kind(ty) {
        TypeKind::Tensor(_) => types::TENSOR,
        TypeKind::Tuple(elements) => {
            let elements = ctx.types(elements).to_vec();
            let each: Vec<TypeId> = elements
                .into_iter()
                .map(|ty| match ctx.is_tensor(ty) {
                    true => types::TENSOR,
                    false => ty,
                })
                .collect();
            ctx.tuple_of(&each)
        }
        _ => ty,
    };
    for request in &requests {
        let traced = match options.trace {
            Some(trace) => trace(module, &context, request),
            None => Err("operators are not known here".to_owned()),
        };
        let graph = traced.map_err(|reason| {
            let mut error = request.error.clone();
            error.diagnostic.message = reason;
            error
        })?;
        let returns = graph
            .outputs()
            .map(|ty| Argument::plain(symbols::EMPTY, plain(graph.ty(ty))));
        let returns = returns.collect();
        let function = module.unit.function_mut(request.function);
        function.schema.returns = returns;
        function.graph = graph;
        let function = function.clone();
        for &name in &request.names {
            let mut other = Function {
                name,
                ..function.clone()
            };
            other.schema.name = name;
            module.unit.add_function(other);
        }
    }
    let traced: HashSet<FunctionId> = requests.iter().map(|request| request.function).collect();
    module
        .unit
        .retain_functions(|id| !context.inlined.contains(&id) || traced.contains(&id));
    Ok(())
}
