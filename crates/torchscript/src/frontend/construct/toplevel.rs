//! The statements at the top level of a text by hand. They run once, in order, into globals that functions and classes share.
//!
//! A statement that cannot be run does not stop the rest: what it would have assigned, and what it may have changed, is refused where it is used.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use ruff_python_ast::{Expr, Parameters, Stmt, StmtClassDef, StmtFunctionDef};
use ruff_text_size::Ranged;

use super::exec::Flow;
use super::globals::{Known, modules};
use super::mentions::{Mentions, is_written_by};
use super::value::{ClassRef, FunctionRef, ObjectRef, Py};
use super::{Base, Maker, Scope, ancestry, class_at, find_class};
use crate::frontend::annotation::dotted;
use crate::frontend::program::{Bound, TopName, is_plain_decorator, marker_of};
use crate::frontend::source::{SourceError, SourceFile};
use crate::frontend::{LoadError, Result};

/// Functions whose calls, as statements, change nothing that code is made of. Their arguments are not evaluated.
const HARMLESS: &[&str] = &[
    "print",
    "torch.save",
    "torch.jit.save",
    "torch.onnx.export",
    "torch.manual_seed",
    "torch.set_",
    "torch.random.",
    "torch.cuda.",
    "torch.backends.",
    "warnings.",
    "logging.",
    "logger.",
    "sys.",
    "os.",
    "time.",
    "gc.",
    "random.seed",
    "numpy.random.seed",
    "numpy.set_printoptions",
];

/// Modules of Python's own that make no modules of `torch`.
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
    "pickle",
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

/// What of `torch` can give modules.
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

/// What of `torch` keeps or changes what it is given.
const CHANGES_ARGUMENTS: &[&str] = &["torch.nn.utils.", "torch.optim.", "torch.utils.", "torch.nn.init."];

impl Maker<'_, '_> {
    /// Runs the statements of a text by hand.
    pub(super) fn run(&mut self, file: &Arc<SourceFile>) -> Result<()> {
        self.globals.bind("__name__", Ok(Py::str(module_name(&file.name))));
        let mut scope = Scope::new(file);
        scope.is_top = true;
        self.top_suite(&mut scope, file.body())
    }

    fn top_suite(&mut self, scope: &mut Scope, body: &[Stmt]) -> Result<()> {
        for statement in body {
            let done = self.top_statement(scope, statement);
            self.settle(scope, statement, done)?;
        }
        Ok(())
    }

    /// Goes on behind a statement: refuses what it was for when it cannot be run.
    fn settle(&mut self, scope: &Scope, statement: &Stmt, done: Result<()>) -> Result<()> {
        match done {
            Ok(()) => Ok(()),
            // What Python would raise, and what has no end, is the text's.
            Err(LoadError::Source(error)) if !matches!(error.diagnostic.code, "raises" | "budget") => {
                self.refuse(&scope.file, statement, &error)
            }
            Err(other) => Err(other),
        }
    }

    fn top_statement(&mut self, scope: &mut Scope, statement: &Stmt) -> Result<()> {
        if is_harmless(&scope.file, statement) {
            return Ok(());
        }
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
                for item in &with.items {
                    let value = self.expr(scope, &item.context_expr)?;
                    if let Some(target) = item.optional_vars.as_deref() {
                        self.assign(scope, Some(target), value, with)?;
                    }
                }
                self.top_suite(scope, &with.body)
            }
            // What is raised, and which handler it meets, only Python knows.
            Stmt::Try(attempt) => {
                for part in [&attempt.body, &attempt.orelse, &attempt.finalbody] {
                    for statement in part {
                        if is_unknown_import(statement) {
                            return self.beyond(&scope.file, "whether this import succeeds", statement);
                        }
                        if let Err(error) = self.top_or_harmless(scope, statement) {
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

    fn top_or_harmless(&mut self, scope: &mut Scope, statement: &Stmt) -> Result<()> {
        if is_harmless(&scope.file, statement) {
            return Ok(());
        }
        self.statement(scope, statement).map(|_| ())
    }

    /// Binds what an import brings in.
    pub(super) fn import(&mut self, scope: &mut Scope, statement: &Stmt) -> Result<()> {
        let file = Arc::clone(&scope.file);
        for (name, path) in crate::frontend::source::imports(std::slice::from_ref(statement)) {
            let value = match find_class(self.program, &file, &path)? {
                Some(class) => Py::Class(class),
                None => super::builtins::constant(&path).unwrap_or(Py::Path(path.into())),
            };
            self.set(scope, &name, value);
        }
        Ok(())
    }

    /// Binds a function, and its defaults.
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
            };
            self.set(scope, &def.name, Py::Function(function));
        }
        Ok(())
    }

    /// Binds a class, with the values that its body assigns and the defaults of its methods.
    pub(super) fn define_class(&mut self, scope: &mut Scope, def: &StmtClassDef) -> Result<()> {
        let file = Arc::clone(&scope.file);
        let class = file.number_of(def).and_then(|statement| class_at(&file, statement));
        let Some(class) = class else {
            return self.beyond(&file, "a class in a function", def);
        };
        if let Some(decorator) = def.decorator_list.iter().find(|d| !is_plain_decorator(&file, d)) {
            return self.beyond(&file, "this decorator", decorator);
        }
        for (number, base) in def.bases().iter().enumerate() {
            match self.known(scope, base)? {
                Ok(Py::Class(base)) => {
                    self.program.bases.insert((class.statement, number), Base::Class(base));
                }
                Ok(Py::Path(path)) => {
                    self.program
                        .bases
                        .insert((class.statement, number), Base::Path(path.to_string()));
                }
                // A class of the text that is refused itself.
                Err(error)
                    if base
                        .as_name_expr()
                        .is_some_and(|base| self.globals.names.contains_key(base.id.as_str())) =>
                {
                    return Err(error.into());
                }
                // What is nothing to modules: `Generic[T]`, `object`.
                _ => {}
            }
        }
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

    /// Evaluates the defaults of parameters, once for all calls.
    fn bind_defaults(&mut self, scope: &mut Scope, parameters: &Parameters) -> Result<()> {
        for parameter in parameters.iter_non_variadic_params() {
            if let Some(default) = parameter.default.as_deref() {
                let mut known = self.known(scope, default)?;
                // A definition that runs again makes another function, which code cannot tell from the first one.
                if let Some(before) = self.globals.bound.get(&default.range())
                    && !matches!((before, &known), (Ok(a), Ok(b)) if a.equals(b) == Some(true))
                {
                    let message = "a default of a function that is defined several times";
                    known = Err(self.beyond_error(&scope.file, message, default));
                }
                self.globals.bound.insert(default.range(), known);
            }
        }
        Ok(())
    }

    /// The value of an expression, or why it cannot be known.
    fn known(&mut self, scope: &mut Scope, expr: &Expr) -> Result<Known> {
        match self.expr(scope, expr) {
            Ok(value) => Ok(Ok(value)),
            Err(LoadError::Source(error)) if !matches!(error.diagnostic.code, "raises" | "budget") => Ok(Err(error)),
            Err(other) => Err(other),
        }
    }

    /// Refuses what `statement`, which cannot be run, assigns and may change.
    fn refuse(&mut self, file: &SourceFile, statement: &Stmt, error: &SourceError) -> Result<()> {
        let may_make = self.may_make_module(file, statement)?;
        let mut mentions = Mentions::of(statement);
        self.follow_calls(&mut mentions);
        for name in &mentions.loaded {
            let Some(Ok(value)) = self.globals.names.get(name).map(|binding| binding.value.clone()) else {
                continue;
            };
            let changes = match &value {
                Py::Object(_) => true,
                Py::List(_) | Py::Dict(_) | Py::Tensor(_) | Py::Parameter(_) => !self.leaves_arguments(file, statement),
                Py::Tuple(_) | Py::Iterator(_) | Py::Method(..) | Py::Handle(..) => true,
                Py::Class(_) => mentions.changed.contains(name),
                _ => false,
            };
            if changes {
                super::globals::walk(&value, &mut |part| {
                    if !matches!(part, Py::Class(_)) || matches!(value, Py::Class(_)) {
                        self.globals.taint(part.clone(), error);
                    }
                });
            }
        }
        for name in &mentions.called {
            let object = match self.globals.names.get(name).map(|binding| &binding.value) {
                Some(Ok(Py::Object(object))) => object.clone(),
                _ => continue,
            };
            if !self.is_pure(&object)? {
                super::globals::walk(&Py::Object(object), &mut |part| {
                    if !matches!(part, Py::Class(_)) {
                        self.globals.taint(part.clone(), error);
                    }
                });
            }
        }
        for name in &mentions.stored {
            self.globals.bind(name, Err(Box::new(error.clone())));
            if may_make || name == "model" {
                self.globals.note_made(name, statement);
            }
        }
        Ok(())
    }

    /// Adds what the functions and classes of the text that a statement mentions mention themselves.
    fn follow_calls(&self, mentions: &mut Mentions) {
        let mut done = BTreeSet::new();
        let mut waiting: Vec<String> = mentions.loaded.union(&mentions.called).cloned().collect();
        while let Some(name) = waiting.pop() {
            if !done.insert(name.clone()) {
                continue;
            }
            let inner = match self.globals.names.get(&name).map(|binding| &binding.value) {
                Some(Ok(Py::Function(function))) if function.file.is_by_hand() => {
                    function.def().map(|def| Mentions::of_body(&def.body, &def.parameters))
                }
                Some(Ok(Py::Class(class))) if class.file.is_by_hand() => {
                    let init = class.method("__init__");
                    let init = init.as_ref().and_then(FunctionRef::def);
                    init.map(|def| Mentions::of_body(&def.body, &def.parameters))
                }
                _ => None,
            };
            if let Some(inner) = inner {
                waiting.extend(inner.loaded.union(&inner.called).cloned());
                mentions.extend(inner);
            }
        }
    }

    /// Whether a statement is a call of an operator of `torch`, which leaves tensors and lists as they are.
    fn leaves_arguments(&self, file: &SourceFile, statement: &Stmt) -> bool {
        let value = match statement {
            Stmt::Assign(assign) => &assign.value,
            Stmt::Expr(expr) => &expr.value,
            _ => return false,
        };
        let path = value.as_call_expr().and_then(|call| dotted(&call.func));
        let path = file.expand(&path.unwrap_or_default());
        let changes = CHANGES_ARGUMENTS
            .iter()
            .chain(MAKES_MODULES)
            .filter(|p| **p != "torch.nn.");
        path.starts_with("torch.") && !path.ends_with('_') && !changes.into_iter().any(|p| path.starts_with(p))
    }

    /// Whether calling the module changes nothing: it and all below it are in evaluation mode, and no method of the text sets anything.
    fn is_pure(&mut self, object: &ObjectRef) -> Result<bool> {
        for module in modules(object) {
            let module = module.borrow();
            let trains = module
                .attributes
                .get("training")
                .is_some_and(|a| a.value.truth() != Some(false));
            if trains || !module.hooks.is_empty() {
                return Ok(false);
            }
            for class in ancestry(self.program, &module.class)?.unwrap_or_default() {
                let by_hand = class.file.is_by_hand();
                let writes = |statement: &Stmt| match statement {
                    Stmt::FunctionDef(def) => def.name.as_str() != "__init__" && is_written_by(&def.body),
                    _ => false,
                };
                if by_hand && class.def().is_some_and(|def| def.body.iter().any(writes)) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Whether an assignment that cannot be run may be of a module, which would be the text's.
    fn may_make_module(&mut self, file: &SourceFile, statement: &Stmt) -> Result<bool> {
        let value = match statement {
            Stmt::Assign(assign) => &*assign.value,
            Stmt::AnnAssign(assign) => match &assign.value {
                Some(value) => &**value,
                None => return Ok(false),
            },
            _ => return Ok(false),
        };
        let (path, is_call) = callee(value);
        let Some(path) = path else { return Ok(false) };
        let (head, rest) = path.split_once('.').unwrap_or((&path, ""));
        let bound = self.globals.names.get(head);
        Ok(match bound.map(|binding| (&binding.value, binding.made.is_some())) {
            Some((Err(_), made)) => made,
            Some((Ok(Py::Class(class)), _)) => {
                let class = class.clone();
                is_call && ancestry(self.program, &class)?.is_some()
            }
            Some((Ok(Py::Path(head)), _)) => {
                let full = match rest {
                    "" => head.to_string(),
                    rest => format!("{head}.{rest}"),
                };
                is_call && path_may_make_module(&full)
            }
            Some((Ok(Py::Function(function)), _)) => {
                let mut mentions = Mentions::default();
                mentions
                    .called
                    .insert(function.def().map(|def| def.name.to_string()).unwrap_or_default());
                self.follow_calls(&mut mentions);
                let mut found = false;
                let names: Vec<String> = mentions.loaded.union(&mentions.called).cloned().collect();
                for name in names {
                    let value = self.globals.names.get(&name).map(|binding| &binding.value);
                    found |= match value {
                        Some(Ok(Py::Class(class))) => {
                            let class = class.clone();
                            ancestry(self.program, &class)?.is_some()
                        }
                        Some(Ok(Py::Path(path))) => &**path == "torch.nn" || path_may_make_module(path),
                        _ => false,
                    };
                }
                is_call && found
            }
            Some((Ok(_), _)) => false,
            None => is_call && path_may_make_module(&file.expand(&path)),
        })
    }

    /// The module of the text: the one that the last assignment of one made, unless another one holds it; else an object of the last class.
    pub(super) fn root(&mut self, file: &Arc<SourceFile>) -> Result<Option<ObjectRef>> {
        let mut made: Vec<(usize, u32, Known)> = Vec::new();
        for binding in self.globals.names.values() {
            if let Some((order, at)) = binding.made
                && matches!(binding.value, Ok(Py::Object(_)) | Err(_))
            {
                made.push((order, at, binding.value.clone()));
            }
        }
        made.sort_by_key(|(order, ..)| *order);
        let objects: Vec<ObjectRef> = made
            .iter()
            .filter_map(|(_, _, value)| match value {
                Ok(Py::Object(object)) => Some(object.clone()),
                _ => None,
            })
            .collect();
        let mut chosen = None;
        for (_, at, value) in made.iter().rev() {
            match value {
                Err(error) => return Err(error.clone().into()),
                Ok(Py::Object(object)) if !objects.iter().any(|other| holds(other, object)) => {
                    chosen = Some((*at, object.clone()));
                    break;
                }
                Ok(_) => {}
            }
        }
        let last = self.last_module_class(file)?;
        match (chosen, last) {
            (Some((at, object)), Some(class)) if class.def().is_some_and(|def| def.start().to_u32() > at) => {
                // A module that a later class shares is a part of what that makes.
                let outer = self.make(file, &class).ok();
                Ok(Some(outer.filter(|outer| holds(outer, &object)).unwrap_or(object)))
            }
            (Some((_, object)), _) => Ok(Some(object)),
            (None, Some(class)) => self.make(file, &class).map(Some),
            (None, None) => Ok(None),
        }
    }

    /// The last class of modules that the text defines.
    fn last_module_class(&mut self, file: &Arc<SourceFile>) -> Result<Option<ClassRef>> {
        let mut classes: Vec<ClassRef> = Vec::new();
        for binding in self.globals.names.values() {
            if let Ok(Py::Class(class)) = &binding.value
                && class.file.is_by_hand()
                && Arc::ptr_eq(&class.file, file)
            {
                classes.push(class.clone());
            }
        }
        classes.sort_by_key(|class| class.def().map(|def| def.start()));
        for class in classes.into_iter().rev() {
            if ancestry(self.program, &class)?.is_some() {
                return Ok(Some(class));
            }
        }
        Ok(None)
    }

    fn make(&mut self, file: &Arc<SourceFile>, class: &ClassRef) -> Result<ObjectRef> {
        let place = class.def().map_or_else(Default::default, Ranged::range);
        match self.instantiate(class, Vec::new(), Vec::new(), file, &place)? {
            Py::Object(object) => Ok(object),
            _ => self.beyond(file, "this class", &place),
        }
    }

    /// What the globals are to code that is compiled.
    pub(super) fn top_names(&self, file: &SourceFile) -> HashMap<String, TopName> {
        let mut names = HashMap::new();
        let mut aliases = HashMap::new();
        for (name, binding) in &self.globals.names {
            let known = match &binding.value {
                Err(error) => TopName::Refused(error.clone()),
                Ok(Py::Function(function)) if function.file.is_by_hand() => TopName::Definition(function.statement),
                Ok(Py::Class(class)) if class.file.is_by_hand() => TopName::Definition(class.statement),
                Ok(Py::Class(class)) => {
                    aliases.insert(name.clone(), class.qualified.to_string());
                    continue;
                }
                Ok(Py::Path(path)) => {
                    aliases.insert(name.clone(), path.to_string());
                    continue;
                }
                Ok(value) => TopName::Python(value.type_name()),
            };
            names.insert(name.clone(), known);
        }
        file.set_aliases(aliases);
        names
    }

    /// The values that defaults and class bodies have, for code that is compiled.
    pub(super) fn bound(&self) -> HashMap<ruff_text_size::TextRange, Bound> {
        let bound = self.globals.bound.iter();
        let bound = bound.filter_map(|(place, known)| {
            let bound = match known {
                Err(error) => Bound::Refused(error.clone()),
                Ok(value @ (Py::List(_) | Py::Dict(_))) => {
                    Bound::Mutable(value.type_name(), super::lower::constant(&self.program.ctx, value, 0))
                }
                Ok(value) => Bound::Constant(super::lower::constant(&self.program.ctx, value, 0)?),
            };
            Some((*place, bound))
        });
        bound.collect()
    }
}

/// Whether `outer` is another module than `inner` and holds it.
fn holds(outer: &ObjectRef, inner: &ObjectRef) -> bool {
    !std::rc::Rc::ptr_eq(outer, inner) && modules(outer).iter().any(|module| std::rc::Rc::ptr_eq(module, inner))
}

/// The dotted name at the head of a chain of calls (`A(2).eval()` has `A`), and whether anything is called.
fn callee(value: &Expr) -> (Option<String>, bool) {
    let mut value = value;
    let mut is_call = false;
    loop {
        if let Some(name) = dotted(value) {
            return (Some(name), is_call);
        }
        value = match value {
            Expr::Call(call) => {
                is_call = true;
                &call.func
            }
            Expr::Attribute(attribute) => &attribute.value,
            _ => return (None, is_call),
        };
    }
}

fn path_may_make_module(path: &str) -> bool {
    if path == "torch" || path.starts_with("torch.") {
        return !path.starts_with("torch.nn.functional.")
            && MAKES_MODULES.iter().any(|prefix| path.starts_with(prefix));
    }
    let head = path.trim_start_matches('.').split('.').next().unwrap_or_default();
    path.contains('.') && !PLAIN_MODULES.contains(&head)
}

/// Whether a statement is a call that changes nothing that code is made of.
fn is_harmless(file: &SourceFile, statement: &Stmt) -> bool {
    let Stmt::Expr(expr) = statement else { return false };
    let Some(path) = expr.value.as_call_expr().and_then(|call| dotted(&call.func)) else {
        return false;
    };
    let path = file.expand(&path);
    HARMLESS.iter().any(|harmless| match harmless.strip_suffix(['.', '_']) {
        Some(_) => path.starts_with(harmless),
        None => path == *harmless,
    })
}

/// Whether a statement imports what this compiler does not bring along.
fn is_unknown_import(statement: &Stmt) -> bool {
    crate::frontend::source::imports(std::slice::from_ref(statement))
        .values()
        .any(|path| {
            let head = path.split('.').next().unwrap_or_default();
            head != "torch" && !(PLAIN_MODULES.contains(&head) && head != "numpy")
        })
}

/// The name of the module that the file would be to Python.
fn module_name(file: &str) -> String {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    name.strip_suffix(".py").unwrap_or(name).to_owned()
}
