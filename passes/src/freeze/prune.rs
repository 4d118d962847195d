//! The frozen module: only the members that the preserved methods still use.
//!
//! Objects that lose attributes or methods get new classes, with mangled names as in PyTorch ([`reclass`](super::reclass)). Objects that are kept whole
//! keep their classes with all methods, and their pending states.

use super::PreservedMethod;
use super::attributes::{Attributes, accesses};
use super::preserve::Preserved;
use super::reclass::{Left, NewClasses};
use crate::pass::PassError;
use crate::support;
use frazil_ir::{
    AttributeValue, CompilationUnit, Constant, Function, FunctionId, Graph, Module, Object, ObjectId, SymbolId, TypeId,
    TypeKind, symbols,
};
use indexmap::{IndexMap, IndexSet};
use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::sync::Arc;

/// Replaces the contents of `module` by the remaining objects, classes and functions, with the frozen method bodies.
pub(super) fn rebuild(
    module: &mut Module,
    mut methods: Vec<PreservedMethod>,
    attributes: &Attributes,
    kept: &Preserved,
    freeze_interfaces: bool,
) -> Result<(), PassError> {
    let left = left(module, &methods, attributes, kept);
    let mut counts: HashMap<ObjectId, usize> = HashMap::new();
    for method in &methods {
        *counts.entry(method.receiver).or_default() += 1;
    }
    let new_classes = left.new_classes(&counts, freeze_interfaces);
    retype(module, &mut methods, attributes, &new_classes);
    // Objects that are kept whole have their original methods.
    methods.retain(|m| m.receiver == module.root || !left.is_whole(m.receiver));
    let ctx = module.ctx().clone();

    // The new object tree, with the same identities.
    let mut tree = Tree {
        module,
        left: &left,
        new_classes: &new_classes,
        map: IndexMap::new(),
    };
    tree.add(module.root);
    methods
        .iter()
        .for_each(|m| constant_objects(&m.graph).into_iter().for_each(|o| tree.add(o)));
    let (objects, numbers) = tree.finish();
    methods
        .iter_mut()
        .for_each(|m| renumber_constants(&mut m.graph, &numbers));

    let class_of = |object: ObjectId| {
        new_classes
            .names
            .get(&object)
            .copied()
            .unwrap_or(module.object(object).class)
    };
    // Their other methods are dropped, except for an object with a pending state, which needs them to restore itself.
    let stays = |method: &PreservedMethod| module.state(method.receiver).is_some();
    let receivers: HashSet<SymbolId> = methods
        .iter()
        .filter(|m| !stays(m))
        .map(|m| class_of(m.receiver))
        .collect();
    let replaced: HashSet<FunctionId> = methods.iter().filter(|m| stays(m)).map(|m| m.function).collect();
    let mut unit = CompilationUnit::of_sources(module.unit.sources.clone());
    let mut wanted: IndexSet<SymbolId> = IndexSet::new();
    let mut functions: IndexSet<FunctionId> = IndexSet::new();
    for class in new_classes.definitions.values() {
        for attribute in class.attributes.values() {
            classes_in(module, attribute.ty, &mut wanted);
        }
        unit.classes.insert(class.name, class.clone());
    }
    for object in &objects {
        wanted.insert(object.class);
    }
    for method in &methods {
        functions_in(module, &method.graph, &mut functions);
        types_of_graph(module, &method.graph, &mut wanted);
        schema_types(module, method.function, &mut wanted);
    }
    let is_needed = |class: SymbolId, method: FunctionId| !receivers.contains(&class) && !replaced.contains(&method);
    collect(module, &mut wanted, &mut functions, &unit, &is_needed);

    let mut ids: HashMap<FunctionId, FunctionId> = HashMap::new();
    for &id in &functions {
        ids.insert(id, unit.add_function(module.unit.function(id).clone()));
    }
    for name in &wanted {
        if let Some(class) = module.unit.class(*name).filter(|_| !unit.classes.contains_key(name)) {
            let mut class = class.clone();
            if receivers.contains(name) {
                class.methods.clear();
            }
            class.methods.retain(|_, id| match ids.get(id) {
                Some(new) => {
                    *id = *new;
                    true
                }
                None => false,
            });
            unit.classes.insert(*name, class);
        }
    }
    for PreservedMethod {
        function,
        receiver,
        graph,
    } in methods
    {
        let old = module.unit.function(function);
        let old_class = module.class_of(receiver);
        let Some((&method, _)) = old_class.and_then(|c| c.methods.iter().find(|(_, m)| **m == function)) else {
            continue;
        };
        let class = class_of(receiver);
        let name = ctx.symbol(&format!("{}.{}", ctx.name(class), ctx.name(method)));
        let mut schema = old.schema.clone();
        if let (Some(this), Some(&input)) = (schema.arguments.first_mut(), graph.inputs().first()) {
            this.ty = graph.ty(input);
        }
        let new = unit.add_function(Function { name, schema, graph });
        if let Some(class) = unit.classes.get_mut(&class) {
            class.methods.insert(method, new);
        }
    }
    for class in unit.classes.values_mut() {
        let methods = &class.methods;
        for hooks in [&mut class.forward_pre_hooks, &mut class.forward_hooks] {
            hooks.retain(|name| methods.contains_key(name));
        }
    }

    let mut objects = objects.into_iter();
    let Some(root) = objects.next() else { return Ok(()) };
    let mut frozen = Module::new(ctx, unit, root.class, root.slots);
    for object in objects {
        frozen.add_object(object);
    }
    for (old, state) in module.states() {
        if let Some(&new) = numbers.get(&old) {
            frozen.set_state(new, Some(renumber(state, &numbers)));
        }
    }
    frozen.extra_files = std::mem::take(&mut module.extra_files);
    *module = frozen;
    Ok(())
}

/// Returns the attributes that remain: attributes that the preserved methods still read or write, and preserved attributes.
fn left<'m>(module: &'m Module, methods: &[PreservedMethod], attributes: &Attributes, kept: &Preserved) -> Left<'m> {
    let apart = methods.iter().map(|m| m.receiver).chain([module.root]).collect();
    let mut left = Left::new(module, &apart);
    for (object, name) in sorted(&kept.attributes) {
        left.need(object, name);
    }
    for (method, scope) in methods.iter().zip(&attributes.objects) {
        let _: Result<(), Infallible> = scope.visit(&method.graph, &mut |graph, known| {
            for access in accesses(graph) {
                if let Some(object) = known.get(&access.object) {
                    left.need(*object, access.name);
                }
            }
            Ok(())
        });
    }
    let constants = methods.iter().flat_map(|m| constant_objects(&m.graph));
    for object in sorted(&attributes.whole).into_iter().chain(constants) {
        left.keep_whole(object);
    }
    left
}

/// Returns the objects in constants of `graph`, including the graphs of forks.
fn constant_objects(graph: &Graph) -> Vec<ObjectId> {
    let mut found = Vec::new();
    for graph in support::subgraphs_and_self(graph) {
        for node in graph.all_nodes() {
            if let Some(constant) = graph.constant_of(node) {
                constant.visit_objects(&mut |object| found.push(object));
            }
        }
    }
    found
}

/// Updates the ids of objects in constants of `graph`.
fn renumber_constants(graph: &mut Graph, numbers: &IndexMap<ObjectId, ObjectId>) {
    let _: Result<(), Infallible> = support::for_each_subgraph(graph, |inner| {
        renumber_constants(inner, numbers);
        Ok(())
    });
    for node in graph.all_nodes() {
        let Some(constant) = graph.constant_of(node) else {
            continue;
        };
        let mut holds_objects = false;
        constant.visit_objects(&mut |_| holds_objects = true);
        if holds_objects {
            let new = AttributeValue::Constant(renumber(&constant, numbers));
            graph.set_attribute(node, symbols::ATTR_VALUE, new);
        }
    }
}

fn sorted<T: Copy + Ord>(set: &HashSet<T>) -> Vec<T> {
    let mut all: Vec<T> = set.iter().copied().collect();
    all.sort_unstable();
    all
}

/// Gives values that are known objects the type of the object's new class.
fn retype(module: &Module, methods: &mut [PreservedMethod], attributes: &Attributes, new_classes: &NewClasses) {
    for (method, scope) in methods.iter_mut().zip(&attributes.objects) {
        scope.edit(&mut method.graph, &mut |graph, known| {
            for (value, object) in known {
                if let Some(class) = new_classes.names.get(object) {
                    let ty = module.ctx().type_of_kind(TypeKind::Class(*class));
                    graph.set_type(*value, ty);
                }
            }
        });
    }
}

/// Copies the remaining objects, with new ids in the order in which they are reached.
struct Tree<'m> {
    module: &'m Module,
    left: &'m Left<'m>,
    new_classes: &'m NewClasses,
    map: IndexMap<ObjectId, ObjectId>,
}

impl Tree<'_> {
    /// Assigns ids to `object` and to everything that remains reachable from it.
    fn add(&mut self, object: ObjectId) {
        let mut next = self.map.len();
        self.number(object);
        while let Some((&object, _)) = self.map.get_index(next) {
            next += 1;
            let state = self.module.state(object).cloned();
            for value in self.slots(object).iter().chain(&state) {
                value.visit_objects(&mut |inner| self.number(inner));
            }
        }
    }

    fn number(&mut self, object: ObjectId) {
        let id = ObjectId::from_u32(self.map.len() as u32);
        self.map.entry(object).or_insert(id);
    }

    fn slots(&self, object: ObjectId) -> Vec<Constant> {
        let data = self.module.object(object);
        match self.module.class_of(object) {
            Some(class) if self.new_classes.names.contains_key(&object) => class
                .attributes
                .keys()
                .zip(&data.slots)
                .filter(|(name, _)| self.left.keeps(object, **name))
                .map(|(_, v)| v.clone())
                .collect(),
            _ => data.slots.clone(),
        }
    }

    /// Returns the objects in the order of their new ids, and the new id of each old one.
    fn finish(self) -> (Vec<Object>, IndexMap<ObjectId, ObjectId>) {
        let objects = self.map.keys().map(|old| {
            let class = self.new_classes.names.get(old).copied();
            Object {
                class: class.unwrap_or(self.module.object(*old).class),
                slots: self.slots(*old).iter().map(|v| renumber(v, &self.map)).collect(),
            }
        });
        (objects.collect(), self.map)
    }
}

/// Returns `value` with new object ids. Containers without objects keep their identity.
fn renumber(value: &Constant, map: &IndexMap<ObjectId, ObjectId>) -> Constant {
    let mut holds_objects = false;
    value.visit_objects(&mut |_| holds_objects = true);
    if !holds_objects {
        return value.clone();
    }
    match value {
        Constant::Object(id) => Constant::Object(map.get(id).copied().unwrap_or(*id)),
        Constant::List(l) => Constant::list(l.element, l.items.iter().map(|c| renumber(c, map)).collect()),
        Constant::Tuple(t) => Constant::Tuple(Arc::new(frazil_ir::TupleConstant {
            ty: t.ty,
            items: t.items.iter().map(|c| renumber(c, map)).collect(),
        })),
        Constant::Dict(d) => Constant::Dict(Arc::new(frazil_ir::DictConstant {
            key: d.key,
            value: d.value,
            entries: d
                .entries
                .iter()
                .map(|(k, v)| (renumber(k, map), renumber(v, map)))
                .collect(),
        })),
        other => other.clone(),
    }
}

// --- which classes and functions are needed

fn classes_in(module: &Module, ty: TypeId, out: &mut IndexSet<SymbolId>) {
    let ctx = module.ctx();
    match ctx.type_kind(ty) {
        TypeKind::Class(name) | TypeKind::Interface(name) | TypeKind::Enum(name) => {
            out.insert(name);
        }
        TypeKind::NamedTuple(name, _, elements) => {
            out.insert(name);
            ctx.types(elements).iter().for_each(|t| classes_in(module, *t, out));
        }
        TypeKind::Tuple(elements) | TypeKind::Union(elements) => {
            ctx.types(elements).iter().for_each(|t| classes_in(module, *t, out));
        }
        TypeKind::Optional(e) | TypeKind::List(e) | TypeKind::Future(e) | TypeKind::Await(e) | TypeKind::RRef(e) => {
            classes_in(module, e, out);
        }
        TypeKind::Dict(k, v) => {
            classes_in(module, k, out);
            classes_in(module, v, out);
        }
        _ => {}
    }
}

fn types_of_graph(module: &Module, graph: &Graph, out: &mut IndexSet<SymbolId>) {
    for graph in support::subgraphs_and_self(graph) {
        let mut found: Vec<TypeId> = Vec::new();
        let mut value = |v| found.push(graph.ty(v));
        graph.inputs().iter().for_each(|v| value(*v));
        for node in graph.all_nodes() {
            graph.node_outputs(node).iter().for_each(|v| value(*v));
            let blocks = graph.node_blocks(node);
            blocks.iter().flat_map(|b| graph.parameters(*b)).for_each(|v| value(*v));
        }
        for attribute in graph.all_nodes().into_iter().flat_map(|n| graph.attributes(n)) {
            if let AttributeValue::Types(types) = &attribute.value {
                found.extend(types);
            }
        }
        found.into_iter().for_each(|ty| classes_in(module, ty, out));
    }
}

fn schema_types(module: &Module, id: FunctionId, out: &mut IndexSet<SymbolId>) {
    let schema = &module.unit.function(id).schema;
    // `self` has the class that is being replaced.
    for argument in schema.arguments.iter().skip(1).chain(&schema.returns) {
        classes_in(module, argument.ty, out);
    }
}

/// Adds to `out` the functions that `graph` calls by name.
fn functions_in(module: &Module, graph: &Graph, out: &mut IndexSet<FunctionId>) {
    for graph in support::subgraphs_and_self(graph) {
        for node in graph.all_nodes() {
            if graph.kind(node) == symbols::PRIM_CONSTANT
                && let Some(Constant::Function(name)) = graph.constant_of(node)
            {
                out.extend(module.unit.find_function(name));
            }
        }
    }
}

/// Completes `wanted` and `functions`: the methods of wanted classes for which `is_needed` returns true, the classes of their attributes, and the transitive
/// uses of those methods.
fn collect(
    module: &Module,
    wanted: &mut IndexSet<SymbolId>,
    functions: &mut IndexSet<FunctionId>,
    done: &CompilationUnit,
    is_needed: &dyn Fn(SymbolId, FunctionId) -> bool,
) {
    let (mut next_class, mut next_function) = (0, 0);
    loop {
        if let Some(&name) = wanted.get_index(next_class) {
            next_class += 1;
            if done.classes.contains_key(&name) {
                continue;
            }
            let Some(class) = module.unit.class(name) else { continue };
            for attribute in class.attributes.values() {
                classes_in(module, attribute.ty, wanted);
            }
            let methods = class.methods.values().copied();
            functions.extend(methods.filter(|method| is_needed(name, *method)));
        } else if let Some(&id) = functions.get_index(next_function) {
            next_function += 1;
            let graph = &module.unit.function(id).graph;
            types_of_graph(module, graph, wanted);
            functions_in(module, graph, functions);
        } else {
            return;
        }
    }
}
