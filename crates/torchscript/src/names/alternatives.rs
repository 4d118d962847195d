//! Overloaded names, which denote several functions.

use frazil_ir::FunctionId;
use ruff_python_ast::Expr;

use crate::source::{dotted, number};

/// The functions that an overloaded name denotes, and how a call selects one.
#[derive(Debug, Clone)]
pub(crate) enum Alternatives {
    /// `@torch.jit._overload`: one body with several signatures. The first signature that accepts the arguments is
    /// selected.
    Signatures(Vec<FunctionId>),
    /// `torch._jit_internal.boolean_dispatch`: a bool literal among the arguments selects the function.
    Flag(Choice),
}

/// A choice between two library functions by a bool argument. Library source writes it as `f = choose("flag", 1,
/// f_with, f_without)`.
#[derive(Debug, Clone)]
pub(crate) struct Choice {
    /// Name of the bool argument. If a call does not pass the argument, `when_false` is selected.
    pub(crate) flag: String,
    /// Index of the bool argument among positional arguments.
    pub(crate) position: usize,
    /// Qualified name of the function for a true argument.
    pub(crate) when_true: String,
    /// Qualified name of the function for a false or missing argument.
    pub(crate) when_false: String,
}

/// Returns the choice that the expression `value` represents; `None` if it is not a call of `choose`. `qualifier` is the name of the library's module.
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
