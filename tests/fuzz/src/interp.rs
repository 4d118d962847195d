//! The interpreter: the methods of any program that can be read, on any arguments of their types, return or raise.
//!
//! The first line of an input chooses the arguments; the program follows, as source or `.ir` text.

use super::choices::Choices;
use super::{memory, program};
use frazil::ir::{Context, DType, Device, TypeId, TypeKind, types};
use frazil::runtime::interp::{Interpreter, Output};
use frazil::runtime::python_repr;
use frazil::runtime::value::{DictValue, Key, ListValue, TupleValue};
use frazil::{Tensor, Value};
use std::sync::Arc;

/// Steps of a call.
const STEPS: u64 = 2000;
/// Methods that are called.
const METHODS: usize = 4;
/// Bytes that calls may use; larger tensors are refused.
const BYTES: usize = 64 << 20;
/// How deep values of a type may nest.
const DEPTH: usize = 6;

struct Silent;

impl Output for Silent {
    fn print(&self, _: &str) {}
    fn warn(&self, _: &str) {}
}

/// Calls the methods of a program.
pub fn run(input: &[u8]) {
    let session = program::session();
    let (line, text) = program::split(input);
    let Some(model) = program::load(&session, text).and_then(|loaded| loaded.runnable().ok()) else {
        return;
    };
    let names: Vec<String> = model.root().method_names().iter().map(|n| n.to_string()).collect();
    let module = Arc::clone(model.module());
    let Ok(interpreter) = Interpreter::with_module(Arc::clone(session.registry()), Arc::clone(&module)) else {
        return;
    };
    let interpreter = interpreter.with_output(Box::new(Silent)).with_step_limit(STEPS);
    let mut choices = Choices::new(line);
    for name in names.iter().take(METHODS) {
        let Some((_, function)) = module.method_at(name) else {
            continue;
        };
        let arguments = &module.unit.function(function).schema.arguments;
        let arguments = arguments
            .iter()
            .skip(1)
            .map(|a| value(session.ctx(), a.ty, &mut choices, DEPTH));
        let Some(arguments) = arguments.collect::<Option<Vec<_>>>() else {
            continue;
        };
        memory::refusing(BYTES, || match interpreter.call(name, &arguments) {
            Ok(result) => drop(python_repr::repr(session.ctx(), &result)),
            Err(error) => drop(error.to_string()),
        });
    }
    // What calls have made of the module can be written, or it is said why not.
    drop(interpreter.snapshot());
}

/// A value of type `ty`; `None` for types without values that can be made here.
fn value(ctx: &Context, ty: TypeId, choices: &mut Choices<'_>, depth: usize) -> Option<Value> {
    if depth == 0 {
        return None;
    }
    let inner = |ty, choices: &mut Choices<'_>| value(ctx, ty, choices, depth - 1);
    Some(match ctx.type_kind(ty) {
        TypeKind::Tensor(_) => tensor(choices)?.into(),
        TypeKind::Int => Value::Int(choices.int()),
        TypeKind::Float => Value::Float(choices.float()),
        TypeKind::Bool => Value::Bool(choices.below(2) == 1),
        TypeKind::Complex => Value::Complex(num_complex::Complex64::new(choices.float(), choices.float())),
        TypeKind::Number => match choices.below(3) {
            0 => Value::Int(choices.int()),
            1 => Value::Float(choices.float()),
            _ => Value::Bool(choices.below(2) == 1),
        },
        TypeKind::Str => Value::str(*choices.pick(&["", "a", "mean", "é{}%s", "cpu"])),
        TypeKind::None => Value::None,
        TypeKind::Device => {
            let name = *choices.pick(&["cpu", "cuda:0", "meta"]);
            Value::Device(Device::parse(name)?)
        }
        TypeKind::Any => inner(*choices.pick(&[types::INT, types::TENSOR, types::STR]), choices)?,
        TypeKind::Optional(element) => match choices.below(3) {
            0 => Value::None,
            _ => inner(element, choices)?,
        },
        TypeKind::List(element) => {
            let items = (0..choices.below(4)).map(|_| inner(element, choices));
            Value::List(ListValue::new(element, items.collect::<Option<_>>()?))
        }
        TypeKind::Dict(key, element) => {
            let mut entries = indexmap::IndexMap::new();
            for _ in 0..choices.below(3) {
                entries.insert(Key(inner(key, choices)?), inner(element, choices)?);
            }
            Value::Dict(DictValue::new(key, element, entries))
        }
        TypeKind::Tuple(list) | TypeKind::NamedTuple(_, _, list) => {
            let items = ctx.types(list).iter().map(|&ty| inner(ty, choices));
            let items: Vec<Value> = items.collect::<Option<_>>()?;
            Value::Tuple(TupleValue {
                ty: Some(ty),
                items: items.into(),
            })
        }
        TypeKind::Union(list) => {
            let of = ctx.types(list);
            inner(*of.get(choices.below(of.len()))?, choices)?
        }
        _ => return None,
    })
}

const DTYPES: [DType; 10] = [
    DType::Float,
    DType::Float,
    DType::Long,
    DType::Bool,
    DType::Double,
    DType::Half,
    DType::Byte,
    DType::Int,
    DType::BFloat16,
    DType::ComplexFloat,
];

/// A small tensor, strided in some cases.
fn tensor(choices: &mut Choices<'_>) -> Option<Tensor> {
    let sizes: Vec<i64> = (0..choices.below(5)).map(|_| choices.below(5) as i64).collect();
    let elements = sizes.iter().product::<i64>() as usize;
    let dtype = *choices.pick(&DTYPES);
    let bytes: Vec<u8> = (0..elements).flat_map(|_| element(dtype, choices.float())).collect();
    let dense = Tensor::from_bytes(dtype, &sizes, &bytes).ok()?;
    if choices.below(4) != 3 {
        return Some(dense);
    }
    let mut strides = frazil::ir::contiguous_strides(&sizes);
    let mut reversed = sizes.clone();
    strides.reverse();
    reversed.reverse();
    Tensor::from_storage(dense.storage().clone(), dtype, &reversed, &strides, 0).ok()
}

/// The bytes of `x` as an element.
fn element(dtype: DType, x: f64) -> Vec<u8> {
    match dtype {
        DType::Float => (x as f32).to_le_bytes().to_vec(),
        DType::Double => x.to_le_bytes().to_vec(),
        DType::Half => half::f16::from_f64(x).to_le_bytes().to_vec(),
        DType::BFloat16 => half::bf16::from_f64(x).to_le_bytes().to_vec(),
        DType::ComplexFloat => [(x as f32).to_le_bytes(), (-x as f32).to_le_bytes()].concat(),
        DType::Bool => vec![u8::from(x > 0.0)],
        _ => (x as i64).to_le_bytes()[..dtype.size()].to_vec(),
    }
}
