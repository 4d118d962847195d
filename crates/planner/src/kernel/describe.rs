//! Text of kernels: the parts that several families share.

use super::{BlockedShape, ConvShape, Epilogue, EpilogueOperand};
use frazil_runtime::expr::{BinaryOp, Expr, ExprOp, Number, UnaryOp};
use std::cell::Cell;
use std::fmt::{self, Display, Write};

/// Returns a pair of sizes as text, for example `3x3`.
pub(super) fn by(pair: [i64; 2]) -> String {
    format!("{}x{}", pair[0], pair[1])
}

/// Returns the sizes of a blocked tensor as text.
pub(super) fn blocked(s: &BlockedShape) -> String {
    format!(
        "{}x{}x{}x{} in blocks of {}",
        s.batch, s.channels, s.height, s.width, s.block
    )
}

/// Writes the sizes of a convolution and its windows.
pub(super) fn windows(out: &mut dyn Write, s: &ConvShape) -> fmt::Result {
    write!(
        out,
        "{}x{}x{} -> {}x{}x{}, kernel {}, stride {}, padding {}",
        s.batch,
        s.in_channels,
        by(s.input),
        s.batch,
        s.out_channels,
        by(s.output),
        by(s.kernel),
        by(s.stride),
        by(s.padding)
    )?;
    if s.dilation != [1, 1] {
        write!(out, ", dilation {}", by(s.dilation))?;
    }
    if s.groups != 1 {
        write!(out, ", {} groups", s.groups)?;
    }
    Ok(())
}

/// Returns the epilogue in infix notation. Its accumulator is `acc`, its operands are `op0`, `op1`, ...
pub(crate) fn epilogue(e: &Epilogue) -> String {
    let names = |n: u32| match n.checked_sub(1) {
        None => "acc".to_owned(),
        Some(i) => {
            let kind = match e.operands.get(i as usize) {
                Some(EpilogueOperand::Scalar) => "",
                Some(EpilogueOperand::Channel) => "[channel]",
                Some(EpilogueOperand::Row) => "[row]",
                Some(EpilogueOperand::Elementwise) => "[element]",
                None => "?",
            };
            format!("op{i}{kind}")
        }
    };
    Infix(&e.expr, &names).to_string()
}

/// An expression in infix notation, with names for its inputs.
pub(super) struct Infix<'a>(pub &'a Expr, pub &'a dyn Fn(u32) -> String);

impl Display for Infix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.nodes().len().checked_sub(1) {
            Some(root) => f.write_str(&self.node(root as u32, &Cell::new(MAX_OPERATIONS))),
            None => Ok(()),
        }
    }
}

/// Maximum number of operations in the text of an expression. An operation that is shared in the expression is repeated in the text.
const MAX_OPERATIONS: usize = 60;

impl Infix<'_> {
    fn node(&self, id: u32, left: &Cell<usize>) -> String {
        let Some(node) = self.0.nodes().get(id as usize) else {
            return "?".to_owned();
        };
        let Some(rest) = left.get().checked_sub(1) else {
            return "...".to_owned();
        };
        left.set(rest);
        let at = |id| self.node(id, left);
        match node.op {
            ExprOp::Input(n) => (self.1)(n),
            ExprOp::Const(Number::Int(i)) => i.to_string(),
            ExprOp::Const(Number::Float(x)) => x.to_string(),
            ExprOp::Unary(UnaryOp::Neg, a) => format!("-{}", at(a)),
            ExprOp::Unary(op, a) => format!("{}({})", format!("{op:?}").to_lowercase(), at(a)),
            ExprOp::Binary(op, a, b) => match symbol(op) {
                Some(s) => format!("({} {s} {})", at(a), at(b)),
                None => format!("{}({}, {})", format!("{op:?}").to_lowercase(), at(a), at(b)),
            },
            ExprOp::Fma(a, b, c) => format!("fma({}, {}, {})", at(a), at(b), at(c)),
            ExprOp::Select(c, a, b) => format!("select({}, {}, {})", at(c), at(a), at(b)),
            ExprOp::Cast(a) => format!("{}({})", node.dtype.python_name(), at(a)),
            ExprOp::Index(n) => format!("i{n}"),
        }
    }
}

fn symbol(op: BinaryOp) -> Option<&'static str> {
    Some(match op {
        BinaryOp::Add => "+",
        BinaryOp::Sub => "-",
        BinaryOp::Mul => "*",
        BinaryOp::Div => "/",
        BinaryOp::Eq => "==",
        BinaryOp::Ne => "!=",
        BinaryOp::Lt => "<",
        BinaryOp::Le => "<=",
        BinaryOp::Gt => ">",
        BinaryOp::Ge => ">=",
        BinaryOp::And => "&",
        BinaryOp::Or => "|",
        _ => return None,
    })
}
