//! Methods of modules, lists, strings, dictionaries and tensors.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use frazil_ir::{AttributeKind, DType};
use ruff_python_ast::ExprCall;

use super::Maker;
use super::exec::{insert, set_attribute};
use super::value::{Attribute, Hook, ObjectRef, Py};
use super::{globals, states};
use crate::frontend::Result;
use crate::frontend::source::SourceFile;

impl Maker<'_, '_> {
    /// A method that `torch.nn.Module` has.
    pub(super) fn module_method(
        &mut self,
        file: &Arc<SourceFile>,
        object: &ObjectRef,
        name: &str,
        positional: &[Py],
        keywords: &[(String, Py)],
        call: &ExprCall,
    ) -> Result<Py> {
        let argument = |at: usize, name: &str| {
            let by_name = keywords.iter().find(|(keyword, _)| keyword == name);
            positional.get(at).or(by_name.map(|(_, value)| value)).cloned()
        };
        match (name, argument(0, "name")) {
            ("__init__", _) | ("reset_parameters", None) => Ok(Py::None),
            ("register_buffer", Some(buffer)) => {
                let value = argument(1, "tensor").unwrap_or(Py::None);
                let value = match value {
                    Py::Parameter(tensor) => Py::Tensor(tensor),
                    other => other,
                };
                let kind = AttributeKind::Buffer;
                let mut object = object.borrow_mut();
                if argument(2, "persistent").is_some_and(|persistent| !persistent.truth()) {
                    object.transient.push(buffer.text());
                }
                object.attributes.insert(buffer.text(), Attribute { value, kind });
                Ok(Py::None)
            }
            ("register_parameter", Some(parameter)) => {
                let value = argument(1, "param").unwrap_or(Py::None);
                let kind = AttributeKind::Parameter;
                object
                    .borrow_mut()
                    .attributes
                    .insert(parameter.text(), Attribute { value, kind });
                Ok(Py::None)
            }
            ("add_module" | "register_module", Some(child)) => {
                let value = argument(1, "module").unwrap_or(Py::None);
                set_attribute(&mut object.borrow_mut(), &child.text(), value);
                Ok(Py::None)
            }
            ("append", Some(child)) => {
                let mut object = object.borrow_mut();
                let index = object
                    .attributes
                    .keys()
                    .filter(|key| key.parse::<usize>().is_ok())
                    .count();
                set_attribute(&mut object, &index.to_string(), child);
                Ok(Py::None)
            }
            ("eval" | "train", argument) => {
                let training = name == "train" && argument.is_none_or(|mode| mode.truth());
                for module in globals::modules(object) {
                    set_attribute(&mut module.borrow_mut(), "training", Py::Bool(training));
                }
                Ok(Py::Object(Rc::clone(object)))
            }
            ("requires_grad_", argument) => {
                let flag = argument.is_none_or(|flag| flag.truth());
                for (_, parameter) in states::parameters(object) {
                    if let Py::Parameter(tensor) = parameter {
                        tensor.requires_grad.set(flag);
                    }
                }
                Ok(Py::Object(Rc::clone(object)))
            }
            // Only here does a cast make new tensors.
            ("float" | "double" | "to", _) if self.is_compiled(object) => self.beyond(
                file,
                format!("`{name}` of a module that `torch.jit.script` has compiled"),
                call,
            ),
            ("cpu" | "float" | "double" | "to", _) => match states::cast(object, name, positional, keywords) {
                Some(()) => Ok(Py::Object(Rc::clone(object))),
                None => self.beyond(file, format!("this call of the method `{name}` of a module"), call),
            },
            ("zero_grad" | "save" | "share_memory", _) => Ok(Py::None),
            ("state_dict", None) => Ok(Py::Dict(Rc::new(RefCell::new(states::state_dict(object))))),
            ("load_state_dict", _) => {
                let state = argument(0, "state_dict");
                let strict = argument(1, "strict").is_none_or(|strict| strict.truth());
                match state {
                    Some(Py::Dict(items)) => match states::load(object, &items.borrow(), strict) {
                        Ok(result) => Ok(result),
                        Err(message) => self.raise(file, message, call),
                    },
                    _ => self.beyond(file, "this call of `load_state_dict`", call),
                }
            }
            ("children" | "values", None) => Ok(Py::list(states::children(object))),
            ("modules", None) => Ok(Py::list(globals::modules(object).into_iter().map(Py::Object).collect())),
            ("named_modules", None) if keywords.is_empty() => {
                let mut found = Vec::new();
                globals::walk_modules(object, &mut |name, module| {
                    found.push(Py::tuple(vec![Py::str(name), Py::Object(Rc::clone(module))]));
                });
                Ok(Py::list(found))
            }
            ("named_parameters", None) if keywords.is_empty() => Ok(states::pairs(states::parameters(object))),
            ("named_buffers", None) if keywords.is_empty() => Ok(states::pairs(states::buffers(object))),
            ("buffers", None) if keywords.is_empty() => Ok(states::values(states::buffers(object))),
            ("apply", Some(Py::Function(function))) => {
                // The children come first.
                if self.calls >= super::MAX_CALLS {
                    return self.fail(file, "calls nest too deeply", call);
                }
                self.calls += 1;
                for child in Py::Object(Rc::clone(object)).items().unwrap_or_default() {
                    if let Py::Object(child) = child {
                        self.module_method(file, &child, "apply", positional, keywords, call)?;
                    }
                }
                self.calls -= 1;
                self.call_function(&function, None, vec![Py::Object(Rc::clone(object))], Vec::new(), call)?;
                Ok(Py::Object(Rc::clone(object)))
            }
            ("register_forward_hook" | "register_forward_pre_hook", hook) => {
                let function = match hook.or_else(|| argument(0, "hook")) {
                    Some(Py::Function(function)) if function.method.is_none() => function,
                    _ => return self.beyond(file, "a hook that is no function of the text", call),
                };
                let is_before = name == "register_forward_pre_hook";
                object.borrow_mut().hooks.push(Hook { is_before, function });
                // A handle, whose methods are refused together with the module.
                Ok(Py::Method(Box::new(Py::Object(Rc::clone(object))), name.into()))
            }
            ("parameters", None) if keywords.is_empty() => Ok(states::values(states::parameters(object))),
            ("items" | "named_children", None) => {
                let object = object.borrow();
                let children = object
                    .attributes
                    .iter()
                    .filter(|(_, a)| matches!(a.value, Py::Object(_)));
                Ok(Py::list(
                    children
                        .map(|(name, a)| Py::tuple(vec![Py::str(name), a.value.clone()]))
                        .collect(),
                ))
            }
            _ => self.beyond(file, format!("the method `{name}` of a module"), call),
        }
    }

    /// A method of a list, string, dictionary or tensor.
    pub(super) fn value_method(
        &mut self,
        file: &Arc<SourceFile>,
        object: &Py,
        name: &str,
        positional: &[Py],
        keywords: &[(String, Py)],
        call: &ExprCall,
    ) -> Result<Py> {
        let first = positional.first();
        if let (Py::List(_), "append" | "extend" | "insert") = (object, name) {
            let added = if name == "extend" {
                first.map_or(0, Py::weight)
            } else {
                1
            };
            self.charge_bytes(file, added.saturating_mul(size_of::<Py>() as u64), call)?;
        }
        let value = match (object, name, first) {
            (Py::List(items), "append", Some(item)) => {
                items.borrow_mut().push(item.clone());
                Some(Py::None)
            }
            (Py::List(items), "extend", Some(more)) => more.items().map(|more| {
                items.borrow_mut().extend(more);
                Py::None
            }),
            (Py::List(items), "insert", Some(Py::Int(at))) => positional.get(1).map(|item| {
                let mut items = items.borrow_mut();
                let at = usize::try_from(*at).unwrap_or(0).min(items.len());
                items.insert(at, item.clone());
                Py::None
            }),
            (Py::List(items), "pop", None) => items.borrow_mut().pop(),
            (Py::List(items), "copy", None) => Some(Py::list(items.borrow().clone())),
            (Py::Dict(items), "items", None) => {
                let items = items.borrow();
                Some(Py::list(
                    items
                        .iter()
                        .map(|(k, v)| Py::tuple(vec![k.clone(), v.clone()]))
                        .collect(),
                ))
            }
            (Py::Dict(items), "keys", None) => Some(Py::list(items.borrow().iter().map(|(k, _)| k.clone()).collect())),
            (Py::Dict(items), "values", None) => {
                Some(Py::list(items.borrow().iter().map(|(_, v)| v.clone()).collect()))
            }
            (Py::Dict(items), "get", Some(key)) => {
                let found = items
                    .borrow()
                    .iter()
                    .find(|(k, _)| k.equals(key))
                    .map(|(_, v)| v.clone());
                Some(found.or_else(|| positional.get(1).cloned()).unwrap_or(Py::None))
            }
            (Py::Dict(items), "update", Some(Py::Dict(more))) => {
                let more = more.borrow().clone();
                more.into_iter()
                    .for_each(|(key, value)| insert(&mut items.borrow_mut(), key, value));
                Some(Py::None)
            }
            (Py::Str(text), "format", _) => {
                let mut parts = text.split("{}");
                let head = parts.next().unwrap_or_default().to_owned();
                let filled = parts.zip(positional).map(|(part, value)| value.text() + part);
                Some(Py::str(filled.fold(head, |text, part| text + &part)))
            }
            (Py::Str(text), "lower", None) => Some(Py::str(text.to_lowercase())),
            (Py::Str(text), "upper", None) => Some(Py::str(text.to_uppercase())),
            (Py::Str(text), "startswith", Some(Py::Str(start))) => Some(Py::Bool(text.starts_with(&**start))),
            (Py::Str(text), "endswith", Some(Py::Str(end))) => Some(Py::Bool(text.ends_with(&**end))),
            (Py::Str(text), "join", Some(items)) => items
                .items()
                .map(|items| Py::str(items.iter().map(Py::text).collect::<Vec<_>>().join(text))),
            (Py::Tensor(tensor) | Py::Parameter(tensor), ..) if keywords.is_empty() => {
                self.tensor_method(object, tensor, name, positional)
            }
            _ => None,
        };
        match value {
            Some(value) => Ok(value),
            None => self.beyond(file, format!("the method `{name}` of a {}", object.type_name()), call),
        }
    }

    fn tensor_method(
        &mut self,
        object: &Py,
        tensor: &super::tensor::HostTensor,
        name: &str,
        positional: &[Py],
    ) -> Option<Py> {
        let number = |at: usize, default: f64| positional.get(at).map_or(Some(default), Py::as_f64);
        let cast = |dtype| tensor.map(dtype, |x| x).map(Py::Tensor);
        if tensor.is_part && name.ends_with('_') {
            return None;
        }
        if let (Some(f), true) = (super::elements::unary(name), positional.is_empty()) {
            return tensor.map(super::operators::float_of(tensor), f).map(Py::Tensor);
        }
        match name {
            "float" => cast(DType::Float),
            "double" => cast(DType::Double),
            "long" => cast(DType::Long),
            "int" => cast(DType::Int),
            "bool" => cast(DType::Bool),
            "clone" => cast(tensor.dtype),
            "detach" | "contiguous" | "cpu" => Some(object.clone()),
            "requires_grad_" => {
                let flag = positional.first().is_none_or(Py::truth);
                tensor.requires_grad.set(flag);
                Some(object.clone())
            }
            "copy_" => {
                let (Py::Tensor(from) | Py::Parameter(from)) = positional.first()? else {
                    return None;
                };
                tensor.copy_from(from)?;
                Some(object.clone())
            }
            "numel" => Some(Py::Int(tensor.data.borrow().len() as i64)),
            "dim" => Some(Py::Int(tensor.sizes.len() as i64)),
            "size" => match positional.first() {
                Some(at) => {
                    let at = at.as_int()?;
                    let at = if at < 0 { at + tensor.sizes.len() as i64 } else { at };
                    tensor.sizes.get(usize::try_from(at).ok()?).map(|&n| Py::Int(n))
                }
                None => Some(Py::tuple(tensor.sizes.iter().map(|&n| Py::Int(n)).collect())),
            },
            "view" | "reshape" => {
                let sizes = match positional {
                    [list @ (Py::List(_) | Py::Tuple(_))] => list.ints()?,
                    many => many.iter().map(Py::as_int).collect::<Option<_>>()?,
                };
                tensor.view(&sizes).map(Py::Tensor)
            }
            "unsqueeze" => {
                let at = positional.first()?.as_int()?;
                let at = if at < 0 { at + tensor.sizes.len() as i64 + 1 } else { at };
                let mut sizes = tensor.sizes.clone();
                let at = usize::try_from(at).ok().filter(|&at| at <= sizes.len())?;
                sizes.insert(at, 1);
                tensor.view(&sizes).map(Py::Tensor)
            }
            "fill_" => {
                let value = number(0, 0.0)?;
                tensor.fill(|_| value);
                Some(object.clone())
            }
            "zero_" => {
                tensor.fill(|_| 0.0);
                Some(object.clone())
            }
            "uniform_" => {
                let (low, high) = (number(0, 0.0)?, number(1, 1.0)?);
                tensor.fill(|_| low + (high - low) * self.random.uniform());
                Some(object.clone())
            }
            "normal_" => {
                let (mean, deviation) = (number(0, 0.0)?, number(1, 1.0)?);
                tensor.fill(|_| mean + deviation * self.random.normal());
                Some(object.clone())
            }
            "mul_" | "div_" | "add_" | "sub_" => {
                let other = positional.first()?.as_f64()?;
                let old = tensor.data.borrow().clone();
                tensor.fill(|i| {
                    let x = old.get(i).copied().unwrap_or(0.0);
                    match name {
                        "mul_" => x * other,
                        "div_" => x / other,
                        "add_" => x + other,
                        _ => x - other,
                    }
                });
                Some(object.clone())
            }
            "abs" => tensor.map(tensor.dtype, f64::abs).map(Py::Tensor),
            "neg" => tensor.map(tensor.dtype, |x| -x).map(Py::Tensor),
            "t" if tensor.sizes.len() == 2 => tensor.transposed(0, 1).map(Py::Tensor),
            "transpose" => {
                let (a, b) = (positional.first()?.as_int()?, positional.get(1)?.as_int()?);
                tensor.transposed(a, b).map(Py::Tensor)
            }
            "triu" | "tril" => {
                let diagonal = positional.first().map_or(Some(0), Py::as_int)?;
                tensor.triangle(name == "triu", diagonal).map(Py::Tensor)
            }
            "item" => {
                let data = tensor.data.borrow();
                let &[x] = data.as_slice() else { return None };
                Some(match tensor.dtype {
                    DType::Bool => Py::Bool(x != 0.0),
                    dtype if dtype.is_floating_point() => Py::Float(x),
                    _ => Py::Int(x as i64),
                })
            }
            "tolist" => {
                let data = tensor.data.borrow();
                let item = |&x: &f64| {
                    if tensor.dtype.is_floating_point() {
                        Py::Float(x)
                    } else {
                        Py::Int(x as i64)
                    }
                };
                (tensor.sizes.len() == 1).then(|| Py::List(Rc::new(RefCell::new(data.iter().map(item).collect()))))
            }
            _ => None,
        }
    }
}
