//! Values of recorded calls, as `case.json` and `results.json` write them.

use std::path::Path;

use safetensors::tensor::Metadata;
use safetensors::{Dtype, SafeTensors};
use serde_json::{Map, Value as Json};

/// Tensors by key: the contents of a `.safetensors` file.
pub struct Tensors {
    bytes: Vec<u8>,
    /// Where the file's header ends and what it says: read once, files have thousands of tensors.
    header: Option<(usize, Metadata)>,
}

impl Tensors {
    /// Reads a file. A file that does not exist is one without tensors: a case whose values are all plain needs none.
    pub fn read(path: &Path) -> Result<Self, Malformed> {
        match std::fs::read(path) {
            Ok(bytes) => {
                SafeTensors::deserialize(&bytes).map_err(|error| Malformed(format!("{}: {error}", path.display())))?;
                Ok(Self::from_bytes(bytes))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::from_bytes(Vec::new())),
            Err(error) => Err(Malformed(format!("{}: {error}", path.display()))),
        }
    }

    /// A file's tensors as bytes.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        let header = SafeTensors::read_metadata(&bytes).ok();
        Self { bytes, header }
    }

    /// The tensor of a key.
    pub fn get(&self, key: &str) -> Result<Tensor, Malformed> {
        let missing = || Malformed(format!("there is no tensor {key}"));
        let (length, metadata) = self.header.as_ref().ok_or_else(missing)?;
        let info = metadata.info(key).ok_or_else(missing)?;
        // The elements follow the header, which follows its length in eight bytes.
        let (start, end) = info.data_offsets;
        let data = self.bytes.get(8 + length + start..8 + length + end);
        Ok(Tensor {
            dtype: info.dtype,
            shape: info.shape.clone(),
            data: data.ok_or_else(missing)?.to_vec(),
        })
    }
}

/// What is no recorded case, with the reason.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub String);

/// A dense tensor; elements little-endian in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Type of the elements.
    pub dtype: Dtype,
    /// Sizes of the dimensions.
    pub shape: Vec<usize>,
    /// The elements' bytes.
    pub data: Vec<u8>,
}

/// A value of TorchScript.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A tensor.
    Tensor(Tensor),
    /// An integer.
    Int(i64),
    /// A floating-point number, which may be NaN or infinite.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A string.
    Str(String),
    /// `None`.
    None,
    /// A list.
    List(Vec<Value>),
    /// A tuple, named or not.
    Tuple(Vec<Value>),
    /// A dict, in order of insertion.
    Dict(Vec<(Value, Value)>),
}

/// What a call ended in.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It returned a value.
    Value(Value),
    /// It raised an exception.
    Raises {
        /// The exception's text.
        text: String,
        /// Whether the program's own `raise` or `assert` did it; only then is the text compared.
        user: bool,
    },
}

impl Outcome {
    /// Reads `VALUE` or `{"raises": text}`.
    pub fn from_json(json: &Json, tensors: &Tensors) -> Result<Self, Malformed> {
        match json.get("raises") {
            Some(Json::String(text)) => {
                let user = json.get("user").and_then(Json::as_bool).unwrap_or(false);
                Ok(Self::Raises {
                    text: text.clone(),
                    user,
                })
            }
            Some(other) => Err(Malformed(format!("\"raises\" of {other}"))),
            None => Value::from_json(json, tensors).map(Self::Value),
        }
    }
}

impl Value {
    /// Reads `{"tensor": KEY}`, `{"int": 3}` and so on; tensors come from `tensors`.
    pub fn from_json(json: &Json, tensors: &Tensors) -> Result<Self, Malformed> {
        let malformed = || Malformed(format!("no value: {json}"));
        let (kind, payload) = json.as_object().and_then(only_member).ok_or_else(malformed)?;
        let items = |payload: &Json| -> Result<Vec<Value>, Malformed> {
            payload
                .as_array()
                .ok_or_else(malformed)?
                .iter()
                .map(|item| Self::from_json(item, tensors))
                .collect()
        };
        Ok(match kind {
            "tensor" => Self::Tensor(tensors.get(payload.as_str().ok_or_else(malformed)?)?),
            "int" => Self::Int(payload.as_i64().ok_or_else(malformed)?),
            "float" => Self::Float(float(payload).ok_or_else(malformed)?),
            "bool" => Self::Bool(payload.as_bool().ok_or_else(malformed)?),
            "str" => Self::Str(payload.as_str().ok_or_else(malformed)?.to_owned()),
            "none" => Self::None,
            "list" => Self::List(items(payload)?),
            "tuple" => Self::Tuple(items(payload)?),
            "dict" => {
                let mut members = Vec::new();
                for pair in payload.as_array().ok_or_else(malformed)? {
                    let [key, value] = pair.as_array().map(Vec::as_slice).ok_or_else(malformed)? else {
                        return Err(malformed());
                    };
                    members.push((Self::from_json(key, tensors)?, Self::from_json(value, tensors)?));
                }
                Self::Dict(members)
            }
            _ => return Err(malformed()),
        })
    }

    /// The kind's name, as it stands in the files.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Tensor(_) => "tensor",
            Self::Int(_) => "int",
            Self::Float(_) => "float",
            Self::Bool(_) => "bool",
            Self::Str(_) => "str",
            Self::None => "none",
            Self::List(_) => "list",
            Self::Tuple(_) => "tuple",
            Self::Dict(_) => "dict",
        }
    }
}

fn only_member(object: &Map<String, Json>) -> Option<(&str, &Json)> {
    let mut members = object.iter();
    let (key, value) = members.next()?;
    members.next().is_none().then_some((key.as_str(), value))
}

/// A number, or the name of one that JSON cannot write.
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(json: Json) -> Result<Value, Malformed> {
        Value::from_json(&json, &Tensors::from_bytes(Vec::new()))
    }

    #[test]
    fn nested_containers_are_read() {
        let value = read(json!({"dict": [[{"str": "a"}, {"list": [{"int": 1}, {"tuple": [{"none": true}]}]}]]}));
        let list = Value::List(vec![Value::Int(1), Value::Tuple(vec![Value::None])]);
        assert_eq!(value, Ok(Value::Dict(vec![(Value::Str("a".into()), list)])));
    }

    #[test]
    fn numbers_that_json_cannot_write_have_names() {
        assert_eq!(read(json!({"float": "-inf"})), Ok(Value::Float(f64::NEG_INFINITY)));
        assert!(matches!(read(json!({"float": "nan"})), Ok(Value::Float(x)) if x.is_nan()));
    }

    #[test]
    fn what_is_no_value_is_refused() {
        for json in [
            json!(3),
            json!({}),
            json!({"int": 1.5}),
            json!({"dict": [[{"int": 1}]]}),
            json!({"object": 1}),
        ] {
            assert!(read(json.clone()).is_err(), "{json}");
        }
        assert!(read(json!({"tensor": "missing"})).is_err());
    }
}
