//! Loading of archives and source texts as [`Module`]s.

mod checkpoint;
mod extend;
mod traces;

use std::fs::File;
use std::path::Path;

use frazil_ir::{CompilationUnit, Module};
use frazil_limits::Budget;

use crate::archive::{Archive, ArchiveError, Limits, SharedBytes, foreign};
use crate::error::Result;
use crate::objects;
use crate::options::LoadOptions;
use crate::program::{ArchiveSources, SourceProgram};
use crate::source::with_stack;

pub use checkpoint::Checkpoint;
pub use extend::{define_methods, load_source_with};

/// Loads the archive at `path`. Tensors refer to ranges of the file and are read on first use. The file must not be changed before that; [`load_open`] returns
/// a handle that detects changes.
///
/// # Errors
/// When the file cannot be read, is no TorchScript archive, or its code does not compile.
pub fn load(path: &Path, options: &LoadOptions<'_>) -> Result<Module> {
    load_archive(&Archive::open(path)?, options)
}

/// Loads the archive in an open `file` as [`load`] does. Also returns the file's bytes: [`SharedBytes::is_whole`] returns whether the file was unchanged in
/// all reads so far. `path` is used in messages.
///
/// # Errors
/// See [`load`].
pub fn load_open(file: File, path: &Path, options: &LoadOptions<'_>) -> Result<(Module, SharedBytes)> {
    let archive = Archive::new(SharedBytes::of_file(file, path)?, Limits::default())?;
    Ok((load_archive(&archive, options)?, archive.file().clone()))
}

/// Loads an archive from memory.
///
/// # Errors
/// See [`load`].
pub fn load_bytes(bytes: Vec<u8>, options: &LoadOptions<'_>) -> Result<Module> {
    load_archive(&Archive::new(SharedBytes::from(bytes), Limits::default())?, options)
}

/// Loads an open archive.
///
/// # Errors
/// See [`load`].
pub fn load_archive(archive: &Archive, options: &LoadOptions<'_>) -> Result<Module> {
    if let Some(foreign) = foreign::of_entries(&archive.names().collect::<Vec<_>>()) {
        return Err(ArchiveError::from(foreign).into());
    }
    // Within a budget of the caller's, if there is one.
    let budget = Budget::with_allowance(archive.reading_bytes());
    let _entered = budget.enter();
    let loaded = with_stack(|stack| {
        let sources = ArchiveSources { archive };
        let mut program = SourceProgram::new(options, &sources, stack);
        program.definitions.version = archive.version();
        if archive.contains("constants.pkl") {
            program.definitions.constants = objects::read_constants(&mut program, archive)?;
        }
        let root = objects::read(&mut program, archive)?;
        program.compile_all()?;
        let mut module = program
            .definitions
            .objects
            .into_module(root, options.ctx, program.definitions.unit);
        for name in archive.names() {
            if let Some(file) = name.strip_prefix("extra/") {
                module.extra_files.insert(file.to_owned(), archive.read(name)?.into());
            } else if name == "traced_inputs.pkl" || name.starts_with("traced_inputs/") {
                module.records.insert(name.to_owned(), archive.read(name)?.into());
            }
        }
        Ok(module)
    });
    // An error of a part of it, as a file of source has, does not say that it is one of the limit.
    match budget.exceeded() {
        Some(exceeded) => Err(exceeded.clone().into()),
        None => loaded,
    }
}

/// Compiles the functions and classes of a TorchScript source text. Functions keep their names, without a qualifier. They may call operators of the catalogue
/// (`torch.relu(x)`, `x.relu()`) and one another. `file` is the name of the text in source ranges and errors.
///
/// # Errors
/// When the text does not compile.
pub fn compile_source(file: &str, text: &str, options: &LoadOptions<'_>) -> Result<CompilationUnit> {
    Ok(match load_source(file, text, options)? {
        Source::Module(module) => module.unit,
        Source::Unit(unit) => unit,
    })
}

/// The result of compiling a source text.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one a file")]
pub enum Source {
    /// A module: the source text has classes that derive from `torch.nn.Module`.
    Module(Box<Module>),
    /// Functions and classes: the source text has no module.
    Unit(CompilationUnit),
}

/// Compiles a TorchScript source text by running its top level on the subset of Python that docs/language.md describes.
///
/// If the text creates modules, or has classes that derive from `torch.nn.Module`, the result is a module. It is the global variable `model`, else the only
/// global variable that is a module, else an object of the last such class, created without arguments.
///
/// # Errors
/// When the text does not compile, or a constructor uses unsupported Python.
pub fn load_source(file: &str, text: &str, options: &LoadOptions<'_>) -> Result<Source> {
    load_source_with(file, text, &[], options)
}
