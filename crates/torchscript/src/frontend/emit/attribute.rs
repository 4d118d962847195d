//! Attributes: of values, types and dotted names.

use std::sync::Arc;

use frazil_ir::{Constant, TypeKind, ValueId, types};
use ruff_text_size::Ranged;

use super::matching::Arguments;
use super::sugared::Sugared;
use super::{Emitter, builtins, name_attribute};
use crate::frontend::Result;
use crate::frontend::program::Global;

impl<'f> Emitter<'_, '_, 'f> {
    /// `base.name`
    pub(super) fn attribute(&mut self, base: Sugared<'f>, name: &str, node: &impl Ranged) -> Result<Sugared<'f>> {
        match base {
            Sugared::Path(path) => self.path(format!("{path}.{name}"), node),
            Sugared::Type(ty) => {
                let ctx = Arc::clone(&self.program.ctx);
                if let TypeKind::Enum(class) = ctx.type_kind(ty) {
                    let member = self
                        .program
                        .unit
                        .class(class)
                        .and_then(|c| c.constants.get(&ctx.symbol(name)))
                        .cloned();
                    if let Some(member) = member {
                        self.locate(node);
                        return Ok(Sugared::Value(self.constant(member)));
                    }
                }
                match name {
                    "__new__" => Ok(Sugared::New(ty)),
                    _ => {
                        let message = format!("the type `{}` has no member `{name}`", self.shown(ty));
                        self.error("attribute", message, node)
                    }
                }
            }
            base => {
                let object = self.value(base, node)?;
                self.value_attribute(object, name, node)
            }
        }
    }

    pub(super) fn path(&mut self, path: String, node: &impl Ranged) -> Result<Sugared<'f>> {
        if let Some(constant) = self.program.named_constant(&path)? {
            self.locate(node);
            // Code knows a tensor of the table as just a tensor.
            let ty = self.unshaped(constant.ty(&self.program.ctx));
            return Ok(Sugared::Value(self.builder().constant_typed(constant, ty)));
        }
        if let Some(special) = builtins::special(&path) {
            return Ok(Sugared::Special(special));
        }
        if path.starts_with("__torch__.") {
            if let Some(global) = self.program.global(&path)? {
                return Ok(sugared_global(global));
            }
        } else if let Some(operator) = builtins::operator(&path) {
            let operator = self.program.ctx.symbol(&operator);
            if self.program.catalogue.contains(operator) || path.starts_with("ops.") {
                return Ok(Sugared::Builtin(operator, None));
            }
        }
        if path.starts_with("CONSTANTS.") {
            return self.error("undefined", format!("the archive has no constant `{path}`"), node);
        }
        Ok(Sugared::Path(path))
    }

    /// An attribute or method of a value.
    pub(super) fn value_attribute(&mut self, object: ValueId, name: &str, node: &impl Ranged) -> Result<Sugared<'f>> {
        let ctx = Arc::clone(&self.program.ctx);
        let symbol = ctx.symbol(name);
        match self.kind_of(object) {
            TypeKind::Class(class) => {
                if let Some(definition) = self.program.unit.class(class) {
                    if let Some(attribute) = definition.attributes.get(&symbol) {
                        let ty = attribute.ty;
                        self.locate(node);
                        return Ok(Sugared::Value(self.builder().get_attr(object, symbol, ty)));
                    }
                    if definition.methods.contains_key(&symbol) {
                        return Ok(Sugared::Method(object, symbol));
                    }
                    if let Some(constant) = definition.constants.get(&symbol).cloned() {
                        self.locate(node);
                        return Ok(Sugared::Value(self.constant(constant)));
                    }
                }
            }
            TypeKind::Interface(interface) => {
                let definition = self.program.unit.class(interface);
                if definition.is_some_and(|definition| definition.signatures.contains_key(&symbol)) {
                    return Ok(Sugared::Method(object, symbol));
                }
            }
            TypeKind::NamedTuple(_, names, elements) => {
                let index = ctx.symbols(names).iter().position(|&field| field == symbol);
                if let Some((index, &ty)) = index.and_then(|index| Some((index, ctx.types(elements).get(index)?))) {
                    self.locate(node);
                    let position = self.constant(Constant::Int(index as i64));
                    return Ok(Sugared::Value(self.op("prim::TupleIndex", &[object, position], ty)));
                }
            }
            TypeKind::Enum(_) if name == "name" => {
                self.locate(node);
                return Ok(Sugared::Value(self.op("prim::EnumName", &[object], types::STR)));
            }
            TypeKind::Enum(class) if name == "value" => {
                let member = self.program.unit.class(class).and_then(|c| c.constants.values().next());
                let ty = match member {
                    Some(Constant::Enum(member)) => member.value.ty(&ctx),
                    _ => types::ANY,
                };
                self.locate(node);
                return Ok(Sugared::Value(self.op("prim::EnumValue", &[object], ty)));
            }
            TypeKind::Tensor(_) => {
                if let Some(operator) = builtins::tensor_attribute(name) {
                    let arguments = Arguments {
                        positional: vec![object],
                        ..Arguments::default()
                    };
                    return self.builtin(operator, arguments, node).map(Sugared::Value);
                }
            }
            TypeKind::Device if name == "type" || name == "index" => {
                let arguments = Arguments {
                    positional: vec![object],
                    ..Arguments::default()
                };
                return self
                    .builtin(&format!("prim::{name}"), arguments, node)
                    .map(Sugared::Value);
            }
            TypeKind::Future(_) if name == "wait" => {
                return Ok(Sugared::Builtin(ctx.symbol("aten::wait"), Some(object)));
            }
            _ => {}
        }
        let operator = ctx.symbol(&format!("aten::{name}"));
        if !matches!(self.kind_of(object), TypeKind::Class(_) | TypeKind::Interface(_))
            && self.program.catalogue.contains(operator)
        {
            return Ok(Sugared::Builtin(operator, Some(object)));
        }
        let message = format!(
            "a `{}` has no attribute or method `{name}`",
            self.shown(self.ty(object))
        );
        self.error("attribute", message, node)
    }

    pub(super) fn set_attribute(
        &mut self,
        object: ValueId,
        name: &str,
        value: ValueId,
        node: &impl Ranged,
    ) -> Result<()> {
        let symbol = self.program.ctx.symbol(name);
        let ty = match self.kind_of(object) {
            TypeKind::Class(class) => {
                let given = self.unshaped(self.ty(value));
                self.program.attribute_to_set(class, symbol, given)
            }
            _ => None,
        };
        let Some(ty) = ty else {
            let message = format!("a `{}` has no attribute `{name}`", self.shown(self.ty(object)));
            return self.error("attribute", message, node);
        };
        let value = self.convert(value, ty, node);
        if !self.program.is_subtype(self.ty(value), ty) {
            let message = format!(
                "attribute `{name}` has type `{}` but is assigned a `{}`",
                self.shown(ty),
                self.shown(self.ty(value))
            );
            return self.error("type", message, node);
        }
        self.locate(node);
        let set = self.node("prim::SetAttr", &[object, value], &[]);
        name_attribute(&mut self.graph, set, symbol);
        Ok(())
    }

    pub(super) fn has_attribute(&self, object: ValueId, name: &str) -> bool {
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
}

pub(super) fn sugared_global<'f>(global: Global) -> Sugared<'f> {
    match global {
        Global::Function(id) => Sugared::Function(id),
        Global::Type(ty) => Sugared::Type(ty),
    }
}
