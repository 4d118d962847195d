//! Wrapping of a function in a module, because an archive contains a module.

use std::sync::Arc;

use frazil_ir::schema::{Argument, FunctionSchema};
use frazil_ir::{
    AttributeKind, Builder, ClassDef, ClassKind, CompilationUnit, Constant, Context, Function, FunctionId, Graph,
    Module, SymbolId, TypeKind, symbols, types,
};

/// The qualified name of the wrapper class in which PyTorch saves functions.
const CLASS: &str = "__torch__.PlaceholderModule";

/// Returns a module whose `forward` is function `id` of `unit`, as `torch.jit.save` writes for a function. Calls of other functions stay calls.
///
/// A graph without a signature gets one: arguments are named like the graph's inputs, and several results become a tuple.
pub fn function_module(ctx: &Arc<Context>, unit: &CompilationUnit, id: FunctionId) -> Module {
    let mut unit = unit.clone();
    let Function { schema, mut graph, .. } = unit.function(id).clone();
    let mut schema = if schema.is_vararg {
        signature(&mut graph)
    } else {
        schema
    };

    let class_name = ctx.symbol(CLASS);
    let class_type = ctx.type_of_kind(TypeKind::Class(class_name));
    let this = graph.add_input(class_type);
    graph.name_value(this, "self");
    let last = graph.inputs().len() - 1;
    let order: Vec<usize> = std::iter::once(last).chain(0..last).collect();
    graph.permute_parameters(graph.root(), &order);
    schema.arguments.insert(0, Argument::plain(symbols::SELF, class_type));
    schema.name = symbols::FORWARD;

    let name = ctx.symbol(&format!("{CLASS}.forward"));
    let forward = unit.add_function(Function { name, schema, graph });
    let mut class = ClassDef::new(class_name, ClassKind::Module);
    // PyTorch gives every module one, those of functions included.
    class.add_attribute(symbols::TRAINING, types::BOOL, AttributeKind::Plain);
    class.methods.insert(symbols::FORWARD, forward);
    unit.classes.insert(class_name, class);
    Module::new(Arc::clone(ctx), unit, class_name, vec![Constant::Bool(true)])
}

/// Returns a signature for a graph without a signature. The graph is changed to have exactly one result.
fn signature(graph: &mut Graph) -> FunctionSchema {
    let ctx = Arc::clone(graph.ctx());
    let outputs: Vec<_> = graph.outputs().collect();
    let result = match outputs.as_slice() {
        [one] => *one,
        [] => {
            let root = graph.root();
            Builder::at_end(graph, root).constant(Constant::None)
        }
        several => {
            let root = graph.root();
            Builder::at_end(graph, root).tuple(several)
        }
    };
    graph.set_results(graph.root(), &[result]);
    let is_identifier = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let mut arguments: Vec<Argument> = Vec::new();
    for (index, &input) in graph.inputs().iter().enumerate() {
        // Other values are numbered, not named; and no argument may take the place of the module.
        let given = graph.value_name(input).map(|name| name.display(&ctx).to_string());
        let given = given.filter(|name| is_identifier(name)).map(|name| ctx.symbol(&name));
        let is_free = |&name: &SymbolId| name != symbols::SELF && arguments.iter().all(|known| known.name != name);
        let name = given.filter(is_free);
        let name = name.unwrap_or_else(|| ctx.symbol(&format!("argument_{index}")));
        arguments.push(Argument::plain(name, graph.ty(input)));
    }
    FunctionSchema {
        name: symbols::FORWARD,
        overload: symbols::EMPTY,
        arguments,
        returns: vec![Argument::plain(symbols::EMPTY, graph.ty(result))],
        is_vararg: false,
        is_varret: false,
    }
}
