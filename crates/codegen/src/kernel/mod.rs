//! Kernels as data: what the back half can turn into machine code.
//!
//! A [`KernelSpec`] says everything that its code depends on: sizes, strides, tiles, fused epilogue. Two equal specs have equal
//! code, and are compiled once. Each family has its own file with its spec, its task count, and the function that packs
//! its weights; the emitters are in `emit`.
//!
//! A kernel runs as one or more *phases* with a barrier after each. A phase is a range of independent *tasks*, numbered from 0; any
//! split of that range over threads gives bit-equal results. All sizes and strides are in elements unless said otherwise.

mod blocked;
mod conv;
mod depthwise;
mod epilogue;
mod gemm;
mod groups;
mod loops;
mod pack;
mod pool;
mod reorder;
mod winograd;

pub use blocked::BlockedShape;
pub use conv::{ActivationLayout, Conv, ConvTile, Lattice};
pub use depthwise::Depthwise;
pub use epilogue::Epilogue;
pub use frazil_tensor_ir::pattern::{ConvShape, EpilogueOperand};
pub use gemm::{Gemm, GemmB, GemmBatch, GemmTile};
#[cfg(feature = "llvm")]
pub(crate) use groups::{Grouping, channels_of_group};
pub use loops::{Guard, Indirect, Kept, Local, Loops, Place, Read, Stage, Write};
pub use pool::{Pool, PoolKind};
pub use reorder::{CopyChannels, Reorder, ReorderDirection};
#[cfg(feature = "llvm")]
pub(crate) use winograd::tiles as winograd_tiles;
pub use winograd::{Winograd, WinogradWeights};

use smallvec::{SmallVec, smallvec};

/// One kernel.
#[derive(Clone, Debug, PartialEq)]
pub enum KernelSpec {
    /// Matrix product. Buffers: A, B, epilogue operands, C.
    Gemm(Gemm),
    /// Convolution into blocked layout. Buffers: input, packed weights, epilogue operands, output.
    Conv(Conv),
    /// Weights for Winograd's form of a convolution. Buffers: plain weights, transformed weights.
    WinogradWeights(WinogradWeights),
    /// Depthwise convolution in blocked layout. Buffers: input, packed weights, epilogue operands, output.
    Depthwise(Depthwise),
    /// Pooling in blocked layout. Buffers: input, epilogue operands, output.
    Pool(Pool),
    /// Plain to blocked layout or back. Buffers: input, output.
    Reorder(Reorder),
    /// One part of a concatenation or split of channels. Buffers: input, output.
    CopyChannels(CopyChannels),
    /// Loop nests. Buffers: [`Loops::arguments`] in order.
    Loops(Loops),
    /// A kernel of the host program, which has no code here. Buffers: its inputs, its results.
    Host(HostKernel),
}

/// A call of the host program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostKernel {
    /// Number in [`Plan::hosts`](crate::plan::Plan::hosts).
    pub number: u32,
    /// Number of its inputs.
    pub inputs: u32,
}

impl KernelSpec {
    /// f32 lanes of the target's vectors; 1 for a kernel of the host program.
    pub fn lanes(&self) -> i64 {
        match self {
            KernelSpec::Gemm(k) => k.lanes,
            KernelSpec::Conv(k) => k.block,
            KernelSpec::WinogradWeights(k) => k.block,
            KernelSpec::Depthwise(k) => k.block,
            KernelSpec::Pool(k) => k.input.block,
            KernelSpec::Reorder(k) => k.blocked.block,
            KernelSpec::CopyChannels(k) => k.input.block,
            KernelSpec::Loops(k) => k.lanes,
            KernelSpec::Host(_) => 1,
        }
    }

    /// Number of independent tasks of each phase; no phase for a kernel of the host program.
    pub fn phases(&self) -> SmallVec<[i64; 2]> {
        let tasks = match self {
            KernelSpec::Gemm(k) => k.tasks(),
            KernelSpec::Conv(k) => k.tasks(),
            KernelSpec::WinogradWeights(k) => k.tasks(),
            KernelSpec::Depthwise(k) => k.tasks(),
            KernelSpec::Pool(k) => k.tasks(),
            KernelSpec::Reorder(k) => k.tasks(),
            KernelSpec::CopyChannels(k) => k.tasks(),
            KernelSpec::Loops(k) => k.tasks(),
            KernelSpec::Host(_) => return SmallVec::new(),
        };
        smallvec![tasks]
    }

    /// The buffer of weights of which each task reads a part of its own, if that is most of what the kernel reads.
    pub fn streamed_weights(&self) -> Option<usize> {
        match self {
            KernelSpec::Gemm(k) if k.streams_weights() => Some(1),
            _ => None,
        }
    }

    /// Bytes of workspace that the kernel needs while it runs, besides its documented buffers. When this is not 0, a
    /// [`Buffer::Workspace`](crate::plan::Buffer::Workspace) of this size is passed as one more, last, buffer; its contents
    /// neither matter before the call nor mean anything after it.
    pub fn scratch_bytes(&self) -> usize {
        0
    }

    /// Number of buffers that a call passes, scratch included.
    pub fn buffer_count(&self) -> usize {
        let operands = self.epilogue().map_or(0, |e| e.operands.len());
        let own = match self {
            KernelSpec::Gemm(_) | KernelSpec::Conv(_) | KernelSpec::Depthwise(_) => 3,
            KernelSpec::Pool(_)
            | KernelSpec::Reorder(_)
            | KernelSpec::CopyChannels(_)
            | KernelSpec::WinogradWeights(_) => 2,
            KernelSpec::Loops(k) => k.arguments.len(),
            KernelSpec::Host(k) => k.inputs as usize + 1,
        };
        own + operands + usize::from(self.scratch_bytes() > 0)
    }

    /// The fused epilogue, for the kernels that have one.
    pub fn epilogue(&self) -> Option<&Epilogue> {
        match self {
            KernelSpec::Gemm(k) => Some(&k.epilogue),
            KernelSpec::Conv(k) => Some(&k.epilogue),
            KernelSpec::Depthwise(k) => Some(&k.epilogue),
            KernelSpec::Pool(k) => Some(&k.epilogue),
            KernelSpec::WinogradWeights(_)
            | KernelSpec::Reorder(_)
            | KernelSpec::CopyChannels(_)
            | KernelSpec::Loops(_)
            | KernelSpec::Host(_) => None,
        }
    }

    /// True when buffer `operand` may be the very buffer that the kernel writes (same place, same strides): each
    /// element of it is read, by the task that overwrites it, before it is overwritten and never after.
    /// All other buffers must not overlap the output.
    pub fn may_alias_output(&self, operand: usize) -> bool {
        let first = match self {
            KernelSpec::Gemm(_) | KernelSpec::Host(_) => return false,
            KernelSpec::Conv(_) | KernelSpec::Depthwise(_) => 2,
            KernelSpec::Pool(_) => 1,
            KernelSpec::WinogradWeights(_) | KernelSpec::Reorder(_) | KernelSpec::CopyChannels(_) => return false,
            KernelSpec::Loops(k) => return k.may_update_in_place(operand),
        };
        let operands = self.epilogue().map_or(&[][..], |e| &e.operands);
        operand >= first && operands.get(operand - first) == Some(&EpilogueOperand::Elementwise)
    }
}
