//! Emitters of kernel families, by the type of the kernel.

use super::expr::{self, UnsupportedExpr};
use super::function::KernelFunction;
use frazil_planner::kernel::{Kernel, KernelSpec};
use std::any::TypeId;

/// The reason why a kernel has no code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidKernel {
    /// An expression of the kernel cannot be emitted.
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

/// Error of emitting a kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EmitError {
    /// The kernel contradicts itself, or has an expression without code.
    #[error("kernel {kernel}: {reason}")]
    InvalidKernel {
        /// The kernel's name.
        kernel: String,
        /// The violated rule.
        reason: InvalidKernel,
    },
    /// No emitter is registered for the family.
    #[error("kernel {kernel}: there is no emitter for kernels of the family `{family}`")]
    NoEmitter {
        /// The kernel's name.
        kernel: String,
        /// The family of the kernel.
        family: &'static str,
    },
}

/// A kernel for which code can be emitted.
pub trait EmitKernel: Kernel {
    /// Checks the preconditions of [`EmitKernel::emit`].
    ///
    /// # Errors
    /// If there is no code for the kernel.
    fn check(&self) -> Result<(), InvalidKernel> {
        Ok(())
    }

    /// Emits phase `phase`: a loop over the tasks of `function`, see [`KernelFunction::for_each_task`].
    fn emit(&self, function: &mut KernelFunction<'_>, phase: usize);

    /// Returns true if the kernel treats denormal operands as zeros, if the processor can.
    fn takes_denormals_for_zeros(&self) -> bool {
        false
    }
}

/// The kernel families that code can be emitted for.
#[derive(Clone, Default)]
pub struct Emitters(Vec<(TypeId, Cast)>);

/// Downcasts a kernel to its own type, and returns it as a kernel with an emitter.
type Cast = fn(&KernelSpec) -> Option<&dyn EmitKernel>;

impl Emitters {
    /// Adds the family of `K`.
    #[must_use]
    pub fn with<K: EmitKernel>(mut self) -> Emitters {
        let own = TypeId::of::<K>();
        self.0.retain(|(other, _)| *other != own);
        self.0.push((own, |spec| {
            let kernel: &K = spec.get()?;
            Some(kernel)
        }));
        self
    }

    /// Returns `spec`, the kernel called `name`, as a kernel whose emitter accepts it.
    ///
    /// # Errors
    /// If its family has no emitter, or the kernel contradicts itself.
    pub fn check<'k>(&self, name: &str, spec: &'k KernelSpec) -> Result<&'k dyn EmitKernel, EmitError> {
        let kernel = self.get(spec).ok_or_else(|| EmitError::NoEmitter {
            kernel: name.to_owned(),
            family: spec.family(),
        })?;
        check(kernel).map_err(|reason| EmitError::InvalidKernel {
            kernel: name.to_owned(),
            reason,
        })?;
        Ok(kernel)
    }

    /// Returns `spec` as a kernel with an emitter, if its family has one.
    pub fn get<'k>(&self, spec: &'k KernelSpec) -> Option<&'k dyn EmitKernel> {
        let own = spec.kernel_type();
        let (_, cast) = self.0.iter().find(|(family, _)| *family == own)?;
        cast(spec)
    }
}

impl std::fmt::Debug for Emitters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "emitters of {} families", self.0.len())
    }
}

/// Checks what all families have in common, and what the kernel's own family requires.
fn check(kernel: &dyn EmitKernel) -> Result<(), InvalidKernel> {
    if let Some(epilogue) = kernel.epilogue() {
        expr::check(&epilogue.expr)?;
        let inputs = epilogue.expr.input_count();
        if inputs > epilogue.operands.len() + 1 {
            let given = epilogue.operands.len() + 1;
            return Err(format!("the epilogue reads {inputs} values of {given}").into());
        }
    }
    kernel.check()
}
