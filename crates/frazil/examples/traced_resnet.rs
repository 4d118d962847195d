//! ResNet-18 written in Rust, traced, frozen and compiled, next to the archive of the same network that PyTorch scripted, with its weights:
//!
//! ```text
//! cargo run --release -p frazil --example traced_resnet -- resnet18.pt [--rounds 200]
//! ```
//!
//! Prints the medians of alternating runs, the speed-up of the traced one, and the largest difference of their results.

#![allow(clippy::print_stdout, reason = "this is a program")]

use frazil::eager::Var;
use frazil::ir::DType;
use frazil::trace::{Method, Parameters, Scope, TraceOptions};
use frazil::{CompileOptions, FreezeOptions, InputSpec, Model, Session, Tensor};
use std::time::Instant;

type Failure = Box<dyn std::error::Error>;

/// Returns the convolution and normalisation `n` of the module at `path`.
fn convolution(p: &Scope, x: &Var, path: &str, n: usize, stride: i64, padding: i64) -> frazil::Result<Var> {
    let weight = p.get(&format!("{path}conv{n}.weight"))?;
    let y = x.conv2d(weight).stride([stride; 2]).padding([padding; 2]).call()?;
    normalised(p, &y, &format!("{path}bn{n}"))
}

fn normalised(p: &Scope, x: &Var, path: &str) -> frazil::Result<Var> {
    let get = |name: &str| p.get(&format!("{path}.{name}"));
    let (mean, variance) = (get("running_mean")?, get("running_var")?);
    x.batch_norm(get("weight")?, get("bias")?, mean, variance, false, 0.1, 1e-5, true)
        .call()
}

fn block(p: &Scope, x: &Var, path: &str, stride: i64) -> frazil::Result<Var> {
    let y = convolution(p, x, path, 1, stride, 1)?.relu_().call()?;
    let y = convolution(p, &y, path, 2, 1, 1)?;
    let shortcut = match stride {
        1 => x.clone(),
        _ => {
            let y = x
                .conv2d(p.get(&format!("{path}downsample.0.weight"))?)
                .stride([stride; 2])
                .call()?;
            normalised(p, &y, &format!("{path}downsample.1"))?
        }
    };
    y.add_(shortcut).call()?.relu_().call()
}

fn resnet18(p: &Scope, x: &Var) -> frazil::Result<Var> {
    let x = convolution(p, x, "", 1, 2, 3)?.relu_().call()?;
    let mut x = x.max_pool2d([3, 3]).stride([2, 2]).padding([1, 1]).call()?;
    for (layer, first) in [(1, 1), (2, 2), (3, 2), (4, 2)] {
        x = block(p, &x, &format!("layer{layer}.0."), first)?;
        x = block(p, &x, &format!("layer{layer}.1."), 1)?;
    }
    let x = x.adaptive_avg_pool2d([1, 1]).call()?.flatten().start_dim(1).call()?;
    x.linear(p.get("fc.weight")?).bias(p.get("fc.bias")?).call()
}

/// Returns the traced network with the weights of `model`.
fn traced(session: &Session, model: &Model, input: &Tensor) -> Result<Model, Failure> {
    let mut parameters = Parameters::new("ResNet");
    for (name, tensor) in model.root().named_parameters(&frazil::MemberOptions::default())? {
        parameters.parameter(&name, tensor);
    }
    for (name, tensor) in model.root().named_buffers(&frazil::MemberOptions::default())? {
        parameters.buffer(&name, tensor);
    }
    let forward = Method {
        name: "forward",
        function: &|p, x| Ok(resnet18(p, &x[0])?.into()),
        inputs: std::slice::from_ref(input),
    };
    let trace = session.trace_module(&parameters, &[forward], &TraceOptions::default())?;
    for warning in &trace.warnings {
        println!("{warning}");
    }
    Ok(trace.to_model())
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: traced_resnet ARCHIVE [--rounds N]")?;
    let rounds: usize = match arguments.next().as_deref() {
        Some("--rounds") => arguments.next().ok_or("how many rounds?")?.parse()?,
        _ => 100,
    };
    let sizes = [1, 3, 224, 224];
    let numel: i64 = sizes.iter().product();
    let data: Vec<f32> = (0..numel).map(|i| ((i * 37 % 101) as f32 - 50.0) / 50.0).collect();
    let input = Tensor::from_f32(&data, &sizes)?;

    let session = Session::new();
    let archive = session.load(&path)?;
    let traced = traced(&session, &archive, &input)?;
    let compile = |model: &Model| {
        let frozen = model.freeze(&FreezeOptions::default())?;
        frozen.compile(&[InputSpec::new(DType::Float, &sizes)], &CompileOptions::default())
    };
    let (mut ours, mut theirs) = (compile(&traced)?, compile(&archive)?);
    let (mut fast, mut wanted) = (Vec::new(), Vec::new());
    let mut difference = 0.0f64;
    for _ in 0..rounds {
        let start = Instant::now();
        let a = ours.run(std::slice::from_ref(&input))?;
        fast.push(start.elapsed());
        let start = Instant::now();
        let b = theirs.run(std::slice::from_ref(&input))?;
        wanted.push(start.elapsed());
        let elements = |v: frazil::Value| v.as_tensor().map(|t| t.to_f64_vec()).unwrap_or_default();
        let (a, b) = (elements(a), elements(b));
        assert_eq!((a.len(), b.len()), (1000, 1000));
        let differences = a.iter().zip(&b).map(|(a, b)| (a - b).abs());
        difference = differences.fold(difference, f64::max);
    }
    let median = |times: &mut Vec<std::time::Duration>| {
        times.sort();
        times[times.len() / 2].as_secs_f64() * 1e3
    };
    let (a, b) = (median(&mut fast), median(&mut wanted));
    println!(
        "traced {a:.2} ms, archive {b:.2} ms: {:.3} times; largest difference {difference:e}",
        b / a
    );
    Ok(())
}
