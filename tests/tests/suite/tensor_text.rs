//! The tensor IR of all models: valid after specialisation and after each pass, and printed, read and printed as the same.

use std::collections::HashMap;
use std::sync::Arc;

use frazil::{FreezeOptions, Session};
use frazil_ir::TensorData;
use frazil_pass_manager::{PassManager, PassRegistry};
use frazil_planner::ArgumentSpec;
use frazil_planner::specialise::specialise;
use frazil_recorded::case::{self, Case};
use frazil_recorded::value::value_from_json;
use frazil_recorded::workspace::{corpus, fixtures};
use frazil_runtime::structured::TensorId;
use frazil_tensor_ir::standard::PIPELINE;
use frazil_tensor_ir::text::{PrintOptions, parse_with, print_with};
use frazil_tensor_ir::verify::verify;
use frazil_tensor_ir::{TensorGraph, TensorIr};
use serde_json::Value as Json;

use super::namespaces::spec;

/// Returns the text of a graph, and its constants by the keys that stand for them in the text.
fn print(graph: &TensorGraph) -> (String, HashMap<String, Arc<TensorData>>) {
    let constants = graph.live_ids().into_iter();
    let constants = constants.filter_map(|id| Some((id, graph.as_constant(id)?)));
    let constants: Vec<(TensorId, &Arc<TensorData>)> = constants.filter(|(_, data)| data.numel() > 64).collect();
    let keys: HashMap<TensorId, String> = constants.iter().map(|(id, _)| (*id, id.index().to_string())).collect();
    let options = PrintOptions {
        keys: Some(&keys),
        ..PrintOptions::default()
    };
    let by_key = constants
        .into_iter()
        .map(|(id, data)| (keys[&id].clone(), Arc::clone(data)));
    (print_with("model", graph, options), by_key.collect())
}

/// Panics unless the graph is valid, and the text of its live tensors is read as the same. Returns whether it can be read: calls of operators cannot.
fn check(name: &str, stage: &str, graph: &TensorGraph) -> bool {
    assert_eq!(verify(graph), [], "{name} after {stage}");
    let mut graph = graph.clone();
    graph.compact();
    let (text, constants) = print(&graph);
    if text.contains(" = call ") || text.contains(" elided") {
        return false;
    }
    let constant = |key: &str, _: &_| constants.get(key).cloned();
    let read = parse_with(&text, &constant).unwrap_or_else(|error| panic!("{name} after {stage}: {error}\n{text}"));
    assert_eq!(print(&read.graph).0, text, "{name} after {stage}");
    true
}

/// Checks one model. Returns whether it has a graph whose text can be read.
fn check_model(case: &Case, session: &Session) -> bool {
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
    let Ok(specialised) = specialise(graph, &inputs, session.registry()) else {
        return false;
    };
    let mut tensors = specialised.graph;
    let is_read = check(&case.name, "specialisation", &tensors);
    let passes: PassRegistry<TensorIr> = PassRegistry::standard();
    for pass in PIPELINE.split(',') {
        let manager = PassManager::from_pipeline(&passes, pass).expect("a pass of the pipeline");
        manager.run_on_graph(&mut tensors, &()).expect("no pass fails");
        check(&case.name, pass, &tensors);
    }
    is_read
}

#[test]
fn graphs_of_the_fixtures_are_valid_and_their_text_is_read() {
    let session = Session::new();
    let cases = case::models(&fixtures().join("models")).expect("readable cases");
    let read = cases.iter().filter(|case| check_model(case, &session)).count();
    assert!(
        read >= 6,
        "only {read} of {} models have a text that can be read",
        cases.len()
    );
}

#[test]
fn graphs_of_the_corpus_are_valid_and_their_text_is_read() {
    if let Some(corpus) = corpus() {
        let session = Session::new();
        let cases = case::models(&corpus.join("models")).expect("readable cases");
        let read = cases.iter().filter(|case| check_model(case, &session)).count();
        assert!(
            read >= 40,
            "only {read} of {} models have a text that can be read",
            cases.len()
        );
    }
}
