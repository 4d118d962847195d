//! Archives: any bytes are a module or an error.
//!
//! Mutated zip files rarely get past their directory, so inputs that are no zip file become the entries of one: parts between
//! `\n==== NAME\n` lines, with what they lack taken from a good archive.

use super::memory;
use frazil_torchscript::{LoadOptions, load_bytes};
use std::io::{Cursor, Write};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// Loads `input`; what loads is verified.
///
/// # Panics
/// When a graph does not verify, or reading takes more memory than it may.
pub fn run(input: &[u8]) {
    let Some(bytes) = bytes_of(input) else { return };
    let (ctx, catalogue) = super::catalogue();
    let budget = memory::reader_budget(bytes.len());
    let loaded = memory::within(budget, || load_bytes(bytes, &LoadOptions::new(&ctx, &catalogue)));
    if let Ok(module) = loaded {
        for (_, function) in module.unit.functions() {
            function.graph.verify(Some(&catalogue)).ok();
        }
    }
}

/// The archive that `input` stands for.
pub fn bytes_of(input: &[u8]) -> Option<Vec<u8>> {
    entries_or(input, &[("version", b"3\n"), ("constants.pkl", b"\x80\x02).")])
}

/// A zip file as it is, or the one that has these entries and those that `input` lists.
pub fn entries_or(input: &[u8], entries: &[(&str, &'static [u8])]) -> Option<Vec<u8>> {
    match input.starts_with(b"PK") {
        true => Some(input.to_vec()),
        false => assemble(input, entries),
    }
}

const MARK: &[u8] = b"\n==== ";

fn assemble(input: &[u8], defaults: &[(&str, &'static [u8])]) -> Option<Vec<u8>> {
    let mut entries: Vec<(String, &[u8])> = defaults.iter().map(|(name, part)| (name.to_string(), *part)).collect();
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
