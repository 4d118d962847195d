//! Execution of statements, and calls of functions and classes.

use std::cell::RefCell;
use std::sync::Arc;

use frazil_ir::arguments::{Assignment, AssignmentError};
use ruff_python_ast::{Expr, Operator, Stmt, StmtAugAssign, StmtFunctionDef, StmtWith};
use ruff_text_size::Ranged;

use super::attributes::Member;
use super::elements::in_place;
use super::maker::{MAX_CALLS, Maker, Scope};
use super::mentions::Mentions;
use super::purity::{ends_program, is_harmless};
use super::value::{FunctionRef, Py, PyObject, insert};
use crate::error::Result;
use crate::names::{ClassRef, ancestry};
use crate::source::parameters::{PythonParameter, assignment_message};
use crate::source::shared;
use crate::source::{SourceFile, dotted};

/// Context managers that turn gradients on or off.
const GRADIENT_MODES: &[&str] = &[
    "torch.no_grad",
    "torch.enable_grad",
    "torch.set_grad_enabled",
    "torch.inference_mode",
    "torch.autograd.no_grad",
    "torch.autograd.enable_grad",
    "torch.autograd.set_grad_enabled",
    "torch.autograd.inference_mode",
    "torch.autograd.grad_mode.no_grad",
    "torch.autograd.grad_mode.enable_grad",
    "torch.autograd.grad_mode.set_grad_enabled",
    "torch.autograd.grad_mode.inference_mode",
];

/// The continuation of control flow after a statement.
pub(super) enum Flow {
    Next,
    Break,
    Continue,
    Return(Py),
}

impl Maker<'_> {
    pub(super) fn suite(&mut self, scope: &mut Scope, body: &[Stmt]) -> Result<Flow> {
        for statement in body {
            match self.statement(scope, statement)? {
                Flow::Next => {}
                other => return Ok(other),
            }
        }
        Ok(Flow::Next)
    }

    pub(super) fn statement(&mut self, scope: &mut Scope, statement: &Stmt) -> Result<Flow> {
        let file = Arc::clone(&scope.file);
        self.step(&file, statement)?;
        match statement {
            Stmt::Pass(_) => {}
            Stmt::Import(_) | Stmt::ImportFrom(_) => self.import(scope, statement)?,
            Stmt::FunctionDef(def) if scope.is_top => self.define(scope, def)?,
            Stmt::ClassDef(def) if scope.is_top => self.define_class(scope, def)?,
            Stmt::Global(global) if !scope.is_top => {
                scope.globals.extend(global.names.iter().map(ToString::to_string));
            }
            Stmt::Global(_) => {}
            Stmt::Delete(delete) => {
                for target in &delete.targets {
                    self.delete(scope, target)?;
                }
            }
            Stmt::Expr(expr) => {
                if !expr.value.is_string_literal_expr() {
                    self.discard(scope, &expr.value)?;
                }
            }
            Stmt::Assign(assign) => {
                let value = self.assigned(scope, &assign.targets, &assign.value)?;
                for target in &assign.targets {
                    self.assign(scope, Some(target), value.clone(), statement)?;
                }
            }
            Stmt::AnnAssign(assign) => {
                if let Some(value) = &assign.value {
                    let made = self.assigned(scope, std::slice::from_ref(&assign.target), value)?;
                    self.assign(scope, Some(&assign.target), made, statement)?;
                }
            }
            Stmt::AugAssign(assign) => self.assign_in_place(scope, assign)?,
            Stmt::If(statement) => {
                if self.test(scope, &statement.test)? {
                    return self.suite(scope, &statement.body);
                }
                for clause in &statement.elif_else_clauses {
                    let taken = match &clause.test {
                        Some(test) => self.test(scope, test)?,
                        None => true,
                    };
                    if taken {
                        return self.suite(scope, &clause.body);
                    }
                }
            }
            Stmt::For(statement) => {
                let items = self.elements(scope, &statement.iter)?;
                for item in items {
                    self.assign(scope, Some(&statement.target), item, &*statement.target)?;
                    match self.suite(scope, &statement.body)? {
                        Flow::Break => return Ok(Flow::Next),
                        Flow::Return(value) => return Ok(Flow::Return(value)),
                        Flow::Next | Flow::Continue => {}
                    }
                }
                return self.suite(scope, &statement.orelse);
            }
            Stmt::While(statement) => {
                while self.test(scope, &statement.test)? {
                    self.step(&file, statement)?;
                    match self.suite(scope, &statement.body)? {
                        Flow::Break => return Ok(Flow::Next),
                        Flow::Return(value) => return Ok(Flow::Return(value)),
                        Flow::Next | Flow::Continue => {}
                    }
                }
                return self.suite(scope, &statement.orelse);
            }
            Stmt::With(with) => {
                self.enter(scope, with)?;
                return self.suite(scope, &with.body);
            }
            Stmt::Break(_) => return Ok(Flow::Break),
            Stmt::Continue(_) => return Ok(Flow::Continue),
            Stmt::Return(statement) => {
                return Ok(Flow::Return(match &statement.value {
                    Some(value) => self.expr(scope, value)?,
                    None => Py::None,
                }));
            }
            Stmt::Assert(assert) => {
                if !self.test(scope, &assert.test)? {
                    let message = match &assert.msg {
                        Some(message) => self.expr(scope, message)?.text().unwrap_or_default(),
                        None => String::new(),
                    };
                    return self.raise(&file, format!("AssertionError: {message}"), assert);
                }
            }
            Stmt::Raise(raise) => {
                let message = match raise.exc.as_deref() {
                    Some(Expr::Call(call)) => match call.arguments.args.first() {
                        Some(message) => self.expr(scope, message)?.text().unwrap_or_default(),
                        None => String::new(),
                    },
                    _ => String::new(),
                };
                return self.raise(&file, format!("the program raises: {message}"), raise);
            }
            other => return self.beyond(&file, "this statement", other),
        }
        Ok(Flow::Next)
    }

    /// Executes `target += value` and similar statements. Tensors and lists are modified in place, and the target is
    /// then set to the same object.
    fn assign_in_place(&mut self, scope: &mut Scope, assign: &StmtAugAssign) -> Result<()> {
        let file = Arc::clone(&scope.file);
        let left = self.expr(scope, &assign.target)?;
        let right = self.expr(scope, &assign.value)?;
        let value = match (&left, assign.op) {
            (Py::Tensor(tensor) | Py::Parameter(tensor), op) => {
                if in_place(op, tensor, &right).is_none() {
                    return self.beyond(&file, "this operation on a tensor in place", assign);
                }
                // An element or `data` is in the tensor already.
                match &*assign.target {
                    Expr::Subscript(_) => return Ok(()),
                    Expr::Attribute(attribute) if attribute.attr.as_str() == "data" => return Ok(()),
                    _ => left.clone(),
                }
            }
            (Py::List(list), Operator::Mult) => {
                if let Py::List(longer) = self.binary(&file, assign.op, &left, &right, assign)? {
                    let items = longer.take();
                    *list.borrow_mut() = items;
                }
                left.clone()
            }
            (Py::List(list), Operator::Add) => match self.items(&right) {
                Some(more) => {
                    self.charge_bytes(&file, (more.len() * size_of::<Py>()) as u64, assign)?;
                    list.borrow_mut().extend(more);
                    left.clone()
                }
                None => return self.beyond(&file, "this operator", assign),
            },
            (Py::List(_) | Py::Dict(_) | Py::Set(_, false), _) => {
                return self.beyond(&file, "this operator", assign);
            }
            (_, op) => self.binary(&file, op, &left, &right, assign)?,
        };
        // Calls in the target have been evaluated above, and must not be evaluated again by the assignment.
        if !Mentions::of_expr(&assign.target).calls.is_empty() {
            return self.beyond(&file, "an assignment in place to what a call gives", assign);
        }
        self.assign(scope, Some(&assign.target), value, assign)
    }

    /// Assigns `value` to the variable `name` of `scope`.
    pub(super) fn set(&mut self, scope: &mut Scope, name: &str, value: Py) {
        if scope.is_top || scope.globals.contains(name) {
            self.globals.bind(name, value);
        } else {
            scope.variables.insert(name.to_owned(), value);
        }
    }

    /// Evaluates an expression and discards its value.
    fn discard(&mut self, scope: &mut Scope, expr: &Expr) -> Result<()> {
        let Some(call) = expr.as_call_expr() else {
            return self.expr(scope, expr).map(|_| ());
        };
        let path = self.path_of(scope, &call.func).unwrap_or_default();
        if ends_program(&path) {
            let file = Arc::clone(&scope.file);
            return self.raise(&file, format!("the program ends here, by `{path}`"), call);
        }
        if !is_harmless(&path) {
            return self.expr(scope, expr).map(|_| ());
        }
        for argument in &call.arguments.args {
            self.expr(scope, argument.as_starred_expr().map_or(argument, |star| &star.value))?;
        }
        for keyword in &call.arguments.keywords {
            self.expr(scope, &keyword.value)?;
        }
        Ok(())
    }

    /// Returns the dotted name that an expression denotes, unless it is a value of the text.
    pub(super) fn path_of(&self, scope: &Scope, expr: &Expr) -> Option<String> {
        let name = dotted(expr)?;
        let (head, rest) = match name.split_once('.') {
            Some((head, rest)) => (head, Some(rest)),
            None => (name.as_str(), None),
        };
        let known = scope
            .file
            .rules
            .is_source()
            .then(|| self.globals.names.get(head))
            .flatten();
        let head = match (scope.variables.get(head), known.map(|binding| &binding.value)) {
            (Some(Py::Path(path)), _) | (None, Some(Ok(Py::Path(path)))) => path.to_string(),
            (None, Some(Ok(Py::Class(class)))) if !class.file.rules.is_source() => {
                class.qualified.trim_start_matches("__torch__.").to_owned()
            }
            (None, None) => scope.file.expand(head),
            _ => return None,
        };
        Some(match rest {
            Some(rest) => format!("{head}.{rest}"),
            None => head,
        })
    }

    /// Enters the contexts of a `with` statement. Only contexts that turn gradients on or off are supported. They have no effect.
    pub(super) fn enter(&mut self, scope: &mut Scope, with: &StmtWith) -> Result<()> {
        for item in &with.items {
            let context = item.context_expr.as_call_expr();
            let path = context.and_then(|call| self.path_of(scope, &call.func));
            let path = path.unwrap_or_default();
            let (true, Some(call)) = (GRADIENT_MODES.contains(&path.as_str()), context) else {
                let file = Arc::clone(&scope.file);
                return self.beyond(&file, "this context of a `with`", &item.context_expr);
            };
            for argument in &call.arguments.args {
                self.expr(scope, argument)?;
            }
            for keyword in &call.arguments.keywords {
                self.expr(scope, &keyword.value)?;
            }
            if let Some(target) = item.optional_vars.as_deref() {
                self.assign(scope, Some(target), Py::None, with)?;
            }
        }
        Ok(())
    }

    /// Returns the value of a parameter's default, which was evaluated at the definition.
    fn default(&mut self, file: &Arc<SourceFile>, default: &Expr) -> Result<Py> {
        match self.globals.bound.get(&default.range()) {
            Some(Ok(value)) if file.rules.is_source() => Ok(value.clone()),
            Some(Err(error)) if file.rules.is_source() => Err(error.clone().into()),
            _ => self.expr(&mut Scope::new(file), default),
        }
    }

    fn delete(&mut self, scope: &mut Scope, target: &Expr) -> Result<()> {
        let file = Arc::clone(&scope.file);
        match target {
            Expr::Name(name) => {
                let known = match scope.is_top || scope.globals.contains(name.id.as_str()) {
                    true => self.globals.names.remove(name.id.as_str()).is_some(),
                    false => scope.variables.remove(name.id.as_str()).is_some(),
                };
                match known {
                    true => Ok(()),
                    false => self.fail(&file, format!("name '{}' is not defined", name.id), target),
                }
            }
            Expr::Attribute(attribute) => match self.expr(scope, &attribute.value)? {
                Py::Object(object) => {
                    let name = attribute.attr.as_str();
                    match object.borrow_mut().attributes.shift_remove(name) {
                        Some(_) => Ok(()),
                        None => self.fail(&file, format!("the module has no attribute '{name}'"), target),
                    }
                }
                _ => self.beyond(&file, "this deletion", target),
            },
            _ => self.beyond(&file, "this deletion", target),
        }
    }

    pub(super) fn assign(
        &mut self,
        scope: &mut Scope,
        target: Option<&Expr>,
        value: Py,
        node: &impl Ranged,
    ) -> Result<()> {
        let file = Arc::clone(&scope.file);
        match target {
            Some(Expr::Name(name)) => {
                self.set(scope, &name.id, value);
                Ok(())
            }
            Some(Expr::Tuple(_) | Expr::List(_)) => {
                let targets: &[Expr] = match target {
                    Some(Expr::Tuple(tuple)) => &tuple.elts,
                    Some(Expr::List(list)) => &list.elts,
                    _ => &[],
                };
                let Some(items) = self.items(&value) else {
                    return self.beyond(&file, format!("the elements of a {}", value.type_name()), node);
                };
                if items.len() != targets.len() {
                    return self.fail(&file, "the number of values is not that of the names", node);
                }
                for (target, item) in targets.iter().zip(items) {
                    self.assign(scope, Some(target), item, node)?;
                }
                Ok(())
            }
            Some(Expr::Attribute(attribute)) => match self.expr(scope, &attribute.value)? {
                Py::Object(object) => self.set_member(&file, &object, attribute.attr.as_str(), value, node),
                Py::Instance(object) => self.set_field(&file, &object, attribute.attr.as_str(), value, node),
                Py::Tensor(tensor) | Py::Parameter(tensor) if attribute.attr.as_str() == "requires_grad" => {
                    let flag = self.truth(&file, &value, node)?;
                    tensor.set_requires_grad(flag);
                    Ok(())
                }
                Py::Tensor(tensor) | Py::Parameter(tensor) if attribute.attr.as_str() == "data" => match value {
                    Py::Tensor(new) | Py::Parameter(new) => {
                        tensor.set_data(&new);
                        Ok(())
                    }
                    _ => self.beyond(&file, "this assignment", node),
                },
                _ => self.beyond(&file, "this assignment", node),
            },
            Some(Expr::Subscript(subscript)) => {
                let container = self.expr(scope, &subscript.value)?;
                if let Py::Tensor(tensor) | Py::Parameter(tensor) = &container {
                    let picks = self.picks(scope, &subscript.slice)?;
                    let set = picks.and_then(|picks| tensor.select(&picks)?.assign(&value));
                    return match set {
                        Some(()) => Ok(()),
                        None => self.beyond(&file, "this assignment", node),
                    };
                }
                let index = self.expr(scope, &subscript.slice)?;
                match (&container, index.as_int()) {
                    (Py::List(items), Some(at)) => {
                        let mut items = items.borrow_mut();
                        let at = if at < 0 { at + items.len() as i64 } else { at };
                        match usize::try_from(at).ok().and_then(|at| items.get_mut(at)) {
                            Some(slot) => *slot = value,
                            None => return self.fail(&file, "list assignment index out of range", node),
                        }
                        Ok(())
                    }
                    (Py::Dict(items), _) => {
                        insert(&mut items.borrow_mut(), index, value);
                        Ok(())
                    }
                    (Py::Object(object), _) => self.set_child(&file, object, &index, value, node),
                    _ => self.beyond(&file, "this assignment", node),
                }
            }
            _ => self.beyond(&file, "this assignment", node),
        }
    }

    /// Calls a function or method that the source text defines.
    pub(super) fn call_function(
        &mut self,
        function: &FunctionRef,
        this: Option<Py>,
        positional: Vec<Py>,
        keywords: Vec<(String, Py)>,
        node: &impl Ranged,
    ) -> Result<Py> {
        let file = Arc::clone(&function.file);
        let Some(def) = function.def() else { return Ok(Py::None) };
        if self.calls >= MAX_CALLS {
            return self.fail(&file, "calls nest too deeply", node);
        }
        let mut scope = Scope::new(&file);
        scope.class.clone_from(&function.class);
        scope.this.clone_from(&this);
        scope.function = Some(function.clone());
        let positional: Vec<Py> = this.into_iter().chain(positional).collect();
        self.bind(&mut scope, def, &positional, &keywords)?;
        self.calls += 1;
        let flow = self.suite(&mut scope, &def.body);
        self.calls -= 1;
        match flow? {
            Flow::Return(value) => Ok(value),
            _ => Ok(Py::None),
        }
    }

    /// Sets the variables of `scope` that are the parameters of `def`, from the arguments of a call. A method's object is the first positional argument.
    fn bind(
        &mut self,
        scope: &mut Scope,
        def: &StmtFunctionDef,
        positional: &[Py],
        keywords: &[(String, Py)],
    ) -> Result<()> {
        let file = Arc::clone(&scope.file);
        let fault = |error: AssignmentError, parameter: &str| {
            let argument = error.keyword(keywords).map_or(parameter, String::as_str);
            file.error("construct", assignment_message(&def.name, error, argument), def)
        };
        let parameters: Vec<PythonParameter<'_>> = PythonParameter::all(&def.parameters).collect();
        let mut call = Assignment::new(positional.len(), keywords);
        for parameter in &parameters {
            let name = parameter.name();
            let assigned = call.next(parameter).map_err(|error| fault(error, name))?;
            let value = match (assigned.passed(positional, keywords), parameter.default()) {
                (Some(value), _) => value.clone(),
                (None, Some(default)) => self.default(&file, default)?,
                (None, None) => return Err(fault(AssignmentError::Missing, name).into()),
            };
            scope.variables.insert(name.to_owned(), value);
        }
        if let Some(star) = &def.parameters.vararg {
            let rest = positional.get(call.take_positional()).unwrap_or_default();
            scope.variables.insert(star.name.to_string(), Py::tuple(rest.to_vec()));
        }
        if let Some(star) = &def.parameters.kwarg {
            let rest = call.take_keywords(&parameters);
            let rest = rest.into_iter().filter_map(|index| keywords.get(index));
            let pairs = rest
                .map(|(name, value)| (Py::str(name.as_str()), value.clone()))
                .collect();
            let dict = Py::dict(pairs);
            scope.variables.insert(star.name.to_string(), dict);
        }
        Ok(call.finish(&parameters).map_err(|error| fault(error, ""))?)
    }

    /// Creates an object of a class of modules.
    pub(super) fn instantiate(
        &mut self,
        class: &ClassRef,
        positional: Vec<Py>,
        keywords: Vec<(String, Py)>,
        file: &Arc<SourceFile>,
        node: &impl Ranged,
    ) -> Result<Py> {
        if let Some(error) = self
            .globals
            .unclear
            .get(&class.statement)
            .filter(|_| class.file.rules.is_source())
        {
            return Err(error.clone().into());
        }
        let Some(chain) = ancestry(self.names, class)? else {
            return self.instance(class, positional, keywords, file, node);
        };
        self.check_class(class, &chain, node)?;
        let init = match self.inherited(&chain, "__init__")? {
            Some(Member::Method(init)) => Some(init),
            Some(_) => return self.beyond(file, format!("`__init__` of `{}`", class.simple()), node),
            None => None,
        };
        let mut object = PyObject::new(class.clone());
        object.is_ready = init.as_ref().is_none_or(|init| !init.file.rules.is_source());
        let object = Py::Object(shared(RefCell::new(object)));
        match init {
            Some(init) => {
                self.call_function(&init, Some(object.clone()), positional, keywords, node)?;
            }
            None if positional.is_empty() && keywords.is_empty() => {}
            None => return self.fail(file, format!("{}() takes no arguments", class.simple()), node),
        }
        Ok(object)
    }
}
