//! Lookup of the names that freezing preserves.

use super::FreezeError;
use frazil_ir::{Constant, FunctionId, Module, ObjectId, SymbolId, symbols};
use std::collections::HashSet;

/// Members that are preserved whether or not a method uses them.
#[derive(Default)]
pub(super) struct Preserved {
    /// Preserved methods, each with the object on which it is called. Their bodies are frozen.
    pub(super) methods: Vec<(ObjectId, FunctionId)>,
    /// Preserved attributes, each with its object.
    pub(super) attributes: HashSet<(ObjectId, SymbolId)>,
    /// Objects that are preserved with all their attributes.
    pub(super) whole: HashSet<ObjectId>,
}

/// The member that a preserved name denotes.
enum Member {
    Attribute,
    Object(ObjectId),
    Method(ObjectId, FunctionId),
}

impl Preserved {
    /// Finds `forward`, if there is one, and the members called `names`: attributes, submodules and methods, with dotted paths for members of submodules. If
    /// no method of the module itself is among them, all of its methods are preserved.
    ///
    /// # Errors
    /// If a name has no member.
    pub(super) fn find(module: &Module, names: &[String]) -> Result<Preserved, FreezeError> {
        let mut kept = Preserved::default();
        let forward = module.method(symbols::FORWARD);
        kept.methods.extend(forward.map(|id| (module.root, id)));
        for name in names {
            let (steps, member) = member(module, name)?;
            kept.attributes.extend(steps);
            match member {
                Member::Attribute => {}
                Member::Object(object) => {
                    kept.whole.insert(object);
                }
                Member::Method(object, method) => kept.add_method(object, method),
            }
        }
        let root = module.class_of(module.root);
        if kept.methods.iter().all(|(receiver, _)| *receiver != module.root) {
            // No method was named, so any of them may be called.
            let all = root.iter().flat_map(|c| c.methods.values());
            all.for_each(|id| kept.add_method(module.root, *id));
        }
        // Calling a module runs its hooks around `forward`.
        let receivers: Vec<ObjectId> = kept
            .methods
            .iter()
            .filter(|(object, method)| *object == module.root || forward_of(module, *object) == Some(*method))
            .map(|(object, _)| *object)
            .collect();
        for object in receivers {
            for id in hooks_of(module, object) {
                kept.add_method(object, id);
            }
        }
        Ok(kept)
    }

    fn add_method(&mut self, receiver: ObjectId, method: FunctionId) {
        if !self.methods.contains(&(receiver, method)) {
            self.methods.push((receiver, method));
        }
    }
}

/// Returns the method `forward` of an object.
fn forward_of(module: &Module, object: ObjectId) -> Option<FunctionId> {
    module.class_of(object)?.methods.get(&symbols::FORWARD).copied()
}

/// Returns the hooks of `forward` that the class of `object` defines.
fn hooks_of(module: &Module, object: ObjectId) -> Vec<FunctionId> {
    let class = module.class_of(object).into_iter();
    class
        .flat_map(|c| {
            let names = c.forward_pre_hooks.iter().chain(&c.forward_hooks);
            names.filter_map(|name| c.methods.get(name).copied())
        })
        .collect()
}

/// Returns the methods of a frozen module: the methods of the module itself, and the methods of submodules that `names` preserve.
pub(super) fn frozen_methods(module: &Module, names: &[String]) -> Vec<FunctionId> {
    let root = module.class_of(module.root);
    let mut methods: Vec<FunctionId> = root.iter().flat_map(|c| c.methods.values().copied()).collect();
    for name in names {
        let Ok((_, Member::Method(object, method))) = member(module, name) else {
            continue;
        };
        let hooks = match forward_of(module, object) == Some(method) {
            true => hooks_of(module, object),
            false => Vec::new(),
        };
        for method in std::iter::once(method).chain(hooks) {
            if !methods.contains(&method) {
                methods.push(method);
            }
        }
    }
    methods
}

/// Returns the member at the dotted `path`, and the attributes along the path. If the member is an attribute, it is one of them.
fn member(module: &Module, path: &str) -> Result<(Vec<(ObjectId, SymbolId)>, Member), FreezeError> {
    let ctx = module.ctx();
    let mut object = module.root;
    let mut steps = Vec::new();
    let mut parts = path.split('.').peekable();
    while let Some(part) = parts.next() {
        let is_last = parts.peek().is_none();
        let unknown = || FreezeError::UnknownName {
            name: path.to_owned(),
            known: names_of(module, object),
        };
        let name = ctx.find_symbol(part).ok_or_else(unknown)?;
        match module.attribute(object, name) {
            Some(Constant::Object(inner)) => {
                steps.push((object, name));
                if is_last {
                    return Ok((steps, Member::Object(*inner)));
                }
                object = *inner;
            }
            Some(_) if is_last => {
                steps.push((object, name));
                return Ok((steps, Member::Attribute));
            }
            None if is_last => {
                let method = module.class_of(object).and_then(|c| c.methods.get(&name));
                let method = *method.ok_or_else(unknown)?;
                return Ok((steps, Member::Method(object, method)));
            }
            _ => return Err(unknown()),
        }
    }
    // Splitting yields at least one part, and the last one returns.
    Ok((steps, Member::Object(object)))
}

fn names_of(module: &Module, object: ObjectId) -> Vec<String> {
    let ctx = module.ctx();
    let class = module.class_of(object);
    let attributes = class.iter().flat_map(|c| c.attributes.keys());
    let methods = class.iter().flat_map(|c| c.methods.keys());
    attributes.chain(methods).map(|n| ctx.name(*n).to_owned()).collect()
}
