//! Classes: attributes, constants, methods.

use std::sync::Arc;

use frazil_ir::{AttributeKind, ClassDef, ClassKind, Constant, EnumConstant, SymbolId, TypeId, TypeKind};
use ruff_python_ast::{Expr, Stmt, StmtClassDef};

use super::{DefPath, Global, Program};
use crate::frontend::Result;
use crate::frontend::annotation::dotted;
use crate::frontend::source::SourceFile;

impl Program<'_> {
    pub(super) fn define_class(
        &mut self,
        file: &Arc<SourceFile>,
        def: &StmtClassDef,
        statement: usize,
        name: SymbolId,
    ) -> Result<TypeId> {
        let base = def
            .arguments
            .as_ref()
            .and_then(|a| a.args.first())
            .and_then(dotted)
            .unwrap_or_default();
        let kind = match base.rsplit('.').next().unwrap_or_default() {
            "Module" => ClassKind::Module,
            "NamedTuple" => ClassKind::NamedTuple,
            "Enum" => ClassKind::Enum,
            "Interface" => ClassKind::Interface,
            "ModuleInterface" => ClassKind::ModuleInterface,
            "" | "object" => ClassKind::Class,
            other => {
                let message = format!("a class cannot derive from `{other}`");
                return Err(file.error("base-class", message, def).into());
            }
        };
        let mut class = ClassDef::new(name, kind);
        if kind == ClassKind::NamedTuple {
            return self.define_named_tuple(file, def, class);
        }
        let ty = self.ctx.type_of_kind(match kind {
            ClassKind::Enum => TypeKind::Enum(name),
            ClassKind::Interface | ClassKind::ModuleInterface => TypeKind::Interface(name),
            _ => TypeKind::Class(name),
        });
        // From here on the class may refer to itself.
        self.globals.insert(name, Global::Type(ty));
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
        let is_interface = matches!(kind, ClassKind::Interface | ClassKind::ModuleInterface);
        for (index, member) in def.body.iter().enumerate() {
            let Stmt::FunctionDef(method) = member else { continue };
            let method_name = self.ctx.symbol(&method.name);
            if is_interface {
                let schema = self.signature(file, method, method_name, Some(ty))?;
                class.signatures.insert(method_name, schema);
            } else {
                let full = self
                    .ctx
                    .symbol(&format!("{}.{}", self.ctx.name(name), method.name.as_str()));
                let path = DefPath {
                    statement,
                    method: Some(index),
                };
                let id = self.define_function(file, method, path, full, Some(ty))?;
                class.methods.insert(method_name, id);
            }
        }
        let init = class.methods.get(&self.ctx.symbol("__init__")).copied();
        self.unit.classes.insert(name, class);
        if let (Some(init), true) = (init, self.by_hand) {
            self.initialising.push(name);
            let compiled = self.compile(init);
            self.initialising.pop();
            compiled?;
        }
        Ok(ty)
    }

    /// The type of an attribute that is set to a value of type `given`. In the `__init__` of a class by hand this declares it.
    pub(crate) fn attribute_to_set(&mut self, class: SymbolId, name: SymbolId, given: TypeId) -> Option<TypeId> {
        let declares = self.initialising.last() == Some(&class);
        let class = self.unit.classes.get_mut(&class)?;
        if let Some(attribute) = class.attributes.get(&name) {
            return Some(attribute.ty);
        }
        if !declares {
            return None;
        }
        class.add_attribute(name, given, AttributeKind::Plain);
        Some(given)
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
                let ty = self.annotation(file, &assign.annotation)?;
                let name = self.ctx.symbol(&target.id);
                match &assign.value {
                    Some(value) => {
                        let value = self.constant_expr(file, value, Some(ty))?;
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
                    class.add_attribute(self.ctx.symbol(name.value.to_str()), ty, AttributeKind::Plain);
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
                        let name = self.ctx.symbol(member_name);
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
            Stmt::Expr(expr) if expr.value.is_string_literal_expr() => Ok(()),
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
        let qualified = self.ctx.name(class.name).to_owned();
        self.defining.insert(qualified.clone());
        for member in &def.body {
            match member {
                Stmt::AnnAssign(assign) => {
                    let Expr::Name(target) = &*assign.target else {
                        return Err(file.error("class-member", "a field's name is expected", member).into());
                    };
                    let ty = self.annotation(file, &assign.annotation)?;
                    let name = self.ctx.symbol(&target.id);
                    class.add_attribute(name, ty, AttributeKind::Plain);
                    if let Some(value) = &assign.value {
                        let value = self.constant_expr(file, value, Some(ty))?;
                        class.constants.insert(name, value);
                    }
                }
                Stmt::Pass(_) => {}
                other => {
                    return Err(file
                        .error("class-member", "this cannot stand in a NamedTuple", other)
                        .into());
                }
            }
        }
        self.defining.remove(&qualified);
        let names: Vec<SymbolId> = class.attributes.keys().copied().collect();
        let fields: Vec<TypeId> = class.attributes.values().map(|field| field.ty).collect();
        let (names, fields) = (self.ctx.symbol_list(&names), self.ctx.type_list(&fields));
        let ty = self.ctx.type_of_kind(TypeKind::NamedTuple(class.name, names, fields));
        self.globals.insert(class.name, Global::Type(ty));
        self.unit.classes.insert(class.name, class);
        Ok(ty)
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
            into.push(self.ctx.symbol(name.value.to_str()));
        }
        Ok(())
    }
}
