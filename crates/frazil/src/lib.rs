//! Load, freeze, optimise, compile and run TorchScript models.

mod engine;
mod error;
mod model;
#[cfg(feature = "codegen")]
mod native;
mod session;
mod text;

pub use engine::{CallError, Engine, EngineKind, EngineOptions};
pub use error::{Error, Result};
pub use model::{FreezeOptions, Graphs, Loaded, Model, PassOptions};
#[cfg(feature = "codegen")]
pub use native::{CompileOptions, CompiledMethod, Emit, InputSpec, NativePlan};
pub use session::Session;

pub use frazil_ir as ir;
pub use frazil_passes as passes;
pub use frazil_runtime as runtime;
pub use frazil_runtime::{Tensor, Value};
