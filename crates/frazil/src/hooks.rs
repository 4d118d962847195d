//! Hooks: Rust functions that run before and after `forward` when the module of an engine is called, as `Module.register_forward_pre_hook` and `register_forward_hook` have it.
//!
//! Hooks that an archive holds are methods of its module and run first.

use crate::engine::CallError;
use frazil_runtime::Value;

/// Gets the arguments of a call and may give others.
///
/// See [`Engine::register_forward_pre_hook`](crate::Engine::register_forward_pre_hook) for an example.
pub type PreHook = Box<dyn FnMut(&[Value]) -> Result<Option<Vec<Value>>, CallError> + Send>;

/// Gets the arguments and the result of a call and may give another result.
///
/// See [`Engine::register_forward_hook`](crate::Engine::register_forward_hook) for an example.
pub type Hook = Box<dyn FnMut(&[Value], &Value) -> Result<Option<Value>, CallError> + Send>;

/// A hook that was registered, to be removed again.
///
/// See [`Engine::register_forward_pre_hook`](crate::Engine::register_forward_pre_hook) for an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HookId(u64);

/// The hooks of an engine, in the order in which they were registered.
#[derive(Default)]
pub(crate) struct Hooks {
    next: u64,
    before: Vec<(HookId, PreHook)>,
    after: Vec<(HookId, Hook)>,
}

impl Hooks {
    pub(crate) fn is_empty(&self) -> bool {
        self.before.is_empty() && self.after.is_empty()
    }

    fn id(&mut self) -> HookId {
        self.next += 1;
        HookId(self.next)
    }

    pub(crate) fn add_before(&mut self, hook: PreHook) -> HookId {
        let id = self.id();
        self.before.push((id, hook));
        id
    }

    pub(crate) fn add_after(&mut self, hook: Hook) -> HookId {
        let id = self.id();
        self.after.push((id, hook));
        id
    }

    pub(crate) fn remove(&mut self, id: HookId) -> bool {
        let count = self.before.len() + self.after.len();
        self.before.retain(|(other, _)| *other != id);
        self.after.retain(|(other, _)| *other != id);
        self.before.len() + self.after.len() < count
    }

    /// The arguments as the hooks leave them.
    pub(crate) fn before(&mut self, args: &[Value]) -> Result<Vec<Value>, CallError> {
        let mut args = args.to_vec();
        for (_, hook) in &mut self.before {
            if let Some(new) = hook(&args)? {
                args = new;
            }
        }
        Ok(args)
    }

    /// The result as the hooks leave it.
    pub(crate) fn after(&mut self, args: &[Value], mut result: Value) -> Result<Value, CallError> {
        for (_, hook) in &mut self.after {
            if let Some(new) = hook(args, &result)? {
                result = new;
            }
        }
        Ok(result)
    }
}
