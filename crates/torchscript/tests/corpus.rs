//! The corpus: every archive loads, and graphs are made of the same nodes as PyTorch's, in the same order.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use frazil_ir::schema::Catalogue;
use frazil_ir::{BlockId, Context, Graph, Module, symbols};
use frazil_torchscript::{LoadOptions, load};

/// The catalogue of the dialects, which stand above this crate.
const SCHEMAS: &[&str] = &[
    include_str!("../../../dialects/aten/src/schemas/aten.txt"),
    include_str!("../../../dialects/aten/src/schemas/prims.txt"),
    include_str!("../../../dialects/aten/src/schemas/quantized.txt"),
    include_str!("../../../dialects/aten/src/schemas/torchvision.txt"),
    include_str!("../../../dialects/prim/src/schemas.txt"),
];

fn catalogue() -> (Arc<Context>, Catalogue) {
    let ctx = Arc::new(Context::new());
    let mut catalogue = Catalogue::new(Arc::clone(&ctx));
    SCHEMAS.iter().for_each(|text| catalogue.add_lines(text));
    (ctx, catalogue)
}

fn archives(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap().path();
        if entry.is_dir() {
            found.extend(std::fs::read_dir(entry).unwrap().map(|file| file.unwrap().path()));
        }
    }
    found.retain(|path| path.extension().is_some_and(|extension| extension == "pt"));
    found.sort();
    found
}

/// Kinds in the order of the graph, one line a node, indented by block.
fn kinds(graph: &Graph, block: BlockId, depth: usize, out: &mut Vec<String>) {
    for node in graph.nodes(block) {
        let name = match graph.attribute_symbol(node, symbols::ATTR_NAME) {
            Some(name) if graph.kind(node) != symbols::PRIM_CONSTANT => format!(" {}", graph.ctx().name(name)),
            _ => String::new(),
        };
        out.push(format!("{}{}{name}", "  ".repeat(depth), graph.kind_name(node)));
        for (i, &block) in graph.node_blocks(node).iter().enumerate() {
            out.push(format!("{}block{i}", "  ".repeat(depth + 1)));
            kinds(graph, block, depth + 2, out);
        }
    }
}

/// The same of a graph that PyTorch printed: its first graph, without the graphs of forks.
fn printed_kinds(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    for line in text.lines().skip_while(|line| !line.ends_with("):")).skip(1) {
        let depth = line.len() - line.trim_start().len();
        let line = line.trim();
        if depth == 2 && line.starts_with("return (") {
            break;
        }
        if line.starts_with("-> (") {
            continue;
        }
        let indent = "  ".repeat((depth - 2) / 2);
        if line.starts_with("block") && line.ends_with("):") {
            out.push(format!("{indent}{}", line.split('(').next().unwrap()));
            continue;
        }
        let body = line
            .strip_prefix("= ")
            .unwrap_or_else(|| line.split_once(" = ").unwrap().1);
        let kind = body.split(['[', '(']).next().unwrap();
        let kind = kind
            .strip_suffix(|c: char| c.is_ascii_digit())
            .and_then(|k| k.strip_suffix('_'))
            .unwrap_or(kind);
        let name = match body.split_once("[name=\"") {
            Some((before, rest)) if !before.contains('(') && kind != "prim::Constant" => {
                format!(" {}", rest.split('"').next().unwrap())
            }
            _ => String::new(),
        };
        out.push(format!("{indent}{kind}{name}"));
    }
    out
}

fn forward(module: &Module) -> &Graph {
    &module
        .method_function(symbols::FORWARD)
        .expect("a forward method")
        .graph
}

#[test]
fn corpus_archives_load() {
    let Some(corpus) = std::env::var_os("FRAZIL_CORPUS").map(PathBuf::from) else {
        return;
    };
    let (ctx, catalogue) = catalogue();
    let options = LoadOptions {
        ctx: &ctx,
        catalogue: &catalogue,
    };
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
fn graphs_have_the_nodes_of_pytorchs() {
    let Some(corpus) = std::env::var_os("FRAZIL_CORPUS").map(PathBuf::from) else {
        return;
    };
    let (ctx, catalogue) = catalogue();
    let options = LoadOptions {
        ctx: &ctx,
        catalogue: &catalogue,
    };
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
        let graph = forward(&module);
        let mut ours = Vec::new();
        kinds(graph, graph.root(), 0, &mut ours);
        let theirs = printed_kinds(&text);
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
                "{name}: {} nodes against {}; line {at}: {:?} against {:?}",
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
