//! The compiler of an engine: options, with caches and threads that its methods share.

use crate::engine::options::CompileOptions;
use crate::error::Error;
use crate::support::limited::unexceeded;
use frazil_codegen::BackendOptions;
use frazil_codegen::backend::LlvmCode;
use frazil_codegen::cache::ObjectCache;
use frazil_executor::{Pools, RunOptions};
use frazil_planner::target::Target;
use frazil_syntax::CacheFolder;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tracing::warn;

/// Options of the compiler, with the cache of kernel objects and the threads that compilations share. Clones share cache and threads.
#[derive(Clone)]
pub(crate) struct Compiler {
    pub(crate) options: CompileOptions,
    objects: Option<ObjectCache>,
    /// Whether plans are made to share code with those for other sizes.
    pub(crate) any_size: bool,
    /// Pools of threads for running compiled methods.
    pools: Pools,
    /// Whether a warning about failed tuning has been emitted.
    is_untuned: Arc<AtomicBool>,
}

impl Compiler {
    /// Returns a compiler that stores object code in the directory of `options`.
    pub(crate) fn of(options: &CompileOptions) -> Compiler {
        Compiler::keeping_in(options.cache(), options.clone())
    }

    /// Returns a compiler that stores object code in `folder`; without a folder, none is stored.
    pub(crate) fn keeping_in(folder: Option<CacheFolder>, options: CompileOptions) -> Compiler {
        Compiler {
            options,
            objects: folder.map(ObjectCache::new),
            any_size: false,
            pools: Pools::default(),
            is_untuned: Arc::default(),
        }
    }

    /// Emits one warning that kernels are not tuned, because failed tuning must not prevent compilation.
    pub(crate) fn warn_untuned(&self, why: &Error) {
        // An exceeded limit or an interruption is not a failure of tuning.
        if unexceeded().is_ok() && !self.is_untuned.swap(true, Ordering::Relaxed) {
            warn!(target: "frazil::tune", "kernels are not tuned: {why}");
        }
    }

    /// Returns the same compiler, with `name` as the prefix of function names.
    pub(crate) fn named(&self, name: &str) -> Compiler {
        let mut named = self.clone();
        name.clone_into(&mut named.options.name);
        named
    }

    /// Returns the same compiler, for plans that share code with those for other sizes.
    pub(crate) fn for_any_size(&self) -> Compiler {
        Compiler {
            any_size: true,
            ..self.clone()
        }
    }

    /// Returns the same compiler with the cache `objects`, unless it already has a cache.
    pub(crate) fn or_sharing(&self, objects: &ObjectCache) -> Compiler {
        let mut sharing = self.clone();
        sharing.objects.get_or_insert_with(|| objects.clone());
        sharing
    }

    /// Returns the options for loading and running code.
    pub(crate) fn run_options(&self) -> RunOptions {
        RunOptions {
            threads: self.options.threads,
            pools: self.pools.clone(),
            linker: Some(LlvmCode::link),
        }
    }

    /// Returns the code generator's options for `target`.
    pub(crate) fn back_end(&self, target: Target) -> BackendOptions {
        BackendOptions {
            threads: self.options.threads,
            cache: self.objects.clone(),
            pools: self.pools.clone(),
            ..BackendOptions::new(target)
        }
    }
}
