//! Long-lived hosts: repeated compilation leaks neither memory nor threads, and compiling and running on many threads returns correct results.
//! `examples/compile_many.rs` does the same a thousand times, on a whole network.

use frazil::ir::DType;
use frazil::{CompileOptions, EngineOptions, FreezeOptions, InputSpec, Loaded, Model, Session, Tensor, Value};
use std::path::Path;

const SOURCE: &str = "
def forward(x, y):
    return torch.relu(torch.mm(x, y) + 1).sum(1)
";

fn model(session: &Session) -> Model {
    match session.load_bytes(Path::new("net.py"), SOURCE.into()).unwrap() {
        Loaded::Model(model) => model,
        Loaded::Graphs(functions) => functions.to_model(),
    }
}

/// Makes a session and a model, compiles it for matrices of `n` rows, runs it and checks the result.
fn compile_and_run(n: i64, threads: usize) {
    let session = Session::new();
    let options = CompileOptions::default().threads(threads);
    let inputs = [
        InputSpec::new(DType::Float, &[n, 4]),
        InputSpec::new(DType::Float, &[4, 8]),
    ];
    let frozen = model(&session).freeze(&FreezeOptions::default()).unwrap();
    let mut code = frozen.compile(&inputs, &options).unwrap();
    for k in [1.0, 2.0] {
        let x = Tensor::full(DType::Float, &[n, 4], k.into()).unwrap();
        let y = Tensor::full(DType::Float, &[4, 8], 0.5.into()).unwrap();
        let result = code.run(&[x, y]).unwrap().as_tensor().unwrap();
        assert_eq!(result.to_f64_vec(), vec![8.0 * (2.0 * k + 1.0); n as usize]);
    }
}

#[test]
fn compiling_again_and_again_does_not_grow_and_leaves_no_thread() {
    let _alone = crate::alone();
    let mut after_tenth = None;
    for i in 1..=30 {
        compile_and_run(i % 3 + 1, 2);
        if i == 10 {
            after_tenth = Some((crate::status::resident_kib(), crate::status::threads()));
        }
    }
    let (memory, threads) = after_tenth.unwrap();
    let now = crate::status::resident_kib();
    assert!(
        now as f64 <= memory as f64 * 1.05,
        "{memory} KiB after the tenth compilation, {now} KiB after the thirtieth"
    );
    assert_eq!(crate::status::threads(), threads);
}

#[test]
fn eight_threads_compile_and_run_at_once() {
    let _alone = crate::alone();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || {
                for i in 0..4 {
                    compile_and_run((thread + i) % 5 + 1, 1 + (thread as usize + i as usize) % 2);
                }
            });
        }
    });
}

#[test]
fn engines_of_one_model_run_at_once() {
    let _alone = crate::alone();
    let session = Session::new();
    let model = model(&session);
    std::thread::scope(|scope| {
        for thread in 0..8i64 {
            let model = &model;
            scope.spawn(move || {
                let mut engine = model.engine(&EngineOptions::default()).unwrap();
                for n in [thread % 3 + 1, 2] {
                    let x = Tensor::full(DType::Float, &[n, 4], 1.0.into()).unwrap();
                    let y = Tensor::full(DType::Float, &[4, 8], 0.5.into()).unwrap();
                    let args = [Value::from(x), Value::from(y)];
                    let result = engine.call("forward", &args).unwrap().as_tensor().unwrap();
                    assert_eq!(result.to_f64_vec(), vec![24.0; n as usize]);
                }
            });
        }
    });
}
