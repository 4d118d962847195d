//! Text of the tensor IR: what is read is valid, prints, and reads back as the same; passes leave it valid, with fuel for some rewrites and for all. The
//! rest is an error that can be shown.

use super::{memory, program};
use frazil::Limits;
use frazil_pass_manager::{PassError, PassManager, PassRegistry};
use frazil_syntax::render;
use frazil_tensor_ir::standard::PIPELINE;
use frazil_tensor_ir::text::{Function, ParseOptions, PrintOptions, parse_with, print_with};
use frazil_tensor_ir::verify::verify;
use frazil_tensor_ir::{TensorGraph, TensorIr};

/// Reads `text`, and what it prints, before and after passes.
///
/// # Panics
/// If printed text does not read back as the same, or a pass panics or leaves a graph that is not valid.
pub fn run(text: &str) {
    let session = program::session();
    let options = ParseOptions {
        operators: Some(session.registry()),
        ..ParseOptions::default()
    };
    let budget = memory::reader_budget(text.len());
    let function = match memory::within(budget, || parse_with(text, options)) {
        Ok(function) => function,
        Err(error) => {
            render("input.tensors", text, &error.diagnostics, false);
            return;
        }
    };
    assert_eq!(verify(&function.graph), [], "a graph that was read is not valid");
    reads_back("as it is", &function.name, &function.graph, options);
    let passes: PassRegistry<TensorIr> = PassRegistry::standard();
    for limit in [Some(1), Some(3), None] {
        let mut manager = PassManager::from_pipeline(&passes, PIPELINE).expect("the pipeline is well-formed");
        manager.verify_each(true);
        manager.limit(limit);
        manager.limits(Limits::untrusted());
        let Function { name, mut graph, .. } = function.clone();
        match manager.run_on_graph(&mut graph, &()) {
            Ok(_) => reads_back("after passes", &name, &graph, options),
            Err(error) => {
                let text = error.to_string();
                assert!(matches!(error.root(), PassError::Exceeded(_)), "{text}");
            }
        }
    }
}

fn reads_back(when: &str, name: &str, graph: &TensorGraph, options: ParseOptions<'_>) {
    let mut graph = graph.clone();
    graph.compact();
    let print = |name: &str, graph: &TensorGraph| {
        let options = PrintOptions {
            inline: i64::MAX,
            ..PrintOptions::default()
        };
        print_with(name, graph, options)
    };
    let once = print(name, &graph);
    // Elements such as NaN have no text.
    if once.contains(" elided") {
        return;
    }
    let again = parse_with(&once, options).unwrap_or_else(|error| {
        let shown = render("printed", &once, &error.diagnostics, false);
        panic!("{when}: printed text does not read back:\n{shown}\n{once}")
    });
    let twice = print(&again.name, &again.graph);
    assert!(once == twice, "{when}: printing is not stable:\n{once}\n{twice}");
}
