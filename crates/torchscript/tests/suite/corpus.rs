//! The corpus: every archive loads, and graphs are PyTorch's up to the names of values: nodes, operands, types, order.

use crate::common;

use common::listing::{list_graph, list_text};
use common::{archives, catalogue};
use frazil_ir::{Graph, Module, symbols};
use frazil_torchscript::{LoadOptions, load};

fn forward(module: &Module) -> &Graph {
    &module
        .method_function(symbols::FORWARD)
        .expect("a forward method")
        .graph
}

#[test]
fn corpus_archives_load() {
    let Some(corpus) = frazil_recorded::workspace::corpus() else {
        return;
    };
    let (ctx, catalogue) = catalogue();
    let options = LoadOptions::new(&ctx, &catalogue);
    let mut failures = Vec::new();
    let mut count = 0;
    for path in archives(&corpus.join("models"))
        .into_iter()
        .chain(archives(&corpus.join("ops")))
    {
        count += 1;
        let name = path.strip_prefix(&corpus).unwrap().display().to_string();
        match load(&path, &options) {
            Ok(module) => {
                for (_, function) in module.unit.functions() {
                    if let Err(e) = function.graph.verify(Some(&catalogue)) {
                        failures.push(format!("{name}: {}: {e}", ctx.name(function.name)));
                    }
                }
            }
            Err(e) => failures.push(format!("{name}: {e}")),
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {count} archives:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

#[test]
fn graphs_are_those_of_pytorch() {
    let Some(corpus) = frazil_recorded::workspace::corpus() else {
        return;
    };
    let (ctx, catalogue) = catalogue();
    let options = LoadOptions::new(&ctx, &catalogue);
    let mut failures = Vec::new();
    let mut count = 0;
    for path in archives(&corpus.join("models")) {
        let name = path.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
        let Ok(text) = std::fs::read_to_string(corpus.join("ir").join(&name).join("graph.ir")) else {
            continue;
        };
        count += 1;
        let Ok(module) = load(&path, &options) else {
            failures.push(format!("{name}: does not load"));
            continue;
        };
        let ours = list_graph(forward(&module));
        let theirs = list_text(&text);
        if ours != theirs {
            let at = ours.iter().zip(&theirs).take_while(|(a, b)| a == b).count();
            let show = |list: &[String]| {
                list.iter()
                    .skip(at.saturating_sub(2))
                    .take(5)
                    .cloned()
                    .collect::<Vec<_>>()
            };
            failures.push(format!(
                "{name}: {} lines against {}; line {at}:\n  {:#?}\nagainst\n  {:#?}",
                ours.len(),
                theirs.len(),
                show(&ours),
                show(&theirs)
            ));
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {count} graphs differ:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

/// PyTorch prints the places of nodes in nested blocks; where it knows a file, ours must be the same.
#[test]
fn nested_nodes_have_pytorchs_places() {
    let Some(corpus) = frazil_recorded::workspace::corpus() else {
        return;
    };
    let (ctx, catalogue) = catalogue();
    let options = LoadOptions::new(&ctx, &catalogue);
    let mut failures = Vec::new();
    let mut count = 0;
    for path in archives(&corpus.join("models")) {
        let name = path.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
        let Ok(text) = std::fs::read_to_string(corpus.join("ir").join(&name).join("graph.ir")) else {
            continue;
        };
        let module = load(&path, &options).unwrap();
        let graph = forward(&module);
        let lines = text.lines().skip_while(|line| !line.ends_with("):")).skip(1);
        let lines = lines.take_while(|line| !line.trim_start().starts_with("return ("));
        // The lines that are nodes: block heads and results are not.
        let nodes =
            lines.filter(|line| !line.trim_start().starts_with("block") && !line.trim_start().starts_with("->"));
        for (line, node) in nodes.zip(graph.all_nodes()) {
            let Some((_, place)) = line.split_once(" # ").filter(|(_, place)| !place.starts_with(':')) else {
                continue;
            };
            count += 1;
            let ours = graph
                .source_range(node)
                .map(|range| range.display(&ctx).to_string())
                .unwrap_or_default();
            if ours != place {
                failures.push(format!("{name}: {}: {ours} against {place}", graph.kind_name(node)));
            }
        }
    }
    assert!(count > 100, "{count} places");
    assert!(
        failures.is_empty(),
        "{} of {count} places differ:\n{}",
        failures.len(),
        failures.join("\n")
    );
}
