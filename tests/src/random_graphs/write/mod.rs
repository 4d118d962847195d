//! Writing a program from a seed, with bounds on its elements and on their rounding errors.

mod operations;

use super::{Argument, Program, Returned, Statement};
use frazil::ir::DType;
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
    &[2, 3, 2, 2],
    &[1, 1, 1, 2],
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

/// Maximum difference of the engines' rounding of each operation, in units in the last place.
const UNITS: f64 = 8.0;
/// Bound on elements, which keeps errors small.
const LARGEST: f64 = 1e4;

/// Bounds for the elements of a memory: on their magnitude, and on the difference between the engines.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    magnitude: f64,
    /// Zero if both compute exactly: only then may a program compare elements.
    error: f64,
}

/// A tensor variable.
#[derive(Clone, Debug)]
struct Variable {
    name: String,
    dtype: DType,
    sizes: Vec<i64>,
    /// Index of its memory; variables with one memory share its bounds.
    memory: usize,
    /// Whether elements overlap in memory, which excludes writes.
    overlaps: bool,
}

struct Writer {
    random: Random,
    next: usize,
    depth: usize,
    variables: Vec<Variable>,
    memories: Vec<Bounds>,
    integers: Vec<String>,
    /// The tensors that the attributes are.
    attributes: Vec<Option<Variable>>,
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
        attributes: Vec::new(),
        blocks: vec![Vec::new()],
    };
    if w.random.chance(40) {
        w.attributes = vec![None; 2 + w.below(2)];
    }
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
    let returned = |v: &Variable| {
        let Bounds { magnitude, error } = w.memories[v.memory];
        // Each attribute that shares the memory may be changed.
        let rounding = 4.0 * (magnitude + 4.0) * unit(v.dtype) * UNITS;
        Returned {
            name: v.name.clone(),
            tolerance: error * 4.0,
            changed: error * 4.0 + rounding,
        }
    };
    let attribute = |(i, tensor): (usize, &Option<Variable>)| Returned {
        name: attribute_name(i),
        ..tensor.as_ref().map_or_else(Returned::default, returned)
    };
    Program {
        seed,
        written: w.variables[..arguments.len()].iter().map(returned).collect(),
        tensors: w.variables.iter().map(returned).collect(),
        attributes: w.attributes.iter().enumerate().map(attribute).collect(),
        integers: w.integers.clone(),
        body: w.blocks.pop().unwrap_or_default(),
        arguments,
    }
}

fn attribute_name(i: usize) -> String {
    format!("self.a{i}")
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

    /// Adds a tensor with elements of its own, which are rounded.
    fn define(&mut self, expression: &str, dtype: DType, sizes: Vec<i64>, bounds: Bounds) {
        let error = bounds.error + bounds.magnitude * unit(dtype) * UNITS;
        self.exact(expression, dtype, sizes, Bounds { error, ..bounds });
    }

    /// Adds a tensor whose elements both engines compute exactly if those of the operands are exact. Does nothing if bounds would become too large.
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
        match self.below(32) {
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
            27 if self.depth < 2 => self.recurrence(),
            28 if self.depth == 0 => self.keep(),
            29 => self.signs(),
            _ => self.conversion(),
        }
    }

    /// Sets an attribute.
    fn keep(&mut self) {
        let i = self.below(self.attributes.len());
        let Some(x) = self.tensor_that(|_, v| v.dtype == DType::Float && !v.overlaps) else {
            return;
        };
        if let Some(attribute) = self.attributes.get_mut(i) {
            *attribute = Some(x.clone());
            self.line(format!("{} = {}", attribute_name(i), x.name));
        }
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

    /// Adds a variable that a compound statement assigns to: a copy of `x`.
    fn carried(&mut self, x: &Variable) -> Variable {
        let mut bounds = self.bounds(x);
        // In a loop's second iteration it is not exact any more.
        bounds.error = bounds.error.max(unit(x.dtype));
        let name = self.name();
        self.line(format!("{name} = {}.clone()", x.name));
        self.variable(name.clone(), x.dtype, x.sizes.clone(), bounds);
        self.variables.last().cloned().unwrap_or_else(|| x.clone())
    }

    /// Writes statements of a block, which ends with an assignment to `to`. Their variables are not visible behind it.
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

    /// Writes a loop of many iterations, each of which computes a state from the previous one and from a row of a tensor, and keeps it in a list. The function
    /// of the state is contracting, so that rounding errors do not grow.
    fn recurrence(&mut self) {
        let is_float = |v: &Variable| matches!(v.dtype, DType::Float | DType::Double);
        let Some(x) = self.tensor_that(|_, v| is_float(v)) else {
            return;
        };
        let fits = |_: &Writer, v: &Variable| v.dtype == x.dtype && v.sizes == x.sizes;
        let y = self.tensor_that(fits).unwrap_or_else(|| x.clone());
        let (rows, states) = (self.name(), self.name());
        self.line(format!("{rows} = torch.stack([{}] * 7 + [{}] * 7)", x.name, y.name));
        self.line(format!("{states}: List[Tensor] = []"));
        let state = self.carried(&x);
        let times = ["8", "14", "n + 6", "len([n]) + 9"][self.below(4)];
        let h = &state.name;
        let step = match self.below(6) {
            5 => format!("torch.copysign({h}, {})", ["0.0", "-0.0"][self.below(2)]),
            0 => format!("torch.tanh({h})"),
            1 => format!("torch.relu({h}) - {h}"),
            2 => format!("torch.where({h} > 0, {h}, 0.5 * {h})"),
            3 => format!("torch.minimum({h}, -{h})"),
            _ => format!("{h}.flatten().reshape({h}.shape)"),
        };
        let counter = format!("k{}", self.next);
        self.next += 1;
        let row = [
            format!("{rows}[{counter}]"),
            format!("{rows}[{counter} // 2]"),
            y.name.clone(),
        ][self.below(3)]
        .clone();
        let body = [
            format!("{h} = torch.clamp(({step}) * 0.5 + {row}, -4, 4)"),
            format!("{states}.append({h})"),
        ];
        if let Some(block) = self.blocks.last_mut() {
            let body = body.map(Statement::Line).to_vec();
            block.push(Statement::Compound(vec![(
                format!("for {counter} in range({times}):"),
                body,
            )]));
        }
        let (of_state, of_rows) = (self.bounds(&state), self.bounds(&x).error.max(self.bounds(&y).error));
        let rounding = (4.0 + self.bounds(&x).magnitude.max(self.bounds(&y).magnitude)) * unit(x.dtype) * UNITS;
        let bounds = Bounds {
            magnitude: 4.0,
            error: of_state.error + 2.0 * of_rows + 4.0 * rounding,
        };
        self.memories[state.memory] = bounds;
        let mut sizes = x.sizes;
        sizes.insert(0, 14);
        // The number of states is not known here; no other statement depends on it.
        self.line(format!("{states} = {states}[:8]"));
        sizes[0] = 8;
        let state_sizes = sizes[1..].to_vec();
        self.exact(&format!("torch.stack({states})"), x.dtype, sizes, bounds);
        for i in [2, 5] {
            self.exact(&format!("{states}[{i}]"), x.dtype, state_sizes.clone(), bounds);
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
