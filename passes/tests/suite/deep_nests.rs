//! No pass needs stack for nested blocks: each runs with a small stack on the deepest nesting that readers accept.

use frazil_ir::nesting::MAX_NESTING;
use frazil_ir::{Context, Graph};
use frazil_passes::{AliasDb, PassManager, PassRegistry};
use frazil_runtime::Registry;
use std::fmt::Write;
use std::sync::Arc;

/// The graph itself is a block too.
const DEPTH: usize = MAX_NESTING - 1;
/// Sufficient without recursion, and insufficient for a level of recursion per block.
const STACK: usize = 256 << 10;

#[derive(Clone, Copy)]
enum Nest {
    Branches,
    Loops,
    /// Blocks of unknown operators.
    Unknown,
}

fn text(nest: Nest) -> String {
    let mut out = String::from("graph(%x : Tensor, %c : bool, %n : int):\n%t : bool = prim::Constant[value=1]()\n");
    for i in 0..DEPTH {
        let _ = match nest {
            Nest::Branches => writeln!(out, "%v{i} : Tensor = prim::If(%c)\nblock0():"),
            Nest::Loops => write!(
                out,
                "%v{i} : Tensor = prim::Loop(%n, %t, %x)\nblock0(%i{i} : int, %p{i} : Tensor):\n"
            ),
            Nest::Unknown => writeln!(out, "%v{i} : Tensor = foo::nest(%x)\nblock0():"),
        };
        // Work for passes at every level: a repeated operator, an unused one, a write.
        let _ = write!(
            out,
            "%a{i} : Tensor = aten::mul(%x, %x)\n%b{i} : Tensor = aten::relu(%a{i})\n%d{i} : Tensor = aten::relu_(%a{i})\n"
        );
    }
    out.push_str("%r : Tensor = aten::relu(%x)\n");
    let mut inner = "r".to_owned();
    for i in (0..DEPTH).rev() {
        let _ = match nest {
            Nest::Branches => writeln!(out, "-> (%{inner})\nblock1():\n-> (%x)"),
            Nest::Loops => writeln!(out, "-> (%t, %{inner})"),
            Nest::Unknown => writeln!(out, "-> (%{inner})"),
        };
        inner = format!("v{i}");
    }
    let _ = writeln!(out, "return (%{inner})");
    out
}

fn every_pass(nest: Nest) {
    let ctx = Arc::new(Context::new());
    let mut registry = Registry::new(ctx.clone());
    frazil_prim::register(&mut registry);
    frazil_aten::register(&mut registry);
    let graph: Graph = frazil_syntax::parse_graph(&ctx, &text(nest)).unwrap().graph;
    let passes = PassRegistry::standard();
    let mut run = 0;
    for pass in passes.passes() {
        let manager = PassManager::from_pipeline(&passes, pass.name).unwrap();
        let mut copy = graph.clone();
        // Passes over modules report that they need one, and pattern passes that they need patterns.
        run += usize::from(manager.run_on_graph(&mut copy, &registry).is_ok());
        copy.verify(Some(registry.catalogue())).unwrap();
    }
    assert!(run > 40, "only {run} passes ran");
    let db = AliasDb::new(&graph, registry.catalogue());
    let nodes = graph.all_nodes();
    assert!(nodes.iter().any(|n| db.is_mutable(*n)));
}

fn with_little_stack(nest: Nest) {
    let thread = std::thread::Builder::new()
        .stack_size(STACK)
        .spawn(move || every_pass(nest));
    thread.unwrap().join().unwrap();
}

#[test]
fn branches() {
    with_little_stack(Nest::Branches);
}

#[test]
fn loops() {
    with_little_stack(Nest::Loops);
}

#[test]
fn unknown_operators() {
    with_little_stack(Nest::Unknown);
}
