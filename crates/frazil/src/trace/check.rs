//! Checking of traces. Tracing again with other inputs must result in the same graph, and running the trace must return the same results as the function.

use super::closeness::{default_atol, difference};
use super::ndiff::ndiff;
use super::{Method, Parameters, Trace, TraceOptions, TracerWarning, WarningKind, run};
use crate::eager::Var;
use crate::error::tracing_check::{TracingCheckError, indent};
use crate::error::{Error, Result};
use crate::model::loaded::Loaded;
use crate::model::{Model, PassOptions};
use crate::session::Session;
use frazil_ir::{Constant, Graph, NodeId, symbols};
use frazil_passes::support::effects;
use frazil_runtime::Tensor;
use frazil_runtime::import::Importer;
use frazil_syntax::GraphText;

/// Maximum number of random operators that a warning lists.
const MAX_LISTED: usize = 20;

/// Traces `method` again on its inputs and compares the result with `trace`, to which warnings are added.
pub(super) fn check(
    session: &Session,
    trace: &mut Trace,
    parameters: Option<&Parameters>,
    method: &Method<'_>,
    options: &TraceOptions,
) -> Result<()> {
    let recorded = session.record(parameters, method, options)?;
    let again = session.record_methods(parameters, std::slice::from_ref(method), options)?;
    let (ours, theirs) = (canonical(trace, method.name)?, canonical(&again, method.name)?);
    let (graph_diff, constant_diff) = (graph_diff(&ours, &theirs), constant_diff(&ours, &theirs)?);
    let fail = |what| {
        Error::TracingCheck(TracingCheckError {
            graph_diff: graph_diff.clone(),
            constant_diff: constant_diff.clone(),
            what,
        })
    };
    let model = trace.to_model();
    let running = |model: &Model, what: &str| {
        run(model, method.name, method.inputs).map_err(|error| {
            fail(Some(format!(
                "encountered an exception while running the {what} with test inputs.\nException:\n{}",
                indent(&error.to_string())
            )))
        })
    };
    let traced = running(&model, "trace")?;
    let function = recorded.outputs.tensors();
    let same = compare(trace, &traced, &function, options, "Rust function");
    if same {
        let retraced = running(&again.to_model(), "retrace")?;
        compare(trace, &traced, &retraced, options, "repeated trace");
    }
    match (&graph_diff, &constant_diff) {
        (None, None) => Ok(()),
        _ => Err(fail(None)),
    }
}

/// Returns the graph of a method without properties that always differ between inputs: shapes, and numbers in names of
/// values.
fn canonical(trace: &Trace, method: &str) -> Result<Graph> {
    let mut loaded: Loaded = trace.loaded().clone();
    loaded.run_passes("inline,erase-shape-information,canonicalize", &PassOptions::default())?;
    let mut graph = loaded.graph(method)?.clone();
    number(&mut graph);
    Ok(graph)
}

/// Names unnamed values by their index in the order of the graph. As in PyTorch, the index also counts named values.
fn number(graph: &mut Graph) {
    let mut values = graph.inputs().to_vec();
    for node in graph.all_nodes() {
        values.extend_from_slice(graph.node_outputs(node));
        for &block in graph.node_blocks(node) {
            values.extend_from_slice(graph.parameters(block));
        }
    }
    for (i, value) in values.into_iter().enumerate() {
        if graph.value_name(value).is_none() {
            graph.name_value(value, &i.to_string());
        }
    }
}

fn graph_diff(ours: &Graph, theirs: &Graph) -> Option<String> {
    let (a, b) = (frazil_syntax::print_graph(ours), frazil_syntax::print_graph(theirs));
    if a == b {
        return None;
    }
    let mut out = format!("Graph diff:\n{}\n", indent(&ndiff(&a, &b)));
    let (of_ours, of_theirs) = (GraphText::new(ours), GraphText::new(theirs));
    let diverging = pairs(ours, theirs).find_map(|(n, m)| {
        let (x, y) = (of_ours.node(n), of_theirs.node(m));
        (x != y).then_some((n, m, x, y))
    });
    if let Some((n, m, x, y)) = diverging {
        out += "First diverging operator:\n";
        out += &format!("Node diff:\n{}\n", indent(&ndiff(&x, &y)));
        for (title, graph, node) in [("Trace", ours, n), ("Check", theirs, m)] {
            if let Some(range) = graph.source_range(node) {
                out += &format!("{title} source location:\n\t{}\n", range.display(graph.ctx()));
            }
        }
    }
    Some(out)
}

/// Returns pairs of corresponding nodes of the graphs `a` and `b`.
fn pairs<'g>(a: &'g Graph, b: &'g Graph) -> impl Iterator<Item = (NodeId, NodeId)> + 'g {
    a.nodes(a.root()).zip(b.nodes(b.root()))
}

fn constant_diff(ours: &Graph, theirs: &Graph) -> Result<Option<String>> {
    let mut importer = Importer::new();
    for (n, m) in pairs(ours, theirs) {
        if ours.kind(n) != theirs.kind(m) {
            break;
        }
        if ours.kind(n) != symbols::PRIM_CONSTANT {
            continue;
        }
        let (Some(Constant::Tensor(a)), Some(Constant::Tensor(b))) = (ours.constant_of(n), theirs.constant_of(m))
        else {
            continue;
        };
        let (a, b) = (importer.tensor(&a)?.get(), importer.tensor(&b)?.get());
        let Some(apart) = difference(&a, &b, rtol(&a), default_atol(a.dtype(), b.dtype())) else {
            continue;
        };
        let mut out = format!("Node:\n{}\n", indent(&GraphText::new(ours).node(n)));
        if let Some(range) = ours.source_range(n) {
            out += &format!("Source Location:\n\t{}\n", range.display(ours.ctx()));
        }
        out += &format!("Comparison exception: {}", indent(&apart));
        return Ok(Some(out));
    }
    Ok(None)
}

/// Returns the relative tolerance for the comparison of constants with the dtype of `tensor`, as in PyTorch.
fn rtol(tensor: &Tensor) -> f64 {
    use frazil_ir::DType;
    match tensor.dtype() {
        DType::Half | DType::ComplexHalf => 1e-3,
        DType::BFloat16 => 1.6e-2,
        DType::Float | DType::ComplexFloat => 1.3e-6,
        DType::Double | DType::ComplexDouble => 1e-7,
        _ => 0.0,
    }
}

/// Compares outputs of two runs, and adds a warning for each that is not close. Returns true if all are close.
fn compare(trace: &mut Trace, ours: &[Var], reference: &[Var], options: &TraceOptions, of: &str) -> bool {
    let mut all_close = true;
    for (i, (a, b)) in ours.iter().zip(reference).enumerate() {
        let (a, b) = (a.get(), b.get());
        let Some(apart) = difference(&a, &b, options.check_tolerance, default_atol(a.dtype(), b.dtype())) else {
            continue;
        };
        all_close = false;
        warn_of_random(trace);
        let text = format!(
            "Output nr {}. of the traced function does not match the corresponding output of the {of}. Detailed error:\n{apart}",
            i + 1
        );
        trace.warnings.push(TracerWarning {
            kind: WarningKind::Different,
            place: String::new(),
            text,
        });
    }
    all_close
}

/// Adds one warning that lists the random operators of the trace.
fn warn_of_random(trace: &mut Trace) {
    if trace.warnings.iter().any(|w| w.kind == WarningKind::Random) {
        return;
    }
    let model = trace.to_model();
    let registry = model.session().registry();
    let mut listed = Vec::new();
    for (_, function) in model.module().unit.functions() {
        let graph = &function.graph;
        let text = GraphText::new(graph);
        let catalogue = registry.catalogue();
        let random = |&n: &NodeId| {
            let schema = effects::schema(graph, n, catalogue);
            schema.is_some_and(|s| effects::draws_random_numbers(graph, n, &s, catalogue))
        };
        listed.extend(graph.nodes(graph.root()).filter(random).map(|n| indent(&text.node(n))));
    }
    if listed.is_empty() {
        return;
    }
    listed.truncate(MAX_LISTED);
    trace.warnings.push(TracerWarning {
        kind: WarningKind::Random,
        place: String::new(),
        text: format!(
            "Trace had nondeterministic nodes. Nodes:\n{}\nResults differ from run to run with them; `check_trace: false` leaves the comparison out.",
            listed.join("\n")
        ),
    });
}
