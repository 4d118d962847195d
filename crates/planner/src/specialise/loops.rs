//! Rolled loops as data: the loop, its end, and the iteration that is being specialised.

use crate::error::LowerError;
use frazil_ir::NodeId;
use frazil_runtime::Tensor;
use frazil_runtime::structured::{TensorId, TensorShape};
use frazil_runtime::value::{ListValue, TensorCell, Value};
use frazil_tensor_ir::graph::TensorGraph;
use frazil_tensor_ir::spec::ArgumentSpec;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// A loop of which one iteration was specialised.
#[derive(Debug)]
pub struct RolledLoop {
    /// One iteration.
    pub body: TensorGraph,
    /// What the inputs of the body are, in order.
    pub inputs: Vec<LoopInput>,
    /// What the loop leaves behind. The outputs of the body are [`LoopEnd::outputs`].
    pub end: Arc<LoopEnd>,
}

/// An input of the body of a rolled loop.
#[derive(Debug)]
pub enum LoopInput {
    /// A tensor that is the same in all iterations.
    Same(Source),
    /// A loop-carried tensor.
    Carried {
        /// Its value in the first iteration.
        initial: Source,
        /// The index of the output that is its value in the next iteration.
        next: usize,
    },
    /// A part of a tensor, other elements in each iteration.
    Slice {
        /// The tensor, which is row-major.
        whole: TensorId,
        /// The first element of each iteration's part. The part is as large as the input of the body.
        offsets: Vec<i64>,
    },
    /// An integer for each iteration, as a tensor of dtype `Long` without dimensions.
    Number(Arc<[i64]>),
}

/// A tensor that exists before a loop.
#[derive(Clone, Debug)]
pub enum Source {
    /// A tensor of the method's graph.
    Computed(TensorId),
    /// A tensor with known elements.
    Known(Tensor),
}

/// What a rolled loop leaves behind.
#[derive(Debug)]
pub struct LoopEnd {
    /// The loop.
    pub(super) key: LoopKey,
    /// The number of iterations.
    pub trips: i64,
    /// The tensors that each iteration computes. The caller gives the method one tensor for each.
    pub outputs: Vec<LoopOutput>,
    /// The values of the loop-carried variables.
    pub(super) carried: Vec<CarriedEnd>,
    /// The lists to which the body appends, by their number among the lists that it can reach, and the outputs that it appends.
    pub(super) appended: Vec<(usize, Vec<usize>)>,
}

/// A tensor that each iteration of a rolled loop computes.
#[derive(Debug)]
pub struct LoopOutput {
    /// dtype and sizes in one iteration.
    pub shape: TensorShape,
    /// Whether the tensors of all iterations are needed, joined along a new first dimension, and not only that of the last iteration.
    pub is_kept: bool,
}

/// The value of a loop-carried variable after the loop.
#[derive(Debug)]
pub(super) enum CarriedEnd {
    /// Its value before the loop.
    Same,
    /// An output in the last iteration.
    Output(usize),
    /// A tuple.
    Tuple(Vec<CarriedEnd>),
}

impl RolledLoop {
    /// Returns the tensors of the method's graph that the loop reads.
    pub fn needs(&self) -> impl Iterator<Item = TensorId> {
        self.inputs.iter().filter_map(|input| match input {
            LoopInput::Same(Source::Computed(id))
            | LoopInput::Carried {
                initial: Source::Computed(id),
                ..
            }
            | LoopInput::Slice { whole: id, .. } => Some(*id),
            _ => None,
        })
    }
}

/// The result of what was done at a graph break.
#[derive(Clone, Debug)]
pub enum Answer {
    /// The observed results of a call.
    Results(Vec<ArgumentSpec>),
    /// What a loop has left behind. The caller gives one tensor for each of [`LoopEnd::outputs`].
    Loop(Arc<LoopEnd>),
}

/// Identity of the iterations that stay rolled: the address of the graph, the loop's node, and the number of the first iteration.
pub(super) type LoopKey = (usize, NodeId, i64);

/// The iteration that is being specialised.
pub(super) struct Rolling {
    pub(super) key: LoopKey,
    pub(super) trips: i64,
    /// The number of tensors of the graph before the iteration. Those that the iteration appends are removed when it ends.
    pub(super) begin: usize,
    /// Storages that exist before the iteration, or that stand for parts of such.
    pub(super) storages: FxHashSet<usize>,
    pub(super) lists: Vec<Tracked>,
    /// The values of the loop-carried variables before the loop.
    pub(super) before: Vec<Value>,
    pub(super) carried: Vec<Carried>,
    /// The inputs in place of what differs between iterations.
    pub(super) inputs: FxHashMap<TensorId, Differing>,
    /// The values of integers in each iteration, by the address of their variable, which is kept alive.
    pub(super) numbers: FxHashMap<usize, (TensorCell, Arc<[i64]>)>,
    pub(super) checks: usize,
    pub(super) warnings: usize,
}

/// A loop that the specialisation has passed: one segment ends at it, and the next one begins after it.
pub(super) struct Passed {
    pub(super) rolled: RolledLoop,
    /// The number of tensors before the loop.
    pub(super) settled: usize,
    /// The number of checks before the segment that ends at the loop.
    pub(super) first_check: usize,
}

/// A list that exists before the iteration.
pub(super) struct Tracked {
    pub(super) list: ListValue,
    pub(super) before: Vec<Value>,
    pub(super) is_read: bool,
}

/// A loop-carried value.
pub(super) enum Carried {
    /// The variable in the iteration, its tensor in the graph, and the initial value.
    Tensor(TensorCell, TensorId, Source),
    Tuple(Vec<Carried>),
    /// A value that must not change.
    Same(Value),
}

/// What an input in place of something that differs between iterations is, as [`LoopInput`].
pub(super) enum Differing {
    Carried,
    Slice(TensorId, Vec<i64>),
    Number(Arc<[i64]>),
}

/// Returns the error that ends the specialisation of an iteration; the loop is unrolled instead.
pub(super) fn not_rolled() -> LowerError {
    LowerError::Waits {
        operator: "a loop whose iterations differ".to_owned(),
    }
}
