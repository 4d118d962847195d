//! Syntactic analysis: the variables that statements may assign.

use std::collections::BTreeSet;

use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
use ruff_python_ast::{CmpOp, Expr, Stmt};

/// Collects the variables that statements assign. With `narrowed`, also collects variables whose types they may narrow, because narrowing assigns them.
pub(super) fn assigned_names(body: &[Stmt], narrowed: bool, names: &mut BTreeSet<String>) {
    let mut finder = Assigned { narrowed, names };
    finder.visit_body(body);
}

struct Assigned<'n> {
    narrowed: bool,
    names: &'n mut BTreeSet<String>,
}

impl<'a> Visitor<'a> for Assigned<'_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Assign(assign) => assign
                .targets
                .iter()
                .for_each(|target| target_names(target, self.names)),
            Stmt::AnnAssign(assign) => target_names(&assign.target, self.names),
            Stmt::AugAssign(assign) => target_names(&assign.target, self.names),
            Stmt::For(statement) => target_names(&statement.target, self.names),
            Stmt::With(statement) => statement
                .items
                .iter()
                .filter_map(|item| item.optional_vars.as_deref())
                .for_each(|target| target_names(target, self.names)),
            // What functions in functions assign is theirs.
            Stmt::FunctionDef(_) | Stmt::ClassDef(_) => return,
            _ => {}
        }
        walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        if !self.narrowed {
            return;
        }
        let mut narrow = |expr: &Expr| {
            if let Expr::Name(name) = expr {
                self.names.insert(name.id.to_string());
            }
        };
        match expr {
            Expr::Compare(compare) if compare.ops.iter().any(|op| matches!(op, CmpOp::Is | CmpOp::IsNot)) => {
                narrow(&compare.left);
                compare.comparators.iter().for_each(&mut narrow);
            }
            Expr::Call(call) => {
                let is_test = match &*call.func {
                    Expr::Name(name) => name.id == "isinstance",
                    Expr::Attribute(attribute) => attribute.attr.as_str() == "isinstance",
                    _ => false,
                };
                if is_test {
                    call.arguments.args.first().map(&mut narrow);
                }
            }
            _ => {}
        }
        walk_expr(self, expr);
    }
}

/// Collects the names of the variables that an assignment to `target` assigns.
pub(super) fn target_names(target: &Expr, names: &mut BTreeSet<String>) {
    match target {
        Expr::Name(name) => {
            names.insert(name.id.to_string());
        }
        Expr::Tuple(tuple) => tuple.elts.iter().for_each(|target| target_names(target, names)),
        Expr::List(list) => list.elts.iter().for_each(|target| target_names(target, names)),
        Expr::Starred(starred) => target_names(&starred.value, names),
        _ => {}
    }
}
