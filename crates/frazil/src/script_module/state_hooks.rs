//! Hooks of state dictionaries: Rust functions that run before and after a module's state is collected or loaded.
//!
//! Hooks belong to a module of a [`Model`], and run whenever its state is asked for, be it by itself or as a part of a module above it. Clones and
//! snapshots of a model have its hooks; what is frozen, or made by passes, has none.

use super::{IncompatibleKeys, ScriptModule, ScriptModuleMut, StateDict, StateDictOptions};
use crate::error::Result;
use crate::model::Model;
use frazil_ir::ObjectId;
use std::collections::HashMap;
use std::sync::Arc;

/// Gets the module, and the arguments of `state_dict` for it: the prefix is the one of its own names.
type BeforeState = dyn Fn(ScriptModule<'_>, &StateDictOptions) -> Result<()> + Send + Sync;
/// Gets also what has been collected so far, and may change it.
type AfterState = dyn Fn(ScriptModule<'_>, &mut StateDict, &StateDictOptions) -> Result<()> + Send + Sync;
/// Gets what is about to be loaded, and may change it.
type BeforeLoad = dyn Fn(ScriptModule<'_>, &mut LoadingState<'_>) -> Result<()> + Send + Sync;
/// Gets the names that do not fit, and may change them.
type AfterLoad = dyn Fn(ScriptModule<'_>, &mut IncompatibleKeys) -> Result<()> + Send + Sync;

/// A hook of state dictionaries that was registered, to be removed again.
///
/// See [`Model::register_state_dict_post_hook`] for an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StateHookId(u64);

/// What is being loaded into a module, for its [`register_load_state_dict_pre_hook`](Model::register_load_state_dict_pre_hook).
#[derive(Debug)]
pub struct LoadingState<'a> {
    /// The entries for the module and those below it, by their full names.
    pub state: &'a mut StateDict,
    /// What comes before the module's own names: empty, or with a dot at its end.
    pub prefix: &'a str,
    /// Names that are missing or unexpected so far.
    pub keys: &'a mut IncompatibleKeys,
    /// Errors so far; each is reported.
    pub error_msgs: &'a mut Vec<String>,
}

enum StateHook {
    BeforeState(Box<BeforeState>),
    AfterState(Box<AfterState>),
    BeforeLoad(Box<BeforeLoad>),
    AfterLoad(Box<AfterLoad>),
}

/// The hooks of a model, of each module in the order in which they were registered.
#[derive(Clone, Default)]
pub(crate) struct StateHooks {
    next: u64,
    of: HashMap<ObjectId, Vec<(StateHookId, Arc<StateHook>)>>,
}

impl StateHooks {
    fn add(&mut self, object: ObjectId, hook: StateHook) -> StateHookId {
        self.next += 1;
        let id = StateHookId(self.next);
        self.of.entry(object).or_default().push((id, Arc::new(hook)));
        id
    }

    fn remove(&mut self, id: StateHookId) -> bool {
        let mut found = false;
        for hooks in self.of.values_mut() {
            let before = hooks.len();
            hooks.retain(|(other, _)| *other != id);
            found |= hooks.len() < before;
        }
        found
    }

    /// The hooks of a module.
    fn hooks(&self, object: ObjectId) -> impl Iterator<Item = &StateHook> {
        let hooks = self.of.get(&object).into_iter().flatten();
        hooks.map(|(_, hook)| &**hook)
    }

    pub(super) fn before_state(&self, module: ScriptModule<'_>, options: &StateDictOptions) -> Result<()> {
        self.hooks(module.object).try_for_each(|hook| match hook {
            StateHook::BeforeState(hook) => hook(module, options),
            _ => Ok(()),
        })
    }

    pub(super) fn after_state(
        &self,
        module: ScriptModule<'_>,
        state: &mut StateDict,
        options: &StateDictOptions,
    ) -> Result<()> {
        self.hooks(module.object).try_for_each(|hook| match hook {
            StateHook::AfterState(hook) => hook(module, state, options),
            _ => Ok(()),
        })
    }

    pub(super) fn before_load(&self, module: ScriptModule<'_>, loading: &mut LoadingState<'_>) -> Result<()> {
        self.hooks(module.object).try_for_each(|hook| match hook {
            StateHook::BeforeLoad(hook) => hook(module, loading),
            _ => Ok(()),
        })
    }

    /// Whether hooks of the module run after it was loaded: they may look at its tensors.
    pub(super) fn has_after_load(&self, object: ObjectId) -> bool {
        self.hooks(object).any(|hook| matches!(hook, StateHook::AfterLoad(_)))
    }

    pub(super) fn after_load(&self, module: ScriptModule<'_>, keys: &mut IncompatibleKeys) -> Result<()> {
        self.hooks(module.object).try_for_each(|hook| match hook {
            StateHook::AfterLoad(hook) => hook(module, keys),
            _ => Ok(()),
        })
    }
}

impl ScriptModuleMut<'_> {
    fn add_state_hook(&mut self, hook: StateHook) -> StateHookId {
        Arc::make_mut(self.model.state_hooks_mut()).add(self.object, hook)
    }

    /// [`Model::register_state_dict_pre_hook`] of this module.
    ///
    /// See [`Model::register_state_dict_post_hook`] for an example.
    pub fn register_state_dict_pre_hook(
        &mut self,
        hook: impl Fn(ScriptModule<'_>, &StateDictOptions) -> Result<()> + Send + Sync + 'static,
    ) -> StateHookId {
        self.add_state_hook(StateHook::BeforeState(Box::new(hook)))
    }

    /// [`Model::register_state_dict_post_hook`] of this module.
    ///
    /// See there for an example.
    pub fn register_state_dict_post_hook(
        &mut self,
        hook: impl Fn(ScriptModule<'_>, &mut StateDict, &StateDictOptions) -> Result<()> + Send + Sync + 'static,
    ) -> StateHookId {
        self.add_state_hook(StateHook::AfterState(Box::new(hook)))
    }

    /// [`Model::register_load_state_dict_pre_hook`] of this module.
    ///
    /// See there for an example.
    pub fn register_load_state_dict_pre_hook(
        &mut self,
        hook: impl Fn(ScriptModule<'_>, &mut LoadingState<'_>) -> Result<()> + Send + Sync + 'static,
    ) -> StateHookId {
        self.add_state_hook(StateHook::BeforeLoad(Box::new(hook)))
    }

    /// [`Model::register_load_state_dict_post_hook`] of this module.
    ///
    /// See there for an example.
    pub fn register_load_state_dict_post_hook(
        &mut self,
        hook: impl Fn(ScriptModule<'_>, &mut IncompatibleKeys) -> Result<()> + Send + Sync + 'static,
    ) -> StateHookId {
        self.add_state_hook(StateHook::AfterLoad(Box::new(hook)))
    }
}

impl Model {
    /// Runs `hook` before the module's state is collected (`Module.register_state_dict_pre_hook`), with the prefix of its names. An error ends the call.
    ///
    /// See [`register_state_dict_post_hook`](Self::register_state_dict_post_hook) for an example.
    pub fn register_state_dict_pre_hook(
        &mut self,
        hook: impl Fn(ScriptModule<'_>, &StateDictOptions) -> Result<()> + Send + Sync + 'static,
    ) -> StateHookId {
        self.root_mut().register_state_dict_pre_hook(hook)
    }

    /// Runs `hook` after the state of the module and everything below it was collected (`Module.register_state_dict_post_hook`). It may change
    /// what has been collected so far, which is that of modules above and before it, too.
    ///
    /// ```
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let mut model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// let mut fc = model.submodule_mut("fc")?;
    /// let hook = fc.register_state_dict_post_hook(|_fc, state, options| {
    ///     state.shift_remove(&format!("{}bias", options.prefix));
    ///     Ok(())
    /// });
    /// assert!(model.state_dict()?.keys().eq(["fc.weight"]));
    /// assert!(model.remove_state_hook(hook));
    /// assert!(model.state_dict()?.keys().eq(["fc.weight", "fc.bias"]));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn register_state_dict_post_hook(
        &mut self,
        hook: impl Fn(ScriptModule<'_>, &mut StateDict, &StateDictOptions) -> Result<()> + Send + Sync + 'static,
    ) -> StateHookId {
        self.root_mut().register_state_dict_post_hook(hook)
    }

    /// Runs `hook` before state is loaded into the module (`Module.register_load_state_dict_pre_hook`). It may change the entries, which are a copy, and
    /// add to the names and errors that are reported.
    ///
    /// ```
    /// # use frazil::{StateDict, Tensor};
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.w = nn.Parameter(torch.ones(1))\n \
    /// # def forward(self, x): return x * self.w\n";
    /// # let mut model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// model.register_load_state_dict_pre_hook(|_model, loading| {
    ///     if let Some(old) = loading.state.shift_remove("gain") {
    ///         loading.state.insert("w".to_owned(), old); // its name in older versions
    ///     }
    ///     Ok(())
    /// });
    /// model.load_state_dict(&StateDict::from_iter([("gain".to_owned(), Tensor::from_f32(&[7.0], &[1])?)]), true)?;
    /// assert_eq!(model.root().get_parameter("w")?.to_f64_vec(), [7.0]);
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn register_load_state_dict_pre_hook(
        &mut self,
        hook: impl Fn(ScriptModule<'_>, &mut LoadingState<'_>) -> Result<()> + Send + Sync + 'static,
    ) -> StateHookId {
        self.root_mut().register_load_state_dict_pre_hook(hook)
    }

    /// Runs `hook` after state was loaded into the module and everything below it (`Module.register_load_state_dict_post_hook`). Names that it takes off
    /// are no errors, and those that it adds are, when loading is strict.
    ///
    /// ```
    /// # use frazil::StateDict;
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let mut model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// model.register_load_state_dict_post_hook(|_model, keys| {
    ///     keys.missing_keys.clear();
    ///     Ok(())
    /// });
    /// model.load_state_dict(&StateDict::new(), true)?;
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn register_load_state_dict_post_hook(
        &mut self,
        hook: impl Fn(ScriptModule<'_>, &mut IncompatibleKeys) -> Result<()> + Send + Sync + 'static,
    ) -> StateHookId {
        self.root_mut().register_load_state_dict_post_hook(hook)
    }

    /// Removes a hook of the module or of a submodule; false when it is not there.
    ///
    /// See [`register_state_dict_post_hook`](Self::register_state_dict_post_hook) for an example.
    pub fn remove_state_hook(&mut self, hook: StateHookId) -> bool {
        Arc::make_mut(self.state_hooks_mut()).remove(hook)
    }
}
