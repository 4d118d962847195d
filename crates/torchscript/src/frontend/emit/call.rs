//! Calls of operators, functions, methods and classes.

use std::sync::Arc;

use frazil_ir::schema::FunctionSchema;
use frazil_ir::{Constant, SymbolId, TypeId, TypeKind, ValueId, symbols, types};
use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::Ranged;

use super::matching::{Arguments, Conversion, Matched, Plan};
use super::sugared::Sugared;
use super::{Emitter, builtins, name_attribute};
use crate::frontend::Result;
use crate::frontend::program::plain_argument;

impl<'f> Emitter<'_, '_, 'f> {
    pub(super) fn call(&mut self, call: &'f ExprCall, hint: Option<TypeId>) -> Result<Sugared<'f>> {
        let callee = self.sugared(&call.func, None)?;
        if let Sugared::Special(special) = callee {
            return self.special(special, call, hint);
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
                            return self.error("call", "only a tuple can be spread into arguments", star);
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
                return self.error("call", "`**` is not supported in TorchScript", keyword);
            };
            let value = self.expr(&keyword.value, None)?;
            arguments.keywords.push((self.program.ctx.symbol(name), value));
        }
        Ok(arguments)
    }

    /// Calls what `callee` stands for.
    pub(super) fn call_sugared(
        &mut self,
        callee: Sugared<'f>,
        mut arguments: Arguments,
        node: &impl Ranged,
    ) -> Result<Sugared<'f>> {
        match callee {
            Sugared::Builtin(operator, object) => {
                arguments.object = object;
                let name = self.program.ctx.name(operator).to_owned();
                self.builtin(&name, arguments, node).map(Sugared::Value)
            }
            Sugared::Function(id) => {
                let schema = self.program.schema_of(id, self.file, node)?;
                let matched = self.match_call(schema, &arguments, node)?;
                let mut inputs = self.carry_out(&matched, node);
                self.locate(node);
                let name = matched.schema.name;
                let ty = self.program.ctx.type_of_kind(TypeKind::Function(name));
                let function = self.builder().constant_typed(Constant::Function(name), ty);
                inputs.insert(0, function);
                let output = matched.returns.first().copied().unwrap_or(types::NONE);
                Ok(Sugared::Value(self.op("prim::CallFunction", &inputs, output)))
            }
            Sugared::Method(object, method) => self.call_method(object, method, arguments, node).map(Sugared::Value),
            Sugared::Type(ty) => self.instantiate(ty, arguments, node).map(Sugared::Value),
            Sugared::Value(object) => {
                // A module or object is called through its method.
                let name = match self.kind_of(object) {
                    TypeKind::Interface(_) => symbols::FORWARD,
                    TypeKind::Class(class) => {
                        let forward = self.program.unit.method(class, symbols::FORWARD);
                        if forward.is_some() {
                            symbols::FORWARD
                        } else {
                            self.program.ctx.symbol("__call__")
                        }
                    }
                    _ => {
                        let message = format!("a `{}` cannot be called", self.shown(self.ty(object)));
                        return self.error("call", message, node);
                    }
                };
                let name = self.program.ctx.name(name).to_owned();
                let method = self.attribute(Sugared::Value(object), &name, node)?;
                match method {
                    Sugared::Method(object, method) => {
                        self.call_method(object, method, arguments, node).map(Sugared::Value)
                    }
                    _ => self.error("call", "this cannot be called", node),
                }
            }
            Sugared::Path(name) => {
                let mut error = self.fault("unknown-function", format!("unknown function `{name}`"), node);
                if let Some(operator) = builtins::operator(&name) {
                    error.diagnostic.help = Some(format!("the operator catalogue has no `{operator}`"));
                }
                Err(error.into())
            }
            Sugared::Closure(_) => self.error("call", "a nested function can only be forked", node),
            _ => self.error("call", "this cannot be called", node),
        }
    }

    pub(super) fn match_call(
        &self,
        schema: FunctionSchema,
        arguments: &Arguments,
        node: &impl Ranged,
    ) -> Result<Matched> {
        let name = self.program.ctx.name(schema.name).to_owned();
        self.matcher()
            .choose(&[Arc::new(schema)], arguments)
            .or_else(|failures| {
                let why = failures
                    .first()
                    .map_or_else(String::new, |(_, why)| why.describe(&self.program.ctx));
                self.error("call", format!("`{name}` cannot be called so: {why}"), node)
            })
    }

    pub(super) fn call_method(
        &mut self,
        object: ValueId,
        method: SymbolId,
        mut arguments: Arguments,
        node: &impl Ranged,
    ) -> Result<ValueId> {
        let ctx = Arc::clone(&self.program.ctx);
        let schema = match self.kind_of(object) {
            TypeKind::Class(class) => match self.program.unit.method(class, method) {
                Some(id) => Some(self.program.schema_of(id, self.file, node)?),
                None => None,
            },
            TypeKind::Interface(interface) => self
                .program
                .unit
                .class(interface)
                .and_then(|class| class.signatures.get(&method))
                .cloned(),
            _ => None,
        };
        let Some(schema) = schema else {
            let message = format!(
                "a `{}` has no method `{}`",
                self.shown(self.ty(object)),
                ctx.name(method)
            );
            return self.error("attribute", message, node);
        };
        arguments.object = None;
        arguments.positional.insert(0, object);
        let matched = self.match_call(schema, &arguments, node)?;
        let inputs = self.carry_out(&matched, node);
        self.locate(node);
        let call = self.node("prim::CallMethod", &inputs, &[]);
        name_attribute(&mut self.graph, call, method);
        Ok(self
            .graph
            .add_output(call, matched.returns.first().copied().unwrap_or(types::NONE)))
    }

    /// `Class(...)`, `NamedTuple(...)`
    pub(super) fn instantiate(&mut self, ty: TypeId, arguments: Arguments, node: &impl Ranged) -> Result<ValueId> {
        let ctx = Arc::clone(&self.program.ctx);
        match ctx.type_kind(ty) {
            TypeKind::NamedTuple(name, names, elements) => {
                let defaults = self
                    .program
                    .unit
                    .class(name)
                    .map(|class| class.constants.clone())
                    .unwrap_or_default();
                let fields = ctx.symbols(names).iter().zip(ctx.types(elements));
                let schema = FunctionSchema {
                    name,
                    overload: symbols::EMPTY,
                    arguments: fields
                        .map(|(&field, &ty)| {
                            let mut argument = plain_argument(field, ty);
                            argument.default = defaults.get(&field).cloned();
                            argument
                        })
                        .collect(),
                    returns: vec![plain_argument(symbols::EMPTY, ty)],
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
                if self.program.unit.method(class, init).is_some() {
                    self.call_method(object, init, arguments, node)?;
                } else if !arguments.positional.is_empty() || !arguments.keywords.is_empty() {
                    let message = format!("`{}` has no `__init__` to take arguments", self.shown(ty));
                    return self.error("call", message, node);
                }
                Ok(object)
            }
            _ => {
                let message = format!("the type `{}` cannot be instantiated", self.shown(ty));
                self.error("call", message, node)
            }
        }
    }

    /// Calls operator `name`. Several results come back as a tuple, none as `None`.
    pub(super) fn builtin(&mut self, name: &str, arguments: Arguments, node: &impl Ranged) -> Result<ValueId> {
        if let Some(value) = self.upgraded(name, &arguments, node)? {
            return Ok(value);
        }
        let ctx = Arc::clone(&self.program.ctx);
        let operator = ctx.symbol(name);
        let schemas: Vec<Arc<FunctionSchema>> = self.program.catalogue.overloads(operator).collect();
        if schemas.is_empty() {
            return self.error("unknown-operator", format!("unknown operator `{name}`"), node);
        }
        let matched = match self.matcher().choose(&schemas, &arguments) {
            Ok(matched) => matched,
            Err(failures) => {
                let given: Vec<String> = arguments
                    .object
                    .iter()
                    .chain(&arguments.positional)
                    .map(|&value| self.shown(self.ty(value)))
                    .chain(
                        arguments
                            .keywords
                            .iter()
                            .map(|(name, value)| format!("{}={}", ctx.name(*name), self.shown(self.ty(*value)))),
                    )
                    .collect();
                let message = format!("no overload of `{name}` takes ({})", given.join(", "));
                let mut error = self.fault("overload", message, node);
                let candidates: Vec<String> = failures
                    .iter()
                    .take(8)
                    .map(|(schema, why)| format!("{}: {}", schema.display(&ctx), why.describe(&ctx)))
                    .collect();
                error.diagnostic.help = Some(candidates.join("\n        "));
                return Err(error.into());
            }
        };
        let inputs = self.carry_out(&matched, node);
        self.locate(node);
        let kind = builtins::canonical(name).map_or(operator, |name| ctx.symbol(&name));
        let produced = self.builder().node(kind, &inputs, &matched.returns);
        match *self.graph.node_outputs(produced) {
            [one] => Ok(one),
            [] => Ok(self.none()),
            ref many => {
                let many = many.to_vec();
                Ok(self.builder().tuple(&many))
            }
        }
    }

    /// Carries out the conversions of a matched call and gives the operands.
    pub(super) fn carry_out(&mut self, matched: &Matched, node: &impl Ranged) -> Vec<ValueId> {
        self.locate(node);
        matched.inputs.iter().map(|plan| self.plan(plan)).collect()
    }

    pub(super) fn plan(&mut self, plan: &Plan) -> ValueId {
        match plan {
            Plan::Value(value, conversion) => self.apply(*value, conversion),
            Plan::Repeat(value, count) => {
                let element = self.ty(*value);
                self.builder().list(element, &vec![*value; *count as usize])
            }
            Plan::Default(constant) => self.constant(constant.clone()),
            Plan::List(element, items) => {
                let items: Vec<ValueId> = items.iter().map(|item| self.plan(item)).collect();
                self.builder().list(*element, &items)
            }
        }
    }

    /// Carries out a conversion.
    pub(super) fn apply(&mut self, value: ValueId, conversion: &Conversion) -> ValueId {
        match conversion {
            Conversion::None => value,
            Conversion::EmptyList(element) => {
                // The literal itself takes the type, so that what was stored under a name and is filled later is the same list.
                let list = self.program.ctx.list_of(*element);
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
