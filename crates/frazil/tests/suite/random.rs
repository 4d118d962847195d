//! Random numbers are drawn when a program runs, never once while it is compiled.

use frazil::{EngineKind, EngineOptions, Loaded, Session};
use std::path::Path;

#[test]
fn every_call_draws_anew() {
    let program = "
import torch

def f():
    return torch.rand([3])

def g(x: torch.Tensor):
    y = torch.relu(x) + torch.randn_like(x)
    return y * torch.bernoulli(torch.full_like(x, 0.5)) + torch.rand([64]).sum()

def h():
    return torch.randperm(64) + torch.randint(1000, [64])
";
    let loaded = Session::new().load_bytes(Path::new("random.py"), program.as_bytes().to_vec());
    let model = match &loaded.unwrap() {
        Loaded::Model(model) => model.clone(),
        Loaded::Graphs(graphs) => graphs.to_model(),
    };
    for kind in [EngineKind::Native, EngineKind::Interpreter] {
        let options = EngineOptions {
            kind,
            methods: ["f", "g", "h"].map(str::to_owned).to_vec(),
            ..EngineOptions::default()
        };
        let mut engine = model.engine(&options).unwrap();
        let x = frazil::Tensor::full(frazil::ir::DType::Float, &[64], 1.0.into()).unwrap();
        for (name, arguments) in [("f", vec![]), ("g", vec![x.into()]), ("h", vec![])] {
            let mut draw = || engine.call(name, &arguments).unwrap().as_tensor().unwrap().to_f64_vec();
            assert_ne!(draw(), draw(), "{name} by {kind:?}");
        }
    }
}
