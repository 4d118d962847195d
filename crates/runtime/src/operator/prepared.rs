//! Caches of operators: programs for recent sizes, and expressions for recent dtypes.
//!
//! Building a program takes some microseconds, longer than the computation on small tensors. Programs do not depend on strides and elements, so a program can
//! be reused for all calls with equal dtypes, sizes and plain values. A pointwise expression can be reused for all sizes.

use crate::error::EvalError;
use crate::error::OpError;
use crate::eval::{Elementwise, Staging, Tape, eval_outputs, eval_view};
use crate::operator::args::Args;
use crate::operator::call::{args_of, given};
use crate::operator::callback::Results;
use crate::operator::op::Operator;
use crate::operator::semantics::Semantics;
use crate::program::structured::{Program, Step, ViewKind, ViewMap};
use crate::shape::Dims;
use crate::tensor::Tensor;
use crate::value::{TensorCell, Value};
use frazil_ir::{Context, DType, Device};
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of cache entries per operator, one for each call signature (see [`Kind`]).
const KEPT: usize = 4;

/// The tensor arguments of a call, indexed by [`TensorId`](crate::program::structured::TensorId) as in the operator's program.
pub(crate) type Tensors = SmallVec<[Tensor; 3]>;

/// The cache of an operator. A call takes an entry out and puts it back, so that threads never share registers. The least recently used entry is evicted.
#[derive(Default)]
#[expect(clippy::vec_box, reason = "entries are large, and go in and out with every call")]
pub(crate) struct Prepared(Mutex<Vec<Box<Entry>>>);

/// A cache entry: the compiled code for calls with one signature.
struct Entry {
    kind: SmallVec<[Kind; 4]>,
    made: Made,
}

enum Made {
    Elementwise(Elementwise),
    Program {
        program: Program,
        /// Code for dense operands with few elements.
        tape: Option<Box<Tape>>,
    },
}

/// The result of a call that ran cached code; see [`run_small`].
pub(crate) enum Small {
    /// The result was written to its destination.
    Written,
    Results(Results),
}

/// An argument of a call, borrowed: a tensor variable or another value.
pub(crate) enum Seen<'a> {
    Tensor(&'a TensorCell),
    Other(&'a Value),
}

impl Seen<'_> {
    /// Returns the argument as an owned value.
    pub(crate) fn to_value(&self) -> Value {
        match self {
            Seen::Tensor(cell) => Value::Tensor(TensorCell::clone(cell)),
            Seen::Other(value) => Value::clone(value),
        }
    }
}

/// A type of arguments that can be borrowed as [`Seen`].
pub(crate) trait Look {
    fn look(&self) -> Seen<'_>;
}

impl Look for Value {
    fn look(&self) -> Seen<'_> {
        match self {
            Value::Tensor(cell) => Seen::Tensor(cell),
            other => Seen::Other(other),
        }
    }
}

/// The properties of one argument on which cached code depends. The call signature consists of one `Kind` for each argument.
enum Kind {
    None,
    Bool(bool),
    Int(i64),
    /// A float by its bits, because zeros have signs.
    Float(u64),
    Complex(u64, u64),
    Str(Arc<str>),
    Device(Device),
    /// A tensor by dtype and rank, if the cached code does not depend on its sizes.
    OfRank(DType, usize),
    OfSizes(DType, Dims),
    List(Vec<Kind>),
    Opaque,
}

/// Returns the tensors among `values`, lists element by element, in the numbering of [`args_of`].
pub(crate) fn tensors_of(values: &[Value]) -> Tensors {
    fn collect(value: &Value, tensors: &mut Tensors) {
        match value {
            Value::Tensor(cell) => tensors.push(cell.get()),
            Value::List(list) => list.with(|items| items.iter().for_each(|v| collect(v, tensors))),
            Value::Tuple(tuple) => tuple.items.iter().for_each(|v| collect(v, tensors)),
            _ => {}
        }
    }
    let mut tensors = Tensors::new();
    values.iter().for_each(|v| collect(v, &mut tensors));
    tensors
}

/// Returns the functional results of `op` from cached code. Returns `None` if there is none for this kind of call, or the tensors are not small and dense. A
/// result for `target` is written there directly if `target` is dense and has the result's dtype and sizes.
pub(crate) fn run_small(
    ctx: &Context,
    op: &Operator,
    args: &[impl Look],
    target: Option<&TensorCell>,
) -> Result<Option<Small>, OpError> {
    // So little is computed that the lock may be held; a thread that finds it taken makes its own.
    let Ok(mut kept) = op.prepared.0.try_lock() else {
        return Ok(None);
    };
    for entry in kept.iter_mut().rev() {
        if let Some(small) = entry.run_small(ctx, op, args, target)? {
            return Ok(Some(small));
        }
    }
    Ok(None)
}

/// Returns the functional results of `op`, whose semantics is a program. `tensors` are [`tensors_of`] `values`.
pub(crate) fn run(ctx: &Context, op: &Operator, values: &[Value], tensors: &[Tensor]) -> Result<Results, OpError> {
    let mut entry = match op.prepared.take(|entry| entry.serves(values, tensors)) {
        Some(entry) => entry,
        None => Box::new(Entry::new(ctx, op, values)?),
    };
    let results = entry.run(ctx, op, values, tensors);
    op.prepared.put(entry);
    if let Some(results) = results? {
        return Ok(results);
    }
    let program = program(op, &args_of(ctx, &op.schema, values).0)?;
    results_of(ctx, op, &program, values, tensors)
}

impl Prepared {
    fn take(&self, serves: impl Fn(&Entry) -> bool) -> Option<Box<Entry>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().rposition(|entry| serves(entry))?;
        Some(kept.remove(at))
    }

    fn put(&self, entry: Box<Entry>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT {
            kept.remove(0);
        }
        kept.push(entry);
    }
}

impl Entry {
    fn new(ctx: &Context, op: &Operator, values: &[Value]) -> Result<Entry, OpError> {
        let (args, cells) = args_of(ctx, &op.schema, values);
        let elementwise = match &op.semantics {
            Semantics::Pointwise(entry) if !op.copies => {
                let (inputs, body) = entry.parts(&args)?;
                Elementwise::new(body, &inputs)?
            }
            _ => None,
        };
        let with_sizes = elementwise.is_none();
        let made = match elementwise {
            Some(elementwise) => Made::Elementwise(elementwise),
            None => {
                let program = program(op, &args)?;
                let tape = Tape::new(&program)?.map(Box::new);
                Made::Program { program, tape }
            }
        };
        let mut cells = cells.iter();
        let kind = values.iter().map(|v| Kind::of(v, with_sizes, &mut cells)).collect();
        Ok(Entry { kind, made })
    }

    fn serves(&self, values: &[Value], tensors: &[Tensor]) -> bool {
        let mut tensors = tensors.iter();
        self.kind.len() == values.len() && self.kind.iter().zip(values).all(|(k, v)| k.covers(v, &mut tensors))
    }

    fn run_small(
        &mut self,
        ctx: &Context,
        op: &Operator,
        args: &[impl Look],
        target: Option<&TensorCell>,
    ) -> Result<Option<Small>, OpError> {
        if self.kind.len() != args.len() {
            return Ok(None);
        }
        match &mut self.made {
            Made::Elementwise(elementwise) => {
                let mut sizes = Dims::new();
                if !stage_broadcast(&self.kind, &mut elementwise.staging, args, &mut sizes) {
                    return Ok(None);
                }
                let dtype = elementwise.dtype();
                let written = target.and_then(|cell| {
                    cell.with(|t| match t.dtype() == dtype && t.sizes() == sizes.as_slice() {
                        true => t.write_dense(|target| elementwise.run_staged(target)),
                        false => None,
                    })
                });
                if written.transpose()?.is_some() {
                    return Ok(Some(Small::Written));
                }
                let out = Tensor::computed(dtype, &sizes, |target| elementwise.run_staged(target))?;
                Ok(Some(Small::Results(smallvec::smallvec![Value::from(out)])))
            }
            Made::Program {
                program,
                tape: Some(tape),
            } => {
                if !stage(&self.kind, &mut tape.staging, args) {
                    return Ok(None);
                }
                let results = given(ctx, &op.schema, program, &[], tape.run()?);
                Ok(Some(Small::Results(results)))
            }
            Made::Program { program, tape: None } => {
                let view = affine_view(program).and_then(|view| view_of(&self.kind, view, args));
                let results = |view: Tensor| Small::Results(given(ctx, &op.schema, program, &[], [view]));
                Ok(view.transpose()?.map(results))
            }
        }
    }

    /// Runs the cached code; returns `None` if it does not fit these tensors, so that a program has to be built.
    fn run(
        &mut self,
        ctx: &Context,
        op: &Operator,
        values: &[Value],
        tensors: &[Tensor],
    ) -> Result<Option<Results>, OpError> {
        match &mut self.made {
            Made::Elementwise(e) => Ok(e.run(tensors)?.map(|out| smallvec::smallvec![Value::from(out)])),
            Made::Program { program, tape } => {
                // Results are not to depend on which way was found first.
                if let Some(tape) = tape
                    && tensors.iter().enumerate().all(|(at, t)| tape.staging.stage(at, t))
                {
                    return Ok(Some(given(ctx, &op.schema, program, &[], tape.run()?)));
                }
                results_of(ctx, op, program, values, tensors).map(Some)
            }
        }
    }
}

/// Stages the tensors of a call with the signature `kinds`. Returns false if the call has another signature, a tensor is not small and dense, or a tensor is
/// in a list.
fn stage(kinds: &[Kind], staging: &mut Staging, args: &[impl Look]) -> bool {
    let mut tensors = 0..;
    kinds.iter().zip(args).all(|(kind, arg)| match (kind, arg.look()) {
        (Kind::OfSizes(dtype, sizes), Seen::Tensor(cell)) => cell.with(|t| {
            let is_so = t.dtype() == *dtype && t.sizes() == sizes.as_slice();
            is_so && tensors.next().is_some_and(|at| staging.stage(at, t))
        }),
        (kind, Seen::Other(value)) => kind.covers(value, &mut std::iter::empty()),
        _ => false,
    })
}

/// Stages the tensors of a pointwise call as [`stage`] does. Each tensor must have one element, or the sizes of the result.
fn stage_broadcast(kinds: &[Kind], staging: &mut Staging, args: &[impl Look], sizes: &mut Dims) -> bool {
    let (mut tensors, mut count) = (0.., None);
    let staged = kinds.iter().zip(args).all(|(kind, arg)| match (kind, arg.look()) {
        (Kind::OfRank(dtype, rank), Seen::Tensor(cell)) => cell.with(|t| {
            if t.dtype() != *dtype || t.dim() != *rank {
                return false;
            }
            let numel = t.numel();
            if count.is_none() || (count == Some(1) && *rank >= sizes.len()) {
                count = Some(numel);
                *sizes = Dims::from_slice(t.sizes());
            } else if t.sizes() != sizes.as_slice() && (numel != 1 || *rank > sizes.len()) {
                return false;
            }
            tensors.next().is_some_and(|at| staging.stage(at, t))
        }),
        (kind, Seen::Other(value)) => kind.covers(value, &mut std::iter::empty()),
        _ => false,
    });
    staged && count.is_some()
}

/// Returns the only step of `program`, if it is a view that never copies.
fn affine_view(program: &Program) -> Option<&ViewMap> {
    match (program.steps.as_slice(), program.outputs.as_slice()) {
        ([Step::View(view)], [output])
            if output.index() == 1 && view.tensor.index() == 0 && matches!(view.kind, ViewKind::Affine(_)) =>
        {
            Some(view)
        }
        _ => None,
    }
}

/// Returns the result of `view`, if the call has the signature `kinds`.
fn view_of(kinds: &[Kind], view: &ViewMap, args: &[impl Look]) -> Option<Result<Tensor, EvalError>> {
    let mut result = None;
    let is_so = kinds.iter().zip(args).all(|(kind, arg)| match (kind, arg.look()) {
        (Kind::OfSizes(dtype, sizes), Seen::Tensor(cell)) => cell.with(|t| {
            let is_so = t.dtype() == *dtype && t.sizes() == sizes.as_slice();
            if is_so {
                result = Some(eval_view(view, t));
            }
            is_so
        }),
        (kind, Seen::Other(value)) => kind.covers(value, &mut std::iter::empty()),
        _ => false,
    });
    result.filter(|_| is_so)
}

impl Kind {
    /// Returns the [`Kind`] of an argument. `tensors` yields the tensors of `value` first, and is advanced past them.
    fn of<'t>(value: &Value, with_sizes: bool, tensors: &mut impl Iterator<Item = &'t TensorCell>) -> Kind {
        match value {
            Value::None => Kind::None,
            Value::Bool(b) => Kind::Bool(*b),
            Value::Int(i) => Kind::Int(*i),
            Value::Float(f) => Kind::Float(f.to_bits()),
            Value::Complex(c) => Kind::Complex(c.re.to_bits(), c.im.to_bits()),
            Value::Str(s) => Kind::Str(s.clone()),
            Value::Device(d) => Kind::Device(*d),
            Value::Tensor(_) => match tensors.next().map(TensorCell::get) {
                Some(t) if with_sizes => Kind::OfSizes(t.dtype(), t.sizes().into()),
                Some(t) => Kind::OfRank(t.dtype(), t.dim()),
                None => Kind::Opaque,
            },
            Value::List(l) => {
                Kind::List(l.with(|items| items.iter().map(|v| Kind::of(v, with_sizes, tensors)).collect()))
            }
            Value::Tuple(t) => Kind::List(t.items.iter().map(|v| Kind::of(v, with_sizes, tensors)).collect()),
            Value::Dict(_) | Value::Object(_) | Value::Enum(_) | Value::Future(_) | Value::Function(_) => Kind::Opaque,
        }
    }

    /// Returns true if cached code for an argument of this kind can be used for `value`. `tensors` yields the tensors of `value`.
    fn covers<'t>(&self, value: &Value, tensors: &mut impl Iterator<Item = &'t Tensor>) -> bool {
        match (self, value) {
            (Kind::None, Value::None) => true,
            (Kind::Bool(a), Value::Bool(b)) => a == b,
            (Kind::Int(a), Value::Int(b)) => a == b,
            (Kind::Float(a), Value::Float(b)) => *a == b.to_bits(),
            (Kind::Complex(re, im), Value::Complex(c)) => *re == c.re.to_bits() && *im == c.im.to_bits(),
            (Kind::Str(a), Value::Str(b)) => a == b,
            (Kind::Device(a), Value::Device(b)) => a == b,
            (Kind::OfRank(dtype, rank), Value::Tensor(_)) => {
                tensors.next().is_some_and(|t| t.dtype() == *dtype && t.dim() == *rank)
            }
            (Kind::OfSizes(dtype, sizes), Value::Tensor(_)) => tensors
                .next()
                .is_some_and(|t| t.dtype() == *dtype && t.sizes() == sizes.as_slice()),
            (Kind::List(kinds), Value::List(l)) => l.with(|items| cover_all(kinds, items, tensors)),
            (Kind::List(kinds), Value::Tuple(t)) => cover_all(kinds, &t.items, tensors),
            (
                Kind::Opaque,
                Value::Dict(_) | Value::Object(_) | Value::Enum(_) | Value::Future(_) | Value::Function(_),
            ) => true,
            _ => false,
        }
    }
}

fn cover_all<'t>(kinds: &[Kind], values: &[Value], tensors: &mut impl Iterator<Item = &'t Tensor>) -> bool {
    kinds.len() == values.len() && kinds.iter().zip(values).all(|(k, v)| k.covers(v, tensors))
}

fn program(op: &Operator, args: &Args<'_>) -> Result<Program, OpError> {
    op.program(args)?
        .ok_or_else(|| OpError::Unsupported("an operator without a program".into()))
}

fn results_of(
    ctx: &Context,
    op: &Operator,
    program: &Program,
    values: &[Value],
    tensors: &[Tensor],
) -> Result<Results, OpError> {
    let outputs = eval_outputs(program, tensors)?;
    // Only results that are arguments ask for the variables; a view of an argument as it stands is a variable of its own.
    let cells = match op.returns_self() && program.outputs.iter().any(|&id| id.index() < tensors.len()) {
        true => args_of(ctx, &op.schema, values).1,
        false => Vec::new(),
    };
    Ok(given(ctx, &op.schema, program, &cells, outputs))
}
