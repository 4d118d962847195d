//! The program of a compiled function: kernel calls on buffers. Pure data, which refers to memory only by [`Buffer`]s.

use frazil_ir::DType;
use frazil_runtime::structured::Dims;
use frazil_tensor_ir::spec::dtype_name;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// One input or output of the compiled function: dense, row-major.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Port {
    /// The name in the generated interface.
    pub name: String,
    /// Element type.
    #[serde(with = "dtype_name")]
    pub dtype: DType,
    /// Extents; empty for a scalar.
    pub shape: Dims,
}

impl Port {
    /// Returns the number of elements, saturated at `usize::MAX`.
    pub fn elements(&self) -> usize {
        let extents = self.shape.iter().map(|&d| usize::try_from(d).unwrap_or(0));
        extents.fold(1, usize::saturating_mul)
    }

    /// Returns the size in bytes, saturated at `usize::MAX`.
    pub fn bytes(&self) -> usize {
        self.elements().saturating_mul(self.dtype.size())
    }
}

/// The location of a kernel's argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Buffer {
    /// The caller's input number `index`, `offset` bytes into it. Read only.
    Input {
        /// Index into [`Contents::inputs`](crate::package::Contents::inputs).
        index: u32,
        /// Offset from the start of the input, in bytes.
        offset: u64,
    },
    /// The caller's output number `index`, `offset` bytes into it. May be read by kernels that run after its writer.
    Output {
        /// Index into [`Contents::outputs`](crate::package::Contents::outputs).
        index: u32,
        /// Offset from the start of the output, in bytes.
        offset: u64,
    },
    /// `offset` bytes into the workspace.
    Workspace {
        /// Offset from the start of the workspace, in bytes.
        offset: u64,
    },
    /// `offset` bytes into the constants. Read only.
    Constant {
        /// Offset from the start of the constants, in bytes.
        offset: u64,
    },
    /// `offset` bytes into the data that the preparation writes. Read only in a run.
    Prepared {
        /// Offset from the start of the results of the preparation, in bytes.
        offset: u64,
    },
    /// `offset` bytes into constants that other functions of the process use too. Read only.
    Shared {
        /// Index into the shared constants of the [`Package`](crate::package::Package).
        index: u32,
        /// Bytes from their start.
        offset: u64,
    },
}

impl Buffer {
    /// Returns the buffer that starts `bytes` bytes later.
    pub fn advanced(self, bytes: u64) -> Buffer {
        match self {
            Buffer::Input { index, offset } => Buffer::Input {
                index,
                offset: offset + bytes,
            },
            Buffer::Output { index, offset } => Buffer::Output {
                index,
                offset: offset + bytes,
            },
            Buffer::Workspace { offset } => Buffer::Workspace { offset: offset + bytes },
            Buffer::Constant { offset } => Buffer::Constant { offset: offset + bytes },
            Buffer::Prepared { offset } => Buffer::Prepared { offset: offset + bytes },
            Buffer::Shared { index, offset } => Buffer::Shared {
                index,
                offset: offset + bytes,
            },
        }
    }
}

/// Index of a kernel in [`Contents::kernels`](crate::package::Contents::kernels).
pub type KernelId = u32;

/// One step of the plan: kernel `kernel` on `buffers`. The kernels of a plan run one after the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The kernel that is called.
    pub kernel: KernelId,
    /// Its arguments, in the order that the kernel's spec documents.
    pub buffers: SmallVec<[Buffer; 5]>,
    /// The order in which a thread runs the tasks of the call.
    pub order: Order,
}

/// The order in which a thread runs the tasks of a call.
///
/// Weights of which each task reads a part are read in alternating (serpentine) order from run to run. If they are somewhat larger than the cache, it still
/// contains the part that the previous run read last. In the same order each time, every part would be evicted before it is read again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Whether the last task runs first.
    pub backward: bool,
    /// Whether the order is reversed in every other run.
    pub turns: bool,
}

/// Returns the number of `calls`, and of distinct kernels among them.
pub fn kernel_count(calls: &[Call]) -> (usize, usize) {
    let kernels: std::collections::BTreeSet<KernelId> = calls.iter().map(|c| c.kernel).collect();
    (calls.len(), kernels.len())
}

/// Returns the name of kernel number `i` of the function `name`, in objects and texts.
pub fn kernel_name(name: &str, i: usize) -> String {
    format!("{name}_kernel_{i}")
}

/// Returns the name of the function for phase `phase` of the kernel `name`.
pub fn phase_name(name: &str, phase: usize) -> String {
    if phase == 0 {
        name.to_owned()
    } else {
        format!("{name}_{phase}")
    }
}
