//! Code of the kernels of a function, whose plans differ in the shapes of the inputs.
//!
//! The kernels of the first plan get code with all integers (sizes, strides, counts) as constants. A kernel of a later plan gets existing code that serves it.
//! If there is none, the existing code of the most similar kernel is generalised: the integers in which the two kernels differ become arguments. So sizes that
//! never change, such as those of weights, stay constants, and after a few shapes a new shape needs no new code.

use crate::kernel::{KernelCode, KernelSpec};
use std::collections::HashMap;

/// Maximum number of stored codes with one skeleton ([`KernelCode::skeleton`]). Beyond it, a kernel gets code of its own, which is not stored.
const MOST_CODES: usize = 64;

/// The kernel code of a function's plans, stored so that later plans can use it.
#[derive(Clone, Debug, Default)]
pub struct Codes {
    /// The codes, keyed by their [`KernelCode::skeleton`].
    by_skeleton: HashMap<String, Vec<KernelCode>>,
    has_plan: bool,
}

impl Codes {
    /// Returns the code of each kernel of a plan, in order, and stores it for later plans. Compiles nothing.
    pub fn for_plan(&mut self, kernels: &[KernelSpec]) -> Vec<KernelCode> {
        self.for_plan_with(kernels, &|_| false)
    }

    /// Returns code as [`Codes::for_plan`] does, but prefers code that has already been compiled: if `is_available` is true for the code of a kernel with [all
    /// arguments](KernelCode::with_all_arguments), the kernel gets this code.
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
            // The code of a kernel without integers serves no other kernel.
            return constant;
        }
        let codes = self.by_skeleton.entry(constant.skeleton().to_owned()).or_default();
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
