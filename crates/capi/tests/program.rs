//! C and C++ programs that use the interface, compiled with the machine's compilers and linked with the library.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Runs `command`, which must succeed, and returns its output.
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

/// Returns the folder in which cargo puts the library before it runs this test.
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

/// Returns the command that runs a program on the fixture, with PyTorch's input and result as files in `folder`.
fn on_fixture(mut command: Command, folder: &Path) -> Command {
    let tensors = frazil::read_safetensors(fixture().join("tensors.safetensors")).expect("the tensors of the fixture");
    command.arg(fixture().join("model.pt"));
    for name in ["call0.arg0", "call0.result"] {
        let bytes = tensors[name].to_bytes().expect("elements");
        std::fs::write(folder.join(name), bytes).expect("a file can be written");
        command.arg(folder.join(name));
    }
    command
}

/// Returns the command that runs a test program without valgrind: valgrind does not know all instructions of native code.
#[cfg(feature = "codegen")]
fn plain(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", library_folder());
    command
}

/// Returns a folder with the library without debugging information: valgrind does not understand the format of newer compilers in libraries that contain LLVM.
fn stripped_library() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stripped");
        std::fs::create_dir_all(&folder).expect("a folder can be made");
        let mut strip = Command::new("objcopy");
        strip
            .arg("--strip-debug")
            .arg(library_folder().join("libfrazil_capi.so"));
        run(strip.arg(folder.join("libfrazil_capi.so")));
        folder
    })
}

/// Returns the command that runs a test program under valgrind, if that is installed: it fails on errors and leaked memory.
fn checked(program: &Path) -> Command {
    let has_valgrind = Command::new("valgrind").arg("--version").output().is_ok();
    if !has_valgrind {
        let mut command = Command::new(program);
        command.env("LD_LIBRARY_PATH", library_folder());
        return command;
    }
    let mut command = Command::new("valgrind");
    command.args(["--quiet", "--error-exitcode=99", "--leak-check=full"]);
    command.args(["--show-leak-kinds=definite", "--errors-for-leak-kinds=definite"]);
    command.arg(program).env("LD_LIBRARY_PATH", stripped_library());
    command
}

/// Compiles and runs a C program whose only argument is a folder, if any.
fn check_program(name: &str, takes_folder: bool) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = folder.path().join(name);
    build("cc", &["-std=c11"], &format!("{name}.c"), &program);
    let arguments: &[&Path] = if takes_folder { &[folder.path()] } else { &[] };
    assert_eq!(run(checked(&program).args(arguments)), "all is as it should be\n");
}

#[test]
fn values_of_every_kind() {
    check_program("values", false);
}

#[test]
fn modules_as_objects() {
    check_program("modules", true);
}

#[test]
fn operators_and_tracing() {
    check_program("tracing", false);
}

/// Returns the functions of the header that can fail, with the types of their parameters.
fn functions(header: &str) -> Vec<(String, Vec<String>)> {
    let lines = header.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code: String = lines.flat_map(|line| [line.trim(), " "]).collect();
    let mut found = Vec::new();
    for (at, start) in code.match_indices("FrazilError *frazil_") {
        let declaration = &code[at + start.len() - "frazil_".len()..];
        let (name, rest) = declaration.split_once('(').expect("a function");
        let (parameters, _) = rest.split_once(");").expect("the end of a declaration");
        // Parameters that are functions themselves have names for their types.
        found.push((name.to_owned(), split_parameters(parameters)));
    }
    found
}

/// Returns the parameters of a declaration, of which some are functions with parameters of their own.
fn split_parameters(text: &str) -> Vec<String> {
    let mut depth = 0;
    let split = |c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    };
    text.split(split).map(str::to_owned).collect()
}

/// Every function refuses pointers that are NULL, and writes nothing then.
#[test]
fn null_is_refused_everywhere() {
    let header = std::fs::read_to_string(crate_folder().join("include/frazil.h")).expect("the header");
    let all = functions(&header);
    assert!(all.len() > 100, "only {} functions were found", all.len());
    let mut calls = String::new();
    for (name, types) in &all {
        if name == "frazil_error_new" {
            continue;
        }
        // A length of 1 requires the pointer before it.
        let is_pointer = |ty: &str| ["*", "Hook ", "Function "].iter().any(|part| ty.contains(part));
        let arguments: Vec<&str> = types
            .iter()
            .map(|ty| if is_pointer(ty) { "NULL" } else { "1" })
            .collect();
        calls += &format!("  refused(\"{name}\", {name}({}));\n", arguments.join(", "));
    }
    let program = format!(
        "#include \"frazil.h\"\n#include <stdio.h>\n#include <stdlib.h>\n\
         static void refused(const char *name, FrazilError *error) {{\n\
         if (frazil_error_kind(error) != FRAZIL_ERROR_KIND_ARGUMENT) {{ printf(\"%s: %s\\n\", name, frazil_error_message(error)); exit(1); }}\n\
         frazil_error_free(error);\n}}\nint main(void) {{\n{calls}  return 0;\n}}\n"
    );
    let folder = tempfile::tempdir().expect("a temporary folder");
    let source = folder.path().join("nulls.c");
    std::fs::write(&source, program).expect("a file can be written");
    let binary = folder.path().join("nulls");
    build("cc", &["-std=c11"], source.to_str().expect("a path in UTF-8"), &binary);
    assert_eq!(run(&mut checked(&binary)), "");
}

/// Every function of the header is called by a program of the tests.
#[test]
fn every_function_is_tested() {
    let header = std::fs::read_to_string(crate_folder().join("include/frazil.h")).expect("the header");
    let programs: String = [
        "check.h",
        "compiler.c",
        "forks.c",
        "interpreter.cpp",
        "modules.c",
        "tracing.c",
        "values.c",
    ]
    .iter()
    .map(|name| std::fs::read_to_string(crate_folder().join("tests").join(name)).expect("a program"))
    .collect();
    let words = |text: &str| -> std::collections::BTreeSet<String> {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words
            .filter(|word| word.starts_with("frazil_"))
            .map(str::to_owned)
            .collect()
    };
    let code: String = header
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .fold(String::new(), |all, line| all + line + "\n");
    let untested: Vec<String> = words(&code).difference(&words(&programs)).cloned().collect();
    assert!(untested.is_empty(), "no program calls {untested:?}");
}

#[test]
fn a_cpp_program_runs_the_interpreter() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = folder.path().join("interpreter");
    build("c++", &["-std=c++17"], "interpreter.cpp", &program);
    assert_eq!(
        run(&mut on_fixture(checked(&program), folder.path())),
        "all is as it should be\n"
    );
}

#[test]
#[cfg(feature = "codegen")]
fn a_c_program_loads_freezes_asks_compiles_and_runs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = folder.path().join("compiler");
    build("cc", &["-std=c11"], "compiler.c", &program);
    // Compiling under valgrind takes a minute and a half.
    let slow = std::env::var_os("FRAZIL_VALGRIND").is_some();
    let command = if slow { checked(&program) } else { plain(&program) };
    let printed = run(on_fixture(command, folder.path()).arg(folder.path()));
    assert_eq!(printed, "all is as it should be\n");
    // The files that the program wrote exist: an archive that can be read, and a library with its header.
    let saved = frazil::Session::new().load(folder.path().join("frozen.pt"));
    assert!(saved.is_ok());
    assert!(folder.path().join("libnet.h").is_file() && folder.path().join("libnet.so").is_file());
}

/// Threads do not survive a fork: the child must start its own.
#[test]
#[cfg(all(feature = "codegen", unix))]
fn a_forked_process_compiles_and_runs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = folder.path().join("forks");
    build("cc", &["-std=c11"], "forks.c", &program);
    assert_eq!(
        run(&mut on_fixture(plain(&program), folder.path())),
        "all is as it should be\n"
    );
}

/// Forks, signals, limits and closed streams of the process that loads the library.
#[test]
#[cfg(all(feature = "codegen", target_os = "linux"))]
fn the_library_is_a_guest_in_its_process() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = folder.path().join("processes");
    build("cc", &["-std=gnu11"], "processes.c", &program);
    let is_checked = std::env::var_os("FRAZIL_VALGRIND").is_some();
    // More would take too long under valgrind.
    let all = if is_checked {
        &["few"][..]
    } else {
        &["few", "cycles", "forks", "signals", "closed", "limited"]
    };
    for what in all {
        let mut command = if is_checked { checked(&program) } else { plain(&program) };
        command.arg(what).arg(folder.path());
        assert_eq!(
            run(&mut on_fixture(command, folder.path())),
            "all is as it should be\n",
            "{what}"
        );
    }
}

#[test]
#[cfg(target_os = "linux")]
fn the_library_can_be_unloaded() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = folder.path().join("unload");
    build("cc", &["-std=gnu11"], "unload.c", &program);
    let mut command = Command::new(&program);
    command.arg(library_folder().join("libfrazil_capi.so"));
    command.arg(fixture().join("model.pt"));
    assert_eq!(run(&mut command), "all is as it should be\n");
}

/// Returns the lines between the line `begin` of the page and the end of that block.
fn block<'p>(page: &'p str, begin: &str) -> &'p str {
    let (_, rest) = page.split_once(&format!("```{begin}\n")).expect(begin);
    rest.split_once("```").expect("the end of a block").0
}

#[test]
fn the_traced_function_of_the_page_works() {
    let page = std::fs::read_to_string(crate_folder().join("../../docs/c-api.md")).expect("the page");
    let main = r#"
int main(void) {
  const float elements[] = {3, -1};
  const int64_t size = 2;
  FrazilSession *session;
  FrazilTensor *x;
  FrazilModel *model;
  char *text;
  ok(frazil_session_new(&session));
  ok(frazil_tensor_new(FRAZIL_DTYPE_FLOAT32, &size, 1, elements, sizeof elements, &x));
  const FrazilTensor *inputs[] = {x};
  ok(frazil_trace(session, twice_relu, NULL, inputs, 1, NULL, NULL, &model));
  ok(frazil_model_code(model, "forward", &text));
  CHECK(has_text(text, "torch.add(_0, _0)"));
  frazil_model_free(model);
  frazil_tensor_free(x);
  frazil_session_free(session);
  return 0;
}
"#;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (source, program) = (folder.path().join("traced.c"), folder.path().join("traced"));
    let check = crate_folder().join("tests/check.h");
    let text = format!("#include \"{}\"\n{}{main}", check.display(), block(&page, "c"));
    std::fs::write(&source, text).expect("a file can be written");
    build("cc", &["-std=c11"], source.to_str().expect("a path in UTF-8"), &program);
    assert_eq!(run(&mut checked(&program)), "");
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
