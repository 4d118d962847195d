//! What several tests share.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "test helpers, of which each test uses some"
)]

pub mod listing;

use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use frazil_ir::schema::{Alias, AliasUse, Catalogue};
use frazil_ir::{Context, Graph};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// The catalogue of the dialects, which stand above this crate.
const SCHEMAS: &[&str] = &[
    include_str!("../../../../../dialects/aten/src/schemas/aten.txt"),
    include_str!("../../../../../dialects/aten/src/schemas/prims.txt"),
    include_str!("../../../../../dialects/aten/src/schemas/quantized.txt"),
    include_str!("../../../../../dialects/aten/src/schemas/torchvision.txt"),
    include_str!("../../../../../dialects/prim/src/schemas.txt"),
];

/// Some of the other names that the dialects give to operators.
const ALIASES: &[(&str, &str)] = &[
    ("aten::absolute", "aten::abs"),
    ("aten::clip", "aten::clamp"),
    ("aten::concat", "aten::cat"),
    ("aten::greater", "aten::gt"),
    ("aten::multiply", "aten::mul"),
    ("aten::true_divide", "aten::div"),
];

/// A context and the catalogue of all operators.
pub fn catalogue() -> (Arc<Context>, Catalogue) {
    let ctx = Arc::new(Context::new());
    let mut catalogue = Catalogue::new(Arc::clone(&ctx));
    SCHEMAS.iter().for_each(|text| catalogue.add_lines(text));
    for (name, operator) in ALIASES {
        let alias = Alias {
            operator: ctx.symbol(operator),
            used: AliasUse::Everywhere,
        };
        catalogue.add_alias(ctx.symbol(name), alias);
    }
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

/// The listing as one text.
pub fn show(graph: &Graph) -> String {
    listing::list_graph(graph).join("\n")
}
