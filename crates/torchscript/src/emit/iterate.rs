//! Compilation of iteration, in loops and comprehensions.

use frazil_ir::{Constant, TypeKind, ValueId, types};
use ruff_text_size::Ranged;

use super::Emitter;
use super::matching::Arguments;
use super::sugared::{Iterable, Sugared};
use crate::error::Result;

impl<'f> Emitter<'_, 'f> {
    /// Returns the iterable for `sugared` as the source of a loop or comprehension.
    pub(super) fn iterable(&mut self, sugared: Sugared<'f>, node: &impl Ranged) -> Result<Iterable<'f>> {
        match sugared {
            Sugared::Iterable(iterable) => Ok(*iterable),
            Sugared::Tuple(items) => Ok(Iterable::Static(items)),
            Sugared::Type(ty) => match self.names.ctx().type_kind(ty) {
                TypeKind::Enum(class) => {
                    let members = self
                        .names
                        .unit()
                        .class(class)
                        .map(|c| c.constants.values().cloned().collect());
                    self.locate(node);
                    let list = Constant::list(ty, members.unwrap_or_default());
                    let ty = self.names.ctx().list_of(ty);
                    Ok(Iterable::Sequence(self.builder().constant_typed(list, ty)))
                }
                _ => self.error("value", format!("'{}' object is not iterable", self.shown(ty)), node),
            },
            other => {
                let value = self.value(other, node)?;
                if let Some(children) = self.container_children(value, node) {
                    // Dictionaries are gone through by key.
                    let is_dict = self.shown(self.ty(value)).ends_with("Dict");
                    if is_dict {
                        let mut keys = Vec::with_capacity(children.len());
                        for (key, _) in children {
                            keys.push(Sugared::Value(self.constant(Constant::str(key))));
                        }
                        return Ok(Iterable::Static(keys));
                    }
                    return Ok(Iterable::Static(children.into_iter().map(|(_, child)| child).collect()));
                }
                match self.kind_of(value) {
                    TypeKind::Tuple(_) | TypeKind::NamedTuple(..) => {
                        self.locate(node);
                        let items = self.builder().unpack_tuple(value);
                        Ok(Iterable::Static(items.into_iter().map(Sugared::Value).collect()))
                    }
                    TypeKind::List(_) | TypeKind::Tensor(_) | TypeKind::Str => Ok(Iterable::Sequence(value)),
                    TypeKind::Dict(..) => {
                        let arguments = Arguments {
                            positional: vec![value],
                            ..Arguments::default()
                        };
                        Ok(Iterable::Sequence(self.builtin("aten::keys", arguments, node)?))
                    }
                    _ => {
                        let message = format!("'{}' object is not iterable", self.shown(self.ty(value)));
                        self.error("value", message, node)
                    }
                }
            }
        }
    }

    /// Returns the items of an iterable whose length is known statically, for unrolling; `None` for any other iterable.
    pub(super) fn unrolled(&mut self, iterable: &Iterable<'f>, node: &impl Ranged) -> Result<Option<Vec<Sugared<'f>>>> {
        Ok(match iterable {
            Iterable::Static(items) => Some(items.clone()),
            Iterable::Zip(parts) => {
                let mut columns = Vec::with_capacity(parts.len());
                let mut shortest: Option<usize> = None;
                for part in parts {
                    let items = self.unrolled(part, node)?;
                    if let Some(items) = &items {
                        shortest = Some(shortest.map_or(items.len(), |n| n.min(items.len())));
                    }
                    columns.push((part, items));
                }
                let Some(length) = shortest else { return Ok(None) };
                let mut rows = Vec::with_capacity(length);
                for index in 0..length {
                    let mut row = Vec::with_capacity(columns.len());
                    for (part, items) in &columns {
                        row.push(match items.as_ref().and_then(|items| items.get(index)) {
                            Some(item) => item.clone(),
                            None => {
                                let index = self.literal(Constant::Int(index as i64));
                                self.element(part, index, node)?
                            }
                        });
                    }
                    rows.push(Sugared::Tuple(row));
                }
                Some(rows)
            }
            Iterable::Range { .. } | Iterable::Sequence(_) => None,
        })
    }

    /// Returns the children of `object` with their names, if it is a container of modules.
    pub(super) fn container_children(
        &mut self,
        object: ValueId,
        node: &impl Ranged,
    ) -> Option<Vec<(String, Sugared<'f>)>> {
        let TypeKind::Class(class) = self.kind_of(object) else {
            return None;
        };
        let names = self.names.definitions().container(class)?.to_vec();
        self.locate(node);
        let ctx = std::sync::Arc::clone(self.names.ctx());
        let child = |this: &mut Self, name: String| {
            let symbol = ctx.symbol(&name);
            let ty = this.names.unit().class(class)?.attributes.get(&symbol)?.ty;
            let value = this.builder().get_attr(object, symbol, ty);
            Some((name, Sugared::Value(value)))
        };
        names.into_iter().map(|name| child(self, name)).collect()
    }

    /// Returns the trip count of a loop over `iterable`.
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
            Iterable::Static(items) => Ok(self.literal(Constant::Int(items.len() as i64))),
            Iterable::Zip(parts) => {
                let mut lengths = Vec::with_capacity(parts.len());
                self.lengths(parts, node, &mut lengths)?;
                self.locate(node);
                let list = self.builder().list(types::INT, &lengths);
                self.builtin("prim::min", Arguments::of(&[list]), node)
            }
        }
    }

    /// Collects the lengths of all iterables inside of `zip`.
    fn lengths(&mut self, parts: &[Iterable<'f>], node: &impl Ranged, lengths: &mut Vec<ValueId>) -> Result<()> {
        for part in parts {
            match part {
                Iterable::Zip(inner) => self.lengths(inner, node, lengths)?,
                part => lengths.push(self.length(part, node)?),
            }
        }
        Ok(())
    }

    /// Returns the item of `iterable` in iteration `index`.
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
            Iterable::Static(_) => return self.error("value", "this can only be gone through whole", node),
            Iterable::Zip(parts) => {
                let mut elements = Vec::with_capacity(parts.len());
                for part in parts {
                    elements.push(self.element(part, index, node)?);
                }
                return Ok(Sugared::Tuple(elements));
            }
        };
        Ok(Sugared::Value(value))
    }
}
