//! Which attributes may change, and folding the others.

use super::{Freeze, FreezeError, Preserved, overlaps};
use crate::AliasDb;
use crate::inline;
use crate::manager::{PassContext, PassError};
use crate::support::constants::{detached, insert_constant};
use crate::support::subgraphs_and_self;
use frazil_ir::schema::Catalogue;
use frazil_ir::{
    AttributeKind, AttributeValue, Constant, DictConstant, FunctionId, Graph, ListConstant, Module, NodeId, ObjectId,
    SymbolId, TensorData, TupleConstant, TypeKind, ValueId, symbols,
};
use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::sync::Arc;

/// What is known of the module's attributes in one round.
pub(super) struct Attributes {
    /// For each graph, the objects that its values are.
    pub(super) objects: Vec<Scope>,
    /// Objects that are used as values: kept with all that they have and reach.
    pub(super) whole: HashSet<ObjectId>,
    /// Attributes that are handed to forks: as in PyTorch, where an archive in which all that a fork is given is constant cannot be loaded.
    pub(super) forked: HashSet<(ObjectId, SymbolId)>,
    /// Attributes that a `prim::GetAttr` may be folded of, as constants.
    foldable: HashMap<(ObjectId, SymbolId), Constant>,
    /// Where an object is found first from the root: `self.layer1.0`.
    pub(super) paths: HashMap<ObjectId, String>,
}

/// Which object a value is.
pub(super) type Known = HashMap<ValueId, ObjectId>;

/// The objects that values of a graph are, and those of the graphs that it forks.
#[derive(Default)]
pub(super) struct Scope {
    /// What is known of the graph's own values.
    pub(super) known: Known,
    /// Bodies of forks, by node.
    forked: Vec<(NodeId, Scope)>,
}

impl Scope {
    /// Values that are known objects: those inputs that are given as such, and what is read from known objects' attributes that nobody assigns.
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

    /// Calls `each` with the graph and with every graph that it forks.
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

    /// Edits the graph and every graph that it forks.
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

/// An attribute assignment or read.
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

/// The attribute accesses of a graph, in its order; those of forked graphs are not among them.
pub(super) fn accesses(graph: &Graph) -> Vec<Access> {
    graph.all_nodes().into_iter().filter_map(|n| access(graph, n)).collect()
}

impl Attributes {
    pub(super) fn find(
        module: &Module,
        graphs: &[(FunctionId, Graph)],
        kept: &Preserved,
        options: &Freeze,
        cx: &PassContext<'_>,
    ) -> Result<Attributes, PassError> {
        let assigned_names = assigned(module, graphs)?;
        let objects: Vec<_> = graphs
            .iter()
            .map(|(_, g)| Scope::of(module, g, &[Some(module.root)], &assigned_names))
            .collect();
        let mut assigned: HashSet<(ObjectId, SymbolId)> = HashSet::new();
        let mut whole: HashSet<ObjectId> = kept.whole.clone();
        for ((_, graph), scope) in graphs.iter().zip(&objects) {
            scope.visit(graph, &mut |graph, known| {
                for access in accesses(graph).iter().filter(|a| a.is_write) {
                    match known.get(&access.object) {
                        Some(object) => {
                            assigned.insert((*object, access.name));
                        }
                        // An instance that is not known: any of its class.
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
        let dbs = alias_dbs(module, graphs, cx.operators.catalogue());
        let mut round = Attributes {
            forked: fork_arguments(graphs, &objects),
            objects,
            whole,
            foldable: HashMap::new(),
            paths: paths(module),
        };
        round.find_foldable(module, kept, options, &assigned, &dbs);
        overlaps::check(module, graphs, &round, &dbs, cx.operators.catalogue())?;
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
        // What is assigned may be changed through what replaces it, in another method or the next call.
        let mut folder = Folder::default();
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
                    || (options.preserve_parameters && is_tensor)
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
                if let Some(constant) = folder.constant(value) {
                    self.foldable.insert(key, constant);
                }
            }
        }
    }

    /// Replaces reads of attributes that never change by constants. Gives how many.
    pub(super) fn fold(&self, module: &Module, graphs: &mut [(FunctionId, Graph)]) -> usize {
        let ctx = module.ctx();
        let mut folded = 0;
        for ((_, graph), scope) in graphs.iter_mut().zip(&self.objects) {
            scope.edit(graph, &mut |graph, known| {
                for access in accesses(graph) {
                    let Some(object) = known.get(&access.object).filter(|_| !access.is_write) else {
                        continue;
                    };
                    let (Some(constant), Some(output)) =
                        (self.foldable.get(&(*object, access.name)), graph.output(access.node))
                    else {
                        continue;
                    };
                    let new = insert_constant(graph, access.node, constant.clone(), graph.ty(output));
                    if let Some(path) = self.paths.get(object) {
                        graph.name_value(new, &format!("{path}.{}", ctx.name(access.name)));
                    }
                    graph.replace_all_uses_with(output, new);
                    graph.erase(access.node);
                    folded += 1;
                }
            });
        }
        folded
    }
}

/// The alias information of each graph, over the module's own objects.
pub(super) fn alias_dbs(module: &Module, graphs: &[(FunctionId, Graph)], catalogue: &Catalogue) -> Vec<AliasDb> {
    let graphs: Vec<&Graph> = graphs.iter().map(|(_, g)| g).collect();
    AliasDb::of_methods(&graphs, catalogue, module, module.root)
}

fn fork_arguments(graphs: &[(FunctionId, Graph)], objects: &[Scope]) -> HashSet<(ObjectId, SymbolId)> {
    let mut found = HashSet::new();
    for ((_, graph), scope) in graphs.iter().zip(objects) {
        let _: Result<(), Infallible> = scope.visit(graph, &mut |graph, known| {
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

/// # Errors
/// An attribute that is declared as an interface and assigned: which class it has is not known before the module runs.
fn refuse_assigned_interfaces(module: &Module, assigned: &HashSet<(SymbolId, SymbolId)>) -> Result<(), FreezeError> {
    let is_interface = |(class, name): &(SymbolId, SymbolId)| {
        let attribute = module.unit.class(*class).and_then(|c| c.attributes.get(name));
        attribute.is_some_and(|a| matches!(module.ctx().type_kind(a.ty), TypeKind::Interface(_)))
    };
    if assigned.iter().any(is_interface) {
        return Err(FreezeError::SetAttrOnInterface);
    }
    Ok(())
}

/// Names of attributes that some graph assigns, by class name of the receiver's static type.
fn assigned(module: &Module, graphs: &[(FunctionId, Graph)]) -> Result<HashSet<(SymbolId, SymbolId)>, FreezeError> {
    let mut names = HashSet::new();
    for graph in graphs.iter().flat_map(|(_, g)| subgraphs_and_self(g)) {
        for access in accesses(graph).iter().filter(|a| a.is_write) {
            match module.ctx().type_kind(graph.ty(access.object)) {
                TypeKind::Class(class) => {
                    names.insert((class, access.name));
                }
                TypeKind::Interface(_) => return Err(FreezeError::SetAttrOnInterface),
                _ => {}
            }
        }
    }
    Ok(names)
}

/// Adds the objects that those in `whole` reach.
fn close_over_attributes(module: &Module, whole: &mut HashSet<ObjectId>) {
    let mut work: Vec<ObjectId> = whole.iter().copied().collect();
    while let Some(object) = work.pop() {
        for value in &module.object(object).slots {
            objects_in(value, &mut |inner| {
                if whole.insert(inner) {
                    work.push(inner);
                }
            });
        }
    }
}

/// Calls `each` with every object that `value` is or holds.
pub(super) fn objects_in(value: &Constant, each: &mut dyn FnMut(ObjectId)) {
    match value {
        Constant::Object(id) => each(*id),
        Constant::List(_) | Constant::Tuple(_) => {
            value
                .items()
                .unwrap_or_default()
                .iter()
                .for_each(|c| objects_in(c, each));
        }
        Constant::Dict(d) => d.entries.iter().for_each(|(k, v)| {
            objects_in(k, each);
            objects_in(v, each);
        }),
        _ => {}
    }
}

/// Addresses of the storages and containers that `value` is or holds.
pub(super) fn identities(value: &Constant, out: &mut HashSet<usize>) {
    match value {
        Constant::Tensor(t) => {
            out.insert(Arc::as_ptr(&t.storage) as usize);
        }
        Constant::List(l) => {
            out.insert(Arc::as_ptr(l) as usize);
            l.items.iter().for_each(|c| identities(c, out));
        }
        Constant::Tuple(t) => t.items.iter().for_each(|c| identities(c, out)),
        Constant::Dict(d) => {
            out.insert(Arc::as_ptr(d) as usize);
            d.entries.iter().for_each(|(k, v)| {
                identities(k, out);
                identities(v, out);
            });
        }
        _ => {}
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

/// Makes constants of attributes: without `requires_grad`, what was one tensor or list being one afterwards.
#[derive(Default)]
struct Folder {
    tensors: HashMap<usize, Arc<TensorData>>,
    lists: HashMap<usize, Arc<ListConstant>>,
    dicts: HashMap<usize, Arc<DictConstant>>,
}

impl Folder {
    /// `None` for what holds objects.
    fn constant(&mut self, value: &Constant) -> Option<Constant> {
        Some(match value {
            Constant::Tensor(t) => {
                let new = self
                    .tensors
                    .entry(Arc::as_ptr(t) as usize)
                    .or_insert_with(|| detached(t));
                Constant::Tensor(new.clone())
            }
            Constant::List(l) => {
                if let Some(new) = self.lists.get(&(Arc::as_ptr(l) as usize)) {
                    return Some(Constant::List(new.clone()));
                }
                let items = l.items.iter().map(|c| self.constant(c)).collect::<Option<Vec<_>>>()?;
                let new = Arc::new(ListConstant {
                    element: l.element,
                    items,
                });
                self.lists.insert(Arc::as_ptr(l) as usize, new.clone());
                Constant::List(new)
            }
            Constant::Tuple(t) => {
                let items = t.items.iter().map(|c| self.constant(c)).collect::<Option<Vec<_>>>()?;
                Constant::Tuple(Arc::new(TupleConstant { ty: t.ty, items }))
            }
            Constant::Dict(d) => {
                if let Some(new) = self.dicts.get(&(Arc::as_ptr(d) as usize)) {
                    return Some(Constant::Dict(new.clone()));
                }
                let entry = |(k, v): &(Constant, Constant)| Some((self.constant(k)?, self.constant(v)?));
                let entries = d.entries.iter().map(entry).collect::<Option<Vec<_>>>()?;
                let new = Arc::new(DictConstant {
                    key: d.key,
                    value: d.value,
                    entries,
                });
                self.dicts.insert(Arc::as_ptr(d) as usize, new.clone());
                Constant::Dict(new)
            }
            Constant::Object(_) => return None,
            other => other.clone(),
        })
    }
}

/// Gives receivers that are known objects behind an interface their class, and inlines the calls that are thereby known. True when something changed.
pub(super) fn resolve_interfaces(module: &Module, graphs: &mut [(FunctionId, Graph)]) -> Result<bool, PassError> {
    let names = assigned(module, graphs)?;
    refuse_assigned_interfaces(module, &names)?;
    let mut inlined = 0;
    for (id, graph) in graphs.iter_mut() {
        let scope = Scope::of(module, graph, &[Some(module.root)], &names);
        scope.edit(graph, &mut |graph, known| {
            for (value, object) in known {
                if matches!(graph.ctx().type_kind(graph.ty(*value)), TypeKind::Interface(_)) {
                    let class = graph.ctx().type_of_kind(TypeKind::Class(module.object(*object).class));
                    graph.set_type(*value, class);
                }
            }
        });
        let name = module.ctx().name(module.unit.function(*id).name).to_owned();
        // Callees in the module are not inlined themselves: a turn for each level.
        inlined += inline::inline_graph(&module.unit, &name, graph)?;
    }
    Ok(inlined > 0)
}
