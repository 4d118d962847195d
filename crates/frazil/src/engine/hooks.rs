//! Hooks: Rust functions that run before and after `forward` when a module of an engine is called, like those of
//! `Module.register_forward_pre_hook` and `register_forward_hook`.
//!
//! Hooks of all modules run first, then those of the archive, which are methods of its module.

use crate::error::CallError;
use crate::error::Error;
use crate::session::Session;
use crate::support::lock::lock;
use crate::support::setters::setters;
use frazil_ir::ObjectId;
use frazil_runtime::Value;
use frazil_runtime::python_repr::repr;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use tracing::warn;

/// The arguments of a call, which a hook may change.
///
/// See [`Engine::register_forward_pre_hook_with`](crate::Engine::register_forward_pre_hook_with) for an example.
#[derive(Clone, Debug, Default)]
pub struct CallArguments {
    /// The dotted path of the called module; empty for the engine's own. Hooks cannot change it.
    pub module: String,
    /// The positional arguments.
    pub args: Vec<Value>,
    /// The keyword arguments, in the order of the call.
    pub kwargs: Vec<(String, Value)>,
}

impl CallArguments {
    pub(crate) fn new(module: &str, args: &[Value], named: &[(&str, Value)]) -> CallArguments {
        CallArguments {
            module: module.to_owned(),
            args: args.to_vec(),
            kwargs: named
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect(),
        }
    }

    /// Converts the result of a pre-hook (without `with_kwargs`, as in PyTorch) to positional arguments: the items of a tuple, or a single value. `None`
    /// keeps the arguments unchanged.
    ///
    /// ```
    /// use frazil::{CallArguments, Value};
    ///
    /// assert!(CallArguments::positional(&Value::None).is_none());
    /// assert_eq!(CallArguments::positional(&Value::Int(1)).map(|args| args.len()), Some(1));
    /// assert_eq!(CallArguments::positional(&Value::tuple(vec![])).map(|args| args.len()), Some(0));
    /// ```
    pub fn positional(result: &Value) -> Option<Vec<Value>> {
        match result {
            Value::None => None,
            Value::Tuple(items) => Some(items.items.to_vec()),
            value => Some(vec![value.clone()]),
        }
    }

    /// Converts the result of a pre-hook of PyTorch with `with_kwargs` to arguments: a tuple of positional arguments and a dictionary. `None` leaves the
    /// arguments as they are.
    ///
    /// ```
    /// use frazil::{CallArguments, Session, Value};
    ///
    /// let session = Session::new();
    /// assert!(CallArguments::with_kwargs(&session, &Value::None)?.is_none());
    /// let refused = CallArguments::with_kwargs(&session, &Value::Int(3)).err().map(|e| e.to_string());
    /// let text = "forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got 3.";
    /// assert_eq!(refused.as_deref(), Some(text));
    /// # Ok::<(), frazil::CallError>(())
    /// ```
    ///
    /// # Errors
    /// If the value is anything else; the text is PyTorch's.
    pub fn with_kwargs(session: &Session, result: &Value) -> Result<Option<CallArguments>, CallError> {
        let (args, kwargs) = match result {
            Value::None => return Ok(None),
            Value::Tuple(pair) if pair.items.len() == 2 => (&pair.items[0], &pair.items[1]),
            other => {
                let text = repr(session.ctx(), other);
                return Err(CallError::Raised(format!(
                    "forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {text}."
                )));
            }
        };
        let no = |stars: &str, kind: &str, found: &Value| {
            let text = repr(session.ctx(), found);
            CallError::Raised(format!("forward() argument after {stars} must be {kind}, not {text}"))
        };
        let (Value::Tuple(_) | Value::List(_), Some(args)) = (args, args.items()) else {
            return Err(no("*", "an iterable", args));
        };
        let Value::Dict(dict) = kwargs else {
            return Err(no("**", "a mapping", kwargs));
        };
        let pairs: Option<Vec<_>> = dict.with(|entries| {
            let pair =
                |(key, value): (&frazil_runtime::value::Key, &Value)| Some((key.0.as_str()?.to_owned(), value.clone()));
            entries.iter().map(pair).collect()
        });
        match pairs {
            Some(kwargs) => Ok(Some(CallArguments {
                args,
                kwargs,
                ..CallArguments::default()
            })),
            None => Err(CallError::Raised("keywords must be strings".to_owned())),
        }
    }
}

/// A function that receives the arguments of a call and may replace them.
///
/// See [`Engine::register_forward_pre_hook_with`](crate::Engine::register_forward_pre_hook_with) for an example.
pub type PreHook = Box<dyn FnMut(&CallArguments) -> Result<Option<CallArguments>, CallError> + Send>;

/// A function that receives the arguments and the result of a call and may replace the result.
///
/// See [`Engine::register_forward_hook_with`](crate::Engine::register_forward_hook_with) for an example.
pub type Hook = Box<dyn FnMut(&CallArguments, &Value) -> Result<Option<Value>, CallError> + Send>;

/// The module of a hook, and when the hook runs.
///
/// See [`Engine::register_forward_hook_with`](crate::Engine::register_forward_hook_with) for an example.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HookOptions {
    /// Dotted path of the module; empty for the engine's own.
    pub module: String,
    /// Runs the hook around every module that the caller calls, including scripted ones, before that module's hooks
    /// (`torch.nn.modules.module.register_module_forward_hook`). `module` is ignored then.
    pub all_modules: bool,
    /// Runs the hook before the hooks that are already registered.
    pub prepend: bool,
    /// Runs a forward hook even if the call raises. If there is no result, it receives `None`.
    pub always_call: bool,
}

setters!(HookOptions {
    module: String,
    all_modules: bool,
    prepend: bool,
    always_call: bool,
});

/// The identity of a registered hook, with which it can be removed.
///
/// See [`Engine::register_forward_pre_hook`](crate::Engine::register_forward_pre_hook) for an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HookId(u64);

/// The module for which a hook is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Receiver {
    /// The root module. The model is not read in order to find it.
    Root,
    /// A submodule.
    Object(ObjectId),
    /// All modules: the hooks run around every call of a module.
    All,
}

/// A hook with a lock, so that it runs on one thread at a time.
struct Turns<H> {
    hook: Mutex<H>,
    /// The thread on which the hook is running, if any.
    thread: Mutex<Option<ThreadId>>,
}

/// Guard that marks a hook as not running when it is dropped.
struct Ending<'t>(&'t Mutex<Option<ThreadId>>);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        *lock(self.0) = None;
    }
}

impl<H> Turns<H> {
    fn new(hook: H) -> Arc<Turns<H>> {
        Arc::new(Turns {
            hook: Mutex::new(hook),
            thread: Mutex::new(None),
        })
    }

    /// Waits until no other thread runs the hook, then calls `call` with the hook.
    fn run<R>(&self, call: impl FnOnce(&mut H) -> Result<R, CallError>) -> Result<R, CallError> {
        let here = thread::current().id();
        if *lock(&self.thread) == Some(here) {
            let text = "a hook called, on another handle of the engine, the module that it runs for";
            return Err(CallError::Failed(Error::Call(text.to_owned())));
        }
        let mut hook = lock(&self.hook);
        *lock(&self.thread) = Some(here);
        let _ending = Ending(&self.thread);
        call(&mut hook)
    }
}

#[derive(Clone)]
struct After {
    id: HookId,
    always_call: bool,
    hook: Arc<Turns<Hook>>,
}

/// The hooks registered for one module, in the order in which they run.
#[derive(Default)]
struct OfModule {
    before: Vec<(HookId, Arc<Turns<PreHook>>)>,
    after: Vec<After>,
}

#[derive(Default)]
struct Table {
    next: u64,
    modules: HashMap<Receiver, OfModule>,
}

/// The hooks of an engine. No lock is held while a hook runs.
#[derive(Default)]
pub(crate) struct Hooks {
    /// The number of registered hooks. Most engines have none.
    count: AtomicUsize,
    table: Mutex<Table>,
}

impl Hooks {
    /// Returns whether no hook runs around calls of the module `of`.
    pub(crate) fn is_empty(&self, of: Receiver) -> bool {
        if self.count.load(Ordering::Acquire) == 0 {
            return true;
        }
        let table = lock(&self.table);
        [Receiver::All, of].iter().all(|of| {
            let hooks = table.modules.get(of);
            hooks.is_none_or(|hooks| hooks.before.is_empty() && hooks.after.is_empty())
        })
    }

    /// Returns the forward hooks registered for `of` itself, in the order in which they run.
    fn after_of(&self, of: Receiver) -> Vec<After> {
        let table = lock(&self.table);
        table
            .modules
            .get(&of)
            .map(|hooks| hooks.after.clone())
            .unwrap_or_default()
    }

    /// Calls `add` with the hooks of `of` and a new id for a hook.
    fn add(&self, of: Receiver, add: impl FnOnce(&mut OfModule, HookId)) -> HookId {
        let mut table = lock(&self.table);
        table.next += 1;
        let id = HookId(table.next);
        add(table.modules.entry(of).or_default(), id);
        self.count.fetch_add(1, Ordering::Release);
        id
    }

    pub(crate) fn add_before(&self, of: Receiver, prepend: bool, hook: PreHook) -> HookId {
        self.add(of, |hooks, id| {
            insert(&mut hooks.before, prepend, (id, Turns::new(hook)))
        })
    }

    pub(crate) fn add_after(&self, of: Receiver, options: &HookOptions, hook: Hook) -> HookId {
        let (always_call, hook) = (options.always_call, Turns::new(hook));
        self.add(of, |hooks, id| {
            insert(&mut hooks.after, options.prepend, After { id, always_call, hook });
        })
    }

    pub(crate) fn remove(&self, id: HookId) -> bool {
        // The hook's captured state is dropped without the lock.
        let mut removed = OfModule::default();
        let mut table = lock(&self.table);
        for hooks in table.modules.values_mut() {
            removed
                .before
                .extend(hooks.before.extract_if(.., |(other, _)| *other == id));
            removed.after.extend(hooks.after.extract_if(.., |hook| hook.id == id));
        }
        let count = removed.before.len() + removed.after.len();
        self.count.fetch_sub(count, Ordering::Release);
        drop(table);
        count > 0
    }

    /// Runs the pre-hooks of `of` alone, each of which may change the arguments. Stops at the first error.
    pub(crate) fn before(&self, of: Receiver, call: &mut CallArguments) -> Result<(), CallError> {
        let hooks = lock(&self.table).modules.get(&of).map(|hooks| hooks.before.clone());
        for (_, hook) in hooks.unwrap_or_default() {
            if let Some(new) = hook.run(|hook| hook(call))? {
                call.args = new.args;
                call.kwargs = new.kwargs;
            }
        }
        Ok(())
    }

    /// Runs the forward hooks of `of` alone, each of which may change the result. Counts the called hooks.
    pub(crate) fn after(
        &self,
        of: Receiver,
        call: &CallArguments,
        result: &mut Value,
        called: &mut usize,
    ) -> Result<(), CallError> {
        for After { hook, .. } in self.after_of(of) {
            *called += 1;
            if let Some(new) = hook.run(|hook| hook(call, result))? {
                *result = new;
            }
        }
        Ok(())
    }

    /// Runs the forward hooks with `always_call` for a call that raised an exception, except the first `called` hooks. Errors of the hooks are logged.
    pub(crate) fn always(&self, of: Receiver, call: &CallArguments, mut result: Value, called: usize) {
        let hooks = [Receiver::All, of].into_iter().flat_map(|of| self.after_of(of));
        for After { hook, .. } in hooks.skip(called).filter(|hook| hook.always_call) {
            match hook.run(|hook| hook(call, &result)) {
                Ok(Some(new)) => result = new,
                Ok(None) => {}
                Err(error) => warn!(
                    target: "frazil::hooks",
                    "a forward hook with `always_call` failed, which is silenced because the call failed before: {error}"
                ),
            }
        }
    }
}

fn insert<T>(hooks: &mut Vec<T>, prepend: bool, hook: T) {
    let at = if prepend { 0 } else { hooks.len() };
    hooks.insert(at, hook);
}
