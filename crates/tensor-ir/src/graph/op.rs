//! Operations of the tensor IR: how a tensor is computed.

use crate::call::RuntimeCall;
use frazil_ir::TensorData;
use frazil_runtime::gather::Gather;
use frazil_runtime::structured::{Access, Structured, TensorId, TensorShape, ViewMap};
use serde::{Deserialize, Serialize};
use smallvec::{SmallVec, smallvec};
use std::fmt;
use std::sync::Arc;

/// An operation, which computes one tensor.
#[derive(Clone, Debug)]
pub enum TensorOp {
    /// The graph's input with this index, dense and row-major.
    Input(u32),
    /// A tensor that is known at compile time.
    Constant(Arc<TensorData>),
    /// A loop nest. Its accesses name tensors of the graph. After fusion, the parallel loops of a reduction may split dimensions of its
    /// result: the elements that they compute, in row-major order, are the result's.
    Nest(Box<Structured>),
    /// A view of another tensor.
    View(ViewMap),
    /// Elements of a tensor at positions that other tensors contain.
    Gather(Box<Gather>),
    /// All results of an operator without a program, as bytes.
    Call(Arc<RuntimeCall>),
    /// One result of a call.
    CallResult {
        /// The call.
        call: TensorId,
        /// The index of the result. After the last result comes a bool that is always false.
        result: u32,
    },
}

/// The TorchScript operator that a tensor was computed by, for listings and messages only. Clones share the texts.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Origin {
    /// The operator's name.
    pub operator: Arc<str>,
    /// `file:line:column`, if known.
    pub source: Option<Arc<str>>,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Some(source) => write!(f, "{} ({source})", self.operator),
            None => f.write_str(&self.operator),
        }
    }
}

/// One tensor of a graph.
#[derive(Clone, Debug)]
pub struct TensorNode {
    /// dtype and sizes.
    pub shape: TensorShape,
    /// The operation that computes the tensor.
    pub op: TensorOp,
    /// The operators that the tensor was computed by, in order.
    pub origins: Vec<Origin>,
}

impl TensorOp {
    /// Returns the tensors that are read, each once, in the order of their numbers.
    pub fn operands(&self) -> SmallVec<[TensorId; 4]> {
        let mut operands: SmallVec<[TensorId; 4]> = match self {
            TensorOp::Input(_) | TensorOp::Constant(_) => smallvec![],
            TensorOp::Nest(nest) => accesses(nest).map(|access| access.tensor).collect(),
            TensorOp::View(view) => smallvec![view.tensor],
            TensorOp::Gather(gather) => gather.operands().collect(),
            TensorOp::Call(call) => call.inputs.iter().copied().collect(),
            TensorOp::CallResult { call, .. } => smallvec![*call],
        };
        operands.sort_unstable();
        operands.dedup();
        operands
    }

    /// Calls `change` with each operand, to rename it.
    pub(crate) fn each_operand(&mut self, change: &mut impl FnMut(&mut TensorId)) {
        match self {
            TensorOp::Input(_) | TensorOp::Constant(_) => {}
            TensorOp::Nest(nest) => {
                let accesses = nest.inputs.iter_mut().chain(&mut nest.finish_inputs);
                accesses.for_each(|access| change(&mut access.tensor));
            }
            TensorOp::View(view) => change(&mut view.tensor),
            TensorOp::Gather(gather) => gather.operands_mut().for_each(change),
            // A call is shared until it changes.
            TensorOp::Call(call) => Arc::make_mut(call).inputs.iter_mut().for_each(change),
            TensorOp::CallResult { call, .. } => change(call),
        }
    }
}

/// Returns all accesses of a loop nest: those of its body, then those of its epilogue.
pub fn accesses(nest: &Structured) -> impl Iterator<Item = &Access> {
    nest.inputs.iter().chain(&nest.finish_inputs)
}
