//! Recorded cases: a model, calls of its methods, and what real PyTorch returned. README.md describes the files.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use crate::compare::Tolerance;
use crate::value::{Malformed, Outcome, Tensors};

/// A model with calls that are made in order on one instance of it.
#[derive(Clone, Debug)]
pub struct Case {
    /// `NAME` of a model, `FOLDER/ID` of an operator's case.
    pub name: String,
    /// The archive.
    pub model: PathBuf,
    /// Where the case's tensors stand: `tensors.safetensors` of this folder.
    pub folder: PathBuf,
    /// The case as recorded.
    pub json: Json,
}

impl Case {
    /// How far numbers may differ.
    pub fn tolerance(&self) -> Result<Tolerance, Malformed> {
        let number = |key: &str| {
            self.json
                .get(key)
                .and_then(Json::as_f64)
                .ok_or_else(|| Malformed(format!("{}: no {key}", self.name)))
        };
        Ok(Tolerance {
            rtol: number("rtol")?,
            atol: number("atol")?,
        })
    }

    /// The recorded outcome of each call.
    pub fn expected(&self) -> Result<Vec<Outcome>, Malformed> {
        let tensors = Tensors::read(&self.folder.join("tensors.safetensors"))?;
        let calls = self.json.get("calls").and_then(Json::as_array);
        let calls = calls.ok_or_else(|| Malformed(format!("{}: no calls", self.name)))?;
        calls
            .iter()
            .map(|call| Outcome::from_json(call.get("result").unwrap_or(&Json::Null), &tensors))
            .collect()
    }
}

/// The models below a folder, each in one of its own with `model.pt` and `case.json`; sorted by name.
pub fn models(folder: &Path) -> Result<Vec<Case>, Malformed> {
    subfolders(folder)?
        .into_iter()
        .map(|(name, folder)| model(name, folder))
        .collect()
}

/// The model in a folder.
pub fn model(name: String, folder: PathBuf) -> Result<Case, Malformed> {
    let json = read_json(&folder.join("case.json"))?;
    Ok(Case {
        name,
        model: folder.join("model.pt"),
        folder,
        json,
    })
}

/// The operator cases below a folder: a folder for each operator, whose `cases.json` names the archives beside it.
pub fn operators(folder: &Path) -> Result<Vec<Case>, Malformed> {
    let mut cases = Vec::new();
    for (operator, folder) in subfolders(folder)? {
        let file = folder.join("cases.json");
        let Json::Array(list) = read_json(&file)? else {
            return Err(Malformed(format!("{}: no list", file.display())));
        };
        for json in list {
            let member = |key: &str| {
                let found = json.get(key).and_then(Json::as_str);
                found.ok_or_else(|| Malformed(format!("{}: a case has no {key}", file.display())))
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

/// Parses a file of JSON.
pub fn read_json(path: &Path) -> Result<Json, Malformed> {
    let text = fs::read(path).map_err(|error| Malformed(format!("{}: {error}", path.display())))?;
    serde_json::from_slice(&text).map_err(|error| Malformed(format!("{}: {error}", path.display())))
}

fn subfolders(folder: &Path) -> Result<Vec<(String, PathBuf)>, Malformed> {
    let malformed = |error: std::io::Error| Malformed(format!("{}: {error}", folder.display()));
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(malformed)? {
        let entry = entry.map_err(malformed)?;
        if entry.path().is_dir() {
            found.push((entry.file_name().to_string_lossy().into_owned(), entry.path()));
        }
    }
    found.sort();
    Ok(found)
}
