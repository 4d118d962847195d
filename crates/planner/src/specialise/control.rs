//! Specialisation as a host of the interpreter's walker. Tensors have no elements, so conditions may be unknown, and values may depend on something that is
//! not supported.

use super::loops::not_rolled;
use super::plans::{Owner, Planned, tells_places};
use super::state::{Slot, Specialiser};
use crate::error::LowerError;
use frazil_ir::{Constant, Graph, SymbolId, TypeId, symbols, types};
use frazil_runtime::interp::MissingOperator;
use frazil_runtime::interp::walk::{At, GraphPlan, Host, LoopEntry, Nesting, Operands, Outputs, exception, walk};
use frazil_runtime::op::Operator;
use frazil_runtime::registry::Lookup;
use frazil_runtime::storage::Storage;
use frazil_runtime::value::{FutureValue, Value};
use frazil_runtime::{Registry, is_instance};
use std::ops::Range;
use std::sync::Arc;

/// Maximum number of steps of a run, including those of unrolled loops. The interpreter has no such limit. Here, each step of a tensor operator adds code.
const MAX_STEPS: usize = 1_000_000;

/// Reason for refusing an attribute, object or call.
const STAYS: &str = "stays after freezing: an attribute or call that cannot be folded";

impl Specialiser<'_> {
    /// Runs the graph of the method and returns its outputs.
    pub(super) fn run(&mut self, graph: &Graph, arguments: Vec<Slot>) -> Result<Vec<Slot>, LowerError> {
        let shared = self.start.shared.as_ref();
        if let Some(planned) = shared.and_then(|shared| shared.plans.method(graph, shared.module, self.registry)) {
            return self.run_again(graph, &planned, arguments);
        }
        let plan = GraphPlan::new(graph, self.registry, &mut self.importer, None);
        let tells = self.answers.is_some() && tells_places(graph, self.registry);
        self.run_planned(graph, &plan, tells, arguments)
    }

    /// Runs a subgraph of the method, which may be run again.
    pub(super) fn run_subgraph(&mut self, graph: &Arc<Graph>, arguments: Vec<Slot>) -> Result<Vec<Slot>, LowerError> {
        let planned = self.plan(graph);
        self.run_again(graph, &planned, arguments)
    }

    /// Runs the graph of a composite.
    pub(super) fn run_composite(&mut self, graph: &Arc<Graph>, arguments: Vec<Slot>) -> Result<Vec<Slot>, LowerError> {
        let shared = self.start.shared.as_ref();
        let planned = shared.and_then(|shared| shared.plans.composite(graph, self.registry));
        let planned = planned.unwrap_or_else(|| self.plan(graph));
        self.run_again(graph, &planned, arguments)
    }

    /// Returns the plan of a graph that this specialisation may run again.
    fn plan(&mut self, graph: &Arc<Graph>) -> Arc<Planned> {
        let address = Arc::as_ptr(graph) as usize;
        let (registry, importer) = (self.registry, &mut self.importer);
        let make = || Planned::new(graph, Arc::clone(graph) as Owner, registry, importer);
        Arc::clone(self.plans.entry(address).or_insert_with(make))
    }

    fn run_again(&mut self, graph: &Graph, planned: &Planned, arguments: Vec<Slot>) -> Result<Vec<Slot>, LowerError> {
        let tells = self.answers.is_some() && planned.tells_places(graph, self.registry);
        self.run_planned(graph, &planned.plan, tells, arguments)
    }

    /// Runs `graph` as its plan says. `tells` is the result of [`tells_places`] for the graph.
    fn run_planned(
        &mut self,
        graph: &Graph,
        plan: &GraphPlan,
        tells: bool,
        arguments: Vec<Slot>,
    ) -> Result<Vec<Slot>, LowerError> {
        self.telling += usize::from(tells);
        let results = walk(self, graph, plan, arguments);
        self.telling -= usize::from(tells);
        results
    }

    /// Records the storages of all tensors in `value`, which is a constant of the graph.
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

    fn refuse_unresolved(&mut self, at: At<'_>, found: &Lookup) {
        let kind = || at.graph.kind_name(at.node).to_owned();
        let (name, reason) = match found {
            Lookup::NoSemantics(schema) => (schema.full_name(self.ctx), "there is no entry for this operator"),
            Lookup::NoOverload => (kind(), "no overload takes these operands"),
            Lookup::Unknown | Lookup::Found(_) => (kind(), "the operator is not known"),
        };
        self.refuse(at.graph, at.node, &name, reason);
    }

    /// Runs a method of an object of a class of the module. The first argument is the object.
    fn run_method(&mut self, at: At<'_>, name: SymbolId, arguments: Vec<Slot>) -> Result<Slot, LowerError> {
        let start = self.start;
        let function = match (start.module, arguments.first()) {
            (Some(module), Some(Some(Value::Object(object)))) => {
                let method = module.unit.method(object.class(), name);
                let function = method.map(|id| module.unit.function(id));
                function.filter(|function| function.graph.inputs().len() == arguments.len())
            }
            _ => None,
        };
        let Some(function) = function else {
            return Ok(self.of_object(at, arguments.iter().all(Option::is_some), None));
        };
        let plan = GraphPlan::new(&function.graph, self.registry, &mut self.importer, None);
        let tells = self.answers.is_some() && tells_places(&function.graph, self.registry);
        let mut results = self.run_planned(&function.graph, &plan, tells, arguments)?;
        Ok(match results.len() {
            0 => Some(Value::None),
            1 => results.remove(0),
            _ => results.into_iter().collect::<Option<Vec<Value>>>().map(Value::tuple),
        })
    }

    /// Returns `result`. If it is `None`, refuses the node, which is on objects. Nodes with an unknown operand are not refused, because the cause has been
    /// reported already.
    fn of_object(&mut self, at: At<'_>, are_known: bool, result: Slot) -> Slot {
        if result.is_none() && (self.start.module.is_none() || are_known) {
            self.refuse(at.graph, at.node, at.graph.kind_name(at.node), STAYS);
        }
        result
    }
}

impl Host for Specialiser<'_> {
    type Value = Slot;
    type Error = LowerError;

    fn nesting(&mut self) -> &mut Nesting {
        &mut self.nesting
    }

    fn registry(&self) -> &Registry {
        self.registry
    }

    fn too_deep(&self, message: String) -> LowerError {
        LowerError::Raises {
            message: format!("RecursionError: {message}"),
        }
    }

    fn take_step(&mut self) -> Result<(), LowerError> {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return Err(LowerError::TooLong { steps: MAX_STEPS });
        }
        Ok(frazil_limits::check()?)
    }

    fn located(&self, error: LowerError, _: At<'_>) -> LowerError {
        error
    }

    fn unwound(&mut self, frame: &Frame<'_>, error: LowerError) -> LowerError {
        match error {
            LowerError::Waits { .. } => self.note_live(frame).err().unwrap_or(error),
            other => other,
        }
    }

    fn constant(&mut self, at: At<'_>, value: &Value) -> Slot {
        if let Some(constant) = at.graph.constant_of(at.node) {
            self.store.note_constant(&constant, value);
            self.note_constants(value);
        }
        Some(value.clone())
    }

    fn known(&mut self, value: Slot) -> Result<Slot, LowerError> {
        value.map(|value| self.known_value(value)).transpose()
    }

    fn undecided(&mut self, _: At<'_>, _: Slot) -> Result<(), LowerError> {
        // The value's own reason is known already; the blocks may hold more.
        Ok(())
    }

    fn enter_loop(
        &mut self,
        at: At<'_>,
        frame: &Frame<'_>,
        remaining: Range<i64>,
        carried: &[Slot],
    ) -> Result<LoopEntry<Slot>, LowerError> {
        self.enter_rolled(at, frame, &remaining, carried)
    }

    fn leave_loop(&mut self, results: Vec<Slot>) -> Result<Vec<Slot>, LowerError> {
        self.leave_rolled(results)
    }

    fn type_of(&self, value: &Slot) -> Option<TypeId> {
        Some(match value.as_ref()? {
            v @ Value::Tensor(_) => self.number_type(v).unwrap_or(types::TENSOR),
            v => v.ty(self.ctx),
        })
    }

    fn is_instance(&mut self, at: At<'_>, value: &Slot, ty: TypeId) -> Result<Option<bool>, LowerError> {
        let Some(value) = value else { return Ok(None) };
        let unit = self.start.module.map(|m| &m.unit);
        let holds = is_instance(self.ctx, unit, value, ty, &|v| self.number_type(v));
        if holds.is_none() {
            let reason = "depends on an interface that no module defines";
            self.refuse(at.graph, at.node, at.graph.kind_name(at.node), reason);
        }
        Ok(holds)
    }

    fn operator(&mut self, at: At<'_>, op: &Operator, operands: Operands<Slot>) -> Result<Outputs<Slot>, LowerError> {
        self.run_operator(at.graph, at.node, op, operands)
    }

    fn missing(&mut self, at: At<'_>, _: &[MissingOperator]) -> Result<(), LowerError> {
        let At { graph, node } = at;
        if graph.kind(node) == symbols::PRIM_CONSTANT {
            let reason = match graph.constant_of(node) {
                None => "its value was left out of the text that it was read from",
                Some(Constant::Object(_)) => STAYS,
                Some(_) => "a tensor that does not fit its storage",
            };
            self.refuse(graph, node, graph.kind_name(node), reason);
            return Ok(());
        }
        let found = self.registry.lookup(graph, node);
        self.refuse_unresolved(at, &found);
        Ok(())
    }

    fn unresolved(&mut self, at: At<'_>, found: &Lookup, _: &[TypeId]) -> Result<(), LowerError> {
        self.refuse_unresolved(at, found);
        Ok(())
    }

    fn attribute(&mut self, at: At<'_>, object: Slot, name: SymbolId) -> Result<Slot, LowerError> {
        let found = self.object_slot(&object, name);
        let value = found.and_then(|(object, slot)| object.slot(slot));
        Ok(self.of_object(at, object.is_some(), value))
    }

    fn set_attribute(&mut self, at: At<'_>, object: Slot, name: SymbolId, value: Slot) -> Result<(), LowerError> {
        if self.rolling.is_some() {
            return Err(not_rolled());
        }
        let found = self.object_slot(&object, name).zip(value.clone());
        let set = found.and_then(|((object, slot), value)| object.set_slot(slot, value).then_some(Value::None));
        self.of_object(at, object.is_some() && value.is_some(), set);
        Ok(())
    }

    fn create(&mut self, at: At<'_>, class: SymbolId) -> Result<Slot, LowerError> {
        let object = self.new_object(class);
        Ok(self.of_object(at, true, object))
    }

    fn item(&mut self, at: At<'_>, _: Slot, _: Slot) -> Result<Slot, LowerError> {
        self.refuse_unresolved(at, &Lookup::Unknown);
        Ok(None)
    }

    fn call_method(&mut self, at: At<'_>, name: SymbolId, operands: Operands<Slot>) -> Result<Slot, LowerError> {
        self.run_method(at, name, operands.into_vec())
    }

    fn call_function(&mut self, at: At<'_>, operands: Operands<Slot>) -> Result<Slot, LowerError> {
        Ok(self.of_object(at, operands.iter().all(Option::is_some), None))
    }

    fn enter(&mut self, at: At<'_>, object: Slot) -> Result<Slot, LowerError> {
        self.run_method(at, self.ctx.symbol("__enter__"), vec![object])
    }

    fn exit(&mut self, at: At<'_>, object: Slot) -> Result<Slot, LowerError> {
        if self.waiting.is_some() {
            // The block goes on after the graph break.
            return Ok(None);
        }
        let none = || Some(Value::None);
        self.run_method(at, self.ctx.symbol("__exit__"), vec![object, none(), none(), none()])
    }

    fn print(&mut self, at: At<'_>, _: Operands<Slot>) -> Result<(), LowerError> {
        self.refuse_unresolved(at, &Lookup::Unknown);
        Ok(())
    }

    fn warn(&mut self, _: At<'_>, operands: Operands<Slot>) -> Result<(), LowerError> {
        let text = self.known(operands.into_iter().next().flatten())?;
        let text = text.as_ref().and_then(Value::as_str).unwrap_or_default();
        self.warnings.push(text.to_owned());
        Ok(())
    }

    fn raise(&mut self, at: At<'_>, message: Slot, class: Slot) -> LowerError {
        let (class, message) = exception(&message.unwrap_or_default(), &class.unwrap_or_default());
        let place = self.place(at.graph, at.node).map(|p| format!(" (at {p})"));
        LowerError::Raises {
            message: format!("{class}: {message}{}", place.unwrap_or_default()),
        }
    }

    fn part(&mut self, _: At<'_>, graph: &Arc<Graph>, operands: Operands<Slot>) -> Result<Vec<Slot>, LowerError> {
        self.run_subgraph(graph, operands.into_vec())
    }

    fn fork(&mut self, _: At<'_>, graph: &Arc<Graph>, operands: Operands<Slot>) -> Result<Slot, LowerError> {
        let results = self.run_subgraph(graph, operands.into_vec())?;
        let results: Option<Vec<Value>> = results.into_iter().collect();
        Ok(results.map(|mut all| {
            let value = if all.len() == 1 {
                all.remove(0)
            } else {
                Value::tuple(all)
            };
            Value::Future(FutureValue::done(Ok(value)))
        }))
    }

    fn wait(&mut self, _: At<'_>, future: Slot) -> Result<Slot, LowerError> {
        match future {
            Some(Value::Future(f)) => Ok(Some(f.wait().map_err(|error| LowerError::Raises {
                message: error.to_string(),
            })?)),
            other => Ok(other),
        }
    }
}

/// The variables of a graph while it is run.
pub(super) type Frame<'g> = frazil_runtime::interp::walk::Frame<'g, Slot>;
