//! Compilation of `with` statements.

use frazil_ir::{TypeKind, ValueId, types};
use ruff_python_ast::{StmtWith, WithItem};
use ruff_text_size::Ranged;

use super::Emitter;
use super::sugared::Sugared;
use crate::error::Result;

impl<'f> Emitter<'_, 'f> {
    /// Emits a `with` statement. Objects are entered in order and left in reverse order, also when the body returns.
    pub(super) fn with(&mut self, with: &'f StmtWith) -> Result<()> {
        if with.is_async {
            return self.error("statement", "async with statements aren't supported", with);
        }
        let mut entered = Vec::with_capacity(with.items.len());
        for item in &with.items {
            entered.push(self.enter(item)?);
        }
        self.suite(&with.body)?;
        self.locate(with);
        for object in entered.into_iter().rev() {
            // PyTorch leaves the output's type at its default.
            self.node("prim::Exit", &[object], &[types::TENSOR]);
        }
        Ok(())
    }

    fn enter(&mut self, item: &'f WithItem) -> Result<ValueId> {
        let node = &item.context_expr;
        let object = self.expr(node, None)?;
        let TypeKind::Class(class) = self.kind_of(object) else {
            return self.error("with", "With item expression must return an object", node);
        };
        let [enter, exit] = ["__enter__", "__exit__"].map(|name| self.names.ctx().symbol(name));
        let methods = [enter, exit].map(|name| self.names.unit().method(class, name));
        let [Some(enter), Some(exit)] = methods else {
            let message = "Object returned by with item expression does not define __enter__ and __exit__ methods";
            return self.error("with", message, node);
        };
        let enter = self.names.schema_of(enter, self.file, node.range())?;
        if enter.arguments.len() != 1 {
            return self.error(
                "with",
                "__enter__ must have only one argument and one return value",
                node,
            );
        }
        let exit = self.names.schema_of(exit, self.file, node.range())?;
        if exit.arguments.len() != 4 {
            return self.error("with", "__exit__ must have four arguments", node);
        }
        if let Some(at) = exit
            .arguments
            .iter()
            .skip(1)
            .position(|argument| argument.ty != types::ANY)
        {
            let message = format!(
                "argument {} of __exit__ must have Any type; TorchScript does not support passing them",
                at + 1
            );
            return self.error("with", message, node);
        }
        self.locate(node);
        let ty = enter.returns.first().map_or(types::NONE, |result| result.ty);
        let value = self.op("prim::Enter", &[object], ty);
        if let Some(target) = &item.optional_vars {
            self.assign_to(target, Sugared::Value(value), None)?;
        }
        Ok(object)
    }
}
