//! Modules, functions and methods as objects of steps.

use std::cell::RefCell;
use std::rc::Rc;

use super::calls::Registered;
use super::objects::{Failure, Kwargs, Object, Outcome};
use frazil::ir::Graph;
use frazil::{Engine, Loaded, Model, PassOptions, Tensor, Value};

/// State that all references to one module share.
pub(super) struct Shared {
    pub(super) loaded: Loaded,
    pub(super) model: Model,
    /// The instance that calls run on; its changes are part of the module.
    pub(super) engine: Option<Engine>,
    /// A native instance, which makes the same calls, and the methods of submodules that it supports.
    pub(super) native: Option<Engine>,
    pub(super) native_methods: Vec<String>,
    pub(super) hooks: Vec<Registered>,
    pub(super) hooks_so_far: usize,
    pub(super) changes_seen: usize,
}

/// A module with all changes of its calls, or a part of it.
#[derive(Clone)]
pub struct Module {
    pub(super) shared: Rc<RefCell<Shared>>,
    /// The path of a submodule; empty for the module itself.
    pub(super) path: String,
    /// The method, if the object is one; a function's name.
    pub(super) method: Option<String>,
}

pub(super) fn join(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        _ => format!("{path}.{name}"),
    }
}

/// Access to the arguments of a call by index or name. Names other than `known` are an error.
pub struct Arguments<'a> {
    args: &'a [Object],
    kwargs: &'a Kwargs,
}

impl<'a> Arguments<'a> {
    pub fn of(method: &str, args: &'a [Object], kwargs: &'a Kwargs, known: &[&str]) -> Result<Arguments<'a>, Failure> {
        if let Some((name, _)) = kwargs.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            return Err(Failure::lacks(&format!("`{name}` of `{method}`")));
        }
        match args.len() > known.len() {
            true => Err(Failure::lacks(&format!("so many arguments of `{method}`"))),
            false => Ok(Arguments { args, kwargs }),
        }
    }

    pub fn get(&self, index: usize, name: &str) -> Option<&'a Object> {
        let named = self.kwargs.iter().find(|(found, _)| found == name);
        self.args.get(index).or(named.map(|(_, object)| object))
    }

    pub fn flag(&self, index: usize, name: &str, default: bool) -> Result<bool, Failure> {
        match self.get(index, name) {
            None => Ok(default),
            Some(Object::Value(Value::Bool(flag))) => Ok(*flag),
            Some(_) => Err(Failure::lacks(&format!("`{name}` other than a bool"))),
        }
    }

    pub fn text(&self, index: usize, name: &str) -> Result<String, Failure> {
        self.get(index, name).ok_or_else(|| Failure::lacks(name))?.text()
    }

    pub fn tensor(&self, index: usize, name: &str) -> Result<Tensor, Failure> {
        self.optional(index, name)?
            .ok_or_else(|| Failure::lacks("this argument"))
    }

    /// Returns a tensor or `None`.
    pub fn optional(&self, index: usize, name: &str) -> Result<Option<Tensor>, Failure> {
        match self.get(index, name).map(Object::value).transpose()? {
            Some(Value::None) => Ok(None),
            value => value
                .and_then(|value| value.as_tensor())
                .map(Some)
                .ok_or_else(|| Failure::lacks("this argument")),
        }
    }
}

impl Module {
    pub fn new(model: Model) -> Module {
        Module::of(Loaded::Model(model.clone()), model, None)
    }

    /// Returns the function `name` of a source.
    pub fn function(loaded: Loaded, name: &str) -> Module {
        let model = match &loaded {
            Loaded::Model(model) => model.clone(),
            Loaded::Graphs(graphs) => graphs.to_model(),
        };
        Module::of(loaded, model, Some(name.to_owned()))
    }

    fn of(loaded: Loaded, model: Model, method: Option<String>) -> Module {
        let shared = Shared {
            loaded,
            model,
            engine: None,
            native: None,
            native_methods: Vec::new(),
            hooks: Vec::new(),
            hooks_so_far: 0,
            changes_seen: 0,
        };
        Module {
            shared: Rc::new(RefCell::new(shared)),
            path: String::new(),
            method,
        }
    }

    pub fn part(&self, path: String, method: Option<String>) -> Object {
        Object::Module(Module {
            shared: Rc::clone(&self.shared),
            path,
            method,
        })
    }

    pub fn path(&self) -> &str {
        &self.path
    }

    pub fn is(&self, other: &Module) -> bool {
        Rc::ptr_eq(&self.shared, &other.shared) && (&self.path, &self.method) == (&other.path, &other.method)
    }

    /// Returns whether the object is a function of a source without a module.
    fn is_function(&self) -> bool {
        matches!(self.shared.borrow().loaded, Loaded::Graphs(_))
    }

    pub fn original_name(&self) -> String {
        let model = self.model();
        let Ok(model) = model else { return String::new() };
        let found = model
            .root()
            .get_submodule(&self.path)
            .map(|m| m.original_name().to_owned());
        found.unwrap_or_default()
    }

    /// Returns the module with the changes of all calls so far.
    pub fn model(&self) -> Result<Model, Failure> {
        let shared = &mut *self.shared.borrow_mut();
        if let Some(engine) = &mut shared.engine {
            shared.model = engine.snapshot()?;
        }
        Ok(shared.model.clone())
    }

    /// Returns the module, if it is not a part of another.
    pub fn whole(&self, what: &str) -> Result<Model, Failure> {
        match (self.path.is_empty(), self.is_function()) {
            (true, false) => self.model(),
            (true, true) => Ok(self.shared.borrow().loaded.model(what)?.clone()),
            _ => Err(Failure::lacks(&format!("`{what}` of a submodule"))),
        }
    }

    /// Returns the model after saving and loading the module or function.
    pub fn saved(&self) -> Result<Model, Failure> {
        match (&self.method, self.is_function()) {
            (Some(name), true) => Ok(self.shared.borrow().loaded.to_model(name)?),
            _ => self.whole("save"),
        }
    }

    /// Modifies the module; later calls run on the modified one.
    pub(super) fn change<R>(
        &self,
        what: &str,
        change: impl FnOnce(&mut Model) -> frazil::Result<R>,
    ) -> Result<R, Failure> {
        let mut model = self.whole(what)?;
        let result = change(&mut model)?;
        self.becomes(model);
        Ok(result)
    }

    /// Replaces the module by `model`.
    pub fn becomes(&self, model: Model) {
        let shared = &mut *self.shared.borrow_mut();
        shared.engine = None;
        shared.native = None;
        shared.hooks.iter_mut().for_each(Registered::forget);
        shared.loaded = Loaded::Model(model.clone());
        shared.model = model;
    }

    /// Sets the attribute `name`.
    pub fn set(&self, name: &str, value: &Value) -> Result<(), Failure> {
        let mut model = self.model()?;
        model.set_attribute(&join(&self.path, name), value)?;
        self.becomes(model);
        Ok(())
    }

    /// Returns the graph of the method, or of `forward`.
    fn graph(&self) -> Result<Graph, Failure> {
        let name = self.method.as_deref().unwrap_or("forward");
        self.model()?;
        let shared = self.shared.borrow();
        Ok(match &shared.loaded {
            Loaded::Graphs(_) => shared.loaded.graph(name)?.clone(),
            Loaded::Model(_) => shared.model.graph(&join(&self.path, name))?.clone(),
        })
    }

    /// Returns the qualified name of a function.
    fn qualified_name(&self) -> Outcome {
        let shared = self.shared.borrow();
        let Loaded::Graphs(graphs) = &shared.loaded else {
            return Err(Failure::lacks("names of methods"));
        };
        let ctx = graphs.session().ctx();
        let mut names = graphs.unit().functions().map(|(_, function)| ctx.name(function.name));
        let name = names.find(|name| name.rsplit('.').next() == self.method.as_deref());
        Ok(Object::str(name.unwrap_or_default()))
    }

    fn code(&self) -> Result<String, Failure> {
        let name = self.method.as_deref().unwrap_or("forward");
        let model = self.model()?;
        if !self.is_function() {
            return Ok(Loaded::Model(model).code(Some(&join(&self.path, name)), false)?);
        }
        // All functions of the source are printed.
        let text = self.shared.borrow().loaded.code(None, false)?;
        let begin = text
            .find(&format!("def {name}("))
            .ok_or_else(|| Failure::lacks("code"))?;
        let end = text[begin..].find("\ndef ").map_or(text.len(), |end| begin + end + 1);
        Ok(text[begin..end].to_owned())
    }

    /// Returns the value of `module.name`.
    pub fn attribute(&self, name: &str) -> Outcome {
        match name {
            "graph" => return Ok(Object::Graph(Box::new(self.graph()?))),
            "code" => return Ok(Object::str(self.code()?)),
            "code_with_constants" => {
                let path = join(&self.path, self.method.as_deref().unwrap_or("forward"));
                let (code, constants) = self.model()?.root().code_with_constants(&path)?;
                let pairs = constants
                    .iter()
                    .map(|(name, value)| (Object::str(name), Object::Value(value.clone())));
                return Ok(Object::Tuple(vec![Object::str(code), Object::Dict(pairs.collect())]));
            }
            "name" if self.method.is_some() => return Ok(Object::str(self.method.as_deref().unwrap_or_default())),
            "qualified_name" if self.method.is_some() => return self.qualified_name(),
            "inlined_graph" => {
                let method = self.method.as_deref().unwrap_or("forward");
                let mut loaded = match self.is_function() {
                    true => self.shared.borrow().loaded.clone(),
                    false => Loaded::Model(self.whole("inlined_graph")?),
                };
                loaded.run_passes("inline", &PassOptions::default())?;
                return Ok(Object::Graph(Box::new(loaded.graph(method)?.clone())));
            }
            "original_name" => return Ok(Object::str(self.original_name())),
            _ => {}
        }
        if self.method.is_some() {
            return Err(Failure::lacks(&format!("`{name}` of functions")));
        }
        let model = self.model()?;
        let path = join(&self.path, name);
        if model.root().get_submodule(&path).is_ok() {
            return Ok(self.part(path, None));
        }
        let has_method = model.root().get_submodule(&self.path)?.has_method(name);
        match model.root().attribute(&path) {
            Ok(value) => Ok(Object::Value(value)),
            Err(frazil::Error::Tensor(frazil::runtime::TensorError::Meta)) => {
                Ok(Object::Meta(model.root().tensor_info(&path)?))
            }
            Err(_) if has_method => Ok(self.part(self.path.clone(), Some(name.to_owned()))),
            Err(e) => Err(e.into()),
        }
    }

    /// Calls `module.name(args)`.
    pub fn call_method(&self, name: &str, args: &[Object], kwargs: &Kwargs) -> Outcome {
        if self.method.is_some() {
            return Err(Failure::lacks(&format!("`{name}` of functions")));
        }
        let own = self.members(name, args, kwargs);
        let own = own.or_else(|| self.converted(name, args, kwargs));
        if let Some(result) = own.or_else(|| self.stateful(name, args, kwargs)) {
            return result;
        }
        if let Some(result) = self.described(name, args, kwargs) {
            return result;
        }
        if let Some(result) = self.changed(name, args, kwargs) {
            return result;
        }
        match name {
            "save" => super::files::save(self, args),
            "register_forward_hook" | "register_forward_pre_hook" => self.hooked(name, args, kwargs),
            _ => self.attribute(name)?.call(args, kwargs),
        }
    }

    /// Calls methods that describe the module without changing it.
    fn described(&self, name: &str, args: &[Object], kwargs: &Kwargs) -> Option<Outcome> {
        let known: &[&str] = match name {
            "get_parameter" | "get_buffer" | "get_submodule" => &["target"],
            "extra_repr" => &[],
            _ => return None,
        };
        Some(self.description(name, args, kwargs, known))
    }

    fn description(&self, name: &str, args: &[Object], kwargs: &Kwargs, known: &[&str]) -> Outcome {
        let arguments = Arguments::of(name, args, kwargs, known)?;
        let model = self.model()?;
        let module = model.root().get_submodule(&self.path)?;
        Ok(match name {
            "get_parameter" => Object::Value(module.get_parameter(&arguments.text(0, "target")?)?.into()),
            "get_buffer" => Object::Value(module.get_buffer(&arguments.text(0, "target")?)?.into()),
            "get_submodule" => {
                let path = arguments.text(0, "target")?;
                module.get_submodule(&path)?;
                match path.is_empty() {
                    true => Object::Module(self.clone()),
                    false => self.part(join(&self.path, &path), None),
                }
            }
            _ => Object::str(module.extra_repr()),
        })
    }

    /// Calls methods that change the module, and those that are unavailable.
    fn changed(&self, name: &str, args: &[Object], kwargs: &Kwargs) -> Option<Outcome> {
        let known: &[&str] = match name {
            "register_buffer" => &["name", "tensor", "persistent"],
            "register_parameter" => &["name", "param"],
            "add_module" | "register_module" => &["name", "module"],
            "set_submodule" => &["target", "module", "strict"],
            "define" => &["src"],
            "get_extra_state" | "set_extra_state" | "cuda" | "xpu" | "ipu" => {
                return Some(self.refused(name));
            }
            _ => return None,
        };
        let run = || -> Outcome {
            self.extends(name, &Arguments::of(name, args, kwargs, known)?)?;
            Ok(Object::Value(Value::None))
        };
        Some(run())
    }

    /// Calls methods that add to the module.
    fn extends(&self, name: &str, arguments: &Arguments<'_>) -> Result<(), Failure> {
        let key = arguments.text(0, if name == "set_submodule" { "target" } else { "name" })?;
        match name {
            "define" => self.change(name, |m| m.define(&key)),
            "register_buffer" => {
                let (tensor, persistent) = (arguments.optional(1, "tensor")?, arguments.flag(2, "persistent", true)?);
                self.change_part(|m| m.register_buffer(&key, tensor.as_ref(), persistent))
            }
            "register_parameter" => {
                let tensor = arguments.optional(1, "param")?;
                let requires_grad = tensor.as_ref().is_none_or(Tensor::requires_grad);
                self.change_part(|m| m.register_parameter(&key, tensor.as_ref(), requires_grad))
            }
            _ => {
                let Some(Object::Module(child)) = arguments.get(1, "module") else {
                    return Err(Failure::lacks("children that are no modules"));
                };
                // A part of the module itself is that part.
                let mut model = self.model()?;
                let of = match Rc::ptr_eq(&self.shared, &child.shared) {
                    true => model.clone(),
                    false => child.model()?,
                };
                let child = of.root().get_submodule(&child.path)?;
                let mut owner = model.submodule_mut(&self.path)?;
                match name {
                    "set_submodule" if arguments.flag(2, "strict", false)? => owner.replace_submodule(&key, child),
                    "set_submodule" => owner.set_submodule(&key, child),
                    _ => owner.add_module(&key, child),
                }?;
                self.becomes(model);
                Ok(())
            }
        }
    }

    /// Calls methods that are unavailable, and returns the reason.
    fn refused(&self, name: &str) -> Outcome {
        let model = self.whole(name)?;
        let refusal = match name {
            "get_extra_state" => model.get_extra_state(),
            "set_extra_state" => model.set_extra_state(),
            "cuda" => model.cuda(),
            "xpu" => model.xpu(),
            _ => model.ipu(),
        };
        refusal?;
        Ok(Object::Module(self.clone()))
    }

    /// Returns the names of the methods, in order.
    pub fn methods(&self) -> Result<Vec<String>, Failure> {
        let model = self.model()?;
        let module = model.root().get_submodule(&self.path)?;
        let mut names: Vec<String> = module.method_names().into_iter().map(str::to_owned).collect();
        names.sort();
        Ok(names)
    }
}
