//! Links from source code to functions that are already compiled.

use frazil_ir::{ClassKind, CompilationUnit, FunctionId, SymbolId, TypeId, TypeKind};
use ruff_python_ast::Stmt;

use super::SourceProgram;
use crate::error::Result;
use crate::names::Global;
use crate::source::{DefPath, SOURCE_QUALIFIER};

/// A compiled function in another unit, with the name by which source refers to it. The unit must have the same context as the source.
#[derive(Clone, Copy, Debug)]
pub struct Known<'u> {
    /// The name by which the source refers to the function.
    pub name: &'u str,
    /// The unit that contains the compiled function.
    pub unit: &'u CompilationUnit,
    /// The function in `unit`.
    pub function: FunctionId,
}

impl SourceProgram<'_> {
    /// Initialises the program with the definitions of `unit`. Source may refer to its classes and functions by their
    /// qualified names.
    pub(crate) fn adopt(&mut self, unit: CompilationUnit) {
        for (name, class) in &unit.classes {
            if let Some(ty) = self.type_of_class(*name, class.kind) {
                self.definitions.globals.insert(*name, Global::Type(ty));
            }
        }
        for (id, function) in unit.functions() {
            self.definitions.globals.insert(function.name, Global::Function(id));
        }
        self.definitions.unit = unit;
    }

    fn type_of_class(&self, name: SymbolId, kind: ClassKind) -> Option<TypeId> {
        Some(self.definitions.ctx.type_of_kind(match kind {
            // Its type has its fields, which the definition has in another form; values of it can be passed on.
            ClassKind::NamedTuple => return None,
            ClassKind::Enum => TypeKind::Enum(name),
            ClassKind::Interface | ClassKind::ModuleInterface => TypeKind::Interface(name),
            ClassKind::Class | ClassKind::Module => TypeKind::Class(name),
        }))
    }

    /// Makes a function of another unit available under a name of the source text. The functions that it calls are added, too, and keep their names.
    pub(crate) fn know(&mut self, known: &Known<'_>) {
        for (name, class) in &known.unit.classes {
            if self.definitions.unit.class(*name).is_none() {
                let mut class = class.clone();
                class.methods.clear();
                self.definitions.unit.classes.insert(*name, class);
            }
        }
        for (id, function) in known.unit.functions() {
            let mut function = function.clone();
            if id == known.function {
                function.name = self
                    .definitions
                    .ctx
                    .symbol(&format!("{SOURCE_QUALIFIER}.{}", known.name));
                function.schema.name = function.name;
            } else if self.definitions.unit.find_function(function.name).is_some() {
                continue;
            }
            let name = function.name;
            let new = self.definitions.unit.add_function(function);
            self.definitions.globals.insert(name, Global::Function(new));
        }
        for (name, class) in &known.unit.classes {
            for (method, id) in &class.methods {
                let moved = self.definitions.unit.find_function(known.unit.function(*id).name);
                if let (Some(class), Some(id)) = (self.definitions.unit.classes.get_mut(name), moved) {
                    class.methods.entry(*method).or_insert(id);
                }
            }
        }
    }

    /// Defines the functions of a source text as methods of `class`.
    pub(crate) fn define_text_methods(&mut self, name: &str, text: &str, class: SymbolId) -> Result<()> {
        let file = self.start_text(name, text)?;
        let ty = self.definitions.ctx.type_of_kind(TypeKind::Class(class));
        for (statement, def) in file.body().iter().enumerate() {
            let Stmt::FunctionDef(def) = def else { continue };
            let method = self.definitions.ctx.symbol(&def.name);
            if self.definitions.unit.method(class, method).is_some() {
                let message = format!("method '{}' already defined", def.name);
                return Err(file.error("redefinition", message, &def.name).into());
            }
            let full = self
                .definitions
                .ctx
                .symbol(&format!("{}.{}", self.definitions.ctx.name(class), def.name));
            let path = DefPath {
                statement,
                method: None,
            };
            let id = self.define_function(&file, def, path, full, Some(ty))?;
            if let Some(class) = self.definitions.unit.classes.get_mut(&class) {
                class.methods.insert(method, id);
            }
        }
        Ok(())
    }
}
