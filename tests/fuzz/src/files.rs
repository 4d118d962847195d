//! Files beside models: checkpoints, `.safetensors`, tensors and checksums beside `.ir` text, values as JSON, sealed files, `.npy` files; and literals as the tools'
//! options have them. Any bytes are read or refused.
//!
//! The first byte of an input chooses the reader.

use super::{archive, memory, program};
use frazil::{Checkpoint, Loaded, read_safetensors};
use frazil_recorded::tensors::Tensors;
use frazil_recorded::value::Outcome;
use frazil_syntax::{PrivateFolder, Secret, read_sealed};
use frazil_tools::literal::Literal;
use frazil_tools::npy::{npy_bytes, read_npy};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use tempfile::TempDir;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("temporary files can be made"));
const KIND: &[u8; 8] = b"FUZZING1";
/// Bytes beyond which large tensors of literals are refused.
const LITERALS: usize = 64 << 20;
/// Between the parts of an input that stand for two files.
const MARK: &[u8] = b"\n====\n";

/// Reads a file.
pub fn run(input: &[u8]) {
    let Some((&reader, bytes)) = input.split_first() else {
        return;
    };
    match reader {
        b's' => safetensors(bytes),
        b'i' => text_with_tensors(bytes),
        b'j' => values(bytes),
        b'k' => sealed(bytes),
        b'l' => literal(&String::from_utf8_lossy(bytes)),
        b'n' => array(bytes),
        _ => checkpoint(bytes),
    }
}

/// A file of these bytes.
fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = FOLDER.path().join(name);
    std::fs::write(&path, bytes).expect("temporary files can be written");
    path
}

/// The parts before and after the first [`MARK`].
fn parts(bytes: &[u8]) -> (&[u8], &[u8]) {
    match bytes.windows(MARK.len()).position(|w| w == MARK) {
        Some(at) => (&bytes[..at], &bytes[at + MARK.len()..]),
        None => (bytes, &[]),
    }
}

/// A safetensors file starts with the length of its header, which mutations seldom get right: it is put there.
fn tensor_file(bytes: &[u8]) -> Vec<u8> {
    match bytes.first() {
        Some(b'{') => {
            let header = bytes
                .iter()
                .position(|b| *b == b'\n')
                .map_or(bytes.len(), |end| end + 1);
            [&(header as u64).to_le_bytes()[..], bytes].concat()
        }
        _ => bytes.to_vec(),
    }
}

fn safetensors(bytes: &[u8]) {
    let path = file("input.safetensors", &tensor_file(bytes));
    let read = memory::within(memory::reader_budget(bytes.len()), || read_safetensors(&path));
    if let Ok(state) = read {
        let again = FOLDER.path().join("again.safetensors");
        frazil::write_safetensors(&state, &again).expect("what was read can be written");
        let twice = read_safetensors(&again).expect("what was written can be read");
        assert!(state.keys().eq(twice.keys()), "names are lost");
    }
}

fn text_with_tensors(bytes: &[u8]) {
    let (text, tensors) = parts(bytes);
    let path = file("input.ir", text);
    file("input.safetensors", &tensor_file(tensors));
    let session = program::session();
    if let Ok(Loaded::Model(model)) = session.load(&path).map(Loaded::Model) {
        let again = FOLDER.path().join("again.ir");
        Loaded::Model(model)
            .save_ir(&again)
            .expect("what was read can be written");
        session.load(&again).expect("what was written can be read");
    }
}

fn values(bytes: &[u8]) {
    let (json, tensors) = parts(bytes);
    let path = file("values.safetensors", &tensor_file(tensors));
    if let (Ok(json), Ok(tensors)) = (serde_json::from_slice(json), Tensors::open(&path)) {
        drop(Outcome::from_json(&json, &tensors).map(|outcome| format!("{outcome:?}")));
    }
}

/// The front of a sealed file: as it is, and with a header that belongs to it.
fn sealed(bytes: &[u8]) {
    drop(read_sealed(KIND, &mut &*bytes, bytes.len() as u64, 1 << 20));
    let secret = Secret::random().expect("there are random bytes");
    let _ = secret.unseal(KIND, bytes);
    let whole = secret.seal(KIND, &[bytes]);
    assert_eq!(secret.unseal(KIND, &whole), Some(bytes), "a sealed file is as it was");
    let folder = PrivateFolder::new(FOLDER.path().join("private"));
    let name = "sealed";
    let written = folder.write(name, |file| {
        std::io::Write::write_all(file, &whole)?;
        Ok(true)
    });
    assert!(written.is_ok(), "temporary files can be written");
    if let Ok(read) = folder.read(name, whole.len() as u64) {
        assert!(read == whole, "a private file is as it was");
    }
}

fn array(bytes: &[u8]) {
    let path = file("input.npy", bytes);
    if let Ok(tensor) = read_npy(&path) {
        let again = npy_bytes(&tensor).expect("what was read can be written");
        let twice = read_npy(&file("again.npy", &again)).expect("what was written can be read");
        assert!(twice.sizes() == tensor.sizes() && twice.dtype() == tensor.dtype());
    }
}

fn literal(text: &str) {
    match text.parse::<Literal>() {
        // Files are read from anywhere.
        Ok(literal) if !names_file(&literal) => drop(memory::refusing(LITERALS, || literal.value())),
        Ok(_) | Err(_) => {}
    }
}

fn names_file(literal: &Literal) -> bool {
    match literal {
        Literal::File(_) => true,
        Literal::List(items) | Literal::Tuple(items) => items.iter().any(names_file),
        Literal::Dict(entries) => entries.iter().any(|(key, value)| names_file(key) || names_file(value)),
        Literal::Tensor(elements, _) => names_file(elements),
        _ => false,
    }
}

fn checkpoint(bytes: &[u8]) {
    let Some(bytes) = archive::entries_or(bytes, &[("byteorder", b"little"), ("version", b"3\n")]) else {
        return;
    };
    let budget = memory::reader_budget(bytes.len());
    let read = memory::within(budget, || Checkpoint::from_bytes(Path::new("input.pt"), bytes));
    if let Ok(checkpoint) = read {
        drop(checkpoint.entries(&[]).map(|entries| entries.len()));
        drop(checkpoint.state_dict().map(|state| state.len()));
        for key in ["model", "state_dict"] {
            drop(checkpoint.state_dict_at(&[key]));
        }
    }
}
