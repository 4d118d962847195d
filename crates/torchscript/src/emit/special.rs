//! Compilation of special forms: calls whose arguments are not simply evaluated and passed.

use frazil_ir::{Constant, TypeId, TypeKind, ValueId, types};
use ruff_python_ast::{Expr, ExprCall};

use super::Emitter;
use super::call::NO_STATIC_LENGTH;
use super::matching::{Arguments, unwrap_optional};
use super::sugared::{Iterable, Special, Sugared};
use crate::error::Result;
use crate::names::Annotations;
use crate::source::string_value;

impl<'f> Emitter<'_, 'f> {
    pub(super) fn special(
        &mut self,
        special: Special,
        call: &'f ExprCall,
        hint: Option<TypeId>,
    ) -> Result<Sugared<'f>> {
        let args: &'f [Expr] = &call.arguments.args;
        let wrong = |this: &Self, what: &str| this.error("call", what, call);
        let value = match (special, args) {
            (Special::Annotate, [ty, value]) => {
                let ty = self.names.annotation(self.file, ty)?;
                let value = self.expr(value, Some(ty))?;
                let value = self.convert(value, ty, call);
                if !self.names.definitions().is_subtype(self.ty(value), ty) {
                    let message = format!(
                        "expected an expression of type {} but found {}",
                        self.shown(ty),
                        self.shown_type_of(value)
                    );
                    return wrong(self, &message);
                }
                let is_optional = matches!(self.names.ctx().type_kind(ty), TypeKind::Optional(_));
                if is_optional && self.ty(value) == types::NONE {
                    self.op("prim::unchecked_cast", &[value], ty)
                } else {
                    value
                }
            }
            (Special::UncheckedCast, [ty, value]) => {
                let ty = self.names.annotation(self.file, ty)?;
                let value = self.expr(value, Some(ty))?;
                self.locate(call);
                self.op("prim::unchecked_cast", &[value], ty)
            }
            (Special::Uninitialized, [ty]) => {
                let ty = self.names.annotation(self.file, ty)?;
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
            (Special::Hasattr, [_, Expr::StringLiteral(_)]) => {
                let has = self.hasattr(call)?;
                self.locate(call);
                self.constant(Constant::Bool(has))
            }
            (Special::Fork, [target, rest @ ..]) => self.fork("prim::fork", TypeKind::Future, target, rest, call)?,
            (Special::Awaitable, [target, rest @ ..]) => {
                self.fork("prim::awaitable", TypeKind::Await, target, rest, call)?
            }
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
            (Special::Known(answer), []) => {
                self.locate(call);
                self.constant(Constant::Bool(answer))
            }
            (Special::UnwrapOptional, [value]) => {
                let value = self.expr(value, None)?;
                self.builtin("aten::_unwrap_optional", Arguments::of(&[value]), call)?
            }
            (Special::Warn, _) => {
                // The category and other arguments are Python's.
                let message = match args {
                    [message, ..] => self.expr(message, None)?,
                    [] => return wrong(self, "warn() is missing its message"),
                };
                self.builtin("aten::warn", Arguments::of(&[message]), call)?
            }
            (Special::Unscriptable, [Expr::StringLiteral(reason)]) => return wrong(self, reason.value.to_str()),
            (Special::Assert, [condition, message @ ..]) => {
                self.assertion(condition, message.first(), call)?;
                self.none()
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
                    ref many => {
                        let given = many.len();
                        return wrong(self, &format!("range expected at most 3 arguments, got {given}"));
                    }
                };
                for (at, &bound) in arguments.positional.iter().enumerate() {
                    if self.ty(bound) != types::INT {
                        let found = self.shown(self.ty(bound));
                        return wrong(
                            self,
                            &format!("all inputs of range must be ints, found {found} in argument {at}"),
                        );
                    }
                }
                return Ok(Sugared::Iterable(Box::new(iterable)));
            }
            (Special::Enumerate, [inner, start @ ..]) => {
                if let Some(keyword) = call.arguments.keywords.first()
                    && keyword.arg.as_ref().is_none_or(|name| name.as_str() != "start")
                {
                    let name = keyword.arg.as_ref().map_or("", |name| name.as_str());
                    return wrong(self, &format!("enumerate expected kwarg name 'start', got '{name}'"));
                }
                let start = match (start, call.arguments.keywords.first()) {
                    ([start], _) => Some(self.expr(start, None)?),
                    (_, Some(keyword)) => Some(self.expr(&keyword.value, None)?),
                    _ => None,
                };
                self.locate(call);
                let end = self.literal(Constant::Int(i64::MAX));
                let inner = self.sugared(inner, None)?;
                let inner = self.iterable(inner, call)?;
                let numbers = Iterable::Range { start, end, step: None };
                return Ok(Sugared::Iterable(Box::new(Iterable::Zip(vec![numbers, inner]))));
            }
            (Special::Zip, []) => return wrong(self, "zip expected at least 1 arguments, got 0"),
            (Special::Zip, [_, ..]) => {
                let mut parts = Vec::with_capacity(args.len());
                for part in args {
                    let part = self.sugared(part, None)?;
                    parts.push(self.iterable(part, call)?);
                }
                return Ok(Sugared::Iterable(Box::new(Iterable::Zip(parts))));
            }
            (Special::List, []) => {
                self.locate(call);
                let list = self.builder().list(types::TENSOR, &[]);
                self.empty_lists.insert(list);
                list
            }
            (Special::List, [inner]) => match self.sugared(inner, hint)? {
                Sugared::Value(value) if matches!(self.kind_of(value), TypeKind::List(_) | TypeKind::Str) => {
                    self.builtin("aten::list", Arguments::of(&[value]), call)?
                }
                source => self.list_of(source, hint, call)?,
            },
            (Special::Tuple, []) => return Ok(Sugared::Tuple(Vec::new())),
            (Special::Tuple, [inner]) => {
                let source = self.sugared(inner, None)?;
                let iterable = self.iterable(source, inner)?;
                match self.unrolled(&iterable, inner)? {
                    Some(items) => return Ok(Sugared::Tuple(items)),
                    None => return self.error("call", NO_STATIC_LENGTH, call),
                }
            }
            (Special::Dict, _) => self.dict_call(call, hint)?,
            (Special::Cast(..), []) => return wrong(self, "a value to convert is needed"),
            (Special::Cast(operator, ty), _) => {
                let arguments = self.arguments(call)?;
                if let ([value], true) = (arguments.positional.as_slice(), arguments.keywords.is_empty())
                    && (self.ty(*value) == ty || ty == types::BOOL)
                {
                    let value = *value;
                    return match ty {
                        types::BOOL => self.truth(value, call).map(Sugared::Value),
                        _ => Ok(Sugared::Value(value)),
                    };
                }
                self.builtin(operator, arguments, call)?
            }
            _ => return wrong(self, "wrong number or kind of arguments"),
        };
        Ok(Sugared::Value(value))
    }

    /// Evaluates `hasattr(x, "name")`.
    pub(super) fn hasattr(&mut self, call: &'f ExprCall) -> Result<bool> {
        let [object, Expr::StringLiteral(name)] = &*call.arguments.args else {
            return self.error("call", "hasattr's second argument must be a string literal", call);
        };
        let object = self.expr(object, None)?;
        match self.kind_of(object) {
            TypeKind::Class(_) | TypeKind::Interface(_) | TypeKind::NamedTuple(..) => {
                Ok(self.has_attribute(object, name.value.to_str()))
            }
            _ => {
                let message = format!(
                    "hasattr's first argument must be an object or NamedTuple, got {} instead",
                    self.shown(self.ty(object))
                );
                self.error("call", message, call)
            }
        }
    }

    /// Emits `dict()`, `dict(pairs)`, `dict(other)`, each with keyword arguments.
    fn dict_call(&mut self, call: &'f ExprCall, hint: Option<TypeId>) -> Result<ValueId> {
        let ctx = std::sync::Arc::clone(self.names.ctx());
        let keywords = &call.arguments.keywords;
        let listed: Option<&'f [Expr]> = match &*call.arguments.args {
            [] => Some(&[]),
            [Expr::List(list)] => Some(&list.elts),
            _ => None,
        };
        if let (Some(items), false) = (listed, keywords.is_empty()) {
            // Keywords are pairs like others.
            let mut tuples = Vec::with_capacity(items.len() + keywords.len());
            for item in items {
                tuples.push(self.expr(item, None)?);
            }
            for (key, value) in self.keyword_pairs(call)? {
                tuples.push(self.builder().tuple(&[key, value]));
            }
            let ty = self.joined(&tuples);
            let list = self.builder().list(ty, &tuples);
            return self.dict_of_pairs(Sugared::Value(list), call, hint);
        }
        let dict = match &*call.arguments.args {
            [] => {
                let ty = match hint.filter(|&ty| matches!(ctx.type_kind(ty), TypeKind::Dict(..))) {
                    Some(hint) => hint,
                    None => ctx.dict_of(types::STR, types::TENSOR),
                };
                self.locate(call);
                self.op("prim::DictConstruct", &[], ty)
            }
            [Expr::Dict(dict)] if dict.items.is_empty() && hint.is_some() => self.dict(dict, hint)?,
            [inner] => match self.sugared(inner, hint)? {
                Sugared::Value(value) if matches!(self.kind_of(value), TypeKind::Dict(..)) => {
                    self.builtin("aten::dict", Arguments::of(&[value]), call)?
                }
                source => self.dict_of_pairs(source, call, hint)?,
            },
            _ => return self.error("call", "dict expected at most 1 argument", call),
        };
        for (key, value) in self.keyword_pairs(call)? {
            self.builtin("aten::_set_item", Arguments::of(&[dict, key, value]), call)?;
        }
        Ok(dict)
    }

    /// Returns the keyword arguments of a call as pairs of a string constant and a value.
    fn keyword_pairs(&mut self, call: &'f ExprCall) -> Result<Vec<(ValueId, ValueId)>> {
        let mut pairs = Vec::with_capacity(call.arguments.keywords.len());
        for keyword in &call.arguments.keywords {
            let Some(name) = &keyword.arg else {
                return self.error("call", "keyword-arg expansion is not supported", keyword);
            };
            self.locate(keyword);
            let key = self.constant(Constant::str(name.as_str()));
            pairs.push((key, self.expr(&keyword.value, None)?));
        }
        Ok(pairs)
    }

    fn dict_of_pairs(&mut self, source: Sugared<'f>, call: &'f ExprCall, hint: Option<TypeId>) -> Result<ValueId> {
        self.dict_of(source, None, call, hint, |this, item| {
            let item = match item {
                Some(item) => this.value(item, call)?,
                None => return this.error("value", "an element is missing", call),
            };
            match *this.builder().unpack_tuple(item).as_slice() {
                [key, value] => Ok((key, value)),
                _ => this.error("call", "a dictionary is made of pairs", call),
            }
        })
    }

    /// Emits `x.tolist()`. The result type (nested lists of numbers) is the type that the context expects.
    pub(super) fn tolist(&mut self, tensor: ValueId, hint: Option<TypeId>, call: &'f ExprCall) -> Result<ValueId> {
        let ctx = std::sync::Arc::clone(self.names.ctx());
        let Some(wanted) = hint.map(|ty| unwrap_optional(&ctx, ty)) else {
            return self.error("call", "Expected type hint for result of tolist()", call);
        };
        let (mut element, mut depth) = (wanted, 0);
        while let TypeKind::List(inner) = ctx.type_kind(element) {
            element = inner;
            depth += 1;
        }
        let code = match element {
            types::INT => 0,
            types::FLOAT => 1,
            types::BOOL => 2,
            types::COMPLEX => 3,
            _ => {
                let message = format!(
                    "Unsupported element type for tolist(): {}; only int, float, bool and complex are supported",
                    self.shown(element)
                );
                return self.error("call", message, call);
            }
        };
        self.locate(call);
        let depth = self.literal(Constant::Int(depth));
        let code = self.literal(Constant::Int(code));
        Ok(self.op("prim::tolist", &[tensor, depth, code], wanted))
    }
}
