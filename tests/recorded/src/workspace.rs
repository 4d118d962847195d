//! Paths in the workspace: the repository's files, the built tools, and the large corpus.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// Returns the root folder of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("this crate is two folders below the root")
}

/// Returns the folder of the small cases in the repository.
pub fn fixtures() -> PathBuf {
    root().join("tests/fixtures")
}

/// Returns the large corpus in `FRAZIL_CORPUS`, relative to the root of the repository; `None` if the variable is `none`.
///
/// # Panics
/// If the variable is not set or is not the path of a folder: tests that silently compare nothing would pass.
pub fn corpus() -> Option<PathBuf> {
    let named = env::var_os("FRAZIL_CORPUS").unwrap_or_default();
    assert!(
        !named.is_empty(),
        "FRAZIL_CORPUS is not set; it names the folder of the large corpus, or is `none` to test without it"
    );
    if named == "none" {
        return None;
    }
    let path = root().join(named);
    assert!(
        path.is_dir(),
        "FRAZIL_CORPUS names {}, which is no folder",
        path.display()
    );
    Some(path)
}

/// Returns the archives of the fixtures, then of the large corpus if there is one, each sorted.
///
/// # Panics
/// If a folder cannot be read.
pub fn archives() -> Vec<PathBuf> {
    let mut found = archives_below(&fixtures());
    if let Some(corpus) = corpus() {
        found.extend(archives_below(&corpus.join("models")));
        found.extend(archives_below(&corpus.join("ops")));
    }
    found
}

fn archives_below(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder can be listed") {
            let path = entry.expect("a readable entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "pt") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Returns a tool built in the profile of the running test, such as `jit-run`.
///
/// # Panics
/// If it was not built: Cargo does not build another package's tools for a test.
pub fn tool(name: &str) -> PathBuf {
    let test = env::current_exe().expect("a test has a path");
    let profile = test.ancestors().nth(2).expect("tests stand in TARGET/PROFILE/deps");
    let tool = profile.join(name);
    assert!(
        tool.exists(),
        "{} is missing: cargo build -p frazil-tools --bins",
        tool.display()
    );
    tool
}

/// Returns all files of the repository below `folder` (relative to the root), sorted, as paths relative to the root.
/// Build output and files of version control are left out.
///
/// # Panics
/// If a folder cannot be read.
pub fn files(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder can be listed") {
            let entry = entry.expect("a readable entry");
            let name = entry.file_name();
            let kind = entry.file_type().expect("a readable file type");
            if kind.is_dir() {
                // A folder of this name among sources is a module.
                let is_output = name == "target" && !folder.ends_with("src");
                if !is_output && name != ".git" && name != "__pycache__" {
                    folders.push(entry.path());
                }
            } else if kind.is_file() && name != ".git" {
                let path = entry.path();
                found.push(path.strip_prefix(root()).expect("below the root").to_path_buf());
            }
        }
    }
    found.sort();
    found
}
