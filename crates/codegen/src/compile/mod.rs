//! Plans to packages and compiled functions.

mod kernel;

pub use kernel::{Stage, compile_kernel, kernel_text};

use crate::backend::CompileError;
use crate::cache::CodeKey;
use crate::options::BackendOptions;
use frazil_executor::memory::own_pages;
use frazil_executor::{Executable, Package};
use frazil_limits::Budget;
use frazil_planner::kernel::KernelSpec;
use frazil_planner::plan::{Plan, kernel_name};
use frazil_runtime::threads::parallel;
use rayon::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};

/// Compiles the kernels of `plan` that have code, in parallel. Returns an object file for each of them, in order. The symbols are those of the plan,
/// [`kernel_name`]; the cache is not used.
///
/// # Errors
/// If a kernel cannot be compiled.
pub fn compile_objects(plan: &Plan, options: &BackendOptions) -> Result<Vec<Vec<u8>>, CompileError> {
    each_kernel(plan, |(i, spec)| {
        compile_kernel(&kernel_name(&plan.name, i), spec, options)
    })
}

/// Returns what `compile` makes of the kernels of `plan` that have code, with their numbers, in order. It runs in parallel.
fn each_kernel<T: Send>(
    plan: &Plan,
    compile: impl Fn((usize, &KernelSpec)) -> Result<T, CompileError> + Sync,
) -> Result<Vec<T>, CompileError> {
    let kernels = plan.kernels.par_iter().enumerate();
    let kernels = kernels.filter(|(_, spec)| !spec.phases().is_empty());
    let budget = Budget::current();
    let compiled = kernels.map(|kernel| {
        let _entered = budget.as_ref().map(Budget::enter);
        frazil_limits::check()?;
        compile(kernel)
    });
    parallel(|| compiled.collect())
}

/// Compiles the kernels of `plan`, or takes their code from the cache.
///
/// # Errors
/// If a kernel cannot be compiled, or the plan contradicts itself.
pub fn package(plan: &Plan, options: &BackendOptions) -> Result<Package, CompileError> {
    // Before the kernels are compiled, which takes long.
    plan.validate()?;
    let compiled = AtomicBool::new(false);
    let cache = options.cache.as_ref();
    let codes = each_kernel(plan, |(i, spec)| {
        let key = CodeKey::of(spec, &options.target);
        let symbol = key.symbol();
        if let Some(object) = cache.and_then(|c| c.get(&key)) {
            return Ok((i, symbol, object));
        }
        let object = compile_kernel(&symbol, spec, options)?;
        compiled.store(true, Ordering::Relaxed);
        if let Some(cache) = cache {
            cache.put(&key, &object);
        }
        Ok((i, symbol, object))
    })?;
    if compiled.into_inner() {
        // Constants are packed next.
        own_pages::after_compiling(plan.constants.len() + plan.preparation.bytes + plan.workspace_bytes);
    }
    let mut contents = plan.contents();
    let mut objects = Vec::with_capacity(codes.len());
    for (i, symbol, object) in codes {
        if let Some(kernel) = contents.kernels.get_mut(i) {
            kernel.symbol = symbol;
        }
        objects.push(object);
    }
    let package = Package::new(
        contents,
        objects,
        plan.constants.clone(),
        plan.preparation.sources.clone(),
        plan.hosts.clone(),
    );
    Ok(package?)
}

/// Compiles `plan` for this process.
///
/// # Errors
/// If a kernel cannot be compiled, the plan contradicts itself, or the system refuses memory or threads.
pub fn compile(plan: &Plan, options: &BackendOptions) -> Result<Executable, CompileError> {
    Ok(package(plan, options)?.load(&options.run_options())?)
}
