//! Engines: creating them, calling methods, reading their state.

use crate::hooks::HookIds;
use crate::memory::{get, give, give_text, optional_text, put, text, texts};
use crate::value::values;
use crate::{FrazilError, FrazilErrorKind, FrazilModel, FrazilOptions, FrazilSession, FrazilValue, error::guarded};
use frazil::{Engine, Loaded, Value};
use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// An instance of a model: changes that a call makes are visible to the next one.
pub struct FrazilEngine {
    pub(crate) engine: Mutex<Engine>,
    hooks: Mutex<HookIds>,
}

impl FrazilEngine {
    fn new(engine: Engine) -> FrazilEngine {
        FrazilEngine {
            engine: Mutex::new(engine),
            hooks: Mutex::default(),
        }
    }

    /// Locks the table of hook numbers.
    pub(crate) fn hook_ids(&self) -> MutexGuard<'_, HookIds> {
        self.hooks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Locks an object that runs one call at a time, for this call. It is an error if another thread uses it.
pub(crate) fn exclusively<'a, T>(mutex: &'a Mutex<T>, what: &str) -> Result<MutexGuard<'a, T>, FrazilError> {
    match mutex.try_lock() {
        Ok(guard) => Ok(guard),
        // A bug ended an earlier call; the state that it left is usable (see `guarded`).
        Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => {
            let message = format!("{what} is in use by another thread: it runs one call at a time");
            Err(FrazilError::new(FrazilErrorKind::Busy, &message))
        }
    }
}

/// Returns an engine, which freezes the model and compiles each method for the arguments of its calls, or interprets it if the options say so.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_engine_new(
    model: Option<&FrazilModel>,
    options: Option<&FrazilOptions>,
    out: Option<&mut MaybeUninit<Option<Box<FrazilEngine>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let model = get(model, "the model")?.to_model()?;
        let options = options.cloned().unwrap_or_default().engine;
        give(out, || Ok(FrazilEngine::new(model.engine(&options)?)))
    })
}

/// Returns an engine for the model in a file. With a `cache_dir` among the options, the file is read and the model frozen only when a method is called for
/// which no compiled code is stored.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_engine_load(
    session: Option<&FrazilSession>,
    path: *const c_char,
    options: Option<&FrazilOptions>,
    out: Option<&mut MaybeUninit<Option<Box<FrazilEngine>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let session = get(session, "the session")?;
        // SAFETY: the caller follows the rules.
        let path = unsafe { text(path, "the path") }?;
        let options = options.cloned().unwrap_or_default().engine;
        give(out, || {
            Ok(FrazilEngine::new(session.session().engine(Path::new(path), &options)?))
        })
    })
}

/// Returns the model with the current attributes of an engine, which its calls may have changed.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_engine_snapshot(
    engine: Option<&FrazilEngine>,
    out: Option<&mut MaybeUninit<Option<Box<FrazilModel>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let mut engine = exclusively(&get(engine, "the engine")?.engine, "the engine")?;
        give(out, || Ok(FrazilModel(Loaded::Model(engine.snapshot()?))))
    })
}

/// Returns the graph that an engine runs for a method, as text: the frozen one, for engines that compile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_engine_graph(
    engine: Option<&FrazilEngine>,
    method: *const c_char,
    out: Option<&mut MaybeUninit<*mut c_char>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let mut engine = exclusively(&get(engine, "the engine")?.engine, "the engine")?;
        // SAFETY: the caller follows the rules.
        let method = unsafe { text(method, "the method") }?;
        give_text(out, || Ok(frazil::print_graph(engine.graph_for(method)?)))
    })
}

/// Frees an engine.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_engine_free(engine: Option<Box<FrazilEngine>>) {
    drop(engine);
}

/// Calls a method. Arguments are checked and converted as PyTorch does for arguments from Python; missing ones at the end take their defaults.
/// No hooks run, not even for `forward`: `frazil_engine_call_module` calls the module. The path of a submodule without a method's name
/// (`encoder`) calls the submodule, with its hooks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_engine_call(
    engine: Option<&FrazilEngine>,
    method: *const c_char,
    arguments: *const Option<&FrazilValue>,
    len: usize,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let engine = get(engine, "the engine")?;
        // SAFETY: the caller follows the rules.
        let (method, arguments) = unsafe { (text(method, "the method")?, values(arguments, len)?) };
        let mut engine = exclusively(&engine.engine, "the engine")?;
        give(out, || Ok(FrazilValue(engine.call(method, &arguments)?)))
    })
}

/// Calls the module: its forward pre-hooks, `forward`, its forward hooks. Without hooks, this is a call of `forward`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_engine_call_module(
    engine: Option<&FrazilEngine>,
    arguments: *const Option<&FrazilValue>,
    len: usize,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let engine = get(engine, "the engine")?;
        // SAFETY: the caller follows the rules.
        let arguments = unsafe { values(arguments, len) }?;
        let mut engine = exclusively(&engine.engine, "the engine")?;
        give(out, || Ok(FrazilValue(engine.call_module(&arguments)?)))
    })
}

/// Calls a method, or the module where `method` is NULL, with arguments by position and `named_len` more by name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_engine_call_named(
    engine: Option<&FrazilEngine>,
    method: *const c_char,
    arguments: *const Option<&FrazilValue>,
    len: usize,
    names: *const *const c_char,
    named: *const Option<&FrazilValue>,
    named_len: usize,
    out: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let engine = get(engine, "the engine")?;
        // SAFETY: the caller follows the rules.
        let (method, arguments, names, named) = unsafe {
            let names = texts(names, named_len, "the names")?;
            let method = optional_text(method, "the method")?;
            (method, values(arguments, len)?, names, values(named, named_len)?)
        };
        let by_name: Vec<(&str, Value)> = names.into_iter().zip(named).collect();
        let mut engine = exclusively(&engine.engine, "the engine")?;
        give(out, || {
            Ok(FrazilValue(match method {
                Some(method) => engine.call_with(method, &arguments, &by_name)?,
                None => engine.call_module_with(&arguments, &by_name)?,
            }))
        })
    })
}

/// Returns one line for each method that an engine compiled, and one line with the reason for each method that it did not compile.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_engine_notes(
    engine: Option<&FrazilEngine>,
    out: Option<&mut MaybeUninit<*mut c_char>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let engine = exclusively(&get(engine, "the engine")?.engine, "the engine")?;
        give_text(out, || {
            Ok(engine.notes().iter().map(|line| format!("{line}\n")).collect())
        })
    })
}

/// Returns the number of seconds that an engine has spent on compiling so far.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_engine_compile_seconds(
    engine: Option<&FrazilEngine>,
    out: Option<&mut MaybeUninit<f64>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let engine = exclusively(&get(engine, "the engine")?.engine, "the engine")?;
        put(out, engine.compile_time().as_secs_f64())
    })
}
