//! Tracing what source traces: the code of the function runs once on the example inputs, and each operator that gives tensors is noted.
//!
//! Control flow, numbers that are read from tensors, and calls of functions that Python would run leave nothing behind. Calls of functions and
//! modules that are compiled by themselves stay calls. Sizes stay computed from the tensors that they are of.

mod gradients;
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
use frazil_runtime::value::{ObjectValue, TensorCell};
use frazil_runtime::{Registry, Value};
use frazil_torchscript::{TraceContext, TraceRequest};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Most nodes that the traced function may run.
const MAX_NODES: u64 = 1 << 22;

/// Calls nested more deeply than this are refused.
const MAX_DEPTH: usize = 200;

/// Functions of lists and dictionaries: what they give is known without them.
const OF_CONTAINERS: &[&str] = &[
    "aten::__contains__",
    "aten::__getitem__",
    "aten::_set_item",
    "aten::Delete",
    "aten::add",
    "aten::add_",
    "aten::append",
    "aten::clear",
    "aten::copy",
    "aten::count",
    "aten::dict",
    "aten::extend",
    "aten::get",
    "aten::index",
    "aten::insert",
    "aten::items",
    "aten::keys",
    "aten::len",
    "aten::list",
    "aten::mul",
    "aten::pop",
    "aten::popitem",
    "aten::remove",
    "aten::reverse",
    "aten::setdefault",
    "aten::slice",
    "aten::update",
    "aten::values",
];

/// The traced counterpart of a value that is not a tensor.
#[derive(Clone, Default)]
enum Noted {
    #[default]
    Constant,
    /// An integer that comes from sizes.
    Int(ValueId),
    /// The elements of a list of integers.
    Ints(Vec<Option<ValueId>>),
}

type Env = HashMap<ValueId, (Value, Noted)>;

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
    /// The value that each tensor is now, by its address; it is kept so that no address is used twice.
    tensors: HashMap<usize, (ValueId, TensorCell)>,
    /// Parameters and buffers: the module that each is of, and its name there.
    attributes: HashMap<usize, (usize, SymbolId)>,
    /// Parameters that require gradients, by address.
    parameters: HashSet<usize>,
    /// Values of the trace that require gradients.
    gradients: HashSet<ValueId>,
    /// Modules by address: the one that each is in, its name there and its type.
    modules: HashMap<usize, (usize, SymbolId, TypeId)>,
    /// Modules that the trace has got so far.
    objects: HashMap<usize, ValueId>,
    /// Whether modules are in training mode, by address.
    training: HashMap<usize, bool>,
    nodes: u64,
    depth: usize,
}

/// The graph of what the function of `request` does with its example inputs.
///
/// # Errors
/// Why that cannot be traced.
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
        depth: 0,
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

    /// Notes the parameters and buffers of a module and of those within it.
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

    /// Notes the tensors in an input.
    fn unpack(&mut self, value: &Value, noted: ValueId) -> Result<()> {
        match value {
            Value::Tensor(cell) => self.define(cell, noted),
            Value::Tuple(_) | Value::List(_) => {
                let items = value.items().unwrap_or_default();
                let types: Vec<TypeId> = items.iter().map(|item| self.type_of_value(item)).collect();
                let kind = match value {
                    Value::Tuple(_) => "prim::TupleUnpack",
                    _ => "prim::ListUnpack",
                };
                let kind = self.ctx.symbol(kind);
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

    /// The value of the trace for a result of the traced function.
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

    /// Runs a function of Python.
    fn function(&mut self, id: FunctionId, args: Vec<(Value, Noted)>) -> Result<(Value, Noted)> {
        if self.depth >= MAX_DEPTH {
            return Err("calls nest too deeply to be traced".to_owned());
        }
        self.depth += 1;
        let module = self.module;
        let graph = &module.unit.function(id).graph;
        let mut env = Env::new();
        for (&input, arg) in graph.inputs().iter().zip(args) {
            env.insert(input, arg);
        }
        self.block(graph, graph.root(), &mut env)?;
        self.depth -= 1;
        Ok(graph
            .outputs()
            .next()
            .and_then(|output| env.get(&output).cloned())
            .unwrap_or_default())
    }

    fn block(&mut self, graph: &Graph, block: frazil_ir::BlockId, env: &mut Env) -> Result<()> {
        for node in graph.nodes(block) {
            self.nodes += 1;
            if self.nodes > MAX_NODES {
                return Err(format!("the traced function runs more than {MAX_NODES} operations"));
            }
            self.node(graph, node, env)?;
        }
        Ok(())
    }

    fn node(&mut self, graph: &Graph, node: NodeId, env: &mut Env) -> Result<()> {
        let inputs: Vec<(Value, Noted)> = graph
            .operands(node)
            .map(|operand| env.get(&operand).cloned().unwrap_or_default())
            .collect();
        let first = inputs.first().map(|(value, _)| value.clone()).unwrap_or_default();
        let outputs = graph.node_outputs(node).to_vec();
        let one = |value: (Value, Noted), env: &mut Env| {
            if let Some(&output) = outputs.first() {
                env.insert(output, value);
            }
        };
        match graph.kind(node) {
            symbols::PRIM_IF => {
                let taken = usize::from(!matches!(first, Value::Bool(true)));
                let Some(&block) = graph.node_blocks(node).get(taken) else {
                    return Err("a condition without blocks".to_owned());
                };
                self.block(graph, block, env)?;
                for (output, result) in outputs.iter().zip(graph.results(block)) {
                    let value = env.get(&result).cloned().unwrap_or_default();
                    env.insert(*output, value);
                }
                Ok(())
            }
            symbols::PRIM_LOOP => self.repeat(graph, node, &inputs, env),
            symbols::PRIM_GET_ATTR => {
                let value = self.attribute(&first, graph.attribute_symbol(node, symbols::ATTR_NAME))?;
                one((value, Noted::Constant), env);
                Ok(())
            }
            symbols::PRIM_SET_ATTR => {
                let (object, slot) = self.slot(&first, graph.attribute_symbol(node, symbols::ATTR_NAME))?;
                if let Some((value, _)) = inputs.get(1) {
                    object.set_slot(slot, value.clone());
                }
                Ok(())
            }
            symbols::PRIM_CREATE_OBJECT => {
                let ty = outputs.first().map(|&output| self.ctx.type_kind(graph.ty(output)));
                let Some(TypeKind::Class(class)) = ty else {
                    return Err("an object without a class".to_owned());
                };
                let slots = self.module.unit.class(class).map_or(0, |class| class.attributes.len());
                one(
                    (
                        Value::Object(ObjectValue::new(class, vec![Value::None; slots])),
                        Noted::Constant,
                    ),
                    env,
                );
                Ok(())
            }
            symbols::PRIM_CALL_METHOD => {
                let name = graph
                    .attribute_symbol(node, symbols::ATTR_NAME)
                    .unwrap_or(symbols::EMPTY);
                let value = self.call_method(graph, node, name, inputs)?;
                one(value, env);
                Ok(())
            }
            symbols::PRIM_CALL_FUNCTION => {
                let Value::Function(name) = first else {
                    return Err("a call of something that is no function".to_owned());
                };
                let Some(id) = self.module.unit.find_function(name) else {
                    return Err(format!("there is no function '{}'", self.ctx.name(name)));
                };
                let args = inputs.into_iter().skip(1).collect::<Vec<_>>();
                let value = match self.is_python(id) {
                    true => self.function(id, args)?,
                    false => {
                        let ty = self.ctx.type_of_kind(TypeKind::Function(name));
                        let function = self.builder().constant_typed(Constant::Function(name), ty);
                        self.call(graph, node, id, &[function], &args)?
                    }
                };
                one(value, env);
                Ok(())
            }
            symbols::PRIM_RAISE_EXCEPTION => Err(match first.as_str() {
                Some(text) => format!("the traced function raises: {text}"),
                None => "the traced function raises".to_owned(),
            }),
            _ => match graph.kind_name(node) {
                name @ ("prim::Enter" | "prim::Exit") => {
                    let method = match name {
                        "prim::Enter" => "__enter__",
                        _ => "__exit__",
                    };
                    let method = self.ctx.symbol(method);
                    let mut args = inputs;
                    if name == "prim::Exit" {
                        args.extend(std::iter::repeat_n((Value::None, Noted::Constant), 3));
                    }
                    let value = self.call_method(graph, node, method, args)?;
                    one(value, env);
                    Ok(())
                }
                _ => self.operator(graph, node, inputs, env),
            },
        }
    }

    fn repeat(&mut self, graph: &Graph, node: NodeId, inputs: &[(Value, Noted)], env: &mut Env) -> Result<()> {
        let (Some(&(Value::Int(trips), _)), Some(&(Value::Bool(condition), _))) = (inputs.first(), inputs.get(1))
        else {
            return Err("a loop without a trip count and a condition".to_owned());
        };
        let Some(&body) = graph.node_blocks(node).first() else {
            return Err("a loop without a body".to_owned());
        };
        let mut carried: Vec<(Value, Noted)> = inputs.iter().skip(2).cloned().collect();
        let (mut go, mut round) = (condition, 0);
        while go && round < trips {
            let arguments = std::iter::once((Value::Int(round), Noted::Constant)).chain(carried);
            for (&parameter, argument) in graph.parameters(body).iter().zip(arguments) {
                env.insert(parameter, argument);
            }
            self.block(graph, body, env)?;
            let results: Vec<ValueId> = graph.results(body).collect();
            let mut results = results
                .iter()
                .map(|result| env.get(result).cloned().unwrap_or_default());
            go = matches!(results.next(), Some((Value::Bool(true), _)));
            carried = results.collect();
            round += 1;
        }
        for (&output, value) in graph.node_outputs(node).iter().zip(carried) {
            env.insert(output, value);
        }
        Ok(())
    }

    fn slot(&self, object: &Value, name: Option<SymbolId>) -> Result<(ObjectValue, usize)> {
        let (Value::Object(object), Some(name)) = (object, name) else {
            return Err("an attribute of something that is no object".to_owned());
        };
        let class = self.module.unit.class(object.class());
        match class.and_then(|class| class.attributes.get_index_of(&name)) {
            Some(slot) => Ok((object.clone(), slot)),
            None => Err(format!("an object without the attribute '{}'", self.ctx.name(name))),
        }
    }

    fn attribute(&self, object: &Value, name: Option<SymbolId>) -> Result<Value> {
        let (object, slot) = self.slot(object, name)?;
        if let (Some(name), Some(&training)) = (name, self.training.get(&object.address()))
            && self.ctx.name(name) == "training"
        {
            return Ok(Value::Bool(training));
        }
        Ok(object.slot(slot).unwrap_or_default())
    }

    /// Whether Python would run a function: its call leaves nothing behind.
    fn is_python(&self, id: FunctionId) -> bool {
        let name = self.ctx.name(self.module.unit.function(id).name);
        self.context.inlined.contains(&id) || name.starts_with("__torch__.torch.")
    }

    fn call_method(
        &mut self,
        graph: &Graph,
        node: NodeId,
        name: SymbolId,
        args: Vec<(Value, Noted)>,
    ) -> Result<(Value, Noted)> {
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
        // A module within the traced one that was compiled or traced before, and is called as what it is.
        match is_module && !self.context.classes.contains(&class) {
            true => self.call(graph, node, id, &[], &args),
            false => self.function(id, args),
        }
    }

    /// A call that stays in the trace.
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

    fn operator(&mut self, graph: &Graph, node: NodeId, inputs: Vec<(Value, Noted)>, env: &mut Env) -> Result<()> {
        let kind = graph.kind_name(node).to_owned();
        let outputs = graph.node_outputs(node).to_vec();
        let values: Vec<Value> = inputs.iter().map(|(value, _)| value.clone()).collect();
        // Operands are noted before the call: in-place operators make other values of them.
        let of_container = OF_CONTAINERS.contains(&kind.as_str())
            && matches!(values.first(), Some(Value::List(_) | Value::Dict(_) | Value::Str(_)));
        let leaves = matches!(kind.as_str(), "aten::tensor" | "aten::as_tensor");
        let is_candidate = !kind.starts_with("prim::") && !of_container && !leaves;
        let gives_tensors = outputs.iter().any(|&output| self.holds_tensor(graph.ty(output)));
        let mut operands = Vec::new();
        if is_candidate && gives_tensors {
            let wrapped = self
                .registry
                .operator(graph, node)
                .and_then(|operator| wrapped_number(&self.ctx, operator.schema(), &values));
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
        let mut noted = self.sizes(graph, node, &kind, &inputs, &results)?;
        noted.resize(results.len(), Noted::Constant);
        for ((&output, result), noted) in outputs.iter().zip(results).zip(noted) {
            env.insert(output, (result, noted));
        }
        Ok(())
    }

    fn holds_tensor(&self, ty: TypeId) -> bool {
        match self.ctx.type_kind(ty) {
            TypeKind::Tensor(_) => true,
            TypeKind::List(element) | TypeKind::Optional(element) => self.holds_tensor(element),
            TypeKind::Tuple(elements) => self.ctx.types(elements).iter().any(|&ty| self.holds_tensor(ty)),
            _ => false,
        }
    }

    /// Runs one node on these values.
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

    /// A copy of a node at the end of another graph.
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

    /// Notes what a node has given.
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

/// PyTorch's message about results of other types.
const RESULTS: &str =
    "Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from traced functions";
