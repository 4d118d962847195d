//! The verifier: the invariants that every transformation may assume and has to preserve.
//!
//! - Operands have smaller ids than the tensors that are computed from them.
//! - dtype and sizes of a tensor are those that its operation computes. The parallel loops of a reduction may split dimensions of its result; those of
//!   other nests are its dimensions.
//! - Maps have a coefficient for each loop and a coordinate for each dimension. Views, the affine coordinates of gathers, and reads without a value for
//!   positions outside of their operand stay inside. All maps have a [`reach`], so that arithmetic on them cannot overflow.
//! - Operands of scalar operations come before them and have the dtypes that the operations require.
//! - A nest has a combiner if it has reduction loops. An epilogue does not depend on reduction loops.
//! - Each check belongs to an output that is a bool.
//! - The sizes of a tensor and of the iterations of a loop nest fit 60 bits, in elements.
//! - Symbols have different names, and ranges that contain their representatives. Extents are not negative, have the value of the tensor's sizes for the
//!   representatives, and vary only if that value is at least 2. As far as extents are known, reads over whole dimensions stay inside for all values of
//!   the symbols, reshapes keep the number of elements, and reductions iterate over dimensions of equal extents.

mod symbols;

use crate::affine::{reach, stays_within};
use crate::graph::{TensorGraph, TensorOp, accesses};
use frazil_ir::DType;
use frazil_runtime::expr::{Expr, ExprOp, UnaryOp};
use frazil_runtime::gather::{Coordinate, Gather};
use frazil_runtime::structured::{
    Access, Affine, Iteration, OutOfBounds, Structured, TensorId, TensorShape, ViewKind, ViewMap,
};
use std::fmt;

/// A violated rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The tensor whose operation violates the rule; `None` for outputs and checks.
    pub tensor: Option<TensorId>,
    /// The violated rule, and the place of the violation.
    pub message: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tensor {
            Some(id) => write!(f, "{id}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

/// Returns all violated rules of the live tensors, outputs and checks; none for a valid graph.
pub fn verify(graph: &TensorGraph) -> Vec<Failure> {
    let mut failures = Vec::new();
    for id in graph.live_ids() {
        if let Err(message) = operation(graph, id) {
            failures.push(Failure {
                tensor: Some(id),
                message,
            });
        }
    }
    let mut general = |message: &str| {
        failures.push(Failure {
            tensor: None,
            message: message.to_owned(),
        });
    };
    let (outputs, checks) = (graph.outputs(), graph.checks().len());
    match outputs.len().checked_sub(checks) {
        None => general("there are more checks than outputs"),
        Some(first) => {
            let is_flag = |id: &TensorId| {
                let shape = graph.shape(*id);
                shape.dtype == DType::Bool && shape.sizes.iter().all(|&n| n == 1)
            };
            if !outputs[first..].iter().all(is_flag) {
                general("a check is not a single bool");
            }
        }
    }
    // The rules of extents assume that the operations are valid.
    if failures.is_empty() {
        failures = symbols::verify(graph);
    }
    failures
}

type Checked = Result<(), String>;

fn require(condition: bool, message: impl Into<String>) -> Checked {
    if condition { Ok(()) } else { Err(message.into()) }
}

fn operation(graph: &TensorGraph, id: TensorId) -> Checked {
    let shape = graph.shape(id);
    for operand in graph.operands(id) {
        require(operand < id, format!("it reads {operand}, which is not defined before"))?;
    }
    require(shape.sizes.iter().all(|&n| n >= 0), "it has a negative size")?;
    require(is_bounded(&shape.sizes), "it has too many elements")?;
    match graph.op(id) {
        TensorOp::Input(number) => {
            let expected = graph.inputs().get(*number as usize);
            require(expected == Some(&id), "it is not the input of its number")
        }
        TensorOp::Constant(data) => require(
            data.dtype == shape.dtype && data.sizes.as_slice() == shape.sizes.as_slice(),
            "the constant has another dtype or other sizes",
        ),
        TensorOp::Nest(nest) => {
            require(nest.output == *shape, "the nest has a result of another shape")?;
            self::nest(graph, nest)
        }
        TensorOp::View(view) => {
            require(view.output == *shape, "the view has another shape")?;
            self::view(graph, view)
        }
        TensorOp::Gather(gather) => {
            require(gather.output == *shape, "the gather has a result of another shape")?;
            self::gather(graph, gather)
        }
        TensorOp::Call(call) => {
            let shapes: Vec<&TensorShape> = call.inputs.iter().map(|&input| graph.shape(input)).collect();
            let fits = shapes.into_iter().eq(&call.input_shapes);
            require(
                fits,
                "an operand of the call has another shape than the call was made for",
            )?;
            let is_sized = call.checked_bytes().is_some() && call.shape() == *shape;
            require(is_sized, "the call has results of another number of bytes")
        }
        TensorOp::CallResult { call, result } => {
            let TensorOp::Call(made) = graph.op(*call) else {
                return Err(format!("{call} is not a call"));
            };
            let expected = made.results.get(*result as usize);
            let is_flag = *result as usize == made.results.len() && shape.dtype == DType::Bool;
            require(expected == Some(shape) || is_flag, "the call has no such result")
        }
    }
}

fn nest(graph: &TensorGraph, nest: &Structured) -> Checked {
    let rank = nest.domain.len();
    let parallel = nest.parallel_rank();
    let in_order = nest.iterations.iter().take(parallel).all(|i| *i == Iteration::Parallel);
    require(
        nest.iterations.len() == rank && in_order,
        "its loops and their kinds do not fit",
    )?;
    require(nest.domain.iter().all(|&n| n >= 0), "a loop has a negative extent")?;
    require(is_bounded(&nest.domain), "it has too many iterations")?;
    require(
        nest.combine.is_some() || parallel == rank,
        "it has reduction loops and no combiner",
    )?;
    let extents = &nest.domain[..parallel];
    let is_split = || nest.combine.is_some() && numel(extents) == numel(&nest.output.sizes);
    require(
        *extents == *nest.output.sizes || is_split(),
        "its parallel loops do not have the sizes of its result",
    )?;
    for access in accesses(nest) {
        self::access(graph, access, &nest.domain)?;
    }
    let reduces = |map: &Affine| map.coefficients.iter().skip(parallel).any(|&c| c != 0);
    let depends = nest.finish_inputs.iter().flat_map(|access| &access.map).any(reduces);
    require(!depends, "its epilogue depends on a reduction loop")?;
    let dtype = |access: &Access| graph.shape(access.tensor).dtype;
    let inputs: Vec<DType> = nest.inputs.iter().map(dtype).collect();
    expression(&nest.body, &inputs, rank)?;
    if let Some(finish) = &nest.finish {
        let further = nest.finish_inputs.iter().map(dtype);
        let inputs: Vec<DType> = std::iter::once(nest.accumulate).chain(further).collect();
        expression(finish, &inputs, parallel)?;
    }
    Ok(())
}

/// Returns whether the product of the sizes, and of any of them, fits 60 bits. Transformations compute such products.
fn is_bounded(sizes: &[i64]) -> bool {
    let product = sizes.iter().try_fold(1i64, |product, &n| product.checked_mul(n.max(1)));
    product.is_some_and(|product| product <= 1 << 60)
}

/// Returns the number of elements; `None` if it overflows.
fn numel(sizes: &[i64]) -> Option<i64> {
    sizes.iter().try_fold(1i64, |product, n| product.checked_mul(*n))
}

fn access(graph: &TensorGraph, access: &Access, domain: &[i64]) -> Checked {
    let sizes = &graph.shape(access.tensor).sizes;
    maps(&access.map, sizes, domain)?;
    let stays = || {
        let mut all = access.map.iter().zip(sizes);
        domain.contains(&0) || all.all(|(map, &size)| stays_within(map, domain, size))
    };
    require(
        access.out_of_bounds != OutOfBounds::Never || stays(),
        format!(
            "a read leaves {}, and there is no value for positions outside",
            access.tensor
        ),
    )
}

fn maps(maps: &[Affine], sizes: &[i64], domain: &[i64]) -> Checked {
    require(
        maps.len() == sizes.len(),
        "a map has not as many coordinates as its tensor has dimensions",
    )?;
    require(
        maps.iter().all(|map| map.coefficients.len() == domain.len()),
        "a map has not as many coefficients as there are loops",
    )?;
    require(
        reach(maps, sizes, domain).is_some(),
        "a map is too large to be computed with",
    )
}

fn view(graph: &TensorGraph, view: &ViewMap) -> Checked {
    let base = graph.shape(view.tensor);
    require(
        base.dtype == view.output.dtype,
        "a view has another dtype than its tensor",
    )?;
    match &view.kind {
        ViewKind::Reshape => require(
            numel(&base.sizes).is_some() && numel(&base.sizes) == numel(&view.output.sizes),
            "a reshape has another number of elements",
        ),
        ViewKind::Affine(map) => {
            maps(map, &base.sizes, &view.output.sizes)?;
            let mut all = map.iter().zip(&base.sizes);
            let stays =
                view.output.sizes.contains(&0) || all.all(|(map, &size)| stays_within(map, &view.output.sizes, size));
            require(stays, "a view leaves its tensor")
        }
    }
}

fn gather(graph: &TensorGraph, gather: &Gather) -> Checked {
    let base = graph.shape(gather.tensor);
    require(
        base.dtype == gather.output.dtype,
        "a gather has another dtype than its tensor",
    )?;
    require(
        gather.coordinates.len() == base.sizes.len(),
        "a gather has not as many coordinates as its tensor has dimensions",
    )?;
    let domain = &gather.output.sizes;
    for (coordinate, &size) in gather.coordinates.iter().zip(&base.sizes) {
        match coordinate {
            Coordinate::Affine(map) => {
                maps(std::slice::from_ref(map), &[size], domain)?;
                let stays = domain.contains(&0) || stays_within(map, domain, size);
                require(stays, "a gather leaves its tensor")?;
            }
            Coordinate::Value { tensor, map } => {
                let index = graph.shape(*tensor);
                require(index.dtype.is_integral(), "the indices of a gather are not integers")?;
                maps(map, &index.sizes, domain)?;
                let mut all = map.iter().zip(&index.sizes);
                let stays = domain.contains(&0) || all.all(|(map, &size)| stays_within(map, domain, size));
                require(stays, "a gather leaves the tensor of its indices")?;
            }
        }
    }
    Ok(())
}

fn expression(expr: &Expr, inputs: &[DType], loops: usize) -> Checked {
    let nodes = expr.nodes();
    require(!nodes.is_empty(), "an expression is empty")?;
    for (at, node) in nodes.iter().enumerate() {
        let operand = |id: u32| {
            let before = nodes.get(id as usize).filter(|_| (id as usize) < at);
            before
                .map(|n| n.dtype)
                .ok_or("a scalar operation reads one that does not come before it")
        };
        let fits = match node.op {
            ExprOp::Input(i) => inputs.get(i as usize) == Some(&node.dtype),
            ExprOp::Const(_) => true,
            ExprOp::Index(l) => (l as usize) < loops && node.dtype == DType::Long,
            ExprOp::Cast(a) => operand(a).map(|_| true)?,
            ExprOp::Unary(op, a) => {
                let a = operand(a)?;
                match op {
                    UnaryOp::Not => a == DType::Bool && node.dtype == DType::Bool,
                    UnaryOp::IsNan | UnaryOp::IsInf => node.dtype == DType::Bool,
                    _ => a == node.dtype,
                }
            }
            ExprOp::Binary(op, a, b) => {
                let (a, b) = (operand(a)?, operand(b)?);
                let result = if op.is_comparison() { DType::Bool } else { a };
                a == b && node.dtype == result
            }
            ExprOp::Fma(a, b, c) => [a, b, c].map(operand).into_iter().all(|d| d == Ok(node.dtype)),
            ExprOp::Select(condition, a, b) => {
                operand(condition)? == DType::Bool && operand(a)? == node.dtype && operand(b)? == node.dtype
            }
        };
        require(
            fits,
            format!("operation {at} of an expression has operands of other dtypes"),
        )?;
    }
    Ok(())
}
