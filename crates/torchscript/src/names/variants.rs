//! Functions and methods of source that `torch.jit.trace` records.
//!
//! A traced function is first compiled in a special mode. Parameters have the types of the example inputs, defaults and global values are constants, and the
//! functions that it calls are compiled in the same mode. The caller then runs that code once on the example inputs ([`Tracer`](crate::options::Tracer)). The
//! recorded graph replaces the code.

use std::sync::Arc;

use frazil_ir::arguments::AssignmentError;
use frazil_ir::schema::{Argument, FunctionSchema};
use frazil_ir::{Constant, Context, FunctionId, ObjectId, SymbolId, TypeId, TypeKind, symbols, types};
use ruff_python_ast::{Stmt, StmtFunctionDef};

use super::definitions::Definitions;
use super::traced::Variant;
use crate::error::{Result, SourceError};
use crate::options::TraceRequest;
use crate::source::parameters::assignment_message;
use crate::source::{DefPath, SourceFile};

impl Definitions {
    /// Returns the type of a parameter for which `input` is the example input.
    pub(crate) fn type_of_input(&self, input: &Constant) -> TypeId {
        fn plain(ctx: &Context, ty: TypeId) -> TypeId {
            match ctx.type_kind(ty) {
                TypeKind::Tensor(_) => types::TENSOR,
                TypeKind::List(element) => ctx.list_of(plain(ctx, element)),
                TypeKind::Dict(key, value) => ctx.dict_of(plain(ctx, key), plain(ctx, value)),
                TypeKind::Tuple(elements) => {
                    let elements = ctx.types(elements).to_vec();
                    let elements: Vec<TypeId> = elements.into_iter().map(|ty| plain(ctx, ty)).collect();
                    ctx.tuple_of(&elements)
                }
                _ => ty,
            }
        }
        plain(&self.ctx, input.ty(&self.ctx))
    }

    /// Returns the names and types of the parameters to which the example inputs belong. The inputs are in the order of the parameters, keyword-only ones
    /// included, after `skipped` other parameters. So they are not assigned as the arguments of a call are.
    fn types_of_inputs(
        &self,
        file: &SourceFile,
        def: &StmtFunctionDef,
        skipped: usize,
        inputs: &[Constant],
    ) -> Result<Vec<(SymbolId, TypeId)>> {
        let parameters = def.parameters.iter_non_variadic_params().skip(skipped).zip(inputs);
        let types = parameters.map(|(parameter, input)| {
            let name = self.ctx.symbol(&parameter.parameter.name);
            (name, self.type_of_input(input))
        });
        let types: Vec<(SymbolId, TypeId)> = types.collect();
        if types.len() < inputs.len() {
            let error = AssignmentError::TooMany {
                accepted: types.len(),
                passed: inputs.len(),
            };
            let message = assignment_message(&def.name, error, "");
            return Err(file.error("construct", message, def).into());
        }
        Ok(types)
    }

    /// Returns traced function number `number`, which is compiled at its first call.
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
        let given = self.types_of_inputs(&file, def, 0, &inputs)?;
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

    /// Returns a function compiled with Python's rules for arguments of the given types. All other parameters have their defaults.
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

    /// Traces a method of a module.
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
        let given = self.types_of_inputs(&file, def, 1, &inputs)?;
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
