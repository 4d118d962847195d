//! Evaluation of calls to methods of modules.

use std::rc::Rc;
use std::sync::Arc;

use frazil_ir::AttributeKind;
use ruff_python_ast::ExprCall;
use ruff_text_size::Ranged;

use super::arguments::Arguments;
use super::attributes::{Member, put, set_attribute};
use super::maker::Maker;
use super::value::{Attribute, Hook, ObjectRef, Py, iterator, set_mode};
use super::{globals, states};
use crate::error::Result;
use crate::source::SourceFile;

impl Maker<'_> {
    /// Calls a method of `torch.nn.Module`.
    pub(super) fn module_method(
        &mut self,
        file: &Arc<SourceFile>,
        object: &ObjectRef,
        name: &str,
        arguments: &Arguments,
        call: &ExprCall,
    ) -> Result<Py> {
        let value = self.module_method_inner(file, object, name, arguments, call)?;
        self.finish(
            file,
            value,
            arguments,
            || format!("the method `{name}` of a module"),
            call,
        )
    }

    fn module_method_inner(
        &mut self,
        file: &Arc<SourceFile>,
        object: &ObjectRef,
        name: &str,
        arguments: &Arguments,
        call: &ExprCall,
    ) -> Result<Option<Py>> {
        let this = || Py::Object(Rc::clone(object));
        Ok(Some(match name {
            "__init__" if arguments.is_empty() => {
                let mut object = object.borrow_mut();
                if object.is_ready {
                    // It starts over with the tensors and modules.
                    let is_kept = |a: &Attribute| a.kind == AttributeKind::Plain && !matches!(a.value, Py::Object(_));
                    object.attributes.retain(|_, attribute| is_kept(attribute));
                }
                object.is_ready = true;
                set_mode(&mut object, true);
                Py::None
            }
            "reset_parameters" if arguments.is_empty() => Py::None,
            "register_buffer" | "register_parameter" => {
                let (is_buffer, argument) = match name {
                    "register_buffer" => (true, "tensor"),
                    _ => (false, "param"),
                };
                let Some(Py::Str(name)) = arguments.get(0, "name") else {
                    return Ok(None);
                };
                let value = match (is_buffer, arguments.get(1, argument)) {
                    (_, Some(Py::None)) => Py::None,
                    (true, Some(tensor @ (Py::Tensor(_) | Py::Parameter(_)))) => tensor.clone(),
                    (false, Some(parameter @ Py::Parameter(_))) => parameter.clone(),
                    _ => return Ok(None),
                };
                let is_persistent = match is_buffer {
                    true => arguments.flag(2, "persistent", true),
                    false => Some(true),
                };
                let Some(is_persistent) = is_persistent else {
                    return Ok(None);
                };
                let kind = match is_buffer {
                    true => AttributeKind::Buffer,
                    false => AttributeKind::Parameter,
                };
                let known = object.borrow().attributes.get(&**name).map(|a| a.kind);
                if (known.is_some() && known != Some(kind)) || self.attribute_of_class(object, name)? {
                    return self.fail(file, format!("KeyError: \"attribute '{name}' already exists\""), call);
                }
                let mut object = object.borrow_mut();
                if !object.is_ready {
                    drop(object);
                    return self.fail(file, "cannot assign tensors before Module.__init__() call", call);
                }
                object.transient.retain(|other| **other != **name);
                if !is_persistent {
                    object.transient.push(name.to_string());
                }
                put(&mut object, name, Attribute { value, kind });
                Py::None
            }
            "add_module" | "register_module" => {
                let (Some(Py::Str(name)), Some(child @ (Py::Object(_) | Py::None))) =
                    (arguments.get(0, "name"), arguments.get(1, "module"))
                else {
                    return Ok(None);
                };
                let is_other = |a: &Attribute| !matches!(a.value, Py::Object(_));
                let is_taken =
                    matches!(child, Py::Object(_)) && object.borrow().attributes.get(&**name).is_some_and(is_other);
                if is_taken || self.attribute_of_class(object, name)? {
                    return self.fail(file, format!("KeyError: \"attribute '{name}' already exists\""), call);
                }
                let set = set_attribute(&mut object.borrow_mut(), name, child.clone());
                set.or_else(|message| self.fail(file, message, call))?;
                Py::None
            }
            "append" | "extend" | "update" | "items" | "keys" | "values" => {
                return self.container_method(file, object, name, arguments.first(), call);
            }
            "eval" | "train" => {
                let training = match name {
                    "train" => arguments.flag(0, "mode", true),
                    _ => Some(false),
                };
                let Some(training) = training else { return Ok(None) };
                // `eval` calls `train`, and that the one of each child; classes may have one of their own.
                match name {
                    "eval" => self.set_training(file, object, training, call)?,
                    _ => self.train(file, object, training, call)?,
                }
                this()
            }
            "requires_grad_" => {
                let Some(flag) = arguments.flag(0, "requires_grad", true) else {
                    return Ok(None);
                };
                for (_, parameter) in states::parameters(object) {
                    if let Py::Parameter(tensor) = parameter {
                        tensor.set_requires_grad(flag);
                    }
                }
                this()
            }
            "cpu" | "float" | "double" | "half" | "bfloat16" | "to" => match states::cast(object, name, arguments) {
                Some(()) => this(),
                None => return Ok(None),
            },
            "zero_grad" => {
                arguments.get(0, "set_to_none");
                Py::None
            }
            "share_memory" => this(),
            // The file is not part of what the text makes.
            "save" if object.borrow().scripted.is_some() => {
                arguments.positional();
                arguments.keywords();
                Py::None
            }
            "state_dict" => Py::dict(states::state_dict(object)),
            "load_state_dict" => {
                let (Some(Py::Dict(items)), Some(strict)) =
                    (arguments.get(0, "state_dict"), arguments.flag(1, "strict", true))
                else {
                    return Ok(None);
                };
                let items = items.borrow().clone();
                match states::load(object, &items, strict) {
                    Ok(keys) => keys,
                    Err(message) => return self.raise(file, message, call),
                }
            }
            "children" => iterator(states::children(object).into_iter().map(|(_, child)| child).collect()),
            "named_children" => states::pairs(states::children(object)),
            "modules" => iterator(globals::modules(object).into_iter().map(Py::Object).collect()),
            "named_modules" => {
                let mut found = Vec::new();
                globals::walk_modules(object, &mut |name, module| {
                    found.push((name.to_owned(), Py::Object(Rc::clone(module))));
                });
                states::pairs(found)
            }
            "parameters" | "named_parameters" | "buffers" | "named_buffers" => {
                let is_named = name.starts_with("named_");
                let found = match name.ends_with("parameters") {
                    true => states::parameters(object),
                    false => states::buffers(object),
                };
                // Without those of the modules below it.
                let recurse = match is_named {
                    true => arguments.named("recurse").map_or(Some(true), Py::truth),
                    false => arguments.flag(0, "recurse", true),
                };
                let found = match recurse {
                    Some(true) => found,
                    Some(false) => found.into_iter().filter(|(name, _)| !name.contains('.')).collect(),
                    None => return Ok(None),
                };
                match is_named {
                    true => states::pairs(found),
                    false => iterator(found.into_iter().map(|(_, value)| value).collect()),
                }
            }
            "apply" => {
                let Some(Py::Function(function)) = arguments.get(0, "fn") else {
                    return Ok(None);
                };
                let function = function.clone();
                if self.calls >= super::maker::MAX_CALLS {
                    return self.fail(file, "calls nest too deeply", call);
                }
                // The children come first.
                self.calls += 1;
                for (_, child) in states::children(object) {
                    if let Py::Object(child) = child {
                        let arguments = Arguments::new(vec![Py::Function(function.clone())], Vec::new());
                        self.module_method(file, &child, "apply", &arguments, call)?;
                    }
                }
                self.calls -= 1;
                self.call_function(&function, None, vec![this()], Vec::new(), call)?;
                this()
            }
            "register_forward_hook" | "register_forward_pre_hook" => {
                let function = match arguments.get(0, "hook") {
                    Some(Py::Function(function)) if function.method.is_none() => function.clone(),
                    _ => return self.beyond(file, "a hook that is no function of the text", call),
                };
                let is_before = name == "register_forward_pre_hook";
                let identity = Rc::new(());
                let handle = Py::Handle(Rc::clone(object), Rc::clone(&identity));
                object.borrow_mut().hooks.push(Hook {
                    is_before,
                    function,
                    identity,
                });
                handle
            }
            _ => return Ok(None),
        }))
    }

    /// Executes `object.train(training)`, which the class of `object` may override.
    pub(super) fn set_training(
        &mut self,
        file: &Arc<SourceFile>,
        object: &ObjectRef,
        training: bool,
        node: &impl Ranged,
    ) -> Result<()> {
        let chain = self.chain(object)?;
        match self.inherited(&chain, "train")? {
            Some(Member::Method(method)) => {
                let this = Py::Object(Rc::clone(object));
                self.call_function(&method, Some(this), vec![Py::Bool(training)], Vec::new(), node)
                    .map(drop)
            }
            Some(_) => self.beyond(file, "this `train` of a module", node),
            None => self.train(file, object, training, node),
        }
    }

    /// Executes the base method `nn.Module.train(object, training)`.
    fn train(&mut self, file: &Arc<SourceFile>, object: &ObjectRef, training: bool, node: &impl Ranged) -> Result<()> {
        self.step(file, node)?;
        if self.calls >= super::maker::MAX_CALLS {
            return self.fail(file, "calls nest too deeply", node);
        }
        {
            let mut module = object.borrow_mut();
            set_mode(&mut module, training);
            module.mode = Some(training);
        }
        self.calls += 1;
        for (_, child) in states::children(object) {
            if let Py::Object(child) = child {
                self.set_training(file, &child, training, node)?;
            }
        }
        self.calls -= 1;
        Ok(())
    }

    /// Returns whether the class of an object has a member called `name`, so that no tensor or module can be registered under this name.
    fn attribute_of_class(&mut self, object: &ObjectRef, name: &str) -> Result<bool> {
        let chain = self.chain(object)?;
        Ok(self.inherited(&chain, name)?.is_some())
    }
}
