//! Putting modules together: submodules that come from other models, and functions over all of them.

use crate::{Error, Model, Result};
use frazil_ir::{
    AttributeKind, ClassDef, CompilationUnit, Constant, DictConstant, ListConstant, Module, Object, ObjectId,
    TupleConstant, TypeKind,
};
use std::collections::HashMap;
use std::sync::Arc;

impl Model {
    /// Adds a copy of `child` as a submodule of this module, or puts it in the place of the submodule of that name (`Module.add_module`). Tensors are
    /// shared until one of the two is written.
    ///
    /// ```
    /// # let session = frazil::Session::new();
    /// # let source = |name: &str| format!("class {name}(nn.Module):\n def __init__(self): super().__init__()\n def forward(self, x): return x\n");
    /// # let mut model = session.script("a.py".as_ref(), &source("Net"), &[])?.to_model("forward")?;
    /// # let head = session.script("b.py".as_ref(), &source("Head"), &[])?.to_model("forward")?;
    /// model.add_module("head", &head)?;
    /// assert_eq!(model.root().get_submodule("head")?.original_name(), "Head");
    /// assert!(model.add_module("head.of", &head).is_err()); // that is `set_submodule`
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the name is not one, `child` belongs to another session, both models have different classes of one name, other objects are of
    /// this module's class, or a submodule of another class is to be replaced.
    pub fn add_module(&mut self, name: &str, child: &Model) -> Result<()> {
        match name.contains('.') {
            true => Err(Error::Attribute(format!(
                "module name can't contain \".\", got: {name}"
            ))),
            false => self.set_submodule(name, child),
        }
    }

    /// [`Model::add_module`] under PyTorch's other name.
    ///
    /// # Errors
    /// Those of [`Model::add_module`].
    pub fn register_module(&mut self, name: &str, child: &Model) -> Result<()> {
        self.add_module(name, child)
    }

    /// [`Model::add_module`] at a dotted path (`Module.set_submodule`).
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
    /// Those of [`Model::add_module`], and when the module on the way is not there.
    pub fn set_submodule(&mut self, path: &str, child: &Model) -> Result<()> {
        let (owner, name) = self.root().owner(path)?;
        if !Arc::ptr_eq(self.session().ctx(), child.session().ctx()) {
            return Err(Error::Attribute(format!(
                "the module for `{path}` belongs to another session"
            )));
        }
        let class = child.module().object(child.module().root).class;
        if let Some((_, old)) = owner.slot(name) {
            let same = matches!(old, Constant::Object(old) if self.module().object(*old).class == class);
            if !same {
                return Err(Error::Attribute(format!(
                    "`{path}` is there, and no module of class {}",
                    child.root().original_name()
                )));
            }
        }
        let owner = owner.id();
        let mut module = Module::clone(self.module());
        let root = adopt(&mut module, child.module())?;
        let before = Arc::clone(self.module());
        *self.module_mut() = module;
        let ty = self.session().ctx().type_of_kind(TypeKind::Class(class));
        let done = self.register_at(owner, name, AttributeKind::Plain, ty, Constant::Object(root));
        if done.is_err() {
            *self.module_mut() = Module::clone(&before);
        }
        done
    }

    /// Calls `each` with the path of every submodule, those inside before those that hold them, and "" at the end (`Module.apply`). It may change the
    /// model; the paths are those from before.
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
    /// Those of `each`, the first of which ends it.
    pub fn apply(&mut self, each: impl FnMut(&mut Model, &str) -> Result<()>) -> Result<()> {
        self.root_mut().apply(each)
    }
}

/// Copies all that `other` is into `module`, and gives its root there.
fn adopt(module: &mut Module, other: &Module) -> Result<ObjectId> {
    let ctx = Arc::clone(module.ctx());
    for (name, class) in &other.unit.classes {
        if let Some(known) = module.unit.class(*name)
            && !same_class(&module.unit, known, &other.unit, class)
        {
            return Err(Error::Unsupported(format!(
                "both modules have a class {}, and they differ",
                ctx.name(*name)
            )));
        }
    }
    for (name, class) in &other.unit.classes {
        if module.unit.class(*name).is_some() {
            continue;
        }
        let mut class = class.clone();
        for id in class.methods.values_mut() {
            *id = module.unit.add_function(other.unit.function(*id).clone());
        }
        module.unit.classes.insert(*name, class);
    }
    for (_, function) in other.unit.functions() {
        if module.unit.find_function(function.name).is_none() {
            module.unit.add_function(function.clone());
        }
    }
    let mut moved = HashMap::new();
    for (id, object) in other.objects() {
        let class = object.class;
        moved.insert(
            id,
            module.add_object(Object {
                class,
                slots: Vec::new(),
            }),
        );
    }
    for (id, object) in other.objects() {
        let Some(&new) = moved.get(&id) else { continue };
        module.object_mut(new).slots = object.slots.iter().map(|value| rebased(value, &moved)).collect();
        if let Some(state) = other.state(id) {
            module.set_state(new, Some(rebased(state, &moved)));
        }
    }
    moved
        .get(&other.root)
        .copied()
        .ok_or_else(|| Error::Attribute("a module without a root".to_owned()))
}

/// Whether both definitions say the same: objects of one are objects of the other, and do the same.
fn same_class(unit: &CompilationUnit, a: &ClassDef, other: &CompilationUnit, b: &ClassDef) -> bool {
    let attributes = |c: &ClassDef| -> Vec<_> { c.attributes.iter().map(|(n, a)| (*n, a.ty, a.kind)).collect() };
    let code = |unit: &CompilationUnit, c: &ClassDef| -> Vec<_> {
        let text = |id: &_| frazil_syntax::print_graph(&unit.function(*id).graph);
        c.methods.iter().map(|(n, id)| (*n, text(id))).collect()
    };
    a.kind == b.kind && attributes(a) == attributes(b) && code(unit, a) == code(other, b)
}

/// The value with its objects replaced by what became of them. What holds no objects stays what it is.
fn rebased(value: &Constant, moved: &HashMap<ObjectId, ObjectId>) -> Constant {
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
