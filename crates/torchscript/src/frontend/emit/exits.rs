//! Questions about the syntax of statements: whether they leave their block, and what they assign.

use std::collections::BTreeSet;

use ruff_python_ast::{ElifElseClause, Expr, Stmt};
use ruff_text_size::Ranged;

/// A statement, or what is left of an `if` after its first condition.
#[derive(Debug, Clone, Copy)]
pub(super) enum Item<'f> {
    Statement(&'f Stmt),
    Clauses(&'f [ElifElseClause]),
}

/// Variables that cannot be written in Python hold the state of exits.
pub(super) const RETURNED: &str = "%returned";

pub(super) const RESULT: &str = "%result";

pub(super) const BROKE: &str = "%broke";

pub(super) const LEFT: &str = "%left";

pub(super) fn item_range(items: &[Item<'_>]) -> ruff_text_size::TextRange {
    match items.first() {
        Some(Item::Statement(statement)) => statement.range(),
        Some(Item::Clauses([clause, ..])) => clause.range(),
        _ => ruff_text_size::TextRange::default(),
    }
}

/// Asks something of every statement, those in blocks of `if`s included, and those in loops when `loops` says so.
pub(super) fn any_statement<'f>(items: &[Item<'f>], loops: bool, test: &mut impl FnMut(&'f Stmt) -> bool) -> bool {
    fn suite<'f>(body: &'f [Stmt], loops: bool, test: &mut impl FnMut(&'f Stmt) -> bool) -> bool {
        let items: Vec<Item<'f>> = body.iter().map(Item::Statement).collect();
        any_statement(&items, loops, test)
    }
    items.iter().any(|item| match item {
        Item::Clauses(clauses) => clauses.iter().any(|clause| suite(&clause.body, loops, test)),
        Item::Statement(statement) => {
            test(statement)
                || match statement {
                    Stmt::If(statement) => {
                        suite(&statement.body, loops, test)
                            || statement
                                .elif_else_clauses
                                .iter()
                                .any(|clause| suite(&clause.body, loops, test))
                    }
                    Stmt::With(statement) => suite(&statement.body, loops, test),
                    Stmt::For(statement) if loops => suite(&statement.body, loops, test),
                    Stmt::While(statement) if loops => suite(&statement.body, loops, test),
                    _ => false,
                }
        }
    })
}

pub(super) fn contains_return(items: &[Item<'_>]) -> bool {
    any_statement(items, true, &mut |statement| matches!(statement, Stmt::Return(_)))
}

/// Whether control may not reach what follows: by return anywhere, or by break or continue of the loop at hand.
pub(super) fn may_leave(items: &[Item<'_>]) -> bool {
    contains_return(items) || leaves_loop(items)
}

/// Whether there is a break or continue of the loop at hand.
pub(super) fn leaves_loop(items: &[Item<'_>]) -> bool {
    any_statement(items, false, &mut |statement| {
        matches!(statement, Stmt::Break(_) | Stmt::Continue(_))
    })
}

/// Whether control never reaches what follows.
pub(super) fn always_leaves(items: &[Item<'_>]) -> bool {
    let suite = |body: &[Stmt]| {
        body.iter()
            .any(|statement| always_leaves(&[Item::Statement(statement)]))
    };
    let clauses_leave = |clauses: &[ElifElseClause]| {
        clauses.last().is_some_and(|last| last.test.is_none()) && clauses.iter().all(|clause| suite(&clause.body))
    };
    items.iter().any(|item| match item {
        Item::Clauses(clauses) => clauses_leave(clauses),
        Item::Statement(Stmt::Return(_) | Stmt::Raise(_) | Stmt::Break(_) | Stmt::Continue(_)) => true,
        Item::Statement(Stmt::If(statement)) => suite(&statement.body) && clauses_leave(&statement.elif_else_clauses),
        Item::Statement(Stmt::With(statement)) => suite(&statement.body),
        Item::Statement(_) => false,
    })
}

/// Whether returns stand where they cannot simply become results of `if`s: in loops, or on a side that goes on otherwise.
pub(super) fn needs_flags(items: &[Item<'_>]) -> bool {
    let suite = |body: &[Stmt]| {
        let items: Vec<Item<'_>> = body.iter().map(Item::Statement).collect();
        contains_return(&items) && (!always_leaves(&items) || needs_flags(&items))
    };
    items.iter().any(|item| match item {
        Item::Statement(Stmt::For(_) | Stmt::While(_) | Stmt::With(_)) => contains_return(&[*item]),
        Item::Statement(Stmt::If(statement)) => {
            suite(&statement.body) || statement.elif_else_clauses.iter().any(|clause| suite(&clause.body))
        }
        Item::Clauses(clauses) => clauses.iter().any(|clause| suite(&clause.body)),
        Item::Statement(_) => false,
    })
}

/// The variables that statements assign.
pub(super) fn assigned_names(items: &[Item<'_>], names: &mut BTreeSet<String>) {
    any_statement(items, true, &mut |statement| {
        match statement {
            Stmt::Assign(assign) => assign.targets.iter().for_each(|target| target_names(target, names)),
            Stmt::AnnAssign(assign) => target_names(&assign.target, names),
            Stmt::AugAssign(assign) => target_names(&assign.target, names),
            Stmt::For(statement) => target_names(&statement.target, names),
            Stmt::With(statement) => statement
                .items
                .iter()
                .filter_map(|item| item.optional_vars.as_deref())
                .for_each(|target| target_names(target, names)),
            _ => {}
        }
        false
    });
}

/// The variables that an assignment to `target` sets.
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
