//! Options of the code generator.

use crate::backend::{LlvmCode, host_target};
use crate::cache::ObjectCache;
use crate::emit::family::Emitters;
use crate::emit::kernels;
use frazil_executor::link::LoadedObjects;
use frazil_executor::{Pools, RunOptions};
use frazil_planner::target::Target;
use std::sync::Arc;

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
    /// The kernel families that can be compiled.
    pub emitters: Arc<Emitters>,
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
            emitters: Arc::new(kernels::all()),
            pools: Pools::default(),
        }
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
