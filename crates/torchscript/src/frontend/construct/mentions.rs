//! The names that statements mention: what a statement that cannot be run would have set, and what it may have changed.

use std::collections::BTreeSet;

use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
use ruff_python_ast::{ExceptHandler, Expr, ExprContext, Parameters, Stmt};

/// The names that a statement mentions.
#[derive(Default)]
pub(super) struct Mentions {
    /// Names that are read, those that are only called left out.
    pub(super) loaded: BTreeSet<String>,
    /// Names that are called.
    pub(super) called: BTreeSet<String>,
    /// Names that are given a value.
    pub(super) stored: BTreeSet<String>,
    /// Names of things whose attributes or elements are set, or that are passed on.
    pub(super) changed: BTreeSet<String>,
    /// Names that a function declares global.
    global: BTreeSet<String>,
}

impl Mentions {
    pub(super) fn of(statement: &Stmt) -> Mentions {
        let mut mentions = Mentions::default();
        mentions.visit_stmt(statement);
        mentions
    }

    /// What the body of a function mentions of what is outside of it.
    pub(super) fn of_body(body: &[Stmt], parameters: &Parameters) -> Mentions {
        let mut mentions = Mentions::default();
        mentions.visit_body(body);
        let mut local = std::mem::take(&mut mentions.stored);
        local.extend(parameters.iter().map(|parameter| parameter.name().to_string()));
        local.retain(|name| !mentions.global.contains(name));
        mentions.stored.clone_from(&mentions.global);
        for names in [&mut mentions.loaded, &mut mentions.called, &mut mentions.changed] {
            names.retain(|name| !local.contains(name));
        }
        mentions
    }

    pub(super) fn extend(&mut self, more: Mentions) {
        self.loaded.extend(more.loaded);
        self.called.extend(more.called);
        self.stored.extend(more.stored);
        self.changed.extend(more.changed);
    }

    fn change(&mut self, target: &Expr) {
        let base = match target {
            Expr::Attribute(attribute) => &*attribute.value,
            Expr::Subscript(subscript) => &*subscript.value,
            _ => return,
        };
        match base {
            Expr::Name(name) => {
                self.changed.insert(name.id.to_string());
            }
            other => self.change(other),
        }
    }
}

impl<'a> Visitor<'a> for Mentions {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(def) => {
                self.stored.insert(def.name.to_string());
                return;
            }
            Stmt::ClassDef(def) => {
                self.stored.insert(def.name.to_string());
                return;
            }
            Stmt::Import(_) | Stmt::ImportFrom(_) => {
                let names = crate::frontend::source::imports(std::slice::from_ref(statement));
                self.stored.extend(names.into_keys());
            }
            Stmt::Global(global) => self.global.extend(global.names.iter().map(ToString::to_string)),
            Stmt::Assign(assign) => assign.targets.iter().for_each(|target| self.change(target)),
            Stmt::AugAssign(assign) => self.change(&assign.target),
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
            Expr::Name(name) => {
                let names = match name.ctx {
                    ExprContext::Load => &mut self.loaded,
                    _ => &mut self.stored,
                };
                names.insert(name.id.to_string());
            }
            Expr::Call(call) => {
                match &*call.func {
                    Expr::Name(name) => {
                        self.called.insert(name.id.to_string());
                    }
                    other => self.visit_expr(other),
                }
                for argument in &call.arguments.args {
                    if let Expr::Name(name) = argument {
                        self.changed.insert(name.id.to_string());
                    }
                }
                self.visit_arguments(&call.arguments);
            }
            _ => walk_expr(self, expr),
        }
    }
}

/// Whether statements set attributes or elements, or call methods that change their object.
pub(super) fn is_written_by(body: &[Stmt]) -> bool {
    let mut writes = Writes(false);
    writes.visit_body(body);
    writes.0
}

struct Writes(bool);

impl<'a> Visitor<'a> for Writes {
    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Attribute(attribute) => {
                let name = attribute.attr.as_str();
                self.0 |= attribute.ctx != ExprContext::Load || (name.ends_with('_') && !name.ends_with("__"));
            }
            Expr::Subscript(subscript) => self.0 |= subscript.ctx != ExprContext::Load,
            _ => {}
        }
        walk_expr(self, expr);
    }

    fn visit_stmt(&mut self, statement: &'a Stmt) {
        self.0 |= matches!(statement, Stmt::AugAssign(_) | Stmt::Global(_));
        walk_stmt(self, statement);
    }
}
