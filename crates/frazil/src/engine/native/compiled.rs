//! Native code of methods for inputs of given shapes: plans of kernels, and compiled methods.

use crate::engine::instance::OwnHooks;
use crate::engine::native::compiler::Compiler;
use crate::engine::native::leaves::Leaves;
use crate::engine::native::port_names::name_ports;
use crate::engine::native::signature::tensor_spec;
use crate::engine::options::{CompileOptions, InputSpec};
use crate::error::{Error, Result};
use crate::model::Model;
use crate::model::loaded::Loaded;
use crate::support::backing::Backing;
use crate::support::limited::within;
use frazil_codegen::BackendOptions;
use frazil_codegen::aot;
use frazil_codegen::backend::host_target;
use frazil_codegen::compile::Stage;
use frazil_executor::RunError;
use frazil_executor::memory::Workspace;
use frazil_executor::run::profile::Profile;
use frazil_executor::{Executable, LoadedCode, Package};
use frazil_ir::{Graph, TypeKind};
use frazil_limits::{Limits, Phase};
use frazil_planner::kernel::{KernelCode, KernelSpec};
use frazil_planner::packed::PackedKey;
use frazil_planner::plan::{Buffer, Plan, Port};
use frazil_planner::specialise::{self, ResultSpec, Specialised, specialise, specialise_aliasing, specialise_method};
use frazil_planner::target::Target;
use frazil_planner::tune::Tuning;
use frazil_planner::{LowerError, LowerOptions, lower};
use frazil_runtime::storage::AlignedBytes;
use frazil_runtime::value::{TensorCell, Value};
use frazil_runtime::{Registry, Storage, Tensor};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tracing::info;

impl CompileOptions {
    pub(crate) fn target(&self) -> Target {
        match self.target_cpu.as_str() {
            "host" | "native" => host_target(),
            cpu => Target::new(cpu, ""),
        }
    }
}

/// An intermediate representation of native code that can be printed.
///
/// See [`NativePlan`] for an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emit {
    /// Fused kernels, with their shapes and memory.
    Kernels,
    /// The kernels in MLIR.
    Mlir,
    /// The kernels in MLIR, with locations: the operators that each kernel computes, and their places in the source.
    LocatedMlir,
    /// The kernels in LLVM IR, after optimisation.
    Llvm,
    /// The kernels in assembler.
    Asm,
    /// One object file with all kernels.
    Object,
}

/// The kernels of a method for inputs of given shapes, ready to be compiled to machine code.
///
/// ```
/// use frazil::{CompileOptions, Emit, InputSpec, ir::DType};
///
/// # let source = "def f(x): return (x + 1).relu() * 2\n";
/// # let loaded = frazil::Session::new().script("f.py".as_ref(), source, &[])?;
/// // of `def f(x): return (x + 1).relu() * 2`
/// let plan = loaded.plan("f", &[InputSpec::new(DType::Float, &[8])], &CompileOptions::default())?;
/// assert_eq!(plan.kernel_count(), (1, 1)); // fused
/// assert_eq!(plan.workspace_bytes(), 0);
/// assert!(String::from_utf8_lossy(&plan.emit(Emit::Mlir)?).contains("module"));
/// # Ok::<(), frazil::Error>(())
/// ```
pub struct NativePlan {
    plan: Plan,
    /// Specifications of the method's results, which are formed from the outputs of the code.
    pub(crate) results: Vec<ResultSpec>,
    /// Whether the method emits warnings, which compiled code does not emit.
    pub(crate) warns: bool,
    back_end: BackendOptions,
    /// The files from which constants of the method are read.
    backing: Backing,
    /// Limits on the compilation of the plan.
    limits: Limits,
}

impl NativePlan {
    /// Returns a plan for [`CompiledMethod::run_aliasing`]: inputs that the graph returns are not outputs of the code.
    pub(crate) fn aliasing(
        graph: &Graph,
        inputs: &[specialise::ArgumentSpec],
        shared: Option<specialise::Shared<'_>>,
        registry: &Registry,
        compiler: &Compiler,
    ) -> Result<Self, LowerError> {
        NativePlan::of(specialise_aliasing(graph, inputs, shared, registry)?, compiler)
    }

    pub(crate) fn of(specialised: Specialised, compiler: &Compiler) -> Result<Self, LowerError> {
        let options = &compiler.options;
        let mut lower_options = compiler.lower_options();
        let back_end = compiler.back_end(lower_options.target.clone());
        if let Some(file) = &options.tune {
            match tuning(&specialised, &lower_options, compiler, file) {
                Ok(found) => lower_options.tuning = found,
                Err(e) => compiler.warn_untuned(&e),
            }
        }
        let plan = lower(specialised.graph, &lower_options)?;
        Ok(NativePlan {
            plan,
            results: specialised.results,
            warns: !specialised.warnings.is_empty(),
            back_end,
            backing: Backing::default(),
            limits: Limits::NONE,
        })
    }

    /// Returns the plan with inputs and outputs named as in `graph`.
    fn named(mut self, graph: &Graph) -> NativePlan {
        name_ports(&mut self.plan, graph, &self.results);
        self
    }

    /// Returns the plan with `limits` as the limits on its compilation.
    fn within(mut self, limits: &Limits) -> NativePlan {
        self.limits = *limits;
        self
    }

    /// Returns the plan with `backing` as the files from which constants are read.
    fn reading(mut self, backing: &Backing) -> NativePlan {
        self.backing = backing.clone();
        self
    }

    /// Returns the number of kernel calls in one run, and the number of distinct kernels among them.
    ///
    /// See [`NativePlan`] for an example.
    pub fn kernel_count(&self) -> (usize, usize) {
        self.plan.kernel_count()
    }

    /// Returns the workspace of a run in bytes: memory in addition to inputs, outputs and weights.
    ///
    /// See [`NativePlan`] for an example.
    pub fn workspace_bytes(&self) -> usize {
        self.plan.workspace_bytes
    }

    /// Returns the representation `kind` of the plan, as text or bytes.
    ///
    /// See [`NativePlan`] for an example.
    ///
    /// # Errors
    /// If code generation fails.
    pub fn emit(&self, kind: Emit) -> Result<Vec<u8>> {
        let text = |stage| aot::stage_text(&self.plan, &self.back_end, stage).map(String::into_bytes);
        let bytes = match kind {
            Emit::Kernels => aot::kernels_text(&self.plan).into_bytes(),
            Emit::Object => within(&self.limits, Phase::Compile, || {
                Ok::<_, Error>(aot::object(&self.plan, &self.back_end)?)
            })?,
            Emit::Mlir => text(Stage::Mlir)?,
            Emit::LocatedMlir => text(Stage::LocatedMlir)?,
            Emit::Llvm => text(Stage::Llvm)?,
            Emit::Asm => text(Stage::Assembly)?,
        };
        self.backing.check()?;
        Ok(bytes)
    }

    /// Writes a shared library to `path`, and its C header to a file beside it.
    ///
    /// ```
    /// # use frazil::{CompileOptions, InputSpec, ir::DType};
    /// # let loaded = frazil::Session::new().script("f.py".as_ref(), "def f(x): return x + 1\n", &[])?;
    /// # let folder = tempfile::tempdir().map_err(|e| frazil::Error::Text(e.to_string()))?;
    /// # let path = folder.path().join("libmodel.so");
    /// let plan = loaded.plan("f", &[InputSpec::new(DType::Float, &[8])], &CompileOptions::default())?;
    /// plan.write_library(&path)?; // `libmodel.so`
    /// assert!(path.is_file() && path.with_extension("h").is_file());
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If code generation or linking fails, or a file cannot be written; no partial file remains.
    pub fn write_library(&self, path: &Path) -> Result<()> {
        // Weights are packed before anything is written.
        let _ = (self.plan.constants.bytes(), self.plan.preparation.sources.bytes());
        self.backing.check()?;
        within(&self.limits, Phase::Compile, || {
            aot::write_library(&self.plan, &self.back_end, path)?;
            Ok(())
        })
    }

    /// Compiles the plan for this process, with the threads and the code cache of `options`.
    ///
    /// ```
    /// # use frazil::{CompileOptions, InputSpec, Tensor, ir::DType};
    /// # let loaded = frazil::Session::new().script("f.py".as_ref(), "def f(x): return x + 1\n", &[])?;
    /// let options = CompileOptions::default();
    /// let plan = loaded.plan("f", &[InputSpec::new(DType::Float, &[2])], &options)?;
    /// let result = plan.compile(&options)?.run(&[Tensor::from_f32(&[1.0, 2.0], &[2])?])?;
    /// assert_eq!(result.as_tensor().map(|t| t.to_f64_vec()), Some(vec![2.0, 3.0]));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If code generation fails.
    pub fn compile(self, options: &CompileOptions) -> Result<CompiledMethod> {
        let _inside = frazil_rt::gate::enter()?;
        self.compile_with(&Compiler::of(options))
    }

    /// Compiles the plan as [`NativePlan::compile`] does.
    fn compile_with(self, compiler: &Compiler) -> Result<CompiledMethod> {
        self.code(compiler)?.instance()
    }

    /// Returns executable code in memory, of which instances can be created. If the compiler is for any size, all sizes are arguments of the code.
    pub(crate) fn code(self, compiler: &Compiler) -> Result<CompiledCode> {
        let package = match compiler.is_for_any_size() {
            true => {
                let codes = self.codes_for_any_size();
                compiler.check_library(&codes)?;
                self.package_with(compiler, &codes)?
            }
            false => self.package(compiler)?,
        };
        let code = CompiledCode::new(package, self.results, compiler)?;
        compiler.keep_packed(&self.plan.packed, &code.code);
        self.backing.check()?;
        Ok(code)
    }

    /// Returns the distinct kernels.
    pub(crate) fn kernels(&self) -> &[KernelSpec] {
        &self.plan.kernels
    }

    /// Returns the code of each distinct kernel, with all sizes as arguments.
    pub(crate) fn codes_for_any_size(&self) -> Vec<KernelCode> {
        let kernels = self.plan.kernels.iter().cloned();
        kernels.map(KernelCode::with_all_arguments).collect()
    }

    /// Returns the object code as [`NativePlan::package`] does, with `codes` as the code of the kernels.
    pub(crate) fn package_with(&self, compiler: &Compiler, codes: &[KernelCode]) -> Result<Package> {
        within(&self.limits, Phase::Compile, || {
            let options = compiler.back_end(self.back_end.target.clone());
            Ok(frazil_codegen::package_with(&self.plan, codes, &options)?)
        })
    }

    /// Returns the object code as a package that can be loaded or stored.
    pub(crate) fn package(&self, compiler: &Compiler) -> Result<Package> {
        within(&self.limits, Phase::Compile, || {
            Ok(frazil_codegen::package(
                &self.plan,
                &compiler.back_end(self.back_end.target.clone()),
            )?)
        })
    }

    /// Returns the specifications of the results, and the places of the constants that the plan packs.
    pub(crate) fn into_results(self) -> (Vec<ResultSpec>, Vec<(PackedKey, Buffer)>) {
        (self.results, self.plan.packed)
    }
}

/// Returns `package` with the results of the computations that otherwise precede the first run (such as packed
/// weights), to be stored.
pub(crate) fn prepared(package: Package, compiler: &Compiler) -> Result<Package> {
    Ok(package.prepared(&compiler.run_options())?)
}

/// Returns the tuning results in `file`, after adding measurements of those kernels of the graph that the file does not contain.
fn tuning(specialised: &Specialised, lowering: &LowerOptions, compiler: &Compiler, file: &Path) -> Result<Tuning> {
    if lowering.target != host_target() {
        return Err(Error::Unsupported(
            "kernels for another processor cannot be measured".to_owned(),
        ));
    }
    let known = Tuning::read(file).map_err(|e| Error::io("read", file, e))?;
    let with_known = LowerOptions {
        tuning: known.clone(),
        ..lowering.clone()
    };
    let plan = lower(specialised.graph.clone(), &with_known)?;
    let mut found = known.clone();
    frazil_codegen::tune::measure(&mut found, &plan, &compiler.back_end(lowering.target.clone()))?;
    if found != known {
        found.write(file).map_err(|e| Error::io("write", file, e))?;
        let (kernels, changed) = found.counts();
        info!("{kernels} kernels measured, {changed} of them take another form than estimated");
    }
    Ok(found)
}

/// The code of a compiled method, which its instances share.
pub(crate) struct CompiledCode {
    code: LoadedCode,
    kernels: usize,
    results: Arc<[ResultSpec]>,
    target: Arc<Target>,
}

impl CompiledCode {
    /// Loads `package` as the code of a method with the results `results`.
    pub(crate) fn new(package: Package, results: Vec<ResultSpec>, compiler: &Compiler) -> Result<CompiledCode> {
        let (_, kernels) = package.kernel_count();
        let code = package.link(&compiler.run_options())?;
        Ok(CompiledCode {
            code,
            kernels,
            results: results.into(),
            target: Arc::new(compiler.target().clone()),
        })
    }

    /// Stores the constants that the plan of this code has packed, at `places`, for other plans of this process.
    pub(crate) fn keep_packed(&self, places: &[(PackedKey, Buffer)], compiler: &Compiler) {
        compiler.keep_packed(places, &self.code);
    }

    /// Returns the number of distinct kernels.
    pub(crate) fn kernels(&self) -> usize {
        self.kernels
    }

    /// Returns an estimate of the memory that only this code uses, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.code.own_bytes()
    }

    /// Returns an instance of the code, which one thread at a time may use.
    pub(crate) fn instance(&self) -> Result<CompiledMethod> {
        self.instance_in(&Workspace::default())
    }

    /// Returns an instance of the code that runs in `workspace`. One thread at a time may use it, and only while no other instance runs in `workspace`.
    pub(crate) fn instance_in(&self, workspace: &Workspace) -> Result<CompiledMethod> {
        Ok(CompiledMethod {
            executable: self.code.instance_in(workspace)?,
            results: Arc::clone(&self.results),
            target: Arc::clone(&self.target),
        })
    }
}

/// A method that was compiled for inputs of given shapes.
///
/// See [`Model::compile`] for an example.
pub struct CompiledMethod {
    executable: Executable,
    results: Arc<[ResultSpec]>,
    target: Arc<Target>,
}

impl CompiledMethod {
    /// Returns the inputs: their names in the program, element types and sizes.
    ///
    /// ```
    /// # use frazil::{CompileOptions, InputSpec, ir::DType};
    /// # let source = "def f(image):\n    scores = image * 2\n    return scores\n";
    /// # let loaded = frazil::Session::new().script("f.py".as_ref(), source, &[])?;
    /// # let options = CompileOptions::default();
    /// // of `def f(image): scores = image * 2; return scores`
    /// let compiled = loaded.plan("f", &[InputSpec::new(DType::Float, &[2])], &options)?.compile(&options)?;
    /// assert_eq!((compiled.inputs()[0].name.as_str(), compiled.outputs()[0].name.as_str()), ("image", "scores"));
    /// # Ok::<(), frazil::Error>(())
    /// ```
    pub fn inputs(&self) -> &[Port] {
        self.executable.inputs()
    }

    /// Returns the tensors of the result, in order: their names in the program, element types and sizes.
    ///
    /// See [`inputs`](Self::inputs) for an example.
    pub fn outputs(&self) -> &[Port] {
        self.executable.results()
    }

    /// Runs the method on dense tensors of the compiled shapes, and returns its result.
    ///
    /// See [`Model::compile`] for an example.
    ///
    /// # Errors
    /// If the number of inputs is wrong, if one has another dtype or shape, or if the program raises an exception.
    pub fn run(&mut self, inputs: &[Tensor]) -> Result<Value> {
        let _inside = frazil_rt::gate::enter()?;
        self.check(inputs)?;
        Ok(single(self.run_all(inputs)?))
    }

    /// Runs the method as [`CompiledMethod::run`] does. `cells` are the variables of the tensors in `inputs`. Results that are inputs or views of inputs share
    /// memory with these inputs.
    pub(crate) fn run_aliasing(&mut self, inputs: &[Tensor], cells: &[TensorCell]) -> Result<Value> {
        Ok(single(self.results_aliasing(inputs, cells)?))
    }

    /// Runs the method as [`CompiledMethod::run_aliasing`] does, and returns each result of the graph.
    pub(crate) fn results_aliasing(&mut self, inputs: &[Tensor], cells: &[TensorCell]) -> Result<Vec<Value>> {
        self.check(inputs)?;
        let leaves = Leaves::new(self.run_outputs(inputs)?, cells);
        Ok(self.results.iter().map(|r| leaves.value(r)).collect())
    }

    /// Returns an error if an input has another dtype or shape than those for which the method was compiled.
    fn check(&self, inputs: &[Tensor]) -> Result<(), RunError> {
        // The number of outputs is checked with their sizes.
        for (port, input) in self.executable.inputs().iter().zip(inputs) {
            if (port.dtype, port.shape.as_slice()) != (input.dtype(), input.sizes()) {
                return Err(RunError::Input {
                    name: port.name.clone(),
                    expected: format!("{} {:?}", port.dtype, port.shape),
                    given: format!("{} {:?}", input.dtype(), input.sizes()),
                });
            }
        }
        Ok(())
    }

    /// Runs the method as [`CompiledMethod::run`] does, and returns the outputs of the graph separately.
    pub(crate) fn run_all(&mut self, inputs: &[Tensor]) -> Result<Vec<Value>> {
        let leaves = Leaves::new(self.run_outputs(inputs)?, &[]);
        Ok(self.results.iter().map(|r| leaves.value(r)).collect())
    }

    /// Runs the method on the bytes of its inputs, which are dense, and writes the bytes of its outputs.
    pub(crate) fn run_into(&mut self, inputs: &[&[u8]], outputs: &mut [&mut [u8]]) -> Result<(), RunError> {
        self.executable.run(inputs, outputs)
    }

    /// Runs the method, and returns the output tensors of its code.
    fn run_outputs(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let buffers = self.with_bytes(inputs, |code, inputs| code.call(inputs))?;
        let ports = self.executable.outputs();
        let mut values = Vec::with_capacity(ports.len());
        // The last outputs belong to checks and are not part of the result.
        for (port, buffer) in ports.iter().zip(buffers) {
            let strides = frazil_ir::contiguous_strides(&port.shape);
            let tensor = Tensor::from_storage(Storage::from_owned(buffer), port.dtype, &port.shape, &strides, 0)?;
            values.push(tensor);
        }
        Ok(values)
    }

    /// Runs the method repeatedly for `time` and returns the time that each kernel takes.
    ///
    /// ```
    /// # use {frazil::{CompileOptions, InputSpec, Tensor, ir::DType}, std::time::Duration};
    /// # let mut model = frazil::Session::new().script("f.py".as_ref(), "def f(x): return x + 1\n", &[])?.to_model("f")?;
    /// # model.eval();
    /// # let model = model.freeze(&frazil::FreezeOptions::default())?;
    /// let mut forward = model.compile(&[InputSpec::new(DType::Float, &[2])], &CompileOptions::default())?;
    /// let profile = forward.profile(&[Tensor::from_f32(&[1.0, 2.0], &[2])?], Duration::from_millis(1))?;
    /// assert!(profile.runs > 0 && profile.rows.len() == 1); // one kernel
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// See [`CompiledMethod::run`].
    pub fn profile(&mut self, inputs: &[Tensor], time: Duration) -> Result<Profile> {
        self.check(inputs)?;
        let peak = frazil_codegen::tune::peak(&self.target, self.executable.threads());
        self.with_bytes(inputs, |code, inputs| {
            let mut buffers: Vec<_> = code
                .outputs()
                .iter()
                .map(|p| AlignedBytes::zeroed(p.bytes()))
                .collect::<Result<_, _>>()
                .map_err(|e| RunError::Raised(e.to_string()))?;
            let mut outputs: Vec<&mut [u8]> = buffers.iter_mut().map(AlignedBytes::as_mut_slice).collect();
            code.profile(inputs, &mut outputs, time, peak)
        })
    }

    /// Calls `run` with the bytes of the inputs.
    fn with_bytes<R>(
        &mut self,
        inputs: &[Tensor],
        run: impl FnOnce(&mut Executable, &[&[u8]]) -> Result<R, RunError>,
    ) -> Result<R> {
        let dense = inputs.iter().map(Tensor::contiguous).collect::<Result<Vec<_>, _>>()?;
        let snapshots: Vec<_> = dense.iter().map(|t| t.storage().bytes()).collect();
        let bytes: Vec<&[u8]> = dense
            .iter()
            .zip(&snapshots)
            .map(|(t, bytes)| {
                let size = t.dtype().size();
                // The address of a tensor without elements is arbitrary.
                let first = (t.offset() as usize).saturating_mul(size);
                let end = first.saturating_add(t.numel() as usize * size);
                bytes.get(first..end).unwrap_or_default()
            })
            .collect();
        Ok(run(&mut self.executable, &bytes)?)
    }
}

/// Returns the only result of a method, or a tuple of its results.
fn single(mut results: Vec<Value>) -> Value {
    match results.len() {
        1 => results.remove(0),
        _ => Value::tuple(results),
    }
}

/// Returns an error for the method `forward` of a module with hooks: compiled methods run no hooks, but callers of `forward` expect them.
fn has_no_hooks(model: &Model, method: &str) -> Result<()> {
    let hooks = OwnHooks::of(model, model.module().root, "");
    if method != "forward" || hooks.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = hooks
        .before
        .iter()
        .chain(&hooks.after)
        .map(|hook| format!("`{hook}`"))
        .collect();
    Err(Error::Unsupported(format!(
        "the module has hooks ({}), which compiled code of `forward` would leave out: an engine runs them, and a module that calls this one as its submodule \
         compiles with them",
        names.join(", ")
    )))
}

/// Returns an error for a method that uses attributes of a module that is not frozen. Without this check, each attribute would be a separate error. Frozen
/// modules have no training flag.
fn is_frozen(model: &Model, method: &str) -> Result<()> {
    let (graph, ctx) = (model.graph(method)?, model.session().ctx());
    let is_object = |value| matches!(ctx.type_kind(graph.ty(value)), TypeKind::Class(_));
    let uses_object = graph
        .inputs()
        .iter()
        .any(|&v| is_object(v) && graph.uses(v).next().is_some());
    match uses_object && model.root().has_attribute("training") {
        false => Ok(()),
        true => Err(Error::Unsupported(format!(
            "{} is not frozen, and native code is made of frozen modules: freeze it first",
            model.root().original_name()
        ))),
    }
}

/// Returns the graph of a method from which native code can be generated.
pub(crate) fn compilable_graph<'l>(loaded: &'l Loaded, method: &str) -> Result<&'l Graph> {
    if let Loaded::Model(model) = loaded {
        has_no_hooks(model, method)?;
        is_frozen(model, method)?;
    }
    loaded.graph(method)
}

/// Returns the specialised form of `graph`, of a method of `loaded`, for tensor inputs of these shapes.
pub(crate) fn specialised(loaded: &Loaded, graph: &Graph, inputs: &[InputSpec]) -> Result<Specialised, LowerError> {
    let inputs: Vec<_> = inputs.iter().map(tensor_spec).collect();
    let registry = loaded.session().registry();
    match loaded {
        Loaded::Model(model) => specialise_method(graph, &inputs, model.module(), registry),
        Loaded::Graphs(_) => specialise(graph, &inputs, registry),
    }
}

impl Loaded {
    /// Plans the kernels of method `method` for tensor inputs of these shapes.
    ///
    /// See [`NativePlan`] for an example.
    ///
    /// # Errors
    /// If there is no such method, it is `forward` of a module with hooks, the module is not frozen, or it cannot be compiled.
    pub fn plan(&self, method: &str, inputs: &[InputSpec], options: &CompileOptions) -> Result<NativePlan> {
        let _inside = frazil_rt::gate::enter()?;
        let graph = compilable_graph(self, method)?;
        let limits = self.session().limits();
        let compiler = Compiler::of(options);
        let plan = within(limits, Phase::Compile, || {
            Ok::<_, Error>(NativePlan::of(specialised(self, graph, inputs)?, &compiler)?)
        })?;
        let plan = plan.named(graph).within(limits);
        Ok(match self {
            Loaded::Model(model) => plan.reading(model.backing()),
            Loaded::Graphs(_) => plan,
        })
    }
}

impl Model {
    /// Compiles `forward` for inputs of these shapes. It must not access attributes (see [`Model::freeze`]).
    ///
    /// ```
    /// use frazil::{CompileOptions, FreezeOptions, InputSpec, Tensor, ir::DType};
    ///
    /// # let mut model = frazil::Session::new().script("f.py".as_ref(), "def f(x): return x + 1\n", &[])?.to_model("f")?;
    /// # model.eval();
    /// let frozen = model.freeze(&FreezeOptions::default())?;
    /// let mut forward = frozen.compile(&[InputSpec::new(DType::Float, &[2])], &CompileOptions::default())?;
    /// let result = forward.run(&[Tensor::from_f32(&[1.0, 2.0], &[2])?])?;
    /// assert_eq!(result.as_tensor().map(|t| t.to_f64_vec()), Some(vec![2.0, 3.0]));
    /// assert!(forward.run(&[Tensor::from_f32(&[1.0], &[1])?]).is_err()); // compiled for two elements
    /// # Ok::<(), frazil::Error>(())
    /// ```
    ///
    /// # Errors
    /// If it cannot be compiled; the error then lists all unsupported operators. Also if the module has hooks or is not frozen.
    pub fn compile(&self, inputs: &[InputSpec], options: &CompileOptions) -> Result<CompiledMethod> {
        let _inside = frazil_rt::gate::enter()?;
        let plan = Loaded::Model(self.clone()).plan("forward", inputs, options)?;
        plan.compile(options)
    }
}
