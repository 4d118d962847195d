//! Calls of modules, with the hooks around `forward`: scripted ones and registered ones.

use crate::engine::Engine;
use crate::engine::hooks::{CallArguments, HookId, HookOptions, Receiver};
use crate::engine::instance::CalledModule;
use crate::error::{CallError, Error, Result};
use crate::support::limited::within;
use frazil_limits::Phase;
use frazil_runtime::Value;

impl Engine {
    /// Registers a hook that runs on the arguments of every later call of the module (`Module.register_forward_pre_hook`) and may replace
    /// them. Calls of the method `forward` run no hooks.
    ///
    /// ```
    /// use frazil::Value;
    ///
    /// # let model = frazil::Session::new().script("f.py".as_ref(), "def f(x: int): return x + 1\n", &[])?.to_model("f")?;
    /// # let options = frazil::EngineOptions::default().kind(frazil::EngineKind::Interpreter);
    /// # let mut engine = model.engine(&options)?;
    /// let hook = engine.register_forward_pre_hook(|args| Ok(args[0].as_int().map(|x| vec![Value::Int(10 * x)])));
    /// assert!(matches!(engine.call_module(&[Value::Int(4)])?, Value::Int(41)));
    /// assert!(matches!(engine.call("forward", &[Value::Int(4)])?, Value::Int(5)));
    /// assert!(engine.remove_hook(hook) && !engine.remove_hook(hook));
    /// assert!(matches!(engine.call_module(&[Value::Int(4)])?, Value::Int(5)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn register_forward_pre_hook(
        &mut self,
        mut hook: impl FnMut(&[Value]) -> Result<Option<Vec<Value>>, CallError> + Send + 'static,
    ) -> HookId {
        let hook = move |call: &CallArguments| {
            let new = hook(&call.args)?;
            Ok(new.map(|args| CallArguments { args, ..call.clone() }))
        };
        self.shared.hooks.add_before(Receiver::Root, false, Box::new(hook))
    }

    /// Registers a hook that runs on the arguments and the result of every later call of the module (`Module.register_forward_hook`) and may
    /// replace the result. Calls of the method `forward` run no hooks.
    ///
    /// ```
    /// use frazil::Value;
    ///
    /// # let model = frazil::Session::new().script("f.py".as_ref(), "def f(x: int): return x + 1\n", &[])?.to_model("f")?;
    /// # let options = frazil::EngineOptions::default().kind(frazil::EngineKind::Interpreter);
    /// # let mut engine = model.engine(&options)?;
    /// engine.register_forward_hook(|_args, result| Ok(result.as_int().map(|y| Value::Int(-y))));
    /// assert!(matches!(engine.call_module(&[Value::Int(4)])?, Value::Int(-5)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn register_forward_hook(
        &mut self,
        mut hook: impl FnMut(&[Value], &Value) -> Result<Option<Value>, CallError> + Send + 'static,
    ) -> HookId {
        let hook = move |call: &CallArguments, result: &Value| hook(&call.args, result);
        self.shared
            .hooks
            .add_after(Receiver::Root, &HookOptions::default(), Box::new(hook))
    }

    /// Registers a hook that runs on the arguments, including keyword arguments, of every later call of the module in `options`, and may replace them:
    /// `register_forward_pre_hook(..., with_kwargs=True)`.
    ///
    /// Like hooks of PyTorch on script modules, it runs when the caller calls the module, but not when compiled code does.
    ///
    /// ```
    /// use frazil::{CallArguments, HookOptions, Value};
    ///
    /// # let model = frazil::Session::new().script("f.py".as_ref(), "def f(x: int, k: int = 1): return x + k\n", &[])?.to_model("f")?;
    /// # let options = frazil::EngineOptions::default().kind(frazil::EngineKind::Interpreter);
    /// # let mut engine = model.engine(&options)?;
    /// // of `def forward(self, x: int, k: int = 1): return x + k`
    /// engine.register_forward_pre_hook_with(&HookOptions::default(), |call| {
    ///     let kwargs = vec![("k".to_owned(), Value::Int(7))];
    ///     Ok(Some(CallArguments { kwargs, ..call.clone() }))
    /// })?;
    /// assert!(matches!(engine.call_module(&[Value::Int(4)])?, Value::Int(11)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such module, or if `options` have `always_call`, which applies to forward hooks only.
    pub fn register_forward_pre_hook_with(
        &mut self,
        options: &HookOptions,
        hook: impl FnMut(&CallArguments) -> Result<Option<CallArguments>, CallError> + Send + 'static,
    ) -> Result<HookId> {
        if options.always_call {
            return Err(Error::Call(
                "Module.register_forward_pre_hook() got an unexpected keyword argument 'always_call'".to_owned(),
            ));
        }
        let receiver = self.receiver_of(options)?;
        Ok(self.shared.hooks.add_before(receiver, options.prepend, Box::new(hook)))
    }

    /// Registers a hook that runs on the arguments, including keyword arguments, and the result of every later call of the module in `options`. It may replace
    /// the result: `register_forward_hook(..., with_kwargs=True)`.
    ///
    /// Like hooks of PyTorch on script modules, it runs when the caller calls the module, but not when compiled code does.
    ///
    /// ```
    /// use frazil::{HookOptions, Value};
    ///
    /// # let source = "class Net(nn.Module):\n def __init__(self):\n  super().__init__()\n  self.fc = nn.Identity()\n \
    /// # def forward(self, x: int): return x\n";
    /// # let model = frazil::Session::new().script("net.py".as_ref(), source, &[])?.to_model("forward")?;
    /// # let options = frazil::EngineOptions::default().kind(frazil::EngineKind::Interpreter);
    /// # let mut engine = model.engine(&options)?;
    /// engine.register_forward_hook_with(&HookOptions::default(), |_call, y| Ok(y.as_int().map(|y| Value::Int(y + 1))))?;
    /// let first = HookOptions::default().prepend(true);
    /// engine.register_forward_hook_with(&first, |_call, y| Ok(y.as_int().map(|y| Value::Int(y * 10))))?;
    /// assert!(matches!(engine.call_module(&[Value::Int(4)])?, Value::Int(41)));
    /// let of_child = HookOptions::default().module("fc".to_owned());
    /// assert!(engine.register_forward_hook_with(&of_child, |_call, _y| Ok(None)).is_ok());
    /// let of_nothing = HookOptions::default().module("head".to_owned());
    /// assert!(engine.register_forward_hook_with(&of_nothing, |_call, _y| Ok(None)).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such module.
    pub fn register_forward_hook_with(
        &mut self,
        options: &HookOptions,
        hook: impl FnMut(&CallArguments, &Value) -> Result<Option<Value>, CallError> + Send + 'static,
    ) -> Result<HookId> {
        let receiver = self.receiver_of(options)?;
        Ok(self.shared.hooks.add_after(receiver, options, Box::new(hook)))
    }

    /// Returns the module to which hooks with the options `options` belong.
    fn receiver_of(&self, options: &HookOptions) -> Result<Receiver> {
        let _inside = frazil_rt::gate::enter()?;
        self.instance().receiver(options)
    }

    /// Removes a hook. Returns false if it has already been removed.
    ///
    /// See [`register_forward_pre_hook`](Self::register_forward_pre_hook) for an example.
    pub fn remove_hook(&mut self, hook: HookId) -> bool {
        self.shared.hooks.remove(hook)
    }

    /// Calls the module, like `module(...)` in Python:
    /// - the pre-hooks of all modules, the scripted ones of the module, and those registered with the engine for it;
    /// - `forward`;
    /// - the forward hooks in the same order.
    ///
    /// Without hooks, this is a call of `forward`.
    ///
    /// ```
    /// # use frazil::Value;
    /// # let source = "def f(x: int, y: int = 3): return x * y\n";
    /// # let model = frazil::Session::new().script("f.py".as_ref(), source, &[])?.to_model("f")?;
    /// # let options = frazil::EngineOptions::default().kind(frazil::EngineKind::Interpreter);
    /// # let mut engine = model.engine(&options)?;
    /// engine.register_forward_hook(|_args, result| Ok(result.as_int().map(|y| Value::Int(-y))));
    /// assert!(matches!(engine.call_module(&[Value::Int(4)])?, Value::Int(-12)));
    /// assert!(matches!(engine.call("forward", &[Value::Int(4)])?, Value::Int(12)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`call`](Self::call); also if a hook raises.
    pub fn call_module(&mut self, args: &[Value]) -> Result<Value, CallError> {
        self.call_module_with(args, &[])
    }

    /// Calls the module with positional and keyword arguments. As in PyTorch, hooks receive positional arguments without defaults.
    ///
    /// ```
    /// # use frazil::Value;
    /// # let source = "def f(x: int, y: int = 3): return x * y\n";
    /// # let model = frazil::Session::new().script("f.py".as_ref(), source, &[])?.to_model("f")?;
    /// # let options = frazil::EngineOptions::default().kind(frazil::EngineKind::Interpreter);
    /// # let mut engine = model.engine(&options)?;
    /// assert!(matches!(engine.call_module_with(&[Value::Int(4)], &[("y", Value::Int(2))])?, Value::Int(8)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`call_module`](Self::call_module).
    pub fn call_module_with(&mut self, args: &[Value], named: &[(&str, Value)]) -> Result<Value, CallError> {
        let _inside = frazil_rt::gate::enter().map_err(Error::from)?;
        let limits = self.limits();
        within(&limits, Phase::Call, || self.call_module_within(args, named))
    }

    fn call_module_within(&mut self, args: &[Value], named: &[(&str, Value)]) -> Result<Value, CallError> {
        if self.shared.hooks.is_empty(Receiver::Root) && self.finds_kept_code("forward", args, named) {
            return self.run("forward", args);
        }
        match self.module_called("")? {
            Some(module) => self.call_with_hooks(&module, args, named),
            None => self.call_method("forward", args, named),
        }
    }

    /// Calls a module. Hooks before `forward` may replace the arguments, hooks after it the result.
    pub(crate) fn call_with_hooks(
        &mut self,
        module: &CalledModule,
        args: &[Value],
        named: &[(&str, Value)],
    ) -> Result<Value, CallError> {
        if self.shared.hooks.is_empty(module.receiver) && module.own.is_empty() {
            return self.call_method(&module.forward, args, named);
        }
        let mut call = CallArguments::new(&module.path, args, named);
        let (mut result, mut called) = (Value::None, 0);
        let outcome = self.around_forward(module, &mut call, &mut result, &mut called);
        match outcome {
            Ok(()) => Ok(result),
            Err(error) => {
                self.shared.hooks.always(module.receiver, &call, result, called);
                Err(error)
            }
        }
    }

    /// Runs the hooks and `forward`. Stores the progress of the call in `call`, `result` and `called`.
    fn around_forward(
        &mut self,
        module: &CalledModule,
        call: &mut CallArguments,
        result: &mut Value,
        called: &mut usize,
    ) -> Result<(), CallError> {
        self.shared.hooks.before(Receiver::All, call)?;
        for hook in &module.own.before {
            let new = self.call_method(hook, &[Value::tuple(call.args.clone())], &[])?;
            if let Some(args) = CallArguments::positional(&new) {
                call.args = args;
            }
        }
        self.shared.hooks.before(module.receiver, call)?;
        let named: Vec<(&str, Value)> = call.kwargs.iter().map(|(n, v)| (n.as_str(), v.clone())).collect();
        *result = self.call_method(&module.forward, &call.args, &named)?;
        self.shared.hooks.after(Receiver::All, call, result, called)?;
        for hook in &module.own.after {
            match self.call_method(hook, &[Value::tuple(call.args.clone()), result.clone()], &[])? {
                Value::None => {}
                new => *result = new,
            }
        }
        self.shared.hooks.after(module.receiver, call, result, called)
    }
}
