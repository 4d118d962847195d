//! Running [`Structured`] loop nests: generic strided loops over chunks, in parallel where there is enough to do.

use super::nest::Nest;
use super::{EvalError, ExprEval, LaneSource, contraction};
use crate::access::{OperandBytes, Walk};
use crate::element::{Element, with_element};
use crate::expr::{BinaryOp, Expr};
use crate::lanes::{CHUNK, Lane, Lanes};
use crate::storage::AlignedBytes;
use crate::structured::{Combine, Dims, Structured};
use crate::tensor::Tensor;
use frazil_ir::DType;
use rayon::prelude::*;

/// Below this many scalar iterations the threads cost more than they bring.
const PARALLEL_THRESHOLD: usize = 1 << 15;

/// Runs one loop nest over `tensors`, which its accesses number, and gives its row-major result.
pub fn eval_structured(s: &Structured, tensors: &[Tensor]) -> Result<Tensor, EvalError> {
    let byte_size = Tensor::byte_size(s.output.dtype, &s.output.sizes)?;
    let bytes: Vec<OperandBytes> = tensors.iter().map(OperandBytes::of).collect();
    let nest = Nest::new(s, tensors, &bytes)?;
    if let Some(result) = contraction::run(s, &nest)? {
        return Ok(result);
    }
    let mut out = AlignedBytes::zeroed(byte_size);
    let kernel = Kernel { s, nest: &nest };
    let numel = nest.parallel_numel();
    let per_element = nest.reduction_numel().max(1);
    let width = s.output.dtype.size();
    let fold_rows = s.combine.is_some() && kernel.folds_along_rows();
    // A task is a stretch of the output; folding along rows makes one element expensive, so fewer of them make a task.
    let task = if fold_rows {
        (PARALLEL_THRESHOLD / per_element).clamp(1, CHUNK)
    } else {
        CHUNK
    };
    let run = |(index, target): (usize, &mut [u8])| {
        let (start, len) = (index * task, target.len() / width);
        if fold_rows {
            kernel.fold_rows(start, len, target)
        } else {
            kernel.chunk(start, len, target)
        }
    };
    if numel.saturating_mul(per_element) >= PARALLEL_THRESHOLD && numel > task {
        out.as_mut_slice()
            .par_chunks_mut(task * width)
            .enumerate()
            .try_for_each(run)?;
    } else {
        out.as_mut_slice()
            .chunks_mut(task * width)
            .enumerate()
            .try_for_each(run)?;
    }
    Ok(Tensor::from_buffer(out, s.output.dtype, &s.output.sizes))
}

/// Applies `finish` (or only the conversion) to a row-major accumulator tensor of `dtype`.
pub(super) fn finish_pass(
    s: &Structured,
    nest: &Nest<'_>,
    acc: &AlignedBytes,
    dtype: DType,
) -> Result<Tensor, EvalError> {
    let identity = Expr::identity(dtype);
    let expr = s.finish.as_ref().unwrap_or(&identity);
    let mut out = AlignedBytes::zeroed(Tensor::byte_size(s.output.dtype, &s.output.sizes)?);
    let width = s.output.dtype.size();
    let acc_width = dtype.size();
    let parallel = Parallel::new(nest);
    let run = |(index, target): (usize, &mut [u8])| -> Result<(), EvalError> {
        let (start, len) = (index * CHUNK, target.len() / width);
        let mut eval = ExprEval::new(expr)?;
        let stretch = acc
            .as_slice()
            .get(start * acc_width..(start + len) * acc_width)
            .unwrap_or(&[]);
        let mut raw = Lanes::new(dtype);
        load_dense(stretch, dtype, &mut raw);
        let mut accumulator = Lanes::new(s.accumulate);
        if dtype == s.accumulate {
            accumulator = raw;
        } else {
            accumulator.convert_from(&raw, dtype, s.accumulate);
        }
        let result_dtype = eval.dtype();
        let lanes = eval.run(len, &mut |source, out| {
            parallel.load_finish(source, start, len, &accumulator, out)
        })?;
        store(lanes, result_dtype, s.output.dtype, target);
        Ok(())
    };
    out.as_mut_slice()
        .par_chunks_mut(CHUNK * width)
        .enumerate()
        .try_for_each(run)?;
    Ok(Tensor::from_buffer(out, s.output.dtype, &s.output.sizes))
}

/// Walks the parallel loops only.
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

    /// A leaf of the finish: input 0 is the accumulator.
    fn load_finish(&self, source: LaneSource, start: usize, len: usize, accumulator: &Lanes, out: &mut Lanes) {
        let walk = self.walk(&self.zeros);
        match source {
            LaneSource::Input(0) => out.clone_from(accumulator),
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
    /// Whether one output element is computed at a time, along the reduction loops, rather than many elements one reduction
    /// step at a time: better when the reduction is long and contiguous, or when there are few elements.
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

    /// Elements `start..start + len`: pointwise, or all elements of the chunk one reduction step at a time.
    fn chunk(&self, start: usize, len: usize, target: &mut [u8]) -> Result<(), EvalError> {
        let parallel = Parallel::new(self.nest);
        let mut body = ExprEval::new(&self.s.body)?;
        let body_dtype = body.dtype();
        let load = |fixed: &[i64], source, out: &mut Lanes| match source {
            LaneSource::Input(n) => {
                if let Some(reader) = self.nest.inputs.get(n as usize) {
                    reader.read(&parallel.walk(fixed), start, len, out);
                }
            }
            LaneSource::Index(n) => coordinates(&parallel.walk(fixed), n as usize, start, len, out),
        };
        let Some(combine) = self.s.combine else {
            let lanes = body.run(len, &mut |source, out| load(&parallel.zeros, source, out))?;
            return self.finish(&parallel, start, lanes, body_dtype, target);
        };
        let wide = wide_dtype(combine, self.s.accumulate);
        let mut acc = initial(combine, wide, len);
        let mut converted = Lanes::new(wide);
        let mut index = parallel.zeros.clone();
        for _ in 0..self.nest.reduction_numel() {
            let lanes = body.run(len, &mut |source, out| load(&index, source, out))?;
            let lanes = if body_dtype == wide {
                lanes
            } else {
                converted.convert_from(lanes, body_dtype, wide);
                &converted
            };
            join(combine, wide, &mut acc, lanes)?;
            for l in (self.nest.parallel..index.len()).rev() {
                index[l] += 1;
                if index[l] < self.nest.extents[l] {
                    break;
                }
                index[l] = 0;
            }
        }
        self.finish(&parallel, start, &acc, wide, target)
    }

    /// Elements `start..start + len`, each folded along its own row of the reduction loops.
    fn fold_rows(&self, start: usize, len: usize, target: &mut [u8]) -> Result<(), EvalError> {
        let Some(combine) = self.s.combine else {
            return self.chunk(start, len, target);
        };
        let parallel = Parallel::new(self.nest);
        let mut body = ExprEval::new(&self.s.body)?;
        let body_dtype = body.dtype();
        let wide = wide_dtype(combine, self.s.accumulate);
        let mut results = initial(combine, wide, 0);
        let mut converted = Lanes::new(wide);
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
            let mut acc = initial(combine, wide, 1);
            let mut at = 0;
            while at < reduction {
                let now = CHUNK.min(reduction - at);
                let lanes = body.run(now, &mut |source, out| match source {
                    LaneSource::Input(n) => {
                        if let Some(reader) = self.nest.inputs.get(n as usize) {
                            reader.read(&walk, at, now, out);
                        }
                    }
                    LaneSource::Index(n) => coordinates(&walk, n as usize, at, now, out),
                })?;
                let lanes = if body_dtype == wide {
                    lanes
                } else {
                    converted.convert_from(lanes, body_dtype, wide);
                    &converted
                };
                fold(combine, wide, lanes, &mut acc)?;
                at += now;
            }
            append(&mut results, &acc);
        }
        self.finish(&parallel, start, &results, wide, target)
    }

    /// Runs the finish over a chunk's accumulators and stores.
    fn finish(
        &self,
        parallel: &Parallel<'_, '_>,
        start: usize,
        lanes: &Lanes,
        dtype: DType,
        target: &mut [u8],
    ) -> Result<(), EvalError> {
        let Some(finish) = &self.s.finish else {
            store(lanes, dtype, self.s.output.dtype, target);
            return Ok(());
        };
        let mut accumulator = Lanes::new(self.s.accumulate);
        accumulator.convert_from(lanes, dtype, self.s.accumulate);
        let mut eval = ExprEval::new(finish)?;
        let result_dtype = eval.dtype();
        let len = lanes.len();
        let lanes = eval.run(len, &mut |source, out| {
            parallel.load_finish(source, start, len, &accumulator, out)
        })?;
        store(lanes, result_dtype, self.s.output.dtype, target);
        Ok(())
    }
}

/// The coordinates along loop `l` of `len` elements of the walk from `start` on.
fn coordinates(walk: &Walk<'_>, l: usize, start: usize, len: usize, out: &mut Lanes) {
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

/// Sums and products of floats are kept in `f64`.
fn wide_dtype(combine: Combine, accumulate: DType) -> DType {
    match accumulate {
        DType::Half | DType::BFloat16 | DType::Float if matches!(combine, Combine::Add | Combine::Mul) => DType::Double,
        DType::Half | DType::BFloat16 => DType::Float,
        other => other,
    }
}

/// `len` neutral elements.
fn initial(combine: Combine, dtype: DType, len: usize) -> Lanes {
    let (float, int) = match combine {
        Combine::Add | Combine::Or => (0.0, 0),
        Combine::Mul => (1.0, 1),
        Combine::And => (1.0, if dtype == DType::Bool { 1 } else { -1 }),
        Combine::Max => (f64::NEG_INFINITY, i64::MIN),
        Combine::Min => (f64::INFINITY, i64::MAX),
    };
    match Lanes::new(dtype) {
        Lanes::F32(_) => Lanes::F32(vec![float as f32; len]),
        Lanes::F64(_) => Lanes::F64(vec![float; len]),
        Lanes::I64(_) => Lanes::I64(vec![int; len]),
        Lanes::Complex(_) => Lanes::Complex(vec![float.into(); len]),
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

/// `acc[i] = combine(acc[i], lanes[i])`
fn join(combine: Combine, dtype: DType, acc: &mut Lanes, lanes: &Lanes) -> Result<(), EvalError> {
    // The two sums that everything spends its time in; the rest goes through the general function.
    match (combine, &mut *acc, lanes) {
        (Combine::Add, Lanes::F64(acc), Lanes::F64(v)) => acc.iter_mut().zip(v).for_each(|(a, &x)| *a += x),
        (Combine::Max, Lanes::F32(acc), Lanes::F32(v)) => {
            acc.iter_mut()
                .zip(v)
                .for_each(|(a, &x)| *a = if x.is_nan() || x > *a { x } else { *a });
        }
        _ => {
            let mut out = Lanes::new(dtype);
            super::binary::apply(function(combine), acc, lanes, dtype, &mut out)
                .map_err(|_| EvalError::Undefined(format!("{combine:?}")))?;
            *acc = out;
        }
    }
    Ok(())
}

/// Folds all `lanes` into the single lane of `acc`, by halves: pairwise for sums.
fn fold(combine: Combine, dtype: DType, lanes: &Lanes, acc: &mut Lanes) -> Result<(), EvalError> {
    macro_rules! halves {
        ($variant:ident, $v:expr) => {{
            let mut now = $v.clone();
            while now.len() > 1 {
                let half = now.len().div_ceil(2);
                let odd = now.len() % 2 == 1;
                let upper = Lanes::$variant(now.split_off(half));
                let middle = if odd { now.pop() } else { None };
                let mut lower = Lanes::$variant(now);
                join(combine, dtype, &mut lower, &upper)?;
                now = match lower {
                    Lanes::$variant(v) => v,
                    _ => Vec::new(),
                };
                now.extend(middle);
            }
            if !now.is_empty() {
                join(combine, dtype, acc, &Lanes::$variant(now))?;
            }
        }};
    }
    match lanes {
        Lanes::F32(v) => halves!(F32, v),
        Lanes::F64(v) => halves!(F64, v),
        Lanes::I64(v) => halves!(I64, v),
        Lanes::Complex(v) => halves!(Complex, v),
    }
    Ok(())
}

fn append(results: &mut Lanes, one: &Lanes) {
    match (results, one) {
        (Lanes::F32(r), Lanes::F32(v)) => r.extend_from_slice(v),
        (Lanes::F64(r), Lanes::F64(v)) => r.extend_from_slice(v),
        (Lanes::I64(r), Lanes::I64(v)) => r.extend_from_slice(v),
        (Lanes::Complex(r), Lanes::Complex(v)) => r.extend_from_slice(v),
        _ => {}
    }
}

fn load_dense(bytes: &[u8], dtype: DType, out: &mut Lanes) {
    with_element!(dtype, T => {
        let raw = crate::element::elements::<<T as Element>::Raw>(bytes);
        let lanes = <T as Element>::Lane::of_mut(out);
        lanes.clear();
        lanes.extend(raw.iter().map(|&x| T::load(x)));
    });
}

/// Stores lanes of dtype `from` as elements of dtype `to`.
fn store(lanes: &Lanes, from: DType, to: DType, target: &mut [u8]) {
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
            target.iter_mut().zip(lanes).for_each(|(o, &x)| *o = T::store(x));
        }
    });
}
