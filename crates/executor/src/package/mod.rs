//! A compiled function as data: machine code, constants, and the order of calls. A process runs it without the compiler.
//!
//! A package can be kept in a file and mapped by a later process; see [`stored`].

mod stored;

use crate::error::LoadError;
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
    /// The runtime calls, by number.
    pub(crate) runtime_calls: Vec<Arc<RuntimeCall>>,
}

/// Weights that kernels read in a layout other than the one stored in plans: before or after the conversion.
#[derive(Clone, Debug)]
pub(crate) enum Weights {
    /// The inputs of the preparation: stored weights.
    Sources(Constants),
    /// The results of the preparation: prepacked weights.
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
    /// Tasks of each phase; none for runtime calls.
    pub phases: SmallVec<[i64; 2]>,
    /// The number of the runtime call, if it is one.
    pub runtime_call: Option<u32>,
}

impl Contents {
    /// Returns the number of bytes that a run needs besides inputs and outputs.
    pub fn bytes_beside_ports(&self, constants: &Constants) -> usize {
        let sizes = [constants.len(), self.preparation.1, self.workspace_bytes];
        sizes.into_iter().fold(0, usize::saturating_add)
    }

    /// Checks the invariants that the compiled code relies on. `runtime_calls` is the number of runtime calls.
    ///
    /// # Errors
    /// If an invariant does not hold.
    pub fn validate(&self, constants: &Constants, sources: &Constants, runtime_calls: usize) -> Result<(), LoadError> {
        let invalid = |text: String| Err(LoadError::InvalidPlan(text));
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
    /// Returns the package of `contents` with the code `objects`, one for each kernel that has code, in order.
    ///
    /// # Errors
    /// If they contradict each other.
    pub fn new(
        contents: Contents,
        objects: Vec<Vec<u8>>,
        constants: Constants,
        sources: Constants,
        runtime_calls: Vec<Arc<RuntimeCall>>,
    ) -> Result<Package, LoadError> {
        let package = Package {
            contents,
            objects,
            constants,
            weights: Weights::Sources(sources),
            runtime_calls,
        };
        package.validate()?;
        Ok(package)
    }

    pub(crate) fn validate(&self) -> Result<(), LoadError> {
        let none = Constants::default();
        let sources = match &self.weights {
            Weights::Sources(sources) => sources,
            Weights::Prepared(prepared) if prepared.len() == self.contents.preparation.1 => &none,
            Weights::Prepared(_) => return Err(LoadError::InvalidPlan("prepared weights of another size".into())),
        };
        self.contents
            .validate(&self.constants, sources, self.runtime_calls.len())
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
