//! A compiled function as data: machine code, constants, and the order of calls. A process runs it without the compiler.
//!
//! A package can be kept in a file and mapped by a later process; see [`stored`].

mod stored;

use crate::error::LoadError;
use crate::link::Code;
use crate::memory::Constants;
use crate::program::{Buffer, Call, Port, kernel_count};
use crate::run::profile::CallInfo;
use frazil_tensor_ir::call::RuntimeCall;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::sync::Arc;

/// A compiled function.
#[derive(Clone, Debug)]
pub struct Package {
    pub(crate) contents: Contents,
    /// The objects that define the symbols of the kernels.
    pub(crate) objects: Vec<Vec<u8>>,
    pub(crate) constants: Constants,
    pub(crate) weights: Weights,
    /// Constants that other functions of the process use too.
    pub(crate) shared: Vec<Constants>,
    /// The code of each kernel by index; `None` if it is not loaded yet. May be shorter than the list of kernels.
    pub(crate) linked: Vec<Option<Arc<Code>>>,
    /// The runtime calls, by [`PackedKernel::runtime_call`].
    pub(crate) runtime_calls: Vec<Arc<RuntimeCall>>,
}

/// The parts of a [`Package`].
#[derive(Debug, Default)]
pub struct Parts {
    /// Everything except code and constants.
    pub contents: Contents,
    /// The objects that define the symbols of the kernels, except those of loaded code.
    pub objects: Vec<Vec<u8>>,
    /// The code of each kernel by index; `None` if it is not loaded yet. May be shorter than the list of kernels. A package with loaded code cannot be written
    /// to a file.
    pub linked: Vec<Option<Arc<Code>>>,
    /// Packed weights and other constants.
    pub constants: Constants,
    /// The weights that are prepacked at load time, in the layout in which they are stored.
    pub sources: Constants,
    /// Constants that other functions of the process use too. A package with such constants cannot be written to a file.
    pub shared: Vec<Constants>,
    /// The runtime calls, by [`PackedKernel::runtime_call`].
    pub runtime_calls: Vec<Arc<RuntimeCall>>,
}

/// Sizes of the memory that calls may refer to and that [`Contents`] does not describe.
#[derive(Clone, Debug, Default)]
pub struct Sizes {
    /// Size of the constants, in bytes.
    pub constants: usize,
    /// Size of the constants that are prepacked at load time ([`Parts::sources`]), in bytes.
    pub sources: usize,
    /// Size of each element of [`Parts::shared`], in bytes.
    pub shared: Vec<usize>,
    /// Number of runtime calls.
    pub runtime_calls: usize,
}

/// Weights that kernels read in another layout than the stored one, before or after prepacking.
#[derive(Clone, Debug)]
pub(crate) enum Weights {
    /// The weights in the stored layout.
    Sources(Constants),
    /// The prepacked weights.
    Prepared(Constants),
}

/// Maximum size in bytes of an allocation.
const MAX_BYTES: usize = isize::MAX as usize;
/// Maximum number of steps of a run, which are phases of kernels: hundreds of times those of the largest models.
const MAX_STEPS: usize = 1 << 22;

/// Everything of a function except its code and constants.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Contents {
    /// The inputs.
    pub inputs: Vec<Port>,
    /// The outputs: results, then one bool for each of `checks`.
    pub outputs: Vec<Port>,
    /// Bytes of workspace that a run needs.
    pub workspace_bytes: usize,
    /// The kernels.
    pub kernels: Vec<PackedKernel>,
    /// The calls of a run, in order.
    pub calls: Vec<Call>,
    /// The calls that prepack weights before the first run, and the number of bytes that they write.
    pub preparation: (Vec<Call>, usize),
    /// Messages of the exceptions that a run raises where the corresponding output is true.
    pub checks: Vec<String>,
    /// Descriptions of `calls` for profiles, one for each.
    pub infos: Vec<CallInfo>,
}

/// The part of a kernel's description that is needed to run it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PackedKernel {
    /// Symbol of the first phase in the objects.
    pub symbol: String,
    /// Number of buffers that a call passes.
    pub buffers: usize,
    /// The integers that a call passes to the code.
    pub numbers: SmallVec<[i64; 16]>,
    /// Number of tasks of each phase. Empty for runtime calls.
    pub phases: SmallVec<[i64; 2]>,
    /// Index into [`Parts::runtime_calls`] if the kernel is a runtime call.
    pub runtime_call: Option<u32>,
}

impl Contents {
    /// Returns the number of bytes that a run needs besides inputs and outputs, given the size of the constants in bytes.
    pub fn bytes_beside_ports(&self, constants: usize) -> usize {
        let sizes = [constants, self.preparation.1, self.workspace_bytes];
        sizes.into_iter().fold(0, usize::saturating_add)
    }

    /// Checks the invariants that the compiled code relies on.
    ///
    /// # Errors
    /// If an invariant does not hold.
    pub fn validate(&self, memory: &Sizes) -> Result<(), LoadError> {
        let runtime_calls = memory.runtime_calls;
        let invalid = |text: String| Err(LoadError::InvalidPlan(text));
        if self.checks.len() > self.outputs.len() {
            return invalid("more checks than outputs".into());
        }
        for port in self.inputs.iter().chain(&self.outputs) {
            if port.shape.iter().any(|&extent| extent < 0) || port.bytes() > MAX_BYTES {
                return invalid(format!("port {} has sizes {:?}", port.name, port.shape));
            }
        }
        if self.bytes_beside_ports(memory.constants) > MAX_BYTES {
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
            if let Some(number) = kernel.runtime_call
                && (number as usize >= runtime_calls || prepares)
            {
                return invalid(format!("call {i} names runtime call {number} of {runtime_calls}"));
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
                    Buffer::Constant { offset } if prepares => offset <= memory.sources as u64,
                    Buffer::Prepared { offset } => offset <= *prepared as u64,
                    _ if prepares => false,
                    Buffer::Input { index, offset } => in_port(&self.inputs, index, offset),
                    Buffer::Output { index, offset } => in_port(&self.outputs, index, offset),
                    Buffer::Workspace { offset } => offset <= self.workspace_bytes as u64,
                    Buffer::Constant { offset } => offset <= memory.constants as u64,
                    Buffer::Shared { index, offset } => {
                        let bytes = memory.shared.get(index as usize);
                        bytes.is_some_and(|&bytes| offset <= bytes as u64)
                    }
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
    /// Returns the package of `parts`.
    ///
    /// # Errors
    /// If they contradict each other.
    pub fn new(parts: Parts) -> Result<Package, LoadError> {
        let package = Package {
            contents: parts.contents,
            objects: parts.objects,
            linked: parts.linked,
            constants: parts.constants,
            weights: Weights::Sources(parts.sources),
            shared: parts.shared,
            runtime_calls: parts.runtime_calls,
        };
        package.validate()?;
        Ok(package)
    }

    pub(crate) fn validate(&self) -> Result<(), LoadError> {
        let sources = match &self.weights {
            Weights::Sources(sources) => sources.len(),
            Weights::Prepared(prepared) if prepared.len() == self.contents.preparation.1 => 0,
            Weights::Prepared(_) => return Err(LoadError::InvalidPlan("prepared weights of another size".into())),
        };
        self.contents.validate(&Sizes {
            constants: self.constants.len(),
            sources,
            shared: self.shared.iter().map(Constants::len).collect(),
            runtime_calls: self.runtime_calls.len(),
        })
    }

    /// Returns the number of inputs.
    pub fn input_count(&self) -> usize {
        self.contents.inputs.len()
    }

    /// Returns the number of outputs without those of checks.
    pub fn result_count(&self) -> usize {
        self.contents.outputs.len().saturating_sub(self.contents.checks.len())
    }

    /// Returns the number of kernel calls of a run, and of distinct kernels among them.
    pub fn kernel_count(&self) -> (usize, usize) {
        kernel_count(&self.contents.calls)
    }

    /// Returns the bytes of memory that a run needs besides inputs, outputs and constants.
    pub fn workspace_bytes(&self) -> usize {
        self.contents.workspace_bytes
    }
}
