//! Modules: parameters, buffers and submodules, state dictionaries and conversions, with the names and arguments of `torch.nn.Module`.

use crate::args;
use crate::arrays::{dtype_of, shown};
use crate::errors::{OrRaise, type_error};
use crate::functions::save_options;
use crate::interrupt::without_gil;
use crate::module_ref;
use crate::script_module::{ScriptModule, join};
use crate::value::{Values, read_tensor};
use frazil::ir::Device;
use frazil::{
    Conversion, LoadStateDictOptions, MemberOptions, MemoryFormat, Model, StateDictOptions, Tensor, ToEmpty, Value,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

type Named<'py> = Vec<(String, Bound<'py, PyAny>)>;

impl ScriptModule {
    fn arrays<'py>(&self, py: Python<'py>, model: &Model, named: Vec<(String, Tensor)>) -> PyResult<Named<'py>> {
        let values = Values::new(py, model, self.instance.kind);
        let named = named.into_iter();
        named
            .map(|(name, tensor)| Ok((name, values.write(Value::from(tensor))?)))
            .collect()
    }

    fn members<'py>(&self, py: Python<'py>, is_parameter: bool, options: &MemberOptions) -> PyResult<Named<'py>> {
        let model = self.instance.model(py)?;
        let own = model.root().get_submodule(&self.path).or_raise(py)?;
        let named = match is_parameter {
            true => own.named_parameters(options),
            false => own.named_buffers(options),
        };
        self.arrays(py, &model, named.or_raise(py)?)
    }

    /// Converts the module with `convert`, and returns it.
    fn converted<'py>(
        slf: &Bound<'py, Self>,
        convert: impl FnOnce(&mut frazil::ScriptModuleMut<'_>) -> frazil::Result<()>,
    ) -> PyResult<Bound<'py, Self>> {
        let (py, own) = (slf.py(), slf.get());
        own.instance.change(py, |model| {
            let mut module = model.submodule_mut(&own.path).or_raise(py)?;
            convert(&mut module).or_raise(py)
        })?;
        Ok(slf.clone())
    }
}

fn options(prefix: &str, recurse: bool, remove_duplicate: bool) -> MemberOptions {
    MemberOptions::default()
        .prefix(prefix.to_owned())
        .recurse(recurse)
        .remove_duplicate(remove_duplicate)
}

/// Returns an iterator over items, like PyTorch's generators.
fn iterator<'py, T: IntoPyObject<'py>>(py: Python<'py>, items: Vec<T>) -> PyResult<Bound<'py, PyAny>> {
    Ok(PyList::new(py, items)?.try_iter()?.into_any())
}

fn second<'py>(named: Named<'py>) -> Vec<Bound<'py, PyAny>> {
    named.into_iter().map(|(_, item)| item).collect()
}

#[pymethods]
impl ScriptModule {
    /// Parameters with their names.
    #[pyo3(
        signature = (prefix = String::new(), recurse = true, remove_duplicate = true),
        text_signature = "($self, prefix='', recurse=True, remove_duplicate=True)"
    )]
    fn named_parameters<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = args::prefix)] prefix: String,
        #[pyo3(from_py_with = args::recurse)] recurse: bool,
        #[pyo3(from_py_with = args::remove_duplicate)] remove_duplicate: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        iterator(
            py,
            self.members(py, true, &options(&prefix, recurse, remove_duplicate))?,
        )
    }

    /// Returns the parameters.
    #[pyo3(signature = (recurse = true))]
    fn parameters<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = args::recurse)] recurse: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        iterator(py, second(self.members(py, true, &options("", recurse, true))?))
    }

    /// Buffers with their names.
    #[pyo3(
        signature = (prefix = String::new(), recurse = true, remove_duplicate = true),
        text_signature = "($self, prefix='', recurse=True, remove_duplicate=True)"
    )]
    fn named_buffers<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = args::prefix)] prefix: String,
        #[pyo3(from_py_with = args::recurse)] recurse: bool,
        #[pyo3(from_py_with = args::remove_duplicate)] remove_duplicate: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        iterator(
            py,
            self.members(py, false, &options(&prefix, recurse, remove_duplicate))?,
        )
    }

    /// Returns the buffers.
    #[pyo3(signature = (recurse = true))]
    fn buffers<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = args::recurse)] recurse: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        iterator(py, second(self.members(py, false, &options("", recurse, true))?))
    }

    /// Returns the direct submodules with their names.
    fn named_children<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let model = self.instance.definitions(py)?;
        let own = model.root().get_submodule(&self.path).or_raise(py)?;
        let children = own.named_children().into_iter();
        let children: Named<'py> = children
            .map(|(name, _)| {
                Ok((
                    name.to_owned(),
                    Bound::new(py, self.at(join(&self.path, name)))?.into_any(),
                ))
            })
            .collect::<PyResult<_>>()?;
        iterator(py, children)
    }

    /// Returns the direct submodules.
    fn children<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let model = self.instance.definitions(py)?;
        let own = model.root().get_submodule(&self.path).or_raise(py)?;
        let children = own.named_children().into_iter();
        let children: Vec<Bound<'py, ScriptModule>> = children
            .map(|(name, _)| Bound::new(py, self.at(join(&self.path, name))))
            .collect::<PyResult<_>>()?;
        iterator(py, children)
    }

    /// The module and all modules below it, with their names. Modules in the set ``memo`` are left out, and the returned ones are added to it.
    #[pyo3(
        signature = (memo = None, prefix = String::new(), remove_duplicate = true),
        text_signature = "($self, memo=None, prefix='', remove_duplicate=True)"
    )]
    fn named_modules<'py>(
        &self,
        py: Python<'py>,
        memo: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = args::prefix)] prefix: String,
        #[pyo3(from_py_with = args::remove_duplicate)] remove_duplicate: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let model = self.instance.definitions(py)?;
        let own = model.root().get_submodule(&self.path).or_raise(py)?;
        let all = own
            .named_modules_with(&options("", true, remove_duplicate))
            .or_raise(py)?;
        let mut named: Named<'py> = Vec::new();
        for (name, _) in all {
            let path = match name.as_str() {
                "" => self.path.clone(),
                name => join(&self.path, name),
            };
            let module = Bound::new(py, self.at(path))?.into_any();
            if let Some(memo) = memo {
                let known = memo.contains(&module);
                if known.map_err(|_| type_error(format!("`memo`: expected a set, not {}", shown(memo))))? {
                    continue;
                }
                memo.call_method1("add", (&module,))?;
            }
            let full = match name.as_str() {
                "" => prefix.clone(),
                name => join(&prefix, name),
            };
            named.push((full, module));
        }
        iterator(py, named)
    }

    /// Returns the module and all modules below it.
    #[pyo3(signature = (remove_duplicate = true))]
    fn modules<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = args::remove_duplicate)] remove_duplicate: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let named = self.named_modules(py, None, String::new(), remove_duplicate)?;
        let modules: Vec<Bound<'py, PyAny>> = named
            .try_iter()?
            .map(|pair| pair?.get_item(1))
            .collect::<PyResult<_>>()?;
        iterator(py, modules)
    }

    /// Returns the submodule at a dotted path.
    fn get_submodule(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = args::target)] target: String,
    ) -> PyResult<ScriptModule> {
        let model = self.instance.definitions(py)?;
        let own = model.root().get_submodule(&self.path).or_raise(py)?;
        own.get_submodule(&target).or_raise(py)?;
        Ok(self.at(match target.as_str() {
            "" => self.path.clone(),
            target => join(&self.path, target),
        }))
    }

    /// Returns the parameter at a dotted path.
    fn get_parameter<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = args::target)] target: String,
    ) -> PyResult<Bound<'py, PyAny>> {
        let model = self.instance.model(py)?;
        let own = model.root().get_submodule(&self.path).or_raise(py)?;
        let tensor = own.get_parameter(&target).or_raise(py)?;
        Values::new(py, &model, self.instance.kind).write(Value::from(tensor))
    }

    /// Returns the buffer at a dotted path.
    fn get_buffer<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = args::target)] target: String,
    ) -> PyResult<Bound<'py, PyAny>> {
        let model = self.instance.model(py)?;
        let own = model.root().get_submodule(&self.path).or_raise(py)?;
        let tensor = own.get_buffer(&target).or_raise(py)?;
        Values::new(py, &model, self.instance.kind).write(Value::from(tensor))
    }

    /// Parameters and buffers by name.
    ///
    /// Positional arguments are ``destination``, ``prefix`` and ``keep_vars``, as in older versions of PyTorch.
    #[pyo3(
        signature = (*args, destination = None, prefix = String::new(), keep_vars = false),
        text_signature = "($self, *args, destination=None, prefix='', keep_vars=False)"
    )]
    fn state_dict<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        destination: Option<Bound<'py, PyAny>>,
        #[pyo3(from_py_with = args::prefix)] prefix: String,
        #[pyo3(from_py_with = args::keep_vars)] keep_vars: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut args = args.iter();
        let destination = args.next().filter(|given| !given.is_none()).or(destination);
        if let Some(given) = destination
            .as_ref()
            .filter(|given| !given.hasattr("__setitem__").unwrap_or(false))
        {
            return Err(type_error(format!(
                "`destination`: expected a dict, not {}",
                shown(given)
            )));
        }
        let prefix: String = args.next().map_or(Ok(prefix.to_owned()), |given| given.extract())?;
        let keep_vars = args.next().map_or(Ok(keep_vars), |given| given.extract())?;
        if let Some(more) = args.next() {
            return Err(type_error(format!(
                "expected at most 3 positional arguments, also {}",
                shown(&more)
            )));
        }
        let model = self.instance.model(py)?;
        let own = model.root().get_submodule(&self.path).or_raise(py)?;
        let options = StateDictOptions::default().prefix(prefix).keep_vars(keep_vars);
        let state = own.state_dict_with(&options).or_raise(py)?;
        let out = match destination {
            Some(destination) => destination,
            None => py.import("collections")?.call_method0("OrderedDict")?,
        };
        for (name, array) in self.arrays(py, &model, state.into_iter().collect())? {
            out.set_item(name, array)?;
        }
        Ok(out)
    }

    /// Copies parameters and buffers from a state dictionary.
    ///
    /// Returns a named tuple of ``missing_keys`` and ``unexpected_keys``. With ``strict``, either is an error.
    #[pyo3(signature = (state_dict, strict = true, assign = false))]
    fn load_state_dict<'py>(
        &self,
        py: Python<'py>,
        state_dict: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = args::strict)] strict: bool,
        #[pyo3(from_py_with = args::assign)] assign: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let state = crate::state_hooks::read(state_dict)?;
        let options = LoadStateDictOptions::default().strict(strict).assign(assign);
        // Works on a copy, since hooks may use the module.
        let mut loaded = Model::clone(&*self.instance.model(py)?);
        let keys = {
            let mut own = loaded.submodule_mut(&self.path).or_raise(py)?;
            own.load_state_dict_with(&state, &options).or_raise(py)?
        };
        self.instance.change(py, |model| {
            *model = loaded;
            Ok(())
        })?;
        let class = py.import("frazil.module")?.getattr("IncompatibleKeys")?;
        class.call1((keys.missing_keys, keys.unexpected_keys))
    }

    /// Adds a submodule.
    fn add_module(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = args::name)] name: String,
        #[pyo3(from_py_with = module_ref::module)] module: Bound<'_, ScriptModule>,
    ) -> PyResult<()> {
        let child = module.get().whole(py, "add")?;
        self.instance.change(py, |model| {
            let mut own = model.submodule_mut(&self.path).or_raise(py)?;
            own.add_module(&name, &child).or_raise(py)
        })
    }

    /// Adds a submodule, as ``add_module``.
    fn register_module(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = args::name)] name: String,
        #[pyo3(from_py_with = module_ref::module)] module: Bound<'_, ScriptModule>,
    ) -> PyResult<()> {
        self.add_module(py, name, module)
    }

    /// Replaces the submodule at a dotted path; with ``strict=False``, adds it if it does not exist.
    #[pyo3(signature = (target, module, strict = false))]
    fn set_submodule(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = args::target)] target: String,
        #[pyo3(from_py_with = module_ref::module)] module: Bound<'_, ScriptModule>,
        #[pyo3(from_py_with = args::strict)] strict: bool,
    ) -> PyResult<()> {
        let child = module.get().whole(py, "set")?;
        self.instance.change(py, |model| {
            let mut own = model.submodule_mut(&self.path).or_raise(py)?;
            let done = match strict {
                true => own.replace_submodule(&target, &child),
                false => own.set_submodule(&target, &child),
            };
            done.or_raise(py)
        })
    }

    /// Adds a buffer.
    #[pyo3(signature = (name, tensor, persistent = true))]
    fn register_buffer(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = args::name)] name: String,
        tensor: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = args::persistent)] persistent: bool,
    ) -> PyResult<()> {
        let tensor = tensor.map(|tensor| read_tensor(tensor, "`tensor`")).transpose()?;
        self.instance.change(py, |model| {
            let mut own = model.submodule_mut(&self.path).or_raise(py)?;
            own.register_buffer(&name, tensor.as_ref(), persistent).or_raise(py)
        })
    }

    /// Adds a parameter.
    fn register_parameter(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = args::name)] name: String,
        param: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let flag = param.map(|param| param.getattr("requires_grad"));
        let requires_grad = flag
            .and_then(Result::ok)
            .is_none_or(|flag| flag.is_truthy().unwrap_or(true));
        let tensor = param.map(|tensor| read_tensor(tensor, "`param`")).transpose()?;
        self.instance.change(py, |model| {
            let mut own = model.submodule_mut(&self.path).or_raise(py)?;
            own.register_parameter(&name, tensor.as_ref(), requires_grad)
                .or_raise(py)
        })
    }

    /// Adds an attribute, whose type is that of its value.
    fn register_attribute(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = args::name)] name: String,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.instance.change(py, |model| {
            let value = Values::new(py, model, self.instance.kind).read(value)?;
            let mut own = model.submodule_mut(&self.path).or_raise(py)?;
            own.register_attribute(&name, &value).or_raise(py)
        })
    }

    /// Calls ``fn`` with each module, submodules first.
    fn apply<'py>(slf: &Bound<'py, Self>, r#fn: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Self>> {
        if !r#fn.is_callable() {
            return Err(type_error(format!("`fn`: expected a callable, not {}", shown(r#fn))));
        }
        let named = slf.get().named_children(slf.py())?;
        for pair in named.try_iter()? {
            let child = pair?.get_item(1)?;
            ScriptModule::apply(child.cast::<ScriptModule>()?, r#fn)?;
        }
        r#fn.call1((slf,))?;
        Ok(slf.clone())
    }

    /// Sets training mode, or with ``False`` evaluation mode.
    #[pyo3(signature = (mode = true))]
    fn train<'py>(slf: &Bound<'py, Self>, #[pyo3(from_py_with = args::mode)] mode: bool) -> PyResult<Bound<'py, Self>> {
        ScriptModule::converted(slf, |module| {
            module.train(mode);
            Ok(())
        })
    }

    /// Sets evaluation mode.
    fn eval<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        ScriptModule::train(slf, false)
    }

    /// Converts parameters and buffers: ``to(device)``, ``to(dtype)``, ``to(tensor)``, ``to(memory_format=...)``.
    #[pyo3(signature = (*args, device = None, dtype = None, non_blocking = false, copy = false, memory_format = None))]
    fn to<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        device: Option<Bound<'py, PyAny>>,
        dtype: Option<Bound<'py, PyAny>>,
        #[pyo3(from_py_with = args::non_blocking)] non_blocking: bool,
        #[pyo3(from_py_with = args::copy)] copy: bool,
        memory_format: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Self>> {
        let mut conversion = Conversion {
            non_blocking,
            copy,
            ..Conversion::default()
        };
        let each = args.iter().chain(device).chain(dtype);
        for argument in each {
            if argument.is_none() {
                continue;
            }
            if argument.is_instance_of::<pyo3::types::PyBool>() {
                conversion.non_blocking = argument.extract()?;
            } else if let Ok(dtype) = dtype_of(&argument) {
                conversion.dtype = Some(dtype);
            } else if argument.hasattr("__dlpack__")? {
                conversion.dtype = Some(dtype_of(&argument.getattr("dtype")?)?);
                conversion.device = Some(Device::CPU);
            } else {
                conversion.device = Some(crate::functions::device("device", &argument)?);
            }
        }
        if let Some(format) = memory_format {
            let text = format.str()?.to_string();
            let name = text.strip_prefix("torch.").unwrap_or(&text);
            let format = MemoryFormat::from_python_name(name);
            let format = format.ok_or_else(|| type_error(format!("`memory_format`: there is no `{name}`")))?;
            conversion.memory_format = Some(format);
        }
        ScriptModule::converted(slf, |module| module.to(conversion))
    }

    /// Allocates new memory for parameters and buffers on a device, without copying elements.
    #[pyo3(signature = (*, device, recurse = true))]
    fn to_empty<'py>(
        slf: &Bound<'py, Self>,
        device: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = args::recurse)] recurse: bool,
    ) -> PyResult<Bound<'py, Self>> {
        let device = Some(crate::functions::device("device", device)?);
        ScriptModule::converted(slf, |module| module.to_empty(ToEmpty { device, recurse }))
    }

    /// Converts parameters and buffers to a dtype.
    fn r#type<'py>(slf: &Bound<'py, Self>, dst_type: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Self>> {
        let name = dst_type.str()?.to_string();
        match dtype_of(dst_type) {
            Err(_) if !dst_type.is_instance_of::<PyString>() => Err(type_error(format!(
                "`dst_type`: expected a dtype, not {}",
                shown(dst_type)
            ))),
            Ok(dtype) => ScriptModule::converted(slf, |module| module.to_type(dtype)),
            Err(_) => ScriptModule::converted(slf, |module| module.to_type_named(&name)),
        }
    }

    /// Converts floating-point parameters and buffers to float32.
    fn float<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        ScriptModule::converted(slf, |module| module.float())
    }

    /// Converts floating-point parameters and buffers to float64.
    fn double<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        ScriptModule::converted(slf, |module| module.double())
    }

    /// Converts floating-point parameters and buffers to float16.
    fn half<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        ScriptModule::converted(slf, |module| module.half())
    }

    /// Converts floating-point parameters and buffers to bfloat16.
    fn bfloat16<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        ScriptModule::converted(slf, |module| module.bfloat16())
    }

    /// Moves the module to the host, which has no effect.
    fn cpu<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        ScriptModule::converted(slf, |module| module.to(Device::CPU))
    }

    /// Sets the ``requires_grad`` flag of parameters, which archives store.
    #[pyo3(signature = (requires_grad = true))]
    fn requires_grad_<'py>(
        slf: &Bound<'py, Self>,
        #[pyo3(from_py_with = args::requires_grad)] requires_grad: bool,
    ) -> PyResult<Bound<'py, Self>> {
        ScriptModule::converted(slf, |module| module.requires_grad_(requires_grad))
    }

    /// Does nothing: there are no gradients.
    #[pyo3(signature = (set_to_none = true))]
    fn zero_grad(&self, #[pyo3(from_py_with = args::set_to_none)] set_to_none: bool) {
        let _ = set_to_none;
    }

    /// Does nothing: forked processes share the memory of a model.
    fn share_memory<'py>(slf: &Bound<'py, Self>) -> Bound<'py, Self> {
        slf.clone()
    }

    /// Saves the model as an archive, which ``torch.jit.load`` can load too.
    #[pyo3(signature = (f, _extra_files = None))]
    fn save(
        slf: &Bound<'_, Self>,
        f: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = args::_extra_files)] _extra_files: Option<Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        crate::functions::save(slf.py(), slf.clone(), f, _extra_files)
    }

    /// Returns the archive that ``save`` writes, as bytes.
    #[pyo3(signature = (_extra_files = None))]
    fn save_to_buffer<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = args::_extra_files)] _extra_files: Option<Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, pyo3::types::PyBytes>> {
        let model = self.whole(py, "save")?;
        let options = save_options(_extra_files.as_ref())?;
        let bytes = without_gil(py, || model.save_bytes(&options))?.or_raise(py)?;
        Ok(pyo3::types::PyBytes::new(py, &bytes))
    }

    /// Adds methods to the model, from source of functions whose first argument is ``self``.
    fn define(&self, py: Python<'_>, #[pyo3(from_py_with = args::src)] src: String) -> PyResult<()> {
        self.whole(py, "define methods of")?;
        self.instance.change(py, |model| model.define(&src).or_raise(py))
    }

    /// Returns true if there is an attribute, as ``hasattr``, at a dotted path.
    fn has_attribute(&self, py: Python<'_>, #[pyo3(from_py_with = args::path)] path: String) -> PyResult<bool> {
        let model = self.instance.definitions(py)?;
        Ok(model.root().has_attribute(&join(&self.path, &path)))
    }
}
