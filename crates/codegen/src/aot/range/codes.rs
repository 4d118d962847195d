//! The machine code of a library for ranges: as few integers as possible are arguments.

use super::error::RangeError;
use super::form::{CallForm, Column, Form};
use frazil_planner::kernel::{KernelCode, KernelSpec};

/// The code of all forms.
#[derive(Debug, Default)]
pub struct Codes {
    /// The distinct codes.
    pub all: Vec<KernelCode>,
    /// For each element of `all`, the index of the code's identity with all integers as arguments ([`CallForm::code`]). Only codes with the same identity can
    /// be merged.
    identities: Vec<usize>,
    /// For each form and each of its calls, the index in `all` of the call's code.
    pub of_calls: Vec<Vec<usize>>,
}

impl Codes {
    /// Returns code for the calls of `forms`. Integers that are the same for all sizes, such as those of weights, are constants of the code, unless other
    /// calls with the same code need them as arguments.
    ///
    /// # Errors
    /// If a call's code cannot compute the call's kernels for all points.
    pub fn of(forms: &[Form]) -> Result<Codes, RangeError> {
        let mut codes = Codes::default();
        for form in forms {
            let (calls, _) = form.layout();
            let mut indices = Vec::with_capacity(calls.len());
            for ((kernel, call), CallForm { code, .. }) in form.kernels.iter().zip(calls).zip(&form.calls) {
                let columns = form.columns.get(call.numbers).unwrap_or_default();
                let varies: Vec<bool> = columns.iter().map(|c| matches!(c, Column::Values(_))).collect();
                indices.push(codes.add(kernel, *code, &varies));
            }
            codes.of_calls.push(indices);
        }
        codes.check(forms)?;
        Ok(codes)
    }

    /// Checks that the code of each call serves the call's kernels for all points of its form. Code in which a varying integer is a constant would compute the
    /// results for other sizes.
    fn check(&self, forms: &[Form]) -> Result<(), RangeError> {
        for (form, indices) in forms.iter().zip(&self.of_calls) {
            let (calls, _) = form.layout();
            for ((kernel, call), index) in form.kernels.iter().zip(calls).zip(indices) {
                let columns = form.columns.get(call.numbers).unwrap_or_default();
                let is_served = |(column, is_argument): (&Column, &bool)| match column {
                    Column::Constant(value) => !is_argument || kernel.can_be_argument(*value),
                    Column::Values(values) => *is_argument && values.iter().all(|value| kernel.can_be_argument(*value)),
                };
                // The kernels of a form differ only in the integers that vary.
                let serves = |code: &&KernelCode| {
                    code.arguments_for(kernel).is_some()
                        && code.is_argument().len() == columns.len()
                        && columns.iter().zip(code.is_argument()).all(is_served)
                };
                if self.all.get(*index).filter(serves).is_none() {
                    return Err(RangeError::not_an_argument(kernel));
                }
            }
        }
        Ok(())
    }

    /// Returns the index of code for `kernel` with those integers as arguments for which `varies` is true. Adds it, or generalises code that differs only in
    /// integers that are arguments of either. `identity` is the index of the identity of the kernel's code with all arguments.
    pub fn add(&mut self, kernel: &KernelSpec, identity: usize, varies: &[bool]) -> usize {
        let own = KernelCode::with_arguments(kernel.clone(), varies);
        let candidates = self.all.iter_mut().zip(&self.identities).enumerate();
        for (i, (code, _)) in candidates.filter(|(_, (_, other))| **other == identity) {
            let Some(both) = merged(code, &own) else {
                continue;
            };
            *code = both;
            return i;
        }
        self.all.push(own);
        self.identities.push(identity);
        self.all.len() - 1
    }
}

/// Returns code that serves the kernels of both codes with the arguments of both; `None` if the kernels differ in anything else.
fn merged(one: &KernelCode, other: &KernelCode) -> Option<KernelCode> {
    let arguments: Vec<bool> = one
        .is_argument()
        .iter()
        .zip(other.is_argument())
        .map(|(a, b)| a | b)
        .collect();
    let both = KernelCode::with_arguments(one.kernel().clone(), &arguments);
    let serves = one.is_argument().len() == other.is_argument().len() && both.arguments_for(other.kernel()).is_some();
    serves.then_some(both)
}

#[cfg(test)]
mod tests {
    use super::*;
    use frazil_planner::kernel::{Epilogue, Gemm};
    use frazil_planner::target::AVX2;
    use smallvec::SmallVec;

    fn gemm(m: i64, n: i64) -> KernelSpec {
        let mut gemm = Gemm::linear(m, n, 64, Epilogue::none(), &AVX2);
        (gemm.tile.rows, gemm.tile.vectors) = (4, 2);
        gemm.into()
    }

    /// Returns a form of one call, whose kernel is that of the first of two points. The kernels have these integers at the two points.
    fn form_of(kernel: KernelSpec, second: &[i64]) -> Form {
        let numbers = kernel.numbers();
        let columns = numbers.iter().zip(second).map(|(&a, &b)| match a == b {
            true => Column::Constant(a),
            false => Column::Values(vec![a, b]),
        });
        let phases = kernel.phases().len();
        let order_and_tasks = vec![Column::Constant(0); 1 + phases];
        Form {
            calls: vec![CallForm {
                code: 0,
                phases,
                places: SmallVec::new(),
                numbers: numbers.len(),
            }],
            kernels: vec![kernel],
            points: vec![0, 1],
            columns: order_and_tasks.into_iter().chain(columns).collect(),
        }
    }

    #[test]
    fn integers_that_vary_are_arguments() {
        let codes = Codes::of(&[form_of(gemm(8, 40), &gemm(16, 40).numbers())]).unwrap();
        assert!(codes.all[0].arguments_for(&gemm(16, 40)).is_some());
        // One row is a constant of the code.
        for (first, second) in [(1, 8), (8, 1)] {
            let form = form_of(gemm(first, 40), &gemm(second, 40).numbers());
            let error = Codes::of(&[form]).map(|codes| codes.all).unwrap_err();
            assert!(matches!(error, RangeError::NotAnArgument(_)), "{error}");
        }
    }

    #[test]
    fn code_with_the_same_constants_is_shared() {
        let numbers = gemm(8, 40).numbers();
        let rows: Vec<bool> = numbers
            .iter()
            .zip(&gemm(16, 40).numbers())
            .map(|(a, b)| a != b)
            .collect();
        let none = vec![false; rows.len()];
        let mut codes = Codes::default();
        assert_eq!(codes.add(&gemm(8, 40), 0, &rows), 0);
        // Other columns are other code, and other rows the same.
        assert_eq!(codes.add(&gemm(8, 48), 0, &rows), 1);
        assert_eq!(codes.add(&gemm(24, 40), 0, &rows), 0);
        assert_eq!(codes.add(&gemm(32, 40), 0, &none), 0);
        // Code becomes more general, and serves what it served before.
        assert_eq!(codes.add(&gemm(8, 56), 0, &none), 2);
        assert_eq!(codes.add(&gemm(24, 56), 0, &rows), 2);
        assert!(codes.all[2].arguments_for(&gemm(8, 56)).is_some());
        // One row is a constant.
        assert_eq!(codes.add(&gemm(1, 40), 1, &rows), 3);
    }
}
