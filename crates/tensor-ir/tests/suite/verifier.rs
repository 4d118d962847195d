//! The verifier: graphs that break one rule each.

use frazil_ir::DType;
use frazil_runtime::expr::{BinaryOp, Expr, ExprOp};
use frazil_runtime::gather::{Coordinate, Gather};
use frazil_runtime::structured::{Affine, Combine, Structured, TensorId, TensorShape};
use frazil_tensor_ir::text::parse;
use frazil_tensor_ir::verify::verify;
use frazil_tensor_ir::{TensorGraph, TensorOp};

const MATMUL: &str = "func @f(%0: float32[2, 3], %1: float32[3, 4]) {
  %2 = nest float32[2, 4] for d0 < 2, d1 < 4 reduce d2 < 3 {
    x0 = %0[d0, d2]
    x1 = %1[d2, d1]
    v0: float32 = x0
    v1: float32 = x1
    v2: float32 = mul v0, v1
    combine add float32
    epilogue
    y0 = %0[d0, 0]
    w0: float32 = acc
    w1: float32 = y0
    w2: float32 = add w0, w1
  }
  return %2
}";

/// The failures of the graph after `change` to its nest.
fn failures(change: impl FnOnce(&mut Structured)) -> Vec<String> {
    let mut graph = parse(MATMUL).unwrap().graph;
    assert_eq!(verify(&graph), []);
    let id = graph.outputs()[0];
    let mut nest = graph.as_nest(id).unwrap().clone();
    change(&mut nest);
    graph.set_op(id, TensorOp::Nest(Box::new(nest)));
    verify(&graph).iter().map(ToString::to_string).collect()
}

/// A change of a nest.
type Change = Box<dyn FnOnce(&mut Structured)>;

#[test]
fn every_rule_of_nests_is_checked() {
    let cases: Vec<(Change, &str)> = vec![
        (Box::new(|n| n.output.sizes[0] = 5), "a result of another shape"),
        (Box::new(|n| n.iterations.swap(1, 2)), "its loops and their kinds"),
        (Box::new(|n| n.domain[0] = -1), "a negative extent"),
        (Box::new(|n| n.combine = None), "no combiner"),
        (Box::new(|n| n.domain[0] = 1), "not have the sizes"),
        (
            Box::new(|n| n.finish_inputs[0].map[1] = Affine::index(3, 2)),
            "depends on a reduction loop",
        ),
        (Box::new(|n| n.inputs[0].map.truncate(1)), "as many coordinates"),
        (
            Box::new(|n| n.inputs[0].map[0].coefficients.truncate(1)),
            "as many coefficients",
        ),
        (Box::new(|n| n.inputs[0].map[0].offset = 1), "a read leaves %0"),
        (
            Box::new(|n| n.inputs[0].tensor = TensorId::new(2)),
            "not defined before",
        ),
        (Box::new(|n| n.accumulate = DType::Double), "operands of other dtypes"),
        (Box::new(|n| n.body = Expr::new()), "an expression is empty"),
        (
            Box::new(|n| {
                let mut body = Expr::new();
                body.push(ExprOp::Index(7), DType::Long);
                n.body = body;
            }),
            "operation 0 of an expression",
        ),
        (
            Box::new(|n| {
                let mut body = Expr::new();
                let (a, b) = (body.input(0, DType::Float), body.int(1, DType::Long));
                body.push(ExprOp::Binary(BinaryOp::Add, a, b), DType::Float);
                n.body = body;
            }),
            "operation 2 of an expression",
        ),
    ];
    for (change, expected) in cases {
        let found = failures(change);
        assert!(
            found.iter().any(|message| message.contains(expected)),
            "{expected}: {found:?}"
        );
    }
    assert_eq!(failures(|n| n.combine = Some(Combine::Max)), [""; 0]);
}

/// A change of a gather.
type GatherChange = Box<dyn FnOnce(&mut Gather)>;

#[test]
fn every_rule_of_gathers_is_checked() {
    const GATHER: &str = "func @f(%0: float32[4, 3], %1: int64[5]) {
  %2 = gather float32[5, 3] %0[%1[d0], d1] raise \"\"
  return %2
}";
    let affine = |change: fn(&mut Affine)| -> GatherChange {
        Box::new(move |gather| match &mut gather.coordinates[1] {
            Coordinate::Affine(map) => change(map),
            Coordinate::Value { .. } => panic!("the coordinate is a map"),
        })
    };
    let index = |change: fn(&mut Affine)| -> GatherChange {
        Box::new(move |gather| match &mut gather.coordinates[0] {
            Coordinate::Value { map, .. } => change(&mut map[0]),
            Coordinate::Affine(_) => panic!("the coordinate is the element of a tensor"),
        })
    };
    let cases: Vec<(GatherChange, &str)> = vec![
        (Box::new(|g| g.output.sizes[0] = 4), "a result of another shape"),
        (Box::new(|g| drop(g.coordinates.pop())), "as many coordinates"),
        (affine(|map| map.coefficients.truncate(1)), "as many coefficients"),
        (affine(|map| map.coefficients[1] = i64::MAX), "too large to be computed"),
        (affine(|map| map.offset = i64::MIN), "too large to be computed"),
        (affine(|map| map.offset = 1), "a gather leaves its tensor"),
        (index(|map| map.offset = -1), "leaves the tensor of its indices"),
        (
            Box::new(|g| g.operands_mut().for_each(|id| *id = TensorId::new(0))),
            "not integers",
        ),
    ];
    for (change, expected) in cases {
        let mut graph = parse(GATHER).unwrap().graph;
        let id = graph.outputs()[0];
        let TensorOp::Gather(mut gather) = graph.op(id).clone() else {
            panic!("the output is a gather");
        };
        change(&mut gather);
        graph.set_op(id, TensorOp::Gather(gather));
        let found: Vec<String> = verify(&graph).iter().map(ToString::to_string).collect();
        assert!(
            found.iter().any(|message| message.contains(expected)),
            "{expected}: {found:?}"
        );
    }
}

#[test]
fn outputs_and_checks_are_checked() {
    let mut graph = TensorGraph::new();
    let shape = TensorShape {
        dtype: DType::Float,
        sizes: [2].into_iter().collect(),
    };
    let id = graph.input(shape);
    graph.add_check(id, "message".to_owned());
    let found = verify(&graph);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].to_string(), "a check is not a single bool");
    graph.set_outputs(&[]);
    graph.set_checks(vec!["message".to_owned()]);
    assert_eq!(verify(&graph)[0].to_string(), "there are more checks than outputs");
}
