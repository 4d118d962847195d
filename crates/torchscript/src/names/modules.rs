//! Queries about classes of modules: methods that are not compiled yet, children, attributes that only Python has.

use std::sync::Arc;

use frazil_ir::SymbolId;

use super::definitions::Definitions;
use crate::source::decorators::{self, Marker};
use crate::source::{DefPath, SourceFile};

impl Definitions {
    /// Where method `method` of a class stands, if it is one of a traced module that Python runs.
    pub(crate) fn python_method(&self, class: SymbolId, method: &str) -> Option<(Arc<SourceFile>, DefPath)> {
        if !self.traces.context.classes.contains(&class) {
            return None;
        }
        let source = self.modules.get(&class)?.methods.get(method)?;
        let def = source.body.def(&source.file)?;
        let marker = decorators::marker(&source.file, def).ok()?;
        let is_plain = matches!(
            marker,
            Marker::Plain | Marker::Export | Marker::Ignored | Marker::Unused
        );
        (is_plain && source.signature.is_none()).then(|| (Arc::clone(&source.file), source.body))
    }

    /// Why attribute `name` of a module is none of its class, if the object has one in Python.
    pub(crate) fn unconverted(&self, class: SymbolId, name: &str) -> Option<&str> {
        self.modules.get(&class)?.unconverted.get(name).map(String::as_str)
    }

    /// The methods among which a call of `method` chooses by its arguments, if it has several signatures.
    pub(crate) fn overloaded_methods(&self, class: SymbolId, method: &str) -> Option<&[String]> {
        let names = self.modules.get(&class)?.overloads.get(method)?;
        Some(names)
    }

    /// The names of the children of a container of modules.
    pub(crate) fn container(&self, class: SymbolId) -> Option<&[String]> {
        self.modules.get(&class)?.children.as_deref()
    }

    /// The dotted name of the function that attribute `name` of a module is.
    pub(crate) fn function_attribute(&self, class: SymbolId, name: &str) -> Option<&str> {
        self.modules.get(&class)?.functions.get(name).map(String::as_str)
    }
}
