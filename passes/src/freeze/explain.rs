//! The reasons why attributes remain in a frozen module.

use super::attributes::{Attributes, Scope, accesses, alias_dbs};
use super::preserve::Preserved;
use super::values::{holds_no_constant, identities};
use super::{Freeze, PreservedMethod, methods_of};
use crate::AliasDb;
use crate::pass::PassContext;
use crate::support::operators::Operators;
use frazil_ir::{Constant, FunctionId, Graph, Module, NodeId, ObjectId, SymbolId, TypeKind, symbols};
use std::collections::HashSet;

/// The reason why freezing does not fold an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keeper {
    /// A node assigns the attribute.
    Assigned,
    /// A node writes to the attribute's value, to its contents, or to memory that the value shares.
    Written,
    /// A node with unknown effects receives the value of the attribute.
    Escapes,
    /// A node passes the attribute's value to a forked graph.
    Forked,
    /// The attribute belongs to an object that a node uses for anything but reading its attributes.
    UsedAsValue,
    /// The attribute belongs to an object that could not be restored from its state, because its `__setstate__` uses operators without semantics.
    Unrestored,
    /// The value is or contains a sparse tensor, which graphs cannot contain as a constant.
    NoConstant,
    /// The attribute shares memory with the attribute at this path, whose object is kept whole.
    Shared(String),
    /// The attribute was preserved by request, independently of the methods.
    Preserved,
}

/// An attribute that remains in a frozen module, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The path of the attribute, such as `self.layer1.count`.
    pub path: String,
    /// The reason why the attribute is not folded.
    pub keeper: Keeper,
    /// The node that prevents folding, with the method of the module that contains it.
    pub at: Option<(FunctionId, NodeId)>,
}

/// Returns, for each attribute of a frozen module except submodules, the reason why it still exists, in the order of the object tree. In a module that is not
/// frozen, calls of submodules use the submodules as values.
pub fn kept_attributes(module: &Module, operators: &dyn Operators) -> Vec<Kept> {
    let methods: Vec<PreservedMethod> = methods_of(module)
        .into_iter()
        .filter_map(|name| module.method(name))
        .map(|function| PreservedMethod {
            function,
            receiver: module.root,
            graph: module.unit.function(function).graph.clone(),
        })
        .collect();
    let cx = PassContext::new(operators);
    let Ok(attributes) = Attributes::find(module, &methods, &Preserved::default(), &Freeze::default(), &cx) else {
        return Vec::new();
    };
    let explanation = Explanation {
        module,
        dbs: alias_dbs(module, &methods, operators.catalogue()),
        methods: &methods,
        attributes: &attributes,
    };
    let mut kept = Vec::new();
    for (id, object) in module.objects() {
        let (Some(class), Some(path)) = (module.class_of(id), attributes.paths.get(&id)) else {
            continue;
        };
        for (name, value) in class.attributes.keys().zip(&object.slots) {
            if !matches!(value, Constant::Object(_)) {
                let (keeper, at) = explanation.of(id, *name, value);
                kept.push(Kept {
                    path: format!("{path}.{}", module.ctx().name(*name)),
                    keeper,
                    at,
                });
            }
        }
    }
    kept
}

type Place = Option<(FunctionId, NodeId)>;

struct Explanation<'a> {
    module: &'a Module,
    methods: &'a [PreservedMethod],
    attributes: &'a Attributes,
    dbs: Vec<AliasDb>,
}

impl Explanation<'_> {
    fn of(&self, object: ObjectId, name: SymbolId, value: &Constant) -> (Keeper, Place) {
        if let Some(at) = self.assigner(object, name) {
            return (Keeper::Assigned, Some(at));
        }
        let writer = self.find_node(|db, _, node| db.node_writes_to_constant(node, value));
        if writer.is_some() {
            return (Keeper::Written, writer);
        }
        if self.attributes.forked.contains(&(object, name)) {
            return (
                Keeper::Forked,
                self.find_node(|_, g, node| g.kind(node) == symbols::PRIM_FORK),
            );
        }
        if self.module.state(object).is_some() {
            return (Keeper::Unrestored, None);
        }
        if self.attributes.whole.contains(&object) {
            return (Keeper::UsedAsValue, self.user(object));
        }
        if self.dbs.iter().any(|db| db.has_escaped(value)) {
            return (
                Keeper::Escapes,
                self.find_node(|db, _, node| db.writes_to_wildcard(node)),
            );
        }
        match self.sharer(value) {
            Some(path) => (Keeper::Shared(path), None),
            None if holds_no_constant(value) => (Keeper::NoConstant, None),
            None => (Keeper::Preserved, None),
        }
    }

    /// Returns the first node for which `wanted` returns true. Nodes without blocks are preferred.
    fn find_node(&self, wanted: impl Fn(&AliasDb, &Graph, NodeId) -> bool) -> Place {
        let mut found = None;
        for (PreservedMethod { function, graph, .. }, db) in self.methods.iter().zip(&self.dbs) {
            for node in graph.all_nodes().into_iter().filter(|n| wanted(db, graph, *n)) {
                if graph.node_blocks(node).is_empty() {
                    return Some((*function, node));
                }
                found = found.or(Some((*function, node)));
            }
        }
        found
    }

    fn assigner(&self, object: ObjectId, name: SymbolId) -> Place {
        let class = self.module.object(object).class;
        for (PreservedMethod { function, graph, .. }, scope) in self.methods.iter().zip(&self.attributes.objects) {
            for access in accesses(graph).into_iter().filter(|a| a.is_write && a.name == name) {
                let may_be = match scope.known.get(&access.object) {
                    Some(known) => *known == object,
                    None => graph.ctx().type_kind(graph.ty(access.object)) == TypeKind::Class(class),
                };
                if may_be {
                    return Some((*function, access.node));
                }
            }
        }
        None
    }

    /// Returns a node that uses `object`, or an object that contains it, as a value.
    fn user(&self, object: ObjectId) -> Place {
        let users = |exactly: bool| {
            let pairs = self.methods.iter().zip(&self.attributes.objects);
            pairs.into_iter().find_map(
                |(PreservedMethod { function, graph, .. }, scope): (&PreservedMethod, &Scope)| {
                    let mut values: Vec<_> = scope.known.iter().filter(|(_, o)| !exactly || **o == object).collect();
                    values.sort_unstable();
                    values.into_iter().find_map(|(value, _)| {
                        let by_value = |u: &frazil_ir::Use| match graph.kind(u.user) {
                            symbols::PRIM_GET_ATTR | symbols::PRIM_SET_ATTR => u.index != 0,
                            _ => true,
                        };
                        graph.uses(*value).find(by_value).map(|u| (*function, u.user))
                    })
                },
            )
        };
        users(true).or_else(|| users(false))
    }

    /// Returns the path of an attribute of an object that is kept whole and shares memory with `value`.
    fn sharer(&self, value: &Constant) -> Option<String> {
        let mut own = HashSet::new();
        identities(value, &mut own);
        let mut whole: Vec<_> = self.attributes.whole.iter().collect();
        whole.sort_unstable();
        whole.into_iter().find_map(|object| {
            let (class, path) = (self.module.class_of(*object)?, self.attributes.paths.get(object)?);
            class
                .attributes
                .keys()
                .zip(&self.module.object(*object).slots)
                .find_map(|(name, other)| {
                    let mut theirs = HashSet::new();
                    identities(other, &mut theirs);
                    (!own.is_disjoint(&theirs)).then(|| format!("{path}.{}", self.module.ctx().name(*name)))
                })
        })
    }
}
