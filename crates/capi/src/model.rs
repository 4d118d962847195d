//! Sessions and models: reading, freezing, passes, writing.

use crate::memory::{array, get, give, give_text, optional_text, place, put, text};
use crate::{FrazilError, FrazilErrorKind, FrazilOptions, FrazilValue, attributes::named, error::guarded};
use frazil::ir::types;
use frazil::{Limits, LimitsError, Loaded, Model, PassOptions, SaveOptions, Session};
use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::path::Path;

/// State that models share: names and types, the operators, and the passes. Models keep the parts that they need.
pub struct FrazilSession(Session);

/// A module, or graphs that belong to none. No function changes one: functions that change something return a new model, which shares the weights.
pub struct FrazilModel(pub(crate) Loaded);

impl FrazilModel {
    /// Returns the model as an object with methods to call.
    pub(crate) fn to_model(&self) -> Result<Model, FrazilError> {
        Ok(self.0.runnable()?)
    }
}

impl FrazilSession {
    pub(crate) fn session(&self) -> &Session {
        &self.0
    }

    pub(crate) fn ctx(&self) -> &frazil::ir::Context {
        self.0.ctx()
    }
}

/// Returns a session with the operators of PyTorch and the standard passes.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_session_new(
    out: Option<&mut MaybeUninit<Option<Box<FrazilSession>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| give(out, || Ok(FrazilSession(Session::new()))))
}

/// Returns a session whose models are read, transformed and run within limits. These are given as text: `untrusted` for the limits for untrusted input,
/// and `NAME=VALUE`, with commas between: `untrusted,memory=2G`. The names are `memory` (bytes, or with K, M or G), `nodes`, `load-time`,
/// `freeze-time`, `pass-time`, `compile-time`, `call-time` (seconds), `repetitions` and `elements`. If one is exceeded, the error's kind is
/// `FRAZIL_ERROR_KIND_LIMIT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_session_new_with_limits(
    limits: *const c_char,
    out: Option<&mut MaybeUninit<Option<Box<FrazilSession>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        // SAFETY: the caller follows the rules.
        let limits = unsafe { text(limits, "the text of the limits") }?;
        let limits: Limits = limits
            .parse()
            .map_err(|e: LimitsError| FrazilError::argument(&e.to_string()))?;
        give(out, || Ok(FrazilSession(Session::new().with_limits(limits))))
    })
}

/// Frees a session.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_session_free(session: Option<Box<FrazilSession>>) {
    drop(session);
}

/// Reads a `.pt` archive, `.ir` text or TorchScript source.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_model_load(
    session: Option<&FrazilSession>,
    path: *const c_char,
    out: Option<&mut MaybeUninit<Option<Box<FrazilModel>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let session = get(session, "the session")?;
        // SAFETY: the caller follows the rules.
        let path = unsafe { text(path, "the path") }?;
        give(out, || Ok(FrazilModel(session.0.load_any(Path::new(path))?)))
    })
}

/// Reads a `.pt` archive, `.ir` text or TorchScript source from memory. `name` is used in messages, and its extension distinguishes source (`.py`) from `.ir`
/// text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_model_load_bytes(
    session: Option<&FrazilSession>,
    name: *const c_char,
    bytes: *const u8,
    len: usize,
    out: Option<&mut MaybeUninit<Option<Box<FrazilModel>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let session = get(session, "the session")?;
        // SAFETY: the caller follows the rules.
        let (name, bytes) = unsafe { (text(name, "the name")?, array(bytes, len, "the bytes")?) };
        give(out, || {
            Ok(FrazilModel(session.0.load_bytes(Path::new(name), bytes.to_vec())?))
        })
    })
}

/// Frees a model.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_model_free(model: Option<Box<FrazilModel>>) {
    drop(model);
}

/// Returns the frozen form of a model, as `torch.jit.freeze` returns it.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_model_freeze(
    model: Option<&FrazilModel>,
    options: Option<&FrazilOptions>,
    out: Option<&mut MaybeUninit<Option<Box<FrazilModel>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let freeze = options.cloned().unwrap_or_default().freeze();
        let model = get(model, "the model")?;
        give(out, || Ok(FrazilModel(model.0.freeze(&freeze)?)))
    })
}

/// Returns the model in evaluation mode: the training flag of the module and of all below it is off. Functions and graphs have no mode.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_model_eval(
    model: Option<&FrazilModel>,
    out: Option<&mut MaybeUninit<Option<Box<FrazilModel>>>>,
) -> Option<Box<FrazilError>> {
    frazil_model_train(model, false, out)
}

/// Returns the model in training mode, or in evaluation mode where `mode` is false. Functions and graphs have no mode.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_model_train(
    model: Option<&FrazilModel>,
    mode: bool,
    out: Option<&mut MaybeUninit<Option<Box<FrazilModel>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let mut changed = get(model, "the model")?.0.clone();
        if let Loaded::Model(model) = &mut changed {
            model.train(mode);
        }
        give(out, || Ok(FrazilModel(changed)))
    })
}

/// Returns whether a model is in training mode; functions and graphs are not.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_model_is_training(
    model: Option<&FrazilModel>,
    out: Option<&mut MaybeUninit<bool>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let model = get(model, "the model")?;
        put(
            out,
            matches!(&model.0, Loaded::Model(model) if model.root().is_training()),
        )
    })
}

/// Returns the model optimised for inference, as `torch.jit.optimize_for_inference` returns it.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_model_optimize_for_inference(
    model: Option<&FrazilModel>,
    options: Option<&FrazilOptions>,
    out: Option<&mut MaybeUninit<Option<Box<FrazilModel>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let freeze = options.cloned().unwrap_or_default().freeze();
        let model = get(model, "the model")?;
        give(out, || Ok(FrazilModel(model.0.optimize_for_inference(&freeze)?)))
    })
}

/// Returns the model after the passes of a pipeline: `inline,constant-propagation,dce`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_model_run_passes(
    model: Option<&FrazilModel>,
    pipeline: *const c_char,
    out: Option<&mut MaybeUninit<Option<Box<FrazilModel>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let model = get(model, "the model")?;
        // SAFETY: the caller follows the rules.
        let pipeline = unsafe { text(pipeline, "the pipeline") }?;
        give(out, || {
            let mut after = model.0.clone();
            after.run_passes(pipeline, &PassOptions::default())?;
            Ok(FrazilModel(after))
        })
    })
}

/// Writes the model as a `.pt` archive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_model_save(
    model: Option<&FrazilModel>,
    path: *const c_char,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let model = get(model, "the model")?;
        // SAFETY: the caller follows the rules.
        let path = unsafe { text(path, "the path") }?;
        Ok(model.to_model()?.save(path, &SaveOptions::default())?)
    })
}

/// Writes the model as `.ir` text, with its larger tensors in a `.safetensors` file beside it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_model_save_ir(
    model: Option<&FrazilModel>,
    path: *const c_char,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let model = Loaded::Model(get(model, "the model")?.to_model()?);
        // SAFETY: the caller follows the rules.
        let path = unsafe { text(path, "the path") }?;
        Ok(model.save_ir(Path::new(path))?)
    })
}

/// Returns the graphs of the model in the language of Graphviz.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_model_dot(
    model: Option<&FrazilModel>,
    out: Option<&mut MaybeUninit<*mut c_char>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let model = get(model, "the model")?;
        give_text(out, || {
            let text = model.0.dot_text();
            model.0.check_unchanged()?;
            Ok(text)
        })
    })
}

/// Returns a module whose `forward` is the function of that name, or the only one, as PyTorch saves functions. Modules are returned unchanged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_model_function(
    model: Option<&FrazilModel>,
    name: *const c_char,
    out: Option<&mut MaybeUninit<Option<Box<FrazilModel>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let model = get(model, "the model")?;
        // SAFETY: the caller follows the rules.
        let name = unsafe { text(name, "the name") }?;
        give(out, || Ok(FrazilModel(Loaded::Model(model.0.to_model(name)?))))
    })
}

/// Returns the model after `__setstate__` of its objects' classes has restored their attributes from the archived state. Engines and freezing do
/// this by themselves.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_model_restored(
    model: Option<&FrazilModel>,
    out: Option<&mut MaybeUninit<Option<Box<FrazilModel>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let model = get(model, "the model")?.to_model()?;
        give(out, || Ok(FrazilModel(Loaded::Model(model.restored()?))))
    })
}

/// Returns the model as `.ir` text.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_model_ir(
    model: Option<&FrazilModel>,
    out: Option<&mut MaybeUninit<*mut c_char>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let model = get(model, "the model")?;
        give_text(out, || {
            let text = model.0.ir_text(None);
            model.0.check_unchanged()?;
            Ok(text)
        })
    })
}

/// Returns the model as TorchScript source: one method of it, or all methods if `method` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_model_code(
    model: Option<&FrazilModel>,
    method: *const c_char,
    out: Option<&mut MaybeUninit<*mut c_char>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let model = get(model, "the model")?;
        // SAFETY: the caller follows the rules.
        let method = unsafe { optional_text(method, "the method") }?;
        give_text(out, || Ok(model.0.code(method, false)?))
    })
}

/// Returns the source of one method, and the constants that it refers to as `CONSTANTS.c0`, `CONSTANTS.c1`, ...: a dictionary with the keys `c0`, `c1`, ...
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_model_code_with_constants(
    model: Option<&FrazilModel>,
    method: *const c_char,
    out_code: Option<&mut MaybeUninit<*mut c_char>>,
    out_constants: Option<&mut MaybeUninit<Option<Box<FrazilValue>>>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let model = get(model, "the model")?.to_model()?;
        // SAFETY: the caller follows the rules.
        let method = unsafe { text(method, "the method") }?;
        let out_constants = place(out_constants)?;
        // Called for its error, which says that there is no such method.
        model.graph(method)?;
        let (code, constants) = model.root().code_with_constants(method)?;
        give_text(out_code, || Ok(code))?;
        let constants = constants.iter().map(|(name, value)| (name, value.clone()));
        out_constants.write(Some(Box::new(named(constants, types::ANY))));
        Ok(())
    })
}

/// Returns the graph of one method as text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_model_graph(
    model: Option<&FrazilModel>,
    method: *const c_char,
    out: Option<&mut MaybeUninit<*mut c_char>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let model = get(model, "the model")?;
        // SAFETY: the caller follows the rules.
        let method = unsafe { text(method, "the method") }?;
        give_text(out, || {
            let text = frazil::print_graph(model.0.graph(method)?);
            model.0.check_unchanged()?;
            Ok(text)
        })
    })
}

/// Returns the name of the Python class of a model. A model that consists of functions has the class name `Functions`.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_model_class_name(
    model: Option<&FrazilModel>,
    out: Option<&mut MaybeUninit<*mut c_char>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let model = get(model, "the model")?.to_model()?;
        give_text(out, || Ok(model.root().original_name().to_owned()))
    })
}

/// Returns the number of methods that a model has.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_model_method_count(
    model: Option<&FrazilModel>,
    out: Option<&mut MaybeUninit<usize>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let model = get(model, "the model")?.to_model()?;
        put(out, model.root().method_names().len())
    })
}

/// Returns the name of method number `index` of a model.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_model_method_name(
    model: Option<&FrazilModel>,
    index: usize,
    out: Option<&mut MaybeUninit<*mut c_char>>,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let model = get(model, "the model")?.to_model()?;
        let names = model.root().method_names();
        let name = names.get(index).ok_or_else(|| {
            let message = format!("there is no method {index}: the model has {}", names.len());
            FrazilError::new(FrazilErrorKind::Argument, &message)
        })?;
        give_text(out, || Ok((*name).to_owned()))
    })
}
