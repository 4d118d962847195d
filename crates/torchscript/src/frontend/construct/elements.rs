//! What constructors compute with tensors element by element: tables of sines, masks.

use frazil_ir::DType;
use ruff_python_ast::{Expr, Operator};

use super::operators::float_operator;
use super::tensor::HostTensor;
use super::value::Py;
use super::{Maker, Scope};
use crate::frontend::Result;

/// A part of a tensor's index.
#[derive(Clone, Copy)]
pub(super) enum Pick {
    At(i64),
    Slice(Option<i64>, Option<i64>, i64),
    NewDim,
    Rest,
}

/// What an index selects: sizes, and where each element stands in the tensor.
pub(super) struct Selection {
    pub(super) sizes: Vec<i64>,
    pub(super) positions: Vec<usize>,
}

impl HostTensor {
    /// What `picks` select, if they fit.
    pub(super) fn select(&self, picks: &[Pick]) -> Option<Selection> {
        let named = picks
            .iter()
            .filter(|p| matches!(p, Pick::At(_) | Pick::Slice(..)))
            .count();
        let rest = self.sizes.len().checked_sub(named)?;
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
        let mut strides = vec![1usize; self.sizes.len()];
        for dim in (1..self.sizes.len()).rev() {
            strides[dim - 1] = strides[dim] * usize::try_from(self.sizes[dim]).ok()?;
        }
        let (mut sizes, mut positions, mut dim) = (Vec::new(), vec![0usize], 0);
        for pick in full {
            let offsets: Vec<usize> = match pick {
                Pick::Rest => return None,
                Pick::NewDim => {
                    sizes.push(1);
                    continue;
                }
                Pick::At(at) => {
                    let size = *self.sizes.get(dim)?;
                    let at = if at < 0 { at + size } else { at };
                    vec![usize::try_from(at).ok().filter(|&at| (at as i64) < size)?]
                }
                Pick::Slice(start, stop, step) => {
                    let size = *self.sizes.get(dim)?;
                    let bound = |at: i64| (if at < 0 { at + size } else { at }).clamp(0, size);
                    let range = start.map_or(0, bound)..stop.map_or(size, bound);
                    let step = usize::try_from(step).ok().filter(|&step| step > 0)?;
                    let offsets: Vec<usize> = range.step_by(step).map(|at| at as usize).collect();
                    sizes.push(offsets.len() as i64);
                    offsets
                }
            };
            let stride = strides[dim];
            positions = positions
                .iter()
                .flat_map(|&p| offsets.iter().map(move |o| p + o * stride))
                .collect();
            dim += 1;
        }
        Some(Selection { sizes, positions })
    }

    /// The selected elements. They are copies, which code that writes to them must not take for views.
    pub(super) fn part(&self, selection: &Selection) -> Option<HostTensor> {
        let data = self.data.borrow();
        let element = |i: usize| {
            selection
                .positions
                .get(i)
                .and_then(|&p| data.get(p))
                .copied()
                .unwrap_or(0.0)
        };
        let part = HostTensor::new(self.dtype, selection.sizes.clone(), element)?;
        Some(HostTensor { is_part: true, ..part })
    }

    /// Writes `value` to the selected elements, broadcast.
    pub(super) fn set_part(&self, selection: &Selection, value: &Py) -> Option<()> {
        let value = match value {
            Py::Tensor(tensor) | Py::Parameter(tensor) => tensor.clone(),
            number => {
                let number = number.as_f64()?;
                HostTensor::new(DType::Double, Vec::new(), |_| number)?
            }
        };
        let from = broadcast_positions(&value.sizes, &selection.sizes)?;
        let values: Vec<f64> = from
            .iter()
            .map(|&p| value.data.borrow().get(p).copied().unwrap_or(0.0))
            .collect();
        let mut new = self.data.borrow().clone();
        for (&to, value) in selection.positions.iter().zip(values) {
            *new.get_mut(to)? = value;
        }
        self.fill(|i| new.get(i).copied().unwrap_or(0.0));
        Some(())
    }

    /// `f` of the elements of two tensors, broadcast.
    pub(super) fn zip(&self, other: &HostTensor, dtype: DType, f: impl Fn(f64, f64) -> f64) -> Option<HostTensor> {
        let rank = self.sizes.len().max(other.sizes.len());
        let size = |sizes: &[i64], at: usize| match (at + sizes.len()).checked_sub(rank) {
            Some(at) => sizes.get(at).copied().unwrap_or(1),
            None => 1,
        };
        let sizes: Vec<i64> = (0..rank)
            .map(|at| match (size(&self.sizes, at), size(&other.sizes, at)) {
                (a, b) if a == b || b == 1 => Some(a),
                (1, b) => Some(b),
                _ => None,
            })
            .collect::<Option<_>>()?;
        // Checks how large the result is before anything is made of that size.
        HostTensor::is_allowed(&sizes).then_some(())?;
        let (a, b) = (
            broadcast_positions(&self.sizes, &sizes)?,
            broadcast_positions(&other.sizes, &sizes)?,
        );
        let (x, y) = (self.data.borrow(), other.data.borrow());
        let at = |data: &[f64], map: &[usize], i: usize| map.get(i).and_then(|&p| data.get(p)).copied().unwrap_or(0.0);
        HostTensor::new(dtype, sizes, |i| f(at(&x, &a, i), at(&y, &b, i)))
    }

    /// With two dimensions in each other's place.
    pub(super) fn transposed(&self, a: i64, b: i64) -> Option<HostTensor> {
        let rank = self.sizes.len() as i64;
        let dim = |at: i64| {
            usize::try_from(if at < 0 { at + rank } else { at })
                .ok()
                .filter(|&at| (at as i64) < rank)
        };
        let (a, b) = (dim(a)?, dim(b)?);
        let mut sizes = self.sizes.clone();
        sizes.swap(a, b);
        let mut strides = vec![1usize; sizes.len()];
        for dim in (1..self.sizes.len()).rev() {
            strides[dim - 1] = strides[dim] * usize::try_from(self.sizes[dim]).ok()?;
        }
        strides.swap(a, b);
        let data = self.data.borrow();
        let moved = HostTensor::new(self.dtype, sizes.clone(), |i| {
            let (mut rest, mut position) = (i, 0);
            for (&size, &stride) in sizes.iter().zip(&strides).rev() {
                position += rest % (size as usize).max(1) * stride;
                rest /= (size as usize).max(1);
            }
            data.get(position).copied().unwrap_or(0.0)
        })?;
        Some(HostTensor { is_part: true, ..moved })
    }

    /// The part of a matrix above or below a diagonal, zeros elsewhere.
    pub(super) fn triangle(&self, upper: bool, diagonal: i64) -> Option<HostTensor> {
        let &[.., columns] = self.sizes.as_slice() else {
            return None;
        };
        let rows = *self.sizes.get(self.sizes.len().checked_sub(2)?)?;
        let data = self.data.borrow();
        HostTensor::new(self.dtype, self.sizes.clone(), |i| {
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

/// For each element of `sizes` the element of `from` that broadcasting puts there.
fn broadcast_positions(from: &[i64], sizes: &[i64]) -> Option<Vec<usize>> {
    let lead = sizes.len().checked_sub(from.len())?;
    let mut strides = vec![0usize; sizes.len()];
    let mut stride = 1usize;
    for (at, &size) in from.iter().enumerate().rev() {
        match *sizes.get(at + lead)? {
            wanted if wanted == size => strides[at + lead] = stride,
            _ if size == 1 => {}
            _ => return None,
        }
        stride = stride.checked_mul(usize::try_from(size).ok()?)?;
    }
    let mut positions = vec![0usize];
    for (&size, &stride) in sizes.iter().zip(&strides) {
        positions = positions
            .iter()
            .flat_map(|&p| (0..size.max(0) as usize).map(move |i| p + i * stride))
            .collect();
    }
    Some(positions)
}

/// The function of one number that `torch` has under this name, where the result is floating.
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

/// What arithmetic on these two dtypes gives.
pub(super) fn promoted(op: Operator, a: DType, b: DType) -> DType {
    let rank = |dtype| match dtype {
        DType::Bool => 0,
        DType::Int => 1,
        DType::Long => 2,
        DType::Float => 3,
        _ => 4,
    };
    let wider = if rank(a) >= rank(b) { a } else { b };
    match wider {
        DType::Float | DType::Double => wider,
        _ if op == Operator::Div => DType::Float,
        _ => wider,
    }
}

/// `a op b` of two tensors.
pub(super) fn arithmetic(op: Operator, a: &HostTensor, b: &HostTensor) -> Option<HostTensor> {
    let f = float_operator(op)?;
    a.zip(b, promoted(op, a.dtype, b.dtype), f)
}

impl Maker<'_, '_> {
    /// The parts of a tensor's index; `None` when there is one that only Python can select by.
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
                    Py::Int(at) => Pick::At(at),
                    _ => return Ok(None),
                },
            });
        }
        Ok(Some(picks))
    }
}
