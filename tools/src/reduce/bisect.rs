//! Bisection over the number of rewrites: which rewrite of a pipeline makes a test fail.

use frazil_pass_manager::LastRewrite;

/// The result of [`first_failing_rewrite`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bisection {
    /// The test fails after this many rewrites, and not after one less.
    Found {
        /// Number of rewrites.
        rewrite: u64,
        /// The last of them.
        last: Option<LastRewrite>,
    },
    /// The test fails without any rewrite.
    FailsBefore,
    /// The test does not fail after all rewrites of the pipeline.
    NeverFails,
}

/// Finds a rewrite after which a test fails, with logarithmically many runs of the pipeline. `run` runs a pipeline with a limit on the number of
/// rewrites, and returns whether the test fails on the result, and the last rewrite if there were as many.
///
/// # Errors
/// The first error of `run`.
pub fn first_failing_rewrite<E>(
    mut run: impl FnMut(u64) -> Result<(bool, Option<LastRewrite>), E>,
) -> Result<Bisection, E> {
    if run(0)?.0 {
        return Ok(Bisection::FailsBefore);
    }
    // The test does not fail after `good` rewrites, and fails after `bad`.
    let (mut good, mut bad) = (0, 1);
    let mut found = loop {
        match run(bad)? {
            (true, last) => break last,
            (false, None) => return Ok(Bisection::NeverFails),
            (false, Some(_)) => (good, bad) = (bad, bad.saturating_mul(2)),
        }
    };
    // The pipeline may end with fewer rewrites than `bad`: then the failing one is still after `good`.
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        match run(middle)? {
            (true, last) => (bad, found) = (middle, last),
            (false, _) => good = middle,
        }
    }
    Ok(Bisection::Found {
        rewrite: bad,
        last: found,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bisects a pipeline of `count` rewrites, after `bad` of which a test fails.
    fn bisect(count: u64, bad: u64) -> (Bisection, u32) {
        let mut runs = 0;
        let found = first_failing_rewrite(|limit| {
            runs += 1;
            let last = (limit <= count && limit > 0).then(|| LastRewrite {
                pass: format!("pass {limit}"),
                ..LastRewrite::default()
            });
            Ok::<_, ()>((limit.min(count) >= bad, last))
        });
        (found.unwrap(), runs)
    }

    #[test]
    fn every_rewrite_is_found() {
        for count in 1..40 {
            for bad in 1..=count {
                let (found, runs) = bisect(count, bad);
                let Bisection::Found { rewrite, last } = found else {
                    panic!("{bad} of {count}: {found:?}");
                };
                assert_eq!((rewrite, last.unwrap().pass), (bad, format!("pass {bad}")));
                assert!(runs <= 13, "{runs}");
            }
            assert_eq!(bisect(count, count + 1).0, Bisection::NeverFails);
            assert_eq!(bisect(count, 0).0, Bisection::FailsBefore);
        }
    }
}
