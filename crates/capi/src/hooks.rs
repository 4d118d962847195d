//! Hooks: functions of the caller that run before and after `forward` when the module of an engine is called.

use crate::callback::Context;
use crate::engine::exclusively;
use crate::memory::{get, null, place, put};
use crate::{FrazilEngine, FrazilError, FrazilValue, error::guarded};
use frazil::{CallError, HookId, Value};
use std::collections::HashMap;
use std::ffi::c_void;
use std::mem::MaybeUninit;

/// A function that runs before `forward` and receives the arguments of the call as a tuple. It may replace them: it writes a tuple, or a single
/// value, to `replacement`, which is NULL when the function is called. The arguments belong to the compiler, and so does the replacement once it is
/// written. Returns NULL or an error, which ends the call. It must not use the engine.
pub type FrazilPreHook = Option<
    unsafe extern "C" fn(
        context: *mut c_void,
        arguments: *const FrazilValue,
        replacement: *mut *mut FrazilValue,
    ) -> *mut FrazilError,
>;

/// A function that runs after `forward` and receives the arguments of the call, a tuple, and its result. It may replace the result as `FrazilPreHook` replaces
/// arguments.
pub type FrazilHook = Option<
    unsafe extern "C" fn(
        context: *mut c_void,
        arguments: *const FrazilValue,
        result: *const FrazilValue,
        replacement: *mut *mut FrazilValue,
    ) -> *mut FrazilError,
>;

/// The hooks of an engine by their numbers in the C interface.
#[derive(Default)]
pub(crate) struct HookIds {
    next: u64,
    ids: HashMap<u64, HookId>,
}

impl HookIds {
    fn add(&mut self, id: HookId) -> u64 {
        self.next += 1;
        self.ids.insert(self.next, id);
        self.next
    }
}

/// Returns the replacement value that a callback wrote, or the callback's error.
///
/// # Safety
/// `error` and `value` are NULL or handles that the callback wrote and that nothing else owns.
pub(crate) unsafe fn given(error: *mut FrazilError, value: *mut FrazilValue) -> Result<Option<Value>, FrazilError> {
    // SAFETY: the caller follows the rules.
    let value = (!value.is_null()).then(|| unsafe { Box::from_raw(value) });
    match error.is_null() {
        true => Ok(value.map(|value| value.0)),
        // SAFETY: as above.
        false => Err(*unsafe { Box::from_raw(error) }),
    }
}

/// Runs `hook` on the arguments of every later call of the module: `frazil_engine_call_module`, and not `frazil_engine_call`, not even of `forward`. The
/// hook is called on the thread of the call. Unless it is NULL, `release` is called with `context` once the hook is removed or the engine freed. Returns
/// a number for `frazil_engine_remove_hook`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_engine_register_forward_pre_hook(
    engine: Option<&FrazilEngine>,
    hook: FrazilPreHook,
    context: *mut c_void,
    release: Option<extern "C" fn(*mut c_void)>,
    out: Option<&mut MaybeUninit<u64>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let engine = get(engine, "the engine")?;
        let hook = hook.ok_or_else(|| null("the hook"))?;
        let out = place(out)?;
        let mut running = exclusively(&engine.engine, "the engine")?;
        let context = Context::new(context, release).taken();
        let id = running.register_forward_pre_hook(move |arguments| {
            let arguments = FrazilValue(Value::tuple(arguments.to_vec()));
            let mut replacement = std::ptr::null_mut();
            let context = &context;
            // SAFETY: the caller passed a function that may be called this way, and follows the rules for its results.
            let given = unsafe {
                let error = hook(context.context, &arguments, &mut replacement);
                given(error, replacement)
            };
            Ok(given.map_err(CallError::from)?.map(|value| match value {
                Value::Tuple(tuple) => tuple.items.to_vec(),
                one => vec![one],
            }))
        });
        out.write(engine.hook_ids().add(id));
        Ok(())
    })
}

/// Runs `hook` on the arguments and the result of every later call of the module, as `frazil_engine_register_forward_pre_hook` does before it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_engine_register_forward_hook(
    engine: Option<&FrazilEngine>,
    hook: FrazilHook,
    context: *mut c_void,
    release: Option<extern "C" fn(*mut c_void)>,
    out: Option<&mut MaybeUninit<u64>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let engine = get(engine, "the engine")?;
        let hook = hook.ok_or_else(|| null("the hook"))?;
        let out = place(out)?;
        let mut running = exclusively(&engine.engine, "the engine")?;
        let context = Context::new(context, release).taken();
        let id = running.register_forward_hook(move |arguments, result| {
            let arguments = FrazilValue(Value::tuple(arguments.to_vec()));
            let result = FrazilValue(result.clone());
            let mut replacement = std::ptr::null_mut();
            let context = &context;
            // SAFETY: the caller passed a function that may be called this way, and follows the rules for its results.
            let given = unsafe {
                let error = hook(context.context, &arguments, &result, &mut replacement);
                given(error, replacement)
            };
            given.map_err(CallError::from)
        });
        out.write(engine.hook_ids().add(id));
        Ok(())
    })
}

/// Removes a hook. Returns false if there is no hook with this number, or it was removed before.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_engine_remove_hook(
    engine: Option<&FrazilEngine>,
    hook: u64,
    out: Option<&mut MaybeUninit<bool>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let engine = get(engine, "the engine")?;
        let mut running = exclusively(&engine.engine, "the engine")?;
        let id = engine.hook_ids().ids.remove(&hook);
        put(out, id.is_some_and(|id| running.remove_hook(id)))
    })
}
