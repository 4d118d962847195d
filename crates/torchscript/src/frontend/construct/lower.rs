//! From the objects that constructors left to a module: classes, attributes, tensors.
//!
//! Objects of one class share a class of the program when their attributes have the same types and their constants are equal; otherwise
//! each kind gets a class of its own with a mangled name, as PyTorch has it.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use frazil_ir::{
    AttributeKind, ClassDef, ClassKind, Constant, DictConstant, Object, ObjectId, Storage, SymbolId, TypeId, TypeKind,
    symbols, types,
};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::Ranged;

use super::tensor::lowered_storage;
use super::value::{Attribute, ClassRef, ObjectRef, Py};
use super::{MAX_CALLS, ancestry};
use crate::frontend::Result;
use crate::frontend::annotation::dotted;
use crate::frontend::objects::Objects;
use crate::frontend::program::{DefPath, Program};
use crate::frontend::source::SourceFile;

/// The methods of a module class that are not compiled until code calls them, by name, and what its children are.
#[derive(Default)]
pub(crate) struct MethodTable {
    pub(crate) methods: HashMap<String, MethodSource>,
    /// The names of the methods that a name with several signatures (`@torch.jit._overload_method`) stands for.
    pub(crate) overloads: HashMap<String, Vec<String>>,
    /// The names of the children of a `ModuleList`, `Sequential`, `ModuleDict` or `ParameterList`, in order.
    pub(crate) children: Option<Vec<String>>,
    /// Attributes that are functions, with their dotted names.
    pub(crate) functions: HashMap<String, String>,
    /// Functions that are called before (`true`) and after `forward`, in order.
    pub(crate) hooks: Vec<(bool, Arc<SourceFile>, usize)>,
}

/// Where a method of a module class stands.
pub(crate) struct MethodSource {
    pub(crate) file: Arc<SourceFile>,
    pub(crate) body: DefPath,
    /// Which member of the class says its signature, where that is not the method itself.
    pub(crate) signature: Option<usize>,
}

/// What tells one kind of object of a class from another.
struct Kind {
    class: ClassRef,
    attributes: Vec<(String, TypeId, AttributeKind)>,
    constants: Vec<(String, Constant)>,
    /// Whether each hook comes before `forward`, and where its function stands.
    hooks: Vec<(bool, usize)>,
}

/// What class bodies say about attributes: types, and which are constants.
struct Declared {
    annotations: Vec<(String, TypeId)>,
    constants: Vec<String>,
}

struct Lowering<'l, 'p> {
    program: &'l mut Program<'p>,
    objects: Vec<Object>,
    /// Objects and tensors that have been lowered, by address: identity is kept.
    known: HashMap<usize, Constant>,
    /// Storages of tensors, by address: views share theirs.
    storages: HashMap<usize, Arc<Storage>>,
    kinds: Vec<(Kind, SymbolId)>,
    depth: usize,
}

/// The objects that `root` reaches, with their classes defined and their methods to be compiled.
pub(super) fn objects(program: &mut Program<'_>, file: &Arc<SourceFile>, root: &ObjectRef) -> Result<Objects> {
    let mut lowering = Lowering {
        program,
        objects: Vec::new(),
        known: HashMap::new(),
        storages: HashMap::new(),
        kinds: Vec::new(),
        depth: 0,
    };
    lowering.object(file, root)?;
    Ok(Objects::new(lowering.objects))
}

impl Lowering<'_, '_> {
    fn object(&mut self, file: &Arc<SourceFile>, object: &ObjectRef) -> Result<(TypeId, Constant)> {
        let address = Rc::as_ptr(object).cast::<()>() as usize;
        let class = object.borrow().class.clone();
        let place = class.def().map_or_else(Default::default, Ranged::range);
        if let Some(known @ Constant::Object(id)) = self.known.get(&address) {
            let lowered = self.objects.get(id.as_u32() as usize).map(|object| object.class);
            let Some(lowered) = lowered.filter(|&name| name != symbols::EMPTY) else {
                return Err(class.file.error("construct", "a module contains itself", &place).into());
            };
            return Ok((self.program.ctx.type_of_kind(TypeKind::Class(lowered)), known.clone()));
        }
        if self.depth > MAX_CALLS {
            return Err(class
                .file
                .error("construct", "modules contain one another", &place)
                .into());
        }
        // The number is taken before the attributes are lowered: the module itself is number 0.
        let id = ObjectId::from_u32(u32::try_from(self.objects.len()).unwrap_or(u32::MAX));
        self.objects.push(Object {
            class: symbols::EMPTY,
            slots: Vec::new(),
        });
        self.known.insert(address, Constant::Object(id));
        self.depth += 1;
        let lowered = self.class_and_slots(file, object, &class);
        self.depth -= 1;
        let (name, slots) = lowered?;
        if let Some(object) = self.objects.get_mut(id.as_u32() as usize) {
            *object = Object { class: name, slots };
        }
        Ok((
            self.program.ctx.type_of_kind(TypeKind::Class(name)),
            Constant::Object(id),
        ))
    }

    fn class_and_slots(
        &mut self,
        file: &Arc<SourceFile>,
        object: &ObjectRef,
        class: &ClassRef,
    ) -> Result<(SymbolId, Vec<Constant>)> {
        let chain = ancestry(self.program, class)?.unwrap_or_default();
        let Declared { annotations, constants } = self.declared(&chain)?;
        let attributes: Vec<(String, Attribute)> = object
            .borrow()
            .attributes
            .iter()
            .map(|(n, a)| (n.clone(), a.clone()))
            .collect();
        let mut kind = Kind {
            class: class.clone(),
            attributes: Vec::new(),
            constants: Vec::new(),
            hooks: Vec::new(),
        };
        let mut table = MethodTable::default();
        for hook in &object.borrow().hooks {
            let function = &hook.function;
            kind.hooks.push((hook.is_before, function.statement));
            table
                .hooks
                .push((hook.is_before, Arc::clone(&function.file), function.statement));
        }
        let mut slots = Vec::new();
        // Parameters, buffers, children, then the rest, as PyTorch orders them.
        let rank = |a: &Attribute| match (a.kind, &a.value) {
            (AttributeKind::Parameter, _) => 0,
            (AttributeKind::Buffer, _) => 1,
            (_, Py::Object(_)) => 2,
            _ => 3,
        };
        let mut ordered: Vec<&(String, Attribute)> = attributes.iter().collect();
        ordered.sort_by_key(|(_, attribute)| rank(attribute));
        for (name, attribute) in ordered {
            match &attribute.value {
                Py::Path(path) => {
                    table.functions.insert(name.clone(), path.to_string());
                    continue;
                }
                // A method of a class is no function of the text.
                Py::Function(function) if function.method.is_some() => continue,
                Py::Function(function) => {
                    if let (Some(def), Some(qualifier)) = (function.def(), function.file.qualifier) {
                        table
                            .functions
                            .insert(name.clone(), format!("{qualifier}.{}", def.name));
                    }
                    continue;
                }
                _ => {}
            }
            let wanted = annotations.iter().find(|(n, _)| n == name).map(|(_, ty)| *ty);
            let Some((ty, value)) = self.value(file, &attribute.value, wanted)? else {
                // What has no type in TorchScript is no attribute of the class: code that uses it does not compile.
                continue;
            };
            if constants.contains(name)
                && attribute.kind == AttributeKind::Plain
                && !matches!(value, Constant::Object(_))
            {
                // A list that is constant is a tuple to code.
                let value = match value.items() {
                    Some(items) if matches!(value, Constant::List(_)) => {
                        Constant::tuple(&self.program.ctx, items.to_vec())
                    }
                    _ => value,
                };
                kind.constants.push((name.clone(), value));
                continue;
            }
            kind.attributes.push((name.clone(), ty, attribute.kind));
            slots.push(value);
        }
        let container = chain.iter().find_map(|class| {
            let name = class.qualified.strip_prefix("__torch__.torch.nn.modules.container.")?;
            let is_of_modules = matches!(name, "Sequential" | "ModuleList" | "ModuleDict");
            (is_of_modules || matches!(name, "ParameterList" | "ParameterDict")).then_some(is_of_modules)
        });
        if let Some(is_of_modules) = container {
            let held = |value: &Py| match is_of_modules {
                true => matches!(value, Py::Object(_)),
                false => matches!(value, Py::Parameter(_)),
            };
            let children = attributes.iter().filter(|(_, attribute)| held(&attribute.value));
            table.children = Some(children.map(|(name, _)| name.clone()).collect());
        }
        let name = self.class_of(kind, &chain, table)?;
        Ok((name, slots))
    }

    /// The types that class bodies give attributes, and the names that they call constants.
    fn declared(&mut self, chain: &[ClassRef]) -> Result<Declared> {
        let (mut annotations, mut constants) = (Vec::new(), Vec::new());
        for class in chain {
            let file = Arc::clone(&class.file);
            let Some(def) = class.def() else { continue };
            for member in &def.body {
                match member {
                    Stmt::AnnAssign(assign) => {
                        let Expr::Name(target) = &*assign.target else { continue };
                        let head = match &*assign.annotation {
                            Expr::Subscript(subscript) => dotted(&subscript.value),
                            other => dotted(other),
                        };
                        let head = file.expand(&head.unwrap_or_default());
                        if head.rsplit('.').next() == Some("Final") {
                            constants.push(target.id.to_string());
                            continue;
                        }
                        let ty = self.program.annotation(&file, &assign.annotation)?;
                        annotations.push((target.id.to_string(), ty));
                    }
                    Stmt::Assign(assign) => {
                        let is_constants =
                            matches!(assign.targets.as_slice(), [Expr::Name(t)] if t.id.as_str() == "__constants__");
                        let items = match &*assign.value {
                            Expr::List(list) if is_constants => &list.elts,
                            Expr::Tuple(tuple) if is_constants => &tuple.elts,
                            _ => continue,
                        };
                        constants.extend(items.iter().filter_map(|item| {
                            item.as_string_literal_expr().map(|text| text.value.to_str().to_owned())
                        }));
                    }
                    _ => {}
                }
            }
        }
        Ok(Declared { annotations, constants })
    }

    /// The class of the program for objects of this kind.
    fn class_of(&mut self, kind: Kind, chain: &[ClassRef], table: MethodTable) -> Result<SymbolId> {
        if let Some((_, name)) = self.kinds.iter().find(|(known, _)| {
            known.class.is(&kind.class)
                && known.attributes == kind.attributes
                && known.hooks == kind.hooks
                && known.constants.len() == kind.constants.len()
                && known
                    .constants
                    .iter()
                    .zip(&kind.constants)
                    .all(|(a, b)| a.0 == b.0 && a.1.same(&b.1))
        }) {
            return Ok(*name);
        }
        let ctx = Arc::clone(&self.program.ctx);
        let mut name = kind.class.qualified.to_string();
        if self
            .kinds
            .iter()
            .any(|(known, _)| known.class.qualified == kind.class.qualified)
        {
            let mangled = self.program.mangle();
            let (qualifier, simple) = name.rsplit_once('.').unwrap_or(("", &name));
            name = format!("{qualifier}.___torch_mangle_{mangled}.{simple}");
        }
        let name = ctx.symbol(&name);
        let mut class = ClassDef::new(name, ClassKind::Module);
        for (attribute, ty, kind) in &kind.attributes {
            class.add_attribute(ctx.symbol(attribute), *ty, *kind);
        }
        for (constant, value) in &kind.constants {
            class.constants.insert(ctx.symbol(constant), value.clone());
        }
        self.kinds.push((kind, name));
        self.program.define_module_class(class, chain, table)?;
        Ok(name)
    }

    /// The type and constant of a value; `None` when TorchScript has no type for it.
    fn value(
        &mut self,
        file: &Arc<SourceFile>,
        value: &Py,
        wanted: Option<TypeId>,
    ) -> Result<Option<(TypeId, Constant)>> {
        let ctx = Arc::clone(&self.program.ctx);
        let wanted_kind = wanted.map(|ty| match ctx.type_kind(ty) {
            TypeKind::Optional(inner) => ctx.type_kind(inner),
            other => other,
        });
        let found = match value {
            Py::None => (types::NONE, Constant::None),
            Py::Bool(b) => (types::BOOL, Constant::Bool(*b)),
            Py::Int(i) if wanted_kind == Some(TypeKind::Float) => (types::FLOAT, Constant::Float(*i as f64)),
            Py::Int(i) => (types::INT, Constant::Int(*i)),
            Py::Float(f) => (types::FLOAT, Constant::Float(*f)),
            Py::Str(text) => (types::STR, Constant::str(&**text)),
            Py::Member(ty, member) => (*ty, (**member).clone()),
            Py::Device(device) => (types::DEVICE, Constant::Device(*device)),
            Py::Tensor(tensor) | Py::Parameter(tensor) => {
                let constant = match self.known.get(&tensor.address()) {
                    Some(known) => known.clone(),
                    None => {
                        let storages = &mut self.storages;
                        let data = tensor.constant(|view| {
                            let address = Rc::as_ptr(&view.storage).cast::<()>() as usize;
                            Arc::clone(storages.entry(address).or_insert_with(|| lowered_storage(view)))
                        });
                        let Some(data) = data else { return Ok(None) };
                        let constant = Constant::Tensor(Arc::new(data));
                        self.known.insert(tensor.address(), constant.clone());
                        constant
                    }
                };
                (types::TENSOR, constant)
            }
            Py::Object(object) => {
                let (ty, constant) = self.object(file, object)?;
                match wanted {
                    Some(wanted) if matches!(ctx.type_kind(wanted), TypeKind::Interface(_)) => (wanted, constant),
                    _ => (ty, constant),
                }
            }
            Py::List(_) | Py::Tuple(_) | Py::Dict(_) if self.depth > MAX_CALLS || !value.is_small() => return Ok(None),
            Py::List(items) => {
                let element = match wanted_kind {
                    Some(TypeKind::List(element)) => Some(element),
                    _ => None,
                };
                let items = items.borrow().clone();
                let Some((found, items)) = self.values(file, &items, element)? else {
                    return Ok(None);
                };
                let element = element.or(found).unwrap_or(types::TENSOR);
                (ctx.list_of(element), Constant::list(element, items))
            }
            Py::Tuple(items) => {
                let mut lowered = Vec::with_capacity(items.len());
                let mut element_types = Vec::with_capacity(items.len());
                self.depth += 1;
                for item in items.iter() {
                    let Some((ty, item)) = self.value(file, item, None)? else {
                        self.depth -= 1;
                        return Ok(None);
                    };
                    element_types.push(ty);
                    lowered.push(item);
                }
                self.depth -= 1;
                (ctx.tuple_of(&element_types), Constant::tuple(&ctx, lowered))
            }
            Py::Dict(items) => {
                let (key, value) = match wanted_kind {
                    Some(TypeKind::Dict(key, value)) => (Some(key), Some(value)),
                    _ => (None, None),
                };
                let (keys, values): (Vec<Py>, Vec<Py>) = items.borrow().iter().cloned().unzip();
                let Some((found_key, keys)) = self.values(file, &keys, key)? else {
                    return Ok(None);
                };
                let Some((found_value, values)) = self.values(file, &values, value)? else {
                    return Ok(None);
                };
                let key = key.or(found_key).unwrap_or(types::STR);
                let value = value.or(found_value).unwrap_or(types::TENSOR);
                let entries = keys.into_iter().zip(values).collect();
                let constant = Constant::Dict(Arc::new(DictConstant { key, value, entries }));
                (ctx.dict_of(key, value), constant)
            }
            _ => return Ok(None),
        };
        match wanted {
            Some(wanted) if self.program.is_subtype(found.0, wanted) => Ok(Some((wanted, found.1))),
            _ => Ok(Some(found)),
        }
    }

    /// Elements of a container with their common type; `None` when one has no type or they have none in common.
    #[allow(clippy::type_complexity, reason = "a type that may be open, and the constants")]
    fn values(
        &mut self,
        file: &Arc<SourceFile>,
        items: &[Py],
        element: Option<TypeId>,
    ) -> Result<Option<(Option<TypeId>, Vec<Constant>)>> {
        let mut out = Vec::with_capacity(items.len());
        let mut joined: Option<TypeId> = None;
        self.depth += 1;
        for item in items {
            let lowered = self.value(file, item, element)?;
            let Some((ty, item)) = lowered else {
                self.depth -= 1;
                return Ok(None);
            };
            if joined.is_some_and(|before| before != ty) && element.is_none() {
                self.depth -= 1;
                return Ok(None);
            }
            joined = Some(ty);
            out.push(item);
        }
        self.depth -= 1;
        Ok(Some((joined, out)))
    }
}

/// The constant that a value is without regard to a type, if it is one.
pub(super) fn constant(ctx: &frazil_ir::Context, value: &Py, depth: usize) -> Option<Constant> {
    if depth > MAX_CALLS || (depth == 0 && !value.is_small()) {
        return None;
    }
    let all = |items: &[Py]| -> Option<Vec<Constant>> { items.iter().map(|i| constant(ctx, i, depth + 1)).collect() };
    Some(match value {
        Py::None => Constant::None,
        Py::Bool(b) => Constant::Bool(*b),
        Py::Int(i) => Constant::Int(*i),
        Py::Float(f) => Constant::Float(*f),
        Py::Str(text) => Constant::str(&**text),
        Py::Member(_, member) => (**member).clone(),
        Py::Device(device) => Constant::Device(*device),
        Py::Tuple(items) => Constant::tuple(ctx, all(items)?),
        Py::List(items) => {
            let items = all(&items.borrow())?;
            Constant::list(items.first().map_or(types::TENSOR, |item| item.ty(ctx)), items)
        }
        Py::Tensor(tensor) | Py::Parameter(tensor) => Constant::Tensor(Arc::new(tensor.constant(lowered_storage)?)),
        _ => return None,
    })
}
