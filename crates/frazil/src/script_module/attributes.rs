//! Setting attributes, and adding new ones.

use super::ScriptModule;
use crate::{Error, Model, Result};
use frazil_ir::types::{TypeStyle, display_type, is_subtype};
use frazil_ir::{AttributeKind, Constant, ObjectId, SymbolId, TensorData, TypeId, types};
use frazil_runtime::export::Exporter;
use frazil_runtime::{Tensor, Value};
use std::sync::Arc;

impl Model {
    /// Sets the attribute at a dotted path (`setattr`). A tensor is shared with the module until one of the two is written; whether a parameter requires
    /// gradients is the new tensor's matter, as in PyTorch.
    ///
    /// ```
    /// # use frazil::{Tensor, Value};
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let mut model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// model.set_attribute("fc.weight", &Value::from(Tensor::from_f32(&[1.0, 2.0], &[1, 2])?))?;
    /// assert_eq!(model.root().get_parameter("fc.weight")?.to_f64_vec(), [1.0, 2.0]);
    /// assert!(model.set_attribute("fc.weight", &Value::Int(1)).is_err());
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there is no such attribute, or the value is not of its type.
    pub fn set_attribute(&mut self, path: &str, value: &Value) -> Result<()> {
        let (owner, name) = self.root().owner(path)?;
        let (object, Some(index)) = (owner.id(), owner.slot_index(name)) else {
            return Err(owner.missing(name));
        };
        let declared = owner.class().map_or(types::ANY, |c| c.attributes[index].ty);
        self.check_type(name, value, declared)?;
        let new = export(name, value)?;
        self.module_mut().object_mut(object).slots[index] = new;
        Ok(())
    }

    fn check_type(&self, name: &str, value: &Value, declared: TypeId) -> Result<()> {
        let ctx = self.session().ctx();
        let found = value.ty(ctx);
        if is_subtype(ctx, found, declared) {
            return Ok(());
        }
        Err(Error::Attribute(format!(
            "Could not cast attribute '{name}' to type {}: it is of type {}",
            display_type(ctx, declared, TypeStyle::Annotation),
            display_type(ctx, found, TypeStyle::Annotation)
        )))
    }

    /// Adds a parameter, or replaces the attribute of that name (`Module.register_parameter`).
    ///
    /// ```
    /// # use frazil::Tensor;
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let mut model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// model.register_parameter("scale", &Tensor::from_f32(&[2.0], &[1])?, true)?;
    /// assert_eq!(model.root().get_parameter("scale")?.to_f64_vec(), [2.0]);
    /// assert!(model.register_parameter("forward", &Tensor::from_f32(&[2.0], &[1])?, true).is_err()); // a method
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the name is not one, or other objects are of the module's class.
    pub fn register_parameter(&mut self, name: &str, tensor: &Tensor, requires_grad: bool) -> Result<()> {
        let mut data = Exporter::new().tensor(tensor)?;
        data.requires_grad = requires_grad;
        self.register(name, AttributeKind::Parameter, types::TENSOR, tensor_constant(data))
    }

    /// Adds a buffer, or replaces the attribute of that name (`Module.register_buffer`). One that is not `persistent` is kept out of state
    /// dictionaries, as a plain attribute is.
    ///
    /// ```
    /// # use frazil::Tensor;
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let mut model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// let zero = Tensor::from_f32(&[0.0], &[1])?;
    /// model.register_buffer("kept", &zero, true)?;
    /// model.register_buffer("scratch", &zero, false)?;
    /// assert!(model.root().has_attribute("scratch") && model.root().get_buffer("scratch").is_err());
    /// assert!(model.state_dict()?.keys().eq(["kept", "fc.weight", "fc.bias"]));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the name is not one, or other objects are of the module's class.
    pub fn register_buffer(&mut self, name: &str, tensor: &Tensor, persistent: bool) -> Result<()> {
        let kind = match persistent {
            true => AttributeKind::Buffer,
            false => AttributeKind::Plain,
        };
        self.register(
            name,
            kind,
            types::TENSOR,
            tensor_constant(Exporter::new().tensor(tensor)?),
        )
    }

    /// Adds an attribute of the value's own type, or replaces the one of that name (`Module.register_attribute` of the C++ interface).
    ///
    /// ```
    /// # use frazil::Value;
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let mut model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// model.register_attribute("steps", &Value::Int(3))?;
    /// model.define("def count(self):\n    return self.steps\n")?;
    /// assert!(matches!(model.root().attribute("steps")?, Value::Int(3)));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the name is not one, other objects are of the module's class, or the value holds objects of another instance.
    pub fn register_attribute(&mut self, name: &str, value: &Value) -> Result<()> {
        let constant = export(name, value)?;
        let ty = value.ty(self.session().ctx());
        self.register(name, AttributeKind::Plain, ty, constant)
    }

    fn register(&mut self, name: &str, kind: AttributeKind, ty: TypeId, value: Constant) -> Result<()> {
        self.register_at(self.module().root, name, kind, ty, value)
    }

    /// Adds an attribute to an object, or replaces the one of that name.
    pub(super) fn register_at(
        &mut self,
        object: ObjectId,
        name: &str,
        kind: AttributeKind,
        ty: TypeId,
        value: Constant,
    ) -> Result<()> {
        if name.is_empty() || name.contains('.') {
            return Err(Error::Attribute(format!(
                "an attribute name can't be empty or contain \".\", got: \"{name}\""
            )));
        }
        let class = self.module().object(object).class;
        let symbol = self.session().ctx().symbol(name);
        let known = self.module().class_of(object).and_then(|c| c.attributes.get(&symbol));
        // An attribute that stays what it is changes no class.
        if !known.is_some_and(|a| a.ty == ty && a.kind == kind) {
            self.only_instance(object, class)?;
        }
        if self.root().at(object).has_method(name) {
            return Err(Error::Attribute(format!(
                "attribute '{name}' already exists as a method"
            )));
        }
        // The code reads it as what it is. Buffers that are not saved are plain attributes.
        let is_parameter = |kind| kind == AttributeKind::Parameter;
        if known.is_some_and(|a| a.ty != ty || is_parameter(a.kind) != is_parameter(kind)) {
            return Err(Error::Attribute(format!("attribute '{name}' already exists")));
        }
        let module = self.module_mut();
        let Some(def) = module.unit.classes.get_mut(&class) else {
            return Err(Error::Attribute("the module has no class".to_owned()));
        };
        let new = !def.attributes.contains_key(&symbol);
        def.add_attribute(symbol, ty, kind);
        match new {
            true => module.object_mut(object).slots.push(value),
            false => {
                module.set_attribute(object, symbol, value);
            }
        }
        Ok(())
    }

    /// A class gives all its objects the same attributes: one of several cannot get more.
    fn only_instance(&self, object: ObjectId, class: SymbolId) -> Result<()> {
        let mut others = self
            .module()
            .objects()
            .filter(|(id, o)| *id != object && o.class == class);
        match others.next() {
            None => Ok(()),
            Some(_) => Err(Error::Unsupported(format!(
                "other submodules are of class {} too, and would need the attribute as well",
                ScriptModule::original_name(self.root().at(object))
            ))),
        }
    }
}

fn tensor_constant(data: TensorData) -> Constant {
    Constant::Tensor(Arc::new(data))
}

fn export(name: &str, value: &Value) -> Result<Constant> {
    let exported = Exporter::new().constant(value);
    exported.map_err(|e| Error::Attribute(format!("attribute '{name}': {e}")))
}
