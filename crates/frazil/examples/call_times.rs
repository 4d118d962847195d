//! Measures calls of methods with empty bodies, through an engine with and without checking of arguments: `cargo run
//! --release -p frazil --no-default-features --example call_times`.
#![allow(clippy::print_stdout, reason = "an example prints")]

use frazil::runtime::interp::Interpreter;
use frazil::{EngineKind, EngineOptions, Session, Tensor, Value};
use std::time::Instant;

const SOURCE: &str = "class Net(nn.Module):
    def forward(self):
        return None
    @torch.jit.export
    def three(self, x, n: int, s: str):
        return None
    @torch.jit.export
    def ints(self, n: List[int]):
        return None
";

/// Nanoseconds that `run` takes: the minimum of many rounds.
fn time<T>(mut run: impl FnMut() -> T) -> f64 {
    let rounds = (0..200).map(|_| {
        let start = Instant::now();
        for _ in 0..1000 {
            std::hint::black_box(run());
        }
        start.elapsed().as_nanos() as f64 / 1000.0
    });
    rounds.fold(f64::INFINITY, f64::min)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = Session::new()
        .script("net.py".as_ref(), SOURCE, &[])?
        .to_model("forward")?;
    let options = EngineOptions::default()
        .kind(EngineKind::Interpreter)
        .methods(["forward", "three", "ints"].map(str::to_owned).to_vec());
    let mut engine = model.engine(&options)?;
    let registry = model.session().registry().clone();
    let interpreter = Interpreter::with_module(registry, model.module().clone())?;
    let tensor = Value::from(Tensor::from_f32(&[1.0], &[1])?);
    for (method, args) in [
        ("forward", vec![]),
        ("three", vec![tensor, Value::Int(3), Value::str("s")]),
        ("ints", vec![Value::ints([1, 2, 3])]),
    ] {
        engine.call(method, &args)?;
        let whole = time(|| engine.call(method, &args));
        let unchecked = time(|| interpreter.call_bound(method, &args));
        println!("{method}: {whole:.0} ns, without checks {unchecked:.0} ns");
    }
    Ok(())
}
