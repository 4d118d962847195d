//! Running plans.

use super::forks::{self, Forks};
use super::plan::{Action, BlockPlan, Plan, Step};
use super::{FunctionPlan, Interpreter};
use crate::error::{ErrorKind, ExecError};
use crate::operator::call::{composite_arguments, invoke, write_results};
use crate::operator::op::{Operator, Results, Semantics};
use crate::operator::registry::Lookup;
use crate::value::instance_of::is_instance;
use crate::value::{ObjectValue, Value};
use frazil_ir::{FunctionId, Graph, Module, TypeId, symbols, types};
use smallvec::SmallVec;
use std::sync::Arc;

/// Calls nested more deeply than this are taken for endless recursion.
const MAX_DEPTH: usize = 200;
/// Blocks within blocks, over all calls that are active. Each takes some of the machine's stack.
pub(super) const MAX_BLOCKS: usize = 1000;

/// One activation: the interpreter and how deeply calls are nested.
#[derive(Clone, Copy)]
pub(super) struct Run<'i> {
    pub interpreter: &'i Interpreter,
    pub depth: usize,
    /// How many blocks are being run, those of callers included.
    pub blocks: usize,
    /// Where forks go; they run at once where there is no such place.
    pub forks: Option<Forks<'i>>,
}

impl<'i> Run<'i> {
    /// The outermost activation of a call.
    pub(super) fn new(interpreter: &'i Interpreter, forks: Option<Forks<'i>>) -> Run<'i> {
        Run {
            interpreter,
            depth: 0,
            blocks: 0,
            forks,
        }
    }

    /// Calls a function or method with complete arguments.
    pub(super) fn function(self, id: FunctionId, args: &[Value]) -> Result<Value, ExecError> {
        let Some(module) = &self.interpreter.module else {
            return Err(ExecError::malformed("a call without a module"));
        };
        let FunctionPlan { partitioned, plan } = self.interpreter.plan_of(id, module);
        let graph = partitioned.as_deref().unwrap_or(&module.unit.function(id).graph);
        let mut results = self.graph(graph, &plan, args)?;
        match results.len() {
            0 => Ok(Value::None),
            1 => Ok(results.remove(0)),
            _ => Ok(Value::tuple(results)),
        }
    }

    /// Runs a graph.
    pub(super) fn graph(self, graph: &Graph, plan: &Plan, args: &[Value]) -> Result<Vec<Value>, ExecError> {
        if self.depth > MAX_DEPTH {
            return Err(ExecError::raised("RecursionError", "maximum recursion depth exceeded"));
        }
        if args.len() != plan.body.parameters.len() {
            return Err(ExecError::malformed(format!(
                "a graph of {} inputs was given {} arguments",
                plan.body.parameters.len(),
                args.len()
            )));
        }
        let mut frame = Frame {
            run: self,
            graph,
            plan,
            slots: vec![Value::None; plan.frame],
        };
        frame.set_all(&plan.body.parameters, args.iter().cloned());
        frame.block(&plan.body)
    }

    /// Runs an operator whose semantics is the graph `body`.
    pub(super) fn composite(self, op: &Operator, body: &Arc<Graph>, values: &[Value]) -> Result<Results, ExecError> {
        let plan = self.interpreter.plan_shared(body);
        let arguments = composite_arguments(op, body, values);
        let results = self.graph(body, &plan, &arguments)?;
        Ok(write_results(op, values, results.into())?)
    }

    pub(super) fn deeper(self) -> Self {
        Run {
            depth: self.depth + 1,
            ..self
        }
    }
}

struct Frame<'f> {
    run: Run<'f>,
    graph: &'f Graph,
    plan: &'f Plan,
    slots: Vec<Value>,
}

impl Frame<'_> {
    fn get(&self, slot: u32) -> Value {
        self.slots.get(slot as usize).cloned().unwrap_or_default()
    }

    fn set_all(&mut self, slots: &[u32], values: impl Iterator<Item = Value>) {
        for (&slot, value) in slots.iter().zip(values) {
            if let Some(place) = self.slots.get_mut(slot as usize) {
                *place = value;
            }
        }
    }

    fn block(&mut self, block: &BlockPlan) -> Result<Vec<Value>, ExecError> {
        if self.run.blocks >= MAX_BLOCKS {
            let message = format!("more than {MAX_BLOCKS} blocks within blocks");
            return Err(ExecError::raised("RecursionError", message));
        }
        self.run.blocks += 1;
        let results = self.steps(block);
        self.run.blocks -= 1;
        results
    }

    fn steps(&mut self, block: &BlockPlan) -> Result<Vec<Value>, ExecError> {
        // The objects of the `with`s that are open.
        let mut entered: Vec<Value> = Vec::new();
        for step in &block.steps {
            self.run.interpreter.take_step()?;
            let done = self.step(step);
            if done.is_err() {
                self.leave(&entered)?;
            }
            match &step.action {
                Action::Enter => entered.extend(step.inputs.first().map(|&s| self.get(s))),
                Action::Exit => drop(entered.pop()),
                _ => {}
            }
            done.map_err(|e| {
                // The innermost place first; enclosing blocks of the same node add nothing.
                let structural = matches!(step.action, Action::If(..) | Action::Loop(_));
                let range = self.graph.source_range(step.node);
                match step.action {
                    _ if structural => e,
                    // A part stands where its nodes stood.
                    Action::Part(_) => e.within(self.graph.ctx(), range),
                    _ => e.at(self.graph.ctx(), range),
                }
            })?;
            for &slot in &step.dead {
                if let Some(place) = self.slots.get_mut(slot as usize) {
                    *place = Value::None;
                }
            }
        }
        Ok(block.results.iter().map(|&s| self.get(s)).collect())
    }

    fn step(&mut self, step: &Step) -> Result<(), ExecError> {
        let input = |i: usize| step.inputs.get(i).map(|&s| self.get(s)).unwrap_or_default();
        let result = match &step.action {
            Action::Constant(v) => v.clone(),
            Action::Forward => input(0),
            Action::If(then, other) => {
                let taken = match input(0) {
                    Value::Bool(true) => then,
                    Value::Bool(false) => other,
                    v => {
                        return Err(ExecError::malformed(format!(
                            "a condition is not a truth value but {v:?}"
                        )));
                    }
                };
                let results = self.block(taken)?;
                self.set_all(&step.outputs, results.into_iter());
                return Ok(());
            }
            Action::Loop(body) => return self.repeat(step, body),
            Action::GetAttr(name) => {
                let object = self.object(&input(0))?;
                let slot = self.slot_of(&object, *name)?;
                object.slot(slot).unwrap_or_default()
            }
            Action::ContainerItem => self.container_item(&input(0), &input(1))?,
            Action::SetAttr(name) => {
                let object = self.object(&input(0))?;
                let slot = self.slot_of(&object, *name)?;
                object.set_slot(slot, input(1));
                return Ok(());
            }
            Action::CallMethod(name) => {
                let object = self.object(&input(0))?;
                let module = self.module()?;
                let ctx = self.graph.ctx();
                let Some(id) = module.unit.method(object.class(), *name) else {
                    let (class, name) = (ctx.name(object.class()), ctx.name(*name));
                    return Err(ExecError::malformed(format!("class '{class}' has no method '{name}'")));
                };
                self.run.deeper().function(id, &self.inputs(step))?
            }
            Action::Enter => self.method(&input(0), "__enter__", &[])?,
            Action::Exit => self.method(&input(0), "__exit__", &[Value::None, Value::None, Value::None])?,
            Action::Print => {
                let inputs = self.inputs(step);
                let ctx = self.graph.ctx();
                let words: Vec<String> = inputs.iter().map(|v| crate::value::format::str_of(ctx, v)).collect();
                self.run.interpreter.output.print(&words.join(" "));
                return Ok(());
            }
            Action::CallFunction => {
                let inputs = self.inputs(step);
                let (Some(Value::Function(name)), module) = (inputs.first(), self.module()?) else {
                    return Err(ExecError::malformed("a call of something that is no function"));
                };
                let Some(id) = module.unit.find_function(*name) else {
                    let name = self.graph.ctx().name(*name);
                    return Err(ExecError::malformed(format!("there is no function '{name}'")));
                };
                self.run.deeper().function(id, &inputs[1..])?
            }
            Action::CreateObject(class) => {
                let module = self.module()?;
                let slots = module.unit.class(*class).map_or(0, |c| c.attributes.len());
                Value::Object(ObjectValue::new(*class, vec![Value::None; slots]))
            }
            Action::Part(graph) => {
                let inputs = self.inputs(step);
                let delegate = self.run.interpreter.delegate.as_ref();
                let results = match delegate.and_then(|d| d.run(graph, &inputs)) {
                    Some(results) => results,
                    None => {
                        let plan = self.run.interpreter.plan_shared(graph);
                        self.run.deeper().graph(graph, &plan, &inputs)?
                    }
                };
                self.set_all(&step.outputs, results.into_iter());
                return Ok(());
            }
            Action::Fork(graph) => Value::Future(forks::fork(self.run, graph, self.inputs(step))),
            Action::Wait => match input(0) {
                Value::Future(f) => forks::wait(self.run, &f)?,
                other => other,
            },
            Action::Raise => return Err(self.exception(&input(0), &input(1))),
            Action::IsInstance(types) => {
                let value = input(0);
                let answers: Result<Vec<bool>, ExecError> =
                    types.iter().map(|&t| self.is_instance(&value, t)).collect();
                Value::Bool(answers?.contains(&true))
            }
            Action::Operator(op) => return self.operator(step, op),
            Action::Dynamic => return self.dynamic(step),
            Action::Missing => return Err(ExecError::new(ErrorKind::Missing(self.plan.missing.clone()))),
        };
        self.set_all(&step.outputs, std::iter::once(result));
        Ok(())
    }

    /// Calls method `name` of an object.
    fn method(&self, object: &Value, name: &str, arguments: &[Value]) -> Result<Value, ExecError> {
        let this = self.object(object)?;
        let module = self.module()?;
        let id = module
            .ctx()
            .find_symbol(name)
            .and_then(|n| module.unit.method(this.class(), n));
        let Some(id) = id else {
            return Err(ExecError::malformed(format!(
                "an object of a `with` has no method '{name}'"
            )));
        };
        let all: Vec<Value> = std::iter::once(object.clone())
            .chain(arguments.iter().cloned())
            .collect();
        self.run.deeper().function(id, &all)
    }

    /// Leaves `with`s whose block raised, the innermost first.
    fn leave(&self, entered: &[Value]) -> Result<(), ExecError> {
        entered.iter().rev().try_for_each(|object| {
            self.method(object, "__exit__", &[Value::None, Value::None, Value::None])
                .map(drop)
        })
    }

    fn inputs(&self, step: &Step) -> Vec<Value> {
        step.inputs.iter().map(|&s| self.get(s)).collect()
    }

    fn module(&self) -> Result<&Module, ExecError> {
        self.run
            .interpreter
            .module
            .as_deref()
            .ok_or_else(|| ExecError::malformed("the graph needs its module"))
    }

    fn object(&self, value: &Value) -> Result<ObjectValue, ExecError> {
        match value {
            Value::Object(o) => Ok(o.clone()),
            other => Err(ExecError::malformed(format!(
                "an attribute of {other:?}, which is no object"
            ))),
        }
    }

    fn slot_of(&self, object: &ObjectValue, name: frazil_ir::SymbolId) -> Result<usize, ExecError> {
        let class = self.module()?.unit.class(object.class());
        class.and_then(|c| c.attributes.get_index_of(&name)).ok_or_else(|| {
            let ctx = self.graph.ctx();
            ExecError::malformed(format!(
                "'{}' has no attribute '{}'",
                ctx.name(object.class()),
                ctx.name(name)
            ))
        })
    }

    /// The module of a `ModuleList` with a number, or of a `ModuleDict` with a key: the attribute of that name.
    fn container_item(&self, container: &Value, index: &Value) -> Result<Value, ExecError> {
        let object = self.object(container)?;
        let key = match index {
            Value::Int(number) => number.to_string(),
            other => other.as_str().unwrap_or_default().to_owned(),
        };
        let ctx = self.graph.ctx();
        let slot = ctx.find_symbol(&key).and_then(|name| self.slot_of(&object, name).ok());
        let item = slot.and_then(|slot| object.slot(slot));
        match item {
            Some(Value::Object(module)) => Ok(Value::Object(module)),
            _ => Err(ExecError::raised(
                "RuntimeError",
                format!(
                    "'{}' object has no attribute or method '{key}'",
                    ctx.name(object.class())
                ),
            )),
        }
    }

    /// `prim::Loop(max_trip_count, condition, carried...)`; the body gives the next condition and the carried values.
    fn repeat(&mut self, step: &Step, body: &BlockPlan) -> Result<(), ExecError> {
        let inputs = self.inputs(step);
        let (Some(&Value::Int(trips)), Some(&Value::Bool(condition))) = (inputs.first(), inputs.get(1)) else {
            return Err(ExecError::malformed("a loop without a trip count and a condition"));
        };
        let mut go = condition;
        let mut carried: Vec<Value> = inputs[2..].to_vec();
        let mut i = 0;
        while go && i < trips {
            self.run.interpreter.take_step()?;
            let arguments = std::iter::once(Value::Int(i)).chain(carried);
            self.set_all(&body.parameters, arguments);
            let mut results = self.block(body)?.into_iter();
            go = match results.next() {
                Some(Value::Bool(b)) => b,
                _ => return Err(ExecError::malformed("a loop's condition is not a truth value")),
            };
            carried = results.collect();
            i += 1;
        }
        self.set_all(&step.outputs, carried.into_iter());
        Ok(())
    }

    fn exception(&self, message: &Value, class: &Value) -> ExecError {
        let message = message.as_str().unwrap_or_default().to_string();
        let class = class.as_str().unwrap_or("RuntimeError");
        let class = class.strip_prefix("builtins.").unwrap_or(class).to_string();
        ExecError::new(ErrorKind::Raised {
            class,
            message,
            user: true,
        })
    }

    fn is_instance(&self, value: &Value, ty: TypeId) -> Result<bool, ExecError> {
        let ctx = self.graph.ctx();
        let unit = self.run.interpreter.module.as_ref().map(|m| &m.unit);
        is_instance(ctx, unit, value, ty, &|_| None).ok_or_else(|| {
            ExecError::malformed(format!(
                "isinstance with {} needs a definition of that interface",
                types::display_type(ctx, ty, types::TypeStyle::Ir)
            ))
        })
    }

    fn operator(&mut self, step: &Step, op: &Operator) -> Result<(), ExecError> {
        let graph = self.graph;
        let values: SmallVec<[Value; 8]> = step.inputs.iter().map(|&s| self.get(s)).collect();
        let output_types: SmallVec<[TypeId; 2]> = graph.node_outputs(step.node).iter().map(|&v| graph.ty(v)).collect();
        if op.schema().name == symbols::ATEN_WARN {
            let text = values.first().and_then(Value::as_str).unwrap_or_default();
            self.run.interpreter.output.warn(text);
            return Ok(());
        }
        if let Some(sorted) = self.sorted_objects(op, &values)? {
            self.set_all(&step.outputs, sorted.into_iter());
            return Ok(());
        }
        if let Some(observer) = &self.run.interpreter.observer {
            observer.operator(op, &values);
        }
        let results: Results = match op.semantics() {
            Semantics::Composite(body) => self.run.deeper().composite(op, body, &values)?,
            _ => invoke(graph.ctx(), op, &values, &output_types, graph.attributes(step.node))?,
        };
        if results.len() < step.outputs.len() {
            return Err(ExecError::malformed(format!(
                "{} gave too few results",
                op.schema().full_name(graph.ctx())
            )));
        }
        self.set_all(&step.outputs, results.into_iter());
        Ok(())
    }

    /// `sort` and `sorted` of objects, which call their class's `__lt__`; `None` for anything else.
    fn sorted_objects(&self, op: &Operator, values: &[Value]) -> Result<Option<Results>, ExecError> {
        let ctx = self.graph.ctx();
        let in_place = match ctx.name(op.schema().name) {
            "aten::sort" => true,
            "aten::sorted" => false,
            _ => return Ok(None),
        };
        let Some(Value::List(list)) = values.first() else {
            return Ok(None);
        };
        let items = list.items();
        let Some(Value::Object(first)) = items.first() else {
            return Ok(None);
        };
        let reverse = matches!(values.get(1), Some(Value::Bool(true)));
        let method = ctx
            .find_symbol("__lt__")
            .and_then(|name| self.module().ok()?.unit.method(first.class(), name));
        let Some(method) = method else {
            let class = ctx.name(first.class());
            return Err(ExecError::malformed(format!("class '{class}' has no method '__lt__'")));
        };
        let less = |a: &Value, b: &Value| -> Result<bool, ExecError> {
            let (a, b) = if reverse { (b, a) } else { (a, b) };
            let result = self.run.deeper().function(method, &[a.clone(), b.clone()])?;
            Ok(matches!(result, Value::Bool(true)))
        };
        // Insertion by bisection behind what is equal: stable, and an exception of the method ends it.
        let mut sorted: Vec<Value> = Vec::with_capacity(items.len());
        for item in items {
            let (mut low, mut high) = (0, sorted.len());
            while low < high {
                let middle = low.midpoint(high);
                match sorted.get(middle) {
                    Some(other) if less(&item, other)? => high = middle,
                    _ => low = middle + 1,
                }
            }
            sorted.insert(low, item);
        }
        if in_place {
            list.change(|all| *all = sorted);
            return Ok(Some(Results::new()));
        }
        let sorted = crate::value::ListValue::new(list.element, sorted);
        Ok(Some(smallvec::smallvec![Value::List(sorted)]))
    }

    /// Chooses the overload by what the operands are now.
    fn dynamic(&mut self, step: &Step) -> Result<(), ExecError> {
        let ctx = self.graph.ctx();
        let operands: Vec<TypeId> = step
            .inputs
            .iter()
            .map(|&s| match self.get(s) {
                // An empty container fits any; its own type says which.
                v @ (Value::List(_) | Value::Dict(_)) => v.ty(ctx),
                Value::Tensor(_) => types::TENSOR,
                v => v.ty(ctx),
            })
            .collect();
        match self
            .run
            .interpreter
            .registry
            .lookup_types(self.graph.kind(step.node), &operands)
        {
            Lookup::Found(op) => self.operator(step, &op),
            Lookup::NoSemantics(schema) => {
                let name = schema.full_name(ctx);
                Err(ExecError::new(ErrorKind::Missing(vec![super::MissingOperator {
                    name,
                    place: None,
                }])))
            }
            Lookup::NoOverload | Lookup::Unknown => {
                let shown: Vec<String> = operands
                    .iter()
                    .map(|&t| types::display_type(ctx, t, types::TypeStyle::Ir).to_string())
                    .collect();
                let kind = self.graph.kind_name(step.node);
                Err(ExecError::malformed(format!(
                    "no overload of {kind} takes ({})",
                    shown.join(", ")
                )))
            }
        }
    }
}
