//! Inlining: `inline`.
//!
//! Every `prim::CallFunction` of a known function and every `prim::CallMethod` on an object of a known class is replaced by a copy of the callee's
//! graph. Callees are inlined first, so that each graph is copied in its final form; bodies of forks are inlined too. Value names and source
//! ranges are copied too.
//!
//! **Sound when** the callee is known statically: the class of a receiver is its static type, and TorchScript's classes have no subclasses. Methods
//! called through an interface are not inlined (which class implements it is a property of the module, see `freeze`), and neither are functions that
//! are not in the compilation unit. Recursion is an error.

pub(crate) mod error;

pub use error::InlineError;

use crate::pass::{AnyPass, ModulePass, PassContext, PassError, TorchScript};
use crate::registry::PassInfo;
use crate::support;
use crate::support::calls::{self, Call, NoMethod};
use frazil_ir::{
    Builder, CompilationUnit, Context, CopyMap, Definition, FunctionId, Graph, Module, NodeId, SourceRange, ValueId,
    symbols,
};
use std::collections::HashMap;
use std::sync::Arc;

/// Declaration of the pass `inline` for the pass registry.
pub static INFO: PassInfo = PassInfo {
    name: "inline",
    summary: "Replaces calls of functions and methods by their bodies.",
    before: "%linear = prim::GetAttr[name=\"fc\"](%self)\n%y = prim::CallMethod[name=\"forward\"](%linear, %x)",
    after: "%linear = prim::GetAttr[name=\"fc\"](%self)\n%weight = prim::GetAttr[name=\"weight\"](%linear)\n\
            %bias = prim::GetAttr[name=\"bias\"](%linear)\n%y = aten::linear(%x, %weight, %bias)",
    options: &[],
    build: |_| AnyPass::module(Inline),
};

/// The pass `inline`. See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct Inline;

impl ModulePass<TorchScript> for Inline {
    fn run(&self, module: &mut Module, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        let all: Vec<_> = module.unit.functions().map(|(id, _)| id).collect();
        inline_functions(module, &all, cx)?;
        Ok(())
    }

    /// Does nothing: without a module, no function that a graph calls is known.
    fn run_on_graph(&self, _graph: &mut Graph, _cx: &mut PassContext<'_>) -> Result<(), PassError> {
        Ok(())
    }
}

const STATISTIC: &str = "calls inlined";

/// Inlines all calls in `functions` and in their callees, while rewrites remain under the limit.
///
/// # Errors
/// Recursion, calls that do not fit, and results that are too large.
pub fn inline_functions(
    module: &mut Module,
    functions: &[FunctionId],
    cx: &mut PassContext<'_>,
) -> Result<(), InlineError> {
    let mut state: HashMap<FunctionId, State> = HashMap::new();
    // Depth-first over the call graph, with an explicit stack.
    for &start in functions {
        let mut stack = vec![start];
        while let Some(&function) = stack.last() {
            match state.get(&function) {
                Some(State::Done) => {
                    stack.pop();
                }
                Some(State::Open) => {
                    inline_into(module, function, cx)?;
                    state.insert(function, State::Done);
                    stack.pop();
                }
                None => {
                    state.insert(function, State::Open);
                    for callee in callees(&module.unit, function)? {
                        match state.get(&callee) {
                            None => stack.push(callee),
                            Some(State::Done) => {}
                            Some(State::Open) => return Err(recursion(&module.unit, &state, &stack, callee)),
                        }
                    }
                }
            }
        }
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// The functions that this function calls are being processed.
    Open,
    /// The calls in this function have been inlined.
    Done,
}

fn recursion(
    unit: &CompilationUnit,
    state: &HashMap<FunctionId, State>,
    stack: &[FunctionId],
    callee: FunctionId,
) -> InlineError {
    let name = |id: FunctionId| {
        let f = unit.function(id);
        f.graph.ctx().name(f.name).to_owned()
    };
    let open: Vec<FunctionId> = stack
        .iter()
        .copied()
        .filter(|f| state.get(f) == Some(&State::Open))
        .collect();
    let from = open.iter().position(|f| *f == callee).unwrap_or(0);
    let chain = open.get(from..).unwrap_or_default().iter().copied().chain([callee]);
    InlineError::Recursive {
        function: name(callee),
        chain: chain.map(name).collect(),
    }
}

/// Returns the functions that `function` calls, including calls in the graphs that it forks.
fn callees(unit: &CompilationUnit, function: FunctionId) -> Result<Vec<FunctionId>, InlineError> {
    let mut out = Vec::new();
    for graph in support::subgraphs_and_self(&unit.function(function).graph) {
        for node in graph.all_nodes() {
            if let Some(call) = resolve(unit, graph, node)? {
                out.push(call.callee);
            }
        }
    }
    Ok(out)
}

/// Returns the callee of `node`, as [`calls::resolve`] does.
fn resolve(unit: &CompilationUnit, graph: &Graph, node: NodeId) -> Result<Option<Call>, InlineError> {
    calls::resolve(unit, graph, node).map_err(|NoMethod { class, method }| InlineError::NoMethod {
        class: graph.ctx().name(class).to_owned(),
        method: graph.ctx().name(method).to_owned(),
        place: place(graph, node),
    })
}

fn place(graph: &Graph, node: NodeId) -> Option<String> {
    let range: SourceRange = graph.source_range(node)?;
    let ctx: &Arc<Context> = graph.ctx();
    Some(range.display(ctx).to_string())
}

/// Inlines the calls in one function, whose callees must have been processed.
fn inline_into(module: &mut Module, function: FunctionId, cx: &mut PassContext<'_>) -> Result<(), InlineError> {
    let empty = Graph::new(module.ctx().clone());
    let mut graph = std::mem::replace(&mut module.unit.function_mut(function).graph, empty);
    let caller = module.ctx().name(module.unit.function(function).name).to_owned();
    let result = inline_graph(&module.unit, &caller, &mut graph, cx);
    module.unit.function_mut(function).graph = graph;
    result.map(|_| ())
}

/// Inlines the calls in `graph`. The callees contain no calls, unless the limit on rewrites was reached. Returns the number of inlined calls.
pub(crate) fn inline_graph(
    unit: &CompilationUnit,
    caller: &str,
    graph: &mut Graph,
    cx: &mut PassContext<'_>,
) -> Result<usize, InlineError> {
    let mut calls = 0;
    support::for_each_subgraph(graph, |g| {
        calls += inline_graph(unit, caller, g, cx)?;
        Ok::<(), InlineError>(())
    })?;
    for node in graph.all_nodes() {
        let Some(call) = resolve(unit, graph, node)? else {
            continue;
        };
        let callee = &unit.function(call.callee).graph;
        let arguments: Vec<_> = graph.operands(node).skip(call.skip).collect();
        if arguments.len() != callee.inputs().len() {
            return Err(InlineError::Arguments {
                caller: caller.to_owned(),
                callee: graph.ctx().name(unit.function(call.callee).name).to_owned(),
                given: arguments.len(),
                wanted: callee.inputs().len(),
                place: place(graph, node),
            });
        }
        let nodes = graph.node_capacity() + callee.node_capacity();
        if nodes > error::MAX_NODES {
            return Err(InlineError::TooLarge);
        }
        frazil_limits::check_nodes(nodes)?;
        if !cx.rewrite(STATISTIC) {
            break;
        }
        splice_call(graph, node, callee, &arguments);
        calls += 1;
    }
    Ok(calls)
}

/// Replaces the call `node` by a copy of `callee`.
fn splice_call(graph: &mut Graph, node: NodeId, callee: &Graph, arguments: &[ValueId]) {
    let mut map = CopyMap::default();
    for (&input, &argument) in callee.inputs().iter().zip(arguments) {
        map.set(input, argument);
    }
    let results = Builder::before(graph, node).copy_block(callee, callee.root(), &mut map);
    let outputs = graph.node_outputs(node).to_vec();
    for ((output, result), inner) in outputs.into_iter().zip(results).zip(callee.outputs()) {
        // The caller's name for the result is more informative than the callee's.
        if let Some(name) = graph.value_name(output) {
            graph.set_value_name(result, name);
            // The same applies to the value that remains after branches with known conditions are removed.
            for value in std::iter::successors(decided(callee, inner), |&value| decided(callee, value)) {
                if let Some(value) = map.get(value) {
                    graph.set_value_name(value, name);
                }
            }
        }
        graph.replace_all_uses_with(output, result);
    }
    let function_value = graph
        .operand(node, 0)
        .filter(|_| graph.kind(node) == symbols::PRIM_CALL_FUNCTION);
    graph.erase(node);
    // The function value, if this was its last call.
    let constant = function_value
        .filter(|v| !graph.has_uses(*v))
        .and_then(|v| graph.defining_node(v))
        .filter(|n| graph.kind(*n) == symbols::PRIM_CONSTANT);
    if let Some(n) = constant {
        graph.erase(n);
    }
}

/// Returns the value from the taken side, if `value` is a result of a `prim::If` on a constant.
fn decided(graph: &Graph, value: ValueId) -> Option<ValueId> {
    let Definition::Output(node, index) = graph.definition(value) else {
        return None;
    };
    if graph.kind(node) != symbols::PRIM_IF {
        return None;
    }
    let condition = graph.constant(graph.operand(node, 0)?)?.as_bool()?;
    let taken = *graph.node_blocks(node).get(usize::from(!condition))?;
    let result = graph.results(taken).nth(index)?;
    (graph.defining_block(result) == Some(taken)).then_some(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use frazil_ir::Constant;
    use frazil_ir::schema::{Catalogue, parse_schema};
    use frazil_ir::{AttributeKind, ClassDef, ClassKind, Function, types};

    /// A method for tests: its name, and a function that builds its body.
    type Method<'a> = (&'a str, &'a dyn Fn(&mut Builder<'_>));

    /// Returns a module of class `Net` with the methods `methods`.
    fn module(methods: &[Method<'_>]) -> Module {
        let ctx = Arc::new(Context::new());
        let class = ctx.symbol("__torch__.Net");
        let self_type = ctx.class("__torch__.Net");
        let mut unit = CompilationUnit::default();
        let mut def = ClassDef::new(class, ClassKind::Module);
        def.add_attribute(ctx.symbol("n"), types::INT, AttributeKind::Plain);
        for (name, fill) in methods {
            let mut graph = Graph::new(ctx.clone());
            graph.add_input(self_type);
            graph.add_input(types::INT);
            let root = graph.root();
            fill(&mut Builder::at_end(&mut graph, root));
            let qualified = ctx.symbol(&format!("__torch__.Net.{name}"));
            let schema = parse_schema(&ctx, &format!("net::{name}(Any self, int x) -> int")).unwrap();
            let id = unit.add_function(Function {
                name: qualified,
                schema,
                graph,
            });
            def.methods.insert(ctx.symbol(name), id);
        }
        unit.classes.insert(class, def);
        Module::new(ctx, unit, class, vec![Constant::Int(3)])
    }

    fn calls(method: &'static str) -> impl Fn(&mut Builder<'_>) {
        move |b| {
            let (this, x) = (b.inputs()[0], b.inputs()[1]);
            let name = b.ctx().symbol(method);
            let node = b.node(symbols::PRIM_CALL_METHOD, &[this, x], &[types::INT]);
            b.set_attribute_symbol(node, symbols::ATTR_NAME, name);
            let (out, root) = (b.output(node).unwrap(), b.root());
            b.add_result(root, out);
        }
    }

    fn leaf(b: &mut Builder<'_>) {
        let (this, x) = (b.inputs()[0], b.inputs()[1]);
        let (n, add) = (b.ctx().symbol("n"), b.ctx().symbol("aten::add"));
        let n = b.get_attr(this, n, types::INT);
        let sum = b.op(add, &[x, n], types::INT);
        let root = b.root();
        b.add_result(root, sum);
    }

    #[test]
    fn chains_of_calls_become_one_body() {
        let mut m = module(&[
            ("forward", &calls("middle")),
            ("middle", &calls("leaf")),
            ("leaf", &leaf),
        ]);
        let catalogue = Catalogue::new(m.ctx().clone());
        Inline.run(&mut m, &mut PassContext::new(&catalogue)).unwrap();
        for (_, f) in m.unit.functions() {
            let kinds: Vec<_> = f
                .graph
                .all_nodes()
                .into_iter()
                .map(|n| f.graph.kind_name(n).to_owned())
                .collect();
            assert_eq!(kinds, ["prim::GetAttr", "aten::add"]);
            f.graph.verify(None).unwrap();
        }
    }

    #[test]
    fn recursion_is_refused_with_the_chain() {
        let mut m = module(&[("forward", &calls("middle")), ("middle", &calls("forward"))]);
        let all: Vec<_> = m.unit.functions().map(|(id, _)| id).collect();
        let catalogue = Catalogue::new(m.ctx().clone());
        let error = inline_functions(&mut m, &all, &mut PassContext::new(&catalogue)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "function '__torch__.Net.forward' is called recursively (__torch__.Net.forward -> __torch__.Net.middle -> \
             __torch__.Net.forward). Recursive calls are not supported"
        );
    }

    #[test]
    fn a_missing_method_is_named() {
        let mut m = module(&[("forward", &calls("nope"))]);
        let id = m.method(symbols::FORWARD).unwrap();
        let catalogue = Catalogue::new(m.ctx().clone());
        let error = inline_functions(&mut m, &[id], &mut PassContext::new(&catalogue)).unwrap_err();
        assert!(error.to_string().contains("has no method 'nope'"), "{error}");
    }
}
