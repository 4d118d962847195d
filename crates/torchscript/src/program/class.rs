//! Definition of classes: attributes, constants, methods.

use std::sync::Arc;

use frazil_ir::{AttributeKind, ClassDef, ClassKind, Constant, EnumConstant, SymbolId, TypeId, TypeKind, types};
use ruff_python_ast::{Expr, Stmt, StmtClassDef, StmtFunctionDef};
use ruff_text_size::{Ranged, TextRange};

use super::SourceProgram;
use crate::error::Result;
use crate::names::{Annotations, Constants, Global, packed_parameters};
use crate::source::decorators::{self, Marker};
use crate::source::{DefPath, SourceFile, dotted};

impl SourceProgram<'_> {
    pub(super) fn define_class(
        &mut self,
        file: &Arc<SourceFile>,
        def: &StmtClassDef,
        statement: usize,
        name: SymbolId,
    ) -> Result<TypeId> {
        let kind = self.class_kind(file, def)?;
        let mut class = ClassDef::new(name, kind);
        if kind == ClassKind::NamedTuple {
            return self.define_named_tuple(file, def, class);
        }
        let ty = self.definitions.ctx.type_of_kind(match kind {
            ClassKind::Enum => TypeKind::Enum(name),
            ClassKind::Interface | ClassKind::ModuleInterface => TypeKind::Interface(name),
            _ => TypeKind::Class(name),
        });
        // From here on the class may refer to itself.
        self.definitions.globals.insert(name, Global::Type(ty));
        let mut parameters = Vec::new();
        let mut buffers = Vec::new();
        for member in &def.body {
            self.define_member(file, member, &mut class, &mut parameters, &mut buffers)?;
        }
        for (names, kind) in [(parameters, AttributeKind::Parameter), (buffers, AttributeKind::Buffer)] {
            for attribute in names {
                if let Some(attribute) = class.attributes.get_mut(&attribute) {
                    attribute.kind = kind;
                }
            }
        }
        if kind == ClassKind::Enum && self.definitions.rules.is_written() {
            let mut members = class.constants.values().map(|member| match member {
                Constant::Enum(member) => member.value.ty(&self.definitions.ctx),
                other => other.ty(&self.definitions.ctx),
            });
            let first = members.next();
            if let Some(at) = members.position(|ty| Some(ty) != first) {
                let message = format!(
                    "Could not unify type list since element {} does not have the type of the members before it",
                    at + 1
                );
                return Err(file.error("class-member", message, def).into());
            }
        }
        let is_interface = matches!(kind, ClassKind::Interface | ClassKind::ModuleInterface);
        for (index, member) in def.body.iter().enumerate() {
            let Stmt::FunctionDef(method) = member else { continue };
            let method_name = self.definitions.ctx.symbol(&method.name);
            if is_interface {
                let schema = self.signature(file, method, method_name, Some(ty))?;
                class.signatures.insert(method_name, schema);
            } else {
                self.define_method(file, method, [statement, index], &mut class, ty)?;
            }
        }
        if decorators::has(file, def, "dataclass") {
            self.define_dataclass(file, def, &mut class, ty)?;
        }
        let init = class.methods.get(&self.definitions.ctx.symbol("__init__")).copied();
        self.definitions.unit.classes.insert(name, class);
        if let (Some(init), true) = (init, self.definitions.rules.is_written()) {
            self.definitions.initialising.push(name);
            let compiled = self.compile(init);
            self.definitions.initialising.pop();
            compiled?;
        }
        Ok(ty)
    }

    fn class_kind(&self, file: &SourceFile, def: &StmtClassDef) -> Result<ClassKind> {
        let base = def.arguments.as_ref().and_then(|a| a.args.first()).and_then(dotted);
        let base = file.expand(&base.unwrap_or_default());
        let interface = file.rules.is_written() && decorators::has(file, def, "interface");
        Ok(match base.rsplit('.').next().unwrap_or_default() {
            "Module" if interface => ClassKind::ModuleInterface,
            "" | "object" if interface => ClassKind::Interface,
            "Module" => ClassKind::Module,
            "NamedTuple" => ClassKind::NamedTuple,
            "Enum" | "IntEnum" | "StrEnum" => ClassKind::Enum,
            "Interface" => ClassKind::Interface,
            "ModuleInterface" => ClassKind::ModuleInterface,
            "" | "object" => ClassKind::Class,
            _ => {
                let message =
                    "TorchScript classes does not support inheritance yet. Please directly inherit from 'object'.";
                return Err(file.error("base-class", message, def).into());
            }
        })
    }

    /// Defines a method, a static method, or the getter or setter of a property.
    fn define_method(
        &mut self,
        file: &Arc<SourceFile>,
        method: &StmtFunctionDef,
        [statement, index]: [usize; 2],
        class: &mut ClassDef,
        ty: TypeId,
    ) -> Result<()> {
        let marker = decorators::marker(file, method)?;
        let name = match &marker {
            Marker::Property => format!("__{}_getter", method.name),
            Marker::Setter(property) => format!("__{property}_setter"),
            Marker::Overload => return Ok(()),
            _ => method.name.to_string(),
        };
        let full = self
            .definitions
            .ctx
            .symbol(&format!("{}.{name}", self.definitions.ctx.name(class.name)));
        let name = self.definitions.ctx.symbol(&name);
        let path = DefPath {
            statement,
            method: Some(index),
        };
        let this = (marker != Marker::Static).then_some(ty);
        let id = self.define_function(file, method, path, full, this)?;
        if this.is_some() {
            class.methods.insert(name, id);
        } else {
            self.definitions.statics.insert((class.name, name), id);
        }
        Ok(())
    }

    /// Defines the methods that `@dataclass` generates and the class does not define: `__init__`, `__eq__` and, if requested, the order comparisons.
    fn define_dataclass(
        &mut self,
        file: &Arc<SourceFile>,
        def: &StmtClassDef,
        class: &mut ClassDef,
        ty: TypeId,
    ) -> Result<()> {
        let mut parameters = String::new();
        let mut fields = Vec::new();
        for member in &def.body {
            let Stmt::AnnAssign(field) = member else { continue };
            let Expr::Name(target) = &*field.target else { continue };
            let text = |range: TextRange| file.text.get(range.to_std_range()).unwrap_or_default();
            parameters += &format!(", {}: {}", target.id, text(field.annotation.range()));
            if let Some(value) = &field.value {
                parameters += &format!(" = {}", text(value.range()));
            }
            fields.push(target.id.to_string());
        }
        let method = |name: &str| {
            def.body
                .iter()
                .any(|s| matches!(s, Stmt::FunctionDef(def) if def.name.as_str() == name))
        };
        let mut text = format!("class {}:\n", def.name);
        if !method("__init__") {
            text += &format!("  def __init__(self{parameters}):\n");
            fields
                .iter()
                .for_each(|field| text += &format!("    self.{field} = {field}\n"));
            text += if method("__post_init__") {
                "    self.__post_init__()\n"
            } else {
                "    pass\n"
            };
        }
        if !method("__eq__") && decorators::has_flag(file, def, "dataclass", "eq") != Some(false) {
            text += &format!("  def __eq__(self, other: {}) -> bool:\n    return True", def.name);
            fields
                .iter()
                .for_each(|field| text += &format!(" and self.{field} == other.{field}"));
            text += "\n";
        }
        if decorators::has_flag(file, def, "dataclass", "order") == Some(true) {
            for (name, operator, equal) in [
                ("lt", "<", "False"),
                ("le", "<", "True"),
                ("gt", ">", "False"),
                ("ge", ">", "True"),
            ] {
                text += &format!("  def __{name}__(self, other: {}) -> bool:\n", def.name);
                for field in &fields {
                    text += &format!(
                        "    if self.{field} != other.{field}:\n      return self.{field} {operator} other.{field}\n"
                    );
                }
                text += &format!("    return {equal}\n");
            }
        }
        text += "  pass\n";
        let written = Arc::new(SourceFile::parse(&file.name, &text, None, self.definitions.stack)?.under(file.rules));
        if let Some(Stmt::ClassDef(written_def)) = written.body().first() {
            for (index, member) in written_def.body.iter().enumerate() {
                if let Stmt::FunctionDef(method) = member {
                    self.define_method(&written, method, [0, index], class, ty)?;
                }
            }
        }
        class.constants.clear();
        for field in &fields {
            class.attributes.shift_remove(&self.definitions.ctx.symbol(field));
        }
        Ok(())
    }

    pub(super) fn define_member(
        &mut self,
        file: &SourceFile,
        member: &Stmt,
        class: &mut ClassDef,
        parameters: &mut Vec<SymbolId>,
        buffers: &mut Vec<SymbolId>,
    ) -> Result<()> {
        match member {
            Stmt::AnnAssign(assign) => {
                let Expr::Name(target) = &*assign.target else {
                    return Err(file
                        .error("class-member", "an attribute's name is expected", member)
                        .into());
                };
                let mut ty = self.annotation(file, &assign.annotation)?;
                if ty == types::TENSOR {
                    ty = packed_parameters(&self.definitions.ctx, class.name, &target.id).unwrap_or(ty);
                }
                let name = self.definitions.ctx.symbol(&target.id);
                match &assign.value {
                    Some(value) => {
                        let value = self.constant_expr(file, value, Some(ty))?;
                        if matches!(value, Constant::Tensor(_)) {
                            let message = "Tensors are not supported as default NamedTuple fields. Their mutability could lead to potential memory aliasing problems";
                            return Err(file.error("class-member", message, member).into());
                        }
                        class.constants.insert(name, value);
                    }
                    None => class.add_attribute(name, ty, AttributeKind::Plain),
                }
                Ok(())
            }
            Stmt::Assign(assign) => match assign.targets.as_slice() {
                [Expr::Subscript(target)] if dotted(&target.value).as_deref() == Some("__annotations__") => {
                    let Expr::StringLiteral(name) = &*target.slice else {
                        return Err(file
                            .error("class-member", "an attribute's name is expected", member)
                            .into());
                    };
                    let ty = self.annotation(file, &assign.value)?;
                    class.add_attribute(
                        self.definitions.ctx.symbol(name.value.to_str()),
                        ty,
                        AttributeKind::Plain,
                    );
                    Ok(())
                }
                [Expr::Name(target)] => match target.id.as_str() {
                    "__parameters__" => self.names(file, &assign.value, parameters),
                    "__buffers__" => self.names(file, &assign.value, buffers),
                    "__forward_pre_hooks__" => self.names(file, &assign.value, &mut class.forward_pre_hooks),
                    "__forward_hooks__" => self.names(file, &assign.value, &mut class.forward_hooks),
                    // Makes room for `__annotations__["0"] = ...`.
                    "__annotations__" => Ok(()),
                    member_name => {
                        let value = self.constant_expr(file, &assign.value, None)?;
                        let name = self.definitions.ctx.symbol(member_name);
                        let value = if class.kind == ClassKind::Enum {
                            let name = member_name.into();
                            Constant::Enum(Arc::new(EnumConstant {
                                class: class.name,
                                name,
                                value,
                            }))
                        } else {
                            value
                        };
                        class.constants.insert(name, value);
                        Ok(())
                    }
                },
                _ => Err(file
                    .error("class-member", "this cannot stand in a class", member)
                    .into()),
            },
            Stmt::FunctionDef(_) | Stmt::Pass(_) => Ok(()),
            Stmt::Expr(expr) if expr.value.is_string_literal_expr() || expr.value.is_ellipsis_literal_expr() => Ok(()),
            _ => Err(file
                .error("class-member", "this cannot stand in a class", member)
                .into()),
        }
    }

    pub(super) fn define_named_tuple(
        &mut self,
        file: &SourceFile,
        def: &StmtClassDef,
        mut class: ClassDef,
    ) -> Result<TypeId> {
        let qualified = self.definitions.ctx.name(class.name).to_owned();
        self.definitions.defining.insert(qualified.clone());
        for member in &def.body {
            match member {
                Stmt::AnnAssign(assign) => {
                    let Expr::Name(target) = &*assign.target else {
                        return Err(file.error("class-member", "a field's name is expected", member).into());
                    };
                    let ty = self.annotation(file, &assign.annotation)?;
                    let name = self.definitions.ctx.symbol(&target.id);
                    class.add_attribute(name, ty, AttributeKind::Plain);
                    if let Some(value) = &assign.value {
                        let value = self.constant_expr(file, value, Some(ty))?;
                        class.constants.insert(name, value);
                    }
                }
                Stmt::Pass(_) => {}
                Stmt::Expr(expr) if expr.value.is_string_literal_expr() => {}
                // Code knows the fields alone.
                Stmt::FunctionDef(_) | Stmt::Assign(_) if file.rules.is_source() => {}
                other => {
                    return Err(file
                        .error("class-member", "this cannot stand in a NamedTuple", other)
                        .into());
                }
            }
        }
        self.definitions.defining.remove(&qualified);
        Ok(self.finish_named_tuple(class))
    }

    fn finish_named_tuple(&mut self, class: ClassDef) -> TypeId {
        let names: Vec<SymbolId> = class.attributes.keys().copied().collect();
        let fields: Vec<TypeId> = class.attributes.values().map(|field| field.ty).collect();
        let (names, fields) = (
            self.definitions.ctx.symbol_list(&names),
            self.definitions.ctx.type_list(&fields),
        );
        let ty = self
            .definitions
            .ctx
            .type_of_kind(TypeKind::NamedTuple(class.name, names, fields));
        self.definitions.globals.insert(class.name, Global::Type(ty));
        self.definitions.unit.classes.insert(class.name, class);
        ty
    }

    /// Returns the type that `NamedTuple("P", [("x", int)])` or `namedtuple("P", ["x"])` creates; `None` if `value` is
    /// no such call.
    pub(super) fn named_tuple_call(
        &mut self,
        file: &SourceFile,
        value: &Expr,
        name: SymbolId,
    ) -> Result<Option<TypeId>> {
        let Expr::Call(call) = value else { return Ok(None) };
        let function = file.expand(&dotted(&call.func).unwrap_or_default());
        let typed = match function.rsplit('.').next() {
            Some("NamedTuple") => true,
            Some("namedtuple") => false,
            _ => return Ok(None),
        };
        let wrong = |node: &Expr| file.error("class-member", "a list of fields is expected", node);
        let Some(list) = call.arguments.args.get(1) else {
            return Err(wrong(value).into());
        };
        let mut class = ClassDef::new(name, ClassKind::NamedTuple);
        if let (Expr::StringLiteral(text), false) = (list, typed) {
            // `"a, b"`
            let text = text.value.to_str();
            for field in text.split([',', ' ', '\t', '\n']).filter(|field| !field.is_empty()) {
                class.add_attribute(self.definitions.ctx.symbol(field), types::TENSOR, AttributeKind::Plain);
            }
            return Ok(Some(self.finish_named_tuple(class)));
        }
        let items = match list {
            Expr::List(list) => &list.elts,
            Expr::Tuple(tuple) => &tuple.elts,
            _ => return Err(wrong(list).into()),
        };
        for item in items {
            let (field, ty) = match item {
                Expr::StringLiteral(field) if !typed => (field, types::TENSOR),
                Expr::Tuple(pair) if typed => match pair.elts.as_slice() {
                    [Expr::StringLiteral(field), ty] => (field, self.annotation(file, ty)?),
                    _ => return Err(wrong(item).into()),
                },
                _ => return Err(wrong(item).into()),
            };
            class.add_attribute(
                self.definitions.ctx.symbol(field.value.to_str()),
                ty,
                AttributeKind::Plain,
            );
        }
        Ok(Some(self.finish_named_tuple(class)))
    }

    pub(super) fn names(&self, file: &SourceFile, list: &Expr, into: &mut Vec<SymbolId>) -> Result<()> {
        let expected = || file.error("class-member", "a list of names is expected", list);
        let items = match list {
            Expr::List(list) => &list.elts,
            Expr::Tuple(tuple) => &tuple.elts,
            _ => return Err(expected().into()),
        };
        for item in items {
            let Expr::StringLiteral(name) = item else {
                return Err(expected().into());
            };
            into.push(self.definitions.ctx.symbol(name.value.to_str()));
        }
        Ok(())
    }
}

/// Returns whether `def` is a class of exceptions, whose objects code can only raise.
pub(super) fn is_exception(file: &SourceFile, def: &StmtClassDef) -> bool {
    def.bases().iter().any(|base| {
        let name = dotted(base).unwrap_or_default();
        let inherits = |&number: &usize| matches!(file.statement(number), Some(Stmt::ClassDef(other)) if other.name != def.name && is_builtin_exception(other));
        matches!(&*name, "Exception" | "Warning")
            || name.ends_with("Error")
            || file.definitions(&name).iter().any(inherits)
    })
}

fn is_builtin_exception(def: &StmtClassDef) -> bool {
    let names = def.bases().iter().filter_map(dotted);
    names
        .into_iter()
        .any(|name| name == "Exception" || name.ends_with("Error"))
}
