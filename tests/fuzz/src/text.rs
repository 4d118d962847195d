//! Text of graphs and modules: what can be read prints to something that reads back as the same; the rest is an error that can be
//! shown.

use super::memory;
use frazil_syntax::{NoTensors, ParseOptions, Parsed, parse_any, print_graph, print_module_to_string, render};

/// Reads `text`, and what can be read again after printing.
///
/// # Panics
/// When what was printed does not read back, or prints differently, or reading takes more memory than it may.
pub fn run(text: &str) {
    let (ctx, catalogue) = super::catalogue();
    let options = ParseOptions {
        catalogue: Some(&catalogue),
        verify: true,
        places: true,
        name: Some("input.ir"),
    };
    let budget = memory::reader_budget(text.len());
    if let Err(error) = memory::within(budget, || parse_any(&ctx, text, options, &NoTensors)) {
        render("input.ir", text, &error.diagnostics, false);
    }
    let parse = |text: &str| parse_any(&ctx, text, ParseOptions::default(), &NoTensors);
    let Ok(parsed) = parse(text) else { return };
    let print = |parsed: &Parsed| match parsed {
        Parsed::Graph(graph) => print_graph(&graph.graph),
        Parsed::Module(module) => print_module_to_string(module, Default::default()),
    };
    let once = print(&parsed);
    let again = match parse(&once) {
        Ok(again) => print(&again),
        Err(error) => panic!(
            "printed text does not parse:\n{}",
            render("printed", &once, &error.diagnostics, false)
        ),
    };
    assert_eq!(once, again, "printing is not stable");
}
