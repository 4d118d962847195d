//! Freezing real archives: the frozen module is compared with the module itself, call by call.
//!
//! Runs on the large corpus.

use crate::common;

use common::registry;
use frazil_ir::Module;
use frazil_passes::{FreezeOptions, freeze_module};
use frazil_recorded::case::read_json;
use frazil_recorded::compare::{self, Tolerance};
use frazil_recorded::tensors::Tensors;
use frazil_recorded::value::value_from_json;
use frazil_recorded::workspace::corpus;
use frazil_runtime::interp::Interpreter;

use frazil_runtime::{Registry, Signature, Value};
use frazil_torchscript::{LoadOptions, load};
use std::sync::Arc;

/// Returns the methods and attributes that the case preserves.
fn preserved(case: &serde_json::Value) -> Vec<String> {
    let names = case["preserve"].as_array().into_iter().flatten();
    names.filter_map(|s| s.as_str().map(str::to_owned)).collect()
}

/// Runs the recorded calls in order on a new instance.
fn run(
    registry: &Arc<Registry>,
    module: &Module,
    case: &serde_json::Value,
    tensors: &Tensors,
) -> Vec<Result<Value, String>> {
    let module = Arc::new(module.clone());
    let interpreter = Interpreter::with_module(registry.clone(), module.clone()).unwrap();
    let calls = case["calls"].as_array().unwrap().iter();
    calls
        .map(|call| {
            let name = call["method"].as_str().or(case["method"].as_str()).unwrap_or("forward");
            let args = call["args"].as_array().unwrap().iter();
            let args: Vec<_> = args.map(|a| value_from_json(a, tensors).unwrap()).collect();
            let signature = Signature::of_method(&module, name).ok_or_else(|| format!("no method {name}"))?;
            let args = signature.bind(&args, &[]).map_err(|e| e.to_string())?;
            interpreter.call(name, &args).map_err(|e| e.to_string())
        })
        .collect()
}

/// Frozen modules return the results of the modules themselves, call by call: bit by bit without numeric optimisations, approximately with them.
#[test]
fn frozen_modules_give_the_same_results() {
    let Some(corpus) = corpus() else { return };
    let only = std::env::var("ONLY").unwrap_or_default();
    let mut failures = Vec::new();
    let mut compared = 0;
    for entry in std::fs::read_dir(corpus.join("models")).unwrap().filter_map(Result::ok) {
        let name = entry.file_name().into_string().unwrap();
        let path = entry.path().join("model.pt");
        if !path.exists() || !name.contains(&only) {
            continue;
        }
        let case = read_json(&entry.path().join("case.json")).unwrap();
        let tensors = Tensors::open(&entry.path().join("tensors.safetensors")).unwrap();
        let registry = registry();
        let options = LoadOptions::new(registry.ctx(), registry.catalogue());
        let module = load(&path, &options).unwrap();
        let expected = run(&registry, &module, &case, &tensors);
        for (numerics, tolerance) in [(false, Tolerance::EXACT), (true, Tolerance::new(1e-4, 1e-4))] {
            let mut options = FreezeOptions::default().optimize_numerics(numerics);
            options.freeze.preserve = preserved(&case);
            let frozen = match freeze_module(&module, &options, &*registry) {
                Ok(frozen) => frozen,
                Err(e) => {
                    failures.push(format!("{name}: {e}"));
                    continue;
                }
            };
            for (i, (want, got)) in expected
                .iter()
                .zip(run(&registry, &frozen, &case, &tensors))
                .enumerate()
            {
                let differs = match (want, &got) {
                    (Ok(a), Ok(b)) => compare::values(a, b, tolerance).err().map(|e| e.to_string()),
                    // Calls that the interpreter cannot run are skipped; exceptions of the program must also be raised
                    // after freezing.
                    (Err(e), _) if e.contains("malformed program") || e.contains("no semantics") => {
                        println!("{name}, call {i}: {e}");
                        None
                    }
                    (Err(_), Err(_)) => None,
                    (Err(a), Ok(_)) => Some(format!("only the frozen module runs: {a}")),
                    (Ok(_), Err(b)) => Some(format!("only the module itself runs: {b}")),
                };
                compared += usize::from(want.is_ok());
                if let Some(differs) = differs {
                    failures.push(format!("{name}, call {i}, numerics {numerics}: {differs}"));
                }
            }
        }
    }
    println!("{compared} calls compared");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
