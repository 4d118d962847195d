//! Graphs as lines in which values are numbered: ours and those that PyTorch printed, to be compared up to the names of values.

use std::collections::HashMap;

use frazil_ir::{AttributeValue, BlockId, Constant, Graph, ValueId, symbols};

/// A graph as lines in which values are numbered in the order of their definition.
#[derive(Default)]
pub struct Listing {
    /// The numbers of values.
    pub numbers: HashMap<String, usize>,
    /// The lines so far.
    pub lines: Vec<String>,
}

impl Listing {
    /// Gives a value the next number.
    pub fn define(&mut self, value: &str) -> String {
        let number = self.numbers.len();
        self.numbers.insert(value.to_owned(), number);
        format!("%{number}")
    }

    /// The number of a value.
    pub fn used(&self, value: &str) -> String {
        self.numbers
            .get(value)
            .map_or_else(|| format!("undefined {value}"), |number| format!("%{number}"))
    }
}

/// The listing of one of our graphs.
pub fn list_graph(graph: &Graph) -> Vec<String> {
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
pub fn list_text(text: &str) -> Vec<String> {
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
