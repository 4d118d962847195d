//! The interface of name resolution.

use std::sync::Arc;

use frazil_ir::schema::{Catalogue, FunctionSchema};
use frazil_ir::{ClassDef, CompilationUnit, Context, FunctionId, SymbolId};
use frazil_passes::Operators;
use ruff_text_size::TextRange;

use super::class::{ClassRef, MethodTable};
use super::definitions::{Definitions, Global};
use crate::error::Result;
use crate::source::SourceFile;

/// Resolves the names of a program. A function or class is defined when its name is resolved for the first time.
///
/// The emitter, the interpreter of Python and the reader of objects know a program by this interface alone.
pub(crate) trait Names {
    /// The definitions so far.
    fn definitions(&self) -> &Definitions;

    /// The definitions so far, to add to them.
    fn definitions_mut(&mut self) -> &mut Definitions;

    /// The operators that code may call.
    fn catalogue(&self) -> &Catalogue;

    /// See [`LoadOptions::operators`](crate::LoadOptions::operators).
    fn operators(&self) -> Option<&dyn Operators>;

    /// The source file that defines the names under `qualifier`, if there is one.
    fn file(&mut self, qualifier: &str) -> Result<Option<Arc<SourceFile>>>;

    /// The function or class of this qualified name.
    fn global(&mut self, name: &str) -> Result<Option<Global>>;

    /// The schema of a function. Its body is compiled first if the definition does not state the type of the result. `at` in `file` is the place of the
    /// caller, for errors.
    fn schema_of(&mut self, id: FunctionId, file: &SourceFile, at: TextRange) -> Result<FunctionSchema>;

    /// Method `method` of a class. A method of a module is defined if this is its first use.
    fn module_method(&mut self, class: SymbolId, method: &str) -> Result<Option<FunctionId>>;

    /// Defines a class of modules with the methods of `chain`, its Python class and the bases of that. `forward` and exported methods are compiled in any
    /// case.
    fn define_module_class(&mut self, class: ClassDef, chain: &[ClassRef], table: MethodTable) -> Result<()>;

    /// The context of the program's types and names.
    fn ctx(&self) -> &Arc<Context> {
        &self.definitions().ctx
    }

    /// The functions and classes that are defined so far.
    fn unit(&self) -> &CompilationUnit {
        &self.definitions().unit
    }

    /// The function or class that `name` stands for in the code of `file`, which may name its own definitions without their qualifier.
    fn global_of(&mut self, file: &SourceFile, name: &str) -> Result<Option<Global>> {
        match file.rules.qualifier() {
            Some(qualifier) if !name.starts_with("__torch__.") => self.global(&format!("{qualifier}.{name}")),
            _ => self.global(name),
        }
    }
}
