//! Execution of [`Structured`] loop nests: generic strided loops over chunks, in parallel if there are enough
//! iterations.

#[cfg(feature = "fast")]
use super::contraction;
use super::nest::Nest;
use super::{ExprEval, LaneSource};
use crate::error::EvalError;
use crate::error::TensorError;
use crate::program::expr::{BinaryOp, Expr};
use crate::program::structured::{Combine, Structured};
use crate::shape::Dims;
use crate::simd::vectorised;
use crate::tensor::Tensor;
use crate::tensor::access::{OperandBytes, Walk};
use crate::tensor::element::{Element, with_element};
use crate::tensor::lanes::{CHUNK, Lane, LaneKind, Lanes};
use crate::tensor::storage::AlignedBytes;
use crate::threads::each_chunk;
use frazil_ir::DType;
use num_complex::Complex;

/// Minimum number of scalar iterations for parallel execution. Below, threads cost more than they save.
pub(super) const PARALLEL_THRESHOLD: usize = 1 << 15;

/// Runs a loop nest and returns its row-major result. The accesses of the nest refer to `tensors` by index.
pub fn eval_structured(s: &Structured, tensors: &[Tensor]) -> Result<Tensor, EvalError> {
    let byte_size = Tensor::byte_size(s.output.dtype, &s.output.sizes)?;
    // Loops read memory: marked operands are resolved before.
    let resolved: Vec<Tensor>;
    let tensors = if tensors.iter().all(|t| t.marks().is_none()) {
        tensors
    } else {
        resolved = tensors.iter().map(Tensor::resolved).collect::<Result<_, _>>()?;
        &resolved
    };
    let bytes: Vec<OperandBytes> = tensors.iter().map(OperandBytes::of).collect::<Result<_, _>>()?;
    let nest = Nest::new(s, tensors, &bytes)?;
    #[cfg(feature = "fast")]
    if let Some(result) = contraction::run(s, &nest)? {
        return Ok(result);
    }
    let mut out = AlignedBytes::zeroed(byte_size).map_err(TensorError::from)?;
    let kernel = Kernel { s, nest: &nest };
    let numel = nest.parallel_numel();
    let per_element = nest.reduction_numel().max(1);
    let width = s.output.dtype.size();
    let fold_rows = s.combine.is_some() && kernel.folds_along_rows();
    // A task is a range of the output; reducing along rows makes one element expensive, so fewer of them make a task.
    let task = if fold_rows {
        (PARALLEL_THRESHOLD / per_element).clamp(1, CHUNK)
    } else {
        CHUNK
    };
    let run = |scratch: &mut Scratch<'_>, (index, target): (usize, &mut [u8])| {
        let (start, len) = (index * task, target.len() / width);
        if fold_rows {
            kernel.fold_rows(scratch, start, len, target)
        } else {
            kernel.chunk(scratch, start, len, target)
        }
    };
    let mut scratch = Scratch::new(s)?;
    if numel.saturating_mul(per_element) >= PARALLEL_THRESHOLD && numel > task {
        // A thread works on several tasks in a row, so that registers are made and expressions are checked rarely.
        each_chunk(out.as_mut_slice(), task * width, || scratch.clone(), run)?;
    } else {
        out.as_mut_slice()
            .chunks_mut(task * width)
            .enumerate()
            .try_for_each(|chunk| run(&mut scratch, chunk))?;
    }
    Ok(Tensor::from_buffer(out, s.output.dtype, &s.output.sizes))
}

/// Buffers that a thread reuses for all chunks.
#[derive(Clone)]
struct Scratch<'e> {
    body: ExprEval<'e>,
    finish: Option<ExprEval<'e>>,
    /// Accumulators during a reduction, and the values that are combined with them.
    sums: Lanes,
    converted: Lanes,
    spare: Lanes,
    /// The final accumulators in the dtype that the epilogue reads.
    accumulator: Lanes,
}

impl<'e> Scratch<'e> {
    fn new(s: &'e Structured) -> Result<Scratch<'e>, EvalError> {
        let empty = || Lanes::new(s.accumulate);
        Ok(Scratch {
            body: ExprEval::new(&s.body)?,
            finish: s.finish.as_ref().map(ExprEval::new).transpose()?,
            sums: empty(),
            converted: empty(),
            spare: empty(),
            accumulator: empty(),
        })
    }
}

/// Applies the epilogue (or only the conversion) to a row-major accumulator tensor of `dtype`.
pub(super) fn finish_pass(
    s: &Structured,
    nest: &Nest<'_>,
    acc: &AlignedBytes,
    dtype: DType,
) -> Result<Tensor, EvalError> {
    let identity = Expr::identity(dtype);
    let expr = s.finish.as_ref().unwrap_or(&identity);
    let mut out =
        AlignedBytes::zeroed(Tensor::byte_size(s.output.dtype, &s.output.sizes)?).map_err(TensorError::from)?;
    let width = s.output.dtype.size();
    let acc_width = dtype.size();
    let loops = Parallel::new(nest);
    let eval = ExprEval::new(expr)?;
    let registers = || (eval.clone(), Lanes::new(dtype), Lanes::new(s.accumulate));
    type Registers<'e> = (ExprEval<'e>, Lanes, Lanes);
    let run = |(eval, raw, accumulator): &mut Registers<'_>, (index, target): (usize, &mut [u8])| {
        let (start, len) = (index * CHUNK, target.len() / width);
        let range = acc
            .as_slice()
            .get(start * acc_width..(start + len) * acc_width)
            .unwrap_or(&[]);
        load_dense(range, dtype, raw);
        let accumulator = if dtype == s.accumulate {
            &*raw
        } else {
            accumulator.convert_from(raw, dtype, s.accumulate);
            accumulator
        };
        let result_dtype = eval.dtype();
        let lanes = eval.run(len, &mut |source, out| {
            loops.load_finish(source, start, len, accumulator, out)
        })?;
        store(lanes, result_dtype, s.output.dtype, target);
        Ok::<(), EvalError>(())
    };
    if out.as_slice().len() <= CHUNK * width {
        run(&mut registers(), (0, out.as_mut_slice()))?;
    } else {
        each_chunk(out.as_mut_slice(), CHUNK * width, registers, run)?;
    }
    Ok(Tensor::from_buffer(out, s.output.dtype, &s.output.sizes))
}

/// A walk over the parallel loops only.
struct Parallel<'n, 'a> {
    nest: &'n Nest<'a>,
    zeros: Dims,
}

impl<'n, 'a> Parallel<'n, 'a> {
    fn new(nest: &'n Nest<'a>) -> Self {
        Parallel {
            nest,
            zeros: smallvec::smallvec![0; nest.extents.len()],
        }
    }

    fn walk<'w>(&'w self, fixed: &'w [i64]) -> Walk<'w> {
        Walk {
            extents: &self.nest.extents,
            first: 0,
            end: self.nest.parallel,
            fixed,
        }
    }

    /// Loads a leaf of the epilogue: input 0 is the accumulator.
    fn load_finish(&self, source: LaneSource, start: usize, len: usize, accumulator: &Lanes, out: &mut Lanes) {
        let walk = self.walk(&self.zeros);
        match source {
            LaneSource::Input(0) => out.copy_from(accumulator),
            LaneSource::Input(n) => {
                if let Some(reader) = self.nest.finish_inputs.get(n as usize - 1) {
                    reader.read(&walk, start, len, out);
                }
            }
            LaneSource::Index(n) => coordinates(&walk, n as usize, start, len, out),
        }
    }
}

struct Kernel<'n, 'a> {
    s: &'n Structured,
    nest: &'n Nest<'a>,
}

impl Kernel<'_, '_> {
    /// Returns whether the reduction of each output element is completed before the next element, rather than one reduction step for many elements at a time.
    ///
    /// This is better if the reduction is long and contiguous, or if there are few elements.
    fn folds_along_rows(&self) -> bool {
        let inner = self.nest.extents.len().wrapping_sub(1);
        let reduction = self.nest.reduction_numel();
        let contiguous = self
            .nest
            .inputs
            .iter()
            .all(|r| inner < self.nest.extents.len() && r.stride(inner).abs() <= 1);
        reduction >= 16 && (contiguous || self.nest.parallel_numel() < 64)
    }

    /// Computes elements `start..start + len`: pointwise, or all elements of the chunk one reduction step at a time.
    fn chunk(&self, scratch: &mut Scratch<'_>, start: usize, len: usize, target: &mut [u8]) -> Result<(), EvalError> {
        let parallel = Parallel::new(self.nest);
        let body_dtype = scratch.body.dtype();
        let load = |fixed: &[i64], source, out: &mut Lanes| match source {
            LaneSource::Input(n) => {
                if let Some(reader) = self.nest.inputs.get(n as usize) {
                    reader.read(&parallel.walk(fixed), start, len, out);
                }
            }
            LaneSource::Index(n) => coordinates(&parallel.walk(fixed), n as usize, start, len, out),
        };
        let Some(combine) = self.s.combine else {
            let lanes = scratch
                .body
                .run(len, &mut |source, out| load(&parallel.zeros, source, out))?;
            return self.finish(
                &mut scratch.finish,
                &mut scratch.accumulator,
                (&parallel, start),
                (lanes, body_dtype),
                target,
            );
        };
        let wide = wide_dtype(combine, self.s.accumulate);
        initial(combine, wide, len, &mut scratch.sums);
        let mut index = parallel.zeros.clone();
        for _ in 0..self.nest.reduction_numel() {
            let lanes = scratch.body.run(len, &mut |source, out| load(&index, source, out))?;
            let lanes = widened(lanes, body_dtype, wide, &mut scratch.converted);
            join(combine, wide, &mut scratch.sums, lanes, &mut scratch.spare)?;
            for l in (self.nest.parallel..index.len()).rev() {
                index[l] += 1;
                if index[l] < self.nest.extents[l] {
                    break;
                }
                index[l] = 0;
            }
        }
        self.finish(
            &mut scratch.finish,
            &mut scratch.accumulator,
            (&parallel, start),
            (&scratch.sums, wide),
            target,
        )
    }

    /// Computes elements `start..start + len`, each reduced completely along the reduction loops.
    fn fold_rows(
        &self,
        scratch: &mut Scratch<'_>,
        start: usize,
        len: usize,
        target: &mut [u8],
    ) -> Result<(), EvalError> {
        let Some(combine) = self.s.combine else {
            return self.chunk(scratch, start, len, target);
        };
        let parallel = Parallel::new(self.nest);
        let body_dtype = scratch.body.dtype();
        let wide = wide_dtype(combine, self.s.accumulate);
        initial(combine, wide, 0, &mut scratch.sums);
        let mut acc = Lanes::new(wide);
        let reduction = self.nest.reduction_numel();
        let mut index = parallel.zeros.clone();
        for element in start..start + len {
            let mut rest = element as i64;
            for l in (0..self.nest.parallel).rev() {
                let extent = self.nest.extents[l].max(1);
                index[l] = rest % extent;
                rest /= extent;
            }
            let walk = Walk {
                extents: &self.nest.extents,
                first: self.nest.parallel,
                end: self.nest.extents.len(),
                fixed: &index,
            };
            initial(combine, wide, 1, &mut acc);
            let mut at = 0;
            while at < reduction {
                let now = CHUNK.min(reduction - at);
                let lanes = scratch.body.run(now, &mut |source, out| match source {
                    LaneSource::Input(n) => {
                        if let Some(reader) = self.nest.inputs.get(n as usize) {
                            reader.read(&walk, at, now, out);
                        }
                    }
                    LaneSource::Index(n) => coordinates(&walk, n as usize, at, now, out),
                })?;
                // Folding works in place, on a copy: the body's register may be a constant that stays.
                if body_dtype == wide {
                    scratch.converted.copy_from(lanes);
                } else {
                    scratch.converted.convert_from(lanes, body_dtype, wide);
                }
                fold(combine, wide, 1, &mut scratch.converted, &mut acc, &mut scratch.spare)?;
                at += now;
            }
            scratch.sums.append(&acc);
        }
        self.finish(
            &mut scratch.finish,
            &mut scratch.accumulator,
            (&parallel, start),
            (&scratch.sums, wide),
            target,
        )
    }

    /// Runs the epilogue on a chunk's accumulators, which begin at element `start`, and stores the results.
    fn finish(
        &self,
        eval: &mut Option<ExprEval<'_>>,
        accumulator: &mut Lanes,
        (parallel, start): (&Parallel<'_, '_>, usize),
        (lanes, dtype): (&Lanes, DType),
        target: &mut [u8],
    ) -> Result<(), EvalError> {
        let Some(eval) = eval else {
            store(lanes, dtype, self.s.output.dtype, target);
            return Ok(());
        };
        accumulator.convert_from(lanes, dtype, self.s.accumulate);
        let result_dtype = eval.dtype();
        let len = lanes.len();
        let lanes = eval.run(len, &mut |source, out| {
            parallel.load_finish(source, start, len, accumulator, out)
        })?;
        store(lanes, result_dtype, self.s.output.dtype, target);
        Ok(())
    }
}

/// Returns `lanes` converted to the dtype of the reduction.
fn widened<'l>(lanes: &'l Lanes, from: DType, wide: DType, converted: &'l mut Lanes) -> &'l Lanes {
    if from == wide {
        return lanes;
    }
    converted.convert_from(lanes, from, wide);
    converted
}

/// Writes the coordinates along loop `l` of `len` elements of the walk, starting at `start`.
pub(super) fn coordinates(walk: &Walk<'_>, l: usize, start: usize, len: usize, out: &mut Lanes) {
    let out = i64::of_mut(out);
    out.clear();
    if l < walk.first || l >= walk.end {
        out.resize(len, walk.fixed.get(l).copied().unwrap_or_default());
        return;
    }
    let inner: i64 = walk.extents[l + 1..walk.end].iter().product::<i64>().max(1);
    let extent = walk.extents[l].max(1);
    out.extend((start..start + len).map(|i| (i as i64 / inner) % extent));
}

/// Returns the dtype of the accumulator. Sums and products of floats are accumulated in `f64`.
pub(super) fn wide_dtype(combine: Combine, accumulate: DType) -> DType {
    match accumulate {
        DType::Half | DType::BFloat16 | DType::Float if matches!(combine, Combine::Add | Combine::Mul) => DType::Double,
        DType::Half | DType::BFloat16 => DType::Float,
        other => other,
    }
}

/// Fills `out` with `len` neutral elements.
pub(super) fn initial(combine: Combine, dtype: DType, len: usize, out: &mut Lanes) {
    let (float, int) = match combine {
        Combine::Add | Combine::Or => (0.0, 0),
        Combine::Mul => (1.0, 1),
        Combine::And => (1.0, if dtype == DType::Bool { 1 } else { -1 }),
        Combine::Max => (f64::NEG_INFINITY, i64::MIN),
        Combine::Min => (f64::INFINITY, i64::MAX),
    };
    fn fill<T: Lane>(out: &mut Lanes, value: T, len: usize) {
        let out = T::of_mut(out);
        out.clear();
        out.resize(len, value);
    }
    match LaneKind::of(dtype) {
        LaneKind::F32 => fill(out, float as f32, len),
        LaneKind::F64 => fill(out, float, len),
        LaneKind::I64 => fill(out, int, len),
        LaneKind::Complex => fill(out, Complex::from(float), len),
    }
}

fn function(combine: Combine) -> BinaryOp {
    match combine {
        Combine::Add => BinaryOp::Add,
        Combine::Mul => BinaryOp::Mul,
        Combine::Max => BinaryOp::Maximum,
        Combine::Min => BinaryOp::Minimum,
        Combine::Or => BinaryOp::Or,
        Combine::And => BinaryOp::And,
    }
}

/// Computes `acc[i] = combine(acc[i], lanes[i])`; `spare` is a scratch buffer.
fn join(combine: Combine, dtype: DType, acc: &mut Lanes, lanes: &Lanes, spare: &mut Lanes) -> Result<(), EvalError> {
    // The two sums that everything spends its time in; the rest goes through the general function.
    match (combine, &mut *acc, lanes) {
        (Combine::Add, Lanes::F64(acc), Lanes::F64(v)) => pairs(acc, v, add),
        (Combine::Max, Lanes::F32(acc), Lanes::F32(v)) => pairs(acc, v, larger),
        _ => {
            super::binary::apply(function(combine), acc, lanes, dtype, spare)
                .map_err(|_| EvalError::Undefined(format!("{combine:?}")))?;
            std::mem::swap(acc, spare);
        }
    }
    Ok(())
}

#[inline(always)]
fn add(a: f64, x: f64) -> f64 {
    a + x
}

#[inline(always)]
fn larger(a: f32, x: f32) -> f32 {
    if x.is_nan() || x > a { x } else { a }
}

/// Computes `acc[i] = f(acc[i], v[i])` for all `i` within both slices.
#[inline(always)]
fn pairs<T: Copy>(acc: &mut [T], v: &[T], f: impl Fn(T, T) -> T) {
    vectorised(
        #[inline(always)]
        || acc.iter_mut().zip(v).for_each(|(a, &x)| *a = f(*a, x)),
    );
}

/// Reduces `lanes` into the `width` lanes of `acc`: lane `i` of `acc` reduces every `width`-th lane starting at `i`. One half of the lanes is combined with
/// the other, repeatedly, so sums are pairwise. `lanes` is unspecified afterwards.
pub(super) fn fold(
    combine: Combine,
    dtype: DType,
    width: usize,
    lanes: &mut Lanes,
    acc: &mut Lanes,
    spare: &mut Lanes,
) -> Result<(), EvalError> {
    /// Returns the number of lanes in the lower half, which includes the middle group of an odd number.
    fn half(lanes: usize, width: usize) -> usize {
        (lanes / width).div_ceil(2) * width
    }
    // The upper half onto the lower one.
    fn halve<T: Copy>(v: &mut Vec<T>, width: usize, f: impl Fn(T, T) -> T + Copy) {
        while v.len() > width {
            let half = half(v.len(), width);
            let (lower, upper) = v.split_at_mut(half);
            pairs(lower, upper, f);
            v.truncate(half);
        }
    }
    let width = width.max(1);
    match (combine, &mut *lanes) {
        (Combine::Add, Lanes::F64(v)) => halve(v, width, add),
        (Combine::Max, Lanes::F32(v)) => halve(v, width, larger),
        _ => {
            while lanes.len() > width {
                let upper = lanes.split_off(half(lanes.len(), width));
                let middle = lanes.split_off(upper.len());
                join(combine, dtype, lanes, &upper, spare)?;
                lanes.append(&middle);
            }
        }
    }
    if lanes.is_empty() {
        return Ok(());
    }
    join(combine, dtype, acc, lanes, spare)
}

fn load_dense(bytes: &[u8], dtype: DType, out: &mut Lanes) {
    with_element!(dtype, T => {
        let raw = crate::tensor::element::elements::<<T as Element>::Raw>(bytes);
        let lanes = <T as Element>::Lane::of_mut(out);
        lanes.clear();
        vectorised(
            #[inline(always)]
            || lanes.extend(raw.iter().map(|&x| T::load(x))),
        );
    });
}

/// Stores lanes of dtype `from` as elements of dtype `to`.
pub(super) fn store(lanes: &Lanes, from: DType, to: DType, target: &mut [u8]) {
    let mut converted = Lanes::new(to);
    let lanes = if from == to {
        lanes
    } else {
        converted.convert_from(lanes, from, to);
        &converted
    };
    with_element!(to, T => {
        // Output buffers are aligned and chunks are multiples of the alignment, or the whole.
        if let Ok(target) = bytemuck::try_cast_slice_mut::<u8, <T as Element>::Raw>(target) {
            let lanes = <T as Element>::Lane::of(lanes);
            vectorised(
                #[inline(always)]
                || target.iter_mut().zip(lanes).for_each(|(o, &x)| *o = T::store(x)),
            );
        }
    });
}
