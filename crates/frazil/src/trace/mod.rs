//! Tracing: records the operations of a Rust function on tensors as a graph.
//!
//! ```
//! use frazil::{Session, Tensor, trace::TraceOptions};
//!
//! # fn main() -> Result<(), frazil::Error> {
//! let session = Session::new();
//! let x = Tensor::from_f32(&[1.0, -2.0], &[2])?;
//! let trace = session.trace(|x| x[0].relu().call()? * 2.0, &[x.clone()], &TraceOptions::default())?;
//! assert!(trace.graph("forward")?.to_string().contains("aten::relu(%x)"));
//! assert_eq!(trace.call("forward", &[x])?[0].get().to_f64_vec(), [2.0, 0.0]);
//! # Ok(())
//! # }
//! ```
//!
//! As in PyTorch, a trace contains the calls that were made, for the given shapes; it does not contain Rust's own `if` and `for`. Warnings refer to source
//! locations where this may matter, and a check with other inputs ([`TraceOptions::check_inputs`]) shows whether it does. [`Parameters`] become attributes of
//! the module that [`Session::trace_module`] returns; other tensors that the function uses become constants. Gradients are not recorded: the types have
//! `requires_grad=0`.

mod check;
mod closeness;
mod module;
mod ndiff;

pub use crate::eager::outputs::Outputs;
pub use crate::eager::warning::{TracerWarning, WarningKind};
pub use crate::error::TracingCheckError;
pub use module::{Parameters, Scope};

use crate::eager::recorder::Recorder;
use crate::eager::{Ops, Var};
use crate::error::{Error, Result};
use crate::model::loaded::{Graphs, Loaded};
use crate::model::{Model, PassOptions};
use crate::session::Session;
use crate::support::setters::setters;
use frazil_ir::schema::{Argument, FunctionSchema};
use frazil_ir::{CompilationUnit, Function, Graph, TypeId, symbols};
use frazil_runtime::interp::Interpreter;
use frazil_runtime::value::TensorCell;
use frazil_runtime::{Tensor, Value};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Options for tracing.
///
/// ```
/// # use frazil::{Session, Tensor, trace::TraceOptions};
/// # let session = Session::new();
/// let options = TraceOptions::default().names(vec!["image".to_owned()]).force_outplace(true);
/// let trace = session.trace(|x| x[0].relu_().call(), &[Tensor::from_f32(&[1.0], &[1])?], &options)?;
/// assert!(trace.graph("forward")?.to_string().contains("aten::relu(%image)"));
/// # Ok::<(), frazil::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TraceOptions {
    /// Names of the inputs. Inputs without a name are called `x`, `x1`, `x2`, ...
    pub names: Vec<String>,
    /// Checks the trace: runs it on the example inputs or `check_inputs`, traces again, and compares.
    pub check_trace: bool,
    /// Inputs with which the trace is checked, in place of the example inputs.
    pub check_inputs: Vec<Vec<Tensor>>,
    /// Relative tolerance for results when the trace is checked.
    pub check_tolerance: f64,
    /// Refuses lists and dictionaries as results, because the trace would fix their number of elements.
    pub strict: bool,
    /// Records the functional variants of in-place operators, which return new tensors.
    pub force_outplace: bool,
}

setters!(TraceOptions {
    names: Vec<String>,
    check_trace: bool,
    check_inputs: Vec<Vec<Tensor>>,
    check_tolerance: f64,
    strict: bool,
    force_outplace: bool,
});

impl Default for TraceOptions {
    fn default() -> TraceOptions {
        TraceOptions {
            names: Vec::new(),
            check_trace: true,
            check_inputs: Vec::new(),
            check_tolerance: 1e-5,
            strict: true,
            force_outplace: false,
        }
    }
}

/// A function to be traced as a method: of the module's parameters, and of tensors.
///
/// See [`Session::trace_module`] for an example.
pub type MethodFn<'f> = dyn Fn(&Scope, &[Var]) -> Result<Outputs> + 'f;

/// A method to trace: its name, its function, and its example inputs.
///
/// See [`Session::trace_module`] for an example.
pub struct Method<'f> {
    /// The name of the method, such as `forward`.
    pub name: &'f str,
    /// The function that is traced.
    pub function: &'f MethodFn<'f>,
    /// The example inputs with which the function is traced.
    pub inputs: &'f [Tensor],
}

/// A traced function or module.
///
/// ```
/// # use frazil::{FreezeOptions, Session, Tensor, trace::TraceOptions};
/// # let session = Session::new();
/// let trace = session.trace(|x| x[0].neg().call(), &[Tensor::from_f32(&[1.0], &[1])?], &TraceOptions::default())?;
/// assert!(trace.warnings.is_empty() && trace.graph("forward")?.inputs().len() == 1);
/// assert!(trace.loaded().code(None, false)?.contains("torch.neg(x)"));
/// assert_eq!(trace.to_model().root().method_names(), ["forward"]);
/// assert_eq!(trace.call("forward", &[Tensor::from_f32(&[4.0], &[1])?])?[0].to_vec(), [-4.0]);
/// # Ok::<(), frazil::Error>(())
/// ```
#[derive(Clone)]
pub struct Trace {
    loaded: Loaded,
    /// Warnings about code that the trace does not represent.
    pub warnings: Vec<TracerWarning>,
}

impl Trace {
    /// Returns the graph of a method; a traced function is called `forward`.
    ///
    /// See [`Trace`] for an example.
    ///
    /// # Errors
    /// If there is no such method.
    pub fn graph(&self, name: &str) -> Result<TracedGraph<'_>> {
        Ok(TracedGraph(self.loaded.graph(name)?))
    }

    /// Returns the trace as a loaded model, which can be frozen, transformed by passes, printed and written.
    ///
    /// See [`Trace`] for an example.
    pub fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    /// Returns the traced module. For a traced function, the module has no attributes.
    ///
    /// See [`Trace`] for an example.
    pub fn to_model(&self) -> Model {
        match &self.loaded {
            Loaded::Model(model) => model.clone(),
            Loaded::Graphs(graphs) => graphs.to_model(),
        }
    }

    /// Calls a method in the reference interpreter and returns the tensors of its result.
    ///
    /// See [`Trace`] for an example.
    ///
    /// # Errors
    /// If the program raises.
    pub fn call(&self, method: &str, inputs: &[Tensor]) -> Result<Vec<Var>> {
        run(&self.to_model(), method, inputs)
    }
}

/// A graph whose `Display` is PyTorch's text of graphs.
///
/// See the [module documentation](self) for an example.
pub struct TracedGraph<'t>(&'t Graph);

impl std::ops::Deref for TracedGraph<'_> {
    type Target = Graph;

    fn deref(&self) -> &Graph {
        self.0
    }
}

impl fmt::Display for TracedGraph<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&frazil_syntax::print_graph(self.0))
    }
}

/// Runs a method of a new instance of `model` on copies of the inputs.
fn run(model: &Model, method: &str, inputs: &[Tensor]) -> Result<Vec<Var>> {
    let ops = model.session().eager();
    let interpreter = Interpreter::with_module(Arc::clone(model.session().registry()), Arc::clone(model.module()))?;
    let args: Vec<Value> = copies(inputs)?.into_iter().map(Value::from).collect();
    let result = interpreter.call(method, &args).map_err(Error::Run)?;
    let mut pending = vec![result];
    let mut out = Vec::new();
    while let Some(value) = pending.pop() {
        match value {
            Value::Tensor(cell) => out.push(ops.wrap(cell)),
            Value::Dict(dict) => {
                pending.extend(dict.with(|entries| entries.values().rev().cloned().collect::<Vec<_>>()))
            }
            other => pending.extend(other.items().unwrap_or_default().into_iter().rev()),
        }
    }
    Ok(out)
}

/// Returns new tensors with the same elements, since a traced function may write to its inputs.
fn copies(inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    let each = inputs.iter().map(Tensor::deep_copy_preserving_strides);
    Ok(each.collect::<Result<_, _>>()?)
}

/// The graph and outputs of one run of a function whose operators are recorded.
struct Recorded {
    graph: Graph,
    outputs: Outputs,
    functions: Vec<Function>,
    warnings: Vec<TracerWarning>,
}

impl Session {
    /// Records the operations of `function` on `inputs` (`torch.jit.trace`).
    ///
    /// See the [module documentation](crate::trace) for an example.
    ///
    /// # Errors
    /// The errors of the function; also if its result is a list or dictionary and `options` are strict, and if checking with other inputs leads to
    /// another graph.
    pub fn trace<R: Into<Outputs>>(
        &self,
        function: impl Fn(&[Var]) -> Result<R>,
        inputs: &[Tensor],
        options: &TraceOptions,
    ) -> Result<Trace> {
        let method = |_: &Scope, x: &[Var]| Ok(function(x)?.into());
        let method = Method {
            name: "forward",
            function: &method,
            inputs,
        };
        self.trace_methods(None, &[method], options)
    }

    /// Records the operations of several methods on `parameters` and their inputs (`torch.jit.trace_module`). The parameters become attributes, in
    /// submodules by their dotted paths. `options.check_inputs` apply to the first method; the others are checked on their example inputs.
    ///
    /// ```
    /// use frazil::{Session, Tensor, trace::{Method, Parameters, TraceOptions}};
    ///
    /// let mut parameters = Parameters::new("Net");
    /// parameters.parameter("layer.scale", Tensor::from_f32(&[2.0], &[1])?);
    /// let x = [Tensor::from_f32(&[1.0], &[1])?];
    /// let forward = Method { name: "forward", function: &|p, x| Ok((&x[0] * p.get("layer.scale")?)?.into()), inputs: &x };
    /// let trace = Session::new().trace_module(&parameters, &[forward], &TraceOptions::default())?;
    /// assert!(trace.to_model().root().has_attribute("layer.scale"));
    /// assert_eq!(trace.call("forward", &[Tensor::from_f32(&[4.0], &[1])?])?[0].to_vec(), [8.0]);
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Session::trace`].
    pub fn trace_module(
        &self,
        parameters: &Parameters,
        methods: &[Method<'_>],
        options: &TraceOptions,
    ) -> Result<Trace> {
        self.trace_methods(Some(parameters), methods, options)
    }

    fn trace_methods(
        &self,
        parameters: Option<&Parameters>,
        methods: &[Method<'_>],
        options: &TraceOptions,
    ) -> Result<Trace> {
        let mut trace = self.record_methods(parameters, methods, options)?;
        if options.check_trace {
            for (i, method) in methods.iter().enumerate() {
                let examples = [method.inputs.to_vec()];
                let check_inputs = match i == 0 && !options.check_inputs.is_empty() {
                    true => options.check_inputs.as_slice(),
                    false => &examples,
                };
                for inputs in check_inputs {
                    let again = Method { inputs, ..*method };
                    check::check(self, &mut trace, parameters, &again, options)?;
                }
            }
        }
        for warning in &trace.warnings {
            tracing::warn!(target: "frazil::trace", "{warning}");
        }
        Ok(trace)
    }

    fn record_methods(
        &self,
        parameters: Option<&Parameters>,
        methods: &[Method<'_>],
        options: &TraceOptions,
    ) -> Result<Trace> {
        let mut unit = CompilationUnit::default();
        let mut warnings = Vec::new();
        let mut functions = Vec::new();
        for method in methods {
            let recorded = self.record(parameters, method, options)?;
            warnings.extend(recorded.warnings);
            for function in recorded.functions {
                unit.add_function(function);
            }
            functions.push((method.name, recorded.graph));
        }
        let loaded = match parameters {
            Some(parameters) => Loaded::Model(parameters.model(self, unit, functions)?),
            None => {
                for (name, graph) in functions {
                    unit.add_function(function_of(graph, &format!("__torch__.{name}")));
                }
                Loaded::Graphs(Graphs::of_unit(self.clone(), unit))
            }
        };
        let mut trace = Trace { loaded, warnings };
        // Removes nodes for values that were not used, or that left the trace.
        trace.loaded.run_passes("dce", &PassOptions::default())?;
        Ok(trace)
    }

    fn record(&self, parameters: Option<&Parameters>, method: &Method<'_>, options: &TraceOptions) -> Result<Recorded> {
        let classes = parameters.map_or_else(HashMap::new, |p| p.classes(self.ctx()));
        let mut recorder = Recorder::new(self.ctx(), classes, options.force_outplace);
        let cells: Vec<TensorCell> = copies(method.inputs)?.into_iter().map(TensorCell::new).collect();
        for (i, cell) in cells.iter().enumerate() {
            let number = if i == 0 { String::new() } else { i.to_string() };
            let name = options.names.get(i).cloned().unwrap_or_else(|| format!("x{number}"));
            recorder.input(cell, &name);
        }
        let recorder = Arc::new(Mutex::new(recorder));
        let ops = self.eager().recorded_by(Arc::clone(&recorder));
        let scope = Scope::of(parameters, &ops)?;
        let inputs: Vec<Var> = cells.into_iter().map(|cell| ops.wrap(cell)).collect();
        let outputs = (method.function)(&scope, &inputs)?;
        if options.strict && outputs.has_containers() {
            return Err(Error::Unsupported(
                "a traced function gives a list or a dictionary: the trace would always give as many elements as this time. A tuple \
                 says so, and `strict: false` allows it"
                    .to_owned(),
            ));
        }
        let mut recorder = recorder.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Recorded {
            graph: recorder.finish(&outputs)?,
            outputs,
            functions: std::mem::take(&mut recorder.functions).into_values().collect(),
            warnings: std::mem::take(&mut recorder.warnings),
        })
    }
}

/// Returns a recorded graph as a function, whose arguments have the names of the graph's inputs.
fn function_of(graph: Graph, name: &str) -> Function {
    let ctx = Arc::clone(graph.ctx());
    let plain = |ty: TypeId| {
        if ctx.is_tensor(ty) {
            frazil_ir::types::TENSOR
        } else {
            ty
        }
    };
    let argument = |&input: &_| {
        let name = graph.show_value(input).to_string();
        Argument::plain(ctx.symbol(name.trim_start_matches('%')), plain(graph.ty(input)))
    };
    let arguments = graph.inputs().iter().map(argument).collect();
    let returns = graph
        .outputs()
        .map(|output| Argument::plain(symbols::EMPTY, plain(graph.ty(output))))
        .collect();
    let name = ctx.symbol(name);
    Function {
        name,
        schema: FunctionSchema {
            name,
            overload: symbols::EMPTY,
            arguments,
            returns,
            is_vararg: false,
            is_varret: false,
        },
        graph,
    }
}

impl Graphs {
    /// Calls a function on tensors. In a traced function the call itself is recorded, with the control flow of the callee.
    ///
    /// ```
    /// # use frazil::{Loaded, Session, Tensor, trace::Outputs};
    /// # let session = Session::new();
    /// let source = "def clip(x):\n    if bool(x.sum() > 0):\n        return x * 2\n    return -x\n";
    /// let Loaded::Graphs(functions) = session.script("clip.py".as_ref(), source, &[])? else { panic!() };
    /// let x = session.eager().var(Tensor::from_f32(&[-3.0], &[1])?);
    /// assert!(matches!(functions.call("clip", x.ops(), &[&x])?, Outputs::Tensor(y) if y.to_vec() == [3.0]));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such function, if it belongs to another session, or if it raises.
    #[track_caller]
    pub fn call(&self, name: &str, ops: &Ops, args: &[&Var]) -> Result<Outputs> {
        let place = std::panic::Location::caller();
        let function = self.named(name).map(|id| self.unit().function(id));
        let function = function.ok_or_else(|| Error::Call(format!("there is no function `{name}`")))?;
        if !Arc::ptr_eq(ops.registry().ctx(), self.session().ctx()) {
            return Err(Error::Call(format!("`{name}` belongs to another session")));
        }
        let interpreter = Interpreter::with_module(Arc::clone(ops.registry()), Arc::clone(self.to_model().module()))?;
        let values: Vec<Value> = args.iter().map(|var| Value::Tensor(var.cell().clone())).collect();
        let result = interpreter.call(name, &values).map_err(Error::Run)?;
        let cells: Vec<TensorCell> = args.iter().map(|var| var.cell().clone()).collect();
        ops.record(|r| r.call_function(function, &cells, std::slice::from_ref(&result), place));
        match result {
            Value::Tensor(cell) => Ok(Outputs::Tensor(ops.wrap(cell))),
            _ => Err(Error::Call(format!(
                "`{name}` does not give a tensor, which is all that traced functions can go on with"
            ))),
        }
    }

    /// In a traced function, calls `name` of these functions, so that its control flow is part of the graph. Outside of one, runs `otherwise`
    /// (`torch.jit.script_if_tracing`).
    ///
    /// ```
    /// # use frazil::{Loaded, Session, Tensor, eager::Var, trace::TraceOptions};
    /// # let session = Session::new();
    /// # let source = "def clip(x):\n    if bool(x.sum() > 0):\n        return x * 2\n    return -x\n";
    /// # let Loaded::Graphs(functions) = session.script("clip.py".as_ref(), source, &[])? else { panic!() };
    /// // with `clip` as above: `x * 2` where `x.sum() > 0`, else `-x`
    /// let function = |x: &[Var]| functions.call_if_tracing("clip", x[0].ops(), &[&x[0]], |x| Ok(x[0].clone().into()));
    /// let trace = session.trace(function, &[Tensor::from_f32(&[1.0], &[1])?], &TraceOptions::default())?;
    /// assert_eq!(trace.call("forward", &[Tensor::from_f32(&[-3.0], &[1])?])?[0].to_vec(), [3.0]); // the other branch
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Graphs::call`] and of `otherwise`.
    #[track_caller]
    pub fn call_if_tracing(
        &self,
        name: &str,
        ops: &Ops,
        args: &[&Var],
        otherwise: impl FnOnce(&[&Var]) -> Result<Outputs>,
    ) -> Result<Outputs> {
        match ops.is_tracing() {
            true => self.call(name, ops, args),
            false => otherwise(args),
        }
    }
}
