//! Machine code of kernels: its identity, and its arguments. One code serves all kernels that differ only in the arguments.

use super::{KernelSpec, Numbers};
use smallvec::{SmallVec, smallvec};
use std::fmt::{self, Write};

/// Identity of a kernel's machine code: everything that the code depends on except the target. Kernels with the same identity share code.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CodeIdentity(String);

impl CodeIdentity {
    /// Returns the identity as text, on one line.
    pub fn text(&self) -> &str {
        &self.0
    }
}

/// Returns the integer `number` of a kernel if it is a constant of the code, and `None` if it is an argument. 0 and 1 are always constants, because other code
/// is emitted for them: a stride of 0 is a broadcast, a stride of 1 allows vector loads, and a loop of one iteration is omitted.
pub(super) fn constant(number: i64, is_argument: Option<&bool>) -> Option<i64> {
    let is_argument = is_argument == Some(&true) && number != 0 && number != 1;
    (!is_argument).then_some(number)
}

/// Returns the same as [`constant`] for kernels on images. 0 and 1 can be arguments, too, because the code of these kernels does not treat them specially.
pub(super) fn image_constant(number: i64, is_argument: Option<&bool>) -> Option<i64> {
    (is_argument != Some(&true)).then_some(number)
}

/// Formats `kernel` for [`Kernel::code_text`](super::Kernel::code_text). Reserves memory once, because the debug form of a kernel consists of hundreds of
/// pieces.
pub(super) fn text(kernel: fmt::Arguments<'_>) -> String {
    let mut text = String::with_capacity(1024);
    // Writing to a string cannot fail.
    let _ = text.write_fmt(kernel);
    text
}

/// Code that serves all kernels that differ only in some integers. These integers are the arguments of the code; all other integers are constants.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelCode {
    /// One of the kernels that the code serves.
    kernel: KernelSpec,
    /// For each integer of the kernel ([`numbers`](super::Kernel::numbers)), true if it is an argument.
    is_argument: SmallVec<[bool; 16]>,
}

impl KernelCode {
    /// Returns the code that serves only `kernel`: all integers are constants.
    pub fn constant(kernel: KernelSpec) -> KernelCode {
        KernelCode {
            is_argument: smallvec![false; kernel.shared_numbers().len()],
            kernel,
        }
    }

    /// Returns the code of `kernel` with as many arguments as possible, see [`Kernel::can_be_argument`](super::Kernel::can_be_argument).
    pub fn with_all_arguments(kernel: KernelSpec) -> KernelCode {
        let numbers = kernel.shared_numbers().iter();
        KernelCode {
            is_argument: numbers.map(|&n| kernel.can_be_argument(n)).collect(),
            kernel,
        }
    }

    /// Returns the code of `kernel` with those integers as arguments for which `is_argument` is true and that are arguments in
    /// [`KernelCode::with_all_arguments`]. Integers beyond the end of `is_argument` are constants.
    pub fn with_arguments(kernel: KernelSpec, is_argument: &[bool]) -> KernelCode {
        let numbers = kernel.shared_numbers().iter().enumerate();
        let is_argument = numbers.map(|(i, &n)| is_argument.get(i) == Some(&true) && kernel.can_be_argument(n));
        KernelCode {
            is_argument: is_argument.collect(),
            kernel,
        }
    }

    /// Returns code that serves `other` in addition to the kernels that this code serves: the integers in which they differ become arguments. Returns `None` if
    /// `other` differs in more than integers.
    pub fn serving(&self, other: &KernelSpec) -> Option<KernelCode> {
        if self.kernel.skeleton() != other.skeleton() {
            return None;
        }
        let numbers = self.kernel.shared_numbers().iter().zip(other.shared_numbers());
        let is_argument = self.is_argument.iter().zip(numbers).map(|(is, (a, b))| *is || a != b);
        Some(KernelCode {
            kernel: self.kernel.clone(),
            is_argument: is_argument.collect(),
        })
    }

    /// Returns the arguments with which the code computes `kernel`; `None` if the code does not serve `kernel`.
    pub fn arguments_for(&self, kernel: &KernelSpec) -> Option<Numbers> {
        let (own, others) = (self.kernel.shared_numbers(), kernel.shared_numbers());
        let mut numbers = own.iter().zip(others).zip(&self.is_argument);
        let is_served = numbers.all(|((own, other), is_argument)| *is_argument || own == other)
            && self.kernel.skeleton() == kernel.skeleton();
        let arguments = others.iter().zip(&self.is_argument).filter(|(_, is)| **is);
        is_served.then(|| arguments.map(|(n, _)| *n).collect())
    }

    /// Returns everything that the code depends on except integers, as text. Code can be extended to serve another kernel only if the code of that kernel has
    /// the same skeleton.
    pub fn skeleton(&self) -> &str {
        self.kernel.skeleton()
    }

    /// Returns one of the kernels that the code serves.
    pub fn kernel(&self) -> &KernelSpec {
        &self.kernel
    }

    /// Returns, for each integer of the kernel ([`numbers`](super::Kernel::numbers)), true if it is an argument.
    pub fn is_argument(&self) -> &[bool] {
        &self.is_argument
    }

    /// Returns true if all integers are constants, though some of them could be arguments.
    pub fn has_constant_sizes(&self) -> bool {
        let mut numbers = self.kernel.shared_numbers().iter();
        self.argument_count() == 0 && numbers.any(|&n| self.kernel.can_be_argument(n))
    }

    /// Returns the number of arguments.
    pub fn argument_count(&self) -> usize {
        self.is_argument.iter().filter(|is| **is).count()
    }

    /// Returns the identity of the code.
    pub fn identity(&self) -> CodeIdentity {
        let mut text = self.skeleton().to_owned();
        for (number, is_argument) in self.kernel.shared_numbers().iter().zip(&self.is_argument) {
            // Writing to a string cannot fail.
            let _ = match is_argument {
                true => write!(text, " _"),
                false => write!(text, " {number}"),
            };
        }
        CodeIdentity(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Epilogue, Gemm};
    use crate::target::AVX2;

    fn gemm(m: i64, n: i64) -> KernelSpec {
        let gemm = Gemm::linear(m, n, 64, Epilogue::none(), &AVX2);
        with_tile(gemm)
    }

    /// Height and width of tiles are no numbers, and are chosen by the sizes.
    fn with_tile(mut gemm: Gemm) -> KernelSpec {
        (gemm.tile.rows, gemm.tile.vectors) = (4, 2);
        gemm.into()
    }

    #[test]
    fn numbers_that_differ_become_arguments() {
        let one = KernelCode::constant(gemm(8, 40));
        assert_eq!(one.arguments_for(&gemm(8, 40)).map(|a| a.len()), Some(0));
        assert_eq!(one.arguments_for(&gemm(16, 40)), None);
        let both = one.serving(&gemm(16, 40)).expect("only sizes differ");
        assert!(both.argument_count() >= 1 && both.identity() != one.identity());
        // The other kernel leads to the same code.
        let other = KernelCode::constant(gemm(16, 40))
            .serving(&gemm(8, 40))
            .expect("likewise");
        assert_eq!(both.identity(), other.identity());
        let third = both.arguments_for(&gemm(24, 40)).expect("the same columns");
        assert!(third.contains(&24));
        assert_eq!(both.arguments_for(&gemm(24, 48)), None);
    }

    #[test]
    fn all_numbers_but_0_and_1_are_arguments() {
        let code = KernelCode::with_all_arguments(gemm(8, 40));
        for (number, is_argument) in gemm(8, 40).numbers().iter().zip(code.is_argument()) {
            assert_eq!(*is_argument, !(0..=1).contains(number));
        }
        let same = KernelCode::with_all_arguments(gemm(16, 48));
        assert_eq!(code.identity(), same.identity());
        assert_eq!(code.arguments_for(&gemm(16, 48)), same.arguments_for(&gemm(16, 48)));
        // One row is a constant.
        assert_eq!(code.arguments_for(&gemm(1, 48)), None);
    }

    #[test]
    fn other_kernels_are_not_served() {
        let other = with_tile(Gemm::linear(8, 40, 64, Epilogue::bias(), &AVX2));
        assert_eq!(KernelCode::constant(gemm(8, 40)).serving(&other), None);
    }
}
