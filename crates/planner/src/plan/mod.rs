//! The plan of a compiled function: which kernels run, in which order, on which memory. Pure data.
//!
//! The planner makes a [`Plan`]; the code generator compiles it to machine code. A plan refers to memory only by [`Buffer`]s. So its code is position
//! independent, has no shared state, and can run in several threads at the same time, each with a workspace of its own.

pub mod listing;

pub use frazil_executor::memory::{ALIGNMENT, Constants, align_up};
pub use frazil_executor::program::{Buffer, Call, KernelId, Order, Port, kernel_name};

use crate::kernel::{KernelSpec, WinogradWeights};
use crate::packed::PackedKey;
use frazil_executor::LoadError;
use frazil_executor::package::{Contents, PackedKernel, Sizes};
use frazil_executor::program::kernel_count;
use frazil_executor::run::profile::CallInfo;
use frazil_tensor_ir::call::RuntimeCall;
use frazil_tensor_ir::graph::Origin;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// The computations that run once, when the code is loaded, for all instances. They convert constants to a layout that takes more memory than the stored one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Preparation {
    /// Number of bytes that the preparation writes.
    pub bytes: usize,
    /// The constants that only the preparation reads.
    pub sources: Constants,
    /// The calls of the preparation, in order. Their buffers are constants in `sources` ([`Buffer::Constant`]) or results ([`Buffer::Prepared`]), which they
    /// may write.
    pub calls: Vec<Call>,
}

/// A function that is ready for code generation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Name of the function; a C identifier.
    pub name: String,
    /// The inputs.
    pub inputs: Vec<Port>,
    /// The outputs.
    pub outputs: Vec<Port>,
    /// Size of the workspace that a run needs, in bytes.
    pub workspace_bytes: usize,
    /// Weights and other constants.
    pub constants: Constants,
    /// Constants that earlier plans have packed, and that buffers of this plan refer to ([`Buffer::Shared`]).
    pub shared: Vec<Constants>,
    /// The places of constants that this plan packs, for [`PackedConstants::add`](crate::packed::PackedConstants::add).
    pub packed: Vec<(PackedKey, Buffer)>,
    /// The distinct kernels.
    pub kernels: Vec<KernelSpec>,
    /// The calls of a run, in order.
    pub calls: Vec<Call>,
    /// The calls that prepack weights before the first run.
    pub preparation: Preparation,
    /// The runtime calls: operators that the interpreter's kernels execute. A plan for a library must not have any.
    pub runtime_calls: Vec<Arc<RuntimeCall>>,
    /// Messages of exceptions. The last outputs are one bool for each message; a run raises the exception if the bool is true.
    pub checks: Vec<String>,
    /// The operators that each call computes, for listings; empty, or as long as [`Plan::calls`].
    pub origins: Vec<Vec<Origin>>,
}

impl Plan {
    /// Returns the index of `spec` in [`Plan::kernels`]. Adds `spec` unless an equal kernel exists.
    pub fn kernel(&mut self, spec: KernelSpec) -> KernelId {
        if let Some(i) = self.kernels.iter().position(|k| *k == spec) {
            return i as KernelId;
        }
        self.kernels.push(spec);
        (self.kernels.len() - 1) as KernelId
    }

    /// Returns everything that a process needs to run the plan, except code and constants.
    pub fn contents(&self) -> Contents {
        let kernels = self.kernels.iter().enumerate().map(|(i, spec)| PackedKernel {
            symbol: kernel_name(&self.name, i),
            buffers: spec.buffer_count(),
            numbers: Default::default(),
            phases: spec.phases(),
            runtime_call: spec.runtime_call(),
        });
        Contents {
            inputs: self.inputs.clone(),
            outputs: self.outputs.clone(),
            workspace_bytes: self.workspace_bytes,
            kernels: kernels.collect(),
            calls: self.calls.clone(),
            preparation: (self.preparation.calls.clone(), self.preparation.bytes),
            checks: self.checks.clone(),
            infos: self.call_infos(),
        }
    }

    /// Checks the invariants that compiled code relies on. For example, a call passes as many buffers as its kernel expects, and all buffers exist.
    ///
    /// # Errors
    /// If an invariant does not hold.
    pub fn validate(&self) -> Result<(), LoadError> {
        self.contents().validate(&self.sizes())
    }

    /// Returns the sizes in bytes of the constants that calls may refer to, and the number of runtime calls.
    pub fn sizes(&self) -> Sizes {
        Sizes {
            constants: self.constants.len(),
            sources: self.preparation.sources.len(),
            shared: self.shared.iter().map(Constants::len).collect(),
            runtime_calls: self.runtime_calls.len(),
        }
    }

    /// Returns descriptions of the calls, for profiles.
    fn call_infos(&self) -> Vec<CallInfo> {
        let lines: Vec<Arc<str>> = self
            .kernels
            .iter()
            .map(|spec| listing::kernel_line(spec).into())
            .collect();
        let info = |(i, call): (usize, &Call)| {
            let spec = self.kernels.get(call.kernel as usize)?;
            let what = lines.get(call.kernel as usize)?;
            Some(CallInfo {
                kernel: call.kernel,
                what: Arc::clone(what),
                flops: spec.flops(),
                bytes: spec.bytes(),
                origins: self.origins.get(i).cloned().unwrap_or_default(),
            })
        };
        self.calls.iter().enumerate().filter_map(info).collect()
    }

    /// Returns the operators that the first call of a kernel computes; none if they are unknown, as for the packing of weights.
    pub fn kernel_origins(&self, kernel: usize) -> &[Origin] {
        let calls = self.calls.iter().zip(&self.origins);
        let mut origins = calls.filter(|(call, _)| call.kernel as usize == kernel);
        origins
            .next()
            .map(|(_, origins)| origins.as_slice())
            .unwrap_or_default()
    }

    /// Returns the number of kernel calls of a run, and the number of distinct kernels that they run.
    pub fn kernel_count(&self) -> (usize, usize) {
        kernel_count(&self.calls)
    }

    /// Returns the outputs without the bools of [`Plan::checks`].
    pub fn results(&self) -> &[Port] {
        &self.outputs[..self.outputs.len().saturating_sub(self.checks.len())]
    }

    /// Returns the names of the operators of all runtime calls. A library cannot contain runtime calls.
    pub fn runtime_call_operators(&self) -> Vec<String> {
        let origins = self.calls.iter().zip(&self.origins);
        let runtime_calls = origins.filter(|(c, _)| {
            let spec = self.kernels.get(c.kernel as usize);
            spec.is_some_and(|s| s.runtime_call().is_some())
        });
        runtime_calls.flat_map(|(_, o)| o).map(Origin::to_string).collect()
    }

    /// Adds a constant and returns its buffer.
    pub fn constant<T: bytemuck::NoUninit>(&mut self, data: &[T]) -> Buffer {
        Buffer::Constant {
            offset: self.constants.push(data),
        }
    }

    /// Adds packed weights and returns their buffer. If there is a `transformation`, it runs when the code is loaded, and the buffer is that of its result.
    pub fn weights(&mut self, packed: &[f32], transformation: Option<WinogradWeights>) -> Buffer {
        let Some(transformation) = transformation else {
            return self.constant(packed);
        };
        let source = Buffer::Constant {
            offset: self.preparation.sources.push(packed),
        };
        let place = Buffer::Prepared {
            offset: self.preparation.bytes as u64,
        };
        self.preparation.bytes += align_up(transformation.transformed_bytes());
        let kernel = self.kernel(transformation.into());
        self.preparation.calls.push(Call {
            kernel,
            buffers: SmallVec::from_slice(&[source, place]),
            order: Order::default(),
        });
        place
    }

    /// Appends a call of `spec` on `buffers`.
    pub fn call(&mut self, spec: impl Into<KernelSpec>, buffers: impl IntoIterator<Item = Buffer>) {
        let kernel = self.kernel(spec.into());
        self.calls.push(Call {
            kernel,
            buffers: buffers.into_iter().collect(),
            order: Order::default(),
        });
    }

    /// Sets the [`Order`] of the calls that stream weights. Calls that stream the same weights alternate between both directions.
    pub(crate) fn order_calls(&mut self) {
        let mut readers: FxHashMap<Buffer, Vec<usize>> = FxHashMap::default();
        for (i, call) in self.calls.iter().enumerate() {
            let spec = self.kernels.get(call.kernel as usize);
            let streamed = spec.and_then(|s| s.streamed_weights());
            if let Some(&weights) = streamed.and_then(|which| call.buffers.get(which)) {
                readers.entry(weights).or_default().push(i);
            }
        }
        for calls in readers.into_values() {
            let turns = calls.len() % 2 == 1;
            for (turn, i) in calls.into_iter().enumerate() {
                let backward = turn % 2 == 1;
                self.calls[i].order = Order { backward, turns };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Epilogue, Gemm};
    use crate::target::SAPPHIRE_RAPIDS;

    #[test]
    fn streamed_weights_are_read_in_alternating_order() {
        let mut plan = Plan::default();
        let mut product = |rows: i64, weights: u64| {
            let gemm = Gemm::linear(rows, 512, 256, Epilogue::none(), &SAPPHIRE_RAPIDS);
            let place = Buffer::Workspace { offset: 0 };
            plan.call(gemm, [place, Buffer::Constant { offset: weights }, place]);
        };
        // Read twice, three times and once; and weights that are read again for other rows.
        for (rows, weights) in [
            (1, 0),
            (1, 64),
            (1, 0),
            (1, 64),
            (1, 64),
            (1, 128),
            (256, 192),
            (256, 192),
        ] {
            product(rows, weights);
        }
        plan.order_calls();
        let order = |backward, turns| Order { backward, turns };
        let expected = [
            order(false, false),
            order(false, true),
            order(true, false),
            order(true, true),
            order(false, true),
            order(false, true),
            order(false, false),
            order(false, false),
        ];
        assert_eq!(plan.calls.iter().map(|c| c.order).collect::<Vec<_>>(), expected);
    }
}
