//! Modules: classes, functions, and a tree of objects with shared identity.

use crate::schema::FunctionSchema;
use crate::{Constant, Context, Graph, ObjectId, SourceTexts, SymbolId, TypeId};
use cranelift_entity::{EntitySet, PrimaryMap, entity_impl};
use indexmap::IndexMap;
use std::sync::Arc;

/// Id of a function or method in a [`CompilationUnit`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionId(u32);
entity_impl!(FunctionId, "fn");

/// A function or method: its signature and its graph.
#[derive(Clone, Debug)]
pub struct Function {
    /// Qualified name: `__torch__.torch.nn.functional.relu`, `__torch__.Net.forward`.
    pub name: SymbolId,
    /// Names, types and defaults of the arguments (`self` first for methods) and the results.
    pub schema: FunctionSchema,
    /// The body.
    pub graph: Graph,
}

/// The role of an attribute in `nn.Module`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum AttributeKind {
    /// Neither a parameter nor a buffer: a plain attribute or a submodule.
    #[default]
    Plain,
    /// A parameter.
    Parameter,
    /// A buffer.
    Buffer,
}

/// An attribute of a class.
#[derive(Clone, Debug)]
pub struct ClassAttribute {
    /// The type of the attribute.
    pub ty: TypeId,
    /// Whether the attribute is a parameter, a buffer or neither.
    pub kind: AttributeKind,
}

/// The kind of a nominal type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClassKind {
    /// An `nn.Module`.
    Module,
    /// A plain class.
    Class,
    /// An interface: methods without bodies.
    Interface,
    /// An interface of modules.
    ModuleInterface,
    /// An enumeration; its members are in `constants`.
    Enum,
    /// A NamedTuple; its fields are in `attributes`.
    NamedTuple,
}

/// The definition of a nominal type.
#[derive(Clone, Debug)]
pub struct ClassDef {
    /// Qualified name.
    pub name: SymbolId,
    /// The kind of the type.
    pub kind: ClassKind,
    /// Attributes by name, in order; an [`Object`] has a slot for each.
    pub attributes: IndexMap<SymbolId, ClassAttribute>,
    /// Class constants (`Final`), an enumeration's members, or a NamedTuple's defaults.
    pub constants: IndexMap<SymbolId, Constant>,
    /// Methods by name.
    pub methods: IndexMap<SymbolId, FunctionId>,
    /// Signatures of an interface's methods.
    pub signatures: IndexMap<SymbolId, FunctionSchema>,
    /// Names of the class's methods that run before `forward`.
    pub forward_pre_hooks: Vec<SymbolId>,
    /// Names of the class's methods that run after `forward`.
    pub forward_hooks: Vec<SymbolId>,
}

impl ClassDef {
    /// Returns the definition of a nominal type without attributes, constants and methods.
    pub fn new(name: SymbolId, kind: ClassKind) -> ClassDef {
        ClassDef {
            name,
            kind,
            attributes: IndexMap::new(),
            constants: IndexMap::new(),
            methods: IndexMap::new(),
            signatures: IndexMap::new(),
            forward_pre_hooks: Vec::new(),
            forward_hooks: Vec::new(),
        }
    }

    /// Returns the type of the state from which objects are restored, if the class has `__getstate__(self)` and `__setstate__(self, state)`. With only one of
    /// these methods, archives store the attributes of its objects.
    pub fn restored_from(&self, ctx: &Context, unit: &CompilationUnit) -> Option<TypeId> {
        self.methods.get(&ctx.find_symbol("__getstate__")?)?;
        let setstate = self.methods.get(&ctx.find_symbol("__setstate__")?)?;
        unit.function(*setstate).schema.arguments.get(1).map(|state| state.ty)
    }

    /// Adds an attribute, or changes the type and kind of an existing one with the name `name`.
    pub fn add_attribute(&mut self, name: SymbolId, ty: TypeId, kind: AttributeKind) {
        self.attributes.insert(name, ClassAttribute { ty, kind });
    }
}

/// Mangles a name: `__torch__.a.B` becomes `__torch__.a.___torch_mangle_7.B`, with the first number for which `is_free` returns true.
///
/// ```
/// let ctx = frazil_ir::Context::new();
/// let (taken, name) = (ctx.symbol("a.___torch_mangle_0.B"), ctx.symbol("a.B"));
/// let mangled = frazil_ir::mangled_name(&ctx, name, |candidate| candidate != taken);
/// assert_eq!(ctx.name(mangled), "a.___torch_mangle_1.B");
/// ```
pub fn mangled_name(ctx: &Context, name: SymbolId, is_free: impl Fn(SymbolId) -> bool) -> SymbolId {
    let text = ctx.name(name);
    let parts: Vec<&str> = text.split('.').filter(|p| !p.starts_with("___torch_mangle_")).collect();
    let (last, prefix) = parts.split_last().unwrap_or((&text, &[]));
    for n in 0u64.. {
        let candidate = format!("{}.___torch_mangle_{n}.{last}", prefix.join("."));
        let candidate = ctx.symbol(candidate.trim_start_matches('.'));
        if is_free(candidate) {
            return candidate;
        }
    }
    name
}

/// Classes and functions that refer to one another by name.
#[derive(Clone, Debug, Default)]
pub struct CompilationUnit {
    /// Nominal types by qualified name.
    pub classes: IndexMap<SymbolId, ClassDef>,
    /// The source texts of classes and functions, if they are known.
    pub sources: SourceTexts,
    /// Unused functions and classes of a source text that do not compile, by simple name, with the error.
    pub refused: IndexMap<String, String>,
    functions: PrimaryMap<FunctionId, Function>,
    names: IndexMap<SymbolId, FunctionId>,
}

impl CompilationUnit {
    /// Returns a unit without classes and functions, to which code with these source texts is added.
    pub fn of_sources(sources: SourceTexts) -> CompilationUnit {
        CompilationUnit {
            sources,
            ..CompilationUnit::default()
        }
    }

    /// Returns the definition of class `name`.
    pub fn class(&self, name: SymbolId) -> Option<&ClassDef> {
        self.classes.get(&name)
    }

    /// Adds a function or method under its qualified name. An existing one with that name is replaced.
    pub fn add_function(&mut self, function: Function) -> FunctionId {
        let name = function.name;
        match self.names.get(&name) {
            Some(&id) => {
                self.functions[id] = function;
                id
            }
            None => {
                let id = self.functions.push(function);
                self.names.insert(name, id);
                id
            }
        }
    }

    /// Returns the function with qualified name `name`.
    pub fn find_function(&self, name: SymbolId) -> Option<FunctionId> {
        self.names.get(&name).copied()
    }

    /// Returns the function `id`.
    pub fn function(&self, id: FunctionId) -> &Function {
        &self.functions[id]
    }

    /// Returns function `id`, mutably.
    pub fn function_mut(&mut self, id: FunctionId) -> &mut Function {
        &mut self.functions[id]
    }

    /// Returns all functions and methods in the order of their addition.
    pub fn functions(&self) -> impl Iterator<Item = (FunctionId, &Function)> + '_ {
        self.functions.iter()
    }

    /// Returns all functions and methods, mutably.
    pub fn functions_mut(&mut self) -> impl Iterator<Item = (FunctionId, &mut Function)> + '_ {
        self.functions.iter_mut()
    }

    /// Drops every function for which `keep` returns false, also from the methods of classes. Ids change: the result maps old ids to new ids.
    pub fn retain_functions(&mut self, keep: impl Fn(FunctionId) -> bool) -> IndexMap<FunctionId, FunctionId> {
        let old = std::mem::take(&mut self.functions);
        let mut map = IndexMap::new();
        for (id, function) in old {
            if keep(id) {
                map.insert(id, self.functions.push(function));
            }
        }
        self.names = self.functions.iter().map(|(id, f)| (f.name, id)).collect();
        for class in self.classes.values_mut() {
            class.methods.retain(|_, id| match map.get(id) {
                Some(new) => {
                    *id = *new;
                    true
                }
                None => false,
            });
        }
        map
    }

    /// Returns method `method` of class `class`.
    pub fn method(&self, class: SymbolId, method: SymbolId) -> Option<FunctionId> {
        self.class(class)?.methods.get(&method).copied()
    }
}

/// An object: a class and a value for each of its attributes.
#[derive(Clone, Debug)]
pub struct Object {
    /// The class, by qualified name.
    pub class: SymbolId,
    /// One value for each attribute of the class, in the same order.
    pub slots: Vec<Constant>,
}

/// A module: an object with all objects reachable from it, and the code of their classes.
///
/// Identity is part of the data: an object with two paths is one [`ObjectId`], a tensor one `Arc<TensorData>`, a
/// storage one `Arc<Storage>`, a list one `Arc<ListConstant>`. A clone shares all of these and copies the tables of the
/// graphs.
#[derive(Clone, Debug)]
pub struct Module {
    ctx: Arc<Context>,
    /// The classes and functions of the module.
    pub unit: CompilationUnit,
    objects: PrimaryMap<ObjectId, Object>,
    /// Arguments for `__setstate__` calls that have not been made yet, by object.
    states: IndexMap<ObjectId, Constant>,
    /// The root object of the module.
    pub root: ObjectId,
    /// Extra files of the archive (`extra/`), by name.
    pub extra_files: IndexMap<String, Arc<[u8]>>,
    /// Records of the archive that are stored without being interpreted, by name: the example inputs of a traced module.
    pub records: IndexMap<String, Arc<[u8]>>,
}

impl Module {
    /// Returns a module whose root is an object of class `class` with the attribute values `slots`.
    pub fn new(ctx: Arc<Context>, unit: CompilationUnit, class: SymbolId, slots: Vec<Constant>) -> Module {
        let mut objects = PrimaryMap::new();
        let root = objects.push(Object { class, slots });
        Module {
            ctx,
            unit,
            objects,
            states: IndexMap::new(),
            root,
            extra_files: IndexMap::new(),
            records: IndexMap::new(),
        }
    }

    /// Returns the context of names and types.
    pub fn ctx(&self) -> &Arc<Context> {
        &self.ctx
    }

    /// Adds an object.
    pub fn add_object(&mut self, object: Object) -> ObjectId {
        self.objects.push(object)
    }

    /// Returns the object `id`.
    pub fn object(&self, id: ObjectId) -> &Object {
        &self.objects[id]
    }

    /// Returns the object `id`, mutably.
    pub fn object_mut(&mut self, id: ObjectId) -> &mut Object {
        &mut self.objects[id]
    }

    /// Returns the pending argument of an object's `__setstate__`; its attributes are unset until the call. Objects of classes that C++ code registers have
    /// only such a state.
    pub fn state(&self, id: ObjectId) -> Option<&Constant> {
        self.states.get(&id)
    }

    /// Returns the objects with a pending state, in the order in which they must be restored.
    pub fn states(&self) -> impl Iterator<Item = (ObjectId, &Constant)> + '_ {
        self.states.iter().map(|(id, state)| (*id, state))
    }

    /// Sets the argument for the `__setstate__` call of object `id`; `None` once the call has been made.
    pub fn set_state(&mut self, id: ObjectId, state: Option<Constant>) {
        match state {
            Some(state) => {
                self.states.insert(id, state);
            }
            None => {
                self.states.shift_remove(&id);
            }
        }
    }

    /// Sorts the objects with a pending state in the order in which unpickling restores them: an object comes after the objects that are reachable from its
    /// state.
    pub fn order_states(&mut self) {
        let mut seen = EntitySet::new();
        let mut order = Vec::with_capacity(self.states.len());
        // Objects to be entered, and to be left once everything reachable from them has been visited.
        let mut work: Vec<(ObjectId, bool)> = self.objects.keys().rev().map(|id| (id, false)).collect();
        while let Some((id, leaves)) = work.pop() {
            if leaves {
                order.push(id);
            } else if seen.insert(id) {
                work.push((id, true));
                let inner = work.len();
                let slots = self.objects.get(id).into_iter().flat_map(|object| &object.slots);
                for value in slots.chain(self.states.get(&id)) {
                    value.visit_objects(&mut |held| work.push((held, false)));
                }
                if let Some(held) = work.get_mut(inner..) {
                    held.reverse();
                }
            }
        }
        let mut states = std::mem::take(&mut self.states);
        let in_order = order.into_iter().filter_map(|id| states.swap_remove_entry(&id));
        self.states = in_order.collect();
    }

    /// Returns all objects with their ids.
    pub fn objects(&self) -> impl Iterator<Item = (ObjectId, &Object)> + '_ {
        self.objects.iter()
    }

    /// Returns the number of objects; all ids are below it.
    pub fn object_count(&self) -> usize {
        self.objects.len()
    }

    /// Returns the class of object `id`.
    pub fn class_of(&self, id: ObjectId) -> Option<&ClassDef> {
        self.unit.class(self.object(id).class)
    }

    /// Returns attribute `name` of object `id`.
    pub fn attribute(&self, id: ObjectId, name: SymbolId) -> Option<&Constant> {
        let index = self.class_of(id)?.attributes.get_index_of(&name)?;
        self.object(id).slots.get(index)
    }

    /// Sets attribute `name` of object `id`. Returns false if its class has none of that name.
    pub fn set_attribute(&mut self, id: ObjectId, name: SymbolId, value: Constant) -> bool {
        let Some(index) = self.class_of(id).and_then(|c| c.attributes.get_index_of(&name)) else {
            return false;
        };
        match self.objects[id].slots.get_mut(index) {
            Some(slot) => {
                *slot = value;
                true
            }
            None => false,
        }
    }

    /// Returns method `name` of the root.
    pub fn method(&self, name: SymbolId) -> Option<FunctionId> {
        self.unit.method(self.object(self.root).class, name)
    }

    /// Returns the function for [`method`](Self::method): method `name` of the root.
    pub fn method_function(&self, name: SymbolId) -> Option<&Function> {
        self.method(name).map(|id| self.unit.function(id))
    }

    /// Returns the method at a dotted path, and the object on which it is called: `forward` of the root, `encoder.forward` of a submodule.
    pub fn method_at(&self, path: &str) -> Option<(ObjectId, FunctionId)> {
        let (owners, name) = path.rsplit_once('.').unwrap_or(("", path));
        let mut object = self.root;
        for owner in owners.split('.').filter(|_| !owners.is_empty()) {
            let Constant::Object(inner) = self.attribute(object, self.ctx().find_symbol(owner)?)? else {
                return None;
            };
            object = *inner;
        }
        let method = self
            .unit
            .method(self.object(object).class, self.ctx().find_symbol(name)?)?;
        Some((object, method))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types;

    #[test]
    fn inner_objects_restore_themselves_first() {
        let ctx = Arc::new(Context::new());
        let class = ctx.symbol("__torch__.C");
        let mut module = Module::new(ctx, CompilationUnit::default(), class, vec![]);
        let [a, b, c] = [(); 3].map(|()| module.add_object(Object { class, slots: vec![] }));
        let held = |ids: &[ObjectId]| Constant::list(types::ANY, ids.iter().map(|id| Constant::Object(*id)).collect());
        // `a` contains `c` and `b`, and `c` contains `a` again.
        module.set_state(a, Some(held(&[c, b])));
        module.set_state(b, Some(Constant::None));
        module.set_state(c, Some(held(&[a])));
        module.order_states();
        assert_eq!(module.states().map(|(id, _)| id).collect::<Vec<_>>(), [c, b, a]);
    }
}
