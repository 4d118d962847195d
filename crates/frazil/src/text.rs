//! The text form: reading it with messages for people, and printing whatever there is.

use crate::backing::Backing;
use crate::{Error, Graphs, Loaded, Model, Result, Session, write_atomically};
use frazil_ir::schema::FunctionSchema;
use frazil_ir::{CompilationUnit, Context, Function, Graph, Module, symbols};
use frazil_passes::PassError;
use frazil_passes::manager::{IrPrinter, IrRef, Reproducer};
use frazil_syntax::{
    ModulePrintOptions, NoTensors, ParseError, ParseOptions, PrintOptions, TextKind, WriteError, parse_module_with,
    read_module_open, render, sniff,
};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Reads `.ir` text: a module, or a bare graph.
pub(crate) fn parse(session: &Session, path: &Path, text: &str) -> Result<Loaded> {
    let name = path.display().to_string();
    let color = std::io::stderr().is_terminal();
    let report = |e: ParseError| Error::Text(render(&name, text, &e.diagnostics, color));
    let options = ParseOptions {
        catalogue: Some(session.registry().catalogue()),
        verify: true,
        places: true,
        name: Some(&name),
    };
    if sniff(text) == Some(TextKind::Module) {
        // The tensors lie beside the file; text from standard input has to hold all of its own.
        let (module, files) = if path.is_file() {
            read_module_open(session.ctx(), path, options).map_err(|e| Error::Text(e.render(color)))?
        } else {
            let module = parse_module_with(session.ctx(), text, &NoTensors, options).map_err(report)?;
            (module, Vec::new())
        };
        let model = Model::of(session.clone(), module).read_from(None, Backing::new(files));
        return Ok(Loaded::Model(model));
    }
    let parsed = frazil_syntax::parse_graph_with(session.ctx(), text, options).map_err(report)?;
    let mut unit = CompilationUnit::default();
    unit.add_function(function_of(session.ctx(), parsed.graph));
    Ok(Loaded::Graphs(Graphs::of_unit(session.clone(), unit)))
}

/// A graph without a name as a function.
fn function_of(ctx: &Context, graph: Graph) -> Function {
    let schema = FunctionSchema {
        name: symbols::FORWARD,
        overload: symbols::EMPTY,
        arguments: Vec::new(),
        returns: Vec::new(),
        is_vararg: true,
        is_varret: true,
    };
    Function {
        name: ctx.symbol("forward"),
        schema,
        graph,
    }
}

/// The text of a module, with all its tensors.
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

/// The text of functions without a module: a bare graph if it is one.
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

/// Writes a module's text with its tensors, which are read from `backing`, beside it.
pub(crate) fn write_module(module: &Module, backing: &Backing, path: &Path) -> Result<()> {
    let written = frazil_syntax::write_module_if(module, path, || Ok(backing.check()?));
    written.map_err(|e| match (e, backing.check()) {
        (WriteError::Read { .. }, Err(changed)) => changed,
        (e, _) => e.into(),
    })
}

/// Prints IR between passes to standard error.
pub(crate) struct StderrPrinter {
    pub(crate) elide: Option<usize>,
}

impl IrPrinter for StderrPrinter {
    fn print(&self, header: &str, ir: IrRef<'_>) {
        let text = match ir {
            IrRef::Module(module) => format!("// {header}\n{}", print_module(module, self.elide)),
            IrRef::Graph("", graph) => format!("// {header}\n{}", print_graph(graph, self.elide)),
            IrRef::Graph(name, graph) => format!("// {header} ({name})\n{}", print_graph(graph, self.elide)),
        };
        // Where standard error is closed or full, there is nowhere to say so.
        let _ = writeln!(std::io::stderr().lock(), "{text}");
    }
}

/// How the line of a reproducer starts that has the pipeline.
pub(crate) const PIPELINE_LINE: &str = "# pipeline: ";

/// Writes what reproduces a failure to a file: the IR with all its tensors, how to run it, and what happened.
pub(crate) struct ReproducerFile {
    pub(crate) path: PathBuf,
}

impl Reproducer for ReproducerFile {
    fn write(&self, pipeline: &str, ir: IrRef<'_>, error: &PassError) {
        let body = match ir {
            IrRef::Module(module) => print_module(module, None),
            IrRef::Graph(_, graph) => frazil_syntax::print_graph(graph),
        };
        let told: String = error.to_string().lines().map(|l| format!("#   {l}\n")).collect();
        let version = env!("CARGO_PKG_VERSION");
        let text = format!(
            "# Reproduces a failure of frazil {version}:\n{told}# Run it with: jit-opt --run-reproducer THIS_FILE\n\
             # RUN: jit-opt --run-reproducer %s\n{PIPELINE_LINE}{pipeline}\n{body}"
        );
        if let Err(e) = write_atomically(&self.path, |file| file.write_all(text.as_bytes())) {
            tracing::error!("cannot write {}: {e}", self.path.display());
        }
    }
}
