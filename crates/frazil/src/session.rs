//! Sessions: a context, the operators, and the passes; and reading whatever kind of input.

use crate::backing::Backing;
use crate::instance::ModelSource;
use crate::limited::within;
use crate::{Engine, EngineOptions, Error, Graphs, Loaded, Model, Result, SessionBuilder};
use frazil_ir::{CompilationUnit, Context, Graph, Module};
use frazil_limits::{Limits, Phase};
use frazil_passes::constant_propagation::ConstantPropagation;
use frazil_passes::{GraphPass, PassContext, PassRegistry};
use frazil_runtime::Registry;
use frazil_syntax::FileIdentity;
use frazil_torchscript::archive::foreign;
use frazil_torchscript::{Known, LoadError, LoadOptions, Source, TraceContext, TraceRequest};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// What models of one program share. Cheap to make and to clone; the operators are registered when they are first asked for, which takes a millisecond or
/// two. Drop it with its models and nothing stays.
///
/// ```
/// use frazil::Session;
///
/// let session = Session::new();
/// let model = session.script("f.py".as_ref(), "def f(x): return x + 1\n", &[])?.to_model("f")?;
/// drop(session); // the model keeps what it needs
/// assert!(model.session().registry().ctx().find_symbol("aten::add").is_some());
/// # Ok::<(), frazil::Error>(())
/// ```
#[derive(Clone)]
pub struct Session {
    shared: Arc<Shared>,
    limits: Limits,
}

struct Shared {
    ctx: Arc<Context>,
    /// Where nothing is compiled or interpreted, nobody asks for them.
    registry: OnceLock<Arc<Registry>>,
    passes: OnceLock<Arc<PassRegistry>>,
    /// What `torch.jit.enable_onednn_fusion` sets.
    onednn_fusion: AtomicBool,
}

/// The operators of the prim and aten dialects.
pub(crate) fn standard_operators(ctx: Arc<Context>) -> Registry {
    let mut registry = Registry::new(ctx);
    frazil_prim::register(&mut registry);
    frazil_aten::register(&mut registry);
    registry
}

impl Session {
    /// A session with the prim and aten dialects and the standard passes.
    ///
    /// See [`Session`] for an example.
    pub fn new() -> Session {
        let shared = Shared {
            ctx: Arc::new(Context::new()),
            registry: OnceLock::new(),
            passes: OnceLock::new(),
            onednn_fusion: AtomicBool::new(false),
        };
        Session {
            shared: Arc::new(shared),
            limits: Limits::NONE,
        }
    }

    /// Starts a session with operators and passes of an embedder beside the standard ones.
    ///
    /// ```
    /// use frazil::{Session, runtime::pointwise::{Pointwise, Promotion}};
    ///
    /// let session = Session::builder()
    ///     .operators(|registry| {
    ///         registry.add_schemas("mine::twice(Tensor self) -> Tensor")?;
    ///         registry.pointwise("mine::twice", Pointwise::new(&["self"], Promotion::Default, |b| b.x(0) + b.x(0)));
    ///         Ok::<_, frazil::ir::schema::CatalogueError>(())
    ///     })?
    ///     .build();
    /// assert!(session.registry().find("mine::twice", "").is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder() -> SessionBuilder {
        SessionBuilder::standard()
    }

    /// A session with these operators and passes alone; [`builder`](Self::builder) adds to the standard ones.
    ///
    /// ```
    /// use frazil::{Session, ir::Context, passes::PassRegistry, runtime::Registry};
    ///
    /// let empty = Registry::new(std::sync::Arc::new(Context::new())); // operators of one's own are registered here
    /// let session = Session::with(empty, PassRegistry::standard());
    /// assert!(session.eager().start("aten::relu").positional(1.0).call().is_err());
    /// ```
    pub fn with(registry: Registry, passes: PassRegistry) -> Session {
        let shared = Shared {
            ctx: Arc::clone(registry.ctx()),
            registry: Arc::new(registry).into(),
            passes: Arc::new(passes).into(),
            onednn_fusion: AtomicBool::new(false),
        };
        Session {
            shared: Arc::new(shared),
            limits: Limits::NONE,
        }
    }

    /// The session with other limits, which hold for what it reads, for the models that come of that, and for their engines. Where one is exceeded, the
    /// error is [`Error::Exceeded`], or says so in [`Error::exceeded`].
    ///
    /// ```
    /// use frazil::{Limits, Session};
    ///
    /// let careful = Session::new().with_limits(Limits::untrusted());
    /// assert!(careful.script("f.py".as_ref(), "def f(x): return x + 1\n", &[]).is_ok());
    /// let tiny = careful.with_limits("nodes=1".parse()?);
    /// let error = tiny.script("f.py".as_ref(), "def f(x): return x + 1\n", &[]).err();
    /// assert!(error.is_some_and(|e| e.exceeded().is_some_and(|exceeded| exceeded.name() == "nodes")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_limits(&self, limits: Limits) -> Session {
        Session { limits, ..self.clone() }
    }

    /// The limits of what it reads.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Checks that what was read has no more nodes than it may.
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

    /// The context of names and types.
    ///
    /// ```
    /// # let session = frazil::Session::new();
    /// let relu = session.ctx().symbol("aten::relu");
    /// assert_eq!(session.ctx().name(relu), "aten::relu");
    /// ```
    pub fn ctx(&self) -> &Arc<Context> {
        &self.shared.ctx
    }

    /// The operators.
    ///
    /// ```
    /// # let session = frazil::Session::new();
    /// let relu = session.ctx().symbol("aten::relu");
    /// assert_eq!(session.registry().catalogue().overloads(relu).count(), 2); // the plain one, and `out`
    /// ```
    pub fn registry(&self) -> &Arc<Registry> {
        let registry = &self.shared.registry;
        registry.get_or_init(|| Arc::new(standard_operators(Arc::clone(self.ctx()))))
    }

    /// The passes.
    ///
    /// ```
    /// # let session = frazil::Session::new();
    /// assert!(session.passes().find("dce").is_some());
    /// ```
    pub fn passes(&self) -> &Arc<PassRegistry> {
        self.shared.passes.get_or_init(|| Arc::new(PassRegistry::standard()))
    }

    /// PyTorch's switch of oneDNN's fuser (`torch.jit.enable_onednn_fusion`), for all clones of the session. Frazil compiles kernels of its own, so that it
    /// changes neither code nor results: [`EngineOptions::fuse`] decides what is fused.
    ///
    /// ```
    /// # let session = frazil::Session::new();
    /// assert!(!session.onednn_fusion_enabled());
    /// session.enable_onednn_fusion(true);
    /// assert!(session.clone().onednn_fusion_enabled());
    /// ```
    pub fn enable_onednn_fusion(&self, enabled: bool) {
        self.shared.onednn_fusion.store(enabled, Ordering::Relaxed);
    }

    /// What [`enable_onednn_fusion`](Self::enable_onednn_fusion) set last (`torch.jit.onednn_fusion_enabled`); false at first.
    pub fn onednn_fusion_enabled(&self) -> bool {
        self.shared.onednn_fusion.load(Ordering::Relaxed)
    }

    /// Reads a model: a `.pt` archive, `.ir` text, or TorchScript source. Functions become methods, and a bare graph becomes `forward`. What the
    /// file is, is told by its content.
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
    /// When the file cannot be read, has mistakes, or holds a bare graph that uses the object that it was a method of.
    pub fn load(&self, path: impl AsRef<Path>) -> Result<Model> {
        self.load_any(path.as_ref())?.runnable()
    }

    /// An engine for the model at `path`, as of [`load`](Self::load) and [`Model::engine`]. With a `cache_dir`, an archive is read only when something
    /// is called that has not been compiled before, or needs the model itself.
    ///
    /// ```
    /// # use frazil::{EngineKind, EngineOptions, Session, Value};
    /// # let folder = tempfile::tempdir().map_err(|e| frazil::Error::Text(e.to_string()))?;
    /// # let path = folder.path().join("f.py");
    /// # std::fs::write(&path, "def f(x: int): return x + 1\n").map_err(|e| frazil::Error::Text(e.to_string()))?;
    /// # let options = EngineOptions::default().kind(EngineKind::Interpreter);
    /// let mut engine = Session::new().engine(&path, &options)?; // `f.py`: def f(x: int): return x + 1
    /// assert!(matches!(engine.call("f", &[Value::Int(2)])?, Value::Int(3)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`load`](Self::load) and [`Model::engine`]; those of an archive that is read later come when it is.
    pub fn engine(&self, path: impl AsRef<Path>, options: &EngineOptions) -> Result<Engine> {
        let path = path.as_ref();
        match archive_identity(path)?.filter(|_| Engine::may_wait(options)) {
            Some(identity) => Engine::of(ModelSource::archive(self, path, identity), options),
            None => self.load(path)?.engine(options),
        }
    }

    /// Reads a model or graphs: a `.pt` archive, `.ir` text, or TorchScript source. `-` is standard input.
    ///
    /// See [`load_bytes`](Self::load_bytes) for an example.
    ///
    /// # Errors
    /// When the file cannot be read or has mistakes.
    pub fn load_any(&self, path: &Path) -> Result<Loaded> {
        let _inside = frazil_rt::gate::enter()?;
        within(&self.limits, Phase::Load, || {
            self.read_any(path).and_then(Session::counted)
        })
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

    /// Reads what [`load_any`](Self::load_any) reads from memory; `path` is for messages, and for finding what lies beside.
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
    /// When the bytes have mistakes.
    pub fn load_bytes(&self, path: &Path, bytes: Vec<u8>) -> Result<Loaded> {
        let _inside = frazil_rt::gate::enter()?;
        within(&self.limits, Phase::Load, || {
            self.read_bytes(path, bytes).and_then(Session::counted)
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
        crate::text::parse(self, path, &text)
    }

    /// Compiles TorchScript source (`torch.jit.script`) that may call functions from elsewhere: traced ones, or those of other sources, each by the name that
    /// stands beside it. Of several functions the one of that name is meant. `path` is for messages.
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
    /// When the source has mistakes, or `known` functions are not there or belong to another session.
    pub fn script(&self, path: &Path, text: &str, known: &[(&str, &Graphs)]) -> Result<Loaded> {
        let _inside = frazil_rt::gate::enter()?;
        within(&self.limits, Phase::Load, || {
            self.read_script(path, text, known).and_then(Session::counted)
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

    /// Does something with the options for source: constants are folded as PyTorch's compiler does. What cannot be folded is as right.
    pub(crate) fn with_source_options<R>(&self, act: impl FnOnce(&LoadOptions<'_>) -> R) -> R {
        let fold = |graph: &mut Graph| {
            let pass = ConstantPropagation {
                immutable_only: true,
                ..ConstantPropagation::default()
            };
            let _ = pass.run(graph, &mut PassContext::new(self.registry()));
        };
        let trace = |module: &Module, context: &TraceContext, request: &TraceRequest| {
            crate::trace::record(self.registry(), module, context, request)
        };
        let mut options = self.load_options();
        options.fold = Some(&fold);
        options.trace = Some(&trace);
        act(&options)
    }

    fn load_options(&self) -> LoadOptions<'_> {
        LoadOptions::new(self.ctx(), self.registry().catalogue())
    }
}

impl Default for Session {
    fn default() -> Session {
        Session::new()
    }
}

/// Which file `path` is when it is an archive whose content can be told from another's.
fn archive_identity(path: &Path) -> Result<Option<FileIdentity>> {
    if path == Path::new("-") {
        return Ok(None);
    }
    let mut head = [0; 4];
    let mut file = File::open(path).map_err(|e| Error::io("read", path, e))?;
    let n = file.read(&mut head).map_err(|e| Error::io("read", path, e))?;
    Ok(is_archive(&head[..n]).then(|| FileIdentity::of(&file)).flatten())
}

/// The magic number of zip files.
fn is_archive(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06")
}
