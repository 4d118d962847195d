//! Effects of `--cache-dir` on the file system, and refused folders.

#![cfg(unix)]

use frazil_recorded::workspace::tool;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Output};

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/models/residual_cnn/model.pt");

/// Runs the model under this file mode mask.
fn run(mask: &str, cache: &Path) -> Output {
    let command = format!("umask {mask}; exec \"$0\" \"$@\"");
    let output = Command::new("sh")
        .args(["-c", &command])
        .arg(tool("jit-run"))
        .arg(MODEL)
        .args(["--input", "ones:1x3x32x32", "--timing", "--cache-dir"])
        .arg(cache)
        .env_remove("FRAZIL_LOG")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", notes(&output));
    output
}

fn notes(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn what_is_kept_is_private_under_every_mask() {
    for mask in ["000", "022", "077"] {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("a/cache");
        let first = run(mask, &cache);
        assert!(notes(&first).contains("compiled in"));
        let mode = |path: &Path| path.symlink_metadata().unwrap().mode() & 0o7777;
        assert_eq!(mode(&cache), 0o700);
        let files: Vec<_> = cache.read_dir().unwrap().map(|e| e.unwrap().path()).collect();
        assert!(files.len() > 2);
        for file in files {
            assert_eq!(mode(&file), 0o600, "{}", file.display());
        }
        let second = run(mask, &cache);
        assert!(notes(&second).contains("found in"));
        assert_eq!(first.stdout, second.stdout);
    }
}

/// Masks that remove permissions of the owner.
#[test]
fn strange_masks_are_no_obstacle() {
    for mask in ["0400", "0177"] {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("a/cache");
        assert!(notes(&run(mask, &cache)).contains("compiled in"));
        assert!(notes(&run(mask, &cache)).contains("found in"));
        assert_eq!(cache.metadata().unwrap().mode() & 0o7777, 0o700);
    }
}

/// An unusable file of measurements causes a warning, in plain text without a terminal.
#[test]
fn a_file_of_measurements_that_cannot_be_read_is_mentioned() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model.pt");
    std::fs::copy(MODEL, &model).unwrap();
    std::fs::write(folder.path().join("model.pt.tune"), "no JSON").unwrap();
    let output = Command::new(tool("jit-run"))
        .arg(&model)
        .args(["--input", "ones:1x3x32x32", "--tune"])
        .env_remove("FRAZIL_LOG")
        .output()
        .unwrap();
    let text = notes(&output);
    assert!(output.status.success(), "{text}");
    assert!(
        text.contains("kernels are not tuned") && text.contains("model.pt.tune"),
        "{text}"
    );
    assert!(!text.contains('\u{1b}'), "{text:?}");
}

/// Like a home directory that is read-only or does not exist.
#[test]
fn where_nothing_can_be_kept_there_is_one_warning() {
    let output = run("022", Path::new("/dev/null/cache"));
    let text = notes(&output);
    assert!(text.contains("compiled in"), "{text}");
    assert_eq!(text.matches("WARN").count(), 1, "{text}");
    assert!(text.contains("no code is kept in /dev/null/cache"), "{text}");
}
