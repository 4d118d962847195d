//! Modules, functions and methods as objects of steps.

use std::cell::RefCell;
use std::rc::Rc;

use super::objects::{Failure, Kwargs, Object, Outcome};
use super::steps::applied;
use crate::language::OPERATOR;
use frazil::ir::Graph;
use frazil::{CallError, Engine, EngineKind, EngineOptions, HookId, Loaded, Model, PassOptions, Tensor, Value};
use frazil_recorded::compare;

/// What all names of one module share.
struct Shared {
    loaded: Loaded,
    model: Model,
    /// The instance that calls run on; what they change is part of the module.
    engine: Option<Engine>,
    /// An instance on native code, which makes the same calls; none where hooks were registered.
    native: Option<Engine>,
    hooked: bool,
}

/// A module with all that its calls changed, or a part of it.
#[derive(Clone)]
pub struct Module {
    shared: Rc<RefCell<Shared>>,
    /// The path of a submodule; empty for the module itself.
    path: String,
    /// The method, where the object is one; a function's name.
    method: Option<String>,
}

fn join(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        _ => format!("{path}.{name}"),
    }
}

fn tensors(pairs: Vec<(String, Tensor)>) -> Object {
    Object::pairs(
        pairs
            .into_iter()
            .map(|(name, tensor)| (name, Object::Value(tensor.into()))),
    )
}

/// The arguments of a call: the one at `index` or of that name. What none of `known` names is an error.
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
        let value = self.get(index, name).map(Object::value).transpose()?;
        value
            .and_then(|value| value.as_tensor())
            .ok_or_else(|| Failure::lacks("this argument"))
    }
}

fn engine(model: &Model, kind: EngineKind) -> frazil::Result<Engine> {
    let options = EngineOptions {
        kind,
        methods: model.root().method_names().into_iter().map(str::to_owned).collect(),
        ..EngineOptions::default()
    };
    model.engine(&options)
}

impl Module {
    pub fn new(model: Model) -> Module {
        Module::of(Loaded::Model(model.clone()), model, None)
    }

    /// The function `name` of a source.
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
            hooked: false,
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

    /// Whether the object is a function of a source without a module.
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

    /// The module as it is after the calls so far.
    pub fn model(&self) -> Result<Model, Failure> {
        let shared = &mut *self.shared.borrow_mut();
        if let Some(engine) = &mut shared.engine {
            shared.model = engine.snapshot()?;
        }
        Ok(shared.model.clone())
    }

    /// The module, where it is one and no part of another.
    pub fn whole(&self, what: &str) -> Result<Model, Failure> {
        match (self.path.is_empty(), self.is_function()) {
            (true, false) => self.model(),
            (true, true) => Ok(self.shared.borrow().loaded.model(what)?.clone()),
            _ => Err(Failure::lacks(&format!("`{what}` of a submodule"))),
        }
    }

    /// The model that an archive of the module or function holds.
    pub fn saved(&self) -> Result<Model, Failure> {
        match (&self.method, self.is_function()) {
            (Some(name), true) => Ok(self.shared.borrow().loaded.to_model(name)?),
            _ => self.whole("save"),
        }
    }

    /// Changes the module; later calls run on what it is then.
    fn change<R>(&self, what: &str, change: impl FnOnce(&mut Model) -> frazil::Result<R>) -> Result<R, Failure> {
        let mut model = self.whole(what)?;
        let result = change(&mut model)?;
        self.becomes(model);
        Ok(result)
    }

    /// Puts `model` in the module's place.
    pub fn becomes(&self, model: Model) {
        let shared = &mut *self.shared.borrow_mut();
        shared.engine = None;
        shared.native = None;
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

    fn with_engine<R>(&self, run: impl FnOnce(&mut Engine) -> Result<R, CallError>) -> Result<R, Failure> {
        let shared = &mut *self.shared.borrow_mut();
        let engine = match shared.engine.take() {
            Some(engine) => engine,
            None => engine(&shared.model, EngineKind::Interpreter)?,
        };
        Ok(run(shared.engine.insert(engine))?)
    }

    /// `module(args)`, or a call of the method or function.
    pub fn call(&self, args: &[Object], kwargs: &Kwargs) -> Outcome {
        let args = args.iter().map(Object::value).collect::<Result<Vec<_>, _>>()?;
        let named = kwargs.iter().map(|(name, object)| Ok((name.as_str(), object.value()?)));
        let named = named.collect::<Result<Vec<_>, Failure>>()?;
        let native = self.native_result(&args, &named)?;
        let result = self.with_engine(|engine| self.run(engine, &args, &named));
        match (&result, native) {
            (Ok(value), Some(Ok(native))) => compare::values(value, &native, OPERATOR)
                .map_err(|difference| Failure::new(format!("native code differs: {difference}")))?,
            (Ok(_), Some(Err(e))) => return Err(Failure::new(format!("native code: {e}"))),
            (Err(_), Some(Ok(native))) => return Err(Failure::new(format!("native code gives {native:?}"))),
            _ => {}
        }
        Ok(Object::Value(result?))
    }

    fn run(&self, engine: &mut Engine, args: &[Value], named: &[(&str, Value)]) -> Result<Value, CallError> {
        match &self.method {
            None if self.path.is_empty() => engine.call_module_with(args, named),
            None => engine.call_with(&join(&self.path, "forward"), args, named),
            Some(method) => engine.call_with(&join(&self.path, method), args, named),
        }
    }

    /// The same call on native code, which is for modules in evaluation mode without hooks of ours.
    fn native_result(
        &self,
        args: &[Value],
        named: &[(&str, Value)],
    ) -> Result<Option<Result<Value, CallError>>, Failure> {
        let model = self.model()?;
        let shared = &mut *self.shared.borrow_mut();
        if !cfg!(feature = "codegen") || shared.hooked || model.root().is_training() || !self.path.is_empty() {
            return Ok(None);
        }
        let native = match shared.native.take() {
            Some(native) => native,
            None => engine(&model, EngineKind::Native)?,
        };
        // A call may write to its arguments, which the interpreter's call gets, too.
        let copies = args.iter().map(|value| match value {
            Value::Tensor(cell) => Ok(cell.get().deep_copy_preserving_strides()?.into()),
            other => Ok(other.clone()),
        });
        let copies = copies.collect::<Result<Vec<Value>, frazil::Error>>()?;
        Ok(Some(self.run(shared.native.insert(native), &copies, named)))
    }

    pub fn remove_hook(&self, hook: HookId) -> bool {
        self.with_engine(|engine| Ok(engine.remove_hook(hook))).unwrap_or(false)
    }

    /// The graph of the method, or of `forward`.
    fn graph(&self) -> Result<Graph, Failure> {
        let name = self.method.as_deref().unwrap_or("forward");
        self.model()?;
        let shared = self.shared.borrow();
        Ok(match &shared.loaded {
            Loaded::Graphs(_) => shared.loaded.graph(name)?.clone(),
            Loaded::Model(_) => shared.model.graph(&join(&self.path, name))?.clone(),
        })
    }

    /// The name of a function with its module's.
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

    /// `module.name`.
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

    /// `module.name(args)`.
    pub fn call_method(&self, name: &str, args: &[Object], kwargs: &Kwargs) -> Outcome {
        if self.method.is_some() {
            return Err(Failure::lacks(&format!("`{name}` of functions")));
        }
        let own = self.converted(name, args, kwargs);
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

    /// Methods that tell about the module and change nothing.
    fn described(&self, name: &str, args: &[Object], kwargs: &Kwargs) -> Option<Outcome> {
        let known: &[&str] = match name {
            "parameters" | "buffers" | "named_parameters" | "named_buffers" => &["recurse"],
            "get_parameter" | "get_buffer" | "get_submodule" => &["target"],
            "children" | "named_children" | "modules" | "named_modules" | "extra_repr" => &[],
            _ => return None,
        };
        Some(self.description(name, args, kwargs, known))
    }

    fn description(&self, name: &str, args: &[Object], kwargs: &Kwargs, known: &[&str]) -> Outcome {
        let arguments = Arguments::of(name, args, kwargs, known)?;
        let model = self.model()?;
        let module = model.root().get_submodule(&self.path)?;
        let second = |pairs: Object| {
            let items = pairs.items().unwrap_or_default().into_iter();
            Object::List(items.filter_map(|pair| pair.items()?.pop()).collect())
        };
        let submodule = |path: &str| self.part(join(&self.path, path), None);
        let parts = |names: Vec<String>| {
            Object::pairs(names.into_iter().map(|path| {
                let object = if path.is_empty() {
                    Object::Module(self.clone())
                } else {
                    submodule(&path)
                };
                (path, object)
            }))
        };
        let children = || {
            parts(
                module
                    .named_children()
                    .into_iter()
                    .map(|(name, _)| name.to_owned())
                    .collect(),
            )
        };
        let modules = || parts(module.named_modules().into_iter().map(|(name, _)| name).collect());
        Ok(match name {
            "named_parameters" => tensors(module.named_parameters(arguments.flag(0, "recurse", true)?)?),
            "named_buffers" => tensors(module.named_buffers(arguments.flag(0, "recurse", true)?)?),
            "parameters" => second(tensors(module.named_parameters(arguments.flag(0, "recurse", true)?)?)),
            "buffers" => second(tensors(module.named_buffers(arguments.flag(0, "recurse", true)?)?)),
            "named_children" => children(),
            "children" => second(children()),
            "named_modules" => modules(),
            "modules" => second(modules()),
            "get_parameter" => Object::Value(module.get_parameter(&arguments.text(0, "target")?)?.into()),
            "get_buffer" => Object::Value(module.get_buffer(&arguments.text(0, "target")?)?.into()),
            "get_submodule" => {
                let path = arguments.text(0, "target")?;
                module.get_submodule(&path)?;
                match path.is_empty() {
                    true => Object::Module(self.clone()),
                    false => submodule(&path),
                }
            }
            _ => Object::str(module.extra_repr()),
        })
    }

    /// Methods that add to the module, and those that are not there.
    fn changed(&self, name: &str, args: &[Object], kwargs: &Kwargs) -> Option<Outcome> {
        let known: &[&str] = match name {
            "register_buffer" => &["name", "tensor", "persistent"],
            "register_parameter" => &["name", "param"],
            "add_module" | "register_module" | "set_submodule" => &["name", "module"],
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

    /// Methods that add to the module.
    fn extends(&self, name: &str, arguments: &Arguments<'_>) -> Result<(), Failure> {
        let key = arguments.text(0, "name")?;
        match name {
            "define" => self.change(name, |m| m.define(&key)),
            "register_buffer" => {
                let (tensor, persistent) = (arguments.tensor(1, "tensor")?, arguments.flag(2, "persistent", true)?);
                self.change(name, |m| m.register_buffer(&key, &tensor, persistent))
            }
            "register_parameter" => {
                let tensor = arguments.tensor(1, "param")?;
                self.change(name, |m| m.register_parameter(&key, &tensor, tensor.requires_grad()))
            }
            _ => {
                let Some(Object::Module(child)) = arguments.get(1, "module") else {
                    return Err(Failure::lacks("children that are no modules"));
                };
                let child = child.whole(name)?;
                self.change(name, |m| match name {
                    "set_submodule" => m.set_submodule(&key, &child),
                    _ => m.add_module(&key, &child),
                })
            }
        }
    }

    /// Methods that say why they are not there.
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

    fn hooked(&self, name: &str, args: &[Object], kwargs: &Kwargs) -> Outcome {
        let arguments = Arguments::of(name, args, kwargs, &["hook"])?;
        if !self.path.is_empty() {
            return Err(Failure::lacks("hooks of submodules"));
        }
        let Some(Object::Function(tree)) = arguments.get(0, "hook").cloned() else {
            return Err(Failure::lacks("hooks that are no functions"));
        };
        self.shared.borrow_mut().hooked = true;
        let raised = |failure: Failure| CallError::Raised(failure.to_string());
        let module = || Object::Value(Value::None);
        let hook = self.with_engine(|engine| {
            Ok(match name {
                "register_forward_hook" => engine.register_forward_hook(move |args, result| {
                    let args = Object::Value(Value::tuple(args.to_vec()));
                    let given = applied(&tree, vec![module(), args, Object::Value(result.clone())]);
                    match given.and_then(|object| object.value()).map_err(raised)? {
                        Value::None => Ok(None),
                        value => Ok(Some(value)),
                    }
                }),
                _ => engine.register_forward_pre_hook(move |args| {
                    let given = applied(&tree, vec![module(), Object::Value(Value::tuple(args.to_vec()))]);
                    match given.and_then(|object| object.value()).map_err(raised)? {
                        Value::None => Ok(None),
                        Value::Tuple(items) => Ok(Some(items.items.to_vec())),
                        value => Ok(Some(vec![value])),
                    }
                }),
            })
        })?;
        Ok(Object::Handle(self.clone(), hook))
    }

    /// The names of the methods, in order.
    pub fn methods(&self) -> Result<Vec<String>, Failure> {
        let model = self.model()?;
        let module = model.root().get_submodule(&self.path)?;
        let mut names: Vec<String> = module.method_names().into_iter().map(str::to_owned).collect();
        names.sort();
        Ok(names)
    }
}
