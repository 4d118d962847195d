//! Programs that compiled code cannot represent are refused instead of ending the process; the interpreter raises their exceptions.
#![cfg(feature = "codegen")]

use frazil::ir::DType;
use frazil::{
    CompileOptions, Engine, EngineKind, EngineOptions, FreezeOptions, InputSpec, Loaded, Session, Tensor, Value,
};
use std::path::Path;

/// Returns the refusal of `expression` on tensors `x` and `y` of these sizes; `None` if it compiles.
fn refusal(expression: &str, dtype: DType, x: &[i64], y: &[i64]) -> Option<String> {
    let source = format!(
        "class Net(nn.Module):\n    def forward(self, x: Tensor, y: Tensor):\n        return {expression}\nmodel = Net().eval()\n"
    );
    let loaded = Session::new().load_bytes(Path::new("net.py"), source.into_bytes());
    let Loaded::Model(model) = loaded.expect("it compiles") else {
        panic!("a module is a model");
    };
    let model = model.freeze(&FreezeOptions::default()).expect("it can be frozen");
    let specs = [InputSpec::new(dtype, x), InputSpec::new(DType::Float, y)];
    model
        .compile(&specs, &CompileOptions::default())
        .err()
        .map(|error| error.to_string())
}

#[test]
fn sizes_whose_arithmetic_overflows() {
    let cases: [(&str, &[i64], &[i64]); 9] = [
        (
            "F.conv2d(x, y, stride=[9223372036854775807, 1])",
            &[1, 1, 3, 3],
            &[1, 1, 2, 2],
        ),
        (
            "F.conv2d(x, y, stride=[4611686018427387904, 1])",
            &[1, 1, 3, 3],
            &[1, 1, 2, 2],
        ),
        (
            "F.unfold(x, [2, 2], stride=[9223372036854775807, 1])",
            &[1, 1, 3, 3],
            &[1],
        ),
        ("F.pad(x, [-9223372036854775807, 9223372036854775807])", &[3], &[1]),
        ("x[:0].repeat(9223372036854775807, 9223372036854775807)", &[2, 1], &[1]),
        ("x[:0].repeat(1, 4611686018427387904)", &[2, 1], &[1]),
        (
            "F.max_pool2d(x, [2000000000, 2000000000], [1, 1], [1000000000, 1000000000])",
            &[1, 1, 1, 1],
            &[1],
        ),
        (
            "F.avg_pool2d(x, [2000000000, 2000000000], [1, 1], [1000000000, 1000000000])",
            &[1, 1, 1, 1],
            &[1],
        ),
        (
            "F.max_pool2d(x, [2000000000, 2000000000], [1, 1], [1000000000, 1000000000]) + 1",
            &[1, 1, 1, 1],
            &[1],
        ),
    ];
    let mut refused = 0;
    for (expression, x, y) in cases {
        // It compiles if entries bound their reads: tests/fixtures/language/sizes.py has the results.
        let Some(refusal) = refusal(expression, DType::Float, x, y) else {
            continue;
        };
        refused += 1;
        assert!(
            ["too large", "raises an exception", "waits for"]
                .iter()
                .any(|r| refusal.contains(r)),
            "{expression}: {refusal}"
        );
    }
    assert!(refused > 0);
}

#[test]
fn dtypes_that_the_interpreter_refuses() {
    for expression in [
        "F.layer_norm(x, [4])",
        "F.group_norm(x, 1)",
        "F.instance_norm(y, weight=x.reshape(-1)[:2])",
    ] {
        let refusal = refusal(expression, DType::Long, &[1, 2, 4], &[1, 2, 4]).expect("it is refused");
        assert!(refusal.contains("dtype"), "{expression}: {refusal}");
    }
}

/// Returns the results of both engines; `None` if they raise.
fn outcomes(source: &str, arguments: &[Value]) -> [Option<String>; 2] {
    [EngineKind::Native, EngineKind::Interpreter].map(|kind| {
        let loaded = Session::new().load_bytes(Path::new("net.py"), source.as_bytes().to_vec());
        let Loaded::Graphs(graphs) = loaded.expect("it compiles") else {
            panic!("a function is a graph");
        };
        let options = EngineOptions::default()
            .kind(kind)
            .strict(true)
            .methods(vec!["f".to_owned()]);
        let mut engine: Engine = graphs.to_model().engine(&options).expect("it can be run");
        let result = engine.call("f", arguments).ok();
        result.map(|v| format!("{:?}", v.as_tensor().map(|t| (t.sizes().to_vec(), t.to_f64_vec()))))
    })
}

#[test]
fn indices_out_of_range_raise_where_the_result_is_empty() {
    for body in [
        "x.index_select(0, i)",
        "F.embedding(i, x)",
        "x[int(i)]",
        "x[int(i)] + 1",
    ] {
        let source = format!("def f(x: Tensor, i: Tensor):\n    return {body}\n");
        for (index, raises) in [(1, false), (5, true), (-3, true)] {
            let x = Tensor::from_f32(&[], &[2, 0]).expect("no elements");
            let i = Tensor::from_i64(&[index], &[1]).expect("one element");
            let [native, interpreted] = outcomes(&source, &[x.into(), i.into()]);
            assert_eq!(native, interpreted, "{body} of {index}");
            assert_eq!(native.is_none(), raises, "{body} of {index}");
        }
    }
}
