//! Models: modules with their session, and operations on them.

mod alias_text;
pub(crate) mod aliases;
mod code;
mod edit;
pub(crate) mod load;
pub(crate) mod loaded;
pub(crate) mod text;

use crate::error::{Error, Result};
use crate::script_module::StateHooks;
use crate::session::Session;
use crate::support::backing::Backing;
use crate::support::limited::within;
use crate::support::setters::setters;
use frazil_ir::{FunctionId, Graph, Module, ObjectId};
use frazil_limits::{Limits, Phase};
use frazil_passes::PassManager;
use frazil_passes::manager::{PrintOptions, Report};
use frazil_runtime::interp::state;
use frazil_syntax::FileIdentity;
use frazil_syntax::write_atomically;
use frazil_torchscript::{SaveError, SaveOptions};
use std::io::{BufWriter, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use frazil_passes::FreezeOptions;

/// Options for running a pipeline.
///
/// ```
/// use frazil::PassOptions;
///
/// # let model = frazil::Session::new().script("f.py".as_ref(), "def f(x): return x + 1\n", &[])?.to_model("f")?;
/// let options = PassOptions::default().verify_each(true).limit(Some(0)); // no rewrite is done
/// let (unchanged, _) = model.run_passes("inline,dce", &options)?;
/// assert_eq!(unchanged.graph("forward")?.all_nodes().len(), model.graph("forward")?.all_nodes().len());
/// # Ok::<(), frazil::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct PassOptions {
    /// Verifies the IR after every pass.
    pub verify_each: bool,
    /// Controls which IR is printed to standard error between passes.
    pub print: PrintOptions,
    /// Maximum number of elements of a printed constant. Larger constants are printed without their data.
    pub elide_constants_larger_than: Option<usize>,
    /// Number of functions that are processed in parallel.
    pub threads: usize,
    /// Maximum number of rewrites, after which passes stop rewriting.
    pub limit: Option<u64>,
    /// Path of the reproducer that is written on failure: a text file that [`pipeline_of_reproducer`] reads.
    pub reproducer: Option<PathBuf>,
}

setters!(PassOptions {
    verify_each: bool,
    print: PrintOptions,
    elide_constants_larger_than: Option<usize>,
    threads: usize,
    limit: Option<u64>,
    reproducer: Option<PathBuf>,
});

/// Returns the pipeline in the text of a reproducer: the rest of the line `# pipeline: `. `None` if the text is no reproducer.
///
/// ```
/// let text = "# pipeline: inline,dce\ngraph(%x : Tensor):\n  return (%x)\n";
/// assert_eq!(frazil::pipeline_of_reproducer(text), Some("inline,dce"));
/// ```
pub fn pipeline_of_reproducer(text: &str) -> Option<&str> {
    text.lines()
        .find_map(|line| line.strip_prefix(text::PIPELINE_LINE))
        .map(str::trim)
}

/// A TorchScript module, with its session.
///
/// Cloning is cheap, because weights are shared.
///
/// ```
/// # use frazil::ir::DType;
/// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
/// # def forward(self, x): return self.fc(x)\n";
/// # let mut model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
/// let before = model.clone();
/// model.half()?;
/// assert_eq!(model.root().get_parameter("fc.weight")?.dtype(), DType::Half);
/// assert_eq!(before.root().get_parameter("fc.weight")?.dtype(), DType::Float);
/// # Ok::<(), frazil::Error>(())
/// ```
#[derive(Clone)]
pub struct Model {
    session: Session,
    module: Arc<Module>,
    /// The identity of the archive, while the module has not been changed since it was loaded.
    origin: Option<Arc<FileIdentity>>,
    /// The files from which the module's tensors, or tensors from which those are computed, are read.
    backing: Backing,
    /// Hooks that run when state dictionaries are created and loaded.
    state_hooks: Arc<StateHooks>,
}

impl Model {
    /// Returns a model over `module`.
    ///
    /// ```
    /// use frazil::{Model, Session, ir::{CompilationUnit, Module}};
    ///
    /// let session = Session::new();
    /// let class = session.ctx().symbol("__torch__.Empty");
    /// let module = Module::new(session.ctx().clone(), CompilationUnit::default(), class, Vec::new());
    /// assert_eq!(Model::new(session, module.clone())?.root().original_name(), "Empty");
    /// assert!(Model::new(Session::new(), module).is_err());
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the module's names and types belong to the context of another session.
    pub fn new(session: Session, module: Module) -> Result<Model> {
        if !Arc::ptr_eq(session.ctx(), module.ctx()) {
            return Err(Error::Unsupported(
                "the module belongs to another session: its names and types mean nothing to this one".into(),
            ));
        }
        Ok(Model::of(session, module))
    }

    /// Returns the same model with other limits: see [`Session::with_limits`].
    ///
    /// ```
    /// # let model = frazil::Session::new().script("f.py".as_ref(), "def f(x): return x + 1\n", &[])?.to_model("f")?;
    /// let careful = model.with_limits(frazil::Limits::untrusted());
    /// assert_eq!(careful.session().limits(), &frazil::Limits::untrusted());
    /// # Ok::<(), frazil::Error>(())
    /// ```
    #[must_use]
    pub fn with_limits(&self, limits: Limits) -> Model {
        Model {
            session: self.session.with_limits(limits),
            ..self.clone()
        }
    }

    /// Returns a model that consists of `module`, whose context is that of `session`.
    pub(crate) fn of(session: Session, module: Module) -> Model {
        Model {
            session,
            module: Arc::new(module),
            origin: None,
            backing: Backing::default(),
            state_hooks: Arc::default(),
        }
    }

    /// Returns a model that consists of `module`, a module derived from this model's.
    pub(crate) fn derived(&self, module: Module) -> Model {
        Model {
            backing: self.backing.clone(),
            ..Model::of(self.session.clone(), module)
        }
    }

    /// Returns the hooks of state dictionaries, which are registered for objects of the module.
    pub(crate) fn state_hooks(&self) -> &Arc<StateHooks> {
        &self.state_hooks
    }

    pub(crate) fn state_hooks_mut(&mut self) -> &mut Arc<StateHooks> {
        &mut self.state_hooks
    }

    /// Returns the model with the state dictionary hooks of `other`, a model with the same objects.
    pub(crate) fn with_hooks_of(mut self, other: &Model) -> Model {
        self.state_hooks = Arc::clone(&other.state_hooks);
        self
    }

    /// Returns the files from which the module's tensors are read.
    pub(crate) fn backing(&self) -> &Backing {
        &self.backing
    }

    /// Returns the model with `origin` as the file that it was read from, and `backing` as the files for tensors that have not been read.
    pub(crate) fn read_from(mut self, origin: Option<FileIdentity>, backing: Backing) -> Model {
        self.origin = origin.map(Arc::new);
        self.backing = backing;
        self
    }

    /// Returns the identity of the archive, if the module has not been changed since it was loaded.
    pub(crate) fn origin(&self) -> Option<&FileIdentity> {
        self.origin.as_deref()
    }

    /// Returns the session.
    ///
    /// See [`Session`] for an example.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Returns the module.
    ///
    /// ```
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// let module = model.module();
    /// assert_eq!(module.ctx().name(module.object(module.root).class), "__torch__.Net");
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn module(&self) -> &Arc<Module> {
        &self.module
    }

    /// Returns the module, mutably. Other models that share the module are not changed.
    pub(crate) fn module_mut(&mut self) -> &mut Module {
        self.origin = None;
        Arc::make_mut(&mut self.module)
    }

    /// Returns the graph of method `name`; a dotted path (`encoder.forward`) names a submodule's method.
    ///
    /// ```
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// let graph = model.graph("forward")?;
    /// assert!(graph.all_nodes().iter().any(|&node| graph.kind_name(node) == "prim::CallMethod"));
    /// let linear = model.graph("fc.forward")?;
    /// assert!(linear.all_nodes().iter().any(|&node| linear.kind_name(node) == "aten::linear"));
    /// assert!(model.graph("backward").is_err());
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the module has no such method.
    pub fn graph(&self, name: &str) -> Result<&Graph> {
        Ok(&self.module.unit.function(self.method_at(name)?.1).graph)
    }

    /// Returns the method at a dotted path, and its receiver.
    ///
    /// # Errors
    /// If there is no such method.
    pub(crate) fn method_at(&self, path: &str) -> Result<(ObjectId, FunctionId)> {
        self.module.method_at(path).ok_or_else(|| self.no_method(path))
    }

    /// Returns the error for a method that does not exist, or whose source does not compile.
    pub(crate) fn no_method(&self, path: &str) -> Error {
        match self.module.unit.refused.get(path) {
            Some(why) => Error::Unsupported(format!("`{path}` does not compile: {why}")),
            None => Error::NoSuchMethod(path.to_owned()),
        }
    }

    /// Returns the model after its objects have been restored by `__setstate__`, from their archived state.
    ///
    /// Reading an archive runs no code. Freezing and engines restore objects themselves, so this is only necessary for reading attributes. A model without such
    /// objects is returned unchanged.
    ///
    /// ```
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// assert!(std::sync::Arc::ptr_eq(model.restored()?.module(), model.module())); // nothing to restore
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a `__setstate__` raises, cannot be run, takes too long, or leaves attributes unset.
    pub fn restored(&self) -> Result<Model> {
        Ok(match state::restore(&self.module, self.session.registry())? {
            Some(module) => self.derived(module),
            None => self.clone(),
        })
    }

    /// Restores objects as [`restored`](Self::restored) does. Objects whose `__setstate__` uses operators without semantics keep their archived state.
    pub(crate) fn restored_as_known(&self) -> Result<Model> {
        Ok(match state::restore_known(&self.module, self.session.registry())? {
            Some(module) => self.derived(module),
            None => self.clone(),
        })
    }

    /// Returns the model after the archived state of its objects has been computed by `__getstate__`, for classes with
    /// that method.
    fn stored(&self) -> Result<Model> {
        Ok(match state::store(&self.module, self.session.registry())? {
            Some(module) => self.derived(module),
            None => self.clone(),
        })
    }

    /// Returns a frozen copy, as `torch.jit.freeze` does: attributes are constants, and the frozen graph is optimised. Objects are restored first (see
    /// [`restored`](Self::restored)). Objects whose `__setstate__` uses operators without semantics are not folded.
    ///
    /// ```
    /// # use frazil::FreezeOptions;
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// let frozen = model.freeze(&FreezeOptions::default())?;
    /// assert!(frozen.root().named_modules().len() == 1 && !frozen.root().has_attribute("fc"));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the module is in training mode, or cannot be frozen; see [`frazil_passes::FreezeError`]. Also if a `__setstate__` raises, takes too long or leaves
    /// attributes unset.
    pub fn freeze(&self, options: &FreezeOptions) -> Result<Model> {
        Ok(self.freeze_with_passes(options, "", &PassOptions::default())?.0)
    }

    /// Freezes as [`Model::freeze`] does, and then runs a textual pipeline. `passes` controls printing, verification and measurements during freezing and the
    /// pipeline.
    ///
    /// ```
    /// # use frazil::{FreezeOptions, PassOptions};
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// let passes = PassOptions::default().verify_each(true);
    /// let (frozen, report) = model.freeze_with_passes(&FreezeOptions::default(), "dce", &passes)?;
    /// assert!(!frozen.root().has_attribute("fc") && report.timing.children.len() == 3);
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`freeze`](Self::freeze) and [`run_passes`](Self::run_passes).
    pub fn freeze_with_passes(
        &self,
        options: &FreezeOptions,
        pipeline: &str,
        passes: &PassOptions,
    ) -> Result<(Model, Report)> {
        let _inside = frazil_rt::gate::enter()?;
        let mut manager = manager(&self.session, pipeline, passes)?;
        let (module, report) = within(self.session.limits(), Phase::Freeze, || {
            let mut module = Module::clone(&self.restored_as_known()?.module);
            let report = frazil_passes::freeze_with(&mut module, options, &mut manager, self.session.registry())?;
            Ok::<_, Error>((module, report))
        })?;
        self.backing.check()?;
        Ok((self.derived(module), report))
    }

    /// Returns a copy that is optimised for inference, as `torch.jit.optimize_for_inference` does. It is frozen if necessary, in evaluation mode, and free of
    /// anything that an archive cannot contain.
    ///
    /// ```
    /// # use frazil::FreezeOptions;
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// let optimized = model.optimize_for_inference(&FreezeOptions::default())?;
    /// assert!(!optimized.root().has_attribute("fc"));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the module cannot be frozen; see [`frazil_passes::FreezeError`].
    pub fn optimize_for_inference(&self, options: &FreezeOptions) -> Result<Model> {
        Ok(self
            .optimize_for_inference_with_passes(options, "", &PassOptions::default())?
            .0)
    }

    /// Optimises as [`Model::optimize_for_inference`] does, and then runs a textual pipeline like [`Model::freeze_with_passes`].
    ///
    /// # Errors
    /// The errors of [`optimize_for_inference`](Self::optimize_for_inference) and [`run_passes`](Self::run_passes).
    pub fn optimize_for_inference_with_passes(
        &self,
        options: &FreezeOptions,
        pipeline: &str,
        passes: &PassOptions,
    ) -> Result<(Model, Report)> {
        let _inside = frazil_rt::gate::enter()?;
        let mut manager = manager(&self.session, pipeline, passes)?;
        let (module, report) = within(self.session.limits(), Phase::Freeze, || {
            let mut module = Module::clone(&self.restored_as_known()?.module);
            let registry = &**self.session.registry();
            let report = frazil_passes::optimize_for_inference_with(&mut module, options, &mut manager, registry)?;
            Ok::<_, Error>((module, report))
        })?;
        self.backing.check()?;
        Ok((self.derived(module), report))
    }

    /// Returns a copy after the passes of a textual pipeline, and the report of the passes.
    ///
    /// ```
    /// # use frazil::PassOptions;
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// let (inlined, report) = model.run_passes("inline,dce", &PassOptions::default())?;
    /// let graph = inlined.graph("forward")?;
    /// assert!(graph.all_nodes().iter().any(|&node| graph.kind_name(node) == "aten::linear"));
    /// assert!(report.timing.children.len() == 2 && model.run_passes("alien", &PassOptions::default()).is_err());
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the pipeline is malformed or a pass fails.
    pub fn run_passes(&self, pipeline: &str, options: &PassOptions) -> Result<(Model, Report)> {
        let manager = manager(&self.session, pipeline, options)?;
        let model = match manager.reads_attributes() {
            true => self.restored_as_known()?,
            false => self.clone(),
        };
        let mut module = Module::clone(&model.module);
        let report = manager.run(&mut module, &**self.session.registry())?;
        self.backing.check()?;
        Ok((self.derived(module), report))
    }

    /// Writes the model as a `.pt` archive, which [`Session::load`] and PyTorch read. As in PyTorch, the archive's top directory has the name of the file
    /// unless `options` specify another. Weights are not copied in memory.
    ///
    /// ```
    /// # use frazil::{SaveOptions, Session};
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// # let folder = tempfile::tempdir().map_err(|e| frazil::Error::Text(e.to_string()))?;
    /// # let path = folder.path().join("net.pt");
    /// model.save(&path, &SaveOptions::default())?;
    /// assert_eq!(Session::new().load(&path)?.root().original_name(), "Net");
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the model cannot be represented as an archive, see [`SaveError`], or the file cannot be written; an existing file at
    /// `path` is then kept.
    pub fn save(&self, path: impl AsRef<Path>, options: &SaveOptions) -> Result<()> {
        let path = path.as_ref();
        let mut options = options.clone();
        if options.top.is_empty() {
            options.top = path
                .file_stem()
                .and_then(|stem| stem.to_str())
                .unwrap_or_default()
                .to_owned();
        }
        let stored = self.stored()?;
        let written = write_atomically(path, |file| {
            let mut out = stored.write_archive(BufWriter::new(file), &options)?;
            out.flush()?;
            let whole = self.backing.check();
            whole.map_err(|e| SaveError::Io(std::io::Error::other(e)))
        });
        written.map_err(|error| match error {
            SaveError::Io(source) => Error::io("write", path, source),
            other => Error::Save(other),
        })
    }

    /// Writes the model as a `.pt` archive to `out`.
    ///
    /// ```
    /// # use frazil::SaveOptions;
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// let file = model.save_to(std::io::Cursor::new(Vec::new()), &SaveOptions::default())?;
    /// assert_eq!(file.into_inner(), model.save_bytes(&SaveOptions::default())?);
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the model cannot be represented as an archive, or writing to `out` fails.
    pub fn save_to<W: Write + Seek + Send>(&self, out: W, options: &SaveOptions) -> Result<W> {
        let out = self.stored()?.write_archive(out, options)?;
        self.backing.check()?;
        Ok(out)
    }

    /// Returns the model as a `.pt` archive in memory.
    ///
    /// ```
    /// # use frazil::{SaveOptions, Session};
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// let archive = model.save_bytes(&SaveOptions::default())?;
    /// let again = Session::new().load_bytes("net.pt".as_ref(), archive)?.to_model("forward")?;
    /// assert_eq!(again.root().get_parameter("fc.weight")?.sizes(), [1, 2]);
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the model cannot be represented as an archive.
    pub fn save_bytes(&self, options: &SaveOptions) -> Result<Vec<u8>> {
        let catalogue = self.session.registry().catalogue();
        let bytes = frazil_torchscript::save_bytes(&self.stored()?.module, catalogue, options)?;
        self.backing.check()?;
        Ok(bytes)
    }

    fn write_archive<W: Write + Seek + Send>(&self, out: W, options: &SaveOptions) -> Result<W, SaveError> {
        frazil_torchscript::save(&self.module, self.session.registry().catalogue(), out, options)
    }

    /// Adds the functions of a source text as methods (`ScriptModule.define`). Each function has the module as its first argument, and may call the other
    /// methods.
    ///
    /// ```
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let mut model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// model.define("def twice(self, x):\n    return self.forward(x) * 2\n")?;
    /// assert_eq!(model.root().method_names(), ["forward", "twice"]);
    /// assert!(model.define("def twice(self, x):\n    return x\n").is_err());
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the source has errors, or a method of that name exists; the model is unchanged then.
    pub fn define(&mut self, source: &str) -> Result<()> {
        let class = self.module.object(self.module.root).class;
        let unit = self.module.unit.clone();
        let file = "<define>";
        let unit = self
            .session
            .with_source_options(|o| frazil_torchscript::define_methods(file, source, unit, class, o));
        let unit = unit.map_err(|source| Error::Load {
            path: file.into(),
            source,
        })?;
        self.module_mut().unit = unit;
        Ok(())
    }
}

/// Returns a pass manager that runs `pipeline` with the options `options`.
pub(crate) fn manager(session: &Session, pipeline: &str, options: &PassOptions) -> Result<PassManager> {
    let mut manager = PassManager::from_pipeline(session.passes(), pipeline)?;
    manager.verify_each(options.verify_each);
    manager.threads(options.threads);
    manager.limit(options.limit);
    manager.limits(*session.limits());
    if let Some(path) = &options.reproducer {
        manager.reproduce(Box::new(text::ReproducerFile { path: path.clone() }));
    }
    manager.print_ir(
        options.print.clone(),
        Box::new(text::StderrPrinter {
            elide: options.elide_constants_larger_than,
        }),
    );
    Ok(manager)
}
