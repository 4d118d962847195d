//! Calls: of operators, functions, methods, classes, and the forms with rules of their own.

use std::sync::Arc;

use frazil_ir::schema::FunctionSchema;
use frazil_ir::{AttributeValue, Constant, SymbolId, TypeId, TypeKind, ValueId, symbols, types};
use ruff_python_ast::{Expr, ExprCall, Stmt, StmtFunctionDef};
use ruff_text_size::Ranged;

use super::emit::{Condition, Emitter, name_attribute};
use super::matching::{Arguments, Conversion, Matched, Plan};
use super::program::{plain_argument, string_value};
use super::sugared::{Iterable, Special, Sugared};
use super::{Result, builtins};

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
    fn arguments(&mut self, call: &'f ExprCall) -> Result<Arguments> {
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

    fn match_call(&self, schema: FunctionSchema, arguments: &Arguments, node: &impl Ranged) -> Result<Matched> {
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

    fn call_method(
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
    fn instantiate(&mut self, ty: TypeId, arguments: Arguments, node: &impl Ranged) -> Result<ValueId> {
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
        let produced = self.builder().node(operator, &inputs, &matched.returns);
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
    fn carry_out(&mut self, matched: &Matched, node: &impl Ranged) -> Vec<ValueId> {
        self.locate(node);
        matched.inputs.iter().map(|plan| self.plan(plan)).collect()
    }

    fn plan(&mut self, plan: &Plan) -> ValueId {
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

    // --- special forms

    fn special(&mut self, special: Special, call: &'f ExprCall, hint: Option<TypeId>) -> Result<Sugared<'f>> {
        let args: &'f [Expr] = &call.arguments.args;
        let wrong = |this: &Self, what: &str| this.error("call", what, call);
        let value = match (special, args) {
            (Special::Annotate, [ty, value]) => {
                let ty = self.program.annotation(self.file, ty)?;
                let value = self.expr(value, Some(ty))?;
                let value = self.convert(value, ty, call);
                if !self.program.is_subtype(self.ty(value), ty) {
                    let message = format!(
                        "a `{}` is annotated as `{}`",
                        self.shown(self.ty(value)),
                        self.shown(ty)
                    );
                    return wrong(self, &message);
                }
                let is_optional = matches!(self.program.ctx.type_kind(ty), TypeKind::Optional(_));
                if is_optional && self.ty(value) == types::NONE {
                    self.op("prim::unchecked_cast", &[value], ty)
                } else {
                    value
                }
            }
            (Special::UncheckedCast, [ty, value]) => {
                let ty = self.program.annotation(self.file, ty)?;
                let value = self.expr(value, Some(ty))?;
                let cast = self
                    .graph
                    .defining_node(value)
                    .is_some_and(|n| self.graph.kind(n) == symbols::PRIM_UNCHECKED_CAST);
                self.locate(call);
                if cast && self.ty(value) == ty {
                    value
                } else {
                    self.op("prim::unchecked_cast", &[value], ty)
                }
            }
            (Special::Uninitialized, [ty]) => {
                let ty = self.program.annotation(self.file, ty)?;
                self.locate(call);
                self.uninitialized(ty)
            }
            (Special::Isinstance, [_, _]) => self.isinstance(call)?.value,
            (Special::Getattr, [object, Expr::StringLiteral(name), default @ ..]) => {
                let object = self.sugared(object, None)?;
                let name = string_value(name.value.to_str());
                if let ([default], Sugared::Value(value)) = (default, &object)
                    && !self.has_attribute(*value, &name)
                {
                    return self.sugared(default, hint);
                }
                return self.attribute(object, &name, call);
            }
            (Special::Hasattr, [object, Expr::StringLiteral(name)]) => {
                let object = self.expr(object, None)?;
                let has = self.has_attribute(object, name.value.to_str());
                self.locate(call);
                self.constant(Constant::Bool(has))
            }
            (Special::Fork, [target, rest @ ..]) => self.fork(target, rest, call)?,
            (Special::Wait, [future]) => {
                let future = self.expr(future, None)?;
                self.builtin(
                    "aten::wait",
                    Arguments {
                        positional: vec![future],
                        ..Arguments::default()
                    },
                    call,
                )?
            }
            (Special::Print, _) => {
                let arguments = self.arguments(call)?;
                self.locate(call);
                self.node("prim::Print", &arguments.positional, &[]);
                self.none()
            }
            (Special::Range, [_, ..]) => {
                let arguments = self.arguments(call)?;
                let iterable = match *arguments.positional.as_slice() {
                    [end] => Iterable::Range {
                        start: None,
                        end,
                        step: None,
                    },
                    [start, end] => Iterable::Range {
                        start: Some(start),
                        end,
                        step: None,
                    },
                    [start, end, step] => Iterable::Range {
                        start: Some(start),
                        end,
                        step: Some(step),
                    },
                    _ => return wrong(self, "`range` takes one to three integers"),
                };
                if arguments.positional.iter().any(|&bound| self.ty(bound) != types::INT) {
                    return wrong(self, "`range` takes integers");
                }
                return Ok(Sugared::Iterable(Box::new(iterable)));
            }
            (Special::Enumerate, [inner, start @ ..]) => {
                let inner = self.sugared(inner, None)?;
                let start = match (start, call.arguments.keywords.first()) {
                    ([start], _) => Some(self.expr(start, None)?),
                    (_, Some(keyword)) => Some(self.expr(&keyword.value, None)?),
                    _ => None,
                };
                return Ok(Sugared::Iterable(Box::new(Iterable::Enumerate(inner, start))));
            }
            (Special::Zip, [_, ..]) => {
                let parts: Result<Vec<Sugared<'f>>> = args.iter().map(|part| self.sugared(part, None)).collect();
                return Ok(Sugared::Iterable(Box::new(Iterable::Zip(parts?))));
            }
            (Special::List, []) => {
                self.locate(call);
                let list = self.builder().list(types::TENSOR, &[]);
                self.empty_lists.insert(list);
                list
            }
            (Special::List, [inner]) => {
                let inner = self.sugared(inner, None)?;
                let value = self.value(inner, call)?;
                match self.kind_of(value) {
                    TypeKind::Tuple(_) | TypeKind::NamedTuple(..) => {
                        let items = self.builder().unpack_tuple(value);
                        let element = items.first().map_or(types::TENSOR, |&item| self.ty(item));
                        self.builder().list(element, &items)
                    }
                    _ => self.builtin(
                        "aten::list",
                        Arguments {
                            positional: vec![value],
                            ..Arguments::default()
                        },
                        call,
                    )?,
                }
            }
            (Special::Tuple, [inner]) => return self.sugared(inner, None),
            (Special::Cast(..), []) => return wrong(self, "a value to convert is needed"),
            (Special::Cast(operator, ty), _) => {
                let arguments = self.arguments(call)?;
                if let ([value], true) = (arguments.positional.as_slice(), arguments.keywords.is_empty())
                    && self.ty(*value) == ty
                {
                    return Ok(Sugared::Value(*value));
                }
                self.builtin(operator, arguments, call)?
            }
            _ => return wrong(self, "wrong number or kind of arguments"),
        };
        Ok(Sugared::Value(value))
    }

    fn has_attribute(&self, object: ValueId, name: &str) -> bool {
        let symbol = self.program.ctx.symbol(name);
        match self.kind_of(object) {
            TypeKind::Class(class) => self.program.unit.class(class).is_some_and(|class| {
                class.attributes.contains_key(&symbol)
                    || class.methods.contains_key(&symbol)
                    || class.constants.contains_key(&symbol)
            }),
            TypeKind::Interface(class) => self
                .program
                .unit
                .class(class)
                .is_some_and(|class| class.signatures.contains_key(&symbol)),
            TypeKind::NamedTuple(_, names, _) => self.program.ctx.symbols(names).contains(&symbol),
            TypeKind::Tensor(_) => builtins::tensor_attribute(name).is_some(),
            _ => false,
        }
    }

    /// `isinstance(x, T)`, decided by the type of `x` where that is enough.
    pub(super) fn isinstance(&mut self, call: &'f ExprCall) -> Result<Condition> {
        let [object, classes] = &*call.arguments.args else {
            return self.error("call", "`isinstance` takes a value and a type", call);
        };
        let value = self.expr(object, None)?;
        let mut wanted = Vec::new();
        match classes {
            Expr::Tuple(tuple) => {
                for class in &tuple.elts {
                    wanted.push(self.program.annotation(self.file, class)?);
                }
            }
            class => wanted.push(self.program.annotation(self.file, class)?),
        }
        let ctx = Arc::clone(&self.program.ctx);
        let found = self.ty(value);
        let is = |this: &Self, ty: TypeId| {
            wanted.iter().any(|&wanted| {
                this.program.is_subtype(ty, wanted)
                    || matches!(
                        (ctx.type_kind(wanted), ctx.type_kind(ty)),
                        (TypeKind::AnyTuple, TypeKind::NamedTuple(..)) | (TypeKind::AnyList, TypeKind::List(_))
                    )
            })
        };
        // What the value may be at run time.
        let alternatives: Vec<TypeId> = match ctx.type_kind(found) {
            TypeKind::Optional(inner) => vec![inner, types::NONE],
            TypeKind::Union(members) => ctx.types(members).to_vec(),
            TypeKind::Any => Vec::new(),
            _ => vec![found],
        };
        self.locate(call);
        let matching: Vec<TypeId> = alternatives.iter().copied().filter(|&ty| is(self, ty)).collect();
        let known = match (alternatives.len(), matching.len()) {
            (0, _) => None,
            (all, some) if all == some => Some(true),
            (_, 0) => Some(false),
            _ => None,
        };
        if let Some(known) = known {
            let value = self.constant(Constant::Bool(known));
            return Ok(Condition {
                value,
                when_true: Vec::new(),
                when_false: Vec::new(),
                known: Some(known),
            });
        }
        let node = self.node("prim::isinstance", &[value], &[]);
        self.graph
            .set_attribute(node, symbols::ATTR_TYPES, AttributeValue::Types(wanted.clone()));
        let result = self.graph.add_output(node, types::BOOL);
        let narrow = |types: Vec<TypeId>| match (object, types.as_slice()) {
            (Expr::Name(name), [_, ..]) => vec![(name.id.to_string(), self.program.union_of(&types))],
            _ => Vec::new(),
        };
        let when_true = if alternatives.is_empty() {
            narrow(wanted)
        } else {
            narrow(matching.clone())
        };
        let others = alternatives
            .iter()
            .copied()
            .filter(|ty| !matching.contains(ty))
            .collect();
        let when_false = narrow(others);
        Ok(Condition {
            value: result,
            when_true,
            when_false,
            known: None,
        })
    }

    // --- fork

    /// `fork(f, ...)`: the call in a graph of its own, with what it uses from outside as inputs.
    fn fork(&mut self, target: &'f Expr, rest: &'f [Expr], call: &'f ExprCall) -> Result<ValueId> {
        let callee = self.sugared(target, None)?;
        let (graph, captured, ty) = match callee {
            Sugared::Closure(def) if rest.is_empty() && call.arguments.keywords.is_empty() => self.closure(def)?,
            Sugared::Closure(_) => return self.error("call", "a nested function is forked without arguments", call),
            callee => {
                let arguments = self.fork_arguments(rest, call)?;
                self.forked_call(callee, arguments, call)?
            }
        };
        self.locate(call);
        let future = self.program.ctx.type_of_kind(TypeKind::Future(ty));
        let node = self.node("prim::fork", &captured, &[]);
        self.graph
            .set_attribute(node, symbols::ATTR_SUBGRAPH, AttributeValue::Graph(Arc::new(graph)));
        Ok(self.graph.add_output(node, future))
    }

    fn fork_arguments(&mut self, rest: &'f [Expr], call: &'f ExprCall) -> Result<Arguments> {
        let mut arguments = Arguments::default();
        for argument in rest {
            arguments.positional.push(self.expr(argument, None)?);
        }
        for keyword in &call.arguments.keywords {
            let value = self.expr(&keyword.value, None)?;
            if let Some(name) = &keyword.arg {
                arguments.keywords.push((self.program.ctx.symbol(name), value));
            }
        }
        Ok(arguments)
    }

    /// The graph of a nested function: the variables that it reads become inputs, in the order in which it reads them.
    fn closure(&mut self, def: &'f StmtFunctionDef) -> Result<(frazil_ir::Graph, Vec<ValueId>, TypeId)> {
        if def.parameters.iter().next().is_some() {
            return self.error("call", "a nested function that is forked takes no arguments", def);
        }
        let mut names = Vec::new();
        def.body.iter().for_each(|statement| read_names(statement, &mut names));
        let returns = match &def.returns {
            Some(annotation) => Some(self.program.annotation(self.file, annotation)?),
            None => None,
        };
        let mut captured = Vec::new();
        let mut inherited = Vec::new();
        for name in names {
            let Some(variable) = self.lookup(&name).cloned() else {
                continue;
            };
            if let Sugared::Value(value) = variable.value {
                captured.push(value);
                inherited.push((name, Some(self.ty(value)), variable));
            } else {
                inherited.push((name, None, variable));
            }
        }
        let mut inner = Emitter::new(self.program, self.file, returns);
        for (name, ty, variable) in inherited {
            match ty {
                Some(ty) => {
                    let input = inner.graph.add_input(ty);
                    inner.graph.name_value(input, &name);
                    inner.define(&name, input, None);
                }
                None => {
                    inner.frame().variables.insert(name, variable);
                }
            }
        }
        let (graph, ty) = inner.body(def)?;
        Ok((graph, captured, ty))
    }

    /// A graph that calls `callee` with its inputs.
    fn forked_call(
        &mut self,
        callee: Sugared<'f>,
        arguments: Arguments,
        call: &'f ExprCall,
    ) -> Result<(frazil_ir::Graph, Vec<ValueId>, TypeId)> {
        let mut captured: Vec<ValueId> = Vec::new();
        if let Sugared::Method(object, _) | Sugared::Value(object) = &callee {
            captured.push(*object);
        }
        let has_object = !captured.is_empty();
        captured.extend(arguments.positional.iter().copied());
        captured.extend(arguments.keywords.iter().map(|(_, value)| *value));
        let types: Vec<TypeId> = captured.iter().map(|&value| self.ty(value)).collect();
        let mut inner = Emitter::new(self.program, self.file, None);
        let inputs: Vec<ValueId> = types.iter().map(|&ty| inner.graph.add_input(ty)).collect();
        let mut rest = inputs.iter().copied();
        let callee = match callee {
            Sugared::Method(_, name) => rest.next().map(|object| Sugared::Method(object, name)),
            Sugared::Value(_) => rest.next().map(Sugared::Value),
            other if !has_object => Some(other),
            _ => None,
        };
        let Some(callee) = callee else {
            return inner.error("call", "this cannot be forked", call);
        };
        let positional: Vec<ValueId> = rest.by_ref().take(arguments.positional.len()).collect();
        let keywords = arguments.keywords.iter().map(|(name, _)| *name).zip(rest).collect();
        let result = inner.call_sugared(
            callee,
            Arguments {
                object: None,
                positional,
                keywords,
            },
            call,
        )?;
        let result = inner.value(result, call)?;
        let ty = inner.ty(result);
        let root = inner.graph.root();
        inner.graph.add_result(root, result);
        Ok((inner.graph, captured, ty))
    }
}

/// The names that a statement reads, in order, each once.
fn read_names(statement: &Stmt, names: &mut Vec<String>) {
    use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
    struct Names<'n>(&'n mut Vec<String>);
    impl<'a> Visitor<'a> for Names<'_> {
        fn visit_stmt(&mut self, statement: &'a Stmt) {
            walk_stmt(self, statement);
        }
        fn visit_expr(&mut self, expr: &'a Expr) {
            if let Expr::Name(name) = expr
                && !self.0.iter().any(|known| known == name.id.as_str())
            {
                self.0.push(name.id.to_string());
            }
            walk_expr(self, expr);
        }
    }
    Names(names).visit_stmt(statement);
}
