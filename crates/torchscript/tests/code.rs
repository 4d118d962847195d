//! Printed code: the source files of an archive come back byte for byte from the module that is made of them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod common;

use std::path::PathBuf;

use common::{archives, catalogue};
use frazil_torchscript::archive::Archive;
use frazil_torchscript::code::{CodeSource, print_method, print_module};
use frazil_torchscript::{LoadOptions, load_archive};

/// Archives whose code PyTorch itself prints otherwise once it has loaded them: archive, entry, why.
const CHANGED_BY_LOADING: &[(&str, &str, &str)] = &[(
    "models/beam_search_script/model.pt",
    "code/__torch__/visible_models.py",
    "the variables of a `for` with a `break`, saved in the order of the first compilation, are put into the order of their use by the second",
)];

/// The first line in which two texts differ.
fn first_difference(ours: &str, theirs: &str) -> String {
    let at = ours.lines().zip(theirs.lines()).take_while(|(a, b)| a == b).count();
    let line = |text: &str| text.lines().nth(at).unwrap_or("(end)").to_owned();
    format!("line {}:\n    {}\n  against\n    {}", at + 1, line(ours), line(theirs))
}

#[test]
fn archives_give_their_code_back() {
    let Some(corpus) = std::env::var_os("FRAZIL_CORPUS").map(PathBuf::from) else {
        return;
    };
    let (ctx, catalogue) = catalogue();
    let options = LoadOptions {
        ctx: &ctx,
        catalogue: &catalogue,
    };
    let mut failures = Vec::new();
    let mut count = 0;
    for path in archives(&corpus) {
        let name = path.strip_prefix(&corpus).unwrap().display().to_string();
        let archive = Archive::open(&path).unwrap();
        let module = load_archive(&archive, &options).unwrap();
        count += 1;
        let printed = match print_module(&module, &catalogue) {
            Ok(printed) => printed,
            Err(error) => {
                failures.push(format!("{name}: {error}"));
                continue;
            }
        };
        for file in &printed.files {
            let entry = file.entry();
            match archive.text(&entry) {
                Ok(theirs) if theirs == file.code.as_str() => {}
                Ok(_) if CHANGED_BY_LOADING.iter().any(|(a, e, _)| *a == name && *e == entry) => {}
                Ok(theirs) => failures.push(format!(
                    "{name}: {entry}, {}",
                    first_difference(file.code.as_str(), &theirs)
                )),
                Err(error) => failures.push(format!("{name}: {error}")),
            }
        }
        for entry in archive.names().filter(|n| n.starts_with("code/") && n.ends_with(".py")) {
            if !printed.files.iter().any(|file| file.entry() == entry) {
                failures.push(format!("{name}: {entry} is missing"));
            }
        }
        if printed.min_version.max(3) != archive.version() {
            failures.push(format!(
                "{name}: version {} against {}",
                printed.min_version,
                archive.version()
            ));
        }
    }
    assert!(
        failures.is_empty(),
        "{} differences in {count} archives:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

#[test]
fn methods_are_those_of_pytorch() {
    let Some(corpus) = std::env::var_os("FRAZIL_CORPUS").map(PathBuf::from) else {
        return;
    };
    let (ctx, catalogue) = catalogue();
    let options = LoadOptions {
        ctx: &ctx,
        catalogue: &catalogue,
    };
    let mut failures = Vec::new();
    let mut count = 0;
    for path in archives(&corpus.join("models")) {
        let name = path.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
        let Ok(theirs) = std::fs::read_to_string(corpus.join("ir").join(&name).join("code.py")) else {
            continue;
        };
        count += 1;
        let module = load_archive(&Archive::open(&path).unwrap(), &options).unwrap();
        let method = module.method_function(frazil_ir::symbols::FORWARD).unwrap();
        let source = CodeSource {
            ctx: &ctx,
            unit: Some(&module.unit),
            catalogue: &catalogue,
        };
        let ours = print_method(source, method).unwrap().code.into_string();
        if ours != theirs {
            failures.push(format!("{name}: {}", first_difference(&ours, &theirs)));
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {count} methods differ:\n{}",
        failures.len(),
        failures.join("\n")
    );
}
