//! Blocks nested more deeply than a stack holds are an error, not the end of the process.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use frazil::{EngineKind, EngineOptions, Loaded, Session};
use std::path::Path;

/// A graph of `depth` branches within branches.
fn branches(depth: usize) -> String {
    let mut text = "graph(%x : Tensor, %c : bool):\n".to_owned();
    for i in 0..depth {
        text += &format!("%y{i} : Tensor = prim::If(%c)\nblock0():\n");
    }
    text += "-> (%x)\nblock1():\n-> (%x)\n";
    for i in (1..depth).rev() {
        text += &format!("-> (%y{i})\nblock1():\n-> (%x)\n");
    }
    text + "return (%y0)\n"
}

fn run(depth: usize, kind: EngineKind) -> Result<frazil::Value, frazil::CallError> {
    let loaded = Session::new().load_bytes(Path::new("deep.ir"), branches(depth).into_bytes());
    let Loaded::Graphs(graphs) = loaded.unwrap() else {
        panic!("a graph is no module")
    };
    let function = graphs.unit().functions().next().unwrap().1.name;
    let method = graphs.to_model().session().ctx().name(function).to_owned();
    let options = EngineOptions {
        kind,
        methods: vec![method.clone()],
        ..EngineOptions::default()
    };
    let model = graphs.to_model();
    let x = frazil::Tensor::full(frazil::ir::DType::Float, &[2], 1.0.into()).unwrap();
    model.engine(&options).unwrap().call(&method, &[x.into(), true.into()])
}

#[test]
fn deep_blocks_are_refused_and_others_run() {
    for kind in [EngineKind::Interpreter, EngineKind::Native] {
        let work = move || {
            run(300, kind).unwrap_or_else(|e| panic!("{kind:?}: {e}"));
            let error = run(10_000, kind).unwrap_err().to_string();
            assert!(error.contains("blocks within blocks"), "{kind:?}: {error}");
        };
        // What a main thread has on Linux.
        let thread = std::thread::Builder::new().stack_size(8 << 20).spawn(work);
        thread.unwrap().join().unwrap();
    }
}
