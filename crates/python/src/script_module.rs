//! Modules: calling them, their methods and attributes, and their text forms.

use crate::args;
use crate::arrays::{Kind, shown};
use crate::engine_call::{Call, call};
use crate::errors::{OrRaise, attribute_error, exception, type_error};
use crate::graph::Graph;
use crate::hooks::Registration;
use crate::instance::Instance;
use crate::module_ref::WeakModule;
use crate::options::Options;
use crate::value::Values;
use frazil::{Loaded, Model, StateHookId, Value};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::Arc;

/// A model, or a module in it (``torch.jit.ScriptModule``).
///
/// ``load``, ``freeze`` and ``script`` return modules. A call runs ``forward``; other methods, attributes and submodules are Python
/// attributes. Modules of one model share its state.
///
/// >>> import frazil, numpy
/// >>> model = frazil.script("""
/// ... class Count(nn.Module):
/// ...     def __init__(self):
/// ...         super().__init__()
/// ...         self.calls = 0
/// ...     def forward(self, x):
/// ...         self.calls += 1
/// ...         return x * 2
/// ... """)
/// >>> model(numpy.ones(2))
/// array([2., 2.])
/// >>> model.calls
/// 1
#[pyclass(frozen, weakref, module = "frazil", name = "ScriptModule")]
pub(crate) struct ScriptModule {
    pub(crate) instance: Arc<Instance>,
    /// Dotted path in the model; empty for the model itself.
    pub(crate) path: String,
}

/// A method of a module.
///
/// >>> import frazil
/// >>> method = frazil.script("def f(x: int): return x + 1").f
/// >>> method(x=1), method.name
/// (2, 'f')
#[pyclass(frozen, module = "frazil", name = "ScriptMethod")]
pub(crate) struct ScriptMethod {
    instance: Arc<Instance>,
    path: String,
}

pub(crate) fn join(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        _ => format!("{path}.{name}"),
    }
}

impl ScriptModule {
    pub(crate) fn new(model: Model, options: Options, kind: Kind) -> ScriptModule {
        ScriptModule {
            instance: Instance::new(model, options, kind),
            path: String::new(),
        }
    }

    pub(crate) fn at(&self, path: String) -> ScriptModule {
        ScriptModule {
            instance: Arc::clone(&self.instance),
            path,
        }
    }

    /// Returns the whole model of the module.
    ///
    /// # Errors
    /// For submodules, which do not support the operation `done`.
    pub(crate) fn whole(&self, py: Python<'_>, done: &str) -> PyResult<Model> {
        match self.path.is_empty() {
            true => Ok(Model::clone(&*self.instance.model(py)?)),
            false => Err(type_error(format!(
                "`{}` is a submodule: {done} the model that it belongs to",
                self.path
            ))),
        }
    }

    pub(crate) fn is_submodule(model: &Model, path: &str) -> bool {
        model.root().get_submodule(path).is_ok()
    }
}

#[pymethods]
impl ScriptModule {
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let called = match self.path.as_str() {
            "" => Call::Model,
            path => Call::Path(path),
        };
        call(py, &self.instance, called, args, kwargs)
    }

    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let path = join(&self.path, name);
        let definitions = self.instance.definitions(py)?;
        let own = definitions.root().get_submodule(&self.path).or_raise(py)?;
        if own.has_method(name) {
            let instance = Arc::clone(&self.instance);
            return Ok(Bound::new(py, ScriptMethod { instance, path })?.into_any());
        }
        if !own.has_attribute(name) {
            let class = own.original_name();
            return Err(attribute_error(format!("'{class}' object has no attribute '{name}'")));
        }
        if ScriptModule::is_submodule(&definitions, &path) {
            return Ok(Bound::new(py, self.at(path))?.into_any());
        }
        let model = self.instance.model(py)?;
        let value = model.root().attribute(&path).or_raise(py)?;
        Values::new(py, &model, self.instance.kind).write(value)
    }

    fn __setattr__(&self, py: Python<'_>, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let path = join(&self.path, name);
        if let Ok(module) = value.cast::<ScriptModule>() {
            let child = module.get().whole(py, "assign")?;
            return self.instance.change(py, |model| {
                let mut own = model.submodule_mut(&self.path).or_raise(py)?;
                own.add_module(name, &child).or_raise(py)
            });
        }
        self.instance.change(py, |model| {
            let mut values = Values::new(py, model, self.instance.kind);
            let read = values.read(value)?;
            drop(values);
            // The caller may change the array later.
            let read = match read {
                Value::Tensor(tensor) => Value::from(
                    tensor
                        .get()
                        .deep_copy_preserving_strides()
                        .map_err(frazil::Error::from)
                        .or_raise(py)?,
                ),
                other => other,
            };
            let owner = model.root().get_submodule(&self.path).or_raise(py)?;
            if !owner.has_attribute(name) {
                let class = owner.original_name();
                return Err(attribute_error(format!(
                    "'{class}' object has no attribute '{name}': use register_buffer, register_parameter or register_attribute to add one"
                )));
            }
            let module = model.module();
            let declared = module.ctx().find_symbol(name).and_then(|symbol| {
                let class = module.class_of(owner.id())?;
                class.attributes.get(&symbol).map(|attribute| attribute.ty)
            });
            let read = declared.map_or(read.clone(), |ty| Values::new(py, model, self.instance.kind).fitted(read, ty));
            // The attribute exists, but the value is of another type.
            let set = model.set_attribute(&path, &read);
            set.map_err(|error| exception(py, "ArgumentError", &error.to_string(), &[]))
        })
    }

    fn __dir__(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let model = self.instance.definitions(py)?;
        let own = model.root().get_submodule(&self.path).or_raise(py)?;
        let mut names: Vec<String> = own.method_names().into_iter().map(str::to_owned).collect();
        let attributes = own.named_attributes(&frazil::MemberOptions::own()).or_raise(py)?;
        names.extend(attributes.into_iter().map(|(name, _)| name));
        names.extend(own.named_children().into_iter().map(|(name, _)| name.to_owned()));
        let class = py.get_type::<ScriptModule>();
        names.extend(class.dir()?.iter().filter_map(|name| name.extract().ok()));
        names.sort();
        names.dedup();
        Ok(names)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let model = self.instance.definitions(py)?;
        Ok(model.root().get_submodule(&self.path).or_raise(py)?.to_string())
    }

    /// Returns true if both operands are the same module of the same model.
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        let same = |other: &Bound<'_, ScriptModule>| {
            let other = other.get();
            Arc::ptr_eq(&self.instance, &other.instance) && self.path == other.path
        };
        other.cast::<ScriptModule>().is_ok_and(same)
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        (Arc::as_ptr(&self.instance) as usize, &self.path).hash(&mut hasher);
        hasher.finish()
    }

    /// Returns a copy with its own state. Weights are shared until one of the copies changes them.
    fn __copy__(&self, py: Python<'_>) -> PyResult<ScriptModule> {
        let model = self.whole(py, "copy")?;
        Ok(ScriptModule::new(model, self.instance.options(py)?, self.instance.kind))
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<ScriptModule> {
        self.__copy__(py)
    }

    /// The name of the module's class.
    #[getter]
    fn original_name(&self, py: Python<'_>) -> PyResult<String> {
        let model = self.instance.definitions(py)?;
        Ok(model
            .root()
            .get_submodule(&self.path)
            .or_raise(py)?
            .original_name()
            .to_owned())
    }

    fn extra_repr(&self, py: Python<'_>) -> PyResult<String> {
        let model = self.instance.definitions(py)?;
        Ok(model.root().get_submodule(&self.path).or_raise(py)?.extra_repr())
    }

    /// The graph of ``forward``.
    #[getter]
    fn graph(&self, py: Python<'_>) -> PyResult<Graph> {
        Graph::of_method(py, &self.instance, &join(&self.path, "forward"))
    }

    /// The graph of ``forward`` with calls of methods and functions inlined.
    #[getter]
    fn inlined_graph(&self, py: Python<'_>) -> PyResult<Graph> {
        self.graph(py)?.inlined(py)
    }

    /// TorchScript source of ``forward``.
    #[getter]
    fn code(&self, py: Python<'_>) -> PyResult<String> {
        code_of(py, &self.instance, &join(&self.path, "forward"))
    }

    /// TorchScript source of ``forward``, and the constants that it refers to, by name.
    #[getter]
    fn code_with_constants<'py>(&self, py: Python<'py>) -> PyResult<(String, Bound<'py, PyDict>)> {
        code_with_constants(py, &self.instance, &join(&self.path, "forward"))
    }

    /// Returns the graph that runs when ``forward`` is called: the frozen one, except with the option
    /// ``engine='interpreter'``.
    #[pyo3(signature = (*args, **kwargs))]
    fn graph_for(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Graph> {
        let _ = (args, kwargs);
        let path = join(&self.path, "forward");
        let graph = self
            .instance
            .with_engine(py, Some(&path), |engine| Ok(engine.graph_for(&path)?.clone()))?;
        let graph = graph.map_err(|error| crate::errors::call_failed(py, &error))?;
        Ok(Graph::loose(&*self.instance.definitions(py)?, graph))
    }

    /// Returns the alias analysis of a method, as text.
    #[pyo3(signature = (method = "forward".to_owned()), text_signature = "($self, method='forward')")]
    fn dump_alias_db(&self, py: Python<'_>, #[pyo3(from_py_with = args::method)] method: String) -> PyResult<String> {
        let graph = Graph::of_method(py, &self.instance, &join(&self.path, &method))?;
        Ok(graph.alias_db())
    }

    /// Options of calls, as a dict.
    #[getter]
    fn options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.instance.options(py)?.to_dict(py)
    }

    /// Returns the same model with other options, and its own state.
    #[pyo3(signature = (**options))]
    fn with_options(&self, py: Python<'_>, options: Option<&Bound<'_, PyDict>>) -> PyResult<ScriptModule> {
        let model = self.whole(py, "set options of")?;
        let options = self.instance.options(py)?.with(options)?;
        Ok(ScriptModule::new(model, options, self.instance.kind))
    }

    /// The methods that have been compiled, and those that have not, with the reasons; one line each.
    #[getter]
    fn notes(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let notes = self
            .instance
            .with_engine(py, None, |engine| Ok(engine.notes().to_vec()))?;
        notes.map_err(|error| crate::errors::call_failed(py, &error))
    }

    /// Seconds spent on compiling so far.
    #[getter]
    fn compile_seconds(&self, py: Python<'_>) -> PyResult<f64> {
        let time = self
            .instance
            .with_engine(py, None, |engine| Ok(engine.compile_time().as_secs_f64()))?;
        time.map_err(|error| crate::errors::call_failed(py, &error))
    }

    #[pyo3(signature = (hook, *, prepend = false, with_kwargs = false))]
    fn register_forward_pre_hook(
        slf: &Bound<'_, Self>,
        hook: Bound<'_, PyAny>,
        #[pyo3(from_py_with = args::prepend)] prepend: bool,
        #[pyo3(from_py_with = args::with_kwargs)] with_kwargs: bool,
    ) -> PyResult<HookHandle> {
        let how = Registration {
            is_pre: true,
            prepend,
            with_kwargs,
            always_call: false,
        };
        register(slf, hook, &how)
    }

    #[pyo3(signature = (hook, *, prepend = false, with_kwargs = false, always_call = false))]
    fn register_forward_hook(
        slf: &Bound<'_, Self>,
        hook: Bound<'_, PyAny>,
        #[pyo3(from_py_with = args::prepend)] prepend: bool,
        #[pyo3(from_py_with = args::with_kwargs)] with_kwargs: bool,
        #[pyo3(from_py_with = args::always_call)] always_call: bool,
    ) -> PyResult<HookHandle> {
        let how = Registration {
            is_pre: false,
            prepend,
            with_kwargs,
            always_call,
        };
        register(slf, hook, &how)
    }
}

fn register(module: &Bound<'_, ScriptModule>, hook: Bound<'_, PyAny>, how: &Registration) -> PyResult<HookHandle> {
    let py = module.py();
    if !hook.is_callable() {
        return Err(type_error(format!("`hook`: expected a callable, not {}", shown(&hook))));
    }
    let own = module.get();
    let weak = WeakModule::new(module)?;
    let path = own.path.clone();
    let id = own.instance.change_hooks(py, |hooks| {
        hooks.add(path, hook.unbind(), Box::new(move |py| weak.get(py)), how)
    })?;
    Ok(HookHandle {
        instance: Arc::clone(&own.instance),
        id: HookId::Forward(id),
    })
}

/// A hook that was registered; ``remove()`` removes it.
///
/// >>> import frazil
/// >>> model = frazil.script("class Net(nn.Module):\n    def forward(self, x: int): return x + 1")
/// >>> with model.register_forward_hook(lambda module, args, result: result * 10):
/// ...     model(1)
/// 20
/// >>> model(1)
/// 2
#[pyclass(frozen, module = "frazil", name = "RemovableHandle")]
pub(crate) struct HookHandle {
    instance: Arc<Instance>,
    id: HookId,
}

#[derive(Clone, Copy)]
enum HookId {
    Forward(u64),
    State(StateHookId),
}

impl HookHandle {
    /// Returns the handle of a hook of state dictionaries.
    pub(crate) fn of_state(instance: &Arc<Instance>, id: StateHookId) -> HookHandle {
        HookHandle {
            instance: Arc::clone(instance),
            id: HookId::State(id),
        }
    }
}

#[pymethods]
impl HookHandle {
    /// Removes the hook. Does nothing if it has been removed before.
    fn remove(&self, py: Python<'_>) -> PyResult<()> {
        match self.id {
            HookId::Forward(id) => self.instance.change_hooks(py, |hooks| hooks.remove(id)).map(drop),
            HookId::State(id) => self
                .instance
                .change(py, |model| Ok(model.remove_state_hook(id)))
                .map(drop),
        }
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(&self, py: Python<'_>, _args: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.remove(py)
    }
}

#[pymethods]
impl ScriptMethod {
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        call(py, &self.instance, Call::Path(&self.path), args, kwargs)
    }

    /// The name of the method.
    #[getter]
    fn name(&self) -> &str {
        self.path.rsplit('.').next().unwrap_or(&self.path)
    }

    /// The graph of the method.
    #[getter]
    fn graph(&self, py: Python<'_>) -> PyResult<Graph> {
        Graph::of_method(py, &self.instance, &self.path)
    }

    /// The graph of the method with calls of methods and functions inlined.
    #[getter]
    fn inlined_graph(&self, py: Python<'_>) -> PyResult<Graph> {
        self.graph(py)?.inlined(py)
    }

    /// TorchScript source of the method.
    #[getter]
    fn code(&self, py: Python<'_>) -> PyResult<String> {
        code_of(py, &self.instance, &self.path)
    }

    /// TorchScript source of the method, and the constants that it refers to, by name.
    #[getter]
    fn code_with_constants<'py>(&self, py: Python<'py>) -> PyResult<(String, Bound<'py, PyDict>)> {
        code_with_constants(py, &self.instance, &self.path)
    }

    /// The signature, as PyTorch prints it.
    #[getter]
    fn schema(&self, py: Python<'_>) -> PyResult<String> {
        let (module, name) = self.path.rsplit_once('.').unwrap_or(("", &self.path));
        let model = self.instance.definitions(py)?;
        model
            .root()
            .get_submodule(module)
            .and_then(|m| m.signature(name))
            .or_raise(py)
    }

    fn __repr__(&self) -> String {
        format!("<frazil.ScriptMethod '{}'>", self.path)
    }
}

fn code_of(py: Python<'_>, instance: &Instance, path: &str) -> PyResult<String> {
    Loaded::Model(Model::clone(&*instance.model(py)?))
        .code(Some(path), false)
        .or_raise(py)
}

fn code_with_constants<'py>(
    py: Python<'py>,
    instance: &Instance,
    path: &str,
) -> PyResult<(String, Bound<'py, PyDict>)> {
    let model = instance.model(py)?;
    let (module, name) = path.rsplit_once('.').unwrap_or(("", path));
    let module = model.root().get_submodule(module).or_raise(py)?;
    let (code, constants) = module.code_with_constants(name).or_raise(py)?;
    let values = Values::new(py, &model, instance.kind);
    let out = PyDict::new(py);
    for (name, value) in constants.iter() {
        out.set_item(name, values.write(value.clone())?)?;
    }
    Ok((code, out))
}
