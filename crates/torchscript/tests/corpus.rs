//! The corpus: every archive loads, and graphs are PyTorch's up to the names of values: nodes, operands, types, order.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use frazil_ir::schema::Catalogue;
use frazil_ir::{AttributeValue, BlockId, Constant, Context, Graph, Module, ValueId, symbols};
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

/// A graph as lines in which values are numbered in the order of their definition.
#[derive(Default)]
struct Listing {
    numbers: HashMap<String, usize>,
    lines: Vec<String>,
}

impl Listing {
    fn define(&mut self, value: &str) -> String {
        let number = self.numbers.len();
        self.numbers.insert(value.to_owned(), number);
        format!("%{number}")
    }

    fn used(&self, value: &str) -> String {
        self.numbers
            .get(value)
            .map_or_else(|| format!("undefined {value}"), |number| format!("%{number}"))
    }
}

/// The listing of one of our graphs.
fn list_graph(graph: &Graph) -> Vec<String> {
    fn block_of(graph: &Graph, block: BlockId, depth: usize, out: &mut Listing) {
        let ctx = graph.ctx();
        let key = |value: ValueId| format!("{value:?}");
        let indent = "  ".repeat(depth);
        let typed = |out: &mut Listing, values: &[ValueId]| {
            let values = values
                .iter()
                .map(|&v| format!("{} : {}", out.define(&key(v)), ctx.show_type(graph.ty(v))));
            values.collect::<Vec<_>>().join(", ")
        };
        let parameters = typed(out, graph.parameters(block));
        out.lines.push(format!("{indent}({parameters}):"));
        for node in graph.nodes(block) {
            let operands: Vec<String> = graph.operands(node).map(|v| out.used(&key(v))).collect();
            let outputs = typed(out, graph.node_outputs(node));
            let attribute = match graph.attribute(node, symbols::ATTR_NAME) {
                Some(AttributeValue::Constant(name)) => format!("[{}]", name.as_str().unwrap()),
                _ => match graph.attribute(node, symbols::ATTR_VALUE) {
                    Some(AttributeValue::Constant(Constant::Int(i))) => format!("[{i}]"),
                    Some(AttributeValue::Constant(Constant::Bool(b))) => format!("[{}]", i32::from(*b)),
                    _ => String::new(),
                },
            };
            let kind = graph.kind_name(node);
            out.lines.push(format!(
                "{indent}{outputs} = {kind}{attribute}({})",
                operands.join(", ")
            ));
            for &inner in graph.node_blocks(node) {
                block_of(graph, inner, depth + 1, out);
            }
        }
        let results: Vec<String> = graph.results(block).map(|v| out.used(&key(v))).collect();
        out.lines.push(format!("{indent}-> ({})", results.join(", ")));
    }
    let mut out = Listing::default();
    block_of(graph, graph.root(), 0, &mut out);
    out.lines
}

/// The listing of the first graph that PyTorch printed.
fn list_text(text: &str) -> Vec<String> {
    let mut out = Listing::default();
    let text: String = text.split("\nwith prim::").next().unwrap().to_owned();
    // The head stands on several lines, one an input.
    let (head, body) = text.split_once("):\n").unwrap();
    let head = head.trim_start_matches("graph").trim_start_matches('(');
    let typed = |out: &mut Listing, list: &str| {
        let mut parts = Vec::new();
        for part in list.split('%').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, ty) = part.split_once(" : ").unwrap();
            parts.push(format!("{} : {}", out.define(name), ty.trim_end_matches(',').trim()));
        }
        parts.join(", ")
    };
    let used = |out: &Listing, list: &str| {
        list.split(", ")
            .filter(|v| !v.is_empty())
            .map(|v| out.used(&v[1..]))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let inputs = typed(&mut out, head);
    out.lines.push(format!("({inputs}):"));
    for line in body.lines() {
        let depth = (line.len() - line.trim_start().len()) / 2;
        let line = line.split(" # ").next().unwrap().trim();
        // Blocks are indented twice: their head, and their nodes.
        let indent = "  ".repeat(depth / 2);
        if let Some(results) = line.strip_prefix("return (").or(line.strip_prefix("-> (")) {
            let results = used(&out, results.strip_suffix(')').unwrap());
            let indent = if line.starts_with("return") { "" } else { &indent };
            out.lines.push(format!("{indent}-> ({results})"));
            if line.starts_with("return") {
                break;
            }
        } else if line.starts_with("block") && line.ends_with("):") {
            let (_, parameters) = line.strip_suffix("):").unwrap().split_once('(').unwrap();
            let parameters = typed(&mut out, parameters);
            out.lines.push(format!("{indent}({parameters}):"));
        } else {
            let (outputs, call) = match line.strip_prefix("= ") {
                Some(call) => ("", call),
                None => line.split_once(" = ").unwrap(),
            };
            let (head, attributes, operands) = match call.split_once('[') {
                Some((head, rest)) if !head.contains('(') => {
                    let (attributes, operands) = rest.rsplit_once("](").unwrap();
                    (head, attributes, operands)
                }
                _ => {
                    let (head, operands) = call.split_once('(').unwrap();
                    (head, "", operands)
                }
            };
            let kind = head
                .strip_suffix(|c: char| c.is_ascii_digit())
                .and_then(|k| k.strip_suffix('_'))
                .unwrap_or(head);
            let attribute = match attributes.split_once('=') {
                Some(("name", name)) => format!("[{}]", name.trim_matches('"')),
                Some(("value", value)) if value.parse::<i64>().is_ok() => format!("[{value}]"),
                _ => String::new(),
            };
            let operands = used(&out, operands.strip_suffix(')').unwrap());
            let outputs = typed(&mut out, outputs);
            out.lines
                .push(format!("{indent}{outputs} = {kind}{attribute}({operands})"));
        }
    }
    out.lines
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
fn graphs_are_those_of_pytorch() {
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
