//! The frozen module: what the kept methods still need, and nothing else.
//!
//! Instances of one class may keep different attributes, so that every object that loses some gets a class of its own, named as PyTorch mangles
//! names. Objects that are kept whole keep their classes with all methods.

use super::Preserved;
use super::attributes::{Attributes, accesses, objects_in};
use crate::manager::PassError;
use crate::support;
use frazil_ir::{
    ClassDef, CompilationUnit, Constant, Function, FunctionId, Graph, Module, Object, ObjectId, SymbolId, TypeId,
    TypeKind, symbols,
};
use indexmap::{IndexMap, IndexSet};
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;

/// Makes `module` the frozen module with these bodies of its methods.
pub(super) fn rebuild(
    module: &mut Module,
    mut graphs: Vec<(FunctionId, Graph)>,
    attributes: &Attributes,
    kept: &Preserved,
) -> Result<(), PassError> {
    let needed = needed_attributes(module, &graphs, attributes, kept);
    let reclassed = new_classes(module, &needed, attributes, &graphs);
    retype(module, &mut graphs, attributes, &reclassed);
    let ctx = module.ctx().clone();

    // The new object tree, identity kept.
    let mut tree = Tree {
        module,
        needed: &needed,
        reclassed: &reclassed,
        map: IndexMap::new(),
    };
    tree.add(module.root);
    let objects = tree.finish();

    let old_root_class = module.object(module.root).class;
    let root_class = reclassed.get(&module.root).map_or(old_root_class, |c| c.name);
    let mut unit = CompilationUnit::default();
    let mut wanted: IndexSet<SymbolId> = IndexSet::new();
    let mut functions: IndexSet<FunctionId> = IndexSet::new();
    for class in reclassed.values() {
        for attribute in class.attributes.values() {
            classes_in(module, attribute.ty, &mut wanted);
        }
        unit.classes.insert(class.name, class.clone());
    }
    for object in &objects {
        wanted.insert(object.class);
    }
    for (id, graph) in &graphs {
        functions_in(module, graph, &mut functions);
        types_of_graph(module, graph, &mut wanted);
        schema_types(module, *id, &mut wanted);
    }
    collect(module, &mut wanted, &mut functions, &unit);

    let mut ids: HashMap<FunctionId, FunctionId> = HashMap::new();
    for &id in &functions {
        ids.insert(id, unit.add_function(module.unit.function(id).clone()));
    }
    for name in &wanted {
        if let Some(class) = module.unit.class(*name).filter(|_| !unit.classes.contains_key(name)) {
            let mut class = class.clone();
            if *name == root_class {
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
    for (id, graph) in graphs {
        let old = module.unit.function(id);
        let method = module
            .unit
            .class(old_root_class)
            .and_then(|c| c.methods.iter().find(|(_, m)| **m == id));
        let Some((method, _)) = method.map(|(name, id)| (*name, *id)) else {
            continue;
        };
        let name = ctx.symbol(&format!("{}.{}", ctx.name(root_class), ctx.name(method)));
        let mut schema = old.schema.clone();
        if let (Some(this), Some(&input)) = (schema.arguments.first_mut(), graph.inputs().first()) {
            this.ty = graph.ty(input);
        }
        let new = unit.add_function(Function { name, schema, graph });
        if let Some(class) = unit.classes.get_mut(&root_class) {
            class.methods.insert(method, new);
        }
    }

    let mut objects = objects.into_iter();
    let Some(root) = objects.next() else { return Ok(()) };
    let mut frozen = Module::new(ctx, unit, root.class, root.slots);
    for object in objects {
        frozen.add_object(object);
    }
    frozen.extra_files = std::mem::take(&mut module.extra_files);
    *module = frozen;
    Ok(())
}

/// For each object that is not kept whole: the attributes that stay, in the order of its class.
fn needed_attributes(
    module: &Module,
    graphs: &[(FunctionId, Graph)],
    attributes: &Attributes,
    kept: &Preserved,
) -> HashMap<ObjectId, IndexSet<SymbolId>> {
    let mut needed: HashMap<ObjectId, IndexSet<SymbolId>> = HashMap::new();
    for (object, name) in &kept.attributes {
        needed.entry(*object).or_default().insert(*name);
    }
    for ((_, graph), scope) in graphs.iter().zip(&attributes.objects) {
        let _: Result<(), Infallible> = scope.visit(graph, &mut |graph, known| {
            for access in accesses(graph) {
                if let Some(object) = known.get(&access.object) {
                    needed.entry(*object).or_default().insert(access.name);
                }
            }
            Ok(())
        });
    }
    needed.entry(module.root).or_default();
    for (object, names) in &mut needed {
        if let Some(class) = module.class_of(*object) {
            names.sort_by_key(|n| class.attributes.get_index_of(n));
        }
    }
    needed
}

/// Classes of the objects that lose attributes or methods, and of those that hold such objects: their attributes' types change.
fn new_classes(
    module: &Module,
    needed: &HashMap<ObjectId, IndexSet<SymbolId>>,
    attributes: &Attributes,
    graphs: &[(FunctionId, Graph)],
) -> IndexMap<ObjectId, ClassDef> {
    let mut candidates: Vec<(ObjectId, &ClassDef)> = needed
        .keys()
        .filter(|o| !attributes.whole.contains(*o))
        .filter_map(|o| Some((*o, module.class_of(*o)?)))
        .collect();
    candidates.sort_unstable_by_key(|(o, _)| *o);
    let loses = |object: ObjectId, class: &ClassDef| {
        let methods = if object == module.root { graphs.len() } else { 0 };
        class.methods.len() != methods || !class.attributes.keys().all(|n| needed[&object].contains(n))
    };
    let mut taken: IndexSet<SymbolId> = module.unit.classes.keys().copied().collect();
    let mut names: HashMap<ObjectId, SymbolId> = HashMap::new();
    loop {
        let before = names.len();
        for &(object, class) in &candidates {
            let mut held = false;
            for value in &module.object(object).slots {
                objects_in(value, &mut |inner| held |= names.contains_key(&inner));
            }
            if !names.contains_key(&object) && (held || loses(object, class)) {
                names.insert(object, mangle(module, class.name, &mut taken));
            }
        }
        if names.len() == before {
            break;
        }
    }
    let mut out = IndexMap::new();
    for (object, class) in candidates {
        let Some(&name) = names.get(&object) else { continue };
        let mut new = ClassDef::new(name, class.kind);
        for (name, attribute) in class.attributes.iter().filter(|(n, _)| needed[&object].contains(*n)) {
            let mut attribute = attribute.clone();
            if let Some(Constant::Object(inner)) = module.attribute(object, *name)
                && let Some(new) = names.get(inner)
            {
                attribute.ty = module.ctx().type_of_kind(TypeKind::Class(*new));
            }
            new.attributes.insert(*name, attribute);
        }
        new.constants = class.constants.clone();
        if object == module.root {
            // Hooks of submodules are part of the methods that call them by now.
            new.forward_pre_hooks = class.forward_pre_hooks.clone();
            new.forward_hooks = class.forward_hooks.clone();
        }
        out.insert(object, new);
    }
    out
}

/// `__torch__.a.B` as `__torch__.a.___torch_mangle_7.B`, with the first number that is free.
fn mangle(module: &Module, name: SymbolId, taken: &mut IndexSet<SymbolId>) -> SymbolId {
    let ctx = module.ctx();
    let text = ctx.name(name);
    let parts: Vec<&str> = text.split('.').filter(|p| !p.starts_with("___torch_mangle_")).collect();
    let (last, prefix) = parts.split_last().unwrap_or((&text, &[]));
    for n in 0u64.. {
        let candidate = format!("{}.___torch_mangle_{n}.{last}", prefix.join("."));
        let candidate = ctx.symbol(candidate.trim_start_matches('.'));
        if taken.insert(candidate) {
            return candidate;
        }
    }
    name
}

/// Values that are known objects get their new classes as types.
fn retype(
    module: &Module,
    graphs: &mut [(FunctionId, Graph)],
    attributes: &Attributes,
    reclassed: &IndexMap<ObjectId, ClassDef>,
) {
    for ((_, graph), scope) in graphs.iter_mut().zip(&attributes.objects) {
        scope.edit(graph, &mut |graph, known| {
            for (value, object) in known {
                if let Some(class) = reclassed.get(object) {
                    let ty = module.ctx().type_of_kind(TypeKind::Class(class.name));
                    graph.set_type(*value, ty);
                }
            }
        });
    }
}

/// Copies objects, numbering them anew in the order in which they are reached.
struct Tree<'m> {
    module: &'m Module,
    needed: &'m HashMap<ObjectId, IndexSet<SymbolId>>,
    reclassed: &'m IndexMap<ObjectId, ClassDef>,
    map: IndexMap<ObjectId, ObjectId>,
}

impl Tree<'_> {
    /// Numbers `root` and everything that it still reaches.
    fn add(&mut self, root: ObjectId) {
        let mut next = 0;
        self.number(root);
        while let Some((&object, _)) = self.map.get_index(next) {
            next += 1;
            for value in self.slots(object) {
                objects_in(&value, &mut |inner| self.number(inner));
            }
        }
    }

    fn number(&mut self, object: ObjectId) {
        let id = ObjectId::from_u32(self.map.len() as u32);
        self.map.entry(object).or_insert(id);
    }

    fn slots(&self, object: ObjectId) -> Vec<Constant> {
        let data = self.module.object(object);
        match (self.reclassed.get(&object), self.module.class_of(object)) {
            (Some(_), Some(class)) => {
                let needed = self.needed.get(&object);
                let keep = |name: &SymbolId| needed.is_some_and(|n| n.contains(name));
                class
                    .attributes
                    .keys()
                    .zip(&data.slots)
                    .filter(|(n, _)| keep(n))
                    .map(|(_, v)| v.clone())
                    .collect()
            }
            _ => data.slots.clone(),
        }
    }

    fn finish(self) -> Vec<Object> {
        let objects = self.map.keys().map(|old| {
            let class = self
                .reclassed
                .get(old)
                .map_or(self.module.object(*old).class, |c| c.name);
            let slots = self.slots(*old).iter().map(|v| renumber(v, &self.map)).collect();
            Object { class, slots }
        });
        objects.collect()
    }
}

/// `value` with objects renumbered. Containers without objects keep their identity.
fn renumber(value: &Constant, map: &IndexMap<ObjectId, ObjectId>) -> Constant {
    let mut holds_objects = false;
    objects_in(value, &mut |_| holds_objects = true);
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
        let mut value = |v| classes_in(module, graph.ty(v), out);
        graph.inputs().iter().for_each(|v| value(*v));
        for node in graph.all_nodes() {
            graph.node_outputs(node).iter().for_each(|v| value(*v));
            let blocks = graph.node_blocks(node);
            blocks.iter().flat_map(|b| graph.parameters(*b)).for_each(|v| value(*v));
        }
    }
}

fn schema_types(module: &Module, id: FunctionId, out: &mut IndexSet<SymbolId>) {
    let schema = &module.unit.function(id).schema;
    // `self` has the class that is being replaced.
    for argument in schema.arguments.iter().skip(1).chain(&schema.returns) {
        classes_in(module, argument.ty, out);
    }
}

/// Functions that `graph` calls by name.
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

/// Completes `wanted` and `functions`: methods of wanted classes, their attributes' classes, and what those methods use in turn.
fn collect(
    module: &Module,
    wanted: &mut IndexSet<SymbolId>,
    functions: &mut IndexSet<FunctionId>,
    done: &CompilationUnit,
) {
    let root_class = module.object(module.root).class;
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
            if name != root_class {
                functions.extend(class.methods.values().copied());
            }
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
