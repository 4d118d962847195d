//! The front end: from source code and pickled objects to a [`Module`].

mod annotation;
mod construct;
mod emit;
mod extend;
mod library;
mod objects;
mod program;
mod source;
mod stack;
mod traced;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use frazil_ir::schema::Catalogue;
use frazil_ir::{CompilationUnit, Context, Graph, Module};
use frazil_limits::Budget;

use crate::archive::{Archive, ArchiveError, Limits, SharedBytes, foreign};
use program::{ArchiveSources, Program};

pub(crate) use emit::python_function;
pub(crate) use source::{MAX_DEPTH, too_deep};
pub(crate) use stack::{Stack, with_stack};

pub use extend::{Known, define_methods, load_source_with};
pub use objects::Checkpoint;
pub(crate) use objects::no_module;
pub use source::SourceError;
pub use traced::{TraceContext, TraceRequest, Tracer};

/// Why a module cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The archive is damaged, or not one.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// Its code does not compile.
    #[error(transparent)]
    Source(#[from] Box<SourceError>),
    /// Loading needs more than the current thread's budget, or the size of the archive, allows.
    #[error(transparent)]
    Exceeded(#[from] frazil_limits::Exceeded),
    /// The system refused what loading needs.
    #[error("cannot load: {0}")]
    Thread(std::io::Error),
}

pub(crate) type Result<T, E = LoadError> = std::result::Result<T, E>;

/// What loading needs to know.
#[derive(Clone, Copy)]
pub struct LoadOptions<'a> {
    /// Where names and types are interned.
    pub ctx: &'a Arc<Context>,
    /// The operators that code may call; its context must be `ctx`.
    pub catalogue: &'a Catalogue,
    /// What folds constants in the graph of every function that people wrote, before constants are pooled: PyTorch's compiler does so. The
    /// operators' semantics, which it takes, are not known here.
    pub fold: Option<Fold<'a>>,
    /// Whether `torch.x` is the operator where Python has a function around it. Set for sources that define what operators do.
    pub operators_first: bool,
    /// What records functions and modules that source traces.
    pub trace: Option<Tracer<'a>>,
}

/// Folds constants in a graph, see [`LoadOptions::fold`].
pub type Fold<'a> = &'a (dyn Fn(&mut Graph) + Sync);

impl<'a> LoadOptions<'a> {
    /// With these operators, and without folding.
    pub fn new(ctx: &'a Arc<Context>, catalogue: &'a Catalogue) -> LoadOptions<'a> {
        LoadOptions {
            ctx,
            catalogue,
            fold: None,
            operators_first: false,
            trace: None,
        }
    }
}

impl std::fmt::Debug for LoadOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoadOptions").finish_non_exhaustive()
    }
}

/// Loads the archive at `path`: tensors of the module are windows on the file, which is read when their elements are needed. Until then it must
/// not be changed; [`load_open`] gives what says whether it was.
///
/// # Errors
/// When the file cannot be read, is no TorchScript archive, or its code does not compile.
pub fn load(path: &Path, options: &LoadOptions<'_>) -> Result<Module> {
    load_archive(&Archive::open(path)?, options)
}

/// Loads the archive that `file` is, as [`load`], with the bytes that tensors are read from: [`SharedBytes::is_whole`] says whether they could be so far.
/// `path` is for messages.
///
/// # Errors
/// As [`load`].
pub fn load_open(file: File, path: &Path, options: &LoadOptions<'_>) -> Result<(Module, SharedBytes)> {
    let archive = Archive::new(SharedBytes::of_file(file, path)?, Limits::default())?;
    Ok((load_archive(&archive, options)?, archive.file().clone()))
}

/// Loads an archive that is in memory.
///
/// # Errors
/// As [`load`].
pub fn load_bytes(bytes: Vec<u8>, options: &LoadOptions<'_>) -> Result<Module> {
    load_archive(&Archive::new(SharedBytes::from(bytes), Limits::default())?, options)
}

/// Loads an open archive.
///
/// # Errors
/// As [`load`].
pub fn load_archive(archive: &Archive, options: &LoadOptions<'_>) -> Result<Module> {
    if let Some(foreign) = foreign::of_entries(&archive.names().collect::<Vec<_>>()) {
        return Err(ArchiveError::from(foreign).into());
    }
    // Within a budget of the caller's, if there is one.
    let budget = Budget::with_allowance(archive.reading_bytes());
    let _entered = budget.enter();
    let loaded = with_stack(|stack| {
        let sources = ArchiveSources { archive };
        let mut program = Program::new(options, &sources, stack);
        program.version = archive.version();
        program.load_constants(archive)?;
        let root = objects::read(&mut program, archive)?;
        program.compile_all()?;
        let mut module = program.objects.into_module(root, options.ctx, program.unit);
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

/// Compiles the functions and classes of a TorchScript source text. Functions are named as they stand there, without a prefix; they may
/// call operators of the catalogue (`torch.relu(x)`, `x.relu()`) and one another. `file` names the text in source ranges and errors.
///
/// # Errors
/// When the text does not compile.
pub fn compile_source(file: &str, text: &str, options: &LoadOptions<'_>) -> Result<CompilationUnit> {
    Ok(match load_source(file, text, options)? {
        Source::Module(module) => module.unit,
        Source::Unit(unit) => unit,
    })
}

/// What a TorchScript source text turned out to be.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one a file")]
pub enum Source {
    /// A module: the text has classes that derive from `torch.nn.Module`.
    Module(Box<Module>),
    /// Functions and classes.
    Unit(CompilationUnit),
}

/// Compiles a TorchScript source text. One that makes modules, or has classes that derive from `torch.nn.Module`, makes a module: the global
/// variable `model`, else the only global variable that is a module, else an object of the last such class, made without arguments. The text
/// is run on the part of Python that docs/language.md describes.
///
/// # Errors
/// When the text does not compile, or a constructor does what only Python can.
pub fn load_source(file: &str, text: &str, options: &LoadOptions<'_>) -> Result<Source> {
    load_source_with(file, text, &[], options)
}
