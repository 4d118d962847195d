//! Names that stand for several functions.

use frazil_ir::FunctionId;
use ruff_python_ast::Expr;

use crate::source::{dotted, number};

/// What a name that stands for several functions chooses from.
#[derive(Debug, Clone)]
pub(crate) enum Alternatives {
    /// `@torch.jit._overload`: one body under several signatures, of which the first counts that takes the arguments.
    Signatures(Vec<FunctionId>),
    /// As `torch._jit_internal.boolean_dispatch` has it: a bool literal among the arguments says which.
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
pub(crate) fn choice(qualifier: &str, value: &Expr) -> Option<Choice> {
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
        position: usize::try_from(number(&position.value)?.as_int()?).ok()?,
        when_true: name(when_true)?,
        when_false: name(when_false)?,
    })
}
