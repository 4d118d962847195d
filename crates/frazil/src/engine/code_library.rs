//! Code libraries: kernels that were compiled in advance, so that first calls compile little or nothing.

use crate::engine::Engine;
use crate::engine::native::compiler::Compiler;
use crate::engine::native::signature::describe_all;
use crate::engine::options::{CompileOptions, EngineOptions};
use crate::error::{CallError, Error, Result};
use crate::support::limited::within;
use frazil_codegen::compile::compile_library;
use frazil_limits::Phase;
use frazil_planner::kernel::{CodeIdentity, KernelCode};
use frazil_planner::specialise::specialise_aliasing;
use frazil_planner::target::Target;
use frazil_planner::{LowerOptions, lower};
use frazil_runtime::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;
use tracing::warn;

/// The library that the feature `precompiled` includes. `make codes` writes it.
#[cfg(feature = "precompiled")]
const EMBEDDED: Option<&[u8]> = Some(include_bytes!(env!("FRAZIL_CODES")));
#[cfg(not(feature = "precompiled"))]
const EMBEDDED: Option<&[u8]> = None;

/// Numbers of threads for which kernels are planned: one, and several, for which kernels are divided into smaller tasks.
const THREADS: [usize; 2] = [1, 8];

/// Kernels that were compiled in advance, for all processors with AVX2 or AVX-512. Clones share them.
///
/// The code of a library has its sizes as arguments. Engines use it for the shapes that share code ([`FusionStrategy`](crate::FusionStrategy)). Results are the same bits as those of
/// code that is compiled for the call. [`CodeLibraryBuilder`] makes a library.
///
/// A library contains machine code, which is trusted as that of the program.
///
/// ```
/// use frazil::{CodeLibrary, CodeLibraryBuilder, EngineOptions, FusionStrategy, Tensor, Value};
///
/// # let model = frazil::Session::new().script("f.py".as_ref(), "def f(x): return (x + 1).relu()\n", &[])?.to_model("f")?;
/// let arguments = |n: usize| -> frazil::Result<[Value; 1]> { Ok([Tensor::from_f32(&vec![1.0; n], &[n as i64])?.into()]) };
/// let mut builder = CodeLibraryBuilder::new();
/// builder.add(&mut model.engine(&EngineOptions::default())?, "forward", &arguments(10)?)?;
/// let library = CodeLibrary::open(builder.compile()?)?;
/// let strategy = FusionStrategy { static_shapes: 0 };
/// let options = EngineOptions::default().fusion_strategy(strategy).code_library(Some(library));
/// let mut engine = model.engine(&options)?;
/// engine.call("forward", &arguments(25)?)?;
/// assert!(engine.notes().iter().any(|note| note == "forward: 0 kernels compiled, 1 from the code library"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct CodeLibrary(pub(crate) frazil_codegen::CodeLibrary);

impl CodeLibrary {
    /// Opens a library in memory.
    ///
    /// See [`CodeLibrary`] for an example.
    ///
    /// # Errors
    /// If another version of this crate made the library, or it is damaged.
    pub fn open(bytes: impl Into<Cow<'static, [u8]>>) -> Result<CodeLibrary> {
        let library = frazil_codegen::CodeLibrary::open(bytes).map_err(frazil_codegen::backend::CompileError::from)?;
        Ok(CodeLibrary(library))
    }

    /// Reads a library from a file.
    ///
    /// ```
    /// assert!(frazil::CodeLibrary::read("nowhere".as_ref()).is_err());
    /// ```
    ///
    /// # Errors
    /// If the file cannot be read, and as [`CodeLibrary::open`].
    pub fn read(path: &Path) -> Result<CodeLibrary> {
        let bytes = std::fs::read(path).map_err(|e| Error::io("read", path, e))?;
        CodeLibrary::open(bytes)
    }

    /// Returns the library that this program contains: with the feature `precompiled`, that of `make codes`.
    ///
    /// ```
    /// assert!(frazil::CodeLibrary::embedded().is_none_or(|library| !library.is_empty()));
    /// ```
    pub fn embedded() -> Option<CodeLibrary> {
        /// The library, which is opened once: its index has a hash.
        static OPENED: OnceLock<Option<CodeLibrary>> = OnceLock::new();
        let open = || match CodeLibrary::open(EMBEDDED?) {
            Ok(library) => Some(library),
            Err(error) => {
                warn!(target: "frazil::library", "kernels are compiled: {error}");
                None
            }
        };
        OPENED.get_or_init(open).clone()
    }

    /// Returns the number of kernels.
    ///
    /// See [`CodeLibraryBuilder`] for an example.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if there are no kernels.
    ///
    /// See [`CodeLibraryBuilder`] for an example.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Collects the kernels of calls, and compiles them to a [`CodeLibrary`].
///
/// ```
/// use frazil::{CodeLibrary, CodeLibraryBuilder, EngineOptions, Tensor};
///
/// # let model = frazil::Session::new().script("f.py".as_ref(), "def f(x): return (x + 1).relu()\n", &[])?.to_model("f")?;
/// let mut builder = CodeLibraryBuilder::new();
/// let mut engine = model.engine(&EngineOptions::default())?;
/// for n in [10_i64, 20] {
///     let x = Tensor::from_f32(&vec![1.0; n as usize], &[n])?;
///     builder.add(&mut engine, "forward", &[x.into()])?;
/// }
/// let counts = builder.counts(); // one code serves both sizes
/// assert!(counts.iter().all(|(_, kernels)| *kernels == 1));
/// assert_eq!(CodeLibrary::open(builder.compile()?)?.len(), counts.len());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct CodeLibraryBuilder {
    /// The codes of each level of processors.
    levels: Vec<(Target, BTreeMap<CodeIdentity, KernelCode>)>,
}

impl CodeLibraryBuilder {
    /// Returns a builder without kernels, for all levels of processors.
    ///
    /// See [`CodeLibraryBuilder`] for an example.
    pub fn new() -> CodeLibraryBuilder {
        CodeLibraryBuilder {
            levels: Target::levels()
                .into_iter()
                .map(|level| (level, BTreeMap::new()))
                .collect(),
        }
    }

    /// Returns the builder with these levels of processors only, by LLVM's names: `x86-64-v3` (AVX2), `x86-64-v4` (AVX-512).
    ///
    /// ```
    /// let builder = frazil::CodeLibraryBuilder::new().levels(&["x86-64-v3"]);
    /// assert!(builder.counts().len() <= 1);
    /// ```
    #[must_use]
    pub fn levels(mut self, levels: &[&str]) -> CodeLibraryBuilder {
        self.levels.retain(|(level, _)| levels.contains(&level.cpu.as_str()));
        self
    }

    /// Adds the kernels of `other`, for the levels of this builder.
    ///
    /// ```
    /// use frazil::CodeLibraryBuilder;
    ///
    /// let mut builder = CodeLibraryBuilder::new();
    /// builder.merge(CodeLibraryBuilder::new());
    /// assert!(builder.counts().iter().all(|(_, kernels)| *kernels == 0));
    /// ```
    pub fn merge(&mut self, other: CodeLibraryBuilder) {
        for (level, codes) in other.levels {
            if let Some((_, own)) = self.levels.iter_mut().find(|(own, _)| *own == level) {
                own.extend(codes);
            }
        }
    }

    /// Adds the kernels that the engine's shared code of `method` consists of for arguments like `args`, on each processor. Nothing is compiled, and nothing runs. Kernels
    /// that have no numbers as arguments are left out.
    ///
    /// See [`CodeLibraryBuilder`] for an example.
    ///
    /// # Errors
    /// If the arguments do not fit, or the method cannot be compiled as one.
    pub fn add(&mut self, engine: &mut Engine, method: &str, args: &[Value]) -> Result<(), CallError> {
        let _inside = frazil_rt::gate::enter().map_err(Error::from)?;
        let args = engine.complete_arguments(method, args)?;
        let limits = engine.limits();
        let model = engine.model()?;
        let (registry, graph) = (model.session().registry(), model.graph(method)?);
        let Some((_, specs, _)) = describe_all(&args) else {
            let why = "an argument is neither a tensor nor a plain value";
            return Err(Error::Unsupported(format!("method `{method}` cannot be compiled: {why}")).into());
        };
        let levels = &mut self.levels;
        Ok(within(&limits, Phase::Compile, || {
            let specialised = specialise_aliasing(graph, &specs, registry)?;
            for (level, codes) in levels {
                for (target, threads) in level.served().into_iter().flat_map(|t| THREADS.map(|n| (t.clone(), n))) {
                    let compiler = Compiler::of(&CompileOptions::default().threads(threads)).for_any_size();
                    let options = LowerOptions {
                        target,
                        ..compiler.lower_options()
                    };
                    let plan = lower(specialised.graph.clone(), &options)?;
                    let kernels = plan.kernels.iter().filter(|kernel| !kernel.phases().is_empty());
                    let any_sizes = kernels.map(|kernel| KernelCode::with_all_arguments(kernel.clone()));
                    codes.extend(
                        any_sizes
                            .filter(|code| code.argument_count() > 0)
                            .map(|code| (code.identity(), code)),
                    );
                }
            }
            Ok::<_, Error>(())
        })?)
    }

    /// Returns LLVM's name of each level of processors, with the number of its kernels.
    ///
    /// See [`CodeLibraryBuilder`] for an example.
    pub fn counts(&self) -> Vec<(&str, usize)> {
        let levels = self.levels.iter();
        levels.map(|(level, codes)| (level.cpu.as_str(), codes.len())).collect()
    }

    /// Compiles the kernels, in parallel, and returns the bytes of the library for [`CodeLibrary::open`].
    ///
    /// See [`CodeLibraryBuilder`] for an example.
    ///
    /// # Errors
    /// If a kernel cannot be compiled, or the library would be too large.
    pub fn compile(&self) -> Result<Vec<u8>> {
        let _inside = frazil_rt::gate::enter()?;
        let codes = self.levels.iter();
        let codes = codes.flat_map(|(level, codes)| codes.values().map(|code| (level.clone(), code.clone())));
        Ok(compile_library(&codes.collect::<Vec<_>>())?)
    }
}

impl CompileOptions {
    /// The options with this code library in place of [`CodeLibrary::embedded`].
    ///
    /// See [`CodeLibrary`] for an example.
    #[must_use]
    pub fn code_library(mut self, code_library: Option<CodeLibrary>) -> Self {
        self.code_library = code_library;
        self
    }
}

impl EngineOptions {
    /// The options with this [`CompileOptions::code_library`].
    ///
    /// See [`CodeLibrary`] for an example.
    #[must_use]
    pub fn code_library(mut self, code_library: Option<CodeLibrary>) -> Self {
        self.compile.code_library = code_library;
        self
    }
}
