//! Numbers of elements in expressions, such as the divisor of a mean, or the bound of an index.
//!
//! For given shapes, they are constants of the program. In code for any size, they have to be integers of the kernel like the extents of its loops; otherwise
//! each size would need code of its own.

use crate::kernel::{Epilogue, Loops, Stage};
use frazil_ir::DType;
use frazil_runtime::expr::{BinaryOp, Expr, ExprId, ExprOp, Number};
use frazil_runtime::structured::Affine;

/// Maximum value of a constant that is replaced: all integers up to it are exact in f32.
const MOST: f64 = (1 << 24) as f64;

/// Replaces the constants that may be numbers of elements by loop-invariant indices ([`Stage::indices`]): those in the expressions that are applied to the
/// results of reductions, and the bounds with which integers are compared. The values stay the same.
pub(super) fn replace(loops: &mut Loops) {
    for stage in &mut loops.stages {
        let Stage {
            body,
            combine,
            finish,
            indices,
            output,
            ..
        } = stage;
        let mut index_of = |count: i64| {
            indices.push(Affine {
                coefficients: output.index.coefficients.iter().map(|_| 0).collect(),
                offset: count,
            });
            u32::try_from(indices.len() - 1).ok()
        };
        *body = body.replace_constants(|id, value, dtype| index_of(bound_of(body, id, value, dtype)?));
        if let (Some(finish), true) = (finish, combine.is_some()) {
            *finish = finish.replace_constants(|_, value, dtype| index_of(count_of(value, dtype)?));
        }
    }
}

/// Returns the integer that constant `id` of `expr` is, if it may be an extent that an index is compared with, or that is added to a negative index.
fn bound_of(expr: &Expr, id: ExprId, value: Number, dtype: DType) -> Option<i64> {
    let Number::Int(value @ 2..) = value else { return None };
    let is_limit = |op: ExprOp| match op {
        ExprOp::Binary(op, ..) => op.is_comparison() || matches!(op, BinaryOp::Add | BinaryOp::Sub),
        ExprOp::Select(..) => true,
        _ => false,
    };
    let mut readers = expr.nodes().iter().filter(|node| node.op.operands().any(|of| of == id));
    (dtype == DType::Long && readers.all(|node| is_limit(node.op))).then_some(value)
}

/// Splits the division from the epilogue of a sum that is first divided by a number of elements. Returns the divisor and the rest of the epilogue. The divisor
/// is 1 if the epilogue does not begin with such a division.
pub(super) fn split(epilogue: Epilogue) -> (i64, Epilogue) {
    let expr = &epilogue.expr;
    let readers: Vec<_> = (0..)
        .zip(expr.nodes())
        .filter(|(_, node)| {
            node.op
                .operands()
                .any(|operand| expr.node(operand).op == ExprOp::Input(0))
        })
        .collect();
    if let [(id, node)] = readers.as_slice()
        && let ExprOp::Binary(BinaryOp::Div, sum, divisor) = node.op
        && let ExprOp::Const(value) = expr.node(divisor).op
        && let Some(count) = count_of(value, node.dtype)
    {
        let expr = expr.bypass(*id, sum);
        return (count, Epilogue { expr, ..epilogue });
    }
    (1, epilogue)
}

/// Returns the integer that a constant is, if it may be a number of elements. 1 is excluded: dividing by it changes nothing.
fn count_of(value: Number, dtype: DType) -> Option<i64> {
    match value {
        Number::Float(value) if matches!(dtype, DType::Float | DType::Double) => {
            let is_count = value.fract() == 0.0 && (2.0..=MOST).contains(&value);
            is_count.then_some(value as i64)
        }
        Number::Float(_) | Number::Int(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::EpilogueOperand;
    use frazil_runtime::expr::ExprNode;

    #[test]
    fn counts_are_integers_that_f32_has() {
        let count = |value| count_of(Number::Float(value), DType::Float);
        assert_eq!([2.0, 7.0, MOST].map(count), [Some(2), Some(7), Some(1 << 24)]);
        for other in [1.0, 0.0, -3.0, 2.5, MOST + 1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(count(other), None, "{other}");
        }
        assert_eq!(count_of(Number::Float(7.0), DType::Half), None);
        assert_eq!(count_of(Number::Int(7), DType::Long), None);
    }

    #[test]
    fn extents_that_indices_are_compared_with_are_bounds() {
        let mut e = Expr::new();
        let (index, rows) = (e.input(0, DType::Long), e.int(50, DType::Long));
        let (zero, three) = (e.int(0, DType::Long), e.int(3, DType::Long));
        let (is_low, is_high) = (e.binary(BinaryOp::Lt, index, zero), e.binary(BinaryOp::Ge, index, rows));
        let scaled = e.binary(BinaryOp::Mul, index, three);
        let either = e.binary(BinaryOp::Or, is_low, is_high);
        let result = e.select(either, zero, scaled);
        let expr = e.finish(result);
        let bound = |id: ExprId| match expr.node(id).op {
            ExprOp::Const(value) => bound_of(&expr, id, value, DType::Long),
            _ => None,
        };
        // Divisors and factors stay: instructions with constants are faster.
        assert_eq!([rows, zero, three].map(bound), [Some(50), None, None]);
        assert_eq!(bound_of(&expr, rows, Number::Int(50), DType::Int), None);
    }

    #[test]
    fn epilogues_without_their_division_are_equal() {
        let mean = |count: f64| {
            let mut e = Expr::new();
            let (sum, count) = (e.input(0, DType::Float), e.float(count, DType::Float));
            let mean = e.binary(BinaryOp::Div, sum, count);
            let (zero, bias) = (e.float(0.0, DType::Float), e.input(1, DType::Float));
            let shifted = e.binary(BinaryOp::Add, mean, bias);
            let relu = e.binary(BinaryOp::Maximum, shifted, zero);
            Epilogue {
                expr: e.finish(relu),
                operands: vec![EpilogueOperand::Channel],
            }
        };
        let (nine, of_nine) = split(mean(9.0));
        let (four, of_four) = split(mean(4.0));
        assert_eq!((nine, four), (9, 4));
        assert_eq!(of_nine, of_four);
        let divides = |node: &ExprNode| matches!(node.op, ExprOp::Binary(BinaryOp::Div, ..));
        assert!(!of_nine.expr.nodes().iter().any(divides));
        // Other divisors stay.
        assert_eq!(split(mean(2.5)), (1, mean(2.5)));
        assert_eq!(split(Epilogue::bias()), (1, Epilogue::bias()));
    }

    #[test]
    fn a_sum_with_two_readers_keeps_its_division() {
        let mut e = Expr::new();
        let (sum, count) = (e.input(0, DType::Float), e.float(9.0, DType::Float));
        let mean = e.binary(BinaryOp::Div, sum, count);
        let both = e.binary(BinaryOp::Mul, mean, sum);
        let epilogue = Epilogue {
            expr: e.finish(both),
            operands: Vec::new(),
        };
        assert_eq!(split(epilogue.clone()), (1, epilogue));
    }
}
