//! Compilation of statements.

use frazil_ir::{Constant, ValueId, types};
use ruff_python_ast::{ElifElseClause, Expr, Stmt, StmtAssert, StmtRaise};
use ruff_text_size::Ranged;

use super::exits::{CONTINUATION, RETURN};
use super::matching::Arguments;
use super::sugared::Sugared;
use super::{Emitter, Loop, Variable};
use crate::error::Result;
use crate::names::Annotations;
use crate::source::dotted;

impl<'f> Emitter<'_, 'f> {
    /// Emits a `return` of the value `value`.
    pub(super) fn leave_with(&mut self, value: ValueId, node: &impl Ranged) -> Result<()> {
        let mut value = self.returned(value, node)?;
        let ty = self.unshaped(self.ty(value));
        let joined = match (self.returns, self.returned) {
            (Some(declared), _) => declared,
            (None, None) => ty,
            (None, Some(before)) => match self.join(before, ty) {
                Some(joined) => joined,
                None => {
                    let message = format!(
                        "Previous return statement returned a value of type {} but this return statement returns a value of type {}",
                        self.shown(before),
                        self.shown(ty)
                    );
                    return self.error("type", message, node);
                }
            },
        };
        self.returned = Some(joined);
        self.locate(node);
        if joined == types::ANY && ty != types::ANY {
            value = self.op("prim::unchecked_cast", &[value], types::ANY);
        }
        self.node(RETURN, &[value], &[]);
        self.mark_exited();
        Ok(())
    }

    /// Converts a returned value to the return type of the function.
    pub(super) fn returned(&mut self, value: ValueId, node: &impl Ranged) -> Result<ValueId> {
        let Some(wanted) = self.returns else { return Ok(value) };
        let value = self.convert(value, wanted, node);
        if !self.names.definitions().is_subtype(self.ty(value), wanted) {
            let message = format!(
                "Return value was annotated as having type {} but is actually of type {}",
                self.shown(wanted),
                self.shown_type_of(value)
            );
            return self.error("type", message, node);
        }
        Ok(value)
    }

    /// Refuses an annotated assignment to an attribute of `self` outside of `__init__`.
    fn check_annotated(&self, target: &Expr, node: &impl Ranged) -> Result<()> {
        let is_own = |target: &Expr| {
            let object = target.as_attribute_expr().and_then(|a| a.value.as_name_expr());
            object.is_some_and(|name| name.id.as_str() == "self")
        };
        if !self.file.rules.is_written() || !is_own(target) || self.function.as_str() == "__init__" {
            return Ok(());
        }
        let message = format!(
            "Type annotations on instance attributes must be declared in __init__, not '{}'",
            self.function
        );
        self.error("annotation", message, node)
    }

    /// Emits the `elif`s and `else` of an `if`.
    pub(super) fn clauses(&mut self, clauses: &'f [ElifElseClause]) -> Result<()> {
        let [clause, others @ ..] = clauses else { return Ok(()) };
        self.deeper(clause, |this| match &clause.test {
            Some(test) => this.if_statement(clause, test, &clause.body, others),
            None => this.suite(&clause.body),
        })
    }

    /// Emits the statements of `body` up to the first one that exits; those after it are unreachable.
    pub(super) fn suite(&mut self, body: &'f [Stmt]) -> Result<()> {
        for statement in body {
            self.deeper(statement, |this| this.statement(statement))?;
            if self.frame().exited {
                break;
            }
        }
        Ok(())
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
                self.check_annotated(&assign.target, statement)?;
                let ty = self.names.annotation(self.file, &assign.annotation)?;
                match &assign.value {
                    Some(value) => {
                        // The parts of a tuple stand for themselves.
                        let hint = Some(ty).filter(|_| !(value.is_tuple_expr() && self.file.rules.is_written()));
                        let value = self.sugared(value, hint)?;
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
                self.leave_with(value, statement)
            }
            Stmt::Break(_) => self.continuation("break", statement),
            Stmt::Continue(_) => self.continuation("continue", statement),
            Stmt::Raise(raise) => self.raise(raise),
            Stmt::Assert(assert) => self.assert(assert),
            Stmt::Delete(delete) => {
                let target = |this: &mut Self, target| this.delete(target);
                delete.targets.iter().try_for_each(|t| target(self, t))
            }
            Stmt::With(with) => self.with(with),
            Stmt::FunctionDef(def) if !self.file.rules.is_written() && !def.is_async => {
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

    /// Emits `break` or `continue`, with the values that the loop's body would return at its end.
    fn continuation(&mut self, what: &str, statement: &Stmt) -> Result<()> {
        let (carried, test, always) = match self.loops.last() {
            None => return self.error("statement", format!("SyntaxError: '{what}' outside loop"), statement),
            Some(Loop::Unrolled) => {
                let message = "Because we emit iteration over modulelists or tuples as unrolled loops, we do not support break or continue inside the body of these loops";
                return self.error("statement", message, statement);
            }
            Some(Loop::Node { carried, test, always }) => (carried.clone(), *test, *always),
        };
        self.locate(statement);
        let go_on = match (what, test) {
            ("break", _) => self.constant(Constant::Bool(false)),
            (_, Some(test)) => self.condition(test)?.value,
            (_, None) => always,
        };
        self.locate(statement);
        let now = carried
            .iter()
            .map(|(name, initial)| self.lookup_value(name).unwrap_or(*initial));
        let operands: Vec<ValueId> = std::iter::once(go_on).chain(now).collect();
        self.node(CONTINUATION, &operands, &[]);
        Ok(())
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
            // PyTorch forgets the class of what is raised without a call.
            Some(_) => (None, String::new()),
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
            // A class of the text lives where Python runs it.
            name if self
                .file
                .definitions(name)
                .iter()
                .any(|&number| matches!(self.file.statement(number), Some(Stmt::ClassDef(_)))) =>
            {
                self.constant(Constant::str(format!("__main__.{name}")))
            }
            name => self.constant(Constant::str(format!("builtins.{name}"))),
        };
        self.node("prim::RaiseException", &[message, class], &[]);
        self.mark_exited();
        Ok(())
    }

    pub(super) fn assert(&mut self, assert: &'f StmtAssert) -> Result<()> {
        self.assertion(&assert.test, assert.msg.as_deref(), assert)
    }

    /// Emits an assertion, which raises an exception unless `test` is true.
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
                this.mark_exited();
                Ok(())
            },
            assert.range(),
        )
    }
}

/// Returns PyTorch's name of a statement that TorchScript does not support.
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
