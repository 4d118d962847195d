//! Evaluation of `torch.jit.trace` and `torch.jit.trace_module`.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use frazil_ir::{Constant, DictConstant, types};
use ruff_python_ast::ExprCall;

use super::arguments::Arguments;
use super::maker::Maker;
use super::value::{FunctionRef, ObjectRef, Py, TracedMethod};
use crate::error::Result;
use crate::names::TracedFunction;
use crate::source::SourceFile;

/// Arguments that are ignored, because the trace is not checked by tracing again.
const IGNORED: &[&str] = &[
    "optimize",
    "check_trace",
    "check_inputs",
    "check_tolerance",
    "_store_inputs",
];

impl Maker<'_> {
    /// Evaluates `torch.jit.trace(...)`; returns `None` for arguments that are not supported.
    pub(super) fn trace(
        &mut self,
        file: &Arc<SourceFile>,
        arguments: &Arguments,
        call: &ExprCall,
    ) -> Result<Option<Py>> {
        let Some(subject) = arguments.get(0, "func").cloned() else {
            return Ok(None);
        };
        let keywords = arguments.named("example_kwarg_inputs").cloned();
        let inputs = arguments.get(1, "example_inputs").cloned();
        let Some(strict) = self.trace_flags(arguments) else {
            return Ok(None);
        };
        let subject = match subject {
            // A trace of a bound method is a trace of its module, with this method.
            Py::Method(object, name) if matches!(&*object, Py::Object(_)) => {
                let Py::Object(object) = &*object else { return Ok(None) };
                let Some(inputs) = self.inputs_of(inputs.as_ref(), None) else {
                    return Ok(None);
                };
                return self
                    .trace_object(file, object, vec![(name, inputs)], strict, call)
                    .map(Some);
            }
            other => other,
        };
        match subject {
            Py::Object(object) if object.borrow().scripted.is_some() => Ok(Some(Py::Object(object))),
            Py::Object(object) => {
                let chain = self.chain(&object)?;
                let forward = chain.iter().find_map(|class| class.method("forward"));
                let Some(inputs) = self.inputs_of(inputs.as_ref(), keywords.as_ref().zip(forward.as_ref())) else {
                    return Ok(None);
                };
                self.trace_object(file, &object, vec![("forward".into(), inputs)], strict, call)
                    .map(Some)
            }
            Py::Function(function) if function.scripted => Ok(Some(Py::Function(function))),
            Py::Function(function) if function.method.is_none() && function.file.rules.is_source() => {
                let Some(inputs) = self.inputs_of(inputs.as_ref(), keywords.as_ref().zip(Some(&function))) else {
                    return Ok(None);
                };
                let functions = &mut self.names.definitions_mut().traces.functions;
                functions.push(TracedFunction {
                    file: Arc::clone(&function.file),
                    statement: function.statement,
                    inputs,
                    strict,
                    error: file.error("trace", "", call),
                    id: None,
                    names: Vec::new(),
                });
                Ok(Some(Py::Traced(functions.len() - 1)))
            }
            _ => Ok(None),
        }
    }

    /// Evaluates `torch.jit.trace_module(...)`.
    pub(super) fn trace_module(
        &mut self,
        file: &Arc<SourceFile>,
        arguments: &Arguments,
        call: &ExprCall,
    ) -> Result<Option<Py>> {
        let (Some(Py::Object(object)), Some(Py::Dict(inputs))) = (arguments.get(0, "mod"), arguments.get(1, "inputs"))
        else {
            return Ok(None);
        };
        let (object, inputs) = (Rc::clone(object), inputs.borrow().clone());
        let Some(strict) = self.trace_flags(arguments) else {
            return Ok(None);
        };
        let mut methods = Vec::new();
        for (name, inputs) in inputs {
            let (Py::Str(name), Some(inputs)) = (name, self.inputs_of(Some(&inputs), None)) else {
                return Ok(None);
            };
            methods.push((name, inputs));
        }
        self.trace_object(file, &object, methods, strict, call).map(Some)
    }

    /// Returns the argument `strict` of a trace; `None` if another argument has an effect that is not supported.
    fn trace_flags(&self, arguments: &Arguments) -> Option<bool> {
        for name in IGNORED {
            arguments.named(name);
        }
        match arguments.named("_force_outplace") {
            None | Some(Py::Bool(false)) => {}
            Some(_) => return None,
        }
        match arguments.named("strict") {
            None => Some(true),
            Some(Py::Bool(strict)) => Some(*strict),
            Some(_) => None,
        }
    }

    /// Returns the example inputs as constants, in the order of the parameters.
    fn inputs_of(&self, inputs: Option<&Py>, keywords: Option<(&Py, &FunctionRef)>) -> Option<Vec<Constant>> {
        let items = match (inputs, keywords) {
            (Some(Py::None) | None, Some((Py::Dict(named), function))) => {
                let named = named.borrow();
                let mut items = Vec::new();
                for parameter in function.def()?.parameters.iter_non_variadic_params() {
                    let name = parameter.parameter.name.as_str();
                    if function.is_method() && items.is_empty() && name == "self" {
                        continue;
                    }
                    let found = named
                        .iter()
                        .find(|(key, _)| matches!(key, Py::Str(key) if &**key == name));
                    items.extend(found.map(|(_, value)| value.clone()));
                }
                (items.len() == named.len()).then_some(items)?
            }
            (Some(one @ (Py::Tensor(_) | Py::Parameter(_) | Py::Dict(_))), None) => vec![one.clone()],
            (Some(Py::Tuple(items)), None) => items.to_vec(),
            (Some(Py::List(items)), None) => items.borrow().clone(),
            _ => return None,
        };
        items.iter().map(|item| self.input(item, 0)).collect()
    }

    fn input(&self, value: &Py, depth: usize) -> Option<Constant> {
        let ctx = self.names.ctx();
        if depth > super::maker::MAX_CALLS || !value.is_small() {
            return None;
        }
        let all =
            |items: &[Py]| -> Option<Vec<Constant>> { items.iter().map(|item| self.input(item, depth + 1)).collect() };
        match value {
            Py::Tensor(_) | Py::Parameter(_) => super::lower::constant(ctx, value, 0),
            Py::Tuple(items) => Some(Constant::tuple(ctx, all(items)?)),
            Py::List(items) => Some(Constant::list(types::TENSOR, all(&items.borrow())?)),
            Py::Dict(items) => {
                let items = items.borrow();
                let (keys, values): (Vec<Py>, Vec<Py>) = items.iter().cloned().unzip();
                let keys = keys.iter().map(|key| match key {
                    Py::Str(text) => Some(Constant::str(&**text)),
                    _ => None,
                });
                let keys: Vec<Constant> = keys.collect::<Option<_>>()?;
                Some(Constant::Dict(Arc::new(DictConstant {
                    key: types::STR,
                    value: types::TENSOR,
                    entries: keys.into_iter().zip(all(&values)?).collect(),
                })))
            }
            _ => None,
        }
    }

    /// Returns a copy of a module with traced methods.
    fn trace_object(
        &mut self,
        file: &Arc<SourceFile>,
        object: &ObjectRef,
        methods: Vec<(Rc<str>, Vec<Constant>)>,
        strict: bool,
        call: &ExprCall,
    ) -> Result<Py> {
        let copy = match self.copied(file, &Py::Object(Rc::clone(object)), call, 0)? {
            Py::Object(copy) => copy,
            other => return Ok(other),
        };
        mark(&copy, object);
        self.has_traces = true;
        let methods = methods.into_iter().map(|(name, inputs)| TracedMethod {
            name,
            inputs,
            strict,
            error: file.error("trace", "", call),
        });
        let mut made = copy.borrow_mut();
        made.traced = methods.collect();
        made.scripted = Some(Rc::clone(object));
        drop(made);
        self.snapshot(file, &Py::Object(Rc::clone(object)), call);
        Ok(Py::Object(copy))
    }
}

/// Records for each module in a traced copy whether its original was in training mode. Modules that are not copied are skipped.
fn mark(copy: &Rc<RefCell<super::value::PyObject>>, original: &ObjectRef) {
    if Rc::ptr_eq(copy, original) {
        return;
    }
    let training = matches!(
        original.borrow().attributes.get("training").map(|a| &a.value),
        Some(Py::Bool(true))
    );
    copy.borrow_mut().trained_when_traced = Some(training);
    let (copy, original) = (copy.borrow(), original.borrow());
    for (name, attribute) in &copy.attributes {
        if let (Py::Object(child), Some(Py::Object(before))) =
            (&attribute.value, original.attributes.get(name).map(|a| &a.value))
        {
            mark(child, before);
        }
    }
}
