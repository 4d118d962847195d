//! Compiles and runs a model again and again in one process, each time in a new session, and prints its memory and threads:
//! `cargo run --release -p frazil --example compile_many -- model.pt 1x3x32x32 1000`.

#![allow(clippy::print_stdout, reason = "this is a program")]

#[path = "../tests/process/status.rs"]
mod status;

use frazil::ir::DType;
use frazil::{CompileOptions, FreezeOptions, InputSpec, Session, Tensor};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), Some(shape), Some(count)) = (arguments.next(), arguments.next(), arguments.next()) else {
        return Err("usage: compile_many MODEL SHAPE COUNT".into());
    };
    let sizes = shape.split('x').map(str::parse).collect::<Result<Vec<i64>, _>>()?;
    let count: usize = count.parse()?;
    let (mut first, mut most) = (0, 0);
    for i in 1..=count {
        compile_and_run(&path, &sizes)?;
        let (kib, threads) = (status::resident_kib(), status::threads());
        if i == 10 {
            first = kib;
        }
        if i > 10 {
            most = most.max(kib);
        }
        if i <= 10 || i % 50 == 0 {
            println!("{i}: {kib} KiB, {threads} threads");
        }
    }
    println!("after the tenth: {first} KiB; the most since: {most} KiB");
    Ok(())
}

fn compile_and_run(path: &str, sizes: &[i64]) -> Result<(), Failure> {
    let frozen = Session::new().load(path)?.freeze(&FreezeOptions::default())?;
    let options = CompileOptions::default().threads(2);
    let mut code = frozen.compile(&[InputSpec::new(DType::Float, sizes)], &options)?;
    code.run(&[Tensor::zeros(DType::Float, sizes)?])?;
    Ok(())
}
