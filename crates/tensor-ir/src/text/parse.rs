//! The parser.

use super::affine::parse_affine;
use super::call::CallParser;
use super::extent::{parse_symbols, parse_type};
use super::lex::{Lexer, Parsed};
use super::names::{binary_of, combiner_of, unary_of};
use crate::extent::Extent;
use crate::graph::{Origin, TensorGraph, TensorOp};
use crate::verify::verify;
use frazil_ir::{DType, TensorData};
use frazil_runtime::expr::{Expr, ExprOp, Number};
use frazil_runtime::gather::{Coordinate, Gather};
use frazil_runtime::registry::Registry;
use frazil_runtime::structured::{
    Access, Affine, Iteration, OutOfBounds, Structured, TensorId, TensorShape, ViewKind, ViewMap,
};
use frazil_syntax::ParseError;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// A function of a text.
#[derive(Clone, Debug)]
pub struct Function {
    /// The name of the function.
    pub name: String,
    /// The graph of the function.
    pub graph: TensorGraph,
    /// The checksum of the file with its large constants, if the text states it.
    pub checksum: Option<u32>,
}

/// Returns the tensor of a key, which has the given shape; `None` if there is none.
pub type ConstantLookup<'a> = &'a dyn Fn(&str, &TensorShape) -> Option<Arc<TensorData>>;

/// Options of [`parse_with`].
#[derive(Clone, Copy)]
pub struct ParseOptions<'a> {
    /// Finds the large constants, whose elements are not in the text.
    pub constants: ConstantLookup<'a>,
    /// The operators that calls in the text may name. Without it, texts with calls are refused.
    pub operators: Option<&'a Registry>,
}

impl Default for ParseOptions<'_> {
    fn default() -> Self {
        ParseOptions {
            constants: &|_, _| None,
            operators: None,
        }
    }
}

/// Reads a text that contains the elements of all constants, and no calls of operators. The graph is valid: see [`verify`].
///
/// # Errors
/// The first error, with its place.
pub fn parse(text: &str) -> Result<Function, ParseError> {
    parse_with(text, ParseOptions::default())
}

/// Reads a text. The graph is valid: see [`verify`].
///
/// # Errors
/// As [`parse`].
pub fn parse_with(text: &str, options: ParseOptions<'_>) -> Result<Function, ParseError> {
    let mut parser = Parser {
        lexer: Lexer::new(text),
        graph: TensorGraph::new(),
        ids: HashMap::new(),
        places: HashMap::new(),
        checksum: None,
        options,
    };
    let name = parser.function()?;
    if !parser.lexer.at_end() {
        return Err(parser.lexer.expected("the end of the text"));
    }
    let Parser {
        lexer,
        graph,
        places,
        checksum,
        ..
    } = parser;
    match verify(&graph).into_iter().next() {
        None => Ok(Function { name, graph, checksum }),
        Some(failure) => {
            let place = failure
                .tensor
                .and_then(|id| places.get(&id).cloned())
                .unwrap_or_default();
            Err(lexer.error(place, "invalid-graph", &format!("a valid graph; {failure}")))
        }
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    graph: TensorGraph,
    /// Tensors by the numbers of their names.
    ids: HashMap<usize, TensorId>,
    /// The byte range of each tensor's name in the text.
    places: HashMap<TensorId, Range<usize>>,
    checksum: Option<u32>,
    options: ParseOptions<'a>,
}

impl Parser<'_> {
    /// Reads a function, and returns its name.
    fn function(&mut self) -> Parsed<String> {
        if self.lexer.take("constants") {
            self.lexer.expect("crc32")?;
            let start = self.lexer.position();
            let text = self.lexer.string()?;
            let checksum = u32::from_str_radix(&text, 16);
            let error = |_| {
                self.lexer
                    .error_from(start, "bad-number", "a checksum of eight hexadecimal digits")
            };
            self.checksum = Some(checksum.map_err(error)?);
        }
        if self.lexer.take("symbols") {
            let symbols = parse_symbols(&mut self.lexer)?;
            self.graph.set_symbols(symbols);
        }
        self.lexer.expect("func")?;
        self.lexer.expect("@")?;
        let name = match self.lexer.next_is("\"") {
            true => self.lexer.string()?,
            false => self.lexer.word("a name")?.to_owned(),
        };
        self.lexer.expect("(")?;
        if !self.lexer.take(")") {
            loop {
                let (start, name) = (self.lexer.position(), self.lexer.number_after("%")?);
                self.lexer.expect(":")?;
                let (shape, extents) = parse_type(&mut self.lexer, self.graph.symbols())?;
                let id = self.graph.input(shape);
                self.graph.set_extents(id, extents);
                self.define(start, name, id)?;
                if self.lexer.take(")") {
                    break;
                }
                self.lexer.expect(",")?;
            }
        }
        self.lexer.expect("{")?;
        while self.lexer.next_is("%") {
            self.statement()?;
        }
        let mut checks = Vec::new();
        while self.lexer.take("check") {
            checks.push((self.tensor()?, self.lexer.string()?));
        }
        self.lexer.expect("return")?;
        if !self.lexer.take("}") {
            loop {
                let id = self.tensor()?;
                self.graph.add_output(id);
                if self.lexer.take("}") {
                    break;
                }
                self.lexer.expect(",")?;
            }
        }
        for (id, message) in checks {
            self.graph.add_check(id, message);
        }
        Ok(name)
    }

    fn define(&mut self, start: usize, name: usize, id: TensorId) -> Parsed<()> {
        self.places.insert(id, start..start + format!("%{name}").len());
        match self.ids.insert(name, id) {
            None => Ok(()),
            Some(_) => Err(self
                .lexer
                .error_from(start, "redefined-value", "a name that is not defined yet")),
        }
    }

    /// Reads the name of a tensor that is defined.
    fn tensor(&mut self) -> Parsed<TensorId> {
        defined_tensor(&mut self.lexer, &self.ids)
    }

    fn statement(&mut self) -> Parsed<()> {
        let start = self.lexer.position();
        let name = self.lexer.number_after("%")?;
        self.lexer.expect("=")?;
        let (shape, extents, op) = self.operation()?;
        let origins = self.origins()?;
        let id = self.graph.push(shape, op, origins);
        self.graph.set_extents(id, extents);
        self.define(start, name, id)
    }

    /// Reads an operation with dtype, sizes and extents of its result.
    fn operation(&mut self) -> Parsed<(TensorShape, Option<Vec<Extent>>, TensorOp)> {
        let at = self.lexer.position();
        let keyword = self.lexer.word("an operation")?;
        if keyword == "call" {
            let (graph, ids) = (&self.graph, &self.ids);
            let mut parser = CallParser {
                lexer: &mut self.lexer,
                operators: self.options.operators,
                tensor: &|lexer| defined_tensor(lexer, ids),
                shape: &|id| graph.shape(id).clone(),
            };
            let call = parser.call()?;
            return Ok((call.shape(), None, TensorOp::Call(Arc::new(call))));
        }
        let known = ["constant", "nest", "reshape", "view", "gather", "result"];
        if !known.contains(&keyword) {
            let expected = "`constant`, `nest`, `reshape`, `view`, `gather`, `call` or `result`";
            return Err(self.lexer.error_from(at, "unexpected-token", expected));
        }
        let (shape, extents) = parse_type(&mut self.lexer, self.graph.symbols())?;
        let output = shape.clone();
        let op = match keyword {
            "constant" => TensorOp::Constant(self.elements(&shape)?),
            "nest" => TensorOp::Nest(Box::new(self.nest(output)?)),
            "reshape" => {
                let (tensor, kind) = (self.tensor()?, ViewKind::Reshape);
                TensorOp::View(ViewMap { tensor, kind, output })
            }
            "view" => {
                let (tensor, map) = self.read(shape.sizes.len())?;
                let kind = ViewKind::Affine(map);
                TensorOp::View(ViewMap { tensor, kind, output })
            }
            "gather" => TensorOp::Gather(Box::new(self.gather(output)?)),
            _ => TensorOp::CallResult {
                call: self.tensor()?,
                result: u32::try_from(self.lexer.size()?).unwrap_or(u32::MAX),
            },
        };
        Ok((shape, extents, op))
    }

    fn origins(&mut self) -> Parsed<Vec<Origin>> {
        let mut origins = Vec::new();
        if !self.lexer.take("from") {
            return Ok(origins);
        }
        loop {
            let operator = self.lexer.string()?.into();
            let source = match self.lexer.take("at") {
                true => Some(self.lexer.string()?.into()),
                false => None,
            };
            origins.push(Origin { operator, source });
            if !self.lexer.take(",") {
                return Ok(origins);
            }
        }
    }

    fn elements(&mut self, shape: &TensorShape) -> Parsed<Arc<TensorData>> {
        let start = self.lexer.position();
        if self.lexer.take("elided") {
            let expected = "elements: this text was printed without them";
            return Err(self.lexer.error_from(start, "elided-constant", expected));
        }
        if self.lexer.take("@") {
            let key = self.lexer.string()?;
            let found = (self.options.constants)(&key, shape);
            let expected = "the key of a tensor of this dtype and size in the file beside the text";
            return found.ok_or_else(|| self.lexer.error_from(start, "unknown-reference", expected));
        }
        self.lexer.expect("[")?;
        let numbers = self.lexer.list("]", Lexer::number)?;
        let bytes: Option<Vec<u8>> = numbers.iter().map(|&n| element_bytes(shape.dtype, n)).try_fold(
            Vec::new(),
            |mut bytes: Vec<u8>, element: Option<SmallVec<[u8; 8]>>| {
                bytes.extend(element?);
                Some(bytes)
            },
        );
        let data = bytes
            .filter(|_| shape.numel() == numbers.len() as i64)
            .and_then(|bytes| TensorData::contiguous(shape.dtype, &shape.sizes, bytes).ok());
        let expected = "as many elements as the constant has, each of its dtype";
        data.map(Arc::new)
            .ok_or_else(|| self.lexer.error_from(start, "bad-literal", expected))
    }

    /// Reads `%1[d0, 2*d1]`.
    fn read(&mut self, rank: usize) -> Parsed<(TensorId, Vec<Affine>)> {
        let tensor = self.tensor()?;
        self.lexer.expect("[")?;
        let map = self.lexer.list("]", |lexer| parse_affine(lexer, rank))?;
        Ok((tensor, map))
    }

    /// Reads loops such as `d0 < 4, d1 < 8`. The first loop has the index `first`.
    fn loops(&mut self, first: usize) -> Parsed<Vec<i64>> {
        let mut extents = Vec::new();
        loop {
            let (start, number) = (self.lexer.position(), self.lexer.number_after("d")?);
            if number != first + extents.len() || number >= 64 {
                let expected = format!("`d{}`: loops are numbered in order", first + extents.len());
                return Err(self.lexer.error_from(start, "unexpected-token", &expected));
            }
            self.lexer.expect("<")?;
            extents.push(self.lexer.size()?);
            if !self.lexer.take(",") {
                return Ok(extents);
            }
        }
    }

    fn nest(&mut self, output: TensorShape) -> Parsed<Structured> {
        let mut domain = match self.lexer.take("for") {
            true => self.loops(0)?,
            false => Vec::new(),
        };
        let parallel = domain.len();
        if self.lexer.take("reduce") {
            domain.extend(self.loops(parallel)?);
        }
        let rank = domain.len();
        self.lexer.expect("{")?;
        let inputs = self.reads("x", rank)?;
        let numbered = |lexer: &mut Lexer<'_>, prefix: &str, count: usize| {
            let is_next = lexer.next_is_numbered(prefix);
            is_next.then(|| lexer.index(prefix, count, "read")).transpose()
        };
        let body = self.expression("v", rank, &|lexer| {
            Ok(numbered(lexer, "x", inputs.len())?.map(|i| i as u32))
        })?;
        let (combine, accumulate) = if self.lexer.take("combine") {
            let start = self.lexer.position();
            let name = self.lexer.word("a combiner")?;
            let expected = "`add`, `mul`, `max`, `min`, `or` or `and`";
            let combine =
                combiner_of(name).ok_or_else(|| self.lexer.error_from(start, "unexpected-token", expected))?;
            (Some(combine), self.lexer.dtype()?)
        } else if self.lexer.take("in") {
            (None, self.lexer.dtype()?)
        } else {
            (None, output.dtype)
        };
        let mut finish_inputs = Vec::new();
        let mut finish = None;
        if self.lexer.take("epilogue") {
            finish_inputs = self.reads("y", rank)?;
            let input = |lexer: &mut Lexer<'_>| match lexer.take("acc") {
                true => Ok(Some(0)),
                false => Ok(numbered(lexer, "y", finish_inputs.len())?.map(|i| 1 + i as u32)),
            };
            finish = Some(self.expression("w", parallel, &input)?);
        }
        self.lexer.expect("}")?;
        let iteration = |l: usize| match l < parallel {
            true => Iteration::Parallel,
            false => Iteration::Reduction,
        };
        Ok(Structured {
            iterations: (0..rank).map(iteration).collect(),
            domain: domain.into(),
            inputs: inputs.into(),
            body,
            combine,
            accumulate,
            finish,
            finish_inputs: finish_inputs.into(),
            output,
        })
    }

    fn reads(&mut self, prefix: &str, rank: usize) -> Parsed<Vec<Access>> {
        let mut accesses = Vec::new();
        while self.lexer.next_is_numbered(prefix) {
            let (start, number) = (self.lexer.position(), self.lexer.number_after(prefix)?);
            if number != accesses.len() {
                let expected = format!("`{prefix}{}`: reads are numbered in order", accesses.len());
                return Err(self.lexer.error_from(start, "unexpected-token", &expected));
            }
            self.lexer.expect("=")?;
            let (tensor, map) = self.read(rank)?;
            let out_of_bounds = match self.lexer.take("else") {
                true => OutOfBounds::Value(self.lexer.number()?),
                false => OutOfBounds::Never,
            };
            accesses.push(Access {
                tensor,
                map: map.into(),
                out_of_bounds,
            });
        }
        Ok(accesses)
    }

    /// Reads operations of a scalar expression: `v2: float32 = mul v0, v1`.
    fn expression(
        &mut self,
        prefix: &str,
        rank: usize,
        input: &dyn Fn(&mut Lexer<'_>) -> Parsed<Option<u32>>,
    ) -> Parsed<Expr> {
        let mut expr = Expr::new();
        let lexer = &mut self.lexer;
        while lexer.next_is_numbered(prefix) {
            let count = expr.nodes().len();
            let start = lexer.position();
            let number = lexer.number_after(prefix)?;
            lexer.expect(":")?;
            let dtype = lexer.dtype()?;
            lexer.expect("=")?;
            let operand = |lexer: &mut Lexer<'_>| Ok(lexer.index(prefix, count, "operation")? as u32);
            let next = |lexer: &mut Lexer<'_>| lexer.expect(",").and_then(|()| operand(lexer));
            let at = lexer.position();
            let op = if let Some(number) = input(lexer)? {
                ExprOp::Input(number)
            } else {
                let name = lexer.word("an operation")?;
                match (name, unary_of(name), binary_of(name)) {
                    ("const", ..) => ExprOp::Const(lexer.number()?),
                    ("index", ..) => ExprOp::Index(lexer.index("d", rank, "loop")? as u32),
                    ("cast", ..) => ExprOp::Cast(operand(lexer)?),
                    ("fma", ..) => ExprOp::Fma(operand(lexer)?, next(lexer)?, next(lexer)?),
                    ("select", ..) => ExprOp::Select(operand(lexer)?, next(lexer)?, next(lexer)?),
                    (_, Some(op), _) => ExprOp::Unary(op, operand(lexer)?),
                    (_, _, Some(op)) => ExprOp::Binary(op, operand(lexer)?, next(lexer)?),
                    _ => return Err(lexer.error_from(at, "unexpected-token", "a scalar operation")),
                }
            };
            // An equal operation would be merged with the one that exists, and the names that follow would be wrong.
            if number != count || expr.push(op, dtype) as usize != count {
                let expected = format!("`{prefix}{count}`: operations are numbered in order, and no two are equal");
                return Err(lexer.error_from(start, "unexpected-token", &expected));
            }
        }
        Ok(expr)
    }

    fn gather(&mut self, output: TensorShape) -> Parsed<Gather> {
        let rank = output.sizes.len();
        let tensor = self.tensor()?;
        self.lexer.expect("[")?;
        let mut coordinates = SmallVec::new();
        if !self.lexer.take("]") {
            loop {
                coordinates.push(if self.lexer.next_is("%") {
                    let (tensor, map) = self.read(rank)?;
                    Coordinate::Value { tensor, map }
                } else {
                    Coordinate::Affine(parse_affine(&mut self.lexer, rank)?)
                });
                if self.lexer.take("]") {
                    break;
                }
                self.lexer.expect(",")?;
            }
        }
        let from_end = self.lexer.take("from_end");
        self.lexer.expect("raise")?;
        Ok(Gather {
            tensor,
            coordinates,
            from_end,
            message: self.lexer.string()?.into(),
            output,
        })
    }
}

/// Reads the name of a tensor, and returns the tensor that `ids` contains for it.
fn defined_tensor(lexer: &mut Lexer<'_>, ids: &HashMap<usize, TensorId>) -> Parsed<TensorId> {
    let start = lexer.position();
    let name = lexer.number_after("%")?;
    let known = ids.get(&name).copied();
    known.ok_or_else(|| lexer.error_from(start, "undefined-value", "a tensor that is defined before"))
}

/// Returns the bytes of an element; `None` if the number does not fit the dtype.
fn element_bytes(dtype: DType, number: Number) -> Option<SmallVec<[u8; 8]>> {
    Some(match (dtype, number) {
        (DType::Float, n) => SmallVec::from_slice(&(n.as_f64() as f32).to_le_bytes()),
        (DType::Double, n) => SmallVec::from_slice(&n.as_f64().to_le_bytes()),
        (DType::Long, Number::Int(i)) => SmallVec::from_slice(&i.to_le_bytes()),
        (DType::Int, Number::Int(i)) => SmallVec::from_slice(&i32::try_from(i).ok()?.to_le_bytes()),
        (DType::Short, Number::Int(i)) => SmallVec::from_slice(&i16::try_from(i).ok()?.to_le_bytes()),
        (DType::Char, Number::Int(i)) => SmallVec::from_slice(&i8::try_from(i).ok()?.to_le_bytes()),
        (DType::Byte, Number::Int(i)) => SmallVec::from_slice(&u8::try_from(i).ok()?.to_le_bytes()),
        (DType::Bool, Number::Int(i @ (0 | 1))) => SmallVec::from_slice(&[i as u8]),
        _ => return None,
    })
}
