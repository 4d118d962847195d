//! Compilation of plans to packages and executables.

mod kernel;
mod origins;

pub use kernel::{Stage, compile_kernel, kernel_text};

use crate::backend::CompileError;
use crate::cache::CodeKey;
use crate::options::BackendOptions;
use frazil_executor::memory::release;
use frazil_executor::{Executable, LoadError, Package};
use frazil_limits::Budget;
use frazil_planner::kernel::{KernelCode, KernelSpec};
use frazil_planner::plan::{Plan, kernel_name};
use frazil_runtime::threads::parallel;
use rayon::prelude::*;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// Compiles the kernels of `plan` that have code, in parallel. Returns an object file for each of them, in order. The symbols are those of the plan,
/// [`kernel_name`]; the cache is not used.
///
/// # Errors
/// If a kernel cannot be compiled.
pub fn compile_objects(plan: &Plan, options: &BackendOptions) -> Result<Vec<Vec<u8>>, CompileError> {
    each_kernel(plan, |(i, spec)| {
        compile_kernel(
            &kernel_name(&plan.name, i),
            &KernelCode::constant(spec.clone()),
            options,
        )
    })
}

/// Calls `compile` with each kernel of `plan` that has code and its index, in parallel. Returns the results in the order of the kernels.
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

/// Compiles the kernels of `plan`, or takes their code from the cache. Each kernel has code for its own sizes.
///
/// # Errors
/// If a kernel cannot be compiled, or the plan contradicts itself.
pub fn package(plan: &Plan, options: &BackendOptions) -> Result<Package, CompileError> {
    let codes: Vec<KernelCode> = plan.kernels.iter().cloned().map(KernelCode::constant).collect();
    package_with(plan, &codes, options)
}

/// As [`package`], with `codes` as the code of the plan's kernels, in the same order.
///
/// # Errors
/// Also if a code cannot compute its kernel.
pub fn package_with(plan: &Plan, codes: &[KernelCode], options: &BackendOptions) -> Result<Package, CompileError> {
    // Before the kernels are compiled, which takes long.
    let mut contents = plan.contents();
    contents.validate(&plan.constants, &plan.preparation.sources, plan.runtime_calls.len())?;
    let compiled = AtomicBool::new(false);
    let cache = options.cache.as_ref();
    let serving = |i: usize, spec: &KernelSpec| {
        let found = codes.get(i).and_then(|code| Some((code, code.arguments_for(spec)?)));
        found.ok_or_else(|| LoadError::InvalidPlan(format!("the code of kernel {i} does not serve it")))
    };
    // Kernels may share code, which is compiled once.
    let mut first_of: HashMap<CodeKey, usize> = HashMap::new();
    let mut keys = Vec::with_capacity(plan.kernels.len());
    for (i, spec) in plan.kernels.iter().enumerate() {
        let (code, numbers) = serving(i, spec)?;
        // The code was emitted for a kernel of other sizes, which are checked too.
        if !spec.phases().is_empty() {
            options.emitters.check(&kernel_name(&plan.name, i), spec)?;
        }
        let key = CodeKey::of(code, &options.target);
        first_of.entry(key.clone()).or_insert(i);
        keys.push((key, numbers));
    }
    let objects = each_kernel(plan, |(i, _)| {
        let (Some((key, _)), Some(code)) = (keys.get(i), codes.get(i)) else {
            return Ok(None);
        };
        if first_of.get(key) != Some(&i) {
            return Ok(None);
        }
        if let Some(object) = cache.and_then(|c| c.get(key)) {
            return Ok(Some(object));
        }
        let object = compile_kernel(&key.symbol(), code, options)?;
        compiled.store(true, Ordering::Relaxed);
        if let Some(cache) = cache {
            cache.put(key, &object);
        }
        Ok(Some(object))
    })?;
    if compiled.into_inner() {
        // Constants are packed next.
        release::after_compiling(plan.constants.len() + plan.preparation.bytes + plan.workspace_bytes);
    }
    for (kernel, (key, numbers)) in contents.kernels.iter_mut().zip(keys) {
        kernel.symbol = key.symbol();
        kernel.numbers = numbers;
    }
    let package = Package::new(
        contents,
        objects.into_iter().flatten().collect(),
        plan.constants.clone(),
        plan.preparation.sources.clone(),
        plan.runtime_calls.clone(),
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
