//! Archives: any bytes are a module or an error.
//!
//! Mutated zip files rarely get past their directory, so inputs that are no zip file become the entries of one: parts between
//! `\n==== NAME\n` lines, with what they lack taken from a good archive.

use frazil_torchscript::{LoadOptions, load_bytes};
use std::io::{Cursor, Write};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// Loads `input`; what loads is verified.
pub fn run(input: &[u8]) {
    let bytes = if input.starts_with(b"PK") {
        input.to_vec()
    } else {
        match assemble(input) {
            Some(bytes) => bytes,
            None => return,
        }
    };
    let (ctx, catalogue) = super::catalogue();
    if let Ok(module) = load_bytes(bytes, &LoadOptions::new(&ctx, &catalogue)) {
        for (_, function) in module.unit.functions() {
            function.graph.verify(Some(&catalogue)).ok();
        }
    }
}

const MARK: &[u8] = b"\n==== ";

fn assemble(input: &[u8]) -> Option<Vec<u8>> {
    let mut entries = vec![
        ("version".to_owned(), &b"3\n"[..]),
        ("constants.pkl".to_owned(), b"\x80\x02)."),
    ];
    let mut rest = input.strip_prefix(MARK)?;
    loop {
        let next = rest.windows(MARK.len()).position(|w| w == MARK);
        let part = &rest[..next.unwrap_or(rest.len())];
        let line = part.iter().position(|b| *b == b'\n')?;
        let name = String::from_utf8_lossy(&part[..line]).into_owned();
        entries.retain(|(n, _)| *n != name);
        entries.push((name, &part[line + 1..]));
        match next {
            Some(next) => rest = &rest[next + MARK.len()..],
            None => break,
        }
    }
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for (name, bytes) in entries {
        zip.start_file(format!("m/{name}"), options).ok()?;
        zip.write_all(bytes).ok()?;
    }
    Some(zip.finish().ok()?.into_inner())
}
