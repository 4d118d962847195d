//! Operators defined in TorchScript source over other operators.
//!
//! A function `mse_loss` defines `aten::mse_loss`, a function `gru__input` the overload `aten::gru.input`. Functions have all arguments of the schema. They
//! call operators, and preceding functions in their file with the prefix `helper_`. These define no operator and are inlined into their callers.

use frazil_ir::schema::{Activation, AliasUse, Catalogue};
use frazil_ir::{Builder, Constant, CopyMap, Graph, NodeId, SymbolId, ValueId, symbols};
use frazil_runtime::entry::{Entry, ResultLayout, Row};
use frazil_runtime::registry::{CompileFn, Composites, Registry};
use frazil_torchscript::{LoadOptions, compile_source};
use indexmap::IndexMap;
use std::collections::HashSet;
use std::sync::Arc;

/// A file of composite operators: the TorchScript source, and the function that compiles it.
type Source = (&'static str, CompileFn);

macro_rules! sources {
    ($($file:literal),* $(,)?) => {
        [$((include_str!($file), |catalogue, function| compile($file, include_str!($file), function, catalogue)),)*]
    };
}

/// The files of composite operators, by subject.
const SOURCES: [Source; 21] = sources![
    "attention.py",
    "backward.py",
    "combinatorics.py",
    "differences.py",
    "dropout.py",
    "factorizations.py",
    "fake_quantization.py",
    "histograms.py",
    "layers.py",
    "least_squares.py",
    "linear_algebra.py",
    "losses.py",
    "norms.py",
    "recurrent.py",
    "sampling.py",
    "segments.py",
    "spectra.py",
    "statistics.py",
    "variants.py",
    "weighting.py",
    "windows.py",
];

/// Properties that the source of a composite operator cannot express: randomness, aliases, layouts of results.
pub(crate) const ENTRIES: &[Row] = &[
    // sampling.py, windows.py, backward.py
    ("aten::adaptive_max_pool1d", on_images()),
    ("aten::adaptive_max_pool2d", on_images()),
    ("aten::max_pool2d_with_indices_backward", on_images()),
    ("aten::max_unpool2d", on_images()),
    // dropout.py
    (
        "aten::alpha_dropout",
        Entry::new().random_if("train").may_return_operand(),
    ),
    (
        "aten::dropout",
        Entry::new().random_if("train").preserves_rank().may_return_operand(),
    ),
    (
        "aten::feature_alpha_dropout",
        Entry::new().random_if("train").may_return_operand(),
    ),
    (
        "aten::feature_dropout",
        Entry::new().random_if("train").may_return_operand(),
    ),
    ("aten::native_dropout", Entry::new().random_if("train")),
    (
        "aten::rrelu",
        Entry::new().random_if("training").activation(Activation::KeepsDtype),
    ),
    // recurrent.py
    ("aten::gru", Entry::new().random_if("train")),
    ("aten::lstm", Entry::new().random_if("train")),
    ("aten::rnn_relu", Entry::new().random_if("train")),
    ("aten::rnn_tanh", Entry::new().random_if("train")),
    // variants.py
    ("aten::empty_strided", Entry::new().external()),
    ("aten::new_empty_strided", Entry::new().external().without_gradients()),
    // norms.py
    ("aten::_batch_norm_impl_index", Entry::new().updates_statistics()),
    ("aten::native_batch_norm", Entry::new().updates_statistics()),
    // linear_algebra.py, factorizations.py
    ("aten::chain_matmul", Entry::new().may_return_operand()),
    (
        "aten::linalg_householder_product",
        Entry::new().aliases(&[("aten::orgqr", AliasUse::Everywhere)]),
    ),
    (
        "aten::native_group_norm",
        Entry::new().layout(ResultLayout::ChannelsLast(4)),
    ),
    (
        "aten::linalg_matrix_power",
        Entry::new().aliases(&[("aten::matrix_power", AliasUse::Everywhere)]),
    ),
    (
        "aten::mvlgamma",
        Entry::new().aliases(&[("aten::special_multigammaln", AliasUse::Normalised)]),
    ),
];

/// Returns an entry of an operator whose result is channels-last if its input is.
const fn on_images() -> Entry {
    Entry::new().layout(ResultLayout::ChannelsLast(3))
}

/// Prefix of the names of functions in composite sources that do not define an operator.
const HELPER: &str = "helper_";

/// Returns the names of the functions that a composite source defines.
fn functions(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter_map(|line| line.strip_prefix("def ")?.split('(').next())
}

/// Registers the composite operators.
pub(crate) fn register(registry: &mut Registry) {
    let named = |f: &str| (format!("aten::{}", f.replace("__", ".")), f.to_string());
    for (text, compile) in SOURCES {
        let operators = functions(text).filter(|f| !f.starts_with(HELPER));
        registry.composites(Composites {
            functions: operators.map(named).collect(),
            compile,
        });
    }
    registry.register_all(ENTRIES);
}

/// Returns `text` with empty lines in place of the functions that `function` does not need, so that the others keep their places.
fn needed_by(function: &str, text: &str) -> String {
    // Helpers stand above their callers, so what a function needs is known when it is reached from below.
    let mut needed: HashSet<&str> = HashSet::from([function]);
    let mut kept: Vec<&str> = Vec::new();
    let mut body: Vec<&str> = Vec::new();
    for line in text.lines().rev() {
        body.push(line);
        let Some(name) = functions(line).next() else { continue };
        match needed.contains(name) {
            true => {
                for line in &body {
                    let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
                    needed.extend(words.filter(|word| word.starts_with(HELPER)));
                }
                kept.append(&mut body);
            }
            false => kept.extend(body.drain(..).map(|_| "")),
        }
    }
    kept.append(&mut body);
    kept.reverse();
    kept.join("\n")
}

/// Returns the graph of `function` in the file `file`, which contains `text`. Only this function and the helpers that it needs are compiled.
fn compile(file: &str, text: &str, function: &str, catalogue: &Catalogue) -> Result<Arc<Graph>, String> {
    let options = LoadOptions {
        operators_first: true,
        ..LoadOptions::new(catalogue.ctx(), catalogue)
    };
    let unit = compile_source(file, &needed_by(function, text), &options).map_err(|e| e.to_string())?;
    // Helpers stand above their callers: what is copied calls nothing any more.
    let mut helpers: IndexMap<SymbolId, Graph> = IndexMap::new();
    for (_, compiled) in unit.functions() {
        let mut graph = compiled.graph.clone();
        inline_helpers(&mut graph, &helpers);
        let name = catalogue.ctx().name(compiled.name);
        if name.strip_prefix("__torch__.").unwrap_or(name) == function {
            spread_results(&mut graph);
            return Ok(Arc::new(graph));
        }
        helpers.insert(compiled.name, graph);
    }
    Err(format!("{file} does not define {function}"))
}

/// Replaces calls of helper functions by copies of their graphs.
fn inline_helpers(graph: &mut Graph, helpers: &IndexMap<SymbolId, Graph>) {
    let called = |graph: &Graph, node: NodeId| {
        let callee = graph
            .operand(node, 0)
            .filter(|_| graph.kind(node) == symbols::PRIM_CALL_FUNCTION)?;
        match graph.constant(callee)? {
            Constant::Function(name) => helpers.get(&name),
            _ => None,
        }
    };
    for node in graph.all_nodes() {
        let Some(callee) = called(graph, node) else { continue };
        let mut map = CopyMap::default();
        let arguments: Vec<ValueId> = graph.operands(node).skip(1).collect();
        for (&input, argument) in callee.inputs().iter().zip(arguments) {
            map.set(input, argument);
        }
        let results = Builder::before(graph, node).copy_block(callee, callee.root(), &mut map);
        for (output, result) in graph.node_outputs(node).to_vec().into_iter().zip(results) {
            graph.replace_all_uses_with(output, result);
        }
        graph.erase(node);
    }
}

/// Replaces a tuple that a function returns by one output per element, because operators have several outputs.
fn spread_results(graph: &mut Graph) {
    let results: Vec<_> = graph.outputs().collect();
    if let [only] = results.as_slice()
        && let Some(node) = graph.defining_node(*only)
        && graph.kind(node) == symbols::PRIM_TUPLE_CONSTRUCT
    {
        let items: Vec<_> = graph.operands(node).collect();
        let root = graph.root();
        graph.set_results(root, &items);
    }
}
