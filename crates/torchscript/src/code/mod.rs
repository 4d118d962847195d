//! TorchScript source of functions, classes and modules, as PyTorch prints it (`.code`) and stores it in archives.
//!
//! - [`print_method`] returns one method or function as text, [`print_class`] a class with its methods.
//! - [`print_module`] returns the source files of a module, as an archive holds them under `code/`.
//!
//! The text comes with the constants that it names `CONSTANTS.c0`, `CONSTANTS.c1`, ..., the classes and functions that it depends on, and marks. A mark
//! contains the source range of a piece of the text.
//!
//! For the same graph and names, the text equals PyTorch's byte for byte. It depends on the graph alone, so graphs that passes have changed can be printed.
//! [`load`](crate::load) and PyTorch read it back.
//!
//! By file: `inline` decides which nodes are printed where they are used, `statement` walks the blocks, `expression` and `arguments` write right-hand sides,
//! and `split` breaks long lines up.

mod arguments;
mod class;
mod constants;
mod dependencies;
mod error;
mod expression;
mod function;
mod inline;
mod module;
mod names;
mod split;
mod statement;
mod text;

use frazil_ir::schema::Catalogue;
use frazil_ir::{CompilationUnit, Context, Function, SymbolId};

pub use constants::{ConstantTable, TableEntry};
pub use dependencies::{Dependencies, Dependency};
pub use error::CodeError;
pub use module::{CodeFile, ModuleCode, print_module};
pub use text::{CodeMark, CodeText};

use function::{File, FunctionPrinter, PrinterContext, Tables};

/// Inputs for printing code besides the printed function or class.
#[derive(Clone, Copy)]
pub struct CodeSource<'a> {
    /// The context of names and types.
    pub ctx: &'a Context,
    /// The unit with the classes and functions that the code refers to; `None` for a graph by itself.
    pub unit: Option<&'a CompilationUnit>,
    /// The operators, with the names and defaults of their arguments. An operator without a schema is printed with all of its operands.
    pub catalogue: &'a Catalogue,
}

/// The code of a printed function or class, with its constants and dependencies.
#[derive(Clone, Debug)]
pub struct PrintedCode {
    /// The text with its source ranges.
    pub code: CodeText,
    /// The constants that the code refers to.
    pub constants: ConstantTable,
    /// The classes and functions that the code refers to.
    pub dependencies: Dependencies,
    /// The oldest archive format version in which all operators of the code have the same meaning; 0 if all versions qualify.
    pub min_version: u64,
}

impl<'a> CodeSource<'a> {
    fn context(self, importable: bool) -> PrinterContext<'a> {
        PrinterContext {
            ctx: self.ctx,
            unit: self.unit,
            catalogue: self.catalogue,
            importable,
        }
    }
}

/// Prints a method as PyTorch's `.code` does, without the type of its first argument, the object.
///
/// Constructs that archives cannot contain are printed, too: several results, closures, calls of Python functions.
///
/// # Errors
/// When the graph does not fit its signature, or holds a node that the language cannot express.
pub fn print_method(source: CodeSource<'_>, method: &Function) -> Result<PrintedCode, CodeError> {
    printed(|tables, file| FunctionPrinter::print(source.context(false), tables, file, method, false, 0))
}

/// Prints a function as PyTorch's `.code` does.
///
/// # Errors
/// See [`print_method`].
pub fn print_function(source: CodeSource<'_>, function: &Function) -> Result<PrintedCode, CodeError> {
    printed(|tables, file| FunctionPrinter::print(source.context(false), tables, file, function, true, 0))
}

/// Prints the definition of class `name` with its methods, as archives contain it.
///
/// # Errors
/// As [`print_method`], and when there is no such class.
pub fn print_class(source: CodeSource<'_>, name: SymbolId) -> Result<PrintedCode, CodeError> {
    let unknown = || CodeError::Unknown(source.ctx.name(name).to_owned());
    let unit = source.unit.ok_or_else(unknown)?;
    let class = unit.class(name).ok_or_else(unknown)?;
    printed(|tables, file| class::print_class(source.context(true), unit, class, tables, file))
}

fn printed(print: impl FnOnce(&mut Tables, &mut File) -> Result<(), CodeError>) -> Result<PrintedCode, CodeError> {
    let (mut tables, mut file) = (Tables::default(), File::default());
    print(&mut tables, &mut file)?;
    Ok(PrintedCode {
        code: file.body,
        constants: tables.constants,
        dependencies: tables.dependencies,
        min_version: tables.min_version,
    })
}
