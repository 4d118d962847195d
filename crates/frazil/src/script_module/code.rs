//! Graphs and TorchScript source of a module's methods.

use super::ScriptModule;
use crate::error::{Error, Result};
use frazil_ir::{Function, FunctionId, Graph, ObjectId};
use frazil_runtime::import::Importer;
use frazil_runtime::{Signature, Value};
use frazil_torchscript::code::{self, CodeSource, PrintedCode};

/// The constants that source refers to as `CONSTANTS.c0`, `CONSTANTS.c1`, ... (`torch.jit.ConstMap`).
///
/// See [`ScriptModule::code_with_constants`] for an example.
#[derive(Clone, Debug)]
pub struct ConstMap {
    values: Vec<Value>,
}

impl ConstMap {
    /// Returns the constant that the source names `CONSTANTS.name`: `c0`, `c1`, ...
    ///
    /// See [`ScriptModule::code_with_constants`] for an example.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let number = name.strip_prefix('c')?;
        // `c00` and `c+0` are not names of constants.
        let index = number.parse::<usize>().ok().filter(|i| i.to_string() == number)?;
        self.values.get(index)
    }

    /// Returns the constants with their names, in the order of their numbers.
    ///
    /// See [`ScriptModule::code_with_constants`] for an example.
    pub fn iter(&self) -> impl Iterator<Item = (String, &Value)> {
        self.values
            .iter()
            .enumerate()
            .map(|(i, value)| (format!("c{i}"), value))
    }

    /// Returns the number of constants to which the source refers.
    ///
    /// See [`ScriptModule::code_with_constants`] for an example.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns true if the source refers to no constants.
    ///
    /// See [`ScriptModule::code_with_constants`] for an example.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

impl<'m> ScriptModule<'m> {
    /// Returns the graph of the method at a dotted path below this module (`ScriptModule.graph`).
    ///
    /// ```
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// let graph = model.root().get_submodule("fc")?.graph("forward")?;
    /// assert!(graph.all_nodes().iter().any(|&node| graph.kind_name(node) == "aten::linear"));
    /// assert!(std::ptr::eq(graph, model.root().graph("fc.forward")?));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such method.
    pub fn graph(self, method: &str) -> Result<&'m Graph> {
        Ok(&self.function(method)?.graph)
    }

    /// Returns the source of the method at a dotted path below this module (`ScriptModule.code`).
    ///
    /// ```
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.act = nn.ReLU()\n \
    /// # def forward(self, x): return self.act(x)\n";
    /// # let model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// assert!(model.root().code("forward")?.contains("(act).forward(x, )"));
    /// assert!(model.root().code("act.forward")?.starts_with("def forward(self,\n"));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such method, or its graph cannot be written as TorchScript.
    pub fn code(self, method: &str) -> Result<String> {
        Ok(self.printed(method)?.code.as_str().to_owned())
    }

    /// Returns the source of the method at a dotted path below this module, and the constants that it refers to (`ScriptModule.code_with_constants`).
    ///
    /// ```
    /// use frazil::FreezeOptions;
    ///
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// let frozen = model.freeze(&FreezeOptions::default())?;
    /// let (code, constants) = frozen.root().code_with_constants("forward")?;
    /// assert!(code.contains("CONSTANTS.c0") && constants.len() == 2 && !constants.is_empty());
    /// assert!(constants.get("c0").is_some_and(|weight| weight.as_tensor().is_some()) && constants.get("c2").is_none());
    /// assert!(constants.iter().map(|(name, _)| name).eq(["c0", "c1"]));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`code`](Self::code); also if a constant was left out of the text from which the module was read.
    pub fn code_with_constants(self, method: &str) -> Result<(String, ConstMap)> {
        let printed = self.printed(method)?;
        let mut importer = Importer::new();
        let constants = printed.constants.values()?;
        let values = constants.iter().map(|c| importer.value(c, Some(&**self.module)));
        let values = values.collect::<Result<_, _>>()?;
        Ok((printed.code.as_str().to_owned(), ConstMap { values }))
    }

    /// Returns the signature of the method at a dotted path below this module, as PyTorch's messages show it.
    ///
    /// ```
    /// # let source = "class Net(nn.Module):\n def forward(self, x, n: int = 3): return x * n\n";
    /// # let model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// // of `def forward(self, x, n: int = 3): return x * n`
    /// assert_eq!(model.root().signature("forward")?, "forward(__torch__.Net self, Tensor x, int n=3) -> Tensor");
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such method.
    pub fn signature(self, method: &str) -> Result<String> {
        let (receiver, function) = self.method_at(method)?;
        let signature = Signature::of_function(self.module, receiver, function);
        Ok(signature.declaration().to_string())
    }

    fn method_at(self, path: &str) -> Result<(ObjectId, FunctionId)> {
        let (owner, name) = self.owner(path)?;
        let method = self
            .module
            .ctx()
            .find_symbol(name)
            .and_then(|name| owner.class()?.methods.get(&name));
        let id = method.ok_or_else(|| Error::NoSuchMethod(path.to_owned()))?;
        Ok((owner.object, *id))
    }

    fn function(self, path: &str) -> Result<&'m Function> {
        Ok(self.module.unit.function(self.method_at(path)?.1))
    }

    fn printed(self, path: &str) -> Result<PrintedCode> {
        let function = self.function(path)?;
        let source = CodeSource {
            ctx: self.module.ctx(),
            unit: Some(&self.module.unit),
            catalogue: self.session.registry().catalogue(),
        };
        Ok(code::print_method(source, function)?)
    }
}
