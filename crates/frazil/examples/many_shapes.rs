//! Calls a model with many different shapes in one process, and prints its memory, its threads and how many kernels were compiled:
//! `cargo run --release -p frazil --example many_shapes -- model.pt 1..16x10..200x256 10000`. A size is a number or a range. Every hundredth result is compared
//! with the interpreter's.

#![allow(clippy::print_stdout, reason = "this is a program")]

#[path = "../tests/process/status.rs"]
mod status;

use frazil::{Engine, EngineKind, EngineOptions, Session, Tensor, Value};
use std::collections::HashSet;
use std::ops::RangeInclusive;

type Failure = Box<dyn std::error::Error>;

/// Maximum difference of results of calls with inputs between -1 and 1.
const TOLERANCE: f64 = 1e-3;

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), Some(shape), Some(count)) = (arguments.next(), arguments.next(), arguments.next()) else {
        return Err("usage: many_shapes MODEL SHAPE COUNT".into());
    };
    let ranges = shape.split('x').map(range).collect::<Result<Vec<_>, _>>()?;
    let count: usize = count.parse()?;
    let possible = ranges
        .iter()
        .map(|r| (r.end() - r.start() + 1) as u128)
        .product::<u128>();
    if possible < count as u128 {
        return Err(format!("{shape} has only {possible} shapes").into());
    }
    let session = Session::new();
    let mut native = session.engine(&path, &EngineOptions::default().threads(1))?;
    let mut interpreter = session.engine(&path, &EngineOptions::default().kind(EngineKind::Interpreter))?;
    let (mut seen, mut random) = (HashSet::new(), 1u64);
    while seen.len() < count {
        let mut draw = |range: &RangeInclusive<i64>| {
            random = random
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            range.start() + ((random >> 33) % (range.end() - range.start() + 1) as u64) as i64
        };
        let sizes: Vec<i64> = ranges.iter().map(&mut draw).collect();
        if !seen.insert(sizes.clone()) {
            continue;
        }
        let x = input(&sizes)?;
        let result = elements(&mut native, &x)?;
        let number = seen.len();
        if number % 100 == 0 && !are_close(&result, &elements(&mut interpreter, &x)?) {
            return Err(format!("another result than the interpreter's: {sizes:?}").into());
        }
        if number == 100 || number % 1000 == 0 || number == count {
            let counts = native.kernel_counts();
            let (kib, threads) = (status::resident_kib(), status::threads());
            println!("{number} shapes: {kib} KiB, {threads} threads, {counts:?}");
        }
    }
    Ok(())
}

fn range(text: &str) -> Result<RangeInclusive<i64>, Failure> {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let (first, last) = (first.parse()?, last.parse()?);
    match 0 <= first && first <= last {
        true => Ok(first..=last),
        false => Err(format!("{text} is no size and no range of sizes").into()),
    }
}

fn input(sizes: &[i64]) -> Result<Value, Failure> {
    let values: Vec<f32> = (0..sizes.iter().product())
        .map(|i: i64| ((i * 7919) % 113 - 56) as f32 / 56.0)
        .collect();
    Ok(Tensor::from_f32(&values, sizes)?.into())
}

/// Returns the elements of the tensors in the results of a call.
fn elements(engine: &mut Engine, x: &Value) -> Result<Vec<f64>, Failure> {
    let mut pending = vec![engine.call("forward", std::slice::from_ref(x))?];
    let mut all = Vec::new();
    while let Some(value) = pending.pop() {
        match &value {
            Value::Tuple(tuple) => pending.extend(tuple.items.iter().cloned()),
            other => all.extend(other.as_tensor().ok_or("a result that is no tensor")?.to_f64_vec()),
        }
    }
    Ok(all)
}

fn are_close(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len()
        && a.iter()
            .zip(b)
            .all(|(a, b)| (a - b).abs() <= TOLERANCE * (1.0 + b.abs()))
}
