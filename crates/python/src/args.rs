//! Conversion of the arguments of functions and methods. PyO3's own errors do not name the argument.

use crate::arrays::shown;
use crate::errors::type_error;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString};

pub(crate) fn wrong(name: &str, expected: &str, given: &Bound<'_, PyAny>) -> PyErr {
    type_error(format!("`{name}`: expected {expected}, not {}", shown(given)))
}

fn truth(name: &str, given: &Bound<'_, PyAny>) -> PyResult<bool> {
    match given.cast::<PyBool>() {
        Ok(truth) => Ok(truth.is_true()),
        // NumPy's types.
        Err(_) => given.extract().map_err(|_| wrong(name, "a bool", given)),
    }
}

fn text(name: &str, given: &Bound<'_, PyAny>) -> PyResult<String> {
    match given.cast::<PyString>() {
        Ok(text) => Ok(text.to_str()?.to_owned()),
        Err(_) => Err(wrong(name, "a str", given)),
    }
}

macro_rules! arguments {
    ($($read:ident -> $ty:ty: $($name:ident)*;)*) => {$($(
        pub(crate) fn $name(given: &Bound<'_, PyAny>) -> PyResult<$ty> {
            $read(stringify!($name), given)
        }
    )*)*}
}

arguments! {
    truth -> bool: _restore_shapes always_call assign copy enabled keep_vars mode non_blocking optimize_numerics persistent prepend recurse
        remove_duplicate requires_grad set_to_none strict verify_each with_kwargs;
    text -> String: method name path prefix src target;
}

/// Returns the optional name of the definition that becomes the model.
pub(crate) fn optional_name(given: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    match given.is_none() {
        true => Ok(None),
        false => name(given).map(Some),
    }
}

/// Returns the maximum number of rewrites.
pub(crate) fn limit(given: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
    match given.is_none() {
        true => Ok(None),
        false => given
            .extract()
            .map(Some)
            .map_err(|_| wrong("limit", "an int that is not negative", given)),
    }
}

pub(crate) fn _extra_files<'py>(given: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyDict>>> {
    match given.cast::<PyDict>() {
        Ok(dict) => Ok(Some(dict.clone())),
        Err(_) if given.is_none() => Ok(None),
        Err(_) => Err(wrong("_extra_files", "a dict", given)),
    }
}
