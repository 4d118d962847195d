//! Affine maps as text: `2*d0 + d1 - 3`.

use super::lex::{Lexer, Parsed};
use frazil_runtime::structured::Affine;
use std::fmt;

/// An affine map, to be printed.
pub(super) struct AffineText<'a>(pub &'a Affine);

impl fmt::Display for AffineText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Affine { coefficients, offset } = self.0;
        let mut is_first = true;
        // The sign of a term that is not the first is between the terms.
        let mut sign = |f: &mut fmt::Formatter<'_>, negative: bool| {
            let text = match (std::mem::take(&mut is_first), negative) {
                (true, false) => "",
                (true, true) => "-",
                (false, false) => " + ",
                (false, true) => " - ",
            };
            f.write_str(text)
        };
        for (l, &c) in coefficients.iter().enumerate().filter(|(_, c)| **c != 0) {
            sign(f, c < 0)?;
            match c.unsigned_abs() {
                1 => write!(f, "d{l}")?,
                factor => write!(f, "{factor}*d{l}")?,
            }
        }
        if *offset != 0 || coefficients.iter().all(|&c| c == 0) {
            sign(f, *offset < 0)?;
            write!(f, "{}", offset.unsigned_abs())?;
        }
        Ok(())
    }
}

/// Reads a map from `rank` loop indices.
pub(super) fn parse_affine(lexer: &mut Lexer<'_>, rank: usize) -> Parsed<Affine> {
    let mut map = Affine::constant(rank, 0);
    let mut negative = lexer.take("-");
    loop {
        let start = lexer.position();
        let (factor, index) = if lexer.next_is("d") {
            (1, Some(lexer.index("d", rank, "loop")?))
        } else {
            let factor = lexer.magnitude()?;
            let index = match lexer.take("*") {
                true => Some(lexer.index("d", rank, "loop")?),
                false => None,
            };
            (factor, index)
        };
        let term = if negative { -factor } else { factor };
        let target = match index {
            Some(index) => &mut map.coefficients[index],
            None => &mut map.offset,
        };
        // Magnitudes are at most 2^63, so that the sum fits i128.
        match i64::try_from(i128::from(*target) + term) {
            Ok(sum) => *target = sum,
            Err(_) => return Err(lexer.error_from(start, "bad-number", "a coefficient that fits 64 bits")),
        }
        negative = if lexer.take("+") {
            false
        } else if lexer.take("-") {
            true
        } else {
            return Ok(map);
        };
    }
}
