//! Compilation of plans to packages and executables.

mod kernel;
mod library;
mod origins;

pub use kernel::{Stage, compile_kernel, kernel_text};
pub use library::compile_library;

use crate::backend::CompileError;
use crate::cache::CodeKey;
use crate::options::BackendOptions;
use crate::target_keys::TargetKey;
use frazil_executor::link::{Code, LibraryKey};
use frazil_executor::memory::release;
use frazil_executor::package::Parts;
use frazil_executor::{Executable, LoadError, Package};
use frazil_limits::Budget;
use frazil_planner::kernel::{KernelCode, KernelSpec};
use frazil_planner::plan::{Plan, kernel_name};
use frazil_runtime::threads::parallel;
use rayon::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tracing::{debug, warn};

/// Compiles the kernels of `plan` in parallel, except runtime calls, which have no code. Returns an object file for each kernel, in order. [`kernel_name`]
/// returns the symbol of each kernel. The cache is not used.
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

/// Compiles `codes` in parallel, without the cache. Returns an object file for each, in order. The symbols are those that [`kernel_name`] returns for the
/// function `name`.
///
/// # Errors
/// If a kernel cannot be compiled.
pub fn compile_codes(name: &str, codes: &[KernelCode], options: &BackendOptions) -> Result<Vec<Vec<u8>>, CompileError> {
    let codes = codes.par_iter().enumerate();
    let codes = codes.filter(|(_, code)| !code.kernel().phases().is_empty());
    compiled(codes, |(i, code)| compile_kernel(&kernel_name(name, i), code, options))
}

/// Calls `compile` with the index and the specification of each kernel of `plan`, in parallel. Skips runtime calls, which have no code. Returns the results in
/// the order of the kernels.
fn each_kernel<T: Send>(
    plan: &Plan,
    compile: impl Fn((usize, &KernelSpec)) -> Result<T, CompileError> + Sync + Send,
) -> Result<Vec<T>, CompileError> {
    let kernels = plan.kernels.par_iter().enumerate();
    compiled(kernels.filter(|(_, spec)| !spec.phases().is_empty()), compile)
}

/// Calls `compile` with each of `kernels` in parallel, within the caller's budget. Returns the results in order.
fn compiled<K: Send, T: Send>(
    kernels: impl ParallelIterator<Item = K>,
    compile: impl Fn(K) -> Result<T, CompileError> + Sync + Send,
) -> Result<Vec<T>, CompileError> {
    let budget = Budget::current();
    let compiled = kernels.map(|kernel| {
        let _entered = budget.as_ref().map(Budget::enter);
        frazil_limits::check()?;
        compile(kernel)
    });
    parallel(|| compiled.collect())
}

/// Compiles the kernels of `plan`, or takes their code from the library or the cache. Each kernel has code for its own sizes.
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
/// The same errors, and an error if an element of `codes` cannot compute its kernel.
pub fn package_with(plan: &Plan, codes: &[KernelCode], options: &BackendOptions) -> Result<Package, CompileError> {
    // Before the kernels are compiled, which takes long.
    let mut contents = plan.contents();
    contents.validate(&plan.sizes())?;
    let serving = |i: usize, spec: &KernelSpec| {
        let found = codes.get(i).and_then(|code| Some((code, code.arguments_for(spec)?)));
        found.ok_or_else(|| LoadError::InvalidPlan(format!("the code of kernel {i} does not serve it")))
    };
    let target = options.keys.of(&options.target);
    let mut keys = Vec::with_capacity(plan.kernels.len());
    for (i, (spec, kernel)) in plan.kernels.iter().zip(&mut contents.kernels).enumerate() {
        let (code, numbers) = serving(i, spec)?;
        // The code was emitted for a kernel of other sizes, which are checked too.
        if !spec.phases().is_empty() {
            options.emitters.check(&kernel_name(&plan.name, i), spec)?;
        }
        let key = ObjectKey::of(code, options, &target);
        kernel.symbol = key.symbol();
        kernel.numbers = numbers;
        keys.push(key);
    }
    let symbols: Vec<&str> = contents.kernels.iter().map(|kernel| kernel.symbol.as_str()).collect();
    let mut linked: Vec<Option<Arc<Code>>> = match &options.loaded {
        Some(loaded) => symbols.iter().map(|symbol| loaded.get(symbol)).collect(),
        None => Vec::new(),
    };
    // Kernels may share code, which is compiled once.
    let mut first_of: HashMap<&ObjectKey, usize> = HashMap::new();
    for (i, key) in keys.iter().enumerate() {
        if linked.get(i).is_none_or(Option::is_none) {
            first_of.entry(key).or_insert(i);
        }
    }
    let mut objects = objects(plan, codes, &keys, &first_of, options)?;
    if let Some(loaded) = &options.loaded
        && !objects.is_empty()
    {
        let code = Arc::new(Code::load(&objects, options.run_options().linker).map_err(LoadError::from)?);
        objects.clear();
        loaded.add(&code, first_of.values().map(|&i| symbols[i].to_owned()));
        for (found, key) in linked.iter_mut().zip(&keys) {
            if first_of.contains_key(key) {
                found.get_or_insert_with(|| Arc::clone(&code));
            }
        }
    }
    let package = Package::new(Parts {
        contents,
        objects,
        linked,
        constants: plan.constants.clone(),
        sources: plan.preparation.sources.clone(),
        shared: plan.shared.clone(),
        runtime_calls: plan.runtime_calls.clone(),
    });
    Ok(package?)
}

/// Returns true if `code` need not be compiled, because the library has it or the process has loaded it before.
pub fn is_compiled(code: &KernelCode, options: &BackendOptions) -> bool {
    let key = ObjectKey::of(code, options, &options.keys.of(&options.target));
    let is_loaded = || {
        options
            .loaded
            .as_ref()
            .is_some_and(|loaded| loaded.get(&key.symbol()).is_some())
    };
    matches!(key, ObjectKey::Library(_)) || is_loaded()
}

/// The key of an object: in the library, if it has the code, or else in the cache.
#[derive(PartialEq, Eq, Hash)]
enum ObjectKey {
    Library(LibraryKey),
    Cache(CodeKey),
}

impl ObjectKey {
    fn of(code: &KernelCode, options: &BackendOptions, target: &Arc<TargetKey>) -> ObjectKey {
        let code = code.identity();
        match options.library_key(&code, target) {
            Some(key) => ObjectKey::Library(key),
            None => ObjectKey::Cache(CodeKey::of(code, target)),
        }
    }

    fn symbol(&self) -> String {
        match self {
            ObjectKey::Library(key) => key.symbol(),
            ObjectKey::Cache(key) => key.symbol(),
        }
    }

    /// Returns the object, if the library or the cache has it.
    fn find(&self, options: &BackendOptions) -> Option<Vec<u8>> {
        match self {
            ObjectKey::Library(key) => {
                let found = options.library.as_ref()?.get(key);
                // Damaged code is compiled again.
                let object = found.unwrap_or_else(|error| {
                    warn!(target: "frazil::library", "{error}");
                    None
                })?;
                options.counts.count_from_library();
                Some(object)
            }
            ObjectKey::Cache(key) => options.cache.as_ref()?.get(key),
        }
    }

    /// Stores `object` in the cache.
    fn store(&self, object: &[u8], options: &BackendOptions) {
        if let (ObjectKey::Cache(key), Some(cache)) = (self, &options.cache) {
            cache.put(key, object);
        }
    }
}

/// Returns the objects of the kernels that `first_of` names for each key, in order: from the library or the cache, or else compiled from `codes`.
fn objects(
    plan: &Plan,
    codes: &[KernelCode],
    keys: &[ObjectKey],
    first_of: &HashMap<&ObjectKey, usize>,
    options: &BackendOptions,
) -> Result<Vec<Vec<u8>>, CompileError> {
    if first_of.is_empty() {
        return Ok(Vec::new());
    }
    let compiled = AtomicBool::new(false);
    let objects = each_kernel(plan, |(i, _)| {
        let (Some(key), Some(code)) = (keys.get(i), codes.get(i)) else {
            return Ok(None);
        };
        if first_of.get(key) != Some(&i) {
            return Ok(None);
        }
        if let Some(object) = key.find(options) {
            return Ok(Some(object));
        }
        debug!(code = code.identity().text(), "compiling");
        let object = compile_kernel(&key.symbol(), code, options)?;
        compiled.store(true, Ordering::Relaxed);
        options.counts.count_compiled(code);
        key.store(&object, options);
        Ok(Some(object))
    })?;
    if compiled.into_inner() {
        // Constants are packed next.
        release::after_compiling(plan.constants.len() + plan.preparation.bytes + plan.workspace_bytes);
    }
    Ok(objects.into_iter().flatten().collect())
}

/// Compiles `plan` for this process.
///
/// # Errors
/// If a kernel cannot be compiled, the plan contradicts itself, or the system refuses memory or threads.
pub fn compile(plan: &Plan, options: &BackendOptions) -> Result<Executable, CompileError> {
    Ok(package(plan, options)?.load(&options.run_options())?)
}
