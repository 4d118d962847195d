//! Calls one model through handles of one engine, on one thread and on two, in turns, and prints calls a second and their ratio:
//! `cargo run --release -p frazil --example throughput -- model.pt 1x3x224x224 [SECONDS] [native|interpreter]`.

#![allow(clippy::print_stdout, reason = "this is a program")]

use frazil::ir::DType;
use frazil::{Engine, EngineKind, EngineOptions, Session, Tensor, Value};
use std::time::{Duration, Instant};

type Failure = Box<dyn std::error::Error>;

/// Rounds, in each of which one thread and two are measured.
const ROUNDS: usize = 5;

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), Some(shape)) = (arguments.next(), arguments.next()) else {
        return Err("usage: throughput MODEL SHAPE [SECONDS] [native|interpreter]".into());
    };
    let sizes = shape.split('x').map(str::parse).collect::<Result<Vec<i64>, _>>()?;
    let time = Duration::from_secs_f64(arguments.next().map_or(Ok(2.0), |text| text.parse())?);
    let kind = match arguments.next().as_deref() {
        Some("interpreter") => EngineKind::Interpreter,
        _ => EngineKind::Native,
    };
    let model = Session::new().load(path)?;
    let engine = model.engine(&EngineOptions::default().kind(kind).eval(true))?;
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let [one, two] = [1, 2].map(|threads| calls_per_second(&engine, threads, &sizes, time));
        let (one, two) = (one?, two?);
        println!("{one:.1} calls/s on one thread, {two:.1} on two: {:.3}", two / one);
        ratios.push(two / one);
    }
    ratios.sort_by(f64::total_cmp);
    println!("median of the ratios: {:.3}", ratios[ROUNDS / 2]);
    Ok(())
}

fn calls_per_second(engine: &Engine, threads: usize, sizes: &[i64], time: Duration) -> Result<f64, Failure> {
    let input = Value::from(Tensor::full(DType::Float, sizes, 0.5.into())?);
    let rates = std::thread::scope(|scope| {
        let run = |mut handle: Engine| {
            let input = [input.clone()];
            // The first call makes the workspace.
            handle.call("forward", &input).map_err(|e| e.to_string())?;
            let (start, mut calls) = (Instant::now(), 0);
            while start.elapsed() < time {
                handle.call("forward", &input).map_err(|e| e.to_string())?;
                calls += 1;
            }
            Ok::<_, String>(f64::from(calls) / start.elapsed().as_secs_f64())
        };
        let all: Vec<_> = (0..threads)
            .map(|_| {
                let handle = engine.share();
                scope.spawn(move || run(handle))
            })
            .collect();
        all.into_iter()
            .map(|thread| thread.join().map_err(|_| "a thread panicked".to_owned())?)
            .collect::<Result<Vec<f64>, _>>()
    })?;
    Ok(rates.iter().sum())
}
