//! Python functions that run before and after `forward`.

use crate::arrays::Kind;
use crate::value::Values;
use frazil::{CallArguments, CallError, Engine, Error, HookOptions, Model, Value};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::Arc;

/// A function that returns the module with which a hook was registered.
pub(crate) type GetModule = dyn for<'py> Fn(Python<'py>) -> PyResult<Bound<'py, PyAny>> + Send + Sync;

/// A registered function.
struct Hook {
    id: u64,
    /// Dotted path of the module whose calls run it.
    path: String,
    function: Arc<Py<PyAny>>,
    module: Arc<GetModule>,
    is_pre: bool,
    with_kwargs: bool,
    always_call: bool,
}

/// The hooks of a model, in the order in which they run.
#[derive(Default)]
pub(crate) struct HookList {
    hooks: Vec<Hook>,
    next: u64,
}

/// Options of a registration.
pub(crate) struct Registration {
    pub(crate) is_pre: bool,
    pub(crate) prepend: bool,
    pub(crate) with_kwargs: bool,
    pub(crate) always_call: bool,
}

impl HookList {
    /// Adds a hook, and returns its identity.
    pub(crate) fn add(&mut self, path: String, function: Py<PyAny>, module: Box<GetModule>, how: &Registration) -> u64 {
        let hook = Hook {
            id: self.next,
            path,
            function: Arc::new(function),
            module: module.into(),
            is_pre: how.is_pre,
            with_kwargs: how.with_kwargs,
            always_call: how.always_call,
        };
        self.next += 1;
        let at = if how.prepend { 0 } else { self.hooks.len() };
        self.hooks.insert(at, hook);
        self.next - 1
    }

    pub(crate) fn remove(&mut self, id: u64) -> bool {
        let count = self.hooks.len();
        self.hooks.retain(|hook| hook.id != id);
        self.hooks.len() < count
    }

    /// Registers all hooks with an engine.
    pub(crate) fn register(&self, engine: &mut Engine, kind: Kind) -> frazil::Result<()> {
        let model = if self.hooks.is_empty() {
            None
        } else {
            Some(engine.model()?.clone())
        };
        let Some(model) = model else { return Ok(()) };
        for hook in &self.hooks {
            let (function, module, model) = (Arc::clone(&hook.function), Arc::clone(&hook.module), model.clone());
            let with_kwargs = hook.with_kwargs;
            let options = HookOptions::default()
                .module(hook.path.clone())
                .always_call(hook.always_call);
            let caller = Caller {
                function,
                module,
                model,
                kind,
                with_kwargs,
            };
            match hook.is_pre {
                true => engine.register_forward_pre_hook_with(&options, move |call| {
                    Python::attach(|py| caller.before(py, call)).map_err(failed)
                })?,
                false => engine.register_forward_hook_with(&options, move |call, result| {
                    Python::attach(|py| caller.after(py, call, result)).map_err(failed)
                })?,
            };
        }
        Ok(())
    }
}

/// Converts the exception of a hook to the error of the call. [`exception_of`] converts it back.
fn failed(error: PyErr) -> CallError {
    CallError::Failed(Error::Other(Box::new(error)))
}

/// Returns the Python exception that a hook raised, if `error` contains one; `None` for other errors.
pub(crate) fn exception_of(py: Python<'_>, error: &CallError) -> Option<PyErr> {
    match error {
        CallError::Failed(Error::Other(other)) => other.downcast_ref::<PyErr>().map(|error| error.clone_ref(py)),
        _ => None,
    }
}

fn arguments<'py>(values: &Values<'_, 'py>, py: Python<'py>, call: &CallArguments) -> PyResult<Bound<'py, PyTuple>> {
    let args: Vec<_> = call
        .args
        .iter()
        .map(|v| values.write(v.clone()))
        .collect::<PyResult<_>>()?;
    PyTuple::new(py, args)
}

fn named<'py>(values: &Values<'_, 'py>, py: Python<'py>, call: &CallArguments) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    for (name, value) in &call.kwargs {
        out.set_item(name, values.write(value.clone())?)?;
    }
    Ok(out)
}

/// Calls a hook with the right arguments.
struct Caller {
    function: Arc<Py<PyAny>>,
    module: Arc<GetModule>,
    model: Model,
    kind: Kind,
    with_kwargs: bool,
}

impl Caller {
    /// Calls `hook(module, args)` or `hook(module, args, kwargs)`.
    fn before(&self, py: Python<'_>, call: &CallArguments) -> PyResult<Option<CallArguments>> {
        let mut values = Values::new(py, &self.model, self.kind);
        let args = arguments(&values, py, call)?;
        let (function, module) = (self.function.bind(py), (self.module)(py)?);
        if !self.with_kwargs {
            let result = function.call1((module, args))?;
            if result.is_none() {
                return Ok(None);
            }
            let result = values.read(&result)?;
            let args = CallArguments::positional(&result);
            return Ok(args.map(|args| CallArguments { args, ..call.clone() }));
        }
        let result = function.call1((module, args, named(&values, py, call)?))?;
        if result.is_none() {
            return Ok(None);
        }
        let wrong = || PyRuntimeError::new_err("a forward pre-hook must return None or a tuple of new args and kwargs");
        let pair = result.cast::<PyTuple>().map_err(|_| wrong())?;
        if pair.len() != 2 {
            return Err(wrong());
        }
        let args = pair.get_item(0)?.cast_into::<PyTuple>().map_err(|_| wrong())?;
        let kwargs = pair.get_item(1)?.cast_into::<PyDict>().map_err(|_| wrong())?;
        let mut new = call.clone();
        new.args = args.iter().map(|a| values.read(&a)).collect::<PyResult<_>>()?;
        new.kwargs = kwargs
            .iter()
            .map(|(name, value)| Ok((name.extract()?, values.read(&value)?)))
            .collect::<PyResult<_>>()?;
        Ok(Some(new))
    }

    /// Calls `hook(module, args, result)` or `hook(module, args, kwargs, result)`.
    fn after(&self, py: Python<'_>, call: &CallArguments, result: &Value) -> PyResult<Option<Value>> {
        let mut values = Values::new(py, &self.model, self.kind);
        let args = arguments(&values, py, call)?;
        let given = values.write(result.clone())?;
        let (function, module) = (self.function.bind(py), (self.module)(py)?);
        let new = match self.with_kwargs {
            true => function.call1((module, args, named(&values, py, call)?, given))?,
            false => function.call1((module, args, given))?,
        };
        match new.is_none() {
            true => Ok(None),
            false => values.read(&new).map(Some),
        }
    }
}
