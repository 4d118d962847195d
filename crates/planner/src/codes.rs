//! The codes of a function's plans for inputs of several shapes.
//!
//! The kernels of the first plan get code for their own sizes. A kernel of a later plan gets code that serves it already, or else code in which the
//! numbers are arguments that it has in another way than the most similar kernel before. So sizes that never change, as those of weights, stay constants, and
//! after a few shapes a new one needs no new code.

use crate::kernel::{KernelCode, KernelSpec};
use std::collections::HashMap;

/// Most codes of one skeleton. Further kernels get code of their own.
const MOST_CODES: usize = 64;

/// The codes of a function's plans.
#[derive(Clone, Debug, Default)]
pub struct Codes {
    /// By everything that kernels have besides numbers.
    by_skeleton: HashMap<String, Vec<KernelCode>>,
    has_plan: bool,
}

impl Codes {
    /// Returns a code for each of a plan's kernels, in order, and keeps them for later plans. No code is compiled here.
    pub fn for_plan(&mut self, kernels: &[KernelSpec]) -> Vec<KernelCode> {
        self.for_plan_with(kernels, &|_| false)
    }

    /// As [`Codes::for_plan`], for code that need not be compiled: a kernel for which `is_available` is true of the code with
    /// [all arguments](KernelCode::with_all_arguments) gets this code.
    pub fn for_plan_with(
        &mut self,
        kernels: &[KernelSpec],
        is_available: &dyn Fn(&KernelCode) -> bool,
    ) -> Vec<KernelCode> {
        let is_first = !std::mem::replace(&mut self.has_plan, true);
        let code = |kernel: &KernelSpec| {
            let any = KernelCode::with_all_arguments(kernel.clone());
            match any.argument_count() > 0 && is_available(&any) {
                true => any,
                false => self.for_kernel(kernel, is_first),
            }
        };
        kernels.iter().map(code).collect()
    }

    fn for_kernel(&mut self, kernel: &KernelSpec, is_first: bool) -> KernelCode {
        let constant = KernelCode::constant(kernel.clone());
        if constant.is_argument().is_empty() {
            // Code without numbers serves no other kernel.
            return constant;
        }
        let codes = self.by_skeleton.entry(constant.skeleton()).or_default();
        if let Some(serving) = codes.iter().find(|code| code.arguments_for(kernel).is_some()) {
            return serving.clone();
        }
        let extended = |(at, code): (usize, &KernelCode)| Some((at, code.serving(kernel)?));
        let fewest = codes
            .iter()
            .enumerate()
            .filter(|_| !is_first)
            .filter_map(extended)
            .min_by_key(|(_, code)| code.argument_count());
        match fewest {
            Some((at, code)) => {
                codes[at] = code.clone();
                code
            }
            None => {
                if codes.len() < MOST_CODES {
                    codes.push(constant.clone());
                }
                constant
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Epilogue, Gemm};
    use crate::target::AVX2;

    fn layers(rows: i64) -> Vec<KernelSpec> {
        let layer = |n, k| {
            let mut gemm = Gemm::linear(rows, n, k, Epilogue::none(), &AVX2);
            (gemm.tile.rows, gemm.tile.m_task) = (4, 8);
            KernelSpec::from(gemm)
        };
        vec![layer(64, 40), layer(64, 80)]
    }

    #[test]
    fn available_code_is_preferred() {
        let any = KernelCode::with_all_arguments(layers(10)[0].clone());
        let mut codes = Codes::default();
        let own = codes.for_plan_with(&layers(10), &|_| false);
        assert!(own.iter().all(|code| code.argument_count() == 0));
        for rows in [10, 20] {
            let found = codes.for_plan_with(&layers(rows), &|code| code.identity() == any.identity());
            assert!(found.iter().all(|code| code.identity() == any.identity()));
        }
    }

    #[test]
    fn what_changes_is_an_argument() {
        let mut codes = Codes::default();
        let first = codes.for_plan(&layers(10));
        assert!(first.iter().all(|code| code.argument_count() == 0));
        assert_ne!(first[0], first[1]);
        let second = codes.for_plan(&layers(20));
        // The layers keep their sizes: only the rows are arguments.
        assert!(second.iter().all(|code| code.argument_count() == 1));
        assert_ne!(second[0].identity(), second[1].identity());
        for rows in [10, 20, 30, 777] {
            let again = codes.for_plan(&layers(rows));
            assert_eq!(again, second, "{rows} rows");
        }
    }
}
