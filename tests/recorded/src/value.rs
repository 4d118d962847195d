//! Values as JSON.
//!
//! A value is one of `{"tensor": KEY}`, whose elements are in a `.safetensors` file, or `{"tensor": {"dtype": "float32", "shape": [2], "data": [1, 2]}}`,
//! with two numbers for each complex element; `{"int": 3}`, `{"float": 1.5}` (or `"nan"`, `"inf"`, `"-inf"`), `{"complex": [RE, IM]}`, `{"bool": true}`,
//! `{"str": "x"}`, `{"device": "cpu"}`, `{"none": true}`, `{"list": [VALUE...]}`, `{"tuple": [VALUE...]}`, `{"dict": [[VALUE, VALUE]...]}`.

use crate::RecordedError;
use crate::tensors::{CHECKSUM, Tensors, to_file};
use frazil_ir::{DType, Device, TypeId, types};
use frazil_runtime::value::{DictValue, Key, ListValue, Value};
use frazil_runtime::{Tensor, element::DoubleElement};
use indexmap::IndexMap;
use num_complex::Complex64;
use serde_json::{Map, Value as Json, json};

/// The recorded or actual outcome of a call.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The call returned a value.
    Value(Value),
    /// The call raised an exception.
    Raises {
        /// The text of the exception.
        text: String,
        /// Whether the program's own `raise` or `assert` raised the exception. Only then its text is compared.
        user: bool,
    },
}

impl Outcome {
    /// Reads `VALUE` or `{"raises": TEXT, "user": BOOL}`.
    ///
    /// # Errors
    /// If `json` is neither, or refers to a tensor that is not in `tensors`.
    pub fn from_json(json: &Json, tensors: &Tensors) -> Result<Outcome, RecordedError> {
        match json.get("raises") {
            Some(Json::String(text)) => Ok(Outcome::Raises {
                text: text.clone(),
                user: json.get("user").and_then(Json::as_bool).unwrap_or(false),
            }),
            Some(_) => Err(RecordedError::Value(json.to_string())),
            None => value_from_json(json, tensors).map(Outcome::Value),
        }
    }
}

/// Returns the name of a value's kind in recorded JSON.
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::None => "none",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int",
        Value::Float(_) => "float",
        Value::Complex(_) => "complex",
        Value::Str(_) => "str",
        Value::Device(_) => "device",
        Value::Tensor(_) => "tensor",
        Value::List(_) => "list",
        Value::Tuple(_) => "tuple",
        Value::Dict(_) => "dict",
        Value::Object(_) => "object",
        Value::Enum(_) => "enum",
        Value::Future(_) => "Future",
        Value::Function(_) => "Function",
    }
}

/// Reads a value.
///
/// # Errors
/// If `json` is not a value, or refers to a tensor that is not in `tensors`.
pub fn value_from_json(json: &Json, tensors: &Tensors) -> Result<Value, RecordedError> {
    let wrong = || RecordedError::Value(json.to_string());
    let (kind, body) = only_member(json).ok_or_else(wrong)?;
    let items = |body: &Json| -> Result<Vec<Value>, RecordedError> {
        let items = body.as_array().ok_or_else(wrong)?;
        items.iter().map(|item| value_from_json(item, tensors)).collect()
    };
    Ok(match kind {
        "none" => Value::None,
        "bool" => Value::Bool(body.as_bool().ok_or_else(wrong)?),
        "int" => Value::Int(body.as_i64().ok_or_else(wrong)?),
        "float" => Value::Float(float(body).ok_or_else(wrong)?),
        "complex" => match body.as_array().map(Vec::as_slice) {
            Some([re, im]) => {
                let part = |json| float(json).ok_or_else(wrong);
                Value::Complex(Complex64::new(part(re)?, part(im)?))
            }
            _ => return Err(wrong()),
        },
        "str" => Value::str(body.as_str().ok_or_else(wrong)?),
        "device" => Value::Device(body.as_str().and_then(Device::parse).ok_or_else(wrong)?),
        "tensor" => match body.as_str() {
            Some(key) => tensors.get(key)?.into(),
            None => inline_tensor(body)?.ok_or_else(wrong)?.into(),
        },
        "tuple" => Value::tuple(items(body)?),
        "list" => list(items(body)?),
        "dict" => {
            let mut entries = Vec::new();
            for pair in body.as_array().ok_or_else(wrong)? {
                match <[Value; 2]>::try_from(items(pair)?) {
                    Ok([key, value]) => entries.push((key, value)),
                    Err(_) => return Err(wrong()),
                }
            }
            dict(entries)
        }
        _ => return Err(wrong()),
    })
}

/// Returns a list with the elements `items`, whose element type is their common type if they have one.
pub fn list(items: Vec<Value>) -> Value {
    Value::List(ListValue::new(common_type(&items), items))
}

/// Returns a dictionary with the entries `entries`. Its key and value types are the common types of keys and values, if there are such types.
pub fn dict(entries: Vec<(Value, Value)>) -> Value {
    let entries: IndexMap<Key, Value> = entries.into_iter().map(|(key, value)| (Key(key), value)).collect();
    let keys: Vec<Value> = entries.keys().map(|k| k.0.clone()).collect();
    let values: Vec<Value> = entries.values().cloned().collect();
    Value::Dict(DictValue::new(common_type(&keys), common_type(&values), entries))
}

fn only_member(json: &Json) -> Option<(&str, &Json)> {
    let mut members = json.as_object()?.iter();
    let (key, value) = members.next()?;
    members.next().is_none().then_some((key.as_str(), value))
}

/// Returns the value of a JSON number, or of a string for a value that JSON cannot represent.
fn float(json: &Json) -> Option<f64> {
    match json {
        Json::String(name) => match name.as_str() {
            "nan" => Some(f64::NAN),
            "inf" => Some(f64::INFINITY),
            "-inf" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        number => number.as_f64(),
    }
}

/// Returns the JSON representation of a number, which [`float`] reads.
fn written(number: f64) -> Json {
    match number {
        number if number.is_nan() => "nan".into(),
        f64::INFINITY => "inf".into(),
        f64::NEG_INFINITY => "-inf".into(),
        number => number.into(),
    }
}

/// Returns the tensor whose elements `body` contains; `None` if the JSON is malformed.
fn inline_tensor(body: &Json) -> Result<Option<Tensor>, RecordedError> {
    let parse = || {
        let dtype = DType::from_python_name(body.get("dtype")?.as_str()?)?;
        let sizes: Option<Vec<i64>> = body.get("shape")?.as_array()?.iter().map(Json::as_i64).collect();
        Some((dtype, sizes?, body.get("data")?.as_array()?))
    };
    let Some((dtype, sizes, data)) = parse() else {
        return Ok(None);
    };
    let floats = || -> Option<Vec<f64>> { data.iter().map(float).collect() };
    let integers = || -> Option<Vec<i64>> {
        let element = |json: &Json| json.as_bool().map_or_else(|| json.as_i64(), |flag| Some(flag.into()));
        data.iter().map(element).collect()
    };
    let tensor = if dtype.is_complex() {
        let Some(parts) = floats() else { return Ok(None) };
        let bytes: Vec<u8> = match dtype {
            DType::ComplexFloat => parts.iter().flat_map(|&x| (x as f32).to_le_bytes()).collect(),
            _ => parts.iter().flat_map(|x| x.to_le_bytes()).collect(),
        };
        Tensor::from_bytes(dtype, &sizes, &bytes)
    } else if dtype.is_floating_point() {
        let Some(elements) = floats() else { return Ok(None) };
        Tensor::from_elements::<DoubleElement>(&elements, &sizes).and_then(|t| t.to_dtype(dtype))
    } else {
        let Some(elements) = integers() else { return Ok(None) };
        Tensor::from_i64(&elements, &sizes).and_then(|t| t.to_dtype(dtype))
    };
    tensor.map(Some).map_err(|source| RecordedError::Tensor {
        name: "(in line)".to_owned(),
        source,
    })
}

/// Returns the element type of a container: the common type of its scalars or tensors, or `Any` if they differ.
pub fn common_type(items: &[Value]) -> TypeId {
    let simple = |v: &Value| match v {
        Value::Bool(_) => types::BOOL,
        Value::Int(_) => types::INT,
        Value::Float(_) => types::FLOAT,
        Value::Complex(_) => types::COMPLEX,
        Value::Str(_) => types::STR,
        Value::Tensor(_) => types::TENSOR,
        _ => types::ANY,
    };
    let first = items.first().map_or(types::ANY, simple);
    if items.iter().all(|v| simple(v) == first) {
        first
    } else {
        types::ANY
    }
}

/// Collects outcomes of calls for writing: values as JSON, tensors for one `.safetensors` file.
#[derive(Default)]
pub struct Results {
    values: Vec<Json>,
    tensors: Vec<(String, Tensor)>,
}

impl Results {
    /// Adds the result of a call.
    ///
    /// # Errors
    /// If the value has no written form.
    pub fn push(&mut self, value: &Value) -> Result<(), RecordedError> {
        let prefix = format!("r{}", self.values.len());
        let json = self.encode(value, &prefix)?;
        self.values.push(json);
        Ok(())
    }

    /// Adds the outcome of a call that raised an exception.
    pub fn push_raised(&mut self, text: &str) {
        self.values.push(json!({ "raises": text }));
    }

    /// Returns the JSON of a value. Its tensors are collected for the `.safetensors` file, under keys that begin with `name`.
    fn encode(&mut self, value: &Value, name: &str) -> Result<Json, RecordedError> {
        let mut list = |items: &[Value]| -> Result<Json, RecordedError> {
            let each = items.iter().enumerate();
            Ok(Json::Array(
                each.map(|(i, v)| self.encode(v, &format!("{name}.{i}")))
                    .collect::<Result<_, _>>()?,
            ))
        };
        Ok(match value {
            Value::None => json!({ "none": true }),
            Value::Bool(b) => json!({ "bool": b }),
            Value::Int(i) => json!({ "int": i }),
            Value::Float(f) => json!({ "float": written(*f) }),
            Value::Str(s) => json!({ "str": &**s }),
            Value::Complex(c) => json!({ "complex": [written(c.re), written(c.im)] }),
            Value::Device(d) => json!({ "device": d.to_string() }),
            Value::Tensor(t) => {
                self.tensors.push((name.to_owned(), t.get()));
                json!({ "tensor": name })
            }
            Value::List(l) => json!({ "list": list(&l.items())? }),
            Value::Tuple(t) => json!({ "tuple": list(&t.items)? }),
            Value::Dict(d) => {
                let pairs: Vec<(Value, Value)> = d.with(|e| e.iter().map(|(k, v)| (k.0.clone(), v.clone())).collect());
                let each = pairs.iter().enumerate().map(|(i, (k, v))| {
                    Ok(json!([
                        self.encode(k, &format!("{name}.k{i}"))?,
                        self.encode(v, &format!("{name}.v{i}"))?
                    ]))
                });
                json!({ "dict": each.collect::<Result<Vec<Json>, RecordedError>>()? })
            }
            Value::Object(_) | Value::Enum(_) | Value::Future(_) | Value::Function(_) => {
                return Err(RecordedError::Unwritable(kind(value)));
            }
        })
    }

    /// Returns the JSON text `{"results": [...], "crc32": CHECKSUM}` and the bytes of the `.safetensors` file, which has the same checksum in its metadata.
    ///
    /// # Errors
    /// If a tensor cannot be written.
    pub fn finish(self) -> Result<(String, Vec<u8>), RecordedError> {
        let (file, checksum) = to_file(&self.tensors)?;
        let mut object = Map::new();
        object.insert("results".to_owned(), Json::Array(self.values));
        object.insert(CHECKSUM.to_owned(), Json::String(checksum));
        Ok((Json::Object(object).to_string(), file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: Json) -> Result<Value, RecordedError> {
        value_from_json(&json, &Tensors::default())
    }

    #[test]
    fn nested_containers_are_read() {
        let value =
            read(json!({"dict": [[{"str": "a"}, {"list": [{"int": 1}, {"tuple": [{"none": true}]}]}]]})).unwrap();
        let Value::Dict(dict) = value else { panic!("{value:?}") };
        let list = dict.with(|entries| entries[&Key(Value::str("a"))].items().unwrap());
        assert!(matches!(&list[..], [Value::Int(1), Value::Tuple(t)] if matches!(&t.items[..], [Value::None])));
    }

    #[test]
    fn numbers_that_json_cannot_write_have_names() {
        assert!(matches!(
            read(json!({"float": "-inf"})),
            Ok(Value::Float(f64::NEG_INFINITY))
        ));
        assert!(matches!(read(json!({"float": "nan"})), Ok(Value::Float(x)) if x.is_nan()));
        assert!(
            matches!(read(json!({"complex": [1, "inf"]})), Ok(Value::Complex(c)) if c.re == 1.0 && c.im == f64::INFINITY)
        );
    }

    #[test]
    fn what_is_read_is_written() {
        let mut results = Results::default();
        let values = [
            json!({"complex": [1.5, "-inf"]}),
            json!({"device": "cuda:1"}),
            json!({"list": [{"complex": ["nan", 0.0]}, {"float": "inf"}]}),
        ];
        for value in &values {
            results.push(&read(value.clone()).unwrap()).unwrap();
        }
        let (text, file) = results.finish().unwrap();
        let written: Json = serde_json::from_str(&text).unwrap();
        let checksum = written[CHECKSUM].as_str().unwrap();
        assert_eq!(written, json!({ "results": values, CHECKSUM: checksum }));
        // The file has the same checksum.
        assert!(String::from_utf8_lossy(&file).contains(checksum));
    }

    #[test]
    fn tensors_in_line_have_their_dtype() {
        for (dtype, data, expected) in [
            ("bfloat16", json!([1.5, "nan"]), 2),
            ("complex64", json!([1, 2, "inf", 4]), 2),
            ("complex128", json!([1, 2, 3, 4]), 2),
            ("bool", json!([true, false]), 2),
            ("int64", json!([i64::MIN, i64::MAX]), 2),
        ] {
            let value = read(json!({"tensor": {"dtype": dtype, "shape": [2], "data": data}})).unwrap();
            let tensor = value.as_tensor().unwrap();
            assert_eq!((tensor.dtype().python_name(), tensor.numel()), (dtype, expected));
        }
        let longs = read(json!({"tensor": {"dtype": "int64", "shape": [2], "data": [i64::MIN, i64::MAX]}})).unwrap();
        assert_eq!(longs.as_tensor().unwrap().to_vec::<i64>(), [i64::MIN, i64::MAX]);
        assert!(read(json!({"tensor": {"dtype": "int64", "shape": [3], "data": [1]}})).is_err());
        assert!(read(json!({"tensor": {"dtype": "int64", "shape": [1], "data": [1.5]}})).is_err());
    }

    #[test]
    fn other_json_is_refused() {
        for json in [
            json!(3),
            json!({}),
            json!({"int": 1.5}),
            json!({"dict": [[{"int": 1}]]}),
            json!({"object": 1}),
            json!({"complex": [1]}),
            json!({"tensor": "missing"}),
        ] {
            assert!(read(json.clone()).is_err(), "{json}");
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        let tensor = Tensor::from_f32(&[1.0, f32::NAN], &[2]).unwrap();
        let value = Value::tuple(vec![
            Value::Float(f64::INFINITY),
            tensor.into(),
            Value::str("s"),
            Value::Int(i64::MIN),
        ]);
        let mut results = Results::default();
        results.push(&value).unwrap();
        results.push_raised("text");
        let (text, file) = results.finish().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tensors.safetensors");
        std::fs::write(&path, file).unwrap();
        let tensors = Tensors::open(&path).unwrap();
        let json: Json = serde_json::from_str(&text).unwrap();
        let Outcome::Value(back) = Outcome::from_json(&json["results"][0], &tensors).unwrap() else {
            panic!("{text}")
        };
        crate::compare::values(&value, &back, crate::compare::Tolerance::EXACT).unwrap();
        assert!(matches!(
            Outcome::from_json(&json["results"][1], &tensors),
            Ok(Outcome::Raises { user: false, .. })
        ));
    }
}
