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
    /// Selects a kernel for the loop nest `id` of `graph`, if the family has one: nests whose only operands are dense row-major tensors and packed
    /// constants, and whose result is one too. The kernel computes the whole nest.
    fn select(&self, graph: &TensorGraph, id: TensorId, target: &Target) -> Option<Selection>;
}

/// A kernel for a loop nest.
#[derive(Clone, Debug)]
pub struct Selection {
    /// The kernel. Its last buffer is the nest's result, dense in row-major order; scratch memory follows.
    pub kernel: KernelSpec,
    /// The other buffers, in order.
    pub operands: Vec<Operand>,
}

/// A buffer that a selected kernel reads.
#[derive(Clone, Debug)]
pub enum Operand {
    /// The elements of a tensor in row-major order, from element `offset` on.
    Tensor {
        /// The tensor.
        tensor: TensorId,
        /// The first element that is passed.
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
    /// Name of the layout, with everything that `pack` depends on besides the constant. Equal layouts of a constant are stored once.
    pub layout: String,
    /// Size in bytes.
    pub bytes: usize,
    /// Writes the packed constant over zeros.
    pub pack: Arc<Pack>,
}

/// Writes a constant, packed, over zeros.
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
