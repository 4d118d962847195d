//! Blocks nested more deeply than readers accept are an error, and deep ones below that never end the process.

#![cfg(feature = "codegen")]

use frazil::ir::DType;
use frazil::ir::nesting::MAX_NESTING;
use frazil::{CompileOptions, Error, InputSpec, Loaded, Session};
use frazil_runtime::interp::Interpreter;
use std::path::Path;

/// Returns a graph of `depth` nested branches.
fn branches(depth: usize) -> Result<Loaded, Error> {
    let mut text = "graph(%x : Tensor):\n%c : bool = prim::Constant[value=1]()\n".to_owned();
    for i in 0..depth {
        text += &format!("%y{i} : Tensor = prim::If(%c)\nblock0():\n");
    }
    text += "-> (%x)\nblock1():\n-> (%x)\n";
    for i in (1..depth).rev() {
        text += &format!("-> (%y{i})\nblock1():\n-> (%x)\n");
    }
    text += "return (%y0)\n";
    Session::new().load_bytes(Path::new("deep.ir"), text.into_bytes())
}

/// Returns the errors of the interpreter and the compiler for such a graph, `None` for success.
fn complaints(depth: usize) -> [Option<String>; 2] {
    let loaded = branches(depth).unwrap();
    let Loaded::Graphs(graphs) = &loaded else {
        panic!("a graph is no module")
    };
    let function = graphs.unit().functions().next().unwrap().1;
    let name = loaded.session().ctx().name(function.name);
    let x = frazil::Tensor::full(DType::Float, &[2], 1.0.into()).unwrap();
    let run = Interpreter::new(loaded.session().registry().clone()).run_graph(&function.graph, &[x.into()]);
    let plan = loaded.plan(name, &[InputSpec::new(DType::Float, &[2])], &CompileOptions::default());
    [run.err().map(|e| e.to_string()), plan.err().map(|e| e.to_string())]
}

#[test]
fn deep_blocks_are_refused_and_others_run() {
    let work = || {
        assert_eq!(complaints(300), [None, None]);
        // The graph itself is a block too.
        for complaint in complaints(MAX_NESTING - 1).into_iter().flatten() {
            assert!(complaint.contains("blocks within blocks"), "{complaint}");
        }
        for depth in [MAX_NESTING, 10_000] {
            let refused = branches(depth).err().unwrap().to_string();
            assert!(refused.contains("blocks nest at most"), "{refused}");
        }
    };
    // The stack size of a main thread on Linux.
    let thread = std::thread::Builder::new().stack_size(8 << 20).spawn(work);
    thread.unwrap().join().unwrap();
}
