//! Shape propagation: `propagate-shapes`.
//!
//! Tensor types get the dtype and sizes that follow from those of the graph's inputs, by the same operator entries that are interpreted and compiled.
//!
//! An unknown or symbolic size may be any number. Each gets two different samples, and the operators are evaluated twice. Sizes that are the same both times
//! are known, sizes that equal a sample are that symbol, and all others are unknown.
//!
//! **Sound** for values that are not written (in-place operators may resize). Others keep their types, and so do carried values of loops and results of
//! operators whose entry has no program. Strides are set only for new tensors that are computed from row-major ones.
//!
//! PyTorch runs the operators on tensors of the known sizes, and has a separate table for symbolic ones.

use crate::pass::{AnyPass, GraphPass, PassContext, PassContextExt, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::support;
use crate::support::operators::{Operators, ShapeOperand};
use frazil_ir::{BlockId, Context, Dim, Graph, NodeId, TensorType, TypeId, TypeKind, ValueId, symbols};
use frazil_runtime::structured::{Dims, TensorShape};
use std::collections::HashMap;

/// Declaration of the pass `propagate-shapes` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "propagate-shapes",
    summary: "Infers dtypes and sizes from those of the inputs, and adds them to tensor types.",
    before: "graph(%x : Float(8, *, requires_grad=0, device=cpu)):\n  %y : Tensor = aten::relu(%x)\n  return (%y)\n",
    after: "graph(%x : Float(8, *, requires_grad=0, device=cpu)):\n  %y : Float(8, *, requires_grad=0, device=cpu) = aten::relu(%x)\n  return (%y)\n",
    options: &[],
    build: |_| AnyPass::graph(PropagateShapes),
};

/// The pass `propagate-shapes`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct PropagateShapes;

impl GraphPass<TorchScript> for PropagateShapes {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        support::for_each_subgraph(graph, |g| cx.run(self, g))?;
        let db = cx.alias_db(graph);
        // Blocks in the order of execution, with an explicit stack.
        let mut stack = vec![Step::Nodes(graph.first(graph.root()))];
        while let Some(step) = stack.pop() {
            let node = match step {
                Step::Nodes(Some(node)) => node,
                Step::Nodes(None) => continue,
                Step::Join(node) => {
                    join(graph, node, cx);
                    continue;
                }
            };
            stack.push(Step::Nodes(graph.next(node)));
            let blocks: Vec<BlockId> = graph.node_blocks(node).to_vec();
            if !blocks.is_empty() {
                if graph.kind(node) == symbols::PRIM_IF {
                    stack.push(Step::Join(node));
                }
                let firsts = blocks.iter().map(|b| Step::Nodes(graph.first(*b)));
                stack.extend(firsts.collect::<Vec<_>>());
                continue;
            }
            let written = graph.node_outputs(node).iter().any(|v| db.has_writers(*v))
                || graph.operands(node).any(|v| db.has_writers(v));
            if written || graph.kind(node) == symbols::PRIM_CONSTANT {
                continue;
            }
            let Some(types) = inferred(graph, node, cx.operators()) else {
                continue;
            };
            for (output, ty) in graph.node_outputs(node).to_vec().into_iter().zip(types) {
                refine(graph, output, Some(ty), cx);
            }
        }
        Ok(())
    }
}

enum Step {
    /// Visits the given node and the nodes after it in its block.
    Nodes(Option<NodeId>),
    /// Sets the output types of the given branch, after both of its sides have been visited.
    Join(NodeId),
}

/// Gives the outputs of a branch the type properties that both sides have in common.
fn join(graph: &mut Graph, node: NodeId, cx: &mut PassContext<'_>) {
    let sides: Vec<Vec<TypeId>> = graph
        .node_blocks(node)
        .iter()
        .map(|b| graph.results(*b).map(|v| graph.ty(v)).collect())
        .collect();
    let [then, other] = sides.as_slice() else { return };
    let agreed: Vec<Option<TypeId>> = then
        .iter()
        .zip(other)
        .map(|(a, b)| (a == b && graph.ctx().is_tensor(*a)).then_some(*a))
        .collect();
    for (output, ty) in graph.node_outputs(node).to_vec().into_iter().zip(agreed) {
        refine(graph, output, ty, cx);
    }
}

/// Replaces the type of a tensor by the inferred type, if that has more properties.
fn refine(graph: &mut Graph, value: ValueId, found: Option<TypeId>, cx: &mut PassContext<'_>) {
    let old = graph.ty(value);
    if let Some(new) = found.filter(|new| *new != old && graph.ctx().is_tensor(old))
        && cx.rewrite("types refined")
    {
        graph.set_type(value, new);
    }
}

/// The sizes with which unknown sizes are replaced, in order to run shape inference.
struct Samples {
    /// The sample of each symbol. An unknown size gets a symbol of its own, counted down from -1000000.
    numbers: HashMap<i64, i64>,
    anonymous: i64,
    next: i64,
    step: i64,
}

/// Symbols below this number each represent a single unknown size.
const ANONYMOUS: i64 = -1_000_000;

impl Samples {
    fn new(first: i64, step: i64) -> Samples {
        Samples {
            numbers: HashMap::new(),
            anonymous: ANONYMOUS,
            next: first,
            step,
        }
    }

    fn of(&mut self, dim: Dim) -> i64 {
        let symbol = match dim {
            Dim::Known(n) => return n,
            Dim::Symbolic(s) => s,
            Dim::Unknown => {
                self.anonymous -= 1;
                self.anonymous
            }
        };
        let (next, step) = (&mut self.next, self.step);
        *self.numbers.entry(symbol).or_insert_with(|| {
            *next += step;
            *next
        })
    }

    fn symbol(&self, n: i64) -> Option<i64> {
        self.numbers.iter().find(|(_, v)| **v == n).map(|(s, _)| *s)
    }
}

fn tensor_type(ctx: &Context, ty: TypeId) -> Option<TensorType> {
    match ctx.type_kind(ty) {
        TypeKind::Tensor(t) => Some(t),
        _ => None,
    }
}

/// Returns the shape of a tensor with samples for its unknown sizes; `None` if its dtype or rank is unknown.
fn sampled(ctx: &Context, ty: TypeId, samples: &mut Samples) -> Option<TensorShape> {
    let t = tensor_type(ctx, ty)?;
    let sizes: Dims = ctx.dims(t.sizes?).iter().map(|d| samples.of(*d)).collect();
    Some(TensorShape { dtype: t.dtype?, sizes })
}

/// Returns an operand of shape inference: a constant, a tensor, or a list of these that the graph constructs.
fn operand(graph: &Graph, value: ValueId, samples: &mut Samples) -> Option<ShapeOperand> {
    if let Some(constant) = graph.constant(value) {
        return Some(ShapeOperand::Constant(constant));
    }
    if graph.ctx().is_tensor(graph.ty(value)) {
        return sampled(graph.ctx(), graph.ty(value), samples).map(ShapeOperand::Tensor);
    }
    let built = graph
        .defining_node(value)
        .filter(|n| graph.kind(*n) == symbols::PRIM_LIST_CONSTRUCT)?;
    let item = |v| match graph.constant(v) {
        Some(constant) => Some(ShapeOperand::Constant(constant)),
        None if graph.ctx().is_tensor(graph.ty(v)) => {
            sampled(graph.ctx(), graph.ty(v), samples).map(ShapeOperand::Tensor)
        }
        None => None,
    };
    graph
        .operands(built)
        .map(item)
        .collect::<Option<_>>()
        .map(ShapeOperand::List)
}

/// Returns the inferred types of the node's outputs.
fn inferred(graph: &Graph, node: NodeId, operators: &dyn Operators) -> Option<Vec<TypeId>> {
    let infer = |samples: &mut Samples| {
        let operands: Option<Vec<ShapeOperand>> = graph.operands(node).map(|v| operand(graph, v, samples)).collect();
        operators.infer(graph, node, &operands?)
    };
    // Far apart, and not multiples of each other, so that sizes computed from one are not mistaken for another.
    let (mut first, mut second) = (Samples::new(1009, 210), Samples::new(2003, 330));
    let a = infer(&mut first)?;
    let b = if first.numbers.is_empty() {
        a.clone()
    } else {
        infer(&mut second)?
    };
    let ctx = graph.ctx();
    let tensors: Vec<TensorType> = graph
        .operands(node)
        .filter_map(|v| tensor_type(ctx, graph.ty(v)))
        .collect();
    let row_major = tensors.iter().all(|t| is_row_major(ctx, t));
    let common = |get: fn(&TensorType) -> Option<frazil_ir::Device>| {
        let found: Vec<_> = tensors.iter().map(get).collect();
        found
            .first()
            .copied()
            .flatten()
            .filter(|d| found.iter().all(|f| f == &Some(*d)))
    };
    let device = common(|t| t.device);
    let no_gradients = !tensors.is_empty() && tensors.iter().all(|t| t.requires_grad == Some(false));
    let each = |(a, b): (&(TensorShape, bool), &(TensorShape, bool))| {
        let dim = |(&x, &y): (&i64, &i64)| match (first.symbol(x), second.symbol(y)) {
            (Some(s), Some(t)) if s == t && s > ANONYMOUS => Dim::Symbolic(s),
            _ if x == y => Dim::Known(x),
            _ => Dim::Unknown,
        };
        let (shape, is_view) = a;
        let other = &b.0;
        let sizes: Vec<Dim> = shape.sizes.iter().zip(&other.sizes).map(dim).collect();
        let known: Option<Vec<i64>> = sizes
            .iter()
            .map(|d| if let Dim::Known(n) = d { Some(*n) } else { None })
            .collect();
        let strides = known.filter(|_| row_major && !is_view).map(|sizes| {
            let strides = frazil_runtime::layout::contiguous_strides(&sizes);
            ctx.dim_list(&strides.iter().map(|s| Dim::Known(*s)).collect::<Vec<_>>())
        });
        let same_rank = shape.sizes.len() == other.sizes.len();
        ctx.type_of_kind(TypeKind::Tensor(TensorType {
            dtype: Some(shape.dtype).filter(|d| *d == other.dtype),
            device,
            sizes: same_rank.then(|| ctx.dim_list(&sizes)),
            strides: strides.filter(|_| same_rank),
            requires_grad: no_gradients.then_some(false),
            undefined: None,
        }))
    };
    (a.len() == b.len()).then(|| a.iter().zip(&b).map(each).collect())
}

fn is_row_major(ctx: &Context, t: &TensorType) -> bool {
    let numbers = |dims| -> Option<Vec<i64>> {
        ctx.dims(dims)
            .iter()
            .map(|d| if let Dim::Known(n) = d { Some(*n) } else { None })
            .collect()
    };
    match (t.sizes.and_then(numbers), t.strides.and_then(numbers)) {
        (Some(sizes), Some(strides)) => frazil_runtime::layout::is_contiguous(&sizes, &strides),
        _ => false,
    }
}
