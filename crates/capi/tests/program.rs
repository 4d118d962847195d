//! C and C++ programs that use the interface, compiled with the machine's compilers and linked with the library.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs `command`, which has to succeed, and gives what it printed.
fn run(command: &mut Command) -> String {
    let output = command.output().expect("a program that can be started");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{command:?} ended with {}:\n{}{}",
        output.status,
        text(&output.stderr),
        text(&output.stdout)
    );
    text(&output.stdout)
}

/// The folder in which cargo puts the library before it runs this test.
fn library_folder() -> PathBuf {
    let test = std::env::current_exe().expect("the path of the test");
    test.parent().expect("a test stands in a folder").to_owned()
}

fn crate_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn fixture() -> PathBuf {
    crate_folder().join("../../tests/fixtures/models/residual_cnn")
}

/// Compiles `source`, a file of the tests, into `program`.
fn build(compiler: &str, arguments: &[&str], source: &str, program: &Path) {
    run(Command::new(compiler)
        .args(arguments)
        .args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-I"])
        .arg(crate_folder().join("include"))
        .arg(crate_folder().join("tests").join(source))
        .arg("-L")
        .arg(library_folder())
        .args(["-lfrazil_capi", "-lm", "-lpthread", "-o"])
        .arg(program));
}

/// Runs a program on the fixture, with PyTorch's input and result as files of `folder`.
fn on_fixture(program: &Path, folder: &Path) -> Command {
    let tensors = frazil::read_safetensors(fixture().join("tensors.safetensors")).expect("the tensors of the fixture");
    let mut command = Command::new(program);
    command
        .arg(fixture().join("model.pt"))
        .env("LD_LIBRARY_PATH", library_folder());
    for name in ["call0.arg0", "call0.result"] {
        let bytes = tensors[name].to_bytes().expect("elements");
        std::fs::write(folder.join(name), bytes).expect("a file can be written");
        command.arg(folder.join(name));
    }
    command
}

#[test]
fn a_cpp_program_runs_the_interpreter() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = folder.path().join("interpreter");
    build("c++", &["-std=c++17"], "interpreter.cpp", &program);
    assert_eq!(
        run(&mut on_fixture(&program, folder.path())),
        "all is as it should be\n"
    );
}

#[test]
#[cfg(feature = "codegen")]
fn a_c_program_loads_freezes_asks_compiles_and_runs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = folder.path().join("compiler");
    build("cc", &["-std=c11"], "compiler.c", &program);
    let printed = run(on_fixture(&program, folder.path()).arg(folder.path()));
    assert_eq!(printed, "all is as it should be\n");
    // What the program wrote is there: an archive that can be read, and a library with its header.
    let saved = frazil::Session::new().load(folder.path().join("frozen.pt"));
    assert!(saved.is_ok());
    assert!(folder.path().join("libnet.h").is_file() && folder.path().join("libnet.so").is_file());
}

/// Threads do not survive a fork: the child has to start its own.
#[test]
#[cfg(all(feature = "codegen", unix))]
fn a_forked_process_compiles_and_runs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = folder.path().join("forks");
    build("cc", &["-std=c11"], "forks.c", &program);
    assert_eq!(
        run(&mut on_fixture(&program, folder.path())),
        "all is as it should be\n"
    );
}

/// The lines between a line of the page that is `begin` and the end of that block.
#[cfg(feature = "codegen")]
fn block<'p>(page: &'p str, begin: &str) -> &'p str {
    let (_, rest) = page.split_once(&format!("```{begin}\n")).expect(begin);
    rest.split_once("```").expect("the end of a block").0
}

#[test]
#[cfg(feature = "codegen")]
fn the_program_of_the_page_does_what_the_page_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/c-api.md")).expect("the page");
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("main.c"), block(&page, "c file=main.c")).expect("a file can be written");
    let model = root.join("tests/fixtures/models/residual_cnn/model.pt");
    std::fs::copy(model, folder.path().join("model.pt")).expect("the model can be copied");
    let commands = block(&page, "sh")
        .replace("$FRAZIL/target/release", &library_folder().display().to_string())
        .replace("$FRAZIL", &root.display().to_string());
    let printed = run(Command::new("sh").args(["-ec", &commands]).current_dir(folder.path()));
    assert_eq!(printed, block(&page, "text"));
}
