//! The objects and attributes that remain after freezing, and the classes of these objects.
//!
//! As in PyTorch, instances of one class still share a class, and so have the same attributes. If one of them needs an attribute or is kept whole, the same
//! holds for all remaining ones.
//!
//! Separate classes exist for the module itself, for objects with preserved methods (because their bodies are frozen for that object), and for instances that
//! contain objects of different classes with one interface type.

use frazil_ir::{ClassDef, Constant, Module, ObjectId, SymbolId, TypeKind, mangled_name};
use indexmap::{IndexMap, IndexSet};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Index of a group of objects that have one class, both before and after freezing.
pub(super) type Group = usize;

/// The part of the module that remains after freezing.
pub(super) struct Left<'m> {
    module: &'m Module,
    groups: HashMap<ObjectId, Group>,
    objects: IndexSet<ObjectId>,
    members: HashMap<Group, Vec<ObjectId>>,
    needed: HashMap<Group, IndexSet<SymbolId>>,
    whole: HashSet<Group>,
    work: Vec<Step>,
}

/// A remaining member that is still to be processed.
enum Step {
    Object(ObjectId),
    Whole(ObjectId),
    Attribute(Group, SymbolId),
}

impl<'m> Left<'m> {
    /// Returns a set that contains only the root. `apart` are the objects that do not share their class with other objects.
    pub(super) fn new(module: &'m Module, apart: &BTreeSet<ObjectId>) -> Left<'m> {
        let mut left = Left {
            module,
            groups: groups(module, apart),
            objects: IndexSet::new(),
            members: HashMap::new(),
            needed: HashMap::new(),
            whole: HashSet::new(),
            work: vec![Step::Object(module.root)],
        };
        left.settle();
        left
    }

    /// Records that attribute `name` of `object` remains.
    pub(super) fn need(&mut self, object: ObjectId, name: SymbolId) {
        let group = self.group(object);
        self.work.extend([Step::Object(object), Step::Attribute(group, name)]);
        self.settle();
    }

    /// Records that `object` remains with all its attributes.
    pub(super) fn keep_whole(&mut self, object: ObjectId) {
        self.work.push(Step::Whole(object));
        self.settle();
    }

    /// Returns whether a remaining object keeps all its attributes.
    pub(super) fn is_whole(&self, object: ObjectId) -> bool {
        self.whole.contains(&self.group(object))
    }

    /// Returns whether a remaining object keeps the attribute `name`.
    pub(super) fn keeps(&self, object: ObjectId, name: SymbolId) -> bool {
        let group = self.group(object);
        self.whole.contains(&group) || self.needed.get(&group).is_some_and(|n| n.contains(&name))
    }

    fn group(&self, object: ObjectId) -> Group {
        self.groups.get(&object).copied().unwrap_or(Group::MAX)
    }

    fn settle(&mut self) {
        while let Some(step) = self.work.pop() {
            match step {
                Step::Object(object) => {
                    if !self.objects.insert(object) {
                        continue;
                    }
                    let group = self.group(object);
                    self.members.entry(group).or_default().push(object);
                    if self.whole.contains(&group) {
                        self.take_all(object);
                    }
                    for name in self
                        .needed
                        .get(&group)
                        .into_iter()
                        .flatten()
                        .copied()
                        .collect::<Vec<_>>()
                    {
                        self.take(object, name);
                    }
                }
                Step::Whole(object) => {
                    self.work.push(Step::Object(object));
                    let group = self.group(object);
                    if self.whole.insert(group) {
                        for member in self.members.get(&group).cloned().unwrap_or_default() {
                            self.take_all(member);
                        }
                    }
                }
                Step::Attribute(group, name) => {
                    if self.needed.entry(group).or_default().insert(name) {
                        for member in self.members.get(&group).cloned().unwrap_or_default() {
                            self.take(member, name);
                        }
                    }
                }
            }
        }
    }

    fn take_all(&mut self, object: ObjectId) {
        for value in &self.module.object(object).slots {
            value.visit_objects(&mut |inner| self.work.push(Step::Whole(inner)));
        }
    }

    fn take(&mut self, object: ObjectId, name: SymbolId) {
        match self.module.attribute(object, name) {
            Some(Constant::Object(inner)) => self.work.push(Step::Object(*inner)),
            // Elements of a container keep the class in the container's type.
            Some(value) => value.visit_objects(&mut |inner| self.work.push(Step::Whole(inner))),
            None => {}
        }
    }

    /// Creates new classes for objects that lose attributes or methods, and for those that contain such objects, because their attributes' types change.
    /// `methods` contains the number of preserved methods of each object.
    pub(super) fn new_classes(&self, methods: &HashMap<ObjectId, usize>, freeze_interfaces: bool) -> NewClasses {
        let mut candidates: Vec<(Group, ObjectId, &ClassDef)> = self
            .members
            .iter()
            .filter(|(group, _)| !self.whole.contains(*group))
            .filter_map(|(group, members)| {
                let first = *members.iter().min()?;
                Some((*group, first, self.module.class_of(first)?))
            })
            .collect();
        candidates.sort_unstable_by_key(|(_, object, _)| *object);
        let mut sharing: HashMap<SymbolId, usize> = HashMap::new();
        for group in self.members.values() {
            *sharing.entry(self.module.object(group[0]).class).or_default() += 1;
        }
        let is_interface = |attribute| matches!(self.module.ctx().type_kind(attribute), TypeKind::Interface(_));
        let changes = |object: ObjectId, class: &ClassDef| {
            class.methods.len() != methods.get(&object).copied().unwrap_or(0)
                || sharing.get(&class.name).is_some_and(|n| *n > 1)
                || class
                    .attributes
                    .iter()
                    .any(|(name, a)| !self.keeps(object, *name) || (freeze_interfaces && is_interface(a.ty)))
        };
        let mut taken: IndexSet<SymbolId> = self.module.unit.classes.keys().copied().collect();
        let mut names: HashMap<Group, SymbolId> = HashMap::new();
        loop {
            let before = names.len();
            for &(group, object, class) in &candidates {
                let mut held = false;
                for value in &self.module.object(object).slots {
                    value.visit_objects(&mut |inner| held |= names.contains_key(&self.group(inner)));
                }
                if !names.contains_key(&group) && (held || changes(object, class)) {
                    names.insert(group, mangled(self.module, class.name, &mut taken));
                }
            }
            if names.len() == before {
                break;
            }
        }
        let mut definitions = IndexMap::new();
        for (group, object, class) in candidates {
            let Some(&name) = names.get(&group) else { continue };
            let mut new = ClassDef::new(name, class.kind);
            for (name, attribute) in class.attributes.iter().filter(|(n, _)| self.keeps(object, **n)) {
                let mut attribute = attribute.clone();
                if let Some(Constant::Object(inner)) = self.module.attribute(object, *name) {
                    let resolved = freeze_interfaces && is_interface(attribute.ty);
                    let class = match names.get(&self.group(*inner)) {
                        Some(new) => Some(*new),
                        None => resolved.then(|| self.module.object(*inner).class),
                    };
                    if let Some(class) = class {
                        attribute.ty = self.module.ctx().type_of_kind(TypeKind::Class(class));
                    }
                }
                new.attributes.insert(*name, attribute);
            }
            new.constants = class.constants.clone();
            if object == self.module.root || methods.contains_key(&object) {
                // Hooks of other submodules have been inlined into the methods that call them.
                new.forward_pre_hooks = class.forward_pre_hooks.clone();
                new.forward_hooks = class.forward_hooks.clone();
            }
            definitions.insert(name, new);
        }
        let of_object = |object: &ObjectId| Some((*object, *names.get(&self.group(*object))?));
        NewClasses {
            names: self.objects.iter().filter_map(of_object).collect(),
            definitions,
        }
    }
}

/// The new classes of objects from which attributes have been removed.
pub(super) struct NewClasses {
    /// The name of each object's new class. Objects that are missing here keep their class.
    pub(super) names: HashMap<ObjectId, SymbolId>,
    /// The definitions of the new classes, without methods.
    pub(super) definitions: IndexMap<SymbolId, ClassDef>,
}

/// Returns the groups of objects by class, split until all members of a group contain members of the same groups in the
/// same attributes.
fn groups(module: &Module, apart: &BTreeSet<ObjectId>) -> HashMap<ObjectId, Group> {
    let mut keys: HashMap<(SymbolId, Option<ObjectId>), Group> = HashMap::new();
    let mut groups: HashMap<ObjectId, Group> = HashMap::new();
    for (id, object) in module.objects() {
        let next = keys.len();
        let key = (object.class, apart.get(&id).copied());
        groups.insert(id, *keys.entry(key).or_insert(next));
    }
    let mut count = keys.len();
    loop {
        let mut keys: HashMap<(Group, Vec<Option<Group>>), Group> = HashMap::new();
        let mut finer: HashMap<ObjectId, Group> = HashMap::new();
        for (id, object) in module.objects() {
            let held = object.slots.iter().map(|value| match value {
                Constant::Object(inner) => groups.get(inner).copied(),
                _ => None,
            });
            let next = keys.len();
            let key = (groups.get(&id).copied().unwrap_or(Group::MAX), held.collect());
            finer.insert(id, *keys.entry(key).or_insert(next));
        }
        if keys.len() == count {
            return groups;
        }
        count = keys.len();
        groups = finer;
    }
}

fn mangled(module: &Module, name: SymbolId, taken: &mut IndexSet<SymbolId>) -> SymbolId {
    let name = mangled_name(module.ctx(), name, |name| !taken.contains(&name));
    taken.insert(name);
    name
}
