//! Epilogues: scalar expressions that a contraction or pooling kernel applies to its results before it stores them.

use frazil_ir::DType;
use frazil_runtime::expr::{BinaryOp, Expr, ExprId, ExprNode, ExprOp, UnaryOp};
use frazil_tensor_ir::pattern::EpilogueOperand;

/// An epilogue: `output = expr(accumulator, operands...)`. Input 0 of the expression is the accumulated f32, input `1 + i` is operand `i`. The result of the
/// expression is f32.
#[derive(Clone, Debug, PartialEq)]
pub struct Epilogue {
    /// The scalar expression.
    pub expr: Expr,
    /// The operands, which are buffers of the kernel.
    pub operands: Vec<EpilogueOperand>,
}

impl Default for Epilogue {
    fn default() -> Self {
        Epilogue::none()
    }
}

impl Epilogue {
    /// Returns an epilogue that stores the accumulator unchanged.
    pub fn none() -> Epilogue {
        Epilogue {
            expr: Expr::identity(DType::Float),
            operands: Vec::new(),
        }
    }

    /// Returns an epilogue that adds a bias for each channel.
    pub fn bias() -> Epilogue {
        let mut e = Expr::new();
        let acc = e.input(0, DType::Float);
        let bias = e.input(1, DType::Float);
        let sum = e.binary(BinaryOp::Add, acc, bias);
        Epilogue {
            expr: e.finish(sum),
            operands: vec![EpilogueOperand::Channel],
        }
    }

    /// Returns true if the epilogue adds its first operand to the accumulator before anything else, and this operand is a bias for each channel.
    pub fn begins_with_bias(&self) -> bool {
        let op = |id: ExprId| self.expr.node(id).op;
        let reads_accumulator = |node: &&ExprNode| node.op.operands().any(|id| op(id) == ExprOp::Input(0));
        let mut readers = self.expr.nodes().iter().filter(reads_accumulator);
        let is_bias = |node: &ExprNode| match node.op {
            ExprOp::Binary(BinaryOp::Add, a, b) => matches!(
                [op(a), op(b)],
                [ExprOp::Input(0), ExprOp::Input(1)] | [ExprOp::Input(1), ExprOp::Input(0)]
            ),
            _ => false,
        };
        self.operands.first() == Some(&EpilogueOperand::Channel)
            && readers.next().is_some_and(is_bias)
            && readers.next().is_none()
    }

    /// Returns the epilogue with its operations in an order that does not depend on how the expression was made, and `y + x` and `y * x` as `x + y` and `x * y`.
    /// Then epilogues that compute the same have the same code. The results are the same numbers.
    #[must_use]
    pub fn in_standard_order(&self) -> Epilogue {
        let (from, mut to) = (&self.expr, Expr::new());
        let mut ids: Vec<Option<ExprId>> = vec![None; from.nodes().len()];
        let inputs = (0..).zip(from.nodes()).filter_map(|(id, node)| match node.op {
            ExprOp::Input(input) => Some((input, id)),
            _ => None,
        });
        let mut inputs: Vec<(u32, ExprId)> = inputs.collect();
        inputs.sort_unstable();
        // The next operation is the last of these, which are needed in reverse order.
        let mut needed: Vec<ExprId> = (from.nodes().len() as ExprId).checked_sub(1).into_iter().collect();
        needed.extend(inputs.iter().rev().map(|(_, id)| *id));
        while let Some(&id) = needed.last() {
            let ExprNode { op, dtype } = from.node(id);
            if let Some(missing) = op.operands().find(|&operand| ids[operand as usize].is_none()) {
                needed.push(missing);
                continue;
            }
            needed.pop();
            let at = |id: ExprId| ids[id as usize].unwrap_or(0);
            let op = match op {
                ExprOp::Unary(op, a) => ExprOp::Unary(op, at(a)),
                ExprOp::Cast(a) => ExprOp::Cast(at(a)),
                ExprOp::Binary(op @ (BinaryOp::Add | BinaryOp::Mul), a, b) => {
                    ExprOp::Binary(op, at(a).min(at(b)), at(a).max(at(b)))
                }
                ExprOp::Binary(op, a, b) => ExprOp::Binary(op, at(a), at(b)),
                ExprOp::Fma(a, b, c) => ExprOp::Fma(at(a), at(b), at(c)),
                ExprOp::Select(a, b, c) => ExprOp::Select(at(a), at(b), at(c)),
                ExprOp::Input(_) | ExprOp::Const(_) | ExprOp::Index(_) => op,
            };
            ids[id as usize] = Some(to.push(op, dtype));
        }
        let expr = match ids.last() {
            Some(&Some(result)) => to.finish(result),
            _ => to,
        };
        Epilogue {
            expr,
            operands: self.operands.clone(),
        }
    }

    /// Returns true if buffer `operand` of the kernel is an elementwise operand of the epilogue. Buffer `first` is the first operand.
    pub(super) fn is_elementwise(&self, operand: usize, first: usize) -> bool {
        let operand = operand.checked_sub(first).and_then(|i| self.operands.get(i));
        operand == Some(&EpilogueOperand::Elementwise)
    }

    /// Returns true if the epilogue needs more registers than a tile of accumulators leaves free, because it contains functions that are computed as
    /// polynomials.
    pub fn is_costly(&self) -> bool {
        let cheap = |op: UnaryOp| matches!(op, UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Not | UnaryOp::Sqrt);
        let function = |op: &ExprOp| matches!(op, ExprOp::Unary(op, _) if !cheap(*op));
        self.expr.nodes().iter().any(|n| function(&n.op))
    }

    /// Returns the epilogue that applies `next` to the result of this one. Input 0 of `next` is that result, its inputs from 1 on are `operands`.
    pub fn then(&self, next: &Expr, operands: &[EpilogueOperand]) -> Epilogue {
        let mine = self.operands.len() as u32;
        let expr = next.substitute(0, &self.expr, |i| i, |i| i + mine);
        Epilogue {
            expr,
            operands: [&self.operands, operands].concat(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epilogue(operand: EpilogueOperand, make: impl Fn(&mut Expr, ExprId, ExprId) -> ExprId) -> Epilogue {
        let mut e = Expr::new();
        let (acc, other) = (e.input(0, DType::Float), e.input(1, DType::Float));
        let result = make(&mut e, acc, other);
        Epilogue {
            expr: e.finish(result),
            operands: vec![operand],
        }
    }

    #[test]
    fn sums_in_either_order_are_equal() {
        let ratio = |is_swapped: bool| {
            epilogue(EpilogueOperand::Elementwise, |e, acc, other| {
                let (a, b) = if is_swapped { (other, acc) } else { (acc, other) };
                let sum = e.binary(BinaryOp::Add, a, b);
                e.binary(BinaryOp::Div, b, sum)
            })
        };
        let [one, other] = [false, true].map(|is_swapped| ratio(is_swapped).in_standard_order());
        // The quotients differ.
        assert_ne!(one, other);
        let sum = |is_swapped: bool| {
            epilogue(EpilogueOperand::Elementwise, |e, acc, other| {
                let (a, b) = if is_swapped { (other, acc) } else { (acc, other) };
                e.binary(BinaryOp::Add, a, b)
            })
        };
        assert_ne!(sum(true), sum(false));
        assert_eq!(sum(true).in_standard_order(), sum(false).in_standard_order());
    }

    #[test]
    fn constants_are_where_they_are_read() {
        let clamp = |are_first: bool| {
            epilogue(EpilogueOperand::Channel, |e, acc, bias| {
                let early = are_first.then(|| [e.float(0.0, DType::Float), e.float(6.0, DType::Float)]);
                let sum = e.binary(BinaryOp::Add, acc, bias);
                let low = e.float(0.0, DType::Float);
                let above = e.binary(BinaryOp::Maximum, sum, low);
                let high = early.map_or_else(|| e.float(6.0, DType::Float), |[_, high]| high);
                e.binary(BinaryOp::Minimum, above, high)
            })
        };
        assert_ne!(clamp(true), clamp(false));
        let standard = clamp(true).in_standard_order();
        assert_eq!(standard, clamp(false).in_standard_order());
        assert_eq!(standard, standard.in_standard_order());
        assert_eq!(standard.expr.nodes().len(), 7);
    }

    #[test]
    fn only_a_bias_at_the_beginning_counts() {
        let bias = Epilogue::bias();
        assert!(bias.begins_with_bias());
        assert!(bias.in_standard_order().begins_with_bias());
        assert!(!Epilogue::none().begins_with_bias());
        let residual = Epilogue {
            operands: vec![EpilogueOperand::Elementwise],
            ..bias.clone()
        };
        assert!(!residual.begins_with_bias());
        assert!(bias.then(&residual.expr, &residual.operands).begins_with_bias());
        let later = epilogue(EpilogueOperand::Channel, |e, acc, bias| {
            let sum = e.binary(BinaryOp::Add, acc, bias);
            e.binary(BinaryOp::Mul, sum, acc)
        });
        assert!(!later.begins_with_bias());
    }
}
