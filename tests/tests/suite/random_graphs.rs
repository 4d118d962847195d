//! Random programs, interpreter compared with native code, with fixed seeds. `make fuzz-programs` runs new ones.

use frazil_tests::random_graphs::{Program, check_seed};

/// Number of programs in the suite, which take about 20 seconds.
const PROGRAMS: u64 = 100;

#[test]
fn engines_agree_on_random_programs() {
    let all: Vec<_> = (0..PROGRAMS).map(check_seed).collect();
    let failures: Vec<&String> = all.iter().filter_map(|r| r.as_ref().err()).collect();
    assert!(failures.is_empty(), "{} programs:\n{failures:#?}", failures.len());
    let count = |of: fn(&frazil_tests::random_graphs::Ran) -> bool| all.iter().flatten().filter(|&r| of(r)).count();
    // Programs that both engines refuse are not compared.
    let (natively, raised) = (count(|r| r.natively), count(|r| r.raised));
    assert!(
        natively * 2 > all.len(),
        "only {natively} programs ran natively as a whole"
    );
    assert!(raised * 10 < all.len(), "{raised} programs raise");
}

#[test]
fn seeds_make_the_same_programs() {
    assert_eq!(Program::new(5).source(), Program::new(5).source());
    assert_ne!(Program::new(5).source(), Program::new(6).source());
}
