//! Freezing real archives: the frozen module against the module itself, call by call.
//!
//! Runs over the corpus that `FRAZIL_CORPUS` names; without it there is nothing to compare.

#![allow(clippy::unwrap_used, clippy::panic, reason = "test helpers may fail loudly")]

mod common;

use common::registry;
use frazil_ir::{Context, DType, Module, TypeId, TypeKind, types};
use frazil_passes::{FreezeOptions, freeze_module};
use frazil_runtime::interp::Interpreter;
use frazil_runtime::value::{DictValue, Key, ListValue};
use frazil_runtime::{Registry, Tensor, Value};
use frazil_torchscript::{LoadOptions, load};
use safetensors::SafeTensors;
use std::path::PathBuf;
use std::sync::Arc;

fn corpus() -> Option<PathBuf> {
    std::env::var_os("FRAZIL_CORPUS").map(PathBuf::from)
}

/// Methods and attributes that the case asks to preserve.
fn preserved(case: &serde_json::Value) -> Vec<String> {
    let names = case["preserve"].as_array().into_iter().flatten();
    names.filter_map(|s| s.as_str().map(str::to_owned)).collect()
}

/// A recorded value as the interpreter takes it; `ty` says what empty lists hold.
fn value(ctx: &Context, json: &serde_json::Value, ty: TypeId, tensors: &SafeTensors<'_>) -> Value {
    let Some((kind, v)) = json.as_object().and_then(|o| o.iter().next()) else {
        return Value::None;
    };
    let ty = match ctx.type_kind(ty) {
        TypeKind::Optional(e) => e,
        _ => ty,
    };
    let element = |i: usize| match ctx.type_kind(ty) {
        TypeKind::List(e) => e,
        TypeKind::Tuple(es) | TypeKind::NamedTuple(_, _, es) => ctx.types(es).get(i).copied().unwrap_or(types::ANY),
        _ => types::ANY,
    };
    let items = |v: &serde_json::Value| -> Vec<Value> {
        let items = v.as_array().into_iter().flatten().enumerate();
        items.map(|(i, x)| value(ctx, x, element(i), tensors)).collect()
    };
    match kind.as_str() {
        "tensor" => {
            let t = tensors.tensor(v.as_str().unwrap()).unwrap();
            let sizes: Vec<i64> = t.shape().iter().map(|n| *n as i64).collect();
            let dtype = match t.dtype() {
                safetensors::Dtype::F32 => DType::Float,
                safetensors::Dtype::F64 => DType::Double,
                safetensors::Dtype::I64 => DType::Long,
                safetensors::Dtype::I32 => DType::Int,
                safetensors::Dtype::BOOL => DType::Bool,
                safetensors::Dtype::U8 => DType::Byte,
                other => panic!("{other:?}"),
            };
            Tensor::from_bytes(dtype, &sizes, t.data()).unwrap().into()
        }
        "int" => v.as_i64().unwrap().into(),
        "float" => v.as_f64().unwrap_or(f64::NAN).into(),
        "bool" => v.as_bool().unwrap().into(),
        "str" => Value::str(v.as_str().unwrap()),
        "list" => Value::List(ListValue::new(element(0), items(v))),
        "tuple" => Value::tuple(items(v)),
        "dict" => {
            let TypeKind::Dict(k, w) = ctx.type_kind(ty) else {
                panic!("no dictionary is wanted")
            };
            let entries = v.as_array().into_iter().flatten();
            let entries = entries
                .map(|e| (Key(value(ctx, &e[0], k, tensors)), value(ctx, &e[1], w, tensors)))
                .collect();
            Value::Dict(DictValue::new(k, w, entries))
        }
        _ => Value::None,
    }
}

/// Where `a` and `b` differ by more than `tolerance`, relative to the larger elements.
fn difference(a: &Value, b: &Value, tolerance: f64) -> Option<String> {
    if let (Some(a), Some(b)) = (a.as_tensor(), b.as_tensor()) {
        if a.sizes() != b.sizes() || a.dtype() != b.dtype() {
            return Some(format!(
                "{:?} {:?} and {:?} {:?}",
                a.dtype(),
                a.sizes(),
                b.dtype(),
                b.sizes()
            ));
        }
        let (a, b) = (a.to_f64_vec(), b.to_f64_vec());
        let scale = a.iter().fold(1.0f64, |m, x| m.max(x.abs()));
        let worst = a.iter().zip(&b).map(|(x, y)| {
            if x.is_nan() && y.is_nan() || x == y {
                0.0
            } else {
                (x - y).abs()
            }
        });
        let worst = worst.fold(0.0f64, |m, d| if d.is_nan() { f64::INFINITY } else { m.max(d) }) / scale;
        return (worst > tolerance).then(|| format!("by {worst:e}"));
    }
    if let (Some(x), Some(y)) = (a.items(), b.items()) {
        if x.len() != y.len() {
            return Some(format!("{} and {} elements", x.len(), y.len()));
        }
        return x.iter().zip(&y).find_map(|(x, y)| difference(x, y, tolerance));
    }
    match (a, b) {
        (Value::Dict(x), Value::Dict(y)) => {
            let (x, y) = (
                x.with(|e| e.values().cloned().collect::<Vec<_>>()),
                y.with(|e| e.values().cloned().collect::<Vec<_>>()),
            );
            x.iter().zip(&y).find_map(|(x, y)| difference(x, y, tolerance))
        }
        (Value::Float(x), Value::Float(y)) => {
            ((x - y).abs() > tolerance * x.abs().max(1.0)).then(|| format!("{x} and {y}"))
        }
        _ => (!a.equals(b).unwrap_or(false)).then(|| format!("{a:?} and {b:?}")),
    }
}

/// Runs the recorded calls in order on a fresh instance.
fn run(
    registry: &Arc<Registry>,
    module: &Module,
    case: &serde_json::Value,
    tensors: &SafeTensors<'_>,
) -> Vec<Result<Value, String>> {
    let interpreter = Interpreter::with_module(registry.clone(), Arc::new(module.clone())).unwrap();
    let ctx = module.ctx();
    let calls = case["calls"].as_array().unwrap().iter();
    calls
        .map(|call| {
            let name = call["method"].as_str().or(case["method"].as_str()).unwrap_or("forward");
            let function = module
                .method_function(ctx.symbol(name))
                .ok_or_else(|| format!("no method {name}"))?;
            let formals = function
                .schema
                .arguments
                .iter()
                .skip(1)
                .map(|a| a.ty)
                .chain(std::iter::repeat(types::ANY));
            let args: Vec<_> = call["args"]
                .as_array()
                .unwrap()
                .iter()
                .zip(formals)
                .map(|(a, ty)| value(ctx, a, ty, tensors))
                .collect();
            interpreter.call(name, &args).map_err(|e| e.to_string())
        })
        .collect()
}

/// Frozen modules give what the modules themselves give, call by call: bit by bit without the numerics, nearly so with them.
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
        let case: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(entry.path().join("case.json")).unwrap()).unwrap();
        let bytes = std::fs::read(entry.path().join("tensors.safetensors")).unwrap();
        let tensors = SafeTensors::deserialize(&bytes).unwrap();
        let registry = registry();
        let options = LoadOptions::new(registry.ctx(), registry.catalogue());
        let module = load(&path, &options).unwrap();
        let expected = run(&registry, &module, &case, &tensors);
        for (numerics, tolerance) in [(false, 0.0), (true, 1e-4)] {
            let mut options = FreezeOptions {
                optimize_numerics: numerics,
                ..FreezeOptions::default()
            };
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
                    (Ok(a), Ok(b)) => difference(a, b, tolerance),
                    // What the interpreter cannot run says nothing about freezing; what the program raises, it has to raise frozen too.
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
