//! Arguments of recorded calls, and results of traced functions, as values of the graph.

use super::Arg;
use super::outputs::Outputs;
use super::recorder::Recorder;
use crate::error::Result;
use crate::source_trace::operands::wrapped_number;
use frazil_ir::{Graph, SourceRange, TypeId, TypeKind, ValueId, symbols, types};
use frazil_runtime::number::NumberKind;
use frazil_runtime::value::TensorCell;
use frazil_runtime::{Operator, Registry, Value};
use std::panic::Location;
use std::sync::Arc;

impl Recorder {
    /// Finishes the graph with these results.
    pub fn finish(&mut self, outputs: &Outputs) -> Result<Graph> {
        let result = self.output(outputs);
        let root = self.graph.root();
        self.graph.set_results(root, &[result]);
        match self.failure.take() {
            Some(error) => Err(error.into()),
            None => Ok(self.graph.clone()),
        }
    }

    fn output(&mut self, outputs: &Outputs) -> ValueId {
        match outputs {
            Outputs::Tensor(var) => self.tensor(var.cell(), None),
            Outputs::Tuple(items) => {
                let items: Vec<_> = items.iter().map(|item| self.output(item)).collect();
                self.builder(None).tuple(&items)
            }
            Outputs::List(items) => {
                let items: Vec<_> = items.iter().map(|item| self.output(item)).collect();
                let element = items.first().map_or(types::TENSOR, |&item| self.graph.ty(item));
                let plain = if self.ctx.is_tensor(element) {
                    types::TENSOR
                } else {
                    element
                };
                self.builder(None).list(plain, &items)
            }
            Outputs::Dict(entries) => {
                let mut operands = Vec::new();
                for (key, item) in entries {
                    operands.push(self.builder(None).constant(key.as_str()));
                    operands.push(self.output(item));
                }
                let ty = self.ctx.dict_of(types::STR, types::TENSOR);
                self.builder(None).op(symbols::PRIM_DICT_CONSTRUCT, &operands, ty)
            }
        }
    }

    /// Returns the operands of a call that is about to run: all arguments of the schema. `registry` has the operators that convert tensors to numbers.
    pub fn operands(
        &mut self,
        registry: &Registry,
        operator: &Operator,
        given: &[Option<Arg<'_>>],
        values: &[Value],
        place: &Location<'_>,
    ) -> Result<Vec<ValueId>> {
        let range = self.range(place);
        let schema = Arc::clone(operator.schema());
        let wrapped = wrapped_number(operator, values);
        let mut operands = Vec::new();
        for (i, formal) in schema.arguments.iter().enumerate() {
            let value = values.get(i).unwrap_or(&Value::None);
            operands.push(match (&wrapped, i) {
                (Some(number), 1) => self.tensor(&TensorCell::new(number.clone()), range),
                _ => self.operand(registry, formal.ty, given.get(i).and_then(Option::as_ref), value, range),
            });
        }
        if self.force_outplace {
            self.warn_of_shared_write(values, schema.name, place);
        }
        match self.failure.take() {
            Some(error) => Err(error.into()),
            None => Ok(operands),
        }
    }

    fn operand(
        &mut self,
        registry: &Registry,
        ty: TypeId,
        given: Option<&Arg<'_>>,
        value: &Value,
        range: Option<SourceRange>,
    ) -> ValueId {
        match (given, value) {
            (Some(_), Value::Tensor(cell)) => self.tensor(cell, range),
            (Some(Arg::List(items)), Value::List(list)) => {
                let pairs: Vec<_> = items.iter().zip(list.items()).collect();
                let items: Vec<_> = pairs
                    .into_iter()
                    .map(|(arg, v)| self.operand(registry, list.element, Some(arg), &v, range))
                    .collect();
                self.builder(None).list(list.element, &items)
            }
            (_, Value::List(list)) => {
                let items = list.items();
                let items: Vec<_> = items
                    .iter()
                    .map(|v| self.operand(registry, list.element, given, v, range))
                    .collect();
                self.builder(None).list(list.element, &items)
            }
            (Some(arg), number) => {
                let Some(tensor) = arg.as_cell().and_then(|cell| self.known(cell)) else {
                    return self.plain(number, range);
                };
                // PyTorch records the conversions of `int(x)`, `float(x)` and `bool(x)`, or an implicit one where the parameter accepts any number.
                let (kind, ty) = match number {
                    Value::Int(_) if !self.is_number(ty) => (Some(NumberKind::Int), types::INT),
                    Value::Float(_) if !self.is_number(ty) => (Some(NumberKind::Float), types::FLOAT),
                    Value::Bool(_) if !self.is_number(ty) => (Some(NumberKind::Bool), types::BOOL),
                    _ => (None, types::NUMBER),
                };
                let Some(conversion) = registry.number_read(kind, kind.is_none()) else {
                    return self.plain(number, range);
                };
                let conversion = self.ctx.symbol(conversion);
                self.builder(None).op(conversion, &[tensor], ty)
            }
            _ => self.plain(value, range),
        }
    }

    fn is_number(&self, ty: TypeId) -> bool {
        match self.ctx.type_kind(ty) {
            TypeKind::Number => true,
            TypeKind::Optional(element) => self.is_number(element),
            _ => false,
        }
    }
}
