//! Queries about classes of modules: uncompiled methods, children, and attributes without a TorchScript type.

use std::sync::Arc;

use frazil_ir::SymbolId;

use super::definitions::Definitions;
use crate::source::decorators::{self, Marker};
use crate::source::{DefPath, SourceFile};

impl Definitions {
    /// Returns the location of method `method` of a class in a traced module, if it is plain Python there.
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

    /// Returns the reason why attribute `name` of a module has no TorchScript type, if the Python object has this
    /// attribute.
    pub(crate) fn unconverted(&self, class: SymbolId, name: &str) -> Option<&str> {
        self.modules.get(&class)?.unconverted.get(name).map(String::as_str)
    }

    /// Returns the names of the overloads of `method`, if it has several signatures.
    pub(crate) fn overloaded_methods(&self, class: SymbolId, method: &str) -> Option<&[String]> {
        let names = self.modules.get(&class)?.overloads.get(method)?;
        Some(names)
    }

    /// Returns the names of the children in `class`, if it is a class of containers of modules.
    pub(crate) fn container(&self, class: SymbolId) -> Option<&[String]> {
        self.modules.get(&class)?.children.as_deref()
    }

    /// Returns the dotted name of the function in attribute `name` of a module, if the attribute is a function.
    pub(crate) fn function_attribute(&self, class: SymbolId, name: &str) -> Option<&str> {
        self.modules.get(&class)?.functions.get(name).map(String::as_str)
    }
}
