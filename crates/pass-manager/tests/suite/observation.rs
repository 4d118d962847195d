//! Observation of pipelines: printing, reproducers, timing.

use crate::numbers::{Numbers, PassError, pipeline, program};
use frazil_pass_manager::{IrPrinter, IrRef, PrintOptions, Reproducer};
use std::sync::{Arc, Mutex};

const LARGEST: u64 = 100;

/// The texts that are printed.
#[derive(Clone, Default)]
struct Printed(Arc<Mutex<Vec<String>>>);

impl Printed {
    fn push(&self, text: String) {
        self.0.lock().unwrap().push(text);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

fn text(ir: IrRef<'_, Numbers>) -> String {
    match ir {
        IrRef::Module(module) => format!("{} functions", module.0.len()),
        IrRef::Graph(name, graph) => format!("{name}{graph:?}"),
    }
}

impl IrPrinter<Numbers> for Printed {
    fn print(&self, header: &str, ir: IrRef<'_, Numbers>) {
        self.push(format!("{header}: {}", text(ir)));
    }
}

impl Reproducer<Numbers> for Printed {
    fn write(&self, pipeline: &str, ir: IrRef<'_, Numbers>, error: &PassError) {
        self.push(format!("{pipeline}: {}: {}", text(ir), error.root()));
    }
}

#[test]
fn ir_is_printed_before_and_after_passes() {
    let printed = Printed::default();
    let print = |options: PrintOptions, module: bool| {
        let mut manager = pipeline("halve,add{by=0},halve");
        manager.print_ir(options, Box::new(printed.clone()));
        match module {
            true => manager.run(&mut program(&[("f", &[4])]), &LARGEST).unwrap(),
            false => manager.run_on_graph(&mut vec![4], &LARGEST).unwrap(),
        };
        printed.take()
    };
    let all = PrintOptions {
        after_all: true,
        ..PrintOptions::default()
    };
    let expected = ["IR after halve: [2]", "IR after add{by=0}: [2]", "IR after halve: [1]"];
    assert_eq!(print(all.clone(), false), expected);
    assert_eq!(print(all.clone(), true)[1], "IR after add{by=0}: 1 functions");
    let on_change = PrintOptions {
        only_on_change: true,
        ..all
    };
    assert_eq!(print(on_change, false), [expected[0], expected[2]]);
    let named = PrintOptions {
        before: vec!["add".to_owned()],
        after: vec!["halve".to_owned()],
        ..PrintOptions::default()
    };
    assert_eq!(
        print(named, false),
        [expected[0], "IR before add{by=0}: [2]", expected[2]]
    );
}

#[test]
fn failures_are_printed_and_reproduced_with_the_input_of_the_pass() {
    for (bad, left, error) in [
        ("panic", "[2]", "the pass panicked: out of cheese"),
        (
            "add{by=99}",
            "[101]",
            "in function (without a name): 101 is larger than 100",
        ),
    ] {
        let (printed, reproduced) = (Printed::default(), Printed::default());
        let mut manager = pipeline(&format!("halve,{bad},halve"));
        manager.verify_each(true);
        let options = PrintOptions {
            on_failure: true,
            ..PrintOptions::default()
        };
        manager.print_ir(options, Box::new(printed.clone()));
        manager.reproduce(Box::new(reproduced.clone()));
        let failed = manager.run_on_graph(&mut vec![4], &LARGEST).unwrap_err();
        assert!(matches!(failed, PassError::In { ref pass, .. } if pass == bad));
        assert_eq!(printed.take(), [format!("IR after failure of {bad}: {left}")]);
        assert_eq!(reproduced.take(), [format!("{bad}: [2]: {error}")]);
    }
}

#[test]
fn the_tree_of_times_and_the_statistics_have_the_names_of_the_pipeline() {
    let report = pipeline("add{by=2},methods(halve,append-sum)")
        .run_on_graph(&mut vec![4, 6], &LARGEST)
        .unwrap();
    assert_eq!(report.timing.name, "pipeline");
    let names =
        |times: &[frazil_pass_manager::Timing]| -> Vec<String> { times.iter().map(|t| t.name.clone()).collect() };
    let children = &report.timing.children;
    assert_eq!(names(children), ["add{by=2}", "methods(halve,append-sum)"]);
    assert_eq!(names(&children[1].children), ["halve", "append-sum"]);
    assert!(report.timing.time >= children[1].time);
    let expected = [
        ("add{by=2}", "numbers increased", 2),
        ("halve", "numbers halved", 2),
        ("append-sum", "sums computed", 1),
    ];
    assert_eq!(
        report.statistics,
        expected.map(|(pass, name, n)| (pass.to_owned(), name, n))
    );
}
