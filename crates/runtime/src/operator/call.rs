//! Calls of operators on values: programs are evaluated, and results are stored as the variant requires.

use crate::error::OpError;
use crate::error::TensorError;
use crate::eval::eval_program;
use crate::memory;
use crate::operator::args::{Arg, Args};
use crate::operator::callback::{Call, Callback, Kernel, Results};
use crate::operator::entry::ResultLayout;
use crate::operator::op::Operator;
use crate::operator::out::out_arguments;
use crate::operator::prepared::{self, Look, Seen, Small};
use crate::operator::semantics::{Form, Semantics, Variant};
use crate::program::structured::{Program, TensorId};
use crate::scalar::promote::can_cast;
use crate::shape::layout;
use crate::shape::{Dims, TensorShape};
use crate::tensor::Tensor;
use crate::value::{TensorCell, Value};
use frazil_ir::schema::{Argument, FunctionSchema};
use frazil_ir::{Attribute, Context, Graph, TypeId, TypeKind, types};
use smallvec::SmallVec;

/// Calls `op`, whose semantics is a program or a kernel, on complete operands.
///
/// # Errors
/// PyTorch's exceptions, unsupported arguments, and composites, which only the interpreter can run.
pub fn invoke(
    ctx: &Context,
    op: &Operator,
    values: &[Value],
    output_types: &[TypeId],
    attributes: &[Attribute],
) -> Result<Results, OpError> {
    if let Some(kernel) = kernel_of(op) {
        let unmarked: SmallVec<[Value; 4]>;
        let args = match op.copies {
            // What has no view of a conjugate has a copy of one.
            true => {
                unmarked = values.iter().map(resolved).collect::<Result<_, _>>()?;
                &unmarked
            }
            false => values,
        };
        let call = Call {
            ctx,
            schema: &op.schema,
            args,
            output_types,
            attributes,
        };
        check_elements(ctx, op, args)?;
        let results = kernel.run(&call)?;
        let results = if op.copies { copied(results)? } else { results };
        return write_results(op, values, results);
    }
    if let Semantics::Kernel(_) | Semantics::Composite(_) = op.semantics {
        return Err(OpError::Unsupported("a composite outside of the interpreter".into()));
    }
    if let Some(results) = invoke_small(ctx, op, values)? {
        return Ok(results);
    }
    let tensors = prepared::tensors_of(values);
    let results = prepared::run(ctx, op, values, &tensors)?;
    if op.variant == Variant::Functional && tensors.iter().all(Tensor::is_contiguous) {
        return Ok(results);
    }
    write_results(op, values, results)
}

/// Calls an operator as [`invoke`] does, with arguments that are borrowed if possible, because reference counting is a considerable part of a small call.
///
/// # Errors
/// See [`invoke`].
pub fn invoke_given(
    ctx: &Context,
    op: &Operator,
    args: &[Given<'_>],
    output_types: &[TypeId],
) -> Result<Results, OpError> {
    if kernel_of(op).is_none()
        && let Some(results) = invoke_small(ctx, op, args)?
    {
        return Ok(results);
    }
    invoke(ctx, op, &values_of(args), output_types, &[])
}

/// Returns the arguments as owned values.
pub fn values_of(args: &[Given<'_>]) -> SmallVec<[Value; 4]> {
    args.iter().map(|arg| arg.look().to_value()).collect()
}

/// An argument of an operator call, borrowed or owned.
pub enum Given<'a> {
    /// A tensor variable.
    Tensor(&'a TensorCell),
    /// A borrowed value.
    Value(&'a Value),
    /// A value that was created for the call.
    Made(Value),
}

impl Look for Given<'_> {
    fn look(&self) -> Seen<'_> {
        match self {
            Given::Tensor(cell) => Seen::Tensor(cell),
            Given::Value(value) => value.look(),
            Given::Made(value) => value.look(),
        }
    }
}

/// Returns the kernel that computes the results of `op` in place of a program, if there is one.
fn kernel_of(op: &Operator) -> Option<Kernel> {
    match (op.eager, &op.semantics) {
        (Some(kernel), _) => Some(Callback::Plain(kernel)),
        (None, Semantics::Kernel(kernel)) => Some(kernel.clone()),
        _ => None,
    }
}

/// Number of elements from which a kernel's arguments are checked. Copies of fewer elements are small.
const MANY: i64 = 1 << 22;
/// Maximum memory of a kernel per element, in bytes: two copies of the widest type in which kernels compute.
const BYTES_PER_ELEMENT: usize = 32;

/// Checks that there is memory for the copies that kernels make of their arguments' elements. A view of few bytes may have very many elements. Operators that
/// only return further views copy nothing.
fn check_elements(ctx: &Context, op: &Operator, args: &[Value]) -> Result<(), OpError> {
    // Views, which are most of what small models call, copy nothing: that is seen without a look at the arguments.
    let copies = |r: &Argument| match &r.alias {
        Some(alias) => alias.is_write,
        None if r.element_alias.is_some() => false,
        None => r.ty == types::TENSOR || matches!(ctx.type_kind(r.ty), TypeKind::List(types::TENSOR)),
    };
    if !op.schema.returns.iter().any(copies) {
        return Ok(());
    }
    let size = |v: &Value| match v {
        Value::Tensor(cell) => cell.with(|t| (t.numel(), t.dtype().size())),
        _ => (0, 0),
    };
    let (most, width) = args.iter().map(size).max().unwrap_or((0, 0));
    if most >= MANY {
        // The text names one copy of the tensor, which is what PyTorch would allocate.
        let bytes = (most as usize).saturating_mul(width);
        memory::check_available((most as usize).saturating_mul(BYTES_PER_ELEMENT))
            .map_err(|_| memory::OutOfMemory { bytes })?;
    }
    Ok(())
}

/// Returns the results of a small call from cached code, in the layout of its variant; `None` for any other call.
fn invoke_small(ctx: &Context, op: &Operator, args: &[impl Look]) -> Result<Option<Results>, OpError> {
    let target = match (op.variant, args.first().map(Look::look)) {
        (Variant::InPlace, Some(Seen::Tensor(cell))) if !op.changes_view() => Some(cell),
        _ => None,
    };
    let results = match (prepared::run_small(ctx, op, args, target)?, target) {
        (Some(Small::Results(results)), _) => results,
        (Some(Small::Written), Some(cell)) => return Ok(Some(smallvec::smallvec![Value::Tensor(cell.clone())])),
        _ => return Ok(None),
    };
    match op.variant {
        // The layouts of row-major operands, and of views, ask for nothing.
        Variant::Functional => Ok(Some(results)),
        Variant::InPlace | Variant::Out => {
            let values: SmallVec<[Value; 4]> = args.iter().map(|arg| arg.look().to_value()).collect();
            write_results(op, &values, results).map(Some)
        }
    }
}

/// Returns a tensor without conjugate and negative bits; any other value unchanged.
fn resolved(value: &Value) -> Result<Value, OpError> {
    Ok(match value.as_tensor() {
        Some(t) if !t.marks().is_none() => t.resolved()?.into(),
        _ => value.clone(),
    })
}

/// Returns the results as row-major copies.
fn copied(results: Results) -> Result<Results, OpError> {
    let each = |value: Value| -> Result<Value, OpError> {
        Ok(match &value {
            Value::Tensor(cell) => cell.get().deep_copy()?.into(),
            Value::List(list) => {
                let items = list.items();
                let tensors = items.iter().filter_map(Value::as_tensor);
                Value::tensors(tensors.map(|t| t.deep_copy()).collect::<Result<Vec<_>, _>>()?)
            }
            _ => value,
        })
    };
    results.into_iter().map(each).collect()
}

/// Returns the call's arguments for entries, and the tensors among them in the program's numbering.
pub fn args_of<'a>(ctx: &'a Context, schema: &'a FunctionSchema, values: &[Value]) -> (Args<'a>, Vec<TensorCell>) {
    let mut args = Args::new(ctx, schema);
    let mut cells = Vec::new();
    for value in values {
        let arg = arg_of(value, &mut args, &mut cells);
        args.push(arg);
    }
    (args, cells)
}

fn arg_of(value: &Value, args: &mut Args<'_>, cells: &mut Vec<TensorCell>) -> Arg {
    match value {
        Value::None => Arg::None,
        Value::Bool(b) => Arg::Bool(*b),
        Value::Int(i) => Arg::Int(*i),
        Value::Float(f) => Arg::Float(*f),
        Value::Complex(c) => Arg::Complex(*c),
        Value::Str(s) => Arg::Str(s.clone()),
        Value::Device(d) => Arg::Device(*d),
        Value::Tensor(cell) => {
            let t = cell.get();
            cells.push(cell.clone());
            args.number_tensor(TensorShape {
                dtype: t.dtype(),
                sizes: t.sizes().into(),
            })
        }
        Value::List(l) => Arg::List(l.items().iter().map(|v| arg_of(v, args, cells)).collect()),
        Value::Tuple(t) => Arg::List(t.items.iter().map(|v| arg_of(v, args, cells)).collect()),
        Value::Dict(_) | Value::Object(_) | Value::Enum(_) | Value::Future(_) | Value::Function(_) => Arg::Opaque,
    }
}

/// Runs the program that `build` creates for a kernel's call. Interpreter kernels use it if only some arguments need more than the program.
///
/// # Errors
/// Those of `build` and of the evaluation.
pub fn run_as_program(
    call: &Call<'_>,
    build: impl FnOnce(&Args<'_>) -> Result<Program, OpError>,
) -> Result<Results, OpError> {
    let (args, cells) = args_of(call.ctx, call.schema, call.args);
    let program = build(&args)?;
    let tensors: Vec<Tensor> = cells.iter().map(TensorCell::get).collect();
    let outputs = eval_program(&program, &tensors)?;
    Ok(given(call.ctx, call.schema, &program, &cells, outputs))
}

/// Returns a program's outputs as the operator's results, in the types that the schema states.
pub(crate) fn given(
    ctx: &Context,
    schema: &FunctionSchema,
    program: &Program,
    cells: &[TensorCell],
    outputs: impl IntoIterator<Item = Tensor>,
) -> Results {
    // An output that is an argument is that very variable, if it is among the `cells`.
    let value = |(tensor, id): (Tensor, &TensorId)| match cells.get(id.index()) {
        Some(cell) => Value::Tensor(cell.clone()),
        None => tensor.into(),
    };
    let values: Results = outputs.into_iter().zip(&program.outputs).map(value).collect();
    match schema.returns.as_slice() {
        [only] if matches!(ctx.type_kind(only.ty), TypeKind::List(_)) => {
            smallvec::smallvec![Value::List(crate::value::ListValue::new(
                types::TENSOR,
                values.into_vec()
            ))]
        }
        _ => values,
    }
}

/// Returns new results with the strides that [`ResultLayout`] states. Views and arguments stay as they are.
fn laid_out(op: &Operator, values: &[Value], results: Results) -> Result<Results, OpError> {
    if op.layout() == ResultLayout::AsComputed {
        return Ok(results);
    }
    let items = |value: &Value| match op.layout() {
        ResultLayout::Joined => value.items().unwrap_or_default(),
        _ => Vec::new(),
    };
    let in_lists = values.iter().flat_map(items).collect::<Vec<Value>>();
    let operands: Vec<Tensor> = values.iter().chain(&in_lists).filter_map(Value::as_tensor).collect();
    let each = |result: Value| -> Result<Value, OpError> {
        let Value::Tensor(cell) = &result else {
            return Ok(result);
        };
        let out = cell.get();
        match result_strides(op, &operands, out.sizes()) {
            Some(strides) if !operands.iter().any(|t| t.shares_storage(&out)) => Ok(out.with_strides(&strides)?.into()),
            _ => Ok(result),
        }
    };
    results.into_iter().map(each).collect()
}

/// Returns the strides, in elements, of a new result of `op` with sizes `sizes`, by the layout that its entry states. `None` if the result is row-major, or as
/// its kernel returns it.
pub fn result_strides(op: &Operator, operands: &[Tensor], sizes: &[i64]) -> Option<Dims> {
    match op.layout() {
        ResultLayout::AsComputed => None,
        ResultLayout::Elementwise => elementwise(operands, sizes),
        ResultLayout::ChannelsLast(rank) => {
            let innermost = |t: &Tensor| layout::has_channels_innermost(t.sizes(), t.strides());
            (sizes.len() >= rank && operands.iter().take(2).any(innermost))
                .then(|| layout::channels_last_strides(sizes))
        }
        ResultLayout::LikeFirst => elementwise(operands.get(..1)?, sizes),
        ResultLayout::Joined => {
            let is_empty = |t: &&Tensor| t.sizes() == [0];
            let mut joined = operands.iter().filter(|t| !is_empty(t)).peekable();
            let innermost = |t: &Tensor| layout::is_like_channels_last(t.sizes(), t.strides());
            (joined.peek().is_some() && joined.all(innermost)).then(|| layout::channels_last_strides(sizes))
        }
        ResultLayout::ColumnMajor => (sizes.len() >= 2).then(|| layout::column_major_strides(sizes)),
    }
}

fn elementwise(operands: &[Tensor], sizes: &[i64]) -> Option<Dims> {
    if sizes.len() < 2 || operands.iter().all(Tensor::is_contiguous) {
        return None;
    }
    let layouts: Vec<(&[i64], &[i64])> = operands.iter().map(|t| (t.sizes(), t.strides())).collect();
    Some(layout::elementwise_strides(&layouts, sizes))
}

/// Returns the row-major `out` with the strides that PyTorch uses for an elementwise result of `operands`.
pub fn laid_out_as(out: &Tensor, operands: &[Tensor]) -> Result<Tensor, TensorError> {
    match elementwise(operands, out.sizes()) {
        Some(strides) => out.with_strides(&strides),
        None => Ok(out.clone()),
    }
}

/// Writes functional results to the destinations that the operator's [`Variant`] defines, and returns the operator's results.
pub(crate) fn write_results(op: &Operator, values: &[Value], results: Results) -> Result<Results, OpError> {
    let schema = &op.schema;
    match op.variant {
        Variant::Functional => laid_out(op, values, results),
        Variant::InPlace => {
            let (Some(Value::Tensor(cell)), Some(Value::Tensor(result))) = (values.first(), results.first()) else {
                return Err(OpError::Unsupported(
                    "an in-place operator on something other than a tensor".into(),
                ));
            };
            if op.changes_view() {
                cell.set(result.get());
                return Ok(smallvec::smallvec![Value::Tensor(cell.clone())]);
            }
            let (target, result) = (cell.get(), result.get());
            if !can_cast(result.dtype(), target.dtype()) {
                return Err(cast_error(&result, &target));
            }
            if target.sizes() != result.sizes() {
                return Err(OpError::raised(format!(
                    "output with shape {:?} doesn't match the broadcast shape {:?}",
                    target.sizes(),
                    result.sizes()
                )));
            }
            check_overlaps(op, &target, &values[1..])?;
            match op.traits.fills {
                true => target.once(&target)?.copy_(&result.once(&target)?)?,
                false => target.copy_(&result)?,
            }
            Ok(smallvec::smallvec![Value::Tensor(cell.clone())])
        }
        Variant::Out => {
            let outs: Vec<&Value> = out_arguments(schema).filter_map(|i| values.get(i)).collect();
            let mut given = Results::new();
            for (out, result) in outs.into_iter().zip(&results) {
                let (Value::Tensor(cell), Value::Tensor(result)) = (out, result) else {
                    return Err(OpError::raised("'out' has to be a tensor"));
                };
                let result = result.get();
                if !can_cast(result.dtype(), cell.get().dtype()) {
                    return Err(cast_error(&result, &cell.get()));
                }
                if cell.get().sizes() != result.sizes() {
                    resize(cell, result.sizes())?;
                }
                cell.get().copy_(&result)?;
                given.push(out.clone());
            }
            Ok(given)
        }
    }
}

/// Checks whether an in-place operator may write `target` while `operands` are its remaining arguments.
///
/// # Errors
/// PyTorch's error if an operand of an elementwise operator shares some of the target's elements ([`Tensor::partially_overlaps`]), and a refusal if the target
/// overlaps itself. In the latter case, PyTorch computes one element from what it wrote for another.
pub fn check_overlaps(op: &Operator, target: &Tensor, operands: &[Value]) -> Result<(), OpError> {
    // Conditions and fill values are not operands: PyTorch reads them before it writes.
    let compared = match &op.semantics {
        Semantics::Pointwise(entry) => entry.operands.len().saturating_sub(1),
        Semantics::Program(Form::Pointwise, _) if !op.traits.fills => operands.len(),
        _ => 0,
    };
    let shares = |operand: &Value| match operand {
        Value::Tensor(cell) => cell.with(|t| target.partially_overlaps(t)),
        _ => false,
    };
    if operands.iter().take(compared).any(shares) {
        return Err(TensorError::PartialOverlap.into());
    }
    let (sizes, strides) = (target.sizes(), target.strides());
    if !op.traits.fills && !layout::repeats_elements(sizes, strides) && layout::shares_elements(sizes, strides)? {
        return Err(OpError::Unsupported(
            "an in-place operator on a tensor whose elements share memory, as windows of `unfold` do".into(),
        ));
    }
    Ok(())
}

fn cast_error(result: &Tensor, target: &Tensor) -> OpError {
    let (from, to) = (result.dtype().type_name(), target.dtype().type_name());
    OpError::raised(format!(
        "result type {from} can't be cast to the desired output type {to}"
    ))
}

/// Returns the arguments for a composite's body. Arguments that an `out` overload adds are left out; dtype, layout and the like, which such overloads lack, are
/// `None`.
pub fn composite_arguments(op: &Operator, body: &Graph, values: &[Value]) -> Vec<Value> {
    let written: Vec<usize> = match op.variant {
        Variant::Out => out_arguments(&op.schema).collect(),
        _ => Vec::new(),
    };
    let kept = values.iter().enumerate().filter(|(i, _)| !written.contains(i));
    let mut arguments: Vec<Value> = kept.map(|(_, v)| v.clone()).collect();
    arguments.resize(body.inputs().len(), Value::None);
    arguments
}

/// Executes `Tensor.resize_`: row-major with new sizes, in the same storage if it is large enough. New elements are zero.
pub fn resize(cell: &TensorCell, sizes: &[i64]) -> Result<(), OpError> {
    let old = cell.get();
    let strides = layout::contiguous_strides(sizes);
    match old.as_strided(sizes, &strides, old.offset()) {
        Ok(t) => cell.set(t),
        Err(_) => {
            let t = Tensor::zeros(old.dtype(), sizes)?;
            let keep = old.contiguous()?;
            let kept = keep.numel().min(t.numel());
            t.as_strided(&[kept], &[1], 0)?
                .copy_(&keep.as_strided(&[kept], &[1], keep.offset())?)?;
            cell.set(t);
        }
    }
    Ok(())
}
