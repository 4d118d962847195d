//! Writing of `.pt` archives: the inverse of [`archive`](crate::archive) and of [`load`](crate::load).
//!
//! [`load`](crate::load) and PyTorch read the archive back without loss: the module object with its shared tensors, the source code of its classes and
//! functions, the tensors that the code names, and the extra files.

mod debug;
mod error;
mod function;
mod pickle;
mod python;
mod records;
mod values;

use std::collections::{BTreeMap, HashSet};
use std::io::{Cursor, Seek, Write};
use std::sync::Arc;

use frazil_ir::nesting::check_module;
use frazil_ir::schema::Catalogue;
use frazil_ir::{CompilationUnit, Context, Module, NodeId, SymbolId, TensorData, symbols};

use crate::code::print_module;
use crate::source::{MAX_DEPTH, Stack, too_deep, with_stack};
use records::RecordWriter;
use values::{Pickled, ValueWriter};

pub use error::SaveError;
pub use function::function_module;

/// The format version that PyTorch writes for code whose operators have the same meaning in all versions.
const LEAST_VERSION: u64 = 3;

/// Options for writing an archive.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct SaveOptions {
    /// The top directory in the zip file; `archive` if empty. PyTorch names it after the file.
    pub top: String,
    /// Extra files to be written in addition to those of the module, of which they replace equally named ones.
    pub extra_files: BTreeMap<String, Arc<[u8]>>,
}

impl SaveOptions {
    /// Returns the options with `top` as the name of the top directory.
    #[must_use]
    pub fn top(mut self, top: String) -> Self {
        self.top = top;
        self
    }

    /// Returns the options with the additional extra files `extra_files`.
    #[must_use]
    pub fn extra_files(mut self, extra_files: BTreeMap<String, Arc<[u8]>>) -> Self {
        self.extra_files = extra_files;
        self
    }
}

/// Writes `module` as a `.pt` archive to `out`.
///
/// `catalogue` belongs to the module's context and defines how operators are printed. Tensors that are not in memory are read one at a time and released after
/// writing.
///
/// # Errors
/// When the module has no form as an archive, see [`SaveError`]; before the first byte is written. And when `out` fails.
pub fn save<W: Write + Seek + Send>(
    module: &Module,
    catalogue: &Catalogue,
    out: W,
    options: &SaveOptions,
) -> Result<W, SaveError> {
    with_stack(|stack| EncodedArchive::new(module, catalogue, stack)?.write(out, module, options))
}

/// Returns the archive of `module` as bytes.
///
/// # Errors
/// See [`save`].
pub fn save_bytes(module: &Module, catalogue: &Catalogue, options: &SaveOptions) -> Result<Vec<u8>, SaveError> {
    save(module, catalogue, Cursor::new(Vec::new()), options).map(Cursor::into_inner)
}

/// Writes tensors by name as a file that `torch.load` reads: the format of `torch.save` for a state dictionary. `top` is the directory in the zip file that
/// contains all records; `archive` when empty.
///
/// # Errors
/// When `out` fails, or `top` is no name of a directory.
pub fn save_checkpoint<W: Write + Seek + Send>(
    tensors: &[(String, Arc<TensorData>)],
    out: W,
    top: &str,
) -> Result<W, SaveError> {
    with_stack(|stack| {
        let data = ValueWriter::state(&no_module(), tensors, stack)?;
        let mut records = RecordWriter::new(out, if top.is_empty() { "archive" } else { top })?;
        records.stored("data.pkl", &data.bytes)?;
        records.stored("byteorder", b"little")?;
        data.write_storages("data", &mut records)?;
        records.stored("version", format!("{LEAST_VERSION}\n").as_bytes())?;
        records.finish()
    })
}

/// The encoded archive without tensors. Everything that can fail because of the module happens while it is built,
/// before anything is written.
struct EncodedArchive {
    data: Pickled,
    code: Vec<CodeRecord>,
    constants: Pickled,
    version: u64,
}

/// Checks that all graphs are valid, and that the catalogue has all operators of its namespaces. Operators of other namespaces belong to libraries, which are
/// loaded together with the archive.
fn operators_exist(module: &Module, catalogue: &Catalogue) -> Result<(), SaveError> {
    let ctx = module.ctx();
    let namespace = |name: SymbolId| ctx.name(name).split("::").next().unwrap_or_default();
    let namespaces: HashSet<&str> = catalogue.operators().map(namespace).collect();
    let functions = module.unit.functions().map(|(_, function)| function);
    for (function, graph) in functions.flat_map(|f| f.graph.self_and_subgraphs().into_iter().map(move |g| (f, g))) {
        graph.verify(None).map_err(|source| SaveError::Invalid {
            function: ctx.name(function.name).to_owned(),
            source,
        })?;
        let missing = |node: &NodeId| {
            let kind = graph.kind(*node);
            !catalogue.contains(kind) && namespaces.contains(namespace(kind))
        };
        // Names are looked up first: overloads cost more.
        if !graph.all_nodes().iter().any(missing) {
            continue;
        }
        if let Some(node) = graph.unknown_operators(catalogue).into_iter().find(missing) {
            return Err(SaveError::UnknownOperator {
                function: ctx.name(function.name).to_owned(),
                operator: graph.kind_name(node).to_owned(),
                place: graph.source_range(node).map(|range| range.display(ctx).to_string()),
            });
        }
    }
    Ok(())
}

/// A code file of the archive with its debug record.
struct CodeRecord {
    entry: String,
    text: String,
    debug: Vec<u8>,
}

impl EncodedArchive {
    fn new(module: &Module, catalogue: &Catalogue, stack: Stack) -> Result<EncodedArchive, SaveError> {
        check_module(module)?;
        operators_exist(module, catalogue)?;
        python::check(module)?;
        let data = ValueWriter::root(module, stack)?;
        let printed = print_module(module, catalogue)?;
        let constants = ValueWriter::constants(module, &printed.constants.values()?, stack)?;
        for file in &printed.files {
            let text = file.code.as_str();
            if let Some(at) = too_deep(text, MAX_DEPTH) {
                return Err(SaveError::Nesting {
                    entry: file.entry(),
                    line: 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count(),
                });
            }
        }
        let code = printed.files.into_iter().map(|file| CodeRecord {
            entry: file.entry(),
            debug: debug::debug_record(module.ctx(), &module.unit.sources, &file.entry(), file.code.marks()),
            text: file.code.into_string(),
        });
        Ok(EncodedArchive {
            data,
            code: code.collect(),
            constants,
            version: printed.min_version.max(LEAST_VERSION),
        })
    }

    fn write<W: Write + Seek>(&self, out: W, module: &Module, options: &SaveOptions) -> Result<W, SaveError> {
        let top = match options.top.as_str() {
            "" => "archive",
            top => top,
        };
        let mut records = RecordWriter::new(out, top)?;
        let carried = module
            .extra_files
            .iter()
            .filter(|(name, _)| !options.extra_files.contains_key(*name));
        for (name, bytes) in carried.chain(&options.extra_files) {
            records.stored(&format!("extra/{name}"), bytes)?;
        }
        self.data.write("data", &mut records)?;
        for file in &self.code {
            records.deflated(&file.entry, file.text.as_bytes())?;
            records.deflated(&format!("{}.debug_pkl", file.entry), &file.debug)?;
        }
        self.constants.write("constants", &mut records)?;
        // Readers that are too old for a version do not look where newer ones state theirs.
        for (name, bytes) in &module.records {
            records.stored(name, bytes)?;
        }
        let entry = if self.version < 6 { "version" } else { ".data/version" };
        records.stored(entry, format!("{}\n", self.version).as_bytes())?;
        records.stored("byteorder", b"little")?;
        records.finish()
    }
}

impl Pickled {
    /// Writes the storages as entries `NAME/0`, `NAME/1`, ... and the pickle as `NAME.pkl`.
    fn write<W: Write + Seek>(&self, name: &str, records: &mut RecordWriter<W>) -> Result<(), SaveError> {
        self.write_storages(name, records)?;
        records.stored(&format!("{name}.pkl"), &self.bytes)
    }

    fn write_storages<W: Write + Seek>(&self, name: &str, records: &mut RecordWriter<W>) -> Result<(), SaveError> {
        for (number, storage) in self.storages.iter().enumerate() {
            let bytes = storage.read(0..storage.len()).unwrap_or_default();
            records.stored(&format!("{name}/{number}"), &bytes)?;
        }
        Ok(())
    }
}

/// Returns an empty module, for writing values that belong to no module.
fn no_module() -> Module {
    let ctx = Arc::new(Context::new());
    Module::new(ctx, CompilationUnit::default(), symbols::EMPTY, Vec::new())
}
