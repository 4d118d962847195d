//! A compiled function as data: machine code, constants, and the order of calls. What a process needs to run it, without the compiler.
//!
//! A package can be kept in a file and mapped by a later process; see [`stored`].

mod stored;

#[cfg(feature = "llvm")]
use crate::compile::compile_objects;
use crate::compile::{BackendOptions, Executable, LoadedCode, prepare};
use crate::kernel::KernelSpec;
use crate::native::CompileError;
use crate::native::jit::Jit;
use crate::plan::{Buffer, Call, Constants, Plan, Port, kernel_count};
use crate::profile::{self, CallInfo};
use frazil_tensor_ir::call::RuntimeCall;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::sync::Arc;

/// A compiled function.
#[derive(Clone, Debug)]
pub struct Package {
    pub(crate) contents: Contents,
    /// The objects of the kernels that have code, in order.
    pub(crate) objects: Vec<Vec<u8>>,
    pub(crate) constants: Constants,
    pub(crate) weights: Weights,
    /// What kernels of the host program do.
    pub(crate) hosts: Vec<Arc<RuntimeCall>>,
}

/// Weights that kernels read in another form than plans store.
#[derive(Clone, Debug)]
pub(crate) enum Weights {
    /// What the preparation is computed from.
    Sources(Constants),
    /// What it gives.
    Prepared(Constants),
}

/// No allocation is larger, nor what is in it.
const MAX_BYTES: usize = isize::MAX as usize;
/// Steps of a run, which are phases of kernels: hundreds of times those of the largest models.
const MAX_STEPS: usize = 1 << 22;

/// Everything of a function but its bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Contents {
    pub name: String,
    pub inputs: Vec<Port>,
    pub outputs: Vec<Port>,
    pub workspace_bytes: usize,
    pub kernels: Vec<PackedKernel>,
    pub calls: Vec<Call>,
    /// The calls of the preparation, and the bytes that they fill.
    pub preparation: (Vec<Call>, usize),
    pub checks: Vec<String>,
    pub infos: Vec<CallInfo>,
}

/// What is left of a kernel's description when it is compiled.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PackedKernel {
    /// Buffers that a call passes.
    pub buffers: usize,
    /// Tasks of each phase; none for calls of the host program.
    pub phases: SmallVec<[i64; 2]>,
    /// Which call of the host program it is.
    pub host: Option<u32>,
}

impl Contents {
    pub fn of(plan: &Plan) -> Contents {
        let kernels = plan.kernels.iter().map(|spec| PackedKernel {
            buffers: spec.buffer_count(),
            phases: spec.phases(),
            host: match spec {
                KernelSpec::Host(call) => Some(call.number),
                _ => None,
            },
        });
        Contents {
            name: plan.name.clone(),
            inputs: plan.inputs.clone(),
            outputs: plan.outputs.clone(),
            workspace_bytes: plan.workspace_bytes,
            kernels: kernels.collect(),
            calls: plan.calls.clone(),
            preparation: (plan.preparation.calls.clone(), plan.preparation.bytes),
            checks: plan.checks.clone(),
            infos: profile::calls(plan),
        }
    }

    /// Bytes that a run needs besides inputs and outputs.
    pub fn bytes_beside_ports(&self, constants: &Constants) -> usize {
        let sizes = [constants.len(), self.preparation.1, self.workspace_bytes];
        sizes.into_iter().fold(0, usize::saturating_add)
    }

    /// Checks what the compiled code relies on.
    pub fn validate(&self, constants: &Constants, sources: &Constants, hosts: usize) -> Result<(), CompileError> {
        let invalid = |text: String| Err(CompileError::InvalidPlan(text));
        if self.checks.len() > self.outputs.len() {
            return invalid("more checks than outputs".into());
        }
        for port in self.inputs.iter().chain(&self.outputs) {
            if port.shape.iter().any(|&extent| extent < 0) || port.bytes() > MAX_BYTES {
                return invalid(format!("port {} has sizes {:?}", port.name, port.shape));
            }
        }
        if self.bytes_beside_ports(constants) > MAX_BYTES {
            return invalid("the workspace and the constants are larger than memory can be".into());
        }
        if let Some(i) = self
            .kernels
            .iter()
            .position(|k| k.phases.iter().any(|&tasks| tasks < 0))
        {
            return invalid(format!("kernel {i} has a phase of less than no tasks"));
        }
        let (preparation, prepared) = &self.preparation;
        let calls = preparation
            .iter()
            .map(|c| (c, true))
            .chain(self.calls.iter().map(|c| (c, false)));
        let mut steps = 0usize;
        for (i, (call, prepares)) in calls.enumerate() {
            let Some(kernel) = self.kernels.get(call.kernel as usize) else {
                let count = self.kernels.len();
                return invalid(format!("call {i} names kernel {} of {count}", call.kernel));
            };
            steps = steps.saturating_add(kernel.phases.len());
            if steps > MAX_STEPS {
                return invalid(format!("more than {MAX_STEPS} steps"));
            }
            if let Some(host) = kernel.host
                && (host as usize >= hosts || prepares)
            {
                return invalid(format!("call {i} names call {host} of the host program of {hosts}"));
            }
            if kernel.buffers != call.buffers.len() {
                let (passed, expected) = (call.buffers.len(), kernel.buffers);
                return invalid(format!("call {i} passes {passed} buffers of {expected}"));
            }
            for buffer in &call.buffers {
                let in_port = |ports: &[Port], index: u32, offset| {
                    ports.get(index as usize).is_some_and(|p| offset <= p.bytes() as u64)
                };
                let inside = match *buffer {
                    Buffer::Constant { offset } if prepares => offset <= sources.len() as u64,
                    Buffer::Prepared { offset } => offset <= *prepared as u64,
                    _ if prepares => false,
                    Buffer::Input { index, offset } => in_port(&self.inputs, index, offset),
                    Buffer::Output { index, offset } => in_port(&self.outputs, index, offset),
                    Buffer::Workspace { offset } => offset <= self.workspace_bytes as u64,
                    Buffer::Constant { offset } => offset <= constants.len() as u64,
                };
                if !inside {
                    return invalid(format!("call {i} has buffer {buffer:?}, which does not exist"));
                }
            }
        }
        if self.infos.len() != self.calls.len() {
            let (infos, calls) = (self.infos.len(), self.calls.len());
            return invalid(format!("{infos} descriptions of {calls} calls"));
        }
        Ok(())
    }
}

impl Package {
    /// Compiles the kernels of `plan`.
    ///
    /// # Errors
    /// When a kernel cannot be compiled, or the plan contradicts itself.
    #[cfg(feature = "llvm")]
    pub fn new(plan: &Plan, options: &BackendOptions) -> Result<Package, CompileError> {
        let contents = Contents::of(plan);
        contents.validate(&plan.constants, &plan.preparation.sources, plan.hosts.len())?;
        Ok(Package {
            contents,
            objects: compile_objects(plan, &options.target, options.cache.as_ref())?,
            constants: plan.constants.clone(),
            weights: Weights::Sources(plan.preparation.sources.clone()),
            hosts: plan.hosts.clone(),
        })
    }

    /// Links the code into this process.
    ///
    /// # Errors
    /// When the code is not for this process, or the system refuses memory or threads.
    pub fn load(self, options: &BackendOptions) -> Result<Executable, CompileError> {
        self.link(options)?.instance()
    }

    /// Links the code into this process, for instances to be made of it.
    ///
    /// # Errors
    /// As [`Package::load`].
    pub fn link(self, options: &BackendOptions) -> Result<LoadedCode, CompileError> {
        self.validate()?;
        LoadedCode::new(self, options)
    }

    /// The same with what [`Package::load`] would compute before the first run, so that nobody whom the package is given has to.
    ///
    /// # Errors
    /// As [`Package::load`].
    pub fn prepared(mut self, options: &BackendOptions) -> Result<Package, CompileError> {
        self.validate()?;
        if let Weights::Sources(sources) = self.weights {
            let objects = self.objects.iter().map(Vec::as_slice);
            let code = Jit::new(&objects.collect::<Vec<_>>())?;
            let prepared = {
                let threads = options.pools.take(options.threads)?;
                prepare(&self.contents, sources, &code, &threads.runner())?
            };
            self.weights = Weights::Prepared(prepared);
            self.contents.preparation.0.clear();
        }
        Ok(self)
    }

    fn validate(&self) -> Result<(), CompileError> {
        let none = Constants::default();
        let sources = match &self.weights {
            Weights::Sources(sources) => sources,
            Weights::Prepared(prepared) if prepared.len() == self.contents.preparation.1 => &none,
            Weights::Prepared(_) => return Err(CompileError::InvalidPlan("prepared weights of another size".into())),
        };
        self.contents.validate(&self.constants, sources, self.hosts.len())
    }

    /// Number of inputs.
    pub fn input_count(&self) -> usize {
        self.contents.inputs.len()
    }

    /// Number of outputs without those of checks.
    pub fn result_count(&self) -> usize {
        self.contents.outputs.len().saturating_sub(self.contents.checks.len())
    }

    /// Number of kernel calls of a run, and of distinct kernels among them.
    pub fn kernel_count(&self) -> (usize, usize) {
        kernel_count(&self.contents.calls)
    }

    /// Bytes of memory that a run needs besides inputs, outputs and constants.
    pub fn workspace_bytes(&self) -> usize {
        self.contents.workspace_bytes
    }
}
