//! Running blocks: constants, branches, loops.

use super::{Slot, Specialiser};
use crate::error::LowerError;
use frazil_ir::{AttributeValue, BlockId, Constant, Graph, NodeId, TypeId, ValueId, symbols};
use frazil_runtime::is_instance;
use frazil_runtime::registry::Lookup;
use frazil_runtime::storage::Storage;
use frazil_runtime::value::{FutureValue, Value};
use std::sync::Arc;

/// Nodes that a run may take, unrolled loops included.
const MAX_STEPS: usize = 1_000_000;
/// Graphs within graphs.
const MAX_DEPTH: usize = 100;
/// Blocks within blocks, over all graphs that are being run. Each takes some of the machine's stack.
const MAX_BLOCKS: usize = 1000;

/// The values of a graph while it runs.
pub(super) struct Frame<'g> {
    pub graph: &'g Graph,
    slots: Vec<Slot>,
    /// The nodes that are being run, the outermost first.
    path: Vec<NodeId>,
}

impl Frame<'_> {
    pub(super) fn get(&self, v: ValueId) -> Slot {
        self.slots.get(v.as_u32() as usize).cloned().flatten()
    }

    /// The values that are there, and the variables that hold them.
    pub(super) fn held(&self) -> impl Iterator<Item = (ValueId, &Value)> {
        let slots = (0..).zip(&self.slots);
        slots.filter_map(|(v, slot)| Some((ValueId::from_u32(v), slot.as_ref()?)))
    }

    /// The nodes that are being run, the outermost first.
    pub(super) fn path(&self) -> &[NodeId] {
        &self.path
    }

    fn set(&mut self, v: ValueId, value: Slot) {
        if let Some(slot) = self.slots.get_mut(v.as_u32() as usize) {
            *slot = value;
        }
    }

    fn set_all(&mut self, values: &[ValueId], slots: impl IntoIterator<Item = Slot>) {
        for (&v, slot) in values.iter().zip(slots) {
            self.set(v, slot);
        }
    }
}

impl Specialiser<'_> {
    /// Runs `graph` and gives its outputs.
    pub(super) fn run(&mut self, graph: &Graph, arguments: Vec<Slot>) -> Result<Vec<Slot>, LowerError> {
        if self.depth > MAX_DEPTH {
            return Err(LowerError::Raises {
                message: "RecursionError: maximum recursion depth exceeded".into(),
            });
        }
        self.depth += 1;
        let tells = self.answers.is_some() && self.tells_places(graph);
        self.telling += usize::from(tells);
        let mut frame = Frame {
            graph,
            slots: vec![None; graph.value_capacity()],
            path: Vec::new(),
        };
        frame.set_all(graph.inputs(), arguments);
        let results = self.block(&mut frame, graph.root());
        if matches!(results, Err(LowerError::Waits { .. })) {
            self.note_live(&frame)?;
        }
        self.depth -= 1;
        self.telling -= usize::from(tells);
        results
    }

    fn block(&mut self, frame: &mut Frame<'_>, block: BlockId) -> Result<Vec<Slot>, LowerError> {
        if self.blocks >= MAX_BLOCKS {
            let message = format!("RecursionError: more than {MAX_BLOCKS} blocks within blocks");
            return Err(LowerError::Raises { message });
        }
        self.blocks += 1;
        let results = self.nodes(frame, block);
        self.blocks -= 1;
        results
    }

    fn nodes(&mut self, frame: &mut Frame<'_>, block: BlockId) -> Result<Vec<Slot>, LowerError> {
        let graph = frame.graph;
        for node in graph.nodes(block) {
            self.steps += 1;
            if self.steps > MAX_STEPS {
                return Err(LowerError::TooLong { steps: MAX_STEPS });
            }
            frazil_limits::check()?;
            frame.path.push(node);
            self.node(frame, node)?;
            frame.path.pop();
        }
        Ok(graph.results(block).map(|v| frame.get(v)).collect())
    }

    fn node(&mut self, frame: &mut Frame<'_>, node: NodeId) -> Result<(), LowerError> {
        let graph = frame.graph;
        let outputs = graph.node_outputs(node);
        let input = |frame: &Frame<'_>, i: usize| graph.operand(node, i).and_then(|v| frame.get(v));
        let result: Slot = match graph.kind(node) {
            symbols::PRIM_CONSTANT => self.constant(graph, node),
            symbols::PRIM_UNCHECKED_CAST => input(frame, 0),
            symbols::PRIM_UNINITIALIZED => Some(Value::None),
            symbols::PRIM_IF => return self.branch(frame, node),
            symbols::PRIM_LOOP => return self.repeat(frame, node),
            symbols::PRIM_RAISE_EXCEPTION => return Err(self.raise(graph, node, &input(frame, 0), &input(frame, 1))),
            symbols::PRIM_FORK => self.fork(frame, node)?,
            symbols::PRIM_WAIT => match input(frame, 0) {
                Some(Value::Future(f)) => Some(f.wait().map_err(|error| LowerError::Raises {
                    message: error.to_string(),
                })?),
                other => other,
            },
            symbols::PRIM_ISINSTANCE => match (graph.attribute(node, symbols::ATTR_TYPES), input(frame, 0)) {
                (Some(AttributeValue::Types(asked)), Some(value)) => {
                    let answers: Option<Vec<bool>> = asked.iter().map(|&t| self.is_instance(&value, t)).collect();
                    if answers.is_none() {
                        self.refuse(
                            graph,
                            node,
                            "prim::isinstance",
                            "depends on an interface that no module defines",
                        );
                    }
                    answers.map(|answers| Value::Bool(answers.contains(&true)))
                }
                _ => None,
            },
            symbols::ATEN_WARN => {
                let text = self.known_slot(frame, graph.operand(node, 0))?;
                let text = text.as_ref().and_then(Value::as_str).unwrap_or_default();
                self.warnings.push(text.to_owned());
                return Ok(());
            }
            symbols::PRIM_GET_ATTR
            | symbols::PRIM_SET_ATTR
            | symbols::PRIM_CREATE_OBJECT
            | symbols::PRIM_CALL_METHOD
            | symbols::PRIM_CALL_FUNCTION => {
                let inputs: Vec<Slot> = graph.operands(node).map(|v| frame.get(v)).collect();
                let result = match graph.kind(node) {
                    symbols::PRIM_CALL_METHOD | symbols::PRIM_CALL_FUNCTION => None,
                    _ => self.object_node(graph, node, &inputs),
                };
                // What depends on something unsupported says nothing new.
                if result.is_none() && (self.start.module.is_none() || inputs.iter().all(Option::is_some)) {
                    let reason = "stays after freezing: an attribute or call that cannot be folded";
                    self.refuse(graph, node, graph.kind_name(node), reason);
                }
                result
            }
            _ => {
                let results = self.operator(frame, node)?;
                frame.set_all(outputs, results);
                return Ok(());
            }
        };
        frame.set_all(outputs, [result]);
        Ok(())
    }

    fn constant(&mut self, graph: &Graph, node: NodeId) -> Slot {
        let Some(constant) = graph.constant_of(node) else {
            self.refuse(
                graph,
                node,
                "prim::Constant",
                "its value was left out of the text that it was read from",
            );
            return None;
        };
        // A plain list constant is made anew each time, as in the interpreter.
        let value = match &constant {
            Constant::List(_) | Constant::Dict(_) => self.importer.fresh(&constant, None),
            _ => self.importer.value(&constant, None),
        };
        let Ok(value) = value else {
            self.refuse(graph, node, "prim::Constant", "a tensor that does not fit its storage");
            return None;
        };
        self.store.note_constant(&constant, &value);
        self.note_constants(&value);
        Some(value)
    }

    /// Notes the storages of the tensors in a value that is a constant of the graph.
    pub(super) fn note_constants(&mut self, value: &Value) {
        let mut note = |s: &Arc<Storage>| self.constants.insert(super::store::address(s));
        match value {
            Value::Tensor(cell) => {
                note(cell.get().storage());
            }
            Value::List(l) => l.items().iter().for_each(|v| self.note_constants(v)),
            Value::Tuple(t) => t.items.iter().for_each(|v| self.note_constants(v)),
            Value::Dict(d) => {
                let values: Vec<Value> = d.with(|entries| entries.values().cloned().collect());
                values.iter().for_each(|v| self.note_constants(v));
            }
            _ => {}
        }
    }

    fn branch(&mut self, frame: &mut Frame<'_>, node: NodeId) -> Result<(), LowerError> {
        let graph = frame.graph;
        let &[then, other] = graph.node_blocks(node) else {
            self.refuse(graph, node, "prim::If", "does not have two blocks");
            return Ok(());
        };
        let condition = self.known_slot(frame, graph.operand(node, 0))?;
        let taken = match condition {
            Some(Value::Bool(true)) => then,
            Some(Value::Bool(false)) => other,
            _ => {
                // The condition's own reason is known already; both branches may hold more.
                for block in [then, other] {
                    self.scan(graph, block);
                }
                return Ok(());
            }
        };
        let results = self.block(frame, taken)?;
        frame.set_all(graph.node_outputs(node), results);
        Ok(())
    }

    /// Notes the operators without semantics in a block that cannot be run.
    fn scan(&mut self, graph: &Graph, block: BlockId) {
        for node in graph.nodes_recursive(block) {
            match self.registry.lookup(graph, node) {
                Lookup::NoSemantics(schema) => {
                    self.refuse(
                        graph,
                        node,
                        &schema.full_name(self.ctx),
                        "there is no entry for this operator",
                    );
                }
                Lookup::Unknown if !is_structural(graph, node) => {
                    self.refuse(graph, node, graph.kind_name(node), "the operator is not known");
                }
                _ => {}
            }
        }
    }

    fn repeat(&mut self, frame: &mut Frame<'_>, node: NodeId) -> Result<(), LowerError> {
        let graph = frame.graph;
        let &[body] = graph.node_blocks(node) else {
            self.refuse(graph, node, "prim::Loop", "does not have one block");
            return Ok(());
        };
        let mut inputs: Vec<Slot> = graph.operands(node).map(|v| frame.get(v)).collect();
        for (input, variable) in inputs.iter_mut().zip(graph.operands(node)).take(2) {
            *input = self.known_slot(frame, Some(variable))?;
        }
        let (Some(Some(Value::Int(trips))), Some(Some(Value::Bool(first)))) = (inputs.first(), inputs.get(1)) else {
            self.scan(graph, body);
            return Ok(());
        };
        let (trips, mut go) = (*trips, *first);
        let mut carried: Vec<Slot> = inputs[2..].to_vec();
        let mut i = 0;
        while go && i < trips {
            let arguments = std::iter::once(Some(Value::Int(i))).chain(carried);
            frame.set_all(graph.parameters(body), arguments);
            let mut results = self.block(frame, body)?.into_iter();
            let goes_on = results.next().flatten().map(|value| self.known(value)).transpose()?;
            go = match goes_on {
                Some(Value::Bool(b)) => b,
                _ => {
                    // Whether the loop goes on depends on something unsupported: so does all that it gives.
                    frame.set_all(graph.node_outputs(node), results.map(|_| None));
                    return Ok(());
                }
            };
            carried = results.collect();
            i += 1;
        }
        frame.set_all(graph.node_outputs(node), carried);
        Ok(())
    }

    fn fork(&mut self, frame: &mut Frame<'_>, node: NodeId) -> Result<Slot, LowerError> {
        let graph = frame.graph;
        let Some(AttributeValue::Graph(body)) = graph.attribute(node, symbols::ATTR_SUBGRAPH) else {
            self.refuse(graph, node, "prim::fork", "has no graph");
            return Ok(None);
        };
        let arguments = graph.operands(node).map(|v| frame.get(v)).collect();
        let results: Option<Vec<Value>> = self.run(body, arguments)?.into_iter().collect();
        Ok(results.map(|mut all| {
            let value = if all.len() == 1 {
                all.remove(0)
            } else {
                Value::tuple(all)
            };
            Value::Future(FutureValue::done(Ok(value)))
        }))
    }

    fn raise(&self, graph: &Graph, node: NodeId, message: &Slot, class: &Slot) -> LowerError {
        let text = |slot: &Slot| slot.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
        let class = text(class);
        let class = class.strip_prefix("builtins.").unwrap_or(&class);
        let class = if class.is_empty() { "RuntimeError" } else { class };
        let place = self
            .place(graph, node)
            .map(|p| format!(" (at {p})"))
            .unwrap_or_default();
        LowerError::Raises {
            message: format!("{class}: {}{place}", text(message)),
        }
    }

    /// Whether `value` is of type `ty`; `None` if that depends on an interface and there is no module to define it.
    fn is_instance(&self, value: &Value, ty: TypeId) -> Option<bool> {
        let unit = self.start.module.map(|m| &m.unit);
        is_instance(self.ctx, unit, value, ty, &|v| self.number_type(v))
    }
}

/// True for nodes that have no entry because running blocks is what they are about.
fn is_structural(graph: &Graph, node: NodeId) -> bool {
    !graph.node_blocks(node).is_empty()
        || matches!(
            graph.kind(node),
            symbols::PRIM_CONSTANT
                | symbols::PRIM_RAISE_EXCEPTION
                | symbols::PRIM_UNCHECKED_CAST
                | symbols::PRIM_UNINITIALIZED
                | symbols::PRIM_FORK
                | symbols::PRIM_WAIT
                | symbols::PRIM_ISINSTANCE
        )
}
