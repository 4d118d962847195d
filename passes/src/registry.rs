//! Passes by name: each has one declaration for pipelines, help texts and documents.
//!
//! A registry may also contain passes with state:
//!
//! ```
//! use frazil_ir::Graph;
//! use frazil_passes::{AnyPass, GraphPass, PassContext, PassError, PassRegistry, TorchScript};
//! use std::sync::{Arc, atomic::{AtomicUsize, Ordering}};
//!
//! /// Counts nodes of one kind.
//! struct Count(String, Arc<AtomicUsize>);
//!
//! impl GraphPass<TorchScript> for Count {
//!     fn run(&self, graph: &mut Graph, _cx: &mut PassContext<'_>) -> Result<(), PassError> {
//!         let nodes = graph.all_nodes();
//!         let found = nodes.iter().filter(|&&node| graph.kind_name(node) == self.0);
//!         self.1.fetch_add(found.count(), Ordering::Relaxed);
//!         Ok(())
//!     }
//! }
//!
//! let count = Arc::new(AtomicUsize::new(0));
//! let (kind, shared) = (String::from("aten::relu"), Arc::clone(&count));
//! let mut passes = PassRegistry::standard();
//! passes.add_closure("count", "Counts nodes.", &[], move |_| AnyPass::graph(Count(kind.clone(), Arc::clone(&shared))));
//! assert!(passes.find("count").is_some());
//! ```

use crate::pass::TorchScript;
pub use frazil_pass_manager::registry::{OptionInfo, OptionKind, OptionValue, PassOptions};

/// The declaration of a pass.
pub type PassInfo = frazil_pass_manager::PassInfo<TorchScript>;
/// A pass of a registry: its declaration, and its constructor.
pub type RegisteredPass = frazil_pass_manager::RegisteredPass<TorchScript>;
/// The passes that pipelines can refer to. An embedder adds its own.
pub type PassRegistry = frazil_pass_manager::PassRegistry<TorchScript>;
