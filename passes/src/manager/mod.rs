//! The pass manager: runs passes on a module or a graph, with printing, verification and measurements.
//!
//! A [`GraphPass`] works on one graph and runs on every function of a module, on a given number of threads. A [`ModulePass`] works on a whole module. Pipelines
//! nest: [`methods`](crate::pipeline) runs one on each function, `repeat` until nothing changes.
//!
//! The manager verifies between passes, measures time, counts rewrites, and stops after a given number of rewrites. It prints through an [`IrPrinter`] of the
//! caller, because this crate is independent of the text form, and passes the data for reproducing a failure to a [`Reproducer`]. Analyses are cached between
//! passes as long as the graph's revision does not change. Results do not depend on the number of threads.

mod run;
mod workers;

use crate::pass::{AnyPass, LastRewrite, PassError};
use crate::pipeline::{PipelineEntry, PipelineError, parse_pipeline};
use crate::registry::PassRegistry;
use crate::support::operators::Operators;
use frazil_ir::{Graph, Module};
use frazil_limits::Limits;
use std::time::Duration;

/// The module or graph to be printed.
#[derive(Clone, Copy)]
pub enum IrRef<'a> {
    /// A module.
    Module(&'a Module),
    /// A graph and the qualified name of its function, empty for a bare graph.
    Graph(&'a str, &'a Graph),
}

/// Prints IR between passes; implemented by the caller, which chooses the text form and the destination.
pub trait IrPrinter: Send + Sync {
    /// Prints `ir` with the header `header`, such as `IR after dce`.
    fn print(&self, header: &str, ir: IrRef<'_>);
}

/// Stores the data for reproducing a failure; implemented by the caller, which chooses the text form and the destination.
pub trait Reproducer: Send + Sync {
    /// Writes a reproducer, an input on which `pipeline` fails with `error`.
    fn write(&self, pipeline: &str, ir: IrRef<'_>, error: &PassError);
}

/// Selects the passes before and after which the IR is printed.
#[derive(Clone, Debug, Default)]
pub struct PrintOptions {
    /// Names of passes before which the IR is printed.
    pub before: Vec<String>,
    /// Names of passes after which the IR is printed.
    pub after: Vec<String>,
    /// Prints the IR before every pass.
    pub before_all: bool,
    /// Prints the IR after every pass.
    pub after_all: bool,
    /// Prints the IR after a pass only if the pass changed it.
    pub only_on_change: bool,
    /// Prints the IR that is left by a failing pass.
    pub on_failure: bool,
}

/// Time spent in a pass, with a breakdown by function or nested pass.
#[derive(Clone, Debug, Default)]
pub struct Timing {
    /// The name of the pass or function.
    pub name: String,
    /// The duration. Durations of functions that are processed in parallel add up to more than that of the pass.
    pub time: Duration,
    /// Times of functions or nested passes, which are parts of this time.
    pub children: Vec<Timing>,
}

impl Timing {
    /// Adds the times of another run of the same passes to `sums`, including those of functions and nested passes.
    fn add_all(sums: &mut Vec<Timing>, times: Vec<Timing>) {
        for (i, time) in times.into_iter().enumerate() {
            match sums.get_mut(i).filter(|sum| sum.name == time.name) {
                Some(sum) => {
                    sum.time += time.time;
                    Timing::add_all(&mut sum.children, time.children);
                }
                None => sums.push(time),
            }
        }
    }
}

/// The report of a run of a pipeline.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The tree of times of the pipeline, its passes, and their functions.
    pub timing: Timing,
    /// Statistics of passes: name of the pass, name of the statistic, count.
    pub statistics: Vec<(String, &'static str, u64)>,
    /// Warnings about `repeat` steps that were stopped early.
    pub warnings: Vec<String>,
    /// The last rewrite that was made, if the limit on rewrites was reached.
    pub last_rewrite: Option<LastRewrite>,
}

impl Report {
    /// Adds the report of another run of the same pipeline, on a different graph.
    pub fn add(&mut self, other: Report) {
        if self.timing.children.is_empty() {
            *self = other;
            return;
        }
        self.timing.time += other.timing.time;
        for (own, theirs) in self.timing.children.iter_mut().zip(other.timing.children) {
            own.time += theirs.time;
            own.children.extend(theirs.children);
        }
        self.last_rewrite = self.last_rewrite.take().or(other.last_rewrite);
        self.warnings.extend(other.warnings);
        for (pass, name, n) in other.statistics {
            match self.statistics.iter_mut().find(|(p, s, _)| *p == pass && *s == name) {
                Some((_, _, sum)) => *sum += n,
                None => self.statistics.push((pass, name, n)),
            }
        }
    }
}

/// A step of a pipeline.
pub(crate) struct Entry {
    /// The name of the step in the pipeline, for messages and reproducers.
    name: String,
    step: Step,
}

enum Step {
    Pass(AnyPass),
    /// Runs all nested passes on one function before the next function. If names are given, only the named functions are processed.
    Methods {
        only: Vec<String>,
        entries: Vec<Entry>,
    },
    /// Repeats nested steps until they change nothing, up to a maximum number of rounds.
    Repeat {
        max: u64,
        entries: Vec<Entry>,
    },
}

/// A pipeline of passes that can be run. See the [module documentation](self).
#[derive(Default)]
pub struct PassManager {
    entries: Vec<Entry>,
    verify_each: bool,
    threads: usize,
    limit: Option<u64>,
    limits: Limits,
    print: PrintOptions,
    printer: Option<Box<dyn IrPrinter>>,
    reproducer: Option<Box<dyn Reproducer>>,
}

impl PassManager {
    /// Returns a pipeline without passes.
    pub fn new() -> PassManager {
        PassManager::default()
    }

    /// Returns the pipeline that `text` describes; see [`crate::pipeline`].
    ///
    /// # Errors
    /// If the text names an unknown pass or option, or is malformed.
    pub fn from_pipeline(registry: &PassRegistry, text: &str) -> Result<PassManager, PipelineError> {
        Ok(PassManager {
            entries: build(parse_pipeline(registry, text)?),
            ..PassManager::default()
        })
    }

    /// Returns whether one of the passes reads values of attributes; see [`ModulePass::reads_attributes`].
    pub fn reads_attributes(&self) -> bool {
        fn any(entries: &[Entry]) -> bool {
            entries.iter().any(|entry| match &entry.step {
                Step::Pass(AnyPass::Module(pass)) => pass.reads_attributes(),
                Step::Pass(AnyPass::Graph(_)) => false,
                Step::Methods { entries, .. } | Step::Repeat { entries, .. } => any(entries),
            })
        }
        any(&self.entries)
    }

    /// Appends `pass` to the pipeline. The name is used in messages.
    #[must_use]
    pub fn with(mut self, name: &str, pass: AnyPass) -> PassManager {
        self.add(name, pass);
        self
    }

    /// Appends `pass` to the pipeline. The name is used in messages.
    pub fn add(&mut self, name: &str, pass: AnyPass) {
        self.entries.push(Entry {
            name: name.to_owned(),
            step: Step::Pass(pass),
        });
    }

    /// Inserts passes at the start of the pipeline. Their names are used in messages.
    pub(crate) fn prepend(&mut self, passes: Vec<(String, AnyPass)>) {
        let entries = passes.into_iter().map(|(name, pass)| Entry {
            name,
            step: Step::Pass(pass),
        });
        self.entries.splice(0..0, entries);
    }

    /// Sets whether the verifier, including its check of schemas, runs on every graph after every pass.
    pub fn verify_each(&mut self, on: bool) {
        self.verify_each = on;
    }

    /// Sets the number of threads that process functions in parallel.
    pub fn threads(&mut self, threads: usize) {
        self.threads = threads;
    }

    /// Sets the maximum number of rewrites of all passes together. Functions are then processed sequentially.
    pub fn limit(&mut self, rewrites: Option<u64>) {
        self.limit = rewrites;
    }

    /// Sets limits on time and nodes. A pass that exceeds them fails with [`PassError::Exceeded`].
    pub fn limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Prints the IR with `printer`, before and after the passes that `options` selects.
    pub fn print_ir(&mut self, options: PrintOptions, printer: Box<dyn IrPrinter>) {
        self.print = options;
        self.printer = Some(printer);
    }

    /// Passes the input of a failing pass to `reproducer`. This copies the IR before every pass.
    pub fn reproduce(&mut self, reproducer: Box<dyn Reproducer>) {
        self.reproducer = Some(reproducer);
    }

    /// Returns the names of the pipeline's steps, with their options.
    pub fn names(&self) -> impl Iterator<Item = &str> + '_ {
        self.entries.iter().map(|e| e.name.as_str())
    }

    /// Runs the pipeline on a module.
    ///
    /// # Errors
    /// The error of the first pass that fails, or of verification.
    pub fn run(&self, module: &mut Module, operators: &dyn Operators) -> Result<Report, PassError> {
        run::run(self, run::Target::Module(module), operators)
    }

    /// Runs the pipeline on a graph without a module.
    ///
    /// # Errors
    /// The error of the first pass that fails, or of verification; [`PassError::NeedsModule`] for passes over modules.
    pub fn run_on_graph(&self, graph: &mut Graph, operators: &dyn Operators) -> Result<Report, PassError> {
        run::run(self, run::Target::Graph("", graph), operators)
    }
}

/// Builds the steps for parsed entries, recursively. The parser limits the nesting.
fn build(entries: Vec<PipelineEntry>) -> Vec<Entry> {
    let step = |e: PipelineEntry| match (e.info.name, e.nested) {
        ("methods", Some(nested)) => Step::Methods {
            only: e.options.list("only").to_vec(),
            entries: build(nested),
        },
        ("repeat", Some(nested)) => Step::Repeat {
            max: u64::try_from(e.options.int("max")).unwrap_or(0),
            entries: build(nested),
        },
        _ => Step::Pass(e.info.build(&e.options)),
    };
    entries
        .into_iter()
        .map(|e| Entry {
            name: e.text.clone(),
            step: step(e),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::{GraphPass, PassContext};
    use frazil_ir::schema::Catalogue;
    use frazil_ir::{Builder, Context, types};
    use std::sync::{Arc, Mutex};

    struct AddsConstant;
    impl GraphPass for AddsConstant {
        fn run(&self, graph: &mut Graph, cx: &mut PassContext<'_>) -> Result<(), PassError> {
            if cx.rewrite("constants added") {
                let root = graph.root();
                Builder::at_end(graph, root).constant(1);
            }
            Ok(())
        }
    }

    struct Breaks;
    impl GraphPass for Breaks {
        fn run(&self, graph: &mut Graph, _cx: &mut PassContext<'_>) -> Result<(), PassError> {
            let root = graph.root();
            let v = Builder::at_end(graph, root).constant(1);
            graph.set_type(v, types::STR);
            Ok(())
        }
    }

    struct Panics;
    impl GraphPass for Panics {
        fn run(&self, _graph: &mut Graph, _cx: &mut PassContext<'_>) -> Result<(), PassError> {
            panic!("out of cheese");
        }
    }

    #[derive(Clone, Default)]
    struct Headers(Arc<Mutex<Vec<String>>>);
    impl IrPrinter for Headers {
        fn print(&self, header: &str, _ir: IrRef<'_>) {
            self.0.lock().unwrap().push(header.to_owned());
        }
    }
    impl Reproducer for Headers {
        fn write(&self, pipeline: &str, ir: IrRef<'_>, error: &PassError) {
            let IrRef::Graph(_, graph) = ir else { return };
            let text = format!("{pipeline}: {} nodes: {}", graph.all_nodes().len(), error.root());
            self.0.lock().unwrap().push(text);
        }
    }

    fn setting() -> (Catalogue, Graph) {
        let ctx = Arc::new(Context::new());
        (Catalogue::new(ctx.clone()), Graph::new(ctx))
    }

    #[test]
    fn verification_names_the_pass_that_broke_the_graph() {
        let (catalogue, mut graph) = setting();
        let mut manager = PassManager::new()
            .with("good", AnyPass::graph(AddsConstant))
            .with("bad", AnyPass::graph(Breaks));
        assert!(manager.run_on_graph(&mut graph.clone(), &catalogue).is_ok());
        manager.verify_each(true);
        let error = manager.run_on_graph(&mut graph, &catalogue).unwrap_err();
        assert!(
            error.to_string().starts_with("pass `bad` failed: in function"),
            "{error}"
        );
        assert!(matches!(error.root(), PassError::Verify { .. }));
        let named = error.in_function("f").to_string();
        assert!(named.starts_with("pass `bad` failed: in function f: "), "{named}");
    }

    #[test]
    fn printing_on_change_and_statistics() {
        let (catalogue, mut graph) = setting();
        let headers = Headers::default();
        let mut manager = PassManager::new()
            .with("add", AnyPass::graph(AddsConstant))
            .with("dce", AnyPass::graph(crate::dce::DeadCodeElimination::default()))
            .with("dce", AnyPass::graph(crate::dce::DeadCodeElimination::default()));
        let options = PrintOptions {
            after_all: true,
            only_on_change: true,
            ..PrintOptions::default()
        };
        manager.print_ir(options, Box::new(headers.clone()));
        let report = manager.run_on_graph(&mut graph, &catalogue).unwrap();
        assert_eq!(*headers.0.lock().unwrap(), ["IR after add", "IR after dce"]);
        assert_eq!(report.statistics[0], ("add".to_owned(), "constants added", 1));
        assert_eq!(report.timing.children.len(), 3);
    }

    #[test]
    fn what_a_failing_pass_was_given_is_kept_also_when_it_panics() {
        let (catalogue, graph) = setting();
        for (bad, told) in [
            (AnyPass::graph(Panics), "bad: 1 nodes: the pass panicked: out of cheese"),
            (AnyPass::graph(Breaks), "bad: 1 nodes: in function"),
        ] {
            let kept = Headers::default();
            let mut manager = PassManager::new()
                .with("good", AnyPass::graph(AddsConstant))
                .with("bad", bad);
            manager.verify_each(true);
            manager.reproduce(Box::new(kept.clone()));
            let error = manager.run_on_graph(&mut graph.clone(), &catalogue).unwrap_err();
            assert!(matches!(error, PassError::In { ref pass, .. } if pass == "bad"));
            assert!(kept.0.lock().unwrap()[0].starts_with(told), "{kept:?}", kept = kept.0);
        }
    }

    #[test]
    fn a_limit_stops_all_passes_together() {
        let (catalogue, mut graph) = setting();
        let mut manager = PassManager::new();
        for _ in 0..5 {
            manager.add("add", AnyPass::graph(AddsConstant));
        }
        manager.limit(Some(3));
        let report = manager.run_on_graph(&mut graph, &catalogue).unwrap();
        assert_eq!(graph.all_nodes().len(), 3);
        let last = report.last_rewrite.unwrap();
        assert_eq!((last.pass.as_str(), last.statistic), ("add", "constants added"));
        manager.limit(Some(30));
        let report = manager.run_on_graph(&mut graph, &catalogue).unwrap();
        assert_eq!(report.last_rewrite, None);
    }
}
