//! Freezing: `freeze` (the bare pass) and [`freeze_module`] (all that `torch.jit.freeze` does).
//!
//! The methods that are kept are inlined. Every attribute that none of them can change becomes a constant in them, sharing its storage with the
//! attribute; then dead code, attributes, submodules and methods that nobody needs any more are dropped. In rounds: folding `training`
//! removes the branches that update statistics, after which those never change either.
//!
//! **An attribute is folded when** no kept method assigns it; none writes to it, to anything that may share its storage, or to anything in it or
//! that holds it; it cannot become known to code outside of these methods (through an operator that nobody knows, or an object that is kept whole);
//! and it is not preserved. These are questions to the alias analysis over the module's own objects: two attributes with one storage are one
//! place, two instances of one class are two.
//!
//! **Kept whole**, with all attributes and methods: submodules that are preserved, returned, or used as values other than to read their attributes,
//! and objects that are yet to restore themselves from a state, with everything that they reach. Of a preserved method of a submodule only what it needs.
//!
//! **Sparse tensors**, and what holds them, stay attributes: graphs cannot hold them as constants.
//!
//! **Objects of plain classes** that are used as values and never change are constants themselves; so they stay outside of the attributes.
//!
//! **A module in training mode** keeps its parameters, its buffers, and `training` where it is read; the rest is folded. ([`freeze_module`] refuses it.)
//!
//! An element of a list, tuple or dictionary that is written through the container, and is shared with another attribute that is read, is an error as in
//! PyTorch.
//!
//! PyTorch differs: it does not see writes to elements of lists and tuples, and folds what is then written; it refuses containers that overlap with other
//! attributes even if nobody writes; it looks for overlaps by type, and so keeps more; it forgets the module's own hooks.

mod attributes;
mod explain;
mod overlaps;
mod preserve;
mod prune;
mod reclass;
mod types;
mod values;

use crate::constant_pooling::ConstantPooling;
use crate::constant_propagation::ConstantPropagation;
use crate::cse::CommonSubexpressionElimination;
use crate::dce::DeadCodeElimination;
use crate::eliminate_no_ops::EliminateNoOps;
use crate::erase_shape_information::erase_shapes_of_variables;
use crate::inline::inline_functions;
use crate::loop_unrolling;
use crate::manager::{PassManager, Report};
use crate::optimize_frozen_graph::OptimizeFrozenGraph;
use crate::pass::{AnyPass, ModulePass, PassContext, PassError};
use crate::peephole::Peephole;
use crate::registry::{OptionInfo, OptionKind, PassInfo};
use crate::remove_list_mutation::RemoveListMutation;
use crate::support;
use crate::support::operators::Operators;
use attributes::Attributes;
use frazil_ir::{Constant, FunctionId, Graph, Module, ObjectId, SymbolId, symbols};
use frazil_limits::Phase;
use preserve::Preserved;

pub use explain::{Keeper, Kept, kept_attributes};

/// How the pass is named.
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

/// Why a module cannot be frozen. Where PyTorch has words for it, these are they.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FreezeError {
    /// The module is in training mode.
    #[error(
        "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module before freezing."
    )]
    Training,
    /// A preserved name is neither attribute nor method.
    #[error("Unknown name: {name}{}", listed(known))]
    UnknownName {
        /// As it was given.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// An element of one attribute is written that is, or is in, another attribute that is read.
    #[error(
        "module contains attributes values that overlaps: an element of {container} is written, and shared with {other}"
    )]
    Overlap {
        /// Path of the attribute whose element is written.
        container: String,
        /// Path of the other one.
        other: String,
    },
    /// A kept method returns the module that it belongs to.
    #[error("attempted to freeze a module that return itself")]
    ReturnsItself,
    /// A submodule is selected at run time.
    #[error("Freezing modules containing prim::ModuleContainerIndex is not supported")]
    ContainerIndex,
    /// An attribute of an object that is known by an interface only is assigned.
    #[error("Freezing does not support SetAttr on an interface type. SetAttr is attempted on '{0}'")]
    SetAttrOnInterface(String),
}

fn listed(known: &[String]) -> String {
    if known.is_empty() {
        String::new()
    } else {
        format!(" (there are: {})", known.join(", "))
    }
}

/// The bare pass. See the [module documentation](self).
#[derive(Clone, Debug)]
pub struct Freeze {
    /// Attributes and methods to keep, with dots for those of submodules.
    pub preserve: Vec<String>,
    /// Replace interface types by the classes that the module has.
    pub freeze_interfaces: bool,
    /// Fold plain attributes only.
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

/// What [`freeze_module`] is to do.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FreezeOptions {
    /// The bare pass's options.
    pub freeze: Freeze,
    /// Run the foldings that change results in their last bits.
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
    /// The options with these of the bare pass.
    #[must_use]
    pub fn freeze(mut self, freeze: Freeze) -> Self {
        self.freeze = freeze;
        self
    }

    /// The options with or without the foldings that change results in their last bits.
    #[must_use]
    pub fn optimize_numerics(mut self, optimize_numerics: bool) -> Self {
        self.optimize_numerics = optimize_numerics;
        self
    }
}

/// What `torch.jit.freeze` does: checks that the module is in evaluation mode, freezes a clone, and runs the frozen-graph optimisations. A module
/// that is frozen already comes back as it is.
///
/// # Errors
/// A module in training mode, names that do not exist, and what the passes refuse.
pub fn freeze_module(module: &Module, options: &FreezeOptions, operators: &dyn Operators) -> Result<Module, PassError> {
    let mut frozen = module.clone();
    freeze_with(&mut frozen, options, &mut PassManager::new(), operators)?;
    Ok(frozen)
}

/// [`freeze_module`] in place, as the first passes of `manager`, which prints, verifies, measures and limits them as it does others; see
/// [`PassManager`].
///
/// # Errors
/// As [`freeze_module`], and those of the manager's further passes; the module may then be half rewritten.
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
    // What freezing itself refuses is no failure of a pass.
    manager.run(module, operators).map_err(|error| match error.root() {
        PassError::Freeze(_) => error.into_root(),
        _ => error,
    })
}

/// The frozen-graph optimisations on the methods that freezing keeps, and what freezing again would tidy up after them.
struct OptimizeFrozenMethods {
    preserve: Vec<String>,
    optimize: OptimizeFrozenGraph,
}

impl ModulePass for OptimizeFrozenMethods {
    fn run(&self, module: &mut Module, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        for id in preserve::frozen_methods(module, &self.preserve) {
            let graph = &mut module.unit.function_mut(id).graph;
            // The foldings leave constants where they made them.
            for _ in 0..MAX_TURNS {
                let revision = graph.revision();
                cx.run(&self.optimize, graph)?;
                if graph.revision() == revision {
                    break;
                }
                clean_up(graph, cx)?;
            }
        }
        Ok(())
    }
}

/// Returns true if the module is in training mode, which freezing refuses.
pub fn is_training(module: &Module) -> bool {
    let training = module.attribute(module.root, symbols::TRAINING);
    training.and_then(Constant::as_bool) == Some(true)
}

/// Methods of the root.
pub(crate) fn methods_of(module: &Module) -> Vec<SymbolId> {
    module
        .class_of(module.root)
        .map_or(Vec::new(), |c| c.methods.keys().copied().collect())
}

/// A method that is kept, with the body that it gets.
struct Method {
    function: FunctionId,
    /// The object that it is called on.
    receiver: ObjectId,
    graph: Graph,
}

impl ModulePass for Freeze {
    fn run(&self, module: &mut Module, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        let kept = Preserved::find(module, &self.preserve)?;
        // Kept methods may call one another, and objects that are kept whole need their methods as they are: work on copies.
        let mut methods: Vec<Method> = {
            let mut work = module.clone();
            let functions: Vec<FunctionId> = kept.methods.iter().map(|(_, function)| *function).collect();
            // Freezing needs to see all of them: no fuel is asked for.
            inline_functions(&mut work, &functions, &mut PassContext::new(cx.operators))?;
            let copy = |&(receiver, function): &(ObjectId, FunctionId)| Method {
                function,
                receiver,
                graph: work.unit.function(function).graph.clone(),
            };
            kept.methods.iter().map(copy).collect()
        };
        for Method { graph, .. } in &mut methods {
            erase_shapes_of_variables(graph)?;
        }
        for Method { graph, .. } in &methods {
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

/// How often the passes of [`clean_up`] are tried again for what the others made possible. PyTorch's pipeline does it twice.
const MAX_TURNS: usize = 4;

/// What makes branches on folded attributes go, and with them writes that never happen.
fn clean_up(graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
    for _ in 0..MAX_TURNS {
        let revision = graph.revision();
        types::settle(graph);
        cx.run(&Peephole::default(), graph)?;
        cx.run(&ConstantPropagation::default(), graph)?;
        cx.run(&EliminateNoOps, graph)?;
        cx.run(&DeadCodeElimination::default(), graph)?;
        cx.run(&CommonSubexpressionElimination, graph)?;
        cx.run(&ConstantPooling, graph)?;
        if unroll_short_loops(graph, cx)? {
            cx.run(&RemoveListMutation, graph)?;
        }
        if graph.revision() == revision {
            break;
        }
    }
    cx.run(&DeadCodeElimination::default(), graph)
}

/// Loops of constant length are unrolled where that makes no more nodes than this of one. (PyTorch has no such limit.)
const MAX_UNROLLED_NODES: i64 = 4096;

/// Unrolls loops of constant length that go away by it; so there is nothing left to unroll for the next freezing. True when there were any.
fn unroll_short_loops(graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<bool, PassError> {
    let revision = graph.revision();
    support::for_each_subgraph(graph, |inner| unroll_short_loops(inner, cx).map(drop))?;
    loop_unrolling::unroll_all(graph, cx, |graph, body, length| {
        let size = graph.nodes_recursive(body).len() as i64;
        length.is_some_and(|n| n < loop_unrolling::MAX_REPEATS && n.saturating_mul(size) <= MAX_UNROLLED_NODES)
    })?;
    Ok(graph.revision() != revision)
}
