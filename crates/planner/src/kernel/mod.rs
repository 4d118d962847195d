//! Kernels as data, which the code generator compiles to machine code.
//!
//! Each family is a file or a folder with a type that implements [`Kernel`], the interface for the rest of the planner, for listings and for profiles. A
//! [`KernelSpec`] is a kernel of any family. The emitters are in the code generator.
//!
//! A kernel runs as one or more *phases* with a barrier after each. A phase is a range of independent *tasks*, numbered from 0; any
//! split of that range over threads gives bit-equal results. All sizes and strides are in elements unless said otherwise.

mod axis;
mod blocked;
mod code;
mod conv;
mod cost;
mod depthwise;
pub(crate) mod describe;
mod epilogue;
mod gemm;
mod host;
mod loops;
pub(crate) mod pack;
mod partition;
mod pool;
mod reorder;
mod sizes;
mod spec;

pub use axis::{Axis, RowBorder, RowEnd, RowTiling, Tiles};
pub use blocked::BlockedShape;
pub use code::{CodeIdentity, KernelCode};
pub use conv::{
    ActivationLayout, Conv, ConvTile, Grouping, StridedOutput, Winograd, WinogradWeights, channels_of_group,
    winograd_tiles,
};
pub use depthwise::Depthwise;
pub use epilogue::Epilogue;
pub use frazil_tensor_ir::pattern::{ConvShape, EpilogueOperand};
pub use gemm::{AnyRows, Gemm, GemmB, GemmBatch, GemmTile, RowTiles};
pub use host::RuntimeCallKernel;
pub use loops::{Guard, Indirect, Kept, Local, Loops, Place, Read, Stage, Write};
pub use pool::{Pool, PoolKind};
pub use reorder::{CopyChannels, Reorder, ReorderDirection};
pub use spec::{Kernel, KernelSpec, Numbers, Trial, Variants, buffer_count};
