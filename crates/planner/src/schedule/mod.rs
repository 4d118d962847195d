//! Kernels in order, on buffers without addresses. The memory planner converts a schedule to a [`Plan`](crate::plan::Plan).

pub(crate) mod slices;
pub(crate) mod spread;
mod text;

pub use text::text;

use crate::kernel::KernelSpec;
use crate::packed::PackedKey;
use crate::plan::{Buffer, Constants};
use frazil_tensor_ir::call::RuntimeCall;
use frazil_tensor_ir::graph::Origin;
use std::sync::Arc;

/// Index of a buffer of a [`Schedule`].
pub type BufferId = u32;

/// The memory that a buffer is placed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// The caller's input with this index.
    Input(u32),
    /// The caller's output with this index.
    Output(u32),
    /// The constants, starting at this byte offset.
    Constant(u64),
    /// The results of the preparation, starting at this byte offset.
    Prepared(u64),
    /// Constants that earlier plans have packed.
    Shared {
        /// Index into [`Schedule::shared`].
        index: u32,
        /// First byte.
        offset: u64,
    },
    /// The workspace.
    Workspace {
        /// Size in bytes.
        bytes: usize,
    },
}

/// A part of a buffer, starting at a byte offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slice {
    /// The buffer of which this is a part.
    pub buffer: BufferId,
    /// Byte offset of the part in the buffer.
    pub offset: u64,
}

impl Slice {
    /// Returns the slice that starts `bytes` bytes later.
    pub fn at(self, bytes: u64) -> Slice {
        Slice {
            offset: self.offset + bytes,
            ..self
        }
    }
}

/// One kernel call.
#[derive(Clone, Debug)]
pub struct Step {
    /// The kernel.
    pub spec: KernelSpec,
    /// Its buffers, in the order that the spec documents.
    pub buffers: Vec<Slice>,
    /// Index of the buffer for the result. The others are read, or are scratch memory.
    pub output: usize,
    /// The operators that the call computes.
    pub origins: Vec<Origin>,
}

/// Calls that run once, when the code is loaded; see [`Preparation`](crate::plan::Preparation).
#[derive(Debug, Default)]
pub struct Prepare {
    /// Bytes that are written.
    pub bytes: usize,
    /// The constants that the calls read.
    pub sources: Constants,
    /// Kernels, each with its buffers.
    pub calls: Vec<(KernelSpec, [Buffer; 2])>,
}

/// Kernel calls in order, and their buffers.
#[derive(Debug, Default)]
pub struct Schedule {
    /// The memory of each buffer.
    pub buffers: Vec<Home>,
    /// The kernel calls, in order.
    pub steps: Vec<Step>,
    /// Packed weights and other constants.
    pub constants: Constants,
    /// Constants that earlier plans have packed.
    pub shared: Vec<Constants>,
    /// The places of constants that this schedule packs.
    pub packed: Vec<(PackedKey, Buffer)>,
    /// Constants that are transformed when the code is loaded.
    pub preparation: Prepare,
    /// The runtime calls.
    pub runtime_calls: Vec<Arc<RuntimeCall>>,
}

impl Schedule {
    /// Adds a buffer.
    pub fn buffer(&mut self, home: Home) -> Slice {
        self.buffers.push(home);
        Slice {
            buffer: (self.buffers.len() - 1) as BufferId,
            offset: 0,
        }
    }

    /// Adds a buffer of the workspace.
    pub fn workspace(&mut self, bytes: usize) -> Slice {
        self.buffer(Home::Workspace { bytes })
    }

    /// Returns the memory that the buffer of `slice` is placed in.
    pub fn home(&self, slice: Slice) -> Home {
        self.buffers[slice.buffer as usize]
    }
}
