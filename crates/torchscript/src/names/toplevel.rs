//! Queries by compiled code about the global variables of a source text.

use std::collections::HashMap;
use std::sync::Arc;

use frazil_ir::Constant;
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::{Ranged, TextRange};

use super::definitions::Definitions;
use super::top::{Bound, Top, TopName};
use crate::error::Result;
use crate::source::SourceFile;

impl Definitions {
    /// Stores the values of the global variables after `file` has run.
    pub(crate) fn set_top(
        &mut self,
        file: &SourceFile,
        names: HashMap<String, TopName>,
        bound: HashMap<TextRange, Bound>,
        constants: HashMap<String, Constant>,
    ) {
        self.top = Some(Top {
            text: Arc::clone(&file.text),
            names,
            bound,
            constants,
        });
    }

    /// Returns the numbers of the functions and classes of the source text that a name denotes, in the order of the
    /// text.
    pub(crate) fn definitions(&self, file: &SourceFile) -> Vec<usize> {
        let names = self.top.iter().flat_map(|top| &top.names);
        let mut numbers: Vec<usize> = names
            .filter_map(|(name, known)| match known {
                // Another name for a function is no function.
                TopName::Definition(number) => file.definitions(name).contains(number).then_some(*number),
                _ => None,
            })
            .collect();
        numbers.sort_by_key(|&number| file.statement(number).map(Ranged::start));
        numbers
    }

    /// Returns the name under which the definition is known, if `name` is an alias for one.
    pub(crate) fn defined_as(&self, file: &SourceFile, name: &str) -> Option<String> {
        let top = self.top.as_ref().filter(|_| file.rules.is_source())?;
        let Some(TopName::Definition(number) | TopName::Scripted(number)) = top.names.get(name) else {
            return None;
        };
        let own = match file.statement(*number)? {
            Stmt::FunctionDef(def) => &def.name,
            Stmt::ClassDef(def) => &def.name,
            _ => return None,
        };
        let is_current = matches!(top.names.get(own.as_str()), Some(TopName::Definition(now)) if now == number);
        (own.as_str() != name && is_current).then(|| own.to_string())
    }

    /// Returns the index of the traced function that the global name `name` denotes, if it denotes one.
    pub(crate) fn traced_as(&self, file: &SourceFile, name: &str) -> Option<usize> {
        let top = self.top.as_ref().filter(|_| file.rules.is_source())?;
        match top.names.get(name) {
            Some(TopName::Traced(number)) => Some(*number),
            _ => None,
        }
    }

    /// Returns the top-level aliases of compiled and traced functions, with the number of the statement or trace.
    pub(crate) fn compiled_names(&self) -> Vec<(String, usize, bool)> {
        let names = self.top.iter().flat_map(|top| &top.names);
        let mut names: Vec<_> = names
            .filter_map(|(name, known)| match known {
                TopName::Scripted(statement) => Some((name.clone(), *statement, false)),
                TopName::Traced(number) => Some((name.clone(), *number, true)),
                _ => None,
            })
            .collect();
        names.sort();
        names
    }

    /// Returns the statements of `file` that may define `name`, with their indices.
    pub(crate) fn candidates<'f>(&self, file: &'f SourceFile, name: &str) -> Result<Vec<(usize, &'f Stmt)>> {
        let known = match &self.top {
            Some(top) if file.rules.is_source() => top.names.get(name),
            _ => None,
        };
        match known {
            Some(TopName::Definition(number) | TopName::Scripted(number)) => {
                Ok(file.statement(*number).map(|s| (*number, s)).into_iter().collect())
            }
            Some(TopName::Refused(error)) if !file.definitions(name).is_empty() => Err(error.clone().into()),
            // What was defined before is hidden by it.
            Some(TopName::Elsewhere) if !file.definitions(name).is_empty() => Ok(Vec::new()),
            _ => {
                let defined = file.definitions(name).iter().rev();
                let defined = defined.filter_map(|&number| Some((number, file.statement(number)?)));
                let assigned = file.assignments(name).iter();
                let assigned = assigned.filter_map(|&number| Some((number, file.statement(number)?)));
                Ok(defined.chain(assigned).collect())
            }
        }
    }

    /// Returns the Python class of the global `name`, if its value has no TorchScript type.
    ///
    /// # Errors
    /// When the value could not be evaluated.
    pub(crate) fn python_value(&self, file: &SourceFile, name: &str) -> Result<Option<&'static str>> {
        match self
            .top
            .as_ref()
            .filter(|_| file.rules.is_source())
            .and_then(|top| top.names.get(name))
        {
            Some(TopName::Python(class)) => Ok(Some(class)),
            Some(TopName::Refused(error)) => Err(error.clone().into()),
            _ => Ok(None),
        }
    }

    /// Returns the value of `expr`, a default or a value in a class body, at its definition. `None` for other expressions.
    pub(crate) fn bound_value(&self, file: &SourceFile, expr: &Expr) -> Option<&Bound> {
        let top = self.top.as_ref().filter(|top| Arc::ptr_eq(&top.text, &file.text))?;
        top.bound.get(&expr.range())
    }

    /// Returns the number, string or tensor in the global `name`, for code that is compiled with Python's rules.
    pub(crate) fn python_constant(&self, file: &SourceFile, name: &str) -> Option<Constant> {
        self.top
            .as_ref()
            .filter(|_| file.rules.is_source())?
            .constants
            .get(name)
            .cloned()
    }
}
