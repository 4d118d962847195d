//! The model of an engine, which is read and frozen on first use.

use crate::engine::hooks::{HookOptions, Receiver};
use crate::engine::options::{EngineKind, EngineOptions};
use crate::error::{Error, Result};
use crate::model::{FreezeOptions, Model, PassOptions};
use crate::script_module::join;
use crate::session::Session;
use crate::support::once::Once;
use frazil_ir::{ObjectId, SymbolId};
use frazil_passes::{FreezeError, PassError, TorchScriptError};
use frazil_runtime::interp::{Delegate, Interpreter};
use frazil_runtime::{Registry, Signature};
use frazil_syntax::FileIdentity;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The model of an engine before it is frozen: in memory, or a file that is read on first use.
pub(crate) struct ModelSource {
    session: Session,
    /// Identity of the file, if the model is the unchanged content of a file.
    origin: Option<FileIdentity>,
    /// The path of the file.
    path: PathBuf,
    /// The model, if it was already read when the engine was created.
    given: Option<Model>,
    /// Whether the model is put into evaluation mode.
    pub(crate) eval: bool,
    /// The model whose methods are called; in evaluation mode, if `eval` is set.
    read: Once<Model>,
}

impl ModelSource {
    /// Returns the source for a model in memory.
    pub(crate) fn model(model: &Model) -> ModelSource {
        ModelSource {
            session: model.session().clone(),
            origin: model.origin().cloned(),
            path: PathBuf::new(),
            given: Some(model.clone()),
            eval: false,
            read: Once::default(),
        }
    }

    /// Returns the source for the archive at `path`, which is read when the model is first needed.
    pub(crate) fn archive(session: &Session, path: &Path, origin: FileIdentity) -> ModelSource {
        ModelSource {
            session: session.clone(),
            origin: Some(origin),
            path: path.to_owned(),
            given: None,
            eval: false,
            read: Once::default(),
        }
    }

    pub(crate) fn origin(&self) -> Option<&FileIdentity> {
        self.origin.as_ref()
    }

    /// Returns the model, if it has already been read.
    pub(crate) fn known(&self) -> Option<&Model> {
        self.read.get().or(self.given.as_ref())
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// Returns the model, which is read at the first call.
    fn read(&self) -> Result<&Model> {
        self.read.get_or_make(|| self.read_now())
    }

    fn read_now(&self) -> Result<Model> {
        let mut model = match &self.given {
            Some(model) => model.clone(),
            None => {
                let model = self.session.load(&self.path)?;
                // Code that runs already was compiled from the earlier content of the file.
                if model.origin() != self.origin.as_ref() {
                    let path = self.path.display();
                    return Err(Error::Unsupported(format!(
                        "{path} has changed since the engine was made"
                    )));
                }
                model
            }
        };
        if self.eval {
            // Objects that restore themselves also restore their training flag.
            model = model.restored_as_known()?;
            model.eval();
        }
        Ok(model)
    }
}

/// A function that creates a delegate for an interpreter with the operators of a registry.
pub(crate) type MakeDelegate = Box<dyn Fn(&Arc<Registry>) -> Arc<dyn Delegate> + Send + Sync>;

/// The model as it runs. With a directory of compiled code, it is read and frozen only when a method must be compiled or interpreted.
pub(crate) struct Instance {
    source: ModelSource,
    options: EngineOptions,
    /// Creates delegates that compile subgraphs of those methods that do not run natively as a whole.
    subgraphs: Option<MakeDelegate>,
    running: Once<Running>,
}

/// Caches of one handle: methods and modules that it has called, by name.
#[derive(Default)]
pub(crate) struct Names {
    /// Signatures of the called methods, by the method's path.
    signatures: Vec<(String, Arc<Signature>)>,
    /// Modules that have been called, by path.
    called: Vec<(String, Arc<CalledModule>)>,
}

/// The hooks that a module's class defines, which run before and after `forward`, in order.
#[derive(Default)]
pub(crate) struct OwnHooks {
    pub(crate) before: Vec<String>,
    pub(crate) after: Vec<String>,
}

impl OwnHooks {
    /// Returns the hooks that the class of the module at `path` defines, as paths of methods.
    pub(crate) fn of(model: &Model, object: ObjectId, path: &str) -> OwnHooks {
        let module = model.module();
        let names = |hooks: &[SymbolId]| hooks.iter().map(|&name| join(path, module.ctx().name(name))).collect();
        let class = module.class_of(object);
        OwnHooks {
            before: class.map_or_else(Vec::new, |c| names(&c.forward_pre_hooks)),
            after: class.map_or_else(Vec::new, |c| names(&c.forward_hooks)),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.before.is_empty() && self.after.is_empty()
    }
}

/// A module that is called directly, with the hooks of its class.
pub(crate) struct CalledModule {
    pub(crate) receiver: Receiver,
    pub(crate) path: String,
    /// The path of the module's method `forward`.
    pub(crate) forward: String,
    pub(crate) own: OwnHooks,
}

/// A model that is ready to run, with its interpreter.
pub(crate) struct Running {
    /// The model. For native engines, it is frozen.
    pub(crate) model: Model,
    pub(crate) interpreter: Interpreter,
}

impl Instance {
    /// Returns an instance. `subgraphs` compiles subgraphs of methods that do not run natively as a whole.
    pub(crate) fn new(source: ModelSource, options: &EngineOptions, subgraphs: Option<MakeDelegate>) -> Instance {
        Instance {
            source,
            options: options.clone(),
            subgraphs,
            running: Once::default(),
        }
    }

    /// Returns the module for which hooks with these options are registered. For the root module, the model is not read.
    ///
    /// # Errors
    /// If there is no module of that path.
    pub(crate) fn receiver(&self, options: &HookOptions) -> Result<Receiver> {
        match options.module.as_str() {
            _ if options.all_modules => Ok(Receiver::All),
            "" => Ok(Receiver::Root),
            path => {
                let model = self.source.read()?;
                Ok(receiver(model, model.root().get_submodule(path)?.id()))
            }
        }
    }

    pub(crate) fn source(&self) -> &ModelSource {
        &self.source
    }

    /// Returns the model before freezing, which is read on first use. Its methods have the same types as the methods of the frozen model.
    pub(crate) fn model(&self) -> Result<&Model> {
        self.source.read()
    }

    /// Checks the backing file. Callers must do this before they return a result.
    ///
    /// # Errors
    /// If the model's archive has changed since it was loaded.
    pub(crate) fn check(&self) -> Result<()> {
        match self.source.known() {
            Some(model) => model.backing().check(),
            None => Ok(()),
        }
    }

    pub(crate) fn running(&self) -> Result<&Running> {
        self.running
            .get_or_make(|| Running::new(self.source.read()?, &self.options, self.subgraphs.as_ref()))
    }
}

impl Names {
    /// Returns the signature of `method`. Reads the model.
    ///
    /// # Errors
    /// If there is no such method, or its source does not compile.
    pub(crate) fn signature(&mut self, instance: &Instance, method: &str) -> Result<Arc<Signature>> {
        if let Some((_, known)) = self.signatures.iter().find(|(name, _)| name == method) {
            return Ok(Arc::clone(known));
        }
        let model = instance.model()?;
        let Some(signature) = Signature::of_method(model.module(), method).map(Arc::new) else {
            return Err(model.no_method(method));
        };
        self.signatures.push((method.to_owned(), Arc::clone(&signature)));
        Ok(signature)
    }

    /// Returns the module at `path`: the root for the empty path, or a submodule. `None` if the path denotes a method or nothing. Reads the model.
    pub(crate) fn module_called(&mut self, instance: &Instance, path: &str) -> Result<Option<Arc<CalledModule>>> {
        if self.signatures.iter().any(|(name, _)| name == path) {
            return Ok(None);
        }
        if let Some((_, known)) = self.called.iter().find(|(name, _)| name == path) {
            return Ok(Some(Arc::clone(known)));
        }
        let model = instance.model()?;
        let Some(object) = module_at(model, path) else {
            return Ok(None);
        };
        let module = Arc::new(CalledModule {
            receiver: receiver(model, object),
            path: path.to_owned(),
            forward: join(path, "forward"),
            own: OwnHooks::of(model, object, path),
        });
        self.called.push((path.to_owned(), Arc::clone(&module)));
        Ok(Some(module))
    }
}

impl Running {
    fn new(model: &Model, options: &EngineOptions, subgraphs: Option<&MakeDelegate>) -> Result<Running> {
        let model = match options.kind {
            EngineKind::Interpreter => model.restored()?,
            EngineKind::Native => freeze_for(model, options)?,
        };
        let registry = model.session().registry().clone();
        let delegate = subgraphs.filter(|_| !options.strict).map(|make| make(&registry));
        let interpreter =
            Interpreter::with_module(registry, model.module().clone())?.with_threads(options.compile.threads);
        let interpreter = match delegate {
            Some(delegate) => interpreter.with_delegate(delegate),
            None => interpreter,
        };
        Ok(Running { model, interpreter })
    }
}

/// Freezes the model, and preserves all methods that will be called. A frozen model is returned unchanged. A module that cannot be frozen (in training mode,
/// or with submodules selected at run time) is only inlined: its methods are compiled with attributes as inputs.
fn freeze_for(model: &Model, options: &EngineOptions) -> Result<Model> {
    let inlined = || {
        Ok(model
            .restored()?
            .run_passes("inline,erase-shape-information,dce", &PassOptions::default())?
            .0)
    };
    if frazil_passes::is_training(model.module()) {
        return inlined();
    }
    let mut freeze = FreezeOptions::default();
    freeze.freeze.preserve = kept(options);
    for name in &mut freeze.freeze.preserve {
        // A submodule that will be called needs its `forward` and its hooks; a preserved one is kept as a whole.
        if !options.preserve.contains(name) && module_at(model, name).is_some() {
            *name = join(name, "forward");
        }
    }
    match model.freeze(&freeze) {
        Err(Error::Pass(PassError::Ir(TorchScriptError::Freeze(FreezeError::ContainerIndex)))) => inlined(),
        other => other,
    }
}

/// Returns the names that freezing preserves, in order: `forward` first, if there is one. Without `forward` and other names, all methods are preserved.
pub(crate) fn kept(options: &EngineOptions) -> Vec<String> {
    let methods = options.methods.iter().filter(|name| *name != "forward");
    let mut names: Vec<String> = methods.chain(&options.preserve).cloned().collect();
    names.sort();
    names.dedup();
    names
}

fn receiver(model: &Model, object: ObjectId) -> Receiver {
    match object == model.module().root {
        true => Receiver::Root,
        false => Receiver::Object(object),
    }
}

/// Returns the module at the dotted path `path`, if `path` is not the path of a method.
fn module_at(model: &Model, path: &str) -> Option<ObjectId> {
    match model.module().method_at(path) {
        Some(_) => None,
        None => Some(model.root().get_submodule(path).ok()?.id()),
    }
}
