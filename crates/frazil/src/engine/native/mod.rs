//! Native code of an engine for the methods of a model: compilation, cache, calls.

pub(crate) mod code_cache;
pub(crate) mod compiled;
pub(crate) mod compiler;
mod leaves;
mod loops;
mod partition;
mod port_names;
mod precompiled;
pub(crate) mod ranges;
mod recent;
pub(crate) mod record;
mod rolled;
pub(crate) mod segments;
mod shared_code;
pub(crate) mod signature;
pub(crate) mod subgraphs;
pub(crate) mod tensor_function;
mod warm_up;

use crate::engine::instance::{Instance, MakeDelegate, OwnHooks, kept};
use crate::engine::kernel_counts::KernelCounts;
use crate::engine::native::code_cache::{CodeCache, usable_folder};
use crate::engine::native::compiled::{CompiledCode, CompiledMethod, NativePlan, prepared};
use crate::engine::native::compiler::Compiler;
use crate::engine::native::precompiled::{Patience, Precompiled};
use crate::engine::native::recent::Recent;
use crate::engine::native::record::Record;
use crate::engine::native::rolled::RolledMethods;
use crate::engine::native::segments::{Outcome, SegmentTree, SegmentedMethod, SegmentedRun};
use crate::engine::native::shared_code::SharedCode;
use crate::engine::native::signature::{Argument, CallSignature, attributes_set, describe_all, describe_cells};
use crate::engine::native::subgraphs::Subgraphs;
use crate::engine::options::{EngineKind, EngineOptions, FusionStrategy};
use crate::error::{Error, Result};
use crate::model::Model;
use crate::support::limited::{unexceeded, within};
use crate::support::lock::lock;
use crate::support::once::Once;
use frazil_executor::memory::Workspace;
use frazil_executor::run::profile::Profile;
use frazil_executor::{Package, RunError};
use frazil_ir::{SymbolId, TypeId};
use frazil_limits::{Exceeded, Phase};
use frazil_planner::LowerError;
use frazil_planner::specialise::{ArgumentSpec, ResultSpec};
use frazil_runtime::value::Value;
use frazil_syntax::FileIdentity;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The key of compiled code: a method with its call signature.
type Key = (String, Vec<Argument>);

/// Compilation state of one method for one call signature, shared by all handles.
enum Made {
    Compiled(CompiledCode),
    /// Code of the code library.
    Precompiled(CompiledCode),
    /// The method runs in segments.
    Segmented,
    /// The method runs in segments, between which are loops that stay rolled.
    Rolled,
    /// The method runs in the interpreter.
    Interpreted,
}

/// The state of compiled code ([`Made`]) in one handle.
enum Entry {
    Compiled(Box<CompiledMethod>),
    Precompiled(Box<Precompiled>),
    Segmented,
    Rolled(Patience),
    Interpreted,
}

/// Estimated size of an entry without code, and of its key, in bytes.
const SMALL_ENTRY: usize = 1 << 10;

impl Made {
    /// Returns the state for one handle. An instance of code runs in `workspace`.
    fn instance(&self, workspace: &Workspace) -> Result<Entry> {
        Ok(match self {
            Made::Compiled(code) => Entry::Compiled(Box::new(code.instance_in(workspace)?)),
            Made::Precompiled(code) => Entry::Precompiled(Box::new(Precompiled::new(code, workspace)?)),
            Made::Segmented => Entry::Segmented,
            Made::Rolled => Entry::Rolled(Patience::default()),
            Made::Interpreted => Entry::Interpreted,
        })
    }

    /// Returns an estimate of the memory that the state takes until it is dropped, in bytes.
    fn bytes(&self) -> usize {
        match self {
            Made::Compiled(code) | Made::Precompiled(code) => SMALL_ENTRY + code.bytes(),
            Made::Segmented | Made::Rolled | Made::Interpreted => SMALL_ENTRY,
        }
    }
}

/// Maximum number of call signatures with stored segments. Beyond it, all segments are discarded.
const MAX_SEGMENT_TREES: usize = 64;

/// Compiled methods by name and call signature, which all handles of an engine share. The first thread that needs a compiled method creates it, and other
/// threads wait. No lock is held while code runs or is compiled.
pub(crate) struct NativeCode {
    compiler: Compiler,
    strict: bool,
    /// Maximum number of call signatures of one method for which code is compiled.
    specialisations: Option<usize>,
    methods: Mutex<Recent<Key, Arc<Once<Made>>>>,
    /// Segments of the methods that run in segments, keyed by method and call signature, which includes the objects' state.
    trees: Mutex<HashMap<Key, Arc<SegmentTree>>>,
    strategy: FusionStrategy,
    shared: SharedCode,
    rolled: RolledMethods,
    /// Persistent cache with compiled methods of earlier processes.
    kept: Option<CodeCache>,
    record: Arc<Record>,
}

/// The state of one handle: instances of the code that it has called. Calls for which an instance exists take no lock.
#[derive(Default)]
pub(crate) struct Handle {
    entries: Recent<Key, Entry>,
    /// The memory in which the handle runs code, one function at a time.
    workspace: Workspace,
    runs: HashMap<Key, SegmentedRun>,
    /// The number of distinct kernels of each method with rolled loops, in the segments of its last run.
    rolled_kernels: HashMap<String, usize>,
    /// The attributes that each method sets, as pairs of class and name.
    sets: HashMap<String, HashSet<(SymbolId, SymbolId)>>,
}

/// The reason why the persistent cache has no code for a method.
enum NotKept {
    Exceeded,
    Missing,
}

impl From<Exceeded> for NotKept {
    fn from(_: Exceeded) -> NotKept {
        NotKept::Exceeded
    }
}

impl NativeCode {
    /// Returns the native code of an engine with `options`. Code is stored for other processes if `origin` identifies the archive of the model.
    #[allow(clippy::unnecessary_wraps, reason = "without code generation there is none")]
    pub(crate) fn new(origin: Option<&FileIdentity>, options: &EngineOptions) -> Result<NativeCode> {
        let (folder, refusal) = usable_folder(options);
        let compiler = Compiler::keeping_in(folder.clone(), options.compile.clone());
        let record: Arc<Record> = Arc::default();
        let kept = folder.zip(origin).and_then(|(folder, origin)| {
            let compile = &compiler.options;
            let (target, threads) = (compile.target(), compile.threads);
            let target = format!(
                "{target:?} {} {:?} {threads} {} {:?}",
                compile.fuse, compile.tune, options.eval, options.preserve
            );
            CodeCache::new(folder, origin, &kept(options), &target)
        });
        refusal.into_iter().for_each(|note| record.note(note));
        Ok(NativeCode {
            compiler,
            strict: options.strict,
            specialisations: options.specialisations,
            strategy: options.fusion_strategy,
            shared: SharedCode::default(),
            rolled: RolledMethods::default(),
            methods: Mutex::default(),
            trees: Mutex::default(),
            kept,
            record,
        })
    }

    /// Returns a function that creates delegates for interpreters, which compile subgraphs of methods.
    pub(crate) fn subgraphs(&self) -> MakeDelegate {
        let (compiler, record) = (self.compiler.clone(), Arc::clone(&self.record));
        Box::new(move |registry| {
            let (compiler, record) = (compiler.clone(), Arc::clone(&record));
            Arc::new(Subgraphs::new(Arc::clone(registry), compiler, record))
        })
    }

    /// Returns diagnostics on compiled methods, and on methods that cannot be compiled.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.record.notes()
    }

    /// Returns the time spent on compiling so far.
    pub(crate) fn compile_time(&self) -> Duration {
        self.record.compile_time()
    }

    /// Returns the numbers of kernels by the origin of their code.
    pub(crate) fn kernel_counts(&self) -> KernelCounts {
        self.compiler.kernel_counts()
    }

    /// Returns whether compiled methods of earlier processes can be used, because there is a persistent cache.
    pub(crate) fn is_kept(&self) -> bool {
        self.kept.is_some()
    }

    /// Runs `method` natively; its arguments are complete. Returns `None` if the interpreter must run it.
    pub(crate) fn call(
        &self,
        handle: &mut Handle,
        instance: &Instance,
        method: &str,
        args: &[Value],
    ) -> Result<Option<Value>> {
        let Some(((keys, specs, tensors), cells)) = describe_cells(args) else {
            return self.interpreted(method, "an argument is neither a tensor nor a plain value");
        };
        let key = (method.to_owned(), keys);
        let slot = match handle.entries.get_mut(&key) {
            Some(Entry::Compiled(code)) => return raised_by_interpreter(code.run_aliasing(&tensors, &cells)),
            Some(Entry::Segmented) => return self.run_segments(handle, instance, method, args, false),
            Some(Entry::Interpreted) => return Ok(None),
            Some(Entry::Rolled(_)) => match self.run_rolled(handle, instance, &key, args)? {
                Some(result) => return Ok(result),
                None => self.slot_for_own_code(&key),
            },
            Some(Entry::Precompiled(code)) if !code.is_due() || !self.shared.has_room(method, self.strategy) => {
                return raised_by_interpreter(code.run(&tensors, &cells));
            }
            Some(Entry::Precompiled(_)) => self.slot_for_own_code(&key),
            None => match self.slot(&key) {
                Some(slot) => slot,
                None => {
                    let most = self.specialisations.unwrap_or_default();
                    return self.interpreted(method, &format!("it has been compiled for {most} call signatures"));
                }
            },
        };
        let is_first = !handle.entries.contains(&key);
        let limits = *instance.source().session().limits();
        let made = slot.get_or_make(|| {
            within(&limits, Phase::Compile, || {
                let made = self.make(instance, method, &key.1, &specs, is_first);
                unexceeded()?;
                made
            })
        });
        let entry = made.and_then(|made| Ok((made.instance(&handle.workspace)?, made.bytes())));
        if entry.is_err() {
            self.forget(&key, slot);
        }
        let (entry, bytes) = entry?;
        lock(&self.methods).resize(&key, bytes);
        handle.entries.insert(key.clone(), entry, bytes);
        match handle.entries.get_mut(&key) {
            Some(Entry::Compiled(code)) => raised_by_interpreter(code.run_aliasing(&tensors, &cells)),
            Some(Entry::Precompiled(code)) => raised_by_interpreter(code.run(&tensors, &cells)),
            Some(Entry::Segmented) => self.run_segments(handle, instance, method, args, false),
            Some(Entry::Rolled(_)) => self.run_segments(handle, instance, method, args, true),
            _ => Ok(None),
        }
    }

    /// Runs the method of `key` in segments with rolled loops. Returns `None` if a plan with unrolled loops pays.
    #[allow(
        clippy::option_option,
        reason = "the inner one is the result of a call, as everywhere here"
    )]
    fn run_rolled(
        &self,
        handle: &mut Handle,
        instance: &Instance,
        key: &Key,
        args: &[Value],
    ) -> Result<Option<Option<Value>>> {
        let method = key.0.as_str();
        let Some(Entry::Rolled(patience)) = handle.entries.get_mut(key) else {
            return Ok(None);
        };
        let mut patience = std::mem::take(patience);
        let kernels = handle.rolled_kernels.get(method).copied().unwrap_or(usize::MAX);
        if patience.is_over(kernels) {
            return Ok(None);
        }
        let result = patience.during(|| self.run_segments(handle, instance, method, args, true));
        if let Some(Entry::Rolled(own)) = handle.entries.get_mut(key) {
            *own = patience;
        }
        result.map(Some)
    }

    /// Returns the slot for code that replaces code for any size for `key`. Another handle may already have filled the slot.
    fn slot_for_own_code(&self, key: &Key) -> Arc<Once<Made>> {
        let mut methods = lock(&self.methods);
        if let Some(slot) = methods.get_mut(key)
            && !matches!(slot.get(), Some(Made::Precompiled(_) | Made::Rolled))
        {
            return Arc::clone(slot);
        }
        let slot: Arc<Once<Made>> = Arc::default();
        methods.insert(key.clone(), Arc::clone(&slot), SMALL_ENTRY);
        slot
    }

    /// Returns whether there is code for these arguments, in this process or in the cache directory, so that the model need not be read.
    ///
    /// Stored code requires complete arguments of the right types: a call of it needs neither defaults nor conversions. A module with hooks of its own has no
    /// code under the name `forward`.
    pub(crate) fn finds(&self, handle: &mut Handle, instance: &Instance, method: &str, args: &[Value]) -> bool {
        let is_unread = || instance.source().known().is_none();
        // Code for which the hooks are unknown is made from a model that has been read, possibly just now.
        is_unread() && self.find(handle, instance, method, args) && is_unread()
    }

    fn find(&self, handle: &mut Handle, instance: &Instance, method: &str, args: &[Value]) -> bool {
        let Some((keys, ..)) = describe_all(args) else {
            return false;
        };
        let key = (method.to_owned(), keys);
        if handle.entries.contains(&key) {
            return true;
        }
        let Some(slot) = self.slot(&key) else { return false };
        let made = slot.get_or_make(|| {
            let start = Instant::now();
            let ctx = instance.source().session().ctx();
            let found = self.kept.as_ref().and_then(|kept| kept.get(method, &key.1, ctx, None));
            let (package, results) = found.ok_or(NotKept::Missing)?;
            // Code that cannot be loaded is compiled again.
            self.load(method, package, results, "found", start)
                .map(Made::Compiled)
                .map_err(|_| NotKept::Missing)
        });
        let entry = made
            .ok()
            .and_then(|made| Some((made.instance(&handle.workspace).ok()?, made.bytes())));
        match entry {
            Some((entry, bytes)) => {
                lock(&self.methods).resize(&key, bytes);
                handle.entries.insert(key, entry, bytes);
                true
            }
            None => {
                self.forget(&key, slot);
                false
            }
        }
    }

    /// Returns the slot of the code for `key`. Returns `None` if the method has been compiled for its maximum number of call signatures.
    fn slot(&self, key: &Key) -> Option<Arc<Once<Made>>> {
        let mut methods = lock(&self.methods);
        if let Some(slot) = methods.get_mut(key) {
            return Some(Arc::clone(slot));
        }
        let count = || methods.keys().filter(|(name, _)| *name == key.0).count();
        let is_full = self.specialisations.is_some_and(|most| count() >= most);
        (!is_full).then(|| {
            let slot: Arc<Once<Made>> = Arc::default();
            methods.insert(key.clone(), Arc::clone(&slot), SMALL_ENTRY);
            slot
        })
    }

    /// Removes the slot of `key` if it is empty and no other thread is filling it.
    fn forget(&self, key: &Key, slot: Arc<Once<Made>>) {
        let mut methods = lock(&self.methods);
        // One of the references belongs to the table.
        if slot.get().is_none() && Arc::strong_count(&slot) == 2 {
            methods.remove(key);
        }
    }

    /// Loads the code in `package` into memory.
    fn load(
        &self,
        method: &str,
        package: Package,
        results: Vec<ResultSpec>,
        what: &str,
        start: Instant,
    ) -> Result<CompiledCode> {
        let (calls, kernels) = package.kernel_count();
        let workspace = package.workspace_bytes();
        let code = CompiledCode::new(package, results, &self.compiler)?;
        let time = start.elapsed();
        self.record.add_time(time);
        self.record.note(format!(
            "{method}: {calls} kernel calls ({kernels} distinct), workspace {} KiB, {what} in {:.0} ms",
            workspace / 1024,
            time.as_secs_f64() * 1e3
        ));
        Ok(code)
    }

    /// Runs `method` in segments. Returns `None` if the interpreter must run it.
    fn run_segments(
        &self,
        handle: &mut Handle,
        instance: &Instance,
        method: &str,
        args: &[Value],
        rolls: bool,
    ) -> Result<Option<Value>> {
        let running = instance.running()?;
        let module = running.model.module();
        let graph = running.model.graph(method)?;
        let sets = handle
            .sets
            .entry(method.to_owned())
            .or_insert_with(|| attributes_set(graph));
        let changes = |class, slot: usize| {
            let attribute = module.unit.class(class).and_then(|c| c.attributes.get_index(slot));
            attribute.is_some_and(|(name, _)| sets.contains(&(class, *name)))
        };
        let Some(signature) = CallSignature::new(
            module.ctx(),
            running.interpreter.receiver(method).as_ref(),
            args,
            &changes,
        ) else {
            return self.interpreted(method, "an attribute is neither a tensor nor a plain value");
        };
        let mut key = (method.to_owned(), signature.keys.clone());
        let first = if rolls {
            self.rolled.take_first(method, &signature)
        } else {
            None
        };
        // The segments of both ways to run a method differ.
        key.1.push(Argument::Bool(rolls));
        let compiled = SegmentedMethod {
            name: method,
            graph,
            module,
            registry: running.model.session().registry(),
            compiler: &self.compiler,
            record: &self.record,
            rolls,
            bodies: &self.rolled.bodies,
            shared: self.shared.plans(&running.model),
            first: Mutex::new(first.unwrap_or_default()),
            strict: self.strict,
        };
        let run = self.segmented_run(handle, key, rolls);
        let outcome = run.run(&compiled, &signature)?;
        if rolls {
            let kernels = run.kernels();
            handle.rolled_kernels.insert(method.to_owned(), kernels);
        }
        match outcome {
            Outcome::Returned(value) => Ok(Some(value)),
            // The interpreter raises the exception, with its place.
            Outcome::Interpret => Ok(None),
            Outcome::Refused(why) => self.interpreted(method, &why),
        }
    }

    /// Returns the segmented run that `handle` has for a method and call signature. `rolls` states whether loops stay rolled; then the code takes all sizes as
    /// arguments, as it does if the method has segments for as many call signatures as get code of their own.
    fn segmented_run<'h>(&self, handle: &'h mut Handle, key: Key, rolls: bool) -> &'h mut SegmentedRun {
        if handle.runs.get(&key).is_none_or(SegmentedRun::is_over) {
            if handle.runs.len() >= MAX_SEGMENT_TREES {
                handle.runs.clear();
            }
            let mut trees = lock(&self.trees);
            if trees.len() >= MAX_SEGMENT_TREES && !trees.contains_key(&key) {
                trees.clear();
            }
            let own = trees.keys().filter(|(name, _)| *name == key.0).count();
            let any_size = rolls || own >= self.strategy.static_shapes;
            let tree = || Arc::new(SegmentTree::new(any_size));
            let slot = trees.entry(key.clone()).or_insert_with(tree);
            if slot.is_full() {
                *slot = tree();
            }
            let tree = slot;
            let run = SegmentedRun::new(Arc::clone(tree), handle.workspace.clone());
            handle.runs.insert(key.clone(), run);
        }
        handle
            .runs
            .entry(key)
            .or_insert_with(|| SegmentedRun::new(Arc::default(), handle.workspace.clone()))
    }

    /// Profiles `method` for the duration `time`. The method must have run natively with such arguments before. Returns `None` if it does not run natively.
    pub(crate) fn profile(
        &self,
        handle: &mut Handle,
        method: &str,
        args: &[Value],
        time: Duration,
    ) -> Result<Option<Profile>> {
        let Some((keys, _, tensors)) = describe_all(args) else {
            return Ok(None);
        };
        let key = (method.to_owned(), keys);
        let made = lock(&self.methods).get_mut(&key).map(|slot| Arc::clone(slot));
        if !handle.entries.contains(&key)
            && let Some(made) = made.as_ref().and_then(|slot| slot.get())
        {
            let entry = made.instance(&handle.workspace)?;
            handle.entries.insert(key.clone(), entry, made.bytes());
        }
        match handle.entries.get_mut(&key) {
            Some(Entry::Compiled(code)) => code.profile(&tensors, time).map(Some),
            Some(Entry::Precompiled(code)) => code.method.profile(&tensors, time).map(Some),
            _ => Ok(None),
        }
    }

    /// Compiles a method for a call signature, unless its code is in the persistent cache or, for the first calls of a handle, in the code library.
    fn make(
        &self,
        instance: &Instance,
        method: &str,
        keys: &[Argument],
        specs: &[ArgumentSpec],
        is_first: bool,
    ) -> Result<Made> {
        let start = Instant::now();
        let compiler = self.compiler.named(method);
        let ctx = instance.source().session().ctx().clone();
        let types = result_types(instance.model()?, method)?;
        let kept_name = kept_name(instance.model()?, method);
        let found = self.kept.as_ref();
        let found = found.and_then(|kept| kept.get(kept_name, keys, &ctx, Some(&types)));
        // An entry that does not load is compiled again and replaced.
        if let Some((package, results)) = found
            && let Ok(code) = self.load(method, package, results, "found", start)
        {
            return Ok(Made::Compiled(code));
        }
        let model = &instance.running()?.model;
        let shared = self.shared.plans(model);
        let is_rolled = || self.rolled.is_rolled(model, method, keys, specs, shared);
        // Measured variants are for the sizes that they were measured with.
        let is_tuned = compiler.options.tune.is_some();
        if is_first
            && !is_tuned
            && compiler.for_any_size().library().is_some()
            && self.shared.has_room(method, self.strategy)
        {
            if is_rolled() {
                return Ok(Made::Rolled);
            }
            if let Some(code) = self.library_code(model, method, specs, start) {
                return Ok(Made::Precompiled(code));
            }
        }
        let is_own = is_tuned || self.shared.is_own(method, specs, self.strategy);
        // Unrolled loops run faster; a shape whose calls have taken longer than planning them is unrolled.
        if is_first && !is_own && is_rolled() {
            return Ok(Made::Rolled);
        }
        let compiler = match (is_own, &self.kept) {
            (false, _) => compiler.for_any_size(),
            (true, None) => compiler.in_process(),
            // A package in a file contains everything.
            (true, Some(_)) => compiler,
        };
        let graph = model.graph(method)?;
        let plan_of = |specs: &[ArgumentSpec]| {
            NativePlan::aliasing(graph, specs, Some(shared), model.session().registry(), &compiler)
        };
        let made = plan_of(specs);
        let plan = match made {
            Ok(plan) if plan.warns => return Ok(Made::Segmented),
            Ok(plan) => plan,
            // The interpreter raises the exception, with its place.
            Err(LowerError::Raises { .. }) => return Ok(Made::Interpreted),
            Err(LowerError::Unsupported(_)) => return Ok(Made::Segmented),
            Err(error) => return self.not_compiled(method, &error.to_string()),
        };
        let package = match is_own {
            true => plan.package(&compiler),
            false => self.shared.package(method, &plan, &compiler, self.strategy, plan_of),
        };
        let package = match package {
            Ok(package) => package,
            // For example, a scalar function without native code.
            Err(error) => return self.not_compiled(method, &error.to_string()),
        };
        if let Some(note) = compiler.origin_of_kernels() {
            self.record.note(format!("{method}: {note}"));
        }
        // Dropping the plan releases the weights that have been packed for the code.
        let (results, packed) = plan.into_results();
        let package = match &self.kept {
            Some(kept) if is_own => match prepared(package, &compiler) {
                Ok(package) => {
                    // Zeros in place of unreadable data must not be stored.
                    instance.check()?;
                    unexceeded()?;
                    kept.put(kept_name, keys, &ctx, &types, &package, &results);
                    package
                }
                Err(error) => return self.not_compiled(method, &error.to_string()),
            },
            _ => package,
        };
        match self.load(method, package, results, "compiled", start) {
            Ok(code) => {
                code.keep_packed(&packed, &compiler);
                Ok(Made::Compiled(code))
            }
            Err(error) => self.not_compiled(method, &error.to_string()),
        }
    }

    fn not_compiled(&self, method: &str, why: &str) -> Result<Made> {
        unexceeded()?;
        self.interpreted(method, why)?;
        Ok(Made::Interpreted)
    }

    fn interpreted(&self, method: &str, why: &str) -> Result<Option<Value>> {
        if self.strict {
            return Err(Error::Unsupported(format!(
                "method `{method}` cannot be compiled: {why}"
            )));
        }
        self.record
            .note_once(format!("{method}: runs in the interpreter: {why}"));
        Ok(None)
    }
}

/// Returns the result of a run of compiled code. Returns `None` if the code raised an exception: then the interpreter must run the method, because its
/// exception contains the place in the source.
fn raised_by_interpreter(result: Result<Value>) -> Result<Option<Value>> {
    match result {
        Err(Error::NativeRun(RunError::Raised(_))) => Ok(None),
        result => result.map(Some),
    }
}

/// Returns the name under which code of `method` is stored. Code under the name `forward` runs for calls of the module before the model is
/// read, so `forward` of a module with hooks has another name.
fn kept_name<'m>(model: &Model, method: &'m str) -> &'m str {
    match method {
        "forward" if !OwnHooks::of(model, model.module().root, "").is_empty() => "forward without hooks",
        _ => method,
    }
}

/// Returns the result types of `method`.
fn result_types(model: &Model, method: &str) -> Result<Vec<TypeId>> {
    let graph = model.graph(method)?;
    Ok(graph.outputs().map(|v| graph.ty(v)).collect())
}

/// Returns whether an engine with these options reads and freezes its model on first use.
pub(crate) fn reads_late(options: &EngineOptions) -> bool {
    options.kind == EngineKind::Native && options.compile.cache_dir.is_some()
}
