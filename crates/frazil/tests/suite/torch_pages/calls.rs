//! Calls of modules, functions and methods, and hooks around them.

use super::module::{Arguments, Module, join};
use super::objects::{Failure, Kwargs, Object, Outcome};
use super::steps::applied;
use crate::language::OPERATOR;
use frazil::{CallError, Engine, EngineKind, EngineOptions, HookId, Model, Value};
use frazil_recorded::compare;

fn engine(model: &Model, kind: EngineKind) -> frazil::Result<Engine> {
    let options = EngineOptions {
        kind,
        methods: model.root().method_names().into_iter().map(str::to_owned).collect(),
        ..EngineOptions::default()
    };
    model.engine(&options)
}

impl Module {
    pub(super) fn with_engine<R>(&self, run: impl FnOnce(&mut Engine) -> Result<R, CallError>) -> Result<R, Failure> {
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

    pub(super) fn hooked(&self, name: &str, args: &[Object], kwargs: &Kwargs) -> Outcome {
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
}
