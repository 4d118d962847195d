//! A model with its state and its engines, shared by all Python handles.

use crate::arrays::Kind;
use crate::errors::OrRaise;
use crate::hooks::HookList;
use crate::interrupt::without_gil;
use crate::options::Options;
use frazil::{CallError, Engine, EngineKind, MemberOptions, Model};
use frazil_rt::gate::Inside;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A loaded model.
pub(crate) struct Instance {
    state: Mutex<State>,
    /// The kind of arrays of attributes, and of results of calls without arrays.
    pub(crate) kind: Kind,
}

struct State {
    model: Arc<Model>,
    options: Options,
    /// Callees beside the methods of the root: paths of submodules and of their methods.
    paths: Vec<String>,
    hooks: HookList,
    engines: Option<Engines>,
    kind: Kind,
}

/// The engines of one version of the model.
struct Engines {
    /// The engine that is created first. Others share its code and its state.
    first: Engine,
    idle: Vec<Engine>,
    version: Arc<()>,
    /// Whether calls may have changed attributes since they were last copied to the model.
    is_dirty: bool,
}

/// The locked state of a model. While it exists, the thread counts as inside a call of the compiler. So a fork waits, and no process is forked while another
/// thread holds the lock.
struct Locked<'a> {
    state: MutexGuard<'a, State>,
    _inside: Inside,
}

fn wait(state: &Mutex<State>) -> Result<Locked<'_>, frazil::Error> {
    let _inside = frazil_rt::gate::enter()?;
    let state = state.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(Locked { state, _inside })
}

/// Locks the state. The GIL is released while waiting, because the thread that holds the lock may need it.
fn lock<'a>(py: Python<'_>, state: &'a Mutex<State>) -> PyResult<Locked<'a>> {
    let _inside = frazil_rt::gate::enter().map_err(frazil::Error::from).or_raise(py)?;
    match state.try_lock() {
        Ok(state) => Ok(Locked { state, _inside }),
        Err(_) => {
            drop(_inside);
            // The guard stays with this thread; only waiting is detached.
            struct OnThisThread<T>(T);
            // SAFETY: `detach` runs its closure on the same thread.
            unsafe impl<T> Send for OnThisThread<T> {}
            py.detach(|| OnThisThread(wait(state))).0.or_raise(py)
        }
    }
}

impl Instance {
    pub(crate) fn new(model: Model, options: Options, kind: Kind) -> Arc<Instance> {
        Arc::new(Instance {
            state: Mutex::new(State {
                model: Arc::new(model),
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
    pub(crate) fn options(&self, py: Python<'_>) -> PyResult<Options> {
        Ok(lock(py, &self.state)?.state.options.clone())
    }

    /// Returns the model with its current attributes.
    pub(crate) fn model(&self, py: Python<'_>) -> PyResult<Arc<Model>> {
        let state = &mut *lock(py, &self.state)?.state;
        state.read_back().or_raise(py)?;
        Ok(Arc::clone(&state.model))
    }

    /// Returns the model before calls changed attributes, for its classes and methods.
    pub(crate) fn definitions(&self, py: Python<'_>) -> PyResult<Arc<Model>> {
        Ok(Arc::clone(&lock(py, &self.state)?.state.model))
    }

    /// Changes the model. Compiled code is discarded.
    pub(crate) fn change<R>(&self, py: Python<'_>, change: impl FnOnce(&mut Model) -> PyResult<R>) -> PyResult<R> {
        let state = &mut *lock(py, &self.state)?.state;
        state.read_back().or_raise(py)?;
        let mut model = Model::clone(&state.model);
        let result = change(&mut model)?;
        state.model = Arc::new(model);
        state.engines = None;
        Ok(result)
    }

    /// Changes the list of hooks, which later calls run.
    pub(crate) fn change_hooks<R>(&self, py: Python<'_>, change: impl FnOnce(&mut HookList) -> R) -> PyResult<R> {
        let state = &mut *lock(py, &self.state)?.state;
        state.read_back().or_raise(py)?;
        state.engines = None;
        Ok(change(&mut state.hooks))
    }

    /// Calls `act` with an engine that no other thread uses, for calls of `path`. The GIL is held before and after, but not while `act` runs.
    pub(crate) fn with_engine<R: Send>(
        &self,
        py: Python<'_>,
        path: Option<&str>,
        act: impl FnOnce(&mut Engine) -> Result<R, CallError> + Send,
    ) -> PyResult<Result<R, CallError>> {
        let idle = lock(py, &self.state)?.state.take(path);
        let (mut engine, version) = match idle {
            Some(taken) => taken,
            // Freezing may take long.
            None => {
                let made = without_gil(py, || wait(&self.state)?.state.make(path))?;
                made.or_raise(py)?
            }
        };
        let result = without_gil(py, || act(&mut engine))?;
        lock(py, &self.state)?.state.put(engine, version);
        Ok(result)
    }
}

impl State {
    /// Returns true if the engines have been created for the method or submodule at `path`.
    fn knows(&self, path: Option<&str>) -> bool {
        path.is_none_or(|path| self.paths.iter().any(|known| known == path) || self.model.root().has_method(path))
    }

    /// Returns an idle engine, if there is one.
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

    /// Returns an idle engine, or a new one.
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

    /// Copies the changes that calls made to the model.
    fn read_back(&mut self) -> frazil::Result<()> {
        let Some(engines) = self.engines.as_mut().filter(|engines| engines.is_dirty) else {
            return Ok(());
        };
        engines.is_dirty = false;
        let is_whole = self.options.engine.kind == EngineKind::Interpreter || self.model.root().is_training();
        if is_whole {
            self.model = Arc::new(engines.first.snapshot()?);
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
        let mut model = Model::clone(&self.model);
        for (path, value) in snapshot.root().named_attributes(&MemberOptions::default())? {
            if model.root().has_attribute(&path) {
                model.set_attribute(&path, &value)?;
            }
        }
        self.model = Arc::new(model);
        Ok(())
    }
}
