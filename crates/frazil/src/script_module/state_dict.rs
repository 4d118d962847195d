//! State dictionaries: the parameters and buffers of a module by name.

use super::ScriptModule;
use crate::error::Result;
use crate::model::Model;
use crate::support::setters::setters;
use frazil_ir::{AttributeKind, Constant, ObjectId};
use frazil_runtime::Tensor;
use frazil_runtime::import::Importer;
use indexmap::IndexMap;

/// Parameters and buffers by dotted name, in the order of the module.
///
/// See [`Model::load_state_dict`] for an example.
pub type StateDict = IndexMap<String, Tensor>;

/// Options of [`ScriptModule::state_dict_with`].
///
/// ```
/// use frazil::StateDictOptions;
/// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
/// # def forward(self, x): return self.fc(x)\n";
/// # let model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
/// let options = StateDictOptions::default().prefix("net.".to_owned()).keep_vars(true);
/// let state = model.root().state_dict_with(&options)?;
/// assert!(state.keys().eq(["net.fc.weight", "net.fc.bias"]));
/// assert!(state["net.fc.bias"].requires_grad());
/// # Ok::<(), frazil::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StateDictOptions {
    /// Prefix of all names in the dictionary.
    pub prefix: String,
    /// Whether tensors keep their `requires_grad` flag; otherwise they are detached.
    pub keep_vars: bool,
}

setters!(StateDictOptions {
    prefix: String,
    keep_vars: bool,
});

/// Names that only the module or only the state dictionary has.
///
/// See [`Model::load_state_dict`] for an example.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IncompatibleKeys {
    /// Names of the module that the dictionary does not have.
    pub missing_keys: Vec<String>,
    /// Names of the dictionary that the module does not have.
    pub unexpected_keys: Vec<String>,
}

impl ScriptModule<'_> {
    /// Returns the parameters and buffers by dotted name (`Module.state_dict`). A shared tensor is listed under each of its names.
    ///
    /// ```
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// let state = model.root().get_submodule("fc")?.state_dict()?;
    /// assert!(state.keys().eq(["weight", "bias"]));
    /// assert!(model.state_dict()?.keys().eq(["fc.weight", "fc.bias"]));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a tensor does not fit its storage, or a hook fails.
    pub fn state_dict(self) -> Result<StateDict> {
        self.state_dict_with(&StateDictOptions::default())
    }

    /// Collects the state as [`state_dict`](Self::state_dict) does, with a prefix, or with tensors that are not detached.
    ///
    /// See [`StateDictOptions`] for an example.
    ///
    /// # Errors
    /// See [`state_dict`](Self::state_dict).
    pub fn state_dict_with(self, options: &StateDictOptions) -> Result<StateDict> {
        let mut state = StateDict::new();
        self.state_dict_into(&mut state, options)?;
        Ok(state)
    }

    /// Adds the state to a dictionary that may already have entries (the argument `destination`). As in [`state_dict`](Self::state_dict), each module's
    /// parameters come first, then its buffers, then its submodules.
    ///
    /// ```
    /// # use frazil::{StateDict, StateDictOptions};
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// let mut both = StateDict::new();
    /// for prefix in ["a.", "b."] {
    ///     let options = StateDictOptions::default().prefix(prefix.to_owned());
    ///     model.root().state_dict_into(&mut both, &options)?;
    /// }
    /// assert!(both.keys().eq(["a.fc.weight", "a.fc.bias", "b.fc.weight", "b.fc.bias"]));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// See [`state_dict`](Self::state_dict).
    pub fn state_dict_into(self, destination: &mut StateDict, options: &StateDictOptions) -> Result<()> {
        let mut importer = Importer::new();
        self.walk(&options.prefix, &mut |module, prefix, visit| {
            let own = StateDictOptions {
                prefix: prefix.to_owned(),
                keep_vars: options.keep_vars,
            };
            if visit == Visit::Leave {
                return module.hooks.after_state(module, destination, &own);
            }
            module.hooks.before_state(module, &own)?;
            for kind in [AttributeKind::Parameter, AttributeKind::Buffer] {
                for (name, found, value) in module.slots() {
                    if let (true, Constant::Tensor(t)) = (found == kind, value) {
                        let tensor = importer.tensor(t)?.get();
                        let requires_grad = options.keep_vars && tensor.requires_grad();
                        destination.insert(format!("{prefix}{name}"), tensor.with_requires_grad(requires_grad));
                    }
                }
            }
            Ok(())
        })
    }

    /// Calls `each` with the module and everything below it, under every name, before and after its submodules. The string argument is the prefix of the
    /// module's own attributes.
    pub(super) fn walk(
        self,
        prefix: &str,
        each: &mut dyn FnMut(ScriptModule<'_>, &str, Visit) -> Result<()>,
    ) -> Result<()> {
        // A work list instead of recursion, since untrusted archives determine the depth.
        let mut pending = vec![(self, prefix.to_owned(), Visit::Enter)];
        // A module that contains itself has infinitely many names, so a module is not entered again below itself.
        let mut above: Vec<ObjectId> = Vec::new();
        while let Some((module, prefix, visit)) = pending.pop() {
            each(module, &prefix, visit)?;
            if visit == Visit::Leave {
                above.pop();
                continue;
            }
            above.push(module.object);
            let children: Vec<_> = module.children().filter(|(_, c)| !above.contains(&c.object)).collect();
            pending.push((module, prefix.clone(), Visit::Leave));
            for (name, child) in children.into_iter().rev() {
                pending.push((child, format!("{prefix}{name}."), Visit::Enter));
            }
        }
        Ok(())
    }
}

/// Pre-order or post-order position of a module in [`ScriptModule::walk`]: before its submodules, or after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Visit {
    Enter,
    Leave,
}

impl Model {
    /// Returns the state dictionary of the root: see [`ScriptModule::state_dict`].
    ///
    /// # Errors
    /// If a tensor does not fit its storage, or a hook fails.
    pub fn state_dict(&self) -> Result<StateDict> {
        self.root().state_dict()
    }
}
