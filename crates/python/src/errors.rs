//! Errors as Python exceptions. The classes are written in Python (`frazil/errors.py`), where one class can have several bases.

use frazil::{CallError, Error, ErrorClass};
use pyo3::exceptions::{PyAttributeError, PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyType;

pub(crate) fn type_error(text: impl Into<String>) -> PyErr {
    PyTypeError::new_err(text.into())
}

pub(crate) fn value_error(text: impl Into<String>) -> PyErr {
    PyValueError::new_err(text.into())
}

pub(crate) fn attribute_error(text: impl Into<String>) -> PyErr {
    PyAttributeError::new_err(text.into())
}

/// Returns an exception of class `name` of `frazil.errors`.
pub(crate) fn exception(py: Python<'_>, name: &str, text: &str, places: &[String]) -> PyErr {
    // An error of the caller is not an exception of the model.
    let text = match name {
        "ArgumentError" => text.strip_prefix("RuntimeError: ").unwrap_or(text),
        _ => text,
    };
    let make = || -> PyResult<PyErr> {
        let class = py.import("frazil.errors")?.getattr(name)?;
        let class = class.cast::<PyType>()?;
        let error = class.call1((text,))?;
        error.setattr("places", places)?;
        Ok(PyErr::from_value(error))
    };
    make().unwrap_or_else(|error| error)
}

/// Returns an `UnsupportedError`.
pub(crate) fn unsupported(py: Python<'_>, text: &str) -> PyErr {
    exception(py, "UnsupportedError", text, &[])
}

/// Returns the exception for an error of the facade.
pub(crate) fn raised(py: Python<'_>, error: &Error) -> PyErr {
    // The exception of a hook.
    if let Error::Other(other) = error
        && let Some(exception) = other.downcast_ref::<PyErr>()
    {
        return exception.clone_ref(py);
    }
    if let Error::Io { path, source, .. } = error {
        let text = match source.raw_os_error() {
            // `OSError` chooses its subclass by the number.
            Some(number) => {
                let text = source.to_string();
                let text = text.split(" (os error").next().unwrap_or_default().to_owned();
                return PyOSError::new_err((number, text, path.display().to_string()));
            }
            None => error.to_string(),
        };
        return PyOSError::new_err(text);
    }
    let text = error.to_string();
    let text = text.trim_end();
    match error {
        Error::Attribute(_) | Error::NoSuchMethod(_) | Error::NoSuchFunction(_) => attribute_error(text),
        _ => exception(py, class_name(error.class()), text, &error.places()),
    }
}

/// Returns the exception for a call that returned no result.
pub(crate) fn call_failed(py: Python<'_>, error: &CallError) -> PyErr {
    match error {
        CallError::Raised(text) => exception(py, "RaisedError", text, &error.places()),
        CallError::Failed(error) => raised(py, error),
    }
}

fn class_name(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::Input => "InputError",
        ErrorClass::Unsupported => "UnsupportedError",
        ErrorClass::Raised => "RaisedError",
        ErrorClass::Limit => "LimitError",
        _ => "Error",
    }
}

/// Conversion of results of the facade to results of functions that Python calls.
pub(crate) trait OrRaise<T> {
    /// Returns the value, or the exception for the error.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for frazil::Result<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| raised(py, &error))
    }
}
