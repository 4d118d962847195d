//! Setting and registering of a module's attributes.

use super::instances::give_own_class;
use super::registered::check_name;
use crate::error::{Error, Result};
use crate::model::Model;
use frazil_ir::types::{TypeStyle, display_type, is_subtype};
use frazil_ir::{AttributeKind, Constant, ObjectId, TypeId, types};
use frazil_runtime::export::Exporter;
use frazil_runtime::python_repr::repr;
use frazil_runtime::{Tensor, Value};

impl Model {
    /// Sets the attribute at a dotted path (`setattr`). A tensor shares memory with the module until either is written. As in PyTorch, the new tensor
    /// determines whether a parameter requires gradients.
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
    /// If there is no such attribute, or the value is not of its type.
    pub fn set_attribute(&mut self, path: &str, value: &Value) -> Result<()> {
        let (owner, name) = self.root().owner(path)?;
        let (object, Some(index)) = (owner.id(), owner.slot_index(name)) else {
            return Err(owner.not_settable(name));
        };
        if owner.get_submodule(name).is_ok() {
            return Err(Error::Attribute(format!(
                "Cannot re-assign modules in a ScriptModule with non-scripted module, tried to replace existing module '{name}': {}",
                repr(self.session().ctx(), value)
            )));
        }
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
        let reason = match declared {
            types::NONE => format!("Cannot cast {} to None", repr(ctx, value)),
            _ => format!("it is of type {}", display_type(ctx, found, TypeStyle::Annotation)),
        };
        Err(Error::Attribute(format!(
            "Could not cast attribute '{name}' to type {}: {reason}",
            display_type(ctx, declared, TypeStyle::Annotation),
        )))
    }

    /// Adds a parameter, which may be `None`, or replaces the attribute of that name (`Module.register_parameter`).
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
    /// If the name is invalid or in use, or code passes this module on while others are of its class.
    pub fn register_parameter<'t>(
        &mut self,
        name: &str,
        tensor: impl Into<Option<&'t Tensor>>,
        requires_grad: bool,
    ) -> Result<()> {
        self.root_mut().register_parameter(name, tensor, requires_grad)
    }

    /// Adds a buffer, which may be `None`, or replaces the attribute of that name (`Module.register_buffer`). A buffer that is not `persistent` is left out of
    /// state dictionaries, like a plain attribute.
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
    /// model.register_buffer("later", None::<&Tensor>, true)?; // `None`, which a tensor may replace
    /// assert!(model.root().named_buffers(&frazil::MemberOptions::own())?.iter().map(|(name, _)| name).eq(["kept"]));
    /// model.set_attribute("later", &zero.clone().into())?;
    /// assert!(model.root().get_buffer("later").is_ok());
    /// model.set_attribute("later", &frazil::Value::None)?;
    /// assert!(model.state_dict()?.keys().eq(["kept", "fc.weight", "fc.bias"]));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the name is invalid or in use, or code passes this module on while others are of its class.
    pub fn register_buffer<'t>(
        &mut self,
        name: &str,
        tensor: impl Into<Option<&'t Tensor>>,
        persistent: bool,
    ) -> Result<()> {
        self.root_mut().register_buffer(name, tensor, persistent)
    }

    /// Adds an attribute whose type is that of `value`, or replaces an existing attribute (`Module.register_attribute` of the C++ interface).
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
    /// If the name is invalid or in use, code passes this module on while others are of its class, or the value contains objects of another instance.
    pub fn register_attribute(&mut self, name: &str, value: &Value) -> Result<()> {
        self.root_mut().register_attribute(name, value)
    }

    /// Adds an attribute to an object. An existing attribute with the same name is replaced.
    pub(super) fn register_at(
        &mut self,
        object: ObjectId,
        name: &str,
        kind: AttributeKind,
        ty: TypeId,
        value: Constant,
    ) -> Result<()> {
        check_name(kind, name)?;
        let symbol = self.session().ctx().symbol(name);
        let known = self.module().class_of(object).and_then(|c| c.attributes.get(&symbol));
        let class = self.module().class_of(object);
        if class.is_some_and(|class| class.methods.contains_key(&symbol)) {
            return Err(Error::Attribute(format!("attribute '{name}' already exists")));
        }
        // The code reads it with its own type. Buffers that are not saved are plain attributes.
        let is_parameter = |kind| kind == AttributeKind::Parameter;
        if known.is_some_and(|a| a.ty != ty || is_parameter(a.kind) != is_parameter(kind)) {
            return Err(Error::Attribute(format!("attribute '{name}' already exists")));
        }
        // Replacing an attribute by one of the same type and kind does not change the class.
        let changes = !known.is_some_and(|a| a.ty == ty && a.kind == kind);
        let module = self.module_mut();
        if changes {
            give_own_class(module, object)?;
        }
        let class = module.object(object).class;
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
}

pub(super) fn export(name: &str, value: &Value) -> Result<Constant> {
    let exported = Exporter::new().constant(value);
    exported.map_err(|e| Error::Attribute(format!("attribute '{name}': {e}")))
}
