//! Options of engines and of native code.

#[cfg(feature = "codegen")]
use crate::engine::code_library::CodeLibrary;
use crate::support::setters::setters;
#[cfg(feature = "codegen")]
use frazil_ir::DType;
#[cfg(feature = "codegen")]
use frazil_syntax::CacheFolder;
use std::path::PathBuf;

/// Default of [`CompileOptions::cache_bytes`].
const DEFAULT_CACHE_BYTES: u64 = 2 << 30;

/// The way in which an engine runs a model.
///
/// See [`EngineOptions`] for an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum EngineKind {
    /// Freezes the model, unless it is in training mode, specialises each method on the shapes of its arguments, and compiles it.
    #[default]
    Native,
    /// Runs the model as it is in the interpreter.
    Interpreter,
}

/// Options for running a model.
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
    /// Native code or interpreter.
    pub kind: EngineKind,
    /// Puts the module into evaluation mode first, as [`Model::eval`](crate::Model::eval) does. Without it, a module in training mode runs as it is: not frozen, and
    /// with PyTorch's training semantics (dropout, statistics of batch norms).
    pub eval: bool,
    /// Options for native code. This machine must have the instructions of its processor; its number of threads also applies to the interpreter.
    pub compile: CompileOptions,
    /// Fails if a method cannot be compiled as a whole. Otherwise the interpreter runs it, and calls native code for the subgraphs that
    /// can be compiled.
    pub strict: bool,
    /// The methods that will be called, with dotted paths for those of submodules (`encoder.forward`), and the submodules that will be called
    /// (`encoder`). Freezing keeps them.
    pub methods: Vec<String>,
    /// Further names that freezing keeps.
    pub preserve: Vec<String>,
    /// Maximum number of call signatures (shapes and values of other arguments) for which a method is compiled; calls with others run in the interpreter.
    /// `None` means no limit.
    pub specialisations: Option<usize>,
    /// Selection of the shapes of a method that get code of their own.
    pub fusion_strategy: FusionStrategy,
}

/// Selection of the shapes of a method's arguments that get code of their own; other shapes share code.
///
/// Code of its own is compiled for one shape and has all sizes as constants. Shared code has the varying sizes as arguments: for a new shape, kernels are
/// planned, and little or nothing is compiled. The results of both are bit-identical. PyTorch's `set_fusion_strategy` has the same two kinds.
///
/// ```
/// use frazil::{EngineOptions, FusionStrategy, Tensor};
///
/// # let model = frazil::Session::new().script("f.py".as_ref(), "def f(x): return (x + 1).relu()\n", &[])?.to_model("f")?;
/// let options = EngineOptions::default().fusion_strategy(FusionStrategy { static_shapes: 1 });
/// let mut engine = model.engine(&options)?;
/// for n in 2..10 {
///     let result = engine.call("forward", &[Tensor::from_f32(&vec![1.0; n], &[n as i64])?.into()])?;
///     assert_eq!(result.as_tensor().map(|t| t.to_f64_vec()), Some(vec![2.0; n]));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FusionStrategy {
    /// Maximum number of shapes of a method that get code of their own, in the order of their calls. All other shapes share code. With 0, all sizes are
    /// arguments of the code. If a [`CodeLibrary`](crate::CodeLibrary) has the code for the first call of a shape, the shape gets code of its own at the second.
    pub static_shapes: usize,
}

impl Default for FusionStrategy {
    /// Two shapes, as in PyTorch.
    fn default() -> FusionStrategy {
        FusionStrategy { static_shapes: 2 }
    }
}

setters!(EngineOptions {
    kind: EngineKind,
    eval: bool,
    compile: CompileOptions,
    strict: bool,
    methods: Vec<String>,
    preserve: Vec<String>,
    specialisations: Option<usize>,
    fusion_strategy: FusionStrategy,
});

/// Defines setters of engine options for the options of native code.
macro_rules! compile_setters {
    ($($field:ident: $ty:ty,)*) => {
        impl EngineOptions {$(
            #[doc = concat!("The options with this [`CompileOptions::", stringify!($field), "`].")]
            ///
            /// See [`EngineOptions`] for an example.
            #[must_use]
            pub fn $field(mut self, $field: $ty) -> Self {
                self.compile.$field = $field;
                self
            }
        )*}
    };
}

compile_setters! {
    target_cpu: String,
    threads: usize,
    cache_dir: Option<PathBuf>,
    cache_bytes: u64,
    fuse: bool,
    tune: Option<PathBuf>,
}

impl Default for EngineOptions {
    fn default() -> EngineOptions {
        EngineOptions {
            kind: EngineKind::default(),
            eval: false,
            compile: CompileOptions::default(),
            strict: false,
            methods: vec!["forward".to_owned()],
            preserve: Vec::new(),
            specialisations: None,
            fusion_strategy: FusionStrategy::default(),
        }
    }
}

/// Options for native code.
///
/// ```
/// # use frazil::{CompileOptions, Emit, InputSpec, ir::DType};
/// # let loaded = frazil::Session::new().script("f.py".as_ref(), "def f(x): return x + 1\n", &[])?;
/// let options = CompileOptions::default().target_cpu("x86-64-v3".to_owned()).name("plus_one".to_owned());
/// let plan = loaded.plan("f", &[InputSpec::new(DType::Float, &[8])], &options)?;
/// let assembler = plan.emit(Emit::Asm)?;
/// assert!(String::from_utf8_lossy(&assembler).contains("plus_one"));
/// # Ok::<(), frazil::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CompileOptions {
    /// `host`, an x86-64 level (`x86-64-v3`), or the name of a processor in LLVM.
    pub target_cpu: String,
    /// Threads that a run may use.
    pub threads: usize,
    /// Prefix of the function names in a library: a C identifier.
    pub name: String,
    /// A directory that stores native code across processes. It may be shared, and files in it may be deleted.
    pub cache_dir: Option<PathBuf>,
    /// Maximum size of that directory in bytes. Beyond it, the files that have not been used for the longest time are deleted.
    pub cache_bytes: u64,
    /// Whether operators are fused into one kernel where that saves passes over memory.
    pub fuse: bool,
    /// A file of tuning results: the kernel variants that were measured to be the fastest on this processor. Kernels that it does not contain
    /// are measured, which takes about a second per kernel, and added. Without a file, variants are chosen by an estimate.
    pub tune: Option<PathBuf>,
    /// Code that was compiled in advance, for the shapes that share code; [`CodeLibrary::embedded`] by default.
    #[cfg(feature = "codegen")]
    pub code_library: Option<CodeLibrary>,
}

setters!(CompileOptions {
    target_cpu: String,
    threads: usize,
    name: String,
    cache_dir: Option<PathBuf>,
    cache_bytes: u64,
    fuse: bool,
    tune: Option<PathBuf>,
});

#[cfg(feature = "codegen")]
impl CompileOptions {
    /// Returns the folder for native code, if there is one.
    pub(crate) fn cache(&self) -> Option<CacheFolder> {
        let path = self.cache_dir.as_ref()?;
        Some(CacheFolder::new(path, self.cache_bytes))
    }
}

impl Default for CompileOptions {
    fn default() -> CompileOptions {
        CompileOptions {
            target_cpu: "host".to_owned(),
            threads: 1,
            name: "model".to_owned(),
            cache_dir: None,
            cache_bytes: DEFAULT_CACHE_BYTES,
            fuse: true,
            tune: None,
            #[cfg(feature = "codegen")]
            code_library: CodeLibrary::embedded(),
        }
    }
}

/// dtype and sizes of an input tensor.
///
/// See [`Model::compile`](crate::Model::compile) for an example.
#[cfg(feature = "codegen")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InputSpec {
    /// Element type.
    pub dtype: DType,
    /// The sizes of the dimensions, in elements.
    pub sizes: Vec<i64>,
}

#[cfg(feature = "codegen")]
impl InputSpec {
    /// Returns a dense tensor of these sizes.
    ///
    /// ```
    /// use frazil::{InputSpec, ir::DType};
    ///
    /// let images = InputSpec::new(DType::Float, &[1, 3, 32, 32]);
    /// assert_eq!(images.sizes.iter().product::<i64>(), 3072);
    /// ```
    pub fn new(dtype: DType, sizes: &[i64]) -> InputSpec {
        InputSpec {
            dtype,
            sizes: sizes.to_vec(),
        }
    }
}

#[cfg(feature = "codegen")]
impl CompileOptions {
    /// Returns the options with `code_library` in place of [`CodeLibrary::embedded`].
    ///
    /// See [`CodeLibrary`] for an example.
    #[must_use]
    pub fn code_library(mut self, code_library: Option<CodeLibrary>) -> Self {
        self.code_library = code_library;
        self
    }
}

#[cfg(feature = "codegen")]
impl EngineOptions {
    /// Returns the options with `code_library` as [`CompileOptions::code_library`].
    ///
    /// See [`CodeLibrary`] for an example.
    #[must_use]
    pub fn code_library(mut self, code_library: Option<CodeLibrary>) -> Self {
        self.compile.code_library = code_library;
        self
    }
}
