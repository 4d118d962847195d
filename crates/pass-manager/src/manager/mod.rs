//! The pass manager, which runs a pipeline of passes on a module or a graph.
//!
//! - A [`GraphPass`](crate::GraphPass) runs on the graph of every function of a module, on several threads if [`PassManager::threads`] says so. A
//!   [`ModulePass`](crate::ModulePass) runs on the module as a whole.
//! - Pipelines nest: the [steps](crate::pipeline) `methods` and `repeat` run a pipeline on each function, or until nothing changes.
//! - The manager can verify the IR after each pass, print it, stop after a number of rewrites, and save the input of a pass that fails. An [`IrPrinter`] and a
//!   [`Reproducer`] of the caller write the text, since this crate knows no text form.
//! - The [`Report`] of a run contains times, statistics and warnings.
//! - Analyses are cached from one pass to the next while the revision of the graph stays the same.
//!
//! Results do not depend on the number of threads.

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

/// Prints IR before and after passes. The caller implements this trait, and chooses the text form and the destination.
pub trait IrPrinter<I: Ir>: Send + Sync {
    /// Prints `ir` under the heading `header`, such as `IR after dce`.
    fn print(&self, header: &str, ir: IrRef<'_, I>);
}

/// Stores a reproducer when a pass fails: the input of the pass, and a pipeline of this pass alone. The caller implements this trait, and chooses the text form
/// and the destination.
pub trait Reproducer<I: Ir>: Send + Sync {
    /// Stores a reproducer. Running the pipeline `pipeline` on `ir` has failed with `error`.
    fn write(&self, pipeline: &str, ir: IrRef<'_, I>, error: &PassError<I>);
}

/// The passes before and after which IR is printed.
#[derive(Clone, Debug, Default)]
pub struct PrintOptions {
    /// Names of passes before which IR is printed.
    pub before: Vec<String>,
    /// Names of passes after which IR is printed.
    pub after: Vec<String>,
    /// Whether IR is printed before every pass.
    pub before_all: bool,
    /// Whether IR is printed after every pass.
    pub after_all: bool,
    /// Whether IR is printed after a pass only if the pass changed it.
    pub only_on_change: bool,
    /// Whether IR is printed in the state in which a failing pass left it.
    pub on_failure: bool,
}

/// The duration of a pipeline, pass or function, and of its parts: the passes of a pipeline, and the functions on which a pass ran.
#[derive(Clone, Debug, Default)]
pub struct Timing {
    /// The name of the pass or function; `pipeline` for the whole.
    pub name: String,
    /// The duration. The durations of functions that are processed in parallel may add up to more than that of the pass.
    pub time: Duration,
    /// The durations of the parts.
    pub children: Vec<Timing>,
}

impl Timing {
    /// Adds the durations of another run of the same passes to `sums`, part by part.
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

/// The report on a run of a pipeline.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The durations of the pipeline, its passes, and their functions.
    pub timing: Timing,
    /// Statistics of passes: the pass, the name of the statistic, and its value.
    pub statistics: Vec<(String, &'static str, u64)>,
    /// Warnings about `repeat` steps that were stopped although the IR still changed.
    pub warnings: Vec<String>,
    /// The last rewrite, if a limit on rewrites was reached.
    pub last_rewrite: Option<LastRewrite>,
}

impl Report {
    /// Adds the report on a run of the same pipeline on another graph.
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
    /// The text of the step in the pipeline, for messages and reproducers.
    name: String,
    step: Step<I>,
}

enum Step<I: Ir> {
    Pass(AnyPass<I>),
    /// Runs all entries on one function before the next function. If `only` is not empty, other functions are skipped.
    Methods {
        only: Vec<String>,
        entries: Vec<Entry<I>>,
    },
    /// Runs the entries until they change nothing, but at most `max` times.
    Repeat {
        max: u64,
        entries: Vec<Entry<I>>,
    },
}

/// A pipeline of passes, and the settings of its runs. See the [module documentation](self).
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

    /// Returns whether any pass reads the values of attributes; see [`ModulePass::reads_attributes`](crate::ModulePass::reads_attributes).
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

    /// Inserts passes, with their names for messages, at the start of the pipeline.
    pub fn prepend(&mut self, passes: Vec<(String, AnyPass<I>)>) {
        let entries = passes.into_iter().map(|(name, pass)| Entry {
            name,
            step: Step::Pass(pass),
        });
        self.entries.splice(0..0, entries);
    }

    /// Sets whether all graphs are verified before the first pass and after every pass.
    pub fn verify_each(&mut self, on: bool) {
        self.verify_each = on;
    }

    /// Sets the number of threads for passes over graphs, which process different functions. With 0 (the default) or 1, the calling thread processes all functions.
    pub fn threads(&mut self, threads: usize) {
        self.threads = threads;
    }

    /// Sets the maximum number of rewrites of all passes together; `None` for no maximum. With a maximum, functions are processed one after the other.
    pub fn limit(&mut self, rewrites: Option<u64>) {
        self.limit = rewrites;
    }

    /// Sets the limits on time, memory and sizes. A pass that exceeds one fails with [`PassError::Exceeded`].
    pub fn limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Prints IR with `printer` according to `options`.
    pub fn print_ir(&mut self, options: PrintOptions, printer: Box<dyn IrPrinter<I>>) {
        self.print = options;
        self.printer = Some(printer);
    }

    /// Sets the receiver of the input of a pass that fails. The IR is then copied before every pass.
    pub fn reproduce(&mut self, reproducer: Box<dyn Reproducer<I>>) {
        self.reproducer = Some(reproducer);
    }

    /// Returns the texts of the pipeline's steps: names with options, and nested pipelines.
    pub fn names(&self) -> impl Iterator<Item = &str> + '_ {
        self.entries.iter().map(|e| e.name.as_str())
    }

    /// Runs the pipeline on a module.
    ///
    /// # Errors
    /// The error of the first pass that fails, or of verification.
    pub fn run(&self, module: &mut I::Module, environment: &I::Environment) -> Result<Report, PassError<I>> {
        run::run(self, run::Target::Module(module), environment)
    }

    /// Runs the pipeline on a graph that belongs to no module.
    ///
    /// # Errors
    /// The error of the first pass that fails, or of verification; [`PassError::NeedsModule`] for most passes over modules.
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
