//! Simplification and constant folding against the evaluation of the graph as specialisation made it: on random graphs of views, reductions, products and
//! pointwise operators, with random doubles, NaN, infinities and zeros of both signs.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails loudly")]

use frazil_ir::{Context, DType};
use frazil_planner::ArgumentSpec;
use frazil_planner::lower::optimise;
use frazil_planner::specialise::specialise;
use frazil_recorded::bits::{Within, difference};
use frazil_recorded::random::Random;
use frazil_runtime::eval::eval_program;
use frazil_runtime::import::{Importer, tensor_to_constant};
use frazil_runtime::interp::Interpreter;
use frazil_runtime::structured::{Combine, Program, Step, Structured, TensorId, TensorShape};
use frazil_runtime::{Registry, Tensor, Value};
use frazil_tensor_ir::graph::{TensorGraph, TensorOp};
use std::fmt::Write;
use std::sync::Arc;

/// Graphs that are made.
const SEEDS: u64 = 6000;
/// By so many units in the last place of the largest element sums may differ: another nest adds their terms in another order.
const UNITS_OF_SUMS: f64 = 64.0;

/// Writes the text of a graph.
struct Writer {
    random: Random,
    text: String,
    next: usize,
    /// Names and sizes; all tensors have one dtype.
    tensors: Vec<(String, Vec<i64>)>,
}

impl Writer {
    fn line(&mut self, ty: &str, operation: &str) -> String {
        self.next += 1;
        let name = format!("%v{}", self.next);
        writeln!(self.text, "  {name} : {ty} = {operation}").unwrap();
        name
    }

    fn int(&mut self, n: i64) -> String {
        self.line("int", &format!("prim::Constant[value={n}]()"))
    }

    fn ints(&mut self, items: &[i64]) -> String {
        let items: Vec<String> = items.iter().map(|&n| self.int(n)).collect();
        self.line("int[]", &format!("prim::ListConstruct({})", items.join(", ")))
    }

    fn below(&mut self, n: usize) -> usize {
        self.random.below(n.max(1) as u64) as usize
    }

    fn tensor(&mut self) -> (String, Vec<i64>) {
        let (n, m) = (self.below(self.tensors.len()), self.below(self.tensors.len()));
        self.tensors[n.max(m)].clone()
    }

    fn add(&mut self, operation: &str, sizes: Vec<i64>) {
        let name = self.line("Tensor", operation);
        self.tensors.push((name, sizes));
    }

    fn statement(&mut self) {
        let (x, mut sizes) = self.tensor();
        let rank = sizes.len();
        let d = self.below(rank);
        let dim = self.int(d as i64);
        match self.below(16) {
            0 => {
                let op = *self.random.pick(&["neg", "abs", "relu", "sqrt", "tanh", "reciprocal"]);
                self.add(&format!("aten::{op}({x})"), sizes);
            }
            1..=2 => {
                let (y, other) = self.tensor();
                let Some(sizes) = frazil_runtime::layout::broadcast(&sizes, &other) else {
                    return;
                };
                let op = *self.random.pick(&["add", "sub", "mul", "maximum", "div"]);
                let alpha = if matches!(op, "add" | "sub") { ", %one" } else { "" };
                self.add(&format!("aten::{op}({x}, {y}{alpha})"), sizes.to_vec());
            }
            3 if rank > 1 => {
                let e = self.below(rank);
                sizes.swap(d, e);
                let other = self.int(e as i64);
                self.add(&format!("aten::transpose({x}, {dim}, {other})"), sizes);
            }
            4 if rank > 0 => {
                let at = self.below(sizes[d] as usize) as i64;
                let at = self.int(at);
                sizes.remove(d);
                self.add(&format!("aten::select({x}, {dim}, {at})"), sizes);
            }
            5 if rank > 0 => {
                let (n, step) = (sizes[d], 1 + self.below(2) as i64);
                let first = self.below(n as usize) as i64;
                sizes[d] = (n - first + step - 1) / step;
                let (first, end, step) = (self.int(first), self.int(n), self.int(step));
                self.add(&format!("aten::slice({x}, {dim}, {first}, {end}, {step})"), sizes);
            }
            6 => {
                let at = self.below(rank + 1);
                sizes.insert(at, 1);
                let at = self.int(at as i64);
                self.add(&format!("aten::unsqueeze({x}, {at})"), sizes);
            }
            7 => {
                let numel: i64 = sizes.iter().product();
                let mut new = vec![numel];
                if numel % 2 == 0 {
                    new = vec![2, numel / 2];
                }
                let list = self.ints(&new);
                self.add(&format!("aten::reshape({x}, {list})"), new);
            }
            8 if rank < 4 => {
                sizes.insert(0, 2);
                let list = self.ints(&sizes);
                self.add(&format!("aten::expand({x}, {list}, %no)"), sizes);
            }
            9 if rank > 0 => {
                let list = self.ints(&[d as i64]);
                self.add(&format!("aten::flip({x}, {list})"), sizes);
            }
            10..=11 if rank > 0 => {
                let list = self.ints(&[d as i64]);
                sizes.remove(d);
                match self.below(3) {
                    0 => self.add(&format!("aten::sum({x}, {list}, %no, %none)"), sizes),
                    1 => self.add(&format!("aten::amax({x}, {list}, %no)"), sizes),
                    _ => self.add(&format!("aten::mean({x}, {list}, %no, %none)"), sizes),
                }
            }
            12 if rank == 2 => {
                let Some((y, other)) = self
                    .tensors
                    .iter()
                    .find(|(_, s)| s.len() == 2 && s[0] == sizes[1])
                    .cloned()
                else {
                    return;
                };
                self.add(&format!("aten::mm({x}, {y})"), vec![sizes[0], other[1]]);
            }
            13 if rank > 0 => {
                sizes[d] *= 2;
                let list = self.line("Tensor[]", &format!("prim::ListConstruct({x}, {x})"));
                self.add(&format!("aten::cat({list}, {dim})"), sizes);
            }
            14 if rank > 0 => {
                let last = rank - 1;
                sizes[last] += 3;
                let pads = self.ints(&[1, 2]);
                self.add(&format!("aten::constant_pad_nd({x}, {pads}, %half)"), sizes);
            }
            15 if rank > 0 => {
                let places = [0, sizes[d] - 1, 0];
                sizes[d] = 3;
                let list = self.ints(&places);
                let index = self.line("Tensor", &format!("aten::tensor({list}, %none, %none, %no)"));
                self.add(&format!("aten::index_select({x}, {dim}, {index})"), sizes);
            }
            _ => {}
        }
        if self
            .tensors
            .last()
            .is_some_and(|(_, s)| s.iter().product::<i64>() > 600)
        {
            self.tensors.pop();
        }
    }
}

/// The text of a graph of a seed, and the sizes of its inputs.
fn random_text(seed: u64) -> (String, Vec<Vec<i64>>) {
    let all: &[&[i64]] = &[&[], &[5], &[3, 4], &[1, 6], &[4, 3], &[2, 3, 4], &[1]];
    let mut random = Random::new(seed);
    let inputs: Vec<Vec<i64>> = (0..3).map(|_| random.pick(all).to_vec()).collect();
    let mut w = Writer {
        random,
        text: "graph(%x0 : Tensor, %x1 : Tensor, %x2 : Tensor):
  %one : int = prim::Constant[value=1]()
  %half : float = prim::Constant[value=0.5]()
  %no : bool = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
"
        .to_owned(),
        next: 0,
        tensors: inputs
            .iter()
            .enumerate()
            .map(|(i, s)| (format!("%x{i}"), s.clone()))
            .collect(),
    };
    for _ in 0..10 {
        w.statement();
    }
    let results: Vec<&str> = w.tensors[3..]
        .iter()
        .rev()
        .take(4)
        .map(|(name, _)| name.as_str())
        .collect();
    let results = if results.is_empty() {
        "%x0".to_owned()
    } else {
        results.join(", ")
    };
    writeln!(w.text, "  return ({results})").unwrap();
    (w.text, inputs)
}

/// Evaluates the outputs of a graph of tensor programs, tensor by tensor.
fn evaluate(graph: &TensorGraph, inputs: &[Tensor]) -> Vec<Tensor> {
    let mut values: Vec<Option<Tensor>> = vec![None; graph.len()];
    let mut importer = Importer::new();
    for id in graph.live_ids() {
        let node = graph.node(id);
        let value = match &node.op {
            TensorOp::Input(n) => inputs[*n as usize].clone(),
            TensorOp::Constant(data) => importer.tensor(data).unwrap().get(),
            TensorOp::Nest(s) => run(graph, id, Step::Compute(s.clone()), &values),
            TensorOp::View(v) => run(graph, id, Step::View(v.clone()), &values),
            TensorOp::Gather(g) => run(graph, id, Step::Gather(g.clone()), &values),
            TensorOp::Call(_) | TensorOp::CallResult { .. } => panic!("no operator here is a kernel"),
        };
        assert_eq!(value.sizes(), node.shape.sizes.as_slice());
        values[id.index()] = Some(value);
    }
    let output = |&id: &TensorId| values[id.index()].clone().unwrap();
    graph.outputs().iter().map(output).collect()
}

fn run(graph: &TensorGraph, id: TensorId, mut step: Step, values: &[Option<Tensor>]) -> Tensor {
    let operands: Vec<TensorId> = graph.operands(id).into_iter().collect();
    let number = |t: &mut TensorId| *t = TensorId::new(operands.iter().position(|o| o == t).unwrap());
    match &mut step {
        Step::Compute(s) => {
            let Structured {
                inputs, finish_inputs, ..
            } = &mut **s;
            inputs
                .iter_mut()
                .chain(finish_inputs)
                .for_each(|a| number(&mut a.tensor));
        }
        Step::View(v) => number(&mut v.tensor),
        Step::Gather(g) => g.operands_mut().for_each(number),
    }
    let program = Program {
        arguments: operands.iter().map(|&t| graph.shape(t).clone()).collect(),
        steps: vec![step],
        outputs: [TensorId::new(operands.len())].into_iter().collect(),
    };
    let args: Vec<Tensor> = operands.iter().map(|&t| values[t.index()].clone().unwrap()).collect();
    eval_program(&program, &args).unwrap().remove(0)
}

fn sums(graph: &TensorGraph) -> bool {
    graph
        .live_ids()
        .iter()
        .any(|&id| graph.as_nest(id).is_some_and(|s| s.combine == Some(Combine::Add)))
}

#[test]
fn simplified_and_folded_graphs_compute_what_they_did() {
    let mut registry = Registry::new(Arc::new(Context::new()));
    frazil_prim::register(&mut registry);
    frazil_aten::register(&mut registry);
    let registry = Arc::new(registry);
    let mut wrong = Vec::new();
    let mut folded = 0;
    for seed in 0..SEEDS {
        let (text, sizes) = random_text(seed);
        let parsed =
            frazil_syntax::parse_graph(registry.ctx(), &text).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
        let dtypes = [DType::Double, DType::Float, DType::Half, DType::BFloat16];
        let dtype = dtypes[(seed % 4) as usize];
        let mut random = Random::new(seed ^ 0x5eed);
        let specials = seed % 3 == 0;
        let inputs: Vec<Tensor> = sizes.iter().map(|s| random.tensor(dtype, s, specials)).collect();
        let shape = |s: &Vec<i64>| {
            ArgumentSpec::Tensor(TensorShape {
                dtype,
                sizes: s.as_slice().into(),
            })
        };
        let specs: Vec<ArgumentSpec> = sizes.iter().map(shape).collect();
        let made = specialise(&parsed.graph, &specs, &registry).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
        let want = evaluate(&made.graph, &inputs);
        let within = if sums(&made.graph) {
            Within::Units(UNITS_OF_SUMS)
        } else {
            Within::Bits
        };
        let mut compare = |what: &str, want: &[Tensor], got: &[Tensor]| {
            if let Some(how) = difference(want, got, within) {
                wrong.push(format!("seed {seed}, {dtype}, {what}: {how}\n{text}"));
            }
        };
        let values: Vec<Value> = inputs.iter().cloned().map(Value::from).collect();
        let interpreted = Interpreter::new(registry.clone())
            .run_graph(&parsed.graph, &values)
            .unwrap();
        let interpreted: Vec<Tensor> = interpreted.iter().filter_map(Value::as_tensor).collect();
        if interpreted.len() == want.len() {
            compare("specialised", &interpreted, &want);
        }
        let mut simplified = made.graph.clone();
        optimise(&mut simplified, false);
        compare("simplified", &want, &evaluate(&simplified, &inputs));
        // The same with the first inputs known, up to all of them.
        for known in 1..=inputs.len() {
            let mut graph = made.graph.clone();
            for (input, id) in inputs.iter().zip(made.graph.inputs().to_vec()).take(known) {
                graph.set_op(id, TensorOp::Constant(tensor_to_constant(input).unwrap()));
            }
            optimise(&mut graph, false);
            compare("folded", &want, &evaluate(&graph, &inputs));
            let constant = |&id: &TensorId| graph.as_constant(id).is_some();
            folded += u64::from(known == inputs.len() && graph.outputs().iter().all(constant));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(5)].join("\n")
    );
    assert!(
        folded * 10 > SEEDS * 9,
        "only {folded} graphs of constants are folded whole"
    );
}
