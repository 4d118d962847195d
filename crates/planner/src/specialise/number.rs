//! Scalars that are read from tensors, whose values are unknown when code is compiled.
//!
//! Such a scalar (`t.item()`, `int(t)`) is represented by a tensor without dimensions, in Python's precision: 64 bits. Arithmetic and comparisons of
//! scalars, and operators that accept a tensor in place of a scalar, use this tensor, so that the code serves all values. Lists and tuples contain
//! it like other values. All other uses need the value (a branch, a size): the segment ends there, as at any other operator whose result depends on
//! elements, and the value is known afterwards.
//!
//! Only segmented methods have such scalars, since their caller supplies the values.

use super::refusal::Refusal;
use super::state::{Number, Specialiser};
use crate::error::LowerError;
use frazil_ir::{DType, Graph, NodeId, TypeId, TypeKind, types};
use frazil_runtime::entry::{NumberRead, NumberRule, Role, TensorVariant};
use frazil_runtime::number::NumberKind;
use frazil_runtime::op::Operator;
use frazil_runtime::structured::{TensorId, TensorShape, ViewKind, ViewMap};
use frazil_runtime::value::{ListValue, TensorCell, Value};
use frazil_runtime::{Scalar, Tensor};
use frazil_tensor_ir::call::RuntimeCall;
use frazil_tensor_ir::spec::ResultSpec;

impl Specialiser<'_> {
    /// Registers a new scalar with the value in `cell`.
    pub(super) fn note_number(&mut self, cell: &TensorCell, kind: NumberKind) {
        self.numbers.insert(cell.address(), Number { kind, value: None });
    }

    pub(super) fn number(&self, value: &Value) -> Option<&Number> {
        match value {
            Value::Tensor(cell) => self.numbers.get(&cell.address()),
            _ => None,
        }
    }

    /// Returns the result for `value`, if it is a scalar that a tensor represents.
    pub(super) fn number_result(&mut self, value: &Value) -> Result<Option<ResultSpec>, LowerError> {
        let (Some(number), Value::Tensor(cell)) = (self.number(value), value) else {
            return Ok(None);
        };
        if let Some(known) = &number.value {
            return Ok(Some(ResultSpec::Value(known.clone())));
        }
        let id = self.read(cell)?;
        self.tensors.add_output(id);
        Ok(Some(ResultSpec::Number(self.tensors.outputs().len() as u32 - 1)))
    }

    /// Returns the type of a scalar.
    pub(super) fn number_type(&self, value: &Value) -> Option<TypeId> {
        Some(match self.number(value)?.kind {
            NumberKind::Bool => types::BOOL,
            NumberKind::Int => types::INT,
            NumberKind::Float => types::FLOAT,
        })
    }

    /// Returns the value of a scalar, with a graph break if it is unknown; other values unchanged.
    pub(super) fn known_value(&mut self, value: Value) -> Result<Value, LowerError> {
        let (Some(number), Value::Tensor(cell)) = (self.number(&value).cloned(), &value) else {
            return Ok(value);
        };
        if let Some(known) = number.value {
            return Ok(known);
        }
        let Some(op) = self.registry.with_role(Role::Item) else {
            return Err(LowerError::Malformed("no operator reads numbers from tensors".into()));
        };
        let found = match self.answer()? {
            Some(answer) => answer.into_iter().next(),
            None => {
                let id = self.read(cell)?;
                return Err(self.wait_for(RuntimeCall {
                    ctx: self.ctx.clone(),
                    arguments: vec![ResultSpec::Tensor(0)],
                    input_shapes: vec![self.tensors.shape(id).clone()],
                    inputs: vec![id],
                    results: Vec::new(),
                    output_types: vec![self.number_type(&value).unwrap_or(types::INT)],
                    attributes: Vec::new(),
                    op,
                }));
            }
        };
        let found = found.ok_or_else(|| LowerError::Malformed("a number that is none".into()))?;
        if let Some(number) = self.numbers.get_mut(&cell.address()) {
            number.value = Some(found.clone());
        }
        Ok(found)
    }

    /// Returns `value` with the values of all scalars in it.
    pub(super) fn all_known(&mut self, value: Value) -> Result<Value, LowerError> {
        let every = |s: &mut Self, items: Vec<Value>| -> Result<Vec<Value>, LowerError> {
            items.into_iter().map(|v| s.all_known(v)).collect()
        };
        match &value {
            Value::List(l) if l.with(|items| items.iter().any(|v| self.has_numbers(v))) => {
                // A scalar has no identity, so replacing it by an equal one is not visible.
                let items = every(self, l.items())?;
                l.change(|own| *own = items);
                Ok(value)
            }
            Value::Tuple(t) if self.has_numbers(&value) => Ok(Value::tuple(every(self, t.items.to_vec())?)),
            _ => self.known_value(value),
        }
    }

    fn has_numbers(&self, value: &Value) -> bool {
        match value {
            Value::List(l) => l.with(|items| items.iter().any(|v| self.has_numbers(v))),
            Value::Tuple(t) => t.items.iter().any(|v| self.has_numbers(v)),
            other => self.number(other).is_some(),
        }
    }

    /// Returns the result of a node that converts tensors to scalars or has unknown scalars as arguments (`Ok`), or the values with which the node is to be
    /// called (`Err`).
    pub(super) fn with_numbers(
        &mut self,
        graph: &Graph,
        node: NodeId,
        op: &Operator,
        values: Vec<Value>,
    ) -> Result<Result<Value, Vec<Value>>, Refusal> {
        if self.answers.is_none() {
            return Ok(Err(values));
        }
        if let Some(read) = op.traits().number_read
            && let [value] = values.as_slice()
            && let Some(number) = self.converted_number(read, value)?
        {
            return Ok(Ok(number));
        }
        if !values.iter().any(|v| self.has_numbers(v)) {
            return Ok(Err(values));
        }
        let told = values.into_iter().map(|v| match self.number(&v) {
            Some(Number { value: Some(known), .. }) => known.clone(),
            _ => v,
        });
        let values: Vec<Value> = told.collect();
        if op.traits().holds_elements && !self.reads_number(op, &values) {
            return Ok(Err(values));
        }
        if let Some(result) = self.on_tensors(graph, node, op, &values)? {
            return Ok(Ok(result));
        }
        let known = values.into_iter().map(|v| self.all_known(v));
        Ok(Err(known.collect::<Result<_, _>>()?))
    }

    /// Returns whether an operator on containers has a scalar as its index or key, which it reads.
    fn reads_number(&self, op: &Operator, values: &[Value]) -> bool {
        let is_read = |ty| matches!(self.ctx.type_kind(ty), TypeKind::Int | TypeKind::Float | TypeKind::Bool);
        let mut pairs = op.schema().arguments.iter().zip(values);
        pairs.any(|(a, v)| is_read(a.ty) && self.number(v).is_some())
    }

    /// Returns the scalar that is read from a tensor of one element, or from a scalar of another type; `None` if that is not possible without the value.
    fn converted_number(&mut self, read: &NumberRead, value: &Value) -> Result<Option<Value>, LowerError> {
        let Value::Tensor(cell) = value else { return Ok(None) };
        if self.number(value).is_some_and(|n| n.value.is_some()) || !self.store.knows(cell) {
            return Ok(None);
        }
        let tensor = cell.get();
        let kind = read.kind.or_else(|| NumberKind::of_dtype(tensor.dtype()));
        let (dtype, rank) = (tensor.dtype(), tensor.sizes().len());
        let (Some(kind), Some(from), 1) = (kind, NumberKind::of_dtype(dtype), tensor.numel()) else {
            return Ok(None);
        };
        // Implicit conversions are stricter; the operator itself raises.
        if read.is_implicit && (rank > 0 || kind == NumberKind::Int && from != NumberKind::Int) {
            return Ok(None);
        }
        drop(tensor);
        let mut id = self.read(cell)?;
        if rank > 0 {
            let flat = TensorShape {
                sizes: Default::default(),
                ..self.tensors.shape(id).clone()
            };
            id = self.tensors.view(
                ViewMap {
                    tensor: id,
                    kind: ViewKind::Reshape,
                    output: flat,
                },
                Vec::new(),
            );
        }
        let limit = match (read.scalar_limit, self.number(value)) {
            (Some(limit), Some(_)) => limit,
            _ => kind.dtype(),
        };
        self.check_fits(id, limit)?;
        let id = self.converted(id, kind.dtype());
        Ok(Some(self.fresh_number(id, kind)?))
    }

    fn fresh_number(&mut self, id: TensorId, kind: NumberKind) -> Result<Value, LowerError> {
        let shape = self.tensors.shape(id).clone();
        let cell = self.store.fresh(id, &shape, false)?;
        self.note_number(&cell, kind);
        Ok(Value::Tensor(cell))
    }

    /// Returns a tensor converted to `dtype`; `None` if the value is not a tensor.
    pub(super) fn as_dtype(&mut self, value: &Value, dtype: DType) -> Result<Option<Value>, LowerError> {
        let Value::Tensor(cell) = value else { return Ok(None) };
        let id = self.read(cell)?;
        let id = self.converted(id, dtype);
        let shape = self.tensors.shape(id).clone();
        Ok(Some(Value::Tensor(self.store.fresh(id, &shape, false)?)))
    }

    /// Returns a scalar as a tensor of `dtype` without dimensions; `None` if the value is not a scalar.
    pub(super) fn as_tensor(&mut self, value: &Value, dtype: DType) -> Result<Option<Value>, LowerError> {
        if self.number(value).is_some() {
            return self.as_dtype(value, dtype);
        }
        let scalar = match value {
            Value::Bool(b) => Scalar::Bool(*b),
            Value::Int(i) => Scalar::Int(*i),
            Value::Float(f) => Scalar::Float(*f),
            _ => return Ok(None),
        };
        Ok(Some(Value::from(Tensor::scalar(dtype, scalar))))
    }

    pub(super) fn kind(&self, value: &Value) -> Option<NumberKind> {
        self.number(value)
            .map(|n| n.kind)
            .or_else(|| NumberKind::of_value(value))
    }

    /// Returns the results of a node on unknown scalars, if operators on tensors can compute them.
    fn on_tensors(
        &mut self,
        graph: &Graph,
        node: NodeId,
        op: &Operator,
        values: &[Value],
    ) -> Result<Option<Value>, Refusal> {
        let traits = op.traits();
        let takes_tensor = op.schema().arguments.iter().any(|a| a.ty == types::TENSOR);
        if let Some(variant) = traits.tensor_variant
            && !takes_tensor
            && let Some(kinds) = values.iter().map(|v| self.kind(v)).collect::<Option<Vec<_>>>()
        {
            return self.arithmetic(graph, node, variant, values, &kinds);
        }
        match (traits.role, values) {
            // Of a number, or of a list of numbers.
            (Some(Role::TensorOf), [data, dtype, ..]) => self.tensor_of(graph, node, data, dtype),
            (Some(Role::Select), [Value::Tensor(base), Value::Int(dim), index])
                if self.number(&values[0]).is_none() && self.kind(index) == Some(NumberKind::Int) =>
            {
                self.row(graph, node, base, *dim, index)
            }
            (_, [Value::Tensor(_), ..]) => self.with_scalar(graph, node, op, values),
            _ => Ok(None),
        }
    }

    /// Returns the result of an operator on scalars of these kinds, computed by the operator on tensors; `None` if the results could differ.
    fn arithmetic(
        &mut self,
        graph: &Graph,
        node: NodeId,
        variant: &TensorVariant,
        values: &[Value],
        kinds: &[NumberKind],
    ) -> Result<Option<Value>, Refusal> {
        let Some((least, widest)) = kinds.iter().min().zip(kinds.iter().max()) else {
            return Ok(None);
        };
        let is_real = *least != NumberKind::Bool;
        let (operands, result) = match variant.rule {
            NumberRule::Arithmetic if is_real => (*widest, *widest),
            NumberRule::Quotient if is_real => (NumberKind::Float, NumberKind::Float),
            NumberRule::Integers if is_real && *widest == NumberKind::Int => (NumberKind::Int, NumberKind::Int),
            NumberRule::Comparison if is_real => (*widest, NumberKind::Bool),
            NumberRule::Logic if *widest == NumberKind::Bool => (NumberKind::Bool, NumberKind::Bool),
            _ => return Ok(None),
        };
        let Some(op) = self.registry.find(variant.operator, variant.overload) else {
            return Ok(None);
        };
        let mut tensors = Vec::new();
        for value in values {
            tensors.extend(self.as_tensor(value, operands.dtype())?);
        }
        for argument in op.schema().arguments.iter().skip(tensors.len()) {
            let default = argument.default.as_ref().map(|c| self.importer.value(c, None));
            match default {
                Some(Ok(default)) => tensors.push(default),
                _ => return Ok(None),
            }
        }
        self.made_number(graph, node, &op, &tensors, result)
    }

    /// Returns the result of `torch.tensor` of a scalar or a list of scalars.
    fn tensor_of(
        &mut self,
        graph: &Graph,
        node: NodeId,
        data: &Value,
        dtype: &Value,
    ) -> Result<Option<Value>, Refusal> {
        let items = match data {
            Value::List(l) => l.items(),
            other => vec![other.clone()],
        };
        let Some(kinds) = items.iter().map(|v| self.kind(v)).collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        // A list of several kinds is refused when it runs.
        if kinds.windows(2).any(|pair| pair[0] != pair[1]) {
            return Ok(None);
        }
        let dtype = match (dtype, kinds.first().copied()) {
            (Value::Int(code), _) => DType::from_code(*code),
            (Value::None, Some(NumberKind::Float)) => Some(DType::Float),
            (Value::None, Some(kind)) => Some(kind.dtype()),
            _ => None,
        };
        let Some(dtype) = dtype.filter(|d| NumberKind::of_dtype(*d).is_some()) else {
            return Ok(None);
        };
        let mut tensors = Vec::new();
        for item in &items {
            self.check_scalar_fits(item, dtype)?;
            tensors.extend(self.as_tensor(item, dtype)?);
        }
        match data {
            Value::List(_) => {
                let list = Value::List(ListValue::new(types::TENSOR, tensors));
                self.through(
                    graph,
                    node,
                    self.registry.with_role(Role::Stack),
                    &[list, Value::Int(0)],
                )
            }
            _ => Ok(tensors.pop()),
        }
    }

    /// Returns the first result of an operator; `None` if there is no operator.
    pub(super) fn through(
        &mut self,
        graph: &Graph,
        node: NodeId,
        op: Option<Operator>,
        values: &[Value],
    ) -> Result<Option<Value>, Refusal> {
        match op {
            Some(op) => Ok(self.call(graph, node, &op, values)?.into_iter().next()),
            None => Ok(None),
        }
    }

    /// Returns the result of an operator on tensors, as a scalar of this kind.
    fn made_number(
        &mut self,
        graph: &Graph,
        node: NodeId,
        op: &Operator,
        values: &[Value],
        kind: NumberKind,
    ) -> Result<Option<Value>, Refusal> {
        let Some(Value::Tensor(cell)) = self.call(graph, node, op, values)?.into_iter().next() else {
            return Ok(None);
        };
        let id = self.read(&cell)?;
        let id = self.converted(id, kind.dtype());
        Ok(Some(self.fresh_number(id, kind)?))
    }
}
