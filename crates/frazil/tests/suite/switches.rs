//! Fusion and compilation are options of each compilation, not of the process.
#![cfg(feature = "codegen")]

use frazil::ir::DType;
use frazil::{CompileOptions, EngineOptions, FreezeOptions, InputSpec, Loaded, Session, Tensor, Value};
use std::path::Path;

fn model() -> frazil::Model {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/models/residual_cnn/model.pt");
    Session::new().load(path).unwrap()
}

#[test]
fn without_fusion_there_are_more_kernels_and_the_same_results() {
    let frozen = Loaded::Model(model().freeze(&FreezeOptions::default()).unwrap());
    let inputs = [InputSpec::new(DType::Float, &[1, 3, 32, 32])];
    let x = Tensor::full(DType::Float, &[1, 3, 32, 32], 0.25.into()).unwrap();
    let [fused, separate] = [true, false].map(|fuse| {
        let options = CompileOptions::default().fuse(fuse);
        let plan = frozen.plan("forward", &inputs, &options).unwrap();
        let (calls, _) = plan.kernel_count();
        let result = plan.compile(&options).unwrap().run(std::slice::from_ref(&x)).unwrap();
        (calls, result.as_tensor().unwrap().to_f64_vec())
    });
    assert!(fused.0 < separate.0, "{} and {} kernels", fused.0, separate.0);
    for (a, b) in fused.1.iter().zip(&separate.1) {
        assert!((a - b).abs() <= 1e-4 + 1e-4 * b.abs(), "{a} and {b}");
    }
}

#[test]
fn a_method_is_compiled_for_as_many_shapes_as_the_engine_may() {
    let source = "def forward(x):\n    return x * 2 + 1\n";
    let session = Session::new();
    let loaded = session.load_bytes(Path::new("net.py"), source.into()).unwrap();
    let Loaded::Graphs(functions) = loaded else {
        panic!("a function is no module")
    };
    let model = functions.to_model();
    let call = |engine: &mut frazil::Engine, n: i64| {
        let x = Tensor::full(DType::Float, &[n], 3.0.into()).unwrap();
        let result = engine.call("forward", &[Value::from(x)]);
        result.map(|value| value.as_tensor().unwrap().to_f64_vec())
    };
    let options = EngineOptions::default().specialisations(Some(2));
    let mut engine = model.engine(&options).unwrap();
    for n in [1, 2, 3, 1] {
        assert_eq!(call(&mut engine, n).unwrap(), vec![7.0; n as usize]);
    }
    let compiled = |line: &&String| line.contains("kernel calls") && line.starts_with("forward");
    assert_eq!(engine.notes().iter().filter(compiled).count(), 2);
    assert!(
        engine
            .notes()
            .iter()
            .any(|line| line.contains("compiled for 2 call signatures"))
    );

    let mut strict = model.engine(&options.strict(true)).unwrap();
    assert!(call(&mut strict, 1).is_ok() && call(&mut strict, 2).is_ok());
    assert!(call(&mut strict, 3).is_err());
}
