//! The objects of an archive: `data.pkl` becomes a tree of objects with their tensors. Identities are preserved.

mod tensors;

use std::collections::HashMap;
use std::sync::Arc;

use frazil_ir::nesting::{MAX_NESTING, MAX_VALUES};
use frazil_ir::{
    Constant, Device, DictConstant, EnumConstant, Object, ObjectId, Storage, SymbolId, TensorData, TupleConstant,
    TypeId, TypeKind, types,
};
use num_complex::Complex64;

use crate::archive::{Archive, ArchiveError, Pickle, PickleId, PickleValue};
use crate::error::{LoadError, Result};
use crate::names::{Annotations, FOREIGN_CLASSES, Global, Names};

/// Reads the root object of the module, with everything that is reachable from it.
pub(crate) fn read(names: &mut dyn Names, archive: &Archive) -> Result<ObjectId> {
    let pickle = archive.pickle("data.pkl")?;
    let mut reader = Reader::new(names, archive, &pickle, "data.pkl", "data");
    let root = pickle.root();
    if !matches!(pickle.value(root), PickleValue::Object { .. }) {
        return Err(reader.unexpected(root, "a module object (is this a state_dict?)"));
    }
    match reader.value(root, types::ANY, 0)? {
        Constant::Object(id) => Ok(id),
        _ => Err(reader.unexpected(root, "a module object")),
    }
}

/// Reads the table of constants, which code names `CONSTANTS.c0`, `CONSTANTS.c1`, ...
pub(crate) fn read_constants(names: &mut dyn Names, archive: &Archive) -> Result<Vec<Constant>> {
    let pickle = archive.pickle("constants.pkl")?;
    let mut reader = Reader::new(names, archive, &pickle, "constants.pkl", "constants");
    let root = pickle.root();
    let Some(items) = pickle.elements(root) else {
        return Err(reader.unexpected(root, "a tuple of constants"));
    };
    items.iter().map(|&item| reader.value(item, types::ANY, 0)).collect()
}

/// Reads the values of one pickle of an archive.
pub(crate) struct Reader<'r> {
    names: &'r mut dyn Names,
    archive: &'r Archive,
    pickle: &'r Pickle,
    entry: &'static str,
    /// The folder of the archive that contains the storages of this pickle.
    folder: &'static str,
    /// Values that have been read, by id, so that a value that the pickle references several times becomes a single value.
    known: HashMap<PickleId, Constant>,
    storages: HashMap<String, Arc<Storage>>,
    /// The number of values in each container (including nested ones), keyed by its address.
    weights: HashMap<usize, u64>,
}

/// Memory per string in addition to its text, in bytes: the reference counts, and the allocator's overhead.
const STRING_BYTES: usize = 32;

/// Memory per container, object or tensor in addition to its items, in bytes, including bookkeeping of the reader.
const CONTAINER_BYTES: usize = 256;

/// Returns the address of a container; `None` for other constants.
fn container(constant: &Constant) -> Option<usize> {
    match constant {
        Constant::List(list) => Some(Arc::as_ptr(list).addr()),
        Constant::Tuple(tuple) => Some(Arc::as_ptr(tuple).addr()),
        Constant::Dict(dict) => Some(Arc::as_ptr(dict).addr()),
        _ => None,
    }
}

impl<'r> Reader<'r> {
    pub(crate) fn new(
        names: &'r mut dyn Names,
        archive: &'r Archive,
        pickle: &'r Pickle,
        entry: &'static str,
        folder: &'static str,
    ) -> Reader<'r> {
        Reader {
            names,
            archive,
            pickle,
            entry,
            folder,
            known: HashMap::new(),
            storages: HashMap::new(),
            weights: HashMap::new(),
        }
    }

    fn unexpected(&self, id: PickleId, expected: impl Into<String>) -> LoadError {
        ArchiveError::Unexpected {
            entry: self.entry.to_owned(),
            offset: self.pickle.offset(id),
            expected: expected.into(),
            found: match self.pickle.value(id) {
                PickleValue::Object { class: global, .. } | PickleValue::Call { callee: global, .. } => {
                    let (module, name) = self.pickle.global(*global).unwrap_or_default();
                    format!("{} of {module}.{name}", self.pickle.value(id).kind())
                }
                value => value.kind().to_owned(),
            },
        }
        .into()
    }

    /// Returns the value with id `id`, read as type `ty`.
    pub(crate) fn value(&mut self, id: PickleId, ty: TypeId, depth: usize) -> Result<Constant> {
        if depth > MAX_NESTING || self.names.definitions().stack.is_short() {
            return Err(self.unexpected(id, format!("at most {} levels of nesting", depth.min(MAX_NESTING))));
        }
        if let Some(known) = self.known.get(&id) {
            return Ok(known.clone());
        }
        let bytes = match self.pickle.value(id) {
            PickleValue::None | PickleValue::Bool(_) | PickleValue::Int(_) | PickleValue::Float(_) => 0,
            PickleValue::Str(text) => STRING_BYTES + text.len(),
            PickleValue::Bytes(bytes) => STRING_BYTES + bytes.len(),
            _ => CONTAINER_BYTES,
        };
        frazil_limits::charge(size_of::<Constant>() + bytes)?;
        let value = self.read_value(id, ty, depth)?;
        // Only what has an identity is remembered; numbers and strings are what they are.
        if matches!(
            value,
            Constant::Tensor(_) | Constant::List(_) | Constant::Dict(_) | Constant::Tuple(_) | Constant::Object(_)
        ) {
            self.known.insert(id, value.clone());
            self.weigh(id, &value)?;
        }
        Ok(value)
    }

    /// Refuses a container with too many values to be traversed. Shared values count at each place.
    fn weigh(&mut self, id: PickleId, value: &Constant) -> Result<()> {
        let Some(address) = container(value) else { return Ok(()) };
        let weight = |item: &Constant| {
            container(item)
                .and_then(|at| self.weights.get(&at).copied())
                .unwrap_or(1)
        };
        let total = match value {
            Constant::Dict(dict) => {
                let entries = dict.entries.iter().flat_map(|(key, value)| [key, value]);
                entries.map(weight).fold(1, u64::saturating_add)
            }
            _ => {
                let items = value.items().unwrap_or_default();
                items.iter().map(weight).fold(1, u64::saturating_add)
            }
        };
        if total > MAX_VALUES {
            return Err(self.unexpected(
                id,
                format!("containers of at most {MAX_VALUES} values, shared ones counted at each place"),
            ));
        }
        self.weights.insert(address, total);
        Ok(())
    }

    fn read_value(&mut self, id: PickleId, ty: TypeId, depth: usize) -> Result<Constant> {
        let ctx = Arc::clone(self.names.ctx());
        let pickle = self.pickle;
        let kind = match ctx.type_kind(ty) {
            TypeKind::Optional(inner) => ctx.type_kind(inner),
            kind => kind,
        };
        Ok(match pickle.value(id) {
            PickleValue::None => Constant::None,
            PickleValue::Bool(value) => Constant::Bool(*value),
            PickleValue::Int(value) if kind == TypeKind::Float => Constant::Float(*value as f64),
            PickleValue::Int(value) => Constant::Int(*value),
            PickleValue::Float(value) => Constant::Float(*value),
            PickleValue::Str(text) => Constant::str(text),
            PickleValue::Bytes(bytes) => Constant::str(String::from_utf8_lossy(bytes)),
            PickleValue::List(items) => {
                let element = match kind {
                    TypeKind::List(element) => Some(element),
                    _ => None,
                };
                let items = self.values(items, element.unwrap_or(types::ANY), depth)?;
                let element = element.unwrap_or_else(|| self.common_type(&items));
                Constant::list(element, items)
            }
            PickleValue::Tuple(items) => {
                let elements = match kind {
                    TypeKind::Tuple(elements) | TypeKind::NamedTuple(_, _, elements) => ctx.types(elements),
                    _ => &[],
                };
                let mut values = Vec::with_capacity(items.len());
                for (index, &item) in items.iter().enumerate() {
                    let element = elements.get(index).copied().unwrap_or(types::ANY);
                    values.push(self.value(item, element, depth + 1)?);
                }
                if elements.len() == values.len() && !elements.is_empty() {
                    let ty = ctx.type_of_kind(kind);
                    Constant::Tuple(Arc::new(TupleConstant { ty, items: values }))
                } else {
                    Constant::tuple(&ctx, values)
                }
            }
            PickleValue::Dict(items) => {
                let (key, value) = match kind {
                    TypeKind::Dict(key, value) => (key, value),
                    _ => (types::ANY, types::ANY),
                };
                let mut entries = Vec::with_capacity(items.len());
                for &(k, v) in items {
                    entries.push((self.value(k, key, depth + 1)?, self.value(v, value, depth + 1)?));
                }
                let infer = |ty: TypeId, constant: Option<&Constant>| match (ty, constant) {
                    (types::ANY, Some(constant)) => constant.ty(&ctx),
                    (ty, _) => ty,
                };
                let (key, value) = (
                    infer(key, entries.first().map(|e| &e.0)),
                    infer(value, entries.first().map(|e| &e.1)),
                );
                Constant::Dict(Arc::new(DictConstant { key, value, entries }))
            }
            PickleValue::Call { callee, args, .. } => {
                let (callee, args) = (*callee, *args);
                return self.call(id, callee, args, ty, depth);
            }
            PickleValue::Object { class, state, .. } => {
                let (class, state) = (*class, *state);
                return self.object(id, class, state, depth);
            }
            PickleValue::Global { .. } | PickleValue::Persistent(_) => return Err(self.unexpected(id, "a value")),
        })
    }

    fn values(&mut self, items: &[PickleId], ty: TypeId, depth: usize) -> Result<Vec<Constant>> {
        items.iter().map(|&item| self.value(item, ty, depth + 1)).collect()
    }

    fn common_type(&self, items: &[Constant]) -> TypeId {
        match items.first() {
            Some(Constant::Tensor(_)) | None => types::TENSOR,
            Some(first) => first.ty(self.names.ctx()),
        }
    }

    /// Returns the dotted name of the global with id `id`.
    fn global(&self, id: PickleId) -> Result<String> {
        let (module, name) = self
            .pickle
            .global(id)
            .ok_or_else(|| self.unexpected(id, "a class or function"))?;
        Ok(format!("{module}.{name}"))
    }

    /// Returns the type of the class to which the global with id `id` refers.
    fn class(&mut self, id: PickleId) -> Result<TypeId> {
        let name = self.global(id)?;
        match self.names.global(&name)? {
            Some(Global::Type(ty)) => Ok(ty),
            None if name.starts_with(FOREIGN_CLASSES) => Ok(self.names.ctx().class(&name)),
            _ => Err(self.unexpected(id, format!("a class that the archive's code defines, not `{name}`"))),
        }
    }

    fn object(&mut self, id: PickleId, class: PickleId, state: Option<PickleId>, depth: usize) -> Result<Constant> {
        let ty = self.class(class)?;
        let TypeKind::Class(name) = self.names.ctx().type_kind(ty) else {
            return Err(self.unexpected(id, "an object of a class"));
        };
        // The number is taken before the attributes are read: what holds others comes first.
        let objects = &mut self.names.definitions_mut().objects.objects;
        let object = ObjectId::from_u32(u32::try_from(objects.len()).unwrap_or(u32::MAX));
        objects.push(Object {
            class: name,
            slots: Vec::new(),
        });
        self.known.insert(id, Constant::Object(object));
        let definition = self.names.unit().class(name);
        let restored_from = match definition {
            Some(definition) => definition.restored_from(self.names.ctx(), self.names.unit()),
            // Classes that C++ code registers restore themselves as well.
            None => Some(types::ANY),
        };
        let attributes: Vec<(SymbolId, TypeId)> = match definition {
            Some(definition) => definition.attributes.iter().map(|(name, a)| (*name, a.ty)).collect(),
            None => Vec::new(),
        };
        if let (Some(ty), Some(state)) = (restored_from, state) {
            let state = self.value(state, ty, depth + 1)?;
            self.names.definitions_mut().objects.states.push((object, state));
            if let Some(slot) = self
                .names
                .definitions_mut()
                .objects
                .objects
                .get_mut(object.as_u32() as usize)
            {
                slot.slots = vec![Constant::None; attributes.len()];
            }
            return Ok(Constant::Object(object));
        }
        let items = match state.map(|state| (state, self.pickle.value(state))) {
            Some((_, PickleValue::Dict(items))) => items.as_slice(),
            None => &[],
            Some((state, _)) => {
                return Err(self.unexpected(
                    state,
                    format!(
                        "a dictionary of attributes: `{}` has no __setstate__",
                        self.names.ctx().name(name)
                    ),
                ));
            }
        };
        let mut by_name: HashMap<&str, PickleId> = HashMap::with_capacity(items.len());
        for &(key, value) in items {
            let key = self
                .pickle
                .str(key)
                .ok_or_else(|| self.unexpected(key, "an attribute's name"))?;
            by_name.insert(key, value);
        }
        let ctx = Arc::clone(self.names.ctx());
        let mut slots = Vec::with_capacity(attributes.len());
        for (attribute, ty) in attributes {
            let value = match by_name.get(ctx.name(attribute)) {
                Some(&value) => self.value(value, ty, depth + 1)?,
                None if matches!(ctx.type_kind(ty), TypeKind::Optional(_) | TypeKind::None) => Constant::None,
                None => {
                    let expected = format!("the attribute `{}` of `{}`", ctx.name(attribute), ctx.name(name));
                    return Err(self.unexpected(id, expected));
                }
            };
            slots.push(value);
        }
        if let Some(slot) = self
            .names
            .definitions_mut()
            .objects
            .objects
            .get_mut(object.as_u32() as usize)
        {
            slot.slots = slots;
        }
        Ok(Constant::Object(object))
    }

    fn call(&mut self, id: PickleId, callee: PickleId, args: PickleId, ty: TypeId, depth: usize) -> Result<Constant> {
        let name = self.global(callee)?;
        let pickle = self.pickle;
        let arguments = pickle.elements(args).unwrap_or_default();
        match (name.as_str(), arguments) {
            ("torch._utils._rebuild_tensor_v2" | "torch._utils._rebuild_tensor", _) => self
                .tensor(id, arguments)
                .map(|tensor| Constant::Tensor(Arc::new(tensor))),
            ("torch._utils._rebuild_qtensor", _) => self.quantized_tensor(id, arguments, depth),
            ("torch._utils._rebuild_sparse_tensor", _) => self.sparse_tensor(id, arguments, depth),
            ("torch._utils._rebuild_parameter", &[tensor, requires_grad, ..]) => {
                let tensor = self.called(tensor, ty, depth)?;
                match (&tensor, pickle.value(requires_grad)) {
                    (Constant::Tensor(data), PickleValue::Bool(flag)) if data.requires_grad != *flag => {
                        let data = TensorData {
                            requires_grad: *flag,
                            ..(**data).clone()
                        };
                        Ok(Constant::Tensor(Arc::new(data)))
                    }
                    _ => Ok(tensor),
                }
            }
            ("torch.jit._pickle.restore_type_tag", &[value, tag]) => {
                let tag_text = pickle
                    .str(tag)
                    .ok_or_else(|| self.unexpected(tag, "the name of a type"))?;
                let ty = self.tagged_type(tag, tag_text)?;
                self.called(value, ty, depth)
            }
            ("torch.jit._pickle.build_intlist", &[list]) => self.build_list(list, types::INT, depth),
            ("torch.jit._pickle.build_doublelist", &[list]) => self.build_list(list, types::FLOAT, depth),
            ("torch.jit._pickle.build_boollist", &[list]) => self.build_list(list, types::BOOL, depth),
            ("torch.jit._pickle.build_tensorlist", &[list]) => self.build_list(list, types::TENSOR, depth),
            ("torch.jit._pickle.build_complexlist", &[list]) => self.build_list(list, types::COMPLEX, depth),
            ("torch.device", &[text]) => {
                let device = pickle.str(text).and_then(Device::parse);
                device
                    .map(Constant::Device)
                    .ok_or_else(|| self.unexpected(text, "the name of a device"))
            }
            ("builtins.complex" | "__builtin__.complex", &[re, im]) => {
                let part = |id| match pickle.value(id) {
                    PickleValue::Float(value) => Ok(*value),
                    PickleValue::Int(value) => Ok(*value as f64),
                    _ => Err(self.unexpected(id, "a number")),
                };
                Ok(Constant::Complex(Complex64::new(part(re)?, part(im)?)))
            }
            _ if name.starts_with("__torch__.") => {
                let class = self.class(callee)?;
                match self.names.ctx().type_kind(class) {
                    TypeKind::Enum(class) => self.enum_member(id, class, args),
                    // A NamedTuple is made by a call of its class with the fields.
                    TypeKind::NamedTuple(_, _, elements) => {
                        let elements = self.names.ctx().types(elements).to_vec();
                        let mut items = Vec::with_capacity(arguments.len());
                        for (&argument, &element) in arguments.iter().zip(&elements) {
                            items.push(self.value(argument, element, depth + 1)?);
                        }
                        if items.len() != elements.len() {
                            return Err(self.unexpected(args, format!("{} fields", elements.len())));
                        }
                        Ok(Constant::Tuple(Arc::new(TupleConstant { ty: class, items })))
                    }
                    _ => Err(self.unexpected(id, "a member of an enumeration or a NamedTuple")),
                }
            }
            _ => Err(self.unexpected(id, "a tensor, or another value that archives hold")),
        }
    }

    /// Returns the value inside a call that returns this value, such as a list in `restore_type_tag`. Only calls of calls add a nesting level; otherwise,
    /// archives would have more levels than their values.
    fn called(&mut self, id: PickleId, ty: TypeId, depth: usize) -> Result<Constant> {
        let is_call = matches!(self.pickle.value(id), PickleValue::Call { .. });
        self.value(id, ty, depth + usize::from(is_call))
    }

    fn build_list(&mut self, list: PickleId, element: TypeId, depth: usize) -> Result<Constant> {
        let items = self
            .pickle
            .elements(list)
            .ok_or_else(|| self.unexpected(list, "a list"))?;
        let items = self.values(items, element, depth)?;
        Ok(Constant::list(element, items))
    }

    /// Returns the type that a type tag such as `List[int]` denotes.
    fn tagged_type(&mut self, id: PickleId, tag: &str) -> Result<TypeId> {
        let file = crate::source::SourceFile::parse(self.entry, tag, None, self.names.definitions().stack)?;
        match file.body() {
            [ruff_python_ast::Stmt::Expr(statement)] => self.names.annotation(&file, &statement.value),
            _ => Err(self.unexpected(id, "the name of a type")),
        }
    }

    fn enum_member(&mut self, id: PickleId, class: SymbolId, value: PickleId) -> Result<Constant> {
        let value = self.value(value, types::ANY, 0)?;
        let definition = self.names.unit().class(class);
        let member = definition.and_then(|definition| {
            definition.constants.values().find_map(|member| match member {
                Constant::Enum(member) if member.value.same(&value) => Some(Arc::clone(member)),
                _ => None,
            })
        });
        let member: Arc<EnumConstant> = member.ok_or_else(|| {
            self.unexpected(
                id,
                format!("the value of a member of `{}`", self.names.ctx().name(class)),
            )
        })?;
        Ok(Constant::Enum(member))
    }
}
