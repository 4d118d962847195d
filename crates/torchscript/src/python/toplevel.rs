//! The statements at the top level of a source text. They run once, in order.
//!
//! A statement that cannot be run does not stop the run. Variables that it would have assigned, and values that it may have changed, are errors where they are
//! used.

use std::collections::HashMap;
use std::sync::Arc;

use frazil_ir::Constant;
use ruff_python_ast::{Expr, Parameters, Stmt, StmtClassDef, StmtFunctionDef};
use ruff_text_size::Ranged;

use super::exec::Flow;
use super::globals::Known;
use super::maker::{Maker, Scope};
use super::refuse::{is_plain_base, is_plain_path};
use super::value::{FunctionRef, Py};
use crate::error::{LoadError, Result};
use crate::names::{Base, Bound, ClassRef, TopName, ancestry, class_at, find_class, is_interface, is_module_path};
use crate::source::decorators::{is_plain_decorator, is_scripted, marker_of};
use crate::source::{SourceFile, dotted};

impl Maker<'_> {
    /// Runs the top-level statements of a source text.
    pub(super) fn run(&mut self, file: &Arc<SourceFile>) -> Result<()> {
        self.globals.bind("__name__", Py::str(module_name(&file.name)));
        let mut scope = Scope::new(file);
        scope.is_top = true;
        self.top_suite(&mut scope, file.body())
    }

    fn top_suite(&mut self, scope: &mut Scope, body: &[Stmt]) -> Result<()> {
        for statement in body {
            let before = std::mem::replace(&mut self.globals.at, statement.range());
            let done = self.top_statement(scope, statement);
            self.settle(scope, statement, done)?;
            self.globals.at = before;
        }
        Ok(())
    }

    /// Handles the outcome of a statement. If the statement could not be run, its targets become unknown.
    fn settle(&mut self, scope: &Scope, statement: &Stmt, done: Result<()>) -> Result<()> {
        match done {
            Ok(()) => Ok(()),
            // Exceptions of the program and exceeded limits end the run. Other errors make the targets of the statement unknown.
            Err(LoadError::Source(error)) if !matches!(error.diagnostic.code, "raises" | "budget") => {
                self.refuse(&scope.file, statement, &error)
            }
            Err(other) => Err(other),
        }
    }

    fn top_statement(&mut self, scope: &mut Scope, statement: &Stmt) -> Result<()> {
        match statement {
            Stmt::If(choice) => {
                let mut body = None;
                if self.test(scope, &choice.test)? {
                    body = Some(&choice.body);
                }
                for clause in &choice.elif_else_clauses {
                    if body.is_some() {
                        break;
                    }
                    let taken = match &clause.test {
                        Some(test) => self.test(scope, test)?,
                        None => true,
                    };
                    if taken {
                        body = Some(&clause.body);
                    }
                }
                self.top_suite(scope, body.map_or(&[], |body| body.as_slice()))
            }
            Stmt::With(with) => {
                self.enter(scope, with)?;
                self.top_suite(scope, &with.body)
            }
            // The body is run as long as nothing raises, since exceptions and their handlers are not supported.
            Stmt::Try(attempt) => {
                for part in [&attempt.body, &attempt.orelse, &attempt.finalbody] {
                    for statement in part {
                        if is_unknown_import(statement) {
                            return self.beyond(&scope.file, "whether this import succeeds", statement);
                        }
                        if let Err(error) = self.statement(scope, statement) {
                            return match error {
                                LoadError::Source(mut error) if error.diagnostic.code == "raises" => {
                                    error.diagnostic.code = "construct";
                                    Err(error.into())
                                }
                                other => Err(other),
                            };
                        }
                    }
                }
                Ok(())
            }
            other => match self.statement(scope, other)? {
                Flow::Next => Ok(()),
                _ => self.fail(&scope.file, "this statement is outside of what it would leave", other),
            },
        }
    }

    /// Assigns the imported objects of an import statement to its names.
    pub(super) fn import(&mut self, scope: &mut Scope, statement: &Stmt) -> Result<()> {
        let file = Arc::clone(&scope.file);
        for (name, path) in crate::source::imports(std::slice::from_ref(statement)) {
            let value = match find_class(self.names, &file, &path)? {
                Some(class) => Py::Class(class),
                None => super::known::constant(&path).unwrap_or(Py::Path(path.into())),
            };
            self.set(scope, &name, value);
        }
        Ok(())
    }

    /// Assigns a function to its name, and evaluates the defaults of its parameters.
    pub(super) fn define(&mut self, scope: &mut Scope, def: &StmtFunctionDef) -> Result<()> {
        let file = Arc::clone(&scope.file);
        let Some(statement) = file.number_of(def) else {
            return self.beyond(&file, "a function in a function", def);
        };
        let is_signature = marker_of(&file, def)?;
        self.bind_defaults(scope, &def.parameters)?;
        if !is_signature {
            let function = FunctionRef {
                file,
                statement,
                method: None,
                class: None,
                scripted: is_scripted(&scope.file, &def.decorator_list),
            };
            let function = Py::Function(function);
            self.set(scope, &def.name, function.clone());
            if is_scripted(&scope.file, &def.decorator_list) {
                self.snapshot(&scope.file, &function, &def.name);
            }
        }
        Ok(())
    }

    /// Binds a class, and evaluates the assignments in its body and the defaults of its methods.
    pub(super) fn define_class(&mut self, scope: &mut Scope, def: &StmtClassDef) -> Result<()> {
        let file = Arc::clone(&scope.file);
        let class = file.number_of(def).and_then(|statement| class_at(&file, statement));
        let Some(class) = class else {
            return self.beyond(&file, "a class in a function", def);
        };
        if let Some(decorator) = def.decorator_list.iter().find(|d| !is_plain_decorator(&file, d)) {
            return self.beyond(&file, "this decorator", decorator);
        }
        if self.globals.class_values.contains_key(&class.statement) {
            return self.beyond(&file, "a class that one statement defines twice", def);
        }
        self.bind_bases(scope, def, &class)?;
        let mut inner = Scope::new(&file);
        inner.is_class = true;
        self.chains.clear();
        self.globals.class_values.insert(class.statement, Default::default());
        for member in &def.body {
            let (target, value) = match member {
                Stmt::Assign(assign) => match assign.targets.as_slice() {
                    [Expr::Name(target)] => (target, &assign.value),
                    _ => continue,
                },
                Stmt::AnnAssign(assign) => match (&*assign.target, &assign.value) {
                    (Expr::Name(target), Some(value)) => (target, value),
                    _ => continue,
                },
                Stmt::FunctionDef(method) => {
                    self.bind_defaults(&mut inner, &method.parameters)?;
                    continue;
                }
                _ => continue,
            };
            let known = self.known(&mut inner, value)?;
            if let Ok(value) = &known {
                inner.variables.insert(target.id.to_string(), value.clone());
            }
            self.globals.bound.insert(value.range(), known.clone());
            if let Some(values) = self.globals.class_values.get_mut(&class.statement) {
                values.insert(target.id.to_string(), known);
            }
        }
        self.set(scope, &def.name, Py::Class(class));
        Ok(())
    }

    /// Records the bases of a class, and whether it is known if the class is a class of modules.
    fn bind_bases(&mut self, scope: &mut Scope, def: &StmtClassDef, class: &ClassRef) -> Result<()> {
        let file = Arc::clone(&scope.file);
        let mut has_module = false;
        for (index, base) in def.bases().iter().enumerate() {
            let head = base.as_subscript_expr().map_or(base, |subscript| &subscript.value);
            let unclear = match self.known(scope, base)? {
                Ok(Py::Class(found)) => {
                    if ancestry(self.names, &found)?.is_some() {
                        has_module = true;
                    }
                    let unclear = self
                        .globals
                        .unclear
                        .get(&found.statement)
                        .filter(|_| found.file.rules.is_source());
                    let unclear = unclear.cloned();
                    let bases = &mut self.names.definitions_mut().bases;
                    bases.insert((class.statement, index), Base::Class(found));
                    unclear
                }
                Ok(Py::Path(path)) => {
                    if is_module_path(&path) {
                        has_module = true;
                    }
                    let message = format!("whether `{path}` is a class of modules cannot be known without Python");
                    let is_known = is_module_path(&path) || is_plain_base(&path);
                    let bases = &mut self.names.definitions_mut().bases;
                    bases.insert((class.statement, index), Base::Path(path.to_string()));
                    (!is_known).then(|| file.error("construct", message, base))
                }
                Ok(_) => None,
                // The base is a class of the text that could not be evaluated.
                Err(error)
                    if base
                        .as_name_expr()
                        .is_some_and(|base| self.globals.names.contains_key(base.id.as_str())) =>
                {
                    return Err(error.into());
                }
                Err(error) => {
                    let path = dotted(head).map(|path| file.expand(&path));
                    if path.as_deref().is_some_and(is_module_path) {
                        has_module = true;
                        None
                    } else {
                        (!path.is_some_and(|path| is_plain_base(&path))).then_some(error)
                    }
                }
            };
            if let Some(error) = unclear {
                self.globals.unclear.entry(class.statement).or_insert(error);
            }
        }
        match has_module && !is_interface(def) && ancestry(self.names, class)?.is_none() {
            true => self.fail(&file, "the bases of this class have no order", def),
            false => Ok(()),
        }
    }

    /// Evaluates the defaults of parameters, once for all calls.
    fn bind_defaults(&mut self, scope: &mut Scope, parameters: &Parameters) -> Result<()> {
        for parameter in parameters.iter_non_variadic_params() {
            if let Some(default) = parameter.default.as_deref() {
                let mut known = self.known(scope, default)?;
                // Defaults are stored by their place in the text. If a definition runs again with another default, compiled code cannot distinguish the two
                // functions.
                if let Some(before) = self.globals.bound.get(&default.range())
                    && !matches!((before, &known), (Ok(a), Ok(b)) if is_same_default(a, b))
                {
                    let message = "a default of a function that is defined several times";
                    known = Err(self.beyond_error(&scope.file, message, default));
                }
                self.globals.bound.insert(default.range(), known);
            }
        }
        Ok(())
    }

    /// Returns the value of an expression, or the reason why it is unknown.
    fn known(&mut self, scope: &mut Scope, expr: &Expr) -> Result<Known> {
        match self.expr(scope, expr) {
            Ok(value) => Ok(Ok(value)),
            Err(LoadError::Source(error)) if !matches!(error.diagnostic.code, "raises" | "budget") => Ok(Err(error)),
            Err(other) => Err(other),
        }
    }

    /// Returns the meaning of each global name, for compiled code.
    pub(super) fn top_names(&mut self, file: &SourceFile) -> HashMap<String, TopName> {
        let mut names = HashMap::new();
        let mut aliases = HashMap::new();
        for (name, binding) in &self.globals.names {
            // A NamedTuple is defined as a type by the statement that assigns it.
            if matches!(binding.value, Ok(Py::NamedClass(_))) {
                continue;
            }
            let known = match &binding.value {
                Err(error) => TopName::Refused(error.clone()),
                Ok(Py::Traced(number)) => {
                    if let Some(traced) = self.names.definitions_mut().traces.functions.get_mut(*number) {
                        traced.names.push(name.clone());
                    }
                    TopName::Traced(*number)
                }
                Ok(Py::Function(function))
                    if function.file.rules.is_source()
                        && function.scripted
                        && function.def().is_some_and(|def| def.name.as_str() != name) =>
                {
                    TopName::Scripted(function.statement)
                }
                Ok(Py::Function(function)) if function.file.rules.is_source() => {
                    TopName::Definition(function.statement)
                }
                Ok(Py::Class(class)) if class.file.rules.is_source() => TopName::Definition(class.statement),
                Ok(Py::Class(class)) => {
                    aliases.insert(name.clone(), class.qualified.to_string());
                    TopName::Elsewhere
                }
                Ok(Py::Path(path)) => {
                    aliases.insert(name.clone(), path.to_string());
                    TopName::Elsewhere
                }
                Ok(value) => TopName::Python(value.type_name()),
            };
            names.insert(name.clone(), known);
        }
        file.set_aliases(aliases);
        names
    }

    /// Returns the global variables whose values are constants, for code that is compiled with Python's rules.
    pub(super) fn top_constants(&self) -> HashMap<String, Constant> {
        if self.names.definitions().traces.functions.is_empty() && !self.has_traces {
            return HashMap::new();
        }
        let known = self.globals.names.iter().filter_map(|(name, binding)| {
            let value = binding.value.as_ref().ok()?;
            Some((name.clone(), super::lower::constant(self.names.ctx(), value, 0)?))
        });
        known.collect()
    }

    /// Returns the values of defaults and of assignments in class bodies, for compiled code.
    pub(super) fn bound(&self) -> HashMap<ruff_text_size::TextRange, Bound> {
        let bound = self.globals.bound.iter();
        let bound = bound.filter_map(|(place, known)| {
            let bound = match known {
                Err(error) => Bound::Refused(error.clone()),
                Ok(value @ (Py::List(_) | Py::Dict(_))) => {
                    Bound::Mutable(value.type_name(), super::lower::constant(self.names.ctx(), value, 0))
                }
                Ok(value) => Bound::Constant(super::lower::constant(self.names.ctx(), value, 0)?),
            };
            Some((*place, bound))
        });
        bound.collect()
    }
}

/// Returns whether a statement imports a module that is not supported here.
fn is_unknown_import(statement: &Stmt) -> bool {
    crate::source::imports(std::slice::from_ref(statement))
        .values()
        .any(|path| {
            let head = path.split('.').next().unwrap_or_default();
            head != "torch" && !(is_plain_path(head) && head != "numpy")
        })
}

/// Returns the name of the file `file` as a Python module.
fn module_name(file: &str) -> String {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    name.strip_suffix(".py").unwrap_or(name).to_owned()
}

/// Returns whether the values of two defaults cannot be distinguished by code that uses them.
fn is_same_default(a: &Py, b: &Py) -> bool {
    match (a, b) {
        (Py::None, Py::None) => true,
        (Py::Bool(a), Py::Bool(b)) => a == b,
        (Py::Int(a), Py::Int(b)) => a == b,
        (Py::Float(a), Py::Float(b)) => a.to_bits() == b.to_bits(),
        (Py::Str(a), Py::Str(b)) => a == b,
        (Py::Tuple(a), Py::Tuple(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| is_same_default(a, b))
        }
        _ => a.type_name() == b.type_name() && a.identical(b) == Some(true),
    }
}
