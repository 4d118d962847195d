//! Steps that write and read files: `torch.save`, `torch.load`, `torch.jit.save`, `torch.jit.load`.

use std::path::PathBuf;

use super::containers::dictionary;
use super::convert::device;
use super::module::Module;
use super::objects::{Failure, Kwargs, Object, Outcome};
use super::state::state_of;
use frazil::{SaveOptions, Session, Value, read_checkpoint, write_checkpoint};
use tempfile::TempDir;

thread_local! {
    static FOLDER: TempDir = TempDir::new().unwrap();
}

/// Returns the path of a program's file.
fn path(name: &Object) -> Result<PathBuf, Failure> {
    let name = name.text()?;
    Ok(FOLDER.with(|folder| folder.path().join(name)))
}

fn none() -> Outcome {
    Ok(Object::Value(Value::None))
}

/// Returns a call of a function on files; `None` for others.
pub fn call(name: &str, args: &[Object], kwargs: &Kwargs) -> Option<Outcome> {
    let run = || match (name, args) {
        ("torch.save", [value, file]) => {
            write_checkpoint(&state_of(value)?, path(file)?)?;
            none()
        }
        ("torch.load", [file]) => {
            if let Some((_, location)) = kwargs.iter().find(|(name, _)| name == "map_location") {
                device(location)?;
            }
            let state = read_checkpoint(path(file)?)?;
            let entries = state.into_iter().map(|(name, t)| (name, t.into()));
            Ok(Object::Value(Value::Dict(dictionary(entries))))
        }
        ("torch.jit.save", [Object::Module(module), file]) => {
            module.saved()?.save(path(file)?, &SaveOptions::default())?;
            none()
        }
        ("torch.jit.load", [file, rest @ ..]) => {
            let named = kwargs.iter().find(|(name, _)| name == "map_location");
            let location = rest.first().or(named.map(|(_, object)| object));
            let location = match location {
                None => None,
                Some(object @ Object::Value(Value::None | Value::Str(_) | Value::Device(_))) => device(object)?,
                Some(_) => {
                    return Err(Failure::lacks(
                        "map_location should be either None, string or torch.device",
                    ));
                }
            };
            let model = Session::new().load_on(path(file)?, location)?;
            Ok(Object::Module(Module::new(model)))
        }
        _ => Err(Failure::lacks(name)),
    };
    matches!(name, "torch.save" | "torch.load" | "torch.jit.save" | "torch.jit.load").then(run)
}

/// Calls `module.save(path)`.
pub fn save(module: &Module, args: &[Object]) -> Outcome {
    let [file] = args else {
        return Err(Failure::lacks("other arguments of `save`"));
    };
    module.saved()?.save(path(file)?, &SaveOptions::default())?;
    none()
}
