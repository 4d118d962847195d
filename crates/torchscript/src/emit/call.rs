//! Compilation of calls: of operators, functions, methods and classes.

use std::sync::Arc;

use frazil_ir::schema::{Argument, FunctionSchema};
use frazil_ir::{Constant, FunctionId, SymbolId, TypeId, TypeKind, ValueId, symbols, types};
use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::Ranged;

use super::attribute::sugared_global;
use super::matching::{ArgumentSource, Arguments, Conversion, Matched, Mismatch};
use super::sugared::Sugared;
use super::{Emitter, UNUSED, builtins, name_attribute};
use crate::error::{Result, SourceError};
use crate::names::{Alternatives, foreign_method};

/// The error message for a list argument in place of a tuple.
pub(super) const NO_STATIC_LENGTH: &str = "cannot statically infer the expected size of a list in this context";

/// Maximum number of candidate schemas that an error about a call lists.
const MAX_CANDIDATES: usize = 100;

/// Returns whether Python's module `math` has the function that `path` names.
fn is_math(path: &str) -> bool {
    const OTHERS: &[&str] = &[
        "cbrt",
        "comb",
        "dist",
        "exp2",
        "fsum",
        "hypot",
        "isclose",
        "isqrt",
        "lcm",
        "log2",
        "nextafter",
        "perm",
        "prod",
        "sumprod",
        "trunc",
        "ulp",
    ];
    path.strip_prefix("math.").is_some_and(|name| OTHERS.contains(&name))
}

impl<'f> Emitter<'_, 'f> {
    pub(super) fn call(&mut self, call: &'f ExprCall, hint: Option<TypeId>) -> Result<Sugared<'f>> {
        let callee = self.sugared(&call.func, None)?;
        if let Sugared::Special(special) = callee {
            return self.special(special, call, hint);
        }
        if let Sugared::Builtin(operator, Some(object)) = callee
            && self.names.ctx().name(operator) == "prim::tolist"
        {
            return self.tolist(object, hint, call).map(Sugared::Value);
        }
        if let Sugared::Known(inner) = callee {
            return Ok(*inner);
        }
        if let Sugared::New(ty) = callee {
            self.locate(call);
            return Ok(Sugared::Value(self.op("prim::CreateObject", &[], ty)));
        }
        let arguments = self.arguments(call)?;
        self.call_sugared(callee, arguments, call)
    }

    /// Evaluates the arguments of a call, in order.
    pub(super) fn arguments(&mut self, call: &'f ExprCall) -> Result<Arguments> {
        let mut arguments = Arguments::default();
        for argument in &call.arguments.args {
            if let Expr::Starred(star) = argument {
                match self.sugared(&star.value, None)? {
                    Sugared::Tuple(items) => {
                        for item in items {
                            arguments.positional.push(self.value(item, star)?);
                        }
                    }
                    other => {
                        let tuple = self.value(other, star)?;
                        if !matches!(self.kind_of(tuple), TypeKind::Tuple(_) | TypeKind::NamedTuple(..)) {
                            if self.names.definitions().traces.is_tracing
                                && self.spread_list(tuple, &mut arguments, star)?
                            {
                                continue;
                            }
                            let message = match self.kind_of(tuple) {
                                TypeKind::List(_) => NO_STATIC_LENGTH.to_owned(),
                                _ => format!("{} cannot be used as a tuple", self.shown(self.ty(tuple))),
                            };
                            return self.error("call", message, star);
                        }
                        arguments.positional.extend(self.builder().unpack_tuple(tuple));
                    }
                }
                continue;
            }
            arguments.positional.push(self.expr(argument, None)?);
        }
        for keyword in &call.arguments.keywords {
            let Some(name) = &keyword.arg else {
                return self.error("call", "keyword-arg expansion is not supported", keyword);
            };
            let value = self.expr(&keyword.value, None)?;
            arguments.keywords.push((self.names.ctx().symbol(name), value));
        }
        Ok(arguments)
    }

    /// Emits a call of the sugared value `callee`.
    pub(super) fn call_sugared(
        &mut self,
        callee: Sugared<'f>,
        mut arguments: Arguments,
        node: &impl Ranged,
    ) -> Result<Sugared<'f>> {
        match callee {
            Sugared::Builtin(operator, object) => {
                arguments.object = object;
                let name = self.names.ctx().name(operator).to_owned();
                self.builtin(&name, arguments, node).map(Sugared::Value)
            }
            Sugared::Function(id) => {
                if self.names.definitions().traces.is_tracing
                    && let Some((file, path)) = self.names.definitions().python_function(id)
                {
                    return self.call_python(&file, path, None, &arguments, node);
                }
                let schema = self.names.schema_of(id, self.file, node.range())?;
                let matched = self.match_call(schema, &arguments, node)?;
                let mut inputs = self.carry_out(&matched, node);
                self.locate(node);
                let output = matched.returns.first().copied().unwrap_or(types::NONE);
                if self.names.definitions().is_unused(id) {
                    return Ok(Sugared::Value(self.unused_call(output)));
                }
                let name = matched.schema.name;
                let ty = self.names.ctx().type_of_kind(TypeKind::Function(name));
                let function = self.builder().constant_typed(Constant::Function(name), ty);
                inputs.insert(0, function);
                Ok(Sugared::Value(self.op("prim::CallFunction", &inputs, output)))
            }
            Sugared::Alternatives(index) => {
                let chosen = self.choose_alternative(index, &arguments, node)?;
                self.call_sugared(chosen, arguments, node)
            }
            Sugared::TensorCast(tensor, dtype) => {
                self.locate(node);
                let dtype = self.literal(Constant::Int(dtype.code()));
                arguments.positional.splice(0..0, [tensor, dtype]);
                self.builtin("aten::to", arguments, node).map(Sugared::Value)
            }
            Sugared::Method(object, method) => self.call_method(object, method, arguments, node).map(Sugared::Value),
            Sugared::Type(ty) => self.instantiate(ty, arguments, node).map(Sugared::Value),
            Sugared::Value(object) => {
                // A module or object is called through its method.
                let name = match self.kind_of(object) {
                    TypeKind::Interface(_) => symbols::FORWARD,
                    TypeKind::Class(class) => {
                        let forward = self.names.unit().method(class, symbols::FORWARD);
                        let is_traced = self.names.definitions().python_method(class, "forward").is_some();
                        if is_traced
                            || forward.is_some()
                            || self.names.definitions().overloaded_methods(class, "forward").is_some()
                        {
                            symbols::FORWARD
                        } else {
                            self.names.ctx().symbol("__call__")
                        }
                    }
                    _ => {
                        let message = format!("cannot call a value of type '{}'", self.shown(self.ty(object)));
                        return self.error("call", message, node);
                    }
                };
                let name = self.names.ctx().name(name).to_owned();
                let method = self.attribute(Sugared::Value(object), &name, node)?;
                match method {
                    Sugared::Method(object, symbols::FORWARD) if self.has_hooks(object) => {
                        self.call_with_hooks(object, arguments, node).map(Sugared::Value)
                    }
                    Sugared::Method(object, method) => {
                        self.call_method(object, method, arguments, node).map(Sugared::Value)
                    }
                    _ => self.error("call", "this cannot be called", node),
                }
            }
            Sugared::Path(name) => {
                if let Some(function) = builtins::python_only(&name).filter(|_| is_math(&name)) {
                    return self.python_only(function, node);
                }
                let last = name.rsplit('.').next().unwrap_or(&name);
                let mut error = self.fault("unknown-function", format!("object has no attribute {last}"), node);
                if let Some(operator) = builtins::operator(&name) {
                    error.diagnostic.help = Some(format!("the operator catalogue has no `{operator}` for `{name}`"));
                }
                Err(error.into())
            }
            Sugared::Closure(_) => self.error("call", "a nested function can only be forked", node),
            _ => self.error("call", "this cannot be called", node),
        }
    }

    /// Returns whether calls of a module go through hooks. This holds for source files; in archives, the code calls the
    /// hooks itself.
    fn has_hooks(&self, object: ValueId) -> bool {
        let TypeKind::Class(class) = self.kind_of(object) else {
            return false;
        };
        let class = self.names.unit().class(class).filter(|_| self.file.rules.is_written());
        class.is_some_and(|class| !class.forward_hooks.is_empty() || !class.forward_pre_hooks.is_empty())
    }

    /// Emits the call of a module with hooks. Hooks before `forward` may replace the arguments, hooks after it the result.
    fn call_with_hooks(&mut self, object: ValueId, arguments: Arguments, node: &impl Ranged) -> Result<ValueId> {
        let TypeKind::Class(class) = self.kind_of(object) else {
            return self.error("call", "this cannot be called", node);
        };
        let hooks = |before: bool| {
            let class = self.names.unit().class(class);
            let names = class.map(|class| {
                if before {
                    &class.forward_pre_hooks
                } else {
                    &class.forward_hooks
                }
            });
            names.cloned().unwrap_or_default()
        };
        let (before, after) = (hooks(true), hooks(false));
        if !arguments.keywords.is_empty() {
            return self.error("call", "a module with hooks takes positional arguments only", node);
        }
        self.locate(node);
        let mut input = self.builder().tuple(&arguments.positional);
        let mut given = arguments;
        for hook in before {
            let result = self.call_hook(class, hook, &[object, input], node)?;
            input = match self.kind_of(result) {
                TypeKind::None => continue,
                TypeKind::Tuple(_) => result,
                _ => self.builder().tuple(&[result]),
            };
            given = Arguments::of(&self.builder().unpack_tuple(input));
        }
        let mut output = self.call_method(object, symbols::FORWARD, given, node)?;
        for hook in after {
            let result = self.call_hook(class, hook, &[object, input, output], node)?;
            if self.ty(result) != types::NONE {
                output = result;
            }
        }
        Ok(output)
    }

    fn call_hook(
        &mut self,
        class: SymbolId,
        hook: SymbolId,
        operands: &[ValueId],
        node: &impl Ranged,
    ) -> Result<ValueId> {
        let Some(id) = self.names.unit().method(class, hook) else {
            return self.error("call", "a hook is missing", node);
        };
        let called = self.call_sugared(Sugared::Function(id), Arguments::of(operands), node)?;
        self.value(called, node)
    }

    /// Emits the code for a call of a function with `@torch.jit.unused`, which raises.
    fn unused_call(&mut self, output: TypeId) -> ValueId {
        let text = self.constant(Constant::str(UNUSED));
        let class = self.none();
        self.node("prim::RaiseException", &[text, class], &[]);
        self.uninitialized(output)
    }

    /// Returns the function that a call with these arguments selects from the overloaded functions with the index `index`.
    fn choose_alternative(&mut self, index: usize, arguments: &Arguments, node: &impl Ranged) -> Result<Sugared<'f>> {
        match self.names.definitions().alternatives.get(index).cloned() {
            Some(Alternatives::Signatures(functions)) => {
                let chosen = self.choose_function(&functions, arguments, node)?;
                match functions.get(chosen) {
                    Some(&id) => Ok(Sugared::Function(id)),
                    None => self.error("overload", "no overload fits", node),
                }
            }
            Some(Alternatives::Flag(choice)) => {
                let flag = self.names.ctx().symbol(&choice.flag);
                let named = arguments.keywords.iter().find(|(name, _)| *name == flag);
                let given = named
                    .map(|(_, value)| *value)
                    .or(arguments.positional.get(choice.position).copied());
                let flag = match given.map(|value| self.graph.constant(value).and_then(|c| c.as_bool())) {
                    None => false,
                    Some(Some(flag)) => flag,
                    Some(None) => {
                        let message = format!("value for boolean argument '{}' is not a literal", choice.flag);
                        return self.error("call", message, node);
                    }
                };
                let name = if flag { choice.when_true } else { choice.when_false };
                match self.names.global(&name)? {
                    Some(global) => Ok(sugared_global(global)),
                    None => self.error("call", format!("undefined value {name}"), node),
                }
            }
            None => self.error("call", "this cannot be called", node),
        }
    }

    /// Returns the index in `functions` of the first one that accepts these arguments.
    fn choose_function(
        &mut self,
        functions: &[FunctionId],
        arguments: &Arguments,
        node: &impl Ranged,
    ) -> Result<usize> {
        let mut schemas = Vec::with_capacity(functions.len());
        for &id in functions {
            schemas.push(Arc::new(self.names.schema_of(id, self.file, node.range())?));
        }
        match self.matcher().choose(&schemas, arguments) {
            Ok(matched) => Ok(schemas
                .iter()
                .position(|schema| Arc::ptr_eq(schema, &matched.schema))
                .unwrap_or_default()),
            Err(failures) => Err(self.no_overload(&failures, node).into()),
        }
    }

    /// Returns the method that a call of `method` selects: itself, or the overload that accepts the arguments.
    fn choose_method(
        &mut self,
        class: SymbolId,
        object: ValueId,
        method: SymbolId,
        arguments: &Arguments,
        node: &impl Ranged,
    ) -> Result<SymbolId> {
        let ctx = Arc::clone(self.names.ctx());
        let Some(names) = self.names.definitions().overloaded_methods(class, ctx.name(method)) else {
            return Ok(method);
        };
        let names: Vec<SymbolId> = names.iter().map(|name| ctx.symbol(name)).collect();
        let mut functions = Vec::with_capacity(names.len());
        for &name in &names {
            match self.names.module_method(class, ctx.name(name))? {
                Some(id) => functions.push(id),
                None => return self.no_attribute(object, ctx.name(name), node),
            }
        }
        let mut given = arguments.clone();
        given.object = None;
        given.positional.insert(0, object);
        let chosen = self.choose_function(&functions, &given, node)?;
        Ok(names.get(chosen).copied().unwrap_or(method))
    }

    pub(super) fn match_call(
        &self,
        schema: FunctionSchema,
        arguments: &Arguments,
        node: &impl Ranged,
    ) -> Result<Matched> {
        self.matcher()
            .choose(&[Arc::new(schema)], arguments)
            .map_err(|failures| self.no_overload(&failures, node).into())
    }

    /// Returns the error about a call that no schema accepts, with the reason for each schema as in PyTorch.
    fn no_overload(&self, failures: &[(Arc<FunctionSchema>, Mismatch)], node: &impl Ranged) -> Box<SourceError> {
        let ctx = self.names.ctx();
        let one = |(schema, why): &(Arc<FunctionSchema>, Mismatch)| {
            let name = ctx.name(schema.name);
            let text = schema.display(ctx).to_string();
            // Functions and methods of programs are called by their own name, not the qualified one.
            let simple = if name.contains("::") {
                name
            } else {
                name.rsplit('.').next().unwrap_or(name)
            };
            let rest = text.strip_prefix(name).unwrap_or(&text);
            // What a NamedTuple is made by returns nothing, as PyTorch has it.
            let rest = match schema.returns.first().map(|result| ctx.type_kind(result.ty)) {
                Some(TypeKind::NamedTuple(..)) if !name.contains("::") => {
                    let (head, _) = rest.rsplit_once(" -> ").unwrap_or((rest, ""));
                    format!("{head} -> ()")
                }
                _ => rest.to_owned(),
            };
            [format!("{simple}{rest}:"), why.describe(ctx)]
        };
        let message = match failures {
            [only] => one(only).join("\n"),
            many => many.iter().take(MAX_CANDIDATES).map(one).fold(
                "Arguments for call are not valid.\nThe following variants are available:".to_owned(),
                |text, [schema, why]| format!("{text}\n  \n  {schema}\n  {why}"),
            ),
        };
        self.fault("overload", message, node)
    }

    pub(super) fn call_method(
        &mut self,
        object: ValueId,
        method: SymbolId,
        mut arguments: Arguments,
        node: &impl Ranged,
    ) -> Result<ValueId> {
        let ctx = Arc::clone(self.names.ctx());
        if self.names.definitions().traces.is_tracing
            && let TypeKind::Class(class) = self.kind_of(object)
            && let Some((file, path)) = self.names.definitions().python_method(class, ctx.name(method))
        {
            let called = self.call_python(&file, path, Some(object), &arguments, node)?;
            return self.value(called, node);
        }
        let method = match self.kind_of(object) {
            TypeKind::Class(class) => self.choose_method(class, object, method, &arguments, node)?,
            _ => method,
        };
        let schema = match self.kind_of(object) {
            TypeKind::Class(class) => match self.names.unit().method(class, method) {
                Some(id) => Some(self.names.schema_of(id, self.file, node.range())?),
                None => foreign_method(&ctx, class, method),
            },
            TypeKind::Interface(interface) => self
                .names
                .unit()
                .class(interface)
                .and_then(|class| class.signatures.get(&method))
                .cloned(),
            _ => None,
        };
        let Some(schema) = schema else {
            return self.no_attribute(object, ctx.name(method), node);
        };
        arguments.object = None;
        arguments.positional.insert(0, object);
        let matched = self.match_call(schema, &arguments, node)?;
        let inputs = self.carry_out(&matched, node);
        self.locate(node);
        let output = matched.returns.first().copied().unwrap_or(types::NONE);
        if let TypeKind::Class(class) = self.kind_of(object)
            && let Some(id) = self.names.unit().method(class, method)
            && self.names.definitions().is_unused(id)
        {
            return Ok(self.unused_call(output));
        }
        let call = self.node("prim::CallMethod", &inputs, &[]);
        name_attribute(&mut self.graph, call, method);
        Ok(self.graph.add_output(call, output))
    }

    /// Emits an instantiation of a class or NamedTuple: `Class(...)`.
    pub(super) fn instantiate(&mut self, ty: TypeId, arguments: Arguments, node: &impl Ranged) -> Result<ValueId> {
        let ctx = Arc::clone(self.names.ctx());
        match ctx.type_kind(ty) {
            TypeKind::NamedTuple(name, names, elements) => {
                let defaults = self
                    .names
                    .unit()
                    .class(name)
                    .map(|class| class.constants.clone())
                    .unwrap_or_default();
                let fields = ctx.symbols(names).iter().zip(ctx.types(elements));
                let schema = FunctionSchema {
                    name,
                    overload: symbols::EMPTY,
                    arguments: fields
                        .map(|(&field, &ty)| {
                            let mut argument = Argument::plain(field, ty);
                            argument.default = defaults.get(&field).cloned();
                            argument
                        })
                        .collect(),
                    returns: vec![Argument::plain(symbols::EMPTY, ty)],
                    is_vararg: false,
                    is_varret: false,
                };
                let matched = self.match_call(schema, &arguments, node)?;
                let inputs = self.carry_out(&matched, node);
                self.locate(node);
                Ok(self.op("prim::TupleConstruct", &inputs, ty))
            }
            TypeKind::Class(class) => {
                self.locate(node);
                let object = self.op("prim::CreateObject", &[], ty);
                let init = ctx.symbol("__init__");
                if self.names.unit().method(class, init).is_some() {
                    self.call_method(object, init, arguments, node)?;
                } else if self.file.rules.is_written() {
                    let name = ctx.name(class);
                    let name = name.rsplit('.').next().unwrap_or(name);
                    let message = format!("Class {name} does not have an __init__ function defined");
                    return self.error("call", message, node);
                }
                Ok(object)
            }
            _ => {
                let message = format!("cannot call a value of type '{}'", self.shown(ty));
                self.error("call", message, node)
            }
        }
    }

    /// Emits a call of operator `name`. Several results are packed into a tuple; without results, the value is `None`.
    pub(super) fn builtin(&mut self, name: &str, arguments: Arguments, node: &impl Ranged) -> Result<ValueId> {
        if let Some(value) = self.upgraded(name, &arguments, node)? {
            return Ok(value);
        }
        if let Some(value) = self.magic(name, &arguments, node)? {
            return Ok(value);
        }
        if let Some(value) = self.number_first(name, &arguments, node)? {
            return Ok(value);
        }
        let ctx = Arc::clone(self.names.ctx());
        let operator = ctx.symbol(name);
        let schemas: Vec<Arc<FunctionSchema>> = self.names.catalogue().overloads(operator).collect();
        if schemas.is_empty() {
            let message = format!(
                "Unknown builtin op: {name}.\nCould not find any similar ops to {name}. This op may not exist or may not be currently supported in TorchScript."
            );
            return self.error("unknown-operator", message, node);
        }
        let matched = match self.matcher().choose(&schemas, &arguments) {
            Ok(matched) => matched,
            Err(failures) => return Err(self.no_overload(&failures, node).into()),
        };
        let inputs = self.carry_out(&matched, node);
        self.locate(node);
        let alias = self.names.catalogue().alias(operator).filter(|a| a.is_compiled());
        let kind = alias.map_or(operator, |a| a.operator);
        let produced = self.builder().node(kind, &inputs, &matched.returns);
        match *self.graph.node_outputs(produced) {
            [one] => Ok(one),
            [] => Ok(self.none()),
            ref many => {
                let many = many.to_vec();
                let names: Vec<SymbolId> = matched.schema.returns.iter().map(|result| result.name).collect();
                if names.len() != many.len() || names.contains(&symbols::EMPTY) {
                    return Ok(self.builder().tuple(&many));
                }
                // Results with names are fields.
                let types: Vec<TypeId> = many.iter().map(|&value| self.ty(value)).collect();
                let (names, types) = (ctx.symbol_list(&names), ctx.type_list(&types));
                let ty = ctx.type_of_kind(TypeKind::NamedTuple(symbols::EMPTY, names, types));
                Ok(self.builder().op(symbols::PRIM_TUPLE_CONSTRUCT, &many, ty))
            }
        }
    }

    /// Emits the argument conversions of a matched call and returns the operands for the schema.
    pub(super) fn carry_out(&mut self, matched: &Matched, node: &impl Ranged) -> Vec<ValueId> {
        self.locate(node);
        matched.inputs.iter().map(|source| self.argument(source)).collect()
    }

    fn argument(&mut self, source: &ArgumentSource) -> ValueId {
        match source {
            ArgumentSource::Value(value, conversion) => self.apply(*value, conversion),
            ArgumentSource::Repeat(value, count) => {
                let element = self.ty(*value);
                self.builder().list(element, &vec![*value; *count as usize])
            }
            ArgumentSource::Default(constant) => self.constant(constant.clone()),
            ArgumentSource::List(element, items) => {
                let items: Vec<ValueId> = items.iter().map(|item| self.argument(item)).collect();
                self.builder().list(*element, &items)
            }
        }
    }

    /// Emits the conversion of `value` and returns the converted value.
    pub(super) fn apply(&mut self, value: ValueId, conversion: &Conversion) -> ValueId {
        match conversion {
            Conversion::None => value,
            Conversion::EmptyList(element) => {
                // The literal itself takes the type, so that what was stored under a name and is filled later is the same list.
                let list = self.names.ctx().list_of(*element);
                self.graph.set_type(value, list);
                self.empty_lists.remove(&value);
                value
            }
            Conversion::TupleToList(element) => {
                let items = self.builder().unpack_tuple(value);
                self.builder().list(*element, &items)
            }
            Conversion::Tuple(parts) => {
                let items = self.builder().unpack_tuple(value);
                let converted: Vec<ValueId> = items
                    .into_iter()
                    .zip(parts)
                    .map(|(item, part)| self.apply(item, part))
                    .collect();
                self.builder().tuple(&converted)
            }
            Conversion::Operator(operator, ty) => self.op(operator, &[value], *ty),
        }
    }
}
