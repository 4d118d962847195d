//! The steps of `docs/add-an-operator.md`, in a crate that only uses the public interface: a dialect of its own.

use std::path::Path;
use std::sync::Arc;

use frazil::{Loaded, Session};
use frazil_ir::Context;
use frazil_passes::PassRegistry;
use frazil_runtime::entry::{Entry, Row};
use frazil_runtime::interp::Interpreter;
use frazil_runtime::pointwise::{Pointwise, Promotion};
use frazil_runtime::{Registry, Tensor, Value};
use frazil_tests::pages::assert_shown;

const SCHEMAS: &str = "\
mine::swish(Tensor self, *, float beta=1.) -> Tensor
mine::swish_(Tensor(a!) self, *, float beta=1.) -> Tensor(a!)
mine::swish.out(Tensor self, *, float beta=1., Tensor(a!) out) -> Tensor(a!)";

const ENTRIES: &[Row] = &[(
    "mine::swish",
    Entry::pointwise(Pointwise::new(&["self"], Promotion::IntToFloat, |b| {
        b.x(0) * (b.x(0) * b.scalar("beta")).sigmoid()
    }))
    .preserves_rank(),
)];

fn register(registry: &mut Registry) {
    registry.add_schemas(SCHEMAS).expect("the schemas parse");
    registry.register_all(ENTRIES);
}

fn run(graph: &str, args: &[Value]) -> Vec<Value> {
    let mut registry = Registry::new(Arc::new(Context::new()));
    frazil_prim::register(&mut registry);
    register(&mut registry);
    let session = Session::with(registry, PassRegistry::standard());
    let loaded = session.load_bytes(Path::new("graph.ir"), graph.as_bytes().to_vec());
    let Ok(Loaded::Graphs(graphs)) = loaded else {
        panic!("the text is a graph: {:?}", loaded.err())
    };
    let (_, function) = graphs.unit().functions().next().expect("one graph");
    let interpreter = Interpreter::new(session.registry().clone());
    interpreter.run_graph(&function.graph, args).expect("the graph runs")
}

fn close(value: &Value, want: &[f64]) {
    let got = value.as_tensor().expect("a tensor").to_f64_vec();
    assert_eq!(got.len(), want.len());
    for (g, w) in got.iter().zip(want) {
        assert!((g - w).abs() < 1e-6, "{got:?} instead of {want:?}");
    }
}

fn tensor(data: &[f32]) -> Tensor {
    Tensor::from_f32(data, &[data.len() as i64]).expect("a vector")
}

/// Results of torch.nn.functional.silu.
const SILU: [f64; 3] = [-0.268_941_42, 0.0, 1.761_594_2];

#[test]
fn one_entry_serves_all_three_forms() {
    let functional = "graph(%x : Tensor):\n  %b : float = prim::Constant[value=1.]()\n  %y : Tensor = mine::swish(%x, %b)\n  return (%y)\n";
    close(&run(functional, &[tensor(&[-1.0, 0.0, 2.0]).into()])[0], &SILU);

    let in_place = functional.replace("mine::swish(", "mine::swish_(");
    let x = tensor(&[-1.0, 0.0, 2.0]);
    run(&in_place, &[x.clone().into()]);
    close(&x.into(), &SILU);

    let out = "graph(%x : Tensor, %o : Tensor):\n  %b : float = prim::Constant[value=1.]()\n  %y : Tensor = mine::swish(%x, %b, %o)\n  return (%o)\n";
    let results = run(out, &[tensor(&[-1.0, 0.0, 2.0]).into(), tensor(&[0.0; 3]).into()]);
    close(&results[0], &SILU);
}

#[test]
fn integers_become_floats_as_the_rule_says() {
    let graph = "graph(%x : Tensor):\n  %b : float = prim::Constant[value=1.]()\n  %y : Tensor = mine::swish(%x, %b)\n  return (%y)\n";
    let x = Tensor::from_i64(&[-1, 0, 2], &[3]).expect("a vector");
    close(&run(graph, &[x.into()])[0], &SILU);
}

#[test]
fn the_page_shows_what_is_run_here() {
    assert_shown("docs/add-an-operator.md", "tests/tests/suite/add_an_operator.rs", 3);
}
