//! How passes know operators: by schema, and by running one node on constants.

use frazil_ir::schema::Catalogue;
use frazil_ir::{Constant, Graph, NodeId};

/// What passes ask of the dialects in use. The registry of operator entries answers; a bare [`Catalogue`] knows schemas only.
pub trait Operators: Send + Sync {
    /// The schemas.
    fn catalogue(&self) -> &Catalogue;

    /// What `node` gives on these operands, or `None` when it cannot be run here and now: no semantics, an error (which must then happen
    /// at run time), or a result of more than `budget` bytes.
    fn evaluate(&self, _graph: &Graph, _node: NodeId, _operands: &[Constant], _budget: usize) -> Option<Vec<Constant>> {
        None
    }
}

impl Operators for Catalogue {
    fn catalogue(&self) -> &Catalogue {
        self
    }
}
