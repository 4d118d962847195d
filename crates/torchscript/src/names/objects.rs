//! The objects of a module while they are read or created, by id.

use std::sync::Arc;

use frazil_ir::{CompilationUnit, Constant, Context, Module, Object, ObjectId, TypeId, TypeKind, types};

/// The objects of an archive by id: first the objects in the table of constants, then the module and everything reachable from it.
#[derive(Default)]
pub(crate) struct Objects {
    pub(crate) objects: Vec<Object>,
    /// Pending calls of `__setstate__`: objects with the method's argument, inner objects first.
    pub(crate) states: Vec<(ObjectId, Constant)>,
}

impl Objects {
    /// Returns a table of objects, of which the first is the module's root.
    pub(crate) fn new(objects: Vec<Object>) -> Objects {
        Objects {
            objects,
            states: Vec::new(),
        }
    }

    /// Returns the class type of object `id`.
    pub(crate) fn ty(&self, ctx: &Context, id: ObjectId) -> TypeId {
        match self.objects.get(id.as_u32() as usize) {
            Some(object) => ctx.type_of_kind(TypeKind::Class(object.class)),
            None => types::ANY,
        }
    }

    /// Returns a module with these objects, the code of their classes, and the root object `root`.
    pub(crate) fn into_module(self, root: ObjectId, ctx: &Arc<Context>, unit: CompilationUnit) -> Module {
        let mut objects = self.objects.into_iter();
        let first = objects.next().unwrap_or(Object {
            class: frazil_ir::symbols::EMPTY,
            slots: Vec::new(),
        });
        let mut module = Module::new(Arc::clone(ctx), unit, first.class, first.slots);
        for object in objects {
            module.add_object(object);
        }
        for (object, state) in self.states {
            module.set_state(object, Some(state));
        }
        module.root = root;
        module
    }
}
