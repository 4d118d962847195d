//! Running programs on both engines.

use super::{Argument, Program};
use frazil::ir::DType;
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
            let result = engine
                .as_mut()
                .map_err(|e| e.clone())
                .and_then(|engine| call(engine, &args));
            (result, args)
        });
        match (&want.0, &got.0) {
            (Ok(want), Ok(got)) => {
                same_results(program, want, got).map_err(|what| Failure::Differs(format!("call {round}: {what}")))?
            }
            (Err(_), Err(_)) => {
                // The statements may require the sizes that they were written for.
                ran.raised |= round < ROUNDS;
                continue;
            }
            (Ok(_), Err(e)) => return Err(Failure::Differs(format!("call {round}: only native code fails: {e}"))),
            (Err(e), Ok(_)) => {
                return Err(Failure::Differs(format!(
                    "call {round}: only the interpreter fails: {e}"
                )));
            }
        }
        for (i, tolerance) in program.written.iter().enumerate() {
            same(&want.1[i], &got.1[i], *tolerance)
                .map_err(|what| Failure::Differs(format!("call {round}: x{i} after the call: {what}")))?;
        }
    }
    ran.natively = native.is_ok_and(|e| !e.notes().iter().any(|note| note.contains("interpreter")));
    Ok(ran)
}

fn load(source: &str) -> Result<Model, String> {
    match Session::new().load_bytes(Path::new("random.py"), source.as_bytes().to_vec()) {
        Ok(Loaded::Model(model)) => Ok(model),
        Ok(Loaded::Graphs(graphs)) => Ok(graphs.to_model()),
        Err(e) => Err(e.to_string()),
    }
}

fn engine(model: &Model, kind: EngineKind, static_shapes: usize) -> Result<Engine, String> {
    let options = EngineOptions::default().kind(kind).methods(vec!["f".to_owned()]);
    let strategy = FusionStrategy { static_shapes };
    model
        .engine(&options.fusion_strategy(strategy))
        .map_err(|e| e.to_string())
}

fn call(engine: &mut Engine, args: &[Value]) -> Result<Value, String> {
    engine.call("f", args).map_err(|e| match e {
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
    made.and_then(|t| t.to_dtype(argument.dtype))
        .expect("as many elements as sizes say")
}

fn same_results(program: &Program, want: &Value, got: &Value) -> Result<(), String> {
    let parts = |v: &Value| -> Vec<Vec<Value>> {
        let parts = v.items().unwrap_or_default();
        parts.iter().map(|p| p.items().unwrap_or_default()).collect()
    };
    let (want, got) = (parts(want), parts(got));
    let [tensors, integers] = want.as_slice() else {
        return Err("no tuple of two lists".to_owned());
    };
    if got.len() != 2 || got[0].len() != tensors.len() || got[1].len() != integers.len() {
        return Err("another number of results".to_owned());
    }
    for ((want, got), returned) in tensors.iter().zip(&got[0]).zip(&program.tensors) {
        same(want, got, returned.tolerance).map_err(|what| format!("{}: {what}", returned.name))?;
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
