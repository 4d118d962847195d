//! Registers of the expression evaluator: a chunk of elements in the representation for computation.

use crate::scalar::Scalar;
use frazil_ir::DType;
use half::{bf16, f16};
use num_complex::Complex;

/// Number of elements per chunk. It is large enough to amortise the interpretation of an operation, and small enough
/// for a dozen registers to stay in the L1 cache.
pub const CHUNK: usize = 512;

/// The representations of elements in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneKind {
    /// `f32`: Half, BFloat16 and Float.
    F32,
    /// `f64`: Double.
    F64,
    /// `i64`: the integers and Bool (0 or 1).
    I64,
    /// Complex numbers.
    Complex,
}

impl LaneKind {
    /// Returns the lane kind in which elements of `dtype` are computed.
    pub fn of(dtype: DType) -> LaneKind {
        match dtype {
            DType::Half | DType::BFloat16 | DType::Float => LaneKind::F32,
            DType::Double => LaneKind::F64,
            d if d.is_complex() => LaneKind::Complex,
            _ => LaneKind::I64,
        }
    }
}

/// A register of the expression evaluator: lanes of one [`LaneKind`].
#[derive(Clone, Debug, PartialEq)]
pub enum Lanes {
    /// See [`LaneKind::F32`].
    F32(Vec<f32>),
    /// See [`LaneKind::F64`].
    F64(Vec<f64>),
    /// See [`LaneKind::I64`].
    I64(Vec<i64>),
    /// See [`LaneKind::Complex`].
    Complex(Vec<Complex<f64>>),
}

/// The type of a lane.
pub trait Lane: bytemuck::Pod + Default + Send + Sync + crate::tensor::join::Joinable + 'static {
    /// A dtype with the same representation in memory as this lane.
    const DTYPE: DType;
    /// Returns the vector in `lanes`; empty if `lanes` have another element type. [`Lane::of_mut`] converts the element type.
    fn of(lanes: &Lanes) -> &[Self];
    /// Returns the vector in `lanes`, which are first converted to this element type if they have another one.
    fn of_mut(lanes: &mut Lanes) -> &mut Vec<Self>;
}

macro_rules! lane {
    ($t:ty, $variant:ident, $dtype:ident) => {
        impl Lane for $t {
            const DTYPE: DType = DType::$dtype;
            fn of(lanes: &Lanes) -> &[Self] {
                if let Lanes::$variant(v) = lanes { v } else { &[] }
            }
            fn of_mut(lanes: &mut Lanes) -> &mut Vec<Self> {
                if !matches!(lanes, Lanes::$variant(_)) {
                    *lanes = Lanes::$variant(Vec::with_capacity(CHUNK));
                }
                match lanes {
                    Lanes::$variant(v) => v,
                    _ => unreachable!("set to this variant above"),
                }
            }
        }
    };
}
lane!(f32, F32, Float);
lane!(f64, F64, Double);
lane!(i64, I64, Long);
lane!(Complex<f64>, Complex, ComplexDouble);

impl Lanes {
    /// Returns an empty register for `dtype`.
    pub fn new(dtype: DType) -> Lanes {
        match LaneKind::of(dtype) {
            LaneKind::F32 => Lanes::F32(Vec::new()),
            LaneKind::F64 => Lanes::F64(Vec::new()),
            LaneKind::I64 => Lanes::I64(Vec::new()),
            LaneKind::Complex => Lanes::Complex(Vec::new()),
        }
    }

    /// Returns the number of lanes.
    pub fn len(&self) -> usize {
        match self {
            Lanes::F32(v) => v.len(),
            Lanes::F64(v) => v.len(),
            Lanes::I64(v) => v.len(),
            Lanes::Complex(v) => v.len(),
        }
    }

    /// Returns true if there are no lanes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sets `self` to `len` copies of the first lane of `src`, and reuses the allocation.
    pub(crate) fn fill_from(&mut self, src: &Lanes, len: usize) {
        fn fill<T: Lane>(to: &mut Lanes, from: &[T], len: usize) {
            let to = T::of_mut(to);
            to.clear();
            to.resize(len, from.first().copied().unwrap_or_default());
        }
        match src {
            Lanes::F32(v) => fill(self, v, len),
            Lanes::F64(v) => fill(self, v, len),
            Lanes::I64(v) => fill(self, v, len),
            Lanes::Complex(v) => fill(self, v, len),
        }
    }

    /// Sets `self` to a copy of `src`, and reuses the allocation.
    pub fn copy_from(&mut self, src: &Lanes) {
        fn copy<T: Lane>(to: &mut Lanes, from: &[T]) {
            let to = T::of_mut(to);
            to.clear();
            to.extend_from_slice(from);
        }
        match src {
            Lanes::F32(v) => copy(self, v),
            Lanes::F64(v) => copy(self, v),
            Lanes::I64(v) => copy(self, v),
            Lanes::Complex(v) => copy(self, v),
        }
    }

    /// Appends the lanes of `other`. Does nothing if `other` has another lane kind.
    pub fn append(&mut self, other: &Lanes) {
        match (self, other) {
            (Lanes::F32(a), Lanes::F32(b)) => a.extend_from_slice(b),
            (Lanes::F64(a), Lanes::F64(b)) => a.extend_from_slice(b),
            (Lanes::I64(a), Lanes::I64(b)) => a.extend_from_slice(b),
            (Lanes::Complex(a), Lanes::Complex(b)) => a.extend_from_slice(b),
            _ => {}
        }
    }

    /// Keeps the first `at` lanes and returns the remaining lanes, if any.
    pub fn split_off(&mut self, at: usize) -> Lanes {
        let at = at.min(self.len());
        match self {
            Lanes::F32(v) => Lanes::F32(v.split_off(at)),
            Lanes::F64(v) => Lanes::F64(v.split_off(at)),
            Lanes::I64(v) => Lanes::I64(v.split_off(at)),
            Lanes::Complex(v) => Lanes::Complex(v.split_off(at)),
        }
    }

    /// Writes `src`, converted from dtype `from` to `to`, into `self`. Conversions are those of `Tensor.to`: floats to integers truncate (out of range as on
    /// x86-64), numbers other than zero become true, complex numbers lose their imaginary part, `Half` and `BFloat16` round.
    pub fn convert_from(&mut self, src: &Lanes, from: DType, to: DType) {
        if to == DType::Bool {
            let out = i64::of_mut(self);
            out.clear();
            match src {
                Lanes::F32(v) => out.extend(v.iter().map(|&x| i64::from(x != 0.0))),
                Lanes::F64(v) => out.extend(v.iter().map(|&x| i64::from(x != 0.0))),
                Lanes::I64(v) => out.extend(v.iter().map(|&x| i64::from(x != 0))),
                Lanes::Complex(v) => out.extend(v.iter().map(|&x| i64::from(x != Complex::ZERO))),
            }
            return;
        }
        match LaneKind::of(to) {
            LaneKind::F32 => {
                let out = f32::of_mut(self);
                out.clear();
                match src {
                    Lanes::F32(v) => out.extend_from_slice(v),
                    Lanes::F64(v) => out.extend(v.iter().map(|&x| x as f32)),
                    Lanes::I64(v) => out.extend(v.iter().map(|&x| x as f32)),
                    Lanes::Complex(v) => out.extend(v.iter().map(|x| x.re as f32)),
                }
            }
            LaneKind::F64 => {
                let out = f64::of_mut(self);
                out.clear();
                match src {
                    Lanes::F32(v) => out.extend(v.iter().map(|&x| f64::from(x))),
                    Lanes::F64(v) => out.extend_from_slice(v),
                    Lanes::I64(v) => out.extend(v.iter().map(|&x| x as f64)),
                    Lanes::Complex(v) => out.extend(v.iter().map(|x| x.re)),
                }
            }
            LaneKind::I64 => {
                let out = i64::of_mut(self);
                out.clear();
                match src {
                    Lanes::F32(v) => out.extend(v.iter().map(|&x| truncate(f64::from(x), to))),
                    Lanes::F64(v) => out.extend(v.iter().map(|&x| truncate(x, to))),
                    Lanes::I64(v) => out.extend_from_slice(v),
                    Lanes::Complex(v) => out.extend(v.iter().map(|x| truncate(x.re, to))),
                }
            }
            LaneKind::Complex => {
                let out = Complex::<f64>::of_mut(self);
                out.clear();
                match src {
                    Lanes::F32(v) => out.extend(v.iter().map(|&x| Complex::new(f64::from(x), 0.0))),
                    Lanes::F64(v) => out.extend(v.iter().map(|&x| Complex::new(x, 0.0))),
                    Lanes::I64(v) => out.extend(v.iter().map(|&x| Complex::new(x as f64, 0.0))),
                    Lanes::Complex(v) => out.extend_from_slice(v),
                }
            }
        }
        if from != to {
            self.round_to(to);
        }
    }

    /// Rounds every lane to the range and precision of `dtype`: integers wrap, f16 and bf16 round.
    pub fn round_to(&mut self, dtype: DType) {
        match (self, dtype) {
            (Lanes::F32(v), DType::Half) => v.iter_mut().for_each(|x| *x = f16::from_f32(*x).to_f32()),
            (Lanes::F32(v), DType::BFloat16) => v.iter_mut().for_each(|x| *x = bf16::from_f32(*x).to_f32()),
            (Lanes::I64(v), _) => wrap_integers(v, dtype),
            (Lanes::Complex(v), DType::ComplexFloat) => {
                v.iter_mut()
                    .for_each(|x| *x = Complex::new(f64::from(x.re as f32), f64::from(x.im as f32)));
            }
            (Lanes::Complex(v), DType::ComplexHalf) => {
                let round = |x: f64| f16::from_f64(x).to_f64();
                v.iter_mut().for_each(|x| *x = Complex::new(round(x.re), round(x.im)));
            }
            _ => {}
        }
    }
}

/// Wraps integers to the value range of `dtype`; Bool becomes 0 or 1.
pub fn wrap_integers(v: &mut [i64], dtype: DType) {
    match dtype {
        DType::Byte | DType::QUInt8 => v.iter_mut().for_each(|x| *x = i64::from(*x as u8)),
        DType::Char | DType::QInt8 => v.iter_mut().for_each(|x| *x = i64::from(*x as i8)),
        DType::Short => v.iter_mut().for_each(|x| *x = i64::from(*x as i16)),
        DType::Int | DType::QInt32 => v.iter_mut().for_each(|x| *x = i64::from(*x as i32)),
        DType::Bool => v.iter_mut().for_each(|x| *x = i64::from(*x != 0)),
        _ => {}
    }
}

/// Converts a float to an integer as PyTorch does on x86-64. A value out of range becomes the most negative integer of the conversion's width (64 bits for
/// `Long`, 32 for narrower types).
fn truncate(x: f64, to: DType) -> i64 {
    if to != DType::Long {
        let inside = x > -2_147_483_649.0 && x < 2_147_483_648.0;
        return if inside { x as i64 } else { i64::from(i32::MIN) };
    }
    let inside = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&x);
    if inside { x as i64 } else { i64::MIN }
}

/// Returns a register with one lane: `value` converted to `dtype`.
pub(crate) fn scalar_lanes(value: Scalar, dtype: DType) -> Lanes {
    let (lanes, from) = match value {
        Scalar::Bool(b) => (Lanes::I64(vec![i64::from(b)]), DType::Bool),
        Scalar::Int(i) => (Lanes::I64(vec![i]), DType::Long),
        Scalar::Float(f) => (Lanes::F64(vec![f]), DType::Double),
        Scalar::Complex(c) => (Lanes::Complex(vec![c]), DType::ComplexDouble),
    };
    let mut out = Lanes::new(dtype);
    out.convert_from(&lanes, from, dtype);
    out
}
