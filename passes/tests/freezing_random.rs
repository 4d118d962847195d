//! Random modules, frozen and not, call by call: attributes that share storages and objects, writes in place, assignments, lists, branches, loops,
//! calls, several methods in turn. `FRAZIL_RANDOM_MODULES` says how many modules (300 without it), `FRAZIL_RANDOM_SEED` where to start.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test helpers may fail loudly")]

use frazil_ir::{Builder, Constant, Context, Module, symbols};
use frazil_passes::{FreezeError, FreezeOptions, freeze_module, manager::PassError};
use frazil_runtime::interp::Interpreter;
use frazil_runtime::{Registry, Tensor, Value};
use frazil_syntax::{NoTensors, parse_module};
use std::fmt::Write;
use std::sync::Arc;

/// A generator of numbers that is the same everywhere (xorshift).
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % n
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

const SUBMODULES: [&str; 3] = ["s0", "s1", "s2"];

/// The body of a method as it grows.
struct Body<'d> {
    dice: &'d mut Dice,
    text: String,
    next: usize,
    /// Tensors that can be used here.
    tensors: Vec<String>,
    /// The class of each submodule, for the root.
    submodules: &'d [usize],
    depth: usize,
}

impl Body<'_> {
    fn line(&mut self, text: &str) {
        let indent = "  ".repeat(1 + 2 * self.depth);
        let _ = writeln!(self.text, "{indent}{text}");
    }

    fn fresh(&mut self) -> String {
        self.next += 1;
        format!("%v{}", self.next)
    }

    /// A line that gives a value of type `ty`.
    fn value(&mut self, ty: &str, of: &str) -> String {
        let v = self.fresh();
        self.line(&format!("{v} : {ty} = {of}"));
        v
    }

    fn tensor(&mut self, of: &str) {
        let v = self.value("Tensor", of);
        self.tensors.push(v);
    }

    fn any(&mut self) -> String {
        self.dice.pick(&self.tensors).clone()
    }

    fn statements(&mut self, n: usize) {
        for _ in 0..n {
            self.statement();
        }
    }

    fn statement(&mut self) {
        let (a, b) = (self.any(), self.any());
        let slot = self.dice.below(2);
        match self.dice.below(14) {
            0 | 1 => self.tensor(&format!("prim::GetAttr[name=\"t{slot}\"](%self)")),
            2 => self.tensor(&format!("aten::add({a}, {b}, %one)")),
            3 => self.tensor(&format!("aten::sub({a}, {b}, %one)")),
            4 => self.tensor(&format!("aten::add_({a}, {b}, %one)")),
            5 => self.tensor(&format!("aten::neg_({a})")),
            6 => self.tensor(&format!("aten::t({a})")),
            7 => {
                let list = self.value("Tensor[]", "prim::GetAttr[name=\"l\"](%self)");
                if self.dice.chance(15) {
                    self.value("Tensor[]", &format!("aten::append({list}, {a})"));
                }
                self.tensor(&format!("aten::__getitem__({list}, %zero)"));
            }
            8 if self.dice.chance(40) => self.line(&format!(" = prim::SetAttr[name=\"t{slot}\"](%self, {a})")),
            9 => {
                let n = self.value("int", "prim::GetAttr[name=\"n\"](%self)");
                if self.dice.chance(30) {
                    let more = self.value("int", &format!("aten::add({n}, %one)"));
                    self.line(&format!(" = prim::SetAttr[name=\"n\"](%self, {more})"));
                }
                self.tensor(&format!("aten::mul({a}, {n})"));
            }
            10 | 11 if !self.submodules.is_empty() => {
                let which = self.dice.below(SUBMODULES.len());
                let class = self.submodules[which];
                let object = self.value(
                    &format!("__torch__.S{class}"),
                    &format!("prim::GetAttr[name=\"{}\"](%self)", SUBMODULES[which]),
                );
                let method = *self.dice.pick(&["forward", "bump"]);
                self.tensor(&format!("prim::CallMethod[name=\"{method}\"]({object}, {a}, %c)"));
            }
            12 if self.depth < 2 => self.branch(),
            13 if self.depth < 2 => self.repeat(&a),
            _ => self.tensor(&format!("aten::mul({a}, {b})")),
        }
    }

    fn branch(&mut self) {
        let condition = if self.dice.chance(50) {
            "%c".to_owned()
        } else {
            self.value("bool", "prim::GetAttr[name=\"training\"](%self)")
        };
        let out = self.fresh();
        self.line(&format!("{out} : Tensor = prim::If({condition})"));
        for block in 0..2 {
            self.block(&format!("block{block}():"), "", 3);
        }
        self.tensors.push(out);
    }

    fn repeat(&mut self, start: &str) {
        let (out, carried, i) = (self.fresh(), self.fresh(), self.fresh());
        self.line(&format!("{out} : Tensor = prim::Loop(%two, %yes, {start})"));
        self.tensors.push(carried.clone());
        self.block(&format!("block0({i} : int, {carried} : Tensor):"), "%yes, ", 2);
        self.tensors.retain(|t| *t != carried);
        self.tensors.push(out);
    }

    fn block(&mut self, head: &str, before: &str, most: usize) {
        let known = self.tensors.len();
        let indent = "  ".repeat(2 + 2 * self.depth);
        let _ = writeln!(self.text, "{indent}{head}");
        self.depth += 1;
        let n = 1 + self.dice.below(most);
        self.statements(n);
        let result = self.any();
        let indent = "  ".repeat(1 + 2 * self.depth);
        let _ = writeln!(self.text, "{indent}-> ({before}{result})");
        self.depth -= 1;
        self.tensors.truncate(known);
    }
}

fn method(dice: &mut Dice, class: &str, name: &str, submodules: &[usize]) -> String {
    let mut body = Body {
        dice,
        text: String::new(),
        next: 0,
        tensors: vec!["%x".to_owned()],
        submodules,
        depth: 0,
    };
    for constant in [
        "%zero : int = prim::Constant[value=0]()",
        "%one : int = prim::Constant[value=1]()",
    ] {
        body.line(constant);
    }
    body.line("%two : int = prim::Constant[value=2]()");
    body.line("%yes : bool = prim::Constant[value=1]()");
    let n = 3 + body.dice.below(8);
    body.statements(n);
    // What was made last says most about what happened before; a sum is no alias of anything.
    let (last, other) = (body.tensors.last().unwrap().clone(), body.any());
    body.tensor(&format!("aten::add({last}, {other}, %one)"));
    let result = if body.dice.chance(70) {
        body.tensors.last().unwrap().clone()
    } else {
        last
    };
    format!(
        "function __torch__.{class}.{name}(self : __torch__.{class}, x : Tensor, c : bool) -> (Tensor) as __torch__.{class}.{name}
graph(%self : __torch__.{class},
      %x : Tensor,
      %c : bool):
{}  return ({result})

",
        body.text
    )
}

/// A module as text: a root of class `M` with three submodules of two classes, some of which are one object, and tensors on few storages.
fn random_module(dice: &mut Dice) -> String {
    let classes: Vec<usize> = SUBMODULES.iter().map(|_| dice.below(2)).collect();
    let mut text = String::from("frazil module 1\nroot object<0>\n\n");
    let attributes = "  attribute training : bool\n  attribute t0 : Tensor\n  attribute t1 : Tensor\n  attribute l : Tensor[]\n  attribute n : int\n";
    for class in ["S0", "S1", "M"] {
        let _ = write!(text, "module __torch__.{class} {{\n{attributes}");
        let methods = if class == "M" {
            for (name, class) in SUBMODULES.iter().zip(&classes) {
                let _ = writeln!(text, "  attribute {name} : __torch__.S{class}");
            }
            ["forward", "other"]
        } else {
            ["forward", "bump"]
        };
        for m in methods {
            let _ = writeln!(text, "  method {m} = __torch__.{class}.{m}");
        }
        text += "}\n\n";
    }
    for class in ["S0", "S1"] {
        for m in ["forward", "bump"] {
            text += &method(dice, class, m, &[]);
        }
    }
    for m in ["forward", "other"] {
        text += &method(dice, "M", m, &classes);
    }
    const TENSORS: usize = 8;
    let object = |dice: &mut Dice, training: bool| {
        let [a, b, c, d] = [0; 4].map(|_| dice.below(TENSORS));
        let training = if training { "True" } else { "False" };
        format!(
            "  training = {training}\n  t0 = tensor<{a}>\n  t1 = tensor<{b}>\n  l = [tensor<{c}>, tensor<{d}>]\n  n = {}\n",
            dice.below(3)
        )
    };
    let _ = write!(text, "object<0> = __torch__.M {{\n{}", object(dice, false));
    // Submodules of one class may be one object.
    let mut targets: Vec<usize> = Vec::new();
    for (i, class) in classes.iter().enumerate() {
        let same = (0..i).find(|j| classes[*j] == *class && dice.chance(40));
        targets.push(same.map_or(i + 1, |j| targets[j]));
    }
    for (name, target) in SUBMODULES.iter().zip(&targets) {
        let _ = writeln!(text, "  {name} = object<{target}>");
    }
    text += "}\n\n";
    for (i, target) in targets.iter().enumerate() {
        if *target == i + 1 {
            let training = dice.chance(30);
            let _ = write!(
                text,
                "object<{target}> = __torch__.S{} {{\n{}}}\n\n",
                classes[i],
                object(dice, training)
            );
        }
    }
    for i in 0..TENSORS {
        let (storage, offset) = (dice.below(4), dice.below(3));
        let _ = writeln!(
            text,
            "tensor<{i}> = Float(2, strides=[1], requires_grad=0) storage<{storage}> offset {offset}"
        );
    }
    text += "\n";
    for i in 0..4 {
        let bytes: String = (0..4)
            .flat_map(|j| ((i * 4 + j) as f32 - 5.0).to_le_bytes())
            .map(|b| format!("{b:02x}"))
            .collect();
        let _ = writeln!(text, "storage<{i}> = 16 bytes \"{bytes}\"");
    }
    text
}

fn registry() -> Arc<Registry> {
    let mut registry = Registry::new(Arc::new(Context::new()));
    frazil_prim::register(&mut registry);
    frazil_aten::register(&mut registry);
    Arc::new(registry)
}

/// What five calls in turn on one instance give: bits of tensors, or that the call failed.
fn results(registry: &Arc<Registry>, module: &Module) -> Vec<Option<Vec<u64>>> {
    let interpreter = Interpreter::with_module(registry.clone(), Arc::new(module.clone())).unwrap();
    let calls = [
        ("forward", true),
        ("other", false),
        ("forward", false),
        ("other", true),
        ("forward", true),
    ];
    calls
        .iter()
        .enumerate()
        .map(|(i, (name, c))| {
            let x = Tensor::from_f32(&[i as f32 + 1.0, -2.0], &[2]).unwrap();
            let result = interpreter.call(name, &[x.into(), Value::Bool(*c)]).ok()?;
            Some(result.as_tensor()?.to_f64_vec().into_iter().map(f64::to_bits).collect())
        })
        .collect()
}

/// Freezes a module and breaks or keeps the result with `after`. `None` when PyTorch would refuse to freeze it; else the results of both.
type Results = Vec<Option<Vec<u64>>>;

fn both(seed: u64, after: impl Fn(Module) -> Module) -> (String, Option<(Results, Results)>) {
    let registry = registry();
    let text = random_module(&mut Dice::new(seed));
    let module =
        parse_module(registry.ctx(), &text, &NoTensors).unwrap_or_else(|e| panic!("{text}\n{:?}", e.diagnostics));
    let mut options = FreezeOptions::default();
    options.freeze.preserve = vec!["other".to_owned()];
    let frozen = match freeze_module(&module, &options, &*registry) {
        Ok(frozen) => after(frozen),
        Err(PassError::Freeze(FreezeError::Overlap { .. })) => return (text, None),
        Err(e) => panic!("seed {seed}: {e}\n{text}"),
    };
    let results = (results(&registry, &module), results(&registry, &frozen));
    (text, Some(results))
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable)
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or(default)
}

#[test]
fn random_modules_behave_the_same_frozen() {
    let (first, count) = (number("FRAZIL_RANDOM_SEED", 1), number("FRAZIL_RANDOM_MODULES", 300));
    let (mut compared, mut refused, mut ran) = (0, 0, 0);
    for seed in first..first + count {
        let (text, results) = both(seed, |m| m);
        let Some((expected, got)) = results else {
            refused += 1;
            continue;
        };
        assert_eq!(expected, got, "seed {seed}\n{text}");
        compared += 1;
        ran += expected.iter().filter(|r| r.is_some()).count();
    }
    println!("{compared} modules compared in {ran} calls, {refused} refused for overlaps");
    assert!(ran as u64 > count, "most calls give something: {ran} did");
}

/// A freezing that is wrong: it folds what is left although somebody writes to it.
fn fold_everything(mut module: Module) -> Module {
    let root = module.root;
    let names: Vec<_> = module.class_of(root).unwrap().methods.keys().copied().collect();
    for name in names {
        let id = module.method(name).unwrap();
        let mut graph = module.unit.function(id).graph.clone();
        for node in graph.all_nodes() {
            let of_root = graph.operand(node, 0) == graph.inputs().first().copied();
            let attribute = graph.attribute_symbol(node, symbols::ATTR_NAME);
            let (symbols::PRIM_GET_ATTR, true, Some(attribute)) = (graph.kind(node), of_root, attribute) else {
                continue;
            };
            if let Some(value @ (Constant::Tensor(_) | Constant::Int(_))) = module.attribute(root, attribute) {
                let new = Builder::before(&mut graph, node).constant(value.clone());
                let old = graph.output(node).unwrap();
                graph.replace_all_uses_with(old, new);
                graph.erase(node);
            }
        }
        module.unit.function_mut(id).graph = graph;
    }
    module
}

#[test]
fn a_freezing_that_folds_too_much_is_caught() {
    let caught = (1..100)
        .filter(|seed| matches!(both(*seed, fold_everything).1, Some((a, b)) if a != b))
        .count();
    assert!(caught > 5, "{caught} of 99 modules tell");
}
