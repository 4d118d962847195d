//! What freezing is asked to keep.

use super::FreezeError;
use frazil_ir::{Constant, FunctionId, Module, ObjectId, SymbolId, symbols};
use std::collections::HashSet;

/// What stays whatever the methods do.
#[derive(Default)]
pub(super) struct Preserved {
    /// Methods, each with the object that it is called on. Their bodies are frozen.
    pub(super) methods: Vec<(ObjectId, FunctionId)>,
    /// Attributes, by object.
    pub(super) attributes: HashSet<(ObjectId, SymbolId)>,
    /// Objects that are kept with everything.
    pub(super) whole: HashSet<ObjectId>,
}

/// What a preserved name stands for.
enum Member {
    Attribute,
    Object(ObjectId),
    Method(ObjectId, FunctionId),
}

impl Preserved {
    /// `forward`, if there is one, and what `names` stand for: attributes, submodules and methods, with dots for those of submodules. When that comes
    /// to no method of the module itself, all of its methods.
    ///
    /// # Errors
    /// A name that stands for nothing.
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
            // Nobody said what the module is for, so that any of its methods may be called.
            let all = root.iter().flat_map(|c| c.methods.values());
            all.for_each(|id| kept.add_method(module.root, *id));
        }
        // Whoever calls a module calls its hooks around `forward`.
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

/// The method `forward` of an object.
fn forward_of(module: &Module, object: ObjectId) -> Option<FunctionId> {
    module.class_of(object)?.methods.get(&symbols::FORWARD).copied()
}

/// The hooks of an object, which its class names.
fn hooks_of(module: &Module, object: ObjectId) -> Vec<FunctionId> {
    let class = module.class_of(object).into_iter();
    class
        .flat_map(|c| {
            let names = c.forward_pre_hooks.iter().chain(&c.forward_hooks);
            names.filter_map(|name| c.methods.get(name).copied())
        })
        .collect()
}

/// The methods of a frozen module: those of the module itself, and those that `names` keep of submodules.
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

/// What the dotted `path` stands for, and the attributes on the way, with it if it is one.
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
    // Splitting gives at least one part, and the last one returns.
    Ok((steps, Member::Object(object)))
}

fn names_of(module: &Module, object: ObjectId) -> Vec<String> {
    let ctx = module.ctx();
    let class = module.class_of(object);
    let attributes = class.iter().flat_map(|c| c.attributes.keys());
    let methods = class.iter().flat_map(|c| c.methods.keys());
    attributes.chain(methods).map(|n| ctx.name(*n).to_owned()).collect()
}
