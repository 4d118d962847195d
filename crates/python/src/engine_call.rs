//! One call: arguments, the engine, the result.

use crate::errors::{call_failed, exception};
use crate::hooks::exception_of;
use crate::instance::Instance;
use crate::value::Values;
use frazil::runtime::Signature;
use frazil::{CallError, Model, Value};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// What is called.
#[derive(Clone, Copy)]
pub(crate) enum Call<'a> {
    /// The model, with its hooks.
    Model,
    /// A method or a submodule.
    Path(&'a str),
}

/// Calls with arguments of Python, and returns the result for Python.
pub(crate) fn call<'py>(
    py: Python<'py>,
    instance: &Instance,
    called: Call<'_>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let model = instance.definitions(py);
    let mut values = Values::new(py, &model, instance.kind);
    let mut positional = Vec::with_capacity(args.len());
    for (index, argument) in args.iter_borrowed().enumerate() {
        let value = values.read(&argument);
        positional.push(value.map_err(|error| about_argument(py, &error, &format!("argument {}", index + 1)))?);
    }
    let mut named: Vec<(String, Value)> = Vec::new();
    for (name, argument) in kwargs.into_iter().flat_map(|kwargs| kwargs.iter()) {
        let name: String = name.extract()?;
        let value = values.read(&argument);
        let value = value.map_err(|error| about_argument(py, &error, &format!("argument `{name}`")))?;
        named.push((name, value));
    }
    let path = match called {
        Call::Model => None,
        Call::Path(path) => Some(path),
    };
    let result = instance.with_engine(py, path, |engine| {
        let named: Vec<(&str, Value)> = named
            .iter()
            .map(|(name, value)| (name.as_str(), value.clone()))
            .collect();
        match path {
            None => engine.call_module_with(&positional, &named),
            Some(path) => engine.call_with(path, &positional, &named),
        }
    })?;
    let value = match result {
        Ok(value) => value,
        Err(error) => {
            // What the model wrote before it raised stays written, as in PyTorch.
            values.arrays.write_back()?;
            return Err(failed(py, &model, path, &positional, &named, &error));
        }
    };
    drop(positional);
    drop(named);
    values.arrays.write_back()?;
    values.write(value)
}

fn about_argument(py: Python<'_>, error: &PyErr, what: &str) -> PyErr {
    let text = error.value(py).to_string();
    match error.is_instance_of::<pyo3::exceptions::PyTypeError>(py) {
        true => exception(py, "ArgumentError", &format!("{what}: {text}"), &[]),
        false => PyErr::from_type(error.get_type(py), format!("{what}: {text}")),
    }
}

/// The exception for a failed call: an `ArgumentError` where the arguments do not fit the method.
fn failed(
    py: Python<'_>,
    model: &Model,
    path: Option<&str>,
    positional: &[Value],
    named: &[(String, Value)],
    error: &CallError,
) -> PyErr {
    if let Some(exception) = exception_of(py, error) {
        return exception;
    }
    let signature = |path: &str| Signature::of_method(model.module(), path);
    let path = path.unwrap_or("forward");
    let signature = signature(path).or_else(|| signature(&format!("{path}.forward")));
    if let (CallError::Raised(_), Some(signature)) = (error, signature) {
        let named: Vec<(&str, Value)> = named
            .iter()
            .map(|(name, value)| (name.as_str(), value.clone()))
            .collect();
        if let Err(mismatch) = signature.bind(positional, &named) {
            return exception(py, "ArgumentError", mismatch.to_string().trim_end(), &[]);
        }
    }
    call_failed(py, error)
}
