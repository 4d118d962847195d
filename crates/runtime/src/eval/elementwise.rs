//! Pointwise expressions evaluated directly over the operands' strides, for results that are too small to justify a loop nest.
//!
//! All operands of a pointwise expression are broadcast, so their strides determine all accesses. The expression depends on dtypes and not on sizes, so it is
//! checked once for many calls.

use super::loop_nest::{PARALLEL_THRESHOLD, store};
use super::staged::{SMALL, Staging};
use super::{ExprEval, LaneSource};
use crate::error::EvalError;
use crate::program::expr::{Expr, ExprOp};
use crate::program::structured::TensorId;
use crate::shape::Dims;
use crate::shape::layout;
use crate::tensor::Tensor;
use crate::tensor::access::{OperandBytes, Reader, Walk};
use crate::tensor::lanes::{CHUNK, Lanes};
use frazil_ir::DType;
use smallvec::SmallVec;

/// A pointwise expression, compiled for repeated evaluation, with its registers.
pub(crate) struct Elementwise {
    eval: ExprEval<'static>,
    /// For each input of the expression, the tensor argument of the call that it reads.
    inputs: SmallVec<[TensorId; 3]>,
    /// The tensor arguments of the call, for [`Elementwise::run_staged`].
    pub(crate) staging: Staging,
}

impl Elementwise {
    /// Checks `body`, whose inputs are tensors `inputs` of a call. Returns `None` if the expression uses coordinates.
    pub(crate) fn new(body: Expr, inputs: &[TensorId]) -> Result<Option<Elementwise>, EvalError> {
        let asks = |op: ExprOp| match op {
            ExprOp::Index(_) => true,
            ExprOp::Input(n) => n as usize >= inputs.len(),
            _ => false,
        };
        if inputs.is_empty() || body.nodes().iter().any(|n| asks(n.op)) {
            return Ok(None);
        }
        Ok(Some(Elementwise {
            eval: ExprEval::owning(body)?,
            inputs: inputs.into(),
            staging: Staging::default(),
        }))
    }

    /// Writes the row-major elements of the result for the staged tensors. Each tensor has the result's sizes, or one element.
    pub(crate) fn run_staged(&mut self, target: &mut [u8]) -> Result<(), EvalError> {
        let Elementwise { eval, inputs, staging } = self;
        each_chunk(eval, target, |n, _, len, lanes| {
            let operand = inputs.get(n).and_then(|&t| staging.get(t.index()));
            match operand {
                Some(operand) if operand.one => lanes.fill_from(&operand.lanes, len),
                Some(operand) => lanes.copy_from(&operand.lanes),
                None => {}
            }
        })
    }

    /// Returns the dtype of the result.
    pub(crate) fn dtype(&self) -> DType {
        self.eval.dtype()
    }

    /// Returns the row-major result for `tensors`, which have the expression's dtypes.
    ///
    /// Returns `None` if a loop nest is better (there are enough elements for several threads, or conjugate or negative bits), or if it has to report the error
    /// (the sizes do not broadcast).
    pub(crate) fn run(&mut self, tensors: &[Tensor]) -> Result<Option<Tensor>, EvalError> {
        let operands: SmallVec<[&Tensor; 3]> = self.inputs.iter().filter_map(|&t| tensors.get(t.index())).collect();
        let mut sizes = Dims::new();
        if operands.iter().any(|t| !t.marks().is_none()) {
            return Ok(None);
        }
        for operand in &operands {
            match layout::broadcast(&sizes, operand.sizes()) {
                Some(wider) => sizes = wider,
                None => return Ok(None),
            }
        }
        let bytes: SmallVec<[OperandBytes; 3]> =
            operands.iter().map(|t| OperandBytes::of(t)).collect::<Result<_, _>>()?;
        let reader = |(t, bytes): (&&Tensor, _)| reader(t, bytes, &sizes);
        let readers: Option<SmallVec<[Reader<'_>; 3]>> = operands.iter().zip(&bytes).map(reader).collect();
        let Some(readers) = readers else { return Ok(None) };
        let fixed: Dims = smallvec::smallvec![0; sizes.len()];
        let walk = Walk {
            extents: &sizes,
            first: 0,
            end: sizes.len(),
            fixed: &fixed,
        };
        let numel = layout::checked_numel(&sizes).unwrap_or(i64::MAX) as usize;
        if numel >= PARALLEL_THRESHOLD {
            return Ok(None);
        }
        let out = Tensor::computed(self.dtype(), &sizes, |target| {
            each_chunk(&mut self.eval, target, |n, start, len, lanes| {
                if let Some(reader) = readers.get(n) {
                    reader.read(&walk, start, len, lanes);
                }
            })
        })?;
        if numel > SMALL {
            self.eval.release();
        }
        Ok(Some(out))
    }
}

/// Evaluates chunk by chunk into `target`. `load` reads elements of an input: the input's index, the first element in row-major order, and the number of
/// elements.
fn each_chunk(
    eval: &mut ExprEval<'_>,
    target: &mut [u8],
    mut load: impl FnMut(usize, usize, usize, &mut Lanes),
) -> Result<(), EvalError> {
    let dtype = eval.dtype();
    for (at, target) in target.chunks_mut(CHUNK * dtype.size()).enumerate() {
        let (start, len) = (at * CHUNK, target.len() / dtype.size());
        let lanes = eval.run(len, &mut |source, lanes| {
            if let LaneSource::Input(n) = source {
                load(n as usize, start, len, lanes);
            }
        })?;
        store(lanes, dtype, dtype, target);
    }
    Ok(())
}

/// Returns a reader of an operand, with one loop per dimension of the result.
fn reader<'b>(t: &Tensor, bytes: &'b OperandBytes, sizes: &[i64]) -> Option<Reader<'b>> {
    let strides = layout::expand_strides(t.sizes(), t.strides(), sizes)?;
    Some(Reader::dense(bytes.as_slice(), t.dtype(), strides).at(t.offset()))
}
