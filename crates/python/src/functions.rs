//! The functions of the package, with the names and arguments of `torch.jit`.

use crate::args;
use crate::arrays::{Kind, shown};
use crate::errors::{OrRaise, type_error, unsupported, value_error};
use crate::interrupt::without_gil;
use crate::module_ref;
use crate::options::Options;
use crate::script_module::ScriptModule;
use frazil::passes::freeze::Freeze;
use frazil::{FreezeOptions, Model, PassOptions, SaveOptions, Session};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyList, PyString};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Returns the session of all models of this process.
pub(crate) fn session(py: Python<'_>) -> &'static Session {
    static SESSION: PyOnceLock<Session> = PyOnceLock::new();
    SESSION.get_or_init(py, Session::new)
}

/// Returns the content of bytes or of a file object; `None` for paths.
fn contents(file: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u8>>> {
    if let Ok(bytes) = file.cast::<PyBytes>() {
        return Ok(Some(bytes.as_bytes().to_vec()));
    }
    if let Ok(bytes) = file.cast::<PyByteArray>() {
        return Ok(Some(bytes.to_vec()));
    }
    if file.get_type().name()? == "memoryview" {
        return Ok(Some(file.call_method0("tobytes")?.extract()?));
    }
    if file.hasattr("read")? {
        let read = file.call_method0("read")?;
        let bytes = read.cast::<PyBytes>();
        let bytes = bytes.map_err(|_| type_error("`f`: expected a file opened in binary mode"))?;
        return Ok(Some(bytes.as_bytes().to_vec()));
    }
    Ok(None)
}

/// Returns the archive to which a ``torch.jit.ScriptModule`` is saved.
fn of_torch_module(file: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u8>>> {
    let module = file.get_type().module()?.to_string();
    if !module.starts_with("torch.") && !module.starts_with("__torch__") && !file.hasattr("_save_to_state_dict")? {
        return Ok(None);
    }
    let py = file.py();
    let torch = py.import("torch")?.getattr("jit")?;
    let is_script =
        file.is_instance(&torch.getattr("ScriptModule")?)? || file.is_instance(&torch.getattr("ScriptFunction")?)?;
    if !is_script {
        return Err(type_error(
            "expected a ScriptModule, not a plain nn.Module: script or trace it first (torch.jit.script, torch.jit.trace)",
        ));
    }
    let buffer = file.call_method0("save_to_buffer")?;
    Ok(Some(buffer.cast::<PyBytes>()?.as_bytes().to_vec()))
}

/// Loads a model.
///
/// Args:
///     f: a path, the bytes of an archive, a file object opened in binary mode, or a ``torch.jit.ScriptModule``. A path may name an
///         archive, a file of IR text (``.ir``) or of TorchScript source (``.py``).
///     map_location: the device of the tensors: ``None``, ``"cpu"`` or ``"meta"``.
///     _extra_files: a dict; the values of its keys become the contents of the files of these names in the archive.
///     _restore_shapes: accepted as in PyTorch; nothing depends on it.
///     **options: options of calls, see :func:`ScriptModule.with_options`.
///
/// Returns:
///     The model. Calls of it without arrays among their arguments return NumPy arrays, or torch tensors if ``f`` is a ``ScriptModule``.
///
/// >>> import frazil
/// >>> archive = frazil.script("def f(x: int): return x + 1").save_to_buffer()
/// >>> frazil.load(archive).f(1)
/// 2
#[pyfunction]
#[pyo3(signature = (f, map_location = None, _extra_files = None, _restore_shapes = false, **options))]
pub(crate) fn load(
    py: Python<'_>,
    f: &Bound<'_, PyAny>,
    map_location: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = args::_extra_files)] _extra_files: Option<Bound<'_, PyDict>>,
    #[pyo3(from_py_with = args::_restore_shapes)] _restore_shapes: bool,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<ScriptModule> {
    let options = Options::default().with(options)?;
    let device = match map_location {
        None => None,
        Some(given) => Some(device("map_location", given)?),
    };
    let session = session(py).with_limits(options.limits);
    let (model, kind) = match f.extract::<PathBuf>() {
        Ok(path) => (without_gil(py, || session.load(&path))?, Kind::Numpy),
        Err(_) => {
            let (bytes, kind) = match contents(f)? {
                Some(bytes) => (bytes, Kind::Numpy),
                None => match of_torch_module(f)? {
                    Some(bytes) => (bytes, Kind::Torch),
                    None => {
                        return Err(type_error(format!(
                            "`f`: expected a path, bytes, a file object or a torch.jit.ScriptModule, not {}",
                            shown(f)
                        )));
                    }
                },
            };
            let loaded = without_gil(py, || session.load_bytes(Path::new("bytes.pt"), bytes)?.runnable())?;
            (loaded, kind)
        }
    };
    let mut model = model.or_raise(py)?;
    if let Some(device) = device {
        model = model.map_location(device).or_raise(py)?;
    }
    if let Some(files) = _extra_files {
        let names: Vec<Bound<'_, PyAny>> = files.keys().iter().collect();
        for name in names {
            let found = model.module().extra_files.get(&name.extract::<String>()?);
            let contents = found.map_or(&[][..], |bytes| &bytes[..]);
            // As in PyTorch, text if the value is text.
            match std::str::from_utf8(contents) {
                Ok(text) => files.set_item(name, PyString::new(py, text))?,
                Err(_) => files.set_item(name, PyBytes::new(py, contents))?,
            }
        }
    }
    Ok(ScriptModule::new(model, options, kind))
}

/// Returns save options with the extra files of a dict of names and contents.
pub(crate) fn save_options(files: Option<&Bound<'_, PyDict>>) -> PyResult<SaveOptions> {
    let mut extra: BTreeMap<String, Arc<[u8]>> = BTreeMap::new();
    for (name, contents) in files.into_iter().flat_map(|files| files.iter()) {
        let wrong =
            |expected: &str, given| type_error(format!("`_extra_files`: expected {expected}, not {}", shown(given)));
        let key: String = name.extract().map_err(|_| wrong("names of type str", &name))?;
        let bytes: Vec<u8> = match contents.cast::<PyString>() {
            Ok(text) => text.to_str()?.as_bytes().to_vec(),
            Err(_) => contents
                .extract()
                .map_err(|_| wrong(&format!("a str or bytes for '{key}'"), &contents))?,
        };
        extra.insert(key, bytes.into());
    }
    Ok(SaveOptions::default().extra_files(extra))
}

/// Saves a model as an archive, which ``torch.jit.load`` loads, too.
///
/// Args:
///     m: the model.
///     f: a path, or a file object opened for writing in binary mode.
///     _extra_files: contents of files that the archive carries, by name.
///
/// >>> import frazil, io
/// >>> file = io.BytesIO()
/// >>> frazil.save(frazil.script("def f(x: int): return x + 1"), file, _extra_files={"note": "one more"})
/// >>> files = {"note": ""}
/// >>> _ = frazil.load(file.getvalue(), _extra_files=files)
/// >>> files["note"]
/// 'one more'
#[pyfunction]
#[pyo3(signature = (m, f, _extra_files = None))]
pub(crate) fn save(
    py: Python<'_>,
    #[pyo3(from_py_with = module_ref::m)] m: Bound<'_, ScriptModule>,
    f: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = args::_extra_files)] _extra_files: Option<Bound<'_, PyDict>>,
) -> PyResult<()> {
    let model = m.get().whole(py, "save")?;
    let options = save_options(_extra_files.as_ref())?;
    match f.extract::<PathBuf>() {
        Ok(path) => without_gil(py, || model.save(&path, &options))?.or_raise(py),
        Err(_) if f.hasattr("write")? => {
            let bytes = without_gil(py, || model.save_bytes(&options))?.or_raise(py)?;
            f.call_method1("write", (PyBytes::new(py, &bytes),)).map(drop)
        }
        Err(_) => Err(type_error(format!(
            "`f`: expected a path or a file object, not {}",
            shown(f)
        ))),
    }
}

pub(crate) fn names(what: &str, given: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<String>> {
    let Some(given) = given.filter(|given| !given.is_none()) else {
        return Ok(Vec::new());
    };
    let wrong = || type_error(format!("`{what}`: expected a list of str, not {}", shown(given)));
    match given.is_instance_of::<PyString>() {
        true => Err(wrong()),
        false => given.extract().map_err(|_| wrong()),
    }
}

/// Returns the module of an argument; ScriptModules of torch are converted.
pub(crate) fn module<'py>(what: &str, given: &Bound<'py, PyAny>) -> PyResult<Bound<'py, ScriptModule>> {
    if let Ok(module) = given.cast::<ScriptModule>() {
        return Ok(module.clone());
    }
    match of_torch_module(given)? {
        Some(_) => Bound::new(given.py(), load(given.py(), given, None, None, false, None)?),
        None => Err(type_error(format!(
            "`{what}`: expected a ScriptModule, not {}",
            shown(given)
        ))),
    }
}

fn freeze_options(preserve: Vec<String>, optimize_numerics: bool) -> FreezeOptions {
    let freeze = Freeze {
        preserve,
        ..Freeze::default()
    };
    FreezeOptions::default()
        .freeze(freeze)
        .optimize_numerics(optimize_numerics)
}

/// Returns a model that was derived from another.
fn derived(
    py: Python<'_>,
    from: &ScriptModule,
    make: impl FnOnce(&Model) -> frazil::Result<Model> + Send,
) -> PyResult<ScriptModule> {
    let model = from.whole(py, "use")?;
    let options = from.instance.options(py)?;
    let model = model.with_limits(options.limits);
    let made = without_gil(py, || make(&model))?.or_raise(py)?;
    Ok(ScriptModule::new(made, options, from.instance.kind))
}

/// Freezes a model: submodules, parameters and attributes become constants of its graphs, and the graphs are optimised.
///
/// Args:
///     mod: a model in evaluation mode. It is not changed.
///     preserved_attrs: attributes and methods to keep beside ``forward``, with dots for those of submodules. Attributes that are changed
///         by methods that are kept are kept too.
///     optimize_numerics: whether to optimise in ways that change the last bits of results, such as folding batch norms into convolutions.
///
/// Returns:
///     The frozen model.
///
/// >>> import frazil
/// >>> model = frazil.script("""
/// ... class Net(nn.Module):
/// ...     def __init__(self):
/// ...         super().__init__()
/// ...         self.fc = nn.Linear(2, 2)
/// ...         self.version = 1
/// ...     def forward(self, x):
/// ...         return self.fc(x)
/// ... """).eval()
/// >>> frozen = frazil.freeze(model, preserved_attrs=["version"])
/// >>> len(list(model.named_parameters())), len(list(frozen.named_parameters())), frozen.version
/// (2, 0, 1)
#[pyfunction]
#[pyo3(signature = (r#mod, preserved_attrs = None, optimize_numerics = true))]
pub(crate) fn freeze(
    py: Python<'_>,
    r#mod: &Bound<'_, PyAny>,
    preserved_attrs: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = args::optimize_numerics)] optimize_numerics: bool,
) -> PyResult<ScriptModule> {
    let module = module("mod", r#mod)?;
    let options = freeze_options(names("preserved_attrs", preserved_attrs)?, optimize_numerics);
    derived(py, module.get(), |model| model.freeze(&options))
}

/// Optimises a frozen model in place: ``freeze`` without freezing.
///
/// Args:
///     mod: a frozen model.
///     optimize_numerics: whether to optimise in ways that change the last bits of results.
///     preserved_methods: methods to optimise beside ``forward``.
///
/// >>> import frazil
/// >>> model = frazil.script("class Net(nn.Module):\n    def forward(self, x): return F.dropout(x, 0.5, False)").eval()
/// >>> frozen = frazil.freeze(model, optimize_numerics=False)
/// >>> frazil.run_frozen_optimizations(frozen)
#[pyfunction]
#[pyo3(signature = (r#mod, optimize_numerics = true, preserved_methods = None))]
pub(crate) fn run_frozen_optimizations(
    py: Python<'_>,
    #[pyo3(from_py_with = module_ref::frozen)] r#mod: Bound<'_, ScriptModule>,
    #[pyo3(from_py_with = args::optimize_numerics)] optimize_numerics: bool,
    preserved_methods: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let own = r#mod.get();
    own.whole(py, "optimise")?;
    let methods = names("preserved_methods", preserved_methods)?;
    own.instance.change(py, |model| {
        for name in &methods {
            if !model.root().has_method(name) {
                return Err(crate::errors::attribute_error(format!(
                    "the model has no method `{name}`"
                )));
            }
        }
        let pipeline = match optimize_numerics {
            true => "optimize-frozen-graph",
            false => "optimize-frozen-graph{optimize-numerics=false}",
        };
        let new = without_gil(py, || model.run_passes(pipeline, &PassOptions::default()))?;
        *model = new.or_raise(py)?.0;
        Ok(())
    })
}

/// Freezes a model, if it is not frozen, and prepares it for inference.
///
/// Args:
///     mod: a model in evaluation mode, or a frozen one. It is not changed.
///     other_methods: methods to keep and optimise beside ``forward``.
///
/// Returns:
///     The optimised model.
///
/// >>> import frazil
/// >>> model = frazil.script("class Net(nn.Module):\n    def forward(self, x): return x + 1").eval()
/// >>> frazil.optimize_for_inference(model).original_name
/// 'Net'
#[pyfunction]
#[pyo3(signature = (r#mod, other_methods = None))]
pub(crate) fn optimize_for_inference(
    py: Python<'_>,
    r#mod: &Bound<'_, PyAny>,
    other_methods: Option<&Bound<'_, PyAny>>,
) -> PyResult<ScriptModule> {
    let module = module("mod", r#mod)?;
    let options = freeze_options(names("other_methods", other_methods)?, true);
    derived(py, module.get(), |model| model.optimize_for_inference(&options))
}

/// Compiles TorchScript source: a text with classes and functions, or a function of Python, whose source is read.
///
/// Args:
///     obj: source as a str, or a function.
///     name: the function or class that becomes the model; the only one, or the last class, if it is not given.
///     **options: options of calls, see :func:`ScriptModule.with_options`.
///
/// >>> import frazil
/// >>> unit = frazil.script("def twice(x: int): return 2 * x\ndef halved(x: int): return x // 2")
/// >>> unit.twice(4), unit.halved(4)
/// (8, 2)
#[pyfunction]
#[pyo3(signature = (obj, name = None, **options))]
pub(crate) fn script(
    py: Python<'_>,
    obj: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = args::optional_name)] name: Option<String>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<ScriptModule> {
    let options = Options::default().with(options)?;
    let (text, file) = match obj.cast::<PyString>() {
        Ok(text) => (text.to_str()?.to_owned(), "<string>".to_owned()),
        Err(_) if obj.hasattr("__code__")? => {
            let inspect = py.import("inspect")?;
            let text: String = inspect.call_method1("getsource", (obj,))?.extract()?;
            let text: String = py.import("textwrap")?.call_method1("dedent", (text,))?.extract()?;
            (text, inspect.call_method1("getsourcefile", (obj,))?.extract()?)
        }
        Err(_) => {
            return Err(type_error(format!(
                "`obj`: expected source or a function, not {}",
                shown(obj)
            )));
        }
    };
    let session = session(py).with_limits(options.limits);
    let model = without_gil(py, || {
        let loaded = session.script(Path::new(&file), &text, &[])?;
        match name {
            Some(name) => loaded.to_model(&name),
            None => loaded.runnable(),
        }
    })?;
    Ok(ScriptModule::new(model.or_raise(py)?, options, Kind::Numpy))
}

/// Runs a pipeline of passes on a model.
///
/// Args:
///     model: the model. It is not changed.
///     pipeline: names of passes with commas between them, as ``jit-opt`` takes them (``"inline,cse"``), or a list of such texts and of
///         functions, which get each :class:`Graph` in turn and may edit it.
///     verify_each: whether to verify the model after each pass.
///     limit: the maximum number of rewrites.
///
/// Returns:
///     The new model.
///
/// >>> import frazil
/// >>> model = frazil.script("class Net(nn.Module):\n    def forward(self, x): return x + 0 + x")
/// >>> frazil.run_passes(model, "peephole,dce").original_name
/// 'Net'
#[pyfunction]
#[pyo3(signature = (model, pipeline, *, verify_each = false, limit = None))]
pub(crate) fn run_passes(
    py: Python<'_>,
    model: &Bound<'_, PyAny>,
    pipeline: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = args::verify_each)] verify_each: bool,
    #[pyo3(from_py_with = args::limit)] limit: Option<u64>,
) -> PyResult<ScriptModule> {
    let from = module("model", model)?;
    let from = from.get();
    let options = PassOptions::default().verify_each(verify_each).limit(limit);
    let steps: Vec<Bound<'_, PyAny>> = match pipeline.cast::<PyList>() {
        Ok(list) => list.iter().collect(),
        Err(_) => vec![pipeline.clone()],
    };
    let mut model = from.whole(py, "run passes on")?;
    for step in steps {
        if let Ok(text) = step.extract::<String>() {
            let done = without_gil(py, || model.run_passes(&text, &options))?;
            model = done.or_raise(py)?.0;
        } else if step.is_callable() {
            model = crate::graph::run_python_pass(py, &model, &step)?;
        } else {
            return Err(type_error(format!(
                "`pipeline`: expected a str or a callable, not {}",
                shown(&step)
            )));
        }
    }
    Ok(ScriptModule::new(model, from.instance.options(py)?, from.instance.kind))
}

/// Returns the names of all passes.
///
/// >>> import frazil
/// >>> "inline" in frazil.passes()
/// True
#[pyfunction]
pub(crate) fn passes(py: Python<'_>) -> Vec<String> {
    session(py).passes().passes().map(|pass| pass.name.to_owned()).collect()
}

/// Sets PyTorch's switch of oneDNN's fuser, which changes nothing here: which operators are fused is the option ``fuse``.
///
/// >>> import frazil
/// >>> frazil.enable_onednn_fusion(False)
#[pyfunction]
pub(crate) fn enable_onednn_fusion(py: Python<'_>, #[pyo3(from_py_with = args::enabled)] enabled: bool) {
    session(py).enable_onednn_fusion(enabled);
}

/// Not available: the strategy is an option of each model, ``fusion_strategy``.
///
/// >>> import frazil
/// >>> frazil.set_fusion_strategy([("STATIC", 2)])
/// Traceback (most recent call last):
/// ...
/// frazil.errors.UnsupportedError: `set_fusion_strategy` has no counterpart here: ...
#[pyfunction]
pub(crate) fn set_fusion_strategy(py: Python<'_>, strategy: &Bound<'_, PyAny>) -> PyResult<()> {
    let _ = strategy;
    Err(unsupported(
        py,
        "`set_fusion_strategy` has no counterpart here: the strategy is an option of each model; pass it as `fusion_strategy`",
    ))
}

/// Not available: with the option ``strict``, a part that cannot be compiled is an error.
///
/// >>> import frazil
/// >>> frazil.strict_fusion()
/// Traceback (most recent call last):
/// ...
/// frazil.errors.UnsupportedError: `strict_fusion` has no counterpart here: ...
#[pyfunction]
pub(crate) fn strict_fusion(py: Python<'_>) -> PyResult<()> {
    Err(unsupported(
        py,
        "`strict_fusion` has no counterpart here: with the option `strict`, what cannot be compiled is an error",
    ))
}

/// Returns the last value set by ``enable_onednn_fusion``.
///
/// >>> import frazil
/// >>> frazil.enable_onednn_fusion(True)
/// >>> frazil.onednn_fusion_enabled()
/// True
#[pyfunction]
pub(crate) fn onednn_fusion_enabled(py: Python<'_>) -> bool {
    session(py).onednn_fusion_enabled()
}

/// Returns the device with the name `given`, as in PyTorch.
pub(crate) fn device(name: &str, given: &Bound<'_, PyAny>) -> PyResult<frazil::ir::Device> {
    let text = given.str()?.to_string();
    frazil::parse_device(&text).map_err(|e| value_error(format!("`{name}`: {e}")))
}
