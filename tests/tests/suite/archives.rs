//! Saving modules that were loaded from archives is lossless: directly, and through their text.

use frazil::ir::Module;
use frazil::{FreezeOptions, Model, SaveOptions, Session};
use frazil_recorded::workspace::archives;
use frazil_syntax::{equal_modules, read_module, write_module};
use frazil_torchscript::archive::{Archive, Limits, SharedBytes};
use frazil_torchscript::{LoadOptions, load, load_bytes, save_bytes};
use std::collections::BTreeMap;
use std::path::Path;

/// Archives whose code changes without a change of meaning. PyTorch changes them in the same way when it loads and saves them.
const REWRITTEN: &[&str] = &[
    // An unused copy of a variable is removed.
    "beam_search_script",
    // Saved with an overload without defaults; the same call, read back, resolves to an earlier overload, which has
    // them.
    "nn.functional.interpolate.bicubic",
    "nn.functional.interpolate.bilinear",
    "nn.functional.interpolate.trilinear",
    "nn.functional.upsample_bilinear",
];

/// Returns the source code of an archive, by entry.
fn code(archive: &Archive) -> BTreeMap<String, String> {
    let files = archive
        .names()
        .filter(|name| name.starts_with("code/") && name.ends_with(".py"));
    files
        .map(|name| (name.to_owned(), archive.text(name).expect("code is text")))
        .collect()
}

fn open(bytes: &[u8]) -> Result<Archive, String> {
    Archive::new(SharedBytes::from(bytes.to_vec()), Limits::default()).map_err(|e| e.to_string())
}

/// Compares the code of two archives, and returns the first entry that differs.
fn equal_code(a: &Archive, b: &Archive) -> Result<(), String> {
    let (a, b) = (code(a), code(b));
    if !a.keys().eq(b.keys()) {
        return Err(format!("code of {:?} became code of {:?}", a.keys(), b.keys()));
    }
    for (name, text) in &a {
        let differs = text.lines().zip(b[name].lines()).find(|(x, y)| x != y);
        if let Some((x, y)) = differs {
            return Err(format!("{name}: `{x}` became `{y}`"));
        }
        if text != &b[name] {
            return Err(format!("{name}: {} bytes became {}", text.len(), b[name].len()));
        }
    }
    Ok(())
}

/// Saves a module of `session`, loads it in another session, and returns the difference.
fn through_archive(module: &Module, session: &Session, original: Option<&Archive>) -> Result<(), String> {
    let catalogue = session.registry().catalogue();
    let bytes = save_bytes(module, catalogue, &SaveOptions::default()).map_err(|e| e.to_string())?;
    let archive = open(&bytes)?;
    if let Some(original) = original {
        equal_code(original, &archive)?;
    }
    let other = Session::new();
    let options = LoadOptions::new(other.ctx(), other.registry().catalogue());
    let back = load_bytes(bytes, &options).map_err(|e| format!("what was written cannot be loaded: {e}"))?;
    equal_modules(module, &back).map_err(|e| e.to_string())
}

/// Writes the module as text, reads it, and continues with the result.
fn through_text(module: &Module, original: Option<&Archive>, folder: &Path) -> Result<(), String> {
    let path = folder.join("module.ir");
    write_module(module, &path).map_err(|e| e.to_string())?;
    let session = Session::new();
    let read = read_module(session.ctx(), &path).map_err(|e| e.render(false))?;
    equal_modules(module, &read).map_err(|e| e.to_string())?;
    through_archive(&read, &session, original).map_err(|e| format!("through text: {e}"))
}

#[test]
fn archives_go_through_archives_without_loss() {
    let folder = tempfile::tempdir().expect("there is a folder for temporary files");
    let (mut failures, mut done, mut unloaded, mut frozen) = (Vec::new(), 0, 0, 0);
    for path in &archives() {
        let session = Session::new();
        let options = LoadOptions::new(session.ctx(), session.registry().catalogue());
        // Loading is tested elsewhere.
        let Ok(module) = load(path, &options) else {
            unloaded += 1;
            continue;
        };
        done += 1;
        let archive = Archive::open(path).expect("it was loaded");
        // Operators of old format versions are replaced by their modern equivalents, which changes the code.
        let is_current = !module
            .unit
            .functions()
            .any(|(_, f)| session.ctx().name(f.name).contains("frazil_upgraders"));
        let is_rewritten = REWRITTEN
            .iter()
            .any(|name| path.to_string_lossy().contains(&format!("/{name}/")));
        let original = (is_current && !is_rewritten).then_some(&archive);
        // Code that has been rewritten once must not change again.
        let settled = match is_rewritten {
            true => save_bytes(&module, session.registry().catalogue(), &SaveOptions::default())
                .map_err(|e| e.to_string())
                .and_then(|bytes| load_bytes(bytes, &options).map_err(|e| e.to_string())),
            false => Ok(module.clone()),
        };
        let result = settled.and_then(|settled| {
            through_archive(&settled, &session, original)?;
            through_text(&settled, original, folder.path())
        });
        if let Err(e) = result {
            failures.push(format!("{}: {e}", path.display()));
        }
        let is_model = path.file_name().is_some_and(|name| name == "model.pt");
        if is_model
            && let Ok(model) = Model::new(session.clone(), module).and_then(|m| m.freeze(&FreezeOptions::default()))
        {
            frozen += 1;
            // Compiling removes redundancies that passes leave, so the loaded module may differ;
            // `tools/check/check_with_torch.py` checks its results.
            let bytes = model.save_bytes(&SaveOptions::default()).map_err(|e| e.to_string());
            let result =
                bytes.and_then(|bytes| load_bytes(bytes, &options).map_err(|e| format!("cannot be loaded: {e}")));
            if let Err(e) = result {
                failures.push(format!("{}, frozen: {e}", path.display()));
            }
        }
    }
    println!("{done} modules compared, {frozen} frozen ones written and loaded, {unloaded} not loaded");
    assert!(
        failures.is_empty(),
        "{} of {done}:\n{}",
        failures.len(),
        failures.join("\n")
    );
    assert!(done > 0, "no archive was found or loaded");
}
