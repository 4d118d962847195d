//! Output of plans as files: objects, texts, and libraries with a C header.
//!
//! A library is linked by `cc` from the kernels' objects, the runtime's object (`crates/rt`), the constants, and a C file with the tables of steps and the
//! interface. It depends on the C library and libm only. A static library consists of one object with the same contents, in which `objcopy` makes all symbols
//! except the interface local, so that a program can link several.

mod header;
pub mod range;
mod source;

use crate::backend::CompileError;
use crate::compile::{Stage, compile_codes, compile_objects, kernel_text};
use crate::options::BackendOptions;
use frazil_executor::LoadError;
use frazil_planner::kernel::KernelCode;
use frazil_planner::plan::{Plan, kernel_name};
use frazil_syntax::{OutputFile, TemporaryFolder};
use range::{RangeError, RangePlan};
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

pub use header::header;

/// The runtime, compiled for the host.
static RUNTIME: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/frazil_rt.o"));

/// Error of writing a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmitFileError {
    /// A kernel could not be compiled.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// A file could not be written.
    #[error("{path}: {source}")]
    Io {
        /// The path of the file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The C compiler, or another program that it comes with, could not be started.
    #[error("{command} could not be started: {source}; a C compiler and its tools are needed to link libraries")]
    NoLinker {
        /// The name of the program.
        command: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The C compiler, or another program that it comes with, failed.
    #[error("{command} failed:\n{stderr}")]
    Linker {
        /// The name of the program.
        command: String,
        /// The program's error output.
        stderr: String,
    },
    /// The plan has runtime calls, which a library cannot run.
    #[error("these operators run in this program only, not in a library:{}", .0.iter().map(|o| format!("\n  {o}")).collect::<String>())]
    RuntimeCalls(Vec<String>),
    /// The plan's name is not a C identifier.
    #[error("`{0}` cannot be the prefix of C functions: letters, digits and underscores only, and no digit first")]
    Name(String),
    /// A library for ranges of sizes cannot be made.
    #[error(transparent)]
    Range(#[from] RangeError),
}

/// Returns the specs of the kernels and the calls as text, for reading.
pub fn kernels_text(plan: &Plan) -> String {
    frazil_planner::plan::listing::listing(plan)
}

/// Returns all kernels as text at `stage`, one after the other.
///
/// # Errors
/// If a kernel cannot be compiled.
pub fn stage_text(plan: &Plan, options: &BackendOptions, stage: Stage) -> Result<String, CompileError> {
    let mut out = String::new();
    let compiled = plan.kernels.iter().enumerate().filter(|(_, k)| !k.phases().is_empty());
    for (i, spec) in compiled {
        let name = kernel_name(&plan.name, i);
        let code = KernelCode::constant(spec.clone());
        out.push_str(&kernel_text(&name, &code, plan.kernel_origins(i), options, stage)?);
        out.push('\n');
    }
    Ok(out)
}

/// Returns one relocatable object with all kernels.
pub fn object(plan: &Plan, options: &BackendOptions) -> Result<Vec<u8>, EmitFileError> {
    plan.validate().map_err(CompileError::from)?;
    check_standalone(plan)?;
    let directory = temporary()?;
    let mut objects = write_objects(&compile_objects(plan, options)?, directory.path())?;
    if objects.is_empty() {
        let empty = directory.path().join("empty.c");
        write(&empty, b"typedef int frazil_no_kernels;\n")?;
        objects.push(empty.into());
    }
    let merged = directory.path().join("merged.o");
    let mut arguments: Vec<OsString> = vec!["-r".into(), "-nostdlib".into(), "-o".into(), merged.clone().into()];
    arguments.extend(objects);
    compile_c(directory.path(), &arguments)?;
    std::fs::read(&merged).map_err(|source| EmitFileError::Io { path: merged, source })
}

/// Writes the library `library`, and the C header of the same name with the extension `h` beside it. The library is static if its extension is `a`, otherwise
/// shared. If `library` is a device, no header is written. Returns the path of the header.
///
/// # Errors
/// If a kernel cannot be compiled, the C compiler fails, or a file cannot be written; then no file is written.
pub fn write_library(plan: &Plan, options: &BackendOptions, library: &Path) -> Result<PathBuf, EmitFileError> {
    plan.validate().map_err(CompileError::from)?;
    check_standalone(plan)?;
    write_linked(plan, &header(plan), library, |directory| {
        let objects = write_objects(&compile_objects(plan, options)?, directory)?;
        write(&directory.join("model.c"), source::source(plan).as_bytes())?;
        Ok(objects)
    })
}

/// Writes a library for ranges of sizes as [`write_library`] does.
///
/// # Errors
/// As [`write_library`].
pub fn write_range_library(
    ranged: &RangePlan,
    options: &BackendOptions,
    library: &Path,
) -> Result<PathBuf, EmitFileError> {
    write_linked(ranged.plan(), &ranged.header(), library, |directory| {
        let objects = compile_codes(&ranged.plan().name, ranged.codes(), options)?;
        let objects = write_objects(&objects, directory)?;
        let source = ranged.source();
        write(&directory.join("tables.bin"), &source.tables)?;
        write(&directory.join("model.c"), source.text.as_bytes())?;
        Ok(objects)
    })
}

/// Writes a library and its header. `write_model` writes the kernels' objects and `model.c` to a folder, and returns the names of the objects.
fn write_linked(
    plan: &Plan,
    header: &str,
    library: &Path,
    write_model: impl FnOnce(&Path) -> Result<Vec<OsString>, EmitFileError>,
) -> Result<PathBuf, EmitFileError> {
    let identifier = |c: char| c == '_' || c.is_ascii_alphanumeric();
    if !plan.name.chars().all(identifier) || plan.name.starts_with(|c: char| c.is_ascii_digit()) || plan.name.is_empty()
    {
        return Err(EmitFileError::Name(plan.name.clone()));
    }
    let directory = temporary()?;
    let mut parts = write_model(directory.path())?;
    write_common(plan, header, directory.path())?;
    parts.extend(["runtime.o", "model.c"].map(OsString::from));
    let output = match library.extension() {
        Some(extension) if extension == "a" => link_static(plan, directory.path(), parts)?,
        _ => link_shared(plan, directory.path(), parts)?,
    };
    let bytes = std::fs::read(&output).map_err(|source| EmitFileError::Io { path: output, source })?;
    let header_path = library.with_extension("h");
    // Both are written before either is put in its place. Beside a device stands no header.
    let library = written(library, &bytes)?;
    let header = match library.1.is_file() {
        true => Some(written(&header_path, header.as_bytes())?),
        false => None,
    };
    for (path, file) in std::iter::once(library).chain(header) {
        file.commit().map_err(|source| EmitFileError::Io { path, source })?;
    }
    Ok(header_path)
}

/// Writes the files of a library that do not depend on its calls to `directory`.
fn write_common(plan: &Plan, header: &str, directory: &Path) -> Result<(), EmitFileError> {
    let file = |name: &str| directory.join(name);
    write(&file("runtime.o"), RUNTIME)?;
    // An empty section has no address of its own.
    for (name, constants) in [
        ("constants.bin", &plan.constants),
        ("sources.bin", &plan.preparation.sources),
    ] {
        let bytes = constants.bytes();
        write(&file(name), if bytes.is_empty() { &[0; 64] } else { bytes })?;
    }
    write(&file("model.h"), header.as_bytes())
}

/// Compiler options for the C file of a library.
const C_OPTIONS: [&str; 4] = ["-fPIC", "-O2", "-std=gnu11", "-pthread"];

/// Links `parts` in `directory` to a shared library. Returns its path.
fn link_shared(plan: &Plan, directory: &Path, parts: Vec<OsString>) -> Result<PathBuf, EmitFileError> {
    let exports = format!("{{ global: {}_*; local: *; }};\n", plan.name);
    write(&directory.join("exports.map"), exports.as_bytes())?;
    let output = directory.join("library.so");
    let mut arguments: Vec<OsString> = C_OPTIONS
        .into_iter()
        .chain(["-shared", "-Wl,-z,noexecstack", "-Wl,--version-script=exports.map"])
        .chain(["-Wl,--no-undefined", "-s", "-o"])
        .map(OsString::from)
        .collect();
    arguments.push(output.clone().into());
    arguments.extend(parts);
    arguments.push("-lm".into());
    compile_c(directory, &arguments)?;
    Ok(output)
}

/// Links `parts` in `directory` to one object, and creates an archive of it. Returns the path of the archive.
fn link_static(plan: &Plan, directory: &Path, parts: Vec<OsString>) -> Result<PathBuf, EmitFileError> {
    let mut arguments: Vec<OsString> = C_OPTIONS.into_iter().map(OsString::from).collect();
    arguments.extend(["-r", "-nostdlib", "-o", "library.o"].map(OsString::from));
    arguments.extend(parts);
    compile_c(directory, &arguments)?;
    let keep = format!("--keep-global-symbol={}_*", plan.name);
    run("objcopy", directory, ["--wildcard", &keep, "library.o"])?;
    run("ar", directory, ["rcs", "library.a", "library.o"])?;
    Ok(directory.join("library.a"))
}

fn temporary() -> Result<TemporaryFolder, EmitFileError> {
    TemporaryFolder::create().map_err(|source| EmitFileError::Io {
        path: std::env::temp_dir(),
        source,
    })
}

/// Returns an error for plans that need this program at run time.
fn check_standalone(plan: &Plan) -> Result<(), EmitFileError> {
    if !plan.shared.is_empty() {
        let invalid = LoadError::InvalidPlan("a library cannot share constants with this process".to_owned());
        return Err(CompileError::from(invalid).into());
    }
    match plan.runtime_call_operators() {
        none if none.is_empty() => Ok(()),
        operators => Err(EmitFileError::RuntimeCalls(operators)),
    }
}

/// Writes the kernels' objects. Returns their names in `directory`.
fn write_objects(objects: &[Vec<u8>], directory: &Path) -> Result<Vec<OsString>, EmitFileError> {
    let mut names = Vec::with_capacity(objects.len());
    for (i, object) in objects.iter().enumerate() {
        let name = format!("kernel_{i}.o");
        write(&directory.join(&name), object)?;
        names.push(name.into());
    }
    Ok(names)
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), EmitFileError> {
    std::fs::write(path, bytes).map_err(|source| EmitFileError::Io {
        path: path.to_owned(),
        source,
    })
}

/// Returns a file with the content `bytes` that appears at `path` once it is committed.
fn written(path: &Path, bytes: &[u8]) -> Result<(PathBuf, OutputFile), EmitFileError> {
    let file = OutputFile::create(path).and_then(|mut file| {
        file.file().write_all(bytes)?;
        Ok(file)
    });
    let path = path.to_owned();
    match file {
        Ok(file) => Ok((path, file)),
        Err(source) => Err(EmitFileError::Io { path, source }),
    }
}

/// Runs the C compiler, `$CC` or `cc`, in `directory`.
fn compile_c(directory: &Path, arguments: &[OsString]) -> Result<(), EmitFileError> {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    run(&compiler, directory, arguments)
}

/// Runs `command` in `directory`.
fn run(
    command: &str,
    directory: &Path,
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Result<(), EmitFileError> {
    let output = Command::new(command).current_dir(directory).args(arguments).output();
    let command = command.to_owned();
    match output {
        Err(source) => Err(EmitFileError::NoLinker { command, source }),
        Ok(o) if o.status.success() => Ok(()),
        Ok(o) => {
            let stderr = String::from_utf8_lossy(&o.stderr).into_owned();
            Err(EmitFileError::Linker { command, stderr })
        }
    }
}
