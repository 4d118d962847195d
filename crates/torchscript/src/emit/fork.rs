//! `fork(f, ...)` and `awaitable(f, ...)`: a call in a separate graph, with captured values as inputs.

use std::sync::Arc;

use frazil_ir::{AttributeValue, TypeId, TypeKind, ValueId, symbols};
use ruff_python_ast::{Expr, ExprCall, Stmt, StmtFunctionDef};

use super::Emitter;
use super::matching::Arguments;
use super::sugared::Sugared;
use crate::error::Result;
use crate::names::Annotations;

impl<'f> Emitter<'_, 'f> {
    /// Emits a node `kind` that executes the call of `target` later. The call is in a separate graph, with captured values as inputs. `promise` computes the
    /// type of the node's output from the type of the result.
    pub(super) fn fork(
        &mut self,
        kind: &str,
        promise: fn(TypeId) -> TypeKind,
        target: &'f Expr,
        rest: &'f [Expr],
        call: &'f ExprCall,
    ) -> Result<ValueId> {
        let callee = self.sugared(target, None)?;
        let (graph, captured, ty) = match callee {
            Sugared::Closure(def) if rest.is_empty() && call.arguments.keywords.is_empty() => self.closure(def)?,
            Sugared::Closure(_) => return self.error("call", "a nested function is forked without arguments", call),
            callee => {
                let arguments = self.fork_arguments(rest, call)?;
                self.forked_call(callee, arguments, call)?
            }
        };
        self.locate(call);
        let future = self.names.ctx().type_of_kind(promise(ty));
        let node = self.node(kind, &captured, &[]);
        self.graph
            .set_attribute(node, symbols::ATTR_SUBGRAPH, AttributeValue::Graph(Arc::new(graph)));
        Ok(self.graph.add_output(node, future))
    }

    pub(super) fn fork_arguments(&mut self, rest: &'f [Expr], call: &'f ExprCall) -> Result<Arguments> {
        let mut arguments = Arguments::default();
        for argument in rest {
            arguments.positional.push(self.expr(argument, None)?);
        }
        for keyword in &call.arguments.keywords {
            let value = self.expr(&keyword.value, None)?;
            if let Some(name) = &keyword.arg {
                arguments.keywords.push((self.names.ctx().symbol(name), value));
            }
        }
        Ok(arguments)
    }

    /// Returns the graph of a nested function: the variables that it reads become inputs, in the order in which it
    /// reads them.
    pub(super) fn closure(&mut self, def: &'f StmtFunctionDef) -> Result<(frazil_ir::Graph, Vec<ValueId>, TypeId)> {
        if def.parameters.iter().next().is_some() {
            return self.error("call", "a nested function that is forked takes no arguments", def);
        }
        let mut names = Vec::new();
        def.body.iter().for_each(|statement| read_names(statement, &mut names));
        let returns = match &def.returns {
            Some(annotation) => Some(self.names.annotation(self.file, annotation)?),
            None => None,
        };
        let mut captured = Vec::new();
        let mut inherited = Vec::new();
        for name in names {
            let Some(variable) = self.lookup(&name).cloned() else {
                continue;
            };
            if let Sugared::Value(value) = variable.value {
                captured.push(value);
                inherited.push((name, Some(self.ty(value)), variable));
            } else {
                inherited.push((name, None, variable));
            }
        }
        let mut inner = Emitter::new(self.names, self.file, returns);
        for (name, ty, variable) in inherited {
            match ty {
                Some(ty) => {
                    let input = inner.graph.add_input(ty);
                    inner.graph.name_value(input, &name);
                    inner.define(&name, input, None);
                }
                None => {
                    inner.frame().variables.insert(name, variable);
                }
            }
        }
        let (graph, ty) = inner.body(def)?;
        Ok((graph, captured, ty))
    }

    /// Returns a graph that calls `callee` with the graph's inputs, as the body of a fork.
    pub(super) fn forked_call(
        &mut self,
        callee: Sugared<'f>,
        arguments: Arguments,
        call: &'f ExprCall,
    ) -> Result<(frazil_ir::Graph, Vec<ValueId>, TypeId)> {
        let mut captured: Vec<ValueId> = Vec::new();
        if let Sugared::Method(object, _) | Sugared::Value(object) = &callee {
            captured.push(*object);
        }
        let has_object = !captured.is_empty();
        captured.extend(arguments.positional.iter().copied());
        captured.extend(arguments.keywords.iter().map(|(_, value)| *value));
        let types: Vec<TypeId> = captured.iter().map(|&value| self.ty(value)).collect();
        let mut inner = Emitter::new(self.names, self.file, None);
        let inputs: Vec<ValueId> = types.iter().map(|&ty| inner.graph.add_input(ty)).collect();
        let mut rest = inputs.iter().copied();
        let callee = match callee {
            Sugared::Method(_, name) => rest.next().map(|object| Sugared::Method(object, name)),
            Sugared::Value(_) => rest.next().map(Sugared::Value),
            other if !has_object => Some(other),
            _ => None,
        };
        let Some(callee) = callee else {
            return inner.error("call", "this cannot be forked", call);
        };
        let positional: Vec<ValueId> = rest.by_ref().take(arguments.positional.len()).collect();
        let keywords = arguments.keywords.iter().map(|(name, _)| *name).zip(rest).collect();
        let result = inner.call_sugared(
            callee,
            Arguments {
                object: None,
                positional,
                keywords,
            },
            call,
        )?;
        let result = inner.value(result, call)?;
        let ty = inner.ty(result);
        let root = inner.graph.root();
        inner.graph.add_result(root, result);
        Ok((inner.graph, captured, ty))
    }
}

/// Collects the names that a statement reads, in order of their first occurrence, each once.
fn read_names(statement: &Stmt, names: &mut Vec<String>) {
    use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
    struct Names<'n>(&'n mut Vec<String>);
    impl<'a> Visitor<'a> for Names<'_> {
        fn visit_stmt(&mut self, statement: &'a Stmt) {
            walk_stmt(self, statement);
        }
        fn visit_expr(&mut self, expr: &'a Expr) {
            if let Expr::Name(name) = expr
                && !self.0.iter().any(|known| known == name.id.as_str())
            {
                self.0.push(name.id.to_string());
            }
            walk_expr(self, expr);
        }
    }
    Names(names).visit_stmt(statement);
}
