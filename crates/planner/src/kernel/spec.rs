//! The trait of kernels, and kernels of any family.

use super::{Epilogue, WinogradWeights};
use crate::target::Machine;
use smallvec::SmallVec;
use std::any::{Any, TypeId};
use std::fmt::{self, Debug, Write};
use std::sync::Arc;

/// A kernel as data: sizes, strides, tiles, and what is fused into it.
///
/// A family of kernels is a type with this trait. The code generator has an emitter for the type; nothing else depends on the family. All sizes
/// and strides are in elements unless said otherwise. Equal kernels have equal code.
pub trait Kernel: Debug + Send + Sync + 'static {
    /// Name of the family in listings of identities, for example `gemm`.
    fn family(&self) -> &'static str;

    /// Number of f32 lanes of the vectors that the kernel uses; 1 if it uses none.
    fn lanes(&self) -> i64;

    /// Number of independent tasks of each phase. All tasks of a phase end before the next phase begins. A kernel without phases has no code.
    fn phases(&self) -> SmallVec<[i64; 2]>;

    /// Number of buffers that a call passes, without scratch memory. The last one is the result.
    fn operand_count(&self) -> usize;

    /// Bytes of scratch memory, a multiple of 64, that the kernel needs while it runs. If this is not 0, a call passes one more, last, buffer of
    /// this size. Its contents are undefined before the call.
    fn scratch_bytes(&self) -> usize {
        0
    }

    /// The fused epilogue.
    fn epilogue(&self) -> Option<&Epilogue> {
        None
    }

    /// Returns true if buffer `operand` may be the buffer of the result, at the same place with the same strides: each of its elements is read
    /// by the task that overwrites it, before it does, and not afterwards. No other buffer may overlap the result.
    fn may_alias_output(&self, _operand: usize) -> bool {
        false
    }

    /// The buffer of weights of which each task reads a part of its own, if that is most of what the kernel reads.
    fn streamed_weights(&self) -> Option<usize> {
        None
    }

    /// Number of the runtime call that the kernel stands for, in [`Plan::runtime_calls`](crate::plan::Plan::runtime_calls). Such a kernel has no phases.
    fn runtime_call(&self) -> Option<u32> {
        None
    }

    /// The numbers that code of the family can take as arguments: sizes, strides, counts of tasks. None for a family whose code has all numbers as
    /// constants.
    fn numbers(&self) -> Numbers {
        Numbers::new()
    }

    /// Everything that the code depends on, as text on one line, if those numbers are arguments for which `is_argument` is true. The debug form of
    /// the kernel, in which arguments are left out.
    fn code_text(&self, _is_argument: &[bool]) -> String {
        format!("{self:?}")
    }

    /// Number of floating-point operations of a call: two for each multiply-add of a contraction, one for each step of a scalar body.
    fn flops(&self) -> i64;

    /// Number of bytes that a call reads and writes if it touches each element once.
    fn bytes(&self) -> i64;

    /// Writes the family and the sizes to `out`, on a line or several, each of which is indented and ends with a line feed.
    ///
    /// # Errors
    /// Those of `out`.
    fn describe(&self, out: &mut dyn Write) -> fmt::Result;

    /// The kernel divided among `threads` threads, if that should change. Only the amount of work of a task may change, not the order in which
    /// the terms of a sum are added.
    fn partitioned(&self, _threads: i64, _machine: &Machine) -> Option<KernelSpec> {
        None
    }

    /// The variants of the kernel, for a family that has some.
    fn variants(&self) -> Option<&dyn Variants> {
        None
    }
}

/// Variants of a kernel: tiles, task sizes and algorithms that compute the same.
pub trait Variants {
    /// The kernel as the cost model chooses it, without an epilogue.
    fn baseline(&self, machine: &Machine) -> KernelSpec;

    /// Other variants of the kernel that may be faster.
    fn alternatives(&self, machine: &Machine) -> Vec<KernelSpec>;

    /// Describes the variant: equal for two kernels only if they are the same variant.
    fn variant(&self) -> String;

    /// What a measurement passes; `None` for a kernel that cannot be measured.
    fn trial(&self) -> Option<Trial>;
}

/// The operands of a kernel that is measured by itself. Its buffers are the first input, the weights or the second input, and the result.
#[derive(Clone, Debug, Default)]
pub struct Trial {
    /// f32 elements of each input.
    pub inputs: Vec<i64>,
    /// Packed weights, in the place of a second input, and what transforms them when the code is loaded.
    pub weights: Option<(Vec<f32>, Option<WinogradWeights>)>,
    /// f32 elements of the result.
    pub output: i64,
}

/// Numbers of a kernel, in the order that its family defines.
pub type Numbers = SmallVec<[i64; 16]>;

/// A kernel of any family. Clones share it.
#[derive(Clone)]
pub struct KernelSpec(Arc<dyn AnyKernel>);

/// Number of buffers that a call of the kernel passes, scratch memory included.
pub fn buffer_count(kernel: &(impl Kernel + ?Sized)) -> usize {
    kernel.operand_count() + usize::from(kernel.scratch_bytes() > 0)
}

/// [`Kernel`] with comparison and access to the type.
trait AnyKernel: Kernel {
    fn is_equal(&self, other: &KernelSpec) -> bool;
    fn as_any(&self) -> &dyn Any;
    fn as_kernel(&self) -> &dyn Kernel;
}

impl<K: Kernel + PartialEq> AnyKernel for K {
    fn is_equal(&self, other: &KernelSpec) -> bool {
        other.get::<K>() == Some(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_kernel(&self) -> &dyn Kernel {
        self
    }
}

impl KernelSpec {
    /// The kernel, if it is a `K`.
    pub fn get<K: Kernel>(&self) -> Option<&K> {
        self.0.as_any().downcast_ref()
    }

    /// The type of the kernel.
    pub fn kernel_type(&self) -> TypeId {
        self.0.as_any().type_id()
    }

    /// See [`buffer_count`].
    pub fn buffer_count(&self) -> usize {
        buffer_count(&**self)
    }
}

impl<K: Kernel + PartialEq> From<K> for KernelSpec {
    fn from(kernel: K) -> KernelSpec {
        KernelSpec(Arc::new(kernel))
    }
}

impl std::ops::Deref for KernelSpec {
    type Target = dyn Kernel;

    fn deref(&self) -> &dyn Kernel {
        self.0.as_kernel()
    }
}

impl PartialEq for KernelSpec {
    fn eq(&self, other: &KernelSpec) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.is_equal(other)
    }
}

impl Debug for KernelSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Debug::fmt(self.0.as_kernel(), f)
    }
}
