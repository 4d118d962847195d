//! The contents of a loaded file: a module, or graphs without a module.

use crate::error::{Error, Result};
use crate::model::manager;
use crate::model::{FreezeOptions, Model, PassOptions};
use crate::model::{alias_text, text};
use crate::session::Session;
use frazil_ir::schema::Argument;
use frazil_ir::types::{TypeStyle, display_type};
use frazil_ir::{
    Builder, ClassDef, ClassKind, CompilationUnit, Constant, Context, Function, FunctionId, Graph, Module, SymbolId,
    TypeKind, ValueId, symbols, types,
};
use frazil_passes::manager::Report;
use frazil_torchscript::function_module;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

/// The prefix of the qualified names of functions that PyTorch itself implements in Python.
const LIBRARY: &str = "__torch__.torch.";

/// Graphs without a module: bare `.ir` text, or the functions of a source file.
///
/// ```
/// use frazil::{Loaded, Session};
///
/// let source = "def f(x): return x + 1\ndef g(x): return f(x) * 2\n";
/// let Loaded::Graphs(functions) = Session::new().script("f.py".as_ref(), source, &[])? else { panic!() };
/// assert_eq!(functions.unit().functions().count(), 2);
/// assert_eq!(functions.to_model().root().method_names(), ["f", "g"]);
/// # Ok::<(), frazil::Error>(())
/// ```
#[derive(Clone)]
pub struct Graphs {
    session: Session,
    unit: CompilationUnit,
}

impl Graphs {
    /// Returns the functions of `unit`, whose context must be the session's.
    ///
    /// ```
    /// use frazil::{Graphs, Session, ir::CompilationUnit};
    ///
    /// let none = Graphs::of_unit(Session::new(), CompilationUnit::default());
    /// assert_eq!(none.unit().functions().count(), 0);
    /// ```
    pub fn of_unit(session: Session, unit: CompilationUnit) -> Graphs {
        Graphs { session, unit }
    }

    /// Returns the session of the graphs. See [`Session`] for an example.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Returns a model whose methods are the functions, each with the module as an unused first argument, so that engines can run them. A
    /// bare graph becomes `forward`.
    ///
    /// See [`Graphs`] for an example.
    pub fn to_model(&self) -> Model {
        if let Some(id) = self.bare_graph() {
            return self.bare_model(id);
        }
        let ctx = self.session.ctx();
        let mut unit = self.unit.clone();
        let name = ctx.symbol("__torch__.Functions");
        let mut class = ClassDef::new(name, ClassKind::Module);
        for (_, function) in self.own_functions() {
            let simple = ctx.name(function.name).rsplit('.').next().unwrap_or_default();
            let method = method_for(ctx, function, name, simple);
            class.methods.insert(ctx.symbol(simple), unit.add_function(method));
        }
        unit.classes.insert(name, class);
        Model::of(
            self.session.clone(),
            Module::new(Arc::clone(ctx), unit, name, Vec::new()),
        )
    }

    /// Returns the unit that contains the classes and functions.
    ///
    /// See [`Graphs`] for an example.
    pub fn unit(&self) -> &CompilationUnit {
        &self.unit
    }

    /// Returns the function called `name`; if there is none, the only function.
    pub(crate) fn function(&self, name: &str) -> Result<FunctionId> {
        if let Some(why) = self.unit.refused.get(name) {
            return Err(Error::Unsupported(format!("`{name}` does not compile: {why}")));
        }
        match (self.named(name), self.own_functions().as_slice()) {
            (Some(id), _) => Ok(id),
            (None, [(id, _)]) => Ok(*id),
            _ => Err(Error::NoSuchFunction(name.to_owned())),
        }
    }

    /// Returns the function whose unqualified name is `name`.
    pub(crate) fn named(&self, name: &str) -> Option<FunctionId> {
        let ctx = self.session.ctx();
        let mut functions = self.own_functions().into_iter();
        let found = functions.find(|(_, f)| ctx.name(f.name).rsplit('.').next() == Some(name));
        found.map(|(id, _)| id)
    }

    /// Returns the functions that are not methods, without those of PyTorch's own library (`__torch__.torch.nn.functional.relu`), whose names may collide with
    /// others. If there are only library functions, returns these.
    fn own_functions(&self) -> Vec<(FunctionId, &Function)> {
        let methods: HashSet<FunctionId> = self
            .unit
            .classes
            .values()
            .flat_map(|c| c.methods.values().copied())
            .collect();
        let is_library = |function: &Function| self.session.ctx().name(function.name).starts_with(LIBRARY);
        let functions = self.unit.functions().filter(|(id, _)| !methods.contains(id));
        let (library, own): (Vec<_>, Vec<_>) = functions.partition(|(_, function)| is_library(function));
        match own.is_empty() {
            true => library,
            false => own,
        }
    }

    /// Returns the only function, if it is a bare graph, without a signature.
    fn bare_graph(&self) -> Option<FunctionId> {
        let mut functions = self.unit.functions();
        match (functions.next(), functions.next()) {
            (Some((id, function)), None) if function.schema.is_vararg => Some(id),
            _ => None,
        }
    }

    /// Returns a module whose `forward` is a bare graph. If the graph's first input is an unused object, as in frozen graphs, it becomes the module.
    fn bare_model(&self, id: FunctionId) -> Model {
        let mut unit = self.unit.clone();
        let graph = &mut unit.function_mut(id).graph;
        if first_object(graph).is_some_and(|input| graph.uses(input).next().is_none()) {
            graph.remove_parameter(graph.root(), 0);
        }
        let module = function_module(self.session.ctx(), &unit, id);
        Model::of(self.session.clone(), module)
    }

    fn run_passes(&self, pipeline: &str, options: &PassOptions) -> Result<(Graphs, Report)> {
        let manager = manager(&self.session, pipeline, options)?;
        let mut out = self.clone();
        let mut report = Report::default();
        for (_, function) in out.unit.functions_mut() {
            let one = manager.run_on_graph(&mut function.graph, self.session.registry());
            report.add(one.map_err(|e| e.in_function(self.session.ctx().name(function.name)))?);
        }
        Ok((out, report))
    }
}

/// Returns the first input of `graph`, if its type is a class.
fn first_object(graph: &Graph) -> Option<ValueId> {
    let first = *graph.inputs().first()?;
    matches!(graph.ctx().type_kind(graph.ty(first)), TypeKind::Class(_)).then_some(first)
}

/// Returns a method of `class` that passes its arguments, except the first, to `function`.
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
    let result = builder.op(symbols::PRIM_CALL_FUNCTION, &operands, result);
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

/// The contents of a loaded file: a module, or graphs without a module.
///
/// See [`Session::load_bytes`] for an example.
#[derive(Clone)]
#[allow(clippy::large_enum_variant, reason = "there is one a file")]
pub enum Loaded {
    /// A module with its session.
    Model(Model),
    /// Graphs without a module, with their session.
    Graphs(Graphs),
}

impl Loaded {
    /// Freezes the module: see [`Model::freeze`].
    ///
    /// # Errors
    /// The errors of [`Model::freeze`]; also if there is no module.
    pub fn freeze(&self, options: &FreezeOptions) -> Result<Loaded> {
        Ok(Loaded::Model(self.model("frozen")?.freeze(options)?))
    }

    /// Freezes the module and runs passes: see [`Model::freeze_with_passes`].
    ///
    /// # Errors
    /// The errors of [`Model::freeze_with_passes`]; also if there is no module.
    pub fn freeze_with_passes(
        &self,
        options: &FreezeOptions,
        pipeline: &str,
        passes: &PassOptions,
    ) -> Result<(Loaded, Report)> {
        let (model, report) = self.model("frozen")?.freeze_with_passes(options, pipeline, passes)?;
        Ok((Loaded::Model(model), report))
    }

    /// Optimises the module for inference and runs passes: see [`Model::optimize_for_inference_with_passes`].
    ///
    /// # Errors
    /// The errors of [`Model::optimize_for_inference_with_passes`]; also if there is no module.
    pub fn optimize_for_inference_with_passes(
        &self,
        options: &FreezeOptions,
        pipeline: &str,
        passes: &PassOptions,
    ) -> Result<(Loaded, Report)> {
        let model = self.model("optimised")?;
        let (model, report) = model.optimize_for_inference_with_passes(options, pipeline, passes)?;
        Ok((Loaded::Model(model), report))
    }

    /// Optimises the module for inference: see [`Model::optimize_for_inference`].
    ///
    /// # Errors
    /// The errors of [`Model::optimize_for_inference`]; also if there is no module.
    pub fn optimize_for_inference(&self, options: &FreezeOptions) -> Result<Loaded> {
        Ok(Loaded::Model(self.model("optimised")?.optimize_for_inference(options)?))
    }

    /// Runs a pipeline: see [`Model::run_passes`]. Passes over graphs also run on graphs without a module.
    ///
    /// ```
    /// # let text = "graph(%x : Tensor):\n  %y : Tensor = aten::relu(%x)\n  return (%x)\n";
    /// # let mut loaded = frazil::Session::new().load_bytes("graph.ir".as_ref(), text.into())?;
    /// assert!(loaded.ir_text(None).contains("aten::relu")); // nothing uses it
    /// loaded.run_passes("dce", &frazil::PassOptions::default())?;
    /// assert_eq!(loaded.ir_text(None), "graph(%x : Tensor):\n  return (%x)\n");
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the pipeline is malformed or a pass fails.
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

    /// Returns the module.
    ///
    /// ```
    /// # let loaded = frazil::Session::new().script("f.py".as_ref(), "def f(x): return x + 1\n", &[])?;
    /// let error = loaded.model("frozen").err().map(|e| e.to_string());
    /// assert_eq!(error.as_deref(), Some("graphs without a module cannot be frozen"));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is none; `done` describes the attempted operation.
    pub fn model(&self, done: &str) -> Result<&Model> {
        match self {
            Loaded::Model(model) => Ok(model),
            Loaded::Graphs(_) => Err(Error::Unsupported(format!("graphs without a module cannot be {done}"))),
        }
    }

    /// Returns the graph to compile: method `name` of a module, or the function of that name, or the only graph.
    ///
    /// See [`Session::load_bytes`] for an example.
    ///
    /// # Errors
    /// If there is no such graph.
    pub fn graph(&self, name: &str) -> Result<&Graph> {
        match self {
            Loaded::Model(model) => model.graph(name),
            Loaded::Graphs(graphs) => Ok(&graphs.unit.function(graphs.function(name)?).graph),
        }
    }

    /// Returns the module. For graphs without a module, returns one whose `forward` is the function `name`, or the only function, as PyTorch saves functions.
    /// It is in training mode, so [`Model::eval`] must precede freezing.
    ///
    /// ```
    /// # let loaded = frazil::Session::new().script("f.py".as_ref(), "def f(x): return x + 1\n", &[])?;
    /// let model = loaded.to_model("f")?;
    /// assert!(model.root().method_names() == ["forward"] && model.root().is_training());
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such function.
    pub fn to_model(&self, name: &str) -> Result<Model> {
        match self {
            Loaded::Model(model) => Ok(model.clone()),
            Loaded::Graphs(graphs) => {
                let ctx = graphs.session.ctx();
                let module = function_module(ctx, &graphs.unit, graphs.function(name)?);
                Ok(Model::of(graphs.session.clone(), module))
            }
        }
    }

    /// Returns a model that engines can run: the module itself, or a module whose methods are the functions, or whose `forward` is the bare graph.
    ///
    /// ```
    /// # use frazil::{EngineKind, EngineOptions, Session, Tensor};
    /// let text = "graph(%x : Tensor):\n  %y : Tensor = aten::relu(%x)\n  return (%y)\n";
    /// let model = Session::new().load_bytes("graph.ir".as_ref(), text.into())?.runnable()?;
    /// let options = EngineOptions::default().kind(EngineKind::Interpreter);
    /// let result = model.engine(&options)?.call("forward", &[Tensor::from_f32(&[-1.0, 2.0], &[2])?.into()])?;
    /// assert_eq!(result.as_tensor().map(|t| t.to_f64_vec()), Some(vec![0.0, 2.0]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If a bare graph uses its former module.
    pub fn runnable(&self) -> Result<Model> {
        let graphs = match self {
            Loaded::Model(model) => return Ok(model.clone()),
            Loaded::Graphs(graphs) => graphs,
        };
        if let Some(id) = graphs.bare_graph() {
            let graph = &graphs.unit.function(id).graph;
            if let Some(object) = first_object(graph).filter(|&object| graph.uses(object).next().is_some()) {
                let ty = display_type(graph.ctx(), graph.ty(object), TypeStyle::Declared);
                return Err(Error::Unsupported(format!(
                    "the graph uses an object of class {ty}, which is not in the text: the form with the module's attributes can be run, which \
                     `jit-opt MODEL.pt -o MODEL.ir` writes"
                )));
            }
        }
        Ok(graphs.to_model())
    }

    /// Returns the session. See [`Session`] for an example.
    pub fn session(&self) -> &Session {
        match self {
            Loaded::Model(model) => model.session(),
            Loaded::Graphs(graphs) => &graphs.session,
        }
    }

    /// Checks that the file of the module has not been changed in place. Tensors are read on first use, and missing data is replaced by zeros. Callers must
    /// check this after functions that cannot return errors, such as [`ir_text`](Self::ir_text). Calls, compilations and functions that write files include the
    /// check.
    ///
    /// ```
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let net = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// # let folder = tempfile::tempdir().map_err(|e| frazil::Error::Text(e.to_string()))?;
    /// # let path = folder.path().join("net.pt");
    /// # net.save(&path, &Default::default())?;
    /// let net = frazil::Session::new().load_any(&path)?; // `net.pt`
    /// # std::thread::sleep(std::time::Duration::from_millis(20));
    /// std::fs::write(&path, "something else").map_err(|e| frazil::Error::Text(e.to_string()))?;
    /// let text = net.ir_text(None);
    /// assert!(net.check_unchanged().is_err()); // the text has wrong numbers
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If it has been changed.
    pub fn check_unchanged(&self) -> Result<()> {
        match self {
            Loaded::Model(model) => model.backing().check(),
            Loaded::Graphs(_) => Ok(()),
        }
    }

    /// Returns the text form. If `elide` is given, the data of constants with more elements is left out.
    ///
    /// See [`run_passes`](Self::run_passes) for an example.
    pub fn ir_text(&self, elide: Option<usize>) -> String {
        match self {
            Loaded::Model(model) => text::print_module(model.module(), elide),
            Loaded::Graphs(graphs) => text::print_unit(graphs.session.ctx(), &graphs.unit, elide),
        }
    }

    /// Returns whether the loaded file is a module. The text of a module has a second file for its larger tensors; see [`Loaded::save_ir`].
    ///
    /// ```
    /// # let loaded = frazil::Session::new().script("f.py".as_ref(), "def f(x): return x + 1\n", &[])?;
    /// assert!(!loaded.is_model());
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn is_model(&self) -> bool {
        matches!(self, Loaded::Model(_))
    }

    /// Writes the text form of a module to `path`, with its larger tensors in a `.safetensors` file beside it.
    ///
    /// ```
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// # let folder = tempfile::tempdir().map_err(|e| frazil::Error::Text(e.to_string()))?;
    /// # let path = folder.path().join("net.ir");
    /// frazil::Loaded::Model(model).save_ir(&path)?;
    /// assert!(frazil::Session::new().load(&path)?.root().has_attribute("fc.weight"));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no module, or a file cannot be written; no partial file remains.
    pub fn save_ir(&self, path: &Path) -> Result<()> {
        let model = self.model("written with their tensors")?;
        text::write_module(model.module(), model.backing(), path)
    }

    /// Returns the graphs of all functions in Graphviz's DOT language.
    ///
    /// ```
    /// # let loaded = frazil::Session::new().script("f.py".as_ref(), "def f(x): return x + 1\n", &[])?;
    /// assert!(loaded.dot_text().starts_with("digraph"));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn dot_text(&self) -> String {
        let (session, unit) = match self {
            Loaded::Model(model) => (model.session(), &model.module().unit),
            Loaded::Graphs(graphs) => (&graphs.session, &graphs.unit),
        };
        frazil_syntax::print_dot(unit.functions().map(|(_, f)| (session.ctx().name(f.name), &f.graph)))
    }

    /// Returns the alias analysis of all functions as text, in PyTorch's layout.
    ///
    /// ```
    /// # let loaded = frazil::Session::new().script("f.py".as_ref(), "def f(x): return x + 1\n", &[])?;
    /// assert!(loaded.alias_db_text().contains("%x points to: WILDCARD for type Tensor"));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn alias_db_text(&self) -> String {
        match self {
            Loaded::Model(model) => alias_text::unit(model.session(), &model.module().unit),
            Loaded::Graphs(graphs) => alias_text::unit(&graphs.session, &graphs.unit),
        }
    }

    /// Returns one line for each attribute that remains in a frozen model, with the node that prevents folding. Empty for graphs.
    ///
    /// ```
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.n = 0\n \
    /// # def forward(self): self.n += 1; return self.n\n";
    /// # let mut loaded = frazil::Session::new().script("net.py".as_ref(), source, &[])?;
    /// loaded.run_passes("freeze", &frazil::PassOptions::default())?; // of `self.n += 1; return self.n`
    /// assert!(loaded.kept_attributes_text().contains("self.n: assigned by"));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn kept_attributes_text(&self) -> String {
        match self {
            Loaded::Model(model) => alias_text::kept(model.session(), model.module()),
            Loaded::Graphs(_) => String::new(),
        }
    }
}
