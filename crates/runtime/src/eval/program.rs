//! Evaluation of [`Program`]s, step by step.

use super::eval_structured;
use super::indexed_reads::eval_gather;
use crate::error::EvalError;
use crate::error::TensorError;
use crate::memory;
use crate::program::structured::{Affine, Program, Step, TensorId, ViewKind, ViewMap};
use crate::shape::{Dims, TensorShape};
use crate::tensor::Tensor;
use smallvec::SmallVec;

/// Runs `program` on `args` and returns its outputs. Outputs of view steps alias the argument if its strides allow it.
///
/// # Errors
/// When the arguments are not those that the program was made for, or the program is inconsistent.
pub fn eval_program(program: &Program, args: &[Tensor]) -> Result<Vec<Tensor>, EvalError> {
    Ok(eval_outputs(program, args)?.into_vec())
}

/// Evaluates a program as [`eval_program`] does, without heap allocation of the list of results.
pub(crate) fn eval_outputs(program: &Program, args: &[Tensor]) -> Result<SmallVec<[Tensor; 1]>, EvalError> {
    let matches = |(t, s): (&Tensor, &TensorShape)| t.dtype() == s.dtype && t.sizes() == s.sizes.as_slice();
    if args.len() != program.arguments.len() || !args.iter().zip(&program.arguments).all(matches) {
        return Err(EvalError::Malformed(
            "the arguments are not those that the program was made for",
        ));
    }
    // What most small programs are needs no tables.
    if let ([step], [only]) = (program.steps.as_slice(), program.outputs.as_slice())
        && only.index() == args.len()
    {
        return Ok(smallvec::smallvec![eval_step(step, args)?]);
    }
    check_results(program)?;
    let last_use = last_uses(program);
    let mut tensors = args.to_vec();
    for (i, step) in program.steps.iter().enumerate() {
        let result = eval_step(step, &tensors)?;
        tensors.push(result);
        for (t, last) in last_use.iter().enumerate() {
            // Numbers must stay; an empty tensor takes the place of one that nothing reads any more.
            if *last == Some(i) && t >= args.len() {
                tensors[t] = Tensor::zeros(tensors[t].dtype(), &[0])?;
            }
        }
    }
    let output = |&id: &TensorId| {
        tensors
            .get(id.index())
            .cloned()
            .ok_or(EvalError::Malformed("an unknown output"))
    };
    program.outputs.iter().map(output).collect()
}

/// Minimum size in bytes of a result for which the memory limit is checked before the computation starts.
const LARGE: usize = 1 << 28;

/// Checks that there is memory for the largest result of `program` before anything is computed.
///
/// Otherwise, reducing a view that repeats a few bytes very often could take hours before its result is found to be too large.
fn check_results(program: &Program) -> Result<(), EvalError> {
    let mut most = 0;
    for step in &program.steps {
        let output = match step {
            Step::Compute(s) => &s.output,
            Step::Gather(g) => &g.output,
            Step::View(_) => continue,
        };
        most = most.max(Tensor::byte_size(output.dtype, &output.sizes)?);
    }
    if most >= LARGE {
        memory::check_available(most).map_err(TensorError::from)?;
    }
    Ok(())
}

fn eval_step(step: &Step, tensors: &[Tensor]) -> Result<Tensor, EvalError> {
    match step {
        Step::Compute(s) => eval_structured(s, tensors),
        Step::View(v) => match tensors.get(v.tensor.index()) {
            Some(base) => eval_view(v, base),
            None => Err(EvalError::Malformed("a view of an unknown tensor")),
        },
        Step::Gather(g) => eval_gather(g, tensors),
    }
}

/// Returns for each tensor the index of the last step that reads it; `None` for the program's outputs, and for tensors that no step reads.
fn last_uses(program: &Program) -> Vec<Option<usize>> {
    let mut last = vec![None; program.arguments.len() + program.steps.len()];
    for (i, step) in program.steps.iter().enumerate() {
        let mut used = |id: TensorId| {
            if let Some(slot) = last.get_mut(id.index()) {
                *slot = Some(i);
            }
        };
        match step {
            Step::Compute(s) => s.inputs.iter().chain(&s.finish_inputs).for_each(|a| used(a.tensor)),
            Step::View(v) => used(v.tensor),
            Step::Gather(g) => g.operands().for_each(&mut used),
        }
    }
    for &id in &program.outputs {
        if let Some(slot) = last.get_mut(id.index()) {
            *slot = None;
        }
    }
    last
}

/// Returns the result of step `v`: a view of the tensor `base`.
pub(crate) fn eval_view(v: &ViewMap, base: &Tensor) -> Result<Tensor, EvalError> {
    match &v.kind {
        ViewKind::Reshape => Ok(base.reshape(&v.output.sizes)?),
        ViewKind::Affine(map) => {
            let (strides, offset) =
                view_layout(map, base, &v.output.sizes).ok_or(EvalError::Malformed("a view's map does not fit"))?;
            Ok(base.as_strided(&v.output.sizes, &strides, offset)?)
        }
    }
}

/// Sets the strides of new dimensions of extent 1 to the step over the dimensions after them, as `unsqueeze` does.
fn new_unit_strides(map: &[Affine], sizes: &[i64], strides: &mut [i64]) {
    for d in (0..sizes.len()).rev() {
        if sizes[d] == 1 && map.iter().all(|a| a.coefficients[d] == 0) {
            strides[d] = match (sizes.get(d + 1), strides.get(d + 1)) {
                (Some(size), Some(stride)) => size.saturating_mul(*stride),
                _ => 1,
            };
        }
    }
}

/// Returns the strides and the offset, in elements, of an affine view of `base` with sizes `sizes`. All view entries
/// use this function.
pub fn view_layout(map: &[Affine], base: &Tensor, sizes: &[i64]) -> Option<(Dims, i64)> {
    let rank = sizes.len();
    if map.len() != base.dim() {
        return None;
    }
    let mut strides: Dims = smallvec::smallvec![0; rank];
    let mut offset = base.offset();
    for (affine, &stride) in map.iter().zip(base.strides()) {
        if affine.coefficients.len() != rank {
            return None;
        }
        offset = offset.checked_add(affine.offset.checked_mul(stride)?)?;
        for (s, &c) in strides.iter_mut().zip(&affine.coefficients) {
            *s = s.checked_add(c.checked_mul(stride)?)?;
        }
    }
    new_unit_strides(map, sizes, &mut strides);
    Some((strides, offset))
}
