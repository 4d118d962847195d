//! Running programs on both engines.

use super::{Argument, Program};
use frazil::ir::DType;
use frazil::runtime::layout::representative_strides;
use frazil::{CallError, Engine, EngineKind, EngineOptions, FusionStrategy, Loaded, Model, Session, Tensor, Value};
use frazil_recorded::random::Random;
use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// The reason why a program fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The program does not compile, which is a bug of the writer, not of an engine.
    Source(String),
    /// The engines disagree.
    Differs(String),
    /// An engine panics.
    Panics,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Source(e) => write!(f, "the program does not compile: {e}"),
            Failure::Differs(what) => f.write_str(what),
            Failure::Panics => f.write_str("a panic"),
        }
    }
}

/// The outcome of a run without differences.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ran {
    /// The native engine did not need the interpreter.
    pub natively: bool,
    /// A call raised, on both engines.
    pub raised: bool,
}

/// Rounds with the sizes that the program was written for.
const ROUNDS: u64 = 2;
/// Rounds with other sizes, after those.
const RESIZED_ROUNDS: u64 = 3;

/// Runs the program on both engines, each time with other arguments, the last times with other sizes.
///
/// # Errors
/// If they disagree.
pub fn check(program: &Program) -> Result<Ran, Failure> {
    catch_unwind(AssertUnwindSafe(|| compare(program))).unwrap_or(Err(Failure::Panics))
}

fn compare(program: &Program) -> Result<Ran, Failure> {
    let model = load(&program.source()).map_err(Failure::Source)?;
    // Every third program runs in code whose sizes are arguments.
    let static_shapes = (program.seed % 3) as usize;
    let [mut native, mut interpreter] =
        [EngineKind::Native, EngineKind::Interpreter].map(|kind| engine(&model, kind, static_shapes));
    let mut ran = Ran::default();
    for round in 0..ROUNDS + RESIZED_ROUNDS {
        let engines = [&mut native, &mut interpreter];
        let [got, want] = engines.map(|engine| {
            let args = arguments(program, round);
            let result = made(engine).and_then(|engine| call(engine, "f", &args));
            (result, args)
        });
        let in_call = |what: String| Failure::Differs(format!("call {round}: {what}"));
        let returned = same_outcome(&want.0, &got.0).map_err(in_call)?;
        // The statements may require the sizes that they were written for.
        ran.raised |= !returned && round < ROUNDS;
        if let (Ok(want_results), Ok(got_results)) = (&want.0, &got.0) {
            same_results(program, want_results, got_results, false).map_err(in_call)?;
            same_arguments(program, &want.1, &got.1, false).map_err(in_call)?;
            let all = |results: &Value, args: &[Value]| [tensors(results), args.to_vec()].concat();
            same_sharing(&all(want_results, &want.1), &all(got_results, &got.1)).map_err(in_call)?;
        }
        if program.attributes.is_empty() {
            continue;
        }
        let after = |what: String| Failure::Differs(format!("after call {round}: {what}"));
        let [got_kept, want_kept] = [&mut native, &mut interpreter].map(|engine| {
            let kept = made(engine).and_then(|engine| call(engine, "change", &[]));
            kept.map(|kept| kept.items().unwrap_or_default())
        });
        if !same_outcome(&want_kept, &got_kept).map_err(after)? {
            continue;
        }
        let (want_kept, got_kept) = (want_kept.unwrap_or_default(), got_kept.unwrap_or_default());
        // A call that raised may have set some attributes, to tensors of other sizes than the tolerances are for.
        if let (Ok(want_results), Ok(got_results)) = (&want.0, &got.0) {
            for ((want, got), kept) in want_kept.iter().zip(&got_kept).zip(&program.attributes) {
                same(want, got, kept.changed).map_err(|what| after(format!("{}: {what}", kept.name)))?;
            }
            same_results(program, want_results, got_results, true).map_err(after)?;
            same_arguments(program, &want.1, &got.1, true).map_err(after)?;
        }
    }
    ran.natively = native.is_ok_and(|e| !e.notes().iter().any(|note| note.contains("interpreter")));
    Ok(ran)
}

fn made(engine: &mut Result<Engine, String>) -> Result<&mut Engine, String> {
    engine.as_mut().map_err(|e| e.clone())
}

/// Returns whether both engines returned; false if both raised.
fn same_outcome<T>(want: &Result<T, String>, got: &Result<T, String>) -> Result<bool, String> {
    match (want, got) {
        (Ok(_), Ok(_)) => Ok(true),
        (Err(_), Err(_)) => Ok(false),
        (Ok(_), Err(e)) => Err(format!("only native code fails: {e}")),
        (Err(e), Ok(_)) => Err(format!("only the interpreter fails: {e}")),
    }
}

fn load(source: &str) -> Result<Model, String> {
    match Session::new().load_bytes(Path::new("random.py"), source.as_bytes().to_vec()) {
        Ok(Loaded::Model(model)) => Ok(model),
        Ok(Loaded::Graphs(graphs)) => Ok(graphs.to_model()),
        Err(e) => Err(e.to_string()),
    }
}

fn engine(model: &Model, kind: EngineKind, static_shapes: usize) -> Result<Engine, String> {
    let options = EngineOptions::default().kind(kind);
    let methods = ["f", "change"]
        .into_iter()
        .filter(|&method| model.graph(method).is_ok());
    let options = options.methods(methods.map(str::to_owned).collect());
    let strategy = FusionStrategy { static_shapes };
    model
        .engine(&options.fusion_strategy(strategy))
        .map_err(|e| e.to_string())
}

fn call(engine: &mut Engine, method: &str, args: &[Value]) -> Result<Value, String> {
    engine.call(method, args).map_err(|e| match e {
        CallError::Raised(text) => text,
        CallError::Failed(error) => error.to_string(),
    })
}

fn arguments(program: &Program, round: u64) -> Vec<Value> {
    let mut random = Random::new(program.seed.wrapping_mul(2).wrapping_add(round));
    let mut extents = HashMap::new();
    let mut values = Vec::new();
    for argument in &program.arguments {
        let mut argument = argument.clone();
        if round >= ROUNDS {
            for size in &mut argument.sizes {
                *size = *extents.entry(*size).or_insert_with(|| resized(*size, &mut random));
            }
        }
        values.push(tensor(&argument, &mut random).into());
    }
    values.push(Value::Int(2 + round as i64));
    values.push(Value::Float(0.75 - round as f64));
    values
}

/// Returns another extent for all dimensions that have the extent `size`, or the same. It is not larger, so that the tolerances hold.
fn resized(size: i64, random: &mut Random) -> i64 {
    match random.below(8) {
        0..4 => size,
        4 => 1.min(size),
        _ => random.below(size as u64 + 1) as i64,
    }
}

fn tensor(argument: &Argument, random: &mut Random) -> Tensor {
    let numel = argument.sizes.iter().product::<i64>();
    let made = match argument.dtype.is_floating_point() {
        true => {
            let elements: Vec<f32> = (0..numel).map(|_| random.double() as f32).collect();
            Tensor::from_f32(&elements, &argument.sizes)
        }
        false => {
            let below = if argument.dtype == DType::Bool { 2 } else { 7 };
            let elements: Vec<i64> = (0..numel).map(|_| random.below(below) as i64).collect();
            Tensor::from_i64(&elements, &argument.sizes)
        }
    };
    let made = made.and_then(|t| t.to_dtype(argument.dtype));
    laid_out(made.expect("as many elements as sizes say"), random)
}

/// Returns the tensor, in some cases with its dimensions in another order in memory, or with gaps.
fn laid_out(tensor: Tensor, random: &mut Random) -> Tensor {
    let sizes = tensor.sizes().to_vec();
    if tensor.numel() == 0 {
        return tensor;
    }
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    let step = match random.below(6) {
        0 => {
            order.reverse();
            1
        }
        1 => {
            let moved = usize::from(order.len() > 1);
            order.rotate_right(moved);
            1
        }
        2 => 2,
        _ => return tensor,
    };
    let mut strides = vec![0; sizes.len()];
    let mut reached = step;
    for d in order.into_iter().rev() {
        strides[d] = reached;
        reached *= sizes[d].max(1);
    }
    // Programs ask for strides, and native code does not keep those of dimensions of extent 1.
    let strides = representative_strides(&sizes, &strides);
    let whole = Tensor::zeros(tensor.dtype(), &[reached]);
    let other = whole.and_then(|whole| whole.as_strided(&sizes, &strides, 0));
    let other = other.expect("the elements lie in the whole");
    other.copy_(&tensor).expect("the same sizes");
    other
}

/// Returns the two lists that a program returns.
fn lists(results: &Value) -> Vec<Vec<Value>> {
    let parts = results.items().unwrap_or_default();
    parts.iter().map(|p| p.items().unwrap_or_default()).collect()
}

/// Returns the tensors that a program returns.
fn tensors(results: &Value) -> Vec<Value> {
    lists(results).into_iter().next().unwrap_or_default()
}

/// Compares which tensors share memory, so that writes to one may change the other. The states that a rolled loop leaves behind lie side by side in one storage,
/// but do not overlap.
fn same_sharing(want: &[Value], got: &[Value]) -> Result<(), String> {
    let reach = |t: &Tensor| {
        let steps = t.sizes().iter().zip(t.strides());
        (
            t.offset(),
            t.offset() + steps.map(|(size, stride)| (size - 1) * stride).sum::<i64>(),
        )
    };
    let shares = |all: &[Value], i: usize, j: usize| {
        let tensor = |i: usize| all.get(i).and_then(Value::as_tensor);
        let (a, b) = (tensor(i)?, tensor(j)?);
        // No element shows whether empty memory is shared.
        if a.numel() == 0 || b.numel() == 0 {
            return None;
        }
        let ((first, last), (start, end)) = (reach(&a), reach(&b));
        Some(a.shares_storage(&b) && first <= end && start <= last)
    };
    for i in 0..want.len() {
        for j in 0..i {
            let (want, got) = (shares(want, i, j), shares(got, i, j));
            if want != got {
                return Err(format!("tensors {j} and {i} share memory: {got:?} instead of {want:?}"));
            }
        }
    }
    Ok(())
}

fn same_arguments(program: &Program, want: &[Value], got: &[Value], changed: bool) -> Result<(), String> {
    for ((argument, want), got) in program.written.iter().zip(want).zip(got) {
        let tolerance = if changed { argument.changed } else { argument.tolerance };
        same(want, got, tolerance).map_err(|what| format!("{} after the call: {what}", argument.name))?;
    }
    Ok(())
}

fn same_results(program: &Program, want: &Value, got: &Value, changed: bool) -> Result<(), String> {
    let (want, got) = (lists(want), lists(got));
    let [tensors, integers] = want.as_slice() else {
        return Err("no tuple of two lists".to_owned());
    };
    if got.len() != 2 || got[0].len() != tensors.len() || got[1].len() != integers.len() {
        return Err("another number of results".to_owned());
    }
    for ((want, got), returned) in tensors.iter().zip(&got[0]).zip(&program.tensors) {
        let tolerance = if changed { returned.changed } else { returned.tolerance };
        same(want, got, tolerance).map_err(|what| format!("{}: {what}", returned.name))?;
    }
    for ((want, got), name) in integers.iter().zip(&got[1]).zip(&program.integers) {
        if want.as_int() != got.as_int() {
            return Err(format!("{name}: {got:?} instead of {want:?}"));
        }
    }
    Ok(())
}

fn same(want: &Value, got: &Value, tolerance: f64) -> Result<(), String> {
    let (Some(want), Some(got)) = (want.as_tensor(), got.as_tensor()) else {
        return Err("not a tensor".to_owned());
    };
    // Results of native code are dense; programs that query strides get the interpreter's.
    let kind = |t: &Tensor| format!("{}{:?}", t.dtype(), t.sizes());
    if kind(&want) != kind(&got) {
        return Err(format!("{} instead of {}", kind(&got), kind(&want)));
    }
    if !want.dtype().is_floating_point() {
        let (a, b) = (want.to_i64_vec(), got.to_i64_vec());
        return match a.iter().zip(&b).position(|(a, b)| a != b) {
            Some(i) => Err(format!("element {i} is {} instead of {}", b[i], a[i])),
            None => Ok(()),
        };
    }
    let (a, b) = (want.to_f64_vec(), got.to_f64_vec());
    let close = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance;
    match a.iter().zip(&b).position(|(&a, &b)| !close(a, b)) {
        Some(i) => Err(format!(
            "element {i} is {:e} instead of {:e} (tolerance {tolerance:e})",
            b[i], a[i]
        )),
        None => Ok(()),
    }
}
