//! Definition of overloaded names, which denote several functions.

use std::sync::Arc;

use frazil_ir::SymbolId;
use ruff_python_ast::{Stmt, StmtFunctionDef};

use super::SourceProgram;
use crate::error::Result;
use crate::names::{Alternatives, Global};
use crate::source::decorators::{self, Marker};
use crate::source::{DefPath, SourceFile};

impl SourceProgram<'_> {
    /// Defines the function `def` under each of the signatures that the text declares for it; returns `None` if there are none.
    pub(super) fn define_overloads(
        &mut self,
        file: &Arc<SourceFile>,
        def: &StmtFunctionDef,
        path: DefPath,
        name: SymbolId,
    ) -> Result<Option<Global>> {
        let mut found = Vec::new();
        for &number in file.definitions(&def.name) {
            let Some(Stmt::FunctionDef(declaration)) = file.statement(number) else {
                continue;
            };
            if decorators::marker(file, declaration)? != Marker::Overload {
                continue;
            }
            // They share their simple name, as PyTorch's do.
            let full = match self.definitions.ctx.name(name).to_owned().rsplit_once('.') {
                Some((qualifier, simple)) if !found.is_empty() => {
                    let mangled = format!("{qualifier}.___torch_mangle_{}.{simple}", self.definitions.mangle());
                    self.definitions.ctx.symbol(&mangled)
                }
                _ => name,
            };
            found.push(self.define_function(file, declaration, path, full, None)?);
        }
        if found.is_empty() {
            return Ok(None);
        }
        Ok(Some(
            self.definitions.add_alternatives(name, Alternatives::Signatures(found)),
        ))
    }
}
