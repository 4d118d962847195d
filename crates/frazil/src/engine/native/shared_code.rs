//! Code that a method shares among the shapes of its arguments.
//!
//! The first shapes of a method get code of their own, with all sizes as constants. For further shapes, the sizes that differ between shapes are arguments of
//! the code. Once such code exists, a new shape is only planned, and nothing is compiled. If no shape gets code of its own, all sizes are arguments. Code of a
//! [library](crate::CodeLibrary) is preferred. Results are bit-equal in all cases.

use super::compiled::NativePlan;
use super::compiler::Compiler;
use crate::engine::options::FusionStrategy;
use crate::error::Result;
use crate::model::Model;
use crate::support::lock::lock;
use frazil_codegen::is_compiled;
use frazil_executor::Package;
use frazil_planner::LowerError;
use frazil_planner::codes::Codes;
use frazil_planner::kernel::KernelCode;
use frazil_planner::specialise::{ArgumentSpec, Shared, SharedPlans};
use std::collections::HashMap;
use std::sync::Mutex;

/// The code that the methods of an engine share among shapes.
#[derive(Default)]
pub(crate) struct SharedCode {
    methods: Mutex<HashMap<String, Shapes>>,
    /// Plans of graphs, which the specialisations for all shapes share.
    plans: SharedPlans,
}

/// The shapes of one method.
#[derive(Default)]
struct Shapes {
    /// Number of shapes with code of their own.
    own: usize,
    /// The arguments of the first shape, until the code of its kernels has been added to `codes`.
    first: Option<Vec<ArgumentSpec>>,
    codes: Codes,
}

impl SharedCode {
    /// Returns the plans that the specialisations of the model's methods share.
    pub(crate) fn plans<'a>(&'a self, model: &'a Model) -> Shared<'a> {
        Shared {
            plans: &self.plans,
            module: model.module(),
        }
    }

    /// Returns true if one more shape of a method can get code of its own.
    pub(crate) fn has_room(&self, method: &str, strategy: FusionStrategy) -> bool {
        let own = lock(&self.methods).get(method).map_or(0, |shapes| shapes.own);
        own < strategy.static_shapes
    }

    /// Returns true if a method's next shape, with the arguments `specs`, gets code of its own. If so, counts the shape.
    pub(crate) fn is_own(&self, method: &str, specs: &[ArgumentSpec], strategy: FusionStrategy) -> bool {
        let mut methods = lock(&self.methods);
        let shapes = methods.entry(method.to_owned()).or_default();
        if shapes.own >= strategy.static_shapes {
            return false;
        }
        shapes.own += 1;
        if shapes.own == 1 {
            shapes.first = Some(specs.to_vec());
        }
        true
    }

    /// Compiles `plan`, a plan for any size, to code that the method's shapes share. `plan_of` returns the plan for other arguments.
    ///
    /// # Errors
    /// If a kernel cannot be compiled.
    pub(crate) fn package(
        &self,
        method: &str,
        plan: &NativePlan,
        compiler: &Compiler,
        strategy: FusionStrategy,
        plan_of: impl FnOnce(&[ArgumentSpec]) -> Result<NativePlan, LowerError>,
    ) -> Result<Package> {
        let codes = match strategy.static_shapes {
            // No shape has been planned with constant sizes, so all sizes are arguments.
            0 => plan.codes_for_any_size(),
            _ => self.codes(method, plan, compiler, plan_of),
        };
        plan.package_with(compiler, &codes)
    }

    /// Returns the code of each kernel of `plan`. Sizes that differ between the method's shapes are arguments of the code.
    fn codes(
        &self,
        method: &str,
        plan: &NativePlan,
        compiler: &Compiler,
        plan_of: impl FnOnce(&[ArgumentSpec]) -> Result<NativePlan, LowerError>,
    ) -> Vec<KernelCode> {
        let first = lock(&self.methods)
            .get_mut(method)
            .and_then(|shapes| shapes.first.take());
        // The first shape shows which sizes change. It has code of its own; here it is only planned.
        let first = first.and_then(|specs| plan_of(&specs).ok());
        let mut methods = lock(&self.methods);
        let codes = &mut methods.entry(method.to_owned()).or_default().codes;
        if let Some(first) = &first {
            codes.for_plan(first.kernels());
        }
        let back_end = compiler.back_end(compiler.target().clone());
        let has_library = compiler.library().is_some();
        codes.for_plan_with(plan.kernels(), &|code| has_library && is_compiled(code, &back_end))
    }
}
