//! The walker of TorchScript, which executes a graph node by node for every engine.
//!
//! [`walk`] runs the steps of a [`GraphPlan`]: blocks, `prim::If`, `prim::Loop`, `with`, the limits on nesting, and the choice of overloads by values. A
//! [`Host`] defines the values, and implements operators, attributes and calls:
//!
//! - The interpreter's values are complete.
//! - Specialisation has tensors without elements. A condition may be unknown ([`Host::known`]), and the walk continues after its node or ends, as the host
//!   decides in [`Host::undecided`].
//! - A trace of source notes each value's counterpart in the trace beside it.

use super::plan::{Action, BlockPlan, Slot, Step};
use crate::error::MissingOperator;
use crate::operator::op::Operator;
use crate::operator::registry::{Lookup, Registry};
use crate::value::Value;
use frazil_ir::{Graph, NodeId, SymbolId, TypeId, ValueId};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;

pub use super::plan::GraphPlan;

/// Maximum nesting of calls; deeper nesting is treated as infinite recursion. Composites, forks and subgraphs count as calls.
pub const MAX_CALLS: usize = 200;
/// Maximum nesting of blocks over all active calls, because each uses some of the machine's stack.
pub const MAX_BLOCKS: usize = 1000;

/// Nesting depth of a host's active graphs and blocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nesting {
    calls: usize,
    blocks: usize,
}

/// Position of the node that is being executed.
#[derive(Clone, Copy)]
pub struct At<'g> {
    /// The graph.
    pub graph: &'g Graph,
    /// The node in `graph`.
    pub node: NodeId,
}

/// Operands of a node.
pub type Operands<V> = SmallVec<[V; 8]>;
/// Outputs of a node. Missing outputs at the end have the default value.
pub type Outputs<V> = SmallVec<[V; 1]>;

/// How a host wants the remaining iterations of a loop to be run.
pub enum LoopEntry<V> {
    /// One by one: the next iteration is run, and the host is asked again.
    Iterate,
    /// The body is run once, with these values of its parameters. [`Host::leave_loop`] then gets its results.
    Once(Vec<V>),
    /// The body is not run. These are the outputs of the loop.
    Done(Vec<V>),
}

/// Defines the representation of values during a [`walk`], and executes all nodes except control flow.
pub trait Host {
    /// The representation of a value of the program. The default represents a variable that is not set.
    type Value: Clone + Default + From<Value>;
    /// The reason why a [`walk`] ends early.
    type Error;

    /// Returns the nesting depth of the active calls of [`walk`].
    fn nesting(&mut self) -> &mut Nesting;

    /// Returns the registry by which operators are resolved.
    fn registry(&self) -> &Registry;

    /// Returns the error for calls or blocks that are nested more deeply than [`MAX_CALLS`] or [`MAX_BLOCKS`], a `RecursionError` in Python.
    fn too_deep(&self, message: String) -> Self::Error;

    /// Counts a node, or an iteration of a loop.
    ///
    /// # Errors
    /// When the step limit or another limit is exceeded.
    fn take_step(&mut self) -> Result<(), Self::Error>;

    /// Adds the source location of a node to an error.
    fn located(&self, error: Self::Error, at: At<'_>) -> Self::Error;

    /// Ends a walk with an error. [`Frame::path`] has the nodes that were being executed.
    fn unwound(&mut self, frame: &Frame<'_, Self::Value>, error: Self::Error) -> Self::Error {
        let _ = frame;
        error
    }

    /// Returns the value of a constant.
    fn constant(&mut self, at: At<'_>, value: &Value) -> Self::Value {
        let _ = at;
        value.clone().into()
    }

    /// Returns the value of a condition or trip count; `None` if it is unknown.
    ///
    /// # Errors
    /// When the walk has to end before the value can be known.
    fn known(&mut self, value: Self::Value) -> Result<Option<Value>, Self::Error>;

    /// Reports a branch or loop whose condition or trip count is `found`: unknown (`None`), or of another type than expected.
    ///
    /// If it returns no error, [`Host::missing`] is called for the nodes without semantics in its blocks. The walk then continues after the node, whose outputs
    /// have the default value.
    ///
    /// # Errors
    /// When the walk has to end.
    fn undecided(&mut self, at: At<'_>, found: Option<Value>) -> Result<(), Self::Error>;

    /// Decides how the iterations `remaining` of a loop are run, of which the first one is due. `frame` has the values that the body may read, `carried` are the
    /// current values of the variables that the loop carries.
    ///
    /// # Errors
    /// When the walk has to end.
    fn enter_loop(
        &mut self,
        at: At<'_>,
        frame: &Frame<'_, Self::Value>,
        remaining: Range<i64>,
        carried: &[Self::Value],
    ) -> Result<LoopEntry<Self::Value>, Self::Error> {
        let _ = (at, frame, remaining, carried);
        Ok(LoopEntry::Iterate)
    }

    /// Returns the outputs of a loop of which one iteration has been run as [`LoopEntry::Once`]. `results` are the results of its body.
    ///
    /// # Errors
    /// When the walk has to end.
    fn leave_loop(&mut self, results: Vec<Self::Value>) -> Result<Vec<Self::Value>, Self::Error> {
        Ok(results)
    }

    /// Returns the type by which an overload is selected; `None` if it is unknown.
    fn type_of(&self, value: &Self::Value) -> Option<TypeId>;

    /// Returns whether a value is an instance of a type; `None` if that is unknown.
    ///
    /// # Errors
    /// When the walk has to end.
    fn is_instance(&mut self, at: At<'_>, value: &Self::Value, ty: TypeId) -> Result<Option<bool>, Self::Error>;

    /// Runs an operator.
    ///
    /// # Errors
    /// Exceptions of the operator.
    fn operator(
        &mut self,
        at: At<'_>,
        op: &Operator,
        operands: Operands<Self::Value>,
    ) -> Result<Outputs<Self::Value>, Self::Error>;

    /// Reports a node without semantics. `all` lists all such nodes of the graph. If the host returns no error, the node's outputs have the default value.
    ///
    /// # Errors
    /// When the walk has to end.
    fn missing(&mut self, at: At<'_>, all: &[MissingOperator]) -> Result<(), Self::Error>;

    /// Reports a node of which no overload with semantics accepts these operand types, as [`Host::missing`] does for other nodes.
    ///
    /// # Errors
    /// When the walk has to end.
    fn unresolved(&mut self, at: At<'_>, found: &Lookup, operands: &[TypeId]) -> Result<(), Self::Error>;

    /// Reads an attribute of an object.
    ///
    /// # Errors
    /// When there is none, or the walk has to end.
    fn attribute(&mut self, at: At<'_>, object: Self::Value, name: SymbolId) -> Result<Self::Value, Self::Error>;

    /// Sets an attribute of an object.
    ///
    /// # Errors
    /// See [`Host::attribute`].
    fn set_attribute(
        &mut self,
        at: At<'_>,
        object: Self::Value,
        name: SymbolId,
        value: Self::Value,
    ) -> Result<(), Self::Error>;

    /// Returns a submodule of a `ModuleList` by its index, or of a `ModuleDict` by its key.
    ///
    /// # Errors
    /// See [`Host::attribute`].
    fn item(&mut self, at: At<'_>, container: Self::Value, index: Self::Value) -> Result<Self::Value, Self::Error>;

    /// Creates an object of a class, with unset attributes.
    ///
    /// # Errors
    /// When the walk has to end.
    fn create(&mut self, at: At<'_>, class: SymbolId) -> Result<Self::Value, Self::Error>;

    /// Calls a method of the first operand.
    ///
    /// # Errors
    /// Exceptions of the method.
    fn call_method(
        &mut self,
        at: At<'_>,
        name: SymbolId,
        operands: Operands<Self::Value>,
    ) -> Result<Self::Value, Self::Error>;

    /// Calls the first operand, a function.
    ///
    /// # Errors
    /// Exceptions of the function.
    fn call_function(&mut self, at: At<'_>, operands: Operands<Self::Value>) -> Result<Self::Value, Self::Error>;

    /// Calls `__enter__` of the object of a `with`.
    ///
    /// # Errors
    /// Exceptions of the method.
    fn enter(&mut self, at: At<'_>, object: Self::Value) -> Result<Self::Value, Self::Error>;

    /// Calls `__exit__` of the object of a `with`, at the end of the `with` or after its block has raised.
    ///
    /// # Errors
    /// Exceptions of the method. If the block has raised an exception, that one is returned instead, as in PyTorch.
    fn exit(&mut self, at: At<'_>, object: Self::Value) -> Result<Self::Value, Self::Error>;

    /// Prints the operands.
    ///
    /// # Errors
    /// When the walk has to end.
    fn print(&mut self, at: At<'_>, operands: Operands<Self::Value>) -> Result<(), Self::Error>;

    /// Emits a warning. Its text is the first operand.
    ///
    /// # Errors
    /// When the walk has to end.
    fn warn(&mut self, at: At<'_>, operands: Operands<Self::Value>) -> Result<(), Self::Error>;

    /// Returns the error for `raise` with a message and the name of the exception's class.
    fn raise(&mut self, at: At<'_>, message: Self::Value, class: Self::Value) -> Self::Error;

    /// Runs a subgraph of a method (`prim::TensorExprGroup`).
    ///
    /// # Errors
    /// Exceptions of the subgraph.
    fn part(
        &mut self,
        at: At<'_>,
        graph: &Arc<Graph>,
        operands: Operands<Self::Value>,
    ) -> Result<Vec<Self::Value>, Self::Error>;

    /// Starts a fork; returns its future.
    ///
    /// # Errors
    /// When the walk has to end. Exceptions of the fork are raised by [`Host::wait`].
    fn fork(
        &mut self,
        at: At<'_>,
        graph: &Arc<Graph>,
        operands: Operands<Self::Value>,
    ) -> Result<Self::Value, Self::Error>;

    /// Returns the result of a future.
    ///
    /// # Errors
    /// The exception of the fork.
    fn wait(&mut self, at: At<'_>, future: Self::Value) -> Result<Self::Value, Self::Error>;
}

/// The values of a running graph.
pub struct Frame<'g, V> {
    graph: &'g Graph,
    slots: Vec<V>,
    path: Vec<NodeId>,
}

impl<'g, V: Clone + Default> Frame<'g, V> {
    /// Returns the graph.
    pub fn graph(&self) -> &'g Graph {
        self.graph
    }

    /// Returns the values of the graph with their contents. Values that are not read again contain the default value.
    pub fn held(&self) -> impl Iterator<Item = (ValueId, &V)> {
        (0..).map(ValueId::from_u32).zip(&self.slots)
    }

    /// Returns the nodes that were being executed at an error, the outermost first.
    pub fn path(&self) -> &[NodeId] {
        &self.path
    }

    fn get(&self, slot: Slot) -> V {
        self.slots.get(slot as usize).cloned().unwrap_or_default()
    }

    fn operand(&self, step: &Step, index: usize) -> V {
        step.inputs.get(index).map(|&s| self.get(s)).unwrap_or_default()
    }

    fn set_all(&mut self, slots: &[Slot], values: impl IntoIterator<Item = V>) {
        for (&slot, value) in slots.iter().zip(values) {
            self.set(slot, value);
        }
    }

    fn set(&mut self, slot: Slot, value: V) {
        if let Some(place) = self.slots.get_mut(slot as usize) {
            *place = value;
        }
    }
}

/// Runs `graph`, whose plan is `plan`, on complete arguments. Returns its outputs.
///
/// # Errors
/// Exceptions of the program, and every other error of `host`.
pub fn walk<H: Host>(
    host: &mut H,
    graph: &Graph,
    plan: &GraphPlan,
    arguments: impl IntoIterator<Item = H::Value>,
) -> Result<Vec<H::Value>, H::Error> {
    if host.nesting().calls > MAX_CALLS {
        return Err(host.too_deep("maximum recursion depth exceeded".to_owned()));
    }
    let mut frame = Frame {
        graph,
        slots: vec![H::Value::default(); plan.frame],
        path: Vec::new(),
    };
    frame.set_all(&plan.body.parameters, arguments);
    host.nesting().calls += 1;
    let mut walker = Walker { host, plan, frame };
    let results = walker.block(&plan.body);
    let Walker { host, mut frame, .. } = walker;
    let results = results.map_err(|error| {
        frame.path.reverse();
        host.unwound(&frame, error)
    });
    host.nesting().calls -= 1;
    results
}

struct Walker<'w, H: Host> {
    host: &'w mut H,
    plan: &'w GraphPlan,
    frame: Frame<'w, H::Value>,
}

impl<H: Host> Walker<'_, H> {
    fn operands(&self, step: &Step) -> Operands<H::Value> {
        step.inputs.iter().map(|&s| self.frame.get(s)).collect()
    }

    fn block(&mut self, block: &BlockPlan) -> Result<Vec<H::Value>, H::Error> {
        if self.host.nesting().blocks >= MAX_BLOCKS {
            let message = format!("more than {MAX_BLOCKS} blocks within blocks");
            return Err(self.host.too_deep(message));
        }
        self.host.nesting().blocks += 1;
        let results = self.steps(block);
        self.host.nesting().blocks -= 1;
        results
    }

    fn steps(&mut self, block: &BlockPlan) -> Result<Vec<H::Value>, H::Error> {
        // The nodes of the `with`s that are open, and their objects.
        let mut entered: Vec<(NodeId, H::Value)> = Vec::new();
        for step in &block.steps {
            self.host.take_step()?;
            if let Action::Exit = step.action {
                entered.pop();
            }
            if let Err(error) = self.step(step) {
                return Err(self.unwind(step, error, entered));
            }
            if let Action::Enter = step.action {
                entered.push((step.node, self.frame.operand(step, 0)));
            }
            for &slot in &step.dead {
                self.frame.set(slot, H::Value::default());
            }
        }
        Ok(block.results.iter().map(|&s| self.frame.get(s)).collect())
    }

    /// Leaves the open `with` statements after an error, the innermost first, and returns the error with the location
    /// of the step.
    #[cold]
    fn unwind(&mut self, step: &Step, error: H::Error, entered: Vec<(NodeId, H::Value)>) -> H::Error {
        self.frame.path.push(step.node);
        let graph = self.frame.graph;
        for (node, object) in entered.into_iter().rev() {
            // The block's exception is the one that counts.
            drop(self.host.exit(At { graph, node }, object));
        }
        match step.action {
            // The innermost place first; enclosing blocks of the same node add nothing.
            Action::If(..) | Action::Loop(_) => error,
            _ => self.host.located(error, At { graph, node: step.node }),
        }
    }

    fn step(&mut self, step: &Step) -> Result<(), H::Error> {
        let graph = self.frame.graph;
        let at = At { graph, node: step.node };
        let first = || self.frame.operand(step, 0);
        let result = match &step.action {
            Action::Operator(op) => {
                let operands = self.operands(step);
                let outputs = self.host.operator(at, op, operands)?;
                self.give(step, outputs);
                return Ok(());
            }
            Action::Constant(v) => self.host.constant(at, v),
            Action::Forward => first(),
            Action::If(then, other) => return self.branch(step, then, other),
            Action::Loop(body) => return self.repeat(step, body),
            Action::GetAttr(name) => {
                let object = first();
                self.host.attribute(at, object, *name)?
            }
            Action::SetAttr(name) => {
                let (object, value) = (first(), self.frame.operand(step, 1));
                return self.host.set_attribute(at, object, *name, value);
            }
            _ => return self.rare(step, at),
        };
        self.give(step, [result]);
        Ok(())
    }

    /// Runs the kinds of nodes that are rare. They have a function of their own, so that other steps need little stack.
    #[inline(never)]
    fn rare(&mut self, step: &Step, at: At<'_>) -> Result<(), H::Error> {
        let operands = self.operands(step);
        let first = || operands.first().cloned().unwrap_or_default();
        let second = || operands.get(1).cloned().unwrap_or_default();
        let result = match &step.action {
            Action::ContainerItem => self.host.item(at, first(), second())?,
            Action::CallMethod(name) => self.host.call_method(at, *name, operands)?,
            Action::CallFunction => self.host.call_function(at, operands)?,
            Action::Enter => self.host.enter(at, first())?,
            Action::Exit => self.host.exit(at, first())?,
            Action::Print => return self.host.print(at, operands),
            Action::Warn => return self.host.warn(at, operands),
            Action::CreateObject(class) => self.host.create(at, *class)?,
            Action::Part(graph) => {
                let results = self.host.part(at, graph, operands)?;
                self.give(step, results);
                return Ok(());
            }
            Action::Fork(graph) => self.host.fork(at, graph, operands)?,
            Action::Wait => self.host.wait(at, first())?,
            Action::Raise => return Err(self.host.raise(at, first(), second())),
            Action::IsInstance(types) => {
                let value = first();
                let mut holds = Some(false);
                for &ty in types {
                    let own = self.host.is_instance(at, &value, ty)?;
                    holds = holds.zip(own).map(|(any, own)| any || own);
                }
                holds.map(|holds| Value::Bool(holds).into()).unwrap_or_default()
            }
            Action::Dynamic => return self.dynamic(step, at, operands),
            _ => {
                self.host.missing(at, &self.plan.missing)?;
                H::Value::default()
            }
        };
        self.give(step, [result]);
        Ok(())
    }

    /// Assigns the results of a step to its outputs. Outputs without a result get the default value.
    fn give(&mut self, step: &Step, results: impl IntoIterator<Item = H::Value>) {
        let mut results = results.into_iter();
        for &slot in &step.outputs {
            self.frame.set(slot, results.next().unwrap_or_default());
        }
    }

    fn branch(&mut self, step: &Step, then: &BlockPlan, other: &BlockPlan) -> Result<(), H::Error> {
        let condition = self.frame.operand(step, 0);
        let results = match self.host.known(condition)? {
            Some(Value::Bool(true)) => self.block(then)?,
            Some(Value::Bool(false)) => self.block(other)?,
            found => return self.undecided(step, found),
        };
        self.give(step, results);
        Ok(())
    }

    /// Runs `prim::Loop(max_trip_count, condition, carried...)`. The body returns the next condition and the carried
    /// values.
    fn repeat(&mut self, step: &Step, body: &BlockPlan) -> Result<(), H::Error> {
        let (trips, condition) = (self.frame.operand(step, 0), self.frame.operand(step, 1));
        let trips = match self.host.known(trips)? {
            Some(Value::Int(trips)) => trips,
            found => return self.undecided(step, found),
        };
        let mut condition = self.host.known(condition)?;
        let mut carried: Vec<H::Value> = step.inputs.iter().skip(2).map(|&s| self.frame.get(s)).collect();
        let mut i = 0;
        loop {
            match condition {
                Some(Value::Bool(true)) if i < trips => {}
                Some(Value::Bool(_)) => break,
                found => return self.undecided(step, found),
            }
            let graph = self.frame.graph;
            let at = At { graph, node: step.node };
            match self.host.enter_loop(at, &self.frame, i..trips, &carried)? {
                LoopEntry::Iterate => {}
                LoopEntry::Once(arguments) => {
                    self.frame.set_all(&body.parameters, arguments);
                    let results = self.block(body)?;
                    carried = self.host.leave_loop(results)?;
                    break;
                }
                LoopEntry::Done(outputs) => {
                    carried = outputs;
                    break;
                }
            }
            self.host.take_step()?;
            let arguments = std::iter::once(Value::Int(i).into()).chain(carried);
            self.frame.set_all(&body.parameters, arguments);
            let mut results = self.block(body)?.into_iter();
            i += 1;
            let next = results.next().unwrap_or_default();
            carried = results.collect();
            condition = self.host.known(next)?;
        }
        self.give(step, carried);
        Ok(())
    }

    fn undecided(&mut self, step: &Step, found: Option<Value>) -> Result<(), H::Error> {
        let graph = self.frame.graph;
        self.host.undecided(At { graph, node: step.node }, found)?;
        let mut pending: Vec<&BlockPlan> = step.action.blocks();
        while let Some(block) = pending.pop() {
            for step in &block.steps {
                if let Action::Missing = step.action {
                    self.host.missing(At { graph, node: step.node }, &self.plan.missing)?;
                }
                pending.extend(step.action.blocks());
            }
        }
        self.give(step, []);
        Ok(())
    }

    /// Selects the overload by the types of the operands at run time, and runs it.
    fn dynamic(&mut self, step: &Step, at: At<'_>, operands: Operands<H::Value>) -> Result<(), H::Error> {
        let types: Option<Vec<TypeId>> = operands.iter().map(|v| self.host.type_of(v)).collect();
        let Some(types) = types else {
            self.give(step, []);
            return Ok(());
        };
        let found = self.host.registry().lookup_types(at.graph.kind(at.node), &types);
        match &found {
            Lookup::Found(op) => {
                let outputs = self.host.operator(at, op, operands)?;
                self.give(step, outputs);
            }
            other => {
                self.host.unresolved(at, other, &types)?;
                self.give(step, []);
            }
        }
        Ok(())
    }
}

/// Returns class and message of the exception for the operands of `prim::RaiseException`.
pub fn exception(message: &Value, class: &Value) -> (String, String) {
    let class = class.as_str().unwrap_or_default();
    let class = class.strip_prefix("builtins.").unwrap_or(class);
    let class = if class.is_empty() { "RuntimeError" } else { class };
    (class.to_owned(), message.as_str().unwrap_or_default().to_owned())
}
