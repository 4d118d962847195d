//! Evaluation of `torch.tensor`: tensors from nested lists of numbers.

use frazil_ir::DType;
use num_complex::Complex64;

use super::dtypes::{self, MAX_EXACT, wrapped};
use super::tensor::{HostTensor, MAX_ELEMENTS};
use super::value::Py;

/// The elements of nested lists of numbers, with their sizes.
struct Literal {
    sizes: Vec<i64>,
    data: Vec<Complex64>,
    /// Whether there are elements that are floats, bools, integers, complex numbers, in this order.
    kinds: [bool; 4],
}

impl Literal {
    fn walk(&mut self, value: &Py, depth: usize) -> Option<()> {
        let value = match value {
            Py::Tensor(tensor) | Py::Parameter(tensor) if tensor.rank() == 0 && tensor.dtype() == DType::Float => {
                &Py::Float(tensor.values().first().copied()?)
            }
            other => other,
        };
        if let Py::List(_) | Py::Tuple(_) | Py::Size(_) | Py::Named(_) = value {
            let items = value.items()?;
            match self.sizes.get(depth) {
                // Elements before this one have fewer dimensions.
                None if !self.data.is_empty() => return None,
                None if depth < 64 => self.sizes.push(items.len() as i64),
                Some(&size) if size == items.len() as i64 => {}
                _ => return None,
            }
            return items.iter().try_for_each(|item| self.walk(item, depth + 1));
        }
        let kind = match value {
            Py::Float(_) => 0,
            Py::Bool(_) => 1,
            Py::Complex(_) => 3,
            _ => 2,
        };
        self.kinds[kind] = true;
        if self.data.len() as i64 >= MAX_ELEMENTS {
            return None;
        }
        self.data.push(value.as_complex()?);
        (depth == self.sizes.len()).then_some(())
    }

    fn of(value: &Py) -> Option<Literal> {
        let mut literal = Literal {
            sizes: Vec::new(),
            data: Vec::new(),
            kinds: [false; 4],
        };
        literal.walk(value, 0)?;
        Some(literal)
    }

    fn dtype(&self) -> DType {
        match self.kinds {
            [.., true] => DType::ComplexFloat,
            [false, true, false, _] => DType::Bool,
            [false, _, true, _] => DType::Long,
            _ => DType::Float,
        }
    }
}

/// Returns a tensor with the elements of nested lists of numbers.
pub(super) fn literal(value: &Py, dtype: Option<DType>) -> Option<HostTensor> {
    let literal = Literal::of(value)?;
    let found = literal.dtype();
    let exact = literal
        .data
        .iter()
        .all(|x| x.re.abs() <= MAX_EXACT || !x.re.is_finite());
    (exact || found != DType::Long).then_some(())?;
    let dtype = dtype.unwrap_or(found);
    let number = |i: usize| literal.data.get(i).copied().unwrap_or_default();
    if dtype.is_complex() {
        return HostTensor::of_complex(dtype, literal.sizes.clone(), number);
    }
    (!literal.kinds[3]).then_some(())?;
    // An unsigned element takes negative integers down to the least signed one.
    let is_whole = !literal.kinds[0];
    HostTensor::new(dtype, literal.sizes.clone(), |i| match number(i).re {
        x if is_whole && dtype == DType::Byte && (-255.0..0.0).contains(&x) => wrapped(dtype, x),
        x => x,
    })
}

/// Returns PyTorch's message about a number that `torch.tensor(value, dtype)` cannot represent.
pub(super) fn literal_error(value: &Py, dtype: DType) -> Option<String> {
    let literal = Literal::of(value)?;
    if literal.kinds[3] && !dtype.is_complex() {
        return Some("must be real number, not complex".into());
    }
    let (least, greatest) = dtypes::bounds(dtype)?;
    let least = if dtype == DType::Byte { -greatest } else { least };
    let is_out = literal.data.iter().any(|x| !(least..=greatest).contains(&x.re.trunc()));
    is_out.then(|| format!("value cannot be converted to type {} without overflow", c_name(dtype)))
}

fn c_name(dtype: DType) -> &'static str {
    match dtype {
        DType::Byte => "uint8",
        DType::Char => "int8",
        DType::Short => "int16",
        _ => "int32",
    }
}
