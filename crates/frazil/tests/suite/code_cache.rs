//! Compiled methods on disk: another process finds exactly the matching ones.

#![cfg(feature = "codegen")]

use frazil::ir::DType;
use frazil::{Engine, EngineOptions, Model, Session, Tensor, Value};
use std::path::{Path, PathBuf};
use std::time::Duration;

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/fixtures/models/{name}/model.pt"))
}

fn options(folder: &Path) -> EngineOptions {
    EngineOptions::default().cache_dir(Some(folder.to_owned()))
}

/// Runs the model like a new process: with its own session, model and engine. Returns the result and the origin of the code.
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
    // Other shapes have other code.
    let (_, how) = run(&load(), folder.path(), 40);
    assert!(how.contains("compiled in"), "{how}");
    // An engine that found its code still supports all other operations.
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

    // A model that differs from the content of its file.
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

    // A truncated file.
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

    // Another archive.
    std::fs::copy(fixture("residual_cnn"), &copy).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    assert!(run(&load(), &code, 32).1.contains("compiled in"));
}

#[test]
fn an_archive_is_read_only_when_it_is_needed() {
    let folder = tempfile::tempdir().unwrap();
    let code = folder.path().join("code");
    let path = folder.path().join("model.pt");
    let replace = || {
        std::fs::copy(fixture("residual_cnn"), &path).unwrap();
        std::thread::sleep(Duration::from_millis(200));
    };
    let engine = || Session::new().engine(&path, &options(&code)).unwrap();
    replace();
    let mut first = engine();
    let result = forward(&mut first, 32);
    assert!(first.notes()[0].contains("compiled in"));

    // Stored code runs without the archive, and nothing else does.
    let mut second = engine();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(forward(&mut second, 32), result);
    assert_eq!(forward(&mut second, 32), result);
    assert!(second.notes()[0].contains("found in"));
    assert_eq!(second.notes().len(), 1);
    let image = |size| Value::from(Tensor::full(DType::Float, &[1, 3, size, size], 0.25.into()).unwrap());
    let profile = second.profile("forward", &[image(32)], Duration::from_millis(1));
    assert!(!profile.unwrap().unwrap().rows.is_empty());
    assert!(second.call("forward", &[image(40)]).is_err());
    assert!(second.model().is_err());
    assert_eq!(forward(&mut second, 32), result);

    // An archive that is read later must be the one that the engine was made for.
    replace();
    assert!(engine().call("forward", &[image(40)]).is_ok());
    let mut third = engine();
    replace();
    let error = third.call("forward", &[image(48)]).unwrap_err().to_string();
    assert!(error.contains("has changed"), "{error}");
    assert!(matches!(
        Session::new().engine(folder.path().join("nothing.pt"), &options(&code)),
        Err(frazil::Error::Io { .. })
    ));
}

/// An archive that is written while it is loaded: stored code is right for the file that is found, or there is none.
#[test]
fn nothing_is_kept_of_an_archive_that_changes_while_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.pt");
    // Two archives of one size, whose programs differ.
    let archives = ["+ 1", "+ 2"].map(|sum| {
        let source = format!("class Net(nn.Module):\n    def forward(self, x):\n        return x * 3 {sum}\n");
        let net = Session::new().script("net.py".as_ref(), &source, &[]).unwrap();
        let mut net = net.to_model("forward").unwrap();
        net.eval();
        net.save(&path, &frazil::SaveOptions::default()).unwrap();
        std::fs::read(&path).unwrap()
    });
    let overwrite = |which: usize| {
        let mut file = std::fs::File::options().write(true).open(&path).unwrap();
        std::io::Write::write_all(&mut file, &archives[which]).unwrap();
    };
    let call = |code: &Path| -> Option<f64> {
        let mut engine = Session::new().engine(&path, &options(code)).ok()?;
        let x = Tensor::from_f32(&[1.0], &[1]).unwrap();
        let result = engine.call("forward", &[x.into()]).ok()?;
        Some(result.as_tensor()?.to_f64_vec()[0])
    };
    assert_eq!(archives[0].len(), archives[1].len());
    for round in 0..30 {
        let code = folder.path().join(format!("code{round}"));
        let (first, second) = (round % 2, (round + 1) % 2);
        overwrite(first);
        std::thread::sleep(Duration::from_millis(60));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_micros(100 * round as u64));
                overwrite(second);
            });
            let _ = call(&code);
        });
        std::thread::sleep(Duration::from_millis(60));
        for _ in 0..2 {
            assert_eq!(call(&code), Some(3.0 + (second + 1) as f64), "round {round}");
        }
    }
}

/// Results that are more than a tensor keep their types, before the model is read and after.
#[test]
fn kept_results_have_their_types() {
    let folder = tempfile::tempdir().unwrap();
    let code = folder.path().join("code");
    let path = folder.path().join("model.pt");
    let source = "class Net(nn.Module):\n    def forward(self, x, n: int = 2):\n        pairs = [(x + 1, n)]\n        \
                  maybe: List[Optional[Tensor]] = [x * n, None]\n        return pairs, maybe, 'text', [[x - 1]], 1.5\n";
    let net = Session::new().script("net.py".as_ref(), source, &[]).unwrap();
    let mut net = net.to_model("forward").unwrap();
    net.eval();
    net.save(&path, &frazil::SaveOptions::default()).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    let x = Value::from(Tensor::from_f32(&[1.0, 2.0], &[2]).unwrap());
    let show = |value: &Value| format!("{value:?}");
    let run = |args: &[Value]| {
        let session = Session::new();
        let mut engine = session.engine(&path, &options(&code)).unwrap();
        let result = engine.call("forward", args).unwrap();
        let types: Vec<String> = match result.items() {
            Some(items) => items
                .iter()
                .map(|v| session.ctx().show_type(v.ty(session.ctx())).to_string())
                .collect(),
            None => Vec::new(),
        };
        (show(&result), types, engine.notes().join("\n"))
    };
    let all = [x.clone(), Value::Int(2)];
    let first = run(&all);
    assert!(first.2.contains("compiled in"), "{}", first.2);
    let second = run(&all);
    assert!(second.2.contains("found in"), "{}", second.2);
    assert_eq!((&first.0, &first.1), (&second.0, &second.1));
    // With a default, the model is read to complete the arguments; the code is still found.
    let third = run(&all[..1]);
    assert!(third.2.contains("found in"), "{}", third.2);
    assert_eq!((&first.0, &first.1), (&third.0, &third.1));
}
