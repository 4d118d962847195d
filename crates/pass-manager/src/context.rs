//! The context in which a pass runs: environment, analyses, statistics, and fuel.

use crate::analysis::{Analyses, Analysis};
use crate::error::PassError;
use crate::fuel::Fuel;
use crate::ir::Ir;
use crate::pass::GraphPass;
use indexmap::IndexMap;
use std::sync::Arc;

/// The context in which a pass runs: environment, cached analyses, statistics, and fuel.
pub struct PassContext<'a, I: Ir> {
    /// Data that passes read and do not modify.
    pub environment: &'a I::Environment,
    /// Cached results of lookups in the environment.
    pub lookups: I::Lookups,
    /// Statistics of the pass, by name: "nodes removed".
    pub(crate) statistics: IndexMap<&'static str, u64>,
    /// Whether analyses are cached: true only while a pass over graphs runs on the graph for which the manager called it.
    pub(crate) keeps_analyses: bool,
    pub(crate) analyses: Analyses,
    pub(crate) fuel: Option<&'a Fuel>,
}

impl<'a, I: Ir> PassContext<'a, I> {
    /// Returns a context without analyses, and with fuel for any number of rewrites.
    pub fn new(environment: &'a I::Environment) -> PassContext<'a, I> {
        PassContext {
            environment,
            lookups: I::Lookups::default(),
            statistics: IndexMap::new(),
            keeps_analyses: false,
            analyses: Analyses::default(),
            fuel: None,
        }
    }

    /// Sets the fuel, which bounds the number of rewrites.
    #[must_use]
    pub fn with_fuel(mut self, fuel: Option<&'a Fuel>) -> PassContext<'a, I> {
        self.fuel = fuel;
        self
    }

    /// Adds `n` to the statistic `name`.
    pub fn count(&mut self, name: &'static str, n: usize) {
        if n > 0 {
            *self.statistics.entry(name).or_default() += n as u64;
        }
    }

    /// Takes fuel for one rewrite, and adds the rewrite to the statistic `name`. Returns false, and does neither, if no fuel is left or a limit is exceeded.
    ///
    /// A pass calls this function immediately before it changes the graph. If the result is false, it must leave the graph as it is.
    #[must_use]
    pub fn rewrite(&mut self, name: &'static str) -> bool {
        // After a limit is exceeded, there are no more rewrites; the manager returns the error when the pass ends.
        let allowed = frazil_limits::check().is_ok() && self.fuel.is_none_or(|fuel| fuel.take(name));
        if allowed {
            *self.statistics.entry(name).or_default() += 1;
        }
        allowed
    }

    /// Returns whether fuel is left. A pass that only learns during a rewrite whether the rewrite is possible calls this function before it, and
    /// [`rewrite`](Self::rewrite) after it.
    pub fn may_rewrite(&self) -> bool {
        self.fuel_left() != Some(0)
    }

    /// Returns the number of rewrites that may still be done; `None` if unlimited.
    pub fn fuel_left(&self) -> Option<u64> {
        self.fuel.map(Fuel::left)
    }

    /// Returns the value of the statistic `name`.
    pub fn counted(&self, name: &str) -> u64 {
        self.statistics.get(name).copied().unwrap_or(0)
    }

    /// Returns the analysis `A` of `graph`. The cached analysis is returned if it describes the current revision of the graph; otherwise it is computed.
    ///
    /// `graph` must be the graph on which the pass runs, since the cache distinguishes revisions and not graphs. Another graph, such as a subgraph, must be
    /// analysed within [`elsewhere`](Self::elsewhere).
    pub fn analysis<A: Analysis<I>>(&mut self, graph: &I::Graph) -> Arc<A> {
        let revision = I::revision(graph);
        if let Some(known) = self.analyses.get(revision) {
            return known;
        }
        let analysis = Arc::new(A::compute(graph, self));
        if self.keeps_analyses {
            self.analyses.insert(revision, Arc::clone(&analysis));
        }
        analysis
    }

    /// Runs another pass on `graph`, which need not be the graph on which this pass runs: without the cached analyses. Statistics and fuel are those of this
    /// context.
    ///
    /// # Errors
    /// The errors of `pass`, and [`PassError::Exceeded`] if a limit was exceeded before.
    pub fn run(&mut self, pass: &dyn GraphPass<I>, graph: &mut I::Graph) -> Result<(), PassError<I>> {
        frazil_limits::check()?;
        self.elsewhere(|cx| pass.run(graph, cx))
    }

    /// Runs another pass as a part of this one, on the same graph: it uses and adds to the cached analyses. Statistics and fuel are those of this context.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_part(&mut self, pass: &dyn GraphPass<I>, graph: &mut I::Graph) -> Result<(), PassError<I>> {
        frazil_limits::check()?;
        pass.run(graph, self)
    }

    /// Calls `work` with a context that caches the analyses of one graph, the only one that `work` analyses. A pass over modules uses this to run several passes
    /// on a graph, each with [`run_part`](Self::run_part).
    pub fn on_one_graph<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        self.elsewhere(|cx| {
            cx.keeps_analyses = true;
            work(cx)
        })
    }

    /// Calls `work` with a context whose cache of analyses is empty and stays empty. A pass uses this for another graph than the one on which it runs, for example
    /// for the body of a fork.
    pub fn elsewhere<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        let (outer, kept) = (
            std::mem::take(&mut self.analyses),
            std::mem::take(&mut self.keeps_analyses),
        );
        let result = work(self);
        self.analyses = outer;
        self.keeps_analyses = kept;
        result
    }
}
