//! Graphs of tensor programs through the front half and the compiled plan, against the runtime's evaluation of every step.

use frazil_codegen::backend::host_target;
use frazil_codegen::{BackendOptions, compile};
use frazil_ir::{DType, TensorData};
use frazil_planner::kernel::{Conv, CopyChannels, Depthwise, Gemm, KernelSpec, Loops, Pool, Reorder};
use frazil_planner::plan::Plan;
use frazil_planner::tune::Tuning;
use frazil_planner::{LowerOptions, lower};
use frazil_runtime::Tensor;
use frazil_runtime::eval::eval_program;
use frazil_runtime::expr::{BinaryOp, Expr, Number, UnaryOp};
use frazil_runtime::structured::{
    Access, Affine, Combine, Iteration, OutOfBounds, Program, Step, Structured, TensorId, TensorShape, ViewKind,
    ViewMap,
};
use frazil_tensor_ir::graph::{TensorGraph, TensorOp};
use std::sync::Arc;

struct Net {
    graph: TensorGraph,
    seed: u64,
}

/// A coordinate: offset, then (loop, factor).
fn at(rank: usize, offset: i64, terms: &[(usize, i64)]) -> Affine {
    let mut a = Affine::constant(rank, offset);
    for &(l, c) in terms {
        a.coefficients[l] = c;
    }
    a
}

fn read(tensor: TensorId, map: Vec<Affine>) -> Access {
    Access {
        tensor,
        map: map.into(),
        out_of_bounds: OutOfBounds::Never,
    }
}

fn iterations(parallel: usize, rank: usize) -> Vec<Iteration> {
    (0..rank)
        .map(|l| match l < parallel {
            true => Iteration::Parallel,
            false => Iteration::Reduction,
        })
        .collect()
}

fn float(sizes: &[i64]) -> TensorShape {
    TensorShape {
        dtype: DType::Float,
        sizes: sizes.into(),
    }
}

fn product() -> Expr {
    let mut e = Expr::new();
    let (a, b) = (e.input(0, DType::Float), e.input(1, DType::Float));
    e.binary(BinaryOp::Mul, a, b);
    e
}

fn sum() -> Expr {
    let mut e = Expr::new();
    let (a, b) = (e.input(0, DType::Float), e.input(1, DType::Float));
    e.binary(BinaryOp::Add, a, b);
    e
}

fn of_one(f: impl Fn(&mut Expr, u32)) -> Expr {
    let mut e = Expr::new();
    let x = e.input(0, DType::Float);
    f(&mut e, x);
    e
}

fn relu() -> Expr {
    of_one(|e, x| {
        let zero = e.float(0.0, DType::Float);
        e.binary(BinaryOp::Maximum, x, zero);
    })
}

impl Net {
    fn new() -> Net {
        Net {
            graph: TensorGraph::new(),
            seed: 1,
        }
    }

    fn values(&mut self, n: i64) -> Vec<f32> {
        (0..n)
            .map(|_| {
                self.seed = self
                    .seed
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                ((self.seed >> 40) as f32 / (1u64 << 24) as f32) * 2.0 - 1.0
            })
            .collect()
    }

    fn weight(&mut self, sizes: &[i64]) -> TensorId {
        let fan_in: i64 = sizes.iter().skip(1).product();
        let scale = 1.0 / (fan_in as f32).sqrt();
        let values: Vec<f32> = self.values(sizes.iter().product()).iter().map(|v| v * scale).collect();
        let data = TensorData::contiguous(DType::Float, sizes, bytemuck::cast_slice(&values).to_vec());
        self.graph.constant(Arc::new(data.unwrap()))
    }

    fn input(&mut self, sizes: &[i64]) -> TensorId {
        self.graph.input(float(sizes))
    }

    fn sizes(&self, t: TensorId) -> Vec<i64> {
        self.graph.shape(t).sizes.to_vec()
    }

    fn pointwise(&mut self, inputs: &[TensorId], body: Expr) -> TensorId {
        let sizes = inputs.iter().map(|&t| self.sizes(t)).max_by_key(Vec::len).unwrap();
        let rank = sizes.len();
        let reads = inputs.iter().map(|&t| {
            let own = self.sizes(t);
            let lead = rank - own.len();
            let map = own.iter().enumerate().map(|(d, &n)| match n {
                1 => Affine::constant(rank, 0),
                _ => Affine::index(rank, lead + d),
            });
            read(t, map.collect())
        });
        let s = Structured {
            domain: sizes.as_slice().into(),
            iterations: iterations(rank, rank).into(),
            inputs: reads.collect(),
            body,
            combine: None,
            accumulate: DType::Float,
            finish: None,
            finish_inputs: Default::default(),
            output: float(&sizes),
        };
        self.graph.nest(s, Vec::new())
    }

    fn conv(&mut self, x: TensorId, out: i64, kernel: i64, stride: i64, padding: i64, groups: i64) -> TensorId {
        let [n, c, h, w] = self.sizes(x)[..] else { panic!() };
        let (ci, co) = (c / groups, out / groups);
        let weight = self.weight(&[out, ci, kernel, kernel]);
        let bias = self.weight(&[out]);
        let size = |i: i64| (i + 2 * padding - kernel) / stride + 1;
        // n, g, o, y, x | c, ky, kx
        let domain = [n, groups, co, size(h), size(w), ci, kernel, kernel];
        let x = Access {
            tensor: x,
            map: vec![
                at(8, 0, &[(0, 1)]),
                at(8, 0, &[(1, ci), (5, 1)]),
                at(8, -padding, &[(3, stride), (6, 1)]),
                at(8, -padding, &[(4, stride), (7, 1)]),
            ]
            .into(),
            out_of_bounds: OutOfBounds::Value(Number::Float(0.0)),
        };
        let channel = at(8, 0, &[(1, co), (2, 1)]);
        let w = read(
            weight,
            vec![
                channel.clone(),
                Affine::index(8, 5),
                Affine::index(8, 6),
                Affine::index(8, 7),
            ],
        );
        let s = Structured {
            domain: domain.as_slice().into(),
            iterations: iterations(5, 8).into(),
            inputs: vec![x, w].into(),
            body: product(),
            combine: Some(Combine::Add),
            accumulate: DType::Float,
            finish: Some(sum()),
            finish_inputs: vec![read(bias, vec![channel])].into(),
            output: float(&domain[..5]),
        };
        let grouped = self.graph.nest(s, Vec::new());
        self.reshape(grouped, &[n, out, domain[3], domain[4]])
    }

    fn reshape(&mut self, x: TensorId, sizes: &[i64]) -> TensorId {
        let v = ViewMap {
            tensor: x,
            kind: ViewKind::Reshape,
            output: float(sizes),
        };
        self.graph.view(v, Vec::new())
    }

    fn pool(&mut self, x: TensorId, combine: Combine, kernel: i64, stride: i64, padding: i64) -> TensorId {
        let [n, c, h, w] = self.sizes(x)[..] else { panic!() };
        let size = |i: i64| (i + 2 * padding - kernel) / stride + 1;
        let domain = [n, c, size(h), size(w), kernel, kernel];
        let fill = if combine == Combine::Max {
            f64::NEG_INFINITY
        } else {
            0.0
        };
        let s = Structured {
            domain: domain.as_slice().into(),
            iterations: iterations(4, 6).into(),
            inputs: vec![Access {
                tensor: x,
                map: vec![
                    Affine::index(6, 0),
                    Affine::index(6, 1),
                    at(6, -padding, &[(2, stride), (4, 1)]),
                    at(6, -padding, &[(3, stride), (5, 1)]),
                ]
                .into(),
                out_of_bounds: OutOfBounds::Value(Number::Float(fill)),
            }]
            .into(),
            body: Expr::identity(DType::Float),
            combine: Some(combine),
            accumulate: DType::Float,
            finish: (combine == Combine::Add).then(|| {
                of_one(|e, x| {
                    let n = e.float((kernel * kernel) as f64, DType::Float);
                    e.binary(BinaryOp::Div, x, n);
                })
            }),
            finish_inputs: Default::default(),
            output: float(&domain[..4]),
        };
        self.graph.nest(s, Vec::new())
    }

    fn linear(&mut self, x: TensorId, n: i64) -> TensorId {
        let [m, k] = self.sizes(x)[..] else { panic!() };
        let weight = self.weight(&[n, k]);
        let bias = self.weight(&[n]);
        let ix = |l| Affine::index(3, l);
        let s = Structured {
            domain: vec![m, n, k].into(),
            iterations: iterations(2, 3).into(),
            inputs: vec![read(x, vec![ix(0), ix(2)]), read(weight, vec![ix(1), ix(2)])].into(),
            body: product(),
            combine: Some(Combine::Add),
            accumulate: DType::Float,
            finish: Some(sum()),
            finish_inputs: vec![read(bias, vec![ix(1)])].into(),
            output: float(&[m, n]),
        };
        self.graph.nest(s, Vec::new())
    }

    /// A fold of the last dimension, kept with extent 1.
    fn fold_last(&mut self, x: TensorId, combine: Combine) -> TensorId {
        let sizes = self.sizes(x);
        let rank = sizes.len();
        let mut domain = sizes.clone();
        let last = domain[rank - 1];
        domain[rank - 1] = 1;
        domain.push(last);
        let map = (0..rank).map(|d| Affine::index(rank + 1, if d + 1 == rank { rank } else { d }));
        let s = Structured {
            domain: domain.as_slice().into(),
            iterations: iterations(rank, rank + 1).into(),
            inputs: vec![read(x, map.collect())].into(),
            body: Expr::identity(DType::Float),
            combine: Some(combine),
            accumulate: DType::Float,
            finish: None,
            finish_inputs: Default::default(),
            output: float(&domain[..rank]),
        };
        self.graph.nest(s, Vec::new())
    }

    /// Concatenation of dimension 1, written as a choice by the coordinate.
    fn cat(&mut self, parts: &[TensorId]) -> TensorId {
        let mut sizes = self.sizes(parts[0]);
        let rank = sizes.len();
        sizes[1] = parts.iter().map(|&p| self.sizes(p)[1]).sum();
        let mut body = Expr::new();
        let mut start = 0;
        let mut reads = Vec::new();
        let mut starts = Vec::new();
        for &p in parts {
            starts.push(start);
            let mut map: Vec<Affine> = (0..rank).map(|d| Affine::index(rank, d)).collect();
            map[1].offset = -start;
            reads.push(Access {
                tensor: p,
                map: map.into(),
                out_of_bounds: OutOfBounds::Value(Number::Float(0.0)),
            });
            start += self.sizes(p)[1];
        }
        let mut value = body.input(parts.len() as u32 - 1, DType::Float);
        for i in (0..parts.len() - 1).rev() {
            let c = body.push(frazil_runtime::expr::ExprOp::Index(1), DType::Long);
            let limit = body.int(starts[i + 1], DType::Long);
            let below = body.binary(BinaryOp::Lt, c, limit);
            let x = body.input(i as u32, DType::Float);
            value = body.select(below, x, value);
        }
        let s = Structured {
            domain: sizes.as_slice().into(),
            iterations: iterations(rank, rank).into(),
            inputs: reads.into(),
            body,
            combine: None,
            accumulate: DType::Float,
            finish: None,
            finish_inputs: Default::default(),
            output: float(&sizes),
        };
        self.graph.nest(s, Vec::new())
    }

    /// Compiles the graph for `result`, runs it, and compares with the step-by-step evaluation.
    fn check(mut self, results: &[TensorId]) -> Plan {
        self.graph.set_outputs(results);
        let inputs: Vec<(Vec<i64>, Vec<f32>)> = self
            .graph
            .inputs()
            .to_vec()
            .into_iter()
            .map(|i| {
                let sizes = self.sizes(i);
                let n = sizes.iter().product();
                (sizes, self.values(n))
            })
            .collect();
        let tensors: Vec<Tensor> = inputs.iter().map(|(s, v)| Tensor::from_f32(v, s).unwrap()).collect();
        let expected = evaluate(&self.graph, &tensors);
        let target = host_target();
        let options = LowerOptions {
            name: "net".into(),
            target: target.clone(),
            fuse: true,
            tuning: Tuning::default(),
            families: Vec::new(),
            packed: None,
            sizes: Default::default(),
            threads: 1,
        };
        let plan = lower(self.graph, &options).unwrap();
        for threads in [1, 2] {
            let options = BackendOptions {
                target: target.clone(),
                threads,
                ..BackendOptions::default()
            };
            let mut exe = compile(&plan, &options).unwrap();
            let bytes: Vec<&[u8]> = inputs.iter().map(|(_, v)| bytemuck::cast_slice(v)).collect();
            let mut outs: Vec<Vec<f32>> = expected.iter().map(|t| vec![f32::NAN; t.numel() as usize]).collect();
            let mut views: Vec<&mut [u8]> = outs.iter_mut().map(|o| bytemuck::cast_slice_mut(o)).collect();
            exe.run(&bytes, &mut views).unwrap();
            for (got, want) in outs.iter().zip(&expected) {
                let want: Vec<f32> = want.to_vec();
                for (i, (g, w)) in got.iter().zip(&want).enumerate() {
                    assert!(
                        (g - w).abs() <= 2e-5 + 1e-5 * w.abs(),
                        "element {i}: {g} instead of {w}"
                    );
                }
            }
        }
        plan
    }
}

fn evaluate(graph: &TensorGraph, inputs: &[Tensor]) -> Vec<Tensor> {
    let mut arguments = Vec::new();
    let mut tensors = Vec::new();
    // The program's numbering: graph inputs and constants first, in the order of the graph; then the steps.
    let mut number = std::collections::HashMap::new();
    for id in graph.ids() {
        let value = match graph.op(id) {
            TensorOp::Input(i) => inputs[*i as usize].clone(),
            TensorOp::Constant(c) => Tensor::from_f32(bytemuck::cast_slice(&c.to_bytes()), &c.sizes).unwrap(),
            _ => continue,
        };
        number.insert(id, TensorId::new(tensors.len()));
        tensors.push(value);
        arguments.push(graph.shape(id).clone());
    }
    let mut steps = Vec::new();
    for id in graph.ids() {
        let step = match graph.op(id).clone() {
            TensorOp::Nest(mut s) => {
                for a in s.inputs.iter_mut().chain(&mut s.finish_inputs) {
                    a.tensor = number[&a.tensor];
                }
                Step::Compute(s)
            }
            TensorOp::View(mut v) => {
                v.tensor = number[&v.tensor];
                Step::View(v)
            }
            _ => continue,
        };
        number.insert(id, TensorId::new(tensors.len() + steps.len()));
        steps.push(step);
    }
    let program = Program {
        arguments,
        steps,
        outputs: graph.outputs().iter().map(|o| number[o]).collect(),
    };
    eval_program(&program, &tensors).unwrap()
}

fn count(plan: &Plan, f: impl Fn(&KernelSpec) -> bool) -> usize {
    plan.calls
        .iter()
        .filter(|c| f(&plan.kernels[c.kernel as usize]))
        .count()
}

#[test]
fn residual_block_is_three_convolutions() {
    let mut n = Net::new();
    let x = n.input(&[2, 3, 14, 14]);
    let stem = n.conv(x, 32, 3, 1, 1, 1);
    let stem = n.pointwise(&[stem], relu());
    let a = n.conv(stem, 32, 3, 1, 1, 1);
    let a = n.pointwise(&[a], relu());
    let b = n.conv(a, 32, 3, 1, 1, 1);
    let c = n.pointwise(&[b, stem], sum());
    let c = n.pointwise(&[c], relu());
    let plan = n.check(&[c]);
    assert_eq!(count(&plan, |k| k.get::<Conv>().is_some()), 3);
    assert_eq!(plan.calls.len(), 4, "and one reorder of the result");
    // Equal shapes, but only one of the last two has a residual. What transforms their weights is one kernel more.
    let prepared = plan.preparation.calls.len();
    assert_eq!(plan.kernels.len(), 4 + prepared.min(1));
}

#[test]
fn a_small_network_end_to_end() {
    let mut n = Net::new();
    let x = n.input(&[1, 3, 17, 19]);
    let y = n.conv(x, 20, 5, 2, 2, 1);
    let y = n.pointwise(&[y], relu());
    let y = n.pool(y, Combine::Max, 3, 2, 1);
    let y = n.conv(y, 36, 1, 1, 0, 1);
    let y = n.conv(y, 36, 3, 1, 1, 36);
    let y = n.pointwise(&[y], relu());
    let [_, c, h, w] = n.sizes(y)[..] else { panic!() };
    assert_eq!((c, h, w), (36, 5, 5));
    let y = n.pool(y, Combine::Add, 5, 1, 0);
    let y = n.reshape(y, &[1, 36]);
    let y = n.linear(y, 10);
    let plan = n.check(&[y]);
    assert_eq!(count(&plan, |k| k.get::<Depthwise>().is_some()), 1);
    assert_eq!(count(&plan, |k| k.get::<Pool>().is_some()), 2);
    assert_eq!(count(&plan, |k| k.get::<Gemm>().is_some()), 1);
    assert_eq!(
        count(&plan, |k| k.get::<Loops>().is_some() || k.get::<Reorder>().is_some()),
        0
    );
}

#[test]
fn batches_with_padded_channels_reach_a_linear_layer() {
    let mut n = Net::new();
    let x = n.input(&[3, 1, 12, 12]);
    let y = n.conv(x, 6, 5, 1, 0, 1);
    let y = n.pointwise(
        &[y],
        of_one(|e, x| {
            e.unary(UnaryOp::Exp, x);
        }),
    );
    let y = n.pool(y, Combine::Max, 2, 2, 0);
    let y = n.reshape(y, &[3, 6 * 16]);
    let y = n.linear(y, 21);
    let y = n.pointwise(&[y], relu());
    let y = n.linear(y, 5);
    n.check(&[y]);
}

#[test]
fn concatenated_channels_are_written_in_place() {
    for batch in [1, 3] {
        let mut n = Net::new();
        let x = n.input(&[batch, 3, 8, 8]);
        let s = n.conv(x, 16, 3, 1, 1, 1);
        let a = n.conv(s, 32, 1, 1, 0, 1);
        let a = n.pointwise(&[a], relu());
        let b = n.conv(s, 32, 3, 1, 1, 1);
        let b = n.pointwise(&[b], relu());
        let c = n.cat(&[a, b]);
        let d = n.conv(c, 16, 1, 1, 0, 1);
        let e = n.cat(&[d, a, s]);
        let f = n.pool(e, Combine::Max, 2, 2, 0);
        let plan = n.check(&[f]);
        // `a` stands in two concatenations: one of them copies.
        assert_eq!(count(&plan, |k| k.get::<CopyChannels>().is_some()), 1);
    }
}

#[test]
fn concatenation_off_block_boundaries() {
    for batch in [1, 2] {
        let mut n = Net::new();
        let x = n.input(&[batch, 3, 6, 6]);
        let a = n.conv(x, 10, 3, 1, 1, 1);
        let b = n.conv(x, 24, 3, 1, 1, 1);
        let c = n.cat(&[a, b]);
        let d = n.conv(c, 8, 1, 1, 0, 1);
        n.check(&[d, c]);
    }
}

#[test]
fn grouped_convolution_and_channel_scale() {
    for batch in [1, 2] {
        let mut n = Net::new();
        let x = n.input(&[batch, 24, 7, 7]);
        let y = n.conv(x, 48, 3, 1, 1, 4);
        let y = n.pointwise(&[y], relu());
        // Squeeze and excitation.
        let s = n.pool(y, Combine::Add, 7, 1, 0);
        let s = n.conv(s, 48, 1, 1, 0, 1);
        let s = n.pointwise(
            &[s],
            of_one(|e, x| {
                e.unary(UnaryOp::Tanh, x);
            }),
        );
        let y = n.pointwise(&[y, s], product());
        let y = n.conv(y, 12, 1, 1, 0, 1);
        n.check(&[y, s]);
    }
}

#[test]
fn softmax_of_rows() {
    let mut n = Net::new();
    let x = n.input(&[5, 37]);
    let x2 = n.linear(x, 23);
    let m = n.fold_last(x2, Combine::Max);
    let mut body = Expr::new();
    let (a, b) = (body.input(0, DType::Float), body.input(1, DType::Float));
    let d = body.binary(BinaryOp::Sub, a, b);
    body.unary(UnaryOp::Exp, d);
    let e = n.pointwise(&[x2, m], body);
    let s = n.fold_last(e, Combine::Add);
    let mut body = Expr::new();
    let (a, b) = (body.input(0, DType::Float), body.input(1, DType::Float));
    body.binary(BinaryOp::Div, a, b);
    let y = n.pointwise(&[e, s], body);
    let plan = n.check(&[y, x2]);
    assert_eq!(count(&plan, |k| k.get::<Loops>().is_some()), 1);
}

#[test]
fn results_may_be_inputs_constants_and_repeated() {
    let mut n = Net::new();
    let x = n.input(&[4, 5]);
    let w = n.weight(&[3, 2]);
    let y = n.pointwise(&[x], relu());
    let z = n.reshape(y, &[20]);
    let t = n.graph.view(
        ViewMap {
            tensor: y,
            kind: ViewKind::Affine(vec![Affine::index(2, 1), Affine::index(2, 0)]),
            output: float(&[5, 4]),
        },
        Vec::new(),
    );
    n.check(&[x, w, y, y, z, t]);
}

#[test]
fn channel_slices_and_permuted_images_stay_convolutions() {
    for batch in [1, 2] {
        let mut n = Net::new();
        let x = n.input(&[batch, 40, 6, 6]);
        let x = n.conv(x, 40, 1, 1, 0, 1);
        let slice = |n: &mut Net, from: i64, count: i64| {
            let mut map: Vec<Affine> = (0..4).map(|d| Affine::index(4, d)).collect();
            map[1].offset = from;
            let v = ViewMap {
                tensor: x,
                kind: ViewKind::Affine(map),
                output: float(&[batch, count, 6, 6]),
            };
            n.graph.view(v, Vec::new())
        };
        let (a, b) = (slice(&mut n, 0, 20), slice(&mut n, 16, 24));
        let a = n.conv(a, 20, 3, 1, 1, 20);
        let b = n.conv(b, 8, 1, 1, 0, 1);
        // Rows and channels change places.
        let p = n.graph.view(
            ViewMap {
                tensor: b,
                kind: ViewKind::Affine(vec![
                    Affine::index(4, 0),
                    Affine::index(4, 2),
                    Affine::index(4, 1),
                    Affine::index(4, 3),
                ]),
                output: float(&[batch, 6, 8, 6]),
            },
            Vec::new(),
        );
        let p = n.conv(p, 16, 3, 1, 1, 1);
        let plan = n.check(&[a, p]);
        assert_eq!(count(&plan, |k| k.get::<Conv>().is_some()), 3);
        assert_eq!(count(&plan, |k| k.get::<Depthwise>().is_some()), 1);
    }
}

#[test]
fn softmax_of_the_last_of_four_dimensions_is_one_kernel() {
    let mut n = Net::new();
    let x = n.input(&[2, 3, 9, 9]);
    let m = n.fold_last(x, Combine::Max);
    let mut body = Expr::new();
    let (a, b) = (body.input(0, DType::Float), body.input(1, DType::Float));
    let d = body.binary(BinaryOp::Sub, a, b);
    body.unary(UnaryOp::Exp, d);
    let e = n.pointwise(&[x, m], body);
    let s = n.fold_last(e, Combine::Add);
    let mut body = Expr::new();
    let (a, b) = (body.input(0, DType::Float), body.input(1, DType::Float));
    body.binary(BinaryOp::Div, a, b);
    let y = n.pointwise(&[e, s], body);
    let plan = n.check(&[y]);
    assert_eq!(plan.calls.len(), 1);
}

#[test]
fn activations_are_fused_into_grouped_convolutions() {
    let mut n = Net::new();
    let x = n.input(&[2, 32, 5, 5]);
    let y = n.conv(x, 64, 3, 1, 1, 2);
    let y = n.pointwise(&[y], relu());
    let r = n.conv(x, 64, 1, 1, 0, 1);
    let y = n.pointwise(&[y, r], sum());
    let y = n.pointwise(&[y], relu());
    let plan = n.check(&[y]);
    assert_eq!(count(&plan, |k| k.get::<Conv>().is_some()), 2);
    assert_eq!(count(&plan, |k| k.get::<Loops>().is_some()), 0);
}

#[test]
fn normalisation_of_rows_is_one_kernel_when_sums_lose_their_dimension() {
    let mut n = Net::new();
    let x = n.input(&[2, 7, 24]);
    let total = n.fold_last(x, Combine::Add);
    let flat = n.reshape(total, &[2, 7]);
    let mean = n.reshape(flat, &[2, 7, 1]);
    let mean = n.pointwise(
        &[mean],
        of_one(|e, x| {
            let count = e.float(24.0, DType::Float);
            e.binary(BinaryOp::Div, x, count);
        }),
    );
    let mut body = Expr::new();
    let (a, b) = (body.input(0, DType::Float), body.input(1, DType::Float));
    body.binary(BinaryOp::Sub, a, b);
    let y = n.pointwise(&[x, mean], body);
    let plan = n.check(&[y]);
    assert_eq!(plan.calls.len(), 1);
}

#[test]
fn infinities_in_padding_lanes_reach_no_element() {
    // Where there is no channel the sum is exactly 0.
    let zero_to_infinity = || {
        of_one(|e, x| {
            let (zero, infinity) = (e.float(0.0, DType::Float), e.float(f64::INFINITY, DType::Float));
            let is_zero = e.binary(BinaryOp::Eq, x, zero);
            e.select(is_zero, infinity, x);
        })
    };
    for (batch, kernel, groups) in [(1, 3, 1), (2, 1, 1), (1, 3, 20), (1, 3, 2)] {
        let mut n = Net::new();
        let x = n.input(&[batch, 3, 12, 12]);
        let y = n.conv(x, 20, 3, 1, 1, 1);
        let y = n.pointwise(&[y], zero_to_infinity());
        let y = n.conv(y, 20, kernel, 1, kernel / 2, groups);
        let p = n.pool(y, Combine::Max, 2, 2, 0);
        let z = n.pointwise(&[y], zero_to_infinity());
        let q = n.pool(z, Combine::Add, 3, 1, 1);
        let c = n.cat(&[y, z]);
        let c = n.conv(c, 24, 1, 1, 0, 1);
        n.check(&[p, q, c]);
    }
}
