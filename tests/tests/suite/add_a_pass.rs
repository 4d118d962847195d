//! The steps of `docs/add-a-pass.md`, in a crate that only uses the public interface.

use std::path::Path;
use std::sync::Arc;

use frazil::{Loaded, PassOptions, Session};
use frazil_ir::Context;
use frazil_passes::PassRegistry;
use frazil_runtime::Registry;
use frazil_syntax::print_graph;
use frazil_tests::pages::{assert_shown, blocks_of};

use frazil_ir::{Graph, NodeId};
use frazil_passes::{AnyPass, GraphPass, PassContext, PassContextExt, PassError, PassInfo, TorchScript};

static INFO: PassInfo = PassInfo {
    name: "fuse-relu",
    summary: "Bypasses the first of two consecutive aten::relu.",
    before: "graph(%x : Tensor):
  %y : Tensor = aten::relu(%x)
  %z : Tensor = aten::relu(%y)
  return (%z)
",
    after: "graph(%x : Tensor):
  %y : Tensor = aten::relu(%x)
  %z : Tensor = aten::relu(%x)
  return (%z)
",
    options: &[],
    build: |_| AnyPass::graph(FuseRelu),
};

struct FuseRelu;

impl GraphPass<TorchScript> for FuseRelu {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        let db = cx.alias_db(graph);
        for node in graph.all_nodes() {
            let Some(inner) = relu_of(graph, node) else { continue };
            let Some(x) = graph.operand(inner, 0) else { continue };
            if db.node_has_writers(graph, inner) {
                continue;
            }
            if !cx.rewrite("activations fused") {
                break;
            }
            graph.set_operand(node, 0, x);
        }
        Ok(())
    }
}

/// Returns the `relu` node whose result is the operand of `node`, if `node` is a `relu` too.
fn relu_of(graph: &Graph, node: NodeId) -> Option<NodeId> {
    let is_relu = |n: NodeId| graph.kind_name(n) == "aten::relu";
    let inner = graph.defining_node(graph.operand(node, 0)?)?;
    (is_relu(node) && is_relu(inner)).then_some(inner)
}

fn passes() -> PassRegistry {
    let mut passes = PassRegistry::standard();
    passes.add(&INFO);
    passes
}

fn after_the_pass(text: &str) -> String {
    let mut registry = Registry::new(Arc::new(Context::new()));
    frazil_prim::register(&mut registry);
    frazil_aten::register(&mut registry);
    let session = Session::with(registry, passes());
    let mut loaded = session
        .load_bytes(Path::new("graph.ir"), text.as_bytes().to_vec())
        .expect("the text is a graph");
    loaded
        .run_passes("fuse-relu", &PassOptions::default())
        .expect("the pass runs");
    let Loaded::Graphs(graphs) = loaded else {
        panic!("a graph stays a graph")
    };
    let (_, function) = graphs.unit().functions().next().expect("one graph");
    print_graph(&function.graph)
}

#[test]
fn two_become_one() {
    assert_eq!(after_the_pass(INFO.before), INFO.after);
}

#[test]
fn what_is_written_stays() {
    let page = blocks_of("docs/add-a-pass.md", "text");
    let written = page.first().expect("the page has a graph");
    assert_eq!(after_the_pass(written).trim_end(), written.trim_end());
}

#[test]
fn the_page_shows_what_is_run_here() {
    assert_shown("docs/add-a-pass.md", "tests/tests/suite/add_a_pass.rs", 2);
}
