//! Conversion of the objects that constructors created to a module: classes, attributes, tensors.
//!
//! Objects of one class share a class of the program if their attributes have the same types and their constants are equal. Otherwise each kind gets a class of
//! its own with a mangled name, as in PyTorch.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use frazil_ir::types::{TypeStyle, display_type, unify};
use frazil_ir::{
    AttributeKind, ClassDef, ClassKind, Constant, DictConstant, Object, ObjectId, Storage, SymbolId, TupleConstant,
    TypeId, TypeKind, symbols, types,
};
use ruff_text_size::Ranged;

use super::declared::{self, Declared, Wanted, python_class};
use super::maker::MAX_CALLS;
use super::tensor::lowered_storage;
use super::value::{Attribute, ObjectRef, Py};
use crate::emit::unwrap_optional;
use crate::error::{LoadError, Result, SourceError};
use crate::names::{ClassRef, Global, MethodTable, Names, Objects, ancestry};
use crate::source::SourceFile;

/// The properties by which objects of one Python class get different TorchScript classes.
struct Kind {
    class: ClassRef,
    attributes: Vec<(String, TypeId, AttributeKind)>,
    constants: Vec<(String, Constant)>,
    /// For each hook, whether it runs before `forward`, and the index of its function.
    hooks: Vec<(bool, usize)>,
    /// Whether the class is that of a traced module. Each traced module has a class of its own.
    is_traced: bool,
}

/// The type and constant of a value, or PyTorch's message why it has no TorchScript type.
type Lowered = std::result::Result<(TypeId, Constant), String>;

struct Lowering<'l> {
    names: &'l mut dyn Names,
    objects: Vec<Object>,
    /// Constants of the objects and tensors lowered so far, keyed by address. They preserve identity.
    known: HashMap<usize, Constant>,
    /// Lowered storages of tensors, keyed by address. Views share a storage.
    storages: HashMap<usize, Arc<Storage>>,
    kinds: Vec<(Kind, SymbolId)>,
    depth: usize,
}

/// Returns the objects reachable from `root`. Their classes are defined, and their methods are scheduled for
/// compilation.
pub(super) fn objects(names: &mut dyn Names, file: &Arc<SourceFile>, root: &ObjectRef) -> Result<Objects> {
    let mut lowering = Lowering {
        names,
        objects: Vec::new(),
        known: HashMap::new(),
        storages: HashMap::new(),
        kinds: Vec::new(),
        depth: 0,
    };
    lowering.object(file, root)?;
    Ok(Objects::new(lowering.objects))
}

impl Lowering<'_> {
    fn object(&mut self, file: &Arc<SourceFile>, object: &ObjectRef) -> Result<(TypeId, Constant)> {
        let address = Rc::as_ptr(object).cast::<()>() as usize;
        let class = object.borrow().class.clone();
        let place = class.def().map_or_else(Default::default, Ranged::range);
        if let Some(known @ Constant::Object(id)) = self.known.get(&address) {
            let lowered = self.objects.get(id.as_u32() as usize).map(|object| object.class);
            let Some(lowered) = lowered.filter(|&name| name != symbols::EMPTY) else {
                return Err(class.file.error("construct", "a module contains itself", &place).into());
            };
            return Ok((self.names.ctx().type_of_kind(TypeKind::Class(lowered)), known.clone()));
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
        let (methods, training) = {
            let object = object.borrow();
            (object.traced.clone(), object.trained_when_traced)
        };
        if let Some(training) = training {
            self.names
                .definitions_mut()
                .traces
                .context
                .training
                .push((id, training));
        }
        for method in methods {
            let (inputs, error) = (method.inputs, method.error);
            self.names
                .definitions_mut()
                .trace_method(id, name, &method.name, inputs, method.strict, error)?;
        }
        if let Some(object) = self.objects.get_mut(id.as_u32() as usize) {
            *object = Object { class: name, slots };
        }
        Ok((
            self.names.ctx().type_of_kind(TypeKind::Class(name)),
            Constant::Object(id),
        ))
    }

    fn class_and_slots(
        &mut self,
        file: &Arc<SourceFile>,
        object: &ObjectRef,
        class: &ClassRef,
    ) -> Result<(SymbolId, Vec<Constant>)> {
        let chain = ancestry(self.names, class)?.unwrap_or_default();
        let declared = Declared::of(self.names.definitions(), &chain);
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
            is_traced: object.borrow().trained_when_traced.is_some(),
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
                Py::Path(path) if !declared::is_no_function(path) && frontend_constant(path).is_none() => {
                    table.functions.insert(name.clone(), path.to_string());
                    continue;
                }
                Py::Traced(number) => {
                    if let Some(id) = self.names.definitions_mut().traced_function(*number)? {
                        let qualified = self.names.unit().function(id).name;
                        let qualified = self.names.ctx().name(qualified).to_owned();
                        self.names.definitions_mut().know_function(&qualified, id);
                        table.functions.insert(name.clone(), qualified);
                    }
                    continue;
                }
                // A method of a class is no function of the text.
                Py::Function(function) if function.method.is_some() => continue,
                Py::Function(function) => {
                    if let (Some(def), Some(qualifier)) = (function.def(), function.file.rules.qualifier()) {
                        table
                            .functions
                            .insert(name.clone(), format!("{qualifier}.{}", def.name));
                    }
                    continue;
                }
                _ => {}
            }
            let is_constant = declared.constants.contains(name)
                && attribute.kind == AttributeKind::Plain
                && !matches!(attribute.value, Py::Object(_));
            if is_constant {
                if let Py::Unknown(error) = &attribute.value {
                    return Err(Box::new((**error).clone()).into());
                }
                match declared::constant(self.names.definitions(), &attribute.value, 0) {
                    Ok(value) => kind.constants.push((name.clone(), value)),
                    Err(found) => return Err(no_constant(class, name, &found).into()),
                }
                continue;
            }
            match self.attribute(file, class, &declared, name, &attribute.value)? {
                Ok((ty, value)) => {
                    kind.attributes.push((name.clone(), ty, attribute.kind));
                    slots.push(value);
                }
                Err(reason) => {
                    table.unconverted.insert(name.clone(), reason);
                }
            }
        }
        // Constants that only the class bodies give a value.
        for name in &declared.constants {
            if attributes.iter().any(|(known, _)| known == name)
                || kind.constants.iter().any(|(known, _)| known == name)
            {
                continue;
            }
            match declared::class_level(self.names.definitions(), &chain, name) {
                Some(Ok(value)) => kind.constants.push((name.clone(), value)),
                Some(Err(found)) => return Err(no_constant(class, name, found).into()),
                None => {}
            }
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

    /// Returns the type and constant of an attribute, or the reason why it has no type.
    fn attribute(
        &mut self,
        file: &Arc<SourceFile>,
        class: &ClassRef,
        declared: &Declared,
        name: &str,
        value: &Py,
    ) -> Result<Lowered> {
        let mut wanted = declared.wanted(self.names, name)?;
        let value = match value {
            Py::Typed(inner, ty) => {
                let ty = *ty;
                wanted = wanted.or(Some(Wanted { ty, is_strict: true }));
                inner
            }
            value => value,
        };
        if let Py::Object(object) = value {
            let (ty, constant) = self.object(file, object)?;
            let of_interface = wanted
                .map(|wanted| wanted.ty)
                .filter(|&ty| matches!(self.names.ctx().type_kind(ty), TypeKind::Interface(_)));
            return Ok(Ok((of_interface.unwrap_or(ty), constant)));
        }
        if let Py::Unknown(error) = value {
            return match wanted.is_some_and(|wanted| wanted.is_strict) {
                true => Err(Box::new((**error).clone()).into()),
                false => Ok(Err(format!(
                    "(This attribute exists on the Python module, but {})",
                    error.diagnostic.message
                ))),
            };
        }
        let lowered = match value {
            Py::Opaque("function") => Err("Expected a single top-level function".into()),
            value => self.value(file, value, wanted.map(|wanted| wanted.ty))?,
        };
        let fits = match &lowered {
            Ok((ty, _)) => wanted.is_none_or(|wanted| *ty == wanted.ty || !wanted.is_strict),
            Err(_) => wanted.is_none_or(|wanted| !wanted.is_strict),
        };
        if let (false, Some(wanted)) = (fits, wanted) {
            let place = class.def().map_or_else(Default::default, Ranged::range);
            let message = format!(
                "Could not cast attribute '{name}' to type {}: Unable to cast Python instance of type <class '{}'> to C++ type '?' (#define PYBIND11_DETAILED_ERROR_MESSAGES or compile in debug mode for details)",
                display_type(self.names.ctx(), wanted.ty, TypeStyle::Annotation),
                python_class(value)
            );
            return Err(class.file.error("construct", message, &place).into());
        }
        Ok(lowered.map_err(|reason| {
            let what = python_class(value);
            let how = match what.as_str() {
                "function" => return format!(
                    "(This function exists as an attribute on the Python module, but we failed to compile it to a TorchScript function. \nThe error stack is reproduced here:\n{reason})"
                ),
                _ => "Its type was inferred; try adding a type annotation for the attribute.",
            };
            format!(
                "(This attribute exists on the Python module, but we failed to convert Python type: '{what}' to a TorchScript type. {reason}. {how})"
            )
        }))
    }

    /// Returns the TorchScript class for objects of this kind, which is defined if necessary.
    fn class_of(&mut self, kind: Kind, chain: &[ClassRef], table: MethodTable) -> Result<SymbolId> {
        if let Some((_, name)) = self.kinds.iter().find(|(known, _)| {
            !kind.is_traced
                && !known.is_traced
                && known.class.is(&kind.class)
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
        let ctx = Arc::clone(self.names.ctx());
        let mut name = kind.class.qualified.to_string();
        if self
            .kinds
            .iter()
            .any(|(known, _)| known.class.qualified == kind.class.qualified)
        {
            let mangled = self.names.definitions_mut().mangle();
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
        if kind.is_traced {
            self.names.definitions_mut().traces.context.classes.insert(name);
        }
        self.kinds.push((kind, name));
        self.names.define_module_class(class, chain, table)?;
        Ok(name)
    }

    /// Returns the type and constant of a value, or the reason why TorchScript has no type for it.
    fn value(&mut self, file: &Arc<SourceFile>, value: &Py, wanted: Option<TypeId>) -> Result<Lowered> {
        let ctx = Arc::clone(self.names.ctx());
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
            Py::Complex(number) => (types::COMPLEX, Constant::Complex(*number)),
            Py::Str(text) => (types::STR, Constant::str(&**text)),
            Py::Member(ty, member) => (*ty, (**member).clone()),
            Py::Device(device) => (types::DEVICE, Constant::Device(*device)),
            Py::Path(path) if python_class(value) == "torch.dtype" => match frontend_constant(path) {
                Some(code) => (types::INT, code),
                None => return Ok(Err(unsupported(value))),
            },
            Py::Tensor(tensor) | Py::Parameter(tensor) => {
                let constant = match self.known.get(&tensor.address()) {
                    Some(known) => known.clone(),
                    None => {
                        let storages = &mut self.storages;
                        let data = tensor.constant(|view| {
                            let address = Rc::as_ptr(&view.storage).cast::<()>() as usize;
                            Arc::clone(storages.entry(address).or_insert_with(|| lowered_storage(view)))
                        });
                        let Some(data) = data else {
                            return Ok(Err(unsupported(value)));
                        };
                        let constant = Constant::Tensor(Arc::new(data));
                        self.known.insert(tensor.address(), constant.clone());
                        constant
                    }
                };
                (types::TENSOR, constant)
            }
            Py::Size(_) | Py::Named(_) => return self.value(file, &value.plain(), wanted),
            Py::Object(_) => return Ok(Err("Cannot infer concrete type of torch.nn.Module".into())),
            Py::Instance(object) => return self.instance(file, object),
            Py::List(_) | Py::Tuple(_) | Py::Dict(_) if self.depth > MAX_CALLS || !value.is_small() => {
                return Ok(Err(unsupported(value)));
            }
            Py::List(items) => {
                let element = match wanted_kind {
                    Some(TypeKind::List(element)) => Some(element),
                    _ => None,
                };
                let items = items.borrow().clone();
                match self.values(file, &items, element)? {
                    Ok((found, items)) => match self.narrower(element, found) {
                        Some(element) => (ctx.list_of(element), Constant::list(element, items)),
                        None => return Ok(Err("List trace inputs must have elements".into())),
                    },
                    Err(Reason::Element(reason)) => {
                        return Ok(Err(format!("Could not infer type of list element: {reason}")));
                    }
                    Err(Reason::Mixed(mixed)) => {
                        let message = "List inputs to traced functions must have consistent element type.";
                        return Ok(Err(format!("{message} {mixed}")));
                    }
                }
            }
            Py::Tuple(items) => {
                let mut lowered = Vec::with_capacity(items.len());
                let mut element_types = Vec::with_capacity(items.len());
                let elements = match wanted_kind {
                    Some(TypeKind::Tuple(elements) | TypeKind::NamedTuple(_, _, elements)) => {
                        ctx.types(elements).to_vec()
                    }
                    _ => Vec::new(),
                };
                self.depth += 1;
                for (index, item) in items.iter().enumerate() {
                    let lowered_item = self.value(file, item, elements.get(index).copied());
                    match lowered_item {
                        Ok(Ok((ty, item))) => {
                            element_types.push(ty);
                            lowered.push(item);
                        }
                        other => {
                            self.depth -= 1;
                            return other;
                        }
                    }
                }
                self.depth -= 1;
                let named = wanted.map(|ty| unwrap_optional(&ctx, ty));
                let named = named.filter(|&ty| matches!(ctx.type_kind(ty), TypeKind::NamedTuple(..)));
                let fits = elements.len() == element_types.len()
                    && element_types
                        .iter()
                        .zip(&elements)
                        .all(|(&found, &field)| self.names.definitions().is_subtype(found, field));
                match named {
                    // A tuple whose items have the types of the fields becomes a NamedTuple.
                    Some(ty) if fits => (ty, Constant::Tuple(Arc::new(TupleConstant { ty, items: lowered }))),
                    _ => (ctx.tuple_of(&element_types), Constant::tuple(&ctx, lowered)),
                }
            }
            Py::Dict(items) => {
                let (key, value) = match wanted_kind {
                    Some(TypeKind::Dict(key, value)) => (Some(key), Some(value)),
                    _ => (None, None),
                };
                let (keys, values): (Vec<Py>, Vec<Py>) = items.borrow().iter().cloned().unzip();
                let mixed = |reason| match reason {
                    Reason::Element(reason) => reason,
                    Reason::Mixed(mixed) => {
                        format!("Dictionary inputs to traced functions must have consistent type. {mixed}")
                    }
                };
                let (found_key, keys) = match self.values(file, &keys, key)? {
                    Ok(lowered) => lowered,
                    Err(reason) => return Ok(Err(mixed(reason))),
                };
                let (found_value, values) = match self.values(file, &values, value)? {
                    Ok(lowered) => lowered,
                    Err(reason) => return Ok(Err(mixed(reason))),
                };
                let (key, value) = (self.narrower(key, found_key), self.narrower(value, found_value));
                let (Some(key), Some(value)) = (key, value) else {
                    return Ok(Err("Dictionary inputs must have entries".into()));
                };
                let entries = keys.into_iter().zip(values).collect();
                let constant = Constant::Dict(Arc::new(DictConstant { key, value, entries }));
                (ctx.dict_of(key, value), constant)
            }
            other => return Ok(Err(unsupported(other))),
        };
        Ok(Ok(match wanted {
            Some(wanted) if self.names.definitions().is_subtype(found.0, wanted) => (wanted, found.1),
            _ => found,
        }))
    }

    /// Lowers an object of a class of the source text that is no class of modules.
    fn instance(&mut self, file: &Arc<SourceFile>, object: &ObjectRef) -> Result<Lowered> {
        let ctx = Arc::clone(self.names.ctx());
        let address = Rc::as_ptr(object).cast::<()>() as usize;
        let class = object.borrow().class.clone();
        let unknown = || {
            format!(
                "Only tensors and (possibly nested) tuples of tensors, lists, or dicts are supported as inputs or outputs of traced functions, but instead got value of type {}.",
                class.simple()
            )
        };
        let ty = match self.names.global(&class.qualified) {
            Ok(Some(Global::Type(ty))) => ty,
            // A class that does not compile is not a class of TorchScript.
            Ok(_) | Err(LoadError::Source(_)) => return Ok(Err(unknown())),
            Err(other) => return Err(other),
        };
        if let Some(known) = self.known.get(&address) {
            return Ok(Ok((ty, known.clone())));
        }
        let TypeKind::Class(name) = ctx.type_kind(ty) else {
            return Ok(Err(unknown()));
        };
        if self.depth > MAX_CALLS {
            return Ok(Err(unknown()));
        }
        let attributes: Vec<(SymbolId, TypeId)> = match self.names.unit().class(name) {
            Some(class) => class.attributes.iter().map(|(name, a)| (*name, a.ty)).collect(),
            None => Vec::new(),
        };
        let id = ObjectId::from_u32(u32::try_from(self.objects.len()).unwrap_or(u32::MAX));
        self.objects.push(Object {
            class: name,
            slots: Vec::new(),
        });
        self.known.insert(address, Constant::Object(id));
        let mut slots = Vec::with_capacity(attributes.len());
        self.depth += 1;
        for (attribute, ty) in attributes {
            let value = object
                .borrow()
                .attributes
                .get(ctx.name(attribute))
                .map(|a| a.value.clone());
            let lowered = match value {
                Some(value) => self.value(file, &value, Some(ty))?,
                None => Err(unknown()),
            };
            match lowered {
                Ok((found, constant)) if self.names.definitions().is_subtype(found, ty) => slots.push(constant),
                _ => {
                    let place = class.def().map_or_else(Default::default, Ranged::range);
                    let message = format!(
                        "the attribute '{}' of a `{}` is no {}",
                        ctx.name(attribute),
                        class.simple(),
                        display_type(&ctx, ty, TypeStyle::Annotation)
                    );
                    return Err(class.file.error("construct", message, &place).into());
                }
            }
        }
        self.depth -= 1;
        if let Some(object) = self.objects.get_mut(id.as_u32() as usize) {
            object.slots = slots;
        }
        Ok(Ok((ty, Constant::Object(id))))
    }

    /// Lowers the elements of a container, and returns them with their common type, which is `None` without elements. Fails with a reason if an element has no
    /// type, or there is no common type.
    #[allow(clippy::type_complexity, reason = "a type that may be open, and the constants")]
    fn values(
        &mut self,
        file: &Arc<SourceFile>,
        items: &[Py],
        element: Option<TypeId>,
    ) -> Result<std::result::Result<(Option<TypeId>, Vec<Constant>), Reason>> {
        let mut out = Vec::with_capacity(items.len());
        let mut joined: Option<TypeId> = None;
        self.depth += 1;
        for item in items {
            let (ty, item) = match self.value(file, item, element)? {
                Ok(lowered) => lowered,
                Err(reason) => {
                    self.depth -= 1;
                    return Ok(Err(Reason::Element(reason)));
                }
            };
            joined = match joined {
                None => Some(ty),
                Some(before) => match unify(self.names.ctx(), before, ty) {
                    Some(both) => Some(both),
                    None => {
                        self.depth -= 1;
                        let shown = |ty| display_type(self.names.ctx(), ty, TypeStyle::Annotation);
                        return Ok(Err(Reason::Mixed(format!("Found {} and {}", shown(before), shown(ty)))));
                    }
                },
            };
            out.push(item);
        }
        self.depth -= 1;
        Ok(Ok((joined, out)))
    }

    /// Returns the type of a container's elements: `declared`, unless `found` is not a subtype of it; then `found`, for
    /// an error about it.
    fn narrower(&self, declared: Option<TypeId>, found: Option<TypeId>) -> Option<TypeId> {
        match (declared, found) {
            (Some(declared), Some(found)) if !self.names.definitions().is_subtype(found, declared) => Some(found),
            _ => declared.or(found),
        }
    }
}

/// The reason why the elements of a list have no common type.
enum Reason {
    /// An element has no TorchScript type.
    Element(String),
    /// Two elements have different types, which the string names.
    Mixed(String),
}

fn unsupported(value: &Py) -> String {
    let class = python_class(value);
    format!(
        "Only tensors and (possibly nested) tuples of tensors, lists, or dicts are supported as inputs or outputs of traced functions, but instead got value of type {}.",
        class.rsplit('.').next().unwrap_or(&class)
    )
}

/// Returns the constant value of `path`, if it is a constant of `torch` or `math`.
fn frontend_constant(path: &str) -> Option<Constant> {
    crate::names::library_constant(path)
}

/// Returns the error for an attribute that is declared constant and whose value cannot be one.
fn no_constant(class: &ClassRef, name: &str, found: &str) -> Box<SourceError> {
    let place = class.def().map_or_else(Default::default, Ranged::range);
    let message = format!(
        "'{found}' object in attribute '{}.{name}' is not a valid constant.\nValid constants are:\n1. a nn.ModuleList\n2. a value of type {{bool, float, int, str, NoneType, torch.device, torch.layout, torch.dtype, torch.qscheme}}\n3. a list or tuple of (2)\n",
        class.simple()
    );
    class.file.error("construct", message, &place)
}

/// Returns the value as a constant, without an expected type; `None` if no constant represents it.
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
        Py::Tuple(items) | Py::Size(items) => Constant::tuple(ctx, all(items)?),
        Py::Complex(number) => Constant::Complex(*number),
        Py::List(items) => {
            let items = all(&items.borrow())?;
            Constant::list(items.first().map_or(types::TENSOR, |item| item.ty(ctx)), items)
        }
        Py::Tensor(tensor) | Py::Parameter(tensor) => Constant::Tensor(Arc::new(tensor.constant(lowered_storage)?)),
        _ => return None,
    })
}
