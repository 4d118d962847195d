//! Loop nests: one vectorised loop if the accesses allow it, otherwise scalar loops.

mod ahead;
mod combine;
mod read;
mod reduction;

use crate::emit::builder::{Emitter, Int, Val};
use crate::emit::expr::{self, ExprEmitter, Leaves};
use crate::emit::family::{EmitKernel, InvalidKernel};
use crate::emit::function::KernelFunction;
use crate::emit::math::Floats;
use frazil_ir::DType;
use frazil_planner::kernel::{Loops, Place, Read, Stage, Write};
use frazil_runtime::expr::{Expr, ExprNode, ExprOp};
use frazil_runtime::structured::Affine;
use read::{lane_indices, lanes_agree};

/// Maximum scratch memory of a task, in bytes.
const MAX_LOCAL_BYTES: i64 = 64 * 1024;

impl EmitKernel for Loops {
    fn check(&self) -> Result<(), InvalidKernel> {
        check(self)?;
        let expressions = self.stages.iter().flat_map(|s| s.expressions());
        Ok(expressions.into_iter().try_for_each(expr::check)?)
    }

    fn emit(&self, function: &mut KernelFunction<'_>, _phase: usize) {
        let loops = self.map(&mut |n| function.number(*n));
        emit(function, self, &loops);
    }
}

/// Returns an error if code cannot be emitted for `spec`, for example because an operand is in a buffer that does not exist.
fn check(spec: &Loops) -> Result<(), String> {
    let local_bytes: i64 = spec
        .locals
        .iter()
        .map(|l| l.elements.max(0) * l.dtype.size() as i64)
        .sum();
    if local_bytes > MAX_LOCAL_BYTES {
        return Err(format!(
            "{local_bytes} bytes of scratch memory, at most {MAX_LOCAL_BYTES} are allowed"
        ));
    }
    for (i, stage) in spec.stages.iter().enumerate() {
        let rank = spec.rank(stage);
        let affine_ok = |a: &Affine| a.coefficients.len() == rank;
        let place_ok = |p: Place| match p {
            Place::Argument(n) => (n as usize) < spec.arguments.len(),
            Place::Local(n) => (n as usize) < spec.locals.len(),
        };
        if !stage.writes().all(|w| place_ok(w.place) && affine_ok(&w.index)) {
            return Err(format!("stage {i}: the place or rank of what is written"));
        }
        for list in [&stage.inputs, &stage.finish_inputs] {
            for (n, r) in list.iter().enumerate() {
                let guards = r.guards.iter().all(|g| affine_ok(&g.index));
                let indirect = r.indirect.iter().all(|x| (x.input as usize) < n && x.extent > 0);
                if !place_ok(r.place) || !affine_ok(&r.index) || !guards || !indirect {
                    return Err(format!(
                        "stage {i}: the place, rank, guards or indirection of operand {n}"
                    ));
                }
            }
        }
        if !stage.indices.iter().all(affine_ok) {
            return Err(format!("stage {i}: the rank of an index"));
        }
        let finish_inputs = stage.finish.as_ref().map_or(0, |f| f.input_count());
        let (reading, folded) = match &stage.kept {
            Some(kept) => (&kept.body, stage.body.input_count()),
            None => (&stage.body, 0),
        };
        if reading.input_count() > stage.inputs.len() || folded > 1 || finish_inputs > stage.finish_inputs.len() + 1 {
            return Err(format!("stage {i}: an expression reads more operands than there are"));
        }
        let indices = |x: &Expr| {
            x.nodes()
                .iter()
                .all(|n| !matches!(n.op, ExprOp::Index(k) if k as usize >= stage.indices.len()))
        };
        if !stage.expressions().all(indices) {
            return Err(format!("stage {i}: an expression uses an index that is not defined"));
        }
        if stage.combine.is_none() && (!stage.reduction.is_empty() || stage.kept.is_some()) {
            return Err(format!("stage {i}: reduction loops without a combination"));
        }
        for dtype in spec
            .arguments
            .iter()
            .chain(spec.locals.iter().map(|l| &l.dtype))
            .chain([&stage.accumulate])
        {
            if expr::element_type(*dtype).is_none() {
                return Err(format!("no native arithmetic for elements of dtype {dtype:?}"));
            }
        }
    }
    Ok(())
}

/// Emits all tasks of code that serves `kernel` and other kernels. `spec` is the kernel with its integers as constants or arguments of the code.
fn emit<'c>(function: &mut KernelFunction<'c>, kernel: &Loops, spec: &Loops<Int<'c>>) {
    let locals: Vec<_> = spec
        .locals
        .iter()
        .map(|l| {
            let bytes = match function.e.mul(l.elements, l.dtype.size() as i64) {
                Int::Const(bytes) => Int::Const(bytes.max(1)),
                bytes => bytes,
            };
            function.e.stack(bytes)
        })
        .collect();
    function.for_each_task(|e, buffers, task| {
        let outer = e.delinearize(task, &spec.outer);
        for (number, stage) in spec.stages.iter().enumerate() {
            let mut nest = Nest {
                kernel,
                spec,
                number,
                stage,
                buffers,
                locals: &locals,
                ahead: Vec::new(),
            };
            nest.ahead = ahead::rows(e, &nest, task);
            nest.emit(e, &outer);
        }
    });
}

/// The loop of a stage that is vectorised.
#[derive(Clone, Copy, PartialEq)]
enum Vectorised {
    /// No loop.
    No,
    /// The last inner loop.
    Inner,
    /// The last reduction loop.
    Reduction,
}

/// One stage of the kernel, with the buffers of the current task.
struct Nest<'a, 'c> {
    /// One of the kernels that the code serves.
    kernel: &'a Loops,
    spec: &'a Loops<Int<'c>>,
    /// Index of the stage in the kernel.
    number: usize,
    stage: &'a Stage<Int<'c>>,
    buffers: &'a [Val<'c>],
    locals: &'a [Val<'c>],
    /// The rows of the next task that the vectorised loop prefetches: address and element size in bytes.
    ahead: Vec<(Val<'c>, i64)>,
}

/// One point of the loops, or one vector of points.
struct Point<'c> {
    /// The indices of all loops. That of the vectorised loop is the index of lane 0.
    at: Vec<Int<'c>>,
    /// The index of the vectorised loop among all loops, and the number of lanes.
    vector: Option<(usize, i64)>,
    /// The lanes that exist; `None` means all lanes.
    mask: Option<Val<'c>>,
}

impl<'c> Point<'c> {
    fn lanes(&self) -> Option<i64> {
        self.vector.map(|(_, n)| n)
    }

    /// Returns the difference of `a` between neighbouring lanes.
    fn step(&self, a: &Affine<Int<'c>>) -> Int<'c> {
        self.vector
            .and_then(|(l, _)| a.coefficients.get(l).copied())
            .unwrap_or(Int::Const(0))
    }

    /// Returns true if `a` is the same in all lanes.
    fn is_uniform(&self, a: &Affine<Int<'c>>) -> bool {
        self.step(a).known() == Some(0)
    }

    fn linear(&self, e: &mut Emitter<'c>, a: &Affine<Int<'c>>) -> Int<'c> {
        e.linear(a.coefficients.iter().copied().zip(self.at.iter().copied()), a.offset)
    }
}

impl<'a, 'c> Nest<'a, 'c> {
    fn vectorised(&self) -> Vectorised {
        let (s, outer) = (self.stage, self.spec.outer.len());
        let unit = |reads: &[Read<Int<'c>>], l: usize| {
            reads
                .iter()
                .all(|r| matches!(r.index.coefficients[l].known(), Some(0 | 1)) && lanes_agree(reads, r, l))
        };
        // An extent that is an argument is not 0 or 1.
        let is_loop = |extent: Int<'c>| extent.known().is_none_or(|n| n >= 2);
        if let (Some(&extent), l) = (s.inner.last(), (outer + s.inner.len()).wrapping_sub(1)) {
            let contiguous = s.writes().all(|w| w.index.coefficients[l].known() == Some(1))
                && unit(&s.inputs, l)
                && unit(&s.finish_inputs, l);
            let is_long = match s.combine {
                None => is_loop(extent),
                // The identity of the code contains this bool, so it is the same for all kernels that the code serves.
                Some(_) => self.kernel.stages[self.number].has_long_rows(self.kernel.lanes),
            };
            if contiguous && is_long {
                return Vectorised::Inner;
            }
        }
        if let (Some(&extent), l) = (s.reduction.last(), self.spec.rank(s).wrapping_sub(1))
            && unit(&s.inputs, l)
            && s.kept.iter().all(|k| k.output.index.coefficients[l].known() == Some(1))
            && is_loop(extent)
        {
            return Vectorised::Reduction;
        }
        Vectorised::No
    }

    /// Returns the number of iterations of the stage's loop, if the stage has exactly one loop, of constant extent.
    fn vector_extent(&self) -> Option<i64> {
        match (self.stage.inner.as_slice(), self.stage.reduction.as_slice()) {
            (&[extent], []) | ([], &[extent]) => extent.known(),
            _ => None,
        }
    }

    fn emit(&self, e: &mut Emitter<'c>, outer: &[Int<'c>]) {
        let vectorised = self.vectorised();
        let mut at = outer.to_vec();
        let inner = self.stage.inner.len();
        let scalar_inner = if vectorised == Vectorised::Inner {
            inner - 1
        } else {
            inner
        };
        self.inner_loops(e, &mut at, 0, scalar_inner, vectorised);
    }

    /// Emits the inner loops from `depth` to `end`. The last one contains the code for one result, or for one vector of results.
    fn inner_loops(&self, e: &mut Emitter<'c>, at: &mut Vec<Int<'c>>, depth: usize, end: usize, v: Vectorised) {
        if depth < end {
            e.for_each(0, self.stage.inner[depth], 1, |e, i| {
                at.push(i);
                self.inner_loops(e, at, depth + 1, end, v);
                at.pop();
            });
            return;
        }
        if v != Vectorised::Inner {
            return self.result(e, at, None, None, v);
        }
        let (extent, lanes, l) = (self.stage.inner[end], self.spec.lanes, at.len());
        let full = e.round_down(extent, lanes);
        let mut done = Int::Const(0);
        // LLVM splits vectors that are wider than the target's into several, operation by operation.
        for width in [self.abreast(e) * lanes, lanes] {
            let until = e.round_down(extent, width);
            e.for_each(done, until, width, |e, i| {
                ahead::fetch(e, &self.ahead, i, width);
                at.push(i);
                self.result(e, at, Some((l, width)), None, v);
                at.pop();
            });
            done = until;
        }
        let rest = e.sub(extent, full);
        let mut tail = |e: &mut Emitter<'c>| {
            let mask = e.mask(rest, lanes);
            at.push(full);
            self.result(e, at, Some((l, lanes)), Some(mask), v);
            at.pop();
        };
        match rest {
            Int::Const(0) => {}
            Int::Const(_) => tail(e),
            rest => {
                let is_there = e.compare("ne", rest, 0);
                e.if_then(is_there, tail);
            }
        }
    }

    /// Returns the number of vectors that are computed interleaved. A polynomial is a chain of dependent operations. Out-of-order execution does not reach far
    /// enough to overlap it with the next iterations.
    fn abreast(&self, e: &Emitter<'c>) -> i64 {
        let chain = |n: &ExprNode| match n.op {
            ExprOp::Unary(op, _) => Floats::function(op, n.dtype).is_some(),
            ExprOp::Binary(op, ..) => Floats::function_of_two(op, n.dtype).is_some(),
            _ => false,
        };
        let s = self.stage;
        // The expression that is applied to the result of a reduction runs once, so it does not count.
        let each = s.expressions().take(match s.combine {
            Some(_) => 1 + usize::from(s.kept.is_some()),
            None => usize::MAX,
        });
        if each.flat_map(Expr::nodes).any(chain) {
            e.target.machine.loops.interleaved.max(1)
        } else {
            1
        }
    }

    /// Emits the computation and the store of the result at `at`.
    fn result(
        &self,
        e: &mut Emitter<'c>,
        at: &mut Vec<Int<'c>>,
        vector: Option<(usize, i64)>,
        mask: Option<Val<'c>>,
        v: Vectorised,
    ) {
        let s = self.stage;
        let lanes = vector.map(|(_, n)| n);
        let acc = match s.combine {
            None => {
                let point = Point {
                    at: at.clone(),
                    vector,
                    mask,
                };
                let value = self.expr(e, &s.body, &s.inputs, &point, None);
                self.cast(e, value, s.body.dtype(), s.accumulate, lanes)
            }
            Some(combine) if v == Vectorised::Reduction => self.reduce_vectors(e, at, combine),
            Some(combine) => self.reduce(e, at, (vector, mask), combine),
        };
        // Outside of the reduction loops, their indices are 0.
        let mut all = at.clone();
        all.resize(self.spec.rank(s), Int::Const(0));
        let point = Point { at: all, vector, mask };
        let (value, dtype) = match &s.finish {
            None => (acc, Some(s.accumulate)),
            Some(f) => (self.expr(e, f, &s.finish_inputs, &point, Some(acc)), f.dtype()),
        };
        self.write(e, value, dtype, &s.output, &point);
    }

    /// Emits the store of `value`, which has the dtype `dtype`, in the lanes of `point` that exist.
    fn write(&self, e: &mut Emitter<'c>, value: Val<'c>, dtype: Option<DType>, to: &Write<Int<'c>>, point: &Point<'c>) {
        let (out, lanes) = (self.dtype(to.place), point.lanes());
        let value = self.cast(e, value, dtype, out, lanes);
        let value = ExprEmitter::new(e, lanes).to_storage(value, out);
        let address = self.address(e, to.place, &to.index, point, Int::Const(0));
        match point.mask {
            None => e.store(value, address, out.size() as i64),
            Some(mask) => e.store_masked_at(value, address, mask, out.size() as i64),
        }
    }

    fn body(&self, e: &mut Emitter<'c>, point: &Point<'c>) -> Val<'c> {
        let s = self.stage;
        let value = match &s.kept {
            None => self.expr(e, &s.body, &s.inputs, point, None),
            Some(kept) => {
                let value = self.expr(e, &kept.body, &s.inputs, point, None);
                let value = self.cast(e, value, kept.body.dtype(), s.accumulate, point.lanes());
                self.write(e, value, Some(s.accumulate), &kept.output, point);
                self.expr(e, &s.body, &[], point, Some(value))
            }
        };
        self.cast(e, value, s.body.dtype(), s.accumulate, point.lanes())
    }

    fn cast(&self, e: &mut Emitter<'c>, v: Val<'c>, from: Option<DType>, to: DType, lanes: Option<i64>) -> Val<'c> {
        ExprEmitter::new(e, lanes).cast(v, from.unwrap_or(to), to)
    }

    /// Emits `expr`. If there is an accumulator, it is input 0, and `reads` are the inputs from 1 on. Otherwise, `reads` are all inputs.
    fn expr(
        &self,
        e: &mut Emitter<'c>,
        expr: &Expr,
        reads: &[Read<Int<'c>>],
        point: &Point<'c>,
        acc: Option<Val<'c>>,
    ) -> Val<'c> {
        let mut leaves = StageLeaves {
            nest: self,
            reads,
            point,
            acc,
        };
        ExprEmitter::new(e, point.lanes()).emit(expr, &mut leaves)
    }

    fn dtype(&self, place: Place) -> DType {
        match place {
            Place::Argument(n) => self.spec.arguments[n as usize],
            Place::Local(n) => self.spec.locals[n as usize].dtype,
        }
    }

    fn address(
        &self,
        e: &mut Emitter<'c>,
        place: Place,
        index: &Affine<Int<'c>>,
        point: &Point<'c>,
        further: Int<'c>,
    ) -> Val<'c> {
        let base = match place {
            Place::Argument(n) => self.buffers[n as usize],
            Place::Local(n) => self.locals[n as usize],
        };
        let index = point.linear(e, index);
        let index = e.add(index, further);
        e.offset(base, index, self.dtype(place).size() as i64)
    }
}

/// The operands of a stage's expressions at one point.
struct StageLeaves<'n, 'a, 'c> {
    nest: &'n Nest<'a, 'c>,
    reads: &'n [Read<Int<'c>>],
    point: &'n Point<'c>,
    acc: Option<Val<'c>>,
}

impl<'c> Leaves<'c> for StageLeaves<'_, '_, 'c> {
    fn input(&mut self, e: &mut Emitter<'c>, n: u32, dtype: DType) -> Val<'c> {
        let (value, from) = match (self.acc, n) {
            (Some(acc), 0) => (acc, self.nest.stage.accumulate),
            (Some(_), n) => self.operand(e, n as usize - 1),
            (None, n) => self.operand(e, n as usize),
        };
        ExprEmitter::new(e, self.point.lanes()).cast(value, from, dtype)
    }

    fn index(&mut self, e: &mut Emitter<'c>, n: u32) -> Val<'c> {
        let index = &self.nest.stage.indices[n as usize];
        match self.point.vector {
            Some((_, lanes)) => lane_indices(e, self.point, index, lanes),
            None => {
                let index = self.point.linear(e, index);
                e.int(index)
            }
        }
    }
}

impl<'c> StageLeaves<'_, '_, 'c> {
    fn operand(&self, e: &mut Emitter<'c>, n: usize) -> (Val<'c>, DType) {
        (
            self.nest.read(e, self.reads, n, self.point),
            self.nest.dtype(self.reads[n].place),
        )
    }
}
