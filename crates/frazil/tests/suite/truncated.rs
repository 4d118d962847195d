//! Archives that are truncated or removed while they are in use: results are right or refused, and no signal ends the process.

use frazil::{CallError, Engine, EngineKind, EngineOptions, Error, FreezeOptions, SaveOptions, Session, Tensor, Value};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Returns an archive whose weights need several pages.
fn archive(folder: &Path) -> PathBuf {
    let source = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        \
                  self.w = nn.Parameter(torch.arange(40000.0).reshape(200, 200))\n        \
                  self.b = nn.Parameter(torch.arange(200.0))\n    def forward(self, x):\n        \
                  return torch.relu(x @ self.w + self.b)\n";
    let net = Session::new().script("net.py".as_ref(), source, &[]).unwrap();
    let mut net = net.to_model("forward").unwrap();
    net.eval();
    let path = folder.join("net.pt");
    net.save(&path, &SaveOptions::default()).unwrap();
    path
}

fn call(engine: &mut Engine) -> Result<Vec<u8>, CallError> {
    let x = Tensor::from_f32(&[0.5; 400], &[2, 200]).unwrap();
    let result = engine.call("forward", &[Value::from(x)])?;
    Ok(result.as_tensor().unwrap().to_bytes().unwrap())
}

fn has_changed<T>(result: Result<T, CallError>) -> bool {
    matches!(result, Err(CallError::Failed(e)) if is_changed(&e))
}

fn is_changed(e: &Error) -> bool {
    matches!(e, Error::Io { .. }) && e.to_string().contains("has changed")
}

fn kinds() -> Vec<EngineKind> {
    match cfg!(feature = "codegen") {
        true => vec![EngineKind::Native, EngineKind::Interpreter],
        false => vec![EngineKind::Interpreter],
    }
}

/// Code with more than 1 MiB of weights is mapped from the cache directory.
#[test]
#[cfg(all(feature = "codegen", target_os = "linux"))]
fn kept_code_that_is_shortened_is_an_error() {
    let source = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        \
                  self.w = nn.Parameter(torch.arange(640000.0).reshape(800, 800) / 1000)\n    def forward(self, x):\n        \
                  return torch.relu(x @ self.w)\n";
    let net = Session::new().script("net.py".as_ref(), source, &[]).unwrap();
    let mut net = net.to_model("forward").unwrap();
    net.eval();
    let folder = tempfile::tempdir().unwrap();
    let (path, cache) = (folder.path().join("net.pt"), folder.path().join("cache"));
    net.save(&path, &SaveOptions::default()).unwrap();
    let pause = || std::thread::sleep(std::time::Duration::from_millis(200));
    pause();
    let x = || Value::from(Tensor::from_f32(&[0.5; 1600], &[2, 800]).unwrap());
    let run = |engine: &mut Engine| {
        let result = engine.call("forward", &[x()])?;
        Ok::<_, CallError>(result.as_tensor().unwrap().to_bytes().unwrap())
    };
    for threads in [1, 2] {
        let options = EngineOptions::default().cache_dir(Some(cache.clone())).threads(threads);
        let engine = || Session::new().engine(&path, &options).unwrap();
        let expected = run(&mut engine()).unwrap();
        pause();
        let entries = || std::fs::read_dir(&cache).unwrap().map(|entry| entry.unwrap().path());
        let methods: Vec<PathBuf> = entries()
            .filter(|p| p.extension().is_some_and(|e| e == "method"))
            .collect();
        let [method] = methods.as_slice() else {
            panic!("{methods:?}")
        };
        let whole = std::fs::read(method).unwrap();
        let lengths = [0, whole.len() / 2, whole.len() - 5000].map(Some);
        // A file of the same length with other bytes.
        for length in lengths.into_iter().chain([None]) {
            let (mut early, mut late) = (engine(), engine());
            assert_eq!(run(&mut early).unwrap(), expected);
            assert!(early.notes()[0].contains("found in"), "{:?}", early.notes());
            match length {
                Some(length) => File::options()
                    .write(true)
                    .open(method)
                    .unwrap()
                    .set_len(length as u64)
                    .unwrap(),
                None => std::fs::write(method, vec![1; whole.len()]).unwrap(),
            }
            for _ in 0..2 {
                let Err(CallError::Failed(e)) = run(&mut early) else {
                    panic!("{length:?}")
                };
                assert!(e.to_string().contains("has changed while it was in use"), "{e}");
            }
            // A process that has not mapped it compiles again, and replaces the file.
            assert_eq!(run(&mut late).unwrap(), expected);
            assert!(late.notes()[0].contains("compiled in"), "{:?}", late.notes());
            pause();
            // A file that is removed or replaced still exists for processes that have mapped it.
            let mut kept = engine();
            assert_eq!(run(&mut kept).unwrap(), expected);
            std::fs::remove_file(method).unwrap();
            assert_eq!(run(&mut kept).unwrap(), expected);
            std::fs::write(method, &whole).unwrap();
            std::fs::set_permissions(method, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
            pause();
        }
        std::fs::remove_dir_all(&cache).unwrap();
    }
}

#[test]
fn weights_that_are_gone_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    for kind in kinds() {
        for length in [0, 100, 5000, 50_000] {
            let path = archive(folder.path());
            let cut = || {
                File::options()
                    .write(true)
                    .open(&path)
                    .unwrap()
                    .set_len(length)
                    .unwrap()
            };
            let cache_dir = (kind == EngineKind::Native).then(|| folder.path().join(format!("cache{length}")));
            let options = EngineOptions::default().kind(kind).cache_dir(cache_dir);
            // Before any weights are read, and after.
            std::thread::sleep(std::time::Duration::from_millis(100));
            let model = Session::new().load(&path).unwrap();
            let mut first = model.engine(&options).unwrap();
            let early = Session::new().load(&path).unwrap();
            let mut second = early.engine(&options).unwrap();
            let other = options.clone().cache_dir(None);
            let expected = call(&mut model.engine(&other).unwrap()).unwrap();
            let fresh = Session::new().load(&path).unwrap();
            cut();
            assert!(has_changed(call(&mut second)), "{kind:?} {length}");
            assert!(has_changed(call(&mut second)), "{kind:?} {length}");
            // An engine that has read all it needs returns the right results, or an error.
            match call(&mut first) {
                Ok(result) => assert_eq!(result, expected),
                error => assert!(has_changed(error)),
            }
            let saved = folder.path().join("saved.pt");
            assert!(is_changed(&fresh.save(&saved, &SaveOptions::default()).unwrap_err()));
            assert!(!saved.exists());
            assert!(fresh.save_bytes(&SaveOptions::default()).is_err());
            assert!(Session::new().load(&path).is_err());
            let _ = fresh.freeze(&FreezeOptions::default());
        }
    }
}

/// An archive, or the tensors beside a text, whose bytes are replaced in place, with the same length or more, leads to errors.
#[test]
fn weights_that_are_others_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("net.ir");
    let tensors = text.with_extension("safetensors");
    for (kind, more) in kinds().into_iter().flat_map(|kind| [(kind, 0), (kind, 1000)]) {
        let path = archive(folder.path());
        let options = EngineOptions::default().kind(kind);
        Session::new().load_any(&path).unwrap().save_ir(&text).unwrap();
        let expected = call(&mut Session::new().load(&path).unwrap().engine(&options).unwrap()).unwrap();
        for (model, data) in [(&path, &path), (&text, &tensors)] {
            std::thread::sleep(std::time::Duration::from_millis(20));
            let mut unchanged = Session::new().load(model).unwrap().engine(&options).unwrap();
            assert_eq!(call(&mut unchanged).unwrap(), expected);
            let mut early = Session::new().load(model).unwrap().engine(&options).unwrap();
            let fresh = Session::new().load_any(model).unwrap();
            // The same file with other numbers in the weights, possibly with additional bytes at its end.
            let mut bytes = std::fs::read(data).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle..middle + 4000].fill(7);
            bytes.extend(vec![0; more]);
            let mut file = File::options().write(true).open(data).unwrap();
            std::io::Write::write_all(&mut file, &bytes).unwrap();
            match call(&mut early) {
                Ok(result) => assert_eq!(result, expected, "{kind:?} {more}"),
                error => assert!(has_changed(error), "{kind:?} {more}"),
            }
            assert!(fresh.check_unchanged().is_ok());
            fresh.ir_text(None);
            assert!(is_changed(&fresh.check_unchanged().unwrap_err()));
        }
    }
}

/// If data is missing, no file is written, not even the text.
#[test]
fn texts_are_not_written_of_what_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let path = archive(folder.path());
    let text = folder.path().join("net.ir");
    let tensors = text.with_extension("safetensors");
    let cut = |path: &Path, length| File::options().write(true).open(path).unwrap().set_len(length).unwrap();
    let model = Session::new().load_any(&path).unwrap();
    model.save_ir(&text).unwrap();
    let whole = [&text, &tensors].map(|path| std::fs::read(path).unwrap());
    let other = folder.path().join("other.ir");
    // From an archive, and from a text with tensors beside it.
    let fresh = Session::new().load_any(&path).unwrap();
    cut(&path, 5000);
    assert!(is_changed(&fresh.save_ir(&other).unwrap_err()));
    assert!(is_changed(&fresh.save_ir(&text).unwrap_err()));
    assert_eq!([&text, &tensors].map(|path| std::fs::read(path).unwrap()), whole);
    let fresh = Session::new().load_any(&text).unwrap();
    cut(&tensors, 5000);
    assert!(is_changed(&fresh.save_ir(&other).unwrap_err()));
    let mut names: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["net.ir", "net.pt", "net.safetensors"]);
}

/// A file that is removed or replaced still exists for processes that have opened it.
#[test]
fn a_removed_archive_is_still_read() {
    let folder = tempfile::tempdir().unwrap();
    for kind in kinds() {
        let path = archive(folder.path());
        let model = Session::new().load(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let options = EngineOptions::default().kind(kind);
        assert!(call(&mut model.engine(&options).unwrap()).is_ok());
    }
}

#[test]
#[cfg(feature = "codegen")]
fn nothing_is_compiled_of_what_is_gone() {
    use frazil::{CompileOptions, InputSpec, Loaded, ir::DType};
    let folder = tempfile::tempdir().unwrap();
    let path = archive(folder.path());
    let frozen = |model: &frazil::Model| model.freeze(&FreezeOptions::default()).unwrap();
    let model = frozen(&Session::new().load(&path).unwrap());
    let inputs = [InputSpec::new(DType::Float, &[2, 200])];
    let options = CompileOptions::default();
    let plan = Loaded::Model(model.clone()).plan("forward", &inputs, &options).unwrap();
    File::options().write(true).open(&path).unwrap().set_len(1000).unwrap();
    let library = folder.path().join("libnet.so");
    assert!(is_changed(&plan.write_library(&library).unwrap_err()));
    assert!(!library.exists());
    assert!(plan.compile(&options).is_err());
    assert!(model.compile(&inputs, &options).is_err());
}
