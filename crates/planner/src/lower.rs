//! Lowering of tensor programs to a plan: runs the stages of the planner in order.

use crate::error::LowerError;
use crate::layout::{self, Layouts};
use crate::placement;
use crate::plan::{Call, Order, Plan, Port, Preparation};
use crate::select;
use frazil_tensor_ir::graph::TensorGraph;
use frazil_tensor_ir::transform::fuse::fuse;

use crate::options::LowerOptions;
use crate::schedule::slices::slice_chains;
use crate::schedule::spread::spread;
use crate::schedule::{Prepare, Schedule};
use crate::specialise::{ArgumentSpec, ResultSpec, specialise};
use frazil_ir::Graph;
use frazil_runtime::Registry;
use frazil_runtime::structured::TensorId;
use frazil_tensor_ir::transform::materialize_views::materialize_views;
use frazil_tensor_ir::transform::merge_matmuls::merge_matmuls;
use frazil_tensor_ir::transform::rewriter::{AllowAll, Rewriter};
use frazil_tensor_ir::transform::simplify::simplify;
use tracing::info_span;

/// A plan, and the meaning of its outputs.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The plan to be compiled.
    pub plan: Plan,
    /// Description of the graph's results in terms of the plan's outputs.
    pub results: Vec<ResultSpec>,
}

/// Lowers a frozen graph for inputs of known shapes. Knows operators only by their entries in `registry`.
///
/// # Errors
/// [`LowerError::Unsupported`] lists everything that cannot be compiled.
pub fn compile_graph(
    graph: &Graph,
    inputs: &[ArgumentSpec],
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
/// If the graph cannot be expressed as kernels.
pub fn lower(mut graph: TensorGraph, options: &LowerOptions) -> Result<Plan, LowerError> {
    let schedule = scheduled(&mut graph, options)?;
    Ok(placed(&graph, schedule, options))
}

/// Optimises `graph` and chooses layouts.
///
/// # Errors
/// If a limit is exceeded.
pub fn laid_out(graph: &mut TensorGraph, options: &LowerOptions) -> Result<Layouts, LowerError> {
    optimise(graph, options.fuse);
    frazil_limits::check()?;
    Ok(info_span!("layout").in_scope(|| layout::choose(graph, &options.families, &options.target)))
}

/// Optimises `graph`, and selects kernels in order.
///
/// # Errors
/// If the graph cannot be expressed as kernels.
pub fn scheduled(graph: &mut TensorGraph, options: &LowerOptions) -> Result<Schedule, LowerError> {
    let layouts = laid_out(graph, options)?;
    let mut schedule = info_span!("select").in_scope(|| select::schedule(graph, &layouts, options))?;
    frazil_limits::check()?;
    if options.fuse {
        slice_chains(&mut schedule, options);
    }
    spread(&mut schedule, options.threads, options.target.machine);
    Ok(schedule)
}

/// Places the buffers of a schedule for `graph`.
fn placed(graph: &TensorGraph, schedule: Schedule, options: &LowerOptions) -> Plan {
    let placement = info_span!("memory").in_scope(|| placement::place(&schedule));
    let port = |name: &str, i: usize, id| {
        let shape = graph.shape(id);
        Port {
            name: format!("{name}{i}"),
            dtype: shape.dtype,
            shape: shape.sizes.clone(),
        }
    };
    let ports = |name: &str, ids: &[TensorId]| ids.iter().enumerate().map(|(i, &id)| port(name, i, id)).collect();
    let mut plan = Plan {
        name: options.name.clone(),
        inputs: ports("input", graph.inputs()),
        outputs: ports("output", graph.outputs()),
        workspace_bytes: placement.workspace_bytes,
        constants: schedule.constants,
        shared: schedule.shared,
        packed: schedule.packed,
        runtime_calls: schedule.runtime_calls,
        checks: graph.checks().to_vec(),
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
    plan
}

/// Simplifies the graph and, if `with_fusion` is set, fuses its loop nests.
pub fn optimise(graph: &mut TensorGraph, with_fusion: bool) {
    let mut allow_all = AllowAll;
    let mut graph = Rewriter::new(graph, &mut allow_all);
    info_span!("simplify").in_scope(|| {
        simplify(&mut graph);
        materialize_views(&mut graph);
    });
    if with_fusion {
        info_span!("fuse").in_scope(|| {
            fuse(&mut graph);
            merge_matmuls(&mut graph);
        });
    }
}
