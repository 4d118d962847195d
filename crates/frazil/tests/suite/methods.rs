//! Engines with default options run the methods of a module.
#![cfg(feature = "codegen")]

use frazil::{Engine, EngineOptions, Loaded, Session, Tensor, Value};
use std::path::Path;

/// Returns an engine for the module in `source`, with default options.
fn engine(source: &str) -> Engine {
    let loaded = Session::new().load_bytes(Path::new("net.py"), source.as_bytes().to_vec());
    let model = match loaded.expect("it compiles") {
        Loaded::Model(model) => model,
        Loaded::Graphs(graphs) => graphs.to_model(),
    };
    model.engine(&EngineOptions::default()).expect("it can be run")
}

#[test]
fn a_module_without_forward_runs_with_any_of_its_methods() {
    let mut engine = engine(
        "
class Codec(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.tensor([2.0, 4.0])
        self.calls = 0
    @torch.jit.export
    def encode(self, x):
        self.calls += 1
        return x * self.scale
    @torch.jit.export
    def decode(self, x):
        return x / self.scale + self.calls
model = Codec().eval()
",
    );
    let x = Value::from(Tensor::from_f32(&[3.0, 8.0], &[2]).expect("two elements"));
    let mut call = |method: &str| {
        let result = engine.call(method, std::slice::from_ref(&x)).expect("the method runs");
        result.as_tensor().expect("it gives a tensor").to_f64_vec()
    };
    assert_eq!(call("encode"), [6.0, 32.0]);
    assert_eq!(call("decode"), [2.5, 3.0]);
    assert_eq!(call("encode"), [6.0, 32.0]);
    assert_eq!(call("decode"), [3.5, 4.0]);
}

#[test]
fn functions_may_be_called_as_those_of_libraries_that_they_call() {
    let source = "
def relu(x):
    return torch.nn.functional.relu(x) + 1
def softmax(x):
    return F.softmax(x, 0) * 2
";
    let mut engine = engine(&format!("import torch.nn.functional as F\n{source}"));
    let x = Value::from(Tensor::from_f32(&[-3.0, -3.0], &[2]).expect("two elements"));
    for (method, expected) in [("relu", 1.0), ("softmax", 1.0)] {
        let result = engine
            .call(method, std::slice::from_ref(&x))
            .expect("the function runs");
        assert_eq!(
            result.as_tensor().map(|t| t.to_f64_vec()),
            Some(vec![expected; 2]),
            "{method}"
        );
    }
    let loaded = Session::new().load_bytes(
        Path::new("f.py"),
        format!("import torch.nn.functional as F\n{source}").into(),
    );
    let Ok(Loaded::Graphs(graphs)) = loaded else {
        panic!("functions only")
    };
    assert_eq!(graphs.to_model().root().method_names(), ["relu", "softmax"]);
}
