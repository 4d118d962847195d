//! Writing modules from archives as text and tensor file, and reading them, is lossless.

use frazil::ir::{Context, Module};
use frazil::{FreezeOptions, Model, Session};
use frazil_recorded::workspace::archives;
use frazil_syntax::{ModulePrintOptions, equal_modules, print_module_to_string, read_module, write_module};
use frazil_torchscript::{LoadOptions, load};
use std::path::Path;
use std::sync::Arc;

/// Writes and reads `module`, and returns the difference.
fn through_files(module: &Module, folder: &Path) -> Result<(), String> {
    let path = folder.join("module.ir");
    write_module(module, &path).map_err(|e| e.to_string())?;
    let back = read_module(&Arc::new(Context::new()), &path).map_err(|e| e.render(false))?;
    equal_modules(module, &back).map_err(|e| e.to_string())?;
    let options = ModulePrintOptions {
        tensor_file: Some("module.safetensors"),
        tensor_checksum: None,
        ..ModulePrintOptions::default()
    };
    if print_module_to_string(module, options) != print_module_to_string(&back, options) {
        return Err("the module that was read prints differently".to_owned());
    }
    Ok(())
}

#[test]
fn archives_go_through_text_without_loss() {
    let paths = archives();
    let folder = tempfile::tempdir().expect("there is a folder for temporary files");
    let (mut failures, mut unloaded, mut done, mut frozen) = (Vec::new(), Vec::new(), 0, 0);
    for path in &paths {
        let session = Session::new();
        let options = LoadOptions::new(session.ctx(), session.registry().catalogue());
        match load(path, &options) {
            // Loading is tested elsewhere.
            Err(e) => unloaded.push(format!("{}: {e}", path.display())),
            Ok(module) => {
                done += 1;
                if let Err(e) = through_files(&module, folder.path()) {
                    failures.push(format!("{}: {e}", path.display()));
                }
                // Frozen graphs contain their tensors as constants. Freezing is tested elsewhere too.
                let is_model = path.file_name().is_some_and(|n| n == "model.pt");
                if is_model
                    && let Ok(model) =
                        Model::new(session.clone(), module).and_then(|m| m.freeze(&FreezeOptions::default()))
                {
                    frozen += 1;
                    if let Err(e) = through_files(model.module(), folder.path()) {
                        failures.push(format!("{}, frozen: {e}", path.display()));
                    }
                }
            }
        }
    }
    println!(
        "{done} modules and {frozen} frozen ones compared, {} not loaded",
        unloaded.len()
    );
    for line in &unloaded {
        println!("not loaded: {}", line.lines().next().unwrap_or_default());
    }
    assert!(
        failures.is_empty(),
        "{} of {done}:\n{}",
        failures.len(),
        failures.join("\n")
    );
    assert!(done > 0, "no archive was found or loaded");
}
