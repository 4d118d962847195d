//! The printer.

use super::affine::AffineText;
use super::call::CallText;
use super::extent::{SymbolsText, TypeText};
use super::fragment::{Commas, NumberText, Quoted};
use super::names::{binary_name, combiner_name, unary_name};
use crate::graph::{TensorGraph, TensorNode, TensorOp};
use frazil_ir::{DType, TensorData};
use frazil_runtime::expr::{Expr, ExprOp, Number};
use frazil_runtime::gather::{Coordinate, Gather};
use frazil_runtime::structured::{Access, Affine, OutOfBounds, Structured, TensorId, ViewKind};
use std::collections::HashMap;
use std::fmt::{self, Display, Formatter};

/// Options of [`print_with`].
#[derive(Clone, Copy, Debug)]
pub struct PrintOptions<'a> {
    /// Largest number of elements of a constant that the text itself contains.
    pub inline: i64,
    /// The keys of the constants in the file beside the text.
    pub keys: Option<&'a HashMap<TensorId, String>>,
    /// The checksum of that file.
    pub checksum: Option<u32>,
}

/// Largest number of elements of a constant that texts contain by default.
pub(super) const MAX_INLINE: i64 = 64;

impl Default for PrintOptions<'_> {
    fn default() -> Self {
        PrintOptions {
            inline: MAX_INLINE,
            keys: None,
            checksum: None,
        }
    }
}

/// Returns the text of `graph` as the function `name`. Elements of large constants are left out; the text then cannot be parsed.
pub fn print(name: &str, graph: &TensorGraph) -> String {
    print_with(name, graph, PrintOptions::default())
}

/// Returns the text of `graph` as the function `name`.
pub fn print_with(name: &str, graph: &TensorGraph, options: PrintOptions<'_>) -> String {
    FunctionText { name, graph, options }.to_string()
}

struct FunctionText<'a> {
    name: &'a str,
    graph: &'a TensorGraph,
    options: PrintOptions<'a>,
}

struct ReadText<'a>(TensorId, &'a [Affine]);

impl Display for ReadText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.0, Commas(self.1.iter().map(AffineText)))
    }
}

impl Display for FunctionText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let FunctionText { name, graph, .. } = *self;
        let inputs = graph.inputs().iter();
        let inputs: Vec<String> = inputs.map(|&id| format!("{id}: {}", self.type_text(id))).collect();
        if let Some(checksum) = self.options.checksum {
            writeln!(f, "constants crc32 \"{checksum:08x}\"")?;
        }
        if !graph.symbols().is_empty() {
            writeln!(f, "{}", SymbolsText(graph.symbols()))?;
        }
        writeln!(f, "func @{}({}) {{", name_text(name), inputs.join(", "))?;
        for id in graph.live_ids() {
            if !matches!(graph.op(id), TensorOp::Input(_)) {
                self.statement(f, id, graph.node(id))?;
            }
        }
        let results = graph.outputs().len().saturating_sub(graph.checks().len());
        let (results, checks) = graph.outputs().split_at(results);
        for (id, message) in checks.iter().zip(graph.checks()) {
            writeln!(f, "  check {id} {}", Quoted(message))?;
        }
        writeln!(f, "  return {}\n}}", Commas(results)).and(Ok(()))
    }
}

/// Returns the name as text: in quotes unless it is an identifier.
fn name_text(name: &str) -> String {
    let is_plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_plain {
        name.to_owned()
    } else {
        Quoted(name).to_string()
    }
}

impl FunctionText<'_> {
    fn type_text(&self, id: TensorId) -> TypeText<'_> {
        TypeText {
            shape: self.graph.shape(id),
            extents: self.graph.extents(id),
            symbols: self.graph.symbols(),
        }
    }

    fn statement(&self, f: &mut Formatter<'_>, id: TensorId, node: &TensorNode) -> fmt::Result {
        let shape = self.type_text(id);
        write!(f, "  {id} = ")?;
        match &node.op {
            TensorOp::Input(_) => {}
            TensorOp::Constant(data) => {
                write!(f, "constant {shape} ")?;
                self.elements(f, id, data)?;
            }
            TensorOp::Nest(nest) => {
                let (parallel, reduction) = nest.domain.split_at(nest.parallel_rank().min(nest.domain.len()));
                write!(f, "nest {shape}")?;
                loops(f, "for", 0, parallel)?;
                loops(f, "reduce", parallel.len(), reduction)?;
                writeln!(f, " {{")?;
                nest_body(f, nest)?;
                write!(f, "  }}")?;
            }
            TensorOp::View(view) => match &view.kind {
                ViewKind::Reshape => write!(f, "reshape {shape} {}", view.tensor)?,
                ViewKind::Affine(map) => write!(f, "view {shape} {}", ReadText(view.tensor, map))?,
            },
            TensorOp::Gather(gather) => write!(f, "gather {shape} {}", GatherText(gather))?,
            TensorOp::Call(call) => write!(f, "{}", CallText(call))?,
            TensorOp::CallResult { call, result } => write!(f, "result {shape} {call} {result}")?,
        }
        for (i, origin) in node.origins.iter().enumerate() {
            let before = if i == 0 { " from" } else { "," };
            write!(f, "{before} {}", Quoted(&origin.operator))?;
            if let Some(source) = &origin.source {
                write!(f, " at {}", Quoted(source))?;
            }
        }
        writeln!(f)
    }

    fn elements(&self, f: &mut Formatter<'_>, id: TensorId, data: &TensorData) -> fmt::Result {
        if let Some(key) = self.options.keys.and_then(|keys| keys.get(&id)) {
            return write!(f, "@{}", Quoted(key));
        }
        match (data.numel() <= self.options.inline).then(|| numbers(data)).flatten() {
            Some(numbers) => write!(f, "[{}]", Commas(numbers.into_iter().map(NumberText))),
            None => f.write_str("elided"),
        }
    }
}

/// Returns whether texts contain the elements of a constant by default.
pub(super) fn is_inline(data: &TensorData) -> bool {
    data.numel() <= MAX_INLINE && numbers(data).is_some()
}

/// Returns the elements in row-major order, if numbers represent them exactly.
fn numbers(data: &TensorData) -> Option<Vec<Number>> {
    let bytes = data.to_bytes();
    let width = data.dtype.size();
    let number = |b: &[u8]| {
        Some(match (data.dtype, b) {
            (DType::Float, b) => Number::Float(shortest(f32::from_le_bytes(b.try_into().ok()?))),
            (DType::Double, b) => Number::Float(f64::from_le_bytes(b.try_into().ok()?)),
            (DType::Long, b) => Number::Int(i64::from_le_bytes(b.try_into().ok()?)),
            (DType::Int, b) => Number::Int(i64::from(i32::from_le_bytes(b.try_into().ok()?))),
            (DType::Short, b) => Number::Int(i64::from(i16::from_le_bytes(b.try_into().ok()?))),
            (DType::Char, &[b]) => Number::Int(i64::from(b.cast_signed())),
            (DType::Byte | DType::Bool, &[b]) => Number::Int(i64::from(b)),
            _ => return None,
        })
    };
    // The payload of a NaN has no text.
    let numbers: Option<Vec<Number>> = bytes.chunks_exact(width).map(number).collect();
    numbers.filter(|all| !all.iter().any(|n| matches!(n, Number::Float(x) if x.is_nan())))
}

/// Returns the decimal number with the fewest digits that rounds to `x`.
fn shortest(x: f32) -> f64 {
    let short = format!("{x:?}").parse::<f64>();
    short.ok().filter(|y| *y as f32 == x).unwrap_or(f64::from(x))
}

fn loops(f: &mut Formatter<'_>, keyword: &str, first: usize, extents: &[i64]) -> fmt::Result {
    for (i, extent) in extents.iter().enumerate() {
        let before = if i == 0 { keyword } else { "," };
        write!(f, "{}{before} d{} < {extent}", if i == 0 { " " } else { "" }, first + i)?;
    }
    Ok(())
}

fn nest_body(f: &mut Formatter<'_>, nest: &Structured) -> fmt::Result {
    reads(f, "x", &nest.inputs)?;
    expression(f, &nest.body, "v", &|i| format!("x{i}"))?;
    match nest.combine {
        Some(combine) => writeln!(
            f,
            "    combine {} {}",
            combiner_name(combine),
            nest.accumulate.python_name()
        )?,
        None if nest.accumulate != nest.output.dtype => writeln!(f, "    in {}", nest.accumulate.python_name())?,
        None => {}
    }
    if let Some(finish) = &nest.finish {
        writeln!(f, "    epilogue")?;
        reads(f, "y", &nest.finish_inputs)?;
        let input = |i: u32| i.checked_sub(1).map_or("acc".to_owned(), |i| format!("y{i}"));
        expression(f, finish, "w", &input)?;
    }
    Ok(())
}

fn reads(f: &mut Formatter<'_>, prefix: &str, accesses: &[Access]) -> fmt::Result {
    for (i, access) in accesses.iter().enumerate() {
        write!(f, "    {prefix}{i} = {}", ReadText(access.tensor, &access.map))?;
        if let OutOfBounds::Value(value) = access.out_of_bounds {
            write!(f, " else {}", NumberText(value))?;
        }
        writeln!(f)?;
    }
    Ok(())
}

fn expression(f: &mut Formatter<'_>, expr: &Expr, prefix: &str, input: &dyn Fn(u32) -> String) -> fmt::Result {
    for (i, node) in expr.nodes().iter().enumerate() {
        write!(f, "    {prefix}{i}: {} = ", node.dtype.python_name())?;
        match node.op {
            ExprOp::Input(n) => write!(f, "{}", input(n))?,
            ExprOp::Const(number) => write!(f, "const {}", NumberText(number))?,
            ExprOp::Unary(op, a) => write!(f, "{} {prefix}{a}", unary_name(op))?,
            ExprOp::Binary(op, a, b) => write!(f, "{} {prefix}{a}, {prefix}{b}", binary_name(op))?,
            ExprOp::Fma(a, b, c) => write!(f, "fma {prefix}{a}, {prefix}{b}, {prefix}{c}")?,
            ExprOp::Select(a, b, c) => write!(f, "select {prefix}{a}, {prefix}{b}, {prefix}{c}")?,
            ExprOp::Cast(a) => write!(f, "cast {prefix}{a}")?,
            ExprOp::Index(l) => write!(f, "index d{l}")?,
        }
        writeln!(f)?;
    }
    Ok(())
}

struct GatherText<'a>(&'a Gather);

impl Display for GatherText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let coordinate = |c: &Coordinate| match c {
            Coordinate::Affine(map) => AffineText(map).to_string(),
            Coordinate::Value { tensor, map } => ReadText(*tensor, map).to_string(),
        };
        let coordinates: Vec<String> = self.0.coordinates.iter().map(coordinate).collect();
        write!(f, "{}[{}]", self.0.tensor, coordinates.join(", "))?;
        if self.0.from_end {
            f.write_str(" from_end")?;
        }
        write!(f, " raise {}", Quoted(&self.0.message))
    }
}
