//! A model with its state and its engines, shared by all handles of Python.

use crate::arrays::Kind;
use crate::errors::OrRaise;
use crate::hooks::HookList;
use crate::interrupt::without_gil;
use crate::options::Options;
use frazil::{CallError, Engine, EngineKind, MemberOptions, Model};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A model that was loaded.
pub(crate) struct Instance {
    state: Mutex<State>,
    /// The kind of arrays of attributes and of results of calls without arrays.
    pub(crate) kind: Kind,
}

struct State {
    model: Model,
    options: Options,
    /// What is called beside the methods of the root: paths of submodules and of their methods.
    paths: Vec<String>,
    hooks: HookList,
    engines: Option<Engines>,
    kind: Kind,
}

/// The engines of one version of the model.
struct Engines {
    /// Made first; others share its code and its state.
    first: Engine,
    idle: Vec<Engine>,
    version: Arc<()>,
    /// Whether calls may have changed attributes since they were last copied to the model.
    is_dirty: bool,
}

/// Locks without holding the interpreter while it waits: whoever holds the lock may need it.
fn lock<'a>(py: Python<'_>, state: &'a Mutex<State>) -> MutexGuard<'a, State> {
    match state.try_lock() {
        Ok(guard) => guard,
        Err(_) => {
            // The guard stays with this thread; only the waiting happens detached.
            struct Guard<'a>(MutexGuard<'a, State>);
            // SAFETY: `detach` runs its closure on the same thread.
            unsafe impl Send for Guard<'_> {}
            py.detach(|| Guard(state.lock().unwrap_or_else(PoisonError::into_inner)))
                .0
        }
    }
}

impl Instance {
    pub(crate) fn new(model: Model, options: Options, kind: Kind) -> Arc<Instance> {
        Arc::new(Instance {
            state: Mutex::new(State {
                model,
                options,
                paths: Vec::new(),
                hooks: HookList::default(),
                engines: None,
                kind,
            }),
            kind,
        })
    }

    /// Options of calls.
    pub(crate) fn options(&self, py: Python<'_>) -> Options {
        lock(py, &self.state).options.clone()
    }

    /// The model with its attributes as they are now.
    pub(crate) fn model(&self, py: Python<'_>) -> PyResult<Model> {
        let mut state = lock(py, &self.state);
        state.read_back().or_raise(py)?;
        Ok(state.model.clone())
    }

    /// The model as it was before calls changed attributes: its classes and methods.
    pub(crate) fn definitions(&self, py: Python<'_>) -> Model {
        lock(py, &self.state).model.clone()
    }

    /// Changes the model. Code that has been compiled is discarded.
    pub(crate) fn change<R>(&self, py: Python<'_>, change: impl FnOnce(&mut Model) -> PyResult<R>) -> PyResult<R> {
        let mut state = lock(py, &self.state);
        state.read_back().or_raise(py)?;
        let mut model = state.model.clone();
        let result = change(&mut model)?;
        state.model = model;
        state.engines = None;
        Ok(result)
    }

    /// Changes the list of hooks, which later calls run.
    pub(crate) fn change_hooks<R>(&self, py: Python<'_>, change: impl FnOnce(&mut HookList) -> R) -> PyResult<R> {
        let mut state = lock(py, &self.state);
        state.read_back().or_raise(py)?;
        state.engines = None;
        Ok(change(&mut state.hooks))
    }

    /// Lets `act` use an engine that no other thread uses, for calls of `path`. The interpreter is attached before and after, not while `act` runs.
    pub(crate) fn with_engine<R: Send>(
        &self,
        py: Python<'_>,
        path: Option<&str>,
        act: impl FnOnce(&mut Engine) -> Result<R, CallError> + Send,
    ) -> PyResult<Result<R, CallError>> {
        let idle = lock(py, &self.state).take(path);
        let (mut engine, version) = match idle {
            Some(taken) => taken,
            // Freezing takes its time.
            None => {
                let made = without_gil(py, || {
                    let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                    state.make(path)
                })?;
                made.or_raise(py)?
            }
        };
        let result = without_gil(py, || act(&mut engine))?;
        lock(py, &self.state).put(engine, version);
        Ok(result)
    }
}

impl State {
    /// Whether the engines know the method or submodule at `path`.
    fn knows(&self, path: Option<&str>) -> bool {
        path.is_none_or(|path| self.paths.iter().any(|known| known == path) || self.model.root().has_method(path))
    }

    /// An engine that is idle.
    fn take(&mut self, path: Option<&str>) -> Option<(Engine, Arc<()>)> {
        let knows = self.knows(path);
        let engines = self.engines.as_mut().filter(|_| knows)?;
        engines.is_dirty = true;
        let engine = match engines.idle.pop() {
            Some(engine) => engine,
            None => engines.first.share(),
        };
        Some((engine, Arc::clone(&engines.version)))
    }

    /// An engine, made where there is none.
    fn make(&mut self, path: Option<&str>) -> frazil::Result<(Engine, Arc<()>)> {
        if !self.knows(path)
            && let Some(path) = path
        {
            self.read_back()?;
            self.paths.push(path.to_owned());
            self.engines = None;
        }
        if self.engines.is_none() {
            let mut options = self.options.engine.clone();
            let methods = self.model.root().method_names().into_iter().map(str::to_owned);
            options.methods = methods.chain(self.paths.iter().cloned()).collect();
            let mut first = self.model.with_limits(self.options.limits).engine(&options)?;
            self.hooks.register(&mut first, self.kind)?;
            self.engines = Some(Engines {
                first,
                idle: Vec::new(),
                version: Arc::new(()),
                is_dirty: false,
            });
        }
        match &mut self.engines {
            Some(engines) => {
                engines.is_dirty = true;
                let engine = match engines.idle.pop() {
                    Some(engine) => engine,
                    None => engines.first.share(),
                };
                Ok((engine, Arc::clone(&engines.version)))
            }
            None => Err(frazil::Error::Unsupported("the model has no engine".to_owned())),
        }
    }

    fn put(&mut self, engine: Engine, version: Arc<()>) {
        if let Some(engines) = self.engines.as_mut().filter(|e| Arc::ptr_eq(&e.version, &version)) {
            engines.idle.push(engine);
        }
    }

    /// Copies to the model what calls changed.
    fn read_back(&mut self) -> frazil::Result<()> {
        let Some(engines) = self.engines.as_mut().filter(|engines| engines.is_dirty) else {
            return Ok(());
        };
        engines.is_dirty = false;
        let is_whole = self.options.engine.kind == EngineKind::Interpreter || self.model.root().is_training();
        if is_whole {
            self.model = engines.first.snapshot()?;
            return Ok(());
        }
        // A frozen model has the attributes that its methods change.
        let has_attributes = |model: &Model| {
            let attributes = model.root().named_attributes(&MemberOptions::default());
            attributes.is_ok_and(|attributes| !attributes.is_empty())
        };
        if !has_attributes(engines.first.model()?) {
            return Ok(());
        }
        let snapshot = engines.first.snapshot()?;
        for (path, value) in snapshot.root().named_attributes(&MemberOptions::default())? {
            if self.model.root().has_attribute(&path) {
                self.model.set_attribute(&path, &value)?;
            }
        }
        Ok(())
    }
}
