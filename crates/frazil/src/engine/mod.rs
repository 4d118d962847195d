//! Engines, which run the methods of a model natively or in the reference interpreter.

#[cfg(feature = "codegen")]
pub(crate) mod code_library;
#[cfg(feature = "codegen")]
pub(crate) mod code_library_builder;
pub(crate) mod hooks;
mod instance;
pub(crate) mod kernel_counts;
mod module_calls;
#[cfg(feature = "codegen")]
pub(crate) mod native;
#[cfg(not(feature = "codegen"))]
#[path = "without_native.rs"]
mod native;
pub(crate) mod options;

use crate::engine::hooks::Hooks;
use crate::engine::instance::{CalledModule, Instance, ModelSource, Names, Running};
use crate::engine::kernel_counts::KernelCounts;
use crate::engine::native::{Handle, NativeCode};
use crate::engine::options::{EngineKind, EngineOptions};
use crate::error::{CallError, Error, Result};
use crate::model::Model;
use crate::model::load::archive_identity;
use crate::session::Session;
use crate::support::limited::within;
use frazil_ir::Graph;
use frazil_limits::{Limits, Phase};
use frazil_runtime::{Signature, Value};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// An instance of a model whose methods can be called. Changes that a call makes are visible to later calls.
///
/// An engine runs one call at a time. [`share`](Self::share) returns handles of the same instance for other threads.
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
    code: Handle,
}

/// State that the handles of an engine share.
pub(crate) struct Shared {
    instance: Instance,
    pub(crate) hooks: Hooks,
    native: Option<NativeCode>,
}

impl Engine {
    pub(crate) fn new(model: &Model, options: &EngineOptions) -> Result<Engine> {
        Engine::of(ModelSource::model(model), options)
    }

    pub(crate) fn of(mut source: ModelSource, options: &EngineOptions) -> Result<Engine> {
        source.eval = options.eval;
        let native = match options.kind {
            EngineKind::Native => Some(NativeCode::new(source.origin(), options)?),
            EngineKind::Interpreter => None,
        };
        let is_lazy = native.as_ref().is_some_and(NativeCode::is_kept);
        let instance = Instance::new(source, options, native.as_ref().map(NativeCode::subgraphs));
        if !is_lazy {
            instance.running()?;
            if let Some(native) = &native {
                native.warm_up(&instance, &options.methods)?;
            }
        }
        Ok(Engine::handle(Arc::new(Shared {
            instance,
            hooks: Hooks::default(),
            native,
        })))
    }

    fn handle(shared: Arc<Shared>) -> Engine {
        Engine {
            shared,
            names: Names::default(),
            code: Handle::default(),
        }
    }

    /// Returns another handle on this instance of the model, for concurrent calls on another thread.
    ///
    /// Handles share the model and its objects, hooks, notes, and compiled code: changes by a call through one handle are visible to later calls through the
    /// others. Code and weights are in memory once. Each call signature is compiled once; other threads that need it wait. Each handle has its own workspace. A
    /// handle that has not been called needs almost no memory.
    ///
    /// After concurrent changes of the same attribute or tensor, the changes of one call are visible, or some of each, as in PyTorch. A hook runs on one thread
    /// at a time.
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

    /// Returns the model whose methods run: for native engines, the frozen model.
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
    /// If it cannot be frozen, or read: an engine with a `cache_dir` reads it on first use.
    pub fn model(&mut self) -> Result<&Model> {
        let _inside = frazil_rt::gate::enter()?;
        Ok(&self.shared.instance.running()?.model)
    }

    /// Returns the graph that runs when `method` is called (`ScriptModule.graph_for`). Native engines run the frozen graph, which is specialised for the
    /// arguments of each call.
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
    /// If the model cannot be frozen, or there is no such method.
    pub fn graph_for(&mut self, method: &str) -> Result<&Graph> {
        self.model()?.graph(method)
    }

    /// Calls the method `method`; a dotted path (`encoder.forward`) calls one of a submodule, which must be in [`EngineOptions::methods`]. Arguments are
    /// checked and converted as PyTorch does for arguments from Python; missing ones have their defaults. No hooks run, not even for `forward`: see
    /// [`call_module`](Self::call_module). The path of a submodule without a method's name (`encoder`) calls the submodule, with its hooks.
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
    /// If the arguments do not fit the method, if the program raises, or if it cannot be run.
    pub fn call(&mut self, method: &str, args: &[Value]) -> Result<Value, CallError> {
        self.call_with(method, args, &[])
    }

    /// Calls `method` with positional and keyword arguments. Arguments that are not passed have their defaults.
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
    /// See [`call`](Self::call).
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

    /// Calls a method without running hooks.
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

    /// Returns the arguments of a call of `method` with `args`, with the defaults of missing ones.
    #[cfg(feature = "codegen")]
    pub(crate) fn complete_arguments(&mut self, method: &str, args: &[Value]) -> Result<Vec<Value>, CallError> {
        Ok(self.signature(method)?.bind(args, &[])?.into_owned())
    }

    /// Returns the session's limits, which apply to calls.
    pub(crate) fn limits(&self) -> Limits {
        *self.shared.instance.source().session().limits()
    }

    fn signature(&mut self, method: &str) -> Result<Arc<Signature>> {
        self.names.signature(&self.shared.instance, method)
    }

    /// Returns the module at `path`; `None` if the path denotes a method, or nothing.
    pub(crate) fn module_called(&mut self, path: &str) -> Result<Option<Arc<CalledModule>>> {
        self.names.module_called(&self.shared.instance, path)
    }

    /// Returns whether code for this call is stored from another process, so that the model need not be read.
    pub(crate) fn finds_kept_code(&mut self, method: &str, args: &[Value], named: &[(&str, Value)]) -> bool {
        match &self.shared.native {
            Some(native) => named.is_empty() && native.finds(&mut self.code, &self.shared.instance, method, args),
            None => false,
        }
    }

    /// Runs a method whose arguments are complete: no default is missing.
    pub(crate) fn run(&mut self, method: &str, args: &[Value]) -> Result<Value, CallError> {
        let instance = &self.shared.instance;
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

    /// Profiles `method`, which has already been called with such arguments, for about `time`. `None` if the method does not run natively as a whole.
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
    /// See [`Engine::call`].
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

    /// Returns the model with the current attributes of this instance, which calls may have changed. Tensors share memory with the instance until written.
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
    /// If the value of an attribute cannot be stored in a module, such as a future.
    pub fn snapshot(&mut self) -> Result<Model> {
        let _inside = frazil_rt::gate::enter()?;
        let Running { model, interpreter } = self.instance().running()?;
        let module = interpreter.snapshot().map_err(|e| Error::Attribute(e.to_string()))?;
        Ok(match module {
            Some(module) => model.derived(module).with_hooks_of(model),
            None => model.clone(),
        })
    }

    /// Returns one diagnostic for each compiled method, and one with the reason for each method that was not compiled, from all [handles](Self::share).
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
        self.shared.native.as_ref().map_or_else(Vec::new, NativeCode::notes)
    }

    /// Returns the numbers of kernels that all [handles](Self::share) have compiled or taken from the code library so far.
    ///
    /// ```
    /// # use frazil::{EngineOptions, FusionStrategy};
    /// # let model = frazil::Session::new().script("f.py".as_ref(), "def forward(x): return x + 1", &[])?.to_model("forward")?;
    /// let strategy = FusionStrategy { static_shapes: 0 }; // all sizes are arguments of the code
    /// let mut engine = model.engine(&EngineOptions::default().fusion_strategy(strategy))?;
    /// engine.call("forward", &[frazil::Tensor::from_f32(&[1.0, 2.0], &[2])?.into()])?;
    /// assert_eq!(engine.kernel_counts().with_constant_sizes, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn kernel_counts(&self) -> KernelCounts {
        let native = self.shared.native.as_ref();
        native.map_or_else(KernelCounts::default, NativeCode::kernel_counts)
    }

    /// Returns the time that all [handles](Self::share) have spent on compiling so far.
    ///
    /// See [`notes`](Self::notes) for an example.
    pub fn compile_time(&self) -> Duration {
        self.shared
            .native
            .as_ref()
            .map_or(Duration::ZERO, NativeCode::compile_time)
    }
}

/// Asserts at compile time that engines can be sent between threads.
const _: fn() = || {
    fn is_send<T: Send>() {}
    is_send::<Engine>();
    is_send::<Arc<frazil_runtime::interp::Interpreter>>();
};

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

impl Session {
    /// Makes an engine for the model at `path`, as [`load`](Self::load) and [`Model::engine`] do. With a `cache_dir`, an archive is read only for a call
    /// without stored code, or for an operation on the model itself.
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
    /// The errors of [`load`](Self::load) and [`Model::engine`]. If the archive is read later, its errors are returned then.
    pub fn engine(&self, path: impl AsRef<Path>, options: &EngineOptions) -> Result<Engine> {
        let path = path.as_ref();
        match archive_identity(path)?.filter(|_| native::reads_late(options)) {
            Some(identity) => Engine::of(ModelSource::archive(self, path, identity), options),
            None => self.load(path)?.engine(options),
        }
    }
}

impl Model {
    /// Returns an engine, which calls methods on its own instance of the module.
    ///
    /// See [`EngineOptions`] for an example.
    ///
    /// # Errors
    /// If the module cannot be frozen, for native engines; or if a tensor does not fit its storage.
    pub fn engine(&self, options: &EngineOptions) -> Result<Engine> {
        let refused = |method: &&String| self.module().unit.refused.contains_key(*method);
        match options.methods.iter().find(refused) {
            Some(method) => Err(self.no_method(method)),
            None => Engine::new(self, options),
        }
    }
}
