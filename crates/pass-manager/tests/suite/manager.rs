//! Running pipelines on bare graphs: verification, fuel, repetition, limits, analyses.

use crate::numbers::{
    AnyPass, Empty, Graph, Numbers, PassContext, PassError, PassManager, PassRegistry, Sum, pipeline,
};
use frazil_pass_manager::{Fuel, GraphPass};
use std::error::Error;

const LARGEST: u64 = 100;

fn run(text: &str, graph: &[u64]) -> Graph {
    let mut graph = graph.to_vec();
    pipeline(text).run_on_graph(&mut graph, &LARGEST).unwrap();
    graph
}

#[test]
fn passes_run_in_order_with_their_options() {
    assert_eq!(run("halve,add{by=3 skip-zeros}", &[8, 5, 0]), [7, 8, 0]);
    assert_eq!(run("methods(halve,halve)", &[8, 5, 0]), [2, 5, 0]);
}

#[test]
fn verification_names_the_pass_that_broke_the_graph() {
    let mut manager = pipeline("halve,add{by=99}");
    assert!(manager.run_on_graph(&mut vec![4], &LARGEST).is_ok());
    manager.verify_each(true);
    let error = manager.run_on_graph(&mut vec![4], &LARGEST).unwrap_err();
    assert_eq!(
        error.to_string(),
        "pass `add{by=99}` failed: in function (without a name): 101 is larger than 100"
    );
    assert!(matches!(error.root(), PassError::Verify { .. }));
    assert_eq!(
        error.source().unwrap().source().unwrap().to_string(),
        "101 is larger than 100"
    );
    let named = error.in_function("f").to_string();
    assert_eq!(named, "pass `add{by=99}` failed: in function f: 101 is larger than 100");
    let input = manager.run_on_graph(&mut vec![200], &LARGEST).unwrap_err();
    assert_eq!(
        input.to_string(),
        "the input is not valid: in function (without a name): 200 is larger than 100"
    );
}

#[test]
fn errors_of_the_ir_and_panics_are_errors_of_the_pass() {
    let error = pipeline("append-sum")
        .run_on_graph(&mut Graph::new(), &LARGEST)
        .unwrap_err();
    assert_eq!(error.to_string(), "pass `append-sum` failed: the graph has no numbers");
    assert!(matches!(error.into_root(), PassError::Ir(Empty)));
    let error = pipeline("panic").run_on_graph(&mut vec![1], &LARGEST).unwrap_err();
    assert_eq!(
        error.to_string(),
        "pass `panic` failed: the pass panicked: out of cheese"
    );
    let error = pipeline("drop-functions")
        .run_on_graph(&mut vec![1], &LARGEST)
        .unwrap_err();
    assert!(matches!(error.root(), PassError::NeedsModule));
}

#[test]
fn a_limit_stops_all_passes_together() {
    let mut graph = vec![4, 4];
    let mut manager = pipeline("halve,add{by=2},halve");
    manager.limit(Some(3));
    let report = manager.run_on_graph(&mut graph, &LARGEST).unwrap();
    assert_eq!(graph, [2, 4]);
    let last = report.last_rewrite.unwrap();
    assert_eq!(last.to_string(), "numbers halved (halve)");
    manager.limit(Some(30));
    let report = manager.run_on_graph(&mut graph, &LARGEST).unwrap();
    assert_eq!(report.last_rewrite, None);
}

#[test]
fn fuel_runs_out() {
    let fuel = Fuel::new(2);
    let mut cx = PassContext::new(&LARGEST).with_fuel(Some(&fuel));
    let answers: Vec<bool> = (0..4).map(|_| cx.rewrite("rewrites")).collect();
    assert_eq!(answers, [true, true, false, false]);
    assert!(!cx.may_rewrite());
    assert_eq!((cx.counted("rewrites"), fuel.left()), (2, 0));
}

#[test]
fn repeat_ends_when_nothing_changes() {
    let mut graph = vec![64, 3];
    let report = pipeline("repeat(halve)").run_on_graph(&mut graph, &LARGEST).unwrap();
    assert_eq!(graph, [1, 3]);
    assert_eq!(report.statistics, [("halve".to_owned(), "numbers halved", 6)]);
    assert!(report.warnings.is_empty());
    // The times of all repetitions are added.
    assert_eq!(report.timing.children[0].children.len(), 1);
    assert_eq!(run("repeat{max=2}(halve)", &[64]), [16]);
}

#[test]
fn repeat_warns_of_passes_that_do_not_settle() {
    let warnings = |text: &str, graph: &[u64]| {
        let manager = pipeline(text);
        manager.run_on_graph(&mut graph.to_vec(), &LARGEST).unwrap().warnings
    };
    assert_eq!(
        warnings("repeat{max=5000}(halve,add)", &[3]),
        ["`repeat` stops, since it has run 1000 rounds; these passes still change the IR: halve, add"]
    );
    assert_eq!(
        warnings("repeat{max=5000}(double-length,halve)", &[3]),
        ["`repeat` stops, since the IR has grown to 65536 nodes; these passes still change the IR: double-length"]
    );
}

#[test]
fn a_pass_that_exceeds_a_limit_fails() {
    let mut manager = pipeline("double-length,double-length");
    manager.limits("nodes=5".parse().unwrap());
    let error = manager.run_on_graph(&mut vec![1, 2], &LARGEST).unwrap_err();
    assert!(matches!(error.root(), PassError::Exceeded(_)), "{error}");
    assert!(
        error
            .to_string()
            .starts_with("pass `double-length` failed: the limit nodes=5 is exceeded"),
        "{error}"
    );
}

#[test]
fn analyses_are_kept_while_the_graph_does_not_change() {
    let report = |text: &str| {
        let report = pipeline(text).run_on_graph(&mut vec![1, 2], &LARGEST).unwrap();
        let computed = report.statistics.iter().filter(|(_, name, _)| *name == "sums computed");
        computed.map(|(_, _, n)| n).sum::<u64>()
    };
    let registry = {
        let mut registry = PassRegistry::standard();
        registry.add_closure("read-sum", "Computes the sum.", &[], |_| AnyPass::graph(ReadSum));
        registry
    };
    let reads = |text: &str| {
        let manager = PassManager::from_pipeline(&registry, text).unwrap();
        let report = manager.run_on_graph(&mut vec![1, 2], &LARGEST).unwrap();
        report.statistics.iter().map(|(_, _, n)| n).sum::<u64>()
    };
    assert_eq!(reads("read-sum,read-sum,read-sum"), 1);
    assert_eq!(report("append-sum,append-sum"), 2);
    // Nothing is kept outside the manager, or of other graphs.
    let mut cx = PassContext::new(&LARGEST);
    for _ in 0..2 {
        cx.run(&ReadSum, &mut vec![1]).unwrap();
    }
    assert_eq!(cx.counted("sums computed"), 2);
    // Of one graph they are, for the passes that are parts of the caller.
    let graph = &mut vec![1];
    let parts = |cx: &mut PassContext<'_>, graph: &mut Graph| {
        cx.run_part(&ReadSum, graph)?;
        cx.run_part(&ReadSum, graph)?;
        cx.run(&ReadSum, graph)?;
        cx.run_part(&ReadSum, graph)
    };
    cx.on_one_graph(|cx| parts(cx, graph)).unwrap();
    assert_eq!(cx.counted("sums computed"), 4);
    parts(&mut cx, graph).unwrap();
    assert_eq!(cx.counted("sums computed"), 8, "nothing is kept without a graph");
}

/// Computes the sum, and changes nothing.
struct ReadSum;

impl GraphPass<Numbers> for ReadSum {
    fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
        cx.analysis::<Sum>(graph);
        Ok(())
    }
}
