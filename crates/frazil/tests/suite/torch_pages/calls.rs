//! Calls of modules, functions and methods, and hooks around them.

use std::cell::RefCell;

use super::module::{Arguments, Module, join};
use super::objects::{Failure, Kwargs, Object, Outcome};
use super::steps::{Lambda, applied};
use crate::language::OPERATOR;
use frazil::{CallArguments, CallError, Engine, EngineKind, EngineOptions, HookId, HookOptions, Model, Value};
use frazil_recorded::compare;

/// A hook that a step registered, for all engines of its module.
pub(super) struct Registered {
    number: usize,
    before: bool,
    with_kwargs: bool,
    options: HookOptions,
    lambda: Lambda,
    /// Its ids in the interpreter's engine, and in the native one.
    ids: [Option<HookId>; 2],
}

/// The hooks of all modules, and the number of changes: engines are made anew after a change.
#[derive(Default)]
struct Everywhere {
    hooks: Vec<Registered>,
    changes: usize,
}

thread_local! {
    static EVERYWHERE: RefCell<Everywhere> = RefCell::default();
}

/// Removes the hooks of all modules.
pub fn forget_hooks() {
    EVERYWHERE.with_borrow_mut(|all| {
        all.changes += usize::from(!all.hooks.is_empty());
        all.hooks.clear();
    });
}

/// Removes a hook of all modules.
pub fn remove_hook(number: usize) {
    EVERYWHERE.with_borrow_mut(|all| {
        all.changes += 1;
        all.hooks.retain(|hook| hook.number != number);
    });
}

/// Registers a hook as `torch.nn.modules.module.register_module_forward_hook` does, or the function for pre-hooks.
pub fn hook_everywhere(name: &str, args: &[Object], kwargs: &Kwargs) -> Outcome {
    let mut hook = registered(name.ends_with("pre_hook"), args, kwargs, String::new())?;
    hook.options.all_modules = true;
    EVERYWHERE.with_borrow_mut(|all| {
        all.changes += 1;
        hook.number = all.changes;
        all.hooks.push(hook);
        Ok(Object::HandleOfAll(all.changes))
    })
}

/// Returns the hook that the arguments of a registration describe.
fn registered(before: bool, args: &[Object], kwargs: &Kwargs, module: String) -> Result<Registered, Failure> {
    let known: &[&str] = match before {
        true => &["hook", "prepend", "with_kwargs"],
        false => &["hook", "prepend", "with_kwargs", "always_call"],
    };
    let arguments = Arguments::of("register", args, kwargs, known)?;
    let Some(Object::Function(lambda)) = arguments.get(0, "hook").cloned() else {
        return Err(Failure::lacks("hooks that are no functions"));
    };
    Ok(Registered {
        number: 0,
        before,
        with_kwargs: arguments.flag(2, "with_kwargs", false)?,
        options: HookOptions::default()
            .module(module)
            .prepend(arguments.flag(1, "prepend", false)?)
            .always_call(!before && arguments.flag(3, "always_call", false)?),
        lambda,
        ids: [None; 2],
    })
}

impl Registered {
    /// Drops the engines.
    pub(super) fn forget(&mut self) {
        self.ids = [None; 2];
    }

    fn register(&mut self, engine: &mut Engine, model: &Model, which: usize) -> frazil::Result<()> {
        let (lambda, with_kwargs) = (self.lambda.clone(), self.with_kwargs);
        let model = model.clone();
        let given = move |call: &CallArguments, result: Option<&Value>| {
            let mut args = vec![Module::new(model.clone()).part(call.module.clone(), None)];
            args.push(Object::Value(Value::tuple(call.args.clone())));
            if with_kwargs {
                let pair = |(name, value): &(String, Value)| (Object::str(name), Object::Value(value.clone()));
                args.push(Object::Dict(call.kwargs.iter().map(pair).collect()));
            }
            args.extend(result.map(|result| Object::Value(result.clone())));
            let given = applied(&lambda, args).and_then(|object| object.value());
            given.map_err(|failure| CallError::Raised(failure.to_string()))
        };
        let session = engine.model()?.session().clone();
        let id = match self.before {
            true => engine.register_forward_pre_hook_with(&self.options, move |call| {
                let result = given(call, None)?;
                match with_kwargs {
                    true => CallArguments::with_kwargs(&session, &result),
                    false => Ok(CallArguments::positional(&result).map(|args| CallArguments { args, ..call.clone() })),
                }
            }),
            false => engine.register_forward_hook_with(&self.options, move |call, result| {
                let new = given(call, Some(result))?;
                Ok(Some(new).filter(|new| !matches!(new, Value::None)))
            }),
        };
        self.ids[which] = Some(id?);
        Ok(())
    }
}

fn engine(model: &Model, kind: EngineKind, submodules: &[String], hooks: &mut [Registered]) -> frazil::Result<Engine> {
    let own = model.root().method_names().into_iter().map(str::to_owned);
    let options = EngineOptions::default()
        .kind(kind)
        .methods(own.chain(submodules.iter().cloned()).collect());
    let mut engine = model.engine(&options)?;
    let which = usize::from(kind == EngineKind::Native);
    EVERYWHERE.with_borrow_mut(|all| {
        let mut hooks = all.hooks.iter_mut().chain(hooks);
        hooks.try_for_each(|hook| hook.register(&mut engine, model, which))
    })?;
    Ok(engine)
}

impl Module {
    pub(super) fn with_engine<R>(&self, run: impl FnOnce(&mut Engine) -> Result<R, CallError>) -> Result<R, Failure> {
        let shared = &mut *self.shared.borrow_mut();
        let engine = match shared.engine.take() {
            Some(engine) => engine,
            None => engine(&shared.model, EngineKind::Interpreter, &[], &mut shared.hooks)?,
        };
        Ok(run(shared.engine.insert(engine))?)
    }

    /// Calls `module(args)`, or the method or function.
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

    /// Returns the path of the callee: empty for the module itself.
    fn called(&self) -> String {
        match &self.method {
            None => self.path.clone(),
            Some(method) => join(&self.path, method),
        }
    }

    fn run(&self, engine: &mut Engine, args: &[Value], named: &[(&str, Value)]) -> Result<Value, CallError> {
        match self.called().as_str() {
            "" => engine.call_module_with(args, named),
            path => engine.call_with(path, args, named),
        }
    }

    /// Makes the same call on native code, for modules in evaluation mode.
    fn native_result(
        &self,
        args: &[Value],
        named: &[(&str, Value)],
    ) -> Result<Option<Result<Value, CallError>>, Failure> {
        let model = self.model()?;
        let shared = &mut *self.shared.borrow_mut();
        let (everywhere, changes) = EVERYWHERE.with_borrow(|all| (!all.hooks.is_empty(), all.changes));
        if shared.changes_seen != changes {
            shared.changes_seen = changes;
            shared.engine = None;
            shared.native = None;
        }
        let hooked = everywhere || !shared.hooks.is_empty();
        if hooked {
            // Hooks run once per call. A native engine without the current state is made anew.
            shared.native = None;
        }
        if !cfg!(feature = "codegen") || hooked || model.root().is_training() {
            return Ok(None);
        }
        if !self.path.is_empty() && !shared.native_methods.contains(&self.called()) {
            // An engine supports only the methods that it was made for.
            shared.native_methods.push(self.called());
            shared.native = None;
        }
        let native = match shared.native.take() {
            Some(native) => native,
            None => engine(&model, EngineKind::Native, &shared.native_methods, &mut shared.hooks)?,
        };
        // A call may write to its arguments, which the interpreter's call also receives.
        let copies = args.iter().map(|value| match value {
            Value::Tensor(cell) => Ok(cell.get().deep_copy_preserving_strides()?.into()),
            other => Ok(other.clone()),
        });
        let copies = copies.collect::<Result<Vec<Value>, frazil::Error>>()?;
        Ok(Some(self.run(shared.native.insert(native), &copies, named)))
    }

    /// Removes a hook from all engines.
    pub fn remove_hook(&self, number: usize) {
        let shared = &mut *self.shared.borrow_mut();
        shared.hooks.retain(|hook| {
            if hook.number == number {
                for (engine, id) in [&mut shared.engine, &mut shared.native].into_iter().zip(hook.ids) {
                    if let (Some(engine), Some(id)) = (engine, id) {
                        engine.remove_hook(id);
                    }
                }
            }
            hook.number != number
        });
    }

    pub(super) fn hooked(&self, name: &str, args: &[Object], kwargs: &Kwargs) -> Outcome {
        let mut hook = registered(name == "register_forward_pre_hook", args, kwargs, self.path.clone())?;
        let model = self.model()?;
        let shared = &mut *self.shared.borrow_mut();
        shared.hooks_so_far += 1;
        hook.number = shared.hooks_so_far;
        for (which, engine) in [&mut shared.engine, &mut shared.native].into_iter().enumerate() {
            if let Some(engine) = engine {
                hook.register(engine, &model, which)?;
            }
        }
        let number = hook.number;
        shared.hooks.push(hook);
        Ok(Object::Handle(self.clone(), number))
    }
}
