//! Plans of the graphs of composites, which specialisations share.

use frazil_ir::Graph;
use frazil_runtime::Registry;
use frazil_runtime::import::Importer;
use frazil_runtime::interp::walk::GraphPlan;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A plan with its graph, which is kept alive, so that its address stays unique.
type Kept = (Arc<Graph>, Arc<GraphPlan>);

/// Plans by the address of their graph.
#[derive(Default)]
pub struct SharedPlans {
    plans: Mutex<HashMap<usize, Kept>>,
}

impl SharedPlans {
    /// Returns the plan of a graph without tensors among its constants.
    pub(super) fn plan(&self, graph: &Arc<Graph>, registry: &Registry) -> Arc<GraphPlan> {
        let address = Arc::as_ptr(graph) as usize;
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || {
            let plan = GraphPlan::new(graph, registry, &mut Importer::new(), None);
            (Arc::clone(graph), Arc::new(plan))
        };
        Arc::clone(&plans.entry(address).or_insert_with(make).1)
    }
}
