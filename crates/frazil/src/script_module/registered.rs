//! Registration of parameters, buffers (which may be `None`) and modules, also in submodules.

use super::attributes::export;
use super::{ScriptModule, ScriptModuleMut};
use crate::error::{Error, Result};
use frazil_ir::{AttributeKind, Constant, TensorData, TypeId, types};
use frazil_runtime::export::Exporter;
use frazil_runtime::{Tensor, Value};
use std::sync::Arc;

impl ScriptModuleMut<'_> {
    /// Registers a parameter of this module, as [`Model::register_parameter`](crate::Model::register_parameter) does.
    ///
    /// ```
    /// # use frazil::Tensor;
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let mut model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// let one = Tensor::from_f32(&[1.0], &[1])?;
    /// model.submodule_mut("fc")?.register_parameter("scale", &one, true)?;
    /// model.submodule_mut("fc")?.register_buffer("shift", None::<&Tensor>, true)?;
    /// model.submodule_mut("fc")?.register_attribute("steps", &frazil::Value::Int(3))?;
    /// assert!(model.root().get_parameter("fc.scale").is_ok() && model.root().has_attribute("fc.shift"));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Model::register_parameter`](crate::Model::register_parameter).
    pub fn register_parameter<'t>(
        &mut self,
        name: &str,
        tensor: impl Into<Option<&'t Tensor>>,
        requires_grad: bool,
    ) -> Result<()> {
        let mut data = tensor.into().map(|t| Exporter::new().tensor(t)).transpose()?;
        if let Some(data) = &mut data {
            data.requires_grad = requires_grad;
        }
        let (ty, value) = self.optional_tensor(name, data);
        self.register(name, AttributeKind::Parameter, ty, value)
    }

    /// Registers a buffer of this module, as [`Model::register_buffer`](crate::Model::register_buffer) does.
    ///
    /// See [`register_parameter`](Self::register_parameter) for an example.
    ///
    /// # Errors
    /// The errors of [`Model::register_buffer`](crate::Model::register_buffer).
    pub fn register_buffer<'t>(
        &mut self,
        name: &str,
        tensor: impl Into<Option<&'t Tensor>>,
        persistent: bool,
    ) -> Result<()> {
        let kind = match persistent {
            true => AttributeKind::Buffer,
            false => AttributeKind::Plain,
        };
        let data = tensor.into().map(|t| Exporter::new().tensor(t)).transpose()?;
        let (ty, value) = self.optional_tensor(name, data);
        self.register(name, kind, ty, value)
    }

    /// Registers an attribute of this module, as [`Model::register_attribute`](crate::Model::register_attribute) does.
    ///
    /// See [`register_parameter`](Self::register_parameter) for an example.
    ///
    /// # Errors
    /// The errors of [`Model::register_attribute`](crate::Model::register_attribute).
    pub fn register_attribute(&mut self, name: &str, value: &Value) -> Result<()> {
        let constant = export(name, value)?;
        let ty = value.ty(self.model.session().ctx());
        self.register(name, AttributeKind::Plain, ty, constant)
    }

    fn register(&mut self, name: &str, kind: AttributeKind, ty: TypeId, value: Constant) -> Result<()> {
        self.model.register_at(self.object, name, kind, ty, value)
    }

    /// Adds a submodule to this module, as [`Model::add_module`](crate::Model::add_module) does.
    ///
    /// ```
    /// # let session = frazil::Session::new();
    /// # let source = |name: &str| format!("class {name}(nn.Module):\n def __init__(self): super().__init__()\n def forward(self, x): return x\n");
    /// # let mut model = session.script("a.py".as_ref(), &source("Net"), &[])?.to_model("forward")?;
    /// # let head = session.script("b.py".as_ref(), &source("Head"), &[])?.to_model("forward")?;
    /// model.add_module("head", &head)?;
    /// model.submodule_mut("head")?.add_module("inner", &head)?;
    /// assert_eq!(model.root().get_submodule("head.inner")?.original_name(), "Head");
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Model::add_module`](crate::Model::add_module).
    pub fn add_module<'c>(&mut self, name: &str, child: impl Into<ScriptModule<'c>>) -> Result<()> {
        let problem = match name {
            "" => "be empty string \"\"".to_owned(),
            name if name.contains('.') => format!("contain \".\", got: {name}"),
            _ => return self.model.place(self.object, name, child.into()),
        };
        Err(Error::Attribute(format!("module name can't {problem}")))
    }

    /// Sets a submodule of this module, as [`Model::set_submodule`](crate::Model::set_submodule) does.
    ///
    /// ```
    /// # let session = frazil::Session::new();
    /// # let source = |name: &str| format!("class {name}(nn.Module):\n def __init__(self): super().__init__()\n def forward(self, x): return x\n");
    /// # let mut model = session.script("a.py".as_ref(), &source("Net"), &[])?.to_model("forward")?;
    /// # let head = session.script("b.py".as_ref(), &source("Head"), &[])?.to_model("forward")?;
    /// model.add_module("head", &head)?;
    /// model.submodule_mut("head")?.set_submodule("inner", &head)?;
    /// assert!(model.submodule_mut("head")?.replace_submodule("other", &head).is_err()); // there is none
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Model::set_submodule`](crate::Model::set_submodule).
    pub fn set_submodule<'c>(&mut self, path: &str, child: impl Into<ScriptModule<'c>>) -> Result<()> {
        if path.is_empty() {
            return Err(Error::Attribute(
                "Cannot set the submodule without a target name!".to_owned(),
            ));
        }
        let (owner, name) = self.view().owner(path)?;
        if owner.get_submodule(name).is_err() && (owner.has_attribute(name) || owner.has_method(name)) {
            return Err(Error::Attribute(format!("`{name}` is not an nn.Module")));
        }
        let owner = owner.id();
        self.model.place(owner, name, child.into())
    }

    /// Replaces a submodule of this module, as [`Model::replace_submodule`](crate::Model::replace_submodule) does.
    ///
    /// See [`set_submodule`](Self::set_submodule) for an example.
    ///
    /// # Errors
    /// The errors of [`Model::replace_submodule`](crate::Model::replace_submodule).
    pub fn replace_submodule<'c>(&mut self, path: &str, child: impl Into<ScriptModule<'c>>) -> Result<()> {
        if !path.is_empty() {
            self.view().get_submodule(path)?;
        }
        self.set_submodule(path, child)
    }

    /// Returns the type and content of an attribute with `tensor`. The type is optional if the tensor is `None`, or if the attribute was optional before.
    fn optional_tensor(&self, name: &str, tensor: Option<TensorData>) -> (TypeId, Constant) {
        let ctx = self.model.session().ctx();
        let class = self.model.module().class_of(self.object);
        let known = ctx.find_symbol(name).and_then(|name| class?.attributes.get(&name));
        let optional = ctx.optional_of(types::TENSOR);
        match tensor {
            Some(data) => {
                let is_optional = known.is_some_and(|attribute| attribute.ty == optional);
                let ty = if is_optional { optional } else { types::TENSOR };
                (ty, Constant::Tensor(Arc::new(data)))
            }
            // Code was compiled for an attribute that is always `None`, or is optional.
            None => match known.map(|attribute| attribute.ty) {
                Some(types::NONE) => (types::NONE, Constant::None),
                _ => (optional, Constant::None),
            },
        }
    }
}

/// Checks the name of an attribute that is added.
///
/// # Errors
/// If it is empty or contains a dot; the text is PyTorch's.
pub(super) fn check_name(kind: AttributeKind, name: &str) -> Result<()> {
    let what = match kind {
        AttributeKind::Parameter => "parameter",
        AttributeKind::Buffer => "buffer",
        AttributeKind::Plain => "attribute",
    };
    let problem = match name {
        "" => "can't be empty string \"\"",
        name if name.contains('.') => "can't contain \".\"",
        _ => return Ok(()),
    };
    Err(Error::Attribute(format!("{what} name {problem}")))
}
