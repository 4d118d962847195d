//! Writing a program from a seed, with the bounds on its elements and on their rounding errors.

use super::{Argument, Program, Returned, Statement};
use frazil::ir::DType;
use frazil::runtime::layout::broadcast;
use frazil_recorded::random::Random;

const SIZES: &[&[i64]] = &[
    &[],
    &[3],
    &[2, 3],
    &[3, 1],
    &[1, 3],
    &[0, 3],
    &[2, 1, 3],
    &[4, 2, 3],
    &[17],
    &[5, 16],
    &[3, 3],
];
const DTYPES: &[DType] = &[
    DType::Float,
    DType::Float,
    DType::Float,
    DType::Float,
    DType::Double,
    DType::Half,
    DType::BFloat16,
    DType::Long,
    DType::Long,
    DType::Int,
    DType::Byte,
    DType::Bool,
];

/// The engines may round every operation otherwise, by so many units in the last place.
const UNITS: f64 = 8.0;
/// Elements stay below this, so that errors do.
const LARGEST: f64 = 1e4;

/// What is known of the elements of a memory: a bound on their magnitude, and on how far the engines are apart.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    magnitude: f64,
    /// Zero where both compute exactly: only then may a program ask whether elements are larger than others.
    error: f64,
}

/// A tensor variable.
#[derive(Clone, Debug)]
struct Variable {
    name: String,
    dtype: DType,
    sizes: Vec<i64>,
    /// Variables of one memory share its bounds.
    memory: usize,
    /// Elements share memory: no writes.
    overlaps: bool,
}

struct Writer {
    random: Random,
    next: usize,
    depth: usize,
    variables: Vec<Variable>,
    memories: Vec<Bounds>,
    integers: Vec<String>,
    /// The statements of the open blocks.
    blocks: Vec<Vec<Statement>>,
}

pub(super) fn program(seed: u64) -> Program {
    let mut random = Random::new(seed);
    let arguments: Vec<Argument> = (0..2 + random.below(3))
        .map(|_| Argument {
            dtype: *random.pick(DTYPES),
            sizes: random.pick(SIZES).to_vec(),
        })
        .collect();
    let mut w = Writer {
        random,
        next: 0,
        depth: 0,
        variables: Vec::new(),
        memories: Vec::new(),
        integers: vec!["n".to_owned()],
        blocks: vec![Vec::new()],
    };
    for (i, a) in arguments.iter().enumerate() {
        let exact = Bounds {
            magnitude: 7.0,
            error: 0.0,
        };
        w.variable(format!("x{i}"), a.dtype, a.sizes.clone(), exact);
    }
    for _ in 0..6 + w.below(12) {
        w.statement();
    }
    let returned = |v: &Variable| Returned {
        name: v.name.clone(),
        tolerance: w.memories[v.memory].error * 4.0,
    };
    Program {
        seed,
        written: w.variables[..arguments.len()]
            .iter()
            .map(|v| returned(v).tolerance)
            .collect(),
        tensors: w.variables.iter().map(returned).collect(),
        integers: w.integers.clone(),
        body: w.blocks.pop().unwrap_or_default(),
        arguments,
    }
}

fn unit(dtype: DType) -> f64 {
    match dtype {
        DType::Half => 2f64.powi(-10),
        DType::BFloat16 => 2f64.powi(-7),
        DType::Float => 2f64.powi(-23),
        DType::Double => 2f64.powi(-52),
        _ => 0.0,
    }
}

impl Writer {
    fn below(&mut self, n: usize) -> usize {
        self.random.below(n.max(1) as u64) as usize
    }

    fn line(&mut self, text: String) {
        if let Some(block) = self.blocks.last_mut() {
            block.push(Statement::Line(text));
        }
    }

    fn name(&mut self) -> String {
        self.next += 1;
        format!("v{}", self.next)
    }

    fn variable(&mut self, name: String, dtype: DType, sizes: Vec<i64>, bounds: Bounds) {
        self.memories.push(bounds);
        self.variables.push(Variable {
            name,
            dtype,
            sizes,
            memory: self.memories.len() - 1,
            overlaps: false,
        });
    }

    /// A new tensor with elements of its own, which are rounded.
    fn define(&mut self, expression: &str, dtype: DType, sizes: Vec<i64>, bounds: Bounds) {
        let error = bounds.error + bounds.magnitude * unit(dtype) * UNITS;
        self.exact(expression, dtype, sizes, Bounds { error, ..bounds });
    }

    /// A new tensor whose elements both engines compute exactly where those of the operands are exact. Left out where bounds become too large.
    fn exact(&mut self, expression: &str, dtype: DType, sizes: Vec<i64>, mut bounds: Bounds) {
        match dtype {
            // Integers of few bits wrap around.
            DType::Byte => bounds.magnitude = 255.0,
            DType::Bool => bounds.magnitude = 1.0,
            _ => {}
        }
        let large = sizes.iter().product::<i64>() > 2000 || sizes.len() > 5 || bounds.magnitude > LARGEST;
        if large || bounds.error > 0.1 * bounds.magnitude.max(1.0) {
            return;
        }
        let name = self.name();
        self.line(format!("{name} = {expression}"));
        self.variable(name, dtype, sizes, bounds);
    }

    fn view(&mut self, of: &Variable, expression: &str, sizes: Vec<i64>, overlaps: bool) {
        let name = self.name();
        self.line(format!("{name} = {expression}"));
        self.variables.push(Variable {
            name,
            sizes,
            overlaps: of.overlaps || overlaps,
            ..of.clone()
        });
    }

    fn bounds(&self, v: &Variable) -> Bounds {
        self.memories[v.memory]
    }

    fn tensor(&mut self) -> Variable {
        // Later ones more often.
        let n = self.variables.len();
        let at = self.below(n).max(self.below(n));
        self.variables[at].clone()
    }

    fn tensor_that(&mut self, fits: impl Fn(&Writer, &Variable) -> bool) -> Option<Variable> {
        let all: Vec<&Variable> = self.variables.iter().filter(|v| fits(self, v)).collect();
        let n = all.len();
        let at = self.below(n);
        self.variables.iter().filter(|v| fits(self, v)).nth(at).cloned()
    }

    fn integer(&mut self) -> String {
        let at = self.below(self.integers.len());
        self.integers[at].clone()
    }

    fn statement(&mut self) {
        match self.below(27) {
            0..=3 => self.unary(),
            4..=7 => self.binary(),
            8 => self.with_number(),
            9..=10 => self.of_integers(),
            11 => self.comparison(),
            12 => self.selection(),
            13..=14 => self.reduction(),
            15..=18 => self.viewed(),
            19..=21 => self.write(),
            22 => self.joined(),
            23 => self.product(),
            24 => self.number(),
            25 if self.depth < 2 => self.branch(),
            26 if self.depth < 2 => self.repeat(),
            _ => self.conversion(),
        }
    }

    fn unary(&mut self) {
        let x = self.tensor();
        let Bounds { magnitude: m, error: e } = self.bounds(&x);
        let name = &x.name;
        if !x.dtype.is_floating_point() {
            if x.dtype != DType::Bool {
                let op = *self.random.pick(&["neg", "abs", "relu", "bitwise_not"]);
                self.exact(
                    &format!("torch.{op}({name})"),
                    x.dtype,
                    x.sizes,
                    Bounds {
                        magnitude: m + 1.0,
                        error: e,
                    },
                );
            }
            return;
        }
        let of = |magnitude, error| Bounds { magnitude, error };
        let (text, bounds) = match self.below(11) {
            0 => ("torch.tanh(?)", of(1.0, e)),
            1 => ("torch.sigmoid(?)", of(1.0, e)),
            2 => ("torch.sin(?)", of(1.0, e)),
            3 => ("torch.erf(?)", of(1.0, 2.0 * e)),
            4 => ("torch.exp(torch.clamp(?, -3, 3))", of(21.0, 21.0 * e)),
            5 => ("torch.log1p(torch.abs(?))", of(m, e)),
            6 => ("torch.sqrt(torch.abs(?) + 0.25)", of(m + 1.0, e)),
            7 => ("torch.nn.functional.gelu(?)", of(m, 2.0 * e)),
            8 => return self.exact(&format!("torch.neg({name})"), x.dtype, x.sizes, of(m, e)),
            9 => return self.exact(&format!("torch.abs({name})"), x.dtype, x.sizes, of(m, e)),
            _ => return self.exact(&format!("torch.relu({name})"), x.dtype, x.sizes, of(m, e)),
        };
        self.define(&text.replace('?', name), x.dtype, x.sizes, bounds);
    }

    /// Two tensors that broadcast, and the dtype of what they make.
    fn pair(&mut self) -> Option<(Variable, Variable, DType, Vec<i64>)> {
        let x = self.tensor();
        let y = self.tensor_that(|_, y| {
            let alike = y.sizes.is_empty() == x.sizes.is_empty() || y.dtype == x.dtype;
            alike && broadcast(&x.sizes, &y.sizes).is_some()
        })?;
        let dtype = frazil::runtime::promote::promote_types(x.dtype, y.dtype);
        let sizes = broadcast(&x.sizes, &y.sizes)?.to_vec();
        Some((x, y, dtype, sizes))
    }

    fn binary(&mut self) {
        let Some((x, y, dtype, sizes)) = self.pair() else {
            return;
        };
        let (a, b) = (self.bounds(&x), self.bounds(&y));
        let sum = Bounds {
            magnitude: a.magnitude + b.magnitude,
            error: a.error + b.error,
        };
        let product = Bounds {
            magnitude: a.magnitude * b.magnitude,
            error: a.magnitude * b.error + b.magnitude * a.error,
        };
        let (x, y) = (&x.name, &y.name);
        let most = Bounds {
            magnitude: a.magnitude.max(b.magnitude),
            error: a.error.max(b.error),
        };
        let choice = self.below(6);
        if !dtype.is_floating_point() {
            let (text, bounds) = match choice {
                0 => (format!("{x} + {y}"), sum),
                1 => (format!("{x} * {y}"), product),
                2 => (format!("torch.maximum({x}, {y})"), most),
                3 if dtype != DType::Bool => (format!("{x} - {y}"), sum),
                _ => (
                    format!("torch.bitwise_xor({x}, {y})"),
                    Bounds {
                        magnitude: 2.0 * sum.magnitude,
                        ..sum
                    },
                ),
            };
            return self.exact(&text, dtype, sizes, bounds);
        }
        // An operand of fewer bits is converted first.
        match choice {
            0 => self.define(&format!("{x} + {y}"), dtype, sizes, sum),
            1 => self.define(&format!("{x} - {y}"), dtype, sizes, sum),
            2 => self.define(&format!("{x} * {y}"), dtype, sizes, product),
            3 => {
                let error = a.error + a.magnitude * b.error;
                let bounds = Bounds { error, ..a };
                self.define(&format!("{x} / (torch.abs({y}) + 1)"), dtype, sizes, bounds);
            }
            4 => self.exact(&format!("torch.maximum({x}, {y})"), dtype, sizes, most),
            _ => self.exact(&format!("torch.minimum({x}, {y})"), dtype, sizes, most),
        }
    }

    /// A tensor with a number that only the run knows.
    fn with_number(&mut self) {
        let x = self.tensor();
        let Bounds { magnitude, error } = self.bounds(&x);
        let name = &x.name;
        if !x.dtype.is_floating_point() {
            return;
        }
        let (text, bounds) = match self.below(4) {
            0 => (format!("{name} * s"), Bounds { magnitude, error }),
            1 => (
                format!("{name} + s"),
                Bounds {
                    magnitude: magnitude + 1.0,
                    error,
                },
            ),
            2 => (
                format!("{name} * 0.3 - n"),
                Bounds {
                    magnitude: magnitude + 3.0,
                    error,
                },
            ),
            _ => (format!("{name} / n"), Bounds { magnitude, error }),
        };
        self.define(&text, x.dtype, x.sizes, bounds);
    }

    fn of_integers(&mut self) {
        let Some(x) = self.tensor_that(|_, x| !x.dtype.is_floating_point() && x.dtype != DType::Bool) else {
            return;
        };
        let (b, name) = (self.bounds(&x), &x.name);
        let text = match self.below(6) {
            0 => format!("torch.remainder({name}, 5)"),
            1 => format!("torch.div({name}, 3, rounding_mode='floor')"),
            2 => format!("torch.div({name}, 2, rounding_mode='trunc')"),
            3 => format!("{name} & 6"),
            4 => format!("torch.fmod({name}, 4)"),
            _ => format!("{name} + n"),
        };
        self.exact(
            &text,
            x.dtype,
            x.sizes,
            Bounds {
                magnitude: b.magnitude + 6.0,
                ..b
            },
        );
    }

    fn comparison(&mut self) {
        let Some(x) = self.tensor_that(|w, x| w.bounds(x).error == 0.0) else {
            return;
        };
        let op = *self.random.pick(&[">", "<=", "==", "!="]);
        let other = *self.random.pick(&["0", "1", "n", "0.5"]);
        let truth = Bounds {
            magnitude: 1.0,
            error: 0.0,
        };
        self.exact(&format!("{} {op} {other}", x.name), DType::Bool, x.sizes, truth);
    }

    fn selection(&mut self) {
        let Some(mask) = self.tensor_that(|_, v| v.dtype == DType::Bool) else {
            return;
        };
        let x = self.tensor();
        let Some(sizes) = broadcast(&mask.sizes, &x.sizes) else {
            return;
        };
        let (b, m, x_name) = (self.bounds(&x), &mask.name, &x.name);
        let text = match (self.below(2), x.dtype) {
            (_, DType::Bool) => return,
            (0, _) => format!("torch.where({m}, {x_name}, -{x_name})"),
            _ => format!("torch.masked_fill({x_name}, {m}, 2)"),
        };
        let most = Bounds {
            magnitude: b.magnitude + 2.0,
            ..b
        };
        self.exact(&text, x.dtype, sizes.to_vec(), most);
    }

    fn reduction(&mut self) {
        let x = self.tensor();
        if x.sizes.is_empty() {
            return;
        }
        let d = self.below(x.sizes.len());
        let (n, keep, name) = (x.sizes[d], self.random.chance(50), &x.name);
        let mut sizes = x.sizes.clone();
        match keep {
            true => sizes[d] = 1,
            false => _ = sizes.remove(d),
        }
        let b = self.bounds(&x);
        let python = if keep { "True" } else { "False" };
        let count = n.max(1) as f64;
        let floats = x.dtype.is_floating_point();
        let truth = Bounds {
            magnitude: 1.0,
            error: 0.0,
        };
        match self.below(6) {
            0 if floats => {
                let total = Bounds {
                    magnitude: b.magnitude * count,
                    error: b.error * count,
                };
                self.define(&format!("torch.sum({name}, {d}, {python})"), x.dtype, sizes, total);
            }
            0 => {
                let total = Bounds {
                    magnitude: b.magnitude * count,
                    ..b
                };
                self.exact(&format!("torch.sum({name}, {d}, {python})"), DType::Long, sizes, total);
            }
            1 if floats && n > 0 => self.define(&format!("torch.mean({name}, {d}, {python})"), x.dtype, sizes, b),
            2 if n > 0 && x.dtype != DType::Bool => {
                self.exact(&format!("torch.amax({name}, {d}, {python})"), x.dtype, sizes, b);
            }
            3 if floats => {
                let bounds = Bounds {
                    magnitude: 1.0,
                    error: 2.0 * b.error,
                };
                self.define(&format!("torch.softmax({name}, {d})"), x.dtype, x.sizes.clone(), bounds);
            }
            4 if b.error == 0.0 && n > 0 && x.dtype != DType::Bool => {
                let places = Bounds {
                    magnitude: count,
                    error: 0.0,
                };
                self.exact(
                    &format!("torch.argmax({name}, {d}, {python})"),
                    DType::Long,
                    sizes,
                    places,
                );
            }
            5 if b.error == 0.0 => self.exact(
                &format!("torch.any({name} != 0, {d}, {python})"),
                DType::Bool,
                sizes,
                truth,
            ),
            _ => {}
        }
    }

    fn viewed(&mut self) {
        let x = self.tensor();
        let (rank, name, mut sizes) = (x.sizes.len(), x.name.clone(), x.sizes.clone());
        if rank == 0 {
            sizes.push(1);
            return self.view(&x, &format!("{name}.unsqueeze(0)"), sizes, false);
        }
        let d = self.below(rank);
        let n = sizes[d];
        match self.below(9) {
            0 if rank > 1 => {
                let e = self.below(rank);
                sizes.swap(d, e);
                self.view(&x, &format!("{name}.transpose({d}, {e})"), sizes, false);
            }
            1 => {
                sizes.insert(d, 1);
                self.view(&x, &format!("{name}.unsqueeze({d})"), sizes, false);
            }
            2 if n > 0 => {
                sizes.remove(d);
                let at = self.below(n as usize) as i64;
                let at = if self.random.chance(30) { at - n } else { at };
                self.view(&x, &format!("{name}.select({d}, {at})"), sizes, false);
            }
            3 if n > 1 => {
                sizes[d] = n - 1;
                self.view(&x, &format!("{name}.narrow({d}, 1, {})", n - 1), sizes, false);
            }
            4 if n > 1 => {
                sizes[d] = (n + 1) / 2;
                let before = ":, ".repeat(d);
                self.view(&x, &format!("{name}[{before}::2]"), sizes, false);
            }
            5 => {
                sizes.insert(0, 2);
                let shown: Vec<String> = sizes.iter().map(ToString::to_string).collect();
                self.view(&x, &format!("{name}.expand({})", shown.join(", ")), sizes, true);
            }
            6 if n == 1 => {
                sizes.remove(d);
                self.view(&x, &format!("{name}.squeeze({d})"), sizes, false);
            }
            7 => {
                let (dtype, b) = (x.dtype, self.bounds(&x));
                self.exact(&format!("torch.flip({name}, [{d}])"), dtype, sizes, b);
            }
            _ => {
                let (dtype, b) = (x.dtype, self.bounds(&x));
                let numel = sizes.iter().product();
                self.exact(&format!("{name}.reshape([{numel}]).clone()"), dtype, vec![numel], b);
            }
        }
    }

    /// A write in place, seen through all views of the memory.
    fn write(&mut self) {
        let Some(target) = self.tensor_that(|_, v| !v.overlaps && v.dtype.is_floating_point()) else {
            return;
        };
        let source = self.tensor_that(|_, v| {
            v.memory != target.memory
                && broadcast(&v.sizes, &target.sizes).is_some_and(|s| s.as_slice() == target.sizes.as_slice())
        });
        let old = self.bounds(&target);
        let (name, rounds) = (&target.name, unit(target.dtype) * UNITS);
        let (text, new) = match (self.below(6), source) {
            (0, Some(s)) => {
                let b = self.bounds(&s);
                let magnitude = old.magnitude + b.magnitude;
                (
                    format!("{name}.add_({})", s.name),
                    Bounds {
                        magnitude,
                        error: old.error + b.error + magnitude * rounds,
                    },
                )
            }
            (1, Some(s)) => {
                let b = self.bounds(&s);
                (
                    format!("{name}.copy_({})", s.name),
                    Bounds {
                        magnitude: b.magnitude,
                        error: b.error + b.magnitude * rounds,
                    },
                )
            }
            (2, _) => (
                format!("{name}.mul_(0.5)"),
                Bounds {
                    error: old.error + old.magnitude * rounds,
                    ..old
                },
            ),
            (3, _) => (format!("{name}.relu_()"), old),
            (4, _) => (
                format!("{name}.fill_(0.75)"),
                Bounds {
                    magnitude: 1.0,
                    error: 0.0,
                },
            ),
            (_, _) => (format!("{name}.clamp_(-1, 1)"), old),
        };
        // In a loop it happens more than once.
        let times = if self.depth > 0 { 8.0 } else { 1.0 };
        let joined = Bounds {
            magnitude: old.magnitude.max(new.magnitude * times),
            error: old.error.max(new.error * times),
        };
        if joined.magnitude > LARGEST || joined.error > 0.1 * joined.magnitude {
            return;
        }
        // The next round of a loop would read what this one wrote, as if it were exact.
        if self.depth > 0 && old.error == 0.0 && joined.error > 0.0 {
            return;
        }
        self.memories[target.memory] = joined;
        self.line(text);
    }

    fn joined(&mut self) {
        let x = self.tensor();
        let Some(y) = self.tensor_that(|_, y| y.dtype == x.dtype && y.sizes == x.sizes) else {
            return;
        };
        let (a, b) = (self.bounds(&x), self.bounds(&y));
        let most = Bounds {
            magnitude: a.magnitude.max(b.magnitude),
            error: a.error.max(b.error),
        };
        let mut sizes = x.sizes.clone();
        let (x_name, y_name) = (&x.name, &y.name);
        if sizes.is_empty() || self.random.chance(40) {
            sizes.insert(0, 2);
            return self.exact(&format!("torch.stack([{x_name}, {y_name}])"), x.dtype, sizes, most);
        }
        let d = self.below(sizes.len());
        sizes[d] *= 2;
        self.exact(&format!("torch.cat([{x_name}, {y_name}], {d})"), x.dtype, sizes, most);
    }

    fn product(&mut self) {
        let Some(x) = self.tensor_that(|_, v| v.sizes.len() == 2 && v.dtype.is_floating_point()) else {
            return;
        };
        let fits = |v: &Variable| v.sizes.len() == 2 && v.dtype == x.dtype && v.sizes[1] == x.sizes[1];
        let Some(y) = self.tensor_that(|_, v| fits(v)) else {
            return;
        };
        let (a, b, k) = (self.bounds(&x), self.bounds(&y), x.sizes[1].max(1) as f64);
        let bounds = Bounds {
            magnitude: a.magnitude * b.magnitude * k,
            error: (a.magnitude * b.error + b.magnitude * a.error) * k,
        };
        let text = format!("torch.mm({}, {}.t())", x.name, y.name);
        self.define(&text, x.dtype, vec![x.sizes[0], y.sizes[0]], bounds);
    }

    /// An integer that is read from a tensor, or computed.
    fn number(&mut self) {
        let name = format!("i{}", self.next);
        self.next += 1;
        let exact = |w: &Writer, v: &Variable| {
            w.bounds(v).error == 0.0 && !v.dtype.is_floating_point() && v.sizes.iter().all(|&n| n > 0)
        };
        let any = self.tensor();
        let text = match (self.below(5), self.tensor_that(exact)) {
            (0, Some(x)) => format!("int(torch.sum({}).item()) % 4", x.name),
            (1, Some(x)) => format!("{}.numel() - n", x.name),
            (2, _) => format!("int({}.is_contiguous())", any.name),
            (3, _) if !any.sizes.is_empty() => {
                format!("{}.stride({})", any.name, self.below(any.sizes.len()))
            }
            _ => {
                let (a, b) = (self.integer(), self.integer());
                format!("({a} * 3 + {b}) % 7")
            }
        };
        self.line(format!("{name} = {text}"));
        self.integers.push(name);
    }

    fn conversion(&mut self) {
        let x = self.tensor();
        let to = *self
            .random
            .pick(&[DType::Float, DType::Double, DType::Half, DType::BFloat16]);
        let b = self.bounds(&x);
        self.define(&format!("{}.to({})", x.name, python_name(to)), to, x.sizes, b);
    }

    fn condition(&mut self) -> String {
        let exact = |w: &Writer, v: &Variable| w.bounds(v).error == 0.0;
        match (self.below(3), self.tensor_that(exact)) {
            (0, Some(x)) => format!("bool(torch.any({} > 1))", x.name),
            (1, _) => "s > 0".to_owned(),
            _ => {
                let i = self.integer();
                format!("{i} > 2")
            }
        }
    }

    /// A variable that a compound statement assigns to: a copy of `x`.
    fn carried(&mut self, x: &Variable) -> Variable {
        let mut bounds = self.bounds(x);
        // Not exact any more in a loop's second round.
        bounds.error = bounds.error.max(unit(x.dtype));
        let name = self.name();
        self.line(format!("{name} = {}.clone()", x.name));
        self.variable(name.clone(), x.dtype, x.sizes.clone(), bounds);
        self.variables.last().cloned().unwrap_or_else(|| x.clone())
    }

    /// Statements of a block, which ends with an assignment to `to`. Their variables are not known behind it.
    fn block(&mut self, to: &Variable) -> Vec<Statement> {
        let (variables, integers) = (self.variables.len(), self.integers.len());
        self.blocks.push(Vec::new());
        self.depth += 1;
        for _ in 0..1 + self.below(3) {
            self.statement();
        }
        let fits = |_: &Writer, v: &Variable| v.dtype == to.dtype && v.sizes == to.sizes && v.name != to.name;
        let from = self.tensor_that(fits);
        let b = from.as_ref().map_or(self.bounds(to), |v| self.bounds(v));
        let from = from.map_or(to.name.clone(), |v| v.name);
        let floats = to.dtype.is_floating_point();
        let text = match to.dtype {
            _ if floats => format!("torch.clamp({from} * 0.5, -4, 4)"),
            DType::Bool => format!("torch.maximum({from}, {})", to.name),
            _ => format!("torch.remainder({from}, 50)"),
        };
        self.line(format!("{} = {text}", to.name));
        let old = self.bounds(to);
        let rounding = b.magnitude * unit(to.dtype) * UNITS;
        self.memories[to.memory] = Bounds {
            magnitude: old.magnitude.max(if floats { 4.0 } else { 50.0 }),
            error: if floats {
                8.0 * (old.error.max(b.error) + rounding)
            } else {
                0.0
            },
        };
        self.depth -= 1;
        self.variables.truncate(variables);
        self.integers.truncate(integers);
        self.blocks.pop().unwrap_or_default()
    }

    fn branch(&mut self) {
        let x = self.tensor();
        let condition = self.condition();
        let to = self.carried(&x);
        let (then, other) = (self.block(&to), self.block(&to));
        let parts = vec![(format!("if {condition}:"), then), ("else:".to_owned(), other)];
        if let Some(block) = self.blocks.last_mut() {
            block.push(Statement::Compound(parts));
        }
    }

    fn repeat(&mut self) {
        let x = self.tensor();
        let times = match self.below(3) {
            0 => "2".to_owned(),
            1 => "n".to_owned(),
            _ => format!("{} % 4", self.integer()),
        };
        let to = self.carried(&x);
        let body = self.block(&to);
        let counter = format!("k{}", self.next);
        self.next += 1;
        if let Some(block) = self.blocks.last_mut() {
            block.push(Statement::Compound(vec![(
                format!("for {counter} in range({times}):"),
                body,
            )]));
        }
    }
}

fn python_name(dtype: DType) -> &'static str {
    match dtype {
        DType::Double => "torch.float64",
        DType::Half => "torch.float16",
        DType::BFloat16 => "torch.bfloat16",
        _ => "torch.float32",
    }
}
