//! Optimisations of a frozen graph for inference: `optimize-for-inference`.
//!
//! In PyTorch's order: relus after convolutions are fused; then the weights of linears are transposed. Each is a pass of its own with its own
//! conditions.
//!
//! PyTorch also converts to MKLDNN, and its result cannot be loaded after saving. Nothing here makes an operator or a constant that an archive cannot
//! contain; native code chooses layouts.

use crate::dce::DeadCodeElimination;
use crate::freeze::{FreezeOptions, freeze_with, methods_of};
use crate::fuse_frozen_conv_add_relu::FuseFrozenConvAddRelu;
use crate::manager::{PassManager, Report};
use crate::pass::{AnyPass, GraphPass, ModulePass, PassContext, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::support::operators::Operators;
use crate::transpose_frozen_linear::TransposeFrozenLinear;
use frazil_ir::{Constant, Graph, Module, symbols};

/// Declaration of the pass `optimize-for-inference` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "optimize-for-inference",
    summary: "Fuses relus into convolutions and transposes the weights of linears, in a frozen graph.",
    before: "%y = aten::linear(%x, %w, %b)",
    after: "%p = aten::matmul(%x, %w_transposed)\n%y = aten::add(%p, %b, %one)",
    options: &[],
    build: |_| AnyPass::graph(OptimizeForInference),
};

/// The pass `optimize-for-inference`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct OptimizeForInference;

impl GraphPass<TorchScript> for OptimizeForInference {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        cx.run_part(&FuseFrozenConvAddRelu, graph)?;
        cx.run_part(&TransposeFrozenLinear, graph)?;
        cx.run_part(&DeadCodeElimination::default(), graph)
    }
}

/// Returns the module in evaluation mode, including all submodules.
fn evaluating(module: &Module) -> Module {
    let mut module = module.clone();
    let objects: Vec<_> = module.objects().map(|(id, _)| id).collect();
    for object in objects {
        if module.attribute(object, symbols::TRAINING).is_some() {
            module.set_attribute(object, symbols::TRAINING, Constant::Bool(false));
        }
    }
    module
}

/// Optimises as `torch.jit.optimize_for_inference` does: freezes the module in any mode, unless it is already frozen, and optimises the remaining methods.
///
/// # Errors
/// The errors of freezing, except for training mode.
pub fn optimize_module_for_inference(
    module: &Module,
    options: &FreezeOptions,
    operators: &dyn Operators,
) -> Result<Module, PassError> {
    let mut optimized = module.clone();
    optimize_for_inference_with(&mut optimized, options, &mut PassManager::new(), operators)?;
    Ok(optimized)
}

/// Optimises in place as [`optimize_module_for_inference`] does, with the first passes of `manager`; see [`freeze_with`].
///
/// # Errors
/// The errors of [`optimize_module_for_inference`], and those of the manager's further passes; the module may then be partially
/// rewritten.
pub fn optimize_for_inference_with(
    module: &mut Module,
    options: &FreezeOptions,
    manager: &mut PassManager,
    operators: &dyn Operators,
) -> Result<Report, PassError> {
    let _span = tracing::info_span!("optimize_module_for_inference").entered();
    manager.prepend(vec![(
        INFO.name.to_owned(),
        AnyPass::module(OptimizeMethodsForInference),
    )]);
    let is_frozen = module.attribute(module.root, symbols::TRAINING).is_none();
    if is_frozen {
        return manager.run(module, operators);
    }
    *module = evaluating(module);
    freeze_with(module, options, manager, operators)
}

/// The module pass that runs [`OptimizeForInference`] on the methods of the root.
struct OptimizeMethodsForInference;

impl ModulePass<TorchScript> for OptimizeMethodsForInference {
    fn run(&self, module: &mut Module, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        for name in methods_of(module) {
            if let Some(id) = module.method(name) {
                cx.run(&OptimizeForInference, &mut module.unit.function_mut(id).graph)?;
            }
        }
        Ok(())
    }
}
