//! Evaluation of the expression `base.name`.

use std::rc::Rc;
use std::sync::Arc;

use frazil_ir::{AttributeKind, Constant, TypeKind};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::Ranged;

use super::copies::detached;
use super::known::{constant, tensor_type_name};
use super::maker::{Maker, Scope};
use super::mentions::Mentions;
use super::module_attributes::{CONTAINER_METHODS, LAYER_ATTRIBUTES, MODULE_ATTRIBUTES, MODULE_METHODS};
use super::value::{Attribute, FunctionRef, ObjectRef, Py, PyObject};
use crate::error::Result;
use crate::names::{ClassRef, Global, ancestry, find_class};
use crate::source::decorators::marker_of;
use crate::source::{SourceFile, dotted};

/// The member of a class that a name denotes.
pub(super) enum Member {
    Method(FunctionRef),
    Static(FunctionRef),
    /// A property: its getter, and its setter if it has one.
    Property(FunctionRef, Option<FunctionRef>),
    Value(Py),
}

impl Maker<'_> {
    /// Evaluates the expression `base.name`.
    pub(super) fn attribute(&mut self, file: &Arc<SourceFile>, base: Py, name: &str, node: &impl Ranged) -> Result<Py> {
        match self.attribute_if_any(file, &base, name, node)? {
            Some(value) => Ok(value),
            None => {
                let owner = match &base {
                    Py::Object(object) => object.borrow().class.simple().to_owned(),
                    other => other.type_name().to_owned(),
                };
                self.fail(file, format!("'{owner}' object has no attribute '{name}'"), node)
            }
        }
    }

    /// Evaluates `base.name`; returns `None` if there is certainly no such attribute.
    ///
    /// # Errors
    /// When only Python can decide that.
    pub(super) fn attribute_if_any(
        &mut self,
        file: &Arc<SourceFile>,
        base: &Py,
        name: &str,
        node: &impl Ranged,
    ) -> Result<Option<Py>> {
        let method = || Some(Py::Method(Box::new(base.clone()), name.into()));
        let known = match base {
            Py::Path(path) => {
                if let Some(dtype) = super::value::dtype_of(base) {
                    match name {
                        "is_floating_point" => return Ok(Some(Py::Bool(dtype.is_floating_point()))),
                        "is_complex" => return Ok(Some(Py::Bool(dtype.is_complex()))),
                        "itemsize" => return Ok(Some(Py::Int(dtype.size() as i64))),
                        _ => {}
                    }
                }
                let path = format!("{path}.{name}");
                Some(match find_class(self.names, file, &path)? {
                    Some(class) => Py::Class(class),
                    None => constant(&path).unwrap_or(Py::Path(path.into())),
                })
            }
            Py::Object(object) => return self.object_attribute(file, object, name, node),
            Py::Instance(object) => return self.field(file, object, name, node),
            Py::Typed(value, _) if name == "value" => Some((**value).clone()),
            Py::Super(object, class) => return self.super_attribute(file, object, class, name, node).map(Some),
            Py::Class(class) => return self.class_attribute(file, class, name, node).map(Some),
            Py::Tensor(tensor) => match name {
                "requires_grad" | "is_leaf" | "grad_fn" => None,
                _ => tensor_attribute(tensor, name),
            }
            .or_else(|| super::tensor_methods::NAMES.contains(&name).then(method).flatten()),
            Py::Parameter(tensor) => match name {
                "requires_grad" => Some(Py::Bool(tensor.requires_grad())),
                "is_leaf" => Some(Py::Bool(true)),
                "grad" | "grad_fn" => Some(Py::None),
                _ => tensor_attribute(tensor, name),
            }
            .or_else(|| super::tensor_methods::NAMES.contains(&name).then(method).flatten()),
            Py::Device(device) => match name {
                "type" => device.to_string().split(':').next().map(Py::str),
                "index" => match device.to_string().split_once(':') {
                    Some((_, index)) => index.parse().ok().map(Py::Int),
                    None => Some(Py::None),
                },
                _ => None,
            },
            Py::Member(_, member) => match (&**member, name) {
                (Constant::Enum(member), "name") => Some(Py::str(&*member.name)),
                (Constant::Enum(member), "value") => plain(&member.value),
                _ => None,
            },
            Py::Function(function) if name == "__name__" => function.def().map(|def| Py::str(&*def.name)),
            Py::Keys(keys) => match name {
                "missing_keys" => keys.first().cloned(),
                "unexpected_keys" => keys.get(1).cloned(),
                _ => None,
            },
            Py::Handle(..) if name == "remove" => method(),
            Py::Limits(dtype) => super::known::limit(*dtype, name),
            Py::Complex(number) => match name {
                "real" => Some(Py::Float(number.re)),
                "imag" => Some(Py::Float(number.im)),
                "conjugate" => method(),
                _ => None,
            },
            Py::Named(named) => return self.named_attribute(file, named, name, node),
            Py::Size(_) if name == "numel" => method(),
            Py::Size(_) => return self.attribute_if_any(file, &base.plain(), name, node),
            Py::Set(..) => super::sets::NAMES.contains(&name).then(method).flatten(),
            Py::List(_) | Py::Tuple(_) | Py::Dict(_) | Py::Str(_) => {
                super::value_methods::is_known(base, name).then(method).flatten()
            }
            _ => None,
        };
        match known {
            Some(value) => Ok(Some(value)),
            None => self.beyond(file, format!("the attribute `{name}` of a {}", base.type_name()), node),
        }
    }

    /// Returns the method resolution order of the class of `object`.
    pub(super) fn chain(&mut self, object: &ObjectRef) -> Result<Rc<[ClassRef]>> {
        let class = object.borrow().class.clone();
        let key = (Rc::clone(&class.qualified), class.statement);
        if let Some(known) = self.chains.get(&key) {
            return Ok(Rc::clone(known));
        }
        let chain: Rc<[ClassRef]> = ancestry(self.names, &class)?.unwrap_or_default().into();
        self.chains.insert(key, Rc::clone(&chain));
        Ok(chain)
    }

    fn object_attribute(
        &mut self,
        file: &Arc<SourceFile>,
        object: &ObjectRef,
        name: &str,
        node: &impl Ranged,
    ) -> Result<Option<Py>> {
        if name == "__class__" {
            return Ok(Some(Py::Class(object.borrow().class.clone())));
        }
        let chain = self.chain(object)?;
        let of_class = self.inherited(&chain, name)?;
        if let Some(Member::Property(getter, _)) = &of_class {
            let this = Py::Object(Rc::clone(object));
            return self
                .call_function(getter, Some(this), Vec::new(), Vec::new(), node)
                .map(Some);
        }
        let own = object.borrow().attributes.get(name).map(|a| a.value.clone());
        let is_scripted = object.borrow().scripted.is_some();
        if let Some(own) = own {
            return Ok(Some(if is_scripted { detached(&own) } else { own }));
        }
        let method = || Some(Py::Method(Box::new(Py::Object(Rc::clone(object))), name.into()));
        if name == "save" && is_scripted && of_class.is_none() {
            return Ok(method());
        }
        match of_class {
            Some(Member::Method(_)) => return Ok(method()),
            Some(Member::Static(function)) => return Ok(Some(Py::Function(function))),
            // A Python function that a class body assigns is a method, a function of C is not. The two are not distinguished here.
            Some(Member::Value(Py::Function(_) | Py::Path(_))) => {
                return self.beyond(file, format!("`{name}`, a function that a class body assigns,"), node);
            }
            Some(Member::Value(value)) => return Ok(Some(value)),
            Some(Member::Property(..)) | None => {}
        }
        let layer = chain.iter().find(|class| !class.file.rules.is_source());
        let is_container = self.container(object)?.is_some();
        if MODULE_METHODS.contains(&name) || (is_container && CONTAINER_METHODS.contains(&name)) {
            return Ok(method());
        }
        if let (Some(layer), "reset_parameters") = (layer, name) {
            let has_parameters = object
                .borrow()
                .attributes
                .values()
                .any(|a| a.kind == AttributeKind::Parameter);
            let layer = layer.simple();
            let is_norm = layer.contains("Norm") && layer != "LocalResponseNorm";
            match has_parameters || is_norm {
                _ if is_container || layer == "MultiheadAttention" => return Ok(None),
                true => return Ok(method()),
                false => return Ok(None),
            }
        }
        let may_have = name.starts_with('_')
            || MODULE_ATTRIBUTES.contains(&name)
            || (layer.is_some() && LAYER_ATTRIBUTES.contains(&name));
        if may_have {
            return self.beyond(file, format!("the attribute `{name}` of a module"), node);
        }
        Ok(None)
    }

    /// Evaluates the expression `super().name`.
    fn super_attribute(
        &mut self,
        file: &Arc<SourceFile>,
        object: &ObjectRef,
        class: &ClassRef,
        name: &str,
        node: &impl Ranged,
    ) -> Result<Py> {
        let this = Py::Object(Rc::clone(object));
        let rest = self.chain_behind(object, class)?;
        match self.inherited(&rest, name)? {
            Some(Member::Method(_)) => {}
            Some(Member::Static(function)) => return Ok(Py::Function(function)),
            Some(Member::Property(getter, _)) => {
                return self.call_function(&getter, Some(this), Vec::new(), Vec::new(), node);
            }
            Some(Member::Value(value)) => return Ok(value),
            None if MODULE_METHODS.contains(&name) || CONTAINER_METHODS.contains(&name) => {}
            None => return self.beyond(file, format!("the attribute `{name}` of `super()`"), node),
        }
        Ok(Py::Method(
            Box::new(Py::Super(Rc::clone(object), class.clone())),
            name.into(),
        ))
    }

    /// Returns the classes after `class` in the method resolution order of the class of `object`.
    pub(super) fn chain_behind(&mut self, object: &ObjectRef, class: &ClassRef) -> Result<Rc<[ClassRef]>> {
        let chain = self.chain(object)?;
        let behind = chain.iter().skip_while(|other| !other.is(class)).skip(1);
        Ok(behind.cloned().collect())
    }

    fn class_attribute(
        &mut self,
        file: &Arc<SourceFile>,
        class: &ClassRef,
        name: &str,
        node: &impl Ranged,
    ) -> Result<Py> {
        if name == "__name__" {
            return Ok(Py::str(class.simple()));
        }
        if name == "_fields"
            && let Some(named) = self.named_class(class)?
        {
            return Ok(named.field_names());
        }
        if let Some(member) = self.enum_member(class, name)? {
            return Ok(member);
        }
        let chain = ancestry(self.names, class)?.unwrap_or_else(|| vec![class.clone()]);
        match self.inherited(&chain, name)? {
            Some(Member::Value(value)) => Ok(value),
            // A static method of a library class may create objects of the class on which it is called.
            Some(Member::Static(function)) if class.file.rules.is_source() && !function.file.rules.is_source() => {
                self.beyond(file, format!("`{name}` of a class"), node)
            }
            Some(Member::Method(function) | Member::Static(function)) => Ok(Py::Function(function)),
            // Methods of `nn.Module`, such as `__init__`, which no class of the chain defines.
            None if MODULE_METHODS.contains(&name) => Ok(Py::Path(format!("torch.nn.Module.{name}").into())),
            _ => self.beyond(file, format!("`{name}` of a class"), node),
        }
    }

    /// Returns the member `name` of the first class in `chain` that has one with this name.
    pub(super) fn inherited(&mut self, chain: &[ClassRef], name: &str) -> Result<Option<Member>> {
        for class in chain {
            if let Some(member) = self.member(class, name)? {
                return Ok(Some(member));
            }
        }
        Ok(None)
    }

    /// Returns the member `name` that the class statement of `class` itself defines.
    fn member(&mut self, class: &ClassRef, name: &str) -> Result<Option<Member>> {
        let Some(def) = class.def() else { return Ok(None) };
        let file = &class.file;
        let value = match self.class_value(class, name) {
            Some(known) => Some(known?),
            None if file.rules.is_source() => None,
            None => match class_constant(class, name).cloned() {
                Some(value) => Some(self.expr(&mut Scope::new(file), &value)?),
                None => None,
            },
        };
        let mut method = None;
        for (index, member) in def.body.iter().enumerate() {
            match member {
                Stmt::FunctionDef(def) if def.name.as_str() == name && !marker_of(file, def)? => method = Some(index),
                Stmt::FunctionDef(_) | Stmt::Expr(_) | Stmt::Pass(_) | Stmt::AnnAssign(_) => {}
                Stmt::Assign(assign) if matches!(assign.targets.as_slice(), [Expr::Name(_)]) => {}
                other if Mentions::of(other).stored.contains(name) => {
                    return self.beyond(file, format!("what this statement gives `{name}` in a class"), other);
                }
                _ => {}
            }
        }
        let Some(index) = method else {
            return Ok(value.map(Member::Value));
        };
        if value.is_some() {
            return self.beyond(file, format!("`{name}`, which a class both defines and assigns,"), def);
        }
        let function = |index| FunctionRef {
            file: Arc::clone(file),
            statement: class.statement,
            method: Some(index),
            class: Some(Rc::new(class.clone())),
            scripted: false,
        };
        let decorators = |index: usize| -> Vec<String> {
            let def = def.body.get(index).and_then(Stmt::as_function_def_stmt);
            let list = def.map(|def| def.decorator_list.as_slice()).unwrap_or_default();
            list.iter().filter_map(|d| dotted(&d.expression)).collect()
        };
        let names = decorators(index);
        if names.iter().any(|name| name == "staticmethod") {
            return Ok(Some(Member::Static(function(index))));
        }
        if names.iter().any(|name| name == "property") {
            return Ok(Some(Member::Property(function(index), None)));
        }
        if names.contains(&format!("{name}.setter")) {
            let getter = (0..index).rev().find(|&other| {
                let def = def.body.get(other).and_then(Stmt::as_function_def_stmt);
                def.is_some_and(|def| def.name.as_str() == name) && decorators(other).iter().any(|d| d == "property")
            });
            return match getter {
                Some(getter) => Ok(Some(Member::Property(function(getter), Some(function(index))))),
                None => self.beyond(file, format!("the property `{name}`"), def),
            };
        }
        Ok(Some(Member::Method(function(index))))
    }

    /// Returns whether a class of the object that the text defines has one of the methods `names`, which Python calls implicitly.
    pub(super) fn defines(&mut self, object: &ObjectRef, names: &[&str]) -> Result<bool> {
        let chain = self.chain(object)?;
        let is_source = |class: &&ClassRef| class.file.rules.is_source();
        Ok(chain
            .iter()
            .filter(is_source)
            .any(|class| names.iter().any(|name| class.method(name).is_some())))
    }

    /// Returns the member `name` of the enumeration `class`; `None` if `class` is no enumeration.
    fn enum_member(&mut self, class: &ClassRef, name: &str) -> Result<Option<Py>> {
        let Some(ty) = self.enum_type(class)? else {
            return Ok(None);
        };
        let TypeKind::Enum(symbol) = self.names.ctx().type_kind(ty) else {
            return Ok(None);
        };
        let name = self.names.ctx().symbol(name);
        let member = self
            .names
            .unit()
            .class(symbol)
            .and_then(|class| class.constants.get(&name));
        Ok(member.map(|member| Py::Member(ty, Box::new(member.clone()))))
    }

    /// Returns the type of the enumeration `class`; `None` if `class` is no enumeration.
    pub(super) fn enum_type(&mut self, class: &ClassRef) -> Result<Option<frazil_ir::TypeId>> {
        let is_enum = class.def().is_some_and(|def| {
            let mut bases = def.bases().iter().filter_map(dotted);
            bases.any(|base| base.rsplit('.').next().is_some_and(|base| base.ends_with("Enum")))
        });
        if !is_enum {
            return Ok(None);
        }
        match self.names.global(&class.qualified)? {
            Some(Global::Type(ty)) => Ok(Some(ty)),
            _ => Ok(None),
        }
    }

    /// Executes the assignment `object.name = value`.
    pub(super) fn set_member(
        &mut self,
        file: &Arc<SourceFile>,
        object: &ObjectRef,
        name: &str,
        value: Py,
        node: &impl Ranged,
    ) -> Result<()> {
        let chain = self.chain(object)?;
        if let Some(Member::Property(_, setter)) = self.inherited(&chain, name)? {
            return match setter {
                Some(_) if matches!(value, Py::Parameter(_) | Py::Object(_)) => {
                    self.beyond(file, format!("a module or parameter for the property `{name}`"), node)
                }
                Some(setter) => {
                    let this = Py::Object(Rc::clone(object));
                    self.call_function(&setter, Some(this), vec![value], Vec::new(), node)
                        .map(|_| ())
                }
                None => self.fail(file, format!("the property `{name}` has no setter"), node),
            };
        }
        let set = set_attribute(&mut object.borrow_mut(), name, value);
        set.or_else(|message| self.fail(file, message, node))
    }
}

/// Returns the attribute `name` of a tensor, if it is not a method.
fn tensor_attribute(tensor: &super::tensor::HostTensor, name: &str) -> Option<Py> {
    Some(match name {
        "shape" => Py::size(tensor.sizes()),
        "data" => Py::Tensor(tensor.alias()),
        "dtype" => Py::Path(tensor.dtype().to_string().into()),
        "device" => Py::Device(frazil_ir::Device::CPU),
        "ndim" => Py::Int(tensor.rank() as i64),
        "is_cuda" | "is_sparse" | "is_quantized" | "is_mkldnn" | "is_meta" => Py::Bool(false),
        "itemsize" => Py::Int(tensor.dtype().size() as i64),
        "T" if tensor.rank() <= 2 => Py::Tensor(match tensor.rank() {
            2 => tensor.transposed(0, 1)?,
            _ => tensor.alias(),
        }),
        "real" if !tensor.dtype().is_complex() => Py::Tensor(tensor.alias()),
        "real" => Py::Tensor(tensor.part(0)?),
        "imag" => Py::Tensor(tensor.part(1)?),
        "mT" if tensor.rank() >= 2 => Py::Tensor(tensor.transposed(-2, -1)?),
        _ => return None,
    })
}

/// Returns the Python value of a constant.
fn plain(constant: &Constant) -> Option<Py> {
    Some(match constant {
        Constant::None => Py::None,
        Constant::Bool(b) => Py::Bool(*b),
        Constant::Int(i) => Py::Int(*i),
        Constant::Float(f) => Py::Float(*f),
        Constant::Str(text) => Py::str(&**text),
        _ => return None,
    })
}

/// Returns the expression that a class statement assigns to `name`.
fn class_constant<'c>(class: &'c ClassRef, name: &str) -> Option<&'c Expr> {
    class.def()?.body.iter().rev().find_map(|member| match member {
        Stmt::Assign(assign) => match assign.targets.as_slice() {
            [Expr::Name(target)] if target.id.as_str() == name => Some(&*assign.value),
            _ => None,
        },
        Stmt::AnnAssign(assign) => match &*assign.target {
            Expr::Name(target) if target.id.as_str() == name => assign.value.as_deref(),
            _ => None,
        },
        _ => None,
    })
}

/// Sets an attribute as `nn.Module` does: a parameter is also registered.
///
/// # Errors
/// PyTorch's exception, with its message.
pub(super) fn set_attribute(object: &mut PyObject, name: &str, value: Py) -> std::result::Result<(), String> {
    let value = match object.scripted {
        Some(_) => detached(&value),
        None => value,
    };
    if let ("training", Py::Bool(training)) = (name, &value) {
        object.mode = Some(*training);
    }
    let before = object
        .attributes
        .get(name)
        .map(|a| (a.kind, matches!(a.value, Py::Object(_))));
    let class = match &value {
        Py::Tensor(tensor) => tensor_type_name(tensor.dtype()),
        other => other.type_name(),
    };
    if !object.is_ready && matches!(value, Py::Parameter(_) | Py::Object(_)) {
        let what = if matches!(value, Py::Object(_)) {
            "module"
        } else {
            "parameters"
        };
        return Err(format!("cannot assign {what} before Module.__init__() call"));
    }
    let kind = match (&value, before) {
        (Py::Parameter(_), _) => AttributeKind::Parameter,
        (Py::Object(_), _) => AttributeKind::Plain,
        (Py::None, Some((kind, _))) => kind,
        (_, Some((AttributeKind::Parameter, _))) => {
            return Err(format!(
                "cannot assign '{class}' as parameter '{name}' (torch.nn.Parameter or None expected)"
            ));
        }
        (Py::Tensor(_), Some((AttributeKind::Buffer, _))) => AttributeKind::Buffer,
        (_, Some((AttributeKind::Buffer, _))) => {
            return Err(format!(
                "cannot assign '{class}' object to buffer '{name}' (torch.Tensor or None expected)"
            ));
        }
        (_, Some((_, true))) => {
            return Err(format!(
                "cannot assign '{class}' as child module '{name}' (torch.nn.Module or None expected)"
            ));
        }
        _ => AttributeKind::Plain,
    };
    put(object, name, Attribute { value, kind });
    Ok(())
}

/// Sets an attribute. If its kind changes, it becomes the last attribute.
pub(super) fn put(object: &mut PyObject, name: &str, attribute: Attribute) {
    let is_module = |value: &Py| matches!(value, Py::Object(_));
    let moves = object
        .attributes
        .get(name)
        .is_some_and(|old| old.kind != attribute.kind || is_module(&old.value) != is_module(&attribute.value));
    if moves {
        object.attributes.shift_remove(name);
    }
    object.attributes.insert(name.to_owned(), attribute);
}
