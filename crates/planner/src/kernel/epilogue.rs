//! What a contraction or pooling kernel does to each result while it is still in a register.

use frazil_ir::DType;
use frazil_runtime::expr::{BinaryOp, Expr, ExprOp, UnaryOp};
use frazil_tensor_ir::pattern::EpilogueOperand;

/// `output = expr(accumulator, operands...)`: input 0 of the expression is the accumulated f32, input `1 + i` is operand `i`.
/// The expression's result is f32.
#[derive(Clone, Debug, PartialEq)]
pub struct Epilogue {
    /// The scalar expression.
    pub expr: Expr,
    /// Its further inputs, which are buffers of the kernel.
    pub operands: Vec<EpilogueOperand>,
}

impl Default for Epilogue {
    fn default() -> Self {
        Epilogue::none()
    }
}

impl Epilogue {
    /// Stores the accumulator as it is.
    pub fn none() -> Epilogue {
        Epilogue {
            expr: Expr::identity(DType::Float),
            operands: Vec::new(),
        }
    }

    /// Adds a bias a channel.
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

    /// Returns true if buffer `operand` of the kernel is an elementwise operand, where the first operand is buffer `first`.
    pub(super) fn is_elementwise(&self, operand: usize, first: usize) -> bool {
        let operand = operand.checked_sub(first).and_then(|i| self.operands.get(i));
        operand == Some(&EpilogueOperand::Elementwise)
    }

    /// True when it takes more registers than a tile of accumulators leaves: it calls functions that are polynomials.
    pub fn is_costly(&self) -> bool {
        let cheap = |op: UnaryOp| matches!(op, UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Not | UnaryOp::Sqrt);
        let function = |op: &ExprOp| matches!(op, ExprOp::Unary(op, _) if !cheap(*op));
        self.expr.nodes().iter().any(|n| function(&n.op))
    }

    /// Applies `next` to what this epilogue gives. `next`'s input 0 is that result, its inputs `1..` are `operands`.
    pub fn then(&self, next: &Expr, operands: &[EpilogueOperand]) -> Epilogue {
        let mine = self.operands.len() as u32;
        let expr = next.substitute(0, &self.expr, |i| i, |i| i + mine);
        Epilogue {
            expr,
            operands: [&self.operands, operands].concat(),
        }
    }
}
