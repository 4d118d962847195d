//! Methods of `torch.jit.ScriptModule` that need Python classes, autograd or other devices: each raises an exception with the reason why it is unavailable.

use crate::args;
use crate::errors::{OrRaise, unsupported};
use crate::script_module::ScriptModule;
use frazil::Model;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

type None = PyResult<()>;

impl ScriptModule {
    fn refused(&self, py: Python<'_>, method: impl FnOnce(&Model) -> frazil::Result<()>) -> None {
        method(&*self.instance.definitions(py)?).or_raise(py)
    }
}

/// Not available: the methods raise ``UnsupportedError``.
#[pymethods]
impl ScriptModule {
    #[classattr]
    #[pyo3(name = "call_super_init")]
    const CALL_SUPER_INIT: bool = false;

    #[classattr]
    #[pyo3(name = "dump_patches")]
    const DUMP_PATCHES: bool = false;

    /// Not available: the host is the only device.
    #[pyo3(signature = (device = None))]
    fn cuda(&self, py: Python<'_>, device: Option<&Bound<'_, PyAny>>) -> None {
        let _ = device;
        self.refused(py, Model::cuda)
    }

    /// Not available: the host is the only device.
    #[pyo3(signature = (device = None))]
    fn ipu(&self, py: Python<'_>, device: Option<&Bound<'_, PyAny>>) -> None {
        let _ = device;
        self.refused(py, Model::ipu)
    }

    /// Not available: the host is the only device.
    #[pyo3(signature = (device = None))]
    fn mtia(&self, py: Python<'_>, device: Option<&Bound<'_, PyAny>>) -> None {
        let _ = device;
        self.refused(py, Model::mtia)
    }

    /// Not available: the host is the only device.
    #[pyo3(signature = (device = None))]
    fn xpu(&self, py: Python<'_>, device: Option<&Bound<'_, PyAny>>) -> None {
        let _ = device;
        self.refused(py, Model::xpu)
    }

    /// Not available: there is no autograd.
    fn register_backward_hook(&self, py: Python<'_>, hook: &Bound<'_, PyAny>) -> None {
        let _ = hook;
        self.refused(py, Model::register_backward_hook)
    }

    /// Not available: there is no autograd.
    #[pyo3(signature = (hook, prepend = false))]
    fn register_full_backward_hook(
        &self,
        py: Python<'_>,
        hook: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = args::prepend)] prepend: bool,
    ) -> None {
        let _ = (hook, prepend);
        self.refused(py, Model::register_full_backward_hook)
    }

    /// Not available: there is no autograd.
    #[pyo3(signature = (hook, prepend = false))]
    fn register_full_backward_pre_hook(
        &self,
        py: Python<'_>,
        hook: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = args::prepend)] prepend: bool,
    ) -> None {
        let _ = (hook, prepend);
        self.refused(py, Model::register_full_backward_pre_hook)
    }

    /// Not available: only Python classes have this method.
    fn get_extra_state(&self, py: Python<'_>) -> None {
        self.refused(py, Model::get_extra_state)
    }

    /// Not available: only Python classes have this method.
    fn set_extra_state(&self, py: Python<'_>, state: &Bound<'_, PyAny>) -> None {
        let _ = state;
        self.refused(py, Model::set_extra_state)
    }

    /// Not available: only Python classes have this method.
    #[pyo3(signature = (method_name, *args, **kwargs))]
    fn forward_magic_method(
        &self,
        py: Python<'_>,
        method_name: &Bound<'_, PyAny>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> None {
        let _ = (method_name, args, kwargs);
        self.refused(py, Model::forward_magic_method)
    }

    /// Not available: calls compile native code when needed.
    #[pyo3(signature = (*args, **kwargs))]
    fn compile(&self, py: Python<'_>, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> None {
        let _ = (args, kwargs);
        Err(unsupported(
            py,
            "`compile` has no counterpart here: it is for torch.compile; calls compile native code when it is needed",
        ))
    }

    /// Not available: ``notes`` lists the compiled methods.
    #[pyo3(signature = (*args, **kwargs))]
    fn get_debug_state(&self, py: Python<'_>, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> None {
        let _ = (args, kwargs);
        Err(unsupported(
            py,
            "`get_debug_state` has no counterpart here: it is for PyTorch's executor; `notes` says what has been compiled",
        ))
    }
}
