//! Files of other formats are refused with the name of their format; tests/generate/fixtures/make_foreign.py wrote them.

use frazil::{EngineKind, EngineOptions, Session, Tensor};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/foreign")
}

/// Each file, the name of its format, and a part of the advice.
const FILES: [(&str, &str, &str); 15] = [
    (
        "state_dict.pt",
        "a checkpoint that torch.save wrote, such as a state dict",
        "load_state_dict",
    ),
    (
        "checkpoint.pth",
        "a checkpoint that torch.save wrote, such as a state dict",
        "load_state_dict",
    ),
    (
        "tensor.pt",
        "a checkpoint that torch.save wrote, such as a state dict",
        "torch.jit.script(model).save",
    ),
    (
        "module.pt",
        "a checkpoint that torch.save wrote, such as a state dict",
        "torch.jit.script(model).save",
    ),
    (
        "legacy.pt",
        "a file that torch.save wrote in the format from before PyTorch 1.6",
        "torch.load",
    ),
    (
        "exported.pt2",
        "an exported program (.pt2) that torch.export or AOTInductor wrote",
        "torch.export.load",
    ),
    (
        "package.pt",
        "a package that torch.package wrote",
        "torch.package.PackageImporter",
    ),
    (
        "flatbuffer.ptl",
        "a module for PyTorch Mobile in the FlatBuffers format",
        "torch.jit.save",
    ),
    ("model.onnx", "an ONNX model", "torch.jit.trace(model, inputs)"),
    ("array.npy", "an array of numpy", "--input=FILE.npy"),
    ("arrays.npz", "a file of numpy's arrays (.npz)", "--input=FILE.npy"),
    (
        "other.zip",
        "a zip file of something else",
        "torch.jit.script(model).save",
    ),
    (
        "pointer.pt",
        "a pointer of Git LFS, not the file itself",
        "git lfs pull",
    ),
    ("page.pt", "a web page", "download it again"),
    ("empty.pt", "an empty file", "nothing was written"),
];

#[test]
fn files_of_other_kinds_are_named_with_what_to_do() {
    for (file, what, advice) in FILES {
        let path = folder().join(file);
        let bytes = std::fs::read(&path).expect("the file is there");
        let session = Session::new();
        let errors = [session.load_any(&path).err(), session.load_bytes(&path, bytes).err()];
        for error in errors {
            let text = error.map(|e| e.to_string()).unwrap_or_default();
            let expected = format!("{file}: this is {what}, not a TorchScript archive: ");
            assert!(text.contains(&expected) && text.contains(advice), "{file}: {text}");
        }
    }
}

#[test]
fn a_mobile_archive_with_its_source_runs() {
    let model = Session::new()
        .load(folder().join("mobile.ptl"))
        .expect("its source is there");
    let options = EngineOptions::default().kind(EngineKind::Interpreter);
    let x = Tensor::from_f32(&[1.0, 1.0], &[1, 2]).expect("two elements");
    let mut engine = model.engine(&options).expect("it runs");
    let result = engine.call("forward", &[x.into()]).expect("it runs");
    assert_eq!(result.as_tensor().map(|t| t.sizes().to_vec()), Some(vec![1, 1]));
}

/// Damaged archives are not mistaken for other formats.
#[test]
fn damaged_archives_are_archives() {
    let path = folder().join("../models/residual_cnn/model.pt");
    let bytes = std::fs::read(path).expect("the file is there");
    let cut = bytes.get(..bytes.len() / 2).unwrap_or_default().to_vec();
    let error = Session::new().load_bytes(Path::new("cut.pt"), cut).err();
    let text = error.map(|e| e.to_string()).unwrap_or_default();
    assert!(
        text.contains("not a readable zip archive") && text.contains("so the file is cut off"),
        "{text}"
    );
}
