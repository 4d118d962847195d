//! Compilation of comprehensions, and of calls that build containers from iterables.

use std::collections::BTreeSet;
use std::sync::Arc;

use frazil_ir::{TypeId, TypeKind, ValueId, types};
use ruff_python_ast::{Comprehension, Expr, ExprDictComp, ExprGenerator, ExprListComp};
use ruff_text_size::Ranged;

use super::Emitter;
use super::matching::{Arguments, unwrap_optional};
use super::sugared::Sugared;
use crate::error::Result;

impl<'f> Emitter<'_, 'f> {
    pub(super) fn comprehension(&mut self, comprehension: &'f ExprListComp, hint: Option<TypeId>) -> Result<ValueId> {
        let generator = self.generator(&comprehension.generators, comprehension)?;
        self.check_hint("List", hint, comprehension)?;
        let elt = &*comprehension.elt;
        self.collect(
            |this| this.sugared(&generator.iter, None),
            Some(&generator.target),
            comprehension,
            hint,
            |this, _, hint| this.expr(elt, hint),
        )
    }

    /// Returns the list for a generator expression as argument: `any(x > 1 for x in xs)`.
    pub(super) fn generated(&mut self, expr: &'f ExprGenerator) -> Result<ValueId> {
        let generator = self.generator(&expr.generators, expr)?;
        let elt = &*expr.elt;
        self.collect(
            |this| this.sugared(&generator.iter, None),
            Some(&generator.target),
            expr,
            None,
            |this, _, hint| this.expr(elt, hint),
        )
    }

    fn generator(&self, generators: &'f [Comprehension], node: &impl Ranged) -> Result<&'f Comprehension> {
        let [generator] = generators else {
            return self.error("expression", "Only a single generator is currently supported", node);
        };
        if !generator.ifs.is_empty() {
            return self.error("expression", "Comprehension ifs are not supported yet", node);
        }
        Ok(generator)
    }

    /// Emits `list(x)` for an iterable `source`.
    pub(super) fn list_of(&mut self, source: Sugared<'f>, hint: Option<TypeId>, node: &impl Ranged) -> Result<ValueId> {
        self.collect(
            |_| Ok(source),
            None,
            node,
            hint,
            |this, element, _| match element {
                Some(element) => this.value(element, node),
                None => this.error("value", "an element is missing", node),
            },
        )
    }

    /// Emits a list of the results of `element` for each item of `source`, which is assigned to `target` or passed to `element`. The list is created first.
    fn collect(
        &mut self,
        source: impl FnOnce(&mut Self) -> Result<Sugared<'f>>,
        target: Option<&'f Expr>,
        node: &impl Ranged,
        hint: Option<TypeId>,
        element: impl Fn(&mut Self, Option<Sugared<'f>>, Option<TypeId>) -> Result<ValueId>,
    ) -> Result<ValueId> {
        let ctx = Arc::clone(self.names.ctx());
        let hint = match hint.map(|ty| ctx.type_kind(unwrap_optional(&ctx, ty))) {
            Some(TypeKind::List(element)) => Some(element),
            _ => None,
        };
        self.locate(node);
        let list = self.builder().list(hint.unwrap_or(types::TENSOR), &[]);
        let mut element_type = hint;
        let source = source(self)?;
        let is_written = self.file.rules.is_written();
        self.each(source, target, node, |this, item| {
            let value = element(this, item, element_type.filter(|_| !is_written))?;
            if let Some(wanted) = hint {
                this.check_elements(&[value], wanted, node)?;
            }
            if element_type.is_none() {
                let ty = this.unshaped(this.ty(value));
                element_type = Some(ty);
                this.graph.set_type(list, this.names.ctx().list_of(ty));
            }
            this.builtin("aten::append", Arguments::of(&[list, value]), node)
                .map(drop)
        })?;
        Ok(list)
    }

    pub(super) fn dict_comprehension(
        &mut self,
        comprehension: &'f ExprDictComp,
        hint: Option<TypeId>,
    ) -> Result<ValueId> {
        let generator = self.generator(&comprehension.generators, comprehension)?;
        let source = self.sugared(&generator.iter, None)?;
        let Some(key) = comprehension.key.as_deref() else {
            return self.error(
                "expression",
                "Dict expansion (e.g. `{**dict}`) is not supported",
                comprehension,
            );
        };
        self.dict_of(source, Some(&generator.target), comprehension, hint, |this, _| {
            let key = this.expr(key, None)?;
            Ok((key, this.expr(&comprehension.value, None)?))
        })
    }

    /// Emits a dictionary of the key-value pairs that `pair` returns for each item of `source`.
    pub(super) fn dict_of(
        &mut self,
        source: Sugared<'f>,
        target: Option<&'f Expr>,
        node: &impl Ranged,
        hint: Option<TypeId>,
        pair: impl Fn(&mut Self, Option<Sugared<'f>>) -> Result<(ValueId, ValueId)>,
    ) -> Result<ValueId> {
        let ctx = Arc::clone(self.names.ctx());
        let hint = hint.filter(|&ty| matches!(ctx.type_kind(ty), TypeKind::Dict(..)));
        self.locate(node);
        let initial = hint.unwrap_or_else(|| ctx.dict_of(types::STR, types::TENSOR));
        let dict = self.op("prim::DictConstruct", &[], initial);
        let mut known = hint.is_some();
        self.each(source, target, node, |this, item| {
            let (key, value) = pair(this, item)?;
            if let Some(TypeKind::Dict(wanted_key, wanted_value)) = hint.map(|ty| ctx.type_kind(ty)) {
                for (found, wanted, what) in [(key, wanted_key, "key"), (value, wanted_value, "value")] {
                    if !this.names.definitions().is_subtype(this.ty(found), wanted) {
                        let message = format!(
                            "Dict type annotation `{}` did not match the type of an actual {what} type `{}`",
                            this.shown(initial),
                            this.shown(this.ty(found))
                        );
                        return this.error("type", message, node);
                    }
                }
            }
            if !known {
                known = true;
                let (key, value) = (this.unshaped(this.ty(key)), this.unshaped(this.ty(value)));
                this.graph.set_type(dict, ctx.dict_of(key, value));
            }
            this.builtin("aten::_set_item", Arguments::of(&[dict, key, value]), node)
                .map(drop)
        })?;
        Ok(dict)
    }

    /// Runs `work` for each item of `source`, which is assigned to `target` or passed to `work`. Assigned variables are local to the loop.
    fn each(
        &mut self,
        source: Sugared<'f>,
        target: Option<&'f Expr>,
        node: &impl Ranged,
        mut work: impl FnMut(&mut Self, Option<Sugared<'f>>) -> Result<()>,
    ) -> Result<()> {
        let iterable = self.iterable(source, node)?;
        if let Some(items) = self.unrolled(&iterable, node)? {
            for item in items {
                self.frames.push(super::Frame::default());
                let done = match target {
                    Some(target) => self.assign_to(target, item, None).and_then(|()| work(self, None)),
                    None => work(self, Some(item)),
                };
                self.frames.pop();
                done?;
            }
            return Ok(());
        }
        self.loop_with(Some(&iterable), target, None, BTreeSet::new(), node, |this, item| {
            work(this, item)
        })
    }
}
