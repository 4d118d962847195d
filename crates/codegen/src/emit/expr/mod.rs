//! Scalar expressions as MLIR, on scalars or on vectors of any number of lanes.

mod convert;
mod integer;

use super::builder::{Emitter, Val};
use super::math::{self, Floats};
use frazil_ir::DType;
use frazil_runtime::expr::{BinaryOp, Expr, ExprOp, Number, UnaryOp};
use melior::ir::ValueLike;

/// An expression that cannot be emitted. [`check`] finds it before anything is emitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnsupportedExpr {
    /// A function without native code.
    #[error("no native code for the scalar function {0}")]
    Function(String),
    /// A dtype without native arithmetic.
    #[error("no native arithmetic for elements of dtype {0:?}")]
    DType(DType),
    /// An expression without operations.
    #[error("an empty scalar expression")]
    Empty,
}

/// Checks that every operation of `expr` can be emitted.
pub fn check(expr: &Expr) -> Result<(), UnsupportedExpr> {
    if expr.nodes().is_empty() {
        return Err(UnsupportedExpr::Empty);
    }
    for node in expr.nodes() {
        if element_type(node.dtype).is_none() {
            return Err(UnsupportedExpr::DType(node.dtype));
        }
        let bad = match node.op {
            ExprOp::Unary(op, _) => {
                matches!(op, UnaryOp::Digamma | UnaryOp::Erfinv | UnaryOp::I0).then(|| format!("{op:?}"))
            }
            ExprOp::Binary(BinaryOp::Gcd, ..) => Some("Gcd".to_owned()),
            _ => None,
        };
        if let Some(name) = bad {
            return Err(UnsupportedExpr::Function(name));
        }
    }
    Ok(())
}

/// Returns MLIR's name of the type in which a dtype is computed: f16 and bf16 in f32, bools as `i1`.
pub fn element_type(dtype: DType) -> Option<&'static str> {
    Some(match dtype {
        DType::Bool => "i1",
        DType::Byte | DType::Char => "i8",
        DType::Short => "i16",
        DType::Int => "i32",
        DType::Long => "i64",
        DType::Half | DType::BFloat16 | DType::Float => "f32",
        DType::Double => "f64",
        _ => return None,
    })
}

/// The source of the values of an expression's leaves.
pub trait Leaves<'c> {
    /// Returns the value of input `n`, in the computed type of `dtype`.
    fn input(&mut self, e: &mut Emitter<'c>, n: u32, dtype: DType) -> Val<'c>;
    /// Returns the value of index `n` as i64.
    fn index(&mut self, e: &mut Emitter<'c>, n: u32) -> Val<'c>;
}

/// Leaves that are all computed already, in f32; there are no indices.
pub struct Values<'a, 'c>(pub &'a [Val<'c>]);

impl<'c> Leaves<'c> for Values<'_, 'c> {
    fn input(&mut self, _: &mut Emitter<'c>, n: u32, _: DType) -> Val<'c> {
        self.0[n as usize]
    }

    fn index(&mut self, e: &mut Emitter<'c>, _: u32) -> Val<'c> {
        e.int(0)
    }
}

/// Emits expressions over scalars (`lanes` is `None`) or vectors.
pub struct ExprEmitter<'e, 'c> {
    e: &'e mut Emitter<'c>,
    lanes: Option<i64>,
}

impl<'e, 'c> ExprEmitter<'e, 'c> {
    /// Returns an emitter into the current block of `e`.
    pub fn new(e: &'e mut Emitter<'c>, lanes: Option<i64>) -> Self {
        ExprEmitter { e, lanes }
    }

    /// Emits `expr`, which [`check`] has accepted, and returns its result.
    pub fn emit(&mut self, expr: &Expr, leaves: &mut impl Leaves<'c>) -> Val<'c> {
        let mut values: Vec<Val<'c>> = Vec::with_capacity(expr.nodes().len());
        for node in expr.nodes() {
            let at = |i: u32| (values[i as usize], expr.node(i).dtype);
            let value = match node.op {
                ExprOp::Input(n) => leaves.input(self.e, n, node.dtype),
                ExprOp::Index(n) => leaves.index(self.e, n),
                ExprOp::Const(c) => self.constant(c, node.dtype),
                ExprOp::Unary(op, a) => self.unary(op, at(a).0, at(a).1),
                ExprOp::Binary(op, a, b) => self.binary(op, at(a).0, at(b).0, at(a).1),
                ExprOp::Fma(a, b, c) => self.fma(at(a).0, at(b).0, at(c).0, node.dtype),
                ExprOp::Select(c, t, f) => self.e.select(at(c).0, at(t).0, at(f).0),
                ExprOp::Cast(a) => self.cast(at(a).0, at(a).1, node.dtype),
            };
            values.push(value);
        }
        *values.last().expect("`check` refuses empty expressions")
    }

    /// A constant of `dtype`.
    pub fn constant(&mut self, value: Number, dtype: DType) -> Val<'c> {
        let text = match dtype {
            DType::Float | DType::Half | DType::BFloat16 => format!("0x{:08X}", (value.as_f64() as f32).to_bits()),
            DType::Double => format!("0x{:016X}", value.as_f64().to_bits()),
            DType::Bool => (value.as_f64() != 0.0).to_string(),
            DType::Byte => (value.as_i64() as u8 as i8).to_string(),
            DType::Char => (value.as_i64() as i8).to_string(),
            DType::Short => (value.as_i64() as i16).to_string(),
            DType::Int => (value.as_i64() as i32).to_string(),
            _ => value.as_i64().to_string(),
        };
        self.literal(&text, dtype)
    }

    fn literal(&mut self, text: &str, dtype: DType) -> Val<'c> {
        let ty = element_type(dtype).unwrap_or("i64");
        match self.lanes {
            None if ty == "i1" => self.e.constant(&format!("{} : i1", if text == "true" { 1 } else { 0 })),
            None => self.e.constant(&format!("{text} : {ty}")),
            Some(n) => self.e.constant(&format!("dense<{text}> : vector<{n}x{ty}>")),
        }
    }

    fn number(&mut self, value: i64, dtype: DType) -> Val<'c> {
        self.constant(Number::Int(value), dtype)
    }

    fn float(&mut self, value: f64, dtype: DType) -> Val<'c> {
        self.constant(Number::Float(value), dtype)
    }

    fn bin(&mut self, name: &str, a: Val<'c>, b: Val<'c>) -> Val<'c> {
        self.e.binary(name, a, b)
    }

    fn same(&mut self, name: &str, a: Val<'c>) -> Val<'c> {
        let ty = a.r#type();
        self.e.op1(name, &[a], ty)
    }

    fn fma(&mut self, a: Val<'c>, b: Val<'c>, c: Val<'c>, dtype: DType) -> Val<'c> {
        if dtype.is_floating_point() {
            return math::fma(self.e, a, b, c, self.lanes);
        }
        let product = self.bin("arith.muli", a, b);
        self.bin("arith.addi", product, c)
    }

    /// Calls `name` of libm for each lane.
    fn libm(&mut self, name: &str, arguments: &[Val<'c>], dtype: DType) -> Val<'c> {
        let double = dtype == DType::Double;
        let name = if double { name.to_owned() } else { format!("{name}f") };
        let ty = self.e.ty(if double { "f64" } else { "f32" });
        let Some(lanes) = self.lanes else {
            return self.e.call(&name, arguments, ty);
        };
        let mut result = self.float(0.0, dtype);
        for lane in 0..lanes {
            let scalars: Vec<_> = arguments.iter().map(|a| self.e.extract(*a, lane)).collect();
            let value = self.e.call(&name, &scalars, ty);
            result = self.e.insert(value, result, lane);
        }
        result
    }

    fn unary(&mut self, op: UnaryOp, a: Val<'c>, dtype: DType) -> Val<'c> {
        use UnaryOp as U;
        if !dtype.is_floating_point() {
            return self.unary_integer(op, a, dtype);
        }
        let (lanes, vector) = (self.lanes, self.lanes.is_some());
        match op {
            U::Neg => self.same("arith.negf", a),
            U::Abs => self.same("math.absf", a),
            U::Sqrt => self.same("math.sqrt", a),
            U::Rsqrt => {
                let (root, one) = (self.same("math.sqrt", a), self.float(1.0, dtype));
                self.bin("arith.divf", one, root)
            }
            U::Floor if vector => self.same("math.floor", a),
            U::Ceil if vector => self.same("math.ceil", a),
            U::Trunc if vector => self.same("math.trunc", a),
            U::Round if vector => self.same("math.roundeven", a),
            U::IsNan => self.e.cmpf("uno", a, a, lanes),
            U::IsInf => {
                let (abs, inf) = (self.same("math.absf", a), self.float(f64::INFINITY, dtype));
                self.e.cmpf("oeq", abs, inf, lanes)
            }
            U::Sign => {
                let (zero, one, minus) = (self.float(0.0, dtype), self.float(1.0, dtype), self.float(-1.0, dtype));
                let positive = self.e.cmpf("ogt", a, zero, lanes);
                let negative = self.e.cmpf("olt", a, zero, lanes);
                let rest = self.e.select(negative, minus, zero);
                self.e.select(positive, one, rest)
            }
            _ if let Some(n) = lanes
                && let Some(function) = Floats::function(op, dtype) =>
            {
                function(&mut Floats::new(self.e, n, dtype), a)
            }
            _ => match math::libm_unary(op) {
                Some(name) => self.libm(name, &[a], dtype),
                None => a,
            },
        }
    }

    fn binary(&mut self, op: BinaryOp, a: Val<'c>, b: Val<'c>, dtype: DType) -> Val<'c> {
        match dtype.is_floating_point() {
            true => self.binary_float(op, a, b, dtype),
            false => self.binary_integer(op, a, b, dtype),
        }
    }

    fn binary_float(&mut self, op: BinaryOp, a: Val<'c>, b: Val<'c>, dtype: DType) -> Val<'c> {
        use BinaryOp as B;
        let lanes = self.lanes;
        if let Some(n) = lanes
            && let Some(function) = Floats::function_of_two(op, dtype)
        {
            return function(&mut Floats::new(self.e, n, dtype), a, b);
        }
        match op {
            B::Add => self.bin("arith.addf", a, b),
            B::Sub => self.bin("arith.subf", a, b),
            B::Mul => self.bin("arith.mulf", a, b),
            B::Div => self.bin("arith.divf", a, b),
            B::DivTrunc => {
                let q = self.bin("arith.divf", a, b);
                self.unary(UnaryOp::Trunc, q, dtype)
            }
            B::DivFloor => self.floor_divide(a, b, dtype),
            // Not a call of `fmod`: LLVM 22 takes its result for a number where the dividend is finite and the divisor not zero, also of NaN.
            B::Fmod => self.bin("arith.remf", a, b),
            B::Remainder => {
                let r = self.binary_float(B::Fmod, a, b, dtype);
                let zero = self.float(0.0, dtype);
                let nonzero = self.e.cmpf("une", r, zero, lanes);
                let (rn, bn) = (self.e.cmpf("olt", r, zero, lanes), self.e.cmpf("olt", b, zero, lanes));
                let differ = self.bin("arith.xori", rn, bn);
                let fix = self.bin("arith.andi", nonzero, differ);
                let fixed = self.bin("arith.addf", r, b);
                self.e.select(fix, fixed, r)
            }
            B::Maximum => self.e.nan_select("ogt", a, b, lanes),
            B::Minimum => self.e.nan_select("olt", a, b, lanes),
            B::Fmax => self.bin("arith.maxnumf", a, b),
            B::Fmin => self.bin("arith.minnumf", a, b),
            B::Pow => self.libm("pow", &[a, b], dtype),
            B::Atan2 => self.libm("atan2", &[a, b], dtype),
            B::Hypot => self.libm("hypot", &[a, b], dtype),
            B::Nextafter => self.libm("nextafter", &[a, b], dtype),
            B::Copysign => self.bin("math.copysign", a, b),
            B::Eq => self.e.cmpf("oeq", a, b, lanes),
            B::Ne => self.e.cmpf("une", a, b, lanes),
            B::Lt => self.e.cmpf("olt", a, b, lanes),
            B::Le => self.e.cmpf("ole", a, b, lanes),
            B::Gt => self.e.cmpf("ogt", a, b, lanes),
            B::Ge => self.e.cmpf("oge", a, b, lanes),
            // Bitwise operators are not applied to floating point, nor is Gcd.
            B::And | B::Or | B::Xor | B::Shl | B::Shr | B::Gcd => a,
        }
    }

    /// Python's floor division of floats: exact where the quotient rounds across an integer.
    fn floor_divide(&mut self, a: Val<'c>, b: Val<'c>, dtype: DType) -> Val<'c> {
        let lanes = self.lanes;
        let (zero, half, one) = (self.float(0.0, dtype), self.float(0.5, dtype), self.float(1.0, dtype));
        let quotient = self.bin("arith.divf", a, b);
        let modulus = self.binary_float(BinaryOp::Fmod, a, b, dtype);
        let rest = self.bin("arith.subf", a, modulus);
        let div = self.bin("arith.divf", rest, b);
        let nonzero = self.e.cmpf("une", modulus, zero, lanes);
        let (bn, mn) = (
            self.e.cmpf("olt", b, zero, lanes),
            self.e.cmpf("olt", modulus, zero, lanes),
        );
        let differ = self.bin("arith.xori", bn, mn);
        let adjust = self.bin("arith.andi", nonzero, differ);
        let less = self.bin("arith.subf", div, one);
        let div = self.e.select(adjust, less, div);
        let floor = self.unary(UnaryOp::Floor, div, dtype);
        let gap = self.bin("arith.subf", div, floor);
        let up = self.e.cmpf("ogt", gap, half, lanes);
        let next = self.bin("arith.addf", floor, one);
        let rounded = self.e.select(up, next, floor);
        let signed_zero = self.bin("math.copysign", zero, quotient);
        let is_zero = self.e.cmpf("oeq", div, zero, lanes);
        let result = self.e.select(is_zero, signed_zero, rounded);
        let by_zero = self.e.cmpf("oeq", b, zero, lanes);
        self.e.select(by_zero, quotient, result)
    }
}

/// Returns MLIR's name of the type in which a dtype is stored in memory.
pub fn storage_type(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "i8",
        DType::Half => "f16",
        DType::BFloat16 => "i16",
        other => element_type(other).unwrap_or("i8"),
    }
}
