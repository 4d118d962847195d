//! Kernel families that an embedder adds.
//!
//! A [`KernelFamily`] selects kernels of a type of the embedder's own for loop nests that it recognises. The code generator needs an emitter of the same
//! type. Frazil's own families are selected afterwards, for nests that no added family selects.

use crate::kernel::KernelSpec;
use crate::target::Target;
use frazil_ir::TensorData;
use frazil_runtime::structured::TensorId;
use frazil_tensor_ir::graph::TensorGraph;
use std::fmt::{self, Debug};
use std::sync::Arc;

/// A family of kernels that an embedder adds.
pub trait KernelFamily: Debug + Send + Sync {
    /// Selects a kernel that computes the whole loop nest `id` of `graph`; `None` if the family has none. The operands of the kernel must be dense row-major
    /// tensors or packed constants, and its result must be a dense row-major tensor.
    fn select(&self, graph: &TensorGraph, id: TensorId, target: &Target) -> Option<Selection>;
}

/// A kernel for a loop nest.
#[derive(Clone, Debug)]
pub struct Selection {
    /// The kernel. Its buffers are `operands`, the nest's result (dense, row-major), and scratch memory if it needs any.
    pub kernel: KernelSpec,
    /// The kernel's input buffers, in order. They precede the result.
    pub operands: Vec<Operand>,
}

/// A buffer that a selected kernel reads.
#[derive(Clone, Debug)]
pub enum Operand {
    /// The elements of a tensor in row-major order, from element `offset` on.
    Tensor {
        /// The tensor.
        tensor: TensorId,
        /// Index of the first element that is passed.
        offset: i64,
    },
    /// A constant in a layout of the family's own.
    Packed(Packed),
}

/// A constant in a layout of a family's own, packed when the code is loaded.
#[derive(Clone)]
pub struct Packed {
    /// The constant tensor.
    pub constant: TensorId,
    /// Name of the layout. It must identify everything that `pack` depends on besides the constant: a constant is packed once for each name.
    pub layout: String,
    /// Size in bytes.
    pub bytes: usize,
    /// Packs the constant into a zero-initialised buffer of `bytes` bytes.
    pub pack: Arc<Pack>,
}

/// A function that packs a constant into a zero-initialised buffer.
pub type Pack = dyn Fn(&TensorData, &mut [u8]) + Send + Sync;

impl Debug for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packed")
            .field("constant", &self.constant)
            .field("layout", &self.layout)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}
