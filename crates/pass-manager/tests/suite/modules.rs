//! Running pipelines on modules: on functions in parallel, on single functions, on the whole module.

use crate::numbers::{PassError, PassManager, Program, pipeline, program};
use frazil_pass_manager::Report;

const LARGEST: u64 = 100;

fn input() -> Program {
    program(&[("a.f", &[8, 4]), ("a.g", &[]), ("b.f", &[16]), ("b.h", &[3])])
}

fn run(manager: &PassManager) -> (Program, Report) {
    let mut module = input();
    let report = manager.run(&mut module, &LARGEST).unwrap();
    (module, report)
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let mut manager = pipeline("drop-functions,halve,methods(repeat(halve)),add");
    manager.verify_each(true);
    let (module, report) = run(&manager);
    assert_eq!(module, program(&[("a.f", &[2, 2]), ("b.f", &[2]), ("b.h", &[4])]));
    let statistics = [
        ("drop-functions", "functions dropped", 1),
        ("halve", "numbers halved", 9),
        ("add", "numbers increased", 4),
    ];
    let expected = statistics.map(|(pass, name, n)| (pass.to_owned(), name, n));
    assert_eq!(report.statistics, expected);
    let functions: Vec<_> = report.timing.children[1]
        .children
        .iter()
        .map(|t| t.name.as_str())
        .collect();
    assert_eq!(functions, ["a.f", "b.f", "b.h"]);
    for threads in [2, 3, 16] {
        manager.threads(threads);
        let (parallel, also) = run(&manager);
        assert_eq!(
            (&parallel, &also.statistics),
            (&module, &report.statistics),
            "{threads}"
        );
    }
}

#[test]
fn methods_runs_on_the_named_functions() {
    let (module, _) = run(&pipeline("methods{only=f}(halve),methods{only=b.f,b.h}(add)"));
    let expected = program(&[("a.f", &[4, 2]), ("a.g", &[]), ("b.f", &[9]), ("b.h", &[4])]);
    assert_eq!(module, expected);
}

#[test]
fn errors_name_the_first_function_that_fails() {
    for threads in [1, 4] {
        let mut manager = pipeline("add{by=95}");
        manager.verify_each(true);
        manager.threads(threads);
        let error = manager.run(&mut input(), &LARGEST).unwrap_err();
        assert_eq!(
            error.to_string(),
            "pass `add{by=95}` failed: in function a.f: 103 is larger than 100"
        );
    }
}

#[test]
fn panics_on_threads_are_errors() {
    let mut manager = pipeline("panic");
    manager.threads(2);
    let error = manager.run(&mut input(), &LARGEST).unwrap_err();
    assert!(matches!(error.root(), PassError::Panicked(text) if text == "out of cheese"));
}

#[test]
fn the_last_rewrite_has_a_function() {
    let mut manager = pipeline("halve");
    manager.threads(4);
    manager.limit(Some(3));
    let (module, report) = run(&manager);
    assert_eq!(
        module,
        program(&[("a.f", &[4, 2]), ("a.g", &[]), ("b.f", &[8]), ("b.h", &[3])])
    );
    assert_eq!(
        report.last_rewrite.unwrap().to_string(),
        "numbers halved (halve) in b.f"
    );
}

#[test]
fn warnings_name_the_function() {
    let (_, report) = run(&pipeline("methods{only=h}(repeat{max=2000}(halve,add))"));
    let warning = &report.warnings[0];
    assert!(warning.starts_with("in function b.h: `repeat` stops"), "{warning}");
}
