//! Tracing in source (`torch.jit.trace`): the code of the function runs once on the example inputs, and each operator that returns tensors is recorded.
//!
//! Control flow, numbers that are read from tensors, and calls of plain Python functions are not recorded themselves. Calls of functions and
//! modules that were compiled before stay calls. Sizes are computed from their tensors.

mod gradients;
mod host;
pub(crate) mod operands;
mod sizes;
mod values;

use crate::source_trace::operands::{type_of, wrapped_number};
use frazil_ir::{
    AttributeKind, Builder, Constant, Context, FunctionId, Graph, InsertPoint, Module, NodeId, ObjectId, SymbolId,
    TypeId, TypeKind, ValueId, symbols, types,
};
use frazil_passes::dce::DeadCodeElimination;
use frazil_passes::{GraphPass, PassContext};
use frazil_runtime::export::Exporter;
use frazil_runtime::import::Importer;
use frazil_runtime::interp::Interpreter;
use frazil_runtime::interp::walk::{At, GraphPlan, Nesting, Outputs, walk};
use frazil_runtime::op::Operator;
use frazil_runtime::value::{ObjectValue, TensorCell};
use frazil_runtime::{Entry, Registry, Value};
use frazil_torchscript::{TraceContext, TraceRequest};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Maximum number of nodes that a traced function may execute before tracing fails.
const MAX_NODES: u64 = 1 << 22;

/// Maximum nesting of submodules.
const MAX_DEPTH: usize = 200;

/// The representation in the traced graph of a value that is not a tensor.
#[derive(Clone, Default)]
enum Noted {
    #[default]
    Constant,
    /// An integer that the traced graph computes from the sizes of tensors.
    Int(ValueId),
    /// The elements of a list of integers; `None` for those that are constants.
    Ints(Vec<Option<ValueId>>),
}

/// A value of the executed function, paired with its representation in the traced graph.
#[derive(Clone, Default)]
struct Traced(Value, Noted);

impl From<Value> for Traced {
    fn from(value: Value) -> Traced {
        Traced(value, Noted::Constant)
    }
}

impl From<(Value, Noted)> for Traced {
    fn from((value, noted): (Value, Noted)) -> Traced {
        Traced(value, noted)
    }
}

impl From<Traced> for (Value, Noted) {
    fn from(Traced(value, noted): Traced) -> (Value, Noted) {
        (value, noted)
    }
}

type Result<T, E = String> = std::result::Result<T, E>;

struct Tracing<'t> {
    ctx: Arc<Context>,
    registry: Arc<Registry>,
    module: &'t Module,
    context: &'t TraceContext,
    interpreter: Interpreter,
    importer: Importer,
    exporter: Exporter,
    graph: Graph,
    /// The current value of each tensor, by its address. The tensor is kept alive so that its address is not reused.
    tensors: HashMap<usize, (ValueId, TensorCell)>,
    /// For each parameter and buffer, keyed by address: the address of its module, and its attribute name.
    attributes: HashMap<usize, (usize, SymbolId)>,
    /// Parameters that require gradients, by the address of the tensor.
    parameters: HashSet<usize>,
    /// Values of the traced graph that require gradients.
    gradients: HashSet<ValueId>,
    /// For each module, by address: the address of its parent, its name there, and its type.
    modules: HashMap<usize, (usize, SymbolId, TypeId)>,
    /// Values of the modules that the traced graph has read, keyed by the module's address.
    objects: HashMap<usize, ValueId>,
    /// For each module, keyed by its address, whether it is in training mode.
    training: HashMap<usize, bool>,
    /// Number of nodes and loop iterations executed so far.
    nodes: u64,
    nesting: Nesting,
    plans: HashMap<FunctionId, Arc<GraphPlan>>,
}

/// Records the graph of the function of `request` on its example inputs.
///
/// # Errors
/// If the function cannot be traced.
pub(crate) fn record(
    registry: &Arc<Registry>,
    module: &Module,
    context: &TraceContext,
    request: &TraceRequest,
) -> Result<Graph> {
    let shared = Arc::new(module.clone());
    let interpreter = Interpreter::with_module(Arc::clone(registry), shared).map_err(|e| e.to_string())?;
    let ctx = Arc::clone(registry.ctx());
    let mut tracing = Tracing {
        graph: Graph::new(Arc::clone(&ctx)),
        ctx,
        registry: Arc::clone(registry),
        module,
        context,
        interpreter,
        importer: Importer::new(),
        exporter: Exporter::new(),
        tensors: HashMap::new(),
        attributes: HashMap::new(),
        parameters: HashSet::new(),
        gradients: HashSet::new(),
        modules: HashMap::new(),
        objects: HashMap::new(),
        training: HashMap::new(),
        nodes: 0,
        nesting: Nesting::default(),
        plans: HashMap::new(),
    };
    tracing.trace(request)
}

impl Tracing<'_> {
    fn trace(&mut self, request: &TraceRequest) -> Result<Graph> {
        for &(object, training) in &self.context.training {
            let object = self.object(object)?;
            self.training.insert(object.address(), training);
        }
        let code = &self.module.unit.function(request.function).graph;
        let names: Vec<String> = code
            .inputs()
            .iter()
            .map(|&input| code.show_value(input).to_string())
            .collect();
        let mut names = names.iter().map(|name| name.trim_start_matches('%'));
        let mut args = Vec::new();
        if let Some(object) = request.object {
            let this = self.object(object)?;
            let value = self
                .graph
                .add_input(self.ctx.type_of_kind(TypeKind::Class(this.class())));
            self.graph.name_value(value, names.next().unwrap_or("self"));
            self.objects.insert(this.address(), value);
            self.find_attributes(&this, 0)?;
            self.find_parameters()?;
            args.push((Value::Object(this), Noted::Constant));
        }
        for input in &request.inputs {
            let value = self.imported(input)?;
            let ty = self.type_of_value(&value);
            let noted = self.graph.add_input(ty);
            self.graph.name_value(noted, names.next().unwrap_or("x"));
            self.unpack(&value, noted)?;
            args.push((value, Noted::Constant));
        }
        let (result, _) = self.function(request.function, args)?;
        let noted = self.result(&result, request.strict, true)?;
        let root = self.graph.root();
        self.graph.set_results(root, &[noted]);
        let mut graph = std::mem::replace(&mut self.graph, Graph::new(Arc::clone(&self.ctx)));
        let pass = DeadCodeElimination::default();
        pass.run(&mut graph, &mut PassContext::new(&*self.registry))
            .map_err(|e| e.to_string())?;
        Ok(graph)
    }

    fn imported(&mut self, constant: &Constant) -> Result<Value> {
        let value = self.importer.value(constant, Some(self.module));
        value.map_err(|e| e.to_string())
    }

    fn object(&mut self, id: ObjectId) -> Result<ObjectValue> {
        match self.imported(&Constant::Object(id))? {
            Value::Object(object) => Ok(object),
            _ => Err("the traced module is no object".to_owned()),
        }
    }

    /// Registers the parameters and buffers of a module and of its submodules.
    fn find_attributes(&mut self, object: &ObjectValue, depth: usize) -> Result<()> {
        if depth > MAX_DEPTH {
            return Err("modules nest too deeply".to_owned());
        }
        let Some(class) = self.module.unit.class(object.class()) else {
            return Ok(());
        };
        for ((name, attribute), value) in class.attributes.iter().zip(object.slots()) {
            match value {
                Value::Tensor(cell) if attribute.kind != AttributeKind::Plain => {
                    let owner = (object.address(), *name);
                    self.attributes.entry(cell.address()).or_insert(owner);
                }
                Value::Object(inner) => {
                    let owner = (object.address(), *name, attribute.ty);
                    if !self.modules.contains_key(&inner.address()) && !self.objects.contains_key(&inner.address()) {
                        self.modules.insert(inner.address(), owner);
                        self.find_attributes(&inner, depth + 1)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Registers the tensors in an input of the traced function, which may be nested in containers.
    fn unpack(&mut self, value: &Value, noted: ValueId) -> Result<()> {
        match value {
            Value::Tensor(cell) => self.define(cell, noted),
            Value::Tuple(_) | Value::List(_) => {
                let items = value.items().unwrap_or_default();
                let types: Vec<TypeId> = items.iter().map(|item| self.type_of_value(item)).collect();
                let kind = match value {
                    Value::Tuple(_) => symbols::PRIM_TUPLE_UNPACK,
                    _ => symbols::PRIM_LIST_UNPACK,
                };
                let node = self.builder().node(kind, &[noted], &types);
                let outputs = self.graph.node_outputs(node).to_vec();
                if self.gradients.contains(&noted) {
                    self.mark_gradients(&outputs);
                }
                for (item, output) in items.iter().zip(outputs) {
                    self.unpack(item, output)?;
                }
            }
            Value::Dict(dict) => {
                let entries: Vec<(Value, Value)> =
                    dict.with(|entries| entries.iter().map(|(k, v)| (k.0.clone(), v.clone())).collect());
                let kind = self.ctx.symbol("aten::__getitem__");
                for (key, item) in entries {
                    let key = self.constant(&key)?;
                    let ty = self.type_of_value(&item);
                    let output = self.builder().op(kind, &[noted, key], ty);
                    self.unpack(&item, output)?;
                }
            }
            _ => return Err("an example input is no tensor, nor a tuple, list or dictionary of tensors".to_owned()),
        }
        Ok(())
    }

    /// Returns the value of the traced graph for a result of the traced function.
    fn result(&mut self, value: &Value, strict: bool, is_outer: bool) -> Result<ValueId> {
        match value {
            Value::Tensor(cell) => self.tensor(cell),
            Value::Tuple(_) | Value::List(_) => {
                let items = value.items().unwrap_or_default();
                let mut noted = Vec::with_capacity(items.len());
                for item in &items {
                    noted.push(self.result(item, strict, false)?);
                }
                match value {
                    Value::Tuple(_) => Ok(self.builder().tuple(&noted)),
                    Value::List(_) if items.iter().all(|item| matches!(item, Value::Tensor(_))) && !items.is_empty() => {
                        Ok(self.builder().list(types::TENSOR, &noted))
                    }
                    _ => Err(RESULTS.to_owned()),
                }
            }
            Value::Dict(_) if strict => Err(
                "Encountering a dict at the output of the tracer might cause the trace to be incorrect, this is only valid if the container structure does not change based on the module's inputs. Consider using a constant container instead (e.g. for `list`, use a `tuple` instead. for `dict`, use a `NamedTuple` instead). If you absolutely need this and know the side effects, pass strict=False to trace() to allow this behavior."
                    .to_owned(),
            ),
            Value::Dict(dict) if is_outer => {
                let entries: Vec<(Value, Value)> =
                    dict.with(|entries| entries.iter().map(|(k, v)| (k.0.clone(), v.clone())).collect());
                let mut operands = Vec::new();
                for (key, item) in entries {
                    if !matches!((&key, &item), (Value::Str(_), Value::Tensor(_))) {
                        return Err(RESULTS.to_owned());
                    }
                    operands.push(self.constant(&key)?);
                    operands.push(self.result(&item, strict, false)?);
                }
                let ty = self.ctx.dict_of(types::STR, types::TENSOR);
                Ok(self.builder().op(symbols::PRIM_DICT_CONSTRUCT, &operands, ty))
            }
            _ => Err(RESULTS.to_owned()),
        }
    }

    /// Runs a plain Python function, whose operations are recorded.
    fn function(&mut self, id: FunctionId, args: Vec<(Value, Noted)>) -> Result<(Value, Noted)> {
        let module = self.module;
        let graph = &module.unit.function(id).graph;
        let plan = match self.plans.get(&id) {
            Some(plan) => Arc::clone(plan),
            None => {
                let plan = GraphPlan::new(graph, &self.registry, &mut self.importer, Some(module));
                Arc::clone(self.plans.entry(id).or_insert(Arc::new(plan)))
            }
        };
        let results = walk(self, graph, &plan, args.into_iter().map(Traced::from))?;
        Ok(results.into_iter().next().unwrap_or_default().into())
    }

    fn slot(&self, object: &Value, name: SymbolId) -> Result<(ObjectValue, usize)> {
        let Value::Object(object) = object else {
            return Err("an attribute of something that is no object".to_owned());
        };
        let class = self.module.unit.class(object.class());
        match class.and_then(|class| class.attributes.get_index_of(&name)) {
            Some(slot) => Ok((object.clone(), slot)),
            None => Err(format!("an object without the attribute '{}'", self.ctx.name(name))),
        }
    }

    /// Returns whether the function is plain Python: its operations are recorded and not its call.
    fn is_python(&self, id: FunctionId) -> bool {
        let name = self.ctx.name(self.module.unit.function(id).name);
        self.context.inlined.contains(&id) || name.starts_with("__torch__.torch.")
    }

    fn method(&mut self, At { graph, node }: At<'_>, name: SymbolId, args: Vec<(Value, Noted)>) -> Result<Traced> {
        let Some((Value::Object(object), _)) = args.first() else {
            return Err("a method of something that is no object".to_owned());
        };
        let class = object.class();
        let Some(id) = self.module.unit.method(class, name) else {
            return Err(format!(
                "'{}' has no method '{}'",
                self.ctx.name(class),
                self.ctx.name(name)
            ));
        };
        let is_module = self.modules.contains_key(&object.address()) || self.objects.contains_key(&object.address());
        // A submodule of the traced module that was compiled or traced before is called as such.
        let result = match is_module && !self.context.classes.contains(&class) {
            true => self.call(graph, node, id, &[], &args)?,
            false => self.function(id, args)?,
        };
        Ok(result.into())
    }

    /// Records a call of a compiled function, without its operations.
    fn call(
        &mut self,
        graph: &Graph,
        node: NodeId,
        id: FunctionId,
        before: &[ValueId],
        args: &[(Value, Noted)],
    ) -> Result<(Value, Noted)> {
        let mut operands = before.to_vec();
        for (value, noted) in args {
            operands.push(self.noted(value, noted)?);
        }
        let values: Vec<Value> = args.iter().map(|(value, _)| value.clone()).collect();
        let code = &self.module.unit.function(id).graph;
        let results = self.interpreter.run_graph(code, &values).map_err(|e| e.to_string())?;
        let result = results.into_iter().next().unwrap_or_default();
        self.note(graph, node, &operands, std::slice::from_ref(&result))?;
        Ok((result, Noted::Constant))
    }

    fn note_operator(
        &mut self,
        At { graph, node }: At<'_>,
        operator: &Operator,
        inputs: &[(Value, Noted)],
    ) -> Result<Outputs<Traced>> {
        let kind = graph.kind_name(node).to_owned();
        let outputs = graph.node_outputs(node).to_vec();
        let values: Vec<Value> = inputs.iter().map(|(value, _)| value.clone()).collect();
        // Operands are recorded before the call, since in-place operators change them.
        // Results of functions of containers are known from the elements.
        let of_container = self.registry.entry(&kind).is_some_and(Entry::is_on_values)
            && matches!(values.first(), Some(Value::List(_) | Value::Dict(_) | Value::Str(_)));
        let is_candidate = !kind.starts_with("prim::") && !of_container && !operator.traits().constant_in_traces;
        let gives_tensors = outputs.iter().any(|&output| self.holds_tensor(graph.ty(output)));
        let mut operands = Vec::new();
        if is_candidate && gives_tensors {
            let wrapped = wrapped_number(operator, &values);
            for (index, (value, noted)) in inputs.iter().enumerate() {
                operands.push(match (&wrapped, index) {
                    (Some(number), 1) => self.constant(&Value::Tensor(TensorCell::new(number.clone())))?,
                    _ => self.noted(value, noted)?,
                });
            }
        }
        let results = self.run(graph, node, &values)?;
        if is_candidate && gives_tensors {
            self.note(graph, node, &operands, &results)?;
        }
        let mut noted = self.sizes(graph, node, &kind, inputs, &results)?;
        noted.resize(results.len(), Noted::Constant);
        Ok(results.into_iter().zip(noted).map(Traced::from).collect())
    }

    /// Returns the interpreter's result for a node that the traced graph does not contain.
    fn unnoted(&mut self, At { graph, node }: At<'_>, operands: &[Traced]) -> Result<Traced> {
        let values: Vec<Value> = operands.iter().map(|Traced(value, _)| value.clone()).collect();
        let results = self.run(graph, node, &values)?;
        Ok(results.into_iter().next().unwrap_or_default().into())
    }

    fn holds_tensor(&self, ty: TypeId) -> bool {
        match self.ctx.type_kind(ty) {
            TypeKind::Tensor(_) => true,
            TypeKind::List(element) | TypeKind::Optional(element) => self.holds_tensor(element),
            TypeKind::Tuple(elements) => self.ctx.types(elements).iter().any(|&ty| self.holds_tensor(ty)),
            _ => false,
        }
    }

    /// Runs a node on the operands `values` in the interpreter.
    fn run(&mut self, graph: &Graph, node: NodeId, values: &[Value]) -> Result<Vec<Value>> {
        let mut one = Graph::new(Arc::clone(&self.ctx));
        let operands: Vec<ValueId> = graph
            .operands(node)
            .map(|operand| one.add_input(graph.ty(operand)))
            .collect();
        let copy = self.copied(graph, node, &mut one, &operands, None);
        let outputs = one.node_outputs(copy).to_vec();
        let root = one.root();
        one.set_results(root, &outputs);
        self.interpreter.run_graph(&one, values).map_err(|e| e.to_string())
    }

    /// Appends a copy of a node to another graph.
    fn copied(
        &self,
        graph: &Graph,
        node: NodeId,
        into: &mut Graph,
        operands: &[ValueId],
        types: Option<&[TypeId]>,
    ) -> NodeId {
        let own: Vec<TypeId> = graph
            .node_outputs(node)
            .iter()
            .map(|&output| graph.ty(output))
            .collect();
        let root = into.root();
        let mut builder = Builder::new(into, InsertPoint::End(root));
        builder.set_range(graph.source_range(node));
        let copy = builder.node(graph.kind(node), operands, types.unwrap_or(&own));
        for attribute in graph.attributes(node) {
            into.set_attribute(copy, attribute.name, attribute.value.clone());
        }
        copy
    }

    /// Records the results of a node, so that later nodes can refer to them.
    fn note(&mut self, graph: &Graph, node: NodeId, operands: &[ValueId], results: &[Value]) -> Result<()> {
        let types: Vec<TypeId> = results.iter().map(|result| self.type_of_value(result)).collect();
        let mut own = std::mem::replace(&mut self.graph, Graph::new(Arc::clone(&self.ctx)));
        let copy = self.copied(graph, node, &mut own, operands, Some(&types));
        self.graph = own;
        let outputs = self.graph.node_outputs(copy).to_vec();
        if self.propagates(graph.kind_name(node), operands) {
            self.mark_gradients(&outputs);
        }
        for (result, output) in results.iter().zip(outputs) {
            match result {
                Value::Tensor(cell) => self.define(cell, output),
                Value::List(_) | Value::Tuple(_)
                    if result
                        .items()
                        .unwrap_or_default()
                        .iter()
                        .any(|item| matches!(item, Value::Tensor(_))) =>
                {
                    self.unpack(result, output)
                        .map_err(|_| format!("`{}` gives more than tensors", graph.kind_name(node)))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn builder(&mut self) -> Builder<'_> {
        let root = self.graph.root();
        Builder::new(&mut self.graph, InsertPoint::End(root))
    }

    fn type_of_value(&self, value: &Value) -> TypeId {
        match value {
            Value::Tensor(cell) => type_of(&self.ctx, &cell.get()),
            Value::Tuple(tuple) => {
                let each: Vec<TypeId> = tuple.items.iter().map(|item| self.type_of_value(item)).collect();
                self.ctx.tuple_of(&each)
            }
            other => other.ty(&self.ctx),
        }
    }
}

/// PyTorch's error message for results of unsupported types.
const RESULTS: &str =
    "Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from traced functions";
