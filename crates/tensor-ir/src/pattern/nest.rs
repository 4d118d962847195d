//! Properties of loop nests that all patterns use: factors, strides, epilogues.

use crate::affine::{Strided, can_leave};
use crate::graph::TensorGraph;
use frazil_ir::{DType, contiguous_strides};
use frazil_runtime::expr::{BinaryOp, Expr, ExprOp};
use frazil_runtime::structured::{Access, Combine, Dims, Structured, TensorId};

/// The addressing of a further f32 operand of an epilogue by the result's coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EpilogueOperand {
    /// One element.
    Scalar,
    /// One element per channel (convolution, pooling) or per column (matmul): a bias. Kernels in blocked layout read it with the channels padded to whole
    /// blocks.
    Channel,
    /// One element per row of the matmul. Not for convolution and pooling.
    Row,
    /// One element per result, at the same strides as the output: a residual.
    Elementwise,
}

/// The epilogue of a contraction or window reduction.
#[derive(Clone, Debug, PartialEq)]
pub struct EpilogueClass {
    /// Input 0 is the accumulated f32, input `1 + i` is `operands[i]`.
    pub expr: Expr,
    /// The further reads.
    pub operands: Vec<OperandClass>,
}

/// A read of an epilogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperandClass {
    /// The tensor.
    pub tensor: TensorId,
    /// Offset of the first element that is read, in row-major order.
    pub offset: i64,
    /// Its addressing by the result's coordinates.
    pub kind: EpilogueOperand,
}

/// A loop nest with the properties that all patterns are recognised by.
pub(super) struct Nest<'a> {
    pub(super) graph: &'a TensorGraph,
    pub(super) s: &'a Structured,
    /// Number of parallel loops.
    pub(super) parallel: usize,
    /// Row-major strides of the result, one per parallel loop; 0 for loops of extent 1.
    pub(super) result: Dims,
}

impl<'a> Nest<'a> {
    pub(super) fn new(graph: &'a TensorGraph, s: &'a Structured) -> Nest<'a> {
        let parallel = s.parallel_rank();
        // The loops may split dimensions of the result.
        let strides = contiguous_strides(&s.domain[..parallel]);
        let result = strides.iter().zip(&s.domain).map(|(&t, &n)| if n == 1 { 0 } else { t });
        Nest {
            graph,
            s,
            parallel,
            result: result.collect(),
        }
    }

    pub(super) fn sizes(&self, access: &Access) -> &'a [i64] {
        &self.graph.shape(access.tensor).sizes
    }

    pub(super) fn strided(&self, access: &Access) -> Strided {
        Strided::of(access, self.sizes(access), &self.s.domain)
    }

    pub(super) fn can_leave(&self, access: &Access) -> bool {
        can_leave(access, self.sizes(access), &self.s.domain)
    }

    pub(super) fn extent(&self, l: usize) -> i64 {
        self.s.domain[l]
    }

    /// Returns the loops with more than one iteration.
    pub(super) fn loops(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.s.domain.len()).filter(|&l| self.s.domain[l] != 1)
    }

    pub(super) fn is_reduction(&self, l: usize) -> bool {
        l >= self.parallel
    }

    /// Returns the two factors if the nest is an f32 sum of products of two reads.
    pub(super) fn factors(&self) -> Option<[&'a Access; 2]> {
        let s = self.s;
        if s.combine != Some(Combine::Add) || !self.is_f32() {
            return None;
        }
        let (last, rest) = s.body.nodes().split_last()?;
        let ExprOp::Binary(BinaryOp::Mul, a, b) = last.op else {
            return None;
        };
        let input = |id: u32| match rest.get(id as usize)?.op {
            ExprOp::Input(i) => s.inputs.get(i as usize),
            _ => None,
        };
        match (rest.len(), s.inputs.len()) {
            (2, 2) => Some([input(a)?, input(b)?]),
            _ => None,
        }
    }

    /// Returns the read if the body consists of one read.
    pub(super) fn single_read(&self) -> Option<&'a Access> {
        let s = self.s;
        let [access] = s.inputs.as_slice() else { return None };
        let [node] = s.body.nodes() else { return None };
        (node.op == ExprOp::Input(0) && self.is_f32()).then_some(access)
    }

    /// Returns whether all reads, operations and results are f32.
    pub(super) fn is_f32(&self) -> bool {
        let s = self.s;
        s.accumulate == DType::Float
            && s.output.dtype == DType::Float
            && s.body.nodes().iter().all(|n| n.dtype == DType::Float)
            && s.inputs
                .iter()
                .all(|a| self.graph.shape(a.tensor).dtype == DType::Float)
    }

    /// Classifies the reads of the epilogue. `channel` and `row` contain, for each parallel loop, its stride in the channel (or column)
    /// and row number of a result. `None` when a read is neither uniform, by channel, by row nor by element,
    /// or the expression is not one on f32.
    pub(super) fn epilogue(&self, channel: &[i64], row: Option<&[i64]>) -> Option<EpilogueClass> {
        let s = self.s;
        let Some(expr) = &s.finish else {
            return Some(EpilogueClass {
                expr: Expr::identity(DType::Float),
                operands: Vec::new(),
            });
        };
        // f16 and bf16 are computed as f32 and rounded.
        let computable = |dtype| matches!(dtype, DType::Float | DType::Bool | DType::Half | DType::BFloat16);
        let allowed = expr
            .nodes()
            .iter()
            .all(|n| computable(n.dtype) && !matches!(n.op, ExprOp::Index(_)));
        if !allowed || expr.dtype() != Some(DType::Float) {
            return None;
        }
        let effective = |strides: &[i64]| -> Dims {
            let unit = |(&t, &n)| if n == 1 { 0 } else { t };
            strides.iter().zip(&s.domain).map(unit).collect()
        };
        let (channel, row) = (effective(channel), row.map(effective));
        let operand = |access: &Access| {
            if self.can_leave(access) || self.graph.shape(access.tensor).dtype != DType::Float {
                return None;
            }
            let Strided { strides, offset } = self.strided(access);
            let strides = &strides[..self.parallel];
            let kind = if strides.iter().all(|&t| t == 0) {
                EpilogueOperand::Scalar
            } else if *strides == *channel {
                EpilogueOperand::Channel
            } else if row.as_deref() == Some(strides) {
                EpilogueOperand::Row
            } else if (offset == 0 || row.is_some()) && *strides == *self.result {
                // The residual of a matmul may be a part of a larger tensor.
                EpilogueOperand::Elementwise
            } else {
                return None;
            };
            Some(OperandClass {
                tensor: access.tensor,
                offset,
                kind,
            })
        };
        Some(EpilogueClass {
            expr: expr.clone(),
            operands: s.finish_inputs.iter().map(operand).collect::<Option<_>>()?,
        })
    }
}
