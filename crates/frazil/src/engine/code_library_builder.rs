//! Builders of code libraries: the kernels of calls, planned and compiled in advance.

use crate::engine::Engine;
use crate::engine::native::compiler::Compiler;
use crate::engine::native::signature::describe_all;
use crate::engine::options::CompileOptions;
use crate::error::{CallError, Error, Result};
use crate::support::limited::within;
use frazil_codegen::compile::compile_library;
use frazil_limits::Phase;
use frazil_planner::kernel::{CodeIdentity, KernelCode};
use frazil_planner::specialise::specialise_aliasing;
use frazil_planner::target::Target;
use frazil_planner::{LowerOptions, lower};
use frazil_runtime::Value;
use std::collections::BTreeMap;

/// Numbers of threads for which kernels are planned: one, and several. With several threads, kernels are divided into smaller tasks.
const THREADS: [usize; 2] = [1, 8];

/// Collects the kernels of calls, and compiles them to a [`CodeLibrary`](crate::CodeLibrary).
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
    /// The kernel code of each level of processors.
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

    /// Returns the builder with only the levels of processors `levels`, by LLVM's names: `x86-64-v3` (AVX2), `x86-64-v4` (AVX-512).
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

    /// Adds the kernels of `other`, for the levels that this builder has.
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

    /// Adds the kernels of `method` for arguments like `args`, as an engine plans them for shapes that share code, for each processor of the levels. Compiles
    /// nothing and runs nothing. Kernels whose code has no arguments are left out.
    ///
    /// See [`CodeLibraryBuilder`] for an example.
    ///
    /// # Errors
    /// If the arguments do not fit the method, or the method cannot be compiled as a whole.
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
            let specialised = specialise_aliasing(graph, &specs, None, registry)?;
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

    /// Returns the name of each level of processors, as LLVM names it, with the number of its kernels.
    ///
    /// See [`CodeLibraryBuilder`] for an example.
    pub fn counts(&self) -> Vec<(&str, usize)> {
        let levels = self.levels.iter();
        levels.map(|(level, codes)| (level.cpu.as_str(), codes.len())).collect()
    }

    /// Compiles the kernels, in parallel, and returns the bytes of the library for [`CodeLibrary::open`](crate::CodeLibrary::open).
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
