//! Options for freezing, compiling and running.

use crate::memory::{get_mut, text};
use crate::{FrazilError, error::guarded};
use frazil::{EngineKind, EngineOptions, FreezeOptions};
use std::ffi::c_char;

/// Options for freezing, compiling and running. New options have the defaults; where a function takes options, NULL means the defaults.
#[derive(Clone)]
pub struct FrazilOptions {
    pub(crate) engine: EngineOptions,
    pub(crate) optimize_numerics: bool,
    pub(crate) target_cpu: String,
    pub(crate) name: String,
    /// Whether methods have been added; until then, `forward` is kept.
    names_methods: bool,
}

impl Default for FrazilOptions {
    fn default() -> FrazilOptions {
        FrazilOptions {
            engine: EngineOptions::default(),
            optimize_numerics: true,
            target_cpu: "host".to_owned(),
            name: "model".to_owned(),
            names_methods: false,
        }
    }
}

impl FrazilOptions {
    pub(crate) fn freeze(&self) -> FreezeOptions {
        let mut freeze = FreezeOptions::default().optimize_numerics(self.optimize_numerics);
        let methods = self.engine.methods.iter().filter(|name| *name != "forward");
        freeze.freeze.preserve = methods.chain(&self.engine.preserve).cloned().collect();
        freeze
    }

    #[cfg(feature = "codegen")]
    pub(crate) fn compile(&self) -> frazil::CompileOptions {
        let compile = self.engine.compile.clone();
        compile.target_cpu(self.target_cpu.clone()).name(self.name.clone())
    }
}

/// Returns new options with the defaults: native code for this machine, one thread.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_options_new() -> Box<FrazilOptions> {
    Box::default()
}

/// Frees options.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_options_free(options: Option<Box<FrazilOptions>>) {
    drop(options);
}

fn set(options: Option<&mut FrazilOptions>, change: impl FnOnce(&mut FrazilOptions)) -> Option<Box<FrazilError>> {
    guarded(|| {
        change(get_mut(options, "options")?);
        Ok(())
    })
}

/// Sets the number of threads that a run may use. Default: 1.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_options_set_threads(
    options: Option<&mut FrazilOptions>,
    threads: usize,
) -> Option<Box<FrazilError>> {
    set(options, |o| o.engine.compile.threads = threads.max(1))
}

/// Sets whether an engine puts the model into evaluation mode first. Default: false; a model in training mode runs as it is.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_options_set_eval(options: Option<&mut FrazilOptions>, eval: bool) -> Option<Box<FrazilError>> {
    set(options, |o| o.engine.eval = eval)
}

/// Sets whether an engine interprets the model as it is, instead of freezing and compiling it. Default: false.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_options_set_interpret(
    options: Option<&mut FrazilOptions>,
    interpret: bool,
) -> Option<Box<FrazilError>> {
    set(options, |o| {
        o.engine.kind = match interpret {
            true => EngineKind::Interpreter,
            false => EngineKind::Native,
        }
    })
}

/// Sets whether it is an error if an engine cannot compile a method; otherwise the interpreter runs the method. Default: false.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_options_set_strict(
    options: Option<&mut FrazilOptions>,
    strict: bool,
) -> Option<Box<FrazilError>> {
    set(options, |o| o.engine.strict = strict)
}

/// Sets whether operators are fused into one kernel where that saves passes over memory. Default: true.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_options_set_fusion(
    options: Option<&mut FrazilOptions>,
    fuse: bool,
) -> Option<Box<FrazilError>> {
    set(options, |o| o.engine.compile.fuse = fuse)
}

/// Sets the number of shapes of a method that get code of their own, in the order of their first calls. All other shapes share code, which gives the same
/// results. Default: 2.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_options_set_static_shapes(
    options: Option<&mut FrazilOptions>,
    most: usize,
) -> Option<Box<FrazilError>> {
    set(options, |o| o.engine.fusion_strategy.static_shapes = most)
}

/// Sets the maximum number of call signatures for which an engine compiles a method; it interprets others. Default: unlimited.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_options_set_specialisations(
    options: Option<&mut FrazilOptions>,
    most: usize,
) -> Option<Box<FrazilError>> {
    set(options, |o| o.engine.specialisations = Some(most))
}

/// Sets whether freezing may apply foldings that change the rounding of results, such as a batch norm into a convolution. Default: true.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_options_set_optimize_numerics(
    options: Option<&mut FrazilOptions>,
    optimize: bool,
) -> Option<Box<FrazilError>> {
    set(options, |o| o.optimize_numerics = optimize)
}

/// Adds a method that will be called, which freezing keeps. Unless some are added, that is `forward`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_options_add_method(
    options: Option<&mut FrazilOptions>,
    method: *const c_char,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let options = get_mut(options, "options")?;
        // SAFETY: the caller follows the rules.
        let method = unsafe { text(method, "the method") }?;
        if !std::mem::replace(&mut options.names_methods, true) {
            options.engine.methods.clear();
        }
        options.engine.methods.push(method.to_owned());
        Ok(())
    })
}

/// Adds the dotted name of an attribute or method that freezing keeps.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_options_preserve(
    options: Option<&mut FrazilOptions>,
    name: *const c_char,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let options = get_mut(options, "options")?;
        // SAFETY: the caller follows the rules.
        let name = unsafe { text(name, "the name") }?;
        options.engine.preserve.push(name.to_owned());
        Ok(())
    })
}

/// Sets the processor that code is compiled for: `host`, an x86-64 level (`x86-64-v3`), or a name that LLVM knows. Engines compile for the host only.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_options_set_target_cpu(
    options: Option<&mut FrazilOptions>,
    cpu: *const c_char,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let options = get_mut(options, "options")?;
        // SAFETY: the caller follows the rules.
        options.target_cpu = unsafe { text(cpu, "the processor") }?.to_owned();
        Ok(())
    })
}

/// Sets the prefix of the function names in a library: a C identifier.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_options_set_name(
    options: Option<&mut FrazilOptions>,
    name: *const c_char,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let options = get_mut(options, "options")?;
        // SAFETY: the caller follows the rules.
        options.name = unsafe { text(name, "the name") }?.to_owned();
        Ok(())
    })
}

/// Sets a directory that stores native code across processes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_options_set_cache_dir(
    options: Option<&mut FrazilOptions>,
    path: *const c_char,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let options = get_mut(options, "options")?;
        // SAFETY: the caller follows the rules.
        options.engine.compile.cache_dir = Some(unsafe { text(path, "the path") }?.into());
        Ok(())
    })
}

/// Sets the maximum size in bytes of the directory that stores native code. Beyond it, the files that have not been used for the longest time are deleted.
/// Default: 2 GiB.
#[unsafe(no_mangle)]
pub extern "C" fn frazil_options_set_cache_bytes(
    options: Option<&mut FrazilOptions>,
    bytes: u64,
) -> Option<Box<FrazilError>> {
    set(options, |o| o.engine.compile.cache_bytes = bytes)
}

/// Sets a file of tuning results: the kernel variants that were measured to be the fastest on this processor. Kernels that it does not contain yet are
/// measured, and added.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frazil_options_set_tune(
    options: Option<&mut FrazilOptions>,
    path: *const c_char,
) -> Option<Box<FrazilError>> {
    guarded(|| {
        let options = get_mut(options, "options")?;
        // SAFETY: the caller follows the rules.
        options.engine.compile.tune = Some(unsafe { text(path, "the path") }?.into());
        Ok(())
    })
}
