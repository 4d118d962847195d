//! Statements, and how functions return.
//!
//! A `return` at the end of all paths becomes a result of the enclosing `if`s; one that leaves a loop, and `break` and `continue`, set flags that
//! guard the statements after them.

use frazil_ir::{Constant, TypeId, ValueId, types};
use ruff_python_ast::{ElifElseClause, Expr, Stmt, StmtAssert, StmtFunctionDef, StmtRaise};
use ruff_text_size::Ranged;

use super::exits::{BROKE, Item, LEFT, RESULT, RETURNED, always_leaves, contains_return, item_range, may_leave};
use super::matching::Arguments;
use super::sugared::Sugared;
use super::{Condition, Emitter, Frame, Variable};
use crate::frontend::Result;
use crate::frontend::annotation::dotted;

impl<'f> Emitter<'_, '_, 'f> {
    /// Emits statements that all paths of leave by a return at their end, if they return at all. Gives what is returned.
    pub(super) fn tail(&mut self, items: &[Item<'f>]) -> Result<Option<ValueId>> {
        for (index, item) in items.iter().enumerate() {
            let rest = items.get(index + 1..).unwrap_or_default();
            match item {
                Item::Statement(Stmt::Return(statement)) => {
                    let value = match &statement.value {
                        Some(value) => self.expr(value, self.returns)?,
                        None => self.none(),
                    };
                    return self.returned(value, statement).map(Some);
                }
                Item::Statement(Stmt::If(statement)) if contains_return(&[*item]) => {
                    let body: Vec<Item<'f>> = statement.body.iter().map(Item::Statement).collect();
                    return self.tail_if(statement, &statement.test, body, &statement.elif_else_clauses, rest);
                }
                Item::Clauses(clauses) if contains_return(&[*item]) => match clauses {
                    [] => {}
                    [clause, others @ ..] => {
                        let body: Vec<Item<'f>> = clause.body.iter().map(Item::Statement).collect();
                        match &clause.test {
                            Some(test) => return self.tail_if(clause, test, body, others, rest),
                            None => return self.tail(&[body.as_slice(), rest].concat()),
                        }
                    }
                },
                _ => self.item(*item)?,
            }
        }
        Ok(None)
    }

    /// An `if` of which a side returns: what follows it belongs to the other side.
    pub(super) fn tail_if(
        &mut self,
        statement: &impl Ranged,
        test: &'f Expr,
        body: Vec<Item<'f>>,
        clauses: &'f [ElifElseClause],
        rest: &[Item<'f>],
    ) -> Result<Option<ValueId>> {
        let mut body = body;
        let mut orelse = vec![Item::Clauses(clauses)];
        if !always_leaves(&body) {
            body.extend_from_slice(rest);
        }
        if !always_leaves(&orelse) {
            orelse.extend_from_slice(rest);
        }
        self.deeper(test, |this| {
            let condition = this.condition(test)?;
            if let Some(known) = condition.known {
                this.refine(if known {
                    &condition.when_true
                } else {
                    &condition.when_false
                });
                return this.tail(if known { &body } else { &orelse });
            }
            this.locate(statement);
            let node = this.node("prim::If", &[condition.value], &[]);
            let outer = this.block;
            let mut sides = Vec::with_capacity(2);
            for (items, refinements) in [(&body, &condition.when_true), (&orelse, &condition.when_false)] {
                this.block = this.graph.add_block(node);
                this.frames.push(Frame::default());
                this.refine(refinements);
                let returned = this.tail(items)?;
                let raised = this.frame().raised;
                let returned = match returned {
                    None if !raised => Some(this.none()),
                    returned => returned,
                };
                this.frames.pop();
                sides.push((this.block, returned));
            }
            let returned: Vec<TypeId> = sides
                .iter()
                .filter_map(|(_, value)| value.map(|v| this.ty(v)))
                .collect();
            let ty = match (this.returns, returned.as_slice()) {
                (Some(declared), [_, ..]) => declared,
                (None, &[a, b]) => match this.join(this.unshaped(a), this.unshaped(b)) {
                    Some(ty) => ty,
                    None => return this.returns_differ(a, b, test),
                },
                (None, &[a]) => this.unshaped(a),
                _ => {
                    this.block = outer;
                    this.frame().raised = true;
                    return Ok(None);
                }
            };
            for (block, value) in sides {
                this.block = block;
                let value = match value {
                    Some(value) => value,
                    None => this.uninitialized(ty),
                };
                this.graph.add_result(block, value);
            }
            this.block = outer;
            Ok(Some(this.graph.add_output(node, ty)))
        })
    }

    /// Converts what is returned to the declared type.
    pub(super) fn returned(&mut self, value: ValueId, node: &impl Ranged) -> Result<ValueId> {
        let Some(wanted) = self.returns else { return Ok(value) };
        let value = self.convert(value, wanted, node);
        if !self.program.is_subtype(self.ty(value), wanted) {
            let message = format!(
                "Return value was annotated as having type {} but is actually of type {}",
                self.shown(wanted),
                self.shown(self.ty(value))
            );
            return self.error("type", message, node);
        }
        Ok(value)
    }

    fn returns_differ<T>(&self, before: TypeId, now: TypeId, node: &impl Ranged) -> Result<T> {
        let message = format!(
            "Previous return statement returned a value of type {} but this return statement returns a value of type {}",
            self.shown(before),
            self.shown(now)
        );
        self.error("type", message, node)
    }

    /// A function with returns in loops, or on some paths only: flags say whether and what was returned.
    pub(super) fn body_with_flags(&mut self, def: &'f StmtFunctionDef, items: &[Item<'f>]) -> Result<Option<ValueId>> {
        self.locate(def);
        let no = self.constant(Constant::Bool(false));
        let Some(ty) = self.returns else {
            self.define(RETURNED, no, None);
            self.define(LEFT, no, None);
            self.items(items)?;
            if !always_leaves(items) {
                let none = self.none();
                self.probe_return(none, def)?;
            }
            return Ok(None);
        };
        let nothing = if ty == types::NONE || (self.implicit_none && !always_leaves(items)) {
            self.none()
        } else {
            self.uninitialized(ty)
        };
        self.define(RETURNED, no, None);
        self.define(LEFT, no, None);
        self.define(RESULT, nothing, Some(ty));
        self.items(items)?;
        Ok(self.lookup_value(RESULT))
    }

    /// Joins the type of `value` with those of the `return`s before.
    fn probe_return(&mut self, value: ValueId, node: &impl Ranged) -> Result<()> {
        let ty = self.unshaped(self.ty(value));
        let joined = match self.probed.flatten() {
            None => ty,
            Some(before) => match self.join(before, ty) {
                Some(joined) => joined,
                None => return self.returns_differ(before, ty, node),
            },
        };
        self.probed = Some(Some(joined));
        Ok(())
    }

    /// Emits statements; those behind one that may leave run only when it did not.
    pub(super) fn items(&mut self, items: &[Item<'f>]) -> Result<()> {
        for (index, item) in items.iter().enumerate() {
            self.item(*item)?;
            let rest = items.get(index + 1..).unwrap_or_default();
            if !may_leave(&[*item]) || rest.is_empty() {
                continue;
            }
            if always_leaves(&[*item]) {
                return Ok(());
            }
            let Some(left) = self.lookup_value(LEFT) else { continue };
            return self.branches(
                Condition::plain(left),
                |_| Ok(()),
                |this| this.items(rest),
                item_range(rest),
            );
        }
        Ok(())
    }

    pub(super) fn item(&mut self, item: Item<'f>) -> Result<()> {
        match item {
            Item::Statement(statement) => self.deeper(statement, |this| this.statement(statement)),
            Item::Clauses([]) => Ok(()),
            Item::Clauses([clause, others @ ..]) => self.deeper(clause, |this| match &clause.test {
                Some(test) => this.if_statement(clause, test, &clause.body, others),
                None => this.suite(&clause.body),
            }),
        }
    }

    pub(super) fn suite(&mut self, body: &'f [Stmt]) -> Result<()> {
        let items: Vec<Item<'f>> = body.iter().map(Item::Statement).collect();
        self.items(&items)
    }

    pub(super) fn statement(&mut self, statement: &'f Stmt) -> Result<()> {
        match statement {
            Stmt::Pass(_) => Ok(()),
            Stmt::Expr(statement) => match &*statement.value {
                Expr::StringLiteral(_) => Ok(()),
                value => self.sugared(value, None).map(drop),
            },
            Stmt::Assign(assign) => {
                let value = self.sugared(&assign.value, None)?;
                // `a = b = x`: neither variable comes first.
                if let (Sugared::Value(value), true) = (&value, assign.targets.len() > 1) {
                    self.bound.insert(*value);
                }
                for target in &assign.targets {
                    self.assign_to(target, value.clone(), None)?;
                }
                Ok(())
            }
            Stmt::AnnAssign(assign) => {
                let ty = self.program.annotation(self.file, &assign.annotation)?;
                match &assign.value {
                    Some(value) => {
                        let value = self.sugared(value, Some(ty))?;
                        self.assign_to(&assign.target, value, Some(ty))
                    }
                    None => self.error(
                        "annotation",
                        "annotated assignments without assigned value aren't supported",
                        statement,
                    ),
                }
            }
            Stmt::AugAssign(assign) => self.augmented(assign),
            Stmt::If(statement) => self.if_statement(
                statement,
                &statement.test,
                &statement.body,
                &statement.elif_else_clauses,
            ),
            Stmt::While(statement) => {
                if !statement.orelse.is_empty() {
                    return self.error("statement", "else branches of while loops aren't supported", statement);
                }
                self.loop_statement(None, None, Some(&statement.test), &statement.body, statement)
            }
            Stmt::For(statement) => {
                if !statement.orelse.is_empty() {
                    return self.error("statement", "else branches of for loops aren't supported", statement);
                }
                self.for_statement(statement)
            }
            Stmt::Return(statement) => {
                let value = match &statement.value {
                    Some(value) => self.expr(value, self.returns)?,
                    None => self.none(),
                };
                let value = self.returned(value, statement)?;
                self.locate(statement);
                let yes = self.constant(Constant::Bool(true));
                if self.probed.is_some() {
                    self.probe_return(value, statement)?;
                } else {
                    self.define(RESULT, value, self.returns);
                }
                self.define(RETURNED, yes, None);
                self.define(LEFT, yes, None);
                Ok(())
            }
            Stmt::Break(_) | Stmt::Continue(_) => {
                if self.lookup(BROKE).is_none() {
                    let what = if statement.is_break_stmt() { "Break" } else { "Continue" };
                    let message = match what {
                        "Break" => "'break' outside loop",
                        _ => "'continue' not properly in loop",
                    };
                    return self.error("statement", message, statement);
                }
                self.locate(statement);
                let yes = self.constant(Constant::Bool(true));
                if matches!(statement, Stmt::Break(_)) {
                    self.define(BROKE, yes, None);
                }
                self.define(LEFT, yes, None);
                Ok(())
            }
            Stmt::Raise(raise) => self.raise(raise),
            Stmt::Assert(assert) => self.assert(assert),
            Stmt::Delete(delete) => {
                let target = |this: &mut Self, target| this.delete(target);
                delete.targets.iter().try_for_each(|t| target(self, t))
            }
            Stmt::With(with) => self.with(with),
            Stmt::FunctionDef(def) if !self.program.by_hand() && !def.is_async => {
                let name = def.name.to_string();
                self.frame().variables.insert(
                    name,
                    Variable {
                        value: Sugared::Closure(def),
                        declared: None,
                    },
                );
                Ok(())
            }
            other => self.error("statement", format!("{} aren't supported", unsupported(other)), other),
        }
    }

    pub(super) fn raise(&mut self, raise: &'f StmtRaise) -> Result<()> {
        let (message, class) = match raise.exc.as_deref() {
            Some(Expr::Call(call)) => {
                let class = dotted(&call.func).unwrap_or_default();
                let message = match &*call.arguments.args {
                    [] => None,
                    [message, ..] => Some(self.expr(message, None)?),
                };
                (message, class)
            }
            Some(other) => (None, dotted(other).unwrap_or_default()),
            None => (None, String::new()),
        };
        self.locate(raise);
        let message = match message {
            Some(text) if self.ty(text) == types::STR => text,
            Some(other) => self.builtin(
                "aten::str",
                Arguments {
                    positional: vec![other],
                    ..Arguments::default()
                },
                raise,
            )?,
            None => self.constant(Constant::str("")),
        };
        let class = match class.as_str() {
            "" => self.none(),
            name if name.contains('.') => self.constant(Constant::str(name)),
            name => self.constant(Constant::str(format!("builtins.{name}"))),
        };
        self.node("prim::RaiseException", &[message, class], &[]);
        self.mark_raised();
        Ok(())
    }

    pub(super) fn assert(&mut self, assert: &'f StmtAssert) -> Result<()> {
        self.assertion(&assert.test, assert.msg.as_deref(), assert)
    }

    /// Raises unless `test` holds.
    pub(super) fn assertion(
        &mut self,
        test: &'f Expr,
        message: Option<&'f Expr>,
        assert: &'f impl Ranged,
    ) -> Result<()> {
        let condition = self.condition(test)?;
        self.branches(
            condition,
            |_| Ok(()),
            |this| {
                let text = match message {
                    Some(message) => this.expr(message, None)?,
                    None => this.constant(Constant::str("")),
                };
                this.locate(assert);
                let prefix = this.constant(Constant::str("AssertionError: "));
                let arguments = Arguments {
                    positional: vec![prefix, text],
                    ..Arguments::default()
                };
                let text = this.builtin("aten::add", arguments, assert)?;
                let class = this.none();
                this.node("prim::RaiseException", &[text, class], &[]);
                this.mark_raised();
                Ok(())
            },
            assert.range(),
        )
    }
}

/// What PyTorch calls a statement that it does not take.
fn unsupported(statement: &Stmt) -> &'static str {
    match statement {
        Stmt::FunctionDef(def) if def.is_async => "async function definitions",
        Stmt::FunctionDef(_) => "function definitions",
        Stmt::ClassDef(_) => "class definitions",
        Stmt::Try(_) => "try blocks",
        Stmt::Import(_) | Stmt::ImportFrom(_) => "import statements",
        Stmt::Global(_) => "global variables",
        Stmt::Nonlocal(_) => "nonlocal variables",
        Stmt::Match(_) => "Match",
        Stmt::TypeAlias(_) => "TypeAlias",
        _ => "such statements",
    }
}
