//! Native code for the methods of a model.

use crate::code_cache::CodeCache;
use crate::course::{Course, Ending, Method};
use crate::describe::{Argument, Situation, describe_all, tensor_spec};
use crate::engine::Instance;
use crate::{EngineOptions, Error, Loaded, Model, Result};
use frazil_codegen::aot;
use frazil_codegen::cache::ObjectCache;
use frazil_codegen::compile::RunError;
use frazil_codegen::native::{Stage, host_target};
use frazil_codegen::plan::{Plan, Port};
use frazil_codegen::profile::Profile;
use frazil_codegen::specialise::{self, ResultSpec, Specialised, specialise};
use frazil_codegen::target::Target;
use frazil_codegen::{Executable, LowerError, LowerOptions, Package, lower};
use frazil_ir::{DType, Graph, SymbolId, TypeId, TypeKind, symbols};
use frazil_runtime::import::Importer;
use frazil_runtime::storage::AlignedBytes;
use frazil_runtime::value::Value;
use frazil_runtime::{Registry, Storage, Tensor};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// dtype and sizes of an input tensor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InputSpec {
    /// Element type.
    pub dtype: DType,
    /// Extents.
    pub sizes: Vec<i64>,
}

impl InputSpec {
    /// A dense tensor of these sizes.
    pub fn new(dtype: DType, sizes: &[i64]) -> InputSpec {
        InputSpec {
            dtype,
            sizes: sizes.to_vec(),
        }
    }
}

/// How to make native code.
#[derive(Clone, Debug)]
pub struct CompileOptions {
    /// `host`, an x86-64 level (`x86-64-v3`), or a processor that LLVM knows.
    pub target_cpu: String,
    /// Threads that a run may use.
    pub threads: usize,
    /// What the functions of a library are called: a C identifier.
    pub name: String,
    /// A directory in which code is kept from one process to the next.
    pub cache_dir: Option<PathBuf>,
    /// Whether operators become one kernel where that saves passes over memory.
    pub fuse: bool,
}

impl Default for CompileOptions {
    fn default() -> CompileOptions {
        CompileOptions {
            target_cpu: "host".to_owned(),
            threads: 1,
            name: "model".to_owned(),
            cache_dir: None,
            fuse: true,
        }
    }
}

impl CompileOptions {
    pub(crate) fn target(&self) -> Target {
        match self.target_cpu.as_str() {
            "host" | "native" => host_target(),
            cpu => Target::new(cpu, ""),
        }
    }

    fn back_end(&self, target: Target) -> frazil_codegen::CompileOptions {
        frazil_codegen::CompileOptions {
            target,
            threads: self.threads,
            cache: self.cache_dir.clone().map(ObjectCache::new),
        }
    }
}

/// A stage on the way to native code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emit {
    /// Fused kernels, with their shapes and memory.
    Kernels,
    /// The kernels in MLIR.
    Mlir,
    /// The kernels in LLVM IR, after optimisation.
    Llvm,
    /// The kernels in assembler.
    Asm,
    /// One object file with all kernels.
    Object,
}

/// The kernels of a method for inputs of given shapes, ready to be turned into machine code.
pub struct NativePlan {
    plan: Plan,
    results: Vec<ResultSpec>,
    target: Target,
}

impl NativePlan {
    pub(crate) fn new(
        graph: &Graph,
        inputs: &[specialise::InputSpec],
        registry: &Registry,
        options: &CompileOptions,
    ) -> Result<Self, LowerError> {
        NativePlan::of(specialise(graph, inputs, registry)?, options)
    }

    pub(crate) fn of(specialised: Specialised, options: &CompileOptions) -> Result<Self, LowerError> {
        let target = options.target();
        let lower_options = LowerOptions {
            name: c_identifier(&options.name),
            target: target.clone(),
            fuse: options.fuse,
        };
        let plan = lower(specialised.graph, &lower_options)?;
        Ok(NativePlan {
            plan,
            results: specialised.results,
            target,
        })
    }

    /// Number of kernel calls of a run, and of distinct kernels among them.
    pub fn kernel_count(&self) -> (usize, usize) {
        self.plan.kernel_count()
    }

    /// Bytes of memory that a run needs besides inputs, outputs and weights.
    pub fn workspace_bytes(&self) -> usize {
        self.plan.workspace_bytes
    }

    /// The text or bytes of a stage.
    ///
    /// # Errors
    /// When code generation fails.
    pub fn emit(&self, kind: Emit) -> Result<Vec<u8>> {
        let stage = match kind {
            Emit::Kernels => return Ok(aot::kernels_text(&self.plan).into_bytes()),
            Emit::Object => return Ok(aot::object(&self.plan, &self.target)?),
            Emit::Mlir => Stage::Mlir,
            Emit::Llvm => Stage::Llvm,
            Emit::Asm => Stage::Assembly,
        };
        Ok(aot::stage_text(&self.plan, &self.target, stage)?.into_bytes())
    }

    /// Writes a shared library, and its C header beside it.
    ///
    /// # Errors
    /// When code generation or linking fails, or a file cannot be written; nothing half-written stays.
    pub fn write_library(&self, path: &Path) -> Result<()> {
        aot::write_library(&self.plan, &self.target, path)?;
        Ok(())
    }

    /// Compiles the plan for this process, for as many threads and with the cache that `options` says.
    ///
    /// # Errors
    /// When code generation fails.
    pub fn compile(self, options: &CompileOptions) -> Result<CompiledMethod> {
        let package = self.package(options)?;
        CompiledMethod::new(package, self.results, options)
    }

    fn package(&self, options: &CompileOptions) -> Result<Package> {
        Ok(Package::new(&self.plan, &options.back_end(self.target.clone()))?)
    }
}

/// A compiled method, for inputs of the shapes that it was compiled for.
pub struct CompiledMethod {
    executable: Executable,
    results: Vec<ResultSpec>,
}

impl CompiledMethod {
    fn new(package: Package, results: Vec<ResultSpec>, options: &CompileOptions) -> Result<CompiledMethod> {
        let executable = package.load(&options.back_end(options.target()))?;
        Ok(CompiledMethod { executable, results })
    }

    /// Runs the method on dense tensors of the shapes that it was compiled for, and gives its result.
    ///
    /// # Errors
    /// When there are more or fewer inputs than it has, or one has another size; and when the program raises an exception.
    pub fn run(&mut self, inputs: &[Tensor]) -> Result<Value> {
        let mut results = self.run_all(inputs)?;
        Ok(match results.len() {
            1 => results.remove(0),
            _ => Value::tuple(results),
        })
    }

    /// [`CompiledMethod::run`], giving the outputs of the graph one by one.
    pub(crate) fn run_all(&mut self, inputs: &[Tensor]) -> Result<Vec<Value>> {
        let (buffers, ()) = self.with_buffers(inputs, |code, inputs, outputs| code.run(inputs, outputs))?;
        let ports = self.executable.outputs();
        let mut values = Vec::with_capacity(ports.len());
        // The last outputs are those of checks, which no result mentions.
        for (port, buffer) in ports.iter().zip(buffers) {
            let strides = frazil_ir::contiguous_strides(&port.shape);
            let tensor = Tensor::from_storage(Storage::from_owned(buffer), port.dtype, &port.shape, &strides, 0)?;
            values.push(Value::from(tensor));
        }
        Ok(self.results.iter().map(|r| r.value(&values)).collect())
    }

    /// Runs the method for `time` and tells where the time goes.
    ///
    /// # Errors
    /// As [`CompiledMethod::run`].
    pub fn profile(&mut self, inputs: &[Tensor], time: Duration) -> Result<Profile> {
        let (_, profile) = self.with_buffers(inputs, |code, inputs, outputs| code.profile(inputs, outputs, time))?;
        Ok(profile)
    }

    /// Lets `run` work on the inputs' bytes and on new buffers for the outputs; gives those.
    fn with_buffers<R>(
        &mut self,
        inputs: &[Tensor],
        run: impl FnOnce(&mut Executable, &[&[u8]], &mut [&mut [u8]]) -> Result<R, RunError>,
    ) -> Result<(Vec<AlignedBytes>, R)> {
        let dense = inputs.iter().map(Tensor::contiguous).collect::<Result<Vec<_>, _>>()?;
        let snapshots: Vec<_> = dense.iter().map(|t| t.storage().bytes()).collect();
        let bytes: Vec<&[u8]> = dense
            .iter()
            .zip(&snapshots)
            .map(|(t, bytes)| {
                let size = t.dtype().size();
                let first = t.offset() as usize * size;
                bytes.get(first..first + t.numel() as usize * size).unwrap_or_default()
            })
            .collect();
        let sizes = self.executable.outputs().iter().map(Port::bytes);
        let mut buffers: Vec<AlignedBytes> = sizes.map(AlignedBytes::zeroed).collect();
        let mut outputs: Vec<&mut [u8]> = buffers.iter_mut().map(AlignedBytes::as_mut_slice).collect();
        let result = run(&mut self.executable, &bytes, &mut outputs)?;
        Ok((buffers, result))
    }
}

impl Loaded {
    /// The kernels of method `method` for tensor inputs of these shapes.
    ///
    /// # Errors
    /// When there is no such method, or it cannot be compiled.
    pub fn plan(&self, method: &str, inputs: &[InputSpec], options: &CompileOptions) -> Result<NativePlan> {
        let inputs: Vec<_> = inputs.iter().map(tensor_spec).collect();
        Ok(NativePlan::new(
            self.graph(method)?,
            &inputs,
            self.session().registry(),
            options,
        )?)
    }
}

impl Model {
    /// Compiles `forward`, which must not touch attributes any more ([`Model::freeze`] sees to that), for inputs of these shapes.
    ///
    /// # Errors
    /// When it cannot be compiled; the error lists every operator that is in the way.
    pub fn compile(&self, inputs: &[InputSpec], options: &CompileOptions) -> Result<CompiledMethod> {
        let inputs: Vec<_> = inputs.iter().map(tensor_spec).collect();
        NativePlan::new(self.graph("forward")?, &inputs, self.session().registry(), options)?.compile(options)
    }
}

/// `name` with everything that no C identifier has replaced by underscores.
fn c_identifier(name: &str) -> String {
    let mut out: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    if out.is_empty() || out.starts_with(|c: char| c.is_ascii_digit()) {
        out.insert(0, '_');
    }
    out
}

/// What became of a method for one kind of arguments.
enum Entry {
    Compiled(Box<CompiledMethod>),
    /// It runs stretch by stretch.
    Course,
    /// It runs in the interpreter.
    Interpreted,
}

/// Combinations of arguments and state for which stretches are kept; with one more, all are forgotten.
const MAX_COURSES: usize = 64;

/// Compiled methods by name and arguments.
pub(crate) struct Cache {
    options: CompileOptions,
    strict: bool,
    /// How many entries a method may have.
    specialisations: Option<usize>,
    methods: HashMap<(String, Vec<Argument>), Entry>,
    /// Those that run stretch by stretch, by name, arguments, and state.
    courses: HashMap<(String, Vec<Argument>), Course>,
    /// The attributes that methods set.
    sets: HashMap<String, HashSet<(SymbolId, SymbolId)>>,
    /// Those of earlier processes.
    kept: Option<CodeCache>,
    pub(crate) notes: Vec<String>,
    pub(crate) compile_time: Duration,
}

impl Cache {
    pub(crate) fn new(options: CompileOptions, engine: &EngineOptions, kept: Option<CodeCache>) -> Cache {
        Cache {
            options,
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

    /// Whether methods of earlier processes are there to be used.
    pub(crate) fn is_kept(&self) -> bool {
        self.kept.is_some()
    }

    /// Runs `method` natively; `None` when it has to be interpreted.
    pub(crate) fn call(&mut self, instance: &mut Instance, method: &str, args: &[Value]) -> Result<Option<Value>> {
        let Some(args) = with_defaults(instance.source(), method, args)? else {
            return Ok(None);
        };
        let Some((keys, specs, tensors)) = describe_all(&args) else {
            return self.interpreted(method, "an argument is neither a tensor nor a plain value");
        };
        let key = (method.to_owned(), keys);
        if !self.methods.contains_key(&key) {
            if let Some(most) = self.specialisations
                && self.methods.keys().filter(|(name, _)| name == method).count() >= most
            {
                return self.interpreted(method, &format!("it has been compiled for {most} kinds of arguments"));
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
            Some(Entry::Course) => self.course(instance, method, &args),
            _ => Ok(None),
        }
    }

    /// Runs `method` stretch by stretch; `None` when it has to be interpreted.
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
        let Some(situation) = Situation::new(module.ctx(), running.root(), args, &changes) else {
            return self.interpreted(method, "an attribute is neither a tensor nor a plain value");
        };
        let key = (method.to_owned(), situation.keys.clone());
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
            options: &self.options,
            strict: self.strict,
        };
        let ending = self
            .courses
            .entry(key)
            .or_default()
            .run(&compiled, &situation, &mut self.notes);
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

    /// Runs `method` of `model`, which [`Cache::call`] has run natively on such arguments, for `time`, and tells where the time goes;
    /// `None` when it is not native.
    pub(crate) fn profile(
        &mut self,
        model: &Model,
        method: &str,
        args: &[Value],
        time: Duration,
    ) -> Result<Option<Profile>> {
        let described = with_defaults(model, method, args)?.and_then(|args| describe_all(&args));
        let Some((keys, _, tensors)) = described else {
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
        let start = Instant::now();
        let options = CompileOptions {
            name: method.to_owned(),
            ..self.options.clone()
        };
        let ctx = instance.source().session().ctx().clone();
        let types = result_types(instance.source(), method)?;
        let found = self.kept.as_ref().and_then(|kept| kept.get(method, keys, &ctx, &types));
        let (package, results, what) = match found {
            Some((package, results)) => (package, results, "found"),
            None => {
                let model = &instance.running()?.model;
                let made = NativePlan::new(model.graph(method)?, specs, model.session().registry(), &options);
                let plan = match made {
                    Ok(plan) => plan,
                    // The interpreter raises it, with the place.
                    Err(LowerError::Raises { .. }) => return Ok(Entry::Interpreted),
                    Err(LowerError::Unsupported(_)) => return Ok(Entry::Course),
                    Err(error) => return self.not_compiled(method, &error.to_string()),
                };
                let package = match plan.package(&options) {
                    Ok(package) => package,
                    // A scalar function without native code, for one.
                    Err(error) => return self.not_compiled(method, &error.to_string()),
                };
                if let Some(kept) = &self.kept {
                    kept.put(method, keys, &ctx, &types, &package, &plan.results);
                }
                (package, plan.results, "compiled")
            }
        };
        let (calls, kernels) = package.kernel_count();
        let workspace = package.workspace_bytes();
        let code = match CompiledMethod::new(package, results, &options) {
            Ok(code) => code,
            Err(error) => return self.not_compiled(method, &error.to_string()),
        };
        let time = start.elapsed();
        self.compile_time += time;
        self.notes.push(format!(
            "{method}: {calls} kernel calls ({kernels} distinct), workspace {} KiB, {what} in {:.0} ms",
            workspace / 1024,
            time.as_secs_f64() * 1e3
        ));
        Ok(Entry::Compiled(Box::new(code)))
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

/// `args` with the defaults of those that are missing; `None` when one has no default, which the interpreter reports.
fn with_defaults(model: &Model, method: &str, args: &[Value]) -> Result<Option<Vec<Value>>> {
    let module = model.module();
    let Some(function) = module.method_function(model.session().ctx().symbol(method)) else {
        return Ok(None);
    };
    let mut all = args.to_vec();
    for missing in function.schema.arguments.iter().skip(args.len() + 1) {
        let Some(default) = &missing.default else {
            return Ok(None);
        };
        all.push(Importer::new().value(default, Some(module))?);
    }
    Ok(Some(all))
}

/// The attributes that a graph sets: classes and names.
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

/// The types of the results of `method`.
fn result_types(model: &Model, method: &str) -> Result<Vec<TypeId>> {
    let graph = model.graph(method)?;
    Ok(graph.outputs().map(|v| graph.ty(v)).collect())
}
