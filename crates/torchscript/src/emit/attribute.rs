//! Compilation of attribute accesses: on values, types and dotted names.

use std::sync::Arc;

use frazil_ir::types::{Bindings, match_formal};
use frazil_ir::{Constant, FunctionId, SymbolId, TypeId, TypeKind, ValueId, types};
use ruff_text_size::Ranged;

use super::matching::Arguments;
use super::sugared::{Special, Sugared};
use super::{Emitter, builtins, name_attribute};
use crate::error::{LoadError, Result};
use crate::library;
use crate::names::{Constants, Global, foreign_method};

impl<'f> Emitter<'_, 'f> {
    /// Emits the expression `base.name`.
    pub(super) fn attribute(&mut self, base: Sugared<'f>, name: &str, node: &impl Ranged) -> Result<Sugared<'f>> {
        match base {
            Sugared::Path(path) => self.path(format!("{path}.{name}"), node),
            Sugared::Type(ty) => {
                let ctx = Arc::clone(self.names.ctx());
                if let TypeKind::Enum(class) = ctx.type_kind(ty) {
                    let member = self
                        .names
                        .unit()
                        .class(class)
                        .and_then(|c| c.constants.get(&ctx.symbol(name)))
                        .cloned();
                    if let Some(member) = member {
                        self.locate(node);
                        return Ok(Sugared::Value(self.constant(member)));
                    }
                }
                if let TypeKind::Class(class) = ctx.type_kind(ty)
                    && self.names.definitions().is_module(class)
                {
                    // Methods of modules are defined when code names them.
                    self.names.module_method(class, name)?;
                }
                match name {
                    "__new__" => Ok(Sugared::New(ty)),
                    _ if matches!(ctx.type_kind(ty), TypeKind::Class(_)) && self.static_of(ty, name).is_some() => {
                        Ok(self.static_of(ty, name).map_or(Sugared::Type(ty), Sugared::Function))
                    }
                    _ if self.hook(ty, name).is_some() => {
                        Ok(self.hook(ty, name).map_or(Sugared::Type(ty), Sugared::Function))
                    }
                    _ => {
                        let message = match ctx.type_kind(ty) {
                            TypeKind::Enum(class) => format!("Enum<{}>' has no attribute '{name}'", ctx.name(class)),
                            _ => format!("Tried to lookup unknown attribute on class {}", self.shown(ty)),
                        };
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

    /// Returns the hook `name` of a module's class, if code calls it as a function (`__torch__.Net.hook`).
    fn hook(&self, class: TypeId, name: &str) -> Option<FunctionId> {
        let ctx = self.names.ctx();
        let TypeKind::Class(class) = ctx.type_kind(class) else {
            return None;
        };
        let (class, name) = (self.names.unit().class(class)?, ctx.find_symbol(name)?);
        let mut hooks = class.forward_pre_hooks.iter().chain(&class.forward_hooks);
        hooks.find(|hook| **hook == name)?;
        class.methods.get(&name).copied()
    }

    /// Returns the special form that the dotted name `path` denotes.
    pub(super) fn special_form(&self, path: &str) -> Option<Special> {
        match path {
            "torch.jit.is_scripting" if self.names.definitions().traces.is_tracing => Some(Special::Known(false)),
            "torch.jit.is_tracing" if self.names.definitions().traces.is_tracing => Some(Special::Known(true)),
            _ => builtins::special(path),
        }
    }

    pub(super) fn path(&mut self, path: String, node: &impl Ranged) -> Result<Sugared<'f>> {
        if let Some(constant) = self.names.named_constant(self.file, &path)? {
            self.locate(node);
            // Code knows a tensor of the table as just a tensor.
            let ty = match &constant {
                Constant::Object(id) => self.names.definitions().objects.ty(self.names.ctx(), *id),
                constant => self.unshaped(constant.ty(self.names.ctx())),
            };
            return Ok(Sugared::Value(self.builder().constant_typed(constant, ty)));
        }
        if let Some(special) = self.special_form(&path) {
            return Ok(Sugared::Special(special));
        }
        if path.starts_with("__torch__.") {
            if let Some(global) = self.names.global(&path)? {
                return Ok(sugared_global(global));
            }
        } else if self.names.definitions().operators_first
            && let Some(operator) = builtins::operator(&path).map(|name| self.names.ctx().symbol(&name))
            && self.names.catalogue().contains(operator)
        {
            return Ok(Sugared::Builtin(operator, None));
        } else if let Some(name) = self.file.rules.qualifier().and_then(|_| library::name_of(&path))
            && let Some(global) = self.names.global(&name)?
        {
            return Ok(sugared_global(global));
        } else if let Some(operator) = builtins::operator(&path) {
            let operator = self.names.ctx().symbol(&operator);
            if self.names.catalogue().contains(operator) || path.starts_with("ops.") {
                return Ok(Sugared::Builtin(operator, None));
            }
        }
        if path.starts_with("CONSTANTS.") {
            return self.error("undefined", format!("the archive has no constant `{path}`"), node);
        }
        Ok(Sugared::Path(path))
    }

    /// Returns the attribute or method `name` of the value `object`.
    pub(super) fn value_attribute(&mut self, object: ValueId, name: &str, node: &impl Ranged) -> Result<Sugared<'f>> {
        let ctx = Arc::clone(self.names.ctx());
        let symbol = ctx.symbol(name);
        if let (TypeKind::Tensor(_), Some(dtype)) = (self.kind_of(object), builtins::cast_method(name)) {
            return Ok(Sugared::TensorCast(object, dtype));
        }
        if let TypeKind::Class(class) = self.kind_of(object) {
            if let Some(sugared) = self.container_method(object, class, name, node) {
                return Ok(sugared);
            }
            if let Some(path) = self
                .names
                .definitions()
                .function_attribute(class, name)
                .map(str::to_owned)
            {
                let function = self.path(path, node)?;
                return match &function {
                    Sugared::Function(id) => match self.names.schema_of(*id, self.file, node.range()) {
                        Err(LoadError::Source(error)) if error.diagnostic.code != "recursion" => {
                            let message = format!(
                                "Module '{}' has no attribute '{name}' (This function exists as an attribute on the Python module, but we failed to compile it to a TorchScript function. \nThe error stack is reproduced here:\n{})",
                                self.simple_name(class),
                                error.diagnostic.message
                            );
                            self.error("attribute", message, node)
                        }
                        Err(other) => Err(other),
                        Ok(_) => Ok(function),
                    },
                    _ => Ok(function),
                };
            }
            if self.names.definitions().traces.is_tracing
                && self.names.definitions().python_method(class, name).is_some()
            {
                return Ok(Sugared::Method(object, symbol));
            }
            if self.names.definitions().is_module(class) {
                self.names.module_method(class, name)?;
                self.names.module_method(class, &format!("__{name}_getter"))?;
            }
        }
        match self.kind_of(object) {
            TypeKind::Class(class) => {
                if let Some(definition) = self.names.unit().class(class) {
                    if let Some(attribute) = definition.attributes.get(&symbol) {
                        let ty = attribute.ty;
                        self.locate(node);
                        return Ok(Sugared::Value(self.builder().get_attr(object, symbol, ty)));
                    }
                    if definition.methods.contains_key(&symbol)
                        || self.names.definitions().overloaded_methods(class, name).is_some()
                    {
                        return Ok(Sugared::Method(object, symbol));
                    }
                    let getter = ctx.symbol(&format!("__{name}_getter"));
                    if definition.methods.contains_key(&getter) {
                        return self
                            .call_method(object, getter, Arguments::default(), node)
                            .map(Sugared::Value);
                    }
                    if let Some(id) = self.names.definitions().static_method(class, symbol) {
                        return Ok(Sugared::Function(id));
                    }
                    if let Some(constant) = definition.constants.get(&symbol).cloned() {
                        self.locate(node);
                        return Ok(Sugared::Value(self.constant(constant)));
                    }
                }
                if foreign_method(&ctx, class, symbol).is_some() {
                    return Ok(Sugared::Method(object, symbol));
                }
            }
            TypeKind::Interface(interface) => {
                let definition = self.names.unit().class(interface);
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
                let member = self.names.unit().class(class).and_then(|c| c.constants.values().next());
                let ty = match member {
                    Some(Constant::Enum(member)) => member.value.ty(&ctx),
                    _ => types::ANY,
                };
                self.locate(node);
                return Ok(Sugared::Value(self.op("prim::EnumValue", &[object], ty)));
            }
            TypeKind::Tensor(_) if name == "tolist" => {
                return Ok(Sugared::Builtin(ctx.symbol("prim::tolist"), Some(object)));
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
            && self.has_method(object, operator)
        {
            return Ok(Sugared::Builtin(operator, Some(object)));
        }
        self.no_attribute(object, name, node)
    }

    pub(super) fn no_attribute<T>(&self, object: ValueId, name: &str, node: &impl Ranged) -> Result<T> {
        let class = self.shown(self.ty(object));
        let message = match self.kind_of(object) {
            TypeKind::Class(class) if self.names.definitions().is_module(class) => {
                let known = self
                    .names
                    .definitions()
                    .unconverted(class, name)
                    .map(|why| format!(" {why}"));
                let class = self.simple_name(class);
                format!(
                    "Module '{class}' has no attribute '{name}'{}",
                    known.unwrap_or_default()
                )
            }
            TypeKind::Class(_) => format!(
                "'{class}' object has no attribute or method '{name}'. Did you forget to initialize an attribute in __init__()?"
            ),
            _ => format!("'{class}' object has no attribute or method '{name}'."),
        };
        self.error("attribute", message, node)
    }

    /// Returns the unqualified name of a class.
    fn simple_name(&self, class: SymbolId) -> &str {
        let name = self.names.ctx().name(class);
        name.rsplit('.').next().unwrap_or(name)
    }

    /// Returns whether an overload of `operator` accepts the type of `object` as its first argument.
    fn has_method(&self, object: ValueId, operator: SymbolId) -> bool {
        let ctx = self.names.ctx();
        let ty = self.ty(object);
        self.names.catalogue().overloads(operator).any(|schema| {
            schema
                .arguments
                .first()
                .is_some_and(|first| match_formal(ctx, first.ty, ty, &mut Bindings::default()))
        })
    }

    /// Emits the methods `items`, `keys` and `values` of a container of modules.
    fn container_method(
        &mut self,
        object: ValueId,
        class: SymbolId,
        name: &str,
        node: &impl Ranged,
    ) -> Option<Sugared<'f>> {
        self.names.definitions().container(class)?;
        if !matches!(name, "items" | "keys" | "values" | "children" | "named_children") {
            return None;
        }
        let children = self.container_children(object, node)?;
        let mut parts = Vec::with_capacity(children.len());
        for (key, child) in children {
            let key = Sugared::Value(self.constant(Constant::str(key)));
            parts.push(match name {
                "keys" => key,
                "values" | "children" => child,
                _ => Sugared::Tuple(vec![key, child]),
            });
        }
        Some(Sugared::Known(Box::new(Sugared::Tuple(parts))))
    }

    fn static_of(&self, ty: TypeId, name: &str) -> Option<FunctionId> {
        let TypeKind::Class(class) = self.names.ctx().type_kind(ty) else {
            return None;
        };
        self.names
            .definitions()
            .static_method(class, self.names.ctx().symbol(name))
    }

    pub(super) fn set_attribute(
        &mut self,
        object: ValueId,
        name: &str,
        value: ValueId,
        node: &impl Ranged,
    ) -> Result<()> {
        let symbol = self.names.ctx().symbol(name);
        if let TypeKind::Class(class) = self.kind_of(object) {
            let [getter, setter] =
                ["getter", "setter"].map(|half| self.names.ctx().symbol(&format!("__{name}_{half}")));
            if self.names.definitions().is_module(class) {
                self.names.module_method(class, &format!("__{name}_getter"))?;
                self.names.module_method(class, &format!("__{name}_setter"))?;
            }
            if self.names.unit().method(class, setter).is_some() {
                return self
                    .call_method(object, setter, Arguments::of(&[value]), node)
                    .map(drop);
            }
            if self.names.unit().method(class, getter).is_some() {
                return self.error("attribute", format!("Tried to set read-only attribute: {name}"), node);
            }
        }
        let in_block = self.frames.len() > 1;
        let ty = match self.kind_of(object) {
            TypeKind::Class(class) if in_block && self.names.definitions().would_declare(class, symbol) => {
                let message =
                    "First assignment cannot be in a control-flow block. Initialize the field at the top level first";
                return self.error("attribute", message, node);
            }
            TypeKind::Class(class) => {
                let given = self.unshaped(self.ty(value));
                self.names.definitions_mut().attribute_to_set(class, symbol, given)
            }
            _ => None,
        };
        if !matches!(self.kind_of(object), TypeKind::Class(_)) {
            let message = format!(
                "Tried to set an attribute: {name} on a non-class: {}",
                self.shown(self.ty(object))
            );
            return self.error("attribute", message, node);
        }
        let Some(ty) = ty else {
            let message =
                format!("Tried to set nonexistent attribute: {name}. Did you forget to initialize it in __init__()?");
            return self.error("attribute", message, node);
        };
        // Implicit conversions are for arguments and results of functions.
        if !self.names.definitions().is_subtype(self.ty(value), ty) {
            let message = format!(
                "Wrong type for attribute assignment. Expected {} but got {}",
                self.shown(ty),
                self.shown_type_of(value)
            );
            return self.error("type", message, node);
        }
        self.locate(node);
        let set = self.node("prim::SetAttr", &[object, value], &[]);
        name_attribute(&mut self.graph, set, symbol);
        Ok(())
    }

    pub(super) fn has_attribute(&self, object: ValueId, name: &str) -> bool {
        let symbol = self.names.ctx().symbol(name);
        match self.kind_of(object) {
            TypeKind::Class(class) => self.names.unit().class(class).is_some_and(|class| {
                class.attributes.contains_key(&symbol)
                    || class.methods.contains_key(&symbol)
                    || class.constants.contains_key(&symbol)
            }),
            TypeKind::Interface(class) => self
                .names
                .unit()
                .class(class)
                .is_some_and(|class| class.signatures.contains_key(&symbol)),
            TypeKind::NamedTuple(_, names, _) => self.names.ctx().symbols(names).contains(&symbol),
            TypeKind::Tensor(_) => builtins::tensor_attribute(name).is_some(),
            _ => false,
        }
    }
}

pub(super) fn sugared_global<'f>(global: Global) -> Sugared<'f> {
    match global {
        Global::Function(id) => Sugared::Function(id),
        Global::Type(ty) => Sugared::Type(ty),
        Global::Alternatives(index) => Sugared::Alternatives(index),
    }
}
