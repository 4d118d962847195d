//! Modules as arguments, and weak references to modules.

use crate::args::wrong;
use crate::instance::Instance;
use crate::script_module::ScriptModule;
use pyo3::prelude::*;
use std::sync::{Arc, Weak};

fn script_module<'py>(name: &str, given: &Bound<'py, PyAny>) -> PyResult<Bound<'py, ScriptModule>> {
    let module = given.cast::<ScriptModule>();
    module.cloned().map_err(|_| wrong(name, "a ScriptModule", given))
}

pub(crate) fn module<'py>(given: &Bound<'py, PyAny>) -> PyResult<Bound<'py, ScriptModule>> {
    script_module("module", given)
}

pub(crate) fn m<'py>(given: &Bound<'py, PyAny>) -> PyResult<Bound<'py, ScriptModule>> {
    script_module("m", given)
}

pub(crate) fn frozen<'py>(given: &Bound<'py, PyAny>) -> PyResult<Bound<'py, ScriptModule>> {
    script_module("mod", given)
}

/// The module argument of a hook. The module owns the hook, so this is a weak reference.
pub(crate) struct WeakModule {
    /// A weak reference to the Python object.
    object: Py<PyAny>,
    instance: Weak<Instance>,
    path: String,
}

impl WeakModule {
    pub(crate) fn new(module: &Bound<'_, ScriptModule>) -> PyResult<WeakModule> {
        let object = module.py().import("weakref")?.call_method1("ref", (module,))?;
        let own = module.get();
        Ok(WeakModule {
            object: object.unbind(),
            instance: Arc::downgrade(&own.instance),
            path: own.path.clone(),
        })
    }

    /// Returns the module, or an equal one if the object with which the hook was registered has been deleted.
    pub(crate) fn get<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let object = self.object.bind(py).call0()?;
        match self.instance.upgrade() {
            Some(instance) if object.is_none() => {
                let path = self.path.clone();
                Ok(Bound::new(py, ScriptModule { instance, path })?.into_any())
            }
            _ => Ok(object),
        }
    }
}
