//! Functions and classes of a source text that do not compile. They are an error only if they are used.

use std::collections::HashMap;

use frazil_ir::FunctionId;
use indexmap::IndexMap;
use ruff_python_ast::Stmt;

use super::SourceProgram;
use crate::error::{LoadError, Result, SourceError};
use crate::names::Names;
use crate::source::SOURCE_QUALIFIER;
use crate::source::decorators::is_scripted_statement;

/// Definitions of a source text that do not compile, with their errors.
#[derive(Default)]
pub(crate) struct Refusals {
    /// Whether other definitions are compiled after one does not compile.
    pub(crate) tolerates: bool,
    /// The first error in each global function and class, by name.
    pub(crate) found: IndexMap<String, Box<SourceError>>,
    /// The definitions that are skipped because they are known not to compile, by name.
    pub(crate) left_out: IndexMap<String, Box<SourceError>>,
    errors: HashMap<FunctionId, Box<SourceError>>,
}

impl Refusals {
    /// Returns whether the function or class `name` is skipped.
    pub(super) fn skips(&self, name: &str) -> bool {
        self.left_out.contains_key(name)
    }

    pub(super) fn keep(&mut self, id: FunctionId, error: &SourceError) {
        self.errors.entry(id).or_insert_with(|| Box::new(error.clone()));
    }

    /// Returns the error of function `id`, which failed to compile.
    pub(super) fn error_of(&self, id: FunctionId) -> LoadError {
        match self.errors.get(&id) {
            Some(error) => error.clone().into(),
            None => LoadError::Thread(std::io::Error::other("a function failed without an error")),
        }
    }
}

impl SourceProgram<'_> {
    /// Returns the functions and classes that do not compile, to be skipped.
    ///
    /// # Errors
    /// When the text defines nothing else, or a decorator requires that one of them compiles.
    pub(crate) fn failures(&mut self) -> Result<IndexMap<String, Box<SourceError>>> {
        let found = std::mem::take(&mut self.refusals.found);
        let Some(file) = self.file(SOURCE_QUALIFIER)? else {
            return Ok(found);
        };
        let all = self.definitions.definitions(&file);
        let remaining = all.iter().filter(|&&number| {
            let name = match file.statement(number) {
                Some(Stmt::FunctionDef(def)) => def.name.as_str(),
                Some(Stmt::ClassDef(def)) => def.name.as_str(),
                _ => return false,
            };
            !found.contains_key(name) && !self.refusals.skips(name)
        });
        let mut compiled = self.definitions.compiled_names().into_iter();
        let has_compiled = compiled.any(|(name, ..)| !found.contains_key(&name) && !self.refusals.skips(&name));
        let is_empty = remaining.count() == 0 && !has_compiled;
        let needed = found.iter().find(|(name, _)| {
            let numbers = file.definitions(name).iter();
            is_empty
                || numbers
                    .filter_map(|&number| file.statement(number))
                    .any(|s| is_scripted_statement(&file, s))
        });
        match needed {
            Some((_, error)) => Err(error.clone().into()),
            None => Ok(found),
        }
    }

    /// Records the error of a definition that does not compile, if that is tolerated; otherwise returns it. `name` is the function's or method's name.
    pub(super) fn note_refusal(&mut self, name: &str, compiled: Result<()>) -> Result<()> {
        match compiled {
            Err(LoadError::Source(error)) if self.refusals.tolerates => {
                let simple = name
                    .strip_prefix(SOURCE_QUALIFIER)
                    .map_or(name, |name| name.trim_start_matches('.'));
                let mut parts = simple.split('.').filter(|part| !part.starts_with("___torch_mangle_"));
                let simple = parts.next().unwrap_or(simple).to_owned();
                self.refusals.found.entry(simple).or_insert(error);
                Ok(())
            }
            other => other,
        }
    }
}
