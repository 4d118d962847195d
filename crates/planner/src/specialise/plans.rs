//! Plans of the graphs of methods and composites, which specialisations share.

use frazil_ir::schema::{AliasInfo, Observes};
use frazil_ir::{AttributeValue, Constant, Context, Graph, Module, NodeId, TypeId, TypeKind, symbols};
use frazil_runtime::Registry;
use frazil_runtime::import::Importer;
use frazil_runtime::interp::walk::GraphPlan;
use frazil_runtime::registry::Lookup;
use rustc_hash::FxHashMap;
use std::any::Any;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The plan of a graph that may run again.
pub(super) struct Planned {
    pub(super) plan: GraphPlan,
    /// See [`tells_places`].
    tells_places: OnceLock<bool>,
    /// Keeps the graph alive, so that its address stays unique.
    _owner: Owner,
}

/// The graph itself, or the module that contains it.
pub(super) type Owner = Arc<dyn Any + Send + Sync>;

impl Planned {
    /// Plans `graph`, which belongs to `owner`. `importer` converts its constants.
    pub(super) fn new(graph: &Graph, owner: Owner, registry: &Registry, importer: &mut Importer) -> Arc<Planned> {
        Arc::new(Planned {
            plan: GraphPlan::new(graph, registry, importer, None),
            tells_places: OnceLock::new(),
            _owner: owner,
        })
    }

    /// Returns the result of [`tells_places`] for the graph of the plan, which is computed once.
    pub(super) fn tells_places(&self, graph: &Graph, registry: &Registry) -> bool {
        *self.tells_places.get_or_init(|| tells_places(graph, registry))
    }
}

/// Plans by the address of their graph; `None` for graphs whose plans cannot be shared.
#[derive(Default)]
pub struct SharedPlans {
    plans: Mutex<FxHashMap<usize, Option<Arc<Planned>>>>,
}

impl SharedPlans {
    /// Returns the plan of the graph of a composite. Composites change no constants.
    pub(super) fn composite(&self, graph: &Arc<Graph>, registry: &Registry) -> Option<Arc<Planned>> {
        self.get_or_make(graph, || Some(Arc::clone(graph) as Owner), registry)
    }

    /// Returns the plan of the graph of a method of `module`. Returns `None` if running it may change a constant.
    pub(super) fn method(&self, graph: &Graph, module: &Arc<Module>, registry: &Registry) -> Option<Arc<Planned>> {
        let owner = || (!changes_constants(graph, registry)).then(|| Arc::clone(module) as Owner);
        self.get_or_make(graph, owner, registry)
    }

    fn get_or_make(
        &self,
        graph: &Graph,
        owner: impl FnOnce() -> Option<Owner>,
        registry: &Registry,
    ) -> Option<Arc<Planned>> {
        let address = std::ptr::from_ref(graph) as usize;
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || Some(Planned::new(graph, owner()?, registry, &mut Importer::new()));
        plans.entry(address).or_insert_with(make).clone()
    }
}

/// Returns whether the graph has constants that are lists, dictionaries or objects, and it, or a graph that it forks, contains operators that change such. (Tensors
/// that are constants are never written; see [`super::Specialiser::writes_constant`].)
fn changes_constants(graph: &Graph, registry: &Registry) -> bool {
    let nodes = graph.nodes_recursive(graph.root());
    let mut constants = nodes.iter().filter_map(|&node| graph.constant_of(node));
    constants.any(|constant| is_changeable(&constant)) && changes_containers(graph, registry)
}

fn changes_containers(graph: &Graph, registry: &Registry) -> bool {
    let changes = |node: NodeId| {
        if let Some(AttributeValue::Graph(body)) = graph.attribute(node, symbols::ATTR_SUBGRAPH) {
            return changes_containers(body, registry);
        }
        match registry.lookup(graph, node) {
            Lookup::Found(op) => {
                let mut arguments = op.schema().arguments.iter();
                arguments.any(|a| a.alias.as_ref().is_some_and(|x| x.is_write) && is_list(graph.ctx(), a.ty))
            }
            _ => match graph.kind(node) {
                symbols::PRIM_SET_ATTR => true,
                symbols::PRIM_CONSTANT => false,
                kind => !symbols::is_structural(kind),
            },
        }
    };
    graph.nodes_recursive(graph.root()).into_iter().any(changes)
}

fn is_changeable(constant: &Constant) -> bool {
    match constant {
        Constant::List(_) | Constant::Dict(_) | Constant::Object(_) => true,
        Constant::Tuple(tuple) => tuple.items.iter().any(is_changeable),
        _ => false,
    }
}

/// Returns whether the graph, or one that it forks, writes tensors or exposes their addresses.
pub(super) fn tells_places(graph: &Graph, registry: &Registry) -> bool {
    let ctx = graph.ctx();
    let tells = |node: NodeId| {
        if let Some(AttributeValue::Graph(body)) = graph.attribute(node, symbols::ATTR_SUBGRAPH) {
            return tells_places(body, registry);
        }
        registry.catalogue().properties(graph.kind(node)).observes == Observes::Storage
            || match registry.lookup(graph, node) {
                Lookup::Found(op) => op.schema().arguments.iter().any(|a| {
                    let written = |x: &Option<AliasInfo>| x.as_ref().is_some_and(|x| x.is_write);
                    // A list that is written is no written tensor, unless its elements are.
                    written(&a.element_alias) || written(&a.alias) && !is_list(ctx, a.ty)
                }),
                _ => {
                    !symbols::is_structural(graph.kind(node))
                        && graph.operands(node).any(|v| has_tensors(ctx, graph.ty(v)))
                }
            }
    };
    graph.nodes_recursive(graph.root()).into_iter().any(tells)
}

fn is_list(ctx: &Context, ty: TypeId) -> bool {
    matches!(ctx.type_kind(ty), TypeKind::List(_) | TypeKind::Dict(..))
}

fn has_tensors(ctx: &Context, ty: TypeId) -> bool {
    match ctx.type_kind(ty) {
        TypeKind::Tensor(_) => true,
        TypeKind::Optional(inner) | TypeKind::List(inner) => has_tensors(ctx, inner),
        _ => false,
    }
}
