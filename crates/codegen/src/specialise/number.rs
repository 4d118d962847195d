//! Numbers that are read from tensors, and of which only a run knows the value.
//!
//! Such a number (`t.item()`, `int(t)`) is held as the variable of a tensor without dimensions, in Python's precision: 64 bits. Arithmetic
//! and comparisons of numbers, and operators that take a tensor in a number's place, go on with that tensor, so that code
//! serves all values. Lists and tuples hold the variable as they hold others. Everything else has to know the number (a branch, a size):
//! there the run waits for it, as it does for any other operator that looks at elements, and from there on it is known.
//!
//! All of it is for methods that have a driver: only a driver can tell the run what a number is.

use super::control::Frame;
use super::operators::Refusal;
use super::{InputSpec, ResultSpec, Slot, Specialiser};
use crate::error::LowerError;
use crate::host::HostCall;
use frazil_ir::{DType, Graph, NodeId, TypeId, ValueId, types};
use frazil_runtime::op::Operator;
use frazil_runtime::structured::{TensorId, TensorShape, ViewKind, ViewMap};
use frazil_runtime::value::{ListValue, TensorCell, Value};
use frazil_runtime::{Scalar, Tensor};

/// The types of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NumberKind {
    /// A truth value.
    Bool,
    /// An `int`: 64 bits.
    Int,
    /// A `float`: 64 bits.
    Float,
}

impl NumberKind {
    /// The dtype of the tensor that holds such a number.
    pub fn dtype(self) -> DType {
        match self {
            NumberKind::Bool => DType::Bool,
            NumberKind::Int => DType::Long,
            NumberKind::Float => DType::Double,
        }
    }

    /// The kind of a plain value; `None` for what is no number.
    pub fn of_value(value: &Value) -> Option<NumberKind> {
        match value {
            Value::Bool(_) => Some(NumberKind::Bool),
            Value::Int(_) => Some(NumberKind::Int),
            Value::Float(_) => Some(NumberKind::Float),
            _ => None,
        }
    }

    /// The kind of the number that `item()` reads from a tensor of this dtype; `None` for complex ones.
    pub(super) fn of_dtype(dtype: DType) -> Option<NumberKind> {
        match dtype {
            DType::Bool => Some(NumberKind::Bool),
            d if d.is_integral() => Some(NumberKind::Int),
            d if d.is_floating_point() => Some(NumberKind::Float),
            _ => None,
        }
    }
}

/// The number that a tensor without dimensions holds, as [`NumberKind::dtype`] stores it; `None` for other values.
pub fn number_in(value: &Value) -> Option<Value> {
    let tensor = value.as_tensor()?;
    Some(match (tensor.dtype(), tensor.item().ok()?) {
        (DType::Bool, scalar) => Value::Bool(scalar.as_bool()),
        (DType::Long, scalar) => Value::Int(scalar.as_i64()),
        (_, scalar) => Value::Float(scalar.as_f64()),
    })
}

/// What is known of a number.
#[derive(Clone)]
pub(super) struct Number {
    kind: NumberKind,
    /// Its value, once a driver has told it.
    value: Option<Value>,
}

/// Reading a number, or changing its type.
const CONVERSIONS: [&str; 7] = [
    "aten::item",
    "aten::Int",
    "aten::Float",
    "aten::Bool",
    "aten::IntImplicit",
    "aten::FloatImplicit",
    "aten::ScalarImplicit",
];

/// Nodes that hand numbers on as they are: in a list, or as themselves.
const HOLDERS: [&str; 8] = [
    "prim::ListConstruct",
    "prim::TupleConstruct",
    "prim::ListUnpack",
    "prim::TupleUnpack",
    "prim::TupleIndex",
    "aten::append",
    "aten::len",
    "aten::__getitem__",
];

/// Arithmetic on two numbers: the node, and the operator on tensors.
const ARITHMETIC: [(&str, &str); 12] = [
    ("aten::add", "aten::add"),
    ("aten::sub", "aten::sub"),
    ("aten::mul", "aten::mul"),
    ("aten::div", "aten::div"),
    ("aten::eq", "aten::eq"),
    ("aten::ne", "aten::ne"),
    ("aten::lt", "aten::lt"),
    ("aten::le", "aten::le"),
    ("aten::gt", "aten::gt"),
    ("aten::ge", "aten::ge"),
    ("aten::floordiv", "aten::floor_divide"),
    ("aten::remainder", "aten::remainder"),
];

impl Specialiser<'_> {
    /// A new number, whose value `cell` holds.
    pub(super) fn note_number(&mut self, cell: &TensorCell, kind: NumberKind) {
        self.numbers.insert(cell.address(), Number { kind, value: None });
    }

    pub(super) fn number(&self, value: &Value) -> Option<&Number> {
        match value {
            Value::Tensor(cell) => self.numbers.get(&cell.address()),
            _ => None,
        }
    }

    /// What `value` is for the caller, when it is a number of which only a run knows the value.
    pub(super) fn number_result(&mut self, value: &Value) -> Result<Option<ResultSpec>, LowerError> {
        let (Some(number), Value::Tensor(cell)) = (self.number(value), value) else {
            return Ok(None);
        };
        if let Some(known) = &number.value {
            return Ok(Some(ResultSpec::Value(known.clone())));
        }
        let id = self.read(cell)?;
        self.tensors.outputs.push(id);
        Ok(Some(ResultSpec::Number(self.tensors.outputs.len() as u32 - 1)))
    }

    /// The type of a number.
    pub(super) fn number_type(&self, value: &Value) -> Option<TypeId> {
        Some(match self.number(value)?.kind {
            NumberKind::Bool => types::BOOL,
            NumberKind::Int => types::INT,
            NumberKind::Float => types::FLOAT,
        })
    }

    /// `value`, when it is a number: its value, for which the run waits if need be. Other values as they are.
    pub(super) fn known(&mut self, value: Value) -> Result<Value, LowerError> {
        let (Some(number), Value::Tensor(cell)) = (self.number(&value).cloned(), &value) else {
            return Ok(value);
        };
        if let Some(known) = number.value {
            return Ok(known);
        }
        let Some(op) = self.registry.find("aten::item", "") else {
            return Err(LowerError::Malformed("there is no aten::item".into()));
        };
        let found = match self.answer()? {
            Some(answer) => answer.into_iter().next(),
            None => {
                let id = self.read(cell)?;
                return Err(self.wait_for(HostCall {
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

    /// [`Specialiser::known`] of what a variable holds.
    pub(super) fn known_slot(&mut self, frame: &Frame<'_>, variable: Option<ValueId>) -> Result<Slot, LowerError> {
        let slot = variable.and_then(|v| frame.get(v));
        slot.map(|value| self.known(value)).transpose()
    }

    /// `value` with all numbers in it known.
    pub(super) fn all_known(&mut self, value: Value) -> Result<Value, LowerError> {
        let every = |s: &mut Self, items: Vec<Value>| -> Result<Vec<Value>, LowerError> {
            items.into_iter().map(|v| s.all_known(v)).collect()
        };
        match &value {
            Value::List(l) if l.with(|items| items.iter().any(|v| self.has_numbers(v))) => {
                // Nobody can tell a number from itself.
                let items = every(self, l.items())?;
                l.change(|own| *own = items);
                Ok(value)
            }
            Value::Tuple(t) if self.has_numbers(&value) => Ok(Value::tuple(every(self, t.items.to_vec())?)),
            _ => self.known(value),
        }
    }

    fn has_numbers(&self, value: &Value) -> bool {
        match value {
            Value::List(l) => l.with(|items| items.iter().any(|v| self.has_numbers(v))),
            Value::Tuple(t) => t.items.iter().any(|v| self.has_numbers(v)),
            other => self.number(other).is_some(),
        }
    }

    /// What a node gives that makes numbers of tensors or takes such; else what it is to be called with.
    pub(super) fn with_numbers(
        &mut self,
        graph: &Graph,
        node: NodeId,
        op: &Operator,
        values: Vec<Value>,
    ) -> Result<Result<Value, Vec<Value>>, Refusal> {
        let name = graph.kind_name(node);
        if self.answers.is_none() {
            return Ok(Err(values));
        }
        if CONVERSIONS.contains(&name)
            && let [value] = values.as_slice()
            && let Some(number) = self.converted_number(name, value)?
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
        if HOLDERS.contains(&name) && !(name == "aten::__getitem__" && values.iter().any(|v| self.number(v).is_some()))
        {
            return Ok(Err(values));
        }
        if let Some(result) = self.on_tensors(graph, node, op, &values)? {
            return Ok(Ok(result));
        }
        let known = values.into_iter().map(|v| self.all_known(v));
        Ok(Err(known.collect::<Result<_, _>>()?))
    }

    /// A number read from a tensor of one element, or of another type; `None` where that needs more.
    fn converted_number(&mut self, name: &str, value: &Value) -> Result<Option<Value>, LowerError> {
        let Value::Tensor(cell) = value else { return Ok(None) };
        if self.number(value).is_some_and(|n| n.value.is_some()) || !self.store.knows(cell) {
            return Ok(None);
        }
        let tensor = cell.get();
        let kind = match name {
            "aten::Int" | "aten::IntImplicit" => Some(NumberKind::Int),
            "aten::Float" | "aten::FloatImplicit" => Some(NumberKind::Float),
            "aten::Bool" => Some(NumberKind::Bool),
            _ => NumberKind::of_dtype(tensor.dtype()),
        };
        let (dtype, rank) = (tensor.dtype(), tensor.sizes().len());
        let (Some(kind), Some(from), 1) = (kind, NumberKind::of_dtype(dtype), tensor.numel()) else {
            return Ok(None);
        };
        // Implicit conversions are stricter; the operator itself raises.
        if name.ends_with("Implicit") && (rank > 0 || kind == NumberKind::Int && from != NumberKind::Int) {
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
        // `int` of a Scalar is stricter than `int` of a tensor: it goes through 32 bits.
        let limit = match (name, self.number(value)) {
            ("aten::Int", Some(_)) => DType::Int,
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

    /// A tensor converted to `dtype`; `None` for what is none.
    pub(super) fn as_dtype(&mut self, value: &Value, dtype: DType) -> Result<Option<Value>, LowerError> {
        let Value::Tensor(cell) = value else { return Ok(None) };
        let id = self.read(cell)?;
        let id = self.converted(id, dtype);
        let shape = self.tensors.shape(id).clone();
        Ok(Some(Value::Tensor(self.store.fresh(id, &shape, false)?)))
    }

    /// A number as a tensor of `dtype` without dimensions; `None` for what is no number.
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

    /// What a node gives on numbers that nobody knows, when operators on tensors can say it.
    fn on_tensors(
        &mut self,
        graph: &Graph,
        node: NodeId,
        op: &Operator,
        values: &[Value],
    ) -> Result<Option<Value>, Refusal> {
        let name = graph.kind_name(node);
        let pair = match values {
            [a, b, ..] => self.kind(a).zip(self.kind(b)),
            _ => None,
        };
        if let (Some(kinds), Some((_, tensors))) = (pair, ARITHMETIC.iter().find(|(n, _)| *n == name)) {
            return self.arithmetic(graph, node, tensors, values, kinds);
        }
        match (name, values) {
            ("aten::neg", [value]) => {
                let Some(kind) = self.kind(value).filter(|k| *k != NumberKind::Bool) else {
                    return Ok(None);
                };
                self.made_number(graph, node, ("aten::neg", ""), std::slice::from_ref(value), kind)
            }
            ("aten::__not__", [value]) if self.kind(value) == Some(NumberKind::Bool) => self.made_number(
                graph,
                node,
                ("aten::logical_not", ""),
                std::slice::from_ref(value),
                NumberKind::Bool,
            ),
            // Of a number, or of a list of numbers.
            ("aten::tensor", [data, dtype, ..]) => self.tensor_of(graph, node, data, dtype),
            ("aten::select", [Value::Tensor(base), Value::Int(dim), index])
                if self.number(&values[0]).is_none() && self.kind(index) == Some(NumberKind::Int) =>
            {
                self.row(graph, node, base, *dim, index)
            }
            (_, [Value::Tensor(_), ..]) => {
                self.with_scalar(graph, node, (name, self.ctx.name(op.schema().overload)), values)
            }
            _ => Ok(None),
        }
    }

    fn arithmetic(
        &mut self,
        graph: &Graph,
        node: NodeId,
        name: &str,
        values: &[Value],
        (a, b): (NumberKind, NumberKind),
    ) -> Result<Option<Value>, Refusal> {
        let float = a == NumberKind::Float || b == NumberKind::Float;
        let rounds = matches!(name, "aten::floor_divide" | "aten::remainder");
        // Python's rules for floats that are divided with rest are others; so are truth values.
        let other = rounds && float || a == NumberKind::Bool || b == NumberKind::Bool;
        if other || values.len() != 2 {
            return Ok(None);
        }
        let operands = if float || name == "aten::div" {
            NumberKind::Float
        } else {
            NumberKind::Int
        };
        let mut tensors = Vec::new();
        for value in values {
            tensors.extend(self.as_tensor(value, operands.dtype())?);
        }
        if matches!(name, "aten::add" | "aten::sub") {
            tensors.push(Value::Int(1));
        }
        let is_comparison = matches!(
            name,
            "aten::eq" | "aten::ne" | "aten::lt" | "aten::le" | "aten::gt" | "aten::ge"
        );
        let kind = if is_comparison { NumberKind::Bool } else { operands };
        let overload = if rounds && name == "aten::floor_divide" {
            ""
        } else {
            "Tensor"
        };
        self.made_number(graph, node, (name, overload), &tensors, kind)
    }

    /// `torch.tensor` of a number or a list of numbers.
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
        let widest = kinds.into_iter().max_by_key(|k| rank_of(*k));
        let dtype = match (dtype, widest) {
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
                self.through(graph, node, ("aten::stack", ""), &[list, Value::Int(0)])
            }
            _ => Ok(tensors.pop()),
        }
    }

    /// What an operator gives; `None` when there is none.
    pub(super) fn through(
        &mut self,
        graph: &Graph,
        node: NodeId,
        (name, overload): (&str, &str),
        values: &[Value],
    ) -> Result<Option<Value>, Refusal> {
        let op: Option<Operator> = self.registry.find(name, overload);
        let Some(op) = op else { return Ok(None) };
        Ok(self.call(graph, node, &op, values)?.into_iter().next())
    }

    /// [`Specialiser::through`], whose result is a number of this kind.
    fn made_number(
        &mut self,
        graph: &Graph,
        node: NodeId,
        operator: (&str, &str),
        values: &[Value],
        kind: NumberKind,
    ) -> Result<Option<Value>, Refusal> {
        let Some(Value::Tensor(cell)) = self.through(graph, node, operator, values)? else {
            return Ok(None);
        };
        let id = self.read(&cell)?;
        let id = self.converted(id, kind.dtype());
        Ok(Some(self.fresh_number(id, kind)?))
    }

    /// What was given to the run where it has waited now, if it has.
    pub(super) fn answer(&mut self) -> Result<Option<Vec<Value>>, LowerError> {
        let answers = self.answers.unwrap_or_default();
        let Some(answer) = answers.get(self.answered) else {
            self.settled = self.tensors.len();
            return Ok(None);
        };
        self.answered += 1;
        self.earlier_checks = self.checks.len();
        let given = answer.iter().map(|spec: &InputSpec| self.input(spec, false));
        given.collect::<Result<_, _>>().map(Some)
    }

    /// Ends the run at a call.
    pub(super) fn wait_for(&mut self, call: HostCall) -> LowerError {
        if !self.unsupported.is_empty() {
            return self.all_unsupported();
        }
        let operator = call.name();
        self.waiting = Some(call);
        LowerError::Waits { operator }
    }
}

/// The order of promotion.
pub(super) fn rank_of(kind: NumberKind) -> u8 {
    match kind {
        NumberKind::Bool => 0,
        NumberKind::Int => 1,
        NumberKind::Float => 2,
    }
}
