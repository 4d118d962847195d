//! Analysis of which attributes may change, and folding of the attributes that cannot.

use super::preserve::Preserved;
use super::values::{Folder, identities};
use super::{Freeze, FreezeError, PreservedMethod, is_training, overlaps};
use crate::AliasDb;
use crate::inline;
use crate::pass::{PassContext, PassContextExt, PassError};
use crate::support::constants::insert_constant;
use crate::support::subgraphs_and_self;
use frazil_ir::schema::Catalogue;
use frazil_ir::{
    AttributeKind, AttributeValue, ClassKind, Constant, Graph, Module, NodeId, ObjectId, SymbolId, TypeKind, ValueId,
    symbols, types,
};
use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::sync::Arc;

/// The analysis of the module's attributes in one round of freezing.
pub(super) struct Attributes {
    /// For each frozen method's graph, the objects among its values.
    pub(super) objects: Vec<Scope>,
    /// Objects that are used as values. They are kept with all members, and so is everything reachable from them.
    pub(super) whole: HashSet<ObjectId>,
    /// Attributes that are passed to forks. As in PyTorch they are not folded, since an archive with a fork whose operands are all constants cannot be loaded.
    pub(super) forked: HashSet<(ObjectId, SymbolId)>,
    /// Attributes whose reads (`prim::GetAttr`) may be folded, with their values as constants.
    foldable: HashMap<(ObjectId, SymbolId), Constant>,
    /// The first path from the root to each object: `self.layer1.0`.
    pub(super) paths: HashMap<ObjectId, String>,
}

/// Values of a graph that are known objects of the module.
pub(super) type Known = HashMap<ValueId, ObjectId>;

/// The known objects among the values of a graph, and of the graphs that it forks.
#[derive(Default)]
pub(super) struct Scope {
    /// The known objects among the graph's own values.
    pub(super) known: Known,
    /// Scopes of the forked graphs, by the fork's node.
    forked: Vec<(NodeId, Scope)>,
}

impl Scope {
    /// Finds values that are known objects: the given inputs, and reads of attributes of known objects that are never assigned.
    fn of(
        module: &Module,
        graph: &Graph,
        inputs: &[Option<ObjectId>],
        assigned: &HashSet<(SymbolId, SymbolId)>,
    ) -> Scope {
        let mut scope = Scope::default();
        for (&input, object) in graph.inputs().iter().zip(inputs) {
            scope.known.extend(object.map(|o| (input, o)));
        }
        for node in graph.all_nodes() {
            if let Some(body) = forked_body(graph, node) {
                let inputs: Vec<_> = graph.operands(node).map(|v| scope.known.get(&v).copied()).collect();
                scope.forked.push((node, Scope::of(module, body, &inputs, assigned)));
                continue;
            }
            if let (Some(Constant::Object(object)), Some(output)) = (graph.constant_of(node), graph.output(node)) {
                scope.known.insert(output, object);
                continue;
            }
            let Some(access) = access(graph, node).filter(|a| !a.is_write) else {
                continue;
            };
            let (Some(&object), Some(output)) = (scope.known.get(&access.object), graph.output(node)) else {
                continue;
            };
            if assigned.contains(&(module.object(object).class, access.name)) {
                continue;
            }
            if let Some(Constant::Object(inner)) = module.attribute(object, access.name) {
                scope.known.insert(output, *inner);
            }
        }
        scope
    }

    /// Calls `each` with the graph and with every graph that it forks, recursively.
    pub(super) fn visit<E>(
        &self,
        graph: &Graph,
        each: &mut dyn FnMut(&Graph, &Known) -> Result<(), E>,
    ) -> Result<(), E> {
        each(graph, &self.known)?;
        for (node, inner) in &self.forked {
            if let Some(body) = forked_body(graph, *node) {
                inner.visit(body, each)?;
            }
        }
        Ok(())
    }

    /// Calls `each` to edit the graph and every graph that it forks, recursively.
    pub(super) fn edit(&self, graph: &mut Graph, each: &mut dyn FnMut(&mut Graph, &Known)) {
        each(graph, &self.known);
        for (node, inner) in &self.forked {
            let Some(body) = forked_body(graph, *node) else {
                continue;
            };
            let revision = body.revision();
            let mut body = body.clone();
            inner.edit(&mut body, each);
            if body.revision() != revision {
                graph.set_attribute(*node, symbols::ATTR_SUBGRAPH, AttributeValue::Graph(Arc::new(body)));
            }
        }
    }
}

fn forked_body(graph: &Graph, node: NodeId) -> Option<&Graph> {
    if graph.kind(node) != symbols::PRIM_FORK {
        return None;
    }
    graph
        .attribute(node, symbols::ATTR_SUBGRAPH)?
        .as_graph()
        .map(Arc::as_ref)
}

/// An assignment or read of an attribute.
pub(super) struct Access {
    pub(super) node: NodeId,
    pub(super) object: ValueId,
    pub(super) name: SymbolId,
    pub(super) is_write: bool,
}

fn access(graph: &Graph, node: NodeId) -> Option<Access> {
    let is_write = match graph.kind(node) {
        symbols::PRIM_GET_ATTR => false,
        symbols::PRIM_SET_ATTR => true,
        _ => return None,
    };
    Some(Access {
        node,
        object: graph.operand(node, 0)?,
        name: graph.attribute_symbol(node, symbols::ATTR_NAME)?,
        is_write,
    })
}

/// Returns the result of `node` for identical operands, if `node` compares the identity of two operands.
fn is_identity_test(graph: &Graph, node: NodeId) -> Option<bool> {
    match graph.kind_name(node) {
        "aten::__is__" => Some(true),
        "aten::__isnot__" => Some(false),
        _ => None,
    }
}

/// Returns the attribute accesses of a graph, in order; accesses in forked graphs are not included.
pub(super) fn accesses(graph: &Graph) -> Vec<Access> {
    graph.all_nodes().into_iter().filter_map(|n| access(graph, n)).collect()
}

impl Attributes {
    pub(super) fn find(
        module: &Module,
        methods: &[PreservedMethod],
        kept: &Preserved,
        options: &Freeze,
        cx: &PassContext<'_>,
    ) -> Result<Attributes, PassError> {
        let assigned_names = assigned(module, methods)?;
        let objects: Vec<_> = methods
            .iter()
            .map(|m| Scope::of(module, &m.graph, &[Some(m.receiver)], &assigned_names))
            .collect();
        let mut assigned: HashSet<(ObjectId, SymbolId)> = HashSet::new();
        let mut whole: HashSet<ObjectId> = kept.whole.clone();
        // Their attributes are unknown before they are restored.
        whole.extend(module.states().map(|(id, _)| id));
        for (method, scope) in methods.iter().zip(&objects) {
            scope.visit(&method.graph, &mut |graph, known| {
                for access in accesses(graph).iter().filter(|a| a.is_write) {
                    match known.get(&access.object) {
                        Some(object) => {
                            assigned.insert((*object, access.name));
                        }
                        // An unknown instance: any of its class.
                        None => {
                            if let TypeKind::Class(class) = graph.ctx().type_kind(graph.ty(access.object)) {
                                let same = module.objects().filter(|(_, o)| o.class == class);
                                assigned.extend(same.map(|(id, _)| (id, access.name)));
                            }
                        }
                    }
                }
                for (value, object) in known {
                    let as_value = graph.uses(*value).any(|u| match graph.kind(u.user) {
                        symbols::PRIM_GET_ATTR | symbols::PRIM_SET_ATTR => u.index != 0,
                        // The identity of the object does not depend on its attributes.
                        _ if is_identity_test(graph, u.user).is_some() => false,
                        _ => forked_body(graph, u.user).is_none(),
                    });
                    if as_value {
                        if *object == module.root && graph.outputs().any(|o| o == *value) {
                            return Err(FreezeError::ReturnsItself);
                        }
                        whole.insert(*object);
                    }
                }
                Ok(())
            })?;
        }
        close_over_attributes(module, &mut whole);
        let dbs = alias_dbs(module, methods, cx.operators().catalogue());
        let mut round = Attributes {
            forked: fork_arguments(methods, &objects),
            objects,
            whole,
            foldable: HashMap::new(),
            paths: paths(module),
        };
        round.find_foldable(module, kept, options, &assigned, &dbs);
        overlaps::check(module, methods, &round, &dbs, cx.operators().catalogue())?;
        Ok(round)
    }

    fn find_foldable(
        &mut self,
        module: &Module,
        kept: &Preserved,
        options: &Freeze,
        assigned: &HashSet<(ObjectId, SymbolId)>,
        dbs: &[AliasDb],
    ) {
        let mut exposed = HashSet::new();
        for object in &self.whole {
            module
                .object(*object)
                .slots
                .iter()
                .for_each(|c| identities(c, &mut exposed));
        }
        // A write through the replacement, in another method or in the next call, may change the assigned value.
        let mut folder = Folder::default();
        let training = is_training(module);
        for (id, object) in module.objects() {
            let Some(class) = module
                .class_of(id)
                .filter(|_| !self.whole.contains(&id) && self.paths.contains_key(&id))
            else {
                continue;
            };
            for ((name, attribute), value) in class.attributes.iter().zip(&object.slots) {
                let key = (id, *name);
                let is_tensor = module.ctx().is_tensor(attribute.ty) || attribute.kind == AttributeKind::Parameter;
                if assigned.contains(&key)
                    || self.forked.contains(&key)
                    || kept.attributes.contains(&key)
                    || ((options.preserve_parameters || training) && is_tensor)
                    || (training && *name == symbols::TRAINING)
                {
                    continue;
                }
                let mut own = HashSet::new();
                identities(value, &mut own);
                let changes = dbs
                    .iter()
                    .any(|db| db.writes_to_constant(value) || db.has_escaped(value));
                if changes || !own.is_disjoint(&exposed) {
                    continue;
                }
                let constant = match value {
                    // An object is a constant as a whole. If only its attributes are read, these are folded.
                    Constant::Object(inner) => (self.whole.contains(inner)
                        && is_constant_object(module, *inner, assigned, dbs))
                    .then(|| value.clone()),
                    _ => folder.constant(value),
                };
                if let Some(constant) = constant {
                    self.foldable.insert(key, constant);
                }
            }
        }
    }

    /// Replaces reads of attributes that never change, and identity tests of known objects, by constants, while rewrites remain under the limit.
    pub(super) fn fold(&self, module: &Module, methods: &mut [PreservedMethod], cx: &mut PassContext<'_>) {
        let ctx = module.ctx();
        for (method, scope) in methods.iter_mut().zip(&self.objects) {
            scope.edit(&mut method.graph, &mut |graph, known| {
                for access in accesses(graph) {
                    let Some(object) = known.get(&access.object).filter(|_| !access.is_write) else {
                        continue;
                    };
                    let (Some(constant), Some(output)) =
                        (self.foldable.get(&(*object, access.name)), graph.output(access.node))
                    else {
                        continue;
                    };
                    if !cx.rewrite("attributes folded") {
                        return;
                    }
                    let new = insert_constant(graph, access.node, constant.clone(), graph.ty(output));
                    if let Some(path) = self.paths.get(object) {
                        graph.name_value(new, &format!("{path}.{}", ctx.name(access.name)));
                    }
                    graph.replace_all_uses_with(output, new);
                    graph.erase(access.node);
                }
                fold_identity_tests(graph, known, cx);
            });
        }
    }
}

/// Folds comparisons (`is`) of known objects, while rewrites remain under the limit.
fn fold_identity_tests(graph: &mut Graph, known: &Known, cx: &mut PassContext<'_>) {
    for node in graph.all_nodes() {
        let object = |i: usize| graph.operand(node, i).and_then(|v| known.get(&v));
        let (Some(one), Some(other)) = (object(0), object(1)) else {
            continue;
        };
        let (Some(when_one), Some(output)) = (is_identity_test(graph, node), graph.output(node)) else {
            continue;
        };
        let answer = Constant::Bool((one == other) == when_one);
        if !cx.rewrite("identity tests folded") {
            return;
        }
        let new = insert_constant(graph, node, answer, types::BOOL);
        graph.replace_all_uses_with(output, new);
        graph.erase(node);
    }
}

/// Returns whether an object of a class other than a module, and everything reachable from it, never changes.
fn is_constant_object(
    module: &Module,
    object: ObjectId,
    assigned: &HashSet<(ObjectId, SymbolId)>,
    dbs: &[AliasDb],
) -> bool {
    let mut reached = HashSet::from([object]);
    close_over_attributes(module, &mut reached);
    reached.iter().all(|id| {
        let is_plain = module.class_of(*id).is_some_and(|class| {
            class.kind == ClassKind::Class && !class.attributes.keys().any(|name| assigned.contains(&(*id, *name)))
        });
        let unwritten = |value: &Constant| {
            !dbs.iter()
                .any(|db| db.writes_to_constant(value) || db.has_escaped(value))
        };
        is_plain && module.state(*id).is_none() && module.object(*id).slots.iter().all(unwritten)
    })
}

/// Returns the alias analysis of each method's graph, in which the module's objects are distinguished.
pub(super) fn alias_dbs(module: &Module, methods: &[PreservedMethod], catalogue: &Catalogue) -> Vec<AliasDb> {
    let methods: Vec<(&Graph, ObjectId)> = methods.iter().map(|m| (&m.graph, m.receiver)).collect();
    AliasDb::of_methods(&methods, catalogue, module)
}

fn fork_arguments(methods: &[PreservedMethod], objects: &[Scope]) -> HashSet<(ObjectId, SymbolId)> {
    let mut found = HashSet::new();
    for (method, scope) in methods.iter().zip(objects) {
        let _: Result<(), Infallible> = scope.visit(&method.graph, &mut |graph, known| {
            for access in accesses(graph).iter().filter(|a| !a.is_write) {
                let forks = |v: ValueId| graph.uses(v).any(|u| graph.kind(u.user) == symbols::PRIM_FORK);
                if let (Some(object), true) = (known.get(&access.object), graph.output(access.node).is_some_and(forks))
                {
                    found.insert((*object, access.name));
                }
            }
            Ok(())
        });
    }
    found
}

/// Checks that no assigned attribute is declared as an interface.
///
/// # Errors
/// If there is one: its class is unknown before the module runs.
fn refuse_assigned_interfaces(module: &Module, assigned: &HashSet<(SymbolId, SymbolId)>) -> Result<(), FreezeError> {
    let is_interface = |(class, name): &(SymbolId, SymbolId)| {
        let attribute = module.unit.class(*class).and_then(|c| c.attributes.get(name));
        attribute.is_some_and(|a| matches!(module.ctx().type_kind(a.ty), TypeKind::Interface(_)))
    };
    match assigned.iter().filter(|key| is_interface(key)).min() {
        Some((_, name)) => Err(FreezeError::SetAttrOnInterface(module.ctx().name(*name).to_owned())),
        None => Ok(()),
    }
}

/// Returns the names of attributes that some graph assigns, with the class name of the receiver's static type.
fn assigned(module: &Module, methods: &[PreservedMethod]) -> Result<HashSet<(SymbolId, SymbolId)>, FreezeError> {
    let mut names = HashSet::new();
    for graph in methods.iter().flat_map(|m| subgraphs_and_self(&m.graph)) {
        for access in accesses(graph).iter().filter(|a| a.is_write) {
            match module.ctx().type_kind(graph.ty(access.object)) {
                TypeKind::Class(class) => {
                    names.insert((class, access.name));
                }
                TypeKind::Interface(_) => {
                    let name = module.ctx().name(access.name).to_owned();
                    return Err(FreezeError::SetAttrOnInterface(name));
                }
                _ => {}
            }
        }
    }
    Ok(names)
}

/// Adds to `whole` all objects that are reachable from its objects.
fn close_over_attributes(module: &Module, whole: &mut HashSet<ObjectId>) {
    let mut work: Vec<ObjectId> = whole.iter().copied().collect();
    while let Some(object) = work.pop() {
        for value in &module.object(object).slots {
            value.visit_objects(&mut |inner| {
                if whole.insert(inner) {
                    work.push(inner);
                }
            });
        }
    }
}

fn paths(module: &Module) -> HashMap<ObjectId, String> {
    let mut paths = HashMap::from([(module.root, "self".to_owned())]);
    let mut work = std::collections::VecDeque::from([module.root]);
    while let Some(object) = work.pop_front() {
        let Some(class) = module.class_of(object) else { continue };
        let base = paths.get(&object).cloned().unwrap_or_default();
        for (name, value) in class.attributes.keys().zip(&module.object(object).slots) {
            if let Constant::Object(inner) = value
                && !paths.contains_key(inner)
            {
                paths.insert(*inner, format!("{base}.{}", module.ctx().name(*name)));
                work.push_back(*inner);
            }
        }
    }
    paths
}

/// Sets the types of receivers whose type is an interface to their class, if they are known objects, and inlines the calls with callees that become known.
/// Returns true if something changed.
pub(super) fn resolve_interfaces(
    module: &Module,
    methods: &mut [PreservedMethod],
    cx: &PassContext<'_>,
) -> Result<bool, PassError> {
    let names = assigned(module, methods)?;
    refuse_assigned_interfaces(module, &names)?;
    let mut inlined = 0;
    for method in methods.iter_mut() {
        let scope = Scope::of(module, &method.graph, &[Some(method.receiver)], &names);
        scope.edit(&mut method.graph, &mut |graph, known| {
            for (value, object) in known {
                if matches!(graph.ctx().type_kind(graph.ty(*value)), TypeKind::Interface(_)) {
                    let class = graph.ctx().type_of_kind(TypeKind::Class(module.object(*object).class));
                    graph.set_type(*value, class);
                }
            }
        });
        let name = module.ctx().name(module.unit.function(method.function).name).to_owned();
        // Inlined callees may contain calls: one iteration for each level.
        inlined += inline::inline_graph(
            &module.unit,
            &name,
            &mut method.graph,
            &mut PassContext::new(cx.operators()),
        )?;
    }
    Ok(inlined > 0)
}
