//! Complex numbers and complex tensors, as constructors compute them.

use frazil_ir::DType;
use frazil_ir::promotion::{complex_of, real_of};
use num_complex::Complex64;
use ruff_python_ast::Operator;

use super::tensor::{HostTensor, View};
use super::text::float_text;
use super::value::Py;

impl Py {
    /// Returns the value as a complex number, if it is a number.
    pub(super) fn as_complex(&self) -> Option<Complex64> {
        match self {
            Py::Complex(number) => Some(*number),
            other => other.as_f64().map(Complex64::from),
        }
    }
}

/// Returns `a op b` for two numbers, at least one of which is complex.
pub(super) fn number_operator(op: Operator, a: &Py, b: &Py) -> Option<Py> {
    let (x, y) = (a.as_complex()?, b.as_complex()?);
    // Python raises.
    (op != Operator::Div || y != Complex64::ZERO).then_some(())?;
    let result = match op {
        // Squares and the like are products in Python, too.
        Operator::Pow => match b.as_int() {
            Some(power @ 0..=100) => (0..power).fold(Complex64::ONE, |product, _| product * x),
            _ => return None,
        },
        op => operator(op)?(x, y),
    };
    Some(Py::Complex(result))
}

fn operator(op: Operator) -> Option<fn(Complex64, Complex64) -> Complex64> {
    Some(match op {
        Operator::Add => |a, b| a + b,
        Operator::Sub => |a, b| a - b,
        Operator::Mult => |a, b| a * b,
        Operator::Div => |a, b| match b.im == 0.0 {
            true => Complex64::new(a.re / b.re, a.im / b.re),
            false => quotient(a, b),
        },
        _ => return None,
    })
}

/// Returns `a / b`, scaled by the larger component of `b` as in C.
fn quotient(a: Complex64, b: Complex64) -> Complex64 {
    if b.re.abs() >= b.im.abs() {
        let ratio = b.im / b.re;
        let divisor = b.re + b.im * ratio;
        Complex64::new((a.re + a.im * ratio) / divisor, (a.im - a.re * ratio) / divisor)
    } else {
        let ratio = b.re / b.im;
        let divisor = b.re * ratio + b.im;
        Complex64::new((a.re * ratio + a.im) / divisor, (a.im * ratio - a.re) / divisor)
    }
}

/// Returns the text of a complex number as Python's `repr` does.
pub(super) fn text(number: Complex64) -> String {
    let part = |x: f64| {
        let text = float_text(x);
        text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
    };
    if number.re == 0.0 && number.re.is_sign_positive() {
        return format!("{}j", part(number.im));
    }
    let sign = if number.im.is_sign_negative() { "" } else { "+" };
    format!("({}{sign}{}j)", part(number.re), part(number.im))
}

/// Returns `value`, a tensor or number, as a tensor of complex dtype `dtype`.
pub(super) fn operand(value: &Py, dtype: DType) -> Option<HostTensor> {
    match value {
        Py::Tensor(tensor) | Py::Parameter(tensor) => tensor.cast(dtype),
        number => {
            let number = number.as_complex()?;
            HostTensor::of_complex(dtype, Vec::new(), |_| number)
        }
    }
}

/// Returns `a op b`, element-wise on tensors or numbers, in a complex dtype.
pub(super) fn arithmetic(op: Operator, a: &Py, b: &Py, dtype: DType) -> Option<HostTensor> {
    let f = operator(op)?;
    let (x, y) = (operand(a, dtype)?, operand(b, dtype)?);
    let (sizes, from, other) = x.broadcast(&y)?;
    let (left, right) = (x.complex_values(), y.complex_values());
    HostTensor::of_complex(dtype, sizes, |i| {
        let at = |values: &[Complex64], map: &[usize]| map.get(i).and_then(|&p| values.get(p)).copied();
        f(
            at(&left, &from).unwrap_or_default(),
            at(&right, &other).unwrap_or_default(),
        )
    })
}

/// Evaluates `torch.complex(real, imag)`.
pub(super) fn joined(real: &HostTensor, imaginary: &HostTensor) -> Option<HostTensor> {
    (real.sizes() == imaginary.sizes() && real.dtype() == imaginary.dtype()).then_some(())?;
    real.dtype().is_floating_point().then_some(())?;
    let (x, y) = (real.values(), imaginary.values());
    HostTensor::of_complex(complex_of(real.dtype()), real.sizes(), |i| {
        Complex64::new(x.get(i).copied().unwrap_or(0.0), y.get(i).copied().unwrap_or(0.0))
    })
}

impl HostTensor {
    /// Returns a view of the real (0) or imaginary (1) parts of a complex tensor.
    pub(super) fn part(&self, which: usize) -> Option<HostTensor> {
        let view = self.view_of();
        view.dtype.is_complex().then_some(())?;
        Some(HostTensor::of(View {
            dtype: real_of(view.dtype),
            strides: view.strides.iter().map(|stride| 2 * stride).collect(),
            offset: 2 * view.offset + which,
            ..view.clone()
        }))
    }

    /// Evaluates `torch.view_as_real(x)`.
    pub(super) fn as_real(&self) -> Option<HostTensor> {
        let parts = self.part(0)?;
        let mut view = parts.view_of().clone();
        view.sizes.push(2);
        view.strides.push(1);
        Some(HostTensor::of(view))
    }

    /// Returns a copy of a complex tensor with `f` applied to each element.
    pub(super) fn map_complex(&self, f: impl Fn(Complex64) -> Complex64) -> Option<HostTensor> {
        self.dtype().is_complex().then_some(())?;
        let values = self.complex_values();
        HostTensor::of_complex(self.dtype(), self.sizes(), |i| {
            f(values.get(i).copied().unwrap_or_default())
        })
    }

    /// Returns the absolute values of a complex tensor.
    pub(super) fn norms(&self) -> Option<HostTensor> {
        let values = self.complex_values();
        HostTensor::new(real_of(self.dtype()), self.sizes(), |i| {
            values.get(i).copied().unwrap_or_default().norm()
        })
    }
}
