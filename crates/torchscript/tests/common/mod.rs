//! What several tests share.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "test helpers, of which each test uses some"
)]

use std::collections::HashMap;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use frazil_ir::schema::Catalogue;
use frazil_ir::{AttributeValue, BlockId, Constant, Context, Graph, ValueId, symbols};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// The catalogue of the dialects, which stand above this crate.
const SCHEMAS: &[&str] = &[
    include_str!("../../../../dialects/aten/src/schemas/aten.txt"),
    include_str!("../../../../dialects/aten/src/schemas/prims.txt"),
    include_str!("../../../../dialects/aten/src/schemas/quantized.txt"),
    include_str!("../../../../dialects/aten/src/schemas/torchvision.txt"),
    include_str!("../../../../dialects/prim/src/schemas.txt"),
];

/// A context and the catalogue of all operators.
pub fn catalogue() -> (Arc<Context>, Catalogue) {
    let ctx = Arc::new(Context::new());
    let mut catalogue = Catalogue::new(Arc::clone(&ctx));
    SCHEMAS.iter().for_each(|text| catalogue.add_lines(text));
    (ctx, catalogue)
}

/// An archive of these records, stored below the directory `top`.
pub fn pack<B: AsRef<[u8]>>(top: &str, records: &[(&str, B)]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in records {
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        writer.start_file(format!("{top}/{name}"), options).unwrap();
        writer.write_all(bytes.as_ref()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// All archives in `folder` and the folders below, sorted.
pub fn archives(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.extension() {
                _ if path.is_dir() => folders.push(path),
                Some(extension) if extension == "pt" => found.push(path),
                _ => {}
            }
        }
    }
    found.sort();
    found
}

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

/// The listing as one text.
pub fn show(graph: &Graph) -> String {
    list_graph(graph).join("\n")
}
