//! Printing of a module as source files.

use std::collections::HashSet;

use frazil_ir::schema::Catalogue;
use frazil_ir::{Constant, Module, ObjectId, SymbolId};
use indexmap::IndexMap;

use super::class::print_class;
use super::constants::ConstantTable;
use super::dependencies::Dependency;
use super::error::CodeError;
use super::function::{File, FunctionPrinter, PrinterContext, Tables};
use super::text::CodeText;

/// The source files of a module, with their constants.
#[derive(Clone, Debug)]
pub struct ModuleCode {
    /// The files, in the order in which an archive lists them.
    pub files: Vec<CodeFile>,
    /// The constants to which the code of any file refers.
    pub constants: ConstantTable,
    /// The oldest archive format version in which all operators of the code have the same meaning; 0 if every version
    /// will do.
    pub min_version: u64,
}

/// One source file of an archive.
#[derive(Clone, Debug)]
pub struct CodeFile {
    /// The qualified name of the file's module, which prefixes its classes and functions: `__torch__.torch.nn.functional`. May be empty.
    pub qualifier: String,
    /// The code of the file.
    pub code: CodeText,
}

impl CodeFile {
    /// Returns the name of the file's entry in the archive: `code/__torch__/torch/nn/functional.py`.
    pub fn entry(&self) -> String {
        format!("code/{}.py", self.qualifier.replace('.', "/"))
    }
}

/// Prints all code that `module` needs, in PyTorch's order: the classes of its objects and the functions and classes that their methods use. Unreachable
/// definitions are left out.
///
/// # Errors
/// When a function cannot be written as TorchScript, or a class or function is missing.
pub fn print_module(module: &Module, catalogue: &Catalogue) -> Result<ModuleCode, CodeError> {
    let context = PrinterContext {
        ctx: module.ctx(),
        unit: Some(&module.unit),
        catalogue,
        importable: true,
    };
    let mut printer = ModulePrinter {
        module,
        context,
        tables: Tables::default(),
        files: IndexMap::new(),
        done: HashSet::new(),
    };
    // First the classes of the objects, as saving meets them; then whatever these need.
    for class in classes_of_objects(module) {
        printer.define(Dependency::Class(class))?;
    }
    let root = module.object(module.root).class;
    printer.tables.dependencies.add(Dependency::Class(root));
    let mut next = 0;
    while let Some(dependency) = printer.tables.dependencies.get(next) {
        next += 1;
        printer.define(dependency)?;
    }
    let files = printer.files.into_iter().map(|(qualifier, file)| CodeFile {
        qualifier,
        code: file.body,
    });
    Ok(ModuleCode {
        files: files.collect(),
        constants: printer.tables.constants,
        min_version: printer.tables.min_version,
    })
}

struct ModulePrinter<'m> {
    module: &'m Module,
    context: PrinterContext<'m>,
    tables: Tables,
    files: IndexMap<String, File>,
    done: HashSet<Dependency>,
}

impl ModulePrinter<'_> {
    fn define(&mut self, dependency: Dependency) -> Result<(), CodeError> {
        if !self.done.insert(dependency) {
            return Ok(());
        }
        let unit = &self.module.unit;
        let name = self.context.ctx.name(dependency.name());
        let unknown = || CodeError::Unknown(name.to_owned());
        let qualifier = name.rsplit_once('.').map_or("", |(qualifier, _)| qualifier);
        // Classes that C++ code registers have no text, but PyTorch writes their empty file.
        let file = self.files.entry(qualifier.to_owned()).or_default();
        let tables = &mut self.tables;
        match dependency {
            Dependency::Function(_) => {
                let id = unit.find_function(dependency.name()).ok_or_else(unknown)?;
                FunctionPrinter::print(self.context, tables, file, unit.function(id), true, 0)
            }
            Dependency::Class(_) | Dependency::NamedTuple(_) => match unit.class(dependency.name()) {
                Some(class) => print_class(self.context, unit, class, tables, file),
                None if name.starts_with("__torch__.torch.classes.") => Ok(()),
                None => Err(unknown()),
            },
        }
    }
}

/// Returns the classes of all objects that are reachable from the module, each once. The class of an object comes before the classes of its attributes.
fn classes_of_objects(module: &Module) -> Vec<SymbolId> {
    let mut classes = Vec::new();
    let mut seen: HashSet<ObjectId> = HashSet::new();
    let mut known: HashSet<SymbolId> = HashSet::new();
    let root = Constant::Object(module.root);
    let mut pending = vec![&root];
    while let Some(value) = pending.pop() {
        match value {
            Constant::Object(id) if seen.insert(*id) => {
                let object = module.object(*id);
                if known.insert(object.class) {
                    classes.push(object.class);
                }
                pending.extend(object.slots.iter().rev());
            }
            Constant::List(list) => pending.extend(list.items.iter().rev()),
            Constant::Tuple(tuple) => pending.extend(tuple.items.iter().rev()),
            Constant::Dict(dict) => {
                pending.extend(dict.entries.iter().rev().flat_map(|(key, value)| [value, key]));
            }
            _ => {}
        }
    }
    classes
}
