//! Interrupts the first call of a model (freezing and compiling) at times spread over its duration, and prints the delay until it returns: `cargo
//! run --release -p frazil --example interruption_delay -- model.pt 1x3x224x224 [COUNT]`. A shape that begins with `i` denotes an integer tensor.

#![allow(clippy::print_stdout, reason = "this is a program")]

use frazil::ir::DType;
use frazil::{CallError, EngineOptions, Error, Session, Tensor, Value, interruptible};
use std::time::{Duration, Instant};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), Some(shape)) = (arguments.next(), arguments.next()) else {
        return Err("usage: interruption_delay MODEL SHAPE [COUNT]".into());
    };
    let (dtype, sizes) = match shape.strip_prefix('i') {
        Some(sizes) => (DType::Long, sizes),
        None => (DType::Float, shape.as_str()),
    };
    let sizes = sizes.split('x').map(str::parse).collect::<Result<Vec<i64>, _>>()?;
    let count: u32 = arguments.next().map_or(Ok(20), |text| text.parse())?;
    let input = [Value::from(Tensor::zeros(dtype, &sizes)?)];
    let load_and_call = || {
        let mut engine = Session::new()
            .load(&path)?
            .engine(&EngineOptions::default().eval(true))?;
        engine.call("forward", &input)
    };
    let start = Instant::now();
    load_and_call()?;
    let whole = start.elapsed();
    println!("loading and the first call: {:.0} ms", whole.as_secs_f64() * 1e3);
    let mut delays = Vec::new();
    for number in 0..count {
        let end = Instant::now() + whole * number / count;
        let ended = interruptible(move || Instant::now() >= end, load_and_call);
        match ended {
            Err(CallError::Failed(Error::Interrupted)) => delays.push(end.elapsed()),
            Ok(_) => println!("done before its interruption"),
            Err(other) => return Err(other.into()),
        }
    }
    delays.sort_unstable();
    let (Some(last), Some(median)) = (delays.last(), delays.get(delays.len() / 2)) else {
        return Err("nothing was interrupted".into());
    };
    let ms = |time: &Duration| time.as_secs_f64() * 1e3;
    println!("delays: median {:.0} ms, longest {:.0} ms", ms(median), ms(last));
    Ok(())
}
