//! Execution of a pipeline: nested steps, functions in parallel, printing and measurements.

use super::workers::Workers;
use super::{Entry, IrRef, PassManager, Report, Step, Timing};
use crate::pass::{AnyPass, CachedAliasDb, Fuel, PassContext, PassError};
use crate::support;
use crate::support::operators::Operators;
use frazil_ir::{FunctionId, Graph, Module};
use frazil_limits::{Budget, Limits, Phase};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

/// The module or graph on which a pipeline runs.
pub(super) enum Target<'m> {
    Module(&'m mut Module),
    /// A graph with the name of its function, empty for a bare graph.
    Graph(&'m str, &'m mut Graph),
}

/// A copy of a module or graph, for reproducers.
enum Snapshot {
    Module(Box<Module>),
    Graph(Box<Graph>),
}

impl Target<'_> {
    fn as_ref(&self) -> IrRef<'_> {
        match self {
            Target::Module(m) => IrRef::Module(m),
            Target::Graph(name, g) => IrRef::Graph(name, g),
        }
    }

    fn snapshot(&self) -> Snapshot {
        match self {
            Target::Module(m) => Snapshot::Module(Box::new((**m).clone())),
            Target::Graph(_, g) => Snapshot::Graph(Box::new((**g).clone())),
        }
    }

    fn node_count(&self) -> usize {
        let count = |graph: &Graph| {
            support::subgraphs_and_self(graph)
                .map(|g| g.all_nodes().len())
                .sum::<usize>()
        };
        match self {
            Target::Graph(_, graph) => count(graph),
            Target::Module(module) => module.unit.functions().map(|(_, f)| count(&f.graph)).sum(),
        }
    }

    /// Returns a value that changes whenever a pass changes the module or graph.
    fn fingerprint(&self) -> Vec<(u32, u64)> {
        match self {
            Target::Graph(_, g) => vec![(0, g.revision())],
            Target::Module(m) => {
                let functions = m.unit.functions().map(|(id, f)| (id.as_u32(), f.graph.revision()));
                functions
                    .chain([(m.unit.classes.len() as u32, m.object_count() as u64)])
                    .collect()
            }
        }
    }
}

/// The key of a bare graph in [`Run::known`].
const THIS: u32 = 0;

/// The state of one run of a pipeline.
struct Run<'a> {
    manager: &'a PassManager,
    operators: &'a dyn Operators,
    fuel: Option<&'a Fuel>,
    pool: Option<&'a Workers>,
    /// Cached alias analysis of each function, keyed by the number of its [`FunctionId`]. A bare graph has the key [`THIS`].
    known: HashMap<u32, CachedAliasDb>,
    statistics: Vec<(String, &'static str, u64)>,
    /// Total number of rounds of `repeat` steps so far.
    rounds: u64,
    /// Warnings about `repeat` steps that were stopped early.
    warnings: Vec<String>,
}

/// Maximum number of rounds of all `repeat` steps on one function or module. Two passes that undo each other's rewrites would otherwise never end.
const MAX_ROUNDS: u64 = 1000;

/// Number of nodes up to which [`MAX_GROWTH`] does not apply.
const MAX_NODES: usize = 200_000;

/// Maximum growth of the number of nodes over the rounds of a `repeat`, as a factor, beyond [`MAX_NODES`].
const MAX_GROWTH: usize = 4;

/// Maximum number of nodes processed in all rounds of a `repeat` together, unless [`MAX_VISITS_EACH`] rounds over the original IR have more. A node takes a
/// microsecond per round, and several with verification. So many rounds with a little growth each can take long before the IR is large.
const MAX_VISITS: usize = 100_000;
const MAX_VISITS_EACH: usize = 100;

/// The results of running steps on one function.
struct Outcome {
    id: FunctionId,
    result: Result<(), PassError>,
    statistics: Vec<(String, &'static str, u64)>,
    warnings: Vec<String>,
    timing: Vec<Timing>,
    seconds: std::time::Duration,
    known: CachedAliasDb,
}

pub(super) fn run(
    manager: &PassManager,
    mut target: Target<'_>,
    operators: &dyn Operators,
) -> Result<Report, PassError> {
    let budget = Budget::new(&manager.limits, Phase::Pipeline);
    let _entered = (manager.limits != Limits::NONE).then(|| budget.enter());
    let fuel = manager.limit.map(Fuel::new);
    // Rewrites are counted in one order only.
    let threads = if fuel.is_some() { 1 } else { manager.threads };
    let pool = Workers::start(threads);
    let mut run = Run {
        manager,
        operators,
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
        // An invalid input is not an error of the first pass.
        verify(&target, operators).map_err(|error| PassError::Input(Box::new(error)))?;
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

impl<'a> Run<'a> {
    /// Runs the steps `entries` one after the other.
    fn entries(
        &mut self,
        entries: &[Entry],
        target: &mut Target<'_>,
        timings: &mut Vec<Timing>,
    ) -> Result<(), PassError> {
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

    fn repeat(
        &mut self,
        max: u64,
        entries: &[Entry],
        target: &mut Target<'_>,
        timings: &mut Vec<Timing>,
    ) -> Result<(), PassError> {
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

    /// Runs one pass, and prints, measures and verifies its result as configured.
    fn watched(
        &mut self,
        entry: &Entry,
        pass: &AnyPass,
        target: &mut Target<'_>,
        timings: &mut Vec<Timing>,
    ) -> Result<(), PassError> {
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
            true => verify(target, self.operators),
            false => Ok(()),
        });
        if let Err(error) = result {
            if manager.print.on_failure {
                manager.show("after failure of", &entry.name, target);
            }
            if let (Some(reproducer), Some(snapshot)) = (&manager.reproducer, &snapshot) {
                let ir = match snapshot {
                    Snapshot::Module(m) => IrRef::Module(m),
                    Snapshot::Graph(g) => IrRef::Graph("", g),
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

    /// Calls `work`, which runs `pass`, within the pass's limits.
    fn within_limits(
        &mut self,
        pass: &AnyPass,
        target: &mut Target<'_>,
        work: impl FnOnce(&mut Self, &mut Target<'_>) -> Result<(), PassError>,
    ) -> Result<(), PassError> {
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
        pass: &AnyPass,
        target: &mut Target<'_>,
        timings: &mut Vec<Timing>,
    ) -> Result<(), PassError> {
        match (pass, target) {
            (AnyPass::Graph(pass), Target::Graph(function, graph)) => {
                let mut cx = PassContext::new(self.operators).with_fuel(self.fuel);
                cx.keeps_analyses = true;
                cx.alias_db = self.known.remove(&THIS).flatten();
                let result = guarded(|| pass.run(graph, &mut cx));
                self.known.insert(THIS, cx.alias_db.take());
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
                // Functions may be renumbered.
                self.known.clear();
                let mut cx = PassContext::new(self.operators).with_fuel(self.fuel);
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

    /// Runs a nested pipeline on each function separately.
    fn methods(
        &mut self,
        only: &[String],
        entries: &[Entry],
        target: &mut Target<'_>,
        timings: &mut Vec<Timing>,
    ) -> Result<(), PassError> {
        match target {
            Target::Graph(..) => self.entries(entries, target, timings),
            Target::Module(module) => {
                // By the name of the method, or the qualified one.
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

    /// Calls `work` on the selected functions, in parallel if there are threads. Reports are merged in the order of the functions. The error is that of the
    /// first failing function in that order.
    fn each_function(
        &mut self,
        module: &mut Module,
        wanted: &dyn Fn(&str) -> bool,
        timings: &mut Vec<Timing>,
        work: impl Fn(&mut Run<'a>, &str, &mut Graph, &mut Vec<Timing>) -> Result<(), PassError> + Sync,
    ) -> Result<(), PassError> {
        let ctx = module.ctx().clone();
        let mut jobs: Vec<(FunctionId, &str, &mut Graph, CachedAliasDb)> = Vec::new();
        for (id, function) in module.unit.functions_mut() {
            let name = ctx.name(function.name);
            if wanted(name) {
                let known = self.known.remove(&id.as_u32()).flatten();
                jobs.push((id, name, &mut function.graph, known));
            }
        }
        let (manager, operators, fuel) = (self.manager, self.operators, self.fuel);
        let budget = Budget::current();
        let one = |(id, name, graph, known): (FunctionId, &str, &mut Graph, CachedAliasDb)| {
            let _entered = budget.as_ref().map(Budget::enter);
            let start = Instant::now();
            // Nothing below a function runs in parallel.
            let mut run = Run {
                manager,
                operators,
                fuel,
                pool: None,
                known: HashMap::from([(THIS, known)]),
                statistics: Vec::new(),
                rounds: self.rounds,
                warnings: Vec::new(),
            };
            let mut timing = Vec::new();
            let result = work(&mut run, name, graph, &mut timing);
            Outcome {
                id,
                result,
                statistics: run.statistics,
                warnings: run.warnings,
                timing,
                seconds: start.elapsed(),
                known: run.known.remove(&THIS).flatten(),
            }
        };
        let outcomes: Vec<Outcome> = match self.pool {
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
            let name = ctx.name(module.unit.function(outcome.id).name);
            self.warnings.extend(
                outcome
                    .warnings
                    .iter()
                    .map(|warning| format!("in function {name}: {warning}")),
            );
            timings.push(Timing {
                name: name.to_owned(),
                time: outcome.seconds,
                children: outcome.timing,
            });
            self.known.insert(outcome.id.as_u32(), outcome.known);
            if first_error.is_ok() {
                first_error = outcome.result;
            }
        }
        first_error
    }

    fn count(&mut self, pass: &str, cx: &PassContext<'_>) {
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

impl PassManager {
    fn show(&self, when: &str, pass: &str, target: &Target<'_>) {
        if let Some(printer) = &self.printer {
            printer.print(&format!("IR {when} {pass}"), target.as_ref());
        }
    }
}

/// Calls `work`. A panic is returned as an error, so that a reproducer can be written.
fn guarded(work: impl FnOnce() -> Result<(), PassError>) -> Result<(), PassError> {
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

fn verify(target: &Target<'_>, operators: &dyn Operators) -> Result<(), PassError> {
    let check = |name: &str, graph: &Graph| {
        let result = support::subgraphs_and_self(graph).try_for_each(|g| g.verify(Some(operators.catalogue())));
        result.map_err(|source| PassError::Verify {
            function: name.to_owned(),
            source,
        })
    };
    match target {
        Target::Graph(name, graph) => check(name, graph),
        Target::Module(module) => {
            let ctx = module.ctx();
            module.unit.functions().try_for_each(|(_, f)| {
                let name = ctx.name(f.name);
                check(name, &f.graph)?;
                let mut graphs = support::subgraphs_and_self(&f.graph);
                let members = graphs.try_for_each(|g| g.verify_members(&module.unit));
                members.map_err(|source| PassError::Verify {
                    function: name.to_owned(),
                    source,
                })
            })
        }
    }
}
