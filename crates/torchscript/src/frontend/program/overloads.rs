//! Names that stand for several functions.

use std::sync::Arc;

use frazil_ir::{FunctionId, SymbolId};
use ruff_python_ast::{Expr, Stmt, StmtFunctionDef};

use super::decorators::{self, Marker};
use super::{DefPath, Global, Program};
use crate::frontend::Result;
use crate::frontend::annotation::dotted;
use crate::frontend::source::SourceFile;

/// What a name that stands for several functions chooses from.
#[derive(Debug, Clone)]
pub(crate) enum Alternatives {
    /// `@torch.jit._overload`: one body under several signatures, of which the first counts that takes the arguments.
    Signatures(Vec<FunctionId>),
    /// As `torch._jit_internal.boolean_dispatch` has it: a truth value among the arguments that is a literal says which.
    Flag(Choice),
}

/// One of two functions of the library, by an argument; written there as `f = choose("flag", 1, f_with, f_without)`.
#[derive(Debug, Clone)]
pub(crate) struct Choice {
    /// The argument's name and position; without it the second function is meant.
    pub(crate) flag: String,
    pub(crate) position: usize,
    /// Qualified names.
    pub(crate) when_true: String,
    pub(crate) when_false: String,
}

/// The choice that `value` writes in a library file of `qualifier`.
pub(super) fn choice(qualifier: &str, value: &Expr) -> Option<Choice> {
    let call = value.as_call_expr()?;
    let [
        Expr::StringLiteral(flag),
        Expr::NumberLiteral(position),
        when_true,
        when_false,
    ] = &*call.arguments.args
    else {
        return None;
    };
    if dotted(&call.func)? != "choose" {
        return None;
    }
    let name = |expr| dotted(expr).map(|name| format!("{qualifier}.{name}"));
    Some(Choice {
        flag: flag.value.to_str().to_owned(),
        position: usize::try_from(super::number(&position.value)?.as_int()?).ok()?,
        when_true: name(when_true)?,
        when_false: name(when_false)?,
    })
}

impl Program<'_> {
    pub(super) fn add_choice(&mut self, name: SymbolId, choice: Choice) -> Global {
        self.add_alternatives(name, Alternatives::Flag(choice))
    }

    fn add_alternatives(&mut self, name: SymbolId, alternatives: Alternatives) -> Global {
        let global = Global::Alternatives(self.alternatives.len());
        self.alternatives.push(alternatives);
        self.globals.insert(name, global);
        global
    }

    /// Defines the function that `def` is under each of the signatures that the text declares for it; `None` when there are none.
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
            let full = match self.ctx.name(name).to_owned().rsplit_once('.') {
                Some((qualifier, simple)) if !found.is_empty() => {
                    let mangled = format!("{qualifier}.___torch_mangle_{}.{simple}", self.mangle());
                    self.ctx.symbol(&mangled)
                }
                _ => name,
            };
            found.push(self.define_function(file, declaration, path, full, None)?);
        }
        if found.is_empty() {
            return Ok(None);
        }
        Ok(Some(self.add_alternatives(name, Alternatives::Signatures(found))))
    }
}
