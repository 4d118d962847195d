//! Programs over few elements, with precomputed element positions.
//!
//! For few elements, binding a loop nest to its operands costs more than the computation. A tape stores which element of each operand every iteration reads.
//! Each step then evaluates its expression over all iterations at once. A tape can be reused for all calls with dense operands.

use super::loop_nest::{coordinates, fold, initial, store, wide_dtype};
use super::scalar_expr::fill as constant;
use super::staged::{SMALL, Staging};
use super::{ExprEval, LaneSource};
use crate::error::EvalError;
use crate::program::expr::{Expr, Number};
use crate::program::structured::{
    Access, Combine, OutOfBounds, Program, Step, Structured, TensorId, ViewKind, ViewMap,
};
use crate::shape::layout;
use crate::shape::{Dims, TensorShape};
use crate::tensor::Tensor;
use crate::tensor::access::{Reader, Walk};
use crate::tensor::lanes::{Lane, Lanes};
use frazil_ir::DType;
use smallvec::{SmallVec, smallvec};

/// Maximum number of steps. Small programs rarely have more, and each step keeps registers.
const MAX_STEPS: usize = 8;

/// A program compiled for small, dense operands.
pub(crate) struct Tape {
    /// The tensor arguments of the call.
    pub(crate) staging: Staging,
    arguments: usize,
    steps: Vec<Loops>,
    outputs: SmallVec<[TensorId; 1]>,
}

/// A step: an expression over all iterations of a nest. The reduction loops are outside the parallel ones.
struct Loops {
    /// Extents of the loops, reduction loops first.
    extents: Dims,
    /// Number of reduction loops.
    folded: usize,
    body: ExprEval<'static>,
    inputs: SmallVec<[Reads; 2]>,
    accumulator: Option<Accumulator>,
    finish: Option<ExprEval<'static>>,
    /// The epilogue's inputs 1, 2, ...
    finish_inputs: SmallVec<[Reads; 2]>,
    output: TensorShape,
    result: Lanes,
}

/// The elements of one tensor that a nest's iterations read, in iteration order.
struct Reads {
    tensor: TensorId,
    elements: Elements,
    /// The value of a read outside of the tensor, as one lane.
    outside: Lanes,
}

enum Elements {
    /// All elements of the tensor, in row-major order.
    All,
    /// Elements by their row-major index. An index out of range reads [`Reads::outside`].
    Numbers(Box<[u32]>),
}

/// The reduction of the iterations of a nest.
struct Accumulator {
    combine: Combine,
    /// The dtype in which the accumulator is kept.
    accumulate: DType,
    lanes: Lanes,
    sums: Lanes,
    spare: Lanes,
}

impl Tape {
    /// Returns the compiled program; `None` if it is not small, contains gathers, or returns views.
    pub(crate) fn new(program: &Program) -> Result<Option<Tape>, EvalError> {
        let arguments = program.arguments.len();
        let computed = |&id: &TensorId| {
            let step = id.index().checked_sub(arguments);
            matches!(step.and_then(|s| program.steps.get(s)), Some(Step::Compute(_)))
        };
        let small = |shape: &TensorShape| is_small(&shape.sizes);
        let few = program.steps.len() <= MAX_STEPS && program.arguments.iter().all(small);
        if !few || program.steps.is_empty() || !program.outputs.iter().all(computed) {
            return Ok(None);
        }
        let mut shapes = program.arguments.clone();
        let mut steps = Vec::new();
        for step in &program.steps {
            let loops = match step {
                Step::Compute(s) => Loops::computing(s, &shapes)?,
                Step::View(v) => Loops::viewing(v, &shapes)?,
                Step::Gather(_) => None,
            };
            let Some(loops) = loops else { return Ok(None) };
            shapes.push(loops.output.clone());
            steps.push(loops);
        }
        Ok(Some(Tape {
            staging: Staging::default(),
            arguments,
            steps,
            outputs: program.outputs.clone(),
        }))
    }

    /// Returns the outputs for the staged tensors, which must fit the program.
    pub(crate) fn run(&mut self) -> Result<SmallVec<[Tensor; 1]>, EvalError> {
        let Tape {
            staging,
            arguments,
            steps,
            outputs,
        } = self;
        for at in 0..steps.len() {
            let (before, rest) = steps.split_at_mut(at);
            let operand = |id: TensorId| match id.index().checked_sub(*arguments) {
                Some(step) => before.get(step).map(|s| &s.result),
                None => staging.get(id.index()).map(|s| &s.lanes),
            };
            if let Some(step) = rest.first_mut() {
                step.run(&operand)?;
            }
        }
        let output = |&id: &TensorId| {
            let step = id.index().checked_sub(*arguments).and_then(|s| steps.get(s));
            let step = step.ok_or(EvalError::Malformed("an unknown output"))?;
            let TensorShape { dtype, sizes } = &step.output;
            Tensor::computed(*dtype, sizes, |target| {
                store(&step.result, *dtype, *dtype, target);
                Ok(())
            })
        };
        outputs.iter().map(output).collect()
    }
}

fn is_small(sizes: &[i64]) -> bool {
    layout::checked_numel(sizes).is_some_and(|n| (1..=SMALL as i64).contains(&n))
}

impl Loops {
    fn computing(s: &Structured, shapes: &[TensorShape]) -> Result<Option<Loops>, EvalError> {
        let (rank, parallel) = (s.domain.len(), s.parallel_rank());
        let (elements, folded) = s.domain.split_at(parallel.min(rank));
        if !is_small(&s.domain) || elements != s.output.sizes.as_slice() || s.combine.is_none() != folded.is_empty() {
            return Ok(None);
        }
        let order: SmallVec<[usize; 8]> = (parallel..rank).chain(0..parallel).collect();
        let reads = |accesses: &[Access], order: &[usize]| -> Option<SmallVec<[Reads; 2]>> {
            accesses
                .iter()
                .map(|a| Reads::new(a, shapes, &s.domain, order))
                .collect()
        };
        let each = order.get(folded.len()..).unwrap_or_default();
        let (Some(inputs), Some(finish_inputs)) = (reads(&s.inputs, &order), reads(&s.finish_inputs, each)) else {
            return Ok(None);
        };
        let accumulator = s.combine.map(|combine| Accumulator {
            combine,
            accumulate: s.accumulate,
            lanes: Lanes::new(s.accumulate),
            sums: Lanes::new(s.accumulate),
            spare: Lanes::new(s.accumulate),
        });
        Ok(Some(Loops {
            extents: order.iter().map(|&l| s.domain[l]).collect(),
            folded: folded.len(),
            body: ExprEval::owning(s.body.clone())?,
            inputs,
            accumulator,
            finish: s.finish.clone().map(ExprEval::owning).transpose()?,
            finish_inputs,
            output: s.output.clone(),
            result: Lanes::new(s.output.dtype),
        }))
    }

    fn viewing(v: &ViewMap, shapes: &[TensorShape]) -> Result<Option<Loops>, EvalError> {
        let Some(base) = shapes.get(v.tensor.index()).filter(|_| is_small(&v.output.sizes)) else {
            return Ok(None);
        };
        let reads = match &v.kind {
            ViewKind::Reshape => Some(Reads {
                tensor: v.tensor,
                elements: Elements::All,
                outside: Lanes::new(base.dtype),
            }),
            ViewKind::Affine(map) => {
                let access = Access {
                    tensor: v.tensor,
                    map: map.iter().cloned().collect(),
                    out_of_bounds: OutOfBounds::Never,
                };
                let order: SmallVec<[usize; 8]> = (0..v.output.sizes.len()).collect();
                Reads::new(&access, shapes, &v.output.sizes, &order)
            }
        };
        let Some(reads) = reads else { return Ok(None) };
        Ok(Some(Loops {
            extents: v.output.sizes.clone(),
            folded: 0,
            body: ExprEval::owning(Expr::identity(base.dtype))?,
            inputs: smallvec![reads],
            accumulator: None,
            finish: None,
            finish_inputs: SmallVec::new(),
            output: v.output.clone(),
            result: Lanes::new(v.output.dtype),
        }))
    }

    fn run<'l>(&mut self, operand: &impl Fn(TensorId) -> Option<&'l Lanes>) -> Result<(), EvalError> {
        let Loops {
            extents,
            folded,
            body,
            inputs,
            accumulator,
            finish,
            finish_inputs,
            output,
            result,
        } = self;
        let (around, each) = extents.split_at(*folded);
        let (steps, numel) = (product(around), product(each));
        let position = |n: u32| match (n as usize).checked_sub(each.len()) {
            Some(folded) => folded,
            None => n as usize + around.len(),
        };
        let body_dtype = body.dtype();
        let lanes = body.run(steps * numel, &mut |source, lanes| match source {
            LaneSource::Input(n) => read(inputs.get(n as usize), operand, lanes),
            LaneSource::Index(n) => coordinates(&walk(extents), position(n), 0, steps * numel, lanes),
        })?;
        let (lanes, dtype) = match accumulator {
            Some(accumulator) => accumulator.run((lanes, body_dtype), numel)?,
            None => (lanes, body_dtype),
        };
        let (lanes, dtype) = match finish {
            Some(finish) => {
                let dtype = finish.dtype();
                let lanes = finish.run(numel, &mut |source, out| match source {
                    LaneSource::Input(0) => out.copy_from(lanes),
                    LaneSource::Input(n) => read(finish_inputs.get(n as usize - 1), operand, out),
                    LaneSource::Index(n) => coordinates(&walk(each), n as usize, 0, numel, out),
                })?;
                (lanes, dtype)
            }
            None => (lanes, dtype),
        };
        result.convert_from(lanes, dtype, output.dtype);
        Ok(())
    }
}

/// Returns a walk over all loops.
fn walk(extents: &[i64]) -> Walk<'_> {
    Walk {
        extents,
        first: 0,
        end: extents.len(),
        fixed: &[],
    }
}

/// Returns the number of iterations of loops with these extents, whose product is small.
fn product(extents: &[i64]) -> usize {
    extents.iter().product::<i64>() as usize
}

impl Accumulator {
    /// Reduces the lanes, of the given dtype, to `numel` accumulators.
    fn run(&mut self, (lanes, dtype): (&Lanes, DType), numel: usize) -> Result<(&Lanes, DType), EvalError> {
        let wide = wide_dtype(self.combine, self.accumulate);
        // Folding works in place, on a copy: the body's register may be a constant that stays.
        match dtype == wide {
            true => self.lanes.copy_from(lanes),
            false => self.lanes.convert_from(lanes, dtype, wide),
        }
        initial(self.combine, wide, numel, &mut self.sums);
        fold(
            self.combine,
            wide,
            numel,
            &mut self.lanes,
            &mut self.sums,
            &mut self.spare,
        )?;
        if wide == self.accumulate {
            return Ok((&self.sums, wide));
        }
        self.spare.convert_from(&self.sums, wide, self.accumulate);
        Ok((&self.spare, self.accumulate))
    }
}

impl Reads {
    /// Returns the elements that `access` reads in the loops `order` of `domain`, outer loops first. All other loops are at index 0. `None` for a malformed
    /// access, whose error the general implementation reports.
    fn new(access: &Access, shapes: &[TensorShape], domain: &[i64], order: &[usize]) -> Option<Reads> {
        let shape = shapes.get(access.tensor.index())?;
        let numel = layout::checked_numel(&shape.sizes)?;
        // A tensor whose elements are their own numbers tells which are read.
        let numbers: Vec<i64> = (0..numel).collect();
        let numbers = Tensor::from_i64(&numbers, &shape.sizes).ok()?;
        let (fill, access) = match access.out_of_bounds {
            OutOfBounds::Never => (Number::Int(0), access.clone()),
            OutOfBounds::Value(fill) => {
                let out_of_bounds = OutOfBounds::Value(Number::Int(-1));
                (
                    fill,
                    Access {
                        out_of_bounds,
                        ..access.clone()
                    },
                )
            }
        };
        let mut outside = Lanes::new(shape.dtype);
        constant(&mut outside, fill, shape.dtype, 1);
        let bytes = numbers.storage().bytes();
        let reader = Reader::new(&access, &numbers, &bytes, domain)?.restricted(order, &[]);
        let extents: Dims = order.iter().map(|&l| domain[l]).collect();
        let zeros: Dims = smallvec![0; extents.len()];
        let mut read = Lanes::new(DType::Long);
        reader.read(
            &Walk {
                fixed: &zeros,
                ..walk(&extents)
            },
            0,
            product(&extents),
            &mut read,
        );
        let read = i64::of(&read);
        let elements = match read.iter().copied().eq(0..numel) {
            true => Elements::All,
            // What is outside has a number beyond all others.
            false => Elements::Numbers(read.iter().map(|&n| u32::try_from(n).unwrap_or(u32::MAX)).collect()),
        };
        Some(Reads {
            tensor: access.tensor,
            elements,
            outside,
        })
    }
}

/// Fills a register with the elements that `reads` selects.
fn read<'l>(reads: Option<&Reads>, operand: &impl Fn(TensorId) -> Option<&'l Lanes>, to: &mut Lanes) {
    fn gather<T: Lane>(to: &mut Lanes, from: &[T], numbers: &[u32], outside: &Lanes) {
        let outside = T::of(outside).first().copied().unwrap_or_default();
        let to = T::of_mut(to);
        to.clear();
        to.extend(
            numbers
                .iter()
                .map(|&n| from.get(n as usize).copied().unwrap_or(outside)),
        );
    }
    let Some(reads) = reads else { return };
    let Some(from) = operand(reads.tensor) else { return };
    match (&reads.elements, from) {
        (Elements::All, from) => to.copy_from(from),
        (Elements::Numbers(numbers), Lanes::F32(from)) => gather(to, from, numbers, &reads.outside),
        (Elements::Numbers(numbers), Lanes::F64(from)) => gather(to, from, numbers, &reads.outside),
        (Elements::Numbers(numbers), Lanes::I64(from)) => gather(to, from, numbers, &reads.outside),
        (Elements::Numbers(numbers), Lanes::Complex(from)) => gather(to, from, numbers, &reads.outside),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::eval_program;
    use crate::program::expr::{BinaryOp, ExprOp};
    use crate::program::structured::{Affine, Iteration};

    fn shape(dtype: DType, sizes: &[i64]) -> TensorShape {
        TensorShape {
            dtype,
            sizes: sizes.into(),
        }
    }

    fn affine(coefficients: &[i64], offset: i64) -> Affine {
        Affine {
            coefficients: coefficients.into(),
            offset,
        }
    }

    /// Returns a test program with three results: a transposed view; the sum of padded, weighted windows of three elements; and their row-wise maximum.
    fn program(dtype: DType) -> Program {
        let transposed = ViewMap {
            tensor: TensorId::new(0),
            kind: ViewKind::Affine(vec![affine(&[0, 1], 0), affine(&[1, 0], 0)]),
            output: shape(dtype, &[3, 5]),
        };
        let mut product = Expr::new();
        let (x, w) = (product.input(0, dtype), product.input(1, dtype));
        product.binary(BinaryOp::Mul, x, w);
        let mut placed = Expr::new();
        let (sum, column) = (placed.input(0, dtype), placed.push(ExprOp::Index(1), DType::Long));
        let (column, bias) = (placed.cast(column, dtype), placed.input(1, dtype));
        let sum = placed.binary(BinaryOp::Add, sum, column);
        placed.binary(BinaryOp::Mul, sum, bias);
        let windows = Structured {
            domain: [3, 5, 3].as_slice().into(),
            iterations: smallvec![Iteration::Parallel, Iteration::Parallel, Iteration::Reduction],
            inputs: smallvec![
                Access {
                    tensor: TensorId::new(3),
                    map: smallvec![affine(&[1, 0, 0], 0), affine(&[0, 1, 1], -1)],
                    out_of_bounds: OutOfBounds::Value(Number::Int(2)),
                },
                Access {
                    tensor: TensorId::new(1),
                    map: smallvec![affine(&[0, 0, 1], 0)],
                    out_of_bounds: OutOfBounds::Never,
                },
            ],
            body: product,
            combine: Some(Combine::Add),
            accumulate: dtype,
            finish: Some(placed),
            finish_inputs: smallvec![Access {
                tensor: TensorId::new(2),
                map: smallvec![affine(&[1, 0, 0], 0)],
                out_of_bounds: OutOfBounds::Never,
            }],
            output: shape(dtype, &[3, 5]),
        };
        let rows = Structured {
            domain: [3, 5].as_slice().into(),
            iterations: smallvec![Iteration::Parallel, Iteration::Reduction],
            inputs: smallvec![Access {
                tensor: TensorId::new(4),
                map: smallvec![affine(&[1, 0], 0), affine(&[0, 1], 0)],
                out_of_bounds: OutOfBounds::Never,
            }],
            body: Expr::identity(dtype),
            combine: Some(Combine::Max),
            accumulate: dtype,
            finish: None,
            finish_inputs: SmallVec::new(),
            output: shape(dtype, &[3]),
        };
        Program {
            arguments: vec![shape(dtype, &[5, 3]), shape(dtype, &[3]), shape(dtype, &[3])],
            steps: vec![
                Step::View(transposed),
                Step::Compute(Box::new(windows)),
                Step::Compute(Box::new(rows)),
            ],
            outputs: smallvec![TensorId::new(4), TensorId::new(5)],
        }
    }

    #[test]
    fn a_tape_gives_what_its_program_gives() {
        for dtype in [DType::Float, DType::Double, DType::Half, DType::Long] {
            let program = program(dtype);
            let tensor = |sizes: &[i64]| {
                let numel = sizes.iter().product::<i64>();
                let values: Vec<f32> = (0..numel).map(|i| ((i * 7) % 11) as f32 - 4.0).collect();
                Tensor::from_f32(&values, sizes)
                    .and_then(|t| t.to_dtype(dtype))
                    .expect("fits")
            };
            let args = [tensor(&[5, 3]), tensor(&[3]), tensor(&[3])];
            let mut tape = Tape::new(&program).expect("well-formed").expect("small");
            // Twice: registers are kept.
            for _ in 0..2 {
                for (at, t) in args.iter().enumerate() {
                    assert!(tape.staging.stage(at, t));
                }
                let (got, expected) = (tape.run().expect("runs"), eval_program(&program, &args).expect("runs"));
                assert_eq!(got.len(), 2);
                for (got, expected) in got.iter().zip(&expected) {
                    assert_eq!((got.dtype(), got.sizes()), (expected.dtype(), expected.sizes()));
                    assert_eq!(got.to_f64_vec(), expected.to_f64_vec(), "{dtype}");
                }
            }
        }
    }

    #[test]
    fn large_programs_and_views_have_none() {
        let mut large = program(DType::Float);
        large.arguments[0].sizes = smallvec![500, 3];
        assert!(Tape::new(&large).expect("well-formed").is_none());
        let mut view = program(DType::Float);
        view.outputs = smallvec![TensorId::new(3)];
        assert!(Tape::new(&view).expect("well-formed").is_none());
    }
}
