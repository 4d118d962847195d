//! What loops and comprehensions go through.

use std::sync::Arc;

use frazil_ir::{Constant, TypeId, TypeKind, ValueId, types};
use ruff_python_ast::{Expr, ExprListComp};
use ruff_text_size::Ranged;

use super::Emitter;
use super::exits::target_names;
use super::matching::Arguments;
use super::sugared::{Iterable, Sugared};
use crate::frontend::Result;

impl<'f> Emitter<'_, '_, 'f> {
    /// What a `for` goes through.
    pub(super) fn iterable(&mut self, sugared: Sugared<'f>, node: &impl Ranged) -> Result<Iterable<'f>> {
        match sugared {
            Sugared::Iterable(iterable) => Ok(*iterable),
            other => {
                let value = self.value(other, node)?;
                match self.kind_of(value) {
                    TypeKind::Dict(..) => {
                        let arguments = Arguments {
                            positional: vec![value],
                            ..Arguments::default()
                        };
                        Ok(Iterable::Sequence(self.builtin("aten::keys", arguments, node)?))
                    }
                    _ => Ok(Iterable::Sequence(value)),
                }
            }
        }
    }

    /// How often a loop over it runs.
    pub(super) fn length(&mut self, iterable: &Iterable<'f>, node: &impl Ranged) -> Result<ValueId> {
        match iterable {
            Iterable::Range {
                start: None,
                end,
                step: None,
            } => Ok(*end),
            Iterable::Range { start, end, step } => {
                let start = start.map_or_else(|| self.literal(Constant::Int(0)), |start| start);
                let step = step.map_or_else(|| self.literal(Constant::Int(1)), |step| step);
                let arguments = Arguments {
                    positional: vec![start, *end, step],
                    ..Arguments::default()
                };
                self.builtin("aten::__range_length", arguments, node)
            }
            Iterable::Sequence(value) => self.builtin(
                "aten::len",
                Arguments {
                    positional: vec![*value],
                    ..Arguments::default()
                },
                node,
            ),
            Iterable::Enumerate(inner, _) => {
                let inner = self.iterable(inner.clone(), node)?;
                self.length(&inner, node)
            }
            Iterable::Zip(parts) => {
                let mut lengths = Vec::with_capacity(parts.len());
                for part in parts.clone() {
                    let part = self.iterable(part, node)?;
                    lengths.push(self.length(&part, node)?);
                }
                match *lengths.as_slice() {
                    [one] => Ok(one),
                    _ => {
                        self.locate(node);
                        let list = self.builder().list(types::INT, &lengths);
                        self.builtin(
                            "prim::min",
                            Arguments {
                                positional: vec![list],
                                ..Arguments::default()
                            },
                            node,
                        )
                    }
                }
            }
        }
    }

    /// The element that iteration number `index` takes.
    pub(super) fn element(
        &mut self,
        iterable: &Iterable<'f>,
        index: ValueId,
        node: &impl Ranged,
    ) -> Result<Sugared<'f>> {
        let value = match iterable {
            Iterable::Range {
                start: None,
                step: None,
                ..
            } => index,
            Iterable::Range { start, step, .. } => {
                let start = start.map_or_else(|| self.literal(Constant::Int(0)), |start| start);
                let step = step.map_or_else(|| self.literal(Constant::Int(1)), |step| step);
                let arguments = Arguments {
                    positional: vec![index, start, step],
                    ..Arguments::default()
                };
                self.builtin("aten::__derive_index", arguments, node)?
            }
            Iterable::Sequence(value) if matches!(self.kind_of(*value), TypeKind::Tensor(_)) => {
                let zero = self.literal(Constant::Int(0));
                let arguments = Arguments {
                    positional: vec![*value, zero, index],
                    ..Arguments::default()
                };
                self.builtin("aten::select", arguments, node)?
            }
            Iterable::Sequence(value) => {
                let arguments = Arguments {
                    positional: vec![*value, index],
                    ..Arguments::default()
                };
                self.builtin("aten::__getitem__", arguments, node)?
            }
            Iterable::Enumerate(inner, start) => {
                let inner = self.iterable(inner.clone(), node)?;
                let counted = match start {
                    Some(start) => {
                        let arguments = Arguments {
                            positional: vec![*start, index],
                            ..Arguments::default()
                        };
                        self.builtin("aten::add", arguments, node)?
                    }
                    None => index,
                };
                let element = self.element(&inner, index, node)?;
                return Ok(Sugared::Tuple(vec![Sugared::Value(counted), element]));
            }
            Iterable::Zip(parts) => {
                let mut elements = Vec::with_capacity(parts.len());
                for part in parts.clone() {
                    let part = self.iterable(part, node)?;
                    elements.push(self.element(&part, index, node)?);
                }
                return Ok(Sugared::Tuple(elements));
            }
        };
        Ok(Sugared::Value(value))
    }

    pub(super) fn comprehension(&mut self, comprehension: &'f ExprListComp, hint: Option<TypeId>) -> Result<ValueId> {
        let [generator] = comprehension.generators.as_slice() else {
            return self.error(
                "expression",
                "only one `for` is supported in a comprehension",
                comprehension,
            );
        };
        let ctx = Arc::clone(&self.program.ctx);
        let hint = match hint.map(|ty| ctx.type_kind(ty)) {
            Some(TypeKind::List(element)) => Some(element),
            _ => None,
        };
        let source = self.sugared(&generator.iter, None)?;
        let iterable = self.iterable(source, &generator.iter)?;
        self.locate(comprehension);
        let list = self.builder().list(hint.unwrap_or(types::TENSOR), &[]);
        let mut element_type = hint;
        // The target is a variable of the comprehension alone; the frame of the loop hides it afterwards.
        let mut hidden = std::collections::BTreeSet::new();
        target_names(&generator.target, &mut hidden);
        self.loop_with(
            Some(&iterable),
            Some(&generator.target),
            None,
            std::collections::BTreeSet::new(),
            false,
            comprehension,
            |this| this.filtered(&generator.ifs, comprehension, list, &mut element_type),
        )?;
        if let Some(element) = element_type {
            self.graph.set_type(list, ctx.list_of(element));
        }
        Ok(list)
    }

    pub(super) fn filtered(
        &mut self,
        tests: &'f [Expr],
        comprehension: &'f ExprListComp,
        list: ValueId,
        element_type: &mut Option<TypeId>,
    ) -> Result<()> {
        match tests {
            [] => {
                let element = self.expr(&comprehension.elt, *element_type)?;
                let ty = element_type.unwrap_or(self.unshaped(self.ty(element)));
                *element_type = Some(ty);
                self.graph.set_type(list, self.program.ctx.list_of(ty));
                let arguments = Arguments {
                    positional: vec![list, element],
                    ..Arguments::default()
                };
                self.builtin("aten::append", arguments, comprehension).map(drop)
            }
            [test, rest @ ..] => {
                let condition = self.condition(test)?;
                self.branches(
                    condition,
                    |this| this.filtered(rest, comprehension, list, element_type),
                    |_| Ok(()),
                    test.range(),
                )
            }
        }
    }
}
