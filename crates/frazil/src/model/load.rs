//! Reading of models and graphs from archives, text and source.

use super::Model;
use super::loaded::{Graphs, Loaded};
use crate::error::{Error, Result};
use crate::session::Session;
use crate::support::backing::Backing;
use crate::support::limited::within;
use frazil_ir::schema::FunctionSchema;
use frazil_ir::{CompilationUnit, Context, Function, Graph, symbols};
use frazil_limits::Phase;
use frazil_syntax::{
    FileIdentity, NoTensors, ParseError, ParseOptions, TextKind, parse_module_with, read_module_open, render, sniff,
};
use frazil_torchscript::archive::foreign;
use frazil_torchscript::{Known, LoadError, Source};
use std::fs::File;
use std::io::{IsTerminal, Read};
use std::path::Path;
use std::sync::Arc;

impl Session {
    /// Reads a model: a `.pt` archive, `.ir` text, or TorchScript source. Functions become methods, and a bare graph becomes `forward`. The kind
    /// of the file is detected from its content.
    ///
    /// ```
    /// # use frazil::Session;
    /// # let folder = tempfile::tempdir().map_err(|e| frazil::Error::Text(e.to_string()))?;
    /// # let path = folder.path().join("f.py");
    /// # std::fs::write(&path, "def f(x): return x + 1\n").map_err(|e| frazil::Error::Text(e.to_string()))?;
    /// let model = Session::new().load(&path)?; // `f.py`: def f(x): return x + 1
    /// assert_eq!(model.root().method_names(), ["f"]);
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the file cannot be read or is malformed, or if it contains a bare graph that uses its former module.
    pub fn load(&self, path: impl AsRef<Path>) -> Result<Model> {
        self.load_any(path.as_ref())?.runnable()
    }

    /// Reads a model or graphs: a `.pt` archive, `.ir` text, or TorchScript source. `-` is standard input.
    ///
    /// See [`load_bytes`](Self::load_bytes) for an example.
    ///
    /// # Errors
    /// If the file cannot be read or is malformed.
    pub fn load_any(&self, path: &Path) -> Result<Loaded> {
        let _inside = frazil_rt::gate::enter()?;
        within(self.limits(), Phase::Load, || self.read_any(path).and_then(counted))
    }

    fn read_any(&self, path: &Path) -> Result<Loaded> {
        if path == Path::new("-") {
            let mut bytes = Vec::new();
            std::io::stdin()
                .read_to_end(&mut bytes)
                .map_err(|e| Error::io("read", path, e))?;
            return self.read_bytes(path, bytes);
        }
        let mut head = [0; 4];
        let mut file = File::open(path).map_err(|e| Error::io("read", path, e))?;
        let n = file.read(&mut head).map_err(|e| Error::io("read", path, e))?;
        if is_archive(&head[..n]) {
            // The file stays open, and tensors are read from it when they are needed.
            let read = file.try_clone().map_err(|e| Error::io("read", path, e))?;
            let (origin, loaded) = FileIdentity::while_reading(&file, || {
                frazil_torchscript::load_open(read, path, &self.load_options())
            });
            let (module, bytes) = loaded.map_err(|source| Error::Load {
                path: path.to_owned(),
                source,
            })?;
            let backing = Backing::new(bytes.file().cloned());
            backing.check()?;
            return Ok(Loaded::Model(
                Model::of(self.clone(), module).read_from(origin, backing),
            ));
        }
        let bytes = std::fs::read(path).map_err(|e| Error::io("read", path, e))?;
        self.read_bytes(path, bytes)
    }

    /// Reads a model or graphs from memory as [`load_any`](Self::load_any) does. `path` is used in messages, and to find files beside it.
    ///
    /// ```
    /// use frazil::{Loaded, Session};
    ///
    /// let text = "graph(%x : Tensor):\n  %y : Tensor = aten::relu(%x)\n  return (%y)\n";
    /// let loaded = Session::new().load_bytes("graph.ir".as_ref(), text.into())?;
    /// assert!(matches!(&loaded, Loaded::Graphs(_)) && loaded.graph("forward")?.inputs().len() == 1);
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the bytes are malformed.
    pub fn load_bytes(&self, path: &Path, bytes: Vec<u8>) -> Result<Loaded> {
        let _inside = frazil_rt::gate::enter()?;
        within(self.limits(), Phase::Load, || {
            self.read_bytes(path, bytes).and_then(counted)
        })
    }

    fn read_bytes(&self, path: &Path, bytes: Vec<u8>) -> Result<Loaded> {
        let load = |source| Error::Load {
            path: path.to_owned(),
            source,
        };
        if is_archive(&bytes) || path.extension().is_some_and(|e| e == "pt" || e == "pth") {
            let module = frazil_torchscript::load_bytes(bytes, &self.load_options()).map_err(load)?;
            return Ok(Loaded::Model(Model::of(self.clone(), module)));
        }
        if let Some(foreign) = foreign::of_bytes(&bytes).filter(|_| !bytes.is_empty()) {
            return Err(load(LoadError::Archive(foreign.into())));
        }
        let text = String::from_utf8(bytes).map_err(|e| {
            let at = e.utf8_error().valid_up_to();
            Error::Text(format!(
                "error: {} is neither an archive nor text: byte {at} is no UTF-8\n",
                path.display()
            ))
        })?;
        if path.extension().is_some_and(|e| e == "py") {
            return self.read_script(path, &text, &[]);
        }
        parse(self, path, &text)
    }

    /// Compiles TorchScript source (`torch.jit.script`) that may call external functions: traced ones, or those of other sources. `known` lists them by the
    /// names that the source uses. If an entry has several functions, the one of that name is used. `path` is used in messages.
    ///
    /// ```
    /// use frazil::{Loaded, Session};
    ///
    /// let session = Session::new();
    /// let Loaded::Graphs(f) = session.script("f.py".as_ref(), "def f(x): return x + 1\n", &[])? else { panic!() };
    /// let g = session.script("g.py".as_ref(), "def g(x): return f(x) * 2\n", &[("f", &f)])?;
    /// assert!(g.code(None, false)?.contains("def g(x: Tensor) -> Tensor:"));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the source has errors, or if functions in `known` do not exist or belong to another session.
    pub fn script(&self, path: &Path, text: &str, known: &[(&str, &Graphs)]) -> Result<Loaded> {
        let _inside = frazil_rt::gate::enter()?;
        within(self.limits(), Phase::Load, || {
            self.read_script(path, text, known).and_then(counted)
        })
    }

    fn read_script(&self, path: &Path, text: &str, known: &[(&str, &Graphs)]) -> Result<Loaded> {
        let mut functions = Vec::new();
        for (name, graphs) in known {
            if !Arc::ptr_eq(self.ctx(), graphs.session().ctx()) {
                return Err(Error::Unsupported(format!("`{name}` belongs to another session")));
            }
            functions.push(Known {
                name,
                unit: graphs.unit(),
                function: graphs.function(name)?,
            });
        }
        let file = path.display().to_string();
        let source = self.with_source_options(|o| frazil_torchscript::load_source_with(&file, text, &functions, o));
        let source = source.map_err(|source| Error::Load {
            path: path.to_owned(),
            source,
        })?;
        Ok(match source {
            Source::Module(module) => Loaded::Model(Model::of(self.clone(), *module)),
            Source::Unit(unit) => Loaded::Graphs(Graphs::of_unit(self.clone(), unit)),
        })
    }
}

/// Returns `loaded`, unless it has more nodes than the session's limits allow.
fn counted(loaded: Loaded) -> Result<Loaded> {
    if frazil_limits::most_nodes().is_some() {
        let nodes = |unit: &CompilationUnit| unit.functions().map(|(_, f)| f.graph.all_nodes().len()).sum();
        frazil_limits::check_nodes(match &loaded {
            Loaded::Model(model) => nodes(&model.module().unit),
            Loaded::Graphs(graphs) => nodes(graphs.unit()),
        })?;
    }
    Ok(loaded)
}

/// Returns the identity of the file at `path`, if it is an archive whose changes can be detected.
pub(crate) fn archive_identity(path: &Path) -> Result<Option<FileIdentity>> {
    if path == Path::new("-") {
        return Ok(None);
    }
    let mut head = [0; 4];
    let mut file = File::open(path).map_err(|e| Error::io("read", path, e))?;
    let n = file.read(&mut head).map_err(|e| Error::io("read", path, e))?;
    Ok(is_archive(&head[..n]).then(|| FileIdentity::of(&file)).flatten())
}

/// Returns whether `bytes` start with the magic number of zip files.
fn is_archive(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06")
}

/// Parses a module or a bare graph in the text form (`.ir`).
fn parse(session: &Session, path: &Path, text: &str) -> Result<Loaded> {
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
        // The tensors are stored beside the file; text from standard input must contain all of its tensors.
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

/// Returns a function without a name, whose body is `graph`.
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
