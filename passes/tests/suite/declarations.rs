//! Declarations of passes are right: their examples have the stated results, and the document that lists them is up to date.

use crate::common;

use common::registry;
use frazil_passes::pipeline::STEPS;
use frazil_passes::{PassInfo, PassManager, PassRegistry};
use frazil_runtime::Registry;
use frazil_syntax::{parse_graph, print_graph};
use std::fmt::Write;

/// Passes whose examples are not graphs: they need a module, or weights of more than a few numbers.
const WITHOUT_GRAPHS: &[&str] = &[
    "inline",
    "freeze",
    "optimize-frozen-graph",
    "remove-dropout",
    "fold-frozen-conv-bn",
    "fold-frozen-conv-add-or-sub",
    "fold-frozen-conv-mul-or-div",
    "fold-frozen-linear-bn",
    "concat-frozen-linear",
    "fuse-frozen-conv-add-relu",
    "transpose-frozen-linear",
    "optimize-for-inference",
];

/// Returns the text of the graph `text` after `pipeline`.
fn run(registry: &Registry, pipeline: &str, text: &str) -> String {
    let mut graph = parse_graph(registry.ctx(), text).unwrap().graph;
    let mut manager = PassManager::from_pipeline(&PassRegistry::standard(), pipeline).unwrap();
    manager.verify_each(true);
    match manager.run_on_graph(&mut graph, registry) {
        Ok(_) => print_graph(&graph),
        Err(e) => e.to_string(),
    }
}

/// Returns the text without the numbers of nameless values, which have no meaning.
fn normal(registry: &Registry, text: &str) -> String {
    match parse_graph(registry.ctx(), text) {
        Ok(parsed) => {
            let mut graph = parsed.graph;
            let mut values = graph.inputs().to_vec();
            for node in graph.all_nodes() {
                values.extend_from_slice(graph.node_outputs(node));
            }
            for v in values {
                let name = graph.value_name(v).map(|n| n.display(graph.ctx()).to_string());
                if name.is_some_and(|n| n.chars().all(|c| c.is_ascii_digit())) {
                    graph.clear_value_name(v);
                }
            }
            print_graph(&graph)
        }
        Err(e) => e.to_string(),
    }
}

#[test]
fn examples_come_out_as_declared() {
    let registry = registry();
    let mut wrong = String::new();
    for info in PassRegistry::standard().passes() {
        if WITHOUT_GRAPHS.contains(&info.name) {
            continue;
        }
        let (got, wanted) = (run(&registry, info.name, info.before), normal(&registry, info.after));
        if normal(&registry, &got) != wanted {
            write!(wrong, "{}: gives\n{got}instead of\n{}\n", info.name, info.after).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn passes_that_are_done_find_nothing_more_to_do() {
    let registry = registry();
    for info in PassRegistry::standard().passes() {
        if WITHOUT_GRAPHS.contains(&info.name) {
            continue;
        }
        let once = run(&registry, info.name, info.before);
        assert_eq!(
            normal(&registry, &run(&registry, info.name, &once)),
            normal(&registry, &once),
            "{}",
            info.name
        );
    }
}

/// Appends the document's section on `info`.
fn section(out: &mut String, info: &PassInfo) {
    writeln!(out, "\n### {}\n\n{}", info.name, info.summary).unwrap();
    if !info.options.is_empty() {
        out.push_str("\n| option | default | |\n| --- | --- | --- |\n");
        for o in info.options {
            writeln!(
                out,
                "| `{}` | `{}` | {} |",
                o.name,
                o.default,
                o.doc.replace('|', "\\|")
            )
            .unwrap();
        }
    }
    if !info.before.is_empty() {
        let before = info.before.trim_end();
        writeln!(
            out,
            "\n```\n{before}\n```\n\nbecomes\n\n```\n{}\n```",
            info.after.trim_end()
        )
        .unwrap();
    }
}

#[test]
fn the_document_lists_what_there_is() {
    const MARK: &str = "<!-- Everything below is generated from the declarations: FRAZIL_BLESS=1 cargo test -p frazil-passes --test suite declarations -->\n";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/passes.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (own, _) = text.split_once(MARK).expect("the document has the mark");
    let mut wanted = format!("{own}{MARK}\n## All passes\n");
    for info in PassRegistry::standard().passes() {
        section(&mut wanted, info);
    }
    wanted.push_str("\n## What runs other pipelines\n");
    for info in STEPS {
        section(&mut wanted, info);
    }
    if std::env::var_os("FRAZIL_BLESS").is_some() {
        std::fs::write(path, &wanted).unwrap();
    }
    let now = std::fs::read_to_string(path).unwrap();
    assert!(
        now == wanted,
        "docs/passes.md is out of date: run this test with FRAZIL_BLESS=1"
    );
}
