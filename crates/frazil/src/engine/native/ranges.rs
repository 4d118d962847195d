//! Libraries for ranges of sizes.

use crate::engine::native::compiled::{compilable_graph, specialised};
use crate::engine::native::compiler::Compiler;
use crate::engine::native::port_names::name_ports;
use crate::engine::options::{CompileOptions, InputSpec};
use crate::error::{Error, Result};
use crate::model::loaded::Loaded;
use crate::support::backing::Backing;
use crate::support::limited::within;
use frazil_codegen::aot::range::{InputSize, RangePlan, SizeRange};
use frazil_codegen::{BackendOptions, aot};
use frazil_ir::DType;
use frazil_limits::{Limits, Phase};
use frazil_planner::{LowerOptions, PlanSizes, lower};
use std::path::Path;

/// dtype and sizes of an input tensor, some of which callers of the library choose.
///
/// See [`Loaded::plan_ranges`] for an example.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RangedInput {
    /// Element type.
    pub dtype: DType,
    /// The sizes of the dimensions, in elements.
    pub sizes: Vec<InputSize>,
}

/// The kernels of a method for ranges of sizes, ready to be compiled to a library.
///
/// See [`Loaded::plan_ranges`] for an example.
pub struct RangeLibrary {
    plan: RangePlan,
    back_end: BackendOptions,
    /// The files from which constants of the method are read.
    backing: Backing,
    /// Limits on the compilation.
    limits: Limits,
}

impl RangeLibrary {
    /// Returns the number of bytes of workspace that suffices for all sizes.
    ///
    /// See [`Loaded::plan_ranges`] for an example.
    pub fn workspace_bytes(&self) -> usize {
        self.plan.workspace_bytes()
    }

    /// Writes a shared library to `path`, or a static one if its extension is `a`, and its C header to a file beside it.
    ///
    /// See [`Loaded::plan_ranges`] for an example.
    ///
    /// # Errors
    /// If code generation or linking fails, or a file cannot be written; no partial file remains.
    pub fn write(&self, path: &Path) -> Result<()> {
        // Weights are packed before anything is written.
        self.plan.pack();
        self.backing.check()?;
        within(&self.limits, Phase::Compile, || {
            aot::write_range_library(&self.plan, &self.back_end, path)?;
            Ok(())
        })
    }
}

impl Loaded {
    /// Plans the kernels of method `method` for all combinations of the sizes in `ranges`.
    ///
    /// ```
    /// use frazil::{CompileOptions, InputSize, RangedInput, SizeRange, ir::DType};
    ///
    /// # let loaded = frazil::Session::new().script("f.py".as_ref(), "def f(x): return x + 1\n", &[])?;
    /// # let folder = tempfile::tempdir().map_err(|e| frazil::Error::Text(e.to_string()))?;
    /// # let path = folder.path().join("libmodel.so");
    /// let rows = "N".to_owned();
    /// let sizes = vec![InputSize::Named(rows.clone()), InputSize::Fixed(8)];
    /// let input = RangedInput { dtype: DType::Float, sizes };
    /// let range = SizeRange { name: rows, low: 1, high: 4 };
    /// let library = loaded.plan_ranges("f", &[input], &[range], &CompileOptions::default())?;
    /// assert_eq!(library.workspace_bytes(), 0);
    /// library.write(&path)?; // `libmodel.so`
    /// assert!(path.is_file() && path.with_extension("h").is_file());
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Loaded::plan`], for any of the sizes. Also if a name has no range, there are too many combinations, the number of outputs or their dtypes or
    /// ranks depend on the sizes, or `options` have a file of measurements.
    pub fn plan_ranges(
        &self,
        method: &str,
        inputs: &[RangedInput],
        ranges: &[SizeRange],
        options: &CompileOptions,
    ) -> Result<RangeLibrary> {
        let _inside = frazil_rt::gate::enter()?;
        if options.tune.is_some() {
            let message = "kernels of libraries for ranges of sizes cannot be measured";
            return Err(Error::Unsupported(message.to_owned()));
        }
        let graph = compilable_graph(self, method)?;
        let limits = self.session().limits();
        let compiler = Compiler::of(options);
        let lower_options = compiler.lower_options();
        let back_end = compiler.back_end(lower_options.target.clone());
        let sizes: Vec<Vec<InputSize>> = inputs.iter().map(|input| input.sizes.clone()).collect();
        let plan = within(limits, Phase::Compile, || {
            let plan = RangePlan::new(ranges, &sizes, &back_end, |shapes, packed| {
                let specs = inputs.iter().zip(shapes);
                let specs: Vec<InputSpec> = specs.map(|(input, sizes)| InputSpec::new(input.dtype, sizes)).collect();
                let specialised = specialised(self, graph, &specs)?;
                let options = LowerOptions {
                    sizes: PlanSizes::Range,
                    packed: Some(packed.clone()),
                    ..lower_options.clone()
                };
                let mut plan = lower(specialised.graph, &options)?;
                name_ports(&mut plan, graph, &specialised.results);
                Ok(plan)
            });
            Ok::<_, Error>(plan?)
        })?;
        Ok(RangeLibrary {
            plan,
            back_end,
            backing: match self {
                Loaded::Model(model) => model.backing().clone(),
                Loaded::Graphs(_) => Backing::default(),
            },
            limits: *limits,
        })
    }
}
