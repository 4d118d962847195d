//! The context of a pass: operators, analyses, counters, and the remaining number of rewrites.

use super::{GraphPass, PassError};
use crate::AliasDb;
use crate::support::effects::Effect;
use crate::support::operators::Operators;
use crate::support::overloads::Overloads;
use frazil_ir::{Graph, NodeId, symbols};
use indexmap::IndexMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A limit on the number of rewrites, by which the rewrite that breaks a program is found by bisection.
#[derive(Debug)]
pub struct Fuel {
    left: AtomicU64,
    /// The last rewrite within the limit.
    last: Mutex<Option<LastRewrite>>,
}

/// The last rewrite before the limit was reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastRewrite {
    /// The name of the pass in the pipeline.
    pub pass: String,
    /// The qualified name of the function; empty for a graph without a module, and for a pass over a whole module.
    pub function: String,
    /// The statistic that counts such rewrites: "nodes merged".
    pub statistic: &'static str,
}

impl fmt::Display for LastRewrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.statistic, self.pass)?;
        match self.function.as_str() {
            "" => Ok(()),
            function => write!(f, " in {function}"),
        }
    }
}

impl Fuel {
    /// Returns fuel for `limit` rewrites.
    pub fn new(limit: u64) -> Fuel {
        Fuel {
            left: AtomicU64::new(limit),
            last: Mutex::default(),
        }
    }

    /// Consumes fuel for one rewrite, which is counted as `statistic`. Returns false if no fuel is left.
    fn take(&self, statistic: &'static str) -> bool {
        let less = |n: u64| n.checked_sub(1);
        let before = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        if before == Ok(1) {
            let last = LastRewrite {
                statistic,
                ..LastRewrite::default()
            };
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(last);
        }
        before.is_ok()
    }

    /// Records the location of the last rewrite, unless it is already known.
    pub(crate) fn locate_last(&self, pass: &str, function: &str) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = last.as_mut().filter(|last| last.pass.is_empty()) {
            last.pass = pass.to_owned();
            last.function = function.to_owned();
        }
    }

    /// Returns the last rewrite, if the limit has been reached.
    pub fn last(&self) -> Option<LastRewrite> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the remaining number of rewrites.
    pub fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }
}

/// An alias analysis with the revision of the graph that it describes, cached between the passes on one function.
pub(crate) type CachedAliasDb = Option<(u64, Arc<AliasDb>)>;

/// The inputs and outputs of a pass besides the graph: operators, analyses, counters.
pub struct PassContext<'a> {
    /// The operators: their schemas, and their evaluation on constants.
    pub operators: &'a dyn Operators,
    /// Statistics of the pass, keyed by name: "nodes removed".
    pub(crate) statistics: IndexMap<&'static str, u64>,
    /// Whether analyses of the graph are cached. They are not while the pass runs on other graphs.
    pub(crate) keeps_analyses: bool,
    pub(crate) alias_db: CachedAliasDb,
    /// Cached facts about operators, see [`Overloads`].
    overloads: Overloads,
    pub(crate) fuel: Option<&'a Fuel>,
}

impl<'a> PassContext<'a> {
    /// Returns a context without cached analyses and without a limit on rewrites.
    pub fn new(operators: &'a dyn Operators) -> PassContext<'a> {
        PassContext {
            operators,
            statistics: IndexMap::new(),
            keeps_analyses: false,
            alias_db: None,
            overloads: Overloads::default(),
            fuel: None,
        }
    }

    /// Sets the fuel, which limits the number of rewrites.
    #[must_use]
    pub fn with_fuel(mut self, fuel: Option<&'a Fuel>) -> PassContext<'a> {
        self.fuel = fuel;
        self
    }

    /// Adds `n` to the statistic `name`.
    pub fn count(&mut self, name: &'static str, n: usize) {
        if n > 0 {
            *self.statistics.entry(name).or_default() += n as u64;
        }
    }

    /// Consumes fuel for one rewrite, which is counted as `name`. A pass must call this function when it is certain to rewrite, and must not rewrite if the
    /// result is false.
    #[must_use]
    pub fn rewrite(&mut self, name: &'static str) -> bool {
        // If a budget is exceeded, no more rewrites are done, and the manager returns the error.
        let allowed = frazil_limits::check().is_ok() && self.fuel.is_none_or(|fuel| fuel.take(name));
        if allowed {
            *self.statistics.entry(name).or_default() += 1;
        }
        allowed
    }

    /// Returns true if [`rewrite`](Self::rewrite) would. It is meant for passes that only know during a rewrite whether it is possible.
    pub fn may_rewrite(&self) -> bool {
        self.fuel_left() != Some(0)
    }

    /// Returns the remaining number of rewrites; `None` if there is no limit.
    pub fn fuel_left(&self) -> Option<u64> {
        self.fuel.map(Fuel::left)
    }

    /// Returns the count of the statistic `name`.
    pub fn counted(&self, name: &str) -> u64 {
        self.statistics.get(name).copied().unwrap_or(0)
    }

    /// Returns the alias information for `graph`. It is computed unless it is cached for the graph's revision.
    pub fn alias_db(&mut self, graph: &Graph) -> Arc<AliasDb> {
        if let Some((revision, db)) = &self.alias_db
            && *revision == graph.revision()
        {
            return db.clone();
        }
        let catalogue = self.operators.catalogue();
        let db = Arc::new(AliasDb::with_overloads(graph, catalogue, &mut self.overloads));
        if self.keeps_analyses {
            self.alias_db = Some((graph.revision(), db.clone()));
        }
        db
    }

    /// Returns the effect of `node` besides its results. Effects are cached for passes that query every node.
    pub fn effect(&mut self, graph: &Graph, node: NodeId) -> Effect {
        self.overloads.effect(self.operators.catalogue(), graph, node)
    }

    /// Returns true if `node` may unify memory locations that are separate without it: it reads or stores contents of a container, carries values of a loop,
    /// or is unknown.
    pub(crate) fn joins_memory(&mut self, graph: &Graph, node: NodeId) -> bool {
        let builds = matches!(
            graph.kind(node),
            symbols::PRIM_CONSTANT
                | symbols::PRIM_LIST_CONSTRUCT
                | symbols::PRIM_TUPLE_CONSTRUCT
                | symbols::PRIM_DICT_CONSTRUCT
        );
        !builds && !self.overloads.of(self.operators.catalogue(), graph, node).is_plain
    }

    /// Runs `pass` on a graph without cached analyses, for passes that consist of other passes.
    ///
    /// # Errors
    /// The errors of `pass`.
    pub fn run(&mut self, pass: &dyn GraphPass, graph: &mut Graph) -> Result<(), PassError> {
        frazil_limits::check()?;
        self.elsewhere(|cx| pass.run(graph, cx))
    }

    /// Runs `work` on another graph without cached analyses, for example on the body of a fork.
    pub fn elsewhere<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        let (outer, kept) = (self.alias_db.take(), std::mem::take(&mut self.keeps_analyses));
        let result = work(self);
        self.alias_db = outer;
        self.keeps_analyses = kept;
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frazil_ir::Context;
    use frazil_ir::schema::Catalogue;

    #[test]
    fn fuel_runs_out() {
        let catalogue = Catalogue::new(Arc::new(Context::new()));
        let fuel = Fuel::new(2);
        let mut cx = PassContext::new(&catalogue).with_fuel(Some(&fuel));
        let answers: Vec<bool> = (0..4).map(|_| cx.rewrite("rewrites")).collect();
        assert_eq!(answers, [true, true, false, false]);
        assert_eq!((cx.counted("rewrites"), fuel.left()), (2, 0));
    }
}
