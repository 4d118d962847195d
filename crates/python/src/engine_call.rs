//! Execution of one call: arguments, engine, result.

use crate::arrays::Kind;
use crate::errors::{call_failed, exception};
use crate::hooks::exception_of;
use crate::instance::Instance;
use crate::value::Values;
use frazil::runtime::Signature;
use frazil::{CallError, Model, Value};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// The callee.
#[derive(Clone, Copy)]
pub(crate) enum Call<'a> {
    /// The model, with its hooks.
    Model,
    /// A method or a submodule.
    Path(&'a str),
}

/// The arguments of a call.
pub(crate) struct Arguments<'m, 'py> {
    pub(crate) positional: Vec<Value>,
    pub(crate) named: Vec<(String, Value)>,
    /// Dropped last. If the caller's memory still has other references then, the model has stored them.
    pub(crate) values: Values<'m, 'py>,
}

impl<'m, 'py> Arguments<'m, 'py> {
    /// Reads the arguments of a call of `model`.
    pub(crate) fn read(
        py: Python<'py>,
        model: &'m Model,
        kind: Kind,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Arguments<'m, 'py>> {
        let mut values = Values::new(py, model, kind);
        let mut positional = Vec::with_capacity(args.len());
        for (index, argument) in args.iter_borrowed().enumerate() {
            let value = values.read(&argument);
            positional.push(value.map_err(|error| about_argument(py, &error, &format!("argument {}", index + 1)))?);
        }
        let mut named = Vec::new();
        for (name, argument) in kwargs.into_iter().flat_map(|kwargs| kwargs.iter()) {
            let name: String = name.extract()?;
            let value = values.read(&argument);
            let value = value.map_err(|error| about_argument(py, &error, &format!("argument `{name}`")))?;
            named.push((name, value));
        }
        Ok(Arguments {
            values,
            positional,
            named,
        })
    }
}

fn by_name(named: &[(String, Value)]) -> Vec<(&str, Value)> {
    named
        .iter()
        .map(|(name, value)| (name.as_str(), value.clone()))
        .collect()
}

/// Calls with Python arguments, and returns the result as a Python object.
pub(crate) fn call<'py>(
    py: Python<'py>,
    instance: &Instance,
    called: Call<'_>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let model = instance.definitions(py)?;
    let arguments = Arguments::read(py, &model, instance.kind, args, kwargs)?;
    let path = match called {
        Call::Model => None,
        Call::Path(path) => Some(path),
    };
    let (positional, named) = (&arguments.positional, &arguments.named);
    let result = instance.with_engine(py, path, |engine| {
        let named = by_name(named);
        match path {
            None => engine.call_module_with(positional, &named),
            Some(path) => engine.call_with(path, positional, &named),
        }
    })?;
    // Writes of the model before it raised are kept, as in PyTorch.
    arguments.values.arrays.write_back()?;
    match result {
        Ok(value) => {
            let Arguments {
                positional,
                named,
                values,
            } = arguments;
            drop((positional, named));
            values.write(value)
        }
        Err(error) => Err(failed(py, &model, path, &arguments, &error)),
    }
}

fn about_argument(py: Python<'_>, error: &PyErr, what: &str) -> PyErr {
    let text = format!("{what}: {}", error.value(py));
    match error.is_instance_of::<PyTypeError>(py) {
        true => exception(py, "ArgumentError", &text, &[]),
        false => PyErr::from_type(error.get_type(py), text),
    }
}

/// Returns the exception for a failed call: an `ArgumentError` if the arguments do not fit the method.
pub(crate) fn failed(
    py: Python<'_>,
    model: &Model,
    path: Option<&str>,
    arguments: &Arguments<'_, '_>,
    error: &CallError,
) -> PyErr {
    if let Some(exception) = exception_of(py, error) {
        return exception;
    }
    let signature = |path: &str| Signature::of_method(model.module(), path);
    let path = path.unwrap_or("forward");
    let signature = signature(path).or_else(|| signature(&format!("{path}.forward")));
    if let (CallError::Raised(_), Some(signature)) = (error, signature)
        && let Err(mismatch) = signature.bind(&arguments.positional, &by_name(&arguments.named))
    {
        let text = mismatch.to_string();
        let text = text.trim_end();
        return exception(
            py,
            "ArgumentError",
            text.strip_prefix("RuntimeError: ").unwrap_or(text),
            &[],
        );
    }
    call_failed(py, error)
}
