//! Code that is compiled already, for source to refer to.

use std::sync::Arc;

use frazil_ir::{ClassKind, CompilationUnit, SymbolId, TypeId, TypeKind};
use ruff_python_ast::Stmt;

use super::{BY_HAND, DefPath, Global, Program};
use crate::frontend::Result;
use crate::frontend::extend::Known;
use crate::frontend::source::SourceFile;

impl Program<'_> {
    /// Starts from `unit`: source may name its classes and functions by their qualified names.
    pub(crate) fn adopt(&mut self, unit: CompilationUnit) {
        for (name, class) in &unit.classes {
            if let Some(ty) = self.type_of_class(*name, class.kind) {
                self.globals.insert(*name, Global::Type(ty));
            }
        }
        for (id, function) in unit.functions() {
            self.globals.insert(function.name, Global::Function(id));
        }
        self.unit = unit;
    }

    fn type_of_class(&self, name: SymbolId, kind: ClassKind) -> Option<TypeId> {
        Some(self.ctx.type_of_kind(match kind {
            // Its type has its fields, which the definition has in another form; values of it can be passed on.
            ClassKind::NamedTuple => return None,
            ClassKind::Enum => TypeKind::Enum(name),
            ClassKind::Interface | ClassKind::ModuleInterface => TypeKind::Interface(name),
            ClassKind::Class | ClassKind::Module => TypeKind::Class(name),
        }))
    }

    /// Makes a function of another unit known by a name of the text by hand. What it calls comes along, and keeps its names.
    pub(crate) fn know(&mut self, known: &Known<'_>) {
        for (name, class) in &known.unit.classes {
            if self.unit.class(*name).is_none() {
                let mut class = class.clone();
                class.methods.clear();
                self.unit.classes.insert(*name, class);
            }
        }
        for (id, function) in known.unit.functions() {
            let mut function = function.clone();
            if id == known.function {
                function.name = self.ctx.symbol(&format!("{BY_HAND}.{}", known.name));
                function.schema.name = function.name;
            } else if self.unit.find_function(function.name).is_some() {
                continue;
            }
            let name = function.name;
            let new = self.unit.add_function(function);
            self.globals.insert(name, Global::Function(new));
        }
        for (name, class) in &known.unit.classes {
            for (method, id) in &class.methods {
                let moved = self.unit.find_function(known.unit.function(*id).name);
                if let (Some(class), Some(id)) = (self.unit.classes.get_mut(name), moved) {
                    class.methods.entry(*method).or_insert(id);
                }
            }
        }
    }

    /// Defines the functions of a text as methods of `class`.
    pub(crate) fn define_text_methods(&mut self, name: &str, text: &str, class: SymbolId) -> Result<()> {
        self.by_hand = true;
        let file = Arc::new(SourceFile::parse(name, text, None, self.stack)?.under(BY_HAND));
        self.unit.sources.add(self.ctx.symbol(name), 1, Arc::clone(&file.text));
        self.files.insert(BY_HAND.to_owned(), Some(Arc::clone(&file)));
        let ty = self.ctx.type_of_kind(TypeKind::Class(class));
        for (statement, def) in file.body().iter().enumerate() {
            let Stmt::FunctionDef(def) = def else { continue };
            let method = self.ctx.symbol(&def.name);
            if self.unit.method(class, method).is_some() {
                let message = format!("method '{}' already defined", def.name);
                return Err(file.error("redefinition", message, &def.name).into());
            }
            let full = self.ctx.symbol(&format!("{}.{}", self.ctx.name(class), def.name));
            let path = DefPath {
                statement,
                method: None,
            };
            let id = self.define_function(&file, def, path, full, Some(ty))?;
            if let Some(class) = self.unit.classes.get_mut(&class) {
                class.methods.insert(method, id);
            }
        }
        Ok(())
    }
}
