//! Structured tensor programs: what an operator does, as data.
//!
//! Every operator entry except the kernels of last resort says what it computes as a [`Program`]: a few [`Step`]s over
//! numbered tensors. A step is a [`Structured`] loop nest (a rectangular domain, affine access maps, a scalar body, an
//! optional reduction), or a [`ViewMap`] that only re-reads what is there. The interpreter runs programs as they stand; code
//! generation fuses their steps and emits them. Shape inference reads the outputs' sizes. The three cannot disagree.

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

/// A few steps over numbered tensors; the last `outputs` are what the operator gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The tensor arguments' dtypes and sizes.
    pub arguments: Vec<TensorShape>,
    /// One result a step. Step `i` defines tensor `arguments.len() + i`.
    pub steps: Vec<Step>,
    /// The tensors that are the operator's results.
    pub outputs: SmallVec<[TensorId; 1]>,
}

/// One step of a [`Program`].
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A loop nest that computes a new tensor.
    Compute(Box<Structured>),
    /// The same elements under other sizes and strides.
    View(ViewMap),
    /// Elements at places that other tensors name.
    Gather(Box<Gather>),
}

/// How one loop of a domain is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Iteration {
    /// The loop's index appears in the output.
    Parallel,
    /// The loop is folded by [`Structured::combine`].
    Reduction,
}

/// How the values along the reduction loops are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Combine {
    /// Sum. Floating point is summed with at least f32's precision from zero.
    Add,
    /// Product.
    Mul,
    /// Maximum; NaN wins.
    Max,
    /// Minimum; NaN wins.
    Min,
    /// Logical or / bitwise or.
    Or,
    /// Logical and / bitwise and.
    And,
}

/// An affine map from loop indices to one coordinate: `offset + Σ coefficients[i] · index[i]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Affine {
    /// One factor a loop of the domain.
    pub coefficients: Dims,
    /// The constant part.
    pub offset: i64,
}

impl Affine {
    /// The map that gives index `loop_index` of a domain of `rank` loops.
    pub fn index(rank: usize, loop_index: usize) -> Affine {
        let mut a = Affine::constant(rank, 0);
        a.coefficients[loop_index] = 1;
        a
    }

    /// The map that always gives `value`.
    pub fn constant(rank: usize, value: i64) -> Affine {
        Affine {
            coefficients: smallvec::smallvec![0; rank],
            offset: value,
        }
    }

    /// The coordinate at `indices`.
    pub fn at(&self, indices: &[i64]) -> i64 {
        self.offset + self.coefficients.iter().zip(indices).map(|(c, i)| c * i).sum::<i64>()
    }
}

/// What a read outside the operand's bounds gives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OutOfBounds {
    /// The maps never leave the operand.
    Never,
    /// This value, in the operand's dtype (zero for convolution's padding, -inf for max pooling's).
    Value(Number),
}

/// A read of one operand: a coordinate for each of its dimensions.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// Which tensor of the program is read.
    pub tensor: TensorId,
    /// One affine map a dimension of that tensor.
    pub map: SmallVec<[Affine; 6]>,
    /// What lies outside.
    pub out_of_bounds: OutOfBounds,
}

/// A loop nest over a rectangular domain:
///
/// ```text
/// for each parallel index p:
///     acc = init
///     for each reduction index r:
///         acc = combine(acc, body(inputs at (p, r)))
///     out[p] = finish(acc, finish_inputs at p)
/// ```
///
/// Without reduction loops, `out[p] = body(inputs at p)` (and `finish`, where there is one, over that). The parallel loops come
/// first and are the output's dimensions in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Structured {
    /// Extent of each loop.
    pub domain: Dims,
    /// Kind of each loop; parallel ones first.
    pub iterations: SmallVec<[Iteration; 6]>,
    /// What the body reads. `body`'s input `i` is `inputs[i]`.
    pub inputs: SmallVec<[Access; 3]>,
    /// The scalar body.
    pub body: Expr,
    /// How to join along the reduction loops; `None` without such loops.
    pub combine: Option<Combine>,
    /// The dtype in which the accumulator is kept.
    pub accumulate: DType,
    /// What is done to the finished accumulator: its input 0 is the accumulator, inputs 1.. are `finish_inputs`.
    /// `None`: nothing but the conversion to `output`'s dtype.
    pub finish: Option<Expr>,
    /// Further reads of `finish`, mapped from the parallel loops only (coefficients of reduction loops are 0).
    pub finish_inputs: SmallVec<[Access; 2]>,
    /// dtype and sizes of the result.
    pub output: TensorShape,
}

impl Structured {
    /// Number of parallel loops: the rank of the result.
    pub fn parallel_rank(&self) -> usize {
        self.iterations.iter().filter(|i| **i == Iteration::Parallel).count()
    }

    /// True when nothing is folded: every loop is parallel.
    pub fn is_pointwise(&self) -> bool {
        self.combine.is_none()
    }

    /// True for a sum of a single product of a row's and a column's element: an outer product of float32 or float64.
    ///
    /// Such products are their sums, so that a negative zero stays one, as in the libraries that PyTorch takes for them. All other sums
    /// begin with zero, and are positive where all their terms are negative zeros.
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

/// The same storage under other sizes, strides and offset.
#[derive(Clone, Debug, PartialEq)]
pub struct ViewMap {
    /// The tensor that is viewed.
    pub tensor: TensorId,
    /// How the new dimensions read the old.
    pub kind: ViewKind,
    /// dtype and sizes of the view.
    pub output: TensorShape,
}

/// Kinds of views.
#[derive(Clone, Debug, PartialEq)]
pub enum ViewKind {
    /// Each old coordinate is an affine function of the new ones: permute, expand, select, slice, squeeze, unsqueeze.
    Affine(Vec<Affine>),
    /// The elements in row-major order under new sizes: view, reshape, flatten. Aliases when strides allow; otherwise a copy.
    Reshape,
}
