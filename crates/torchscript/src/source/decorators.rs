//! Decorators of functions and classes.

use ruff_python_ast::{Decorator, Expr, Stmt, StmtClassDef, StmtFunctionDef};

use super::expression::dotted;
use super::file::SourceFile;
use crate::error::Result;

/// The effect of a function's decorators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Marker {
    /// The decorators have no effect on compilation.
    Plain,
    /// `@torch.jit.export`: a method that is compiled even if nothing calls it.
    Export,
    /// `@torch.jit.unused`, `@torch.jit.ignore(drop=True)`: the body is not compiled, and a call raises.
    Unused,
    /// `@torch.jit.ignore`: the body is not compiled, and a call raises. Such calls cannot be exported.
    Ignored,
    /// `@torch.jit._overload`: a signature without a body.
    Overload,
    /// `@staticmethod`
    Static,
    /// `@property`
    Property,
    /// `@x.setter`
    Setter(String),
}

/// Returns the decorator's dotted name, with imports resolved and without arguments.
fn name(file: &SourceFile, decorator: &Decorator) -> String {
    let expr = match &decorator.expression {
        Expr::Call(call) => &*call.func,
        other => other,
    };
    file.expand(&dotted(expr).unwrap_or_default())
}

/// Returns the effect of the decorators of `def`, or an error if a decorator is not supported.
pub(crate) fn marker(file: &SourceFile, def: &StmtFunctionDef) -> Result<Marker> {
    let mut marker = Marker::Plain;
    for decorator in &def.decorator_list {
        let name = name(file, decorator);
        let found = match name.strip_prefix("torch.jit.").unwrap_or(&name) {
            "export" => Marker::Export,
            "unused" => Marker::Unused,
            "ignore" if is_flagged(decorator, "drop") => Marker::Unused,
            "ignore" => Marker::Ignored,
            "_overload" | "_overload_method" => Marker::Overload,
            "staticmethod" => Marker::Static,
            "property" => Marker::Property,
            "script" | "script_method" | "script_if_tracing" => continue,
            // Gradients are off in any case.
            "torch.no_grad" | "torch.inference_mode" | "torch.enable_grad" => continue,
            other => match other.strip_suffix(".setter") {
                Some(property) => Marker::Setter(property.to_owned()),
                None => {
                    let message =
                        format!("the decorator `{other}` is not supported: it would have to be run by Python");
                    return Err(file.error("decorator", message, decorator).into());
                }
            },
        };
        marker = found;
    }
    Ok(marker)
}

/// Returns whether a function or class is compiled at its definition, so that its errors are errors of the source text.
pub(crate) fn is_scripted_statement(file: &SourceFile, statement: &Stmt) -> bool {
    match statement {
        Stmt::FunctionDef(def) => is_scripted(file, &def.decorator_list),
        Stmt::ClassDef(def) => is_scripted(file, &def.decorator_list),
        _ => false,
    }
}

/// Returns whether one of `decorators` is `@torch.jit.script`.
pub(crate) fn is_scripted(file: &SourceFile, decorators: &[Decorator]) -> bool {
    decorators
        .iter()
        .any(|decorator| name(file, decorator) == "torch.jit.script")
}

/// Returns whether a function is compiled when it is called, even by traced code.
pub(crate) fn is_compiled(file: &SourceFile, def: &StmtFunctionDef) -> bool {
    let compiled = ["torch.jit.script", "torch.jit.script_if_tracing"];
    let mut decorators = def.decorator_list.iter();
    decorators.any(|decorator| compiled.contains(&name(file, decorator).as_str()))
}

/// Returns whether a method of a class that derives from `torch.jit.ScriptModule` is marked for compilation.
pub(crate) fn is_script_method(file: &SourceFile, def: &StmtFunctionDef) -> bool {
    let mut decorators = def.decorator_list.iter();
    decorators.any(|decorator| name(file, decorator) == "torch.jit.script_method")
}

/// Returns whether a property is marked by `@torch.jit.unused` or `@torch.jit.ignore`, so that it is not compiled.
pub(crate) fn is_left_property(file: &SourceFile, def: &StmtFunctionDef) -> bool {
    let names: Vec<String> = def
        .decorator_list
        .iter()
        .map(|decorator| name(file, decorator))
        .collect();
    let is_left = |name: &String| matches!(name.as_str(), "torch.jit.unused" | "torch.jit.ignore");
    names.iter().any(|name| name == "property") && names.iter().any(is_left)
}

/// Returns whether `def` is the signature of an overload, which binds no name.
///
/// # Errors
/// When the function has an unknown decorator, which would have to be run.
pub(crate) fn marker_of(file: &SourceFile, def: &StmtFunctionDef) -> Result<bool> {
    Ok(marker(file, def)? == Marker::Overload)
}

/// Returns whether a decorator of a class has no effect on compilation.
pub(crate) fn is_plain_decorator(file: &SourceFile, decorator: &Decorator) -> bool {
    let name = name(file, decorator);
    let plain = [
        "dataclass",
        "script",
        "interface",
        "unique",
        "total_ordering",
        "final",
        "ignore",
        "unused",
    ];
    plain.contains(&name.rsplit('.').next().unwrap_or_default())
}

/// Returns whether the decorator has the argument `keyword=True`.
fn is_flagged(decorator: &Decorator, keyword: &str) -> bool {
    let value = decorator
        .expression
        .as_call_expr()
        .and_then(|call| call.arguments.find_keyword(keyword))
        .and_then(|keyword| keyword.value.as_boolean_literal_expr());
    value.is_some_and(|literal| literal.value)
}

/// Returns whether the class has a decorator whose dotted name ends in `wanted`.
pub(crate) fn has(file: &SourceFile, def: &StmtClassDef, wanted: &str) -> bool {
    def.decorator_list
        .iter()
        .any(|decorator| name(file, decorator).rsplit('.').next() == Some(wanted))
}

/// Returns whether the decorator `wanted` of a class has the argument `keyword=True`; `None` without that decorator.
pub(crate) fn has_flag(file: &SourceFile, def: &StmtClassDef, wanted: &str, keyword: &str) -> Option<bool> {
    let decorator = def
        .decorator_list
        .iter()
        .find(|decorator| name(file, decorator).rsplit('.').next() == Some(wanted))?;
    let call = decorator.expression.as_call_expr()?;
    let value = &call.arguments.find_keyword(keyword)?.value;
    value.as_boolean_literal_expr().map(|literal| literal.value)
}
