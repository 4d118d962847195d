//! Compilation of `if` and loops: blocks, and the variables that enter and leave them.

use std::collections::BTreeSet;

use frazil_ir::{Constant, TypeId, TypeKind, ValueId, types};
use ruff_python_ast::{ElifElseClause, Expr, Stmt};
use ruff_text_size::Ranged;

use super::assigned::{assigned_names, target_names};
use super::sugared::{Iterable, Sugared};
use super::{Condition, Emitter, Frame, Loop, is_meaningful};
use crate::error::Result;
use crate::names::joined_or_union;

impl<'f> Emitter<'_, 'f> {
    pub(super) fn if_statement(
        &mut self,
        statement: &impl Ranged,
        test: &'f Expr,
        body: &'f [Stmt],
        clauses: &'f [ElifElseClause],
    ) -> Result<()> {
        let condition = self.condition(test)?;
        if let Some(known) = condition.known {
            self.refine(if known {
                &condition.when_true
            } else {
                &condition.when_false
            });
            return if known { self.suite(body) } else { self.clauses(clauses) };
        }
        self.branches(
            condition,
            |this| this.suite(body),
            |this| this.clauses(clauses),
            statement.range(),
        )
    }

    /// Narrows variables, in the current frame, to the types that a condition implies, by `prim::unchecked_cast`.
    pub(super) fn refine(&mut self, refinements: &[(String, TypeId)]) {
        for (name, ty) in refinements {
            // People's code is cast even to what it was; archives have the casts written out.
            if let Some(value) = self.lookup_value(name)
                && (self.file.rules.is_written() || self.ty(value) != *ty)
            {
                let narrowed = self.op("prim::unchecked_cast", &[value], *ty);
                self.suggest_name(narrowed, name);
                // The declared type stays with the outer variable; here it is the narrow one.
                self.define(name, narrowed, None);
            }
        }
    }

    /// Emits a `prim::If`, with an output for each variable that both sides define and at least one side assigns.
    pub(super) fn branches(
        &mut self,
        condition: Condition,
        then: impl FnOnce(&mut Self) -> Result<()>,
        otherwise: impl FnOnce(&mut Self) -> Result<()>,
        range: impl Ranged,
    ) -> Result<()> {
        self.locate(&range);
        let node = self.node("prim::If", &[condition.value], &[]);
        let outer = self.block;
        let then_block = self.graph.add_block(node);
        let else_block = self.graph.add_block(node);
        let enter = |this: &mut Self, block, refinements: &[(String, TypeId)]| {
            this.block = block;
            this.frames.push(Frame::default());
            this.refine(refinements);
        };
        enter(self, then_block, &condition.when_true);
        then(self)?;
        let then_frame = self.frames.pop().unwrap_or_default();
        enter(self, else_block, &condition.when_false);
        otherwise(self)?;
        let else_frame = self.frames.pop().unwrap_or_default();
        self.block = outer;
        if then_frame.exited && else_frame.exited {
            self.mark_exited();
            return Ok(());
        }
        let names: BTreeSet<&String> = then_frame.variables.keys().chain(else_frame.variables.keys()).collect();
        for name in names {
            let sides = [(&then_frame, then_block), (&else_frame, else_block)];
            let found = sides.map(|(frame, _)| frame.variables.get(name).or_else(|| self.lookup(name)).cloned());
            let known = found.each_ref().map(|variable| {
                variable.as_ref().and_then(|v| match v.value {
                    Sugared::Value(value) => self.variable_type(v).map(|ty| (value, ty)),
                    _ => None,
                })
            });
            // A side that exits does not count.
            let (known, types, declared) = match known {
                [Some(a), _] if else_frame.exited => ([Some(a), None], [a.1, a.1], None),
                [_, Some(b)] if then_frame.exited => ([None, Some(b)], [b.1, b.1], None),
                [Some(a), Some(b)] => {
                    let declared = found.each_ref().map(|v| v.as_ref().and_then(|v| v.declared));
                    (known, [a.1, b.1], declared[0].or(declared[1]))
                }
                [Some(_), None] | [None, Some(_)] => {
                    let side = if known[0].is_none() { "true" } else { "false" };
                    let message = format!("{name} is not defined in the {side} branch");
                    self.frame().unjoined.insert(name.clone(), message);
                    continue;
                }
                _ => continue,
            };
            // A variable that may hold several types may get a different one on each side.
            let before = self.lookup(name).and_then(|variable| self.variable_type(variable));
            let is_open = before.is_some_and(|ty| {
                let kind = self.names.ctx().type_kind(ty);
                matches!(kind, TypeKind::Union(_) | TypeKind::Optional(_) | TypeKind::Number)
            });
            let joined = self.join(types[0], types[1]);
            let Some(ty) = joined.or_else(|| is_open.then(|| self.names.definitions().union_of(&types))) else {
                let message = format!(
                    "Type mismatch: {name} is set to type {} in the true branch and type {} in the false branch",
                    self.shown(types[0]),
                    self.shown(types[1])
                );
                self.frame().variables.remove(name);
                self.frame().unjoined.insert(name.clone(), message);
                continue;
            };
            let mut results = Vec::with_capacity(2);
            for ((_, block), value) in sides.into_iter().zip(known) {
                let value = match value {
                    Some((value, _)) => self.held(value),
                    None => {
                        self.block = block;
                        self.uninitialized(ty)
                    }
                };
                self.graph.add_result(block, value);
                results.push(self.ty(value));
            }
            self.block = outer;
            // What the sides hold may be known better than the variable's type says.
            let held = match results.as_slice() {
                &[a, b] if self.file.rules.is_written() => joined_or_union(self.names.ctx(), a, b),
                _ => ty,
            };
            let held = self.unshaped(held);
            let mut output = self.graph.add_output(node, held);
            if is_meaningful(name) {
                self.graph.name_value(output, name);
            }
            if held != ty {
                output = self.read_as(output, ty);
            }
            self.define(name, output, declared);
        }
        Ok(())
    }

    pub(super) fn for_statement(&mut self, statement: &'f ruff_python_ast::StmtFor) -> Result<()> {
        let sugared = self.sugared(&statement.iter, None)?;
        let iterable = self.iterable(sugared, &*statement.iter)?;
        let Some(elements) = self.unrolled(&iterable, &*statement.iter)? else {
            return self.loop_statement(
                Some(&iterable),
                Some(&statement.target),
                None,
                &statement.body,
                statement,
            );
        };
        self.loops.push(Loop::Unrolled);
        for element in elements {
            self.assign_to(&statement.target, element, None)?;
            self.suite(&statement.body)?;
            if self.frame().exited {
                break;
            }
        }
        self.loops.pop();
        Ok(())
    }

    /// Emits `for` and `while` statements.
    pub(super) fn loop_statement(
        &mut self,
        iterable: Option<&Iterable<'f>>,
        target: Option<&'f Expr>,
        test: Option<&'f Expr>,
        body: &'f [Stmt],
        node: &impl Ranged,
    ) -> Result<()> {
        let mut assigned = BTreeSet::new();
        // PyTorch's loops carry what their bodies only narrow, too; its archives come from graphs where that was undone.
        assigned_names(body, self.file.rules.is_written(), &mut assigned);
        if let Some(target) = target {
            target_names(target, &mut assigned);
        }
        self.loop_with(iterable, target, test, assigned, node, |this, _| this.suite(body))
    }

    /// Emits a `prim::Loop` that carries the variables `assigned`.
    #[allow(clippy::too_many_arguments, reason = "the parts of a loop")]
    pub(super) fn loop_with(
        &mut self,
        iterable: Option<&Iterable<'f>>,
        target: Option<&'f Expr>,
        test: Option<&'f Expr>,
        assigned: BTreeSet<String>,
        node: &impl Ranged,
        body: impl FnOnce(&mut Self, Option<Sugared<'f>>) -> Result<()>,
    ) -> Result<()> {
        self.locate(node);
        let trip_count = match iterable {
            Some(iterable) => self.length(iterable, node)?,
            None => self.literal(Constant::Int(i64::MAX)),
        };
        let first = match test {
            Some(test) => self.condition(test)?.value,
            None => self.constant(Constant::Bool(true)),
        };
        let mut carried: Vec<(String, ValueId, Option<TypeId>, TypeId)> = Vec::new();
        for name in assigned {
            let Some(variable) = self.lookup(&name).cloned() else {
                continue;
            };
            if let (Sugared::Value(value), Some(ty)) = (&variable.value, self.variable_type(&variable)) {
                carried.push((name, *value, variable.declared, ty));
            }
        }
        self.locate(node);
        let loop_node = self.node("prim::Loop", &[trip_count, first], &[]);
        let outer = self.block;
        let block = self.graph.add_block(loop_node);
        let index = self.graph.add_parameter(block, types::INT);
        self.block = block;
        self.frames.push(Frame::default());
        for (name, initial, declared, ty) in &carried {
            self.graph.add_operand(loop_node, *initial);
            let parameter = self.graph.add_parameter(block, *ty);
            if is_meaningful(name) {
                self.graph.name_value(parameter, name);
            }
            self.define(name, parameter, *declared);
        }
        self.loops.push(Loop::Node {
            carried: carried
                .iter()
                .map(|(name, initial, ..)| (name.clone(), *initial))
                .collect(),
            test,
            always: first,
        });
        let mut element = None;
        if let Some(iterable) = iterable {
            element = Some(self.element(iterable, index, node)?);
        }
        if let Some(target) = target
            && let Some(element) = element.take()
        {
            self.assign_to(target, element, None)?;
        }
        body(self, element)?;
        self.loops.pop();
        let next = match test {
            Some(test) => self.condition(test)?.value,
            None => first,
        };
        let frame = self.frames.pop().unwrap_or_default();
        self.graph.add_result(block, next);
        self.block = outer;
        for (name, initial, declared, ty) in carried {
            let value = match frame.variables.get(&name).map(|variable| &variable.value) {
                Some(Sugared::Value(value)) => *value,
                _ => initial,
            };
            self.graph.add_result(block, value);
            let output = self.graph.add_output(loop_node, ty);
            if is_meaningful(&name) {
                self.graph.name_value(output, &name);
            }
            self.define(&name, output, declared);
        }
        Ok(())
    }
}
