//! Construction of [`Program`]s by operator entries.

use crate::error::OpError;
use crate::operator::args::Args;
use crate::program::expr::Expr;
use crate::program::gather::{Coordinate, Gather};
use crate::program::structured::{
    Access, Affine, Combine, Iteration, OutOfBounds, Program, Step, Structured, TensorId, ViewKind, ViewMap,
};
use crate::program::sym::{Formula, Sym};
use crate::scalar::promote::compute_dtype;
use crate::shape::layout;
use crate::shape::{Dims, TensorShape};
use crate::tensor::Tensor;
use frazil_ir::DType;

/// Returns the coefficient for a loop of `extent` iterations with step `step`. With at most one iteration, the coefficient has no effect, and is bounded so
/// that products with strides do not overflow.
pub fn step_of(step: i64, extent: i64) -> i64 {
    if extent <= 1 { step.min(1 << 24) } else { step }
}

/// A program under construction. Tensors are numbered, and every step adds a tensor.
pub struct ProgramBuilder {
    arguments: Vec<TensorShape>,
    steps: Vec<Step>,
    shapes: Vec<TensorShape>,
}

/// A reduction: the arguments of [`ProgramBuilder::reduce`] besides the operand and the dimensions.
#[derive(Clone, Copy)]
pub struct Accumulation {
    /// The combiner.
    pub combine: Combine,
    /// The dtype of the accumulator.
    pub accumulate: DType,
    /// The dtype of the result.
    pub output: DType,
}

impl ProgramBuilder {
    /// Returns a builder of programs whose arguments are the tensors of a call.
    pub fn new(args: &Args<'_>) -> ProgramBuilder {
        ProgramBuilder::over(args.shapes().to_vec())
    }

    /// Returns a builder of programs whose arguments are tensors of these shapes.
    pub fn over(arguments: Vec<TensorShape>) -> ProgramBuilder {
        ProgramBuilder {
            shapes: arguments.clone(),
            arguments,
            steps: Vec::new(),
        }
    }

    /// Returns the program with the results `outputs`.
    pub fn finish(self, outputs: &[TensorId]) -> Result<Program, OpError> {
        Ok(Program {
            arguments: self.arguments,
            steps: self.steps,
            outputs: outputs.into(),
        })
    }

    /// Returns the shape of tensor `t`; a zero-dimensional `Float` for an invalid number.
    pub fn shape(&self, t: TensorId) -> TensorShape {
        let unknown = || TensorShape {
            dtype: DType::Float,
            sizes: Dims::new(),
        };
        self.shapes.get(t.index()).cloned().unwrap_or_else(unknown)
    }

    /// Returns the sizes of tensor `t`.
    pub fn sizes(&self, t: TensorId) -> Dims {
        self.shape(t).sizes
    }

    /// Returns the dtype of tensor `t`.
    pub fn dtype(&self, t: TensorId) -> DType {
        self.shape(t).dtype
    }

    /// Returns the rank of tensor `t`.
    pub fn rank(&self, t: TensorId) -> usize {
        self.shape(t).sizes.len()
    }

    fn push(&mut self, step: Step, output: TensorShape) -> TensorId {
        self.steps.push(step);
        self.shapes.push(output);
        TensorId::new(self.shapes.len() - 1)
    }

    /// Appends a loop nest.
    pub fn compute(&mut self, s: Structured) -> TensorId {
        let output = s.output.clone();
        self.push(Step::Compute(Box::new(s)), output)
    }

    /// Appends a gather, which reads elements at the indices that integer tensors contain.
    pub fn gather(&mut self, g: Gather) -> TensorId {
        let output = g.output.clone();
        self.push(Step::Gather(Box::new(g)), output)
    }

    /// Returns the access that broadcasts tensor `t` to loops `0..sizes.len()` of a domain of `rank` loops.
    pub fn broadcast_access(&self, t: TensorId, parallel: usize, rank: usize) -> Access {
        let sizes = self.sizes(t);
        let lead = parallel.saturating_sub(sizes.len());
        let map = |(d, &size): (usize, &i64)| match size {
            1 => Affine::constant(rank, 0),
            _ => Affine::index(rank, lead + d),
        };
        Access {
            tensor: t,
            map: sizes.iter().enumerate().map(map).collect(),
            out_of_bounds: OutOfBounds::Never,
        }
    }

    /// Appends `body` over the broadcast `inputs`, whose elements are its inputs in order. The result has `body`'s
    /// dtype.
    pub fn pointwise(&mut self, inputs: &[TensorId], body: Expr) -> Result<TensorId, OpError> {
        let mut sizes = Dims::new();
        for &t in inputs {
            let shape = self.shape(t);
            sizes = layout::broadcast(&sizes, &shape.sizes).ok_or_else(|| broadcast_error(&sizes, &shape.sizes))?;
        }
        self.pointwise_to(inputs, &sizes, body)
    }

    /// Appends a step like [`ProgramBuilder::pointwise`], with given result sizes to which every input broadcasts.
    pub fn pointwise_to(&mut self, inputs: &[TensorId], sizes: &[i64], body: Expr) -> Result<TensorId, OpError> {
        let rank = sizes.len();
        let dtype = body.dtype().unwrap_or(DType::Float);
        let s = Structured {
            domain: sizes.into(),
            iterations: smallvec::smallvec![Iteration::Parallel; rank],
            inputs: inputs.iter().map(|&t| self.broadcast_access(t, rank, rank)).collect(),
            body,
            combine: None,
            accumulate: dtype,
            finish: None,
            finish_inputs: Default::default(),
            output: TensorShape {
                dtype,
                sizes: sizes.into(),
            },
        };
        Ok(self.compute(s))
    }

    /// Appends a formula over the broadcast `inputs`, each in its own dtype widened for computation. The result is rounded to `dtype`.
    pub fn map(
        &mut self,
        inputs: &[TensorId],
        dtype: DType,
        formula: impl for<'f> FnOnce(&'f Formula, &[Sym<'f>]) -> Sym<'f>,
    ) -> Result<TensorId, OpError> {
        let dtypes: Vec<DType> = inputs.iter().map(|&t| self.dtype(t)).collect();
        let body = Formula::build(dtype, |f| {
            let syms: Vec<Sym<'_>> = dtypes
                .iter()
                .enumerate()
                .map(|(n, &d)| f.input(n, d).cast(compute_dtype(d)))
                .collect();
            formula(f, &syms)
        });
        self.pointwise(inputs, body)
    }

    /// Returns `t` converted to `dtype`, or `t` itself if it has that dtype.
    pub fn cast(&mut self, t: TensorId, dtype: DType) -> Result<TensorId, OpError> {
        if self.dtype(t) == dtype {
            Ok(t)
        } else {
            self.map(&[t], dtype, |_, x| x[0])
        }
    }

    /// Returns a new tensor of sizes `sizes` filled with a number, which must be in the range of `dtype`.
    pub fn fill(&mut self, dtype: DType, sizes: &[i64], value: crate::scalar::Scalar) -> Result<TensorId, OpError> {
        Tensor::byte_size(dtype, sizes)?;
        let value = value.checked_fill(dtype, sizes)?;
        let body = Formula::build(dtype, |f| f.number(value, dtype));
        self.pointwise_to(&[], sizes, body)
    }

    /// Reduces `formula` of `inputs` (of equal sizes, or broadcasting) over `dims`, then applies `finish` to the accumulator.
    ///
    /// The formula reads each input widened for computation, and the loops' coordinates by `Formula::index`: the kept dimensions first, then `dims` in order.
    pub fn reduce(
        &mut self,
        inputs: &[TensorId],
        dims: &[usize],
        keepdim: bool,
        accumulation: Accumulation,
        formula: impl for<'f> FnOnce(&'f Formula, &[Sym<'f>]) -> Sym<'f>,
        finish: Option<fn(Sym<'_>) -> Sym<'_>>,
    ) -> Result<TensorId, OpError> {
        let finish = finish.map(|g| Formula::build(accumulation.output, |f| g(f.input(0, accumulation.accumulate))));
        self.reduce_with(inputs, dims, keepdim, accumulation, formula, finish)
    }

    /// Reduces like [`ProgramBuilder::reduce`], with the epilogue as an expression whose input 0 is the accumulator.
    pub fn reduce_with(
        &mut self,
        inputs: &[TensorId],
        dims: &[usize],
        keepdim: bool,
        accumulation: Accumulation,
        formula: impl for<'f> FnOnce(&'f Formula, &[Sym<'f>]) -> Sym<'f>,
        finish: Option<Expr>,
    ) -> Result<TensorId, OpError> {
        let mut sizes = Dims::new();
        for &t in inputs {
            let other = self.sizes(t);
            sizes = layout::broadcast(&sizes, &other).ok_or_else(|| broadcast_error(&sizes, &other))?;
        }
        let rank = sizes.len();
        let kept: Vec<usize> = (0..rank).filter(|d| !dims.contains(d)).collect();
        let reduced: Vec<usize> = dims.iter().copied().filter(|&d| d < rank).collect();
        // A tensor without dimensions has one element to accumulation: a loop of extent 1.
        let extra = usize::from(reduced.is_empty());
        let loops = rank + extra;
        let mut domain: Dims = kept.iter().chain(&reduced).map(|&d| sizes[d]).collect();
        domain.extend(std::iter::repeat_n(1, extra));
        let loop_of = |d: usize| match kept.iter().position(|&k| k == d) {
            Some(i) => i,
            None => kept.len() + reduced.iter().position(|&r| r == d).unwrap_or(0),
        };
        let access = |&t: &TensorId| {
            let own = self.sizes(t);
            let lead = rank - own.len();
            let map = |(d, &size): (usize, &i64)| match size {
                1 => Affine::constant(loops, 0),
                _ => Affine::index(loops, loop_of(lead + d)),
            };
            Access {
                tensor: t,
                map: own.iter().enumerate().map(map).collect(),
                out_of_bounds: OutOfBounds::Never,
            }
        };
        let dtypes: Vec<DType> = inputs.iter().map(|&t| self.dtype(t)).collect();
        let body = Formula::build(accumulation.accumulate, |f| {
            let syms: Vec<Sym<'_>> = dtypes
                .iter()
                .enumerate()
                .map(|(n, &d)| f.input(n, d).cast(compute_dtype(d)))
                .collect();
            formula(f, &syms)
        });
        let mut iterations = smallvec::smallvec![Iteration::Parallel; kept.len()];
        iterations.resize(loops, Iteration::Reduction);
        let s = Structured {
            domain,
            iterations,
            inputs: inputs.iter().map(access).collect(),
            body,
            combine: Some(accumulation.combine),
            accumulate: accumulation.accumulate,
            finish,
            finish_inputs: Default::default(),
            output: TensorShape {
                dtype: accumulation.output,
                sizes: kept.iter().map(|&d| sizes[d]).collect(),
            },
        };
        let out = self.compute(s);
        if !keepdim || rank == 0 {
            return Ok(out);
        }
        let with_ones: Dims = (0..rank)
            .map(|d| if dims.contains(&d) { 1 } else { sizes[d] })
            .collect();
        self.reshape(out, &with_ones)
    }

    /// Returns `t` with new sizes of the same number of elements, in row-major order.
    pub fn reshape(&mut self, t: TensorId, sizes: &[i64]) -> Result<TensorId, OpError> {
        if self.shape(t).sizes.as_slice() == sizes {
            return Ok(t);
        }
        if layout::checked_numel(sizes) != layout::checked_numel(&self.shape(t).sizes) {
            let numel = self.shape(t).numel();
            return Err(OpError::raised(format!(
                "shape '{sizes:?}' is invalid for input of size {numel}"
            )));
        }
        let output = TensorShape {
            dtype: self.dtype(t),
            sizes: sizes.into(),
        };
        Ok(self.push(
            Step::View(ViewMap {
                tensor: t,
                kind: ViewKind::Reshape,
                output: output.clone(),
            }),
            output,
        ))
    }

    /// Returns a view of `t`. The view's element at an index is the element of `t` at the coordinates that `map` computes, one per dimension of `t`.
    pub fn view(&mut self, t: TensorId, sizes: &[i64], map: Vec<Affine>) -> TensorId {
        let output = TensorShape {
            dtype: self.dtype(t),
            sizes: sizes.into(),
        };
        self.push(
            Step::View(ViewMap {
                tensor: t,
                kind: ViewKind::Affine(map),
                output: output.clone(),
            }),
            output,
        )
    }

    /// Returns a view whose dimension `i` is dimension `order[i]` of `t`.
    pub fn permute(&mut self, t: TensorId, order: &[usize]) -> TensorId {
        let sizes = self.sizes(t);
        let rank = sizes.len();
        let new: Dims = order.iter().map(|&d| sizes[d]).collect();
        let map = (0..rank)
            .map(|d| Affine::index(rank, order.iter().position(|&o| o == d).unwrap_or(0)))
            .collect();
        self.view(t, &new, map)
    }

    /// Returns `t` repeated along broadcast dimensions.
    pub fn expand(&mut self, t: TensorId, sizes: &[i64]) -> Result<TensorId, OpError> {
        let old = self.sizes(t);
        let rank = sizes.len();
        let expands = rank >= old.len()
            && old
                .iter()
                .rev()
                .zip(sizes.iter().rev())
                .all(|(&o, &n)| o == n || o == 1);
        if !expands {
            return Err(OpError::raised(format!(
                "The expanded size of the tensor ({sizes:?}) must match the existing size ({:?}) at non-singleton dimensions",
                old.as_slice()
            )));
        }
        let mut map = self.broadcast_access(t, rank, rank).map.into_vec();
        // A dimension that stays keeps its index even where its extent is 1.
        for (own, affine) in map.iter_mut().enumerate() {
            let d = rank - old.len() + own;
            if sizes[d] == 1 {
                *affine = Affine::index(rank, d);
            }
        }
        Ok(self.view(t, sizes, map))
    }

    /// Returns `t` with a dimension of extent 1 inserted at `dim`.
    pub fn unsqueeze(&mut self, t: TensorId, dim: usize) -> TensorId {
        let mut sizes = self.sizes(t);
        let rank = sizes.len();
        let dim = dim.min(rank);
        sizes.insert(dim, 1);
        let map = (0..rank)
            .map(|d| Affine::index(rank + 1, if d < dim { d } else { d + 1 }))
            .collect();
        self.view(t, &sizes, map)
    }

    /// Returns `t` without the dimensions `dims`, which have extent 1.
    pub fn squeeze(&mut self, t: TensorId, dims: &[usize]) -> TensorId {
        let old = self.sizes(t);
        let kept: Vec<usize> = (0..old.len()).filter(|d| !dims.contains(d)).collect();
        let sizes: Dims = kept.iter().map(|&d| old[d]).collect();
        let map = (0..old.len())
            .map(|d| match kept.iter().position(|&k| k == d) {
                Some(i) => Affine::index(kept.len(), i),
                None => Affine::constant(kept.len(), 0),
            })
            .collect();
        self.view(t, &sizes, map)
    }

    /// Returns `t` at `index` of dimension `dim`, which is removed.
    pub fn select(&mut self, t: TensorId, dim: usize, index: i64) -> TensorId {
        let mut sizes = self.sizes(t);
        let rank = sizes.len();
        sizes.remove(dim);
        let map = (0..rank)
            .map(|d| match d.cmp(&dim) {
                std::cmp::Ordering::Less => Affine::index(rank - 1, d),
                std::cmp::Ordering::Equal => Affine::constant(rank - 1, index),
                std::cmp::Ordering::Greater => Affine::index(rank - 1, d - 1),
            })
            .collect();
        self.view(t, &sizes, map)
    }

    /// Returns `length` elements of `t` along `dim` from `start`, every `step`-th.
    pub fn slice(&mut self, t: TensorId, dim: usize, start: i64, length: i64, step: i64) -> TensorId {
        let mut sizes = self.sizes(t);
        let rank = sizes.len();
        sizes[dim] = length;
        let mut map: Vec<Affine> = (0..rank).map(|d| Affine::index(rank, d)).collect();
        map[dim].coefficients[dim] = step_of(step, length);
        map[dim].offset = start;
        // An empty slice reads nothing: keep the view inside the storage.
        if length == 0 {
            map[dim].offset = 0;
        }
        self.view(t, &sizes, map)
    }

    /// Returns a contraction: `out[p] = finish(Σ_r in0 · in1)` over a domain whose first `parallel` loops are the output's dimensions. Products and sums are
    /// computed in `accumulate`; the result has dtype `output`.
    pub fn contract(
        &mut self,
        domain: &[i64],
        parallel: usize,
        operands: [Access; 2],
        (accumulate, output): (DType, DType),
        finish: Option<(Expr, Vec<Access>)>,
    ) -> TensorId {
        let dtypes = [self.dtype(operands[0].tensor), self.dtype(operands[1].tensor)];
        let body = Formula::build(accumulate, |f| {
            f.input(0, dtypes[0]).cast(accumulate) * f.input(1, dtypes[1]).cast(accumulate)
        });
        let mut iterations = smallvec::smallvec![Iteration::Parallel; parallel];
        iterations.resize(domain.len(), Iteration::Reduction);
        let (finish, finish_inputs) = match finish {
            Some((e, inputs)) => (Some(e), inputs.into()),
            None => (None, Default::default()),
        };
        self.compute(Structured {
            domain: domain.into(),
            iterations,
            inputs: operands.into_iter().collect(),
            body,
            combine: Some(Combine::Add),
            accumulate,
            finish,
            finish_inputs,
            output: TensorShape {
                dtype: output,
                sizes: domain.get(..parallel).unwrap_or(&[]).into(),
            },
        })
    }
}

impl ProgramBuilder {
    /// Returns a coordinate that is the element of index tensor `t`. The dimensions of `t` are broadcast to those of the result from `first` on; the result has
    /// `rank` dimensions.
    pub fn index_coordinate(&self, t: TensorId, first: usize, rank: usize) -> Coordinate {
        let map = |(d, &size): (usize, &i64)| match size {
            1 => Affine::constant(rank, 0),
            _ => Affine::index(rank, first + d),
        };
        Coordinate::Value {
            tensor: t,
            map: self.sizes(t).iter().enumerate().map(map).collect(),
        }
    }
}

impl Program {
    /// Returns the shape of every tensor of the program, arguments first.
    pub fn shapes(&self) -> Vec<TensorShape> {
        let steps = self.steps.iter().map(|s| match s {
            Step::Compute(s) => s.output.clone(),
            Step::View(v) => v.output.clone(),
            Step::Gather(g) => g.output.clone(),
        });
        self.arguments.iter().cloned().chain(steps).collect()
    }

    /// Returns the same program, in which results that are views or arguments are replaced by copies.
    pub(crate) fn copied(self) -> Result<Program, OpError> {
        let mut p = ProgramBuilder {
            shapes: self.shapes(),
            arguments: self.arguments,
            steps: self.steps,
        };
        let copy = |p: &mut ProgramBuilder, t| {
            let dtype = p.dtype(t);
            p.map(&[t], dtype, |_, x| x[0])
        };
        let outputs = self
            .outputs
            .iter()
            .map(|&t| copy(&mut p, t))
            .collect::<Result<Vec<_>, _>>()?;
        p.finish(&outputs)
    }

    /// Returns dtype and sizes of each result, computed without elements.
    pub fn output_shapes(&self) -> Vec<TensorShape> {
        let shapes = self.shapes();
        self.outputs
            .iter()
            .filter_map(|&t| shapes.get(t.index()).cloned())
            .collect()
    }

    /// Returns the argument that tensor `t` is, or is a view of through any number of view steps; `None` for computed tensors.
    pub fn viewed_argument(&self, t: TensorId) -> Option<TensorId> {
        let mut t = t.index();
        loop {
            let Some(step) = t.checked_sub(self.arguments.len()) else {
                return Some(TensorId::new(t));
            };
            match self.steps.get(step) {
                Some(Step::View(v)) => t = v.tensor.index(),
                _ => return None,
            }
        }
    }
}

/// Returns PyTorch's error for shapes that do not broadcast.
pub fn broadcast_error(a: &[i64], b: &[i64]) -> OpError {
    let rank = a.len().max(b.len());
    let at = |s: &[i64], d: usize| {
        (d + s.len())
            .checked_sub(rank)
            .and_then(|i| s.get(i).copied())
            .unwrap_or(1)
    };
    for d in (0..rank).rev() {
        let (x, y) = (at(a, d), at(b, d));
        if x != y && x != 1 && y != 1 {
            return OpError::raised(format!(
                "The size of tensor a ({x}) must match the size of tensor b ({y}) at non-singleton dimension {d}"
            ));
        }
    }
    OpError::raised(format!("sizes {a:?} and {b:?} do not broadcast"))
}
