//! Values that exist only in Python. At most their class is known. Their use in compiled code is an error.

use std::rc::Rc;
use std::sync::Arc;

use ruff_python_ast::Expr;

use super::arguments::Arguments;
use super::globals::walk;
use super::maker::{BEYOND, Maker, Scope};
use super::mentions::Mentions;
use super::value::Py;
use crate::error::{LoadError, Result, SourceError};

/// Python's built-in exception classes.
const EXCEPTIONS: &[&str] = &[
    "ArithmeticError",
    "AssertionError",
    "AttributeError",
    "Exception",
    "IOError",
    "ImportError",
    "IndexError",
    "KeyError",
    "KeyboardInterrupt",
    "LookupError",
    "NameError",
    "NotImplementedError",
    "OSError",
    "OverflowError",
    "RuntimeError",
    "StopIteration",
    "TypeError",
    "ValueError",
    "ZeroDivisionError",
];

/// Functions of `numpy` that return arrays.
const ARRAYS: &[&str] = &[
    "arange",
    "array",
    "asarray",
    "empty",
    "eye",
    "full",
    "hstack",
    "linspace",
    "logspace",
    "ones",
    "stack",
    "vstack",
    "zeros",
    "random.rand",
    "random.randn",
    "random.randint",
    "random.uniform",
    "random.normal",
];

/// Returns Python's name for the class of a function's result, if it is always the same.
fn class_of_result(path: &str) -> Option<&'static str> {
    if let Some(name) = path.strip_prefix("numpy.") {
        return ARRAYS.contains(&name).then_some("numpy.ndarray");
    }
    if let Some(name) = EXCEPTIONS.iter().find(|name| **name == path) {
        return Some(name);
    }
    Some(match path {
        "object" => "object",
        "slice" => "slice",
        "bytes" => "bytes",
        "bytearray" => "bytearray",
        "memoryview" => "memoryview",
        "filter" => "filter",
        "map" => "map",
        "open" => "_io.TextIOWrapper",
        "io.StringIO" => "_io.StringIO",
        "io.BytesIO" => "_io.BytesIO",
        "collections.deque" => "collections.deque",
        "datetime.datetime" | "datetime.datetime.now" | "datetime.datetime.today" => "datetime.datetime",
        "datetime.date" | "datetime.date.today" => "datetime.date",
        "datetime.timedelta" => "datetime.timedelta",
        "decimal.Decimal" => "decimal.Decimal",
        "fractions.Fraction" => "fractions.Fraction",
        "functools.partial" => "functools.partial",
        "itertools.chain" => "itertools.chain",
        "itertools.count" => "itertools.count",
        "itertools.cycle" => "itertools.cycle",
        "itertools.product" => "itertools.product",
        "pathlib.Path" | "pathlib.PosixPath" | "pathlib.Path.cwd" | "pathlib.Path.home" => "pathlib.PosixPath",
        "random.Random" => "random.Random",
        "re.compile" => "re.Pattern",
        "threading.Lock" => "_thread.lock",
        "threading.RLock" => "_thread.RLock",
        "threading.Thread" => "threading.Thread",
        "torch.Generator" => "torch._C.Generator",
        "types.SimpleNamespace" => "types.SimpleNamespace",
        "uuid.uuid4" => "uuid.UUID",
        _ => return None,
    })
}

/// Returns the result of a call to `path`, if only the class of the result is known.
pub(super) fn opaque_result(path: &str, arguments: &Arguments) -> Option<Py> {
    let class = class_of_result(path)?;
    arguments.positional();
    arguments.keywords();
    Some(Py::Opaque(class))
}

/// Returns whether an error is about an expression that only Python can evaluate, as opposed to an exception of the
/// program.
pub(super) fn is_beyond(error: &SourceError) -> bool {
    error.diagnostic.code == "construct" && error.diagnostic.message.ends_with(BEYOND)
}

impl Maker<'_> {
    /// Returns the value that a statement assigns to variables or attributes. If only Python can evaluate the expression and it has no side effects, the value
    /// is unknown; its use is an error.
    pub(super) fn assigned(&mut self, scope: &mut Scope, targets: &[Expr], expr: &Expr) -> Result<Py> {
        let error = match self.expr(scope, expr) {
            Err(LoadError::Source(error)) if is_beyond(&error) => error,
            other => return other,
        };
        // A global variable is not set here: the top level records why it is unknown, and its use is an error.
        let is_top = scope.is_top;
        let is_kept = |target: &Expr| target.is_attribute_expr() || target.is_name_expr() && !is_top;
        let file = Arc::clone(&scope.file);
        if !file.rules.is_source() || !targets.iter().all(is_kept) || !self.is_only_unknown(scope, expr)? {
            return Err(error.into());
        }
        Ok(Py::Unknown(Rc::new(*error)))
    }

    /// Returns whether evaluating an expression has no side effects and does not return a module.
    fn is_only_unknown(&mut self, scope: &Scope, expr: &Expr) -> Result<bool> {
        let file = Arc::clone(&scope.file);
        let mut mentions = Mentions::of_expr(expr);
        // Parameters and buffers are parts of the module's state even if no code uses them, so they must be known.
        let mut names = mentions.paths.iter().chain(&mentions.loaded);
        let is_state = names.any(|path| matches!(path.rsplit('.').next(), Some("Parameter" | "Buffer")));
        if is_state || !self.is_pure(&file, &mentions)? {
            return Ok(false);
        }
        for (name, value) in &scope.variables {
            if !mentions.loaded.remove(name) {
                continue;
            }
            let prefix = format!("{name}.");
            let paths: Vec<String> = mentions
                .paths
                .iter()
                .filter(|p| p.starts_with(&prefix))
                .cloned()
                .collect();
            let mut parts = Vec::new();
            for path in &paths {
                let mut part = Some(value.clone());
                for name in path.split('.').skip(1) {
                    part = match &part {
                        Some(base) => self.attribute_if_any(&file, base, name, expr).ok().flatten(),
                        None => None,
                    };
                }
                parts.push(part);
            }
            if paths.is_empty() {
                parts.push(Some(value.clone()));
            }
            let mut has_module = false;
            for part in parts {
                match part {
                    Some(part) => walk(&part, &mut |part| has_module |= matches!(part, Py::Object(_))),
                    None => has_module = true,
                }
            }
            if has_module {
                return Ok(false);
            }
        }
        let reach = self.reach(&mentions, &[]);
        Ok(!self.leads_to_module(&file, &reach)?)
    }
}
