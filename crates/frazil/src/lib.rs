//! Load, freeze, optimise, compile and run TorchScript models.
//!
//! ```
//! # #[cfg(feature = "codegen")]
//! use frazil::{CompileOptions, FreezeOptions, InputSpec, Session, Tensor, ir::DType};
//!
//! # #[cfg(feature = "codegen")]
//! # fn main() -> Result<(), frazil::Error> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/models/residual_cnn/model.pt");
//! let session = Session::new();
//! let model = session.load(path)?; // an archive that torch.jit.save wrote
//! let frozen = model.freeze(&FreezeOptions::default())?; // as torch.jit.freeze
//! let input = InputSpec::new(DType::Float, &[1, 3, 32, 32]);
//! let mut forward = frozen.compile(&[input], &CompileOptions::default())?; // to machine code, in memory
//! let output = forward.run(&[Tensor::zeros(DType::Float, &[1, 3, 32, 32])?])?;
//! assert_eq!(output.as_tensor().map(|t| t.sizes().to_vec()), Some(vec![1, 10]));
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "codegen"))]
//! # fn main() {}
//! ```
//!
//! - A [`Session`] contains the context, the operators of the dialects, and the passes. Nothing is global.
//! - A [`Model`] is a module: freeze it, run passes on it, save it as an archive or as text, compile it, or make an engine of it.
//! - An [`Engine`] calls methods with values of any type. A native engine compiles each method for the shapes of its arguments, and the reference
//!   interpreter runs what cannot be compiled. An interpreting engine runs the module as it is.
//! - [`eager`] has tensors with every operator as a method. [`trace`] records operations on them as graphs and modules.
//! - Without the feature `codegen`, LLVM is not needed, and everything but native code works.

pub mod eager;
mod engine;
mod error;
mod model;
mod script_module;
mod session;
mod source_trace;
mod support;
pub mod trace;

pub use engine::Engine;
#[cfg(feature = "codegen")]
pub use engine::code_library::CodeLibrary;
#[cfg(feature = "codegen")]
pub use engine::code_library_builder::CodeLibraryBuilder;
pub use engine::hooks::{CallArguments, Hook, HookId, HookOptions, PreHook};
pub use engine::kernel_counts::KernelCounts;
#[cfg(feature = "codegen")]
pub use engine::native::compiled::{CompiledMethod, Emit, NativePlan};
#[cfg(feature = "codegen")]
pub use engine::native::ranges::{RangeLibrary, RangedInput};
#[cfg(feature = "codegen")]
pub use engine::native::tensor_function::{TensorFunction, TensorStage};
#[cfg(feature = "codegen")]
pub use engine::options::InputSpec;
pub use engine::options::{CompileOptions, EngineKind, EngineOptions, FusionStrategy};
pub use error::{CallError, Error, ErrorClass, Result};
#[cfg(feature = "codegen")]
pub use frazil_codegen::aot::range::{InputSize, SizeRange};
#[cfg(feature = "codegen")]
pub use frazil_executor::run::profile::{Profile, Row as ProfileRow};
#[cfg(feature = "codegen")]
pub use frazil_planner::plan::Port;
pub use model::aliases::Aliases;
pub use model::loaded::{Graphs, Loaded};
pub use model::{FreezeOptions, Model, PassOptions, pipeline_of_reproducer};
pub use script_module::{
    Checkpoint, ConstMap, Conversion, IncompatibleKeys, LoadStateDictOptions, LoadingState, MemberOptions,
    MemoryFormat, ScriptModule, ScriptModuleMut, StateDict, StateDictOptions, StateHookId, TensorInfo, ToEmpty,
    parse_device, read_checkpoint, read_safetensors, tensor_type, write_checkpoint, write_safetensors,
};
pub use session::Session;
pub use session::builder::SessionBuilder;
pub use support::limited::interruptible;

pub use frazil_ir as ir;
pub use frazil_limits::{Exceeded, Limits, LimitsError};
pub use frazil_passes as passes;
pub use frazil_runtime as runtime;
pub use frazil_runtime::{Tensor, Value};
pub use frazil_syntax::{GraphText, from_safetensors, print_dot, print_graph, to_safetensors, write_atomically};
pub use frazil_torchscript::SaveOptions;
