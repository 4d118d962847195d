//! Folders of compiled code that this user cannot write to: their contents are used, and there is one warning when code cannot be stored.

#![cfg(all(feature = "codegen", target_os = "linux"))]

use frazil::{Engine, EngineOptions, SaveOptions, Session, Tensor, Value};
use frazil_syntax::FileIdentity;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, Once};
use std::time::Duration;
use tracing::{Event, Metadata, field, span};

/// The user id of an unprivileged user.
const UNPRIVILEGED: &str = "65534";
/// The variable that passes the folder of the test to a child process.
const FOLDER: &str = "FRAZIL_TEST_SHARED";

/// The texts of all warnings, of all threads.
static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Collects warnings.
struct Warnings;

/// Returns the warnings of `act` that contain `folder`.
fn warnings_of(folder: &Path, act: impl FnOnce()) -> Vec<String> {
    static START: Once = Once::new();
    START.call_once(|| tracing::subscriber::set_global_default(Warnings).unwrap());
    let named = || -> Vec<String> {
        let all = WARNINGS.lock().unwrap();
        let folder = folder.to_str().unwrap();
        all.iter().filter(|text| text.contains(folder)).cloned().collect()
    };
    let before = named().len();
    act();
    named().split_off(before)
}

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::WARN
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &Event<'_>) {
        struct Text(String);
        impl field::Visit for Text {
            fn record_debug(&mut self, _: &field::Field, value: &dyn std::fmt::Debug) {
                self.0 += &format!("{value:?}");
            }
        }
        let mut text = Text(String::new());
        event.record(&mut text);
        WARNINGS.lock().unwrap().push(text.0);
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// Returns an archive with more than 1 MiB of weights, which are verified once per file, and a method that runs in segments.
fn archive(folder: &Path) -> PathBuf {
    let source = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        \
                  self.w = nn.Parameter(torch.arange(360000.0).reshape(600, 600) / 1000)\n    def forward(self, x):\n        \
                  return torch.relu(x @ self.w).softmax(1)\n    @torch.jit.export\n    def rounds(self, x):\n        \
                  while bool(x.sum() < 100.0):\n            x = (x * 2).relu() + 1\n        return x\n";
    let net = Session::new().script("net.py".as_ref(), source, &[]).unwrap();
    let mut net = net.to_model("forward").unwrap();
    net.eval();
    let path = folder.join("net.pt");
    net.save(&path, &SaveOptions::default()).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    path
}

fn engine(archive: &Path, cache: &Path) -> Engine {
    let options = EngineOptions::default()
        .cache_dir(Some(cache.to_owned()))
        .methods(vec!["forward".to_owned(), "rounds".to_owned()]);
    Session::new().engine(archive, &options).unwrap()
}

fn forward(engine: &mut Engine, rows: i64) -> Vec<u8> {
    let x = Tensor::full(frazil::ir::DType::Float, &[rows, 600], 0.25.into()).unwrap();
    let result = engine.call("forward", &[Value::from(x)]).unwrap();
    result.as_tensor().unwrap().to_bytes().unwrap()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Several methods and kernels that cannot be stored lead to one warning. A second engine has its own.
#[test]
fn there_is_one_warning_an_engine() {
    let folder = tempfile::tempdir().unwrap();
    let model = archive(folder.path());
    // A folder where not even root can write.
    let cache = match is_root() {
        true => PathBuf::from("/proc"),
        false => folder.path().join("cache"),
    };
    if !is_root() {
        fs::create_dir(&cache).unwrap();
        fs::set_permissions(&cache, Permissions::from_mode(0o500)).unwrap();
    }
    for _ in 0..2 {
        let warnings = warnings_of(&cache, || {
            let mut engine = engine(&model, &cache);
            forward(&mut engine, 1);
            forward(&mut engine, 2);
            let x = Tensor::from_f32(&[1.0, 2.0], &[2]).unwrap();
            engine.call("rounds", &[x.into()]).unwrap();
            let notes = engine.notes().join("\n");
            assert!(notes.matches("compiled in").count() > 3, "{notes}");
        });
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains("is not kept in") && warnings[0].contains(&*cache.to_string_lossy()));
    }
}

/// The steps of docs/deploy.md for code that root makes for all users of a machine.
#[test]
fn a_folder_of_root_serves_other_users() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return as_another_user(Path::new(&folder));
    }
    let run = |program: &Path, arguments: &[&str], folder: &Path| {
        Command::new("setpriv")
            .args([
                "--clear-groups",
                &format!("--reuid={UNPRIVILEGED}"),
                &format!("--regid={UNPRIVILEGED}"),
            ])
            .arg(program)
            .args(arguments)
            .env(FOLDER, folder)
            .output()
    };
    let folder = tempfile::tempdir().unwrap();
    let program = std::env::current_exe().unwrap();
    let can_run = || run(&program, &["--list"], folder.path()).is_ok_and(|o| o.status.success());
    if !is_root() || !can_run() {
        eprintln!("not tested: this takes root, `setpriv`, and a program that others may run");
        return;
    }
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let model = archive(folder.path());
    fs::set_permissions(&model, Permissions::from_mode(0o644)).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    let cache = folder.path().join("cache");
    // As on the page: made, then made readable, then run once more, then its new files made readable.
    let expected = forward(&mut engine(&model, &cache), 1);
    let open_up = || {
        fs::set_permissions(&cache, Permissions::from_mode(0o755)).unwrap();
        for entry in fs::read_dir(&cache).unwrap() {
            fs::set_permissions(entry.unwrap().path(), Permissions::from_mode(0o644)).unwrap();
        }
        std::thread::sleep(Duration::from_millis(200));
    };
    open_up();
    forward(&mut engine(&model, &cache), 1);
    for path in files(&cache, ".verified") {
        fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
    }
    fs::write(folder.path().join("expected"), &expected).unwrap();
    fs::set_permissions(folder.path().join("expected"), Permissions::from_mode(0o644)).unwrap();
    // The weights have been verified.
    let method = File::open(&files(&cache, ".method")[0]).unwrap();
    let identity = format!("{:?}", FileIdentity::of(&method).unwrap());
    let verified = fs::read(&files(&cache, ".verified")[0]).unwrap();
    assert!(String::from_utf8_lossy(&verified).contains(&identity));
    let before = files(&cache, "");
    let test = [
        "--exact",
        "shared_cache::a_folder_of_root_serves_other_users",
        "--nocapture",
    ];
    let output = run(&program, &test, folder.path()).unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    assert_eq!(files(&cache, ""), before);
}

fn as_another_user(folder: &Path) {
    assert!(!is_root());
    let (model, cache) = (folder.join("net.pt"), folder.join("cache"));
    let expected = fs::read(folder.join("expected")).unwrap();
    for path in files(&cache, "") {
        assert!(File::open(path).is_ok());
    }
    let warnings = warnings_of(&cache, || {
        let mut engine = engine(&model, &cache);
        assert_eq!(forward(&mut engine, 1), expected);
        assert!(engine.notes()[0].contains("found in"), "{:?}", engine.notes());
    });
    assert_eq!(warnings, [] as [String; 0]);
    // Other shapes are compiled, and not stored.
    let warnings = warnings_of(&cache, || {
        let mut engine = engine(&model, &cache);
        forward(&mut engine, 2);
        forward(&mut engine, 3);
        assert!(engine.notes()[0].contains("compiled in"), "{:?}", engine.notes());
    });
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("belongs to root"), "{warnings:?}");
}

fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries.filter(|p| p.to_string_lossy().ends_with(ending)).collect();
    files.sort();
    files
}
