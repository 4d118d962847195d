//! Emitters of kernel families, by the type of the kernel.

use super::expr::UnsupportedExpr;
use super::function::KernelFunction;
use frazil_planner::kernel::{Kernel, KernelSpec};
use std::any::TypeId;
use std::collections::HashMap;

/// Why a kernel has no code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidKernel {
    /// One of its expressions has none.
    #[error(transparent)]
    Expr(#[from] UnsupportedExpr),
    /// The kernel contradicts itself.
    #[error("{0}")]
    Contradiction(String),
}

impl From<String> for InvalidKernel {
    fn from(reason: String) -> InvalidKernel {
        InvalidKernel::Contradiction(reason)
    }
}

/// A kernel for which code can be emitted.
pub trait EmitKernel: Kernel {
    /// Checks what [`EmitKernel::emit`] relies on.
    ///
    /// # Errors
    /// If there is no code for the kernel.
    fn check(&self) -> Result<(), InvalidKernel> {
        Ok(())
    }

    /// Emits phase `phase`: a loop over the tasks of `function`, see [`KernelFunction::for_each_task`].
    fn emit(&self, function: &mut KernelFunction<'_>, phase: usize);

    /// Returns true if the kernel takes operands that are not normal numbers for zeros, where the processor can.
    fn takes_denormals_for_zeros(&self) -> bool {
        false
    }
}

/// The kernel families that code can be emitted for.
#[derive(Clone, Default)]
pub struct Emitters(HashMap<TypeId, Cast>);

/// Casts a kernel to its own type, and this type to one with an emitter.
type Cast = fn(&KernelSpec) -> Option<&dyn EmitKernel>;

impl Emitters {
    /// Adds the family of `K`.
    #[must_use]
    pub fn with<K: EmitKernel>(mut self) -> Emitters {
        self.0.insert(TypeId::of::<K>(), |spec| {
            let kernel: &K = spec.get()?;
            Some(kernel)
        });
        self
    }

    /// The kernel `spec` as one with an emitter, if its family has one.
    pub fn get<'k>(&self, spec: &'k KernelSpec) -> Option<&'k dyn EmitKernel> {
        self.0.get(&spec.kernel_type())?(spec)
    }
}

impl std::fmt::Debug for Emitters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "emitters of {} families", self.0.len())
    }
}
