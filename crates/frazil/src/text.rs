//! The text form: reading it with messages for people, and printing whatever there is.

use crate::{Error, Graphs, Loaded, Result, Session};
use frazil_ir::schema::{Catalogue, FunctionSchema};
use frazil_ir::{CompilationUnit, Context, Function, Graph, Module, symbols};
use frazil_passes::AliasDb;
use frazil_passes::manager::{IrPrinter, IrRef};
use frazil_syntax::{ParseOptions, render};
use std::io::IsTerminal;
use std::path::Path;

/// Reads `.ir` text.
pub(crate) fn parse(session: &Session, path: &Path, text: &str) -> Result<Loaded> {
    let name = path.display().to_string();
    let color = std::io::stderr().is_terminal();
    let options = ParseOptions {
        catalogue: Some(session.registry().catalogue()),
        verify: true,
    };
    let parsed = frazil_syntax::parse_graph_with(session.ctx(), text, options)
        .map_err(|e| Error::Text(render(&name, text, &e.diagnostics, color)))?;
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

/// The text of a module.
pub(crate) fn print_module(module: &Module, _elide: Option<usize>) -> String {
    print_unit(module.ctx(), &module.unit, _elide)
}

/// The text of functions without a module: a bare graph if it is one.
pub(crate) fn print_unit(ctx: &Context, unit: &CompilationUnit, _elide: Option<usize>) -> String {
    let functions: Vec<&Function> = unit.functions().map(|(_, f)| f).collect();
    match functions.as_slice() {
        [only] => frazil_syntax::print_graph(&only.graph),
        many => many
            .iter()
            .map(|f| format!("# {}\n{}", ctx.name(f.name), frazil_syntax::print_graph(&f.graph)))
            .collect::<Vec<_>>()
            .join("\n"),
    }
}

/// Writes a module's text with its tensors beside it.
pub(crate) fn write_module(module: &Module, path: &Path) -> Result<()> {
    write_text(path, &print_module(module, None))
}

/// Writes text.
pub(crate) fn write_text(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(|e| Error::io("write", path, e))
}

/// The alias analysis of a graph as text.
pub(crate) fn alias_db(graph: &Graph, catalogue: &Catalogue) -> String {
    AliasDb::new(graph, catalogue).dump(graph)
}

/// Prints IR between passes to standard error.
pub(crate) struct StderrPrinter {
    pub(crate) elide: Option<usize>,
}

impl IrPrinter for StderrPrinter {
    #[expect(
        clippy::print_stderr,
        reason = "this is what the printer is for; it is made only where it is asked for"
    )]
    fn print(&self, header: &str, ir: IrRef<'_>) {
        match ir {
            IrRef::Module(module) => eprintln!("// {header}\n{}", print_module(module, self.elide)),
            IrRef::Graph("", graph) => eprintln!("// {header}\n{}", frazil_syntax::print_graph(graph)),
            IrRef::Graph(name, graph) => eprintln!("// {header} ({name})\n{}", frazil_syntax::print_graph(graph)),
        }
    }
}
