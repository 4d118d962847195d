//! Execution of a pipeline: its passes, nested pipelines, and functions in parallel.

use super::workers::Workers;
use super::{Entry, PassManager, Report, Step, Timing};
use crate::analysis::Analyses;
use crate::context::PassContext;
use crate::error::PassError;
use crate::fuel::Fuel;
use crate::ir::{Function, Ir, IrModule, IrRef};
use crate::pass::AnyPass;
use frazil_limits::{Budget, Limits, Phase};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

/// The IR on which a pipeline runs.
pub(super) enum Target<'m, I: Ir> {
    Module(&'m mut I::Module),
    /// The qualified name of a function, and its graph. The name is empty for a graph that belongs to no module.
    Graph(&'m str, &'m mut I::Graph),
}

/// A copy of the IR on which a pipeline runs.
enum Snapshot<I: Ir> {
    Module(Box<I::Module>),
    Graph(Box<I::Graph>),
}

impl<I: Ir> Target<'_, I> {
    fn as_ref(&self) -> IrRef<'_, I> {
        match self {
            Target::Module(module) => IrRef::Module(&**module),
            Target::Graph(name, graph) => IrRef::Graph(name, &**graph),
        }
    }

    fn snapshot(&self) -> Snapshot<I> {
        match self {
            Target::Module(m) => Snapshot::Module(Box::new((**m).clone())),
            Target::Graph(_, g) => Snapshot::Graph(Box::new((**g).clone())),
        }
    }

    fn node_count(&self) -> usize {
        match self {
            Target::Graph(_, graph) => I::node_count(graph),
            Target::Module(module) => module.functions().map(|f| I::node_count(f.graph)).sum(),
        }
    }

    /// Returns a value that differs after every change: the revisions of all graphs by function, and that of the module.
    fn fingerprint(&self) -> Vec<(u32, u64)> {
        match self {
            Target::Graph(_, g) => vec![(0, I::revision(g))],
            Target::Module(m) => {
                let functions = m.functions().map(|f| (f.id, I::revision(f.graph)));
                functions.chain([(u32::MAX, m.revision())]).collect()
            }
        }
    }
}

/// The key in [`Run::known`] for a run on a single graph.
const THIS: u32 = 0;

/// The state of a pipeline's run on a module, or on the graph of one function.
struct Run<'a, I: Ir> {
    manager: &'a PassManager<I>,
    environment: &'a I::Environment,
    fuel: Option<&'a Fuel>,
    pool: Option<&'a Workers>,
    /// Cached analyses, by [`Function::id`](crate::ir::Function::id). The key is [`THIS`] for a run on a single graph.
    known: HashMap<u32, Analyses>,
    statistics: Vec<(String, &'static str, u64)>,
    /// Number of rounds of all `repeat` steps so far.
    rounds: u64,
    /// See [`Report::warnings`].
    warnings: Vec<String>,
}

/// Maximum number of rounds of all `repeat` steps on one function or module. Without it, two passes that undo each other's rewrites would not terminate.
const MAX_ROUNDS: u64 = 1000;

/// Number of nodes to which the rounds of a `repeat` may let the IR grow, whatever its original size.
const MAX_NODES: usize = 200_000;

/// Maximum factor by which the rounds of a `repeat` may let the number of nodes grow, if the IR then has more than [`MAX_NODES`].
const MAX_GROWTH: usize = 4;

/// Maximum sum of the numbers of nodes after each round of a `repeat`, or [`MAX_VISITS_EACH`] times the original number if that is more. A node takes about a
/// microsecond per round, and several with verification. This bounds the time of many rounds that each let the IR grow by a few nodes.
const MAX_VISITS: usize = 100_000;

/// See [`MAX_VISITS`].
const MAX_VISITS_EACH: usize = 100;

/// The outcome of a pass or nested pipeline on one function.
struct Outcome<I: Ir> {
    id: u32,
    name: String,
    result: Result<(), PassError<I>>,
    statistics: Vec<(String, &'static str, u64)>,
    warnings: Vec<String>,
    timing: Vec<Timing>,
    seconds: std::time::Duration,
    known: Analyses,
}

/// Runs the pipeline of `manager` on `target`.
pub(super) fn run<I: Ir>(
    manager: &PassManager<I>,
    mut target: Target<'_, I>,
    environment: &I::Environment,
) -> Result<Report, PassError<I>> {
    let budget = Budget::new(&manager.limits, Phase::Pipeline);
    let _entered = (manager.limits != Limits::NONE).then(|| budget.enter());
    let fuel = manager.limit.map(Fuel::new);
    // With several threads, the rewrite that takes the last fuel would differ from run to run.
    let threads = if fuel.is_some() { 1 } else { manager.threads };
    let pool = Workers::new(threads);
    let mut run = Run {
        manager,
        environment,
        fuel: fuel.as_ref(),
        pool: pool.as_ref(),
        known: HashMap::new(),
        statistics: Vec::new(),
        rounds: 0,
        warnings: Vec::new(),
    };
    let start = Instant::now();
    let mut timing = Timing {
        name: "pipeline".to_owned(),
        ..Timing::default()
    };
    if manager.verify_each {
        // An invalid input is an error of its own, and not one of the first pass.
        verify(&target, environment).map_err(|error| PassError::Input(Box::new(error)))?;
    }
    run.entries(&manager.entries, &mut target, &mut timing.children)?;
    timing.time = start.elapsed();
    Ok(Report {
        timing,
        statistics: run.statistics,
        warnings: run.warnings,
        last_rewrite: fuel.and_then(|fuel| fuel.last()),
    })
}

impl<'a, I: Ir> Run<'a, I> {
    /// Runs `entries` in sequence.
    fn entries(
        &mut self,
        entries: &[Entry<I>],
        target: &mut Target<'_, I>,
        timings: &mut Vec<Timing>,
    ) -> Result<(), PassError<I>> {
        for entry in entries {
            let mut timing = Timing {
                name: entry.name.clone(),
                ..Timing::default()
            };
            let start = Instant::now();
            let result = match &entry.step {
                Step::Pass(pass) => self.watched(entry, pass, target, &mut timing.children),
                Step::Methods { only, entries } => self.methods(only, entries, target, &mut timing.children),
                Step::Repeat { max, entries } => self.repeat(*max, entries, target, &mut timing.children),
            };
            timing.time = start.elapsed();
            timings.push(timing);
            result?;
        }
        Ok(())
    }

    /// Runs `entries` until they change nothing, at most `max` times, or until a maximum of this file is exceeded, which adds a warning.
    fn repeat(
        &mut self,
        max: u64,
        entries: &[Entry<I>],
        target: &mut Target<'_, I>,
        timings: &mut Vec<Timing>,
    ) -> Result<(), PassError<I>> {
        let grown = target.node_count().saturating_mul(MAX_GROWTH);
        let most = MAX_NODES.max(grown);
        let most_visits = MAX_VISITS.max(target.node_count().saturating_mul(MAX_VISITS_EACH));
        let mut visits = 0usize;
        for _ in 0..max {
            self.rounds += 1;
            frazil_limits::check_repetitions(self.rounds, "rounds of `repeat`")?;
            let mut unsettled: Vec<&str> = Vec::new();
            let mut times = Vec::with_capacity(entries.len());
            for entry in entries {
                let before = target.fingerprint();
                self.entries(std::slice::from_ref(entry), target, &mut times)?;
                if target.fingerprint() != before {
                    unsettled.push(&entry.name);
                }
            }
            Timing::add_all(timings, times);
            if unsettled.is_empty() {
                break;
            }
            let nodes = target.node_count();
            visits = visits.saturating_add(nodes);
            let why = match visits > most_visits {
                _ if nodes > most => format!("the IR has grown to {nodes} nodes"),
                true if nodes > grown => format!("the IR has grown to {nodes} nodes"),
                true => format!("its rounds have visited {visits} nodes"),
                _ if self.rounds >= MAX_ROUNDS => format!("it has run {} rounds", self.rounds),
                _ => continue,
            };
            let warning = format!(
                "`repeat` stops, since {why}; these passes still change the IR: {}",
                unsettled.join(", ")
            );
            tracing::warn!("{warning}");
            self.warnings.push(warning);
            break;
        }
        Ok(())
    }

    /// Runs one pass; prints and verifies the IR, and writes a reproducer, as the manager's settings say.
    fn watched(
        &mut self,
        entry: &Entry<I>,
        pass: &AnyPass<I>,
        target: &mut Target<'_, I>,
        timings: &mut Vec<Timing>,
    ) -> Result<(), PassError<I>> {
        let manager = self.manager;
        let short = entry.name.split('{').next().unwrap_or_default();
        let _span = tracing::info_span!("pass", name = short).entered();
        let named = |names: &[String]| names.iter().any(|n| n == short);
        if manager.print.before_all || named(&manager.print.before) {
            manager.show("before", &entry.name, target);
        }
        let before = target.fingerprint();
        let snapshot = manager.reproducer.as_ref().map(|_| target.snapshot());
        let ran = self.within_limits(pass, target, |run, target| run.pass(&entry.name, pass, target, timings));
        let result = ran.and_then(|()| match manager.verify_each {
            true => verify(target, self.environment),
            false => Ok(()),
        });
        if let Err(error) = result {
            if manager.print.on_failure {
                manager.show("after failure of", &entry.name, target);
            }
            if let (Some(reproducer), Some(snapshot)) = (&manager.reproducer, &snapshot) {
                let ir = match snapshot {
                    Snapshot::Module(m) => IrRef::Module(&**m),
                    Snapshot::Graph(g) => IrRef::Graph("", &**g),
                };
                reproducer.write(&entry.name, ir, &error);
            }
            return Err(PassError::In {
                pass: entry.name.clone(),
                source: Box::new(error),
            });
        }
        let wanted = manager.print.after_all || named(&manager.print.after);
        if wanted && (!manager.print.only_on_change || target.fingerprint() != before) {
            manager.show("after", &entry.name, target);
        }
        Ok(())
    }

    /// Calls `work`, which runs `pass`, within the limits on a pass.
    fn within_limits(
        &mut self,
        pass: &AnyPass<I>,
        target: &mut Target<'_, I>,
        work: impl FnOnce(&mut Self, &mut Target<'_, I>) -> Result<(), PassError<I>>,
    ) -> Result<(), PassError<I>> {
        if self.manager.limits == Limits::NONE {
            return work(self, target);
        }
        let phase = match pass {
            AnyPass::Graph(_) => Phase::Pass,
            AnyPass::Module(pass) => pass.phase(),
        };
        let budget = Budget::new(&self.manager.limits, phase);
        let entered = budget.enter();
        let ran = work(self, target);
        let counted = frazil_limits::check_nodes(target.node_count());
        drop(entered);
        // The limit is reported whatever error the pass returns.
        budget.finish().and(counted)?;
        ran
    }

    fn pass(
        &mut self,
        name: &str,
        pass: &AnyPass<I>,
        target: &mut Target<'_, I>,
        timings: &mut Vec<Timing>,
    ) -> Result<(), PassError<I>> {
        match (pass, target) {
            (AnyPass::Graph(pass), Target::Graph(function, graph)) => {
                let mut cx = PassContext::new(self.environment).with_fuel(self.fuel);
                cx.keeps_analyses = true;
                cx.analyses = self.known.remove(&THIS).unwrap_or_default();
                let result = guarded(|| pass.run(graph, &mut cx));
                self.known.insert(THIS, std::mem::take(&mut cx.analyses));
                self.count(name, &cx);
                if let Some(fuel) = self.fuel {
                    fuel.locate_last(name, function);
                }
                result
            }
            (AnyPass::Graph(_), Target::Module(module)) => {
                self.each_function(module, &|_| true, timings, |run, function, graph, timings| {
                    run.pass(name, pass, &mut Target::Graph(function, graph), timings)
                })
            }
            (AnyPass::Module(pass), target) => {
                // The pass may change the numbers of functions, which are the keys.
                self.known.clear();
                let mut cx = PassContext::new(self.environment).with_fuel(self.fuel);
                let result = guarded(|| match target {
                    Target::Module(module) => pass.run(module, &mut cx),
                    Target::Graph(_, graph) => pass.run_on_graph(graph, &mut cx),
                });
                self.known.clear();
                self.count(name, &cx);
                if let Some(fuel) = self.fuel {
                    fuel.locate_last(name, "");
                }
                result
            }
        }
    }

    /// Runs `entries` on each function separately. `only` contains names of methods or qualified names of functions; empty for all functions.
    fn methods(
        &mut self,
        only: &[String],
        entries: &[Entry<I>],
        target: &mut Target<'_, I>,
        timings: &mut Vec<Timing>,
    ) -> Result<(), PassError<I>> {
        match target {
            Target::Graph(..) => self.entries(entries, target, timings),
            Target::Module(module) => {
                let wanted = |name: &str| {
                    let short = name.rsplit('.').next().unwrap_or(name);
                    only.is_empty() || only.iter().any(|o| o == name || o == short)
                };
                self.each_function(module, &wanted, timings, |run, name, graph, timings| {
                    run.entries(entries, &mut Target::Graph(name, graph), timings)
                })
            }
        }
    }

    /// Calls `work` on the functions for whose names `wanted` returns true, in parallel if there are threads. Statistics, warnings and times are merged in the order of
    /// the functions.
    ///
    /// # Errors
    /// The error of the first function in this order that fails.
    fn each_function(
        &mut self,
        module: &mut I::Module,
        wanted: &dyn Fn(&str) -> bool,
        timings: &mut Vec<Timing>,
        work: impl Fn(&mut Run<'a, I>, &str, &mut I::Graph, &mut Vec<Timing>) -> Result<(), PassError<I>> + Sync,
    ) -> Result<(), PassError<I>> {
        let jobs: Vec<(Function<'_, &mut I::Graph>, Analyses)> = module
            .functions_mut()
            .filter(|function| wanted(&function.name))
            .map(|function| {
                let known = self.known.remove(&function.id).unwrap_or_default();
                (function, known)
            })
            .collect();
        let (manager, environment, fuel, rounds) = (self.manager, self.environment, self.fuel, self.rounds);
        let budget = Budget::current();
        let span = tracing::Span::current();
        let one = |(Function { id, name, graph }, known): (Function<'_, &mut I::Graph>, Analyses)| {
            let _entered = budget.as_ref().map(Budget::enter);
            let _span = span.enter();
            let start = Instant::now();
            // Passes on one function run on one thread.
            let mut run = Run {
                manager,
                environment,
                fuel,
                pool: None,
                known: HashMap::from([(THIS, known)]),
                statistics: Vec::new(),
                rounds,
                warnings: Vec::new(),
            };
            let mut timing = Vec::new();
            let result = work(&mut run, &name, graph, &mut timing);
            Outcome {
                id,
                name: name.into_owned(),
                result,
                statistics: run.statistics,
                warnings: run.warnings,
                timing,
                seconds: start.elapsed(),
                known: run.known.remove(&THIS).unwrap_or_default(),
            }
        };
        let outcomes: Vec<Outcome<I>> = match self.pool {
            Some(pool) => pool.map(jobs, one),
            None => {
                let mut all = Vec::new();
                for job in jobs {
                    let outcome = one(job);
                    let failed = outcome.result.is_err();
                    all.push(outcome);
                    if failed {
                        break;
                    }
                }
                all
            }
        };
        let mut first_error = Ok(());
        for outcome in outcomes {
            for (pass, name, n) in outcome.statistics {
                self.add(&pass, name, n);
            }
            let name = outcome.name;
            self.warnings.extend(
                outcome
                    .warnings
                    .iter()
                    .map(|warning| format!("in function {name}: {warning}")),
            );
            timings.push(Timing {
                name,
                time: outcome.seconds,
                children: outcome.timing,
            });
            self.known.insert(outcome.id, outcome.known);
            if first_error.is_ok() {
                first_error = outcome.result;
            }
        }
        first_error
    }

    fn count(&mut self, pass: &str, cx: &PassContext<'_, I>) {
        for (name, n) in &cx.statistics {
            self.add(pass, name, *n);
        }
    }

    fn add(&mut self, pass: &str, name: &'static str, n: u64) {
        match self.statistics.iter_mut().find(|(p, s, _)| p == pass && *s == name) {
            Some((_, _, sum)) => *sum += n,
            None => self.statistics.push((pass.to_owned(), name, n)),
        }
    }
}

impl<I: Ir> PassManager<I> {
    fn show(&self, when: &str, pass: &str, target: &Target<'_, I>) {
        if let Some(printer) = &self.printer {
            printer.print(&format!("IR {when} {pass}"), target.as_ref());
        }
    }
}

/// Calls `work`, and converts a panic to [`PassError::Panicked`], so that a reproducer can be written.
fn guarded<I: Ir>(work: impl FnOnce() -> Result<(), PassError<I>>) -> Result<(), PassError<I>> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result,
        Err(payload) => {
            let text = payload
                .downcast_ref::<&str>()
                .map(|s| (*s).to_owned())
                .or_else(|| payload.downcast_ref::<String>().cloned());
            Err(PassError::Panicked(text.unwrap_or_else(|| "no message".to_owned())))
        }
    }
}

fn verify<I: Ir>(target: &Target<'_, I>, environment: &I::Environment) -> Result<(), PassError<I>> {
    let invalid = |function: &str, source: I::VerifyError| PassError::Verify {
        function: function.to_owned(),
        source,
    };
    match target {
        Target::Graph(name, graph) => I::verify(graph, environment).map_err(|e| invalid(name, e)),
        Target::Module(module) => module.functions().try_for_each(|f| {
            let verified = I::verify(f.graph, environment).and_then(|()| module.verify_uses(f.graph));
            verified.map_err(|e| invalid(&f.name, e))
        }),
    }
}
