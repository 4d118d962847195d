//! Case files of `jit-run --calls`: calls of a model with their arguments, as JSON beside a `.safetensors` file.
//!
//! ```text
//! {"method": "forward", "calls": [{"args": [VALUE...], "kwargs": {NAME: VALUE...}}, ...]}
//! ```
//!
//! The method `forward` is a call of the module, with its hooks; the path of a submodule is a call of the submodule. Recorded cases also have keys for their
//! results and origin; other keys, and duplicate keys, are errors. [`frazil_recorded::value`] describes the values.

use crate::unique_json;
use frazil_recorded::RecordedError;
use serde::Deserialize;
use serde::de::Error;
use serde_json::{Map, Value as Json};
use std::path::Path;

/// The contents of a case file.
#[derive(Debug, Deserialize)]
pub struct Case {
    /// The method that calls run if they name none.
    #[serde(default = "forward")]
    pub method: String,
    /// Additional methods that freezing must preserve.
    #[serde(default)]
    pub preserve: Vec<String>,
    /// The calls, in order.
    pub calls: Vec<CaseCall>,
}

/// A call of a method in a case file.
#[derive(Debug, Deserialize)]
pub struct CaseCall {
    /// The name of the method, if it differs from the method of the case.
    pub method: Option<String>,
    /// The positional arguments.
    pub args: Vec<Json>,
    /// The keyword arguments.
    #[serde(default)]
    pub kwargs: Map<String, Json>,
}

/// The keys of a case file: the fields of [`Case`], then the additional keys of recorded cases.
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

/// The keys of a call in a case file: the fields of [`CaseCall`], and the recorded result.
const CALL_KEYS: [&str; 4] = ["method", "args", "kwargs", "result"];

/// Fails if a JSON object has keys other than `known`, which are probably misspelt.
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

impl Case {
    /// Reads the case at `path`.
    ///
    /// # Errors
    /// If the file cannot be read or is not a case.
    pub fn read(path: &Path) -> Result<Case, RecordedError> {
        let text = std::fs::read(path).map_err(|source| RecordedError::Read {
            path: path.into(),
            source,
        })?;
        let case = unique_json::from_slice(&text).and_then(|json: Json| {
            check_keys(&json, &CASE_KEYS)?;
            let calls = json.get("calls").and_then(Json::as_array);
            calls
                .into_iter()
                .flatten()
                .try_for_each(|call| check_keys(call, &CALL_KEYS))?;
            serde_json::from_value(json)
        });
        case.map_err(|source| RecordedError::Json {
            path: path.into(),
            source,
        })
    }
}
