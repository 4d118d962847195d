//! Detection of files in other formats that are passed as TorchScript archives, with advice for each format.

use super::error::ArchiveError;

/// A known file format that is not a TorchScript archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// Name of the format, with an article: `a TensorFlow Lite model`.
    pub what: &'static str,
    /// Instructions for converting the file, or for what to do instead.
    pub advice: &'static str,
}

impl From<Foreign> for ArchiveError {
    fn from(Foreign { what, advice }: Foreign) -> ArchiveError {
        ArchiveError::Foreign { what, advice }
    }
}

/// Advice in an error message: how to write an archive from the model in Python.
const SAVE_IN_PYTHON: &str = "load the model in Python, and write a TorchScript archive of it with torch.jit.script(model).save(PATH) or torch.jit.trace(model, inputs).save(PATH)";

/// Advice in an error message about files with tensors and without code.
const TENSORS_ONLY: &str = "it holds tensors and no code: build the model in Python, load them into it with load_state_dict, and write a TorchScript archive with \
     torch.jit.script(model).save(PATH); or load them into a model that has the code, with Model::load_state_dict";

const MOBILE_FLATBUFFER: Foreign = Foreign {
    what: "a module for PyTorch Mobile in the FlatBuffers format",
    advice: "its code is bytecode, which is not read: write the model from which it was made with torch.jit.save",
};

const LEGACY: Foreign = Foreign {
    what: "a file that torch.save wrote in the format from before PyTorch 1.6",
    advice: "load it in Python with torch.load; a model is then written as a TorchScript archive with torch.jit.script(model).save(PATH)",
};

/// Number of bytes from the start of a file that suffices to detect every format.
pub const HEAD: usize = 512;

/// Signatures of known formats: offset in bytes, expected bytes, format with advice.
const SIGNATURES: &[(usize, &[u8], Foreign)] = &[
    (0, b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19", LEGACY),
    (4, b"PTMF", MOBILE_FLATBUFFER),
    (
        4,
        b"TFL3",
        Foreign {
            what: "a TensorFlow Lite model",
            advice: "only models of PyTorch are read",
        },
    ),
    (
        0,
        b"version https://git-lfs",
        Foreign {
            what: "a pointer of Git LFS, not the file itself",
            advice: "fetch the file with `git lfs pull`",
        },
    ),
    (
        0,
        b"\x93NUMPY",
        Foreign {
            what: "an array of numpy",
            advice: "arrays are inputs: jit-run MODEL --input=FILE.npy",
        },
    ),
    (
        0,
        b"\x89HDF\r\n\x1a\n",
        Foreign {
            what: "an HDF5 file, as Keras writes",
            advice: "only models of PyTorch are read",
        },
    ),
    (
        0,
        b"GGUF",
        Foreign {
            what: "a GGUF file",
            advice: "it holds weights and no code that could be read; only models of PyTorch are",
        },
    ),
    (
        0,
        b"\x1f\x8b",
        Foreign {
            what: "a file that gzip compressed",
            advice: "unpack it first",
        },
    ),
    (
        0,
        b"7z\xbc\xaf\x27\x1c",
        Foreign {
            what: "a 7-zip archive",
            advice: "unpack it first",
        },
    ),
    (
        0,
        b"\x7fELF",
        Foreign {
            what: "a library or program of machine code",
            advice: "the model from which it was compiled is read, not the result",
        },
    ),
    (
        257,
        b"ustar",
        Foreign {
            what: "a tar archive",
            advice: "unpack it first",
        },
    ),
    (
        0,
        b"<!DOCTYPE",
        Foreign {
            what: "a web page",
            advice: "the download gave a page in place of the file: download it again",
        },
    ),
    (
        0,
        b"<!doctype",
        Foreign {
            what: "a web page",
            advice: "the download gave a page in place of the file: download it again",
        },
    ),
    (
        0,
        b"<html",
        Foreign {
            what: "a web page",
            advice: "the download gave a page in place of the file: download it again",
        },
    ),
];

/// Returns the format of a file from its first bytes; `None` for zip files, text and unknown formats.
pub fn of_bytes(bytes: &[u8]) -> Option<Foreign> {
    if bytes.is_empty() {
        return Some(Foreign {
            what: "an empty file",
            advice: "nothing was written or downloaded",
        });
    }
    let has = |offset: usize, signature: &[u8]| bytes.get(offset..).is_some_and(|rest| rest.starts_with(signature));
    let known = SIGNATURES.iter().find(|(offset, signature, _)| has(*offset, signature));
    if let Some((_, _, foreign)) = known {
        return Some(*foreign);
    }
    if is_onnx(bytes) {
        return Some(Foreign {
            what: "an ONNX model",
            advice: "write the model from which it was exported with torch.jit.script(model).save(PATH) or torch.jit.trace(model, inputs).save(PATH)",
        });
    }
    if is_safetensors(bytes) {
        return Some(Foreign {
            what: "a file of tensors (safetensors)",
            advice: TENSORS_ONLY,
        });
    }
    // The marker of a pickle's protocol.
    match bytes {
        [0x80, 2..=5, ..] => Some(Foreign {
            what: "a pickle of Python",
            advice: SAVE_IN_PYTHON,
        }),
        _ => None,
    }
}

/// Returns true for a Protocol Buffers message whose first field is ONNX's format version and whose second field belongs to an ONNX model.
fn is_onnx(bytes: &[u8]) -> bool {
    const PRODUCER: u8 = 0x12;
    const PRODUCER_VERSION: u8 = 0x1a;
    const GRAPH: u8 = 0x3a;
    const OPERATOR_SETS: u8 = 0x42;
    matches!(
        bytes,
        [0x08, 1..=32, PRODUCER | PRODUCER_VERSION | GRAPH | OPERATOR_SETS, ..]
    )
}

/// Returns true if the bytes start with the length of a JSON object and the beginning of that object.
fn is_safetensors(bytes: &[u8]) -> bool {
    let length = bytes.first_chunk::<8>().map(|length| u64::from_le_bytes(*length));
    length.is_some_and(|length| length < 1 << 32) && bytes.get(8..10) == Some(b"{\"")
}

/// Returns the format of a zip file with entries called `names`; `None` if it looks like a TorchScript archive.
pub fn of_entries(names: &[&str]) -> Option<Foreign> {
    let ends = |end: &str| {
        let is = |name: &str| {
            name.strip_suffix(end)
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
        };
        names.iter().any(|name| is(name))
    };
    let has_code = || {
        names
            .iter()
            .any(|name| name.starts_with("code/") || name.contains("/code/"))
    };
    let foreign = |what, advice| Some(Foreign { what, advice });
    // A package holds modules with code of their own.
    if ends(".data/extern_modules") {
        return foreign(
            "a package that torch.package wrote",
            "load the model from it in Python with torch.package.PackageImporter, and write a TorchScript archive with torch.jit.script(model).save(PATH)",
        );
    }
    if ends("archive_format") || ends("serialized_exported_program.json") {
        return foreign(
            "an exported program (.pt2) that torch.export or AOTInductor wrote",
            "write a TorchScript archive: torch.jit.trace(torch.export.load(FILE).module(), inputs).save(PATH), or torch.jit.script of the model itself",
        );
    }
    if has_code() || ends("constants.pkl") {
        return None;
    }
    if ends("bytecode.pkl") {
        return foreign(
            "a module for PyTorch Mobile without its source",
            "its code is bytecode, which is not read: write the model from which it was made with torch.jit.save",
        );
    }
    if ends("data.pkl") {
        return foreign("a checkpoint that torch.save wrote, such as a state dict", TENSORS_ONLY);
    }
    if names.iter().any(|name| name.ends_with(".npy")) {
        return foreign(
            "a file of numpy's arrays (.npz)",
            "arrays are inputs, one to a file: jit-run MODEL --input=FILE.npy",
        );
    }
    foreign("a zip file of something else", SAVE_IN_PYTHON)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn what(names: &[&str]) -> Option<&'static str> {
        of_entries(names).map(|foreign| foreign.what)
    }

    #[test]
    fn text_and_zips_are_not_told_by_their_first_bytes() {
        for bytes in [
            &b"PK\x03\x04"[..],
            b"graph(%x : Tensor):\n",
            b"def f(x):\n",
            b"\x08",
            b"\x80",
        ] {
            assert_eq!(of_bytes(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn other_formats_are_told_by_their_first_bytes() {
        let cases: [(&[u8], &str); 6] = [
            (b"", "an empty file"),
            (b"\x08\x09\x12\x07pytorch", "an ONNX model"),
            (b"\x10\0\0\0\0\0\0\0{\"a\":{}}", "a file of tensors (safetensors)"),
            (b"\x80\x04\x95", "a pickle of Python"),
            (b"\x2c\0\0\0PTMF", MOBILE_FLATBUFFER.what),
            (b"\x93NUMPY\x01", "an array of numpy"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(of_bytes(bytes).map(|f| f.what), Some(expected));
        }
    }

    #[test]
    fn zip_files_are_told_by_their_entries() {
        assert_eq!(what(&["m/data.pkl", "m/code/__torch__.py", "m/constants.pkl"]), None);
        assert_eq!(what(&["m/constants.pkl", "m/version"]), None, "damaged, but an archive");
        assert_eq!(
            what(&["code/__torch__.py", "data.pkl"]),
            None,
            "without the top directory"
        );
        assert!(what(&["m/archive_format", "m/models/model.json"]).is_some_and(|w| w.contains(".pt2")));
        assert!(what(&["m/data.pkl", "m/version", "m/data/0"]).is_some_and(|w| w.contains("torch.save")));
        assert!(what(&["m/.data/extern_modules", "m/a/data.pkl"]).is_some_and(|w| w.contains("torch.package")));
        assert!(what(&["a.npy"]).is_some_and(|w| w.contains("npz")));
        assert!(what(&["d/a.txt"]).is_some_and(|w| w.contains("zip")));
    }
}
