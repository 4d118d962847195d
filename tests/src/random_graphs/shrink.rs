//! Reduction of failing programs.

use super::{Failure, Program, Statement};

/// Maximum number of runs for a reduction.
const RUNS: usize = 400;

/// Returns the smallest program found by removing results and statements for which `fails` returns true.
pub fn shrink(program: Program, fails: impl Fn(&Program) -> bool) -> Program {
    let mut smallest = program;
    let mut left = RUNS;
    let mut attempt = |smallest: &mut Program, smaller: Program| {
        if left == 0 {
            return false;
        }
        left -= 1;
        let still = fails(&smaller);
        if still {
            *smallest = smaller;
        }
        still
    };
    loop {
        let mut changed = false;
        for i in (0..smallest.tensors.len()).rev() {
            let mut smaller = smallest.clone();
            smaller.tensors.remove(i);
            changed |= !smaller.tensors.is_empty() && attempt(&mut smallest, smaller);
        }
        for i in (0..smallest.integers.len()).rev() {
            let mut smaller = smallest.clone();
            smaller.integers.remove(i);
            changed |= !smaller.integers.is_empty() && attempt(&mut smallest, smaller);
        }
        // The last statements first, since their definitions have no uses.
        for i in (0..smallest.len()).rev() {
            let mut smaller = smallest.clone();
            if remove(&mut smaller.body, &mut i.clone()) {
                changed |= attempt(&mut smallest, smaller);
            }
        }
        if !changed {
            return smallest;
        }
    }
}

/// Removes statement number `at`, counted from the first, compound statements before their parts.
fn remove(body: &mut Vec<Statement>, at: &mut usize) -> bool {
    for i in 0..body.len() {
        if *at == 0 {
            body.remove(i);
            return true;
        }
        *at -= 1;
        if let Statement::Compound(parts) = &mut body[i]
            && parts.iter_mut().any(|(_, body)| remove(body, at))
        {
            return true;
        }
    }
    false
}

/// Returns true for failures of the same kind. A program that does not compile is not a failure.
pub(super) fn alike(a: &Failure, b: &Failure) -> bool {
    matches!(
        (a, b),
        (Failure::Differs(_), Failure::Differs(_)) | (Failure::Panics, Failure::Panics)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_matter_is_left_out() {
        let program = Program::new(3);
        let size = program.len();
        assert!(size > 5, "{size}");
        let wanted = |p: &Program| p.source().matches("torch.").count() >= 2;
        let small = shrink(program, wanted);
        assert!(wanted(&small) && small.len() <= 3, "{}", small.source());
    }
}
