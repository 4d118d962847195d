//! Modules as objects: traversal and lookup, with the names and rules of `torch.jit.ScriptModule`.
//!
//! [`ScriptModule`] is a view of one object of a [`Model`]. The tensors that it returns share the module's memory until one
//! of the two is written: they are values, and a module changes only through methods of [`Model`].

mod adopt;
mod attributes;
mod checkpoint;
mod code;
mod constants;
mod conversion;
mod convert;
mod instances;
mod load_state;
mod map_location;
mod members;
mod registered;
mod renaming;
mod repr;
mod rewrite;
mod state_dict;
mod state_hooks;
mod submodule;
mod tensor_file;
mod tensor_info;
mod unavailable;

pub use code::ConstMap;
pub(crate) use conversion::check_device;
pub(crate) use rewrite::replace_tensors;
pub(crate) use state_hooks::StateHooks;

pub use checkpoint::{Checkpoint, read_checkpoint, write_checkpoint};
pub use conversion::{Conversion, MemoryFormat, parse_device, tensor_type};
pub use convert::ToEmpty;
pub use load_state::LoadStateDictOptions;
pub use members::MemberOptions;
pub use state_dict::{IncompatibleKeys, StateDict, StateDictOptions};
pub use state_hooks::{LoadingState, StateHookId};
pub use submodule::ScriptModuleMut;
pub use tensor_file::{read_safetensors, write_safetensors};
pub use tensor_info::TensorInfo;

use crate::error::{Error, Result};
use crate::model::Model;
use crate::session::Session;
use frazil_ir::{AttributeKind, ClassDef, ClassKind, Constant, Module, ObjectId, TensorData};
use frazil_runtime::import::Importer;
use frazil_runtime::{Tensor, Value};
use std::sync::Arc;

/// A module or submodule of a [`Model`].
///
/// ```
/// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
/// # def forward(self, x): return self.fc(x)\n";
/// # let model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
/// let fc = model.root().get_submodule("fc")?;
/// assert_eq!((fc.original_name(), fc.get_parameter("weight")?.sizes()), ("Linear", &[1, 2][..]));
/// # Ok::<(), frazil::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct ScriptModule<'m> {
    session: &'m Session,
    module: &'m Arc<Module>,
    hooks: &'m StateHooks,
    object: ObjectId,
}

impl<'m> From<&'m Model> for ScriptModule<'m> {
    fn from(model: &'m Model) -> ScriptModule<'m> {
        model.root()
    }
}

impl Model {
    /// Returns the root module of the model.
    ///
    /// See [`ScriptModule`] for an example.
    pub fn root(&self) -> ScriptModule<'_> {
        ScriptModule {
            session: self.session(),
            module: self.module(),
            hooks: self.state_hooks(),
            object: self.module().root,
        }
    }
}

impl<'m> ScriptModule<'m> {
    /// Returns the object's id, which identifies it: a submodule with two paths has one id.
    ///
    /// ```
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// let (root, fc) = (model.root(), model.root().get_submodule("fc")?);
    /// assert!(fc.id() == root.named_children()[0].1.id() && fc.id() != root.id());
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn id(self) -> ObjectId {
        self.object
    }

    fn class(self) -> Option<&'m ClassDef> {
        self.module.class_of(self.object)
    }

    fn at(self, object: ObjectId) -> ScriptModule<'m> {
        ScriptModule {
            session: self.session,
            module: self.module,
            hooks: self.hooks,
            object,
        }
    }

    /// Returns the name of the module's Python class, without module path and mangling: `Net` (`ScriptModule.original_name`).
    ///
    /// ```
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// assert_eq!(model.root().original_name(), "Net"); // of class `__torch__.Net`
    /// assert_eq!(model.root().extra_repr(), "original_name=Net");
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn original_name(self) -> &'m str {
        let name = self.module.ctx().name(self.module.object(self.object).class);
        name.rsplit('.').next().unwrap_or(name)
    }

    /// Returns the text of `ScriptModule.extra_repr`: `original_name=Net`.
    ///
    /// See [`original_name`](Self::original_name) for an example.
    pub fn extra_repr(self) -> String {
        format!("original_name={}", self.original_name())
    }

    /// Returns the names of its methods, without its hooks.
    ///
    /// ```
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// assert_eq!(model.root().method_names(), ["forward"]);
    /// assert!(model.root().has_method("forward") && !model.root().has_method("backward"));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn method_names(self) -> Vec<&'m str> {
        let ctx = self.module.ctx();
        let methods = self.class().into_iter().flat_map(|class| {
            let is_hook = |name| class.forward_pre_hooks.contains(name) || class.forward_hooks.contains(name);
            class.methods.keys().filter(move |name| !is_hook(name))
        });
        methods.map(|name| ctx.name(*name)).collect()
    }

    /// Returns true if the module has a method of that name that is not a hook.
    ///
    /// See [`method_names`](Self::method_names) for an example.
    pub fn has_method(self, name: &str) -> bool {
        self.method_names().contains(&name)
    }

    /// Returns names, kinds and values of the attributes of this object, in order.
    fn slots(self) -> impl Iterator<Item = (&'m str, AttributeKind, &'m Constant)> {
        let (module, object) = (self.module, self.object);
        let attributes = self.class().map(|c| c.attributes.iter());
        attributes
            .into_iter()
            .flatten()
            .zip(&module.object(object).slots)
            .map(|((name, attribute), value)| (module.ctx().name(*name), attribute.kind, value))
    }

    /// Returns the submodule at a dotted path; "" is this module (`Module.get_submodule`).
    ///
    /// ```
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// assert_eq!(model.root().get_submodule("fc")?.original_name(), "Linear");
    /// let error = model.root().get_submodule("head").err().map(|e| e.to_string());
    /// assert_eq!(error.as_deref(), Some("Net has no attribute `head`"));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a name on the path does not exist or is not a module.
    pub fn get_submodule(self, path: &str) -> Result<ScriptModule<'m>> {
        let mut at = self;
        for name in path.split('.').filter(|_| !path.is_empty()) {
            at = match at.slot(name) {
                Some((_, Constant::Object(id))) if at.at(*id).class().is_some_and(|c| c.kind == ClassKind::Module) => {
                    at.at(*id)
                }
                Some(_) => return Err(Error::Attribute(format!("`{name}` is not an nn.Module"))),
                None => return Err(at.missing(name)),
            };
        }
        Ok(at)
    }

    /// Returns the parameter at a dotted path (`Module.get_parameter`).
    ///
    /// ```
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// assert_eq!(model.root().get_parameter("fc.weight")?.sizes(), [1, 2]);
    /// assert!(model.root().get_buffer("fc.weight").is_err()); // it is a parameter
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is none.
    pub fn get_parameter(self, path: &str) -> Result<Tensor> {
        self.get_tensor(path, AttributeKind::Parameter, "an nn.Parameter")
    }

    /// Returns the buffer at a dotted path (`Module.get_buffer`).
    ///
    /// See [`get_parameter`](Self::get_parameter) for an example.
    ///
    /// # Errors
    /// If there is none.
    pub fn get_buffer(self, path: &str) -> Result<Tensor> {
        self.get_tensor(path, AttributeKind::Buffer, "a buffer")
    }

    fn get_tensor(self, path: &str, kind: AttributeKind, what: &str) -> Result<Tensor> {
        let (owner, name) = self.owner(path)?;
        match owner.slot(name) {
            Some((found, Constant::Tensor(t))) if found == kind => tensor(t),
            Some(_) => Err(Error::Attribute(format!("`{name}` is not {what}"))),
            None => Err(owner.missing(name)),
        }
    }

    /// Returns the attribute at a dotted path, of any kind, or the constant (`Final`): the value of `module.a.b` in Python.
    ///
    /// ```
    /// # use frazil::Value;
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// assert!(matches!(model.root().attribute("fc.training")?, Value::Bool(false)));
    /// assert!(model.root().has_attribute("fc.bias") && !model.root().has_attribute("fc.nothing"));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is none.
    pub fn attribute(self, path: &str) -> Result<Value> {
        let (owner, name) = self.owner(path)?;
        let value = owner.slot(name).map(|(_, value)| value);
        match value.or_else(|| owner.constant(name)) {
            Some(value) => Ok(Importer::new().value(value, Some(&**self.module))?),
            None => Err(owner.missing(name)),
        }
    }

    /// Returns true if there is an attribute or a constant at a dotted path (`hasattr`).
    ///
    /// See [`attribute`](Self::attribute) for an example.
    pub fn has_attribute(self, path: &str) -> bool {
        self.owner(path)
            .is_ok_and(|(owner, name)| owner.slot(name).is_some() || owner.constant(name).is_some())
    }

    /// Returns true in training mode. Modules without the flag are not in training mode.
    ///
    /// See [`Model::train`] for an example.
    pub fn is_training(self) -> bool {
        matches!(self.slot("training"), Some((_, Constant::Bool(true))))
    }

    /// Splits a dotted path into the module that contains its last name, and that name.
    fn owner<'p>(self, path: &'p str) -> Result<(ScriptModule<'m>, &'p str)> {
        let (prefix, name) = path.rsplit_once('.').unwrap_or(("", path));
        Ok((self.get_submodule(prefix)?, name))
    }

    fn slot(self, name: &str) -> Option<(AttributeKind, &'m Constant)> {
        let index = self.slot_index(name)?;
        let attribute = &self.class()?.attributes[index];
        Some((attribute.kind, self.module.object(self.object).slots.get(index)?))
    }

    fn slot_index(self, name: &str) -> Option<usize> {
        let name = self.module.ctx().find_symbol(name)?;
        self.class()?.attributes.get_index_of(&name)
    }

    fn missing(self, name: &str) -> Error {
        Error::Attribute(format!("{} has no attribute `{name}`", self.original_name()))
    }
}

pub(crate) fn join(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        _ => format!("{path}.{name}"),
    }
}

fn tensors(named: Vec<(String, &Arc<TensorData>)>) -> Result<Vec<(String, Tensor)>> {
    let mut importer = Importer::new();
    let imported = named.into_iter().map(|(name, t)| Ok((name, importer.tensor(t)?.get())));
    imported.collect()
}

fn tensor(data: &Arc<TensorData>) -> Result<Tensor> {
    Ok(Importer::new().tensor(data)?.get())
}
