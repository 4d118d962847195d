//! Symbols and extents as text: `symbols { N in [1, 512] = 16 }`, `float32[2*N = 32, 3]`.

use super::fragment::Commas;
use super::lex::{Lexer, MAX_RANK, Parsed};
use crate::extent::{Checked, Extent, Symbol};
use frazil_runtime::structured::TensorShape;
use std::fmt::{self, Display, Formatter};

/// Maximum nesting of functions and parentheses in an extent.
const MAX_DEPTH: usize = 16;

/// The symbols of a function, to be printed.
pub(super) struct SymbolsText<'a>(pub &'a [Symbol]);

impl Display for SymbolsText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let symbol = |symbol: &Symbol| {
            let Symbol {
                name,
                min,
                max,
                representative,
            } = symbol;
            format!("{name} in [{min}, {max}] = {representative}")
        };
        write!(f, "symbols {{ {} }}", Commas(self.0.iter().map(symbol)))
    }
}

/// dtype and sizes of a tensor, with its extents, to be printed.
pub(super) struct TypeText<'a> {
    pub shape: &'a TensorShape,
    pub extents: Option<&'a [Extent]>,
    pub symbols: &'a [Symbol],
}

impl Display for TypeText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let TypeText {
            shape,
            extents,
            symbols,
        } = self;
        let dimension = |(i, size): (usize, &i64)| {
            let extent = extents.and_then(|extents| extents.get(i));
            match extent.filter(|extent| extent.as_constant().is_none()) {
                Some(extent) => format!("{} = {size}", extent.display(symbols)),
                None => size.to_string(),
            }
        };
        let dimensions = shape.sizes.iter().enumerate().map(dimension);
        write!(f, "{}[{}]", shape.dtype.python_name(), Commas(dimensions))
    }
}

/// Reads the text after the keyword `symbols`.
pub(super) fn parse_symbols(lexer: &mut Lexer<'_>) -> Parsed<Vec<Symbol>> {
    lexer.expect("{")?;
    lexer.list("}", |lexer| {
        let name = lexer.word("the name of a symbol")?.to_owned();
        lexer.expect("in")?;
        lexer.expect("[")?;
        let min = lexer.size()?;
        lexer.expect(",")?;
        let max = lexer.size()?;
        lexer.expect("]")?;
        lexer.expect("=")?;
        let representative = lexer.size()?;
        Ok(Symbol {
            name,
            min,
            max,
            representative,
        })
    })
}

/// Reads dtype and sizes of a tensor, and its extents if one of them depends on a symbol.
pub(super) fn parse_type(lexer: &mut Lexer<'_>, symbols: &[Symbol]) -> Parsed<(TensorShape, Option<Vec<Extent>>)> {
    if symbols.is_empty() {
        return Ok((lexer.shape()?, None));
    }
    let dtype = lexer.dtype()?;
    lexer.expect("[")?;
    let start = lexer.position();
    let dimensions = lexer.list("]", |lexer| {
        let start = lexer.position();
        let extent = sum(lexer, symbols, 0)?;
        if lexer.take("=") {
            return Ok((lexer.size()?, extent));
        }
        let size = extent.as_constant().filter(|size| *size >= 0);
        let size = size.ok_or_else(|| {
            lexer.error_from(
                start,
                "bad-number",
                "a size, or an extent and its size such as `N = 16`",
            )
        })?;
        Ok((size, extent))
    })?;
    if dimensions.len() > MAX_RANK {
        return Err(lexer.error_from(start, "bad-tensor-type", "at most 64 dimensions"));
    }
    let (sizes, extents): (Vec<i64>, Vec<Extent>) = dimensions.into_iter().unzip();
    let depends = extents.iter().any(|extent| extent.as_constant().is_none());
    let sizes = sizes.into();
    Ok((TensorShape { dtype, sizes }, depends.then_some(extents)))
}

/// Returns the error of an operation on extents at the text from `start`.
fn checked(lexer: &Lexer<'_>, start: usize, extent: Checked<Extent>) -> Parsed<Extent> {
    extent.map_err(|error| lexer.error_from(start, "bad-extent", &format!("an extent without {error}")))
}

fn sum(lexer: &mut Lexer<'_>, symbols: &[Symbol], depth: usize) -> Parsed<Extent> {
    let start = lexer.position();
    let mut total = Extent::default();
    let mut is_negative = lexer.take("-");
    loop {
        let mut term = factor(lexer, symbols, depth)?;
        while lexer.take("*") {
            let next = factor(lexer, symbols, depth)?;
            term = checked(lexer, start, term.times(&next))?;
        }
        if is_negative {
            term = checked(lexer, start, term.times(&Extent::from(-1)))?;
        }
        total = checked(lexer, start, total.plus(&term))?;
        is_negative = match () {
            () if lexer.take("+") => false,
            () if lexer.take("-") => true,
            () => return Ok(total),
        };
    }
}

fn factor(lexer: &mut Lexer<'_>, symbols: &[Symbol], depth: usize) -> Parsed<Extent> {
    let start = lexer.position();
    if lexer.next_is_numbered("") {
        return lexer.size().map(Extent::from);
    }
    if depth == MAX_DEPTH {
        let expected = format!("at most {MAX_DEPTH} levels of functions and parentheses");
        return Err(lexer.error_from(start, "too-deep", &expected));
    }
    if lexer.take("(") {
        let inner = sum(lexer, symbols, depth + 1)?;
        lexer.expect(")")?;
        return Ok(inner);
    }
    let name = lexer.word("an extent")?;
    if !lexer.take("(") {
        let index = symbols.iter().position(|symbol| symbol.name == name);
        let index = index.and_then(|index| u32::try_from(index).ok());
        return index
            .map(Extent::symbol)
            .ok_or_else(|| lexer.error_from(start, "undefined-value", "a symbol that is defined before"));
    }
    let operands = lexer.list(")", |lexer| sum(lexer, symbols, depth + 1))?;
    let extent = match (name, operands.as_slice()) {
        ("floordiv", [dividend, divisor]) => dividend.floordiv(divisor),
        ("ceildiv", [dividend, divisor]) => dividend.ceildiv(divisor),
        ("min", [_, ..]) => Extent::min(&operands),
        ("max", [_, ..]) => Extent::max(&operands),
        _ => {
            let expected = "`floordiv` or `ceildiv` of two extents, or `min` or `max` of some";
            return Err(lexer.error_from(start, "unexpected-token", expected));
        }
    };
    checked(lexer, start, extent)
}
