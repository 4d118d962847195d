//! Recorded cases: calls of a model with their arguments, and results, as JSON beside a `.safetensors` file.
//!
//! ```text
//! {"method": "forward", "calls": [{"args": [VALUE...], "kwargs": {NAME: VALUE...}}, ...]}
//! ```
//!
//! `forward` stands for a call of the module, with its hooks. Recorded cases also hold what was recorded, and of what; other keys are errors.
//!
//! A `VALUE` is one of `{"tensor": KEY}`, `{"int": 3}`, `{"float": 1.5}` (or `"nan"`, `"inf"`, `"-inf"`), `{"bool": true}`, `{"str": "x"}`,
//! `{"none": true}`, `{"list": [...]}`, `{"tuple": [...]}`, `{"dict": [[KEY, VALUE]...]}`.

use frazil::{from_safetensors, to_safetensors};
use frazil_ir::{TypeId, types};
use frazil_runtime::value::{DictValue, Key, ListValue, Value};
use frazil_runtime::{Tensor, TensorError};
use indexmap::IndexMap;
use memmap2::Mmap;
use safetensors::tensor::TensorView;
use safetensors::{SafeTensorError, SafeTensors};
use serde::Deserialize;
use serde::de::Error;
use serde_json::{Map, Value as Json, json};
use std::fs::File;
use std::path::{Path, PathBuf};

/// A case as it stands in its file.
#[derive(Debug, Deserialize)]
pub struct Case {
    /// The method of calls that do not name one.
    #[serde(default = "forward")]
    pub method: String,
    /// Methods besides the called ones that freezing has to keep.
    #[serde(default)]
    pub preserve: Vec<String>,
    /// What is called, in order.
    pub calls: Vec<CaseCall>,
}

/// One call of a case.
#[derive(Debug, Deserialize)]
pub struct CaseCall {
    /// The method, where it is not the case's.
    pub method: Option<String>,
    /// The arguments by position.
    pub args: Vec<Json>,
    /// The arguments by name.
    #[serde(default)]
    pub kwargs: Map<String, Json>,
}

/// The keys of a case: those of [`Case`], then what recorded cases tell those who compare results.
const CASE_KEYS: [&str; 20] = [
    "method",
    "preserve",
    "calls",
    "name",
    "id",
    "model",
    "kind",
    "dtype",
    "source",
    "src",
    "ops",
    "overloads",
    "tags",
    "notes",
    "rtol",
    "atol",
    "tol",
    "f32_error",
    "f32_error_by",
    "freeze_error",
];

/// The keys of a call: those of [`CaseCall`], and what was recorded.
const CALL_KEYS: [&str; 4] = ["method", "args", "kwargs", "result"];

/// Fails where an object has other keys, which are most likely misspelt.
fn check_keys(json: &Json, known: &[&str]) -> Result<(), serde_json::Error> {
    let mut keys = json.as_object().into_iter().flat_map(Map::keys);
    match keys.find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(serde_json::Error::custom(format!(
            "unknown key `{key}`; there are {}",
            known.join(", ")
        ))),
        None => Ok(()),
    }
}

fn forward() -> String {
    "forward".to_owned()
}

/// What is wrong with a case or its tensors.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    /// A file that cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file that is no case.
    #[error("{path} is not a case: {source}")]
    Json {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// A file that is no `.safetensors`.
    #[error("cannot read the tensors of {path}: {source}")]
    Tensors {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: SafeTensorError,
    },
    /// A tensor that the file does not have.
    #[error("the case asks for tensor `{0}`, which is not in its .safetensors file")]
    MissingTensor(String),
    /// A dtype that has no counterpart.
    #[error("tensor `{0}` has dtype {1}, which cannot be read or written")]
    DType(String, String),
    /// A tensor that cannot be made.
    #[error("tensor `{name}`: {source}")]
    Tensor {
        /// Which.
        name: String,
        /// Why.
        #[source]
        source: TensorError,
    },
    /// JSON that is no value.
    #[error("expected a value such as {{\"int\": 3}}, found {0}")]
    Value(String),
    /// A result that has no form in this file (an object, a function).
    #[error("a result of type {0} cannot be written")]
    Unwritable(&'static str),
}

impl Case {
    /// Reads the case at `path`.
    ///
    /// # Errors
    /// When the file cannot be read or is no case.
    pub fn read(path: &Path) -> Result<Case, CaseError> {
        let text = std::fs::read(path).map_err(|source| CaseError::Read {
            path: path.into(),
            source,
        })?;
        let case = serde_json::from_slice(&text).and_then(|json: Json| {
            check_keys(&json, &CASE_KEYS)?;
            let calls = json.get("calls").and_then(Json::as_array);
            calls
                .into_iter()
                .flatten()
                .try_for_each(|call| check_keys(call, &CALL_KEYS))?;
            serde_json::from_value(json)
        });
        case.map_err(|source| CaseError::Json {
            path: path.into(),
            source,
        })
    }
}

/// The tensors beside a case. Of a mapped file those are read that are asked for: a case's results, which stand there too, may be many times its
/// arguments.
pub struct CaseTensors {
    path: PathBuf,
    file: Option<Mmap>,
}

impl CaseTensors {
    /// The tensors beside the case at `case`; none where there is no such file, as a case without tensors needs no such file.
    ///
    /// # Errors
    /// When the file is there and cannot be read, or is no file of tensors.
    pub fn beside(case: &Path) -> Result<CaseTensors, CaseError> {
        let path = case.with_file_name("tensors.safetensors");
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(CaseTensors { path, file: None }),
            Err(source) => return Err(CaseError::Read { path, source }),
        };
        // SAFETY: the mapping is private to the value and only read. Somebody who truncates the file meanwhile gets a fault, as with every
        // mapped file.
        #[allow(unsafe_code, reason = "mapping a file has no safe form")]
        let map = match unsafe { Mmap::map(&file) } {
            Ok(map) => map,
            Err(source) => return Err(CaseError::Read { path, source }),
        };
        match SafeTensors::deserialize(&map) {
            Ok(_) => Ok(CaseTensors { path, file: Some(map) }),
            Err(source) => Err(CaseError::Tensors { path, source }),
        }
    }

    /// The tensor called `name`.
    ///
    /// # Errors
    /// When there is none, or its dtype has no counterpart.
    pub fn get(&self, name: &str) -> Result<Tensor, CaseError> {
        let missing = || CaseError::MissingTensor(name.to_owned());
        let file = self.file.as_ref().ok_or_else(missing)?;
        let tensors = SafeTensors::deserialize(file).map_err(|source| CaseError::Tensors {
            path: self.path.clone(),
            source,
        })?;
        let view = tensors.tensor(name).map_err(|_| missing())?;
        let dtype = from_safetensors(view.dtype())
            .ok_or_else(|| CaseError::DType(name.to_owned(), format!("{:?}", view.dtype())))?;
        let sizes: Vec<i64> = view.shape().iter().map(|&n| n as i64).collect();
        Tensor::from_bytes(dtype, &sizes, view.data()).map_err(|source| CaseError::Tensor {
            name: name.to_owned(),
            source,
        })
    }
}

/// The value that `json` says.
///
/// # Errors
/// When it is no value, or names a tensor that is not there.
pub fn value_from_json(json: &Json, tensors: &CaseTensors) -> Result<Value, CaseError> {
    let wrong = || CaseError::Value(json.to_string());
    let (kind, body) = json
        .as_object()
        .filter(|o| o.len() == 1)
        .and_then(|o| o.iter().next())
        .ok_or_else(wrong)?;
    let items = |body: &Json| -> Result<Vec<Value>, CaseError> {
        body.as_array()
            .ok_or_else(wrong)?
            .iter()
            .map(|v| value_from_json(v, tensors))
            .collect()
    };
    Ok(match kind.as_str() {
        "none" => Value::None,
        "bool" => Value::Bool(body.as_bool().ok_or_else(wrong)?),
        "int" => Value::Int(body.as_i64().ok_or_else(wrong)?),
        "float" => Value::Float(match body {
            Json::String(s) => s.parse().map_err(|_| wrong())?,
            other => other.as_f64().ok_or_else(wrong)?,
        }),
        "str" => Value::str(body.as_str().ok_or_else(wrong)?),
        "tensor" => tensors.get(body.as_str().ok_or_else(wrong)?)?.into(),
        "tuple" => Value::tuple(items(body)?),
        "list" => {
            let items = items(body)?;
            Value::List(ListValue::new(common_type(&items), items))
        }
        "dict" => {
            let mut entries = IndexMap::new();
            for pair in body.as_array().ok_or_else(wrong)? {
                match items(pair)?.as_slice() {
                    [k, v] => entries.insert(Key(k.clone()), v.clone()),
                    _ => return Err(wrong()),
                };
            }
            let keys: Vec<Value> = entries.keys().map(|k| k.0.clone()).collect();
            let values: Vec<Value> = entries.values().cloned().collect();
            Value::Dict(DictValue::new(common_type(&keys), common_type(&values), entries))
        }
        _ => return Err(wrong()),
    })
}

/// The element type of a container read from JSON: that of its scalars or tensors, else `Any`.
fn common_type(items: &[Value]) -> TypeId {
    let simple = |v: &Value| match v {
        Value::Bool(_) => types::BOOL,
        Value::Int(_) => types::INT,
        Value::Float(_) => types::FLOAT,
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

/// Collects results: values as JSON, their tensors for one file.
#[derive(Default)]
pub struct Results {
    values: Vec<Json>,
    tensors: Vec<(String, Tensor)>,
}

impl Results {
    /// Adds the result of a call.
    ///
    /// # Errors
    /// When the value has no written form.
    pub fn push(&mut self, value: &Value) -> Result<(), CaseError> {
        let prefix = format!("r{}", self.values.len());
        let json = self.encode(value, &prefix)?;
        self.values.push(json);
        Ok(())
    }

    /// Adds a call that raised.
    pub fn push_raised(&mut self, text: &str) {
        self.values.push(json!({ "raises": text }));
    }

    /// The JSON of a value; its tensors are kept for the file beside it.
    fn encode(&mut self, value: &Value, name: &str) -> Result<Json, CaseError> {
        let mut list = |items: &[Value]| -> Result<Json, CaseError> {
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
            Value::Float(f) if f.is_finite() => json!({ "float": f }),
            Value::Float(f) if f.is_nan() => json!({ "float": "nan" }),
            Value::Float(f) => json!({ "float": if *f > 0.0 { "inf" } else { "-inf" } }),
            Value::Str(s) => json!({ "str": &**s }),
            Value::Device(d) => json!({ "str": d.to_string() }),
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
                json!({ "dict": each.collect::<Result<Vec<Json>, CaseError>>()? })
            }
            Value::Complex(_) => return Err(CaseError::Unwritable("complex")),
            Value::Object(_) => return Err(CaseError::Unwritable("object")),
            Value::Enum(_) => return Err(CaseError::Unwritable("enum")),
            Value::Future(_) => return Err(CaseError::Unwritable("Future")),
            Value::Function(_) => return Err(CaseError::Unwritable("Function")),
        })
    }

    /// The JSON text and the bytes of the `.safetensors` file.
    ///
    /// # Errors
    /// When a tensor cannot be written.
    pub fn finish(self) -> Result<(String, Vec<u8>), CaseError> {
        let mut rows = Vec::with_capacity(self.tensors.len());
        for (name, tensor) in &self.tensors {
            let dtype = to_safetensors(tensor.dtype())
                .ok_or_else(|| CaseError::DType(name.clone(), tensor.dtype().to_string()))?;
            let shape: Vec<usize> = tensor.sizes().iter().map(|&n| n as usize).collect();
            let bytes = tensor.to_bytes().map_err(|source| CaseError::Tensor {
                name: name.clone(),
                source,
            })?;
            rows.push((name.as_str(), dtype, shape, bytes));
        }
        let failed = |source| CaseError::Tensors {
            path: "tensors.safetensors".into(),
            source,
        };
        let views: Vec<(&str, TensorView<'_>)> = rows
            .iter()
            .map(|(name, dtype, shape, bytes)| Ok((*name, TensorView::new(*dtype, shape.clone(), bytes)?)))
            .collect::<Result<_, _>>()
            .map_err(failed)?;
        let file = safetensors::serialize(views, None).map_err(failed)?;
        let mut object = Map::new();
        object.insert("results".to_owned(), Json::Array(self.values));
        Ok((Json::Object(object).to_string(), file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_are_read_one_by_one() {
        let folder = tempfile::tempdir().unwrap();
        let case = folder.path().join("case.json");
        assert!(matches!(
            CaseTensors::beside(&case).unwrap().get("r0"),
            Err(CaseError::MissingTensor(_))
        ));
        let mut results = Results::default();
        for values in [[1.0, 2.0], [3.0, 4.0]] {
            results.push(&Tensor::from_f32(&values, &[2]).unwrap().into()).unwrap();
        }
        let whole = results.finish().unwrap().1;
        let write = |bytes: &[u8]| std::fs::write(folder.path().join("tensors.safetensors"), bytes).unwrap();
        write(&whole);
        let tensors = CaseTensors::beside(&case).unwrap();
        for (name, values) in [("r1", [3.0, 4.0]), ("r0", [1.0, 2.0])] {
            assert_eq!(tensors.get(name).unwrap().to_f64_vec(), values);
        }
        assert!(tensors.get("r2").is_err());
        drop(tensors);
        // The last byte is missing, the header is cut off, or says that it is longer than the file.
        for damaged in [&whole[..whole.len() - 1], &whole[..4], &whole[..20], &[0xff; 64]] {
            write(damaged);
            assert!(matches!(CaseTensors::beside(&case), Err(CaseError::Tensors { .. })));
        }
    }
}
