//! Values in JSON, as tools/fixtures/make_language.py writes them.

use frazil::ir::{DType, Device, TypeId, types};
use frazil::runtime::element::DoubleElement;
use frazil::runtime::value::{DictValue, Key, ListValue};
use frazil::{Tensor, Value};
use indexmap::IndexMap;
use num_complex::Complex64;
use serde_json::Value as Json;

fn float(json: &Json) -> f64 {
    match json {
        Json::String(text) => text.parse().unwrap(),
        Json::Bool(flag) => f64::from(u8::from(*flag)),
        other => other.as_f64().unwrap(),
    }
}

fn integer(json: &Json) -> i64 {
    json.as_bool().map_or_else(|| json.as_i64().unwrap(), i64::from)
}

/// The single key of a value and what stands behind it.
fn parts(json: &Json) -> (&str, &Json) {
    let (kind, body) = json.as_object().unwrap().iter().next().unwrap();
    (kind.as_str(), body)
}

fn tensor(body: &Json) -> Tensor {
    let dtype = DType::from_python_name(body["dtype"].as_str().unwrap()).unwrap();
    let sizes: Vec<i64> = body["shape"]
        .as_array()
        .unwrap()
        .iter()
        .map(|n| n.as_i64().unwrap())
        .collect();
    let data = body["data"].as_array().unwrap();
    if dtype.is_floating_point() {
        let data: Vec<f64> = data.iter().map(float).collect();
        Tensor::from_elements::<DoubleElement>(&data, &sizes)
    } else {
        let data: Vec<i64> = data.iter().map(integer).collect();
        Tensor::from_i64(&data, &sizes)
    }
    .unwrap()
    .to_dtype(dtype)
    .unwrap()
}

/// The value that `json` says.
pub fn from_json(json: &Json) -> Value {
    let (kind, body) = parts(json);
    let items = || -> Vec<Value> { body.as_array().unwrap().iter().map(from_json).collect() };
    match kind {
        "none" => Value::None,
        "bool" => Value::Bool(body.as_bool().unwrap()),
        "int" => Value::Int(body.as_i64().unwrap()),
        "float" => Value::Float(float(body)),
        "complex" => Value::Complex(Complex64::new(float(&body[0]), float(&body[1]))),
        "str" => Value::str(body.as_str().unwrap()),
        "tensor" => tensor(body).into(),
        "tuple" => Value::tuple(items()),
        "list" => {
            let items = items();
            Value::List(ListValue::new(common_type(items.iter()), items))
        }
        "dict" => {
            let pairs = body.as_array().unwrap().iter();
            let entries: IndexMap<Key, Value> = pairs
                .map(|pair| (Key(from_json(&pair[0])), from_json(&pair[1])))
                .collect();
            let (key, value) = (common_type(entries.keys().map(|k| &k.0)), common_type(entries.values()));
            Value::Dict(DictValue::new(key, value, entries))
        }
        other => panic!("an argument of kind {other}"),
    }
}

/// What a container holds, by its elements.
fn common_type<'v>(mut items: impl Iterator<Item = &'v Value>) -> TypeId {
    let simple = |v: &Value| match v {
        Value::Bool(_) => types::BOOL,
        Value::Int(_) => types::INT,
        Value::Float(_) => types::FLOAT,
        Value::Str(_) => types::STR,
        Value::Tensor(_) => types::TENSOR,
        _ => types::ANY,
    };
    let Some(first) = items.next().map(simple) else {
        return types::ANY;
    };
    if items.all(|v| simple(v) == first) {
        first
    } else {
        types::ANY
    }
}

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance + tolerance * b.abs()
}

/// How far numbers may be apart, as a part of their size and absolutely.
#[derive(Clone, Copy)]
pub enum Tolerance {
    /// What one operator may differ by: 1e-5.
    Operator,
    /// What the rounding of a whole program may add up to, by the dtype.
    Program,
}

impl Tolerance {
    fn of(self, dtype: DType) -> f64 {
        match (self, dtype) {
            (Tolerance::Operator, _) => 1e-5,
            (Tolerance::Program, DType::Half | DType::BFloat16) => 5e-2,
            (Tolerance::Program, _) => 2e-4,
        }
    }
}

/// Whether `value` is what `json` says: types and shapes alike, numbers close.
pub fn same(value: &Value, json: &Json, tolerance: Tolerance) -> bool {
    let scalars = tolerance.of(DType::Double);
    let same = |value: &Value, json: &Json| same(value, json, tolerance);
    let close = |a: f64, b: f64| close(a, b, scalars);
    let (kind, body) = parts(json);
    let all = |items: &[Value]| {
        let wanted = body.as_array().unwrap();
        items.len() == wanted.len() && items.iter().zip(wanted).all(|(item, wanted)| same(item, wanted))
    };
    match (kind, value) {
        ("none", Value::None) => true,
        ("bool", Value::Bool(b)) => Some(*b) == body.as_bool(),
        ("int", Value::Int(i)) => Some(*i) == body.as_i64(),
        ("float", Value::Float(f)) => close(*f, float(body)),
        ("complex", Value::Complex(c)) => close(c.re, float(&body[0])) && close(c.im, float(&body[1])),
        ("str", Value::Str(s)) => Some(&**s) == body.as_str(),
        ("device", Value::Device(d)) => Device::parse(body.as_str().unwrap()) == Some(*d),
        ("tuple", Value::Tuple(_)) | ("list", Value::List(_)) => all(&value.items().unwrap()),
        ("dict", Value::Dict(dict)) => dict.with(|entries| {
            let wanted = body.as_array().unwrap();
            entries.len() == wanted.len()
                && entries
                    .iter()
                    .zip(wanted)
                    .all(|((key, value), pair)| same(&key.0, &pair[0]) && same(value, &pair[1]))
        }),
        ("tensor", Value::Tensor(cell)) => {
            let tensor = cell.get();
            let sizes: Vec<i64> = body["shape"]
                .as_array()
                .unwrap()
                .iter()
                .map(|n| n.as_i64().unwrap())
                .collect();
            let data = body["data"].as_array().unwrap();
            if DType::from_python_name(body["dtype"].as_str().unwrap()) != Some(tensor.dtype())
                || tensor.sizes() != sizes
            {
                return false;
            }
            if tensor.dtype() == DType::Long {
                return tensor.to_vec::<i64>() == data.iter().map(integer).collect::<Vec<_>>();
            }
            let wanted: Vec<f64> = data.iter().map(float).collect();
            let parts = if tensor.dtype().is_complex() {
                tensor
                    .to_vec::<[f32; 2]>()
                    .iter()
                    .flatten()
                    .map(|&x| f64::from(x))
                    .collect()
            } else {
                tensor.to_f64_vec()
            };
            parts.len() == wanted.len()
                && parts
                    .iter()
                    .zip(&wanted)
                    .all(|(&a, &b)| self::close(a, b, tolerance.of(tensor.dtype())))
        }
        _ => false,
    }
}
