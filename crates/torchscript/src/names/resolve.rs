//! The interface by which compilation resolves names.

use std::sync::Arc;

use frazil_ir::schema::{Catalogue, FunctionSchema};
use frazil_ir::{ClassDef, CompilationUnit, Context, FunctionId, SymbolId};
use frazil_passes::Operators;
use ruff_text_size::TextRange;

use super::class::{ClassRef, MethodTable};
use super::definitions::{Definitions, Global};
use crate::error::Result;
use crate::source::SourceFile;

/// Resolves the names of a program. A function or class is defined when its name is first resolved.
///
/// The emitter, the interpreter of Python and the reader of objects access a program only through this interface.
pub(crate) trait Names {
    /// Returns the definitions of the program so far.
    fn definitions(&self) -> &Definitions;

    /// Returns the definitions of the program so far, mutably.
    fn definitions_mut(&mut self) -> &mut Definitions;

    /// Returns the operators that code may call.
    fn catalogue(&self) -> &Catalogue;

    /// See [`LoadOptions::operators`](crate::LoadOptions::operators).
    fn operators(&self) -> Option<&dyn Operators>;

    /// Returns the source file that defines the names under `qualifier`, if there is one.
    fn file(&mut self, qualifier: &str) -> Result<Option<Arc<SourceFile>>>;

    /// Returns the function or class with the qualified name `name`.
    fn global(&mut self, name: &str) -> Result<Option<Global>>;

    /// Returns the schema of a function. Its body is compiled first if the definition does not state the type of the result. `at` in `file` is the caller's
    /// location, for errors.
    fn schema_of(&mut self, id: FunctionId, file: &SourceFile, at: TextRange) -> Result<FunctionSchema>;

    /// Returns method `method` of a class. A method of a module is defined on first use.
    fn module_method(&mut self, class: SymbolId, method: &str) -> Result<Option<FunctionId>>;

    /// Defines a class of modules with the methods of `chain`: its Python class and the bases of that class. `forward` and exported methods are always
    /// compiled.
    fn define_module_class(&mut self, class: ClassDef, chain: &[ClassRef], table: MethodTable) -> Result<()>;

    /// Returns the context of the program's types and names.
    fn ctx(&self) -> &Arc<Context> {
        &self.definitions().ctx
    }

    /// Returns the functions and classes that are defined so far.
    fn unit(&self) -> &CompilationUnit {
        &self.definitions().unit
    }

    /// Returns the function or class that `name` denotes in the code of `file`. The file's own definitions need no qualifier there.
    fn global_of(&mut self, file: &SourceFile, name: &str) -> Result<Option<Global>> {
        match file.rules.qualifier() {
            Some(qualifier) if !name.starts_with("__torch__.") => self.global(&format!("{qualifier}.{name}")),
            _ => self.global(name),
        }
    }
}
