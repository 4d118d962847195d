//! Compares the cost model's choices of kernels with measurements on this machine: `make bench-cost-model`.
//!
//! ```text
//! cargo run --release -p frazil --example cost_model [-- [--threads=N] [--target-cpu=CPU] [MODEL.pt=SHAPES | FOLDER]...]
//! ```
//!
//! A folder holds a folder for each model, with `model.pt`, and recorded calls in `case.json` and `tensors.safetensors`; without arguments it is the
//! repository's `tests/fixtures/models`. SHAPES are the sizes of a method's inputs of f32: `1x3x224x224,1x10`. Models that are not compiled as a
//! whole are left out.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example prints")]

use frazil::ir::DType;
use frazil::{FreezeOptions, Session};
use frazil_codegen::BackendOptions;
use frazil_codegen::backend::host_target;
use frazil_codegen::tune::Comparisons;
use frazil_planner::target::Target;
use frazil_planner::tune::Tuning;
use frazil_planner::{ArgumentSpec, LowerOptions, compile_graph};
use frazil_recorded::case::models;
use frazil_runtime::structured::TensorShape;
use serde_json::Value as Json;
use std::error::Error;
use std::path::{Path, PathBuf};

/// Ratio of times from which a choice counts as wrong.
const TOLERANCE: f64 = 1.1;

/// A method, and the types and sizes of its inputs.
type Call = (String, Vec<ArgumentSpec>);

/// An archive, and calls of its methods.
type Inputs = (PathBuf, Vec<Call>);

fn main() -> Result<(), Box<dyn Error>> {
    let (mut threads, mut target, mut paths) = (1, host_target(), Vec::new());
    for argument in std::env::args().skip(1) {
        match argument.split_once('=') {
            Some(("--threads", n)) => threads = n.parse()?,
            Some(("--target-cpu", cpu)) => target = Target::new(cpu, ""),
            _ => paths.push(argument),
        }
    }
    if paths.is_empty() {
        paths.push(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/models").to_owned());
    }
    let options = BackendOptions {
        target,
        threads,
        ..BackendOptions::default()
    };
    let mut comparisons = Comparisons::default();
    for path in &paths {
        for (model, calls) in inputs(path)? {
            if let Err(why) = measure(&model, &calls, &options, &mut comparisons) {
                eprintln!("{}: left out: {why}", model.display());
            }
        }
    }
    print(&comparisons, &options);
    Ok(())
}

/// The models that `path` names, with calls of their methods.
fn inputs(path: &str) -> Result<Vec<Inputs>, Box<dyn Error>> {
    if let Some((model, shapes)) = path.split_once('=') {
        let sizes = |shape: &str| shape.split('x').map(str::parse).collect::<Result<_, _>>();
        let spec = |shape: &str| -> Result<ArgumentSpec, Box<dyn Error>> {
            Ok(ArgumentSpec::Tensor(TensorShape {
                dtype: DType::Float,
                sizes: sizes(shape)?,
            }))
        };
        let specs = shapes.split(',').map(spec).collect::<Result<_, _>>()?;
        return Ok(vec![(model.into(), vec![("forward".to_owned(), specs)])]);
    }
    let mut all = Vec::new();
    for case in models(Path::new(path))? {
        let tensors = case.tensors()?;
        let method = |json: &Json| json.get("method").and_then(Json::as_str).map(str::to_owned);
        let mut calls = Vec::new();
        for call in case.json.get("calls").and_then(Json::as_array).into_iter().flatten() {
            let spec = |argument: &Json| {
                let tensor = tensors.get(argument.get("tensor")?.as_str()?).ok()?;
                Some(ArgumentSpec::Tensor(TensorShape {
                    dtype: tensor.dtype(),
                    sizes: tensor.sizes().into(),
                }))
            };
            let arguments = call.get("args").and_then(Json::as_array).into_iter().flatten();
            let name = method(call).or_else(|| method(&case.json));
            if let Some(specs) = arguments.map(spec).collect() {
                calls.push((name.unwrap_or_else(|| "forward".to_owned()), specs));
            }
        }
        all.push((case.model, calls));
    }
    Ok(all)
}

/// Measures the kernels of a model that are not measured yet.
fn measure(
    model: &Path,
    calls: &[Call],
    options: &BackendOptions,
    comparisons: &mut Comparisons,
) -> Result<(), Box<dyn Error>> {
    let session = Session::new();
    let loaded = session.load_any(model)?.freeze(&FreezeOptions::default())?;
    let lowering = LowerOptions {
        name: "model".to_owned(),
        target: options.target.clone(),
        fuse: true,
        tuning: Tuning::default(),
        families: Vec::new(),
        packed: None,
        sizes: Default::default(),
        threads: options.threads,
    };
    for (method, specs) in calls {
        let lowered = compile_graph(loaded.graph(method)?, specs, session.registry(), &lowering)?;
        comparisons.measure(&lowered.plan, options)?;
    }
    Ok(())
}

fn print(comparisons: &Comparisons, options: &BackendOptions) {
    let target = &options.target;
    println!("{} ({}), threads: {}", target.cpu, target.machine.name, options.threads);
    println!("| kernel | chosen | us | best | us | ratio |");
    println!("| --- | --- | --- | --- | --- | --- |");
    let mut rows: Vec<_> = comparisons.rows().iter().collect();
    rows.sort_by(|a, b| b.ratio().total_cmp(&a.ratio()));
    for row in rows {
        let best = row.best();
        println!(
            "| {} | {} | {:.2} | {} | {:.2} | {:.2} |",
            row.kernel,
            row.chosen.description,
            row.chosen.seconds * 1e6,
            best.description,
            best.seconds * 1e6,
            row.ratio()
        );
    }
    let (wrong, all) = (comparisons.slower_than(TOLERANCE), comparisons.rows().len());
    let logarithms: f64 = comparisons.rows().iter().map(|r| r.ratio().ln()).sum();
    let mean = (logarithms / all.max(1) as f64).exp();
    println!(
        "{wrong} of {all} choices are more than 10 % slower than the best; geometric mean of the ratios {mean:.3}"
    );
}
