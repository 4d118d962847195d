//! The text form: printing graphs and modules, also between passes, and reproducers.

use crate::error::Result;
use crate::support::backing::Backing;
use frazil_ir::{CompilationUnit, Context, Function, Graph, Module};
use frazil_passes::manager::{IrPrinter, IrRef, Reproducer};
use frazil_passes::{PassError, TorchScript};
use frazil_syntax::write_atomically;
use frazil_syntax::{ModulePrintOptions, PrintOptions, WriteError};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Returns the text form of a module, including all its tensors.
pub(crate) fn print_module(module: &Module, elide: Option<usize>) -> String {
    let options = ModulePrintOptions {
        elide_constants_larger_than: elide,
        tensor_file: None,
        tensor_checksum: None,
    };
    frazil_syntax::print_module_to_string(module, options)
}

fn print_graph(graph: &Graph, elide: Option<usize>) -> String {
    let options = PrintOptions {
        elide_constants_larger_than: elide,
        ..PrintOptions::default()
    };
    frazil_syntax::print_graph_with(graph, options)
}

/// Returns the text form of functions without a module; of a bare graph, only the graph.
pub(crate) fn print_unit(ctx: &Context, unit: &CompilationUnit, elide: Option<usize>) -> String {
    let functions: Vec<&Function> = unit.functions().map(|(_, f)| f).collect();
    match functions.as_slice() {
        [only] => print_graph(&only.graph, elide),
        many => many
            .iter()
            .map(|f| format!("# {}\n{}", ctx.name(f.name), print_graph(&f.graph, elide)))
            .collect::<Vec<_>>()
            .join("\n"),
    }
}

/// Writes the text form of a module to `path`, and its larger tensors to a file beside it.
pub(crate) fn write_module(module: &Module, backing: &Backing, path: &Path) -> Result<()> {
    let written = frazil_syntax::write_module_if(module, path, || Ok(backing.check()?));
    written.map_err(|e| match (e, backing.check()) {
        (WriteError::Read { .. }, Err(changed)) => changed,
        (e, _) => e.into(),
    })
}

/// An [`IrPrinter`] that prints the IR between passes to standard error.
pub(crate) struct StderrPrinter {
    pub(crate) elide: Option<usize>,
}

impl IrPrinter<TorchScript> for StderrPrinter {
    fn print(&self, header: &str, ir: IrRef<'_>) {
        let (header, text) = match ir {
            IrRef::Module(module) => (header.to_owned(), print_module(module, self.elide)),
            IrRef::Graph("", graph) => (header.to_owned(), print_graph(graph, self.elide)),
            IrRef::Graph(name, graph) => (format!("{header} ({name})"), print_graph(graph, self.elide)),
        };
        self.print_text(&header, &text);
    }
}

impl StderrPrinter {
    /// Prints the text of IR under a header.
    pub(crate) fn print_text(&self, header: &str, text: &str) {
        // If standard error is closed or full, the error cannot be reported.
        let _ = writeln!(std::io::stderr().lock(), "// {header}\n{text}");
    }
}

/// Prefix of the line in a reproducer that contains the pipeline.
pub(crate) const PIPELINE_LINE: &str = "# pipeline: ";

/// Writes a reproducer of a failure to a file: the IR with all its tensors, the command to run, and the error.
pub(crate) struct ReproducerFile {
    pub(crate) path: PathBuf,
}

impl Reproducer<TorchScript> for ReproducerFile {
    fn write(&self, pipeline: &str, ir: IrRef<'_>, error: &PassError) {
        let body = match ir {
            IrRef::Module(module) => print_module(module, None),
            IrRef::Graph(_, graph) => frazil_syntax::print_graph(graph),
        };
        self.write_text(pipeline, &error.to_string(), &body);
    }
}

impl ReproducerFile {
    /// Writes a reproducer whose IR has the text `body`.
    pub(crate) fn write_text(&self, pipeline: &str, error: &str, body: &str) {
        let message: String = error.lines().map(|line| format!("#   {line}\n")).collect();
        let version = env!("CARGO_PKG_VERSION");
        let text = format!(
            "# Reproduces a failure of frazil {version}:\n{message}# Run it with: jit-opt --run-reproducer THIS_FILE\n\
             # RUN: jit-opt --run-reproducer %s\n{PIPELINE_LINE}{pipeline}\n{body}"
        );
        if let Err(e) = write_atomically(&self.path, |file| file.write_all(text.as_bytes())) {
            tracing::error!("cannot write {}: {e}", self.path.display());
        }
    }
}
