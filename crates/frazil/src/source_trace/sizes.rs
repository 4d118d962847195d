//! Integers computed from sizes of tensors, whose computation is a part of the traced graph.

use super::{Noted, Result, Tracing};
use frazil_ir::{Graph, NodeId, ValueId, symbols, types};
use frazil_runtime::Value;
use frazil_runtime::entry::NumberRule;
use frazil_runtime::value::ListValue;

impl Tracing<'_> {
    /// Returns the representations of integer results that are computed from sizes of tensors.
    pub(super) fn sizes(
        &mut self,
        graph: &Graph,
        node: NodeId,
        kind: &str,
        inputs: &[(Value, Noted)],
        results: &[Value],
    ) -> Result<Vec<Noted>> {
        let first = inputs.first();
        let element = |noted: &Noted, index: i64, length: usize| -> Noted {
            let index = if index < 0 { index + length as i64 } else { index };
            match (noted, usize::try_from(index)) {
                (Noted::Ints(all), Ok(index)) => match all.get(index) {
                    Some(&Some(value)) => Noted::Int(value),
                    _ => Noted::Constant,
                },
                _ => Noted::Constant,
            }
        };
        Ok(match (kind, first, results) {
            ("aten::size", Some((Value::Tensor(cell), _)), [Value::Int(_)]) => {
                let tensor = self.tensor(cell)?;
                let mut operands = vec![tensor];
                for (value, noted) in inputs.iter().skip(1) {
                    operands.push(self.noted(value, noted)?);
                }
                vec![Noted::Int(self.integer("aten::size", &operands))]
            }
            ("aten::size", Some((Value::Tensor(cell), _)), [Value::List(sizes)]) => {
                let tensor = self.tensor(cell)?;
                let mut all = Vec::new();
                for dim in 0..sizes.items().len() {
                    let dim = self.builder().constant(dim as i64);
                    all.push(Some(self.integer("aten::size", &[tensor, dim])));
                }
                vec![Noted::Ints(all)]
            }
            ("aten::numel", Some((Value::Tensor(cell), _)), [Value::Int(_)]) => {
                let tensor = self.tensor(cell)?;
                vec![Noted::Int(self.integer("aten::numel", &[tensor]))]
            }
            ("aten::__getitem__", Some((Value::List(list), noted)), [Value::Int(_)]) => match inputs.get(1) {
                Some(&(Value::Int(index), _)) => vec![element(noted, index, list.items().len())],
                _ => Vec::new(),
            },
            (_, Some((_, Noted::Ints(all))), _) if graph.kind(node) == symbols::PRIM_LIST_UNPACK => {
                let each = all.iter().map(|value| value.map_or(Noted::Constant, Noted::Int));
                each.collect()
            }
            _ if graph.kind(node) == symbols::PRIM_LIST_CONSTRUCT
                && inputs.iter().any(|(_, noted)| matches!(noted, Noted::Int(_))) =>
            {
                let all = inputs.iter().map(|(_, noted)| match noted {
                    Noted::Int(value) => Some(*value),
                    _ => None,
                });
                vec![Noted::Ints(all.collect())]
            }
            ("aten::add", Some((Value::List(left), before)), [Value::List(_)]) => {
                let Some((Value::List(right), after)) = inputs.get(1) else {
                    return Ok(Vec::new());
                };
                let parts = |noted: &Noted, length: usize| match noted {
                    Noted::Ints(all) => all.clone(),
                    _ => vec![None; length],
                };
                let mut all = parts(before, left.items().len());
                all.extend(parts(after, right.items().len()));
                vec![Noted::Ints(all)]
            }
            ("aten::slice", Some((Value::List(list), Noted::Ints(all))), [Value::List(_)]) => {
                // The positions show which elements were picked.
                let positions = ListValue::new(types::INT, (0..list.items().len() as i64).map(Value::Int).collect());
                let mut values: Vec<Value> = inputs.iter().map(|(value, _)| value.clone()).collect();
                if let Some(first) = values.first_mut() {
                    *first = Value::List(positions);
                }
                let found = self.run(graph, node, &values)?;
                let found = found.first().and_then(Value::items).unwrap_or_default();
                let all = found.iter().map(|position| match position {
                    Value::Int(at) => usize::try_from(*at).ok().and_then(|at| all.get(at).copied().flatten()),
                    _ => None,
                });
                vec![Noted::Ints(all.collect())]
            }
            (kind, _, [Value::Int(_)])
                if self.is_integer_arithmetic(kind)
                    && inputs.iter().all(|(value, _)| matches!(value, Value::Int(_)))
                    && inputs.iter().any(|(_, noted)| matches!(noted, Noted::Int(_))) =>
            {
                let mut operands = Vec::new();
                for (value, noted) in inputs {
                    operands.push(self.noted(value, noted)?);
                }
                vec![Noted::Int(self.integer(kind, &operands))]
            }
            _ => Vec::new(),
        })
    }

    /// Returns whether the operator `kind` on integers is recorded if its operands are computed from sizes.
    fn is_integer_arithmetic(&self, kind: &str) -> bool {
        let variant = self.registry.entry(kind).and_then(|e| e.traits().tensor_variant);
        variant.is_some_and(|v| matches!(v.rule, NumberRule::Arithmetic | NumberRule::Integers))
    }

    fn integer(&mut self, kind: &str, operands: &[ValueId]) -> ValueId {
        let kind = self.ctx.symbol(kind);
        self.builder().op(kind, operands, types::INT)
    }
}
