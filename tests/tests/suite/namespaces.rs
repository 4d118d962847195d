//! Code generation is independent of the namespace of operators: it makes the same plans of graphs whose `aten` operators are registered under another
//! namespace.
//!
//! Each model is frozen with the standard operators and planned. Then all operators of the frozen graph move to another namespace, and the graph is planned
//! with a registry that has no operator in `aten`: schemas, entries, aliases, and the graphs of composites are renamed. The listings of the plans have to be
//! equal but for the namespace in the origins of calls. Where a model is not compiled as a whole, the errors and the plans of the first segment are compared.
//!
//! Left out:
//!
//! - Freezing, since passes rewrite operators of `aten` by name (`OPERATOR_NAMES` in `tidy.rs` lists where).
//! - Structural nodes, which belong to the IR and not to a dialect: those in `prim`, `aten::wait` and `aten::warn`.
//! - Later segments, which need the results of runtime calls, and state in attributes.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use frazil::{FreezeOptions, Session};
use frazil_ir::schema::AliasUse;
use frazil_ir::{AttributeValue, Graph};
use frazil_planner::plan::Plan;
use frazil_planner::plan::listing::listing;
use frazil_planner::specialise::{Next, Start, segments};
use frazil_planner::target::Target;
use frazil_planner::tune::Tuning;
use frazil_planner::{ArgumentSpec, LowerError, LowerOptions, compile_graph, lower};
use frazil_recorded::case::{self, Case};
use frazil_recorded::value::value_from_json;
use frazil_recorded::workspace::{corpus, fixtures, root};
use frazil_runtime::entry::{Entry, TensorVariant};
use frazil_runtime::structured::TensorShape;
use frazil_runtime::value::Value;
use frazil_runtime::{Registry, Semantics};
use serde_json::Value as Json;

/// The namespace whose operators move, and the one that they move to.
const OLD: &str = "aten::";
const NEW: &str = "other::";

/// Nodes that the walker runs itself, although their names are in `aten`.
const STRUCTURAL: [&str; 2] = ["aten::wait", "aten::warn"];

/// Files of schemas, relative to the root of the repository.
const SCHEMAS: [&str; 6] = [
    "dialects/aten/src/schemas/aten.txt",
    "dialects/aten/src/schemas/prims.txt",
    "dialects/aten/src/schemas/quantized.txt",
    "dialects/aten/src/schemas/torchvision.txt",
    "dialects/aten/src/schemas/others.txt",
    "dialects/prim/src/schemas.txt",
];

/// Minimum number of fixtures of which code generation has to make a plan as a whole.
const MIN_FIXTURES: usize = 6;

/// The same for the models of the large corpus.
const MIN_CORPUS: usize = 50;

/// Returns a name (an operator, an overload, a schema) in the other namespace, if its operator is in `aten`.
fn moved(name: &str) -> String {
    let operator = name.split(['.', '(']).next().unwrap_or_default();
    match name.strip_prefix(OLD) {
        Some(rest) if !STRUCTURAL.contains(&operator) => format!("{NEW}{rest}"),
        _ => name.to_owned(),
    }
}

/// Returns `name` in the other namespace. Entries have names that live as long as the program.
fn moved_static(name: &str) -> &'static str {
    moved(name).leak()
}

/// Returns the graph with all operators, also those of its subgraphs, in the other namespace.
fn moved_graph(graph: &Graph) -> Graph {
    let mut graph = graph.clone();
    let ctx = Arc::clone(graph.ctx());
    for node in graph.all_nodes() {
        let kind = ctx.symbol(&moved(graph.kind_name(node)));
        graph.set_kind(node, kind);
        for attribute in graph.attributes(node).to_vec() {
            let inner = |inner: &Arc<Graph>| Arc::new(moved_graph(inner));
            let value = match &attribute.value {
                AttributeValue::Graph(graph) => AttributeValue::Graph(inner(graph)),
                AttributeValue::Graphs(graphs) => AttributeValue::Graphs(graphs.iter().map(inner).collect()),
                _ => continue,
            };
            graph.set_attribute(node, attribute.name, value);
        }
    }
    graph
}

fn moved_entry(entry: &Entry) -> Entry {
    let mut entry = entry.clone();
    if !entry.alias_names().is_empty() {
        let aliases = entry.alias_names().iter();
        let aliases: Vec<(&str, AliasUse)> = aliases.map(|(name, used)| (moved_static(name), *used)).collect();
        entry = entry.aliases(aliases.leak());
    }
    if let Some(variant) = entry.traits().tensor_variant {
        entry = entry.tensor_variant(Box::leak(Box::new(TensorVariant {
            operator: moved_static(variant.operator),
            ..*variant
        })));
    }
    entry
}

/// Returns the graph of the composite that is registered under `name`: an operator or an overload.
fn composite(registry: &Registry, name: &str) -> Arc<Graph> {
    let (operator, overload) = name.split_once('.').unwrap_or((name, ""));
    let symbol = registry.ctx().symbol(operator);
    let schemas = registry.catalogue().overloads(symbol);
    let of_name = |schema_overload: &str| match overload {
        // An overload with an entry of its own does not use that of the operator.
        "" => registry.entry(&format!("{operator}.{schema_overload}")).is_none(),
        overload => overload == schema_overload,
    };
    let graphs = schemas
        .filter(|schema| of_name(registry.ctx().name(schema.overload)))
        .filter_map(|schema| match registry.operator_of(schema)?.semantics() {
            Semantics::Composite(graph) => Some(Arc::clone(graph)),
            _ => None,
        });
    graphs.last().unwrap_or_else(|| panic!("{name} has no graph"))
}

/// Returns a registry with the operators of `standard`, those of `aten` in the other namespace.
fn moved_registry(standard: &Registry) -> Registry {
    let mut registry = Registry::new(Arc::clone(standard.ctx()));
    for file in SCHEMAS {
        let text = fs::read_to_string(root().join(file)).expect("a readable file");
        let lines = text.lines().map(moved);
        registry.add_tested_schemas(&lines.collect::<Vec<_>>().join("\n"));
    }
    // The schemas of structural nodes are in no file.
    let catalogue = standard.catalogue();
    for name in catalogue.operators() {
        let ctx = standard.ctx();
        if !ctx.name(name).starts_with(OLD) && !registry.catalogue().contains(name) {
            let schemas = catalogue.overloads(name).map(|schema| schema.display(ctx).to_string());
            let schemas: Vec<String> = schemas.collect();
            registry.add_schemas(&schemas.join("\n")).expect("schemas");
        }
    }
    for (name, entry) in standard.entries() {
        registry.register(&moved(name), moved_entry(entry));
    }
    for name in standard.composite_operators() {
        let graph = moved_graph(&composite(standard, name));
        registry.register(&moved(name), Semantics::Composite(Arc::new(graph)));
    }
    let names = registry.catalogue().operators().map(|name| standard.ctx().name(name));
    let left: Vec<&str> = names
        .chain(registry.entries().map(|(name, _)| name))
        .filter(|name| moved(name) != *name)
        .collect();
    assert!(left.is_empty(), "operators of `aten` are left: {left:?}");
    registry
}

/// Describes an argument: tensors by their shapes, other values by themselves.
pub(super) fn spec(value: &Value) -> ArgumentSpec {
    match value {
        Value::Tensor(cell) => {
            let tensor = cell.get();
            ArgumentSpec::Tensor(TensorShape {
                dtype: tensor.dtype(),
                sizes: tensor.sizes().into(),
            })
        }
        Value::List(list) => ArgumentSpec::List(list.element, list.items().iter().map(spec).collect()),
        Value::Tuple(tuple) => ArgumentSpec::Tuple(tuple.items.iter().map(spec).collect()),
        Value::Dict(dict) => {
            let entries = dict.with(|entries| entries.iter().map(|(k, v)| (k.clone(), spec(v))).collect());
            ArgumentSpec::Dict(dict.key, dict.value, entries)
        }
        other => ArgumentSpec::Value(other.clone()),
    }
}

/// Returns the plan as text.
fn describe(plan: &Plan) -> String {
    let (constants, preparation) = (plan.constants.len(), &plan.preparation);
    let sizes = [constants, preparation.sources.len(), preparation.bytes];
    format!(
        "{}\nconstants, sources, prepared: {sizes:?}\nchecks: {:?}\n",
        listing(plan),
        plan.checks
    )
}

/// Plans the kernels of the first segment of `graph`.
fn first_segment(
    graph: &Graph,
    inputs: &[ArgumentSpec],
    registry: &Registry,
    options: &LowerOptions,
) -> Result<String, LowerError> {
    let start = Start::default();
    // There are no loops that stay rolled, so there is only one.
    let found = segments(graph, inputs, &[], &start, registry)?.remove(0);
    let mut tensors = (*found.graph).clone();
    let next = match &found.next {
        Next::Call(call) => {
            let live = found.live.iter().filter(|&&id| tensors.as_constant(id).is_none());
            let outputs: Vec<_> = call.inputs.iter().chain(live).copied().collect();
            tensors.set_outputs(&outputs);
            format!("{:?}", call.arguments)
        }
        returned => format!("{returned:?}"),
    };
    Ok(format!("{}{next}\n", describe(&lower(tensors, options)?)))
}

/// A plan, or the reason why there is none, as text.
struct Planned {
    text: String,
    /// Whether it is of the whole method.
    is_whole: bool,
}

/// Plans the kernels of `graph`; those of its first segment, if it cannot be compiled as a whole.
fn plan(graph: &Graph, inputs: &[ArgumentSpec], registry: &Registry) -> Planned {
    let options = LowerOptions {
        name: "model".into(),
        target: Target::new("x86-64-v3", "+avx2,+fma"),
        fuse: true,
        tuning: Tuning::default(),
        families: Vec::new(),
        packed: None,
        sizes: Default::default(),
        threads: 4,
    };
    match compile_graph(graph, inputs, registry, &options) {
        Ok(lowered) => Planned {
            text: format!("{}{:?}\n", describe(&lowered.plan), lowered.results),
            is_whole: true,
        },
        Err(error) => {
            let segment = first_segment(graph, inputs, registry, &options);
            let segment = segment.unwrap_or_else(|error| format!("{error}\n"));
            Planned {
                text: format!("{error}\n{segment}"),
                is_whole: false,
            }
        }
    }
}

/// Returns the first line in which two texts differ.
fn difference(standard: &str, other: &str) -> Option<String> {
    let (mut standard, mut other) = (standard.lines(), other.lines());
    loop {
        match (standard.next(), other.next()) {
            (None, None) => return None,
            (a, b) if a == b => {}
            (a, b) => return Some(format!("{a:?} became {b:?}")),
        }
    }
}

/// Compares the plans of one model. Returns whether the model has a plan as a whole, or a difference.
fn compare(case: &Case, session: &Session, other: &Registry) -> Result<bool, String> {
    let method = case.json.get("method").and_then(Json::as_str).unwrap_or("forward");
    let mut options = FreezeOptions::default();
    options.freeze.preserve = vec![method.to_owned()];
    let model = session.load(&case.model).expect("the model loads");
    let frozen = model.freeze(&options).expect("the model freezes");
    let graph = frozen.graph(method).expect("the method is kept");
    let tensors = case.tensors().expect("the case has tensors");
    let arguments = case.json.pointer("/calls/0/args").and_then(Json::as_array);
    let inputs = arguments.expect("the case has a call").iter();
    let inputs = inputs.map(|json| spec(&value_from_json(json, &tensors).expect("an argument")));
    let inputs: Vec<ArgumentSpec> = inputs.collect();
    let standard = plan(graph, &inputs, session.registry());
    let renamed = plan(&moved_graph(graph), &inputs, other);
    match difference(&standard.text, &renamed.text.replace(NEW, OLD)) {
        Some(difference) => Err(format!("{}: {difference}", case.name)),
        None => Ok(standard.is_whole),
    }
}

/// Compares the plans of all models, on all cores. At least `minimum` of them have to have plans as a whole.
fn compare_all(cases: &[Case], minimum: usize) {
    let session = Session::new();
    let other = moved_registry(session.registry());
    let next = AtomicUsize::new(0);
    let (planned, differences) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            match compare(case, &session, &other) {
                Ok(is_whole) => {
                    planned.fetch_add(usize::from(is_whole), Ordering::Relaxed);
                }
                Err(difference) => differences.lock().expect("no thread panics").push(difference),
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let differences = differences.into_inner().expect("no thread panics");
    assert!(
        differences.is_empty(),
        "plans that depend on names of operators; state in the entries what the code needs:\n  {}\n",
        differences.join("\n  ")
    );
    let planned = planned.into_inner();
    assert!(
        planned >= minimum,
        "only {planned} of {} models have a plan",
        cases.len()
    );
}

#[test]
fn plans_of_the_fixtures_do_not_depend_on_the_namespace() {
    let cases = case::models(&fixtures().join("models")).expect("readable cases");
    compare_all(&cases, MIN_FIXTURES);
}

#[test]
fn plans_of_the_corpus_do_not_depend_on_the_namespace() {
    if let Some(corpus) = corpus() {
        let cases = case::models(&corpus.join("models")).expect("readable cases");
        compare_all(&cases, MIN_CORPUS);
    }
}
