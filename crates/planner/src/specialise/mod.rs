//! Specialisation: a frozen graph with known input shapes becomes a graph of tensor programs.
//!
//! The graph is run once, as the interpreter would run it, except that tensors which depend on the inputs have no elements: numbers, strings, lists and
//! control flow are computed, tensor operators append their entry's program to the [`TensorGraph`]. Mutation is eliminated: a tensor variable is a view of a
//! versioned storage, an in-place operator creates the next version of the storage, and a read uses the current version. Everything that is not supported (a
//! condition on elements, an operator without a program, a write to an input) is collected with its source location, and reported at once.

mod answers;
mod bounds;
mod control;
mod first_iteration;
mod indirect;
mod iteration;
mod joined;
mod loops;
mod number;
mod operators;
mod plans;
mod refusal;
mod results;
mod rolled;
mod row;
mod scalar;
mod segment;
mod start;
mod state;
mod store;
mod volume;
mod widen;

use crate::error::{LowerError, Unsupported};
use frazil_ir::{Graph, Module};
use frazil_runtime::Registry;
use frazil_tensor_ir::graph::TensorGraph;
use state::{Returns, Specialiser};

pub use frazil_runtime::number::NumberKind;
pub use frazil_tensor_ir::spec::{ArgumentSpec, PathStep, ResultSpec};
pub use loops::{Answer, LoopEnd, LoopInput, LoopOutput, RolledLoop, Source};
pub use plans::SharedPlans;
pub use rolled::has_loops;
pub use segment::{Next, Segment, segments};
pub use start::{ObjectSpec, Shared, Start};

/// A graph of tensor programs, and a description of the results of the original graph in terms of its outputs.
#[derive(Debug)]
pub struct Specialised {
    /// The tensor programs.
    pub graph: TensorGraph,
    /// One entry per result of the original graph.
    pub results: Vec<ResultSpec>,
    /// Texts of the warnings that the program emits in each run, in order. Compiled code does not emit them.
    pub warnings: Vec<String>,
}

/// Specialises `graph` for `inputs`, one for each of its inputs except objects (a leading `self`).
///
/// # Errors
/// [`LowerError::Unsupported`] with everything that cannot be compiled; [`LowerError::Raises`] if the program raises an exception for all inputs of these
/// shapes.
pub fn specialise(graph: &Graph, inputs: &[ArgumentSpec], registry: &Registry) -> Result<Specialised, LowerError> {
    specialise_graph(graph, inputs, &Start::default(), registry, Returns::New)
}

/// [`specialise`], of the graph of a method of `module`: it may create objects of the module's classes and call their methods.
///
/// # Errors
/// As [`specialise`].
pub fn specialise_method(
    graph: &Graph,
    inputs: &[ArgumentSpec],
    module: &Module,
    registry: &Registry,
) -> Result<Specialised, LowerError> {
    let start = Start {
        module: Some(module),
        ..Start::default()
    };
    specialise_graph(graph, inputs, &start, registry, Returns::New)
}

/// [`specialise`], for callers that can return inputs and views of inputs. Results that are such in the graph are not copied: [`ResultSpec::Input`],
/// [`ResultSpec::View`]. `shared` contains the plans that it shares with other specialisations, if any.
///
/// # Errors
/// As [`specialise`].
pub fn specialise_aliasing(
    graph: &Graph,
    inputs: &[ArgumentSpec],
    shared: Option<Shared<'_>>,
    registry: &Registry,
) -> Result<Specialised, LowerError> {
    let start = Start {
        module: shared.map(|shared| &**shared.module),
        shared,
        ..Start::default()
    };
    specialise_graph(graph, inputs, &start, registry, Returns::Eager)
}

fn specialise_graph(
    graph: &Graph,
    inputs: &[ArgumentSpec],
    start: &Start<'_>,
    registry: &Registry,
    returns: Returns,
) -> Result<Specialised, LowerError> {
    let ctx = graph.ctx().clone();
    let mut s = Specialiser::new(&ctx, registry, start, None);
    s.returns = returns;
    let arguments = s.arguments(graph, inputs)?;
    let outputs = s.run(graph, arguments)?;
    s.note_shared_memory(outputs.iter().flatten())?;
    let mut results = Vec::new();
    for (index, output) in outputs.into_iter().enumerate() {
        match output {
            Some(value) => results.push(s.result(&value, index)?),
            // The reason is among the unsupported operators.
            None if !s.unsupported.is_empty() => continue,
            None => return Err(LowerError::Result { index }),
        }
    }
    if s.store.wrote_input() {
        s.unsupported.push(Unsupported {
            operator: "the graph".into(),
            reason: "writes to one of its inputs, which the caller would see".into(),
            source: None,
        });
    }
    s.refuse_changed_containers();
    if s.unsupported.is_empty() {
        let outputs = s.tensors.outputs().to_vec();
        for (check, message) in s.checks_for(0, &outputs) {
            s.tensors.add_check(check, message);
        }
        Ok(Specialised {
            graph: s.tensors,
            results,
            warnings: s.warnings,
        })
    } else {
        s.unsupported.dedup();
        Err(LowerError::Unsupported(s.unsupported))
    }
}
