//! Forms whose arguments are not simply evaluated and passed.

use frazil_ir::{Constant, TypeId, TypeKind, types};
use ruff_python_ast::{Expr, ExprCall};

use super::Emitter;
use super::matching::Arguments;
use super::sugared::{Iterable, Special, Sugared};
use crate::frontend::Result;
use crate::frontend::program::string_value;

impl<'f> Emitter<'_, '_, 'f> {
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
                self.locate(call);
                self.op("prim::unchecked_cast", &[value], ty)
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
}
