//! A few seconds of the stress test in `examples/stress.rs`.

use frazil_tests::stress::{Options, run};
use std::path::Path;
use std::time::Duration;

#[test]
fn eight_threads_load_compile_and_run_at_once() {
    let options = Options {
        models: vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/models")],
        time: Duration::from_secs(4),
        threads: 8,
        seed: 7,
    };
    let report = run(&options).expect("the fixtures are there");
    assert_eq!(report.failure, None);
    assert!(
        report.results > 0 && report.rounds.values().sum::<usize>() >= 8,
        "{report:?}"
    );
}
