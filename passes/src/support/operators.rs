//! The passes' access to operators: by schema, and by evaluating one node on constants.

use frazil_ir::schema::Catalogue;
use frazil_ir::{Constant, Context, Graph, NodeId, TupleConstant, TypeId, TypeKind};
use frazil_runtime::args::{Arg, Args};
use frazil_runtime::call::{args_of, invoke};
use frazil_runtime::export::value_to_constant;
use frazil_runtime::import::Importer;
use frazil_runtime::interp::Interpreter;
use frazil_runtime::op::Operator;
use frazil_runtime::structured::TensorShape;
use frazil_runtime::{Registry, Semantics, Value, Variant};
use std::sync::Arc;

/// An operand for shape inference.
#[derive(Clone, Debug)]
pub enum ShapeOperand {
    /// A tensor of this dtype and these sizes.
    Tensor(TensorShape),
    /// A value.
    Constant(Constant),
    /// A list of either.
    List(Vec<ShapeOperand>),
}

/// The passes' interface to the dialects in use. The registry of operator entries implements it; a bare [`Catalogue`] has schemas only.
pub trait Operators: Send + Sync + 'static {
    /// Returns the schemas.
    fn catalogue(&self) -> &Catalogue;

    /// Evaluates `node` on these operands. Returns `None` if it cannot be evaluated at compile time: it has no semantics, it fails (so that the failure must
    /// happen at run time), or its result has more than `budget` bytes.
    fn evaluate(&self, _graph: &Graph, _node: NodeId, _operands: &[Constant], _budget: usize) -> Option<Vec<Constant>> {
        None
    }

    /// Infers dtype and sizes of the results of `node` for these operands, and whether each is a view; `None` if its entry has no program or evaluation fails.
    fn infer(&self, _graph: &Graph, _node: NodeId, _operands: &[ShapeOperand]) -> Option<Vec<(TensorShape, bool)>> {
        None
    }
}

impl Operators for Catalogue {
    fn catalogue(&self) -> &Catalogue {
        self
    }
}

impl Operators for Registry {
    fn catalogue(&self) -> &Catalogue {
        Registry::catalogue(self)
    }

    fn evaluate(&self, graph: &Graph, node: NodeId, operands: &[Constant], budget: usize) -> Option<Vec<Constant>> {
        evaluated(self, None, graph, node, operands, budget)
    }

    fn infer(&self, graph: &Graph, node: NodeId, operands: &[ShapeOperand]) -> Option<Vec<(TensorShape, bool)>> {
        let op = self.operator(graph, node)?;
        if op.variant() != Variant::Functional {
            return None;
        }
        let mut args = Args::new(self.ctx(), op.schema());
        for operand in operands {
            let arg = argument(operand, &mut args)?;
            args.push(arg);
        }
        let program = op.program(&args).ok()??;
        let views = program.outputs.iter().map(|t| program.viewed_argument(*t).is_some());
        Some(program.output_shapes().into_iter().zip(views).collect())
    }
}

/// A shared registry also evaluates composites, since the interpreter that runs them needs it.
impl Operators for Arc<Registry> {
    fn catalogue(&self) -> &Catalogue {
        Registry::catalogue(self)
    }

    fn evaluate(&self, graph: &Graph, node: NodeId, operands: &[Constant], budget: usize) -> Option<Vec<Constant>> {
        evaluated(self, Some(self), graph, node, operands, budget)
    }

    fn infer(&self, graph: &Graph, node: NodeId, operands: &[ShapeOperand]) -> Option<Vec<(TensorShape, bool)>> {
        (**self).infer(graph, node, operands)
    }
}

/// Maximum number of steps of the evaluation of a composite.
const MAX_STEPS: u64 = 1 << 20;

/// Maximum number of bytes that a composite may allocate, estimated from the sizes and integers of its operands.
const MAX_WORK: f64 = (1u64 << 30) as f64;

/// Implements [`Operators::evaluate`] for a registry. `shared` says whether composites may run.
fn evaluated(
    registry: &Registry,
    shared: Option<&Arc<Registry>>,
    graph: &Graph,
    node: NodeId,
    operands: &[Constant],
    budget: usize,
) -> Option<Vec<Constant>> {
    // PyTorch determines the printed form of tensors at run time.
    if matches!(graph.kind_name(node), "aten::str" | "aten::format") && operands.iter().any(holds_tensor) {
        return None;
    }
    let op = registry.operator(graph, node)?;
    if op.variant() != Variant::Functional {
        return None;
    }
    let mut importer = Importer::new();
    let values: Vec<Value> = operands
        .iter()
        .map(|c| importer.value(c, None))
        .collect::<Result<_, _>>()
        .ok()?;
    let ctx = registry.ctx();
    if let Semantics::Composite(body) = op.semantics() {
        (work_of(operands) <= MAX_WORK && !draws(registry, body, 0)).then_some(())?;
    } else if !matches!(op.semantics(), Semantics::Kernel(_)) {
        // The cost is estimated before evaluation.
        let (args, _) = args_of(ctx, op.schema(), &values);
        let program = op.program(&args).ok()??;
        let shapes = program.output_shapes();
        let bytes = shapes.iter().try_fold(0usize, |sum, shape| {
            let size = usize::try_from(shape.numel()).ok()?.checked_mul(shape.dtype.size())?;
            sum.checked_add(size)
        })?;
        if bytes > budget {
            return None;
        }
    }
    let output_types: Vec<TypeId> = graph.node_outputs(node).iter().map(|v| graph.ty(*v)).collect();
    let results = match (op.semantics(), shared) {
        (Semantics::Composite(_), None) => return None,
        (Semantics::Composite(_), Some(shared)) => run_composite(shared, &op, &values)?,
        _ => invoke(ctx, &op, &values, &output_types, graph.attributes(node)).ok()?,
    };
    let constants: Vec<Constant> = results
        .iter()
        .zip(&output_types)
        .map(|(value, ty)| {
            // A result that is an operand must be that tensor itself, since programs can compare identities.
            let same = |(operand, _): &(&Value, &Constant)| matches!(value, Value::Tensor(_)) && value.is(operand);
            let given = values.iter().zip(operands).find(same).map(|(_, c)| c.clone());
            given.or_else(|| value_to_constant(value)).map(|c| typed(ctx, c, *ty))
        })
        .collect::<Option<_>>()?;
    (constants.len() == output_types.len() && constants.iter().all(|c| byte_size(c) <= budget)).then_some(constants)
}

fn run_composite(registry: &Arc<Registry>, op: &Operator, values: &[Value]) -> Option<frazil_runtime::op::Results> {
    let interpreter = Interpreter::new(Arc::clone(registry)).with_step_limit(MAX_STEPS);
    interpreter.run_operator(op, values).ok()
}

/// Returns an upper estimate of the bytes that a composite allocates: its integers may be sizes.
fn work_of(operands: &[Constant]) -> f64 {
    operands.iter().fold(8.0, |work, operand| match operand {
        Constant::Tensor(t) => work + 8.0 * t.sizes.iter().product::<i64>() as f64,
        _ => work,
    }) * operands.iter().map(factor_of).product::<f64>()
}

fn factor_of(operand: &Constant) -> f64 {
    match operand {
        Constant::Int(i) => i.unsigned_abs().max(1) as f64,
        Constant::List(_) | Constant::Tuple(_) => operand.items().unwrap_or_default().iter().map(factor_of).product(),
        _ => 1.0,
    }
}

/// Returns whether the body of a composite may draw random numbers, or is nested too deeply.
fn draws(registry: &Registry, body: &Graph, depth: usize) -> bool {
    depth > 16
        || body.all_nodes().into_iter().any(|node| {
            registry.operator(body, node).is_some_and(|op| match op.semantics() {
                Semantics::Composite(inner) => draws(registry, inner, depth + 1),
                _ => op.is_random(),
            })
        })
}

fn argument(operand: &ShapeOperand, args: &mut Args<'_>) -> Option<Arg> {
    Some(match operand {
        ShapeOperand::Tensor(shape) => args.number_tensor(shape.clone()),
        ShapeOperand::Constant(Constant::Tensor(t)) => args.number_tensor(TensorShape {
            dtype: t.dtype,
            sizes: t.sizes.iter().copied().collect(),
        }),
        ShapeOperand::Constant(c) => Arg::from_constant(c)?,
        ShapeOperand::List(items) => {
            let items: Option<Vec<Arg>> = items.iter().map(|i| argument(i, args)).collect();
            Arg::List(items?)
        }
    })
}

fn holds_tensor(constant: &Constant) -> bool {
    match constant {
        Constant::Tensor(_) => true,
        Constant::List(_) | Constant::Tuple(_) => constant.items().unwrap_or_default().iter().any(holds_tensor),
        Constant::Dict(d) => d.entries.iter().any(|(k, v)| holds_tensor(k) || holds_tensor(v)),
        _ => false,
    }
}

/// Sets the type of a tuple to that in the graph.
fn typed(ctx: &Context, constant: Constant, ty: TypeId) -> Constant {
    match constant {
        Constant::Tuple(t) if matches!(ctx.type_kind(ty), TypeKind::Tuple(_) | TypeKind::NamedTuple(..)) => {
            let items = t.items.clone();
            Constant::Tuple(Arc::new(TupleConstant { ty, items }))
        }
        other => other,
    }
}

fn byte_size(constant: &Constant) -> usize {
    match constant {
        Constant::Tensor(t) => t.storage.len(),
        Constant::Str(s) => s.len(),
        Constant::List(_) | Constant::Tuple(_) => constant
            .items()
            .unwrap_or_default()
            .iter()
            .fold(16, |sum, c| sum + byte_size(c)),
        Constant::Dict(d) => d
            .entries
            .iter()
            .fold(16, |sum, (k, v)| sum + byte_size(k) + byte_size(v)),
        _ => 16,
    }
}
