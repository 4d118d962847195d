//! The pass manager: runs passes on a module or a graph, and observes them.
//!
//! A [`GraphPass`](crate::GraphPass) works on one graph and runs on every function of a module, on a given number of threads; a
//! [`ModulePass`](crate::ModulePass) works on a whole module. Pipelines nest: [`methods`](crate::pipeline) runs one on each
//! function, `repeat` until nothing changes. The manager verifies between passes, prints through an [`IrPrinter`] of the caller (this crate
//! is independent of the text form), measures time, counts rewrites, stops after a given number of rewrites, and passes the data for reproducing a failure to a [`Reproducer`]. Analyses are cached between passes as
//! long as the graph's revision does not change. Results do not depend on the number of threads.

mod run;
mod workers;

use crate::error::PassError;
use crate::fuel::LastRewrite;
use crate::ir::{Ir, IrRef};
use crate::pass::AnyPass;
use crate::pipeline::{PipelineEntry, PipelineError, parse_pipeline};
use crate::registry::PassRegistry;
use frazil_limits::Limits;
use std::time::Duration;

/// Prints IR between passes; implemented by the caller, which chooses the text form and the destination.
pub trait IrPrinter<I: Ir>: Send + Sync {
    /// Prints `ir` under `header`: `IR after dce`.
    fn print(&self, header: &str, ir: IrRef<'_, I>);
}

/// Stores the data for reproducing a failure; implemented by the caller, which chooses the text form and the destination.
pub trait Reproducer<I: Ir>: Send + Sync {
    /// Writes a reproducer: running `pipeline` on `ir` fails with `error`.
    fn write(&self, pipeline: &str, ir: IrRef<'_, I>, error: &PassError<I>);
}

/// Controls when IR is printed.
#[derive(Clone, Debug, Default)]
pub struct PrintOptions {
    /// Prints before these passes.
    pub before: Vec<String>,
    /// Prints after these passes.
    pub after: Vec<String>,
    /// Prints before every pass.
    pub before_all: bool,
    /// Prints after every pass.
    pub after_all: bool,
    /// Prints after a pass only if it changed something.
    pub only_on_change: bool,
    /// Prints the IR that a failing pass leaves.
    pub on_failure: bool,
}

/// Time spent in a pass, and below it by function or by nested pass.
#[derive(Clone, Debug, Default)]
pub struct Timing {
    /// The name of the pass or function.
    pub name: String,
    /// The duration. Durations of functions that are processed in parallel add up to more than that of the pass.
    pub time: Duration,
    /// The parts of the time.
    pub children: Vec<Timing>,
}

impl Timing {
    /// Adds the times of another run of the same passes to `sums`, part by part.
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
    /// The tree of times: the pipeline, its passes, their functions.
    pub timing: Timing,
    /// Statistics of passes: pass, name, number.
    pub statistics: Vec<(String, &'static str, u64)>,
    /// Warnings about steps that were stopped before their end.
    pub warnings: Vec<String>,
    /// The last rewrite, if a limit on rewrites was reached.
    pub last_rewrite: Option<LastRewrite>,
}

impl Report {
    /// Adds the report of another run of the same pipeline, on another graph.
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

/// One step of a pipeline.
pub(crate) struct Entry<I: Ir> {
    /// As in the pipeline, for messages and reproducers.
    name: String,
    step: Step<I>,
}

enum Step<I: Ir> {
    Pass(AnyPass<I>),
    /// Runs all passes on each function before the next; only on the named functions if names are given.
    Methods {
        only: Vec<String>,
        entries: Vec<Entry<I>>,
    },
    /// Repeats until nothing changes, or up to a maximum number of rounds.
    Repeat {
        max: u64,
        entries: Vec<Entry<I>>,
    },
}

/// A pipeline ready to run. See the [module documentation](self).
pub struct PassManager<I: Ir> {
    entries: Vec<Entry<I>>,
    verify_each: bool,
    threads: usize,
    limit: Option<u64>,
    limits: Limits,
    print: PrintOptions,
    printer: Option<Box<dyn IrPrinter<I>>>,
    reproducer: Option<Box<dyn Reproducer<I>>>,
}

impl<I: Ir> Default for PassManager<I> {
    fn default() -> PassManager<I> {
        PassManager {
            entries: Vec::new(),
            verify_each: false,
            threads: 0,
            limit: None,
            limits: Limits::default(),
            print: PrintOptions::default(),
            printer: None,
            reproducer: None,
        }
    }
}

impl<I: Ir> PassManager<I> {
    /// Returns a pipeline without passes.
    pub fn new() -> PassManager<I> {
        PassManager::default()
    }

    /// Returns the pipeline that `text` describes; see [`crate::pipeline`].
    ///
    /// # Errors
    /// If the text names an unknown pass or option, or is malformed.
    pub fn from_pipeline(registry: &PassRegistry<I>, text: &str) -> Result<PassManager<I>, PipelineError> {
        Ok(PassManager {
            entries: build(parse_pipeline(registry, text)?),
            ..PassManager::default()
        })
    }

    /// Returns whether one of the passes reads values of attributes; see [`ModulePass::reads_attributes`](crate::ModulePass::reads_attributes).
    pub fn reads_attributes(&self) -> bool {
        fn any<I: Ir>(entries: &[Entry<I>]) -> bool {
            entries.iter().any(|entry| match &entry.step {
                Step::Pass(AnyPass::Module(pass)) => pass.reads_attributes(),
                Step::Pass(AnyPass::Graph(_)) => false,
                Step::Methods { entries, .. } | Step::Repeat { entries, .. } => any(entries),
            })
        }
        any(&self.entries)
    }

    /// Appends a pass; `name` is used in messages.
    #[must_use]
    pub fn with(mut self, name: &str, pass: AnyPass<I>) -> PassManager<I> {
        self.add(name, pass);
        self
    }

    /// Appends a pass; `name` is used in messages.
    pub fn add(&mut self, name: &str, pass: AnyPass<I>) {
        self.entries.push(Entry {
            name: name.to_owned(),
            step: Step::Pass(pass),
        });
    }

    /// Inserts passes, with their names for messages, before the others.
    pub fn prepend(&mut self, passes: Vec<(String, AnyPass<I>)>) {
        let entries = passes.into_iter().map(|(name, pass)| Entry {
            name,
            step: Step::Pass(pass),
        });
        self.entries.splice(0..0, entries);
    }

    /// Sets whether every graph is verified after every pass, and the input before the first.
    pub fn verify_each(&mut self, on: bool) {
        self.verify_each = on;
    }

    /// Sets the number of functions that are processed in parallel.
    pub fn threads(&mut self, threads: usize) {
        self.threads = threads;
    }

    /// Sets the maximum number of rewrites of all passes together. Functions are then processed sequentially.
    pub fn limit(&mut self, rewrites: Option<u64>) {
        self.limit = rewrites;
    }

    /// Sets limits; a pass that needs more time, or makes more nodes, fails with [`PassError::Exceeded`].
    pub fn limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Prints IR with `printer` according to `options`.
    pub fn print_ir(&mut self, options: PrintOptions, printer: Box<dyn IrPrinter<I>>) {
        self.print = options;
        self.printer = Some(printer);
    }

    /// Passes the input of a failing pass to `reproducer`. This copies the IR before every pass.
    pub fn reproduce(&mut self, reproducer: Box<dyn Reproducer<I>>) {
        self.reproducer = Some(reproducer);
    }

    /// Returns the names of the passes, with their options.
    pub fn names(&self) -> impl Iterator<Item = &str> + '_ {
        self.entries.iter().map(|e| e.name.as_str())
    }

    /// Runs the pipeline on a module.
    ///
    /// # Errors
    /// That of the first pass that fails, or of verification.
    pub fn run(&self, module: &mut I::Module, environment: &I::Environment) -> Result<Report, PassError<I>> {
        run::run(self, run::Target::Module(module), environment)
    }

    /// Runs the pipeline on a graph that belongs to no module.
    ///
    /// # Errors
    /// That of the first pass that fails, or of verification; [`PassError::NeedsModule`] for passes over modules.
    pub fn run_on_graph(&self, graph: &mut I::Graph, environment: &I::Environment) -> Result<Report, PassError<I>> {
        run::run(self, run::Target::Graph("", graph), environment)
    }
}

/// Builds the steps of a pipeline. The recursion is bounded, since the parser bounds the nesting.
fn build<I: Ir>(entries: Vec<PipelineEntry<I>>) -> Vec<Entry<I>> {
    let step = |e: PipelineEntry<I>| match (e.info.name, e.nested) {
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
