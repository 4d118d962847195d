//! The general family of kernels: fused loop nests over strided buffers.

mod kernel;

use frazil_ir::DType;
use frazil_runtime::expr::{Expr, Number};
use frazil_runtime::structured::{Affine, Combine, Dims};
use smallvec::SmallVec;

/// Memory that a stage reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The kernel's buffer with this index in [`Loops::arguments`].
    Argument(u32),
    /// The task's scratch memory with this index in [`Loops::locals`].
    Local(u32),
}

/// Scratch memory of one task for a row of intermediate results, which stays in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Local<N: Copy = i64> {
    /// Element type.
    pub dtype: DType,
    /// Number of elements. All scratch memory of a kernel takes at most 64 KiB.
    pub elements: N,
}

/// A condition for reading an element: `0 <= index < extent`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Guard<N: Copy = i64> {
    /// A coordinate, as an affine function of the loop indices.
    pub index: Affine<N>,
    /// Upper bound of the coordinate (exclusive).
    pub extent: N,
}

/// Addressing by the value of another operand, as in `embedding` and `index_select`. The value adds `stride · value` elements to the offset. A negative value
/// counts from the end, and then the value is clamped to the extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Indirect<N: Copy = i64> {
    /// Index of the operand that provides the value: an earlier entry of the same input list, with an integer dtype.
    pub input: u32,
    /// Distance between the elements for neighbouring values, in elements.
    pub stride: N,
    /// Number of valid values.
    pub extent: N,
}

/// A read of one element.
#[derive(Clone, Debug, PartialEq)]
pub struct Read<N: Copy = i64> {
    /// The memory that is read.
    pub place: Place,
    /// Offset of the element in the memory, in elements, as an affine function of the loop indices: outer, inner and reduction loops, in this order.
    pub index: Affine<N>,
    /// Conditions of the read. If one of them does not hold, nothing is read, and the value is `fill`.
    pub guards: Vec<Guard<N>>,
    /// The value if a guard does not hold.
    pub fill: Number,
    /// Addressing by values of other operands; empty for affine reads.
    pub indirect: Vec<Indirect<N>>,
}

impl Read {
    /// Returns an unconditional read.
    pub fn new(place: Place, index: Affine) -> Read {
        Read {
            place,
            index,
            guards: Vec::new(),
            fill: Number::Int(0),
            indirect: Vec::new(),
        }
    }
}

/// A write of one element.
#[derive(Clone, Debug, PartialEq)]
pub struct Write<N: Copy = i64> {
    /// The memory that is written. An argument that is written must not be read through another argument, except as [`Loops::may_update_in_place`] allows.
    pub place: Place,
    /// Offset of the element in the memory, in elements, as an affine function of the loop indices. The coefficients of reduction loops are 0, except in
    /// [`Kept`].
    pub index: Affine<N>,
}

/// Values that a reduction stores for each point of its loops, because later stages read them, too.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept<N: Copy = i64> {
    /// The value, as an expression of the stage's inputs. The value is the only input of the stage's own body.
    pub body: Expr,
    /// The write of the value, at an index that depends on all loops of the stage. The value has the stage's `accumulate` dtype.
    pub output: Write<N>,
}

/// One loop nest:
///
/// ```text
/// for each index of inner:
///     acc = identity of combine
///     for each index of reduction:
///         acc = combine(acc, body(inputs))
///     output = finish(acc, finish_inputs)
/// ```
///
/// Without `combine`, there are no reduction loops, and `acc = body(inputs)`. With `kept`, the reduction stores `value = kept.body(inputs)` and computes `acc =
/// combine(acc, body(value))`.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage<N: Copy = i64> {
    /// Parallel loops inside the kernel's outer loops. The last one should be contiguous in memory.
    pub inner: SmallVec<[N; 4]>,
    /// Reduction loops.
    pub reduction: SmallVec<[N; 4]>,
    /// The operands of `body`, or of `kept.body` if there is one: input `i` of the expression is `inputs[i]`.
    pub inputs: Vec<Read<N>>,
    /// Values that the reduction stores in addition to its result; none without `combine`.
    pub kept: Option<Kept<N>>,
    /// The scalar body.
    pub body: Expr,
    /// The operation that combines values along the reduction loops.
    pub combine: Option<Combine>,
    /// Element type of the accumulator.
    pub accumulate: DType,
    /// The expression that is applied to the accumulator. Input 0 is the accumulator, inputs from 1 on are `finish_inputs`. If `None`, the accumulator is only
    /// converted to the dtype of the output.
    pub finish: Option<Expr>,
    /// Further operands of `finish`; their coefficients of reduction loops are 0.
    pub finish_inputs: Vec<Read<N>>,
    /// Values of [`ExprOp::Index`](frazil_runtime::expr::ExprOp::Index) in the body and in `finish`: `Index(n)` is entry `n`, as an affine function of the loop
    /// indices.
    pub indices: Vec<Affine<N>>,
    /// The write of the result.
    pub output: Write<N>,
}

impl Stage {
    /// Returns a stage without reduction loops that stores the value of `body`.
    pub fn pointwise(inner: Dims, inputs: Vec<Read>, body: Expr, output: Write) -> Stage {
        Stage {
            inner,
            reduction: Dims::new(),
            inputs,
            kept: None,
            accumulate: body.dtype().unwrap_or(DType::Float),
            body,
            combine: None,
            finish: None,
            finish_inputs: Vec::new(),
            indices: Vec::new(),
            output,
        }
    }
}

impl Stage {
    /// Returns true if the last inner loop is long enough for vectors of `lanes` lanes. In a stage with a reduction, the last inner loop is only vectorised if
    /// it is long enough; otherwise the last reduction loop is vectorised. The choice affects the order in which the terms of a sum are added.
    pub fn has_long_rows(&self, lanes: i64) -> bool {
        self.inner.last().is_some_and(|&extent| extent >= (lanes / 2).max(2))
    }
}

impl<N: Copy> Stage<N> {
    /// Returns the writes of the stage: the kept values if there are any, and the result.
    pub fn writes(&self) -> impl Iterator<Item = &Write<N>> {
        self.kept.iter().map(|k| &k.output).chain([&self.output])
    }

    /// Returns all expressions of the stage.
    pub fn expressions(&self) -> impl Iterator<Item = &Expr> {
        let kept = self.kept.iter().map(|k| &k.body);
        kept.chain([&self.body]).chain(&self.finish)
    }
}

impl<N: Copy> Read<N> {
    /// Returns the read with `f` applied to each of its integers.
    fn map<M: Copy>(&self, f: &mut impl FnMut(&N) -> M) -> Read<M> {
        Read {
            place: self.place,
            index: self.index.map(f),
            guards: self
                .guards
                .iter()
                .map(|g| Guard {
                    index: g.index.map(f),
                    extent: f(&g.extent),
                })
                .collect(),
            fill: self.fill,
            indirect: self
                .indirect
                .iter()
                .map(|x| Indirect {
                    input: x.input,
                    stride: f(&x.stride),
                    extent: f(&x.extent),
                })
                .collect(),
        }
    }
}

impl<N: Copy> Write<N> {
    /// Returns the write with `f` applied to each of its integers.
    fn map<M: Copy>(&self, f: &mut impl FnMut(&N) -> M) -> Write<M> {
        Write {
            place: self.place,
            index: self.index.map(f),
        }
    }
}

impl<N: Copy> Stage<N> {
    /// Returns the stage with `f` applied to each of its integers.
    fn map<M: Copy>(&self, f: &mut impl FnMut(&N) -> M) -> Stage<M> {
        Stage {
            inner: self.inner.iter().map(&mut *f).collect(),
            reduction: self.reduction.iter().map(&mut *f).collect(),
            inputs: self.inputs.iter().map(|r| r.map(f)).collect(),
            kept: self.kept.as_ref().map(|k| Kept {
                body: k.body.clone(),
                output: k.output.map(f),
            }),
            body: self.body.clone(),
            combine: self.combine,
            accumulate: self.accumulate,
            finish: self.finish.clone(),
            finish_inputs: self.finish_inputs.iter().map(|r| r.map(f)).collect(),
            indices: self.indices.iter().map(|a| a.map(f)).collect(),
            output: self.output.map(f),
        }
    }
}

/// Loop nests that share their outermost loops:
///
/// ```text
/// parallel for each index of outer:      // the tasks
///     for each stage: run it
/// ```
///
/// Every dtype of `Expr` except complex and quantised ones is supported. In each stage, the last inner loop or the last reduction loop is vectorised, if all
/// accesses along it are contiguous or uniform; see [`Stage::has_long_rows`]. Otherwise, all loops of the stage are scalar.
#[derive(Clone, Debug, PartialEq)]
pub struct Loops<N: Copy = i64> {
    /// The loops over tasks; empty for a single task.
    pub outer: SmallVec<[N; 4]>,
    /// Element type of each buffer.
    pub arguments: Vec<DType>,
    /// Scratch memory of a task.
    pub locals: Vec<Local<N>>,
    /// The stages of a task, in the order of execution.
    pub stages: Vec<Stage<N>>,
    /// Number of f32 lanes of a vector.
    pub lanes: i64,
}

impl<N: Copy> Loops<N> {
    /// Returns the number of loops for which an [`Affine`] of `stage` has coefficients.
    pub fn rank(&self, stage: &Stage<N>) -> usize {
        self.outer.len() + stage.inner.len() + stage.reduction.len()
    }

    /// Returns the loop nests with `f` applied to each of their integers. The order is the same for all loop nests.
    pub fn map<M: Copy>(&self, f: &mut impl FnMut(&N) -> M) -> Loops<M> {
        Loops {
            outer: self.outer.iter().map(&mut *f).collect(),
            arguments: self.arguments.clone(),
            locals: self
                .locals
                .iter()
                .map(|l| Local {
                    dtype: l.dtype,
                    elements: f(&l.elements),
                })
                .collect(),
            stages: self.stages.iter().map(|s| s.map(f)).collect(),
            lanes: self.lanes,
        }
    }
}

impl Loops {
    /// Returns the number of independent tasks.
    pub fn tasks(&self) -> i64 {
        self.outer.iter().product()
    }

    /// Returns true if argument `operand` and the output may be one buffer. The kernel must have a single pointwise stage that only reads `operand`, exactly at
    /// the index that it writes, and the elements of both must have the same size.
    pub fn may_update_in_place(&self, operand: usize) -> bool {
        let [stage] = self.stages.as_slice() else { return false };
        let place = Place::Argument(operand as u32);
        let Place::Argument(out) = stage.output.place else {
            return false;
        };
        let size = |i: usize| self.arguments.get(i).map(|d| d.size());
        stage.combine.is_none()
            && stage.output.place != place
            && size(operand) == size(out as usize)
            && stage.inputs.iter().chain(&stage.finish_inputs).all(|r| {
                r.place != place || (r.index == stage.output.index && r.guards.is_empty() && r.indirect.is_empty())
            })
    }
}
