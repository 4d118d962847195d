//! The examples of docs/ir-text.md behave as the page states.

use frazil_ir::Context;
use frazil_syntax::{
    ModulePrintOptions, NoTensors, ParseOptions, Parsed, parse_any, print_graph, print_module_to_string, render,
};
use std::sync::Arc;

/// Returns the fenced examples: the info string, the text, and its line.
fn examples(page: &str) -> Vec<(&str, String, usize)> {
    let mut out = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(mark) = line.strip_prefix("```") else { continue };
        let body: Vec<_> = lines.by_ref().map(|(_, l)| l).take_while(|l| *l != "```").collect();
        out.push((mark, body.join("\n") + "\n", number + 1));
    }
    out
}

#[test]
fn the_examples_of_the_page_are_right() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/ir-text.md");
    let page = std::fs::read_to_string(path).unwrap();
    let mut tested = 0;
    for (mark, text, line) in examples(&page) {
        let Some(mark) = mark.strip_prefix("ir") else { continue };
        tested += 1;
        let parsed = parse_any(&Arc::new(Context::new()), &text, ParseOptions::default(), &NoTensors);
        if let Some(code) = mark.trim().strip_prefix("error=") {
            let Err(error) = parsed else {
                panic!("line {line}: this should not parse")
            };
            assert_eq!(error.diagnostics[0].code, code, "line {line}");
            continue;
        }
        let parsed = parsed.unwrap_or_else(|e| panic!("line {line}:\n{}", render(path, &text, &e.diagnostics, false)));
        let printed = match parsed {
            Parsed::Graph(g) => print_graph(&g.graph),
            Parsed::Module(m) => print_module_to_string(&m, ModulePrintOptions::default()),
        };
        if mark.trim() != "accepted" {
            assert_eq!(printed, text, "line {line}");
        }
    }
    assert!(tested >= 12, "only {tested} examples");
}
