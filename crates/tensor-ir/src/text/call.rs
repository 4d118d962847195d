//! Calls of operators without a program as text: `call "aten::cumsum(Tensor self, int dim, ...) -> Tensor"(%0, 1, none) -> (float32[8])`.
//!
//! The text states the complete schema. Reading finds the operator in a registry, and requires that its schema there is the same.

use super::fragment::{Commas, NumberText, Quoted, ShapeText};
use super::lex::{Lexer, Parsed};
use crate::call::RuntimeCall;
use crate::spec::ResultSpec;
use frazil_ir::{Context, Device, TypeId, TypeKind, types};
use frazil_runtime::expr::Number;
use frazil_runtime::op::{Operator, Variant};
use frazil_runtime::registry::{Lookup, Registry};
use frazil_runtime::structured::{TensorId, TensorShape};
use frazil_runtime::value::{ListValue, Value};
use num_complex::Complex64;
use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

/// Maximum number of lists and tuples around an argument.
const MAX_DEPTH: usize = 8;

/// A call, to be printed.
pub(super) struct CallText<'a>(pub &'a RuntimeCall);

impl Display for CallText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let RuntimeCall {
            op,
            ctx,
            arguments,
            inputs,
            results,
            ..
        } = self.0;
        let schema = op.schema().display(ctx).to_string();
        let arguments = arguments.iter().map(|argument| ArgumentText(argument, inputs));
        let results = results.iter().map(ShapeText);
        write!(f, "call {}", Quoted(&schema))?;
        write!(f, "({}) -> ({})", Commas(arguments), Commas(results))
    }
}

/// An argument. The second field contains the inputs of the call.
struct ArgumentText<'a>(&'a ResultSpec, &'a [TensorId]);

impl Display for ArgumentText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let items = |items: &[ResultSpec]| Commas(items.iter().map(|item| ArgumentText(item, self.1))).to_string();
        match self.0 {
            ResultSpec::Tensor(i) => match self.1.get(*i as usize) {
                Some(id) => id.fmt(f),
                None => f.write_str("elided"),
            },
            ResultSpec::List(_, all) => write!(f, "[{}]", items(all)),
            ResultSpec::Tuple(None, all) => write!(f, "({})", items(all)),
            ResultSpec::Value(value) => ValueText(value).fmt(f),
            _ => f.write_str("elided"),
        }
    }
}

/// A value without tensors; `elided` if it has no text.
struct ValueText<'a>(&'a Value);

impl Display for ValueText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let items = |items: &[Value]| Commas(items.iter().map(ValueText)).to_string();
        let float = |x: f64| NumberText(Number::Float(x));
        match self.0 {
            Value::None => f.write_str("none"),
            Value::Bool(value) => value.fmt(f),
            Value::Int(value) => value.fmt(f),
            Value::Float(value) => float(*value).fmt(f),
            Value::Complex(value) => write!(f, "complex {} {}", float(value.re), float(value.im)),
            Value::Str(text) => Quoted(text).fmt(f),
            Value::Device(device) => write!(f, "device {}", Quoted(&device.to_string())),
            Value::List(list) => write!(f, "[{}]", items(&list.items())),
            Value::Tuple(tuple) if tuple.ty.is_none() => write!(f, "({})", items(&tuple.items)),
            _ => f.write_str("elided"),
        }
    }
}

/// Parser of a call.
pub(super) struct CallParser<'p, 'a> {
    /// The text.
    pub lexer: &'p mut Lexer<'a>,
    /// The operators that a text may name.
    pub operators: Option<&'p Registry>,
    /// Reads the name of a tensor.
    pub tensor: &'p dyn Fn(&mut Lexer<'a>) -> Parsed<TensorId>,
    /// Returns the shape of a tensor.
    pub shape: &'p dyn Fn(TensorId) -> TensorShape,
}

impl CallParser<'_, '_> {
    /// Reads the text after the keyword `call`.
    pub(super) fn call(&mut self) -> Parsed<RuntimeCall> {
        let start = self.lexer.position();
        let text = self.lexer.string()?;
        let Some(registry) = self.operators else {
            let expected = "a text without calls of operators, since it is read without a registry of operators";
            return Err(self.lexer.error_from(start, "unknown-operator", expected));
        };
        let op = self.operator(start, &text, registry)?;
        let ctx = registry.ctx();
        let formals: Vec<TypeId> = op.schema().arguments.iter().map(|argument| argument.ty).collect();
        self.lexer.expect("(")?;
        let mut inputs = Vec::new();
        let mut arguments: Vec<ResultSpec> = Vec::new();
        while !self.lexer.take(")") {
            if !arguments.is_empty() {
                self.lexer.expect(",")?;
            }
            let formal = formals.get(arguments.len()).copied();
            arguments.push(self.argument(ctx, formal, &mut inputs, 0)?);
        }
        let given: Vec<TypeId> = arguments.iter().map(|argument| type_of(ctx, argument)).collect();
        let accepts = match registry.lookup_types(op.schema().name, &given) {
            Lookup::Found(found) => found.schema().overload == op.schema().overload,
            _ => false,
        };
        if !accepts {
            let expected = "arguments of the types that the schema states";
            return Err(self.lexer.error_from(start, "bad-argument", expected));
        }
        self.lexer.expect("->")?;
        self.lexer.expect("(")?;
        let results = self.lexer.list(")", Lexer::shape)?;
        let call = RuntimeCall {
            output_types: vec![types::TENSOR; results.len()],
            input_shapes: inputs.iter().map(|&id| (self.shape)(id)).collect(),
            attributes: Vec::new(),
            ctx: Arc::clone(ctx),
            op,
            arguments,
            inputs,
            results,
        };
        match call.checked_bytes() {
            Some(_) if call.results.len() == call.op.schema().returns.len() => Ok(call),
            Some(_) => {
                let expected = "as many results as the schema states";
                Err(self.lexer.error_from(start, "bad-argument", expected))
            }
            None => {
                let expected = "results whose size in bytes fits 64 bits";
                Err(self.lexer.error_from(start, "bad-number", expected))
            }
        }
    }

    /// Returns the operator with the schema `text`, which starts at byte `start`.
    fn operator(&self, start: usize, text: &str, registry: &Registry) -> Parsed<Operator> {
        let error = |code, expected: &str| Err(self.lexer.error_from(start, code, expected));
        let full_name = text.split('(').next().unwrap_or_default();
        let (name, overload) = full_name.split_once('.').unwrap_or((full_name, ""));
        let Some(op) = registry.find(name, overload) else {
            return error("unknown-operator", "the schema of a registered operator");
        };
        let schema = op.schema().display(registry.ctx()).to_string();
        if schema != text {
            return error("other-schema", &format!("the schema `{schema}`, which is registered"));
        }
        let changes_nothing = op.variant() == Variant::Functional && !op.schema().is_mutable();
        let is_callable = op.has_fixed_sizes() && changes_nothing && !op.is_random();
        match is_callable {
            true => Ok(op),
            false => {
                let expected =
                    "an operator with results whose sizes do not depend on elements, and without side effects";
                error("unknown-operator", expected)
            }
        }
    }

    /// Reads an argument of the type `formal`, and appends its tensors to `inputs`.
    fn argument(
        &mut self,
        ctx: &Context,
        formal: Option<TypeId>,
        inputs: &mut Vec<TensorId>,
        depth: usize,
    ) -> Parsed<ResultSpec> {
        let start = self.lexer.position();
        if self.lexer.next_is("%") {
            inputs.push((self.tensor)(self.lexer)?);
            return Ok(ResultSpec::Tensor(inputs.len() as u32 - 1));
        }
        if self.lexer.take("elided") {
            let expected = "an argument: this text was printed without it";
            return Err(self.lexer.error_from(start, "elided-constant", expected));
        }
        let is_list = self.lexer.take("[");
        if !is_list && !self.lexer.take("(") {
            return self.scalar().map(ResultSpec::Value);
        }
        if depth == MAX_DEPTH {
            let expected = format!("at most {MAX_DEPTH} lists and tuples around an argument");
            return Err(self.lexer.error_from(start, "too-deep", &expected));
        }
        let end = if is_list { "]" } else { ")" };
        let element = formal.and_then(|ty| element_type(ctx, ty)).filter(|_| is_list);
        let mut items = Vec::new();
        while !self.lexer.take(end) {
            if !items.is_empty() {
                self.lexer.expect(",")?;
            }
            items.push(self.argument(ctx, element, inputs, depth + 1)?);
        }
        let inferred = || items.first().map_or(types::TENSOR, |item| type_of(ctx, item));
        let element = element.unwrap_or_else(inferred);
        let values: Option<Vec<Value>> = items.iter().map(|item| value_of(item).cloned()).collect();
        Ok(match (values, is_list) {
            (Some(values), true) => ResultSpec::Value(Value::List(ListValue::new(element, values))),
            (Some(values), false) => ResultSpec::Value(Value::tuple(values)),
            (None, true) => ResultSpec::List(element, items),
            (None, false) => ResultSpec::Tuple(None, items),
        })
    }

    /// Reads a value that is neither a tensor nor a container.
    fn scalar(&mut self) -> Parsed<Value> {
        let lexer = &mut *self.lexer;
        let start = lexer.position();
        Ok(match () {
            () if lexer.take("none") => Value::None,
            () if lexer.take("true") => Value::Bool(true),
            () if lexer.take("false") => Value::Bool(false),
            () if lexer.take("complex") => {
                Value::Complex(Complex64::new(lexer.number()?.as_f64(), lexer.number()?.as_f64()))
            }
            () if lexer.take("device") => {
                let device = Device::parse(&lexer.string()?);
                Value::Device(device.ok_or_else(|| lexer.error_from(start, "bad-literal", "a device such as `cpu`"))?)
            }
            () if lexer.next_is("\"") => Value::str(lexer.string()?),
            () => match lexer.number()? {
                Number::Int(value) => Value::Int(value),
                Number::Float(value) => Value::Float(value),
            },
        })
    }
}

/// Returns the value of an argument without tensors.
fn value_of(argument: &ResultSpec) -> Option<&Value> {
    match argument {
        ResultSpec::Value(value) => Some(value),
        _ => None,
    }
}

fn type_of(ctx: &Context, argument: &ResultSpec) -> TypeId {
    match argument {
        ResultSpec::Value(value) => value.ty(ctx),
        ResultSpec::List(element, _) => ctx.list_of(*element),
        ResultSpec::Tuple(_, items) => {
            let items: Vec<TypeId> = items.iter().map(|item| type_of(ctx, item)).collect();
            ctx.tuple_of(&items)
        }
        _ => types::TENSOR,
    }
}

/// Returns the type of the elements of a list type, or of an optional one. A type variable is not a type of elements.
fn element_type(ctx: &Context, ty: TypeId) -> Option<TypeId> {
    match ctx.type_kind(ty) {
        TypeKind::Optional(inner) => element_type(ctx, inner),
        TypeKind::List(element) if !matches!(ctx.type_kind(element), TypeKind::Var(_)) => Some(element),
        _ => None,
    }
}
