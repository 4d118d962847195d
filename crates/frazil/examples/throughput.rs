//! Calls one model through handles of one engine, alternately on one thread and on two, and prints calls per second, processor time, and their ratios
//! (Linux): `cargo run --release -p frazil --example throughput -- model.pt 1x3x224x224 [SECONDS] [native|interpreter]`.

#![allow(clippy::print_stdout, reason = "this is a program")]

use frazil::ir::DType;
use frazil::{Engine, EngineKind, EngineOptions, Session, Tensor, Value};
use std::time::{Duration, Instant};

type Failure = Box<dyn std::error::Error>;

/// Number of rounds; each measures one thread and two.
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
    let (mut ratios, mut costs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let [one, two] = [1, 2].map(|threads| measure(&engine, threads, &sizes, time));
        let (one, two) = (one?, two?);
        let ratio = two.rate / one.rate;
        // On a machine with other load, the processor time is more reliable.
        let cost = two.processor_time / one.processor_time;
        println!(
            "{:.1} calls/s on one thread, {:.1} on two: {ratio:.3}; processor time of a call {:.1} us and {:.1} us: {cost:.3}",
            one.rate,
            two.rate,
            one.processor_time * 1e6,
            two.processor_time * 1e6
        );
        ratios.push(ratio);
        costs.push(cost);
    }
    for all in [&mut ratios, &mut costs] {
        all.sort_by(f64::total_cmp);
    }
    println!(
        "medians of the ratios: {:.3}, {:.3}",
        ratios[ROUNDS / 2],
        costs[ROUNDS / 2]
    );
    Ok(())
}

struct Measured {
    /// Calls per second.
    rate: f64,
    /// Processor time of a call in seconds.
    processor_time: f64,
}

/// Returns the processor time of the current thread in seconds.
fn processor_time() -> Result<f64, String> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").map_err(|e| e.to_string())?;
    let nanoseconds: Option<f64> = text.split_whitespace().next().and_then(|word| word.parse().ok());
    Ok(nanoseconds.ok_or("schedstat has another form")? / 1e9)
}

fn measure(engine: &Engine, threads: usize, sizes: &[i64], time: Duration) -> Result<Measured, Failure> {
    let input = Value::from(Tensor::full(DType::Float, sizes, 0.5.into())?);
    let all = std::thread::scope(|scope| {
        let run = |mut handle: Engine| {
            let input = [input.clone()];
            // The first call allocates the workspace.
            handle.call("forward", &input).map_err(|e| e.to_string())?;
            let (start, mut calls, before) = (Instant::now(), 0, processor_time()?);
            while start.elapsed() < time {
                handle.call("forward", &input).map_err(|e| e.to_string())?;
                calls += 1;
            }
            let calls = f64::from(calls);
            Ok::<_, String>(Measured {
                rate: calls / start.elapsed().as_secs_f64(),
                processor_time: (processor_time()? - before) / calls,
            })
        };
        let all: Vec<_> = (0..threads)
            .map(|_| {
                let handle = engine.share();
                scope.spawn(move || run(handle))
            })
            .collect();
        all.into_iter()
            .map(|thread| thread.join().map_err(|_| "a thread panicked".to_owned())?)
            .collect::<Result<Vec<Measured>, _>>()
    })?;
    Ok(Measured {
        rate: all.iter().map(|one| one.rate).sum(),
        processor_time: all.iter().map(|one| one.processor_time).sum::<f64>() / threads as f64,
    })
}
