//! Epilogues: scalar expressions that a contraction or pooling kernel applies to its results before it stores them.

use frazil_ir::DType;
use frazil_runtime::expr::{BinaryOp, Expr, ExprOp, UnaryOp};
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
