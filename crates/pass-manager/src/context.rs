//! The context of a pass: environment, analyses, statistics, and fuel.

use crate::analysis::{Analyses, Analysis};
use crate::error::PassError;
use crate::fuel::Fuel;
use crate::ir::Ir;
use crate::pass::GraphPass;
use indexmap::IndexMap;
use std::sync::Arc;

/// The context of a pass beside the graph: environment, analyses, statistics.
pub struct PassContext<'a, I: Ir> {
    /// Data that passes read and do not modify.
    pub environment: &'a I::Environment,
    /// Cached results of lookups in the environment.
    pub lookups: I::Lookups,
    /// Statistics of the pass, by name: "nodes removed".
    pub(crate) statistics: IndexMap<&'static str, u64>,
    /// Whether analyses of the graph are cached: false while passes run on other graphs.
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

    /// Takes fuel for one rewrite, which is counted as `name`. A pass calls this once it is certain that it will rewrite, and does not
    /// rewrite if the result is false.
    #[must_use]
    pub fn rewrite(&mut self, name: &'static str) -> bool {
        // If a budget is exceeded, no more rewrites are done, and the manager returns the error.
        let allowed = frazil_limits::check().is_ok() && self.fuel.is_none_or(|fuel| fuel.take(name));
        if allowed {
            *self.statistics.entry(name).or_default() += 1;
        }
        allowed
    }

    /// Returns true if [`rewrite`](Self::rewrite) would: for a pass that finds out during a rewrite whether it is possible.
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

    /// Returns the analysis `A` of `graph`, computed unless the cached one has the graph's revision. `graph` is the one that the pass runs on; other
    /// graphs are analysed within [`elsewhere`](Self::elsewhere).
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

    /// Runs `pass` on a graph without cached analyses: for passes that consist of passes.
    ///
    /// # Errors
    /// The errors of `pass`.
    pub fn run(&mut self, pass: &dyn GraphPass<I>, graph: &mut I::Graph) -> Result<(), PassError<I>> {
        frazil_limits::check()?;
        self.elsewhere(|cx| pass.run(graph, cx))
    }

    /// Runs `work` on another graph without cached analyses, for example on the body of a fork.
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
