//! The general kernel: fused loop nests with resolved strides.

mod kernel;

use frazil_ir::DType;
use frazil_runtime::expr::{Expr, Number};
use frazil_runtime::structured::{Affine, Combine, Dims};
use smallvec::SmallVec;

/// Where a stage reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// A buffer of the kernel: index into [`Loops::arguments`].
    Argument(u32),
    /// A task's own scratch memory: index into [`Loops::locals`].
    Local(u32),
}

/// Scratch memory of one task, kept in cache: a row of intermediate results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Local<N = i64> {
    /// Element type.
    pub dtype: DType,
    /// Number of elements; together at most 64 KiB a kernel.
    pub elements: N,
}

/// A condition under which an element is read: `0 <= index < extent`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Guard<N = i64> {
    /// A coordinate as a function of the loops.
    pub index: Affine<N>,
    /// Its bound.
    pub extent: N,
}

/// Addressing through another operand's value, as in `embedding` and `index_select`: the element read lies
/// `stride · value` further on. Values count from the end when negative, and are clamped to the extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Indirect<N = i64> {
    /// Which earlier entry of the same input list gives the value (an integer dtype).
    pub input: u32,
    /// Elements that one step of the value advances by.
    pub stride: N,
    /// Number of valid values.
    pub extent: N,
}

/// A read of one element.
#[derive(Clone, Debug, PartialEq)]
pub struct Read<N = i64> {
    /// From where.
    pub place: Place,
    /// The element's offset from the place's start, as a function of the loops: outer, inner, reduction loops in this order.
    pub index: Affine<N>,
    /// Outside of any of these the value is `fill`, and nothing is read.
    pub guards: Vec<Guard<N>>,
    /// See [`Read::guards`].
    pub fill: Number,
    /// Addressing through values; empty for affine reads.
    pub indirect: Vec<Indirect<N>>,
}

impl Read {
    /// An unconditional read.
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
pub struct Write<N = i64> {
    /// To where; an argument that is written is not read through another argument, except as
    /// [`Loops::may_update_in_place`] allows.
    pub place: Place,
    /// The element's offset, as a function of the outer and inner loops (coefficients of reduction loops are 0).
    pub index: Affine<N>,
}

/// What a reduction stores of each point that it goes over, because later stages read it as well.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept<N = i64> {
    /// What is computed of the stage's inputs and stored. The stage's own body has one input, which is this.
    pub body: Expr,
    /// To where, as a function of all of the stage's loops; elements are of the stage's `accumulate` dtype.
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
/// Without `combine` there are no reduction loops and `acc = body(inputs)`. With `kept` it is `kept = its body(inputs)` and
/// `acc = combine(acc, body(kept))`.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage<N = i64> {
    /// Parallel loops below the kernel's outer ones; the last should be the contiguous one.
    pub inner: SmallVec<[N; 4]>,
    /// Reduction loops.
    pub reduction: SmallVec<[N; 4]>,
    /// What `body` reads: its input `i` is `inputs[i]`.
    pub inputs: Vec<Read<N>>,
    /// What else the reduction stores; none without `combine`.
    pub kept: Option<Kept<N>>,
    /// The scalar body.
    pub body: Expr,
    /// How to join along the reduction loops.
    pub combine: Option<Combine>,
    /// dtype of the accumulator.
    pub accumulate: DType,
    /// What is done to the accumulator: input 0 is it, inputs `1..` are `finish_inputs`. `None`: conversion to the output's dtype only.
    pub finish: Option<Expr>,
    /// Further reads of `finish`; coefficients of reduction loops are 0.
    pub finish_inputs: Vec<Read<N>>,
    /// What [`ExprOp::Index`](frazil_runtime::expr::ExprOp::Index) of the body and of `finish` means: entry `n` is the value of `Index(n)`.
    pub indices: Vec<Affine<N>>,
    /// The result.
    pub output: Write<N>,
}

impl Stage {
    /// A stage of parallel loops alone, which stores `body` as it is.
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
    /// Returns true if the last inner loop is long enough for vectors of `lanes` elements, so that it is vectorised rather than the last reduction loop. The
    /// terms of a sum are added in another order then.
    pub fn has_long_rows(&self, lanes: i64) -> bool {
        self.inner.last().is_some_and(|&extent| extent >= (lanes / 2).max(2))
    }
}

impl<N> Stage<N> {
    /// What it writes: what is kept, and the result.
    pub fn writes(&self) -> impl Iterator<Item = &Write<N>> {
        self.kept.iter().map(|k| &k.output).chain([&self.output])
    }

    /// All its expressions.
    pub fn expressions(&self) -> impl Iterator<Item = &Expr> {
        let kept = self.kept.iter().map(|k| &k.body);
        kept.chain([&self.body]).chain(&self.finish)
    }
}

impl<N> Read<N> {
    /// The read with `f` of each of its numbers.
    fn map<M>(&self, f: &mut impl FnMut(&N) -> M) -> Read<M> {
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

impl<N> Write<N> {
    /// The write with `f` of each of its numbers.
    fn map<M>(&self, f: &mut impl FnMut(&N) -> M) -> Write<M> {
        Write {
            place: self.place,
            index: self.index.map(f),
        }
    }
}

impl<N> Stage<N> {
    /// The stage with `f` of each of its numbers.
    fn map<M>(&self, f: &mut impl FnMut(&N) -> M) -> Stage<M> {
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
/// Every dtype of `Expr` but the complex and quantised ones is allowed. The innermost loop of a stage is vectorised when every
/// access to it is contiguous or uniform and the dtypes are f32 (or i32/bool beside f32), otherwise the loop is
/// scalar.
#[derive(Clone, Debug, PartialEq)]
pub struct Loops<N = i64> {
    /// The task loops; empty for one task.
    pub outer: SmallVec<[N; 4]>,
    /// Element type of each buffer.
    pub arguments: Vec<DType>,
    /// Scratch memory.
    pub locals: Vec<Local<N>>,
    /// What runs, in order.
    pub stages: Vec<Stage<N>>,
    /// f32 lanes of a vector.
    pub lanes: i64,
}

impl<N> Loops<N> {
    /// Number of loops that an [`Affine`] of `stage` has coefficients for.
    pub fn rank(&self, stage: &Stage<N>) -> usize {
        self.outer.len() + stage.inner.len() + stage.reduction.len()
    }

    /// The loops with `f` of each of their numbers, in one order for all loops.
    pub fn map<M>(&self, f: &mut impl FnMut(&N) -> M) -> Loops<M> {
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
    /// Number of independent tasks.
    pub fn tasks(&self) -> i64 {
        self.outer.iter().product()
    }

    /// True when argument `operand` is only read, in one pointwise stage, at exactly the index that this stage writes
    /// another argument of the same element size at, so that both may be one buffer.
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
