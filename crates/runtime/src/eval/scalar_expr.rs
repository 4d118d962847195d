//! Vectorised interpretation of [`Expr`]: each operation processes a chunk of elements before the next one starts.

use super::binary::{self, Fault};
use super::{complex, unary};
use crate::error::EvalError;
use crate::program::expr::{Expr, ExprOp, Number};
use crate::simd::vectorised;
use crate::tensor::lanes::{Lane, LaneKind, Lanes};
use frazil_ir::DType;
use std::borrow::Cow;

/// The source of the values of an expression's leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneSource {
    /// The elements of an input.
    Input(u32),
    /// The coordinates along a loop of the domain.
    Index(u32),
}

/// Evaluator of an expression: the expression and its registers, for many chunks of elements.
#[derive(Clone)]
pub struct ExprEval<'e> {
    expr: Cow<'e, Expr>,
    registers: Vec<Lanes>,
}

impl ExprEval<'static> {
    /// Returns an [`ExprEval`] that owns the expression.
    pub(crate) fn owning(expr: Expr) -> Result<ExprEval<'static>, EvalError> {
        let registers = ExprEval::new(&expr)?.registers;
        Ok(ExprEval {
            expr: Cow::Owned(expr),
            registers,
        })
    }
}

impl<'e> ExprEval<'e> {
    /// Checks that operands are defined before their uses and have the dtypes that the operations require.
    pub fn new(expr: &'e Expr) -> Result<ExprEval<'e>, EvalError> {
        for (at, node) in expr.nodes().iter().enumerate() {
            let before = |id: u32| {
                expr.nodes()
                    .get(id as usize)
                    .filter(|_| (id as usize) < at)
                    .map(|n| n.dtype)
            };
            let lanes = |id: u32| before(id).map(LaneKind::of);
            let ok = match node.op {
                ExprOp::Input(_) | ExprOp::Const(_) => true,
                ExprOp::Index(_) => node.dtype == DType::Long,
                ExprOp::Unary(_, a) | ExprOp::Cast(a) => before(a).is_some(),
                ExprOp::Binary(_, a, b) => lanes(a).is_some() && lanes(a) == lanes(b),
                ExprOp::Fma(a, b, c) => [a, b, c].iter().all(|&i| lanes(i) == Some(LaneKind::of(node.dtype))),
                ExprOp::Select(c, a, b) => {
                    lanes(c) == Some(LaneKind::I64)
                        && [a, b].iter().all(|&i| lanes(i) == Some(LaneKind::of(node.dtype)))
                }
            };
            if !ok {
                return Err(EvalError::Malformed("an operation's operands do not fit it"));
            }
        }
        if expr.nodes().is_empty() {
            return Err(EvalError::Malformed("an empty expression"));
        }
        let registers = expr.nodes().iter().map(|n| Lanes::new(n.dtype)).collect();
        Ok(ExprEval {
            expr: Cow::Borrowed(expr),
            registers,
        })
    }

    /// Releases the memory of the registers; they are allocated again when needed.
    pub(crate) fn release(&mut self) {
        let empty = self.expr.nodes().iter().map(|n| Lanes::new(n.dtype));
        self.registers = empty.collect();
    }

    /// Returns the dtype of the result.
    pub fn dtype(&self) -> DType {
        self.expr.dtype().unwrap_or(DType::Float)
    }

    /// Evaluates `len` elements. `load` fills a register with the elements of a leaf.
    pub fn run(&mut self, len: usize, load: &mut dyn FnMut(LaneSource, &mut Lanes)) -> Result<&Lanes, EvalError> {
        for at in 0..self.expr.nodes().len() {
            let node = self.expr.node(at as u32);
            let (done, rest) = self.registers.split_at_mut(at);
            let Some(out) = rest.first_mut() else { break };
            let operand = |id: u32| &done[id as usize];
            match node.op {
                ExprOp::Input(n) => load(LaneSource::Input(n), out),
                ExprOp::Index(n) => load(LaneSource::Index(n), out),
                // Constants stay in their registers from chunk to chunk.
                ExprOp::Const(_) if out.len() == len => {}
                ExprOp::Const(c) => fill(out, c, node.dtype, len),
                ExprOp::Unary(op, a) => {
                    if !unary::apply(op, operand(a), self.expr.node(a).dtype, out) {
                        return Err(EvalError::Undefined(format!("{op:?}")));
                    }
                }
                ExprOp::Binary(op, a, b) => {
                    binary::apply(op, operand(a), operand(b), self.expr.node(a).dtype, out).map_err(|f| match f {
                        Fault::Undefined => EvalError::Undefined(format!("{op:?}")),
                        Fault::DivisionByZero => EvalError::DivisionByZero,
                    })?;
                }
                ExprOp::Fma(a, b, c) => fused(operand(a), operand(b), operand(c), out)?,
                ExprOp::Select(c, a, b) => select(i64::of(operand(c)), operand(a), operand(b), out),
                ExprOp::Cast(a) => {
                    out.convert_from(operand(a), self.expr.node(a).dtype, node.dtype);
                    if let Lanes::Complex(numbers) = out
                        && complex::is_single(node.dtype)
                    {
                        complex::round(numbers);
                    }
                }
            }
        }
        self.registers.last().ok_or(EvalError::Malformed("an empty expression"))
    }
}

pub(super) fn fill(out: &mut Lanes, c: Number, dtype: DType, len: usize) {
    let mut one = match c {
        Number::Int(i) => {
            let mut lanes = Lanes::new(dtype);
            lanes.convert_from(&Lanes::I64(vec![i]), DType::Long, dtype);
            lanes
        }
        Number::Float(f) => {
            let mut lanes = Lanes::new(dtype);
            // A constant of a half dtype keeps f32's precision: halves are computed in Float and rounded at the end.
            let exact = if LaneKind::of(dtype) == LaneKind::F32 {
                DType::Float
            } else {
                dtype
            };
            lanes.convert_from(&Lanes::F64(vec![f]), DType::Double, exact);
            lanes
        }
    };
    match &mut one {
        Lanes::F32(v) => v.resize(len, v.first().copied().unwrap_or_default()),
        Lanes::F64(v) => v.resize(len, v.first().copied().unwrap_or_default()),
        Lanes::I64(v) => v.resize(len, v.first().copied().unwrap_or_default()),
        Lanes::Complex(v) => v.resize(len, v.first().copied().unwrap_or_default()),
    }
    *out = one;
}

fn select(cond: &[i64], a: &Lanes, b: &Lanes, out: &mut Lanes) {
    fn pick<T: Lane>(cond: &[i64], a: &Lanes, b: &Lanes, out: &mut Lanes) {
        let out = T::of_mut(out);
        out.clear();
        let choices = cond.iter().zip(T::of(a).iter().zip(T::of(b)));
        vectorised(
            #[inline(always)]
            || out.extend(choices.map(|(&c, (&x, &y))| if c != 0 { x } else { y })),
        );
    }
    match a {
        Lanes::F32(_) => pick::<f32>(cond, a, b, out),
        Lanes::F64(_) => pick::<f64>(cond, a, b, out),
        Lanes::I64(_) => pick::<i64>(cond, a, b, out),
        Lanes::Complex(_) => pick::<num_complex::Complex<f64>>(cond, a, b, out),
    }
}

fn fused(a: &Lanes, b: &Lanes, c: &Lanes, out: &mut Lanes) -> Result<(), EvalError> {
    match (a, b, c) {
        (Lanes::F32(a), Lanes::F32(b), Lanes::F32(c)) => {
            let out = f32::of_mut(out);
            out.clear();
            vectorised(
                #[inline(always)]
                || out.extend(a.iter().zip(b).zip(c).map(|((&x, &y), &z)| x.mul_add(y, z))),
            );
            Ok(())
        }
        (Lanes::F64(a), Lanes::F64(b), Lanes::F64(c)) => {
            let out = f64::of_mut(out);
            out.clear();
            vectorised(
                #[inline(always)]
                || out.extend(a.iter().zip(b).zip(c).map(|((&x, &y), &z)| x.mul_add(y, z))),
            );
            Ok(())
        }
        _ => Err(EvalError::Undefined("Fma".to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::expr::{BinaryOp, UnaryOp};
    use num_complex::Complex;

    fn run(expr: &Expr, inputs: &[Lanes]) -> Result<Lanes, EvalError> {
        let len = inputs[0].len();
        let mut eval = ExprEval::new(expr)?;
        eval.run(len, &mut |source, out| match source {
            LaneSource::Input(n) => *out = inputs[n as usize].clone(),
            LaneSource::Index(_) => *out = Lanes::I64((0..len as i64).collect()),
        })
        .cloned()
    }

    fn binary(op: BinaryOp, dtype: DType, a: Lanes, b: Lanes) -> Result<Lanes, EvalError> {
        let mut e = Expr::new();
        let (x, y) = (e.input(0, dtype), e.input(1, dtype));
        e.binary(op, x, y);
        run(&e, &[a, b])
    }

    #[test]
    fn float_division_and_remainder_follow_python() {
        // torch.div(a, b, rounding_mode="floor"), torch.remainder, torch.fmod
        let a = Lanes::F32(vec![7.0, -7.0, 7.0, -0.5, 1.0]);
        let b = Lanes::F32(vec![2.0, 2.0, -2.0, 3.0, 0.0]);
        let floor = binary(BinaryOp::DivFloor, DType::Float, a.clone(), b.clone()).expect("runs");
        assert_eq!(floor, Lanes::F32(vec![3.0, -4.0, -4.0, -1.0, f32::INFINITY]));
        let Ok(Lanes::F32(r)) = binary(BinaryOp::Remainder, DType::Float, a.clone(), b.clone()) else {
            panic!()
        };
        assert_eq!(r[..4], [1.0, 1.0, -1.0, 2.5]);
        assert!(r[4].is_nan());
        let Ok(Lanes::F32(r)) = binary(BinaryOp::Fmod, DType::Float, a, b) else {
            panic!()
        };
        assert_eq!(r[..4], [1.0, -1.0, 1.0, -0.5]);
    }

    #[test]
    fn integers_wrap_and_shift_in_their_width() {
        let a = Lanes::I64(vec![127, -128, -7, 3]);
        let b = Lanes::I64(vec![1, -1, 2, 9]);
        let run = |op| binary(op, DType::Char, a.clone(), b.clone()).expect("runs");
        assert_eq!(run(BinaryOp::Add), Lanes::I64(vec![-128, 127, -5, 12]));
        assert_eq!(run(BinaryOp::DivFloor), Lanes::I64(vec![127, -128, -4, 0]));
        assert_eq!(run(BinaryOp::Remainder), Lanes::I64(vec![0, 0, 1, 3]));
        assert_eq!(run(BinaryOp::Shl), Lanes::I64(vec![-2, 0, -28, 0]));
        assert_eq!(run(BinaryOp::Shr), Lanes::I64(vec![63, -1, -2, 0]));
        let zero = Lanes::I64(vec![0; 4]);
        assert!(matches!(
            binary(BinaryOp::Fmod, DType::Long, a, zero),
            Err(EvalError::DivisionByZero)
        ));
    }

    #[test]
    fn nan_wins_in_maximum_but_not_in_fmax() {
        let a = Lanes::F64(vec![f64::NAN, 1.0, 2.0]);
        let b = Lanes::F64(vec![0.0, f64::NAN, 3.0]);
        let Ok(Lanes::F64(m)) = binary(BinaryOp::Maximum, DType::Double, a.clone(), b.clone()) else {
            panic!()
        };
        assert!(m[0].is_nan() && m[1].is_nan() && m[2] == 3.0);
        assert_eq!(
            binary(BinaryOp::Fmax, DType::Double, a, b).expect("runs"),
            Lanes::F64(vec![0.0, 1.0, 3.0])
        );
    }

    #[test]
    fn complex_numbers_overflow_where_their_dtype_does() {
        // torch.sigmoid(torch.tensor([-90 + 1j])) of complex64 is NaN, of complex128 not; torch.sgn, square and expm1 are alike.
        let run_as = |dtype, of: fn(&mut Expr, u32, DType), z| {
            let mut e = Expr::new();
            let x = e.input(0, dtype);
            of(&mut e, x, dtype);
            let Ok(Lanes::Complex(out)) = run(&e, &[Lanes::Complex(vec![z])]) else {
                panic!()
            };
            out[0]
        };
        let sigmoid = |e: &mut Expr, x, dtype| {
            let (negative, one) = (e.unary(UnaryOp::Neg, x), e.float(1.0, dtype));
            let exponential = e.unary(UnaryOp::Exp, negative);
            let sum = e.binary(BinaryOp::Add, one, exponential);
            e.binary(BinaryOp::Div, one, sum);
        };
        let small = Complex::new(-90.0, 1.0);
        assert!(run_as(DType::ComplexFloat, sigmoid, small).re.is_nan());
        assert!((run_as(DType::ComplexDouble, sigmoid, small).re - 4.427e-40).abs() < 1e-43);
        let square = |e: &mut Expr, x, _| {
            e.binary(BinaryOp::Mul, x, x);
        };
        let large = Complex::new(3e38f32.into(), 3e38f32.into());
        assert!(run_as(DType::ComplexFloat, square, large).re.is_nan());
        assert_eq!(run_as(DType::ComplexDouble, square, large).re, 0.0);
        let sign = |e: &mut Expr, x, _| {
            e.unary(UnaryOp::Sign, x);
        };
        assert_eq!(run_as(DType::ComplexFloat, sign, large), Complex::ZERO);
        let expm1 = |e: &mut Expr, x, _| {
            e.unary(UnaryOp::Expm1, x);
        };
        let growing = run_as(DType::ComplexFloat, expm1, Complex::new(90.0, 0.0));
        assert!(growing.re.is_infinite() && growing.im.is_nan());
    }

    #[test]
    fn selects_casts_and_bad_operands() {
        let mut e = Expr::new();
        let x = e.input(0, DType::Float);
        let zero = e.float(0.0, DType::Float);
        let positive = e.binary(BinaryOp::Gt, x, zero);
        let root = e.unary(UnaryOp::Sqrt, x);
        let picked = e.select(positive, root, zero);
        e.cast(picked, DType::Long);
        assert_eq!(
            run(&e, &[Lanes::F32(vec![4.0, -9.0])]).expect("runs"),
            Lanes::I64(vec![2, 0])
        );
        let mut bad = Expr::new();
        let (x, y) = (bad.input(0, DType::Float), bad.input(1, DType::Long));
        bad.push(ExprOp::Binary(BinaryOp::Add, x, y), DType::Float);
        assert!(ExprEval::new(&bad).is_err());
    }
}
