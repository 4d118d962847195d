//! The interpreter as a host of the walker: all values are known, and objects and functions belong to the interpreter's module.

use super::forks::{self, Forks};
use super::plan::GraphPlan;
use super::walk::{At, Host, Nesting, Operands, Outputs, exception, walk};
use super::{FunctionPlan, Interpreter};
use crate::error::{ErrorKind, ExecError, MissingOperator};
use crate::operator::call::{composite_arguments, invoke, write_results};
use crate::operator::op::{Operator, Results, Semantics};
use crate::operator::registry::{Lookup, Registry};
use crate::value::instance_of::is_instance;
use crate::value::sorting::sorted_by;
use crate::value::{ListValue, ObjectValue, Value};
use frazil_ir::{FunctionId, Graph, Module, SymbolId, TypeId, symbols, types};
use smallvec::SmallVec;
use std::sync::Arc;

/// State of a running call: the interpreter, and the nesting depth.
#[derive(Clone, Copy)]
pub(super) struct Run<'i> {
    pub interpreter: &'i Interpreter,
    nesting: Nesting,
    /// Access to the queue of forks; without it, forks run immediately.
    pub forks: Option<Forks<'i>>,
}

impl<'i> Run<'i> {
    /// Returns the state of an outermost call.
    pub(super) fn new(interpreter: &'i Interpreter, forks: Option<Forks<'i>>) -> Run<'i> {
        Run {
            interpreter,
            nesting: Nesting::default(),
            forks,
        }
    }

    /// Calls a function or method with complete arguments.
    pub(super) fn function(&mut self, id: FunctionId, args: &[Value]) -> Result<Value, ExecError> {
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
    pub(super) fn graph(&mut self, graph: &Graph, plan: &GraphPlan, args: &[Value]) -> Result<Vec<Value>, ExecError> {
        let expected = graph.inputs().len();
        if args.len() != expected {
            return Err(ExecError::malformed(format!(
                "a graph of {expected} inputs was given {} arguments",
                args.len()
            )));
        }
        walk(self, graph, plan, args.iter().cloned())
    }

    /// Runs an operator whose semantics is the graph `body`.
    pub(super) fn composite(
        &mut self,
        op: &Operator,
        body: &Arc<Graph>,
        values: &[Value],
    ) -> Result<Results, ExecError> {
        let plan = self.interpreter.plan_shared(body);
        let arguments = composite_arguments(op, body, values);
        let results = self.graph(body, &plan, &arguments)?;
        Ok(write_results(op, values, results.into())?)
    }

    fn module(&self) -> Result<&'i Module, ExecError> {
        let module = self.interpreter.module.as_deref();
        module.ok_or_else(|| ExecError::malformed("the graph needs its module"))
    }

    /// Calls the method `name` (`__enter__`, `__exit__`) of the object of a `with` statement.
    fn method(&mut self, object: Value, name: &str, arguments: &[Value]) -> Result<Value, ExecError> {
        let this = as_object(&object)?;
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
        let all: Vec<Value> = std::iter::once(object).chain(arguments.iter().cloned()).collect();
        self.function(id, &all)
    }

    fn slot_of(&self, object: &ObjectValue, name: SymbolId) -> Result<usize, ExecError> {
        let module = self.module()?;
        let class = module.unit.class(object.class());
        class.and_then(|c| c.attributes.get_index_of(&name)).ok_or_else(|| {
            let ctx = module.ctx();
            ExecError::malformed(format!(
                "'{}' has no attribute '{}'",
                ctx.name(object.class()),
                ctx.name(name)
            ))
        })
    }

    /// Runs `sort` and `sorted` on objects, which call the class's `__lt__`; returns `None` for anything else.
    fn sorted_objects(&mut self, op: &Operator, values: &[Value]) -> Result<Option<Results>, ExecError> {
        // Few operators have a list as their first argument.
        let Some(Value::List(list)) = values.first() else {
            return Ok(None);
        };
        let ctx = self.interpreter.registry.ctx();
        let in_place = match ctx.name(op.schema().name) {
            "aten::sort" => true,
            "aten::sorted" => false,
            _ => return Ok(None),
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
            let result = self.function(method, &[a.clone(), b.clone()])?;
            Ok(matches!(result, Value::Bool(true)))
        };
        let sorted = sorted_by(items, less)?;
        if in_place {
            list.change(|all| *all = sorted);
            return Ok(Some(Results::new()));
        }
        let sorted = ListValue::new(list.element, sorted);
        Ok(Some(smallvec::smallvec![Value::List(sorted)]))
    }
}

impl Host for Run<'_> {
    type Value = Value;
    type Error = ExecError;

    fn nesting(&mut self) -> &mut Nesting {
        &mut self.nesting
    }

    fn registry(&self) -> &Registry {
        &self.interpreter.registry
    }

    fn too_deep(&self, message: String) -> ExecError {
        ExecError::raised("RecursionError", message)
    }

    fn take_step(&mut self) -> Result<(), ExecError> {
        self.interpreter.take_step()
    }

    fn located(&self, error: ExecError, at: At<'_>) -> ExecError {
        let range = at.graph.source_range(at.node);
        match at.graph.kind(at.node) {
            // A part stands where its nodes stood.
            symbols::PRIM_TENSOR_EXPR_GROUP | symbols::PRIM_FUNCTIONAL_GRAPH => error.within(at.graph.ctx(), range),
            _ => error.at(at.graph.ctx(), range),
        }
    }

    fn known(&mut self, value: Value) -> Result<Option<Value>, ExecError> {
        Ok(Some(value))
    }

    fn undecided(&mut self, at: At<'_>, found: Option<Value>) -> Result<(), ExecError> {
        let expected = match at.graph.kind(at.node) {
            symbols::PRIM_LOOP => "a loop needs a trip count and a condition, not",
            _ => "a condition is not a bool but",
        };
        let found = found.unwrap_or_default();
        Err(ExecError::malformed(format!("{expected} {found:?}")))
    }

    fn type_of(&self, value: &Value) -> Option<TypeId> {
        Some(match value {
            Value::Tensor(_) => types::TENSOR,
            // An empty container fits any; its own type says which.
            other => other.ty(self.interpreter.registry.ctx()),
        })
    }

    fn is_instance(&mut self, at: At<'_>, value: &Value, ty: TypeId) -> Result<Option<bool>, ExecError> {
        let ctx = at.graph.ctx();
        let unit = self.interpreter.module.as_ref().map(|m| &m.unit);
        let holds = is_instance(ctx, unit, value, ty, &|_| None);
        holds.map(Some).ok_or_else(|| {
            ExecError::malformed(format!(
                "isinstance with {} needs a definition of that interface",
                types::display_type(ctx, ty, types::TypeStyle::Ir)
            ))
        })
    }

    fn operator(&mut self, at: At<'_>, op: &Operator, values: Operands<Value>) -> Result<Outputs<Value>, ExecError> {
        let graph = at.graph;
        if let Some(sorted) = self.sorted_objects(op, &values)? {
            return Ok(sorted);
        }
        if let Some(observer) = &self.interpreter.observer {
            observer.operator(op, &values);
        }
        let outputs = graph.node_outputs(at.node);
        let results: Results = match op.semantics() {
            Semantics::Composite(body) => self.composite(op, body, &values)?,
            _ => {
                let output_types: SmallVec<[TypeId; 2]> = outputs.iter().map(|&v| graph.ty(v)).collect();
                invoke(graph.ctx(), op, &values, &output_types, graph.attributes(at.node))?
            }
        };
        if results.len() < outputs.len() {
            return Err(ExecError::malformed(format!(
                "{} gave too few results",
                op.schema().full_name(graph.ctx())
            )));
        }
        Ok(results)
    }

    fn missing(&mut self, _: At<'_>, all: &[MissingOperator]) -> Result<(), ExecError> {
        Err(ExecError::new(ErrorKind::Missing(all.to_vec())))
    }

    fn unresolved(&mut self, at: At<'_>, found: &Lookup, operands: &[TypeId]) -> Result<(), ExecError> {
        let ctx = at.graph.ctx();
        if let Lookup::NoSemantics(schema) = found {
            let name = schema.full_name(ctx);
            return Err(ExecError::new(ErrorKind::Missing(vec![MissingOperator {
                name,
                place: None,
            }])));
        }
        let shown: Vec<String> = operands
            .iter()
            .map(|&t| types::display_type(ctx, t, types::TypeStyle::Ir).to_string())
            .collect();
        let kind = at.graph.kind_name(at.node);
        Err(ExecError::malformed(format!(
            "no overload of {kind} takes ({})",
            shown.join(", ")
        )))
    }

    fn attribute(&mut self, _: At<'_>, object: Value, name: SymbolId) -> Result<Value, ExecError> {
        let object = as_object(&object)?;
        let slot = self.slot_of(&object, name)?;
        Ok(object.slot(slot).unwrap_or_default())
    }

    fn set_attribute(&mut self, _: At<'_>, object: Value, name: SymbolId, value: Value) -> Result<(), ExecError> {
        let object = as_object(&object)?;
        let slot = self.slot_of(&object, name)?;
        object.set_slot(slot, value);
        Ok(())
    }

    fn item(&mut self, at: At<'_>, container: Value, index: Value) -> Result<Value, ExecError> {
        let object = as_object(&container)?;
        // The attribute of that name.
        let key = match &index {
            Value::Int(number) => number.to_string(),
            other => other.as_str().unwrap_or_default().to_owned(),
        };
        let ctx = at.graph.ctx();
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

    fn create(&mut self, _: At<'_>, class: SymbolId) -> Result<Value, ExecError> {
        let module = self.module()?;
        let slots = module.unit.class(class).map_or(0, |c| c.attributes.len());
        Ok(Value::Object(ObjectValue::new(class, vec![Value::None; slots])))
    }

    fn call_method(&mut self, at: At<'_>, name: SymbolId, operands: Operands<Value>) -> Result<Value, ExecError> {
        let object = as_object(operands.first().unwrap_or(&Value::None))?;
        let ctx = at.graph.ctx();
        let Some(id) = self.module()?.unit.method(object.class(), name) else {
            let (class, name) = (ctx.name(object.class()), ctx.name(name));
            return Err(ExecError::malformed(format!("class '{class}' has no method '{name}'")));
        };
        self.function(id, &operands)
    }

    fn call_function(&mut self, at: At<'_>, operands: Operands<Value>) -> Result<Value, ExecError> {
        let (Some(Value::Function(name)), module) = (operands.first(), self.module()?) else {
            return Err(ExecError::malformed("a call of something that is no function"));
        };
        let Some(id) = module.unit.find_function(*name) else {
            let name = at.graph.ctx().name(*name);
            return Err(ExecError::malformed(format!("there is no function '{name}'")));
        };
        self.function(id, operands.get(1..).unwrap_or_default())
    }

    fn enter(&mut self, _: At<'_>, object: Value) -> Result<Value, ExecError> {
        self.method(object, "__enter__", &[])
    }

    fn exit(&mut self, _: At<'_>, object: Value) -> Result<Value, ExecError> {
        self.method(object, "__exit__", &[Value::None, Value::None, Value::None])
    }

    fn print(&mut self, at: At<'_>, operands: Operands<Value>) -> Result<(), ExecError> {
        let ctx = at.graph.ctx();
        let words: Vec<String> = operands.iter().map(|v| crate::value::format::str_of(ctx, v)).collect();
        self.interpreter.output.print(&words.join(" "));
        Ok(())
    }

    fn warn(&mut self, _: At<'_>, operands: Operands<Value>) -> Result<(), ExecError> {
        let text = operands.first().and_then(Value::as_str);
        self.interpreter.output.warn(text.unwrap_or_default());
        Ok(())
    }

    fn raise(&mut self, _: At<'_>, message: Value, class: Value) -> ExecError {
        let (class, message) = exception(&message, &class);
        ExecError::new(ErrorKind::Raised {
            class,
            message,
            user: true,
        })
    }

    fn part(&mut self, _: At<'_>, graph: &Arc<Graph>, operands: Operands<Value>) -> Result<Vec<Value>, ExecError> {
        let delegate = self.interpreter.delegate.as_ref();
        match delegate.and_then(|d| d.run(graph, &operands)) {
            Some(results) => Ok(results),
            None => {
                let plan = self.interpreter.plan_shared(graph);
                self.graph(graph, &plan, &operands)
            }
        }
    }

    fn fork(&mut self, _: At<'_>, graph: &Arc<Graph>, operands: Operands<Value>) -> Result<Value, ExecError> {
        Ok(Value::Future(forks::fork(*self, graph, operands.into_vec())))
    }

    fn wait(&mut self, _: At<'_>, future: Value) -> Result<Value, ExecError> {
        match future {
            Value::Future(f) => forks::wait(*self, &f),
            other => Ok(other),
        }
    }
}

fn as_object(value: &Value) -> Result<ObjectValue, ExecError> {
    match value {
        Value::Object(o) => Ok(o.clone()),
        other => Err(ExecError::malformed(format!(
            "an attribute of {other:?}, which is no object"
        ))),
    }
}
