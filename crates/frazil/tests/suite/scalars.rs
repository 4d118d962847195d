//! Operators with run-time scalars compile without guards on the values: native code computes the interpreter's results.
#![cfg(feature = "codegen")]

use frazil::ir::DType;
use frazil::{Engine, EngineKind, EngineOptions, Loaded, Model, Session, Tensor, Value};
use std::path::Path;

/// Calls of an overload on the tensor `x` and the scalar `s`.
fn calls(operator: &str, overload: &str) -> &'static [&'static str] {
    match (operator, overload) {
        ("aten::add", "Scalar") => &["x + s", "torch.add(x, s, alpha=2)"],
        ("aten::sub", "Scalar") => &["x - s", "torch.sub(x, s, alpha=2)"],
        ("aten::mul", "Scalar") => &["x * s"],
        ("aten::div", "Scalar") => &["x / s", "torch.div(x, s)"],
        ("aten::div", "Scalar_mode") => &[
            "torch.div(x, s, rounding_mode='floor')",
            "torch.div(x, s, rounding_mode='trunc')",
            "torch.div(x, s, rounding_mode=None)",
        ],
        ("aten::eq", "Scalar") => &["x == s"],
        ("aten::ne", "Scalar") => &["x != s"],
        ("aten::lt", "Scalar") => &["x < s"],
        ("aten::le", "Scalar") => &["x <= s"],
        ("aten::gt", "Scalar") => &["x > s"],
        ("aten::ge", "Scalar") => &["x >= s"],
        ("aten::masked_fill", "Scalar") => &["x.masked_fill(x > 1, s)", "x.clone().masked_fill_(x > 1, s)"],
        ("aten::fill", "Scalar") => &["torch.zeros_like(x).fill_(s)", "torch.fill(x, s)"],
        _ => &[],
    }
}

const DTYPES: [DType; 10] = [
    DType::Bool,
    DType::Byte,
    DType::Char,
    DType::Short,
    DType::Int,
    DType::Long,
    DType::Half,
    DType::BFloat16,
    DType::Float,
    DType::Double,
];

/// Scalars that fit every dtype, wrap in some, are rounded in some, and fit none.
const SCALARS: [f64; 18] = [
    0.0,
    1.0,
    -1.0,
    2.5,
    -3.75,
    0.1,
    127.0,
    128.0,
    255.0,
    256.0,
    -129.0,
    70000.0,
    16_777_217.0,
    -2_147_483_649.0,
    1e30,
    1e300,
    f64::INFINITY,
    f64::NAN,
];

fn engine(model: &Model, kind: EngineKind) -> Engine {
    // The interpreter runs the method only if the program raises.
    let options = EngineOptions::default()
        .kind(kind)
        .strict(true)
        .methods(vec!["f".to_owned()]);
    model.engine(&options).expect("it can be run")
}

/// Returns the result of a call as text, bit by bit; for an exception only that it is one.
fn outcome(engine: &mut Engine, arguments: &[Value]) -> String {
    match engine.call("f", arguments) {
        Ok(value) => {
            let tensor = value.as_tensor().expect("a tensor");
            let elements = tensor.to_f64_vec();
            let bits: Vec<u64> = elements
                .iter()
                .map(|x| if x.is_nan() { 0 } else { x.to_bits() })
                .collect();
            format!("{}{:?}{elements:?}{bits:?}", tensor.dtype(), tensor.sizes())
        }
        Err(_) => "raises".to_owned(),
    }
}

#[test]
fn every_overload_computes_what_the_interpreter_computes() {
    let session = Session::new();
    let stated = session.registry().entries();
    let stated = stated.filter(|(_, entry)| entry.traits().scalar_variant.is_some());
    let overloads: Vec<(&str, &str)> = stated.filter_map(|(name, _)| name.split_once('.')).collect();
    assert!(overloads.len() >= 13, "{overloads:?}");
    for (operator, overload) in overloads {
        let calls = calls(operator, overload);
        assert!(!calls.is_empty(), "no call of {operator}.{overload} is listed here");
        for (call, read) in calls
            .iter()
            .flat_map(|c| ["float(t)", "int(t)", "bool(t)"].map(|r| (c, r)))
        {
            let source = format!("def f(x: Tensor, t: Tensor):\n    s = {read}\n    return {call}\n");
            let loaded = Session::new().load_bytes(Path::new("net.py"), source.into_bytes());
            let Loaded::Graphs(graphs) = loaded.expect("it compiles") else {
                panic!("a function is a graph");
            };
            let model = graphs.to_model();
            for dtype in DTYPES {
                let mut engines = [EngineKind::Native, EngineKind::Interpreter].map(|kind| engine(&model, kind));
                let elements = Tensor::from_f32(&[3.0, -2.5, 0.0, 1.0, 100.0], &[5]).expect("five elements");
                let x = elements.to_dtype(dtype).expect("a conversion");
                for scalar in SCALARS {
                    let t = Tensor::scalar(DType::Double, frazil::runtime::Scalar::Float(scalar));
                    let arguments = [Value::from(x.clone()), Value::from(t)];
                    let [native, interpreted] = [0, 1].map(|i| outcome(&mut engines[i], &arguments));
                    let notes = engines[0].notes().join("\n");
                    assert_eq!(
                        native, interpreted,
                        "{call} with s = {read} of {scalar} on {dtype}\n{notes}"
                    );
                }
                let notes = engines[0].notes();
                let waits = notes.iter().filter(|n| n.contains("up to aten")).count();
                assert_eq!(
                    waits, 0,
                    "{call} with s = {read} on {dtype} waits for the scalar: {notes:#?}"
                );
            }
        }
    }
}
