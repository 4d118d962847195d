//! The names that statements refer to, and the functions that they call and variables that they set.

use std::collections::{BTreeMap, BTreeSet};

use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
use ruff_python_ast::{Comprehension, ExceptHandler, Expr, ExprCall, ExprContext, Parameters, Stmt};

use crate::source::dotted;

/// Builtin functions of Python through which a text can change any of its global variables.
pub(super) const REACHES_GLOBALS: &[&str] = &["globals", "locals", "exec", "eval", "__import__"];

/// Attributes through which a text can change any of its global variables, or the behaviour of later statements.
const REACHES_STATE: &[&str] = &[
    "__globals__",
    "import_module",
    "set_default_dtype",
    "set_default_tensor_type",
    "set_default_device",
];

/// The names to which statements refer, and the possible effects of the statements.
#[derive(Default, Clone)]
pub(super) struct Mentions {
    /// Names of variables that are read or called.
    pub(super) loaded: BTreeSet<String>,
    /// Names of variables that are assigned.
    pub(super) stored: BTreeSet<String>,
    /// Names in `stored` that are defined as classes.
    pub(super) classes: BTreeSet<String>,
    /// Names in `stored` that are defined as functions.
    pub(super) functions: BTreeSet<String>,
    /// Names of values whose attributes or elements are set, or that are arguments of calls.
    pub(super) changed: BTreeSet<String>,
    /// Names of attributes that are read.
    pub(super) attributes: BTreeSet<String>,
    /// Dotted names that are read, with all components as in the source.
    pub(super) paths: BTreeSet<String>,
    /// Names that imports bind, with the dotted name of the imported object.
    pub(super) imported: BTreeMap<String, String>,
    pub(super) calls: Vec<Callee>,
    /// Whether attributes, elements or global variables are set, or an in-place assignment occurs.
    pub(super) writes: bool,
    /// Whether the statements use an object through which any global variable can be changed.
    pub(super) is_wild: bool,
    /// Global variables that functions in the statements assign.
    pub(super) rebinds: BTreeSet<String>,
    /// Names that a function declares global.
    global: BTreeSet<String>,
}

/// The callee of a call, as far as the syntax determines it.
#[derive(Clone)]
pub(super) struct Callee {
    /// The dotted name of the callee, if it has one.
    pub(super) path: Option<String>,
    /// The name of the method, if the callee is one.
    pub(super) method: Option<String>,
    /// Whether the head of the dotted name is a variable of the function.
    pub(super) is_local: bool,
    /// Whether an element of the object `path` is called, as in `path[i]()`.
    pub(super) is_element: bool,
    /// Whether a keyword such as `out` implies that an argument is written.
    pub(super) writes: bool,
}

impl Callee {
    /// Returns a callee about which the syntax says nothing.
    fn unknown() -> Callee {
        Callee {
            path: None,
            method: None,
            is_local: false,
            is_element: false,
            writes: false,
        }
    }

    fn of(call: &ExprCall) -> Callee {
        let writing = ["out", "inplace", "max_norm"];
        let mut keywords = call.arguments.keywords.iter();
        let element = call.func.as_subscript_expr();
        Callee {
            path: dotted(element.map_or(&*call.func, |element| &*element.value)),
            method: call
                .func
                .as_attribute_expr()
                .map(|attribute| attribute.attr.to_string()),
            is_local: false,
            is_element: element.is_some(),
            writes: keywords.any(|k| k.arg.as_ref().is_some_and(|name| writing.contains(&name.as_str()))),
        }
    }
}

impl Mentions {
    pub(super) fn of(statement: &Stmt) -> Mentions {
        let mut mentions = Mentions::default();
        mentions.visit_stmt(statement);
        // At the top level, declaring a name global changes nothing.
        mentions.global.clear();
        mentions
    }

    pub(super) fn of_expr(expr: &Expr) -> Mentions {
        let mut mentions = Mentions::default();
        mentions.visit_expr(expr);
        mentions
    }

    /// Returns the mentions in the body of a function of names from outside of the function.
    pub(super) fn of_body(body: &[Stmt], parameters: &Parameters) -> Mentions {
        let mut mentions = Mentions::default();
        mentions.visit_body(body);
        let mut local = std::mem::take(&mut mentions.stored);
        local.extend(parameters.iter().map(|parameter| parameter.name().to_string()));
        local.retain(|name| !mentions.global.contains(name));
        mentions.rebinds.append(&mut mentions.global);
        mentions.classes.clear();
        mentions.functions.clear();
        mentions.writes |= !mentions.rebinds.is_empty();
        mentions.hide(&local);
        mentions
    }

    /// Removes the local variables of an inner scope from the mentioned names.
    fn hide(&mut self, local: &BTreeSet<String>) {
        for names in [&mut self.loaded, &mut self.changed] {
            names.retain(|name| !local.contains(name));
        }
        self.paths
            .retain(|path| !local.contains(path.split('.').next().unwrap_or_default()));
        for callee in &mut self.calls {
            let head = callee.path.as_deref().and_then(|path| path.split('.').next());
            callee.is_local |= head.is_some_and(|head| local.contains(head));
        }
    }

    fn extend(&mut self, more: Mentions) {
        self.loaded.extend(more.loaded);
        self.stored.extend(more.stored);
        self.classes.extend(more.classes);
        self.functions.extend(more.functions);
        self.changed.extend(more.changed);
        self.attributes.extend(more.attributes);
        self.paths.extend(more.paths);
        self.imported.extend(more.imported);
        self.calls.extend(more.calls);
        self.rebinds.extend(more.rebinds);
        self.global.extend(more.global);
        self.writes |= more.writes;
        self.is_wild |= more.is_wild;
    }

    fn change(&mut self, target: &Expr) {
        let base = match target {
            Expr::Attribute(attribute) => &*attribute.value,
            Expr::Subscript(subscript) => &*subscript.value,
            Expr::Tuple(tuple) => return tuple.elts.iter().for_each(|item| self.change(item)),
            Expr::List(list) => return list.elts.iter().for_each(|item| self.change(item)),
            _ => return,
        };
        match base {
            Expr::Name(name) => {
                self.changed.insert(name.id.to_string());
            }
            other => self.change(other),
        }
    }

    /// Visits a comprehension, whose variables are local to it.
    fn comprehension(&mut self, generators: &[Comprehension], elements: &[&Expr]) {
        let mut inner = Mentions::default();
        let mut targets = Mentions::default();
        for generator in generators {
            targets.visit_expr(&generator.target);
            inner.visit_expr(&generator.iter);
            generator.ifs.iter().for_each(|test| inner.visit_expr(test));
        }
        elements.iter().for_each(|element| inner.visit_expr(element));
        inner.writes |= targets.writes;
        inner.hide(&targets.stored);
        self.extend(inner);
    }
}

impl<'a> Visitor<'a> for Mentions {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(def) => {
                self.stored.insert(def.name.to_string());
                self.functions.insert(def.name.to_string());
                for decorator in &def.decorator_list {
                    self.visit_expr(&decorator.expression);
                    self.calls.push(Callee::unknown());
                }
                let parameters = def.parameters.iter_non_variadic_params();
                let defaults = parameters.filter_map(|parameter| parameter.default.as_deref());
                defaults.for_each(|default| self.visit_expr(default));
                self.extend(Mentions::of_body(&def.body, &def.parameters));
                return;
            }
            Stmt::ClassDef(def) => {
                self.stored.insert(def.name.to_string());
                self.classes.insert(def.name.to_string());
                for decorator in &def.decorator_list {
                    self.visit_expr(&decorator.expression);
                    self.calls.push(Callee::unknown());
                }
                def.bases().iter().for_each(|base| self.visit_expr(base));
                let mut body = Mentions::default();
                body.visit_body(&def.body);
                body.stored.clear();
                body.classes.clear();
                body.functions.clear();
                self.extend(body);
                return;
            }
            Stmt::Import(_) | Stmt::ImportFrom(_) => {
                let names = crate::source::imports(std::slice::from_ref(statement));
                self.stored.extend(names.keys().cloned());
                self.imported.extend(names);
            }
            Stmt::Global(global) => self.global.extend(global.names.iter().map(ToString::to_string)),
            Stmt::Assign(assign) => assign.targets.iter().for_each(|target| self.change(target)),
            Stmt::AugAssign(assign) => {
                self.writes = true;
                self.change(&assign.target);
                // `+=` on a list reads the variable, and modifies the list in place.
                if let Expr::Name(name) = &*assign.target {
                    self.loaded.insert(name.id.to_string());
                }
            }
            Stmt::Delete(delete) => delete.targets.iter().for_each(|target| self.change(target)),
            _ => {}
        }
        walk_stmt(self, statement);
    }

    fn visit_except_handler(&mut self, handler: &'a ExceptHandler) {
        let ExceptHandler::ExceptHandler(inner) = handler;
        if let Some(name) = &inner.name {
            self.stored.insert(name.to_string());
        }
        ruff_python_ast::visitor::walk_except_handler(self, handler);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Name(name) => match name.ctx {
                ExprContext::Load => {
                    self.loaded.insert(name.id.to_string());
                }
                _ => {
                    self.stored.insert(name.id.to_string());
                }
            },
            Expr::Attribute(attribute) => {
                let name = attribute.attr.as_str();
                self.is_wild |= REACHES_STATE.contains(&name) || dotted(expr).as_deref() == Some("sys.modules");
                match attribute.ctx {
                    ExprContext::Load => {
                        self.attributes.insert(name.to_owned());
                    }
                    _ => self.writes = true,
                }
                match dotted(expr).filter(|_| attribute.ctx == ExprContext::Load) {
                    Some(path) => {
                        let mut names = path.split('.').map(str::to_owned);
                        self.loaded.extend(names.next());
                        self.attributes.extend(names);
                        self.paths.insert(path);
                    }
                    None => walk_expr(self, expr),
                }
            }
            Expr::Subscript(subscript) => {
                self.writes |= subscript.ctx != ExprContext::Load;
                walk_expr(self, expr);
            }
            Expr::Call(call) => {
                let is_vars = matches!(&*call.func, Expr::Name(name) if name.id.as_str() == "vars");
                self.is_wild |= is_vars && call.arguments.is_empty();
                self.calls.push(Callee::of(call));
                for argument in &call.arguments.args {
                    if let Expr::Name(name) = argument {
                        self.changed.insert(name.id.to_string());
                    }
                }
                walk_expr(self, expr);
            }
            Expr::Lambda(lambda) => {
                let mut inner = Mentions::of_expr(&lambda.body);
                if let Some(parameters) = &lambda.parameters {
                    let names = parameters.iter().map(|parameter| parameter.name().to_string());
                    inner.hide(&names.collect());
                    let defaults = parameters.iter_non_variadic_params();
                    let defaults = defaults.filter_map(|parameter| parameter.default.as_deref());
                    defaults.for_each(|default| self.visit_expr(default));
                }
                self.extend(inner);
            }
            Expr::ListComp(inner) => self.comprehension(&inner.generators, &[&inner.elt]),
            Expr::SetComp(inner) => self.comprehension(&inner.generators, &[&inner.elt]),
            Expr::Generator(inner) => self.comprehension(&inner.generators, &[&inner.elt]),
            Expr::DictComp(inner) => {
                let parts: Vec<&Expr> = inner.key.as_deref().into_iter().chain([&*inner.value]).collect();
                self.comprehension(&inner.generators, &parts);
            }
            _ => walk_expr(self, expr),
        }
    }
}
