//! Options of engines and of native code.

use crate::support::setters::setters;
#[cfg(feature = "codegen")]
use frazil_ir::DType;
use std::path::PathBuf;

/// The way in which an engine runs a model.
///
/// See [`EngineOptions`] for an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum EngineKind {
    /// Native code. The model is frozen, unless it is in training mode, and each method is specialised on the shapes of its arguments and compiled.
    #[default]
    Native,
    /// The reference interpreter, which runs the unchanged model.
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
    /// Whether the engine runs native code or interprets the model.
    pub kind: EngineKind,
    /// Puts the module into evaluation mode first, as [`Model::eval`] does. Otherwise, a module in training mode is not frozen, and runs with PyTorch's
    /// training semantics (dropout, statistics of batch norms).
    pub eval: bool,
    /// Options for native code. This machine must support the instructions of the target processor. The number of threads also applies to the interpreter.
    pub compile: CompileOptions,
    /// Fails if a method cannot be compiled as a whole. Otherwise, the interpreter runs such a method, with native code for subgraphs that can be compiled.
    pub strict: bool,
    /// The methods that will be called, with dotted paths for methods of submodules (`encoder.forward`), and the submodules that will be called (`encoder`).
    /// Freezing preserves them.
    pub methods: Vec<String>,
    /// Names of attributes and methods that freezing preserves.
    pub preserve: Vec<String>,
    /// Maximum number of call signatures (shapes and values of other arguments) for which a method is compiled; further calls run in the interpreter. `None`
    /// means no limit.
    pub specialisations: Option<usize>,
}

setters!(EngineOptions {
    kind: EngineKind,
    eval: bool,
    compile: CompileOptions,
    strict: bool,
    methods: Vec<String>,
    preserve: Vec<String>,
    specialisations: Option<usize>,
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
    /// Maximum number of threads of one run.
    pub threads: usize,
    /// Prefix of the function names in a library. It must be a C identifier.
    pub name: String,
    /// A directory that stores native code across processes. It may be shared, and files in it may be deleted.
    pub cache_dir: Option<PathBuf>,
    /// Whether operators are fused into one kernel if that saves passes over memory.
    pub fuse: bool,
    /// A file of tuning results: the fastest kernel variants, measured on this processor. Missing kernels are measured, in about a second each, and added.
    /// Without a file, variants are selected by an estimate.
    pub tune: Option<PathBuf>,
}

setters!(CompileOptions {
    target_cpu: String,
    threads: usize,
    name: String,
    cache_dir: Option<PathBuf>,
    fuse: bool,
    tune: Option<PathBuf>,
});

impl Default for CompileOptions {
    fn default() -> CompileOptions {
        CompileOptions {
            target_cpu: "host".to_owned(),
            threads: 1,
            name: "model".to_owned(),
            cache_dir: None,
            fuse: true,
            tune: None,
        }
    }
}

/// Dtype and sizes of an input tensor.
///
/// See [`Model::compile`] for an example.
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
    /// Returns the specification of a dense tensor.
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
