//! Compiled methods on disk: found again by the next process, and only when they are the right ones.

#![cfg(feature = "codegen")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use frazil::ir::DType;
use frazil::{Engine, EngineOptions, Model, Session, Tensor, Value};
use std::path::{Path, PathBuf};
use std::time::Duration;

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/fixtures/models/{name}/model.pt"))
}

fn options(folder: &Path) -> EngineOptions {
    EngineOptions {
        cache_dir: Some(folder.to_owned()),
        ..EngineOptions::default()
    }
}

/// What a new process would do: a session, a model and an engine of its own. Gives the result and how the code was got.
fn run(model: &Model, folder: &Path, size: i64) -> (Vec<u8>, String) {
    let mut engine = model.engine(&options(folder)).unwrap();
    let result = forward(&mut engine, size);
    (result, engine.notes().join("\n"))
}

fn forward(engine: &mut Engine, size: i64) -> Vec<u8> {
    let image = Tensor::full(DType::Float, &[1, 3, size, size], 0.25.into()).unwrap();
    let result = engine.call("forward", &[Value::from(image)]).unwrap();
    result.as_tensor().unwrap().to_bytes().unwrap()
}

#[test]
fn the_next_process_finds_what_this_one_compiled() {
    let folder = tempfile::tempdir().unwrap();
    let load = || Session::new().load(fixture("residual_cnn")).unwrap();
    let (first, how) = run(&load(), folder.path(), 32);
    assert!(how.contains("compiled in"), "{how}");
    let (second, how) = run(&load(), folder.path(), 32);
    assert!(how.contains("found in"), "{how}");
    assert_eq!(first, second);
    // Other shapes are other code.
    let (_, how) = run(&load(), folder.path(), 40);
    assert!(how.contains("compiled in"), "{how}");
    // An engine that found its code can still do everything else.
    let mut engine = load().engine(&options(folder.path())).unwrap();
    assert_eq!(forward(&mut engine, 32), first);
    assert!(engine.notes()[0].contains("found in"));
    engine.model().unwrap().graph("forward").unwrap();
    engine.snapshot().unwrap();
    let profile = engine.profile(
        "forward",
        &[Tensor::full(DType::Float, &[1, 3, 32, 32], 0.25.into()).unwrap().into()],
        Duration::from_millis(1),
    );
    assert!(!profile.unwrap().unwrap().rows.is_empty());
}

#[test]
fn other_models_and_spoiled_files_are_compiled() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("model.pt");
    std::fs::copy(fixture("residual_cnn"), &copy).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    let code = folder.path().join("code");
    let load = || Session::new().load(&copy).unwrap();
    let (first, _) = run(&load(), &code, 32);

    // A model that is not what the file holds any more.
    let mut changed = load();
    let state = changed.root().state_dict().unwrap();
    let zeroed: frazil::StateDict = state
        .iter()
        .map(|(name, t)| (name.clone(), Tensor::full(t.dtype(), t.sizes(), 0.0.into()).unwrap()))
        .collect();
    changed.load_state_dict(&zeroed, true).unwrap();
    let (zero, how) = run(&changed, &code, 32);
    assert!(how.contains("compiled in"), "{how}");
    assert_ne!(zero, first);

    // A file that was cut off.
    for entry in std::fs::read_dir(&code).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "method") {
            let bytes = std::fs::read(&path).unwrap();
            std::fs::remove_file(&path).unwrap();
            std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        }
    }
    let (again, how) = run(&load(), &code, 32);
    assert!(how.contains("compiled in"), "{how}");
    assert_eq!(again, first);
    assert!(run(&load(), &code, 32).1.contains("found in"));

    // The archive is another one.
    std::fs::copy(fixture("residual_cnn"), &copy).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    assert!(run(&load(), &code, 32).1.contains("compiled in"));
}
