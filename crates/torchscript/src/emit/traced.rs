//! Compilation of calls in functions with Python's rules, whose operations are traced.

use std::sync::Arc;

use frazil_ir::arguments::{Assignment, AssignmentError};
use frazil_ir::{Constant, TypeKind, ValueId, symbols, types};
use ruff_text_size::Ranged;

use super::Emitter;
use super::matching::Arguments;
use super::sugared::Sugared;
use crate::error::Result;
use crate::source::parameters::{PythonParameter, assignment_message};
use crate::source::{DefPath, SourceFile};

impl<'f> Emitter<'_, 'f> {
    /// Expands a list of integers into separate integer arguments, because operators accept sizes as a list, too.
    pub(super) fn spread_list(&mut self, list: ValueId, arguments: &mut Arguments, node: &impl Ranged) -> Result<bool> {
        let ctx = Arc::clone(self.names.ctx());
        if self.kind_of(list) != TypeKind::List(types::INT) {
            return Ok(false);
        }
        let before = std::mem::take(&mut arguments.positional);
        let first = match before.as_slice() {
            [] => {
                arguments.positional.push(list);
                return Ok(true);
            }
            [one] if self.kind_of(*one) == TypeKind::List(types::INT) => *one,
            many if many.iter().all(|&value| self.kind_of(value) == TypeKind::Int) => {
                self.locate(node);
                self.op("prim::ListConstruct", many, ctx.list_of(types::INT))
            }
            _ => {
                arguments.positional = before;
                return Ok(false);
            }
        };
        let all = self.builtin("aten::add", Arguments::of(&[first, list]), node)?;
        arguments.positional.push(all);
        Ok(true)
    }

    /// Calls a function or method as Python does during tracing: its parameters have the types of the arguments.
    pub(super) fn call_python(
        &mut self,
        file: &Arc<SourceFile>,
        path: DefPath,
        this: Option<ValueId>,
        arguments: &Arguments,
        node: &impl Ranged,
    ) -> Result<Sugared<'f>> {
        let Some(def) = path.def(file) else {
            return self.error("call", "this cannot be called", node);
        };
        let star = def.parameters.vararg.as_ref().or(def.parameters.kwarg.as_ref());
        if star.is_some() {
            return self.error(
                "call",
                format!("tracing `{}`, which takes any number of arguments", def.name),
                node,
            );
        }
        let ctx = Arc::clone(self.names.ctx());
        let keywords: Vec<(&str, ValueId)> = arguments.keywords.iter().map(|&(k, v)| (ctx.name(k), v)).collect();
        let fault = |error: AssignmentError, parameter: &str| {
            let argument = error.keyword(&keywords).copied().unwrap_or(parameter);
            self.fault("call", assignment_message(&def.name, error, argument), node)
        };
        let parameters: Vec<PythonParameter<'_>> = PythonParameter::all(&def.parameters).collect();
        let mut given = Vec::new();
        let mut inputs: Vec<ValueId> = this.into_iter().collect();
        let mut call = Assignment::new(arguments.positional.len(), &keywords);
        for parameter in parameters.iter().skip(inputs.len()) {
            let assigned = call.next(parameter).map_err(|error| fault(error, parameter.name()))?;
            if let Some(&value) = assigned.passed(&arguments.positional, &keywords) {
                given.push((ctx.symbol(parameter.name()), self.unshaped(self.ty(value))));
                inputs.push(value);
            }
        }
        call.finish(&parameters).map_err(|error| fault(error, ""))?;
        let this = this.map(|this| self.ty(this));
        let id = self
            .names
            .definitions_mut()
            .define_variant(file, path, symbols::EMPTY, this, given)?;
        let schema = self.names.schema_of(id, self.file, node.range())?;
        self.locate(node);
        let output = schema.returns.first().map_or(types::NONE, |result| result.ty);
        let ty = ctx.type_of_kind(TypeKind::Function(schema.name));
        let function = self.builder().constant_typed(Constant::Function(schema.name), ty);
        inputs.insert(0, function);
        Ok(Sugared::Value(self.op("prim::CallFunction", &inputs, output)))
    }
}
