//! Structured tensor programs: the semantics of an operator as data.
//!
//! Every operator entry except kernels of last resort defines its computation as a [`Program`]: a few [`Step`]s over numbered tensors. A step is a
//! [`Structured`] loop nest (a rectangular domain, affine access maps, a scalar body, an optional reduction), a [`ViewMap`] that only reinterprets existing
//! elements, or a [`Gather`]. The interpreter executes programs directly, code generation fuses and emits their steps, and shape inference reads the outputs'
//! sizes. So the three cannot disagree.

use crate::program::expr::{BinaryOp, Expr, ExprNode, ExprOp, Number};
use crate::program::gather::Gather;
pub use crate::shape::{Dims, TensorShape};
use cranelift_entity::entity_impl;
use frazil_ir::DType;
use smallvec::SmallVec;

/// A tensor of a [`Program`] or of a graph of the tensor IR. In a program: first its arguments, then its temporaries in the order of the steps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TensorId(u32);
entity_impl!(TensorId, "%");

impl TensorId {
    /// Returns the tensor of this number.
    pub fn new(number: usize) -> TensorId {
        TensorId::from_u32(number as u32)
    }

    /// Returns the tensor's number.
    pub fn index(self) -> usize {
        self.as_u32() as usize
    }
}

/// A sequence of steps over numbered tensors, which computes an operator's results.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// Dtypes and sizes of the tensor arguments.
    pub arguments: Vec<TensorShape>,
    /// The steps, each with one result. Step `i` defines tensor `arguments.len() + i`.
    pub steps: Vec<Step>,
    /// The tensors that are the operator's results.
    pub outputs: SmallVec<[TensorId; 1]>,
}

/// One step of a [`Program`].
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A loop nest that computes a new tensor.
    Compute(Box<Structured>),
    /// A view: the same elements with other sizes and strides.
    View(ViewMap),
    /// A gather: reads of elements at indices that integer tensors contain.
    Gather(Box<Gather>),
}

/// The kind of one loop of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Iteration {
    /// The loop's index is an index of the output.
    Parallel,
    /// The loop is reduced by [`Structured::combine`].
    Reduction,
}

/// The combiner of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Combine {
    /// Sum. Floating-point sums start at zero and have at least f32's precision.
    Add,
    /// Product.
    Mul,
    /// Maximum; NaN if a value is NaN.
    Max,
    /// Minimum; NaN if a value is NaN.
    Min,
    /// Logical or / bitwise or.
    Or,
    /// Logical and / bitwise and.
    And,
}

/// An affine map from loop indices to one coordinate: `offset + Σ coefficients[i] · index[i]`. `N` is `i64`, or the representation of an integer in generated
/// code.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Affine<N: Copy = i64> {
    /// One factor per loop of the domain.
    pub coefficients: SmallVec<[N; 4]>,
    /// The constant part.
    pub offset: N,
}

impl<N: Copy> Clone for Affine<N> {
    fn clone(&self) -> Affine<N> {
        Affine {
            // Much faster than a clone, which copies the elements one by one.
            coefficients: SmallVec::from_slice(&self.coefficients),
            offset: self.offset,
        }
    }
}

impl<N: Copy> Affine<N> {
    /// Returns the map with `f` applied to each coefficient, and then to the offset.
    pub fn map<M: Copy>(&self, f: &mut impl FnMut(&N) -> M) -> Affine<M> {
        Affine {
            coefficients: self.coefficients.iter().map(&mut *f).collect(),
            offset: f(&self.offset),
        }
    }
}

impl Affine {
    /// Returns the map whose value is the index of loop `loop_index`, in a domain of `rank` loops.
    pub fn index(rank: usize, loop_index: usize) -> Affine {
        let mut a = Affine::constant(rank, 0);
        a.coefficients[loop_index] = 1;
        a
    }

    /// Returns the map whose value is always `value`, in a domain of `rank` loops.
    pub fn constant(rank: usize, value: i64) -> Affine {
        Affine {
            coefficients: smallvec::smallvec![0; rank],
            offset: value,
        }
    }

    /// Returns the coordinate for the loop indices `indices`.
    pub fn at(&self, indices: &[i64]) -> i64 {
        self.offset + self.coefficients.iter().zip(indices).map(|(c, i)| c * i).sum::<i64>()
    }
}

/// The value of a read outside of the operand's bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OutOfBounds {
    /// The maps are always within the operand.
    Never,
    /// The read has this value, in the operand's dtype (zero for convolution's padding, -inf for max pooling's).
    Value(Number),
}

/// A read of one operand by a loop nest: a coordinate for each dimension of the operand.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// The tensor of the program that is read.
    pub tensor: TensorId,
    /// One affine map per dimension of `tensor`.
    pub map: SmallVec<[Affine; 6]>,
    /// The value of a read outside of the tensor's bounds.
    pub out_of_bounds: OutOfBounds,
}

/// A loop nest over a rectangular domain.
///
/// Without reduction loops, it computes `out[p] = body(inputs at p)`, and then `finish` of that, if present. The parallel loops come first and are the output's
/// dimensions in order.
///
/// ```text
/// for each parallel index p:
///     acc = init
///     for each reduction index r:
///         acc = combine(acc, body(inputs at (p, r)))
///     out[p] = finish(acc, finish_inputs at p)
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Structured {
    /// Extent of each loop.
    pub domain: Dims,
    /// Kind of each loop. Parallel loops come before reduction loops.
    pub iterations: SmallVec<[Iteration; 6]>,
    /// The reads of operands. Input `i` of `body` is the element that `inputs[i]` reads.
    pub inputs: SmallVec<[Access; 3]>,
    /// The scalar expression that each iteration evaluates.
    pub body: Expr,
    /// The combiner of the reduction loops; `None` without such loops.
    pub combine: Option<Combine>,
    /// The dtype of the accumulator.
    pub accumulate: DType,
    /// The epilogue, applied to the final accumulator: its input 0 is the accumulator, inputs 1.. are `finish_inputs`.
    /// If `None`, the accumulator is only converted to `output`'s dtype.
    pub finish: Option<Expr>,
    /// Further reads of the epilogue, mapped from the parallel loops only (coefficients of reduction loops are 0).
    pub finish_inputs: SmallVec<[Access; 2]>,
    /// dtype and sizes of the result.
    pub output: TensorShape,
}

impl Structured {
    /// Returns the number of parallel loops: the rank of the result.
    pub fn parallel_rank(&self) -> usize {
        self.iterations.iter().filter(|i| **i == Iteration::Parallel).count()
    }

    /// Returns true if every loop is parallel, so that there is no reduction.
    pub fn is_pointwise(&self) -> bool {
        self.combine.is_none()
    }

    /// Returns true for an outer product of float32 or float64: a sum of a single product.
    ///
    /// The result of such a nest is the product itself, so a negative zero is preserved, as in the libraries that PyTorch uses. All other sums start at zero,
    /// so they are positive zero if all terms are negative zeros.
    pub fn is_outer_product(&self) -> bool {
        let (parallel, reduction) = self.domain.split_at(self.parallel_rank());
        let [a, b] = self.inputs.as_slice() else { return false };
        let single = self.combine == Some(Combine::Add) && reduction.iter().all(|&n| n == 1);
        let nodes = self.body.nodes();
        let multiplies = matches!(nodes.last(), Some(n) if matches!(n.op, ExprOp::Binary(BinaryOp::Mul, ..)));
        let wide = |n: &ExprNode| !matches!(n.op, ExprOp::Input(_)) || matches!(n.dtype, DType::Float | DType::Double);
        let uses = |access: &Access, l: usize| access.map.iter().any(|m| m.coefficients[l] != 0);
        let loops = || (0..parallel.len()).filter(|&l| parallel[l] != 1);
        let of_one = |one: &Access, other: &Access| loops().any(|l| uses(one, l) && !uses(other, l));
        let shared = loops().any(|l| uses(a, l) && uses(b, l));
        single && multiplies && nodes.iter().all(wide) && !shared && of_one(a, b) && of_one(b, a)
    }
}

/// A view: the same storage with other sizes, strides and offset.
#[derive(Clone, Debug, PartialEq)]
pub struct ViewMap {
    /// The tensor that is viewed.
    pub tensor: TensorId,
    /// The mapping of the view's coordinates to coordinates of `tensor`.
    pub kind: ViewKind,
    /// dtype and sizes of the view.
    pub output: TensorShape,
}

/// The mapping of a view's coordinates to those of the viewed tensor.
#[derive(Clone, Debug, PartialEq)]
pub enum ViewKind {
    /// Each coordinate of the tensor is an affine function of the view's coordinates: permute, expand, select, slice, squeeze, unsqueeze.
    Affine(Vec<Affine>),
    /// The elements in row-major order with new sizes: view, reshape, flatten. Aliases if the strides allow it; otherwise a copy.
    Reshape,
}
