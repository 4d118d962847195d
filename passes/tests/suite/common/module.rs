//! Random modules as text: a root of class `M` with three submodules of two classes, one of them behind an interface, some of which are one object; tensors that
//! share storages, a list, a dictionary and a number in each; methods that read, write, assign, call, branch, loop, stop loops, fork, and store tensors in
//! containers. All tensors have two elements, so that any can be used anywhere.

use super::Dice;
use std::fmt::Write;

const SUBMODULES: [&str; 3] = ["s0", "s1", "s2"];
/// The submodule that the root accesses by its interface only.
const BEHIND_INTERFACE: usize = 2;
/// Number of tensors in the attributes of four objects.
const TENSORS: usize = 20;

/// The body of a method under construction.
struct Body<'d> {
    dice: &'d mut Dice,
    text: String,
    next: usize,
    /// Tensors in scope.
    tensors: Vec<String>,
    /// Lists of tensors in scope.
    lists: Vec<String>,
    /// The class of each submodule, for the root.
    submodules: &'d [usize],
    depth: usize,
    /// Bodies of forks, in order.
    forks: Vec<&'static str>,
}

/// Bodies of forks with two tensors.
const FORKED: [&str; 3] = [
    "  %s : Tensor = aten::add(%a, %b, %k)\n  return (%s)\n",
    "  %s : Tensor = aten::mul_(%a, %k)\n  return (%s)\n",
    "  %s : Tensor = aten::add_(%a, %b, %k)\n  %r : Tensor = aten::neg(%b)\n  return (%r)\n",
];

impl Body<'_> {
    fn line(&mut self, text: &str) {
        let indent = "  ".repeat(1 + 2 * self.depth);
        let _ = writeln!(self.text, "{indent}{text}");
    }

    fn fresh(&mut self) -> String {
        self.next += 1;
        format!("%v{}", self.next)
    }

    /// Adds a line that defines a value of type `ty`.
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

    /// Returns a list: the attribute, or one that was made here.
    fn list(&mut self) -> String {
        if self.lists.is_empty() || self.dice.chance(50) {
            return self.value("Tensor[]", "prim::GetAttr[name=\"l\"](%self)");
        }
        self.dice.pick(&self.lists).clone()
    }

    fn statements(&mut self, n: usize) {
        for _ in 0..n {
            self.statement();
        }
    }

    fn statement(&mut self) {
        let (a, b) = (self.any(), self.any());
        let slot = self.dice.below(2);
        match self.dice.below(23) {
            0 | 1 => self.tensor(&format!("prim::GetAttr[name=\"t{slot}\"](%self)")),
            2 => self.tensor(&format!("aten::add({a}, {b}, %one)")),
            3 => self.tensor(&format!("aten::sub({a}, {b}, %one)")),
            4 => self.tensor(&format!("aten::add_({a}, {b}, %one)")),
            5 => self.tensor(&format!("aten::neg_({a})")),
            6 => self.tensor(&format!("aten::t({a})")),
            7 => {
                let list = self.list();
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
            10 | 11 if !self.submodules.is_empty() => self.call(&a),
            12 if self.depth < 2 => self.branch(),
            13 | 14 if self.depth < 3 => self.repeat(&a),
            15 => self.write_slice(&a, &b),
            16 => self.change_list(&a),
            17 => {
                let list = self.value("Tensor[]", &format!("prim::ListConstruct({a}, {b})"));
                self.lists.push(list);
            }
            18 => {
                // A list in a tuple in a list: the tensors are still the same.
                let list = self.list();
                let pair = self.value("(Tensor[], Tensor)", &format!("prim::TupleConstruct({list}, {a})"));
                let (l, t) = (self.fresh(), self.fresh());
                self.line(&format!("{l} : Tensor[], {t} : Tensor = prim::TupleUnpack({pair})"));
                self.lists.push(l);
                self.tensors.push(t);
            }
            19 => {
                let dict = self.value("Dict(str, Tensor)", "prim::GetAttr[name=\"d\"](%self)");
                if self.dice.chance(15) {
                    self.line(&format!(" = aten::_set_item({dict}, %key, {a})"));
                }
                self.tensor(&format!("aten::__getitem__({dict}, %key)"));
            }
            20 if self.forks.len() < 2 && self.depth == 0 => {
                let which = *self.dice.pick(&FORKED);
                let fork = self.forks.len();
                self.forks.push(which);
                let future = self.value("Future(Tensor)", &format!("prim::fork_{fork}({a}, {b}, %two)"));
                self.tensor(&format!("aten::wait({future})"));
            }
            21 => self.tensor(&format!("aten::detach({a})")),
            _ => self.tensor(&format!("aten::mul({a}, {b})")),
        }
    }

    fn call(&mut self, a: &str) {
        let which = self.dice.below(SUBMODULES.len());
        let class = match which {
            BEHIND_INTERFACE => "I".to_owned(),
            _ => format!("S{}", self.submodules[which]),
        };
        let object = self.value(
            &format!("__torch__.{class}"),
            &format!("prim::GetAttr[name=\"{}\"](%self)", SUBMODULES[which]),
        );
        let method = *self.dice.pick(&["forward", "bump"]);
        self.tensor(&format!("prim::CallMethod[name=\"{method}\"]({object}, {a}, %c)"));
    }

    /// Writes to a part of a tensor, through one view or two.
    fn write_slice(&mut self, a: &str, b: &str) {
        let part = |of: &str| format!("aten::slice({of}, %zero, %zero, %one, %one)");
        let half = self.value("Tensor", &part(a));
        match self.dice.below(3) {
            0 => self.value("Tensor", &format!("aten::add_({half}, %two, %one)")),
            1 => {
                let other = self.value("Tensor", &part(b));
                let copied = self.value("bool", "prim::Constant[value=0]()");
                self.value("Tensor", &format!("aten::copy_({half}, {other}, {copied})"))
            }
            _ => {
                let first = self.value("Tensor", &format!("aten::select({half}, %zero, %zero)"));
                self.value("Tensor", &format!("aten::mul_({first}, %two)"))
            }
        };
    }

    fn change_list(&mut self, a: &str) {
        let list = self.list();
        match self.dice.below(4) {
            0 => {
                self.value("Tensor[]", &format!("aten::append({list}, {a})"));
            }
            1 => {
                self.value("Tensor[]", &format!("aten::_set_item({list}, %one, {a})"));
            }
            2 => {
                let part = self.value("Tensor[]", &format!("aten::slice({list}, %zero, %two, %one)"));
                self.lists.push(part);
            }
            _ => {
                let length = self.value("int", &format!("aten::len({list})"));
                self.tensor(&format!("aten::mul({a}, {length})"));
            }
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
            self.block(&format!("block{block}():"), None, 3);
        }
        self.tensors.push(out);
    }

    /// Writes a loop of two iterations, or of three that may be stopped before.
    fn repeat(&mut self, start: &str) {
        let (out, carried, i) = (self.fresh(), self.fresh(), self.fresh());
        let stops = self.dice.chance(40);
        let times = if stops { "%three" } else { "%two" };
        self.line(&format!("{out} : Tensor = prim::Loop({times}, %yes, {start})"));
        self.tensors.push(carried.clone());
        let goes_on = if stops { Some(i.as_str()) } else { Some("") };
        self.block(&format!("block0({i} : int, {carried} : Tensor):"), goes_on, 2);
        self.tensors.retain(|t| *t != carried);
        self.tensors.push(out);
    }

    /// Writes a block. That of a loop, if `counter` is given, passes on a condition: the constant true or, if the counter is a value, whether the second
    /// iteration is not complete.
    fn block(&mut self, head: &str, counter: Option<&str>, most: usize) {
        let known = (self.tensors.len(), self.lists.len());
        let indent = "  ".repeat(2 + 2 * self.depth);
        let _ = writeln!(self.text, "{indent}{head}");
        self.depth += 1;
        let n = 1 + self.dice.below(most);
        self.statements(n);
        let goes_on = match counter {
            None => String::new(),
            Some("") => "%yes, ".to_owned(),
            Some(i) => self.value("bool", &format!("aten::lt({i}, %one)")) + ", ",
        };
        let result = self.any();
        let indent = "  ".repeat(1 + 2 * self.depth);
        let _ = writeln!(self.text, "{indent}-> ({goes_on}{result})");
        self.depth -= 1;
        self.tensors.truncate(known.0);
        self.lists.truncate(known.1);
    }
}

const CONSTANTS: [&str; 6] = [
    "%zero : int = prim::Constant[value=0]()",
    "%one : int = prim::Constant[value=1]()",
    "%two : int = prim::Constant[value=2]()",
    "%three : int = prim::Constant[value=3]()",
    "%yes : bool = prim::Constant[value=1]()",
    "%key : str = prim::Constant[value=\"k\"]()",
];

fn method(dice: &mut Dice, class: &str, name: &str, submodules: &[usize]) -> String {
    let mut body = Body {
        dice,
        text: String::new(),
        next: 0,
        tensors: vec!["%x".to_owned()],
        lists: Vec::new(),
        submodules,
        depth: 0,
        forks: Vec::new(),
    };
    for constant in CONSTANTS {
        body.line(constant);
    }
    let n = 3 + body.dice.below(8);
    body.statements(n);
    // The last value depends most on the previous ones; a sum aliases nothing.
    let (last, other) = (body.tensors.last().cloned().unwrap_or_default(), body.any());
    body.tensor(&format!("aten::add({last}, {other}, %one)"));
    let result = if body.dice.chance(70) {
        body.tensors.last().cloned().unwrap_or_default()
    } else {
        last
    };
    let mut forks = String::new();
    for (i, text) in body.forks.iter().enumerate() {
        let _ = write!(
            forks,
            "with prim::fork_{i} = graph(%a : Tensor, %b : Tensor, %k : int):\n{text}"
        );
    }
    format!(
        "function __torch__.{class}.{name}(self : __torch__.{class}, x : Tensor, c : bool) -> (Tensor) as __torch__.{class}.{name}
graph(%self : __torch__.{class},
      %x : Tensor,
      %c : bool):
{}  return ({result})
{forks}
",
        body.text
    )
}

/// The attributes of all classes, and their values in an object.
const ATTRIBUTES: &str = "  attribute training : bool
  attribute t0 : Tensor
  attribute t1 : Tensor
  attribute l : Tensor[]
  attribute d : Dict(str, Tensor)
  attribute n : int
";

fn object(dice: &mut Dice, number: usize, training: bool) -> String {
    // Some values are shared with others: freezing refuses many modules with more sharing.
    let mut own = (5 * number)..;
    let [a, b, c, d, e] = [0; 5].map(|_| {
        let own = own.next().unwrap_or_default();
        if dice.chance(8) { dice.below(TENSORS) } else { own }
    });
    let training = if training { "True" } else { "False" };
    format!(
        "  training = {training}\n  t0 = tensor<{a}>\n  t1 = tensor<{b}>\n  l = [tensor<{c}>, tensor<{d}>]\n  d = {{\"k\": tensor<{e}>}}\n  n = {}\n",
        dice.below(3)
    )
}

/// Returns a module as text.
pub fn random_module(dice: &mut Dice) -> String {
    let classes: Vec<usize> = SUBMODULES.iter().map(|_| dice.below(2)).collect();
    let mut text = String::from(
        "frazil module 1\nroot object<0>\n\ntype __torch__.I = interface\n\nmodule_interface __torch__.I {\n",
    );
    for m in ["forward", "bump"] {
        let _ = writeln!(
            text,
            "  signature {m}(self : __torch__.I, x : Tensor, c : bool) -> (Tensor)"
        );
    }
    text += "}\n\n";
    for class in ["S0", "S1", "M"] {
        let _ = write!(text, "module __torch__.{class} {{\n{ATTRIBUTES}");
        let methods = if class == "M" {
            for (i, (name, class)) in SUBMODULES.iter().zip(&classes).enumerate() {
                let class = match i {
                    BEHIND_INTERFACE => "I".to_owned(),
                    _ => format!("S{class}"),
                };
                let _ = writeln!(text, "  attribute {name} : __torch__.{class}");
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
    let _ = write!(text, "object<0> = __torch__.M {{\n{}", object(dice, 0, false));
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
            let values = object(dice, i + 1, training);
            let _ = write!(text, "object<{target}> = __torch__.S{} {{\n{values}}}\n\n", classes[i]);
        }
    }
    for i in 0..TENSORS {
        let (storage, offset) = match dice.chance(8) {
            true => (dice.below(TENSORS), dice.below(3)),
            false => (i, 0),
        };
        let _ = writeln!(
            text,
            "tensor<{i}> = Float(2, strides=[1], requires_grad=0) storage<{storage}> offset {offset}"
        );
    }
    text += "\n";
    for i in 0..TENSORS {
        let bytes: String = (0..4)
            .flat_map(|j| ((i * 4 + j) as f32 - 5.0).to_le_bytes())
            .map(|b| format!("{b:02x}"))
            .collect();
        let _ = writeln!(text, "storage<{i}> = 16 bytes \"{bytes}\"");
    }
    text
}
