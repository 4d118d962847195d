//! The LLVM part of the backend: target machines, the pass pipeline, objects.

use frazil_planner::target::Target;
use inkwell::OptimizationLevel;
use inkwell::attributes::AttributeLoc;
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{CodeModel, FileType, InitializationConfig, RelocMode, Target as LlvmTarget, TargetMachine};

/// Error of LLVM.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("LLVM: {0}")]
pub struct LlvmError(String);

/// Kernels are vectorised already; the full pipelines gain nothing and may reorder loads until registers spill.
const PASSES: &str = "function(lower-expect,early-cse,simplifycfg,instcombine<no-verify-fixpoint>,loop(loop-rotate),loop-mssa(licm),loop(indvars),early-cse,instcombine<no-verify-fixpoint>)";

/// Returns the target for the processor that this program runs on.
pub fn host_target() -> Target {
    Target::new(
        &text_of(TargetMachine::get_host_cpu_name()),
        &text_of(TargetMachine::get_host_cpu_features()),
    )
}

/// Registers the host's target with LLVM, which is required both for emitting and for loading objects.
pub(super) fn initialize() -> Result<(), LlvmError> {
    frazil_executor::memory::deferred::run();
    LlvmTarget::initialize_native(&InitializationConfig::default()).map_err(LlvmError)
}

fn text_of(s: inkwell::support::LLVMString) -> String {
    s.to_string_lossy().into_owned()
}

/// A code generator for one target, for one thread.
pub struct Machine {
    machine: TargetMachine,
    cpu: String,
    features: String,
    lanes: i64,
}

impl Machine {
    /// Returns a code generator for `target`.
    pub fn new(target: &Target) -> Result<Machine, LlvmError> {
        if !target.is_known() {
            return Err(LlvmError(format!(
                "processor `{}` is not known; give `host`, `x86-64`, `x86-64-v2`, `x86-64-v3`, `x86-64-v4`, or LLVM's name of one",
                target.cpu
            )));
        }
        initialize()?;
        let triple = TargetMachine::get_default_triple();
        let llvm = LlvmTarget::from_triple(&triple).map_err(|e| LlvmError(text_of(e)))?;
        let machine = llvm
            .create_target_machine(
                &triple,
                &target.cpu,
                &target.features,
                OptimizationLevel::Aggressive,
                RelocMode::PIC,
                CodeModel::Default,
            )
            .ok_or_else(|| LlvmError(format!("no code generator for processor {}", target.cpu)))?;
        Ok(Machine {
            machine,
            cpu: target.cpu.clone(),
            features: target.features.clone(),
            lanes: target.vector().lanes,
        })
    }

    /// Sets the properties of the module that the code generator reads, and runs the passes.
    fn optimise(&self, module: &Module<'_>) -> Result<(), LlvmError> {
        module.set_triple(&self.machine.get_triple());
        module.set_data_layout(&self.machine.get_target_data().get_data_layout());
        let context = module.get_context();
        let width = (self.lanes * 32).to_string();
        for function in module.get_functions().filter(|f| f.count_basic_blocks() > 0) {
            for (key, value) in [
                ("target-cpu", &self.cpu),
                ("target-features", &self.features),
                ("prefer-vector-width", &width),
            ] {
                if !value.is_empty() {
                    let attribute = context.create_string_attribute(key, value);
                    function.add_attribute(AttributeLoc::Function, attribute);
                }
            }
        }
        module
            .run_passes(PASSES, &self.machine, PassBuilderOptions::create())
            .map_err(|e| LlvmError(text_of(e)))
    }

    fn write(&self, module: &Module<'_>, kind: FileType) -> Result<Vec<u8>, LlvmError> {
        self.optimise(module)?;
        let buffer = self
            .machine
            .write_to_memory_buffer(module, kind)
            .map_err(|e| LlvmError(text_of(e)))?;
        Ok(buffer.as_slice().to_vec())
    }

    /// Returns the object file of `module`.
    pub fn object(&self, module: &Module<'_>) -> Result<Vec<u8>, LlvmError> {
        self.write(module, FileType::Object)
    }

    /// Returns the assembly of `module`.
    pub fn assembly(&self, module: &Module<'_>) -> Result<String, LlvmError> {
        Ok(String::from_utf8_lossy(&self.write(module, FileType::Assembly)?).into_owned())
    }

    /// Returns the optimised IR of `module`.
    pub fn ir(&self, module: &Module<'_>) -> Result<String, LlvmError> {
        self.optimise(module)?;
        Ok(module.print_to_string().to_string())
    }
}
