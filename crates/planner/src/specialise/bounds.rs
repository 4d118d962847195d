//! Checks of the steps of programs: compiled code may contain well-formed steps only, whose offsets and numbers of iterations cannot overflow.

use frazil_runtime::eval::ExprEval;
use frazil_runtime::expr::{Expr, ExprOp};
use frazil_runtime::gather::Coordinate;
use frazil_runtime::structured::{Access, Step, Structured, TensorId, TensorShape, ViewKind};
use frazil_tensor_ir::affine::reach;

/// Maximum number of iterations of a loop nest, where a loop without iterations counts as one. More iterations would never end, and costs that are computed
/// from the number do not overflow.
const MAX_ITERATIONS: i64 = 1 << 48;

/// Checks a step that reads tensors with the shapes `shape_of`. If it fails, the interpreter runs the step and raises its exception.
///
/// # Errors
/// The reason why a step is refused.
pub(super) fn check<'t>(
    step: &Step,
    shape_of: impl Fn(TensorId) -> Option<&'t TensorShape>,
) -> Result<(), &'static str> {
    if !is_bounded(step, &shape_of) {
        return Err("its sizes, strides or padding are too large for compiled code");
    }
    match step {
        Step::Compute(s) if !is_typed(s, &shape_of) => Err("its operands have dtypes that it does not take"),
        _ => Ok(()),
    }
}

fn is_bounded<'t>(step: &Step, shape_of: &impl Fn(TensorId) -> Option<&'t TensorShape>) -> bool {
    let (loops, output) = match step {
        Step::Compute(s) => (&s.domain, &s.output),
        Step::Gather(g) => (&g.output.sizes, &g.output),
        Step::View(v) => (&v.output.sizes, &v.output),
    };
    if iterations(loops).is_none() || iterations(&output.sizes).is_none() {
        return false;
    }
    let sizes_of = |id: TensorId| shape_of(id).map_or(&[][..], |shape| &shape.sizes);
    match step {
        Step::Compute(s) => {
            let mut accesses = s.inputs.iter().chain(&s.finish_inputs);
            accesses.all(|a| reach(&a.map, sizes_of(a.tensor), loops).is_some())
        }
        Step::Gather(g) => g.coordinates.iter().zip(sizes_of(g.tensor)).all(|(c, &size)| match c {
            Coordinate::Affine(map) => reach(std::slice::from_ref(map), &[size], loops).is_some(),
            Coordinate::Value { tensor, map } => reach(map, sizes_of(*tensor), loops).is_some(),
        }),
        Step::View(v) => match &v.kind {
            ViewKind::Affine(map) => reach(map, sizes_of(v.tensor), loops).is_some(),
            ViewKind::Reshape => true,
        },
    }
}

/// Returns whether the operands of a loop nest have the dtypes that its operations expect, as the interpreter checks.
fn is_typed<'t>(s: &Structured, shape_of: &impl Fn(TensorId) -> Option<&'t TensorShape>) -> bool {
    let reads = |expr: &Expr, inputs: &[Access], first: usize| {
        expr.nodes().iter().all(|node| match node.op {
            ExprOp::Input(n) => (n as usize).checked_sub(first).is_none_or(|n| {
                let shape = inputs.get(n).and_then(|a| shape_of(a.tensor));
                shape.is_some_and(|shape| shape.dtype == node.dtype)
            }),
            _ => true,
        })
    };
    // Of no elements, the interpreter finds out no more than whether the functions are defined on the dtypes.
    let is_defined = |expr: &Expr| ExprEval::new(expr).is_ok_and(|mut e| e.run(0, &mut |_, _| {}).is_ok());
    let finish = s.finish.as_ref();
    is_defined(&s.body)
        && finish.is_none_or(|f| is_defined(f) && reads(f, &s.finish_inputs, 1))
        && reads(&s.body, &s.inputs, 0)
}

/// Returns the product of `sizes`, each counted as at least one; `None` above the limit.
pub(super) fn iterations(sizes: &[i64]) -> Option<i64> {
    let mut sizes = sizes.iter().map(|&n| n.max(1));
    let product = sizes.try_fold(1i64, |product, n| product.checked_mul(n))?;
    (product <= MAX_ITERATIONS).then_some(product)
}
