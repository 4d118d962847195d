//! The tensor IR of all models: valid after specialisation and after each pass, and printed, read and printed as the same.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use frazil::{FreezeOptions, Session};
use frazil_ir::TensorData;
use frazil_pass_manager::{PassManager, PassRegistry};
use frazil_planner::ArgumentSpec;
use frazil_planner::specialise::specialise;
use frazil_recorded::case::{self, Case};
use frazil_recorded::value::value_from_json;
use frazil_recorded::workspace::{corpus, fixtures};
use frazil_runtime::Signature;
use frazil_runtime::structured::TensorId;
use frazil_runtime::value::Value;
use frazil_tensor_ir::standard::PIPELINE;
use frazil_tensor_ir::text::{ParseOptions, PrintOptions, external_constants, parse_with, print_with};
use frazil_tensor_ir::verify::verify;
use frazil_tensor_ir::{TensorGraph, TensorIr, TensorOp};
use serde_json::Value as Json;

use super::namespaces::spec;

/// Models without a graph of tensors, because they cannot be specialised for the inputs of their first call: the name of the case, and a part of the
/// error.
type WithoutGraph = &'static [(&'static str, &'static str)];

const FIXTURES_WITHOUT_GRAPH: WithoutGraph = &[
    ("experts", "aten::one_hot: depends on the elements of a tensor"),
    ("power", "aten::Float.Tensor: depends on the elements of a tensor"),
    ("running_mean", "prim::GetAttr: stays after freezing"),
];

const CORPUS_WITHOUT_GRAPH: WithoutGraph = &[
    (
        "beam_search_script",
        "aten::Bool.Tensor: depends on the elements of a tensor",
    ),
    ("counter_state_script", "prim::GetAttr: stays after freezing"),
    (
        "detect_post_script",
        "aten::nonzero: depends on the elements of a tensor",
    ),
    ("gate_script", "aten::Float.Tensor: depends on the elements of a tensor"),
    ("gnn_script", "aten::item: depends on the elements of a tensor"),
    (
        "greedy_decoder_script",
        "aten::item: depends on the elements of a tensor",
    ),
    // The lengths of a packed sequence are elements of a tensor, too.
    (
        "lstm_packed_script",
        "prim::tolist: depends on the elements of a tensor",
    ),
    (
        "mixture_of_experts_script",
        "aten::where: depends on the elements of a tensor",
    ),
    (
        "named_out_script",
        "aten::Float.Tensor: depends on the elements of a tensor",
    ),
    ("script_class_script", "prim::CreateObject: stays after freezing"),
    ("streaming_conv_script", "prim::GetAttr: stays after freezing"),
];

/// Returns the text of a graph, and its constants by the keys that stand for them in the text.
fn print(graph: &TensorGraph) -> (String, HashMap<String, Arc<TensorData>>) {
    let constants = external_constants(graph).into_iter();
    let constants: Vec<(TensorId, String, Arc<TensorData>)> = constants
        .map(|(id, data)| (id, id.index().to_string(), Arc::clone(data)))
        .collect();
    let keys: HashMap<TensorId, String> = constants.iter().map(|(id, key, _)| (*id, key.clone())).collect();
    let options = PrintOptions {
        keys: Some(&keys),
        ..PrintOptions::default()
    };
    let by_key = constants.iter().map(|(_, key, data)| (key.clone(), Arc::clone(data)));
    (print_with("model", graph, options), by_key.collect())
}

/// Panics unless the graph is valid, and the text of its live tensors is read as the same.
fn check(name: &str, stage: &str, graph: &TensorGraph, session: &Session) {
    assert_eq!(verify(graph), [], "{name} after {stage}");
    let mut graph = graph.clone();
    graph.compact();
    let (text, constants) = print(&graph);
    let options = ParseOptions {
        constants: &|key, _| constants.get(key).cloned(),
        operators: Some(session.registry()),
    };
    let read = parse_with(&text, options).unwrap_or_else(|error| panic!("{name} after {stage}: {error}\n{text}"));
    assert_eq!(print(&read.graph).0, text, "{name} after {stage}");
}

/// Checks one model after specialisation and after each pass. Returns the error of specialisation instead if there is one, and whether the text contains
/// calls of operators.
fn check_model(case: &Case, session: &Session) -> Result<bool, String> {
    let method = case.json.get("method").and_then(Json::as_str).unwrap_or("forward");
    let mut options = FreezeOptions::default();
    options.freeze.preserve = vec![method.to_owned()];
    let model = session.load(&case.model).expect("the model loads");
    let frozen = model.freeze(&options).expect("the model freezes");
    let graph = frozen.graph(method).expect("the method is kept");
    let tensors = case.tensors().expect("the case has tensors");
    let arguments = case.json.pointer("/calls/0/args").and_then(Json::as_array);
    let inputs = arguments.expect("the case has a call").iter();
    let inputs: Vec<Value> = inputs
        .map(|json| value_from_json(json, &tensors).expect("an argument"))
        .collect();
    // Arguments that the call leaves out have defaults.
    let signature = Signature::of_method(frozen.module(), method).expect("the method has a signature");
    let inputs = signature.bind(&inputs, &[]).expect("the arguments fit the method");
    let inputs: Vec<ArgumentSpec> = inputs.iter().map(spec).collect();
    let specialised = specialise(graph, &inputs, session.registry()).map_err(|error| error.to_string())?;
    let mut tensors = specialised.graph;
    check(&case.name, "specialisation", &tensors, session);
    let calls = tensors.live_ids().into_iter();
    let has_calls = calls.clone().any(|id| matches!(tensors.op(id), TensorOp::Call(_)));
    let passes: PassRegistry<TensorIr> = PassRegistry::standard();
    for pass in PIPELINE.split(',') {
        let manager = PassManager::from_pipeline(&passes, pass).expect("a pass of the pipeline");
        manager.run_on_graph(&mut tensors, &()).expect("no pass fails");
        check(&case.name, pass, &tensors, session);
    }
    Ok(has_calls)
}

/// Checks all models of a folder, and returns how many have a text with calls of operators. Panics if other models than `without_graph` have no graph.
fn check_models(folder: &Path, without_graph: WithoutGraph) -> usize {
    let session = Session::new();
    let (mut with_calls, mut unexpected) = (0, Vec::new());
    let mut listed: Vec<&str> = without_graph.iter().map(|(name, _)| *name).collect();
    for case in case::models(folder).expect("readable cases") {
        let expected = without_graph.iter().find(|(name, _)| *name == case.name);
        match (check_model(&case, &session), expected) {
            (Ok(has_calls), None) => with_calls += usize::from(has_calls),
            (Err(error), Some((_, reason))) if error.contains(reason) => {}
            (Ok(_), Some(_)) => unexpected.push(format!("{} has a graph: take it off the list", case.name)),
            (Err(error), _) => unexpected.push(format!("{} has no graph: {error}", case.name)),
        }
        listed.retain(|name| *name != case.name);
    }
    assert!(unexpected.is_empty(), "{}", unexpected.join("\n"));
    assert_eq!(listed, [""; 0], "no models of these names are in {}", folder.display());
    with_calls
}

#[test]
fn graphs_of_the_fixtures_are_valid_and_their_text_is_read() {
    check_models(&fixtures().join("models"), FIXTURES_WITHOUT_GRAPH);
}

#[test]
fn graphs_of_the_corpus_are_valid_and_their_text_is_read() {
    if let Some(corpus) = corpus() {
        let with_calls = check_models(&corpus.join("models"), CORPUS_WITHOUT_GRAPH);
        assert!(with_calls > 0, "no text contains a call");
    }
}
