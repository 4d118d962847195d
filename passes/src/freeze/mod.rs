//! Freezing: `freeze` (the bare pass) and [`freeze_module`] (the whole of `torch.jit.freeze`).
//!
//! The preserved methods are inlined. Every attribute that none of them can change becomes a constant, which shares its storage with the attribute. Then dead
//! code and unused attributes, submodules and methods are dropped. This is repeated: folding `training` removes the branches that update statistics, so that
//! these never change either.
//!
//! **An attribute is folded when**
//! - no preserved method assigns it;
//! - no preserved method writes to it, to anything that may share its storage, to its contents or to its containers;
//! - it cannot become known to code outside of these methods (through an unknown operator, or an object that is kept whole);
//! - it is not preserved.
//!
//! The alias analysis over the module's own objects decides this: two attributes with one storage are one location, two instances of one class are two.
//!
//! **Kept whole**, with all attributes and methods, are submodules that are preserved, returned, or used as values other than for reading their attributes. The
//! same holds for objects with a pending state, and for everything reachable from these. For a preserved method of a submodule, only the members that it uses
//! are kept.
//!
//! **Sparse tensors**, and their containers, stay attributes: graphs cannot contain them as constants.
//!
//! **Objects of plain classes** that are used as values and never change become constants themselves.
//!
//! **A module in training mode** keeps its parameters, its buffers, and `training` if it is read; the rest is folded. ([`freeze_module`] refuses it.)
//!
//! It is an error, as in PyTorch, if an element of a list, tuple or dictionary is written through the container, and shared with another attribute that is
//! read.
//!
//! PyTorch differs. It ignores writes to elements of lists and tuples, and folds the written values. It refuses containers that overlap with other attributes
//! even without writes. It detects overlaps by type, and so keeps more. It drops the module's own hooks.

mod attributes;
pub(crate) mod error;
mod explain;
mod overlaps;
mod preserve;
mod prune;
mod reclass;
mod types;
mod values;

use crate::constant_pooling::{ConstantPooling, MERGED};
use crate::constant_propagation::ConstantPropagation;
use crate::cse::CommonSubexpressionElimination;
use crate::dce::DeadCodeElimination;
use crate::eliminate_no_ops::EliminateNoOps;
use crate::erase_shape_information::erase_shapes_of_variables;
use crate::inline::inline_functions;
use crate::loop_unrolling;
use crate::manager::{PassManager, Report};
use crate::optimize_frozen_graph::OptimizeFrozenGraph;
use crate::pass::{AnyPass, ModulePass, PassContext, PassContextExt, PassError, TorchScript, TorchScriptError};
use crate::peephole::Peephole;
use crate::registry::{OptionInfo, OptionKind, PassInfo};
use crate::remove_list_mutation::RemoveListMutation;
use crate::support;
use crate::support::operators::Operators;
use attributes::Attributes;
use frazil_ir::{Constant, FunctionId, Graph, Module, ObjectId, SymbolId, symbols};
use frazil_limits::Phase;
use preserve::Preserved;

pub use error::FreezeError;
pub use explain::{Keeper, Kept, kept_attributes};

/// Declaration of the pass `freeze` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "freeze",
    summary: "Turns attributes that no method changes into constants, and removes unused members.",
    before: "%fc = prim::GetAttr[name=\"fc\"](%self)\n%w : Tensor = prim::GetAttr[name=\"weight\"](%fc)\n%y = aten::linear(%x, %w, %none)",
    after: "%self.fc.weight : Float(8, 4) = prim::Constant[value=<Tensor>]()\n%y = aten::linear(%x, %self.fc.weight, %none)",
    options: &[
        OptionInfo {
            name: "preserve",
            kind: OptionKind::List,
            default: "",
            doc: "Attributes and methods to keep, also of submodules: `version,encode,head.bias`.",
        },
        OptionInfo {
            name: "freeze-interfaces",
            kind: OptionKind::Bool,
            default: "true",
            doc: "Replace interface types by the classes that the module has, and inline their methods.",
        },
        OptionInfo {
            name: "preserve-parameters",
            kind: OptionKind::Bool,
            default: "false",
            doc: "Fold only attributes that are not tensors.",
        },
    ],
    build: |options| {
        AnyPass::module(Freeze {
            preserve: options.list("preserve").to_vec(),
            freeze_interfaces: options.bool("freeze-interfaces"),
            preserve_parameters: options.bool("preserve-parameters"),
        })
    },
};

/// The pass `freeze` by itself, without the optimisations of [`freeze_module`]. See the [module documentation](self).
#[derive(Clone, Debug)]
pub struct Freeze {
    /// Attributes and methods to be preserved, with dotted paths for members of submodules.
    pub preserve: Vec<String>,
    /// Replaces interface types of attributes by the classes of the objects.
    pub freeze_interfaces: bool,
    /// Folds plain attributes only, and preserves parameters and buffers.
    pub preserve_parameters: bool,
}

impl Default for Freeze {
    fn default() -> Self {
        Freeze {
            preserve: Vec::new(),
            freeze_interfaces: true,
            preserve_parameters: false,
        }
    }
}

/// Options of [`freeze_module`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FreezeOptions {
    /// Options of the pass `freeze`.
    pub freeze: Freeze,
    /// Runs the foldings of batch norms and arithmetic into weights, which change the rounding of results.
    pub optimize_numerics: bool,
}

impl Default for FreezeOptions {
    fn default() -> Self {
        FreezeOptions {
            freeze: Freeze::default(),
            optimize_numerics: true,
        }
    }
}

impl FreezeOptions {
    /// Sets the options of the pass `freeze`.
    #[must_use]
    pub fn freeze(mut self, freeze: Freeze) -> Self {
        self.freeze = freeze;
        self
    }

    /// Sets whether to run the foldings of batch norms and arithmetic into weights, which change the rounding of results.
    #[must_use]
    pub fn optimize_numerics(mut self, optimize_numerics: bool) -> Self {
        self.optimize_numerics = optimize_numerics;
        self
    }
}

/// Freezes like `torch.jit.freeze`: checks that the module is in evaluation mode, freezes a clone, and runs the frozen-graph optimisations. A
/// frozen module is returned unchanged.
///
/// # Errors
/// A module in training mode, names that do not exist, and errors of the passes.
pub fn freeze_module(module: &Module, options: &FreezeOptions, operators: &dyn Operators) -> Result<Module, PassError> {
    let mut frozen = module.clone();
    freeze_with(&mut frozen, options, &mut PassManager::new(), operators)?;
    Ok(frozen)
}

/// Freezes in place as [`freeze_module`] does. Freezing consists of the first passes of `manager`, which are printed, verified, measured and limited like
/// others; see [`PassManager`].
///
/// # Errors
/// The errors of [`freeze_module`], and those of the manager's further passes; the module may then be partially rewritten.
pub fn freeze_with(
    module: &mut Module,
    options: &FreezeOptions,
    manager: &mut PassManager,
    operators: &dyn Operators,
) -> Result<Report, PassError> {
    let _span = tracing::info_span!("freeze_module").entered();
    if is_training(module) {
        return Err(FreezeError::Training.into());
    }
    let freeze = &options.freeze;
    let name = match freeze.preserve.as_slice() {
        [] => "freeze".to_owned(),
        names => format!("freeze{{preserve={}}}", names.join(",")),
    };
    let optimize = OptimizeFrozenMethods {
        preserve: freeze.preserve.clone(),
        optimize: OptimizeFrozenGraph {
            optimize_numerics: options.optimize_numerics,
        },
    };
    manager.prepend(vec![
        (name, AnyPass::module(freeze.clone())),
        (
            format!(
                "optimize-frozen-graph{{optimize-numerics={}}}",
                options.optimize_numerics
            ),
            AnyPass::module(optimize),
        ),
    ]);
    // An error of freezing itself is not a failure of a pass.
    manager.run(module, operators).map_err(|error| match error.root() {
        PassError::Ir(TorchScriptError::Freeze(_)) => error.into_root(),
        _ => error,
    })
}

/// The pass that optimises the frozen graphs of the methods that freezing keeps, and cleans up as a second freezing would.
struct OptimizeFrozenMethods {
    preserve: Vec<String>,
    optimize: OptimizeFrozenGraph,
}

impl ModulePass<TorchScript> for OptimizeFrozenMethods {
    fn run(&self, module: &mut Module, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        for id in preserve::frozen_methods(module, &self.preserve) {
            let graph = &mut module.unit.function_mut(id).graph;
            // The foldings insert constants next to their uses.
            for _ in 0..MAX_TURNS {
                let revision = graph.revision();
                cx.on_one_graph(|cx| cx.run_part(&self.optimize, graph))?;
                if graph.revision() == revision {
                    break;
                }
                clean_up(graph, cx)?;
            }
        }
        Ok(())
    }
}

/// Returns true if the module is in training mode, in which it cannot be frozen.
pub fn is_training(module: &Module) -> bool {
    let training = module.attribute(module.root, symbols::TRAINING);
    training.and_then(Constant::as_bool) == Some(true)
}

/// Returns the names of the methods of the root.
pub(crate) fn methods_of(module: &Module) -> Vec<SymbolId> {
    module
        .class_of(module.root)
        .map_or(Vec::new(), |c| c.methods.keys().copied().collect())
}

/// A preserved method, with its frozen body.
struct PreservedMethod {
    function: FunctionId,
    /// The object on which the method is called.
    receiver: ObjectId,
    graph: Graph,
}

impl ModulePass<TorchScript> for Freeze {
    fn run(&self, module: &mut Module, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        let kept = Preserved::find(module, &self.preserve)?;
        // Preserved methods may call each other, and objects that are kept whole need their original methods, so the
        // bodies are copies.
        let mut methods: Vec<PreservedMethod> = {
            let mut work = module.clone();
            let functions: Vec<FunctionId> = kept.methods.iter().map(|(_, function)| *function).collect();
            // Freezing must inline all calls, so this uses no fuel.
            inline_functions(&mut work, &functions, &mut PassContext::new(cx.operators()))?;
            let copy = |&(receiver, function): &(ObjectId, FunctionId)| PreservedMethod {
                function,
                receiver,
                graph: work.unit.function(function).graph.clone(),
            };
            kept.methods.iter().map(copy).collect()
        };
        for PreservedMethod { graph, .. } in &mut methods {
            erase_shapes_of_variables(graph)?;
        }
        for PreservedMethod { graph, .. } in &methods {
            let kinds = graph.all_nodes();
            if kinds
                .into_iter()
                .any(|n| graph.kind(n) == symbols::PRIM_MODULE_CONTAINER_INDEX)
            {
                return Err(FreezeError::ContainerIndex.into());
            }
        }
        while self.freeze_interfaces && attributes::resolve_interfaces(module, &mut methods, cx)? {}
        loop {
            for method in &mut methods {
                clean_up(&mut method.graph, cx)?;
            }
            let before: u64 = methods.iter().map(|m| m.graph.revision()).sum();
            let attributes = Attributes::find(module, &methods, &kept, self, cx)?;
            attributes.fold(module, &mut methods, cx);
            let after: u64 = methods.iter().map(|m| m.graph.revision()).sum();
            if before == after {
                return prune::rebuild(module, methods, &attributes, &kept, self.freeze_interfaces);
            }
        }
    }

    fn reads_attributes(&self) -> bool {
        true
    }

    fn phase(&self) -> Phase {
        Phase::Freeze
    }
}

/// Maximum number of iterations of the passes in [`clean_up`]. Each pass may enable others. PyTorch's pipeline has two iterations.
const MAX_TURNS: usize = 4;

/// Removes branches whose conditions are folded attributes, including writes in branches that never run.
fn clean_up(graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
    cx.on_one_graph(|cx| {
        let mut is_settled = false;
        for _ in 0..MAX_TURNS {
            if !is_settled {
                let before = graph.revision();
                types::settle(graph);
                cx.run_part(&Peephole::default(), graph)?;
                cx.run_part(&ConstantPropagation::default(), graph)?;
                cx.run_part(&EliminateNoOps, graph)?;
                cx.run_part(&DeadCodeElimination::default(), graph)?;
                cx.run_part(&CommonSubexpressionElimination, graph)?;
                is_settled = graph.revision() == before;
            }
            // Each pooling reverses the order of the constants, which no other pass depends on.
            let merged = cx.counted(MERGED);
            cx.run_part(&ConstantPooling, graph)?;
            let is_unrolled = unroll_short_loops(graph, cx)?;
            if is_unrolled {
                cx.run_part(&RemoveListMutation, graph)?;
            }
            is_settled &= cx.counted(MERGED) == merged && !is_unrolled;
        }
        cx.run_part(&DeadCodeElimination::default(), graph)
    })
}

/// Maximum number of nodes after unrolling a loop of constant length. (PyTorch has no such limit.)
const MAX_UNROLLED_NODES: i64 = 4096;

/// Unrolls loops of constant length if all of the loop is unrolled, so that freezing again finds nothing to unroll. Returns true if there were any.
fn unroll_short_loops(graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<bool, PassError> {
    let revision = graph.revision();
    support::for_each_subgraph(graph, |inner| {
        cx.elsewhere(|cx| unroll_short_loops(inner, cx)).map(drop)
    })?;
    loop_unrolling::unroll_all(graph, cx, |graph, body, length| {
        let size = graph.nodes_recursive(body).len() as i64;
        length.is_some_and(|n| n < loop_unrolling::MAX_REPEATS && n.saturating_mul(size) <= MAX_UNROLLED_NODES)
    })?;
    Ok(graph.revision() != revision)
}
