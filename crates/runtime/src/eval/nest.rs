//! A loop nest bound to its operands, with adjacent loops merged where every operand allows it.

use crate::error::EvalError;
use crate::program::expr::{Expr, ExprOp};
use crate::program::structured::{Iteration, Structured};
use crate::shape::Dims;
use crate::tensor::Tensor;
use crate::tensor::access::{OperandBytes, Reader};

/// A [`Structured`] nest whose access maps have been composed with its operands' strides.
pub(super) struct Nest<'a> {
    /// Extents of the loops, the parallel ones first.
    pub extents: Dims,
    /// Number of parallel loops.
    pub parallel: usize,
    /// Readers of the body's inputs.
    pub inputs: Vec<Reader<'a>>,
    /// Readers of the epilogue's inputs 1, 2, ...
    pub finish_inputs: Vec<Reader<'a>>,
}

impl<'a> Nest<'a> {
    /// Binds `s` to its operands; `bytes[t]` belongs to `tensors[t]`.
    pub(super) fn new(s: &Structured, tensors: &[Tensor], bytes: &'a [OperandBytes]) -> Result<Nest<'a>, EvalError> {
        let parallel = s.parallel_rank();
        let parallel_first = s.iterations.iter().take(parallel).all(|i| *i == Iteration::Parallel);
        if s.domain.len() != s.iterations.len() || !parallel_first {
            return Err(EvalError::Malformed(
                "the loops are not described one by one, parallel ones first",
            ));
        }
        if s.output.sizes.as_slice() != s.domain.get(..parallel).unwrap_or(&[]) {
            return Err(EvalError::Malformed("the output's sizes are not the parallel extents"));
        }
        if s.domain.iter().any(|&e| e < 0) {
            return Err(EvalError::Malformed("a loop of negative extent"));
        }
        if s.combine.is_some() != (parallel < s.domain.len()) {
            return Err(EvalError::Malformed(
                "reduction loops and a combining function come together",
            ));
        }
        let bind = |a: &crate::program::structured::Access| {
            let t = a.tensor.index();
            let (tensor, bytes) = tensors
                .get(t)
                .zip(bytes.get(t))
                .ok_or(EvalError::Malformed("an unknown tensor"))?;
            Reader::new(a, tensor, bytes.as_slice(), &s.domain)
                .ok_or(EvalError::Malformed("an access leaves its operand"))
        };
        let inputs = s.inputs.iter().map(bind).collect::<Result<Vec<_>, _>>()?;
        let finish_inputs = s.finish_inputs.iter().map(bind).collect::<Result<Vec<_>, _>>()?;
        check_inputs(&s.body, &inputs, 0, s.domain.len())?;
        if let Some(finish) = &s.finish {
            check_inputs(finish, &finish_inputs, 1, parallel)?;
        }
        let mut nest = Nest {
            extents: s.domain.clone(),
            parallel,
            inputs,
            finish_inputs,
        };
        // Beside an extent of zero the product of the others may overflow, and nothing is computed.
        if !nest.extents.contains(&0) && !uses_index(&s.body) && !s.finish.as_ref().is_some_and(uses_index) {
            nest.coalesce();
        }
        Ok(nest)
    }

    /// Returns the number of elements of the output.
    pub(super) fn parallel_numel(&self) -> usize {
        product(&self.extents[..self.parallel])
    }

    /// Returns the number of iterations of the reduction loops: the values that are reduced to one element.
    pub(super) fn reduction_numel(&self) -> usize {
        product(&self.extents[self.parallel..])
    }

    /// Returns the readers of the body's and the epilogue's inputs.
    fn readers(&mut self) -> impl Iterator<Item = &mut Reader<'a>> {
        self.inputs.iter_mut().chain(&mut self.finish_inputs)
    }

    fn remove_loop(&mut self, l: usize) {
        self.readers().for_each(|r| r.remove_loop(l));
        self.extents.remove(l);
        if l < self.parallel {
            self.parallel -= 1;
        }
    }

    fn coalesce(&mut self) {
        for l in (0..self.extents.len()).rev() {
            if self.extents[l] == 1 {
                self.remove_loop(l);
            }
        }
        for l in (0..self.extents.len().saturating_sub(1)).rev() {
            let inner = self.extents[l + 1];
            let same_kind = (l < self.parallel) == (l + 1 < self.parallel);
            let Some(merged) = inner.checked_mul(self.extents[l]) else {
                continue;
            };
            if same_kind && self.readers().all(|r| r.coalesces(l, inner)) {
                self.extents[l + 1] = merged;
                self.remove_loop(l);
            }
        }
    }
}

/// Returns the number of iterations of loops with these extents.
fn product(extents: &[i64]) -> usize {
    match extents.contains(&0) {
        true => 0,
        false => extents.iter().fold(1, |n: usize, &e| n.saturating_mul(e as usize)),
    }
}

/// Checks that the expression's inputs exist and have the operands' dtypes, and that its coordinates refer to existing
/// loops.
fn check_inputs(e: &Expr, readers: &[Reader<'_>], first: usize, rank: usize) -> Result<(), EvalError> {
    for node in e.nodes() {
        match node.op {
            ExprOp::Input(n) if n as usize >= first => {
                match readers.get(n as usize - first) {
                    Some(r) if r.dtype() == node.dtype => {}
                    Some(_) => return Err(EvalError::Malformed("an input's dtype is not its operand's")),
                    None => return Err(EvalError::Malformed("an expression reads an input that is not there")),
                };
            }
            ExprOp::Index(n) if n as usize >= rank => {
                return Err(EvalError::Malformed("a coordinate of a loop that is not there"));
            }
            _ => {}
        }
    }
    Ok(())
}

fn uses_index(e: &Expr) -> bool {
    e.nodes().iter().any(|n| matches!(n.op, ExprOp::Index(_)))
}
