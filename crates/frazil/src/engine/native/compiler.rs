//! Options of the compiler, with shared caches and threads.

use crate::engine::options::CompileOptions;
use crate::error::Error;
use crate::support::limited::unexceeded;
use frazil_codegen::Pools;
use frazil_codegen::cache::ObjectCache;
use frazil_codegen::target::Target;
use frazil_syntax::PrivateFolder;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tracing::warn;

/// Options, with the cache of kernel objects and the threads that compilations share. Clones share both.
#[derive(Clone)]
pub(crate) struct Compiler {
    pub(crate) options: CompileOptions,
    objects: Option<ObjectCache>,
    /// Threads for runs.
    pools: Pools,
    /// Whether a warning about failed tuning has been emitted.
    is_untuned: Arc<AtomicBool>,
}

impl Compiler {
    /// Returns a compiler that stores objects in the directory of `options`.
    pub(crate) fn of(options: &CompileOptions) -> Compiler {
        let folder = options.cache_dir.as_ref().map(PrivateFolder::new);
        Compiler::keeping_in(folder, options.clone())
    }

    /// Returns a compiler that stores objects in `folder`, if that is given.
    pub(crate) fn keeping_in(folder: Option<PrivateFolder>, options: CompileOptions) -> Compiler {
        Compiler {
            options,
            objects: folder.map(ObjectCache::new),
            pools: Pools::default(),
            is_untuned: Arc::default(),
        }
    }

    /// Warns once that kernels are not tuned: failed tuning must not prevent compilation.
    pub(crate) fn warn_untuned(&self, why: &Error) {
        // An exceeded limit or an interruption is not a failure of tuning.
        if unexceeded().is_ok() && !self.is_untuned.swap(true, Ordering::Relaxed) {
            warn!(target: "frazil::tune", "kernels are not tuned: {why}");
        }
    }

    /// Returns the same compiler for code with the name `name`.
    pub(crate) fn named(&self, name: &str) -> Compiler {
        let mut named = self.clone();
        name.clone_into(&mut named.options.name);
        named
    }

    /// Returns the same compiler with the cache `objects`, unless it already has one.
    pub(crate) fn or_sharing(&self, objects: &ObjectCache) -> Compiler {
        let mut sharing = self.clone();
        sharing.objects.get_or_insert_with(|| objects.clone());
        sharing
    }

    /// Returns the options of the code generator for `target`.
    pub(crate) fn back_end(&self, target: Target) -> frazil_codegen::CompileOptions {
        frazil_codegen::CompileOptions {
            target,
            threads: self.options.threads,
            cache: self.objects.clone(),
            pools: self.pools.clone(),
        }
    }
}
