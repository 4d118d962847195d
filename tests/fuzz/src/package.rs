//! Compiled methods in cache folders, and tuning files. What was read can be written, and is read as the same; code is loaded or refused, and never run.
//!
//! An input is a header in JSON, objects and a tail, with a line's end and `\n====\n` between. Hashes, the sizes of objects and those of the tail are put in
//! around it, so that what is behind them is reached: `null` in the header stands for the right value. After `r` the input is a file as it is, after `t` it
//! is a tuning file.

use super::memory;
use frazil_executor::{Package, RunOptions};
use frazil_planner::tune::Tuning;
use frazil_syntax::{CacheFolder, Secret};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use tempfile::TempDir;

/// The folder's secret, which the first write creates.
static SECRET: LazyLock<Secret> = LazyLock::new(|| {
    let folder = CacheFolder::new(FOLDER.path(), u64::MAX);
    let written = folder.write(NAME, |_, _| Ok(true));
    assert!(written.is_ok_and(|written| written), "temporary files can be written");
    folder.open(NAME).expect("what was written is read").1
});
static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("temporary files can be made"));
/// Between objects and tail.
const MARK: &[u8] = b"\n====\n";
const NAME: &str = "0123456789abcdef.method";
const KEY: &str = "key";
/// The form of files; `crates/executor/src/package/stored.rs` says it in words.
const KIND: &[u8; 8] = b"FRAZILP8";
const PAGE: usize = 4096;
/// Larger sections of the tail are left as they are. One above this is mapped.
const MOST: usize = (1 << 20) + PAGE;
/// Bytes beyond which large allocations are refused.
const MEMORY: usize = 1 << 30;

/// Reads a file.
///
/// # Panics
/// When what was read differs from what is written of it.
pub fn run(input: &[u8]) {
    loads(input);
}

/// Does what [`run`] does, and returns whether there was code and it was loaded.
pub fn loads(input: &[u8]) -> bool {
    match input.split_first() {
        Some((b't', bytes)) => {
            tuning(bytes);
            false
        }
        Some((b'r', bytes)) => memory::refusing(MEMORY, || package(bytes)),
        _ => file(input).is_some_and(|bytes| memory::refusing(MEMORY, || package(&bytes))),
    }
}

fn package(bytes: &[u8]) -> bool {
    write(FOLDER.path(), bytes);
    let folder = CacheFolder::new(FOLDER.path(), u64::MAX);
    let Some((package, note)) = Package::read(&folder, NAME, KEY) else {
        return false;
    };
    let written = |package: &Package| {
        let mut out = Vec::new();
        let written = package.write(&SECRET, KEY, note.clone(), &mut out);
        assert!(
            written.expect("memory can be written to"),
            "an entry that was read is not written"
        );
        out
    };
    let again = written(&package);
    write(FOLDER.path(), &again);
    let (twice, same_note) = Package::read(&folder, NAME, KEY).expect("what was written is read");
    assert!(
        note == same_note && again == written(&twice),
        "an entry is not what it was"
    );
    drop(twice);
    let loaded = package.load(&RunOptions::default());
    if let Ok(code) = &loaded {
        let ports = || code.inputs().iter().chain(code.outputs());
        assert!(ports().all(|port| port.bytes() >= port.elements() && isize::try_from(port.bytes()).is_ok()));
        assert!(code.results().len() <= code.outputs().len());
        // More memory, or an error.
        drop(code.instance());
    }
    loaded.is_ok()
}

/// Replaces the file: what was mapped stays as it was.
fn write(folder: &Path, bytes: &[u8]) {
    let path = folder.join(NAME);
    drop(std::fs::remove_file(&path));
    std::fs::write(path, bytes).expect("temporary files can be written");
}

/// The file that `input` stands for.
fn file(input: &[u8]) -> Option<Vec<u8>> {
    let end = input.iter().position(|b| *b == b'\n').unwrap_or(input.len());
    let (header, rest) = input.split_at(end);
    let rest = rest.get(1..).unwrap_or_default();
    let (objects, tail) = match rest.windows(MARK.len()).position(|w| w == MARK) {
        Some(at) => (&rest[..at], &rest[at + MARK.len()..]),
        None => (rest, &[][..]),
    };
    let mut header: Value = serde_json::from_slice(header).ok()?;
    if let Some(sizes) = header.get_mut("objects").filter(|sizes| sizes.is_null()) {
        *sizes = vec![objects.len()].into();
    }
    let size = |value: Option<&Value>| Some(usize::try_from(value?.as_u64()?).ok()?).filter(|&size| size <= MOST);
    let constants = size(header.get("constants"));
    let prepared = size(header.pointer("/contents/preparation/1"));
    let tail = match (constants, prepared) {
        (Some(constants), Some(prepared)) => {
            let bytes = |count| tail.iter().chain(&[0; PAGE]).cycle().copied().take(count);
            let mut sections: Vec<u8> = bytes(constants).collect();
            sections.resize(constants.next_multiple_of(PAGE), 0);
            sections.extend(bytes(prepared));
            sections
        }
        _ => tail.to_vec(),
    };
    if let Some(hash) = header.get_mut("tail").filter(|hash| hash.is_null()) {
        *hash = blake3::hash(&tail).as_bytes().iter().copied().collect();
    }
    let header = header.to_string();
    let length = (header.len() as u64).to_le_bytes();
    let mut bytes = SECRET.seal(KIND, &[&length, header.as_bytes(), objects]);
    bytes.resize(bytes.len().next_multiple_of(PAGE), 0);
    bytes.extend_from_slice(&tail);
    Some(bytes)
}

fn tuning(bytes: &[u8]) {
    let path = |name: &str| -> PathBuf { FOLDER.path().join(name) };
    std::fs::write(path("model.tune"), bytes).expect("temporary files can be written");
    if let Ok(tuning) = Tuning::read(&path("model.tune")) {
        tuning.write(&path("again.tune")).expect("what was read can be written");
        let again = Tuning::read(&path("again.tune")).expect("what was written can be read");
        assert!(tuning == again, "measurements are not what they were");
        let (measured, better) = tuning.counts();
        assert!(better <= measured);
    }
}
