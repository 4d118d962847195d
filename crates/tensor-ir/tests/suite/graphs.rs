//! Graphs: use lists and liveness after every kind of change, against what is computed anew.

use frazil_runtime::structured::TensorId;
use frazil_tensor_ir::text::parse;
use frazil_tensor_ir::{TensorGraph, TensorOp};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Panics unless use lists and liveness are those that the outputs imply.
fn check(graph: &TensorGraph) {
    let reached = graph.reachable_from(graph.outputs());
    for id in graph.ids() {
        assert_eq!(graph.is_live(id), reached[id.index()], "{id}");
        let users: BTreeSet<TensorId> = graph.users(id).iter().copied().collect();
        let expected: BTreeSet<TensorId> = graph
            .ids()
            .filter(|&user| reached[user.index()] && graph.operands(user).contains(&id))
            .collect();
        assert_eq!(users, expected, "users of {id}");
        assert_eq!(users.len(), graph.users(id).len(), "{id} has a user twice");
        assert_eq!(graph.is_output(id), graph.outputs().contains(&id));
    }
}

/// A graph of `count` reshapes and sums of two tensors that were chosen by `choices`.
fn graph(choices: &[(usize, usize)]) -> TensorGraph {
    let mut text = "func @f(%0: float32[4]) {\n".to_owned();
    for (i, (a, b)) in choices.iter().enumerate() {
        let (id, a, b) = (i + 1, a % (i + 1), b % (i + 1));
        text += &format!(
            "%{id} = nest float32[4] for d0 < 4 {{ x0 = %{a}[d0] x1 = %{b}[d0] v0: float32 = x0 v1: float32 = x1 v2: float32 = add v0, v1 }}\n"
        );
    }
    text += "return %0 }";
    parse(&text).unwrap().graph
}

proptest! {
    #[test]
    fn use_lists_are_those_of_the_outputs(
        choices in prop::collection::vec((0usize..9, 0usize..9), 1..9),
        changes in prop::collection::vec((0usize..5, 0usize..10, 0usize..10), 0..12),
    ) {
        let mut graph = graph(&choices);
        let count = graph.len();
        for (kind, a, b) in changes {
            let (low, high) = (a.min(b) % count, a.max(b) % count);
            let (low, high) = (TensorId::new(low.min(high)), TensorId::new(low.max(high)));
            match kind {
                0 => graph.add_output(high),
                1 => graph.set_outputs(&[low, high, high]),
                // Users of the first have larger numbers than the second.
                2 => graph.replace_uses(high, low),
                3 => graph.set_input(high),
                _ => {
                    let op = graph.op(TensorId::new(1)).clone();
                    if ![graph.op(high), &op].iter().any(|op| matches!(op, TensorOp::Input(_))) {
                        graph.set_op(high, op);
                    }
                }
            }
            check(&graph);
        }
        let before = graph.live_ids().len();
        graph.compact();
        check(&graph);
        prop_assert_eq!(graph.len(), before);
    }
}

#[test]
fn a_truncated_graph_is_the_one_with_fewer_tensors() {
    let choices = [(0, 0), (1, 0), (2, 1)];
    let fewer = graph(&choices[..2]);
    let mut truncated = graph(&choices);
    truncated.input(truncated.shape(TensorId::new(0)).clone());
    assert!(!truncated.is_same(&fewer));
    truncated.truncate(TensorId::new(fewer.len()));
    check(&truncated);
    assert!(truncated.is_same(&fewer) && fewer.is_same(&truncated));
    // Another operation, and another output.
    assert!(!graph(&[(0, 0), (1, 1)]).is_same(&fewer));
    truncated.add_output(TensorId::new(1));
    assert!(!truncated.is_same(&fewer));
}
