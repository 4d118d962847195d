//! Effects of nodes except writes to memory, which [`crate::AliasDb`] analyses: output, exceptions, the state of random generators, calls of unknown operators.
//!
//! An operator without a schema has every effect.

use frazil_ir::schema::{Catalogue, Determinism, FunctionSchema};
use frazil_ir::{Constant, Graph, NodeId, SymbolId, ValueId, symbols, types};
use std::sync::Arc;

/// The effects of a single node, apart from those of its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// No effect. The node can be removed if its results are unused, and returns equal results for equal operands.
    Pure,
    /// Writes to its operands (or to an object). The alias analysis determines which reads are affected.
    Writes,
    /// Results may differ between runs. The node is neither merged nor evaluated, and can be removed if its results are
    /// unused.
    Random,
    /// Effects that are visible outside of the graph, or unknown. The node cannot be moved.
    Visible,
}

/// Returns tensors that `node` writes although its schema does not say so: the running statistics of a norm that is, or
/// may be, in training mode.
pub fn written_statistics(graph: &Graph, node: NodeId, catalogue: &Catalogue) -> Option<[ValueId; 2]> {
    if !catalogue.properties(graph.kind(node)).updates_statistics {
        return None;
    }
    let trains = graph.operand(node, 5)?;
    if matches!(graph.constant(trains), Some(Constant::Bool(false))) {
        return None;
    }
    let statistics = [graph.operand(node, 3)?, graph.operand(node, 4)?];
    (!statistics.iter().all(|v| graph.ty(*v) == types::NONE)).then_some(statistics)
}

/// Returns the effect of nodes of kind `kind`, if it does not follow from a schema.
pub(super) fn effect_of_kind(kind: SymbolId) -> Option<Effect> {
    Some(match kind {
        symbols::PRIM_CONSTANT
        | symbols::PRIM_IF
        | symbols::PRIM_LOOP
        | symbols::PRIM_GET_ATTR
        | symbols::PRIM_CREATE_OBJECT
        | symbols::PRIM_LIST_CONSTRUCT
        | symbols::PRIM_LIST_UNPACK
        | symbols::PRIM_TUPLE_CONSTRUCT
        | symbols::PRIM_TUPLE_UNPACK
        | symbols::PRIM_TUPLE_INDEX
        | symbols::PRIM_TUPLE_SLICE
        | symbols::PRIM_DICT_CONSTRUCT
        | symbols::PRIM_UNCHECKED_CAST
        | symbols::PRIM_UNINITIALIZED
        | symbols::PRIM_ISINSTANCE => Effect::Pure,
        symbols::PRIM_SET_ATTR => Effect::Writes,
        symbols::PRIM_RAISE_EXCEPTION
        | symbols::PRIM_PRINT
        | symbols::PRIM_CALL_METHOD
        | symbols::PRIM_CALL_FUNCTION
        | symbols::PRIM_FORK
        | symbols::PRIM_FORK_CLOSURE
        | symbols::PRIM_WAIT
        | symbols::PRIM_RETURN => Effect::Visible,
        _ => return None,
    })
}

/// Returns true if the effect of an operator depends on its operands.
pub(super) fn depends_on_operands(kind: SymbolId, catalogue: &Catalogue) -> bool {
    let properties = catalogue.properties(kind);
    properties.updates_statistics || matches!(properties.determinism, Determinism::RandomIf(_))
}

/// Returns the effect of `node`, which resolves to `schema` (`None` if unknown).
pub fn effect_with(graph: &Graph, node: NodeId, schema: Option<&FunctionSchema>, catalogue: &Catalogue) -> Effect {
    if let Some(effect) = effect_of_kind(graph.kind(node)) {
        return effect;
    }
    let Some(schema) = schema.filter(|s| !s.is_varret) else {
        return Effect::Visible;
    };
    let varies = || varies(graph, node, schema, catalogue);
    if schema.is_mutable() || written_statistics(graph, node, catalogue).is_some() {
        return if varies() { Effect::Visible } else { Effect::Writes };
    }
    // An operator that neither returns nor writes anything is called for another effect: a warning, an assertion, a mode that is set.
    if schema.returns.is_empty() || catalogue.properties(graph.kind(node)).has_effects {
        return Effect::Visible;
    }
    if varies() { Effect::Random } else { Effect::Pure }
}

/// Returns whether calls of the operator with equal operands may return different results.
fn varies(graph: &Graph, node: NodeId, schema: &FunctionSchema, catalogue: &Catalogue) -> bool {
    catalogue.properties(graph.kind(node)).determinism == Determinism::External
        || draws_random_numbers(graph, node, schema, catalogue)
}

/// Returns whether `node`, which resolves to `schema`, may draw random numbers. For an operator that does so conditionally, this is false only if its operands
/// rule it out.
pub fn draws_random_numbers(graph: &Graph, node: NodeId, schema: &FunctionSchema, catalogue: &Catalogue) -> bool {
    let optional = graph.ctx().optional_of(types::GENERATOR);
    let is_generator = |ty| ty == types::GENERATOR || ty == optional;
    if schema.arguments.iter().any(|a| is_generator(a.ty)) {
        return true;
    }
    let switch = match catalogue.properties(graph.kind(node)).determinism {
        Determinism::Deterministic | Determinism::External => return false,
        Determinism::Random => return true,
        Determinism::RandomIf(switch) => graph.ctx().find_symbol(switch),
    };
    let position = switch.and_then(|s| schema.argument(s));
    let operand = position.and_then(|(i, _)| graph.operand(node, i));
    match operand.and_then(|v| graph.constant(v)) {
        Some(Constant::Bool(on)) => on,
        Some(c) => c.as_float() != Some(0.0),
        None => true,
    }
}

/// Returns the effect of `node`; see [`Effect`].
pub fn effect(graph: &Graph, node: NodeId, catalogue: &Catalogue) -> Effect {
    effect_with(graph, node, schema(graph, node, catalogue).as_deref(), catalogue)
}

/// Returns the overload to which `node` resolves.
pub fn schema(graph: &Graph, node: NodeId, catalogue: &Catalogue) -> Option<Arc<FunctionSchema>> {
    catalogue.resolve(graph, node).found()
}
