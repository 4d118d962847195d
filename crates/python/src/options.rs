//! Options of engines, as keyword arguments.

use crate::errors::{type_error, value_error};
use frazil::{EngineKind, EngineOptions, Limits};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyDictMethods};
use std::path::PathBuf;

/// The names of all options, for messages.
const NAMES: &str =
    "cache_bytes, cache_dir, engine, fuse, fusion_strategy, limits, specialisations, strict, target_cpu, threads, tune";

/// Options for running a model.
#[derive(Clone)]
pub(crate) struct Options {
    pub(crate) engine: EngineOptions,
    pub(crate) limits: Limits,
}

impl Default for Options {
    fn default() -> Options {
        let engine = EngineOptions::default();
        let kind = match cfg!(feature = "codegen") {
            true => EngineKind::Native,
            false => EngineKind::Interpreter,
        };
        Options {
            engine: engine.kind(kind),
            limits: Limits::NONE,
        }
    }
}

fn wrong(name: &str, expected: &str, given: &Bound<'_, PyAny>) -> PyErr {
    type_error(format!(
        "`{name}`: expected {expected}, not {}",
        crate::arrays::shown(given)
    ))
}

fn truth(name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    value.extract().map_err(|_| wrong(name, "a bool", value))
}

fn count(name: &str, value: &Bound<'_, PyAny>) -> PyResult<usize> {
    let count: i64 = value.extract().map_err(|_| wrong(name, "an int", value))?;
    match usize::try_from(count) {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(value_error(format!(
            "`{name}`: expected a positive number, not {count}"
        ))),
    }
}

fn path(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Option<PathBuf>> {
    match value.is_none() {
        true => Ok(None),
        false => value.extract().map(Some).map_err(|_| wrong(name, "a path", value)),
    }
}

fn text(name: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    value.extract().map_err(|_| wrong(name, "a str", value))
}

/// Returns the number of shapes that get code of their own, and the maximum number of call signatures, of a strategy such as `[("STATIC", 2), ("DYNAMIC", 10)]`.
/// Without `DYNAMIC`, there is no maximum.
fn fusion_strategy(value: &Bound<'_, PyAny>) -> PyResult<(usize, Option<usize>)> {
    let expected = "a list of pairs such as (\"STATIC\", 2) and (\"DYNAMIC\", 10)";
    let pairs: Vec<(String, usize)> = value.extract().map_err(|_| wrong("fusion_strategy", expected, value))?;
    let (mut shapes, mut dynamic) = (0, None);
    for (kind, depth) in pairs {
        match kind.as_str() {
            "STATIC" => shapes += depth,
            "DYNAMIC" => dynamic = Some(dynamic.unwrap_or(0) + depth),
            other => {
                return Err(value_error(format!(
                    "`fusion_strategy`: expected 'STATIC' or 'DYNAMIC', not {other:?}"
                )));
            }
        }
    }
    Ok((shapes, dynamic.map(|depth| shapes + depth)))
}

impl Options {
    /// Returns these options with those in `given` replaced.
    ///
    /// # Errors
    /// `TypeError` for unknown names and values of other types, `ValueError` for values that an option does not accept.
    pub(crate) fn with(&self, given: Option<&Bound<'_, PyDict>>) -> PyResult<Options> {
        let mut options = self.clone();
        for (name, value) in given.into_iter().flat_map(|given| given.iter()) {
            let name: String = name.extract()?;
            let engine = &mut options.engine;
            match name.as_str() {
                "engine" => {
                    engine.kind = match text(&name, &value)?.as_str() {
                        "native" => EngineKind::Native,
                        "interpreter" => EngineKind::Interpreter,
                        other => {
                            return Err(value_error(format!(
                                "`engine`: expected 'native' or 'interpreter', not {other:?}"
                            )));
                        }
                    }
                }
                "threads" => engine.compile.threads = count(&name, &value)?,
                "target_cpu" => engine.compile.target_cpu = text(&name, &value)?,
                "strict" => engine.strict = truth(&name, &value)?,
                "fuse" => engine.compile.fuse = truth(&name, &value)?,
                "fusion_strategy" => {
                    let (shapes, most) = fusion_strategy(&value)?;
                    engine.fusion_strategy.static_shapes = shapes;
                    engine.specialisations = most;
                }
                "cache_bytes" => engine.compile.cache_bytes = count(&name, &value)? as u64,
                "cache_dir" => engine.compile.cache_dir = path(&name, &value)?,
                "tune" => engine.compile.tune = path(&name, &value)?,
                "specialisations" if value.is_none() => engine.specialisations = None,
                "specialisations" => engine.specialisations = Some(count(&name, &value)?),
                "limits" if value.is_none() => options.limits = Limits::NONE,
                "limits" => {
                    let text = text(&name, &value)?;
                    options.limits = text.parse().map_err(|e| value_error(format!("`limits`: {e}")))?;
                }
                _ => {
                    return Err(type_error(format!(
                        "unexpected keyword argument `{name}`; the options are {NAMES}"
                    )));
                }
            }
        }
        Ok(options)
    }

    /// Returns the options by name.
    pub(crate) fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let engine = &self.engine;
        let out = PyDict::new(py);
        out.set_item("cache_bytes", engine.compile.cache_bytes)?;
        out.set_item("cache_dir", engine.compile.cache_dir.clone())?;
        let kind = match engine.kind {
            EngineKind::Native => "native",
            EngineKind::Interpreter => "interpreter",
        };
        out.set_item("engine", kind)?;
        out.set_item("fuse", engine.compile.fuse)?;
        let shapes = engine.fusion_strategy.static_shapes;
        let dynamic = engine
            .specialisations
            .map(|most| ("DYNAMIC", most.saturating_sub(shapes)));
        let strategy: Vec<(&str, usize)> = [("STATIC", shapes)].into_iter().chain(dynamic).collect();
        out.set_item("fusion_strategy", strategy)?;
        let limits = self.limits.to_string();
        out.set_item("limits", Some(limits).filter(|text| !text.is_empty() && text != "none"))?;
        out.set_item("specialisations", engine.specialisations)?;
        out.set_item("strict", engine.strict)?;
        out.set_item("target_cpu", &engine.compile.target_cpu)?;
        out.set_item("threads", engine.compile.threads)?;
        out.set_item("tune", engine.compile.tune.clone())?;
        Ok(out)
    }
}
