//! What a node does besides giving its results. Writes to memory are the business of [`crate::AliasDb`]; this is about everything
//! else: output, exceptions, the state of random generators, calls to what is not known.
//!
//! An operator without a schema has every effect.

use frazil_ir::schema::{Catalogue, FunctionSchema};
use frazil_ir::{Constant, Graph, NodeId, SymbolId, ValueId, symbols, types};
use std::sync::Arc;

/// What a single node does, its blocks left aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing that could be seen: gone if its results are not used, and the same whenever its operands are.
    Pure,
    /// It writes to its operands (or to an object); only alias information says who sees that.
    Writes,
    /// Its results may differ from run to run: not merged, not evaluated; gone if its results are not used.
    Random,
    /// Seen by somebody outside, or not known: stays where it is.
    Visible,
}

/// Operators that draw random numbers although their schema has no `Generator` argument, and the argument (a truth value or a
/// probability) that must be false or zero for them not to.
const RANDOM: &[(&str, Option<&str>)] = &[
    ("aten::alpha_dropout", Some("train")),
    ("aten::dropout", Some("train")),
    ("aten::feature_alpha_dropout", Some("train")),
    ("aten::feature_dropout", Some("train")),
    ("aten::gru", Some("train")),
    ("aten::lstm", Some("train")),
    ("aten::native_dropout", Some("train")),
    ("aten::rnn_relu", Some("train")),
    ("aten::rnn_tanh", Some("train")),
    ("aten::rrelu", Some("training")),
    ("aten::scaled_dot_product_attention", Some("dropout_p")),
    ("aten::rand", None),
    ("aten::rand_like", None),
    ("aten::randint", None),
    ("aten::randint_like", None),
    ("aten::randn", None),
    ("aten::randn_like", None),
    ("aten::randperm", None),
    // Nor are the clock, the contents of fresh memory, and the modes that somebody else sets functions of the operands.
    ("aten::is_autocast_cpu_enabled", None),
    ("aten::is_autocast_enabled", None),
    ("aten::is_grad_enabled", None),
    ("aten::empty", None),
    ("aten::empty_like", None),
    ("aten::empty_strided", None),
    ("aten::new_empty", None),
    ("aten::new_empty_strided", None),
    ("prim::TimePoint", None),
];

/// Operators that update their running statistics, operands 3 and 4, unless operand 5 is false; their schemas do not say so.
const UPDATES_STATISTICS: &[&str] = &[
    "aten::_batch_norm_impl_index",
    "aten::batch_norm",
    "aten::cudnn_batch_norm",
    "aten::instance_norm",
    "aten::miopen_batch_norm",
    "aten::native_batch_norm",
];

/// The tensors that `node` writes without its schema saying so: the running statistics of a norm that trains, or may.
pub fn written_statistics(graph: &Graph, node: NodeId) -> Option<[ValueId; 2]> {
    if !may_update_statistics(graph.kind_name(node)) {
        return None;
    }
    let trains = graph.operand(node, 5)?;
    if matches!(graph.constant(trains), Some(Constant::Bool(false))) {
        return None;
    }
    let statistics = [graph.operand(node, 3)?, graph.operand(node, 4)?];
    (!statistics.iter().all(|v| graph.ty(*v) == types::NONE)).then_some(statistics)
}

/// The effect of nodes of this kind, where no schema says it.
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

/// True when an operator of this name may write statistics without its schema saying so.
pub(super) fn may_update_statistics(name: &str) -> bool {
    UPDATES_STATISTICS.contains(&name)
}

/// True when the effect of an operator of this name is not the same for all operands.
pub(super) fn depends_on_operands(name: &str) -> bool {
    may_update_statistics(name) || random(name).is_some_and(|switch| switch.is_some())
}

/// Whether the operator, or the one that it is the in-place form of, draws random numbers; and the argument that must be false or zero for it not to.
fn random(name: &str) -> Option<Option<&'static str>> {
    let name = name.strip_suffix('_').filter(|n| !n.ends_with(':')).unwrap_or(name);
    RANDOM.iter().find(|(n, _)| *n == name).map(|(_, switch)| *switch)
}

/// The effect of `node`, which resolves to `schema` (none: not known).
pub fn effect_with(graph: &Graph, node: NodeId, schema: Option<&FunctionSchema>) -> Effect {
    if let Some(effect) = effect_of_kind(graph.kind(node)) {
        return effect;
    }
    let Some(schema) = schema.filter(|s| !s.is_varret) else {
        return Effect::Visible;
    };
    if schema.is_mutable() || written_statistics(graph, node).is_some() {
        return if is_random(graph, node, schema) {
            Effect::Visible
        } else {
            Effect::Writes
        };
    }
    if schema.returns.is_empty() {
        // It neither gives nor writes anything, so it is there for something else: a warning, an assertion, a mode that is set.
        return Effect::Visible;
    }
    if is_random(graph, node, schema) {
        Effect::Random
    } else {
        Effect::Pure
    }
}

fn is_random(graph: &Graph, node: NodeId, schema: &FunctionSchema) -> bool {
    if schema
        .arguments
        .iter()
        .any(|a| a.ty == types::GENERATOR || a.ty == graph.ctx().optional_of(types::GENERATOR))
    {
        return true;
    }
    let Some(switch) = random(graph.kind_name(node)) else {
        return false;
    };
    let Some(switch) = switch else { return true };
    let operand = graph
        .ctx()
        .find_symbol(switch)
        .and_then(|s| schema.argument(s))
        .and_then(|(i, _)| graph.operand(node, i));
    match operand.and_then(|v| graph.constant(v)) {
        Some(Constant::Bool(on)) => on,
        Some(c) => c.as_float() != Some(0.0),
        None => true,
    }
}

/// The effect of `node`; see [`Effect`].
pub fn effect(graph: &Graph, node: NodeId, catalogue: &Catalogue) -> Effect {
    effect_with(graph, node, schema(graph, node, catalogue).as_deref())
}

/// The overload that `node` is.
pub fn schema(graph: &Graph, node: NodeId, catalogue: &Catalogue) -> Option<Arc<FunctionSchema>> {
    catalogue.resolve(graph, node).found()
}
