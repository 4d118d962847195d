//! From tensor programs to a plan: the stages of the front half in order.

use crate::build_plan;
use crate::error::LowerError;
use crate::fuse::fuse;
use crate::graph::TensorGraph;
use crate::layout;
use crate::memory;
use crate::plan::{Call, Order, Plan, Port, Preparation};

use crate::schedule::Prepare;
use crate::simplify::{materialise_views, simplify};
use crate::slices::slice_chains;
use crate::specialise::{InputSpec, ResultSpec, specialise};
use crate::spread::spread;
use crate::target::Target;
use crate::tune::Tuning;
use frazil_ir::Graph;
use frazil_runtime::Registry;
use tracing::info_span;

/// What a graph is lowered for.
#[derive(Clone, Debug)]
pub struct LowerOptions {
    /// Name of the function; a C identifier.
    pub name: String,
    /// The processor.
    pub target: Target,
    /// Whether loop nests become one where that saves passes over memory. Neighbours over the same elements share a kernel also without it.
    pub fuse: bool,
    /// What was measured to be faster than what the analysis would choose, for [`LowerOptions::threads`] threads.
    pub tuning: Tuning,
    /// Threads that a run will use. Code for another number gives the same results, but divides them less evenly.
    pub threads: usize,
}

/// A plan, and what its outputs mean.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// What to compile.
    pub plan: Plan,
    /// How the plan's outputs make up the results of the graph.
    pub results: Vec<ResultSpec>,
}

/// Lowers a frozen graph for inputs of known shapes. Operators are known by their entries in `registry` only.
///
/// # Errors
/// [`LowerError::Unsupported`] lists everything that cannot be compiled.
pub fn compile_graph(
    graph: &Graph,
    inputs: &[InputSpec],
    registry: &Registry,
    options: &LowerOptions,
) -> Result<Lowered, LowerError> {
    let specialised = info_span!("specialise").in_scope(|| specialise(graph, inputs, registry))?;
    Ok(Lowered {
        plan: lower(specialised.graph, options)?,
        results: specialised.results,
    })
}

/// Lowers a graph of tensor programs to a plan.
///
/// # Errors
/// When the graph cannot be expressed as kernels.
pub fn lower(mut graph: TensorGraph, options: &LowerOptions) -> Result<Plan, LowerError> {
    optimise(&mut graph, options.fuse);
    frazil_limits::check()?;
    let layouts = info_span!("layout").in_scope(|| layout::choose(&graph, options.target.vector().lanes));
    let mut schedule = info_span!("build_plan").in_scope(|| build_plan::schedule(&graph, &layouts, options))?;
    frazil_limits::check()?;
    if options.fuse {
        slice_chains(&mut schedule, options.target.machine);
    }
    spread(&mut schedule, options.threads, options.target.machine);
    let placement = info_span!("memory").in_scope(|| memory::place(&schedule));
    let port = |name: &str, i: usize, id| {
        let shape = graph.shape(id);
        Port {
            name: format!("{name}{i}"),
            dtype: shape.dtype,
            shape: shape.sizes.clone(),
        }
    };
    let ports = |name: &str, ids: &[u32]| ids.iter().enumerate().map(|(i, &id)| port(name, i, id)).collect();
    let mut plan = Plan {
        name: options.name.clone(),
        inputs: ports("input", &graph.inputs),
        outputs: ports("output", &graph.outputs),
        workspace_bytes: placement.workspace_bytes,
        constants: schedule.constants,
        hosts: schedule.hosts,
        checks: graph.checks.clone(),
        ..Plan::default()
    };
    for step in schedule.steps {
        let buffers = step.buffers.iter().map(|s| {
            let place = placement.places[s.buffer as usize];
            place.advanced(s.offset)
        });
        plan.call(step.spec, buffers);
        plan.origins.push(step.origins);
    }
    let Prepare { bytes, sources, calls } = schedule.preparation;
    let calls = calls.into_iter().map(|(spec, buffers)| Call {
        kernel: plan.kernel(spec),
        buffers: buffers.into_iter().collect(),
        order: Order::default(),
    });
    plan.preparation = Preparation {
        bytes,
        sources,
        calls: calls.collect(),
    };
    plan.order_calls();
    Ok(plan)
}

/// Simplification and, unless told otherwise, fusion.
pub fn optimise(graph: &mut TensorGraph, with_fusion: bool) {
    info_span!("simplify").in_scope(|| {
        simplify(graph);
        materialise_views(graph);
    });
    if with_fusion {
        info_span!("fuse").in_scope(|| fuse(graph));
    }
}
