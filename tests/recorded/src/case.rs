//! Recorded cases: a model, calls of its methods, and PyTorch's results. README.md describes the files.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use crate::RecordedError;
use crate::compare::Tolerance;
use crate::tensors::Tensors;
use crate::value::Outcome;

/// A model with calls that are run in order on the same instance of the model.
#[derive(Clone, Debug)]
pub struct Case {
    /// The name of the case: `NAME` for a model, `FOLDER/ID` for an operator.
    pub name: String,
    /// The path of the model's archive.
    pub model: PathBuf,
    /// The folder with the case's tensors in `tensors.safetensors`.
    pub folder: PathBuf,
    /// The recorded JSON of the case.
    pub json: Json,
}

impl Case {
    /// Returns the tolerance for floating-point numbers in results.
    pub fn tolerance(&self) -> Result<Tolerance, RecordedError> {
        let number = |key: &str| self.json.get(key).and_then(Json::as_f64).ok_or_else(|| self.lacks(key));
        Ok(Tolerance::new(number("rtol")?, number("atol")?))
    }

    /// Returns the recorded outcome of each call.
    pub fn expected(&self) -> Result<Vec<Outcome>, RecordedError> {
        let tensors = self.tensors()?;
        let calls = self.json.get("calls").and_then(Json::as_array);
        let calls = calls.ok_or_else(|| self.lacks("calls"))?;
        calls
            .iter()
            .map(|call| Outcome::from_json(call.get("result").unwrap_or(&Json::Null), &tensors))
            .collect()
    }

    /// Returns the tensors of the calls' arguments and results.
    pub fn tensors(&self) -> Result<Tensors, RecordedError> {
        Tensors::open(&self.folder.join("tensors.safetensors"))
    }

    fn lacks(&self, key: &str) -> RecordedError {
        RecordedError::Case {
            case: self.name.clone(),
            what: format!("it has no `{key}`"),
        }
    }
}

/// Returns the cases of the models below a folder, sorted by name. Each model has a folder of its own, with `model.pt` and `case.json`.
pub fn models(folder: &Path) -> Result<Vec<Case>, RecordedError> {
    subfolders(folder)?
        .into_iter()
        .map(|(name, folder)| model(name, folder))
        .collect()
}

/// Returns the recorded case of the model in `folder`.
pub fn model(name: String, folder: PathBuf) -> Result<Case, RecordedError> {
    let json = read_json(&folder.join("case.json"))?;
    Ok(Case {
        name,
        model: folder.join("model.pt"),
        folder,
        json,
    })
}

/// Returns the operator cases below a folder. It has a folder for each operator, whose `cases.json` lists the archives beside it.
pub fn operators(folder: &Path) -> Result<Vec<Case>, RecordedError> {
    let mut cases = Vec::new();
    for (operator, folder) in subfolders(folder)? {
        let file = folder.join("cases.json");
        let malformed = |what: String| RecordedError::Case {
            case: file.display().to_string(),
            what,
        };
        let Json::Array(list) = read_json(&file)? else {
            return Err(malformed("expected a list".to_owned()));
        };
        for json in list {
            let member = |key: &str| {
                let found = json.get(key).and_then(Json::as_str);
                found.ok_or_else(|| malformed(format!("a case has no `{key}`")))
            };
            let name = format!("{operator}/{}", member("id")?);
            let model = folder.join(member("model")?);
            cases.push(Case {
                name,
                model,
                folder: folder.clone(),
                json,
            });
        }
    }
    Ok(cases)
}

/// Parses the JSON file at `path`.
pub fn read_json(path: &Path) -> Result<Json, RecordedError> {
    let text = fs::read(path).map_err(|source| RecordedError::Read {
        path: path.into(),
        source,
    })?;
    serde_json::from_slice(&text).map_err(|source| RecordedError::Json {
        path: path.into(),
        source,
    })
}

fn subfolders(folder: &Path) -> Result<Vec<(String, PathBuf)>, RecordedError> {
    let read = |source| RecordedError::Read {
        path: folder.into(),
        source,
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(read)? {
        let entry = entry.map_err(read)?;
        if entry.path().is_dir() {
            found.push((entry.file_name().to_string_lossy().into_owned(), entry.path()));
        }
    }
    found.sort();
    Ok(found)
}
