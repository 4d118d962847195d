//! The compiler of an engine: options, with caches and threads that its methods share.

use crate::engine::kernel_counts::KernelCounts;
use crate::engine::options::CompileOptions;
use crate::error::{Error, Result};
use crate::support::limited::unexceeded;
use frazil_codegen::backend::LlvmCode;
use frazil_codegen::cache::ObjectCache;
use frazil_codegen::{BackendOptions, CodeCounts, CodeLibrary, TargetKeys, is_compiled};
use frazil_executor::link::LoadedObjects;
use frazil_executor::{LoadedCode, Pools, RunOptions};
use frazil_planner::kernel::KernelCode;
use frazil_planner::packed::{PackedConstants, PackedKey};
use frazil_planner::plan::Buffer;
use frazil_planner::target::Target;
use frazil_planner::tune::Tuning;
use frazil_planner::{LowerOptions, PlanSizes};
use frazil_syntax::CacheFolder;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use tracing::warn;

/// Options of the compiler, with the cache of kernel objects and the threads that compilations share. Clones share cache and threads.
#[derive(Clone)]
pub(crate) struct Compiler {
    pub(crate) options: CompileOptions,
    /// The processor, detected at the first use.
    target: Arc<OnceLock<Target>>,
    objects: Option<ObjectCache>,
    /// Whether plans are made for any size, so that they share code with plans for other sizes.
    any_size: bool,
    /// Whether plans share code and constants with other plans of this process. If so, they cannot be written to files.
    in_process: bool,
    /// Whether plans are refused of which the library lacks a kernel.
    library_only: bool,
    /// The constants that plans share.
    packed: PackedConstants,
    /// The code that plans share.
    loaded: LoadedObjects,
    /// The parts of keys of code that depend on the target.
    keys: TargetKeys,
    /// Counts the kernels of this compiler by the origin of their code.
    counts: CodeCounts,
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
            target: Arc::default(),
            objects: folder.map(ObjectCache::new),
            any_size: false,
            in_process: false,
            library_only: false,
            packed: PackedConstants::default(),
            loaded: LoadedObjects::default(),
            keys: TargetKeys::default(),
            counts: CodeCounts::default(),
            pools: Pools::default(),
            is_untuned: Arc::default(),
        }
    }

    /// Emits a warning that kernels are not tuned, with the reason `why`. Only the first call emits it. Failed tuning does not prevent compilation.
    pub(crate) fn warn_untuned(&self, why: &Error) {
        // An exceeded limit or an interruption is not a failure of tuning.
        if unexceeded().is_ok() && !self.is_untuned.swap(true, Ordering::Relaxed) {
            warn!(target: "frazil::tune", "kernels are not tuned: {why}");
        }
    }

    /// Returns the same compiler, with `name` as the prefix of function names, and with counts of its own, which are a part of these.
    pub(crate) fn named(&self, name: &str) -> Compiler {
        let mut named = self.clone();
        named.counts = self.counts.part();
        name.clone_into(&mut named.options.name);
        named
    }

    /// Returns the same compiler, for plans that share constants and loaded code with the others of this process. They cannot be written to files.
    pub(crate) fn in_process(&self) -> Compiler {
        Compiler {
            in_process: true,
            ..self.clone()
        }
    }

    /// Returns the same compiler, for plans in this process that share code with those for other sizes.
    pub(crate) fn for_any_size(&self) -> Compiler {
        Compiler {
            any_size: true,
            ..self.in_process()
        }
    }

    /// Returns the same compiler, which refuses plans for any size of which the library lacks a kernel: it compiles nothing.
    pub(crate) fn library_only(&self) -> Compiler {
        Compiler {
            library_only: true,
            ..self.for_any_size()
        }
    }

    /// Returns an error if this compiler must not compile, and the library lacks one of `codes`.
    pub(crate) fn check_library(&self, codes: &[KernelCode]) -> Result<()> {
        match self.library_only && self.lacking(codes).next().is_some() {
            true => Err(Error::Unsupported("the code library lacks a kernel".to_owned())),
            false => Ok(()),
        }
    }

    /// Returns those of `codes` that have to be compiled: neither the library nor this process has them.
    pub(crate) fn lacking<'c>(&self, codes: &'c [KernelCode]) -> impl Iterator<Item = &'c KernelCode> {
        let back_end = self.back_end(self.target().clone());
        with_phases(codes).filter(move |code| !is_compiled(code, &back_end))
    }

    /// Returns true for a compiler of plans that share code with those for other sizes.
    pub(crate) fn is_for_any_size(&self) -> bool {
        self.any_size
    }

    /// Stores the constants that a plan has packed, for other plans of this process. `code` is the code of the plan, `places` are the places of these
    /// constants.
    pub(crate) fn keep_packed(&self, places: &[(PackedKey, Buffer)], code: &LoadedCode) {
        let (constants, prepared) = code.constants();
        self.packed.add(places, constants, prepared);
    }

    /// Returns the processor for which code is compiled.
    pub(crate) fn target(&self) -> &Target {
        self.target.get_or_init(|| self.options.target())
    }

    /// Returns the code library if plans may use it. Its code takes sizes as arguments, so only plans for any size may use it.
    pub(crate) fn library(&self) -> Option<&CodeLibrary> {
        let library = self.options.code_library.as_ref().filter(|_| self.any_size);
        library.map(|library| &library.0)
    }

    /// Returns a text with the number of kernels that were compiled, and the number of kernels from the library. Returns `None` for plans that use no library.
    pub(crate) fn origin_of_kernels(&self) -> Option<String> {
        self.library()?;
        let (compiled, from_library) = (self.counts.compiled(), self.counts.from_library());
        Some(format!(
            "{compiled} kernels compiled, {from_library} from the code library"
        ))
    }

    /// Returns the numbers of kernels that this compiler, and those derived from it, have compiled or taken from the library.
    pub(crate) fn kernel_counts(&self) -> KernelCounts {
        KernelCounts {
            compiled: self.counts.compiled(),
            with_constant_sizes: self.counts.with_constant_sizes(),
            from_library: self.counts.from_library(),
        }
    }

    /// Returns the options for lowering, without measurements of kernels.
    pub(crate) fn lower_options(&self) -> LowerOptions {
        let options = &self.options;
        LowerOptions {
            name: c_identifier(&options.name),
            target: self.target().clone(),
            fuse: options.fuse,
            tuning: Tuning::default(),
            families: Vec::new(),
            packed: self.in_process.then(|| self.packed.clone()),
            sizes: match self.any_size {
                true => PlanSizes::Any,
                false => PlanSizes::One,
            },
            threads: options.threads,
        }
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
            loaded: self.in_process.then(|| self.loaded.clone()),
            library: self.library().cloned(),
            keys: self.keys.clone(),
            counts: self.counts.clone(),
            pools: self.pools.clone(),
            ..BackendOptions::new(target)
        }
    }
}

/// Returns those of `codes` that consist of machine code. Runtime calls do not.
pub(crate) fn with_phases(codes: &[KernelCode]) -> impl Iterator<Item = &KernelCode> {
    codes.iter().filter(|code| !code.kernel().phases().is_empty())
}

/// Returns `name` with underscores in place of characters that are not allowed in C identifiers.
fn c_identifier(name: &str) -> String {
    let mut out: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    if out.is_empty() || out.starts_with(|c: char| c.is_ascii_digit()) {
        out.insert(0, '_');
    }
    out
}
