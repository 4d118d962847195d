//! The state at the beginning of a method, besides its arguments.

use super::plans::SharedPlans;
use frazil_ir::{Module, SymbolId};
use frazil_tensor_ir::spec::ArgumentSpec;

/// The state at the beginning of a method, besides its arguments.
#[derive(Default)]
pub struct Start<'a> {
    /// Objects whose attributes may be read and written; the first is the `self` of the method.
    pub objects: &'a [ObjectSpec],
    /// The module that defines the attributes of classes.
    pub module: Option<&'a Module>,
    /// Whether segments may end at loops that stay rolled.
    pub rolls: bool,
    /// Plans of composites that this and other specialisations share.
    pub composites: Option<&'a SharedPlans>,
}

/// Description of an object.
#[derive(Clone, Debug)]
pub struct ObjectSpec {
    /// Qualified name of its class.
    pub class: SymbolId,
    /// Its attributes in order.
    pub slots: Vec<ArgumentSpec>,
}
