//! Python functions that run before and after the state of a module is collected or loaded.

use crate::arrays::{Kind, shown};
use crate::errors::type_error;
use crate::module_ref::WeakModule;
use crate::script_module::{HookHandle, ScriptModule};
use crate::value::{Values, read_tensor};
use frazil::{Error, IncompatibleKeys, Model, ScriptModuleMut, StateDict, StateHookId, Value};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::sync::Arc;

/// A registered function.
struct Hook {
    function: Py<PyAny>,
    module: WeakModule,
    model: Arc<Model>,
    kind: Kind,
}

fn failed(error: PyErr) -> Error {
    Error::Other(Box::new(error))
}

impl Hook {
    fn new(module: &Bound<'_, ScriptModule>, function: &Bound<'_, PyAny>) -> PyResult<Hook> {
        let py = module.py();
        if !function.is_callable() {
            return Err(type_error(format!(
                "`hook`: expected a callable, not {}",
                shown(function)
            )));
        }
        Ok(Hook {
            function: function.clone().unbind(),
            module: WeakModule::new(module)?,
            model: module.get().instance.definitions(py)?,
            kind: module.get().instance.kind,
        })
    }

    fn module<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.module.get(py)
    }

    /// Returns a state as a dict.
    fn write<'py>(&self, py: Python<'py>, state: &StateDict) -> PyResult<Bound<'py, PyAny>> {
        let values = Values::new(py, &self.model, self.kind);
        let out = py.import("collections")?.call_method0("OrderedDict")?;
        for (name, tensor) in state {
            out.set_item(name, values.write(Value::from(tensor.clone()))?)?;
        }
        Ok(out)
    }
}

/// Returns the state in a dict.
pub(crate) fn read(state_dict: &Bound<'_, PyAny>) -> PyResult<StateDict> {
    let items = state_dict
        .call_method0("items")
        .map_err(|_| type_error(format!("`state_dict`: expected a dict, not {}", shown(state_dict))))?;
    let mut state = StateDict::default();
    for item in items.try_iter()? {
        let (name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item?.extract()?;
        let wrong = |_| {
            type_error(format!(
                "`state_dict`: expected names of type str, not {}",
                shown(&name)
            ))
        };
        let name: String = name.extract().map_err(wrong)?;
        let tensor = read_tensor(&value, &format!("`{name}`"))?;
        state.insert(name, tensor);
    }
    Ok(state)
}

fn keys<'py>(py: Python<'py>, keys: &IncompatibleKeys) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyList>)> {
    Ok((
        PyList::new(py, &keys.missing_keys)?,
        PyList::new(py, &keys.unexpected_keys)?,
    ))
}

/// Registers a hook with the model, and returns its handle.
fn register(
    module: &Bound<'_, ScriptModule>,
    hook: &Bound<'_, PyAny>,
    add: impl FnOnce(&mut ScriptModuleMut<'_>, Arc<Hook>) -> StateHookId,
) -> PyResult<HookHandle> {
    use crate::errors::OrRaise;
    let (py, own) = (module.py(), module.get());
    let hook = Arc::new(Hook::new(module, hook)?);
    let id = own.instance.change(py, |model| {
        let mut changed = model.submodule_mut(&own.path).or_raise(py)?;
        Ok(add(&mut changed, hook))
    })?;
    Ok(HookHandle::of_state(&own.instance, id))
}

#[pymethods]
impl ScriptModule {
    /// Runs ``hook(module, prefix, keep_vars)`` before the state of the module is collected.
    fn register_state_dict_pre_hook(slf: &Bound<'_, Self>, hook: &Bound<'_, PyAny>) -> PyResult<HookHandle> {
        register(slf, hook, |module, hook| {
            module.register_state_dict_pre_hook(move |_, options| {
                let run = |py: Python<'_>| {
                    let arguments = (hook.module(py)?, &options.prefix, options.keep_vars);
                    hook.function.bind(py).call1(arguments).map(drop)
                };
                Python::attach(run).map_err(failed)
            })
        })
    }

    /// Runs ``hook(module, state_dict, prefix, local_metadata)`` after the state of the module was collected; the hook may change the dict.
    fn register_state_dict_post_hook(slf: &Bound<'_, Self>, hook: &Bound<'_, PyAny>) -> PyResult<HookHandle> {
        register(slf, hook, |module, hook| {
            module.register_state_dict_post_hook(move |_, state, options| {
                let run = |py: Python<'_>| {
                    let dict = hook.write(py, state)?;
                    let arguments = (hook.module(py)?, &dict, &options.prefix, PyDict::new(py));
                    let result = hook.function.bind(py).call1(arguments)?;
                    read(if result.is_none() { &dict } else { &result })
                };
                *state = Python::attach(run).map_err(failed)?;
                Ok(())
            })
        })
    }

    /// Runs ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)`` before the state of the module
    /// is loaded; the hook may change the dict and the lists.
    fn register_load_state_dict_pre_hook(slf: &Bound<'_, Self>, hook: &Bound<'_, PyAny>) -> PyResult<HookHandle> {
        register(slf, hook, |module, hook| {
            module.register_load_state_dict_pre_hook(move |_, loading| {
                let run = |py: Python<'_>| {
                    let dict = hook.write(py, loading.state)?;
                    let (missing, unexpected) = keys(py, loading.keys)?;
                    let messages = PyList::new(py, &*loading.error_msgs)?;
                    let (module, metadata) = (hook.module(py)?, PyDict::new(py));
                    let arguments = (
                        module,
                        &dict,
                        loading.prefix,
                        metadata,
                        true,
                        &missing,
                        &unexpected,
                        &messages,
                    );
                    hook.function.bind(py).call1(arguments)?;
                    *loading.state = read(&dict)?;
                    loading.keys.missing_keys = missing.extract()?;
                    loading.keys.unexpected_keys = unexpected.extract()?;
                    *loading.error_msgs = messages.extract()?;
                    Ok(())
                };
                Python::attach(run).map_err(failed)
            })
        })
    }

    /// Runs ``hook(module, incompatible_keys)`` after the state of the module was loaded; the hook may change the lists of names.
    fn register_load_state_dict_post_hook(slf: &Bound<'_, Self>, hook: &Bound<'_, PyAny>) -> PyResult<HookHandle> {
        register(slf, hook, |module, hook| {
            module.register_load_state_dict_post_hook(move |_, found| {
                let run = |py: Python<'_>| {
                    let lists = keys(py, found)?;
                    let class = py.import("frazil.module")?.getattr("IncompatibleKeys")?;
                    let named = class.call1((&lists.0, &lists.1))?;
                    let result = hook.function.bind(py).call1((hook.module(py)?, named))?;
                    if !result.is_none() {
                        return Err(type_error(format!(
                            "expected a hook after load_state_dict to return None, not {}",
                            shown(&result)
                        )));
                    }
                    found.missing_keys = lists.0.extract()?;
                    found.unexpected_keys = lists.1.extract()?;
                    Ok(())
                };
                Python::attach(run).map_err(failed)
            })
        })
    }
}
