//! The declarations of passes: their examples are what they do.

use frazil_pass_manager::{PassManager, PassRegistry, Report};
use frazil_tensor_ir::TensorIr;
use frazil_tensor_ir::standard::PIPELINE;
use frazil_tensor_ir::text::{parse, print};

fn run(pipeline: &str, text: &str, limit: Option<u64>) -> (String, Report) {
    let mut function = parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let registry: PassRegistry<TensorIr> = PassRegistry::standard();
    let mut manager = PassManager::from_pipeline(&registry, pipeline).unwrap();
    manager.verify_each(true);
    manager.limit(limit);
    let report = manager.run_on_graph(&mut function.graph, &()).unwrap();
    function.graph.compact();
    (print(&function.name, &function.graph), report)
}

/// Numbers tensors anew, as the printer does after a text was read.
fn numbered(text: &str) -> String {
    let function = parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    print(&function.name, &function.graph)
}

#[test]
fn examples_of_passes_are_what_they_do() {
    let registry: PassRegistry<TensorIr> = PassRegistry::standard();
    for pass in registry.passes() {
        let (after, report) = run(pass.name, pass.before, None);
        assert_eq!(after, numbered(pass.after), "{}", pass.name);
        assert!(!report.statistics.is_empty(), "{}", pass.name);
        // A second run finds nothing to do.
        let (again, report) = run(pass.name, &after, None);
        assert_eq!((again, report.statistics), (after, Vec::new()), "{}", pass.name);
    }
}

#[test]
fn fuel_stops_before_any_rewrite_and_names_the_last() {
    let registry: PassRegistry<TensorIr> = PassRegistry::standard();
    for pass in registry.passes() {
        let (unchanged, _) = run(pass.name, pass.before, Some(0));
        assert_eq!(unchanged, numbered(pass.before), "{}", pass.name);
        let (_, report) = run(pass.name, pass.before, Some(1));
        assert_eq!(report.last_rewrite.unwrap().pass, pass.name);
    }
}

#[test]
fn the_pipeline_of_the_compiler_consists_of_these_passes() {
    let registry: PassRegistry<TensorIr> = PassRegistry::standard();
    assert!(PassManager::from_pipeline(&registry, PIPELINE).is_ok());
}
