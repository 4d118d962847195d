//! Mutable references to modules and submodules of a model.

use super::ScriptModule;
use crate::error::Result;
use crate::model::Model;
use frazil_ir::{Constant, ObjectId};
use frazil_runtime::Value;

/// A mutable reference to a module or submodule of a [`Model`], which can be converted, switched between modes, or loaded by itself. The rest of
/// the model does not change, except for parameters that it shares with the submodule.
///
/// [`Model`] has the same methods for the whole module.
///
/// ```
/// use frazil::ir::DType;
/// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.a = nn.Linear(2, 2)\n  self.b = nn.Linear(2, 1)\n \
/// # def forward(self, x): return self.b(self.a(x))\n";
/// # let mut model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
/// model.submodule_mut("a")?.to(DType::Double)?; // model.a.to(torch.float64)
/// model.submodule_mut("b")?.train(true); // model.b.train()
/// let root = model.root();
/// assert_eq!(root.get_parameter("a.weight")?.dtype(), DType::Double);
/// assert_eq!(root.get_parameter("b.weight")?.dtype(), DType::Float);
/// assert!(root.get_submodule("b")?.is_training() && !root.is_training());
/// # Ok::<(), frazil::Error>(())
/// ```
pub struct ScriptModuleMut<'m> {
    pub(super) model: &'m mut Model,
    pub(super) object: ObjectId,
    /// The dotted path of the module in the model.
    path: String,
}

impl Model {
    /// Returns a mutable reference to the root module.
    ///
    /// See [`ScriptModuleMut`] for an example.
    pub fn root_mut(&mut self) -> ScriptModuleMut<'_> {
        let object = self.root().id();
        ScriptModuleMut {
            model: self,
            object,
            path: String::new(),
        }
    }

    /// Returns a mutable reference to the submodule at a dotted path; "" is the module itself.
    ///
    /// See [`ScriptModuleMut`] for an example.
    ///
    /// # Errors
    /// If a name on the path does not exist or is not a module.
    pub fn submodule_mut(&mut self, path: &str) -> Result<ScriptModuleMut<'_>> {
        let object = self.root().get_submodule(path)?.id();
        Ok(ScriptModuleMut {
            model: self,
            object,
            path: path.to_owned(),
        })
    }
}

impl ScriptModuleMut<'_> {
    /// Returns a read-only view of the module.
    ///
    /// ```
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let mut model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// assert_eq!(model.submodule_mut("fc")?.view().original_name(), "Linear");
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn view(&self) -> ScriptModule<'_> {
        self.model.root().at(self.object)
    }

    /// Sets an attribute of this module, as [`Model::set_attribute`] does.
    ///
    /// ```
    /// # use frazil::Value;
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.n = 3\n def forward(self, x): return x + self.n\n";
    /// # let mut model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// model.root_mut().set_attribute("n", &Value::Int(4))?;
    /// assert!(matches!(model.root().attribute("n")?, Value::Int(4)));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Model::set_attribute`].
    pub fn set_attribute(&mut self, path: &str, value: &Value) -> Result<()> {
        self.model.set_attribute(&super::join(&self.path, path), value)
    }

    /// Applies a function to this module and all its submodules, as [`Model::apply`] does. `each` receives the model and the paths of the modules in it.
    ///
    /// ```
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.net = nn.Sequential(nn.ReLU())\n \
    /// # def forward(self, x): return self.net(x)\n";
    /// # let mut model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// let mut seen = Vec::new();
    /// model.submodule_mut("net")?.apply(|_model, path| {
    ///     seen.push(path.to_owned());
    ///     Ok(())
    /// })?;
    /// assert_eq!(seen, ["net.0", "net"]);
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first error of `each`, which ends the iteration.
    pub fn apply(&mut self, mut each: impl FnMut(&mut Model, &str) -> Result<()>) -> Result<()> {
        let paths: Vec<String> = self.view().named_modules().into_iter().map(|(path, _)| path).collect();
        paths.iter().rev().try_for_each(|path| {
            let path = match path.as_str() {
                "" => self.path.clone(),
                path => super::join(&self.path, path),
            };
            each(self.model, &path)
        })
    }

    /// Sets the training flag of this module and all its submodules, as [`Model::train`] does.
    ///
    /// See [`ScriptModuleMut`] for an example.
    pub fn train(&mut self, mode: bool) {
        let objects: Vec<ObjectId> = self.view().named_modules().iter().map(|(_, m)| m.id()).collect();
        let training = self.model.session().ctx().symbol("training");
        let module = self.model.module_mut();
        for object in objects {
            module.set_attribute(object, training, Constant::Bool(mode));
        }
    }

    /// Clears the training flag, as [`train(false)`](Self::train) does.
    ///
    /// See [`ScriptModuleMut`] for an example.
    pub fn eval(&mut self) {
        self.train(false);
    }
}
