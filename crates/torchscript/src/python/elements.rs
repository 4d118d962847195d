//! Element-wise operations on the tensors that constructors compute: tables of sines, masks.

use frazil_ir::DType;
use frazil_runtime::Scalar;
use frazil_runtime::promote::{ResultType, can_cast};
use ruff_python_ast::{CmpOp, Expr, Operator};

use super::complex;
use super::dtypes::wrapped;
use super::maker::{Maker, Scope};
use super::operators::float_operator;
use super::tensor::{HostTensor, View, broadcast_positions};
use super::value::Py;
use crate::error::Result;

/// One part of a tensor's index: `x[part, part]`.
#[derive(Clone, Copy)]
pub(super) enum Pick {
    At(i64),
    Slice(Option<i64>, Option<i64>, i64),
    NewDim,
    Rest,
}

impl HostTensor {
    /// Returns the view that the parts `picks` of an index select; `None` if they do not fit the dimensions.
    pub(super) fn select(&self, picks: &[Pick]) -> Option<HostTensor> {
        let view = self.view_of();
        let named = picks
            .iter()
            .filter(|p| matches!(p, Pick::At(_) | Pick::Slice(..)))
            .count();
        let rest = view.sizes.len().checked_sub(named)?;
        let mut full: Vec<Pick> = Vec::new();
        let whole = std::iter::repeat_n(Pick::Slice(None, None, 1), rest);
        match picks.iter().position(|p| matches!(p, Pick::Rest)) {
            Some(at) => {
                full.extend_from_slice(&picks[..at]);
                full.extend(whole);
                full.extend_from_slice(&picks[at + 1..]);
            }
            None => {
                full.extend_from_slice(picks);
                full.extend(whole);
            }
        }
        let (mut sizes, mut strides, mut offset, mut dim) = (Vec::new(), Vec::new(), view.offset, 0);
        for pick in full {
            let (size, stride) = match pick {
                Pick::Rest => return None,
                Pick::NewDim => {
                    sizes.push(1);
                    strides.push(1);
                    continue;
                }
                _ => (*view.sizes.get(dim)?, *view.strides.get(dim)?),
            };
            dim += 1;
            match pick {
                Pick::At(at) => {
                    let at = if at < 0 { at + size } else { at };
                    offset += usize::try_from(at).ok().filter(|&at| (at as i64) < size)? * stride;
                }
                Pick::Slice(start, stop, step) => {
                    let bound = |at: i64| (if at < 0 { at.saturating_add(size) } else { at }).clamp(0, size);
                    let (start, stop) = (start.map_or(0, bound), stop.map_or(size, bound));
                    let step = usize::try_from(step).ok().filter(|&step| step > 0)?;
                    let count = usize::try_from((stop - start).max(0)).ok()?.div_ceil(step);
                    // An empty view has no first element, which might be one behind the last.
                    if count > 0 {
                        offset += start as usize * stride;
                    }
                    sizes.push(count as i64);
                    strides.push(if count > 1 { stride.checked_mul(step)? } else { stride });
                }
                Pick::Rest | Pick::NewDim => {}
            }
        }
        Some(HostTensor::of(View {
            sizes,
            strides,
            offset,
            ..view.clone()
        }))
    }

    /// Sets all elements to `value`, a tensor or number, which is broadcast.
    pub(super) fn assign(&self, value: &Py) -> Option<()> {
        match value {
            Py::Tensor(tensor) | Py::Parameter(tensor) => {
                // Further dimensions of size one in front do not matter.
                let extra = tensor.rank().saturating_sub(self.rank());
                let sizes = tensor.sizes();
                if extra == 0 {
                    return self.copy_from(tensor);
                }
                let rest = sizes.get(extra..)?.to_vec();
                sizes.iter().take(extra).all(|&size| size == 1).then_some(())?;
                self.copy_from(&tensor.copy()?.view(&rest)?)
            }
            Py::Complex(number) => self.fill_complex(|_| *number),
            number => {
                let number = number.as_f64()?;
                self.fill(|_| number)
            }
        }
    }

    /// Returns the broadcast sizes of two tensors, and for each element its position in either tensor.
    pub(super) fn broadcast(&self, other: &HostTensor) -> Option<(Vec<i64>, Vec<usize>, Vec<usize>)> {
        let (own, others) = (self.sizes(), other.sizes());
        let rank = own.len().max(others.len());
        let size = |sizes: &[i64], at: usize| match (at + sizes.len()).checked_sub(rank) {
            Some(at) => sizes.get(at).copied().unwrap_or(1),
            None => 1,
        };
        let sizes: Vec<i64> = (0..rank)
            .map(|at| match (size(&own, at), size(&others, at)) {
                (a, b) if a == b || b == 1 => Some(a),
                (1, b) => Some(b),
                _ => None,
            })
            .collect::<Option<_>>()?;
        // Checks how large the result is before anything is made of that size.
        HostTensor::is_allowed(&sizes).then_some(())?;
        let (a, b) = (
            broadcast_positions(&own, &sizes)?,
            broadcast_positions(&others, &sizes)?,
        );
        Some((sizes, a, b))
    }

    /// Returns `f` applied to the elements of two tensors, which broadcast; `None` for complex tensors.
    pub(super) fn zip(&self, other: &HostTensor, dtype: DType, f: impl Fn(f64, f64) -> f64) -> Option<HostTensor> {
        (!self.dtype().is_complex() && !other.dtype().is_complex()).then_some(())?;
        let (sizes, a, b) = self.broadcast(other)?;
        let (x, y) = (self.values(), other.values());
        let at = |data: &[f64], map: &[usize], i: usize| map.get(i).and_then(|&p| data.get(p)).copied().unwrap_or(0.0);
        HostTensor::new(dtype, sizes, |i| f(at(&x, &a, i), at(&y, &b, i)))
    }

    /// Returns a view with the dimensions `a` and `b` exchanged.
    pub(super) fn transposed(&self, a: i64, b: i64) -> Option<HostTensor> {
        let mut view = self.view_of().clone();
        let rank = view.sizes.len() as i64;
        let dim = |at: i64| {
            usize::try_from(if at < 0 { at + rank } else { at })
                .ok()
                .filter(|&at| (at as i64) < rank)
        };
        let (a, b) = (dim(a)?, dim(b)?);
        view.sizes.swap(a, b);
        view.strides.swap(a, b);
        Some(HostTensor::of(view))
    }

    /// Returns a view with an additional dimension of size one at position `at`.
    pub(super) fn unsqueezed(&self, at: i64) -> Option<HostTensor> {
        let mut view = self.view_of().clone();
        let rank = view.sizes.len();
        let at = if at < 0 { at + rank as i64 + 1 } else { at };
        let at = usize::try_from(at).ok().filter(|&at| at <= rank)?;
        let stride = match (view.sizes.get(at), view.strides.get(at)) {
            (Some(&size), Some(&stride)) => stride.saturating_mul(usize::try_from(size).unwrap_or(0)),
            _ => 1,
        };
        view.sizes.insert(at, 1);
        view.strides.insert(at, stride);
        Some(HostTensor::of(view))
    }

    /// Returns a matrix with the elements above or below a diagonal, and zeros elsewhere.
    pub(super) fn triangle(&self, upper: bool, diagonal: i64) -> Option<HostTensor> {
        let sizes = self.sizes();
        let &[.., columns] = sizes.as_slice() else {
            return None;
        };
        let rows = *sizes.get(sizes.len().checked_sub(2)?)?;
        (!self.dtype().is_complex()).then_some(())?;
        let data = self.values();
        HostTensor::new(self.dtype(), sizes, |i| {
            let column = i as i64 % columns.max(1);
            let row = i as i64 / columns.max(1) % rows.max(1);
            let kept = if upper {
                column - row >= diagonal
            } else {
                column - row <= diagonal
            };
            if kept { data.get(i).copied().unwrap_or(0.0) } else { 0.0 }
        })
    }
}

/// Returns the function of `torch` called `name`, if it has one operand and a floating-point result.
pub(super) fn unary(name: &str) -> Option<fn(f64) -> f64> {
    Some(match name {
        "sin" => f64::sin,
        "cos" => f64::cos,
        "tan" => f64::tan,
        "tanh" => f64::tanh,
        "exp" => f64::exp,
        "log" => f64::ln,
        "log2" => f64::log2,
        "log10" => f64::log10,
        "sqrt" => f64::sqrt,
        "rsqrt" => |x| 1.0 / x.sqrt(),
        "reciprocal" => f64::recip,
        "sigmoid" => |x| 1.0 / (1.0 + (-x).exp()),
        _ => return None,
    })
}

/// Returns the dtype in which PyTorch computes with two operands, if at least one is a tensor.
fn promoted(a: &Py, b: &Py) -> Option<DType> {
    let with = |result: ResultType, value: &Py| {
        Some(match value {
            Py::Tensor(tensor) | Py::Parameter(tensor) => result.tensor(tensor.dtype(), tensor.rank()),
            Py::Complex(number) => result.scalar(Scalar::Complex(*number)),
            Py::Float(number) => result.scalar(Scalar::Float(*number)),
            Py::Bool(flag) => result.scalar(Scalar::Bool(*flag)),
            Py::Int(number) => result.scalar(Scalar::Int(*number)),
            _ => return None,
        })
    };
    with(with(ResultType::new(), a)?, b)?.dtype()
}

/// Returns `value`, a tensor or number, as a tensor of dtype `dtype`, for arithmetic.
fn operand(value: &Py, dtype: DType) -> Option<HostTensor> {
    match value {
        Py::Tensor(tensor) | Py::Parameter(tensor) => tensor.cast(dtype),
        number => {
            let x = number.as_f64()?;
            // PyTorch computes with halves in single precision, and numbers stay as precise as that.
            let dtype = match dtype {
                DType::Half | DType::BFloat16 => DType::Float,
                other => other,
            };
            HostTensor::new(dtype, Vec::new(), |_| x)
        }
    }
}

/// Returns `a op b`, where at least one operand is a tensor.
pub(super) fn arithmetic(op: Operator, a: &Py, b: &Py) -> Option<HostTensor> {
    let common = promoted(a, b)?;
    if common.is_complex() {
        return complex::arithmetic(op, a, b, common);
    }
    let is_float = common.is_floating_point();
    let common = if op == Operator::Div && !is_float {
        DType::Float
    } else {
        common
    };
    let bitwise = |f: fn(i64, i64) -> i64| {
        let (x, y) = (operand(a, common)?, operand(b, common)?);
        (!is_float)
            .then(|| x.zip(&y, common, |x, y| f(x as i64, y as i64) as f64))
            .flatten()
    };
    match op {
        Operator::BitAnd => return bitwise(|x, y| x & y),
        Operator::BitOr => return bitwise(|x, y| x | y),
        Operator::BitXor => return bitwise(|x, y| x ^ y),
        _ if common == DType::Bool && !matches!(op, Operator::Add | Operator::Mult) => return None,
        _ => {}
    }
    let f = float_operator(op)?;
    let (x, y) = (operand(a, common)?, operand(b, common)?);
    // PyTorch raises for negative powers of integers, and for divisions of integers by zero.
    let raises = match op {
        Operator::Pow => !is_float && y.values().iter().any(|&y| y < 0.0),
        Operator::FloorDiv | Operator::Mod => !is_float && y.values().contains(&0.0),
        _ => false,
    };
    if raises {
        return None;
    }
    match is_float || op == Operator::Div {
        true => x.zip(&y, common, f),
        false => x.zip(&y, common, |x, y| wrapped(common, f(x, y))),
    }
}

/// Returns the element-wise comparison `a op b`, where at least one operand is a tensor.
pub(super) fn compared(op: CmpOp, a: &Py, b: &Py) -> Option<HostTensor> {
    let f: fn(f64, f64) -> bool = match op {
        CmpOp::Eq => |x, y| x == y,
        CmpOp::NotEq => |x, y| x != y,
        CmpOp::Lt => |x, y| x < y,
        CmpOp::LtE => |x, y| x <= y,
        CmpOp::Gt => |x, y| x > y,
        CmpOp::GtE => |x, y| x >= y,
        _ => return None,
    };
    let common = promoted(a, b)?;
    let (x, y) = (operand(a, common)?, operand(b, common)?);
    x.zip(&y, DType::Bool, |x, y| f64::from(u8::from(f(x, y))))
}

/// Executes `a op= b`, which writes to the elements of `a`. Returns `None` if the operation is not supported, or if `a` cannot contain its result.
pub(super) fn in_place(op: Operator, a: &HostTensor, b: &Py) -> Option<()> {
    let result = arithmetic(op, &Py::Tensor(a.clone()), b)?;
    (result.sizes() == a.sizes() && can_cast(result.dtype(), a.dtype())).then_some(())?;
    a.copy_from(&result)
}

impl Maker<'_> {
    /// Returns the parts of a tensor's index; `None` if a part is not supported.
    pub(super) fn picks(&mut self, scope: &mut Scope, index: &Expr) -> Result<Option<Vec<Pick>>> {
        let parts = match index {
            Expr::Tuple(tuple) => tuple.elts.as_slice(),
            one => std::slice::from_ref(one),
        };
        let mut picks = Vec::with_capacity(parts.len());
        for part in parts {
            picks.push(match part {
                Expr::EllipsisLiteral(_) => Pick::Rest,
                Expr::NoneLiteral(_) => Pick::NewDim,
                Expr::Slice(slice) => {
                    let mut bounds = [None; 3];
                    for (bound, part) in bounds.iter_mut().zip([&slice.lower, &slice.upper, &slice.step]) {
                        if let Some(part) = part {
                            match self.expr(scope, part)? {
                                Py::None => {}
                                Py::Int(value) => *bound = Some(value),
                                _ => return Ok(None),
                            }
                        }
                    }
                    Pick::Slice(bounds[0], bounds[1], bounds[2].unwrap_or(1))
                }
                part => match self.expr(scope, part)? {
                    Py::None => Pick::NewDim,
                    Py::Int(at) => Pick::At(at),
                    _ => return Ok(None),
                },
            });
        }
        Ok(Some(picks))
    }
}
