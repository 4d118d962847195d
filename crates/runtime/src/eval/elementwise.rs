//! Pointwise expressions straight over their operands' strides, for results that are not worth more preparation.
//!
//! A loop nest says for each operand how its coordinates follow from the loops. Of a pointwise expression that is always the same, broadcasting, so
//! that the operands' strides say it all; the expression itself depends on dtypes and not on sizes, and one check of it lasts for many calls.

use super::structured::{PARALLEL_THRESHOLD, store};
use super::{EvalError, ExprEval, LaneSource};
use crate::access::{OperandBytes, Reader, Walk};
use crate::element::{Element, with_element};
use crate::expr::{Expr, ExprOp};
use crate::lanes::{CHUNK, Lane, Lanes};
use crate::layout;
use crate::storage::AlignedBytes;
use crate::structured::{Dims, TensorId};
use crate::tensor::Tensor;
use crate::value::TensorCell;
use smallvec::SmallVec;

/// Operands of more elements are not staged and their registers not kept: there is one set of them for each operator of a graph.
const SMALL: usize = 128;

/// A pointwise expression with its registers.
pub(crate) struct Elementwise {
    eval: ExprEval<'static>,
    /// Which tensors of the call the expression's inputs are.
    inputs: SmallVec<[TensorId; 3]>,
    /// The call's tensors, for [`Elementwise::stage`].
    staged: SmallVec<[Staged; 3]>,
}

/// The elements of an operand, read.
struct Staged {
    lanes: Lanes,
    one: bool,
}

impl Elementwise {
    /// Checks `body`, whose inputs are tensors `inputs` of a call. `None` for one that asks where an element stands.
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
            staged: SmallVec::new(),
        }))
    }

    /// Reads tensor number `at` of a call, to be followed by [`Elementwise::run_staged`]. False for one that is not dense, carries marks,
    /// or is large.
    pub(crate) fn stage(&mut self, at: usize, t: &Tensor) -> bool {
        let numel = t.numel() as usize;
        if numel > SMALL || !t.is_contiguous() || !t.marks().is_none() {
            return false;
        }
        if self.staged.len() == at {
            self.staged.push(Staged {
                lanes: Lanes::new(t.dtype()),
                one: false,
            });
        }
        let Some(staged) = self.staged.get_mut(at) else {
            return false;
        };
        staged.one = numel == 1;
        let first = t.offset() as usize;
        t.storage().read(|bytes| {
            with_element!(t.dtype(), T => {
                let Ok(data) = bytemuck::try_cast_slice::<u8, <T as Element>::Raw>(bytes) else {
                    // A mapped archive need not be aligned.
                    return false;
                };
                let lanes = <T as Element>::Lane::of_mut(&mut staged.lanes);
                lanes.clear();
                // In range by construction: a tensor lies inside of its storage.
                let elements = data.get(first..first + numel).unwrap_or_default();
                lanes.extend(elements.iter().map(|&x| T::load(x)));
                lanes.len() == numel
            })
        })
    }

    /// The result for the tensors that were staged, each of which has `sizes` or is one number.
    pub(crate) fn run_staged(&mut self, sizes: &[i64]) -> Result<Option<TensorCell>, EvalError> {
        let Elementwise { eval, inputs, staged } = self;
        each_chunk(eval, sizes, |n, _, len, lanes| {
            let operand = inputs.get(n).and_then(|&t| staged.get(t as usize));
            match operand {
                Some(operand) if operand.one => lanes.fill_from(&operand.lanes, len),
                Some(operand) => lanes.copy_from(&operand.lanes),
                None => {}
            }
        })
    }

    /// The row-major result for `tensors`, which have the dtypes that the expression was made for. `None` where loop nests do better (there are
    /// enough elements for several threads, or marks to resolve) or have to say what is wrong (the sizes do not broadcast).
    pub(crate) fn run(&mut self, tensors: &[Tensor]) -> Result<Option<TensorCell>, EvalError> {
        let operands: SmallVec<[&Tensor; 3]> = self.inputs.iter().filter_map(|&t| tensors.get(t as usize)).collect();
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
        let bytes: SmallVec<[OperandBytes; 3]> = operands.iter().map(|t| OperandBytes::of(t)).collect();
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
        each_chunk(&mut self.eval, &sizes, |n, start, len, lanes| {
            if let Some(reader) = readers.get(n) {
                reader.read(&walk, start, len, lanes);
            }
        })
    }
}

/// Evaluates chunk by chunk. `load` reads elements of an input: its number, the first element in row-major order, and how many.
fn each_chunk(
    eval: &mut ExprEval<'_>,
    sizes: &[i64],
    mut load: impl FnMut(usize, usize, usize, &mut Lanes),
) -> Result<Option<TensorCell>, EvalError> {
    let numel = layout::checked_numel(sizes).unwrap_or(i64::MAX) as usize;
    if numel >= PARALLEL_THRESHOLD {
        return Ok(None);
    }
    let dtype = eval.dtype();
    let mut out = AlignedBytes::zeroed(Tensor::byte_size(dtype, sizes)?);
    for (at, target) in out.as_mut_slice().chunks_mut(CHUNK * dtype.size()).enumerate() {
        let (start, len) = (at * CHUNK, target.len() / dtype.size());
        let lanes = eval.run(len, &mut |source, lanes| {
            if let LaneSource::Input(n) = source {
                load(n as usize, start, len, lanes);
            }
        })?;
        store(lanes, dtype, dtype, target);
    }
    if numel > SMALL {
        eval.release();
    }
    Ok(Some(TensorCell::new(Tensor::from_buffer(out, dtype, sizes))))
}

/// Reads an operand along a loop for each dimension of the result.
fn reader<'b>(t: &Tensor, bytes: &'b OperandBytes, sizes: &[i64]) -> Option<Reader<'b>> {
    let strides = layout::expand_strides(t.sizes(), t.strides(), sizes)?;
    Some(Reader::dense(bytes.as_slice(), t.dtype(), strides).at(t.offset()))
}
