//! Passes over TorchScript.
//!
//! One file per pass: its module documentation states what is rewritten, under which conditions that is sound, what is deliberately not
//! done, and how PyTorch differs. [`PassRegistry`] contains the passes by name, [`pipeline`] parses textual pipelines, and a
//! [`PassManager`] runs them with verification, printing, timing and statistics. Nothing is global. The manager is that of [`frazil_pass_manager`], with
//! the marker [`TorchScript`] for the IR.
//!
//! ```
//! use frazil_ir::{Builder, Context, Graph, schema::Catalogue, types};
//! use frazil_passes::{PassManager, PassRegistry};
//! use std::sync::Arc;
//!
//! let ctx = Arc::new(Context::new());
//! let mut catalogue = Catalogue::new(ctx.clone());
//! catalogue.add_lines("aten::mul.Tensor(Tensor self, Tensor other) -> Tensor");
//! let mut graph = Graph::new(ctx.clone());
//! let x = graph.add_input(types::TENSOR);
//! let root = graph.root();
//! let mut b = Builder::at_end(&mut graph, root);
//! b.op(ctx.symbol("aten::mul"), &[x, x], types::TENSOR);
//!
//! let passes = PassRegistry::standard();
//! let manager = PassManager::from_pipeline(&passes, "cse,dce")?;
//! manager.run_on_graph(&mut graph, &catalogue)?;
//! assert!(graph.all_nodes().is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Passes access operators only through [`Operators`]: schemas, and a way to evaluate a node on constants.
#![forbid(unsafe_code)]

pub mod alias_db;
pub mod batch_mm;
pub mod canonicalize;
pub mod clear_profiling_information;
pub mod clear_undefinedness;
pub mod combine_concats;
pub mod concat_frozen_linear;
pub mod constant_loop_unrolling;
pub mod constant_pooling;
pub mod constant_propagation;
pub mod create_functional_graphs;
pub mod cse;
pub mod dce;
pub mod decompose_ops;
pub mod eliminate_concat_common_inputs;
pub mod eliminate_no_ops;
pub mod erase_shape_information;
pub mod fold_frozen_conv_add_or_sub;
pub mod fold_frozen_conv_bn;
pub mod fold_frozen_conv_mul_or_div;
pub mod fold_frozen_linear_bn;
pub mod freeze;
pub mod functional_to_inplace_activation;
pub mod fuse_add_relu;
pub mod fuse_addmm;
pub mod fuse_frozen_conv_add_relu;
pub mod fuse_linear;
pub mod hoist_loop_invariants;
pub mod inline;
pub mod inline_fork_wait;
pub mod inline_functional_graphs;
pub mod inplace_to_functional_activation;
pub mod loop_unrolling;
pub mod lower_all_tuples;
pub mod lower_simple_tuples;
pub mod manager;
pub mod normalize_ops;
pub mod optimize_for_inference;
pub mod optimize_frozen_graph;
pub mod pass;
pub mod peel_loops;
pub mod peephole;
pub mod peephole_alias_sensitive;
pub mod peephole_dict_idioms;
pub mod peephole_list_idioms;
pub mod peephole_non_tensor;
pub mod pipeline;
pub mod propagate_shapes;
pub mod refine_integer_values;
pub mod refine_tuple_types;
pub mod registry;
pub mod remove_dropout;
pub mod remove_exceptions;
pub mod remove_expands;
pub mod remove_inplace_ops;
pub mod remove_list_mutation;
pub mod remove_mutation;
pub mod remove_tensor_mutation;
pub mod rewrite_patterns;
mod standard;
pub mod support;
pub mod transpose_frozen_linear;
pub mod use_variadic_op;

pub use alias_db::AliasDb;
pub use freeze::{FreezeError, FreezeOptions, freeze_module, freeze_with, is_training};
pub use manager::PassManager;
pub use optimize_for_inference::{optimize_for_inference_with, optimize_module_for_inference};
pub use pass::{AnyPass, GraphPass, ModulePass, PassContext, PassContextExt, PassError, TorchScript, TorchScriptError};
pub use pipeline::PipelineError;
pub use registry::{OptionInfo, OptionKind, PassInfo, PassOptions, PassRegistry, RegisteredPass};
pub use support::operators::Operators;
