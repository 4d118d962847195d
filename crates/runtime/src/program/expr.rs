//! Scalar expressions: the computation of a pointwise operator for one element.
//!
//! An expression is plain data with three uses: the interpreter evaluates it element by element, constant folding uses the interpreter, and code generation
//! emits vector instructions. It is a list of operations in evaluation order; an operand is an earlier operation's index. Common subexpressions are therefore
//! shared.

use frazil_ir::DType;

/// Index of an operation in the [`Expr`] that contains it.
pub type ExprId = u32;

/// Functions of one argument. Unless stated otherwise, semantics are those of C99 and IEEE 754.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `-x`; wraps around for integers.
    Neg,
    /// Absolute value.
    Abs,
    /// Logical negation; the argument is `Bool`.
    Not,
    /// Bitwise complement of an integer.
    BitNot,
    /// e^x.
    Exp,
    /// 2^x.
    Exp2,
    /// e^x - 1, accurate near zero.
    Expm1,
    /// Natural logarithm.
    Log,
    /// Base-2 logarithm.
    Log2,
    /// Base-10 logarithm.
    Log10,
    /// log(1 + x), accurate near zero.
    Log1p,
    /// Square root.
    Sqrt,
    /// 1 / sqrt(x).
    Rsqrt,
    /// Sine.
    Sin,
    /// Cosine.
    Cos,
    /// Tangent.
    Tan,
    /// Arc sine.
    Asin,
    /// Arc cosine.
    Acos,
    /// Arc tangent.
    Atan,
    /// Hyperbolic sine.
    Sinh,
    /// Hyperbolic cosine.
    Cosh,
    /// Hyperbolic tangent.
    Tanh,
    /// Inverse hyperbolic sine.
    Asinh,
    /// Inverse hyperbolic cosine.
    Acosh,
    /// Inverse hyperbolic tangent.
    Atanh,
    /// Error function.
    Erf,
    /// 1 - erf(x), accurate for large x.
    Erfc,
    /// Largest integral value not greater than x.
    Floor,
    /// Smallest integral value not less than x.
    Ceil,
    /// Rounds half to even, as `torch.round`.
    Round,
    /// Rounds towards zero.
    Trunc,
    /// Sign: -1, 0 or 1; NaN gives 0 as in `torch.sign`.
    Sign,
    /// True if x is NaN. The result is `Bool`.
    IsNan,
    /// True if x is an infinity. The result is `Bool`.
    IsInf,
    /// ln |Γ(x)|.
    Lgamma,
    /// The logarithmic derivative of Γ.
    Digamma,
    /// Inverse of the error function.
    Erfinv,
    /// Modified Bessel function of the first kind, order 0.
    I0,
}

/// Functions of two arguments of one dtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// a + b; wraps around for integers, `or` for Bool.
    Add,
    /// a - b.
    Sub,
    /// a * b; `and` for Bool.
    Mul,
    /// a / b; floating point only.
    Div,
    /// Quotient rounded towards zero (`rounding_mode="trunc"`).
    DivTrunc,
    /// Quotient rounded towards minus infinity, with Python's result for floats (`floor_divide`).
    DivFloor,
    /// Remainder with the sign of the dividend (C's `fmod`).
    Fmod,
    /// Remainder with the sign of the divisor (Python's `%`).
    Remainder,
    /// a to the power b.
    Pow,
    /// Arc tangent of a / b in the right quadrant.
    Atan2,
    /// The larger argument; NaN if either is NaN.
    Maximum,
    /// The smaller argument; NaN if either is NaN.
    Minimum,
    /// The larger argument; if one is NaN, the other one.
    Fmax,
    /// The smaller argument; if one is NaN, the other one.
    Fmin,
    /// sqrt(a² + b²) without overflow.
    Hypot,
    /// |a| with the sign of b.
    Copysign,
    /// The next representable value after a towards b.
    Nextafter,
    /// Bitwise and; logical for Bool.
    And,
    /// Bitwise or; logical for Bool.
    Or,
    /// Bitwise exclusive or; logical for Bool.
    Xor,
    /// a shifted left by b bits.
    Shl,
    /// a shifted right by b bits, keeping the sign.
    Shr,
    /// Greatest common divisor.
    Gcd,
    /// a == b. The result is `Bool`, as for the other comparisons.
    Eq,
    /// a != b.
    Ne,
    /// a < b.
    Lt,
    /// a <= b.
    Le,
    /// a > b.
    Gt,
    /// a >= b.
    Ge,
}

impl BinaryOp {
    /// Returns true if the result is `Bool` for all arguments.
    pub fn is_comparison(self) -> bool {
        use BinaryOp::{Eq, Ge, Gt, Le, Lt, Ne};
        matches!(self, Eq | Ne | Lt | Le | Gt | Ge)
    }
}

/// A numeric constant of an expression. Its dtype is that of the [`ExprOp::Const`] node. Floats are equal if their bits are: 0.0 and -0.0 are two constants, a
/// NaN is one.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    /// An integer or a bool (0 or 1).
    Int(i64),
    /// A floating-point number.
    Float(f64),
}

impl PartialEq for Number {
    fn eq(&self, other: &Number) -> bool {
        match (self, other) {
            (Number::Int(a), Number::Int(b)) => a == b,
            (Number::Float(a), Number::Float(b)) => a.to_bits() == b.to_bits(),
            (Number::Int(_), Number::Float(_)) | (Number::Float(_), Number::Int(_)) => false,
        }
    }
}

impl Eq for Number {}

impl Number {
    /// Returns the nearest `f64`.
    pub fn as_f64(self) -> f64 {
        match self {
            Number::Int(i) => i as f64,
            Number::Float(f) => f,
        }
    }

    /// Returns the number as an integer: truncated towards zero, saturated to 64 bits.
    pub fn as_i64(self) -> i64 {
        match self {
            Number::Int(i) => i,
            Number::Float(f) => f as i64,
        }
    }
}

/// An operation of an expression. [`ExprNode`] combines it with the dtype of its result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ExprOp {
    /// The element of input number `n`, in the dtype of that input.
    Input(u32),
    /// A constant.
    Const(Number),
    /// A function of one argument.
    Unary(UnaryOp, ExprId),
    /// A function of two arguments of equal dtype.
    Binary(BinaryOp, ExprId, ExprId),
    /// a * b + c, rounded once.
    Fma(ExprId, ExprId, ExprId),
    /// `if cond { then } else { other }`; `cond` is Bool.
    Select(ExprId, ExprId, ExprId),
    /// The argument converted to this node's dtype, as by `Tensor.to`.
    Cast(ExprId),
    /// The coordinate along loop `n` of the domain, as `Long`. Parallel loops, which are the output's dimensions, come first. Epilogues can refer to parallel
    /// loops only.
    Index(u32),
}

impl ExprOp {
    /// Returns the operands in order.
    pub fn operands(self) -> impl Iterator<Item = ExprId> {
        let operands = match self {
            ExprOp::Input(_) | ExprOp::Const(_) | ExprOp::Index(_) => [None; 3],
            ExprOp::Unary(_, a) | ExprOp::Cast(a) => [Some(a), None, None],
            ExprOp::Binary(_, a, b) => [Some(a), Some(b), None],
            ExprOp::Fma(a, b, c) | ExprOp::Select(a, b, c) => [Some(a), Some(b), Some(c)],
        };
        operands.into_iter().flatten()
    }
}

/// An operation and the dtype of its result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExprNode {
    /// The operation.
    pub op: ExprOp,
    /// The dtype of the result. `Half` and `BFloat16` are computed in `Float` and rounded by the final cast.
    pub dtype: DType,
}

/// A scalar expression: operations in evaluation order. The last operation is the result.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Expr {
    nodes: Vec<ExprNode>,
}

impl Expr {
    /// Returns an empty expression, to which [`Expr::push`] and similar methods add operations.
    pub fn new() -> Expr {
        Expr::default()
    }

    /// Returns the expression that returns input 0 unchanged.
    pub fn identity(dtype: DType) -> Expr {
        let mut e = Expr::new();
        e.input(0, dtype);
        e
    }

    /// Returns the operations in evaluation order.
    pub fn nodes(&self) -> &[ExprNode] {
        &self.nodes
    }

    /// Returns the operation `id`.
    pub fn node(&self, id: ExprId) -> ExprNode {
        self.nodes[id as usize]
    }

    /// Returns the dtype of the result; `None` for an empty expression.
    pub fn dtype(&self) -> Option<DType> {
        self.nodes.last().map(|n| n.dtype)
    }

    /// Returns the number of inputs: one more than the largest input index in use.
    pub fn input_count(&self) -> usize {
        let inputs = self.nodes.iter().filter_map(|n| match n.op {
            ExprOp::Input(i) => Some(i as usize + 1),
            _ => None,
        });
        inputs.max().unwrap_or(0)
    }

    /// Appends an operation and returns its id. If an equal operation exists already, returns the id of that.
    pub fn push(&mut self, op: ExprOp, dtype: DType) -> ExprId {
        let node = ExprNode { op, dtype };
        if let Some(i) = self.nodes.iter().position(|n| *n == node) {
            // The result is the last operation: a re-used one is only safe when something follows, which a cast makes sure of.
            return i as ExprId;
        }
        self.nodes.push(node);
        (self.nodes.len() - 1) as ExprId
    }

    /// Appends input `n`, whose dtype is `dtype`.
    pub fn input(&mut self, n: u32, dtype: DType) -> ExprId {
        self.push(ExprOp::Input(n), dtype)
    }

    /// Appends a floating-point constant of dtype `dtype`.
    pub fn float(&mut self, value: f64, dtype: DType) -> ExprId {
        self.push(ExprOp::Const(Number::Float(value)), dtype)
    }

    /// Appends an integer constant of dtype `dtype`.
    pub fn int(&mut self, value: i64, dtype: DType) -> ExprId {
        self.push(ExprOp::Const(Number::Int(value)), dtype)
    }

    /// Appends `op(a)`. Its dtype is that of `a`, or Bool for the predicates.
    pub fn unary(&mut self, op: UnaryOp, a: ExprId) -> ExprId {
        let dtype = match op {
            UnaryOp::Not | UnaryOp::IsNan | UnaryOp::IsInf => DType::Bool,
            _ => self.node(a).dtype,
        };
        self.push(ExprOp::Unary(op, a), dtype)
    }

    /// Appends `op(a, b)`. Its dtype is that of `a`, or Bool for comparisons.
    pub fn binary(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> ExprId {
        let dtype = if op.is_comparison() {
            DType::Bool
        } else {
            self.node(a).dtype
        };
        self.push(ExprOp::Binary(op, a, b), dtype)
    }

    /// Appends `if cond { then } else { other }`.
    pub fn select(&mut self, cond: ExprId, then: ExprId, other: ExprId) -> ExprId {
        let dtype = self.node(then).dtype;
        self.push(ExprOp::Select(cond, then, other), dtype)
    }

    /// Appends a cast of `a` to `dtype`, or returns `a` itself if its dtype is `dtype`.
    pub fn cast(&mut self, a: ExprId, dtype: DType) -> ExprId {
        if self.node(a).dtype == dtype {
            a
        } else {
            self.push(ExprOp::Cast(a), dtype)
        }
    }

    /// Makes `a` the result of the expression by removing the operations after it.
    pub fn finish(mut self, a: ExprId) -> Expr {
        self.nodes.truncate(a as usize + 1);
        self
    }

    /// Replaces input `n` of this expression by the expression `inner`. `map` returns the new index of each input of `inner`, and `rest` the new index of
    /// each other input of this expression.
    pub fn substitute(&self, n: u32, inner: &Expr, map: impl Fn(u32) -> u32, rest: impl Fn(u32) -> u32) -> Expr {
        let mut out = Expr::new();
        let mut inner_result = 0;
        let mut ids = Vec::with_capacity(inner.nodes.len());
        for node in &inner.nodes {
            inner_result = out.push(remap(node.op, &ids, &map), node.dtype);
            ids.push(inner_result);
        }
        let mut ids = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let id = match node.op {
                ExprOp::Input(i) if i == n => out.cast(inner_result, node.dtype),
                op => out.push(remap(op, &ids, &rest), node.dtype),
            };
            ids.push(id);
        }
        match ids.last() {
            Some(&last) => out.finish(last),
            None => out,
        }
    }

    /// Replaces constants by coordinates: operation `id`, a constant of value `c` and dtype `d`, by [`ExprOp::Index`] of `replace(id, c, d)`, converted to `d`.
    /// Constants for which it returns `None` stay.
    pub fn replace_constants(&self, mut replace: impl FnMut(ExprId, Number, DType) -> Option<u32>) -> Expr {
        let mut out = Expr::new();
        let mut ids = Vec::with_capacity(self.nodes.len());
        for (id, node) in (0..).zip(&self.nodes) {
            let index = match node.op {
                ExprOp::Const(value) => replace(id, value, node.dtype),
                _ => None,
            };
            ids.push(match index {
                Some(n) => {
                    let index = out.push(ExprOp::Index(n), DType::Long);
                    out.cast(index, node.dtype)
                }
                None => out.push(remap(node.op, &ids, &|i| i), node.dtype),
            });
        }
        match ids.last() {
            Some(&last) => out.finish(last),
            None => out,
        }
    }

    /// Replaces the result of operation `id` by the result of the earlier operation `by`, and removes the operations that are not needed any more.
    #[must_use]
    pub fn bypass(&self, id: ExprId, by: ExprId) -> Expr {
        let mut is_needed = vec![false; self.nodes.len()];
        if let Some(result) = is_needed.last_mut() {
            *result = true;
        }
        for (i, node) in (0..self.nodes.len() as ExprId).zip(&self.nodes).rev() {
            match is_needed[i as usize] {
                true if i == id => is_needed[by as usize] = true,
                true => node
                    .op
                    .operands()
                    .for_each(|operand| is_needed[operand as usize] = true),
                false => {}
            }
        }
        let mut out = Expr::new();
        let mut ids: Vec<ExprId> = Vec::with_capacity(self.nodes.len());
        for ((i, node), is_needed) in (0..).zip(&self.nodes).zip(is_needed) {
            ids.push(match is_needed {
                true if i == id => ids[by as usize],
                true => out.push(remap(node.op, &ids, &|i| i), node.dtype),
                // No remaining operation has this operand.
                false => 0,
            });
        }
        match ids.last() {
            Some(&last) => out.finish(last),
            None => out,
        }
    }
}

fn remap(op: ExprOp, ids: &[ExprId], input: &impl Fn(u32) -> u32) -> ExprOp {
    let at = |i: ExprId| ids[i as usize];
    match op {
        ExprOp::Input(i) => ExprOp::Input(input(i)),
        ExprOp::Const(c) => ExprOp::Const(c),
        ExprOp::Unary(o, a) => ExprOp::Unary(o, at(a)),
        ExprOp::Binary(o, a, b) => ExprOp::Binary(o, at(a), at(b)),
        ExprOp::Fma(a, b, c) => ExprOp::Fma(at(a), at(b), at(c)),
        ExprOp::Select(a, b, c) => ExprOp::Select(at(a), at(b), at(c)),
        ExprOp::Cast(a) => ExprOp::Cast(at(a)),
        ExprOp::Index(n) => ExprOp::Index(n),
    }
}
