//! Splitting of classes. An object that shares its class with others gets a class of its own before it gets an attribute that the others do not have.
//!
//! The objects that contain it get classes of their own, too. The graphs of all their methods get the new types, which are propagated from the method's
//! receiver. Code that uses such an object in any other way is refused.

use crate::error::{Error, Result};
use frazil_ir::types::is_subtype;
use frazil_ir::{
    Constant, Function, FunctionId, Graph, Module, NodeId, ObjectId, SymbolId, TypeId, TypeKind, ValueId, mangled_name,
    symbols,
};
use indexmap::IndexSet;
use std::collections::HashMap;
use std::sync::Arc;

/// Makes `object` the only instance of its class.
///
/// # Errors
/// If it, or a module above it, is in a container, or if code uses one of them other than as a receiver.
pub(super) fn give_own_class(module: &mut Module, object: ObjectId) -> Result<()> {
    if is_alone(module, object) {
        return Ok(());
    }
    let affected = holders(module, object)?;
    let mut changed = module.clone();
    for &object in &affected {
        if !is_alone(&changed, object) {
            copy_class(&mut changed, object);
        }
    }
    settle(&mut changed, &affected)?;
    *module = changed;
    Ok(())
}

/// Updates the types of attributes to the classes of the objects that they contain, in the class of `object`, in all classes that contain it, and in the code
/// of their methods.
///
/// # Errors
/// If the code does not fit the types, if a container holds one of the objects, or if code passes one of them on.
pub(super) fn settle_types_above(module: &mut Module, object: ObjectId) -> Result<()> {
    let affected = holders(module, object)?;
    settle(module, &affected)
}

fn is_alone(module: &Module, object: ObjectId) -> bool {
    let class = module.object(object).class;
    module.objects().all(|(id, other)| id == object || other.class != class)
}

fn short_name(module: &Module, object: ObjectId) -> &str {
    let name = module.ctx().name(module.object(object).class);
    name.rsplit('.').next().unwrap_or(name)
}

/// Returns `object` and all objects from which it is reachable.
fn holders(module: &Module, object: ObjectId) -> Result<IndexSet<ObjectId>> {
    let mut found = IndexSet::from([object]);
    let mut next = 0;
    while let Some(&held) = found.get_index(next) {
        next += 1;
        for (id, holder) in module.objects() {
            for value in &holder.slots {
                let mut holds = false;
                value.visit_objects(&mut |inner| holds |= inner == held);
                match (holds, value) {
                    (false, _) => {}
                    (true, Constant::Object(_)) => {
                        found.insert(id);
                    }
                    (true, _) => {
                        return Err(Error::Unsupported(format!(
                            "a container holds the module of class {}: it cannot become different from others of its class",
                            short_name(module, held)
                        )));
                    }
                }
            }
        }
    }
    Ok(found)
}

/// Gives `object` a class of its own, a copy of the class that it has.
fn copy_class(module: &mut Module, object: ObjectId) {
    let ctx = Arc::clone(module.ctx());
    let Some(mut class) = module.class_of(object).cloned() else {
        return;
    };
    class.name = mangled_name(&ctx, class.name, |name| module.unit.class(name).is_none());
    for (&method, id) in &mut class.methods {
        let mut function = module.unit.function(*id).clone();
        function.name = ctx.symbol(&format!("{}.{}", ctx.name(class.name), ctx.name(method)));
        function.schema.name = function.name;
        *id = module.unit.add_function(function);
    }
    module.object_mut(object).class = class.name;
    module.unit.classes.insert(class.name, class);
}

fn class_type(module: &Module, object: ObjectId) -> TypeId {
    module.ctx().type_of_kind(TypeKind::Class(module.object(object).class))
}

fn is_class(module: &Module, ty: TypeId) -> bool {
    matches!(module.ctx().type_kind(ty), TypeKind::Class(_))
}

fn settle(module: &mut Module, affected: &IndexSet<ObjectId>) -> Result<()> {
    for &object in affected {
        let held: Vec<(usize, TypeId)> = module
            .object(object)
            .slots
            .iter()
            .enumerate()
            .filter_map(|(i, value)| match value {
                Constant::Object(inner) => Some((i, class_type(module, *inner))),
                _ => None,
            })
            .collect();
        let class = module.object(object).class;
        let ctx = Arc::clone(module.ctx());
        for (index, ty) in held {
            let attribute = module
                .unit
                .classes
                .get_mut(&class)
                .and_then(|c| c.attributes.get_index_mut(index));
            // A value of interface type keeps this type.
            if let Some((_, attribute)) = attribute
                && matches!(ctx.type_kind(attribute.ty), TypeKind::Class(_))
            {
                attribute.ty = ty;
            }
        }
    }
    for &object in affected {
        let methods: Vec<FunctionId> = module
            .class_of(object)
            .map_or_else(Vec::new, |c| c.methods.values().copied().collect());
        for id in methods {
            let mut function = module.unit.function(id).clone();
            retype(module, object, &mut function)?;
            *module.unit.function_mut(id) = function;
        }
    }
    Ok(())
}

/// Values of a graph that are known objects, with the types that they had before.
type Known = HashMap<ValueId, (ObjectId, TypeId)>;

/// Updates the types of values that are known objects, in a method of `object`, to the classes of these objects.
fn retype(module: &Module, object: ObjectId, function: &mut Function) -> Result<()> {
    let name = module.ctx().name(function.name).to_owned();
    let graph = &mut function.graph;
    let Some(&this) = graph.inputs().first() else {
        return Ok(());
    };
    let mut known = Known::new();
    learn(module, graph, &mut known, this, object);
    if let Some(first) = function.schema.arguments.first_mut() {
        first.ty = class_type(module, object);
    }
    for node in graph.all_nodes() {
        let receiver = graph.operand(node, 0).and_then(|value| known.get(&value).copied());
        let kind = graph.kind(node);
        let follows = [
            symbols::PRIM_GET_ATTR,
            symbols::PRIM_SET_ATTR,
            symbols::PRIM_CALL_METHOD,
        ]
        .contains(&kind);
        let handed_on = graph.operands(node).skip(usize::from(follows));
        check_not_changed(module, &known, handed_on, graph, &name)?;
        for &block in graph.node_blocks(node) {
            check_not_changed(module, &known, graph.results(block), graph, &name)?;
        }
        let Some((object, before)) = receiver.filter(|_| follows) else {
            continue;
        };
        if kind == symbols::PRIM_CALL_METHOD {
            check_call(module, graph, node, object, before)?;
        } else if kind == symbols::PRIM_GET_ATTR {
            read(module, graph, &mut known, node, object)?;
        }
    }
    check_not_changed(module, &known, graph.results(graph.root()), graph, &name)
}

/// Records that `value` is `object`, and sets its type to the class of `object`.
fn learn(module: &Module, graph: &mut Graph, known: &mut Known, value: ValueId, object: ObjectId) {
    let before = graph.ty(value);
    if is_class(module, before) {
        graph.set_type(value, class_type(module, object));
    }
    known.insert(value, (object, before));
}

fn check_not_changed(
    module: &Module,
    known: &Known,
    values: impl Iterator<Item = ValueId>,
    graph: &Graph,
    function: &str,
) -> Result<()> {
    for value in values {
        if let Some((object, before)) = known.get(&value)
            && *before != graph.ty(value)
        {
            return Err(Error::Unsupported(format!(
                "`{function}` hands the module of class {} on: it cannot become different from others of its class",
                short_name(module, *object)
            )));
        }
    }
    Ok(())
}

/// Returns the attribute name of a `prim::GetAttr` or `prim::SetAttr` node.
fn attribute_name(graph: &Graph, node: NodeId) -> Option<SymbolId> {
    graph.attribute_symbol(node, symbols::ATTR_NAME)
}

fn read(module: &Module, graph: &mut Graph, known: &mut Known, node: NodeId, object: ObjectId) -> Result<()> {
    let ctx = module.ctx();
    let (Some(name), Some(&output)) = (attribute_name(graph, node), graph.node_outputs(node).first()) else {
        return Ok(());
    };
    let attribute = module.class_of(object).and_then(|c| c.attributes.get(&name));
    match (module.attribute(object, name), attribute) {
        (Some(Constant::Object(inner)), _) => learn(module, graph, known, output, *inner),
        (Some(_), Some(attribute)) if is_subtype(ctx, attribute.ty, graph.ty(output)) => {}
        // Types of tensors in graphs may be more precise than those in classes.
        (Some(_), Some(attribute)) if is_subtype(ctx, graph.ty(output), attribute.ty) => {}
        _ => return Err(lacks(module, object, name)),
    }
    Ok(())
}

fn lacks(module: &Module, object: ObjectId, name: SymbolId) -> Error {
    Error::Attribute(format!(
        "the code uses `{}` of the module, which one of class {} does not have, or not of the same type",
        module.ctx().name(name),
        short_name(module, object)
    ))
}

/// Checks that the method that `node` calls has the same argument and result types as the method that it called before.
fn check_call(module: &Module, graph: &Graph, node: NodeId, object: ObjectId, before: TypeId) -> Result<()> {
    let (ctx, unit) = (module.ctx(), &module.unit);
    let (TypeKind::Class(old), Some(name)) = (ctx.type_kind(before), attribute_name(graph, node)) else {
        return Ok(());
    };
    let class = module.object(object).class;
    if class == old {
        return Ok(());
    }
    let types = |class: SymbolId| {
        let schema = &unit.function(unit.method(class, name)?).schema;
        let arguments = schema.arguments.iter().skip(1).map(|a| (a.ty, a.default.is_some()));
        let returns = schema.returns.iter().map(|r| r.ty);
        Some((arguments.collect::<Vec<_>>(), returns.collect::<Vec<_>>()))
    };
    match (types(old), types(class)) {
        (Some(old), Some(new)) if old == new => Ok(()),
        _ => Err(lacks(module, object, name)),
    }
}
