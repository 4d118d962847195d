//! Constants of classes (`Final`, `__constants__`), which can be read like attributes and cannot be set.

use super::ScriptModule;
use crate::error::Error;
use frazil_ir::Constant;
use frazil_runtime::format::str_of;
use frazil_runtime::import::Importer;

impl<'m> ScriptModule<'m> {
    /// Returns the names and values of the constants of its class, in order.
    ///
    /// ```
    /// # let source = "class Net(nn.Module):\n k: Final[int]\n def __init__(self):\n  super().__init__()\n  self.k = 2\n \
    /// # def forward(self, x): return x * self.k\n";
    /// # let mut model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// // of `k: Final[int]`, which the constructor sets to 2
    /// assert!(matches!(model.root().constants()?.as_slice(), [("k", frazil::Value::Int(2))]));
    /// assert!(matches!(model.root().attribute("k")?, frazil::Value::Int(2)));
    /// let refused = model.set_attribute("k", &frazil::Value::Int(3)).err().map(|e| e.to_string());
    /// assert_eq!(refused.as_deref(), Some("Can't set constant 'k' which has value:2"));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// When a tensor does not fit its storage.
    pub fn constants(self) -> crate::error::Result<Vec<(&'m str, frazil_runtime::Value)>> {
        let mut importer = Importer::new();
        let constants = self.class().into_iter().flat_map(|class| &class.constants);
        constants
            .map(|(name, value)| {
                let value = importer.value(value, Some(&**self.module))?;
                Ok((self.module.ctx().name(*name), value))
            })
            .collect()
    }

    pub(super) fn constant(self, name: &str) -> Option<&'m Constant> {
        let name = self.module.ctx().find_symbol(name)?;
        self.class()?.constants.get(&name)
    }

    /// Returns the error for an attempt to set `name`, which is not an attribute.
    pub(super) fn not_settable(self, name: &str) -> Error {
        let Some(constant) = self.constant(name) else {
            return self.missing(name);
        };
        let value = Importer::new().value(constant, Some(&**self.module));
        let text = value.map_or_else(|_| String::new(), |value| str_of(self.module.ctx(), &value));
        Error::Attribute(format!("Can't set constant '{name}' which has value:{text}"))
    }
}
