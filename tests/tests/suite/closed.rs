//! Readers and writers are closed: printing and parsing, and saving and loading, lead to the same output again, and each pass leaves a valid result or refuses.
//! Checked on all archives, the texts of `lit-tests` and the sources of the fixtures.

use frazil::ir::{Context, Module};
use frazil::{Loaded, SaveOptions, Session};
use frazil_passes::PassManager;
use frazil_passes::pass::PassError;
use frazil_recorded::workspace::{archives, root};
use frazil_syntax::{NoTensors, parse_graph, parse_module, print_graph, print_module_to_string, render};
use frazil_torchscript::archive::{Archive, Limits, SharedBytes};
use frazil_torchscript::{LoadOptions, load_bytes, save_bytes};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Larger files only take more time: they have more numbers, and no other code.
const MAX_BYTES: u64 = 1 << 20;
/// Number of passes that run on each file, in turn. Together the files cover each pass many times.
const PASSES: usize = 5;

/// Files whose code changes when it is saved and loaded for the first time, with the reason. It must not change again.
const REWRITTEN: &[(&str, &str)] = &[
    (
        "emit/inputs/code.ir",
        "compiling leaves out what nothing uses, as in PyTorch",
    ),
    (
        "tools/pass-manager.ir",
        "compiling leaves out what nothing uses, as in PyTorch",
    ),
];

/// Files that are saved and cannot be loaded here, with the reason.
const FOR_OTHERS: &[(&str, &str)] = &[(
    "emit/inputs/unsupported.ir",
    "its operators belong to a namespace that no dialect has: a library that the host loads",
)];

fn is_listed(path: &Path, list: &[(&str, &str)]) -> bool {
    list.iter().any(|(name, _)| path.ends_with(name))
}

/// The outcome for a file.
#[derive(Default)]
struct Outcome {
    failures: Vec<String>,
    /// Counts by subject.
    counts: BTreeMap<&'static str, usize>,
}

impl Outcome {
    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    fn fail(&mut self, message: impl Into<String>) {
        self.failures.push(message.into());
    }
}

fn text(module: &Module) -> String {
    print_module_to_string(module, Default::default())
}

/// Returns the first line in which two texts differ.
fn difference(a: &str, b: &str) -> String {
    let mut lines = a.lines().zip(b.lines());
    match lines.find(|(x, y)| x != y) {
        Some((x, y)) => {
            let short = |line: &str| line.chars().take(200).collect::<String>();
            format!("`{}` became `{}`", short(x), short(y))
        }
        None => format!("{} lines became {}", a.lines().count(), b.lines().count()),
    }
}

/// Returns the first relevant entry in which two archives differ. Debug records may have fewer places after the printed code is compiled: a module from a
/// source file has places of statements that have no node of their own.
fn different_entry(a: &[u8], b: &[u8]) -> Option<String> {
    let open = |bytes: &[u8]| Archive::new(SharedBytes::from(bytes.to_vec()), Limits::default()).expect("it was read");
    let (a, b) = (open(a), open(b));
    let read = |archive: &Archive, name: &str| {
        archive
            .read(name)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    };
    // Code first: other differences are consequences.
    let mut names: Vec<&str> = a.names().chain(b.names()).collect();
    names.sort_by_key(|name| !name.ends_with(".py"));
    names.retain(|name| !name.ends_with(".debug_pkl") && *name != ".data/serialization_id");
    for name in names {
        match (read(&a, name), read(&b, name)) {
            (Ok(x), Ok(y)) if x == y => {}
            (Ok(x), Ok(y)) => return Some(format!("{name}: {}", difference(&x, &y))),
            _ => return Some(format!("{name} is in one only")),
        }
    }
    None
}

/// Returns the module after writing and reading its text, if the text is the same.
fn through_text(module: &Module) -> Result<Module, String> {
    let once = text(module);
    let again = parse_module(&Arc::new(Context::new()), &once, &NoTensors).map_err(|e| {
        format!(
            "its text is not read: {}",
            render("text.ir", &once, &e.diagnostics, false)
        )
    })?;
    let twice = text(&again);
    match once == twice {
        true => Ok(again),
        false => Err(format!("its text: {}", difference(&once, &twice))),
    }
}

fn save(session: &Session, module: &Module) -> Result<Vec<u8>, String> {
    let catalogue = session.registry().catalogue();
    save_bytes(module, catalogue, &SaveOptions::default()).map_err(|e| e.to_string())
}

fn load(session: &Session, bytes: Vec<u8>) -> Result<Module, String> {
    let options = LoadOptions::new(session.ctx(), session.registry().catalogue());
    load_bytes(bytes, &options).map_err(|e| format!("what was saved is not loaded: {e}"))
}

/// Saves, loads and saves again; directly and through the text `read`.
fn through_archive(
    path: &Path,
    session: &Session,
    module: &Module,
    read: &Module,
    outcome: &mut Outcome,
) -> Result<(), String> {
    let first = match save(session, module) {
        Ok(bytes) => bytes,
        Err(_) => {
            outcome.count("not saved");
            return Ok(());
        }
    };
    outcome.count("saved");
    let loaded = match load(session, first.clone()) {
        Err(_) if is_listed(path, FOR_OTHERS) => return Ok(()),
        loaded => loaded?,
    };
    let second = save(session, &loaded)?;
    let shown = text(&loaded);
    if second != first {
        let is_expected = is_listed(path, REWRITTEN) || different_entry(&first, &second).is_none();
        if !is_expected {
            let entry = different_entry(&first, &second).unwrap_or_default();
            return Err(format!("saved again: {entry}"));
        }
        outcome.count("saved differently once");
        let loaded = load(session, second.clone())?;
        if save(session, &loaded)? != second {
            return Err("saved differently twice".to_owned());
        }
    }
    // The text's module has a context of its own.
    let other = Session::new();
    let path = Path::new("module.ir");
    let Ok(Loaded::Model(model)) = other.load_bytes(path, text(read).into_bytes()) else {
        return Err("its text is no model".to_owned());
    };
    let third = save(&other, model.module())?;
    let back = text(&load(&other, third)?);
    match back == shown {
        true => Ok(()),
        false => Err(format!("by way of text: {}", difference(&shown, &back))),
    }
}

/// Runs some of the passes, each separately on the module.
fn through_passes(session: &Session, module: &Module, from: usize, outcome: &mut Outcome) {
    let all: Vec<&str> = session.passes().passes().map(|pass| pass.name).collect();
    for step in 0..PASSES {
        let name = all[(from * PASSES + step) % all.len()];
        let Ok(mut manager) = PassManager::from_pipeline(session.passes(), name) else {
            continue;
        };
        manager.verify_each(true);
        let mut changed = module.clone();
        match manager.run(&mut changed, session.registry().as_ref()) {
            Ok(_) => outcome.count("passes"),
            Err(error) => {
                if matches!(error.root(), PassError::Verify { .. } | PassError::Panicked(_)) {
                    outcome.fail(format!("{name}: {error}"));
                } else {
                    outcome.count("passes that refused");
                }
                continue;
            }
        }
        if let Err(error) = through_text(&changed) {
            outcome.fail(format!("after {name}, {error}"));
        }
    }
}

fn check(path: &Path, number: usize, outcome: &mut Outcome) {
    let bytes = std::fs::read(path).expect("a readable file");
    let session = Session::new();
    let model = match session.load_bytes(path, bytes) {
        // Loading is tested elsewhere.
        Err(_) => return outcome.count("not loaded"),
        Ok(Loaded::Model(model)) => model,
        Ok(Loaded::Graphs(graphs)) => {
            for (_, function) in graphs.unit().functions() {
                let once = print_graph(&function.graph);
                match parse_graph(&Arc::new(Context::new()), &once) {
                    Err(e) => outcome.fail(format!(
                        "its graph is not read: {}",
                        render("text.ir", &once, &e.diagnostics, false)
                    )),
                    Ok(again) => {
                        let twice = print_graph(&again.graph);
                        if once != twice {
                            outcome.fail(format!("its graph: {}", difference(&once, &twice)));
                        }
                    }
                }
            }
            graphs.to_model()
        }
    };
    outcome.count("loaded");
    let module = model.module();
    match through_text(module) {
        Err(error) => outcome.fail(error),
        Ok(read) => {
            if let Err(error) = through_archive(path, &session, module, &read, outcome) {
                outcome.fail(error);
            }
        }
    }
    through_passes(&session, module, number, outcome);
}

/// Collects the files below `folder` with this extension.
fn files(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder can be listed") {
        let path = entry.expect("a readable entry").path();
        if path.is_dir() {
            files(&path, extension, found);
        } else if path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
}

#[test]
fn what_is_read_stays_what_it_is() {
    let mut paths = archives();
    files(&root().join("lit-tests"), "ir", &mut paths);
    files(&root().join("tests/fixtures"), "py", &mut paths);
    paths.retain(|path| std::fs::metadata(path).is_ok_and(|data| data.len() <= MAX_BYTES));
    paths.sort();
    let (next, all) = (AtomicUsize::new(0), Mutex::new(Outcome::default()));
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(path) = paths.get(number) else { break };
            let mut outcome = Outcome::default();
            check(path, number, &mut outcome);
            let shown = path.to_string_lossy();
            let mut all = all.lock().expect("no thread fails with it");
            for (what, count) in outcome.counts {
                *all.counts.entry(what).or_default() += count;
            }
            let failures = outcome.failures.into_iter();
            all.failures
                .extend(failures.map(|message| format!("{shown}: {message}")));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            // The default stack size of Rust's threads.
            let thread = std::thread::Builder::new().stack_size(2 << 20);
            thread.spawn_scoped(scope, work).expect("a thread starts");
        }
    });
    let all = all.into_inner().expect("all threads are done");
    println!("{} files: {:?}", paths.len(), all.counts);
    assert!(
        all.failures.is_empty(),
        "{} failures:\n{}",
        all.failures.len(),
        all.failures.join("\n")
    );
    assert!(all.counts.get("saved").is_some_and(|n| *n > 0), "nothing was saved");
}
