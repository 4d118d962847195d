//! Compilation of source that refers to compiled code: functions that call functions of other units, and methods added to a class.

use super::{Source, traces};
use crate::error::{Result, SourceError};
use crate::options::LoadOptions;
use crate::program::{Known, NoSources, SourceProgram};
use crate::python;
use crate::source::with_stack;
use frazil_ir::{CompilationUnit, Module, ObjectId, SymbolId, symbols};
use indexmap::IndexMap;
use std::sync::Arc;

/// Compiles source as [`load_source`](super::load_source) does. The text may also call the functions in `known`, which the returned unit includes, with their
/// dependencies. If several classes or functions have one name, the first is used.
///
/// # Errors
/// See [`load_source`](super::load_source).
pub fn load_source_with(file: &str, text: &str, known: &[Known<'_>], options: &LoadOptions<'_>) -> Result<Source> {
    with_stack(|stack| {
        let mut left_out: IndexMap<String, Box<SourceError>> = IndexMap::new();
        loop {
            let mut program = SourceProgram::new(options, &NoSources, stack);
            program.operators = options.operators;
            program.definitions.operators_first = options.operators_first;
            for known in known {
                program.know(known);
            }
            program.refusals.left_out = left_out.clone();
            program.refusals.tolerates = true;
            let parsed = program.start_text(file, text)?;
            // Functions of a text that makes a module serve it: those that it does not call are Python's.
            if let Some(root) = python::module(&mut program, &parsed)? {
                program.refusals.tolerates = false;
                program.compile_all()?;
                let traces = std::mem::take(&mut program.definitions.traces);
                let mut module = root.into_module(ObjectId::from_u32(0), options.ctx, program.definitions.unit);
                traces::run(&mut module, traces, options)?;
                return Ok(Source::Module(Box::new(module)));
            }
            program.define_text(&parsed)?;
            program.compile_all()?;
            let found = program.failures()?;
            if found.is_empty() {
                let refused = left_out.into_iter();
                program.definitions.unit.refused = refused.map(|(name, error)| (name, error.to_string())).collect();
                let traces = std::mem::take(&mut program.definitions.traces);
                let mut module = Module::new(
                    Arc::clone(options.ctx),
                    program.definitions.unit,
                    symbols::EMPTY,
                    Vec::new(),
                );
                traces::run(&mut module, traces, options)?;
                return Ok(Source::Unit(module.unit));
            }
            // What compiles does not need what does not: once more without that.
            left_out.extend(found);
        }
    })
}

/// Returns the unit with the functions of `text` added as methods of `class` (`ScriptModule.define`). The new methods may call the unit's methods and each
/// other.
///
/// # Errors
/// When the text does not compile, or the class does not exist or already has a method of that name.
pub fn define_methods(
    file: &str,
    text: &str,
    unit: CompilationUnit,
    class: SymbolId,
    options: &LoadOptions<'_>,
) -> Result<CompilationUnit> {
    with_stack(|stack| {
        let mut program = SourceProgram::new(options, &NoSources, stack);
        program.operators = options.operators;
        program.adopt(unit);
        program.define_text_methods(file, text, class)?;
        program.compile_all()?;
        Ok(program.definitions.unit)
    })
}
