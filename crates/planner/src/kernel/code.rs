//! The code of a kernel, apart from the numbers that a call hands to it.

use super::{KernelSpec, Numbers};
use smallvec::{SmallVec, smallvec};

/// The identity of a kernel's machine code: everything that it depends on, apart from the target. Kernels of one identity share code.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CodeIdentity(String);

impl CodeIdentity {
    /// The identity as text, on one line.
    pub fn text(&self) -> &str {
        &self.0
    }
}

/// A kernel's number as its code depends on it: `None` for an argument. 0 and 1 are always constants: a stride of 0 is a broadcast, a stride of 1
/// is a vector, and a loop of one iteration is none.
pub(super) fn constant(number: i64, is_argument: Option<&bool>) -> Option<i64> {
    let is_argument = is_argument == Some(&true) && number != 0 && number != 1;
    (!is_argument).then_some(number)
}

/// As [`constant`], for kernels on images, in whose code 0 and 1 are numbers like others.
pub(super) fn image_constant(number: i64, is_argument: Option<&bool>) -> Option<i64> {
    (is_argument != Some(&true)).then_some(number)
}

/// The code of all kernels that differ in some numbers only, which are the arguments of the code. All other numbers are constants.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelCode {
    /// One of the kernels.
    kernel: KernelSpec,
    /// For each of the kernel's numbers, whether it is an argument.
    is_argument: SmallVec<[bool; 16]>,
}

impl KernelCode {
    /// The code of `kernel` alone: all numbers are constants.
    pub fn constant(kernel: KernelSpec) -> KernelCode {
        KernelCode {
            is_argument: smallvec![false; kernel.numbers().len()],
            kernel,
        }
    }

    /// The code that serves the kernels of this one, and `other` too, if only numbers differ.
    pub fn serving(&self, other: &KernelSpec) -> Option<KernelCode> {
        let (own, others) = (self.kernel.numbers(), other.numbers());
        let all = vec![true; own.len()];
        if own.len() != others.len()
            || self.kernel.family() != other.family()
            || self.kernel.code_text(&all) != other.code_text(&all)
        {
            return None;
        }
        let differs = own.iter().zip(&others).map(|(a, b)| a != b);
        let is_argument = self.is_argument.iter().zip(differs).map(|(is, differs)| *is || differs);
        Some(KernelCode {
            kernel: self.kernel.clone(),
            is_argument: is_argument.collect(),
        })
    }

    /// The arguments with which the code computes what `kernel` does; `None` if it cannot.
    pub fn arguments_for(&self, kernel: &KernelSpec) -> Option<Numbers> {
        if self.kernel.family() != kernel.family()
            || self.kernel.code_text(&self.is_argument) != kernel.code_text(&self.is_argument)
        {
            return None;
        }
        let numbers = kernel.numbers();
        let arguments = numbers.iter().zip(&self.is_argument).filter(|(_, is)| **is);
        Some(arguments.map(|(n, _)| *n).collect())
    }

    /// Everything that the code depends on but numbers: only codes of one skeleton can be extended to serve each other's kernels.
    pub fn skeleton(&self) -> String {
        let all = vec![true; self.is_argument.len()];
        format!("{} {}", self.kernel.family(), self.kernel.code_text(&all))
    }

    /// One of the kernels that the code serves.
    pub fn kernel(&self) -> &KernelSpec {
        &self.kernel
    }

    /// For each of the kernel's numbers, whether it is an argument.
    pub fn is_argument(&self) -> &[bool] {
        &self.is_argument
    }

    /// Number of arguments.
    pub fn argument_count(&self) -> usize {
        self.is_argument.iter().filter(|is| **is).count()
    }

    /// The identity of the code.
    pub fn identity(&self) -> CodeIdentity {
        CodeIdentity(format!(
            "{} {}",
            self.kernel.family(),
            self.kernel.code_text(&self.is_argument)
        ))
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
    fn other_kernels_are_not_served() {
        let other = with_tile(Gemm::linear(8, 40, 64, Epilogue::bias(), &AVX2));
        assert_eq!(KernelCode::constant(gemm(8, 40)).serving(&other), None);
    }
}
