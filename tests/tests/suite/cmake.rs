//! The page on libraries: builds and runs its CMake project.

use frazil_recorded::workspace;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Returns the lines of the block of the page that begins with "```" and `begin`.
fn block<'p>(page: &'p str, begin: &str) -> &'p str {
    let (_, rest) = page.split_once(&format!("```{begin}\n")).expect(begin);
    rest.split_once("```").expect("the end of a block").0
}

fn run(command: &mut Command, folder: &Path) -> String {
    let output = command
        .current_dir(folder)
        .output()
        .expect("a program that can be started");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let printed = text(&output.stdout);
    assert!(
        output.status.success(),
        "{command:?}: {}{printed}",
        text(&output.stderr)
    );
    printed
}

#[test]
fn the_cmake_project_of_the_page_links_a_library() {
    if Command::new("cmake").arg("--version").output().is_err() {
        eprintln!("skipped: cmake is not installed (tools/setup.sh installs it)");
        return;
    }
    let page = fs::read_to_string(workspace::root().join("docs/deploy.md")).expect("the page");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    for (name, begin) in [
        ("CMakeLists.txt", "cmake file=CMakeLists.txt"),
        ("main.c", "c file=main.c"),
    ] {
        fs::write(folder.join(name), block(&page, begin)).expect("a file can be written");
    }
    let model = workspace::fixtures().join("models/residual_cnn/model.pt");
    let mut compile = Command::new(workspace::tool("jit-opt"));
    compile.arg(model);
    run(
        compile.args(["--freeze", "--input-shape=1x3x32x32", "-o", "libclassify.so"]),
        folder,
    );
    let commands = block(&page, "sh");
    let printed = run(Command::new("sh").args(["-ec", commands]), folder);
    assert!(printed.ends_with("no error\n"), "{printed}");

    // A static library, as on the page.
    let mut compile = Command::new(workspace::tool("jit-opt"));
    compile.arg(workspace::fixtures().join("models/residual_cnn/model.pt"));
    run(
        compile.args(["--freeze", "--input-shape=1x3x32x32", "-o", "libclassify.a"]),
        folder,
    );
    let project = block(&page, "cmake file=CMakeLists.txt")
        .replace("SHARED", "STATIC")
        .replace("libclassify.so", "libclassify.a")
        .replace("  IMPORTED_NO_SONAME TRUE\n", "")
        .replace("PRIVATE classify", "PRIVATE classify m");
    fs::write(folder.join("CMakeLists.txt"), project).expect("a file can be written");
    let printed = run(Command::new("sh").args(["-ec", commands]), folder);
    assert!(printed.ends_with("no error\n"), "{printed}");
}
