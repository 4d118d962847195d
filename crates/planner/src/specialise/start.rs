//! The state at the beginning of a method, besides its arguments.

use super::plans::SharedPlans;
use frazil_ir::{Module, SymbolId};
use frazil_tensor_ir::spec::ArgumentSpec;
use std::sync::Arc;

/// The state at the beginning of a method, besides its arguments.
#[derive(Default)]
pub struct Start<'a> {
    /// Objects whose attributes may be read and written; the first is the `self` of the method.
    pub objects: &'a [ObjectSpec],
    /// The module that defines the attributes of classes.
    pub module: Option<&'a Module>,
    /// Whether segments may end at loops that stay rolled.
    pub rolls: bool,
    /// Plans of graphs that this and other specialisations share.
    pub shared: Option<Shared<'a>>,
}

/// Plans that the specialisations of a module's methods share.
#[derive(Clone, Copy)]
pub struct Shared<'a> {
    /// The plans. They keep the module alive.
    pub plans: &'a SharedPlans,
    /// The module to which the graph belongs.
    pub module: &'a Arc<Module>,
}

/// Description of an object.
#[derive(Clone, Debug)]
pub struct ObjectSpec {
    /// Qualified name of its class.
    pub class: SymbolId,
    /// Its attributes in order.
    pub slots: Vec<ArgumentSpec>,
}
