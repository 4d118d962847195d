//! Statements that cannot be run: the variables that they would have assigned, and the values that they may have
//! changed.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::Ranged;

use super::globals::{Role, Unknown, walk};
use super::maker::Maker;
use super::mentions::{Mentions, REACHES_GLOBALS};
use super::purity::{is_pure_path, is_unknown_name};
use super::value::{FunctionRef, Py, same_function};
use crate::error::{Result, SourceError};
use crate::names::{ClassRef, ancestry};
use crate::source::{SourceFile, dotted};

/// Modules of Python's standard library whose functions return no `torch` modules except those passed to them.
const PLAIN_MODULES: &[&str] = &[
    "abc",
    "argparse",
    "array",
    "base64",
    "bisect",
    "builtins",
    "calendar",
    "collections",
    "contextlib",
    "copy",
    "csv",
    "dataclasses",
    "datetime",
    "decimal",
    "enum",
    "fractions",
    "functools",
    "gc",
    "getpass",
    "glob",
    "gzip",
    "hashlib",
    "heapq",
    "inspect",
    "io",
    "itertools",
    "json",
    "logging",
    "math",
    "multiprocessing",
    "numbers",
    "numpy",
    "operator",
    "os",
    "pathlib",
    "platform",
    "pprint",
    "queue",
    "random",
    "re",
    "shutil",
    "signal",
    "socket",
    "statistics",
    "string",
    "struct",
    "subprocess",
    "sys",
    "tempfile",
    "textwrap",
    "threading",
    "time",
    "traceback",
    "types",
    "typing",
    "typing_extensions",
    "unittest",
    "urllib",
    "uuid",
    "warnings",
    "weakref",
    "zipfile",
    "zlib",
];

/// Functions and classes of `torch` that can return modules.
const MAKES_MODULES: &[&str] = &[
    "torch.nn.",
    "torch.hub.",
    "torch.load",
    "torch.jit.",
    "torch.quantization.",
    "torch.ao.",
    "torch.fx.",
    "torch.export.",
    "torch.compile",
];

/// Methods of modules whose result is not a module.
const GIVES_NO_MODULE: &[&str] = &[
    "state_dict",
    "parameters",
    "named_parameters",
    "buffers",
    "named_buffers",
    "load_state_dict",
    "forward",
    "extra_repr",
];

/// Returns whether the dotted name denotes a function or class that can return modules.
pub(super) fn path_may_make_module(path: &str) -> bool {
    if path == "torch.nn" {
        return true;
    }
    if path == "torch" || path.starts_with("torch.") {
        return !path.starts_with("torch.nn.functional")
            && !path.starts_with("torch.nn.init.")
            && !matches!(path, "torch.nn.Parameter" | "torch.nn.parameter.Parameter")
            && MAKES_MODULES.iter().any(|prefix| path.starts_with(prefix));
    }
    let head = path.trim_start_matches('.').split('.').next().unwrap_or_default();
    let is_plain = PLAIN_MODULES.contains(&head) || !path.contains('.') && !is_unknown_name(path);
    !is_plain
}

/// Returns whether the dotted name belongs to Python's standard library, or to `numpy`.
pub(super) fn is_plain_path(path: &str) -> bool {
    PLAIN_MODULES.contains(&path.split('.').next().unwrap_or_default())
}

/// The values, names and effects reachable from a statement: through the names that it mentions, and the functions that
/// the names denote.
#[derive(Default)]
pub(super) struct Reach {
    /// All values reachable from the statement.
    values: Vec<Py>,
    /// Global names in reachable code.
    pub(super) names: BTreeSet<String>,
    /// Dotted names in reachable code.
    paths: BTreeSet<String>,
    /// Global variables that reachable functions assign.
    rebinds: BTreeSet<String>,
    /// Classes that reachable functions change.
    changed: BTreeSet<String>,
    is_wild: bool,
    /// Number of visited values and names.
    visited: u64,
    /// Whether an unknown value among the reachable values can return modules.
    leads_to_module: bool,
}

impl Maker<'_> {
    /// Marks as unknown everything that `statement`, which could not be run, assigns or may change.
    pub(super) fn refuse(&mut self, file: &Arc<SourceFile>, statement: &Stmt, error: &SourceError) -> Result<()> {
        let mentions = Mentions::of(statement);
        let is_pure = self.is_pure(file, &mentions)?;
        let mut reach = self.reach(&mentions, &[]);
        let leads_to_module = self.leads_to_module(file, &reach)?;
        let holds = self.mentioned(&mentions);
        let roles = self.roles(file, statement, &mentions, leads_to_module)?;
        if !is_pure {
            // Unknown code may call functions that were passed to it before.
            let escaped = self.globals.escaped.clone();
            let further = self.reach(&Mentions::default(), &escaped);
            reach.values.extend(further.values);
            reach.rebinds.extend(further.rebinds);
            reach.changed.extend(further.changed);
            reach.is_wild |= further.is_wild;
            reach.visited += further.visited;
            self.taint(&reach, &mentions, error);
            self.escape(&reach);
        }
        self.charge_work(file, reach.visited, statement)?;
        if reach.is_wild {
            self.globals.wild.get_or_insert_with(|| Box::new(error.clone()));
        }
        self.globals.refused.get_or_insert_with(|| Box::new(error.clone()));
        for (name, role) in roles {
            let imported = mentions
                .imported
                .get(&name)
                .is_some_and(|path| path_may_make_module(path));
            let leads_to_module = leads_to_module || imported || role != Role::Other;
            let holds = holds.clone().into();
            self.globals.bind_unknown(
                &name,
                error,
                Unknown {
                    role,
                    leads_to_module,
                    holds,
                },
            );
        }
        if !is_pure {
            for name in &reach.rebinds {
                let role = if leads_to_module || name == "model" {
                    Role::Module
                } else {
                    Role::Other
                };
                let holds = holds.clone().into();
                self.globals.bind_unknown(
                    name,
                    error,
                    Unknown {
                        role,
                        leads_to_module,
                        holds,
                    },
                );
            }
        }
        Ok(())
    }

    /// Marks everything reachable from an impure statement as possibly changed.
    fn taint(&mut self, reach: &Reach, mentions: &Mentions, error: &SourceError) {
        let mut values = reach.values.clone();
        values.retain(|value| !matches!(value, Py::Class(_)));
        for name in mentions.changed.union(&reach.changed) {
            if let Some(Ok(class @ Py::Class(_))) = self.globals.names.get(name).map(|binding| &binding.value) {
                values.push(class.clone());
            }
        }
        for value in &values {
            self.globals.taint(value, error);
        }
    }

    /// Records the reachable functions and classes, which a statement has passed to unknown code.
    fn escape(&mut self, reach: &Reach) {
        for value in &reach.values {
            let is_known = |known: &Py| match (known, value) {
                (Py::Function(a), Py::Function(b)) => same_function(a, b),
                (Py::Class(a), Py::Class(b)) => a.is(b),
                _ => false,
            };
            let is_code = match value {
                Py::Function(function) => function.file.rules.is_source(),
                Py::Class(class) => class.file.rules.is_source(),
                _ => false,
            };
            if is_code && !self.globals.escaped.iter().any(is_known) {
                self.globals.escaped.push(value.clone());
            }
        }
    }

    /// Returns the values of the global names in `mentions`.
    fn mentioned(&self, mentions: &Mentions) -> Vec<Py> {
        let mut values = Vec::new();
        for name in &mentions.loaded {
            let Some(binding) = self.globals.names.get(name) else {
                continue;
            };
            match (&binding.value, &binding.unknown) {
                (Ok(value), _) => values.push(value.clone()),
                (Err(_), unknown) => values.extend(unknown.iter().flat_map(|u| u.holds.iter().cloned())),
            }
        }
        values
    }

    /// Returns everything that is reachable from the names in `mentions` and the functions in `values`.
    pub(super) fn reach(&self, mentions: &Mentions, values: &[Py]) -> Reach {
        let mut reach = Reach {
            is_wild: mentions.is_wild,
            rebinds: mentions.rebinds.clone(),
            paths: mentions.paths.clone(),
            ..Reach::default()
        };
        let mut names: Vec<String> = mentions.loaded.iter().cloned().collect();
        let mut waiting: Vec<Py> = values.to_vec();
        let mut known = HashSet::new();
        loop {
            while let Some(name) = names.pop() {
                if !reach.names.insert(name.clone()) {
                    continue;
                }
                match self.globals.names.get(&name) {
                    Some(binding) => match (&binding.value, &binding.unknown) {
                        (Ok(value), _) => waiting.push(value.clone()),
                        (Err(_), unknown) => {
                            reach.leads_to_module |= unknown.as_ref().is_none_or(|u| u.leads_to_module);
                            waiting.extend(unknown.iter().flat_map(|u| u.holds.iter().cloned()));
                        }
                    },
                    None => reach.is_wild |= REACHES_GLOBALS.contains(&name.as_str()),
                }
            }
            let Some(value) = waiting.pop() else { break };
            walk(&value, &mut |part| {
                reach.visited += 1;
                if let Some(more) = self.code_of(part, &mut known) {
                    reach.visited += more.loaded.len() as u64;
                    names.extend(more.loaded);
                    reach.paths.extend(more.paths);
                    reach.rebinds.extend(more.rebinds);
                    reach.changed.extend(more.changed);
                    reach.is_wild |= more.is_wild;
                }
                if let Py::Function(function) = part {
                    waiting.extend(self.defaults(function));
                }
                if let Py::Class(class) = part
                    && let Some(values) = self
                        .globals
                        .class_values
                        .get(&class.statement)
                        .filter(|_| class.file.rules.is_source())
                    && known.insert((usize::MAX, Some(class.statement)))
                {
                    waiting.extend(values.values().filter_map(|known| known.clone().ok()));
                }
                let is_constant = matches!(part, Py::None | Py::Bool(_) | Py::Int(_) | Py::Float(_) | Py::Str(_));
                if !is_constant {
                    reach.values.push(part.clone());
                }
            });
        }
        reach
    }

    /// Returns the mentions in the code of a function, or in the methods of a class, on its first visit.
    fn code_of(&self, value: &Py, known: &mut HashSet<(usize, Option<usize>)>) -> Option<Mentions> {
        match value {
            Py::Function(function) if function.file.rules.is_source() => {
                let def = function.def()?;
                known
                    .insert((function.statement, function.method))
                    .then(|| Mentions::of_body(&def.body, &def.parameters))
            }
            Py::Class(class) if class.file.rules.is_source() => {
                let statement = class.file.statement(class.statement)?;
                known
                    .insert((class.statement, Some(usize::MAX)))
                    .then(|| Mentions::of(statement))
            }
            _ => None,
        }
    }

    /// Returns the values of the defaults of a function's parameters.
    fn defaults(&self, function: &FunctionRef) -> Vec<Py> {
        let parameters = function.def().map(|def| def.parameters.iter_non_variadic_params());
        let defaults = parameters.into_iter().flatten().filter_map(|p| p.default.as_deref());
        let values = defaults.filter_map(|default| self.globals.bound.get(&default.range()));
        values.filter_map(|known| known.clone().ok()).collect()
    }

    /// Returns whether a value or name reachable from a statement can return a module.
    pub(super) fn leads_to_module(&mut self, file: &SourceFile, reach: &Reach) -> Result<bool> {
        if reach.leads_to_module || reach.is_wild {
            return Ok(true);
        }
        for name in &reach.names {
            let head = match self.globals.names.get(name).map(|binding| &binding.value) {
                Some(Ok(Py::Path(path))) => path.to_string(),
                Some(_) => continue,
                None => file.expand(name),
            };
            let mut rests = reach
                .paths
                .iter()
                .filter_map(|path| path.strip_prefix(name.as_str())?.strip_prefix('.'))
                .peekable();
            let leads = match rests.peek() {
                Some(_) => rests.any(|rest| path_may_make_module(&format!("{head}.{rest}"))),
                None => path_may_make_module(&head),
            };
            if leads {
                return Ok(true);
            }
        }
        for value in &reach.values {
            let leads = match value {
                Py::Object(_) => true,
                Py::Class(class) => self.may_be_module_class(&class.clone())?,
                Py::Path(path) => {
                    !matches!(&**path, "torch" | "torch.nn") && path.starts_with("torch.") && path_may_make_module(path)
                }
                _ => false,
            };
            if leads {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns whether `class` is a class of modules, or may be one.
    pub(super) fn may_be_module_class(&mut self, class: &ClassRef) -> Result<bool> {
        let is_unclear = class.file.rules.is_source() && self.globals.unclear.contains_key(&class.statement);
        Ok(is_unclear || ancestry(self.names, class)?.is_some())
    }

    /// Returns for each name that a statement assigns what it may denote: a module, a class of modules, or another value.
    fn roles(
        &mut self,
        file: &Arc<SourceFile>,
        statement: &Stmt,
        mentions: &Mentions,
        leads_to_module: bool,
    ) -> Result<BTreeMap<String, Role>> {
        let may_be = match statement {
            Stmt::Assign(assign) => self.may_give_module(file, &assign.value)?,
            Stmt::AnnAssign(assign) => match &assign.value {
                Some(value) => self.may_give_module(file, value)?,
                None => false,
            },
            _ => leads_to_module,
        };
        let role = |name: &String| {
            if mentions.classes.contains(name) {
                Role::Class
            } else if mentions.functions.contains(name) {
                Role::Other
            } else if may_be || name == "model" {
                Role::Module
            } else {
                Role::Other
            }
        };
        Ok(mentions.stored.iter().map(|name| (name.clone(), role(name))).collect())
    }

    /// Returns whether the value of an expression may be, or contain, a module.
    fn may_give_module(&mut self, file: &Arc<SourceFile>, expr: &Expr) -> Result<bool> {
        match expr {
            Expr::Compare(_) | Expr::FString(_) | Expr::Lambda(_) => return Ok(false),
            Expr::Call(call) => {
                if let Some(path) = dotted(&call.func) {
                    let (head, rest) = path.split_once('.').map_or((&*path, None), |(h, r)| (h, Some(r)));
                    let value = self.globals.names.get(head).map(|binding| binding.value.clone());
                    let full = match (&value, rest) {
                        (Some(Ok(Py::Path(head))), Some(rest)) => Some(format!("{head}.{rest}")),
                        (Some(Ok(Py::Path(head))), None) => Some(head.to_string()),
                        // The result of a layer consists of tensors.
                        (Some(Ok(Py::Object(_))), None) => return Ok(false),
                        (None, _) => Some(file.expand(&path)),
                        _ => None,
                    };
                    if let Some(full) = full
                        && (full.starts_with("torch.") && !path_may_make_module(&full)
                            || matches!(
                                &*full,
                                "open" | "len" | "int" | "float" | "str" | "bool" | "repr" | "type"
                            ))
                    {
                        return Ok(false);
                    }
                }
                if let Expr::Attribute(attribute) = &*call.func {
                    let name = attribute.attr.as_str();
                    if GIVES_NO_MODULE.contains(&name) {
                        return Ok(false);
                    }
                    // Methods of values that neither are nor contain modules.
                    let is_value = matches!(&*attribute.value, Expr::Call(_) | Expr::Compare(_) | Expr::FString(_));
                    if is_value && !self.may_give_module(file, &attribute.value)? {
                        for argument in &call.arguments.args {
                            if self.may_give_module(file, argument)? {
                                return Ok(true);
                            }
                        }
                        return Ok(!call.arguments.keywords.is_empty() && self.leads(file, expr)?);
                    }
                }
            }
            _ => {}
        }
        self.leads(file, expr)
    }

    fn leads(&mut self, file: &Arc<SourceFile>, expr: &Expr) -> Result<bool> {
        let reach = self.reach(&Mentions::of_expr(expr), &[]);
        self.leads_to_module(file, &reach)
    }
}

/// Returns whether a base of a class, by its dotted name, is known to be irrelevant to modules.
pub(super) fn is_plain_base(path: &str) -> bool {
    let last = path.rsplit('.').next().unwrap_or(path);
    let known = [
        "object",
        "Enum",
        "IntEnum",
        "Flag",
        "IntFlag",
        "StrEnum",
        "NamedTuple",
        "TypedDict",
        "Protocol",
        "Generic",
        "ABC",
        "str",
        "int",
        "float",
        "dict",
        "list",
        "tuple",
        "set",
        "type",
    ];
    let is_builtin = !path.contains('.') && (known.contains(&last) || is_pure_path(path));
    is_builtin || is_plain_path(path) || path.starts_with("torch.") && !path_may_make_module(path)
}
