//! Printing of loaded modules, functions and graphs as TorchScript source.

use crate::error::{Error, Result};
use crate::model::Model;
use crate::model::loaded::Loaded;
use frazil_ir::{Builder, CompilationUnit, Constant, Context, Function, FunctionId, Graph, TypeKind};
use frazil_torchscript::code::{self, CodeError, CodeSource, ConstantTable, PrintedCode, TableEntry};
use std::collections::HashSet;
use std::fmt::Write;
use std::sync::Arc;

impl Loaded {
    /// Returns TorchScript source. For a module: of `method`, or of all methods, as PyTorch's `.code` shows them; calls of submodules are not
    /// inlined. A submodule's method is named by its dotted path (`encoder.forward`). For functions, graphs and classes: all definitions.
    ///
    /// With `constants`, comments after each piece list the constants that it names (`CONSTANTS.c0`). [`ScriptModule::code_with_constants`] returns
    /// their values.
    ///
    /// [`ScriptModule::code_with_constants`]: crate::ScriptModule::code_with_constants
    ///
    /// ```
    /// # let loaded = frazil::Session::new().script("f.py".as_ref(), "def f(x): return x + 1\n", &[])?;
    /// assert_eq!(loaded.code(None, false)?, "def f(x: Tensor) -> Tensor:\n  return torch.add(x, 1)\n");
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a graph cannot be written as TorchScript, or there is nothing to write.
    pub fn code(&self, method: Option<&str>, constants: bool) -> Result<String> {
        let (unit, pieces) = match self {
            Loaded::Model(model) => (&model.module().unit, methods(model, method)?),
            Loaded::Graphs(graphs) => (graphs.unit(), definitions(graphs.unit())),
        };
        if pieces.is_empty() {
            return Err(Error::Unsupported(
                "there are no methods or functions to be written as code".into(),
            ));
        }
        let ctx = self.session().ctx();
        let source = CodeSource {
            ctx,
            unit: Some(unit),
            catalogue: self.session().registry().catalogue(),
        };
        let mut out = String::new();
        for piece in pieces {
            let printed = print(source, unit, piece)?;
            out += printed.code.as_str();
            if constants {
                list_constants(ctx, &printed.constants, &mut out);
            }
        }
        Ok(out)
    }
}

/// A method, function or class that is printed by itself.
#[derive(Clone, Copy)]
enum Piece {
    Method(FunctionId),
    Function(FunctionId),
    Class(frazil_ir::SymbolId),
}

/// Returns the method called `method`, or all methods of a module for `None`.
fn methods(model: &Model, method: Option<&str>) -> Result<Vec<Piece>> {
    if let Some(path) = method {
        return Ok(vec![Piece::Method(model.method_at(path)?.1)]);
    }
    let module = model.module();
    let all = module.class_of(module.root).map(|class| &class.methods);
    let all = all.into_iter().flat_map(|all| all.values());
    Ok(all.map(|&id| Piece::Method(id)).collect())
}

/// Returns the classes of a unit, and its functions that are not methods.
fn definitions(unit: &CompilationUnit) -> Vec<Piece> {
    let methods: HashSet<FunctionId> = unit
        .classes
        .values()
        .flat_map(|c| c.methods.values().copied())
        .collect();
    let classes = unit.classes.keys().map(|&name| Piece::Class(name));
    let functions = unit.functions().filter(|(id, _)| !methods.contains(id));
    classes.chain(functions.map(|(id, _)| Piece::Function(id))).collect()
}

fn print(source: CodeSource<'_>, unit: &CompilationUnit, piece: Piece) -> Result<PrintedCode, CodeError> {
    match piece {
        Piece::Method(id) => code::print_method(source, unit.function(id)),
        Piece::Function(id) if takes_object(unit.function(id)) => code::print_method(source, unit.function(id)),
        Piece::Function(id) => code::print_function(source, unit.function(id)),
        Piece::Class(name) => code::print_class(source, name),
    }
}

/// Returns whether a graph without a module was the graph of a method: its first argument is an object called `self`.
fn takes_object(function: &Function) -> bool {
    let (graph, ctx) = (&function.graph, function.graph.ctx());
    graph.inputs().first().is_some_and(|&first| {
        let called_self = graph
            .value_name(first)
            .is_some_and(|name| name.word() == frazil_ir::symbols::SELF);
        called_self && matches!(ctx.type_kind(graph.ty(first)), TypeKind::Class(_))
    })
}

/// Appends a comment for each constant with its type and, if it is small, its value as in the text of graphs.
fn list_constants(ctx: &Arc<Context>, table: &ConstantTable, out: &mut String) {
    for (index, entry) in table.entries().iter().enumerate() {
        let _ = match entry {
            TableEntry::Elided(text) => writeln!(out, "# CONSTANTS.c{index} = {text}"),
            TableEntry::Value(constant) => writeln!(out, "# CONSTANTS.c{index} {}", shown(ctx, constant)),
        };
    }
}

/// Returns `: type = value`, from the text of a graph that contains only the constant.
fn shown(ctx: &Arc<Context>, constant: &Constant) -> String {
    let mut graph = Graph::new(Arc::clone(ctx));
    let root = graph.root();
    Builder::at_end(&mut graph, root).constant(constant.clone());
    let text = frazil_syntax::print_graph(&graph);
    let line = text
        .lines()
        .find_map(|line| line.split_once(" : "))
        .unwrap_or_default()
        .1;
    match line.split_once(" = prim::Constant[value=") {
        Some((ty, value)) => format!(": {ty} = {}", value.trim_end_matches("]()")),
        None => format!(": {line}"),
    }
}
