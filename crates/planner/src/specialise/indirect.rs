//! Operations whose success depends on elements, although their shapes do not: reads at run-time indices and integer divisions, both with a run-time check,
//! and runtime calls of operators that have no program.

use super::refusal::Refusal;
use super::state::Specialiser;
use super::store::tensors_in;
use crate::error::LowerError;
use frazil_ir::{DType, Graph, NodeId};
use frazil_runtime::build::{Accumulation, ProgramBuilder};
use frazil_runtime::expr::{BinaryOp, Expr, ExprId, ExprOp};
use frazil_runtime::gather::{Coordinate, Gather};
use frazil_runtime::op::{Operator, Results};
use frazil_runtime::structured::{Combine, Iteration, Program, Step, Structured, TensorId, TensorShape};
use frazil_runtime::value::{TensorCell, Value};
use frazil_tensor_ir::call::RuntimeCall;
use frazil_tensor_ir::graph::{Origin, TensorOp};
use frazil_tensor_ir::spec::ResultSpec;
use frazil_tensor_ir::transform::fold_constants::fold;
use frazil_tensor_ir::transform::rewriter::{AllowAll, Rewriter};

impl Specialiser<'_> {
    /// Appends a gather, and for each of its index tensors a check that all indices are in range.
    pub(super) fn gather(&mut self, g: Gather, origins: &[Origin]) -> Result<TensorId, LowerError> {
        let extents = self.tensors.shape(g.tensor).sizes.clone();
        for (coordinate, &extent) in g.coordinates.iter().zip(&extents) {
            if let Coordinate::Value { tensor, .. } = coordinate
                && g.checks_values(extent)
                && self.tensors.shape(*tensor).numel() > 0
            {
                // Indices into a table of constants are already known.
                fold(&mut Rewriter::new(&mut self.tensors, &mut AllowAll), *tensor);
                self.check_range(&g, *tensor, extent, origins)?;
            }
        }
        let shape = g.output.clone();
        let op = TensorOp::Gather(Box::new(g));
        Ok(self.tensors.push(shape, op, origins.to_vec()))
    }

    fn check_range(&mut self, g: &Gather, index: TensorId, extent: i64, origins: &[Origin]) -> Result<(), LowerError> {
        let valid = g.valid(extent);
        let raises = |message: String| LowerError::Raises { message };
        if extent == 0 {
            return Err(raises(g.out_of_range(0, 0)));
        }
        if let Some(data) = self.tensors.as_constant(index) {
            let values = frazil_runtime::import::Importer::new()
                .tensor(data)
                .map(|t| t.get().to_i64_vec());
            let outside = values.unwrap_or_default().into_iter().find(|v| !valid.contains(v));
            return match outside {
                Some(v) => Err(raises(g.out_of_range(v, extent))),
                None => Ok(()),
            };
        }
        let place = origins.first().map(Origin::to_string).unwrap_or_default();
        let message = format!(
            "{place}: {}",
            g.message
                .replace("{index}", "...")
                .replace("{size}", &extent.to_string())
        );
        let shape = self.tensors.shape(index).clone();
        let program = outside_program(shape, &valid).map_err(|e| LowerError::Malformed(e.to_string()))?;
        if let Some(Step::Compute(s)) = program.steps.into_iter().next() {
            let mut s = *s;
            s.inputs.iter_mut().for_each(|a| a.tensor = index);
            let id = self.tensors.nest(s, origins.to_vec());
            self.checks.push((id, message));
        }
        Ok(())
    }

    /// Appends a run-time check that the body of a nest divides no integer by zero, unless this is known at compile time.
    ///
    /// # Errors
    /// If the nest divides by the constant 0.
    pub(super) fn check_divisors(&mut self, s: &Structured, origins: &[Origin]) -> Result<(), LowerError> {
        if s.domain.contains(&0) {
            return Ok(());
        }
        let message = || {
            let place = origins.first().map(Origin::to_string).unwrap_or_default();
            format!("{place}: ZeroDivisionError")
        };
        match divides_by_zero(s) {
            Division::Valid => {}
            Division::ByZero => return Err(LowerError::Raises { message: message() }),
            Division::Depends(check) => {
                let id = self.tensors.nest(*check, origins.to_vec());
                self.checks.push((id, message()));
            }
        }
        Ok(())
    }

    /// Appends a call of an operator without a program, whose results have the sizes of `like`.
    pub(super) fn runtime_call(
        &mut self,
        graph: &Graph,
        node: NodeId,
        op: &Operator,
        values: &[Value],
        like: &Results,
    ) -> Result<Vec<Value>, Refusal> {
        let shapes = like.iter().map(|v| {
            let t = v.as_tensor()?;
            Some(TensorShape {
                dtype: t.dtype(),
                sizes: t.sizes().into(),
            })
        });
        let results: Vec<TensorShape> = shapes
            .collect::<Option<_>>()
            .ok_or("gives something other than tensors")?;
        let call = self.call_of(graph, node, op, values, results)?;
        let message = call.name();
        let origins = self.origin(graph, node);
        let mut given = Vec::new();
        let mut all = self.tensors.call(call, origins);
        if let Some(raised) = all.pop() {
            self.checks.push((raised, message));
        }
        for (id, like) in all.into_iter().zip(like) {
            let shape = self.tensors.shape(id).clone();
            let cell = self.store.fresh(id, &shape, false)?;
            // As of a program's results: the program may ask for strides, and they say what is a view and what a copy.
            if let Some(like) = like.as_tensor() {
                self.store.lay_out(&cell, like.strides());
            }
            given.push(Value::Tensor(cell));
        }
        Ok(given)
    }

    /// Removes the checks from index `first` on, and returns those that are needed. The check of a runtime call is not needed if the call is executed anyway,
    /// because `wanted` or other checks depend on its results.
    pub(super) fn checks_for(&mut self, first: usize, wanted: &[TensorId]) -> Vec<(TensorId, String)> {
        let mut all = self.checks.split_off(first);
        let call_of = |id: TensorId| match self.tensors.node(id).op {
            TensorOp::CallResult { call, .. } => Some(call),
            _ => None,
        };
        let others = all.iter().map(|(id, _)| *id).filter(|&id| call_of(id).is_none());
        let mut wanted: Vec<TensorId> = others.chain(wanted.iter().copied()).collect();
        let mut live = self.tensors.reachable_from(&wanted);
        // The last call first: it may read what the others give.
        let mut kept = Vec::new();
        while let Some((id, message)) = all.pop() {
            if call_of(id).is_some_and(|h| live[h.index()]) {
                continue;
            }
            if call_of(id).is_some() {
                wanted.push(id);
                live = self.tensors.reachable_from(&wanted);
            }
            kept.push((id, message));
        }
        kept.reverse();
        kept
    }

    /// Returns a call of an operator without a program, on the current contents of `values`.
    pub(super) fn call_of(
        &mut self,
        graph: &Graph,
        node: NodeId,
        op: &Operator,
        values: &[Value],
        results: Vec<TensorShape>,
    ) -> Result<RuntimeCall, Refusal> {
        let mut inputs: Vec<TensorCell> = Vec::new();
        let arguments = values
            .iter()
            .map(|v| argument(v, &mut inputs))
            .collect::<Option<Vec<_>>>();
        let arguments = arguments.ok_or("takes a dictionary or an object")?;
        let inputs = inputs
            .iter()
            .map(|c| self.read(c))
            .collect::<Result<Vec<TensorId>, _>>()?;
        Ok(RuntimeCall {
            op: op.clone(),
            ctx: self.ctx.clone(),
            arguments,
            input_shapes: inputs.iter().map(|&t| self.tensors.shape(t).clone()).collect(),
            inputs,
            results,
            output_types: graph.node_outputs(node).iter().map(|&v| graph.ty(v)).collect(),
            attributes: graph.attributes(node).to_vec(),
        })
    }
}

/// Appends the tensors in `value` to `inputs`, and returns the value with indices into `inputs` in their place; `None` if a runtime call cannot have such an
/// argument.
fn argument(value: &Value, inputs: &mut Vec<TensorCell>) -> Option<ResultSpec> {
    let mut inside = Vec::new();
    tensors_in(value, &mut inside);
    if inside.is_empty() {
        return Some(ResultSpec::Value(value.clone()));
    }
    let mut all = |items: &[Value]| items.iter().map(|v| argument(v, inputs)).collect::<Option<Vec<_>>>();
    match value {
        Value::Tensor(cell) => {
            inputs.push(cell.clone());
            Some(ResultSpec::Tensor(inputs.len() as u32 - 1))
        }
        Value::List(l) => Some(ResultSpec::List(l.element, all(&l.items())?)),
        Value::Tuple(t) => Some(ResultSpec::Tuple(t.ty, all(&t.items)?)),
        _ => None,
    }
}

/// Whether a loop nest divides integers by zero.
enum Division {
    /// The nest divides integers only by non-zero constants, or not at all.
    Valid,
    /// The nest divides an integer by the constant 0.
    ByZero,
    /// The divisors are known only at run time. The payload is a loop nest that computes a 0-d bool: whether a divisor is zero.
    Depends(Box<Structured>),
}

/// Determines whether the body of `s` divides integers by zero.
fn divides_by_zero(s: &Structured) -> Division {
    let mut body = s.body.clone();
    let divisors = s.body.nodes().iter().filter_map(|node| match node.op {
        ExprOp::Binary(
            BinaryOp::Div | BinaryOp::DivTrunc | BinaryOp::DivFloor | BinaryOp::Fmod | BinaryOp::Remainder,
            _,
            divisor,
        ) if node.dtype.is_integral() => Some(divisor),
        _ => None,
    });
    let mut any: Option<ExprId> = None;
    for divisor in divisors {
        match constant_integer(&s.body, divisor) {
            Some(0) => return Division::ByZero,
            Some(_) => continue,
            None => {}
        }
        let zero = body.int(0, body.node(divisor).dtype);
        let is_zero = body.binary(BinaryOp::Eq, divisor, zero);
        any = Some(match any {
            Some(any) => body.binary(BinaryOp::Or, any, is_zero),
            None => is_zero,
        });
    }
    let Some(any) = any else { return Division::Valid };
    let domain = s.domain.clone();
    Division::Depends(Box::new(Structured {
        iterations: domain.iter().map(|_| Iteration::Reduction).collect(),
        combine: (!domain.is_empty()).then_some(Combine::Or),
        domain,
        inputs: s.inputs.clone(),
        body: body.finish(any),
        accumulate: DType::Bool,
        finish: None,
        finish_inputs: Default::default(),
        output: TensorShape {
            dtype: DType::Bool,
            sizes: Default::default(),
        },
    }))
}

/// Returns the value of `id` if it is an integer constant, wrapped to its dtype: 256 as a `Byte` is 0. `None` for other expressions.
fn constant_integer(body: &Expr, id: ExprId) -> Option<i64> {
    let node = body.node(id);
    let value = match node.op {
        ExprOp::Const(n) => n.as_i64(),
        ExprOp::Cast(inner) => constant_integer(body, inner)?,
        _ => return None,
    };
    Some(match node.dtype {
        DType::Bool => i64::from(value != 0),
        DType::Byte => i64::from(value as u8),
        DType::Char => i64::from(value as i8),
        DType::Short => i64::from(value as i16),
        DType::Int => i64::from(value as i32),
        _ => value,
    })
}

/// Returns the program that computes whether any element of a tensor is outside of `valid`, as one bool.
fn outside_program(shape: TensorShape, valid: &std::ops::Range<i64>) -> Result<Program, frazil_runtime::op::OpError> {
    let dims: Vec<usize> = (0..shape.sizes.len()).collect();
    let (low, high) = (valid.start, valid.end);
    let mut p = ProgramBuilder::over(vec![shape]);
    let accumulation = Accumulation {
        combine: Combine::Or,
        accumulate: DType::Bool,
        output: DType::Bool,
    };
    let out = p.reduce(
        &[TensorId::new(0)],
        &dims,
        false,
        accumulation,
        |f, x| {
            let x = x[0].cast(DType::Long);
            x.lt(f.int(low, DType::Long)).or(x.ge(f.int(high, DType::Long)))
        },
        None,
    )?;
    p.finish(&[out])
}
