//! Engines: calling the methods of a model, natively or in the reference interpreter.

#[cfg(feature = "codegen")]
use crate::code_cache::CodeCache;
#[cfg(feature = "codegen")]
use crate::compiler::Compiler;
use crate::hooks::Hooks;
use crate::instance::{CalledModule, Instance, ModelSource, Names, Running};
#[cfg(feature = "codegen")]
use crate::instance::{compile_options, kept};
use crate::limited::within;
#[cfg(feature = "codegen")]
use crate::native::{Cache, Handle};
#[cfg(feature = "codegen")]
use crate::record::Record;
use crate::setters::setters;
use crate::{Error, Model, Result};
use frazil_ir::Graph;
use frazil_limits::{Limits, Phase};
use frazil_runtime::interp::{ErrorKind, ExecError};
use frazil_runtime::{Signature, Value};
#[cfg(feature = "codegen")]
use frazil_syntax::PrivateFolder;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
#[cfg(feature = "codegen")]
use tracing::warn;

/// Which engine runs a model.
///
/// See [`EngineOptions`] for an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum EngineKind {
    /// Freezes the model, unless it is in training mode, specialises each method on the shapes that it is called with, and compiles it.
    #[default]
    Native,
    /// Runs the model as it is.
    Interpreter,
}

/// How to run a model.
///
/// ```
/// use frazil::{EngineKind, EngineOptions, Tensor};
///
/// # let model = frazil::Session::new().script("f.py".as_ref(), "def f(x): return x + 1\n", &[])?.to_model("f")?;
/// let options = EngineOptions::default().kind(EngineKind::Interpreter).threads(2);
/// let result = model.engine(&options)?.call("forward", &[Tensor::from_f32(&[1.0, 2.0], &[2])?.into()])?;
/// assert_eq!(result.as_tensor().map(|t| t.to_f64_vec()), Some(vec![2.0, 3.0]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EngineOptions {
    /// Which engine.
    pub kind: EngineKind,
    /// Put the module into evaluation mode first, as [`Model::eval`] does. Without it a module in training mode runs as it is: not frozen, and with
    /// PyTorch's training semantics (dropout, statistics of batch norms).
    pub eval: bool,
    /// Threads that a run may use.
    pub threads: usize,
    /// The processor that native code is made for, which has to be one whose instructions this machine has; see
    /// [`crate::CompileOptions::target_cpu`].
    pub target_cpu: String,
    /// Fail where native code cannot be made of a whole method, instead of running it in the interpreter, which calls native code for the
    /// parts of it that can be compiled.
    pub strict: bool,
    /// The methods that will be called, those of submodules by their dotted paths (`encoder.forward`), and submodules that will be called (`encoder`);
    /// freezing keeps them.
    pub methods: Vec<String>,
    /// Further names that freezing keeps.
    pub preserve: Vec<String>,
    /// A directory in which native code is kept from one process to the next; it may be shared, and files in it may be deleted.
    pub cache_dir: Option<PathBuf>,
    /// Whether operators become one kernel where that saves passes over memory.
    pub fuse: bool,
    /// A file of which form of each kernel was measured to be the fastest; see [`crate::CompileOptions::tune`].
    pub tune: Option<PathBuf>,
    /// For how many combinations of shapes and plain values a method is compiled; calls with others run in the interpreter. `None` sets no bound.
    pub specialisations: Option<usize>,
}

setters!(EngineOptions {
    kind: EngineKind,
    eval: bool,
    threads: usize,
    target_cpu: String,
    strict: bool,
    methods: Vec<String>,
    preserve: Vec<String>,
    cache_dir: Option<PathBuf>,
    fuse: bool,
    tune: Option<PathBuf>,
    specialisations: Option<usize>,
});

impl Default for EngineOptions {
    fn default() -> EngineOptions {
        EngineOptions {
            kind: EngineKind::default(),
            eval: false,
            threads: 1,
            target_cpu: "host".to_owned(),
            strict: false,
            methods: vec!["forward".to_owned()],
            preserve: Vec::new(),
            cache_dir: None,
            fuse: true,
            tune: None,
            specialisations: None,
        }
    }
}

/// Why a call gave no result.
///
/// ```
/// # use frazil::{CallError, Value};
/// # let source = "def f(x: int):\n    assert x > 0, 'too small'\n    return x\n";
/// # let model = frazil::Session::new().script("f.py".as_ref(), source, &[])?.to_model("f")?;
/// # let options = frazil::EngineOptions::default().kind(frazil::EngineKind::Interpreter);
/// # let mut engine = model.engine(&options)?;
/// let refused = engine.call("forward", &[Value::Int(0)]);
/// assert!(matches!(refused, Err(CallError::Raised(text)) if text.contains("too small")));
/// assert!(matches!(engine.call("backward", &[]), Err(CallError::Failed(_))));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The program raised an exception, as it would in PyTorch: the class and the message.
    #[error("{0}")]
    Raised(String),
    /// The call could not be carried out.
    #[error(transparent)]
    Failed(#[from] Error),
}

impl CallError {
    /// The places in source where the call stopped, `file:line:column` each, the innermost first. Empty where none is known.
    ///
    /// ```
    /// # use frazil::Value;
    /// # let source = "def f(x: int):\n    assert x > 0, 'too small'\n    return x\n";
    /// # let model = frazil::Session::new().script("f.py".as_ref(), source, &[])?.to_model("f")?;
    /// # let options = frazil::EngineOptions::default().kind(frazil::EngineKind::Interpreter);
    /// # let mut engine = model.engine(&options)?;
    /// let refused = engine.call("forward", &[Value::Int(0)]); // `assert x > 0` in line 2 of `f.py`
    /// assert_eq!(refused.err().map(|e| e.places()), Some(vec!["f.py:2:4".to_owned()]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn places(&self) -> Vec<String> {
        match self {
            CallError::Raised(text) => {
                let lines = text.lines().rev().map_while(|line| line.strip_prefix("  at "));
                let mut places: Vec<String> = lines.map(str::to_owned).collect();
                places.reverse();
                places
            }
            CallError::Failed(error) => error.places(),
        }
    }
}

impl From<ExecError> for CallError {
    fn from(e: ExecError) -> CallError {
        match &e.kind {
            ErrorKind::Raised { .. } => CallError::Raised(e.to_string()),
            _ => CallError::Failed(Error::Run(e)),
        }
    }
}

/// An instance of a model whose methods can be called; what a call changes, the next one sees.
///
/// An engine runs one call at a time. [`share`](Self::share) makes handles on the same instance for other threads.
///
/// ```
/// # use frazil::{FreezeOptions, Value};
/// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.n = 0\n \
/// # def forward(self): self.n += 1; return self.n\n";
/// # let model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
/// # let options = frazil::EngineOptions::default().kind(frazil::EngineKind::Interpreter);
/// # let mut engine = model.engine(&options)?;
/// engine.call("forward", &[])?; // `self.n += 1; return self.n`
/// assert!(matches!(engine.call("forward", &[])?, Value::Int(2)));
/// assert!(matches!(model.engine(&options)?.call("forward", &[])?, Value::Int(1))); // another instance
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
    names: Names,
    #[cfg(feature = "codegen")]
    code: Handle,
}

/// What the handles of an engine share.
pub(crate) struct Shared {
    instance: Instance,
    pub(crate) hooks: Hooks,
    #[cfg(feature = "codegen")]
    native: Option<Cache>,
}

impl Engine {
    pub(crate) fn new(model: &Model, options: &EngineOptions) -> Result<Engine> {
        Engine::of(ModelSource::model(model), options)
    }

    /// Whether an engine with these options reads and freezes its model only when it has to.
    pub(crate) fn may_wait(options: &EngineOptions) -> bool {
        cfg!(feature = "codegen") && options.kind == EngineKind::Native && options.cache_dir.is_some()
    }

    pub(crate) fn of(mut source: ModelSource, options: &EngineOptions) -> Result<Engine> {
        source.eval = options.eval;
        #[cfg(not(feature = "codegen"))]
        if options.kind == EngineKind::Native {
            return Err(Error::Unsupported(
                "this build has no native engine: it lacks the feature `codegen`".into(),
            ));
        }
        #[cfg(feature = "codegen")]
        let (folder, refusal) = usable_cache(options);
        #[cfg(feature = "codegen")]
        let compiler = Compiler::keeping_in(folder.clone(), compile_options(options));
        #[cfg(feature = "codegen")]
        let record: Arc<Record> = Arc::default();
        #[cfg(feature = "codegen")]
        let native = (options.kind == EngineKind::Native).then(|| {
            let methods = folder.zip(source.origin()).and_then(|(folder, origin)| {
                let compile = &compiler.options;
                let (target, threads) = (compile.target(), compile.threads);
                let target = format!(
                    "{target:?} {} {:?} {threads} {} {:?}",
                    compile.fuse, compile.tune, options.eval, options.preserve
                );
                CodeCache::new(folder, origin, &kept(options), &target)
            });
            refusal.into_iter().for_each(|note| record.note(note));
            Cache::new(compiler.clone(), options, methods, Arc::clone(&record))
        });
        #[cfg(feature = "codegen")]
        let is_lazy = native.as_ref().is_some_and(Cache::is_kept);
        #[cfg(not(feature = "codegen"))]
        let is_lazy = false;
        let instance = Instance::new(
            source,
            options,
            #[cfg(feature = "codegen")]
            compiler,
            #[cfg(feature = "codegen")]
            record,
        );
        if !is_lazy {
            instance.running()?;
        }
        Ok(Engine::handle(Arc::new(Shared {
            instance,
            hooks: Hooks::default(),
            #[cfg(feature = "codegen")]
            native,
        })))
    }

    fn handle(shared: Arc<Shared>) -> Engine {
        Engine {
            shared,
            names: Names::default(),
            #[cfg(feature = "codegen")]
            code: Handle::default(),
        }
    }

    /// Another handle on this instance of the model, for calls on another thread at the same time.
    ///
    /// Handles share the model and its objects, hooks, notes, and compiled code: what a call through one of them changes, later calls through the others
    /// see. Code and weights are in memory once, and each call signature is compiled once, while the other threads that need it wait. Each handle has
    /// the memory that its runs write to. It costs next to nothing until it is called.
    ///
    /// Calls that change the same attribute or tensor at the same time leave the changes of one of them, or some of each, as in PyTorch. A hook runs on
    /// one thread at a time.
    ///
    /// ```
    /// # use frazil::Value;
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.n = 3\n \
    /// # def forward(self, x: int): return self.n * x\n";
    /// # let model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// # let options = frazil::EngineOptions::default().kind(frazil::EngineKind::Interpreter);
    /// let mut engine = model.engine(&options)?;
    /// let threads: Vec<_> = (0..4).map(|i| {
    ///     let mut engine = engine.share();
    ///     std::thread::spawn(move || engine.call("forward", &[Value::Int(i)])) // `self.n * x`
    /// }).collect();
    /// for (i, thread) in threads.into_iter().enumerate() {
    ///     let result = thread.join().map_err(|_| "the thread panicked")??;
    ///     assert_eq!(result.as_int(), Some(3 * i as i64));
    /// }
    /// assert_eq!(engine.call("forward", &[Value::Int(5)])?.as_int(), Some(15));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn share(&self) -> Engine {
        Engine::handle(Arc::clone(&self.shared))
    }

    pub(crate) fn instance(&self) -> &Instance {
        &self.shared.instance
    }

    /// The model that runs: the frozen one, for native engines.
    ///
    /// ```
    /// # let model = frazil::Session::new().script("f.py".as_ref(), "def f(x): return x + 1\n", &[])?.to_model("f")?;
    /// # let options = frazil::EngineOptions::default().kind(frazil::EngineKind::Interpreter);
    /// # let mut engine = model.engine(&options)?;
    /// assert_eq!(engine.model()?.root().method_names(), ["forward"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When it cannot be frozen, or read: an engine with a `cache_dir` does so when it has to, and not when it is made.
    pub fn model(&mut self) -> Result<&Model> {
        let _inside = frazil_rt::gate::enter()?;
        Ok(&self.shared.instance.running()?.model)
    }

    /// The graph that runs when `method` is called (`ScriptModule.graph_for`): the frozen one, for native engines, of which kernels are made for the
    /// arguments that come.
    ///
    /// ```
    /// # let model = frazil::Session::new().script("f.py".as_ref(), "def f(x): return x + 1\n", &[])?.to_model("f")?;
    /// # let options = frazil::EngineOptions::default().kind(frazil::EngineKind::Interpreter);
    /// # let mut engine = model.engine(&options)?;
    /// let graph = engine.graph_for("forward")?;
    /// assert_eq!(graph.inputs().len(), 2); // the module, and `x`
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When it cannot be frozen, or there is no such method.
    pub fn graph_for(&mut self, method: &str) -> Result<&Graph> {
        self.model()?.graph(method)
    }

    /// Calls the method `method`; one of a submodule by its dotted path (`encoder.forward`), which [`EngineOptions::methods`] has to list. Arguments are
    /// checked and converted as PyTorch does with what comes from Python; those that are missing take their defaults. No hooks run, not even for
    /// `forward`: see [`call_module`](Self::call_module). The path of a submodule without a method's name (`encoder`) calls the submodule, with its
    /// hooks.
    ///
    /// ```
    /// # use frazil::{CallError, Value};
    /// # let source = "def f(x: int, y: int = 3): return x * y\n";
    /// # let model = frazil::Session::new().script("f.py".as_ref(), source, &[])?.to_model("f")?;
    /// # let options = frazil::EngineOptions::default().kind(frazil::EngineKind::Interpreter);
    /// # let mut engine = model.engine(&options)?;
    /// // of `def forward(self, x: int, y: int = 3): return x * y`
    /// assert!(matches!(engine.call("forward", &[Value::Int(4)])?, Value::Int(12)));
    /// let Err(CallError::Raised(text)) = engine.call("forward", &[Value::str("four")]) else { panic!() };
    /// assert!(text.contains("Expected a value of type 'int' for argument 'x' but instead found type 'str'."));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the arguments are not what the method takes, when the program raises, and when it cannot be run.
    pub fn call(&mut self, method: &str, args: &[Value]) -> Result<Value, CallError> {
        self.call_with(method, args, &[])
    }

    /// Calls `method` with arguments by position and by name; those that are missing take their defaults.
    ///
    /// ```
    /// # use frazil::Value;
    /// # let source = "def f(x: int, y: int = 3, z: int = 5): return x * y + z\n";
    /// # let model = frazil::Session::new().script("f.py".as_ref(), source, &[])?.to_model("f")?;
    /// # let options = frazil::EngineOptions::default().kind(frazil::EngineKind::Interpreter);
    /// # let mut engine = model.engine(&options)?;
    /// // of `def forward(self, x: int, y: int = 3, z: int = 5): return x * y + z`
    /// assert!(matches!(engine.call_with("forward", &[Value::Int(4)], &[("z", Value::Int(1))])?, Value::Int(13)));
    /// assert!(engine.call_with("forward", &[Value::Int(4)], &[("alien", Value::Int(1))]).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub fn call_with(&mut self, method: &str, args: &[Value], named: &[(&str, Value)]) -> Result<Value, CallError> {
        let _inside = frazil_rt::gate::enter().map_err(Error::from)?;
        let limits = self.limits();
        within(&limits, Phase::Call, || self.call_within(method, args, named))
    }

    fn call_within(&mut self, method: &str, args: &[Value], named: &[(&str, Value)]) -> Result<Value, CallError> {
        if self.finds_kept_code(method, args, named) {
            return self.run(method, args);
        }
        match self.module_called(method)? {
            Some(module) => self.call_with_hooks(&module, args, named),
            None => self.call_method(method, args, named),
        }
    }

    /// Calls a method, which runs no hooks.
    pub(crate) fn call_method(
        &mut self,
        method: &str,
        args: &[Value],
        named: &[(&str, Value)],
    ) -> Result<Value, CallError> {
        let signature = self.signature(method)?;
        let complete = signature.bind(args, named)?;
        self.run(method, &complete)
    }

    /// Limits for calls.
    pub(crate) fn limits(&self) -> Limits {
        *self.shared.instance.source().session().limits()
    }

    fn signature(&mut self, method: &str) -> Result<Arc<Signature>> {
        self.names.signature(&self.shared.instance, method)
    }

    /// The module that a call of `path` calls, unless a method has that path, or nothing.
    pub(crate) fn module_called(&mut self, path: &str) -> Result<Option<Arc<CalledModule>>> {
        self.names.module_called(&self.shared.instance, path)
    }

    /// Returns whether another process kept code for this call, so that the model need not be read.
    pub(crate) fn finds_kept_code(&mut self, method: &str, args: &[Value], named: &[(&str, Value)]) -> bool {
        #[cfg(feature = "codegen")]
        if let Some(native) = &self.shared.native {
            return named.is_empty() && native.finds(&mut self.code, &self.shared.instance, method, args);
        }
        let _ = (method, args, named);
        false
    }

    /// Runs a method on complete arguments.
    pub(crate) fn run(&mut self, method: &str, args: &[Value]) -> Result<Value, CallError> {
        let instance = &self.shared.instance;
        #[cfg(feature = "codegen")]
        if let Some(native) = &self.shared.native
            && let Some(result) = native.call(&mut self.code, instance, method, args)?
        {
            instance.check()?;
            return Ok(result);
        }
        let result = instance.running()?.interpreter.call_bound(method, args);
        instance.check()?;
        Ok(result?)
    }

    /// Runs `method`, which has been called with such arguments before, for about `time`, and tells where the time goes; `None` when it
    /// does not run natively as a whole.
    ///
    /// ```
    /// # use {frazil::{EngineOptions, Tensor}, std::time::Duration};
    /// # let mut model = frazil::Session::new().script("f.py".as_ref(), "def f(x): return x + 1\n", &[])?.to_model("f")?;
    /// # model.eval();
    /// let mut engine = model.engine(&EngineOptions::default())?;
    /// let args = [Tensor::from_f32(&[1.0, 2.0], &[2])?.into()];
    /// engine.call("forward", &args)?;
    /// let profile = engine.profile("forward", &args, Duration::from_millis(1))?;
    /// assert!(profile.is_some_and(|profile| profile.runs > 0 && profile.rows.len() == 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Engine::call`].
    #[cfg(feature = "codegen")]
    pub fn profile(&mut self, method: &str, args: &[Value], time: Duration) -> Result<Option<crate::Profile>> {
        let _inside = frazil_rt::gate::enter()?;
        let module = match self.finds_kept_code(method, args, &[]) {
            true => None,
            false => self.module_called(method)?,
        };
        let method = module.as_ref().map_or(method, |module| &module.forward);
        let complete = match self.finds_kept_code(method, args, &[]) {
            true => args.to_vec(),
            false => self
                .signature(method)?
                .bind(args, &[])
                .map_err(Error::Run)?
                .into_owned(),
        };
        match &self.shared.native {
            Some(native) => native.profile(&mut self.code, method, &complete, time),
            None => Ok(None),
        }
    }

    /// The model with the state that calls have brought it to: its attributes as they are now. Bytes are shared until they are written.
    ///
    /// ```
    /// # use frazil::Value;
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.n = 0\n \
    /// # def forward(self): self.n += 1; return self.n\n";
    /// # let model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// # let options = frazil::EngineOptions::default().kind(frazil::EngineKind::Interpreter);
    /// # let mut engine = model.engine(&options)?;
    /// engine.call("forward", &[])?; // `self.n += 1; return self.n`
    /// assert!(matches!(engine.snapshot()?.root().attribute("n")?, Value::Int(1)));
    /// assert!(matches!(model.root().attribute("n")?, Value::Int(0)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When an attribute holds what no module can keep, such as a future.
    pub fn snapshot(&mut self) -> Result<Model> {
        let _inside = frazil_rt::gate::enter()?;
        let Running { model, interpreter } = self.instance().running()?;
        let module = interpreter.snapshot().map_err(|e| Error::Attribute(e.to_string()))?;
        Ok(match module {
            Some(module) => model.derived(module).with_hooks_of(model),
            None => model.clone(),
        })
    }

    /// Notes on what was compiled, and on what was not and why: a line each, of all [handles](Self::share).
    ///
    /// ```
    /// # let model = frazil::Session::new().script("f.py".as_ref(), "def f(x): return x + 1\n", &[])?.to_model("f")?;
    /// # let options = frazil::EngineOptions::default().kind(frazil::EngineKind::Interpreter);
    /// # let mut engine = model.engine(&options)?;
    /// # engine.call("forward", &[frazil::Tensor::from_f32(&[1.0], &[1])?.into()])?;
    /// assert!(engine.notes().is_empty()); // of an interpreter: it compiles nothing
    /// assert!(engine.compile_time().is_zero());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn notes(&self) -> Vec<String> {
        #[cfg(feature = "codegen")]
        if let Some(native) = &self.shared.native {
            return native.record.notes();
        }
        Vec::new()
    }

    /// Time spent on making native code so far, by all [handles](Self::share).
    ///
    /// See [`notes`](Self::notes) for an example.
    pub fn compile_time(&self) -> Duration {
        #[cfg(feature = "codegen")]
        if let Some(native) = &self.shared.native {
            return native.record.compile_time();
        }
        Duration::ZERO
    }
}

/// The folder in which code is kept, and why there is none if it cannot be used: there is one warning, and everything is compiled. Whoever keeps something in
/// it gets a clone, so that there is one warning too where that fails later.
#[cfg(feature = "codegen")]
fn usable_cache(options: &EngineOptions) -> (Option<PrivateFolder>, Option<String>) {
    let native = options.kind == EngineKind::Native;
    let Some(folder) = options.cache_dir.as_ref().filter(|_| native).map(PrivateFolder::new) else {
        return (None, None);
    };
    match folder.prepare() {
        Ok(()) => (Some(folder), None),
        Err(e) => {
            let refusal = format!("no code is kept in {}: {e}", folder.path().display());
            warn!(target: "frazil::cache", "{refusal}");
            (None, Some(refusal))
        }
    }
}

/// Kept for documentation: engines move between threads.
const _: fn() = || {
    fn is_send<T: Send>() {}
    is_send::<Engine>();
    is_send::<Arc<frazil_runtime::interp::Interpreter>>();
};
