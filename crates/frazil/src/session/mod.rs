//! Sessions: a context of names and types, with operators and passes.

pub(crate) mod builder;

use crate::session::builder::SessionBuilder;
use frazil_ir::{Context, Module};
use frazil_limits::Limits;
use frazil_passes::PassRegistry;
use frazil_runtime::Registry;
use frazil_torchscript::{LoadOptions, TraceContext, TraceRequest};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// The shared state of the models of a program. It is cheap to create and to clone. The operators are registered on first use, which takes one to two
/// milliseconds. No global state remains after the session and its models are dropped.
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
    /// The registry of operators. It is created on first use, because only compiling and interpreting need it.
    registry: OnceLock<Arc<Registry>>,
    passes: OnceLock<Arc<PassRegistry>>,
    /// The value that `torch.jit.enable_onednn_fusion` has set.
    onednn_fusion: AtomicBool,
}

/// Returns a registry with the operators of the prim and aten dialects.
pub(crate) fn standard_operators(ctx: Arc<Context>) -> Registry {
    let mut registry = Registry::new(ctx);
    frazil_prim::register(&mut registry);
    frazil_aten::register(&mut registry);
    registry
}

impl Session {
    /// Returns a session with the prim and aten dialects and the standard passes.
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

    /// Returns a builder for a session that has an embedder's operators and passes in addition to the standard operators and passes.
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

    /// Returns a session with only these operators and passes. [`builder`](Self::builder) adds them to the standard operators and passes.
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

    /// Returns the session with other limits, which apply to inputs that it reads, to the resulting models, and to their engines. If one is exceeded,
    /// the error is [`Error::Exceeded`](crate::Error::Exceeded), or [`Error::exceeded`](crate::Error::exceeded) returns it.
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

    /// Returns the limits on time, memory and size that apply to the session's inputs.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the context of names and types.
    ///
    /// ```
    /// # let session = frazil::Session::new();
    /// let relu = session.ctx().symbol("aten::relu");
    /// assert_eq!(session.ctx().name(relu), "aten::relu");
    /// ```
    pub fn ctx(&self) -> &Arc<Context> {
        &self.shared.ctx
    }

    /// Returns the operators.
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

    /// Returns the passes.
    ///
    /// ```
    /// # let session = frazil::Session::new();
    /// assert!(session.passes().find("dce").is_some());
    /// ```
    pub fn passes(&self) -> &Arc<PassRegistry> {
        self.shared.passes.get_or_init(|| Arc::new(PassRegistry::standard()))
    }

    /// Sets PyTorch's switch for oneDNN's fuser (`torch.jit.enable_onednn_fusion`), for all clones of the session. Frazil compiles its own kernels, so it
    /// changes neither code nor results: [`EngineOptions::fuse`](crate::EngineOptions::fuse) controls fusion.
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

    /// Returns the last value set by [`enable_onednn_fusion`](Self::enable_onednn_fusion) (`torch.jit.onednn_fusion_enabled`); false by default.
    pub fn onednn_fusion_enabled(&self) -> bool {
        self.shared.onednn_fusion.load(Ordering::Relaxed)
    }

    /// Calls `act` with the options for source: constants are folded as by PyTorch's compiler, and traces are recorded.
    pub(crate) fn with_source_options<R>(&self, act: impl FnOnce(&LoadOptions<'_>) -> R) -> R {
        let trace = |module: &Module, context: &TraceContext, request: &TraceRequest| {
            crate::source_trace::record(self.registry(), module, context, request)
        };
        let mut options = self.load_options();
        options.operators = Some(self.registry());
        options.trace = Some(&trace);
        act(&options)
    }

    pub(crate) fn load_options(&self) -> LoadOptions<'_> {
        LoadOptions::new(self.ctx(), self.registry().catalogue())
    }
}

impl Default for Session {
    fn default() -> Session {
        Session::new()
    }
}
