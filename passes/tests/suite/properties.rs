//! Passes keep results: on random graphs with control flow, writes, views, lists and tuples, every pass alone and random pipelines keep the
//! interpreter's results, and leave valid graphs. An incorrect pass is detected.

use frazil_ir::Graph;
use frazil_passes::pass::{AnyPass, GraphPass, PassContext, PassError, TorchScript};
use frazil_passes::{PassManager, PassRegistry};
use frazil_runtime::interp::Interpreter;
use frazil_runtime::{Registry, Tensor, Value};
use frazil_syntax::{parse_graph, print_graph};
use std::fmt::Write;
use std::sync::Arc;

use crate::common;

use common::{Dice, exact_passes, number, registry};

/// Writes a random graph. All tensors are 2 x 2 floats, so that any can be used anywhere.
struct Writer {
    random: Dice,
    text: String,
    next: usize,
    depth: usize,
    tensors: Vec<String>,
    ints: Vec<String>,
    bools: Vec<String>,
    lists: Vec<String>,
}

impl Writer {
    fn pick(&mut self, of: fn(&Writer) -> &Vec<String>) -> String {
        let n = of(self).len();
        let i = self.random.below(n);
        of(self)[i].clone()
    }

    fn tensor(&mut self) -> String {
        self.pick(|w| &w.tensors)
    }

    fn int(&mut self) -> String {
        self.pick(|w| &w.ints)
    }

    fn name(&mut self) -> String {
        self.next += 1;
        format!("%v{}", self.next)
    }

    fn line(&mut self, text: &str) {
        let indent = "  ".repeat(1 + 2 * self.depth);
        writeln!(self.text, "{indent}{text}").unwrap();
    }

    fn define(&mut self, ty: &str, op: &str) -> String {
        let name = self.name();
        self.line(&format!("{name} : {ty} = {op}"));
        name
    }

    fn statement(&mut self) {
        let kind = self.random.below(26);
        let (a, b, i, j) = (self.tensor(), self.tensor(), self.int(), self.int());
        match kind {
            0..=4 => {
                let op = ["neg", "abs", "relu", "t", "sigmoid"][self.random.below(5)];
                let v = self.define("Tensor", &format!("aten::{op}({a})"));
                self.tensors.push(v);
            }
            5..=7 => {
                let op = ["add", "sub"][self.random.below(2)];
                let v = self.define("Tensor", &format!("aten::{op}({a}, {b}, %one)"));
                self.tensors.push(v);
            }
            8 => {
                let other = ["%zero", "%one", "%half"][self.random.below(3)];
                let op = ["add", "sub"][self.random.below(2)];
                let v = self.define("Tensor", &format!("aten::{op}({a}, {other}, %one)"));
                self.tensors.push(v);
            }
            9 => {
                let op = ["mul", "mm", "minimum"][self.random.below(3)];
                let v = self.define("Tensor", &format!("aten::{op}({a}, {b})"));
                self.tensors.push(v);
            }
            10..=12 => {
                // A write, sometimes through a view of a row.
                let target = match self.random.below(3) {
                    0 => self.define("Tensor", &format!("aten::select({a}, %zero, %one)")),
                    _ => a.clone(),
                };
                let row = target != a;
                match self.random.below(3) {
                    0 => self.define("Tensor", &format!("aten::relu_({target})")),
                    1 if !row => self.define("Tensor", &format!("aten::add_({target}, {b}, %one)")),
                    _ => self.define("Tensor", &format!("aten::add_({target}, %half, %one)")),
                };
            }
            13 => {
                let op = ["add", "sub", "mul"][self.random.below(3)];
                let v = self.define("int", &format!("aten::{op}({i}, {j})"));
                self.ints.push(v);
            }
            14 => {
                let op = ["eq", "ne", "lt"][self.random.below(3)];
                let v = self.define("bool", &format!("aten::{op}({i}, {j})"));
                self.bools.push(v);
            }
            15 | 24 => {
                let v = self.define("Tensor[]", &format!("prim::ListConstruct({a}, {b})"));
                self.lists.push(v);
            }
            16 | 25 if !self.lists.is_empty() => {
                let l = self.pick(|w| &w.lists);
                self.define("Tensor[]", &format!("aten::append({l}, {a})"));
            }
            17 if !self.lists.is_empty() => {
                let l = self.pick(|w| &w.lists);
                let v = self.define("Tensor", &format!("aten::__getitem__({l}, %one)"));
                self.tensors.push(v);
            }
            18 if !self.lists.is_empty() => {
                let l = self.pick(|w| &w.lists);
                let n = self.define("int", &format!("aten::len({l})"));
                self.ints.push(n);
                let all = self.define("Tensor", &format!("aten::cat({l}, %zero)"));
                let v = self.define("Tensor", &format!("aten::narrow({all}, %zero, %zero, %two)"));
                self.tensors.push(v);
            }
            19 => {
                let t = self.define("(Tensor, int)", &format!("prim::TupleConstruct({a}, {i})"));
                let (x, n) = (self.name(), self.name());
                self.line(&format!("{x} : Tensor, {n} : int = prim::TupleUnpack({t})"));
                self.tensors.push(x);
                self.ints.push(n);
            }
            20..=21 if self.depth < 3 => self.branch(),
            22..=23 if self.depth < 3 => self.repeat(),
            _ => {
                let n = self.random.below(4);
                let v = self.define("int", &format!("prim::Constant[value={n}]()"));
                self.ints.push(v);
            }
        }
    }

    /// Writes statements of a block; their definitions are not visible behind it. Returns a tensor and an integer of it.
    fn block(&mut self, parameters: &[(&str, &str)], count: usize) -> (String, String) {
        let known = (self.tensors.len(), self.ints.len(), self.bools.len(), self.lists.len());
        for (name, ty) in parameters {
            match *ty {
                "Tensor" => self.tensors.push((*name).to_owned()),
                _ => self.ints.push((*name).to_owned()),
            }
        }
        self.depth += 1;
        for _ in 0..count {
            self.statement();
        }
        let results = (self.tensor(), self.int());
        self.depth -= 1;
        self.tensors.truncate(known.0);
        self.ints.truncate(known.1);
        self.bools.truncate(known.2);
        self.lists.truncate(known.3);
        results
    }

    fn branch(&mut self) {
        let condition = self.pick(|w| &w.bools);
        let (x, n) = (self.name(), self.name());
        self.line(&format!("{x} : Tensor, {n} : int = prim::If({condition})"));
        let indent = "  ".repeat(1 + 2 * self.depth);
        for i in 0..2 {
            writeln!(self.text, "{indent}  block{i}():").unwrap();
            let count = self.random.below(4);
            let (t, k) = self.block(&[], count);
            writeln!(self.text, "{indent}    -> ({t}, {k})").unwrap();
        }
        self.tensors.push(x);
        self.ints.push(n);
    }

    fn repeat(&mut self) {
        let (x, n, counter, carried, number) = (self.name(), self.name(), self.name(), self.name(), self.name());
        let (a, i) = (self.tensor(), self.int());
        let times = ["%zero", "%one", "%two", "%input"][self.random.below(4)];
        let next = if self.random.below(4) == 0 {
            self.pick(|w| &w.bools)
        } else {
            "%yes".to_owned()
        };
        self.line(&format!(
            "{x} : Tensor, {n} : int = prim::Loop({times}, %yes, {a}, {i})"
        ));
        let indent = "  ".repeat(1 + 2 * self.depth);
        writeln!(
            self.text,
            "{indent}  block0({counter} : int, {carried} : Tensor, {number} : int):"
        )
        .unwrap();
        let count = 1 + self.random.below(3);
        let parameters = [
            (counter.as_str(), "int"),
            (carried.as_str(), "Tensor"),
            (number.as_str(), "int"),
        ];
        let (t, k) = self.block(&parameters, count);
        writeln!(self.text, "{indent}    -> ({next}, {t}, {k})").unwrap();
        self.tensors.push(x);
        self.ints.push(n);
    }
}

fn random_text(seed: u64) -> String {
    let mut w = Writer {
        random: Dice::new(seed),
        text: "graph(%x : Tensor, %y : Tensor, %input : int, %c : bool):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %half : float = prim::Constant[value=0.5]()
  %yes : bool = prim::Constant[value=1]()
  %no : bool = prim::Constant[value=0]()
"
        .to_owned(),
        next: 0,
        depth: 0,
        tensors: ["%x", "%y"].map(str::to_owned).to_vec(),
        ints: ["%input", "%zero", "%one", "%two"].map(str::to_owned).to_vec(),
        bools: ["%c", "%yes", "%no"].map(str::to_owned).to_vec(),
        lists: Vec::new(),
    };
    let count = 6 + w.random.below(14);
    for _ in 0..count {
        w.statement();
    }
    let mut results = vec![w.tensor(), w.tensor(), w.int(), w.pick(|w| &w.bools)];
    results.extend(w.lists.last().cloned());
    let results = results.join(", ");
    writeln!(w.text, "  return ({results})").unwrap();
    w.text
}

/// Collects all numbers in a value, with marks for its structure.
fn flatten(value: &Value, out: &mut Vec<f64>) {
    match value {
        Value::Bool(b) => out.push(f64::from(u8::from(*b))),
        Value::Int(i) => out.push(*i as f64),
        Value::Tensor(_) => {
            let t = value.as_tensor().unwrap();
            out.extend(t.sizes().iter().map(|s| *s as f64));
            out.extend(t.to_f64_vec());
        }
        Value::List(l) => {
            let items = l.items();
            out.push(items.len() as f64);
            items.iter().for_each(|v| flatten(v, out));
        }
        other => panic!("no such value is returned: {other:?}"),
    }
}

/// Returns the results of the graph for two inputs, and the inputs afterwards; or the error.
fn results(registry: &Arc<Registry>, graph: &Graph) -> Result<Vec<f64>, String> {
    let mut all = Vec::new();
    for (n, c) in [(3, true), (0, false)] {
        let tensor = |k: f32| Tensor::from_f32(&[0.5 * k, -1.0, 0.25, k], &[2, 2]).unwrap();
        let inputs: [Value; 4] = [tensor(1.5).into(), tensor(-0.75).into(), Value::Int(n), Value::Bool(c)];
        let out = Interpreter::new(registry.clone())
            .run_graph(graph, &inputs)
            .map_err(|e| e.to_string())?;
        out.iter().chain(&inputs[..2]).for_each(|v| flatten(v, &mut all));
    }
    Ok(all)
}

fn agree(a: &[f64], b: &[f64]) -> bool {
    let close = |x: f64, y: f64| x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= 1e-4 * x.abs().max(1.0);
    a.len() == b.len() && a.iter().zip(b).all(|(x, y)| close(*x, *y))
}

/// Runs `pipeline` on the graph of `seed` and compares. Returns the difference, if any.
fn check(registry: &Arc<Registry>, seed: u64, manager: &PassManager, told: &str) -> Option<String> {
    let text = random_text(seed);
    let graph = parse_graph(registry.ctx(), &text)
        .unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"))
        .graph;
    let before = match results(registry, &graph) {
        Ok(before) => Some(before),
        // Some programs write to memory that an operand shares, which PyTorch refuses too. Passes must still process
        // them.
        Err(e) if e.contains("unsupported operation") => None,
        Err(e) => panic!("seed {seed}: {e}\n{text}"),
    };
    let mut after = graph.clone();
    if let Err(e) = manager.run_on_graph(&mut after, &**registry) {
        return Some(format!("seed {seed}, {told}: {e}\n{text}"));
    }
    let before = before?;
    match results(registry, &after) {
        Ok(now) if agree(&before, &now) => None,
        Ok(_) => Some(format!(
            "seed {seed}, {told}: another result\n{text}became\n{}",
            print_graph(&after)
        )),
        Err(e) => Some(format!(
            "seed {seed}, {told}: {e}\n{text}became\n{}",
            print_graph(&after)
        )),
    }
}

fn manager(pipeline: &str) -> PassManager {
    let mut manager = PassManager::from_pipeline(&PassRegistry::standard(), pipeline).unwrap();
    manager.verify_each(true);
    manager
}

/// Returns the number of graphs for each pass; `FRAZIL_SEEDS` sets another one.
fn seeds() -> u64 {
    number("FRAZIL_SEEDS", 40)
}

#[test]
fn every_pass_keeps_results() {
    let registry = registry();
    let mut wrong = Vec::new();
    for name in exact_passes() {
        let manager = manager(&name);
        let first = (0..seeds()).find_map(|seed| check(&registry, seed, &manager, &name));
        wrong.extend(first);
    }
    assert!(
        wrong.is_empty(),
        "{} passes are wrong:\n{}",
        wrong.len(),
        wrong.join("\n\n")
    );
}

#[test]
fn random_pipelines_keep_results() {
    let registry = registry();
    let names = exact_passes();
    for seed in 0..3 * seeds() {
        let mut random = Dice::new(seed);
        let pipeline: Vec<&str> = (0..6).map(|_| random.pick(&names).as_str()).collect();
        let pipeline = pipeline.join(",");
        let wrong = check(&registry, 1000 + seed, &manager(&pipeline), &pipeline);
        assert!(wrong.is_none(), "{}", wrong.unwrap_or_default());
    }
}

#[test]
fn any_number_of_rewrites_keeps_results() {
    let registry = registry();
    let pipeline =
        "constant-propagation{like-pytorch=false},peephole{like-pytorch=false},cse,remove-mutation,loop-unrolling,dce";
    for seed in 0..seeds() {
        let mut manager = manager(pipeline);
        manager.limit(Some(seed % 11));
        let wrong = check(&registry, 2000 + seed, &manager, &format!("{} rewrites", seed % 11));
        assert!(wrong.is_none(), "{}", wrong.unwrap_or_default());
    }
}

/// An incorrect pass that ignores a write.
struct ForgetsWrites;

impl GraphPass<TorchScript> for ForgetsWrites {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        for node in graph.all_nodes() {
            if graph.kind_name(node) == "aten::relu_" && cx.rewrite("writes forgotten") {
                let (Some(output), Some(operand)) = (graph.output(node), graph.operand(node, 0)) else {
                    continue;
                };
                graph.replace_all_uses_with(output, operand);
                graph.erase(node);
            }
        }
        Ok(())
    }
}

/// An incorrect pass that uses a value before its definition.
struct LosesOrder;

impl GraphPass<TorchScript> for LosesOrder {
    fn run(&self, graph: &mut Graph, _cx: &mut PassContext<'_>) -> Result<(), PassError> {
        let root = graph.root();
        if let (Some(first), Some(last)) = (graph.first(root), graph.last(root)) {
            graph.move_after(first, last);
        }
        Ok(())
    }
}

#[test]
fn passes_that_are_wrong_are_found() {
    let registry = registry();
    let found = |pass: fn() -> AnyPass| {
        (0..60).any(|seed| {
            let mut manager = PassManager::new().with("wrong", pass());
            manager.verify_each(true);
            check(&registry, seed, &manager, "wrong").is_some()
        })
    };
    assert!(found(|| AnyPass::graph(ForgetsWrites)));
    assert!(found(|| AnyPass::graph(LosesOrder)));
}

/// A limit on rewrites finds the incorrect pass, and the rewrite: with one rewrite less the graph has its original results.
#[test]
fn a_limit_finds_the_rewrite_that_is_wrong() {
    let registry = registry();
    let with = |limit: Option<u64>| {
        let graph = |text: &str| {
            PassRegistry::standard()
                .find(text)
                .map(|i| (i.build)(&i.default_options()))
                .unwrap()
        };
        let mut manager = PassManager::new()
            .with("cse", graph("cse"))
            .with("forgets-writes", AnyPass::graph(ForgetsWrites))
            .with("dce", graph("dce"));
        manager.limit(limit);
        manager
    };
    let wrong = |seed: u64, limit: Option<u64>| check(&registry, seed, &with(limit), "bisected").is_some();
    let mut found = 0;
    for seed in (0..60).filter(|seed| wrong(*seed, None)) {
        let first = (0..1000).find(|n| wrong(seed, Some(*n))).unwrap();
        let mut graph = parse_graph(registry.ctx(), &random_text(seed)).unwrap().graph;
        let report = with(Some(first)).run_on_graph(&mut graph, &*registry).unwrap();
        let (last, ..) = report.statistics.last().unwrap();
        assert_eq!(last, "forgets-writes", "seed {seed}, {first} rewrites");
        found += 1;
    }
    assert!(found > 0);
}

#[test]
fn passes_that_claim_it_are_idempotent() {
    let registry = registry();
    // Not dce: a write through possible aliases of dead values is only removed after those are.
    for name in ["cse", "normalize-ops", "erase-shape-information", "refine-tuple-types"] {
        let manager = manager(name);
        for seed in 0..seeds() {
            let mut graph = parse_graph(registry.ctx(), &random_text(seed)).unwrap().graph;
            manager.run_on_graph(&mut graph, &*registry).unwrap();
            let once = print_graph(&graph);
            manager.run_on_graph(&mut graph, &*registry).unwrap();
            let text = random_text(seed);
            assert_eq!(once, print_graph(&graph), "{name} on seed {seed}\n{text}");
        }
    }
}
