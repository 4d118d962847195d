//! Operators on a tensor and a run-time scalar, by their overloads on two tensors; and checks that such scalars fit a dtype.

use super::refusal::Refusal;
use super::state::Specialiser;
use crate::error::LowerError;
use frazil_ir::{DType, Graph, NodeId};
use frazil_runtime::Variant;
use frazil_runtime::build::ProgramBuilder;
use frazil_runtime::entry::ScalarConversion;
use frazil_runtime::number::NumberKind;
use frazil_runtime::op::Operator;
use frazil_runtime::structured::{Step, TensorId};
use frazil_runtime::value::Value;

impl Specialiser<'_> {
    /// Returns the result of an overload on a tensor and a run-time scalar, by the overload that takes the scalar as a tensor; `None` if the entry specifies
    /// none.
    pub(super) fn with_scalar(
        &mut self,
        graph: &Graph,
        node: NodeId,
        op: &Operator,
        values: &[Value],
    ) -> Result<Option<Value>, Refusal> {
        let Some(variant) = op.traits().scalar_variant else {
            return Ok(None);
        };
        // The others compute in another dtype than the tensor's, whose elements would be written nowhere.
        if op.variant() != Variant::Functional && variant.conversion != ScalarConversion::Stored {
            return Ok(None);
        }
        let name = self.ctx.name(op.schema().name);
        let (at, by_tensor) = (variant.position, self.registry.find(name, variant.overload));
        let mut values = values.to_vec();
        let Some(own) = values[0].as_tensor().filter(|_| self.number(&values[0]).is_none()) else {
            return Ok(None);
        };
        let own = own.dtype();
        let Some(scalar) = values.get(at).filter(|v| self.number(v).is_some()).cloned() else {
            return Ok(None);
        };
        // Further scalars (alpha) and the rounding mode have to be known.
        for (i, value) in values.iter_mut().enumerate().skip(1) {
            if i != at {
                *value = self.all_known(value.clone())?;
            }
        }
        let Some((kind, own_kind)) = self.kind(&scalar).zip(NumberKind::of_dtype(own)) else {
            return Ok(None);
        };
        let is_rounded = values.get(at + 1).is_some_and(|mode| !matches!(mode, Value::None));
        // A tensor without dimensions counts as one more tensor in promotion, a scalar only by its kind.
        let dtype = match variant.conversion {
            ScalarConversion::Stored => {
                self.check_scalar_fits(&scalar, own)?;
                own
            }
            ScalarConversion::Quotient if !is_rounded && own_kind != NumberKind::Float => DType::Float,
            _ if own_kind >= kind => own,
            _ if kind == NumberKind::Float => DType::Float,
            _ => kind.dtype(),
        };
        // Sums and comparisons of f16 and bf16 round the scalar to that dtype, products and quotients take it as f32.
        let widens = matches!(
            variant.conversion,
            ScalarConversion::Widened | ScalarConversion::Quotient
        );
        let wide = widens && matches!(own, DType::Half | DType::BFloat16);
        if let Some(tensor) = self.as_tensor(&scalar, if wide { DType::Float } else { dtype })? {
            values[at] = tensor;
        }
        if !wide {
            return self.through(graph, node, by_tensor, &values);
        }
        let Some(widened) = self.as_dtype(&values[0], DType::Float)? else {
            return Ok(None);
        };
        values[0] = widened;
        match self.through(graph, node, by_tensor, &values)? {
            Some(result) => self.as_dtype(&result, own),
            None => Ok(None),
        }
        .map_err(Refusal::from)
    }

    /// Appends [`Specialiser::check_fits`] of a run-time scalar.
    pub(super) fn check_scalar_fits(&mut self, value: &Value, dtype: DType) -> Result<(), LowerError> {
        match value {
            Value::Tensor(cell) if self.number(value).is_some() => {
                let id = self.read(cell)?;
                self.check_fits(id, dtype)
            }
            _ => Ok(()),
        }
    }

    /// Appends a check that the only element of `id` fits `dtype`, unless every number of its dtype does.
    ///
    /// The check is stricter than PyTorch, where some operators wrap. If it fails, the interpreter runs the method.
    pub(super) fn check_fits(&mut self, id: TensorId, dtype: DType) -> Result<(), LowerError> {
        let shape = self.tensors.shape(id).clone();
        let Some(limit) = Limit::of(shape.dtype, dtype) else {
            return Ok(());
        };
        let malformed = |e: frazil_runtime::op::OpError| LowerError::Malformed(e.to_string());
        let mut p = ProgramBuilder::over(vec![shape]);
        let outside = p.map(&[TensorId::new(0)], DType::Bool, |f, x| match limit {
            Limit::Integers(low, high) => {
                let x = x[0].cast(DType::Long);
                x.lt(f.int(low, DType::Long)).or(x.gt(f.int(high, DType::Long)))
            }
            Limit::Floats(low, high) => {
                let x = x[0].cast(DType::Double);
                let outside = x.lt(f.float(low, DType::Double)).or(x.gt(f.float(high, DType::Double)));
                outside.or(x.ne(x))
            }
            Limit::Finite(most) => {
                let x = x[0].cast(DType::Double);
                let infinity = f.float(f64::INFINITY, DType::Double);
                let size = x.abs();
                size.gt(f.float(most, DType::Double)).and(size.lt(infinity))
            }
        });
        let program = p.finish(&[outside.map_err(malformed)?]).map_err(malformed)?;
        if let Some(Step::Compute(s)) = program.steps.into_iter().next() {
            let mut s = *s;
            s.inputs.iter_mut().for_each(|a| a.tensor = id);
            let check = self.tensors.nest(s, Vec::new());
            let message = format!(
                "value cannot be converted to type {} without overflow",
                dtype.python_name()
            );
            self.checks.push((check, message));
        }
        Ok(())
    }
}

/// The set of numbers of one dtype that fit another.
#[derive(Clone, Copy)]
enum Limit {
    /// Integers from the first to the second, inclusive.
    Integers(i64, i64),
    /// Floats from the first to the second, inclusive; not NaN.
    Floats(f64, f64),
    /// Floats of at most this magnitude, infinities and NaN.
    Finite(f64),
}

impl Limit {
    /// Returns the numbers of dtype `from` that fit `to`; `None` if all fit.
    fn of(from: DType, to: DType) -> Option<Limit> {
        let most = match to {
            DType::Half => Some(65504.0),
            DType::BFloat16 => Some(f64::from(f32::from_bits(0x7f7f_0000))),
            DType::Float => Some(f64::from(f32::MAX)),
            _ => None,
        };
        let range = match to {
            DType::Byte => Some((0, i64::from(u8::MAX))),
            DType::Char => Some((i64::from(i8::MIN), i64::from(i8::MAX))),
            DType::Short => Some((i64::from(i16::MIN), i64::from(i16::MAX))),
            DType::Int => Some((i64::from(i32::MIN), i64::from(i32::MAX))),
            DType::Long => Some((i64::MIN, i64::MAX)),
            _ => None,
        };
        match (NumberKind::of_dtype(from)?, range, most) {
            (NumberKind::Bool, ..) => None,
            // Negative integers wrap to unsigned ones.
            (NumberKind::Int, Some((0, high)), _) => Some(Limit::Integers(-high, high)),
            (NumberKind::Int, Some((low, high)), _) if to.size() < from.size() => Some(Limit::Integers(low, high)),
            (NumberKind::Int, None, Some(most)) if to == DType::Half => {
                Some(Limit::Integers(-(most as i64), most as i64))
            }
            (NumberKind::Int, ..) => None,
            // The greatest float below 2^63.
            (NumberKind::Float, Some((low, i64::MAX)), _) => {
                Some(Limit::Floats(low as f64, 9_223_372_036_854_774_784.0))
            }
            (NumberKind::Float, Some((low, high)), _) => Some(Limit::Floats(low as f64, high as f64)),
            (NumberKind::Float, None, Some(most)) if to.size() < from.size() => Some(Limit::Finite(most)),
            (NumberKind::Float, ..) => None,
        }
    }
}
