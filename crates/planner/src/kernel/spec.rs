//! The trait [`Kernel`], and [`KernelSpec`] for kernels of any family.

use super::code::text;
use super::{Epilogue, WinogradWeights};
use crate::target::Machine;
use smallvec::{SmallVec, smallvec};
use std::any::{Any, TypeId};
use std::fmt::{self, Debug, Write};
use std::sync::{Arc, OnceLock};

/// A kernel as data: sizes, strides, tiles, and fused operations.
///
/// A family of kernels is a type that implements this trait. The code generator has an emitter for the type; nothing else depends on the family. All sizes and
/// strides are in elements unless stated otherwise. Equal kernels have equal code.
pub trait Kernel: Debug + Send + Sync + 'static {
    /// Returns the name of the family, for example `gemm`, which is part of the identity of the kernel's code.
    fn family(&self) -> &'static str;

    /// Returns the number of f32 lanes of the vectors that the kernel uses; 1 if it uses none.
    fn lanes(&self) -> i64;

    /// Returns the number of independent tasks of each phase. All tasks of a phase end before the next phase begins. A kernel without phases has no code.
    fn phases(&self) -> SmallVec<[i64; 2]>;

    /// Returns the number of buffers that a call passes, without scratch memory. The last one is the result.
    fn operand_count(&self) -> usize;

    /// Returns the size of the scratch memory that the kernel needs while it runs, in bytes, a multiple of 64. If it is not 0, a call passes a buffer of this
    /// size after the other buffers. Its contents are undefined before the call.
    fn scratch_bytes(&self) -> usize {
        0
    }

    /// Returns the fused epilogue, if the kernel has one.
    fn epilogue(&self) -> Option<&Epilogue> {
        None
    }

    /// Returns true if buffer `operand` may also be the buffer of the result, at the same place with the same strides. Each of its elements must be read only
    /// by the task that overwrites it, and before it is overwritten. No other buffer may overlap the result.
    fn may_alias_output(&self, _operand: usize) -> bool {
        false
    }

    /// Returns the index of the buffer of weights, if each task reads a different part of it, and the weights are most of the data that the kernel reads.
    fn streamed_weights(&self) -> Option<usize> {
        None
    }

    /// Returns the index in [`Plan::runtime_calls`](crate::plan::Plan::runtime_calls) of the runtime call that the kernel represents. Such a kernel has no
    /// phases.
    fn runtime_call(&self) -> Option<u32> {
        None
    }

    /// Returns the kernel's integers that can be arguments of the code: sizes, strides, counts of tasks. Empty for a family whose code has all integers as
    /// constants.
    fn numbers(&self) -> Numbers {
        Numbers::new()
    }

    /// Returns true if an integer whose value is `number` may be an argument of code that serves as many kernels as possible. By default 0 and 1 may not, because
    /// better code is emitted for them.
    fn can_be_argument(&self, number: i64) -> bool {
        number != 0 && number != 1
    }

    /// Returns everything that the code depends on if the integers for which `is_argument` is true are arguments. The text is the debug form of the kernel
    /// without the arguments, on one line.
    fn code_text(&self, _is_argument: &[bool]) -> String {
        text(format_args!("{self:?}"))
    }

    /// Returns the number of floating-point operations of a call: two for each multiply-add of a contraction, one for each operation of a scalar body.
    fn flops(&self) -> i64;

    /// Returns the number of bytes that a call reads and writes if it accesses each element once.
    fn bytes(&self) -> i64;

    /// Writes the family and the sizes to `out`, as one or more lines. Each line is indented and ends with a line feed.
    ///
    /// # Errors
    /// If writing to `out` fails.
    fn describe(&self, out: &mut dyn Write) -> fmt::Result;

    /// Returns the kernel with tasks of a suitable size for `threads` threads; `None` if the kernel stays as it is. Only the amount of work of a task may
    /// change, not the order in which the terms of a sum are added.
    fn partitioned(&self, _threads: i64, _machine: &Machine) -> Option<KernelSpec> {
        None
    }

    /// Returns the variants of the kernel, if its family has variants.
    fn variants(&self) -> Option<&dyn Variants> {
        None
    }
}

/// Variants of a kernel: tiles, task sizes and algorithms that compute the same result.
pub trait Variants {
    /// Returns the variant that the cost model chooses, without an epilogue.
    fn baseline(&self, machine: &Machine) -> KernelSpec;

    /// Returns other variants of the kernel that may be faster.
    fn alternatives(&self, machine: &Machine) -> Vec<KernelSpec>;

    /// Returns a description of the variant. It is equal for two kernels only if they are the same variant.
    fn variant(&self) -> String;

    /// Returns the operands with which the kernel is measured; `None` if it cannot be measured.
    fn trial(&self) -> Option<Trial>;
}

/// The operands of a kernel that is measured by itself. The buffers of the call are the first input, the weights or the second input, and the result.
#[derive(Clone, Debug, Default)]
pub struct Trial {
    /// Number of f32 elements of each input.
    pub inputs: Vec<i64>,
    /// Packed weights in place of a second input, and their transformation when the code is loaded, if the kernel needs one.
    pub weights: Option<(Vec<f32>, Option<WinogradWeights>)>,
    /// Number of f32 elements of the result.
    pub output: i64,
}

/// Integers of a kernel, in the order that its family defines.
pub type Numbers = SmallVec<[i64; 16]>;

/// A kernel of any family. Clones share the kernel.
#[derive(Clone)]
pub struct KernelSpec(Arc<Shared<dyn AnyKernel>>);

/// A kernel, and what has been computed of it.
struct Shared<K: ?Sized> {
    /// The skeleton and the numbers, from the first time that they are needed.
    code: OnceLock<(Box<str>, Numbers)>,
    kernel: K,
}

/// Returns the number of buffers that a call of the kernel passes, scratch memory included.
pub fn buffer_count(kernel: &(impl Kernel + ?Sized)) -> usize {
    kernel.operand_count() + usize::from(kernel.scratch_bytes() > 0)
}

/// A [`Kernel`] that can be compared with kernels of other types, and downcast.
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
    /// Returns the kernel, if its type is `K`.
    pub fn get<K: Kernel>(&self) -> Option<&K> {
        self.0.kernel.as_any().downcast_ref()
    }

    /// Returns the type of the kernel.
    pub fn kernel_type(&self) -> TypeId {
        self.0.kernel.as_any().type_id()
    }

    /// Returns the number of buffers that a call passes, see [`buffer_count`].
    pub fn buffer_count(&self) -> usize {
        buffer_count(&**self)
    }

    /// Returns everything that the code of the kernel depends on except [integers](Kernel::numbers) and the target, as text: the family, and the
    /// [text](Kernel::code_text) of code whose integers are all arguments. Kernels whose skeletons are equal have code with the same integers as arguments.
    pub fn skeleton(&self) -> &str {
        &self.code().0
    }

    /// Returns the kernel's [integers](Kernel::numbers), which are computed once.
    pub(crate) fn shared_numbers(&self) -> &Numbers {
        &self.code().1
    }

    fn code(&self) -> &(Box<str>, Numbers) {
        self.0.code.get_or_init(|| {
            let numbers = self.numbers();
            let all: SmallVec<[bool; 16]> = smallvec![true; numbers.len()];
            let skeleton = [self.family(), " ", &self.code_text(&all)].concat();
            (skeleton.into(), numbers)
        })
    }
}

impl<K: Kernel + PartialEq> From<K> for KernelSpec {
    fn from(kernel: K) -> KernelSpec {
        KernelSpec(Arc::new(Shared {
            code: OnceLock::new(),
            kernel,
        }))
    }
}

impl std::ops::Deref for KernelSpec {
    type Target = dyn Kernel;

    fn deref(&self) -> &dyn Kernel {
        self.0.kernel.as_kernel()
    }
}

impl PartialEq for KernelSpec {
    fn eq(&self, other: &KernelSpec) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.kernel.is_equal(other)
    }
}

impl Debug for KernelSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Debug::fmt(self.0.kernel.as_kernel(), f)
    }
}
