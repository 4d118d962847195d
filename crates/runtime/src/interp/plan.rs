//! The plan of a graph: operators are resolved, and values are numbered as slots of a frame.

use super::walk::MAX_BLOCKS;
use crate::error::MissingOperator;
use crate::operator::op::Operator;
use crate::operator::registry::{Lookup, Registry};
use crate::value::Value;
use crate::value::import::Importer;
use cranelift_entity::EntityRef;
use frazil_ir::{AttributeValue, BlockId, Constant, Graph, Module, NodeId, SymbolId, TypeKind, ValueId, symbols};
use smallvec::SmallVec;
use std::sync::Arc;

/// Index of a value in the frame of a running graph.
pub(super) type Slot = u32;

/// The execution plan of a block.
#[derive(Debug)]
pub(super) struct BlockPlan {
    pub parameters: Vec<Slot>,
    pub steps: Vec<Step>,
    pub results: Vec<Slot>,
}

/// The execution plan of a node.
#[derive(Debug)]
pub(super) struct Step {
    pub node: NodeId,
    pub inputs: SmallVec<[Slot; 4]>,
    pub outputs: SmallVec<[Slot; 1]>,
    pub action: Action,
    /// Slots that are not read after this step, and are cleared.
    pub dead: SmallVec<[Slot; 2]>,
}

/// The operation that a step of the plan executes.
#[derive(Debug)]
pub(super) enum Action {
    Constant(Value),
    If(BlockPlan, BlockPlan),
    Loop(BlockPlan),
    GetAttr(SymbolId),
    SetAttr(SymbolId),
    /// Reads a submodule of a container (`ModuleList`, `ModuleDict`) by its index or key.
    ContainerItem,
    CallMethod(SymbolId),
    CallFunction,
    /// `with x`: calls `__enter__`, and `__exit__` if a later node in the block raises.
    Enter,
    /// The end of a `with`: calls `__exit__`.
    Exit,
    Print,
    Warn,
    CreateObject(SymbolId),
    Fork(Arc<Graph>),
    /// A subgraph that a delegate may run in place of the interpreter.
    Part(Arc<Graph>),
    Wait,
    Raise,
    IsInstance(Vec<frazil_ir::TypeId>),
    /// Returns the operand unchanged: a cast of the static type.
    Forward,
    Operator(Box<Operator>),
    /// Resolves the overload by the operands' types at run time, because the static types do not determine it.
    Dynamic,
    /// An operator that has no registered semantics.
    Missing,
}

impl Action {
    /// Returns the blocks of a branch or loop.
    pub fn blocks(&self) -> Vec<&BlockPlan> {
        match self {
            Action::If(then, other) => vec![then, other],
            Action::Loop(body) => vec![body],
            _ => Vec::new(),
        }
    }
}

/// The plan of a graph, for the walker: its operators are resolved, and its values are numbered.
#[derive(Debug)]
pub struct GraphPlan {
    /// Number of slots.
    pub(super) frame: usize,
    pub(super) body: BlockPlan,
    pub(super) missing: Vec<MissingOperator>,
}

impl GraphPlan {
    /// Returns the plan of `graph` with the operators of `registry`. `importer` converts the graph's constants. `module` contains the objects in constants.
    pub fn new(graph: &Graph, registry: &Registry, importer: &mut Importer, module: Option<&Module>) -> GraphPlan {
        let mut planner = Planner {
            registry,
            importer,
            module,
            graph,
            missing: Vec::new(),
            depth: 0,
        };
        let mut body = planner.block(graph.root());
        mark_dead(graph, &mut body);
        GraphPlan {
            frame: graph.value_capacity(),
            body,
            missing: planner.missing,
        }
    }
}

impl std::fmt::Debug for Operator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Operator({:?})", self.variant())
    }
}

/// Builder of execution plans.
struct Planner<'p> {
    registry: &'p Registry,
    importer: &'p mut Importer,
    module: Option<&'p Module>,
    graph: &'p Graph,
    missing: Vec<MissingOperator>,
    /// Number of blocks that enclose the current one.
    depth: usize,
}

impl Planner<'_> {
    fn block(&mut self, block: BlockId) -> BlockPlan {
        let slot = |v: &ValueId| v.index() as Slot;
        // A block so deep is never entered, so that its steps do not matter.
        let steps = if self.depth > MAX_BLOCKS {
            Vec::new()
        } else {
            self.depth += 1;
            let steps = self.graph.nodes(block).map(|n| self.step(n)).collect();
            self.depth -= 1;
            steps
        };
        BlockPlan {
            parameters: self.graph.parameters(block).iter().map(slot).collect(),
            steps,
            results: self.graph.results(block).map(|v| slot(&v)).collect(),
        }
    }

    fn step(&mut self, node: NodeId) -> Step {
        let graph = self.graph;
        Step {
            node,
            inputs: graph.operands(node).map(|v| v.index() as Slot).collect(),
            outputs: graph.node_outputs(node).iter().map(|v| v.index() as Slot).collect(),
            action: self.action(node),
            dead: SmallVec::new(),
        }
    }

    fn action(&mut self, node: NodeId) -> Action {
        let graph = self.graph;
        let name = || graph.attribute_symbol(node, symbols::ATTR_NAME);
        let special = match graph.kind(node) {
            symbols::PRIM_CONSTANT => self.constant(node),
            symbols::PRIM_IF => match graph.node_blocks(node) {
                [a, b] => Some(Action::If(self.block(*a), self.block(*b))),
                _ => None,
            },
            symbols::PRIM_LOOP => match graph.node_blocks(node) {
                [body] => Some(Action::Loop(self.block(*body))),
                _ => None,
            },
            symbols::PRIM_GET_ATTR => name().map(Action::GetAttr),
            symbols::PRIM_SET_ATTR => name().map(Action::SetAttr),
            symbols::PRIM_MODULE_CONTAINER_INDEX => Some(Action::ContainerItem),
            symbols::PRIM_CALL_METHOD => name().map(Action::CallMethod),
            symbols::PRIM_CALL_FUNCTION => Some(Action::CallFunction),
            symbols::PRIM_CREATE_OBJECT => match graph.output(node).map(|v| graph.ctx().type_kind(graph.ty(v))) {
                Some(TypeKind::Class(class)) => Some(Action::CreateObject(class)),
                _ => None,
            },
            symbols::PRIM_FORK => match graph.attribute(node, symbols::ATTR_SUBGRAPH) {
                Some(AttributeValue::Graph(g)) => Some(Action::Fork(g.clone())),
                _ => None,
            },
            symbols::PRIM_TENSOR_EXPR_GROUP | symbols::PRIM_FUNCTIONAL_GRAPH => {
                match graph.attribute(node, symbols::ATTR_SUBGRAPH) {
                    Some(AttributeValue::Graph(g)) => Some(Action::Part(g.clone())),
                    _ => None,
                }
            }
            symbols::PRIM_WAIT => Some(Action::Wait),
            symbols::PRIM_RAISE_EXCEPTION => Some(Action::Raise),
            symbols::PRIM_ISINSTANCE => match graph.attribute(node, symbols::ATTR_TYPES) {
                Some(AttributeValue::Types(types)) => Some(Action::IsInstance(types.clone())),
                _ => None,
            },
            symbols::PRIM_UNCHECKED_CAST => Some(Action::Forward),
            symbols::PRIM_UNINITIALIZED => Some(Action::Constant(Value::None)),
            symbols::PRIM_PRINT => Some(Action::Print),
            symbols::ATEN_WARN => Some(Action::Warn),
            _ => match graph.kind_name(node) {
                "prim::Enter" => Some(Action::Enter),
                "prim::Exit" => Some(Action::Exit),
                _ => None,
            },
        };
        if let Some(action) = special {
            return action;
        }
        match self.registry.lookup(graph, node) {
            Lookup::Found(op) => Action::Operator(Box::new(op)),
            Lookup::NoOverload => Action::Dynamic,
            Lookup::NoSemantics(schema) => self.missing(node, schema.full_name(graph.ctx())),
            Lookup::Unknown => self.missing(node, graph.kind_name(node).to_string()),
        }
    }

    fn missing(&mut self, node: NodeId, name: String) -> Action {
        let range = self.graph.source_range(node);
        let place = range.map(|r| r.display(self.graph.ctx()).to_string());
        self.missing.push(MissingOperator { name, place });
        Action::Missing
    }

    fn constant(&mut self, node: NodeId) -> Option<Action> {
        let constant = self.graph.constant_of(node)?;
        // A plain list constant is made anew each time: a program could change it.
        let value = match &constant {
            Constant::List(_) | Constant::Dict(_) => self.importer.fresh(&constant, self.module),
            _ => self.importer.value(&constant, self.module),
        };
        value.ok().map(Action::Constant)
    }
}

/// Records for each step the slots that it reads last, so that large tensors are freed early. Only values defined in the same block are considered, because a
/// loop reads outer values again.
fn mark_dead(graph: &Graph, block: &mut BlockPlan) {
    let mut last = std::collections::HashMap::new();
    for (i, step) in block.steps.iter().enumerate() {
        step.inputs.iter().for_each(|&s| {
            last.insert(s, i);
        });
        if let Action::If(..) | Action::Loop(_) = step.action {
            for n in graph
                .node_blocks(step.node)
                .iter()
                .flat_map(|b| graph.nodes_recursive(*b))
            {
                graph.operands(n).for_each(|v| {
                    last.insert(v.index() as Slot, i);
                });
                for b in graph.node_blocks(n) {
                    graph.results(*b).for_each(|v| {
                        last.insert(v.index() as Slot, i);
                    });
                }
            }
            for b in graph.node_blocks(step.node) {
                graph.results(*b).for_each(|v| {
                    last.insert(v.index() as Slot, i);
                });
            }
        }
    }
    let mut own: std::collections::HashSet<Slot> = block.parameters.iter().copied().collect();
    own.extend(block.steps.iter().flat_map(|s| s.outputs.iter().copied()));
    for result in &block.results {
        last.remove(result);
    }
    for (slot, i) in last {
        if own.contains(&slot)
            && let Some(step) = block.steps.get_mut(i)
        {
            step.dead.push(slot);
        }
    }
    for step in &mut block.steps {
        match &mut step.action {
            Action::If(a, b) => {
                mark_dead(graph, a);
                mark_dead(graph, b);
            }
            Action::Loop(body) => mark_dead(graph, body),
            _ => {}
        }
    }
}
