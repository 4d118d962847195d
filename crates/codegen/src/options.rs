//! Options of the code generator.

use crate::backend::{LlvmCode, host_target};
use crate::cache::ObjectCache;
use crate::code_library::CodeLibrary;
use crate::emit::family::Emitters;
use crate::emit::kernels;
use crate::target_keys::{TargetKey, TargetKeys};
use frazil_executor::link::{LibraryKey, LoadedObjects};
use frazil_executor::{Pools, RunOptions};
use frazil_planner::kernel::{CodeIdentity, KernelCode};
use frazil_planner::target::Target;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Options for compiling plans to native code.
#[derive(Clone, Debug)]
pub struct BackendOptions {
    /// The processor; the host's by default.
    pub target: Target,
    /// Threads that a run uses, the caller's included.
    pub threads: usize,
    /// The cache that stores objects of kernels across processes.
    pub cache: Option<ObjectCache>,
    /// The code that the process has loaded before. A package with such code cannot be written to a file.
    pub loaded: Option<LoadedObjects>,
    /// Code that was compiled in advance, which is used in place of compiling it.
    pub library: Option<CodeLibrary>,
    /// Counts the kernels' code by its origin.
    pub counts: CodeCounts,
    /// The kernel families that can be compiled.
    pub emitters: Arc<Emitters>,
    /// The parts of keys of code that depend on the target.
    pub keys: TargetKeys,
    /// The threads' pools, which all code that is compiled with clones of these options shares.
    pub pools: Pools,
}

impl Default for BackendOptions {
    fn default() -> Self {
        BackendOptions::new(host_target())
    }
}

impl BackendOptions {
    /// Returns the default options for `target`.
    pub fn new(target: Target) -> BackendOptions {
        BackendOptions {
            target,
            threads: 1,
            cache: None,
            loaded: None,
            library: None,
            counts: CodeCounts::default(),
            emitters: Arc::new(kernels::all()),
            keys: TargetKeys::default(),
            pools: Pools::default(),
        }
    }

    /// Returns the key of `code` in the library, if the library contains it for a level that includes the target with the key `target`.
    pub(crate) fn library_key(&self, code: &CodeIdentity, target: &TargetKey) -> Option<LibraryKey> {
        self.library.as_ref()?.key(code, target.level.as_ref()?)
    }

    /// Returns the options for loading and running the results of a compilation with these options.
    pub fn run_options(&self) -> RunOptions {
        RunOptions {
            threads: self.threads,
            pools: self.pools.clone(),
            linker: Some(LlvmCode::link),
        }
    }
}

/// Numbers of kernels by the origin of their code. Clones count together. Code that the process has loaded before, and that of caches, is not counted.
#[derive(Clone, Debug, Default)]
pub struct CodeCounts(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    compiled: AtomicUsize,
    with_constant_sizes: AtomicUsize,
    from_library: AtomicUsize,
    /// The counts that include these.
    whole: Option<CodeCounts>,
}

impl CodeCounts {
    /// Returns counts of their own, which these counts include.
    pub fn part(&self) -> CodeCounts {
        CodeCounts(Arc::new(Counts {
            whole: Some(self.clone()),
            ..Counts::default()
        }))
    }

    /// Returns the number of kernels that were compiled.
    pub fn compiled(&self) -> usize {
        self.0.compiled.load(Ordering::Relaxed)
    }

    /// Returns the number of compiled kernels whose sizes are constants of the code, though they could be arguments.
    pub fn with_constant_sizes(&self) -> usize {
        self.0.with_constant_sizes.load(Ordering::Relaxed)
    }

    /// Returns the number of kernels whose code came from the library.
    pub fn from_library(&self) -> usize {
        self.0.from_library.load(Ordering::Relaxed)
    }

    pub(crate) fn count_compiled(&self, code: &KernelCode) {
        self.0.compiled.fetch_add(1, Ordering::Relaxed);
        if code.has_constant_sizes() {
            self.0.with_constant_sizes.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(whole) = &self.0.whole {
            whole.count_compiled(code);
        }
    }

    pub(crate) fn count_from_library(&self) {
        self.0.from_library.fetch_add(1, Ordering::Relaxed);
        if let Some(whole) = &self.0.whole {
            whole.count_from_library();
        }
    }
}
