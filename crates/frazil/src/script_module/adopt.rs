//! Composition of modules: submodules from other models, and functions over all submodules.

use super::ScriptModule;
use super::instances::{give_own_class, settle_types_above};
use super::renaming::{Renaming, methods};
use crate::error::{Error, Result};
use crate::model::Model;
use frazil_ir::{
    AttributeKind, Constant, DictConstant, ListConstant, Module, Object, ObjectId, SymbolId, TupleConstant, TypeKind,
};
use indexmap::{IndexMap, IndexSet};
use std::sync::Arc;

impl Model {
    /// Adds `child` as a submodule of this module, or replaces the submodule of that name (`Module.add_module`).
    ///
    /// The child is a model or a part of one, and is copied. Its tensors are shared until one of the two is written. A part of an unchanged clone of this model
    /// is not copied: it becomes a submodule under a second name.
    ///
    /// Existing code does not call added submodules (a `Sequential` keeps its length at compile time); methods that are defined later may.
    ///
    /// ```
    /// # let session = frazil::Session::new();
    /// # let source = |name: &str| format!("class {name}(nn.Module):\n def __init__(self): super().__init__()\n def forward(self, x): return x\n");
    /// # let mut model = session.script("a.py".as_ref(), &source("Net"), &[])?.to_model("forward")?;
    /// # let head = session.script("b.py".as_ref(), &source("Head"), &[])?.to_model("forward")?;
    /// model.add_module("head", &head)?;
    /// assert_eq!(model.root().get_submodule("head")?.original_name(), "Head");
    /// assert!(model.add_module("head.of", &head).is_err()); // that is `set_submodule`
    /// let same = model.clone();
    /// model.add_module("other_head", same.root().get_submodule("head")?)?;
    /// assert_eq!(model.root().get_submodule("other_head")?.id(), model.root().get_submodule("head")?.id());
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the name is invalid or in use, if `child` belongs to another session or contains this module, or if code does not fit: it uses a member
    /// that `child` does not have, or passes on a module whose class changes.
    pub fn add_module<'c>(&mut self, name: &str, child: impl Into<ScriptModule<'c>>) -> Result<()> {
        self.root_mut().add_module(name, child)
    }

    /// Adds a submodule: PyTorch's alternative name of [`Model::add_module`].
    ///
    /// # Errors
    /// The errors of [`Model::add_module`].
    pub fn register_module<'c>(&mut self, name: &str, child: impl Into<ScriptModule<'c>>) -> Result<()> {
        self.add_module(name, child)
    }

    /// Adds a submodule at a dotted path (`Module.set_submodule`), as [`Model::add_module`] does.
    ///
    /// ```
    /// # let session = frazil::Session::new();
    /// # let source = |name: &str| format!("class {name}(nn.Module):\n def __init__(self): super().__init__()\n def forward(self, x): return x\n");
    /// # let mut model = session.script("a.py".as_ref(), &source("Net"), &[])?.to_model("forward")?;
    /// # let head = session.script("b.py".as_ref(), &source("Head"), &[])?.to_model("forward")?;
    /// # let last = session.script("c.py".as_ref(), &source("Last"), &[])?.to_model("forward")?;
    /// model.set_submodule("head", &head)?;
    /// model.set_submodule("head.last", &last)?;
    /// assert_eq!(model.root().get_submodule("head.last")?.original_name(), "Last");
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Model::add_module`]; also if a module on the path does not exist.
    pub fn set_submodule<'c>(&mut self, path: &str, child: impl Into<ScriptModule<'c>>) -> Result<()> {
        self.root_mut().set_submodule(path, child)
    }

    /// Replaces an existing submodule (`Module.set_submodule(..., strict=True)`), as [`Model::set_submodule`] does.
    ///
    /// ```
    /// # let session = frazil::Session::new();
    /// # let source = |name: &str| format!("class {name}(nn.Module):\n def __init__(self): super().__init__()\n def forward(self, x): return x\n");
    /// # let mut model = session.script("a.py".as_ref(), &source("Net"), &[])?.to_model("forward")?;
    /// # let head = session.script("b.py".as_ref(), &source("Head"), &[])?.to_model("forward")?;
    /// let error = model.replace_submodule("head", &head).err().map(|e| e.to_string());
    /// assert_eq!(error.as_deref(), Some("Net has no attribute `head`"));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Model::set_submodule`]; also if there is none.
    pub fn replace_submodule<'c>(&mut self, path: &str, child: impl Into<ScriptModule<'c>>) -> Result<()> {
        self.root_mut().replace_submodule(path, child)
    }

    /// Stores the module `child` in the attribute `name` of `owner`.
    pub(super) fn place(&mut self, owner: ObjectId, name: &str, child: ScriptModule<'_>) -> Result<()> {
        let ctx = Arc::clone(self.session().ctx());
        if !Arc::ptr_eq(&ctx, child.session.ctx()) {
            return Err(Error::Attribute(format!(
                "the module for `{name}` belongs to another session"
            )));
        }
        let before = self.clone();
        let mut module = Module::clone(self.module());
        let object = match Arc::ptr_eq(child.module, self.module()) {
            true if reached(&module, child.object).contains(&owner) => {
                return Err(Error::Unsupported(format!(
                    "the module for `{name}` would be a part of itself"
                )));
            }
            true => child.object,
            false => adopt(&mut module, child.module, child.object)?,
        };
        let old = match self.root().at(owner).slot(name) {
            Some((_, Constant::Object(old))) => Some(*old),
            Some(_) => return Err(Error::Attribute(format!("attribute '{name}' already exists"))),
            None => None,
        };
        if let Some(old) = old {
            replace(&mut module, owner, ctx.symbol(name), old, object)?;
            *self.module_mut() = module;
            return Ok(());
        }
        let ty = ctx.type_of_kind(TypeKind::Class(module.object(object).class));
        *self.module_mut() = module;
        let done = self.register_at(owner, name, AttributeKind::Plain, ty, Constant::Object(object));
        if done.is_err() {
            *self = before;
        }
        done
    }

    /// Calls `each` with the path of every submodule, inner ones before the modules that contain them, and "" for the root at the end (`Module.apply`). `each`
    /// may change the model; the paths are collected before the first call.
    ///
    /// ```
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Linear(2, 1)\n \
    /// # def forward(self, x): return self.fc(x)\n";
    /// # let mut model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// let mut seen = Vec::new();
    /// model.apply(|_model, path| {
    ///     seen.push(path.to_owned());
    ///     Ok(())
    /// })?;
    /// assert_eq!(seen, ["fc", ""]);
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first error of `each`, which ends the iteration.
    pub fn apply(&mut self, each: impl FnMut(&mut Model, &str) -> Result<()>) -> Result<()> {
        self.root_mut().apply(each)
    }
}

/// Replaces `old` by the object `new` in the attribute `name` of `owner`, whose code must fit.
fn replace(module: &mut Module, owner: ObjectId, name: SymbolId, old: ObjectId, new: ObjectId) -> Result<()> {
    let changes = module.object(new).class != module.object(old).class;
    if changes {
        let attribute = module.class_of(owner).and_then(|c| c.attributes.get(&name));
        if let Some(TypeKind::Interface(interface)) = attribute.map(|a| module.ctx().type_kind(a.ty)) {
            let asked = module
                .unit
                .class(interface)
                .into_iter()
                .flat_map(|c| c.signatures.keys());
            let has = |method| module.unit.method(module.object(new).class, method).is_some();
            if let Some(missing) = asked.copied().find(|method| !has(*method)) {
                return Err(Error::Attribute(format!(
                    "`{}` has to have the method `{}`",
                    module.ctx().name(name),
                    module.ctx().name(missing)
                )));
            }
        }
        give_own_class(module, owner)?;
    }
    module.set_attribute(owner, name, Constant::Object(new));
    match changes {
        true => settle_types_above(module, owner),
        false => Ok(()),
    }
}

/// Returns `object` and all objects reachable from it.
fn reached(module: &Module, object: ObjectId) -> IndexSet<ObjectId> {
    let mut found = IndexSet::from([object]);
    let mut next = 0;
    while let Some(&object) = found.get_index(next) {
        next += 1;
        for value in module.object(object).slots.iter().chain(module.state(object)) {
            value.visit_objects(&mut |inner| {
                found.insert(inner);
            });
        }
    }
    found
}

/// Copies the object `root` of `other`, with everything reachable from it, into `module`, and returns the copy.
fn adopt(module: &mut Module, other: &Module, root: ObjectId) -> Result<ObjectId> {
    let ctx = Arc::clone(module.ctx());
    let renaming = Renaming::between(&ctx, &module.unit, &other.unit);
    for (name, class) in &other.unit.classes {
        if module.unit.class(renaming.symbol(*name)).is_some() {
            continue;
        }
        let mut new = renaming.class(class);
        for (method, id) in &mut new.methods {
            let function = renaming.function(other.unit.function(*id), Some((*name, *method)));
            *id = module.unit.add_function(function);
        }
        module.unit.classes.insert(new.name, new);
    }
    let methods = methods(&other.unit);
    for (id, function) in other.unit.functions() {
        if module.unit.find_function(renaming.symbol(function.name)).is_none() && !methods.contains(&id) {
            module.unit.add_function(renaming.function(function, None));
        }
    }
    let mut moved = IndexMap::new();
    for id in reached(other, root) {
        let class = renaming.symbol(other.object(id).class);
        moved.insert(
            id,
            module.add_object(Object {
                class,
                slots: Vec::new(),
            }),
        );
    }
    for (&id, &new) in &moved {
        module.object_mut(new).slots = other
            .object(id)
            .slots
            .iter()
            .map(|value| rebased(&renaming.constant(value), &moved))
            .collect();
        if let Some(state) = other.state(id) {
            module.set_state(new, Some(rebased(&renaming.constant(state), &moved)));
        }
    }
    moved
        .get(&root)
        .copied()
        .ok_or_else(|| Error::Attribute("a module without a root".to_owned()))
}

/// Returns the value with its objects replaced according to `moved`. A value without objects is returned unchanged.
fn rebased(value: &Constant, moved: &IndexMap<ObjectId, ObjectId>) -> Constant {
    let mut holds = false;
    value.visit_objects(&mut |_| holds = true);
    if !holds {
        return value.clone();
    }
    let all = |items: &[Constant]| items.iter().map(|item| rebased(item, moved)).collect();
    match value {
        Constant::Object(id) => Constant::Object(moved.get(id).copied().unwrap_or(*id)),
        Constant::List(list) => Constant::List(Arc::new(ListConstant {
            element: list.element,
            items: all(&list.items),
        })),
        Constant::Tuple(tuple) => Constant::Tuple(Arc::new(TupleConstant {
            ty: tuple.ty,
            items: all(&tuple.items),
        })),
        Constant::Dict(dict) => Constant::Dict(Arc::new(DictConstant {
            key: dict.key,
            value: dict.value,
            entries: dict
                .entries
                .iter()
                .map(|(key, value)| (rebased(key, moved), rebased(value, moved)))
                .collect(),
        })),
        other => other.clone(),
    }
}
