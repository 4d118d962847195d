//! The reference interpreter: executes any graph with TorchScript's semantics.
//!
//! ```
//! use frazil_ir::{Builder, Context, Graph, symbols, types};
//! use frazil_runtime::{Registry, Value, interp::Interpreter};
//! use std::sync::Arc;
//!
//! let ctx = Arc::new(Context::new());
//! let mut graph = Graph::new(ctx.clone());
//! let n = graph.add_input(types::INT);
//! let root = graph.root();
//! let mut b = Builder::at_end(&mut graph, root);
//! let result = b.op(symbols::PRIM_UNCHECKED_CAST, &[n], types::INT);
//! b.add_result(root, result);
//!
//! let interpreter = Interpreter::new(Arc::new(Registry::new(ctx)));
//! let results = interpreter.run_graph(&graph, &[Value::Int(3)]).unwrap();
//! assert_eq!(results[0].as_int(), Some(3));
//! ```

mod forks;
mod plan;
mod run;
pub mod state;
pub mod walk;

use crate::error::TensorError;
use crate::operator::call::invoke;
use crate::operator::op::{Operator, Results, Semantics};
use crate::operator::registry::Registry;
use crate::operator::signature::Signature;
use crate::value::export::{ExportError, Exporter};
use crate::value::import::Importer;
use crate::value::{ObjectValue, Value};
use frazil_ir::{FunctionId, Graph, Module, SymbolId, TypeId, symbols};
use plan::GraphPlan;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

pub use crate::error::{ErrorKind, ExecError, MissingOperator};

/// Receives the output of `print` and `warnings.warn` in a program.
pub trait Output: Send + Sync {
    /// Handles `print(...)`: one line, without a line break.
    fn print(&self, line: &str);
    /// Handles `warnings.warn(...)`.
    fn warn(&self, text: &str);
}

/// Runs subgraphs of methods in place of the interpreter, for example as compiled code.
pub trait Delegate: Send + Sync {
    /// Returns `graph` with subgraphs for the delegate as `prim::TensorExprGroup` nodes, each with its graph as an attribute. `None` if there are none.
    fn partition(&self, graph: &Graph) -> Option<Graph>;

    /// Runs a subgraph and returns its outputs. `None` if the interpreter has to run it, which then also raises the subgraph's exceptions.
    fn run(&self, part: &Arc<Graph>, inputs: &[Value]) -> Option<Vec<Value>>;
}

/// Receives every operator call of a run, for tests and statistics.
pub trait Observer: Send + Sync {
    /// Called before `operator` runs, with its complete arguments. Operators inside composites are reported too.
    fn operator(&self, operator: &Operator, arguments: &[Value]);
}

/// An [`Output`] that emits prints and warnings as events of the crate `tracing`.
struct Traced;

impl Output for Traced {
    fn print(&self, line: &str) {
        tracing::info!(target: "frazil::print", "{line}");
    }

    fn warn(&self, text: &str) {
        tracing::warn!(target: "frazil::warn", "{text}");
    }
}

/// A graph and the plan of its execution.
type SharedPlan = (Arc<Graph>, Arc<GraphPlan>);

/// The execution plan of a function, and the graph it belongs to if that is not the module's own.
#[derive(Clone)]
struct FunctionPlan {
    partitioned: Option<Arc<Graph>>,
    plan: Arc<GraphPlan>,
}

/// Runs graphs, and the methods of a module. It is `Sync`: calls may run on several threads.
pub struct Interpreter {
    registry: Arc<Registry>,
    module: Option<Arc<Module>>,
    root: Option<ObjectValue>,
    importer: Mutex<Importer>,
    /// Signatures of the methods called so far, keyed by their dotted path.
    signatures: Mutex<HashMap<String, Arc<Signature>>>,
    plans: Mutex<HashMap<FunctionId, FunctionPlan>>,
    /// Plans of composites and forks, keyed by the address of the graph. The value keeps the graph alive.
    shared: Mutex<HashMap<usize, SharedPlan>>,
    output: Box<dyn Output>,
    delegate: Option<Arc<dyn Delegate>>,
    observer: Option<Arc<dyn Observer>>,
    /// Number of remaining steps, if there is a step limit.
    steps: Option<AtomicU64>,
    /// Number of threads that a call may use for its forks, including the calling one.
    threads: usize,
}

impl Interpreter {
    /// Returns an interpreter for graphs without calls.
    pub fn new(registry: Arc<Registry>) -> Interpreter {
        Interpreter {
            registry,
            module: None,
            root: None,
            importer: Mutex::default(),
            signatures: Mutex::default(),
            plans: Mutex::default(),
            shared: Mutex::default(),
            output: Box::new(Traced),
            delegate: None,
            observer: None,
            steps: None,
            threads: 1,
        }
    }

    /// Returns an interpreter with an instance of `module`. Tensors share the module's bytes until they are written.
    ///
    /// # Errors
    /// When a tensor of the module does not fit its storage.
    pub fn with_module(registry: Arc<Registry>, module: Arc<Module>) -> Result<Interpreter, TensorError> {
        let mut interpreter = Interpreter::new(registry);
        let root = lock(&interpreter.importer).object(module.root, &module)?;
        interpreter.root = Some(root);
        interpreter.module = Some(module);
        Ok(interpreter)
    }

    /// Sends prints and warnings to `output`.
    pub fn with_output(mut self, output: Box<dyn Output>) -> Interpreter {
        self.output = output;
        self
    }

    /// Sets the delegate for subgraphs of methods.
    pub fn with_delegate(mut self, delegate: Arc<dyn Delegate>) -> Interpreter {
        self.delegate = Some(delegate);
        self
    }

    /// Reports operator calls to `observer`.
    pub fn with_observer(mut self, observer: Arc<dyn Observer>) -> Interpreter {
        self.observer = Some(observer);
        self
    }

    /// Sets a limit of `steps` steps for all calls together. A step is a node, or an iteration of a loop.
    pub fn with_step_limit(mut self, steps: u64) -> Interpreter {
        self.steps = Some(AtomicU64::new(steps));
        self
    }

    /// Sets the number of threads that each call may use for its forks, including the calling thread. With one thread, the default, forks run immediately.
    pub fn with_threads(mut self, threads: usize) -> Interpreter {
        self.threads = threads;
        self
    }

    /// Counts a step. Fails if the limit or the current thread's budget is exceeded.
    fn take_step(&self) -> Result<(), ExecError> {
        frazil_limits::check().map_err(|exceeded| ExecError::new(ErrorKind::Exceeded(exceeded)))?;
        match &self.steps {
            None => Ok(()),
            Some(left) => left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                .map(drop)
                .map_err(|_| ExecError::new(ErrorKind::Limit)),
        }
    }

    /// Returns the operators.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Returns the module in its current state: with the attributes and objects that calls have changed. `None` without a module.
    ///
    /// # Errors
    /// When an attribute contains a value that modules cannot, such as a future.
    pub fn snapshot(&self) -> Result<Option<Module>, ExportError> {
        let Some(module) = &self.module else { return Ok(None) };
        let mut out = Module::clone(module);
        Exporter::of_module(module, &lock(&self.importer)).objects(&mut out)?;
        Ok(Some(out))
    }

    /// Returns the module's instance, whose attributes calls may change.
    pub fn root(&self) -> Option<&ObjectValue> {
        self.root.as_ref()
    }

    /// Runs `graph` on `args` and returns its outputs.
    ///
    /// # Errors
    /// Exceptions of the program, and missing operators.
    pub fn run_graph(&self, graph: &Graph, args: &[Value]) -> Result<Vec<Value>, ExecError> {
        let plan = self.plan(graph);
        self.run(|mut run| run.graph(graph, &plan, args))
    }

    /// Runs one operator on complete arguments and returns its results.
    ///
    /// # Errors
    /// Exceptions of the operator, and missing semantics.
    pub fn run_operator(&self, operator: &Operator, values: &[Value]) -> Result<Results, ExecError> {
        if let Semantics::Composite(body) = operator.semantics() {
            return self.run(|mut run| run.composite(operator, body, values));
        }
        let output_types: SmallVec<[TypeId; 2]> = operator.schema().returns.iter().map(|r| r.ty).collect();
        Ok(invoke(self.registry.ctx(), operator, values, &output_types, &[])?)
    }

    /// Calls the method at a dotted path (`forward`, or `encoder.forward` of a submodule) with `args`, without `self`. Arguments are checked and converted as
    /// in PyTorch. Arguments that are not passed have their defaults.
    ///
    /// # Errors
    /// Exceptions of the program, invalid arguments, and missing operators.
    pub fn call(&self, name: &str, args: &[Value]) -> Result<Value, ExecError> {
        let (module, _, _) = self.method(name)?;
        let known = lock(&self.signatures).get(name).cloned();
        let signature = match known {
            Some(signature) => signature,
            None => {
                let signature = Signature::of_method(module, name);
                let signature = Arc::new(signature.ok_or_else(|| no_method(module, name))?);
                lock(&self.signatures).insert(name.to_owned(), Arc::clone(&signature));
                signature
            }
        };
        self.call_bound(name, &signature.bind(args, &[])?)
    }

    /// Calls the method at a dotted path with arguments from [`Signature::bind`].
    ///
    /// # Errors
    /// Exceptions of the program, and missing operators.
    pub fn call_bound(&self, name: &str, args: &[Value]) -> Result<Value, ExecError> {
        let (_, receiver, function) = self.method(name)?;
        let mut all = Vec::with_capacity(args.len() + 1);
        all.push(Value::Object(receiver));
        all.extend_from_slice(args);
        self.function(function, &all)
    }

    /// Calls a function with complete arguments.
    fn function(&self, function: FunctionId, args: &[Value]) -> Result<Value, ExecError> {
        self.run(|mut run| run.function(function, args))
    }

    /// Returns the module, the receiver and the method for the dotted path `path`.
    fn method(&self, path: &str) -> Result<(&Arc<Module>, ObjectValue, FunctionId), ExecError> {
        let Some(module) = &self.module else {
            return Err(ExecError::malformed("there is no module to call a method of"));
        };
        let (_, name) = path.rsplit_once('.').unwrap_or(("", path));
        let found = self.receiver(path).and_then(|receiver| {
            let name = module.ctx().find_symbol(name)?;
            let function = module.unit.method(receiver.class(), name)?;
            Some((receiver, function))
        });
        let (receiver, function) = found.ok_or_else(|| no_method(module, path))?;
        Ok((module, receiver, function))
    }

    /// Returns the receiver of the method at a dotted path: the module's instance, or a submodule of it.
    pub fn receiver(&self, path: &str) -> Option<ObjectValue> {
        let (module, mut object) = (self.module.as_ref()?, self.root.clone()?);
        let (owners, _) = path.rsplit_once('.').unwrap_or(("", path));
        for owner in owners.split('.').filter(|_| !owners.is_empty()) {
            let class = module.unit.class(object.class())?;
            let slot = class.attributes.get_index_of(&module.ctx().find_symbol(owner)?)?;
            object = match object.slot(slot)? {
                Value::Object(inner) => inner,
                _ => return None,
            };
        }
        Some(object)
    }

    /// Returns the operators without semantics in method `name` and its callees, including branches that are never executed.
    pub fn missing_operators(&self, name: &str) -> Vec<MissingOperator> {
        let Ok((module, _, start)) = self.method(name) else {
            return Vec::new();
        };
        let mut pending = vec![start];
        let mut seen = std::collections::HashSet::new();
        let mut missing = Vec::new();
        while let Some(id) = pending.pop() {
            if !seen.insert(id) {
                continue;
            }
            missing.extend(self.plan_of(id, module).plan.missing.iter().cloned());
            let graph = &module.unit.function(id).graph;
            for node in graph.all_nodes() {
                pending.extend(callee(module, graph, node));
            }
        }
        missing
    }

    fn plan_of(&self, id: FunctionId, module: &Module) -> FunctionPlan {
        if let Some(plan) = lock(&self.plans).get(&id) {
            return plan.clone();
        }
        let graph = &module.unit.function(id).graph;
        let partitioned = self.delegate.as_ref().and_then(|d| d.partition(graph)).map(Arc::new);
        let plan = Arc::new(self.plan(partitioned.as_deref().unwrap_or(graph)));
        let plan = FunctionPlan { partitioned, plan };
        lock(&self.plans).entry(id).or_insert(plan).clone()
    }

    /// Returns the execution plan of a graph that is run repeatedly, from the cache if it is there.
    fn plan_shared(&self, graph: &Arc<Graph>) -> Arc<GraphPlan> {
        let address = Arc::as_ptr(graph) as usize;
        if let Some((_, plan)) = lock(&self.shared).get(&address) {
            return plan.clone();
        }
        let plan = Arc::new(self.plan(graph));
        lock(&self.shared).insert(address, (graph.clone(), plan.clone()));
        plan
    }

    fn plan(&self, graph: &Graph) -> GraphPlan {
        let mut importer = lock(&self.importer);
        GraphPlan::new(graph, &self.registry, &mut importer, self.module.as_deref())
    }
}

fn no_method(module: &Module, name: &str) -> ExecError {
    ExecError::malformed(match module.unit.refused.get(name) {
        Some(why) => format!("'{name}' does not compile: {why}"),
        None => format!("the module has no method '{name}'"),
    })
}

/// Returns the function that the call node `node` calls, if it is known without running the program.
fn callee(module: &Module, graph: &Graph, node: frazil_ir::NodeId) -> Option<FunctionId> {
    let class_of = |ty| match graph.ctx().type_kind(ty) {
        frazil_ir::TypeKind::Class(name) => Some(name),
        _ => None,
    };
    let first = graph.operand(node, 0)?;
    match graph.kind(node) {
        symbols::PRIM_CALL_METHOD => {
            let name: SymbolId = graph.attribute_symbol(node, symbols::ATTR_NAME)?;
            module.unit.method(class_of(graph.ty(first))?, name)
        }
        symbols::PRIM_CALL_FUNCTION => match graph.constant(first)? {
            frazil_ir::Constant::Function(name) => module.unit.find_function(name),
            _ => None,
        },
        _ => None,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
