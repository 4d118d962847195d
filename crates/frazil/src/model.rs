//! Models and loose graphs: what has been read, and what can be made of it.

use crate::identity::FileIdentity;
use crate::{Engine, EngineOptions, Error, Result, Session, write_atomically};
use crate::{alias_text, text};
use frazil_ir::schema::Argument;
use frazil_ir::{
    Builder, ClassDef, ClassKind, CompilationUnit, Constant, Context, Function, FunctionId, Graph, Module, SymbolId,
    TypeKind, symbols, types,
};
use frazil_passes::PassManager;
use frazil_passes::manager::{PrintOptions, Report};
use frazil_runtime::interp::state;
use frazil_torchscript::{SaveError, SaveOptions, function_module};
use std::io::{BufWriter, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use frazil_passes::FreezeOptions;

/// How a pipeline runs.
#[derive(Clone, Debug, Default)]
pub struct PassOptions {
    /// Verify after every pass.
    pub verify_each: bool,
    /// What is printed to standard error between passes.
    pub print: PrintOptions,
    /// In what is printed, leave out the data of larger constants.
    pub elide_constants_larger_than: Option<usize>,
    /// Work on so many functions at a time.
    pub threads: usize,
    /// Stop rewriting after so many rewrites.
    pub limit: Option<u64>,
    /// Where to write what reproduces a failure: a text file that [`pipeline_of_reproducer`] knows.
    pub reproducer: Option<PathBuf>,
}

/// The pipeline that a reproducer's text asks for, if it is one: what stands behind `// pipeline: ` in it.
pub fn pipeline_of_reproducer(text: &str) -> Option<&str> {
    text.lines()
        .find_map(|line| line.strip_prefix(text::PIPELINE_LINE))
        .map(str::trim)
}

/// A TorchScript module, with the session that it belongs to.
///
/// Cloning is cheap enough to be done before every change: weights are shared.
#[derive(Clone)]
pub struct Model {
    session: Session,
    module: Arc<Module>,
    /// The archive that the module was read from, as long as it is what was read.
    origin: Option<Arc<FileIdentity>>,
}

impl Model {
    /// A model over `module`, whose context must be the session's.
    pub fn new(session: Session, module: Module) -> Model {
        Model {
            session,
            module: Arc::new(module),
            origin: None,
        }
    }

    /// The model, known to be what the file `origin` holds.
    pub(crate) fn read_from(mut self, origin: Option<FileIdentity>) -> Model {
        self.origin = origin.map(Arc::new);
        self
    }

    /// The file that holds the very module.
    #[cfg(feature = "codegen")]
    pub(crate) fn origin(&self) -> Option<&FileIdentity> {
        self.origin.as_deref()
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The module.
    pub fn module(&self) -> &Arc<Module> {
        &self.module
    }

    /// The module, to be changed; other models that share it keep theirs.
    pub(crate) fn module_mut(&mut self) -> &mut Module {
        self.origin = None;
        Arc::make_mut(&mut self.module)
    }

    /// The graph of method `name`.
    ///
    /// # Errors
    /// When the module has no such method.
    pub fn graph(&self, name: &str) -> Result<&Graph> {
        let symbol = self.session.ctx().symbol(name);
        match self.module.method_function(symbol) {
            Some(function) => Ok(&function.graph),
            None => Err(Error::Unsupported(format!("the module has no method `{name}`"))),
        }
    }

    /// The model with the attributes that the `__setstate__` of its objects' classes make of what the archive holds of them. Reading an archive runs
    /// none of its code; freezing and engines do this first, so that it has to be asked for only to look at attributes. A model without
    /// such objects comes back as it is.
    ///
    /// # Errors
    /// When a `__setstate__` raises, cannot be run, takes too long, or leaves attributes unset.
    pub fn restored(&self) -> Result<Model> {
        Ok(match state::restore(&self.module, self.session.registry())? {
            Some(module) => Model::new(self.session.clone(), module),
            None => self.clone(),
        })
    }

    /// Like [`restored`](Self::restored) for what does not run: objects whose `__setstate__` needs operators without semantics stay as the archive has them.
    fn restored_as_known(&self) -> Result<Model> {
        Ok(match state::restore_known(&self.module, self.session.registry())? {
            Some(module) => Model::new(self.session.clone(), module),
            None => self.clone(),
        })
    }

    /// The way back: what archives hold of objects whose class has a `__getstate__` is what that gives.
    fn stored(&self) -> Result<Model> {
        Ok(match state::store(&self.module, self.session.registry())? {
            Some(module) => Model::new(self.session.clone(), module),
            None => self.clone(),
        })
    }

    /// A frozen copy, as `torch.jit.freeze` gives: attributes are constants, and the frozen graph is optimised. Objects restore themselves first
    /// (see [`restored`](Self::restored)); those whose `__setstate__` uses operators that nothing gives semantics to are kept whole.
    ///
    /// # Errors
    /// When the module is in training mode, or cannot be frozen; see [`frazil_passes::FreezeError`]. And when a `__setstate__` raises, takes too long or leaves
    /// attributes unset.
    pub fn freeze(&self, options: &FreezeOptions) -> Result<Model> {
        let frozen =
            frazil_passes::freeze_module(&self.restored_as_known()?.module, options, &**self.session.registry())?;
        Ok(Model::new(self.session.clone(), frozen))
    }

    /// A copy that is optimised for running, as `torch.jit.optimize_for_inference` gives: frozen, unless it is so already, in evaluation mode, with nothing in
    /// it that an archive cannot hold.
    ///
    /// # Errors
    /// When the module cannot be frozen; see [`frazil_passes::FreezeError`].
    pub fn optimize_for_inference(&self, options: &FreezeOptions) -> Result<Model> {
        let registry = &**self.session.registry();
        let optimized =
            frazil_passes::optimize_module_for_inference(&self.restored_as_known()?.module, options, registry)?;
        Ok(Model::new(self.session.clone(), optimized))
    }

    /// A copy after the passes of a textual pipeline, and what they have to tell.
    ///
    /// # Errors
    /// When the pipeline is malformed or a pass fails.
    pub fn run_passes(&self, pipeline: &str, options: &PassOptions) -> Result<(Model, Report)> {
        let manager = manager(&self.session, pipeline, options)?;
        let model = match manager.reads_attributes() {
            true => self.restored_as_known()?,
            false => self.clone(),
        };
        let mut module = Module::clone(&model.module);
        let report = manager.run(&mut module, &**self.session.registry())?;
        Ok((Model::new(self.session.clone(), module), report))
    }

    /// Writes the model as a `.pt` archive, which [`Session::load`] and PyTorch read. As in PyTorch, the archive's top directory is called like the
    /// file unless `options` say otherwise. Weights are written from where they lie, and are not copied in memory.
    ///
    /// # Errors
    /// When the model has no form as an archive, see [`SaveError`], or the file cannot be written; what was at `path` stays then.
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
            Ok(out.flush()?)
        });
        written.map_err(|error| match error {
            SaveError::Io(source) => Error::io("write", path, source),
            other => Error::Save(other),
        })
    }

    /// Writes the model as a `.pt` archive to `out`.
    ///
    /// # Errors
    /// When the model has no form as an archive, or `out` fails.
    pub fn save_to<W: Write + Seek + Send>(&self, out: W, options: &SaveOptions) -> Result<W> {
        Ok(self.stored()?.write_archive(out, options)?)
    }

    /// The model as a `.pt` archive in memory.
    ///
    /// # Errors
    /// When the model has no form as an archive.
    pub fn save_bytes(&self, options: &SaveOptions) -> Result<Vec<u8>> {
        let catalogue = self.session.registry().catalogue();
        Ok(frazil_torchscript::save_bytes(
            &self.stored()?.module,
            catalogue,
            options,
        )?)
    }

    fn write_archive<W: Write + Seek + Send>(&self, out: W, options: &SaveOptions) -> Result<W, SaveError> {
        frazil_torchscript::save(&self.module, self.session.registry().catalogue(), out, options)
    }

    /// Adds the functions of a source text as methods (`ScriptModule.define`). Each has the module as its first argument, and may call the other
    /// methods.
    ///
    /// # Errors
    /// When the source has mistakes, or there is a method of that name; the model is unchanged then.
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

    /// Something that calls methods, on an instance of the module of its own.
    ///
    /// # Errors
    /// When the module cannot be frozen, for native engines; or a tensor does not fit its storage.
    pub fn engine(&self, options: &EngineOptions) -> Result<Engine> {
        Engine::new(self, options)
    }
}

/// Graphs that belong to no module: bare `.ir` text, or the functions of a source file.
#[derive(Clone)]
pub struct Graphs {
    session: Session,
    unit: CompilationUnit,
}

impl Graphs {
    /// The functions of `unit`, whose context must be the session's.
    pub fn of_unit(session: Session, unit: CompilationUnit) -> Graphs {
        Graphs { session, unit }
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// A model whose methods are the functions, each with the module as an unused first argument, so that they can be run.
    pub fn to_model(&self) -> Model {
        let ctx = self.session.ctx();
        let mut unit = self.unit.clone();
        let name = ctx.symbol("__torch__.Functions");
        let mut class = ClassDef::new(name, ClassKind::Module);
        let functions: Vec<Function> = self.unit.functions().map(|(_, f)| f.clone()).collect();
        let is_method = |id| self.unit.classes.values().any(|c| c.methods.values().any(|&m| m == id));
        for ((id, _), function) in self.unit.functions().zip(&functions) {
            if is_method(id) {
                continue;
            }
            let simple = ctx.name(function.name).rsplit('.').next().unwrap_or_default();
            let method = method_for(ctx, function, name, simple);
            class.methods.insert(ctx.symbol(simple), unit.add_function(method));
        }
        unit.classes.insert(name, class);
        Model::new(
            self.session.clone(),
            Module::new(Arc::clone(ctx), unit, name, Vec::new()),
        )
    }

    /// Their classes and functions.
    pub fn unit(&self) -> &CompilationUnit {
        &self.unit
    }

    /// The function called `name`, or the only one.
    pub(crate) fn function(&self, name: &str) -> Result<FunctionId> {
        let ctx = self.session.ctx();
        let functions: Vec<_> = self.unit.functions().collect();
        let named = functions
            .iter()
            .find(|(_, f)| ctx.name(f.name).rsplit('.').next() == Some(name));
        match (named, functions.as_slice()) {
            (Some((id, _)), _) | (None, [(id, _)]) => Ok(*id),
            _ => Err(Error::Unsupported(format!("there is no function `{name}`"))),
        }
    }

    fn run_passes(&self, pipeline: &str, options: &PassOptions) -> Result<(Graphs, Report)> {
        let manager = manager(&self.session, pipeline, options)?;
        let mut out = self.clone();
        let mut report = Report::default();
        for (_, function) in out.unit.functions_mut() {
            let one = manager.run_on_graph(&mut function.graph, &**self.session.registry())?;
            report.add(one);
        }
        Ok((out, report))
    }
}

/// A method of `class` that calls `function` with all arguments but the first.
fn method_for(ctx: &Arc<Context>, function: &Function, class: SymbolId, simple: &str) -> Function {
    let this = ctx.type_of_kind(TypeKind::Class(class));
    let mut graph = Graph::new(Arc::clone(ctx));
    graph.add_input(this);
    let inputs = function.graph.inputs().iter();
    let mut operands: Vec<_> = inputs.map(|&input| graph.add_input(function.graph.ty(input))).collect();
    let root = graph.root();
    let mut builder = Builder::at_end(&mut graph, root);
    let ty = ctx.type_of_kind(TypeKind::Function(function.name));
    operands.insert(0, builder.constant_typed(Constant::Function(function.name), ty));
    let result = function.schema.returns.first().map_or(types::NONE, |r| r.ty);
    let result = builder.op(ctx.symbol("prim::CallFunction"), &operands, result);
    graph.add_result(root, result);
    let mut schema = function.schema.clone();
    schema.name = ctx.symbol(&format!("{}.{simple}", ctx.name(class)));
    schema.arguments.insert(0, Argument::plain(symbols::SELF, this));
    Function {
        name: schema.name,
        schema,
        graph,
    }
}

/// What a file turned out to hold.
#[derive(Clone)]
pub enum Loaded {
    /// A module.
    Model(Model),
    /// Graphs without a module.
    Graphs(Graphs),
}

impl Loaded {
    /// See [`Model::freeze`].
    ///
    /// # Errors
    /// Those of [`Model::freeze`], and when there is no module.
    pub fn freeze(&self, options: &FreezeOptions) -> Result<Loaded> {
        Ok(Loaded::Model(self.model("frozen")?.freeze(options)?))
    }

    /// See [`Model::optimize_for_inference`].
    ///
    /// # Errors
    /// Those of [`Model::optimize_for_inference`], and when there is no module.
    pub fn optimize_for_inference(&self, options: &FreezeOptions) -> Result<Loaded> {
        Ok(Loaded::Model(self.model("optimised")?.optimize_for_inference(options)?))
    }

    /// See [`Model::run_passes`]; passes over graphs run on loose graphs too.
    ///
    /// # Errors
    /// When the pipeline is malformed or a pass fails.
    pub fn run_passes(&mut self, pipeline: &str, options: &PassOptions) -> Result<Report> {
        let report = match self {
            Loaded::Model(model) => {
                let (new, report) = model.run_passes(pipeline, options)?;
                *model = new;
                report
            }
            Loaded::Graphs(graphs) => {
                let (new, report) = graphs.run_passes(pipeline, options)?;
                *graphs = new;
                report
            }
        };
        Ok(report)
    }

    /// The module.
    ///
    /// # Errors
    /// When there is none; `done` says what was to be done with it.
    pub fn model(&self, done: &str) -> Result<&Model> {
        match self {
            Loaded::Model(model) => Ok(model),
            Loaded::Graphs(_) => Err(Error::Unsupported(format!("graphs without a module cannot be {done}"))),
        }
    }

    /// The graph that native code is made of: method `name` of a module, or the function of that name, or the only graph.
    ///
    /// # Errors
    /// When there is no such graph.
    pub fn graph(&self, name: &str) -> Result<&Graph> {
        match self {
            Loaded::Model(model) => model.graph(name),
            Loaded::Graphs(graphs) => Ok(&graphs.unit.function(graphs.function(name)?).graph),
        }
    }

    /// The module; of loose graphs, one whose `forward` is the function called `name`, or the only one, as PyTorch saves functions.
    ///
    /// # Errors
    /// When there is no such function.
    pub fn to_model(&self, name: &str) -> Result<Model> {
        match self {
            Loaded::Model(model) => Ok(model.clone()),
            Loaded::Graphs(graphs) => {
                let ctx = graphs.session.ctx();
                let module = function_module(ctx, &graphs.unit, graphs.function(name)?);
                Ok(Model::new(graphs.session.clone(), module))
            }
        }
    }

    /// The session.
    pub fn session(&self) -> &Session {
        match self {
            Loaded::Model(model) => &model.session,
            Loaded::Graphs(graphs) => &graphs.session,
        }
    }

    /// The text form. Constants with more elements than `elide` are left out of it, if that is given.
    pub fn ir_text(&self, elide: Option<usize>) -> String {
        match self {
            Loaded::Model(model) => text::print_module(&model.module, elide),
            Loaded::Graphs(graphs) => text::print_unit(graphs.session.ctx(), &graphs.unit, elide),
        }
    }

    /// Whether there is a module, whose text needs a second file for its larger tensors; see [`Loaded::save_ir`].
    pub fn is_model(&self) -> bool {
        matches!(self, Loaded::Model(_))
    }

    /// Writes the text form of a module, with its larger tensors in a `.safetensors` file beside it.
    ///
    /// # Errors
    /// When there is no module, or a file cannot be written; nothing half-written stays.
    pub fn save_ir(&self, path: &Path) -> Result<()> {
        text::write_module(self.model("written with their tensors")?.module(), path)
    }

    /// Every function's graph as a picture, in Graphviz's DOT language.
    pub fn dot_text(&self) -> String {
        let (session, unit) = match self {
            Loaded::Model(model) => (&model.session, &model.module.unit),
            Loaded::Graphs(graphs) => (&graphs.session, &graphs.unit),
        };
        frazil_syntax::print_dot(unit.functions().map(|(_, f)| (session.ctx().name(f.name), &f.graph)))
    }

    /// What may alias what in every function, in PyTorch's layout.
    pub fn alias_db_text(&self) -> String {
        match self {
            Loaded::Model(model) => alias_text::unit(&model.session, &model.module.unit),
            Loaded::Graphs(graphs) => alias_text::unit(&graphs.session, &graphs.unit),
        }
    }

    /// Of a frozen model: a line for each attribute that stayed, with the node that keeps it. Nothing for graphs.
    pub fn kept_attributes_text(&self) -> String {
        match self {
            Loaded::Model(model) => alias_text::kept(&model.session, &model.module),
            Loaded::Graphs(_) => String::new(),
        }
    }
}

fn manager(session: &Session, pipeline: &str, options: &PassOptions) -> Result<PassManager> {
    let mut manager = PassManager::from_pipeline(session.passes(), pipeline)?;
    manager.verify_each(options.verify_each);
    manager.threads(options.threads);
    manager.limit(options.limit);
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
