//! Foldings compared with the interpreter: a graph has the same results before and after, and is folded exactly when it should be.
//!
//! Each case is a graph over `%x` and named weights; the weights become constants before the passes run.

use crate::common;

use common::registry;
use frazil_ir::{Builder, Context, DType, Graph, TensorData, ValueName};
use frazil_passes::PassManager;
use frazil_passes::PassRegistry;
use frazil_runtime::interp::Interpreter;
use frazil_runtime::{Registry, Tensor, Value};
use frazil_syntax::parse_graph;
use std::sync::Arc;

/// Numbers that are neither zero nor equal; variances must be positive.
fn numbers(n: i64, seed: i64) -> Vec<f32> {
    (0..n)
        .map(|i| 0.25 + (((i * 37 + seed * 101) % 89) as f32) / 50.0)
        .collect()
}

struct Case {
    name: &'static str,
    /// Sizes of the input.
    input: &'static [i64],
    /// Names and sizes of the weights.
    weights: &'static [(&'static str, &'static [i64])],
    body: &'static str,
    /// The operator that the folding removes.
    folded: &'static str,
    expect: bool,
}

const PRELUDE: &str = "  %none : NoneType = prim::Constant()
  %no : bool = prim::Constant[value=0]()
  %yes : bool = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %eps : float = prim::Constant[value=0.001]()
  %half : float = prim::Constant[value=0.5]()
  %l1 : int[] = prim::Constant[value=[1, 1]]()
  %l0 : int[] = prim::Constant[value=[0, 0]]()
";

const BN: &[(&str, &[i64])] = &[
    ("w", &[4, 2, 3, 3]),
    ("b", &[4]),
    ("gamma", &[4]),
    ("beta", &[4]),
    ("mean", &[4]),
    ("var", &[4]),
];

const LINEAR_BN: &[(&str, &[i64])] = &[
    ("w", &[4, 2]),
    ("b", &[4]),
    ("gamma", &[4]),
    ("beta", &[4]),
    ("mean", &[4]),
    ("var", &[4]),
];

const CASES: &[Case] = &[
    Case {
        name: "batch norm behind a convolution",
        input: &[2, 2, 5, 5],
        weights: BN,
        body: "  %c : Tensor = aten::conv2d(%x, %w, %b, %l1, %l0, %l1, %one)
  %y : Tensor = aten::batch_norm(%c, %gamma, %beta, %mean, %var, %no, %eps, %eps, %yes)
  return (%y)",
        folded: "aten::batch_norm",
        expect: true,
    },
    Case {
        name: "batch norm behind a convolution without bias, itself without weights",
        input: &[2, 2, 5, 5],
        weights: BN,
        body: "  %c : Tensor = aten::conv2d(%x, %w, %none, %l1, %l0, %l1, %one)
  %y : Tensor = aten::batch_norm(%c, %none, %none, %mean, %var, %no, %eps, %eps, %yes)
  return (%y)",
        folded: "aten::batch_norm",
        expect: true,
    },
    Case {
        name: "batch norm behind a grouped convolution",
        input: &[2, 4, 5, 5],
        weights: BN,
        body: "  %c : Tensor = aten::conv2d(%x, %w, %b, %l1, %l0, %l1, %two)
  %y : Tensor = aten::batch_norm(%c, %gamma, %beta, %mean, %var, %no, %eps, %eps, %yes)
  return (%y)",
        folded: "aten::batch_norm",
        expect: true,
    },
    Case {
        name: "batch norm behind a grouped transposed convolution",
        input: &[2, 6, 3, 3],
        weights: &[
            ("w", &[6, 2, 3, 3]),
            ("b", &[4]),
            ("gamma", &[4]),
            ("beta", &[4]),
            ("mean", &[4]),
            ("var", &[4]),
        ],
        body: "  %c : Tensor = aten::conv_transpose2d(%x, %w, %b, %l1, %l0, %l0, %two, %l1)
  %y : Tensor = aten::batch_norm(%c, %gamma, %beta, %mean, %var, %no, %eps, %eps, %yes)
  return (%y)",
        folded: "aten::batch_norm",
        expect: true,
    },
    Case {
        name: "not while training",
        input: &[2, 2, 5, 5],
        weights: BN,
        body: "  %c : Tensor = aten::conv2d(%x, %w, %b, %l1, %l0, %l1, %one)
  %y : Tensor = aten::batch_norm(%c, %gamma, %beta, %none, %none, %yes, %eps, %eps, %yes)
  return (%y)",
        folded: "aten::batch_norm",
        expect: false,
    },
    Case {
        name: "not when its statistics are written",
        input: &[2, 2, 5, 5],
        weights: BN,
        body: "  %c : Tensor = aten::conv2d(%x, %w, %b, %l1, %l0, %l1, %one)
  %r : Tensor = aten::relu_(%mean)
  %y : Tensor = aten::batch_norm(%c, %gamma, %beta, %mean, %var, %no, %eps, %eps, %yes)
  return (%y)",
        folded: "aten::batch_norm",
        expect: false,
    },
    Case {
        name: "not when the convolution's result is used elsewhere",
        input: &[2, 2, 5, 5],
        weights: BN,
        body: "  %c : Tensor = aten::conv2d(%x, %w, %b, %l1, %l0, %l1, %one)
  %y : Tensor = aten::batch_norm(%c, %gamma, %beta, %mean, %var, %no, %eps, %eps, %yes)
  %z : Tensor = aten::mul(%y, %c)
  return (%z)",
        folded: "aten::batch_norm",
        expect: false,
    },
    Case {
        name: "batch norm behind a linear of two dimensions",
        input: &[3, 2],
        weights: LINEAR_BN,
        body: "  %c : Tensor = aten::linear(%x, %w, %b)
  %y : Tensor = aten::batch_norm(%c, %gamma, %beta, %mean, %var, %no, %eps, %eps, %yes)
  return (%y)",
        folded: "aten::batch_norm",
        expect: true,
    },
    Case {
        name: "not behind a linear of three dimensions, even with as many rows as features",
        input: &[3, 4, 2],
        weights: LINEAR_BN,
        body: "  %c : Tensor = aten::linear(%x, %w, %b)
  %y : Tensor = aten::batch_norm(%c, %gamma, %beta, %mean, %var, %no, %eps, %eps, %yes)
  return (%y)",
        folded: "aten::batch_norm",
        expect: false,
    },
    Case {
        name: "behind a linear of one feature, whatever its rank",
        input: &[3, 1, 2],
        weights: &[
            ("w", &[1, 2]),
            ("b", &[1]),
            ("gamma", &[1]),
            ("beta", &[1]),
            ("mean", &[1]),
            ("var", &[1]),
        ],
        body: "  %c : Tensor = aten::linear(%x, %w, %b)
  %y : Tensor = aten::batch_norm(%c, %gamma, %beta, %mean, %var, %no, %eps, %eps, %yes)
  return (%y)",
        folded: "aten::batch_norm",
        expect: true,
    },
    Case {
        name: "not when the linear's result is used elsewhere",
        input: &[3, 2],
        weights: LINEAR_BN,
        body: "  %c : Tensor = aten::linear(%x, %w, %b)
  %y : Tensor = aten::batch_norm(%c, %gamma, %beta, %mean, %var, %no, %eps, %eps, %yes)
  %z : Tensor = aten::mul(%y, %c)
  return (%z)",
        folded: "aten::batch_norm",
        expect: false,
    },
    Case {
        name: "not when the linear's result is written in between",
        input: &[3, 2],
        weights: LINEAR_BN,
        body: "  %c : Tensor = aten::linear(%x, %w, %b)
  %u : Tensor = aten::mul_(%c, %two)
  %y : Tensor = aten::batch_norm(%c, %gamma, %beta, %mean, %var, %no, %eps, %eps, %yes)
  return (%y)",
        folded: "aten::batch_norm",
        expect: false,
    },
    Case {
        name: "batch norm behind a linear of what was flattened",
        input: &[3, 2, 1, 1],
        weights: LINEAR_BN,
        body: "  %minus : int = prim::Constant[value=-1]()
  %f : Tensor = aten::flatten(%x, %one, %minus)
  %r : Tensor = aten::relu(%f)
  %c : Tensor = aten::linear(%r, %w, %b)
  %y : Tensor = aten::batch_norm(%c, %gamma, %beta, %mean, %var, %no, %eps, %eps, %yes)
  return (%y)",
        folded: "aten::batch_norm",
        expect: true,
    },
    Case {
        name: "not when what was flattened gets another dimension",
        input: &[4, 2, 1],
        weights: LINEAR_BN,
        body: "  %minus : int = prim::Constant[value=-1]()
  %f : Tensor = aten::flatten(%x, %one, %minus)
  %u : Tensor = aten::unsqueeze_(%f, %zero)
  %c : Tensor = aten::linear(%f, %w, %b)
  %y : Tensor = aten::batch_norm(%c, %gamma, %beta, %mean, %var, %no, %eps, %eps, %yes)
  return (%y)",
        folded: "aten::batch_norm",
        expect: false,
    },
    Case {
        name: "adding one value a channel, twice over",
        input: &[2, 2, 5, 5],
        weights: &[("w", &[4, 2, 3, 3]), ("k", &[4, 1, 1])],
        body: "  %c : Tensor = aten::conv2d(%x, %w, %none, %l1, %l0, %l1, %one)
  %y : Tensor = aten::add(%c, %k, %two)
  return (%y)",
        folded: "aten::add",
        expect: true,
    },
    Case {
        name: "subtracting one value a channel from a batch",
        input: &[2, 2, 5, 5],
        weights: &[("w", &[4, 2, 3, 3]), ("b", &[4]), ("k", &[1, 4, 1, 1])],
        body: "  %c : Tensor = aten::conv2d(%x, %w, %b, %l1, %l0, %l1, %one)
  %y : Tensor = aten::sub(%c, %k, %one)
  return (%y)",
        folded: "aten::sub",
        expect: true,
    },
    Case {
        name: "adding what brings a batch dimension of its own, which the result then has",
        input: &[2, 5, 5],
        weights: &[("w", &[4, 2, 3, 3]), ("b", &[4]), ("k", &[1, 4, 1, 1])],
        body: "  %c : Tensor = aten::conv2d(%x, %w, %b, %l1, %l0, %l1, %one)
  %y : Tensor = aten::add(%c, %k, %one)
  return (%y)",
        folded: "aten::add",
        expect: true,
    },
    Case {
        name: "not adding what varies along rows",
        input: &[2, 2, 5, 5],
        weights: &[("w", &[4, 2, 3, 3]), ("b", &[4]), ("k", &[4, 3, 1])],
        body: "  %c : Tensor = aten::conv2d(%x, %w, %b, %l1, %l0, %l1, %one)
  %y : Tensor = aten::add(%c, %k, %one)
  return (%y)",
        folded: "aten::add",
        expect: false,
    },
    Case {
        name: "multiplying by a number",
        input: &[2, 2, 5, 5],
        weights: &[("w", &[4, 2, 3, 3]), ("b", &[4])],
        body: "  %c : Tensor = aten::conv2d(%x, %w, %b, %l1, %l0, %l1, %one)
  %y : Tensor = aten::mul(%c, %half)
  return (%y)",
        folded: "aten::mul",
        expect: true,
    },
    Case {
        name: "dividing by one value a channel",
        input: &[2, 2, 5, 5],
        weights: &[("w", &[4, 2, 3, 3]), ("b", &[4]), ("k", &[4, 1, 1])],
        body: "  %c : Tensor = aten::conv2d(%x, %w, %b, %l1, %l0, %l1, %one)
  %y : Tensor = aten::div(%c, %k)
  return (%y)",
        folded: "aten::div",
        expect: true,
    },
    Case {
        name: "not when the result is written in between",
        input: &[2, 2, 5, 5],
        weights: &[("w", &[4, 2, 3, 3]), ("b", &[4])],
        body: "  %c : Tensor = aten::conv2d(%x, %w, %b, %l1, %l0, %l1, %one)
  %r : Tensor = aten::relu_(%c)
  %y : Tensor = aten::mul(%c, %half)
  return (%y)",
        folded: "aten::mul",
        expect: false,
    },
    Case {
        name: "one after the other, to a fixed point",
        input: &[2, 2, 5, 5],
        weights: BN,
        body: "  %c : Tensor = aten::conv2d(%x, %w, %b, %l1, %l0, %l1, %one)
  %d : Tensor = aten::mul(%c, %half)
  %e : Tensor = aten::batch_norm(%d, %gamma, %beta, %mean, %var, %no, %eps, %eps, %yes)
  %y : Tensor = aten::add(%e, %half, %one)
  return (%y)",
        folded: "aten::batch_norm",
        expect: true,
    },
];

fn build(ctx: &Arc<Context>, case: &Case) -> Graph {
    let inputs: String = case
        .weights
        .iter()
        .map(|(name, _)| format!(", %{name} : Tensor"))
        .collect();
    let text = format!("graph(%x : Tensor{inputs}):\n{PRELUDE}{}\n", case.body);
    let mut graph = parse_graph(ctx, &text)
        .unwrap_or_else(|e| panic!("{}: {e}", case.name))
        .graph;
    let sizes = case.input;
    let strides = frazil_ir::contiguous_strides(sizes);
    let x = graph.inputs()[0];
    graph.set_type(x, ctx.tensor_of(DType::Float, sizes, &strides, false));
    for (i, (name, sizes)) in case.weights.iter().enumerate() {
        let n: i64 = sizes.iter().product();
        let bytes = numbers(n, i as i64).into_iter().flat_map(f32::to_le_bytes).collect();
        let tensor = TensorData::contiguous(DType::Float, sizes, bytes).unwrap();
        let first = graph.first(graph.root()).unwrap();
        let constant = Builder::before(&mut graph, first).constant(Arc::new(tensor));
        graph.name_value(constant, name);
        let input = graph.inputs()[1];
        graph.replace_all_uses_with(input, constant);
        let root = graph.root();
        assert!(graph.remove_parameter(root, 1));
    }
    graph
}

fn run(registry: &Arc<Registry>, graph: &Graph, case: &Case) -> Vec<f64> {
    let n: i64 = case.input.iter().product();
    let x: Value = Tensor::from_f32(&numbers(n, 77), case.input).unwrap().into();
    let out = Interpreter::new(registry.clone())
        .run_graph(graph, &[x])
        .unwrap_or_else(|e| panic!("{}: {e}", case.name));
    let out = out[0].as_tensor().unwrap();
    let mut all: Vec<f64> = out.sizes().iter().map(|s| *s as f64).collect();
    all.extend(out.to_f64_vec());
    all
}

#[test]
fn foldings_keep_results_and_stop_where_they_must() {
    let registry = registry();
    let passes = PassRegistry::standard();
    let mut manager = PassManager::from_pipeline(&passes, "optimize-frozen-graph").unwrap();
    manager.verify_each(true);
    for case in CASES {
        let mut graph = build(registry.ctx(), case);
        let before = run(&registry, &graph, case);
        manager.run_on_graph(&mut graph, &*registry).unwrap();
        let left = graph.all_nodes().into_iter().any(|n| graph.kind_name(n) == case.folded);
        assert_eq!(!left, case.expect, "{}: folded", case.name);
        let after = run(&registry, &graph, case);
        assert_eq!(before.len(), after.len(), "{}: shape", case.name);
        for (a, b) in before.iter().zip(&after) {
            assert!(
                (a - b).abs() <= 2e-5 * a.abs().max(1.0),
                "{}: {a} became {b}",
                case.name
            );
        }
    }
}

const LINEAR: &[(&str, &[i64])] = &[
    ("w", &[4, 3]),
    ("v", &[2, 3]),
    ("narrow", &[4, 2]),
    ("other", &[4, 2]),
    ("mean", &[4]),
    ("var", &[4]),
    ("b", &[4]),
    ("c", &[2]),
    ("vector", &[3]),
    ("square", &[4, 4]),
];

/// Cases: a pipeline, the body of a graph, an operator, and the number of its nodes that remain.
const REWRITES: &[(&str, &str, &str, &str, usize)] = &[
    (
        "linears on one input become one",
        "concat-frozen-linear",
        "  %p : Tensor = aten::linear(%x, %w, %b)
  %q : Tensor = aten::linear(%x, %v, %c)
  %sum : Tensor = aten::sum(%q, %none)
  %y : Tensor = aten::mul(%p, %sum)
  return (%y)",
        "aten::linear",
        1,
    ),
    (
        "also without biases, and what is viewed is contiguous",
        "concat-frozen-linear",
        "  %p : Tensor = aten::linear(%x, %w, %none)
  %q : Tensor = aten::linear(%x, %v, %none)
  %minus : int = prim::Constant[value=-1]()
  %flat : int[] = prim::ListConstruct(%minus)
  %r : Tensor = aten::view(%p, %flat)
  %t : Tensor = aten::view(%q, %flat)
  %list : Tensor[] = prim::ListConstruct(%r, %t)
  %y : Tensor = aten::cat(%list, %zero)
  return (%y)",
        "aten::linear",
        1,
    ),
    (
        "groups behind one another",
        "concat-frozen-linear",
        "  %p : Tensor = aten::linear(%x, %v, %c)
  %q : Tensor = aten::linear(%x, %w, %b)
  %r : Tensor = aten::linear(%p, %narrow, %b)
  %s : Tensor = aten::linear(%p, %other, %b)
  %t : Tensor = aten::mul(%r, %s)
  %y : Tensor = aten::mul(%q, %t)
  return (%y)",
        "aten::linear",
        2,
    ),
    (
        "one that is called twice stays two, and whole",
        "concat-frozen-linear",
        "  %p : Tensor = aten::linear(%x, %w, %b)
  %q : Tensor = aten::linear(%x, %w, %b)
  %u : Tensor = aten::mul_(%p, %two)
  %y : Tensor = aten::mul(%p, %q)
  return (%y)",
        "aten::linear",
        2,
    ),
    (
        "a batch norm is folded before linears are merged",
        "optimize-frozen-graph",
        "  %p : Tensor = aten::linear(%x, %w, %b)
  %n : Tensor = aten::batch_norm(%p, %none, %none, %mean, %var, %no, %eps, %eps, %yes)
  %q : Tensor = aten::linear(%x, %v, %c)
  %sum : Tensor = aten::sum(%q, %none)
  %y : Tensor = aten::mul(%n, %sum)
  return (%y)",
        "aten::batch_norm",
        0,
    ),
    (
        "one with a bias and one without stay two",
        "concat-frozen-linear",
        "  %p : Tensor = aten::linear(%x, %w, %b)
  %q : Tensor = aten::linear(%x, %w, %none)
  %y : Tensor = aten::mul(%p, %q)
  return (%y)",
        "aten::linear",
        2,
    ),
    (
        "the input is written in between",
        "concat-frozen-linear",
        "  %h : Tensor = aten::mul(%x, %half)
  %p : Tensor = aten::linear(%h, %w, %b)
  %u : Tensor = aten::mul_(%h, %two)
  %q : Tensor = aten::linear(%h, %w, %b)
  %y : Tensor = aten::mul(%p, %q)
  return (%y)",
        "aten::linear",
        2,
    ),
    (
        "a result is written, and later linears read it",
        "concat-frozen-linear",
        "  %p : Tensor = aten::linear(%x, %v, %c)
  %q : Tensor = aten::linear(%x, %w, %b)
  %r : Tensor = aten::linear(%p, %narrow, %b)
  %u : Tensor = aten::mul_(%p, %two)
  %s : Tensor = aten::linear(%p, %narrow, %b)
  %t : Tensor = aten::mul(%r, %s)
  %y : Tensor = aten::mul(%q, %t)
  return (%y)",
        "aten::linear",
        3,
    ),
    (
        "a weight is transposed beforehand",
        "transpose-frozen-linear",
        "  %p : Tensor = aten::linear(%x, %w, %b)
  %y : Tensor = aten::linear(%p, %square, %none)
  return (%y)",
        "aten::linear",
        0,
    ),
    (
        "a vector is no matrix",
        "transpose-frozen-linear",
        "  %y : Tensor = aten::linear(%x, %vector, %none)
  return (%y)",
        "aten::linear",
        1,
    ),
];

#[test]
fn linears_keep_results_and_stop_where_they_must() {
    let registry = registry();
    let passes = PassRegistry::standard();
    for &(name, pipeline, body, operator, left) in REWRITES {
        let mut manager = PassManager::from_pipeline(&passes, pipeline).unwrap();
        manager.verify_each(true);
        let case = Case {
            name,
            input: &[5, 3],
            weights: LINEAR,
            body,
            folded: operator,
            expect: true,
        };
        let mut graph = build(registry.ctx(), &case);
        let before = run(&registry, &graph, &case);
        manager.run_on_graph(&mut graph, &*registry).unwrap();
        let kinds = graph.all_nodes();
        let count = kinds.into_iter().filter(|n| graph.kind_name(*n) == operator).count();
        assert_eq!(count, left, "{name}");
        let after = run(&registry, &graph, &case);
        assert_eq!(before.len(), after.len(), "{name}: shape");
        for (a, b) in before.iter().zip(&after) {
            assert!((a - b).abs() <= 2e-5 * a.abs().max(1.0), "{name}: {a} became {b}");
        }
    }
}

#[test]
fn half_precision_keeps_its_dtype() {
    let registry = registry();
    let case = &CASES[0];
    let mut graph = build(registry.ctx(), case);
    // The convolution in bfloat16, statistics in float.
    for name in ["w", "b"] {
        let wanted = ValueName::new(registry.ctx(), name);
        let node = graph
            .all_nodes()
            .into_iter()
            .find(|n| graph.output(*n).and_then(|v| graph.value_name(v)) == Some(wanted))
            .unwrap();
        let Some(frazil_ir::Constant::Tensor(t)) = graph.constant_of(node) else {
            panic!("a tensor")
        };
        let bytes = t.to_bytes().chunks_exact(4).flat_map(|c| [c[2], c[3]]).collect();
        let new = Arc::new(TensorData::contiguous(DType::BFloat16, &t.sizes, bytes).unwrap());
        let value = graph.output(node).unwrap();
        let constant = Builder::before(&mut graph, node).constant(new);
        graph.replace_all_uses_with(value, constant);
    }
    let passes = PassRegistry::standard();
    let manager = PassManager::from_pipeline(&passes, "fold-frozen-conv-bn").unwrap();
    manager.run_on_graph(&mut graph, &*registry).unwrap();
    let conv = graph
        .all_nodes()
        .into_iter()
        .find(|n| graph.kind_name(*n) == "aten::conv2d")
        .unwrap();
    for i in [1, 2] {
        let Some(frazil_ir::Constant::Tensor(t)) = graph.operand(conv, i).and_then(|v| graph.constant(v)) else {
            panic!("operand {i} is a constant")
        };
        assert_eq!(t.dtype, DType::BFloat16);
    }
    assert!(
        graph
            .all_nodes()
            .into_iter()
            .all(|n| graph.kind_name(n) != "aten::batch_norm")
    );
}

/// Composites are evaluated like other operators, except those that draw random numbers, or may allocate much more than their operands.
#[test]
fn composites_are_evaluated() {
    let registry = registry();
    let prelude = format!("{PRELUDE}  %size : int[] = prim::Constant[value=[3]]()\n");
    let ones = "  %a : Tensor = aten::ones(%size, %none, %none, %none, %none)\n";
    let cases = [
        ("aten::mse_loss", "  %y : Tensor = aten::mse_loss(%a, %a, %one)\n", true),
        (
            "aten::dropout",
            "  %y : Tensor = aten::dropout(%a, %half, %yes)\n",
            false,
        ),
        (
            "aten::rrelu",
            "  %y : Tensor = aten::rrelu(%a, %half, %half, %yes, %none)\n",
            false,
        ),
    ];
    for (operator, node, folds) in cases {
        // A constant that the graph returns is kept, since the caller may change it.
        let text = format!(
            "graph(%x : Tensor):\n{prelude}{ones}{node}  %z : Tensor = aten::add(%x, %y, %one)\n  return (%z)\n"
        );
        let mut graph = parse_graph(registry.ctx(), &text).unwrap().graph;
        let passes = PassRegistry::standard();
        let manager = PassManager::from_pipeline(&passes, "constant-propagation,dce").unwrap();
        manager.run_on_graph(&mut graph, &registry).unwrap();
        let left = graph.all_nodes().iter().any(|&n| graph.kind_name(n) == operator);
        assert_eq!(left, !folds, "{operator}");
    }
}
