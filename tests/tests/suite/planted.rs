//! A wrong rewrite in a pass over tensors is found: bisection over the number of rewrites names it, and the reducer makes its input small.

use std::sync::Arc;

use frazil_ir::TensorData;
use frazil_pass_manager::{
    AnyPass, GraphPass, LastRewrite, PassContext, PassError, PassInfo, PassManager, PassRegistry,
};
use frazil_recorded::random::Random;
use frazil_runtime::expr::{BinaryOp, Expr, ExprOp};
use frazil_tensor_ir::text::{parse, print};
use frazil_tensor_ir::{TensorGraph, TensorIr, TensorOp};
use frazil_tools::reduce::Reducer;
use frazil_tools::reduce::bisect::{Bisection, first_failing_rewrite};

/// A pass that exchanges the operands of the last operation of each loop nest. That is wrong for subtractions.
struct Commute;

static COMMUTE: PassInfo<TensorIr> = PassInfo {
    name: "commute",
    summary: "Exchanges the operands of operations.",
    before: "",
    after: "",
    options: &[],
    build: |_| AnyPass::graph(Commute),
};

impl GraphPass<TensorIr> for Commute {
    fn run(&self, graph: &mut TensorGraph, cx: &mut PassContext<'_, TensorIr>) -> Result<(), PassError<TensorIr>> {
        for id in graph.live_ids() {
            let Some(mut nest) = graph.as_nest(id).cloned() else {
                continue;
            };
            let Some(commuted) = commuted(&nest.body) else { continue };
            if cx.rewrite("operands exchanged") {
                nest.body = commuted;
                graph.set_op(id, TensorOp::Nest(Box::new(nest)));
            }
        }
        Ok(())
    }
}

/// Returns the body with the operands of its last operation exchanged.
fn commuted(body: &Expr) -> Option<Expr> {
    let (last, others) = body.nodes().split_last()?;
    let ExprOp::Binary(op @ (BinaryOp::Add | BinaryOp::Mul | BinaryOp::Maximum | BinaryOp::Sub), a, b) = last.op else {
        return None;
    };
    let mut commuted = Expr::new();
    for node in others {
        commuted.push(node.op, node.dtype);
    }
    commuted.push(ExprOp::Binary(op, b, a), last.dtype);
    Some(commuted)
}

/// The number of the operation that subtracts.
const WRONG: usize = 23;

/// A function of 60 elementwise operations, one of which subtracts.
fn function() -> TensorGraph {
    let mut random = Random::new(7);
    let mut text = "func @f(%0: float32[2, 3], %1: float32[2, 3]) {\n".to_owned();
    for operation in 1..=60 {
        let id = operation + 1;
        // The previous result is an operand, so that the difference reaches the output. The other operand is an earlier one, so that nothing is simplified.
        let (before, other) = (id - 1, random.below(id as u64 - 1));
        let op = match operation {
            WRONG => "sub",
            _ => ["add", "mul"][random.below(2) as usize],
        };
        text += &format!(
            "%{id} = nest float32[2, 3] for d0 < 2, d1 < 3 {{ x0 = %{before}[d0, d1] x1 = %{other}[d0, d1] \
             v0: float32 = x0 v1: float32 = x1 v2: float32 = {op} v0, v1 v3: float32 = sin v2 v4: float32 = add v3, v1 }}\n"
        );
    }
    text += "return %61, %30 }";
    // The wrong operation is the last one of its body.
    let text = text.replace(
        "= sub v0, v1 v3: float32 = sin v2 v4: float32 = add v3, v1",
        "= sub v0, v1",
    );
    parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}")).graph
}

/// Returns the graph after at most `limit` rewrites of the pass, and the last of them if there were as many.
fn rewritten(graph: &TensorGraph, limit: Option<u64>) -> (TensorGraph, Option<LastRewrite>) {
    let mut passes: PassRegistry<TensorIr> = PassRegistry::standard();
    passes.add(&COMMUTE);
    let mut manager = PassManager::from_pipeline(&passes, "simplify,commute,fuse").unwrap();
    manager.verify_each(true);
    manager.limit(limit);
    let mut graph = graph.clone();
    let report = manager.run_on_graph(&mut graph, &()).unwrap();
    (graph, report.last_rewrite)
}

/// Returns the outputs of the graph for fixed elements of its inputs, as bytes.
fn outputs(graph: &TensorGraph) -> Vec<Vec<u8>> {
    let mut graph = graph.clone();
    let mut random = Random::new(3);
    for id in graph.inputs().to_vec() {
        let shape = graph.shape(id).clone();
        let element = |_| (random.below(1000) as f32 / 1000.0).to_le_bytes();
        let bytes: Vec<u8> = (0..shape.numel()).flat_map(element).collect();
        let data = TensorData::contiguous(shape.dtype, &shape.sizes, bytes).unwrap();
        graph.set_op(id, TensorOp::Constant(Arc::new(data)));
    }
    let (mut graph, _) = graph.subgraph(&Default::default(), graph.outputs());
    let passes: PassRegistry<TensorIr> = PassRegistry::standard();
    let manager = PassManager::from_pipeline(&passes, "fold-constants").unwrap();
    manager.run_on_graph(&mut graph, &()).unwrap();
    let element = |id: &_| {
        graph
            .as_constant(*id)
            .expect("all tensors are folded")
            .to_bytes()
            .into_owned()
    };
    graph.outputs().iter().map(element).collect()
}

#[test]
fn a_wrong_rewrite_is_found_by_bisection_and_its_input_is_reduced() {
    let graph = function();
    let expected = outputs(&graph);

    let mut runs = 0;
    let found = first_failing_rewrite(|limit| {
        runs += 1;
        let (rewritten, last) = rewritten(&graph, Some(limit));
        Ok::<_, ()>((outputs(&rewritten) != expected, last))
    });
    let Ok(Bisection::Found { rewrite, last }) = found else {
        panic!("the rewrite is found: {found:?}");
    };
    let last = last.expect("a rewrite that was done");
    assert_eq!((rewrite, last.pass.as_str()), (WRONG as u64, "commute"));
    assert!(runs <= 13, "{runs}");
    let before = rewritten(&graph, Some(rewrite - 1)).0;
    assert_eq!(outputs(&before), expected);

    let mut test = |candidate: &TensorGraph| outputs(&rewritten(candidate, None).0) != outputs(candidate);
    assert!(test(&graph));
    let small = Reducer::new(&mut test, 5_000).reduce(&graph).smallest;
    let text = print("small", &small);
    assert!(test(&small), "{text}");
    let operations = small.len() - small.inputs().len();
    assert!(operations < 10, "{text}");
    assert!(text.contains("sub"), "{text}");
}
