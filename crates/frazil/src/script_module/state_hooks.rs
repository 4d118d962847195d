//! Hooks of state dictionaries: Rust functions that run before and after a module's state is collected or loaded.
//!
//! Hooks belong to a module of a [`Model`], and run whenever its state is collected or loaded, also as a part of a module above it. Clones and
//! snapshots of a model have its hooks; frozen models, and those that passes return, have none.

use super::{IncompatibleKeys, ScriptModule, ScriptModuleMut, StateDict, StateDictOptions};
use crate::error::Result;
use crate::model::Model;
use frazil_ir::ObjectId;
use std::collections::HashMap;
use std::sync::Arc;

/// A hook that receives the module, and the arguments of `state_dict` for it, with the prefix of the module's names.
type BeforeState = dyn Fn(ScriptModule<'_>, &StateDictOptions) -> Result<()> + Send + Sync;
/// A hook after the creation of a state dictionary. It receives the entries collected so far, and may change them.
type AfterState = dyn Fn(ScriptModule<'_>, &mut StateDict, &StateDictOptions) -> Result<()> + Send + Sync;
/// A hook before loading. It receives the entries to load, and may change them.
type BeforeLoad = dyn Fn(ScriptModule<'_>, &mut LoadingState<'_>) -> Result<()> + Send + Sync;
/// A hook after loading. It receives the missing and unexpected names, and may change them.
type AfterLoad = dyn Fn(ScriptModule<'_>, &mut IncompatibleKeys) -> Result<()> + Send + Sync;

/// The identity of a registered hook of state dictionaries, with which it can be removed.
///
/// See [`Model::register_state_dict_post_hook`] for an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StateHookId(u64);

/// The state to be loaded into a module, which a hook before loading receives.
#[derive(Debug)]
pub struct LoadingState<'a> {
    /// The entries for the module and its submodules, by their complete dotted names.
    pub state: &'a mut StateDict,
    /// Prefix of the names of the module's entries: empty, or ending in a dot.
    pub prefix: &'a str,
    /// Missing and unexpected names found so far.
    pub keys: &'a mut IncompatibleKeys,
    /// Error messages so far. If there are any, loading fails with all of them.
    pub error_msgs: &'a mut Vec<String>,
}

enum StateHook {
    BeforeState(Box<BeforeState>),
    AfterState(Box<AfterState>),
    BeforeLoad(Box<BeforeLoad>),
    AfterLoad(Box<AfterLoad>),
}

/// The hooks of state dictionaries of a model, by module, in the order of registration.
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

    /// Returns the hooks that are registered for the module `object`.
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

    /// Returns whether the module has hooks that run after loading. These may read the module's tensors.
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

    /// Registers a hook of this module, as [`Model::register_state_dict_pre_hook`] does.
    ///
    /// See [`Model::register_state_dict_post_hook`] for an example.
    pub fn register_state_dict_pre_hook(
        &mut self,
        hook: impl Fn(ScriptModule<'_>, &StateDictOptions) -> Result<()> + Send + Sync + 'static,
    ) -> StateHookId {
        self.add_state_hook(StateHook::BeforeState(Box::new(hook)))
    }

    /// Registers a hook of this module, as [`Model::register_state_dict_post_hook`] does.
    ///
    /// See [`Model::register_state_dict_post_hook`] for an example.
    pub fn register_state_dict_post_hook(
        &mut self,
        hook: impl Fn(ScriptModule<'_>, &mut StateDict, &StateDictOptions) -> Result<()> + Send + Sync + 'static,
    ) -> StateHookId {
        self.add_state_hook(StateHook::AfterState(Box::new(hook)))
    }

    /// Registers a hook of this module, as [`Model::register_load_state_dict_pre_hook`] does.
    ///
    /// See [`Model::register_load_state_dict_pre_hook`] for an example.
    pub fn register_load_state_dict_pre_hook(
        &mut self,
        hook: impl Fn(ScriptModule<'_>, &mut LoadingState<'_>) -> Result<()> + Send + Sync + 'static,
    ) -> StateHookId {
        self.add_state_hook(StateHook::BeforeLoad(Box::new(hook)))
    }

    /// Registers a hook of this module, as [`Model::register_load_state_dict_post_hook`] does.
    ///
    /// See [`Model::register_load_state_dict_post_hook`] for an example.
    pub fn register_load_state_dict_post_hook(
        &mut self,
        hook: impl Fn(ScriptModule<'_>, &mut IncompatibleKeys) -> Result<()> + Send + Sync + 'static,
    ) -> StateHookId {
        self.add_state_hook(StateHook::AfterLoad(Box::new(hook)))
    }
}

impl Model {
    /// Registers a hook that runs before the module's state is collected (`Module.register_state_dict_pre_hook`), with the prefix of its names. An error ends
    /// the call.
    ///
    /// See [`register_state_dict_post_hook`](Self::register_state_dict_post_hook) for an example.
    pub fn register_state_dict_pre_hook(
        &mut self,
        hook: impl Fn(ScriptModule<'_>, &StateDictOptions) -> Result<()> + Send + Sync + 'static,
    ) -> StateHookId {
        self.root_mut().register_state_dict_pre_hook(hook)
    }

    /// Registers a hook that runs after the state of the module and everything below it was collected
    /// (`Module.register_state_dict_post_hook`). It may change all entries collected so far, including those of modules above and before it.
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

    /// Registers a hook that runs before state is loaded into the module (`Module.register_load_state_dict_pre_hook`). It may change the entries, which
    /// are a copy, and add to the names and errors that are reported.
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

    /// Registers a hook that runs after state was loaded into the module and everything below it (`Module.register_load_state_dict_post_hook`). When
    /// loading is strict, names that it removes are not errors, and names that it adds are.
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

    /// Removes a hook of the module or of a submodule. Returns false if it does not exist.
    ///
    /// See [`register_state_dict_post_hook`](Self::register_state_dict_post_hook) for an example.
    pub fn remove_state_hook(&mut self, hook: StateHookId) -> bool {
        Arc::make_mut(self.state_hooks_mut()).remove(hook)
    }
}
