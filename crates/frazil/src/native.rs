//! Native code for the methods of a model: what an engine compiles, keeps and calls.

use crate::code_cache::CodeCache;
use crate::compiled::prepared;
use crate::compiler::Compiler;
use crate::course::{Course, Ending, Method};
use crate::describe::{Argument, CallSignature, describe_all};
use crate::instance::{Instance, OwnHooks};
use crate::limited::within;
use crate::{CompiledMethod, EngineOptions, Error, Model, NativePlan, Result};
use frazil_codegen::compile::RunError;
use frazil_codegen::profile::Profile;
use frazil_codegen::specialise::{self, ResultSpec};
use frazil_codegen::{LowerError, Package};
use frazil_ir::{Graph, SymbolId, TypeId, TypeKind, symbols};
use frazil_limits::Phase;
use frazil_runtime::value::Value;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// Compilation state of one method for one call signature.
enum Entry {
    Compiled(Box<CompiledMethod>),
    /// The method runs in segments.
    Course,
    /// The method runs in the interpreter.
    Interpreted,
}

/// Maximum number of call signatures for which segments are kept. With one more, all of them are discarded.
const MAX_COURSES: usize = 64;

/// Compiled methods by name and call signature.
pub(crate) struct Cache {
    compiler: Compiler,
    strict: bool,
    /// Maximum number of entries of one method.
    specialisations: Option<usize>,
    methods: HashMap<(String, Vec<Argument>), Entry>,
    /// Methods that run in segments, by name and call signature, state included.
    courses: HashMap<(String, Vec<Argument>), Course>,
    /// The attributes that each method sets.
    sets: HashMap<String, HashSet<(SymbolId, SymbolId)>>,
    /// Compiled methods of earlier processes.
    kept: Option<CodeCache>,
    pub(crate) notes: Vec<String>,
    pub(crate) compile_time: Duration,
}

impl Cache {
    pub(crate) fn new(compiler: Compiler, engine: &EngineOptions, kept: Option<CodeCache>) -> Cache {
        Cache {
            compiler,
            strict: engine.strict,
            specialisations: engine.specialisations,
            methods: HashMap::new(),
            courses: HashMap::new(),
            sets: HashMap::new(),
            kept,
            notes: Vec::new(),
            compile_time: Duration::ZERO,
        }
    }

    /// Returns whether compiled methods of earlier processes can be used.
    pub(crate) fn is_kept(&self) -> bool {
        self.kept.is_some()
    }

    /// Runs `method` natively on complete arguments. Returns `None` when the interpreter has to run it.
    pub(crate) fn call(&mut self, instance: &mut Instance, method: &str, args: &[Value]) -> Result<Option<Value>> {
        let Some((keys, specs, tensors)) = describe_all(args) else {
            return self.interpreted(method, "an argument is neither a tensor nor a plain value");
        };
        let key = (method.to_owned(), keys);
        if !self.methods.contains_key(&key) {
            if let (true, Some(most)) = (self.is_full(method), self.specialisations) {
                return self.interpreted(method, &format!("it has been compiled for {most} call signatures"));
            }
            let entry = self.make(instance, method, &key.1, &specs)?;
            self.methods.insert(key.clone(), entry);
        }
        match self.methods.get_mut(&key) {
            Some(Entry::Compiled(code)) => match code.run(&tensors) {
                // The interpreter raises it, with the place.
                Err(Error::NativeRun(RunError::Raised(_))) => Ok(None),
                result => result.map(Some),
            },
            Some(Entry::Course) => self.course(instance, method, args),
            _ => Ok(None),
        }
    }

    /// Returns whether there is code for these arguments, in this process or in the cache directory, so that the model need not be read. Code is
    /// kept for complete arguments of the right types: a call of it needs neither defaults nor conversions. A module with hooks of its own has
    /// no code under the name `forward`.
    pub(crate) fn finds(&mut self, instance: &Instance, method: &str, args: &[Value]) -> bool {
        instance.source().known().is_none() && self.find(instance, method, args)
    }

    fn find(&mut self, instance: &Instance, method: &str, args: &[Value]) -> bool {
        let Some((keys, ..)) = describe_all(args) else {
            return false;
        };
        let key = (method.to_owned(), keys);
        if self.methods.contains_key(&key) {
            return true;
        }
        let start = Instant::now();
        let ctx = instance.source().session().ctx();
        let found = self.kept.as_ref().and_then(|kept| kept.get(method, &key.1, ctx, None));
        let Some((package, results)) = found.filter(|_| !self.is_full(method)) else {
            return false;
        };
        match self.load(method, package, results, "found", start) {
            Ok(entry) => self.methods.insert(key, entry).is_none(),
            // It is compiled again.
            Err(_) => false,
        }
    }

    /// Returns whether `method` has been compiled for its maximum number of call signatures.
    fn is_full(&self, method: &str) -> bool {
        let count = || self.methods.keys().filter(|(name, _)| name == method).count();
        self.specialisations.is_some_and(|most| count() >= most)
    }

    /// Loads the code of `package`.
    fn load(
        &mut self,
        method: &str,
        package: Package,
        results: Vec<ResultSpec>,
        what: &str,
        start: Instant,
    ) -> Result<Entry> {
        let (calls, kernels) = package.kernel_count();
        let workspace = package.workspace_bytes();
        let code = CompiledMethod::new(package, results, &self.compiler)?;
        let time = start.elapsed();
        self.compile_time += time;
        self.notes.push(format!(
            "{method}: {calls} kernel calls ({kernels} distinct), workspace {} KiB, {what} in {:.0} ms",
            workspace / 1024,
            time.as_secs_f64() * 1e3
        ));
        Ok(Entry::Compiled(Box::new(code)))
    }

    /// Runs `method` in segments. Returns `None` when the interpreter has to run it.
    fn course(&mut self, instance: &mut Instance, method: &str, args: &[Value]) -> Result<Option<Value>> {
        let running = instance.running()?;
        let module = running.model.module();
        let graph = running.model.graph(method)?;
        let sets = self
            .sets
            .entry(method.to_owned())
            .or_insert_with(|| attributes_set(graph));
        let changes = |class, slot: usize| {
            let attribute = module.unit.class(class).and_then(|c| c.attributes.get_index(slot));
            attribute.is_some_and(|(name, _)| sets.contains(&(class, *name)))
        };
        let Some(signature) = CallSignature::new(module.ctx(), running.receiver(method).as_ref(), args, &changes)
        else {
            return self.interpreted(method, "an attribute is neither a tensor nor a plain value");
        };
        let key = (method.to_owned(), signature.keys.clone());
        if !self.courses.contains_key(&key) && self.courses.len() >= MAX_COURSES {
            self.courses.clear();
        }
        let start = Instant::now();
        let known = self.notes.len();
        let compiled = Method {
            name: method,
            graph,
            module,
            registry: running.model.session().registry(),
            compiler: &self.compiler,
            strict: self.strict,
        };
        let ending = self
            .courses
            .entry(key)
            .or_default()
            .run(&compiled, &signature, &mut self.notes);
        if self.notes.len() > known {
            self.compile_time += start.elapsed();
        }
        match ending? {
            Ending::Returned(value) => Ok(Some(value)),
            // The interpreter raises it, with the place.
            Ending::Interpret => Ok(None),
            Ending::Refused(why) => self.interpreted(method, &why),
        }
    }

    /// Profiles `method`, which [`Cache::call`] has run natively on such arguments, for the duration `time`. Returns `None` when it is not
    /// native.
    pub(crate) fn profile(&mut self, method: &str, args: &[Value], time: Duration) -> Result<Option<Profile>> {
        let Some((keys, _, tensors)) = describe_all(args) else {
            return Ok(None);
        };
        match self.methods.get_mut(&(method.to_owned(), keys)) {
            Some(Entry::Compiled(code)) => code.profile(&tensors, time).map(Some),
            _ => Ok(None),
        }
    }

    fn make(
        &mut self,
        instance: &mut Instance,
        method: &str,
        keys: &[Argument],
        specs: &[specialise::InputSpec],
    ) -> Result<Entry> {
        let limits = *instance.source().session().limits();
        within(&limits, Phase::Compile, || {
            self.make_within(instance, method, keys, specs)
        })
    }

    fn make_within(
        &mut self,
        instance: &mut Instance,
        method: &str,
        keys: &[Argument],
        specs: &[specialise::InputSpec],
    ) -> Result<Entry> {
        let start = Instant::now();
        let compiler = self.compiler.named(method);
        let ctx = instance.source().session().ctx().clone();
        let types = result_types(instance.model()?, method)?;
        let kept_name = kept_name(instance.model()?, method);
        let found = self.kept.as_ref();
        let found = found.and_then(|kept| kept.get(kept_name, keys, &ctx, Some(&types)));
        // An entry that does not load is compiled again and replaced.
        if let Some((package, results)) = found
            && let Ok(entry) = self.load(method, package, results, "found", start)
        {
            return Ok(entry);
        }
        let model = &instance.running()?.model;
        let made = NativePlan::new(model.graph(method)?, specs, model.session().registry(), &compiler);
        let plan = match made {
            Ok(plan) if plan.warns => return Ok(Entry::Course),
            Ok(plan) => plan,
            // The interpreter raises it, with the place.
            Err(LowerError::Raises { .. }) => return Ok(Entry::Interpreted),
            Err(LowerError::Unsupported(_)) => return Ok(Entry::Course),
            Err(error) => return self.not_compiled(method, &error.to_string()),
        };
        let package = match plan.package(&compiler) {
            Ok(package) => package,
            // A scalar function without native code, for one.
            Err(error) => return self.not_compiled(method, &error.to_string()),
        };
        // With the plan go the weights that have been packed for the code.
        let results = plan.into_results();
        let package = match &self.kept {
            Some(kept) => match prepared(package, &compiler) {
                Ok(package) => {
                    // Zeros must not be kept.
                    instance.check()?;
                    kept.put(kept_name, keys, &ctx, &types, &package, &results);
                    package
                }
                Err(error) => return self.not_compiled(method, &error.to_string()),
            },
            None => package,
        };
        match self.load(method, package, results, "compiled", start) {
            Ok(entry) => Ok(entry),
            Err(error) => self.not_compiled(method, &error.to_string()),
        }
    }

    fn not_compiled(&mut self, method: &str, why: &str) -> Result<Entry> {
        self.interpreted(method, why)?;
        Ok(Entry::Interpreted)
    }

    fn interpreted(&mut self, method: &str, why: &str) -> Result<Option<Value>> {
        if self.strict {
            return Err(Error::Unsupported(format!(
                "method `{method}` cannot be compiled: {why}"
            )));
        }
        let note = format!("{method}: runs in the interpreter: {why}");
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
        Ok(None)
    }
}

/// Returns the name under which code of `method` is kept. Code that is kept as `forward` runs for calls of the module, before the model is
/// read. So `forward` of a module with hooks of its own has another name.
fn kept_name<'m>(model: &Model, method: &'m str) -> &'m str {
    match method {
        "forward" if !OwnHooks::of(model).is_empty() => "forward without hooks",
        _ => method,
    }
}

/// Returns the attributes that a graph sets, as pairs of class and name.
fn attributes_set(graph: &Graph) -> HashSet<(SymbolId, SymbolId)> {
    let nodes = graph.nodes_recursive(graph.root()).into_iter();
    let sets = nodes.filter(|&n| graph.kind(n) == symbols::PRIM_SET_ATTR);
    let attribute = |node| {
        let TypeKind::Class(class) = graph.ctx().type_kind(graph.ty(graph.operand(node, 0)?)) else {
            return None;
        };
        Some((class, graph.attribute_symbol(node, symbols::ATTR_NAME)?))
    };
    sets.filter_map(attribute).collect()
}

/// Returns the result types of `method`.
fn result_types(model: &Model, method: &str) -> Result<Vec<TypeId>> {
    let graph = model.graph(method)?;
    Ok(graph.outputs().map(|v| graph.ty(v)).collect())
}
